//! A running command's output: cleaned, shown live, and stored.
//!
//! **Invariant:** memory is fixed, however much output arrives. The file gets what the command
//! wrote, byte for byte in whole lines. Lines of both streams stand in the order in which they were
//! read. All other output has no control sequences and no values of secrets. Its progress lines are
//! collapsed and its characters are whole. People see at most [`RATE`] pieces a second of at most
//! [`LIVE`] bytes; what is dropped there is counted.
//!
//! The first [`EXACT`] bytes are cleaned as they arrive, and a progress line that is open then to
//! its end. After that, only what somebody will see is cleaned: the last part, and what is shown
//! live. The rest is stored without being examined.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use haft_host::{Spool, SpoolLimits, Spooled};
use haft_text::{
    clean::Cleaner,
    secrets::{self, Secrets},
    strip::Stripper,
};
use haft_tool::{Cx, Jobs};
use haft_types::{Shape, Stream};
use memchr::memmem;
use tokio::time::Instant;

use super::process::Ends;

/// Pieces of live output in a second.
const RATE: u32 = 20;
/// Bytes of live output between two pieces.
const LIVE: usize = 16 * 1024;
/// How long a line without an end stands before people see it.
const OPEN: Duration = Duration::from_millis(250);
/// Bytes of such a line that they see, its last ones.
const OPEN_SEEN: usize = 1_000;
/// Bytes that are cleaned for them meanwhile: of what is no text next to nothing may be left.
const LOOKED: usize = 4 * LIVE;
/// Stretches of one stream in a piece; more are put together.
const STRETCHES: usize = 4;
/// Bytes of each end that stay in memory.
const END: usize = 64 * 1024;
/// Most characters that are shown whole: what is said beside them fits the budget, too.
const WHOLE: usize = 28_500;
/// Bytes that are cleaned as they come.
const EXACT: usize = 4 << 20;
/// Bytes at the end that are cleaned of what comes then.
const RECENT: usize = 256 << 10;
/// Bytes of an open line that wait for its end.
const LINE: usize = 64 << 10;

/// How a shell says that `eval` read what it could not understand.
const EVAL: &str = ": eval: ";
/// What stands before the number of a line.
const NUMBER: &str = "line ";
/// The names under which a shell may tell that.
const SHELLS: &[&str] = &["bash", "sh", "dash", "ash", "ksh"];

/// Takes a command's output in.
pub(super) struct Streams {
    spool: Spool,
    secrets: Arc<Secrets>,
    out: Channel,
    err: Channel,
    /// Both streams together, line by line as they came.
    ends: Ends,
    rest: Recent,
    /// Bytes that were cleaned at once.
    cleaned: usize,
    live: Live,
    open: OpenLine,
    pieces: Vec<Bytes>,
    clean: String,
}

/// One of the two streams.
struct Channel {
    lines: Lines,
    cleaner: Cleaner,
    /// Holds back what may be the begin of a secret.
    hidden: secrets::Stream,
    ends: Ends,
    rest: Recent,
    /// Whether only what somebody will see of it is cleaned.
    is_raw: bool,
}

impl Channel {
    fn new(stream: Stream) -> Self {
        let (cleaner, hidden, ends, rest) = Default::default();
        Self { lines: Lines::new(stream), cleaner, hidden, ends, rest, is_raw: false }
    }

    /// Ends the cleaning as it comes; gives the clean text that was held back.
    fn end_cleaning(&mut self, secrets: &Secrets) -> String {
        self.is_raw = true;
        let mut last = String::new();
        std::mem::take(&mut self.cleaner).finish(&mut last);
        let mut clean = self.hidden.push(secrets, &last);
        clean.push_str(&self.hidden.end(secrets));
        self.ends.push(&clean);
        clean
    }

    /// The clean text that left, or both ends of it.
    fn into_text(mut self, secrets: &Secrets) -> String {
        self.rest.end(&mut self.ends, secrets);
        self.ends.into_text_of(Some(self.lines.bytes))
    }
}

