//! Mode plan: nothing of the workspace changes, whatever is tried, and builds and tests still run.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command,
};

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, finish, text};

/// Takes away what level N needs, so that level L is what holds.
const LOWER: &str =
    "for n in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${n}_namespaces; done";

/// Ways to change something in a workspace with `a.txt`, `sub/b.txt` and a repository.
const WRITERS: &[&str] = &[
    "echo x > a.txt",
    "echo x >> a.txt",
    "echo x > new.txt",
    ": > a.txt",
    "printf x | tee a.txt",
    "tee -a new.txt < a.txt",
    "sed -i s/old/new/ a.txt",
    "sed -n 'w new.txt' a.txt",
    "perl -pi -e s/old/new/ a.txt",
    "awk '{print > \"new.txt\"}' a.txt",
    "cp a.txt new.txt",
    "cp -r sub new",
    "mv a.txt moved.txt",
    "rm a.txt",
    "rm -rf sub",
    "unlink a.txt",
    "rmdir empty",
    "mkdir new",
    "mkdir -p new/deep",
    "touch new.txt",
    "touch -d 2001-01-01 a.txt",
    "truncate -s 0 a.txt",
    "dd if=/dev/zero of=a.txt bs=1 count=1",
    "ln -s a.txt link",
    "ln a.txt hard",
    "chmod 777 a.txt",
    "install -m 755 a.txt new.txt",
    "split -b 1 a.txt part",
    "csplit a.txt 1",
    "sort -o a.txt a.txt",
    "tar xf archive.tar",
    "tar cf new.tar a.txt",
    "gzip a.txt",
    "patch a.txt < change.patch",
    "find . -name '*.txt' -delete",
    "find . -name a.txt -exec rm {} ;",
    "find . -name a.txt -exec sh -c 'echo x > $0' {} \\;",
    "echo a.txt | xargs rm",
    "git add -A",
    "git commit -qam x",
    "git checkout -b other",
    "git reset --hard",
    "git clean -fdx",
    "git stash",
    "git config user.name x",
    "git tag x",
    "git init new",
    "git worktree add ../tree",
    "python3 -c \"open('a.txt', 'w').write('x')\"",
    "python3 -c \"import os; os.remove('a.txt')\"",
    "python3 -c \"import os, subprocess; subprocess.run(['sh', '-c', 'echo x > a.txt'])\"",
    "python3 writer.py",
    "sh writer.sh",
    "bash -c 'echo x > a.txt'",
    "sh -c 'cd sub && echo x > b.txt'",
    "eval 'echo x > a.txt'",
    "cd sub; echo x > ../a.txt",
    "exec 3> a.txt; echo x >&3",
    "(sleep 0; echo x > a.txt) & wait",
    "env sh -c 'echo x > a.txt'",
    "nohup sh -c 'echo x > a.txt'",
    "make",
];

fn world() -> World {
    let world = World::new();
    world.file("a.txt", "old\n");
    world.file("sub/b.txt", "old\n");
    world.file("change.patch", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n");
    world.file("writer.py", "open('a.txt', 'w').write('x')\nopen('new.txt', 'w').write('x')\n");
    world.file("writer.sh", "echo x > a.txt\necho x > new.txt\n");
    world.file("Makefile", "all:\n\techo x > a.txt\n\techo x > new.txt\n");
    fs::create_dir(world.work().join("empty")).unwrap();
    let set_up = "git init -q . && git -c user.name=x -c user.email=x@y.z add -A && \
                  git -c user.name=x -c user.email=x@y.z commit -qm x && tar cf archive.tar sub";
    let mut command = world.program("sh");
    command.args(["-c", set_up]);
    let made = finish(command, &Input::Nothing);
    assert_eq!(made.code, Some(0), "{made:?}");
    world
}

/// Every file below a folder, with its content, its permissions and when it changed.
fn tree(folder: &Path) -> BTreeMap<String, (Vec<u8>, u32, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let data = path.symlink_metadata().unwrap();
            let content = match () {
                () if data.is_file() => fs::read(&path).unwrap(),
                () if data.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                () => Vec::new(),
            };
            let (mode, changed) = (data.permissions().mode(), data.modified().unwrap());
            all.insert(path.display().to_string(), (content, mode, changed));
            if data.is_dir() {
                folders.push(path);
            }
        }
    }
    all
}

