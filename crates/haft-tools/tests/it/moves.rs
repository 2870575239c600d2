//! `move_to` of edit: a file gets another name with all that it is, alone or with a new content,
//! and only where nothing is.

use std::{
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    sync::Arc,
};

use haft_host::{FsOp, Memory, WriteHow};
use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_tool::Undo;
use haft_types::{
    Access, Follow, Hash, HostPath, Outcome, ReceiptAction, Shape, Status, Style, Target,
};
use serde_json::{Value, json};

use crate::{both, done, failed, fits, local, memory};

const FILES: &[(&str, &[u8])] =
    &[("a.txt", b"one\ntwo\n"), ("b.txt", b"one\r\ntwo\r\n"), ("sub/c.bin", b"\0\xff\x01")];

fn files(entries: Value) -> Value {
    Value::Object([("files".to_owned(), entries)].into_iter().collect())
}

fn to(path: &str, new: &str) -> Value {
    files(json!([{"path": path, "move_to": new}]))
}

/// All files with what they hold.
async fn tree(world: &World) -> Vec<(String, Vec<u8>)> {
    let all = world.files().await.unwrap().into_iter();
    all.filter(|(name, _)| !name.ends_with('/')).collect()
}

async fn holds(world: &World, name: &str) -> Option<String> {
    world.read_bytes(name).await.unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn a_move_that_is_made_again_says_so() {
    for world in both(FILES) {
        for input in [
            to("a.txt", "new.txt"),
            files(json!([{"path": "b.txt", "move_to": "n", "content": "new\n"}])),
        ] {
            done(&world, "edit", input.clone()).await;
            let before = tree(&world).await;
            let text = failed(&world, "edit", input).await;
            assert!(text.contains("the move seems to be made already"), "{text}");
            assert!(text.contains("Nothing was changed."), "{text}");
            assert_eq!(tree(&world).await, before);
        }
        let text = failed(&world, "edit", to("a.txt", "other")).await;
        assert!(text.contains("there is no file a.txt") && !text.contains("already"), "{text}");
        let text = failed(&world, "edit", to("new.txt", "n")).await;
        assert!(text.contains("it is already there"), "{text}");
    }
}

#[tokio::test]
async fn one_file_may_stand_without_a_list() {
    for world in both(FILES) {
        let edit = json!({"old_text": "two", "new_text": "2"});
        for path in ["a.txt", "b.txt"] {
            done(&world, "read", json!({ "path": path })).await;
        }
        for (input, told) in [
            (json!({"path": "a.txt", "move_to": "m.txt"}), "Moved a.txt to m.txt."),
            (
                json!({"file_path": "m.txt", "edits": [edit], "moveTo": "a.txt", "delete": false}),
                "Moved m.txt to a.txt.\na.txt: 1 place",
            ),
            (
                json!({"path": "b.txt", "old_string": "two", "new_string": "2", "new_path": "n"}),
                "Moved b.txt to n.\nn: 1 place",
            ),
            (json!({"path": "a.txt", "content": "all new\n"}), "Replaced a.txt"),
            (json!({"path": "a.txt", "delete": "true"}), "Deleted a.txt"),
        ] {
            let text = done(&world, "edit", input.clone()).await;
            assert!(text.starts_with(told) && !text.contains("ignored"), "{input}: {text}");
        }
        let wanted = [("n", &b"one\r\n2\r\n"[..]), ("sub/c.bin", b"\0\xff\x01")];
        assert_eq!(tree(&world).await, wanted.map(|(name, text)| (name.to_owned(), text.to_vec())));
        for (input, told) in [
            (json!({"path": "n", "move_to": "sub/c.bin"}), "sub/c.bin"),
            (json!({"path": "n", "move_to": "m", "expect": "0".repeat(64)}), "was expected"),
            (json!({"path": "n", "delete": true, "files": [{"path": "sub/c.bin"}]}), "beside path"),
            (json!({"path": "n", "delete": false}), "edits is missing"),
            (json!({"path": "n", "edits": [edit], "content": "x"}), "more than one of edits"),
            (json!({"delete": true}), "path"),
        ] {
            let text = failed(&world, "edit", input).await;
            assert!(text.contains(told), "{told}: {text}");
        }
    }
}

#[tokio::test]
async fn files_are_moved_alone_with_edits_and_with_a_new_content() {
    for world in both(FILES) {
        done(&world, "read", json!({"path": "a.txt"})).await;
        let before = tree(&world).await;
        let input = files(json!([
            {"path": "a.txt", "move_to": "new/deep/a.md",
             "edits": [{"old_text": "two", "new_text": "2"}]},
            {"path": "b.txt", "move_to": "sub/b.txt", "content": "all\nnew\n"},
            {"path": "sub/c.bin", "move_to": "c.bin"},
        ]));
        let outcome = world.call("edit", input).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status, Status::Done, "{text}");
        fits(&world, "edit", &outcome);
        for told in [
            "Edited 3 files together.",
            "Moved a.txt to new/deep/a.md.\nnew/deep/a.md: 1 place replaced, the first at line 2.",
            "2 + 2",
            "Moved b.txt to sub/b.txt.\nReplaced sub/b.txt (2 lines, 10 bytes).",
            "Moved sub/c.bin to c.bin.",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
        let wanted: [(&str, &[u8]); 3] = [
            ("c.bin", b"\0\xff\x01"),
            ("new/deep/a.md", b"one\n2\n"),
            ("sub/b.txt", b"all\r\nnew\r\n"),
        ];
        let wanted = wanted.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(tree(&world).await, wanted);

        moves_are_told(&world, &outcome);
        // What the conversation has seen it knows under the new name, too; what not, not.
        done(
            &world,
            "edit",
            json!({"path": "new/deep/a.md", "edits": [
            {"old_text": "one ", "new_text": "eins "}]}),
        )
        .await;
        take_back(&world).await;
        assert_eq!(tree(&world).await, before);
    }
}

/// Data, detail and receipts of the moves above name both names.
fn moves_are_told(world: &World, outcome: &Outcome) {
    let data = &outcome.data.as_ref().unwrap()["files"];
    let ends = |value: &Value, end: &str| value.as_str().unwrap().ends_with(end);
    assert!(ends(&data[0]["path"], "/new/deep/a.md") && ends(&data[0]["moved_from"], "/a.txt"));
    assert_eq!(data[0]["hash_before"], json!(Hash::of(b"one\ntwo\n")));
    assert_eq!(data[2]["hash_before"], data[2]["hash_after"], "{data}");
    assert_eq!((&data[2]["file_size"], data[2].get("diff")), (&json!(3), None), "{data}");
    let Shape::Many { details } = outcome.detail.clone().unwrap().shape else { panic!("many") };
    let Shape::Diff { path, from, hunks, .. } = &details[0].shape else { panic!("a diff") };
    assert!(path.text().ends_with("/new/deep/a.md") && hunks.len() == 1);
    assert!(from.as_ref().unwrap().text().ends_with("/a.txt"));

    let [edited, written, kept] = &outcome.receipts[..] else { panic!("{outcome:?}") };
    for (receipt, from, new) in [
        (edited, "a.txt", "new/deep/a.md"),
        (written, "b.txt", "sub/b.txt"),
        (kept, "sub/c.bin", "c.bin"),
    ] {
        let [from, new] = [from, new].map(|name| world.root.join(name).unwrap());
        assert_eq!((&receipt.path, &receipt.action), (&new, &ReceiptAction::Renamed { from }));
        assert_eq!(receipt.pre_image.is_some(), receipt.before != receipt.after);
        assert_eq!(receipt.rights.as_ref().map(|rights| rights.mode), Some(0o644));
    }
    assert_eq!((edited.ranges.as_slice(), edited.made.len()), ([(4, 7)].as_slice(), 2));
}

/// Takes everything back that the world's calls did.
async fn take_back(world: &World) {
    let receipts = world.recorder.bodies().into_iter().filter_map(|body| match body {
        haft_types::Body::CallEnded { outcome, .. } => Some(outcome.receipts),
        _ => None,
    });
    let mut receipts: Vec<_> = receipts.flatten().collect();
    receipts.reverse();
    let undo = Undo {
        host: &*world.host,
        queues: &world.session.queues,
        pre_images: world.session.pre_images(),
        forbids: &|_| None,
    };
    undo.take_back(&receipts, false).await.unwrap();
}

#[tokio::test]
async fn data_of_several_files_says_what_that_of_one_says() {
    for world in both(FILES) {
        let edits = json!([
            {"old_text": "\u{201c}one\u{201d}", "new_text": "1"},
            {"old_text": "two", "new_text": "2"},
        ]);
        let quoted = b"\"one\"\ntwo\n\"three\"\n";
        for name in ["one", "several"] {
            let fs = world.host.fs();
            let at = fs.locate(&world.root.join(name).unwrap(), Follow::Yes).await.unwrap();
            fs.write(&at, quoted.to_vec().into(), WriteHow::default()).await.unwrap();
            done(&world, "read", json!({"path": name})).await;
        }
        let one = world.call("edit", json!({"path": "one", "edits": edits})).await;
        let several = files(json!([{"path": "several", "edits": edits},
            {"path": "a.txt", "content": "x\n"}, {"path": "b.txt", "delete": true}]));
        let several = world.call("edit", several).await;
        fits(&world, "edit", &several);
        let (one, several) = (one.data.unwrap(), several.data.unwrap());
        let first = several["files"][0].as_object().unwrap();
        assert_eq!(one["tolerance"], json!("Unicode forms"), "{one}");
        for (name, value) in one.as_object().unwrap().iter().filter(|(name, _)| *name != "path") {
            assert_eq!(first.get(name), Some(value), "{name}");
        }
        assert_eq!(first.len(), one.as_object().unwrap().len(), "{first:?}");
        assert_eq!(several["files"][1]["file_size"], json!(2), "{several}");
        assert!(several["files"][2].get("file_size").is_none(), "{several}");
    }
}

#[tokio::test]
async fn what_is_there_is_never_moved_onto() {
    for world in both(FILES) {
        let before = tree(&world).await;
        for (new, told) in [
            ("b.txt", "a.txt cannot be moved to b.txt: it is already there"),
            ("sub", "a.txt cannot be moved to sub: a folder is there"),
            ("sub/", "Give the whole new path, as sub/a.txt."),
            ("new/", "names a folder by its end"),
            ("a.txt", "a.txt is to be moved to a.txt, where it is already"),
            ("./sub/../a.txt", "where it is already"),
            ("a.txt/b", "not a directory"),
            ("", "path is empty"),
        ] {
            let text = failed(&world, "edit", to("a.txt", new)).await;
            assert!(text.contains(told) || text.contains("is not a folder"), "{new}: {text}");
            assert_eq!(tree(&world).await, before, "{new}");
        }
        for (path, told) in [
            ("none", "there is no file none"),
            ("sub", "sub is a folder; only regular files are moved"),
        ] {
            let text = failed(&world, "edit", to(path, "new")).await;
            assert!(text.contains(told), "{path}: {text}");
        }
        let text = failed(
            &world,
            "edit",
            files(json!([
            {"path": "none", "move_to": "new", "content": "x"}])),
        )
        .await;
        assert!(text.contains("there is no file none"), "a move makes no file: {text}");
        assert_eq!(tree(&world).await, before);
    }
}

#[tokio::test]
async fn a_name_stands_once_in_a_call() {
    for world in both(FILES) {
        let before = tree(&world).await;
        let entry = |path: &str, new: &str| json!({"path": path, "move_to": new});
        for (entries, told) in [
            (
                json!([entry("a.txt", "n"), entry("b.txt", "n")]),
                "n stands twice in files, as the move_to of 1 and as the move_to of 2",
            ),
            (
                json!([entry("a.txt", "b.txt"), entry("b.txt", "n")]),
                "b.txt stands twice in files, as the move_to of 1 and as 2",
            ),
            (
                json!([entry("a.txt", "b.txt"), entry("b.txt", "a.txt")]),
                "b.txt stands twice in files, as the move_to of 1 and as 2",
            ),
            (
                json!([entry("a.txt", "n"), {"path": "a.txt", "content": "x"}]),
                "a.txt stands twice in files, as 1 and as 2",
            ),
            (
                json!([{"path": "b.txt", "delete": true}, entry("a.txt", "./b.txt")]),
                "b.txt and ./b.txt, 1 and the move_to of 2 of files, are one file",
            ),
            (json!([{"path": "a.txt", "delete": true, "move_to": "n"}]), "delete beside move_to"),
        ] {
            let text = failed(&world, "edit", files(entries)).await;
            assert!(text.contains(told), "{told}: {text}");
            assert_eq!(tree(&world).await, before, "{told}");
        }
    }
}

#[tokio::test]
async fn a_link_is_not_moved_and_links_above_are_followed() {
    let world = local(FILES);
    let folder = world.folder().unwrap();
    symlink("a.txt", folder.join("link")).unwrap();
    symlink("nowhere", folder.join("broken")).unwrap();
    symlink("sub", folder.join("way")).unwrap();
    std::fs::hard_link(folder.join("a.txt"), folder.join("second")).unwrap();
    for (path, new, told) in [
        ("link", "n", "link is a link; only regular files are moved"),
        ("a.txt", "link", "a.txt cannot be moved to link: a link is there"),
        ("a.txt", "broken", "a.txt cannot be moved to broken: a link is there"),
        ("a.txt", "second", "a.txt cannot be moved to second: it is already there"),
    ] {
        let text = failed(&world, "edit", to(path, new)).await;
        assert!(text.contains(told) && text.contains("Nothing was changed"), "{told}: {text}");
    }
    let text = failed(
        &world,
        "edit",
        files(json!([
        {"path": "a.txt", "move_to": "way/n"}, {"path": "b.txt", "move_to": "sub/n"}])),
    )
    .await;
    assert!(text.contains("way/n and sub/n, the move_to of 1 and the move_to of 2"), "{text}");
    let text = done(&world, "edit", to("way/c.bin", "way/n")).await;
    assert!(text.contains("Moved sub/c.bin to sub/n.\n[way/n leads to "), "{text}");
    assert!(folder.join("sub/n").exists() && folder.join("way").is_symlink());
}

#[tokio::test]
async fn all_that_a_file_is_goes_along() {
    let world = local(FILES);
    let folder = world.folder().unwrap();
    let path = folder.join("a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    done(&world, "edit", to("a.txt", "new/a")).await;
    let after = std::fs::metadata(folder.join("new/a")).unwrap();
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()), "it is renamed");
    let edits = json!([{"old_text": "two", "new_text": "2"}]);
    let entry = json!([{"path": "new/a", "move_to": "b", "edits": edits}]);
    done(&world, "edit", files(entry)).await;
    assert_eq!(std::fs::metadata(folder.join("b")).unwrap().mode(), before.mode());
    take_back(&world).await;
    assert_eq!(std::fs::metadata(&path).unwrap().mode(), before.mode());
    assert!(!folder.join("new").exists(), "the folder that was made goes with it");
}

