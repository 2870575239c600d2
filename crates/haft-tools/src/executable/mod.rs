//! Tools from a folder of executables, in any language.
//!
//! `FILE --spec` prints a tool's spec as JSON. A call runs `FILE`, gives it the arguments as JSON
//! on standard input, and takes what it prints: an outcome as JSON (an object with `content`), or
//! plain text.
//!
//! **Invariant:** loading runs only files of the given folder, all together for at most
//! [`SPEC_TIME`], each with at most [`SPEC_SIZE`] bytes of output. A broken one is reported and
//! left out, and harms no other. Memory is fixed, whatever a tool prints. Whether the folder is
//! trusted is its caller's business.

use std::{io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use haft_host::{
    DirEntry, FileKind, Host, ListHow, Located, Output, Program, Running, Spawn, Spool,
    SpoolLimits, Stdin,
};
use haft_tool::{AnyTool, Cx, Source, Tool, command_text};
use haft_types::{
    Access, Budget, EntryKind, Env, Follow, HostPath, Misfit, OnInterrupt, Origin, Outcome, Place,
    Plan, Stream, Target, ToolError, ToolSpec,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod answer;

use crate::{
    search::quoted,
    shell::process::{self, Ends},
};

/// How long the executables of a folder may take to print their specs, all together.
const SPEC_TIME: Duration = Duration::from_secs(2);
/// Most bytes that are repeated of what is no spec.
const BEGINNING: usize = 80;
/// Largest spec in bytes.
const SPEC_SIZE: usize = 256 * 1024;
/// Most files of a folder that are looked at.
const FILES: usize = 1_000;
/// Specs that are asked for at once.
const TOGETHER: usize = 16;
/// Largest answer that is taken as JSON, in bytes; what is longer is text.
const ANSWER: usize = 4 << 20;
/// Bytes of the end of a longer answer.
const ANSWER_END: usize = 64 * 1024;
/// Largest budget that an executable may ask for, in characters.
const BUDGET: u64 = 200_000;
/// How long a cancelled tool may take to end.
const CANCEL: Duration = Duration::from_millis(60);

/// The tools of one folder.
#[derive(Clone, Default)]
pub struct Executables {
    tools: Vec<Arc<dyn AnyTool>>,
}

/// An executable that gives no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct BrokenTool {
    /// The file or folder.
    pub path: HostPath,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

impl Executables {
    /// Loads the tools of a folder, sorted by file name; a folder that is not there has none.
    ///
    /// It runs what it finds: give it only folders that are trusted.
    pub async fn load(host: &dyn Host, folder: &HostPath) -> (Self, Vec<BrokenTool>) {
        let broken = |reason: String| BrokenTool { path: folder.clone(), reason };
        let listed = match list(host, folder).await {
            Ok(Some(listed)) => listed,
            Ok(None) => return (Self::default(), Vec::new()),
            Err(error) => {
                return (Self::default(), vec![broken(format!("cannot be listed: {error}"))]);
            }
        };
        let (at, entries, left) = listed;
        let until = Instant::now() + SPEC_TIME;
        let found: Vec<Result<Option<Executable>, BrokenTool>> = stream::iter(&entries)
            .map(|entry| load_one(host, &at, folder, entry, until))
            .buffered(TOGETHER)
            .collect()
            .await;
        let (mut tools, mut problems) = (Vec::<Executable>::new(), Vec::new());
        for one in found {
            match one {
                Ok(None) => {}
                Ok(Some(tool)) => match tools.iter().find(|t| t.spec.name == tool.spec.name) {
                    None => tools.push(tool),
                    Some(first) => problems.push(BrokenTool {
                        reason: format!("the name {} is taken by {}", tool.spec.name, first.path),
                        path: tool.path,
                    }),
                },
                Err(problem) => problems.push(problem),
            }
        }
        if left > 0 {
            problems.push(broken(format!("only {FILES} files are looked at; {left} were left")));
        }
        let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn AnyTool>).collect();
        (Self { tools }, problems)
    }
}

impl Source for Executables {
    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.tools.clone()
    }
}

/// The files of the folder, and how many more there are; none where there is no folder.
async fn list(
    host: &dyn Host,
    folder: &HostPath,
) -> io::Result<Option<(Located, Vec<DirEntry>, u64)>> {
    let at = host.fs().locate(folder, Follow::Yes).await?;
    if at.kind == FileKind::Missing {
        return Ok(None);
    }
    let listing = host.fs().list(&at, ListHow { limit: FILES, stat: true }).await?;
    let left = listing.total.saturating_sub(listing.entries.len() as u64);
    Ok(Some((at, listing.entries, left)))
}

