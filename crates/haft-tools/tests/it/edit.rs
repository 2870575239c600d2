//! `edit` where a fixture is not enough: freshness, links, receipts, previews, concurrency.

use std::sync::Arc;

use haft_policy::Mode;
use haft_testkit::world::World;
use haft_types::{Body, Hash, Reply, Shape, Status};
use serde_json::{Value, json};

use crate::{both, done, failed, local, memory, repeated};

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

#[tokio::test]
async fn the_receipt_and_the_data_prove_the_change() {
    for world in both(&[("a.txt", b"one\ntwo\n")]) {
        let outcome = world.call("edit", replace("a.txt", "two", "three")).await;
        let (before, after) = (Hash::of(b"one\ntwo\n"), Hash::of(b"one\nthree\n"));
        let receipt = &outcome.receipts[0];
        assert_eq!((receipt.before, receipt.after), (Some(before), Some(after)));
        assert_eq!((receipt.ranges.as_slice(), &receipt.tolerance), (&[(4, 7)][..], &None));
        let data = outcome.data.unwrap();
        assert_eq!(data["hash_after"], after.to_string());
        assert_eq!((&data["first_changed_line"], &data["file_size"]), (&json!(2), &json!(10)));
        assert_eq!(data["diff"], "@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
        assert_eq!(data["ranges"], json!([[4, 7]]));
        let Some(Shape::Diff { before: b, after: a, hunks, .. }) = outcome.detail.map(|d| d.shape)
        else {
            panic!("no diff")
        };
        assert_eq!((b, a, hunks.len()), (Some(before), Some(after), 1));
    }
}

#[tokio::test]
async fn a_file_changed_since_it_was_read_is_edited_only_where_it_is_exact() {
    let world = local(&[("a.txt", b"one  \ntwo\n")]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    std::fs::write(world.folder().unwrap().join("a.txt"), "zero\none  \ntwo\n").unwrap();
    let shown = failed(&world, "edit", replace("a.txt", "one\ntwo", "x")).await;
    assert!(shown.contains("changed since it was read"), "{shown}");
    let shown = failed(&world, "edit", replace("a.txt", "five", "x")).await;
    assert!(shown.contains("changed since it was read: read it"), "{shown}");
    let shown = done(&world, "edit", replace("a.txt", "two", "2")).await;
    assert!(shown.contains("had changed since it was read"), "{shown}");
    // What the edit left is what the conversation has seen.
    let shown = done(&world, "edit", replace("a.txt", "one\n2", "1\n2")).await;
    assert!(shown.contains("tolerance"), "{shown}");
    assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"zero\n1\n2\n");
}

#[tokio::test]
async fn a_touched_file_with_the_same_content_is_fresh() {
    let world = local(&[("a.txt", b"one  \n")]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    let path = world.folder().unwrap().join("a.txt");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "one  \n").unwrap();
    let shown = done(&world, "edit", replace("a.txt", "one\n", "two\n")).await;
    assert!(!shown.contains("had changed"), "{shown}");
}

#[tokio::test]
async fn a_link_stays_a_link_and_other_names_keep_the_old_content() {
    let world = local(&[("real.txt", b"one\n"), ("twin.txt", b"one\n")]);
    let folder = world.folder().unwrap();
    std::os::unix::fs::symlink("real.txt", folder.join("link.txt")).unwrap();
    let shown = done(&world, "edit", replace("link.txt", "one", "two")).await;
    assert!(shown.contains("link.txt leads to"), "{shown}");
    assert!(folder.join("link.txt").is_symlink());
    assert_eq!(std::fs::read(folder.join("real.txt")).unwrap(), b"two\n");
    std::fs::hard_link(folder.join("twin.txt"), folder.join("other.txt")).unwrap();
    let shown = done(&world, "edit", replace("twin.txt", "one", "two")).await;
    assert!(shown.contains("has 2 names (hard links)"), "{shown}");
    assert_eq!(std::fs::read(folder.join("other.txt")).unwrap(), b"one\n");
}

#[tokio::test]
async fn the_question_shows_the_diff_and_a_refusal_changes_nothing() {
    for world in both(&[("a.txt", b"one\n")]) {
        world.mode(Mode::Ask);
        world.answer([Reply::pick("deny"), Reply::pick("allow")]);
        let outcome = world.call("edit", replace("a.txt", "one", "two")).await;
        assert_eq!(outcome.status, Status::Denied);
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"one\n");
        let preview = world.recorder.bodies().into_iter().find_map(|body| match body {
            Body::Asked { question } => question.preview,
            _ => None,
        });
        assert!(matches!(preview.map(|p| p.shape), Some(Shape::Diff { .. })));
        done(&world, "edit", replace("a.txt", "one", "two")).await;
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"two\n");
    }
}

