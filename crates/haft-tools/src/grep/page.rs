//! One page of a search: which results it shows, and their text.
//!
//! **Invariant:** results are counted in the order in which the search returns them. The page shows
//! those from `offset` on, at most `limit`, and knows for sure whether there is another. Its text
//! stays under [`TEXT`] bytes. It holds about [`HELD`] bytes, and at most one file's worth more. A
//! match over several lines is split only by these limits. If a search could not hold all matches
//! of a file, a page ends at the last one that was held. A page that would begin after that says
//! where the search has to begin.

use std::{fmt::Write as _, mem, ops::ControlFlow};

use haft_host::{FoundLines, GrepMode, GrepQuery, Skip};
use haft_text::secrets;
use haft_tool::Cx;
use haft_types::{FileMatches, HostPath, MatchLine, Place};

use super::Input;
use crate::{files::secret_scan, search::Root};

/// Bytes of text after which a page ends, whatever its limit is.
const TEXT: usize = 4 << 20;
/// About how many bytes of memory lines and marks may take, in all forms of an answer together.
const HELD: usize = 8 << 20;
/// What a line and each of its marks take besides the text.
const LINE_HELD: usize = 300;
const SPAN_HELD: usize = 200;

/// Most files of a page that are looked at for names of values.
const FILES: usize = 256;
/// What stands where a line was cut.
const CUT: char = '\u{2026}';

/// The page while it fills.
pub(super) struct Page<'a> {
    mode: GrepMode,
    before: u64,
    after: u64,
    numbers: bool,
    offset: u64,
    limit: u64,
    place: &'a Place,
    root: &'a HostPath,
    /// The one name of all results, where one file is searched.
    only: Option<&'a str>,
    /// Results that were met, those before the page and the first after it included.
    pub(super) seen: u64,
    taken: u64,
    /// True when there is a result behind the page.
    pub(super) more: bool,
    /// Set where the page begins among matches that were not kept: what a search has to skip.
    pub(super) elsewhere: Option<Skip>,
    /// What the model reads.
    pub(super) text: String,
    /// Bytes that lines and marks take, see [`HELD`].
    held: usize,
    /// What the page shows.
    pub(super) files: Vec<FileMatches>,
    /// For each of those, how far it was searched.
    pub(super) ends: Vec<End>,
    /// For each of those that shows lines, its path below the root.
    below: Vec<String>,
    /// Most matching lines that were looked for in one file; 0 = all.
    per_file: u64,
}

/// How far a file was searched, where that is not all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    /// Matching lines behind binary content.
    pub(super) hidden: u64,
    /// Whether there may be more of those.
    at_least: bool,
    /// Where binary content ended the search, in bytes.
    pub(super) until: Option<u64>,
}

impl<'a> Page<'a> {
    pub(super) fn new(input: &Input, query: &GrepQuery, place: &'a Place, root: &'a Root) -> Self {
        Self {
            mode: query.mode,
            before: query.before.into(),
            after: query.after.into(),
            numbers: input.numbers.unwrap_or(true),
            offset: input.offset.unwrap_or(0),
            limit: input.limit(),
            place,
            root: &root.path,
            only: root.is_file().then_some(root.shown.as_str()),
            seen: 0,
            taken: 0,
            more: false,
            elsewhere: None,
            text: String::new(),
            held: 0,
            files: Vec::new(),
            ends: Vec::new(),
            below: Vec::new(),
            per_file: query.per_file,
        }
    }

    /// Results on the page.
    pub(super) const fn shown(&self) -> u64 {
        self.taken
    }

    /// Number of its first result, from 1.
    pub(super) const fn first(&self) -> u64 {
        self.offset.saturating_add(1)
    }

    /// Number of its last result; the offset of the next page.
    pub(super) const fn last(&self) -> u64 {
        self.offset.saturating_add(self.taken)
    }