#[tokio::test]
async fn a_file_of_any_size_is_moved_and_moved_back() {
    let world = local(FILES);
    let folder = world.folder().unwrap();
    let big = std::fs::File::create(folder.join("big")).unwrap();
    big.set_len(70 << 20).unwrap();
    let outcome = world.call("edit", to("big", "moved")).await;
    let text = outcome.joined_text();
    assert!(outcome.status == Status::Done && !text.contains("cannot be undone"), "{text}");
    assert!(!folder.join("big").exists() && folder.join("moved").exists());
    take_back(&world).await;
    assert!(folder.join("big").exists() && !folder.join("moved").exists());
}

#[tokio::test]
async fn what_others_changed_is_moved_along_but_not_known() {
    for world in both(FILES) {
        done(&world, "read", json!({"path": "a.txt"})).await;
        let write = async |text: &str| {
            let fs = world.host.fs();
            let at = fs.locate(&world.root.join("a.txt").unwrap(), Follow::Yes).await.unwrap();
            fs.write(&at, text.to_owned().into(), WriteHow::default()).await.unwrap();
        };
        write("theirs\n").await;
        let expect = |hash: Hash| files(json!([{"path": "a.txt", "move_to": "n", "expect": hash}]));
        let text = failed(&world, "edit", expect(Hash::of(b"one\ntwo\n"))).await;
        assert!(text.contains("was expected"), "{text}");
        let text = failed(
            &world,
            "edit",
            files(json!([
            {"path": "a.txt", "move_to": "n", "content": "x"}])),
        )
        .await;
        assert!(text.contains("changed since it was read"), "{text}");
        let text = done(&world, "edit", to("a.txt", "n")).await;
        assert!(text.contains("the file had changed since it was read"), "{text}");
        assert_eq!(holds(&world, "n").await.unwrap(), "theirs\n");
        done(&world, "edit", to("n", "m")).await;
        // Never read: only what is there exactly and once is edited.
        let edits = json!([{"old_text": "theirs  ", "new_text": "ours"}]);
        let text = failed(&world, "edit", json!({"path": "m", "edits": edits})).await;
        assert!(text.contains("was not read in this conversation"), "{text}");
    }
}

