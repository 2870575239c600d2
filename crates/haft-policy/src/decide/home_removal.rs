//! Detects commands that remove the whole home folder or the whole file system. It also detects
//! those that would, if the unknown parts of their words were empty.
//!
//! **Does not know:** links. It knows the folder in which a command runs only if the same text
//! changes to it.

use haft_types::{Effect, HostPath, Target};

use haft_shell::{ANY, FOUND, ONE, SOME};

use super::Judged;
use crate::{
    command::{
        lexer::{EXPANDS, QUOTED, REPLACED},
        parts::Parts,
        script::{Part, Script},
    },
    rules::{
        command_pattern::GAP,
        open_pattern::{class, replaced},
    },
};

/// What in the shape of a word may be any text.
const OPEN: [char; 4] = [ANY, FOUND, ONE, SOME];

/// The most texts that a word is held to be.
const MOST: usize = 8;

/// Stands for a text that is not known, and not empty.
const SOMETHING: char = '\u{4}';

/// Whether a text may do so; what a script knows of its words counts.
pub(crate) fn is_one(parts: &Parts, script: Option<&Script>, home: &HostPath) -> bool {
    let home = &*home.text();
    let known = script.map_or(&[][..], |script| &script.parts[..]);
    let named = |part: &&Part| matches!(part.program.as_deref(), Some("rm" | "find"));
    let mut named = known.iter().filter(named).peekable();
    if named.peek().is_some() && !named.any(|part| part.shapes.iter().any(|one| may_be(one, home)))
    {
        return false;
    }
    let all = || parts.runs.iter().flat_map(|line| Run::all(&line.joined, &line.starts));
    let goes = || all().any(|run| run.goes(home));
    all()
        .any(|run| run.removes(home) || run.is_fed() && told(parts, home) || run.clears() && goes())
}

/// What goes with a folder that is the home folder or holds it.
pub(crate) fn extent(path: &HostPath, home: &HostPath) -> &'static str {
    if path.parent().is_none() {
        "the whole file system"
    } else if path == home {
        "the whole home folder"
    } else {
        "the whole home folder, and what lies beside it"
    }
}

/// Whether all of a command that has an effect on a folder takes away or writes single files in it: no
/// folder is lost by that.
pub(crate) fn is_flat(effect: &Effect, judged: &[Judged<'_>]) -> bool {
    let parts =
        || judged.iter().filter_map(|one| one.script.as_ref()).flat_map(|script| &script.parts);
    // What the words of a script mean then is read by nobody.
    let renames = |part: &Part| part.program.as_deref() == Some("alias");
    let mut has = parts()
        .filter_map(|part| Some((part, part.effects.iter().rposition(|one| one == effect)?)))
        .peekable();
    let is_read = judged.iter().all(|one| match (&one.effect.target, &one.script) {
        (Target::Command { .. }, script) => script.as_ref().is_some_and(|one| one.fault.is_none()),
        _ => true,
    });
    is_read
        && !parts().any(renames)
        && has.peek().is_some()
        && has.all(|(part, at)| at < part.redirected || is_shallow(part))
}

/// Whether it is `rm` that takes no folder away, whatever becomes of its words.
fn is_shallow(part: &Part) -> bool {
    let mut options = part.shapes.iter().take_while(|word| *word != "--");
    let is_deep = |word: &String| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => {
            long.starts_with("-r") || long.starts_with("-d") || long.contains(OPEN)
        }
        Some(letters) => letters.contains(['r', 'R', 'd']) || letters.contains(OPEN),
        None => word.starts_with(OPEN),
    };
    part.program.as_deref() == Some("rm")
        && !(part.is_wrapped || part.splits)
        && !options.any(is_deep)
}

/// Whether a text hands on these folders by what it says.
fn told(parts: &Parts, home: &str) -> bool {
    let says = |line: &str| {
        let mut words = line.split(GAP);
        let is_it = words.next().is_some_and(|name| ["echo", "printf"].contains(&name));
        is_it && words.any(|word| is_gone(word, home))
    };
    parts.runs.iter().any(|line| says(&line.joined))
        || parts.bodies.iter().flat_map(|body| body.split_whitespace()).any(|word| {
            let word = word.trim_matches('"').replace("${HOME}", "~").replace("$HOME", "~");
            is_gone(&word.replacen('~', home, 1), home)
        })
}

