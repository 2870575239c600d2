//! What a session is resumed from: its conversation, and of everything older no more than that it
//! happened.
//!
//! A long session is mostly results that a summary stands for already. Their contents are not put
//! back, and their blobs not read. No index is kept for this: the fields that decide stand at the
//! begin of each line, and the whole log has to be read anyway for its chain of hashes.
//!
//! **Invariant:** the conversation is the one that folding all events gives.

use std::{collections::BTreeSet, fmt, path::Path};

use haft_types::{AgentPath, Body, Event, EventId, Hash, Outcome, Part};
use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};

use crate::{
    Blobs, Fold, Format, LineError, LineFault, SessionError, Tree, large_values, read::Lines,
};

/// What is known of a session that goes on.
#[derive(Default)]
pub struct History {
    /// The conversation of the main agent on the branch of the last event.
    pub fold: Fold,
    /// All events, those of other branches, too. Contents of results, of answers and of questions
    /// are left out.
    pub events: Vec<Event>,
    /// Lines that could not be read.
    pub faults: Vec<LineError>,
    /// The first line that does not follow the line before it.
    pub broken: Option<LineError>,
}

/// What the begin of a line says of its event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) v: u32,
    pub(crate) id: EventId,
    pub(crate) parent: Option<EventId>,
    is_other_agents: bool,
    pub(crate) kind: String,
}

impl Head {
    /// Reads a line up to the type of its event; none where it has no such begin.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        // It always ends with an error: the rest of the line is left unread.
        drop(serde_json::Deserializer::from_slice(line).deserialize_map(HeadOf(&mut head)));
        (!head.kind.is_empty()).then_some(head)
    }
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
                "agent" => self.0.is_other_agents = !map.next_value::<AgentPath>()?.is_main(),
                "type" => {
                    map.next_value::<&str>()?.clone_into(&mut self.0.kind);
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
            _ if head.is_other_agents => {}
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
    pub(crate) fn open(log: &Path, blobs: &Blobs) -> Result<Self, SessionError> {
        let survey = Survey::of(log)?;
        let leaf = survey.tree.last().unwrap_or_default();
        let path: BTreeSet<EventId> = survey.tree.path(leaf).into_iter().collect();
        let newest = |ids: &[EventId]| ids.iter().rev().find(|id| path.contains(id)).copied();
        let pinned = newest(&survey.pinned);
        let cut = survey.cuts.iter().rev().find(|(id, _)| path.contains(id));
        // An answer that stays in view has its end, or that of one before it, behind this.
        let ends = survey.ends.iter().rev().filter(|end| path.contains(end));
        let whole_from = cut.and_then(|(cut, keep_from)| {
            let mut before = ends.filter(|end| *end < keep_from && *end < cut);
            before.nth(1).map(|end| EventId(end.0 + 1))
        });
        let whole_from = whole_from.unwrap_or_default();
        let mut history = Self {
            fold: Fold::new(AgentPath::default()),
            events: Vec::new(),
            faults: Vec::new(),
            broken: survey.broken,
        };
        let mut lines = Lines::open(log)?;
        while let Some(line) = lines.read() {
            let event = line.and_then(|line| {
                let head = Head::of(line);
                let is_whole = |head: &Head| {
                    let in_view = head.id >= whole_from && path.contains(&head.id);
                    in_view && !head.is_other_agents || pinned == Some(head.id)
                };
                match head.filter(|head| !is_whole(head)) {
                    Some(head) => large_values::decode_bare(line, &head.kind, blobs),
                    None => large_values::decode(line, blobs),
                }
            });
            match event {
                Ok(mut event) => {
                    if event.id.is_some_and(|id| path.contains(&id)) {
                        history.fold.push(&event);
                    }
                    strip(&mut event);
                    history.events.push(event);
                }
                Err(fault) => history.faults.push(lines.error(fault)),
            }
        }
        Ok(history)
    }
}

/// Leaves out of an event what only its own reader needs.
fn strip(event: &mut Event) {
    match &mut event.body {
        Body::CallEnded { outcome, .. } => *outcome = Outcome::ended(outcome.status, ""),
        Body::CallStarted { input, plan, .. } => (*input, *plan) = (None, None),
        Body::AnswerPart { part: Part::Call(call), .. } => {
            (call.input, call.extra) = (None, None);
            call.raw.clear();
        }
        Body::AnswerPart { part, .. } => *part = Part::text(""),
        Body::Asked { question } => (question.preview, question.command) = (None, None),
        Body::Found { receipts, .. } | Body::Undone { receipts, .. } => receipts.clear(),
        _ => {}
    }
}
