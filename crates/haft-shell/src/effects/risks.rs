//! What a person risks who lets a command run, in their words.
//!
//! **Invariant:** a sentence is only ever told of a command that does more than look, and decides
//! nothing. What cannot be told from the words is said in general terms.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    options::{self, Parsed},
    programs::network,
    words::Arg,
};
use crate::table::{self, Entry, Trait};

/// The sentences and lists of options.
const TEXT: &str = include_str!("../table/risks.txt");
/// Operands that are named; of more their number is told.
const NAMED: usize = 3;
/// Characters of an operand that are shown.
const SHOWN: usize = 60;

/// A sentence, and the option with which it holds.
#[derive(Debug)]
struct Risk {
    option: Option<&'static str>,
    /// The value that this option has to have.
    value: Option<&'static str>,
    sentence: &'static str,
}

#[derive(Debug, Default)]
struct Risks {
    /// Sentences by `PROGRAM SUBCOMMANDS`.
    sentences: HashMap<String, Vec<Risk>>,
    options: HashMap<String, Entry>,
    /// What names begin with: where to look for a subcommand.
    starts: HashSet<String>,
}

static RISKS: LazyLock<Risks> = LazyLock::new(|| {
    let mut risks = Risks::default();
    for line in table::parts_of(TEXT.lines()) {
        // What cannot be read a test finds.
        let _ = risks.add(&line);
    }
    risks
});

impl Risks {
    /// Adds a line; a fault is the part that is not understood.
    fn add(&mut self, line: &[&'static str]) -> Result<(), &'static str> {
        let divided = line.iter().enumerate().find_map(|(at, part)| {
            let mark = [": ", " | "].into_iter().filter_map(|mark| Some((part.find(mark)?, mark)));
            let (end, mark) = mark.min()?;
            Some((at, &part[..end], mark, &part[end + mark.len()..]))
        });
        let (at, last, mark, rest) = divided.ok_or("a line without words")?;
        let names = line[..at].iter().copied().chain([last]).flat_map(|part| part.split(','));
        let names = names.map(str::trim).filter(|name| !name.is_empty());
        let more = &line[at + 1..];
        if mark == " | " {
            let options = table::options(&[&[rest], more].concat())?;
            self.options.extend(names.map(|name| (name.to_owned(), options.clone())));
            return Ok(());
        }
        if let Some(more) = more.first() {
            return Err(more);
        }
        for name in names {
            let is_option = |word: &&str| word.starts_with('-') || word.ends_with('*');
            let words: Vec<&str> = name.split(' ').collect();
            let at = words.iter().position(is_option).unwrap_or(words.len());
            let (option, value) = (words.get(at).copied(), words.get(at + 1).copied());
            let risk = Risk { option, value, sentence: rest };
            self.sentences.entry(words[..at].join(" ")).or_default().push(risk);
            self.starts.extend((1..=at).map(|end| words[..end].join(" ")));
        }
        Ok(())
    }

    /// The options of a program or subcommand.
    fn entry(&self, whole: &str) -> Option<&Entry> {
        let listed = |entry: &&Entry| !entry.short.is_empty() || !entry.long.is_empty();
        self.options
            .get(whole)
            .or_else(|| table::find(whole).filter(listed))
            .or_else(|| table::find(&format!("{whole} ...")))
    }

    /// A name as the table has it: `python3.12` is `python3` there, or `python`.
    fn program<'n>(&self, name: &'n str) -> Option<&'n str> {
        let cuts = [name, name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')];
        let whole = |name: &&str| self.starts.contains(*name);
        cuts.into_iter().find(whole)
    }
}

/// What a command does, as the words behind "it"; none where no line of the table is about it.
pub(crate) fn risk(name: &str, args: &[Arg]) -> Option<String> {
    let mut whole = RISKS.program(name)?.to_owned();
    let nothing = Entry::default();
    let mut rest = args;
    let mut found = RISKS.sentences.get_key_value(&whole).map(|(name, all)| (name, all, rest));
    loop {
        // Which toolchain cargo takes.
        let is_toolchain = |arg: &&Arg| arg.value.start().starts_with('+') && whole == "cargo";
        let skipped = rest.iter().take_while(is_toolchain).count();
        let entry = RISKS.entry(&whole).unwrap_or(&nothing);
        let parsed = options::parse_as(entry, &rest[skipped..], true);
        let at = skipped + parsed.count;
        let Some(sub) = rest.get(at).and_then(Arg::known) else { break };
        let longer = format!("{whole} {sub}");
        if !parsed.faults.is_empty() || !RISKS.starts.contains(&longer) {
            break;
        }
        (whole, rest) = (longer, &rest[at + 1..]);
        found =
            RISKS.sentences.get_key_value(&whole).map(|(name, all)| (name, all, rest)).or(found);
    }
    let (whole, all, rest) = found?;
    let entry = RISKS.entry(whole).unwrap_or(&nothing);
    let parsed = options::parse_as(entry, rest, entry.is(Trait::Stop));
    let own = if entry.is(Trait::Stop) { &rest[..parsed.count.min(rest.len())] } else { rest };
    let end = own.iter().position(|arg| arg.known() == Some("--")).unwrap_or(own.len());
    let fits = |risk: &&Risk| risk.option.is_some() && holds(risk, &own[..end], rest);
    let mut with = all.iter().filter(fits);
    let risk = with.clone().find(|risk| risk.value.is_some()).or_else(|| with.next());
    let risk = risk.or_else(|| all.iter().find(|risk| risk.option.is_none()))?;
    let operands = if entry.is(Trait::Stop) { &rest[own.len()..] } else { &parsed.operands };
    let words = Words { rest, parsed: &parsed, operands };
    let mut text = words.fill(risk.sentence);
    let is_open = |arg: &Arg| arg.known().is_none() && !arg.is_pattern && arg.may_begin('-');
    if own.iter().any(is_open) {
        text.push_str(", with words that are known only when it runs");
    }
    Some(text)
}

/// Whether the option of a sentence stands among these words, and has the value that it says.
fn holds(risk: &Risk, own: &[Arg], rest: &[Arg]) -> bool {
    let wanted = risk.option.unwrap_or_default();
    let is_it = |text: &str| {
        if let Some(start) = wanted.strip_suffix('*') {
            return text.starts_with(start);
        }
        let letter = wanted.strip_prefix('-').filter(|rest| rest.chars().count() == 1);
        match letter {
            // `-rf` has it, and `-i.bak`.
            Some(letter) if !text.starts_with("--") => {
                let letters = text.strip_prefix('-').unwrap_or_default();
                let is_row = letters.len() < 6 && letters.bytes().all(|c| c.is_ascii_alphabetic());
                letters.starts_with(letter) || (is_row && letters.contains(letter))
            }
            _ => text
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('=')),
        }
    };
    let value = |at: usize| rest.get(at + 1).and_then(Arg::known);
    own.iter().enumerate().any(|(at, arg)| {
        is_it(arg.value.start()) && risk.value.is_none_or(|wanted| value(at) == Some(wanted))
    })
}