/// A stream in whole lines, byte for byte.
pub(super) struct Lines {
    stream: Stream,
    /// The line that has no end yet.
    open: BytesMut,
    /// Whether what comes next begins a line.
    fresh: bool,
    /// Bytes that left, as they came.
    bytes: u64,
    /// The lines at which commands of a shell began that lives on, as it counts; empty for others.
    began: Vec<u64>,
}

impl Lines {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, open: BytesMut::new(), fresh: true, bytes: 0, began: Vec::new() }
    }

    /// Takes bytes in and gives the lines that are complete; a very long one in parts.
    pub(super) fn take(&mut self, bytes: &Bytes, pieces: &mut Vec<Bytes>) {
        let end = |at: usize| at + 1;
        let (first, last) = match memchr::memrchr(b'\n', bytes).map(end) {
            Some(last) if self.open.is_empty() => (0, last),
            Some(last) => (memchr::memchr(b'\n', bytes).map_or(0, end), last),
            None if self.open.len() + bytes.len() > LINE => (0, bytes.len()),
            None => (0, 0),
        };
        self.open.extend_from_slice(&bytes[..first]);
        if last > 0 && !self.open.is_empty() {
            let line = self.open.split().freeze();
            self.leaves(line, pieces);
        }
        if last > first {
            self.leaves(bytes.slice(first..last), pieces);
        }
        self.open.extend_from_slice(&bytes[last..]);
    }

    /// Gives a piece, without what haft itself added to the shell's own errors.
    fn leaves(&mut self, piece: Bytes, pieces: &mut Vec<Bytes>) {
        let fresh = std::mem::replace(&mut self.fresh, piece.ends_with(b"\n"));
        let holds = |words: &str| memmem::find(&piece, words.as_bytes()).is_some();
        let own = holds(EVAL) || (!self.began.is_empty() && holds(NUMBER));
        let own = self.stream == Stream::Stderr && own;
        let piece = if own { without_evals(&piece, fresh, &self.began) } else { piece };
        self.bytes += piece.len() as u64;
        pieces.push(piece);
    }

    /// The lines of both streams that never got an end, each in a line of its own.
    pub(super) fn last(out: &mut Self, err: &mut Self) -> Vec<(Stream, Bytes)> {
        let both = !out.open.is_empty() && !err.open.is_empty() && !out.open.ends_with(b"\n");
        if both {
            out.open.extend_from_slice(b"\n");
        }
        let mut all = Vec::new();
        for lines in [out, err] {
            let (open, mut pieces) = (lines.open.split().freeze(), Vec::new());
            if !open.is_empty() {
                lines.leaves(open, &mut pieces);
            }
            all.extend(pieces.into_iter().map(|piece| (lines.stream, piece)));
        }
        all
    }
}

/// The last pieces of output that is not cleaned at once.
#[derive(Default)]
struct Recent {
    pieces: VecDeque<(Stream, Bytes)>,
    size: usize,
    /// Bytes that were dropped before them.
    skipped: u64,
}

impl Recent {
    fn push(&mut self, stream: Stream, piece: &Bytes) {
        self.size += piece.len();
        self.pieces.push_back((stream, piece.clone()));
        while let Some((_, first)) =
            self.pieces.pop_front_if(|(_, first)| self.size - first.len() >= RECENT)
        {
            self.size -= first.len();
            self.skipped += first.len() as u64;
        }
    }

