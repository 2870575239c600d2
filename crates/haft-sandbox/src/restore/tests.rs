//! What is put back, and what is not.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use haft_types::Style;

use super::{state::FILES, *};

struct World {
    folder: tempfile::TempDir,
    tree: HostPath,
    how: RestoreOptions,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tree = HostPath::new(folder.path().join("w").as_os_str().as_bytes(), Style::Posix);
        let this = Self { folder, tree: tree.unwrap(), how: RestoreOptions::default() };
        this.write("w/.git/config", "[core]\n");
        this.write("w/.git/hooks/pre-commit", "#!/bin/sh\n");
        this.write("w/.git/HEAD", "ref: refs/heads/main\n");
        this.write("outside/config", "precious\n");
        this
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| error.kind().to_string())
    }

    fn look(&self) -> ProtectedState {
        self.look_at(Level::Landlock)
    }

    fn look_held(&self) -> ProtectedState {
        self.look_at(Level::Namespaces)
    }

    fn look_at(&self, level: Level) -> ProtectedState {
        let names = [".git/config", ".git/hooks", ".mcp.json", ".vscode"];
        self.look_with(&names, Guard::default(), level)
    }

    fn look_with(&self, names: &[&str], guard: Guard, level: Level) -> ProtectedState {
        let write = vec![self.tree.clone()];
        let protected = crate::in_trees(&write, names);
        let limits = Limits { write, protected, guard, ..Limits::default() };
        let tame = |text: &str| !text.contains("fsmonitor");
        ProtectedState::look(&limits, level, RestoreOptions { tame, ..self.how.clone() })
    }

    /// At any depth, with what is free.
    fn deep(&self, free: &[&str]) -> ProtectedState {
        let names = [".envrc", ".vscode", ".cargo/config.toml"].map(ToOwned::to_owned).to_vec();
        let free = free.iter().map(|name| self.tree.join(name).unwrap()).collect();
        let guard = Guard { folders: vec![self.tree.clone()], names, free, ..Guard::default() };
        self.look_with(&[], guard, Level::Landlock)
    }

    /// What is told, as words with the path below the tree.
    fn told(&self, kept: &ProtectedState) -> Vec<String> {
        let below = |path: &HostPath| {
            String::from_utf8_lossy(path.relative_to(&self.tree).unwrap()).into_owned()
        };
        let aside = |path: &HostPath| {
            let at = std::path::Path::new(OsStr::from_bytes(path.as_bytes()));
            assert!(at.symlink_metadata().is_ok() && below(path).contains(".put-aside-"));
        };
        let told = |one: Restored| match one {
            Restored::Restored(path, stood) => {
                stood.iter().for_each(aside);
                let stood = if stood.is_some() { "" } else { ", gone" };
                format!("restored {}{stood}", below(&path))
            }
            Restored::Removed(path, stood) => {
                aside(&stood);
                format!("removed {}", below(&path))
            }
            Restored::Left(path, why) => format!("left {}: {why}", below(&path)),
            Restored::Unknown(path, why) => format!("unknown {}: {why}", below(&path)),
        };
        kept.put_back().into_iter().map(told).collect()
    }
}

#[test]
fn what_is_as_it_was_is_left_alone() {
    let world = World::new();
    let kept = world.look();
    world.write("w/.git/index", "x");
    world.write("w/src/main.rs", "x");
    assert_eq!(world.told(&kept), [""; 0]);
}

