//! What a walk leaves out: globs, types, hidden names and ignore files, with ripgrep's semantics.
//!
//! **Invariant:** the order of precedence is ripgrep's: globs of the query, `.rgignore`, `.ignore`,
//! `.gitignore`, `.git/info/exclude`, the user's global excludes, types, hidden names. Within one
//! kind, the nearest folder wins. This module reads nothing: the caller passes in the contents of
//! ignore files.
//!
//! It differs from ripgrep in two points. An ignore file that is a symbolic link is not read (git
//! does not read it either). Only the first [`IGNORE_LIMIT`] bytes of an ignore file count.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use globset::{Glob, GlobBuilder, GlobSet};
use haft_text::names::{composed, composed_path};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
    overrides::{Override, OverrideBuilder},
    types::{FileTypeDef, Types, TypesBuilder},
};

use crate::{FindQuery, GrepQuery, SearchError};

/// Bytes of one ignore file that are looked at.
pub(crate) const IGNORE_LIMIT: usize = 1 << 20;

/// Most globs of one search.
const GLOBS: usize = 100;
/// Longest glob, in bytes.
const GLOB_LENGTH: usize = 4 << 10;

/// The ignore files of a folder, strongest first: the path of each below the folder.
pub(crate) const IGNORE_FILES: [&[&[u8]]; 4] =
    [&[b".rgignore"], &[b".ignore"], &[b".gitignore"], &[b".git", b"info", b"exclude"]];

/// Where those that git knows begin in [`IGNORE_FILES`].
const GIT_FILES: usize = 2;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is walked.
    Taken,
    /// An ignore file names it.
    Ignored,
    /// It is hidden, or the query's globs and types do not want it.
    Unwanted,
}

/// The ignore files of one folder.
#[derive(Clone, Debug)]
struct Level {
    /// Where names below this folder begin in a path.
    offset: usize,
    sets: [Option<Gitignore>; IGNORE_FILES.len()],
}

/// What the query wants, and the ignore files from the topmost folder to the present one.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub(crate) struct Rules {
    globs: Override,
    /// Whether these are compared with composed names (NFC): one of them is not ASCII.
    composed: bool,
    types: Types,
    hidden: bool,
    ignore: bool,
    /// Whether the ignore files count that git knows nothing of.
    beyond_git: bool,
    global: Option<Gitignore>,
    levels: Vec<Level>,
}

impl Rules {
    /// Leaves out what git would, and nothing else.
    pub(crate) fn git() -> Self {
        let hidden = FindQuery { hidden: true, ..FindQuery::default() };
        Self { beyond_git: false, ..Self::find(&hidden) }
    }

    /// Rules of a search for lines.
    pub(crate) fn grep(query: &GrepQuery) -> Result<Self, SearchError> {
        if query.globs.len() > GLOBS {
            let count = query.globs.len();
            let text = format!("{count} globs were given; at most {GLOBS} are taken: join some");
            return Err(SearchError::Glob(text));
        }
        let mut globs = OverrideBuilder::new("");
        for glob in &query.globs {
            check_glob(glob.strip_prefix('!').unwrap_or(glob))?;
            globs
                .add(&composed(glob))
                .map_err(|e| SearchError::Glob(format!("glob {glob:?}: {e}")))?;
        }
        let globs = globs.build().map_err(|e| SearchError::Glob(format!("globs: {e}")))?;
        Ok(Self {
            globs,
            composed: query.globs.iter().any(|glob| !glob.is_ascii()),
            types: types(&query.types)?,
            hidden: query.hidden,
            ignore: !query.no_ignore,
            beyond_git: true,
            global: None,
            levels: Vec::new(),
        })
    }

    /// Rules of a search for names.
    pub(crate) fn find(query: &FindQuery) -> Self {
        Self {
            globs: Override::empty(),
            composed: false,
            types: Types::empty(),
            hidden: query.hidden,
            ignore: !query.no_ignore,
            beyond_git: true,
            global: None,
            levels: Vec::new(),
        }
    }

    /// Reports whether ignore files count.
    pub(crate) const fn reads_ignore_files(&self) -> bool {
        self.ignore
    }

    /// Reports whether the ignore file at this place in [`IGNORE_FILES`] counts.
    pub(crate) const fn reads(&self, which: usize) -> bool {
        self.ignore && (self.beyond_git || which >= GIT_FILES)
    }

    /// Adds the user's own excludes, weaker than every ignore file; they count from the root of the
    /// walk on, as with ripgrep when it runs there.
    pub(crate) fn set_global(&mut self, text: &[u8]) {
        self.global = parse(text);
    }

