//! Reads shell scripts as the simple commands that they may run.
//!
//! [`parse`] gives the commands of a text in the language of bash, each with its assignments, words
//! and redirects, however deep it stands: in functions, loops, conditions, pipelines, substitutions
//! and here-documents.
//!
//! **Invariant:** what is given is what bash would read, or there is a [`Fault`]. A text that the
//! grammar is not sure about, or whose every byte is not accounted for, is a fault, and so is what
//! is rare and hard to read; who gets a fault knows nothing about the text.
//!
//! [`read`] and [`effects`] say what each of them does.
//!
//! **Does not know:** the environment, files, or a clock.

mod braces;
mod changes;
mod checks;
mod cover;
mod effects;
mod exit_status;
mod heredoc;
mod lines;
mod quotes;
mod rejected;
mod statements;
mod syntax;
mod table;
mod tree;
mod words;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use self::checks::{Check, Checks, checks};
pub use self::effects::{
    ANY, Effect, FOUND, GitFacts, GitUse, ONE, Operand, Part, Reading, SOME, Setting, Text,
    effects, is_harmless, read,
};
pub use self::syntax::{
    Assignment, Command, Direction, Flow, Kind, Piece, Place, Redirect, Region, Script, Word,
};
pub use self::table::{Known, known};

/// The longest text that is read, in bytes.
pub const LONGEST: usize = 64 << 10;
/// Most words of all commands together.
pub const MOST_WORDS: usize = 10_000;
/// Most constructs within constructs.
pub const DEEPEST: usize = 100;

/// Variables that a command of which only looking is expected has to be given, so that it does no
/// more: go fetches no toolchain, pip looks for no newer pip, npm keeps no logs and looks for no
/// newer npm, rustup installs no toolchain.
pub const LOOKING: [(&str, &str); 7] = [
    ("GOTOOLCHAIN", "local"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_cache", "/dev/null"),
    ("npm_config_logs_dir", "/dev/null"),
    ("npm_config_logs_max", "0"),
    ("npm_config_update_notifier", "false"),
    ("RUSTUP_AUTO_INSTALL", "0"),
];

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is longer than [`LONGEST`].
    #[error("it has {0} bytes, more than the {LONGEST} that are looked through")]
    TooLong(usize),
    /// It has more words than [`MOST_WORDS`].
    #[error("it has over {MOST_WORDS} words")]
    TooManyWords,
    /// It is nested deeper than [`DEEPEST`].
    #[error("it is nested over {DEEPEST} deep")]
    TooDeep,
    /// Reading it was given up.
    #[error("reading it takes too much work")]
    TooMuch,
    /// It holds a NUL byte.
    #[error("it holds a NUL byte")]
    Nul,
    /// The shell would not understand it either, or reads it in a way that is not known here.
    #[error("it cannot be read from byte {at} on: {text:?}")]
    Unclear {
        /// The first byte of what is not understood.
        at: usize,
        /// What stands there, at most 40 characters.
        text: String,
    },
}

/// The words that braces make of one without quotes and expansions; none where they make more than
/// [`MOST_WORDS`], or bash reads them in a way of its own.
pub fn braced(word: &str) -> Option<Vec<String>> {
    let atoms: Vec<_> = word.chars().map(|c| braces::Atom::Char(c, false)).collect();
    let text = |atoms: Vec<braces::Atom>| {
        let char = |atom| if let braces::Atom::Char(c, _) = atom { Some(c) } else { None };
        atoms.into_iter().filter_map(char).collect::<String>()
    };
    let words = braces::expand(&atoms).ok()?;
    Some(words.into_iter().map(text).filter(|word| !word.is_empty()).collect())
}

/// Where a character that is wider than a byte stands behind a brace, or the numbers of a range: the
/// scanner of the grammar asks a table of bytes about it, and reads beyond its end.
fn wide(text: &str) -> Option<usize> {
    let is_wide = |at: &usize| {
        let rest = text[at + 1..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        rest.starts_with(|c: char| u32::from(c) > 0xff)
    };
    text.match_indices('{').map(|(at, _)| at).find(is_wide)
}

/// Reads a script; `go_on` is asked whether to go on, each time after about as much work. What asks it and
/// when is the same for the same text, so that one that counts comes to the same end everywhere.
///
/// # Errors
/// When it cannot be read for certain: see [`Fault`].
pub fn parse(text: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Script, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::TooLong(text.len()));
    }
    if text.contains('\0') {
        return Err(Fault::Nul);
    }
    if let Some(at) = wide(text) {
        return Err(tree::unclear(text, at));
    }
    tree::read(text, go_on)
}
