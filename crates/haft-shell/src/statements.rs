//! Statements of the tree, down to simple commands.

use std::ops::Range;

use tree_sitter::Node;

use crate::{
    Command, DEEPEST, Direction, Fault, Flow, Kind, Place, Redirect, Region, Script, Word, cover,
    heredoc::{self, Here},
    quotes::is_name,
    syntax::Piece,
    tree::unclear,
    words::{children, named},
};

/// The words behind which assignments are arguments.
const DECLARES: [&str; 6] = ["declare", "export", "local", "readonly", "typeset", "unset"];

/// Words of the grammar of bash that can be no name of a command unless they are quoted.
const RESERVED: [&str; 20] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "select", "then", "until", "while",
];

/// Reads the trees of a text.
pub(crate) struct Reader<'a> {
    pub source: &'a str,
    pub word_count: usize,
    /// For each byte, and for the end, whether a word begins and ends there.
    pub starts: Vec<bool>,
    pub ends: Vec<bool>,
    pub script: Script,
    depth: usize,
}

/// A simple command while it is read: its words may stand in several places.
#[derive(Default)]
struct Parts<'t> {
    assignments: Vec<Node<'t>>,
    words: Vec<Node<'t>>,
    redirects: Vec<Node<'t>>,
    span: Range<usize>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            word_count: 0,
            starts: vec![false; source.len() + 1],
            ends: vec![false; source.len() + 1],
            script: Script { regions: vec![Region::default()], ..Script::default() },
            depth: 0,
        }
    }

    /// Adds the commands of a part of the text behind the last one; with a fault, none of them.
    pub(crate) fn part(&mut self, part: &Range<usize>, root: Node<'_>) -> Result<(), Fault> {
        let Script { commands, functions, regions } = &self.script;
        let lengths = (commands.len(), functions.len(), regions.len());
        let word_count = self.word_count;
        let read = cover::check(self.source, part, root)
            .and_then(|()| self.block(root, &Place::default()));
        if read.is_err() {
            self.script.commands.truncate(lengths.0);
            self.script.functions.truncate(lengths.1);
            self.script.regions.truncate(lengths.2);
            (self.word_count, self.depth) = (word_count, 0);
            self.starts[part.start..].fill(false);
            self.ends[part.start..].fill(false);
        }
        read
    }

    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        &self.source[node.byte_range()]
    }

    pub(crate) fn unclear(&self, node: Node<'_>) -> Fault {
        unclear(self.source, node.start_byte())
    }

    /// Goes one construct deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth == DEEPEST {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// A place of its own within another.
    fn inside(&mut self, place: &Place, flow: Flow) -> Place {
        let region = self.script.regions.len();
        self.script.regions.push(Region { parent: place.region, flow });
        Place { region, fed_by: None, ..place.clone() }
    }

    /// The same in a shell of its own.
    fn apart(&mut self, place: &Place) -> Place {
        Place { is_subshell: true, ..self.inside(place, Flow::Apart) }
    }

    /// The commands of a substitution.
    pub(crate) fn substitution(
        &mut self,
        node: Node<'_>,
        place: &Place,
    ) -> Result<Range<usize>, Fault> {
        let from = self.script.commands.len();
        let place = Place {
            is_substituted: true,
            is_background: node.kind() == "process_substitution",
            ..self.apart(place)
        };
        self.block(node, &place)?;
        Ok(from..self.script.commands.len())
    }

    /// Statements one after the other.
    fn block(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        self.deeper(|reader| {
            let all = children(node);
            let mut statements = all.iter().enumerate().filter(|(_, child)| child.is_named());
            statements.try_for_each(|(at, _)| reader.one_of(&all, at, place))
        })
    }

    /// The statement at this place among its siblings; behind `&` it runs in a shell of its own.
    fn one_of(&mut self, all: &[Node<'_>], at: usize, place: &Place) -> Result<(), Fault> {
        let is_background = all.get(at + 1).is_some_and(|next| next.kind() == "&");
        if is_background {
            let apart = Place { is_background, ..self.apart(place) };
            return self.statement(all[at], &apart);
        }
        self.statement(all[at], place)
    }

    fn statement(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        match node.kind() {
            "comment" => Ok(()),
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => self.simple(node, &[], place),
            "redirected_statement" => self.redirected(node, place),
            "file_redirect" | "herestring_redirect" => {
                let parts =
                    Parts { redirects: vec![node], span: node.byte_range(), ..Parts::default() };
                self.finish(parts, place)
            }
            "list" => self.list(node, place),
            "pipeline" => self.pipeline(node, place),
            "compound_statement" if self.text(node).starts_with("((") => {
                self.arithmetic(node, place)
            }
            // Without a blank it is a word.
            "compound_statement" if !self.text(node)[1..].starts_with([' ', '\t', '\n', '(']) => {
                Err(self.unclear(node))
            }
            "compound_statement" | "do_group" | "else_clause" => self.block(node, place),
            "if_statement" | "elif_clause" => self.condition(node, place),
            // Without a blank it belongs to the word behind it.
            "negated_command" if !self.is_negated(node) => Err(self.unclear(node)),
            "negated_command" => {
                let inside = self.inside(place, Flow::MayRun);
                self.block(node, &inside)
            }
            "while_statement" => {
                let inside = self.inside(place, Flow::Repeats);
                self.block(node, &inside)
            }
            // bash takes it for arithmetic first.
            "subshell" if self.text(node).starts_with("((") => Err(self.unclear(node)),
            "subshell" => {
                let apart = self.apart(place);
                self.block(node, &apart)
            }
            "for_statement" => self.for_loop(node, place),
            "c_style_for_statement" => self.counted_loop(node, place),
            "case_statement" => self.case(node, place),
            "function_definition" => self.function(node, place),
            "test_command" => self.test(node, place),
            _ => Err(self.unclear(node)),
        }
    }

    /// Whether a `!` stands apart from what it negates.
    fn is_negated(&self, node: Node<'_>) -> bool {
        let rest = self.text(node).strip_prefix('!');
        rest.is_some_and(|rest| rest.starts_with([' ', '\t', '\n']))
    }

    /// `if` and `elif`: a condition, then what may run.
    fn condition(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let mut then = None;
        self.deeper(|reader| {
            let all = children(node);
            for (at, child) in all.iter().enumerate() {
                let here = match child.kind() {
                    "then" => {
                        then = Some(reader.inside(place, Flow::MayRun));
                        continue;
                    }
                    _ if !child.is_named() => continue,
                    "elif_clause" | "else_clause" => &reader.inside(place, Flow::MayRun),
                    _ => then.as_ref().unwrap_or(place),
                };
                reader.one_of(&all, at, here)?;
            }
            Ok(())
        })
    }

    /// `a && b || c`: they lean to the left as deep as there are commands.
    fn list(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let (mut rights, mut left) = (Vec::new(), node);
        while left.kind() == "list" {
            let mut parts = named(left);
            if parts.is_empty() {
                return Err(self.unclear(left));
            }
            let flow = match children(left).iter().find(|child| !child.is_named()) {
                Some(operator) if operator.kind() == "&&" => Flow::IfDone,
                Some(operator) if operator.kind() == "||" => Flow::IfFailed,
                _ => return Err(self.unclear(left)),
            };
            left = parts.remove(0);
            // Two commands and what stands between them; of more it is not known.
            let flow = if parts.len() == 1 { flow } else { Flow::MayRun };
            rights.extend(parts.into_iter().rev().map(|part| (part, flow.clone())));
        }
        self.deeper(|reader| {
            reader.statement(left, place)?;
            rights.into_iter().rev().try_for_each(|(right, flow)| {
                let inside = reader.inside(place, flow);
                reader.statement(right, &inside)
            })
        })
    }

    /// `a | b`. Where the grammar puts a list into a pipeline, only its first command belongs there.
    fn pipeline(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        self.deeper(|reader| {
            let is_tail = children(node).first().is_some_and(|first| !first.is_named());
            let mut was_simple = false;
            for (at, child) in named(node).into_iter().enumerate() {
                let is_fed = at > 0 || is_tail || place.is_fed;
                // What feeds it is known between two commands of words.
                let before = reader.script.commands.len().checked_sub(1);
                let fed_by = before.filter(|_| at > 0 && was_simple && is_simple(child));
                let is_loop = child.kind() == "while_statement";
                let looped_by = before.filter(|_| at > 0 && was_simple && is_loop);
                was_simple = is_simple(child);
                let piped = Place { is_fed, fed_by, looped_by, ..reader.apart(place) };
                if child.kind() != "list" {
                    reader.statement(child, &piped)?;
                    continue;
                }
                let mut parts = named(child).into_iter();
                let first = parts.next().ok_or_else(|| reader.unclear(child))?;
                if first.kind() == "list" {
                    return Err(reader.unclear(child));
                }
                reader.statement(first, &piped)?;
                parts.try_for_each(|part| {
                    let inside = reader.inside(place, Flow::MayRun);
                    reader.statement(part, &inside)
                })?;
            }
            Ok(())
        })
    }

    /// A statement and its redirects.
    fn redirected(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let mut redirects = named(node);
        let place = &Place { looped_by: None, ..place.clone() };
        let Some(body) = node.child_by_field_name("body") else {
            let parts = Parts { redirects, span: node.byte_range(), ..Parts::default() };
            return self.finish(parts, place);
        };
        redirects.retain(|redirect| redirect.id() != body.id());
        // `! a > b` is read as one whose body is `! a`.
        let body = match (body.kind(), &named(body)[..]) {
            ("negated_command", [inner]) if self.is_negated(body) => *inner,
            _ => body,
        };
        match body.kind() {
            _ if is_simple(body) => self.simple(body, &redirects, place),
            // `a && b > c` is read as one whose body is `a && b`.
            "list" | "pipeline" if is_simple(last_of(body)) => {
                self.statement(body, place)?;
                let mut command = self.script.commands.pop().ok_or_else(|| self.unclear(body))?;
                let mut after = Vec::new();
                for redirect in redirects {
                    let behind = match redirect.kind() {
                        "heredoc_redirect" => {
                            self.heredoc(redirect, place, &mut command, &mut after)?
                        }
                        _ => self.redirect(redirect, place, &mut command)?,
                    };
                    for word in behind {
                        command.words.extend(self.words(word, place)?);
                    }
                }
                self.script.commands.push(command);
                self.follow(after, place)
            }
            _ => {
                let from = self.script.commands.len();
                self.statement(body, place)?;
                // It is the file that a loop at its end reads.
                self.script.commands[from..].iter_mut().for_each(|one| one.place.looped_by = None);
                let parts = Parts { redirects, span: node.byte_range(), ..Parts::default() };
                self.finish(parts, place)
            }
        }
    }

    /// A command of words.
    fn simple(
        &mut self,
        node: Node<'_>,
        redirects: &[Node<'_>],
        place: &Place,
    ) -> Result<(), Fault> {
        let mut parts = Parts { span: node.byte_range(), ..Parts::default() };
        if node.kind() == "variable_assignment" {
            parts.assignments.push(node);
            return self.finish(parts, place);
        }
        let is_declared = matches!(node.kind(), "declaration_command" | "unset_command");
        for child in children(node) {
            match child.kind() {
                "variable_assignment" if !is_declared => parts.assignments.push(child),
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    parts.redirects.push(child);
                }
                "comment" => {}
                _ => parts.words.push(child),
            }
        }
        if let Some(last) = redirects.last() {
            parts.span.end = last.end_byte();
        }
        parts.redirects.extend(redirects);
        self.finish(parts, place)
    }

    /// Puts a command together and adds it.
    fn finish(&mut self, mut parts: Parts<'_>, place: &Place) -> Result<(), Fault> {
        let is_compound = parts.words.is_empty() && parts.assignments.is_empty();
        let mut command = Command {
            kind: if is_compound { Kind::Compound } else { Kind::Simple },
            place: place.clone(),
            span: parts.span.clone(),
            ..Command::default()
        };
        let (mut behind, mut after) = (Vec::new(), Vec::new());
        for redirect in std::mem::take(&mut parts.redirects) {
            let more = match redirect.kind() {
                "heredoc_redirect" => self.heredoc(redirect, place, &mut command, &mut after)?,
                _ => self.redirect(redirect, place, &mut command)?,
            };
            behind.extend(more);
        }
        let is_behind = !behind.is_empty();
        if is_behind && parts.words.is_empty() {
            return Err(self.unclear(behind[0]));
        }
        parts.words.extend(behind);
        parts.words.sort_by_key(Node::start_byte);
        for node in std::mem::take(&mut parts.assignments) {
            let (assignment, _) = self.assignment(node, place)?;
            command.assignments.push(assignment);
        }
        // Where a redirect stands among them the grammar does not know what is declared.
        let declares = parts.words.first().filter(|first| DECLARES.contains(&self.text(**first)));
        if let Some(first) = declares.filter(|first| first.is_named() || is_behind) {
            return Err(self.unclear(*first));
        }
        for node in parts.words {
            match node.kind() {
                "variable_assignment" => {
                    let (assignment, word) = self.assignment(node, place)?;
                    command.assignments.push(assignment);
                    command.words.push(word);
                }
                // The name of a declaration is no word of the grammar.
                _ if !node.is_named() && node.kind() != "$" => {
                    self.count(node, 1)?;
                    command.words.push(self.keyword(node)?);
                }
                _ => command.words.extend(self.words(node, place)?),
            }
        }
        let timed = command.words.iter().take_while(|word| is_timed(word)).count();
        let is_twice = command.words[..timed].iter().skip(1).any(|word| word.start() == "time");
        if is_twice || command.words.get(timed).is_some_and(is_reserved) {
            return Err(unclear(self.source, command.span.start));
        }
        self.script.commands.push(command);
        self.follow(after, place)
    }

    /// What stands behind a here-document on its line.
    fn follow(&mut self, after: Vec<Node<'_>>, place: &Place) -> Result<(), Fault> {
        after.into_iter().try_for_each(|node| {
            let place = &self.inside(place, Flow::MayRun);
            match node.kind() {
                "pipeline" => self.pipeline(node, place),
                _ => self.statement(node, place),
            }
        })
    }

    /// A word that the grammar knows by itself.
    fn keyword(&self, node: Node<'_>) -> Result<Word, Fault> {
        let text = self.text(node);
        let is_plain = !text.is_empty() && !text.contains(['$', '`', '"', '\'', '\\', '\n', ' ']);
        let quoted = text.contains(['*', '?', '[']);
        let pieces = vec![Piece::Text { text: text.to_owned(), quoted }];
        is_plain.then(|| Word { pieces, span: node.byte_range() }).ok_or_else(|| self.unclear(node))
    }

    /// The descriptor that is redirected.
    fn descriptor(&self, node: Node<'_>) -> Result<String, Fault> {
        let text = self.text(node);
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        // A number that is none for bash is a word.
        let is_digits = text.bytes().all(|c| c.is_ascii_digit());
        let is_number = is_digits && text.parse::<i32>().is_ok();
        if is_number || name.is_some_and(is_name) {
            return Ok(text.to_owned());
        }
        Err(self.unclear(node))
    }

    /// Adds a redirect; gives the words that the grammar counts to it.
    fn redirect<'t>(
        &mut self,
        node: Node<'t>,
        place: &Place,
        command: &mut Command,
    ) -> Result<Vec<Node<'t>>, Fault> {
        let (mut descriptor, mut how, mut target) = (None, None, None);
        let (mut behind, mut is_closed) = (Vec::new(), false);
        for child in children(node) {
            match child.kind() {
                "file_descriptor" => descriptor = Some(self.descriptor(child)?),
                // See `tree::known`.
                "<" if self.source[child.start_byte()..].starts_with("<<<") => {
                    how = Some(Direction::Text);
                }
                "<" => how = Some(Direction::Read),
                ">>" if self.text(child) == "<>" => how = Some(Direction::Both),
                ">" | ">>" | ">|" | "&>" | "&>>" => how = Some(Direction::Write),
                ">&" | "<&" => how = Some(Direction::Duplicate),
                ">&-" | "<&-" => {
                    how = Some(Direction::Duplicate);
                    is_closed = true;
                }
                "<<<" => how = Some(Direction::Text),
                _ if how.is_none() => return Err(self.unclear(child)),
                _ if target.is_none() && !is_closed => target = Some(child),
                _ => behind.push(child),
            }
        }
        let mut how = how.ok_or_else(|| self.unclear(node))?;
        let target = match target {
            None if how == Direction::Duplicate => Word::default(),
            None => return Err(self.unclear(node)),
            Some(target) => {
                let mut words = self.words(target, place)?;
                match (words.pop(), words.is_empty()) {
                    (Some(word), true) => word,
                    _ => return Err(self.unclear(target)),
                }
            }
        };
        if how == Direction::Duplicate && !target.pieces.is_empty() {
            let text = target.start();
            let is_number = text.bytes().all(|c| c.is_ascii_digit());
            how = match text.bytes().next() {
                Some(_) if is_number && target.literal().is_some() => Direction::Duplicate,
                // With a word `>&` makes a file; the scanner of bash knows numbers and `-` in it. What
                // stands in a variable may be a number, too.
                None if !self.text(node).contains("<&") => Direction::Write,
                Some(c) if c != b'-' && !c.is_ascii_digit() && !self.text(node).contains("<&") => {
                    Direction::Write
                }
                _ => return Err(self.unclear(node)),
            };
        }
        command.redirects.push(Redirect { how, descriptor, target });
        Ok(behind)
    }

    /// Adds a here-document; gives the words behind it, and in `after` what follows on its line.
    fn heredoc<'t>(
        &mut self,
        node: Node<'t>,
        place: &Place,
        command: &mut Command,
        after: &mut Vec<Node<'t>>,
    ) -> Result<Vec<Node<'t>>, Fault> {
        let (mut behind, mut head) = (Vec::new(), None);
        let (mut tabs, mut body, mut end) = (false, None, None);
        let mut descriptor = None;
        for child in children(node) {
            match child.kind() {
                "file_descriptor" => descriptor = Some(self.descriptor(child)?),
                "<<" => {}
                "<<-" => tabs = true,
                "heredoc_start" if head.is_none() => head = Some(child),
                "heredoc_body" if body.is_none() => body = Some(child),
                "heredoc_end" if end.is_none() => end = Some(child),
                "file_redirect" | "herestring_redirect" => {
                    behind.extend(self.redirect(child, place, command)?);
                }
                "heredoc_redirect" => return Err(self.unclear(child)),
                _ if head.is_none() || body.is_some() => return Err(self.unclear(child)),
                _ if !child.is_named() => {}
                "pipeline" | "command" | "list" | "redirected_statement" => after.push(child),
                _ => behind.push(child),
            }
        }
        let (Some(head), Some(end)) = (head, end) else { return Err(self.unclear(node)) };
        let (name, is_literal) =
            heredoc::delimiter(self.text(head)).ok_or_else(|| self.unclear(head))?;
        let here = Here { name, is_literal, tabs };
        let line = self.source[head.end_byte()..].find('\n').map(|at| head.end_byte() + at + 1);
        let line = line.ok_or_else(|| self.unclear(head))?;
        let found = heredoc::end(self.source, line, &here).ok_or_else(|| self.unclear(head))?;
        let ends_there = found.0 <= end.start_byte() && end.end_byte() <= found.1;
        let is_same = self.text(end).trim() == name;
        let is_head = |child: &Node<'_>| !matches!(child.kind(), "heredoc_body" | "heredoc_end");
        let starts_there = body.is_none_or(|body| body.start_byte() >= line)
            && children(node)
                .iter()
                .filter(|child| is_head(child))
                .all(|child| child.end_byte() <= line);
        if !ends_there || !is_same || !starts_there || node.end_byte() > found.1 {
            return Err(self.unclear(head));
        }
        let pieces = self.body(line..found.0, &here, body, place)?;
        let target = Word { pieces, span: line..found.0 };
        command.redirects.push(Redirect { how: Direction::Text, descriptor, target });
        Ok(behind)
    }

    /// The text of a here-document.
    fn body(
        &mut self,
        span: Range<usize>,
        here: &Here<'_>,
        body: Option<Node<'_>>,
        place: &Place,
    ) -> Result<Vec<Piece>, Fault> {
        let whole = &self.source[span.clone()];
        if here.is_literal {
            return Ok(vec![Piece::Text { text: here.literal(whole), quoted: true }]);
        }
        let (mut pieces, mut at) = (Vec::new(), span.start);
        let parts = body.map(named).unwrap_or_default();
        for child in parts.into_iter().filter(|child| child.kind() != "heredoc_content") {
            self.heredoc_text(at..self.begin(child), here.tabs, &mut pieces)?;
            pieces.push(self.expansion(child, true, place)?);
            at = child.end_byte();
        }
        self.heredoc_text(at..span.end, here.tabs, &mut pieces)?;
        Ok(pieces)
    }

    /// Text of a here-document between its expansions.
    fn heredoc_text(
        &self,
        span: Range<usize>,
        tabs: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Fault> {
        let at = span.start;
        let mut is_start = tabs && self.source[..at].ends_with('\n');
        let text = self.source.get(span).ok_or_else(|| unclear(self.source, at))?;
        let mut plain = String::with_capacity(text.len());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let was_start = std::mem::replace(&mut is_start, tabs && c == '\n');
            match (c, chars.peek()) {
                ('\t', _) if was_start => is_start = true,
                ('\\', Some('$' | '`' | '\\')) => plain.extend(chars.next()),
                ('\\', Some('\n')) => drop(chars.next()),
                // A dollar that begins nothing.
                ('$', None | Some(' ' | '\t' | '\n' | '"' | '\'' | '/' | '.' | ',' | ')')) => {
                    plain.push(c);
                }
                ('$' | '`', _) => return Err(unclear(self.source, at)),
                _ => plain.push(c),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text { text: plain, quoted: true });
        }
        Ok(())
    }

    /// `(( ... ))`
    fn arithmetic(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        self.nested(node, place)?;
        let inner = self.text(node).strip_prefix("((").and_then(|text| text.strip_suffix("))"));
        let text = inner.ok_or_else(|| self.unclear(node))?.to_owned();
        self.step(Kind::Arithmetic, vec![expression(text, node)], node, place);
        Ok(())
    }

    fn step(&mut self, kind: Kind, words: Vec<Word>, node: Node<'_>, place: &Place) {
        let place = place.clone();
        let span = node.byte_range();
        self.script.commands.push(Command { kind, words, place, span, ..Command::default() });
    }

    /// `for NAME in WORDS; do ...; done`
    fn for_loop(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let (mut words, mut body) = (Vec::new(), Vec::new());
        for child in named(node) {
            match child.kind() {
                "do_group" | "compound_statement" => body.push(child),
                "variable_name" if words.is_empty() => words.push(self.keyword(child)?),
                _ => words.extend(self.words(child, place)?),
            }
        }
        let place = &self.inside(place, Flow::Repeats);
        self.step(Kind::Loop, words, node, place);
        self.deeper(|reader| body.into_iter().try_for_each(|body| reader.statement(body, place)))
    }

    /// `for ((...)); do ...; done`
    fn counted_loop(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let (body, head): (Vec<_>, Vec<_>) = named(node)
            .into_iter()
            .partition(|child| matches!(child.kind(), "do_group" | "compound_statement"));
        let place = &self.inside(place, Flow::Repeats);
        head.into_iter().try_for_each(|part| self.nested(part, place))?;
        // Its head ends where its body begins.
        let end = body.first().map_or(node.end_byte(), Node::start_byte);
        let text = self.source[node.start_byte()..end].trim_end();
        let inner = text.trim_end_matches([' ', '\t', '\n', ';']).strip_suffix("do");
        let inner = inner.unwrap_or(text).trim_end_matches([' ', '\t', '\n', ';']);
        let inner = inner.strip_prefix("for").map(str::trim_start);
        let inner = inner.and_then(|text| text.strip_prefix("((")?.strip_suffix("))"));
        let text = inner.ok_or_else(|| self.unclear(node))?.to_owned();
        self.step(Kind::Arithmetic, vec![expression(text, node)], node, place);
        self.deeper(|reader| body.into_iter().try_for_each(|body| reader.statement(body, place)))
    }

    fn case(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let (mut words, mut bodies) = (Vec::new(), Vec::new());
        for child in named(node) {
            if child.kind() != "case_item" {
                words.push(self.word(child, place)?);
                continue;
            }
            let mut body = children(child);
            let end = body.iter().position(|part| part.kind() == ")").unwrap_or(body.len());
            let after = body.split_off(end);
            for part in body.iter().filter(|part| part.is_named() && part.kind() != "comment") {
                words.push(self.word(*part, place)?);
            }
            bodies.push(after);
        }
        self.step(Kind::Case, words, node, place);
        self.deeper(|reader| {
            bodies.into_iter().try_for_each(|body| {
                let place = &reader.inside(place, Flow::MayRun);
                let mut statements = body.iter().enumerate().filter(|(_, part)| part.is_named());
                statements.try_for_each(|(at, _)| reader.one_of(&body, at, place))
            })
        })
    }

    fn function(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let name = node.child_by_field_name("name").ok_or_else(|| self.unclear(node))?;
        let text = self.word(name, place)?.literal().ok_or_else(|| self.unclear(name))?;
        // bash defines none by a name that is quoted, and goes on.
        if text != self.text(name) {
            return Err(self.unclear(name));
        }
        self.script.functions.push(text.clone());
        let body = node.child_by_field_name("body").ok_or_else(|| self.unclear(node))?;
        let inside = Place {
            in_function: true,
            looped_by: None,
            ..self.inside(place, Flow::Function(text))
        };
        self.deeper(|reader| reader.statement(body, &inside))?;
        let is_redirect = |child: &Node<'_>| child.kind().ends_with("_redirect");
        let redirects: Vec<_> = named(node).into_iter().filter(is_redirect).collect();
        let Some(first) = redirects.first() else { return Ok(()) };
        // On a line of its own it is a command of its own.
        if self.source[body.end_byte()..first.start_byte()].contains('\n') {
            return Err(self.unclear(*first));
        }
        self.finish(Parts { redirects, span: node.byte_range(), ..Parts::default() }, &inside)
    }

    /// `[ ... ]`, which is a command as any other, and `[[ ... ]]`.
    fn test(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        let mut words = Vec::new();
        let is_extended = ["[[ ", "[[\n"].iter().any(|start| self.text(node).starts_with(start));
        if !is_extended && !self.text(node).starts_with("[ ") {
            return Err(self.unclear(node));
        }
        self.operands(node, is_extended, place, &mut words)?;
        let kind = if is_extended { Kind::Test } else { Kind::Simple };
        self.step(kind, words, node, place);
        Ok(())
    }

    fn operands(
        &mut self,
        node: Node<'_>,
        is_extended: bool,
        place: &Place,
        words: &mut Vec<Word>,
    ) -> Result<(), Fault> {
        self.deeper(|reader| {
            for child in children(node) {
                match child.kind() {
                    "unary_expression" if reader.text(child).starts_with('~') => {
                        words.push(reader.home(child, place)?);
                    }
                    "binary_expression" | "unary_expression" | "parenthesized_expression" => {
                        reader.operands(child, is_extended, place, words)?;
                    }
                    // In `[ a > b ]` it is a redirect.
                    _ if !child.is_named() && child.kind() != "$" => {
                        let word = reader.keyword(child)?;
                        let is_plain = ["[", "]", "!", "=", "==", "!="].contains(&child.kind());
                        if !is_extended && !is_plain {
                            return Err(reader.unclear(child));
                        }
                        words.push(word);
                    }
                    "extglob_pattern" if is_extended && is_choice(reader.text(child)) => {
                        reader.count(child, 1)?;
                        words.push(expression(reader.text(child).to_owned(), child));
                    }
                    _ => words.push(reader.word(child, place)?),
                }
            }
            Ok(())
        })
    }
}

