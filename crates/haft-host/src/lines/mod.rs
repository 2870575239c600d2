//! Searches the lines of one file, from any reader, with ripgrep's searcher.
//!
//! **Invariant:** memory is bounded whatever a file holds. A line of many MiB is searched in
//! [`parts`](crate::chunks) that count as one line. If it still exceeds [`NARROW_LIMIT`] (lines of
//! UTF-16), the search of the file ends with a cause. At most [`TEXT_LIMIT`] bytes of matched text
//! are stored for one file. Further matches are counted; a search that skips those before stores
//! them. This module knows no folder and no ignore file.
//!
//! Binary files are treated as by ripgrep. Below a folder, a file with a NUL in its first 64 KiB is
//! skipped. A later NUL ends its search: it counts as binary, and matches before the NUL are given
//! with its place (ripgrep drops them in its counts). A file that was named itself is searched to
//! its end; matches behind a NUL are counted without their text. `$` matches before `\r\n`, too.
//! [`encoding`] describes the search of bytes that are not UTF-8.
//!
//! With context, the lines around the current one are held as well. If they are too long for that,
//! or in UTF-16, the search ends as [`tight`](FileResult::tight). A [`Grep::narrow`] search, which
//! takes more memory and cuts long lines into smaller parts, then goes through the file again.

use std::{
    cell::Cell,
    collections::VecDeque,
    io::{self, Read},
    mem,
};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use haft_types::MatchLine;

use self::{
    encoding::{Checked, Doubt, Reading, as_text},
    window::{trimmed, window},
};
use crate::{
    GrepMode, GrepQuery, SearchError, Skipped,
    chunks::{Cuts, PART, Parts},
    pattern::{self, PATTERN_LIMIT, STATES_LIMIT},
};

pub(crate) mod encoding;
mod window;

/// Longest line that can be searched, in bytes.
pub(crate) const LINE_LIMIT: usize = 8 << 20;
/// Memory of a search in smaller parts, in bytes.
const NARROW_LIMIT: usize = 64 << 20;
/// Longest file that can be searched across lines, in bytes.
const MULTILINE_LIMIT: usize = 32 << 20;
/// Bytes times characters of a pattern that are searched with nothing that could stop it: some
/// seconds in a line, up to half a minute across lines.
const LINE_WORK: u64 = 1 << 29;
const MULTILINE_WORK: u64 = 1 << 32;
/// Most bytes of found text that are kept of one file.
const TEXT_LIMIT: usize = 4 << 20;
/// Most marked matches of one line.
const SPAN_LIMIT: usize = 1000;
/// How far behind a found stretch its pattern may look.
const LOOK_AHEAD: usize = 128;

/// A compiled search for lines. Each thread takes a clone: the memory that a matcher works in is at
/// hand for one thread alone, and the others would wait for it at every line.
#[derive(Clone, Debug)]
pub(crate) struct Grep {
    matcher: RegexMatcher,
    query: GrepQuery,
    /// Characters that the pattern stands for.
    size: u64,
    /// Whether lines are cut so that with their context they fit into [`NARROW_LIMIT`].
    narrow: bool,
    /// Whether `\r` before `\n` is a part of the end of a line, as `rg --crlf` has it.
    crlf: bool,
    /// Whether the pattern names characters outside ASCII.
    foreign: bool,
    /// How the bytes of a file are taken.
    reading: Reading,
}

/// What the search of one file gave.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub(crate) struct FileResult {
    /// Matching lines that were counted.
    pub(crate) count: u64,
    /// What is shown of them.
    pub(crate) lines: Vec<MatchLine>,
    /// The first of the matching lines, which were skipped.
    pub(crate) skipped: u64,
    /// Matching lines behind binary content.
    pub(crate) hidden: u64,
    /// Those of `lines` that a match goes over into from the line before.
    pub(crate) joined: Vec<usize>,
    /// Memory that `lines` takes, in bytes.
    pub(crate) size: usize,
    /// Whether binary content was met.
    pub(crate) binary: bool,
    /// Where binary content ended the search, in bytes.
    pub(crate) until: Option<u64>,
    /// Whether lines and their context were too long to be held: see [`Grep::narrow`].
    pub(crate) tight: bool,
    /// Whether lines were so long that they were searched in parts.
    pub(crate) parts: bool,
    /// Why the file has to be searched again, with its encoding: see [`Grep::again`].
    pub(crate) doubt: Option<Doubt>,
    /// Whether characters outside ASCII were not met because of the encoding.
    pub(crate) unread: bool,
    /// Why the search ended early.
    pub(crate) error: Option<io::Error>,
}