/// Loads one file; none where it is plainly meant to be something else.
async fn load_one(
    host: &dyn Host,
    at: &Located,
    folder: &HostPath,
    entry: &DirEntry,
    until: Instant,
) -> Result<Option<Executable>, BrokenTool> {
    let hidden = entry.name.starts_with(b".");
    let fits = matches!(entry.kind, EntryKind::File | EntryKind::Link);
    let Ok(path) = folder.join_bytes(&entry.name) else { return Ok(None) };
    if hidden || !fits || entry.to_folder {
        return Ok(None);
    }
    let broken = |reason: String| BrokenTool { path: path.clone(), reason };
    let (_, mode, _) = entry.stat.unwrap_or_default();
    if entry.kind == EntryKind::File && mode & 0o111 == 0 {
        if is_script(host, at, &entry.name).await {
            return Err(broken("is a script but not executable; run chmod +x on it".to_owned()));
        }
        return Ok(None);
    }
    let asked = tokio::time::timeout_at(until, ask_spec(host, folder, &path)).await;
    let Ok(spec) = asked else {
        let limit = SPEC_TIME.as_secs();
        return Err(broken(format!(
            "--spec did not end within {limit} s, so this tool is left out; print the spec before \
             anything else is done"
        )));
    };
    let spec = spec.map_err(broken)?;
    Ok(Some(Executable { path, spec }))
}

async fn is_script(host: &dyn Host, at: &Located, name: &[u8]) -> bool {
    let Ok(file) = host.fs().child(at, name, Follow::No).await else { return false };
    host.fs().read(&file, 0, 2).await.is_ok_and(|start| start[..] == *b"#!")
}

/// Runs `FILE --spec` and takes what it prints.
async fn ask_spec(host: &dyn Host, folder: &HostPath, path: &HostPath) -> Result<ToolSpec, String> {
    let shell = host.shell().ok_or("no program can be run on this host")?;
    let argv = vec![path.as_bytes().to_vec(), b"--spec".to_vec()];
    let spawn = Spawn::new(Program::Argv(argv), folder.clone());
    let mut running =
        shell.spawn(spawn).await.map_err(|error| format!("cannot be started: {error}"))?;
    let (mut out, mut complaint) = (Vec::new(), Ends::default());
    while let Some(next) = running.output.next().await {
        match next.map_err(|error| format!("--spec was lost: {error}"))? {
            Output::Bytes(Stream::Stdout, bytes) => {
                out.extend_from_slice(&bytes);
                if out.len() > SPEC_SIZE {
                    return Err(format!("--spec printed more than {SPEC_SIZE} bytes"));
                }
            }
            Output::Bytes(Stream::Stderr, bytes) => {
                complaint.push(&String::from_utf8_lossy(&bytes));
            }
            Output::Report(_) => {}
            Output::Exit(exit) if exit.code == Some(0) => break,
            Output::Exit(exit) => {
                let text = complaint.into_text();
                let last = beginning(text.trim().lines().next_back().unwrap_or_default());
                let code =
                    exit.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
                return Err(format!("--spec ended with {code}: {last}"));
            }
        }
    }
    parse_spec(&out, path)
}

/// The first whole words of a text: where one of them is a secret, no half of it is left to be seen.
fn beginning(text: &str) -> String {
    let mut end = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        if end + word.len() > BEGINNING {
            break;
        }
        end += word.len();
    }
    quoted(text[..end].trim_end())
}

fn parse_spec(out: &[u8], path: &HostPath) -> Result<ToolSpec, String> {
    let spec: ToolSpec = serde_json::from_slice(out).map_err(|error| {
        let start = beginning(&String::from_utf8_lossy(out));
        let why = Misfit::of(&error);
        format!("--spec printed no spec as JSON: {why} (it begins {start:?})")
    })?;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.bytes().all(fits) {
        let name = quoted(&spec.name);
        return Err(format!("the name {name:?} is not 1 to 64 letters, digits, _ or -"));
    }
    if spec.description.is_empty() {
        return Err("the spec has no description; say what the tool does".to_owned());
    }
    let mut spec = spec;
    if spec.input_schema.is_none() {
        spec.input_schema = json!({"type": "object", "properties": {}}).into();
    }
    if spec.input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("input_schema is no JSON Schema of type object".to_owned());
    }
    if spec.on_interrupt == OnInterrupt::Finish {
        let text = "on_interrupt is \"finish\", but a program can always be stopped; leave it out";
        return Err(text.to_owned());
    }
    spec.budget = match spec.budget {
        Budget::Chars(most) => Budget::Chars(most.min(BUDGET)),
        Budget::Tokens(most) => Budget::Tokens(most.min(BUDGET / 4)),
        Budget::Own => {
            return Err("budget is \"own\"; give the most characters, as {\"chars\": 50000}".into());
        }
    };
    if spec.label.is_empty() {
        spec.label = spec.name.clone();
    }
    // The tool that finds others is haft's own.
    spec.finds = false;
    Ok(ToolSpec { origin: Origin::Executable { path: path.text().into_owned() }, ..spec })
}

