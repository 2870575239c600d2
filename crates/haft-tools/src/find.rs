//! find: lists names of files and folders that match a glob.
//!
//! **Invariant:** a bounded number of names is held, whatever the tree is: those of the page, and
//! in order of time also those before it. Pages neither lose nor repeat names: `offset` counts the
//! names of the pages before. An incomplete answer says so, with the next call. It knows no globs
//! and no ignore files: the host's search does.

use std::{cmp::Reverse, collections::BinaryHeap, ops::ControlFlow};

use haft_host::{FindQuery, NameMatch, Skipped};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Budget, Cut, CutBy, Detail, Entry, EntryKind, Env, HostPath, Kind, Loading, Outcome, Place,
    Plan, Shape, Status, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    search::{
        self, Root, SkippedData,
        globs::{self, Field},
        passed_over, quoted,
    },
    units,
};

/// Characters of an answer.
const BUDGET: u64 = 50_000;
/// Names where no limit was asked for.
const LIMIT: u64 = 1_000;
/// Most names of one answer, and most before it where all are held to be sorted.
const LIMIT_MAX: u64 = 100_000;

/// Finds files by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Find {}

/// In which order names are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    #[default]
    Path,
    Mtime,
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Glob: "*.rs" matches names at any depth, "src/**/*.rs" from path.
    pattern: String,
    /// Folder; default: the workspace root.
    path: Option<String>,
    /// Find hidden names; default true.
    hidden: Option<bool>,
    /// Find ignored names too; default false.
    no_ignore: Option<bool>,
    /// Follow links to folders; default false.
    follow: Option<bool>,
    /// Default path; mtime: newest first.
    sort: Option<Sort>,
    /// Default 1000, at most 100000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Names to skip, for the next page.
    offset: Option<u64>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data<'a> {
    /// Relative to the searched folder; folders end in a slash.
    paths: Vec<&'a str>,
    /// Whether there are more.
    truncated: bool,
    /// The offset of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    skipped: SkippedData,
}

impl Tool for Find {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["glob".into()],
            output_schema: schema_of::<Data<'_>>(),
            snippet: "Find files and folders by glob (ignores what git ignores)".into(),
            hint: "find files folders by name glob pattern".into(),
            kind: Kind::Search,
            primary: "pattern".into(),
            loading: Loading::Always,
            budget: Budget::Chars(BUDGET),
            ..ToolSpec::new(
                "find",
                "Find files",
                "Find files and folders by glob. Gives paths relative to the searched folder, \
                 folders with a slash at the end, at most 1,000 unless limit says otherwise. \
                 Ignores what git ignores. To search contents use grep.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        globs::check(&input.pattern, Field::Pattern)?;
        let verb = format!("Finding {}", quoted(&input.pattern));
        search::plan(place, input.path.as_deref(), &verb, Field::Pattern)
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        if input.sort == Some(Sort::Mtime) && input.offset > Some(LIMIT_MAX) {
            let text = format!("offset is more than {LIMIT_MAX}, and so many names are sorted");
            return Err(ToolError::new(text).hint("Narrow pattern or path, or sort by path."));
        }
        let root = search::root(cx, input.path.as_deref(), Field::Pattern).await?;
        let query = FindQuery {
            pattern: globs::normal(&input.pattern, Field::Pattern, &root.path),
            hidden: input.hidden.unwrap_or(true),
            no_ignore: input.no_ignore.unwrap_or(false),
            follow: input.follow.unwrap_or(false),
            times: input.sort == Some(Sort::Mtime),
        };
        let mut names = Names::new(&input);
        let skipped = root.find(&query, search::walk(cx), &mut |found| names.take(found)).await?;
        if names.seen == 0 {
            root.explain(&input.pattern, Field::Pattern, query.follow).await;
        }
        Ok(outcome(&input, names, &skipped, cx, &root))
    }
}

/// A name in the order of a search by time: the newest is the least, equal times go by name.
type Timed = (Reverse<i128>, Vec<u8>, EntryKind);

/// The names while they are found.
struct Names {
    sort: Sort,
    offset: u64,
    limit: usize,
    seen: u64,
    more: bool,
    found: Vec<(Vec<u8>, EntryKind)>,
    newest: BinaryHeap<ByTime>,
}

struct ByTime(Timed);

impl ByTime {
    fn key(&self) -> (Reverse<i128>, &[u8]) {
        (self.0.0, &self.0.1)
    }
}

