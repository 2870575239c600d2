//! Commands in the sandbox: what mode auto lets go on is held, through whatever face it comes, and
//! what goes beyond is asked about.

use serde_json::{Value, json};

use crate::{
    mcp_client::{self, Client},
    world::{Input, Ran, World, finish, text},
};

const AUTO: &[&str] = &["--mode", "auto"];

/// A command that haft cannot read and that writes here.
fn writes(path: &std::path::Path) -> String {
    format!("python3 -c \"open('{}', 'w').write('x')\"", path.display())
}

/// A world with a key, and a command that tries everything that it must not.
fn hostile() -> (World, String) {
    let world = World::new();
    let keys = world.root().join("home/.ssh");
    std::fs::create_dir_all(&keys).unwrap();
    std::fs::write(keys.join("id_ed25519"), "the key\n").unwrap();
    world.file("try.py", TRY.replace("ROOT", world.root().to_str().unwrap()));
    (world, "python3 try.py; echo inside > made".to_owned())
}

/// Tells which of its attacks came through.
const TRY: &str = "
import os, socket
def through(name, act):
    try:
        act()
        print('THROUGH', name)
    except OSError as error:
        print('held', name)
through('write', lambda: open('ROOT/outside', 'w').write('x'))
through('key', lambda: open('ROOT/home/.ssh/' + 'id_ed' + '25519').read())
through('home', lambda: open('ROOT/home/.bashrc', 'w').write('x'))
through('hook', lambda: os.makedirs('.git/hooks') or open('.git/hooks/post-commit', 'w'))
through('connect', lambda: socket.create_connection(('203.0.113.1', 80), 1))
open('inside.txt', 'w').write('x')
print('done')
";

fn init(world: &World) {
    assert!(world.program("git").args(["init", "-q"]).status().unwrap().success());
}

fn held(world: &World, said: &str) {
    for name in ["write", "key", "home", "connect"] {
        assert!(said.contains(&format!("held {name}")), "{name}: {said}");
    }
    assert!(!said.contains("THROUGH") && said.contains("done"), "{said}");
    assert!(!world.root().join("outside").exists() && !world.root().join("home/.bashrc").exists());
    assert!(!world.work().join(".git/hooks/post-commit").exists(), "{said}");
    assert_eq!((world.read("inside.txt"), world.read("made")), ("x".into(), "inside\n".into()));
    for name in ["inside.txt", "made"] {
        std::fs::remove_file(world.work().join(name)).unwrap();
    }
}

