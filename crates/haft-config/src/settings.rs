//! The settings that exist, with their defaults and ranges.
//!
//! **Invariant:** one struct documents all of them: the schema, the check of the files and the
//! tables of docs/guide/settings.md are made from it.

use std::collections::BTreeMap;

use haft_types::{Effort, Mode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{model_names, web_settings::Web};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The model, and how its server is waited for; a text alone is its name.
    pub model: ModelChoice,
    /// What is known of models, each under its name as `model` has it.
    /// A project cannot set prices and fields of requests.
    pub models: BTreeMap<String, Model>,
    /// More servers of models, each under the name that stands before the model's; one that haft knows
    /// can be given another address. A project cannot set them.
    pub providers: BTreeMap<String, Server>,
    /// When a conversation is shortened because its model's window fills up. A project cannot set it.
    pub context: Context,
    /// How hard the model thinks; without it the server decides.
    #[schemars(schema_with = "effort_schema")]
    pub effort: Option<Effort>,
    /// How much is asked before something is done; `--mode` sets it for one run.
    #[schemars(schema_with = "mode_schema")]
    pub mode: Mode,
    /// Rules about calls.
    pub permissions: Permissions,
    /// Programs that see calls, prompts and turns, by event, as `docs/hooks.md` has them.
    // Read, they are in `Loaded::hooks`, not here.
    #[schemars(schema_with = "hooks_schema")]
    pub hooks: Value,
    /// What is taken of Claude Code.
    pub claude: Claude,
    /// Limits of one turn.
    pub run: Run,
    /// The tools as a whole.
    pub tools: Tools,
    /// The read tool.
    pub read: Read,
    /// The edit tool.
    pub edit: Edit,
    /// Questions of the model.
    pub ask_user: AskUser,
    /// How a model finds tools that it does not see at once.
    pub tool_search: ToolSearch,
    /// What the model may set. A project cannot set it.
    pub config: Config,
    /// Skills.
    pub skills: Skills,
    /// Files of instructions, such as `AGENTS.md`.
    pub instructions: Instructions,
    /// The shell.
    pub shell: Shell,
    /// What holds the programs that tools start.
    pub sandbox: Sandbox,
    /// What is a secret.
    pub secrets: Secrets,
    /// Commands in the background.
    pub jobs: Jobs,
    /// How long things may take and how much they may keep.
    pub limits: Limits,
    /// What is kept so that changes can be taken back.
    pub undo: Undo,
    /// What is kept of the whole outputs of calls.
    pub output: Output,
    /// Connections to models.
    pub http: Http,
    /// Pages of the web.
    pub web: Web,
    /// The terminal interface. A project cannot set it.
    pub terminal: Terminal,
}

fn effort_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Effort::ALL.map(Effort::name)})
}

fn hooks_schema(_: &mut SchemaGenerator) -> Schema {
    crate::hooks::schema()
}

fn mode_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Mode::ALL.map(Mode::name)})
}

/// Which model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelChoice {
    /// The model that answers, as `SERVER/NAME` or `script:FILE`. `model = "SERVER/NAME"` alone
    /// does the same.
    pub name: Option<String>,
    /// The model that sums up what became too long for the window; without it the session's own
    /// does. `--model small` names it, too.
    #[serde(deserialize_with = "model_names::one")]
    pub small: Option<String>,
    /// The model that `--model medium` names.
    #[serde(deserialize_with = "model_names::one")]
    pub medium: Option<String>,
    /// The model that `--model large` names.
    #[serde(deserialize_with = "model_names::one")]
    pub large: Option<String>,
    /// Models that go on where that of the session does not answer, in their order; a text alone is
    /// one. `successor` is the one that the catalogue names. Without it a turn ends there.
    #[serde(deserialize_with = "model_names::some")]
    pub fallback: Vec<String>,
    /// Seconds for which a request is repeated that its server could not answer.
    #[schemars(range(min = 0, max = 86_400))]
    pub retry_seconds: u64,
}

impl Default for ModelChoice {
    fn default() -> Self {
        let (name, small, medium, large) = (None, None, None, None);
        Self { name, small, medium, large, fallback: Vec::new(), retry_seconds: 120 }
    }
}

