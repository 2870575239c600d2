//! Reads instruction files, each once, with what they import.
//!
//! **Invariant:** nothing is opened before the rules let its written and its real path be read. Of
//! no file more is read than there is room for at all.

use std::{io::ErrorKind, str::Utf8Error};

use haft_host::{FileKind, ListHow, Located};
use haft_types::{EntryKind, Follow, HostPath};

use super::{
    Answer, FILES_MAX, Instruction, Instructions, Memory, Outside, Places, ReadFiles, Rule,
    TOLD_MAX, Why, fit, front_matter, mark, markdown,
};

/// Names of a folder's shared instructions, best first: one of them is taken.
const SHARED: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];
/// Names of further files of a folder. All are taken.
const FURTHER: [(&str, Memory); 3] = [
    ("CLAUDE.md", Memory::Project),
    (".claude/CLAUDE.md", Memory::Project),
    ("CLAUDE.local.md", Memory::Local),
];
/// Folders of rules.
const RULES: [&str; 2] = [".haft/rules", ".claude/rules"];
/// Deepest chain of imports.
const DEPTH: usize = 4;
/// Deepest folder of rules.
const RULE_DEPTH: usize = 4;
/// Most names in a folder of rules.
const RULE_NAMES: usize = 500;
/// Most files of rules.
const RULES_MAX: usize = 200;

/// Bytes that are read of a file whatever room is left.
const READ: usize = 32 << 10;

/// Why a link is not followed.
const OUTSIDE: &str = "it leads out of the project";

pub(super) struct Reader<'a> {
    places: Places<'a>,
    /// The root, and each further folder, with links resolved; none where it is not there.
    real: Vec<(HostPath, HostPath)>,
    room: usize,
    /// Whether it was told that there are too many files.
    is_full: bool,
    seen: ReadFiles,
    found: Instructions,
}

/// A file that is to be read.
struct FileRequest {
    path: HostPath,
    memory: Memory,
    why: Why,
    depth: usize,
    /// Whether it may lie outside of the project: a file of the person, or one that was let in.
    is_free: bool,
    /// Whether what it imports may, too, as long as that lies in the home folder.
    passes: bool,
}

/// A text that was read, and how many bytes of the file behind it were not.
struct Text {
    at: HostPath,
    shown: String,
    words: String,
    more: u64,
}

impl<'a> Reader<'a> {
    pub async fn new(places: Places<'a>, room: usize, seen: ReadFiles) -> Self {
        let mut real = Vec::new();
        for root in std::iter::once(places.root).chain(places.further) {
            if let Ok(found) = places.host.fs().locate(root, Follow::Yes).await {
                real.push((root.clone(), found.real));
            }
        }
        Self { places, real, room, is_full: false, seen, found: Instructions::default() }
    }

    /// What was found, within the room, and what was seen.
    pub fn found(mut self, room: usize) -> (Instructions, ReadFiles) {
        // Marks of what is cut take room, too; a text that is cut for that brings another one.
        let mut least = room;
        for _ in 0..FILES_MAX {
            fit(&mut self.found, least);
            let cut = self.found.files.iter().filter(|file| file.left_out > 0);
            let all = self.found.bytes() + cut.map(|file| mark(file).len()).sum::<usize>();
            if all <= room || least == 0 {
                break;
            }
            least = least.saturating_sub(all - room);
        }
        let mut cut = Vec::new();
        for file in self.found.files.iter_mut().filter(|file| file.left_out > 0) {
            let marked = mark(file);
            file.text.push_str(&marked);
            cut.push(format!(
                "{} bytes of {} are left out of the instructions: there was room for {room} bytes \
                 of what was read with it; instructions.bytes in the settings sets how many all of \
                 them have",
                file.left_out, file.path
            ));
        }
        for text in cut {
            self.tell(text);
        }
        (self.found, self.seen)
    }

    /// Takes one of the files of these names, and the rules, of a folder of the person.
    pub async fn user(&mut self, folder: &HostPath, names: &[&str]) {
        for name in names {
            let Ok(path) = folder.join(name) else { continue };
            let wanted = free(path, Memory::User, Why::Start);
            if self.take(FileRequest { passes: true, ..wanted }).await {
                break;
            }
        }
        if let Ok(rules) = folder.join("rules") {
            self.rules(&rules, self.places.root.clone(), &Why::Start, Memory::User).await;
        }
    }

