//! How a text changes: what answers show of it, and all of it for a person who is asked.
//!
//! **Invariant:** the reported counts of added and removed lines are about the whole text. Each
//! line that a detail does not hold whole is counted in its cut.

use haft_text::{
    cut,
    diff::{Kind, Limits, TextDiff},
    lines,
};
use haft_types::{Cut, CutBy, Detail, DiffLine, Hash, HostPath, Hunk, LineCounts, LineMark, Shape};

/// How much of a diff is shown.
const SHOWN: Limits = Limits { context: 3, lines: 400, width: 500 };

/// How much of a diff is made for a question: all of it.
const WHOLE: Limits = Limits { lines: usize::MAX, width: usize::MAX, ..SHOWN };

/// Most bytes of the diffs of one question. What is beyond is only counted.
pub(crate) const PREVIEW: usize = 1024 * 1024;

/// Bytes that a line takes beside its text, about.
const LINE: usize = 32;

/// The file of a diff, before and after.
pub(crate) struct Versions<'a> {
    pub path: &'a HostPath,
    /// Where it was, where it is moved.
    pub from: Option<&'a HostPath>,
    pub before: Option<Hash>,
    pub after: Option<Hash>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Difference {
    shown: TextDiff,
    /// None where nobody is asked, or the shown one has all of it.
    whole: Option<TextDiff>,
}

impl Difference {
    /// Compares, and once more where somebody is asked and the answer will not show all.
    pub(crate) fn of(asked: bool, compare: impl Fn(Limits) -> TextDiff) -> Self {
        let shown = compare(SHOWN);
        let is_long = |(_, text): &(Kind, String)| text.len() >= SHOWN.width;
        let long = || shown.hunks.iter().flat_map(|hunk| &hunk.lines).any(is_long);
        let whole = (asked && (shown.omitted > 0 || long())).then(|| compare(WHOLE));
        Self { shown, whole }
    }

    /// Of texts that are too long to be compared: all lines of both differ.
    pub(crate) fn uncompared(old: &str, new: &str) -> Self {
        let [removed, added] = [old, new].map(|text| lines::count(text.as_bytes(), false));
        let shown = TextDiff { added, removed, omitted: added + removed, ..TextDiff::default() };
        Self { shown, whole: None }
    }

    /// What answers show.
    pub(crate) const fn shown(&self) -> &TextDiff {
        &self.shown
    }

    /// What people see of what was done.
    pub(crate) fn detail(&self, of: &Versions<'_>) -> Detail {
        detail(of, &self.shown, usize::MAX)
    }

    /// What people see of what would be done, up to so many bytes. What only that needs is dropped.
    pub(crate) fn preview(&mut self, of: &Versions<'_>, most: usize) -> Detail {
        match self.whole.take() {
            Some(whole) => detail(of, &whole, most),
            None => detail(of, &self.shown, most),
        }
    }
}

fn detail(of: &Versions<'_>, diff: &TextDiff, most: usize) -> Detail {
    let mut hunks = Vec::with_capacity(diff.hunks.len());
    let (mut left, mut whole) = (most, 0);
    for hunk in &diff.hunks {
        if left == 0 {
            break;
        }
        hunks.push(Hunk {
            old_start: hunk.old_start as u64,
            old_lines: hunk.old_lines as u64,
            new_start: hunk.new_start as u64,
            new_lines: hunk.new_lines as u64,
            lines: bounded(&hunk.lines, &mut left, &mut whole),
        });
    }
    let (total, to) = ((diff.shown + diff.omitted) as u64, whole as u64);
    let cut = (to < total).then_some(Cut {
        from: 1,
        to,
        total: Some(total),
        by: CutBy::Lines,
        rest: None,
        end: None,
    });
    let counts = LineCounts { added: diff.added as u64, removed: diff.removed as u64 };
    let counts = cut.is_some().then_some(counts);
    let (path, from) = (of.path.clone(), of.from.cloned());
    let shape = Shape::Diff { path, from, hunks, counts, before: of.before, after: of.after };
    Detail { shape, cut }
}

/// The lines for which there is room; of the first one that has too little its start.
fn bounded(lines: &[(Kind, String)], left: &mut usize, whole: &mut usize) -> Vec<DiffLine> {
    let mut kept = Vec::new();
    for (mark, text) in lines.iter().filter_map(marked) {
        let bytes = text.len().saturating_add(LINE);
        if bytes <= *left {
            *left -= bytes;
            *whole += 1;
            kept.push(DiffLine { mark, text: text.to_owned() });
            continue;
        }
        if *left > LINE {
            let text = cut::head(text, *left / 4).text.into_owned();
            kept.push(DiffLine { mark, text });
        }
        *left = 0;
        break;
    }
    kept
}

/// A remark on a line is none of its own.
fn marked((kind, text): &(Kind, String)) -> Option<(LineMark, &str)> {
    let mark = match kind {
        Kind::Kept => LineMark::Kept,
        Kind::Removed => LineMark::Removed,
        Kind::Added => LineMark::Added,
        Kind::Note => return None,
    };
    Some((mark, text))
}
