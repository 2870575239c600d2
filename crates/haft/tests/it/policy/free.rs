//! What goes on without a question because it was looked up that it does no more than it says, and
//! everything beside it that asks all the same.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use haft_testkit::machine;
use serde_json::json;

use crate::world::{Input, Ran, World, finish};

/// A workspace with a repository, and a folder for temporary files beside it.
fn world() -> (World, PathBuf) {
    let world = World::new();
    let temp = world.root().join("temp");
    fs::create_dir(&temp).unwrap();
    fs::set_permissions(&temp, fs::Permissions::from_mode(0o1777)).unwrap();
    let made = world.shell(
        "git init -q && printf 'target/\\nnode_modules\\n*.log\\n' > .gitignore && mkdir -p src \
         target/debug dist && touch a.go a.py src/b.go src/old.txt dist/kept dist/old.txt \
         target/debug/x && git add .gitignore src dist",
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    (world, temp)
}

fn why(world: &World, mode: &str, command: &str, flags: &[&str]) -> Ran {
    let mut haft = world.haft(&[&["why", "--mode", mode][..], flags, &["--", command]].concat());
    haft.env("TMPDIR", world.root().join("temp"));
    finish(haft, &Input::Nothing)
}

/// Holds each command to whether it goes on.
fn hold(world: &World, mode: &str, cases: &[(&str, bool)]) {
    for (command, goes_on) in cases {
        let ran = why(world, mode, command, &[]);
        let want = if *goes_on { "allow: " } else { "ask: " };
        assert!(ran.out.starts_with(want), "{mode}: {command}: {ran:?}");
    }
}

/// Commands on files in the temporary folder, whose names stand in braces, and whether they go on.
const AT_TEMP: &[(&str, bool)] = &[
    ("echo a > {own}", true),
    ("echo a >> {own} 2>&1", true),
    ("echo a > {new}", true),
    ("echo a > {sub/new}", true),
    ("cat {own}", true),
    ("head -1 < {own}", true),
    ("grep -c text {own} {sub/own}", true),
    ("sort {own} > {new}", true),
    // A second name, a link, a folder on the way that is one.
    ("cat {linked}", false),
    ("echo a > {linked}", false),
    ("echo a > {outward}", false),
    ("cat {outward}", false),
    ("echo a > {folder/x}", false),
    // Others may put another file there.
    ("cat {open/own}", false),
    ("echo a > {open/new}", false),
    // Whole folders, what changes other than by a redirect, and what is removed.
    ("ls {sub}", false),
    ("grep -r text {sub}", false),
    ("rm {own}", false),
    ("mv {own} b.txt", false),
    ("touch {own}", false),
    ("echo a > {missing/new}", false),
    ("cat {.netrc}", false),
    ("echo a > {.bashrc}", false),
    ("sh {own}", false),
    // A link that the same line makes.
    ("ln -s ~/.bashrc {new}; echo a > {new}", false),
    ("echo a > {sub/../../state/x}", false),
    ("echo a > {$X}", false),
];

#[test]
fn a_file_of_ones_own_in_the_temporary_folder_is_read_and_redirected_to() {
    let (world, temp) = world();
    let at = |name: &str| temp.join(name).display().to_string();
    for name in ["own", "linked", "sub/own", "open/own", ".netrc"] {
        fs::create_dir_all(temp.join(name).parent().unwrap()).unwrap();
        fs::write(temp.join(name), "text\n").unwrap();
    }
    fs::hard_link(temp.join("linked"), temp.join("second")).unwrap();
    std::os::unix::fs::symlink(world.work().join("a.py"), temp.join("inward")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", temp.join("outward")).unwrap();
    std::os::unix::fs::symlink("/etc", temp.join("folder")).unwrap();
    fs::set_permissions(temp.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    for mode in ["ask", "accept-edits"] {
        for (form, goes_on) in AT_TEMP {
            let command = form
                .split('{')
                .map(|piece| match piece.split_once('}') {
                    Some((name, rest)) => format!("{}{rest}", at(name)),
                    None => piece.to_owned(),
                })
                .collect::<String>();
            hold(&world, mode, &[(&command, *goes_on)]);
        }
    }
    // Rules win.
    for (flag, rule, form, want) in [
        ("--deny", "Read(//**/own)", "cat", "deny: "),
        ("--deny", "Edit(//**/own)", "echo >", "deny: "),
        ("--deny", "Bash(cat:*)", "cat", "deny: "),
    ] {
        let ran = why(&world, "ask", &format!("{form} {}", at("own")), &[flag, rule]);
        assert!(ran.out.starts_with(want), "{rule}: {ran:?}");
    }
    // The state of haft and the home folder are none of it, wherever they lie.
    for path in [world.state().join("x"), world.root().join("home/x")] {
        fs::write(&path, "x").unwrap();
        let mut haft = world.haft(&["why", &format!("cat {}", path.display())]);
        haft.env("TMPDIR", world.root());
        let ran = finish(haft, &Input::Nothing);
        assert!(ran.out.starts_with("ask: "), "{ran:?}");
    }
}

#[test]
fn a_file_of_ones_own_there_is_read_and_written_through_every_face() {
    let (world, temp) = world();
    let new = temp.join("new.txt").display().to_string();
    let run = |arguments: &[&str], input: &str| {
        let mut haft = world.haft(arguments);
        haft.env("TMPDIR", &temp);
        finish(haft, &Input::Pipe(input))
    };
    let bash = json!({"command": format!("echo one > {new}")});
    let ran = run(&["tool", "bash", "--input", &bash.to_string(), "--mode", "ask"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = json!({"path": new});
    let ran = run(&["tool", "read", "--input", &read.to_string(), "--mode", "ask"], "");
    assert!(ran.code == Some(0) && ran.out.contains("one"), "{ran:?}");
    let calls =
        json!([{"name": "bash", "input": {"command": format!("echo two >> {new}; cat {new}")}}]);
    let model = world.script(&[json!({ "calls": calls }), json!({"text": "End."})]);
    let ran = run(&["-p", "go", "--model", &model, "--mode", "ask"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&new).unwrap(), "one\ntwo\n", "{ran:?}");
    let call = |id: u32, method: &str, params: serde_json::Value| {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let input = call(1, "initialize", begin)
        + &call(
            2,
            "tools/call",
            json!({"name": "bash",
            "arguments": {"command": format!("echo three >> {new}")}}),
        )
        + &call(3, "tools/call", json!({"name": "read", "arguments": {"path": new}}));
    let ran = run(&["mcp", "--mode", "ask"], &input);
    assert!(ran.out.contains("three"), "{ran:?}");
}

#[test]
fn beside_a_project_in_the_temporary_folder_only_files_right_in_it_are_free() {
    let (world, _temp) = world();
    let root = world.root();
    fs::write(root.join("own"), "text\n").unwrap();
    fs::create_dir(root.join("other")).unwrap();
    fs::write(root.join("other/own"), "text\n").unwrap();
    for (temp, command, goes_on) in [
        (&*root, "cat ../own", true),
        (&*root, "echo a > ../new", true),
        (&*root, "cat ../other/own", false),
        (&*root, "cat < ../other/own", false),
        (&*root, "echo a > ../other/new", false),
        (&*root, "ls ..", false),
        // The workspace lies deeper in it.
        (root.parent().unwrap(), "cat ../own", false),
        (root.parent().unwrap(), "cat ../other/own", false),
        (root.parent().unwrap(), "echo a > ../new", false),
    ] {
        let mut haft = world.haft(&["why", command]);
        haft.env("TMPDIR", temp);
        let ran = finish(haft, &Input::Nothing);
        let want = if goes_on { "allow: " } else { "ask: " };
        assert!(ran.out.starts_with(want), "{command}: {ran:?}");
    }
}

#[test]
fn a_folder_that_is_gone_is_cleared_only_where_git_ignores_it() {
    let (world, _temp) = world();
    hold(
        &world,
        "accept-edits",
        &[
            ("rm -rf node_modules", true),
            ("rm -rf src/target", true),
            ("rm -Rf build", false),
            ("rm -rf dist/build", false),
        ],
    );
    let ran = world.shell("rm -rf .git");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    hold(&world, "accept-edits", &[("rm -rf node_modules", false)]);
}

#[test]
fn a_file_of_somebody_else_there_asks() {
    let (world, temp) = world();
    let path = temp.join("theirs");
    fs::write(&path, "x").unwrap();
    if !machine::is_root("a file of somebody else") {
        return;
    }
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let path = path.display();
    hold(&world, "ask", &[(&format!("cat {path}"), false), (&format!("echo a > {path}"), false)]);
}

#[test]
fn sockets_are_listed_without_a_question_and_no_names_are_looked_up_that_it_is_given() {
    let (world, _temp) = world();
    hold(
        &world,
        "ask",
        &[
            ("lsof -i", true),
            ("lsof -i :8080", true),
            ("lsof -ti tcp:3000", true),
            ("lsof -t -i:3000 -sTCP:LISTEN", true),
            ("lsof -i @evil.example", false),
            ("lsof -i tcp@evil.example:80", false),
            ("lsof -i :http", false),
            ("lsof", false),
            ("lsof -i -r", false),
            ("lsof +D . -i", false),
            ("lsof -i -Db", false),
            ("sudo lsof -i", false),
        ],
    );
}

/// Commands that mode accept-edits lets go on, and mode ask does not.
const CHORES: &[&str] = &[
    "git add .",
    "git add -A && git status",
    "git add src/b.go",
    "cd src && git add b.go",
    "gofmt -w . && black a.py && git add -A",
    "gofmt -w .",
    "gofmt -l -w a.go src",
    "ruff format",
    "ruff format src --check",
    "black a.py",
    "cargo fmt",
    "cargo fmt --all -- --check",
    "rm -r target",
    "rm -rf ./target",
    "cd src/.. && rm -rf node_modules",
    "rm -rf node_modules",
    "find . -name old.txt -delete",
    "find src -type f -name old.txt -delete",
];

#[test]
fn chores_go_on_in_mode_accept_edits_and_ask_in_mode_ask() {
    let (world, _temp) = world();
    let cases: Vec<(&str, bool)> = CHORES.iter().map(|one| (*one, true)).collect();
    hold(&world, "accept-edits", &cases);
    let cases: Vec<(&str, bool)> = CHORES.iter().map(|one| (*one, false)).collect();
    hold(&world, "ask", &cases);
    hold(
        &world,
        "accept-edits",
        &[
            ("git add ../x", false),
            ("git -c filter.x.clean=sh add .", false),
            ("git -C /tmp add .", false),
            ("GIT_DIR=/tmp/x git add .", false),
            ("git add -p", false),
            ("git add --pathspec-from-file=x", false),
            ("gofmt -w /tmp", false),
            ("gofmt -w ../x.go", false),
            ("gofmt -r 'a -> b' -w .", false),
            ("ruff check --fix .", false),
            ("ruff format --config x.toml", false),
            ("black --config x.toml .", false),
            ("black /etc", false),
            ("cargo fmt -- --config-path /tmp", false),
            ("cargo +nightly fmt", false),
            ("rm -r dist", false),
            ("rm -rf target src", false),
            ("rm -rf target/debug", false),
            ("rm -rf .", false),
            ("rm -rf target/../src", false),
            ("mv src target; rm -rf target", false),
            ("ls | xargs rm -rf target", false),
            ("find . -name '*.txt' -delete", false),
            ("find . -name x -delete", false),
            ("find . -delete", false),
            ("find . -name old.txt -o -name b.go -delete", false),
            ("find -L . -name old.txt -delete", false),
            ("find / -name old.txt -delete", false),
            ("find . -name .git -delete", false),
            ("find . -name HEAD -delete", false),
            ("find . -name src -delete", false),
            ("touch q; find . -name old.txt -delete", false),
            // What one command makes, the next one would use.
            ("cp -r src/. dist && cd dist && git add kept", false),
            ("cp a.py b.py && git add b.py", false),
            ("mv src lib; black .", false),
            ("touch x.go && gofmt -w .", false),
            ("cp Cargo.toml Cargo.lock && cargo fmt", false),
        ],
    );
}

#[test]
fn what_a_project_sets_up_makes_chores_ask() {
    let ask = |prepare: &str, command: &str| {
        let (world, _temp) = world();
        let ran = world.shell(prepare);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        hold(&world, "accept-edits", &[(command, false)]);
    };
    for prepare in [
        "git config filter.x.clean sh",
        "git config core.fsmonitor ./x",
        "git config core.hooksPath .",
        "git config include.path x",
        "mkdir -p .git/hooks; touch .git/hooks/post-index-change",
        "rm -rf .git",
    ] {
        ask(prepare, "git add .");
    }
    for setting in ["filter.x.clean sh", "core.hooksPath x", "core.fsmonitor x", "include.path x"] {
        ask(&format!("git config --global {setting}"), "git add .");
    }
    ask("mkdir .cargo; echo 'alias.fmt = \"run\"' > .cargo/config.toml", "cargo fmt");
    ask("mkdir .cargo; echo 'build.rustc = \"./x\"' > .cargo/config.toml", "cargo fmt");
    ask("mkdir .cargo; echo 'env.RUSTFMT = \"./x\"' > .cargo/config.toml", "cargo fmt");
    for source in [
        "#[path = \"/etc/x.rs\"] mod x;",
        "#[cfg_attr(unix, path=\"../../x.rs\")] mod x;",
        "#[path = r\"../x.rs\"] mod x;",
    ] {
        ask(&format!("printf '%s' '{source}' > src/main.rs"), "cargo fmt");
    }
    ask("printf '[workspace]\nmembers = [\"../other\"]\n' > Cargo.toml", "cargo fmt --all");
    ask("touch ../Cargo.toml", "cargo fmt --all");
    ask("printf '[toolchain]\\npath = \"x\"\\n' > rust-toolchain.toml", "cargo fmt");
    ask("ln -s /etc/hostname out.go", "gofmt -w .");
    ask("mkdir node_modules; ln -s /etc/hostname node_modules/out.go", "gofmt -w .");
    ask("ln -s /etc src/etc", "black .");
    ask("echo > .gitignore", "rm -r target");
    ask("git add -f target/debug/x", "rm -r target");
    ask("rm -r target; ln -s src target", "rm -r target");
    ask("rm -rf .git", "rm -r target");
    ask("touch target/old.txt", "find . -name old.txt -delete");
    ask("mkdir src/sub; ln -s b src/sub/old.txt", "find . -name old.txt -delete");
    ask("head -c 5000000 /dev/zero > src/old.txt", "find . -name old.txt -delete");
    ask("printf 'old.txt\\n' >> .gitignore", "find . -name old.txt -delete");
    // What no undo would bring back.
    let (world, _temp) = world();
    world.settings("[shell.changes]\non = false\n");
    hold(&world, "accept-edits", &[("find . -name old.txt -delete", false)]);
}

#[test]
fn rules_win_over_chores() {
    let (world, _temp) = world();
    for (rule, command) in [
        ("Edit(src/b.go)", "gofmt -w ."),
        ("Read(src/b.go)", "git add ."),
        ("Edit(a.py)", "black ."),
        ("Edit(target/debug/x)", "rm -r target"),
        ("Edit(src/old.txt)", "find . -name old.txt -delete"),
        ("Edit(src/**)", "cargo fmt"),
        ("Bash(git add:*)", "git add ."),
        ("Bash(rm:*)", "rm -r target"),
    ] {
        let ran = why(&world, "accept-edits", command, &["--deny", rule]);
        assert!(!ran.out.starts_with("allow"), "{rule}: {command}: {ran:?}");
    }
}

#[test]
fn a_question_about_what_only_tells_offers_the_rule_for_it() {
    let (world, _temp) = world();
    for (command, rule) in [
        ("docker ps", "Bash(docker ps:*)"),
        ("docker ps -a --format x", "Bash(docker ps:*)"),
        ("docker logs web 2>&1 | tail -5", "Bash(docker logs:*)"),
        ("cargo tree -i serde", "Bash(cargo tree:*)"),
        ("docker psx", "Bash(docker psx)"),
        ("docker rm x", "Bash(docker rm x)"),
    ] {
        let ran = world.tool("bash", &json!({ "command": command }), &["--mode", "ask"]);
        assert!(ran.both_outputs().contains(&format!("--allow '{rule}'")), "{command}: {ran:?}");
        let ran = why(&world, "ask", command, &["--allow", rule]);
        assert!(ran.out.starts_with("allow: "), "{command}: {ran:?}");
    }
}