#[tokio::test]
async fn both_names_are_judged() {
    for (rule, input, status) in [
        ("Edit(sub/**)", to("a.txt", "sub/n"), Status::Denied),
        ("Edit(a.txt)", to("a.txt", "n"), Status::Denied),
        ("Read(a.txt)", to("a.txt", "n"), Status::Denied),
        ("Edit(b.txt)", to("a.txt", "n"), Status::Done),
    ] {
        let world = memory(FILES);
        world.mode(Mode::AcceptEdits);
        world.rule(Verdict::Deny, rule);
        let before = tree(&world).await;
        let outcome = world.call("edit", input).await;
        assert_eq!(outcome.status, status, "{rule}: {}", outcome.joined_text());
        assert_eq!(tree(&world).await == before, status == Status::Denied, "{rule}");
    }
    // Out of the workspace it needs a yes, also where the link that leads there has another name.
    let world = local(FILES);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), world.folder().unwrap().join("way")).unwrap();
    world.mode(Mode::DontAsk);
    world.rule(Verdict::Allow, "Edit(./**)");
    let text = outside.path().join("n");
    for new in [text.to_str().unwrap(), "way/n"] {
        let outcome = world.call("edit", to("a.txt", new)).await;
        assert_eq!(outcome.status, Status::Denied, "{new}: {}", outcome.joined_text());
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    done(&world, "edit", to("a.txt", "n")).await;
}

