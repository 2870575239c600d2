//! Accepts the field names of other products, and refuses two names with two values.
//!
//! **Invariant:** where one field got two values under different names, neither is chosen. The same
//! value under several names is one value.

use haft_types::ToolError;
use serde_json::{Map, Value};

use super::{
    NOTES, PATHS, RepairNotes, duplicates, from_url, join, mend, note, number, quoted, whole,
};
use crate::validate::shown;

/// Our name, and the names that other products have for the same thing.
const NAMES: &[(&str, &[&str])] = &[
    ("path", &["file_path", "filePath", "file", "filename", "notebook_path"]),
    ("old_text", &["old_string", "oldText", "old_str", "search"]),
    ("new_text", &["new_string", "newText", "new_str", "replace"]),
    ("replace_all", &["replaceAll", "all"]),
    ("move_to", &["moveTo", "new_path", "newPath", "rename_to", "renameTo"]),
    ("command", &["cmd", "script"]),
    ("timeout_ms", &["timeoutMs", "timeout"]),
    ("-i", &["ignoreCase", "ignore_case"]),
    ("literal", &["fixedString", "fixed_string"]),
    ("-C", &["context"]),
    ("head_limit", &["limit"]),
    ("limit", &["max_results", "maxResults"]),
    ("unsandboxed", &["dangerouslyDisableSandbox"]),
    ("options", &["choices"]),
    ("url", &["uri", "link"]),
    ("question", &["prompt"]),
    ("domains", &["allowed_domains", "allowedDomains"]),
    ("blocked", &["blocked_domains", "blockedDomains"]),
    ("job", &["job_id", "task_id", "bash_id", "shell_id"]),
    ("items", &["todos"]),
    ("text", &["content", "message"]),
    ("set", &["setting"]),
    ("status", &["state"]),
    ("task", &["taskId", "task_id", "id"]),
    ("add_blocks", &["addBlocks"]),
    ("add_blocked_by", &["addBlockedBy"]),
    ("blocked_by", &["blockedBy"]),
];

/// Fields of other products that say nothing more beside one of ours: ours, and theirs.
const SAID: &[(&str, &str)] = &[("status", "activeForm"), ("subject", "activeForm")];

/// What other products' names for a tool say by themselves: field and value.
const IMPLIED: &[(&str, &str, &str)] = &[
    ("TaskStop", "action", "stop"),
    ("KillShell", "action", "stop"),
    ("TaskOutput", "action", "output"),
    ("BashOutput", "action", "output"),
];

/// Adds what the name says under which a tool was called.
pub(crate) fn imply(name: &str, input: &mut Value, schema: &Value) {
    let Some(map) = input.as_object_mut() else { return };
    let implied = IMPLIED.iter().find(|(theirs, field, _)| {
        theirs.eq_ignore_ascii_case(name)
            && schema.pointer(&format!("/properties/{field}")).is_some()
            && !map.contains_key(*field)
    });
    let Some((_, field, value)) = implied else { return };
    let mut value = *value;
    if value == "output" {
        // A look that blocks is a wait; any other has no time to run out.
        if map.shift_remove("block") == Some(Value::Bool(true)) {
            value = "wait";
        } else {
            map.shift_remove("timeout");
        }
    }
    map.insert((*field).to_owned(), value.into());
}

/// The field that a list of edits is, and those of one edit in it.
const EDITS: &str = "edits";
const OF_AN_EDIT: &[&str] = &["old_text", "new_text", "replace_all"];

/// The field that a list of files is.
const FILES: &str = "files";

/// The field that a list of questions is, and the words of one.
const QUESTIONS: &str = "questions";
const QUESTION: &str = "question";
/// The kind of a question, and the one of several answers.
const KIND: &str = "kind";
const MULTI: &str = "multi";
/// How others say that several options may be chosen.
const SEVERAL: [&str; 2] = ["multiSelect", "multi_select"];

/// Brings the names of one object's fields to ours; an `open` object takes others beside them.
pub(super) fn take(
    map: &mut Map<String, Value>,
    ours: &Map<String, Value>,
    open: bool,
    at: &str,
    told: &mut RepairNotes,
) {
    for (field, theirs) in SAID {
        if ours.contains_key(*field) && !ours.contains_key(*theirs) {
            map.shift_remove(*theirs);
        }
    }
    gather_edits(map, ours, at, told);
    if !open {
        gather_file(map, ours);
        gather_question(map, ours);
        choose_kind(map, ours, at, told);
    }
    for (name, others) in NAMES {
        let Some(schema) = ours.get(*name) else { continue };
        let others = others.iter().filter(|other| !ours.contains_key(**other));
        let keys: Vec<&str> = std::iter::once(name).chain(others).copied().collect();
        let there = keys.iter().filter(|key| map.contains_key(**key)).count();
        let only_ours = there == usize::from(map.contains_key(*name));
        // Several in an open object may well be several things.
        if only_ours || open && there > 1 {
            continue;
        }
        if let Some(value) = pick(map, &keys, schema, at, told) {
            map.insert((*name).to_owned(), value);
        }
    }
}

