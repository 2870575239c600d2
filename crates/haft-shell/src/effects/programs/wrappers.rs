//! Programs that run a command in their words.
//!
//! **Invariant:** what is run is a part of its own, and the wrapper only reads where that does.

use super::Call;
use crate::{
    effects::{
        Effect, answers,
        flow::{DEEPEST, Depth, Walk},
        judge::{Judge, Outcome, redirects_streams},
        options,
        params::Params,
        state::{State, Value},
        words::{self, Arg, Around},
    },
    quotes::is_name,
    table,
};

/// The most programs that run one another: each is a part, and is judged with all that it runs.
const MOST: usize = 12;

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
    pass(judge, call, rest, out);
}

/// Looks at what a wrapper runs, which may be all that the wrapper does.
fn pass(judge: &mut Judge<'_, '_>, call: &Call<'_>, args: &[Arg], out: &mut Outcome) {
    let is_plain = out.faults.is_empty() && out.effects.len() == out.redirected;
    out.passes = inner(judge, call, args, out) && is_plain;
}

/// Looks at the command that a wrapper runs, and whether there is one.
pub(super) fn inner(
    judge: &mut Judge<'_, '_>,
    call: &Call<'_>,
    args: &[Arg],
    out: &mut Outcome,
) -> bool {
    let (Some(first), Some(last)) = (args.first(), args.last()) else {
        return false;
    };
    let span = first.span.start.min(last.span.end)..last.span.end;
    let mut wrappers = call.wrappers.to_vec();
    wrappers.push(call.name.to_owned());
    if wrappers.len() > MOST {
        out.anything("it is wrapped too often");
        return false;
    }
    if !(judge.go_on)() {
        out.anything("looking through it took too long");
        return false;
    }
    let set = std::mem::take(&mut out.assignments);
    if !judge.run(args, span, set, wrappers, Outcome::default()) {
        out.more(call.name);
    }
    true
}

/// Programs whose words together are a script, here or elsewhere.
pub(super) fn joined(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let first = call.args.first().and_then(Arg::known);
    let is_shell = matches!(call.name, "eval" | "trap");
    if call.name == "trap" && call.args.len() < 2 && matches!(first, Some("-p" | "-l") | None) {
        return;
    }
    if is_shell {
        out.effects.push(Effect::ChangesShell);
    }
    if call.name == "ssh" && call.args.len() == 1 && first == Some("-V") {
        return;
    }
    if call.name == "ssh" {
        let host = call.args.iter().find(|arg| !arg.value.start().starts_with('-'));
        out.effects.push(Effect::Network(host.and_then(Arg::known).map(str::to_owned)));
        return out.anything("it runs on another machine");
    }
    let entry = table::find("watch ...").filter(|_| !is_shell);
    let count = entry.map_or(0, |entry| options::parse(entry, call.args).count);
    let rest = call.args.get(count..).unwrap_or_default();
    let rest = if call.name == "trap" { rest.get(..1).unwrap_or_default() } else { rest };
    let words: Option<Vec<&str>> = rest.iter().map(Arg::known).collect();
    match words {
        Some(words) => script(judge, call, &words.join(" "), &[], out),
        None => out.effects.push(Effect::Anything),
    }
    out.fault(format!("{} runs its words as a script", call.name));
}

/// Wrappers that are never taken to only read, but looked through: the command begins behind
/// options and, for some, an operand.
pub(super) fn odd(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    const OPERANDS: [&str; 7] =
        ["flock", "taskset", "chrt", "chroot", "gosu", "su-exec", "setarch"];
    out.anything(format!("what {} changes for a command is not known", call.name));
    let is_option = |arg: &&Arg| arg.value.start().starts_with('-');
    let skipped = call.args.iter().take_while(is_option).count();
    let skipped = skipped + usize::from(OPERANDS.contains(&call.name));
    inner(judge, call, call.args.get(skipped..).unwrap_or_default(), out);
}

/// `env [OPTIONS] [NAME=VALUE]... [COMMAND]`
pub(super) fn env(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("env ...") else { return };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    let is_bare = |arg: &Arg| arg.known() == Some("-");
    let rest = &call.args[parsed.count..];
    let removes = ["i", "ignore-environment", "u", "unset"].iter().any(|name| parsed.has(name));
    if removes || rest.first().is_some_and(is_bare) {
        out.fault("env takes away variables that keep programs from doing more");
    }
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
    let mut rest = rest.get(usize::from(rest.first().is_some_and(is_bare))..).unwrap_or_default();
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
    pass(judge, call, rest, out);
}

