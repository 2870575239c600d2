//! Accounts for every byte of a text.
//!
//! **Invariant:** between two leaves of a tree stands nothing that a shell would run: blanks, line
//! ends and escaped line ends. Within a simple command no line ends: where the grammar follows
//! several readings, the one that it keeps may make one command of two lines.

use std::ops::Range;

use tree_sitter::Node;

use crate::{Fault, tree::unclear};

/// What may stand between the leaves of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Text that is no leaf.
    Text,
    /// Blanks and escaped line ends.
    Line,
    /// Line ends, too.
    Lines,
}

impl Within {
    fn of(text: &str, node: Node<'_>, around: Option<Self>) -> Self {
        match node.kind() {
            "string" | "heredoc_body" => Self::Text,
            "command"
            | "command_name"
            | "concatenation"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
            | "negated_command"
            | "redirected_statement"
            | "file_redirect"
            | "herestring_redirect" => Self::Line,
            "test_command" if !text[node.byte_range()].starts_with("[[") => Self::Line,
            "binary_expression" | "unary_expression" => around.unwrap_or(Self::Lines),
            _ => Self::Lines,
        }
    }
}

/// Checks the whole tree of a part of a text.
pub(crate) fn check(text: &str, part: &Range<usize>, root: Node<'_>) -> Result<(), Fault> {
    let (mut at, mut cursor) = (part.start, root.walk());
    // Where the nodes around the one that is looked at begin, and what may stand in them.
    let mut around: Vec<(usize, Within)> = Vec::new();
    loop {
        let node = cursor.node();
        if cursor.goto_first_child() {
            let outer = around.last().map(|(_, within)| *within);
            around.push((node.start_byte(), Within::of(text, node, outer)));
            continue;
        }
        let outer = around.iter().rev().find(|(start, _)| *start < node.start_byte());
        gap(text, at, &node, outer.map_or(Within::Lines, |(_, within)| *within))?;
        token(text, &node)?;
        at = at.max(node.end_byte());
        while !cursor.goto_next_sibling() {
            around.pop();
            if !cursor.goto_parent() {
                let is_over = text[at.min(part.end)..part.end].trim_matches(BLANKS).is_empty();
                return if is_over { Ok(()) } else { Err(unclear(text, at)) };
            }
        }
    }
}

/// Checks that a token is what its name says: the scanner at times takes more into it.
fn token(text: &str, leaf: &Node<'_>) -> Result<(), Fault> {
    let own = text.get(leaf.byte_range()).unwrap_or_default();
    // See `tree::known`.
    let is_both = leaf.kind() == ">>" && own.trim_start_matches(BLANKS) == "<>";
    if !leaf.is_named()
        && !is_both
        && own.trim_start_matches(BLANKS) != leaf.kind().trim_matches(BLANKS)
    {
        return Err(unclear(text, leaf.start_byte()));
    }
    let is_whole = match leaf.kind() {
        "ansi_c_string" => is_quoted(own.strip_prefix('$').unwrap_or_default(), true),
        "raw_string" => is_quoted(own, false),
        _ => true,
    };
    if is_whole { Ok(()) } else { Err(unclear(text, leaf.start_byte())) }
}

/// Whether a text in single quotes ends at the first quote that closes it. The grammar takes one
/// behind a backslash that is escaped itself for an escaped one, and all up to the next into it.
fn is_quoted(text: &str, escapes: bool) -> bool {
    let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) else {
        return false;
    };
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let is_open = c != '\'' && (c != '\\' || !escapes || chars.next().is_some());
        if !is_open {
            return false;
        }
    }
    true
}

/// What separates words.
pub(crate) const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Checks what stands before a leaf. What of a string or a here-document is no leaf is read again
/// from the text itself.
fn gap(text: &str, from: usize, leaf: &Node<'_>, within: Within) -> Result<(), Fault> {
    let to = leaf.start_byte();
    let Some(between) = text.get(from..to) else { return Err(unclear(text, to.min(from))) };
    // See `tree::known`.
    let is_operator = text[..from].ends_with('<') && !text[..from].ends_with("\\<");
    let is_here_string = is_operator && between.starts_with("<<");
    let between = if is_here_string { &between[2..] } else { between };
    let is_fine = match between {
        _ if within == Within::Text => true,
        // The grammar and bash differ about an escaped line end that stands alone.
        _ if between.contains('\\') => {
            let blanks = between.replace("\\\n", "");
            between.starts_with([' ', '\t']) && blanks.trim_matches([' ', '\t']).is_empty()
        }
        _ if within == Within::Line => between.trim_matches([' ', '\t']).is_empty(),
        _ => between.trim_matches(BLANKS).is_empty(),
    };
    if is_fine { Ok(()) } else { Err(unclear(text, from)) }
}
