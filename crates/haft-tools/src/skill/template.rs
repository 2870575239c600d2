//! Bodies of skills and commands as templates: arguments, variables, commands and files.
//!
//! **Invariant:** a body is read once, and what arguments and commands give is never read as a
//! template again. An argument in a command is data of it, however it is written.

use std::{borrow::Cow, fmt::Write as _};

/// Most commands, and most files, of one body.
const RUNS_MAX: usize = 20;
/// Most bytes that the placeholders of one piece may grow to.
const GROWN_MAX: usize = 256 << 10;

/// What stands for something else, or for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Itself.
    Text(String),
    /// All arguments.
    Arguments,
    /// One of them, from 0.
    Argument(usize),
    /// A variable, by its name.
    Variable(String),
}

/// A stretch of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Text.
    Text(Vec<Piece>),
    /// A command, whose output takes its place.
    Run(Vec<Piece>),
    /// A file, whose content goes along; how it is written stays.
    File(Vec<Piece>),
}

/// A body that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Its stretches, in order.
    pub stretches: Vec<Stretch>,
    /// Whether it says where arguments go.
    pub takes_arguments: bool,
}

/// What a template is filled with.
#[derive(Clone, Debug, Default)]
pub struct Values<'a> {
    /// All arguments, as they were written.
    pub all: &'a str,
    /// Each of them.
    pub words: Vec<String>,
    /// Variables, by name.
    pub variables: Vec<(&'a str, String)>,
}

/// Splits arguments at blanks; quotes and a backslash keep what belongs together.
pub fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    let mut signs = text.chars();
    while let Some(c) = signs.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => word.extend(signs.next()),
            (c @ ('"' | '\''), None) => (quote, begun) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if begun || !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (c, _) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        all.push(word);
    }
    all
}

impl Values<'_> {
    /// What a piece stands for.
    fn of<'a>(&'a self, piece: &'a Piece) -> &'a str {
        match piece {
            Piece::Text(text) => text,
            Piece::Arguments => self.all,
            Piece::Argument(index) => self.words.get(*index).map_or("", String::as_str),
            Piece::Variable(name) => {
                let found = self.variables.iter().find(|(known, _)| known == name);
                found.map_or("", |(_, value)| value)
            }
        }
    }

    /// Pieces as text; none where it grows too long.
    pub fn text(&self, pieces: &[Piece]) -> Option<String> {
        let mut text = String::new();
        for piece in pieces {
            text.push_str(self.of(piece));
            if text.len() > GROWN_MAX {
                return None;
            }
        }
        Some(text)
    }

    /// Pieces as a command, in which every value is one word, or a part of one.
    ///
    /// # Errors
    /// Where a value cannot be put in so that it stays data.
    pub fn command(&self, pieces: &[Piece]) -> Result<String, String> {
        let (mut text, mut quotes) = (String::new(), Quotes::default());
        let is_nested = pieces.iter().any(|piece| match piece {
            Piece::Text(text) => NESTING.iter().any(|sign| text.contains(sign)),
            _ => false,
        });
        for piece in pieces {
            let value = self.of(piece);
            if let Piece::Text(code) = piece {
                code.chars().for_each(|c| quotes.take(c));
                text.push_str(code);
                continue;
            }
            if !value.is_empty() && value.chars().all(is_plain) {
                text.push_str(value);
            } else if value.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
                return Err("an argument has a control character".to_owned());
            } else if is_nested || quotes.is_escaped || quotes.is_comment {
                return Err(format!(
                    "{value:?} cannot stand in $(...), ((...)), ${{...}}, backticks, a \
                     here-document, a comment or behind a backslash: give an argument of letters, \
                     digits and . _ / - : , + = @"
                ));
            } else if *piece == Piece::Arguments && quotes.open.is_none() {
                let all: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
                text.push_str(&all.join(" "));
            } else {
                text.push_str(&quotes.inside(value));
            }
            quotes.is_in_word = true;
            if text.len() > GROWN_MAX {
                return Err(format!("it grows to more than {GROWN_MAX} bytes"));
            }
        }
        if text.len() > GROWN_MAX {
            return Err(format!("it grows to more than {GROWN_MAX} bytes"));
        }
        Ok(text)
    }
}

