//! What the words of a command may become.

use std::{ops::Range, rc::Rc};

use super::{
    Setting, answers, arithmetic,
    shapes::{self, Shapes},
    state::{State, Value, joined},
};
use crate::{
    Script, changes,
    quotes::is_name,
    syntax::{Command, Kind, Piece, Word},
};

/// A word, or what is left of one, as a command may get it.
#[derive(Clone, Debug)]
pub(crate) struct Arg {
    /// What it may be; of several words that one pattern makes, each.
    pub value: Value,
    /// It may become several words, or none, whose beginnings are not known.
    pub is_split: bool,
    /// It may become several words, each of which is its value.
    pub is_pattern: bool,
    /// What stands in it may be run when the shell works it out.
    pub is_odd: bool,
    /// It without its quotes; expansions and patterns as they are written.
    pub text: Rc<str>,
    /// What it may be with marks for what is not known, where its value does not tell: see
    /// [`super::Part::shapes`].
    pub shapes: Option<Rc<[String]>>,
    /// It with a number in the place of each piece that is one; none where it has others that are not
    /// known.
    pub numbered: Option<Rc<str>>,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

impl Arg {
    /// Its text, where it is one word and known.
    pub(crate) fn known(&self) -> Option<&str> {
        if self.is_split || self.is_pattern || self.is_odd { None } else { self.value.known() }
    }

    pub(crate) fn of(value: Value, text: &str, span: Range<usize>) -> Self {
        let text = text.into();
        let (shapes, numbered) = (None, None);
        Self {
            value,
            is_split: false,
            is_pattern: false,
            is_odd: false,
            text,
            shapes,
            numbered,
            span,
        }
    }

    /// What it may be, with marks for what is not known.
    pub(crate) fn shapes(&self) -> Vec<String> {
        match &self.shapes {
            Some(shapes) => shapes.to_vec(),
            None => shapes::of_value(&self.value),
        }
    }

    /// Whether it, or a word that it becomes, may begin with this character.
    pub(crate) fn may_begin(&self, c: char) -> bool {
        self.is_split && self.value != Value::Hash || self.value.may_begin(c)
    }

    /// What is left behind so many characters of its known text.
    pub(crate) fn behind(&self, start: &str) -> Self {
        let cut = |text: &str| text.strip_prefix(start).unwrap_or_default().to_owned();
        let value = match &self.value {
            Value::Texts(texts) => Value::texts(texts.iter().map(|text| cut(text)).collect()),
            Value::Number | Value::Count | Value::Hash => Value::unknown(),
            Value::Files(own, _) | Value::From(own) => Value::From(cut(own)),
        };
        let shapes = self.shapes.as_ref().map(|all| all.iter().map(|one| cut(one)).collect());
        Self { value, text: cut(&self.text).into(), shapes, ..self.clone() }
    }
}

/// What is needed to look at a word.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub script: &'a Script,
    pub source: &'a str,
    pub setting: &'a Setting,
}

