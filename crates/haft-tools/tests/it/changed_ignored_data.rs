//! What git ignores and no tool rebuilds is told and brought back whatever the words were, and what is
//! too much for that is counted.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, fs::symlink},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use haft_policy::Verdict;
use haft_testkit::{machine, world::World};
use haft_tool::{DiffLimits, MemoryPreImages, PreImages};
use haft_types::{Outcome, ReceiptAction};
use serde_json::json;

use crate::{
    changed::{aged, bash, changes_line, receipts, take_back, tree, watched},
    changed_git::Counted,
};

fn world() -> World {
    let files = [
        (".gitignore", "data/\n.env\n*.log\nnode_modules/\n"),
        (".env", "KEY=1\n"),
        ("a.txt", "one\n"),
        ("d/old.log", "old\n"),
        ("data/out.jsonl", "out\n"),
        ("data/deep/down/x", "x\n"),
        ("data/empty", ""),
        ("node_modules/m/i.js", "js\n"),
    ];
    let world = World::local(haft_tools::builtin(), files).unwrap();
    let data = root(&world).join("data");
    symlink("out.jsonl", data.join("link")).unwrap();
    fs::create_dir(data.join("hollow")).unwrap();
    fs::set_permissions(data.join("out.jsonl"), fs::Permissions::from_mode(0o640)).unwrap();
    world
}

fn root(world: &World) -> PathBuf {
    world.folder().unwrap()
}

/// Runs a command whose words name nothing.
async fn unseen(world: &World, command: &str) -> Outcome {
    let script = root(world).parent().unwrap().join("unseen.sh");
    let command = match command.strip_prefix("python") {
        Some(rest) => format!("{}{rest}", machine::python().display()),
        None => command.to_owned(),
    };
    fs::write(&script, command).unwrap();
    bash(world, &format!("bash {}", script.display())).await
}

fn names(folder: &Path, names: impl Iterator<Item = usize>) {
    fs::create_dir_all(folder).unwrap();
    for name in names {
        fs::write(folder.join(format!("{name:05}")), format!("{name}\n")).unwrap();
    }
}

const LOST: &str = "[deleted: data/deep/, data/empty, data/hollow/, data/link, data/out.jsonl; 2 \
                    inside of these folders]";

#[tokio::test]
async fn what_is_ignored_is_told_and_brought_back_whatever_the_words_were() {
    for (command, wanted) in [
        ("rm -rf data/*", LOST),
        ("find data -mindepth 1 -delete", LOST),
        ("cd data && rm -f *.jsonl; cd ..", "[deleted: data/out.jsonl]"),
        ("rm -r data", "[deleted: data/; 7 inside of these folders]"),
        (
            "python -c 'import shutil; shutil.rmtree(\"data\")'",
            "[deleted: data/; 7 inside of these folders]",
        ),
        ("f=dat; rm -r ${f}a/deep", "[deleted: data/deep/; 2 inside of these folders]"),
        ("find . -name '*.log' -delete", "[deleted: d/old.log]"),
        ("echo x > data/out.jsonl", "[changed: data/out.jsonl]"),
        (
            "printf 'new\\n' | dd of=data/out.jsonl conv=notrunc 2> /dev/null",
            "[changed: data/out.jsonl]",
        ),
        ("find . -name .env -exec sh -c 'echo KEY=2 > {}' \\;", "[changed: .env]"),
        ("chmod 600 data/out.jsonl data/deep", "[changed: data/deep/, data/out.jsonl]"),
        ("mv data/out.jsonl data/moved", "[renamed: data/out.jsonl to data/moved]"),
        (
            "mv data/deep data/deeper",
            "[renamed: data/deep/ to data/deeper/; 2 inside of these folders]",
        ),
        (
            "mv data moved; chmod 600 moved/empty",
            "[created: moved/empty, moved/link; deleted: data/empty, data/link; renamed: data/ to moved/; 5 inside of these folders]",
        ),
        ("mv data ../away", "[deleted: data/; 7 inside of these folders]"),
        (
            "mkdir -p data/n/o; echo x > data/n/o/p; echo > new.log",
            "[created: data/n/, new.log; 2 inside of these folders]",
        ),
        (
            "rm data/deep/down/x; mkdir data/deep/down/x",
            "[created: data/deep/down/x/; deleted: data/deep/down/x]",
        ),
        ("rm .gitignore", "[deleted: .gitignore]"),
        ("touch data/out.jsonl; cat data/out.jsonl > /dev/null", ""),
    ] {
        let world = world();
        let root = root(&world);
        let before = tree(&root);
        assert_eq!(changes_line(&unseen(&world, command).await), wanted, "{command}");
        let after = tree(&root);
        let undone = take_back(&world, &receipts(&world), false).await.unwrap();
        assert_eq!(tree(&root), before, "{command}");
        take_back(&world, &undone, false).await.unwrap();
        assert_eq!(tree(&root), after, "{command} again");
    }
}

