//! Each usual mistake, what becomes of it, and what the model is told.

use serde_json::{Value, json};

use super::{bare, meant_paths, parse, repair, with_paths};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "-i": {"type": "boolean"},
            "timeout_ms": {"type": "integer"},
            "edits": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "old_text": {"type": "string"},
                    "new_text": {"type": "string"},
                    "replace_all": {"type": "boolean"},
                },
                "required": ["old_text", "new_text"],
            }},
        },
        "required": ["path"],
    })
}

fn mended(input: Value) -> (Value, Vec<String>) {
    let mut notes = Vec::new();
    (repair(input, &schema(), "edit", &mut notes).unwrap(), notes)
}

#[test]
fn usual_mistakes_become_what_was_meant() {
    let edit = json!({"old_text": "a", "new_text": "b"});
    let cases = [
        (json!({"path": "a", "limit": "10"}), json!({"path": "a", "limit": 10})),
        (json!({"path": "a", "limit": 10.0}), json!({"path": "a", "limit": 10})),
        (json!({"path": "a", "-i": "True"}), json!({"path": "a", "-i": true})),
        (json!({"path": "a", "ignoreCase": "false"}), json!({"path": "a", "-i": false})),
        (json!({"file_path": "a"}), json!({"path": "a"})),
        (json!({"path": "a", "limit": null}), json!({"path": "a"})),
        (json!({"path": "a", "edits": edit}), json!({"path": "a", "edits": [edit]})),
        (json!({"path": "a", "edits": edit.to_string()}), json!({"path": "a", "edits": [edit]})),
        (json!({"path": "a", "edits": [edit.to_string()]}), json!({"path": "a", "edits": [edit]})),
        (
            json!({"path": "a", "edits": "[{\"old_text\": \"a\nb\", \"new_text\": \"\tc\"}]"}),
            json!({"path": "a", "edits": [{"old_text": "a\nb", "new_text": "\tc"}]}),
        ),
        (
            json!({"path": "a", "old_string": "a", "new_string": "b", "replaceAll": "true"}),
            json!({"path": "a", "edits": [
                {"old_text": "a", "new_text": "b", "replace_all": true}
            ]}),
        ),
        (
            json!({"path": "a", "edits": [{"oldText": "a", "newText": "b"}]}),
            json!({"path": "a", "edits": [edit]}),
        ),
    ];
    for (input, wanted) in cases {
        assert_eq!(mended(input.clone()).0, wanted, "{input}");
    }
    assert_eq!(mended(json!("{\"path\": \"a\"}")).0, json!({"path": "a"}));
}

#[test]
fn one_field_under_several_names_has_one_value() {
    let edit = json!({"old_text": "a", "new_text": "b"});
    for same in [
        json!({"path": "/a", "file": "/a", "filename": "file:///a"}),
        json!({"path": null, "file": "/a"}),
        json!({"file_path": "/a", "file": null}),
    ] {
        assert_eq!(mended(same.clone()), (json!({"path": "/a"}), vec![]), "{same}");
    }
    let times = json!({"path": "a", "timeout": 30, "timeoutMs": "30000", "timeout_ms": 30_000});
    assert_eq!(mended(times).0, json!({"path": "a", "timeout_ms": 30_000}));
    let twice = json!({"path": "a", "edits": [edit], "old_string": "a", "new_text": "b"});
    assert_eq!(mended(twice).0, json!({"path": "a", "edits": [edit]}));

    let long = "x".repeat(1_000_000);
    for (input, wanted) in [
        (json!({"file": "b", "filename": "a"}), "path twice: file is \"b\" and filename is \"a\""),
        (json!({"path": "a", "file": " a"}), "path twice: path is \"a\" and file is \" a\""),
        (json!({"path": "a", "-i": true, "ignoreCase": "no"}), "-i twice: -i is true"),
        (json!({"path": "a", "timeout": 30, "timeout_ms": 30}), "timeout is 30"),
        (json!({"path": "a", "edits": [edit], "replace": "c"}), "edits twice: edits is [{"),
        (
            json!({"path": "a", "edits": [{"search": "a", "oldText": "b"}]}),
            "edits.0.old_text twice",
        ),
        (json!({"path": "a", "file": long}), "file is \"xxx"),
    ] {
        let error = repair(input, &schema(), "edit", &mut vec![]).unwrap_err();
        assert!(error.message.starts_with("the arguments of edit name"), "{error}");
        assert!(error.message.contains(wanted) && error.message.len() < 500, "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("Nothing was run")));
    }
}

#[test]
fn replace_all_beside_edits_belongs_to_none_of_them() {
    let edit = json!({"old_text": "a", "new_text": "b"});
    for name in ["replace_all", "replaceAll"] {
        let input = json!({"path": "a", "edits": [edit, edit], name: true});
        let error = repair(input, &schema(), "edit", &mut vec![]).unwrap_err();
        let wanted = format!("the arguments of edit have {name} beside edits");
        assert!(error.message.starts_with(&wanted), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("into each edit")));
        let input = json!({"path": "a", "edits": [edit], name: false});
        assert_eq!(mended(input).0, json!({"path": "a", "edits": [edit]}));
    }
}

