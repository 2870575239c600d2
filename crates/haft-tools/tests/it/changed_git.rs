//! Files that stand as git has them are not read before a command, and undo brings them back all the
//! same.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use haft_host::{Copies, Source};
use haft_testkit::{machine, world::World};
use haft_tool::{MemoryPreImages, PendingPreImage, PinGuard, PreImages};
use haft_types::{Blob, Hash, Outcome, Status};

use crate::changed::{Tree, aged, bash, changes_line, receipts, take_back, tree};

/// Counts what is copied before commands.
#[derive(Default)]
pub struct Counted {
    images: MemoryPreImages,
    pub copies: Arc<AtomicUsize>,
}

struct CountedCopies(Arc<dyn Copies>, Arc<AtomicUsize>);

impl Copies for CountedCopies {
    fn add(&self, content: &[u8]) -> Option<u64> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.add(content)
    }

    fn get(&self, at: u64, len: u64) -> io::Result<Bytes> {
        self.0.get(at, len)
    }

    fn used(&self) -> u64 {
        self.0.used()
    }
}

impl PreImages for Counted {
    fn begin(&self, expected: u64) -> io::Result<Box<dyn PendingPreImage>> {
        self.images.begin(expected)
    }

    fn put(&self, whole: &Bytes, hash: Hash) -> io::Result<Blob> {
        self.images.put(whole, hash)
    }

    fn open(&self, blob: &Blob) -> io::Result<Source> {
        self.images.open(blob)
    }

    fn hold(&self, hash: Hash) -> PinGuard {
        self.images.hold(hash)
    }

    fn find(&self, hash: &Hash) -> Option<Blob> {
        self.images.find(hash)
    }

    fn copies(&self) -> io::Result<Arc<dyn Copies>> {
        Ok(Arc::new(CountedCopies(self.images.copies()?, self.copies.clone())))
    }

    fn sync(&self) -> io::Result<()> {
        self.images.sync()
    }
}

/// What git is told in front of everything.
pub const GIT: &str = "git -c user.name=a -c user.email=a@b -c maintenance.auto=false -c gc.auto=0";

/// Runs a script of the test's own, in the world's folder.
fn sh(folder: &Path, script: &str) {
    let script = format!("set -e; git() {{ command {GIT} \"$@\"; }}; {script}");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder).env("PYTHON", machine::python());
    let done = bash.output().unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
}

/// Files of which git has all but two, in two commits that are packed.
pub async fn committed(first: &str) -> (World, Arc<AtomicUsize>) {
    let lines =
        |from: u32| (from..from + 300).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    let world = World::local(
        haft_tools::builtin(),
        [
            (".gitignore", "*.log\n".to_owned()),
            ("a.txt", lines(0)),
            ("b.txt", lines(1)),
            ("d/c.txt", lines(2)),
            ("d/e/run", "#!/bin/sh\n".to_owned()),
            ("d/old.log", "ignored\n".to_owned()),
            ("nothing", String::new()),
        ],
    )
    .unwrap();
    let folder = world.folder().unwrap();
    fs::set_permissions(folder.join("d/e/run"), fs::Permissions::from_mode(0o755)).unwrap();
    sh(&folder, first);
    sh(&folder, "git init -q -b main; git add .; git commit -qm one; seq 400 > b.txt");
    aged(&folder.join("b.txt")).await;
    sh(&folder, "git commit -qam two; git repack -adq; git prune-packed");
    let counted = Counted::default();
    let copies = counted.copies.clone();
    world.session.services.insert::<dyn PreImages>(Arc::new(counted));
    (world, copies)
}

/// Runs a command whose text is not seen before: nobody can be asked about what it does to `.git`.
async fn unseen(world: &World, command: &str) -> Outcome {
    let script = world.folder().unwrap().parent().unwrap().join("unseen.sh");
    fs::write(&script, command).unwrap();
    bash(world, &format!("bash {}", script.display())).await
}

/// Everything but what git has.
pub fn files(folder: &Path) -> Tree {
    let mut tree = tree(folder);
    tree.retain(|name, _| name != ".git" && !name.starts_with(".git/"));
    tree
}

#[tokio::test]
async fn what_git_has_is_neither_copied_nor_lost() {
    let (world, copies) = committed("").await;
    let folder = world.folder().unwrap();
    fs::write(folder.join("dirty"), "mine\n").unwrap();
    assert_eq!(changes_line(&bash(&world, "touch -c nothing").await), "");
    // What holds nothing costs nothing.
    assert_eq!(
        copies.load(Ordering::Relaxed),
        3,
        "the one file that git does not have, `nothing`, and what it ignores"
    );
    let before = files(&folder);
    let command = "seq 3 >> a.txt; mv b.txt d/b.txt; rm -r d/e; chmod 600 d/c.txt; echo x > nothing; \
                   echo y >> dirty";
    let text = changes_line(&bash(&world, command).await);
    let wanted = "[changed: a.txt, d/c.txt, dirty, nothing; deleted: d/e/; renamed: b.txt to d/b.txt; \
                  1 inside of these folders]";
    assert_eq!(text, wanted);
    let after = files(&folder);
    fs::remove_dir_all(folder.join(".git")).unwrap();
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(files(&folder), before);
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(files(&folder), after);
}

