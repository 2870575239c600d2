//! Splits a text that haft-shell cannot read into its simple commands, as words after quote removal.
//!
//! **Invariant:** where it is not sure of a border it splits once more, or says that the text is
//! [`Lexed::open`]; it never takes a command for data because of a quote that is none.
//!
//! **Does not know:** what words mean.

use crate::rules::command_pattern::{GAP, KEYWORDS};

/// Marks, in a word, that the shell still replaces what follows, and may make several words of it.
pub(crate) const EXPANDS: char = '\u{1}';

/// The same in double quotes, where it stays one word.
pub(crate) const QUOTED: char = '\u{2}';

/// Stands behind a mark for a command whose output it becomes.
pub(crate) const REPLACED: char = '\u{3}';

/// The words that braces make of one in which nothing else is expanded.
fn braced(word: &str) -> Option<Vec<String>> {
    let plain = word.replace("{\u{1}", "{");
    if plain.len() == word.len() || plain.contains([EXPANDS, QUOTED, REPLACED]) {
        return None;
    }
    haft_shell::braced(&plain).filter(|words| *words != [plain])
}

/// Lists within lists that are followed.
const NEST: usize = 48;

/// One simple command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    id: usize,
    /// Its words, without redirects.
    pub(crate) words: Vec<String>,
    /// The texts that it is given as input: here-documents and here-strings.
    pub(crate) bodies: Vec<String>,
    /// Its output goes into a file.
    pub(crate) writes: bool,
    /// Values of arrays and loops: they are not run, but used.
    pub(crate) data: Vec<String>,
    /// The files that its redirects write, as far as they were read.
    pub(crate) targets: Vec<String>,
    kind: Kind,
}

/// What stands in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Commands,
    /// Elements of an array, or sums.
    Data,
    /// Sums, or commands in two brackets: that shows at their end.
    Arithmetic,
}

/// What was found in a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lexed {
    /// Every simple command, those in substitutions too, in no order.
    pub(crate) segments: Vec<Segment>,
    /// Names of the functions that it defines.
    pub(crate) functions: Vec<String>,
    /// True when a quote or bracket is not closed, or may be read in two ways.
    pub(crate) open: bool,
}

/// Splits a text.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer::new(text);
    lexer.list(None, Kind::Commands);
    let Lexer { mut done, mut bodies, functions, open, .. } = lexer;
    done.sort_unstable_by_key(|segment| segment.id);
    for (id, body) in bodies.drain(..) {
        if let Ok(at) = done.binary_search_by_key(&id, |segment| segment.id) {
            done[at].bodies.push(body);
        }
    }
    done.retain(|segment| segment.kind != Kind::Data);
    Lexed { segments: done, functions, open }
}

/// What the next word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Word,
    /// Where a redirect leads.
    Target,
    /// The text of a here-string.
    Text,
    /// The last line of a here-document; true: after tabs.
    Mark(bool),
}

/// A here-document whose lines are still to come.
struct Pending {
    id: usize,
    mark: String,
    tabs: bool,
    quoted: bool,
}

/// The simple command that is being read.
#[derive(Default)]
struct Frame {
    segment: Segment,
    word: Option<String>,
    /// Something of the word was quoted.
    quoted: bool,
    role: Role,
    /// A word of its command has come, after those of the grammar.
    started: bool,
    /// `case` that no `esac` has ended.
    cases: usize,
    kind: Kind,
}

impl Frame {
    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn push_quoted(&mut self, c: Option<char>) {
        self.quoted = true;
        self.word().extend(c);
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    next_id: usize,
    done: Vec<Segment>,
    bodies: Vec<(usize, String)>,
    functions: Vec<String>,
    pending: Vec<Pending>,
    /// A here-document has no end: the shell takes all that follows for it.
    lost: bool,
    open: bool,
}

impl<'a> Lexer<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            next_id: 0,
            done: Vec::new(),
            bodies: Vec::new(),
            functions: Vec::new(),
            pending: Vec::new(),
            lost: false,
            open: false,
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    /// Takes characters as long as they fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Goes one level deeper; too deep is the end of the text.
    fn deeper(&mut self) -> bool {
        if self.depth >= NEST {
            self.open = true;
            self.at = self.text.len();
            return false;
        }
        self.depth += 1;
        true
    }

