//! Runs one hook: a program through the host's spawn function, or an HTTP request.
//!
//! **Invariant:** what a hook started ends with it, and also when the future that waits for it is
//! dropped. The bytes that are read from it are bounded, and so is its run time.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use haft_config::{HookEntry, HookEvent, HookRun, Layer, expanded};
use haft_host::{Host as _, Output, Program, Spawn, Stdin};
use haft_net::{SystemResolver, post_direct};
use haft_types::Stream;

use super::Hooks;

/// Most bytes that are read of each stream, and of an answer of an address.
const MOST: usize = 1 << 20;
const COMMAND: Duration = Duration::from_mins(1);
const HTTP: Duration = Duration::from_secs(30);
/// Of a hook at the end of a talk, for which the person waits.
const AT_END: Duration = Duration::from_secs(5);

/// The result of a hook that ran.
pub struct Printed {
    /// Its exit code; 0 for an address that answered.
    pub code: i32,
    /// Its standard output, or the answer of the address.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// Runs a hook to its end, or returns why it did not get there. Without a timeout in its settings
/// it gets 60 s, an address 30 s, and any hook at the end of a session 5 s.
pub async fn run(hooks: &Hooks, entry: &HookEntry, payload: Bytes) -> Result<Printed, String> {
    let usual = match (&entry.run, entry.event) {
        (_, HookEvent::SessionEnd) => AT_END,
        (HookRun::Http { .. }, _) => HTTP,
        _ => COMMAND,
    };
    let limit = entry.timeout.unwrap_or(usual);
    let work = async {
        match &entry.run {
            HookRun::Command { command, args } => {
                // A project's programs get what its commands get: no keys.
                let trusted = matches!(entry.layer, Layer::User | Layer::Managed);
                let mut spawn = spawn(hooks, command, args.as_deref());
                (spawn.stdin, spawn.trusted) = (Stdin::Bytes(payload), trusted);
                program(hooks, spawn).await
            }
            HookRun::Http { url, headers, variables } => {
                let headers =
                    headers.iter().map(|(name, value)| (name.as_str(), expanded(value, variables)));
                let headers: Vec<(&str, String)> = headers.collect();
                request(hooks, url, &headers, payload).await
            }
            HookRun::Nothing(why) => Err(why.clone()),
        }
    };
    let late = |_| format!("it took longer than {limit:?}");
    tokio::time::timeout(limit, work).await.map_err(late)?
}

/// A script for the shell, or a program with its arguments.
fn spawn(hooks: &Hooks, command: &str, args: Option<&[String]>) -> Spawn {
    let program = match args {
        None => Program::Script { text: command.to_owned(), args: Vec::new() },
        Some(args) => {
            let words = std::iter::once(command).chain(args.iter().map(String::as_str));
            Program::Argv(words.map(|word| word.as_bytes().to_vec()).collect())
        }
    };
    let project = hooks.project.display().to_string();
    Spawn {
        set: vec![
            ("CLAUDE_PROJECT_DIR".to_owned(), project.clone()),
            ("HAFT_PROJECT_DIR".to_owned(), project),
        ],
        ..Spawn::new(program, hooks.cwd.clone())
    }
}

async fn program(hooks: &Hooks, spawn: Spawn) -> Result<Printed, String> {
    let shell = hooks.host.shell().ok_or("there is no shell")?;
    let mut running = shell.spawn(spawn).await.map_err(|error| error.to_string())?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(said) = running.output.next().await {
        match said.map_err(|error| error.to_string())? {
            Output::Bytes(Stream::Stdout, bytes) => keep(&mut out, &bytes),
            Output::Bytes(Stream::Stderr, bytes) => keep(&mut err, &bytes),
            Output::Report(_) => {}
            Output::Exit(exit) => {
                return match (exit.code, exit.signal) {
                    // What it says by that alone counts, however much it printed.
                    (Some(2), _) => Ok(Printed { code: 2, out, err }),
                    _ if out.len() > MOST => Err(format!("it printed more than {MOST} bytes")),
                    (Some(code), _) => Ok(Printed { code, out, err }),
                    (None, Some(signal)) => Err(format!("signal {signal} ended it")),
                    (None, None) => Err("how it ended is not known".to_owned()),
                };
            }
        }
    }
    Err("how it ended is not known".to_owned())
}

/// Keeps one byte more than is allowed, so that it shows.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = (MOST + 1).saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

async fn request(
    hooks: &Hooks,
    url: &str,
    headers: &[(&str, String)],
    payload: Bytes,
) -> Result<Printed, String> {
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
    let private = hooks.own.contains(url);
    let resolver = SystemResolver::default();
    let sent = post_direct(&resolver, url, private, &all, payload).await;
    let mut response = sent.map_err(|error| error.to_string())?;
    let status = response.status();
    if !(200..300).contains(&status) {
        return Err(format!("{} answered with status {status}", haft_net::shown_url(url)));
    }
    let mut out = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| error.to_string())? {
        keep(&mut out, &piece);
        if out.len() > MOST {
            return Err(format!("its answer has more than {MOST} bytes"));
        }
    }
    let is_json =
        out.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|byte| *byte == b'{');
    if is_json {
        Ok(Printed { code: 0, out, err: Vec::new() })
    } else {
        Err("its answer is no JSON object".to_owned())
    }
}
