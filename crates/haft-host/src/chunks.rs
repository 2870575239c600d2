//! Splits very long lines into parts for searching.
//!
//! This reader ends a line by itself after some MiB. So a search never holds more than that of a
//! line, whatever the file holds. It cuts after a space or a separator where there is one, so that
//! words and numbers stay whole.
//!
//! **Invariant:** every byte is passed on, in order. A line shorter than a part is never cut. The
//! positions of the cuts are recorded, so that lines can be numbered as they are in the file.

use std::{
    cell::RefCell,
    io::{self, Read},
};

use memchr::memrchr;

/// From how many bytes on a line is cut, at most.
pub(crate) const PART: usize = 4 << 20;
/// Most bytes that are read at once.
const STEP: usize = 256 << 10;
/// What a byte order mark, which searches take away, may move offsets by.
const MARK: u64 = 3;

/// Where lines were cut, as offsets into what was passed on.
#[derive(Debug, Default)]
pub(crate) struct Cuts(RefCell<Vec<u64>>);

impl Cuts {
    /// How many cuts lie before a line that begins at this offset.
    pub(crate) fn before(&self, offset: u64) -> u64 {
        self.0.borrow().partition_point(|cut| *cut < offset + MARK) as u64
    }

    /// Reports whether any line was cut.
    pub(crate) fn any(&self) -> bool {
        !self.0.borrow().is_empty()
    }
}

/// See the module.
pub(crate) struct Parts<'a, R> {
    reader: R,
    cuts: &'a Cuts,
    /// From how many bytes on a line is cut; a good place is looked for in a quarter more.
    part: usize,
    /// Bytes that were passed on.
    passed: u64,
    /// Bytes of the present line.
    open: usize,
    /// True where a byte is half a character, so that nothing can be put in between.
    whole: bool,
}

impl<'a, R: Read> Parts<'a, R> {
    pub(crate) const fn new(reader: R, cuts: &'a Cuts, part: usize) -> Self {
        Self { reader, cuts, part, passed: 0, open: 0, whole: false }
    }

    /// The same for a text whose lines must not be cut, where `whole` says so.
    pub(crate) fn whole(self, whole: bool) -> Self {
        Self { whole, ..self }
    }
}

impl<R: Read> Read for Parts<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A place is left for the end of a line, where there is one.
        let most = buffer.len().saturating_sub(1).clamp(1, STEP.min(self.part)).min(buffer.len());
        let mut length = self.reader.read(&mut buffer[..most])?;
        if self.passed == 0 {
            self.whole |= buffer.starts_with(b"\xFF\xFE") || buffer.starts_with(b"\xFE\xFF");
        }
        match memrchr(b'\n', &buffer[..length]) {
            Some(end) => self.open = length - end - 1,
            None => self.open += length,
        }
        if self.open >= self.part
            && length < buffer.len()
            && !self.whole
            && let Some(cut) = place(
                &buffer[length.saturating_sub(self.open)..length],
                self.open >= self.part / 4 * 5,
            )
        {
            let cut = length - (length.min(self.open) - cut);
            buffer.copy_within(cut..length, cut + 1);
            buffer[cut] = b'\n';
            self.cuts.0.borrow_mut().push(self.passed + cut as u64);
            self.open = length - cut;
            length += 1;
        }
        self.passed += length as u64;
        Ok(length)
    }
}

/// Behind which byte of these a line is cut; behind any character where it has to be.
fn place(bytes: &[u8], anywhere: bool) -> Option<usize> {
    let parts = |b: &u8| b" \t,;:)]}>|&".contains(b);
    let good = bytes.iter().rposition(parts).map(|at| at + 1);
    let any = || bytes.iter().rposition(|b| b & 0xC0 != 0x80);
    good.or_else(|| if anywhere { any() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &[u8], part: usize, step: usize) -> (Vec<u8>, Vec<u64>) {
        let cuts = Cuts::default();
        let (mut parts, mut out) = (Parts::new(text, &cuts, part), Vec::new());
        let mut buffer = vec![0; step];
        loop {
            match parts.read(&mut buffer).unwrap() {
                0 => break,
                length => out.extend_from_slice(&buffer[..length]),
            }
        }
        let cuts = cuts.0.borrow().clone();
        (out, cuts)
    }

    #[test]
    fn nothing_is_lost_and_only_long_lines_are_cut() {
        for part in [PART, 100 << 10] {
            let short = b"line\n".repeat(PART / 4);
            let words = [&b"x\n"[..], &b"word ".repeat(PART / 2), b"\nend\n"].concat();
            let solid = [&b"x\n"[..], &"\u{e9}".repeat(PART * 2).into_bytes(), b"\nend"].concat();
            for (text, some) in [(short, false), (words, true), (solid, true)] {
                for step in [1_000, 65_536, 1 << 23] {
                    let (out, cuts) = passed(&text, part, step);
                    assert_eq!(!cuts.is_empty(), some, "{step}");
                    let mut back = Vec::with_capacity(text.len());
                    let mut from = 0;
                    for cut in cuts.iter().map(|cut| usize::try_from(*cut).unwrap()) {
                        assert_eq!(out[cut], b'\n');
                        back.extend_from_slice(&out[from..cut]);
                        from = cut + 1;
                    }
                    back.extend_from_slice(&out[from..]);
                    assert!(back == text, "{step}");
                    let longest = part / 4 * 5 + STEP.min(part);
                    assert!(out.split(|b| *b == b'\n').all(|line| line.len() <= longest));
                    assert!(out.split(|b| *b == b'\n').all(|line| str::from_utf8(line).is_ok()));
                }
            }
        }
    }

    #[test]
    fn a_file_in_utf_16_is_left_as_it_is() {
        let text: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(std::iter::repeat_n(0x20, PART))
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(passed(&text, PART, 65_536) == (text, Vec::new()));
    }
}
