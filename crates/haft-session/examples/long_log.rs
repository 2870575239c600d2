//! Writes a long session, as `cargo xtask bench --only context` resumes it:
//! `cargo run --release -p haft-session --example long_log -- HOME CWD [KEY=NUMBER...]`.
//!
//! The keys are `format` (1 or 2), `result` (bytes of a result), `every` (turns between two summaries;
//! 0 for none), and `turns`, or `bytes` for as many turns as the session's folder then takes. With
//! summaries the last one stands [`BEHIND`] turns before the end. Each turn is a message, a call and
//! an answer in pieces; every second call is a `read`, the others are `bash`. It prints the session's
//! id, its turns and its bytes.

use std::{
    error::Error,
    fmt::Write as _,
    io::{self, Write as _},
    path::Path,
};

use haft_session::{Format, Log, Packed, Store, bytes_below};
use haft_types::{
    AgentPath, Body, CallId, Event, EventId, From, HostPath, Outcome, Part, Shape, Stop, Style,
    ToolUse, TurnEnd, TurnId, Usage, VERSION,
};
use serde_json::json;

/// Turns behind the last summary.
const BEHIND: u64 = 20;
/// Turns after which it is reckoned how many a size takes.
const SAMPLE: u64 = 200;
/// Pieces in which an answer came.
const PIECES: usize = 8;
/// When all of it happened.
const AT: u64 = 1_790_000_000_000;

/// What is written.
struct LogOptions {
    format: Format,
    result: usize,
    every: u64,
    turns: u64,
    bytes: u64,
}

impl LogOptions {
    fn parse(words: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut wanted = Self { format: Format::Two, result: 400, every: 200, turns: 0, bytes: 0 };
        for word in words {
            let (key, value) = word.split_once('=').ok_or("an argument is no KEY=NUMBER")?;
            match (key, value.parse()?) {
                ("format", 1) => wanted.format = Format::One,
                ("format", 2) => wanted.format = Format::Two,
                ("result", bytes) => wanted.result = usize::try_from(bytes)?,
                ("every", turns) => wanted.every = turns,
                ("turns", turns) => wanted.turns = turns,
                ("bytes", bytes) => wanted.bytes = bytes,
                _ => return Err(format!("{word} is not known").into()),
            }
        }
        if (wanted.turns == 0) == (wanted.bytes == 0) {
            return Err("say either turns=NUMBER or bytes=NUMBER".into());
        }
        Ok(wanted)
    }

    /// The first number of turns from this one on that leaves the last summary where it should be.
    fn last(&self, turns: u64) -> u64 {
        match self.every {
            0 => turns,
            every => turns.saturating_sub(BEHIND).div_ceil(every).max(1) * every + BEHIND,
        }
    }
}

/// The session that is written.
struct Writer {
    log: Log,
    format: Format,
    turn: u64,
}

impl Writer {
    fn put(&mut self, body: Body) -> Result<EventId, Box<dyn Error>> {
        let (turn, agent) = (TurnId(self.turn), AgentPath::default());
        let mut event = Event { v: VERSION, id: None, parent: None, turn, agent, at: AT, body };
        let packed = Packed::new(&event, self.log.blobs(), self.format)?;
        Ok(self.log.append_packed(&mut event, &packed)?)
    }

    fn begin(&mut self, cwd: &Path) -> Result<(), Box<dyn Error>> {
        let session = self.log.session().to_string();
        let style = if cfg!(windows) { Style::Windows } else { Style::Posix };
        let cwd = HostPath::new(cwd.as_os_str().as_encoded_bytes(), style)?;
        let haft = env!("CARGO_PKG_VERSION").to_owned();
        self.put(Body::Session { session, haft, cwd, fork: None, name: None })?;
        Ok(())
    }

