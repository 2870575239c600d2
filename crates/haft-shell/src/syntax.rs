//! What a script is made of, as far as its commands need it.

use std::{borrow::Cow, ops::Range};

/// A script as the commands that it may run, in the order in which they are written.
///
/// Control flow is not kept: each command may run once, often or never. What stands in a
/// substitution comes before the command whose word it is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Every command, also those of functions, substitutions and conditions.
    pub commands: Vec<Command>,
    /// The functions that it defines.
    pub functions: Vec<String>,
    /// The stretches that control flow divides it into; the first is the script itself.
    pub regions: Vec<Region>,
}

/// A stretch of a script that control flow treats as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// The one that it stands in; the first stands in itself.
    pub parent: usize,
    /// What control flow does with it.
    pub flow: Flow,
}

/// What control flow does with a stretch of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// It runs.
    #[default]
    Runs,
    /// It runs where what stands before it went well: right of `&&`.
    IfDone,
    /// It runs where what stands before it failed: right of `||`.
    IfFailed,
    /// It may run: a branch, or what follows `!`.
    MayRun,
    /// It runs any number of times.
    Repeats,
    /// It runs in a shell of its own.
    Apart,
    /// It runs when this function is called.
    Function(String),
}

/// One step of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// What kind of step it is.
    pub kind: Kind,
    /// Assignments before the name, or all there is.
    pub assignments: Vec<Assignment>,
    /// The name and its arguments, after brace expansion; for the other kinds as [`Kind`] says.
    pub words: Vec<Word>,
    /// Where its descriptors lead.
    pub redirects: Vec<Redirect>,
    /// Where it stands.
    pub place: Place,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Words, assignments, or both.
    #[default]
    Simple,
    /// `for` and `select`: the variable, then the values; no values stand for `"$@"`.
    Loop,
    /// `case`: the value, then the patterns.
    Case,
    /// `[[ ... ]]`: its operands and operators.
    Test,
    /// `(( ... ))` and the head of an arithmetic `for`: one word, the text as it is written. It is
    /// evaluated, variables in it again and again.
    Arithmetic,
    /// Redirects of a group, a loop or another compound command; it has no words.
    Compound,
}

/// Where a command stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct Place {
    /// Its output becomes a word or an input of another command.
    pub is_substituted: bool,
    /// What it says is all that becomes a word of another command.
    pub is_answer: bool,
    /// It changes nothing of the shell that runs the script: in a subshell, a pipeline, a
    /// substitution or the background.
    pub is_subshell: bool,
    /// It runs on while the script goes on.
    pub is_background: bool,
    /// Its input may be what a command before it says.
    pub is_fed: bool,
    /// The command of the script whose output is all of its input, where that is a simple one.
    pub fed_by: Option<usize>,
    /// The command of the script whose output is the input of the loop that it stands in, where that is
    /// a simple one.
    pub looped_by: Option<usize>,
    /// It belongs to a function.
    pub in_function: bool,
    /// The script ends with exit code 0 only where this ran and did so, too.
    pub decides: bool,
    /// Its stretch, as an index of [`Script::regions`].
    pub region: usize,
}

/// `NAME=value`, `NAME+=value`, `NAME[index]=value`, `NAME=(values)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Of an array several, else one; none for an empty value.
    pub values: Vec<Word>,
    /// Whether it adds to what is there.
    pub appends: bool,
    /// Whether it is more than a plain value: an array, or an index.
    pub is_array: bool,
    /// Whether it has an index, which is evaluated.
    pub is_indexed: bool,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// How the target is used.
    pub how: Direction,
    /// The descriptor, where one is written: a number or `{NAME}`.
    pub descriptor: Option<String>,
    /// A file, a descriptor, or the text of a here-string or here-document.
    pub target: Word,
}

/// How the target of a redirect is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, and `>&` with a file: it is made or changed.
    Write,
    /// `<>`: it is made, and may be changed.
    Both,
    /// `>&` and `<&` with a descriptor or `-`.
    Duplicate,
    /// `<<`, `<<-` and `<<<`
    Text,
}

/// A word, before anything but its braces is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its parts.
    pub pieces: Vec<Piece>,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text without its quotes.
    Text {
        /// The characters.
        text: String,
        /// Whether `*`, `?` and `[` in it stand for themselves.
        quoted: bool,
    },
    /// `~` or `~name` at the start, which becomes a folder.
    Tilde(String),
    /// `$name` or `${name}`, with names such as `1`, `@` and `?`.
    Variable {
        /// Its name.
        name: String,
        /// Whether its value stays one word without patterns.
        quoted: bool,
    },
    /// `${...}` of any other form.
    Expansion {
        /// Whether working it out runs nothing and changes nothing; some forms run what is in data.
        pure: bool,
        /// Whether its value stays one word without patterns.
        quoted: bool,
        /// Whether it is the length of something: a number.
        is_length: bool,
        /// The variable whose value it is where that has one, but for a slash at its end:
        /// `${NAME:-x}`, `${NAME%/}`.
        name: Option<String>,
        /// What stands between the braces, where that says how a value is changed: `NAME#text`.
        change: Option<String>,
    },
    /// `$(...)` or backticks: what these commands of the script say.
    Output {
        /// Which commands.
        commands: Range<usize>,
        /// Whether it stays one word without patterns.
        quoted: bool,
    },
    /// `<(...)` or `>(...)`: a path that leads to these commands of the script.
    Process {
        /// Which commands.
        commands: Range<usize>,
    },
    /// `$((...))`: a number, but what is in data may be evaluated.
    Arithmetic {
        /// What stands between the parentheses, as it is written.
        text: String,
    },
}

impl Word {
    /// Its text, where that is known before the script runs: no expansion, no pattern, no tilde.
    pub fn literal(&self) -> Option<String> {
        self.known().map(Cow::into_owned)
    }

    /// The same, borrowed where it is one part.
    pub(crate) fn known(&self) -> Option<Cow<'_, str>> {
        if let [Piece::Text { text, quoted }] = &self.pieces[..] {
            return (*quoted || !has_pattern(text)).then_some(Cow::Borrowed(text));
        }
        let mut all = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, quoted } if *quoted || !has_pattern(text) => all.push_str(text),
                _ => return None,
            }
        }
        Some(Cow::Owned(all))
    }

    /// The text that it certainly begins with, up to the first part that is not known.
    pub fn start(&self) -> String {
        let mut all = String::new();
        for piece in &self.pieces {
            let Piece::Text { text, quoted } = piece else { break };
            if !*quoted && let Some(at) = text.find(PATTERN) {
                all.push_str(&text[..at]);
                break;
            }
            all.push_str(text);
        }
        all
    }
}

/// Characters that make a word a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];

/// Whether an unquoted text is a pattern of file names.
fn has_pattern(text: &str) -> bool {
    text.contains(PATTERN)
}