#[test]
fn mode_auto_holds_commands_whatever_the_face_is() {
    let (world, command) = hostile();
    init(&world);
    let input = json!({ "command": command });
    let ran = world.tool("bash", &input, AUTO);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    held(&world, &ran.out);
    // A session of its own for each.
    let (world, _) = hostile();
    init(&world);
    let model = world
        .script(&[json!({"calls": [{"name": "bash", "input": input}]}), json!({"text": "End."})]);
    let ran = world.run(&["-p", "go", "--model", &model, "--mode", "auto"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    held(&world, &text(world.outcomes().last().unwrap()));
    let flags = ["--line", "--model", &model, "--mode", "auto"];
    let ran = world.run_with(&flags, &Input::Pipe("go\n"));
    assert!(!ran.out.contains("[y]"), "{ran:?}");
    held(&world, &ran.out);
    let mut client = Client::greeted(&world, AUTO);
    let answer = client.call("bash", &input);
    held(&world, mcp_client::text(&answer));
    client.ends_well();
}

#[test]
fn sessions_jobs_and_terminals_are_held_too() {
    let command = "python3 try.py; echo inside > made";
    let wait = json!({"action": "wait", "job_id": "j1"});
    for calls in [
        vec![
            json!({"name": "bash", "input": {"command": "x=1", "session": "s"}}),
            json!({"name": "bash", "input": {"command": command, "session": "s"}}),
        ],
        vec![json!({"name": "bash", "input": {"command": command, "pty": true}})],
        vec![
            json!({"name": "bash", "input": {"command": command, "run_in_background": true}}),
            json!({"name": "job", "input": wait}),
        ],
    ] {
        let (world, _) = hostile();
        init(&world);
        let told = world.tool_results(&calls, AUTO);
        let said: String = told.iter().map(text).collect();
        held(&world, &said);
    }
}

#[test]
fn what_only_looks_can_change_nothing() {
    let (world, _) = hostile();
    // As if the table of programs were wrong about this one.
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let body = format!("#!/bin/sh\ncd {}\npython3 try.py\n", world.work().display());
    std::fs::write(bin.join("wc"), body).unwrap();
    std::fs::set_permissions(bin.join("wc"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let look = |flags: &[&str]| {
        let input = json!({"command": "wc try.py"}).to_string();
        let arguments = [&["tool", "bash", "--input", &input], flags].concat();
        let mut command = world.haft(&arguments);
        command.env("PATH", &path);
        finish(command, &Input::Nothing)
    };
    for flags in [&["--mode", "dont-ask"][..], AUTO, &["--mode", "ask"]] {
        let ran = look(flags);
        assert!(
            ran.out.contains("held write") && ran.out.contains("held key"),
            "{flags:?}: {ran:?}"
        );
        assert!(ran.out.contains("could change no file"), "{flags:?}: {ran:?}");
        assert!(
            !ran.out.contains("THROUGH") && !world.work().join("inside.txt").exists(),
            "{ran:?}"
        );
    }
    // A person's own word is not a classification.
    let ran = look(&["--mode", "dont-ask", "--allow", "Bash(wc:*)"]);
    assert!(ran.out.contains("THROUGH write"), "{ran:?}");
}

fn refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains(why), "{why}: {ran:?}");
}

#[test]
fn the_border_is_asked_about() {
    let (world, _) = hostile();
    init(&world);
    let outside = world.root().join("outside");
    std::fs::create_dir(world.root().join("other")).unwrap();
    let needs = json!({"write": [world.root().join("other")]});
    for (input, why) in [
        (json!({"command": format!("echo x > {}", outside.display())}), "outside the workspace"),
        (json!({"command": "echo x > .envrc"}), "a folder's start-up file"),
        (json!({"command": "cat ~/.ssh/id_ed25519"}), "ssh keys"),
        (
            json!({"command": "true", "needs": {"hosts": ["example.org"]}}),
            "connecting to example.org",
        ),
        (json!({"command": writes(&outside), "needs": needs}), "outside the workspace"),
        (json!({"command": "true", "unsandboxed": true}), "run outside the sandbox"),
        (json!({"command": "shutdown now"}), "nobody can be asked"),
        (
            json!({"command": "touch .envrc", "unsandboxed": true}),
            "it also wants to run outside the sandbox",
        ),
    ] {
        refused(&world.tool("bash", &input, AUTO), why);
    }
    refused(
        &world.tool("bash", &json!({"command": writes(&outside)}), AUTO),
        "it could write only in",
    );
    assert!(!outside.exists());
    let bad = json!({"command": "true", "session": "s", "needs": needs});
    refused(&world.tool("bash", &bad, AUTO), "a session cannot have needs");
    let bad = json!({"command": "true", "needs": {"hosts": ["no host"]}});
    refused(&world.tool("bash", &bad, AUTO), "which is no host name");
    let bad = json!({"command": "true", "needs": {"write": ["/"]}});
    refused(&world.tool("bash", &bad, AUTO), "needs.write has /, which is all there is");
}

/// Asks a person at line mode, who says yes, and gives what they saw.
fn asked(world: &World, input: &Value) -> Ran {
    let model = world
        .script(&[json!({"calls": [{"name": "bash", "input": input}]}), json!({"text": "End."})]);
    let flags = ["--line", "--model", &model, "--mode", "auto"];
    world.run_with(&flags, &Input::Pipe("go\ny\n"))
}

#[test]
fn what_a_person_allows_is_added_and_nothing_else() {
    let (world, _) = hostile();
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let (there, beside) = (other.join("f"), world.root().join("outside"));
    let command = format!("{}; {}", writes(&there), writes(&beside));
    let ran = asked(&world, &json!({"command": command, "needs": {"write": [other]}}));
    assert!(there.exists() && !beside.exists(), "{ran:?}");
    let ran = asked(&world, &json!({"command": writes(&beside), "unsandboxed": true}));
    assert!(beside.exists(), "{ran:?}");
    assert!(!ran.out.contains("[s]") && ran.out.contains("outside the sandbox"), "{ran:?}");
}

#[test]
fn a_yes_to_leave_is_said_and_not_remembered_whatever_else_is_asked() {
    let (world, _) = hostile();
    let outside = world.root().join("outside");
    for (command, why) in [
        (format!("{}; touch .envrc", writes(&outside)), "start-up file"),
        (format!("{}; cat sub/.netrc", writes(&outside)), "network passwords"),
        (format!("{}; mkfs.ext4 /nowhere", writes(&outside)), "mkfs"),
    ] {
        let ran = asked(&world, &json!({"command": command, "unsandboxed": true}));
        assert!(ran.out.contains("outside the sandbox") && ran.out.contains(why), "{ran:?}");
        assert!(!ran.out.contains("[s]"), "{ran:?}");
        // Without it the same has no word of that.
        let ran = asked(&world, &json!({"command": command}));
        assert!(!ran.out.contains("outside the sandbox") && ran.out.contains(why), "{ran:?}");
    }
}

#[test]
fn settings_decide_what_holds() {
    let (world, command) = hostile();
    init(&world);
    let input = json!({ "command": command });
    let rule = ["--allow", "Bash(python3:*)", "--allow", "Bash(echo:*)", "--allow", "Edit(made)"];
    for text in ["always = true", "require = \"landlock\""] {
        world.settings(&format!("[sandbox]\n{text}\n"));
        let ran = world.tool("bash", &input, &rule);
        held(&world, &ran.out);
    }
    let leaves = json!({"command": "true", "unsandboxed": true});
    refused(&world.tool("bash", &leaves, &["--mode", "bypass"]), "forbids commands outside");
    world.settings("[sandbox]\nunsandboxed = false\n");
    refused(&world.tool("bash", &leaves, AUTO), "sandbox.unsandboxed forbids");
    let outside = world.root().join("outside");
    world.settings(&format!("[sandbox]\nwrite = [\"{}\"]\n", world.root().join("more").display()));
    std::fs::create_dir(world.root().join("more")).unwrap();
    let both = format!("{}; {}", writes(&world.root().join("more/f")), writes(&outside));
    let ran = world.tool("bash", &json!({ "command": both }), AUTO);
    assert!(world.root().join("more/f").exists() && !outside.exists(), "{ran:?}");
    // A project loosens nothing.
    world.settings("");
    world.file(".haft/settings.toml", "[sandbox]\nlooks = false\nwrite = [\"/\"]\n");
    let ran =
        world.tool("bash", &json!({"command": writes(&outside)}), &["--mode", "auto", "--trust"]);
    assert!(ran.both_outputs().contains("sandbox") && !outside.exists(), "{ran:?}");
}

/// A server of this machine that answers every request alike.
fn server() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut head = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut head);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    port
}

