//! A git repository survives what a command does to it: it is put back, or asked about before, or told
//! as lost and brought back by undo. What git does every day is none of that.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use haft_testkit::machine;
use serde_json::{Value, json};

use crate::world::{
    Input, PATIENCE, Ran, World, finish, runs, signal, text, unique_seconds, until,
};

/// Ways to destroy a repository, by programs of all kinds and by git itself.
const WAYS: [&str; 25] = [
    "rm -rf .git",
    "rm -rf $(ls -A)",
    "d=$(git rev-parse --git-common-dir); rm -rf $d/objects/* $d/packed-refs",
    "find . -type f -delete",
    "find . -mindepth 1 -delete",
    "find . -name '*' | xargs rm -rf",
    "find . -name HEAD -exec rm {} +",
    "find $(git rev-parse --git-common-dir)/objects -type f -print0 | xargs -0 rm -f",
    "printf '%s\\0' \"$(git rev-parse --git-common-dir)\" | xargs -0 rm -rf",
    "python3 -c \"import shutil; shutil.rmtree('.git', ignore_errors=True)\"",
    "python3 -c \"import os, glob; [os.remove(f) for f in glob.glob('.git/objects/**/*', recursive=True) if os.path.isfile(f)]\"",
    "python3 -c \"import os, subprocess as s; os.remove(s.check_output(['git', 'rev-parse', '--git-path', 'HEAD'], text=True).strip())\"",
    "python3 -c \"import os; os.rename('.git', 'gone')\"",
    "python3 -c \"import subprocess as s; s.run(['git', 'update-ref', '-d', 'HEAD'])\"",
    "perl -e 'use File::Path; chomp(my $d = `git rev-parse --git-common-dir`); File::Path::rmtree($d)'",
    "perl -e 'chomp(my $d = `git rev-parse --git-common-dir`); unlink(glob(\"$d/refs/heads/*\"), \"$d/packed-refs\")'",
    "perl -e 'chomp(my $d = `git rev-parse --git-common-dir`); File::Path::rmtree(\"$d/refs\") if eval { require File::Path }'",
    "sh -c 'cd \"$(git rev-parse --git-common-dir)\" && rm -rf ./*'",
    "mv .git ..",
    "mkdir e && if command -v rsync; then rsync -a --delete e/ ./; else rm -rf ./.[!.]* ./*; fi",
    "git update-ref -d HEAD",
    "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
    "git reflog expire --expire=now --all && git gc -q --prune=now && rm -f $(git rev-parse --git-common-dir)/objects/pack/*",
    "git update-ref -d refs/heads/side && git update-ref -d refs/heads/main; git prune --expire=now",
    "git rm -rqf . ; rm -rf \"$(git rev-parse --git-common-dir)\"/[Hor]*",
];

/// How strongly commands are confined.
#[derive(Clone, Copy, Debug)]
enum Level {
    Namespaces,
    Landlock,
    /// Not at all: in mode bypass.
    Free,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Worktree,
    Submodule,
    Nested,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Command,
    Job,
    Session,
}

/// A workspace that is a repository, or has one in it.
struct Field {
    world: World,
    /// The repositories that shall survive.
    gits: Vec<PathBuf>,
}