    /// Takes the files of a folder of the project.
    pub async fn folder(&mut self, folder: &HostPath, why: &Why) {
        for (at, name) in SHARED.into_iter().enumerate() {
            let Ok(path) = folder.join(name) else { continue };
            if self.take(project(path, Memory::Project, why.clone())).await {
                for other in &SHARED[at + 1..] {
                    self.replace(folder, other).await;
                }
                break;
            }
        }
        for (name, memory) in FURTHER {
            if let Ok(path) = folder.join(name) {
                self.take(project(path, memory, why.clone())).await;
            }
        }
        for name in RULES {
            if let Ok(rules) = folder.join(name) {
                self.rules(&rules, folder.clone(), why, Memory::Project).await;
            }
        }
    }

    /// Takes a file for read that another one replaces, whatever else names it.
    async fn replace(&mut self, folder: &HostPath, name: &str) {
        let Ok(path) = folder.join(name) else { return };
        let wanted = project(path, Memory::Project, Why::Start);
        if let Some(text) = self.read(&wanted).await {
            self.seen.note(text.at, &text.words);
        }
    }

    /// Takes a file that a person let in.
    pub async fn imported(&mut self, outside: &Outside) {
        let why = Why::Import { of: outside.of.clone() };
        self.take(free(outside.path.clone(), outside.memory, why)).await;
    }

    /// Takes a file and everything that it imports, depth first; whether there was such a file.
    async fn take(&mut self, wanted: FileRequest) -> bool {
        let mut first = None;
        let mut open = vec![wanted];
        while let Some(wanted) = open.pop() {
            if self.found.files.len() >= FILES_MAX {
                self.full(&wanted.path).await;
                break;
            }
            let read = self.read(&wanted).await;
            let is_there = read.as_ref().is_some_and(|text| !text.words.trim().is_empty());
            first.get_or_insert(is_there);
            if let Some(text) = read.filter(|_| is_there) {
                let imports = self.add(wanted, text).await;
                open.extend(imports.into_iter().rev());
            }
        }
        first.unwrap_or_default()
    }

    /// Adds a file; gives what it imports.
    async fn add(&mut self, wanted: FileRequest, read: Text) -> Vec<FileRequest> {
        let FileRequest { path, memory, why, depth, passes, .. } = wanted;
        let Text { at, shown, words, more } = read;
        let (text, imports) = markdown::read(&words);
        let text = text.trim_end().to_owned();
        if self.knows(&text) || text.is_empty() {
            return Vec::new();
        }
        self.seen.note(at.clone(), &text);
        let Some(folder) = path.parent() else { return Vec::new() };
        // What a project says leads nowhere by itself.
        let passes = passes && self.inside(&at).is_none();
        let mut wanted = Vec::new();
        for import in imports {
            let Some(path) = self.named(&folder, &import).await else { continue };
            if depth == DEPTH {
                self.leave(&path, &format!("it is imported over more than {DEPTH} files"));
                continue;
            }
            let why = Why::Import { of: shown.clone() };
            let depth = depth + 1;
            wanted.push(FileRequest { path, memory, why, depth, is_free: passes, passes });
        }
        self.found.files.push(Instruction { at, path: shown, text, memory, why, left_out: more });
        wanted
    }

    /// Tells once, of the first file that is one too many, that it and those after it are left out.
    async fn full(&mut self, path: &HostPath) {
        let at = self.places.host.fs().locate(path, Follow::Yes).await;
        if !self.is_full && at.is_ok_and(|at| at.kind != FileKind::Missing) {
            self.is_full = true;
            let why = format!("{FILES_MAX} files are the most, so those after it are, too");
            self.leave(path, &why);
        }
    }

    fn knows(&self, text: &str) -> bool {
        self.seen.texts.contains(&haft_types::Hash::of(text.trim().as_bytes()))
    }

    /// The path of an import that is there, or that something else is wrong with.
    async fn named(&self, folder: &HostPath, import: &markdown::Import) -> Option<HostPath> {
        let mut named = None;
        for path in std::iter::once(&import.path).chain(&import.bare) {
            let path = match path.strip_prefix("~/") {
                Some(below) => self.places.home.join(below),
                None => folder.join(path),
            };
            let Ok(path) = path else { continue };
            match self.places.host.fs().locate(&path, Follow::Yes).await {
                Ok(at) if at.kind == FileKind::Missing => {}
                Ok(_) => return Some(path),
                Err(error) if is_absent(error.kind()) => {}
                Err(_) => named = Some(path),
            }
        }
        named
    }

