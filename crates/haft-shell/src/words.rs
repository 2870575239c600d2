//! Words of the tree.

use std::ops::Range;

use tree_sitter::Node;

use crate::{
    Fault, MOST_WORDS, Place,
    braces::{Atom, Odd, expand},
    quotes::{ansi_c, bare, double, is_name},
    statements::Reader,
    syntax::{Assignment, Piece, Word},
};

/// Operators of `${name OPERATOR word}` that neither run nor change anything.
const PURE: [&str; 18] = [
    ":-", "-", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",",
    ",,",
];

impl Reader<'_> {
    /// The words that one node of the tree makes.
    pub(crate) fn words(&mut self, node: Node<'_>, place: &Place) -> Result<Vec<Word>, Fault> {
        if let Some(word) = self.simple_word(node) {
            self.count(node, 1)?;
            return Ok(vec![word]);
        }
        let atoms = self.atoms(node, place)?;
        let span = node.byte_range();
        // Nothing without quotes is no word: `{,a}` is one.
        let all = expand(&atoms).map_err(|odd| match odd {
            Odd::TooMany => Fault::TooManyWords,
            Odd::Unclear => self.unclear(node),
        })?;
        let all = all.into_iter().filter(|atoms| !atoms.is_empty());
        let words: Vec<_> = all.map(|atoms| word(&atoms, span.clone(), true)).collect();
        self.count(node, words.len())?;
        Ok(words)
    }

    /// A word of which every character stands for itself, without quotes or all in one pair: most
    /// are, and need no looking at each character.
    fn simple_word(&self, node: Node<'_>) -> Option<Word> {
        let span = node.byte_range();
        let text = &self.source[span.clone()];
        let is_name = |c: u8| c.is_ascii_alphabetic() || b"_-./".contains(&c);
        let is_plain = |c: u8| is_name(c) || c.is_ascii_digit() || b":=@%+,".contains(&c);
        let bytes = text.as_bytes();
        let (text, quoted) = match node.kind() {
            // Digits alone may be a descriptor.
            "word" | "command_name"
                if is_name(*bytes.first()?) && bytes.iter().all(|c| is_plain(*c)) =>
            {
                (text, false)
            }
            "raw_string" => (unquoted(text, "'")?, true),
            _ => return None,
        };
        let pieces = vec![Piece::Text { text: text.to_owned(), quoted }];
        Some(Word { pieces, span })
    }

    /// The one word that a node makes where braces stand for themselves.
    pub(crate) fn word(&mut self, node: Node<'_>, place: &Place) -> Result<Word, Fault> {
        let atoms = self.atoms(node, place)?;
        self.count(node, 1)?;
        Ok(word(&atoms, node.byte_range(), false))
    }

    /// A path in the home folder, whose tilde the grammar takes for an operator.
    pub(crate) fn home(&mut self, node: Node<'_>, place: &Place) -> Result<Word, Fault> {
        let [tilde, path] = children(node)[..] else { return Err(self.unclear(node)) };
        let mut word = self.word(path, place)?;
        let is_path = tilde.kind() == "~"
            && tilde.end_byte() == path.start_byte()
            && matches!(word.pieces.first(), Some(Piece::Text { text, quoted: false }) if text.starts_with('/'));
        if !is_path {
            return Err(self.unclear(node));
        }
        word.pieces.insert(0, Piece::Tilde(String::new()));
        word.span = node.byte_range();
        Ok(word)
    }

    /// Counts words, which must stand apart: at times the grammar makes two of one.
    pub(crate) fn count(&mut self, node: Node<'_>, words: usize) -> Result<(), Fault> {
        let span = node.byte_range();
        if !span.is_empty() {
            if self.ends[span.start] || self.starts[span.end] {
                return Err(self.unclear(node));
            }
            self.starts[span.start] = true;
            self.ends[span.end] = true;
        }
        self.word_count += words;
        if self.word_count > MOST_WORDS { Err(Fault::TooManyWords) } else { Ok(()) }
    }

    /// An assignment, and the same as a word.
    pub(crate) fn assignment(
        &mut self,
        node: Node<'_>,
        place: &Place,
    ) -> Result<(Assignment, Word), Fault> {
        let mut found = Assignment::default();
        let mut head = String::new();
        for child in children(node) {
            match child.kind() {
                "variable_name" => {
                    found.name = self.name(child)?;
                    head.push_str(&found.name);
                }
                "subscript" => {
                    found.is_array = true;
                    found.is_indexed = true;
                    let name = child.child_by_field_name("name");
                    let name = name.ok_or_else(|| self.unclear(child))?;
                    found.name = self.name(name)?;
                    let index = self.text(child).strip_prefix(&found.name);
                    let index = index.and_then(|text| text.strip_prefix('[')?.strip_suffix(']'));
                    if !index.is_some_and(is_index) {
                        return Err(self.unclear(child));
                    }
                    self.nested(child, place)?;
                    head.push_str(self.text(child));
                }
                "=" | "+=" => {
                    found.appends = child.kind() == "+=";
                    head.push_str(child.kind());
                }
                "array" => {
                    found.is_array = true;
                    for value in named(child) {
                        let words = self.words(value, place)?;
                        found.values.extend(words);
                    }
                }
                _ => found.values.push(self.word(child, place)?),
            }
        }
        if found.name.is_empty() {
            return Err(self.unclear(node));
        }
        self.count(node, 1)?;
        let pieces = pieces_of(head, &found);
        Ok((found, Word { pieces, span: node.byte_range() }))
    }

    /// The name of a variable.
    fn name(&self, node: Node<'_>) -> Result<String, Fault> {
        let name = self.text(node);
        if is_name(name) { Ok(name.to_owned()) } else { Err(self.unclear(node)) }
    }

    /// The parts of a word.
    fn atoms(&mut self, node: Node<'_>, place: &Place) -> Result<Vec<Atom>, Fault> {
        let mut all = Vec::new();
        self.add(node, place, &mut all)?;
        Ok(all)
    }

    fn add(&mut self, node: Node<'_>, place: &Place, all: &mut Vec<Atom>) -> Result<(), Fault> {
        let text = self.text(node);
        let quoted = |text: Option<String>| text.map(|text| (text, true));
        let found = match node.kind() {
            "word"
            | "number"
            | "variable_name"
            | "test_operator"
            | "extglob_pattern"
            | "special_variable_name"
            | "brace_expression" => {
                let chars = bare(text).ok_or_else(|| self.unclear(node))?;
                if self.is_descriptor(node) {
                    return Err(self.unclear(node));
                }
                all.extend(chars.into_iter().map(|(c, quoted)| Atom::Char(c, quoted)));
                return Ok(());
            }
            "raw_string" => quoted(unquoted(text, "'").map(str::to_owned)),
            "ansi_c_string" => {
                quoted(text.strip_prefix('$').and_then(|text| ansi_c(unquoted(text, "'")?)))
            }
            "string" => return self.string(node, place, all),
            "command_name" | "concatenation" => {
                let mut at = node.start_byte();
                for child in children(node) {
                    if child.start_byte() != at {
                        return Err(self.unclear(child));
                    }
                    at = child.end_byte();
                    self.add(child, place, all)?;
                }
                return Ok(());
            }
            "regex" if !hides_more(text) => Some((text.to_owned(), true)),
            "$" if self.is_lone_dollar(node) => Some(("$".to_owned(), true)),
            _ => {
                return self.expanded(node, false, place, all);
            }
        };
        let (text, quoted) = found.ok_or_else(|| self.unclear(node))?;
        if text.is_empty() {
            all.push(Atom::Empty);
        }
        all.extend(text.chars().map(|c| Atom::Char(c, quoted)));
        Ok(())
    }

    /// Whether bash takes a word for the descriptor of the redirect right behind it.
    fn is_descriptor(&self, node: Node<'_>) -> bool {
        let text = self.text(node);
        let may_be = text.bytes().all(|c| c.is_ascii_digit()) || text.ends_with('}');
        may_be && self.source[node.end_byte()..].starts_with(['<', '>'])
    }

    /// Whether a dollar stands for itself.
    fn is_lone_dollar(&self, node: Node<'_>) -> bool {
        let next = self.source[node.end_byte()..].chars().next();
        next.is_none_or(|c| c.is_ascii_whitespace() || ")|&;".contains(c))
    }

    /// A string in double quotes. The grammar drops blanks in some places: they are taken from
    /// the text.
    fn string(&mut self, node: Node<'_>, place: &Place, all: &mut Vec<Atom>) -> Result<(), Fault> {
        let (start, end) = (node.start_byte() + 1, node.end_byte() - 1);
        let is_quoted = self.text(node).starts_with('"') && self.text(node).ends_with('"');
        if end < start || !is_quoted {
            return Err(self.unclear(node));
        }
        let mut plain = start;
        all.push(Atom::Empty);
        for child in named(node).into_iter().filter(|child| child.kind() != "string_content") {
            self.plain(plain..self.begin(child), all)?;
            self.expanded(child, true, place, all)?;
            plain = child.end_byte();
        }
        self.plain(plain..end, all)
    }

    /// Where an expansion begins: within quotes the grammar counts blanks before it to it.
    pub(crate) fn begin(&self, node: Node<'_>) -> usize {
        node.end_byte() - self.text(node).trim_start().len()
    }

    /// Text within double quotes.
    fn plain(&self, span: Range<usize>, all: &mut Vec<Atom>) -> Result<(), Fault> {
        let at = span.start;
        // One before the closing quote stands for itself.
        let is_last = self.source[span.end..].starts_with('"');
        let text = self.source.get(span).and_then(|text| match text.strip_suffix('$') {
            Some(rest) if is_last && !rest.ends_with('\\') => double(rest).map(|text| text + "$"),
            _ => double(text),
        });
        let text = text.ok_or_else(|| crate::tree::unclear(self.source, at))?;
        all.extend(text.chars().map(|c| Atom::Char(c, true)));
        Ok(())
    }

    /// Adds an expansion, and what the grammar takes for a part of its name: `$1a` is `${1}a`.
    fn expanded(
        &mut self,
        node: Node<'_>,
        quoted: bool,
        place: &Place,
        all: &mut Vec<Atom>,
    ) -> Result<(), Fault> {
        let text = self.text(node).trim_start();
        let name =
            text.strip_prefix('$').filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
        if node.kind() == "simple_expansion"
            && let Some((digit, rest)) = name.and_then(|name| name.split_at_checked(1))
            && rest.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric())
        {
            let rest: Vec<char> = rest.chars().collect();
            all.push(Atom::Piece(self.variable(node, digit, quoted)?));
            all.extend(rest.into_iter().map(|c| Atom::Char(c, quoted)));
            return Ok(());
        }
        all.push(Atom::Piece(self.expansion(node, quoted, place)?));
        Ok(())
    }

    /// What the shell puts in the place of a node.
    pub(crate) fn expansion(
        &mut self,
        node: Node<'_>,
        quoted: bool,
        place: &Place,
    ) -> Result<Piece, Fault> {
        let text = self.text(node).trim_start();
        match node.kind() {
            "simple_expansion" => {
                let name = text.strip_prefix('$').unwrap_or_default();
                self.variable(node, name, quoted)
            }
            "expansion" => {
                let inner = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
                let inner = inner.ok_or_else(|| self.unclear(node))?;
                if is_name(inner) || is_special(inner) {
                    return self.variable(node, inner, quoted);
                }
                self.ends_there(node, quoted)?;
                self.nested(node, place)?;
                let pure = is_pure(inner);
                let is_length = pure && inner.starts_with('#');
                // bash reads on in the next line; a backslash that stays is never followed.
                let joined = inner.replace("\\\n", "");
                let change = crate::changes::is_followed(&joined).then_some(joined);
                Ok(Piece::Expansion { quoted, pure, is_length, name: kept(inner), change })
            }
            "command_substitution" => {
                // Within backticks a backslash means something else.
                // bash takes two parentheses for arithmetic first.
                // They end at the next one, in quotes, too.
                let is_odd = text.starts_with('`')
                    && (text.contains('\\') || text.matches('`').count() != 2);
                if is_odd || text.starts_with("$((") {
                    return Err(self.unclear(node));
                }
                let commands = self.substitution(node, place)?;
                if let (Some(last), [only]) = (self.script.commands.last_mut(), &named(node)[..]) {
                    last.place.is_answer = ends_simple(*only);
                }
                Ok(Piece::Output { commands, quoted })
            }
            "process_substitution" if !quoted => {
                Ok(Piece::Process { commands: self.substitution(node, place)? })
            }
            "arithmetic_expansion" => {
                self.nested(node, place)?;
                let inner = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))"));
                let text = inner.ok_or_else(|| self.unclear(node))?.to_owned();
                Ok(Piece::Arithmetic { text })
            }
            _ => Err(self.unclear(node)),
        }
    }

    /// Checks that an expansion ends where the shell ends it: the grammar looks for quotes in the
    /// text of some, where the shell takes them for escaped.
    fn ends_there(&self, node: Node<'_>, quoted: bool) -> Result<(), Fault> {
        let (from, mut inner) = (self.begin(node), Vec::new());
        commands_in(node, &mut inner);
        let inner: Vec<_> =
            inner.into_iter().map(|node| self.begin(node)..node.end_byte()).collect();
        let end = crate::quotes::expansion(self.source, from, quoted, &inner);
        if end == Some(node.end_byte()) { Ok(()) } else { Err(self.unclear(node)) }
    }

    fn variable(&self, node: Node<'_>, name: &str, quoted: bool) -> Result<Piece, Fault> {
        if is_name(name) || is_special(name) {
            return Ok(Piece::Variable { name: name.to_owned(), quoted });
        }
        Err(self.unclear(node))
    }

    /// Reads the commands that stand anywhere within a node; text of it that the grammar leaves as
    /// it is must hold none.
    pub(crate) fn nested(&mut self, node: Node<'_>, place: &Place) -> Result<(), Fault> {
        self.deeper(|reader| {
            for child in children(node) {
                match child.kind() {
                    "command_substitution" | "process_substitution" => {
                        reader.expansion(child, false, place)?;
                    }
                    "raw_string" | "ansi_c_string" => {}
                    "expansion" => {
                        // In what quotes it stands is not looked at: it is to end there in any.
                        reader.ends_there(child, true)?;
                        reader.nested(child, place)?;
                    }
                    _ if child.child_count() == 0 => {
                        let text = reader.text(child);
                        let is_delimiter = !child.is_named();
                        if !is_delimiter && (text.contains("$(") || text.contains('`')) {
                            return Err(reader.unclear(child));
                        }
                    }
                    _ => reader.nested(child, place)?,
                }
            }
            Ok(())
        })
    }
}