fn git(world: &World, folder: &Path, words: &[&str]) -> String {
    let mut command = world.program("git");
    let done = command.current_dir(folder).args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Some commits, some of them packed, with branches and a tag.
fn fill(world: &World, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(world, folder, &["init", "-q", "-b", "main"]);
    for number in 0..4 {
        fs::write(folder.join(format!("f{number}")), format!("{number}\n").repeat(9)).unwrap();
        git(world, folder, &["add", "-A"]);
        git(world, folder, &["commit", "-qm", "one"]);
        if number == 1 {
            git(world, folder, &["tag", "v1"]);
            git(world, folder, &["branch", "side"]);
            git(world, folder, &["gc", "-q"]);
        }
    }
}

impl Field {
    fn new(kind: Kind) -> Self {
        let world = World::new();
        let settings = "[user]\nname = A\nemail = a@b.c\n[protocol \"file\"]\nallow = always\n";
        fs::write(world.root().join("home/.gitconfig"), settings).unwrap();
        let (work, other) = (world.work(), world.root().join("other"));
        let text = other.to_str().unwrap();
        let gits = match kind {
            Kind::Plain => {
                fill(&world, &work);
                vec![work]
            }
            Kind::Worktree => {
                fill(&world, &other);
                fs::remove_dir(&work).unwrap();
                git(&world, &other, &["worktree", "add", "-q", "../work", "side"]);
                vec![other, work]
            }
            Kind::Submodule => {
                fill(&world, &other);
                fill(&world, &work);
                git(&world, &work, &["submodule", "-q", "add", text, "sub"]);
                git(&world, &work, &["commit", "-qm", "sub"]);
                vec![work.clone(), work.join("sub")]
            }
            Kind::Nested => {
                fill(&world, &work);
                fill(&world, &work.join("clone"));
                vec![work.clone(), work.join("clone")]
            }
        };
        Self { world, gits }
    }

    /// The logs of all of them; none where one is not whole.
    fn state(&self) -> Result<Vec<String>, String> {
        self.gits.iter().map(|folder| self.state_of(folder)).collect()
    }

    fn state_of(&self, folder: &Path) -> Result<String, String> {
        let run = |words: &[&str]| {
            if !folder.is_dir() {
                return Err("it is gone".to_owned());
            }
            let mut command = self.world.program("git");
            let done = command.current_dir(folder).args(words).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            done.status.success().then_some(done.stdout).ok_or(said)
        };
        run(&["fsck", "--no-dangling"])?;
        let log = run(&["log", "--all", "--format=%H %D"])?;
        Ok(String::from_utf8(log).unwrap())
    }

    /// Runs a command in it; gives all that was said.
    fn run(&self, command: &str, level: Level, way: Way) -> String {
        let bash = |more: Value| {
            let mut input = json!({"command": command});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"name": "bash", "input": input})
        };
        let calls = match way {
            Way::Command => vec![bash(json!({}))],
            Way::Session => vec![bash(json!({"session": "s"}))],
            Way::Job => vec![
                bash(json!({"run_in_background": true})),
                json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}}),
            ],
        };
        let model = self.world.script(&[json!({ "calls": calls }), json!({"text": "End."})]);
        let mode = if matches!(level, Level::Free) { "bypass" } else { "auto" };
        let arguments = ["-p", "go", "--model", &model, "--mode", mode];
        let ran = match level {
            Level::Landlock => finish(self.without_namespaces(&arguments), &Input::Nothing),
            _ => self.world.run(&arguments),
        };
        let told: String = self.world.outcomes().iter().map(text).collect();
        format!("{told}\n{}", ran.err)
    }

    /// haft where nobody can make a namespace.
    fn without_namespaces(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.program("unshare");
        let script = "for n in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${n}_namespaces; \
                      done; exec \"$@\"";
        command.args(["-Ur", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_haft")]).args(arguments);
        command
    }

    /// Destroys it in a way; it has to survive.
    fn survives(&self, command: &str, level: Level, way: Way) {
        let before = self.state().unwrap();
        let said = self.run(command, level, way);
        let after = self.state();
        if after.as_ref() == Ok(&before) {
            return;
        }
        // In mode auto only a folder that went with all that was in it does not stand again.
        let is_back = |at: usize| self.state_of(&self.gits[at]).as_ref() == Ok(&before[at]);
        let all = self.gits.iter().enumerate();
        let stands = { all }.all(|(at, folder)| is_back(at) || !folder.exists());
        let is_free = matches!(level, Level::Free);
        assert!(is_free || stands, "{command}: {level:?} {way:?}\n{after:?}\n{said}");
        let is_told = said.contains("haft undo brings it back") || said.contains("deleted: ");
        assert!(is_told, "{command}: {way:?}\n{said}");
        // What changed while a job ran is taken back by its name alone.
        let job = matches!(way, Way::Job).then(|| self.world.run(&["undo", "j1"]));
        let undone = (job, self.world.run(&["undo", "9"]));
        assert_eq!(self.state(), Ok(before), "{command}: {way:?}\n{said}\n{undone:?}");
    }
}

#[test]
fn a_repository_survives_every_way_to_destroy_it() {
    let levels = [Level::Namespaces, Level::Landlock, Level::Free];
    let kinds = [Kind::Plain, Kind::Worktree, Kind::Submodule, Kind::Nested];
    let ways = [Way::Command, Way::Job, Way::Session];
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = std::env::var("HAFT_TEST_SEED").map_or(seed, |text| text.parse().unwrap());
    let seed = usize::try_from(seed % 36).unwrap();
    eprintln!("HAFT_TEST_SEED={seed}");
    for round in 0..usize::try_from(machine::times(1)).unwrap() {
        for (number, command) in WAYS.iter().enumerate() {
            // Each of the 36 comes once to each way in 36 rounds.
            let at = (seed + round + number * 7) % 36;
            let (level, kind, way) = (levels[at % 3], kinds[at / 3 % 4], ways[at / 12]);
            eprintln!("{kind:?} {level:?} {way:?}: {command}");
            Field::new(kind).survives(command, level, way);
        }
    }
}

/// A command of everyday's work, each in the state that the one before it left.
const EVERYDAY: [&str; 25] = [
    "git checkout -qb topic && echo t > t && git add t && git commit -qm topic",
    "git commit -q --amend -m better",
    "git branch -m topic renamed",
    "git checkout -q main && git merge -q --no-edit renamed",
    "git branch -d renamed",
    "git checkout -q --orphan fresh && git commit -qm fresh && git checkout -q main",
    "git branch -D fresh",
    "echo s >> f0 && git stash -q && git stash pop -q",
    "git stash -q && git stash drop -q",
    "git tag v2 && git tag -d v2",
    "git reset -q --hard HEAD~1",
    "git checkout -qb re side && echo r > r && git add r && git commit -qm r && git rebase -q main",
    "git checkout -q main && git cherry-pick re > out.txt && rm out.txt",
    "git bisect start HEAD side && git bisect run true && git bisect reset",
    "git revert --no-edit HEAD",
    "git prune-packed",
    "git gc -q --auto",
    "git gc -q",
    "git pack-refs --all",
    "git repack -qad",
    "git worktree add -q wt re && git worktree remove wt",
    "printf '*.txt text\\n' > .gitattributes && git add -A && git commit -qm attributes",
    "git mv f0 f9 && git commit -qm moved && git switch -q side && git switch -q main",
    "git clone -q . copy && mv copy copy2",
    "git fetch -q ./copy2 main && git submodule status && git reset -q --hard side",
];

#[test]
fn everyday_commands_of_git_are_neither_asked_nor_put_back() {
    let field = Field::new(Kind::Plain);
    let calls = EVERYDAY.map(|command| json!({"name": "bash", "input": {"command": command}}));
    let told = field.world.tool_results(&calls, &["--mode", "auto"]);
    for (command, outcome) in EVERYDAY.iter().zip(&told) {
        let said = text(outcome);
        for word in ["lost", "put back", "needs a yes", "could not be put"] {
            assert!(!said.contains(word), "{command}: {said}");
        }
        // The settings of a branch are protected, and git changes them with its name.
        let held = command.starts_with("git branch") && said.contains("config");
        assert!(held || !said.contains("[exit code"), "{command}: {said}");
    }
    assert!(field.state().is_ok());
    assert!(!field.world.state().join("repositories").read_dir().unwrap().any(|_| true));
}

#[test]
fn what_a_person_let_go_is_not_put_back_and_comes_back_by_undo() {
    let field = Field::new(Kind::Plain);
    let before = field.state();
    let call = json!({"name": "bash", "input": {"command": "rm -rf .git && git init -q -b main"}});
    let model = field.world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
    let flags = ["--line", "--model", &model, "--mode", "auto"];
    let ran = field.world.run_with(&flags, &Input::Pipe("go\ny\n"));
    let empty = git(&field.world, &field.world.work(), &["log", "--all", "--oneline"]);
    assert_eq!(empty, "", "{ran:?}");
    assert!(ran.both_outputs().contains("haft undo brings it back"), "{ran:?}");
    let undone = field.world.run(&["undo"]);
    assert_eq!(field.state(), before, "{undone:?}");
}

#[test]
fn what_went_alone_is_told_with_its_commit() {
    let field = Field::new(Kind::Nested);
    let id = git(&field.world, &field.world.work(), &["rev-parse", "--short=12", "side"]);
    let said = field.run("git branch -qD side", Level::Namespaces, Way::Command);
    assert!(said.contains(&format!("side is gone from .git; it was at {}", id.trim())), "{said}");
    // A repository below that the words name goes.
    let field = Field::new(Kind::Nested);
    let before = field.state();
    let said = field.run("rm -rf clone", Level::Namespaces, Way::Command);
    assert!(!field.world.work().join("clone").exists(), "{said}");
    assert!(said.contains("clone/.git lost") && said.contains("haft undo brings"), "{said}");
    let undone = field.world.run(&["undo"]);
    assert_eq!(field.state(), before, "{undone:?}");
}

#[test]
fn nobody_is_offered_the_hooks_of_what_was_removed() {
    let field = Field::new(Kind::Plain);
    fs::create_dir_all(field.world.work().join(".git/hooks")).unwrap();
    fs::write(field.world.work().join(".git/hooks/pre-commit"), "").unwrap();
    for level in [Level::Namespaces, Level::Landlock] {
        let said = field.run("rm -rf $(ls -A)", level, Way::Command);
        assert!(said.contains("haft put back what was missing"), "{said}");
        assert!(!said.contains("needs {"), "{level:?}: {said}");
        fs::remove_dir_all(field.world.state().join("sessions")).unwrap();
    }
}

/// haft that is killed after its command destroyed the repository.
fn killed(field: &Field, mode: &str, command: &str) {
    let seconds = unique_seconds();
    let command = format!("{command}; sleep {seconds}");
    let input = json!({"command": command}).to_string();
    let mut haft =
        field.world.haft(&["tool", "bash", "--mode", mode, "--input", &input]).spawn().unwrap();
    assert!(until(PATIENCE, || !field.world.work().join(".git/objects").exists()));
    signal("KILL", haft.id());
    haft.wait().unwrap();
    assert!(until(PATIENCE, || !runs(&seconds)));
}

#[test]
fn the_start_after_a_kill_looks_after_it() {
    let field = Field::new(Kind::Plain);
    let before = field.state();
    let objects = "find . -name objects -exec rm -rf {} +";
    killed(&field, "auto", objects);
    assert!(field.state().is_err());
    let ran: Ran = field.world.tool("bash", &json!({"command": "echo hi"}), &["--mode", "auto"]);
    assert_eq!(field.state(), before, "{ran:?}");
    assert!(ran.err.contains("haft put back what was missing"), "{ran:?}");
    let field = Field::new(Kind::Plain);
    let before = field.state();
    killed(&field, "bypass", objects);
    let ran = field.world.run(&["undo"]);
    assert_eq!(field.state(), before, "{ran:?}");
}

#[test]
fn files_come_back_after_a_kill_of_which_only_a_lost_pack_had_the_content() {
    for mode in ["auto", "bypass"] {
        let field = Field::new(Kind::Plain);
        let before = field.state();
        git(&field.world, &field.world.work(), &["gc", "-q"]);
        killed(&field, mode, "rm -rf $(ls -A)");
        let ran = field.world.run(&["undo"]);
        assert_eq!(field.state(), before, "{mode}: {ran:?}");
        for number in 0..4 {
            let name = format!("f{number}");
            assert_eq!(field.world.read(&name), format!("{number}\n").repeat(9), "{ran:?}");
        }
    }
}

#[test]
fn what_a_job_destroys_beside_other_commands_is_put_back() {
    destroyed_by_a_job("");
    // Where files are not looked at, too.
    destroyed_by_a_job("[shell.changes]\nfiles = 1\n");
}

fn destroyed_by_a_job(settings: &str) {
    let field = Field::new(Kind::Plain);
    let before = field.state();
    field.world.settings(settings);
    // Commands begin and end while it goes on removing; what is packed of this branch is older.
    let removes = "until [ -e go ]; do rm -f .git/refs/heads/main; done; rm -rf .git";
    let bash = |input: Value| json!({"name": "bash", "input": input});
    let calls = [
        bash(json!({"command": removes, "run_in_background": true})),
        bash(json!({"command": "touch one"})),
        bash(json!({"command": "touch two"})),
        bash(json!({"command": "touch go"})),
        json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}}),
        bash(json!({"command": "git log --oneline"})),
    ];
    let told = field.world.tool_results(&calls, &["--mode", "auto"]);
    assert_eq!(field.state(), before, "{told:?}");
    // With a call, or with the job's end where nobody was at it.
    let said: String = told.iter().map(text).collect();
    let log = format!("{:?}", field.world.events());
    let back = "haft put back what was missing";
    assert!(said.contains(back) || log.contains(back), "{said}\n{log}");
}