/// `command [-pvV] NAME`, `builtin NAME`
pub(super) fn command(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let first = call.args.first();
    match first.and_then(Arg::known) {
        Some("-v" | "-V") if call.name == "command" => {}
        Some("-p") if call.name == "command" => drop(inner(judge, call, &call.args[1..], out)),
        Some("--") => drop(inner(judge, call, &call.args[1..], out)),
        Some(text) if text.starts_with('-') => {
            out.anything(format!("the option {text} is not known"));
        }
        _ => drop(inner(judge, call, call.args, out)),
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
    let is_whole = parsed.has("0") || parsed.has("null");
    let is_fed = is_whole && !parsed.has("a") && !parsed.has("arg-file");
    let value = if is_fed { items(judge) } else { hashes(judge, &parsed) };
    match replaced.as_deref() {
        Some("") => return out.anything("what xargs replaces is not known"),
        Some(mark) => args.iter_mut().for_each(|arg| replace(arg, mark, &value)),
        None => {
            let more = Arg::of(value, "...", span);
            args.extend([more.clone(), more]);
        }
    }
    inner(judge, call, &args, out);
}

/// What the items of `xargs -0` are: the names that `find -print0` and `git ls-files -z` tell are
/// files below where they look.
fn items(judge: &Judge<'_, '_>) -> Value {
    let commands = &judge.around.script.commands;
    let Some(command) = judge.fed_by.and_then(|at| commands.get(at)) else {
        return Value::unknown();
    };
    let args: Vec<Arg> =
        command.words.iter().flat_map(|word| judge.around.args(word, judge.state)).collect();
    let known: Option<Vec<&str>> = args.iter().map(Arg::known).collect();
    let is_told = command.redirects.is_empty() && command.assignments.is_empty();
    let known = known.filter(|_| is_told && judge.state.functions.is_empty());
    match known.as_deref() {
        // Nothing but names is printed, each with its end.
        Some(["find", start, tests @ .., "-print0"])
            if !start.starts_with(['-', '(', '!', ','])
                && tests.first().is_none_or(|first| first.starts_with(['-', '(', '!']))
                && tests.iter().all(|test| is_test(test)) =>
        {
            Value::Files(format!("{}/", start.trim_end_matches('/')), None)
        }
        Some(["git", "ls-files", "-z"]) => Value::Files(String::new(), None),
        _ => Value::unknown(),
    }
}

/// The hashes that git tells `xargs`.
fn hashes(judge: &Judge<'_, '_>, parsed: &options::Parsed) -> Value {
    let commands = &judge.around.script.commands;
    let names_file = ["a", "arg-file", "d", "delimiter", "E"].iter().any(|name| parsed.has(name));
    let command = judge.fed_by.and_then(|at| commands.get(at)).filter(|_| !names_file);
    let is_plain = |command: &&crate::Command| {
        command.redirects.is_empty()
            && command.assignments.is_empty()
            && judge.state.functions.is_empty()
    };
    let words = command.filter(is_plain).and_then(|command| {
        command.words.iter().map(crate::Word::literal).collect::<Option<Vec<_>>>()
    });
    let words = words.unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&"git", rest)) if answers::tells_hash(rest) => Value::Hash,
        _ => Value::unknown(),
    }
}

/// Whether a word of `find` is no other folder and prints nothing.
fn is_test(word: &str) -> bool {
    let prints = ["-print", "-ls", "-exec", "-ok", "-fls"];
    !prints.iter().any(|start| word.starts_with(start)) && word != "-delete"
}

/// Puts what is not known in the place of a mark.
pub(super) fn replace(arg: &mut Arg, mark: &str, value: &Value) {
    let shapes = super::super::shapes::of_value(value);
    let put =
        |shape: String| shapes.iter().map(move |one| shape.replace(mark, one)).collect::<Vec<_>>();
    arg.shapes = Some(arg.shapes().into_iter().flat_map(put).collect());
    let Value::Texts(texts) = &arg.value else { return };
    if !texts.iter().any(|text| text.contains(mark)) {
        return;
    }
    let [text] = &texts[..] else {
        arg.value = Value::unknown();
        return;
    };
    let mut parts = text.split(mark).map(Value::text);
    let first = parts.next().unwrap_or_else(Value::unknown);
    arg.value = parts.fold(first, |start, part| start.then(value).then(&part));
}

/// `bash -c SCRIPT`
pub(super) fn shell(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let words: Vec<Option<&str>> = call.args.iter().map(Arg::known).collect();
    match words[..] {
        [Some("--version")] => (),
        // It only looks for faults.
        [Some("-n"), Some(path)] if !path.starts_with(['-', '+']) => {
            out.effects.extend(judge.reads(&call.args[1]));
        }
        [Some("-c"), Some(text), ..] => {
            script(judge, call, text, &call.args[2..], out);
        }
        [Some(flags), Some(text), ..] if is_command_flag(flags) => {
            out.fault(format!("{flags} reads the person's profile, or more"));
            script(judge, call, text, &call.args[2..], out);
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

/// Looks at a script that is a word of another one, and is given these words.
fn script(
    judge: &mut Judge<'_, '_>,
    call: &Call<'_>,
    text: &str,
    given: &[Arg],
    out: &mut Outcome,
) {
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
        redirects_streams: judge.depth.redirects_streams || redirects_streams(&script),
        is_masked: !judge.decides,
    };
    let mut state = State::new("/", std::collections::BTreeMap::new());
    state.lose();
    state.folders.clone_from(&judge.state.folders);
    let home = words::variable("HOME", judge.state);
    state.set("HOME", home.unwrap_or_else(Value::unknown));
    if let Some((zero, rest)) = given.split_first() {
        // As many names as there is room for.
        let grows = call.wrappers.iter().any(|name| ["find", "xargs"].contains(&name.as_str()));
        let mut params = Params::of(rest, grows);
        let is_one = !(zero.is_split || zero.is_pattern || zero.is_odd);
        params.zero = is_one.then(|| zero.value.clone());
        state.params = Some(params.into());
    }
    let around = Around { script: &script, source: text, setting: judge.around.setting };
    let from = judge.reading.parts.len();
    Walk::new(around, judge.reading, judge.go_on, depth).run(state);
    if !judge.reading.parts[from..].iter().all(|part| part.read_only) {
        out.more(call.name);
    }
}
