//! What a session is resumed from: its conversation, and of everything older no more than that it
//! happened.
//!
//! A long session is mostly results that a summary stands for already. Their contents are not put
//! back, and their blobs not read. No index is kept for this: the fields that decide stand at the
//! begin of each line, and the whole log has to be read anyway for its chain of hashes.
//!
//! **Invariant:** the conversation is the one that folding all events gives.

use std::{fmt, path::Path};

use haft_types::{
    AgentPath, Body, CallId, Event, EventId, Hash, Outcome, Part, Status, Stop, ToolUse, TurnId,
    Usage, VERSION,
};
use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::{
    Blobs, Fold, Format, LineError, LineFault, SessionError, Tree, large_values, read::Lines,
};

/// The most lines that could not be read of which each is kept.
const FAULTS_MAX: usize = 50;

/// What is known of a session that goes on.
#[derive(Default)]
pub struct History {
    /// The conversation of the main agent on the branch of the last event.
    pub fold: Fold,
    /// How many events there are, those of other branches, too.
    pub count: usize,
    /// Lines that could not be read: the first 50 of them.
    pub faults: Vec<LineError>,
    /// How many more there are.
    pub more_faults: usize,
    /// The first line that does not follow the line before it.
    pub broken: Option<LineError>,
}

/// What the begin of a line says of its event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) v: u32,
    pub(crate) id: EventId,
    pub(crate) parent: Option<EventId>,
    turn: TurnId,
    agent: AgentPath,
    at: u64,
    pub(crate) kind: String,
    /// The call that it is of, where that stands right behind its type.
    call: Option<CallId>,
    /// Its place in an answer, in the same way.
    index: u32,
}

impl Head {
    /// Reads a line up to the type of its event; none where it has no such begin.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        // It always ends with an error: the rest of the line is left unread.
        drop(serde_json::Deserializer::from_slice(line).deserialize_map(HeadOf(&mut head)));
        (!head.kind.is_empty()).then_some(head)
    }

    /// The event of this line without its content, where it is of a type whose content only the
    /// conversation needs; the error of one that is needed and cannot be read.
    fn bare(&self, line: &[u8]) -> Option<Result<Event, LineFault>> {
        let body = match (&*self.kind, &self.call) {
            ("answer_part", _) => match bare_part(line) {
                Ok(part) => Body::AnswerPart { index: self.index, part },
                Err(error) => return Some(Err(LineFault::NotAnEvent(error.to_string()))),
            },
            ("answer_ended", _) => Body::AnswerEnded {
                model: String::new(),
                wire: String::new(),
                host: String::new(),
                stop: Stop::EndTurn,
                usage: Usage::default(),
            },
            ("call_started", Some(call)) => Body::CallStarted {
                call: call.clone(),
                tool: String::new(),
                input: None,
                plan: None,
            },
            ("call_ended", Some(call)) => {
                let outcome = Outcome::ended(Status::Done, "");
                Body::CallEnded { call: call.clone(), outcome, took: 0 }
            }
            ("pinned", _) => {
                Body::Pinned { system: Vec::new(), tools: String::new(), format: String::new() }
            }
            _ => return None,
        };
        let (id, parent) = (Some(self.id), self.parent);
        let (turn, agent, at) = (self.turn, self.agent.clone(), self.at);
        Some(Ok(Event { v: VERSION, id, parent, turn, agent, at, body }))
    }
}

/// What is read of a part of an answer whose content nobody needs.
#[derive(Deserialize)]
struct Bare {
    part: BarePart,
}

#[derive(Deserialize)]
struct BarePart {
    r#type: String,
    id: Option<CallId>,
    #[serde(default)]
    wire_id: String,
}

/// A part of an answer: of a call its ids, and of all else nothing.
fn bare_part(line: &[u8]) -> serde_json::Result<Part> {
    if memchr::memmem::find(line, b"\"type\":\"call\"").is_none() {
        return Ok(Part::text(""));
    }
    let Bare { part } = serde_json::from_slice(line)?;
    let Some(id) = part.id.filter(|_| part.r#type == "call") else { return Ok(Part::text("")) };
    let mut call = ToolUse::new(id, "", Value::Null);
    (call.wire_id, call.input) = (part.wire_id, None);
    call.raw.clear();
    Ok(Part::Call(call))
}

struct HeadOf<'a>(&'a mut Head);

