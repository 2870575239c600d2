//! Which commands of a script decide how it ends.
//!
//! **Invariant:** a command decides only where the script cannot end with exit code 0 unless that command
//! ran and ended with exit code 0. What is not certain does not decide: loops, branches, functions, what
//! stands left of `||`, all of a pipeline but its end unless `pipefail` is set, and the background.
//!
//! **Does not know:** the settings of the shell that the script begins in, what functions and sourced files
//! do.

use std::collections::BTreeMap;

use tree_sitter::Node;

use crate::{
    Script,
    syntax::{Kind, Word},
    words::{children, named},
};

/// Statements behind a here-document, which the grammar counts to its redirect.
const BEHIND: [&str; 4] = ["pipeline", "command", "list", "redirected_statement"];

/// What holds statements that may run or not.
const BRANCHES: [&str; 12] = [
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "case_statement",
    "case_item",
    "do_group",
    "function_definition",
    "negated_command",
    "heredoc_redirect",
];

/// What becomes of the exit code of a statement.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
struct Context {
    /// Whether it is that of the script.
    decides: bool,
    /// Whether `errexit` ends the script where it is not 0.
    aborts: bool,
    /// Whether both need `pipefail`.
    piped: bool,
    /// Whether it is that of the whole script only where it is the last statement.
    is_statement: bool,
    /// Whether it runs in the shell of the script itself.
    is_main: bool,
    /// Whether it runs wherever its shell comes to it.
    is_certain: bool,
}

/// Nobody looks at it.
const LOST: Context = Context {
    decides: false,
    aborts: false,
    piped: false,
    is_statement: true,
    is_main: false,
    is_certain: false,
};

/// A simple command.
#[derive(Clone, Copy, Debug)]
struct SimpleCommand {
    context: Context,
    /// The number of its statement.
    statement: usize,
}

/// Collects the commands of a script while its trees are there.
#[derive(Debug, Default)]
pub(crate) struct ExitStatus {
    /// By their first byte.
    commands: BTreeMap<usize, SimpleCommand>,
    /// How many statements the script has.
    statements: usize,
    /// From where on the script may have ended well.
    ends: Option<usize>,
    /// From where on these are set.
    errexit: Option<usize>,
    pipefail: Option<usize>,
    /// Whether a trap may change how it ends, or a setting goes away again.
    is_odd: bool,
}

impl ExitStatus {
    /// Takes the tree of the next part of the text.
    pub(crate) fn part(&mut self, text: &str, root: Node<'_>) {
        let main = Context { decides: true, aborts: true, is_main: true, is_certain: true, ..LOST };
        let all = children(root);
        for (at, node) in all.iter().enumerate().filter(|(_, node)| is_statement(node)) {
            self.statements += 1;
            let context = if is_background(&all, at) { LOST } else { main };
            Walk { text, all: self, shell: main }.statement(*node, context);
        }
    }

    /// Marks the commands of the script that decide.
    pub(crate) fn apply(self, script: &mut Script) {
        let Script { commands, functions, .. } = script;
        let simple = |command: &&mut crate::Command| {
            command.kind == Kind::Simple && !command.place.is_substituted
        };
        for command in commands.iter_mut().filter(simple) {
            let name = command.words.first().and_then(Word::literal);
            let is_call = name.is_some_and(|name| functions.contains(&name));
            command.place.decides = !is_call && self.decides(command.span.start);
        }
    }

    fn decides(&self, start: usize) -> bool {
        let Some(SimpleCommand { context, statement }) = self.commands.get(&start) else {
            return false;
        };
        let is_set = |from: Option<usize>| from.is_some_and(|from| from < start);
        let is_last = !context.is_statement || *statement == self.statements;
        let is_looked_at = context.decides && is_last || context.aborts && is_set(self.errexit);
        is_looked_at
            && (!context.piped || is_set(self.pipefail))
            && !self.is_odd
            && !is_set(self.ends)
    }
}

/// A walk through one statement.
struct Walk<'a, 'e> {
    text: &'a str,
    all: &'e mut ExitStatus,
    /// What becomes of the exit code of the shell that it is in.
    shell: Context,
}

impl Walk<'_, '_> {
    fn text_of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn statement(&mut self, node: Node<'_>, context: Context) {
        match node.kind() {
            "command" => self.command(node, context, false),
            "redirected_statement" => self.redirected(node, context),
            "list" => self.list(node, context),
            "pipeline" => self.pipeline(node, context),
            "compound_statement" if !self.text_of(node).starts_with("((") => {
                self.block(node, context);
            }
            "subshell" => self.apart(context, |walk, inside| walk.block(node, inside)),
            // It may run, or not, or its end is turned round.
            kind if BRANCHES.contains(&kind) => {
                for child in named(node) {
                    self.statement(child, LOST);
                }
            }
            _ => {}
        }
    }

