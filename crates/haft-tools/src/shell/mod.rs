//! bash and powershell: run a command in the host's shell, or in PowerShell.
//!
//! **Invariant:** the answer never waits for processes that outlive the command. It comes when the
//! command ends, at its timeout, or when the call is cancelled, with the output until then. Endless
//! output stays in fixed memory. The working folder is carried over to the next call only inside
//! the workspace. It knows no rules and does not classify commands.

use std::{io, sync::Arc, time::Duration};

use haft_host::{Exit, FileKind, NoFolder, Running, Spawn, Stdin};
use haft_policy::{Around, Script, unconfined};
use haft_tool::{COMMAND_VARIABLE, Cx, Jobs, RecordError, Tool, schema_of};
use haft_types::{
    Access, Budget, Detail, Effect, Env, Follow, Guideline, HostPath, Kind, Loading, Outcome,
    Place, Plan, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

mod answer;
mod background;
mod env_hint;
mod exit_codes;
mod follow;
mod language;
mod lost_state_hint;
mod output;
pub(crate) mod process;
mod secret_env;
mod session;
pub(crate) mod sessions;

pub(crate) use self::{
    answer::{first, garbled, garbled_mark, last, no_text},
    output::for_people,
    secret_env::value,
};
use self::{
    follow::{Followed, Limits, follow},
    language::Language,
    secret_env::SecretCommand,
};
use crate::{Options, files::secret_scan, search::quoted};

/// Most milliseconds that a command may take.
const TIMEOUT_MAX: u64 = 600_000;
/// Bytes of a variable with its name that a program can usually be given: in one, a shell gets its
/// command.
const VARIABLE: usize = 131_071;
/// Columns and rows of the terminal that a command may have.
const TERMINAL: (u16, u16) = (120, 40);
/// Where `cd -` goes: haft's own is nothing to a command.
const CAME_FROM: &str = "OLDPWD";
/// Characters of a command that a title repeats.
const TITLE: usize = 80;

/// Runs commands in a shell.
#[derive(Clone, Debug)]
pub struct Bash {
    /// Milliseconds that a command may take where nothing was asked for.
    timeout: u64,
    /// Whether one that takes longer goes on as a job.
    promote: bool,
    /// Names of programs that go on as a job when their command ends.
    keep: Arc<[String]>,
    language: Language,
}

impl Bash {
    /// The tool with the limits that a person set.
    pub fn new(options: &Options) -> Self {
        let timeout = options.command_ms.clamp(1, TIMEOUT_MAX);
        let keep = options.command_keep.clone().into();
        Self { timeout, promote: options.command_promote, keep, language: Language::Shell }
    }

    /// The same for commands of PowerShell: the tool powershell, which is off where the host has no
    /// `pwsh`.
    pub fn powershell(options: &Options, is_there: bool) -> Self {
        Self { language: Language::PowerShell { is_there }, ..Self::new(options) }
    }
}

impl Default for Bash {
    fn default() -> Self {
        Self::new(&Options::default())
    }
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Shell command or script.
    command: String,
    /// Folder for this call alone, from the workspace root; default: where the last one ended.
    cwd: Option<String>,
    /// Milliseconds, at most 600000 but for a job.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// Run it as a background job; answers at once.
    run_in_background: Option<bool>,
    /// What it does, in 5-10 words.
    description: Option<String>,
    /// Give it a terminal (joins stdout and stderr).
    pty: Option<bool>,
    /// Run in the shell of this name; it stays open.
    session: Option<String>,
    /// Needs beyond the sandbox; asks a person.
    needs: Option<Needs>,
    /// Run outside the sandbox; asks a person.
    unsandboxed: Option<bool>,
    /// What it is written in: that of the tool.
    #[serde(skip)]
    language: Language,
    /// Variables that it alone has, with the values of secrets.
    #[serde(skip)]
    secrets: Vec<(String, String)>,
}

/// What a command must reach beyond what the sandbox lets it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Needs {
    write: Option<Vec<String>>,
    hosts: Option<Vec<String>>,
}