/// Old and new text beside `path` are a list of one edit.
fn gather_edits(
    map: &mut Map<String, Value>,
    ours: &Map<String, Value>,
    at: &str,
    told: &mut RepairNotes,
) {
    let Some(schema) = ours.get(EDITS).filter(|_| !ours.contains_key("old_text")) else { return };
    let fields = schema.get("items").and_then(|one| one.get("properties"));
    let (mut edit, mut written) = (Map::new(), None);
    for (name, others) in NAMES.iter().filter(|(name, _)| OF_AN_EDIT.contains(name)) {
        let keys: Vec<&str> = std::iter::once(name).chain(*others).copied().collect();
        let first = keys.iter().copied().find(|key| map.get(*key).is_some_and(|v| !v.is_null()));
        let schema = fields.and_then(|fields| fields.get(*name)).unwrap_or(&Value::Null);
        if let Some(value) = pick(map, &keys, schema, at, told) {
            written = written.or_else(|| first.map(|key| (key, value.clone())));
            edit.insert((*name).to_owned(), value);
        }
    }
    let Some(written) = written else { return };
    let alone = edit.len() == 1 && edit.contains_key("replace_all");
    if alone && map.get(EDITS).is_some_and(|edits| !edits.is_null()) {
        // What it is anyway may stand anywhere.
        if edit.get("replace_all") != Some(&Value::Bool(false)) {
            told.beside = Some(join(at, written.0));
        }
        return;
    }
    let gathered = Value::Array(vec![Value::Object(edit)]);
    match map.get(EDITS).filter(|edits| !edits.is_null()) {
        None => drop(map.insert(EDITS.into(), gathered)),
        Some(edits)
            if fitted(EDITS, EDITS, edits, schema) == fitted(EDITS, EDITS, &gathered, schema) => {}
        Some(edits) => told.twice(join(at, EDITS), &[(EDITS, edits.clone()), written]),
    }
}

/// What only one of several files can have, beside `path`, makes a list of that one file.
fn gather_file(map: &mut Map<String, Value>, ours: &Map<String, Value>) {
    let files = ours.get(FILES).filter(|_| ours.contains_key(EDITS));
    let fields = files.and_then(|schema| schema.pointer("/items/properties"));
    let Some(fields) = fields.and_then(Value::as_object) else { return };
    let there = |map: &Map<String, Value>, key: &str| {
        map.get(key).is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    };
    let others = |name: &str| NAMES.iter().find(|(ours, _)| *ours == name).map(|(_, all)| *all);
    let keys = |name: &String| -> Vec<String> {
        let others = others(name).unwrap_or_default().iter().map(|other| (*other).to_owned());
        std::iter::once(name.clone()).chain(others).collect()
    };
    let mut theirs = fields.keys().filter(|name| !ours.contains_key(*name)).flat_map(keys);
    if there(map, FILES) || !theirs.any(|key| there(map, &key)) {
        return;
    }
    // Under whichever name: in the list they are brought to ours.
    let all = fields.keys().flat_map(keys);
    let moved: Map<String, Value> =
        all.filter_map(|key| map.shift_remove(&key).map(|value| (key, value))).collect();
    map.insert(FILES.into(), Value::Array(vec![Value::Object(moved)]));
}

/// What one of several questions has, beside none, makes a list of that one question.
fn gather_question(map: &mut Map<String, Value>, ours: &Map<String, Value>) {
    let fields = ours.get(QUESTIONS).and_then(|schema| schema.pointer("/items/properties"));
    let Some(fields) = fields.and_then(Value::as_object) else { return };
    if map.contains_key(QUESTIONS) || ours.contains_key(QUESTION) || !map.contains_key(QUESTION) {
        return;
    }
    let others = NAMES.iter().filter(|(name, _)| fields.contains_key(*name));
    let others = others.flat_map(|(_, others)| others.iter().copied()).chain(SEVERAL);
    let keys: Vec<&str> = fields.keys().map(String::as_str).chain(others).collect();
    let one: Map<String, Value> = keys
        .iter()
        .filter_map(|key| map.shift_remove(*key).map(|value| ((*key).to_owned(), value)))
        .collect();
    map.insert(QUESTIONS.into(), Value::Array(vec![Value::Object(one)]));
}

