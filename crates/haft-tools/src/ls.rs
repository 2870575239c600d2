//! ls: lists the names in a folder.
//!
//! **Invariant:** names are sorted by their bytes, folder by folder. At most `limit` of those after
//! the first `offset` are returned, and a bounded number is held, whatever the tree is. Links are
//! shown, never followed. Ignored files are shown, too: it knows no ignore files.

use std::fmt::Write as _;

use globset::{GlobBuilder, GlobMatcher};
use haft_host::{DirEntry, FileKind, Fs, ListHow, Listing, Located};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Budget, Cut, CutBy, Detail, Entry, EntryKind, Env, Follow, HostPath, Kind, Loading, Outcome,
    Place, Plan, Shape, Status, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    files::{self, similar_names},
    find::written,
    search::{absolute, globs, past_the_end, quoted},
    units,
};

/// Characters of an answer.
const BUDGET: u64 = 50_000;
/// Names where no limit was asked for.
const LIMIT: u64 = 500;
/// Most names of one answer.
const LIMIT_MAX: u64 = 100_000;
/// Most names of folders that are held at once.
const HELD: usize = 200_000;
/// How deep folders are entered.
const DEPTH: usize = 128;

/// Lists folders.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ls {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Folder; default: the workspace root.
    path: Option<String>,
    /// List subfolders, too; default false.
    recursive: Option<bool>,
    /// Show hidden names; default true.
    hidden: Option<bool>,
    /// Add modes, sizes and times (UTC); default false.
    long: Option<bool>,
    /// Glob for names, e.g. "*.rs".
    pattern: Option<String>,
    /// Default 500, at most 100000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Names to skip, for the next page.
    offset: Option<u64>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data<'a> {
    entries: Vec<EntryData<'a>>,
    /// Whether there are more.
    truncated: bool,
    /// The offset of what follows these data.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Names that rules hide.
    denied: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EntryData<'a> {
    /// Relative to the listed folder.
    name: &'a str,
    /// file, folder, link, fifo, socket, device (of blocks) or `char_device`.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Permission bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    /// Milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<i64>,
    /// Where a link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    broken: bool,
}

impl Tool for Ls {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data<'_>>(),
            snippet: "List a folder (ignored and hidden files too)".into(),
            hint: "list folder directory contents names sizes".into(),
            kind: Kind::Search,
            primary: "path".into(),
            loading: Loading::Always,
            budget: Budget::Chars(BUDGET),
            ..ToolSpec::new(
                "ls",
                "List folder",
                "List the names in a folder, sorted, folders with a slash at the end, links with \
                 their target. Shows ignored files too; to search a tree use find.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let root = absolute(place, input.path.as_deref())?;
        let plan = Plan::new(place, format!("Listing {}", quoted(&place.shown(&root))));
        Ok(if input.recursive.unwrap_or(false) { plan.searches(root) } else { plan.reads(root) })
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let path = absolute(&cx.place, input.path.as_deref())?;
        let shown = cx.place.shown(&path).into_owned();
        let names = Names::new(&input)?;
        let at = folder(cx, &path, &shown).await?;
        let mut list = List::new(&input, names, cx.host.fs(), &path);
        let root = list.open(at).await.map_err(|error| {
            ToolError::new(format!("{} cannot be listed: {error}", quoted(&shown)))
                .hint("Give another folder.")
        })?;
        list.walk(root, cx).await;
        Ok(outcome(list, cx, &shown))
    }
}

/// Looks up the folder that is listed.
async fn folder(cx: &Cx, path: &HostPath, shown: &str) -> Result<Located, ToolError> {
    let at = cx.host.fs().locate(path, Follow::Yes).await.map_err(|error| {
        ToolError::new(format!("{} cannot be listed: {error}", quoted(shown)))
            .hint(files::about_names(&error).unwrap_or("Give a folder that can be entered."))
    })?;
    match at.kind {
        FileKind::FOLDER => Ok(at),
        FileKind::Missing => match files::broken(cx, path, &at.real) {
            Some(error) => Err(error),
            None => {
                Err(ToolError::new(format!("there is no folder {}", quoted(shown))).hint(format!(
                    "List the folder above it to see what is there.{}",
                    similar_names::hint(cx, path).await
                )))
            }
        },
        FileKind::FILE => Err(ToolError::new(format!("{} is no folder", quoted(shown)))
            .hint("Use read for what a file holds; list the folder above it for its size.")),
        FileKind::Entry(kind) => {
            let text = format!("{} is {}, not a folder", quoted(shown), files::special(kind));
            Err(ToolError::new(text).hint("Give a folder."))
        }
    }
}

