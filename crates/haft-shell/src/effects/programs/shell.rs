//! What the shell itself does: tests, printing, variables and its own settings.
//!
//! **Invariant:** no word that is data is evaluated: names and subscripts are known, and what
//! arithmetic reads is a number.

use super::Call;
use crate::{
    effects::{
        Effect, Operand,
        judge::{FOLDERS, Judge, Outcome},
        state::{Value, folder},
        words::{self, Arg, is_own},
    },
    quotes::is_name,
};

/// `[ ... ]` and `test ...`
pub(super) fn test(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut args = call.args;
    if call.name == "[" {
        match args.split_last() {
            Some((last, rest)) if last.known() == Some("]") => args = rest,
            _ => return out.fault("the test is not closed"),
        }
    }
    // A number may be missing; then only the name of a variable is evaluated.
    let names = args.iter().any(|arg| matches!(arg.known(), Some("-v" | "-R")));
    let is_count = |arg: &Arg| arg.value == Value::Count && !arg.is_odd && !names;
    let is_open = |arg: &&Arg| (arg.is_split || arg.is_pattern) && !is_count(arg);
    if let Some(odd) = args.iter().find(is_open) {
        return out.anything(format!("{} in a test may become operators", odd.text));
    }
    let mut at = 0;
    loop {
        while is(args, at, &["!", "(", "-a", "-o"]) && args.len() > at + 1 {
            at += 1;
        }
        let left = &args[at.min(args.len())..];
        let is_joined =
            |at: usize| matches!(left.get(at).and_then(Arg::known), None | Some("-a" | "-o" | ")"));
        match left {
            [] => return,
            [one] if one.known().is_some() || args.len() == 1 => return,
            [_, op, _, ..] if op.known().is_some_and(is_binary) => at += 3,
            [op, operand, ..] if op.known().is_some_and(is_unary) => {
                let name = op.known().unwrap_or_default();
                if ["-v", "-R"].contains(&name) && !operand.known().is_some_and(is_name) {
                    return out.anything("a test evaluates the name of a variable");
                }
                if is_file_test(name) && !is_program(operand) {
                    out.effects.extend(judge.reads(operand));
                }
                at += 2;
            }
            [one, ..] if one.known().is_some_and(|text| !text.starts_with('-')) && is_joined(1) => {
                at += 1;
            }
            [close, ..] if close.known() == Some(")") => at += 1,
            _ => return out.anything("what the test asks is known when it runs"),
        }
        while is(args, at, &[")"]) {
            at += 1;
        }
    }
}

fn is(args: &[Arg], at: usize, texts: &[&str]) -> bool {
    args.get(at).and_then(Arg::known).is_some_and(|text| texts.contains(&text))
}

fn is_binary(text: &str) -> bool {
    let all = [
        "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
        "=~",
    ];
    all.contains(&text)
}

fn is_unary(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-')
        && chars.next().is_some_and(|c| "abcdefghknoprstuvwxzGLNORS".contains(c))
        && chars.next().is_none()
}

fn is_file_test(text: &str) -> bool {
    !["-n", "-z", "-o", "-t", "-v", "-R"].contains(&text)
}

/// Whether a word names a program that is installed: whether it is there is no secret.
fn is_program(arg: &Arg) -> bool {
    arg.known().is_some_and(|path| {
        let name = FOLDERS.iter().find_map(|folder| path.strip_prefix(folder));
        name.is_some_and(|name| !name.contains('/') && !["", ".", ".."].contains(&name))
    })
}

/// `[[ ... ]]`
pub(super) fn extended(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let args = call.args;
    for (at, arg) in args.iter().enumerate() {
        let Some(text) = arg.known() else { continue };
        let next = args.get(at + 1);
        match text {
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let sides = [at.checked_sub(1).and_then(|at| args.get(at)), next];
                if !sides.iter().all(|side| side.is_some_and(|side| side.value.is_number())) {
                    out.anything("a comparison of numbers may run what is in data");
                }
            }
            "-v" | "-R" if !next.and_then(Arg::known).is_some_and(is_name) => {
                out.anything("a test evaluates the name of a variable");
            }
            "-v" | "-R" => {}
            "-nt" | "-ot" | "-ef" => {
                for side in
                    [at.checked_sub(1).and_then(|at| args.get(at)), next].into_iter().flatten()
                {
                    out.effects.extend(judge.reads(side));
                }
            }
            text if is_unary(text) && is_file_test(text) => {
                if let Some(next) = next.filter(|next| !is_program(next)) {
                    out.effects.extend(judge.reads(next));
                }
            }
            _ => {}
        }
    }
}

