//! Copies of repositories beside git itself.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
};

use haft_types::{HostPath, Style};
use tempfile::TempDir;

use super::{CopyAt, Repositories};

struct Field {
    root: TempDir,
    all: Repositories,
}

fn git(folder: &Path, words: &[&str]) -> Vec<u8> {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "maintenance.auto=false"];
    let done = Command::new("git").arg("-C").arg(folder).args(identity).args(words).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    done.stdout
}

impl Field {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self::at(root, |root| root.join("copies"))
    }

    fn at(root: TempDir, copies: impl Fn(&Path) -> PathBuf) -> Self {
        let all = Repositories::new(copies(root.path()));
        let field = Self { root, all };
        fs::create_dir(field.work()).unwrap();
        git(&field.work(), &["init", "-q", "-b", "main"]);
        for number in 0..3 {
            fs::write(field.work().join("f"), number.to_string()).unwrap();
            git(&field.work(), &["add", "-A"]);
            git(&field.work(), &["commit", "-qm", "one"]);
        }
        field
    }

    fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    fn git(&self) -> HostPath {
        let path = self.work().join(".git");
        HostPath::new(path.to_str().unwrap().as_bytes(), Style::Posix).unwrap()
    }

    fn log(&self) -> String {
        git(&self.work(), &["fsck"]);
        git(&self.work(), &["log", "--all", "--format=%H %D"]).escape_ascii().to_string()
    }

    /// What is lost by this, in words; it is put back.
    fn lost(&self, harm: impl Fn(&Path)) -> Vec<String> {
        let snapshot = self.all.copy(&[self.git()]);
        harm(&self.work().join(".git"));
        let mut losses = snapshot.losses(&[]);
        for loss in &mut losses {
            loss.put_back().unwrap();
            loss.acknowledge(true);
        }
        assert!(snapshot.losses(&[]).iter().all(|loss| loss.what.is_empty()), "it is whole again");
        losses.into_iter().flat_map(|loss| loss.what).collect()
    }
}

fn loose(git: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(git.join("objects")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.file_name().unwrap().len() == 2);
    folders
        .flat_map(|path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()))
        .collect()
}

#[test]
fn what_git_does_by_itself_is_no_loss() {
    let field = Field::new();
    let work = field.work();
    for words in [
        &["branch", "side"][..],
        &["pack-refs", "--all"],
        &["repack", "-adq"],
        &["prune-packed", "-q"],
        &["branch", "-m", "side", "other"],
        &["gc", "-q"],
        &["checkout", "-q", "--orphan", "fresh"],
        &["checkout", "-q", "main"],
        &["reset", "-q", "--hard", "HEAD~1"],
        &["pack-refs", "--all"],
        &["gc", "-q", "--prune=now"],
    ] {
        assert_eq!(field.lost(|_| drop(git(&work, words))), [""; 0], "{words:?}");
    }
}

#[test]
fn an_object_counts_as_there_in_whatever_pack_it_is() {
    let field = Field::new();
    // More packs than are held open at once.
    for number in 0..70 {
        fs::write(field.work().join("f"), format!("pack {number}")).unwrap();
        git(&field.work(), &["commit", "-qam", "more"]);
        git(&field.work(), &["repack", "-dq"]);
    }
    let snapshot = field.all.copy(&[field.git()]);
    git(&field.work(), &["repack", "-adq"]);
    assert!(snapshot.losses(&[]).is_empty());
    // So does one that another repository has, whose objects are used.
    let other = field.root.path().join("other");
    git(&field.work(), &["clone", "-q", "--no-local", ".", other.to_str().unwrap()]);
    let text = format!("{}\n", other.join(".git/objects").display());
    fs::write(field.work().join(".git/objects/info/alternates"), text).unwrap();
    let packs = || fs::remove_dir_all(field.work().join(".git/objects/pack")).unwrap();
    assert_eq!(field.lost(|_| packs()), [""; 0]);
}