/// What programs read.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Data {
    /// Absent when it was stopped or killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What killed it, where haft did not stop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// At most 50 KB of each end.
    stdout: String,
    stderr: String,
    /// Whether it was stopped by timeout or cancellation.
    interrupted: bool,
    /// The job that it runs on as.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
    /// Where the output is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_path: Option<String>,
    /// Bytes in its middle that are not kept; absent when the whole is.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_bytes: Option<u64>,
}

/// Why a command is over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// By itself.
    Exited(Exit),
    /// Its time was over; what was stopped of it.
    TimedOut(Exit),
    /// The call was cancelled.
    Cancelled,
    /// The host lost it.
    Lost(String),
    /// Its shell did not say how it ended, and was stopped.
    Deaf,
}

/// A command that was run.
struct Ran {
    end: End,
    kept: output::KeptOutput,
    /// Where it ended, in the host's bytes; empty where it did not say.
    report: Vec<u8>,
    /// The job that goes on of it.
    job: Option<String>,
    /// The shell, where the end is that of one turn of it alone.
    goes_on: Option<Running>,
}

impl Tool for Bash {
    type Input = Input;

    fn spec(&self, env: &Env) -> ToolSpec {
        let others = || vec!["grep".into(), "find".into(), "ls".into()];
        let time = match self.timeout {
            ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
            ms => format!("{ms} ms"),
        };
        let over = if self.promote { "It goes on as a job" } else { "It is stopped" };
        let spec = ToolSpec {
            output_schema: schema_of::<Data>(),
            snippet: format!("Run a shell command (stdin is empty, {time} unless timeout_ms)")
                .into(),
            guidelines: vec![Guideline {
                text: "Use bash with ls, rg or find to look for files".into(),
                with: Vec::new(),
                without: others(),
            }],
            hint: "run shell command, script, build, test, git".into(),
            kind: Kind::Execute,
            primary: "command".into(),
            loading: Loading::Always,
            budget: Budget::Chars(30_000),
            off: !env.shell,
            ..ToolSpec::new(
                "bash",
                "Run command",
                format!(
                    "Run a command in the shell. stdout and stderr come together, roughly in order, without escape \
                     codes; stdin is empty. {over} after {time}, or \
                     timeout_ms. Without cwd it starts where the last such call ended, if in the workspace. \
                     Variables and background processes last only in a session. Output over 30,000 \
                     characters is cut in the middle; an out:// address has all of it, for read and grep."
                ),
            )
        };
        self.language.spec(spec)
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        if input.command.trim().is_empty() {
            return Err(ToolError::new("command is empty").hint("Give the command to run."));
        }
        if input.command.contains('\0') {
            return Err(ToolError::new("command holds a NUL byte, which no command can have")
                .hint("Write it as \\0 in printf, or put the data into a file."));
        }
        if let Some(name) = session::asked(input) {
            if self.language != Language::Shell {
                return Err(ToolError::new("PowerShell has no sessions").hint("Leave session out."));
            }
            session::check(input, name)?;
        }
        let asked = folder(input, place)?;
        let SecretCommand { command, names } = self.handed(input)?;
        let plan = Plan::new(place, title(input));
        let plan = if session::asked(input).is_some() { plan.living_on() } else { plan };
        let plan = match &asked {
            _ if !self.is_fresh(input) => plan.with(Access::Destroy, Target::command(command)),
            asked => scripted(plan, &command, asked.as_ref().unwrap_or(&place.cwd), &place.home),
        };
        let hand = |plan: Plan, name: String| {
            plan.with(Access::Destroy, Target::Secret { name: name.into() })
        };
        let plan = names.into_iter().fold(plan, hand);
        let plan = match asked {
            Some(cwd) => plan.reads(cwd),
            None => plan,
        };
        beyond(plan, input, place)
    }

