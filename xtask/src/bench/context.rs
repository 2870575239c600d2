//! Long sessions: what a resume takes, one more call at 2,000 turns, and a compaction.
//!
//! A resume is measured from the start of `haft -p` to the last byte of its first request. The server
//! then answers nothing, so memory and processor time are those of that instant. The files were just
//! written, so the system has them in memory. Beside the times stand those of a bare hash of the log,
//! which a resume makes, too, to check the chain; beside the memory that of a new session.
//!
//! A turn and a compaction are measured as in `answer`: from before an answer is written to the last
//! byte of the next request. The model takes no time for a summary.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::long_session::LongSession;
use super::memory::mark;
use super::processor_time::{self, ProcessorTime};
use super::scratch::{LINE, Scratch, write_lines};
use super::server::{Exchange, Server};
use super::table::{Row, Runs};
use super::turns::{self, milliseconds, output, time};
use super::wires::Wire;
use super::{Bench, RUNS};
use crate::process::command;

/// Sizes of sessions that are resumed, in bytes of their folders.
const SIZES: [(&str, u64); 2] = [("365 MB", 365_000_000), ("1 GB", 1_000_000_000)];
/// Kinds of sessions by the bytes of a result: above 8 KiB it stands in a blob.
const KINDS: [(&str, u64); 2] = [("results of 40 KB", 40_000), ("many short events", 400)];
/// Formats of a log.
const FORMATS: [u64; 2] = [1, 2];
/// Turns between two summaries.
const EVERY: u64 = 200;
/// Turns of a long session at which one more is measured.
const TURNS: u64 = 2_000;
/// Calls of a run there.
const CALLS: usize = 20;
/// Samples of a run of a compaction.
const COMPACTIONS: usize = 5;
/// Bytes of a request of 200,000 tokens.
const REQUEST: usize = 800_000;
/// Between two looks at the server.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a resume may take at most.
const MOST: Duration = Duration::from_mins(10);
/// A window in which everything fits.
const WIDE: usize = 100_000_000;
/// The words by which a message asks for nothing.
const GO: [&str; 3] = ["-p", "go", "--output"];

/// Three rows for each session that is resumed, two a wire for turns, and one for a compaction.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut rows = Vec::new();
    for (size, bytes) in SIZES {
        for (kind, result) in KINDS {
            for format in FORMATS {
                let words = [("format", format), ("result", result), ("every", EVERY)];
                let session = write(bench, &scratch, &words, ("bytes", bytes))?;
                let name = format!("{size}, {kind}, log of version {format}");
                rows.extend(resumes(bench, &scratch, &session, &name)?);
            }
        }
    }
    rows.extend(long_turns(bench, &scratch)?);
    rows.push(compaction(bench, &scratch)?);
    Ok(rows)
}

fn write(
    bench: &Bench,
    scratch: &Scratch,
    words: &[(&str, u64)],
    length: (&str, u64),
) -> Result<LongSession> {
    let all = words.iter().chain([&length]).map(|(key, value)| format!("{key}={value}"));
    LongSession::write(bench, scratch, &all.collect::<Vec<_>>())
}

/// What a process had taken when its first request was there.
#[derive(Clone, Copy)]
struct ResumeCost {
    elapsed: f64,
    processor: f64,
    memory: f64,
}

