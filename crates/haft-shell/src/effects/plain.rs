//! Files that words of a program plainly name of which not all is known that it does: what forbids those
//! files forbids the command then, and does not merely ask.
//!
//! **Invariant:** this only adds to what a program does. An operand counts where no reading of it is
//! another one than that of a path.

use super::{
    Effect, Operand,
    judge::{Judge, Outcome},
    words::{self, Arg},
};

/// What becomes of plain operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It reads the first.
    ReadsFirst,
    /// It writes all of them.
    Writes,
    /// The same of those behind `--`.
    WritesBehind,
    /// It removes all of them.
    Destroys,
    /// It removes all but the last, and writes that.
    Moves,
}

/// Programs and their subcommands, what they do, and options with which they do not.
const PLAIN: &[(&str, Does, &[&str])] = &[
    (".", Does::ReadsFirst, &[]),
    ("source", Does::ReadsFirst, &[]),
    ("bash", Does::ReadsFirst, &[]),
    ("sh", Does::ReadsFirst, &[]),
    ("dash", Does::ReadsFirst, &[]),
    ("zsh", Does::ReadsFirst, &[]),
    ("git checkout", Does::WritesBehind, &[]),
    ("git mv", Does::Moves, &["-n", "--dry-run"]),
    ("git restore", Does::Writes, &["-S", "-s", "--source", "--staged"]),
    ("git rm", Does::Destroys, &["-n", "--cached", "--dry-run"]),
];

/// A program, how its operand begins behind which a file stands, and what is done to that.
type Named = (&'static str, &'static str, fn(Operand) -> Effect);

/// Operands of the form `NAME=FILE`.
const NAMED: &[Named] = &[("dd", "if=", Effect::Reads), ("dd", "of=", Effect::Writes)];

/// Adds what the words of a program plainly name.
pub(super) fn add(judge: &Judge<'_, '_>, name: &str, args: &[Arg], out: &mut Outcome) {
    for (_, start, make) in NAMED.iter().filter(|(program, ..)| *program == name) {
        let values = args.iter().filter_map(|arg| arg.known()?.strip_prefix(start));
        for value in values.filter(|value| !judge.is_passing(Some(value))) {
            let arg = Arg::of(super::state::Value::text(value), value, 0..0);
            out.effects.extend(words::operands(&arg, judge.state).into_iter().map(make));
        }
    }
    operands(judge, name, args, out);
}

/// Adds what plain operands are.
fn operands(judge: &Judge<'_, '_>, name: &str, args: &[Arg], out: &mut Outcome) {
    let (whole, args) = match args.split_first() {
        Some((sub, rest)) if name == "git" => {
            (format!("git {}", sub.known().unwrap_or_default()), rest)
        }
        _ => (name.to_owned(), args),
    };
    let Some((_, does, options)) = PLAIN.iter().find(|(program, ..)| *program == whole) else {
        return;
    };
    let known: Vec<&str> = args.iter().map(|arg| arg.known().unwrap_or_default()).collect();
    let end = known.iter().position(|word| *word == "--");
    let flags = &known[..end.unwrap_or(known.len())];
    if flags.iter().any(|word| options.contains(word)) {
        return;
    }
    let is_operand = |at: &usize| {
        let word = known[*at];
        // What begins with a colon says to git how it is meant.
        Some(*at) != end && !word.is_empty() && !word.starts_with(':') && {
            end.is_some_and(|end| *at > end) || !word.starts_with(['-', '+'])
        }
    };
    let all: Vec<usize> = (0..known.len()).filter(is_operand).collect();
    let make = |at: &usize, make: fn(Operand) -> Effect| {
        words::operands(&args[*at], judge.state).into_iter().map(make).collect::<Vec<_>>()
    };
    let effects: Vec<Effect> = match (does, all.split_last()) {
        // Behind an option it may be the value of that.
        (Does::ReadsFirst, _) => all
            .first()
            .filter(|at| **at == 0)
            .into_iter()
            .flat_map(|at| make(at, Effect::Reads))
            .collect(),
        (Does::Writes, _) => all.iter().flat_map(|at| make(at, Effect::Writes)).collect(),
        (Does::WritesBehind, _) => {
            let behind = all.iter().filter(|at| end.is_some_and(|end| **at > end));
            behind.flat_map(|at| make(at, Effect::Writes)).collect()
        }
        (Does::Destroys, _) => all.iter().flat_map(|at| make(at, Effect::Destroys)).collect(),
        (Does::Moves, Some((last, rest))) => {
            let from = rest.iter().flat_map(|at| make(at, Effect::Destroys));
            from.chain(make(last, Effect::Writes)).collect()
        }
        (Does::Moves, None) => Vec::new(),
    };
    let is_known = |effect: &Effect| {
        !matches!(
            effect,
            Effect::Reads(Operand::Unknown)
                | Effect::Writes(Operand::Unknown)
                | Effect::Destroys(Operand::Unknown)
        )
    };
    out.effects.extend(effects.into_iter().filter(is_known));
}
