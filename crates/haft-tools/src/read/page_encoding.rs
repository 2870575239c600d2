//! How a file is encoded: detected from its beginning, and checked against all of it.
//!
//! **Invariant:** at most [`TEXT_MAX`] bytes of the file are held, and only while it may be no
//! bigger. A file whose beginning misleads is read a second time: whole only up to [`WHOLE`] bytes,
//! of a bigger one a part of [`WINDOW`] bytes.

use bytes::Bytes;
use haft_text::{DecodeError, Encoding, Format, decode};
use haft_types::ToolError;
use memchr::memchr;

use super::page::{Ends, Source};
use crate::files::{self, freshness::TEXT_MAX};

/// Most bytes that are looked at together, as an edit would, where the beginning misleads.
const WHOLE: u64 = 16 * 1024 * 1024;
/// Bytes around the first that speak against the beginning, of a bigger file.
const WINDOW: usize = 1024 * 1024;
/// Bytes before these.
const BEFORE: u64 = 1024;

/// Encoding and line ends of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) format: Format,
    pub(crate) ends: Ends,
}

impl Written {
    /// As its first bytes say; `whole` when there are no others.
    pub(crate) fn of(sample: &[u8], whole: bool) -> Result<Self, DecodeError> {
        let format = decode::detect_prefix(sample, whole)?;
        let has = |cr: bool| Ends::of(format, cr).after(sample).is_some();
        Ok(Self { format, ends: Ends::of(format, has(true) && !has(false)) })
    }
}

/// All that ends lines.
const ENDS: [Ends; 6] = [
    Ends::Byte(b'\n'),
    Ends::Byte(b'\r'),
    Ends::Low(b'\n'),
    Ends::Low(b'\r'),
    Ends::High(b'\n'),
    Ends::High(b'\r'),
];

/// What all bytes of a file say of how it is written, taken in piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    nul: Option<u64>,
    /// Which of [`ENDS`] are in it.
    ends: [bool; ENDS.len()],
    /// The first byte that UTF-8 does not have there.
    odd: Option<u64>,
    /// The begin of a character whose end has not come yet.
    open: Vec<u8>,
    taken: u64,
    /// True when there are no more.
    pub(crate) all: bool,
    /// All of them, while they are not too many to be kept.
    text: Vec<u8>,
}

impl Signs {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.nul = self.nul.or_else(|| Some(self.taken + memchr(0, bytes)? as u64));
        // A line end in UTF-16 has a NUL.
        let wide = self.nul.is_some();
        for (end, seen) in ENDS.iter().zip(&mut self.ends) {
            let asked = wide || matches!(end, Ends::Byte(_));
            *seen = *seen || (asked && end.after(bytes).is_some());
        }
        if self.odd.is_none() {
            self.utf8(bytes);
        }
        self.taken += bytes.len() as u64;
        if self.taken <= TEXT_MAX as u64 {
            self.text.extend_from_slice(bytes);
        } else {
            self.text = Vec::new();
        }
    }

    /// The whole file, where it is small enough to be kept.
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        let small = self.all && self.taken <= TEXT_MAX as u64;
        small.then(|| std::mem::take(&mut self.text).into())
    }

    fn utf8(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.open.is_empty()
            && let Some((byte, left)) = rest.split_first()
        {
            self.open.push(*byte);
            match std::str::from_utf8(&self.open) {
                Ok(_) => self.open.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    self.odd = Some(self.taken);
                    return;
                }
            }
            rest = left;
        }
        if let Err(error) = std::str::from_utf8(rest) {
            let sound = error.valid_up_to();
            if error.error_len().is_none() {
                self.open.extend_from_slice(&rest[sound..]);
            } else {
                self.odd = Some(self.taken + (bytes.len() - rest.len() + sound) as u64);
            }
        }
    }

    /// How lines end; for all bytes of the file.
    fn line_ends(&self, format: Format) -> Ends {
        let has = |cr: bool| {
            let wanted = Ends::of(format, cr);
            ENDS.iter().zip(self.ends).any(|(end, seen)| seen && *end == wanted)
        };
        Ends::of(format, has(true) && !has(false))
    }

    /// Reports whether they are those of UTF-8; for all bytes of the file.
    fn sound(&self) -> bool {
        self.nul.is_none() && self.odd.is_none() && self.open.is_empty()
    }
}

impl Source<'_> {
    /// How the file is written by all that it holds.
    pub(crate) async fn written(
        &self,
        signs: &Signs,
        told: Written,
        sample: &[u8],
    ) -> Result<Result<Written, DecodeError>, ToolError> {
        let encoding = told.format.encoding;
        let misled = match encoding {
            Encoding::Utf16Le | Encoding::Utf16Be => false,
            Encoding::Utf8 => !signs.sound(),
            _ => true,
        };
        let format = if misled && signs.taken > sample.len() as u64 {
            match self.closer(signs, told, sample).await? {
                Ok(format) => format,
                Err(error) => return Ok(Err(error)),
            }
        } else {
            told.format
        };
        Ok(Ok(Written { format, ends: signs.line_ends(format) }))
    }

    async fn closer(
        &self,
        signs: &Signs,
        told: Written,
        sample: &[u8],
    ) -> Result<Result<Format, DecodeError>, ToolError> {
        if signs.taken <= WHOLE {
            let bytes = self.fs.read(self.at, 0, usize::try_from(WHOLE).unwrap_or(0)).await;
            let bytes = bytes.map_err(|error| files::failed(&error))?;
            let work = move || decode::decode(&bytes).map(|decoded| decoded.format());
            let format = tokio::task::spawn_blocking(work).await;
            return format.map_err(|e| ToolError::new(format!("the text was not decoded: {e}")));
        }
        if let Some(nul) = signs.nul {
            let (kind, offset) = (decode::binary_kind(sample), nul);
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            return Ok(Err(DecodeError::Binary { kind, offset }));
        }
        match signs.odd {
            Some(odd) if told.format.encoding == Encoding::Utf8 && !told.format.bom => {
                let from = odd.saturating_sub(BEFORE);
                let window = self.piece(from, WINDOW).await?;
                // It may begin inside a character.
                let inside = window.iter().take_while(|byte| matches!(byte, 0x80..=0xBF)).count();
                let begin = if from > 0 { inside.min(3) } else { 0 };
                Ok(decode::detect_prefix(&window[begin..], false))
            }
            _ => Ok(Ok(told.format)),
        }
    }

    /// How the lines from an offset on are written, where they are not what was told.
    pub(crate) async fn written_at(&self, offset: u64, told: Written) -> Option<Written> {
        let window = self.piece(offset, WINDOW).await.ok()?;
        let format = decode::detect_prefix(&window, false).ok()?;
        let legacy = matches!(format.encoding, Encoding::Legacy(_));
        legacy.then_some(Written { format, ends: told.ends })
    }
}
