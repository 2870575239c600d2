//! A command and other calls change the same files at the same time: each call is taken back alone,
//! and nothing of the other one is lost unasked.

use std::{collections::BTreeMap, fs};

use haft_testkit::{machine::make_fifo, world::World};
use haft_tool::UndoError;
use haft_types::{Body, Receipt, Status};
use serde_json::{Value, json};

use crate::changed::{Tree, bash, changes_line, take_back, tree, world};

/// What one tool changed, oldest first.
fn of(world: &World, is_command: bool) -> Vec<Receipt> {
    let mut tools = BTreeMap::new();
    let mut all = Vec::new();
    for body in world.recorder.bodies() {
        match body {
            Body::CallStarted { call, tool, .. } => drop(tools.insert(call, tool)),
            Body::CallEnded { call, outcome, .. } if (tools[&call] == "bash") == is_command => {
                all.extend(outcome.receipts);
            }
            _ => {}
        }
    }
    all
}

/// What there is to be taken back.
struct Both {
    world: World,
    before: Tree,
    after: Tree,
    command: Vec<Receipt>,
    other: Vec<Receipt>,
}

/// Runs a command that changes something, lets a tool make a change, and goes on with another one.
async fn both(first: &str, (tool, input): (&str, Value), then: &str) -> Both {
    let world = world();
    let root = world.folder().unwrap();
    let before = tree(&root);
    let go = root.join("target/go");
    make_fifo(&go);
    let command = format!("{first}\necho begun; read -r _ < target/go\n{then}");
    let beside = async {
        let begun =
            |body: &Body| matches!(body, Body::CallOutput { text, .. } if text == "begun\n");
        world.recorder.until(begun).await;
        let outcome = world.call(tool, input).await;
        let on = tokio::task::spawn_blocking(move || fs::write(go, "on\n"));
        on.await.unwrap().unwrap();
        outcome
    };
    let (ran, made) = tokio::join!(bash(&world, &command), beside);
    assert_eq!((ran.status, made.status), (Status::Done, Status::Done), "{ran:?} {made:?}");
    fs::remove_file(root.join("target/go")).unwrap();
    let after = tree(&root);
    let (command, other) = (of(&world, true), of(&world, false));
    Both { world, before, after, command, other }
}

impl Both {
    fn now(&self) -> Tree {
        tree(&self.world.folder().unwrap())
    }

    /// Both together are taken back and made again; the command ended last.
    async fn go_together(&self, what: &str) {
        let all = [self.other.clone(), self.command.clone()].concat();
        let undone = take_back(&self.world, &all, false).await;
        let undone = undone.unwrap_or_else(|error| panic!("{what}: {error}\n{all:#?}"));
        assert_eq!(self.now(), self.before, "{what}: taken back");
        take_back(&self.world, &undone, false).await.unwrap();
        assert_eq!(self.now(), self.after, "{what}: made again");
    }

    /// One alone is taken back and made again; gives what was there in between.
    async fn goes_alone(&self, receipts: &[Receipt], what: &str) -> Tree {
        let undone = take_back(&self.world, receipts, false).await;
        let undone = undone.unwrap_or_else(|error| panic!("{what}: {error}\n{receipts:#?}"));
        let between = self.now();
        take_back(&self.world, &undone, false).await.unwrap();
        assert_eq!(self.now(), self.after, "{what}: made again");
        between
    }

    /// One alone is not taken back, since something of the other one would go with it.
    async fn is_asked_about(&self, receipts: &[Receipt], what: &str) {
        let error = take_back(&self.world, receipts, false).await.err();
        assert!(matches!(error, Some(UndoError::Conflict(_))), "{what}: {error:?}\n{receipts:#?}");
        assert_eq!(self.now(), self.after, "{what}: nothing was changed");
    }
}

fn text<'a>(tree: &'a Tree, name: &str) -> Option<&'a str> {
    tree.get(name).map(|(_, content)| std::str::from_utf8(content).unwrap())
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    let edits = json!([{"old_text": old, "new_text": new}]);
    ("edit", json!({"path": "a.txt", "edits": edits}))
}

#[tokio::test]
async fn a_command_that_goes_on_with_an_edited_file_leaves_the_edit_when_it_is_taken_back() {
    for then in ["echo A >> a.txt", "sed -i s/two/2/ a.txt", "rm a.txt", "echo over > a.txt"] {
        let both = both("", edit("one", "mine"), then).await;
        both.go_together(then).await;
        let between = both.goes_alone(&both.command, then).await;
        assert_eq!(text(&between, "a.txt"), Some("mine\ntwo\n"), "{then}");
        both.is_asked_about(&both.other, then).await;
    }
}

#[tokio::test]
async fn what_a_command_did_before_an_edit_is_taken_back_after_it() {
    let both = both("echo A >> a.txt; echo n > n.txt", edit("one", "mine"), "").await;
    both.go_together("").await;
    both.is_asked_about(&both.command, "").await;
    let between = both.goes_alone(&both.other, "").await;
    assert_eq!(text(&between, "a.txt"), Some("one\ntwo\nA\n"));
    take_back(&both.world, &both.other, false).await.unwrap();
    take_back(&both.world, &both.command, false).await.unwrap();
    assert_eq!(both.now(), both.before);
}