/// One executable with its spec.
struct Executable {
    path: HostPath,
    spec: ToolSpec,
}

impl Tool for Executable {
    type Input = Value;

    fn spec(&self, _: &Env) -> ToolSpec {
        self.spec.clone()
    }

    fn plan(&self, _: &Value, place: &Place) -> Result<Plan, ToolError> {
        let words = [self.path.as_bytes().to_vec()];
        let text = command_text(&words, self.path.style())
            .unwrap_or_else(|| self.path.text().into_owned());
        let title = format!("Running {}", quoted(&self.spec.label));
        Ok(Plan::new(place, title).with(Access::Destroy, Target::command(text)))
    }

    async fn run(&self, input: Value, cx: &Cx) -> Result<Outcome, ToolError> {
        let failed = |error: io::Error| {
            ToolError::new(format!("{} could not be started: {error}", self.spec.name))
                .hint("Nothing was run. Do it with another tool.")
        };
        let shell = cx.host.shell().ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        let argv = vec![self.path.as_bytes().to_vec()];
        let root = cx.place.roots.first().unwrap_or(&cx.place.cwd);
        let spawn = Spawn {
            set: process::set(cx),
            stdin: Stdin::Bytes(format!("{input}\n").into()),
            ..Spawn::new(Program::Argv(argv), root.clone())
        };
        let running = shell.spawn(spawn).await.map_err(failed)?;
        let limits = SpoolLimits { head: ANSWER, tail: ANSWER_END, ..SpoolLimits::default() };
        let said = collect(running, cx.spool(limits), &cx.stop).await;
        Ok(answer::outcome(said, &self.path))
    }
}

/// What a run of an executable gave.
struct RunOutput {
    stdout: haft_host::Spooled,
    stderr: Ends,
    /// None where it was cancelled or lost.
    exit: Option<haft_host::Exit>,
    cancelled: bool,
    lost: Option<String>,
}

async fn collect(mut running: Running, mut spool: Spool, stop: &CancellationToken) -> RunOutput {
    let (mut stderr, mut exit, mut lost) = (Ends::default(), None, None);
    let mut until = None;
    loop {
        let patience = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled(), if until.is_none() => {
                running.control.stop();
                until = Some(tokio::time::Instant::now() + CANCEL);
            }
            () = patience => break,
            next = running.output.next() => match next {
                Some(Ok(Output::Bytes(Stream::Stdout, bytes))) => {
                    spool.push_shared(&bytes).await;
                    // Output that never pauses would leave the clock no chance to run.
                    tokio::task::yield_now().await;
                }
                Some(Ok(Output::Bytes(Stream::Stderr, bytes))) => {
                    stderr.push(&String::from_utf8_lossy(&bytes));
                }
                Some(Ok(Output::Report(_))) => {}
                Some(Ok(Output::Exit(end))) => {
                    exit = Some(end);
                    break;
                }
                Some(Err(error)) => {
                    lost = Some(error.to_string());
                    break;
                }
                None => break,
            },
        }
    }
    let cancelled = until.is_some();
    RunOutput {
        stdout: spool.finish().await,
        stderr,
        exit: exit.filter(|_| !cancelled),
        cancelled,
        lost,
    }
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    #[test]
    fn specs_are_checked_and_completed() {
        let path = HostPath::new(b"/t/x", Style::Posix).unwrap();
        let parse = |text: &str| parse_spec(text.as_bytes(), &path);
        let spec = parse(r#"{"name": "x", "description": "Does x"}"#).unwrap();
        assert_eq!((&*spec.label, &spec.input_schema["type"]), ("x", &json!("object")));
        assert_eq!(spec.origin, Origin::Executable { path: "/t/x".into() });
        let greedy = r#"{"name": "x", "description": "d", "budget": {"chars": 99999999999}}"#;
        assert_eq!(parse(greedy).unwrap().budget, Budget::Chars(BUDGET));
        for bad in [
            "",
            "no json",
            r#"{"name": "a b", "description": "d"}"#,
            r#"{"name": "x"}"#,
            r#"{"name": "x", "description": "d", "input_schema": {"type": "string"}}"#,
            r#"{"name": "x", "description": "d", "budget": "none at all"}"#,
            r#"{"name": "x", "description": "d", "budget": "own"}"#,
            r#"{"name": "x", "description": "d", "on_interrupt": "finish"}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