/// When a conversation is shortened because its model's window fills up, in percent of the window.
/// A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Context {
    /// From here on old results leave the model's view; each stays readable at its address.
    #[schemars(range(min = 10, max = 100))]
    pub mask_percent: u8,
    /// From here on older messages are summed up.
    #[schemars(range(min = 20, max = 100))]
    pub compact_percent: u8,
    /// The most that a request has then.
    #[schemars(range(min = 10, max = 80))]
    pub after_percent: u8,
}

impl Default for Context {
    fn default() -> Self {
        Self { mask_percent: 60, compact_percent: 80, after_percent: 50 }
    }
}

/// A server of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The server's address, as `https://HOST/v1`; the wire's path is appended. A server that haft
    /// knows can be given another one.
    pub address: Option<String>,
    /// The variable that holds the server's key; none where it wants none.
    pub key_variable: Option<String>,
    /// What it speaks: `openai` (Chat Completions, which holds without it), `openai-responses` or
    /// `anthropic` (Messages).
    pub wire: Option<ServerWire>,
    /// How names of the server's models begin. They tell the server where a model is named without
    /// it.
    pub prefixes: Vec<String>,
    /// Whether the server hands requests on to the wire's own maker as they are, as gateways do. Then
    /// they have the maker's newest fields: tools that come late in its own form, and others.
    pub passes_on: bool,
}

/// What a server speaks: the names of the wires that are built in.
///
/// This crate stands beside the one that has the wires and does not know it, yet its schema and
/// its messages name the values. So the names are here a second time; a test of the binary fails
/// where one of them is no wire, or a wire is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerWire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Openai,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenaiResponses,
}

impl ServerWire {
    /// The name, as settings have it.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// What haft is to know of one model, in place of what its catalogue has. `NAME` is as in `model`,
/// quoted: `"SERVER/NAME"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Whether the model takes images; without it its name tells. `NAME` is as in `model`, quoted:
    /// `"SERVER/NAME"`.
    pub vision: Option<bool>,
    /// Whether the model is given a list of things to do; see `tools.todo`.
    pub todo: Option<bool>,
    /// Most tokens of a request with its answer.
    #[schemars(range(min = 1_000, max = 100_000_000))]
    pub context: Option<u64>,
    /// Most tokens of an answer. Each request says so; a project cannot set it.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub output: Option<u64>,
    /// What a million tokens cost, in dollars.
    pub price: Option<ModelPrice>,
    /// How big the model is beside others.
    pub tier: Option<ModelTier>,
    /// Fields that are added to the body of each request, such as `{ temperature = 0.2 }`. They do
    /// not replace what haft writes.
    #[schemars(schema_with = "table_schema")]
    pub extra: Option<serde_json::Map<String, Value>>,
}

fn table_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}

/// What a million tokens cost, in dollars: `{ input = 3, output = 15, cache_read = 0.3 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Input that no cache has.
    #[schemars(range(min = 0, max = 100_000))]
    pub input: f64,
    /// Output, thinking included.
    #[schemars(range(min = 0, max = 100_000))]
    pub output: f64,
    /// Input read from the cache; without it as `input`.
    #[schemars(range(min = 0, max = 100_000))]
    pub cache_read: Option<f64>,
    /// Input written to the cache; without it as `input`.
    #[schemars(range(min = 0, max = 100_000))]
    pub cache_write: Option<f64>,
}

/// How big a model is beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelTier {
    /// Fast and cheap: for summaries and titles.
    Small,
    /// For most work.
    Medium,
    /// For what is hard.
    Large,
}

/// Rules about calls: `Tool` or `Tool(pattern)`. The lists of all layers count together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Permissions {
    /// Rules of what goes on without a question.
    pub allow: Vec<String>,
    /// Rules of what always asks.
    pub ask: Vec<String>,
    /// Rules of what never happens.
    pub deny: Vec<String>,
    /// Rules of what asks in every mode, in place of the built-in list.
    pub restricted: Option<Vec<String>>,
    /// More folders of the workspace.
    pub additional_directories: Vec<String>,
    /// Calls that the rules are tried with at each start.
    pub tests: Vec<RuleCase>,
}

/// A call that rules are tried with: a command, or the arguments of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleCase {
    /// A command of bash.
    pub command: Option<String>,
    /// The tool; bash without it.
    pub tool: Option<String>,
    /// Its arguments.
    pub input: Option<Value>,
    /// The mode; without it `ask`, and in a file of rules that of the run.
    pub mode: Option<String>,
    /// What shall be decided: `allow`, `ask` or `deny`.
    #[schemars(schema_with = "expect_schema")]
    pub expect: String,
}

