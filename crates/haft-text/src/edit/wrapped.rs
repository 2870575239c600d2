//! Lines of a file that are an old text written over more lines, or fewer, as formatters do it.
//!
//! Invariant: the words and signs are the same in the same order, but for commas before a closing
//! bracket; it is told, never matched. The work is linear in the first 4 MiB of the file.

use std::iter;

use memchr::memmem;

use super::region::Region;
use crate::cut;

/// Bytes without blanks from which on a text is looked for.
const LEAST: usize = 8;
/// Bytes of a text that are looked at.
const MOST: usize = 4 << 20;

/// Where an old text is wrapped in another way, and how many lines it has itself.
pub(super) fn region(text: &str, old: &str) -> Option<(Region, usize)> {
    let text = &text[..cut::floor(text, MOST)];
    if old.len() > MOST {
        return None;
    }
    let bare = joined(old);
    if bare.len() < LEAST || !bare.contains(char::is_alphanumeric) {
        return None;
    }
    let at = memmem::find(joined(text).as_bytes(), bare.as_bytes())?;
    let stretches = signs(text).scan(0, |done, (offset, sign)| {
        let start = *done;
        *done += sign.len_utf8();
        Some((start..*done, offset..offset + sign.len_utf8()))
    });
    let mut within = stretches.filter(|(part, _)| part.start == at || part.end == at + bare.len());
    let start = within.next()?.1.start;
    let stop = within.next()?.1.end;
    let line = |offset: usize| memchr::memchr_iter(b'\n', &text.as_bytes()[..offset]).count();
    let (first, last) = (line(start), line(stop - 1));
    let has = |text: &str| text.split('\n').filter(|line| !line.trim().is_empty()).count();
    (has(&text[start..stop]) != has(old)).then_some((Region { first, last: Some(last) }, has(old)))
}

fn joined(text: &str) -> String {
    signs(text).map(|(_, sign)| sign).collect()
}

/// The characters that are no blanks, with their offsets, without commas before a closing bracket.
fn signs(text: &str) -> impl Iterator<Item = (usize, char)> {
    let signs = text.char_indices().filter(|(_, sign)| !sign.is_whitespace());
    let mut signs = signs.peekable();
    iter::from_fn(move || {
        while let Some(next) = signs.next() {
            let closes = |next: &(usize, char)| matches!(next.1, ')' | ']' | '}');
            if next.1 != ',' || !signs.peek().is_some_and(closes) {
                return Some(next);
            }
        }
        None
    })
}
