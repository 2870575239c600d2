//! The terminal interface on a real pseudo-terminal, against the scripted model.
//!
//! Keys are typed and what is drawn is read, as a terminal does; nothing is asked of haft itself.
//! What stands in the terminal was drawn when its text was read. Other agents with a terminal
//! interface are no peers here yet: the only one is `haft --version`, for the start.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::memory::mark;
use super::pty::Pty;
use super::scratch::{Scratch, write_lines};
use super::table::{Row, Runs};
use super::turns::{self, milliseconds, time};
use super::{Bench, RUNS};
use crate::process::command;

/// Lines of the transcript in which frames are drawn.
const LINES: usize = 10_000;
/// Keys of one run, each of which draws a frame.
const KEYS: usize = 50;
/// Calls of the session whose memory is looked at, and how many are in one answer.
const CALLS: usize = 1_000;
const AT_ONCE: usize = 10;
/// Lines of a paste.
const PASTED: usize = 2_000;
/// Starts in one run, and pastes.
const STARTS: usize = 20;
const PASTES: usize = 5;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(10);
/// How long it takes at most until what an answer led to is over, such as files that are written.
const SETTLED: Duration = Duration::from_secs(1);
/// What the empty editor says.
const READY: &str = "a message;";

/// Rows of what the interface costs.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = frames(bench)?;
    rows.push(memory(bench)?);
    rows.push(paste(bench)?);
    rows.push(start(bench)?);
    rows.push(idle(bench)?);
    Ok(rows)
}

fn row(name: &str, unit: &'static str, values: Vec<f64>) -> Result<Row> {
    let value = Runs::new(values).context("no run was measured")?;
    Ok(Row { name: format!("terminal: {name}"), unit, value, peer: Err(String::new()) })
}

/// haft with the terminal interface and these answers of the model.
fn haft(bench: &Bench, scratch: &Scratch, answers: &[Value]) -> Result<Command> {
    let script = scratch.join("script.jsonl");
    let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
    fs::write(&script, lines.join("\n")).context("no script can be written")?;
    let mut command = bench.haft(scratch, &scratch.make("work")?)?;
    command.args(["--mode", "bypass", "--model", &format!("script:{}", script.display())]);
    Ok(command)
}

/// Two rows: processor time of a frame for a key in the editor, and for a row in the transcript.
fn frames(bench: &Bench) -> Result<Vec<Row>> {
    let (mut editor, mut transcript) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let scratch = Scratch::new()?;
        let text: Vec<String> = (0..LINES).map(|line| format!("- item {line} of it")).collect();
        let answers = [json!({ "text": text.join("\n") }), json!({ "text": "end" })];
        let mut pty = Pty::start(&mut haft(bench, &scratch, &answers)?)?;
        pty.wait(READY)?;
        pty.send(b"go\r")?;
        pty.wait(&format!("item {} of it", LINES - 1))?;
        pty.wait(READY)?;
        pty.rest(SETTLED);
        // Each key draws what was not there before: a longer text, then another place in the lines.
        editor.push(frame(&mut pty, b"x", "x")?);
        pty.send(b"\x0f")?;
        pty.wait("q back")?;
        pty.rest(SETTLED);
        transcript.push(frame(&mut pty, b"k", " of ")?);
    }
    Ok(vec![
        row("processor time of a frame, a key at 10,000 lines", "ms", editor)?,
        row("processor time of a frame, a row in the transcript of them", "ms", transcript)?,
    ])
}

/// Milliseconds of processor time of a frame, each of which a key leads to.
fn frame(pty: &mut Pty, key: &[u8], drawn: &str) -> Result<f64> {
    let (before, frames) = (pty.processor_time(), pty.frames());
    for _ in 0..KEYS {
        pty.forget();
        pty.send(key)?;
        pty.wait(drawn)?;
    }
    let used = pty.processor_time().since(&before);
    let drawn = pty.frames() - frames;
    ensure!(drawn >= KEYS, "{KEYS} keys led to {drawn} frames");
    Ok(used / f64::from(u32::try_from(drawn)?))
}