#[test]
fn changed_made_and_removed_things_are_put_back_and_told() {
    let world = World::new();
    let kept = world.look();
    world.write("w/.git/config", "[core]\nhooksPath=/x\n");
    world.write("w/.git/hooks/post-checkout", "evil");
    world.write("w/.mcp.json", "{}");
    world.write("w/.vscode/deep/settings.json", "{}");
    fs::set_permissions(world.at("w/.vscode/deep"), PermissionsExt::from_mode(0o0)).unwrap();
    let told = world.told(&kept);
    assert_eq!(
        told,
        ["restored .git/config", "restored .git/hooks", "removed .mcp.json", "removed .vscode"]
    );
    assert_eq!(world.read("w/.git/config"), "[core]\n");
    assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
    for gone in ["w/.git/hooks/post-checkout", "w/.mcp.json", "w/.vscode"] {
        assert!(!world.at(gone).exists(), "{gone}");
    }
    assert_eq!(world.told(&kept), [""; 0]);
    // The rights count too: what can be run by others now is another hook.
    fs::set_permissions(world.at("w/.git/hooks/pre-commit"), PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!(world.told(&kept), ["restored .git/hooks"]);
    fs::remove_dir_all(world.at("w/.git")).unwrap();
    assert_eq!(world.told(&kept), ["restored .git/config, gone", "restored .git/hooks, gone"]);
    assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
}

#[test]
fn what_the_program_could_not_change_was_changed_by_somebody_else() {
    let world = World::new();
    let kept = world.look_held();
    world.write("w/.git/config", "[core]\nof = the person\n");
    assert_eq!(world.told(&kept), [""; 0]);
    assert_eq!(world.read("w/.git/config"), "[core]\nof = the person\n");
    // What was not there could be made by anybody, and folders could be moved.
    world.write("w/.mcp.json", "{}");
    fs::rename(world.at("w/.git"), world.at("w/moved")).unwrap();
    world.write("w/.git/config", "evil");
    let told = world.told(&kept);
    assert_eq!(told, ["restored .git/config", "restored .git/hooks, gone", "removed .mcp.json"]);
    assert_eq!(world.read("w/.git/config"), "[core]\n");
    assert_eq!(world.read("w/moved/config"), "[core]\nof = the person\n");
    // A link is not held, only what it leads to.
    symlink(world.at("outside"), world.at("w/.vscode")).unwrap();
    let kept = world.look_held();
    fs::remove_file(world.at("w/.vscode")).unwrap();
    assert_eq!(world.told(&kept), ["restored .vscode, gone"]);
}

#[test]
fn a_folder_on_the_way_that_became_something_else_leads_nowhere() {
    let world = World::new();
    let kept = world.look();
    let (git, away) = (world.at("w/.git"), world.at("w/away"));
    // A link to a folder elsewhere, which must not be written through.
    fs::rename(&git, &away).unwrap();
    symlink(world.at("outside"), &git).unwrap();
    assert_eq!(world.told(&kept), ["restored .git/config", "restored .git/hooks, gone"]);
    assert_eq!(world.read("outside/config"), "precious\n");
    assert!(!world.at("outside/hooks").exists());
    assert_eq!(world.read("w/.git/config"), "[core]\n");
    // A file that names another folder.
    fs::remove_dir_all(&git).unwrap();
    world.write("w/.git", "gitdir: away\n");
    assert_eq!(world.told(&kept), ["restored .git/config", "restored .git/hooks, gone"]);
    // The last name as a link.
    fs::remove_dir_all(world.at("w/.git/hooks")).unwrap();
    symlink(world.at("outside"), world.at("w/.git/hooks")).unwrap();
    assert_eq!(world.told(&kept), ["restored .git/hooks"]);
    assert_eq!(world.read("outside/config"), "precious\n");
    assert_eq!(world.read("w/.git/hooks/pre-commit"), "#!/bin/sh\n");
}

#[test]
fn where_there_was_no_folder_on_the_way_only_what_is_protected_goes() {
    let world = World::new();
    fs::remove_dir_all(world.at("w/.git")).unwrap();
    let kept = world.look();
    world.write("w/.git/hooks/x", "evil");
    world.write("w/.git/HEAD", "fine");
    assert_eq!(world.told(&kept), ["removed .git/hooks"]);
    assert_eq!(world.read("w/.git/HEAD"), "fine");
    fs::remove_dir_all(world.at("w/.git")).unwrap();
    world.write("w/.git", "gitdir: away\n");
    assert_eq!(world.told(&kept).len(), 1);
    assert!(!world.at("w/.git").exists());
}

#[test]
fn what_is_too_much_to_be_kept_is_said() {
    let world = World::new();
    for number in 0..=FILES {
        world.write(&format!("w/.vscode/{number}"), "");
    }
    let told = world.told(&world.look());
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("unknown .vscode") && told[0].contains("1000 files"), "{told:?}");
    // Where the program cannot change it, nobody needs to know.
    assert_eq!(world.told(&world.look_held()), [""; 0]);
    for (write, protected) in [("gone", "gone/.envrc"), (".", "/nowhere")] {
        let of = |path: &str| vec![world.tree.join(path).unwrap()];
        let limits = Limits { write: of(write), protected: of(protected), ..Limits::default() };
        assert!(
            ProtectedState::look(&limits, Level::Landlock, RestoreOptions::default())
                .items
                .is_empty()
        );
    }
}