/// Runs haft where this level is the best that holds; none where it is not.
fn at_level(world: &World, level: &str, arguments: &[&str]) -> Option<Ran> {
    let run = |arguments: &[&str]| {
        let lower = if level == "N" { "" } else { LOWER };
        let script = format!("{lower}\nexec '{}' \"$@\"", env!("CARGO_BIN_EXE_haft"));
        let mut command = world.program(if level == "N" { "sh" } else { "unshare" });
        command.args(if level == "N" { &[][..] } else { &["-Ur", "sh"] });
        command.args(["-c", &script, "haft"]).args(arguments);
        finish(command, &Input::Nothing)
    };
    if !run(&["doctor"]).out.contains(&format!("of mode auto run at level {level}")) {
        return None;
    }
    Some(run(arguments))
}

#[test]
fn no_writing_command_changes_anything() {
    let mut tried = 0;
    for level in ["N", "L"] {
        let world = world();
        let call = |command: &&str| json!({"name": "bash", "input": {"command": command}});
        let mut calls: Vec<Value> = WRITERS.iter().map(call).collect();
        for (name, input) in [
            ("write", json!({"path": "new.txt", "content": "x"})),
            ("edit", json!({"path": "a.txt", "edits": [{"old_text": "old", "new_text": "new"}]})),
            ("bash", json!({"command": "echo x > a.txt", "unsandboxed": true})),
            ("bash", json!({"command": "echo x > a.txt", "session": "one"})),
            ("bash", json!({"command": "python3 writer.py", "run_in_background": true})),
            ("bash", json!({"command": "read -r x; eval \"$x\"", "run_in_background": true})),
            ("job", json!({"action": "input", "job": "j2", "text": "echo x > a.txt\n"})),
        ] {
            calls.push(json!({"name": name, "input": input}));
        }
        let model = world.script(&[json!({"calls": calls}), json!({"text": "End."})]);
        let before = tree(&world.work());
        let flags = ["-p", "go", "--mode", "plan", "--model", &model];
        let Some(ran) = at_level(&world, level, &flags) else {
            eprintln!("not tried: level {level}");
            continue;
        };
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(world.outcomes().len(), calls.len());
        let after = tree(&world.work());
        let changed: Vec<&String> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        assert!(changed.is_empty(), "level {level}: {changed:?}");
        tried += 1;
    }
    assert!(tried > 0, "no level holds here");
}

/// The folder of the programs of the Rust that builds this.
fn toolchain() -> Option<String> {
    let told = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let folder = format!("{}/bin", String::from_utf8(told.stdout).ok()?.trim());
    Path::new(&folder).join("cargo").is_file().then_some(folder)
}

