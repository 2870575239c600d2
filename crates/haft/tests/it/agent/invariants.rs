//! What holds in a log and in the requests of a session, whatever went wrong meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use haft_types::{Body, CallId, Event, From, Part, TurnId};
use serde_json::Value;

use crate::mock_provider::Wire;

/// What became of a call.
#[derive(Debug, Default)]
struct Fate {
    started: u32,
    ended: u32,
}

/// A log that is read from its begin.
#[derive(Default)]
struct Reading {
    fates: BTreeMap<CallId, Fate>,
    /// Calls of the answer that streams in; none where none does.
    streaming: Option<Vec<CallId>>,
    turn: TurnId,
    over: BTreeSet<TurnId>,
}

/// Fails unless each call has exactly one result before the next answer, no call began twice, and
/// turns are counted on and end at most once.
pub fn hold_in_log(events: &[Event], told: &str) {
    let mut reading = Reading::default();
    for event in events.iter().filter(|event| event.agent.is_main()) {
        // What is not part of a turn has the number 0.
        if event.turn != TurnId::default() {
            assert!(event.turn >= reading.turn, "{told}: a turn goes back: {event:?}");
            reading.turn = event.turn;
        }
        reading.take(event, told);
    }
    reading.is_complete(told);
}

impl Reading {
    fn take(&mut self, event: &Event, told: &str) {
        match &event.body {
            Body::AnswerPart { part, .. } => {
                if self.streaming.is_none() {
                    self.is_complete(told);
                }
                let answer = self.streaming.get_or_insert_default();
                if let Part::Call(call) = part {
                    answer.push(call.id.clone());
                    let before = self.fates.insert(call.id.clone(), Fate::default());
                    assert!(before.is_none(), "{told}: {} is there twice", call.id);
                }
            }
            Body::AnswerFailed { retried: true, .. } => {
                for call in self.streaming.take().unwrap_or_default() {
                    let fate = self.fates.remove(&call).unwrap();
                    assert_eq!(fate.started, 0, "{told}: {call} is void, and ran");
                }
            }
            Body::AnswerEnded { .. } | Body::AnswerFailed { .. } => self.streaming = None,
            Body::CallStarted { call, .. } => {
                let fate = self.fate(call, told);
                fate.started += 1;
                assert_eq!(fate.started, 1, "{told}: {call} began twice");
            }
            Body::CallEnded { call, .. } => {
                let fate = self.fate(call, told);
                fate.ended += 1;
                assert_eq!(fate.ended, 1, "{told}: {call} ended twice");
            }
            Body::TurnEnded { .. } => {
                assert!(self.over.insert(event.turn), "{told}: turn {:?} ends twice", event.turn);
                self.is_complete(told);
            }
            _ => {}
        }
    }

    fn fate(&mut self, call: &CallId, told: &str) -> &mut Fate {
        self.fates.get_mut(call).unwrap_or_else(|| panic!("{told}: {call} is of no answer"))
    }

    fn is_complete(&self, told: &str) {
        for (call, fate) in &self.fates {
            assert_eq!(fate.ended, 1, "{told}: {call} has no result");
        }
    }
}

/// How often the person said exactly this.
pub fn said(events: &[Event], text: &str) -> usize {
    let is_it = |event: &&Event| match &event.body {
        Body::User { from: From::Person | From::Steer, parts } => *parts == [Part::text(text)],
        _ => false,
    };
    events.iter().filter(is_it).count()
}

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
