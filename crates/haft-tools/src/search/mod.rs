//! What grep and find have in common: where they start, who searches, and what is reported about
//! it.
//!
//! **Invariant:** a search goes through the search of its host, or over its files if the host has
//! none. What was not searched is reported, never silently left out. It knows neither of the two
//! tools.

pub(crate) mod globs;

use std::{
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use haft_host::{
    FileKind, FindQuery, FoundLines, GrepQuery, Host, Located, NameMatch, SearchError, Sink,
    Skipped, Walk,
};
use haft_tool::Cx;
use haft_types::{CallId, Follow, HostPath, Place, Plan, Target, ToolError};
use schemars::JsonSchema;
use serde::Serialize;

use self::globs::Field;
use crate::files::{self, secret_scan, similar_names};

/// The state that kept outputs are for plans.
const OUTS: &str = "outs";

/// Most characters of a model's text that are repeated in an answer.
const QUOTED: usize = 200;

/// Where a search starts.
pub(crate) struct Root {
    /// Whose files are searched.
    pub(crate) host: Arc<dyn Host>,
    /// What was found there.
    pub(crate) at: Located,
    /// The path as the model wrote it, made absolute.
    pub(crate) path: HostPath,
    /// What the path is called in the answer.
    pub(crate) shown: String,
    /// The other folders of the workspace, where its root is searched: these are not.
    beside: Vec<String>,
    /// Why a glob matched nothing, as [`explain`](Self::explain) found.
    why: OnceLock<String>,
    /// True for a kept output.
    pub(crate) is_kept: bool,
    /// What is missing of it.
    pub(crate) gap: Option<String>,
}

/// The kept output that a path names; none for a path of the host.
fn kept(path: Option<&str>) -> Option<CallId> {
    path.and_then(CallId::from_address)
}

/// The absolute path of what the model wrote; none stands for the folder of the place.
pub(crate) fn absolute(place: &Place, path: Option<&str>) -> Result<HostPath, ToolError> {
    let text = path.filter(|text| !text.is_empty()).unwrap_or(".");
    files::no_address(text)?;
    files::well_formed(text)?;
    place
        .path(text)
        .map_err(|error| ToolError::new(error.to_string()).hint("Mend the path, then call again."))
}

/// Plans a search below a path, or of grep through a kept output.
pub(crate) fn plan(
    place: &Place,
    path: Option<&str>,
    verb: &str,
    field: Field,
) -> Result<Plan, ToolError> {
    if let Some(call) = kept(path).filter(|_| field == Field::Glob) {
        let plan = Plan::new(place, format!("{verb} in {}", call.address()));
        return Ok(plan.with(haft_types::Access::Observe, Target::State { name: OUTS.into() }));
    }
    let root = absolute(place, path)?;
    let title = match &*place.shown(&root) {
        "." => verb.to_owned(),
        shown => format!("{verb} in {}", quoted(shown)),
    };
    Ok(Plan::new(place, title).searches(root))
}

/// Looks up where a search starts.
pub(crate) async fn root(cx: &Cx, path: Option<&str>, field: Field) -> Result<Root, ToolError> {
    if let Some(call) = kept(path).filter(|_| field == Field::Glob) {
        return out(cx, &call).await;
    }
    let written = path.unwrap_or_default();
    let path = absolute(&cx.place, path)?;
    let shown = cx.place.shown(&path).into_owned();
    let at = cx.host.fs().locate(&path, Follow::Yes).await.map_err(|error| {
        ToolError::new(format!("{} cannot be searched: {error}", quoted(&shown))).hint(
            files::about_names(&error).unwrap_or("Give a folder or file that can be entered."),
        )
    })?;
    if at.kind == FileKind::Missing {
        let missing = ToolError::new(format!("there is no {}", quoted(&shown)));
        if let Some(advice) = globs::in_path(written, field) {
            return Err(missing.hint(advice));
        }
        if let Some(error) = files::broken(cx, &path, &at.real) {
            return Err(error);
        }
        let near = similar_names::hint(cx, &path).await;
        return Err(missing.hint(format!(
            "Look with ls or find at what is there, then give a path that exists.{near}"
        )));
    }
    let root = path == cx.place.cwd;
    let beside = cx.place.further().filter(|_| root).map(|path| path.text().into_owned());
    Ok(Root {
        host: cx.host.clone(),
        at,
        shown,
        beside: beside.collect(),
        path,
        why: OnceLock::new(),
        is_kept: false,
        gap: None,
    })
}

/// The kept output of a call as a file.
async fn out(cx: &Cx, call: &CallId) -> Result<Root, ToolError> {
    let shown = call.address();
    let gone = |why: &str| {
        let known = files::evicted(cx, call).or_else(|| files::silent(cx, call));
        known.unwrap_or_else(|| {
            ToolError::new(format!("{shown} is not kept: {why}"))
                .hint("Only a result that says so is kept; run the call again to get its output.")
        })
    };
    let (host, path) = files::kept(cx, call).await?.ok_or_else(|| gone("no such output"))?;
    let located = host.fs().locate(&path, Follow::No).await;
    let at = located.map_err(|error| gone(&error.to_string()))?;
    let gap = files::gap(cx, call).await;
    let (beside, why) = (Vec::new(), OnceLock::new());
    Ok(Root { host, at, path, shown, beside, why, is_kept: true, gap })
}

impl Root {
    /// Reports whether it is one file, not a folder.
    pub(crate) fn is_file(&self) -> bool {
        self.at.kind != FileKind::FOLDER
    }

    /// What was searched, where nothing was found there.
    pub(crate) fn name(&self) -> String {
        match (&*self.shown, &self.beside[..]) {
            (".", []) => "the workspace".to_owned(),
            (".", _) => "the working folder".to_owned(),
            (shown, _) => quoted(shown),
        }
    }

    /// Says of the workspace what was not searched; empty where that is nothing.
    pub(crate) fn elsewhere(&self) -> String {
        if self.beside.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.beside.iter().map(|path| quoted(path)).collect();
        format!(" The workspace also has {}: search there by path.", names.join(", "))
    }

    /// Takes what a found file says of secrets.
    pub(crate) async fn learn(&self, below: &str, cx: &Cx) {
        let (fs, name) = (self.host.fs(), self.host.name());
        if self.is_file() {
            return secret_scan::of_file(cx, (name, fs), &self.at, 0).await;
        }
        let Ok(path) = self.path.join(below) else { return };
        if let Ok(at) = fs.locate(&path, Follow::No).await {
            secret_scan::of_file(cx, (name, fs), &at, 0).await;
        }
    }

    /// Looks whether what a glob names is there all the same: in brackets, or behind a link.
    pub(crate) async fn explain(&self, glob: &str, field: Field, follow: bool) {
        let glob = globs::normal(glob, field, &self.path);
        let names: Vec<&str> = glob.trim_start_matches('/').split('/').collect();
        let mut path = self.path.clone();
        for (at, name) in names.iter().enumerate() {
            if self.is_file() || name.contains(['*', '?', '{', '!', '\\']) {
                return;
            }
            let Ok(next) = path.join_bytes(name.as_bytes()) else { return };
            let fs = self.host.fs();
            let Ok(found) = fs.locate(&next, Follow::No).await else { return };
            let folder = fs.locate(&next, Follow::Yes).await;
            let folder = folder.is_ok_and(|folder| folder.kind == FileKind::FOLDER);
            if found.kind == FileKind::Missing {
                return;
            }
            let shown = quoted(&names[..=at].join("/"));
            if name.contains('[') {
                let escaped = glob.replace('[', "\\[").replace(']', "\\]");
                let path = if folder { ", or give it as path" } else { "" };
                let why = format!(
                    " [ ] stands for one of the characters in it: for {shown}, which is there, \
                     write {}{path}.",
                    quoted(&escaped)
                );
                return drop(self.why.set(why));
            }
            if folder && found.kind != FileKind::FOLDER && !follow {
                let or = if field == Field::Pattern { ", or set follow" } else { "" };
                let why = format!(
                    " {shown} is a link to a folder, which is not entered: give it as path{or}."
                );
                return drop(self.why.set(why));
            }
            path = next;
        }
    }

    /// A likely reason why a glob matched nothing, as a sentence with a space before it.
    pub(crate) fn doubt(&self, glob: &str, field: Field) -> String {
        let found = self.why.get().cloned();
        found.unwrap_or_else(|| globs::doubt(glob, field, &self.path))
    }

    /// Searches lines, with the search of the host or over its files.
    pub(crate) async fn grep(
        &self,
        query: &GrepQuery,
        walk: Walk,
        sink: Sink<'_, FoundLines>,
    ) -> Result<Skipped, ToolError> {
        let searched = haft_host::search_lines(&*self.host, &self.at, query, walk, sink).await;
        searched.map_err(|error| self.failed(error, Field::Glob))
    }

    /// Searches names, with the search of the host or over its files.
    pub(crate) async fn find(
        &self,
        query: &FindQuery,
        walk: Walk,
        sink: Sink<'_, NameMatch>,
    ) -> Result<Skipped, ToolError> {
        let searched = haft_host::search_names(&*self.host, &self.at, query, walk, sink).await;
        searched.map_err(|error| self.failed(error, Field::Pattern))
    }

    fn failed(&self, error: SearchError, field: Field) -> ToolError {
        match error {
            SearchError::Pattern(text) => ToolError::new(text)
                .hint("Nothing was searched. Correct the pattern and call again."),
            SearchError::Glob(text) => {
                ToolError::new(text).hint(format!("Nothing was searched. {}", field.advice()))
            }
            SearchError::Type(text) => ToolError::new(text)
                .hint("Nothing was searched. Leave type out and use glob where no type fits."),
            SearchError::Io(error) => {
                ToolError::new(format!("{} cannot be searched: {error}", quoted(&self.shown)))
                    .hint("Give another path.")
            }
        }
    }
}

/// A walk that only the guard narrows; it ends with the call.
pub(crate) fn walk(cx: &Cx) -> Walk {
    Walk { allowed: Arc::new(|_| true), excludes: Arc::new(|_| true), stop: cx.stop.clone() }
}

/// A model's text, safe to repeat.
pub(crate) fn quoted(text: &str) -> String {
    let shown = haft_text::names::shown(text, QUOTED);
    let blank = !shown.is_empty() && shown.trim().is_empty();
    if blank { format!("{shown:?}") } else { shown }
}

/// What a search passed over, for programs.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SkippedData {
    ignored: u64,
    binary: u64,
    denied: u64,
    unreadable: u64,
    loops: u64,
    /// Links out of the searched folder, not entered.
    outside: u64,
    /// Files in other encodings that were not searched for characters outside ASCII.
    #[serde(default, skip_serializing_if = "is_none")]
    unread: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl From<&Skipped> for SkippedData {
    fn from(skipped: &Skipped) -> Self {
        Self {
            ignored: skipped.ignored,
            binary: skipped.binary,
            denied: skipped.denied,
            unreadable: skipped.unreadable,
            loops: skipped.loops,
            outside: skipped.outside,
            unread: skipped.unread,
        }
    }
}

/// What is said of a page that begins behind the last of what was found: the word for one, and
/// that for several.
pub(crate) fn past_the_end(offset: u64, seen: u64, words: [&str; 2], stopped: bool) -> String {
    let (are, what) = if seen == 1 { ("is", words[0]) } else { ("are", words[1]) };
    if stopped {
        format!("Offset {offset} was not reached: {seen} {what} so far.")
    } else {
        format!("Offset {offset} is past the end: there {are} only {seen} {what}.")
    }
}

/// What was passed over, as words; empty when nothing was.
///
/// What the caller's own arguments leave out (`all`) is told only where it may explain an answer.
pub(crate) fn passed_over(skipped: &Skipped, all: bool) -> String {
    let mut parts = Vec::new();
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    if all {
        add(skipped.ignored, "ignored (no_ignore searches them)");
        add(skipped.binary, "binary (given as path, one is searched to its end)");
    }
    add(skipped.denied, "not allowed");
    let links = |count: u64| if count == 1 { "link" } else { "links" };
    add(skipped.loops, &format!("{} in circles", links(skipped.loops)));
    let outside = links(skipped.outside);
    add(
        skipped.outside,
        &format!("{outside} out of the searched folder (search where they lead by path)"),
    );
    add(skipped.unreadable, "unreadable");
    let mut text = parts.join(", ");
    if let Some(cause) = &skipped.cause
        && skipped.unreadable > 0
    {
        // The first cause stands for all of them.
        let _ = write!(text, ": {}", quoted(cause));
    }
    text
}