#[test]
fn repositories_with_longer_names_of_objects_are_looked_after_too() {
    let field = Field::new();
    fs::remove_dir_all(field.work()).unwrap();
    fs::create_dir(field.work()).unwrap();
    git(&field.work(), &["init", "-q", "-b", "main", "--object-format=sha256"]);
    fs::write(field.work().join("f"), "x").unwrap();
    git(&field.work(), &["add", "-A"]);
    git(&field.work(), &["commit", "-qm", "one"]);
    let log = field.log();
    assert_eq!(field.lost(|_| drop(git(&field.work(), &["gc", "-q"]))), [""; 0]);
    let lost = field.lost(|git| fs::remove_dir_all(git.join("objects/pack")).unwrap());
    assert!(!lost.is_empty());
    assert_eq!(field.log(), log);
}

#[test]
fn what_stands_is_never_overwritten() {
    let field = Field::new();
    let log = field.log();
    let lost = field.lost(|git| {
        fs::remove_dir_all(git).unwrap();
        fs::create_dir(git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("description"), "mine").unwrap();
    });
    assert!(!lost.is_empty());
    assert_eq!(fs::read_to_string(field.work().join(".git/description")).unwrap(), "mine");
    assert_eq!(field.log(), log);
}

#[test]
fn where_nothing_can_be_linked_it_is_copied_or_held_open() {
    let Ok(copies) = tempfile::tempdir_in("/dev/shm") else { return };
    let root = tempfile::tempdir().unwrap();
    let disk = |path: &Path| fs::metadata(path).unwrap().dev();
    if disk(copies.path()) == disk(root.path()) {
        haft_testkit::machine::left_out("a second disk");
        return;
    }
    let field = Field::at(root, |_| copies.path().join("copies"));
    git(&field.work(), &["gc", "-q"]);
    fs::write(field.work().join("f"), "loose").unwrap();
    git(&field.work(), &["commit", "-qam", "loose"]);
    let log = field.log();
    let lost = field.lost(|git| fs::remove_dir_all(git).unwrap());
    assert!(lost.contains(&"HEAD".to_owned()), "{lost:?}");
    assert_eq!(field.log(), log);
    let snapshot = field.all.copy(&[field.git()]);
    fs::remove_dir_all(field.work().join(".git/objects")).unwrap();
    let mut found = snapshot.losses(&[]).remove(0);
    assert!(found.missing.iter().any(|one| matches!(one.copy, CopyAt::Open(_))));
    found.put_back().unwrap();
    assert_eq!(field.log(), log);
}

#[test]
fn a_repository_that_is_too_large_is_kept_without_loose_objects_which_is_said_once() {
    let field = Field::new();
    git(&field.work(), &["gc", "-q"]);
    let git_folder = field.work().join(".git");
    for number in 0..50_100_u32 {
        let name = format!("{number:040x}");
        let folder = git_folder.join("objects").join(format!("{:02x}", number % 256));
        if number < 256 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(&name[2..]), "").unwrap();
    }
    let first = field.all.copy(&[field.git()]);
    assert!(first.notes[0].contains("only its refs and packs"), "{:?}", first.notes);
    let second = field.all.copy(&[field.git()]);
    assert!(second.notes.is_empty(), "{:?}", second.notes);
    for path in loose(&git_folder) {
        fs::remove_file(path).unwrap();
    }
    let lost = field.lost(|git| {
        fs::remove_dir_all(git.join("objects/pack")).unwrap();
        fs::remove_file(git.join("packed-refs")).unwrap();
        fs::remove_file(git.join("HEAD")).unwrap();
    });
    assert!(lost.len() > 2, "{lost:?}");
    field.log();
}