#[test]
fn what_is_protected_is_put_back_at_any_depth() {
    let world = World::new();
    world.write("w/sub/.envrc", "old\n");
    world.write("w/a/b/.cargo/config.toml", "old\n");
    world.write("w/.git/modules/x/y/HEAD", "");
    world.write("w/.git/modules/x/y/config", "[core]\n");
    world.write("w/.git/worktrees/t/commondir", "../..\n");
    world.write("w/sub/.git", "gitdir: ../.git/modules/x/y\n");
    let kept = world.deep(&[]);
    world.write("w/sub/.envrc", "evil");
    fs::remove_dir_all(world.at("w/a/b/.cargo")).unwrap();
    world.write("w/new/er/.vscode/tasks.json", "evil");
    world.write("w/.git/modules/x/y/config", "[core]\nfsmonitor = evil\n");
    world.write("w/.git/modules/x/y/hooks/post-checkout", "evil");
    world.write("w/.git/worktrees/t/commondir", "/evil\n");
    world.write("w/sub/.git", "gitdir: /evil\n");
    world.write("w/sub/src/main.rs", "fine");
    let mut told = world.told(&kept);
    told.sort();
    let wanted = [
        "removed .git/modules/x/y/hooks",
        "removed new/er/.vscode",
        "restored .git/modules/x/y/config",
        "restored .git/worktrees/t/commondir",
        "restored a/b/.cargo/config.toml, gone",
        "restored sub/.envrc",
        "restored sub/.git",
    ];
    assert_eq!(told, wanted);
    assert_eq!(world.read("w/sub/.envrc"), "old\n");
    assert_eq!(world.read("w/a/b/.cargo/config.toml"), "old\n");
    assert_eq!(world.read("w/.git/modules/x/y/config"), "[core]\n");
    assert_eq!(world.read("w/sub/.git"), "gitdir: ../.git/modules/x/y\n");
    assert!(!world.at("w/new/er/.vscode").exists() && world.at("w/sub/src/main.rs").exists());
    assert_eq!(world.told(&kept), [""; 0]);
    let free = world.deep(&["sub/.envrc", "new/.vscode"]);
    world.write("w/sub/.envrc", "wanted");
    world.write("w/new/.vscode/x", "wanted");
    assert_eq!(world.told(&free), [""; 0]);
}

#[test]
fn what_links_lead_to_is_protected_as_they_are() {
    let world = World::new();
    for folder in ["conf", "w/settings", "w/dot-git/hooks", "w/build"] {
        fs::create_dir_all(world.at(folder)).unwrap();
    }
    fs::rename(world.at("w/.git"), world.at("w/real-git")).unwrap();
    world.write("w/settings/x", "old");
    for (to, name) in [
        ("real-git", "w/.git"),
        ("settings", "w/.vscode"),
        ("build/envrc", "w/.envrc"),
        ("../conf", "w/.cargo"),
    ] {
        symlink(to, world.at(name)).unwrap();
    }
    let kept = world.deep(&[]);
    world.write("w/real-git/config", "[core]\nfsmonitor = evil\n");
    world.write("w/settings/x", "evil");
    world.write("w/build/envrc", "evil");
    let mut told = world.told(&kept);
    told.sort();
    let wanted = ["removed build/envrc", "restored real-git/config", "restored settings"];
    assert_eq!(told, wanted);
    assert_eq!(world.read("w/real-git/config"), "[core]\n");
    assert_eq!(world.read("w/settings/x"), "old");
    fs::remove_file(world.at("w/.git")).unwrap();
    symlink("dot-git", world.at("w/.git")).unwrap();
    assert_eq!(world.told(&kept), ["restored .git"]);
    assert_eq!(fs::read_link(world.at("w/.git")).unwrap(), std::path::Path::new("real-git"));
}

