//! Tools that come behind the first request: found by a search, or brought by a server that connects.
//!
//! The tools of a request are its prefix, which a provider's cache knows by its bytes. So tools that come
//! late are told behind the conversation, as a message that is kept like all others. Where a wire has no
//! way of its own to make them known, they are described in words, and one tool that is always there calls
//! them by their names: `call_tool`.
//!
//! **Invariant:** whatever comes late, the tools and the system prompt of a request stay as they are. A call
//! by `call_tool` goes back to the model as it was written.

use std::borrow::Cow;

use haft_types::{CallResult, From, Message, Outcome, Part, ToolSpec, ToolUse};
use serde_json::{Value, json, value::RawValue};

use crate::{Encoded, NoBlobs, Provider, Target, Wire, shared};

/// The name of the tool that calls others.
pub const CALL_TOOL: &str = "call_tool";
/// Most bytes of the name of a tool that is called by it.
const LONGEST_NAME: usize = 128;

/// Tools that come late.
#[derive(Clone, Copy, Debug, Default)]
pub struct LateTools<'a> {
    /// Their definitions.
    pub tools: &'a [ToolSpec],
    /// Whether the first request declared all of them, by [`Wire::deferred_tools`].
    pub are_declared: bool,
}

/// What a call of `call_tool` calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCall {
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// Its arguments, an object.
    pub input: Value,
}

/// The tool that calls tools of which only words tell. It is listed only for targets whose wire does not
/// append tools: see [`Wire::appends_tools`].
pub fn call_tool() -> ToolSpec {
    ToolSpec {
        input_schema: json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name", "arguments"]
        })
        .into(),
        ..ToolSpec::new(
            CALL_TOOL,
            "Call a tool",
            "Calls a tool that is not in your list but was described to you in the conversation.",
        )
    }
}

/// The call that a call stands for; none where it is not one of `call_tool`.
///
/// # Errors
/// Says what is wrong with its arguments, and how they are to be.
pub fn named_call(call: &ToolUse) -> Option<Result<NamedCall, String>> {
    (call.name == CALL_TOOL).then(|| named(call.input.as_ref()))
}

/// The name of the tool that a call means, whichever way it is called.
pub fn real_name(call: &ToolUse) -> Cow<'_, str> {
    match named_call(call) {
        Some(Ok(named)) => named.name.into(),
        _ => Cow::Borrowed(&call.name),
    }
}

fn named(input: Option<&Value>) -> Result<NamedCall, String> {
    let form = "give {\"name\": \"the tool\", \"arguments\": {...}}";
    let input = input.ok_or_else(|| format!("the arguments are no JSON: {form}"))?;
    let name = input["name"].as_str().map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("the name of a tool is missing: {form}"))?;
    if name.len() > LONGEST_NAME {
        return Err(format!("the name has {} bytes, more than {LONGEST_NAME}: {form}", name.len()));
    }
    if name == CALL_TOOL {
        return Err(format!("{CALL_TOOL} does not call itself: name the tool that you want"));
    }
    let arguments = match &input["arguments"] {
        Value::Null => json!({}),
        // Some models write the object as a text.
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    if !arguments.is_object() {
        return Err(format!("the arguments of {name} are no object: {form}"));
    }
    Ok(NamedCall { name: name.to_owned(), input: arguments })
}

/// Lists of definitions as one. Those of [`Wire::deferred_tools`] stand first, so that a mark at the end
/// is that of a tool which is seen.
pub fn joined_tools(lists: &[&str]) -> String {
    let inner = lists.iter().filter_map(|list| list.strip_prefix('[')?.strip_suffix(']'));
    let inner: Vec<&str> = inner.filter(|list| !list.is_empty()).collect();
    format!("[{}]", inner.join(","))
}

/// Encodes the tools of a session, to be pinned: those that the model sees, and what makes the `late`
/// ones reachable.
pub fn pinned_tools(
    provider: &dyn Provider,
    target: &Target,
    listed: &[ToolSpec],
    late: &[ToolSpec],
) -> String {
    let Some(wire) = provider.wire().filter(|_| !late.is_empty()) else {
        return provider.encode_tools(listed);
    };
    let mut listed = listed.to_vec();
    let own_form = listed.iter().position(|tool| tool.finds).and_then(|at| {
        let form = wire.tool_search(&listed[at], target)?;
        listed.remove(at);
        Some(form)
    });
    let is_taken = listed.iter().chain(late).any(|tool| tool.name == CALL_TOOL);
    if !wire.appends_tools(target) && !is_taken {
        listed.push(call_tool());
    }
    // The result of a search in a form of its own has the definitions.
    let declared = if own_form.is_none() { wire.deferred_tools(late, target) } else { None };
    let lists = [declared, Some(wire.tools(&listed)), own_form];
    let lists: Vec<&str> = lists.iter().flatten().map(String::as_str).collect();
    joined_tools(&lists)
}

/// Pinned tools, by who sees them.
#[derive(Clone, Debug, Default)]
pub struct PinnedTools<'a> {
    /// The definitions that a model sees from the first request on.
    pub seen: Vec<&'a RawValue>,
    /// The names of those that the server keeps back until they are named.
    pub declared: Vec<String>,
}

