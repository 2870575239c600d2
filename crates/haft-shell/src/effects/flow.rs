//! Goes through a script in the order in which it runs.
//!
//! **Invariant:** the state at a command holds on every way that leads to it: what a loop or a
//! function may change is not known in it and behind it.

use std::collections::BTreeMap;

use super::{
    Part, Reading, answers, arithmetic,
    judge::Judge,
    params::{self, Params},
    state::{State, Value},
    words::{self, Around, assigned},
};
use crate::{
    Script,
    quotes::is_name,
    syntax::{Command, Flow, Kind, Piece, Word},
};

/// How deep a script stands in others, and what around it is told of each of its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Depth {
    pub level: usize,
    /// The programs that run it.
    pub wrappers: Vec<String>,
    /// Where the outermost command stands.
    pub span: Option<std::ops::Range<usize>>,
    /// Whether a stream of it may be a file: see [`redirects_streams`].
    pub redirects_streams: bool,
    /// Whether how it ends decides nothing of how what is around it ends.
    pub is_masked: bool,
}

/// The most scripts within scripts.
pub(crate) const DEEPEST: usize = 5;

/// A walk through one script.
pub(crate) struct Walk<'a, 'r> {
    around: Around<'a>,
    reading: &'r mut Reading,
    go_on: &'r mut dyn FnMut() -> bool,
    depth: Depth,
    frames: Vec<Frame>,
    /// What each region changes.
    changes: Vec<Changes>,
    /// What any part of the script changes: a function may be called from anywhere.
    whole: Changes,
    /// What each command changes.
    found: Vec<Changes>,
    /// What functions are called with, where that was looked for.
    calls: BTreeMap<String, Params>,
    /// The same, as it is found out.
    seen: BTreeMap<String, Params>,
}

/// A region that the walk is in.
struct Frame {
    region: usize,
    /// What holds where the last command of it went well, and where it failed.
    done: State,
    failed: State,
}

/// What commands of a region may change.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Variables, and whether all that they are set to are numbers.
    names: BTreeMap<String, bool>,
    folder: bool,
    /// What the script was called with.
    params: bool,
    /// Names that are not known.
    all: bool,
}

impl Changes {
    fn add(&mut self, name: &str, is_number: bool) {
        *self.names.entry(name.to_owned()).or_insert(true) &= is_number;
    }

    fn extend(&mut self, other: &Self) {
        self.all |= other.all;
        self.folder |= other.folder;
        self.params |= other.params;
        for (name, is_number) in &other.names {
            self.add(name, *is_number);
        }
    }

    /// What an expression sets.
    fn arithmetic(&mut self, text: &str) {
        match arithmetic::names(text) {
            Some(names) => names.into_iter().for_each(|name| self.add(name, true)),
            None => self.all = true,
        }
    }
}

impl Frame {
    fn now(&self) -> State {
        self.done.or(&self.failed)
    }

    fn set(&mut self, state: State) {
        self.done = state.clone();
        self.failed = state;
    }
}

impl<'a, 'r> Walk<'a, 'r> {
    pub(crate) fn new(
        around: Around<'a>,
        reading: &'r mut Reading,
        go_on: &'r mut dyn FnMut() -> bool,
        depth: Depth,
    ) -> Self {
        let found: Vec<_> =
            around.script.commands.iter().map(|command| changed(&around, command)).collect();
        let (changes, whole) = changes(around.script, &found);
        let (frames, calls, seen) = Default::default();
        Self { around, reading, go_on, depth, frames, changes, whole, found, calls, seen }
    }

    /// Adds the parts of the script to the reading. Where it has functions it is gone through twice, so
    /// that it is known what they are called with.
    pub(crate) fn run(mut self, state: State) {
        if self.depth.level < 2 && params::are_called_by_name(self.around.script) {
            let mut unused = Reading::default();
            let first = Walk::new(self.around, &mut unused, &mut *self.go_on, self.depth.clone());
            self.calls = first.through(state.clone());
        }
        self.through(state);
    }