    /// Enters a folder whose names begin at `offset` in paths.
    pub(crate) fn push(&mut self, offset: usize) {
        self.levels.push(Level { offset, sets: [const { None }; IGNORE_FILES.len()] });
    }

    /// Leaves the folder that was entered last.
    pub(crate) fn pop(&mut self) {
        self.levels.pop();
    }

    /// The same rules without the innermost `left` folders.
    pub(crate) fn outer(&self, left: usize) -> Self {
        Self {
            globs: self.globs.clone(),
            composed: self.composed,
            types: self.types.clone(),
            hidden: self.hidden,
            ignore: self.ignore,
            beyond_git: self.beyond_git,
            global: self.global.clone(),
            levels: self.levels[..self.levels.len() - left].to_vec(),
        }
    }

    /// Takes the content of an ignore file of the level at `depth`, by its place in
    /// [`IGNORE_FILES`].
    pub(crate) fn add(&mut self, depth: usize, which: usize, text: &[u8]) {
        if let Some(slot) = self.levels.get_mut(depth).and_then(|l| l.sets.get_mut(which)) {
            *slot = parse(text);
        }
    }

    /// How many folders are entered.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Judges an entry by its path from the host's root without the leading separator; what is
    /// wanted is matched from `root` on.
    pub(crate) fn judge(&self, path: &[u8], root: usize, folder: bool) -> Verdict {
        let below = as_path(&path[root..]);
        let forms = if self.composed { composed_path(&path[root..]) } else { path[root..].into() };
        match self.globs.matched(as_path(&forms), folder) {
            Match::Ignore(_) => return Verdict::Unwanted,
            Match::Whitelist(_) => return Verdict::Taken,
            Match::None => {}
        }
        let mut whitelisted = false;
        if self.ignore {
            match self.ignored(path, root, folder) {
                Some(true) => return Verdict::Ignored,
                Some(false) => whitelisted = true,
                None => {}
            }
        }
        match self.types.matched(below, folder) {
            Match::Ignore(_) => return Verdict::Unwanted,
            Match::Whitelist(_) => whitelisted = true,
            Match::None => {}
        }
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        if !whitelisted && !self.hidden && name.first() == Some(&b'.') {
            return Verdict::Unwanted;
        }
        Verdict::Taken
    }