/// One row: the most memory of a session with many calls.
fn memory(bench: &Bench) -> Result<Row> {
    let mut values = Vec::new();
    for _ in 0..RUNS {
        let scratch = Scratch::new()?;
        write_lines(&scratch.make("work")?.join("file.txt"), 400_000)?;
        let call = |number: usize| {
            let input = json!({ "path": "file.txt", "offset": 1 + number * 7, "limit": 100 });
            json!({ "name": "read", "input": input })
        };
        let numbers: Vec<usize> = (0..CALLS).collect();
        let mut answers: Vec<Value> = numbers
            .chunks(AT_ONCE)
            .map(|some| json!({ "calls": some.iter().copied().map(call).collect::<Vec<_>>() }))
            .collect();
        answers.push(json!({ "text": "All of it was read." }));
        let mut pty = Pty::start(&mut haft(bench, &scratch, &answers)?)?;
        pty.wait(READY)?;
        pty.send(b"go\r")?;
        pty.wait("All of it was read.")?;
        pty.wait(READY)?;
        values.push(mark(pty.id()).context("haft ended before it was looked at")?);
    }
    row("most memory of a session of 1,000 calls", "MiB", values)
}

/// One row: from before a paste is written until its marker is drawn.
fn paste(bench: &Bench) -> Result<Row> {
    let scratch = Scratch::new()?;
    let mut pty = Pty::start(&mut haft(bench, &scratch, &[json!({ "text": "end" })])?)?;
    pty.wait(READY)?;
    let lines: Vec<String> = (0..PASTED).map(|line| format!("    let line_{line} = 1;")).collect();
    let text = format!("\x1b[200~{}\x1b[201~", lines.join("\r"));
    let mut sample = || {
        pty.forget();
        let before = Instant::now();
        pty.send(text.as_bytes())?;
        let took = pty.wait("[pasted 2000 lines")?.duration_since(before);
        // What was pasted is taken away again, and the empty editor says so.
        pty.forget();
        pty.send(b"\x15")?;
        pty.wait(READY)?;
        Ok(milliseconds(took))
    };
    let mut runs = turns::measure(PASTES, &mut [&mut sample])?;
    let value = runs.pop().context("no run was measured")?;
    Ok(Row { value, ..row("a paste of 2,000 lines until it is drawn", "ms", vec![0.0])? })
}

/// One row: from before the start until a key that was typed at once is drawn.
fn start(bench: &Bench) -> Result<Row> {
    let scratch = Scratch::new()?;
    let mut haft = haft(bench, &scratch, &[json!({ "text": "end" })])?;
    let mut ours = || typed(&mut haft);
    let mut version = || time(command(&bench.project, &bench.haft).arg("--version"));
    let mut runs = turns::measure(STARTS, &mut [&mut ours, &mut version])?;
    let (version, value) = (runs.pop(), runs.pop().context("no run was measured")?);
    let peer = Ok(("haft --version".to_owned(), version.context("no start was measured")?));
    Ok(Row { value, peer, ..row("start to the first typed character", "ms", vec![0.0])? })
}

/// Milliseconds from before the start until the first key is drawn.
fn typed(haft: &mut Command) -> Result<f64> {
    let before = Instant::now();
    let mut pty = Pty::start(haft)?;
    // The terminal itself shows the key before haft is there; with the prompt it is drawn.
    pty.send(b"x")?;
    Ok(milliseconds(pty.wait("> x")?.duration_since(before)))
}

/// One row: processor time while nothing happens, of as many as there are runs side by side.
fn idle(bench: &Bench) -> Result<Row> {
    let scratch = Scratch::new()?;
    let mut all = Vec::new();
    for _ in 0..RUNS {
        let mut pty = Pty::start(&mut haft(bench, &scratch, &[json!({ "text": "end" })])?)?;
        pty.wait(READY)?;
        pty.send(b"go\r")?;
        pty.wait("end")?;
        pty.rest(SETTLED);
        all.push(pty);
    }
    let before: Vec<_> = all.iter().map(Pty::processor_time).collect();
    thread::sleep(IDLE);
    let used = all.iter().zip(&before).map(|(pty, before)| pty.processor_time().since(before));
    row("processor time in 10 idle seconds", "ms", used.collect())
}
