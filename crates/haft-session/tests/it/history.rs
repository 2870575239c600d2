//! What a session is resumed from: no more of it is read than the conversation needs.

use std::fs;

use haft_session::{Fold, History, Log, Store};
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

/// A history, with all events that it gives and whether they are on the branch.
fn opened(store: &Store, log: &Log) -> (History, Vec<(Event, bool)>) {
    let mut events = Vec::new();
    let each = |event: &Event, on_branch| events.push((event.clone(), on_branch));
    let history = store.history(log.session(), each).unwrap();
    assert_eq!(history.count, events.len());
    (history, events)
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
    let (mut history, events) = opened(&store, &log);
    assert!(history.faults.is_empty(), "{:?}", history.faults);
    assert_eq!(history.fold.messages(), all.messages());
    let has_content = |(event, _): &&(Event, bool)| match &event.body {
        Body::CallEnded { outcome, .. } => !outcome.joined_text().is_empty(),
        Body::AnswerPart { part: Part::Text { text }, .. } => !text.is_empty(),
        _ => false,
    };
    let with_content = events.iter().filter(has_content).count();
    assert_eq!((with_content, events.len()), (7, 38), "old contents are not read");
    assert!(events.iter().all(|(_, on_branch)| *on_branch));
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
    let (history, events) = opened(&store, &log);
    let text = serde_json::to_string(history.fold.final_messages()).unwrap();
    assert!(
        text.contains("result 0") && text.contains("anew") && !text.contains("so far"),
        "{text}"
    );
    assert_eq!((events.len(), events.iter().filter(|(_, on)| *on).count()), (15, 8));
}

#[test]
fn a_changed_line_and_a_broken_one_are_told() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one"), user("two"), user("three")]);
    let path = log.path().to_owned();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("\"two\"", "\"2\"")).unwrap();
    let (history, _) = opened(&store, &log);
    assert_eq!(history.broken.map(|broken| broken.line), Some(4));
    assert!(history.faults.is_empty());
    let lines: Vec<&str> = whole.lines().collect();
    fs::write(&path, [lines[0], "{\"v\":2,\"id\":", lines[2], lines[3], ""].join("\n")).unwrap();
    let (history, events) = opened(&store, &log);
    assert_eq!(history.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2]);
    assert_eq!(events.len(), 3, "one bad line hides no other");
}

#[test]
fn many_broken_lines_are_counted() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one")]);
    let whole = fs::read_to_string(log.path()).unwrap();
    fs::write(log.path(), format!("{}{whole}", "{\"v\":2}\n".repeat(70))).unwrap();
    let (history, events) = opened(&store, &log);
    assert_eq!((history.faults.len(), history.more_faults, events.len()), (50, 20, 2));
}

/// The ids of all calls are known, of old ones and of other branches, too.
#[test]
fn old_calls_are_named() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    let mut last = EventId(0);
    for number in 0..5 {
        last = append(&mut log, step(number))[0].id.unwrap();
    }
    append(&mut log, [compacted(last)]);
    log.set_leaf(EventId(1)).unwrap();
    append(&mut log, step(9));
    let (_, events) = opened(&store, &log);
    let named = |wanted: &str| {
        let is_it = |event: &Event| match &event.body {
            Body::AnswerPart { part: Part::Call(call), .. } => {
                &*call.id.0 == wanted && call.wire_id == wanted
            }
            Body::CallStarted { call, .. } | Body::CallEnded { call, .. } => &*call.0 == wanted,
            _ => false,
        };
        events.iter().filter(|(event, _)| is_it(event)).count()
    };
    for id in ["c0", "c3", "c4", "c9"] {
        assert_eq!(named(id), 3, "{id}");
    }
}

#[test]
fn a_log_is_read_from_its_end_along_its_branch() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one")]);
    append(&mut log, [user("elsewhere")]);
    log.set_leaf(EventId(2)).unwrap();
    let large = "x".repeat(300_000);
    append(&mut log, [user("two"), text(0, &large), user(&large), user("three")]);
    // The begin of a line that a crash cut off, and lines that are none.
    let whole = fs::read_to_string(log.path()).unwrap();
    let (first, rest) = whole.split_once('\n').unwrap();
    let none = "y".repeat(5 << 20);
    fs::write(log.path(), format!("{first}\n{none}\n{{}}\n{rest}{{\"v\":2,\"id\":9")).unwrap();
    let said: Vec<String> = store
        .newest(log.session(), &["user", "session"])
        .unwrap()
        .map(|event| match event.body {
            Body::User { parts, .. } => match &parts[..] {
                [Part::Text { text }] => text.chars().take(9).collect(),
                _ => String::new(),
            },
            _ => "begin".to_owned(),
        })
        .collect();
    assert_eq!(said, ["three", "xxxxxxxxx", "two", "one", "begin"]);
}
