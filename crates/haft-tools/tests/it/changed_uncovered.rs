//! What undo does not cover is named; what it covers against the looks of it is brought back.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, sync::Arc};

use haft_testkit::world::World;
use haft_tool::{DiffLimits, MemoryPreImages, PreImages, UndoError};

use crate::changed::{bash, changes_line, receipts, take_back, tree, watched, world};

fn root(world: &World) -> std::path::PathBuf {
    world.folder().unwrap()
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let done = git.arg("-C").arg(folder).args(who).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn what_git_ignores_is_named_where_it_goes() {
    let world = world();
    let outcome = bash(&world, "rm -rf d target").await;
    let lines = "[deleted: d/; 4 inside of these folders]\n[not covered by undo: target gone]";
    assert_eq!(changes_line(&outcome), lines);
    let data = outcome.data.unwrap();
    assert_eq!(data["changes"]["not_covered"], serde_json::json!(["target gone"]));
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(root(&world).join("d/e")).unwrap(), b"four\n");
    assert_eq!(fs::read(root(&world).join("d/old.log")).unwrap(), b"ignored\n");
    // What comes along, and what is only ignored in another way now, is not gone.
    let world = crate::changed::world();
    assert_eq!(
        changes_line(&bash(&world, "mv d moved").await),
        "[renamed: d/ to moved/; 4 inside of these folders]"
    );
    let text = changes_line(&bash(&world, "echo moved >> .gitignore; echo x > target.log").await);
    assert_eq!(text, "[changed: .gitignore; created: target.log]");
}

#[tokio::test]
async fn what_becomes_of_repositories_is_named() {
    let world = world();
    let folder = root(&world);
    fs::create_dir_all(folder.join("sub/.git")).unwrap();
    fs::write(folder.join("sub/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("sub/file"), "text\n").unwrap();
    // What scripts do to these folders is asked about only where it stands in the command.
    let script = "case $1 in\nwrite) echo '[user]' >> .git/config ;;\nmake) mkdir -p sub/.git ;;\n\
                  remove) rm -rf .git sub/.git ;;\nesac\n";
    fs::write(folder.join("change.sh"), script).unwrap();
    let text = changes_line(&bash(&world, "cat .git/config > /dev/null; rm -rf sub").await);
    assert_eq!(
        text,
        "[deleted: sub/; 1 inside of these folders]\n[not covered by undo: sub/.git gone]"
    );
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::read(folder.join("sub/file")).unwrap(), b"text\n");
    assert_eq!(
        changes_line(&bash(&world, "sh change.sh write").await),
        "[not covered by undo: .git changed]"
    );
    assert_eq!(
        changes_line(&bash(&world, "sh change.sh make").await),
        "[not covered by undo: sub/.git made]"
    );
    assert_eq!(
        changes_line(&bash(&world, "sh change.sh remove").await),
        "[not covered by undo: .git gone, sub/.git gone]"
    );
    assert_eq!(receipts(&world).len(), 2, "nothing else changed");
}

#[tokio::test]
async fn a_commit_is_named_and_a_look_of_git_is_not() {
    let world = world();
    let folder = root(&world);
    fs::remove_dir_all(folder.join(".git")).unwrap();
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "."]);
    let commit = "git -c user.name=a -c user.email=a@b -c maintenance.auto=false commit -qm x";
    assert_eq!(changes_line(&bash(&world, commit).await), "[not covered by undo: .git changed]");
    assert_eq!(
        changes_line(&bash(&world, "git status; git log; git diff; git ls-files").await),
        ""
    );
    assert_eq!(receipts(&world).len(), 0);
}

#[tokio::test]
async fn what_git_keeps_track_of_is_covered_whatever_ignores_it() {
    let world = world();
    let folder = root(&world);
    fs::remove_dir_all(folder.join(".git")).unwrap();
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "-f", "d/old.log", "target/out"]);
    let before = tree(&folder);
    let outcome = bash(&world, "echo x >> d/old.log; rm -rf target; echo x > d/new.log").await;
    assert_eq!(
        changes_line(&outcome),
        "[changed: d/old.log; created: d/new.log; deleted: target/out]\n[not covered by undo: target gone]"
    );
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert!(!folder.join("d/new.log").exists());
    let now = tree(&folder);
    for name in ["d/old.log", "target/out"] {
        assert_eq!(now[name], before[name]);
    }
    // What git comes to keep track of was there before.
    fs::write(folder.join("own.log"), "mine\n").unwrap();
    let count = receipts(&world).len();
    let born = fs::metadata(folder.join("own.log")).unwrap().modified().unwrap();
    while born.elapsed().unwrap() < std::time::Duration::from_millis(100) {
        tokio::task::yield_now().await;
    }
    let staged = "[not covered by undo: .git/index changed]";
    assert_eq!(changes_line(&bash(&world, "git add -f own.log").await), staged);
    assert_eq!(changes_line(&bash(&world, "echo more >> own.log").await), "[changed: own.log]");
    take_back(&world, &receipts(&world)[count..], false).await.unwrap();
    assert_eq!(fs::read(folder.join("own.log")).unwrap(), b"mine\n");
}