#[tokio::test]
async fn an_edit_that_cannot_work_asks_nobody() {
    let world = memory(&[("a.txt", b"one\n")]);
    world.mode(Mode::Ask);
    world.answer([]);
    failed(&world, "edit", replace("a.txt", "five", "two")).await;
    assert!(!world.recorder.text().contains("\"asked\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_at_the_same_time_lose_nothing() {
    for world in both(&[("a.txt", b"")]) {
        let text = repeated(0..20, |n| format!("[{n}]\n"));
        done(&world, "write", json!({"path": "a.txt", "content": text})).await;
        let world = Arc::new(world);
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let world = world.clone();
                tokio::spawn(async move {
                    let input = replace("a.txt", &format!("[{n}]"), &format!("<{n}>"));
                    // One that met another says so, changed nothing, and is tried again.
                    for _ in 0..200 {
                        let outcome = world.call("edit", input.clone()).await;
                        match outcome.status {
                            Status::Done => return,
                            _ => assert!(
                                outcome.joined_text().contains("again"),
                                "{}",
                                outcome.joined_text()
                            ),
                        }
                    }
                    panic!("edit {n} never came through");
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let want = repeated(0..20, |n| format!("<{n}>\n"));
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), want.as_bytes());
        assert!(world.session.queues.is_empty());
    }
}

#[tokio::test]
async fn a_big_file_is_edited_whole() {
    let text = repeated(0..400_000, |n| format!("line {n} of many\n"));
    let world = memory(&[("a.txt", text.as_bytes())]);
    done(&world, "edit", replace("a.txt", "line 399999 of", "last of")).await;
    let after = world.read_bytes("a.txt").await.unwrap().unwrap();
    assert!(after.ends_with(b"line 399998 of many\nlast of many\n"));
    assert_eq!(after.len(), text.len() - 7);
}

#[tokio::test]
async fn a_big_file_of_many_places_holds_what_was_told_of_it() {
    let text = repeated(0..60_000, |n| format!("line {n} of many{}", ["\r\n", "\n"][n % 2]));
    for world in both(&[("a.txt", text.as_bytes())]) {
        let edits = json!([
            {"old_text": "line 0 of", "new_text": "line zero of"},
            {"old_text": "many", "new_text": "\u{e9}", "replace_all": true},
        ]);
        done(&world, "read", json!({"path": "a.txt"})).await;
        let outcome = world.call("edit", json!({"path": "a.txt", "edits": edits})).await;
        let after = world.read_bytes("a.txt").await.unwrap().unwrap();
        let wanted = text.replace("line 0 of", "line zero of").replace("many", "\u{e9}");
        assert!(after == wanted.as_bytes());
        let receipt = &outcome.receipts[0];
        let hashes = (Some(Hash::of(text.as_bytes())), Some(Hash::of(&after)));
        assert_eq!((receipt.before, receipt.after), hashes);
        assert_eq!(receipt.pre_image.as_ref().map(|blob| blob.len), Some(text.len() as u64));
    }
}

#[tokio::test]
async fn a_strict_edit_names_the_tolerance_that_it_does_not_take() {
    let options = haft_tools::Options { edit_strict: true, ..haft_tools::Options::default() };
    let text = "fn a() {\n    one();  \n}\nsaid \u{201c}so\u{201d}\n";
    for (old, tolerance) in [
        ("one();\n}", "trailing"),
        ("    fn a() {\n        one();  \n    }", "indent"),
        ("said \"so\"", "Unicode"),
        ("     2\t    one();  ", "number"),
    ] {
        let tolerant = memory(&[("a.txt", text.as_bytes())]);
        let strict = World::memory(haft_tools::with(&options), [("a.txt", text)]).unwrap();
        for world in [&tolerant, &strict] {
            done(world, "read", json!({"path": "a.txt"})).await;
        }
        let new = format!("{old}!");
        let shown = done(&tolerant, "edit", replace("a.txt", old, &new)).await;
        assert!(shown.contains("matched with a tolerance"), "{old:?}: {shown}");
        let named = shown.split("a tolerance: ").nth(1).unwrap().split([']', '\n']).next().unwrap();
        assert!(named.contains(tolerance), "{old:?}: {named}");
        let shown = failed(&strict, "edit", replace("a.txt", old, &new)).await;
        for want in ["a.txt was not changed", "old_text of edit 1", named, "edit.strict", "exactly"]
        {
            assert!(shown.contains(want), "{old:?} lacks {want:?}: {shown}");
        }
        assert_eq!(strict.read_bytes("a.txt").await.unwrap().unwrap(), text.as_bytes());
        let edits = json!([{"old_text": old, "new_text": new}]);
        let several = json!({"files": [{"path": "a.txt", "edits": edits}]});
        let shown = failed(&strict, "edit", several).await;
        assert!(shown.contains("edit.strict") && shown.contains(named), "{old:?}: {shown}");
        assert_eq!(strict.read_bytes("a.txt").await.unwrap().unwrap(), text.as_bytes());
        done(&strict, "edit", replace("a.txt", "one();  ", "two();")).await;
    }
}

/// The diff that people see of a call that works, its text and the diff of its data.
async fn shown(world: &World, tool: &str, input: Value) -> (Vec<String>, String, String) {
    let outcome = world.call(tool, input).await;
    let text = outcome.joined_text();
    let data = outcome.data.unwrap();
    let data = data["diff"].as_str().unwrap_or_default().to_owned();
    let Some(Shape::Diff { hunks, .. }) = outcome.detail.map(|detail| detail.shape) else {
        panic!("no diff: {text}")
    };
    let lines = hunks.into_iter().flat_map(|hunk| hunk.lines).map(|line| line.text);
    (lines.collect(), text, data)
}

#[tokio::test]
async fn a_change_in_a_long_line_is_in_the_part_that_is_shown() {
    let words = repeated(0..200, |n| format!("wörd{n} "));
    let json = format!("{{{}}}", repeated(0..900, |n| format!("\"key{n}\":{n},")));
    for (line, old, new) in [
        (&words, "wörd113", "wörd1I3"),
        (&words, "wörd113 ", "wörd113"),
        (&words, "wörd199 ", "the end of a line that is longer than it was"),
        (&words, "wörd1 ", "word1 "),
        (&json, "\"key700\":700", "\"key700\":701"),
        (&json, "\"key899\":899,", "\"key899\":899,"),
    ] {
        let text = format!("first\n{line}\nlast\n");
        let new = if old == new { "\"key899\":null," } else { new };
        let by_edit = replace("a.txt", old, new);
        let by_write = json!({"path": "a.txt", "content": text.replace(old, new)});
        for (tool, input) in [("edit", by_edit), ("write", by_write)] {
            let world = memory(&[("a.txt", text.as_bytes())]);
            done(&world, "read", json!({"path": "a.txt"})).await;
            let (lines, text, data) = shown(&world, tool, input).await;
            assert!(lines[1] != lines[2], "{tool} {new}: {lines:?}");
            assert!(lines[1].contains(old), "{tool}: {lines:?}");
            assert!(lines[2].contains(new), "{tool}: {lines:?}");
            assert!(lines.iter().all(|line| line.chars().count() < 560), "{lines:?}");
            for line in &lines[1..3] {
                assert!(text.contains(line.as_str()), "{tool}: {text}");
                assert!(data.contains(line.as_str()) || tool == "write", "{data}");
            }
            assert_eq!((&*lines[0], &*lines[3]), ("first", "last"));
        }
    }
}

#[tokio::test]
async fn the_marks_of_a_long_line_count_what_is_not_shown() {
    let line = "ab".repeat(1_000);
    let world = memory(&[("a.txt", format!("{line}XY{line}\n").as_bytes())]);
    let (lines, ..) = shown(&world, "edit", replace("a.txt", "XY", "Z")).await;
    for (line, middle, whole) in [(&lines[0], "XY", 4_002), (&lines[1], "Z", 4_001)] {
        let (before, rest) = line.split_once(" characters cut]").unwrap();
        let (text, behind) = rest.rsplit_once('[').unwrap();
        let cut: usize = before[1..].parse().unwrap();
        let behind: usize = behind.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(cut + text.len() + behind, whole, "{line}");
        assert_eq!((cut + text.find(middle).unwrap(), text.len()), (2_000, 500), "{line}");
    }
    assert_eq!(lines.len(), 2, "each starts at the same character: {lines:?}");
}

#[tokio::test]
async fn a_change_that_nobody_sees_is_named() {
    for (old, new, told) in [
        ("a\u{a0}b", "a b", "[line 2: U+00A0 (no-break space) is now a space]"),
        ("a b", "a\u{a0}b", "[line 2: a space is now U+00A0 (no-break space)]"),
        ("a\u{a0}b\u{a0}c", "a b c", "no-break space) is now a space (2 times)]"),
        ("ab", "a\u{200b}b", "[line 2: U+200B (zero width space) is new]"),
        ("a\u{202e}b", "ab", "[line 2: U+202E is gone]"),
        ("ab", "ab  ", "[line 2: at its end no blank before and 2 blanks now]"),
        ("ab \t", "ab ", "[line 2: at its end 2 blanks before and 1 blank now]"),
        ("ab ", "ab\t", "[line 2: at its end 1 blank before and other 1 blank now]"),
        ("ab", "a\u{feff}b ", "U+FEFF (byte order mark) is new, at its end no blank before"),
    ] {
        let text = format!("one\n{old}\nlast\n");
        let by_write = json!({"path": "a.txt", "content": format!("one\n{new}\nlast\n")});
        for (tool, input) in
            [("edit", replace("a.txt", &text[4..], &format!("{new}\nlast\n"))), ("write", by_write)]
        {
            let world = memory(&[("a.txt", text.as_bytes())]);
            done(&world, "read", json!({"path": "a.txt"})).await;
            let (_, text, data) = shown(&world, tool, input).await;
            assert!(text.contains(told), "{tool} {old:?} {new:?}: {text}");
            // What is applied by a program is the text itself.
            let exact = data.contains(&format!("-{old}\n+{new}\n"));
            assert!(exact || tool == "write", "{data}");
            assert!(!data.contains("line 2"), "{data}");
        }
    }
    // What can be seen is not named, and of many lines it is said how many more there are.
    let world = memory(&[("a.txt", b"one\ntwo\n"), ("b.txt", "a\u{a0}b\n".repeat(9).as_bytes())]);
    let (_, text, _) = shown(&world, "edit", replace("a.txt", "two", "two, three ")).await;
    assert!(!text.contains("[line"), "{text}");
    let mut all = replace("b.txt", "\u{a0}", " ");
    all["edits"][0]["replace_all"] = json!(true);
    done(&world, "read", json!({"path": "b.txt"})).await;
    let (_, text, _) = shown(&world, "edit", all).await;
    assert!(text.contains("[line 5: ") && !text.contains("[line 6: "), "{text}");
    assert!(text.contains("[4 more lines changed in characters that cannot be seen]"), "{text}");
}

#[tokio::test]
async fn a_strict_edit_takes_only_what_was_read_as_it_is() {
    let options = haft_tools::Options { edit_strict: true, ..haft_tools::Options::default() };
    let one = |change: Value| {
        let mut file = json!({"path": "a.txt"});
        file.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!({"files": [file]})
    };
    let edits = json!([{"old_text": "old", "new_text": "new"}]);
    let expect = Hash::of(b"old\n").to_string();
    for (tool, input) in [
        ("edit", replace("a.txt", "old", "new")),
        ("edit", one(json!({"edits": edits}))),
        ("edit", one(json!({"content": "new\n"}))),
        ("edit", one(json!({"delete": true}))),
        ("edit", one(json!({"move_to": "b.txt"}))),
        ("write", json!({"path": "a.txt", "content": "new\n"})),
    ] {
        let strict = || World::local(haft_tools::with(&options), [("a.txt", "old\n")]).unwrap();
        let world = strict();
        let shown = failed(&world, tool, input.clone()).await;
        assert!(shown.contains("a.txt was not read in this conversation"), "{input}: {shown}");
        assert!(shown.contains("edit.strict") && shown.contains("Read the file"), "{shown}");
        done(&world, "read", json!({"path": "a.txt"})).await;
        std::fs::write(world.folder().unwrap().join("a.txt"), "old\ntwo\n").unwrap();
        let shown = failed(&world, tool, input.clone()).await;
        assert!(shown.contains("a.txt changed since it was read"), "{input}: {shown}");
        assert!(shown.contains("Read the file"), "{shown}");
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), b"old\ntwo\n");
        done(&world, "read", json!({"path": "a.txt"})).await;
        done(&world, tool, input.clone()).await;
        // The hash of what is known stands for a read.
        let mut known = input;
        let at = if known["files"].is_array() { &mut known["files"][0] } else { &mut known };
        at["expect"] = json!(expect);
        done(&strict(), tool, known).await;
        // Of a new file nothing is lost.
        done(&world, "write", json!({"path": "new.txt", "content": "new\n"})).await;
    }
}