    /// Counts one result: whether the page shows it, or `Break` where the page is full.
    fn admit(&mut self) -> ControlFlow<(), bool> {
        self.seen += 1;
        if self.seen <= self.offset {
            return ControlFlow::Continue(false);
        }
        if (self.limit > 0 && self.taken >= self.limit) || self.is_full(0, 0) {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.taken += 1;
        ControlFlow::Continue(true)
    }

    /// Takes what was found in the next file.
    pub(super) fn take(&mut self, found: FoundLines) -> ControlFlow<()> {
        if self.mode == GrepMode::Content {
            return self.content(found);
        }
        let mut file = found.file;
        file.path = self.name(&file.path);
        if self.admit()? {
            self.text.push_str(&file.path);
            let end = End { until: found.until, ..End::default() };
            if self.mode == GrepMode::Count {
                let _ = write!(self.text, ":{}", file.count);
                if let Some(at) = end.until {
                    let _ = write!(self.text, " (only {}, {MORE} to count all)", up_to(at));
                }
            }
            self.text.push('\n');
            self.files.push(file);
            self.ends.push(end);
        }
        ControlFlow::Continue(())
    }

    /// The path of a file as the answer shows it, from its path below the root.
    fn name(&self, below: &str) -> String {
        match self.only {
            Some(name) => name.to_owned(),
            None => self
                .root
                .join(below)
                .map_or_else(|_| below.to_owned(), |path| self.place.shown(&path).into_owned()),
        }
    }

    fn content(&mut self, found: FoundLines) -> ControlFlow<()> {
        let FoundLines { mut file, skipped, hidden, joined, until } = found;
        let at_least = hidden > 0 && self.per_file > 0 && file.count >= self.per_file;
        let tail = End { hidden, at_least, until };
        self.seen += skipped;
        let below = mem::take(&mut file.path);
        file.path = self.name(&below);
        let name = below.clone();
        let given = file.lines.iter().filter(|line| !line.spans.is_empty()).count() as u64;
        let lost = file.count.saturating_sub(skipped + given + hidden);
        let mut keep = vec![false; file.lines.len()];
        let (mut end, before) = self.choose(&file, &joined, &mut keep);
        if end.is_continue() && lost > 0 {
            let skip = Skip { path: self.only.is_none().then_some(below), lines: skipped + before };
            end = self.behind(lost, before > 0, skip);
            if self.elsewhere.is_some() {
                return end;
            }
        }
        file.count = keep.iter().filter(|keep| **keep).count() as u64;
        self.add_context(&file.lines, &mut keep);
        let mut kept = keep.into_iter();
        file.lines.retain(|_| kept.next().unwrap_or(false));
        self.write(&file);
        let spans: usize = file.lines.iter().map(|line| line.spans.len()).sum();
        self.held += file.lines.len() * LINE_HELD + spans * SPAN_HELD;
        // It belongs to the last page: one behind that has nothing.
        let here = self.seen > self.offset || self.offset == 0 || self.seen == 0;
        let note = end.is_continue() && here && tail.note(&mut self.text, &file);
        if !file.lines.is_empty() || note {
            self.files.push(file);
            self.ends.push(tail);
            self.below.push(name);
        }
        end
    }

    /// Marks the matching lines that the page shows, and counts those before it.
    fn choose(
        &mut self,
        file: &FileMatches,
        joined: &[usize],
        keep: &mut [bool],
    ) -> (ControlFlow<()>, u64) {
        let (mut size, mut held, mut before) = (0, 0, 0);
        let mut joined = joined.iter().peekable();
        let mut last = false;
        for (index, (keep, line)) in keep.iter_mut().zip(&file.lines).enumerate() {
            let goes_on = joined.next_if_eq(&&index).is_some();
            if line.spans.is_empty() {
                continue;
            }
            let room = if goes_on && last && !self.is_full(size, held) {
                self.seen += 1;
                self.taken += 1;
                ControlFlow::Continue(true)
            } else {
                self.room(size, held)
            };
            last = room == ControlFlow::Continue(true);
            match room {
                ControlFlow::Continue(true) => {
                    *keep = true;
                    size += line.text.len() + file.path.len();
                    held += LINE_HELD + line.spans.len() * SPAN_HELD;
                }
                ControlFlow::Continue(false) => before += 1,
                ControlFlow::Break(()) => return (ControlFlow::Break(()), before),
            }
        }
        (ControlFlow::Continue(()), before)
    }

    /// Counts matches of a file that were found but not kept, behind all that were given; `begun`
    /// says that the page begins among the latter, and `skip` how to get all from its beginning.
    fn behind(&mut self, lost: u64, begun: bool, skip: Skip) -> ControlFlow<()> {
        if self.seen.saturating_add(lost) <= self.offset {
            self.seen += lost;
            return ControlFlow::Continue(());
        }
        if self.taken == 0 || begun {
            let further = self.offset.saturating_sub(self.seen);
            self.elsewhere = Some(Skip { lines: skip.lines + further, ..skip });
        } else {
            self.seen += 1;
            self.more = true;
        }
        ControlFlow::Break(())
    }

    /// Looks what the files say of secrets whose lines show values without their names, and leaves
    /// nothing of a value where a line was cut.
    pub(super) async fn hide(&mut self, root: &Root, cx: &Cx) {
        let secrets = &cx.session().secrets;
        for (file, below) in self.files.iter_mut().zip(&self.below).take(FILES) {
            let cut =
                |line: &&mut MatchLine| line.text.starts_with(CUT) || line.text.ends_with(CUT);
            let is_cut = file.lines.iter_mut().any(|line| cut(&line));
            if !is_cut && !file.lines.iter().any(|line| secrets::may_be_in(&line.text)) {
                continue;
            }
            root.learn(below, cx).await;
            for line in file.lines.iter_mut().filter(cut) {
                let before = line.text.clone();
                secret_scan::mend_match(secrets, line);
                if line.text != before {
                    self.text = self.text.replace(&before, &line.text);
                }
            }
        }
    }

    /// Reports whether the page is as large as it may be, with what is not yet written.
    const fn is_full(&self, size: usize, held: usize) -> bool {
        self.text.len() + size >= TEXT || self.held + held >= HELD
    }

    /// As [`admit`](Self::admit), with text and marks of this file that are not yet written.
    fn room(&mut self, size: usize, held: usize) -> ControlFlow<(), bool> {
        if self.is_full(size, held) && self.seen >= self.offset && self.taken > 0 {
            self.seen += 1;
            self.more = true;
            return ControlFlow::Break(());
        }
        self.admit()
    }

    /// Marks the context lines of the matches that are shown; a match of another page is none.
    fn add_context(&self, lines: &[MatchLine], keep: &mut [bool]) {
        let mut mark = |indexes: &mut dyn Iterator<Item = usize>, reach: u64| {
            let mut last: Option<u64> = None;
            for index in indexes {
                let line = &lines[index];
                if !line.spans.is_empty() {
                    // Context does not reach over a match that is on another page.
                    last = keep[index].then_some(line.number);
                } else if last.is_some_and(|last| line.number.abs_diff(last) <= reach) {
                    keep[index] = true;
                }
            }
        };
        mark(&mut (0..lines.len()), self.after);
        mark(&mut (0..lines.len()).rev(), self.before);
    }

    fn write(&mut self, file: &FileMatches) {
        let context = self.before > 0 || self.after > 0;
        let mut previous: Option<u64> = None;
        for line in &file.lines {
            let gap = previous.is_none_or(|previous| line.number > previous + 1);
            if context && gap && !self.text.is_empty() {
                self.text.push_str("--\n");
            }
            previous = Some(line.number);
            let mark = if line.spans.is_empty() { '-' } else { ':' };
            self.text.push_str(&file.path);
            self.text.push(mark);
            if self.numbers {
                let _ = write!(self.text, "{}{mark}", line.number);
            }
            self.text.push_str(&line.text);
            self.text.push('\n');
        }
    }
}

/// What to do about a file that was not searched to its end.
const MORE: &str = "give it as path";

/// How far a file was searched that ended at this byte.
fn up_to(at: u64) -> String {
    format!("up to its binary content near byte {at}")
}

impl End {
    /// Says how far the file was searched; false where that is all of it.
    fn note(self, text: &mut String, file: &FileMatches) -> bool {
        let path = &file.path;
        if let Some(at) = self.until {
            let _ = writeln!(text, "[{path} was searched only {}: {MORE} for the rest]", up_to(at));
        } else if self.hidden > 0 {
            let lines = if self.hidden == 1 { "line matches" } else { "lines match" };
            let more = if file.lines.is_empty() { "" } else { "more " };
            let (least, count) = if self.at_least {
                ("at least ", "; output_mode count gives the number of all")
            } else {
                ("", "")
            };
            let hidden = self.hidden;
            let _ = writeln!(
                text,
                "{path}: {least}{hidden} {more}{lines}, not shown (binary content){count}"
            );
        }
        self.until.is_some() || self.hidden > 0
    }
}