    async fn check(&self, input: &Input, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        self.handed(input)?.variables(cx)?;
        let Some(cwd) = folder(input, &cx.place)? else { return Ok(None) };
        let shown = quoted(input.cwd.as_deref().unwrap_or_default());
        let located = cx.host.fs().locate(&cwd, Follow::Yes).await;
        match located.map(|at| at.kind) {
            Ok(FileKind::FOLDER) => Ok(None),
            Ok(FileKind::Missing) => Err(ToolError::new(format!("there is no folder {shown}"))
                .hint("Give a cwd that exists, or leave it out.")),
            Ok(FileKind::Entry(_)) => Err(ToolError::new(format!("{shown} is no folder"))
                .hint("Give a folder as cwd, or leave it out.")),
            Err(error) => Err(ToolError::new(format!("{shown} cannot be entered: {error}"))
                .hint("Give another cwd, or leave it out.")),
        }
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let handed = self.handed(&input)?;
        let secrets = handed.variables(cx)?;
        let plan = || self.plan(&input, &cx.place).ok();
        secret_scan::of_command(cx, &input.command, input.cwd.is_none(), plan).await;
        let input = Input { language: self.language, command: handed.command, secrets, ..input };
        if input.run_in_background.unwrap_or_default() {
            return background::begin(input, cx).await;
        }
        let mut notes = Vec::new();
        let asked = input.timeout_ms.unwrap_or(self.timeout);
        let timeout = Duration::from_millis(asked.min(TIMEOUT_MAX));
        let ran = if let Some(name) = session::asked(&input) {
            match Box::pin(session::run(&input, name, timeout, cx, &mut notes)).await {
                Ok(ran) => ran,
                Err(outcome) => return Ok(outcome),
            }
        } else {
            let running = start(&input, (Stdin::Empty, &self.keep), cx, &mut notes).await?;
            // What is read before the first command takes nothing of its time.
            let (deadline, keeps) = (Instant::now() + timeout, !self.keep.is_empty());
            let limits = Limits { deadline, promote: self.promote, keeps };
            match Box::pin(follow(running, cx, limits, None, &mut notes)).await {
                Followed::Ran(ran) => *ran,
                Followed::Keeps(keeping) => background::keep(&input, *keeping, cx, &mut notes)?,
                Followed::GoesOn(running, handed, place) => {
                    let now = background::Now { handed, timeout, notes };
                    return background::go_on(&input, running, now, place, cx);
                }
            }
        };
        if asked > TIMEOUT_MAX {
            notes.push(format!("[timeout_ms {asked} was cut to the most there is, {TIMEOUT_MAX}]"));
        }
        let failed = matches!(&ran.end, End::Exited(exit) if exit.code != Some(0));
        let said = failed.then_some([&*ran.kept.stderr, &*ran.kept.stdout]);
        notes.extend(env_hint::note(&input.command, &input.secrets, said, cx));
        if session::asked(&input).is_none() {
            match folder(&input, &cx.place)? {
                None => notes.extend(carry(&input.command, &ran.report, cx).await),
                Some(asked) => notes.extend(not_carried(&asked, &ran.report, cx).await),
            }
            let is_well = matches!(&ran.end, End::Exited(exit) if exit.code == Some(0));
            if is_well && self.language == Language::Shell {
                notes.extend(lost_state_hint::note(&input.command));
            }
        }
        notes.extend(cx.session().map.get::<Jobs>().news(cx));
        Ok(answer::outcome(&input.command, ran, timeout, notes))
    }
}

impl Bash {
    /// The command with variables in place of secrets.
    fn handed(&self, input: &Input) -> Result<SecretCommand, ToolError> {
        let handed = SecretCommand::of(&input.command)?;
        let refused = |what: &str, hint: &'static str| {
            Err(ToolError::new(format!("{what} takes no placeholder of a secret")).hint(hint))
        };
        if handed.names.is_empty() {
            return Ok(handed);
        }
        if self.language != Language::Shell {
            return refused("PowerShell", "Do it with bash.");
        }
        if session::asked(input).is_some() {
            let hint = "It would keep the value for all that follows: leave session out.";
            return refused("a named session", hint);
        }
        Ok(handed)
    }

    /// Whether a new shell runs the command, so that its words mean what they say, and nothing of
    /// it goes on later.
    fn is_fresh(&self, input: &Input) -> bool {
        let lives_on =
            input.run_in_background.unwrap_or_default() || session::asked(input).is_some();
        self.language == Language::Shell && !lives_on && !input.pty.unwrap_or_default()
    }
}

