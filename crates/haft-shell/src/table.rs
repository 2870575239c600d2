//! The table of known programs: what their options and operands do.
//!
//! Each family is a text with a line a program: `NAMES: WORDS | OPTIONS`. NAMES are divided by
//! commas and may have subcommands; the words are an [`Operands`] and [`Trait`]s; lines that begin
//! with blanks go on with what stands before. An option is written `-ab` (flags of one letter),
//! `-n=` (with a value), `-c=?` (with a value that is joined to it, or none), and the same for
//! `--long`; `-#` stands for numbers. Behind `=` and `=?`, or behind the one flag, stands what it
//! is: nothing (a text that changes nothing), `<` (a file that is read), `>` (a file that is
//! written), `w` (operands are written), `&` (links are followed), `f` (a format of git), `k` (what
//! git sorts or groups by), `*` (with it operands are texts, whatever they are else), `!` (anything
//! may happen). What is not listed is not known.
//!
//! **Invariant:** each line can be read: a test reads them all.
//!
//! **Does not know:** what a program does beyond that. What cannot be said so is code in `effects`.

use std::{collections::HashMap, sync::LazyLock};

/// The texts of the table.
const FAMILIES: [&str; 7] = [
    include_str!("table/files.txt"),
    include_str!("table/text.txt"),
    include_str!("table/system.txt"),
    include_str!("table/shell.txt"),
    include_str!("table/git.txt"),
    include_str!("table/build.txt"),
    include_str!("table/network.txt"),
];

/// What becomes of the words that are no options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operands {
    /// There are none.
    None,
    /// They change nothing, whatever they are.
    Text,
    /// They are read.
    Reads,
    /// The first is a text, unless `-e` or `-f` gives it; the rest are read.
    TextReads,
    /// There is at most one, which is read.
    ReadsOne,
    /// There is at most one, which changes nothing.
    TextOne,
    /// They are made or changed.
    Writes,
    /// They are removed.
    Destroys,
    /// All but the last are read, the last is written.
    Copies,
    /// All but the last are removed, the last is written.
    Moves,
    /// Neither options nor operands are looked at: what it does stands in its traits.
    Loose,
    /// What they do is not known.
    #[default]
    Any,
}

/// What else a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// No option that it has changes a file, runs anything or opens a connection, whatever its
    /// value is, also none that is not listed; what it reads then may be any file.
    Tame,
    /// Whatever option a name of a file may be for it, also one that is not listed, it changes no
    /// file, runs nothing and reads nothing that is not named.
    Mild,
    /// The same for names without a folder: it tells no more than sizes of what such an option names.
    MildHere,
    /// Options end at its first operand.
    Stop,
    /// Its first operand is a subcommand, which has a line of its own.
    Sub,
    /// Without operands it reads the folder that it is in.
    Here,
    /// The same where it goes through folders.
    HereRecursive,
    /// It tells of names and what stands beside them, and not of what is in files.
    Lists,
    /// It reads the `Cargo.toml` of the folder that it is in.
    Manifest,
    /// It changes the folder that it is in.
    WritesHere,
    /// It opens connections.
    Net,
    /// It runs what files of the project say.
    Runs,
    /// It changes the shell.
    Shell,
    /// It may change anything.
    Acts,
    /// What stands behind its first operand gets other rights or another owner.
    Rights,
    /// It reads objects, and may fetch those that are missing.
    Objects,
    /// It reads them, and runs filters that the configuration of the repository names.
    Filters,
    /// It runs programs that show differences which that configuration names, unless options say
    /// that it does not.
    Drivers,
    /// It checks signatures where that configuration says so.
    Signatures,
    /// It runs the program that a toolchain file of the folder may name.
    Toolchain,
    /// It fetches the toolchain that `go.mod` names, unless `GOTOOLCHAIN=local` is set.
    GoChain,
    /// It looks for a newer one of itself, unless `PIP_DISABLE_PIP_VERSION_CHECK=1` is set.
    PipCheck,
    /// It keeps logs and looks for a newer one of itself, unless variables say that it does not.
    NpmState,
    /// A word that begins with `@` is a file of options.
    AtFiles,
    /// Options of several letters have one dash.
    OneDash,
}