#[test]
fn refs_in_tables_come_back_with_what_they_need() {
    let field = Field::new();
    let work = field.work();
    fs::remove_dir_all(&work).unwrap();
    fs::create_dir(&work).unwrap();
    let mut init = Command::new("git");
    init.arg("-C").arg(&work).args(["init", "-q", "-b", "main", "--ref-format=reftable"]);
    if !init.status().unwrap().success() {
        haft_testkit::machine::left_out("a git that keeps refs in tables");
        return;
    }
    for number in 0..2 {
        fs::write(work.join("f"), number.to_string()).unwrap();
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-qm", "one"]);
    }
    let log = field.log();
    for words in [&["branch", "side"][..], &["branch", "-D", "side"], &["gc", "-q"], &["pack-refs"]]
    {
        assert_eq!(field.lost(|_| drop(git(&work, words))), [""; 0], "{words:?}");
    }
    let tables = |git: &Path| fs::read_dir(git.join("reftable")).unwrap();
    let harms: [fn(&Path, fs::ReadDir); 4] = [
        |git, _| fs::remove_dir_all(git.join("reftable")).unwrap(),
        |git, _| fs::remove_file(git.join("reftable/tables.list")).unwrap(),
        |_, tables| {
            for path in tables.map(|entry| entry.unwrap().path()) {
                if path.extension().is_some_and(|end| end == "ref") {
                    fs::remove_file(path).unwrap();
                }
            }
        },
        |git, _| fs::remove_dir_all(git.join("objects")).unwrap(),
    ];
    for harm in harms {
        assert!(!field.lost(|git| harm(git, tables(git))).is_empty());
        assert_eq!(field.log(), log);
    }
}

#[test]
fn the_names_of_repositories_whose_objects_are_used_come_back() {
    let field = Field::new();
    let (work, other) = (field.work(), field.root.path().join("other"));
    fs::rename(&work, &other).unwrap();
    git(field.root.path(), &["clone", "-qs", other.to_str().unwrap(), work.to_str().unwrap()]);
    let log = field.log();
    assert!(!field.lost(|git| fs::remove_dir_all(git.join("objects")).unwrap()).is_empty());
    assert_eq!(field.log(), log);
    let lost = field.lost(|git| fs::remove_file(git.join("objects/info/alternates")).unwrap());
    assert_eq!(lost, ["the objects of other repositories"]);
    assert_eq!(field.log(), log);
    // Who takes all of them over needs the others no more.
    let lost = field.lost(|git_folder| {
        git(&work, &["repack", "-aq"]);
        fs::remove_file(git_folder.join("objects/info/alternates")).unwrap();
    });
    assert_eq!(lost, [""; 0]);
    assert_eq!(field.log(), log);
}

#[test]
fn refs_whose_names_are_no_text_come_back() {
    let field = Field::new();
    let name = std::ffi::OsStr::from_bytes(b"refs/heads/b\xff");
    let words = [std::ffi::OsStr::new("update-ref"), name, std::ffi::OsStr::new("HEAD")];
    let made = Command::new("git").arg("-C").arg(field.work()).args(words).status();
    assert!(made.unwrap().success());
    let log = field.log();
    assert!(!field.lost(|git| fs::remove_dir_all(git.join("refs")).unwrap()).is_empty());
    assert_eq!(field.log(), log);
}

#[test]
fn what_was_overwritten_is_told_with_what_it_said() {
    let field = Field::new();
    let id = String::from_utf8(git(&field.work(), &["rev-parse", "HEAD"])).unwrap();
    let path = field.work().join(".git");
    for (name, said) in [("refs/heads/main", id.trim()), ("HEAD", "ref: refs/heads/main")] {
        let before = fs::read(path.join(name)).unwrap();
        let snapshot = field.all.copy(&[field.git()]);
        fs::write(path.join(name), "").unwrap();
        let losses = snapshot.losses(&[]);
        assert_eq!(losses.len(), 1, "{name}");
        assert_eq!(losses[0].overwritten, [(name.to_owned(), said.to_owned())]);
        assert!(losses[0].what.is_empty() && losses[0].missing.is_empty(), "{losses:?}");
        losses[0].acknowledge(false);
        assert!(snapshot.losses(&[]).is_empty(), "it is told once");
        drop((losses, snapshot));
        fs::write(path.join(name), before).unwrap();
    }
}

#[test]
fn refs_come_back_whatever_they_are_called() {
    let field = Field::new();
    let work = field.work();
    for name in
        ["tmp_work", "rel.sample", "gc.pid", "objects/ab", "logs/x", "refs", "worktrees/HEAD"]
    {
        git(&work, &["checkout", "-qb", name]);
        fs::write(work.join("f"), name).unwrap();
        git(&work, &["commit", "-qam", name]);
    }
    git(&work, &["tag", "tmp_tag", "HEAD~1"]);
    let log = field.log();
    let lost = field.lost(|git| {
        for name in ["refs", "logs", "objects"] {
            fs::remove_dir_all(git.join(name)).unwrap();
        }
    });
    assert!(!lost.is_empty());
    assert_eq!(field.log(), log);
    git(&work, &["rev-parse", "objects/ab@{1}"]);
}

