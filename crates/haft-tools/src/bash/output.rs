//! A running command's output: cleaned, shown live, and kept.
//!
//! **Invariant:** memory is fixed however much comes. Control sequences are gone, progress lines
//! are collapsed and characters whole in everything that leaves here. People see at most
//! [`RATE`] pieces a second of at most [`LIVE`] bytes; what is dropped there is counted.

use std::time::Duration;

use haft_host::{Spool, SpoolLimits, Spooled};
use haft_text::{Encoding, StreamDecoder, strip::Stripper};
use haft_tool::Cx;
use haft_types::Stream;
use tokio::time::Instant;

use crate::process::Ends;

/// Pieces of live output in a second.
const RATE: u32 = 20;
/// Bytes of live output between two pieces.
const LIVE: usize = 16 * 1024;
/// Stretches of one stream in a piece; more are put together.
const STRETCHES: usize = 4;
/// Bytes of each end that stay in memory.
const END: usize = 64 * 1024;

/// How a shell says that `eval` read what it could not understand.
const EVAL: &str = ": eval: ";
/// The names under which a shell may tell that.
const SHELLS: &[&str] = &["bash", "sh", "dash", "ash", "ksh"];

/// Takes a command's output in.
pub(super) struct Streams {
    spool: Spool,
    out: Channel,
    err: Channel,
    pub(super) live: Live,
    clean: String,
}

/// One of the two streams.
struct Channel {
    stream: Stream,
    decoder: Option<StreamDecoder>,
    stripper: Stripper,
    text: String,
    ends: Ends,
    /// Whether plain lines may be taken as they are.
    plain: bool,
    /// Whether what comes next begins a line.
    fresh: bool,
}

impl Channel {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            decoder: Some(StreamDecoder::new(Encoding::Utf8)),
            stripper: Stripper::new(),
            text: String::new(),
            ends: Ends::default(),
            plain: true,
            fresh: true,
        }
    }

    fn push(&mut self, bytes: &[u8], clean: &mut String) {
        let from = clean.len();
        let rest = if self.plain { self.push_plain(bytes, clean) } else { bytes };
        self.push_any(rest, clean);
        // An ASCII byte at the end leaves no part of a character behind.
        self.plain = bytes.last().is_none_or(u8::is_ascii) && self.stripper.is_plain();
        self.leaves(clean, from);
    }

    /// What is clean from here on leaves.
    fn leaves(&mut self, clean: &mut String, from: usize) {
        if self.stream == Stream::Stderr && clean[from..].contains(EVAL) {
            let text = clean.split_off(from);
            for line in text.split_inclusive('\n') {
                let own = self.fresh.then(|| without_eval(line)).flatten();
                clean.push_str(own.as_deref().unwrap_or(line));
                self.fresh = true;
            }
        }
        if clean.len() > from {
            self.fresh = clean.ends_with('\n');
        }
        self.ends.push(&clean[from..]);
    }

    fn push_any(&mut self, bytes: &[u8], clean: &mut String) {
        self.text.clear();
        if let Some(decoder) = &mut self.decoder {
            decoder.push(bytes, &mut self.text);
        }
        self.stripper.push(&self.text, clean);
    }

    /// Takes the lines at the start as they are where nothing has to be cleaned; gives the rest.
    ///
    /// Most output is like that, and is then only copied.
    fn push_plain<'a>(&mut self, bytes: &'a [u8], clean: &mut String) -> &'a [u8] {
        let end = |at: usize| at + 1;
        let (first, last) = (memchr::memchr(b'\n', bytes), memchr::memrchr(b'\n', bytes));
        let (Some(first), Some(last)) = (first.map(end), last.map(end)) else { return bytes };
        let control = |b: u8| (b < b' ' && b != b'\n' && b != b'\t') || b == 0x7f || b == 0xc2;
        if bytes[..last].iter().fold(false, |any, b| any | control(*b)) {
            return bytes;
        }
        let Ok(lines) = std::str::from_utf8(&bytes[..last]) else { return bytes };
        // The first one ends the line that the stripper holds.
        self.stripper.push(&lines[..first], clean);
        clean.push_str(&lines[first..]);
        &bytes[last..]
    }

    fn finish(&mut self, clean: &mut String) {
        let from = clean.len();
        self.text.clear();
        if let Some(decoder) = self.decoder.take() {
            decoder.finish(&mut self.text);
        }
        self.stripper.push(&self.text, clean);
        std::mem::take(&mut self.stripper).finish(clean);
        self.leaves(clean, from);
    }
}