fn expect_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["allow", "ask", "deny"]})
}

/// What is taken of Claude Code. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Claude {
    /// Whether Claude Code's settings count: rules, hooks, folders, mode and `env`. Those of
    /// whoever runs the machine always do.
    pub settings: bool,
}

impl Default for Claude {
    fn default() -> Self {
        Self { settings: true }
    }
}

/// Limits of one turn, which is all that follows from one message of the person; none means:
/// without limit. A run of print mode is one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// Most requests to the model in a turn; no limit without it. `--max-turns` sets it for one
    /// run.
    #[schemars(range(min = 1))]
    pub max_steps: Option<u64>,
    /// Most tokens that the model writes in a turn; no limit without it. `--max-tokens` sets it for
    /// one run.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Most dollars that the requests of a turn cost; no limit without it. `--max-cost` sets it for
    /// one run. The model's price has to be known.
    #[schemars(range(min = 0.001, max = 1_000_000))]
    pub max_cost: Option<f64>,
    /// Most seconds of a run with `-p`; no limit without it. `--max-time` sets it for one run. Line
    /// mode, where a person is, has no such limit.
    #[schemars(range(min = 1))]
    pub max_time: Option<u64>,
    /// How often in a row a turn may make the same call with the same result. Then a person is
    /// asked, and a run of print mode ends. The model is told at the third one. With 0 nothing is
    /// counted.
    #[schemars(range(max = 1_000))]
    pub repeats: u64,
    /// Milliseconds that `git status` gets at the start to count changed files for the model. Where
    /// it takes longer, the model is told nothing of them. With 0 it is not asked.
    #[schemars(range(max = 10_000))]
    pub git_status_ms: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            max_steps: None,
            max_tokens: None,
            max_cost: None,
            max_time: None,
            repeats: 8,
            git_status_ms: 100,
        }
    }
}

/// The tools as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tools {
    /// Most calls that run at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: u64,
    /// Names of tools that are switched off.
    pub off: Vec<String>,
    /// Names of tools that are on though they are not by default. One is `notebook_edit`, which is
    /// also on in a workspace with notebooks.
    pub on: Vec<String>,
    /// The list of things to do that a model has: `auto` is the tool `todo` for models that it
    /// helps, as far as that is known; `todo` is that tool for all; `tasks` is tools for tasks with
    /// dependencies instead.
    pub todo: TodoKind,
    /// Which of haft's tools a model has: `full`, or `small` for small local models, which is `read`,
    /// `bash`, `edit`, `write`, `grep`, `find` and `ls`. `tools.on` adds to both.
    pub profile: ToolProfile,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            concurrency: 10,
            off: Vec::new(),
            on: Vec::new(),
            todo: TodoKind::Auto,
            profile: ToolProfile::Full,
        }
    }
}

/// Which of haft's tools a model has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolProfile {
    /// Those that are on by default, and those that a search finds.
    #[default]
    Full,
    /// Those for files and commands.
    Small,
}

/// The list of things to do that a model has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoKind {
    /// The tool `todo`, where it helps the model.
    #[default]
    Auto,
    /// The tool `todo`.
    Todo,
    /// The tools for tasks.
    Tasks,
    /// None.
    Off,
}

/// The read tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Read {
    /// Most lines that a call of `read` gives without a limit of its own.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_lines: u64,
    /// Most bytes that a call of `read` gives.
    #[schemars(range(min = 1_024, max = 524_288))]
    pub max_bytes: u64,
}

impl Default for Read {
    fn default() -> Self {
        Self { max_lines: 2_000, max_bytes: 100_000 }
    }
}

/// The edit tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Edit {
    /// Whether files are changed only as the conversation has read them, and only exact text is
    /// replaced. Without it exact text of one place is replaced in other files, too. A near miss,
    /// such as blanks at line ends or another indentation, then counts where it can mean one place
    /// alone.
    pub strict: bool,
}

/// Files of instructions, such as `AGENTS.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Instructions {
    /// Most bytes of all of them together. What is cut is told, to the model and to the person.
    #[schemars(range(min = 0, max = 131_072))]
    pub bytes: u64,
}

impl Default for Instructions {
    fn default() -> Self {
        Self { bytes: 32_768 }
    }
}