#[test]
fn builds_and_tests_run() {
    let Some(rust) = toolchain() else {
        eprintln!("not tried: there is no cargo");
        return;
    };
    let mut tried = 0;
    for level in ["N", "L"] {
        let world = World::new();
        world.file(
            "Cargo.toml",
            "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        );
        world.file("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n");
        world.file("adds.py", "def add(a, b):\n    return a + b\n");
        let test = "import unittest\nfrom adds import add\n\nclass Adds(unittest.TestCase):\n    \
                    def test_adds(self):\n        self.assertEqual(add(1, 1), 2)\n";
        world.file("test_adds.py", test);
        let mut lock = world.program(format!("{rust}/cargo"));
        lock.args(["generate-lockfile", "--offline"]);
        assert_eq!(finish(lock, &Input::Nothing).code, Some(0));
        let cargo = format!("PATH={rust}:$PATH cargo test --offline");
        let python = "python3 -m unittest -q && python3 -c 'import adds; print(adds.__cached__)'";
        let calls = [cargo.as_str(), python].map(
            |command| json!({"name": "bash", "input": {"command": command, "timeout_ms": 110_000}}),
        );
        let model = world.script(&[json!({"calls": calls}), json!({"text": "End."})]);
        let before = tree(&world.work());
        let flags = ["-p", "go", "--mode", "plan", "--model", &model];
        let Some(ran) = at_level(&world, level, &flags) else {
            eprintln!("not tried: level {level}");
            continue;
        };
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let outcomes: Vec<String> = world.outcomes().iter().map(text).collect();
        assert!(outcomes[0].contains("1 passed"), "level {level}: {}", outcomes[0]);
        // In a copy, where the system makes one, it lies where it always does.
        let in_copy = level == "N" && outcomes[1].contains("/work/__pycache__/");
        assert!(in_copy || outcomes[1].contains("/pycache/"), "{level}: {}", outcomes[1]);
        assert!(before == tree(&world.work()), "level {level}");
        tried += 1;
    }
    assert!(tried > 0, "no level holds here");
}

#[test]
fn the_network_is_off_and_a_refusal_says_why() {
    let world = world();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let connect = format!(
        "python3 -c \"import urllib.request; print(urllib.request.urlopen('{url}', timeout=5).read())\""
    );
    let curl = format!("curl -s -X POST -m 5 {url}");
    let outcomes = world.tool_results(
        &[
            json!({"name": "bash", "input": {"command": connect}}),
            json!({"name": "bash", "input": {"command": curl}}),
            json!({"name": "bash", "input": {"command": "git push origin main"}}),
            json!({"name": "write", "input": {"path": "new.txt", "content": "x"}}),
            json!({"name": "bash", "input": {"command": "cat a.txt; git log --oneline"}}),
        ],
        &["--mode", "plan"],
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected: {outcomes:?}");
    let told: Vec<String> = outcomes.iter().map(text).collect();
    for refused in &told[..2] {
        let is_told = refused.contains("mode plan is on") || refused.contains("plan mode only");
        assert!(is_told, "{refused}");
    }
    assert!(told[3].contains("plan mode only reads"), "{}", told[3]);
    assert!(told[4].contains("old"), "{}", told[4]);
    assert_ne!(outcomes[2]["status"], "done", "{}", told[2]);
}

#[test]
fn keys_of_the_workspace_stay_hidden_at_any_depth() {
    let mut tried = 0;
    for level in ["N", "L"] {
        let world = world();
        for name in [".netrc", "sub/.netrc", "sub/deep/id_rsa"] {
            world.file(name, "a-key-that-nobody-reads\n");
        }
        let reader = "import os\nfor folder, _, names in os.walk('.'):\n    for name in names:\n        \
                      try:\n            print(open(os.path.join(folder, name)).read())\n        except \
                      OSError as error:\n            print(error)\n";
        world.file("reader.py", reader);
        let calls = [json!({"name": "bash", "input": {"command": "python3 reader.py"}})];
        let model = world.script(&[json!({"calls": calls}), json!({"text": "End."})]);
        let flags = ["-p", "go", "--mode", "plan", "--model", &model];
        if at_level(&world, level, &flags).is_none() {
            eprintln!("not tried: level {level}");
            continue;
        }
        let told = text(&world.outcomes()[0]);
        assert!(told.contains("Permission denied") && told.contains("old"), "{level}: {told}");
        assert!(!told.contains("a-key-that"), "{level}: {told}");
        tried += 1;
    }
    assert!(tried > 0, "no level holds here");
}

#[test]
fn what_a_command_makes_in_the_workspace_is_there_for_it_and_gone_behind_it() {
    let world = world();
    world.file("sub/.netrc", "a-key-that-nobody-reads\n");
    let maker = "set -e\necho x > a.txt; echo x > new.txt; mkdir made; mv made moved; rm -r empty\n\
                 echo y > moved/c; ln -s moved link; chmod 700 moved; cat new.txt moved/c\n\
                 cat sub/.netrc || echo hidden\nmv sub/.netrc n || echo kept\n\
                 echo room $(( $(stat -f -c %b .) * $(stat -f -c %S .) >> 20 ))\nls -a / /dev | grep changes || :\n";
    world.file("maker.sh", maker);
    let run = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let calls = [run("sh maker.sh"), run("python3 -c \"print(open('a.txt').read())\"")];
    let model = world.script(&[
        json!({"calls": calls}),
        json!({"calls": [run("ls")]}),
        json!({"text": "End."}),
    ]);
    let before = tree(&world.work());
    let flags = ["-p", "go", "--mode", "plan", "--model", &model];
    if at_level(&world, "N", &flags).is_none() {
        eprintln!("not tried: level N");
        return;
    }
    let told: Vec<String> = world.outcomes().iter().map(text).collect();
    if told[0].contains("Read-only file system") {
        eprintln!("not tried: this system makes no overlays");
        return;
    }
    for said in ["x\ny\n", "hidden", "kept", "on a copy"] {
        assert!(told[0].contains(said), "{said}: {}", told[0]);
    }
    assert!(!told[0].contains("a-key-that") && !told[0].contains(".changes"), "{}", told[0]);
    let room = told[0].lines().find_map(|line| line.strip_prefix("room ")?.parse::<u64>().ok());
    assert!(room.is_some_and(|room| (1..=2_048).contains(&room)), "{}", told[0]);
    assert!(told[1].starts_with("old"), "each has its own: {}", told[1]);
    assert!(!told[2].contains("a copy"), "what only looks sees the files: {}", told[2]);
    assert!(before == tree(&world.work()));
}
