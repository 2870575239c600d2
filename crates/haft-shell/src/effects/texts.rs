//! What a script says to itself: what `echo` and `printf` put into a word, and the texts that may become
//! words, or names that its commands read.
//!
//! **Invariant:** what is said to be an answer is one for certain. The texts are all that may be meant,
//! and more.

use super::{
    judge::Judge,
    state::{State, Value},
    words::{Arg, Around},
};
use crate::syntax::{Command, Direction, Kind, Piece, Redirect, Word};

/// The longest answer that is followed, in bytes.
const LONGEST: usize = 4096;
/// Most texts that are kept of a script.
const MOST: usize = 1024;

/// A text that a script holds beside the words of its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// It, with marks for what is not known: see [`crate::Part::shapes`].
    pub shape: String,
    /// The folders that the shell may be in there, absolute paths; none: any.
    pub folders: Option<Vec<String>>,
}

/// Builtins whose words become values of variables, or the folder of others.
const SETS: [&str; 8] = ["cd", "declare", "export", "local", "pushd", "readonly", "set", "typeset"];
/// Commands that read words from their input.
const READS: [&str; 5] = ["mapfile", "parallel", "read", "readarray", "xargs"];
/// Commands that say their words.
const SAY: [&str; 2] = ["echo", "printf"];
/// Commands that say their words in another form.
const FORMS: [&str; 4] = ["basename", "dirname", "readlink", "realpath"];
/// What runs the command behind it.
const PASSES: [&str; 4] = ["builtin", "command", "env", "exec"];
/// What asks git where its own files lie.
const PLACES: [&str; 5] =
    ["--absolute-git-dir", "--git-common-dir", "--git-dir", "--git-path", "--resolve-git-dir"];

impl Around<'_> {
    /// What `echo` or `printf` says whose words are known; none where it is another command, or that
    /// is not for certain.
    pub(super) fn echoed(&self, command: &Command, state: &State) -> Option<Value> {
        let args: Vec<Arg> = command.words.iter().flat_map(|word| self.args(word, state)).collect();
        let (first, mut rest) = args.split_first()?;
        let name = first.known().filter(|name| SAY.contains(name))?;
        if self.script.functions.iter().any(|function| function == name) {
            return None;
        }
        let is_open = |arg: &&Arg| arg.is_split || arg.is_pattern || arg.is_odd;
        if name == "printf" {
            let known: Option<Vec<&str>> = rest.iter().map(Arg::known).collect();
            return printed(&known?).map(|text| Value::text(text.trim_end_matches('\n')));
        }
        if rest.first().and_then(Arg::known) == Some("-n") {
            rest = &rest[1..];
        }
        if rest.first().is_some_and(|arg| arg.may_begin('-')) {
            return None;
        }
        let mut said = Value::text("");
        for (at, arg) in rest.iter().enumerate() {
            if at > 0 {
                said = said.then(&Value::text(" "));
            }
            if is_open(&arg) {
                return Some(said.then(&Value::unknown()));
            }
            said = said.then(&arg.value);
        }
        let Value::Texts(texts) = &said else { return Some(Value::From(said.start().to_owned())) };
        // Some shells take a backslash for more than itself.
        let is_plain = |text: &String| !text.contains('\\') && text.len() <= LONGEST;
        let end = |text: &String| text.trim_end_matches('\n').to_owned();
        texts.iter().all(is_plain).then(|| Value::texts(texts.iter().map(end).collect()))
    }

    /// What `cat` says that is given a text: that text, without the line ends behind it.
    pub(super) fn passed_on(&self, given: &Redirect, state: &State) -> Option<Value> {
        let is_input = matches!(given.descriptor.as_deref(), None | Some("0"));
        let is_own = self.script.functions.iter().any(|function| function == "cat");
        if given.how != Direction::Text || !is_input || is_own {
            return None;
        }
        // Of a long text that stands there all is known.
        if let [Piece::Text { text, quoted: true }] = &given.target.pieces[..] {
            return Some(Value::whole(text.trim_end_matches('\n')));
        }
        let arg = self.arg(&given.target, state);
        if arg.is_split || arg.is_pattern || arg.is_odd {
            return None;
        }
        let end = |text: &str| text.trim_end_matches('\n').to_owned();
        match &arg.value {
            Value::Texts(texts) => Some(Value::texts(texts.iter().map(|text| end(text)).collect())),
            Value::From(start) => Some(Value::From(end(start))),
            _ => None,
        }
    }
}