#[test]
fn folders_go_and_move_with_what_is_protected_in_them() {
    let world = World::new();
    for folder in ["w/a", "w/b", "w/c"] {
        world.write(&format!("{folder}/.envrc"), "old\n");
    }
    let kept = world.deep(&[]);
    fs::remove_dir_all(world.at("w/a")).unwrap();
    fs::rename(world.at("w/b"), world.at("w/moved")).unwrap();
    fs::remove_dir_all(world.at("w/c")).unwrap();
    world.write("w/c/.envrc", "old\n");
    assert_eq!(world.told(&kept), [""; 0]);
    world.write("w/moved/.envrc", "evil");
    world.write("w/c/.envrc", "evil");
    let mut told = world.told(&kept);
    told.sort();
    assert_eq!(told, ["restored c/.envrc", "restored moved/.envrc"]);
    assert!(!world.at("w/a").exists() && !world.at("w/b").exists());
}

#[test]
fn repositories_that_run_nothing_may_be_made() {
    let world = World::new();
    let kept = world.deep(&[]);
    for (name, text) in [
        ("w/fresh/.git/config", "[core]\n\tbare = false\n"),
        ("w/fresh/.git/hooks/pre-commit.sample", "x"),
        ("w/evil/.git/config", "[core]\n\tfsmonitor = evil\n"),
        ("w/hooked/.git/hooks/post-checkout", "evil"),
        ("w/.git/worktrees/t/commondir", "../..\n"),
        ("w/t/.git", "gitdir: ../.git/worktrees/t\n"),
        ("w/u/.git", "gitdir: /tmp/evil\n"),
    ] {
        world.write(name, text);
    }
    let mut told = world.told(&kept);
    told.sort();
    assert_eq!(told, ["removed evil/.git/config", "removed hooked/.git/hooks", "removed u/.git"]);
}

#[test]
fn a_folder_that_git_takes_for_a_repository_is_none_that_runs_anything() {
    let world = World::new();
    let make = |folder: &str, config: &str| {
        for (name, text) in [("HEAD", "ref: refs/heads/main"), ("objects/x", ""), ("refs/x", "")] {
            world.write(&format!("w/{folder}/{name}"), text);
        }
        world.write(&format!("w/{folder}/config"), config);
    };
    make("there", "[core]\n");
    world.write("w/own/config", "[core]\n\tfsmonitor = of the person\n");
    world.write("w/own/hooks/useThing.ts", "code");
    let kept = world.deep(&[]);
    make("fine", "[core]\n\tbare = true\n");
    make("planted", "[core]\n\tfsmonitor = evil\n");
    world.write("w/there/HEAD", "ref: refs/heads/other");
    world.write("w/there/config", "[core]\n\tfsmonitor = evil\n");
    for (name, text) in [("HEAD", "ref: x"), ("objects/x", ""), ("refs/x", "")] {
        world.write(&format!("w/own/{name}"), text);
    }
    let mut told = world.told(&kept);
    told.sort();
    assert_eq!(told, ["removed own/HEAD", "removed planted/HEAD", "restored there/config"]);
    assert!(world.at("w/own/config").exists() && world.at("w/own/hooks/useThing.ts").exists());
    assert_eq!(world.read("w/there/HEAD"), "ref: refs/heads/other");
    assert!(world.at("w/fine/HEAD").exists() && !world.at("w/planted/HEAD").exists());
}