/// Questions of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AskUser {
    /// Milliseconds that a question of the model waits for an answer, after which the model is told
    /// that nobody answered. Without it a question waits for as long as it takes.
    #[schemars(range(min = 1_000))]
    pub timeout_ms: Option<u64>,
}

/// How a model finds tools that it does not see at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolSearch {
    /// Most tokens, of four bytes each, for the names of these tools in the system prompt. Of servers
    /// whose names do not fit, the number of tools is told.
    #[schemars(range(min = 0, max = 100_000))]
    pub listing_tokens: u64,
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self { listing_tokens: 2_000 }
    }
}

/// What the model may set. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// Names of settings that the tool `config` has, each change of which is asked about. Rules, modes,
    /// hooks, addresses, keys and this list are never among them.
    pub model_may: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let names = ["terminal.theme", "terminal.reduced_motion", "terminal.notify", "tools.todo"];
        Self { model_may: names.map(str::to_owned).into() }
    }
}

/// Skills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Skills {
    /// Most bytes of the list of skills in the system prompt. Descriptions are shortened alike, and
    /// what still does not fit is found by words.
    #[schemars(range(min = 500, max = 100_000))]
    pub listing_bytes: u64,
}

impl Default for Skills {
    fn default() -> Self {
        Self { listing_bytes: 8_000 }
    }
}

/// The shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shell {
    /// Milliseconds that a command may run whose call names no limit.
    #[schemars(range(min = 1_000, max = 600_000))]
    pub timeout_ms: u64,
    /// Whether a command over its time goes on as a job instead of being stopped.
    pub promote: bool,
    /// Programs, such as build daemons, that go on as a job when their command ends.
    pub keep: Vec<String>,
    /// Most seconds for the start-up files of the person's shell. With 0 they are not read.
    #[schemars(range(min = 0, max = 60))]
    pub start_up_seconds: u64,
    /// Most named sessions of `bash` at the same time.
    #[schemars(range(min = 0, max = 64))]
    pub sessions: u64,
    /// Variables that commands get although they look like secrets, such as `GH_TOKEN`.
    pub let_through: Vec<String>,
    /// What commands change.
    pub changes: Changes,
}

impl Default for Shell {
    fn default() -> Self {
        Self {
            timeout_ms: 120_000,
            promote: false,
            keep: Vec::new(),
            start_up_seconds: 10,
            sessions: 8,
            let_through: Vec::new(),
            changes: Changes::default(),
        }
    }
}

/// What commands change: files below the workspace are looked at before and after each of them, so
/// that it can be told and taken back. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Changes {
    /// Whether haft finds what commands change, so that it can be taken back.
    pub on: bool,
    /// Most files, and most folders, of the workspace. Where there are more, no changes are looked
    /// for.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub files: u64,
    /// Most bytes of a file that can be brought back; a bigger one is named only. All copies
    /// together take at most `undo.session_bytes`.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub file_bytes: u64,
    /// Most files ignored by git that can be brought back all the same. Of more only the number is
    /// compared. Folders that tools rebuild, such as `node_modules` or `target`, are left out.
    #[schemars(range(min = 0, max = 100_000))]
    pub ignored_files: u64,
    /// Most bytes of all copies of ignored files.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub ignored_bytes: u64,
}

impl Default for Changes {
    fn default() -> Self {
        let (file_bytes, ignored_bytes) = (4 << 20, 64 << 20);
        Self { on: true, files: 20_000, file_bytes, ignored_files: 2_000, ignored_bytes }
    }
}

/// What holds the programs that tools start. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// Whether commands that go on because they only read are held to that. They can change nothing
    /// then, and read no keys or passwords.
    pub looks: bool,
    /// Whether all commands run in the sandbox, in every mode. Without it those of mode `auto` do.
    pub always: bool,
    /// Folders outside the workspace in which commands in the sandbox may write, from `/` or `~/`
    /// on.
    pub write: Vec<String>,
    /// Hosts that commands in the sandbox may connect to: `example.org`, `*.example.org` for all
    /// below it, `example.org:8080`.
    pub hosts: Vec<String>,
    /// Whether a command may ask to run outside the sandbox.
    pub unsandboxed: bool,
    /// The level below which no command runs. `namespaces` is the stronger one.
    pub require: Option<SandboxLevel>,
}

impl Default for Sandbox {
    fn default() -> Self {
        let (write, hosts) = (Vec::new(), Vec::new());
        Self { looks: true, always: false, write, hosts, unsandboxed: true, require: None }
    }
}

