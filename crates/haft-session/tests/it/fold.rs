//! What each kind of event does to the conversation.

use haft_session::{Fold, Tree, branches, conversation, states};
use haft_types::{
    AgentPath, Body, CallId, Event, EventId, Hash, HostPath, Message, Outcome, Part, Status, Style,
    TurnId,
};
use serde_json::json;

use crate::events::{
    append, call, call_ended, call_started, ended, event, failed, read, session, store, text, user,
};

/// Events with ids, each after the one before.
fn log(bodies: impl IntoIterator<Item = Body>) -> Vec<Event> {
    let number = |(at, body)| {
        let id = at as u64 + 1;
        let parent = (at > 0).then_some(EventId(id - 1));
        Event { id: Some(EventId(id)), parent, ..event(body) }
    };
    bodies.into_iter().enumerate().map(number).collect()
}

/// One line for each message: `u:text`, `a:text[c1]`, `r:c1=text`.
fn shown(messages: &[Message]) -> Vec<String> {
    messages.iter().map(show).collect()
}

fn show(message: &Message) -> String {
    let text = |parts: &[Part]| -> String {
        let one = |part: &Part| match part {
            Part::Text { text } => text.clone(),
            Part::Thinking { text, signature } => {
                format!("<{text}|{}>", signature.as_deref().unwrap_or(""))
            }
            Part::Call(call) => format!("[{}]", call.id),
            _ => "?".to_owned(),
        };
        parts.iter().map(one).collect()
    };
    match message {
        Message::User { parts, .. } => format!("u:{}", text(parts)),
        Message::Assistant { parts, .. } => format!("a:{}", text(parts)),
        Message::Results { results } => {
            let one = |r: &haft_types::CallResult| {
                format!(
                    "{}={}",
                    r.id,
                    r.outcome.content.first().map_or("", |p| match p {
                        Part::Text { text } => text,
                        _ => "?",
                    })
                )
            };
            format!("r:{}", results.iter().map(one).collect::<Vec<_>>().join(","))
        }
    }
}

fn folded(bodies: impl IntoIterator<Item = Body>) -> Vec<String> {
    let events = log(bodies);
    shown(&conversation(&events, EventId(events.len() as u64), &AgentPath::default()))
}

const UNKNOWN: &str = "not known whether it ran: check before you repeat it";
const NEVER: &str = "never ran: the run ended before it";

#[test]
fn pieces_join_and_results_follow_in_call_order() {
    let thinking = |text: &str, signature: Option<&str>| Body::AnswerPart {
        index: 0,
        part: Part::Thinking { text: text.into(), signature: signature.map(Into::into) },
    };
    let found = folded([
        user("go"),
        thinking("a", None),
        thinking("b", Some("s1")),
        thinking("", Some("s2")),
        text(1, "x"),
        text(1, "y"),
        call(2, "c1"),
        call(3, "c2"),
        ended(),
        call_started("c1"),
        call_started("c2"),
        call_ended("c2", "two"),
        user("steer"),
        call_ended("c1", "one"),
        call_ended("c1", "again"),
        text(0, "done"),
        ended(),
    ]);
    let wanted = ["u:go", "a:<ab|s2>xy[c1][c2]", "r:c1=one,c2=two", "u:steer", "a:done"];
    assert_eq!(found, wanted);
}

#[test]
fn calls_without_an_end_say_what_is_known() {
    let bodies = [user("go"), call(0, "c1"), call(1, "c2"), ended(), call_started("c1")];
    let found = folded(bodies.clone());
    let results = format!("r:c1={UNKNOWN},c2={NEVER}");
    assert_eq!(found, ["u:go", "a:[c1][c2]", &results]);
    let events = log(bodies);
    let mut fold = Fold::new(AgentPath::default());
    for event in &events {
        fold.push(event);
    }
    assert_eq!((fold.final_count(), fold.messages().len()), (2, 3));
    let open = fold.unanswered();
    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|(_, outcome)| outcome.status == Status::Failed));
    // What a resuming run logs for them gives the very same messages.
    let before = fold.messages().to_vec();
    for (call, outcome) in open {
        fold.push(&event(Body::CallEnded { call, outcome, took: 0 }));
    }
    assert_eq!(fold.final_messages(), before);
}

