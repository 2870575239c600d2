//! Writes the entries of a session line by line for people, as line mode, the demo and `session show`
//! print them.
//!
//! **Invariant:** it knows shapes and statuses, never a tool. No data reaches the terminal uncleaned.
//! No line holds words of two agents: another agent's words stand under its name, and its answers
//! are written whole. Only the main agent's answer is written while it streams.

mod entries;
mod group;
mod live;
#[cfg(test)]
mod tests;
mod thinking;

use std::{borrow::Cow, collections::HashMap, fmt::Write as _, io::IsTerminal as _, sync::Arc};

use haft_agent::Bus;
use haft_config::Environment;
use haft_render::{
    EntryId, Extent, Looked, Prose, QuestionView, Renderer as _, Room, Sanitiser, Terminal, Theme,
    Transcript, call_text, clean, exact,
};
use haft_session::{Evidence, EvidenceReport};
use haft_types::{
    AgentPath, Body, CallId, Choice, Detail, Env, From, Hash, HostPath, JobEnd, Kind, Level,
    Message, Mode, Outcome, Part, Question, Shape, Status, Stop, ToolSpec, TurnEnd, Usage,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use self::{
    group::{Group, looks},
    live::{Live, Rest},
    thinking::Thinking,
};
use crate::{app::attachments::is_attached, cli::exit::say};

pub use crate::plain::{safe, sentence};

/// Lines of a result before the rest is folded.
const FOLD: u16 = 10;
/// Lines of a diff before the rest is folded.
const FOLD_DIFF: u16 = 60;

/// Lines of what was asked for before the rest is folded.
const FOLD_ASKED: u16 = 400;

/// Lines of what a failed call says before the rest is folded.
const FOLD_FAILURE: u16 = 60;

/// Columns that stand before a result.
const INDENT: u16 = 2;

/// How events are shown.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// Whether colours are used.
    pub color: bool,
    /// Which.
    pub theme: Theme,
    /// Columns; 0 means no limit.
    pub width: u16,
    /// Paths inside this folder are shown relative to it.
    pub root: Option<HostPath>,
    /// The name of this machine, where files are to be links.
    pub links: Option<String>,
}

impl Style {
    /// For standard output: colours and width of the terminal; neither if it is none.
    pub fn plain(environment: &Environment) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let columns = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col);
        let width = columns.filter(|columns| *columns > 0).or(environment.columns);
        Self {
            color: terminal && !environment.no_color && !environment.dumb,
            width: if terminal { width.unwrap_or(80) } else { 0 },
            ..Self::default()
        }
    }
}

/// A call that was told of and has not ended.
struct Open {
    /// The call in one line, as it is.
    name: String,
    head: String,
    shown: bool,
    live: Live,
    /// What it looks at, where it only looks and what it gives can stand in a line with others.
    looked: Option<Looked>,
}

/// Folds events into text.
pub struct View {
    terminal: Terminal,
    room: Room,
    /// The session that is shown; empty where it has no log.
    session: String,
    specs: HashMap<String, Arc<ToolSpec>>,
    transcript: Transcript,
    evidence: Evidence,
    /// What is to be told of it at the end of this turn.
    evidence_report: Option<EvidenceReport>,
    /// Bytes of the entries that stream which were taken.
    taken: HashMap<EntryId, usize>,
    open: HashMap<CallId, Open>,
    /// The call whose head stands last.
    last: Option<CallId>,
    text: Sanitiser,
    /// What of it is drawn; only where there is a width.
    prose: Prose,
    thinking: Thinking,
    /// Requests of each agent that get no answer.
    outages: HashMap<AgentPath, Outage>,
    /// True inside a line of streamed text.
    inside: bool,
    /// The entry that streams.
    part: Option<EntryId>,
    /// The agent that wrote last.
    writer: AgentPath,
    folding: Folding,
    /// The last fold that says its number.
    last_fold: Option<u64>,
    /// Reads and searches in a row that are not written yet.
    group: Group,
    /// The call that gave output last and still runs, with the newest of it.
    running: Option<(CallId, Vec<String>)>,
    /// The call whose changes were shown whole when it was asked about, with them.
    shown_before: Option<(CallId, Detail)>,
}

/// What becomes of long results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folding {
    /// Their rest is counted.
    Plain,
    /// The fold says its number, which is that of the call, and the key that opens it.
    Numbered,
    /// All is shown.
    Open,
}

