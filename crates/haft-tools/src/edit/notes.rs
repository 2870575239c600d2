//! Notes about an edit whose new text looks as if it was not meant so.
//!
//! **Invariant:** the finding is reported, never repaired: the new text stands in the file as it
//! was given.

use haft_text::{
    edit::{Change, Edit, is_fence},
    names,
};

/// Notes of one kind in an answer.
const MOST: usize = 3;
/// Characters of a line that are quoted.
const QUOTED: usize = 60;

/// What is said of edits of a text, and of what they changed.
pub(super) fn of(text: &str, edits: &[Edit], changes: &[Change], cr_ends: bool) -> Vec<String> {
    let fenced: Vec<usize> = numbers(edits, |edit| is_fenced(&edit.new_text)).collect();
    // The whole file is looked through for the rare edit alone.
    let unusual = !fenced.is_empty() && !text.lines().any(is_fence);
    let fenced = fenced.into_iter().filter(|_| unusual).map(|number| {
        format!(
            "new_text of edit {number} stands between fences (``` or ~~~), which are in the file now"
        )
    });
    let added = |edit: &Edit| has_signs(&edit.new_text) && !has_sign(&edit.old_text);
    let added = numbers(edits, added).map(|number| {
        format!("each line of new_text of edit {number} begins with +, which is in the file now")
    });
    let joined = changes.iter().filter_map(|change| joined(text, change, cr_ends));
    fenced.chain(added).chain(joined.take(MOST)).collect()
}

fn numbers(edits: &[Edit], is: impl Fn(&Edit) -> bool) -> impl Iterator<Item = usize> {
    (1..).zip(edits).filter(move |(_, edit)| is(edit)).map(|(number, _)| number).take(MOST)
}

fn is_fenced(new: &str) -> bool {
    let lines = || new.lines().filter(|line| !line.trim().is_empty());
    lines().count() > 1
        && lines().next().is_some_and(is_fence)
        && lines().next_back().is_some_and(is_fence)
}

fn has_sign(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('+'))
}

/// Whether each line that is not blank begins with a plus, as the lines that came do in a diff.
fn has_signs(new: &str) -> bool {
    let mut lines = new.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('+') && !line.starts_with("++"))
}

/// Says which line stands behind another text now, since the old text ended in a line end and the
/// new one does not.
fn joined(text: &str, change: &Change, cr_ends: bool) -> Option<String> {
    let end = |text: &str| text.ends_with('\n') || cr_ends && text.ends_with('\r');
    let (old, after) = (&text[change.range.clone()], &text[change.range.end..]);
    if !end(old) || end(&change.text) {
        return None;
    }
    let before = if change.text.is_empty() { &text[..change.range.start] } else { &change.text };
    let line = after.split(['\n', '\r']).next().filter(|line| !line.trim().is_empty())?;
    let joins = !before.is_empty() && !end(before);
    joins.then(|| {
        format!(
            "old_text of edit {} ends in a line end and new_text does not: \"{}\" now stands on the \
             line where new_text ends",
            change.edit,
            names::shown(line, QUOTED)
        )
    })
}