/// The outermost substitutions and arithmetic within a node.
fn commands_in<'t>(node: Node<'t>, all: &mut Vec<Node<'t>>) {
    for child in children(node) {
        match child.kind() {
            "command_substitution" | "process_substitution" | "arithmetic_expansion" => {
                all.push(child);
            }
            _ => commands_in(child, all),
        }
    }
}

/// Whether a statement is a command of words, or a pipeline that ends in one.
fn ends_simple(node: Node<'_>) -> bool {
    // What stands behind the start of a here-document is not told apart here.
    let all = children(node);
    if all.iter().any(|child| child.kind() == "heredoc_redirect" && !is_bare(*child)) {
        return false;
    }
    match node.kind() {
        "command" => true,
        "redirected_statement" => node.child_by_field_name("body").is_some_and(ends_simple),
        "pipeline" => {
            let all = named(node);
            all.last().is_some_and(|last| ends_simple(*last)) && !all.into_iter().any(may_be_list)
        }
        _ => false,
    }
}

/// Whether nothing stands behind the start of a here-document.
fn is_bare(node: Node<'_>) -> bool {
    let own = ["<<", "<<-", "file_descriptor", "heredoc_start", "heredoc_body", "heredoc_end"];
    children(node).iter().all(|child| own.contains(&child.kind()))
}

