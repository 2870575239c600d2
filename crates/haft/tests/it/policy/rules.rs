//! Rules as persons write them: what they deny, and what is said of those that mean nothing.

use serde_json::json;

use crate::world::{Input, Ran, World, finish};

fn read(world: &World, path: &str, deny: &str) -> Ran {
    world.tool("read", &json!({ "path": path }), &["--deny", deny])
}

#[test]
fn a_denial_denies_what_it_looks_like() {
    let world = World::new();
    world.file("open.txt", "canary\n");
    for (path, deny) in [
        ("secret/key.txt", "Read({secret,x}/**)"),
        ("x/key.txt", "Read({secret,x}/**)"),
        ("#secret", "Read(#secret)"),
        ("secret/key.txt", "Read(secret/key.txt )"),
        ("Sec[1]/key.txt", "Read(Sec[1]/**)"),
        ("Sec1/key.txt", "Read(Sec[1]/**)"),
        ("{a,b}", "Read({a,b})"),
    ] {
        world.file(path, "canary\n");
        let ran = read(&world, path, deny);
        assert_eq!(ran.code, Some(1), "{deny} {path}: {ran:?}");
        assert!(ran.out.contains("the deny rule") || ran.err.contains("the deny rule"), "{ran:?}");
        let found = world.tool("grep", &json!({"pattern": "canary"}), &["--deny", deny]);
        assert!(found.out.contains("open.txt:1:canary"), "{deny} {path}: {found:?}");
        assert!(!found.out.contains(path), "{deny} {path}: {found:?}");
    }
}

#[test]
fn a_denial_that_cannot_be_read_starts_nothing() {
    let world = World::new();
    world.file("a", "canary\n");
    for deny in ["Read({a,b/**)", "Read(a}/**)"] {
        let ran = read(&world, "a", deny);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("no partner") && ran.err.contains("write \\"), "{ran:?}");
    }
}

