//! Renders details as terminal text: lines that fit the width, with or without colour.

use std::borrow::Cow;

use haft_types::{
    Blob, Cut, CutBy, CutEnd, Detail, DiffLine, HostPath, Hunk, LineCounts, LineMark, Outcome,
    Shape, Status, ToolSpec,
};
use serde_json::Value;

use crate::{
    Renderer, Room, Sanitiser, call_text,
    changes::{changed_words, made_visible},
    highlight::Highlighter,
    line::{Line, Page, Style, Theme, lines, split, width},
    link, listing, outcome_text,
    units::{bytes, count, duration},
};

/// Most lines of how a command ended.
const ENDING: usize = 4;
/// What stands above a message of the model.
pub(crate) const MESSAGE: &str = "Message";
/// Details within details that are still shown.
const DEEPEST: usize = 16;

/// Renders details as terminal text.
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
#[derive(Clone, Debug, Default)]
pub struct Terminal {
    /// Whether colours are used.
    pub color: bool,
    /// Which.
    pub theme: Theme,
    /// Whether code looks all the same, which is faster where there is much of it.
    pub plain_code: bool,
    /// Paths inside this folder are shown relative to it.
    pub root: Option<HostPath>,
    /// The name of the machine whose files become links; none for no links. It takes colours.
    pub links: Option<String>,
    /// What a fold line says behind the number of lines, on how to see the rest; empty for nothing.
    pub hint: Cow<'static, str>,
    /// Whether of a program's output the end is shown rather than the start, as of one that runs.
    pub ends: bool,
    /// How the call ended whose detail is shown, if that is known. An exit code says only half of
    /// it.
    pub status: Option<Status>,
    /// Whether somebody decides by what is shown. Then no character may be unseen, see
    /// [`is_unseen`](crate::is_unseen).
    pub exact: bool,
}

impl Renderer for Terminal {
    type View = String;

    fn detail(&self, detail: &Detail, room: Room) -> String {
        let mut page = Page::new(room).exact(self.exact).highlighting(self.highlights());
        self.shape(detail, room, &mut page, 0);
        page.fold(&self.hint);
        if let Some(note) = detail.cut.as_ref().and_then(cut_note) {
            page.note(|line| line.with(Style::Dim, &note));
        }
        page.text(self.palette())
    }
}

impl Terminal {
    /// The colours that are used; none where there are none.
    pub(crate) fn palette(&self) -> Option<Theme> {
        self.color.then_some(self.theme)
    }

    pub(crate) const fn highlights(&self) -> bool {
        self.color && !self.plain_code
    }

    /// Renders a call in one line, with its name in bold; see [`call_text`].
    pub fn call(
        &self,
        tool: &ToolSpec,
        input: Option<&Value>,
        title: Option<&str>,
        room: Room,
    ) -> String {
        let text = call_text(tool, input, title);
        let (name, rest) = text.split_at(text.find([' ', ':']).unwrap_or(text.len()));
        let mut page = Page::new(Room { lines: None, ..room });
        page.line(|line| line.with(Style::Bold, name).with(Style::Plain, rest));
        page.text(self.palette())
    }

    /// Renders how a call ended, in one line; see [`outcome_text`]. `took` is in milliseconds.
    pub fn outcome(&self, outcome: &Outcome, took: u64, room: Room) -> String {
        let style = match outcome.status {
            Status::Done => Style::Dim,
            Status::Failed | Status::Denied | Status::TimedOut | Status::Cancelled => Style::Bad,
        };
        let mut page = Page::new(Room { lines: None, ..room });
        page.line(|line| line.with(style, &outcome_text(outcome, took)));
        page.text(self.palette())
    }

    /// Renders how a call failed, with its whole text. Lines are broken at blanks, and lines beyond
    /// the room are folded. `took` is in milliseconds.
    pub fn failure(&self, outcome: &Outcome, took: u64, room: Room) -> String {
        let text = format!("failed in {}: {}", duration(took), outcome.joined_text());
        let mut page = Page::new(room);
        for (index, line) in lines(&text).enumerate() {
            wrapped(line, if index == 0 { Style::Bad } else { Style::Plain }, &mut page);
        }
        page.fold(&self.hint);
        page.text(self.palette())
    }

