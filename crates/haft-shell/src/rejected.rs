//! What the grammar takes and bash does not: the end of a `case` branch elsewhere, bodies without a
//! command, reserved words where none may stand.
//!
//! **Invariant:** a script that bash runs is never refused here.
//!
//! Source: the Bash Reference Manual, 3.2 (Shell Commands), and `parse.y` of bash 5.2.

use tree_sitter::Node;

/// Where bash would stop, by the first such place in the tree.
pub(crate) fn first(root: Node<'_>, text: &str) -> Option<usize> {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if let Some(at) = fault(node, text) {
            return Some(at);
        }
        if node.named_child_count() > 0 && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

fn fault(node: Node<'_>, text: &str) -> Option<usize> {
    match node.kind() {
        ";;" | ";&" | ";;&" => {
            let is_branch = node.parent().is_some_and(|parent| parent.kind() == "case_item");
            (!is_branch).then(|| node.start_byte())
        }
        "compound_statement" | "subshell" | "do_group" | "if_statement" | "elif_clause"
        | "else_clause" => empty(node),
        "case_statement" => {
            separated(node).or_else(|| broken(node, text)).or_else(|| unended(node, text))
        }
        "for_statement" => separated(node).or_else(|| broken(node, text)),
        "negated_command" => {
            let is_first = node.prev_sibling().is_none_or(|before| !is_pipe(before));
            (!is_first).then(|| node.start_byte())
        }
        "command" => reserved(node, text),
        _ => None,
    }
}

fn is_pipe(node: Node<'_>) -> bool {
    matches!(node.kind(), "|" | "|&")
}

/// A `;` or `&` of the words of a loop or a choice themselves.
fn separated(node: Node<'_>) -> Option<usize> {
    let mut cursor = node.walk();
    let loops = node.kind() == "for_statement";
    let is_wrong = |child: &Node<'_>| match child.kind() {
        "&" => true,
        ";" => !loops,
        _ => false,
    };
    node.children(&mut cursor).find(is_wrong).map(|child| child.start_byte())
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
    let esac = node.child(node.child_count().checked_sub(1)?)?;
    let mut last = esac.prev_sibling().filter(|item| item.kind() == "case_item")?;
    loop {
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
        if is_simple {
            let gap = text.get(last.end_byte()..esac.start_byte())?;
            return (!gap.contains([';', '&', '\n'])).then(|| esac.start_byte());
        }
        last = last.child(last.child_count().checked_sub(1)?)?;
    }
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