impl Grep {
    /// Compiles the pattern.
    pub(crate) fn new(query: &GrepQuery) -> Result<Self, SearchError> {
        let traits = pattern::check(query)?;
        let build = |crlf: bool| {
            let mut builder = RegexMatcherBuilder::new();
            builder
                .multi_line(true)
                .unicode(true)
                .case_insensitive(query.ignore_case)
                .fixed_strings(query.literal)
                .ban_byte(Some(b'\0'))
                .size_limit(PATTERN_LIMIT)
                .dfa_size_limit(STATES_LIMIT)
                .crlf(crlf);
            if query.multiline {
                builder.dot_matches_new_line(true).line_terminator(None);
            } else if !crlf {
                builder.line_terminator(Some(b'\n'));
            }
            builder.build(&query.pattern)
        };
        // A pattern that itself says where \r stands is none for `--crlf`.
        let with_crlf = traits.ends.then(|| build(true).ok()).flatten();
        let (crlf, matcher) = match with_crlf {
            Some(matcher) => (true, matcher),
            None => (false, build(false).map_err(|error| pattern::refusal(query, &error))?),
        };
        let (size, foreign) = (traits.size.max(1), traits.foreign);
        let reading = if query.unmarked { Reading::Bytes } else { Reading::Open };
        Ok(Self { matcher, query: query.clone(), size, narrow: false, crlf, foreign, reading })
    }

    /// The same search for a file whose lines and their context were too long to be held.
    pub(crate) fn narrow(&self) -> Self {
        Self { narrow: true, ..self.clone() }
    }

    /// A searcher, to be kept from file to file; `named` for a file that was named itself.
    pub(crate) fn searcher(&self, named: bool) -> Searcher {
        let shown = self.query.mode == GrepMode::Content;
        let context = |lines: u32| if shown { lines as usize } else { 0 };
        let limit = match self.query.multiline {
            true => self.longest_across(),
            false if self.narrow => NARROW_LIMIT,
            false => LINE_LIMIT,
        };
        SearcherBuilder::new()
            .line_number(shown)
            .multi_line(self.query.multiline)
            .before_context(context(self.query.before))
            .after_context(context(self.query.after))
            .heap_limit(Some(limit))
            .bom_sniffing(!self.query.unmarked)
            .line_terminator(if self.crlf {
                LineTerminator::crlf()
            } else {
                LineTerminator::byte(b'\n')
            })
            .encoding(self.reading.decoded())
            .max_matches(self.most().filter(|_| !self.query.multiline))
            .binary_detection(if named {
                BinaryDetection::convert(0)
            } else {
                BinaryDetection::quit(0)
            })
            .build()
    }

    /// Most matching lines that are looked for in one file. The searcher counts matches, of which
    /// one line may have several where they may go over lines; there the lines are counted here.
    fn most(&self) -> Option<u64> {
        (self.query.per_file > 0).then_some(self.query.per_file)
    }

    /// How many matching lines of a file are skipped; its name is none where it is searched alone.
    pub(crate) fn skip(&self, name: impl FnOnce() -> Option<String>) -> u64 {
        let skip = &self.query.skip;
        if skip.lines > 0 && name() == skip.path { skip.lines } else { 0 }
    }

    /// What ended a search, for whoever asked for it.
    fn in_words(&self, error: io::Error) -> io::Error {
        if !is_tight(&error) {
            return error;
        }
        if !self.query.multiline {
            return io::Error::other(
                "has a line of many MB, which only in UTF-8 can be searched in parts; convert it \
                 to UTF-8 to search all of it",
            );
        }
        let (most, size) = (self.longest_across() / 1_000_000, self.size);
        io::Error::other(format!(
            "larger than the {most} MB in which a pattern of {size} characters is searched across \
             lines; search it without multiline, or for less"
        ))
    }

