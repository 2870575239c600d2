//! Whatever the order of events, the conversation is one that a wire can send.

use std::collections::HashSet;

use haft_session::{Fold, conversation};
use haft_types::{
    AgentPath, Body, CallId, Event, EventId, Hash, HostPath, Message, Part, Style, TurnId,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use crate::events::{call, call_ended, call_started, ended, event, failed, store, text, user};

fn any_call() -> impl Strategy<Value = String> {
    prop_oneof![9 => (1_u8..9).prop_map(|n| format!("c{n}")), 1 => Just("c1.1".to_owned())]
}

fn any_body() -> impl Strategy<Value = Body> {
    let path = HostPath::new(b"/w/a", Style::Posix).unwrap();
    let undone = Body::Undone {
        calls: vec![CallId::nth(1)],
        files: vec![(path, Some(Hash::of(b"x")))],
        redo: true,
        receipts: Vec::new(),
    };
    prop_oneof![
        2 => "[a-z]{0,3}".prop_map(|words| user(&words)),
        4 => (0_u32..4, "[a-z]{0,3}").prop_map(|(index, words)| text(index, &words)),
        1 => (0_u32..4, any::<bool>()).prop_map(|(index, signed)| Body::AnswerPart {
            index,
            part: Part::Thinking { text: "t".into(), signature: signed.then(|| "s".into()) },
        }),
        6 => (0_u32..6, any_call()).prop_map(|(index, id)| call(index, &id)),
        4 => Just(ended()),
        1 => any::<bool>().prop_map(failed),
        3 => any_call().prop_map(|id| call_started(&id)),
        6 => (any_call(), "[a-z]{1,3}").prop_map(|(id, words)| call_ended(&id, &words)),
        1 => any_call().prop_map(|id| Body::Masked { calls: vec![CallId(id.into())] }),
        1 => (0_u64..60).prop_map(|at| Body::Compacted {
            summary: "sum".into(),
            keep_from: EventId(at),
            sizes: None,
            by: None,
            others: Vec::new(),
        }),
        1 => Just(undone),
    ]
}

/// Events in a row; a few belong to a subagent, and turns begin here and there.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((any_body(), 0_u8..20, 0_u8..20), 0..60).prop_map(|rows| {
        let mut turn = 1;
        let number = |(at, (body, agent, next)): (usize, (Body, u8, u8))| {
            turn += u64::from(next == 0);
            let id = at as u64 + 1;
            let parent = (at > 0).then(|| EventId(id - 1));
            let mut event = event(body);
            if agent == 0 {
                event.agent = AgentPath::default().child("explore");
            }
            Event { id: Some(EventId(id)), parent, turn: TurnId(turn), ..event }
        };
        rows.into_iter().enumerate().map(number).collect()
    })
}

fn calls_of(message: &Message) -> Vec<CallId> {
    let Message::Assistant { parts, .. } = message else { return Vec::new() };
    let id = |part: &Part| match part {
        Part::Call(call) => Some(call.id.clone()),
        _ => None,
    };
    parts.iter().filter_map(id).collect()
}

/// Checks that each call has one result, at its place, and that nothing is empty.
fn check(messages: &[Message]) {
    let mut seen = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let calls = calls_of(message);
        if let Message::Assistant { parts, .. } = message {
            assert!(!parts.is_empty());
        }
        if let Message::Results { results } = message {
            let asked = at.checked_sub(1).map(|before| calls_of(&messages[before]));
            let told: Vec<CallId> = results.iter().map(|result| result.id.clone()).collect();
            assert!(!told.is_empty());
            assert_eq!(asked, Some(told), "{messages:#?}");
            assert!(results.iter().all(|result| !result.outcome.content.is_empty()));
        }
        for call in calls {
            assert!(!call.0.contains('.'), "a nested call: {call}");
            assert!(seen.insert(call), "a call twice: {messages:#?}");
            let next = messages.get(at + 1);
            assert!(matches!(next, Some(Message::Results { .. })), "{messages:#?}");
        }
    }
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn what_is_drawn_has_answered_open_and_streaming_calls_and_cuts() {
    let mut seen = [0; 5];
    for events in drawn(any_events()) {
        let mut fold = Fold::new(AgentPath::default());
        for event in &events {
            fold.push(event);
        }
        let results = |message: &Message| matches!(message, Message::Results { .. });
        let happened = [
            fold.messages().iter().any(results),
            !fold.unanswered().is_empty(),
            fold.is_streaming(),
            fold.revision() > 0,
            fold.messages().iter().any(|message| calls_of(message).len() > 1),
        ];
        for (count, happened) in seen.iter_mut().zip(happened) {
            *count += usize::from(happened);
        }
    }
    let names = ["results", "open calls", "a stream", "another revision", "several calls"];
    assert!(seen.iter().all(|count| *count > 50), "{names:?}: {seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_call_has_one_result_in_every_prefix(events in any_events()) {
        let main = AgentPath::default();
        let mut fold = Fold::new(main.clone());
        let mut settled: Vec<Message> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            let revision = fold.revision();
            fold.push(event);
            if fold.revision() == revision {
                prop_assert!(fold.final_messages().starts_with(&settled));
            }
            settled = fold.final_messages().to_vec();
            // Asked at each step here, and never there: asking changes nothing.
            let live = fold.messages().to_vec();
            check(&live);
            prop_assert!(live.starts_with(&settled));
            let resumed = conversation(&events[..=at], EventId(at as u64 + 1), &main);
            prop_assert_eq!(live, resumed);
        }
    }

    /// What a log is resumed from is the same conversation, though old results are not read.
    #[test]
    fn a_log_is_resumed_as_its_events_say(events in any_events()) {
        let (_home, store) = store();
        let mut log = store.create();
        let mut fold = Fold::new(AgentPath::default());
        for event in &events {
            let mut event = event.clone();
            log.append(&mut event).unwrap();
            fold.push(&event);
        }
        if !events.is_empty() {
            let mut history = store.history(log.session(), |_, _| {}).unwrap();
            prop_assert!(history.faults.is_empty() && history.broken.is_none());
            prop_assert_eq!(history.count, events.len());
            prop_assert_eq!(history.fold.messages(), fold.messages());
            prop_assert_eq!(history.fold.person_messages(), fold.person_messages());
            prop_assert_eq!(history.fold.unanswered(), fold.unanswered());
        }
    }

    #[test]
    fn what_a_resume_logs_closes_everything(events in any_events()) {
        let mut fold = Fold::new(AgentPath::default());
        for event in &events {
            fold.push(event);
        }
        let last = |body| Event { turn: TurnId(0), ..event(body) };
        if fold.is_streaming() {
            fold.push(&last(failed(false)));
        }
        for (call, outcome) in fold.unanswered() {
            fold.push(&last(Body::CallEnded { call, outcome, took: 0 }));
        }
        prop_assert!(fold.unanswered().is_empty() && !fold.is_streaming());
        prop_assert_eq!(fold.final_count(), fold.messages().len());
        check(fold.messages());
    }
}