/// `echo WORDS`
pub(super) fn echo(_: &mut Judge<'_, '_>, _: &Call<'_>, _: &mut Outcome) {}

/// `printf FORMAT WORDS`
pub(super) fn printf(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut args = call.args;
    if args.first().and_then(Arg::known) == Some("--") {
        args = &args[1..];
    }
    // A name alone has no index that would be evaluated.
    if let [flag, name, rest @ ..] = args
        && flag.known() == Some("-v")
        && name.known().is_some_and(is_own)
    {
        args = rest;
    }
    let Some(format) = args.first() else { return };
    // The format may be long behind a known start, but no conversion in it is unknown.
    match format.known() {
        Some(text) if text.starts_with("-v") => {
            out.effects.push(Effect::ChangesShell);
            out.fault("printf sets a variable");
        }
        Some(text) if text.starts_with('-') => out.fault("the options of printf are not known"),
        Some(text) if is_plain_format(text) => {}
        _ => out.anything("what printf does is known when it runs"),
    }
}

/// Whether no conversion of a format sets a variable.
fn is_plain_format(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        rest = rest[at + 1..]
            .trim_start_matches(|c: char| "-+ #0'.*".contains(c) || c.is_ascii_digit());
        match rest.chars().next() {
            Some('(') => match rest.find(')') {
                Some(end) if rest[end + 1..].starts_with('T') => rest = &rest[end + 2..],
                _ => return false,
            },
            Some(c) if "diouxXfFeEgGaAcsbqQ%".contains(c) => rest = &rest[1..],
            _ => return false,
        }
    }
    !text.contains("\\x25") && !text.contains("\\45") && !text.contains("\\045")
}

/// `read [OPTIONS] NAMES`
pub(super) fn read(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut at = 0;
    while let Some(text) = call.args.get(at).and_then(Arg::known) {
        at += match text {
            "-r" | "-s" | "-rs" | "-a" | "-ra" => 1,
            "-d" | "-n" | "-N" | "-t" | "-u" | "-p" | "-rd" | "-rn" | "-rp" | "-rt" => 2,
            _ => break,
        };
        let value = call.args.get(at - 1).filter(|arg| arg.is_split || arg.is_pattern);
        if let Some(value) = value {
            out.anything(format!("{} may become names that read sets", value.text));
        }
    }
    for arg in call.args.get(at..).unwrap_or_default() {
        if !arg.known().is_some_and(is_own) {
            out.effects.push(Effect::ChangesShell);
            out.anything(format!("read sets {}", arg.text));
        }
    }
}

/// `mapfile [-t] NAME`
pub(super) fn mapfile(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let names = match call.args.split_first() {
        Some((first, rest)) if first.known() == Some("-t") => rest,
        _ => call.args,
    };
    if names.len() > 1 || !names.iter().all(|arg| arg.known().is_some_and(is_own)) {
        out.anything(format!("{} may run what is in its words", call.name));
    }
}

/// `export`, `declare`, `local` and the like.
pub(super) fn declare(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut flags = String::new();
    for arg in call.args {
        let start = arg.value.start().to_owned();
        match arg.known() {
            Some(text) if text.starts_with('-') && !text.contains('=') => {
                flags.push_str(&text[1..]);
            }
            _ if arg.is_odd || arg.is_split && !is_assigned(&start) => {
                out.anything(format!("{} {} may run what is in data", call.name, arg.text));
            }
            known => {
                let text = known.unwrap_or(&start);
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None if known.is_none() => ("", None),
                    None => (text, None),
                };
                let is_exported = call.name == "export" || flags.contains('x');
                let is_fine = if flags.contains(['p', 'f', 'F']) && call.name != "export" {
                    is_name(name)
                } else if is_exported {
                    // What has no value here is handed on with what it was set to before.
                    super::is_harmless(name, known.and(value))
                } else {
                    is_own(name)
                        && value.is_none_or(|value| !value.starts_with('('))
                        && (known.is_some() || !has_arrays(judge))
                        && (known.is_some() || !flags.contains(['a', 'A']))
                };
                if !is_fine {
                    out.effects.push(Effect::ChangesShell);
                    out.fault(format!(
                        "{} sets {}",
                        call.name,
                        if name.is_empty() { &arg.text } else { name }
                    ));
                }
            }
        }
    }
    let is_plain = match call.name {
        "export" => flags.bytes().all(|c| c == b'p'),
        _ => flags.bytes().all(|c| b"paAfFrgx".contains(&c)),
    };
    if !is_plain {
        out.anything(format!("{} -{flags} may evaluate what it is given", call.name));
    }
}

