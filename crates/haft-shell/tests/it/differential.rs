//! What is taken for read-only is run, in a folder made to deceive, and must change nothing.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, OnceLock},
};

use haft_shell::{GitFacts, Setting, known, read};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::effects::{BITS, EVERYDAY, commands};

/// Programs that are not run here: they never end, look at the clock alone, or belong to a
/// toolchain whose home is not the one of this test.
const LEFT: &[&str] = &[
    "yes", "sleep", "cargo", "rustc", "rustup", "rustfmt", "gofmt", "go", "npm", "docker",
    "podman", "vmstat", "pip", "pip3", "free", "ss",
];

/// Programs whose words have a reader of their own, and scripts.
const SEEDS: &[&str] = &[
    "sed -n 1p",
    "sed -e s/a/b/",
    "sed '$!d'",
    "sed -n '/a/,$p'",
    "sed 'r f.txt'",
    "awk '{print $1}'",
    "awk '/a/'",
    "awk '{s+=$1} END {print s/2}'",
    "awk -F: -v x=1 '$1 > x'",
    "find .",
    "find . -name",
    "find sub -type f -newer",
    "find -H . -exec cat {} +",
    "find . -printf %p",
    "jq .",
    "jq -r .a",
    "[ -f",
    "test -n",
    "printf %s",
    "echo",
    "date",
    "date +%s",
    "tar tf",
    "ls | xargs cat",
    "ls | xargs -0 grep a",
    "xargs -a f.txt echo",
    "[[ -f",
    "cd",
    "type",
    "command -v",
    "env",
    "printenv",
    "read -r x <",
    "local x=",
    "declare -p",
    "set -e;",
    "test 1 -eq",
    "git diff --stat",
    "git -C sub log",
    "git --no-pager show",
    "git config --get",
    "git branch --list",
    "git tag -l",
    "git stash list",
    "git log --format=%h",
    "git -c color.ui=never status",
    "(cd sub && ls",
    "cat <(ls)",
    "gzip -l",
    "unzip -l",
    "ps",
    "ip a",
    "lsof -nP",
    "python3 --version",
    "make --version",
    "bash -c 'ls'",
    "sh -c 'cat f.txt'",
];

/// Words that stand for files, and some that only look so.
const OPERANDS: &[&str] = &[
    "*",
    "./*",
    "-- *",
    "f.txt",
    "sub",
    "sub/*",
    "X",
    "-oX",
    "'-oX'",
    "--pre=./evil",
    "-i",
    "\"$x\"",
    "$x",
    "$(ls)",
    "\"$(cat f.txt)\"",
    "@args",
    "-",
    "a=b",
    "+x",
    "'s/a/b/w X'",
    "e",
    "HEAD",
    "HEAD:f.txt",
    "*.txt",
    "--",
    "-",
    "{a,-oX}",
    "~",
    "/dev/null",
    "b.tar",
    "[-a]*",
    "?*",
    "-exec",
    "';'",
    "'*'",
    "1",
    "'[' a",
    ".git",
    "*/*",
    "-o X",
    "--output=X",
    "--out=X",
    "-exec ./evil ';'",
    "-delete",
    "-c 'alias.x=!./evil'",
    "--textconv",
    "--ext-diff",
    "f.txt X",
];

/// What a command may stand in; `@` stands for it.
const FORMS: &[&str] = &[
    "@",
    "@",
    "@",
    "@ < f.txt",
    "@ 2>/dev/null",
    "@ | cat",
    "ls | @",
    "cd sub && @",
    "for x in *; do @; done",
    "for x in ./*; do @; done",
    "x=-oX; @",
    "x=$(ls); @",
    "timeout 2 @",
    "env @",
    "ls | xargs @",
    "find . -exec @ {} ';'",
    "(@)",
    "{ @; }",
    "@ && @",
    "if @; then @; fi",
    "f() { @; }; f *",
    "echo \"$(@)\"",
    "cat <(@)",
    "command @",
    "nice @",
    "ls * | while read -r x; do @; done",
    "case a in *) @;; esac",
    "LC_ALL=C @",
    "@ <<< a",
    "@ > /dev/null",
];

