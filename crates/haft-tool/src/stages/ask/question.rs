//! The question about a call: its text, what the call would do, and the possible answers.
//!
//! **Invariant:** a person sees the whole call. What exceeds the bounds of a preview is counted in
//! it.

use haft_policy::{Remember, Ruling};
use haft_types::{
    Access, Choice, Cut, CutBy, Detail, Effect, Question, QuestionKind, Reply, Shape,
};
use serde_json::{Map, Value, json};

use super::wording;
use crate::{Call, SaveRule};

/// Most bytes of the texts among arguments that are shown in place of a preview.
const GIVEN: usize = 1024 * 1024;

pub(super) fn question(call: &Call, ruling: &Ruling, saved: &[String], edits: bool) -> Question {
    let preview = call.preview.clone().or_else(|| given(call));
    let (text, command) = wording::question_text(call, ruling, call.preview.as_ref());
    let choice = |id: &str, key, label: String| Choice { id: id.to_owned(), key, label };
    let mut options = vec![choice("allow", 'y', "yes, this once".into())];
    if ruling.remember >= Remember::Session {
        options.push(choice("session", 's', "yes, this very call for the whole session".into()));
    }
    if edits {
        let label = "yes, and every edit of a file tool in the workspace for this session";
        options.push(choice("edits", 'e', label.into()));
    }
    if let (false, Some(saver)) = (saved.is_empty(), call.cx.service::<dyn SaveRule>()) {
        let rules = saved.join(" and ");
        let label = format!("yes, and always allow {rules} (kept in {})", saver.place());
        options.push(choice("always", 'a', label));
    }
    options.push(choice("deny", 'n', "no".into()));
    Question {
        id: call.cx.session().questions.next_id(),
        call: Some(call.cx.call.clone()),
        agent: call.cx.agent().clone(),
        kind: QuestionKind::Permission,
        text,
        command,
        preview,
        options,
        form: None,
        if_nobody: Reply::pick("deny"),
    }
}

/// The arguments of a change of files that nobody may look at before the question, but for the
/// one that the title names: what would be written is seen all the same.
fn given(call: &Call) -> Option<Detail> {
    let prepared = call.ready().ok()?;
    let changes = |effect: &Effect| effect.access > Access::Observe && effect.path().is_some();
    if !prepared.plan.effects.iter().any(changes) {
        return None;
    }
    let named = |name: &str| *name == *prepared.spec.primary;
    let given = call.input()?.as_object()?.iter().filter(|(name, _)| !named(name));
    let given: Map<String, Value> = given.map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut value = Value::Object(given);
    if value == json!({}) {
        return None;
    }
    let cut = bounded(&mut value, GIVEN);
    Some(Detail { shape: Shape::Json { value }, cut })
}

/// Cuts the texts of a value that are together longer than so many bytes, each to its share.
fn bounded(value: &mut Value, most: usize) -> Option<Cut> {
    let (mut texts, mut bytes) = (0_usize, 0_usize);
    each_text(value, &mut |text| {
        texts += 1;
        bytes = bytes.saturating_add(text.len());
    });
    if bytes <= most {
        return None;
    }
    let share = most / texts.max(1);
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
    let (mut to, mut total) = (0, 0);
    each_text(value, &mut |text| {
        let all = lines(text);
        total += all;
        if text.len() > share {
            text.truncate(text.floor_char_boundary(share));
            // The last of them is not whole.
            to += lines(text) - 1;
        } else {
            to += all;
        }
    });
    Some(Cut { from: 1, to, total: Some(total), by: CutBy::Lines, rest: None, end: None })
}

fn each_text(value: &mut Value, then: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => then(text),
        Value::Array(all) => all.iter_mut().for_each(|value| each_text(value, then)),
        Value::Object(map) => map.values_mut().for_each(|value| each_text(value, then)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_of_arguments_is_counted() {
        let long = "x\n".repeat(100);
        let mut value = json!({"files": [{"path": "a", "content": long}, {"content": "y"}]});
        assert_eq!(bounded(&mut value.clone(), 1000), None);
        let cut = bounded(&mut value, 60).unwrap();
        assert_eq!((cut.to, cut.total), (12, Some(103)));
        assert_eq!(value["files"][0]["content"], "x\n".repeat(10));
    }
}