    /// Statements one after the other: the last one's exit code is that of them all.
    fn block(&mut self, node: Node<'_>, context: Context) {
        let all = children(node);
        let last = all.iter().rposition(is_statement);
        for (at, child) in all.iter().enumerate().filter(|(_, child)| is_statement(child)) {
            let context = match () {
                () if is_background(&all, at) => LOST,
                () if Some(at) == last => context,
                () => Context { decides: false, ..context },
            };
            self.statement(*child, context);
        }
    }

    /// Goes on in a shell of its own.
    fn apart(&mut self, context: Context, walk: impl FnOnce(&mut Self, Context)) {
        let inside = Context { is_main: false, ..context };
        let before = std::mem::replace(&mut self.shell, inside);
        walk(self, inside);
        self.shell = before;
    }

    fn redirected(&mut self, node: Node<'_>, context: Context) {
        let redirects = children(node).into_iter();
        let mut behind = redirects.filter(|child| child.kind() == "heredoc_redirect");
        let goes_on =
            behind.any(|child| named(child).iter().any(|node| BEHIND.contains(&node.kind())));
        let context = if goes_on { LOST } else { context };
        match node.child_by_field_name("body") {
            Some(body) => self.statement(body, context),
            None => named(node).into_iter().for_each(|child| self.statement(child, LOST)),
        }
    }

    /// `a && b`: both decide. `a || b`: neither, unless b ends the script with another exit code. They lean
    /// to the left as deep as there are commands.
    fn list(&mut self, node: Node<'_>, context: Context) {
        let (mut node, mut context) = (node, context);
        while node.kind() == "list" {
            let all = children(node);
            let operator = all.iter().find(|child| !child.is_named()).map(Node::kind);
            let parts = named(node);
            let Some((left, rights)) = parts.split_first() else { return };
            node = *left;
            // `errexit` does not look left of an operator.
            let before = Context { aborts: false, ..context };
            context = match (rights, operator) {
                ([right], Some("&&")) => {
                    // It may not run.
                    self.statement(*right, Context { is_certain: false, ..before });
                    before
                }
                ([right], Some("||")) if self.fails(*right) => {
                    self.statement(*right, LOST);
                    before
                }
                ([right], Some("||")) if self.exits(*right) => {
                    self.exit(*right);
                    let shell = self.shell;
                    // The shell ends there, whatever stands behind it.
                    let is_statement = shell.is_statement && !shell.is_main;
                    if before.is_certain { Context { is_statement, ..shell } } else { before }
                }
                _ => {
                    for right in rights {
                        self.statement(*right, LOST);
                    }
                    LOST
                }
            };
        }
        self.statement(node, context);
    }

    /// A command that only fails: it leaves what stood left of it as it was.
    fn fails(&self, node: Node<'_>) -> bool {
        node.kind() == "command" && self.text_of(node).trim() == "false"
    }

    /// Whether this always ends the shell with another exit code than 0, where it stands right of `||`.
    fn exits(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "command" => {
                matches!(self.text_of(node).trim(), "exit" | "exit $?" | "exit \"$?\"")
                    || is_failing_exit(self.text_of(node))
            }
            "compound_statement" => named(node).last().is_some_and(|last| {
                last.kind() == "command" && is_failing_exit(self.text_of(*last))
            }),
            _ => false,
        }
    }

    /// Takes what [`exits`](Self::exits) took.
    fn exit(&mut self, node: Node<'_>) {
        match node.kind() {
            "command" => self.command(node, LOST, true),
            _ => named(node).into_iter().for_each(|child| self.statement(child, LOST)),
        }
    }

    fn pipeline(&mut self, node: Node<'_>, context: Context) {
        let all = named(node);
        let is_tail = children(node).first().is_some_and(|first| !first.is_named());
        // What the grammar puts elsewhere than bash.
        let is_odd =
            is_tail || all.iter().any(|part| matches!(part.kind(), "list" | "negated_command"));
        let end = all.len().saturating_sub(1);
        for (at, part) in all.into_iter().enumerate() {
            let context = match at {
                _ if is_odd => LOST,
                _ if at == end => context,
                _ => Context { piped: true, ..context },
            };
            self.apart(context, |walk, inside| walk.statement(part, inside));
        }
    }

    /// A command of words; `is_failing` for an `exit` that is known to end with another code than 0.
    fn command(&mut self, node: Node<'_>, context: Context, is_failing: bool) {
        let start = node.start_byte();
        self.all.commands.insert(start, SimpleCommand { context, statement: self.all.statements });
        let text = self.text_of(node);
        let words =
            || text.split_whitespace().skip_while(|word| ["command", "builtin"].contains(word));
        match words().next().unwrap_or_default() {
            "exit" | "return" | "logout" if !is_failing && !is_failing_exit(text) => {
                self.ends(start);
            }
            "exec" if words().nth(1).is_some_and(|word| !word.contains(['<', '>'])) => {
                self.ends(start);
            }
            "trap" => self.all.is_odd = true,
            "set" => {
                let (errexit, pipefail) = settings(words().skip(1));
                let is_off = |word: &str| word.starts_with('+') && word.contains(['e', 'o']);
                self.all.is_odd |= words().any(is_off);
                if context.is_main && (context.decides || context.aborts) {
                    self.all.errexit = self.all.errexit.or(errexit.then_some(start));
                    self.all.pipefail = self.all.pipefail.or(pipefail.then_some(start));
                }
            }
            _ => {}
        }
    }

    fn ends(&mut self, start: usize) {
        self.all.ends = Some(self.all.ends.map_or(start, |ends| ends.min(start)));
    }
}