impl<'a> PinnedTools<'a> {
    /// Reads what [`pinned_tools`] wrote.
    pub fn of(tools: &'a str) -> Self {
        #[derive(serde::Deserialize)]
        struct Mark {
            #[serde(default)]
            name: String,
            #[serde(default)]
            defer_loading: bool,
        }
        let mut out = Self::default();
        let all: Vec<&RawValue> = serde_json::from_str(tools).unwrap_or_default();
        for tool in all {
            match serde_json::from_str::<Mark>(tool.get()) {
                Ok(Mark { name, defer_loading: true }) => out.declared.push(name),
                _ => out.seen.push(tool),
            }
        }
        out
    }

    /// Bytes of what a model sees.
    pub fn seen_bytes(&self) -> usize {
        self.seen.iter().map(|tool| tool.get().len() + 1).sum()
    }
}

/// A message of words that make late tools known.
pub(crate) fn in_words(
    wire: &(impl Wire + ?Sized),
    late: &LateTools<'_>,
    target: &Target,
) -> Encoded {
    let head = format!(
        "More tools are there from here on. Call each by {CALL_TOOL}, with its name and its arguments."
    );
    let parts = vec![Part::text(listed(&head, late.tools))];
    wire.message(&Message::User { from: From::Haft, parts }, target, "", &NoBlobs)
}

/// Tools with what they take, behind a sentence.
fn listed(head: &str, tools: &[ToolSpec]) -> String {
    let mut text = head.to_owned();
    for tool in tools {
        text.push_str("\n\n## ");
        text.push_str(&tool.name);
        text.push('\n');
        text.push_str(tool.description.trim());
        text.push_str("\nArguments (JSON Schema): ");
        text.push_str(&shared::schema_json(tool));
    }
    text
}

/// A message of haft itself, said as the person's side says its own.
pub(crate) fn said_by_haft(wire: &(impl Wire + ?Sized), text: &str, target: &Target) -> Encoded {
    let parts = vec![Part::text(text)];
    wire.message(&Message::User { from: From::Haft, parts }, target, "", &NoBlobs)
}

/// The result of a search as a wire writes any other, and what has to stand behind all results.
pub(crate) fn found(
    wire: &(impl Wire + ?Sized),
    call: &ToolUse,
    late: &LateTools<'_>,
    target: &Target,
) -> (Encoded, Option<Encoded>) {
    let appends = wire.appends_tools(target) && !late.tools.is_empty();
    let text = if late.tools.is_empty() {
        "No tool was found.".to_owned()
    } else if appends {
        let names: Vec<&str> = late.tools.iter().map(|tool| &*tool.name).collect();
        format!("Found, and there to be called from here on: {}.", names.join(", "))
    } else {
        let how = "with its name and its arguments";
        listed(&format!("These tools were found. Call each by {CALL_TOOL}, {how}."), late.tools)
    };
    let (id, wire_id, name) = (call.id.clone(), call.wire_id.clone(), call.name.clone());
    let results = vec![CallResult { id, wire_id, name, outcome: Outcome::text(text) }];
    let result = wire.message(&Message::Results { results }, target, "", &NoBlobs);
    (result, appends.then(|| wire.late_tools(late, target)))
}

#[cfg(test)]
mod tests {
    use haft_types::CallId;

    use super::*;

    #[test]
    fn what_is_called_by_name_is_told_or_what_is_wrong() {
        let long = "x".repeat(LONGEST_NAME + 1);
        for (input, wanted) in [
            (json!({"name": "a", "arguments": {"x": 1}}), Ok(json!({"x": 1}))),
            (json!({"name": " a ", "arguments": {}}), Ok(json!({}))),
            (json!({"name": "a"}), Ok(json!({}))),
            (json!({"name": "a", "arguments": "{\"x\": 1}"}), Ok(json!({"x": 1}))),
            (json!({"name": "a", "arguments": "x"}), Err("the arguments of a are no object")),
            (json!({"name": "a", "arguments": [1]}), Err("the arguments of a are no object")),
            (json!({"arguments": {}}), Err("the name of a tool is missing")),
            (json!({"name": ""}), Err("the name of a tool is missing")),
            (json!([1]), Err("the name of a tool is missing")),
            (json!({"name": "call_tool", "arguments": {}}), Err("does not call itself")),
            (json!({ "name": long }), Err("more than 128")),
        ] {
            let call = ToolUse::new(CallId::nth(1), CALL_TOOL, input.clone());
            match (named_call(&call).unwrap(), wanted) {
                (Ok(named), Ok(arguments)) => {
                    assert_eq!((&*named.name, named.input), ("a", arguments));
                }
                (Err(text), Err(part)) => assert!(text.contains(part), "{input}: {text}"),
                (other, _) => panic!("{input}: {other:?}"),
            }
        }
        let cut =
            ToolUse::from_wire(CallId::nth(1), String::new(), CALL_TOOL.into(), "{\"na".into());
        assert!(named_call(&cut).unwrap().unwrap_err().contains("no JSON"));
        assert_eq!(named_call(&ToolUse::new(CallId::nth(1), "read", json!({"name": "a"}))), None);
    }

    #[test]
    fn lists_are_joined() {
        assert_eq!(joined_tools(&["[]", "[{\"a\":1}]", "[]", "[{},{}]"]), "[{\"a\":1},{},{}]");
        assert_eq!(joined_tools(&["[]", ""]), "[]");
    }
}