    /// Reads another text as part of this one.
    fn nested(&mut self, text: &str, read: impl FnOnce(&mut Lexer<'_>)) {
        if !self.deeper() {
            return;
        }
        let mut inner = Lexer { depth: self.depth, next_id: self.next_id, ..Lexer::new(text) };
        read(&mut inner);
        self.next_id = inner.next_id;
        self.open |= inner.open;
        self.done.append(&mut inner.done);
        self.bodies.append(&mut inner.bodies);
        self.functions.append(&mut inner.functions);
        self.depth -= 1;
    }

    /// Reads commands up to a closing bracket, or to the end.
    fn list(&mut self, until: Option<char>, kind: Kind) {
        if !self.deeper() {
            return;
        }
        let mut frame = Frame { kind, ..Frame::default() };
        self.begin(&mut frame);
        let mut closed = until.is_none();
        while let Some(c) = self.next() {
            if c == ')' {
                self.end_word(&mut frame);
            }
            if Some(c) == until && frame.cases == 0 {
                closed = true;
                break;
            }
            self.token(c, &mut frame);
        }
        self.end(&mut frame);
        self.open |= !closed;
        self.depth -= 1;
    }

    fn token(&mut self, c: char, frame: &mut Frame) {
        match c {
            GAP => {}
            '\\' => match self.next() {
                Some('\n') | None => {}
                next => frame.push_quoted(next),
            },
            '\'' => {
                frame.push_quoted(None);
                let quoted = self.take(|c| c != '\'');
                frame.word().extend(quoted.chars().filter(|&c| c != GAP));
                self.open |= self.next().is_none();
            }
            '"' => {
                frame.push_quoted(None);
                self.double(frame, true);
            }
            '`' => self.backquote(frame, EXPANDS),
            '$' => self.dollar(frame, EXPANDS),
            '#' if frame.word.is_none() && frame.kind != Kind::Arithmetic => {
                self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
            }
            '<' | '>' if self.eat('(') => {
                frame.word().extend([EXPANDS, REPLACED]);
                self.list(Some(')'), Kind::Commands);
            }
            '<' | '>' => self.redirect(c, frame),
            '&' if self.eat('>') => {
                self.end_word(frame);
                self.redirect('>', frame);
            }
            '(' => self.bracket(frame),
            ')' => self.end_case(frame),
            '\n' => {
                self.end(frame);
                self.here_documents();
            }
            ';' | '&' | '|' | '\r' => self.end(frame),
            c if c.is_whitespace() => self.end_word(frame),
            '*' | '?' | '[' | '{' | '~' => frame.word().extend([c, EXPANDS]),
            c => frame.word().push(c),
        }
    }

    /// What stands in double quotes; without them, to the end of the text.
    fn double(&mut self, frame: &mut Frame, closes: bool) {
        while let Some(c) = self.next() {
            match c {
                GAP => {}
                '"' if closes => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    next => frame.push_quoted(next),
                },
                '$' => self.dollar(frame, QUOTED),
                '`' => self.backquote(frame, QUOTED),
                c => frame.word().push(c),
            }
        }
        self.open |= closes;
    }