impl View {
    /// A view that knows the built-in tools.
    pub fn new(style: Style) -> Self {
        let specs: Vec<_> = haft_tools::builtin()
            .into_iter()
            .map(|tool| Arc::new(tool.spec(&Env { shell: true, ..Env::default() })))
            .collect();
        let hint = Cow::Borrowed("");
        Self {
            room: inside(style.width),
            terminal: Terminal {
                color: style.color,
                theme: style.theme,
                root: style.root,
                links: style.links,
                hint,
                ..Terminal::default()
            },
            session: String::new(),
            specs: HashMap::new(),
            transcript: Transcript::default(),
            evidence: Evidence::default(),
            evidence_report: None,
            taken: HashMap::new(),
            open: HashMap::new(),
            last: None,
            text: Sanitiser::default(),
            prose: Prose::whole(),
            thinking: Thinking::default(),
            outages: HashMap::new(),
            inside: false,
            part: None,
            writer: AgentPath::default(),
            folding: Folding::Plain,
            last_fold: None,
            group: Group::default(),
            running: None,
            shown_before: None,
        }
        .with(&specs)
    }

    /// Adds the tools of a session.
    #[must_use]
    pub fn with(mut self, specs: &[Arc<ToolSpec>]) -> Self {
        self.specs.extend(specs.iter().map(|spec| (spec.name.to_string(), spec.clone())));
        self
    }

    /// Names the session whose log has what a question leaves out.
    #[must_use]
    pub fn of_session(mut self, id: &str) -> Self {
        id.clone_into(&mut self.session);
        self
    }

    /// Numbers folds, for a front end that opens them and shows what runs beside this.
    #[must_use]
    pub const fn numbered(mut self) -> Self {
        self.folding = Folding::Numbered;
        self.terminal.ends = true;
        self
    }

    /// Folds nothing, and shows results whole when they have come.
    #[must_use]
    pub const fn unfolded(mut self) -> Self {
        self.folding = Folding::Open;
        // There may be a day's work of it.
        self.terminal.plain_code = true;
        self
    }

    /// The number of the last fold.
    pub const fn last_fold(&self) -> Option<u64> {
        self.last_fold
    }

    /// The room for so many lines of a result.
    fn room_of(&self, lines: u16) -> Room {
        let lines = (self.folding != Folding::Open).then_some(lines);
        Room { lines, ..self.room }
    }

    /// Something that was asked for, as far as it is of use on a screen.
    pub fn shown(&self, detail: &Detail) -> String {
        let room = Room { lines: Some(FOLD_ASKED), ..self.room };
        indent(&self.terminal.detail(detail, room), "  ") + "\n"
    }

    /// Sets the width in columns from here on; 0 means no limit.
    pub const fn fit(&mut self, width: u16) {
        self.room = inside(width);
    }

    /// Whether a message waits that begins a turn of its own.
    pub fn has_later(&self) -> bool {
        self.transcript.has_later(&AgentPath::default())
    }

    /// Ends a line that is still open.
    pub fn finish(&mut self) -> Option<String> {
        let end = self.flush() + &self.close_group();
        (!end.is_empty()).then_some(end)
    }

    /// What a question is about and what would happen, as it is shown to a person, for a front end
    /// that shows the answers elsewhere; with what else there is of it.
    pub fn asked(&mut self, question: &Question, extent: Extent) -> (String, QuestionView) {
        // Output of what else runs no longer stands behind its head.
        self.last.take_if(|last| question.call.as_ref() != Some(last));
        let shown = self.terminal.question(question, extent, self.room.width, &self.session);
        let mut text = self.flush() + &self.close_group() + &self.head(&question.agent);
        let is_whole = shown.left_out == 0 && self.folding == Folding::Numbered;
        self.shown_before =
            question.call.clone().zip(question.preview.clone()).filter(|_| is_whole);
        let _ = writeln!(text, "\n? {}", indent(&shown.text, "  ").trim_start());
        (text, shown)
    }

