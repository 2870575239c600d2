//! Lists the names in a tar archive, from its bytes as they arrive.
//!
//! **Invariant:** it holds one block of 512 bytes and one long name, whatever the archive claims.
//! The content of files is skipped. Source of the format: POSIX.1-2017, `pax`, and GNU tar 1.35.

use super::archive::{Entry, Names};

/// Bytes of a block.
pub(super) const BLOCK: usize = 512;
/// Most bytes of a header that extends the next one.
const EXTENSION: u64 = 64 * 1024;

/// Reports whether bytes begin like an archive. Before POSIX there was no magic in it, and nothing
/// behind the name of a link.
pub(super) fn starts(first: &[u8]) -> bool {
    let old = |block: &[u8]| block[0] != 0 && block[257..].iter().all(|byte| *byte == 0);
    first
        .get(..BLOCK)
        .is_some_and(|block| (block[257..].starts_with(b"ustar") || old(block)) && sound(block))
}

/// What an extension says of the entry after it.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

enum State {
    /// At a header.
    Header,
    /// In content that is passed over: bytes left with their padding.
    Over(u64),
    /// In an extension: its type, bytes left, and the padding after it.
    Extension(u8, u64, u64),
    /// After the last block.
    End,
}

/// Takes the bytes of an archive in.
pub(super) struct Scan {
    state: State,
    held: Vec<u8>,
    extended: Extended,
}

impl Default for Scan {
    fn default() -> Self {
        Self { state: State::Header, held: Vec::new(), extended: Extended::default() }
    }
}

impl Scan {
    /// How many bytes need not be read now.
    pub(super) fn skip(&mut self) -> u64 {
        match &mut self.state {
            State::Over(left) => std::mem::take(left),
            _ => 0,
        }
    }

    /// Reports whether the archive has ended.
    pub(super) const fn ended(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Reports whether what ends here is whole.
    pub(super) const fn whole(&self) -> bool {
        matches!(self.state, State::End | State::Header | State::Over(0)) && self.held.is_empty()
    }

    /// Takes bytes in.
    ///
    /// # Errors
    /// Says what is damaged.
    pub(super) fn push(&mut self, mut bytes: &[u8], names: &mut Names) -> Result<(), String> {
        while !bytes.is_empty() && !names.full() {
            match &mut self.state {
                State::End => return Ok(()),
                State::Over(left) => {
                    let over = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= over as u64;
                    bytes = &bytes[over..];
                    if *left == 0 {
                        self.state = State::Header;
                    }
                }
                State::Extension(kind, left, padding) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    self.held.extend_from_slice(&bytes[..taken]);
                    *left -= taken as u64;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        let (kind, padding) = (*kind, *padding);
                        let held = std::mem::take(&mut self.held);
                        self.extend(kind, &held);
                        self.state = State::Over(padding);
                    }
                }
                State::Header => {
                    let taken = (BLOCK - self.held.len()).min(bytes.len());
                    self.held.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    if self.held.len() == BLOCK {
                        let block = std::mem::take(&mut self.held);
                        self.header(&block, names)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn header(&mut self, block: &[u8], names: &mut Names) -> Result<(), String> {
        if block.iter().all(|byte| *byte == 0) {
            self.state = State::End;
            return Ok(());
        }
        if !sound(block) {
            return Err(format!("the header after {} is none", names.words()));
        }
        let stated = octal(&block[124..136]).ok_or("a size is no number")?;
        let padded =
            |size: u64| size.checked_next_multiple_of(BLOCK as u64).ok_or("a size is no size");
        let kind = block[156];
        if matches!(kind, b'L' | b'K' | b'x') && stated <= EXTENSION {
            self.state = match stated {
                0 => State::Header,
                _ => State::Extension(kind, stated, padded(stated)? - stated),
            };
            return Ok(());
        }
        if matches!(kind, b'L' | b'K' | b'x' | b'g') {
            self.state = State::Over(padded(stated)?);
            return Ok(());
        }
        let extended = std::mem::take(&mut self.extended);
        let size = extended.size.unwrap_or(stated);
        // Links and folders have no content, whatever their size says.
        let content = if matches!(kind, b'1'..=b'6') { 0 } else { size };
        let mut name = extended.name.unwrap_or_else(|| own_name(block));
        if kind == b'5' && !name.ends_with(b"/") {
            name.push(b'/');
        }
        let link = extended.link.unwrap_or_else(|| text(&block[157..257]).to_vec());
        let link = matches!(kind, b'1' | b'2').then_some(link);
        names.push(&Entry { name: &name, link: link.as_deref(), size: content });
        self.state = State::Over(padded(content)?);
        Ok(())
    }

    fn extend(&mut self, kind: u8, held: &[u8]) {
        match kind {
            b'L' => self.extended.name = Some(text(held).to_vec()),
            b'K' => self.extended.link = Some(text(held).to_vec()),
            _ => self.pax(held),
        }
    }

    /// Records of `LENGTH KEY=VALUE` and a line feed.
    fn pax(&mut self, mut held: &[u8]) {
        while let Some(blank) = memchr::memchr(b' ', held) {
            let length =
                std::str::from_utf8(&held[..blank]).ok().and_then(|text| text.parse().ok());
            let Some(record) = length.and_then(|length: usize| held.get(blank + 1..length)) else {
                return;
            };
            held = &held[blank + 1 + record.len()..];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            let Some(equals) = memchr::memchr(b'=', record) else { return };
            let value = &record[equals + 1..];
            match &record[..equals] {
                b"path" => self.extended.name = Some(value.to_vec()),
                b"linkpath" => self.extended.link = Some(value.to_vec()),
                b"size" => {
                    self.extended.size =
                        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                }
                _ => {}
            }
        }
    }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    &field[..memchr::memchr(0, field).unwrap_or(field.len())]
}

fn own_name(block: &[u8]) -> Vec<u8> {
    let (name, prefix) = (text(&block[..100]), text(&block[345..500]));
    // GNU's own format has other things in the place of the prefix.
    if prefix.is_empty() || &block[257..263] != b"ustar\0" {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

/// A number in octal digits, or in the base 256 of GNU tar.
fn octal(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (high, low) = field[1..].split_at(field.len() - 9);
        let small = field[0] == 0x80 && high.iter().all(|byte| *byte == 0);
        return small.then(|| low.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
    }
    let digits = text(field).trim_ascii();
    if digits.is_empty() {
        return Some(0);
    }
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 8).ok()
}

/// Reports whether the sum of a header is right.
fn sound(block: &[u8]) -> bool {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let blanks = 8 * u64::from(b' ');
    octal(&block[148..156]) == Some(sum(&block[..148]) + blanks + sum(&block[156..]))
}
