//! The command line: everything that can be typed. It holds shapes only; the faces decide what they
//! mean.

pub(crate) mod arguments;
pub(crate) mod exit;
pub(crate) mod stdin;

use std::{io::Read as _, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use haft_agent::UndoRequest;
use haft_tool::validate::Validator;
use haft_types::{Effort, Mode};
use serde_json::Value;

pub(crate) use self::arguments::nearest;

const EXAMPLES: &str = "\
Examples:
  haft demo                                       see it work: no key, no network
  haft --model anthropic/NAME                     talk about the project in this folder
  haft -p 'why does the test fail?'               one question, one answer
  haft tool grep --input '{\"pattern\": \"TODO\"}'   a tool without any model

Keys come from ANTHROPIC_API_KEY and OPENAI_API_KEY; a model for good from HAFT_MODEL or from
`model` in ~/.haft/settings.toml. Exit codes: 0 fine, 1 the run failed, 2 the call was wrong, 3 a call was denied (--fail-on-denied).";

const TOOL_EXAMPLES: &str = "\
Examples:
  haft tool list
  haft tool spec read
  haft tool read --input '{\"path\": \"README.md\"}'
  haft tool write --mode accept-edits --input '{\"path\": \"a.txt\", \"content\": \"hello\"}'";

const WHY_EXAMPLES: &str = "\
Examples:
  haft why 'git log --oneline | head -5'
  haft why --mode accept-edits 'cargo test > out.txt'
  haft why --tool write --input '{\"path\": \".git/config\", \"content\": \"x\"}'
  haft why --rules team.toml 'npm run test'
  haft why --batch < lines.jsonl

A line of a batch is {\"command\": \"ls\"} or {\"tool\": \"read\", \"input\": {\"path\": \"a\"}}, with, as wanted,
\"rules\" (an object of allow, ask and deny, in place of those of the settings), \"mode\", and \"cwd\": a folder
that is the workspace of this call, so that what lies in it may be looked at.";

const UNDO_EXAMPLES: &str = "\
Examples:
  haft undo              the last change
  haft undo 3            the last three
  haft undo c12          what the call c12 changed
  haft undo j1           what changed while the job j1 ran and no command did
  haft undo --turn       everything since the last message
  haft redo              what the last undo took back
  haft redo 2            the two calls that were taken back last
  haft redo --turn       all that was taken back of the last turn";

/// A coding agent and its tools: reads, searches, edits and runs, and asks when it matters.
#[derive(Debug, Parser)]
#[command(
    name = "haft",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to start without a command.
    #[command(flatten)]
    pub start: Start,
}

/// Starting an agent.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Debug, Default, Args)]
pub struct Start {
    /// Do what PROMPT (or standard input) says, print the answer and end; nobody is asked
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub print: Option<String>,
    /// Talk in plain lines: works in any terminal
    #[arg(long, conflicts_with = "print")]
    pub line: bool,
    /// What to begin with; `-` reads standard input
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// What print mode writes
    #[arg(long, value_enum, default_value_t, requires = "print", alias = "output-format")]
    pub output: Output,
    /// With -p: say on standard error what goes on: calls, first lines of thinking, waits
    #[arg(long, requires = "print")]
    pub verbose: bool,
    /// With -p: end with code 3 where a call was denied
    #[arg(long, requires = "print")]
    pub fail_on_denied: bool,
    /// With -p: what the prompt forbids, such as `only touch tests/`, holds as rules
    #[arg(long, value_enum, default_value_t, requires = "print")]
    pub constraints: ApplyConstraints,
    /// With -p: the answer is JSON that fits this JSON Schema, given as a file or as JSON
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_parser = schema,
        requires = "print",
        aliases = ["json-schema", "output-schema"]
    )]
    pub schema: Option<Value>,
    /// Say this to the model behind the system prompt
    #[arg(long, value_name = "TEXT", value_parser = said, allow_hyphen_values = true)]
    pub append_system_prompt: Option<String>,
    /// Go on with the last session of this folder
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub continue_last: bool,
    /// Go on with the session whose id begins with ID
    #[arg(short, long, value_name = "ID")]
    pub resume: Option<String>,
    /// End the turn after this many model requests
    #[arg(long, value_name = "N", value_parser = from_one, allow_hyphen_values = true)]
    pub max_turns: Option<u64>,
    /// End the turn after the model wrote this many tokens
    #[arg(long, value_name = "N", value_parser = from_one, allow_hyphen_values = true)]
    pub max_tokens: Option<u64>,
    /// End the turn before its requests cost more than this many dollars
    #[arg(long, value_name = "DOLLARS", value_parser = money, allow_hyphen_values = true)]
    pub max_cost: Option<f64>,
    /// With -p: end the run after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = from_one, allow_hyphen_values = true)]
    pub max_time: Option<u64>,
    /// Whether the model was chosen for this session alone.
    #[arg(skip)]
    pub model_once: bool,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// A text that says something.
