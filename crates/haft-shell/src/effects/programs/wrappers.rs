//! Programs that run a command in their words.
//!
//! **Invariant:** what is run is a part of its own, and the wrapper only reads where that does.

use super::Call;
use crate::{
    effects::{
        Effect,
        flow::{DEEPEST, Depth, Walk},
        judge::{Judge, Outcome},
        options,
        state::{State, Value},
        words::{self, Arg, Around},
    },
    quotes::is_name,
    table,
};

/// `timeout 5 COMMAND` and the like: options and operands of the wrapper, then the command.
pub(super) fn simple(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find(&format!("{} ...", call.name)) else {
        return out.anything(format!("{} is not known", call.name));
    };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    let skipped = usize::from(call.name == "timeout");
    let mut rest = call.args.get(parsed.count + skipped..).unwrap_or_default();
    if call.name == "sudo" {
        while rest.first().and_then(Arg::known).is_some_and(|word| word.contains('=')) {
            rest = &rest[1..];
        }
    }
    if skipped == 1 && call.args.get(parsed.count).is_some_and(|arg| arg.is_split || arg.is_pattern)
    {
        out.fault("how long it may take is not known");
    }
    match call.name {
        "sudo" | "doas" => out.anything("it runs with the rights of somebody else"),
        "exec" => {
            out.effects.push(Effect::ChangesShell);
            out.fault("it takes the place of the shell");
        }
        "nohup" => out.fault("it may write nohup.out"),
        "busybox" => out.fault("its programs are not those that are known"),
        _ => {}
    }
    if parsed.options.iter().any(|(_, what, _)| *what == table::Use::Bad) {
        out.fault(format!("an option of {} is not known to do no harm", call.name));
    }
    inner(judge, call, rest, out);
}

/// Looks at the command that a wrapper runs.
fn inner(judge: &mut Judge<'_, '_>, call: &Call<'_>, args: &[Arg], out: &mut Outcome) {
    let (Some(first), Some(last)) = (args.first(), args.last()) else {
        return;
    };
    let span = first.span.start.min(last.span.end)..last.span.end;
    let mut wrappers = call.wrappers.to_vec();
    wrappers.push(call.name.to_owned());
    if wrappers.len() > 50 {
        return out.anything("it is wrapped too often");
    }
    let set = std::mem::take(&mut out.assignments);
    if !judge.run(args, span, set, wrappers, Outcome::default()) {
        out.fault(format!("what {} runs is not known to only read", call.name));
    }
}

/// `env [OPTIONS] [NAME=VALUE]... [COMMAND]`
pub(super) fn env(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("env ...") else { return };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    for (_, what, value) in &parsed.options {
        match what {
            table::Use::Bad => out.anything("an option of env may do anything"),
            table::Use::Reads => {
                out.fault(format!(
                    "env runs in {}",
                    value.as_ref().map_or("", |value| &value.text)
                ));
            }
            _ => {}
        }
    }
    let mut rest = &call.args[parsed.count..];
    if rest.first().and_then(Arg::known) == Some("-") {
        rest = &rest[1..];
    }
    while let Some(arg) = rest.first().filter(|arg| arg.value.start().contains('=')) {
        let start = arg.value.start().to_owned();
        let name = start.split('=').next().unwrap_or_default();
        let value = arg.known().and_then(|text| text.split_once('=')).map(|(_, value)| value);
        if !is_name(name) || !super::is_harmless(name, value) || arg.is_split {
            out.fault(format!("{name} is set for it"));
        }
        out.assignments.push((name.to_owned(), value.map(str::to_owned)));
        rest = &rest[1..];
    }
    if let Some(arg) = rest.first().filter(|arg| arg.known().is_none()) {
        out.anything(format!("{} is known when it runs", arg.text));
    }
    inner(judge, call, rest, out);
}

/// `command [-pvV] NAME`, `builtin NAME`
pub(super) fn command(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let first = call.args.first();
    match first.and_then(Arg::known) {
        Some("-v" | "-V") if call.name == "command" => {}
        Some("-p") if call.name == "command" => inner(judge, call, &call.args[1..], out),
        Some("--") => inner(judge, call, &call.args[1..], out),
        Some(text) if text.starts_with('-') => {
            out.anything(format!("the option {text} is not known"));
        }
        _ => inner(judge, call, call.args, out),
    }
}

/// `xargs [OPTIONS] COMMAND`: words from elsewhere follow.
pub(super) fn xargs(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("xargs ...") else { return };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    let mut replaced = None;
    for (name, what, value) in &parsed.options {
        match (name.as_str(), value) {
            ("I", Some(value)) => replaced = Some(value.known().unwrap_or_default().to_owned()),
            ("i" | "replace", value) => {
                let text = value.as_ref().map_or(Some("{}"), |value| value.known());
                replaced = Some(text.unwrap_or_default().to_owned());
            }
            ("a" | "arg-file", Some(value)) => out.effects.extend(judge.reads(value)),
            _ if *what == table::Use::Bad => out.anything("an option of xargs may do anything"),
            _ => {}
        }
    }
    let mut args = call.args[parsed.count..].to_vec();
    let span = args.last().map_or(0..0, |arg| arg.span.end..arg.span.end);
    if args.is_empty() {
        return;
    }
    match replaced.as_deref() {
        Some("") => return out.anything("what xargs replaces is not known"),
        Some(mark) => args.iter_mut().for_each(|arg| replace(arg, mark, &Value::unknown())),
        None => {
            let more = Arg { is_pattern: false, ..Arg::unknown("...", span) };
            args.extend([more.clone(), more]);
        }
    }
    inner(judge, call, &args, out);
}