    /// Goes through it, and gives what functions are called with.
    fn through(mut self, state: State) -> BTreeMap<String, Params> {
        self.frames.push(Frame { region: 0, done: state.clone(), failed: state });
        for (at, command) in self.around.script.commands.iter().enumerate() {
            if !(self.go_on)() {
                let why = "looking through it takes too much work".to_owned();
                let effects = vec![super::Effect::Anything];
                self.reading.parts.push(Part { effects, why, ..Part::default() });
                return BTreeMap::new();
            }
            self.go_to(command.place.region);
            let Some(frame) = self.frames.last() else { return BTreeMap::new() };
            let state = frame.now();
            let found = self.found.get_mut(at).map(std::mem::take).unwrap_or_default();
            self.command(command, &found, state);
        }
        self.go_to(0);
        let script = self.around.script;
        for name in &script.functions {
            // A known name would stand for something else from here on.
            if super::judge::is_known(name) {
                let why = format!("the function {name} takes the place of a command");
                let effects = vec![super::Effect::ChangesShell];
                self.reading.parts.push(Part {
                    text: name.clone(),
                    effects,
                    why,
                    wrappers: self.depth.wrappers.clone(),
                    ..Part::default()
                });
            }
        }
        self.seen
    }

    /// Leaves and enters regions until this one is reached.
    fn go_to(&mut self, region: usize) {
        if self.frames.last().is_some_and(|frame| frame.region == region) {
            return;
        }
        let regions = &self.around.script.regions;
        let mut path = vec![region];
        let mut at = region;
        while at != 0 {
            at = regions.get(at).map_or(0, |region| region.parent);
            path.push(at);
        }
        path.reverse();
        let same = self.frames.iter().zip(&path).take_while(|(a, b)| a.region == **b).count();
        while self.frames.len() > same.max(1) {
            self.leave();
        }
        path[same.max(1)..].iter().for_each(|region| self.enter(*region));
    }

    fn enter(&mut self, region: usize) {
        let Some(parent) = self.frames.last() else { return };
        let flow = self.around.script.regions.get(region).map(|region| &region.flow);
        let state = match flow {
            Some(Flow::IfDone) => parent.done.clone(),
            Some(Flow::IfFailed) => parent.failed.clone(),
            Some(Flow::Repeats) => blurred(&parent.now(), &self.changes[region]),
            Some(Flow::Function(name)) => {
                let mut state = blurred(&parent.now(), &self.whole);
                let params = self.calls.get(name).filter(|_| !self.whole.params);
                state.params = params.cloned().map(Into::into);
                state
            }
            _ => parent.now(),
        };
        self.frames.push(Frame { region, done: state.clone(), failed: state });
    }

    fn leave(&mut self) {
        let (Some(child), Some(region)) = (self.frames.pop(), self.frames.len().checked_sub(1))
        else {
            return;
        };
        let flow = self.around.script.regions.get(child.region).map(|region| region.flow.clone());
        let all = match flow {
            Some(Flow::Repeats) => Some(blurred(&child.now(), &self.changes[child.region])),
            _ => None,
        };
        let parent = &mut self.frames[region];
        match flow {
            Some(Flow::IfDone) => {
                parent.failed = parent.failed.or(&child.failed);
                parent.done = child.done;
            }
            Some(Flow::IfFailed) => {
                parent.done = parent.done.or(&child.done);
                parent.failed = child.failed;
            }
            Some(Flow::Apart) => parent.set(parent.now()),
            Some(Flow::Function(name)) => {
                let mut now = parent.now();
                now.define(&name);
                parent.set(now);
            }
            _ => {
                let after = all.unwrap_or_else(|| child.now());
                parent.set(parent.now().or(&after));
            }
        }
    }

    /// One command.
    fn command(&mut self, command: &Command, found: &Changes, state: State) {
        let mut state = self.counted(command, state);
        // Expressions within it are worked out before words behind them.
        for name in expressions(command).filter_map(arithmetic::names).flatten() {
            state.set(name, after(&state, name, true));
        }
        let name = command.words.first().and_then(Word::known);
        let functions = &self.around.script.functions;
        let is_call = name.as_ref().is_some_and(|name| functions.iter().any(|own| own == name));
        if let Some(name) = name.filter(|_| is_call) {
            let args = command.words[1..].iter().flat_map(|word| self.around.args(word, &state));
            let given = Params::of(&args.collect::<Vec<_>>(), false);
            let given = self.seen.get(&*name).map_or_else(|| given.clone(), |old| old.or(&given));
            self.seen.insert(name.into_owned(), given);
        }
        let mut judge = Judge::new(self.around, self.reading, self.go_on, &self.depth, &state);
        judge.command(command);
        let mut after = if is_call { blurred(&state, &self.whole) } else { state };
        if found.all {
            after.lose();
        }
        for (name, is_number) in &found.names {
            after.set(name, self::after(&after, name, *is_number));
        }
        if found.params {
            after.params = None;
        }
        if let Some((name, value)) = self.told(command) {
            after.set(&name, value);
        }
        if command.words.is_empty() || command.kind == Kind::Loop {
            self.assign(command, &mut after);
        }
        for (name, value) in self.declared(command, &after) {
            after.set(&name, value);
        }
        let Some(frame) = self.frames.last_mut() else { return };
        let moved = if found.folder { moved(&self.around, command, &after) } else { None };
        frame.failed = after.clone();
        frame.done = after;
        if found.folder {
            if let Some(state) = moved {
                frame.done = state;
            } else {
                frame.done.folders = None;
                frame.failed.folders = None;
            }
        }
    }