/// What an option does with its value, or is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing that changes anything.
    Text,
    /// It names a file that is read.
    Reads,
    /// It names a file that is written.
    Writes,
    /// Operands are written.
    InPlace,
    /// In the folders that it goes through it follows links.
    Follows,
    /// It is a format of git, some of which run programs.
    Format,
    /// It names what git sorts or groups by, some of which runs programs.
    Key,
    /// With it the program only shows something, and its operands are texts.
    Shows,
    /// Anything may happen.
    Bad,
}

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// It has none.
    Nothing,
    /// It has one.
    Value,
    /// It may have one that is joined to it.
    Joined,
}

/// A program or subcommand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub operands: Operands,
    pub traits: Vec<Trait>,
    /// Options of one letter.
    pub short: HashMap<char, (Takes, Use)>,
    /// Options of words, without their dashes.
    pub long: HashMap<&'static str, (Takes, Use)>,
    /// Whether `-12` is an option.
    pub takes_numbers: bool,
}

impl Entry {
    pub(crate) fn is(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }
}

static TABLE: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for line in lines() {
        if let Ok((names, entry)) = entry(&line) {
            table.extend(names.into_iter().map(|name| (name, entry.clone())));
        }
    }
    table
});

/// What is known of a program, or of `PROGRAM SUBCOMMAND`.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLE.get(name)
}

/// A program that is known, as the table writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name, with its subcommands.
    pub name: &'static str,
    /// Its options, each with `=` behind it where it has a value in the next word, with `=?` where
    /// the value may be joined to it.
    pub options: Vec<String>,
}