/// A program of which it matters here, and its words.
struct Run<'a> {
    name: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Run<'a> {
    /// Those of a line: of several alike the first has the words of all.
    fn all(line: &'a str, starts: &'a [usize]) -> impl Iterator<Item = Self> {
        ["rm", "find", "cd"].into_iter().filter_map(|name| {
            let at = starts.iter().find(|at| {
                line[**at..]
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(GAP))
            })?;
            Some(Self { name, words: line[*at..].split(GAP).skip(1).collect() })
        })
    }

    /// Whether `rm` takes folders away, or may: options may be in a word that is not known.
    fn is_deep(&self) -> bool {
        let options = self.words.iter().take_while(|word| **word != "--");
        self.name == "rm" && { options }.any(|word| match word.strip_prefix('-') {
            Some(long) if long.starts_with('-') => long.starts_with("-r"),
            Some(letters) => letters.contains(['r', 'R']),
            None => word.strip_prefix(EXPANDS).is_some_and(|rest| replaced(rest) == rest.len()),
        })
    }

    fn removes(&self, home: &str) -> bool {
        if self.name == "find" {
            let ends = ["-delete", "rm", "/bin/rm"];
            let is_step = |word: &&&str| !word.starts_with(['-', '(', '!']);
            return self.words.iter().any(|word| ends.contains(word))
                && self.words.iter().take_while(is_step).any(|word| is_gone(word, home));
        }
        self.is_deep() && self.words.iter().any(|word| is_gone(word, home))
    }

    /// Whether words of its input are removed.
    fn is_fed(&self) -> bool {
        let is_mark =
            |word: &&str| word.starts_with([EXPANDS, QUOTED]) && word[1..].starts_with(REPLACED);
        self.is_deep() && self.words.iter().any(is_mark)
    }

    /// Whether it removes all that is in the folder that it runs in.
    fn clears(&self) -> bool {
        let is_all = |word: &&str| {
            let word = word.replace(EXPANDS, "");
            let word = word.trim_start_matches("./").trim_end_matches('/');
            word == "." || is_star(word)
        };
        self.is_deep() && self.words.iter().any(is_all)
    }

    /// Whether the shell goes to one of these folders.
    fn goes(&self, home: &str) -> bool {
        self.name == "cd"
            && (self.words.is_empty() || self.words.iter().any(|word| is_gone(word, home)))
    }
}

/// Whether a word is the home folder, one above it, or all that is in one of these.
fn is_gone(word: &str, home: &str) -> bool {
    texts(word, home).iter().any(|text| {
        if !text.starts_with('/') {
            return false;
        }
        let mut names: Vec<&str> = Vec::new();
        for name in text.split('/').filter(|name| !name.is_empty() && *name != ".") {
            match name {
                ".." => drop(names.pop()),
                _ => names.push(name),
            }
        }
        while names.last().is_some_and(|name| is_star(name)) {
            names.pop();
        }
        let above: Vec<&str> = home.split('/').filter(|name| !name.is_empty()).collect();
        above.starts_with(&names)
    })
}

/// Whether one of the shapes of a word may be such a folder: see [`haft_shell::Part::shapes`].
fn may_be(shape: &str, home: &str) -> bool {
    let open = |c: char| match c {
        SOME | FOUND => "*".to_owned(),
        ONE => "?".to_owned(),
        ANY => String::new(),
        c => c.to_string(),
    };
    let text: String = shape.chars().map(open).collect();
    let text = text.replace(['[', ']'], "");
    // Where the shell is is known to nobody here.
    shape == ANY.to_string()
        || !text.starts_with(['-', '/']) && is_star(&text)
        || is_gone(&text, home)
}

/// Whether a name is a pattern of any name.
fn is_star(name: &str) -> bool {
    name.contains('*') && name.chars().all(|c| "*?.".contains(c))
}

/// What a word may become, where what is not known of it is empty.
fn texts(word: &str, home: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut add = |more: &[String]| {
        all =
            all.iter().flat_map(|one| more.iter().map(move |end| format!("{one}{end}"))).collect();
        all.truncate(MOST);
    };
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let before = rest;
        rest = &rest[c.len_utf8()..];
        match c {
            '[' if rest.starts_with(EXPANDS) => {
                rest = &rest[1..];
                let end = class(rest).unwrap_or(0);
                let mut inner = rest[..end].trim_end_matches(']').chars();
                add(&[match (inner.next(), inner.next()) {
                    (Some(c), None) => c.to_string(),
                    _ => "?".to_owned(),
                }]);
                rest = &rest[end..];
            }
            '*' | '?' if rest.starts_with(EXPANDS) => {
                rest = &rest[1..];
                add(&[c.to_string()]);
            }
            '~' if rest.starts_with(EXPANDS) && before.len() == word.len() => {
                rest = rest[1..].trim_start_matches(|c| c != '/');
                add(&[home.to_owned()]);
            }
            EXPANDS | QUOTED => {
                let end = replaced(rest);
                add(&values(&rest[..end], home));
                rest = &rest[end..];
            }
            c => add(&[c.to_string()]),
        }
    }
    all
}

/// What a variable or an expansion of one may be.
fn values(text: &str, home: &str) -> Vec<String> {
    let something = || SOMETHING.to_string();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    match inner {
        "HOME" => return vec![home.to_owned()],
        "PWD" | "OLDPWD" | "#" | "?" | "$" => return vec![something()],
        _ => {}
    }
    let mut all = Vec::new();
    // What is more than a name stands there as all of its word.
    for (at, _) in inner.match_indices("${") {
        let rest = &inner[at + 2..];
        let rest = &rest[..rest.find('}').unwrap_or(rest.len())];
        let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (name, how) = rest.split_at(end);
        let given = how.trim_start_matches(':').trim_start_matches(['-', '=', '+']);
        let given = match given.trim_matches('"') {
            "~" | "$HOME" => home.to_owned(),
            given => given.to_owned(),
        };
        match how.trim_start_matches(':').chars().next() {
            _ if name == "HOME" => all.push(home.to_owned()),
            Some('?') => all.push(something()),
            Some('-' | '=') => all.extend([given, something()]),
            Some('+') => all.extend([given, String::new()]),
            _ => all.push(String::new()),
        }
    }
    if all.is_empty() { vec![String::new()] } else { all }
}