    /// The state in which an arithmetic command works: `i=0` at its start makes a number of `i`,
    /// which it stays where the whole script gives it nothing else.
    fn counted(&self, command: &Command, mut state: State) -> State {
        if command.kind != Kind::Arithmetic {
            return state;
        }
        if self.whole.all {
            return state;
        }
        let text = command.words.first().and_then(Word::known).unwrap_or_default();
        let first = text.split([';', ',']).next().and_then(|one| one.split_once('='));
        if let Some((name, value)) = first
            && super::state::is_number(value.trim())
            && self.whole.names.get(name.trim()) == Some(&true)
        {
            state.set(name.trim(), Value::Number);
        }
        state
    }

    /// What a declaration without options sets, where nothing of the script can be read only.
    fn declared(&self, command: &Command, state: &State) -> Vec<(String, Value)> {
        let is_one = |command: &Command| {
            let first = command.words.first().and_then(Word::literal);
            first.is_some_and(|name| ["declare", "typeset", "local"].contains(&name.as_str()))
        };
        let is_fixed = |other: &Command| {
            let name = other.words.first().map(Word::start).unwrap_or_default();
            let is_open = other.words.first().is_some_and(|word| word.known().is_none());
            let flags = || other.words.iter().skip(1).any(|word| !word.start().contains('='));
            other.kind == Kind::Simple
                && (["readonly", "export", "builtin", "command", "eval", "."].contains(&&*name)
                    || name == "source"
                    || is_open
                    || is_one(other) && flags())
        };
        let all = &self.around.script.commands;
        if command.kind != Kind::Simple || !is_one(command) || all.iter().any(is_fixed) {
            return Vec::new();
        }
        let value = |word: &Word| {
            let arg = self.around.arg(word, state);
            let name = arg.value.start().split_once('=').map(|(name, _)| name.to_owned())?;
            let is_plain = matches!(arg.value, Value::Texts(_)) && !arg.is_odd;
            let is_kept =
                is_plain && is_name(&name) && !arg.is_pattern && !arg.text.contains(['~', '(']);
            is_kept.then(|| (name.clone(), arg.behind(&format!("{name}=")).value))
        };
        command.words.iter().skip(1).filter_map(value).collect()
    }

    /// What a loop reads into one variable of hashes that git tells.
    fn told(&self, command: &Command) -> Option<(String, Value)> {
        let all = &self.around.script.commands;
        let words = |command: &Command| -> Option<Vec<String>> {
            command.words.iter().map(Word::literal).collect()
        };
        let own = words(command)?;
        let name = match &own[..] {
            [read, name] if read == "read" => name,
            [read, flag, name] if read == "read" && flag == "-r" => name,
            _ => return None,
        };
        let before = all.get(command.place.looped_by?)?;
        let is_plain = command.redirects.is_empty()
            && before.assignments.is_empty()
            && before.redirects.iter().all(answers::keeps_output)
            && !command.place.in_function
            && self.around.script.functions.is_empty()
            && command.place.fed_by.is_none();
        let takes = |command: &Command| {
            command
                .words
                .first()
                .is_some_and(|first| first.known().is_none_or(|name| name == "exec"))
        };
        let told = words(before).filter(|_| is_plain && !all.iter().any(takes))?;
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let is_hash = told.first() == Some(&"git") && answers::tells_hash(&told[1..]);
        (is_hash && words::is_own(name)).then(|| (name.clone(), Value::Hash))
    }

