//! Reports the changes of a command: a few lines for the model and people, names for programs.

use std::collections::HashSet;

use haft_types::{EntryKind, HostPath, Place, ReceiptAction};
use serde_json::{Map, Value, json};

use super::KeptReceipts;

/// Most names that are told.
const NAMES: usize = 20;
/// Most files that are told one by one because they cannot be brought back.
const LOST: usize = 5;
/// The words for what was done.
const DID: [&str; 5] = ["changed", "created", "deleted", "renamed", "moved_in"];
const MOVED_IN: usize = 4;

/// The place of what was done in [`DID`].
const fn did(action: &ReceiptAction) -> usize {
    match action {
        ReceiptAction::Changed => 0,
        ReceiptAction::Created => 1,
        ReceiptAction::Deleted => 2,
        ReceiptAction::Renamed { .. } => 3,
    }
}

/// The changes in words.
pub(super) struct ChangeReport {
    /// What was done, as its place in [`DID`], and to what.
    named: Vec<(usize, String)>,
    /// How many are inside of what is named.
    inside: usize,
    lost: Vec<String>,
    uncovered: Vec<String>,
}

impl ChangeReport {
    /// What is inside of a folder that came or went as a whole is counted only. Names are those that
    /// other tools take, from the workspace root, wherever the shell is.
    pub(super) fn of(kept: &KeptReceipts, place: &Place) -> Self {
        let cwd = place.roots.first().unwrap_or(&place.cwd).clone();
        let place = &Place { cwd, ..place.clone() };
        let done = kept.receipts.iter().map(|one| {
            let from = match &one.action {
                ReceiptAction::Renamed { from } => Some(from),
                _ => None,
            };
            (did(&one.action), &one.path, one.kind, from)
        });
        let moved_in = kept.moved_in.iter().map(|(path, kind)| (MOVED_IN, path, *kind, None));
        let all: Vec<_> = done.chain(moved_in).collect();
        let changed = did(&ReceiptAction::Changed);
        let whole =
            all.iter().filter(|(what, _, kind, _)| *kind == EntryKind::Folder && *what != changed);
        let folders: HashSet<(&HostPath, usize)> =
            whole.map(|(what, path, ..)| (*path, *what)).collect();
        let mut named = Vec::new();
        let mut inside = 0;
        for (what, path, kind, from) in all {
            let above = path.parent();
            if above.is_some_and(|above| folders.contains(&(&above, what))) {
                inside += 1;
                continue;
            }
            let slash = if kind == EntryKind::Folder { "/" } else { "" };
            let name = format!("{}{slash}", place.shown(path));
            named.push(match from {
                Some(from) => (what, format!("{}{slash} to {name}", place.shown(from))),
                None => (what, name),
            });
        }
        named.sort();
        let lost = kept.lost.iter().map(|(path, why)| format!("{} ({why})", place.shown(path)));
        let uncovered = kept.uncovered.iter().map(|(path, what)| {
            let is_count = what.starts_with(|first: char| first.is_ascii_digit());
            format!("{}{} {what}", place.shown(path), if is_count { ":" } else { "" })
        });
        Self { named, inside, lost: lost.collect(), uncovered: uncovered.collect() }
    }

    /// One line, and one each for what cannot be taken back and for what is not covered.
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        for (number, did) in DID.iter().enumerate() {
            let shown = self.named.iter().take(NAMES).filter(|(what, _)| *what == number);
            let names: Vec<&str> = shown.map(|(_, name)| &**name).collect();
            if !names.is_empty() {
                let did = if number == MOVED_IN { "moved in, which undo leaves" } else { did };
                parts.push(format!("{did}: {}", names.join(", ")));
            }
        }
        let more = self.named.len().saturating_sub(NAMES);
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        if self.inside > 0 {
            parts.push(format!("{} inside of these folders", self.inside));
        }
        let mut lines = vec![parts.join("; ")];
        lines.retain(|line| !line.is_empty());
        let lists = [("cannot be undone", &self.lost), ("not covered by undo", &self.uncovered)];
        for (what, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let more = list.len().saturating_sub(LOST);
            let more = if more > 0 { format!(", {more} more") } else { String::new() };
            let shown: Vec<&str> = list.iter().take(LOST).map(|text| &**text).collect();
            lines.push(format!("{what}: {}{more}", shown.join(", ")));
        }
        lines.join("]\n[")
    }

    /// What programs read.
    pub(super) fn data(&self) -> Value {
        let mut data = Map::new();
        for (what, name) in self.named.iter().take(NAMES) {
            let list = data.entry(DID[*what]).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(json!(name));
            }
        }
        let more = self.named.len().saturating_sub(NAMES) + self.inside;
        if more > 0 {
            data.insert("more".to_owned(), json!(more));
        }
        for (what, list) in [("not_undoable", &self.lost), ("not_covered", &self.uncovered)] {
            if !list.is_empty() {
                let shown: Vec<&String> = list.iter().take(NAMES).collect();
                data.insert(what.to_owned(), json!(shown));
            }
        }
        Value::Object(data)
    }
}
