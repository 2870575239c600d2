//! Whatever a model sends gets one well-formed answer soon, and nothing runs.

use std::time::{Duration, Instant};

use haft_testkit::world::World;
use haft_types::{Outcome, Status};
use serde_json::json;

use crate::support::{Probe, begun_and_ended, tools};

/// How long an answer may take: what users are promised of a build made for them; one for debugging
/// is many times slower.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 });

/// A tool whose arguments are of every kind, beside the built-in ones.
fn world() -> (World, crate::support::Runs) {
    let probe = Probe::new("probe").changes().spec(|spec| {
        spec.input_schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "n": {"type": "integer", "minimum": 1},
                "on": {"type": "boolean"},
                "list": {"type": "array", "items": {"type": "object", "properties": {
                    "from": {"type": "string"}, "to": {"type": "string"},
                }, "required": ["from", "to"]}},
            },
            "required": ["path"],
        })
        .into();
    });
    let (mut all, runs) = tools([probe]);
    all.extend(haft_tools::builtin());
    (World::memory(all, [("a", "one\ntwo\n")]).unwrap(), runs)
}

/// Sends raw arguments and checks all that must hold of any answer.
async fn refused(tool: &str, raw: &str, words: &[&str]) -> Outcome {
    let (world, runs) = world();
    let files = world.files().await.unwrap();
    let start = Instant::now();
    let outcome = world.call_raw(tool, raw).await;
    let elapsed = start.elapsed();
    let shown: String = raw.chars().take(80).collect();
    let text = outcome.joined_text();
    assert!(elapsed < SOON, "{tool} {shown} took {elapsed:?}");
    assert_eq!(outcome.status, Status::Failed, "{tool} {shown}: {text}");
    assert_eq!(runs.all(), 0, "{tool} {shown} ran");
    assert_eq!(world.files().await.unwrap(), files, "{tool} {shown} changed files");
    assert!(text.len() < 20_000, "{tool} {shown}: {} bytes of answer", text.len());
    for word in words {
        assert!(text.contains(word), "{tool} {shown}: the answer lacks {word:?}: {text}");
    }
    let (begun, ended) = begun_and_ended(&world);
    assert_eq!((begun.len(), ended.len()), (1, 1), "{tool} {shown}");
    assert_eq!(begun, ended);
    outcome
}

#[tokio::test]
async fn unknown_tools_get_the_closest_name() {
    refused("reed", "{}", &["\"reed\"", "Did you mean read?"]).await;
    refused("grepp", "{}", &["\"grepp\"", "Did you mean grep?"]).await;
    refused("launch_rocket", "{}", &["\"launch_rocket\"", "read", "write"]).await;
    refused("", "{}", &["\"\""]).await;
    refused("re\u{0}ad\n\u{1b}[31m", "{}", &["\\u{1b}"]).await;
    // Arguments of an unknown tool do not matter.
    refused("reed", "{\"path\": ", &["Did you mean read?"]).await;
}

