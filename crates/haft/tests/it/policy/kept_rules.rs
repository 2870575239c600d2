//! Rules that "always" keeps: where they stand, for which project they count, and that git does not show
//! them.

use std::{fs, path::PathBuf, process::Command};

use haft_types::{Body, Level};
use serde_json::json;

use crate::world::{Input, Ran, World, notices};

const CALL: &str = "./x.sh a";

fn world() -> World {
    let world = World::new();
    script(&world, "x.sh");
    world
}

/// A program of the workspace that says `it ran`.
fn script(world: &World, name: &str) {
    let path = world.file(name, "#!/bin/sh\necho it ran\n");
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A talk in which the command is called, with these keys.
fn talk(world: &World, command: &str, keys: &str, flags: &[&str]) -> Ran {
    let call = json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let arguments = [&["--line", "--model", &model][..], flags].concat();
    world.run_with(&arguments, &Input::Pipe(&format!("go on\n{keys}")))
}

/// Whether a call of the command goes on where nobody is asked.
fn goes_on(world: &World, command: &str, flags: &[&str]) -> bool {
    let ran = world.tool("bash", &json!({ "command": command }), &[&["--json"], flags].concat());
    ran.json()["status"] == "done"
}

/// The one file of rules that is kept at home.
fn at_home(world: &World) -> PathBuf {
    let folders = fs::read_dir(world.state().join("projects")).unwrap();
    let mut all: Vec<PathBuf> = folders.map(|folder| folder.unwrap().path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).join("settings.toml")
}

fn git(world: &World, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(world.work()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    String::from_utf8(git.output().unwrap().stdout).unwrap()
}

#[test]
fn in_a_folder_that_is_not_trusted_a_rule_is_kept_at_home_for_that_project() {
    let world = world();
    world.file(".haft/settings.toml", "mode = 'plan'");
    assert!(!goes_on(&world, CALL, &[]));
    let ran = talk(&world, CALL, "a\n", &[]);
    assert!(ran.out.contains("always allow Bash(./x.sh a) (kept in"), "{ran:?}");
    assert!(ran.out.contains("it ran"), "{ran:?}");
    let file = at_home(&world);
    assert!(ran.out.contains(file.parent().unwrap().file_name().unwrap().to_str().unwrap()));
    assert!(fs::read_to_string(&file).unwrap().contains(r#"allow = ["Bash(./x.sh a)"]"#));
    // Nothing is written into the project.
    let names = fs::read_dir(world.work().join(".haft")).unwrap();
    assert_eq!(names.count(), 1);
    assert!(goes_on(&world, CALL, &[]));
    assert!(!goes_on(&world, "./x.sh b", &[]) && !goes_on(&world, "./x.sh a; ./x.sh b", &[]));
    let ran = talk(&world, CALL, "", &[]);
    assert!(ran.out.contains("it ran") && !ran.out.contains("key:"), "{ran:?}");
    let why = world.run(&["why", CALL]);
    assert!(why.out.contains("the allow rule Bash(./x.sh a) (local settings)"), "{why:?}");
    // Of another project it says nothing, and whoever trusts this one keeps it.
    let other = world.root().join("work2");
    fs::rename(world.work(), &other).unwrap();
    fs::create_dir(world.work()).unwrap();
    script(&world, "x.sh");
    assert!(goes_on(&world, CALL, &[]), "the same folder");
    let mut haft = world.haft(&["tool", "bash", "--input", r#"{"command": "./x.sh a"}"#, "--json"]);
    let there = haft.current_dir(&other).output().unwrap();
    let there = String::from_utf8(there.stdout).unwrap();
    assert!(there.contains("denied"), "{there}");
    assert_eq!(world.run(&["trust"]).code, Some(0));
    assert!(goes_on(&world, CALL, &[]));
}

#[test]
fn a_prefix_is_offered_and_kept_and_filters_do_not_count() {
    let world = world();
    let command = "git commit -m 'a b' 2>&1 | tail -n 3";
    git(&world, &["init", "-q"]);
    let ran = talk(&world, command, "a\n", &[]);
    assert!(ran.out.contains("always allow Bash(git commit:*) (kept in"), "{ran:?}");
    assert!(fs::read_to_string(at_home(&world)).unwrap().contains("Bash(git commit:*)"));
    let allowed = |command: &str| world.run(&["why", command]).out.starts_with("allow");
    assert!(allowed("git commit -m c") && allowed("git commit --amend | head"));
    assert!(!allowed("git push") && !allowed("git -c core.editor=./x.sh commit"));
    assert!(!allowed("GIT_EDITOR=./x.sh git commit") && !allowed("git commit && ./x.sh"));
}

#[test]
fn git_does_not_show_the_rules_of_a_project_that_is_trusted() {
    let world = world();
    git(&world, &["init", "-q"]);
    let ran = talk(&world, CALL, "a\n", &["--trust"]);
    let names = ".haft/settings.local.toml";
    assert!(ran.out.contains(names), "{ran:?}");
    assert!(world.read(names).contains("Bash(./x.sh a)"));
    assert_eq!(world.read(".haft/.gitignore"), "settings.local.toml\n");
    assert!(!world.state().join("projects").exists());
    let status = git(&world, &["status", "--porcelain", "-uall"]);
    assert!(!status.contains("settings.local.toml") && status.contains("x.sh"), "{status}");
    assert!(notices(&world.events()).iter().all(|(level, _)| *level != Level::Warning));
    assert!(goes_on(&world, CALL, &["--trust"]));
}

#[test]
fn an_ignore_file_that_is_there_stays_and_is_told_where_it_does_not_name_the_rules() {
    for (text, is_told) in [("settings.local.*\n", false), ("# mine\ntools/\n", true)] {
        let world = world();
        world.file(".haft/.gitignore", text);
        talk(&world, CALL, "a\n", &["--trust"]);
        assert!(world.read(".haft/settings.local.toml").contains("Bash(./x.sh a)"));
        assert_eq!(world.read(".haft/.gitignore"), text);
        let told = world.events().into_iter().filter(|event| {
            matches!(&event.body, Body::Notice { level: Level::Warning, text }
                if text.contains("git may show") && text.contains("add a line settings.local.toml"))
        });
        assert_eq!(told.count(), usize::from(is_told), "{text}");
    }
}

#[test]
fn settings_at_home_for_a_project_loosen_no_more_than_its_own() {
    let world = world();
    talk(&world, CALL, "a\n", &[]);
    let file = at_home(&world);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("mode = 'bypass'\n{text}")).unwrap();
    let ran = world.tool("bash", &json!({"command": "./x.sh b"}), &["--json"]);
    assert!(ran.err.contains("a project may not set this to"), "{ran:?}");
    assert_eq!(ran.json()["status"], "denied");
    assert!(goes_on(&world, CALL, &[]));
}
