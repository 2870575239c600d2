//! haft is ended in the middle of a change, or the disk fails it: every file is the old or the new
//! one, and the next start removes what was left.
//!
//! A test names a [`Story`]; how it is disturbed does not know what it does. Whatever changes files
//! can be told as one: the trees before and after an undisturbed run are all that is compared.

mod disk;
mod in_place;
mod kill;
mod race;
mod strace;
mod transaction;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use haft_types::Hash;
use serde_json::{Value, json};

use crate::world::{Ran, World};

/// One call, in a world that is made anew for every try.
pub struct Story {
    /// For messages.
    pub name: &'static str,
    /// Puts the files into the workspace.
    pub build: fn(&World),
    /// What haft is called with.
    pub arguments: Vec<String>,
}

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Folder,
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

/// Everything below a folder, by its relative path.
pub type Tree = BTreeMap<String, Item>;

/// The trees of the workspace without the call and with it.
pub struct Ends {
    pub before: Tree,
    pub after: Tree,
}

impl Story {
    /// `haft tool NAME` with these arguments of the tool.
    pub fn tool(name: &'static str, tool: &str, build: fn(&World), input: &Value) -> Self {
        let words = ["tool", tool, "--mode", "accept-edits", "--input"];
        let mut arguments: Vec<String> = words.map(str::to_owned).into();
        arguments.push(input.to_string());
        Self { name, build, arguments }
    }

    /// A world with its files.
    pub fn world(&self) -> World {
        let world = World::new();
        (self.build)(&world);
        world
    }

    /// Runs it undisturbed.
    pub fn run(&self, world: &World) -> Ran {
        world.run(&self.words())
    }

    pub fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    pub fn ends(&self) -> Ends {
        let world = self.world();
        let before = tree(&world.work());
        let ran = self.run(&world);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", self.name);
        let after = tree(&world.work());
        assert!(before != after, "{}: nothing was changed", self.name);
        assert_eq!(records(&world), 0, "{}: a clean end leaves no record", self.name);
        Ends { before, after }
    }
}

impl Ends {
    /// Judges what an ended haft left: every name stands for the old or the new thing, whole, and
    /// there is nothing else but temporary files, of which it gives the number.
    pub fn judge_left(&self, world: &World, told: &str) -> usize {
        let mut temporary = 0;
        let left = tree(&world.work());
        for (name, item) in &left {
            let own = Path::new(name).file_name().unwrap().to_string_lossy().into_owned();
            if own.starts_with(".haft-") && own.as_bytes().ends_with(b".tmp") {
                temporary += 1;
                continue;
            }
            let fits = [&self.before, &self.after].map(|tree| tree.get(name) == Some(item));
            assert!(fits.contains(&true), "{told}: {name} is neither old nor new: {item:?}");
        }
        for name in self.before.keys().filter(|name| self.after.contains_key(*name)) {
            assert!(left.contains_key(name), "{told}: {name} is gone");
        }
        temporary
    }

    /// Reports whether a part of the change was made and a part was not; call it before the next
    /// start.
    pub fn is_torn(&self, world: &World) -> bool {
        let mut left = tree(&world.work());
        left.retain(|name, _| self.before.contains_key(name) || self.after.contains_key(name));
        left != self.before && left != self.after
    }

    /// Starts haft again, and judges what is there then: all old or all new and nothing else.
    /// True when new.
    pub fn judge_next_start(&self, world: &World, told: &str) -> bool {
        let ran = world.run(&["tool", "ls"]);
        assert_eq!(ran.code, Some(0), "{told}: the next start fails: {ran:?}");
        let found = tree(&world.work());
        let is_new = found == self.after;
        assert!(is_new || found == self.before, "{told}: left after a start: {:?}", names(&found));
        assert_eq!(records(world), 0, "{told}: the record is still there");
        assert_eq!(journals(world), 0, "{told}: the journal is still there");
        let listed = world.run(&["session", "list"]);
        assert_eq!(listed.code, Some(0), "{told}: a log is torn: {listed:?}");
        is_new
    }
}

