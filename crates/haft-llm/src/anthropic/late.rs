//! Tools that come late, and words of the system in mid-conversation, as the maker's servers take them.
//!
//! **Invariant:** what only these servers know goes to no other one.
//!
//! Source: the types of the `anthropic` package 2.14.0.

use haft_types::{ToolSpec, ToolUse};

use crate::{
    Encoded, LateTools, Request, Role,
    json::{push_field, push_string},
    shared::{self, push_text},
    wire::Pieces,
};

/// The end of a definition that the server keeps from the model.
pub(super) const DEFERRED: &str = ",\"defer_loading\":true";
/// What makes known a tool that the request has declared.
const TOOL_CHANGES: &[&str] = &["mid-conversation-tool-changes-2026-07-01"];
/// The same for a tool that it has not.
const INLINE_TOOLS: &[&str] =
    &["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"];

/// Encodes definitions that are kept from the model until they are named.
pub(super) fn deferred(tools: &[ToolSpec]) -> String {
    shared::tool_list(tools, ["{", "input_schema", &format!("{DEFERRED}}}")])
}

/// Encodes tools that are there from here on.
pub(super) fn additions(late: &LateTools<'_>) -> Encoded {
    let mut blocks = String::new();
    shared::push_list(&mut blocks, late.tools, |out, tool| {
        out.push_str("{\"type\":\"tool_addition\",\"tool\":{");
        if late.are_declared {
            out.push_str("\"type\":\"tool_reference\",");
            push_field(out, "name", &tool.name);
        } else {
            out.push_str("\"type\":\"tool_definition\",\"definition\":");
            let list = shared::tool_list(std::slice::from_ref(tool), ["{", "input_schema", "}"]);
            out.push_str(list.trim_start_matches('[').trim_end_matches(']'));
        }
        out.push_str("}}");
    });
    let features = if late.are_declared { TOOL_CHANGES } else { INLINE_TOOLS };
    system(&blocks, features)
}

/// Encodes words of the system.
pub(super) fn words(text: &str) -> Encoded {
    let mut blocks = String::new();
    push_text(&mut blocks, text);
    system(&blocks, &[])
}

/// A message of the system of these blocks.
fn system(blocks: &str, features: &'static [&'static str]) -> Encoded {
    let json = format!("{{\"role\":\"system\",\"content\":[{blocks}]}}");
    let mark = Some(json.len() - "}]}".len());
    Encoded::of(Pieces { json, mark, features, ..Pieces::new(Role::User) })
}

/// Encodes the result of a search that found declared tools.
pub(super) fn found(call: &ToolUse, tools: &[ToolSpec]) -> Encoded {
    let id = shared::wire_id(&call.id);
    let head = "{\"role\":\"user\",\"content\":[";
    let mut json = head.to_owned();
    json.push_str("{\"type\":\"tool_result\",");
    push_field(&mut json, "tool_use_id", &id);
    json.push_str(",\"content\":[");
    shared::push_list(&mut json, tools, |out, tool| {
        out.push_str("{\"type\":\"tool_reference\",\"tool_name\":");
        push_string(out, &tool.name);
        out.push('}');
    });
    json.push_str("]}");
    let results = vec![(id, head.len()..json.len())];
    json.push_str("]}");
    let mark = Some(json.len() - "}]}".len());
    Encoded::of(Pieces { json, mark, results, ..Pieces::new(Role::Results) })
}

/// What the server has to be told to take a request, each once.
pub(super) fn features(request: &Request) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for feature in request.messages.iter().flat_map(|message| message.pieces().features) {
        if !all.contains(feature) {
            all.push(feature);
        }
    }
    all
}