#[test]
fn a_retried_answer_is_void_and_a_failed_one_keeps_its_words() {
    let found = folded([
        user("go"),
        text(0, "void"),
        call(1, "c1"),
        call_started("c1"),
        failed(true),
        call_ended("c1", "late"),
        text(0, "kept"),
        Body::AnswerPart { index: 1, part: Part::Thinking { text: "cut".into(), signature: None } },
        call(2, "c2"),
        call(3, "c3"),
        call_started("c3"),
        call_ended("c3", "ran"),
        failed(false),
        user("on"),
    ]);
    let results = "r:c2=never ran: the answer that asked for it broke off,c3=ran";
    assert_eq!(found, ["u:go", "a:kept[c2][c3]", results, "u:on"]);
}

#[test]
fn a_killed_answer_ends_with_its_turn() {
    let mut events = log([user("go"), text(0, "half"), user("again"), text(0, "new"), ended()]);
    for event in &mut events[2..] {
        event.turn = TurnId(2);
    }
    let found = conversation(&events, EventId(5), &AgentPath::default());
    assert_eq!(shown(&found), ["u:go", "a:half", "u:again", "a:new"]);
}

#[test]
fn nested_unknown_and_foreign_calls_change_nothing() {
    let mut events = log([
        user("go"),
        call(0, "c1"),
        call(1, "c9.1"),
        ended(),
        call_started("c1.1"),
        call_ended("c1.1", "nested"),
        call_ended("c7", "unknown"),
        call_ended("c1", "foreign"),
        call_ended("c1", "ours"),
    ]);
    events[7].agent = events[7].agent.child("explore");
    let found = conversation(&events, EventId(9), &AgentPath::default());
    assert_eq!(shown(&found), ["u:go", "a:[c1]", "r:c1=ours"]);
}

#[test]
fn masked_results_name_their_address() {
    let masked = Body::Masked { calls: vec![CallId::nth(1), CallId::nth(8)] };
    let events = log([user("go"), call(0, "c1"), ended(), call_ended("c1", "long"), masked]);
    let mut fold = Fold::new(AgentPath::default());
    for event in &events {
        assert_eq!(fold.revision(), 0);
        fold.push(event);
    }
    assert_eq!(fold.revision(), 1);
    let line = shown(fold.messages()).pop().unwrap();
    assert!(line.starts_with("r:c1=") && line.contains("out://c1"), "{line}");
    fold.push(&events[4]);
    assert_eq!(fold.revision(), 1, "masked already");
}

#[test]
fn words_that_stay_are_in_view_where_their_result_is_not() {
    let value = json!({"note": {"heading": "H", "words": "Say NESTED."}, "call": "c1"});
    let events = log([
        user("go"),
        call(0, "c1"),
        call(1, "c2"),
        ended(),
        Body::State { key: "k".into(), value },
        call_ended("c1", "long, and Say NESTED."),
        call_ended("c2", "long"),
        Body::Masked { calls: vec![CallId::nth(1), CallId::nth(2)] },
    ]);
    let mut fold = Fold::new(AgentPath::default());
    for event in &events {
        fold.push(event);
    }
    let Some(Message::Results { results }) = fold.messages().last() else { panic!("no results") };
    let told: Vec<String> = results.iter().map(|result| result.outcome.joined_text()).collect();
    assert!(told[0].ends_with("out://c1.\nSay NESTED.") && told[1].ends_with("c2."), "{told:?}");
}