/// A plan with all that a script does, as far as its text tells.
fn scripted(plan: Plan, text: &str, cwd: &HostPath, home: &HostPath) -> Plan {
    // Whether git and toolchains are what they are taken for is looked up before it counts.
    let script = Script::read(text, cwd, home, Around::PLAIN);
    let access = if script.read_only { Access::Observe } else { Access::Destroy };
    let target = Target::Command { text: text.to_owned(), fresh_in: Some(cwd.clone()) };
    let plan = plan.with(access, target);
    script.effects().into_iter().fold(plan, |plan, effect| plan.with(effect.access, effect.target))
}

/// The plan with what the call wants beyond what the sandbox lets it.
fn beyond(plan: Plan, input: &Input, place: &Place) -> Result<Plan, ToolError> {
    let leaves = input.unsandboxed.unwrap_or_default();
    let none = Needs::default();
    let Needs { write, hosts } = input.needs.as_ref().unwrap_or(&none);
    let (write, hosts) = (write.iter().flatten(), hosts.iter().flatten());
    let wants = leaves || write.clone().chain(hosts.clone()).next().is_some();
    if wants && session::asked(input).is_some() {
        // Its shell keeps what it once may.
        return Err(ToolError::new(
            "a session cannot have needs of its own, nor leave the sandbox",
        )
        .hint("Leave session out, or needs and unsandboxed."));
    }
    let mut plan = plan;
    for path in write {
        let root = place.path(path).map_err(|error| {
            ToolError::new(format!("needs.write has {}: {error}", quoted(path)))
                .hint("Name files or folders.")
        })?;
        if root.parent().is_none() {
            let text = format!("needs.write has {}, which is all there is", quoted(path));
            return Err(ToolError::new(text).hint("Name the folders that it writes to."));
        }
        plan = plan.with(Access::Modify, Target::Tree { root });
    }
    for host in hosts {
        let fits = |c: char| c.is_alphanumeric() || "-._".contains(c);
        if host.is_empty() || host.len() > 253 || !host.chars().all(fits) {
            let shown = quoted(host);
            return Err(ToolError::new(format!("needs.hosts has {shown}, which is no host name"))
                .hint("Name hosts such as example.org, without a port or a pattern."));
        }
        plan = plan.with(Access::Destroy, Target::Net { host: host.clone() });
    }
    if leaves {
        let Effect { access, target } = unconfined();
        plan = plan.with(access, target);
    }
    Ok(plan)
}

/// What people see of a call before its result.
fn title(input: &Input) -> String {
    let is_described = input.description.as_deref().is_some_and(|text| !line(text).is_empty());
    let name = name(input);
    let of = session::asked(input).map(|of| format!(" (session {of})")).unwrap_or_default();
    if is_described { format!("{name}{of}") } else { format!("Running {name}{of}") }
}

/// What a command does, as far as it is said, else its first line.
fn name(input: &Input) -> String {
    let description = input.description.as_deref().map(line);
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        return description;
    }
    let lines = input.command.trim().lines().count();
    let more = if lines > 1 { format!(" ({lines} lines)") } else { String::new() };
    format!("{}{more}", line(&input.command))
}

/// The first line of a text, as it can be shown.
fn line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().to_owned();
    haft_text::names::shown(&line, TITLE)
}

/// The workspace root.
fn root(place: &Place) -> &HostPath {
    place.roots.first().unwrap_or(&place.cwd)
}

/// The folder that was asked for.
fn folder(input: &Input, place: &Place) -> Result<Option<HostPath>, ToolError> {
    let Some(text) = input.cwd.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let at_root = Place { cwd: root(place).clone(), ..place.clone() };
    let path = at_root
        .path(text)
        .map_err(|error| ToolError::new(error.to_string()).hint("Mend cwd, then call again."))?;
    Ok(Some(path))
}

