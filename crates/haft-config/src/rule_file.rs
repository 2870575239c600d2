//! A rule file that the user names, with the tests of its rules. The rule lists are at its top
//! level, or in `permissions` as in settings.
//!
//! **Invariant:** no rule of the file is lost silently. The lists of both places are added up.
//! Whatever may be meant as a rule but cannot be read as one is a fatal problem with its line.
//! Other settings have no effect there.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    Layer, Loaded, claude,
    layers::{Merge, closest, schema, short, unknown},
    lines::{Lines, Starts},
};

/// What may stand at the top as well as in `permissions`.
const LISTS: [&str; 4] = ["allow", "ask", "deny", "tests"];

/// Reads the text of such a file, JSON where its name ends so and TOML elsewhere: its rules, its tests and
/// what is wrong with it.
pub fn rule_file(path: &Path, text: &str) -> Loaded {
    let mut merge = Merge::default();
    let shown = path.display().to_string();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let (value, lines) = if json {
        (of_json(text), Lines::of_json(text))
    } else {
        (of_toml(text), Lines::of_toml(text))
    };
    let place = |key: &str| match lines.line(key) {
        Some(line) => format!("{shown}:{line}"),
        None => shown.clone(),
    };
    let mut fields = match value {
        Ok(Value::Object(fields)) => fields,
        Ok(other) => {
            let message =
                format!("it holds {}, wanted: an object; correct the file", short(&other));
            merge.problem(shown.clone(), "", message, true);
            return merge.done();
        }
        Err((line, message)) => {
            let place = line.map_or_else(|| shown.clone(), |line| format!("{shown}:{line}"));
            merge.problem(place, "", format!("{message}; correct the file"), true);
            return merge.done();
        }
    };
    for (key, line) in &lines.twice {
        let message = "this key stands a second time; write it once".to_owned();
        merge.problem(format!("{shown}:{line}"), key, message, true);
    }
    let lists = LISTS.iter().filter_map(|name| Some(((*name).to_owned(), fields.remove(*name)?)));
    let lists: Map<String, Value> = lists.collect();
    let top = |key: &str| place(key.strip_prefix("permissions.").unwrap_or(key));
    merge.layer(Layer::Given, &of_permissions(Value::Object(lists)), &top);
    if let Some(mut permissions) = fields.remove("permissions") {
        if let Some(inner) = permissions.as_object_mut().filter(|_| json) {
            inner.retain(|key, _| !claude::is_other(key));
        }
        merge.layer(Layer::Given, &of_permissions(permissions), &place);
    }
    let schema = schema();
    let settings = schema.get("properties").and_then(Value::as_object);
    let known = LISTS.iter().map(|name| (*name).to_owned()).chain(["permissions".to_owned()]);
    let known: Vec<String> = known.collect();
    let near: Vec<&str> = known.iter().map(String::as_str).collect();
    for key in fields.keys() {
        let is_setting = settings.is_some_and(|all| all.contains_key(key));
        // Claude Code has keys of its own, which are no rules.
        if !is_setting && (!json || closest(key, &near).is_some() || claude::denies(key)) {
            merge.problem(place(key), key, unknown(key, known.iter()), true);
        }
    }
    for problem in &mut merge.loaded.problems {
        problem.fatal = true;
    }
    merge.done()
}

fn of_permissions(value: Value) -> Value {
    Value::Object(Map::from_iter([("permissions".to_owned(), value)]))
}

type Read = Result<Value, (Option<usize>, String)>;

fn of_json(text: &str) -> Read {
    serde_json::from_str(text).map_err(|error| (Some(error.line()), error.to_string()))
}

fn of_toml(text: &str) -> Read {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| Starts::of(text).line(span.start));
        (line, error.message().trim().to_owned())
    })
}
