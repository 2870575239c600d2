//! A range of lines from a file of any size and encoding.
//!
//! **Invariant:** memory is bounded by the page, whatever the file or its lines are. Bytes are read
//! in pieces, lines that are not wanted are only counted, and of a long line only the start is
//! stored. At most as many bytes are read as the file had when it was looked up. What an index
//! knows already is not read again.

use std::{borrow::Cow, fmt::Write as _};

use haft_host::{Fs, Located};
use haft_text::{DecodeError, Encoding, Format, StreamDecoder, cut, secrets::Secrets};
use haft_types::{Hash, ToolError};
use memchr::{memchr, memchr_iter};
use tokio_util::sync::CancellationToken;

pub(crate) use super::page_encoding::Written;
use super::{
    line_index::{LineIndex, Mark},
    page_encoding::Signs,
};
use crate::files::{self, secret_scan};

/// Bytes of the first piece: what the encoding is told from.
const SAMPLE: usize = 64 * 1024;
/// Bytes of the last pieces, each of which is twice the one before; even, so that no unit of UTF-16
/// is split.
const PIECE: usize = 1024 * 1024;
/// Most characters of a line that are shown.
pub(crate) const WIDTH: usize = 2000;
/// What stands where a line was cut, in front of its length.
pub(crate) const CUT_HERE: &str = "[cut here: the line has ";
/// Bytes of a line that are kept: enough for `WIDTH` characters in any encoding.
const KEPT: usize = 16 * 1024;

/// The bytes that a page comes from.
pub(crate) struct Source<'a> {
    pub(crate) fs: &'a dyn Fs,
    pub(crate) at: &'a Located,
    pub(crate) stop: &'a CancellationToken,
    /// What is known of its lines, and learns what is found out.
    pub(crate) index: LineIndex,
}

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRange {
    /// The first line, from 1; a negative number counts from the end.
    pub(crate) first: i64,
    /// Most lines.
    pub(crate) lines: u64,
    /// Most bytes of all shown lines with their numbers.
    pub(crate) bytes: usize,
}

/// Lines of a file.
#[derive(Debug)]
pub(crate) struct Page {
    /// The lines, each with its number before it.
    pub(crate) numbered: String,
    /// The lines alone.
    pub(crate) plain: String,
    /// Number of the first line, from 1.
    pub(crate) first: u64,
    /// How many lines it has.
    pub(crate) lines: u64,
    /// Lines of the whole file, where they were counted.
    pub(crate) total: Option<u64>,
    /// Lines that were too long to be shown whole.
    pub(crate) cut: u64,
    /// True when the limit of bytes ended it, not that of lines.
    pub(crate) full: bool,
    /// Hash of the whole file, where it is not too big for one.
    pub(crate) hash: Option<Hash>,
    /// How the file is written.
    pub(crate) format: Format,
    /// True when it was stopped before it was complete.
    pub(crate) stopped: bool,
    /// Where the first line begins, in bytes.
    pub(crate) begin: u64,
    /// The whole file, where it is small enough to be kept.
    pub(crate) whole: Option<bytes::Bytes>,
}

impl Page {
    /// Leaves nothing of a value at the end of a line that was cut.
    pub(crate) fn hide_parts(&mut self, secrets: &Secrets) {
        if self.cut == 0 {
            return;
        }
        for text in [&mut self.numbered, &mut self.plain] {
            let mut mended = String::with_capacity(text.len());
            for line in text.split_inclusive('\n') {
                let cut = line.rfind(CUT_HERE).map(|at| line.split_at(at));
                let hidden = cut.and_then(|(kept, mark)| {
                    secret_scan::without_parts(secrets, kept, (false, true)).map(|kept| kept + mark)
                });
                mended.push_str(hidden.as_deref().unwrap_or(line));
            }
            *text = mended;
        }
    }

    /// Number of the next line, where there is one.
    pub(crate) fn next(&self) -> Option<u64> {
        let next = self.first + self.lines;
        self.total.is_none_or(|total| next <= total).then_some(next)
    }
}

/// What a file turned out to be.
#[derive(Debug)]
pub(crate) enum Content {
    /// Text.
    Page(Page),
    /// No bytes at all.
    Empty,
    /// No text.
    Binary(DecodeError),
}