    fn turn(&mut self, wanted: &LogOptions) -> Result<(), Box<dyn Error>> {
        let turn = self.turn + 1;
        self.turn = turn;
        let parts = vec![Part::text(format!("Question {turn}: what does the build say of it?"))];
        let first = self.put(Body::User { from: From::Person, parts })?;
        if turn.is_multiple_of(wanted.every) {
            let summary =
                format!("Up to turn {turn}: ") + &"a step was done and checked. ".repeat(120);
            let (sizes, by, others) = (None, None, Vec::new());
            self.put(Body::Compacted { summary, keep_from: first, sizes, by, others })?;
        }
        let id = CallId(format!("call{turn}").into());
        let (tool, input, outcome) = call(turn, wanted.result)?;
        self.put(Body::AnswerPart { index: 0, part: Part::text("I look at it.") })?;
        let part = Part::Call(ToolUse::new(id.clone(), tool, input));
        self.put(Body::AnswerPart { index: 1, part })?;
        self.end_answer(Stop::ToolUse)?;
        let (name, call) = (tool.to_owned(), id.clone());
        self.put(Body::CallStarted { call, tool: name, input: None, plan: None })?;
        self.put(Body::CallEnded { call: id, outcome, took: 12 })?;
        for piece in 0..PIECES {
            let part = Part::text(format!("Piece {piece} of answer {turn} says what it found. "));
            self.put(Body::AnswerPart { index: 0, part })?;
        }
        self.end_answer(Stop::EndTurn)?;
        let (end, usage) = (TurnEnd::Done { stop: Stop::EndTurn }, Usage::default());
        self.put(Body::TurnEnded { end, usage })?;
        Ok(())
    }

    fn end_answer(&mut self, stop: Stop) -> Result<(), Box<dyn Error>> {
        let usage = Usage { input: 100, cache_read: 20_000, cache_write: 300, output: 60 };
        let (model, wire) = ("bench".to_owned(), "anthropic".to_owned());
        self.put(Body::AnswerEnded { model, wire, host: "127.0.0.1:1".to_owned(), stop, usage })?;
        Ok(())
    }
}

/// A call of a turn: its tool, its arguments, and an outcome with a text of about this size.
fn call(
    turn: u64,
    size: usize,
) -> Result<(&'static str, serde_json::Value, Outcome), Box<dyn Error>> {
    let (mut plain, mut numbered, mut line) = (String::new(), String::new(), 0_u64);
    while plain.len() < size {
        line += 1;
        let text = format!("{turn:06}: line {line} of what there is to read here");
        writeln!(numbered, "{line:>6}\t{text}")?;
        writeln!(plain, "{text}")?;
    }
    if turn % 2 == 1 {
        let command = format!("make part{turn}");
        let data = json!({ "exit_code": 0, "stdout": plain });
        let content = vec![Part::text(plain.clone())];
        let (output, exit, note) = (plain, Some(0), None);
        let shape = Shape::Terminal { command: command.clone(), output, exit, note };
        let (data, detail) = (Some(data), Some(shape.into()));
        let outcome = Outcome { content, data, detail, ..Outcome::default() };
        return Ok(("bash", json!({ "command": command }), outcome));
    }
    let path = format!("/work/src/part{turn}.rs");
    let data = json!({ "path": path, "size": plain.len(), "first_line": 1, "lines": line });
    let content = vec![Part::text(numbered.trim_end())];
    let text = plain.trim_end().to_owned();
    let at = HostPath::new(path.as_bytes(), Style::Posix)?;
    let shape = Shape::File { path: at, first_line: 1, text };
    let (data, detail) = (Some(data), Some(shape.into()));
    let outcome = Outcome { content, data, detail, ..Outcome::default() };
    Ok(("read", json!({ "path": path }), outcome))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [home, cwd, rest @ ..] = words.as_slice() else {
        return Err("give HOME, CWD and what is wanted".into());
    };
    let wanted = LogOptions::parse(rest)?;
    let log = Store::open(Path::new(home)).create();
    let mut writer = Writer { log, format: wanted.format, turn: 0 };
    writer.begin(Path::new(cwd))?;
    let mut turns = wanted.turns;
    if wanted.bytes > 0 {
        while writer.turn < SAMPLE {
            writer.turn(&wanted)?;
        }
        turns = wanted.bytes * SAMPLE / bytes_below(writer.log.dir()).max(1);
    }
    let last = wanted.last(turns);
    while writer.turn < last {
        writer.turn(&wanted)?;
    }
    writer.log.sync()?;
    let (session, bytes) = (writer.log.session(), bytes_below(writer.log.dir()));
    writeln!(io::stdout(), "{session} {last} {bytes}")?;
    Ok(())
}
