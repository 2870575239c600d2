//! Shows calls to hooks as Claude Code does: its names of tools and arguments, and absolute paths.
//!
//! **Invariant:** nothing is lost: a field that only haft has is added under its own name, so that
//! the arguments can be converted back. A call that changes several files gives one view for each
//! file, so that a hook that reads `file_path` sees all of them.

use haft_policy::ALIASES;
use haft_tool::HookCall;
use haft_types::{Outcome, Part, Place};
use serde_json::{Map, Value, json};

/// Most bytes of text of a result.
const TEXT: usize = 1 << 20;

/// One action of a call.
pub struct View {
    /// Claude Code's name of the tool, or haft's if there is none.
    pub name: String,
    /// All names by which a hook may know the tool.
    pub names: Vec<String>,
    /// The arguments.
    pub input: Value,
}

/// The names that Claude Code has for one of our tools, the usual one first.
fn theirs(tool: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, ours)| *ours == tool).map(|(theirs, _)| *theirs)
}

/// All names by which a hook may know a tool.
pub fn names(tool: &str) -> Vec<String> {
    theirs(tool).map(str::to_owned).chain([tool.to_owned()]).collect()
}

/// The actions of a call, with the names of Claude Code.
pub fn views(seen: &HookCall) -> Vec<View> {
    let (tool, place) = (seen.tool(), &*seen.cx.place);
    let Some(Value::Object(input)) = &seen.input else {
        return vec![view(tool, None, seen.input.clone().unwrap_or_default())];
    };
    if let ("edit", Some(Value::Array(files))) = (tool, input.get("files")) {
        let one = |file: &Value| file.as_object().map(|file| of_file(file, place));
        let all: Vec<View> = files.iter().filter_map(one).flatten().collect();
        if !all.is_empty() {
            return all;
        }
    }
    let name = match (tool, input.get("action").and_then(Value::as_str)) {
        ("job", Some("stop")) => Some("TaskStop"),
        ("job", _) => Some("TaskOutput"),
        ("edit", _) if edits(input).is_some_and(|edits| edits.len() > 1) => Some("MultiEdit"),
        _ => None,
    };
    vec![view(tool, name, Value::Object(to_theirs(tool, input.clone(), place)))]
}

/// A call with its usual name and arguments, as a whole.
pub fn in_their_words(tool: &str, input: Value, place: &Place) -> (String, Value) {
    let input = match input {
        Value::Object(input) => Value::Object(to_theirs(tool, input, place)),
        other => other,
    };
    let View { name, input, .. } = view(tool, None, input);
    (name, input)
}

fn view(tool: &str, name: Option<&str>, input: Value) -> View {
    let names = names(tool);
    let name = name.or_else(|| theirs(tool).next()).map(str::to_owned);
    View { name: name.unwrap_or_else(|| tool.to_owned()), names, input }
}

/// One of several files: an edit or a write, and what it is moved to.
fn of_file(file: &Map<String, Value>, place: &Place) -> Vec<View> {
    let moved = file.get("move_to").and_then(Value::as_str).map(|to| {
        let path = absolute(to, place);
        view("write", None, json!({"file_path": path, "content": file.get("content")}))
    });
    let tool = if file.contains_key("content") { "write" } else { "edit" };
    let mut all = vec![view(tool, None, Value::Object(to_theirs(tool, file.clone(), place)))];
    // Whoever looks at edits looks at what is written in one, too.
    all[0].names.extend(theirs("edit").map(str::to_owned));
    all[0].names.push("edit".to_owned());
    all.extend(moved);
    all
}

fn edits(input: &Map<String, Value>) -> Option<&Vec<Value>> {
    input.get("edits").and_then(Value::as_array)
}

fn absolute(path: &str, place: &Place) -> String {
    place.path(path).map_or_else(|_| path.to_owned(), |path| path.text().into_owned())
}

/// Gives a field another name.
fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.shift_remove(from) {
        map.insert(to.to_owned(), value);
    }
}