/// A workspace of an attacker, and what is in it.
struct World {
    place: TempDir,
    was: Tree,
}

/// Each file: its rights, and what it holds or leads to.
type Tree = BTreeMap<PathBuf, (u32, u64)>;

/// Names of files: most are options, or words that mean something where they are not quoted.
const NAMES: &[&str] = &[
    "f.txt",
    "sub/f.txt",
    "a",
    "-oX",
    "--pre=.",
    "--output=X",
    "-i",
    "-exec",
    "-delete",
    ";",
    "@args",
    "a=b",
    "-rf",
    "--",
    "--in-place",
    "-fprint",
    "-w",
    "sub/-oX",
    "sub/-i",
    "X.txt",
    "-T.",
    "--compress-program=sh",
    "-f",
    "-e",
    "+x",
    "x y",
    "--files0-from=f.txt",
    "--help",
    "--to-command=sh",
    "-c",
    "-S.",
    "data.json",
];

/// Files that programs read by themselves.
const READ: &[(&str, &str)] = &[
    ("@args", "--output=X --plugin=./evil"),
    (".ripgreprc", "--pre=./evil\n"),
    (".cargo/config.toml", "[build]\nrustc = \"./evil\"\n[alias]\nx = \"run\"\n"),
    (".npmrc", "script-shell=./evil\n"),
    (".envrc", "touch X\n"),
    ("Makefile", "$(shell ./evil)\nall:\n\t./evil\n"),
    (".inputrc", "$include evil\n"),
    (".gitattributes", "* diff=x\n"),
];

/// Settings of the repository that would start something.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "./evil"),
    ("core.hooksPath", "."),
    ("core.pager", "./evil"),
    ("core.editor", "./evil"),
    ("pager.log", "./evil"),
    ("alias.st", "!./evil"),
    ("core.sshCommand", "./evil"),
    ("sequence.editor", "./evil"),
];

/// Programs of the workspace, some with the names of hooks.
const EVIL: &[&str] = &[
    "evil",
    "sh",
    "post-index-change",
    "pre-commit",
    "fsmonitor-watchman",
    "reference-transaction",
];

impl World {
    fn new() -> Self {
        let place = TempDir::new().unwrap();
        let root = place.path().join("w");
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(place.path().join("home")).unwrap();
        for name in NAMES {
            put(name, "a -oX\nb ./evil\n{\"a\": 1}\n");
        }
        for (name, text) in READ {
            put(name, text);
        }
        for name in EVIL {
            put(name, "#!/bin/sh\ntouch \"$EVIL\"\n");
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command
                .args(["-c", "user.name=a", "-c", "user.email=a@b"])
                .args(args)
                .current_dir(&root);
            command.env("HOME", place.path().join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
            let done =
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(done.unwrap().success(), "{args:?}");
        };
        git(&["init", "-b", "main"]);
        git(&["add", "-A"]);
        git(&["commit", "-m", "a"]);
        git(&["tag", "-a", "-m", "t", "v1"]);
        put("f.txt", "changed\n");
        git(&["stash"]);
        put("sub/f.txt", "changed\n");
        for (name, value) in SETTINGS {
            git(&["-c", "core.fsmonitor=false", "config", name, value]);
        }
        let was = tree(place.path());
        Self { place, was }
    }

    /// What is known of it: the settings of its repository run nothing that is not switched off.
    fn setting(&self) -> Setting {
        let plain =
            GitFacts { no_fetches: true, no_filters: true, no_drivers: true, no_signatures: true };
        let text = |name: &str| self.place.path().join(name).to_str().unwrap().to_owned();
        let git = ["w", "w/sub"].map(|name| (text(name), plain)).into();
        Setting { cwd: text("w"), home: text("home"), git, git_is_held: true, ..Setting::default() }
    }

    /// Runs a script in the environment that the contract names.
    fn run(&self, script: &str) {
        let settings = [
            ("core.fsmonitor", "false"),
            ("safe.bareRepository", "explicit"),
            ("diff.autoRefreshIndex", "false"),
            ("core.hooksPath", "/dev/null"),
            ("protocol.ext.allow", "never"),
        ];
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "3", "bash", "--norc", "--noprofile", "-c", script]);
        command.env_clear().current_dir(self.place.path().join("w"));
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.place.path().join("home"));
        command
            .env("EVIL", self.place.path().join("RAN"))
            .env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (at, (name, value)) in settings.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{at}"), name)
                .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        for (name, value) in [
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status().unwrap();
    }
}

