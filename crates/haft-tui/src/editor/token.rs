//! The word at the cursor that names something: a file after `@`, a command after `/`.
//!
//! **Invariant:** a range starts with its sign and lies within one line. No more of the line than
//! [`NEAR`] bytes on each side of the cursor is read.
//!
//! **Does not know:** files, commands, what is done with a name.

use std::ops::Range;

use super::buffer::Fragment;

/// How far from the cursor a word is looked for, in bytes.
const NEAR: usize = 4 << 10;

/// A word that names something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its bytes of the text, with its sign and its quotes.
    pub range: Range<usize>,
    /// The name, without the sign and quotes.
    pub name: String,
    /// The part of the name before the cursor: what a completion starts with.
    pub before: String,
}

/// The part of the cursor's line around it that holds no atom.
fn around(text: &Fragment, cursor: usize) -> Range<usize> {
    let far = text.text().ceil_char_boundary(cursor.saturating_sub(NEAR));
    let near = text.text().floor_char_boundary(cursor.saturating_add(NEAR));
    let atoms = text.atoms();
    let behind = atoms.partition_point(|atom| atom.range.end <= cursor);
    let before = behind.checked_sub(1).and_then(|at| atoms.get(at));
    let start = far.max(before.map_or(0, |atom| atom.range.end));
    let end = near.min(atoms.get(behind).map_or(text.len(), |atom| atom.range.start));
    let start = text.slice(start..cursor).rfind('\n').map_or(start, |at| start + at + 1);
    let end = text.slice(cursor..end).find('\n').map_or(end, |at| cursor + at);
    start..end
}

/// The word with `@` that the cursor is in or directly behind.
///
/// It stands at the start of the line, behind a blank or behind an atom. In `@"a b"` it ends with
/// the quote; without a second quote it ends at the cursor.
pub(super) fn file(text: &Fragment, cursor: usize) -> Option<Token> {
    let near = around(text, cursor);
    let line = text.slice(near.clone());
    let at = cursor - near.start;
    let mut from = 0;
    while from < at {
        let start = from + line.get(from..at)?.find('@')?;
        if !is_first(text, near.start + start) {
            from = start + 1;
            continue;
        }
        let rest = line.get(start + 1..)?;
        let quoted = rest.strip_prefix('"');
        let (name, end) = match quoted.map(|quoted| quoted.find('"')) {
            Some(Some(length)) => (start + 2..start + 2 + length, start + 3 + length),
            Some(None) => (start + 2..at.max(start + 2), at.max(start + 2)),
            None => {
                let end = start + 1 + rest.find(char::is_whitespace).unwrap_or(rest.len());
                (start + 1..end, end)
            }
        };
        if at <= end {
            let before = name.start..at.clamp(name.start, name.end);
            return Some(Token {
                range: near.start + start..near.start + end,
                name: line.get(name)?.to_owned(),
                before: line.get(before)?.to_owned(),
            });
        }
        from = end;
    }
    None
}

/// Whether a word may start at an offset.
fn is_first(text: &Fragment, offset: usize) -> bool {
    let before = text.slice(0..offset).chars().next_back();
    before.is_none_or(char::is_whitespace) || text.ending(offset).is_some()
}

/// The first word of the text where that begins with `/`, wherever the cursor is.
pub(super) fn command(text: &Fragment, cursor: usize) -> Option<Token> {
    let near = around(text, 0);
    let line = text.slice(near.clone());
    let rest = line.strip_prefix('/')?;
    let end = 1 + rest.find(char::is_whitespace).unwrap_or(rest.len());
    let before = line.get(1..cursor.clamp(1, end))?.to_owned();
    Some(Token { range: 0..end, name: line.get(1..end)?.to_owned(), before })
}
