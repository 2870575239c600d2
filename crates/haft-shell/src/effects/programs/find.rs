//! `find`: its tests are words, and so are its actions.
//!
//! **Invariant:** what stands on no list is not known.

use super::{Call, wrappers};
use crate::{
    effects::{
        Effect,
        judge::{Judge, Outcome},
        options,
        state::Value,
        words::{self, Arg},
    },
    table,
};

/// `find [PATHS] [EXPRESSION]`
pub(super) fn find(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut at = 0;
    let known = |at: usize| call.args.get(at).and_then(Arg::known);
    while let Some(text) = known(at) {
        match text {
            "-H" | "-L" | "-P" | "-O0" | "-O1" | "-O2" | "-O3" | "--" => at += 1,
            _ => break,
        }
        out.follows |= text == "-L";
    }
    let is_path =
        |arg: &&Arg| !['-', '(', ')', '!', ','].iter().any(|c| arg.value.start().starts_with(*c));
    let paths: Vec<&Arg> = call.args[at..].iter().take_while(is_path).collect();
    at += paths.len();
    for path in &paths {
        if ['-', '(', ')', '!', ','].iter().any(|c| path.may_begin(*c)) {
            out.anything(format!("{} may become an option", path.text));
        }
        out.effects.extend(judge.reads(path));
    }
    if paths.is_empty() {
        out.effects.extend(judge.here().into_iter().map(Effect::Reads));
    }
    let found = found(&paths);
    out.follows |= call.args.iter().any(|arg| arg.known() == Some("-follow"));
    while at < call.args.len() {
        at = primary(judge, call, at, &found, out);
    }
}

/// `fd [OPTIONS] [PATTERN [PATHS]] [-x COMMAND]`
pub(super) fn fd(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    const RUN: [&str; 4] = ["-x", "-X", "--exec", "--exec-batch"];
    let Some(entry) = table::find(call.name) else { return };
    let is_run = |arg: &Arg| arg.known().is_some_and(|text| RUN.contains(&text));
    let at = call.args.iter().position(is_run);
    let (own, rest) = call.args.split_at(at.unwrap_or(call.args.len()));
    let parsed = options::parse(entry, own);
    // Behind an option that waits for its value it is that; what runs may run in another folder.
    let is_other = !parsed.faults.is_empty() || parsed.has("base-directory");
    if is_other || at.is_none() || own.iter().any(|arg| arg.known() == Some("--")) {
        return judge.table(call.name, entry, call.args, out);
    }
    judge.table(call.name, entry, own, out);
    let mut args = rest[1..].to_vec();
    let program = args.first().and_then(Arg::known).unwrap_or_default();
    if args.iter().any(|arg| arg.known().is_none_or(|text| text == ";" || is_odd_mark(text)))
        || ["bash", "sh", "dash"].contains(&program.rsplit('/').next().unwrap_or_default())
    {
        return out.anything(format!("fd {} may do anything", rest[0].text));
    }
    let is_marked = |arg: &Arg| arg.known().is_some_and(|text| text.contains("{}"));
    let value = Value::unknown();
    if args.iter().any(is_marked) {
        for arg in &mut args {
            wrappers::replace(arg, "{}", &value);
        }
    } else if let Some(last) = args.last() {
        let more = Arg::of(value, "...", last.span.end..last.span.end);
        args.extend([more.clone(), more]);
    }
    if !wrappers::inner(judge, call, &args, out) {
        out.anything(format!("fd {} may do anything", rest[0].text));
    }
}

/// Whether other marks than `{}` stand in a word.
fn is_odd_mark(text: &str) -> bool {
    text.replace("{}", "").contains('{')
}

/// The names that `{}` stands for.
fn found(paths: &[&Arg]) -> Value {
    let below = |start: &str| Value::Files(format!("{}/", start.trim_end_matches('/')), None);
    match paths {
        [] => return below("."),
        [path] if path.known().is_some() => return below(path.value.start()),
        _ => {}
    }
    let climbs = |text: &str| text.split('/').any(|part| part == "..");
    let first = paths[0].value.start().starts_with('/');
    let is_certain = |path: &&Arg| {
        let is_alike = |text: &str| text.starts_with('/') == first && !climbs(text);
        !path.is_split
            && !path.is_odd
            && match &path.value {
                Value::Texts(texts) => texts.iter().all(|text| is_alike(text)),
                Value::Files(start, _) => is_alike(start),
                Value::Number | Value::Count | Value::Hash | Value::From(_) => false,
            }
    };
    let all = paths.iter().map(|path| path.value.clone()).reduce(|one, two| one.or(&two));
    let start = all.as_ref().map_or("", Value::start).to_owned();
    if paths.iter().all(is_certain) { Value::Files(start, None) } else { Value::From(start) }
}

/// Operators and tests of `find` without a value.
const ALONE: &str = "( ) ! , -a -o -and -or -not -true -false -print -print0 -ls -prune -quit -depth -d \
    -daystart -empty -executable -readable -writable -follow -mount -xdev -noleaf -nouser -nogroup \
    -ignore_readdir_race -noignore_readdir_race -nowarn -warn";