    /// Adds what is kept to the text before it, clean.
    fn end(self, ends: &mut Ends, secrets: &Secrets) {
        ends.skip(self.skipped);
        if self.skipped > 0 && self.pieces.front().is_some_and(|(_, piece)| is_progress(piece)) {
            // Its last state is a whole line, though its begin is left out.
            ends.push("\n");
        }
        let mut cleaners: [(Cleaner, secrets::Stream); 2] = Default::default();
        let mut clean = String::new();
        for (stream, piece) in self.pieces {
            clean.clear();
            let (cleaner, hidden) = &mut cleaners[usize::from(stream == Stream::Stderr)];
            cleaner.push(&piece, &mut clean);
            ends.push(&hidden.push(secrets, &clean));
        }
        for (cleaner, mut hidden) in cleaners {
            clean.clear();
            cleaner.finish(&mut clean);
            ends.push(&hidden.push(secrets, &clean));
            ends.push(&hidden.end(secrets));
        }
    }
}

/// Reports whether the first line goes back to its start.
fn is_progress(piece: &[u8]) -> bool {
    let line = memchr::memchr(b'\n', piece).map_or(piece, |end| &piece[..end]);
    memchr::memchr(b'\r', line).is_some_and(|at| at + 1 < line.len())
}

/// Lines of the shell itself as they would be were the command run without haft's `eval` around it.
fn without_evals(piece: &Bytes, fresh: bool, began: &[u64]) -> Bytes {
    let (mut lines, mut fresh) = (Vec::with_capacity(piece.len()), fresh);
    for line in piece.split_inclusive(|byte| *byte == b'\n') {
        let text = str::from_utf8(line).ok().filter(|_| fresh);
        let own = text.and_then(without_eval);
        let own = own.as_deref().or(text).and_then(|text| numbered(text, began)).or(own);
        lines.extend_from_slice(own.as_deref().map_or(line, str::as_bytes));
        fresh = true;
    }
    lines.into()
}

