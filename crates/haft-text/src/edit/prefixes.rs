//! Old texts whose lines begin with numbers, as listings of a file show them and no file has them.
//!
//! Invariant: it is said only where the file has what follows the first of these numbers; nothing is
//! matched here.

use super::view::View;

/// Lines of an old text that are looked at.
const LINES: usize = 50;

/// Whether the lines of an old text begin with line numbers, or with a path and a number, and the
/// first one without it is in the file.
pub(super) fn stand_in(view: &View<'_>, old: &str) -> bool {
    let lines = old.split('\n').take(LINES).filter(|line| !line.trim().is_empty());
    let Some(bare) = lines.map(without).collect::<Option<Vec<&str>>>() else { return false };
    let first = bare.iter().map(|line| line.trim()).find(|line| !line.is_empty());
    // A few signs may stand anywhere.
    first.is_some_and(|line| {
        line.chars().filter(|sign| sign.is_alphanumeric()).count() > 1 && view.text().contains(line)
    })
}

/// A line without its number; none where it has none.
fn without(line: &str) -> Option<&str> {
    let line = line.trim_start();
    number(line).or_else(|| {
        // `path:12:text`, as searches show it.
        let (path, rest) = line.split_once(':')?;
        let is_path = !path.is_empty() && !path.contains(char::is_whitespace);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let text = rest[digits..].strip_prefix([':', '-'])?;
        (is_path && digits > 0).then_some(text)
    })
}

fn number(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let rest = &line[digits..];
    let sign = rest.trim_start_matches([' ', '\t']);
    let text = sign.strip_prefix(['|', ':', '→', '+', '-']);
    // Blanks alone have to be more than stand between words, unless one is a tab.
    let blanks = &rest[..rest.len() - sign.len()];
    text.or_else(|| (rest.is_empty() || blanks.len() > 1 || blanks == "\t").then_some(sign))
}
