//! The wording of a question: what the call does, why a person is asked, and what it would touch.
//!
//! **Invariant:** each thing is said once, in a line of its own, and a link by both of its names.
//! No line but the title begins with text of the call. All reasons are there.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    time::Duration,
};

use haft_host::FileKind;
use haft_policy::{Ruling, Verdict};
use haft_types::{Access, Detail, Effect, HostPath, LineCounts, Shape, Target};
use serde_json::Value;

use crate::{Call, stages::rules};

/// The text of a question, and the command where the text does not hold it.
pub(super) fn question_text(
    call: &Call,
    ruling: &Ruling,
    preview: Option<&Detail>,
) -> (String, Option<String>) {
    let plan = call.plan();
    let effects = plan.map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let title = plan.map_or_else(|| call.tool().to_owned(), |plan| plan.title.clone());
    let is_fresh =
        |effect: &Effect| matches!(&effect.target, Target::Command { fresh_in: Some(_), .. });
    let script = effects.iter().any(is_fresh);
    let in_text = |index: usize| script && is_in_text(call, index, effects);
    let mut text = one_line(&title).into_owned();
    text.push('\n');
    // With several effects it must be said which of them is asked about.
    let single = (0..effects.len()).filter(|index| !in_text(*index)).count() == 1;
    let reason = one_line(if single { &ruling.brief } else { &ruling.reason });
    let mut chars = reason.chars();
    text.extend(chars.next().into_iter().flat_map(char::to_uppercase));
    text.push_str(chars.as_str());
    text.push('.');
    for other in others(call, ruling) {
        text.push_str("\n  also: ");
        text.push_str(&one_line(&other));
    }
    let start = start(call, effects);
    let is_start = |effect: &Effect| {
        effect.access == Access::Observe && start.is_some() && effect.path() == start.as_ref()
    };
    let told: Vec<(usize, &Effect)> = effects
        .iter()
        .enumerate()
        .filter(|(index, effect)| !is_start(effect) && !in_text(*index))
        .collect();
    let files = Files::of(call, effects, preview);
    let (mut lines, mut command) = (Vec::new(), None);
    for (index, effect) in &told {
        let says_all = says_all(call, *index, effect, &title);
        match &effect.target {
            Target::Command { text, .. } if command.is_none() => {
                command = Some((!says_all).then(|| text.clone()));
            }
            _ => lines.extend(files.line(*index, effect, says_all && told.len() == 1)),
        }
    }
    if let Some(start) = start.filter(|start| *start != call.cx.dispatcher.place.cwd) {
        let index = effects.iter().position(|effect| effect.path() == Some(&start));
        let real = index.map(|index| really(call, index, &start)).unwrap_or_default();
        lines.push(format!("in {start}{real}"));
    }
    let limit = call.input().and_then(|input| input.get("timeout_ms")).and_then(Value::as_u64);
    lines.extend(limit.map(|ms| format!("for at most {:?}", Duration::from_millis(ms))));
    for line in lines {
        text.push_str("\n  ");
        text.push_str(&one_line(&line));
    }
    (text, command.flatten())
}

/// A text whose ends of lines are seen, so that nothing in it looks like a line of haft's own.
fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if !text.contains(['\n', '\r']) {
        return text.into();
    }
    text.replace("\r\n", "\n").replace('\n', "\u{2424}").replace('\r', "\u{240d}").into()
}

/// What else of a script would be asked about, each once.
fn others(call: &Call, ruling: &Ruling) -> Vec<String> {
    let Ok(prepared) = call.ready() else { return Vec::new() };
    let judge = call.cx.permissions();
    let (_, parts) = rules::with_ask(call, prepared, &prepared.plan, &judge, |ask| {
        judge.policy.decide_parts(ask)
    });
    let mut told: HashSet<String> = HashSet::from([ruling.reason.clone()]);
    let asks = parts.into_iter().filter(|(_, one)| one.verdict == Verdict::Ask);
    asks.map(|(_, one)| one.reason).filter(|reason| told.insert(reason.clone())).collect()
}

/// Whether an effect of a script is one that its text names: inside the workspace, and what it
/// seems.
fn is_in_text(call: &Call, index: usize, effects: &[Effect]) -> bool {
    let Some(effect) = effects.get(index) else { return false };
    match (effect.path(), call.located.get(index)) {
        (Some(path), Some(Some(Ok(found)))) => {
            found.real == *path && call.cx.dispatcher.place.holds(path)
        }
        (None, _) => matches!(effect.target, Target::State { .. }),
        _ => false,
    }
}

/// Where the command of a call starts; none where it runs none.
fn start(call: &Call, effects: &[Effect]) -> Option<HostPath> {
    effects.iter().find(|effect| matches!(effect.target, Target::Command { .. }))?;
    let given = call.input().and_then(|input| input.get("cwd")).and_then(Value::as_str);
    match given.filter(|text| !text.is_empty()) {
        // As opposed to the folder that was carried, this one is relative to the workspace.
        Some(text) => call.cx.dispatcher.place.path(text).ok(),
        None => Some(call.place().cwd.clone()),
    }
}