/// What begins a stretch of a command in which quotes mean something else, or nothing.
const NESTING: &[&str] = &["$(", "((", "<<", "${", "$'", "`"];

/// Whether a sign means nothing to a shell anywhere.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._/-:,+=@".contains(c)
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The quotes that are open at a place of a command.
#[derive(Default)]
struct Quotes {
    open: Option<char>,
    is_escaped: bool,
    /// Whether a word has begun, so that `#` is a part of it.
    is_in_word: bool,
    /// Whether a comment goes on, to the end of its line.
    is_comment: bool,
}

impl Quotes {
    fn take(&mut self, c: char) {
        if self.is_comment {
            self.is_comment = c != '\n';
            return;
        }
        let begins = !std::mem::replace(&mut self.is_in_word, !" \t\n;&|()<>".contains(c));
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        match (c, self.open) {
            ('#', None) if begins => (self.is_comment, self.is_in_word) = (true, false),
            ('\\', None | Some('"')) => self.is_escaped = true,
            (c, Some(open)) if c == open => self.open = None,
            (c @ ('"' | '\''), None) => self.open = Some(c),
            _ => {}
        }
    }

    /// A value as it stands here for itself.
    fn inside(&self, value: &str) -> String {
        match self.open {
            Some('\'') => value.replace('\'', r"'\''"),
            Some(_) => {
                let mut text = String::new();
                for c in value.chars() {
                    if matches!(c, '"' | '\\' | '$' | '`' | '!') {
                        // An exclamation mark is no sign of a shell that is not interactive.
                        text.push_str(if c == '!' { "" } else { "\\" });
                    }
                    text.push(c);
                }
                text
            }
            None => quoted(value),
        }
    }
}

/// Reads a body.
struct Reader<'a> {
    names: &'a [String],
    /// Whether `$0` is the first argument; else `$1` is.
    from_zero: bool,
    with_files: bool,
    template: Template,
    text: Vec<Piece>,
    runs: usize,
    files: usize,
}

impl Template {
    /// Reads a body whose arguments have these names. `@path` is a file only `with_files`.
    pub fn parse(body: &str, names: &[String], with_files: bool) -> Self {
        let mut reader = Reader {
            names,
            from_zero: has_zero(body),
            with_files,
            template: Self::default(),
            text: Vec::new(),
            runs: 0,
            files: 0,
        };
        let mut rest = body;
        while !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let (line, below) = rest.split_at(end);
            let Some(fence) = Fence::opened_by(line) else {
                reader.line(line);
                rest = below;
                continue;
            };
            let (code, close, behind) = fence.parted(below);
            if fence.runs && !close.is_empty() && reader.runs < RUNS_MAX && !code.trim().is_empty()
            {
                reader.run(code.trim_end_matches(['\n', '\r']));
                reader.push(if close.ends_with('\n') { "\n" } else { "" });
            } else {
                reader.push(line);
                reader.push(code);
                reader.push(close);
            }
            rest = behind;
        }
        reader.end_text();
        reader.template
    }
}

/// A fence around code.
struct Fence {
    sign: u8,
    length: usize,
    /// Whether what it encloses is run, which `!` behind it says.
    runs: bool,
}

impl Fence {
    /// The fence that a line opens, also as an item of a list or in a quote.
    fn opened_by(line: &str) -> Option<Self> {
        let is_item = |c: char| c.is_whitespace() || c.is_ascii_digit() || "-*+.)>".contains(c);
        let text = line.trim_start_matches(is_item).trim_end();
        let sign = *text.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let length = run_of(text, sign);
        let behind = text[length..].trim();
        // Backticks behind backticks are a code span.
        (length >= 3 && !(sign == b'`' && behind.contains('`'))).then(|| Self {
            sign,
            length,
            runs: behind == "!",
        })
    }

    /// The code in a text that begins behind the fence, the line that closes it, and what follows;
    /// no such line where it never closes.
    fn parted<'a>(&self, text: &'a str) -> (&'a str, &'a str, &'a str) {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let begin = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>').trim_end();
            let length = run_of(begin, self.sign);
            if length >= self.length && length == begin.len() {
                let (close, behind) = text[at..].split_at(line.len());
                return (&text[..at], close, behind);
            }
            at += line.len();
        }
        (text, "", "")
    }
}

/// How often a sign stands at the begin of a text.
fn run_of(text: &str, sign: u8) -> usize {
    text.bytes().take_while(|byte| *byte == sign).count()
}