    /// Takes the rules of a folder: at once, or later where they name globs.
    async fn rules(&mut self, folder: &HostPath, base: HostPath, why: &Why, memory: Memory) {
        let mut open = vec![(folder.clone(), 0)];
        let mut names = RULE_NAMES;
        while let Some((folder, depth)) = open.pop() {
            let fs = self.places.host.fs();
            let Ok(at) = fs.locate(&folder, Follow::Yes).await else { continue };
            if at.kind != FileKind::FOLDER {
                continue;
            }
            if memory != Memory::User && self.inside(&at.real).is_none() {
                self.leave(&folder, OUTSIDE);
                continue;
            }
            let how = ListHow { limit: names, stat: false };
            let Ok(listing) = fs.list(&at, how).await else { continue };
            names -= listing.entries.len().min(names);
            if names == 0 || depth > RULE_DEPTH {
                self.leave(&folder, "there are too many rules, or too many folders of them");
                return;
            }
            let mut folders = Vec::new();
            for entry in listing.entries {
                let Ok(path) = folder.join_bytes(&entry.name) else { continue };
                if entry.kind == EntryKind::Folder {
                    folders.push((path, depth + 1));
                } else if entry.name.ends_with(b".md") {
                    self.rule(path, &base, why, memory).await;
                }
            }
            open.extend(folders.into_iter().rev());
        }
    }

    async fn rule(&mut self, path: HostPath, base: &HostPath, why: &Why, memory: Memory) {
        let is_free = memory == Memory::User;
        let passes = is_free;
        let wanted =
            FileRequest { path: path.clone(), memory, why: why.clone(), depth: 0, is_free, passes };
        let Some(read) = self.read(&wanted).await else { return };
        let (globs, body) = front_matter::parted(&read.words);
        let globs = globs.unwrap_or_else(|why| {
            self.tell(format!("{}: {why}: it counts for every file", read.shown));
            Vec::new()
        });
        let words = body.trim().to_owned();
        let read = Text { words, ..read };
        if read.words.is_empty() {
            return;
        }
        if !globs.is_empty() {
            if self.found.rules.len() >= RULES_MAX {
                return self.leave(&path, &format!("{RULES_MAX} rules with paths are the most"));
            }
            let Text { at, shown, words: text, more } = read;
            let (path, left_out) = (shown, more);
            let file = Instruction { at, path, text, memory, why: Why::Start, left_out };
            self.found.rules.push(Rule { file, globs, base: base.clone() });
            return;
        }
        if self.found.files.len() >= FILES_MAX {
            return self.full(&path).await;
        }
        for wanted in self.add(wanted, read).await {
            self.take(wanted).await;
        }
    }

    /// Takes a rule whose time has come.
    pub async fn due(&mut self, rule: &Rule, why: Why) {
        let Rule { file, .. } = rule;
        let is_free = file.memory == Memory::User;
        let wanted = FileRequest {
            path: file.at.clone(),
            memory: file.memory,
            why,
            depth: 0,
            is_free,
            passes: is_free,
        };
        let (at, shown, text) = (file.at.clone(), file.path.clone(), file.text.clone());
        let read = Text { at, shown, words: text, more: file.left_out };
        for wanted in self.add(wanted, read).await {
            self.take(wanted).await;
        }
    }

    fn tell(&mut self, text: String) {
        if self.found.left_out.len() < TOLD_MAX {
            self.found.left_out.push(text);
        }
    }

    /// Tells that a file is left out.
    fn leave(&mut self, path: &HostPath, why: &str) {
        let path = self.shown(path);
        self.tell(format!("{path} is left out of the instructions: {why}"));
    }

    /// A path as model and people see it: below the project, else below the home folder.
    fn shown(&self, path: &HostPath) -> String {
        let Places { root, home, .. } = self.places;
        match path.relative_to(home) {
            Some(_) if path.is_within(root) => path.shown_from(root).into_owned(),
            Some(b"") | None => path.shown_from(root).into_owned(),
            Some(_) => format!("~/{}", path.shown_from(home)),
        }
    }

    /// The path below the project, or a further folder, of what really is there; none outside.
    fn inside(&self, real: &HostPath) -> Option<HostPath> {
        self.real.iter().find_map(|(written, root)| {
            let below = real.relative_to(root)?;
            if below.is_empty() { Some(written.clone()) } else { written.join_bytes(below).ok() }
        })
    }

