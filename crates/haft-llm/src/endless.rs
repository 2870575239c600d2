//! Answers that repeat themselves without an end.
//!
//! **Invariant:** linear in the text, and with little memory however long a line is. Arguments of
//! calls do not count: a file may well hold the same line many times.

use std::hash::{DefaultHasher, Hasher as _};

use crate::{Delta, LlmError};

/// Bytes of a line from which on its repetition counts.
const LINE: usize = 20;
/// How often a line may stand there in a row.
const LINES: u32 = 200;
/// How often a piece may come in a row.
const PIECES: u32 = 5_000;

/// What an answer has said last.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    line: DefaultHasher,
    bytes: usize,
    last: Option<u64>,
    lines: u32,
    piece: String,
    pieces: u32,
}

impl Tail {
    /// Takes what came next.
    ///
    /// # Errors
    /// It has said the same too often.
    pub fn take(&mut self, deltas: &[Delta]) -> Result<(), LlmError> {
        deltas.iter().try_for_each(|delta| match delta {
            Delta::Text { text, .. } | Delta::Thinking { text, .. } => self.text(text),
            _ => Ok(()),
        })
    }

    fn text(&mut self, text: &str) -> Result<(), LlmError> {
        if text == self.piece {
            self.pieces += 1;
        } else {
            text.clone_into(&mut self.piece);
            self.pieces = 1;
        }
        if self.pieces > PIECES && !text.is_empty() {
            return Err(endless(&format!("the same piece more than {PIECES} times")));
        }
        for part in text.split_inclusive('\n') {
            let words = part.trim_end_matches(['\n', '\r']);
            self.line.write(words.as_bytes());
            self.bytes += words.len();
            if part.ends_with('\n') {
                self.end_line()?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), LlmError> {
        let seen = std::mem::take(&mut self.line).finish();
        let bytes = std::mem::take(&mut self.bytes);
        // Blank lines between them do not make them others.
        if bytes == 0 {
            return Ok(());
        }
        self.lines = if self.last == Some(seen) { self.lines + 1 } else { 1 };
        self.last = Some(seen);
        if bytes < LINE || self.lines <= LINES {
            return Ok(());
        }
        Err(endless(&format!("the same line more than {LINES} times in a row")))
    }
}

fn endless(what: &str) -> LlmError {
    LlmError::Endless(format!(
        "the answer repeats itself without an end ({what}); it was given up\nAsk again in other \
         words, or another model."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(texts: impl Iterator<Item = String>) -> Result<(), LlmError> {
        let mut tail = Tail::default();
        let mut texts = texts.map(|text| Delta::Text { index: 0, text });
        texts.try_for_each(|delta| tail.take(&[delta]))
    }

    #[test]
    fn lines_and_pieces_that_come_too_often_are_cut() {
        let line = "I will now look at the file again.\n";
        let in_pieces = |text: &str, size: usize| -> Vec<String> {
            text.as_bytes().chunks(size).map(|it| String::from_utf8(it.to_vec()).unwrap()).collect()
        };
        for size in [1, 7, 35, 100_000] {
            let of = |count: usize| taken(in_pieces(&line.repeat(count), size).into_iter());
            assert_eq!(of(200), Ok(()), "{size}");
            let error = of(201).unwrap_err();
            assert!(matches!(&error, LlmError::Endless(text) if text.contains("same line")));
            assert!(!error.is_retryable() && !error.is_outage());
        }
        let blank = format!("{line}\r\n\n");
        assert!(taken(in_pieces(&blank.repeat(201), 3).into_iter()).is_err());
        // Short lines, and others between them, are no repetition.
        assert_eq!(taken(std::iter::once("short\n".repeat(4_000))), Ok(()));
        let other = |n: usize| format!("{line}line {n} of something else\n");
        assert_eq!(taken((0..5_000).map(other)), Ok(()));
        assert_eq!(taken((0..5_000).map(|_| "ha".to_owned())), Ok(()));
        let error = taken((0..5_001).map(|_| "ha".to_owned())).unwrap_err();
        assert!(error.to_string().contains("same piece"), "{error}");
    }
}