/// What `printf` says; none where a conversion is another one than of a whole text.
fn printed(words: &[&str]) -> Option<String> {
    let (format, mut rest) = words.split_first()?;
    let (format, words) = if *format == "--" { rest.split_first()? } else { (format, rest) };
    rest = words;
    if format.starts_with('-') {
        return None;
    }
    let mut said = String::new();
    loop {
        let mut left = format.chars();
        let before = rest.len();
        while let Some(c) = left.next() {
            match (c, c == '%' || c == '\\') {
                (_, false) => said.push(c),
                ('%', _) => match left.next()? {
                    '%' => said.push('%'),
                    's' => {
                        said.push_str(rest.first().copied().unwrap_or_default());
                        rest = rest.get(1..).unwrap_or_default();
                    }
                    _ => return None,
                },
                _ => match left.next()? {
                    'n' => said.push('\n'),
                    '\\' => said.push('\\'),
                    _ => return None,
                },
            }
            if said.len() > LONGEST {
                return None;
            }
        }
        // It is used again and again until no words are left.
        if rest.is_empty() || rest.len() == before {
            return Some(said);
        }
    }
}

impl Judge<'_, '_> {
    /// Keeps the texts of a command.
    pub(super) fn texts(&mut self, command: &Command, args: &[Arg]) {
        if self.reading.texts.len() >= MOST {
            return;
        }
        let mut all: Vec<String> = Vec::new();
        let words = |words: &[Word]| -> Vec<String> {
            let args = words.iter().map(|word| self.around.arg(word, self.state));
            args.flat_map(|arg| arg.shapes()).collect()
        };
        all.extend(command.assignments.iter().flat_map(|one| words(&one.values)));
        let name = args.iter().filter_map(Arg::known).find(|name| !PASSES.contains(name));
        let name = name.and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        if self.is_kept(command, args, name) {
            all.extend(args.iter().skip(1).flat_map(Arg::shapes));
        }
        let is_read = command.words.is_empty()
            || name == "rev"
            || command.kind != Kind::Simple
            || READS.contains(&name)
            || command.place.is_subshell
            || command.place.is_substituted;
        let inputs = command.redirects.iter().filter(|one| one.how == Direction::Text && is_read);
        all.extend(inputs.flat_map(|one| words(std::slice::from_ref(&one.target))));
        if self.turns_texts() {
            let turned: Vec<String> = all.iter().map(|text| text.chars().rev().collect()).collect();
            all.extend(turned);
        }
        if name == "git" && args.iter().any(|arg| arg.known().is_some_and(is_place)) {
            all.push(".git".to_owned());
        }
        all.extend(self.within(command));
        let folders = self.state.folders.as_deref().cloned();
        let text = |shape: String| Text { shape, folders: folders.clone() };
        let all = all.into_iter().filter(|shape| !shape.is_empty()).map(text);
        self.reading.texts.extend(all);
    }

    /// Whether what some command says is told from its end on.
    fn turns_texts(&self) -> bool {
        let mut names =
            self.around.script.commands.iter().filter_map(|command| command.words.first());
        names.any(|name| name.known().as_deref() == Some("rev"))
    }

    /// Whether words of a command are kept for others: in variables, by a loop or a function, or by what
    /// it says to another command.
    fn is_kept(&self, command: &Command, args: &[Arg], name: &str) -> bool {
        let is_told = command.place.is_subshell || command.place.is_substituted;
        let sets = args.get(1).is_some_and(|arg| arg.value.start().starts_with("-v"));
        command.kind == Kind::Loop
            || command.kind == Kind::Simple
                && (SETS.contains(&name)
                    || name == "printf" && sets
                    || (SAY.contains(&name) || FORMS.contains(&name)) && is_told
                    || self.around.script.functions.iter().any(|function| function == name))
    }

    /// What stands in expansions that are not followed, as it is written: `${X:-text}`.
    fn within(&self, command: &Command) -> Vec<String> {
        let values = command.assignments.iter().flat_map(|one| &one.values);
        let targets = command.redirects.iter().map(|one| &one.target);
        let is_open = |word: &&Word| {
            let is_one = |piece: &Piece| matches!(piece, Piece::Expansion { is_length: false, .. });
            word.pieces.iter().any(is_one)
        };
        let words = command.words.iter().chain(values).chain(targets).filter(is_open);
        let ends = |c: char| "${}:-=+#%^,?!\"'".contains(c);
        let texts = words.filter_map(|word| self.around.source.get(word.span.clone()));
        texts
            .map(|text| text.replace("${HOME", "~").replace("$HOME", "~"))
            .flat_map(|text| text.split(ends).map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }
}

/// Whether a word asks git where its own files lie.
fn is_place(word: &str) -> bool {
    PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(|rest| !rest.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_printf_says_is_told_where_it_is_certain() {
        for (words, said) in [
            (&["a"][..], Some("a")),
            (&["%s/%s", "a", "b"], Some("a/b")),
            (&["%s\\n", "a", "b"], Some("a\nb\n")),
            (&["a", "b"], Some("a")),
            (&["--", "a%%"], Some("a%")),
            (&["%s"], Some("")),
            (&["%q", "a"], None),
            (&["\\x41"], None),
            (&["-v", "x", "a"], None),
            (&["%s%"], None),
            (&[], None),
        ] {
            assert_eq!(printed(words).as_deref(), said, "{words:?}");
        }
    }
}