impl PartialEq for ByTime {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for ByTime {}
impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Names {
    fn new(input: &Input) -> Self {
        let wanted = input.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
        Self {
            sort: input.sort.unwrap_or_default(),
            offset: input.offset.unwrap_or(0),
            limit: usize::try_from(wanted).unwrap_or(usize::MAX),
            seen: 0,
            more: false,
            found: Vec::new(),
            newest: BinaryHeap::new(),
        }
    }

    fn take(&mut self, found: NameMatch) -> ControlFlow<()> {
        self.seen += 1;
        if self.sort == Sort::Mtime {
            self.newest.push(ByTime((Reverse(found.modified), found.path, found.kind)));
            if self.newest.len() > self.before().saturating_add(self.limit) {
                self.more = true;
                // The oldest of them is the greatest.
                self.newest.pop();
            }
            return ControlFlow::Continue(());
        }
        if self.seen <= self.offset {
            return ControlFlow::Continue(());
        }
        if self.found.len() >= self.limit {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.found.push((found.path, found.kind));
        ControlFlow::Continue(())
    }

    /// Names before the page.
    fn before(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(usize::MAX)
    }

    /// The names in their order, as the answer shows them.
    fn entries(&mut self, root: &HostPath) -> Vec<Entry> {
        if self.sort == Sort::Mtime {
            let sorted = std::mem::take(&mut self.newest).into_sorted_vec();
            let page = sorted.into_iter().skip(self.before());
            self.found = page.map(|ByTime((_, path, kind))| (path, kind)).collect();
        }
        let found = std::mem::take(&mut self.found);
        found.into_iter().map(|(path, kind)| entry(root, &path, kind)).collect()
    }
}

fn entry(root: &HostPath, below: &[u8], kind: EntryKind) -> Entry {
    let shown = match root.join_bytes(below) {
        Ok(path) => path.shown_from(root).into_owned(),
        Err(_) => String::from_utf8_lossy(below).into_owned(),
    };
    Entry { name: shown, kind, ..Entry::default() }
}

/// A name of a listing as the model reads it.
pub(crate) fn written(entry: &Entry) -> String {
    let slash = if entry.kind == EntryKind::Folder { "/" } else { "" };
    format!("{}{slash}", entry.name)
}

fn outcome(input: &Input, mut names: Names, skipped: &Skipped, cx: &Cx, root: &Root) -> Outcome {
    let stopped = cx.stop.is_cancelled();
    let entries = names.entries(&root.path);
    let (from, to) = (names.offset + 1, names.offset + entries.len() as u64);
    let lines: Vec<String> = entries.iter().map(written).collect();
    let mut text = lines.join("\n");
    let mut note = |line: String| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    };
    if entries.is_empty() {
        note(nothing(input, &names, skipped, root, stopped));
    } else if names.more || from > 1 {
        note(partial(&names, from, to, stopped));
    }
    let left = passed_over(skipped, false);
    if !entries.is_empty() && !left.is_empty() {
        note(format!("[not looked at: {left}]"));
    }
    if stopped {
        note("[cancelled: this is what was found so far]".to_owned());
    }
    let known = (names.sort == Sort::Mtime || !names.more) && !stopped;
    let cut = (names.more || from > 1).then(|| Cut {
        from,
        to,
        total: known.then_some(names.seen),
        by: CutBy::Items,
        rest: None,
        end: None,
    });
    let mut space = cx.data_room(BUDGET);
    let fitting = lines.iter().map(String::as_str).take_while(|line| space.take(line));
    let shown: Vec<&str> = fitting.collect();
    let more = names.more || shown.len() < lines.len();
    let data = Data {
        truncated: more || skipped.stopped,
        next_offset: more.then(|| names.offset + shown.len() as u64),
        paths: shown,
        skipped: skipped.into(),
    };
    let data = serde_json::to_value(data).ok();
    let shape = Shape::Entries { root: root.path.clone(), entries };
    Outcome {
        status: if stopped { Status::Cancelled } else { Status::Done },
        data,
        detail: Some(Detail { shape, cut }),
        ..Outcome::text(text)
    }
}

/// What is said where there are names before or behind those from number `from` to `to`.
fn partial(names: &Names, from: u64, to: u64, stopped: bool) -> String {
    let seen = names.seen;
    let of = match names.sort {
        Sort::Mtime => format!("{seen}, the newest first"),
        Sort::Path if names.more => format!("at least {seen} so far"),
        Sort::Path if stopped => format!("{seen} so far"),
        Sort::Path => seen.to_string(),
    };
    let next = if names.more {
        format!("; for the next ones call again with offset={to}, or narrow pattern or path")
    } else {
        String::new()
    };
    format!("[{} of {of}{next}]", units::span(["name", "names"], from, to))
}

/// What is said where nothing is shown.
fn nothing(input: &Input, names: &Names, skipped: &Skipped, root: &Root, stopped: bool) -> String {
    if names.seen > 0 {
        let past = search::past_the_end(names.offset, names.seen, ["name", "names"], stopped);
        let left = passed_over(skipped, false);
        return if left.is_empty() { past } else { format!("{past} Not looked at: {left}.") };
    }
    let mut text = format!("Nothing matches {} in {}.", quoted(&input.pattern), root.name());
    text.push_str(&root.doubt(&input.pattern, Field::Pattern));
    text.push_str(&root.elsewhere());
    let left = passed_over(skipped, true);
    if !left.is_empty() {
        text.push_str(" Not looked at: ");
        text.push_str(&left);
        text.push('.');
    }
    text
}