#[test]
fn a_summary_never_parts_a_call_from_its_result() {
    let bodies = |keep_from| {
        [
            user("old"),
            call(0, "c1"),
            ended(),
            user("steer"),
            call_ended("c1", "one"),
            text(0, "mid"),
            ended(),
            user("new"),
            Body::Compacted {
                summary: "sum".into(),
                keep_from: EventId(keep_from),
                sizes: None,
                by: None,
                others: Vec::new(),
            },
            text(0, "on"),
            ended(),
        ]
    };
    let all = ["a:[c1]", "r:c1=one", "u:steer", "a:mid", "u:new", "a:on"];
    for (keep_from, cut) in [(2, 0), (3, 0), (5, 0), (6, 3), (7, 3), (8, 4), (9, 5)] {
        let found = folded(bodies(keep_from));
        assert_eq!(found[0], "u:sum");
        assert_eq!(found[1..], all[cut..], "keep from {keep_from}");
    }
}

#[test]
fn a_second_summary_replaces_the_first_and_undo_is_told() {
    let path = HostPath::new(b"/w/a", Style::Posix).unwrap();
    let undone = Body::Undone {
        calls: vec![CallId::nth(1)],
        files: vec![(path.clone(), None), (path, Some(Hash::of(b"")))],
        redo: false,
        receipts: Vec::new(),
    };
    let compacted = |text: &str, at| Body::Compacted {
        summary: text.into(),
        keep_from: EventId(at),
        sizes: None,
        by: None,
        others: Vec::new(),
    };
    let found = folded([
        user("one"),
        compacted("s1", 2),
        user("two"),
        compacted("s2", 4),
        call(0, "c2"),
        ended(),
        undone,
        call_ended("c2", "x"),
    ]);
    assert_eq!(found[..3], ["u:s2", "a:[c2]", "r:c2=x"]);
    assert!(found[3].contains("c1") && found[3].contains("/w/a is gone"), "{}", found[3]);
}

#[test]
fn branches_fold_apart_and_states_follow_them() {
    let (_home, store) = store();
    let mut log = store.create();
    let state = |value| Body::State { key: "cwd".into(), value };
    append(&mut log, [session("/w"), user("root"), state(json!("a"))]);
    append(&mut log, [user("left"), state(json!("b")), state(json!(null))]);
    log.set_leaf(EventId(3)).unwrap();
    assert!(log.set_leaf(EventId(99)).is_err());
    append(&mut log, [user("right"), state(json!({"x": 1}))]);
    let main = AgentPath::default();
    let events = read(&store, &log);
    assert_eq!(branches(&events), [EventId(6), EventId(8)]);
    assert_eq!(shown(&conversation(&events, EventId(6), &main)), ["u:root", "u:left"]);
    assert_eq!(shown(&conversation(&events, EventId(8), &main)), ["u:root", "u:right"]);
    assert!(states(&events, EventId(6), &main).is_empty());
    assert_eq!(states(&events, EventId(3), &main)["cwd"], json!("a"));
    assert_eq!(states(&events, EventId(8), &main)["cwd"], json!({"x": 1}));
    assert!(states(&events, EventId(8), &main.child("other")).is_empty());
    let branch = store.branch(log.session(), Some(EventId(6))).unwrap();
    assert_eq!(branch.tree().leaves(), events.iter().collect::<Tree>().leaves());
    let ids: Vec<u64> = branch.map(|e| e.unwrap().id.unwrap().0).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    let newest = store.branch(log.session(), None).unwrap();
    assert_eq!(newest.leaf(), EventId(8));
    assert_eq!(newest.count(), 5);
}

#[test]
fn only_what_the_model_reads_of_an_outcome_is_kept() {
    let outcome = Outcome::text("x").with_data(json!({"big": 1}));
    let end = Body::CallEnded { call: CallId::nth(1), outcome, took: 1 };
    let events = log([call(0, "c1"), ended(), end]);
    let found = conversation(&events, EventId(3), &AgentPath::default());
    let Message::Results { results } = &found[1] else { panic!("{found:?}") };
    assert_eq!(results[0].outcome, Outcome::text("x"));
}
