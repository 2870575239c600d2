//! What a session is resumed from: its conversation, and of everything older no more than that it
//! happened.
//!
//! A long session is mostly results that a summary stands for already. Their contents are not put
//! back, and their blobs not read. No index is kept for this: the fields that decide stand at the
//! begin of each line, and the whole log has to be read anyway for its chain of hashes.
//!
//! **Invariant:** the conversation is the one that folding all events gives.

use std::{collections::HashSet, path::Path, thread};

use haft_types::{Body, CallId, Event, EventId, Hash};
use serde::Deserialize;

use crate::{
    Blobs, Fold, Format, LineError, LineFault, SessionError, Tree, head::Head, large_values,
    read::Lines,
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
}

#[derive(Deserialize)]
struct Cut {
    keep_from: EventId,
}

impl Survey {
    fn of(log: &Path) -> Result<Self, SessionError> {
        let mut survey = Self::default();
        let mut lines = Lines::open(log)?;
        while let Some(line) = lines.read() {
            let Ok(line) = line else { continue };
            let Some(head) = Head::of(line) else { continue };
            if head.v > Format::NEWEST {
                return Err(SessionError::Newer { path: log.to_owned(), version: head.v });
            }
            survey.note(&head, line);
        }
        Ok(survey)
    }

    fn note(&mut self, head: &Head<'_>, line: &[u8]) {
        self.tree.add(head.id, head.parent);
        match head.kind {
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

/// The first line of a log that does not name the line before it.
fn broken(log: &Path) -> Result<Option<LineError>, SessionError> {
    let (mut lines, mut prev) = (Lines::open(log)?, Hash::of(b""));
    while let Some(line) = lines.read() {
        let Ok(line) = line else { continue };
        if !names(line, &prev) {
            let (named, actual) = (previous(line).unwrap_or_default(), prev.to_string());
            let named = named.to_owned();
            return Ok(Some(lines.error(LineFault::Chain { named, actual })));
        }
        prev = Hash::of(line);
    }
    Ok(None)
}

/// Reports whether a line ends with this hash of the line before it.
fn names(line: &[u8], prev: &Hash) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = line.strip_suffix(b"\"}").and_then(|line| line.split_last_chunk::<64>());
    digits.is_some_and(|(before, digits)| {
        before.ends_with(b"\"prev\":\"")
            && digits.chunks_exact(2).zip(prev.as_bytes()).all(|(pair, byte)| {
                let digit = |half: u8| DIGITS[usize::from(half)];
                pair == [digit(byte >> 4), digit(byte & 15)]
            })
    })
}

/// The hash of the line before, which stands at the end of each line.
fn previous(line: &[u8]) -> Option<&str> {
    let start = memchr::memmem::rfind(line, b"\"prev\":\"")?;
    let rest = line.get(start + 8..)?.strip_suffix(b"\"}")?;
    std::str::from_utf8(rest).ok()
}

/// The calls of a log that ended.
pub(crate) fn ended_calls(log: &Path, blobs: &Blobs) -> Result<HashSet<CallId>, SessionError> {
    let mut ended = HashSet::new();
    let mut lines = Lines::open(log)?;
    while let Some(line) = lines.read() {
        let Ok(line) = line else { continue };
        let Some(head) = Head::of(line).filter(|head| head.kind == "call_ended") else { continue };
        // What is no event ended nothing.
        let event = head.bare(line).unwrap_or_else(|| large_values::decode(line, blobs));
        if let Ok(Event { body: Body::CallEnded { call, .. }, .. }) = event {
            ended.insert(call);
        }
    }
    Ok(ended)
}

impl History {
    /// Reads a log. Each event is given to `each` in the order of the log, and whether it is on the
    /// branch of the last one; without its content where only the conversation needs that.
    pub(crate) fn open(
        log: &Path,
        blobs: &Blobs,
        each: impl FnMut(&Event, bool),
    ) -> Result<Self, SessionError> {
        // A chain of hashes is read from its begin to its end, whatever else is wanted.
        thread::scope(|scope| {
            let chain = thread::Builder::new().spawn_scoped(scope, || broken(log));
            let history = Self::read(log, blobs, each)?;
            let broken = match chain.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(broken)) => broken?,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => broken(log)?,
            };
            Ok(Self { broken, ..history })
        })
    }

    fn read(
        log: &Path,
        blobs: &Blobs,
        mut each: impl FnMut(&Event, bool),
    ) -> Result<Self, SessionError> {
        let mut history = Self::default();
        let view = View::of(&Survey::of(log)?);
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

    fn shows(&self, head: &Head<'_>) -> bool {
        let in_view = head.id >= self.from && self.is_on_branch(head.id);
        in_view && head.agent.is_main() || self.pinned == Some(head.id)
    }
}