/// A line without the word of an `eval`; none for any other line.
fn without_eval(line: &str) -> Option<String> {
    let (shell, rest) = line.split_once(": ").filter(|(name, _)| SHELLS.contains(name))?;
    let (line, (number, rest)) = match rest.strip_prefix("eval: line ") {
        Some(rest) => ("line ", rest.split_once(": ")?),
        None => ("", rest.split_once(EVAL)?),
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{shell}: {line}{number}: {rest}"))
}

/// A line of bash itself with the numbers that the lines have in their own command; none for any
/// other line.
fn numbered(text: &str, began: &[u64]) -> Option<String> {
    let first = began.first()?;
    // In a function bash goes by another name.
    let mut rest = text.strip_prefix("bash: ").or_else(|| text.strip_prefix("main: "))?;
    let (mut out, mut is_own) = (String::from("bash: "), false);
    while let Some(at) = rest.find(NUMBER) {
        let (before, after) = rest.split_at(at + NUMBER.len());
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(before);
        match after[..digits].parse::<u64>() {
            Ok(number) if number > *first => {
                let of = began[..began.partition_point(|began| *began < number)].last()?;
                out.push_str(&(number - of).to_string());
                is_own = true;
            }
            _ => out.push_str(&after[..digits]),
        }
        rest = &after[digits..];
    }
    out.push_str(rest);
    is_own.then_some(out)
}

/// What was kept of the output.
pub(super) struct KeptOutput {
    /// Both streams together: their clean ends, which are whole only where they can be shown so, and
    /// the file with all that came.
    pub(super) all: Spooled,
    /// Bytes of the output as it came, which cleaning makes fewer or more of.
    pub(super) bytes: u64,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// What came of a command that goes on; each text is its two ends where it is long.
pub(super) struct BackgroundOutput {
    pub(super) spool: Spool,
    /// Of each stream what cleans it, what hides secrets in it, and its open line.
    pub(super) open: [(Cleaner, secrets::Stream, Bytes); 2],
    /// Bytes of the output as it came.
    pub(super) bytes: u64,
    pub(super) all: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Streams {
    /// Of one that may go on as a job no more is kept on disk than of any job.
    pub(super) fn new(cx: &Cx, may_go_on: bool) -> Self {
        let mut limits = SpoolLimits { head: 0, tail: 0, ..SpoolLimits::default() };
        if may_go_on {
            let most = cx.session().map.get::<Jobs>().limits().disk;
            limits.file_cap = limits.file_cap.min(most);
        }
        Self {
            spool: cx.spool(limits),
            secrets: cx.session().secrets.clone(),
            out: Channel::new(Stream::Stdout),
            err: Channel::new(Stream::Stderr),
            ends: Ends::of(END),
            rest: Recent::default(),
            cleaned: 0,
            live: Live::default(),
            open: OpenLine::default(),
            pieces: Vec::new(),
            clean: String::new(),
        }
    }

    /// The command is one of a shell whose commands began at these lines, this one the last.
    pub(super) fn number_from(&mut self, began: &[u64]) {
        self.err.lines.began = began.to_vec();
    }

    /// Takes the next bytes of a stream.
    ///
    /// # Cancel safety
    /// A dropped future may lose these bytes for the kept file.
    pub(super) async fn take(&mut self, stream: Stream, bytes: &Bytes) {
        let channel = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        self.pieces.clear();
        channel.lines.take(bytes, &mut self.pieces);
        self.open.changes(!self.out.lines.open.is_empty() || !self.err.lines.open.is_empty());
        self.pieces_came(stream).await;
    }

    /// When something of what came is to be shown; none while nothing is.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.live.due(), self.open.due()].into_iter().flatten().min()
    }

    /// Shows what it is time for; a busy stream cannot wait for a timer.
    pub(super) fn show_due(&mut self, cx: &Cx) {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= Instant::now());
        if is_due(self.live.due()) {
            self.live.flush(cx);
        }
        if is_due(self.open.due()) {
            let line = self.open_line();
            if self.open.shows(&line) {
                cx.progress(Shape::Progress { text: line, done: None, total: None });
            }
        }
    }

    /// The lines of both streams that have no end yet, as far as people see them.
    fn open_line(&self) -> String {
        let channels = [&self.out, &self.err].into_iter();
        let open = channels.filter(|of| !of.is_raw && !of.lines.open.is_empty());
        let lines: Vec<String> = open
            .map(|of| {
                let (mut cleaner, mut line) = (Cleaner::new(), String::new());
                cleaner.push(&of.lines.open, &mut line);
                cleaner.open(&mut line);
                // What may be half of a secret is not shown.
                secrets::Stream::default().push(&self.secrets, &line)
            })
            .collect();
        let line = lines.join("\n");
        let start = line.ceil_char_boundary(line.len().saturating_sub(OPEN_SEEN));
        for_people(&line[start..])
    }

    async fn pieces_came(&mut self, stream: Stream) {
        let pieces = std::mem::take(&mut self.pieces);
        for piece in &pieces {
            self.came(stream, piece);
        }
        for piece in &pieces {
            self.spool.push_shared(piece).await;
        }
        self.pieces = pieces;
    }

    /// Lines of a stream, for all that is shown of it.
    fn came(&mut self, stream: Stream, piece: &Bytes) {
        let mixed = self.out.is_raw || self.err.is_raw;
        if mixed {
            self.rest.push(stream, piece);
        }
        let channel = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        if channel.is_raw {
            channel.rest.push(stream, piece);
            self.live.push_raw(stream, piece, &self.secrets);
            return;
        }
        self.cleaned += piece.len();
        self.clean.clear();
        channel.cleaner.push(piece, &mut self.clean);
        let clean = channel.hidden.push(&self.secrets, &self.clean);
        channel.ends.push(&clean);
        if !mixed {
            self.ends.push(&clean);
        }
        self.live.push(stream, &clean);
        // What a line of progress says in its middle is not its last word.
        if self.cleaned >= EXACT && !channel.cleaner.is_progress() {
            self.end_cleaning(stream);
        }
    }

    /// Ends the cleaning of a stream as it comes.
    fn end_cleaning(&mut self, stream: Stream) {
        let mixed = self.out.is_raw || self.err.is_raw;
        let (channel, other) = match stream {
            Stream::Stdout => (&mut self.out, &self.err),
            Stream::Stderr => (&mut self.err, &self.out),
        };
        if channel.is_raw {
            return;
        }
        let clean = channel.end_cleaning(&self.secrets);
        if !mixed {
            self.ends.push(&clean);
            // Among what is not cleaned at once, what follows of the other's line takes its place, too.
            let mut open = other.hidden.held().to_owned();
            other.cleaner.open(&mut open);
            if other.cleaner.is_progress() {
                open.push('\r');
            }
            let stream = other.lines.stream;
            self.rest.push(stream, &open.into());
        }
        self.live.push(stream, &clean);
    }

    fn end_both(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.end_cleaning(stream);
        }
    }

    /// Hands over what came so far to whom the command goes on for.
    pub(super) fn hand_over(mut self, cx: &Cx) -> BackgroundOutput {
        if self.out.is_raw || self.err.is_raw {
            self.end_both();
        }
        self.live.flush(cx);
        self.rest.end(&mut self.ends, &self.secrets);
        let bytes = self.spool.bytes();
        let open = [&mut self.out, &mut self.err].map(|channel| {
            let cleaner = std::mem::take(&mut channel.cleaner);
            (cleaner, std::mem::take(&mut channel.hidden), channel.lines.open.split().freeze())
        });
        BackgroundOutput {
            spool: self.spool,
            open,
            bytes,
            all: self.ends.into_text_of(Some(bytes)),
            stdout: self.out.into_text(&self.secrets),
            stderr: self.err.into_text(&self.secrets),
        }
    }

    /// Ends both streams; where `patience` runs out, the file is given up and the rest is kept.
    pub(super) async fn finish(self, cx: &Cx, patience: Option<Duration>) -> KeptOutput {
        let (spool, keep, kept) = self.end(cx).await;
        let file = match patience {
            None => spool.finish_as(keep).await,
            Some(patience) => within(spool, keep, patience).await,
        };
        kept.with(file)
    }

    /// Ends both streams of a command of which something goes on; gives what keeps all that comes.
    pub(super) async fn pause(self, cx: &Cx) -> (KeptOutput, Spool) {
        let (mut spool, _, kept) = self.end(cx).await;
        let file = spool.so_far().await;
        (kept.with(file), spool)
    }

    /// Ends what is shown; says whether a file has to be kept beside it.
    async fn end(mut self, cx: &Cx) -> (Spool, bool, KeptOutput) {
        for (stream, piece) in Lines::last(&mut self.out.lines, &mut self.err.lines) {
            self.pieces = vec![piece];
            self.pieces_came(stream).await;
        }
        self.end_both();
        self.live.flush(cx);
        self.rest.end(&mut self.ends, &self.secrets);
        let came = self.spool.bytes();
        let (mut head, mut tail, bytes) = self.ends.into_parts();
        let left_out = (head.len() + tail.len()) as u64 != bytes;
        let long = !cx.is_nested() && is_longer(&head, &tail, WHOLE);
        if long && !left_out {
            // Whoever shows them cuts what is not whole.
            head.push_str(&tail);
            tail = head.split_off(head.ceil_char_boundary(head.len() / 2));
            head.pop();
        }
        let all = Spooled { head: head.into(), tail: tail.into(), bytes, ..Spooled::default() };
        let (stdout, stderr) =
            (self.out.into_text(&self.secrets), self.err.into_text(&self.secrets));
        // What has no text is found in its file alone.
        let keep = left_out || long || (bytes == 0 && came > 0);
        (self.spool, keep, KeptOutput { all, bytes: came, stdout, stderr })
    }
}

