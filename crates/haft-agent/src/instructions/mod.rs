//! Instruction files: `AGENTS.md`, `CLAUDE.md` and rules, of the person and of a project.
//!
//! What is there is found by folder, from the most general to the nearest. Each file is read with
//! the files that it imports, and each once, by its identity and by its text.
//!
//! **Invariant:** only regular files that the rules let the agent read are taken, as text of
//! bounded size. An import leads out of the project only where a person said so. Whatever is left
//! out is reported.
//!
//! **Does not know:** globs: who asks for rules by path compares them.

mod front_matter;
mod markdown;
mod reader;

use std::collections::HashSet;

use haft_host::Host;
use haft_types::{Hash, HostPath};
use serde::{Deserialize, Serialize};

use self::reader::Reader;
use crate::prompt::{ContextFile, share};

/// Most files.
const FILES_MAX: usize = 50;
/// Most files of which it is told that they are left out.
const TOLD_MAX: usize = 20;

/// Whose instructions a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// The person's, for all projects.
    User,
    /// The project's.
    Project,
    /// The person's for this project.
    Local,
}

/// Why a file was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It counts from the start.
    Start,
    /// Another file imports it.
    Import {
        /// That file, as shown.
        of: String,
    },
    /// Something in its folder or below was touched.
    Touch {
        /// What, as shown.
        of: String,
    },
    /// Something that its globs name was touched.
    Rule {
        /// What, as shown.
        of: String,
        /// The globs.
        globs: Vec<String>,
    },
}

/// An instruction file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it is, links resolved.
    pub at: HostPath,
    /// The path as the model and people see it.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Whose it is.
    pub memory: Memory,
    /// Why it was read.
    pub why: Why,
    /// How many of its bytes are left out.
    pub left_out: u64,
}

/// A rule that counts once something that its globs name is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The file.
    pub file: Instruction,
    /// What has to be touched.
    pub globs: Vec<String>,
    /// The folder from which the globs count.
    pub base: HostPath,
}

/// An import that leads out of the project, and that nobody was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Where it leads, links resolved.
    pub at: HostPath,
    /// The path as the file has it.
    pub path: HostPath,
    /// The file that imports it, as shown.
    pub of: String,
    /// Whose that file is.
    pub memory: Memory,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// What counts, in order.
    pub files: Vec<Instruction>,
    /// What counts later.
    pub rules: Vec<Rule>,
    /// What a person has to be asked about.
    pub outside: Vec<Outside>,
    /// Messages for the person: each file that is left out, wholly or in part, and why; at most 20.
    pub left_out: Vec<String>,
}

impl Instructions {
    /// The files as the system prompt has them.
    pub fn context(&self) -> Vec<ContextFile> {
        let files = self.files.iter();
        files.map(|file| ContextFile { path: file.path.clone(), text: file.text.clone() }).collect()
    }

    /// How many bytes of text the files have.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }
}

/// Files that were read already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFiles {
    /// By where they are, links resolved.
    at: HashSet<HostPath>,
    /// By their texts.
    texts: HashSet<Hash>,
}

impl ReadFiles {
    /// Reports whether the file at this place was read.
    pub fn has(&self, at: &HostPath) -> bool {
        self.at.contains(at)
    }

    /// Takes the file at this place as read.
    pub fn note_place(&mut self, at: HostPath) {
        self.at.insert(at);
    }

    /// Takes a file as read.
    pub fn note(&mut self, at: HostPath, text: &str) {
        self.at.insert(at);
        self.texts.insert(Hash::of(text.trim().as_bytes()));
    }
}

/// What a person or a rule says about a file outside of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may be read.
    Yes,
    /// It may not.
    No,
    /// Nobody was asked.
    Unasked,
}

/// Where instruction files are looked for, and what of them may be read.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// Where the files are.
    pub host: &'a dyn Host,
    /// The root of the project.
    pub root: &'a HostPath,
    /// Folders beside it whose files count when they are touched.
    pub further: &'a [HostPath],
    /// The home folder, for `~`.
    pub home: &'a HostPath,
    /// Whether the rules let the agent read a path.
    pub allowed: &'a (dyn Fn(&HostPath) -> bool + Send + Sync),
    /// Why no import may lead to a path; none where one may.
    pub barred: &'a (dyn Fn(&HostPath) -> Option<&'static str> + Send + Sync),
    /// The answer about a path outside of the project.
    pub answer: &'a (dyn Fn(&HostPath) -> Answer + Send + Sync),
}

/// A file of the person that counts in every project, or a folder with rules of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFolder {
    /// The folder.
    pub folder: HostPath,
    /// The names of files in it, best first: one of them is taken.
    pub names: &'static [&'static str],
}

/// Reads what counts from the start: the person's files, then those of the folders from the root
/// of the project down to `cwd`. Together they have at most `room` bytes.
pub async fn at_start(
    places: Places<'_>,
    user: &[UserFolder],
    cwd: &HostPath,
    room: usize,
) -> (Instructions, ReadFiles) {
    let mut reader = Reader::new(places, room, ReadFiles::default()).await;
    for UserFolder { folder, names } in user {
        reader.user(folder, names).await;
    }
    for folder in chain(places.root, cwd) {
        reader.folder(&folder, &Why::Start).await;
    }
    reader.found(room)
}

/// The folders from `root` down to `folder`; none where it lies elsewhere.
pub fn chain(root: &HostPath, folder: &HostPath) -> Vec<HostPath> {
    let above = std::iter::successors(Some(folder.clone()), HostPath::parent);
    let mut folders: Vec<HostPath> = above.take_while(|one| one.is_within(root)).collect();
    folders.reverse();
    folders
}

/// Reads what counts once something in one of these folders is touched.
pub async fn in_folders(
    places: Places<'_>,
    folders: &[HostPath],
    touched: &str,
    (room, seen): (usize, ReadFiles),
) -> (Instructions, ReadFiles) {
    let mut reader = Reader::new(places, room, seen).await;
    for folder in folders {
        reader.folder(folder, &Why::Touch { of: touched.to_owned() }).await;
    }
    reader.found(room)
}

/// Takes a rule whose time has come, with what it imports.
pub async fn by_rule(
    places: Places<'_>,
    rule: &Rule,
    why: Why,
    (room, seen): (usize, ReadFiles),
) -> (Instructions, ReadFiles) {
    let mut reader = Reader::new(places, room, seen).await;
    reader.due(rule, why).await;
    reader.found(room)
}

/// Reads a file outside of the project that a person let in, with what it imports.
pub async fn let_in(
    places: Places<'_>,
    outside: &Outside,
    (room, seen): (usize, ReadFiles),
) -> (Instructions, ReadFiles) {
    let mut reader = Reader::new(places, room, seen).await;
    reader.imported(outside).await;
    reader.found(room)
}

/// Cuts files so that together they have at most `room` bytes: each has what it needs, up to a size
/// that is the same for all.
fn fit(found: &mut Instructions, room: usize) {
    let needs: Vec<(usize, usize)> = found.files.iter().map(|file| (file.text.len(), 0)).collect();
    let share = share(&needs, room);
    for file in found.files.iter_mut().filter(|file| file.text.len() > share) {
        let end = file.text.floor_char_boundary(share);
        file.left_out += (file.text.len() - end) as u64;
        file.text.truncate(end);
    }
}

/// The mark of a file that is not whole, for the model.
fn mark(file: &Instruction) -> String {
    format!("\n[{} bytes more are left out here: read {} for all of it]", file.left_out, file.path)
}