#[test]
fn copies_of_the_systems_passwords_are_asked_about() {
    let world = World::new();
    for path in ["/etc/shadow-", "/etc/gshadow-", "/etc/sudoers.d/x", "/var/backups/shadow.bak"] {
        let ran = world.tool("read", &json!({ "path": path }), &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let said = ran.both_outputs();
        assert!(said.contains("touches the system's"), "{said}");
    }
}

#[test]
fn a_rule_about_a_tool_that_haft_lacks_is_told_of() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#];
    let names = ["Task", "WebSearch", "mcp__x"];
    for name in names {
        for flag in ["--deny", "--allow"] {
            let ran = world.run(&[&read[..], &[flag, name]].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let wanted =
                format!("rules that do nothing, for haft has no such tool: {} {name}", &flag[2..]);
            assert!(ran.err.contains(&wanted) && ran.err.contains("command line"), "{ran:?}");
        }
    }
    for name in [
        "MultiEdit",
        "Glob",
        "LS",
        "bash",
        "KillShell",
        "TodoWrite",
        "Skill(pdf)",
        "Grep(src/**)",
        "WebFetch(domain:example.org)",
    ] {
        let ran = world.run(&[&read[..], &["--deny", name]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
    }
    world.settings("[permissions]\ndeny = ['WebSearch', 'Task']");
    let ran = world.run(&read);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{ran:?}");
    let place = format!("deny WebSearch ({}/settings.toml:2), deny Task", world.state().display());
    assert!(ran.err.contains(&place), "{ran:?}");
}

#[test]
fn a_rule_about_nothing_is_told() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let input = r#"{"path": "a.txt"}"#;
    for (rule, part) in [
        ("Raed", "no tool is named \"Raed\"; did you mean Read?"),
        ("Raed(a.txt)", "did you mean Read(a.txt)?"),
        ("Read(/etc/hosts)", "write //etc/hosts"),
    ] {
        let ran = world.run(&["tool", "read", "--input", input, "--deny", rule]);
        assert_eq!(ran.code, Some(2), "{rule}: {ran:?}");
        assert!(ran.err.contains(part) && ran.err.contains("command line"), "{ran:?}");
        let model = world.script(&[json!({"text": "End."})]);
        let ran = world.run(&["-p", "go", "--model", &model, "--deny", rule]);
        assert_eq!(ran.code, Some(2), "{rule}: {ran:?}");
    }
    world.settings("permissions.deny = ['Raed', 'Read(b.txt)']");
    for rule in ["Read(//etc/hosts)", "mcp__any", "WebFetch", "bash"] {
        let ran = world.run(&["tool", "read", "--input", input, "--deny", rule]);
        assert_eq!(ran.code, Some(0), "{rule}: {ran:?}");
        assert!(ran.err.contains("\"Raed\" (user settings) does not count"), "{ran:?}");
    }
}

#[test]
fn a_rule_that_forbids_and_cannot_be_read_stops_haft() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#];
    let model = world.script(&[json!({"text": "Hello."})]);
    let faces = [&read[..], &["-p", "hi", "--model", &model], &["tool", "list"]];
    for (list, rule) in [("deny", "Read(a.txt"), ("deny", "READ"), ("ask", "Bash()"), ("deny", "*")]
    {
        world.settings(&format!("model = 'openai/x'\npermissions.{list} = ['{rule}']"));
        for face in faces {
            let ran = world.run(face);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{rule} {ran:?}");
            let place =
                format!("{}/settings.toml:2: permissions.{list}: ", world.state().display());
            assert!(ran.err.contains(&place) && ran.err.contains(rule), "{ran:?}");
        }
    }
    world.settings("permissions.allow = ['Read(a.txt']");
    let ran = world.run(&read);
    assert!(ran.code == Some(0) && ran.err.contains("does not count"), "{ran:?}");
    // A project, even a trusted one, cannot make haft of no use; its tool is asked about.
    world.settings("");
    world.file(".haft/settings.toml", "permissions.deny = ['Read(a.txt']");
    assert_eq!(world.run(&read).code, Some(0), "what is not trusted is not read");
    let ran = world.run(&[&read[..], &["--trust"]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(".haft/settings.toml:1: permissions.deny: "), "{ran:?}");
    assert!(ran.out.contains("mode dont-ask denies what would ask"), "{ran:?}");
    assert_eq!(world.run(&["tool", "list", "--trust"]).code, Some(0));
}

#[test]
fn what_is_typed_to_be_allowed_may_be_denied_elsewhere() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#, "--trust"];
    let allow = ["--allow", "Bash(git push:*)"];
    let denies = "permissions.deny = ['Bash(git push:*)']";
    for (project, own) in [(denies, ""), ("", denies)] {
        world.file(".haft/settings.toml", project);
        world.settings(own);
        let ran = world.run(&[&read[..], &allow].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("the deny rule Bash(git push:*)"), "{ran:?}");
        let why = world.run(&[&["why", "git push", "--trust"][..], &allow].concat());
        assert!(why.out.starts_with("deny: "), "{why:?}");
    }
    // One of two that were just typed is a slip.
    world.settings("");
    let ran = world.run(&[&read[..], &allow, &["--deny", "Bash(git:*)"]].concat());
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn settings_that_are_left_closed_are_named() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let read = ["tool", "read", "--input", r#"{"path": "a.txt"}"#];
    assert_eq!(world.run(&read).err, "");
    world.file(".haft/settings.toml", "permissions.deny = ['Read']");
    world.file(".claude/settings.json", "{}");
    let ran = world.run(&read);
    assert_eq!((ran.code, ran.out.contains("one")), (Some(0), true), "{ran:?}");
    let names = [".claude/settings.json, ", ".haft/settings.toml are not read", "--trust"];
    assert!(names.iter().all(|name| ran.err.contains(name)), "{ran:?}");
    let model = world.script(&[json!({"text": "Hello."})]);
    for flags in [&["-p", "hi", "--model", &model][..], &["--line", "--model", &model]] {
        let ran = world.run_with(flags, &Input::Pipe("hi\n/quit\n"));
        assert!(ran.code == Some(0) && ran.err.contains("settings.toml are not read"), "{ran:?}");
    }
    let trusted = world.run(&[&read[..], &["--trust"]].concat());
    assert!(trusted.code != Some(0) && !trusted.err.contains("not read"), "{trusted:?}");
}

#[test]
fn an_answer_of_trust_is_kept_without_a_terminal() {
    let world = World::new();
    world.file(".git/HEAD", "ref: refs/heads/main");
    world.file("sub/a.txt", "one\n");
    world.file(".haft/settings.toml", "permissions.deny = ['Bash']");
    let decision = || {
        let ran = world.run(&["why", "ls"]);
        ran.out.split(':').next().unwrap_or_default().to_owned()
    };
    assert_eq!(decision(), "allow");
    let shown = world.run(&["trust", "--show"]);
    assert!(shown.code == Some(0) && shown.out.contains("was not answered about"), "{shown:?}");
    assert!(!world.state().join("trust.json").exists());
    // A folder of the project stands for all of it.
    let ran = world.run(&["trust", "sub"]);
    let root = world.work().display().to_string();
    assert!(ran.code == Some(0) && ran.out.starts_with(&format!("{root} is trusted: ")), "{ran:?}");
    assert!(ran.out.contains("it brings along .haft/settings.toml"), "{ran:?}");
    assert_eq!(decision(), "deny");
    let ran = world.run(&["trust", "--no"]);
    assert!(ran.out.contains("is not trusted"), "{ran:?}");
    assert_eq!(decision(), "allow");
    assert!(world.run(&["trust", "--show"]).out.contains("is not trusted"));
    assert_eq!(world.run(&["trust", "no-such-folder"]).code, Some(2));
    // No command of a model answers it unasked: in mode auto the sandbox keeps haft's home from it.
    for mode in ["accept-edits", "bypass"] {
        let ran = world.run(&["why", "--mode", mode, "haft trust ."]);
        assert!(ran.out.starts_with("ask"), "{mode}: {ran:?}");
    }
}

#[test]
fn a_worktree_is_trusted_with_its_repository_and_nothing_that_only_says_so() {
    let world = World::new();
    let git = |arguments: &[&str]| {
        let mut git = world.program("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"]);
        git.args(arguments);
        let ran = finish(git, &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    world.file("main/.haft/settings.toml", "permissions.deny = ['Bash']");
    git(&["init", "-q", "main"]);
    git(&["-C", "main", "add", "."]);
    git(&["-C", "main", "commit", "-qm", "x"]);
    git(&["-C", "main", "worktree", "add", "-q", "../tree"]);
    let answers = json!({"folders": {world.work().join("main").display().to_string(): true}});
    std::fs::write(world.state().join("trust.json"), answers.to_string()).unwrap();
    let decision = |folder: &str| {
        let mut why = world.haft(&["why", "--json", "rm x"]);
        why.current_dir(world.work().join(folder));
        finish(why, &Input::Nothing).json()["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!((decision("main"), decision("tree")), ("deny".into(), "deny".into()));
    // It names the repository, which does not name it.
    let link = world.read("tree/.git");
    world.file("other/.git", &link);
    world.file("other/.haft/settings.toml", "permissions.deny = ['Bash']");
    assert_eq!(decision("other"), "ask");
    // A repository within says so of itself.
    world.file(
        "own/.git/worktrees/x/gitdir",
        format!("{}\n", world.work().join("own2/.git").display()),
    );
    world.file("own/.git/worktrees/x/commondir", "../..\n");
    world.file(
        "own2/.git",
        format!("gitdir: {}\n", world.work().join("own/.git/worktrees/x").display()),
    );
    world.file("own2/.haft/settings.toml", "permissions.deny = ['Bash']");
    assert_eq!(decision("own2"), "ask");
}