#[test]
fn hosts_are_reached_by_name_alone() {
    let (world, _) = hostile();
    let (open, closed) = (server(), server());
    let fetch = |port: u16| format!("curl -sS http://127.0.0.1:{port}/");
    let straight = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {open}), 2)\" 2>&1"
    );
    let alone = world.tool("bash", &json!({"command": fetch(open)}), AUTO);
    assert!(alone.code == Some(1) && alone.out.contains("127.0.0.1"), "{alone:?}");
    assert!(alone.out.contains("in the sandbox it tried"), "{alone:?}");
    world.settings(&format!("[sandbox]\nhosts = [\"127.0.0.1:{open}\"]\n"));
    let both = format!("{}; {}; {straight}", fetch(open), fetch(closed));
    for command in [both.clone(), format!("touch x; {both}")] {
        let ran = world.tool("bash", &json!({ "command": command }), AUTO);
        assert!(ran.out.starts_with("hello\n"), "{ran:?}");
        let named = format!("refused: 127.0.0.1:{closed}: not among the hosts");
        assert!(ran.out.contains(&named) && ran.out.contains("refused"), "{ran:?}");
        assert!(ran.out.contains("OSError") || ran.out.contains("Refused"), "{ran:?}");
    }
    // In the background, too, for as long as it runs.
    let (world, _) = hostile();
    world.settings(&format!("[sandbox]\nhosts = [\"127.0.0.1:{open}\"]\n"));
    let told = world.tool_results(
        &[
            json!({"name": "bash", "input": {"command": format!("sleep 1; {}", fetch(open)), "run_in_background": true}}),
            json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}}),
        ],
        AUTO,
    );
    assert!(text(&told[1]).contains("hello"), "{told:?}");
}

