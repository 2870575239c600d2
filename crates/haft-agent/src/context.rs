//! Files of instructions that a project brings along: `AGENTS.md` and `CLAUDE.md` from the project
//! root down to the working folder, with what they import.
//!
//! **Invariant:** only regular files inside the project root that the rules let the agent read are
//! taken, each once, in bounded size; what was left out is said in its place. An import (`@path`
//! alone on a line) cannot lead outside.

use std::{collections::HashSet, str::Utf8Error};

use haft_host::{FileKind, Fs, Host};
use haft_types::{Follow, HostPath};

use crate::prompt::ContextFile;

/// Names that are looked for, best first: of two in one folder with the same text, one is taken.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Most bytes of one file.
const FILE_MAX: usize = 40 << 10;
/// Most bytes of all files.
const ALL_MAX: usize = 120 << 10;
/// Most files.
const FILES_MAX: usize = 50;
/// Deepest chain of imports.
const DEPTH: usize = 5;

struct Reader<'a> {
    fs: &'a dyn Fs,
    root: &'a HostPath,
    /// The root with its links resolved.
    real_root: HostPath,
    allowed: &'a (dyn Fn(&HostPath) -> bool + Send + Sync),
    seen: HashSet<HostPath>,
    total: usize,
    files: Vec<ContextFile>,
}

/// Reads the context files of the folders from `root` down to `cwd`.
pub async fn context_files(
    host: &dyn Host,
    root: &HostPath,
    cwd: &HostPath,
    allowed: &(dyn Fn(&HostPath) -> bool + Send + Sync),
) -> Vec<ContextFile> {
    let mut folders: Vec<HostPath> = std::iter::successors(Some(cwd.clone()), HostPath::parent)
        .take_while(|folder| folder.is_within(root))
        .collect();
    folders.reverse();
    let Ok(found) = host.fs().locate(root, Follow::Yes).await else { return Vec::new() };
    let mut reader = Reader {
        fs: host.fs(),
        root,
        real_root: found.real.clone(),
        allowed,
        seen: HashSet::new(),
        total: 0,
        files: Vec::new(),
    };
    for folder in folders {
        for name in NAMES {
            if let Ok(path) = folder.join(name) {
                reader.take(path).await;
            }
        }
    }
    reader.files
}

impl Reader<'_> {
    /// Takes a file and everything that it imports, depth first.
    async fn take(&mut self, path: HostPath) {
        let mut open = vec![(path, 0)];
        while let Some((path, depth)) = open.pop() {
            if self.total >= ALL_MAX || self.files.len() >= FILES_MAX {
                return self.full(&path).await;
            }
            let Some((path, text)) = self.read(&path).await else { continue };
            if depth < DEPTH
                && let Some(folder) = path.parent()
            {
                let mut found = imports(&text, &folder);
                found.retain(|path| path.is_within(self.root));
                open.extend(found.into_iter().rev().map(|path| (path, depth + 1)));
            }
            if self.files.iter().all(|file| file.text != text) {
                self.total += text.len();
                let path = path.shown_from(self.root).into_owned();
                self.files.push(ContextFile { path, text });
            }
        }
    }

    /// Says once, in place of the first file that would be too much, that more is left out.
    async fn full(&mut self, path: &HostPath) {
        const TEXT: &str = "[this file and those after it are left out: there is no room for more]";
        let said = self.files.last().is_some_and(|file| file.text == TEXT);
        if !said && let Some((path, _)) = self.read(path).await {
            let path = path.shown_from(self.root).into_owned();
            self.files.push(ContextFile { path, text: TEXT.to_owned() });
        }
    }

    /// The text of a file that may be taken, with its path below the root, links resolved.
    async fn read(&mut self, path: &HostPath) -> Option<(HostPath, String)> {
        let at = self.fs.locate(path, Follow::Yes).await.ok()?;
        let below = at.real.relative_to(&self.real_root)?;
        let own = self.root.join_bytes(below).ok()?;
        let mine = at.kind == FileKind::FILE
            && [path, &own, &at.real].into_iter().all(|path| (self.allowed)(path));
        if !mine || !self.seen.insert(at.real.clone()) {
            return None;
        }
        let most = FILE_MAX.min(ALL_MAX.saturating_sub(self.total));
        let bytes = self.fs.read(&at, 0, most).await.ok()?;
        let whole = at.size() <= bytes.len() as u64;
        let bytes = if whole { &bytes[..] } else { at_character(&bytes) };
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if !whole {
            text.push_str("\n[the rest of this file is left out: read it when you need it]");
        }
        Some((own, text))
    }
}

/// Takes away the character that a cut at the end of `bytes` split.
fn at_character(bytes: &[u8]) -> &[u8] {
    let split = |error: &Utf8Error| error.error_len().is_none();
    match std::str::from_utf8(bytes) {
        Err(error) if split(&error) => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Paths of lines that are nothing but `@path`, outside fenced code.
fn imports(text: &str, folder: &HostPath) -> Vec<HostPath> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        fenced ^= line.starts_with("```");
        if let Some(name) = line.strip_prefix('@').filter(|name| !fenced && !name.is_empty())
            && !name.contains(char::is_whitespace)
            && let Ok(path) = folder.join(name)
        {
            found.push(path);
        }
    }
    found
}
