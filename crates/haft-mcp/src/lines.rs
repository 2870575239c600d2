//! Lines of bounded length from a stream of bytes.
//!
//! **Invariant:** a line that is too long is passed over in fixed memory, and its end is found; what
//! it was is known as far as a [`Scan`] tells.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::scan::Scan;

/// Longest line that is taken, in bytes.
pub(crate) const LINE_MAX: usize = 64 << 20;

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line over the limit.
    TooLong(Scan),
}

/// Reads lines; holds at most one.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Line,
    /// Most bytes of a line that is taken.
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Of lines up to [`LINE_MAX`].
    pub fn new(input: R) -> Self {
        Self::up_to(LINE_MAX, input)
    }

    /// Of lines of so many bytes at most.
    pub fn up_to(max: usize, input: R) -> Self {
        let input = BufReader::with_capacity(64 << 10, input);
        Self { input, line: Line::Whole(Vec::new()), max }
    }

    /// The next line; the last one needs no end. None where there are no more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            // A client that cannot be read any more is one that has gone.
            let read = self.input.fill_buf().await.unwrap_or_default();
            if read.is_empty() {
                let last = self.taken();
                return (!matches!(&last, Line::Whole(line) if line.is_empty())).then_some(last);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let piece = &read[..end.unwrap_or(read.len())];
            match &mut self.line {
                Line::TooLong(scan) => scan.feed(piece),
                Line::Whole(line) if line.len() + piece.len() > self.max => {
                    let mut scan = Scan::of(line);
                    scan.feed(piece);
                    self.line = Line::TooLong(scan);
                }
                Line::Whole(line) => line.extend_from_slice(piece),
            }
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Some(self.taken());
            }
        }
    }

    fn taken(&mut self) -> Line {
        std::mem::replace(&mut self.line, Line::Whole(Vec::new()))
    }
}