    /// A question with what would happen, as it is shown to a person, and the answers that are
    /// offered.
    pub fn question(&mut self, question: &Question, extent: Extent) -> (String, Vec<Choice>) {
        let (mut text, shown) = self.asked(question, extent);
        let has_form = question.form.is_some();
        // A form is filled in first.
        for choice in shown.options.iter().filter(|_| !has_form) {
            let _ = writeln!(text, "  [{}] {}", choice.key, exact(&choice.label));
        }
        if shown.left_out > 0 && extent != Extent::ALL {
            text.push_str("  [?] show all of it\n");
        }
        if question.call.is_some() && !has_form && !self.session.is_empty() {
            text.push_str("  [w] say why this is asked\n");
        }
        (text, shown.options)
    }

    /// The person's last message and the answer to it, each in its first lines.
    pub fn last_exchange(&self, messages: &[Message]) -> String {
        let words = |message: &Message| match message {
            Message::User { from: From::Person | From::Steer, parts } => Some(text_of(parts)),
            _ => None,
        };
        let Some(at) = messages.iter().rposition(|message| words(message).is_some()) else {
            return String::new();
        };
        let said = words(&messages[at]).unwrap_or_default();
        let mut text = format!("\n> {}\n", indent(&clean(&first_lines(&said)), "  ").trim_start());
        let answer = messages[at..].iter().rev().find_map(|message| match message {
            Message::Assistant { parts, .. } => {
                Some(text_of(parts)).filter(|text| !text.is_empty())
            }
            _ => None,
        });
        if let Some(answer) = answer {
            let _ = writeln!(text, "\n{}", self.prose(&first_lines(&answer)));
        }
        text
    }

    fn streamed(&mut self, id: EntryId, text: &str) -> Option<String> {
        let before = if self.part == Some(id) { String::new() } else { self.line_end() };
        self.part = Some(id);
        let mut clean = self.text.push(text);
        if self.room.width > 0 {
            clean = self.terminal.prose(&mut self.prose, &clean, self.room);
        }
        let shown = before + &self.begun(clean);
        (!shown.is_empty()).then_some(shown)
    }

    /// A piece of a text, behind an empty line where it is the first.
    fn begun(&mut self, mut text: String) -> String {
        if !self.inside && !text.is_empty() {
            text.insert(0, '\n');
            self.last = None;
        }
        self.inside |= !text.is_empty();
        text
    }

    /// The first line of what the model thinks, once it is there.
    fn thought(&mut self, id: EntryId, text: &str) -> Option<String> {
        let before = if self.part == Some(id) { String::new() } else { self.line_end() };
        self.part = Some(id);
        let line = self.thinking.push(text).map(|line| self.thinking_line(&line));
        let shown = before + &line.unwrap_or_default();
        (!shown.is_empty()).then_some(shown)
    }

    fn thinking_line(&mut self, line: &str) -> String {
        self.last = None;
        let room = Room { lines: None, ..self.room };
        let shown = self.terminal.notes(&[format!("~ {line}")], room);
        let (first, more) =
            shown.split_once('\n').map_or((&*shown, ""), |(first, _)| (first, "\u{2026}"));
        format!("\n{first}{more}\n")
    }

    /// Ends a streamed text, so that something else can follow.
    fn line_end(&mut self) -> String {
        self.part = None;
        let thought = self.thinking.finish().map(|line| self.thinking_line(&line));
        let mut rest = std::mem::take(&mut self.text).finish();
        if self.room.width > 0 {
            rest = self.terminal.prose(&mut self.prose, &rest, self.room);
            rest += &self.terminal.prose_end(&mut self.prose, self.room);
            rest = self.begun(rest);
            self.inside = false;
        } else if std::mem::take(&mut self.inside) {
            rest.push('\n');
        }
        thought.unwrap_or_default() + &rest
    }

    fn started(
        &mut self,
        call: &CallId,
        tool: &str,
        input: Option<&Value>,
        title: Option<&str>,
    ) -> Option<String> {
        let name = tool.to_owned();
        let unknown = || Arc::new(ToolSpec::new(name.clone(), name.clone(), ""));
        let spec = self.specs.get(tool).cloned().unwrap_or_else(unknown);
        let input = input.unwrap_or(&Value::Null);
        let name = call_text(&spec, Some(input), title);
        let head = self.terminal.call(&spec, Some(input), title, self.room);
        let head = format!("\n* {}\n", head.trim_end());
        let looked = looks(spec.kind).then(|| Looked::new(&spec, Some(input), title));
        // What may take long is told when it begins; the others, which may run beside each
        // other, with their results.
        let shown = spec.kind == Kind::Execute && self.open.is_empty();
        let looked = looked.filter(|_| self.folding == Folding::Numbered);
        let open = Open { name, head: head.clone(), shown, live: Live::default(), looked };
        self.open.insert(call.clone(), open);
        if !shown {
            return None;
        }
        self.last = Some(call.clone());
        Some(head)
    }