impl Source<'_> {
    /// Bytes that are read at most. Files of systems like `/proc` claim to be empty.
    fn end(&self) -> u64 {
        if self.at.size() == 0 { files::WHOLE } else { self.at.size() }
    }

    pub(super) async fn piece(&self, offset: u64, len: usize) -> Result<bytes::Bytes, ToolError> {
        let left = usize::try_from(self.end().saturating_sub(offset)).unwrap_or(usize::MAX);
        let data = self.fs.read(self.at, offset, len.min(left)).await;
        data.map_err(|error| files::failed(&error))
    }

    /// Reads the wanted lines.
    pub(crate) async fn page(&self, wanted: LineRange) -> Result<Content, ToolError> {
        let sample = self.piece(0, SAMPLE).await?;
        if sample.is_empty() {
            return Ok(Content::Empty);
        }
        let known = self.index.lines().written();
        let all = sample.len() < SAMPLE || sample.len() as u64 >= self.end();
        let told = match known.map_or_else(|| Written::of(&sample, all), Ok) {
            Ok(told) => told,
            Err(error) => return Ok(Content::Binary(error)),
        };
        let mut signs = Signs::default();
        let (mut page, own) = self.page_as(told, wanted, &sample, &mut signs).await?;
        let whole = signs.whole();
        if page.stopped || known.is_some() {
            return Ok(Content::Page(page));
        }
        if signs.all {
            // The whole file was seen: what it says counts for all calls.
            let written = match self.written(&signs, told, &sample).await? {
                Ok(written) => written,
                Err(error) => return Ok(Content::Binary(error)),
            };
            if written.ends != told.ends {
                self.index.lines().forget_lines();
            }
            self.index.lines().set_encoding(written);
            if written != told {
                (page, _) = self.page_as(written, wanted, &sample, &mut signs).await?;
            }
        } else if let Some(offset) = own
            && let Some(written) = self.written_at(offset, told).await
        {
            (page, _) = self.page_as(written, wanted, &sample, &mut signs).await?;
        }
        page.whole = whole;
        Ok(Content::Page(page))
    }

    /// Reads the wanted lines as they were told to be written; with the offset of the first, if
    /// some of them are not written so.
    async fn page_as(
        &self,
        Written { format, ends }: Written,
        wanted: LineRange,
        sample: &bytes::Bytes,
        signs: &mut Signs,
    ) -> Result<(Page, Option<u64>), ToolError> {
        let first = if let Ok(first) = u64::try_from(wanted.first) {
            first.max(1)
        } else {
            let lines = self.count(ends, signs).await?;
            (lines + 1).saturating_sub(wanted.first.unsigned_abs()).max(1)
        };
        // A hash takes the whole file; where none is wanted or it is known, only the lines count.
        let whole = self.hashed() && self.index.lines().hash().is_none();
        let start = if whole { Mark::START } else { self.index.lines().nearest(first) };
        let mut scan = Scan::new(ends, format, first, wanted, start);
        self.scan(&mut scan, start.offset, sample.clone(), whole.then_some(signs)).await?;
        let lines = self.index.lines();
        let (mut page, other) = (scan.page, scan.other.then_some(scan.begin).flatten());
        (page.total, page.hash) = (lines.total(), lines.hash());
        page.stopped = self.stop.is_cancelled();
        page.begin = scan.begin.unwrap_or_default();
        drop(lines);
        Ok((page, other))
    }

    /// Reports whether the file is small enough to be hashed.
    fn hashed(&self) -> bool {
        self.end() <= files::WHOLE
    }

    /// Feeds the scan until it has its lines, or to the end of the file for the hash of the whole.
    async fn scan(
        &self,
        scan: &mut Scan,
        begin: u64,
        sample: bytes::Bytes,
        mut signs: Option<&mut Signs>,
    ) -> Result<(), ToolError> {
        let whole = signs.is_some();
        let mut hasher = whole.then(blake3::Hasher::new);
        let (mut offset, mut len) = (begin, SAMPLE);
        let mut next = (begin == 0).then_some(sample);
        while whole || !scan.done {
            let data = match next.take() {
                Some(sample) => sample,
                None => self.piece(offset, len).await?,
            };
            // Nothing at the very first says nothing of how the last line ends.
            if self.stop.is_cancelled() || (data.is_empty() && offset == begin) {
                break;
            }
            if let (Some(hasher), Some(signs)) = (&mut hasher, &mut signs) {
                hasher.update(&data);
                signs.take(&data);
            }
            let mark = if offset == 0 { scan.page.format.mark_len().min(data.len()) } else { 0 };
            scan.at = offset + mark as u64;
            scan.push(&data[mark..]);
            offset += data.len() as u64;
            if data.len() < len || offset >= self.end() {
                scan.finish();
                if let Some(signs) = &mut signs {
                    signs.all = true;
                }
                self.index.lines().end(scan.line, hasher.as_ref().map(finished));
                break;
            }
            self.index.lines().reach(Mark { offset, line: scan.line });
            len = (len * 2).min(PIECE);
        }
        Ok(())
    }

    /// The hash of the file, where it is not too big for one.
    pub(crate) async fn hash(&self) -> Result<Option<Hash>, ToolError> {
        let (mut hasher, mut offset) = (blake3::Hasher::new(), 0);
        loop {
            if !self.hashed() || self.stop.is_cancelled() {
                return Ok(None);
            }
            let data = self.piece(offset, PIECE).await?;
            if data.is_empty() {
                return Ok(Some(finished(&hasher)));
            }
            hasher.update(&data);
            offset += data.len() as u64;
        }
    }

    /// Counts all lines, as far as that was not done yet, and works the hash out on the way.
    async fn count(&self, ends: Ends, signs: &mut Signs) -> Result<u64, ToolError> {
        let (reached, total) = {
            let lines = self.index.lines();
            (lines.reached(), lines.total())
        };
        if let Some(total) = total {
            return Ok(total);
        }
        let mut hasher = self.hashed().then(blake3::Hasher::new);
        let mut mark = if hasher.is_some() { Mark::START } else { reached };
        let mut open = true;
        loop {
            let data = self.piece(mark.offset, PIECE).await?;
            if self.stop.is_cancelled() {
                return Ok(mark.line);
            }
            if data.is_empty() {
                break;
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(&data);
                signs.take(&data);
            }
            open = !ends.ends_with(&data);
            mark.line += ends.count(&data);
            mark.offset += data.len() as u64;
            if mark.offset < self.end() {
                self.index.lines().reach(mark);
            }
        }
        let total = mark.line - u64::from(!open);
        signs.all = hasher.is_some();
        self.index.lines().end(total, hasher.as_ref().map(finished));
        Ok(total)
    }
}

