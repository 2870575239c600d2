//! `write` where a fixture is not enough: freshness, receipts, failures of the host.

use std::{io, sync::Arc};

use haft_host::{FsOp, Memory};
use haft_testkit::world::World;
use haft_types::{Hash, HostPath, ReceiptAction, Status, Style};
use serde_json::{Value, json};

use crate::{both, done, failed, local, memory};

fn content(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let world = local(&[("a.txt", b"one\n")]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    let path = world.folder().unwrap().join("a.txt");
    std::fs::write(&path, "changed by someone\n").unwrap();
    let shown = failed(&world, "write", content("a.txt", "mine\n")).await;
    assert!(shown.contains("a.txt changed since it was read"), "{shown}");
    assert_eq!(std::fs::read(&path).unwrap(), b"changed by someone\n");
    let hash = Hash::of(b"changed by someone\n").to_string();
    let input = json!({"path": "a.txt", "content": "mine\n", "expect": hash});
    done(&world, "write", input).await;
    assert_eq!(std::fs::read(&path).unwrap(), b"mine\n");
}

#[tokio::test]
async fn receipts_say_what_was_there_and_what_is() {
    for world in both(&[("a.txt", b"one\n")]) {
        let outcome = world.call("write", content("a.txt", "two\n")).await;
        let receipt = &outcome.receipts[0];
        assert_eq!(receipt.action, ReceiptAction::Changed);
        assert_eq!(receipt.before, Some(Hash::of(b"one\n")));
        assert_eq!(receipt.after, Some(Hash::of(b"two\n")));
        let outcome = world.call("write", content("b.txt", "")).await;
        assert_eq!(outcome.receipts[0].action, ReceiptAction::Created);
        assert_eq!(outcome.data.unwrap()["created"], true);
        let outcome = world.call("write", content("b.txt", "")).await;
        assert!(outcome.receipts.is_empty());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_mode_of_an_executable_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = local(&[("run.sh", b"#!/bin/sh\n")]);
    let path = world.folder().unwrap().join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    done(&world, "write", content("run.sh", "#!/bin/sh\ntrue\n")).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn a_path_of_a_folder_becomes_no_file() {
    for world in both(&[("a.txt", b"old\n"), ("folder/b.txt", b"b\n")]) {
        for path in ["new/", "new/deep/.", "a.txt/"] {
            let shown = failed(&world, "write", content(path, "x\n")).await;
            assert!(shown.starts_with(&format!("{path} names a folder by its end")), "{shown}");
            assert!(shown.contains("Give the path of a file"), "{shown}");
        }
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"old\n");
        let shown = failed(&world, "write", content("folder/", "x\n")).await;
        assert!(shown.contains("is a folder"), "{shown}");
        // Where a refused write had made a file, there could be no folder.
        done(&world, "write", content("new/c.txt", "x\n")).await;
    }
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_file_and_says_so() {
    let host = Arc::new(Memory::with_files([("/w/a.txt", &b"old\n"[..])]).unwrap());
    let root = HostPath::new(b"/w", Style::Posix).unwrap();
    let world = World::on(host.clone(), root, haft_tools::builtin());
    let edits = json!([{"old_text": "old", "new_text": "new"}]);
    for (tool, input) in
        [("write", content("a.txt", "new\n")), ("edit", json!({"path": "a.txt", "edits": edits}))]
    {
        host.fail_next(FsOp::Write, io::Error::from(io::ErrorKind::StorageFull));
        let shown = failed(&world, tool, input).await;
        assert!(shown.contains("Free some disk space"), "{shown}");
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"old\n");
    }
}

#[tokio::test]
async fn returns_that_end_no_line_are_told() {
    for world in both(&[("a.txt", b"old\ntwo\n"), ("b.txt", b"old\rtwo\r")]) {
        let edit = |path: &str, old: &str, new: &str| json!({"path": path, "edits": [{"old_text": old, "new_text": new}]});
        for (tool, input, told) in [
            ("write", content("a.txt", "one\rtwo\nthree\n"), Some("1 carriage return")),
            ("write", content("a.txt", "one\rtwo\nfour\n"), None),
            ("edit", edit("a.txt", "four", "f\r\ro\rur"), Some("3 carriage returns")),
            ("edit", edit("a.txt", "o\rur", "o\rer"), None),
            ("write", content("c.txt", "new\rtext\r"), None),
            ("write", content("d.txt", "new\rtext\n"), Some("1 carriage return")),
            ("write", content("a.txt", "one\rtwo\r"), Some("line ends were LF and are CR now")),
            ("write", content("b.txt", "new\rtwo\r"), None),
            ("edit", edit("b.txt", "new\r", "old\rone\r"), None),
        ] {
            let text = done(&world, tool, input.clone()).await;
            assert_eq!(
                told.is_none(),
                !text.contains("CR") && !text.contains("carriage"),
                "{text}"
            );
            assert!(told.is_none_or(|told| text.contains(told)), "{input}: {text}");
        }
    }
}

#[tokio::test]
async fn a_character_that_the_old_encoding_lacks_is_named() {
    for world in both(&[("a.txt", b"caf\xe9 d\xe9j\xe0\n")]) {
        let shown = failed(&world, "write", content("a.txt", "snow \u{2603}\n")).await;
        assert!(shown.contains("U+2603"), "{shown}");
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"caf\xe9 d\xe9j\xe0\n");
    }
}

#[tokio::test]
async fn of_an_empty_file_nothing_is_lost() {
    for world in both(&[("empty", b""), ("full", b"x\n")]) {
        for (path, lost) in [("empty", false), ("full", true)] {
            let text = done(&world, "write", json!({"path": path, "content": "y\n"})).await;
            assert_eq!(text.contains("never read"), lost, "{text}");
        }
    }
}

#[tokio::test]
async fn a_notebook_that_becomes_none_is_told() {
    let notebook = r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
    let files: [(&str, &[u8]); 2] = [("a.ipynb", notebook.as_bytes()), ("b.json", b"{}\n")];
    for world in both(&files) {
        done(&world, "read", json!({"path": "a.ipynb"})).await;
        for (path, text, told) in [
            ("a.ipynb", "print(1)\n", Some("was a notebook, and is no JSON any more")),
            ("a.ipynb", "print(2)\n", Some("is named as a notebook, and is no JSON")),
            ("a.ipynb", notebook, None),
            ("a.ipynb", "", Some("was a notebook, and is no JSON any more")),
            ("new.ipynb", "print(1)\n", Some("is named as a notebook, and is no JSON")),
            ("empty.ipynb", "", None),
            ("b.json", "print(1)\n", None),
        ] {
            let said = done(&world, "write", content(path, text)).await;
            assert_eq!(said.contains("notebook_edit"), told.is_some(), "{path}: {said}");
            assert!(told.is_none_or(|told| said.contains(told)), "{path}: {said}");
            let several = json!({"files": [{"path": path, "content": text}]});
            let again = done(&world, "edit", several).await;
            assert!(!again.contains("notebook_edit"), "nothing is written: {again}");
        }
    }
}

/// Calls with arguments as a model wrote them, which have to work.
async fn wrote(world: &World, tool: &str, raw: &str) -> String {
    let outcome = world.call_raw(tool, raw).await;
    assert_eq!(outcome.status, Status::Done, "{raw}: {}", outcome.joined_text());
    outcome.joined_text()
}

#[tokio::test]
async fn content_that_is_no_string_is_written_as_it_was_sent() {
    for world in both(&[("old.json", b"{}\n")]) {
        for (value, what) in [
            ("{\"name\": \"x\",\n  \"b\": [1, 2.50], \"a\": null}", "an object"),
            ("[ 1,2 ]", "an array"),
            ("1.0", "a number"),
            ("12345678901234567890123", "a number"),
            ("true", "true"),
            ("false", "false"),
        ] {
            for path in ["old.json", "new.json"] {
                let raw = format!("{{\"path\": \"{path}\", \"content\": {value}}}");
                let text = wrote(&world, "write", &raw).await;
                assert!(text.contains(&format!("content was {what}, not a string")), "{text}");
                let now = world.read_bytes(path).await.unwrap().unwrap();
                assert_eq!(String::from_utf8(now).unwrap(), value);
            }
            for raw in [
                format!("{{\"files\": [{{\"path\": \"new.json\", \"content\": {value}}}]}}"),
                format!("{{\"path\": \"new.json\", \"content\": {value}}}"),
            ] {
                done(&world, "write", content("new.json", "something else\n")).await;
                let text = wrote(&world, "edit", &raw).await;
                assert!(text.contains("content was"), "{text}");
                assert!(text.contains("the characters of its JSON are the text"), "{text}");
                let now = world.read_bytes("new.json").await.unwrap().unwrap();
                assert_eq!(String::from_utf8(now).unwrap(), value);
            }
        }
    }
}

#[tokio::test]
async fn null_is_no_content() {
    let world = memory(&[("old.json", b"{}\n")]);
    let text = failed(&world, "write", json!({"path": "old.json", "content": null})).await;
    assert!(text.contains("content is null, wanted: string"), "{text}");
    let input = json!({"files": [{"path": "old.json", "content": null}]});
    let text = failed(&world, "edit", input).await;
    assert!(text.contains("neither edits, content, delete nor move_to"), "{text}");
    assert_eq!(world.read_bytes("old.json").await.unwrap().unwrap(), b"{}\n");
}