/// The bytes of the code span that a text begins with; none where it begins with none that ends in
/// its line.
fn span(line: &str) -> Option<usize> {
    let length = run_of(line, b'`');
    let mut at = length;
    while length > 0 && at < line.len() {
        let more = run_of(&line[at..], b'`');
        at += more.max(1);
        if more == length {
            return Some(at);
        }
        while !line.is_char_boundary(at) {
            at += 1;
        }
    }
    None
}

/// Whether a body counts its arguments from 0.
fn has_zero(body: &str) -> bool {
    let mut from = 0;
    while let Some(at) = body[from..].find("$0").map(|at| at + from) {
        let behind = body[at + 2..].chars().next();
        if !body[..at].ends_with('\\') && !behind.is_some_and(|c| c.is_ascii_digit()) {
            return true;
        }
        from = at + 2;
    }
    false
}

impl Reader<'_> {
    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.template.stretches.push(Stretch::Text(text));
        }
    }

    /// Takes a command.
    fn run(&mut self, command: &str) {
        let pieces = self.pieces(command);
        self.end_text();
        self.template.stretches.push(Stretch::Run(pieces));
        self.runs += 1;
    }

    /// Takes text in which nothing is run and no file is meant.
    fn push(&mut self, text: &str) {
        let pieces = self.pieces(text);
        self.text.extend(pieces);
    }

    /// Takes a line that is no code; in a code span of it nothing is run and no file is meant.
    fn line(&mut self, line: &str) {
        let mut rest = line;
        let mut plain = String::new();
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let free = before.is_whitespace() || matches!(before, '(' | '"' | ':' | '>');
            if free
                && c == '!'
                && self.runs < RUNS_MAX
                && let Some((command, behind)) =
                    rest.strip_prefix("!`").and_then(|rest| rest.split_once('`'))
                && !command.trim().is_empty()
            {
                self.push_text(&mut plain);
                self.run(command);
                (rest, before) = (behind, '`');
                continue;
            }
            if free && c == '@' && self.with_files && self.files < RUNS_MAX {
                let word = rest[1..].split(char::is_whitespace).next().unwrap_or_default();
                let word = word.trim_end_matches([',', ';', ':', '!', '?', ')', '.', '"', '\'']);
                if !word.is_empty() {
                    self.push_text(&mut plain);
                    let pieces = self.pieces(word);
                    self.end_text();
                    self.template.stretches.push(Stretch::File(pieces));
                    (rest, before) = (&rest[1 + word.len()..], 'x');
                    self.files += 1;
                    continue;
                }
            }
            // Backticks that no span begins with stand for themselves, together.
            let backticks = run_of(rest, b'`').max(c.len_utf8());
            let (text, behind) = rest.split_at(span(rest).unwrap_or(backticks));
            plain.push_str(text);
            (rest, before) = (behind, c);
        }
        self.push_text(&mut plain);
    }

    fn push_text(&mut self, plain: &mut String) {
        let plain = std::mem::take(plain);
        self.push(&plain);
    }

    /// The pieces of a text that is neither command nor file.
    fn pieces(&mut self, text: &str) -> Vec<Piece> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('$') {
            let (head, tail) = rest.split_at(at);
            let found = self.placeholder(&tail[1..]);
            if let (Some(head), Some((_, length))) = (head.strip_suffix('\\'), &found) {
                // It stands for itself.
                plain.push_str(head);
                plain.push_str(&tail[..=*length]);
                rest = &tail[1 + length..];
                continue;
            }
            plain.push_str(head);
            if let Some((piece, length)) = found {
                self.template.takes_arguments |= !matches!(piece, Piece::Variable(_));
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
                rest = &tail[1 + length..];
            } else {
                plain.push('$');
                rest = &tail[1..];
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        pieces
    }

    /// The placeholder that stands behind a `$`, and its bytes.
    fn placeholder(&self, text: &str) -> Option<(Piece, usize)> {
        if let Some(rest) = text.strip_prefix("ARGUMENTS") {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            if let Some((number, _)) = index
                && let Ok(index) = number.parse::<usize>()
            {
                return Some((Piece::Argument(index), "ARGUMENTS[]".len() + number.len()));
            }
            let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            return ends.then_some((Piece::Arguments, "ARGUMENTS".len()));
        }
        if let Some(rest) = text.strip_prefix('{') {
            let (name, _) = rest.split_once('}')?;
            return VARIABLES
                .iter()
                .any(|known| known == &name)
                .then(|| (Piece::Variable(name.to_owned()), name.len() + 2));
        }
        let first = text.chars().next()?;
        if let Some(digit) = first.to_digit(10) {
            let more = text[1..].starts_with(|c: char| c.is_ascii_digit());
            let index = usize::try_from(digit).ok()?;
            let index = if self.from_zero { Some(index) } else { index.checked_sub(1) };
            return index.filter(|_| !more).map(|index| (Piece::Argument(index), 1));
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name: String = text.chars().take_while(|c| is_word(*c)).collect();
        let index = self.names.iter().position(|known| *known == name)?;
        Some((Piece::Argument(index), name.len()))
    }
}

/// The variables of bodies, as Claude Code calls them.
pub const VARIABLES: &[&str] = &["CLAUDE_SKILL_DIR", "CLAUDE_SESSION_ID", "CLAUDE_PROJECT_DIR"];

/// Arguments behind a body that does not say where they go.
pub fn push_arguments(text: &mut String, arguments: &str) {
    let arguments: Cow<'_, str> = arguments.trim().into();
    if !arguments.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\nARGUMENTS: {arguments}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(body: &str, arguments: &str) -> String {
        let template = Template::parse(body, &["issue".to_owned()], true);
        let values = Values {
            all: arguments,
            words: words(arguments),
            variables: vec![("CLAUDE_SKILL_DIR", "/s".to_owned())],
        };
        let one = |stretch: &Stretch| match stretch {
            Stretch::Text(pieces) => values.text(pieces).unwrap(),
            Stretch::Run(pieces) => format!("<{}>", values.command(pieces).unwrap()),
            Stretch::File(pieces) => format!("[{}]", values.text(pieces).unwrap()),
        };
        template.stretches.iter().map(one).collect()
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        for (body, arguments, wanted) in [
            ("a $ARGUMENTS b", "x y", "a x y b"),
            ("$1-$2-$3", "x 'y z'", "x-y z-"),
            ("$0-$1", "x y", "x-y"),
            ("$ARGUMENTS[1] $ARGUMENTS[7]", "x y", "y "),
            ("$issue $issues $ARGUMENTSX $12 $", "7", "7 $issues $ARGUMENTSX $12 $"),
            (r"\$1 \$ARGUMENTS \n $1", "x", r"$1 $ARGUMENTS \n x"),
            ("${CLAUDE_SKILL_DIR}/a ${HOME}", "", "/s/a ${HOME}"),
            // What arguments hold is no template.
            ("$1 $2", "'$2 !`id` @f ${CLAUDE_SKILL_DIR}' y", "$2 !`id` @f ${CLAUDE_SKILL_DIR} y"),
            ("$ARGUMENTS", "$ARGUMENTS $1", "$ARGUMENTS $1"),
            ("see @src/$1, and a@b", "x", "see [src/x], and a@b"),
            ("- !`git log -n $1` x", "3", "- <git log -n 3> x"),
            ("`!`x`` a!`b`", "", "`!`x`` a!`b`"),
            ("```\n!`x` @y $1\n```\n!`x`", "1", "```\n!`x` @y 1\n```\n<x>"),
            // Code is shown, not run: in longer fences, in lists, in spans.
            ("````\n```\n!`x`\n```\n!`y`\n````\n!`z`", "", "````\n```\n!`x`\n```\n!`y`\n````\n<z>"),
            ("```sh\n```x\n!`y`\n~~~\n```\n", "", "```sh\n```x\n!`y`\n~~~\n```\n"),
            ("- ```\n  !`x`\n  ```\n!`y`", "", "- ```\n  !`x`\n  ```\n<y>"),
            ("> ~~~\n> !`x`\n> ~~~\n!`y`", "", "> ~~~\n> !`x`\n> ~~~\n<y>"),
            ("```\n!`x`", "", "```\n!`x`"),
            ("write `` !`x` `` or ``` @y ``` here", "", "write `` !`x` `` or ``` @y ``` here"),
            ("`a @y b` and `é` !`x`", "", "`a @y b` and `é` <x>"),
            ("```x``` !`y`\n!`z`", "", "```x``` <y>\n<z>"),
            ("a `` b !`x`", "", "a `` b <x>"),
            // A block that is run.
            ("a\n```!\nls $1\nid `b`\n```\nc", "d", "a\n<ls d\nid `b`>\nc"),
            ("  ```` !\nls\n```\n````", "", "<ls\n```>"),
            ("```!\nls", "", "```!\nls"),
            ("```!\n\n```\n", "", "```!\n\n```\n"),
            ("~~~\n```!\nls\n```\n~~~\n", "", "~~~\n```!\nls\n```\n~~~\n"),
        ] {
            assert_eq!(filled(body, arguments), wanted, "{body}");
        }
        assert!(!Template::parse("a ${CLAUDE_SKILL_DIR}", &[], true).takes_arguments);
        assert!(Template::parse("!`a $1`", &[], true).takes_arguments);
        assert_eq!(filled("see @x", "").len(), 7);
        assert!(matches!(&Template::parse("@x", &[], false).stretches[..], [Stretch::Text(_)]));
    }

    #[test]
    fn an_argument_is_data_of_a_command() {
        for (body, arguments, wanted) in [
            ("!`echo $1`", "'a;b'", "<echo 'a;b'>"),
            ("!`echo $1`", "\"it's\"", r"<echo 'it'\''s'>"),
            ("!`echo \"$1\"`", r#"'$(id)"'"#, r#"<echo "\$(id)\"">"#),
            ("!`echo '$1'`", "\"a'b\"", r"<echo 'a'\''b'>"),
            ("!`echo $ARGUMENTS`", "a 'b c' $HOME", "<echo a 'b c' '$HOME'>"),
            ("!`echo $1`", "", "<echo ''>"),
        ] {
            assert_eq!(filled(body, arguments), wanted, "{body} {arguments}");
        }
        let values = Values { all: "a;b", words: vec!["a;b".to_owned()], ..Values::default() };
        for (body, is_refused) in [
            ("echo $(cat $1)", true),
            ("cat <<X\n$1\nX", true),
            (r"echo \$1x", false),
            ("echo ${x:-$1}", true),
            ("echo `cat $1`", true),
            ("((x=$1))", true),
            ("echo a # $1", true),
            ("echo a;# '\n# $1", true),
            // A comment opens no quotes, and what looks like one is none.
            ("echo a # don't\necho $1", false),
            ("echo a#b '#' \\# $1", false),
            ("echo $1# $1", false),
        ] {
            let template = Template::parse(&format!("```!\n{body}\n```"), &[], true);
            let Some(Stretch::Run(pieces)) = template.stretches.first() else { panic!("no run") };
            let command = values.command(pieces);
            assert_eq!(command.is_err(), is_refused, "{body}");
            let value = if body.contains(r"\$1") { "$1" } else { "'a;b'" };
            assert!(command.unwrap_or_else(|_| value.to_owned()).contains(value), "{body}");
        }
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let body = "$ARGUMENTS".repeat(20_000);
        let template = Template::parse(&body, &[], true);
        let all = "x".repeat(1_000);
        let values = Values { all: &all, ..Values::default() };
        let Stretch::Text(pieces) = &template.stretches[0] else { panic!("no text") };
        assert_eq!(values.text(pieces), None);
        let body = "!`a`\n".repeat(RUNS_MAX + 5);
        let runs = Template::parse(&body, &[], true).stretches.into_iter();
        assert_eq!(runs.filter(|one| matches!(one, Stretch::Run(_))).count(), RUNS_MAX);
    }

    proptest! {
        /// Whatever an argument holds, the command around it stays whole.
        #[test]
        fn a_command_with_any_argument_can_be_read(value in "[ -~]{0,12}") {
            for body in ["printf %s $1", "printf %s \"$1\"", "printf %s '$1'"] {
                let template = Template::parse(&format!("!`{body}`"), &[], true);
                let Some(Stretch::Run(pieces)) = template.stretches.first() else { panic!("no run") };
                let values =
                    Values { all: &value, words: vec![value.clone()], ..Values::default() };
                let command = values.command(pieces).unwrap();
                let parsed = haft_shell::parse(&command, &mut || true);
                prop_assert!(parsed.is_ok(), "{}", command);
            }
        }
    }
}