/// Whether a word is an assignment: what a declaration is given so is not split.
fn is_assigned(start: &str) -> bool {
    start.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Whether the script has an array: a value that is given to one may name an index.
fn has_arrays(judge: &Judge<'_, '_>) -> bool {
    let declares = [
        "read",
        "declare",
        "typeset",
        "local",
        "readonly",
        "export",
        "builtin",
        "command",
        "mapfile",
        "readarray",
    ];
    let makes = |command: &crate::Command| {
        let texts: Vec<Option<String>> = command.words.iter().map(crate::Word::literal).collect();
        let is_one = |text: &Option<String>| {
            let name = text.as_deref().and_then(|text| text.rsplit('/').next());
            name.is_some_and(|name| declares.contains(&name))
        };
        let is_flag = |text: &Option<String>| match text {
            Some(text) => text.starts_with('-') && text.contains(['a', 'A']),
            None => false,
        };
        let maps = texts.iter().flatten().any(|text| text == "mapfile" || text == "readarray");
        let is_open = command
            .words
            .iter()
            .any(|word| word.literal().is_none() && !word.start().contains('='));
        let may_make = texts.iter().any(is_flag) || is_open;
        command.assignments.iter().any(|one| one.is_array)
            || maps
            || texts.iter().any(is_one) && may_make
    };
    judge.around.script.commands.iter().any(makes)
}

/// `set [OPTIONS]`
pub(super) fn set(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let known: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    let is_flag = |word: &&str| ["-e", "-u", "+e", "+u", "-eu", "-ue", "+eu"].contains(word);
    let is_fine = match known.as_deref() {
        Some([] | ["-o" | "+o"]) => true,
        Some([flags @ .., "-o" | "+o" | "-euo" | "-eo" | "-uo", "pipefail"]) => {
            flags.iter().all(is_flag)
        }
        Some(flags) => flags.iter().all(is_flag),
        None => false,
    };
    if !is_fine {
        out.effects.push(Effect::ChangesShell);
        out.fault("it changes how the shell works");
    }
}

/// `shopt [-s] NAMES`
pub(super) fn shopt(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let known: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    let is_fine = match known.as_deref() {
        Some(["-s" | "-u", names @ ..]) => {
            names.iter().all(|name| ["globstar", "nullglob"].contains(name))
        }
        // Each option counts, together with others, too: `shopt -q -s NAME` sets it.
        Some(words) => {
            let looks = |word: &&&str| matches!(**word, "-p" | "-q" | "-o" | "-po" | "-qo");
            let names = &words[words.iter().take_while(looks).count()..];
            names.iter().all(|name| !name.starts_with('-'))
        }
        None => false,
    };
    if !is_fine {
        out.effects.push(Effect::ChangesShell);
        out.fault("it changes how the shell works");
    }
}

/// Builtins that only show something when they have these words.
pub(super) fn shows(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let known: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    let known = known.as_deref();
    let all = |allowed: &[&str]| {
        known.is_some_and(|words| words.iter().all(|word| allowed.contains(word)))
    };
    let is_fine = match call.name {
        // Whatever they are given, they only tell of it; nothing that they print runs.
        "type" | "hash" if call.args.is_empty() => true,
        "type" => true,
        "hash" => {
            let is_name = |word: &&str| !word.starts_with('-');
            let asks = |words: &[&str]| {
                words.strip_prefix(&["-t"]).is_some_and(|names| names.iter().all(is_name))
            };
            all(&["-l"]) || known.is_some_and(asks)
        }
        "alias" | "times" | "caller" | "history" | "wait" => call.args.is_empty(),
        "umask" => all(&["-S", "-p"]),
        "ulimit" => known.is_some_and(|words| {
            words.iter().all(|word| {
                word.starts_with('-') && word.bytes().skip(1).all(|c| c.is_ascii_alphabetic())
            })
        }),
        "jobs" => all(&["-l", "-p", "-r", "-s"]),
        "dirs" => all(&["-v", "-p", "-l"]),
        // Without `-v` a function of the name goes where there is no variable.
        "unset" => known.is_some_and(|words| {
            let functions = &judge.around.script.functions;
            let is_function = |name: &&str| functions.iter().any(|function| function == name);
            match words.strip_prefix(&["-v"]) {
                Some(names) => names.iter().all(|name| is_own(name)),
                None => words.iter().all(|name| is_own(name) && !is_function(name)),
            }
        }),
        "shift" | "exit" | "return" | "break" | "continue" => {
            call.args.len() <= 1 && call.args.iter().all(|arg| arg.value.is_number())
        }
        _ => false,
    };
    if !is_fine {
        out.effects.push(Effect::ChangesShell);
        out.fault(format!("{} may change the shell", call.name));
    }
}

/// `cd`, `pushd`, `popd`: they go by names, so that `..` leads to the folder above by name.
pub(super) fn folders(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    if let Some(arg) = call.args.iter().find(|arg| arg.is_split || arg.is_pattern) {
        out.fault(format!("{} may become several words", arg.text));
    }
    let is_physical = call.args.iter().any(|arg| arg.value.start().starts_with("-P"));
    for arg in call.args.iter().filter(|arg| !arg.value.start().starts_with(['-', '+'])) {
        let folders = match (arg.known(), &judge.state.folders) {
            (Some(path), _) if is_physical || path.is_empty() => None,
            (Some(path), Some(from)) => Some(from.iter().map(|from| folder(from, path)).collect()),
            (Some(path), None) if path.starts_with('/') => Some(vec![folder("/", path)]),
            _ => None,
        };
        let operands: Vec<Operand> = match folders {
            Some(folders) => folders.into_iter().map(Operand::Path).collect(),
            None => words::operands(arg, judge.state),
        };
        out.effects.extend(operands.into_iter().map(Effect::Reads));
    }
}

/// What changes the shell in any way, or runs its words.
pub(super) fn changes(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    out.effects.push(Effect::ChangesShell);
    out.anything(format!("{} may change the shell, or run anything", call.name));
}