    /// True when an ignore file names it, false when one takes it back in.
    fn ignored(&self, path: &[u8], root: usize, folder: bool) -> Option<bool> {
        let answer = |set: &Gitignore, path: &[u8]| match set.matched(as_path(path), folder) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        };
        for which in 0..IGNORE_FILES.len() {
            for level in self.levels.iter().rev() {
                if let Some(set) = &level.sets[which]
                    && let Some(answer) = answer(set, &path[level.offset..])
                {
                    return Some(answer);
                }
            }
        }
        self.global.as_ref().and_then(|set| answer(set, &path[root..]))
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Reads an ignore file as ripgrep does: a bad line is passed over, one that is no UTF-8 ends it.
fn parse(text: &[u8]) -> Option<Gitignore> {
    let mut text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    if text.len() >= IGNORE_LIMIT {
        // Half a line could be a rule about everything.
        text = &text[..memchr::memrchr(b'\n', &text[..IGNORE_LIMIT]).unwrap_or(0)];
    }
    let mut builder = GitignoreBuilder::new("");
    for line in text.split(|&b| b == b'\n') {
        // Behind an escaped blank the end of the line would be taken for a part of the name.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = str::from_utf8(line) else { break };
        drop(builder.add_line(None, line));
    }
    builder.build().ok().filter(|set| !set.is_empty())
}

/// The selection of file types.
fn types(names: &[String]) -> Result<Types, SearchError> {
    if names.is_empty() {
        return Ok(Types::empty());
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known = builder.definitions();
    for name in names {
        if name != "all" && !known.iter().any(|def| def.name() == name) {
            return Err(SearchError::Type(unknown_type(name, known.iter().map(FileTypeDef::name))));
        }
        builder.select(name);
    }
    builder.build().map_err(|e| SearchError::Type(format!("file types {names:?}: {e}")))
}

fn unknown_type<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let wanted = name.trim_start_matches(['.', '*']).to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .map(|known| (type_distance(&wanted, known), known))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    near.sort_unstable();
    // Where it is another name of one, the others are none that were meant.
    let same = near.first().is_some_and(|(distance, _)| *distance == 0);
    near.retain(|(distance, _)| !same || *distance == 0);
    let near: Vec<&str> = near.into_iter().take(5).map(|(_, known)| known).collect();
    let shown: String = name.chars().take(80).collect();
    if near.is_empty() {
        format!("{shown:?} is no known file type; use a glob such as \"*.{wanted:.20}\" instead")
    } else {
        format!("{shown:?} is no known file type; near ones: {}", near.join(", "))
    }
}

/// How far a written type is from a known one or another name of it, in edits.
fn type_distance(wanted: &str, known: &str) -> usize {
    const EXTENSIONS: [(&str, &str); 12] = [
        ("rs", "rust"),
        ("python", "py"),
        ("javascript", "js"),
        ("jsx", "js"),
        ("typescript", "ts"),
        ("tsx", "ts"),
        ("rb", "ruby"),
        ("kt", "kotlin"),
        ("yml", "yaml"),
        ("golang", "go"),
        ("text", "txt"),
        ("bash", "sh"),
    ];
    if wanted.len() > 40 {
        return usize::MAX;
    }
    let others = EXTENSIONS.iter().filter(|(_, name)| *name == known).map(|(other, _)| *other);
    let near = |name: &str| {
        let short = name.len().min(wanted.len());
        let begins = name.starts_with(wanted) || wanted.starts_with(name);
        match edits(wanted.as_bytes(), name.as_bytes()) {
            0 => 0,
            distance if begins && short >= 2 && distance <= 4 => 1,
            distance => distance + usize::from(short <= 2),
        }
    };
    others.chain([known]).map(near).min().unwrap_or(usize::MAX)
}

/// Levenshtein's distance; both are short.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Parses a glob on its own, for an error that says where it is wrong.
fn check_glob(glob: &str) -> Result<Glob, SearchError> {
    parse_glob(glob, true)
}

/// Parses a glob; its `*` matches no separator where that is `literal`.
fn parse_glob(glob: &str, literal: bool) -> Result<Glob, SearchError> {
    if glob.len() > GLOB_LENGTH {
        let (shown, length) = (glob.chars().take(40).collect::<String>(), glob.len());
        return Err(SearchError::Glob(format!(
            "glob {shown:?}... has {length} bytes; at most {GLOB_LENGTH} are taken: search with a \
             shorter one"
        )));
    }
    GlobBuilder::new(glob)
        .literal_separator(literal)
        .backslash_escape(true)
        .build()
        .map_err(|error| SearchError::Glob(glob_error(glob, error.kind())))
}

fn glob_error(glob: &str, kind: &globset::ErrorKind) -> String {
    use globset::ErrorKind;
    let at = match kind {
        ErrorKind::UnclosedClass | ErrorKind::InvalidRange(..) => glob.rfind('['),
        ErrorKind::UnclosedAlternates => glob.rfind('{'),
        ErrorKind::UnopenedAlternates => glob.rfind('}'),
        ErrorKind::DanglingEscape => glob.rfind('\\'),
        _ => None,
    };
    let shown: String = glob.chars().take(200).collect();
    match at {
        Some(at) => {
            let place = glob[..at].chars().count() + 1;
            format!("glob {shown:?}: {kind} (character {place}); escape it with \\ to mean itself")
        }
        None => format!("glob {shown:?}: {kind}"),
    }
}

/// The pattern of a search for names.
#[derive(Debug)]
pub(crate) struct Names {
    /// A set, for it needs no regular expression for most globs.
    glob: GlobSet,
    /// Matched with whole paths instead of names.
    whole: bool,
    folders_only: bool,
    /// Whether it is compared with composed names (NFC): it is not ASCII.
    composed: bool,
}

impl Names {
    /// Parses the pattern: without a slash it is for names, with one for paths from the root.
    pub(crate) fn new(pattern: &str) -> Result<Self, SearchError> {
        let relative = pattern.strip_prefix("./").unwrap_or(pattern);
        let anchored = relative.strip_prefix('/').unwrap_or(relative);
        let core = anchored.trim_end_matches('/');
        if core.is_empty() {
            let hint = "write a glob such as \"*.rs\" or \"src/**\"; \"*\" finds everything";
            let shown: String = pattern.chars().take(40).collect();
            return Err(SearchError::Glob(format!("glob {shown:?} names nothing; {hint}")));
        }
        let whole = core.contains('/') || anchored.len() < pattern.len();
        // In a single name there are no separators.
        let glob = parse_glob(&composed(core), whole)?;
        let glob = GlobSet::builder().add(glob).build();
        Ok(Self {
            glob: glob.map_err(|error| SearchError::Glob(glob_error(core, error.kind())))?,
            whole,
            folders_only: core.len() < anchored.len(),
            composed: !core.is_ascii(),
        })
    }

