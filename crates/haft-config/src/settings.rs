//! The settings that exist, with their defaults and ranges.
//!
//! **Invariant:** one struct documents all of them: the schema, the check of the files and the
//! printed reference are made from it.

use std::collections::BTreeMap;

use haft_types::{Effort, Mode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The model, and how its server is waited for; a text alone is its name.
    pub model: ModelChoice,
    /// What is known of models, each under its name as `model` has it.
    pub models: BTreeMap<String, Model>,
    /// More servers of models, each under the name that stands before the model's; one that haft knows
    /// can be given another address. A project cannot set them.
    pub providers: BTreeMap<String, Server>,
    /// How hard the model thinks.
    #[schemars(schema_with = "effort_schema")]
    pub effort: Option<Effort>,
    /// How much is asked before something is done.
    #[schemars(schema_with = "mode_schema")]
    pub mode: Mode,
    /// Rules about calls.
    pub permissions: Permissions,
    /// Programs that see calls, prompts and turns, by event, as docs/hooks.md has them. Read, they are in
    /// [`Loaded::hooks`](crate::Loaded::hooks), not here.
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
    /// Its name, as `anthropic/NAME`, `ollama/NAME`, `SERVER/NAME` of another server, or `script:FILE`.
    pub name: Option<String>,
    /// Seconds for which a request is sent again that its server could not answer, from 0 to 86,400.
    #[schemars(range(min = 0, max = 86_400))]
    pub retry_seconds: u64,
}

impl Default for ModelChoice {
    fn default() -> Self {
        Self { name: None, retry_seconds: 120 }
    }
}

/// A server of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Its address, as `https://HOST/v1`; the wire's path is appended.
    pub address: Option<String>,
    /// The variable that holds its key; none for one that wants none.
    pub key_variable: Option<String>,
    /// What it speaks: `openai` (Chat Completions, which holds without it) or `anthropic` (Messages).
    pub wire: Option<ServerWire>,
    /// How names of its models begin, to tell it where a model is named without its server.
    pub prefixes: Vec<String>,
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
}

impl ServerWire {
    /// The name, as settings have it.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// What haft is to know of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Whether it takes images; without it its name tells.
    pub vision: Option<bool>,
}

/// Rules about calls: `Tool` or `Tool(pattern)`. The lists of all layers count together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Permissions {
    /// What goes on without a question.
    pub allow: Vec<String>,
    /// What always asks.
    pub ask: Vec<String>,
    /// What never happens.
    pub deny: Vec<String>,
    /// What asks in every mode, in place of the list that haft brings along; of one's own settings
    /// alone.
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
    /// Whether its settings count: rules, hooks, folders, mode and variables for children. Those of
    /// whoever runs the machine count whatever the person says here.
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
    /// Model requests, from 1.
    #[schemars(range(min = 1))]
    pub max_steps: Option<u64>,
    /// Tokens that the model writes, from 1.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Seconds of a run of print mode, from 1; line mode, where a person is, has no such limit.
    #[schemars(range(min = 1))]
    pub max_time: Option<u64>,
    /// Milliseconds that `git status` gets at the start to count changed files for the model, which is
    /// told nothing of them where it takes longer; 0: it is not asked.
    #[schemars(range(max = 10_000))]
    pub git_status_ms: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self { max_steps: None, max_tokens: None, max_time: None, git_status_ms: 100 }
    }
}

/// The tools as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tools {
    /// Calls that may run at the same time, from 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: u64,
    /// Names of tools that are switched off.
    pub off: Vec<String>,
    /// Names of tools that are switched on though they are not by default, such as
    /// `notebook_edit`, which is also on in a workspace with notebooks.
    pub on: Vec<String>,
}

impl Default for Tools {
    fn default() -> Self {
        Self { concurrency: 10, off: Vec::new(), on: Vec::new() }
    }
}

/// The read tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Read {
    /// Lines that one call gives without a limit of its own, from 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_lines: u64,
    /// Bytes that one call gives at most, from 1,024 to 524,288.
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
    /// Whether only files are changed that the conversation has read as they are, and only text is
    /// replaced that is there exactly. Without it exact text of one place is replaced in other files
    /// too, and a near miss, such as blanks at the ends of lines or another indentation, is taken
    /// where it can mean one place alone.
    pub strict: bool,
}

