//! What is appended comes back, however large, deep or oddly named.

use std::{fs, path::PathBuf};

use haft_session::{BLOB_MAX, INLINE_MAX, Log, SessionError, conversation};
use haft_types::{
    AgentPath, Answerer, Body, CallId, Event, EventId, Hash, HostPath, Level, Outcome, Part, Place,
    Plan, Question, QuestionId, QuestionKind, Reply, Shape, Style, ToolUse,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::events::{append, call_ended, ended, read, session, store, text, user};

fn state(value: Value) -> Body {
    Body::State { key: "k".into(), value }
}

fn check(values: impl IntoIterator<Item = Value>) -> Vec<usize> {
    let (_home, store) = store();
    let mut log = store.create();
    let events = append(&mut log, values.into_iter().map(state));
    assert_eq!(read(&store, &log), events);
    let lines = fs::read_to_string(log.path()).unwrap();
    lines.lines().map(str::len).collect()
}

#[test]
fn the_limit_is_met_exactly() {
    let (_home, store) = store();
    let mut log = store.create();
    let blobs = log.dir().join("blobs");
    let count = || fs::read_dir(&blobs).map_or(0, Iterator::count);
    append(&mut log, [user(&"a".repeat(INLINE_MAX - 40))]);
    assert_eq!(count(), 0);
    append(&mut log, [call_ended("c1", &"b".repeat(INLINE_MAX + 1))]);
    assert_eq!(count(), 1);
    let text = "b".repeat(INLINE_MAX + 1);
    assert!(fs::read_to_string(only_blob(&log)).unwrap().contains(&text));
    append(&mut log, [user("x")]);
    assert_eq!((count(), read(&store, &log).len()), (1, 3));
}

/// The file of the one blob that a log has.
fn only_blob(log: &Log) -> PathBuf {
    let mut files = fs::read_dir(log.dir().join("blobs")).unwrap();
    let first = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    first
}

#[test]
fn a_field_moves_out_in_one_unless_it_is_huge() {
    // What repeats is stored once anyway.
    let outcome = |len: usize, letters: [&str; 4]| {
        let [model, data, first, second] = letters.map(|letter| letter.repeat(len));
        let mut outcome = Outcome::text(model).with_data(json!({"$blob": data}));
        outcome.detail = Some(Shape::Json { value: json!({"x": [first, second]}) }.into());
        Body::CallEnded { call: CallId::nth(1), outcome, took: 1 }
    };
    for (len, letters, at_once) in [(9_000, ["a", "b", "c", "d"], true), (80_000, ["b"; 4], false)]
    {
        let (_home, store) = store();
        let mut log = store.create();
        let events = append(&mut log, [outcome(len, letters)]);
        assert_eq!(read(&store, &log), events);
        let lines = fs::read_to_string(log.path()).unwrap();
        assert!(lines.len() < INLINE_MAX, "{}", lines.len());
        // Of the huge one, the text that stands in it four times is kept once, by itself.
        let kept = fs::read(only_blob(&log)).unwrap();
        assert_eq!(kept.len() > 4 * len, at_once, "{}", kept.len());
        assert_eq!(kept.len() == len, !at_once, "{}", kept.len());
    }
}

#[test]
fn large_and_deep_values_leave_short_lines() {
    let deep = |levels| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
    let values = [
        json!("\u{1}".repeat(8000)),
        json!(vec!["word"; 100_000]),
        json!({"$blob": 1, "$$blob": {"$blob": "x".repeat(10_000)}, "blob": 2, "$": 3}),
        json!([{"text": "x".repeat(9000)}, vec!["y".repeat(5000); 9]]),
        deep(60),
        deep(120),
        deep(150),
        json!("[".repeat(7000)),
    ];
    for len in check(values) {
        assert!(len < 2 * INLINE_MAX, "{len}");
    }
}

/// The largest value that stands in a line of its own, in bytes of JSON.
fn largest(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(largest).max(),
        Value::Object(fields) => fields.values().map(largest).max(),
        _ => None,
    };
    inner.unwrap_or(0).max(value.to_string().len())
}

fn place() -> Place {
    let path = HostPath::new(b"/w", Style::Posix).unwrap();
    let (cwd, home, temp) = (path.clone(), path.clone(), path.clone());
    Place { host: "local".into(), cwd, roots: vec![path], read_roots: Vec::new(), home, temp }
}

/// One of each body that may hold something large.
fn large_bodies() -> Vec<Body> {
    let big = "é\"\n".repeat(INLINE_MAX);
    let value = || json!({"a": [big.clone(), vec!["word"; 5_000]]});
    let call = |id: &str| {
        let call = ToolUse::new(CallId(id.into()), "write", value());
        Body::AnswerPart { index: 0, part: Part::Call(call) }
    };
    let detail = || Shape::Json { value: value() }.into();
    let mut outcome = Outcome::text(big.clone()).with_data(value());
    outcome.detail = Some(detail());
    let reply = || Reply { text: Some(big.clone()), input: Some(value()), ..Reply::default() };
    let question = Question {
        id: QuestionId::nth(1),
        call: Some(CallId::nth(1)),
        agent: AgentPath::default(),
        kind: QuestionKind::Form,
        text: big.clone(),
        command: Some("make".into()),
        preview: Some(detail()),
        options: Vec::new(),
        form: Some(value()),
        if_nobody: reply(),
    };
    vec![
        session("/w"),
        Body::Pinned { system: vec![big.clone()], tools: big.clone(), format: big.clone() },
        user(&big),
        text(1, &big),
        call("c1"),
        ended(),
        Body::CallStarted {
            call: CallId::nth(1),
            tool: "write".into(),
            input: Some(value()),
            plan: Some(Plan::new(&place(), big.clone())),
        },
        Body::CallEnded { call: CallId::nth(1), outcome, took: 1 },
        Body::Asked { question },
        Body::Answered { question: QuestionId::nth(1), reply: reply(), by: Answerer::Nobody },
        Body::Notice { level: Level::Info, text: big.clone() },
        Body::AnswerFailed { error: big.clone(), retried: false, wait_ms: None },
        state(value()),
        Body::Compacted {
            summary: big,
            keep_from: EventId(0),
            sizes: None,
            by: None,
            others: Vec::new(),
        },
    ]
}

