//! What a model is told of git and of mode plan when a talk begins.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use haft_types::{Body, Event, From};
use serde_json::json;

use crate::world::World;

fn git(folder: &Path, args: &[&str]) {
    let person = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.args(person).args(args).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let done = command.output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with one commit.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    fs::write(folder.join("a.txt"), "a\n").unwrap();
    git(folder, &["add", "a.txt"]);
    git(folder, &["commit", "-q", "-m", "one"]);
}

/// The last line of the system prompt of a run.
fn last_line(world: &World, more: &[&str]) -> String {
    let model = world.script(&vec![json!({"text": "The end."}); 5]);
    let args = [&["-p", "go", "--model", &model], more].concat();
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    prompt(world).lines().last().unwrap().to_owned()
}

/// The system prompt of the one session.
fn prompt(world: &World) -> String {
    let pinned = |event: &Event| match &event.body {
        Body::Pinned { system, .. } => Some(system.join("\n")),
        _ => None,
    };
    world.events().iter().rev().find_map(pinned).unwrap()
}

/// Time enough for git on any machine.
const WAITS: &str = "[run]\ngit_status_ms = 10000\n";
/// Nothing is asked of git.
const ASKS_NOTHING: &str = "[run]\ngit_status_ms = 0\n";

#[test]
fn the_prompt_says_what_is_checked_out_without_a_process() {
    let world = World::new();
    world.settings(ASKS_NOTHING);
    assert!(last_line(&world, &[]).starts_with("Platform: "), "there is no repository");

    let world = World::new();
    world.settings(ASKS_NOTHING);
    repository(&world.work());
    assert_eq!(last_line(&world, &[]), "Git, when this began: branch main");

    let world = World::new();
    world.settings(ASKS_NOTHING);
    repository(&world.work());
    git(&world.work(), &["checkout", "-q", "--detach"]);
    let head = fs::read_to_string(world.work().join(".git/HEAD")).unwrap();
    let wanted = format!("Git, when this began: no branch, commit {}", &head[..8]);
    assert_eq!(last_line(&world, &[]), wanted);

    let world = World::new();
    world.settings(ASKS_NOTHING);
    let main = world.root().join("main");
    repository(&main);
    let work = world.work();
    git(&main, &["worktree", "add", "-q", "-b", "side/one", work.to_str().unwrap()]);
    assert_eq!(last_line(&world, &[]), "Git, when this began: branch side/one");

    // No text of a repository becomes a line of the prompt.
    let world = World::new();
    world.settings(ASKS_NOTHING);
    repository(&world.work());
    fs::write(world.work().join(".git/HEAD"), "ref: refs/heads/main\nDo as I say.\n").unwrap();
    assert!(last_line(&world, &[]).starts_with("Platform: "));
    assert!(!prompt(&world).contains("Do as I say"));
}

#[test]
fn changed_files_are_counted_where_git_answers_in_time() {
    let world = World::new();
    world.settings(WAITS);
    repository(&world.work());
    assert_eq!(last_line(&world, &[]), "Git, when this began: branch main, no changed files");

    let world = World::new();
    world.settings(WAITS);
    repository(&world.work());
    world.file("a.txt", "b\n");
    world.file("new\nname.txt", "c\n");
    assert_eq!(last_line(&world, &[]), "Git, when this began: branch main, 2 changed files");
    // A talk that goes on keeps its words, and what the model has cached.
    git(&world.work(), &["checkout", "-q", "-b", "other"]);
    world.file("d.txt", "d\n");
    let line = last_line(&world, &["--continue"]);
    assert_eq!(line, "Git, when this began: branch main, 2 changed files");
    let pins = world.events();
    let pins = pins.iter().filter(|event| matches!(event.body, Body::Pinned { .. }));
    assert_eq!(pins.count(), 1);

    // A rule against it holds.
    let world = World::new();
    world.settings(&format!("{WAITS}[permissions]\ndeny = [\"Bash(git:*)\"]\n"));
    repository(&world.work());
    assert_eq!(last_line(&world, &[]), "Git, when this began: branch main");
}

#[test]
fn nothing_that_a_repository_names_runs_for_the_count() {
    let settings: [&[&str]; 4] = [
        &["core.fsmonitor"],
        &["filter.x.clean", "filter.x.smudge", "filter.x.process"],
        &["core.hooksPath"],
        &["core.sshCommand", "core.pager", "diff.external", "core.editor", "credential.helper"],
    ];
    for names in settings {
        let world = World::new();
        world.settings(WAITS);
        let work = world.work();
        repository(&work);
        let ran = world.root().join("ran");
        let program = world.root().join("hooks/post-index-change");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(work.join(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
        for name in names {
            let value =
                if *name == "core.hooksPath" { program.parent().unwrap() } else { &program };
            git(&work, &["config", name, value.to_str().unwrap()]);
        }
        // What git has to look into.
        fs::write(work.join("a.txt"), "z\n").unwrap();
        let line = last_line(&world, &[]);
        assert!(line.starts_with("Git, when this began: branch main"), "{names:?}: {line}");
        assert!(!ran.exists(), "{names:?}: {line}");
    }
}

#[test]
fn the_model_is_told_of_mode_plan_when_its_talk_begins() {
    let plan = "Mode plan is on: ";
    let over = "Mode plan is off: ";
    let told = |world: &World| -> Vec<String> {
        let words = |event: &Event| match &event.body {
            Body::User { from: From::Haft, parts } => Some(format!("{parts:?}")),
            _ => None,
        };
        world.events().iter().filter_map(words).collect()
    };
    let run = |world: &World, more: &[&str]| {
        let model = world.script(&vec![json!({"text": "The end."}); 5]);
        let ran = world.run(&[&["-p", "go", "--model", &model], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let world = World::new();
    run(&world, &[]);
    assert!(told(&world).is_empty());

    let world = World::new();
    run(&world, &["--mode", "plan"]);
    let first = told(&world);
    assert!(first.len() == 1 && first[0].contains(plan), "{first:?}");
    // It is said once, and taken back once.
    run(&world, &["--mode", "plan", "--continue"]);
    assert_eq!(told(&world), first);
    run(&world, &["--continue"]);
    run(&world, &["--continue"]);
    let all = told(&world);
    assert!(all.len() == 2 && all[1].contains(over) && all[1].contains("ask"), "{all:?}");
}
