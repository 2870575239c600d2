//! What git ignores and a command names is told, kept and brought back; so is what was there where
//! the workspace itself went.

use std::{fs, os::unix::fs::symlink};

use haft_testkit::world::World;
use serde_json::json;

use crate::changed::{bash, changes_line, receipts, take_back, tree};

fn world() -> World {
    let files = [
        (".gitignore", ".env\n*.log\n/target/\n"),
        (".env", "KEY=1\n"),
        ("a.txt", "one\n"),
        ("b.log", "b\n"),
        ("d/c.log", "c\n"),
        ("target/out", "built\n"),
        ("target/deep/out", "built\n"),
    ];
    let world = World::local(haft_tools::builtin(), files).unwrap();
    symlink("target/out", world.folder().unwrap().join("l.log")).unwrap();
    world
}

#[tokio::test]
async fn what_a_command_names_is_covered_whatever_ignores_it() {
    for (command, wanted) in [
        ("echo x > .env", "[changed: .env]"),
        ("echo x >> ./d/../.env", "[changed: .env]"),
        ("cp a.txt .env", "[changed: .env]"),
        ("sed -i s/1/2/ .env", "[changed: .env]"),
        ("rm .env", "[deleted: .env]"),
        ("rm -f .env b.log", "[deleted: .env, b.log]"),
        ("rm *.log", "[deleted: b.log, l.log]"),
        ("mv .env kept", "[renamed: .env to kept]"),
        ("mv a.txt target/a.txt", "[renamed: a.txt to target/a.txt]"),
        ("mv a.txt target", "[renamed: a.txt to target/a.txt]"),
        ("echo x > new.log", "[created: new.log]"),
        ("touch target/deep/new", "[created: target/deep/new]"),
        (
            "(cd target; echo x > out; echo y | tee deep/out)",
            "[changed: target/deep/out, target/out]",
        ),
        ("cd target; f=out; echo x > \"$f\"; cd ..", "[changed: target/out]"),
        ("ln -sf a.txt b.log", "[created: b.log; deleted: b.log]"),
        ("echo x > l.log", "[changed: target/out]"),
        ("rm l.log", "[deleted: l.log]"),
        ("echo x > .env; echo KEY=1 > .env", ""),
        ("rm .env; rm -r target", "[deleted: .env]\n[not covered by undo: target gone]"),
        ("cat .env b.log > a.txt", "[changed: a.txt]"),
        ("chmod 600 .env", "[changed: .env]"),
        ("chmod -w .env", "[changed: .env]"),
        ("cd d; chmod a+x ../b.log *.log; cd ..", "[changed: b.log, d/c.log]"),
        ("chmod --reference=a.txt .env", ""),
    ] {
        let world = world();
        let root = world.folder().unwrap();
        let before = tree(&root);
        assert_eq!(changes_line(&bash(&world, command).await), wanted, "{command}");
        let lost = wanted.contains("gone");
        let after = tree(&root);
        let undone = take_back(&world, &receipts(&world), false).await.unwrap();
        let mut now = tree(&root);
        if lost {
            now.extend(
                before
                    .iter()
                    .filter(|(name, _)| name.starts_with("target"))
                    .map(|(name, what)| (name.clone(), what.clone())),
            );
        }
        assert_eq!(now, before, "{command}");
        if !lost {
            take_back(&world, &undone, false).await.unwrap();
            assert_eq!(tree(&root), after, "{command} again");
        }
    }
}

#[tokio::test]
async fn what_was_named_once_is_looked_after_by_the_commands_that_follow() {
    let world = world();
    fs::write(world.folder().unwrap().join("run.sh"), "echo later > target/out\n").unwrap();
    assert_eq!(changes_line(&bash(&world, "sh run.sh").await), "", "no word names it");
    assert_eq!(changes_line(&bash(&world, "echo x > target/out").await), "[changed: target/out]");
    assert_eq!(changes_line(&bash(&world, "sh run.sh").await), "[changed: target/out]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(world.folder().unwrap().join("target/out")).unwrap(), b"later\n");
}

#[tokio::test]
async fn a_named_file_that_is_too_big_is_told_as_lost() {
    let world = world();
    let file = fs::File::create(world.folder().unwrap().join("big.log")).unwrap();
    file.set_len(5 << 20).unwrap();
    let text = changes_line(&bash(&world, "echo x > big.log").await);
    assert!(text.starts_with("[changed: big.log]\n[") && text.contains("shell.changes.file_bytes"));
}

#[tokio::test]
async fn a_workspace_that_went_is_said_to_be_gone_and_all_works_once_it_is_there_again() {
    let world = world();
    let root = world.folder().unwrap();
    let above = root.parent().unwrap().to_owned();
    let before = tree(&root);
    bash(&world, "cd d").await;
    let text = changes_line(&bash(&world, "rm -rf ../d/ && mkdir -p ../e").await);
    assert!(
        text.starts_with("[d is gone: the next command starts in the workspace root]"),
        "{text}"
    );
    bash(&world, "mkdir d; rmdir e; echo c > d/c.log").await;

    // Gone and there again within one command, by it, and by somebody else.
    let script = format!("rm -rf '{0}'; mkdir '{0}'", root.display());
    fs::write(above.join("anew.sh"), script).unwrap();
    bash(&world, "touch .env").await;
    let count = receipts(&world).len();
    let text = changes_line(&bash(&world, "sh ../anew.sh").await);
    assert!(text.contains("[deleted: .env") && !text.contains("not looked for"), "{text}");
    take_back(&world, &receipts(&world)[count..], false).await.unwrap();
    let now = tree(&root);
    for kept in [".env", ".gitignore", "a.txt", "d"] {
        assert_eq!(now.get(kept), before.get(kept), "{kept}");
    }
    fs::remove_dir_all(&root).unwrap();
    let refused = world.call("bash", json!({"command": "pwd"})).await.joined_text();
    let words = format!("the folder {} to start in does not exist", root.display());
    assert!(refused.contains(&words) && refused.contains("as cwd"), "{refused}");
    assert!(!refused.contains("room"), "{refused}");
    let elsewhere = json!({"command": "pwd; mkdir -p ws/d", "cwd": above});
    let elsewhere = world.call("bash", elsewhere).await.joined_text();
    assert!(elsewhere.starts_with(&format!("{}", above.display())), "{elsewhere}");
    let again = json!({"command": format!("mkdir {}", root.display()), "cwd": above});
    world.call("bash", again).await;
    let count = receipts(&world).len();
    assert_eq!(changes_line(&bash(&world, "echo x > n").await), "[created: n]");
    assert_eq!(changes_line(&bash(&world, "echo y > n").await), "[changed: n]");
    take_back(&world, &receipts(&world)[count..], false).await.unwrap();
    assert!(!root.join("n").exists());
    let shell = json!({"command": "pwd", "session": "s"});
    let text = world.call("bash", shell).await.joined_text();
    assert!(text.starts_with(&format!("{}", root.display())), "{text}");
}
