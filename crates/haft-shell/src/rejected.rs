//! What the grammar takes and bash does not: the end of a `case` branch elsewhere, bodies without a
//! command, reserved words where none may stand.
//!
//! **Invariant:** a script that bash runs is never refused here. Each node is looked at once, from
//! above: what the tree tells only by going through it anew from its root is not asked.
//!
//! Source: the Bash Reference Manual, 3.2 (Shell Commands), and `parse.y` of bash 5.2.

use tree_sitter::Node;

/// What stands around a node.
#[derive(Clone, Copy, Default)]
struct Around<'t> {
    /// The kind of the node that it is part of.
    parent: &'t str,
    /// The kind of the part before it.
    before: &'t str,
}

/// Where bash would stop, by the first such place in the tree.
pub(crate) fn first<'t>(root: Node<'t>, text: &str) -> Option<usize> {
    let mut cursor = root.walk();
    let (mut around, mut above): (Around<'t>, Vec<_>) = Default::default();
    loop {
        let node = cursor.node();
        if let Some(at) = fault(node, around, text) {
            return Some(at);
        }
        if cursor.goto_first_child() {
            above.push(around);
            around = Around { parent: node.kind(), before: "" };
            continue;
        }
        loop {
            around.before = cursor.node().kind();
            if cursor.goto_next_sibling() {
                break;
            }
            around = above.pop()?;
            cursor.goto_parent();
        }
    }
}

fn fault(node: Node<'_>, around: Around<'_>, text: &str) -> Option<usize> {
    match node.kind() {
        ";;" | ";&" | ";;&" => (around.parent != "case_item").then(|| node.start_byte()),
        "compound_statement" | "subshell" | "do_group" | "if_statement" | "elif_clause"
        | "else_clause" => empty(node),
        "case_statement" => separated(node, &[";", "&"])
            .or_else(|| broken(node, text))
            .or_else(|| unended(node, text)),
        "for_statement" => separated(node, &["&"]).or_else(|| broken(node, text)),
        "negated_command" => matches!(around.before, "|" | "|&").then(|| node.start_byte()),
        "command" => reserved(node, text),
        _ => None,
    }
}

/// One of these signs between the words of a loop or a choice themselves.
fn separated(node: Node<'_>, signs: &[&str]) -> Option<usize> {
    let mut cursor = node.walk();
    let sign = node.children(&mut cursor).find(|child| signs.contains(&child.kind()));
    sign.map(|child| child.start_byte())
}

/// A line end before a word of a loop or a choice itself.
fn broken(node: Node<'_>, text: &str) -> Option<usize> {
    let mut cursor = node.walk();
    let mut end = node.start_byte();
    for child in node.children(&mut cursor) {
        if matches!(child.kind(), "do_group" | "compound_statement" | "case_item" | "comment") {
            break;
        }
        let gap = text.get(end..child.start_byte())?.replace("\\\n", "");
        if child.is_named() && gap.contains('\n') {
            return Some(child.start_byte());
        }
        end = child.end_byte();
    }
    None
}

/// An `esac` that is a word of the command before it.
fn unended(node: Node<'_>, text: &str) -> Option<usize> {
    let mut cursor = node.walk();
    let mut parts = node.children(&mut cursor).skip_while(|part| part.kind() != "case_item");
    let (mut last, mut esac) = (parts.next()?, None);
    for part in parts {
        last = esac.replace(part).unwrap_or(last);
    }
    let esac = esac?;
    // What else a branch may end with has an end of its own.
    while matches!(
        last.kind(),
        "case_item" | "list" | "pipeline" | "negated_command" | "redirected_statement"
    ) {
        let mut cursor = last.walk();
        last = last.children(&mut cursor).last()?;
    }
    let is_simple = matches!(
        last.kind(),
        "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
            | "file_redirect"
            | "herestring_redirect"
    );
    let gap = text.get(last.end_byte()..esac.start_byte())?;
    (is_simple && !gap.contains([';', '&', '\n'])).then(|| esac.start_byte())
}

/// Where a body ends that has no command.
fn empty(node: Node<'_>) -> Option<usize> {
    let mut cursor = node.walk();
    let mut open = false;
    for child in node.children(&mut cursor) {
        match child.kind() {
            "{" | "(" | "do" | "then" | "else" => open = true,
            "}" | ")" | "done" | "fi" | "elif_clause" | "else_clause" if open => {
                return Some(child.start_byte());
            }
            "comment" | "heredoc_body" | ";" | "&" | "\n" => {}
            _ => open = false,
        }
    }
    // The clauses of a condition end with what follows them.
    open.then(|| node.end_byte())
}

/// A reserved word as the name of a command, and `time` with nothing to time before an operator.
fn reserved(node: Node<'_>, text: &str) -> Option<usize> {
    let mut cursor = node.walk();
    let mut words = node.children(&mut cursor);
    let mut first = words.next()?;
    if text.get(first.byte_range())? == "time" {
        let Some(timed) = words.next() else {
            let rest = text.get(node.end_byte()..)?.trim_start_matches([' ', '\t']);
            let is_operator = rest.starts_with(['|', '&', ')']) || rest.starts_with(";;");
            return is_operator.then(|| node.start_byte());
        };
        first = timed;
    }
    (text.get(first.byte_range())? == "in").then(|| first.start_byte())
}