#[tokio::test]
async fn an_edit_between_two_changes_of_a_command_is_not_lost_with_them() {
    for (first, then) in [
        ("echo A >> a.txt", "echo B >> a.txt"),
        ("echo A >> a.txt", "rm a.txt"),
        ("rm a.txt; echo one > a.txt", "chmod 600 a.txt; echo B >> a.txt"),
    ] {
        let what = format!("{first} {then}");
        let both = both(first, edit("one", "mine"), then).await;
        both.go_together(&what).await;
        both.is_asked_about(&both.command, &what).await;
        both.is_asked_about(&both.other, &what).await;
    }
}

#[tokio::test]
async fn files_that_a_command_makes_moves_or_gives_rights_beside_an_edit_come_back() {
    for (first, beside, then) in [
        ("echo x > n", write("n", "mine\n"), "echo y >> n"),
        ("", write("n", "mine\n"), "echo y >> n"),
        ("", write("n", "mine\n"), "rm n"),
        ("", edit("one", "mine"), "mv a.txt n"),
        ("mv a.txt n", write("n", "mine\n"), ""),
        ("mv a.txt n", write("a.txt", "mine\n"), "echo y >> n"),
        ("", edit("one", "mine"), "chmod 600 a.txt"),
        ("chmod 600 a.txt", edit("one", "mine"), ""),
        ("", write("d/e", "mine\n"), "rm -r d/e; mkdir d/e; echo x > d/e/x"),
        ("rm d/e; ln -s x d/e; rm d/e", write("d/e", "mine\n"), "rm d/e; ln -s y d/e"),
        ("mkdir m", write("m/n", "mine\n"), "echo x >> m/n"),
        ("", write("m/n", "mine\n"), "rm -r m"),
        ("echo x > d/old.log", write("d/old.log", "mine\n"), "echo a >> a.txt"),
    ] {
        let what = format!("{first} | {} | {then}", beside.1);
        let both = both(first, beside, then).await;
        if !what.contains("old.log") {
            both.go_together(&what).await;
        }
        // Alone each of them goes, or is asked about; what the other one did is there either way.
        for receipts in [&both.command, &both.other] {
            if let Ok(undone) = take_back(&both.world, receipts, false).await
                && both.now() != both.after
            {
                take_back(&both.world, &undone, false).await.unwrap();
            }
            assert_eq!(both.now(), both.after, "{what}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_moved_by_a_tool_beside_a_command_is_taken_back_once() {
    let files = json!([{"path": "a.txt", "move_to": "moved.txt"}, {"path": "d/e", "delete": true}]);
    let both =
        both("", ("edit", json!({"files": files})), "echo x >> moved.txt; echo e > d/e").await;
    both.go_together("").await;
    let between = both.goes_alone(&both.command, "").await;
    assert_eq!(text(&between, "moved.txt"), Some("one\ntwo\n"));
    assert_eq!(text(&between, "d/e"), None);
    both.is_asked_about(&both.other, "").await;
}

/// What a command did before another one began is none of what that one did, also where it is told
/// only while that one runs.
#[tokio::test]
async fn a_command_does_not_undo_what_another_did_before_it_began() {
    let world = world();
    let root = world.folder().unwrap();
    let before = tree(&root);
    for pipe in ["target/go", "target/on"] {
        make_fifo(&root.join(pipe));
    }
    let begun = |text: &'static str| move |body: &Body| matches!(body, Body::CallOutput { text: is, .. } if is == text);
    let ended = |body: &Body| matches!(body, Body::CallEnded { .. });
    let first =
        bash(&world, "rm a.txt; rm -r d/f; echo x > 'b c.txt'; echo first; read -r _ < target/go");
    let second = async {
        world.recorder.until(begun("first\n")).await;
        let command = "echo second; read -r _ < target/on; echo again > a.txt";
        let call = world.call("bash", json!({"command": command}));
        let go = async {
            world.recorder.until(begun("second\n")).await;
            let go = root.join("target/go");
            tokio::task::spawn_blocking(move || fs::write(go, "go\n")).await.unwrap().unwrap();
            world.recorder.until(ended).await;
            let on = root.join("target/on");
            tokio::task::spawn_blocking(move || fs::write(on, "on\n")).await.unwrap().unwrap();
        };
        tokio::join!(call, go).0
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        changes_line(&first),
        "[changed: b c.txt; deleted: a.txt, d/f/; 1 inside of these folders]"
    );
    assert_eq!(changes_line(&second), "[created: a.txt]");
    for pipe in ["target/go", "target/on"] {
        fs::remove_file(root.join(pipe)).unwrap();
    }
    take_back(&world, &second.receipts, false).await.unwrap();
    take_back(&world, &first.receipts, false).await.unwrap();
    assert_eq!(tree(&root), before);
}