/// Starts the command; a carried folder that is gone gives way to the workspace root.
async fn start(
    input: &Input,
    (stdin, keep): (Stdin, &[String]),
    cx: &Cx,
    notes: &mut Vec<String>,
) -> Result<Running, ToolError> {
    let failed = |error: io::Error| failed(&input.command, &error);
    let shell = cx.host.shell().ok_or_else(|| {
        ToolError::new(format!("the host {} has no shell", cx.host.name()))
            .hint("Do it with the other tools.")
    })?;
    let set = variables(input, cx);
    let spawn = |cwd: &HostPath| Spawn {
        set: set.clone(),
        stdin: stdin.clone(),
        report: true,
        profile: true,
        unset: vec![CAME_FROM.to_owned()],
        terminal: input.pty.unwrap_or_default().then_some(TERMINAL),
        no_editor: !input.pty.unwrap_or_default(),
        keep: keep.to_vec(),
        ..Spawn::new(input.language.program(), cwd.clone())
    };
    let asked = folder(input, &cx.place)?;
    let cwd = asked.as_ref().unwrap_or(&cx.place.cwd);
    let root = root(&cx.place);
    let running = match shell.spawn(spawn(cwd)).await {
        Err(error)
            if (gone(&error) || no_folder(&error).is_some()) && asked.is_none() && cwd != root =>
        {
            let running = shell.spawn(spawn(root)).await.map_err(failed)?;
            let why = match no_folder(&error).filter(|_| !gone(&error)) {
                Some(of) => format!("cannot be entered ({}):", of.why()),
                None => "is gone;".to_owned(),
            };
            let folder = quoted(&cwd.shown_from(root));
            notes.push(format!("[the folder {folder} {why} this ran in the workspace root]"));
            cx.carry_cwd(root);
            running
        }
        other => other.map_err(failed)?,
    };
    notes.extend(shell.told().map(|told| format!("[{told}]")));
    Ok(running)
}

