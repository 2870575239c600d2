//! Commands that only look: nobody is asked about them, through whatever face they come, and they
//! run so that they can do no more.

use serde_json::{Value, json};

use crate::{
    mcp_client::{self, Client},
    world::{Input, World, finish, text},
};

/// A repository whose settings would start a program, which tells of it, and a program of the
/// workspace with a known name.
fn hostile() -> World {
    let world = World::new();
    let told = world.root().join("told");
    let program = format!("#!/bin/sh\necho \"$0\" >> {}\nexit 0\n", told.display());
    let init = world.program("git").args(["init", "-q"]).status().unwrap();
    assert!(init.success());
    world.file("a.txt", "alpha\n");
    for name in ["bin/cat", "bin/git", "monitor"] {
        let path = world.file(name, &program);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    world
}

/// What the programs of the workspace told.
fn told(world: &World) -> String {
    std::fs::read_to_string(world.root().join("told")).unwrap_or_default()
}

const LOOK: &str = "cat a.txt; printenv PAGER GIT_OPTIONAL_LOCKS; git status --porcelain | head -1";

#[test]
fn nobody_is_asked_whatever_the_face_is() {
    let world = hostile();
    let input = json!({ "command": LOOK });
    let seen = |text: &str| text.starts_with("alpha\ncat\n0\n?? ");
    let ran = world.tool("bash", &input, &["--mode", "dont-ask"]);
    assert!(seen(&ran.out), "{ran:?}");
    let model = world
        .script(&[json!({"calls": [{"name": "bash", "input": input}]}), json!({"text": "End."})]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(seen(&text(world.outcomes().last().unwrap())), "{:?}", world.outcomes());
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go\n"));
    assert!(ran.out.contains("alpha") && !ran.out.contains("[y]"), "{ran:?}");
    let mut client = Client::greeted(&world, &[]);
    let answer = client.call("bash", &input);
    assert!(seen(mcp_client::text(&answer)), "{answer}");
    client.ends_well();
    assert_eq!(told(&world), "");
}

#[test]
fn it_inherits_nothing_that_makes_programs_start_others() {
    let world = hostile();
    let path = format!("{}:{}", world.work().join("bin").display(), std::env::var("PATH").unwrap());
    let run = |flags: &[&str]| {
        let input = json!({ "command": LOOK }).to_string();
        let mut haft = world.haft(&[&["tool", "bash", "--input", &input], flags].concat());
        let monitor = world.work().join("monitor").display().to_string();
        haft.env("PATH", &path).env("BASH_FUNC_cat%%", "() { echo function; }");
        haft.env("GIT_CONFIG_COUNT", "1");
        for (of, text) in [("KEY", "core.fsmonitor"), ("VALUE", &monitor)] {
            haft.env(format!("GIT_CONFIG_{of}_0"), text);
        }
        finish(haft, &Input::Nothing)
    };
    let ran = run(&["--mode", "dont-ask"]);
    assert!(ran.out.starts_with("alpha\ncat\n0\n"), "{ran:?}");
    assert_eq!(told(&world), "");
    // Who allows it by a rule or mode has it as the person's own shell has it.
    let ran = run(&["--mode", "bypass"]);
    assert!(ran.out.starts_with("function\n"), "{ran:?}");
    assert!(told(&world).contains("bin/git"), "{}", told(&world));
}

#[test]
fn a_repository_that_names_programs_is_asked_about() {
    let world = hostile();
    let input = json!({"command": "git diff"});
    assert_eq!(world.tool("bash", &input, &["--mode", "dont-ask"]).code, Some(0));
    let mut settings = world.program("git");
    settings.args(["config", "diff.x.textconv", "./monitor"]);
    assert_eq!(finish(settings, &Input::Nothing).code, Some(0));
    let ran = world.tool("bash", &input, &["--mode", "dont-ask"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("git may run programs"), "{ran:?}");
    assert_eq!(told(&world), "");
}

#[test]
fn what_it_reads_is_judged_as_a_read() {
    let world = World::new();
    std::fs::write(world.root().join("outside"), "secret\n").unwrap();
    std::os::unix::fs::symlink(world.root().join("outside"), world.work().join("link")).unwrap();
    std::os::unix::fs::symlink(world.root(), world.work().join("folder")).unwrap();
    world.file(".env", "secret\n");
    std::os::unix::fs::symlink(".env", world.work().join("near")).unwrap();
    let denied = |command: &str, flags: &[&str]| {
        let flags = [&["--mode", "dont-ask"], flags].concat();
        let ran = world.tool("bash", &json!({ "command": command }), &flags);
        assert_eq!(ran.code, Some(1), "{command}: {ran:?}");
        assert!(!ran.out.contains("secret\n"), "{command}: {ran:?}");
    };
    for command in [
        "cat ../outside",
        "cat link",
        "cat folder/outside",
        "cd folder && cat outside",
        "cat ./*",
        "cat < link",
        "x=link; cat \"$x\"",
        "cat ~/../outside",
    ] {
        denied(command, &[]);
    }
    for command in
        ["cat .env", "cat < .env", "grep -r . .", "head -1 .e*", "head -1 nea*", "cat ./.env | wc"]
    {
        denied(command, &["--deny", "Read(.env)"]);
    }
    let ran = world.tool(
        "bash",
        &json!({"command": "ls -a"}),
        &["--mode", "dont-ask", "--deny", "Read(.env)"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_folder_that_a_call_leaves_is_where_the_next_one_starts() {
    let world = World::new();
    world.file("sub/b.txt", "beta\n");
    let call = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let model = world.script(&[
        json!({"calls": [call("cd sub"), call("cat b.txt"), call("pwd")]}),
        json!({"text": "End."}),
    ]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Vec<String> = world.outcomes().iter().map(|one: &Value| text(one)).collect();
    assert!(told[1..].iter().any(|text| text == "beta"), "{told:?}");
    assert!(told[1..].iter().any(|text| text.ends_with("/sub")), "{told:?}");
}

/// What git says in the workspace when the person runs it.
fn git(world: &World, args: &[&str]) -> String {
    let mut git = world.program("git");
    git.args(args);
    let ran = finish(git, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    ran.out
}

#[test]
fn settings_of_git_are_told_as_they_are() {
    let world = hostile();
    git(&world, &["config", "core.hooksPath", ".hooks"]);
    git(&world, &["config", "core.fsmonitor", "./monitor"]);
    let look = |command: &str| {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "dont-ask"]);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        ran.out.trim_end().to_owned()
    };
    for words in [
        "config --list --show-origin",
        "config list",
        "config --get core.hooksPath",
        "config get core.fsmonitor",
        "rev-parse --git-path hooks/pre-commit",
        "-c core.abbrev=9 config --get-regexp ^core",
    ] {
        let own = git(&world, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(look(&format!("git {words}")), own.trim_end(), "{words}");
        assert_eq!(look(&format!("cd . && git {words} | cat")), own.trim_end(), "{words}");
    }
    let told_so = |command: &str| look(command).contains("settings of haft's own");
    assert!(told_so("git status --short; git config --list"));
    assert!(told_so("git rev-parse --git-path hooks; git count-objects"));
    assert!(!told_so("git status --short; git config remote.origin.url || true"));
    assert!(!look("git var -l").contains("safe.bare"));
    assert_eq!(told(&world), "");
}

#[test]
fn what_is_not_looked_at_in_submodules_is_said() {
    let world = World::new();
    git(&world, &["init", "-q"]);
    git(&world, &["init", "-q", "lib"]);
    world.file("lib/a.txt", "alpha\n");
    git(&world, &["-C", "lib", "add", "a.txt"]);
    let name = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    git(&world, &[&["-C", "lib"], &name[..], &["commit", "-qm", "one"]].concat());
    let look = |command: &str| {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "dont-ask"]);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        ran.out.contains("submodules are not shown")
    };
    // What only looks like it in the index is none.
    world.file("big", "x".repeat(0xe000));
    git(&world, &["add", "big"]);
    assert!(!look("git status --short"), "none is named");
    git(&world, &["add", "lib"]);
    world.file("lib/a.txt", "beta\n");
    for modules in ["", "[submodule \"lib\"]\n\tpath = lib\n\turl = ./lib\n"] {
        world.file(".gitmodules", modules);
        for command in ["git status", "git diff", "cat a.txt lib/a.txt; git diff --stat HEAD"] {
            assert!(look(&format!("{command} || true")), "{command}");
        }
    }
    for command in
        ["git diff --cached", "git status --ignore-submodules=all", "git log", "git ls-files"]
    {
        assert!(!look(&format!("{command} || true")), "{command}");
    }
    // Who allows it sees it all.
    let ran = world.tool("bash", &json!({"command": "git status -s"}), &["--mode", "bypass"]);
    assert!(ran.out.contains(" lib") && !ran.out.contains("not shown"), "{ran:?}");
}

#[test]
fn what_only_looks_beside_what_does_more_is_held_by_nothing_and_asked_about() {
    let world = World::new();
    git(&world, &["init", "-q"]);
    let monitor = world.file("monitor", "#!/bin/sh\ntouch told\n");
    std::fs::set_permissions(monitor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let runs = |command: &str| {
        let flags = ["--mode", "accept-edits"];
        world.tool("bash", &json!({ "command": command }), &flags).code == Some(0)
    };
    let both = |plain: bool, why: &str| {
        for command in ["git status -s; touch b.txt", "git diff --stat; touch c.txt"] {
            assert_eq!(runs(command), plain, "{command}: {why}");
        }
        assert!(runs("git status -s && git log -1 || true"), "{why}");
        assert!(!world.work().join("told").exists(), "{why}");
    };
    both(true, "nothing is named");
    // Alone it is given what wins.
    git(&world, &["config", "core.fsmonitor", "./monitor"]);
    both(false, "a watcher of files");
    assert!(!runs("touch d.txt; git check-attr -a b.txt; git check-ignore b.txt"));
    git(&world, &["config", "--unset", "core.fsmonitor"]);
    git(&world, &["init", "-q", "lib"]);
    world.file("lib/a.txt", "alpha\n");
    let name = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    git(&world, &["-C", "lib", "add", "a.txt"]);
    git(&world, &[&["-C", "lib"], &name[..], &["commit", "-qm", "one"]].concat());
    git(&world, &["-C", "lib", "config", "core.fsmonitor", "./../monitor"]);
    both(true, "a repository below that nothing names");
    git(&world, &["add", "lib"]);
    both(false, "a repository below that the index names");
    world.file(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = ./lib\n");
    both(false, "a repository below that is named");
    // What compares no files does not look into it.
    for command in [
        "git rev-parse --git-dir > d.txt",
        "git ls-files -s; touch e.txt",
        "git ls-files -m > f.txt",
        "git branch; git tag; touch g.txt",
        "git grep -n alpha || true; touch h.txt",
    ] {
        assert!(runs(command), "{command}");
    }
    for command in [
        "git ls-files --recurse-submodules; touch i.txt",
        "git diff-index HEAD; touch j.txt",
        "git diff-files -p; touch k.txt",
        "git rev-parse HEAD; git status; touch l.txt",
        "git -C lib status; touch m.txt",
        "git -C lib ls-files; touch n.txt",
        "git log --submodule=diff; touch o.txt",
        "git describe --dirty; touch p.txt",
        "git submodule status; touch q.txt",
        "git stash; touch r.txt",
    ] {
        assert!(!runs(command), "{command}");
    }
    assert!(!world.work().join("told").exists());
}

#[test]
fn a_submodule_is_looked_at_by_its_own_settings() {
    let world = hostile();
    let name = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    let from = world.root().join("from").display().to_string();
    git(&world, &["init", "-q", &from]);
    git(
        &world,
        &[&["-C", &from], &name[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat(),
    );
    let adds = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"];
    git(&world, &adds);
    world.file("sub/a.txt", "alpha\n");
    let asked = |folder: &str, command: &str| {
        let mut haft = world.program(env!("CARGO_BIN_EXE_haft"));
        let input = json!({ "command": command }).to_string();
        haft.args(["tool", "bash", "--mode", "dont-ask", "--input", &input]);
        haft.current_dir(world.work().join(folder));
        let ran = finish(haft, &Input::Nothing);
        if ran.code == Some(0) { Some(ran.out) } else { None }
    };
    let sees = |folder: &str, command: &str, wanted: &str| {
        let ran = asked(folder, command);
        assert!(ran.as_ref().is_some_and(|out| out.contains(wanted)), "{command}: {ran:?}");
    };
    let both = || {
        for (folder, at) in [("", "git -C sub"), ("", "cd sub && git"), ("sub", "git")] {
            sees(folder, &format!("{at} status --short"), "?? a.txt");
            sees(folder, &format!("{at} log --oneline"), "one");
            sees(folder, &format!("{at} diff --stat; echo done"), "done");
        }
    };
    both();
    // What a look is given wins over these.
    git(&world, &["-C", "sub", "config", "core.fsmonitor", "../monitor"]);
    git(&world, &["-C", "sub", "config", "core.hooksPath", "../bin"]);
    both();
    assert_eq!(told(&world), "");
    for (setting, command) in [
        ("filter.x.clean", "status"),
        ("diff.external", "diff"),
        ("include.path", "log"),
        ("core.sshCommand", "log"),
    ] {
        git(&world, &["-C", "sub", "config", setting, "../monitor"]);
        assert_eq!(asked("", &format!("git -C sub {command}")), None, "{setting}");
        assert_eq!(asked("sub", &format!("git {command}")), None, "{setting}");
        git(&world, &["-C", "sub", "config", "--unset", setting]);
    }
    git(&world, &["-C", "sub", "config", "core.worktree", "../../../bin"]);
    assert_eq!(asked("", "git -C sub status"), None, "files that are others");
    assert_eq!(told(&world), "");
}

#[test]
fn keys_are_hidden_from_what_is_allowed_and_reads_what_only_the_shell_knows() {
    let world = World::new();
    let (home, outside) = (world.root().join("home"), world.root().join("outside"));
    for (path, text) in
        [(home.join(".ssh/id_rsa"), "the key"), (outside.join("b.txt"), "beta outside")]
    {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    world.file("a.txt", "alpha\n");
    let list = format!("a.txt\n{0}/b.txt\n{1}/.ssh/id_rsa\n", outside.display(), home.display());
    world.file("list", list);
    for flags in [&["--mode", "bypass"][..], &["--mode", "dont-ask", "--allow", "Bash"]] {
        for command in [
            "while read -r f; do cat \"$f\"; done < list",
            "cat $(cat list)",
            "xargs cat < list",
            "for f in $(cat list); do head -n 1 \"$f\"; done",
            "mapfile -t a < list; cat \"${a[@]}\"",
        ] {
            let ran = world.tool("bash", &json!({ "command": command }), flags);
            assert!(ran.out.contains("alpha") && ran.out.contains("beta"), "{command}: {ran:?}");
            assert!(!ran.out.contains("the key"), "{command}: {ran:?}");
        }
        // It is the person's own shell all the same.
        let input = json!({"command": "cat $(cat list); type here"}).to_string();
        let mut haft = world.haft(&[&["tool", "bash", "--input", &input], flags].concat());
        haft.env("BASH_FUNC_here%%", "() { echo function; }");
        let ran = finish(haft, &Input::Nothing);
        assert!(ran.out.contains("function") && !ran.out.contains("the key"), "{ran:?}");
    }
    // What is named is asked about, and what writes is not held.
    for command in ["cat $(echo ~/.ssh/id_rsa)", "f=$(echo ~/.ssh/id_rsa); cp \"$f\" k"] {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "bypass"]);
        assert!(ran.code == Some(1) && !ran.out.contains("the key"), "{command}: {ran:?}");
    }
    let copies = "for f in $(head -n 2 list); do cp \"$f\" \"$(basename \"$f\").2\"; done";
    let ran = world.tool("bash", &json!({ "command": copies }), &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.read("b.txt.2"), "beta outside");
}

#[test]
fn it_reads_the_kept_outputs_of_its_own_session_and_of_no_other() {
    let call = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let looks = [
        "seq 1 20000",
        "cat \"$HAFT_OUT/c1\" | tail -n 1",
        "wc -l \"$HAFT_OUT/c1\"",
        "grep -c 1999 $HAFT_OUT/c1",
        "ls \"$HAFT_OUT\"",
        "cat \"$HAFT_OUT\"/../../*/out/c1 \"$HAFT_OUT\"/../*.jsonl | tail -n 1",
    ];
    for mode in ["ask", "auto", "dont-ask"] {
        let world = World::new();
        let other = world.state().join("sessions/other/out");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("c1"), "of another\n").unwrap();
        // One answer for each: the first has ended before the second begins.
        let mut said: Vec<Value> =
            looks.iter().map(|command| json!({"calls": [call(command)]})).collect();
        said.push(json!({"text": "End."}));
        let model = world.script(&said);
        let ran = world.run(&["-p", "go", "--model", &model, "--mode", mode]);
        assert_eq!(ran.code, Some(0), "{mode}: {ran:?}");
        std::fs::remove_dir_all(world.state().join("sessions/other")).unwrap();
        let told: Vec<String> = world.outcomes().iter().map(|one: &Value| text(one)).collect();
        for (told, wanted) in told[1..].iter().zip(["20000", "20000 /", "12", "c1", "20000"]) {
            assert!(told.contains(wanted), "{mode} {wanted}: {told}");
            assert!(!told.contains("of another"), "{mode}: {told}");
        }
        assert!(told[5].contains("Permission denied") && !told[5].contains('{'), "{}", told[5]);
    }
}