#[test]
fn nothing_above_the_limit_stands_in_the_log_whatever_tells_of_it() {
    let (_home, store) = store();
    let mut log = store.create();
    let events = append(&mut log, large_bodies());
    for line in fs::read_to_string(log.path()).unwrap().lines() {
        let Value::Object(fields) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        let most = fields.values().map(largest).max().unwrap();
        assert!(most <= INLINE_MAX + 2, "{most} in {}", fields["type"]);
    }
    let found = read(&store, &log);
    assert_eq!(found, events);
    let told = |events: &[Event]| conversation(events, log.leaf(), &AgentPath::default());
    assert_eq!(told(&found), told(&events));
    let head = &events[..events.len() - 1];
    assert_eq!(conversation(head, EventId(13), &AgentPath::default()).len(), 3);
}

#[test]
fn a_lost_or_changed_blob_is_an_error_of_its_line() {
    let (_home, store) = store();
    let mut log = store.create();
    let text = "b".repeat(INLINE_MAX + 1);
    append(&mut log, [user("x"), call_ended("c1", &text), user("y")]);
    let path = only_blob(&log);
    let whole = fs::read(&path).unwrap();
    let lines = || store.events(log.session()).unwrap().collect::<Vec<_>>();
    fs::write(&path, "c".repeat(INLINE_MAX + 1)).unwrap();
    assert!(matches!(&lines()[1], Err(e) if e.line == 2 && e.to_string().contains("damaged")));
    fs::remove_file(&path).unwrap();
    assert!(matches!(&lines()[1], Err(e) if e.to_string().contains("missing")));
    assert!(lines()[2].is_ok());
    log.blobs().put(&whole, "text/plain").unwrap();
    assert!(lines()[1].is_ok());
}

#[test]
fn blobs_are_kept_once_checked_and_bounded() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    let blob = log.blobs().put(b"\x89PNG", "image/png").unwrap();
    assert_eq!(log.blobs().put(b"\x89PNG", "image/png").unwrap(), blob);
    assert_eq!(log.blobs().get(&blob).unwrap(), b"\x89PNG");
    fs::write(log.blobs().path(&blob.hash), b"\x89PNX").unwrap();
    assert!(matches!(log.blobs().get(&blob), Err(SessionError::Damaged { .. })));
    assert_eq!(log.blobs().put(b"\x89PNG", "image/png").unwrap(), blob, "written anew");
    assert!(log.blobs().get(&blob).is_ok());
    let claimed = haft_types::Blob { len: BLOB_MAX + 1, ..blob };
    assert!(matches!(log.blobs().get(&claimed), Err(SessionError::TooBig { .. })));
    fs::write(log.dir().join("blobs/.tmp-left"), "x").unwrap();
    log.sync().unwrap();
    let id = log.session().clone();
    drop(log);
    let log = store.resume(&id).unwrap();
    assert!(!log.dir().join("blobs/.tmp-left").exists());
}

#[test]
fn hostile_blob_markers_end_in_errors() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    let mut inner = json!("x");
    for _ in 0..8 {
        let bytes = serde_json::to_vec(&inner).unwrap();
        inner = json!({"$blob": log.blobs().put(&bytes, "application/json").unwrap()});
    }
    let mut lines = fs::read_to_string(log.path()).unwrap();
    let huge = json!({"hash": Hash::of(b""), "len": u64::MAX, "mime": "application/json"});
    for marker in [inner, json!({"$blob": 1}), json!({"$blob": huge})] {
        let event = json!({"v":1,"id":2,"at":1,"type":"state","key":"k","value":marker});
        lines.extend([event.to_string().as_str(), "\n"]);
    }
    fs::write(log.path(), lines).unwrap();
    let found: Vec<_> = store.events(log.session()).unwrap().skip(1).collect();
    assert_eq!(found.iter().filter(|line| line.is_err()).count(), 3, "{found:?}");
}

#[test]
fn out_paths_stay_in_their_folder() {
    let (_home, store) = store();
    let log = store.create();
    for id in ["c1", "c1.2", "../../x", "/etc/passwd", "", ".", ".."] {
        let path = log.out_path(&CallId(id.into()));
        assert_eq!(path.parent(), Some(log.out_dir().as_path()), "{id:?}");
    }
    assert!(log.out_path(&CallId::nth(1)).ends_with("out/c1"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        4 => "[a-z\"\\\\\n\u{1}é]{0,8}".prop_map(Value::from),
        1 => (8000_usize..9000).prop_map(|len| Value::from("é\n".repeat(len / 3))),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    text.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof!["[a-c]{1,3}", "\\${1,3}blob", "\\${1,2}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_value_comes_back(values in prop::collection::vec(any_value(), 1..6)) {
        check(values.clone());
        let outcome = Outcome::text("x").with_data(Value::Array(values));
        let call = CallId::nth(1);
        let (_home, store) = store();
        let mut log = store.create();
        let events = append(&mut log, [Body::CallEnded { call, outcome, took: 1 }]);
        prop_assert_eq!(read(&store, &log), events);
    }
}