    /// Renders notes beside a detail, with their lines broken at blanks; see [`Outcome::notes`].
    pub fn notes(&self, notes: &[String], room: Room) -> String {
        let mut page = Page::new(room);
        for text in notes.iter().flat_map(|note| lines(note)) {
            wrapped(text, Style::Dim, &mut page);
        }
        page.fold(&self.hint);
        page.text(self.palette())
    }

    /// Renders all of a text, with its lines broken at blanks.
    pub fn text(&self, text: &str, room: Room) -> String {
        let mut page = Page::new(Room { lines: None, ..room });
        lines(text).for_each(|text| wrapped(text, Style::Plain, &mut page));
        page.text(self.palette())
    }

    pub(crate) fn shape(&self, detail: &Detail, room: Room, page: &mut Page, depth: usize) {
        match &detail.shape {
            Shape::File { path, first_line, text } => self.file(path, *first_line, text, page),
            Shape::Diff { path, from, hunks, counts, before, after } => {
                let state = self.state(from.as_ref(), before.is_some(), after.is_some());
                if from.is_some() && hunks.is_empty() {
                    let shown = self.shown(path);
                    page.line(|line| line.with(Style::Path, &shown).with(Style::Plain, &state));
                } else {
                    self.diff(path, (hunks, *counts), &state, page);
                }
            }
            Shape::Entries { root, entries } => {
                listing::entries(&self.shown(root), entries, page);
            }
            Shape::Matches { root, files } => {
                let link = |path: &str| link::to(self.links.as_deref()?, root, path);
                listing::matches(&self.shown(root), files, link, page);
            }
            Shape::Terminal { command, output, exit, note } => {
                let end = detail.cut.as_ref().and_then(|cut| cut.end);
                self.output(command, (output, end), room, page);
                if let Some((style, text)) = self.ending(*exit, note.as_deref(), room) {
                    // What is nested shares one fold at the end of all.
                    if depth == 0 {
                        page.fold(&self.hint);
                        page.notes(ENDING, |page| wrapped(&text, style, page));
                    } else {
                        wrapped(&text, style, page);
                    }
                }
            }
            Shape::Markdown { text } => prose(text, page),
            Shape::Thought { text } => {
                lines(text).for_each(|text| wrapped(text, Style::Dim, page));
            }
            Shape::Message { text } => {
                page.line(|line| line.with(Style::Bold, MESSAGE));
                prose(text, page);
            }
            Shape::Sent { path, address, size, caption, .. } => {
                self.sent((path, address.as_deref()), *size, caption.as_deref(), page);
            }
            Shape::Image { blob, size, path } => {
                let text = image_text(blob, *size, path.as_ref().map(|path| self.shown(path)));
                page.line(|line| line.with(Style::Plain, &text));
            }
            Shape::Tree { nodes } => listing::tree(nodes, page),
            Shape::Table { columns, rows } => listing::table(columns, rows, page),
            Shape::Todo { items } => listing::todo(items, page),
            Shape::Progress { text, done, total } => progress(text, *done, *total, page),
            Shape::Many { details } => self.many(details, room, page, depth),
            Shape::Json { value } => json(value, page),
        }
    }

    /// A file that is handed to the person: its name, which is a link, its size and what it is.
    fn sent(
        &self,
        (path, address): (&HostPath, Option<&str>),
        size: u64,
        caption: Option<&str>,
        page: &mut Page,
    ) {
        let (name, size) = (address.map_or_else(|| self.shown(path), Cow::Borrowed), bytes(size));
        let target = self.links.as_deref().and_then(|host| link::to(host, path, &path.text()));
        page.line(|line| {
            let named = line.with(Style::Path, &name).linked(target.as_deref());
            named.with(Style::Dim, &format!(" ({size})"))
        });
        lines(caption.unwrap_or_default()).for_each(|text| wrapped(text, Style::Plain, page));
    }

    fn many(&self, details: &[Detail], room: Room, page: &mut Page, depth: usize) {
        if depth >= DEEPEST {
            page.line(|line| line.with(Style::Dim, "\u{2026} (nested too deep to be shown)"));
            return;
        }
        for (index, detail) in details.iter().enumerate() {
            if index > 0 {
                page.line(|line| line);
            }
            self.shape(detail, room, page, depth + 1);
            if let Some(note) = detail.cut.as_ref().and_then(cut_note) {
                page.line(|line| line.with(Style::Dim, &note));
            }
        }
    }

