//! The built-in tools, called through the standard pipeline.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod ask_user;
mod bad_input;
mod bash;
mod bash_output;
mod beside;
mod changed;
mod changed_git;
mod changed_ignored;
mod changed_ignored_data;
mod changed_late;
mod changed_uncovered;
mod config;
mod differential;
mod edit;
mod editors;
mod encodings;
mod executable;
mod find;
mod fixtures;
mod flips;
mod folders;
mod grep;
mod grep_binary;
mod harness;
mod jobs;
mod jobs_told;
mod jobs_typed;
mod ls;
mod mixed;
mod moves;
mod notebook;
mod other_tools;
mod placeholders;
mod plan_mode;
mod properties;
mod race;
mod read;
mod readers;
mod samples;
mod sessions;
mod sleep;
mod spec;
mod tasks;
mod third_host;
mod tool_search;
mod transactions;
mod waits;
mod web_fetch;
mod write;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::Command,
};

use haft_testkit::{machine, world::World};
use haft_types::{Outcome, Status};
use serde_json::Value;

/// The user that a test becomes which must not have rights.
const USER: &str = "12345";

/// Runs a test again as somebody else where this is root, who may do everything; false elsewhere.
fn ran_as_somebody_else(test: &str) -> bool {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    // What runs commands is looked for beside it.
    let supervisor = folder.path().join("haft-supervisor");
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().skip(1).map(|folder| folder.join("haft-supervisor"));
    fs::copy({ built }.find(|built| built.exists()).unwrap(), &supervisor).unwrap();
    for path in [folder.path(), &copy, &supervisor] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(machine::program("setpriv"));
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(&copy);
    command.args([test, "--exact", "--nocapture"]);
    let ran = command.current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    true
}

/// Files of a workspace.
type Files<'a> = &'a [(&'a str, &'a [u8])];

fn memory(files: Files<'_>) -> World {
    World::memory(haft_tools::builtin(), files.iter().copied()).unwrap()
}

fn local(files: Files<'_>) -> World {
    World::local(haft_tools::builtin(), files.iter().copied()).unwrap()
}

/// The same files on the host in memory and on this machine.
fn both(files: Files<'_>) -> [World; 2] {
    [memory(files), local(files)]
}

/// The text of a call that works.
async fn done(world: &World, tool: &str, input: Value) -> String {
    let outcome = world.call(tool, input.clone()).await;
    assert_eq!(outcome.status, Status::Done, "{tool} {input}: {}", outcome.joined_text());
    fits(world, tool, &outcome);
    outcome.joined_text()
}

/// The text of a call that fails.
async fn failed(world: &World, tool: &str, input: Value) -> String {
    let outcome = world.call(tool, input.clone()).await;
    assert_eq!(outcome.status, Status::Failed, "{tool} {input}: {}", outcome.joined_text());
    outcome.joined_text()
}

/// Data is what the tool's output schema says.
fn fits(world: &World, tool: &str, outcome: &Outcome) {
    let spec = world.dispatcher.tools.spec(tool).unwrap();
    let problem = haft_testkit::harness::data_problem(spec, outcome);
    assert_eq!(problem, None, "{}", outcome.joined_text());
}

/// A text made of one piece for each number.
fn repeated(numbers: std::ops::Range<usize>, piece: impl Fn(usize) -> String) -> String {
    numbers.map(piece).collect()
}
