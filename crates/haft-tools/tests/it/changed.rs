//! What a command changed: found, told, taken back byte for byte and made again.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use haft_testkit::{machine::times, world::World};
use haft_tool::{
    DiffLimits, Dispatcher, MemoryPreImages, PreImages, Settings, UndoError, standard,
};
use haft_types::{Body, EntryKind, HostPath, Outcome, Receipt, ReceiptAction, Status};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// What stands at each path: its kind with its permissions, and its content or target.
pub type Tree = BTreeMap<String, (String, Vec<u8>)>;

/// Everything below a folder, whoever ignores it.
pub fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let data = fs::symlink_metadata(&path).unwrap();
            let mode = data.permissions().mode() & 0o7777;
            let (kind, content) = if data.is_symlink() {
                ("link".into(), fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if data.is_dir() {
                open.push(path);
                (format!("folder {mode:o}"), Vec::new())
            } else {
                (format!("file {mode:o}"), fs::read(&path).unwrap())
            };
            found.insert(name, (kind, content));
        }
    }
    found
}

pub fn world() -> World {
    World::local(
        haft_tools::builtin(),
        [
            (".gitignore", "*.log\n/target/\nnode_modules/\n"),
            (".git/config", "[core]\n"),
            ("a.txt", "one\ntwo\n"),
            ("b c.txt", "three\n"),
            ("d/e", "four\n"),
            ("d/f/g.txt", "five\n"),
            ("d/old.log", "ignored\n"),
            ("target/out", "built\n"),
            ("empty", ""),
        ],
    )
    .unwrap()
}

/// What all calls changed, oldest first.
pub fn receipts(world: &World) -> Vec<Receipt> {
    let bodies = world.recorder.bodies();
    let ended = bodies.into_iter().filter_map(|body| match body {
        Body::CallEnded { outcome, .. } => Some(outcome.receipts),
        Body::Found { receipts, .. } => Some(receipts),
        _ => None,
    });
    ended.flatten().collect()
}

/// Takes changes back that are given oldest first; gives what was done for it in the same order.
pub async fn take_back(
    world: &World,
    oldest_first: &[Receipt],
    force: bool,
) -> Result<Vec<Receipt>, UndoError> {
    world.take_back(oldest_first, force, &|_| None).await
}

pub async fn bash(world: &World, command: &str) -> Outcome {
    let outcome = world.call("bash", json!({"command": command})).await;
    crate::fits(world, "bash", &outcome);
    outcome
}

/// The line that tells of changes.
pub fn changes_line(outcome: &Outcome) -> String {
    let text = outcome.joined_text();
    let lines = text.lines().filter(|line| line.starts_with('['));
    lines.collect::<Vec<_>>().join("\n")
}

