//! The grammar's tree of a text.

use std::{borrow::Cow, ops::ControlFlow};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use crate::Fault;

/// The tree of a text that the grammar takes without doubt.
pub(crate) fn of<F>(text: &str, progress: &mut F) -> Result<Tree, Fault>
where
    F: FnMut(&ParseState) -> ControlFlow<()>,
{
    let mut parser = Parser::new();
    // The grammar is of another version than the library takes: a fault of the build.
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| unclear(text, 0))?;
    // The grammar does not know `<>`, which stands where `>>` may.
    let known =
        if text.contains("<>") { text.replace("<>", ">>").into() } else { Cow::Borrowed(text) };
    let bytes = known.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let options = ParseOptions::new().progress_callback(progress);
    let tree = parser.parse_with_options(&mut read, None, Some(options)).ok_or(Fault::TooSlow)?;
    match first_fault(tree.root_node()) {
        Some(at) => Err(unclear(text, at)),
        None => Ok(tree),
    }
}

/// Where the grammar guessed.
fn first_fault(root: Node<'_>) -> Option<usize> {
    if !root.has_error() {
        return None;
    }
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(node.start_byte());
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(0);
            }
        }
    }
}

/// The fault of a text that is not understood from here on.
pub(crate) fn unclear(text: &str, at: usize) -> Fault {
    let at = text.floor_char_boundary(at);
    Fault::Unclear { at, text: text[at..].chars().take(40).collect() }
}