/// Whether a part of a pipeline may be a list, of which only one command belongs there.
fn may_be_list(node: Node<'_>) -> bool {
    match node.kind() {
        "list" | "negated_command" => true,
        "redirected_statement" => node.child_by_field_name("body").is_none_or(may_be_list),
        _ => false,
    }
}

/// Whether a pattern that the grammar leaves whole may hold an expansion.
fn hides_more(regex: &str) -> bool {
    let mut rest = regex;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if !rest.is_empty() && !rest.starts_with([')', '|']) {
            return true;
        }
    }
    regex.contains(['`', '"', '\'', '\n']) || regex.contains("<(") || regex.contains(">(")
}

/// Parameters of one character, and those of several digits do not exist without braces.
fn is_special(name: &str) -> bool {
    matches!(name.as_bytes(), [c] if c.is_ascii_digit() || b"@*#?-$!".contains(c))
}

/// Whether `${...}` with this inside runs and changes nothing: a plain name and one of [`PURE`].
fn is_pure(inner: &str) -> bool {
    if let Some(name) = inner.strip_prefix('#') {
        return is_name(name) || is_special(name) || is_plain_element(name);
    }
    if is_plain_element(inner) {
        return true;
    }
    let end = inner.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    // Of all elements, too.
    let is_all = rest.starts_with("[@]") || rest.starts_with("[*]");
    let part = if is_all { &rest[3..] } else { rest };
    // A part that begins, and ends, at numbers: other words are evaluated.
    let numbers = part.strip_prefix(':').map(|part| part.split_once(':').unwrap_or((part, "0")));
    if let Some((from, count)) = numbers
        && [from, count].iter().all(|text| is_digits(text))
    {
        return is_name(name) || is_special(name);
    }
    let operator =
        PURE.iter().filter(|pure| rest.starts_with(**pure)).max_by_key(|pure| pure.len());
    let Some(operator) = operator else { return false };
    // What follows is expanded, too.
    let word = &rest[operator.len()..];
    (is_name(name) || is_special(name)) && !word.contains(['$', '`', '(', '<', '>'])
}