fn finished(hasher: &blake3::Hasher) -> Hash {
    Hash::from_bytes(*hasher.finalize().as_bytes())
}

/// How lines end, in bytes: by LF, or by CR where a file has nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// One byte. No encoding has it inside a character.
    Byte(u8),
    /// A unit of UTF-16, low byte first.
    Low(u8),
    /// A unit of UTF-16, high byte first.
    High(u8),
}

impl Ends {
    /// Of a text; `cr` where lone carriage returns end its lines.
    pub(super) const fn of(format: Format, cr: bool) -> Self {
        let byte = if cr { b'\r' } else { b'\n' };
        match format.encoding {
            Encoding::Utf16Le => Self::Low(byte),
            Encoding::Utf16Be => Self::High(byte),
            _ => Self::Byte(byte),
        }
    }

    /// Where the byte after the first line end is.
    pub(super) fn after(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => memchr(byte, bytes).map(|at| at + 1),
            Self::Low(byte) => units(bytes, byte, 0).next(),
            Self::High(byte) => units(bytes, byte, 1).next(),
        }
    }

    fn count(self, bytes: &[u8]) -> u64 {
        let count = match self {
            Self::Byte(byte) => memchr_iter(byte, bytes).count(),
            Self::Low(byte) => units(bytes, byte, 0).count(),
            Self::High(byte) => units(bytes, byte, 1).count(),
        };
        count as u64
    }

    fn ends_with(self, bytes: &[u8]) -> bool {
        match self {
            Self::Byte(byte) => bytes.last() == Some(&byte),
            Self::Low(byte) => bytes.ends_with(&[byte, 0]),
            Self::High(byte) => bytes.ends_with(&[0, byte]),
        }
    }
}

/// Where the bytes after each unit of UTF-16 are that is `byte`, at `place` in it, and a NUL.
fn units(bytes: &[u8], byte: u8, place: usize) -> impl Iterator<Item = usize> + '_ {
    memchr_iter(byte, bytes).filter_map(move |at| {
        let start = at - at % 2;
        (at % 2 == place && bytes.get(start + 1 - place) == Some(&0)).then_some(start + 2)
    })
}

/// Takes the bytes of a file in and keeps the wanted lines.
struct Scan {
    ends: Ends,
    page: Page,
    wanted: LineRange,
    /// The line that the next byte belongs to; at the end, the last line.
    line: u64,
    /// The start of the line so far, and how many bytes it has.
    held: Vec<u8>,
    len: u64,
    done: bool,
    /// Offset of the next byte, and of the first wanted line.
    at: u64,
    begin: Option<u64>,
    /// True when a line in UTF-8 is not.
    other: bool,
}