fn said(text: &str) -> Result<String, String> {
    let is_empty = text.trim().is_empty();
    if is_empty { Err("it is empty: leave the flag out".to_owned()) } else { Ok(text.to_owned()) }
}

/// A limit: a whole number from 1 on.
fn from_one(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "wanted is a whole number from 1 on; leave it out for no limit".into())
}

/// Most bytes of the schema of an answer.
const SCHEMA_BYTES: u64 = 1 << 20;

/// The JSON Schema of an answer: JSON, or a file with it.
fn schema(text: &str) -> Result<Value, String> {
    let written = text.trim_start();
    let (json, place) = if written.starts_with('{') {
        (text.to_owned(), "it".to_owned())
    } else {
        (schema_file(text)?, format!("{text:?}"))
    };
    let value: Value = serde_json::from_str(&json).map_err(|error| {
        format!("{place} is no JSON: {error}; wanted is a JSON Schema, or a file with one")
    })?;
    if !value.is_object() {
        return Err(format!(
            "{place} is no JSON Schema: wanted is an object such as {{\"type\": \"object\"}}"
        ));
    }
    let wrong = |error| format!("{place} is no JSON Schema that haft can check: {error}");
    Validator::new(&value).map_err(wrong)?;
    Ok(value)
}

fn schema_file(path: &str) -> Result<String, String> {
    let no_file = |error| {
        format!("{path:?} cannot be read: {error}; give a file, or the schema itself as JSON")
    };
    let mut text = String::new();
    // A pipe as `<(COMMAND)` gives it has no size to look at.
    let file = std::fs::File::open(path).map_err(no_file)?;
    let read = file.take(SCHEMA_BYTES + 1).read_to_string(&mut text).map_err(no_file)?;
    if read as u64 > SCHEMA_BYTES {
        return Err(format!("{path:?} is too long: a schema has at most {SCHEMA_BYTES} bytes"));
    }
    Ok(text)
}

/// An amount of dollars; a `+` before it says that it is more than was spent before, which each turn's
/// is.
fn money(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches(['+', '$']).parse().ok();
    let amount = amount.filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "wanted is an amount of dollars above 0, such as 0.5".into())
}

/// Flags that every face takes.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// The model: anthropic/NAME, openai/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// How hard the model thinks: none, low, medium, high or max
    #[arg(long, value_name = "EFFORT")]
    pub effort: Option<Effort>,
    /// How much is asked: ask, accept-edits, plan, auto, dont-ask or bypass
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// The same as --mode bypass
    #[arg(long, alias = "dangerously-skip-permissions", conflicts_with = "mode")]
    pub yolo: bool,
    /// A rule for what goes on without a question, such as `Bash(cargo test:*)`
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// A rule for what never happens, such as `Read(~/.ssh/**)`
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Only these tools, separated by commas; `haft tool list` names them all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
    /// One more folder to work in
    #[arg(long, value_name = "FOLDER")]
    pub add_dir: Vec<PathBuf>,
    /// Let the settings that this folder brings along count for this run
    #[arg(long)]
    pub trust: bool,
}

impl Common {
    /// The mode that the flags name.
    pub fn mode(&self) -> Option<Mode> {
        self.mode.or(self.yolo.then_some(Mode::Bypass))
    }
}

/// Whether print mode holds itself to what its prompt forbids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ApplyConstraints {
    /// It does not
    #[default]
    Off,
    /// It does, and says so on standard error
    Apply,
}