    /// What follows a dollar.
    fn dollar(&mut self, frame: &mut Frame, mark: char) {
        let bare = mark == EXPANDS;
        match self.peek() {
            Some('(') => {
                self.next();
                frame.word().extend([mark, REPLACED]);
                if self.eat('(') {
                    self.arithmetic();
                } else {
                    self.list(Some(')'), Kind::Commands);
                }
            }
            Some('{') => self.braces(frame, mark),
            Some('\'') if bare => self.escaped(frame),
            Some('"') if bare => {}
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let name = self.take(|c| c == '_' || c.is_ascii_alphanumeric());
                if bare && name == "IFS" {
                    self.end_word(frame);
                } else {
                    frame.word().push(mark);
                    frame.word().push_str(name);
                }
            }
            Some(c) if "@*#?$!-".contains(c) || c.is_ascii_digit() => {
                self.next();
                frame.word().extend([mark, c]);
            }
            // The old form of arithmetic is not followed.
            Some('[') => self.open = true,
            _ => frame.word().push('$'),
        }
    }

    /// `${...}`: quotes count in it, operators do not.
    fn braces(&mut self, frame: &mut Frame, mark: char) {
        if !self.deeper() {
            return;
        }
        self.next();
        let start = self.at;
        frame.word().extend([mark, '{']);
        loop {
            match self.next() {
                None => {
                    self.open = true;
                    break;
                }
                Some('}') => break,
                Some('\\') => frame.push_quoted(self.next()),
                Some('\'') if mark == EXPANDS => {
                    let quoted = self.take(|c| c != '\'');
                    frame.word().push_str(quoted);
                    self.open |= self.next().is_none();
                }
                Some('"') if mark == EXPANDS => self.double(frame, true),
                // Shells differ in whether these are quotes.
                Some('\'' | '"') => self.open = true,
                Some('$') => self.dollar(frame, mark),
                Some('`') => self.backquote(frame, mark),
                Some(c) => frame.word().push(c),
            }
        }
        frame.word().push('}');
        if mark == EXPANDS && self.text[start..self.at] == *"IFS}" {
            let word = frame.word();
            word.truncate(word.len() - "\u{1}{IFS}".len());
            if word.is_empty() && !frame.quoted {
                frame.word = None;
            }
            self.end_word(frame);
        }
        self.depth -= 1;
    }

    /// `$'...'`
    fn escaped(&mut self, frame: &mut Frame) {
        self.next();
        frame.push_quoted(None);
        loop {
            match self.next() {
                None => {
                    self.open = true;
                    return;
                }
                Some('\'') => return,
                Some('\\') => {
                    let known = self.escape();
                    // What else stands for something is not worked out.
                    if known.is_none() {
                        frame.word().push(EXPANDS);
                    }
                    frame.push_quoted(known.or_else(|| self.next()));
                }
                c => frame.push_quoted(c),
            }
        }
    }

    /// The character that an escape stands for; none, and nothing read, where that is not known.
    fn escape(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let kind = rest.chars().next()?;
        let (radix, skipped, most) = match kind {
            'x' => (16, 1, 2),
            'u' => (16, 1, 4),
            'U' => (16, 1, 8),
            '0'..='7' => (8, 0, 3),
            _ => {
                let found = "\\'\"?".contains(kind).then_some(kind)?;
                self.at += 1;
                return Some(found);
            }
        };
        let digits = rest[skipped..].chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let code = u32::from_str_radix(&rest[skipped..skipped + digits], radix).ok()?;
        let found = char::from_u32(code).filter(|c| !c.is_control() && c.is_ascii())?;
        self.at += skipped + digits;
        Some(found)
    }

    fn backquote(&mut self, frame: &mut Frame, mark: char) {
        frame.word().extend([mark, REPLACED]);
        let mut inner = String::new();
        loop {
            match self.next() {
                None => {
                    self.open = true;
                    break;
                }
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c) if "`\\$".contains(c) || (c == '"' && mark == QUOTED) => inner.push(c),
                    next => {
                        inner.push('\\');
                        inner.extend(next);
                    }
                },
                Some(c) => inner.push(c),
            }
        }
        self.nested(&inner, |lexer| lexer.list(None, Kind::Commands));
    }

    /// What follows `((` or `$((`; it is a subshell in a list unless both brackets close at once.
    fn arithmetic(&mut self) {
        let first = self.done.len();
        self.list(Some(')'), Kind::Arithmetic);
        let sure = self.eat(')');
        for segment in &mut self.done[first..] {
            if segment.kind == Kind::Arithmetic {
                segment.kind = if sure { Kind::Data } else { Kind::Commands };
            }
        }
        if !sure {
            self.open = true;
            self.list(Some(')'), Kind::Commands);
        }
    }

    /// An opening bracket outside of quotes.
    fn bracket(&mut self, frame: &mut Frame) {
        if frame.word.as_ref().is_some_and(|word| word.ends_with('=')) {
            return self.list(Some(')'), Kind::Data);
        }
        self.end_word(frame);
        if !frame.segment.words.is_empty() {
            let before = self.at;
            self.take(|c| c == ' ' || c == '\t');
            if self.eat(')') {
                self.functions.extend(frame.segment.words.pop());
                frame.segment.words.clear();
                return;
            }
            self.at = before;
        }
        self.end(frame);
        if self.eat('(') {
            self.arithmetic();
        } else {
            self.list(Some(')'), frame.kind);
        }
    }

    fn begin(&mut self, frame: &mut Frame) {
        frame.started = false;
        self.next_id += 1;
        frame.segment = Segment { id: self.next_id, kind: frame.kind, ..Segment::default() };
    }

    fn end_word(&mut self, frame: &mut Frame) {
        let quoted = std::mem::take(&mut frame.quoted);
        let Some(mut word) = frame.word.take() else { return };
        let id = frame.segment.id;
        match std::mem::take(&mut frame.role) {
            Role::Target => return,
            Role::Text => return self.bodies.push((id, word)),
            Role::Mark(tabs) if !expands(&word) => {
                return self.pending.push(Pending { id, mark: word, tabs, quoted });
            }
            Role::Mark(_) => return self.lost = true,
            Role::Word => {}
        }
        // Alone they are words of the grammar or of a test, and stand for themselves; so does an
        // empty pair of braces everywhere.
        if matches!(&*word, "[\u{1}" | "[\u{1}[\u{1}" | "{\u{1}") {
            word.retain(|c| c != EXPANDS);
        }
        let word = word.replace("{\u{1}}", "{}");
        if let Some(mut words) = braced(&word).filter(|_| !quoted) {
            frame.started = true;
            frame.segment.words.append(&mut words);
            return;
        }
        match &*word {
            "case" if !frame.started && !quoted => frame.cases += 1,
            "esac" if !frame.started && !quoted => frame.cases = frame.cases.saturating_sub(1),
            _ => {}
        }
        let is_before = KEYWORDS.contains(&word.as_str()) || ["time", "coproc"].contains(&&*word);
        frame.started |= word == "case" || !is_before;
        frame.segment.words.push(word);
    }

    fn end(&mut self, frame: &mut Frame) {
        self.end_word(frame);
        frame.role = Role::Word;
        // A pattern of that name.
        if frame.segment.words == ["case"] {
            frame.cases = frame.cases.saturating_sub(1);
        }
        let segment = std::mem::take(&mut frame.segment);
        self.done.push(segment);
        self.begin(frame);
    }

    /// Ends the pattern of a `case`: a bracket closes that none has opened. What it expands to is
    /// compared and not run.
    fn end_case(&mut self, frame: &mut Frame) {
        self.end_word(frame);
        if let [pattern] = &mut frame.segment.words[..] {
            pattern.retain(|c| c != EXPANDS);
        }
        self.end(frame);
    }

    /// Reads the rest of an operator that starts with `first`.
    fn redirect(&mut self, first: char, frame: &mut Frame) {
        if !frame.quoted && frame.word.as_deref().is_some_and(is_descriptor) {
            frame.word = None;
        }
        let subscript = frame.word.as_deref().is_some_and(|word| word.contains('['));
        self.end_word(frame);
        frame.role = Role::Target;
        if first == '>' {
            if !self.eat('&') {
                frame.segment.writes = true;
                let _ = self.eat('>') || self.eat('|');
            }
        } else if !self.eat('&') && !self.eat('>') && self.eat('<') {
            if self.eat('<') {
                frame.role = Role::Text;
            } else if frame.kind != Kind::Arithmetic && !subscript && !self.lost {
                frame.role = Role::Mark(self.eat('-'));
            }
        }
    }

    /// Takes the lines of the here-documents that were announced before the end of a line.
    fn here_documents(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let Some(body) = self.here_document(&pending).filter(|_| !self.lost) else {
                self.lost = true;
                continue;
            };
            if !pending.quoted {
                self.nested(body, |lexer| lexer.double(&mut Frame::default(), false));
            }
            self.bodies.push((pending.id, body.to_owned()));
        }
    }

    fn here_document(&mut self, pending: &Pending) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let (mut size, mut continued) = (0, false);
        for line in rest.split_inclusive('\n') {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let named = if pending.tabs { bare.trim_start_matches('\t') } else { bare };
            if named == pending.mark && !continued {
                self.at += size + line.len();
                return Some(&rest[..size]);
            }
            let slashes = bare.bytes().rev().take_while(|&b| b == b'\\').count();
            continued = !pending.quoted && slashes % 2 == 1;
            size += line.len();
        }
        None
    }
}

/// Reports whether the shell still replaces something in a word.
pub(crate) fn expands(word: &str) -> bool {
    word.contains([EXPANDS, QUOTED])
}

/// The `3` of `3>x` and the `{name}` of `{name}>x`.
fn is_descriptor(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let braced = word.strip_prefix("{\u{1}").and_then(|rest| rest.strip_suffix('}'));
    word.chars().all(|c| c.is_ascii_digit()) || braced.is_some_and(is_name)
}