/// What Claude Code calls the fields, by our tool: ours and theirs.
fn fields(tool: &str) -> &'static [(&'static str, &'static str)] {
    match tool {
        "read" | "write" | "edit" => &[("path", "file_path")],
        "notebook_edit" => &[("path", "notebook_path")],
        "bash" | "powershell" => &[("timeout_ms", "timeout")],
        "job" => &[("job", "task_id")],
        "todo" => &[("items", "todos")],
        "task_get" => &[("task", "taskId")],
        "task_update" => {
            &[("task", "taskId"), ("add_blocks", "addBlocks"), ("add_blocked_by", "addBlockedBy")]
        }
        _ => &[],
    }
}

const EDIT: [(&str, &str); 2] = [("old_text", "old_string"), ("new_text", "new_string")];

fn to_theirs(tool: &str, mut input: Map<String, Value>, place: &Place) -> Map<String, Value> {
    if let Some(Value::String(path)) = input.get_mut("path") {
        *path = absolute(path, place);
    }
    for (ours, theirs) in fields(tool) {
        rename(&mut input, ours, theirs);
    }
    if tool == "todo" {
        let items = input.get_mut("todos").and_then(Value::as_array_mut);
        items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|item| {
            rename(item, "text", "content");
            // It is required there: what is done, in other words.
            let content = item.get("content").cloned().unwrap_or_default();
            item.entry("activeForm").or_insert(content);
        });
    }
    if tool == "ask_user"
        && let Some(Value::Array(questions)) = input.get_mut("questions")
    {
        questions.iter_mut().filter_map(Value::as_object_mut).for_each(several);
    }
    if tool != "edit" {
        return input;
    }
    if let Some(Value::Array(edits)) = input.get_mut("edits") {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            for (ours, theirs) in EDIT {
                rename(edit, ours, theirs);
            }
        }
        if let [Value::Object(only)] = &edits[..] {
            let only = only.clone();
            input.shift_remove("edits");
            input.extend(only);
        }
    }
    input
}

/// Says as Claude Code does whether a question takes several options.
fn several(question: &mut Map<String, Value>) {
    let is_several = question.get("kind").is_some_and(|kind| kind == "multi");
    if is_several || question.get("kind").is_some_and(|kind| kind == "single") {
        question.shift_remove("kind");
    }
    question.insert("multiSelect".to_owned(), is_several.into());
}

/// Converts arguments that a hook returned to haft's names where the names are not plain. The
/// repair of arguments knows the other ones.
pub fn from_theirs(tool: &str, view: &View, input: Value) -> Value {
    let Value::Object(mut input) = input else { return input };
    if matches!(tool, "bash" | "powershell") && !input.contains_key("timeout_ms") {
        // Claude Code's is in milliseconds, always.
        rename(&mut input, "timeout", "timeout_ms");
    }
    if tool == "job" && view.name == "TaskStop" {
        input.entry("action").or_insert_with(|| json!("stop"));
    }
    Value::Object(input)
}

/// The result of a tool, as hooks get it.
pub fn response(tool: &str, outcome: &Outcome) -> Value {
    let mut text = outcome.joined_text();
    if text.len() > TEXT {
        let end = (0..=TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n[the rest is left out]");
    }
    let images = outcome.content.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    let mut all = json!({
        "content": [{"type": "text", "text": text}],
        "images": images,
        "is_error": outcome.status.is_error(),
        "status": outcome.status,
        "data": outcome.data,
    });
    let path = outcome.receipts.first().map(|receipt| receipt.path.text().into_owned());
    match tool {
        "bash" | "powershell" => {
            let of = |key: &str| outcome.data.as_ref().and_then(|data| data.get(key)).cloned();
            all["stdout"] = of("stdout").or_else(|| of("output")).unwrap_or_else(|| json!(text));
            all["stderr"] = of("stderr").unwrap_or_else(|| json!(""));
            all["interrupted"] = of("interrupted").unwrap_or_else(|| json!(false));
            all["isImage"] = json!(images > 0);
        }
        "edit" | "write" | "notebook_edit" => all["filePath"] = json!(path),
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_as_others_do_whether_it_takes_several_options() {
        let question = |kind: &str| json!({"question": "Q?", "kind": kind}).as_object().cloned();
        for (kind, kept, is_several) in
            [("multi", None, true), ("single", None, false), ("text", Some("text"), false)]
        {
            let mut question = question(kind).unwrap();
            several(&mut question);
            assert_eq!(question.get("kind").and_then(Value::as_str), kept, "{kind}");
            assert_eq!(question["multiSelect"], is_several, "{kind}");
        }
    }
}
