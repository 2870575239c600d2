//! Taking changes back through the faces that made them, from outside.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use haft_types::Body;
use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    world::{Input, Ran, World, finish},
};

fn tool(world: &World, name: &str, input: &Value, more: &[&str]) -> Ran {
    let text = input.to_string();
    let mut arguments = vec!["tool", name, "--mode", "accept-edits", "--input", &text];
    arguments.extend(more);
    world.run(&arguments)
}

fn write(world: &World, path: &str, content: &str, more: &[&str]) {
    let ran = tool(world, "write", &json!({"path": path, "content": content}), more);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn edit(world: &World, path: &str, old: &str, new: &str, more: &[&str]) -> Ran {
    let edits = json!([{"old_text": old, "new_text": new}]);
    tool(world, "edit", &json!({"path": path, "edits": edits}), more)
}

#[test]
fn fewer_changes_than_were_asked_for_are_told() {
    let world = World::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        write(&world, name, "x\n", &[]);
    }
    let ran = world.run(&["undo", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("only 1 of 3 changes") && ran.err.contains("--session ID"), "{ran:?}");
    let ran = world.run(&["redo", "99"]);
    assert!(ran.err.contains("only 1 of 99 changes"), "{ran:?}");
    assert!(ran.err.contains("haft redo --session ID"), "{ran:?}");
    let ran = world.run(&["undo", "1"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn what_was_too_big_to_be_read_is_told_and_goes_by_force() {
    let world = World::new();
    let input = json!({"command": "truncate -s 1025M huge"}).to_string();
    let ran = world.run(&["tool", "bash", "--mode", "bypass", "--input", &input]);
    assert!(
        ran.out.contains("cannot be undone: huge (it has more than 1073741824 bytes"),
        "{ran:?}"
    );
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("huge is as the change left it, which was too big"), "{ran:?}");
    assert!(ran.err.contains("--force") && !ran.err.contains("someone else"), "{ran:?}");
    assert!(world.work().join("huge").exists());
    let ran = world.run(&["undo", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("removed huge") && !world.work().join("huge").exists(), "{ran:?}");
}

fn mode(world: &World, name: &str) -> u32 {
    fs::metadata(world.work().join(name)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn calls_from_the_shell_are_taken_back_and_made_again() {
    let world = World::new();
    world.file("a.txt", "one\r\ntwo\r\n");
    let path = world.work().join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(edit(&world, "a.txt", "two", "2", &[]).code, Some(0));
    let id = world.only_session();
    let same = ["--session", &*id];
    write(&world, "deep/er/new.sh", "echo\n", &same);
    fs::set_permissions(world.work().join("deep/er/new.sh"), fs::Permissions::from_mode(0o751))
        .unwrap();
    // Never read: what was there goes to undo.
    world.file("b.txt", "what was there\n");
    write(&world, "b.txt", "over\n", &same);

    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Took back c3") && ran.out.contains("changed b.txt"), "{ran:?}");
    assert_eq!(world.read("b.txt"), "what was there\n");
    let ran = world.run(&["undo", "2", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["calls"], json!(["c2", "c1"]), "{told}");
    assert!(!world.work().join("deep").exists(), "the folders go with the file");
    assert_eq!((world.read("a.txt").as_str(), mode(&world, "a.txt")), ("one\r\ntwo\r\n", 0o640));
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");

    let ran = world.run(&["redo", "3"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(world.read("a.txt"), "one\r\n2\r\n");
    assert_eq!((world.read("b.txt").as_str(), mode(&world, "a.txt")), ("over\n", 0o640));
    assert_eq!(world.read("deep/er/new.sh"), "echo\n");
    assert_eq!(mode(&world, "deep/er/new.sh"), 0o751);
    assert_eq!(world.run(&["redo"]).code, Some(1));
    // One call by its id, although it is not the last one.
    assert_eq!(world.run(&["undo", "c1"]).code, Some(0));
    assert_eq!(
        (world.read("a.txt").as_str(), world.read("b.txt").as_str()),
        ("one\r\ntwo\r\n", "over\n")
    );
    let ran = world.run(&["undo", "c1"]);
    assert!(ran.err.contains("taken back already"), "{ran:?}");
    let ran = world.run(&["undo", "c9"]);
    assert!(ran.code == Some(1) && ran.err.contains("c2 (write"), "{ran:?}");
    for wrong in ["0", "x", "c", "1.5"] {
        assert_eq!(world.run(&["undo", wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn moves_are_taken_back_and_made_again() {
    let world = World::new();
    let path = world.file("a.sh", "one\ntwo\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    world.file("b.bin", b"\0\xff");
    let inode = |name: &str| fs::metadata(world.work().join(name)).unwrap().ino();
    let b = inode("b.bin");
    let input = json!({"files": [
        {"path": "a.sh", "move_to": "bin/run/a.sh", "edits": [{"old_text": "two", "new_text": "2"}]},
        {"path": "b.bin", "move_to": "bin/b"},
    ]});
    let ran = tool(&world, "edit", &input, &[]);
    assert!(ran.code == Some(0) && ran.out.contains("Moved b.bin to bin/b."), "{ran:?}");
    let denied = ["--deny", "Edit(bin/**)"];
    let back = json!({"files": [{"path": "bin/b", "move_to": "b.bin"}]});
    assert!(tool(&world, "edit", &back, &denied).out.contains("Edit(bin/**)"));

    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for told in ["  moved bin/run/a.sh to a.sh\n", "  moved bin/b to b.bin\n"] {
        assert!(ran.out.contains(told), "{told}: {ran:?}");
    }
    assert_eq!((world.read("a.sh").as_str(), mode(&world, "a.sh")), ("one\ntwo\n", 0o751));
    assert!(inode("b.bin") == b && !world.work().join("bin").exists());
    let ran = world.run(&["redo", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    let file = told["files"].as_array().unwrap().iter().find(|file| file["did"] == "moved");
    assert!(file.is_some_and(|file| file["from"].is_string() && file["kept"] == true), "{told}");
    assert_eq!((world.read("bin/run/a.sh").as_str(), inode("bin/b")), ("one\n2\n", b));
    assert_eq!(mode(&world, "bin/run/a.sh"), 0o751);

    // What stands under the old name now is not replaced unasked.
    world.file("b.bin", "mine");
    let ran = world.run(&["undo"]);
    assert!(ran.code == Some(1) && ran.err.contains("b.bin was changed since"), "{ran:?}");
    assert_eq!((world.read("b.bin").as_str(), inode("bin/b")), ("mine", b));
    fs::remove_file(world.work().join("b.bin")).unwrap();
    world.settings("permissions.deny = [\"Edit(b.bin)\"]\n");
    let ran = world.run(&["undo"]);
    assert!(ran.code == Some(1) && ran.err.contains("Edit(b.bin)"), "{ran:?}");
    assert!(world.work().join("bin/b").exists() && world.work().join("bin/run/a.sh").exists());
}

#[test]
fn a_turn_that_moved_a_file_and_went_on_with_it_is_taken_back() {
    let world = World::new();
    world.file("a.txt", "alpha\nbeta\n");
    let call = |input: Value| json!({"calls": [{"name": "edit", "input": input}]});
    let edits = |old: &str, new: &str| json!([{"old_text": old, "new_text": new}]);
    let model = world.script(&[
        call(json!({"path": "a.txt", "edits": edits("alpha", "1")})),
        call(json!({"files": [{"path": "a.txt", "move_to": "d/b.txt"}]})),
        call(json!({"path": "d/b.txt", "edits": edits("beta", "2")})),
        call(json!({"files": [{"path": "d/b.txt", "move_to": "c.txt", "content": "new\n"}]})),
        call(json!({"files": [{"path": "a.txt", "content": "shim\n"}]})),
        json!({"text": "done"}),
        json!({"text": "again"}),
    ]);
    let ran = world.run(&["-p", "go", "--mode", "accept-edits", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let after = |world: &World| (world.read("a.txt"), world.read("c.txt"));
    let wanted = ("shim\n".to_owned(), "new\n".to_owned());
    assert_eq!(after(&world), wanted);
    let ran = world.run(&["undo", "--turn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
    assert!(!world.work().join("c.txt").exists() && !world.work().join("d").exists());
    // The conversation goes on: the model is told of both names.
    let ran = world.run(&["-p", "and now?", "-c", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "again\n"), "{ran:?}");
    assert_eq!(world.run(&["redo"]).code, Some(0));
    assert_eq!(after(&world), wanted);
    assert_eq!(world.run(&["undo", "c5"]).code, Some(0));
    assert_eq!(world.run(&["undo", "c4"]).code, Some(0));
    assert_eq!(world.read("d/b.txt"), "1\n2\n");
}

#[test]
fn a_whole_turn_of_an_agent_is_taken_back_and_the_model_is_told() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edits = json!([{"old_text": "alpha", "new_text": "beta"}]);
    let model = world.script(&[
        json!({"calls": [{"name": "edit", "input": {"path": "a.txt", "edits": edits}}]}),
        json!({"calls": [{"name": "write", "input": {"path": "n.txt", "content": "n\n"}}]}),
        json!({"text": "done"}),
        json!({"text": "again"}),
    ]);
    let start = ["-p", "go", "--mode", "accept-edits", "--model", &*model];
    assert_eq!(world.run(&start).code, Some(0));
    assert_eq!(world.read("a.txt"), "beta\n");
    let ran = world.run(&["undo", "--turn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("a.txt"), "alpha\n");
    assert!(!world.work().join("n.txt").exists());
    let undone = world.events().into_iter().find_map(|event| match event.body {
        Body::Undone { calls, files, redo, receipts } => Some((calls, files, redo, receipts)),
        _ => None,
    });
    let (calls, files, redo, receipts) = undone.unwrap();
    assert_eq!((calls.len(), files.len(), redo, receipts.len()), (2, 2, false, 2));
    // The conversation goes on, with a log that is whole.
    let ran = world.run(&["-p", "and now?", "-c", "--model", &model]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "again\n"), "{ran:?}");
    assert_eq!(world.run(&["redo"]).code, Some(0));
    assert_eq!((world.read("a.txt").as_str(), world.read("n.txt").as_str()), ("beta\n", "n\n"));
}

#[test]
fn what_an_mcp_client_changed_is_taken_back() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let mut client = Client::greeted(&world, &["--mode", "accept-edits"]);
    client.call("write", &json!({"path": "a.txt", "content": "beta\n"}));
    assert_eq!(world.read("a.txt"), "beta\n");
    // The server holds its log: who holds it is the one to ask.
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("is in use") && world.read("a.txt") == "beta\n", "{ran:?}");
    client.ends_well();
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "alpha\n");
}

#[test]
fn what_somebody_changed_since_is_shown_and_kept() {
    let world = World::new();
    world.file("a.txt", "one\n");
    assert_eq!(edit(&world, "a.txt", "one", "two", &[]).code, Some(0));
    world.file("a.txt", "mine\n");
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in ["a.txt was changed since", "-mine", "+one", "undo c1 --force"] {
        assert!(ran.err.contains(words), "{words} in {ran:?}");
    }
    assert_eq!(world.read("a.txt"), "mine\n");
    let ran = world.run(&["undo", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &told["conflicts"][0]["path"]),
        (Some(1), &json!(world.work().join("a.txt")))
    );
    assert_eq!(world.run(&["undo", "--force"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "one\n");
    assert_eq!(world.run(&["redo"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "mine\n", "what was there is not lost");
    // Gone altogether is another state, too.
    fs::remove_file(world.work().join("a.txt")).unwrap();
    assert_eq!(world.run(&["undo"]).code, Some(1));
    assert!(!world.work().join("a.txt").exists());
}

#[test]
fn a_later_change_of_haft_is_named_where_it_is_in_the_way() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    assert_eq!(edit(&world, "a.txt", "one", "1", &[]).code, Some(0));
    let id = world.only_session();
    assert_eq!(edit(&world, "a.txt", "two", "2", &["--session", &id]).code, Some(0));
    let ran = world.run(&["undo", "c1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let wanted =
        "haft: a.txt was changed since by c2 (edit: Editing a.txt): take that back first\n";
    assert!(ran.err.contains(wanted) && !ran.err.contains("someone else"), "{ran:?}");
    assert_eq!(world.read("a.txt"), "1\n2\n");
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.run(&["undo", "c1"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "one\ntwo\n");
    let ran = world.run(&["undo", "c1"]);
    assert!(ran.err.contains("c1 is taken back already; redo c1 makes it again"), "{ran:?}");
    // What c1 left is not there for c2 to go on from.
    let ran = world.run(&["redo", "c2"]);
    assert!(ran.code == Some(1) && ran.err.contains("a.txt was changed since"), "{ran:?}");
}

#[test]
fn nothing_is_written_through_a_link_or_past_a_rule() {
    let world = World::new();
    let outside = world.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "two\n").unwrap();
    world.file("sub/a.txt", "one\n");
    assert_eq!(edit(&world, "sub/a.txt", "one", "two", &[]).code, Some(0));
    let work = world.work();
    // The folder, then the file itself, become links to a file as the change left it.
    fs::rename(work.join("sub"), work.join("old")).unwrap();
    std::os::unix::fs::symlink(&outside, work.join("sub")).unwrap();
    let ran = world.run(&["undo", "--force"]);
    assert!(ran.code == Some(1) && ran.err.contains("through a link"), "{ran:?}");
    fs::remove_file(work.join("sub")).unwrap();
    fs::create_dir(work.join("sub")).unwrap();
    std::os::unix::fs::symlink(outside.join("a.txt"), work.join("sub/a.txt")).unwrap();
    let ran = world.run(&["undo", "--force"]);
    assert!(ran.code == Some(1) && ran.err.contains("is a link now"), "{ran:?}");
    assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "two\n");
    fs::remove_dir_all(work.join("sub")).unwrap();
    fs::rename(work.join("old"), work.join("sub")).unwrap();
    world.settings("permissions.deny = [\"Edit(sub/**)\"]\n");
    let ran = world.run(&["undo", "--force"]);
    assert!(ran.code == Some(1) && ran.err.contains("must not be changed"), "{ran:?}");
    assert_eq!(world.read("sub/a.txt"), "two\n");
    world.settings("");
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.read("sub/a.txt"), "one\n");
}

#[test]
fn what_is_not_kept_is_told_and_the_change_is_made() {
    let world = World::new();
    world.settings("[undo]\nsession_bytes = 10\n");
    world.file("a.txt", "more than ten bytes\n");
    world.file("b.txt", "few\n");
    assert_eq!(edit(&world, "b.txt", "few", "less", &[]).code, Some(0));
    let id = world.only_session();
    let ran = edit(&world, "a.txt", "more", "less", &["--session", &id]);
    assert!(ran.code == Some(0) && ran.out.contains("cannot be undone"), "{ran:?}");
    assert_eq!(world.read("a.txt"), "less than ten bytes\n");
    let ran = world.run(&["undo"]);
    assert!(ran.code == Some(1) && ran.err.contains("Nothing was changed"), "{ran:?}");
    // It stands in the way of none that was made before.
    assert!(ran.err.contains("each by its id, as in haft undo c1"), "{ran:?}");
    assert_eq!(world.run(&["undo", "c1"]).code, Some(0));
    assert_eq!(world.read("b.txt"), "few\n");
    // What was not there needs no room.
    write(&world, "n.txt", "new\n", &[]);
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!world.work().join("n.txt").exists());
}

#[test]
fn what_makes_room_for_a_change_is_told_with_it() {
    let world = World::new();
    world.settings("[undo]\nsession_bytes = 200\n");
    for (name, first) in [("a.txt", "a"), ("b.txt", "b"), ("c.txt", "c")] {
        world.file(name, format!("{}\n", first.repeat(70)));
    }
    let input = |name: &str| json!({"path": name, "content": "new\n"});
    let ran = tool(&world, "write", &input("a.txt"), &[]);
    let id = world.only_session();
    let same = ["--session", &*id];
    let next = tool(&world, "write", &input("b.txt"), &same);
    assert!(!(ran.out.clone() + &next.out).contains("made room"), "{ran:?} {next:?}");
    let ran = tool(&world, "write", &input("c.txt"), &same);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("[1 older copy made room for what undo keeps now"), "{ran:?}");
    let ran = world.run(&["undo", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["undo"]);
    assert!(ran.code == Some(1) && ran.err.contains("a.txt"), "{ran:?}");
}

#[test]
fn what_an_undo_by_force_left_is_told_as_its_doing() {
    let world = World::new();
    write(&world, "a.txt", "1\n", &[]);
    let session = world.only_session();
    let more = ["--session", &session];
    for (old, new) in [("1", "2"), ("2", "3"), ("3", "4")] {
        assert_eq!(edit(&world, "a.txt", old, new, &more).code, Some(0));
    }
    assert_eq!(world.run(&["undo", "c2", "--force"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "1\n");
    let ran = world.run(&["undo"]);
    let told = "a.txt was changed since by taking back c2 (edit: Editing a.txt): make that again \
                first";
    assert!(ran.code == Some(1) && ran.err.contains(told), "{ran:?}");
    assert_eq!(world.run(&["redo", "c2"]).code, Some(0));
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert_eq!(world.read("a.txt"), "3\n");
    // Of two that are to be made again, the other one.
    assert_eq!(world.run(&["undo"]).code, Some(0));
    let ran = world.run(&["redo", "c4"]);
    assert!(ran.err.contains("by taking back c3 (edit"), "{ran:?}");
    world.file("a.txt", "mine\n");
    let ran = world.run(&["redo"]);
    assert!(ran.err.contains("a.txt was changed since by someone else"), "{ran:?}");
}

#[test]
fn what_is_taken_back_by_force_is_all_that_was_asked_for() {
    let world = World::new();
    write(&world, "a.txt", "1\n", &[]);
    let session = world.only_session();
    let more = ["--session", &session];
    write(&world, "b.txt", "1\n", &more);
    assert_eq!(edit(&world, "a.txt", "1", "2", &more).code, Some(0));
    world.file("a.txt", "outside\n");
    let ran = world.run(&["undo", "3"]);
    assert!(ran.code == Some(1) && ran.err.contains("haft undo 3 --force"), "{ran:?}");
    let ran = world.run(&["undo", "--turn"]);
    assert!(ran.err.contains("haft undo c3 --force"), "a call without a turn: {ran:?}");
    let ran = world.run(&["undo", "3", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for name in ["a.txt", "b.txt"] {
        assert!(!world.work().join(name).exists(), "{name}");
    }
}

#[test]
fn what_is_as_it_was_already_is_told_and_stands_in_the_way_of_nothing() {
    let world = World::new();
    world.file("a.txt", "one\n");
    assert_eq!(edit(&world, "a.txt", "one", "two", &[]).code, Some(0));
    let id = world.only_session();
    let same = ["--session", &*id];
    write(&world, "b.txt", "b\n", &same);
    write(&world, "n.txt", "n\n", &same);
    world.file("a.txt", "one\n");
    fs::remove_file(world.work().join("n.txt")).unwrap();
    let ran = world.run(&["undo"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains("  n.txt is already as it was before c3\n"), "{ran:?}");
    let ran = world.run(&["undo", "2", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["files"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["unchanged"], json!([world.work().join("a.txt")]), "{told}");
    let ran = world.run(&["redo", "c1"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    // Nothing was made, so nothing else is said.
    assert_eq!(
        ran.out,
        "Made nothing again of c1 (edit: Editing a.txt): what it had made was gone before it was \
         taken back\n"
    );
    let ran = world.run(&["redo", "2"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!((world.read("a.txt").as_str(), world.read("b.txt").as_str()), ("one\n", "b\n"));
}

#[test]
fn calls_are_counted_where_they_are_made_again() {
    let world = World::new();
    write(&world, "a.txt", "1\n", &[]);
    let id = world.only_session();
    let same = ["--session", &*id];
    write(&world, "b.txt", "b\n", &same);
    for (old, new) in [("1", "2"), ("2", "3")] {
        assert_eq!(edit(&world, "a.txt", old, new, &same).code, Some(0));
    }
    let titles = |ran: &Ran| -> Vec<String> {
        let made = ran.out.lines().filter_map(|line| line.strip_prefix("Made again "));
        made.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let there = || {
        let read = |name: &str| fs::read_to_string(world.work().join(name)).unwrap_or_default();
        (read("a.txt"), read("b.txt"))
    };
    let undo = |count: &str| assert_eq!(world.run(&["undo", count]).code, Some(0));
    let redo = |which: &[&str]| {
        let ran = world.run(&[&["redo"], which].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        (titles(&ran).join(" "), there())
    };
    let made = |titles: &str, a: &str, b: &str| (titles.to_owned(), (a.to_owned(), b.to_owned()));
    undo("4");
    assert_eq!(redo(&["c2"]), made("c2", "", "b\n"));
    assert_eq!(redo(&["1"]), made("c1", "1\n", "b\n"));
    assert_eq!(redo(&["2"]), made("c3 c4", "3\n", "b\n"));
    undo("4");
    assert_eq!(redo(&["3"]), made("c1 c2 c3", "2\n", "b\n"));
    // Each can be taken back again by itself.
    assert_eq!(world.run(&["undo", "c3"]).code, Some(0));
    assert_eq!(there(), ("1\n".to_owned(), "b\n".to_owned()));
    assert_eq!(redo(&["c3"]), made("c3", "2\n", "b\n"));
    undo("3");
    // Without a count all that the last undo took back.
    assert_eq!(redo(&[]), made("c1 c2 c3", "2\n", "b\n"));
    let ran = world.run(&["redo", "3"]);
    assert!(ran.err.contains("only 1 of 3 changes was taken back"), "{ran:?}");
    assert_eq!(there().0, "3\n");
    undo("4");
    assert_eq!(redo(&["4"]), made("c1 c2 c3 c4", "3\n", "b\n"));
}

/// Two files, and calls that move and change them; gives the calls that were made again, what was
/// said, and what is there then.
fn made_again(calls: &[Value], which: &[&str]) -> (String, String, Vec<(String, String)>) {
    let world = World::new();
    world.file("a", "aaa\n");
    world.file("c", "ccc\n");
    let mut more: Vec<String> = Vec::new();
    for files in calls {
        let flags: Vec<&str> = more.iter().map(|flag| &**flag).collect();
        let ran = tool(&world, "edit", &json!({"files": files}), &flags);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        more = vec!["--session".to_owned(), world.only_session()];
    }
    assert_eq!(world.run(&["undo", &calls.len().to_string()]).code, Some(0));
    assert_eq!((world.read("a").as_str(), world.read("c").as_str()), ("aaa\n", "ccc\n"));
    let ran = world.run(&[&["redo", "--json"], which].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Vec<String> = serde_json::from_value(ran.json()["calls"].clone()).unwrap();
    let there = ["a", "c", "m", "z"].into_iter().filter_map(|name| {
        let text = fs::read_to_string(world.work().join(name)).ok()?;
        Some((name.to_owned(), text.trim_end().to_owned()))
    });
    (told.join(" "), ran.err, there.collect())
}

/// Calls that were taken back, the redo, and what comes of it as [`made_again`] gives it.
type Case<'a> = (&'a [Value], &'a [&'a str], &'a str, String, &'a [(&'a str, &'a str)]);

#[test]
fn calls_are_made_again_in_their_order_and_what_goes_together_is_told() {
    let content = |path: &str, text: &str| json!({"path": path, "content": text});
    let moved = |from: &str, to: &str| json!([{"path": from, "move_to": to}]);
    let alone = |path: &str, text: &str| json!([content(path, text)]);
    let edited = [alone("c", "C1\n"), alone("a", "A2\n"), moved("c", "m")];
    let twice = [moved("c", "z"), alone("a", "A2\n"), moved("z", "m")];
    let then = [moved("c", "z"), alone("z", "C2\n")];
    // One file with three states, of which the first came with a file that was moved later.
    let chained =
        [json!([content("a", "A1\n"), content("c", "C1\n")]), alone("a", "A2\n"), moved("c", "m")];
    let told = |many: u64, asked: u64, calls: &str, between: &str| {
        format!(
            "haft: {many} changes were made again, and not {asked}: {calls} can be made again \
             only together{between}\n"
        )
    };
    let (one_three, between) = ("c1 and c3", ", and c2 stands between them");
    let cases: [Case<'_>; 9] = [
        (&edited, &["1"], "c1 c2 c3", told(3, 1, one_three, between), &[("a", "A2"), ("m", "C1")]),
        (&edited, &["c2"], "c2", String::new(), &[("a", "A2"), ("c", "ccc")]),
        (&edited, &["c1"], "c1 c3", told(2, 1, one_three, ""), &[("a", "aaa"), ("m", "C1")]),
        (&edited, &[], "c1 c2 c3", String::new(), &[("a", "A2"), ("m", "C1")]),
        (&twice, &["2"], "c1 c2 c3", told(3, 2, one_three, ""), &[("a", "A2"), ("m", "ccc")]),
        (&twice, &["3"], "c1 c2 c3", String::new(), &[("a", "A2"), ("m", "ccc")]),
        (&then, &["1"], "c1 c2", told(2, 1, "c1 and c2", ""), &[("a", "aaa"), ("z", "C2")]),
        (&chained, &["3"], "c1 c2 c3", String::new(), &[("a", "A2"), ("m", "C1")]),
        (&chained, &[], "c1 c2 c3", String::new(), &[("a", "A2"), ("m", "C1")]),
    ];
    for (calls, which, made, said, there) in cases {
        let there: Vec<_> = there.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect();
        assert_eq!(made_again(calls, which), (made.to_owned(), said, there), "{calls:?} {which:?}");
    }
}

#[test]
fn a_session_in_use_names_what_takes_its_changes_back() {
    let world = World::new();
    let mut client = Client::greeted(&world, &["--mode", "accept-edits"]);
    client.call("write", &json!({"path": "a.txt", "content": "x\n"}));
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let process = format!("another haft, process {} (haft mcp), ", client.process());
    for word in [&*process, "a haft mcp ends with its client", "/undo"] {
        assert!(ran.err.contains(word), "{word}: {ran:?}");
    }
    let id = world.only_session();
    let other = world.run(&["tool", "ls", "--session", &id, "--input", "{}"]);
    let process = process.trim_end_matches(", ");
    assert!(other.err.contains(&format!("{process}: end that one first")), "{other:?}");
    assert!(!ran.err.contains("new session"), "{ran:?}");
    client.ends_well();
    assert_eq!(world.run(&["undo"]).code, Some(0));
    assert!(!world.work().join("a.txt").exists());
}

#[test]
fn of_many_files_the_first_are_named() {
    let world = World::new();
    let all = "for i in $(seq 10 39); do echo";
    for script in [format!("{all} x > f$i; done"), format!("{all} y > f$i; done")] {
        let input = json!({"command": script}).to_string();
        let session = (world.sessions() == 1).then(|| world.only_session());
        let mut arguments = vec!["tool", "bash", "--mode", "bypass", "--input", &input];
        arguments.extend(session.iter().flat_map(|id| ["--session", id.as_str()]));
        assert_eq!(world.run(&arguments).code, Some(0));
    }
    for number in 10..40 {
        world.file(&format!("f{number}"), "mine\n");
    }
    let ran = world.run(&["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.err.matches(" was changed since by ").count(), 20, "{ran:?}");
    assert!(ran.err.contains("and 10 more that were changed since"), "{ran:?}");
    for number in 10..40 {
        let file = world.work().join(format!("f{number}"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(file).unwrap();
    }
    // One that can be done.
    fs::remove_dir(world.work().join("f20")).unwrap();
    let ran = world.run(&["undo", "--force"]);
    assert_eq!(ran.err.matches(" is left as it is: ").count(), 20, "{ran:?}");
    assert!(ran.err.contains("and 9 more that are left as they are"), "{ran:?}");
    assert_eq!(world.read("f20"), "x\n");
}

#[test]
fn the_session_that_has_the_change_is_found() {
    let world = World::new();
    fs::create_dir(world.work().join("sub")).unwrap();
    write(&world, "a.txt", "1\n", &[]);
    let first = world.only_session();
    write(&world, "b.txt", "1\n", &[]);
    let mut command = world.haft(&["undo"]);
    command.current_dir(world.work().join("sub"));
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let of = format!(" of {} has some: name it with --session", world.work().display());
    assert!(ran.err.contains("nothing of haft's changes") && ran.err.contains(&of), "{ran:?}");
    // The newest session that has it still.
    assert_eq!(world.run(&["undo", "c1"]).code, Some(0));
    assert!(!world.work().join("b.txt").exists());
    let ran = world.run(&["undo", "c1", "--json"]);
    assert_eq!(ran.json()["session"], *first, "{ran:?}");
    assert!(!world.work().join("a.txt").exists());
    let ran = world.run(&["undo", "c1"]);
    assert!(ran.code == Some(1) && ran.err.contains("c1 is taken back already"), "{ran:?}");
    let ran = world.run(&["redo", "c1", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// What a command does to the files of a world, and how each of them looks then.
const COMMAND: &str = "echo more >> a.txt; rm b.txt; mkdir n; echo new > n/c.txt; ln -s a.txt l; \
                       echo built > ignored.log; chmod 600 d.txt";

fn before_a_command(world: &World) {
    world.file(".gitignore", "*.log\n");
    world.file("a.txt", "one\n");
    world.file("b.txt", "two\n");
    world.file("d.txt", "four\n");
    fs::set_permissions(world.work().join("d.txt"), fs::Permissions::from_mode(0o644)).unwrap();
}

fn is_undone(world: &World) {
    let there = |name: &str| fs::symlink_metadata(world.work().join(name)).is_ok();
    assert_eq!((world.read("a.txt").as_str(), world.read("b.txt").as_str()), ("one\n", "two\n"));
    assert!(!there("n") && !there("l") && !there("ignored.log"));
    assert_eq!(mode(world, "d.txt"), 0o644);
}

fn is_made(world: &World) {
    assert_eq!(world.read("a.txt"), "one\nmore\n");
    assert_eq!(world.read("n/c.txt"), "new\n");
    assert!(!world.work().join("b.txt").exists());
    assert_eq!(fs::read_link(world.work().join("l")).unwrap().to_str(), Some("a.txt"));
    assert_eq!(mode(world, "d.txt"), 0o600);
}

#[test]
fn what_a_command_did_is_taken_back_whoever_ran_it() {
    let told = "[changed: a.txt, d.txt; created: ignored.log, l, n/; deleted: b.txt; 1 inside of these folders]";
    let input = json!({"command": COMMAND});
    let by_tool = |world: &World| {
        let ran = world.tool("bash", &input, &["--mode", "bypass"]);
        assert!(ran.out.contains(told), "{ran:?}");
    };
    let by_model = |world: &World| {
        let calls = json!([{"name": "bash", "input": input}]);
        let model = world.script(&[json!({"calls": calls}), json!({"text": "Done."})]);
        let ran = world.run(&["-p", "go", "--mode", "bypass", "--model", &model]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let by_client = |world: &World| {
        let mut client = Client::greeted(world, &["--mode", "bypass"]);
        let answer = client.call("bash", &input).to_string();
        assert!(answer.contains(told), "{answer}");
        client.ends_well();
    };
    for run in [&by_tool as &dyn Fn(&World), &by_model, &by_client] {
        let world = World::new();
        before_a_command(&world);
        run(&world);
        is_made(&world);
        let ran = world.run(&["undo"]);
        assert!(ran.code == Some(0) && ran.out.contains("removed n/"), "{ran:?}");
        is_undone(&world);
        assert_eq!(world.run(&["redo"]).code, Some(0));
        is_made(&world);
        world.file("a.txt", "mine\n");
        let ran = world.run(&["undo"]);
        assert!(ran.code == Some(1) && ran.err.contains("a.txt was changed since"), "{ran:?}");
        assert_eq!(world.run(&["undo", "--force"]).code, Some(0));
        is_undone(&world);
    }
}