/// What a sentence may name.
struct Words<'a> {
    rest: &'a [Arg],
    parsed: &'a Parsed,
    operands: &'a [Arg],
}

impl Words<'_> {
    /// A sentence with what it names.
    fn fill(&self, sentence: &str) -> String {
        let mut text = String::new();
        let mut left = sentence;
        while let Some((before, rest)) = left.split_once('{') {
            let Some((inside, after)) = rest.split_once('}') else { break };
            let (what, general) = inside.split_once('|').unwrap_or((inside, ""));
            text.push_str(before);
            text.push_str(&self.named(what).unwrap_or_else(|| general.to_owned()));
            left = after;
        }
        text.push_str(left);
        text
    }

    fn named(&self, what: &str) -> Option<String> {
        match what {
            "found" => return Some(found(self.rest)),
            "run" => return run(self.rest),
            _ => {}
        }
        // Behind an option that is not listed a word may be its value.
        if self.parsed.faults.iter().any(|fault| !fault.contains("may become")) {
            return None;
        }
        let all = self.operands;
        let into = self
            .parsed
            .options
            .iter()
            .find(|(name, ..)| ["t", "target-directory"].contains(&name.as_str()));
        let into = into.and_then(|(_, _, value)| value.as_ref());
        let gives_script =
            ["e", "f", "expression", "file"].iter().any(|name| self.parsed.has(name));
        match what {
            "1" => all.first().map(shown),
            "-1" => into.or_else(|| all.last().filter(|_| all.len() > 1)).map(shown),
            "<" if into.is_some() => list(all.iter().map(shown)),
            "<" => list(all.split_last()?.1.iter().map(shown)),
            "*" => list(all.iter().map(shown)),
            "files" if gives_script => list(all.iter().map(shown)),
            "files" => list(all.get(1..)?.iter().map(shown)),
            "host" => list(
                all.iter()
                    .map(|arg| arg.known().and_then(network::host))
                    .collect::<Option<Vec<_>>>()?
                    .into_iter(),
            ),
            "at" => all.first()?.known().and_then(network::host),
            "url" => all
                .first()?
                .known()
                .filter(|url| url.contains("://") || url.contains('@'))
                .and_then(network::host),
            _ => None,
        }
    }
}