/// Time, processor time and memory of resumes of a session.
fn resumes(
    bench: &Bench,
    scratch: &Scratch,
    session: &LongSession,
    name: &str,
) -> Result<Vec<Row>> {
    let (mut ours, mut fresh) = (Vec::new(), Vec::new());
    let mut hashes = [const { Vec::new() }; 2];
    // Once before, so that none pays for what the system has not in memory yet.
    for run in 0..=RUNS {
        let resumed = first_request(bench, scratch, Some(session.restored()?))
            .with_context(|| format!("a resume of {name}"))?;
        let before = processor_time::of_children();
        let hash = time(command(&bench.project, "sha256sum").arg(session.log()))?;
        let used = processor_time::of_children().zip(before).map(|(after, before)| after - before);
        let used = used.context("/proc tells no processor time of sha256sum")?;
        let new = first_request(bench, scratch, None)?;
        if run > 0 {
            ours.push(resumed);
            hashes[0].push(hash);
            hashes[1].push(used);
            fresh.push(new.memory);
        }
    }
    let runs = |values: Vec<f64>| Runs::new(values).context("no run was measured");
    // It takes minutes, so what is known is said.
    for ResumeCost { elapsed, processor, memory } in &ours {
        println!("  {name}: {elapsed:.0} ms, {processor:.0} ms of a processor, {memory:.0} MiB");
    }
    let row = |what: &str, unit, part: fn(&ResumeCost) -> f64, peer: (&str, _)| -> Result<Row> {
        let (value, peer) = (runs(ours.iter().map(part).collect())?, (peer.0, runs(peer.1)?));
        let name = format!("{what}resume of {name}");
        Ok(Row { name, unit, value, peer: Ok((peer.0.to_owned(), peer.1)) })
    };
    let [times, processor] = hashes;
    let hash = "sha256sum of its log";
    Ok(vec![
        row("", "ms", |cost| cost.elapsed, (hash, times))?,
        row("processor time: ", "ms", |cost| cost.processor, (hash, processor))?,
        row("most memory: ", "MiB", |cost| cost.memory, ("a new session", fresh))?,
    ])
}

/// Starts `haft -p`, waits for its first request, looks at it and ends it.
fn first_request(bench: &Bench, scratch: &Scratch, session: Option<&str>) -> Result<ResumeCost> {
    let server = Server::silent()?;
    let mut command = haft(bench, scratch, Wire::Anthropic, &server, session, WIDE)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let before = Instant::now();
    let mut child = command.spawn().context("haft -p could not be started")?;
    let taken = loop {
        if let Some(first) = server.exchanges().first() {
            let processor = ProcessorTime::of(child.id()).since(&ProcessorTime::default());
            let elapsed = milliseconds(first.arrived.duration_since(before));
            let memory = mark(child.id()).context("/proc tells no memory of haft -p");
            break memory.map(|memory| ResumeCost { elapsed, processor, memory });
        }
        if let Some(status) = child.try_wait().context("haft -p cannot be waited for")? {
            break Err(anyhow::anyhow!("haft -p ended with {status} and sent no request"));
        }
        if before.elapsed() > MOST {
            break Err(anyhow::anyhow!("haft -p sent no request in {MOST:?}"));
        }
        thread::sleep(PAUSE);
    };
    // It waits for an answer that does not come.
    let _ = child.kill();
    let _ = child.wait();
    taken
}

/// For each wire: a call in a session of many turns, all in view or most of them summed up, each beside
/// the same in a new one.
fn long_turns(bench: &Bench, scratch: &Scratch) -> Result<Vec<Row>> {
    let all = write(bench, scratch, &[("every", 0)], ("turns", TURNS))?;
    let some = write(bench, scratch, &[("every", EVERY)], ("turns", TURNS))?;
    write_lines(&scratch.make("work")?.join("file.txt"), (2 * CALLS * 100 * LINE) as u64)?;
    let mut rows = Vec::new();
    for wire in Wire::ALL {
        let mut in_view = || reads(bench, scratch, wire, Some(&all));
        let mut summed_up = || reads(bench, scratch, wire, Some(&some));
        let mut new = || reads(bench, scratch, wire, None);
        let runs = turns::measure(1, &mut [&mut in_view, &mut summed_up, &mut new])?;
        let [in_view, summed_up, new] =
            <[_; 3]>::try_from(runs).ok().context("not every run was measured")?;
        for (what, value) in [("all in view", in_view), ("summed up every 200", summed_up)] {
            rows.push(Row {
                name: format!("answer to next request at 2,000 turns, {what}, {}", wire.name()),
                unit: "ms",
                value,
                peer: Ok(("the same in a new session".to_owned(), new.clone())),
            });
        }
    }
    Ok(rows)
}

/// The median time of a read's way from its answer to the next request.
fn reads(
    bench: &Bench,
    scratch: &Scratch,
    wire: Wire,
    session: Option<&LongSession>,
) -> Result<f64> {
    let mut answers: Vec<String> = (0..CALLS).map(|call| read(wire, call, 100)).collect();
    answers.push(wire.text("over"));
    let session = session.map(LongSession::restored).transpose()?;
    let exchanges = drive(bench, scratch, wire, session, (answers, WIDE))?;
    let times = exchanges
        .windows(2)
        .map(|two| milliseconds(two[1].arrived.duration_since(two[0].answered)));
    Ok(Runs::new(times.collect()).context("no call was measured")?.median())
}