#[tokio::test]
async fn what_others_changed_since_the_file_was_read_is_shown() {
    let text = repeated(1..3001, |n| format!("line {n}\n"));
    let world = local(&[("a.txt", text.as_bytes()), ("b.txt", text.as_bytes())]);
    let write = |name: &str, text: &str| {
        std::fs::write(world.folder().unwrap().join(name), text).unwrap();
    };
    done(&world, "read", json!({"path": "a.txt", "offset": -1})).await;
    write("a.txt", &text.replace("line 7\n", "line seven\n"));
    let shown = done(&world, "edit", replace("a.txt", "line 2999", "x")).await;
    assert!(shown.contains("had changed since it was read; besides this edit:\n"), "{shown}");
    assert!(shown.contains("7 - line 7\n7 + line seven\n"), "{shown}");
    assert!(shown.contains("\n]\n"), "the note ends on a line of its own: {shown}");
    // What the edit left is what was seen then; what a write left, too.
    let now = String::from_utf8(world.read_bytes("a.txt").await.unwrap().unwrap()).unwrap();
    write("a.txt", &now.replace("line 9\n", ""));
    let shown = done(&world, "edit", replace("a.txt", "line 3000", "y")).await;
    assert!(shown.contains("9 - line 9\n") && !shown.contains("seven"), "{shown}");
    done(&world, "write", json!({"path": "c.txt", "content": "one\ntwo\n"})).await;
    write("c.txt", "1\ntwo\n");
    let shown = done(&world, "edit", replace("c.txt", "two", "2")).await;
    assert!(shown.contains("1 - one\n1 + 1\n"), "{shown}");
    // More than is shown is said to be more.
    done(&world, "read", json!({"path": "b.txt", "limit": 3})).await;
    write("b.txt", &text.replace("line 1", "l 1"));
    let shown = done(&world, "edit", replace("b.txt", "line 2999", "x")).await;
    assert!(shown.contains("1 + l 1\n") && shown.contains("read the rest again"), "{shown}");
    assert!(shown.len() < 8_000, "{}", shown.len());
}

