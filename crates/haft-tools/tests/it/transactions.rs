//! Edits of several files together: all of them or none, whatever is wrong with one.

use std::{io, sync::Arc};

use haft_host::{FsOp, Memory};
use haft_testkit::world::World;
use haft_types::{Body, HostPath, ReceiptAction, Shape, Status, Style};
use serde_json::{Value, json};

use crate::{both, done, failed, fits, local, memory};

const FILES: &[(&str, &[u8])] =
    &[("a.txt", b"one\ntwo\n"), ("b.txt", b"one\r\ntwo\r\n"), ("sub/c.txt", b"one\nthree\n")];

fn file(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

fn all(files: &[Value]) -> Value {
    json!({ "files": files })
}

/// A world in memory that the test can tell to fail.
fn failing(files: &[(&str, &[u8])]) -> (World, Arc<Memory>) {
    let at = |path: &str| format!("/w/{path}");
    let files = files.iter().map(|(path, text)| (at(path), text.to_vec()));
    let host = Arc::new(Memory::with_files(files).unwrap());
    let root = HostPath::new(b"/w", Style::Posix).unwrap();
    (World::on(host.clone(), root, haft_tools::builtin()), host)
}

async fn texts(world: &World) -> Vec<(String, String)> {
    let files = world.files().await.unwrap().into_iter();
    files
        .filter(|(name, _)| !name.ends_with('/'))
        .map(|(name, text)| (name, String::from_utf8(text).unwrap()))
        .collect()
}

#[tokio::test]
async fn whatever_is_wrong_with_one_it_is_said_that_none_was_changed() {
    let long = "x".repeat(5_000);
    for wrong in [
        file("b.txt", "seven", "7"),
        file("missing.txt", "one", "1"),
        file("sub", "one", "1"),
        file("a.txt", "two", "2"),
        file("a.txt/below", "two", "2"),
        file(&long, "two", "2"),
        file("", "two", "2"),
        json!({"path": "b.txt"}),
        json!({"path": "b.txt", "delete": true, "move_to": "d.txt"}),
        json!({"path": "b.txt", "delete": true, "content": "x"}),
        json!({"path": "b.txt", "move_to": "sub/c.txt"}),
        json!({"path": "b.txt", "move_to": "b.txt"}),
        json!({"path": "sub", "move_to": "dub"}),
        json!({"path": "sub", "delete": true}),
        json!({"path": "missing.txt", "delete": true}),
        json!({"path": "b.txt", "content": "x", "expect": "0".repeat(64)}),
        json!({"path": "b.txt", "content": "x", "expect": "none"}),
        json!({"path": "b.txt", "content": "a\0b"}),
        json!({"path": "link", "move_to": "other"}),
    ] {
        let world = local(FILES);
        let root = world.folder().unwrap();
        std::os::unix::fs::symlink("a.txt", root.join("link")).unwrap();
        let before = texts(&world).await;
        let outcome = world.call("edit", all(&[file("a.txt", "one", "1"), wrong.clone()])).await;
        assert_ne!(outcome.status, Status::Done, "{wrong}");
        let text = outcome.joined_text();
        let says = ["Nothing was changed", "None of the 2 files was changed."];
        assert!(says.iter().any(|one| text.contains(one)), "{wrong}: {text}");
        assert_eq!(texts(&world).await, before, "{wrong}");
    }
}

#[tokio::test]
async fn all_files_change_and_each_is_told_with_its_receipt() {
    for world in both(FILES) {
        let input = all(&[
            file("sub/c.txt", "three", "3"),
            file("a.txt", "two", "2"),
            file("b.txt", "two", "2"),
        ]);
        let outcome = world.call("edit", input).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        fits(&world, "edit", &outcome);
        let text = outcome.joined_text();
        assert!(text.starts_with("Edited 3 files together.\n"), "{text}");
        for told in ["sub/c.txt: 1 place replaced, the first at line 2.", "2 + 3", "a.txt: 1 place"]
        {
            assert!(text.contains(told), "{told}: {text}");
        }
        let wanted = [("a.txt", "one\n2\n"), ("b.txt", "one\r\n2\r\n"), ("sub/c.txt", "one\n3\n")];
        let wanted = wanted.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(texts(&world).await, wanted);

        let data = outcome.data.unwrap();
        let told: Vec<_> = data["files"].as_array().unwrap().iter().collect();
        assert_eq!(told.len(), 3);
        assert!(told[1]["path"].as_str().unwrap().ends_with("/a.txt"), "{data}");
        let Shape::Many { details } = outcome.detail.unwrap().shape else { panic!("several") };
        assert!(details.iter().all(|detail| matches!(detail.shape, Shape::Diff { .. })));
        assert_eq!(outcome.receipts.len(), 3);
        for receipt in &outcome.receipts {
            let kept = receipt.pre_image.as_ref().unwrap();
            assert_eq!(Some(kept.hash), receipt.before);
            assert_ne!(receipt.after, receipt.before);
            let old = world.session.pre_images().get(kept).unwrap();
            assert!(old.starts_with(b"one"), "{old:?}");
        }
        // What the conversation made it has seen: the next edit needs no reading.
        done(&world, "edit", all(&[file("a.txt", "2", "zwei"), file("b.txt", "2", "zwei")])).await;
    }
}

#[tokio::test]
async fn files_that_hold_their_new_content_already_are_not_told_as_changed() {
    for world in both(FILES) {
        let same = |path: &str, content: &str| json!({"path": path, "content": content});
        let a = same("a.txt", "one\ntwo\n");
        let text = done(&world, "edit", all(&[a.clone(), same("n.txt", "new\n")])).await;
        assert!(
            text.starts_with("Edited 1 of 2 files; the rest is the same.\na.txt already"),
            "{text}"
        );
        assert!(text.contains("a.txt already has exactly this content"), "{text}");
        let outcome = world.call("edit", all(&[a, same("n.txt", "new\n")])).await;
        let text = outcome.joined_text();
        assert!(text.starts_with("a.txt already has") && !text.contains("Edited"), "{text}");
        assert!(
            text.contains("\nn.txt already has exactly") && outcome.receipts.is_empty(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn one_bad_edit_and_nothing_changes() {
    for world in both(FILES) {
        let before = texts(&world).await;
        for (bad, told) in [
            (file("sub/c.txt", "four", "4"), "sub/c.txt was not changed. Edit 1"),
            (file("none.txt", "one", "1"), "none.txt"),
            (file("sub", "one", "1"), "folder"),
            (
                json!({"path": "sub/c.txt", "expect": "0".repeat(64),
                       "edits": [{"old_text": "three", "new_text": "3"}]}),
                "was expected",
            ),
            (file("sub/c.txt", "three", "t\u{0}"), "new_text of edit 1 of file 3"),
            (json!({"path": "sub/c.txt", "edits": []}), "edits"),
        ] {
            let good = [file("a.txt", "two", "2"), file("b.txt", "two", "2")];
            let text = failed(&world, "edit", all(&[&good[..], &[bad]].concat())).await;
            assert!(text.contains(told), "{told}: {text}");
            assert_eq!(texts(&world).await, before, "{told}");
        }
        let text =
            failed(&world, "edit", all(&[file("a.txt", "two", "2"), file("b.txt", "x", "")])).await;
        assert!(text.contains("None of the 2 files was changed."), "{text}");
    }
}

#[tokio::test]
async fn where_one_cannot_be_placed_those_before_it_are_put_back() {
    for fails in [0, 1, 2] {
        let (world, host) = failing(FILES);
        let before = texts(&world).await;
        host.fail_after(FsOp::Place, fails, io::ErrorKind::StorageFull.into());
        let input = all(&[
            file("a.txt", "two", "2"),
            file("b.txt", "two", "2"),
            file("sub/c.txt", "three", "3"),
        ]);
        let outcome = world.call("edit", input.clone()).await;
        assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
        let text = outcome.joined_text();
        let failed = ["a.txt", "b.txt", "sub/c.txt"][fails];
        assert!(text.contains(&format!("/w/{failed}: cannot be written")), "{text}");
        let back = format!("put back: {fails} file");
        assert_eq!(text.contains(&back), fails > 0, "{text}");
        assert!(outcome.receipts.is_empty(), "nothing is left to be undone: {outcome:?}");
        assert_eq!(texts(&world).await, before);
        done(&world, "edit", input).await;
        assert_ne!(texts(&world).await, before);
    }
}

#[tokio::test]
async fn what_cannot_be_put_back_is_named() {
    let (world, host) = failing(FILES);
    host.fail_after(FsOp::Place, 1, io::ErrorKind::StorageFull.into());
    // The one that writes the old content back.
    host.fail_after(FsOp::Write, 2, io::ErrorKind::PermissionDenied.into());
    let input = all(&[file("a.txt", "two", "2"), file("b.txt", "two", "2")]);
    let outcome = world.call("edit", input).await;
    let text = outcome.joined_text();
    assert_eq!(outcome.status, Status::Failed, "{text}");
    assert!(text.contains("/w/b.txt: cannot be written"), "{text}");
    assert!(text.contains("could not be put back: /w/a.txt (/w/a.txt: cannot be"), "{text}");
    assert_eq!(host.content("/w/a.txt").unwrap(), "one\n2\n");
    let [receipt] = &outcome.receipts[..] else { panic!("one is left: {outcome:?}") };
    assert_eq!(receipt.path.text(), "/w/a.txt");
    assert!(receipt.pre_image.is_some(), "so that it can be undone");
}

#[tokio::test]
async fn files_are_made_replaced_and_deleted_along() {
    for world in both(FILES) {
        let before = texts(&world).await;
        done(&world, "read", json!({"path": "b.txt"})).await;
        let input = |first: &str| {
            all(&[
                file("a.txt", first, "2"),
                json!({"path": "b.txt", "content": "all new\n"}),
                json!({"path": "new/deep/d.txt", "content": "made\n"}),
                json!({"path": "sub/c.txt", "delete": true}),
            ])
        };
        let text = failed(&world, "edit", input("nowhere")).await;
        assert!(text.contains("None of the 4 files was changed."), "{text}");
        assert_eq!(texts(&world).await, before);
        let outcome = world.call("edit", input("two")).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status, Status::Done, "{text}");
        fits(&world, "edit", &outcome);
        let deleted =
            "Deleted sub/c.txt (10 bytes).\n[the file was never read in this conversation]";
        for told in ["Replaced b.txt (", "Created new/deep/d.txt (", deleted] {
            assert!(text.contains(told), "{told}: {text}");
        }
        let wanted =
            [("a.txt", "one\n2\n"), ("b.txt", "all new\r\n"), ("new/deep/d.txt", "made\n")];
        let wanted = wanted.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(texts(&world).await, wanted);
        let deleted = &outcome.receipts[3];
        assert_eq!((deleted.after, deleted.action.clone()), (None, ReceiptAction::Deleted));
        let kept = deleted.pre_image.as_ref().unwrap();
        assert_eq!(world.session.pre_images().get(kept).unwrap(), "one\nthree\n");
        assert_eq!(outcome.receipts[2].made.len(), 2, "its folders go with it");
        let known = all(&[json!({"path": "b.txt", "delete": true})]);
        assert_eq!(done(&world, "edit", known).await, "Deleted b.txt (9 bytes).");
    }
}

#[tokio::test]
async fn what_is_wanted_of_a_file_is_said_once() {
    let world = local(FILES);
    std::os::unix::fs::symlink("a.txt", world.folder().unwrap().join("link")).unwrap();
    let before = texts(&world).await;
    done(&world, "read", json!({"path": "b.txt"})).await;
    std::fs::write(world.folder().unwrap().join("b.txt"), "changed\n").unwrap();
    for (entry, told) in [
        (
            json!({"path": "a.txt"}),
            "file 2 of files, a.txt, has neither edits, content, delete nor move_to",
        ),
        (json!({"path": "a.txt", "content": "x", "delete": true}), "more than one of edits"),
        (json!({"path": "a.txt", "content": "x\u{0}"}), "content of file 2"),
        (json!({"path": "link", "delete": true}), "is a link"),
        (json!({"path": "sub", "delete": true}), "is a folder"),
        (json!({"path": "none", "delete": true}), "there is no file none"),
        (json!({"path": "b.txt", "delete": true}), "b.txt changed since it was read"),
        (json!({"path": "b.txt", "content": "x"}), "b.txt changed since it was read"),
        (json!({"path": "a.txt", "delete": true, "expect": "0".repeat(64)}), "was expected"),
    ] {
        let text = failed(&world, "edit", all(&[file("sub/c.txt", "one", "1"), entry])).await;
        assert!(text.contains(told), "{told}: {text}");
    }
    std::fs::write(world.folder().unwrap().join("b.txt"), "one\r\ntwo\r\n").unwrap();
    assert_eq!(texts(&world).await, before);
}

#[tokio::test]
async fn one_file_under_two_names_is_refused() {
    let world = local(FILES);
    let folder = world.folder().unwrap();
    std::os::unix::fs::symlink("a.txt", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("sub", folder.join("way")).unwrap();
    std::fs::hard_link(folder.join("b.txt"), folder.join("hard")).unwrap();
    let before = texts(&world).await;
    for (first, then, told) in [
        ("a.txt", "a.txt", "a.txt stands twice in files, as 1 and as 2"),
        ("a.txt", "./sub/../a.txt", "are one file"),
        ("a.txt", "link", "a.txt and link, 1 and 2 of files, are one file"),
        ("sub/c.txt", "way/c.txt", "sub/c.txt and way/c.txt, 1 and 2 of files, are one file"),
        ("b.txt", "hard", "b.txt and hard, 1 and 2 of files, are one file"),
    ] {
        let text =
            failed(&world, "edit", all(&[file(first, "o", "0"), file(then, "n", "N")])).await;
        assert!(text.contains(told), "{told}: {text}");
        assert!(text.contains("Put all edits of a file into one entry"), "{text}");
        assert_eq!(texts(&world).await, before);
    }
}

#[tokio::test]
async fn one_file_or_several_but_not_both() {
    let world = memory(FILES);
    let edits = json!([{"old_text": "two", "new_text": "2"}]);
    for (input, told) in [
        (json!({}), "path and edits are missing"),
        (json!({"path": "a.txt"}), "edits is missing"),
        (json!({"edits": edits}), "path is missing"),
        (json!({"path": "a.txt", "files": [file("b.txt", "two", "2")]}), "stands beside"),
        (json!({"edits": edits, "files": [file("b.txt", "two", "2")]}), "stands beside"),
        (json!({"expect": "0".repeat(64), "files": [file("b.txt", "two", "2")]}), "expect"),
        (json!({"files": []}), "files"),
    ] {
        let text = failed(&world, "edit", input).await;
        assert!(text.contains(told), "{told}: {text}");
    }
    assert_eq!(
        world.recorder.bodies().iter().filter(|b| matches!(b, Body::Asked { .. })).count(),
        0
    );
}

#[tokio::test]
async fn fifty_files_change_together() {
    let names: Vec<String> = (0..50).map(|n| format!("d{}/f{n:02}.txt", n % 7)).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), b"old\nstays\n".as_slice())).collect();
    for world in both(&files) {
        let edits: Vec<Value> = names.iter().map(|name| file(name, "old", name)).collect();
        let text = done(&world, "edit", all(&edits)).await;
        assert!(text.starts_with("Edited 50 files together."), "{text:.200}");
        let found = texts(&world).await;
        assert_eq!(found.len(), 50);
        for (name, text) in found {
            assert_eq!(text, format!("{name}\nstays\n"));
        }
    }
}

#[tokio::test]
async fn calls_with_crossing_files_wait_for_each_other_and_lose_nothing() {
    let world = Arc::new(local(FILES));
    let mut calls = Vec::new();
    for number in 0..20 {
        let mut files = vec![
            file("a.txt", "one\n", &format!("one\na{number}\n")),
            file("b.txt", "one\r\n", &format!("one\r\nb{number}\r\n")),
        ];
        if number % 2 == 0 {
            files.reverse();
        }
        let world = world.clone();
        calls.push(tokio::spawn(async move { world.call("edit", all(&files)).await }));
    }
    for call in calls {
        let outcome = call.await.unwrap();
        assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    }
    let found = texts(&world).await;
    let numbers = |text: &str, mark: char| {
        let mut numbers: Vec<u32> =
            text.lines().filter_map(|line| line.strip_prefix(mark)?.parse().ok()).collect();
        let order = numbers.clone();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "{text}");
        order
    };
    assert_eq!(numbers(&found[0].1, 'a'), numbers(&found[1].1, 'b'), "one call after the other");
}

#[tokio::test]
async fn a_rule_about_one_file_holds_for_the_call() {
    for (rule, status) in
        [(haft_policy::Verdict::Deny, Status::Denied), (haft_policy::Verdict::Ask, Status::Denied)]
    {
        let world = memory(FILES);
        world.mode(haft_policy::Mode::AcceptEdits);
        world.rule(rule, "Edit(sub/**)");
        let before = texts(&world).await;
        let input = all(&[file("a.txt", "two", "2"), file("sub/c.txt", "three", "3")]);
        let outcome = world.call("edit", input).await;
        assert_eq!(outcome.status, status, "{outcome:?}");
        assert!(outcome.joined_text().contains("sub"), "{outcome:?}");
        assert_eq!(texts(&world).await, before);
    }
}

#[tokio::test]
async fn a_file_that_would_be_the_folder_of_another_is_told_with_both_names() {
    for world in both(&[("old.txt", b"old\n")]) {
        let content = |path: &str| json!({"path": path, "content": "x\n"});
        let moved = |to: &str| json!({"path": "old.txt", "move_to": to});
        for (first, then, names) in [
            (content("ff"), content("ff/g"), "ff and ff/g, 1 and 2 of files"),
            (content("gg/deep/g"), content("gg"), "gg/deep/g and gg, 1 and 2 of files"),
            (moved("hh"), content("hh/i"), "hh and hh/i, the move_to of 1 and 2 of files"),
        ] {
            let input = json!({"files": [content("other"), first, then]});
            let shown = failed(&world, "edit", input).await;
            let names = names.replace("2 of", "3 of").replace("1 and", "2 and");
            assert!(shown.contains(&names) && shown.contains("cannot both be files"), "{shown}");
            assert!(world.read_bytes("other").await.unwrap().is_none(), "{shown}");
        }
        // A name that only begins like another is no folder of it.
        let input = json!({"files": [content("a"), content("ab"), content("a.d/x")]});
        done(&world, "edit", input).await;
    }
}

#[tokio::test]
async fn all_files_that_fail_are_told_at_once() {
    let names: Vec<String> = (0..8).map(|number| format!("{number}.txt")).collect();
    let there: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), b"old\n".as_slice())).collect();
    for world in both(&there) {
        let edits: Vec<Value> = names.iter().map(|name| file(name, "old", "new")).collect();
        let mut two = edits.clone();
        (two[1], two[3]) = (file("1.txt", "gone", "x"), file("missing.txt", "old", "x"));
        let text = failed(&world, "edit", all(&two)).await;
        for told in ["1.txt was not changed. Edit 1", "missing.txt", "None of the 8 files was"] {
            assert!(text.contains(told), "{told}: {text}");
        }
        let every: Vec<Value> = names.iter().map(|name| file(name, "gone", "new")).collect();
        let text = failed(&world, "edit", all(&every)).await;
        assert!(text.contains("4.txt was not") && !text.contains("5.txt"), "{text}");
        assert!(text.contains("3 more files cannot be changed as asked either."), "{text}");
        assert!(texts(&world).await.iter().all(|(_, text)| text == "old\n"));
    }
}

#[tokio::test]
async fn a_moved_file_is_made_anew_in_a_call_of_its_own() {
    let world = memory(FILES);
    let entries =
        [json!({"path": "a.txt", "move_to": "d.txt"}), json!({"path": "a.txt", "content": "x"})];
    for entries in [entries.clone(), [entries[1].clone(), entries[0].clone()]] {
        let text = failed(&world, "edit", all(&entries)).await;
        assert!(text.contains("in a call of its own") && !text.contains("one entry"), "{text}");
    }
}