/// A line of the shell itself as it would be were the command run without haft's `eval` around it;
/// none for any other line.
fn without_eval(line: &str) -> Option<String> {
    let (shell, rest) = line.split_once(": ").filter(|(name, _)| SHELLS.contains(name))?;
    let (line, (number, rest)) = match rest.strip_prefix("eval: line ") {
        Some(rest) => ("line ", rest.split_once(": ")?),
        None => ("", rest.split_once(EVAL)?),
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{shell}: {line}{number}: {rest}"))
}

/// What was kept of the output.
pub(super) struct Kept {
    /// Both streams together.
    pub(super) all: Spooled,
    pub(super) stdout: Ends,
    pub(super) stderr: Ends,
}

impl Streams {
    pub(super) fn new(cx: &Cx) -> Self {
        let limits = SpoolLimits { head: END, tail: END, ..SpoolLimits::default() };
        Self {
            spool: cx.spool(limits),
            out: Channel::new(Stream::Stdout),
            err: Channel::new(Stream::Stderr),
            live: Live::default(),
            clean: String::new(),
        }
    }

    /// Takes the next bytes of a stream.
    ///
    /// # Cancel safety
    /// A dropped future may lose these bytes for the kept file.
    pub(super) async fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.clean.clear();
        let channel = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        channel.push(bytes, &mut self.clean);
        if !self.clean.is_empty() {
            self.live.push(stream, &self.clean);
            self.spool.push(self.clean.as_bytes()).await;
        }
    }

    /// Ends both streams; where `patience` runs out, the file is given up and the rest is kept.
    pub(super) async fn finish(mut self, cx: &Cx, patience: Option<Duration>) -> Kept {
        let mut whole_line = true;
        for channel in [&mut self.out, &mut self.err] {
            self.clean.clear();
            channel.finish(&mut self.clean);
            if self.clean.is_empty() {
                continue;
            }
            if !whole_line {
                self.spool.push(b"\n").await;
            }
            whole_line = self.clean.ends_with('\n');
            self.live.push(channel.stream, &self.clean);
            self.spool.push(self.clean.as_bytes()).await;
        }
        self.live.flush(cx);
        let all = match patience {
            None => self.spool.finish().await,
            Some(patience) => within(self.spool, patience).await,
        };
        Kept { all, stdout: self.out.ends, stderr: self.err.ends }
    }
}

/// Ends a spool for a caller that cannot wait for the disk.
async fn within(spool: Spool, patience: Duration) -> Spooled {
    let (head, tail, bytes) = (spool.head().to_vec(), spool.tail(), spool.bytes());
    let finished = tokio::time::timeout(patience, spool.finish()).await;
    finished.unwrap_or_else(|_| Spooled {
        head: head.into(),
        tail: tail.into(),
        bytes,
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

    /// When the next piece may be shown; none while there is nothing to show.
    pub(super) fn due(&self) -> Option<Instant> {
        let pending = !self.pending.is_empty();
        let next = self.sent.map_or_else(Instant::now, |sent| sent + Duration::from_secs(1) / RATE);
        pending.then_some(next)
    }

    /// Shows what has come where it is time to; a busy stream cannot wait for a timer.
    pub(super) fn flush_due(&mut self, cx: &Cx) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.flush(cx);
        }
    }

    /// Shows what has come since the last piece.
    pub(super) fn flush(&mut self, cx: &Cx) {
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

    /// What a channel gives for a stream in pieces of this size.
    fn cleaned(bytes: &[u8], step: usize, plain: bool) -> String {
        let (mut channel, mut all) = (Channel::new(Stream::Stdout), String::new());
        for piece in bytes.chunks(step) {
            channel.plain &= plain;
            channel.push(piece, &mut all);
        }
        channel.finish(&mut all);
        all
    }

    #[test]
    fn the_short_way_gives_what_the_long_one_gives() {
        let long = "x".repeat(70_000);
        let texts = [
            "a\nb\n\nc",
            "plain\nthen \u{1b}[31mred\u{1b}[0m\nplain again\n",
            "10%\r20%\r\n30%\rdone\nmore\n",
            "日本\n語 é\u{a0}\u{85}x\n",
            "\u{1b}]0;title\nstill the title\u{7}after\nlines\n",
            &format!("{long}\n{long}\rback\n"),
        ];
        for text in texts {
            let whole = cleaned(text.as_bytes(), usize::MAX, false);
            for step in [1, 2, 3, 7, 64, 65_536, usize::MAX] {
                assert_eq!(cleaned(text.as_bytes(), step, true), whole, "{step} {text:.40?}");
            }
        }
        let damaged = b"ok\n\xe6\x97\nok\n\xff\n";
        assert_eq!(cleaned(damaged, 1, true), cleaned(damaged, 99, false));
    }

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
            let (mut channel, mut all) = (Channel::new(Stream::Stderr), String::new());
            text.as_bytes().chunks(step).for_each(|piece| channel.push(piece, &mut all));
            channel.finish(&mut all);
            assert_eq!(all, "a bash: eval: line 1: x\nbash: line 2: y\n", "{step}");
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
}