/// A level of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// L: Landlock and seccomp.
    Landlock,
    /// N: namespaces and seccomp.
    Namespaces,
}

/// What is a secret: the value of a variable or key whose name has a word such as KEY, TOKEN,
/// SECRET, PASSWORD or CREDENTIAL, where it has 12 characters or more and is no word, number, path,
/// host or plain URL. `{{secret:NAME}}` is shown in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Secrets {
    /// More names of variables and keys that hold secrets, in any letter case.
    pub names: Vec<String>,
    /// Names of variables and keys that hold no secrets although they look so.
    pub not: Vec<String>,
}

/// Commands in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Jobs {
    /// Most jobs at the same time.
    #[schemars(range(min = 0, max = 256))]
    pub running: u64,
    /// Bytes of the newest output of a job that stay in memory.
    #[schemars(range(min = 16_384, max = 16_777_216))]
    pub memory_bytes: u64,
    /// Most seconds that a job runs.
    #[schemars(range(min = 1, max = 604_800))]
    pub life_seconds: u64,
    /// Most bytes of the output of a job on disk, within `limits.output_bytes`. With
    /// `shell.promote` or `shell.keep` it holds for every command, which may become a job.
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub disk_bytes: u64,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            running: 16,
            memory_bytes: 256 << 10,
            life_seconds: 12 * 60 * 60,
            disk_bytes: 256 << 20,
        }
    }
}

/// How long things may take and how much they may keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Most seconds that a call runs, time spent asking apart; tools may have their own limit.
    #[schemars(range(min = 1, max = 86_400))]
    pub call_seconds: u64,
    /// Most bytes of a call's output on disk. It takes at most a tenth of the free disk, too.
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { call_seconds: 900, output_bytes: 1 << 30 }
    }
}

/// Colours of the terminal interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// The terminal's own.
    #[default]
    Terminal,
    /// For a dark ground.
    Dark,
    /// For a light ground.
    Light,
    /// None.
    None,
}

/// The terminal interface. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Terminal {
    /// The colours: the terminal's own 16 under their names, some of the 256 of xterm for a dark or
    /// a light ground, or none.
    pub theme: Theme,
    /// Whether the sign of life stays as it is, and seconds are counted in fives.
    pub reduced_motion: bool,
    /// Whether the terminal is told, by the bell and in words (OSC 9), that haft is done or asks while
    /// another window is in front.
    pub notify: bool,
    /// A program with its arguments that is run when `notify` tells something, too; what is told
    /// follows as the last one: `["notify-send", "haft"]`. It has 10 seconds.
    pub notify_command: Vec<String>,
    /// Whether a screen reader reads the terminal: haft then talks in plain lines, as with `--line`,
    /// and draws nothing anew.
    pub reader: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            theme: Theme::Terminal,
            reduced_motion: false,
            notify: true,
            notify_command: Vec::new(),
            reader: false,
        }
    }
}

/// What is kept so that changes can be taken back. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Undo {
    /// Most bytes that a session keeps for undo; the oldest change goes first. A bigger file is not
    /// stored. With 0 nothing can be taken back.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub session_bytes: u64,
    /// Most bytes that all sessions keep for undo together, the newest first.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub total_bytes: u64,
}

impl Default for Undo {
    fn default() -> Self {
        Self { session_bytes: 512 << 20, total_bytes: 4 << 30 }
    }
}

/// What is kept of outputs that are cut, for `out://` addresses. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Output {
    /// Most bytes of outputs that a session keeps; the oldest calls go first. With 0 only what is
    /// shown is kept.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub session_bytes: u64,
    /// Most bytes of outputs that all sessions keep together; sessions that ended longest ago go
    /// first.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub total_bytes: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self { session_bytes: 2 << 30, total_bytes: 8 << 30 }
    }
}

/// Connections to models. A project cannot set them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Http {
    /// Most seconds until a connection to a model stands.
    #[schemars(range(min = 1, max = 600))]
    pub connect_seconds: u64,
    /// Seconds without a byte after which an answer counts as stalled.
    #[schemars(range(min = 1, max = 3_600))]
    pub stall_seconds: u64,
}

impl Default for Http {
    fn default() -> Self {
        Self { connect_seconds: 30, stall_seconds: 120 }
    }
}