impl Scan {
    fn new(ends: Ends, format: Format, first: u64, wanted: LineRange, start: Mark) -> Self {
        Self {
            ends,
            page: Page {
                numbered: String::new(),
                plain: String::new(),
                first,
                lines: 0,
                total: None,
                cut: 0,
                full: false,
                hash: None,
                format,
                stopped: false,
                begin: 0,
                whole: None,
            },
            wanted,
            line: start.line,
            held: Vec::new(),
            len: 0,
            done: false,
            at: start.offset,
            begin: None,
            other: false,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        // Pieces that end before the first wanted line are only counted.
        if self.line < self.page.first && !bytes.is_empty() {
            let breaks = self.ends.count(bytes);
            if self.line + breaks < self.page.first {
                self.line += breaks;
                self.at += bytes.len() as u64;
                self.len = u64::from(!self.ends.ends_with(bytes));
                return;
            }
        }
        while !bytes.is_empty() {
            if self.done {
                self.line += self.ends.count(bytes);
                // Only whether something stands after the last line end matters.
                self.len = u64::from(!self.ends.ends_with(bytes));
                return;
            }
            let end = self.ends.after(bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.len += line.len() as u64;
            if self.line >= self.page.first {
                self.begin.get_or_insert(self.at);
                let room = KEPT.saturating_sub(self.held.len()).min(line.len());
                self.held.extend_from_slice(&line[..room]);
            }
            if end.is_some() {
                self.end_line();
                self.line += 1;
            }
            self.at += line.len() as u64;
            bytes = rest;
        }
    }

    /// The end of the file: what is left is a line, too.
    fn finish(&mut self) {
        if self.len > 0 {
            self.end_line();
        } else {
            self.line -= 1;
        }
    }

    fn end_line(&mut self) {
        if self.line >= self.page.first && !self.done {
            self.take();
        }
        self.held.clear();
        self.len = 0;
    }

    fn take(&mut self) {
        let (text, cut) = self.text();
        let size = text.len() + 8;
        if self.page.lines > 0 && self.page.numbered.len() + size > self.wanted.bytes {
            self.page.full = true;
            self.done = true;
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.page.numbered, "{:>6}\t{text}", self.line);
        self.page.plain.push_str(&text);
        self.page.plain.push('\n');
        self.page.lines += 1;
        self.page.cut += u64::from(cut);
        self.done = self.page.lines >= self.wanted.lines;
    }

    /// The line as it is shown, and whether it was cut.
    fn text(&mut self) -> (String, bool) {
        let mut text = String::new();
        if self.page.format.encoding == Encoding::Utf8 {
            let shown = String::from_utf8_lossy(&self.held);
            self.other |= matches!(shown, Cow::Owned(_)) && self.held.len() < KEPT;
            text.push_str(&shown);
        } else {
            let mut decoder = StreamDecoder::new(self.page.format.encoding);
            decoder.push(&self.held, &mut text);
            decoder.finish(&mut text);
        }
        for end in ["\n", "\r"] {
            if text.ends_with(end) {
                text.pop();
            }
        }
        if text.len() <= WIDTH || text.char_indices().nth(WIDTH).is_none() {
            return (text, false);
        }
        let shown = cut::head(&text, WIDTH);
        let mark = cut::mark(shown.omitted);
        let kept = shown.text.strip_suffix(&mark).unwrap_or(&shown.text);
        (format!("{kept}{CUT_HERE}{} bytes]", self.len), true)
    }
}

#[cfg(test)]
mod tests {
    use haft_host::{Host as _, Memory};
    use haft_types::{Follow, HostPath, Style};

    use super::*;

    async fn page(data: &[u8], first: i64, lines: u64) -> Page {
        page_of(data, first, lines, LineIndex::default()).await
    }

    async fn page_of(data: &[u8], first: i64, lines: u64, index: LineIndex) -> Page {
        let host = Memory::with_files([("/f", data.to_vec())]).unwrap();
        let path = HostPath::new(b"/f", Style::Posix).unwrap();
        let at = host.fs().locate(&path, Follow::Yes).await.unwrap();
        let stop = CancellationToken::new();
        let source = Source { fs: host.fs(), at: &at, stop: &stop, index };
        match source.page(LineRange { first, lines, bytes: 100_000 }).await.unwrap() {
            Content::Page(page) => page,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn every_page_of_every_encoding_is_the_same_lines() {
        let text = "one\ntwo \u{e4}\n\nfour\r\nfive";
        let mut low = b"\xFF\xFE".to_vec();
        low.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        let mut high = b"\xFE\xFF".to_vec();
        high.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        let mut marked = b"\xEF\xBB\xBF".to_vec();
        marked.extend_from_slice(text.as_bytes());
        let lines = ["one", "two \u{e4}", "", "four", "five"];
        for data in [text.as_bytes(), &low, &high, &marked] {
            for first in 1..=5 {
                for count in 1..=6 {
                    for from in [first, first - 6] {
                        let page = page(data, from, count).await;
                        let end = (first + i64::try_from(count).unwrap() - 1).min(5);
                        let range =
                            usize::try_from(first - 1).unwrap()..usize::try_from(end).unwrap();
                        let want = format!("{}\n", lines[range].join("\n"));
                        assert_eq!(page.plain, want, "{from} {count}");
                        assert_eq!((page.first, page.total), (first.unsigned_abs(), Some(5)));
                        assert_eq!(page.next(), (end < 5).then_some(end.unsigned_abs() + 1));
                        assert_eq!(page.hash, Some(Hash::of(data)));
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_across_pieces_are_numbered_right_from_both_ends() {
        let text: String = (1..=400_000)
            .flat_map(|number| ["line ".into(), number.to_string(), "\n".into()])
            .collect();
        for (from, line) in [(1, 1), (123_456, 123_456), (399_999, 399_999), (-1, 400_000)] {
            let page = page(text.as_bytes(), from, 1).await;
            assert_eq!(page.plain, format!("line {line}\n"));
            assert_eq!((page.first, page.total), (line, Some(400_000)));
        }
        let page = page(text.as_bytes(), -300_000, 3).await;
        assert_eq!(page.plain, "line 100001\nline 100002\nline 100003\n");
    }

    #[tokio::test]
    async fn what_is_known_of_the_lines_changes_no_page() {
        let lines = (1..=150_000_u32).flat_map(|number| {
            let end = if number % 7 == 0 { "\r\n" } else { "\n" };
            ["line ".to_owned(), number.to_string(), end.to_owned()]
        });
        let text: String = lines.collect();
        let low = text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let open = format!("{text}open");
        for data in [text.as_bytes(), &[b"\xFF\xFE", &*low].concat(), open.as_bytes()] {
            let index = LineIndex::default();
            for from in [140_000, 1, -5, 131_072, 150_000, 150_001, 150_002, -150_001, 77_777] {
                let fresh = page(data, from, 3).await;
                let known = page_of(data, from, 3, index.clone()).await;
                assert_eq!(known.numbered, fresh.numbered, "{from}");
                assert_eq!((known.first, known.lines), (fresh.first, fresh.lines), "{from}");
                assert_eq!((known.total, known.hash), (fresh.total, fresh.hash), "{from}");
            }
        }
    }

    #[tokio::test]
    async fn a_long_line_is_cut_with_its_size() {
        let text = format!("{}\nnext\n", "\u{1F600}".repeat(1_000_000));
        let page = page(text.as_bytes(), 1, 10).await;
        assert_eq!((page.lines, page.cut, page.total), (2, 1, Some(2)));
        let first = page.plain.lines().next().unwrap();
        assert!(first.ends_with("[cut here: the line has 4000001 bytes]"), "{}", first.len());
        assert_eq!(first.matches('\u{1F600}').count(), WIDTH);
    }

    #[tokio::test]
    async fn old_mac_line_ends_end_lines() {
        let low = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let high = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
        // Characters with the bytes of both line ends in them end nothing.
        let text = "a\rb\u{10d}\u{a0d}\u{d0a}\u{a0a}\rc";
        let second = "b\u{10d}\u{a0d}\u{d0a}\u{a0a}\n";
        let wide = [[b"\xFF\xFE", &*low(text)].concat(), [b"\xFE\xFF", &*high(text)].concat()];
        for data in [text.as_bytes(), &wide[0], &wide[1]] {
            for from in [2, -2] {
                let page = page(data, from, 1).await;
                assert_eq!((page.plain.as_str(), page.total), (second, Some(3)), "{from}");
            }
        }
        // The line feed that speaks against them comes late.
        for (end, total) in [("\r", 30_002), ("\n", 1)] {
            let text = ["a line\r".repeat(30_000), "last\u{10d}\r".into(), "x".into(), end.into()];
            for data in [low(&text.concat()), high(&text.concat())] {
                assert_eq!(page(&data, 1, 1).await.total, Some(total), "{end:?}");
                assert_eq!(page(&data, -1, 1).await.total, Some(total), "{end:?}");
            }
        }
    }
}