#[test]
fn what_cannot_be_kept_is_named_and_not_lost() {
    let field = Field::new(Kind::Plain);
    field.world.settings("[undo]\nsession_bytes = 0\n");
    let said = field.run("rm -rf $(ls -A)", Level::Free, Way::Command);
    let (_, rest) = said.split_once("but a copy is in ").unwrap_or_else(|| panic!("{said}"));
    let copy = rest.split([']', '\n']).next().unwrap();
    let log = git(&field.world, &field.world.root(), &["--git-dir", copy, "log", "--oneline"]);
    assert_eq!(log.lines().count(), 4, "{log}");
    // It goes when somebody agrees, and is old enough.
    let prune = |flags: &[&str]| field.world.run(&[&["session", "prune"], flags].concat());
    assert!(prune(&["--yes"]).out.contains("no sessions are older"));
    assert!(Path::new(copy).exists());
    let ran = prune(&["--older-than", "0h", "--dry-run"]);
    assert!(ran.out.contains(copy) && ran.out.contains("1 copy of repositories"), "{ran:?}");
    let ran = prune(&["--older-than", "0h", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!Path::new(copy).exists(), "{ran:?}");
    // It is there, too, where the state folder takes nothing.
    let field = Field::new(Kind::Plain);
    fs::write(field.world.state().join("repositories"), "").unwrap();
    let said = field.run("touch x", Level::Namespaces, Way::Command);
    assert!(said.contains("could not be put back after a loss"), "{said}");
}

#[test]
fn a_small_disk_is_not_filled_with_copies() {
    let field = Field::new(Kind::Plain);
    // It packs no better.
    let made = field.world.shell("head -c 3000000 /dev/urandom > blob");
    assert_eq!(made.code, Some(0), "{made:?}");
    git(&field.world, &field.world.work(), &["add", "-A"]);
    git(&field.world, &field.world.work(), &["commit", "-qm", "blob"]);
    let mount = format!("mount -t tmpfs -o size=8m none '{}'", field.world.state().display());
    let input = json!({"command": "touch made"}).to_string();
    let haft = format!("tool bash --mode bypass --input '{input}'");
    let Some(ran) = field.world.mounted(&mount, &haft, &[]) else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("too large to be kept whole"), "{ran:?}");
    assert!(field.world.work().join("made").exists());
}

#[test]
fn what_was_broken_before_is_left_alone() {
    let field = Field::new(Kind::Plain);
    fs::remove_file(field.world.work().join(".git/HEAD")).unwrap();
    for command in ["touch x", "rm -rf $(ls -A)"] {
        let said = field.run(command, Level::Namespaces, Way::Command);
        assert!(!said.contains("put back") && !said.contains("lost"), "{said}");
        fs::remove_dir_all(field.world.state().join("sessions")).unwrap();
    }
}
