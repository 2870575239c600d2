//! The inside of a bracketed paste (`XTerm` Control Sequences, "Bracketed Paste Mode").
//!
//! **Invariant:** one step for each byte, one bound for what is kept. **Does not know:** keys.

use super::Paste;

/// Most bytes of a paste that are kept.
pub const LONGEST: usize = 16 << 20;

/// Ends a paste. ESC is only its first byte, so a wrong byte never needs a second look back.
const END: &[u8] = b"\x1b[201~";

/// A paste whose end has not come.
#[derive(Debug, Default)]
pub struct OpenPaste {
    bytes: Vec<u8>,
    dropped: u64,
    /// How many bytes of the end mark came last.
    matched: usize,
}

impl OpenPaste {
    /// Takes bytes up to the end mark. Returns what is behind it, or none if it did not come.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            if END.get(self.matched) == Some(&byte) {
                (self.matched, rest) = (self.matched + 1, tail);
                if self.matched == END.len() {
                    self.matched = 0;
                    return Some(rest);
                }
                continue;
            }
            self.unmatch();
            let plain = rest.iter().position(|b| *b == 0x1b).unwrap_or(rest.len());
            let (data, tail) = rest.split_at(plain);
            self.keep(data);
            rest = tail;
        }
        None
    }

    /// What was pasted.
    pub fn finish(mut self) -> Paste {
        self.unmatch();
        if self.dropped > 0 {
            let cut = partial(&self.bytes);
            self.bytes.truncate(self.bytes.len() - cut);
            self.dropped += u64::try_from(cut).unwrap_or(0);
        }
        let text = String::from_utf8(self.bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Paste { text, dropped: self.dropped }
    }

    /// The start of an end mark was data.
    fn unmatch(&mut self) {
        let matched = std::mem::take(&mut self.matched);
        self.keep(END.get(..matched).unwrap_or_default());
    }

    fn keep(&mut self, data: &[u8]) {
        let room = LONGEST.saturating_sub(self.bytes.len()).min(data.len());
        let (kept, over) = data.split_at(room);
        self.bytes.extend_from_slice(kept);
        self.dropped = self.dropped.saturating_add(u64::try_from(over.len()).unwrap_or(u64::MAX));
    }
}

/// How many bytes at the end are a character that was cut.
fn partial(bytes: &[u8]) -> usize {
    let end = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let Some(back) = end.iter().rev().position(|b| *b >= 0xc0) else { return 0 };
    let last = end.get(end.len() - 1 - back..).unwrap_or_default();
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => last.len(),
        _ => 0,
    }
}
