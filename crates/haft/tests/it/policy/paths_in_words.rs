//! What the words of a command name on disk: links on the way, the home folder, and programs of the workspace.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::world::{Input, World, finish};

/// What is decided about each of these commands, which are calls of one input.
fn decided(world: &World, flags: &[&str], commands: &[&str]) -> Vec<(String, String)> {
    let lines = commands.iter().map(|command| format!("{}\n", json!({"command": command})));
    let input: String = lines.collect();
    let ran = world.run_with(&[&["why", "--batch"][..], flags].concat(), &Input::Pipe(&input));
    let answers = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = |answer: Value| {
        (answer["decision"].as_str().unwrap().to_owned(), answer["reason"].to_string())
    };
    answers.map(told).collect()
}

fn all_are(world: &World, flags: &[&str], expected: &str, commands: &[&str]) {
    let answers = decided(world, flags, commands);
    assert_eq!(answers.len(), commands.len());
    for (command, (decision, reason)) in commands.iter().zip(answers) {
        assert_eq!(decision, expected, "{command}: {reason}");
    }
}

#[test]
fn words_behind_links_are_what_the_links_lead_to() {
    let world = World::new();
    for name in ["src/a", ".git/hooks/x", "docs/a"] {
        world.file(name, "");
    }
    for (link, to) in
        [("glink", ".git"), ("slink", "src"), ("docs/up", "../src"), ("dlink", "docs")]
    {
        symlink(to, world.work().join(link)).unwrap();
    }
    let bypass = ["--mode", "bypass"];
    all_are(
        &world,
        &bypass,
        "ask",
        &[
            "dd of=glink/hooks/x",
            "dd of=glink/hooks/new",
            "gzip glink/config",
            "cd glink && gzip config",
            "cd glink/hooks; gzip x",
            "prog -oglink/hooks/x",
        ],
    );
    let denied = ["--mode", "bypass", "--deny", "Edit(src/**)"];
    all_are(
        &world,
        &denied,
        "ask",
        &["gzip slink/a", "gzip docs/up/a", "cd slink; gzip a", "gzip -r slink"],
    );
    // Where the word plainly is the file that is written the rule holds as for a redirect.
    all_are(&world, &denied, "deny", &["dd of=slink/new", "dd of=docs/up/new"]);
    all_are(&world, &denied, "allow", &["gzip dlink/a", "dd of=dlink/new", "cd dlink; gzip a"]);
}

#[test]
fn the_whole_home_folder_is_asked_about() {
    let world = World::new();
    fs::create_dir_all(world.root().join("home/.ssh")).unwrap();
    symlink(world.root().join("home"), world.work().join("h")).unwrap();
    let commands = [
        "cp -r ~ x",
        "tar cf z ~",
        "tar cf z h",
        "zip -r z h/",
        "gzip h/.ssh/x",
        "find ~ -type f -print0 | xargs -0 cat",
        "find ~ | xargs cat",
        "find $HOME -exec xxd {} +",
        "xxd ~/.ssh/*",
        "cp -r h/. x",
    ];
    all_are(&world, &["--mode", "bypass"], "ask", &commands);
}

#[test]
fn a_program_of_the_workspace_is_not_the_one_that_is_known_by_its_name() {
    let world = World::new();
    let program = world.file(".venv/bin/touch", "#!/bin/sh\n: > ran\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.work().join(".venv/bin").display());
    let run = |command: &str, flags: &[&str]| {
        let input = json!({"command": command}).to_string();
        let call = ["tool", "bash", "--input", &input, "--mode", "accept-edits"];
        let mut haft = world.haft(&[&call[..], flags].concat());
        haft.env("PATH", &path);
        finish(haft, &Input::Nothing)
    };
    for (command, flags) in [
        ("touch new", &[][..]),
        ("mkdir made && touch new", &[]),
        ("cp .venv/bin/touch .venv/bin/mkdir; mkdir new", &[]),
        ("pytest; touch new", &["--allow", "Bash(pytest:*)"]),
    ] {
        let ran = run(command, flags);
        assert!(
            ran.out.contains("program of the workspace")
                || ran.err.contains("program of the workspace"),
            "{command}: {} {}",
            ran.out,
            ran.err
        );
        assert!(!world.work().join("ran").exists(), "{command}");
    }
    let ran = run("mkdir made", &[]);
    assert!(world.work().join("made").is_dir(), "{} {}", ran.out, ran.err);
    // A person who allows it means the one that is found.
    run("touch new", &["--allow", "Bash(touch:*)"]);
    assert!(world.work().join("ran").exists());
}