/// Reads lists of options, as lines of the table have them; a fault is what is not understood.
pub(crate) fn options(lists: &[&'static str]) -> Result<Entry, &'static str> {
    let mut found = Entry::default();
    for word in lists.iter().flat_map(|list| list.split_whitespace()) {
        match trait_of(word) {
            Some(own) => found.traits.push(own),
            None => add(word, &mut found)?,
        }
    }
    Ok(found)
}

/// The programs that are known, by name.
pub fn known() -> Vec<Known> {
    let mark = |takes: Takes| match takes {
        Takes::Nothing => "",
        Takes::Value => "=",
        Takes::Joined => "=?",
    };
    let mut all: Vec<Known> = TABLE
        .iter()
        .map(|(name, entry)| {
            let dashes = if entry.is(Trait::OneDash) { "-" } else { "--" };
            let short = entry.short.iter().map(|(c, (takes, _))| format!("-{c}{}", mark(*takes)));
            let long = entry.long.iter();
            let long = long.map(|(name, (takes, _))| format!("{dashes}{name}{}", mark(*takes)));
            let mut options: Vec<String> = short.chain(long).collect();
            options.sort();
            Known { name: name.trim_end_matches(" ..."), options }
        })
        .collect();
    all.sort_by_key(|known| known.name);
    all
}

/// The lines of the table, each as its parts.
fn lines() -> Vec<Vec<&'static str>> {
    parts_of(FAMILIES.iter().flat_map(|text| text.lines()))
}

/// Lines of a table, each as its parts: those that begin with blanks go on with what stands before.
pub(crate) fn parts_of(lines: impl Iterator<Item = &'static str>) -> Vec<Vec<&'static str>> {
    let mut all: Vec<Vec<&'static str>> = Vec::new();
    for line in lines {
        match line.trim() {
            "" => {}
            text if text.starts_with('#') => {}
            text => match all.last_mut() {
                Some(last) if line.starts_with(' ') => last.push(text),
                _ => all.push(vec![text]),
            },
        }
    }
    all
}

/// Reads one line; a fault is the part that is not understood.
fn entry(line: &[&'static str]) -> Result<(Vec<&'static str>, Entry), &'static str> {
    // Names may need more than one line.
    let at = line.iter().position(|part| part.contains(':')).ok_or("a line without words")?;
    let (last, rest) = line[at].split_once(':').unwrap_or_default();
    let names = line[..at].iter().copied().chain([last]).flat_map(|part| part.split(','));
    let names: Vec<_> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut found = Entry::default();
    let is_listed = rest.contains('|');
    let (words, options) = rest.split_once('|').unwrap_or((rest, ""));
    // Without options the words may go on.
    let rest: Vec<&str> = line.iter().skip(at + 1).copied().collect();
    let (more_words, rest) = if is_listed { (&[][..], &rest[..]) } else { (&rest[..], &[][..]) };
    let words = std::iter::once(words).chain(more_words.iter().copied());
    for word in words.flat_map(str::split_whitespace) {
        match (operands(word), trait_of(word)) {
            (Some(operands), _) => found.operands = operands,
            (_, Some(own)) => found.traits.push(own),
            _ => return Err(word),
        }
    }
    for option in
        std::iter::once(options).chain(rest.iter().copied()).flat_map(str::split_whitespace)
    {
        add(option, &mut found)?;
    }
    Ok((names, found))
}

fn add(option: &'static str, found: &mut Entry) -> Result<(), &'static str> {
    if option == "-#" {
        found.takes_numbers = true;
        return Ok(());
    }
    let name = option.trim_end_matches(['=', '?', '<', '>', '*', '!', '&']);
    let name = match option.find('=') {
        Some(at) => &option[..at],
        None => name,
    };
    let (takes, code) = match option[name.len()..].strip_prefix("=?") {
        Some(code) => (Takes::Joined, code),
        None => match option[name.len()..].strip_prefix('=') {
            Some(code) => (Takes::Value, code),
            None => (Takes::Nothing, &option[name.len()..]),
        },
    };
    let what = match code {
        "" => Use::Text,
        "<" => Use::Reads,
        ">" => Use::Writes,
        "w" => Use::InPlace,
        "&" => Use::Follows,
        "f" => Use::Format,
        "k" => Use::Key,
        "*" => Use::Shows,
        "!" => Use::Bad,
        _ => return Err(option),
    };
    if let Some(long) = name.strip_prefix("--") {
        found.long.insert(long, (takes, what));
        return if long.is_empty() { Err(option) } else { Ok(()) };
    }
    let letters = name.strip_prefix('-').filter(|letters| !letters.is_empty()).ok_or(option)?;
    if found.is(Trait::OneDash) {
        found.long.insert(letters, (takes, what));
        return Ok(());
    }
    if letters.chars().count() > 1 && takes != Takes::Nothing {
        return Err(option);
    }
    found.short.extend(letters.chars().map(|letter| (letter, (takes, what))));
    Ok(())
}

fn operands(word: &str) -> Option<Operands> {
    Some(match word {
        "none" => Operands::None,
        "text" => Operands::Text,
        "reads" => Operands::Reads,
        "text-reads" => Operands::TextReads,
        "reads-one" => Operands::ReadsOne,
        "text-one" => Operands::TextOne,
        "writes" => Operands::Writes,
        "destroys" => Operands::Destroys,
        "copies" => Operands::Copies,
        "moves" => Operands::Moves,
        "loose" => Operands::Loose,
        "any" => Operands::Any,
        _ => return None,
    })
}

fn trait_of(word: &str) -> Option<Trait> {
    Some(match word {
        "tame" => Trait::Tame,
        "mild" => Trait::Mild,
        "mild-here" => Trait::MildHere,
        "stop" => Trait::Stop,
        "sub" => Trait::Sub,
        "here" => Trait::Here,
        "lists" => Trait::Lists,
        "here-recursive" => Trait::HereRecursive,
        "manifest" => Trait::Manifest,
        "writes-here" => Trait::WritesHere,
        "net" => Trait::Net,
        "runs" => Trait::Runs,
        "shell" => Trait::Shell,
        "acts" => Trait::Acts,
        "rights" => Trait::Rights,
        "objects" => Trait::Objects,
        "filters" => Trait::Filters,
        "drivers" => Trait::Drivers,
        "signatures" => Trait::Signatures,
        "toolchain" => Trait::Toolchain,
        "gochain" => Trait::GoChain,
        "pipcheck" => Trait::PipCheck,
        "npmstate" => Trait::NpmState,
        "at-files" => Trait::AtFiles,
        "one-dash" => Trait::OneDash,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_can_be_read_and_no_name_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for line in lines() {
            let (names, _) = entry(&line).unwrap_or_else(|part| panic!("{part} in {line:?}"));
            for name in names {
                assert!(seen.insert(name), "{name} stands twice");
            }
        }
    }

    #[test]
    fn options_are_what_their_line_says() {
        let sort = find("sort").unwrap();
        assert_eq!(sort.short[&'o'], (Takes::Value, Use::Writes));
        assert_eq!(sort.short[&'r'], (Takes::Nothing, Use::Text));
        assert_eq!(sort.long["compress-program"], (Takes::Value, Use::Bad));
        assert!(find("head").unwrap().takes_numbers && find("cat").unwrap().is(Trait::Tame));
        assert_eq!(find("git log").unwrap().long["format"], (Takes::Joined, Use::Format));
    }
}