    /// The text of a file that may be read and was not yet.
    async fn read(&mut self, wanted: &FileRequest) -> Option<Text> {
        let path = &wanted.path;
        let at = match self.places.host.fs().locate(path, Follow::Yes).await {
            Ok(at) => at,
            Err(error) => {
                if !is_absent(error.kind()) {
                    self.leave(path, &error.to_string());
                }
                return None;
            }
        };
        if at.kind == FileKind::Missing || self.seen.at.contains(&at.real) {
            return None;
        }
        let own = self.inside(&at.real);
        if let Err(why) = self.judge(wanted, &at, own.as_ref()) {
            if !why.is_empty() {
                self.leave(path, why);
            }
            return None;
        }
        let shown = self.shown(own.as_ref().unwrap_or(path));
        let (text, more, is_damaged) = match self.text(&at).await {
            Ok(read) => read,
            Err(why) => {
                self.leave(path, &why);
                return None;
            }
        };
        if is_damaged {
            self.tell(format!("{shown}: some of its bytes are no UTF-8; the rest of it counts"));
        }
        Some(Text { at: at.real, shown, words: text, more })
    }

    /// Whether a file may be read; the reason is empty where a person is asked first.
    fn judge(
        &mut self,
        wanted: &FileRequest,
        at: &Located,
        own: Option<&HostPath>,
    ) -> Result<(), &'static str> {
        let Places { allowed, barred, answer, home, .. } = self.places;
        let path = &wanted.path;
        let names = || [Some(path), own, Some(&at.real)].into_iter().flatten();
        let imports = matches!(wanted.why, Why::Import { .. });
        if imports && let Some(what) = names().find_map(barred) {
            return Err(what);
        }
        if !names().all(allowed) {
            return Err("a rule keeps it from being read");
        }
        // A file of the person may lead to others in the home folder.
        let is_free = wanted.is_free && (!imports || at.real.is_within(home) || wanted.depth == 0);
        if own.is_none() && !is_free {
            if !imports {
                return Err(OUTSIDE);
            }
            match answer(&at.real) {
                Answer::Yes => {}
                Answer::No => return Err("you said that it does not count"),
                Answer::Unasked => {
                    if at.kind == FileKind::FILE {
                        self.ask(wanted, at);
                        return Err("");
                    }
                }
            }
        }
        match at.kind {
            FileKind::FILE => Ok(()),
            FileKind::FOLDER => Err("it is a folder"),
            _ => Err("it is no regular file"),
        }
    }

    /// Notes a file that a person has to be asked about.
    fn ask(&mut self, wanted: &FileRequest, at: &Located) {
        let Why::Import { of } = &wanted.why else { return };
        let known = self.found.outside.iter().any(|outside| outside.at == at.real);
        if !known && self.found.outside.len() < TOLD_MAX {
            let (at, path, memory) = (at.real.clone(), wanted.path.clone(), wanted.memory);
            self.found.outside.push(Outside { at, path, of: of.clone(), memory });
        }
    }

    /// The text of a file as far as there is room, how many of its bytes stay behind, and whether
    /// some are no text.
    async fn text(&self, at: &Located) -> Result<(String, u64, bool), String> {
        // More than there is room for shows whether it is a copy. An even number: no unit of UTF-16 is
        // cut.
        let most = (self.room.max(READ) + 2) & !1;
        let read = self.places.host.fs().read(at, 0, most).await;
        let bytes = read.map_err(|error| error.to_string())?;
        let more = at.size().saturating_sub(bytes.len() as u64);
        let whole = if more == 0 { &bytes[..] } else { at_character(&bytes) };
        let decoded = haft_text::decode(whole).map_err(|error| error.to_string())?;
        Ok((decoded.text().to_owned(), more, !decoded.holes().is_empty()))
    }
}

/// A file of the project.
const fn project(path: HostPath, memory: Memory, why: Why) -> FileRequest {
    FileRequest { path, memory, why, depth: 0, is_free: false, passes: false }
}

/// A file that may lie anywhere.
const fn free(path: HostPath, memory: Memory, why: Why) -> FileRequest {
    FileRequest { path, memory, why, depth: 0, is_free: true, passes: false }
}

const fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Takes away the character that a cut at the end of `bytes` split.
fn at_character(bytes: &[u8]) -> &[u8] {
    let split = |error: &Utf8Error| error.error_len().is_none();
    match std::str::from_utf8(bytes) {
        Err(error) if split(&error) => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}