#[tokio::test]
async fn whatever_becomes_of_the_repository_files_come_back() {
    for command in [
        "rm -rf .git * .gitignore",
        "rm -rf .git; git init -q; echo x > a.txt; git add .; git commit -qm x",
        "git checkout -q HEAD~1; echo x >> a.txt",
        "git rm -q a.txt d/c.txt; git commit -qm x; git reflog expire --expire=now --all; \
         git update-ref -d refs/heads/main; git gc -q --prune=now; rm -r .git/objects/pack",
        "echo x >> a.txt; git stash -q; git stash drop -q; rm d/c.txt",
        "git reset -q --hard HEAD~1; git commit -q --amend -m other; git mv d/c.txt m; git status",
        "git mv a.txt m; chmod 700 m; git add m; git commit -qm x; git repack -adq; sed -i s/1/2/ b.txt",
        "for f in a.txt b.txt d/c.txt; do tr 0-9 a-j < $f > n; cat n > $f; done; git commit -qam x; \
         git repack -adq",
    ] {
        // In one command, and in the second one of two.
        for first in [false, true] {
            let (world, copies) = committed("").await;
            let folder = world.folder().unwrap();
            let before = files(&folder);
            if first {
                bash(&world, "touch -c nothing").await;
            }
            let command = format!("git() {{ command {GIT} \"$@\"; }}; {command}");
            let outcome = unseen(&world, &command).await;
            assert_eq!(outcome.status, Status::Done, "{outcome:?}");
            assert_ne!(files(&folder), before, "{command}");
            let text = changes_line(&outcome);
            assert!(!text.contains("cannot be undone"), "{text}");
            take_back(&world, &receipts(&world), false).await.unwrap();
            let mut now = files(&folder);
            if let Some(ignored) = before.get("d/old.log") {
                now.entry("d/old.log".to_owned()).or_insert_with(|| ignored.clone());
            }
            assert_eq!(now, before, "{command}");
            // The looks after it copied what changed, not all.
            assert!(copies.load(Ordering::Relaxed) > 0);
        }
    }
}

#[tokio::test]
async fn what_may_differ_from_what_git_has_is_copied() {
    // How many files are copied: one that is empty always is, five git has.
    for (first, then, count) in [
        ("", "", 1),
        ("", "git update-index --index-version 4", 1),
        ("", "seq 300 > a.txt", 2),
        ("", "touch -r b.txt a.txt", 2),
        ("$PYTHON -c 'import os; os.setxattr(\"a.txt\", \"user.x\", b\"y\")'", "", 2),
        ("", "git update-index --assume-unchanged a.txt", 2),
        ("", "git update-index --skip-worktree a.txt", 2),
        ("", "git rm -q --cached a.txt; git add -N a.txt", 2),
        ("", "rm -r .git/objects/pack", 6),
        (
            "",
            "mv .git/objects/pack/*.pack x; git unpack-objects -q < x; rm -f x .git/objects/pack/*",
            6,
        ),
        ("", "git config extensions.objectFormat sha256", 6),
        ("", "git worktree add -q ../other; rm -rf .git; cp ../other/.git .git", 6),
        ("", "echo '*.txt filter=x' > .git/info/attributes", 6),
        ("echo '*.txt filter=x' > d/.gitattributes", "", 7),
        ("echo '*.txt filter=x' > .gitattributes", "rm .gitattributes", 6),
        // Two and what is ignored, and once more all.
        ("", "echo '*.txt working-tree-encoding=latin1' > d/.gitattributes", 11),
        ("echo 'a.txt text eol=crlf' > .gitattributes", "rm a.txt; git checkout a.txt", 2),
        (
            "echo 'a.txt ident' > .gitattributes; echo '$Id$' > a.txt",
            "rm a.txt; git checkout a.txt",
            2,
        ),
        ("git init -q; git config core.autocrlf input; sed -i 's/$/\r/' a.txt", "", 2),
        ("git init -q; git config core.autocrlf true; sed -i 's/$/\r/' a.txt", "", 2),
    ] {
        let (world, copies) = committed(first).await;
        let folder = world.folder().unwrap();
        sh(&folder, then);
        // What git has found is older than its list.
        let newest = folder.join("newest.log");
        fs::write(&newest, "").unwrap();
        aged(&newest).await;
        sh(&folder, "[ ! -d .git ] || touch .git/index");
        let before = files(&folder);
        bash(&world, "touch -c nothing").await;
        // With the two that git ignores.
        assert_eq!(copies.load(Ordering::Relaxed), count + 2, "{first} {then}");
        unseen(&world, "for f in a.txt b.txt d/c.txt d/e/run; do echo x > $f; done; rm -rf .git")
            .await;
        take_back(&world, &receipts(&world), false).await.unwrap();
        assert_eq!(files(&folder), before, "{first} {then}");
    }
}