#[tokio::test]
async fn what_a_tolerance_brings_into_a_file_is_told() {
    let world = memory(&[("a.txt", "say “so” now\nclass A:\n        x = 1\n".as_bytes())]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    let edit = replace("a.txt", "say \"so\" now", "say \"no\"\u{a0}now\u{2014}");
    let text = done(&world, "edit", edit).await;
    assert!(
        text.contains("new_text of edit 1 brings in U+00A0 (no-break space), U+2014"),
        "{text}"
    );
    assert!(text.contains("+ say “no”\u{a0}now\u{2014}"), "{text}");
    let edit = replace("a.txt", "class A:\n    x = 1\n", "class A:\n    y\n");
    failed(&world, "edit", edit).await;
    let edit = replace("a.txt", "    class A:\n            x = 1\n", "class A:\n        y\n");
    let text = done(&world, "edit", edit).await;
    assert!(text.contains("edit 1 matched with a tolerance: indentation"), "{text}");
    assert!(text.contains("3 +         y"), "{text}");
}

#[tokio::test]
async fn an_edit_that_can_be_meant_in_two_ways_is_shown_in_both() {
    let before = "class A:\n        x = 1\n";
    let world = memory(&[("a.txt", before.as_bytes())]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    let text = failed(&world, "edit", replace("a.txt", "    x = 1\n", "    x = 1\n    y\n")).await;
    for part in [
        "a.txt was not changed. Edit 1: old_text begins inside the indentation of line 2",
        "two ways",
        "old_text as it is in the file:\n```\n        x = 1\n```\n",
        "new_text as it was given:\n```\n        x = 1\n    y\n```\n",
        ":\n```\n        x = 1\n        y\n```",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let (old, new) = ("        x = 1\n", "        x = 1\n        y\n");
    let text = done(&world, "edit", replace("a.txt", old, new)).await;
    assert!(!text.contains("tolerance") && text.contains("3 +         y"), "{text}");
}

#[tokio::test]
async fn all_edits_that_fail_are_told_at_once() {
    let world = memory(&[("a.txt", b"import os\nalpha\nbeta\n")]);
    done(&world, "read", json!({"path": "a.txt"})).await;
    let edit = |old: &str, new: &str| json!({"old_text": old, "new_text": new});
    let edits =
        [edit("import os", "import os\nimport sys"), edit("import sys", "x"), edit("gamma", "y")];
    let text = failed(&world, "edit", json!({"path": "a.txt", "edits": edits})).await;
    for told in
        ["a.txt was not changed", "Edit 2: ", "in new_text of edit 1", "Edit 3: old_text was"]
    {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[tokio::test]
async fn text_of_a_notebook_as_read_shows_it_leads_to_its_cell() {
    let cell = |id: &str, source: &[&str]| json!({"cell_type": "code", "id": id, "metadata": {}, "outputs": [], "source": source});
    let notebook = json!({"cells": [cell("one", &["z = 0"]), cell("two", &["a = 1\n", "b = 2"])],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let text = serde_json::to_string_pretty(&notebook).unwrap();
    let world = memory(&[("a.ipynb", text.as_bytes())]);
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    for old in ["a = 1\nb = 2", "a = 1\nb = 2\n", "a = 1\nb = 3", "     1\ta = 1\n     2\tb = 2"] {
        let text = failed(&world, "edit", replace("a.ipynb", old, "c")).await;
        assert!(text.contains("notebook_edit") && text.contains("cell 2"), "{old}: {text}");
    }
}

#[tokio::test]
async fn what_a_new_text_may_not_have_meant_is_told() {
    let file = b"a = 1\nb = 2\nc = 3\nd\n";
    for (old, new, says) in [
        ("b = 2", "```py\nb = 4\n```", "new_text of edit 1 stands between fences"),
        ("b = 2", "+b = 4\n+\n+e = 5", "begins with +"),
        ("b = 2", "+b = 4", "begins with +"),
        ("b = 2\n", "b = 4", "\"c = 3\" now stands on the line where new_text ends"),
        ("= 2\n", "", "\"c = 3\" now stands on the line"),
        ("a = 1\nb = 2\n", "a = 1\nb = 4", "\"c = 3\" now stands on the line"),
    ] {
        let world = local(&[("a.py", file)]);
        let shown = done(&world, "edit", replace("a.py", old, new)).await;
        assert!(shown.contains(says), "{old:?}: {shown}");
    }
    for (file, old, new) in [
        ("b = 2\nc\n", "b = 2\n", "b = 3\n"),
        ("b = 2\nc\n", "b = 2\n", ""),
        ("b = 2\n", "b = 2\n", "b = 3"),
        ("b = 2\n\nc\n", "b = 2\n", "b = 3"),
        ("x\n```\nb\n```\n", "x", "```\nz\n```"),
        ("+a\n+b\n", "+a", "+c"),
        ("i = 1\n", "i = 1", "++i;"),
        ("a\rb\r", "a\r", "c\r"),
    ] {
        let world = local(&[("a.py", file.as_bytes())]);
        let shown = done(&world, "edit", replace("a.py", old, new)).await;
        assert!(!shown.contains("new_text"), "{old:?}: {shown}");
    }
}

#[tokio::test]
async fn a_path_with_other_slashes_or_from_the_root_is_named_as_it_is() {
    let world = local(&[("src/deep/app.py", b"x\n")]);
    for path in ["src\\deep\\app.py", "/src/deep/app.py", "\\src\\deep\\app.py"] {
        for (tool, input) in [("edit", replace(path, "x", "y")), ("read", json!({"path": path}))] {
            let shown = failed(&world, tool, input).await;
            assert!(shown.contains("Did you mean src/deep/app.py?"), "{tool} {path}: {shown}");
        }
    }
    // Nothing is made up where that is not there either.
    let shown = failed(&world, "read", json!({"path": "src\\deep\\other.py"})).await;
    assert!(!shown.contains("src/deep/other.py?"), "{shown}");
}