#[tokio::test]
async fn what_is_staged_and_what_is_no_file_is_named() {
    let world = tracked();
    let folder = root(&world);
    let staged = "not covered by undo: .git/index changed]";
    for (command, changed) in [
        ("echo x > new.c", "[created: new.c]"),
        ("git add new.c", &format!("[{staged}")),
        ("git add new.c; git status; git diff", ""),
        ("git mv new.c src/n.c", &format!("[renamed: new.c to src/n.c]\n[{staged}")),
        ("git rm -q --cached src/n.c", &format!("[{staged}")),
        ("touch src/n.c; git status", ""),
    ] {
        assert_eq!(changes_line(&bash(&world, command).await), changed, "{command}");
    }
    let made = changes_line(&bash(&world, "mkfifo src/pipe; mkdir s; mkfifo s/pipe").await);
    assert_eq!(
        made,
        "[created: s/]\n[not covered by undo: s/pipe (pipe, socket or device) made, src/pipe (pipe, socket or device) made]"
    );
    assert_eq!(changes_line(&bash(&world, "mv s t; touch t/pipe").await), "[renamed: s/ to t/]");
    let gone = changes_line(&bash(&world, "rm src/pipe").await);
    assert_eq!(gone, "[not covered by undo: src/pipe (pipe, socket or device) gone]");
    let replaced = changes_line(&bash(&world, "rm t/pipe; echo x > t/pipe").await);
    assert_eq!(
        replaced,
        "[created: t/pipe]\n[not covered by undo: t/pipe (pipe, socket or device) gone]"
    );
    fs::remove_file(folder.join("t/pipe")).unwrap();
}

#[tokio::test]
async fn what_lies_deeper_than_any_look_goes_is_named() {
    let world = tracked();
    for (depth, wanted) in [(255, false), (256, true), (300, true)] {
        let top = format!("top{depth}");
        let made = format!("mkdir -p {top}/$(printf 'd/%.0s' {{1..{}}})", depth - 1);
        let told = changes_line(&bash(&world, &made).await);
        let names = told.contains("/d (nested too deep) not looked into");
        assert_eq!(names, wanted, "{depth}: {told}");
    }
}

#[tokio::test]
async fn a_folder_that_git_ignores_goes_with_what_was_made_in_it() {
    let world = tracked();
    let before = own(&world);
    fs::write(root(&world).join(".gitignore"), "/build/\n*.log\n/target/\n").unwrap();
    let before_too = own(&world);
    let outcome = bash(&world, "mkdir -p build/deep && echo x > build/deep/out").await;
    assert_eq!(changes_line(&outcome), "[created: build/deep/out]");
    let after = own(&world);
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(own(&world), before_too);
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(own(&world), after);
    take_back(&world, &receipts(&world), false).await.unwrap();
    // One that was there stays, with what was in it and undo knows nothing of.
    fs::create_dir_all(root(&world).join("build")).unwrap();
    let there = own(&world);
    bash(&world, "echo x > build/out").await;
    take_back(&world, &receipts(&world)[1..], false).await.unwrap();
    assert_eq!(own(&world), there);
    assert!(before.len() < there.len());
}

/// A repository that keeps track of files which it ignores.
fn tracked() -> World {
    let world = world();
    let folder = root(&world);
    fs::remove_dir_all(folder.join(".git")).unwrap();
    git(&folder, &["init", "-q"]);
    for (name, text) in [("src/a.c", "main\n"), ("src/gen/x.log", "built\n")] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("x.log", folder.join("src/gen/l.log")).unwrap();
    git(&folder, &["add", "-f", "."]);
    git(&folder, &["commit", "-qm", "x"]);
    world
}

/// What is there but for what git has for itself.
fn own(world: &World) -> crate::changed::Tree {
    let all = tree(&root(world)).into_iter();
    all.filter(|(name, _)| !name.starts_with(".git/")).collect()
}

#[tokio::test]
async fn what_is_ignored_and_tracked_comes_back_with_a_folder_that_was_renamed() {
    let world = tracked();
    let before = own(&world);
    let outcome = bash(&world, "mv src lib").await;
    assert!(!changes_line(&outcome).contains("not covered"), "{outcome:?}");
    let after = own(&world);
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(own(&world), before);
    let redone = take_back(&world, &undone, false).await.unwrap();
    assert_eq!(own(&world), after);
    take_back(&world, &redone, false).await.unwrap();
    assert_eq!(own(&world), before);
}

