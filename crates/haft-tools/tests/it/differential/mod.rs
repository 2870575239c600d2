//! grep and find beside ripgrep and fd, over the same made trees.
//!
//! Every query goes through the whole pipeline on this machine's files, and the peer does what it
//! asks for. Compared are the files, lines, numbers, marked stretches and counts, the order of
//! `rg --sort path`, and pages put together with the whole. `known` lists what differs and why; an
//! entry that no longer differs fails too. Without the peers this fails: a comparison with nothing is
//! none.

mod find;
mod grep;
mod known;
mod trees;

use std::{collections::BTreeMap, path::Path, process::Command};

use haft_testkit::world::World;
use serde_json::Value;

use self::{known::KNOWN, trees::Tree};

/// What came of one query: none where both say the same.
struct Compared {
    tool: &'static str,
    tree: &'static str,
    query: String,
    difference: Option<String>,
    /// Whether the peer found anything.
    found: bool,
}

/// What the peer prints in a folder, or why it refuses to search; 1 is its end where it found
/// nothing.
fn printed(command: &mut Command, folder: &Path) -> Result<Vec<u8>, String> {
    let output = command.current_dir(folder).output().unwrap();
    match output.status.code() {
        Some(0 | 1) => Ok(output.stdout),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Fails unless exactly what is listed differs; says how many do.
fn judge(all: &[Compared]) -> String {
    let mut problems = Vec::new();
    let mut listed: BTreeMap<(&str, &str, &str), bool> = BTreeMap::new();
    for known in KNOWN.iter().filter(|known| all.iter().any(|one| one.tool == known.tool)) {
        listed.insert((known.tool, known.tree, known.query), false);
        assert!(!known.reason.is_empty() && !known.version.is_empty());
    }
    for one in all {
        let entry = listed.get_mut(&(one.tool, one.tree, &*one.query));
        match (&one.difference, entry) {
            (Some(_), Some(seen)) => *seen = true,
            (Some(how), None) => {
                problems.push(format!("{} in {}: {}\n  {how}", one.tool, one.tree, one.query));
            }
            (None, _) => {}
        }
    }
    for ((tool, tree, query), _) in listed.iter().filter(|(_, seen)| !**seen) {
        problems.push(format!("{tool} in {tree}: {query}\n  is listed, but does not differ"));
    }
    let found = all.iter().filter(|one| one.found).count();
    assert!(found * 2 > all.len(), "only for {found} of {} is there anything to find", all.len());
    let same = all.iter().filter(|one| one.difference.is_none()).count();
    let count = problems.len();
    assert!(problems.is_empty(), "{count} of {}:\n{}", all.len(), problems.join("\n"));
    let listed = all.len() - same;
    format!("{} queries, {found} that find something, {same} identical, {listed} listed", all.len())
}

/// The first thing in which two lists differ.
fn first_difference<T: PartialEq + std::fmt::Debug>(ours: &[T], theirs: &[T]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    Some(format!(
        "haft gives {}, the peer {}; from number {} on haft has {:?}, the peer {:?}",
        ours.len(),
        theirs.len(),
        at + 1,
        ours.get(at),
        theirs.get(at)
    ))
}

/// The data of a call that works.
async fn data(world: &World, tool: &str, input: &Value) -> Result<Value, String> {
    let outcome = world.call(tool, input.clone()).await;
    if outcome.data.is_some() {
        crate::fits(world, tool, &outcome);
    }
    outcome.data.clone().ok_or_else(|| outcome.joined_text())
}

/// Arguments as text, in the order of their names.
fn written(input: &Value) -> String {
    let sorted: BTreeMap<_, _> = input.as_object().unwrap().iter().collect();
    serde_json::to_string(&sorted).unwrap()
}

/// As one argument more.
fn with(input: &Value, more: &[(&str, Value)]) -> Value {
    let mut input = input.clone();
    for (name, value) in more {
        input[*name] = value.clone();
    }
    input
}

#[tokio::test(flavor = "multi_thread")]
async fn grep_gives_what_ripgrep_gives() {
    let mut all = Vec::new();
    for tree in Tree::all().into_iter().chain([Tree::of_long_lines()]) {
        grep::compare(&tree, &mut all).await;
    }
    assert!(all.len() >= 200, "{}", all.len());
    println!("{}", judge(&all));
}

#[tokio::test(flavor = "multi_thread")]
async fn find_gives_what_fd_gives() {
    let mut all = Vec::new();
    for tree in Tree::all() {
        find::compare(&tree, &mut all).await;
    }
    assert!(all.len() >= 100, "{}", all.len());
    println!("{}", judge(&all));
}