    /// Reports whether an entry is wanted, by its path from the root.
    pub(crate) fn matches(&self, path: &[u8], folder: bool) -> bool {
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        let compared = if self.whole { path } else { name };
        let forms = if self.composed { composed_path(compared) } else { compared.into() };
        (folder || !self.folders_only) && self.glob.is_match(as_path(&forms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_globs_and_types_are_named_with_their_place() {
        let query = |glob: &str| GrepQuery { globs: vec![glob.into()], ..GrepQuery::default() };
        let error = Rules::grep(&query("!src/{a,b")).unwrap_err().to_string();
        assert!(error.contains("src/{a,b") && error.contains("character 5"), "{error}");
        let error = Rules::grep(&query("a[z-a]")).unwrap_err().to_string();
        assert!(error.contains("a[z-a]") && error.contains("character 2"), "{error}");
        let kind = |name: &str| types(&[name.to_owned()]).unwrap_err().to_string();
        assert!(kind("rs").contains("rust"), "{}", kind("rs"));
        assert!(kind("pyhton").contains("\"pyhton\""));
        assert!(kind("javascrpt").contains("js"), "{}", kind("javascrpt"));
        assert!(kind("quux9").contains("use a glob"), "{}", kind("quux9"));
        assert!(kind("rustt").contains("near ones: rust"), "{}", kind("rustt"));
        assert!(types(&["rust".to_owned()]).is_ok());
    }

    #[test]
    fn names_are_matched_at_any_depth_and_paths_from_the_root() {
        let matches = |pattern: &str, path: &str, folder| {
            Names::new(pattern).unwrap().matches(path.as_bytes(), folder)
        };
        assert!(matches("*.rs", "a/b/c.rs", false));
        assert!(!matches("*.RS", "a/b/c.rs", false));
        assert!(matches("src/*.rs", "src/c.rs", false));
        assert!(!matches("src/*.rs", "a/src/c.rs", false));
        assert!(!matches("src/*.rs", "src/a/c.rs", false));
        assert!(matches("src/**/*.rs", "src/a/b/c.rs", false));
        assert!(matches("./c.rs", "c.rs", false) && !matches("./c.rs", "a/c.rs", false));
        assert!(matches("/c.rs", "c.rs", false) && !matches("/c.rs", "a/c.rs", false));
        assert!(matches("src/", "a/src", true) && !matches("src/", "a/src", false));
        assert!(Names::new("").is_err() && Names::new("./").is_err());
    }

    #[test]
    fn globs_beyond_ascii_take_names_in_every_form_and_other_bytes_as_they_are() {
        let [nfc, nfd] =
            ["\u{dc}b/\u{d55c}\u{e9}.md", "U\u{308}b/\u{1112}\u{1161}\u{11ab}e\u{301}.md"];
        let mixed = "\u{dc}b/\u{d55c}e\u{301}.md";
        for pattern in [nfc, nfd, mixed, "*\u{e9}.md", "Ub/*"] {
            let globs = vec![pattern.to_owned()];
            let rules = Rules::grep(&GrepQuery { globs, ..GrepQuery::default() }).unwrap();
            let names = Names::new(pattern).unwrap();
            for name in [nfc, nfd, mixed] {
                let is = pattern != "Ub/*";
                assert_eq!(names.matches(name.as_bytes(), false), is, "{pattern} {name}");
                let taken = rules.judge(name.as_bytes(), 0, false) == Verdict::Taken;
                assert_eq!(taken, is, "{pattern} {name}");
            }
        }
        let odd = [nfd.as_bytes(), b"\xff.md"].concat();
        assert!(!Names::new("*\u{e9}.md*").unwrap().matches(&odd, false));
        assert!(Names::new("*e\u{301}.md*").unwrap().matches(b"e\xcc\x81.md", false));
    }

    #[test]
    fn nearer_and_stronger_ignore_files_win() {
        let mut rules = Rules::find(&FindQuery { hidden: true, ..FindQuery::default() });
        rules.push(0);
        rules.add(0, 2, b"*.log\n/w/out\n");
        rules.push(2);
        rules.add(1, 2, b"!keep.log\n");
        assert_eq!(rules.judge(b"w/a.log", 2, false), Verdict::Ignored);
        assert_eq!(rules.judge(b"w/keep.log", 2, false), Verdict::Taken);
        assert_eq!(rules.judge(b"w/out", 2, true), Verdict::Ignored);
        rules.add(0, 0, b"keep.log\n");
        assert_eq!(rules.judge(b"w/keep.log", 2, false), Verdict::Ignored);
        rules.pop();
        assert_eq!(rules.depth(), 1);
    }
}