    /// Sets what a command without words, or a loop, assigns.
    fn assign(&self, command: &Command, state: &mut State) {
        if command.kind == Kind::Loop {
            let Some((name, values)) = command.words.split_first() else { return };
            let Some(name) = name.literal() else { return };
            let mut args: Vec<_> =
                values.iter().flat_map(|word| self.around.args(word, state)).collect();
            // It goes through what the script was called with; so it does without values.
            let is_given = |word: &Word| matches!(&word.pieces[..], [Piece::Variable { name, quoted: true }] if name == "@");
            if values.iter().all(is_given)
                && let Some(all) = state.params.as_ref().and_then(|params| params.each())
            {
                let arg = |value: &Value| super::words::Arg::of(value.clone(), "$@", 0..0);
                args = all.iter().map(arg).collect();
            }
            let one = |arg: &super::words::Arg| match arg.value {
                // Each of several.
                Value::Hash => Value::Hash,
                Value::Count if arg.is_split => Value::Number,
                _ if arg.is_split => Value::unknown(),
                _ => arg.value.clone(),
            };
            if !values.is_empty() && values.iter().all(|word| self.around.counts(word, state)) {
                return state.set(&name, Value::Number);
            }
            let all = args.iter().map(one).reduce(|first, second| first.or(&second));
            // An answer that is none of them makes it empty.
            let all = all.filter(|_| !is_select(&self.around, command));
            state.set(&name, all.unwrap_or_else(Value::unknown));
            return;
        }
        for assignment in &command.assignments {
            let (value, _) = assigned(&self.around, &assignment.values, state);
            let value = match (assignment.is_array, assignment.appends) {
                (true, _) => Value::unknown(),
                (_, true) => match words::variable(&assignment.name, state) {
                    Some(old) => old.then(&value),
                    None => Value::unknown(),
                },
                _ => value,
            };
            state.set(&assignment.name, value);
        }
    }
}

/// The state behind a `cd` that went well; none where it is not known where it leads.
fn moved(around: &Around<'_>, command: &Command, state: &State) -> Option<State> {
    let args: Vec<_> = command.words.iter().flat_map(|word| around.args(word, state)).collect();
    let texts: Option<Vec<&str>> = args.iter().take(2).map(|arg| arg.known()).collect();
    let target = match (texts.as_deref(), args.len()) {
        (Some(["cd"]), 1) => words::variable("HOME", state)?.known()?.to_owned(),
        (Some(["cd" | "pushd", target]), 2) if !target.starts_with(['-', '+']) => {
            (*target).to_owned()
        }
        (Some(["cd" | "pushd", "--"]), 3) => args[2].known()?.to_owned(),
        _ => return None,
    };
    if target.is_empty() {
        return None;
    }
    let from = state.folders.as_ref();
    let folders = match from {
        _ if target.starts_with('/') => vec![super::state::folder("/", &target)],
        Some(from) => from.iter().map(|from| super::state::folder(from, &target)).collect(),
        None => return None,
    };
    // It may be found elsewhere.
    let is_set = |name: &str| command.assignments.iter().any(|one| one.name == name);
    if is_set("CDPATH") || state.value("CDPATH").is_some() {
        return None;
    }
    let mut state = state.clone();
    state.folders = Some(std::rc::Rc::new(folders));
    Some(state)
}

/// What each region of a script may change, with those within it, and what all of it may, also in
/// shells of its own.
fn changes(script: &Script, found: &[Changes]) -> (Vec<Changes>, Changes) {
    let regions = &script.regions;
    let mut all = vec![Changes::default(); regions.len().max(1)];
    let mut whole = Changes::default();
    for (command, found) in script.commands.iter().zip(found) {
        if !(found.all || found.folder || found.params) && found.names.is_empty() {
            continue;
        }
        whole.extend(found);
        let mut at = command.place.region;
        // What a shell of its own changes stays there.
        while let Some(region) = regions.get(at) {
            all[at].extend(found);
            if at == 0 || region.flow == Flow::Apart {
                break;
            }
            at = region.parent;
        }
    }
    (all, whole)
}

/// A state without what may be changed.
fn blurred(state: &State, changes: &Changes) -> State {
    let mut state = state.clone();
    if changes.all {
        state.lose();
    }
    for (name, is_number) in &changes.names {
        state.set(name, after(&state, name, *is_number));
    }
    if changes.folder {
        state.folders = None;
    }
    if changes.params {
        state.params = None;
    }
    state
}

/// The value of a variable that may have been set: a number stays one where it is set to numbers.
fn after(state: &State, name: &str, is_number: bool) -> Value {
    match state.value(name) {
        Some(value) if is_number && value.is_number() => Value::Number,
        _ => Value::unknown(),
    }
}

/// Builtins that set variables in ways that are not followed, or may do anything.
const SETS: [&str; 19] = [
    "eval",
    "source",
    ".",
    "let",
    "getopts",
    "mapfile",
    "readarray",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "builtin",
    "command",
    "trap",
    "exec",
    "enable",
    "time",
];