/// Which names are wanted.
struct Names {
    glob: Option<GlobMatcher>,
    /// Whether the glob is for whole paths below the root.
    whole: bool,
    /// What brackets in the glob stand for.
    brackets: Option<String>,
    hidden: bool,
}

impl Names {
    fn new(input: &Input) -> Result<Self, ToolError> {
        let pattern = input.pattern.as_deref().filter(|pattern| !pattern.is_empty());
        let built = pattern
            .map(|pattern| GlobBuilder::new(pattern).literal_separator(true).build())
            .transpose();
        let glob = built.map_err(|error| {
            let pattern = quoted(pattern.unwrap_or_default());
            ToolError::new(format!("the pattern \"{pattern}\" is no glob: {}", error.kind()))
                .hint("Nothing was listed. Write it like *.rs or *.{ts,tsx}.")
        })?;
        Ok(Self {
            glob: glob.map(|glob| glob.compile_matcher()),
            whole: pattern.is_some_and(|pattern| pattern.contains('/')),
            brackets: pattern.and_then(globs::brackets),
            hidden: input.hidden.unwrap_or(true),
        })
    }

    /// Reports whether every name is wanted.
    const fn all(&self) -> bool {
        self.glob.is_none() && self.hidden
    }

    fn sees(&self, name: &[u8]) -> bool {
        self.hidden || !name.starts_with(b".")
    }

    fn wants(&self, below: &str, name: &str) -> bool {
        let text = if self.whole { below } else { name };
        self.glob.as_ref().is_none_or(|glob| glob.is_match(text))
    }
}

/// An open folder.
struct Frame {
    at: Located,
    path: HostPath,
    names: std::vec::IntoIter<DirEntry>,
}

/// A listing while it grows.
struct List<'a> {
    names: Names,
    fs: &'a dyn Fs,
    root: &'a HostPath,
    recursive: bool,
    long: bool,
    limit: usize,
    /// Names before the page, and how many of them were met.
    offset: u64,
    skipped: u64,
    entries: Vec<Entry>,
    more: bool,
    /// Names of the one folder in all, where that is what was asked for.
    total: Option<u64>,
    held: usize,
    /// Names that rules hide.
    denied: u64,
    /// Names that did not fit into the listing of their folder.
    left: u64,
    /// Folders that were not entered, with the first cause.
    closed: u64,
    cause: Option<String>,
}

impl<'a> List<'a> {
    fn new(input: &Input, names: Names, fs: &'a dyn Fs, root: &'a HostPath) -> Self {
        let limit = input.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
        Self {
            names,
            fs,
            root,
            recursive: input.recursive.unwrap_or(false),
            long: input.long.unwrap_or(false),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            offset: input.offset.unwrap_or(0),
            skipped: 0,
            entries: Vec::new(),
            more: false,
            total: None,
            held: 0,
            denied: 0,
            left: 0,
            closed: 0,
            cause: None,
        }
    }

    /// Numbers of the first and the last name that are given, from 1.
    const fn page(&self) -> (u64, u64) {
        (self.skipped + 1, self.skipped + self.entries.len() as u64)
    }

    /// Lists a located folder.
    async fn open(&mut self, at: Located) -> std::io::Result<Frame> {
        // The page and one name more, which tells that it is not the last.
        let before = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let page = before.saturating_add(self.limit).saturating_add(1);
        let wanted = if self.names.all() { page } else { HELD };
        let limit = wanted.min(HELD - self.held).max(1);
        let Listing { entries, total, denied } =
            self.fs.list(&at, ListHow { limit, stat: self.long }).await?;
        let total = total.saturating_sub(denied);
        self.denied += denied;
        if self.names.all() && !self.recursive && page <= HELD {
            self.total = Some(total);
            self.more = total > entries.len() as u64;
        } else if !self.names.all() || entries.len() < page {
            // Otherwise the limit is met before anybody misses the rest.
            self.left += total - entries.len() as u64;
        }
        self.held += entries.len();
        let path = at.real.clone();
        Ok(Frame { at, path, names: entries.into_iter() })
    }