#[tokio::test]
async fn the_plan_of_a_move_names_both_names() {
    let world = memory(FILES);
    let text = done(&world, "edit", to("a.txt", "sub/n")).await;
    assert_eq!(text, "Moved a.txt to sub/n.");
    let plan = world.recorder.bodies().into_iter().find_map(|body| match body {
        haft_types::Body::CallStarted { plan, .. } => plan,
        _ => None,
    });
    let plan = plan.unwrap();
    assert_eq!(plan.title, "Moving a.txt to sub/n");
    let told: Vec<_> = plan
        .effects
        .iter()
        .map(|effect| match &effect.target {
            Target::Path { path, follow } => (path.text(), effect.access, *follow),
            other => panic!("{other:?}"),
        })
        .collect();
    let change = |path: &'static str| (path.into(), Access::Modify, Follow::No);
    assert_eq!(told, [change("/w/a.txt"), change("/w/sub/n")]);
}

#[tokio::test]
async fn where_one_fails_the_moved_ones_go_back() {
    let input = files(json!([
        {"path": "a.txt", "move_to": "new/a", "edits": [{"old_text": "two", "new_text": "2"}]},
        {"path": "b.txt", "move_to": "new/deep/b"},
        {"path": "c.txt", "content": "made\n"},
    ]));
    for (op, calls) in [(FsOp::Rename, 0), (FsOp::Rename, 1), (FsOp::Place, 0), (FsOp::Write, 1)] {
        let at = |path: &str| format!("/w/{path}");
        let all = FILES.iter().map(|(path, text)| (at(path), text.to_vec()));
        let host = Arc::new(Memory::with_files(all).unwrap());
        let root = HostPath::new(b"/w", Style::Posix).unwrap();
        let world = World::on(host.clone(), root, haft_tools::builtin());
        let before = world.files().await.unwrap();
        host.fail_after(op, calls, io::ErrorKind::StorageFull.into());
        let outcome = world.call("edit", input.clone()).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status, Status::Failed, "{op:?} {calls}: {text}");
        assert!(outcome.receipts.is_empty(), "{op:?} {calls}: {outcome:?}");
        assert_eq!(world.files().await.unwrap(), before, "{op:?} {calls}: {text}");
        done(&world, "edit", input.clone()).await;
        take_back(&world).await;
        assert_eq!(world.files().await.unwrap(), before, "{op:?} {calls}");
    }
}

#[tokio::test]
async fn other_names_of_move_to_are_taken() {
    for name in ["moveTo", "new_path", "newPath", "rename_to"] {
        let world = memory(FILES);
        done(&world, "edit", files(json!([{"path": "a.txt", name: "n"}]))).await;
        assert_eq!(holds(&world, "n").await.unwrap(), "one\ntwo\n", "{name}");
    }
}