#[test]
fn what_logs_worktrees_and_the_index_need_comes_back() {
    let field = Field::new();
    let work = field.work();
    let output = |words: &[&str]| String::from_utf8(git(&work, words)).unwrap().trim().to_owned();
    for text in ["stashed 1", "stashed 2"] {
        fs::write(work.join("f"), text).unwrap();
        git(&work, &["stash", "-q"]);
    }
    let apart = field.root.path().join("apart");
    git(&work, &["worktree", "add", "-q", "--detach", apart.to_str().unwrap()]);
    fs::write(apart.join("f"), "apart").unwrap();
    git(&apart, &["commit", "-qam", "apart"]);
    let apart = String::from_utf8(git(&apart, &["rev-parse", "HEAD"])).unwrap();
    fs::write(work.join("staged"), "staged").unwrap();
    git(&work, &["add", "staged"]);
    let file = |id: &str| work.join(".git/objects").join(&id[..2]).join(&id[2..]);
    for id in
        [&output(&["rev-parse", "stash@{1}"]), apart.trim(), &output(&["rev-parse", ":staged"])]
    {
        assert!(!field.lost(|_| fs::remove_file(file(id)).unwrap()).is_empty(), "{id}");
        assert!(file(id).exists());
    }
    assert_eq!(field.lost(|git| fs::remove_file(git.join("index")).unwrap()), ["index"]);
    assert!(output(&["status", "--short"]).contains("A  staged"));
    // What git was told to forget may go.
    git(&work, &["stash", "drop", "-q", "stash@{1}"]);
    assert_eq!(field.lost(|_| drop(git(&work, &["prune", "--expire=now"]))), [""; 0]);
}

#[test]
fn where_a_history_is_cut_off_comes_back() {
    let field = Field::new();
    let (work, other) = (field.work(), field.root.path().join("other"));
    fs::rename(&work, &other).unwrap();
    let from = format!("file://{}", other.display());
    git(field.root.path(), &["clone", "-q", "--depth", "1", &from, work.to_str().unwrap()]);
    let log = field.log();
    let lost = field.lost(|git| fs::remove_file(git.join("shallow")).unwrap());
    assert_eq!(lost, ["shallow"]);
    assert_eq!(field.log(), log);
    assert_eq!(field.lost(|_| drop(git(&work, &["fetch", "-q", "--unshallow"]))), [""; 0]);
    assert!(field.log().len() > log.len());
}

#[test]
fn while_another_process_runs_a_command_nothing_goes_from_the_copy() {
    let field = Field::new();
    let log = field.log();
    let snapshot = field.all.copy(&[field.git()]);
    // Its mark is that of a process that lives: this one by another name.
    let folder = fs::read_dir(field.root.path().join("copies")).unwrap().next().unwrap().unwrap();
    let parent = std::os::unix::process::parent_id();
    fs::copy(
        folder.path().join(format!("runs-{}", std::process::id())),
        folder.path().join(format!("runs-{parent}")),
    )
    .unwrap();
    drop(snapshot);
    let git_folder = field.work().join(".git");
    let packed = git_folder.join("objects/pack");
    for path in loose(&git_folder) {
        fs::remove_file(path).unwrap();
    }
    drop(fs::remove_dir_all(packed));
    let mut losses = field.all.copy(&[field.git()]).losses(&[]);
    assert_eq!(losses.len(), 1);
    losses[0].put_back().unwrap();
    assert_eq!(field.log(), log);
}