#[test]
fn settings_of_a_repository_that_lie_in_another_folder_run_nothing() {
    let evil = "[core]\n\tfsmonitor = evil\n";
    let plant = |world: &World, git: &str, (text, common): (&str, &str), config: &str| {
        world.write(&format!("w/{git}/HEAD"), "ref: refs/heads/main");
        world.write(&format!("w/{git}/commondir"), text);
        for (name, text) in [("objects/x", ""), ("refs/x", ""), ("config", config)] {
            world.write(&format!("w/{common}/{name}"), text);
        }
    };
    let world = World::new();
    world.write("w/conf/config", "of the person");
    let kept = world.deep(&[]);
    plant(&world, "x/y/wt", ("../..\n", "x"), evil);
    world.write("w/src/.git", "gitdir: ../x/y/wt\n");
    plant(&world, "docs", ("../c2", "c2"), evil);
    plant(&world, "blank/y/wt", ("../.. \n", "blank/.. "), "[core]\n");
    plant(&world, "mine", ("../conf", "conf"), "of the person");
    // In a folder of git's that was made, into which nothing else leads.
    plant(&world, "fresh/.git/q/y/wt", ("../..", "fresh/.git/q"), evil);
    world.write("w/lib/.git", "gitdir: ../fresh/.git/q/y/wt");
    // What git makes for worktrees of a bare repository.
    for (name, text) in [("HEAD", "ref: x"), ("objects/x", ""), ("refs/x", "")] {
        world.write(&format!("w/.bare/{name}"), text);
    }
    plant(&world, ".bare/worktrees/t", ("../..\n", ".bare"), "[core]\n\tbare = true\n");
    world.write("w/t/.git", "gitdir: ../.bare/worktrees/t\n");
    let mut told = world.told(&kept);
    told.sort();
    let wanted = [
        "removed blank/y/wt/HEAD",
        "removed docs/HEAD",
        "removed fresh/.git/q/y/wt/commondir",
        "removed mine/HEAD",
        "removed x/y/wt/HEAD",
    ];
    assert_eq!(told, wanted);
    assert_eq!(world.read("w/conf/config"), "of the person");
    // One that was there before has its settings looked at where they lie.
    let world = World::new();
    plant(&world, "docs", ("../c2", "c2"), "[core]\n");
    plant(&world, ".bare/worktrees/t", ("../..\n", ".bare"), evil);
    world.write("w/.bare/HEAD", "ref: x");
    let kept = world.deep(&[]);
    world.write("w/c2/config", evil);
    world.write("w/c2/hooks/post-checkout", "evil");
    plant(&world, ".bare/worktrees/u", ("../..\n", ".bare"), evil);
    let mut told = world.told(&kept);
    told.sort();
    assert_eq!(told, ["removed c2/hooks", "restored c2/config"]);
    assert_eq!(world.read("w/c2/config"), "[core]\n");
}

#[test]
fn a_git_file_is_read_as_git_reads_it() {
    let world = World::new();
    let kept = world.deep(&[]);
    for folder in ["w/a/g/objects/x", "w/a/g/refs/x", "w/a/ g/objects/x", "w/a/ g/refs/x"] {
        world.write(folder, "");
    }
    world.write("w/b/.git", "gitdir:../a/g");
    world.write("w/c/.git", "gitdir:  g");
    world.write("w/d/.git", "gitdir: ../a/ g\r\n");
    let mut told = world.told(&kept);
    told.sort();
    assert_eq!(told, ["removed b/.git", "removed c/.git"]);
}