/// What print mode writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The answer as text
    #[default]
    Text,
    /// One JSON object at the end
    Json,
    /// Every event as a line of JSON
    StreamJson,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the whole chain at work: no key, no network
    Demo(Demo),
    /// Use any tool from the shell
    Tool(Tool),
    /// Tell what would be decided about a command or call, part by part, and why
    Why(Why),
    /// Serve the tools to any MCP client over standard input and output
    Mcp(Mcp),
    /// Check what works here: files, shell, search, models
    Doctor(Doctor),
    /// Take back what haft changed in files: by call, by turn, without git
    Undo(Undo),
    /// Make again what was taken back
    Redo(Redo),
    /// List sessions, print what was done in them and what it cost
    Session(Session),
    /// List skills and commands, show one, or try whether phrases find them
    Skill(Skill),
    /// List what is known of models: windows, limits, prices
    Models(Models),
    /// Let the settings, hooks and tools that a project brings along count from now on, or no more
    Trust(Trust),
    /// Print a script that completes haft's commands and flags in a shell
    Completions(Completions),
    /// Show what haft is made of
    #[command(hide = true)]
    Debug(Debug),
}

/// `haft completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell that is to complete them
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `haft trust`
#[derive(Debug, Args)]
pub struct Trust {
    /// A folder of the project; the current one without it
    pub folder: Option<PathBuf>,
    /// Let them count no more
    #[arg(long, conflicts_with = "show")]
    pub no: bool,
    /// Only tell what holds
    #[arg(long)]
    pub show: bool,
}

/// `haft demo`
#[derive(Debug, Default, Args)]
pub struct Demo {
    /// Run in this empty folder and keep it, instead of in a temporary one
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// A variation of the scratch project, to see that the result is not fixed
    #[arg(long, value_enum, default_value_t)]
    pub project: DemoProject,
}

/// Variations of the scratch project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoProject {
    /// One bug, which the script mends
    #[default]
    Bug,
    /// The bug is not there: nothing to mend, so the script fails
    Fixed,
    /// A second bug, which the script does not know
    SecondBug,
}