    /// Output of the call whose head stands last; any other is shown when its call ends.
    fn output(&mut self, call: &CallId, text: &str) -> Option<String> {
        // What is shown whole, or beside this, needs no beginning.
        if self.last.as_ref() != Some(call) || self.folding != Folding::Plain {
            return None;
        }
        let live = &mut self.open.get_mut(call)?.live;
        let lines = live.push(text);
        let full = live.is_full();
        let mut shown = String::new();
        if let Some(output) = lines {
            let shape = Shape::Terminal { command: String::new(), output, exit: None, note: None };
            let room = Room { lines: None, partial: true, ..self.room };
            shown = indent(&self.terminal.detail(&shape.into(), room), "  ") + "\n";
        }
        if full {
            // From here on the head no longer stands last; the end is told with the result.
            self.last = None;
            shown.push_str("  \u{2026} more comes; its end is shown when the command has ended\n");
        }
        (!shown.is_empty()).then_some(shown)
    }

    fn ended(&mut self, call: &CallId, outcome: &Outcome, took: u64) -> String {
        let open = self.open.remove(call);
        self.running.take_if(|(running, _)| running == call);
        let mut text = String::new();
        let unknown = || Open {
            name: String::new(),
            head: String::new(),
            shown: true,
            live: Live::default(),
            looked: None,
        };
        let Open { name, head, shown, live, looked } = open.unwrap_or_else(unknown);
        if let Some(looked) = looked
            && self.takes(&looked, fold_number(call), outcome)
        {
            return String::new();
        }
        // What it says to the person stands by itself.
        let said = outcome.detail.as_ref().filter(|detail| is_message(detail));
        if let Some(said) = said.filter(|_| outcome.status == Status::Done) {
            self.last = None;
            let notes = self.notes(&unsaid(outcome));
            return format!("\n{}\n{notes}", self.detail(said).trim_end());
        }
        // Behind something else, or when its output was too much to be shown as it came.
        if !shown || (self.last.as_ref() != Some(call) && !live.is_full()) {
            text.push_str(&head);
        }
        self.last = None;
        self.terminal.status = Some(outcome.status);
        self.terminal.hint = match self.folding {
            Folding::Numbered => format!("({}), ctrl+o", fold_number(call)).into(),
            Folding::Plain | Folding::Open => "".into(),
        };
        let body = match &outcome.detail {
            Some(detail) if self.is_shown_before(call, detail) => self.first_lines_of(detail),
            Some(detail) => self.body(detail, live, &name),
            None if outcome.status == Status::Done => self.prose(&outcome.joined_text()),
            None => String::new(),
        };
        if !self.terminal.hint.is_empty() && body.contains(&*self.terminal.hint) {
            self.last_fold = fold_number(call).parse().ok();
        }
        if !body.trim().is_empty() {
            text.push_str(&indent(body.trim_end(), "  "));
            text.push('\n');
        }
        // A program's output says itself how it ended.
        let told = matches!(&outcome.detail, Some(Detail { shape: Shape::Terminal { .. }, .. }));
        if outcome.status.is_error() && !told {
            text.push_str(&self.failure(outcome, took));
        }
        // Where it is all that there is to see, the text has them.
        if outcome.detail.is_some() || outcome.status != Status::Done {
            text.push_str(&self.notes(&unsaid(outcome)));
        }
        self.terminal.status = None;
        text
    }

    /// Whether a person has seen these very changes whole when they were asked about them.
    fn is_shown_before(&mut self, call: &CallId, detail: &Detail) -> bool {
        let before = self.shown_before.take_if(|(asked, _)| asked == call);
        before.is_some_and(|(_, shown)| shown.shape == detail.shape)
    }