/// Whether several options may be chosen is said by the kind of the question.
fn choose_kind(
    map: &mut Map<String, Value>,
    ours: &Map<String, Value>,
    at: &str,
    told: &mut RepairNotes,
) {
    let kinds = ours.get(KIND).and_then(|schema| schema["enum"].as_array());
    if !kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == MULTI)) {
        return;
    }
    for key in SEVERAL.into_iter().filter(|key| !ours.contains_key(*key)) {
        let Some(several) = map.shift_remove(key) else { continue };
        let is_several = several == Value::Bool(true) || several == "true";
        match map.get(KIND).filter(|kind| !kind.is_null()) {
            Some(kind) if is_several && kind != MULTI => {
                let kind = kind.clone();
                told.twice(join(at, KIND), &[(KIND, kind), (key, several)]);
            }
            None if is_several => drop(map.insert(KIND.into(), MULTI.into())),
            _ => {}
        }
    }
}

/// Takes what is there under some of `keys`, of which the first is ours; tells where that is not
/// one value.
fn pick(
    map: &mut Map<String, Value>,
    keys: &[&'static str],
    schema: &Value,
    at: &str,
    told: &mut RepairNotes,
) -> Option<Value> {
    let name = keys[0];
    let mut found: Vec<(&'static str, Value)> = keys
        .iter()
        .filter_map(|key| map.shift_remove(*key).map(|value| (*key, value)))
        .filter(|(_, value)| !value.is_null())
        .collect();
    if let [(key, value), others @ ..] = &found[..]
        && !others.is_empty()
    {
        let first = fitted(name, key, value, schema);
        if others.iter().any(|(key, other)| fitted(name, key, other, schema) != first) {
            told.twice(join(at, name), &found);
        }
    }
    if found.is_empty() {
        return None;
    }
    let (key, value) = found.swap_remove(0);
    Some(if key == "timeout" { seconds(value, &mut told.notes) } else { value })
}

/// What a value will be, to be compared with others.
fn fitted(name: &str, key: &str, value: &Value, schema: &Value) -> Value {
    let mut unsaid = RepairNotes::default();
    let value = value.clone();
    let value = if key == "timeout" { seconds(value, &mut unsaid.notes) } else { value };
    let value = mend(value, schema, "", &mut unsaid, 0);
    if PATHS.contains(&name) { from_url(value, "", &mut unsaid.notes) } else { value }
}

impl RepairNotes {
    fn twice(&mut self, field: String, values: &[(&str, Value)]) {
        if self.twice.len() < NOTES {
            let values: Vec<String> =
                values.iter().map(|(key, value)| format!("{key} is {}", shown(value))).collect();
            self.twice.push((field, values.join(" and ")));
        }
    }

    /// The refusal, where a field was given several values.
    pub(super) fn refusal(&self, tool: &str) -> Option<ToolError> {
        if let Some(field) = &self.beside {
            let text = format!(
                "the arguments of {tool} have {field} beside edits, where it belongs to none of them"
            );
            return Some(ToolError::new(text).hint(
                "Nothing was run. Put it into each edit that it is for: {old_text, new_text, \
                 replace_all}.",
            ));
        }
        if let Some(name) = &self.duplicate {
            return Some(duplicates::refusal(name, tool));
        }
        let all = self.twice.iter().map(|(field, values)| format!("{field} twice: {values}"));
        let all: Vec<String> = all.collect();
        let fields: Vec<&str> = self.twice.iter().map(|(field, _)| &**field).collect();
        (!all.is_empty()).then(|| {
            let hint =
                format!("Nothing was run. Send each once, by this name: {}.", fields.join(", "));
            ToolError::new(format!("the arguments of {tool} name {}", all.join("; "))).hint(hint)
        })
    }
}

/// `timeout` alone is seconds below 1,000: nobody gives a command less than a second.
fn seconds(value: Value, notes: &mut Vec<String>) -> Value {
    let number = match &value {
        Value::String(text) => number(text).and_then(|number| number.as_f64()),
        other => other.as_f64(),
    };
    match number {
        Some(seconds) if seconds > 0.0 && seconds < 1000.0 => {
            note(notes, || {
                let value = quoted(&value.to_string());
                format!("timeout {value} was taken as seconds; timeout_ms is milliseconds")
            });
            whole_or(seconds * 1000.0, value)
        }
        _ => value,
    }
}

fn whole_or(number: f64, otherwise: Value) -> Value {
    serde_json::Number::from_f64(number).map_or(otherwise, whole)
}