    /// From how many bytes on a line is cut.
    fn part(&self) -> usize {
        let part = least(LINE_WORK / self.size, PART);
        if !self.narrow {
            return part;
        }
        // The lines before, the one that matched last, the present one, and what is read ahead; a
        // part may be over its length by a quarter and as much as is read at once.
        part.min(NARROW_LIMIT / (self.query.before as usize + 3) / 9 * 4)
    }

    /// The longest file that is searched across lines, in bytes.
    fn longest_across(&self) -> usize {
        least(MULTILINE_WORK / self.size, MULTILINE_LIMIT)
    }

    /// Searches one file and keeps what it finds behind the first `skip` matching lines; `stopped`
    /// is asked often and ends the search.
    pub(crate) fn search(
        &self,
        searcher: &mut Searcher,
        reader: impl Read,
        skip: u64,
        stopped: &dyn Fn() -> bool,
    ) -> FileResult {
        let cuts = Cuts::default();
        let mut sink = Lines {
            grep: self,
            stopped,
            cuts: &cuts,
            skip,
            begun: false,
            past: false,
            before: VecDeque::new(),
            before_size: 0,
            result: FileResult::default(),
        };
        let odd = Cell::new(false);
        let asked = self.foreign && self.reading == Reading::Open;
        let reader = Stoppable { reader, ended: stopped };
        let reader = Checked::new(reader, asked.then_some(&odd));
        let ended = if self.query.multiline {
            searcher.search_reader(&self.matcher, reader, &mut sink)
        } else {
            let whole = matches!(self.reading, Reading::Decoded(_));
            let reader = Parts::new(reader, &cuts, self.part()).whole(whole);
            searcher.search_reader(&self.matcher, reader, &mut sink)
        };
        if odd.get() {
            return FileResult { doubt: Some(Doubt::Foreign), ..FileResult::default() };
        }
        let tight = !self.query.multiline && !self.narrow;
        let tight = tight && ended.as_ref().err().is_some_and(is_tight);
        let error = ended.err().map(|error| self.in_words(error));
        let result = mem::take(&mut sink.result);
        let nul = (result.binary && self.reading == Reading::Open).then_some(Doubt::Nul);
        let doubt = nul.or(result.doubt);
        let unread = self.reading == Reading::Unread;
        FileResult { error, tight, doubt, unread, parts: cuts.any(), ..result }
    }
}

/// The lesser of two lengths.
fn least(length: u64, most: usize) -> usize {
    usize::try_from(length).map_or(most, |length| length.min(most))
}

/// Reports whether what ended a search is that it would have taken too much memory.
fn is_tight(error: &io::Error) -> bool {
    error.to_string().contains("allocation limit")
}

/// A reader that fails once its search is stopped.
struct Stoppable<'a, R> {
    reader: R,
    ended: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.ended)() {
            return Err(stopped());
        }
        self.reader.read(buffer)
    }
}

fn stopped() -> io::Error {
    io::Error::other("the search was stopped")
}

impl Skipped {
    /// Counts a file that was searched.
    pub(crate) fn took(&mut self, result: &FileResult) {
        let to_its_end = result.until.is_none();
        self.searched += u64::from(to_its_end && !result.unread);
        self.binary += u64::from(!to_its_end);
        self.unread += u64::from(to_its_end && result.unread);
        self.parts += u64::from(result.parts);
    }
}

/// Collects the lines of one file.
struct Lines<'a> {
    grep: &'a Grep,
    stopped: &'a dyn Fn() -> bool,
    cuts: &'a Cuts,
    /// Matching lines that are skipped from here on.
    skip: u64,
    /// Whether a matching line is kept.
    begun: bool,
    /// Whether a match over lines began behind those that are wanted.
    past: bool,
    /// The last lines of context before the first matching line that is kept.
    before: VecDeque<MatchLine>,
    /// Memory that `before` takes, in bytes.
    before_size: usize,
    result: FileResult,
}