/// The other name of a path that is really another.
fn really(call: &Call, index: usize, path: &HostPath) -> String {
    match call.located.get(index) {
        Some(Some(Ok(found))) if found.real != *path => format!(" (really {})", found.real),
        _ => String::new(),
    }
}

/// Reports whether a title already is one word and the whole target, which a line would repeat.
/// What cannot be undone, or is really something else, is said all the same.
fn says_all(call: &Call, index: usize, effect: &Effect, title: &str) -> bool {
    let Some((verb, rest)) = title.split_once(' ') else { return false };
    match &effect.target {
        Target::Command { text, .. } => verb == "Running" && rest == text,
        Target::Path { path, .. } => {
            let real =
                matches!(call.located.get(index), Some(Some(Ok(found))) if found.real != *path);
            effect.access != Access::Destroy && !real && rest == call.place().shown(path)
        }
        _ => false,
    }
}

/// What becomes of the files that a call touches, as far as that is known.
struct Files<'a> {
    call: &'a Call,
    /// Whether it runs a command, which may do more to a file than is known.
    runs: bool,
    /// The diffs by where their file is in the end.
    diffs: HashMap<&'a HostPath, &'a Shape>,
    /// The effects of which a file is moved, by where it is.
    moved: HashMap<&'a HostPath, usize>,
}

impl<'a> Files<'a> {
    fn of(call: &'a Call, effects: &[Effect], preview: Option<&'a Detail>) -> Self {
        let runs = |effect: &Effect| matches!(effect.target, Target::Command { .. });
        let details = match preview {
            Some(Detail { shape: Shape::Many { details }, .. }) => details.as_slice(),
            preview => preview.map(std::slice::from_ref).unwrap_or_default(),
        };
        let (mut diffs, mut sources) = (HashMap::new(), HashSet::new());
        for detail in details {
            if let Shape::Diff { path, from, .. } = &detail.shape {
                diffs.insert(path, &detail.shape);
                sources.extend(from);
            }
        }
        let located = call.located.iter().take(effects.len()).enumerate();
        let real = located.filter_map(|(index, located)| match located {
            Some(Ok(found)) => Some((&found.real, index)),
            _ => None,
        });
        let moved = real.filter(|(real, _)| sources.contains(real)).collect();
        Self { call, runs: effects.iter().any(runs), diffs, moved }
    }

    /// One effect as a person reads it; none where another line says it, or the title does.
    fn line(&self, index: usize, effect: &Effect, says_all: bool) -> Option<String> {
        let Target::Path { path, .. } = &effect.target else {
            return (!says_all).then(|| line(self.call, index, effect));
        };
        let located = match self.call.located.get(index) {
            Some(Some(Ok(found))) => Some(found),
            _ => None,
        };
        let real = located.map_or(path, |found| &found.real);
        let name = format!("{path}{}", really(self.call, index, path));
        let is_new = located.is_some_and(|found| found.kind == FileKind::Missing);
        if let Some(Shape::Diff { from, hunks, counts, before, after, .. }) = self.diffs.get(real) {
            let tally = if hunks.is_empty() && counts.is_none() {
                String::new()
            } else {
                let LineCounts { added, removed } = LineCounts::of(*counts, hunks);
                format!(" +{added} -{removed}")
            };
            return Some(match (from, before, after) {
                (Some(from), ..) => format!("move {} to {name}{tally}", self.source(from)),
                (_, _, None) => format!("delete {name}{tally}"),
                (_, None, _) if is_new => format!("create {name}{tally}"),
                _ => format!("change {name}{tally}"),
            });
        }
        if self.moved.contains_key(real) {
            return None;
        }
        match effect.access {
            Access::Modify if is_new && !self.runs => Some(format!("create {name}")),
            Access::Destroy if !self.runs => Some(format!("delete {name}")),
            _ => (!says_all).then(|| line(self.call, index, effect)),
        }
    }

    /// Where a moved file is, by both names.
    fn source(&self, from: &HostPath) -> String {
        let named = self.moved.get(from).and_then(|index| {
            let path = self.call.plan()?.effects.get(*index)?.path()?;
            Some(format!("{path}{}", really(self.call, *index, path)))
        });
        named.unwrap_or_else(|| from.to_string())
    }
}

/// One effect; a path that is really another is shown by both names.
fn line(call: &Call, index: usize, effect: &Effect) -> String {
    let verb = match (&effect.target, effect.access) {
        (Target::Command { .. }, _) => "run",
        (Target::Net { .. }, _) => "connect to",
        (Target::Secret { .. }, _) => "hand over",
        (_, Access::Observe) => "read",
        (_, Access::Modify) => "change",
        (_, Access::Destroy) => "change for good",
    };
    let what = match &effect.target {
        Target::Command { text, .. } => text.clone(),
        Target::Net { host } => host.clone(),
        Target::State { name } => format!("haft's {name}"),
        Target::Secret { name } => {
            format!("the value of the secret {name}, as the variable ${name}")
        }
        Target::Anything => "anything on this machine that no rule names or protects".to_owned(),
        Target::Path { path, .. } | Target::Tree { root: path } => {
            let real = really(call, index, path);
            let below =
                if matches!(effect.target, Target::Tree { .. }) { " and all below" } else { "" };
            format!("{path}{below}{real}")
        }
    };
    format!("{verb} {what}")
}
