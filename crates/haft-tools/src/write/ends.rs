//! Line ends of a whole new text: those of the text that it replaces.
//!
//! **Invariant:** nothing but line ends changes. A lone carriage return counts as a line end only
//! if the old text has no other.

use haft_text::{
    diff::{self, Limits},
    lines::{self, LineEnd, LineEnds},
};

use crate::files::change;

/// Most bytes of both texts together whose lines are matched one by one.
const MATCHED: usize = 8 << 20;

/// Gives `content` the line ends of `old`, and says so where that is not what the content had.
pub(crate) fn fitted(content: String, old: &str, had: LineEnds) -> (String, Option<String>) {
    let main = match (had.lf, had.crlf) {
        _ if had.cr_ends_lines() => LineEnd::Cr,
        (0, 0) => return (content, None),
        (lf, crlf) if lf > crlf => LineEnd::Lf,
        _ => LineEnd::Crlf,
    };
    if !content.contains('\n') {
        return (content, None);
    }
    let mixed = had.lf > 0 && had.crlf > 0;
    let fitted = if mixed && old.len() + content.len() <= MATCHED {
        matched(&content, old, main)
    } else {
        plain(&content).replace('\n', main.as_str())
    };
    let note = if mixed {
        Some(told(LineEnds::scan(fitted.as_bytes())))
    } else {
        (fitted != content).then(|| format!("line ends are {}, as before", main.name()))
    };
    (fitted, note)
}

/// What is to be said of carriage returns alone in a new text, where no other note is.
pub(super) fn returns(content: &str, had: LineEnds) -> Option<String> {
    let now = LineEnds::scan(content.as_bytes());
    if had.cr_ends_lines() || now.cr == 0 {
        return None;
    }
    let before = LineEnds { cr: 0, ..had }.dominant();
    match now.cr_ends_lines() {
        true if before == LineEnd::None => None,
        true => Some(format!("line ends were {} and are CR now", before.name())),
        false => change::lone_returns(now.cr.saturating_sub(had.cr)),
    }
}

fn told(now: LineEnds) -> String {
    if now.lf > 0 && now.crlf > 0 {
        return format!("line ends are mixed, as before: {} CRLF and {} LF", now.crlf, now.lf);
    }
    let name = if now.crlf > 0 { LineEnd::Crlf.name() } else { LineEnd::Lf.name() };
    format!("line ends were mixed and are all {name} now")
}

/// The text with LF at the end of every line.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                out.push_str(line.trim_end_matches('\r'));
                out.push('\n');
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Gives lines that stay the end that they have; new ones take that of the line that they replace,
/// or else of the line before.
fn matched(content: &str, old: &str, main: LineEnd) -> String {
    let (new, flat) = (plain(content), plain(old));
    let ends: Vec<LineEnd> = lines::lines(old.as_bytes(), false).map(|line| line.end).collect();
    let twins = twins(&flat, &new, ends.len());
    let mut out = String::with_capacity(content.len().max(old.len()));
    let mut before = main;
    for (line, twin) in new.split_inclusive('\n').zip(twins) {
        let own = twin.and_then(|twin| ends.get(twin)).filter(|end| **end != LineEnd::None);
        let end = *own.unwrap_or(&before);
        out.push_str(line.trim_end_matches('\n'));
        if line.ends_with('\n') {
            out.push_str(end.as_str());
        }
        before = end;
    }
    out
}

/// For each new line the old one, from 0, that it is or replaces; none where it is added.
fn twins(old: &str, new: &str, old_lines: usize) -> Vec<Option<usize>> {
    let limits = Limits { context: 0, lines: usize::MAX, width: 1 };
    let mut twins = Vec::new();
    let mut done = 0;
    for hunk in diff::diff(old, new, limits).hunks {
        // A side without lines names the line before it.
        let first = hunk.old_start - usize::from(hunk.old_lines > 0);
        twins.extend((done..first).map(Some));
        twins.extend((0..hunk.new_lines).map(|nth| (nth < hunk.old_lines).then_some(first + nth)));
        done = first + hunk.old_lines;
    }
    twins.extend((done..old_lines).map(Some));
    twins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of at most `lines` lines of a few kinds.
    fn texts(lines: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..lines {
            let longer = |text: &String| {
                ["a\n", "a\r\n", "b\n", "b\r\n", "c", "\r\n"].map(|line| text.clone() + line)
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn what_was_read_and_written_back_is_what_was_there() {
        for old in texts(5) {
            let had = LineEnds::scan(old.as_bytes());
            assert_eq!(fitted(plain(&old), &old, had).0, old);
        }
    }

    #[test]
    fn nothing_but_line_ends_changes_and_none_is_new() {
        let texts = texts(3);
        for old in &texts {
            let had = LineEnds::scan(old.as_bytes());
            for content in &texts {
                let (text, note) = fitted(content.clone(), old, had);
                assert_eq!(plain(&text), plain(content), "{old:?}");
                let has = LineEnds::scan(text.as_bytes());
                assert!(
                    had.crlf + had.lf == 0 || had.crlf > 0 || has.crlf == 0,
                    "{old:?} {text:?}"
                );
                assert!(had.crlf + had.lf == 0 || had.lf > 0 || has.lf == 0, "{old:?} {text:?}");
                assert!(note.is_some() || text == *content, "{old:?} {content:?} {text:?}");
            }
        }
    }
}