impl KeptOutput {
    /// The same with the file.
    fn with(mut self, file: Spooled) -> Self {
        let Spooled { head, tail, bytes, .. } = self.all;
        self.all = Spooled { head, tail, bytes, ..file };
        self
    }
}

/// Reports whether a text of two parts has more characters.
fn is_longer(head: &str, tail: &str, characters: usize) -> bool {
    head.len() + tail.len() > characters
        && head.chars().chain(tail.chars()).nth(characters).is_some()
}

/// Ends a spool for a caller that cannot wait for the disk.
async fn within(spool: Spool, keep: bool, patience: Duration) -> Spooled {
    let bytes = spool.bytes();
    let finished = tokio::time::timeout(patience, spool.finish_as(keep)).await;
    finished.unwrap_or_else(|_| Spooled {
        lost: Some(0..bytes),
        fault: Some("the disk was too slow".to_owned()),
        ..Spooled::default()
    })
}

/// What people see while the command runs.
#[derive(Default)]
pub(super) struct Live {
    pending: Vec<(Stream, String)>,
    size: usize,
    dropped: u64,
    sent: Option<Instant>,
    /// Bytes that were cleaned to be shown, and since when.
    looked: usize,
    since: Option<Instant>,
}

impl Live {
    fn push(&mut self, stream: Stream, text: &str) {
        let room = text.floor_char_boundary(LIVE.saturating_sub(self.size));
        let (now, rest) = text.split_at(room);
        self.dropped += rest.len() as u64;
        if now.is_empty() {
            return;
        }
        self.size += now.len();
        let full = self.pending.len() >= STRETCHES;
        match self.pending.last_mut() {
            Some((last, pending)) if *last == stream || full => pending.push_str(now),
            _ => self.pending.push((stream, now.to_owned())),
        }
    }