impl Around<'_> {
    /// The words that one makes.
    pub(crate) fn args(&self, word: &Word, state: &State) -> Vec<Arg> {
        // A known text without quotes becomes the words in it.
        if let [Piece::Variable { name, quoted: false }] = &word.pieces[..]
            && let Some(value) = variable(name, state)
            && let Some(text) = value.known()
            && !text.contains(['*', '?', '[', '\\'])
            && !text.bytes().any(|c| c.is_ascii_control())
        {
            let one = |text| Arg::of(Value::text(text), text, word.span.clone());
            return text.split(' ').filter(|text| !text.is_empty()).map(one).collect();
        }
        if let [Piece::Variable { name, quoted: true }] = &word.pieces[..]
            && name == "@"
            && let Some(all) = state.params.as_ref().and_then(|params| params.all())
        {
            return all
                .iter()
                .map(|value| Arg::of(value.clone(), "$@", word.span.clone()))
                .collect();
        }
        vec![self.arg(word, state)]
    }

    /// A word that stays one.
    pub(crate) fn arg(&self, word: &Word, state: &State) -> Arg {
        if let [Piece::Text { text, quoted }] = &word.pieces[..]
            && (*quoted || !text.contains(['*', '?', '[']))
        {
            return Arg::of(Value::text(text), text, word.span.clone());
        }
        let mut arg = Arg::of(Value::text(""), "", word.span.clone());
        let mut text = String::new();
        let mut shapes = Shapes::default();
        let mut numbered = Some(String::new());
        let home = variable("HOME", state);
        let home = home.as_ref().and_then(Value::known);
        for piece in &word.pieces {
            let (value, shown) = self.piece(piece, state, &mut arg);
            match piece {
                Piece::Text { text, .. } => numbered = numbered.map(|all| all + text),
                _ if value.is_number() => numbered = numbered.map(|all| all + "1"),
                _ => numbered = None,
            }
            shapes.add(piece, &value, home);
            arg.value = arg.value.then(&value);
            text.push_str(&shown);
        }
        let numbered = numbered.map(Into::into);
        Arg { text: text.into(), shapes: Some(shapes.all()), numbered, ..arg }
    }

    fn piece(&self, piece: &Piece, state: &State, arg: &mut Arg) -> (Value, String) {
        let (value, shown, quoted) = match piece {
            Piece::Text { text, quoted: false } if text.contains(['*', '?', '[']) => {
                arg.is_pattern = true;
                let start = text.split(['*', '?', '[']).next().unwrap_or_default();
                return (Value::files(start.to_owned(), &text[start.len()..]), text.clone());
            }
            Piece::Text { text, .. } => return (Value::text(text), text.clone()),
            Piece::Tilde(user) => {
                let shown = format!("~{user}");
                return match user.as_str() {
                    "" => (variable("HOME", state).unwrap_or_else(Value::unknown), shown),
                    "+" => (folders(state), shown),
                    _ => (Value::unknown(), shown),
                };
            }
            Piece::Variable { name, quoted } => {
                let value = variable(name, state).unwrap_or_else(Value::unknown);
                (value, format!("${name}"), *quoted && name != "@")
            }
            Piece::Expansion { is_length: true, .. } => {
                return (Value::Number, "${#...}".to_owned());
            }
            Piece::Expansion { change: Some(change), quoted, pure, .. }
                if let Some(value) = changed(change, state).filter(|_| *pure) =>
            {
                (value, "${...}".to_owned(), *quoted)
            }
            Piece::Expansion { pure, quoted, name, .. } => {
                arg.is_odd |= !pure;
                let value = name.as_ref().and_then(|name| variable(name, state));
                let is_kept = |value: &Value| {
                    value.known().is_some_and(|text| !matches!(text.as_bytes(), [] | [.., b'/']))
                };
                let value = value.filter(is_kept).unwrap_or_else(Value::unknown);
                (value, "${...}".to_owned(), *quoted)
            }
            Piece::Output { commands, quoted } => {
                (self.output(commands, state), "$(...)".to_owned(), *quoted)
            }
            Piece::Process { .. } => return (Value::text("/dev/fd/63"), "<(...)".to_owned()),
            Piece::Arithmetic { text } => {
                let is_safe = arithmetic::is_safe(text, |name| is_number(name, state));
                arg.is_odd |= !is_safe;
                return (Value::Number, format!("$(({text}))"));
            }
        };
        if !quoted && !is_whole(&value) {
            arg.is_split = true;
        }
        (value, shown)
    }

    /// Whether a word becomes nothing but numbers: what `seq` tells of numbers.
    pub(crate) fn counts(&self, word: &Word, state: &State) -> bool {
        let [Piece::Output { commands, quoted: false }] = &word.pieces[..] else { return false };
        let all = self.script.commands.get(commands.clone()).unwrap_or_default();
        let [command] = all else { return false };
        let is_number = |word: &Word| {
            let arg = self.arg(word, state);
            !arg.is_odd && arg.value.is_number()
        };
        command.kind == Kind::Simple
            && command.place.is_answer
            && command.assignments.is_empty()
            && command.redirects.is_empty()
            && command.words.first().and_then(Word::literal).as_deref() == Some("seq")
            && !state.functions.contains("seq")
            && command.words.iter().skip(1).all(is_number)
    }

    /// What commands say whose answer is known: the folder, a text, a count, or a hash.
    fn output(&self, commands: &Range<usize>, state: &State) -> Value {
        let all = self.script.commands.get(commands.clone()).unwrap_or_default();
        if let [only] = all
            && only.kind == Kind::Simple
            && only.place.is_answer
            && only.assignments.is_empty()
            && let Some(value) = self.said(only, state)
        {
            return value;
        }
        answers::of(self, commands, |name| state.functions.contains(name))
            .unwrap_or_else(Value::unknown)
    }

    /// What one command says that says what is known.
    fn said(&self, command: &Command, state: &State) -> Option<Value> {
        match (&command.words[..], &command.redirects[..]) {
            ([word], []) if word.literal().as_deref() == Some("pwd") => Some(folders(state)),
            (_, []) => self.echoed(command, state),
            ([word], [given]) if word.literal().as_deref() == Some("cat") => {
                self.passed_on(given, state)
            }
            _ => None,
        }
    }
}