#[tokio::test]
async fn wrong_types_and_missing_fields_are_all_named_with_what_was_got_and_wanted() {
    let raw = r#"{"n": "many", "on": 7, "list": [{"from": 1}]}"#;
    let words = [
        "path is missing",
        "n is \"many\", wanted: integer",
        "on is 7, wanted: boolean",
        "list.0.from is 1, wanted: string",
        "list.0.to is missing",
    ];
    refused("probe", raw, &words).await;
    refused("probe", r#"{"path": "a", "n": 0}"#, &["n is 0", "1"]).await;
    refused("probe", r#"{"path": {"deep": true}}"#, &["path is {\"deep\":true}", "string"]).await;
    refused("read", r#"{"path": ["a"]}"#, &["path is [\"a\"]", "string"]).await;
}

#[tokio::test]
async fn inputs_that_are_no_object_are_refused_whole() {
    for raw in ["[1, 2]", "7", "\"text\"", "true", "null", "[]"] {
        refused("probe", raw, &["the whole input is", "object"]).await;
    }
}

#[tokio::test]
async fn json_that_is_cut_off_runs_nothing_of_it() {
    let whole = r#"{"path": "a", "list": [{"from": "x", "to": "y"}], "n": 1}"#;
    for end in 1..whole.len() {
        refused("probe", &whole[..end], &["probe", "cut off", "Nothing was run"]).await;
    }
}

#[tokio::test]
async fn text_that_is_no_json_is_quoted_where_it_is_wrong() {
    refused("probe", r#"{"path": oops}"#, &["not JSON", "oops"]).await;
    refused("probe", "{'path': 'a'}", &["not JSON", "'path'"]).await;
    refused("probe", r#"{"path": "a"} and more"#, &["not JSON", "and more"]).await;
    refused("probe", "<path>a</path>", &["not JSON", "<path>"]).await;
    refused("probe", "{\"path\": \"\u{1}\"}", &["not JSON"]).await;
}

#[tokio::test]
async fn lone_surrogates_are_refused_and_pairs_are_not() {
    refused("probe", r#"{"path": "\ud800"}"#, &["not JSON", "surrogate", "ud800"]).await;
    refused("probe", r#"{"path": "\udc00x"}"#, &["not JSON"]).await;
    refused("probe", r#"{"path": "\ud800\u0041"}"#, &["not JSON"]).await;
    let (world, runs) = world();
    world.call_raw("probe", r#"{"path": "\ud83d\ude00"}"#).await;
    assert_eq!(runs.of("probe"), 1);
}

#[tokio::test]
async fn a_field_that_is_there_twice_is_not_guessed() {
    refused("probe", r#"{"path": "a", "path": "b"}"#, &["\"path\" twice", "once"]).await;
    let inner = r#"{"path": "a", "list": [{"from": "a", "to": "b", "to": "c"}]}"#;
    refused("probe", inner, &["\"to\" twice"]).await;
    refused("write", r#"{"path": "a", "content": "x", "content": "y"}"#, &["\"content\""]).await;
    // Arguments, or a part of them, that came as text with the JSON in it.
    let whole = r#"{"path": "a", "path": "b"}"#;
    let list = r#"[{"from": "a", "to": "b", "to": "c"}]"#;
    let object = r#"{"from": "a", "to": "b", "to": "c"}"#;
    for raw in [
        json!(whole).to_string(),
        json!({"path": "a", "list": list}).to_string(),
        json!({"path": "a", "list": object}).to_string(),
        json!(json!({"path": "a", "list": list}).to_string()).to_string(),
    ] {
        refused("probe", &raw, &["twice", "once"]).await;
    }
    let (world, runs) = world();
    world.call_raw("probe", &json!(r#"{"path": "a"}"#).to_string()).await;
    assert_eq!(runs.of("probe"), 1);
}

#[tokio::test]
async fn two_names_of_one_field_with_different_values_are_not_guessed() {
    for (tool, raw, words) in [
        (
            "write",
            r#"{"filename": "b", "file": "a", "content": "Q"}"#,
            &["path twice", "filename is \"b\"", "file is \"a\"", "once"][..],
        ),
        (
            "edit",
            r#"{"file": "b", "file_path": "a", "old_string": "one", "old_text": "two",
                "new_text": "X"}"#,
            &["path twice", "file is \"b\"", "old_text twice", "old_string is \"one\"", "\"two\""],
        ),
        (
            "edit",
            r#"{"file_path": "b", "path": "a",
                "edits": [{"old_text": "one", "new_text": "X"}]}"#,
            &["path twice", "path is \"a\"", "file_path is \"b\""],
        ),
        (
            "edit",
            r#"{"path": "a", "edits": [{"old_text": "one", "new_text": "X"}],
                "old_string": "two", "new_string": "Y"}"#,
            &["edits twice", "old_string"],
        ),
        (
            "edit",
            r#"{"path": "a",
                "edits": [{"old_text": "one", "old_string": "two", "new_text": "X"}]}"#,
            &["edits.0.old_text twice", "\"one\"", "\"two\""],
        ),
        ("probe", r#"{"path": "a", "filePath": 7}"#, &["path twice", "filePath is 7"]),
    ] {
        refused(tool, raw, words).await;
    }
}

#[tokio::test]
async fn two_names_of_one_field_with_the_same_value_are_fine() {
    for raw in [
        r#"{"path": "b", "file": "b", "content": "Q"}"#,
        r#"{"path": null, "file": "b", "content": "Q"}"#,
        r#"{"path": "b", "file": null, "content": "Q"}"#,
    ] {
        let (world, _) = world();
        let outcome = world.call_raw("write", raw).await;
        assert_eq!(outcome.status, Status::Done, "{raw}: {}", outcome.joined_text());
        assert!(!outcome.joined_text().contains("ignored"), "{}", outcome.joined_text());
        assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"Q", "{raw}");
    }
}

#[tokio::test]
async fn numbers_beyond_a_tools_own_are_told_in_plain_words() {
    for (tool, raw, words) in [
        (
            "read",
            r#"{"path": "a", "offset": 18446744073709551615}"#,
            &["offset is 18446744073709551615, wanted: a whole number from -9223372036854775808"],
        ),
        (
            "grep",
            r#"{"pattern": "one", "-A": 1e18}"#,
            &["-A is 1000000000000000000, wanted: a whole number from 0 to 4294967295"],
        ),
        ("find", r#"{"pattern": "*", "limit": 1e30}"#, &["limit is 1e+30, wanted: a number"]),
    ] {
        let text = refused(tool, raw, words).await.joined_text();
        for word in ["i64", "u64", "u32", "floating", "expected", "invalid"] {
            assert!(!text.contains(word), "{tool} {raw}: {text}");
        }
    }
    // A whole number is one however it is written.
    for (tool, raw) in [
        ("read", r#"{"path": "a", "limit": 1e18}"#),
        ("grep", r#"{"pattern": "one", "head_limit": 1e18}"#),
        ("find", r#"{"pattern": "*", "limit": 1.8e19}"#),
        ("ls", r#"{"limit": 1e18}"#),
        ("read", r#"{"path": "a", "offset": "1.0", "limit": "2e0"}"#),
    ] {
        let (world, _) = world();
        let outcome = world.call_raw(tool, raw).await;
        assert_eq!(outcome.status, Status::Done, "{tool} {raw}: {}", outcome.joined_text());
    }
}

#[tokio::test]
async fn depth_is_no_danger() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let open_only = open.repeat(100_000);
        refused("probe", &open_only, &["probe"]).await;
        let closed = format!("{open_only}1{}", close.repeat(100_000));
        refused("probe", &closed, &["probe", "recursion"]).await;
        let inside = format!("{{\"path\": {closed}}}");
        refused("probe", &inside, &["recursion"]).await;
        // As text where a list is wanted, which is usually mended.
        let text = serde_json::to_string(&closed).unwrap();
        refused("probe", &format!("{{\"path\": \"a\", \"list\": {text}}}"), &["list is"]).await;
    }
}

#[tokio::test]
async fn ten_megabytes_anywhere_are_answered_shortly() {
    let long = "x".repeat(10_000_000);
    refused("probe", &format!("{{\"n\": \"{long}\"}}"), &["n is \"xxx", "wanted: integer"]).await;
    refused("probe", &format!("{{\"{long}\": 1}}"), &["path is missing"]).await;
    refused("probe", &format!("\"{long}"), &["cut off"]).await;
    refused("probe", &long, &["not JSON"]).await;
    refused(&long, "{}", &["no tool named \"xxx"]).await;
    refused("probe", &format!("[{}1]", "1,".repeat(1_000_000)), &["the whole input"]).await;
    refused("read", &format!("{{\"path\": \"{long}\"}}"), &["xxx"]).await;
    refused("ls", &format!("{{\"path\": \"{long}\"}}"), &["xxx"]).await;
    let noted = format!("{{\"path\": \" {long}\", \"n\": \"{long}\"}}");
    refused("probe", &noted, &["n is \"xxx"]).await;
}

#[tokio::test]
async fn fifty_thousand_wrong_things_are_counted_not_listed() {
    let wrong = "{\"from\":1},".repeat(50_000);
    let raw = format!("{{\"path\": \"a\", \"list\": [{wrong}{{\"from\":1}}]}}");
    refused("probe", &raw, &["list.0.", "... and 99982 more"]).await;
    let unknown = (0..50_000).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",");
    refused("probe", &format!("{{{unknown},\"n\":0}}"), &["path is missing", "k1"]).await;
}

#[tokio::test]
async fn nul_bytes_in_paths_name_themselves() {
    for tool in ["read", "ls"] {
        refused(tool, r#"{"path": "a\u0000b"}"#, &["NUL"]).await;
    }
    refused("write", r#"{"path": "a\u0000b", "content": ""}"#, &["NUL"]).await;
    let edit = r#"{"path": "a\u0000b", "edits": [{"old_text": "one", "new_text": "x"}]}"#;
    refused("edit", edit, &["NUL"]).await;
    refused("grep", r#"{"path": "a\u0000b", "pattern": "x"}"#, &["NUL"]).await;
    refused("find", r#"{"path": "a\u0000b", "pattern": "x"}"#, &["NUL"]).await;
}

#[tokio::test]
async fn stringified_arguments_are_mended_or_named() {
    let (world, runs) = world();
    let whole = serde_json::to_string(r#"{"path": "a", "n": "3", "on": "true"}"#).unwrap();
    let outcome = world.call_raw("probe", &whole).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"a","n":3,"on":true}"#);
    let list = r#"{"path": "a", "list": "[{\"from\": \"x\", \"to\": \"y\"}]"}"#;
    let outcome = world.call_raw("probe", list).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"a","list":[{"from":"x","to":"y"}]}"#);
    assert_eq!(runs.of("probe"), 2);
    refused("probe", r#"{"path": "a", "list": "[{\"from\": \"x\""}"#, &["list is", "array"]).await;
    refused("probe", r#"{"path": "a", "list": "x, y"}"#, &["list is \"x, y\", wanted: array"])
        .await;
}

#[tokio::test]
async fn whatever_bytes_come_there_is_one_answer() {
    use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let pieces = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("\"path\":".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("\"a\"".to_owned()),
        Just(",".to_owned()),
        Just("\\u".to_owned()),
        Just("1e999".to_owned()),
        Just("null".to_owned()),
        ".{0,4}",
    ];
    let made_up = proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat());
    // Good arguments, from which at most two characters are missing.
    let good =
        vec![r#"{"path":"a"}"#, r#"{"path":"b","n":1,"on":true}"#, r#"{"list":[],"path":"c"}"#];
    let missing = proptest::collection::vec(any::<prop::sample::Index>(), 0..3);
    let damaged = (prop::sample::select(good), missing).prop_map(|(good, missing)| {
        let mut text = good.to_owned();
        for at in missing {
            text.remove(at.index(text.len()));
        }
        text
    });
    let raws = prop_oneof![2 => made_up, 1 => damaged];
    let (world, runs) = world();
    for round in 1..=300 {
        let raw = raws.new_tree(&mut runner).unwrap().current();
        let outcome = world.call_raw("probe", &raw).await;
        assert!(!outcome.content.is_empty(), "{raw:?}");
        let (begun, ended) = begun_and_ended(&world);
        assert_eq!((begun.len(), ended.len()), (round, round), "{raw:?}");
    }
    let fine = runs.of("probe");
    assert!((20..150).contains(&fine), "{fine} of 300 were fine");
}
