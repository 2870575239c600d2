//! find beside fd.

use std::process::Command;

use haft_testkit::machine;
use serde_json::{Value, json};

use super::{Compared, data, first_difference, printed, trees::Tree, with, written};

/// Patterns; one with a slash is for paths from the searched folder.
const PATTERNS: [&str; 22] = [
    "*",
    "*.rs",
    "*.RS",
    "*.{rs,txt}",
    "a*",
    "*needle*",
    "x.rs",
    "deep",
    "?.rs",
    "[ab]*",
    "[!a]*",
    "*.*",
    ".*",
    "**",
    "**/*.rs",
    "src/*.rs",
    "src/**",
    "**/deep/*",
    "*/x.rs",
    "*/*/*",
    "caf*.rs",
    "*\u{e9}*",
];

/// Arguments of the tool with those of fd that mean the same.
fn options() -> [(Value, &'static [&'static str]); 5] {
    [
        (json!({}), &["--hidden"]),
        (json!({"hidden": false}), &[]),
        (json!({"no_ignore": true}), &["--hidden", "--no-ignore"]),
        (json!({"hidden": false, "no_ignore": true}), &["--no-ignore"]),
        (json!({"follow": true}), &["--hidden", "--follow"]),
    ]
}

pub(super) async fn compare(tree: &Tree, all: &mut Vec<Compared>) {
    for (number, pattern) in PATTERNS.iter().enumerate() {
        for (at, (input, flags)) in options().into_iter().enumerate() {
            // Every pattern with what is usual, and every option with some of them.
            if at > 0 && !(tree.share < 8 && number % 5 < 2) {
                continue;
            }
            let input = with(&input, &[("pattern", json!(pattern)), ("limit", json!(100_000))]);
            let theirs = theirs(tree, &input, flags);
            let found = !theirs.is_empty();
            let difference = difference(tree, &input, &theirs).await;
            let query = written(&input);
            all.push(Compared { tool: "find", tree: tree.name, query, difference, found });
        }
    }
}

/// What fd finds, in the order of the tool.
fn theirs(tree: &Tree, input: &Value, flags: &[&str]) -> Vec<String> {
    let pattern = input["pattern"].as_str().unwrap();
    let mut fd = Command::new(machine::fd());
    fd.args(["--no-require-git", "--exclude", ".git", "--color", "never", "--case-sensitive"]);
    fd.args(["--threads=1", "--no-global-ignore-file", "--strip-cwd-prefix", "--print0", "--glob"])
        .args(flags);
    if pattern.contains('/') {
        fd.arg("--full-path").arg("--").arg(tree.root.join(pattern));
    } else {
        fd.arg("--").arg(pattern);
    }
    let printed = printed(&mut fd, &tree.root).unwrap();
    let mut theirs: Vec<Vec<&[u8]>> = printed
        .split(|&byte| byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| path.split(|&byte| byte == b'/').collect())
        .collect();
    // Folder by folder in the order of the bytes of names, a folder before what is in it.
    theirs.sort();
    theirs.into_iter().map(|names| shown(tree, &names)).collect()
}

async fn difference(tree: &Tree, input: &Value, theirs: &[String]) -> Option<String> {
    let whole = match data(&tree.world, "find", input).await {
        Ok(whole) => whole,
        Err(text) => return Some(format!("haft says {text:?}, the peer {theirs:?}")),
    };
    let ours = paths(&whole);
    if let Some(difference) = first_difference(&ours, theirs) {
        return Some(difference);
    }
    let part = data(&tree.world, "find", &with(input, &[("limit", json!(7))])).await.unwrap();
    let all = ours.len() <= 7;
    if part["truncated"] == json!(all) {
        return Some(format!("of {} the first 7 are told to be all", ours.len()));
    }
    first_difference(&paths(&part), &ours[..ours.len().min(7)])
}

fn paths(data: &Value) -> Vec<String> {
    let paths = data["paths"].as_array().unwrap();
    paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

/// A path of the peer as the tool shows it; a folder has an empty last name.
fn shown(tree: &Tree, names: &[&[u8]]) -> String {
    let folder = names.last().is_some_and(|name| name.is_empty());
    let path = tree.world.root.join_bytes(&names.join(&b'/')).unwrap();
    format!("{}{}", path.shown_from(&tree.world.root), if folder { "/" } else { "" })
}