#[test]
fn another_name_that_is_a_field_of_its_own_is_left_alone() {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "file": {"type": "string"},
    }});
    for input in [json!({"path": "a", "file": "b"}), json!({"file": "b"})] {
        let kept = repair(input.clone(), &schema, "own", &mut vec![]).unwrap();
        assert_eq!(kept, input);
    }
    // A tool that takes more than it names may well take this.
    let open = json!({"type": "object", "properties": {"path": {"type": "string"}},
        "additionalProperties": true});
    let input = json!({"path": "a", "file": "b"});
    assert_eq!(repair(input.clone(), &open, "own", &mut vec![]).unwrap(), input);
}

#[test]
fn what_fits_is_not_touched() {
    for input in [
        json!({"path": "true", "limit": 1}),
        json!({"path": "12"}),
        json!({"path": "{\"a\": 1}"}),
        json!({"path": "a", "edits": [{"old_text": "null", "new_text": "[1]"}]}),
    ] {
        assert_eq!(mended(input.clone()), (input, vec![]));
    }
}

#[test]
fn what_cannot_be_mended_is_left_for_validation() {
    for input in [
        json!({"path": 7}),
        json!({"path": "a", "limit": "ten"}),
        json!({"path": "a", "edits": "not json"}),
        json!([1]),
    ] {
        assert_eq!(mended(input.clone()).0, input);
    }
}

#[test]
fn unknown_keys_are_dropped_and_told() {
    let (input, notes) = mended(json!({"path": "a", "explanation": "x"}));
    assert_eq!(input, json!({"path": "a"}));
    assert_eq!(notes, ["ignored unknown arguments: explanation"]);
    let edits = json!([{"old_text": "a", "new_text": "b", "why": 1}]);
    let (_, notes) = mended(json!({"path": "a", "edits": edits, "explanation": "x"}));
    assert!(notes.len() == 1 && notes[0].contains("why, explanation"), "{notes:?}");
}

#[test]
fn a_timeout_alone_is_seconds_when_small() {
    let (input, notes) = mended(json!({"path": "a", "timeout": 30}));
    assert_eq!(input, json!({"path": "a", "timeout_ms": 30_000}));
    assert!(notes[0].contains("seconds"), "{notes:?}");
    assert_eq!(mended(json!({"path": "a", "timeout": 5000})).0["timeout_ms"], 5000);
    assert_eq!(mended(json!({"path": "a", "timeoutMs": 30})).0["timeout_ms"], 30);
}

#[test]
fn only_a_url_is_a_path_at_once() {
    let (input, notes) = mended(json!({"path": "file:///w/a"}));
    assert_eq!(input["path"], "/w/a");
    assert!(notes[0].contains("\"file:///w/a\" was taken as \"/w/a\""), "{notes:?}");
    for text in ["@a", "'a'", " a ", "a\u{a0}b", "file://host/a"] {
        assert_eq!(mended(json!({ "path": text })), (json!({ "path": text }), vec![]), "{text:?}");
    }
}

#[test]
fn what_stands_around_a_path_is_taken_off_for_a_second_look() {
    for (text, wanted) in [
        ("@src/a.rs", "src/a.rs"),
        ("\"src/a b.rs\"", "src/a b.rs"),
        ("`file:///w/a`", "/w/a"),
        ("a\u{a0}b\u{202f}c", "a b c"),
        (" a ", "a"),
        ("\u{feff}a", "a"),
    ] {
        let input = json!({ "path": text });
        let (mended, notes) = with_paths(&input, &schema(), &bare, &|_| String::new()).unwrap();
        assert_eq!(mended, json!({ "path": wanted }), "{text:?}");
        assert_eq!(meant_paths(&input, &schema())[0], mended);
        assert!(notes.len() == 1 && notes[0].starts_with("path "), "{notes:?}");
    }
    for plain in ["", "@", "src/a.rs", "~/a", "a b", "\""] {
        assert_eq!(
            meant_paths(&json!({ "path": plain }), &schema()),
            [] as [Value; 0],
            "{plain:?}"
        );
    }
    let inner = json!({"edits": [{"old_text": "@a", "new_text": "'b'"}]});
    assert_eq!(meant_paths(&inner, &schema()), [] as [Value; 0], "only paths");
}

#[test]
fn cut_off_and_broken_arguments_say_so() {
    let cut = parse("{\"path\": \"a", "read").unwrap_err();
    assert!(cut.message.starts_with("the arguments of read are cut off"), "{cut}");
    let broken = parse("{\"path\": oops}", "read").unwrap_err();
    assert!(broken.message.contains("not JSON") && broken.message.contains("oops"), "{broken}");
    assert_eq!(parse("{\"path\": \"a\nb\"}", "read").unwrap(), json!({"path": "a\nb"}));
    let deep = "[".repeat(100_000);
    assert!(parse(&deep, "read").is_err());
}