    /// The same of what is not clean yet; of that only what is shown is cleaned.
    fn push_raw(&mut self, stream: Stream, piece: &[u8], secrets: &Secrets) {
        let room = LIVE.saturating_sub(self.size).min(self.may_look()).min(piece.len());
        let lines = memchr::memrchr(b'\n', &piece[..room]).map_or(room, |at| at + 1);
        if lines > 0 {
            let (mut clean, mut cleaner) = (String::new(), Cleaner::new());
            cleaner.push(&piece[..lines], &mut clean);
            cleaner.finish(&mut clean);
            self.push(stream, &secrets.hide(&clean));
        }
        self.looked += lines;
        self.dropped += (piece.len() - lines) as u64;
    }

    /// Bytes that may still be cleaned to be shown.
    fn may_look(&mut self) -> usize {
        let now = Instant::now();
        if self.since.is_none_or(|since| now >= since + Duration::from_secs(1) / RATE) {
            (self.looked, self.since) = (0, Some(now));
        }
        LOOKED.saturating_sub(self.looked)
    }

    /// When the next piece may be shown; none while there is nothing to show.
    fn due(&self) -> Option<Instant> {
        let pending = !self.pending.is_empty();
        let next = self.sent.map_or_else(Instant::now, |sent| sent + Duration::from_secs(1) / RATE);
        pending.then_some(next)
    }

    /// Shows what has come since the last piece.
    fn flush(&mut self, cx: &Cx) {
        for (stream, text) in self.pending.drain(..) {
            cx.output(stream, for_people(&text));
        }
        if self.dropped > 0 {
            let text = format!("\n[{} bytes are not shown live]\n", self.dropped);
            cx.output(Stream::Stdout, text);
        }
        self.size = 0;
        self.dropped = 0;
        self.sent = Some(Instant::now());
    }
}

/// What people see of a line that has no end: a prompt, or progress that goes back to its start.
#[derive(Default)]
struct OpenLine {
    shown: String,
    /// When it changed first since it was shown.
    changed: Option<Instant>,
}

impl OpenLine {
    fn changes(&mut self, is_open: bool) {
        if is_open || !self.shown.is_empty() {
            self.changed.get_or_insert_with(Instant::now);
        } else {
            self.changed = None;
        }
    }