/// Whether a value without quotes stays one word.
fn is_whole(value: &Value) -> bool {
    let is_plain =
        |text: &String| !text.is_empty() && !text.contains(['*', '?', '[', '\\', ' ', '\t', '\n']);
    match value {
        Value::Texts(texts) => texts.iter().all(is_plain),
        Value::Number => true,
        Value::Count | Value::Hash | Value::Files(..) | Value::From(_) => false,
    }
}

/// The paths that a word may name, from where the command runs.
pub(crate) fn operands(arg: &Arg, state: &State) -> Vec<super::Operand> {
    use super::Operand;
    let from = |path: &str, make: fn(String) -> Operand| -> Vec<Operand> {
        match &state.folders {
            _ if path.starts_with('/') => vec![make(path.to_owned())],
            Some(folders) => folders.iter().map(|from| make(joined(from, path))).collect(),
            None => vec![Operand::Unknown],
        }
    };
    // What a pattern matches lies in the folder that its certain part names.
    let pattern = |start: &str| {
        let (folder, _) = start.rsplit_once('/').unwrap_or((".", ""));
        let folder = if start.starts_with('/') && folder.is_empty() { "/" } else { folder };
        from(folder, Operand::Below)
    };
    match &arg.value {
        Value::Hash if !arg.is_odd => pattern(""),
        _ if arg.is_split || arg.is_odd => vec![Operand::Unknown],
        Value::Texts(texts) => texts.iter().flat_map(|text| from(text, Operand::Path)).collect(),
        Value::Number | Value::Count | Value::Hash => pattern(""),
        Value::Files(start, _) => pattern(start),
        // It may climb out of the folder that its certain part names, but is mostly in there.
        Value::From(start) if leads_out(start, state) => {
            let mut all = pattern(start);
            all.push(Operand::Unknown);
            all
        }
        Value::From(_) => vec![Operand::Unknown],
    }
}

