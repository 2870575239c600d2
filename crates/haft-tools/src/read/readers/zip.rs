//! Lists the names in a ZIP archive, from the directory at its end.
//!
//! **Invariant:** only the directory is read, in pieces. Every length in it is checked against what
//! is there. Source of the format: APPNOTE 6.3.10.

use super::archive::{Entry, Names};

/// Most bytes at the end in which the directory's own end is looked for.
pub(super) const TAIL: usize = 22 + 65_535 + 20 + 56;
/// Bytes of an entry without its name and the rest.
const FIXED: usize = 46;

/// Where the directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) offset: u64,
    pub(super) size: u64,
    /// How many entries it claims to have.
    pub(super) entries: u64,
}

/// A length of 16 bits.
fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    u16_at(bytes, at).and_then(|length| usize::try_from(length).ok())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 2).map(|pair| u64::from(u16::from_le_bytes([pair[0], pair[1]])))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u16_at(bytes, at)? | u16_at(bytes, at + 2)? << 16)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u32_at(bytes, at)? | u32_at(bytes, at + 4)? << 32)
}

/// Finds the directory by the last bytes of a file, which begin at `offset`.
pub(super) fn directory(tail: &[u8], offset: u64) -> Option<Directory> {
    let end = memchr::memmem::rfind_iter(tail, b"PK\x05\x06").find(|end| {
        // The comment reaches to the end of the file; bytes after it are somebody's, too.
        length_at(tail, end + 20).is_some_and(|comment| end + 22 + comment <= tail.len())
    })?;
    let small = Directory {
        entries: u16_at(tail, end + 10)?,
        size: u32_at(tail, end + 12)?,
        offset: u32_at(tail, end + 16)?,
    };
    let large = || {
        let locator = end.checked_sub(20).filter(|at| tail[*at..].starts_with(b"PK\x06\x07"))?;
        let claimed = u64_at(tail, locator + 8)?;
        let at = usize::try_from(claimed.checked_sub(offset)?).ok()?;
        let at = tail.get(at..)?.starts_with(b"PK\x06\x06").then_some(at)?;
        let (entries, size) = (u64_at(tail, at + 32)?, u64_at(tail, at + 40)?);
        Some((Directory { entries, size, offset: u64_at(tail, at + 48)? }, claimed))
    };
    let (mut found, before) = large().unwrap_or((small, offset + end as u64));
    // Where something stands before the archive, all its offsets are too small by that.
    found.offset = found.offset.max(before.checked_sub(found.size)?);
    (found.offset.checked_add(found.size)? <= before).then_some(found)
}

/// Takes entries off the start of a part of the directory; gives how many bytes it took.
///
/// # Errors
/// Says what is damaged.
pub(super) fn entries(bytes: &[u8], names: &mut Names) -> Result<usize, String> {
    let mut at = 0;
    while !names.full() {
        let entry = &bytes[at..];
        let Some(fixed) = entry.get(..FIXED) else { break };
        if !fixed.starts_with(b"PK\x01\x02") {
            return Err(format!("what follows {} is no entry", names.words()));
        }
        let length = |at| length_at(fixed, at).unwrap_or_default();
        let (name, extra, comment) = (length(28), length(30), length(32));
        let Some(whole) = entry.get(..FIXED + name + extra + comment) else { break };
        let mut size = u32_at(fixed, 24).unwrap_or(0);
        if size == u64::from(u32::MAX) {
            let extra = &whole[FIXED + name..FIXED + name + extra];
            size = large_size(extra).unwrap_or(size);
        }
        names.push(&Entry { name: &whole[FIXED..FIXED + name], link: None, size });
        at += whole.len();
    }
    Ok(at)
}

/// The size in a field of 64 bits: the first one of the block with the number 1.
fn large_size(mut extra: &[u8]) -> Option<u64> {
    loop {
        let (id, length) = (u16_at(extra, 0)?, length_at(extra, 2)?);
        if id == 1 {
            return u64_at(extra.get(4..4 + length)?, 0);
        }
        extra = extra.get(4 + length..)?;
    }
}