/// The shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shell {
    /// Milliseconds that a command may run when the call says nothing, from 1,000 to 600,000.
    #[schemars(range(min = 1_000, max = 600_000))]
    pub timeout_ms: u64,
    /// Whether a command whose time is over goes on as a job instead of being stopped.
    pub promote: bool,
    /// Names of programs, such as build daemons, that go on as a job when their command ends,
    /// instead of being stopped.
    pub keep: Vec<String>,
    /// Seconds that the start-up files of the person's shell may take before the first command, from 0
    /// to 60; 0 leaves them out.
    #[schemars(range(min = 0, max = 60))]
    pub start_up_seconds: u64,
    /// Named sessions of `bash` that may live at the same time, from 0 to 64.
    #[schemars(range(min = 0, max = 64))]
    pub sessions: u64,
    /// Names of variables that commands get although they look like secrets, such as `GH_TOKEN`. A
    /// project cannot set it.
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
    /// Whether it is looked for.
    pub on: bool,
    /// Most files, and most folders, of the workspace, from 1 to 1,000,000; where there are more,
    /// nothing is looked for.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub files: u64,
    /// Bytes of the biggest file that can be brought back, from 0 to 1,073,741,824. All copies
    /// together take at most `undo.session_bytes`.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub file_bytes: u64,
    /// Most files that git ignores and that are looked at and brought back all the same, from 0 to
    /// 100,000; of more only their number is compared. Folders that tools rebuild (`node_modules`,
    /// `target`, ...) are left out.
    #[schemars(range(min = 0, max = 100_000))]
    pub ignored_files: u64,
    /// Bytes of all copies of those together, from 0 to 1,073,741,824.
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
    /// Whether commands that go on because they only look are held to that: nothing can be written
    /// then, and keys and passwords cannot be read.
    pub looks: bool,
    /// Whether all commands run in the sandbox, in every mode; without it those of mode `auto` do.
    pub always: bool,
    /// Folders outside the workspace in which commands in the sandbox may write, too.
    pub write: Vec<String>,
    /// Hosts that they may connect to: `example.org`, `*.example.org` for all below it,
    /// `example.org:8080`.
    pub hosts: Vec<String>,
    /// Whether a command may ask to run outside the sandbox.
    pub unsandboxed: bool,
    /// The level without which no command runs: `landlock` or `namespaces`, which is the stronger one.
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
    /// Names that hold none although they look so. A project cannot set it.
    pub not: Vec<String>,
}

/// Commands in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Jobs {
    /// Jobs that may run at the same time, from 0 to 256.
    #[schemars(range(min = 0, max = 256))]
    pub running: u64,
    /// Bytes of the newest output of one that stay in memory, from 16,384 to 16,777,216.
    #[schemars(range(min = 16_384, max = 16_777_216))]
    pub memory_bytes: u64,
    /// Seconds that one may run, from 1 to 604,800.
    #[schemars(range(min = 1, max = 604_800))]
    pub life_seconds: u64,
    /// Bytes of the output of one that are kept on disk, from 65,536 to 1,073,741,824; never more
    /// than `limits.output_bytes`. With `shell.promote` or `shell.keep` it holds for each command,
    /// which may become one.
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
    /// Seconds that a call may run, time spent asking apart, from 1; tools may have their own.
    #[schemars(range(min = 1, max = 86_400))]
    pub call_seconds: u64,
    /// Bytes of one call's output that are kept on disk, from 65,536 to 1,073,741,824.
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub output_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { call_seconds: 900, output_bytes: 1 << 30 }
    }
}

/// What is kept so that changes can be taken back. A project cannot set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Undo {
    /// Bytes that a session keeps, from 0 (nothing can be taken back) to 1,099,511,627,776.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub session_bytes: u64,
    /// Bytes that all sessions keep together, the newest first, from 0 to 1,099,511,627,776.
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
    /// Bytes that a session keeps, from 0 (nothing is kept beyond what is shown) to
    /// 1,099,511,627,776; the oldest calls go first.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub session_bytes: u64,
    /// Bytes that all sessions keep together, from 0 to 1,099,511,627,776; those go first that
    /// ended longest ago.
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
    /// Seconds until a connection must stand, from 1 to 600.
    #[schemars(range(min = 1, max = 600))]
    pub connect_seconds: u64,
    /// Seconds without a byte after which an answer counts as stalled, from 1 to 3,600.
    #[schemars(range(min = 1, max = 3_600))]
    pub stall_seconds: u64,
}

impl Default for Http {
    fn default() -> Self {
        Self { connect_seconds: 30, stall_seconds: 120 }
    }
}