#[tokio::test]
async fn what_is_ignored_and_was_changed_in_a_renamed_folder_is_moved_by_force_alone() {
    let world = tracked();
    bash(&world, "mv src lib").await;
    fs::write(root(&world).join("lib/gen/x.log"), "built anew\n").unwrap();
    let (all, now) = (receipts(&world), own(&world));
    let error = take_back(&world, &all, false).await.unwrap_err();
    let UndoError::Conflict(found) = &error else { panic!("{error}") };
    assert!(found.iter().all(|one| one.path.text().ends_with("lib/gen/x.log")), "{error}");
    assert_eq!(own(&world), now, "nothing was done");
    let undone = take_back(&world, &all, true).await.unwrap();
    assert_eq!(own(&world)["src/gen/x.log"], now["lib/gen/x.log"], "as any other file");
    assert!(!root(&world).join("lib").exists());
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(own(&world), now);
}

#[tokio::test]
async fn what_is_ignored_and_went_before_its_folder_got_another_name_is_brought_back() {
    let world = tracked();
    let before = own(&world);
    bash(&world, "rm src/gen/x.log src/gen/l.log; mv src lib").await;
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(own(&world), before);
}

#[tokio::test]
async fn a_tracked_file_that_is_ignored_under_its_new_name_is_told_once() {
    let world = tracked();
    let before = own(&world);
    let outcome = bash(&world, "mv src/gen/x.log src/gen/y.log").await;
    assert_eq!(changes_line(&outcome), "[renamed: src/gen/x.log to src/gen/y.log]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(own(&world), before);
}

#[tokio::test]
async fn attributes_of_a_file_are_brought_back() {
    let world = world();
    let file = root(&world).join("a.txt");
    let python = |script: &str| {
        let script = format!("import os, sys; {script}");
        let mut command = Command::new(haft_testkit::machine::python());
        let done = command.args(["-c", &script]).arg(&file).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    python("os.setxattr(sys.argv[1], 'user.x', b'y')");
    bash(&world, "rm a.txt").await;
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(python("print(os.getxattr(sys.argv[1], 'user.x'))"), "b'y'\n");
}

#[tokio::test]
async fn rights_of_a_big_file_are_brought_back() {
    let small = DiffLimits { file_bytes: 100, ..DiffLimits::default() };
    let world = watched(world(), Some(small));
    let big = root(&world).join("big");
    fs::write(&big, vec![b'x'; 1_000]).unwrap();
    fs::set_permissions(&big, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(changes_line(&bash(&world, "chmod 755 big").await), "[changed: big]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(fs::metadata(&big).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read(&big).unwrap(), vec![b'x'; 1_000]);
}

#[tokio::test]
async fn the_only_copy_of_what_came_from_elsewhere_can_be_had_again() {
    let world = world();
    let elsewhere = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let file = elsewhere.path().join("only");
    fs::write(&file, "only copy\n").unwrap();
    bash(&world, &format!("mv {} came", file.display())).await;
    assert!(!file.exists());
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    if !undone.is_empty() {
        assert!(!root(&world).join("came").exists());
        take_back(&world, &undone, false).await.unwrap();
    }
    assert_eq!(fs::read(root(&world).join("came")).unwrap(), b"only copy\n");
}

#[tokio::test]
async fn a_very_big_file_that_a_command_made_goes_again() {
    let world = world();
    let quota = MemoryPreImages::with_quota(200 << 20);
    world.session.services.insert::<dyn PreImages>(Arc::new(quota));
    assert_eq!(changes_line(&bash(&world, "truncate -s 70M huge").await), "[created: huge]");
    take_back(&world, &receipts(&world), false).await.unwrap();
    assert!(!root(&world).join("huge").exists());
}

#[tokio::test]
async fn what_no_copy_can_be_kept_of_is_not_removed_unasked() {
    let world = world();
    world.session.services.insert::<dyn PreImages>(Arc::new(MemoryPreImages::with_quota(12)));
    bash(&world, "printf '%0100d' 0 > new; mv a.txt moved; echo > small").await;
    let all = receipts(&world);
    let before = tree(&root(&world));
    let error = take_back(&world, &all, false).await.unwrap_err();
    assert!(
        matches!(&error, UndoError::OnlyCopy { path } if path.file_name() == Some(b"new")),
        "{error}"
    );
    assert_eq!(tree(&root(&world)), before, "nothing was done");
    take_back(&world, &all, true).await.unwrap();
    assert!(!root(&world).join("new").exists() && root(&world).join("a.txt").exists());
}