    /// The first line of a change, or of each of several.
    fn first_lines_of(&self, detail: &Detail) -> String {
        if let Shape::Many { details } = &detail.shape {
            let lines: Vec<String> = details.iter().map(|one| self.first_lines_of(one)).collect();
            return lines.join("\n");
        }
        let shown = self.terminal.detail(detail, self.room);
        shown.lines().next().unwrap_or_default().to_owned()
    }

    /// How a call ended that did not end well: all that it says where nothing else shows that.
    fn failure(&self, outcome: &Outcome, took: u64) -> String {
        if outcome.status != Status::Failed || outcome.detail.is_some() {
            return format!("  {}\n", self.terminal.outcome(outcome, took, self.room).trim_end());
        }
        let room = self.room_of(FOLD_FAILURE);
        indent(&self.terminal.failure(outcome, took, room), "  ") + "\n"
    }

    /// What is told beside a result, as lines of their own.
    fn notes(&self, notes: &[String]) -> String {
        let notes = indent(&self.terminal.notes(notes, self.room), "  ");
        if notes.is_empty() { notes } else { notes + "\n" }
    }

    /// What is to be shown of a result: only what was not shown while it came.
    fn body(&self, detail: &Detail, live: Live, name: &str) -> String {
        match live.rest(detail) {
            Rest::All => self.unrepeated(detail, name),
            Rest::Behind(rest) => self.detail(&rest),
            Rest::End(rest) => self.terminal.detail(&rest, Room { partial: true, ..self.room }),
        }
    }

    /// A detail, folded: diffs are shown longer, because they are what people look at.
    fn detail(&self, detail: &Detail) -> String {
        let lines = match detail.shape {
            Shape::Diff { .. } => FOLD_DIFF,
            Shape::Thought { .. } => 1,
            Shape::Message { .. } => FOLD_ASKED,
            _ => FOLD,
        };
        self.terminal.detail(detail, self.room_of(lines))
    }

    /// A detail without a first line that the name of the call ends with already.
    fn unrepeated(&self, detail: &Detail, name: &str) -> String {
        let body = self.detail(detail);
        if !matches!(detail.shape, Shape::File { .. } | Shape::Terminal { .. }) {
            return body;
        }
        let plain = Terminal { color: false, ..self.terminal.clone() };
        let first = Room { width: 0, lines: Some(1), partial: false };
        let first = plain.detail(detail, first);
        let first = first.lines().next().unwrap_or_default().trim();
        let said = first.strip_prefix("$ ").unwrap_or(first);
        if said.is_empty() || !name.ends_with(said) {
            return body;
        }
        body.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    }

    /// A word of haft to the person.
    fn mark(&self, level: Level, text: &str) -> String {
        let sign = match level {
            Level::Info => "-",
            Level::Warning | Level::Error => "!",
        };
        self.broken(&format!("{sign} {}", sentence(text)))
    }

    /// Breaks long lines of a text at blanks; what follows of such a line is indented.
    pub fn broken(&self, text: &str) -> String {
        let mut broken = String::new();
        for line in text.lines() {
            let line = self.terminal.text(line, self.room);
            broken.push_str(indent(&line, "  ").get(usize::from(INDENT)..).unwrap_or_default());
            broken.push('\n');
        }
        broken
    }

    /// Changes that were taken back or made again.
    fn undone(&self, calls: &[CallId], files: &[(HostPath, Option<Hash>)], redo: bool) -> String {
        let what = if redo { "made again" } else { "took back" };
        let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
        let shown = |path: &HostPath| match &self.terminal.root {
            Some(root) => path.shown_from(root).into_owned(),
            None => path.text().into_owned(),
        };
        let files: Vec<String> = files.iter().map(|(path, _)| shown(path)).collect();
        self.mark(Level::Info, &format!("{what} {}: {}", calls.join(", "), files.join(", ")))
    }

    fn prose(&self, text: &str) -> String {
        let detail = Shape::Markdown { text: text.to_owned() }.into();
        self.terminal.detail(&detail, self.room)
    }

    /// Whether what changed was checked, as it is told at the end of a turn.
    fn evidence(&self, report: &EvidenceReport) -> String {
        let room = Room { lines: None, ..self.room };
        let line = self.terminal.notes(&[format!("- {}", safe(&report.sentence()))], room);
        indent(&line, "  ").get(usize::from(INDENT)..).unwrap_or_default().to_owned() + "\n"
    }

