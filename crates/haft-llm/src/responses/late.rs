//! Tools that come late, and searches for them that the client runs, as newer models take them.
//!
//! A search is a call of another kind: `tool_search_call`, answered by `tool_search_output` with the tools
//! that were found. It is decoded as a call like all others, and its kind stands in what goes back with it.
//!
//! **Invariant:** a search is answered in its own form and no other call is, whatever result was kept.
//!
//! Source: the types of the `openai` package 2.54.0.

use std::collections::HashSet;

use haft_types::{ToolSpec, ToolUse};
use serde_json::Value;

use super::encode;
use crate::{
    Encoded, LateTools, Role,
    history::Item,
    json::push_field,
    shared::{self, NO_RESULT},
    wire::Pieces,
};

/// The kind of an item that searches for tools.
pub(super) const SEARCH: &str = "tool_search_call";
/// The name that such a call has here.
pub(super) const SEARCH_NAME: &str = "tool_search";

/// Whether an item is a search that waits for its client.
pub(super) fn is_search(item: &Value) -> bool {
    item["type"] == SEARCH && item["execution"] == "client"
}

/// Whether a call came as a search.
pub(super) fn was_search(call: &ToolUse) -> bool {
    let extra = call.extra.as_deref().and_then(|extra| serde_json::from_str::<Value>(extra).ok());
    extra.is_some_and(|extra| is_search(&extra))
}

/// Whether a model takes tools in mid-conversation: from gpt-5.4 on.
pub(super) fn takes_late_tools(model: &str) -> bool {
    encode::version(model).is_some_and(|version| version >= (5, 4))
}

/// Encodes definitions that are kept from the model until they are found.
pub(super) fn deferred(tools: &[ToolSpec]) -> String {
    let start = "{\"type\":\"function\",\"strict\":false,";
    shared::tool_list(tools, [start, "parameters", ",\"defer_loading\":true}"])
}

/// Encodes the tool by which the model searches.
pub(super) fn search(tool: &ToolSpec) -> String {
    let mut out = format!("[{{\"type\":\"{SEARCH_NAME}\",\"execution\":\"client\",");
    push_field(&mut out, "description", &tool.description);
    out.push_str(",\"parameters\":");
    out.push_str(&shared::schema_json(tool));
    out.push_str("}]");
    out
}

/// Encodes tools that are there from here on.
pub(super) fn additions(late: &LateTools<'_>) -> Encoded {
    let tools = encode::tools(late.tools);
    let json =
        format!("{{\"type\":\"additional_tools\",\"role\":\"developer\",\"tools\":{tools}}}");
    Encoded::new(Role::User, json)
}

/// Encodes what a search found.
pub(super) fn found(call: &ToolUse, tools: &[ToolSpec]) -> Encoded {
    let id = encode::call_id(&call.id, &call.wire_id);
    let mut pieces = Pieces::new(Role::Results);
    push_output(&mut pieces.json, &id, &encode::tools(tools));
    pieces.results.push((id.clone(), 0..pieces.json.len()));
    pieces.searches.push(id);
    Encoded::of(pieces)
}

fn push_output(out: &mut String, id: &str, tools: &str) {
    out.push_str("{\"type\":\"tool_search_output\",");
    push_field(out, "call_id", id);
    out.push_str(",\"execution\":\"client\",\"status\":\"completed\",\"tools\":");
    out.push_str(tools);
    out.push('}');
}

/// Whether all results of a piece of a request are in the form of their calls. `searches` are the searches
/// of the answer before.
pub(super) fn fits(item: &Item<'_>, searches: &HashSet<&str>) -> bool {
    match item {
        Item::Whole(message) | Item::Some(message, _) => {
            let Pieces { results, searches: own, .. } = message.pieces();
            results.iter().all(|(id, _)| searches.contains(&**id) == own.contains(id))
        }
        Item::Missing(ids) => !ids.iter().any(|id| searches.contains(id)),
        Item::Filler(_) => true,
    }
}

/// Appends results of which some are not in the form of their calls: these say that there is nothing.
pub(super) fn push_fitting(out: &mut String, item: &Item<'_>, searches: &HashSet<&str>) {
    let nothing = |out: &mut String, id: &str| {
        if searches.contains(id) {
            push_output(out, id, "[]");
        } else {
            encode::push_no_result(out, id, NO_RESULT);
        }
    };
    let message = match item {
        Item::Whole(message) | Item::Some(message, _) => message,
        Item::Missing(ids) => {
            return shared::push_list(out, ids, |out, id| nothing(out, id));
        }
        Item::Filler(_) => return,
    };
    let Pieces { results, searches: own, json, .. } = message.pieces();
    let is_kept = |at: usize| match item {
        Item::Some(_, kept) => kept.contains(&at),
        _ => true,
    };
    let kept = results.iter().enumerate().filter(|(at, _)| is_kept(*at));
    shared::push_list(out, kept, |out, (_, (id, range))| {
        if searches.contains(&**id) == own.contains(id) {
            out.push_str(&json[range.clone()]);
        } else {
            nothing(out, id);
        }
    });
}