    /// What becomes of a file beside its text.
    pub(crate) fn state(&self, from: Option<&HostPath>, before: bool, after: bool) -> String {
        match (from, before, after) {
            (Some(from), ..) => format!(" (moved from {})", self.shown(from)),
            (_, false, true) => " (new)".to_owned(),
            (_, true, false) => " (deleted)".to_owned(),
            _ => String::new(),
        }
    }

    /// How a command ended, in words; none where that goes without saying.
    fn ending(&self, exit: Option<i32>, note: Option<&str>, room: Room) -> Option<(Style, String)> {
        let text = match (exit, note) {
            (Some(0), None) => return None,
            (None, None) if room.partial => return None,
            (None, None) => "ended without an exit code".to_owned(),
            (Some(code), None) => format!("exit code {code}"),
            (Some(code), Some(note)) => format!("exit code {code}: {note}"),
            (None, Some(note)) => note.to_owned(),
        };
        let is_bad = self.status.map_or(exit != Some(0), Status::is_error);
        Some((if is_bad { Style::Bad } else { Style::Dim }, text))
    }

    /// A command with its output; of a running one the end of it.
    fn output(
        &self,
        command: &str,
        (output, end): (&str, Option<CutEnd>),
        room: Room,
        page: &mut Page,
    ) {
        for (index, text) in lines(command).enumerate() {
            let prompt = if index == 0 { "$ " } else { "  " };
            page.line(|line| line.with(Style::Dim, prompt).with(Style::Bold, text));
        }
        let mut output = output;
        if (room.partial || self.ends) && room.lines.is_some() {
            let (skipped, tail) = tail(output, page.left());
            // The line that stands for what was left out is among the skipped ones, unless it is seen.
            let seen = lines(tail).count() as u64;
            let left_out = end.filter(|end| skipped > 0 && seen <= end.lines);
            let skipped =
                left_out.map_or(skipped, |end| (skipped - 1).saturating_add(end.left_out));
            if skipped > 0 {
                let earlier = count(skipped, "earlier line", "earlier lines");
                // What still runs has no fold that could be opened.
                let hint = if room.partial { "" } else { &*self.hint };
                let gap = if hint.is_empty() { "" } else { " " };
                let text = format!("\u{2026} {earlier}{gap}{hint}");
                page.note(|line| line.with(Style::Dim, &text));
            }
            output = tail;
        }
        for text in lines(output) {
            page.line(|line| {
                let mut sanitiser = Sanitiser::default();
                // Beyond what the width can take nothing needs to be looked at.
                let most = if room.width == 0 { text.len() } else { usize::from(room.width) * 64 };
                let end = text.floor_char_boundary(most);
                let clean = sanitiser.push(&text[..end]) + &sanitiser.finish();
                line.with(Style::Plain, &clean)
            });
        }
    }

    pub(crate) fn shown<'a>(&self, path: &'a HostPath) -> Cow<'a, str> {
        match &self.root {
            Some(root) => path.shown_from(root),
            None => path.text(),
        }
    }

    fn file(&self, path: &HostPath, first: u64, text: &str, page: &mut Page) {
        page.line(|line| line.with(Style::Path, &self.shown(path)));
        let shown = u64::try_from(page.left()).unwrap_or(u64::MAX);
        let total = lines(text).count() as u64;
        let gutter = digits(first.saturating_add(total.min(shown)));
        let start = lines(text).next().unwrap_or_default();
        let of_file = || Highlighter::of_file(&path.text(), start);
        let mut highlighter = page.highlights().then(of_file).flatten();
        for (index, text) in (0_u64..).zip(lines(text)) {
            page.line(|line| {
                let number = format!("{:>gutter$}  ", first.saturating_add(index));
                let mut line = line.with(Style::Dim, &number).tabs_from_here();
                highlighted(&mut line, text, Style::Plain, highlighter.as_mut());
                line
            });
        }
    }

    /// The line above a diff.
    pub(crate) fn diff_head(
        &self,
        path: &HostPath,
        (hunks, counts): (&[Hunk], Option<LineCounts>),
        state: &str,
        page: &mut Page,
    ) {
        let LineCounts { added, removed } = LineCounts::of(counts, hunks);
        page.line(|line| {
            line.with(Style::Path, &self.shown(path))
                .with(Style::Plain, state)
                .with(Style::Added, &format!(" +{added}"))
                .with(Style::Removed, &format!(" -{removed}"))
        });
    }

    fn diff(
        &self,
        path: &HostPath,
        (hunks, counts): (&[Hunk], Option<LineCounts>),
        state: &str,
        page: &mut Page,
    ) {
        self.diff_head(path, (hunks, counts), state, page);
        let gutter = gutter(hunks);
        for (index, hunk) in hunks.iter().enumerate() {
            if index > 0 {
                page.line(|line| line.with(Style::Dim, "\u{22ef}"));
            }
            diff_hunk(hunk, gutter, page);
        }
    }
}