    fn turn_ended(&self, end: &TurnEnd, usage: Usage) -> Option<String> {
        let tokens = usage.input + usage.cache_read + usage.cache_write + usage.output;
        Some(match end {
            TurnEnd::Done { stop: Stop::Length } => {
                self.mark(Level::Warning, "the answer reached its output limit")
            }
            TurnEnd::Done { stop: Stop::Refusal } => {
                self.mark(Level::Warning, "the provider refused to answer")
            }
            TurnEnd::Done { stop: Stop::Paused } => {
                self.mark(Level::Warning, "the provider paused its answer again and again")
            }
            TurnEnd::Done { .. } if tokens == 0 => return None,
            TurnEnd::Done { .. } => format!("({tokens} tokens)\n"),
            TurnEnd::Interrupted => self.mark(Level::Info, "interrupted"),
            // The failed answer has said it already.
            TurnEnd::Failed { .. } => return None,
            TurnEnd::Limit { reason } => self.mark(Level::Warning, &format!("stopped at {reason}")),
        })
    }
}

/// The room behind a sign or an indent, of so many columns in all; 0 means as many as it takes.
const fn inside(width: u16) -> Room {
    let width = match width {
        0 => 0,
        1..=INDENT => 1,
        width => width - INDENT,
    };
    Room { width, lines: Some(FOLD), partial: false }
}

/// Whether a result is words of the model for the person.
const fn is_message(detail: &Detail) -> bool {
    matches!(detail.shape, Shape::Message { .. })
}

/// The notes of an outcome that its text, where that is shown whole, does not hold.
fn unsaid(outcome: &Outcome) -> Vec<String> {
    let is_whole = outcome.status == Status::Failed && outcome.detail.is_none();
    let text = if is_whole { outcome.joined_text() } else { String::new() };
    outcome.notes.iter().filter(|note| !text.contains(*note)).cloned().collect()
}

/// What was said, as it was typed.
fn said(parts: &[Part]) -> String {
    format!("\n> {}\n", indent(&clean(&text_of(parts)), "  ").trim_start())
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if !is_attached(part) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// A request that gets no answer. People see the reason once, and then only that it is sent again.
#[derive(Default)]
pub struct Outage(String);

impl Outage {
    /// The message for an error after which the request is sent again.
    pub fn describe(&mut self, error: &str) -> String {
        let (why, next) = error.rsplit_once('\n').unwrap_or((error, ""));
        if why == self.0 {
            return format!("still no answer: {next}");
        }
        why.clone_into(&mut self.0);
        format!("no answer yet: {error}")
    }
}

/// Prints warnings and errors among the session's notices to standard error, until its events end.
pub fn notices(bus: &Bus) -> JoinHandle<()> {
    let mut feed = bus.subscribe();
    tokio::spawn(async move {
        while let Some(event) = feed.next().await {
            if let Body::Notice { level: Level::Warning | Level::Error, text } = &event.body {
                say(&format!("haft: {}", sentence(text)));
            }
        }
    })
}

/// The mode from now on, and who set it.
fn mode_set(mode: Mode, edits: bool, by: &str) -> String {
    let edits = if edits { "; changes of files are allowed for the session" } else { "" };
    let by = if by.is_empty() { String::new() } else { format!(" ({})", safe(by)) };
    format!("mode {mode}{edits}{by}")
}

/// How a job ended.
fn job_ended(job: &str, end: JobEnd, exit: Option<i32>) -> String {
    match (end, exit) {
        (JobEnd::Exited, Some(code)) => format!("{job} has ended: exit code {code}"),
        (JobEnd::Exited, None) => format!("{job} has ended"),
        (JobEnd::Stopped, _) => format!("{job} was stopped"),
        (JobEnd::Lost, _) => format!("{job} is lost: how it ended is not known"),
    }
}

/// The first lines of a text, and a sign where there are more.
fn first_lines(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first: Vec<&str> = lines.by_ref().take(usize::from(FOLD)).collect();
    let more = if lines.next().is_some() { "\n\u{2026}" } else { "" };
    first.join("\n") + more
}

/// The number of a fold: that of its call.
pub fn fold_number(call: &CallId) -> &str {
    call.0.strip_prefix('c').unwrap_or(&call.0)
}

/// Puts `by` before every line.
pub fn indent(text: &str, by: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{by}{line}")).collect();
    lines.join("\n")
}