/// How many records of unfinished writes there are.
pub fn records(world: &World) -> usize {
    fs::read_dir(world.state().join("writing")).map_or(0, Iterator::count)
}

/// How many changes of several files were not brought to their end.
pub fn journals(world: &World) -> usize {
    fs::read_dir(world.state().join("journal")).map_or(0, Iterator::count)
}

pub fn names(tree: &Tree) -> Vec<&String> {
    tree.keys().collect()
}

/// Reads everything below a folder.
pub fn tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let item = if meta.is_symlink() {
                Item::Link(fs::read_link(&path).unwrap())
            } else if meta.is_dir() {
                folders.push(path.clone());
                Item::Folder
            } else {
                let mode = meta.permissions().mode() & 0o7777;
                Item::File { content: fs::read(&path).unwrap(), mode }
            };
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            tree.insert(name, item);
        }
    }
    tree
}

/// Shows what a test went through, in a run that shows output.
#[expect(clippy::print_stderr, reason = "there is nobody else to tell")]
pub fn report(text: &str) {
    eprintln!("{text}");
}

/// A count, multiplied for a soak.
pub fn times(count: u32) -> u32 {
    let factor = std::env::var("HAFT_TEST_COUNT_FACTOR").ok().and_then(|text| text.parse().ok());
    count * factor.unwrap_or(1_u32)
}

/// An edit of a file with rights of its own, through a link.
fn edit() -> Story {
    let build = |world: &World| {
        let file = world.file("sub/script.sh", "one\ntwo\nthree\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        world.file("sub/other.txt", "stays\n");
        symlink("sub/script.sh", world.work().join("link")).unwrap();
    };
    let input = json!({"path": "link", "edits": [{"old_text": "two", "new_text": "2"}]});
    Story::tool("edit", "edit", build, &input)
}

/// A write over a file.
fn write() -> Story {
    let build = |world: &World| drop(world.file("sub/file.txt", "old\n".repeat(5_000)));
    let input = json!({"path": "sub/file.txt", "content": "new\n".repeat(6_000)});
    Story::tool("write", "write", build, &input)
}

/// A write of a file that is not there, nor are the folders above it.
fn create() -> Story {
    let build = |world: &World| drop(world.file("sub/other.txt", "stays\n"));
    let input = json!({"path": "sub/made/by it/all/new.txt", "content": "new\n"});
    Story::tool("create", "write", build, &input)
}

/// A change of one cell of a notebook that is known by its hash.
fn notebook() -> Story {
    const CELLS: &str = concat!(
        "{\r\n \"cells\": [{\"cell_type\": \"code\", \"id\": \"one\", \"metadata\": {},",
        " \"outputs\": [7], \"source\": [\"alpha\"]}],\r\n \"nbformat\": 4,",
        " \"nbformat_minor\": 5}",
    );
    let build = |world: &World| {
        let file = world.file("sub/a.ipynb", CELLS);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    };
    let input = json!({"path": "sub/a.ipynb", "cell_id": "one", "new_source": "beta",
                       "expect": Hash::of(CELLS.as_bytes())});
    Story::tool("notebook", "notebook_edit", build, &input)
}

/// A file with rights of its own is moved into a folder that is made for it.
fn moved() -> Story {
    let input = json!({"files": [{"path": "sub/script.sh", "move_to": "sub/made/new.sh"}]});
    Story::tool("move", "edit", edit().build, &input)
}

/// The same with an edit.
fn moved_and_edited() -> Story {
    let edits = json!([{"old_text": "two", "new_text": "2"}]);
    let entry = json!({"path": "sub/script.sh", "move_to": "sub/made/new.sh", "edits": edits});
    Story::tool("move and edit", "edit", edit().build, &json!({"files": [entry]}))
}