#[tokio::test]
async fn jobs_and_sessions_tell_it_too() {
    let command = "find data -type f -delete";
    let gone = "deleted: data/deep/down/x, data/empty, data/out.jsonl";
    let shell = self::world();
    let before = tree(&root(&shell));
    let text = shell.call("bash", json!({"command": command, "session": "s"})).await;
    assert!(text.joined_text().contains(&format!("[{gone}]")), "{text:?}");
    take_back(&shell, &receipts(&shell), false).await.unwrap();
    assert_eq!(tree(&root(&shell)), before);

    let job = self::world();
    let go = root(&job).join("../go");
    let waits = format!("until test -e '{}'; do sleep 0.05; done; {command}", go.display());
    job.call("bash", json!({"command": waits, "run_in_background": true})).await;
    // What a job does while no command runs is found at its end.
    fs::write(&go, "").unwrap();
    let text = job.call("job", json!({"action": "wait", "job": "j1"})).await.joined_text();
    assert!(text.contains(gone), "{text}");
    take_back(&job, &receipts(&job), false).await.unwrap();
    assert_eq!(tree(&root(&job)), before);
}

#[tokio::test]
async fn what_tools_rebuild_stays_as_it_was() {
    let world = world();
    fs::create_dir_all(root(&world).join("data/__pycache__")).unwrap();
    fs::write(root(&world).join("data/__pycache__/x.pyc"), "").unwrap();
    assert_eq!(
        changes_line(&unseen(&world, "rm node_modules/m/i.js data/__pycache__/*").await),
        ""
    );
    let text = changes_line(&unseen(&world, "rm -r node_modules data/__pycache__").await);
    assert_eq!(text, "[not covered by undo: data/__pycache__ gone, node_modules gone]");
    assert_eq!(receipts(&world).len(), 0);
}

