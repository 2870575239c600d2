//! The text that takes a span's place, in the line ends of the span.
//!
//! Invariant: a line that stands unchanged in both the old and the new text keeps the bytes that it
//! has in the file, its end included; a changed line takes the end of the line that it replaces,
//! an added one that of the line before.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

use super::view::View;
use crate::lines::LineEnd;

/// Lines of both texts together up to which the middle is compared line by line.
const COMPARE_LIMIT: usize = 20_000;

/// What a line, or a word, of the new text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The same line of the old text.
    Same(usize),
    /// Takes the place of a line of the old text.
    For(usize),
    /// Stands for nothing that was there.
    Added,
}

/// Builds the replacement of `span` (in the view) from texts with LF only; `old` has the same
/// number of lines as the span.
pub(crate) fn rebuild(view: &View<'_>, span: &Range<usize>, old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split('\n').collect();
    let fresh: Vec<&str> = new.split('\n').collect();
    let origins = origins(&old, &fresh);
    let mut file = Vec::with_capacity(old.len());
    let mut at = span.start;
    for line in view.text()[span.clone()].split('\n') {
        file.push(at..at + line.len());
        at += line.len() + 1;
    }
    let mut out = String::with_capacity(new.len() + 16);
    let mut before = None;
    for (number, (line, origin)) in fresh.iter().zip(&origins).enumerate() {
        match origin {
            Origin::Same(old) if *old < file.len() => {
                out.push_str(&view.text()[file[*old].clone()]);
            }
            _ => out.push_str(line),
        }
        if number + 1 == fresh.len() {
            break;
        }
        let own = match origin {
            Origin::Same(old) | Origin::For(old) if old + 1 < file.len() => {
                Some(view.end_at(file[*old].end))
            }
            // Its own end stands behind the span; what is added behind it takes the same.
            Origin::Same(_) | Origin::For(_) => view.end_after(span.end).or(before),
            Origin::Added => before,
        };
        let end = own.unwrap_or_else(|| neighbour(view, span));
        out.push_str(end.as_str());
        before = Some(end);
    }
    out
}

/// The end for a line that has none of its own: of the line before, of this one, else LF.
fn neighbour(view: &View<'_>, span: &Range<usize>) -> LineEnd {
    view.end_before(span.start).or_else(|| view.end_after(span.start)).unwrap_or(LineEnd::Lf)
}

/// What each line, or word, of the new text stands for.
pub(super) fn origins(old: &[&str], new: &[&str]) -> Vec<Origin> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    let mut origins: Vec<Origin> = (0..head).map(Origin::Same).collect();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    middle(old_middle, new_middle, head, &mut origins);
    origins.extend((old.len() - tail..old.len()).map(Origin::Same));
    origins
}

fn middle(old: &[&str], new: &[&str], base: usize, origins: &mut Vec<Origin>) {
    let replaced = |origins: &mut Vec<Origin>, old: Range<usize>, new: Range<usize>| {
        let pairs = old.len().min(new.len());
        origins.extend((old.start..old.start + pairs).map(|line| Origin::For(base + line)));
        origins.extend((pairs..new.len()).map(|_| Origin::Added));
    };
    if old.is_empty() || new.is_empty() || old.len() + new.len() > COMPARE_LIMIT {
        return replaced(origins, 0..old.len(), 0..new.len());
    }
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let diff = Diff::compute(Algorithm::Myers, &input);
    let (mut old_at, mut new_at) = (0, 0);
    for hunk in diff.hunks() {
        let (before, after) = (hunk.before, hunk.after);
        while new_at < after.start as usize {
            origins.push(Origin::Same(base + old_at));
            (old_at, new_at) = (old_at + 1, new_at + 1);
        }
        let (old_stop, new_stop) = (before.end as usize, after.end as usize);
        replaced(origins, before.start as usize..old_stop, after.start as usize..new_stop);
        (old_at, new_at) = (old_stop, new_stop);
    }
    while new_at < new.len() {
        origins.push(Origin::Same(base + old_at));
        (old_at, new_at) = (old_at + 1, new_at + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::LineEnds;

    fn built(file: &str, old: &str, new: &str) -> String {
        let view = View::new(file, LineEnds::scan(file.as_bytes()));
        let start = view.text().find(old).unwrap();
        rebuild(&view, &(start..start + old.len()), old, new)
    }

    #[test]
    fn lines_keep_or_inherit_their_ends() {
        let file = "a\r\nb\nc\r\nd\n";
        assert_eq!(built(file, "a\nb\nc", "a\nX\nb\nc"), "a\r\nX\r\nb\nc");
        assert_eq!(built(file, "b\nc", "B\nC"), "B\nC");
        assert_eq!(built(file, "c", "c\ne"), "c\r\ne");
        assert_eq!(built(file, "d", "d\ne"), "d\ne");
        assert_eq!(built("c\rd\r", "d", "d\ne"), "d\re");
        assert_eq!(built("c\rd\n", "c\rd", "d\ne\rf"), "d\ne\rf");
        assert_eq!(built("x\r\ny", "y", "y\nz"), "y\r\nz");
        assert_eq!(built("x", "x", "x\ny"), "x\ny");
        // The last line keeps its own end, not that of the line before.
        assert_eq!(built("a\nb\r\nc\r\n", "a\nb", "a\nb\nX"), "a\nb\r\nX");
        assert_eq!(built("a\r\nb\nc\n", "a\nb", "a\nB\nX"), "a\r\nB\nX");
        assert_eq!(built("a\r\nb", "a\nb", "a\nb\nX"), "a\r\nb\r\nX");
    }
}