/// `haft tool`
#[derive(Debug, Args)]
#[command(after_help = TOOL_EXAMPLES)]
pub struct Tool {
    /// `list`, `spec`, or the tool's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// With `spec`: the tool's name
    #[arg(value_name = "OF")]
    pub of: Option<String>,
    /// The arguments as JSON; `-` reads them from standard input
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// Print JSON: the list, the whole definition, or the whole outcome
    #[arg(long)]
    pub json: bool,
    /// Make the call in this session: with its state, and in its log
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// `haft why`
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct Why {
    /// The command, as one argument
    #[arg(value_name = "COMMAND", conflicts_with_all = ["tool", "batch"])]
    pub command: Option<String>,
    /// A call of this tool instead of a command
    #[arg(long, value_name = "NAME", requires = "input", conflicts_with = "batch")]
    pub tool: Option<String>,
    /// The arguments of that call
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub input: Option<String>,
    /// Read a JSON object from each line of standard input, and answer each with one line
    #[arg(long)]
    pub batch: bool,
    /// Take the rules of this file (TOML or .json) in place of those of the settings
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// `haft mcp`
#[derive(Debug, Args)]
pub struct Mcp {
    /// `serve`, which is also what happens without it
    #[arg(value_name = "ACTION", value_parser = ["serve"], default_value = "serve")]
    pub action: String,
    /// The folder to work in; without it the current one
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Answer for programs, too: structuredContent with an output schema, which many clients hand
    /// the model in place of the content
    #[arg(long)]
    pub structured: bool,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// `haft doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// What undo and redo take alike, wherever they are typed.
#[derive(Clone, Debug, Args)]
pub struct Back {
    /// How many, the last ones first, or the id of one call, such as c12, or of a job, such as j1,
    /// for what changed while it ran; without it the last one, and of what was taken back all that
    /// was at once
    #[arg(value_name = "N or CALL")]
    pub which: Option<String>,
    /// Replace what others changed since, too; what is there is kept, to go back to it
    #[arg(long)]
    pub force: bool,
    /// Count turns instead of calls, or take the whole turn of CALL
    #[arg(long)]
    pub turn: bool,
}

impl From<Back> for UndoRequest {
    fn from(Back { which, force, turn }: Back) -> Self {
        Self { which, turn, force }
    }
}

/// Where undo and redo work, and how they tell it.
#[derive(Debug, Args)]
pub struct Elsewhere {
    /// In this session; without it, the last one of this folder where there is something to do
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `haft undo`
#[derive(Debug, Args)]
#[command(after_help = UNDO_EXAMPLES)]
pub struct Undo {
    /// What is taken back.
    #[command(flatten)]
    pub back: Back,
    /// Where.
    #[command(flatten)]
    pub from: Elsewhere,
}

/// `haft redo`
#[derive(Debug, Args)]
pub struct Redo {
    /// What is made again.
    #[command(flatten)]
    pub back: Back,
    /// Where.
    #[command(flatten)]
    pub from: Elsewhere,
}

/// Commands of line mode that take what a shell takes.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_subcommand = true)]
pub enum LineCommand {
    /// Take back what haft changed in files in this session
    #[command(name = "/undo")]
    Undo(Back),
    /// Make again what was taken back
    #[command(name = "/redo")]
    Redo(Back),
}

impl LineCommand {
    /// Reads a line that begins with one of these commands.
    ///
    /// # Errors
    /// Says what is wrong with it, or what it takes where that was asked.
    pub fn read(line: &str) -> Result<Self, String> {
        Self::try_parse_from(line.split_whitespace()).map_err(|error| {
            let (text, wrong) = (error.render().to_string(), error.use_stderr());
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            format!("{}{text}\n", if wrong { "! " } else { "" })
        })
    }
}

/// `haft skill`
#[derive(Debug, Args)]
pub struct Skill {
    /// What to do.
    #[command(subcommand)]
    pub action: SkillAction,
    /// Let what this folder brings along count for this run
    #[arg(long, global = true)]
    pub trust: bool,
}

/// What can be done with skills.
#[derive(Debug, Subcommand)]
pub enum SkillAction {
    /// List skills and commands, with what is wrong with some; with WORDS those that fit them
    #[command(alias = "ls")]
    List {
        /// Words of what it does
        #[arg(value_name = "WORDS")]
        words: Vec<String>,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of one
    Show {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Try the phrases of phrases.txt in the folders of skills, without a model
    Test {
        /// Only these skills
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `haft models`
#[derive(Debug, Args)]
pub struct Models {
    /// Only those with this in their names
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// Print a line of JSON for each
    #[arg(long)]
    pub json: bool,
}

/// `haft session`
#[derive(Debug, Args)]
pub struct Session {
    /// What to do.
    #[command(subcommand)]
    pub action: SessionAction,
}

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// List the sessions, the last used first
    #[command(alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Only those of this folder
        #[arg(long)]
        here: bool,
    },
    /// Print one session
    Show {
        /// The session's id, or how it begins
        id: String,
        /// Print its events as lines of JSON
        #[arg(long)]
        json: bool,
        /// Print only this question, whole, and how it was answered
        #[arg(long, value_name = "N")]
        question: Option<u64>,
    },
    /// Tell what a session cost, by model; without ID the last one of this folder
    Cost {
        /// The session's id, or how it begins
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print a line for each request, with what the provider's cache had of it
        #[arg(long)]
        requests: bool,
    },
    /// Show what a compaction of a session would keep and drop
    Compact {
        /// The session's id, or how it begins
        id: String,
        /// Change nothing
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove sessions that were used long ago, or only the outputs that they keep
    Prune(Prune),
}

/// `haft session prune`
#[derive(Debug, Args)]
pub struct Prune {
    /// Sessions that were last used longer ago than this: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age)]
    pub older_than: Duration,
    /// Remove the kept outputs of calls alone; what was said and done stays, and so does undo
    #[arg(long)]
    pub outputs: bool,
    /// Only tell what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Remove them without a question
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}

/// An age: a whole number with its unit.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "wanted is a whole number with h, d or w behind it, as in 30d".to_owned();
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let hours: u64 = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    number
        .checked_mul(hours * 3600)
        .map(Duration::from_secs)
        .ok_or_else(|| "that is longer than can be counted".to_owned())
}

/// `haft debug`
#[derive(Debug, Args)]
pub struct Debug {
    /// What to show.
    #[arg(value_enum)]
    pub what: DebugWhat,
    /// Flags that every face takes.
    #[command(flatten)]
    pub common: Common,
}

/// What `haft debug` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DebugWhat {
    /// The stages of every call, in order
    Pipeline,
    /// The system prompt of this folder, with its size
    Prompt,
    /// The tool definitions as the model's wire sends them, with their size
    Tools,
}