    fn due(&self) -> Option<Instant> {
        self.changed.map(|since| since + OPEN)
    }

    /// Whether it is another one than was shown last.
    fn shows(&mut self, line: &str) -> bool {
        self.changed = None;
        let is_new = self.shown != line;
        line.clone_into(&mut self.shown);
        is_new
    }
}

/// Clean text without the characters that show other text in another order than it has.
pub(crate) fn for_people(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut stripper = Stripper::without_bidi();
    stripper.push(text, &mut out);
    stripper.finish(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_does_not_tell_of_our_eval() {
        for (told, plain) in [
            ("bash: eval: line 2: syntax error: x\n", Some("bash: line 2: syntax error: x\n")),
            ("sh: 1: eval: Syntax error: x\n", Some("sh: 1: Syntax error: x\n")),
            ("bash: eval: usage: x\n", None),
            ("bash: line 1: eval: -z: invalid option\n", None),
            ("x.sh: eval: line 2: syntax error\n", None),
            ("bash: eval: line two: x\n", None),
            ("a bash: eval: line 2: x\n", None),
            ("bash: eval: line 2", None),
        ] {
            assert_eq!(without_eval(told).as_deref(), plain, "{told}");
        }
        let text = "a bash: eval: line 1: x\nbash: eval: line 2: y\n";
        for step in [1, 5, 30, 99] {
            assert_eq!(
                lines_of(text, step),
                "a bash: eval: line 1: x\nbash: line 2: y\n",
                "{step}"
            );
        }
    }

    /// What leaves a channel for standard error, with the line that is open at its end.
    fn lines_of(text: &str, step: usize) -> String {
        let (mut lines, mut pieces) = (Lines::new(Stream::Stderr), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            lines.take(&Bytes::copy_from_slice(piece), &mut pieces);
        }
        pieces.push(lines.open.freeze());
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn lines_leave_whole_and_long_ones_in_parts() {
        let long = format!("{0}\nshort\n{0}", "x".repeat(3 * LINE));
        for step in [7, 1000, LINE + 1, 2 * LINE, usize::MAX] {
            assert_eq!(lines_of(&long, step), long, "{step}");
            let (mut lines, mut pieces) = (Lines::new(Stream::Stdout), Vec::new());
            for piece in b"one\ntwo\nthree".chunks(step) {
                lines.take(&Bytes::copy_from_slice(piece), &mut pieces);
            }
            assert!(pieces.iter().all(|piece| piece.ends_with(b"\n")), "{step}");
        }
    }

    #[test]
    fn live_output_is_bounded_and_counts_what_it_drops() {
        let mut live = Live::default();
        assert!(live.due().is_none());
        for n in 0..10_000 {
            live.push(if n % 2 == 0 { Stream::Stdout } else { Stream::Stderr }, "0123456789");
        }
        assert_eq!((live.size, live.dropped), (LIVE, 100_000 - LIVE as u64));
        assert!(live.pending.len() <= STRETCHES && live.due().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn of_what_is_no_text_little_is_cleaned_to_be_shown() {
        let (mut live, nothing, pieces) = (Live::default(), vec![0; 100_000], 50);
        let secrets = Secrets::default();
        for _ in 0..pieces {
            live.push_raw(Stream::Stdout, &nothing, &secrets);
        }
        live.push_raw(Stream::Stdout, b"text\n", &secrets);
        let came = pieces * nothing.len() + 5;
        assert_eq!((live.looked, live.dropped), (LOOKED, (came - LOOKED) as u64));
        assert!(live.due().is_none());
        tokio::time::advance(Duration::from_secs(1) / RATE).await;
        live.push_raw(Stream::Stdout, b"text\n", &secrets);
        assert_eq!(live.pending, [(Stream::Stdout, "text\n".to_owned())]);
    }
}