fn diff_hunk(hunk: &Hunk, gutter: usize, page: &mut Page) {
    let words = changed_words(&hunk.lines, page.left().saturating_add(1));
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    for (index, changed) in hunk.lines.iter().enumerate() {
        let numbers = numbers(changed.mark, (&mut old, &mut new), gutter);
        page.line(|line| diff_line(line, &numbers, changed, words.get(index)));
    }
}

/// The numbers before a line of a diff, of the old and the new text, which go on with it.
pub(crate) fn numbers(mark: LineMark, (old, new): (&mut u64, &mut u64), gutter: usize) -> String {
    let numbers = match mark {
        LineMark::Kept => format!("{old:>gutter$} {new:>gutter$}   "),
        LineMark::Removed => format!("{old:>gutter$} {:gutter$} - ", ""),
        LineMark::Added => format!("{:gutter$} {new:>gutter$} + ", ""),
    };
    if mark != LineMark::Added {
        *old = old.saturating_add(1);
    }
    if mark != LineMark::Removed {
        *new = new.saturating_add(1);
    }
    numbers
}

/// Columns that the biggest number of a line takes.
pub(crate) fn gutter(hunks: &[Hunk]) -> usize {
    let last = |hunk: &Hunk| {
        let old = hunk.old_start.saturating_add(hunk.old_lines);
        old.max(hunk.new_start.saturating_add(hunk.new_lines))
    };
    digits(hunks.iter().map(last).max().unwrap_or(0))
}

pub(crate) fn diff_line(
    line: Line,
    numbers: &str,
    changed: &DiffLine,
    words: Option<&Vec<std::ops::Range<usize>>>,
) -> Line {
    let (plain, marked) = match changed.mark {
        LineMark::Kept => (Style::Plain, Style::Plain),
        LineMark::Added => (Style::Added, Style::AddedWord),
        LineMark::Removed => (Style::Removed, Style::RemovedWord),
    };
    let gutter = if changed.mark == LineMark::Kept { Style::Dim } else { plain };
    let mut line = line.with(gutter, numbers).tabs_from_here();
    let words = words.map_or(&[][..], Vec::as_slice);
    let visible = made_visible(&changed.text, words);
    let (text, words) = match &visible {
        Some((text, words)) => (text, &words[..]),
        None => (&changed.text, words),
    };
    let spans = words.iter().map(|range| (range.start, range.end));
    spanned(&mut line, text, spans, plain, marked);
    line
}

/// Adds a line of code, with its parts where they are known.
pub(crate) fn highlighted(
    line: &mut Line,
    text: &str,
    plain: Style,
    highlighter: Option<&mut Highlighter>,
) {
    match highlighter.and_then(|highlighter| highlighter.line(text)) {
        Some(parts) => parts.into_iter().for_each(|(range, style)| {
            line.push(style, text.get(range).unwrap_or_default());
        }),
        None => line.push(plain, text),
    }
}

/// Adds a text of which some byte ranges look different; ranges that do not fit are left out.
pub(crate) fn spanned(
    line: &mut Line,
    text: &str,
    spans: impl Iterator<Item = (usize, usize)>,
    plain: Style,
    marked: Style,
) {
    let mut at = 0;
    for (start, end) in spans {
        if line.is_full() {
            return;
        }
        let (Some(before), Some(span)) = (text.get(at..start), text.get(start..end)) else {
            continue;
        };
        line.push(plain, before);
        line.push(marked, span);
        at = end;
    }
    line.push(plain, text.get(at..).unwrap_or_default());
}

/// The last lines of a text, and how many come before.
fn tail(text: &str, most: usize) -> (u64, &str) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = match most {
        0 => text.len(),
        most => body.rmatch_indices('\n').nth(most - 1).map_or(0, |(at, _)| at + 1),
    };
    (lines(&text[..start]).count() as u64, &text[start..])
}