#[test]
fn a_closed_folder_is_opened_for_it_and_closed_again() {
    let world = World::new();
    world.write("w/sub/.envrc", "old\n");
    let (kept, top) = (world.deep(&[]), world.look());
    world.write("w/sub/.envrc", "evil");
    world.write("w/made/.envrc", "evil");
    world.write("w/.mcp.json", "evil");
    for name in ["w/sub/.envrc", "w/sub", "w/made", "w"] {
        let mode = if name == "w" { 0o500 } else { 0 };
        fs::set_permissions(world.at(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let (deep, right) = (kept.put_back(), top.put_back());
    let modes = ["w", "w/sub", "w/made"].map(|name| {
        let mode = fs::metadata(world.at(name)).unwrap().mode() & 0o777;
        fs::set_permissions(world.at(name), PermissionsExt::from_mode(0o700)).unwrap();
        mode
    });
    assert_eq!(modes, [0o500, 0, 0]);
    assert!(
        matches!(
            &deep[..],
            [Restored::Removed(..), Restored::Restored(..)]
                | [Restored::Restored(..), Restored::Removed(..)]
        ),
        "{deep:?}"
    );
    assert!(matches!(&right[..], [Restored::Removed(..)]), "{right:?}");
    assert_eq!(world.read("w/sub/.envrc"), "old\n");
    assert!(!world.at("w/made/.envrc").exists() && !world.at("w/.mcp.json").exists());
}

#[test]
fn what_was_put_aside_lies_in_no_folder_of_the_project() {
    let mut world = World::new();
    world.how.aside = Some(world.at("aside"));
    let kept = world.deep(&[]);
    world.write("w/sub/.vscode/tasks.json", "work");
    fs::set_permissions(world.at("w/sub/.vscode"), PermissionsExt::from_mode(0o500)).unwrap();
    let [Restored::Removed(path, stood)] = &kept.put_back()[..] else { panic!() };
    assert!(path.text().ends_with("/w/sub/.vscode"));
    let stood = std::path::Path::new(OsStr::from_bytes(stood.as_bytes()));
    assert!(stood.starts_with(world.at("aside")));
    assert_eq!(fs::read_to_string(stood.join("tasks.json")).unwrap(), "work");
    assert_eq!(fs::read_dir(world.at("w/sub")).unwrap().count(), 0);
    // Where it cannot go to, it stays beside.
    world.write("file", "");
    world.how.aside = Some(world.at("file"));
    let kept = world.deep(&[]);
    world.write("w/sub/.envrc", "work");
    assert_eq!(world.told(&kept), ["removed sub/.envrc"]);
}

#[test]
fn what_haft_writes_meanwhile_stays() {
    let world = World::new();
    world.write("w/sub/.vscode/a", "old");
    let (mut deep, mut right) = (world.deep(&[]), world.look());
    let path = |name: &str| world.tree.join(name).unwrap();
    for name in ["sub/.vscode/b", "new/.envrc", ".vscode/settings.json", ".mcp.json"] {
        world.write(&format!("w/{name}"), "of the person");
        deep.changed(&path(name));
        right.changed(&path(name));
    }
    world.write("w/sub/.vscode/a", "evil");
    world.write("w/.vscode/tasks.json", "evil");
    assert_eq!(world.told(&right), ["restored .vscode"]);
    let mut told = world.told(&deep);
    told.sort();
    // Both looked at what lies right in the folder.
    assert_eq!(told, ["restored sub/.vscode"]);
    for name in ["sub/.vscode/b", "new/.envrc", ".vscode/settings.json", ".mcp.json"] {
        assert_eq!(world.read(&format!("w/{name}")), "of the person", "{name}");
    }
    assert_eq!(world.read("w/sub/.vscode/a"), "old");
    assert!(!world.at("w/.vscode/tasks.json").exists());
    // What haft removed stays away.
    fs::remove_file(world.at("w/.mcp.json")).unwrap();
    fs::remove_file(world.at("w/new/.envrc")).unwrap();
    right.changed(&path(".mcp.json"));
    deep.changed(&path("new/.envrc"));
    assert_eq!((world.told(&right), world.told(&deep)), (vec![], vec![]));
}

#[test]
fn a_folder_that_is_unchanged_is_not_read_again() {
    let mut world = World::new();
    for number in 0..200 {
        world.write(&format!("w/d{number}/e/file"), "");
    }
    // What changed a moment ago may change once more without showing it.
    drop(world.deep(&[]));
    assert_eq!(world.how.folders.lock().unwrap().known(), 0);
    world.how.now = || i128::MAX;
    let kept = world.deep(&[]);
    assert!(world.how.folders.lock().unwrap().known() > 400);
    world.write("w/d7/e/.envrc", "evil");
    assert_eq!(world.told(&kept), ["removed d7/e/.envrc"]);
}

#[test]
fn a_repository_whose_files_lie_elsewhere_is_looked_through_too() {
    let world = World::new();
    world.write("w/.git/worktrees/t/commondir", "../..\n");
    let git = world.tree.join(".git").unwrap();
    let guard = Guard { repositories: vec![git.clone()], ..Guard::default() };
    let limits = Limits { write: vec![git], guard, ..Limits::default() };
    let kept = ProtectedState::look(&limits, Level::Landlock, world.how.clone());
    world.write("w/.git/config", "evil");
    world.write("w/.git/worktrees/t/commondir", "evil");
    world.write("w/.git/modules/m/hooks/post-checkout", "evil");
    world.write("w/.git/refs/heads/x", "fine");
    let mut told = world.told(&kept);
    told.sort();
    let wanted = [
        "removed .git/modules/m/hooks",
        "restored .git/config",
        "restored .git/worktrees/t/commondir",
    ];
    assert_eq!(told, wanted);
    assert_eq!(world.read("w/.git/refs/heads/x"), "fine");
}

#[test]
fn keys_at_any_depth_are_found_and_a_link_of_their_name_hides_nothing_else() {
    let world = World::new();
    for name in [
        ".netrc",
        "a/b/.netrc",
        "a/id_rsa/x",
        "a/.docker/config.json",
        "a/.docker/y",
        "kept/.netrc",
    ] {
        world.write(&format!("w/{name}"), "x");
    }
    world.write("w/plain", "x");
    for (name, target) in [
        ("l/id_rsa", "../plain"),
        ("m/id_rsa", "../a"),
        ("n/id_rsa", "/dev/null"),
        ("o/.netrc", "none"),
    ] {
        fs::create_dir_all(world.at("w").join(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, world.at("w").join(name)).unwrap();
    }
    let keys = [".netrc", "id_rsa", ".docker/config.json"].map(ToOwned::to_owned).to_vec();
    let known = vec![world.tree.join("kept/.netrc").unwrap()];
    let guard = Guard { folders: vec![world.tree.clone()], keys, known, ..Guard::default() };
    let found = || {
        let kept = world.look_with(&[], guard.clone(), Level::Namespaces);
        let below = |path: HostPath| {
            String::from_utf8_lossy(path.relative_to(&world.tree).unwrap()).into_owned()
        };
        let mut all: Vec<String> = kept.keys().map(below).collect();
        all.sort();
        all
    };
    let all = [".netrc", "a/.docker/config.json", "a/b/.netrc", "a/id_rsa", "plain"];
    assert_eq!(found(), all);
    // Nor is what was read before all that counts.
    assert_eq!(found(), all);
    world.write("w/a/.netrc", "x");
    assert_eq!(found().len(), all.len() + 1);
}

#[test]
fn where_folders_are_too_many_the_workspace_s_own_come_first_and_the_rest_is_told_once() {
    let world = World::new();
    world.write("w/src/a/b/c/.envrc", "mine");
    for package in 0..101 {
        for part in 0..200 {
            fs::create_dir_all(world.at(&format!("w/node_modules/p{package}/{part}"))).unwrap();
        }
    }
    let kept = world.deep(&[]);
    world.write("w/src/a/b/c/.envrc", "evil");
    world.write("w/src/a/b/c/d/e/.envrc", "evil");
    let why =
        "it has more folders than are looked through; what is protected deep in it may be changed";
    let told = [
        "removed src/a/b/c/d/e/.envrc".to_owned(),
        "restored src/a/b/c/.envrc".to_owned(),
        format!("unknown : {why}"),
    ];
    let mut found = world.told(&kept);
    found.sort();
    assert_eq!(found, told);
    assert_eq!(world.read("w/src/a/b/c/.envrc"), "mine");
    assert_eq!(world.told(&world.deep(&[])), [""; 0]);
}

#[test]
fn what_has_a_second_name_is_put_back_though_its_path_is_held() {
    let world = World::new();
    world.write("w/.mcp.json", "mine");
    fs::hard_link(world.at("w/.mcp.json"), world.at("w/other")).unwrap();
    let kept = world.look_held();
    world.write("w/other", "evil");
    assert_eq!(world.told(&kept), ["restored .mcp.json"]);
    assert_eq!(world.read("w/.mcp.json"), "mine");
}