/// Those with one.
const VALUED: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype \
    -size -mtime -ctime -atime -mmin -cmin -amin -newer -anewer -cnewer -maxdepth -mindepth -perm \
    -user -group -uid -gid -links -inum -samefile -fstype -printf -regextype -used -context";

/// One step of the expression of `find`; gives where the next one begins.
fn primary(
    judge: &mut Judge<'_, '_>,
    call: &Call<'_>,
    at: usize,
    found: &Value,
    out: &mut Outcome,
) -> usize {
    let arg = &call.args[at];
    let Some(text) = arg.known() else {
        out.anything(format!("{} may become another test of find", arg.text));
        return at + 1;
    };
    let holds = |list: &str| list.split_whitespace().any(|one| one == text);
    let is_newer = text
        .strip_prefix("-newer")
        .is_some_and(|rest| rest.len() == 2 && rest.bytes().all(|c| b"aBcmt".contains(&c)));
    if holds(ALONE) {
        return at + 1;
    }
    if holds(VALUED) || is_newer {
        match call.args.get(at + 1) {
            None => out.fault(format!("{text} has no value")),
            Some(value) if value.is_split || value.is_odd => {
                out.anything(format!("{} may become several words", value.text));
            }
            // The words that a pattern becomes are read as tests, or as paths.
            Some(value) if value.is_pattern => {
                if value.may_begin('-') {
                    let bare = value.value.start();
                    if bare.is_empty() || bare.starts_with('-') {
                        out.fault(format!("{} without quotes may become tests", value.text));
                    }
                }
            }
            Some(_) => {}
        }
        return at + 2;
    }
    action(judge, call, at, found, out)
}

/// An action of `find`.
fn action(
    judge: &mut Judge<'_, '_>,
    call: &Call<'_>,
    at: usize,
    found: &Value,
    out: &mut Outcome,
) -> usize {
    let text = call.args[at].known().unwrap_or_default();
    match text {
        "-exec" | "-execdir" | "-ok" | "-okdir" => exec(judge, call, at, found, out),
        "-delete" => {
            let all = call.args[..at].iter().take_while(|arg| !arg.value.start().starts_with('-'));
            let gone = all.flat_map(|arg| words::operands(arg, judge.state));
            let mut gone: Vec<_> = gone.map(Effect::Destroys).collect();
            if gone.is_empty() {
                gone.extend(judge.here().into_iter().map(Effect::Destroys));
            }
            out.effects.extend(gone);
            at + 1
        }
        "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
            if let Some(file) = call.args.get(at + 1) {
                let file = words::operands(file, judge.state);
                out.effects.extend(file.into_iter().map(Effect::Writes));
            }
            at + if text == "-fprintf" { 3 } else { 2 }
        }
        _ => {
            out.anything(format!("find {text} is not known"));
            at + 1
        }
    }
}

/// A command that `find` runs.
fn exec(
    judge: &mut Judge<'_, '_>,
    call: &Call<'_>,
    at: usize,
    found: &Value,
    out: &mut Outcome,
) -> usize {
    let text = call.args[at].known().unwrap_or_default();
    if text != "-exec" {
        out.fault(format!("{text} runs in other folders, or asks"));
    }
    let rest = &call.args[at + 1..];
    // A `+` ends it only behind the names.
    let is_end = |end: &usize| match rest[*end].known() {
        Some(";") => true,
        Some("+") => *end > 0 && rest[*end - 1].known() == Some("{}"),
        _ => false,
    };
    let Some(end) = (0..rest.len()).find(is_end) else {
        out.anything(format!("{text} does not end"));
        return call.args.len();
    };
    if let Some(arg) = may_end(&rest[..end]) {
        out.anything(format!("{} may end what {text} runs", arg.text));
    }
    let mut args = rest[..end].to_vec();
    // As many names as there is room for.
    if rest[end].known() == Some("+") {
        args.extend(args.last().cloned());
    }
    for arg in &mut args {
        wrappers::replace(arg, "{}", found);
    }
    wrappers::inner(judge, call, &args, out);
    at + end + 2
}

/// A word of a command that may become its end, where what follows would be steps of `find`. In the
/// place of such a step a name of a file is a fault, with which nothing is run.
fn may_end(args: &[Arg]) -> Option<&Arg> {
    args.iter().enumerate().find_map(|(at, arg)| {
        let is_one = [";", "+"].iter().any(|end| may_be(&arg.value, end));
        let is_tame = matches!(arg.value, Value::Count | Value::Hash);
        let is_many = arg.is_split && !is_tame || arg.is_pattern && is_one;
        let goes_on = |next: &Arg| {
            let starts = ['-', '(', ')', '!', ','].iter().any(|c| next.may_begin(*c));
            starts || next.is_split || next.is_pattern
        };
        let is_end =
            is_many || arg.known().is_none() && is_one && args.get(at + 1).is_some_and(goes_on);
        is_end.then_some(arg)
    })
}

/// Whether a value may be this text.
fn may_be(value: &Value, text: &str) -> bool {
    match value {
        Value::Texts(texts) => texts.iter().any(|own| own == text),
        Value::Number | Value::Count | Value::Hash => false,
        Value::Files(start, _) | Value::From(start) => text.starts_with(start),
    }
}