#[test]
fn what_stands_in_the_way_keeps_nothing_else_from_coming_back() {
    let field = Field::new();
    let git = field.work().join(".git");
    let snapshot = field.all.copy(&[field.git()]);
    for name in ["objects", "HEAD", "logs"] {
        let path = git.join(name);
        drop(fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)));
    }
    fs::write(git.join("objects"), "mine").unwrap();
    let mut losses = snapshot.losses(&[]);
    let error = losses[0].put_back().unwrap_err().to_string();
    assert!(error.contains(".git/objects: "), "{error}");
    assert!(git.join("HEAD").exists() && git.join("logs/HEAD").exists());
    assert_eq!(fs::read_to_string(git.join("objects")).unwrap(), "mine");
    // What is still missing begins with the folder that the rest is in.
    let first = losses[0].missing.first().unwrap();
    assert_eq!(first.path.text(), git.join("objects").to_str().unwrap());
}

#[test]
fn a_repository_that_git_moved_and_a_branch_that_it_removed_are_no_loss() {
    let field = Field::new();
    let work = field.work();
    let lost = field.lost(|_| {
        git(&work, &["checkout", "-q", "--orphan", "fresh"]);
        git(&work, &["branch", "-qD", "main"]);
    });
    assert_eq!(lost, [""; 0]);
    let field = Field::new();
    let (work, inner) = (field.work(), field.work().join("sub"));
    git(&work, &["clone", "-q", ".", "sub"]);
    git(&work, &["-c", "protocol.file.allow=always", "submodule", "-q", "add", "./sub", "sub"]);
    let path =
        HostPath::new(inner.join(".git").to_str().unwrap().as_bytes(), Style::Posix).unwrap();
    let snapshot = field.all.copy(&[field.git(), path]);
    git(&work, &["submodule", "absorbgitdirs"]);
    assert!(inner.join(".git").is_file());
    assert!(snapshot.losses(&[]).iter().all(|loss| loss.what.is_empty()));
}

#[test]
fn names_of_files_that_are_not_whole_yet_are_never_opened() {
    let field = Field::new();
    let snapshot = field.all.copy(&[field.git()]);
    let git = field.work().join(".git");
    fs::remove_file(git.join("HEAD")).unwrap();
    let mine = field.work().join("mine");
    fs::write(&mine, "mine").unwrap();
    fs::hard_link(&mine, git.join("HEAD.haft-restored")).unwrap();
    snapshot.losses(&[])[0].put_back().unwrap();
    assert_eq!(fs::read_to_string(mine).unwrap(), "mine");
    assert!(git.join("HEAD").exists());
    let left = fs::read_dir(git).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name.as_bytes().starts_with(b".haft")).count(), 0);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let pipe = |path: &Path| {
        drop(fs::remove_file(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).unwrap();
    };
    for name in
        ["HEAD", "packed-refs", "commondir", "refs/heads/main", "objects/info/alternates", "index"]
    {
        let field = Field::new();
        // Before the copy, and after it.
        let git = field.work().join(".git");
        let snapshot = field.all.copy(&[field.git()]);
        pipe(&git.join(name));
        drop(snapshot.losses(&[]));
        drop(snapshot);
        drop(field.all.copy(&[field.git()]).losses(&[]));
    }
    let field = Field::new();
    let git = field.work().join(".git");
    pipe(&git.join("objects/pack/pack-1.pack"));
    pipe(&git.join("objects/pack/pack-1.idx"));
    let object = loose(&git).into_iter().next().unwrap();
    let snapshot = field.all.copy(&[field.git()]);
    pipe(&object);
    fs::remove_file(loose(&git).into_iter().find(|path| *path != object).unwrap()).unwrap();
    drop(snapshot.losses(&[]));
    let work = field.work().join(".git");
    fs::rename(&work, field.root.path().join("aside")).unwrap();
    pipe(&work);
    drop(field.all.copy(&[field.git()]));
}

#[test]
fn a_copy_goes_with_the_last_who_uses_it() {
    let field = Field::new();
    let folder = field.root.path().join("copies");
    let count = || fs::read_dir(&folder).unwrap().count();
    let snapshot = field.all.copy(&[field.git()]);
    let other = Repositories::new(folder.clone());
    let beside = other.copy(&[field.git()]);
    assert_eq!(count(), 1, "one for each repository");
    drop((snapshot, field.all));
    assert_eq!(count(), 1);
    drop((beside, other));
    assert_eq!(count(), 0);
}