/// Puts what is not known in the place of a mark.
fn replace(arg: &mut Arg, mark: &str, value: &Value) {
    let Value::Texts(texts) = &arg.value else { return };
    let Some(at) = texts.iter().filter_map(|text| text.find(mark)).min() else { return };
    let start = texts.first().map_or("", |text| &text[..text.floor_char_boundary(at)]);
    arg.value = Value::text(start).then(value);
}

/// `find [PATHS] [EXPRESSION]`
pub(super) fn find(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let mut at = 0;
    let known = |at: usize| call.args.get(at).and_then(Arg::known);
    while let Some(text) = known(at) {
        match text {
            "-H" | "-L" | "-P" | "-O0" | "-O1" | "-O2" | "-O3" | "--" => at += 1,
            _ => break,
        }
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
    let starts = paths.iter().map(|path| path.value.clone()).reduce(|one, two| one.or(&two));
    let start = starts.unwrap_or_else(|| Value::text("."));
    let start = start.start();
    let is_open = start.is_empty() || start.ends_with('/') || paths.len() > 1;
    let found = Value::Files(if is_open { start.to_owned() } else { format!("{start}/") });
    while at < call.args.len() {
        at = primary(judge, call, at, &found, out);
    }
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
    match text {
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            if text != "-exec" {
                out.fault(format!("{text} runs in other folders, or asks"));
            }
            let rest = &call.args[at + 1..];
            let is_end = |arg: &Arg| matches!(arg.known(), Some(";" | "+"));
            let end = rest.iter().position(is_end);
            let Some(end) = end else {
                out.anything(format!("{text} does not end"));
                return call.args.len();
            };
            let mut args = rest[..end].to_vec();
            for arg in &mut args {
                replace(arg, "{}", found);
            }
            inner(judge, call, &args, out);
            at + end + 2
        }
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

/// `bash -c SCRIPT`
pub(super) fn shell(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let words: Vec<Option<&str>> = call.args.iter().map(Arg::known).collect();
    match words[..] {
        [Some("--version")] => (),
        [Some("-c"), Some(text), ..] => {
            script(judge, call, text, out);
        }
        [Some(flags), Some(text), ..] if is_command_flag(flags) => {
            out.fault(format!("{flags} reads the person's profile, or more"));
            script(judge, call, text, out);
        }
        _ => out.anything(format!("{} runs what is known when it runs", call.name)),
    }
}

/// Whether options of a shell in one word end in a script.
fn is_command_flag(flags: &str) -> bool {
    flags.starts_with('-') && !flags.starts_with("--") && flags.ends_with('c')
}

/// What other shells than bash read in another way.
const BASH_ONLY: [&str; 16] = [
    "$'", "$\"", "&>", ">&", "|&", "<<<", "<(", ">(", "[[", "((", "{", "+=", "function", "select",
    "coproc", "$[",
];

/// Looks at a script that is a word of another one.
fn script(judge: &mut Judge<'_, '_>, call: &Call<'_>, text: &str, out: &mut Outcome) {
    if judge.depth.level >= DEEPEST {
        return out.anything("scripts stand in scripts too often");
    }
    // A descriptor is copied everywhere alike.
    let plain = [">&1", ">&2"].iter().fold(text.to_owned(), |text, same| text.replace(same, ""));
    if call.name != "bash" && BASH_ONLY.iter().any(|own| plain.contains(own)) {
        out.fault(format!("{} may read the script in another way", call.name));
    }
    let parsed = crate::parse(text, judge.go_on);
    let script = match parsed {
        Ok(script) => script,
        Err(fault) => return out.anything(fault.to_string()),
    };
    let span = judge.depth.span.clone();
    let first = call.args.first().map_or(0, |arg| arg.span.start);
    let last = call.args.last().map_or(first, |arg| arg.span.end);
    let mut wrappers = call.wrappers.to_vec();
    wrappers.push(call.name.to_owned());
    let depth = Depth {
        level: judge.depth.level + 1,
        wrappers,
        span: Some(span.unwrap_or(first.min(last)..last)),
    };
    let mut state = State::new("/", std::collections::BTreeMap::new());
    state.lose();
    state.folders.clone_from(&judge.state.folders);
    let home = words::variable("HOME", judge.state);
    state.set("HOME", home.unwrap_or_else(Value::unknown));
    let around = Around { script: &script, source: text, setting: judge.around.setting };
    let from = judge.reading.parts.len();
    Walk::new(around, judge.reading, judge.go_on, depth).run(state);
    if !judge.reading.parts[from..].iter().all(|part| part.read_only) {
        out.fault(format!("what {} runs is not known to only read", call.name));
    }
}