impl<'de> Visitor<'de> for HeadOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            match key {
                "v" => self.0.v = map.next_value()?,
                "id" => self.0.id = map.next_value()?,
                "parent" => self.0.parent = map.next_value()?,
                "turn" => self.0.turn = map.next_value()?,
                "agent" => self.0.agent = map.next_value()?,
                "at" => self.0.at = map.next_value()?,
                "type" => {
                    map.next_value::<&str>()?.clone_into(&mut self.0.kind);
                    match map.next_key::<&str>()? {
                        Some("call") => self.0.call = map.next_value()?,
                        Some("index") => self.0.index = map.next_value()?,
                        _ => {}
                    }
                    return Ok(());
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// What the first reading of a log finds.
#[derive(Default)]
struct Survey {
    tree: Tree,
    /// Ends of answers of the main agent, in their order.
    ends: Vec<EventId>,
    /// Whether one of it has begun that has no end yet.
    is_streaming: bool,
    /// Where what stays in view after a compaction of the main agent begins, by its event.
    cuts: Vec<(EventId, EventId)>,
    /// What the main agent pinned.
    pinned: Vec<EventId>,
    broken: Option<LineError>,
}

#[derive(Deserialize)]
struct Cut {
    keep_from: EventId,
}

impl Survey {
    fn of(log: &Path) -> Result<Self, SessionError> {
        let mut survey = Self::default();
        let (mut lines, mut prev) = (Lines::open(log)?, Hash::of(b""));
        while let Some(line) = lines.read() {
            let Ok(line) = line else { continue };
            if survey.broken.is_none() {
                let named = previous(line).unwrap_or_default();
                let actual = prev.to_string();
                if named != actual {
                    let named = named.to_owned();
                    let fault = LineFault::Chain { named, actual };
                    survey.broken = Some(lines.error(fault));
                    continue;
                }
                prev = Hash::of(line);
            }
            let line = lines.last();
            let Some(head) = Head::of(line) else { continue };
            if head.v > Format::NEWEST {
                return Err(SessionError::Newer { path: log.to_owned(), version: head.v });
            }
            survey.note(&head, line);
        }
        Ok(survey)
    }

    fn note(&mut self, head: &Head, line: &[u8]) {
        self.tree.add(head.id, head.parent);
        match &*head.kind {
            _ if !head.agent.is_main() => {}
            "answer_part" => self.is_streaming = true,
            "answer_ended" | "answer_failed" if self.is_streaming => {
                self.is_streaming = false;
                self.ends.push(head.id);
            }
            "pinned" => self.pinned.push(head.id),
            "compacted" => {
                if let Ok(cut) = serde_json::from_slice::<Cut>(line) {
                    self.cuts.push((head.id, cut.keep_from));
                }
            }
            _ => {}
        }
    }
}

/// The hash of the line before, which stands at the end of each line.
fn previous(line: &[u8]) -> Option<&str> {
    let start = memchr::memmem::rfind(line, b"\"prev\":\"")?;
    let rest = line.get(start + 8..)?.strip_suffix(b"\"}")?;
    std::str::from_utf8(rest).ok()
}

impl History {
    /// Reads a log. Each event is given to `each` in the order of the log, and whether it is on the
    /// branch of the last one; without its content where only the conversation needs that.
    pub(crate) fn open(
        log: &Path,
        blobs: &Blobs,
        mut each: impl FnMut(&Event, bool),
    ) -> Result<Self, SessionError> {
        let mut survey = Survey::of(log)?;
        let mut history = Self { broken: survey.broken.take(), ..Self::default() };
        let view = View::of(&survey);
        let mut lines = Lines::open(log)?;
        while let Some(line) = lines.read() {
            let event = line.and_then(|line| {
                let head = Head::of(line).filter(|head| !view.shows(head));
                let bare = head.and_then(|head| head.bare(line));
                bare.unwrap_or_else(|| large_values::decode(line, blobs))
            });
            match event {
                Ok(event) => {
                    let on_branch = event.id.is_some_and(|id| view.is_on_branch(id));
                    if on_branch {
                        history.fold.push(&event);
                    }
                    history.count += 1;
                    each(&event, on_branch);
                }
                Err(fault) if history.faults.len() < FAULTS_MAX => {
                    history.faults.push(lines.error(fault));
                }
                Err(_) => history.more_faults += 1,
            }
        }
        Ok(history)
    }
}

/// Which events of a log are read whole.
struct View {
    /// The branch of the last event, oldest first; none where it is the whole log.
    path: Option<Vec<EventId>>,
    /// Where the content of the conversation begins.
    from: EventId,
    /// What is pinned at its end.
    pinned: Option<EventId>,
}

impl View {
    fn of(survey: &Survey) -> Self {
        let path = survey.tree.path(survey.tree.last().unwrap_or_default());
        let path = (path.len() < survey.tree.len()).then_some(path);
        let mut view = Self { path, from: EventId(0), pinned: None };
        view.pinned = survey.pinned.iter().rev().find(|id| view.is_on_branch(**id)).copied();
        let cut = survey.cuts.iter().rev().find(|(id, _)| view.is_on_branch(*id));
        // An answer that stays in view has its end, or that of one before it, behind this.
        let ends = survey.ends.iter().rev().filter(|end| view.is_on_branch(**end));
        let from = cut.and_then(|(cut, keep_from)| {
            let mut before = ends.filter(|end| *end < keep_from && *end < cut);
            before.nth(1).map(|end| EventId(end.0 + 1))
        });
        view.from = from.unwrap_or_default();
        view
    }

    fn is_on_branch(&self, id: EventId) -> bool {
        // A parent is older than its child, so a path is in order.
        self.path.as_ref().is_none_or(|path| path.binary_search(&id).is_ok())
    }

    fn shows(&self, head: &Head) -> bool {
        let in_view = head.id >= self.from && self.is_on_branch(head.id);
        in_view && head.agent.is_main() || self.pinned == Some(head.id)
    }
}