/// Whether this is `exit` with another code than 0.
fn is_failing_exit(text: &str) -> bool {
    let code = text.trim().strip_prefix("exit ").and_then(|code| code.trim().parse::<u8>().ok());
    code.is_some_and(|code| code != 0)
}

/// Whether these words of `set` set `errexit` and `pipefail`.
fn settings<'t>(words: impl Iterator<Item = &'t str>) -> (bool, bool) {
    let (mut errexit, mut pipefail, mut is_name) = (false, false, false);
    for word in words {
        if is_name {
            errexit |= word == "errexit";
            pipefail |= word == "pipefail";
            is_name = false;
        } else if let Some(letters) = word.strip_prefix('-') {
            errexit |= letters.contains('e');
            is_name = letters.ends_with('o');
        }
    }
    (errexit, pipefail)
}

fn is_statement(node: &Node<'_>) -> bool {
    node.is_named() && node.kind() != "comment"
}

/// Whether what stands at this place among its siblings runs in the background.
fn is_background(all: &[Node<'_>], at: usize) -> bool {
    all.get(at + 1).is_some_and(|next| next.kind() == "&")
}

#[cfg(test)]
mod tests {
    /// The programs that decide, in their order.
    fn deciding(text: &str) -> String {
        let script = crate::parse(text, &mut || true).unwrap();
        let deciding = script.commands.iter().filter(|command| command.place.decides);
        let names = deciding.filter_map(|command| command.words.first()?.literal());
        names.collect::<Vec<_>>().join(" ")
    }

    /// Scripts, and which of their programs decide.
    const SCRIPTS: &[(&str, &str)] = &[
        ("t", "t"),
        ("cd x && t 2>&1", "cd t"),
        ("cd x; t", "t"),
        ("t; echo $?", "echo"),
        ("t\necho done", "echo"),
        ("t &", ""),
        ("t & wait", "wait"),
        ("t | tail -5", "tail"),
        ("t 2>&1 | tail && echo", "tail echo"),
        ("a && t | tail", "a tail"),
        ("set -o pipefail; t | tail", "t tail"),
        ("set -euo pipefail\nt | tail\necho", "t tail echo"),
        ("set -e; t | tail; echo", "tail echo"),
        ("set -e; t && a; b", "b"),
        ("if x; then t || exit 1; fi; a", "a"),
        ("a && { t || exit 1; }; b", "b"),
        ("a && { t || exit 1; }", "a t"),
        ("set -e; t; set +e; echo", ""),
        ("(set -o pipefail); t | tail", "tail"),
        ("(set -e; t; echo)", "echo"),
        ("if x; then set -e; fi; t; echo", "echo"),
        ("t || true", ""),
        ("t || echo failed", ""),
        ("t || false", "t"),
        ("t || exit 1", "t"),
        ("t || exit; echo", "t echo"),
        ("t || exit $?\na", "t a"),
        ("t || { echo failed; exit 1; }\na", "t a"),
        ("t || { exit 0; }; a", ""),
        ("(t || exit 1); a", "a"),
        ("(t || exit 1)", "t"),
        ("(cd x && t)", "cd t"),
        ("{ a; t; }", "t"),
        ("! t", ""),
        ("! t | a", ""),
        ("if t; then a; fi", ""),
        ("for x in 1 2; do t; done", ""),
        ("while t; do a; done", ""),
        ("case x in x) t;; esac", ""),
        ("f() { t; }; f", ""),
        ("t() { true; }; t", ""),
        ("x=$(t)", ""),
        ("echo $(t)", "echo"),
        ("[ -f x ] && t", "t"),
        ("[ -f x ] || exit 0; t", ""),
        ("cd x || exit 1; t", "cd t"),
        ("exit 0; t", ""),
        ("t && exit 0", "t exit"),
        ("exec t", "exec"),
        ("exec > log; t", "t"),
        ("trap 'exit 0' EXIT; t", ""),
        ("a=1 t", "t"),
        ("t <<EOF\nx\nEOF\n", "t"),
        ("t <<EOF | cat\nx\nEOF\n", ""),
    ];

    #[test]
    fn only_what_the_end_of_a_script_depends_on_decides() {
        for (text, wanted) in SCRIPTS {
            assert_eq!(deciding(text), *wanted, "{text}");
        }
        // Read in several pieces.
        let many = "echo aaaaaaaaaaaaaaaaaaaa\n".repeat(40);
        assert_eq!(deciding(&format!("t\n{many}")), "echo");
        assert_eq!(deciding(&format!("{many}t")), "t");
    }
}