/// The first few of some names; none of none.
fn list(all: impl Iterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = all.collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    match (&mut all[..], more) {
        ([], _) => None,
        ([.., last], 0) => {
            let last = std::mem::take(last);
            all.pop();
            Some(if all.is_empty() { last } else { format!("{} and {last}", all.join(", ")) })
        }
        (_, more) => Some(format!("{} and {more} more", all.join(", "))),
    }
}

/// A word as it is written, on one line.
fn shown(arg: &Arg) -> String {
    let mut text: String = arg
        .text
        .chars()
        .take(SHOWN)
        .flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] })
        .collect();
    if arg.text.chars().nth(SHOWN).is_some() {
        text.push_str("...");
    }
    if text.is_empty() { "''".to_owned() } else { text }
}

/// What `find` finds, as far as it can be said in a few words: `*.py below .`
fn found(args: &[Arg]) -> String {
    const NAMES: [&str; 6] = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"];
    let starts =
        |arg: &Arg| ['-', '(', ')', '!', ','].iter().any(|c| arg.value.start().starts_with(*c));
    let is_way = |arg: &&Arg| matches!(arg.known(), Some("-H" | "-L" | "-P"));
    let args = &args[args.iter().take_while(is_way).count()..];
    let paths = args.iter().take_while(|arg| !starts(arg));
    let tests = &args[paths.clone().count()..];
    let place = list(paths.map(shown)).unwrap_or_else(|| ".".to_owned());
    let is_joined = |arg: &Arg| {
        matches!(arg.known(), None | Some("!" | "-not" | "-o" | "-or" | "," | "(" | ")" | "-prune"))
    };
    let is_act = |arg: &&Arg| {
        let act = arg.known().unwrap_or_default();
        ["-exec", "-ok", "-delete", "-fprint", "-fls"].iter().any(|start| act.starts_with(start))
    };
    let tests = &tests[..tests.iter().take_while(|arg| !is_act(arg)).count()];
    let is_name = |at: usize| NAMES.contains(&tests[at].known().unwrap_or_default());
    let names: Vec<&Arg> =
        (0..tests.len()).filter(|at| is_name(*at)).filter_map(|at| tests.get(at + 1)).collect();
    let is_value = |at: usize| at > 0 && is_name(at - 1);
    let is_plain = !(0..tests.len()).any(|at| !is_value(at) && is_joined(&tests[at]));
    match names[..] {
        [name] if is_plain => format!("{} below {place}", shown(name)),
        [] if tests.is_empty() => format!("all below {place}"),
        _ => format!("what it finds below {place}"),
    }
}

/// The program that `find` runs.
fn run(args: &[Arg]) -> Option<String> {
    let at = args
        .iter()
        .position(|arg| matches!(arg.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir")))?;
    args.get(at + 1).map(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_can_be_read_and_says_what_a_command_does() {
        let mut risks = Risks::default();
        let marks = ["1", "-1", "<", "*", "files", "host", "at", "url", "found", "run"];
        for line in table::parts_of(TEXT.lines()) {
            risks.add(&line).unwrap_or_else(|part| panic!("{part} in {line:?}"));
        }
        for (name, all) in &risks.sentences {
            let mut seen = HashSet::new();
            for risk in all {
                assert!(seen.insert((risk.option, risk.value)), "{name} {risk:?} stands twice");
                let text = risk.sentence;
                let inside =
                    text.split('{').skip(1).map(|rest| rest.split(['|', '}']).next().unwrap());
                assert!(inside.clone().all(|mark| marks.contains(&mark)), "{name}: {text}");
                assert!(
                    !text.ends_with('.') && text.starts_with(|c: char| c.is_lowercase()),
                    "{text}"
                );
            }
        }
        assert!(risks.sentences.len() > 200);
    }
}