fn any_command() -> impl Strategy<Value = String> {
    let path = || {
        prop::sample::select(vec![
            "a.txt",
            "'b c.txt'",
            "d",
            "d/e",
            "d/f",
            "d/f/g.txt",
            "empty",
            "n",
            "n/o",
            "n/o/p",
            "x.txt",
            "d/old.log",
            "target/out",
            ".gitignore",
            "l",
        ])
    };
    let text = prop::sample::select(vec!["", "one\\ntwo\\n", "three\\n", "x", "\\0\\377"]);
    let mode = prop::sample::select(vec!["600", "644", "755", "400", "555", "700"]);
    prop_oneof![
        4 => (path(), text.clone()).prop_map(|(path, text)| format!("printf '{text}' > {path}")),
        3 => (path(), text).prop_map(|(path, text)| format!("printf '{text}' >> {path}")),
        3 => path().prop_map(|path| format!("rm -rf {path}")),
        4 => (path(), path()).prop_map(|(from, to)| format!("mv {from} {to}")),
        3 => (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        2 => (path(), path()).prop_map(|(from, to)| format!("cp -r {from} {to}")),
        2 => (path(), mode).prop_map(|(path, mode)| format!("chmod {mode} {path}")),
        2 => path().prop_map(|path| format!("mkdir -p {path}")),
        2 => (path(), path()).prop_map(|(from, to)| format!("ln -sfn {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("ln {from} {to}")),
        2 => path().prop_map(|path| format!("sed -i s/o/0/ {path}")),
        1 => path().prop_map(|path| format!("touch {path}")),
        // The same size and the same time: nothing but the change time tells it.
        2 => path().prop_map(|path| format!(
            "[ -f {path} ] && t=$(stat -c @%.9Y {path}) && printf Q | dd of={path} conv=notrunc \
             bs=1 count=1 && touch -d \"$t\" {path}"
        )),
    ]
}

/// Only the paths that undo is about: not what tools rebuild at either end, nor `.git`.
fn covered(tree: &Tree) -> Tree {
    let is_kept = |name: &str| {
        !name.split('/').any(|name| name == "node_modules")
            && !name.starts_with("target")
            && !name.starts_with(".git/")
    };
    tree.iter().filter(|(name, _)| is_kept(name)).map(|(a, b)| (a.clone(), b.clone())).collect()
}

/// Compares what undo is about. What was moved in stays, and so does a folder that holds some of it,
/// or something that tools rebuild.
fn assert_same(now: &Tree, wanted: &Tree, moved_in: &[String], what: &str) {
    let (mut found, wanted) = (covered(now), covered(wanted));
    let is_moved = |name: &str| moved_in.iter().any(|moved| Path::new(name).starts_with(moved));
    let stays = |name: &String| !wanted.contains_key(name) && is_moved(name);
    let foreign: Vec<&String> =
        now.keys().filter(|name| !found.contains_key(*name) || stays(name)).collect();
    let holds = |folder: &str| foreign.iter().any(|name| name.starts_with(&format!("{folder}/")));
    let left: Vec<String> =
        found.keys().filter(|name| !wanted.contains_key(*name) && holds(name)).cloned().collect();
    found.retain(|name, _| !stays(name) && !left.contains(name));
    assert_eq!(found, wanted, "{what}");
}

/// Waits until a disk's times tell what is there now from what is made from now on.
pub async fn aged(file: &Path) {
    let data = fs::metadata(file).unwrap();
    let Ok(born) = data.created() else { return };
    let last = born.max(data.modified().unwrap());
    while last.elapsed().unwrap() < Duration::from_millis(100) {
        tokio::task::yield_now().await;
    }
}

async fn there_and_back(scripts: &[String], split: usize, is_aged: bool) {
    let world = world();
    let mut moved_in = Vec::new();
    let root = world.folder().unwrap();
    if is_aged {
        aged(&root.join("empty")).await;
    }
    let before = tree(&root);
    let mut middle = None;
    for (number, script) in scripts.iter().enumerate() {
        if number == split {
            middle = Some((tree(&root), receipts(&world).len()));
        }
        let outcome = bash(&world, script).await;
        let names = outcome.data.as_ref().and_then(|data| data.pointer("/changes/moved_in"));
        let names = names.and_then(|names| names.as_array()).into_iter().flatten();
        moved_in.extend(names.map(|name| name.as_str().unwrap().trim_end_matches('/').to_owned()));
    }
    let assert_same =
        |now: &Tree, wanted: &Tree, what: &str| assert_same(now, wanted, &moved_in, what);
    let (middle, cut) = middle.unwrap();
    let after = tree(&root);
    let all = receipts(&world);
    for receipt in &all {
        let path = receipt.path.shown_from(&world.root).into_owned();
        assert!(path != ".git" && !path.starts_with(".git/"), "{receipt:?}");
    }
    let now = || tree(&root);
    let Some(undone) = went(take_back(&world, &all, false).await, &root, &after, &moved_in) else {
        return;
    };
    assert_same(&now(), &before, "undone");
    let was = now();
    let Some(redone) = went(take_back(&world, &undone, false).await, &root, &was, &moved_in) else {
        return;
    };
    assert_same(&now(), &after, "made again");
    let was = now();
    let undone_again = take_back(&world, &redone, false).await;
    let Some(_) = went(undone_again, &root, &was, &moved_in) else { return };
    assert_same(&now(), &before, "undone again");
    let was = now();
    let Some(_) = went(take_back(&world, &undone, false).await, &root, &was, &moved_in) else {
        return;
    };
    let was = now();
    let last = take_back(&world, &all[cut..], false).await;
    let Some(_) = went(last, &root, &was, &moved_in) else { return };
    assert_same(&now(), &middle, "the last calls");
    let was = now();
    let first = take_back(&world, &all[..cut], false).await;
    let Some(_) = went(first, &root, &was, &moved_in) else { return };
    assert_same(&now(), &before, "the first calls");
}

/// What was done; none where a folder is in the way that holds what git ignores: then all is as it
/// was.
fn went(
    done: Result<Vec<Receipt>, UndoError>,
    root: &Path,
    was: &Tree,
    moved_in: &[String],
) -> Option<Vec<Receipt>> {
    match done {
        Ok(receipts) => Some(receipts),
        Err(UndoError::Io { source, .. }) if source.kind() == ErrorKind::IsADirectory => {
            assert_eq!(tree(root), *was, "put back");
            None
        }
        // What was moved in, to where something has to come back, is nobody's to remove.
        Err(UndoError::Conflict(found)) if !moved_in.is_empty() => {
            let name =
                |path: &HostPath| Path::new(&*path.text()).strip_prefix(root).unwrap().to_owned();
            let is_moved = |path: &HostPath| moved_in.iter().any(|one| name(path).starts_with(one));
            assert!(found.iter().all(|one| is_moved(&one.path)), "{found:?}");
            assert_eq!(tree(root), *was, "put back");
            None
        }
        // What is made where git ignores all is not known, so neither is what is in such a folder.
        Err(UndoError::Blocked { path, why })
            if why == "is a folder now" && path.text().contains("/w/target/") =>
        {
            assert!(root.join("target/out").is_dir(), "{path}");
            assert_eq!(tree(root), *was, "put back");
            None
        }
        Err(UndoError::Blocked { path, why }) if !moved_in.is_empty() => {
            assert!(moved_in.iter().any(|one| path.text().contains(one)), "{path} {why}");
            assert_eq!(tree(root), *was, "put back");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_folder_that_holds_what_nobody_knows_is_not_replaced() {
    let world = world();
    let root = world.folder().unwrap();
    fs::create_dir(root.join("d/node_modules")).unwrap();
    fs::write(root.join("d/node_modules/x"), "built\n").unwrap();
    bash(&world, "mv a.txt 'b c.txt'; cp -r d a.txt; chmod 700 d; ln -s x l").await;
    let after = tree(&root);
    let done = take_back(&world, &receipts(&world), false).await;
    assert!(went(done, &root, &after, &[]).is_none());
}

#[tokio::test]
async fn a_folder_that_stands_where_git_ignores_all_is_not_replaced() {
    let world = world();
    bash(&world, "mv target/out a.txt").await;
    bash(&world, "cp -r d target/out").await;
    let root = world.folder().unwrap();
    let after = tree(&root);
    let done = take_back(&world, &receipts(&world), false).await;
    assert!(went(done, &root, &after, &[]).is_none());
}

#[tokio::test]
async fn a_folder_that_was_made_and_holds_what_was_moved_in_stays() {
    for script in ["mkdir x.txt; mv target x.txt", "mkdir -p n/o; mv target/out n/o"] {
        there_and_back(&[script.to_owned(), "echo x >> a.txt".to_owned()], 1, true).await;
    }
}

#[tokio::test]
async fn a_folder_that_cannot_go_comes_along_with_the_one_above_it() {
    let first = "mkdir -p d/n/o d/n/m; echo x > d/n/o/p; \
         for f in d/n d/n/m; do mkdir $f/node_modules; echo built > $f/node_modules/x; done";
    there_and_back(&[first, "mv d l"].map(str::to_owned), 1, false).await;
    let world = world();
    let root = world.folder().unwrap();
    bash(&world, first).await;
    bash(&world, "chmod 700 d/n; mv d l").await;
    let after = tree(&root);
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    let now = tree(&root);
    let stays = ["d/n/node_modules/x", "d/n/m/node_modules/x"];
    assert!(stays.iter().all(|name| now.contains_key(*name)), "{now:?}");
    assert!(!now.contains_key("l") && !now.contains_key("d/n/o"), "{now:?}");
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(tree(&root), after, "with what git ignores");
}

#[tokio::test]
async fn what_came_and_went_is_not_looked_for() {
    for force in [false, true] {
        let world = world();
        let root = world.folder().unwrap();
        bash(&world, "echo one > t; mkdir n; echo two > n/t").await;
        bash(&world, "rm t n/t; mkdir m; mv a.txt m/a; mv m/a a.txt; rmdir m").await;
        // Somebody else has put this there.
        fs::write(root.join("t"), "mine\n").unwrap();
        fs::create_dir(root.join("m")).unwrap();
        take_back(&world, &receipts(&world), force).await.unwrap();
        assert_eq!(fs::read(root.join("t")).unwrap(), b"mine\n", "{force}");
        assert!(!root.join("n").exists() && root.join("m").exists(), "{force}");
    }
}

#[tokio::test]
async fn folders_of_what_came_and_went_are_made_again() {
    let world = world();
    let root = world.folder().unwrap();
    let before = tree(&root);
    world.call("write", json!({"path": "n/o/x", "content": "mine\n"})).await;
    bash(&world, "mv n/o/x x; chmod 700 n/o").await;
    world.call("write", json!({"path": "m/y", "content": "mine\n"})).await;
    bash(&world, "rm m/y").await;
    goes_both_ways(&world, &before).await;
}

/// Takes all back to what was before, and makes it again, twice.
async fn goes_both_ways(world: &World, before: &Tree) {
    let root = world.folder().unwrap();
    let after = tree(&root);
    for _ in 0..2 {
        let undone = take_back(world, &receipts(world), false).await.unwrap();
        assert_eq!(tree(&root), *before);
        take_back(world, &undone, false).await.unwrap();
        assert_eq!(tree(&root), after);
    }
}

#[tokio::test]
async fn a_folder_that_was_made_in_one_that_was_moved_goes() {
    let world = world();
    let root = world.folder().unwrap();
    let before = tree(&root);
    bash(&world, "mv d n").await;
    world.call("write", json!({"path": "n/o/p", "content": "mine\n"})).await;
    goes_both_ways(&world, &before).await;
}

#[tokio::test]
async fn what_stands_where_a_folder_was_is_named() {
    let world = world();
    let root = world.folder().unwrap();
    bash(&world, "rm -rf d").await;
    fs::write(root.join("d"), "mine\n").unwrap();
    let all = receipts(&world);
    let error = take_back(&world, &all, false).await.unwrap_err();
    let UndoError::Blocked { path, .. } = &error else { panic!("{error}") };
    assert_eq!(path.shown_from(&world.root), "d", "{error}");
    assert_eq!(fs::read(root.join("d")).unwrap(), b"mine\n");
}

#[tokio::test]
async fn what_is_named_behind_a_word_without_text_is_told() {
    for (first, then) in [
        ("mv -T target/out a.txt", "printf '' >> a.txt; touch target/out"),
        ("mv d/old.log a.txt; cp -r 'b c.txt' l", "printf '' > a.txt; mv -T l d/old.log"),
    ] {
        there_and_back(&[first, then].map(str::to_owned), 0, false).await;
    }
}

#[tokio::test]
async fn what_git_ignores_is_changed_and_moved_with_its_folder() {
    for script in [
        "printf '' > d/old.log; mv d x.txt",
        "echo more >> d/old.log; mv d x.txt",
        "sed -i s/i/o/ d/old.log; mv d x.txt",
        "rm d/old.log; mv d x.txt; echo new > x.txt/old.log",
        "mv target/out d/old.log; mv d x.txt",
        "echo x > d/old.log; mv d x.txt; mv x.txt n; chmod 600 n/old.log",
    ] {
        for is_aged in [false, true] {
            there_and_back(&[script.to_owned()], 0, is_aged).await;
        }
    }
}

#[tokio::test]
async fn what_gets_a_name_that_git_ignored_until_then_is_told() {
    let rules = "echo 'Q.log' > .gitignore; echo more >> a.txt";
    for (first, then) in [
        ("mv -T d/old.log a.txt", format!("{rules}; mv a.txt d/old.log")),
        ("mv -T d/old.log a.txt", format!("{rules}; mv a.* d/new.log")),
        ("rm d/old.log", format!("{rules}; mv a.txt d/old.log")),
    ] {
        for is_aged in [false, true] {
            there_and_back(&[first.to_owned(), then.clone()], 0, is_aged).await;
        }
    }
}

#[test]
fn whatever_commands_do_to_files_is_taken_back_and_made_again() {
    let script = prop::collection::vec(any_command(), 1..6).prop_map(|all| all.join("; "));
    let is_aged = prop::bool::weighted(0.2);
    let cases = (prop::collection::vec(script, 1..4), any::<prop::sample::Index>(), is_aged);
    let config = ProptestConfig {
        cases: times(60).try_into().unwrap(),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let run = TestRunner::new(config).run(&cases, |(scripts, split, is_aged)| {
        runtime.block_on(there_and_back(&scripts, split.index(scripts.len()), is_aged));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// The same world where other limits hold.
pub fn watched(mut world: World, watching: Option<DiffLimits>) -> World {
    let pipeline = standard(&Settings { watching, ..Settings::default() });
    let old = &world.dispatcher;
    let dispatcher = Dispatcher {
        session: old.session.clone(),
        conversation: old.conversation.clone(),
        tools: old.tools.clone(),
        pipeline: Arc::new(pipeline),
        place: old.place.clone(),
        host: old.host.clone(),
        agent: old.agent.clone(),
        mode: None,
    };
    world.dispatcher = Arc::new(dispatcher);
    world
}

#[tokio::test]
async fn one_line_tells_what_a_command_did() {
    let world = world();
    let command = "echo new > n.txt; echo more >> a.txt; rm d/e; mv 'b c.txt' c.txt; \
                   touch d/old.log target/new; mkdir -p m/o; echo x > m/o/p; chmod 600 empty";
    let outcome = bash(&world, command).await;
    let line = "[changed: a.txt, empty; created: m/, n.txt, target/new; deleted: \
                d/e; \
                renamed: b c.txt to c.txt; 2 inside of these folders]";
    assert_eq!(changes_line(&outcome), line);
    let changes = outcome.data.as_ref().and_then(|data| data.get("changes")).unwrap();
    let wanted = json!({
        "changed": ["a.txt", "empty"], "created": ["m/", "n.txt", "target/new"], "deleted": ["d/e"],
        "renamed": ["b c.txt to c.txt"], "more": 2,
    });
    assert_eq!(changes, &wanted);
    let found = receipts(&world);
    assert_eq!(found.len(), 9, "{found:?}");
    let folders = found.iter().filter(|receipt| receipt.kind == EntryKind::Folder);
    assert_eq!(folders.count(), 2);
    let moved = |one: &&Receipt| matches!(one.action, ReceiptAction::Renamed { .. });
    let moved = found.iter().find(moved).unwrap();
    assert!(moved.before.is_some() && moved.before == moved.after, "{moved:?}");
    // Nothing is said where nothing changed, nor where only times did.
    assert_eq!(changes_line(&bash(&world, "touch a.txt; cat a.txt > /dev/null").await), "");
    let many = bash(&world, "for i in $(seq 30); do echo $i > f$i; done").await;
    assert!(changes_line(&many).ends_with("; 10 more]"), "{}", changes_line(&many));
    assert_eq!(many.notes, [changes_line(&many)], "people are told the same");
}

#[tokio::test]
async fn a_change_that_leaves_size_and_time_is_found() {
    let world = world();
    let command = "t=$(stat -c @%.9Y a.txt); printf ONE | dd of=a.txt conv=notrunc 2> /dev/null; \
                   touch -d \"$t\" a.txt";
    for _ in 0..5 {
        let before = fs::read(world.folder().unwrap().join("a.txt")).unwrap();
        assert_eq!(changes_line(&bash(&world, command).await), "[changed: a.txt]");
        let all = receipts(&world);
        take_back(&world, &all[all.len() - 1..], false).await.unwrap();
        assert_eq!(fs::read(world.folder().unwrap().join("a.txt")).unwrap(), before);
    }
}

#[tokio::test]
async fn what_others_changed_since_is_not_replaced_unasked() {
    let world = world();
    bash(&world, "echo two > a.txt; mkdir n; echo x > n/x; rm d/e").await;
    let root = world.folder().unwrap();
    fs::write(root.join("a.txt"), "mine\n").unwrap();
    fs::write(root.join("n/mine"), "mine\n").unwrap();
    let all = receipts(&world);
    let error = take_back(&world, &all, false).await.unwrap_err();
    assert!(matches!(&error, UndoError::Conflict(found) if found.len() == 1), "{error}");
    assert!(root.join("n/x").exists() && !root.join("d/e").exists(), "nothing was done");
    take_back(&world, &all, true).await.unwrap();
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), b"one\ntwo\n");
    // A folder that somebody put something into stays.
    assert!(
        !root.join("n/x").exists() && root.join("n/mine").exists() && root.join("d/e").exists()
    );
}

#[tokio::test]
async fn a_folder_takes_what_git_ignores_in_it_along() {
    let world = world();
    bash(&world, "mv d moved").await;
    let root = world.folder().unwrap();
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(root.join("d/old.log")).unwrap(), b"ignored\n");
    assert!(!root.join("moved").exists());
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(fs::read(root.join("moved/old.log")).unwrap(), b"ignored\n");
    assert!(!root.join("d").exists());
}

#[tokio::test]
async fn what_an_ignore_file_hides_no_more_was_not_made() {
    let world = world();
    let before = tree(&world.folder().unwrap());
    let outcome = bash(&world, "rm .gitignore; echo new > new.log").await;
    assert_eq!(changes_line(&outcome), "[created: new.log; deleted: .gitignore]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(tree(&world.folder().unwrap()), before);
    // What it hides from now on is not gone.
    let outcome = bash(&world, "echo '*.txt' >> .gitignore; echo more >> a.txt").await;
    assert_eq!(changes_line(&outcome), "[changed: .gitignore, a.txt]");
}

#[tokio::test]
async fn what_is_too_big_is_named_and_the_rest_can_be_taken_back() {
    let small = DiffLimits { file_bytes: 100, ..DiffLimits::default() };
    let world = watched(world(), Some(small));
    let root = world.folder().unwrap();
    fs::write(root.join("big"), vec![b'x'; 1000]).unwrap();
    fs::write(root.join("moved"), vec![b'y'; 1000]).unwrap();
    let outcome =
        bash(&world, "echo x >> big; echo x >> a.txt; mv moved there; cp there new").await;
    let lines = changes_line(&outcome);
    let (first, second) = lines.split_once('\n').unwrap();
    assert_eq!(first, "[changed: a.txt, big; created: new; renamed: moved to there]");
    assert!(second.starts_with("[cannot be undone: big (it has more than 100 bytes: "), "{second}");
    assert!(!second.contains("there") && !second.contains("new"), "{second}");
    let error = take_back(&world, &receipts(&world), false).await.unwrap_err();
    assert!(matches!(error, UndoError::NotKept { .. }), "{error}");
    assert!(fs::read(root.join("a.txt")).unwrap().ends_with(b"x\n"), "all or nothing");
    take_back(&world, &receipts(&world), true).await.unwrap();
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), b"one\ntwo\n");
    assert!(root.join("moved").exists() && !root.join("new").exists());
}

#[tokio::test]
async fn what_is_too_big_to_be_read_is_no_change_of_somebody_else() {
    let world = world();
    let root = world.folder().unwrap();
    let before = fs::read(root.join("a.txt")).unwrap();
    // Over what is copied, its content is known all the same.
    bash(&world, "truncate -s 5M a.txt").await;
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), before);
    for (command, path) in
        [("truncate -s 1025M huge", "huge"), ("truncate -s 1025M a.txt", "a.txt")]
    {
        let outcome = bash(&world, command).await;
        let lines = changes_line(&outcome);
        let why = format!("[cannot be undone: {path} (it has more than 1073741824 bytes, too many");
        assert!(lines.contains(&why), "{lines}");
        let all = receipts(&world);
        let last = &all[all.len() - 1..];
        let error = take_back(&world, last, false).await.unwrap_err();
        assert!(matches!(error, UndoError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains(path), "{error}");
        take_back(&world, last, true).await.unwrap();
    }
    assert!(!root.join("huge").exists());
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), before);
}

#[tokio::test]
async fn copies_that_find_no_room_are_named() {
    let world = world();
    world.session.services.insert::<dyn PreImages>(Arc::new(MemoryPreImages::with_quota(12)));
    let outcome =
        bash(&world, "for f in a.txt 'b c.txt' d/e d/f/g.txt; do echo x >> \"$f\"; done").await;
    assert!(changes_line(&outcome).contains("\n[cannot be undone: "), "{}", changes_line(&outcome));
    assert_eq!(receipts(&world).len(), 4);
}

#[tokio::test]
async fn too_many_files_are_told_once_and_not_looked_at() {
    let few = DiffLimits { files: 8, ..DiffLimits::default() };
    let world = watched(world(), Some(few));
    let root = world.folder().unwrap();
    assert_eq!(changes_line(&bash(&world, "echo x >> a.txt").await), "[changed: a.txt]");
    for number in 0..3 {
        fs::write(root.join(format!("more{number}")), "").unwrap();
    }
    let text = changes_line(&bash(&world, "echo x >> a.txt").await);
    assert!(text.contains("more than 8 files (shell.changes.files in the settings)"), "{text}");
    assert_eq!(changes_line(&bash(&world, "echo x >> a.txt").await), "", "once");
    assert_eq!(receipts(&world).len(), 1);
    let off = watched(self::world(), None);
    assert_eq!(changes_line(&bash(&off, "echo x >> a.txt").await), "");
    assert_eq!(receipts(&off).len(), 0);
}

#[tokio::test]
async fn a_command_that_is_stopped_is_looked_after_too() {
    let world = world();
    let input = json!({"command": "echo x > late; echo y >> a.txt; sleep 100", "timeout_ms": 400});
    let outcome = world.call("bash", input).await;
    assert_eq!(outcome.status, Status::TimedOut);
    assert!(
        changes_line(&outcome).ends_with("[changed: a.txt; created: late]"),
        "{}",
        changes_line(&outcome)
    );
    // The answer to a cancelled call waits for nothing: on a busy machine it may come before the look.
    for tries in 1.. {
        let command = format!("rm late; echo gone {tries}; sleep 100");
        let outcome = cancelled(&world, &command, &format!("gone {tries}\n")).await;
        assert_eq!(outcome.status, Status::Cancelled);
        world.session.finished().await;
        if changes_line(&outcome).ends_with("[deleted: late]") {
            break;
        }
        assert!(tries < 10, "{}", changes_line(&outcome));
        world.call("bash", json!({"command": "echo x > late"})).await;
    }
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert!(!world.folder().unwrap().join("late").exists());
}

/// Runs a command, and cancels the call once it has said this.
pub async fn cancelled(world: &World, command: &str, words: &str) -> Outcome {
    let stop = CancellationToken::new();
    let call = world.call_until("bash", json!({"command": command}), stop.clone());
    let cancel = async {
        let said = |body: &Body| matches!(body, Body::CallOutput { text, .. } if text == words);
        world.recorder.until(said).await;
        stop.cancel();
    };
    tokio::join!(call, cancel).0
}

#[tokio::test]
async fn two_commands_at_once_tell_a_change_once() {
    let world = world();
    let before = tree(&world.folder().unwrap());
    haft_testkit::machine::make_fifo(&world.folder().unwrap().join("target/go"));
    // Each goes on when the other one has written.
    let one = bash(&world, "echo one > one; read -r _ < target/go; echo one > three");
    let two = bash(&world, "echo two > two; echo on > target/go");
    let (one, two) = tokio::join!(one, two);
    assert_eq!((one.status, two.status), (Status::Done, Status::Done));
    let mut made: Vec<String> =
        receipts(&world).iter().map(|one| one.path.shown_from(&world.root).into_owned()).collect();
    made.sort();
    assert_eq!(made, ["one", "three", "two"], "{} {}", changes_line(&one), changes_line(&two));
    fs::remove_file(world.folder().unwrap().join("target/go")).unwrap();
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(tree(&world.folder().unwrap()), before);
}

#[tokio::test]
async fn what_a_rule_hides_is_neither_named_nor_copied() {
    let world = world();
    world.rule(haft_policy::Verdict::Deny, "Read(hidden.txt)");
    // What a program does is not seen before.
    fs::write(world.folder().unwrap().join("do.sh"), "echo x > hidden.txt; echo x > seen.txt")
        .unwrap();
    let outcome = bash(&world, "sh do.sh").await;
    assert_eq!(changes_line(&outcome), "[created: seen.txt]");
    assert!(!serde_json::to_string(&receipts(&world)).unwrap().contains("hidden"));
}

#[tokio::test]
async fn a_change_of_an_edit_tool_beside_is_not_told_twice() {
    let world = world();
    bash(&world, "echo x >> a.txt").await;
    let input = json!({"path": "n.txt", "content": "mine\n"});
    world.call("write", input).await;
    assert_eq!(changes_line(&bash(&world, "echo x >> a.txt").await), "[changed: a.txt]");
    let all = receipts(&world);
    assert_eq!(all.len(), 3);
    take_back(&world, &all, false).await.unwrap();
    assert_eq!(fs::read(world.folder().unwrap().join("a.txt")).unwrap(), b"one\ntwo\n");
    assert!(!world.folder().unwrap().join("n.txt").exists());
}

#[tokio::test]
async fn a_folder_that_became_a_link_is_gone_wherever_it_leads() {
    for command in [
        "rm -rf d; ln -s d d",
        "rm -rf d; ln -s k d; ln -s d k",
        "rm -rf d; ln -s d/x d",
        "rm -rf d/f; ln -s f d/f; echo f >> .gitignore",
        "rm -rf d; ln -s \"$(head -c 4000 /dev/zero | tr '\\0' a)\" d",
    ] {
        let world = world();
        let root = world.folder().unwrap();
        fs::remove_file(root.join("d/old.log")).unwrap();
        let before = tree(&root);
        bash(&world, command).await;
        assert_ne!(tree(&root), before, "{command}");
        take_back(&world, &receipts(&world), false).await.unwrap();
        assert_same(&tree(&root), &before, &[], command);
    }
}

#[tokio::test]
async fn what_was_moved_in_is_told_and_stays() {
    let world = world();
    let root = world.folder().unwrap();
    fs::create_dir(root.join("target/in")).unwrap();
    fs::write(root.join("target/in/x"), "only copy\n").unwrap();
    aged(&root.join("target/in/x")).await;
    let command = "find target -name out -exec mv {} out.txt \\; ; mv target/in in; echo new > in/new; echo x >> a.txt; \
                   mv 'b c.txt' c.txt; echo x >> c.txt; ln d/old.log linked";
    let outcome = bash(&world, command).await;
    let line = "[changed: a.txt; created: c.txt, in/new, linked; deleted: b c.txt; moved in, which \
                undo leaves: in/, out.txt; 1 inside of these folders]";
    assert_eq!(changes_line(&outcome), line);
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(root.join("out.txt")).unwrap(), b"built\n");
    assert_eq!(fs::read(root.join("in/x")).unwrap(), b"only copy\n");
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), b"one\ntwo\n");
    assert_eq!(fs::read(root.join("b c.txt")).unwrap(), b"three\n");
    for name in ["in/new", "linked", "c.txt"] {
        assert!(!root.join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn names_are_from_the_workspace_root_wherever_the_shell_is() {
    let world = world();
    let outcome = bash(&world, "cd d; echo x >> e").await;
    assert!(changes_line(&outcome).contains("[changed: d/e]"), "{}", changes_line(&outcome));
    let outcome = bash(&world, "echo x > new").await;
    assert_eq!(changes_line(&outcome), "[created: d/new]");
    let input = json!({"command": "rm f/g.txt", "cwd": "d"});
    assert_eq!(changes_line(&world.call("bash", input).await), "[deleted: d/f/g.txt]");
}