/// Whether a pattern is made of parentheses around plain texts, and nothing that is expanded.
fn is_choice(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_alphanumeric() || b"@!+*?()|_.-".contains(&c))
}

/// The word that an arithmetic expression is kept as.
fn expression(text: String, node: Node<'_>) -> Word {
    Word { pieces: vec![Piece::Text { text, quoted: true }], span: node.byte_range() }
}

/// Whether a node is a command of words.
fn is_simple(node: Node<'_>) -> bool {
    matches!(node.kind(), "command" | "declaration_command" | "unset_command")
}

/// The last command of a list or pipeline.
fn last_of(node: Node<'_>) -> Node<'_> {
    let mut last = node;
    while matches!(last.kind(), "list" | "pipeline" | "negated_command") {
        match named(last).pop() {
            Some(inner) => last = inner,
            None => break,
        }
    }
    last
}

/// Whether a word stands before the command that `time` measures, or is no word at all.
fn is_timed(word: &Word) -> bool {
    matches!(&word.pieces[..], [Piece::Text { text, quoted: false }]
        if ["time", "-p", "--"].contains(&text.as_str()))
}

/// Whether bash takes a word for a part of its grammar.
fn is_reserved(word: &Word) -> bool {
    matches!(&word.pieces[..], [Piece::Text { text, quoted: false }]
        if RESERVED.contains(&text.as_str()))
}