/// The expressions that are worked out in words of a command.
fn expressions(command: &Command) -> impl Iterator<Item = &str> {
    let assigned = command.assignments.iter().flat_map(|one| &one.values);
    let targets = command.redirects.iter().map(|redirect| &redirect.target);
    let pieces = command.words.iter().chain(assigned).chain(targets).flat_map(|word| &word.pieces);
    pieces.filter_map(|piece| match piece {
        crate::Piece::Arithmetic { text } => Some(text.as_str()),
        _ => None,
    })
}

/// Whether a loop is one that asks for each value.
fn is_select(around: &Around<'_>, command: &Command) -> bool {
    around.source.get(command.span.start..).is_none_or(|text| text.starts_with("select"))
}

/// What a command may change of its shell.
fn changed(around: &Around<'_>, command: &Command) -> Changes {
    let mut found = Changes::default();
    match command.kind {
        Kind::Loop => {
            let name = command.words.first().and_then(Word::literal);
            if let Some(name) = name {
                found.add(&name, false);
            }
            if is_select(around, command) {
                found.add("REPLY", false);
            }
        }
        Kind::Arithmetic => {
            found.arithmetic(&command.words.first().and_then(Word::literal).unwrap_or_default());
        }
        _ => {}
    }
    expressions(command).for_each(|text| found.arithmetic(text));
    for redirect in &command.redirects {
        if let Some(name) = redirect.descriptor.as_deref().and_then(|text| text.strip_prefix('{')) {
            found.add(name.trim_end_matches('}'), false);
        }
    }
    if command.words.is_empty() {
        let nothing = State::new("/", BTreeMap::new());
        for one in &command.assignments {
            let (value, _) = assigned(around, &one.values, &nothing);
            let is_number = value.is_number() && value != Value::Count;
            found.add(&one.name, is_number && !one.is_array && !one.appends);
        }
    } else if command.kind == Kind::Simple {
        builtin(command, &mut found);
    }
    found
}

/// What a word of a declaration may set: `NAME`, `NAME=...`, `NAME+=...`, `NAME[...]=...`, however it
/// is quoted.
fn declared(word: &Word, found: &mut Changes) {
    let (start, known) = (word.start(), word.known());
    let text = known.as_deref().unwrap_or(&start);
    let end = text.find(['=', '+', '[']);
    let name = &text[..end.unwrap_or(text.len())];
    match (end, &known) {
        // With `-n` it stands for another one.
        _ if text.starts_with('-') && known.is_some() => found.all |= text.contains('n'),
        (Some(_), _) | (None, Some(_)) if is_name(name) => found.add(name, false),
        _ => found.all = true,
    }
}

/// What a builtin may change of its shell.
fn builtin(command: &Command, found: &mut Changes) {
    let Some(name) = command.words.first().and_then(Word::known) else {
        found.all = true;
        return;
    };
    let texts = || -> Option<Vec<_>> { command.words.iter().skip(1).map(Word::known).collect() };
    match &*name {
        "cd" | "pushd" | "popd" => found.folder = true,
        "shift" => found.params = true,
        "set" => {
            let is_flag =
                |word: &String| word.starts_with(['-', '+']) && word != "--" && word != "-";
            let words: Option<Vec<String>> = command.words[1..].iter().map(Word::literal).collect();
            found.params = !words
                .is_some_and(|words| words.iter().all(|word| is_flag(word) || word == "pipefail"));
        }
        "command" => match texts().as_deref() {
            Some([name, ..]) if *name == "-v" || *name == "-V" => {}
            Some([name, ..]) if !name.starts_with('-') => {
                let moves = ["cd", "read", "pushd", "popd", "printf", "wait"].contains(&&**name);
                found.all = moves || SETS.contains(&&**name);
            }
            _ => found.all = true,
        },
        "declare" | "typeset" | "local" | "export" | "readonly" | "unset" => {
            command.words.iter().skip(1).for_each(|word| declared(word, found));
        }
        "wait" => found.all = command.words.len() > 1,
        "read" => match texts() {
            Some(words) => {
                for name in words {
                    found.add(&name, false);
                }
                found.add("REPLY", false);
            }
            None => found.all = true,
        },
        "printf" => match texts() {
            Some(words) if words.first().is_some_and(|word| word.starts_with("-v")) => {
                for name in words {
                    found.add(name.trim_start_matches("-v"), false);
                }
            }
            // Of a word that is known in part, `-v` may come of the rest.
            _ => {
                found.all = command.words.get(1).is_some_and(|word| match word.known() {
                    Some(text) => text.starts_with("-v"),
                    None => word.start().starts_with("-v") || "-v".starts_with(&*word.start()),
                });
            }
        },
        name if SETS.contains(&name) => found.all = true,
        _ => {}
    }
}