/// Whether a text that a path begins with names a folder that is none of those in which the shell is,
/// nor one in them.
pub(crate) fn leads_out(start: &str, state: &State) -> bool {
    let folders = state.folders.as_deref().map_or(&[][..], Vec::as_slice);
    let is_inside = |folder: &String| {
        start.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    start.starts_with("../")
        || start.starts_with('/') && start.rfind('/') != Some(0) && !folders.iter().any(is_inside)
}

/// What a variable with known values becomes where it is changed.
fn changed(change: &str, state: &State) -> Option<Value> {
    let value = variable(changes::name(change), state)?;
    let Value::Texts(texts) = &value else { return value.without_end(changes::end(change)?) };
    let all: Option<Vec<String>> = texts.iter().map(|text| changes::of(change, text)).collect();
    all.map(Value::texts)
}

/// Whether a variable surely is a number.
pub(crate) fn is_number(name: &str, state: &State) -> bool {
    variable(name, state).is_some_and(|value| value.is_number())
}

/// The value of a variable; none where only the environment has it.
pub(crate) fn variable(name: &str, state: &State) -> Option<Value> {
    if let Some(value) = state.value(name) {
        return Some(value);
    }
    match name {
        "PWD" => Some(folders(state)),
        "?" | "#" | "$" | "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID" => {
            Some(Value::Number)
        }
        _ => None,
    }
}

/// The folders that the shell may be in.
fn folders(state: &State) -> Value {
    match &state.folders {
        Some(folders) => Value::texts(folders.to_vec()),
        None => Value::From("/".to_owned()),
    }
}

/// The value that an assignment gives.
pub(crate) fn assigned(around: &Around<'_>, values: &[Word], state: &State) -> (Value, bool) {
    match values {
        [] => (Value::text(""), false),
        [word] => {
            let mut arg = around.arg(word, state);
            // A pattern in it stays a pattern until the variable is used without quotes.
            let literal: Option<String> = word.pieces.iter().map(piece_text).collect();
            if let Some(text) = literal {
                arg.value = Value::text(&text);
            }
            let value = Rc::new(arg.value);
            (Rc::unwrap_or_clone(value), arg.is_odd)
        }
        _ => (Value::unknown(), true),
    }
}

fn piece_text(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// Whether a text can name a variable that scripts may set for themselves: none that changes how
/// the shell or a program works.
pub(crate) fn is_own(name: &str) -> bool {
    const STARTS: &str = "LD_ DYLD_ GIT_ BASH RIPGREP RUST CARGO PYTHON PY_ PIP NODE NPM npm_ PERL \
        RUBY GEM_ JAVA JDK GO LESS MAN GREP_ FZF LC_ LANG XDG_ SSH GPG GNUPG DOCKER KUBE AWS \
        GOOGLE AZURE MAKE CMAKE GCC CC CXX HIST MALLOC_ GLIBC_ GCONV RES_ HELM TF_ YARN PNPM BUN \
        DENO COMP OPENSSL SSL_ DEBUGINFOD SYSTEMD_ JQ_ BAT_ EZA_ EXA_ LS_ TERM QUOTING TAPE TAR_ ZIP UNZIP \
        XZ_ GZIP BZIP ZSTD_ POSIX PG VIM PS READLINE";
    const NAMES: &str = "PATH IFS ENV HOME PWD OLDPWD SHELL SHELLOPTS PROMPT_COMMAND CDPATH \
        GLOBIGNORE EXECIGNORE FIGNORE FUNCNEST INPUTRC EDITOR VISUAL PAGER BROWSER TMPDIR TMP TEMP \
        TZ TZDIR NLSPATH LOCPATH OPTIND OPTARG OPTERR RANDOM SECONDS LINENO UID EUID PPID HOSTFILE \
        HOSTALIASES LOCALDOMAIN MAIL MAILPATH MAILCHECK TIMEFORMAT TMOUT AUTH_SOCK COLUMNS LINES \
        auto_resume histchars PERL5OPT DIRSTACK GROUPS EPOCHSECONDS EPOCHREALTIME PIPESTATUS FUNCNAME COPROC MAPFILE SRANDOM _";
    const ENDS: &str =
        "PATH OPTS OPTIONS FLAGS PAGER EDITOR PROXY proxy ASKPASS CONFIG _HOME _COMMAND _SHELL";
    is_name(name)
        && !STARTS.split_whitespace().any(|start| name.starts_with(start))
        && !NAMES.split_whitespace().any(|own| name == own)
        && !ENDS.split_whitespace().any(|end| name.ends_with(end))
}
