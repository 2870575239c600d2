//! Any row of calls of tools that change files is taken back, call by call or at once, and made
//! again: in a folder of git's with files that it has, that are changed since, and that it ignores.

use std::{fs, path::Path};

use haft_testkit::{machine::times, world::World};
use haft_types::Status;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::{
    changed::{Tree, receipts, take_back, tree},
    changed_git::{committed, files},
};

/// A call of a tool: its name, and its arguments.
type Call = (&'static str, Value);

const PATHS: [&str; 9] =
    ["a.txt", "b.txt", "d/c.txt", "d/e/run", "nothing", "dirty", "n/o/p", "n/q", "d/n"];

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(PATHS.to_vec())
}

fn content() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(vec!["", "1\n2\n3\n", "7\n", "mine\n", "no end"]);
    (lines, 0_usize..3).prop_map(|(lines, times)| lines.repeat(times))
}

fn change(old: &str, new: &str) -> Value {
    json!([{"old_text": old, "new_text": new}])
}

/// One file of several that change together.
fn one_of_many() -> impl Strategy<Value = Value> {
    prop_oneof![
        (path(), content()).prop_map(|(path, content)| json!({"path": path, "content": content})),
        path().prop_map(|path| json!({"path": path, "delete": true})),
        (path(), path()).prop_map(|(path, to)| json!({"path": path, "move_to": to})),
        path().prop_map(|path| json!({"path": path, "edits": change("17\n", "seventeen\n")})),
    ]
}

fn script() -> impl Strategy<Value = String> {
    let mode = prop::sample::select(vec!["600", "644", "755", "700"]);
    let folder = prop::sample::select(vec!["d", "d/e", "n", "n/o", "m"]);
    prop_oneof![
        (path(), content()).prop_map(|(path, text)| format!("printf '{text}' > {path}")),
        path().prop_map(|path| format!("echo more >> {path}")),
        path().prop_map(|path| format!("rm -f {path}")),
        (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        (path(), mode).prop_map(|(path, mode)| format!("chmod {mode} {path}")),
        folder.clone().prop_map(|folder| format!("mkdir -p {folder}")),
        folder.clone().prop_map(|folder| format!("rm -rf {folder}")),
        (folder.clone(), folder).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        Just("git checkout -q HEAD~1 -- b.txt".to_owned()),
        Just("git stash -q".to_owned()),
        Just("git add -A; git commit -qm more".to_owned()),
        Just("git reset -q --hard".to_owned()),
        Just("git rm -q --cached a.txt; git repack -adq; git prune --expire=now".to_owned()),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => (path(), content())
            .prop_map(|(path, content)| ("write", json!({"path": path, "content": content}))),
        2 => (path(), prop::sample::select(vec!["1\n2\n", "17\n", "mine\n"])).prop_map(|(path, old)| {
            ("edit", json!({"path": path, "edits": change(old, "other\n")}))
        }),
        2 => prop::collection::vec(one_of_many(), 1..4)
            .prop_map(|files| ("edit", json!({"files": files}))),
        4 => prop::collection::vec(script(), 1..4).prop_map(|all| {
            let git = crate::changed_git::GIT;
            let script = format!("git() {{ command {git} \"$@\"; }}; {}", all.join("; "));
            ("bash", json!({"command": script}))
        }),
    ]
}

/// The world in front of all calls, which is copied for each case.
async fn first() -> World {
    let (world, _) = committed("").await;
    let folder = world.folder().unwrap();
    fs::write(folder.join("dirty"), "mine\n").unwrap();
    fs::write(folder.join("d/c.txt"), "mine\n").unwrap();
    world
}

fn is_ignored(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "log")
}

/// What undo is about: not what git ignores, nor what it has.
fn covered(folder: &Path) -> Tree {
    let mut tree = files(folder);
    tree.retain(|name, _| !is_ignored(name));
    tree
}

/// Compares two states; a folder stays that holds what git ignores.
fn assert_same(folder: &Path, wanted: &Tree, what: &str) {
    let (mut now, all) = (covered(folder), tree(folder));
    now.retain(|name, _| {
        let holds = || all.keys().any(|one| is_ignored(one) && Path::new(one).starts_with(name));
        wanted.contains_key(name) || !holds()
    });
    assert_eq!(now, *wanted, "{what}");
}

async fn there_and_back(calls: &[Call], split: usize) {
    let world = first().await;
    let folder = world.folder().unwrap();
    // The state before each call that changed something, and how many receipts there were.
    let mut steps = vec![(covered(&folder), 0)];
    for (tool, input) in calls {
        let outcome = world.call(tool, input.clone()).await;
        assert_ne!(outcome.status, Status::Cancelled, "{outcome:?}");
        let count = receipts(&world).len();
        if count > steps[steps.len() - 1].1 {
            steps.push((covered(&folder), count));
        } else {
            assert_same(&folder, &steps[steps.len() - 1].0, "nothing was told");
        }
    }
    let all = receipts(&world);
    let (before, after) = (steps[0].0.clone(), steps[steps.len() - 1].0.clone());
    let back = async |from: usize, to: usize| {
        take_back(&world, &all[from..to], false).await.unwrap_or_else(|error| panic!("{error}"))
    };
    // At once, and again.
    let undone = back(0, all.len()).await;
    assert_same(&folder, &before, "all at once");
    take_back(&world, &undone, false).await.unwrap();
    assert_same(&folder, &after, "made again");
    // One by one, and again in the same steps.
    let mut each = Vec::new();
    for pair in steps.windows(2).rev() {
        let [(then, from), (now, to)] = pair else { continue };
        each.push((back(*from, *to).await, now));
        assert_same(&folder, then, "one by one");
    }
    for (undone, now) in each.iter().rev() {
        take_back(&world, undone, false).await.unwrap();
        assert_same(&folder, now, "made again one by one");
    }
    // In two parts, the newer one first.
    let (middle, cut) = steps[split % steps.len()].clone();
    back(cut, all.len()).await;
    assert_same(&folder, &middle, "the newer ones");
    back(0, cut).await;
    assert_same(&folder, &before, "the older ones");
}

#[test]
fn whatever_tools_do_in_turn_is_taken_back_and_made_again() {
    let cases = (prop::collection::vec(call(), 1..7), any::<usize>());
    let config = ProptestConfig {
        cases: times(12).try_into().unwrap(),
        failure_persistence: None,
        max_shrink_iters: 150,
        ..ProptestConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let run = TestRunner::new(config).run(&cases, |(calls, split)| {
        runtime.block_on(there_and_back(&calls, split));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}
