//! What a front end shows of calls while they run: reads and searches in a row, as one line that
//! grows until something else is to be written, and the newest output of a program.
//!
//! **Invariant:** only what ended well and has nothing to tell beside its result is in it, so that
//! nothing is hidden but what the transcript has. It knows kinds of tools, never their names.

use std::collections::BTreeMap;

use haft_render::{CallEntry, Looked, Renderer as _};
use haft_types::{Body, Event, Kind, Outcome, Status};

use super::{Folding, View, fold_number, unsaid};

/// Calls that ended, in their order.
#[derive(Default)]
pub(super) struct Group {
    /// The first of them to end, by their numbers.
    calls: BTreeMap<u64, Looked>,
    /// How many there are beside them.
    more: usize,
    /// The greatest number.
    last: u64,
}

/// Calls that are named in a line.
const NAMED: usize = 12;
/// Most lines of a running program that are shown.
const NEWEST: usize = 60;

/// Most bytes of such a line.
const WIDEST: usize = 1_000;

/// Whether calls of this kind only look.
pub(super) const fn looks(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Search)
}

impl View {
    /// Takes a call that only looked; what has to be told of it in another way is given back.
    pub(super) fn takes(&mut self, looked: &Looked, number: &str, outcome: &Outcome) -> bool {
        let is_plain = outcome.status == Status::Done && unsaid(outcome).is_empty();
        let Some(detail) = outcome.detail.as_ref().filter(|_| is_plain) else { return false };
        let number = number.parse().unwrap_or_default();
        self.group.last = self.group.last.max(number);
        let is_new = !self.group.calls.contains_key(&number);
        if is_new && self.group.calls.len() < NAMED {
            self.group.calls.insert(number, looked.clone().with(detail));
        } else {
            self.group.more += 1;
        }
        true
    }

    /// The line of the calls so far, which ends here; empty for none.
    pub(super) fn close_group(&mut self) -> String {
        let Group { calls, more, last } = std::mem::take(&mut self.group);
        let Some(first) = calls.keys().next().copied() else { return String::new() };
        let calls: Vec<Looked> = calls.into_values().collect();
        // Nothing goes on behind a head that stands above it.
        self.last = None;
        self.last_fold = Some(last);
        let hint = if first == last {
            format!("({last}), ctrl+o")
        } else {
            format!("({first}-{last}), ctrl+o")
        };
        let shown = self.terminal.looked(&calls, more, &hint, self.room);
        let shown = super::indent(&shown, "  ");
        format!("\n* {}\n", shown.trim_start())
    }

    /// Takes what a running call gave; true where it is shown beside what is written.
    pub(super) fn runs(&mut self, entry: &CallEntry, event: &Event) -> bool {
        if self.folding != Folding::Numbered {
            return false;
        }
        let (Body::CallOutput { call, .. } | Body::CallProgress { call, .. }) = &event.body else {
            return false;
        };
        let plain = haft_render::Terminal { color: false, ..self.terminal.clone() };
        let progress = entry.progress.as_ref().map(|it| plain.detail(it, self.room));
        let progress = progress.unwrap_or_default();
        let short = |line: &str| line[..line.floor_char_boundary(WIDEST)].to_owned();
        // Where it is stands behind what it said.
        let lines = entry.output.text().lines().chain(progress.lines());
        let newest: Vec<String> = lines.rev().take(NEWEST).map(short).collect();
        self.running = Some((call.clone(), newest.into_iter().rev().collect()));
        true
    }

    /// The newest lines of what runs; none where nothing does.
    pub fn running(&self) -> &[String] {
        self.running.as_ref().map_or(&[], |(_, lines)| lines)
    }

    /// What is read and searched in a row, with what still runs of it, on one line; empty for
    /// nothing.
    pub fn reading(&self) -> String {
        let running = self.open.iter().filter_map(|(call, open)| {
            let number = fold_number(call).parse().unwrap_or(u64::MAX);
            open.looked.as_ref().map(|looked| (number, looked))
        });
        let calls = self.group.calls.iter().map(|(number, looked)| (*number, looked));
        let calls: BTreeMap<u64, &Looked> = calls.chain(running).collect();
        let calls: Vec<Looked> = calls.into_values().cloned().collect();
        let plain = haft_render::Terminal { color: false, ..self.terminal.clone() };
        plain.looked(&calls, self.group.more, "", haft_render::Room::default())
    }
}
