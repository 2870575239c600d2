//! Instruction files of a project: `AGENTS.md` and `CLAUDE.md` from the project root down to the
//! working folder, with the files that they import.
//!
//! **Invariant:** only regular files inside the project root that the rules let the agent read are
//! taken. Each is taken once, as text of bounded size. Whatever is left out is reported. An import
//! (`@path` alone on a line) cannot lead outside.

use std::{collections::HashSet, io::ErrorKind, str::Utf8Error};

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

/// Why a link or an import is not followed.
const OUTSIDE: &str = "it leads out of the project";
/// Most files of which it is told that they are left out.
const TOLD_MAX: usize = 20;

/// The instruction files of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The files in order, from the project root down.
    pub files: Vec<ContextFile>,
    /// Messages for the person: each file that is left out, wholly or in part, and why; at most 20.
    pub left_out: Vec<String>,
}

struct Reader<'a> {
    fs: &'a dyn Fs,
    root: &'a HostPath,
    /// The root with its links resolved.
    real_root: HostPath,
    allowed: &'a (dyn Fn(&HostPath) -> bool + Send + Sync),
    seen: HashSet<HostPath>,
    total: usize,
    found: Context,
}

/// Reads the context files of the folders from `root` down to `cwd`.
pub async fn context_files(
    host: &dyn Host,
    root: &HostPath,
    cwd: &HostPath,
    allowed: &(dyn Fn(&HostPath) -> bool + Send + Sync),
) -> Context {
    let mut folders: Vec<HostPath> = std::iter::successors(Some(cwd.clone()), HostPath::parent)
        .take_while(|folder| folder.is_within(root))
        .collect();
    folders.reverse();
    let Ok(found) = host.fs().locate(root, Follow::Yes).await else { return Context::default() };
    let mut reader = Reader {
        fs: host.fs(),
        root,
        real_root: found.real.clone(),
        allowed,
        seen: HashSet::new(),
        total: 0,
        found: Context::default(),
    };
    for folder in folders {
        for name in NAMES {
            if let Ok(path) = folder.join(name) {
                reader.take(path).await;
            }
        }
    }
    reader.found
}

impl Reader<'_> {
    /// Takes a file and everything that it imports, depth first.
    async fn take(&mut self, path: HostPath) {
        let mut open = vec![(path, 0)];
        while let Some((path, depth)) = open.pop() {
            if self.total >= ALL_MAX || self.found.files.len() >= FILES_MAX {
                return self.full(&path).await;
            }
            let Some((path, text, whole)) = self.read(&path).await else { continue };
            if !whole {
                self.leave(&path, "there is room for its beginning only");
            }
            if depth < DEPTH
                && let Some(folder) = path.parent()
            {
                let found = imports(&text, &folder);
                let (inside, outside): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|path| path.is_within(self.root));
                for path in &outside {
                    self.leave(path, OUTSIDE);
                }
                open.extend(inside.into_iter().rev().map(|path| (path, depth + 1)));
            }
            if self.found.files.iter().all(|file| file.text != text) {
                self.total += text.len();
                let path = path.shown_from(self.root).into_owned();
                self.found.files.push(ContextFile { path, text });
            }
        }
    }

    /// Tells that a file is left out.
    fn leave(&mut self, path: &HostPath, why: &str) {
        if self.found.left_out.len() < TOLD_MAX {
            let path = path.shown_from(self.root);
            let text = format!("{path} is left out of the project's instructions: {why}");
            self.found.left_out.push(text);
        }
    }

    /// Says once, in place of the first file that would be too much, that more is left out.
    async fn full(&mut self, path: &HostPath) {
        const TEXT: &str = "[this file and those after it are left out: there is no room for more]";
        let said = self.found.files.last().is_some_and(|file| file.text == TEXT);
        if !said && let Some((path, ..)) = self.read(path).await {
            self.leave(&path, "there is no room for it and those after it");
            let path = path.shown_from(self.root).into_owned();
            self.found.files.push(ContextFile { path, text: TEXT.to_owned() });
        }
    }

    /// The text of a file that may be taken, with its path below the root, links resolved, and
    /// whether that is all of it.
    async fn read(&mut self, path: &HostPath) -> Option<(HostPath, String, bool)> {
        let at = match self.fs.locate(path, Follow::Yes).await {
            Ok(at) => at,
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    self.leave(path, &error.to_string());
                }
                return None;
            }
        };
        if at.kind == FileKind::Missing {
            return None;
        }
        let below = at.real.relative_to(&self.real_root);
        let own = below.and_then(|below| self.root.join_bytes(below).ok());
        let allowed = |own| [path, own, &at.real].into_iter().all(|path| (self.allowed)(path));
        let refused = match &own {
            None => Some(OUTSIDE),
            Some(own) if !allowed(own) => Some("a rule keeps it from being read"),
            Some(_) if at.kind != FileKind::FILE => Some("it is no regular file"),
            Some(_) => None,
        };
        if let Some(why) = refused {
            self.leave(path, why);
            return None;
        }
        if !self.seen.insert(at.real.clone()) {
            return None;
        }
        // An even number: no unit of UTF-16 is cut.
        let most = FILE_MAX.min(ALL_MAX.saturating_sub(self.total)) & !1;
        let bytes = match self.fs.read(&at, 0, most).await {
            Ok(bytes) => bytes,
            Err(error) => {
                self.leave(path, &error.to_string());
                return None;
            }
        };
        let whole = at.size() <= bytes.len() as u64;
        let mut text = match haft_text::decode(if whole { &bytes } else { at_character(&bytes) }) {
            Ok(decoded) => decoded.text().to_owned(),
            Err(error) => {
                self.leave(path, &error.to_string());
                return None;
            }
        };
        if !whole {
            text.push_str("\n[the rest of this file is left out: read it when you need it]");
        }
        own.map(|own| (own, text, whole))
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