/// A compaction of 200,000 tokens: a read fills the window, the summary is there at once, and the time
/// is what both took but for the model. The peer is the read in a window that is wide enough.
fn compaction(bench: &Bench, scratch: &Scratch) -> Result<Row> {
    let words = [("every", 0), ("result", 7_000)];
    let session = write(bench, scratch, &words, ("turns", 100))?;
    let wire = Wire::Anthropic;
    write_lines(&scratch.make("work")?.join("file.txt"), (600 * LINE) as u64)?;
    let sent = |texts: &[&str], window| {
        let mut answers = vec![read(wire, 0, 500)];
        answers.extend(texts.iter().map(|text| wire.text(text)));
        drive(bench, scratch, wire, Some(session.restored()?), (answers, window))
    };
    let size = sent(&["over"], WIDE)?.first().map_or(0, |first| first.size);
    ensure!(size >= REQUEST, "a request of {size} bytes is no one of 200,000 tokens");
    // The read has about 6,000 tokens: before it there is room, behind it there is none.
    let window = (size / 4 + 2_500) * 10 / 8;
    let mut ours = || {
        let exchanges = sent(&["So far all was read.", "over"], window)?;
        let [first, summary, last] = exchanges[..] else {
            bail!("{} requests were sent where a summary is one of three", exchanges.len());
        };
        ensure!(last.size < first.size * 6 / 10, "{} bytes became {}", first.size, last.size);
        let planned = summary.arrived.duration_since(first.answered);
        Ok(milliseconds(planned + last.arrived.duration_since(summary.answered)))
    };
    let mut theirs = || {
        let exchanges = sent(&["over"], WIDE)?;
        let [first, last] = exchanges[..] else {
            bail!("{} requests were sent, not two", exchanges.len());
        };
        Ok(milliseconds(last.arrived.duration_since(first.answered)))
    };
    let runs = turns::measure(COMPACTIONS, &mut [&mut ours, &mut theirs])?;
    let [value, peer] = <[_; 2]>::try_from(runs).ok().context("not every run was measured")?;
    Ok(Row {
        name: "compaction of 200,000 tokens, without the model's time".to_owned(),
        unit: "ms",
        value,
        peer: Ok(("the same call without one".to_owned(), peer)),
    })
}

/// An answer that reads lines of the file, other ones for each number.
fn read(wire: Wire, number: usize, lines: usize) -> String {
    let offset = number * lines + 1;
    wire.call(number, "read", &json!({ "path": "file.txt", "offset": offset, "limit": lines }))
}

/// Runs `haft -p` through these answers and returns what was exchanged.
fn drive(
    bench: &Bench,
    scratch: &Scratch,
    wire: Wire,
    session: Option<&str>,
    (answers, window): (Vec<String>, usize),
) -> Result<Vec<Exchange>> {
    let wanted = answers.len();
    let server = Server::start(answers)?;
    let said = output(&mut haft(bench, scratch, wire, &server, session, window)?)?;
    let result: serde_json::Value =
        serde_json::from_str(&said).context("haft -p printed no JSON")?;
    let exchanges = server.exchanges();
    let failed = &result["failed_calls"];
    if *failed != json!(0) || exchanges.len() != wanted {
        bail!("{failed} calls failed, in {} requests of {wanted}", exchanges.len());
    }
    Ok(exchanges)
}

/// `haft -p` in the scratch folder, sent to the server, where old results are never masked.
fn haft(
    bench: &Bench,
    scratch: &Scratch,
    wire: Wire,
    server: &Server,
    session: Option<&str>,
    window: usize,
) -> Result<Command> {
    let model = format!("{}/bench", wire.name());
    let settings =
        format!("[models.\"{model}\"]\ncontext = {window}\n[context]\nmask_percent = 100\n");
    fs::write(scratch.make("state")?.join("settings.toml"), settings)?;
    let mut command = bench.haft(scratch, &scratch.make("work")?)?;
    command.envs(wire.environment(&server.url())).args(GO).args(["json", "--mode", "bypass"]);
    command.args(["--model", &model]);
    if let Some(session) = session {
        command.args(["--resume", session]);
    }
    Ok(command)
}