/// The variable whose value an expansion is where that is not empty: it only says what stands for an
/// empty one, or takes a slash from the end.
fn kept(inner: &str) -> Option<String> {
    let end = inner.find(|c: char| c != '_' && !c.is_ascii_alphanumeric())?;
    let (name, rest) = inner.split_at(end);
    let keeps = [":-", "-", ":=", "=", ":?", "?"].iter().any(|start| rest.starts_with(start));
    let is_kept = is_name(name) && (keeps || matches!(rest, "%/" | "%%/"));
    is_kept.then(|| name.to_owned())
}

/// Whether `name[@]`, `name[*]` or `name[1]`: other indexes are evaluated.
fn is_plain_element(inner: &str) -> bool {
    let Some((name, index)) = inner.strip_suffix(']').and_then(|inner| inner.split_once('['))
    else {
        return false;
    };
    is_name(name) && (matches!(index, "@" | "*") || is_digits(index))
}

/// Whether the shell takes all of a text for the index of an assignment: each bracket in it has its
/// other one, and none may be quoted.
fn is_index(text: &str) -> bool {
    let is_quoted = text.contains(['\'', '"', '\\']);
    let mut depth = 0_usize;
    for c in text.chars() {
        depth = match c {
            '[' | ']' if is_quoted => return false,
            '[' => depth + 1,
            ']' if depth == 0 => return false,
            ']' => depth - 1,
            _ => depth,
        };
    }
    depth == 0
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// A text without the quotes at its ends.
fn unquoted<'a>(text: &'a str, quote: &str) -> Option<&'a str> {
    text.strip_prefix(quote)?.strip_suffix(quote)
}