    /// Goes through the tree in the order of names, until the limit is met.
    async fn walk(&mut self, root: Frame, cx: &Cx) {
        let base = root.path.clone();
        let mut frames = vec![root];
        while let Some(frame) = frames.last_mut() {
            let Some(entry) = frame.names.next() else {
                frames.pop();
                continue;
            };
            self.held -= 1;
            if cx.stop.is_cancelled() {
                return;
            }
            if !self.names.sees(&entry.name) {
                continue;
            }
            let Ok(path) = frame.path.join_bytes(&entry.name) else { continue };
            if self.add(&entry, &path, &base).is_err() {
                self.more = true;
                return;
            }
            if self.recursive && entry.kind == EntryKind::Folder {
                let opened = self.enter(&frames, &entry.name, &path, &base).await;
                frames.extend(opened);
            }
        }
    }

    /// Takes a name where it is wanted; fails where there is no room for it.
    fn add(&mut self, entry: &DirEntry, path: &HostPath, base: &HostPath) -> Result<(), ()> {
        let below = path.shown_from(base);
        let name = String::from_utf8_lossy(&entry.name);
        if !self.names.wants(&below, &name) {
            return Ok(());
        }
        if self.skipped < self.offset {
            self.skipped += 1;
            return Ok(());
        }
        if self.entries.len() >= self.limit {
            return Err(());
        }
        let stat = entry.stat.filter(|_| self.long);
        self.entries.push(Entry {
            name: below.into_owned(),
            kind: entry.kind,
            size: stat.map(|stat| stat.0),
            mode: stat.map(|stat| stat.1),
            modified: stat.map(|stat| stat.2),
            target: entry.target.as_ref().map(|to| String::from_utf8_lossy(to).into_owned()),
            broken: entry.broken,
        });
        Ok(())
    }

    /// Opens a folder below the last one; one that cannot be opened is counted.
    async fn enter(
        &mut self,
        frames: &[Frame],
        name: &[u8],
        path: &HostPath,
        base: &HostPath,
    ) -> Option<Frame> {
        let parent = frames.last()?;
        let opened = if frames.len() >= DEPTH {
            Err(std::io::Error::other(format!("nested more than {DEPTH} deep")))
        } else {
            match self.fs.child(&parent.at, name, Follow::No).await {
                Ok(at) if at.kind == FileKind::FOLDER => self.open(at).await,
                // It was replaced since it was listed.
                Ok(_) => return None,
                Err(error) => Err(error),
            }
        };
        opened
            .inspect_err(|error| {
                self.closed += 1;
                self.cause.get_or_insert_with(|| format!("{}: {error}", path.shown_from(base)));
            })
            .ok()
    }
}

fn outcome(list: List<'_>, cx: &Cx, shown: &str) -> Outcome {
    let mut text = String::new();
    for entry in &list.entries {
        line(entry, list.long, &mut text);
    }
    let stopped = cx.stop.is_cancelled();
    for note in notes(&list, shown, stopped) {
        text.push_str(&note);
        text.push('\n');
    }
    let (from, to) = list.page();
    let cut = (list.more || (from > 1 && to >= from)).then_some(Cut {
        from,
        to,
        total: list.total,
        by: CutBy::Items,
        rest: None,
        end: None,
    });
    let mut room = cx.data_room(BUDGET);
    let entries: Vec<_> =
        list.entries.iter().map(entry_data).take_while(|entry| room.take(entry)).collect();
    let more = list.more || entries.len() < list.entries.len();
    let data = Data {
        truncated: more || stopped || list.left > 0,
        next_offset: more.then(|| list.skipped + entries.len() as u64),
        entries,
        denied: list.denied,
    };
    let data = serde_json::to_value(data).ok();
    let shape = Shape::Entries { root: list.root.clone(), entries: list.entries };
    Outcome {
        status: if stopped { Status::Cancelled } else { Status::Done },
        data,
        detail: Some(Detail { shape, cut }),
        ..Outcome::text(text.trim_end_matches('\n'))
    }
}

