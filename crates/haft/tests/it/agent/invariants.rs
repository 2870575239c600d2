//! What holds in every request of a session, whatever went wrong before it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::mock_provider::Wire;

/// Fails unless the calls of each answer in a request are followed by exactly their results.
pub fn hold_in_request(wire: Wire, body: &str, told: &str) {
    let request: Value = serde_json::from_str(body).unwrap();
    let key = if wire == Wire::Responses { "input" } else { "messages" };
    let items = request[key].as_array().unwrap_or_else(|| panic!("{told}: {body}"));
    let mut open: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    for item in items {
        let (calls, results) = (calls(wire, item), results(wire, item));
        for result in &results {
            let at = open.iter().position(|call| call == result);
            let at = at.unwrap_or_else(|| panic!("{told}: a result of no call, {result}: {body}"));
            open.remove(at);
        }
        // Calls of one answer stand side by side on this wire.
        let goes_on = wire == Wire::Responses && !calls.is_empty();
        if results.is_empty() && !goes_on {
            assert!(open.is_empty(), "{told}: {open:?} have no results: {body}");
        }
        for call in calls {
            assert!(known.insert(call.clone()), "{told}: {call} stands there twice: {body}");
            open.push(call);
        }
    }
    assert!(open.is_empty(), "{told}: {open:?} have no results: {body}");
}

/// The ids of the calls in one item of a request.
fn calls(wire: Wire, item: &Value) -> Vec<String> {
    match wire {
        Wire::Anthropic => ids(&item["content"], Some("tool_use"), "id"),
        Wire::OpenAi => ids(&item["tool_calls"], None, "id"),
        Wire::Responses => of_item(item, "function_call"),
    }
}

/// The ids of the calls whose results one item of a request has.
fn results(wire: Wire, item: &Value) -> Vec<String> {
    match wire {
        Wire::Anthropic => ids(&item["content"], Some("tool_result"), "tool_use_id"),
        Wire::OpenAi => item["tool_call_id"].as_str().map(str::to_owned).into_iter().collect(),
        Wire::Responses => of_item(item, "function_call_output"),
    }
}

fn ids(list: &Value, kind: Option<&str>, key: &str) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    let wanted = all.filter(|item| kind.is_none_or(|kind| item["type"] == kind));
    wanted.map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

fn of_item(item: &Value, kind: &str) -> Vec<String> {
    let id = || item["call_id"].as_str().unwrap().to_owned();
    if item["type"] == kind { vec![id()] } else { Vec::new() }
}

#[test]
fn a_request_with_an_unanswered_call_is_noticed() {
    let bad = [
        (
            Wire::Anthropic,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},
                {"role":"user","content":[{"type":"text","text":"x"}]}]}"#,
        ),
        (
            Wire::OpenAi,
            r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]},
                {"role":"tool","tool_call_id":"a"},{"role":"user","content":"x"}]}"#,
        ),
        (Wire::Responses, r#"{"input":[{"type":"function_call_output","call_id":"a"}]}"#),
        (
            Wire::Responses,
            r#"{"input":[{"type":"function_call","call_id":"a"},{"role":"user","content":"x"}]}"#,
        ),
    ];
    for (wire, body) in bad {
        let found = std::panic::catch_unwind(|| hold_in_request(wire, body, "planted"));
        assert!(found.is_err(), "{wire:?}: {body}");
    }
}