#[tokio::test]
async fn what_is_too_much_is_counted_and_never_taken_for_new() {
    let few = DiffLimits { ignored_files: 8, ..DiffLimits::default() };
    let world = watched(world(), Some(few));
    let root = root(&world);
    names(&root.join("data/many"), 0..30);
    let before = tree(&root);
    // Small ones come first: a file each, then the folders.
    let text = changes_line(&unseen(&world, "rm -rf data/* .env d/old.log").await);
    let (first, second) = text.split_once('\n').unwrap();
    assert!(first.starts_with("[deleted: .env, d/old.log, data/deep/"), "{text}");
    assert_eq!(second, "[not covered by undo: data: 28 of 34 files gone]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    let now = tree(&root);
    assert!(now.len() > 8 && now.iter().all(|(name, what)| before.get(name) == Some(what)));

    // What finds room only now was there before.
    let world = watched(self::world(), Some(few));
    let root = self::root(&world);
    names(&root.join("data/many"), 0..30);
    aged(&root.join("data/many/00029")).await;
    let before = tree(&root);
    for round in 0..3 {
        let text =
            changes_line(&unseen(&world, "cd data; rm -f out.jsonl empty; echo x > ../b").await);
        assert!(!text.contains("many"), "{round}: {text}");
    }
    let text = changes_line(&unseen(&world, "rm data/many/0000*").await);
    let named = text.matches("data/many/0000").count();
    assert!(
        named > 2 && text.contains(&format!("data: {} of 32 files gone", 10 - named)),
        "{text}"
    );
    take_back(&world, &receipts(&world), false).await.unwrap();
    let now = tree(&root);
    assert!(
        now.contains_key("data/many/00029") && now["data/out.jsonl"] == before["data/out.jsonl"]
    );
    let made = |receipt: &&haft_types::Receipt| receipt.action == ReceiptAction::Created;
    let made: Vec<_> =
        receipts(&world).iter().filter(made).map(|one| one.path.text().into_owned()).collect();
    assert!(made.iter().all(|path| path.ends_with("/b")), "{made:?}");
}

#[tokio::test]
async fn quotas_of_nothing_and_few_bytes_lose_no_word() {
    let none = DiffLimits { ignored_files: 0, ignored_bytes: 0, ..DiffLimits::default() };
    for (command, wanted) in [
        ("rm -r data", "[not covered by undo: data: 4 of 4 files gone]"),
        ("rm -rf data/*", "[not covered by undo: data: 4 of 4 files gone]"),
        ("rm data/empty", "[not covered by undo: data: 1 of 4 files gone]"),
        ("find . -name '*.log' -delete", "[not covered by undo: d/old.log gone]"),
        ("mv data/empty data/other", ""),
        ("echo > data/more", ""),
    ] {
        let world = watched(world(), Some(none));
        assert_eq!(changes_line(&unseen(&world, command).await), wanted, "{command}");
    }
    let bytes = DiffLimits { ignored_bytes: 30, ..DiffLimits::default() };
    let world = watched(world(), Some(bytes));
    let data = root(&world).join("data");
    fs::write(data.join("big"), "b".repeat(40)).unwrap();
    let text = changes_line(&unseen(&world, "rm -r data").await);
    assert_eq!(
        text,
        "[deleted: data/; 7 inside of these folders]\n[not covered by undo: data: 1 of 5 files gone]"
    );
    // What is over the size of one file is told by name.
    let small = DiffLimits { file_bytes: 30, ..DiffLimits::default() };
    let world = watched(self::world(), Some(small));
    fs::write(root(&world).join("data/big"), "b".repeat(40)).unwrap();
    let text = changes_line(&unseen(&world, "rm data/big").await);
    assert!(
        text.contains("[deleted: data/big]\n[cannot be undone: data/big (it has more"),
        "{text}"
    );
}

#[tokio::test]
async fn a_store_that_is_full_is_told() {
    let world = world();
    world.session.services.insert::<dyn PreImages>(Arc::new(MemoryPreImages::with_quota(2)));
    let text = changes_line(&unseen(&world, "rm data/out.jsonl").await);
    assert!(
        text.starts_with("[deleted: data/out.jsonl]\n[cannot be undone: data/out.jsonl ("),
        "{text}"
    );
}

#[tokio::test]
async fn copies_are_made_anew_only_of_what_is_new() {
    let world = world();
    let root = root(&world);
    names(&root.join("data/many"), 0..200);
    aged(&root.join("data/many/00199")).await;
    let counted = Counted::default();
    let copies = counted.copies.clone();
    world.session.services.insert::<dyn PreImages>(Arc::new(counted));
    bash(&world, "echo 1 > a.txt").await;
    let first = copies.swap(0, Ordering::Relaxed);
    assert!(first >= 200, "{first}");
    bash(&world, "echo 2 > a.txt").await;
    bash(&world, "cat a.txt data/out.jsonl").await;
    let later = copies.swap(0, Ordering::Relaxed);
    assert!(later <= 4, "{later}");
    assert_eq!(
        changes_line(&unseen(&world, "echo x > data/many/00007; echo y > data/many/n").await)
            .matches("many")
            .count(),
        2
    );
    let later = copies.swap(0, Ordering::Relaxed);
    assert!(later <= 6, "{later}");
}

#[tokio::test]
async fn what_rules_hide_is_told_by_name_where_it_is_lost() {
    for (command, wanted) in [
        ("find . -name '.en*' -delete", "[not covered by undo: .env (hidden by rules) gone]"),
        (
            "find . -name '.en*' -exec sh -c 'echo > {}' \\;",
            "[not covered by undo: .env (hidden by rules) changed]",
        ),
        ("find data -name 'k*' -delete", "[not covered by undo: data/key (hidden by rules) gone]"),
        ("find d -name 'k*' -delete", "[not covered by undo: d/key (hidden by rules) gone]"),
        ("echo x > made; rm made; mkdir secrets2", "[created: secrets2/]"),
    ] {
        let world = world();
        let root = root(&world);
        for name in ["data/key", "d/key"] {
            fs::write(root.join(name), "SECRET\n").unwrap();
        }
        world.rule(Verdict::Deny, "Read(.env)");
        world.rule(Verdict::Deny, "Read(key)");
        assert_eq!(changes_line(&unseen(&world, command).await), wanted, "{command}");
        let text = serde_json::to_string(&receipts(&world)).unwrap();
        assert!(!text.contains(".env") && !text.contains("key"), "{text}");
    }
}

#[tokio::test]
async fn repositories_links_and_odd_names_are_nothing_else() {
    let world = world();
    let root = root(&world);
    let data = root.join("data");
    fs::create_dir_all(data.join("clone/.git")).unwrap();
    fs::write(data.join("clone/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(data.join("clone/file"), "text\n").unwrap();
    fs::write(data.join(OsStr::from_bytes(b"\xff\xfe")), "odd\n").unwrap();
    symlink("..", data.join("loop")).unwrap();
    symlink("/nowhere", data.join("dangling")).unwrap();
    let script = "cd data; rm -rf clone loop dangling; rm $(printf '\\377\\376')";
    let text = changes_line(&unseen(&world, script).await);
    assert!(text.ends_with("\n[not covered by undo: data/clone/.git gone]"), "{text}");
    assert!(text.contains("data/loop") && text.contains("data/clone/,"), "{text}");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(data.join(OsStr::from_bytes(b"\xff\xfe"))).unwrap(), b"odd\n");
    assert_eq!(fs::read(data.join("clone/file")).unwrap(), b"text\n");
    assert_eq!(fs::read_link(data.join("dangling")).unwrap(), Path::new("/nowhere"));
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_named_where_it_goes() {
    if crate::ran_as_somebody_else(
        "changed_ignored_data::a_folder_that_cannot_be_listed_is_named_where_it_goes",
    ) {
        return;
    }
    let world = world();
    let shut = root(&world).join("data/shut");
    fs::create_dir(&shut).unwrap();
    fs::write(shut.join("x"), "x\n").unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let text = changes_line(&unseen(&world, "chmod 700 data/shut; rm -r data/shut").await);
    assert_eq!(text, "[deleted: data/shut/]\n[not covered by undo: data/shut gone]");
}

#[tokio::test]
async fn what_a_test_run_writes_is_told_shortly() {
    let world = world();
    let text = changes_line(&unseen(&world, "echo > .coverage; mkdir data/logs; for i in $(seq 500); do echo $i > data/logs/$i; done; for i in $(seq 500); do echo $i > $i.log; done").await);
    assert!(text.len() < 500 && text.contains("500"), "{text}");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert!(!root(&world).join("data/logs").exists());
}

#[tokio::test]
async fn more_names_than_are_known_are_counted_by_their_folder() {
    let world = world();
    let logs = root(&world).join("d");
    for name in 0..20_100 {
        fs::write(logs.join(format!("{name}.log")), "").unwrap();
    }
    let text = changes_line(&unseen(&world, "cd d; rm 1*.log").await);
    assert!(text.contains("[not covered by undo: d: "), "{text}");
    assert!(text.contains(" of 20,101 ignored files gone]"), "{text}");
}
