//! Parses one line of the input of `haft why --batch`.
//!
//! **Invariant:** a key that may be meant for the decision and cannot be read is an error that
//! names it. Keys that resemble no known key are the author's own notes.

use haft_policy::{Rules, Scope, Verdict};
use haft_text::json;
use serde_json::{Map, Value};

/// What a line says.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub command: Option<String>,
    pub rules: Option<Rules>,
    pub mode: Option<String>,
    pub cwd: Option<String>,
    pub tool: Option<String>,
    pub input: Option<Value>,
}

const KEYS: [&str; 6] = ["command", "rules", "mode", "cwd", "tool", "input"];
const LISTS: [(&str, Verdict); 3] =
    [("allow", Verdict::Allow), ("ask", Verdict::Ask), ("deny", Verdict::Deny)];
const WANTED: &str = "write an object such as {\"command\": \"ls\"}";

impl Line {
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| format!("the line is not UTF-8 at byte {}", error.valid_up_to()))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(format!("the line is empty; {WANTED}"));
        }
        let mut fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(other) => return Err(format!("the line is {}; {WANTED}", short(&other))),
            Err(error) => {
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or_default();
                let at = error.column();
                return Err(format!("the line is no JSON at its byte {at}: {why}; {WANTED}"));
            }
        };
        once(text, &[])?;
        known(&fields)?;
        let rules = match fields.remove("rules") {
            None | Some(Value::Null) => None,
            Some(Value::Object(lists)) => {
                once(text, &[json::Key::Name("rules")])?;
                Some(rules(lists)?)
            }
            Some(other) => return Err(unfit("rules", &other, "an object of allow, ask and deny")),
        };
        let mut text = |name: &str| match fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(unfit(name, &other, "text in quotes")),
        };
        let (command, mode) = (text("command")?, text("mode")?);
        let (cwd, tool) = (text("cwd")?, text("tool")?);
        let input = fields.remove("input").filter(|input| !input.is_null());
        Ok(Self { command, rules, mode, cwd, tool, input })
    }
}

/// Refuses keys that may be meant for one that is known.
fn known(fields: &Map<String, Value>) -> Result<(), String> {
    let lists = LISTS.map(|(name, _)| name);
    let near: Vec<&str> = KEYS.into_iter().chain(lists).chain(["permissions"]).collect();
    let all = KEYS.map(str::to_owned);
    for key in fields.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        match haft_config::closest(key, &near) {
            Some(list) if lists.contains(&list) => {
                return Err(format!(
                    "{key} stands in rules, as {{\"rules\": {{\"{list}\": [..]}}}}"
                ));
            }
            Some("permissions") => {
                return Err(format!(
                    "{key}: the lists stand in rules, as {{\"rules\": {{\"deny\": [..]}}}}"
                ));
            }
            Some(_) => return Err(haft_config::unknown(key, all.iter())),
            None => {}
        }
    }
    Ok(())
}

fn rules(lists: Map<String, Value>) -> Result<Rules, String> {
    let mut rules = Rules::default();
    for (name, list) in lists {
        let Some((_, verdict)) = LISTS.iter().find(|(known, _)| *known == name) else {
            let all = LISTS.map(|(name, _)| name.to_owned());
            return Err(format!("rules: {}", haft_config::unknown(&name, all.iter())));
        };
        let key = format!("rules.{name}");
        let Value::Array(items) = &list else {
            return Err(unfit(&key, &list, "a list of rules, each text in quotes"));
        };
        for item in items {
            let Some(text) = item.as_str() else {
                return Err(unfit(&key, item, "rules, each text in quotes"));
            };
            rules.add(*verdict, Scope::Given, text);
        }
    }
    Ok(rules)
}

/// Refuses a key that stands twice in an object, of which parsers keep the last alone.
fn once(text: &str, path: &[json::Key<'_>]) -> Result<(), String> {
    let members = json::members(text, path).map_err(|error| error.to_string())?;
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(format!("{} stands a second time; write it once", pair[0])))
}

fn unfit(name: &str, value: &Value, wanted: &str) -> String {
    format!("{name} is {}, wanted: {wanted}", short(value))
}

/// The beginning of a value.
fn short(value: &Value) -> String {
    let text = value.to_string();
    text.char_indices()
        .nth(80)
        .map_or_else(|| text.clone(), |(end, _)| format!("{}...", &text[..end]))
}