/// Markdown as it is read.
fn prose(text: &str, page: &mut Page) {
    let mut prose = crate::Prose::default();
    lines(text).for_each(|text| prose.line(text, page));
    prose.end(page);
}

/// Breaks a text at blanks, and in a word that is longer than a line.
fn wrapped(text: &str, style: Style, page: &mut Page) {
    hanging(text, style, "", page);
}

/// The same with this behind the blanks of what goes on below.
pub(crate) fn hanging(text: &str, style: Style, mark: &str, page: &mut Page) {
    let body = text.trim_start_matches(' ');
    let mut indent = text[..text.len() - body.len()].to_owned();
    let mut words = body.split(' ').peekable();
    // What is folded away is counted as one line for each line of the text.
    while page.left() > 0 && words.peek().is_some() {
        page.line(|line| {
            let mut line = line.with(style, &indent);
            let mut empty = true;
            while let Some(word) = words.peek_mut() {
                let left = line.left();
                if empty && left > 0 && !fits(word, left.saturating_add(1)) {
                    let (first, rest) = split(word, left);
                    line.push(style, first);
                    *word = rest;
                    break;
                }
                if !empty && !fits(word, left) {
                    break;
                }
                if !empty {
                    line.push(style, " ");
                }
                line.push(style, word);
                empty = false;
                words.next();
            }
            line
        });
        if !indent.ends_with(mark) {
            indent.push_str(mark);
        }
    }
    if words.peek().is_some() {
        page.line(|line| line.with(style, text));
    }
}

/// Whether a blank and the word still fit; a word of absurd length is not even measured.
fn fits(word: &str, left: usize) -> bool {
    word.len() / 64 <= left && width(word) < left
}

fn progress(text: &str, done: Option<u64>, total: Option<u64>, page: &mut Page) {
    let steps = match (done, total) {
        (Some(done), Some(total)) if total > 0 => {
            let done = done.min(total);
            let percent = u128::from(done) * 100 / u128::from(total);
            let filled = usize::try_from(percent / 10).unwrap_or(10);
            format!(
                " [{}{}] {percent}% ({done} of {total})",
                "#".repeat(filled),
                "-".repeat(10 - filled)
            )
        }
        (Some(done), _) => format!(" ({done})"),
        _ => String::new(),
    };
    page.line(|line| line.with(Style::Plain, text).with(Style::Dim, &steps));
}

fn json(value: &Value, page: &mut Page) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string());
    for text in lines(&text) {
        page.line(|line| line.with(Style::Plain, text));
    }
}

/// An image in words: `image/png 640x480, 12.3 KB (a.png)`.
pub(crate) fn image_text(
    blob: &Blob,
    size: Option<(u32, u32)>,
    path: Option<Cow<'_, str>>,
) -> String {
    let size = size.map_or_else(String::new, |(width, height)| format!(" {width}x{height}"));
    let path = path.map_or_else(String::new, |path| format!(" ({path})"));
    format!("{}{size}, {}{path}", blob.mime, bytes(blob.len))
}

/// What a cut left out, in words; none where nothing was.
pub(crate) fn cut_note(cut: &Cut) -> Option<String> {
    let (one, many) = match cut.by {
        CutBy::Lines => ("line", "lines"),
        CutBy::Chars => ("character", "characters"),
        CutBy::Bytes => ("byte", "bytes"),
        CutBy::Tokens => ("token", "tokens"),
        CutBy::Items => ("item", "items"),
    };
    if cut.rest.is_none() && cut.from <= 1 && cut.total == Some(cut.to) {
        return None;
    }
    let total = cut.total.map_or_else(String::new, |total| format!(" of {total}"));
    let shown = if cut.to < cut.from {
        format!("0{total} {many} shown")
    } else {
        let ends = cut.end.zip(cut.total).filter(|(end, _)| end.shown > 0);
        let and = ends.map_or_else(String::new, |(end, total)| {
            format!(" and {}-{total}", total.saturating_sub(end.shown).saturating_add(1))
        });
        format!("{many} {}-{}{and}{total} shown", cut.from, cut.to)
    };
    let shown = if cut.from == 1 && cut.to == 1 && cut.total.is_none() {
        count(1, one, many) + " shown"
    } else {
        shown
    };
    Some(match &cut.rest {
        Some(rest) => format!("[{shown}; kept at {rest}]"),
        None => format!("[{shown}]"),
    })
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |power| power as usize + 1)
}