/// All files below a folder.
fn tree(root: &Path) -> Tree {
    let (mut all, mut open) = (Tree::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let mut hash = DefaultHasher::new();
            if about.is_dir() {
                open.push(path.clone());
            } else {
                fs::read(&path).unwrap_or_default().hash(&mut hash);
            }
            all.insert(path, (about.permissions().mode(), hash.finish()));
        }
    }
    all
}

/// A word with an option of a program.
fn option(mark: &str, value: &str) -> String {
    if let Some(name) = mark.strip_suffix("=?") {
        let sign = if name.starts_with("--") { "=" } else { "" };
        return format!("{name}{sign}{value}");
    }
    match mark.strip_suffix('=') {
        Some(name) if value.len().is_multiple_of(2) && name.starts_with("--") => {
            format!("{name}={value}")
        }
        Some(name) => format!("{name} {value}"),
        None => mark.to_owned(),
    }
}

/// A command: a program of the table with its own options, or a seed, and operands.
fn command() -> impl Strategy<Value = String> {
    let programs: Vec<_> = known()
        .into_iter()
        .filter(|known| !LEFT.contains(&known.name.split(' ').next().unwrap_or_default()))
        .collect();
    let values = prop::sample::select(
        &["1", "a", "X", "./evil", "f.txt", "%h", "*", "\"$x\"", "sub", "-oX"][..],
    );
    let options = prop::collection::vec((any::<prop::sample::Index>(), values), 0..4);
    let operands = prop::collection::vec(prop::sample::select(OPERANDS), 0..3);
    let program = prop::sample::select(programs);
    let table = (program, options, operands.clone()).prop_map(|(program, options, operands)| {
        let mut words = vec![program.name.to_owned()];
        for (at, value) in options.iter().filter(|_| !program.options.is_empty()) {
            words.push(option(at.get::<String>(&program.options), value));
        }
        words.extend(operands.into_iter().map(str::to_owned));
        words.join(" ")
    });
    let seed = (prop::sample::select(SEEDS), operands).prop_map(|(seed, operands)| {
        let words: Vec<_> = std::iter::once(seed).chain(operands).collect();
        words.join(" ")
    });
    prop_oneof![3 => table, 1 => seed]
}

fn script() -> impl Strategy<Value = String> {
    (prop::sample::select(FORMS), command(), command()).prop_map(|(form, first, second)| match form
        .split_once('@')
    {
        Some((before, rest)) => format!("{before}{first}{}", rest.replace('@', &second)),
        None => form.to_owned(),
    })
}

/// An everyday command in which something was put.
fn changed() -> impl Strategy<Value = String> {
    let all: Vec<String> =
        commands(EVERYDAY).into_iter().filter(|text| !text.contains("sleep")).collect();
    let bits =
        prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(BITS)), 0..3);
    (prop::sample::select(all), bits).prop_map(|(mut text, bits)| {
        for (at, bit) in bits {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            text.insert_str(at, bit);
        }
        text
    })
}

static WORLD: OnceLock<Mutex<World>> = OnceLock::new();

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn what_is_read_only_changes_nothing(text in prop_oneof![2 => script(), 1 => changed()]) {
        let mut world = WORLD.get_or_init(|| Mutex::new(World::new())).lock().unwrap();
        let reading = read(&text, &world.setting(), &mut || true);
        if !reading.is_ok_and(|reading| reading.read_only) {
            return Ok(());
        }
        world.run(&text);
        let is = tree(world.place.path());
        if is != world.was {
            let changed: Vec<_> = is.iter().filter(|(path, about)| world.was.get(*path) != Some(about)).collect();
            let changed = format!("{changed:?}");
            *world = World::new();
            prop_assert!(false, "{} changed {}", text, changed);
        }
    }
}