/// A repository whose `main` is loose, and packed with an older commit.
fn half_packed() -> Field {
    let field = Field::new();
    git(&field.work(), &["pack-refs", "--all"]);
    git(&field.work(), &["commit", "-q", "--allow-empty", "-m", "newest"]);
    field
}

#[test]
fn what_is_half_removed_is_made_no_part_of_a_copy() {
    let field = half_packed();
    let (log, main) = (field.log(), field.work().join(".git/refs/heads/main"));
    let first = field.all.copy(&[field.git()]);
    // Nobody looks after it, and the next one begins when nothing runs.
    fs::remove_file(&main).unwrap();
    drop(first);
    let next = field.all.copy(&[field.git()]);
    for mut loss in next.losses(&[]) {
        loss.put_back().unwrap();
        loss.acknowledge(true);
    }
    assert_eq!(field.log(), log);
    // Packed refs that were put back are those of the copy, in the eyes of another process, too.
    fs::remove_file(field.work().join(".git/packed-refs")).unwrap();
    fs::remove_file(field.work().join(".git/HEAD")).unwrap();
    next.losses(&[]).into_iter().for_each(|mut loss| loss.put_back().unwrap());
    fs::remove_file(&main).unwrap();
    let other = Repositories::new(field.root.path().join("copies"));
    for at in [other.copy(&[field.git()]), next] {
        at.losses(&[]).into_iter().for_each(|mut loss| loss.put_back().unwrap());
        assert_eq!(field.log(), log);
        fs::remove_file(&main).unwrap();
    }
}

#[test]
fn what_git_packs_while_another_command_runs_is_followed() {
    let field = half_packed();
    let job = field.all.copy(&[field.git()]);
    git(&field.work(), &["commit", "-q", "--allow-empty", "-m", "later"]);
    git(&field.work(), &["pack-refs", "--all"]);
    let log = field.log();
    let command = field.all.copy(&[field.git()]);
    fs::remove_dir_all(field.work().join(".git")).unwrap();
    command.losses(&[]).into_iter().for_each(|mut loss| loss.put_back().unwrap());
    assert_eq!(field.log(), log);
    // No link of the copy leads to a file that is written then.
    let (outside, refs) = (field.root.path().join("outside"), field.work().join(".git/refs/heads"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "kept").unwrap();
    symlink(&outside, refs.join("way")).unwrap();
    symlink(outside.join("x"), refs.join("straight")).unwrap();
    let linked = field.all.copy(&[field.git()]);
    fs::remove_file(refs.join("way")).unwrap();
    fs::remove_file(refs.join("straight")).unwrap();
    git(&field.work(), &["branch", "way/x"]);
    git(&field.work(), &["branch", "straight"]);
    git(&field.work(), &["pack-refs", "--all"]);
    drop(field.all.copy(&[field.git()]));
    assert_eq!(fs::read(outside.join("x")).unwrap(), b"kept");
    drop((job, linked));
}

#[test]
fn what_is_put_back_while_it_is_removed_is_whole_in_the_end() {
    let field = half_packed();
    let (log, at) = (field.log(), field.work().join(".git"));
    let job = field.all.copy(&[field.git()]);
    std::thread::scope(|scope| {
        let removes = scope.spawn(|| {
            for _ in 0..200 {
                drop(fs::remove_dir_all(at.join("objects")));
                drop(fs::remove_dir_all(at.join("refs")));
                drop(fs::remove_file(at.join("packed-refs")));
            }
        });
        while !removes.is_finished() {
            let command = field.all.copy(&[field.git()]);
            for mut loss in command.losses(&[]) {
                let is_back = loss.put_back().is_ok();
                loss.acknowledge(is_back);
            }
        }
    });
    // The last look, which has something new to put back.
    drop(fs::remove_file(at.join("HEAD")));
    for mut loss in job.losses(&[]) {
        loss.put_back().unwrap();
        loss.acknowledge(true);
    }
    drop(job);
    let after = field.all.copy(&[field.git()]);
    assert!(after.losses(&[]).is_empty());
    assert_eq!(field.log(), log);
}