/// What is said beside the names.
fn notes(list: &List<'_>, shown: &str, stopped: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let count = list.entries.len();
    if count == 0 && list.skipped > 0 {
        notes.push(past_the_end(list.offset, list.skipped, ["name", "names"], stopped));
    } else if count == 0 && !stopped {
        notes.push(if list.names.all() && list.denied > 0 {
            format!("{} holds nothing that may be shown.", quoted(shown))
        } else if list.names.all() {
            format!("{} is empty.", quoted(shown))
        } else if list.names.whole && !list.recursive {
            let shown = quoted(shown);
            format!("Nothing in {shown} has such a name: no name has a /; recursive lists paths.")
        } else {
            let brackets = list.names.brackets.as_ref().map(|told| format!(" {told}"));
            format!("Nothing in {} has such a name.{}", quoted(shown), brackets.unwrap_or_default())
        });
    }
    let (from, to) = list.page();
    let span = units::span(["name", "names"], from, to);
    let of = list.total.map(|total| format!(" of {total}")).unwrap_or_default();
    if list.more {
        let more = if list.total.is_some() { "" } else { ", there are more" };
        notes.push(format!(
            "[{span}{of}{more}; for the next ones call again with offset={to}, or give a pattern or \
             a folder below]"
        ));
    } else if from > 1 && count > 0 {
        notes.push(format!("[{span}{of}]"));
    }
    if list.denied > 0 {
        let entries = if list.denied == 1 { "entry" } else { "entries" };
        notes.push(format!("[{} {entries} not shown: not allowed]", list.denied));
    }
    if list.left > 0 {
        notes.push(format!("[{} names of large folders were not looked at]", list.left));
    }
    if list.closed > 0 {
        let folders = if list.closed == 1 { "folder was" } else { "folders were" };
        let cause = quoted(list.cause.as_deref().unwrap_or_default());
        notes.push(format!("[{} {folders} not entered: {cause}]", list.closed));
    }
    if stopped {
        notes.push("[cancelled: these are the names so far]".to_owned());
    }
    notes
}

fn line(entry: &Entry, long: bool, text: &mut String) {
    if long {
        let mode = mode_text(entry.kind, entry.mode.unwrap_or(0));
        let size = entry.size.unwrap_or(0);
        let time = entry.modified.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let time = time.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        let _ = write!(text, "{mode} {size:>10} {time:16} ");
    }
    text.push_str(&written(entry));
    if let Some(target) = &entry.target {
        let _ = write!(text, " -> {}", haft_text::names::shown(target, 4_096));
    }
    text.push_str(if entry.broken { " (broken)\n" } else { "\n" });
}

/// The ten characters that a long listing begins with.
fn mode_text(kind: EntryKind, mode: u32) -> String {
    let first = match kind {
        EntryKind::File => '-',
        EntryKind::Folder => 'd',
        EntryKind::Link => 'l',
        EntryKind::Fifo => 'p',
        EntryKind::Socket => 's',
        EntryKind::Device => 'b',
        EntryKind::CharDevice => 'c',
    };
    let has = |bit: u32| mode & bit != 0;
    // What runs as its owner or group, or keeps names, stands where the right to execute does.
    let special = |at: usize| match at {
        2 => Some(('s', 'S')).filter(|_| has(0o4000)),
        5 => Some(('s', 'S')).filter(|_| has(0o2000)),
        8 => Some(('t', 'T')).filter(|_| has(0o1000)),
        _ => None,
    };
    let bits = "rwxrwxrwx".chars().enumerate();
    let bits = bits.map(|(at, c)| match (special(at), has(0o400 >> at)) {
        (Some((with, _)), true) => with,
        (Some((_, without)), false) => without,
        (None, true) => c,
        (None, false) => '-',
    });
    std::iter::once(first).chain(bits).collect()
}

fn entry_data(entry: &Entry) -> EntryData<'_> {
    let kind = serde_json::to_value(entry.kind).ok();
    EntryData {
        name: &entry.name,
        kind: kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default(),
        size: entry.size,
        mode: entry.mode,
        modified: entry.modified,
        target: entry.target.as_deref(),
        broken: entry.broken,
    }
}