/// A repository with this and another branch, which differ in what is protected.
fn branches(world: &World) {
    init(world);
    let git = |words: &[&str]| {
        assert!(world.program("git").args(words).status().unwrap().success(), "{words:?}");
    };
    git(&["config", "user.name", "A"]);
    git(&["config", "user.email", "a@b.c"]);
    for (branch, text) in [("first", "1"), ("second", "2")] {
        git(&["checkout", "-qb", branch]);
        world.file(".gitmodules", format!("# {text}\n"));
        world.file("sub/.envrc", text);
        world.file("plain", text);
        if branch == "second" {
            world.file(".mcp.json", "{}");
        }
        git(&["add", "-A"]);
        git(&["commit", "-qm", branch]);
    }
    git(&["checkout", "-q", "first"]);
}

#[test]
fn a_checkout_that_differs_in_what_is_protected_says_what_lets_it_through() {
    let world = World::new();
    branches(&world);
    let ran = world.tool("bash", &json!({"command": "git checkout -q second"}), AUTO);
    for name in [".gitmodules", ".mcp.json", "sub/.envrc"] {
        let path = world.work().join(name);
        let needs = ran.out.lines().filter(|line| line.contains("with needs {\"write\":["));
        let named = format!("\"{}\"", path.display());
        assert!(needs.into_iter().any(|line| line.contains(&named)), "{name}: {ran:?}");
    }
    assert_eq!(
        (world.read(".gitmodules"), world.read("sub/.envrc"), world.read("plain")),
        ("# 1\n".into(), "1".into(), "2".into())
    );
    let list = world.program("git").args(["status", "--porcelain"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(!list.contains("??"), "something is left lying about: {list}");
    assert_eq!(list.lines().count(), 3, "{list}");
    // And with that it goes through.
    let paths = [".gitmodules", ".mcp.json", "sub/.envrc"].map(|name| world.work().join(name));
    let input = json!({"command": "git checkout -qf second", "needs": {"write": paths}});
    refused(&world.tool("bash", &input, AUTO), "to protect");
    let ran = asked(&world, &input);
    let list = world.program("git").args(["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8(list.stdout).unwrap(), "", "{ran:?}");
}

#[test]
fn what_is_protected_is_so_at_any_depth_and_in_sessions_and_jobs() {
    let script = "mkdir -p a/b/.vscode && echo x > a/b/.vscode/tasks.json; echo 2 > sub/.envrc; \
                  chmod 500 sub a/b; echo fine > a/made";
    let deep = "bash deep.sh";
    let wait = json!({"action": "output", "job_id": "j1"});
    for calls in [
        vec![json!({"name": "bash", "input": {"command": deep}})],
        vec![json!({"name": "bash", "input": {"command": deep, "session": "s"}})],
        vec![
            json!({"name": "bash", "input": {
                "command": format!("{deep}; echo ready; sleep 100"), "run_in_background": true}}),
            json!({"name": "job", "input": {"action": "wait", "job_id": "j1", "pattern": "ready"}}),
            json!({"name": "job", "input": wait}),
        ],
    ] {
        let world = World::new();
        init(&world);
        world.file("sub/.envrc", "1\n");
        world.file("deep.sh", script);
        let told = world.tool_results(&calls, AUTO);
        let said: String = told.iter().map(text).collect();
        assert!(said.contains("sub/.envrc was changed"), "{said}");
        assert!(said.contains("a/b/.vscode was made"), "{said}");
        let text = (world.read("sub/.envrc"), world.read("a/made"));
        assert_eq!(text, ("1\n".to_owned(), "fine\n".to_owned()), "{said}");
        assert!(!world.work().join("a/b/.vscode").exists(), "{said}");
        for name in ["sub", "a/b"] {
            let mode = std::fs::metadata(world.work().join(name)).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o500, "{name}");
        }
    }
}

#[test]
fn what_haft_itself_writes_while_a_command_runs_stays() {
    let world = World::new();
    init(&world);
    world.file("sub/.envrc", "1\n");
    let write = |path: &str| json!({"name": "write", "input": {"path": path, "content": "mine\n"}});
    let calls = [
        json!({"name": "bash", "input": {"command": "sleep 100", "run_in_background": true}}),
        write("sub/.envrc"),
        write(".mcp.json"),
        write("new/.envrc"),
        json!({"name": "job", "input": {"action": "stop", "job_id": "j1"}}),
    ];
    let mut answers: Vec<Value> = calls.into_iter().map(|call| json!({"calls": [call]})).collect();
    answers.push(json!({"text": "End."}));
    let model = world.script(&answers);
    let flags = [&["--line", "--model", &model], AUTO].concat();
    let ran = world.run_with(&flags, &Input::Pipe("go\ny\ny\ny\n"));
    assert!(ran.out.matches("[y]").count() == 3, "{ran:?}");
    for name in ["sub/.envrc", ".mcp.json", "new/.envrc"] {
        assert_eq!(world.read(name), "mine\n", "{name}: {ran:?}");
    }
}

#[test]
fn the_state_of_haft_cannot_be_read_but_for_what_a_command_is_given() {
    let world = World::new();
    let first = world.tool("bash", &json!({"command": "echo the-word > f"}), AUTO);
    assert_eq!(first.code, Some(0), "{first:?}");
    let text = "python3 -c \"import os; s = os.environ['S']; print([n for d in os.walk(s) for n in d[2]], \
                os.path.isdir(s))\"; mkdir -p $GOCACHE && echo kept > $GOCACHE/x && cat $GOCACHE/x";
    let input = json!({"command": format!("export S={}; {text}", world.state().display())});
    let ran = world.tool("bash", &input, AUTO);
    assert!(ran.out.contains("[] True") && ran.out.contains("kept"), "{ran:?}");
    let input = json!({"command": format!("cat {}/sessions/*/*", world.state().display())});
    refused(&world.tool("bash", &input, AUTO), "haft's own state");
}

#[test]
fn git_works_where_the_repository_lies_around_the_workspace() {
    let world = World::new();
    let git = |folder: &std::path::Path, words: &[&str]| {
        let mut command = world.program("git");
        let done = command.arg("-C").arg(folder).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let repository = world.root().join("repository");
    std::fs::create_dir_all(repository.join("sub")).unwrap();
    git(&repository, &["init", "-q"]);
    for (name, value) in [("user.name", "A"), ("user.email", "a@b.c")] {
        git(&repository, &["config", name, value]);
    }
    std::fs::write(repository.join("sub/old"), "1").unwrap();
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-qm", "one"]);
    let tree = world.root().join("tree");
    git(&repository, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let hooked = "git add -A && git commit -qm two && git status --porcelain && git log --oneline";
    for folder in [repository.join("sub"), tree] {
        let auto = |command: &str| {
            let input = json!({ "command": command }).to_string();
            let mut command = world.haft(&["tool", "bash", "--input", &input, "--mode", "auto"]);
            command.current_dir(&folder);
            finish(command, &Input::Nothing)
        };
        std::fs::write(folder.join("new"), "1").unwrap();
        let ran = auto(hooked);
        assert!(ran.code == Some(0) && ran.out.contains("two"), "{}: {ran:?}", folder.display());
        assert!(git(&folder, &["status", "--porcelain"]).is_empty());
        // By a way that nobody sees beforehand.
        let evil = "import subprocess as s, os; r = s.check_output(['git', 'rev-parse', \
                    '--git-common-dir'], text=True).strip(); \
                    h = os.path.join(r, 'hooks'); os.makedirs(h, exist_ok=True); \
                    open(os.path.join(h, 'post-commit'), 'w')";
        drop(auto(&format!("python3 -c \"{evil}\"; git config core.fsmonitor evil; true")));
        assert!(!repository.join(".git/hooks/post-commit").exists());
        assert!(!std::fs::read_to_string(repository.join(".git/config")).unwrap().contains("evil"));
    }
    // A file that names the repository of somebody else opens nothing.
    let world = World::new();
    let text = format!("gitdir: {}\n", repository.join(".git").display());
    world.file(".git", text);
    let there = repository.join(".git/objects/x");
    let ran = world.tool("bash", &json!({"command": writes(&there)}), AUTO);
    assert!(ran.code == Some(1) && !there.exists(), "{ran:?}");
}

#[test]
fn what_a_person_allows_can_be_made_where_nothing_is_yet() {
    let world = World::new();
    let root = world.root();
    let (file, folder, beside) = (root.join("file"), root.join("folder"), root.join("beside"));
    let command = format!("echo x > {}; {}", file.display(), writes(&beside));
    let ran = asked(&world, &json!({ "command": command }));
    assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some("x\n"), "{ran:?}");
    assert!(!beside.exists(), "{ran:?}");
    let command = format!("{}; {}", writes(&folder.join("f")), writes(&beside));
    let ran = asked(&world, &json!({"command": command, "needs": {"write": [folder]}}));
    assert!(folder.join("f").exists() && !beside.exists(), "{ran:?}");
    // What came to nothing leaves nothing.
    let input = json!({"command": "false", "needs": {"write": [beside]}});
    let ran = asked(&world, &input);
    assert!(!beside.exists() && ran.out.contains("[y]"), "{ran:?}");
}

#[test]
fn what_only_looks_sees_nothing_that_was_not_judged() {
    let world = World::new();
    std::fs::write(world.root().join("outside"), "precious\n").unwrap();
    world.file("inside", "plain\n");
    std::os::unix::fs::symlink("inside", world.work().join("link")).unwrap();
    // As if the link had been turned around behind the judgement.
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let body = format!("#!/bin/sh\ncat inside {}\n", world.root().join("outside").display());
    std::fs::write(bin.join("wc"), body).unwrap();
    std::fs::set_permissions(bin.join("wc"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    for flags in [&["--mode", "dont-ask"][..], AUTO] {
        let input = json!({"command": "wc link"}).to_string();
        let mut command = world.haft(&[&["tool", "bash", "--input", &input], flags].concat());
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let ran = finish(
            {
                command.env("PATH", path);
                command
            },
            &Input::Nothing,
        );
        assert!(ran.out.contains("plain") && !ran.out.contains("precious"), "{flags:?}: {ran:?}");
    }
}

#[test]
fn what_reads_by_names_that_it_is_told_reads_no_keys_and_nothing_that_is_denied() {
    let world = World::new();
    init(&world);
    let keys = world.root().join("home/.ssh");
    std::fs::create_dir_all(&keys).unwrap();
    std::fs::write(keys.join("known"), "precious home\n").unwrap();
    std::fs::write(world.root().join("beside"), "precious beside\n").unwrap();
    for name in ["deep/er/id_ed25519", ".netrc", "deep/.env", "deep/secret/a.txt"] {
        world.file(name, format!("precious {name}\n"));
    }
    world.file("plain", "plain\n");
    std::os::unix::fs::symlink("../.env", world.work().join("deep/er/link")).unwrap();
    let home = keys.join("known").display().to_string();
    let beside = world.root().join("beside").display().to_string();
    let list = format!(
        "plain\n{home}\n{beside}\n/etc/shadow\ndeep/er/id_ed25519\n.netrc\ndeep/.env\n\
         deep/er/link\ndeep/er/../.env\ndeep/secret/a.txt\n"
    );
    world.file("list", list);
    let rules = ["--deny", "Read(.env)", "--deny", "Read(/deep/secret/**)"];
    for mode in ["dont-ask", "ask", "accept-edits", "auto", "bypass"] {
        for (more, command) in [
            (&[][..], "cat $(cat list)"),
            (&["--allow", "Bash(cat:*)"], "cat $(cat list)"),
            (&["--allow", "Bash"], "xargs cat < list"),
            (&[], "while read -r f; do head -3 \"$f\"; done < list"),
            (&[], "grep -rh . . --exclude=list --exclude-dir=er --exclude=.netrc"),
        ] {
            let flags = [&["--mode", mode][..], &rules, more].concat();
            let ran = world.tool("bash", &json!({ "command": command }), &flags);
            assert!(ran.out.contains("plain"), "{mode} {command}: {ran:?}");
            assert!(!ran.out.contains("precious"), "{mode} {command}: {ran:?}");
        }
    }
    for command in ["cat $(cat list)", "cat \"$(sed -n 2p list)\" plain"] {
        let ran = world.tool("bash", &json!({ "command": command }), &["--allow", "Bash(cat:*)"]);
        assert!(ran.out.contains("plain") && !ran.out.contains("precious home"), "{ran:?}");
    }
    // What git has kept is not hidden, and where no look is promised nothing goes on.
    for command in
        ["git log -p", "git diff", "git show HEAD", "git grep x HEAD", "git stash show -p"]
    {
        let flags = [&["--mode", "dont-ask"][..], &rules].concat();
        let ran = world.tool("bash", &json!({ "command": command }), &flags);
        refused(&ran, "the rule Read(");
    }
    world.settings("[sandbox]\nlooks = false\n");
    for command in ["cat $(cat list)", "grep -r . .", "git status"] {
        let flags = [&["--mode", "dont-ask"][..], &rules].concat();
        let ran = world.tool("bash", &json!({ "command": command }), &flags);
        refused(&ran, "Read(");
    }
}

#[test]
fn keys_deep_in_the_workspace_are_shown_to_nothing_that_comes_upon_them() {
    let world = World::new();
    init(&world);
    for name in ["sub/.netrc", "sub/deploy/id_ed25519", "sub/.ssh/work", "sub/deep/er/.pgpass"] {
        world.file(name, format!("precious {name}\n"));
    }
    for name in ["sub/.note", "sub/deploy/a.txt", "sub/deep/er/b.txt"] {
        world.file(name, "plain\n");
    }
    for mode in ["ask", "accept-edits", "bypass"] {
        for command in [
            "cat sub/.n*",
            "tail -q -n 1 sub/deploy/*",
            "grep -rh . sub",
            "find sub -type f -exec cat {} +",
            "find sub -name '*' -type f -exec head -n 1 {} \\;",
            "awk 1 sub/.n*",
            "sort -u sub/deploy/*",
            "cd sub && head -n 3 .[a-z]*",
            "cat sub/*/*/.p* sub/*/*/b*",
            "for f in sub/deploy/*; do cat \"$f\"; done",
        ] {
            let ran = world.tool("bash", &json!({ "command": command }), &["--mode", mode]);
            assert!(!ran.out.contains("precious"), "{mode} {command}: {ran:?}");
            // Some end at the first file that they may not open, and say so.
            let goes_on = !(command.starts_with("awk") || command.starts_with("sort"));
            let said = if goes_on { "plain" } else { "ermission denied" };
            assert!(ran.out.contains(said), "{mode} {command}: {ran:?}");
        }
        // What tells names alone is kept from none.
        let ran =
            world.tool("bash", &json!({"command": "ls -A sub/*; ls sub/.n*"}), &["--mode", mode]);
        assert!(ran.out.contains("id_ed25519") && ran.out.contains(".netrc"), "{mode}: {ran:?}");
    }
    // What is named is asked about, as ever.
    refused(&world.tool("bash", &json!({"command": "cat sub/.netrc"}), &[]), "network passwords");
}

#[test]
fn keys_deep_in_the_workspace_are_read_by_no_program_of_mode_auto() {
    let world = World::new();
    init(&world);
    for name in ["sub/.netrc", "sub/deploy/id_ed25519", "sub/.ssh/work", "deep/er/.pgpass"] {
        world.file(name, format!("precious {name}\n"));
    }
    world.file("sub/.note", "plain\n");
    world.file(
        "show.sh",
        "cat sub/.netrc sub/deploy/id* deep/er/.p*; cat sub/.ssh/*; grep -r precious . --exclude=*.sh; \
         ln sub/.netrc hard; mv sub moved; cat moved/.netrc hard; mv moved sub; cp -r sub copy; \
         cat copy/.netrc; cat sub/.note; echo new > sub/deploy/new; echo made > deep/made",
    );
    let doctor = finish(world.haft(&["doctor", "--json"]), &Input::Nothing);
    let lines: Vec<Value> =
        doctor.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |what: &str| lines.iter().find(|line| line["what"] == what).unwrap();
    let ran = world.tool("bash", &json!({"command": "bash show.sh"}), AUTO);
    assert!(ran.out.contains("plain"), "{ran:?}");
    assert_eq!(
        (world.read("sub/deploy/new"), world.read("deep/made")),
        ("new\n".into(), "made\n".into())
    );
    if line("level N")["state"] == "ok" {
        assert!(!ran.out.contains("precious"), "{ran:?}");
    } else {
        let said = line("sandbox")["text"].as_str().unwrap();
        assert!(said.contains("but for those deep in the workspace"), "{said}");
    }
    assert_eq!(world.read("sub/.netrc"), "precious sub/.netrc\n");
    // What cannot be read is not taken for empty.
    world.file("add.sh", "git add -A; git show :sub/.netrc :sub/deploy/id_ed25519");
    let ran = world.tool("bash", &json!({"command": "bash add.sh; cat show.sh | wc -l"}), AUTO);
    if line("level N")["state"] == "ok" {
        assert!(ran.out.contains("can only add regular files"), "{ran:?}");
        // Nor is a key for which an index is forged what git has anyway.
        let forged = "echo x | git hash-object -w --stdin > id; \
                      git update-index --add --cacheinfo 100644,$(cat id),sub/.netrc; git write-tree";
        world.file("forge.sh", forged);
        world.tool("bash", &json!({"command": "bash forge.sh"}), AUTO);
        let ran = world.tool("bash", &json!({"command": "bash show.sh; git add -A"}), AUTO);
        assert!(!ran.out.contains("precious"), "{ran:?}");
        assert!(ran.out.contains("hidden from commands in the sandbox: "), "{ran:?}");
        assert!(!ran.out.contains("precious"), "{ran:?}");
    }
}

#[test]
fn keys_that_git_has_are_what_programs_may_work_with() {
    let world = World::new();
    init(&world);
    for (name, value) in [("user.name", "a"), ("user.email", "a@b.example")] {
        assert!(world.program("git").args(["config", name, value]).status().unwrap().success());
    }
    world.file("tests/id_rsa", "a fixture\n");
    world.file("a.txt", "a\n");
    let commit = "git add -A && git commit -qm x";
    assert!(world.program("sh").args(["-c", commit]).status().unwrap().success());
    world.file("tests/.netrc", "precious\n");
    world.file(
        "work.sh",
        "cat tests/id_rsa tests/.netrc; echo b > a.txt; git commit -qam y; git status -s",
    );
    let ran = world.tool("bash", &json!({"command": "bash work.sh"}), AUTO);
    assert!(ran.out.contains("a fixture") && !ran.out.contains("precious"), "{ran:?}");
    assert!(!ran.out.contains(" M ") && !ran.out.contains("fatal"), "{ran:?}");
}

/// Tells what everyday programs find, each on a line of its own.
const EVERYDAY: &str = "
import socket
from multiprocessing import Lock
def tried(name, act):
    try:
        act()
        print(name, 'works')
    except OSError as error:
        print(name, 'does not')
def local():
    server = socket.socket()
    server.bind(('127.0.0.1', 0))
    server.listen(1)
    socket.create_connection(server.getsockname()).close()
tried('pair', socket.socketpair)
tried('local', local)
tried('unix', lambda: socket.socket(socket.AF_UNIX).bind('a.sock'))
tried('lock', Lock)
";

#[test]
fn what_everyday_programs_go_without_at_each_level_is_what_doctor_says() {
    let world = World::new();
    world.file("try.py", EVERYDAY);
    let none =
        "for n in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${n}_namespaces; done";
    let mut tried = 0;
    for (level, begins, network, words) in [
        ("level N", "", "works", "go without unix sockets but pairs"),
        ("level L", none, "does not", "also to this machine itself, and without /dev/shm"),
    ] {
        let haft = |arguments: &str| {
            let script = format!("{begins}\n'{}' {arguments}", env!("CARGO_BIN_EXE_haft"));
            let mut command = world.program(if begins.is_empty() { "sh" } else { "unshare" });
            command.args(if begins.is_empty() { &[][..] } else { &["-Ur", "sh"] });
            command.args(["-c", &script]);
            finish(command, &Input::Nothing)
        };
        let doctor = haft("doctor");
        let line = doctor.out.lines().find(|line| line.starts_with(&format!("ok  {level}")));
        let used = doctor.out.contains(&format!("of mode auto run at {level}"));
        let Some(line) = line.filter(|_| used) else {
            eprintln!("not tried: {level}");
            continue;
        };
        tried += 1;
        assert!(line.contains(words), "{line}");
        let ran = haft("tool bash --mode auto --input '{\"command\": \"python3 try.py\"}'");
        let wanted = format!("pair works\nlocal {network}\nunix does not\nlock {network}\n");
        assert!(ran.out.starts_with(&wanted), "{level}: {ran:?}");
    }
    assert!(tried > 0, "no level holds here");
}