/// The variables of a command beside those of haft itself.
fn variables(input: &Input, cx: &Cx) -> Vec<(String, String)> {
    let mut set = process::set(cx);
    set.push((COMMAND_VARIABLE.to_owned(), input.command.clone()));
    set.extend(input.secrets.iter().cloned());
    if input.pty.unwrap_or_default() {
        // Pagers would wait for keys.
        let terminal = [("TERM", "xterm-256color"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];
        set.extend(terminal.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    set
}

/// What is said where a command could not be run.
fn failed(command: &str, error: &io::Error) -> ToolError {
    match error.get_ref() {
        // Nothing is run without its record: the error says what to do about that.
        Some(cause) if cause.is::<RecordError>() => {
            ToolError::new(format!("nothing was run: {error}"))
        }
        // It may have been started all the same.
        _ if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::TimedOut) => {
            ToolError::new(format!("the command was lost: {error}"))
                .hint("Look at what it did before you run it again.")
        }
        _ if error.kind() == io::ErrorKind::ArgumentListTooLong => {
            let (size, most) = (command.len(), VARIABLE - COMMAND_VARIABLE.len() - 1);
            ToolError::new(format!(
                "the command has {size} bytes, more than a shell can be given (usually {most})"
            ))
            .hint("Nothing was run. Write it to a file with write, and run that: bash FILE")
        }
        _ if no_folder(error).is_some() => {
            let hint = if gone(error) {
                "Nothing was run. Give the whole path of a folder that is there as cwd, also to \
                 make this one again: mkdir -p."
            } else {
                "Nothing was run. Give a folder as cwd that can be entered."
            };
            ToolError::new(format!("the command could not be started: {error}")).hint(hint)
        }
        _ if gone(error) || error.kind() == io::ErrorKind::PermissionDenied => ToolError::new(
            format!("the command could not be started: {error}"),
        )
        .hint(
            "Nothing was run, and no command will be until a shell can be: tell the person. The \
                 tools for files need none.",
        ),
        // The sandbox, or a limit of this process: waiting changes nothing.
        _ if error.kind() == io::ErrorKind::Unsupported => {
            ToolError::new(format!("the command could not be started: {error}"))
                .hint("Nothing was run. It will be no other next time: do it another way.")
        }
        _ => ToolError::new(format!("the command could not be started: {error}"))
            .hint("Nothing was run. Call again when the machine has room."),
    }
}

/// The folder that could not be entered.
fn no_folder(error: &io::Error) -> Option<&NoFolder> {
    error.get_ref()?.downcast_ref()
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Waits until then; for ever where there is no time to wait for.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Carries the folder in which the command ended to the next one, and says so.
async fn carry(command: &str, report: &[u8], cx: &Cx) -> Option<String> {
    let was_told = report == b"\n";
    let report = report.strip_suffix(b"\n").unwrap_or(report);
    let place = &cx.place;
    let root = root(place);
    let now = cx.conversation().shell_cwd().filter(|cwd| place.holds(cwd));
    let now = now.as_ref().unwrap_or(root);
    let shown = |folder: &HostPath| {
        let shown = quoted(&folder.shown_from(root));
        if shown == "." { "the workspace root".to_owned() } else { shown }
    };
    let Ok(ended) = HostPath::new(report, cx.host.style()) else {
        if now != root && cx.is_cwd_gone().await {
            cx.carry_cwd(root);
            return Some(format!(
                "[{} is gone: the next command starts in the workspace root]",
                shown(now)
            ));
        }
        // It was killed, or took the shell's last word for itself.
        let shown_now = shown(now);
        // Only a folder that is not there any more is told as an empty line.
        if was_told {
            let text = "[the folder in which it ended is gone: the next command starts in";
            return Some(format!("{text} {shown_now}]"));
        }
        let mut words = command.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
        let moves = words.any(|word| ["cd", "pushd", "popd"].contains(&word));
        let text = "[where it ended was not told: the next command starts in";
        return moves.then(|| format!("{text} {shown_now}]"));
    };
    // One that moved nowhere takes back no move of another that ran beside it.
    if ended == *now || ended == place.cwd {
        return None;
    }
    if place.holds(&ended) {
        cx.carry_cwd(&ended);
        let shown = shown(&ended);
        return Some(format!("[the next command starts in {shown}]"));
    }
    cx.carry_cwd(root);
    let shown = quoted(&ended.text());
    Some(format!("[{shown} is outside the workspace: the next command starts in its root]"))
}

/// What is said of a command with a folder of its own that ended in another one: that is carried
/// nowhere.
async fn not_carried(asked: &HostPath, report: &[u8], cx: &Cx) -> Option<String> {
    let ended = report.strip_suffix(b"\n").unwrap_or(report);
    let ended = HostPath::new(ended, cx.host.style()).ok()?;
    // The folder that was asked for may be a link, or lead through one.
    let moved = ended != *asked
        && cx.host.fs().locate(asked, Follow::Yes).await.is_ok_and(|at| at.real != ended);
    let (place, root) = (&cx.place, root(&cx.place));
    let now = cx.conversation().shell_cwd().filter(|cwd| place.holds(cwd));
    let next = now.as_ref().unwrap_or(root);
    (moved && ended != *next).then(|| {
        let shown = quoted(&next.shown_from(root));
        let shown = if shown == "." { "the workspace root".to_owned() } else { shown };
        format!("[cwd counts for this call alone: the next command without it starts in {shown}]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(command: &str, description: Option<&str>) -> Input {
        Input {
            command: command.to_owned(),
            cwd: None,
            pty: None,
            session: None,
            needs: None,
            unsandboxed: None,
            language: Language::Shell,
            secrets: Vec::new(),
            run_in_background: None,
            timeout_ms: None,
            description: description.map(str::to_owned),
        }
    }

    #[test]
    fn titles_are_one_short_line_without_controls() {
        assert_eq!(title(&input("make\nmake test", None)), "Running make (2 lines)");
        assert_eq!(title(&input("x", Some(" Run \u{1b}[2Jtests\nnow"))), "Run \\u{1b}[2Jtests");
        assert!(title(&input(&"x".repeat(1000), None)).len() < 120);
    }
}
