//! What a session is resumed from: no more of it is read than the conversation needs.

use std::fs;

use haft_session::{Fold, Log, Store};
use haft_types::{AgentPath, Body, Event, EventId, Part};

use crate::events::{
    append, call, call_ended, call_started, ended, read, session, store, text, user,
};

/// A question, an answer with one call, and its result of 20 KB.
fn step(number: usize) -> [Body; 6] {
    let id = format!("c{number}");
    let result = format!("result {number} ").repeat(2_000);
    [
        user(&format!("question {number}")),
        text(0, &format!("answer {number}")),
        call(1, &id),
        ended(),
        call_started(&id),
        call_ended(&id, &result),
    ]
}

fn compacted(keep_from: EventId) -> Body {
    Body::Compacted {
        summary: "so far".into(),
        keep_from,
        sizes: None,
        by: None,
        others: Vec::new(),
    }
}

fn folded(store: &Store, log: &Log) -> Fold {
    let mut fold = Fold::new(AgentPath::default());
    for event in read(store, log) {
        fold.push(&event);
    }
    fold
}

#[test]
fn results_behind_a_summary_are_not_read() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    for number in 0..4 {
        append(&mut log, step(number));
    }
    let keep_from = EventId(append(&mut log, step(4))[0].id.unwrap().0);
    append(&mut log, [compacted(keep_from)]);
    append(&mut log, step(5));
    let mut all = folded(&store, &log);
    // The results of the first two are gone; nobody needs them.
    let blobs = log.dir().join("blobs");
    for file in fs::read_dir(&blobs).unwrap() {
        let path = file.unwrap().path();
        let held = fs::read_to_string(&path).unwrap();
        if (0..2).any(|number| held.contains(&format!("result {number} "))) {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(store.events(log.session()).unwrap().any(|event| event.is_err()));
    let mut history = store.history(log.session()).unwrap();
    assert!(history.faults.is_empty(), "{:?}", history.faults);
    assert_eq!(history.fold.messages(), all.messages());
    let is_bare = |event: &Event| match &event.body {
        Body::CallEnded { outcome, .. } => outcome.joined_text().is_empty(),
        Body::AnswerPart { part: Part::Text { text }, .. } => text.is_empty(),
        _ => true,
    };
    assert!(history.events.iter().all(is_bare), "contents are in the conversation alone");
}

#[test]
fn the_branch_of_the_last_event_counts() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    let first = append(&mut log, step(0));
    let begin = append(&mut log, step(1))[0].id.unwrap();
    append(&mut log, [compacted(begin)]);
    // Back to before the summary, as undoing it does: the first result is in view again.
    log.set_leaf(first[5].id.unwrap()).unwrap();
    append(&mut log, [user("anew")]);
    let history = store.history(log.session()).unwrap();
    let text = serde_json::to_string(history.fold.final_messages()).unwrap();
    assert!(
        text.contains("result 0") && text.contains("anew") && !text.contains("so far"),
        "{text}"
    );
    assert_eq!(history.events.len(), 15);
}

#[test]
fn a_changed_line_and_a_broken_one_are_told() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one"), user("two"), user("three")]);
    let path = log.path().to_owned();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("\"two\"", "\"2\"")).unwrap();
    let history = store.history(log.session()).unwrap();
    assert_eq!(history.broken.map(|broken| broken.line), Some(4));
    assert!(history.faults.is_empty());
    let lines: Vec<&str> = whole.lines().collect();
    fs::write(&path, [lines[0], "{\"v\":2,\"id\":", lines[2], lines[3], ""].join("\n")).unwrap();
    let history = store.history(log.session()).unwrap();
    assert_eq!(history.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2]);
    assert_eq!(history.events.len(), 3, "one bad line hides no other");
}