impl Lines<'_> {
    /// Keeps a line unless too much of the file is kept already; the first matching one always, so
    /// that who skips on meets every line.
    fn keep(&mut self, number: u64, line: &[u8], spans: &[(usize, usize)], joined: bool) {
        let matching = !spans.is_empty();
        if self.grep.reading == Reading::Open && str::from_utf8(line).is_err() {
            self.result.doubt = Some(Doubt::Shown);
        }
        if self.result.doubt.is_some() || !self.replaces(number, matching) {
            return;
        }
        if matching && !self.begun {
            self.begun = true;
            self.result.lines.extend(mem::take(&mut self.before));
            self.result.size += mem::take(&mut self.before_size);
        } else if self.result.size >= TEXT_LIMIT {
            return;
        }
        let (text, spans) = match self.grep.reading {
            Reading::Shown(encoding) => {
                let (text, spans) = as_text(trimmed(line), spans, encoding);
                window(text.as_bytes(), &spans, self.grep.query.max_line)
            }
            _ => window(line, spans, self.grep.query.max_line),
        };
        let line = MatchLine { number, text, spans };
        if self.begun {
            if joined {
                self.result.joined.push(self.result.lines.len());
            }
            self.result.size += size_of(&line);
            self.result.lines.push(line);
            return;
        }
        self.before_size += size_of(&line);
        self.before.push_back(line);
        while self.before.len() > self.grep.query.before as usize || self.before_size > TEXT_LIMIT {
            let Some(line) = self.before.pop_front() else { break };
            self.before_size -= size_of(&line);
        }
    }

    /// Whether a line is to be kept, in place of what was kept of it: of one that was cut, each part
    /// that matches is shown, and only where none does the first or, before a match, the last one.
    fn replaces(&mut self, number: u64, matching: bool) -> bool {
        let lines = &mut self.result.lines;
        let last = if self.begun { lines.last() } else { self.before.back() };
        let Some(last) = last.filter(|last| last.number == number && self.cuts.any()) else {
            return true;
        };
        let (size, context) = (size_of(last), last.spans.is_empty());
        if !self.begun {
            self.before_size -= size;
            self.before.pop_back();
        } else if matching && context {
            self.result.size -= size;
            lines.pop();
        }
        matching || !self.begun
    }

    /// How many of the next matching lines are skipped; the context before them goes with them.
    fn skip(&mut self, lines: u64) -> u64 {
        let skipped = lines.min(self.skip);
        if skipped > 0 {
            self.skip -= skipped;
            self.result.skipped += skipped;
            self.before.clear();
            self.before_size = 0;
        }
        skipped
    }

    /// The number of a line in the file, where parts of one line have one number.
    fn number(&self, passed: Option<u64>, offset: u64) -> u64 {
        passed.unwrap_or(0).saturating_sub(self.cuts.before(offset))
    }

    /// Where the pattern matches in the found lines.
    fn spans(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<Vec<(usize, usize)>> {
        let range = found.bytes_range_in_buffer();
        let multiline = searcher.multi_line_with_matcher(&self.grep.matcher);
        let (buffer, range) = if multiline {
            let end = (range.end + LOOK_AHEAD).min(found.buffer().len());
            (&found.buffer()[..end], range)
        } else {
            // A line stands alone: `\A` and `\z` are its ends.
            let line = found.bytes();
            (line.strip_suffix(b"\n").unwrap_or(line), 0..line.len())
        };
        let max = self.grep.query.max_line;
        let mut spans = Vec::new();
        let mut empty = None;
        let mut empties = 0;
        let mut line_first = None;
        let take = |found: grep_matcher::Match| {
            let (start, stop) = (found.start(), found.end().min(range.end));
            if found.start() >= range.end && !(found.start() == range.end && spans.is_empty()) {
                return false;
            }
            let span = (start - range.start, stop.max(start) - range.start);
            if span.0 == span.1 {
                empty.get_or_insert(span);
                empties += 1;
                return empties < SPAN_LIMIT;
            }
            spans.push(span);
            let first: usize = *line_first.get_or_insert(span.0);
            // Behind the window of a long line nothing is shown, so nothing need be found there.
            spans.len() < SPAN_LIMIT && (multiline || max == 0 || span.1 - first <= max * 4)
        };
        let done = self.grep.matcher.find_iter_at(buffer, range.start, take);
        done.map_err(io::Error::other)?;
        if spans.is_empty() {
            spans.extend(empty);
        }
        Ok(spans)
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if (self.stopped)() {
            return Err(stopped());
        }
        let multiline = self.grep.query.multiline;
        let lines = || if multiline { found.lines().count() as u64 } else { 1 };
        if self.past || self.result.doubt.is_some() {
            return Ok(false);
        }
        let before = self.result.count;
        match self.grep.query.mode {
            GrepMode::Files => {
                self.result.count = 1;
                return Ok(false);
            }
            GrepMode::Count => {
                self.result.count += lines();
                return Ok(true);
            }
            GrepMode::Content => self.result.count += lines(),
        }
        let most = self.grep.most().filter(|_| multiline).unwrap_or(u64::MAX);
        if self.result.binary {
            self.result.hidden += lines();
            self.past = self.result.count >= most;
            return Ok(true);
        }
        // Marks are not looked for where none of the lines is kept.
        let skipped = if self.skip > 0 { self.skip(lines()) } else { 0 };
        let all = skipped > 0 && skipped == lines();
        if all || (self.begun && self.result.size >= TEXT_LIMIT) {
            self.past = self.result.count >= most;
            return Ok(true);
        }
        let spans = self.spans(searcher, found)?;
        let mut start = 0;
        let first = self.number(found.line_number(), found.absolute_byte_offset());
        for ((line, number), index) in found.lines().zip(first..).zip(0..) {
            let end = start + line.len();
            let mut inside: Vec<(usize, usize)> = spans
                .iter()
                .filter(|span| span.0 < end && (span.1 > start || span.0 >= start))
                .map(|span| (span.0.max(start) - start, span.1.min(end) - start))
                .collect();
            if inside.is_empty() {
                // Found at the very end, or behind as many as are marked: a line with no mark
                // would be taken for context.
                inside.push((trimmed(line).len(), trimmed(line).len()));
            }
            let joined = multiline && spans.iter().any(|span| span.0 < start && span.1 > start);
            start = end;
            // A match is given whole, so that the limit is reached where another one begins.
            self.past |= !joined && before + index >= most.saturating_sub(1);
            if index >= skipped {
                self.keep(number, line, &inside, joined);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if (self.stopped)() {
            return Err(stopped());
        }
        // The search itself knows no skipped lines: it gives their context as well.
        if !self.result.binary && (self.begun || self.grep.query.before > 0) {
            let number = self.number(context.line_number(), context.absolute_byte_offset());
            self.keep(number, context.bytes(), &[], false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.result.binary = true;
        Ok(true)
    }

    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        let Some(offset) = finish.binary_byte_offset() else { return Ok(()) };
        self.result.binary = true;
        if searcher.binary_detection().quit_byte().is_some() {
            self.result.until = Some(offset.saturating_sub(self.cuts.before(offset)));
        }
        Ok(())
    }
}

/// Memory that a line takes, in bytes.
fn size_of(line: &MatchLine) -> usize {
    line.text.len() + line.spans.len() * 8 + mem::size_of::<MatchLine>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Skip;

    fn query(pattern: &str) -> GrepQuery {
        GrepQuery { pattern: pattern.into(), max_line: 40, ..GrepQuery::default() }
    }

    fn run(query: &GrepQuery, text: &[u8]) -> FileResult {
        let grep = Grep::new(query).unwrap();
        let result = grep.search(&mut grep.searcher(false), text, grep.skip(|| None), &|| false);
        let look = |most: usize| Some(text[..most.min(text.len())].to_vec());
        let Some(next) = result.doubt.and_then(|_| grep.again(&result, look)) else {
            return result;
        };
        next.search(&mut next.searcher(false), text, next.skip(|| None), &|| false)
    }

    fn marked(line: &MatchLine) -> Vec<&str> {
        line.spans.iter().map(|&(a, b)| &line.text[a as usize..b as usize]).collect()
    }

    #[test]
    fn lines_come_with_numbers_spans_and_context() {
        let query = GrepQuery { before: 1, after: 1, ..query("b+") };
        let result = run(&query, b"a\r\nabba bb\r\nc\nd\n");
        let lines: Vec<_> = result.lines.iter().map(|l| (l.number, &*l.text)).collect();
        assert_eq!(lines, [(1, "a"), (2, "abba bb"), (3, "c")]);
        assert_eq!(marked(&result.lines[1]), ["bb", "bb"]);
        assert!(result.lines[0].spans.is_empty());
        assert_eq!(result.count, 1);
    }

    #[test]
    fn long_lines_are_windowed_around_the_match() {
        for width in [1, 30, 39, 200, 5000] {
            for fill in ["x", "é", "漢", "\u{1F600}"] {
                let line = format!("{}needle{}\n", fill.repeat(width), fill.repeat(width));
                let result = run(&query("needle"), line.as_bytes());
                let found = &result.lines[0];
                assert_eq!(marked(found), ["needle"], "{width} {fill}");
                assert!(found.text.chars().count() <= 42, "{width} {fill}: {}", found.text);
                assert_eq!(found.text.starts_with('…'), width > 10, "{width} {fill}");
            }
        }
    }

    #[test]
    fn invalid_utf8_is_found_and_its_spans_fit_the_text() {
        let query = GrepQuery { unmarked: true, ..query("(?-u)ne.dle") };
        let result = run(&query, b"\xf1\xfe ne\xf0dle \xffrest needle\n");
        assert_eq!(marked(&result.lines[0]), ["ne\u{FFFD}dle", "needle"]);
        let utf16: Vec<u8> =
            "\u{FEFF}a needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let query = super::tests::query("needle");
        assert_eq!(marked(&run(&query, &utf16).lines[0]), ["needle"]);
    }

    #[test]
    fn matches_over_lines_are_split_into_lines() {
        let query = GrepQuery { multiline: true, ..query("b.*c") };
        let result = run(&query, b"a b\nx\nc d\nno\n");
        let lines: Vec<_> = result.lines.iter().map(|l| (l.number, marked(l).concat())).collect();
        let (b, x, c) = ("b\n".trim().to_owned(), "x".to_owned(), "c".to_owned());
        assert_eq!(lines, [(1, b), (2, x), (3, c)]);
        assert_eq!(result.count, 3);
    }

    #[test]
    fn every_line_of_a_match_is_shown_however_many_there_are() {
        let query = GrepQuery { multiline: true, ..query("\\w\n|$") };
        let result = run(&query, &[&b"a\n".repeat(3 * SPAN_LIMIT)[..], b"-"].concat());
        let shown = result.lines.iter().filter(|line| !line.spans.is_empty()).count();
        assert_eq!((shown, result.count), (3 * SPAN_LIMIT + 1, 3 * SPAN_LIMIT as u64 + 1));
    }

    #[test]
    fn binary_files_are_told_and_what_was_found_before_stays() {
        assert!(run(&query("a"), b"a\n\0\n").binary);
        let mut late = b"needle\n".repeat(20_000);
        late.extend_from_slice(b"\0\nneedle\n");
        let result = run(&query("needle"), &late);
        assert!(result.binary && result.count > 5_000 && result.count <= 20_000);
        assert_eq!(result.until, Some(140_000));
        let grep = Grep::new(&query("needle")).unwrap();
        let named = grep.search(&mut grep.searcher(true), &b"\0\nneedle\n"[..], 0, &|| false);
        assert!(named.binary && named.count == 1 && named.lines.is_empty());
        assert_eq!(named.until, None);
    }

    #[test]
    fn lines_of_many_mebibytes_are_searched_to_their_end() {
        for fill in ["x", "word "] {
            let fill = fill.repeat(3 * LINE_LIMIT / fill.len());
            let text = format!("one\n{fill} needle {fill} needle{fill}\nlast needle\n");
            let result = run(&query("needle"), text.as_bytes());
            let lines: Vec<_> = result.lines.iter().map(|l| (l.number, marked(l)[0])).collect();
            assert_eq!(lines, [(2, "needle"), (2, "needle"), (3, "needle")]);
            assert!(result.parts && result.error.is_none() && result.size < 10_000);
        }
    }

    #[test]
    fn lines_too_long_for_their_context_are_cut_into_smaller_parts() {
        let (short, endless) = ("l\n".repeat(9), "word ".repeat(LINE_LIMIT / 4));
        let text = format!("{endless}\n{short}needle\n{endless}\n{endless}\n{short}needle\nl\n");
        for (before, after) in [(0, 1), (1, 0), (1, 1), (20, 20), (1_000, 1_000)] {
            let grep = Grep::new(&GrepQuery { before, after, ..query("needle|^l$") }).unwrap();
            let first = grep.search(&mut grep.searcher(false), text.as_bytes(), 0, &|| false);
            assert!(first.tight && first.error.is_some(), "{before} {after}");
            let narrow = grep.narrow();
            let mut searcher = narrow.searcher(false);
            let result = narrow.search(&mut searcher, text.as_bytes(), 0, &|| false);
            assert!(result.error.is_none() && !result.tight, "{:?}", result.error);
            let met: Vec<u64> =
                result.lines.iter().filter(|l| !l.spans.is_empty()).map(|l| l.number).collect();
            assert_eq!(met, (2..=11).chain(14..=24).collect::<Vec<_>>(), "{before} {after}");
            assert_eq!(result.count, 21);
        }
    }

    #[test]
    fn endless_lines_and_endless_matches_take_bounded_memory() {
        let long = run(&query("needle"), &vec![b'x'; 2 * LINE_LIMIT]);
        assert!(long.error.is_none() && long.parts && long.count == 0);
        let mark = "\u{feff}".encode_utf16().chain(std::iter::repeat_n(0x78, LINE_LIMIT));
        let wide: Vec<u8> = mark.flat_map(u16::to_le_bytes).collect();
        assert!(run(&query("needle"), &wide).error.is_some());
        let many = GrepQuery { max_line: 0, ..query("x") };
        let result = run(&many, &b"xxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(200_000));
        assert!(result.count == 200_000 && result.size < TEXT_LIMIT + (1 << 20));
    }

    #[test]
    fn a_limit_counts_lines_however_many_matches_they_have() {
        let text = b"ab ab\nx\nab ab ab\ny\nab\nz\nab\n";
        for multiline in [false, true] {
            for (per_file, lines) in [(1, 2), (2, 4), (3, 6), (4, 7), (9, 7)] {
                let query = GrepQuery { multiline, per_file, after: 1, ..query("a.?b|b") };
                let given = run(&query, text).lines.len();
                assert_eq!(given, lines, "{multiline} {per_file}");
            }
        }
    }

    #[test]
    fn skipped_lines_are_counted_and_those_behind_them_given_with_their_context() {
        let text = b"a1\nx\na2\ny\nz\na3\na4\nw\n";
        let of = |skip, multiline| {
            let skip = Skip { path: None, lines: skip };
            let pattern = if multiline { "a3\na4|a\\d" } else { "a" };
            let query = GrepQuery { before: 1, after: 1, skip, multiline, ..query(pattern) };
            let result = run(&query, text);
            assert_eq!(result.count, 4);
            (result.skipped, result.lines.iter().map(|line| line.number).collect::<Vec<_>>())
        };
        for multiline in [false, true] {
            assert_eq!(of(0, multiline), (0, (1..=8).collect()));
            assert_eq!(of(1, multiline), (1, vec![2, 3, 4, 5, 6, 7, 8]));
            assert_eq!(of(2, multiline), (2, vec![5, 6, 7, 8]));
            assert_eq!(of(3, multiline), (3, vec![7, 8]));
            assert_eq!(of(4, multiline), (4, vec![]));
            assert_eq!(of(5, multiline), (4, vec![]));
        }
    }

    #[test]
    fn who_skips_what_was_given_meets_every_line() {
        // Context alone is more than is kept, and a match of many lines, too.
        let dull = format!("{}\n", "dull ".repeat(400)).repeat(3 * TEXT_LIMIT / 4_000);
        let far = format!("{dull}needle\n{dull}needle\nneedle\n");
        let near = "needle\n".repeat(3 * TEXT_LIMIT / 60);
        for (text, multiline) in [(far, false), (near.clone(), false), (near, true)] {
            let (mut met, mut rounds) = (0, 0);
            loop {
                let pattern = if multiline { "(needle\n)+" } else { "needle" };
                let skip = Skip { path: None, lines: met };
                let query = GrepQuery {
                    before: 100_000,
                    after: 9,
                    max_line: 0,
                    multiline,
                    skip,
                    ..query(pattern)
                };
                let result = run(&query, text.as_bytes());
                let given = result.lines.iter().filter(|line| !line.spans.is_empty()).count();
                assert_eq!((result.skipped, result.hidden), (met, 0));
                assert!(result.error.is_none(), "{:?}", result.error);
                assert!(result.size < TEXT_LIMIT + (1 << 20), "{}", result.size);
                met += given as u64;
                rounds += 1;
                if met == result.count {
                    break;
                }
                assert!(given > 0 && rounds < 9, "{met} of {}", result.count);
            }
            assert!(rounds > 1);
        }
    }

    #[test]
    fn every_line_that_matches_is_marked_whatever_its_end_and_the_match() {
        let patterns = "$ ^ ;?$ \\w*$ a*$ foo|$ #.*|$ \\z a* \\s*$ \\b|$ \\r?$ \\r \\s (?i)FOO|$ a.*$ \
                        $\\s? [^a]* \\s+\\z";
        let patterns = patterns.split(' ').chain(["", "[ \\t]*$"]);
        let lines = ["", "a", "foo; ", "\u{e9}#", " \t", "a\r", &"x".repeat(90)];
        let ends = ["\n", "\r\n", ""];
        for (pattern, multiline) in patterns.flat_map(|p| [(p, false), (p, true)]) {
            for around in [0, 1] {
                let query =
                    GrepQuery { multiline, before: around, after: around, ..query(pattern) };
                let grep = Grep::new(&query).unwrap();
                let mut searcher = grep.searcher(false);
                for (first, second) in lines.iter().flat_map(|a| ["", "a", "b;"].map(|b| (*a, b))) {
                    for (one, two) in ends.iter().flat_map(|a| ends.map(|b| (*a, b))) {
                        let text = format!("{first}{one}{second}{two}");
                        let result = grep.search(&mut searcher, text.as_bytes(), 0, &|| false);
                        let met = result.lines.iter().filter(|line| !line.spans.is_empty()).count();
                        assert_eq!(met as u64, result.count, "{query:?} {text:?} {result:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bad_patterns_say_where_and_options_are_no_options() {
        let error = Grep::new(&query("foo(bar")).unwrap_err().to_string();
        assert!(error.contains("foo(bar") && error.contains("character 4"), "{error}");
        let error = Grep::new(&query("a\nb")).unwrap_err().to_string();
        assert!(error.contains("multiline"), "{error}");
        assert!(Grep::new(&query("((a{1000}){1000}){1000}")).is_err());
        assert!(Grep::new(&GrepQuery { literal: true, ..query("foo(") }).is_ok());
        assert_eq!(run(&query("--pre=x"), b"a --pre=x\n").count, 1);
        assert_eq!(run(&query("^"), b"\n").lines[0].spans, [(0, 0)]);
        for (pattern, marks) in [("\\Aa.", "ab"), ("b\\z", "b"), ("(?-m)^a", "a"), ("$", "")] {
            let result = run(&query(pattern), b"x\nab\nxab\nab");
            let shown: Vec<_> = result.lines.iter().map(|line| marked(line).concat()).collect();
            assert_eq!(shown.len() as u64, result.count, "{pattern}: {result:?}");
            assert!(shown.iter().all(|shown| shown == marks) && shown.len() > 1, "{pattern}");
        }
    }
}
