//! Accounts for every byte of a text.
//!
//! **Invariant:** between two leaves of a tree stands nothing that a shell would run: blanks, line
//! ends and escaped line ends.

use tree_sitter::Node;

use crate::{Fault, tree::unclear};

/// Checks a whole tree.
pub(crate) fn check(text: &str, root: Node<'_>) -> Result<(), Fault> {
    let (mut at, mut cursor) = (0, root.walk());
    // Where the nodes around the one that is looked at begin, and whether they hold plain text.
    let mut around: Vec<(usize, bool)> = Vec::new();
    loop {
        let node = cursor.node();
        if cursor.goto_first_child() {
            around.push((node.start_byte(), ["string", "heredoc_body"].contains(&node.kind())));
            continue;
        }
        let outer = around.iter().rev().find(|(start, _)| *start < node.start_byte());
        gap(text, at, &node, outer.is_some_and(|(_, is_text)| *is_text))?;
        token(text, &node)?;
        at = at.max(node.end_byte());
        while !cursor.goto_next_sibling() {
            around.pop();
            if !cursor.goto_parent() {
                let is_over = text[at..].trim_matches(BLANKS).is_empty();
                return if is_over { Ok(()) } else { Err(unclear(text, at)) };
            }
        }
    }
}

/// Checks that a token is what its name says: the scanner at times takes more into it.
fn token(text: &str, leaf: &Node<'_>) -> Result<(), Fault> {
    let own = text.get(leaf.byte_range()).unwrap_or_default();
    // See `tree::of`.
    let is_both = leaf.kind() == ">>" && own.trim_start_matches(BLANKS) == "<>";
    if !leaf.is_named()
        && !is_both
        && own.trim_start_matches(BLANKS) != leaf.kind().trim_matches(BLANKS)
    {
        return Err(unclear(text, leaf.start_byte()));
    }
    Ok(())
}

/// What separates words.
pub(crate) const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Checks what stands before a leaf. What of a string or a here-document is no leaf is read again
/// from the text itself.
fn gap(text: &str, from: usize, leaf: &Node<'_>, is_text: bool) -> Result<(), Fault> {
    let to = leaf.start_byte();
    let Some(between) = text.get(from..to) else { return Err(unclear(text, to.min(from))) };
    let is_fine = match between {
        _ if is_text => true,
        // The grammar and bash differ about an escaped line end that stands alone.
        _ if between.contains('\\') => {
            let blanks = between.replace("\\\n", "");
            between.starts_with([' ', '\t']) && blanks.trim_matches([' ', '\t']).is_empty()
        }
        _ => between.trim_matches(BLANKS).is_empty(),
    };
    if is_fine { Ok(()) } else { Err(unclear(text, from)) }
}