/// All children of a node.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    match node.child_count() {
        0 => Vec::new(),
        1 => node.child(0).into_iter().collect(),
        _ => node.children(&mut node.walk()).collect(),
    }
}

/// Those that the grammar names, without comments.
pub(crate) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut all = children(node);
    all.retain(|node| node.is_named() && node.kind() != "comment");
    all
}

/// A word of its parts; tildes of one that is expanded lead to folders.
fn word(atoms: &[Atom], span: Range<usize>, is_argument: bool) -> Word {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while let Some(atom) = atoms.get(at) {
        at += 1;
        match atom {
            Atom::Piece(piece) => pieces.push(piece.clone()),
            Atom::Char('~', false) if may_be_home(&atoms[..at - 1], is_argument) => {
                let user: String = atoms[at..].iter().map_while(plain).collect();
                let end = at + user.chars().count();
                if matches!(atoms.get(end), None | Some(Atom::Char('/' | ':', false))) {
                    at = end;
                    pieces.push(Piece::Tilde(user));
                } else {
                    pieces.push(Piece::Text { text: "~".to_owned(), quoted: true });
                }
            }
            Atom::Char(c, is_quoted) => match pieces.last_mut() {
                Some(Piece::Text { text, quoted }) if quoted == is_quoted => text.push(*c),
                _ => pieces.push(Piece::Text { text: c.to_string(), quoted: *is_quoted }),
            },
            Atom::Empty if pieces.is_empty() => {
                pieces.push(Piece::Text { text: String::new(), quoted: true });
            }
            Atom::Empty => {}
        }
    }
    Word { pieces, span }
}

/// A character of the name behind a tilde.
fn plain(atom: &Atom) -> Option<char> {
    match atom {
        Atom::Char(c, false) if *c != '/' && *c != ':' => Some(*c),
        _ => None,
    }
}

/// Whether a tilde after these parts leads home: at the start, and where the word reads like an
/// assignment after its `=` and after `:`.
fn may_be_home(before: &[Atom], is_argument: bool) -> bool {
    let Some(last) = before.last() else { return true };
    if !matches!(last, Atom::Char('=' | ':', false)) {
        return false;
    }
    let text: String = before.iter().map_while(plain).collect();
    let is_assigned = text.split_once('=').is_some_and(|(name, _)| is_name(name));
    is_assigned || !is_argument
}

/// An assignment as a word: what it begins with, then its value.
fn pieces_of(head: String, found: &Assignment) -> Vec<Piece> {
    let mut pieces = vec![Piece::Text { text: head, quoted: true }];
    match &found.values[..] {
        _ if found.is_array => pieces.push(Piece::Expansion {
            quoted: true,
            pure: false,
            is_length: false,
            name: None,
            change: None,
        }),
        [value] => pieces.extend(value.pieces.iter().cloned()),
        _ => {}
    }
    pieces
}
