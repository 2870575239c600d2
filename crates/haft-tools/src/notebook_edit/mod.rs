//! `notebook_edit`: edits one cell of a Jupyter notebook.
//!
//! **Invariant:** not one byte outside the cell changes, except for the comma next to an added or
//! removed cell. A state of the file that this conversation has not seen is never changed.

mod cells;
mod layout;

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use haft_host::Located;
use haft_text::{
    diff::{Limits, TextDiff},
    lines::{LineEnd, LineEnds},
};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Detail, Env, Guideline, Hash, Kind, Loading, OnInterrupt, Outcome, Part, Place, Plan, Receipt,
    ReceiptAction, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use self::{
    cells::{Cell, Notebook},
    layout::NewCell,
};
use crate::{
    files::{
        self, Failure,
        change::{self, Difference, PREVIEW, Versions},
        freshness::{self, Freshness},
        restore_secrets::PutBack,
    },
    units,
    write::ends,
};

/// Notebooks above this size are worked on where that holds nobody up.
const INLINE: usize = 256 * 1024;
/// What UTF-8 files may begin with.
pub(crate) const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Changes cells of notebooks.
#[derive(Clone, Debug, Default)]
pub struct NotebookEdit;

/// What is done with the cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

/// Kinds of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

impl CellType {
    const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// Arguments of `notebook_edit`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NotebookEditInput {
    /// Notebook (.ipynb), relative to the workspace or absolute.
    path: String,
    /// The cell by its id; with insert, the one before the new cell.
    cell_id: Option<String>,
    /// The cell by its number from 1, as read shows it; in place of the id.
    #[schemars(range(min = 1))]
    cell: Option<u64>,
    /// The whole new source.
    new_source: Option<String>,
    /// Kind of the cell (replace: stays as it is; insert: code).
    cell_type: Option<CellType>,
    /// What to do (default replace); insert without a cell puts the new one first.
    edit_mode: Option<Mode>,
    /// Hash from the data of read; else nothing is changed.
    expect: Option<String>,
}

/// What programs get from `notebook_edit`.
#[derive(Debug, Serialize, JsonSchema)]
struct NotebookEditData {
    /// Absolute path of the file, links resolved.
    path: String,
    /// Number of the cell, from 1; of a deleted one, where it was.
    cell: u64,
    /// Id of the cell, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<String>,
    /// Kind of the cell.
    cell_type: String,
    /// How many cells the notebook has now.
    cells: u64,
    /// Unified diff of the cell's source without file names.
    diff: String,
    /// Bytes of the file now.
    file_size: u64,
    /// Replaced byte ranges of the old content: start and end, end exclusive.
    ranges: Vec<[u64; 2]>,
    /// BLAKE3 hash of the content before.
    hash_before: String,
    /// BLAKE3 hash of the content after.
    hash_after: String,
}

impl Tool for NotebookEdit {
    type Input = NotebookEditInput;

    fn spec(&self, _env: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["NotebookEdit".into()],
            output_schema: schema_of::<NotebookEditData>(),
            snippet: "Replace, insert or delete one cell of a Jupyter notebook".into(),
            guidelines: vec![Guideline {
                text: "Prefer notebook_edit over edit for notebooks (it takes the source of a \
                       cell as read shows it)"
                    .into(),
                with: vec!["edit".into()],
                without: vec![],
            }],
            hint: "jupyter notebook ipynb cell edit insert delete".into(),
            kind: Kind::Edit,
            primary: "path".into(),
            loading: Loading::Deferred,
            on_interrupt: OnInterrupt::Finish,
            ..ToolSpec::new(
                "notebook_edit",
                "Edit notebook",
                "Replace, insert or delete one cell of a Jupyter notebook (format 4) that was \
                 read before. A changed code cell loses its outputs; everything outside the cell \
                 stays as it is. The answer shows the diff of the source.",
            )
        }
    }

    fn plan(&self, input: &NotebookEditInput, place: &Place) -> Result<Plan, ToolError> {
        let path = files::planned(place, &input.path)?;
        input.is_whole()?;
        let doing = match input.mode() {
            Mode::Replace => "Editing a cell of",
            Mode::Insert => "Inserting a cell into",
            Mode::Delete => "Deleting a cell of",
        };
        Ok(Plan::new(place, format!("{doing} {}", place.shown(&path))).changes(path))
    }

    async fn check(&self, input: &NotebookEditInput, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        change::check(self, input, cx).await
    }

    async fn run(&self, input: NotebookEditInput, cx: &Cx) -> Result<Outcome, ToolError> {
        change::run(self, input, cx).await
    }
}

impl NotebookEditInput {
    fn mode(&self) -> Mode {
        self.edit_mode.unwrap_or_default()
    }

    fn has_cell(&self) -> bool {
        self.cell.is_some() || self.cell_id.is_some()
    }

    /// Refuses a call that lacks what its mode needs.
    fn is_whole(&self) -> Result<(), ToolError> {
        let (lacks, hint) = match self.mode() {
            Mode::Replace | Mode::Delete if !self.has_cell() => (
                "neither cell nor cell_id says which cell is meant",
                "Give the number or the id that read shows above the cell.",
            ),
            Mode::Replace if self.new_source.is_none() && self.cell_type.is_none() => (
                "new_source is missing",
                "Give the whole new source of the cell; to take the cell away, edit_mode delete.",
            ),
            Mode::Insert if self.new_source.is_none() => {
                ("new_source is missing", "Give the source of the new cell; it may be empty.")
            }
            _ => return Ok(()),
        };
        Err(ToolError::new(format!("{lacks}; nothing was changed")).hint(hint))
    }
}

impl change::Change for NotebookEdit {
    type Input = NotebookEditInput;
    type Work = Work;

    fn path(input: &NotebookEditInput) -> &str {
        &input.path
    }

    async fn work_out(
        &self,
        input: &NotebookEditInput,
        at: Located,
        cx: &Cx,
    ) -> Result<Work, Failure> {
        Work::of(input, at, cx).await
    }

    fn located(work: &Work) -> (&Located, usize) {
        (&work.at, work.old.len() + work.made.data.len())
    }

    fn preview(work: &mut Work) -> Detail {
        let (before, after) = (Some(work.before), Some(work.made.after));
        let of = Versions { path: &work.at.real, from: None, before, after };
        work.made.diff.preview(&of, PREVIEW)
    }

    async fn carry_out(work: Work, input: &NotebookEditInput, cx: &Cx) -> Result<Outcome, Failure> {
        work.carry_out(input, cx).await
    }
}

/// A worked-out change that nothing has been written of yet.
pub(crate) struct Work {
    at: Located,
    old: Bytes,
    before: Hash,
    made: NotebookChange,
    notes: Vec<String>,
}

impl Work {
    async fn of(input: &NotebookEditInput, at: Located, cx: &Cx) -> Result<Self, Failure> {
        files::regular(cx, &input.path, &at, "edited").await?;
        let shown = cx.place.shown(&at.real).into_owned();
        let old = files::whole(cx.host.fs(), &at, files::WHOLE, &shown).await?;
        let before = Hash::of(&old);
        if !is_named_one(&shown) && json(&old).is_err() {
            return Err(ToolError::new(format!("{shown} is no notebook: it is no JSON"))
                .hint("Use edit for other files that are text.")
                .into());
        }
        is_known(input, &at, before, cx, &shown)?;
        let (text, mut wanted, asked) = (old.clone(), input.clone(), cx.is_asked());
        if let Some(new) = &mut wanted.new_source {
            *new = PutBack::new(cx, &old, &shown).text(new, "new_source")?;
        }
        let work_out = move || NotebookChange::of(&text, before, (&wanted, asked), &shown);
        let made = if old.len() <= INLINE {
            work_out()?
        } else {
            tokio::task::spawn_blocking(work_out)
                .await
                .map_err(|error| ToolError::new(format!("the edit broke down: {error}")))??
        };
        let mut notes = made.notes.clone();
        change::place_notes(cx, &input.path, &at, &mut notes);
        Ok(Self { at, old, before, made, notes })
    }

    fn detail(&self) -> Detail {
        let (before, after) = (Some(self.before), Some(self.made.after));
        self.made.diff.detail(&Versions { path: &self.at.real, from: None, before, after })
    }

    async fn carry_out(mut self, input: &NotebookEditInput, cx: &Cx) -> Result<Outcome, Failure> {
        cx.offer_pre_image(&self.at, &self.old, self.before);
        let written = change::carry_out(cx, &self.at, self.made.data.clone(), false).await?;
        change::made_notes(&self.at, &written, &mut self.notes);
        freshness::note(cx, &written.at, Some(self.made.after));
        let NotebookChange { cell, cells, kind, id, after, .. } = &self.made;
        let name = match id {
            Some(id) => format!("cell {cell} ({kind}, id {})", haft_text::names::shown(id, 80)),
            None => format!("cell {cell} ({kind})"),
        };
        let (shown, count) = (cx.path(&input.path)?, units::count(*cells, "cell"));
        let shown = cx.place.shown(&shown);
        let (first, diff) = match input.mode() {
            Mode::Replace => {
                (format!("Edited {name} of {shown}."), self.made.diff.shown().numbered())
            }
            // Its text is what the model has just written: no need to show it again.
            Mode::Insert => {
                (format!("Inserted {name} into {shown}, which has {count} now."), String::new())
            }
            Mode::Delete => (
                format!("Deleted {name} of {shown}, which has {count} left."),
                self.made.diff.shown().numbered(),
            ),
        };
        let text = change::answer(&first, &self.notes, &diff);
        let ranges: Vec<(u64, u64)> =
            self.made.ranges.iter().map(|range| (range.start as u64, range.end as u64)).collect();
        let data = NotebookEditData {
            path: self.at.real.text().into_owned(),
            cell: *cell,
            cell_id: id.clone(),
            cell_type: kind.clone(),
            cells: *cells,
            diff: self.made.diff.shown().unified(),
            file_size: self.made.data.len() as u64,
            ranges: ranges.iter().map(|(start, end)| [*start, *end]).collect(),
            hash_before: self.before.to_string(),
            hash_after: after.to_string(),
        };
        let (host, path) = (cx.host.name().to_owned(), self.at.real.clone());
        let receipt = Receipt {
            before: Some(self.before),
            after: Some(*after),
            ranges,
            ..Receipt::new(host, path, ReceiptAction::Changed)
        };
        Ok(Outcome {
            content: vec![Part::text(text)],
            data: serde_json::to_value(data).ok(),
            detail: Some(self.detail()),
            receipts: vec![receipt],
            ..Outcome::default()
        })
    }
}

/// Reports whether a file is a notebook by its name.
pub(crate) fn is_named_one(shown: &str) -> bool {
    shown.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("ipynb"))
}

/// Reports why bytes are no JSON of a notebook, in which Python's NaN may stand.
pub(crate) fn json(bytes: &[u8]) -> serde_json::Result<IgnoredAny> {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(&haft_text::json::for_spans(text)),
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// The cells of a notebook, for who looks for one.
pub(crate) struct Sources<'t>(Notebook<'t>);

impl<'t> Sources<'t> {
    /// None where the text is no notebook.
    pub(crate) fn of(text: &'t str) -> Option<Self> {
        Notebook::of(text, "").ok().map(Self)
    }

    /// The number, from 1, of the cell that stands at an offset.
    pub(crate) fn at(&self, offset: usize) -> Option<usize> {
        self.0.cells.iter().position(|cell| cell.contains(&offset)).map(|index| index + 1)
    }

    /// The number, from 1, of the first cell in whose source a text stands.
    pub(crate) fn with(&self, text: &str) -> Option<usize> {
        let text = text.trim_end_matches('\n');
        let holds =
            |index: &usize| self.0.cell(*index).is_some_and(|cell| cell.source().contains(text));
        (0..self.0.cells.len()).find(holds).map(|index| index + 1)
    }
}

/// Refuses a file that the caller has not seen as it is: no old text proves what is meant.
fn is_known(
    input: &NotebookEditInput,
    at: &Located,
    found: Hash,
    cx: &Cx,
    shown: &str,
) -> Result<(), ToolError> {
    if let Some(expected) = input.expect.as_deref().map(files::expected).transpose()? {
        if expected != found {
            return Err(files::unexpected(shown, &expected, Some(&found)));
        }
        return Ok(());
    }
    let why = match freshness::judge(cx, at, Some(&found)) {
        Freshness::Same => return Ok(()),
        Freshness::Never => "was not read in this conversation",
        Freshness::Changed => "changed since it was read",
    };
    Err(ToolError::new(format!("{shown} {why}; nothing was changed")).hint(
        "Read the notebook, then change the cell that is meant; or give as expect the hash of the \
         content that you know.",
    ))
}

/// What a change makes of a notebook.
struct NotebookChange {
    data: Bytes,
    after: Hash,
    diff: Difference,
    /// Replaced byte ranges of the old content.
    ranges: Vec<Range<usize>>,
    /// Number of the cell, from 1.
    cell: u64,
    /// How many cells there are then.
    cells: u64,
    kind: String,
    id: Option<String>,
    notes: Vec<String>,
}

/// What is replaced in the text: where, and by what.
type Replaced = Vec<(Range<usize>, String)>;

/// The change of one cell.
#[derive(Default)]
struct Changed {
    replaced: Replaced,
    index: usize,
    kind: String,
    id: Option<String>,
    old: String,
    new: String,
    notes: Vec<String>,
}

impl NotebookChange {
    fn of(
        bytes: &[u8],
        before: Hash,
        (input, asked): (&NotebookEditInput, bool),
        shown: &str,
    ) -> Result<Self, ToolError> {
        let mark = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
        let text = std::str::from_utf8(&bytes[mark..]).map_err(|error| {
            let at = mark + error.valid_up_to();
            ToolError::new(format!("{shown} is no notebook: its byte {at} is no UTF-8, as JSON is"))
                .hint("Look at it with read; a command can convert it.")
        })?;
        let notebook = Notebook::of(text, shown)?;
        let picked = notebook.pick(input.cell_id.as_deref(), input.cell, shown)?;
        let count = notebook.cells.len() as u64;
        let (input, ends) = &fitted(&notebook, picked, input);
        let (mut changed, cells) = match (input.mode(), picked) {
            (Mode::Insert, picked) => (insert(&notebook, picked, before, input), count + 1),
            (Mode::Replace, Some(index)) => (replace(&notebook, index, input, shown)?, count),
            (Mode::Delete, Some(index)) => (delete(&notebook, index, input), count - 1),
            (Mode::Replace | Mode::Delete, None) => return Err(gone()),
        };
        if let Some(new) = &input.new_source
            && input.mode() != Mode::Delete
        {
            changed.notes.extend(change::placeholders(&changed.old, new));
            changed.notes.extend(ends.clone());
        }
        let compare = |limits| compared(&changed.old, &changed.new, limits);
        let diff = Difference::of(asked, compare);
        changed.notes.extend(change::unseen(diff.shown()));
        changed.replaced.sort_by_key(|(range, _)| (range.start, range.end));
        let data = Bytes::from(spliced(bytes, mark, &changed.replaced));
        let ranges = changed.replaced.iter().map(|(at, _)| at.start + mark..at.end + mark);
        Ok(Self {
            after: Hash::of(&data),
            diff,
            ranges: ranges.collect(),
            data,
            cell: changed.index as u64 + 1,
            cells,
            kind: changed.kind,
            id: changed.id,
            notes: changed.notes,
        })
    }
}

/// The input with the line ends of the source that it replaces, or of the notebook where that has
/// none; a notebook without any has line feeds, as Jupyter writes them. Says so where it differs.
fn fitted(
    notebook: &Notebook<'_>,
    picked: Option<usize>,
    input: &NotebookEditInput,
) -> (NotebookEditInput, Option<String>) {
    let mut input = input.clone();
    let Some(new) = input.new_source.take() else { return (input, None) };
    let source = |index| notebook.cell(index).map(|cell| cell.source()).unwrap_or_default();
    let replaced = picked.filter(|_| input.mode() == Mode::Replace);
    let old = replaced.map(source).unwrap_or_default();
    let mut had = LineEnds::scan(old.as_bytes());
    if had.dominant() == LineEnd::None {
        let all: String = (0..notebook.cells.len()).map(source).collect();
        had = LineEnds::scan(all.as_bytes());
    }
    if had.dominant() == LineEnd::None {
        had.lf = 1;
    }
    let (new, note) = ends::fitted(new, &old, had);
    input.new_source = Some(new);
    (input, note)
}

/// What differs in the sources. Hardly one has a line end at its end: only where just one of them
/// has is that worth a remark.
fn compared(old: &str, new: &str, limits: Limits) -> TextDiff {
    let open = |text: &str| text.is_empty() || !text.ends_with('\n');
    if !open(old) || !open(new) {
        return change::compared(old, new, limits);
    }
    let ended = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    change::compared(&ended(old), &ended(new), limits)
}

/// The bytes with the ranges of their text replaced, which are in order.
fn spliced(bytes: &[u8], mark: usize, replaced: &Replaced) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 256);
    let mut done = 0;
    for (range, new) in replaced {
        out.extend_from_slice(&bytes[done..range.start + mark]);
        out.extend_from_slice(new.as_bytes());
        done = range.end + mark;
    }
    out.extend_from_slice(&bytes[done..]);
    out
}

/// A cell that is no object.
fn gone() -> ToolError {
    ToolError::new("that cell is no object, so it has no source; nothing was changed")
        .hint("Delete it with edit_mode delete, or mend it with edit.")
}

fn insert(
    notebook: &Notebook<'_>,
    after: Option<usize>,
    before: Hash,
    input: &NotebookEditInput,
) -> Changed {
    let index = after.map_or(0, |after| after + 1);
    let kind = input.cell_type.unwrap_or(CellType::Code).name();
    let source = input.new_source.as_deref().unwrap_or_default();
    let id = notebook.with_ids.then(|| new_id(notebook, before, index, source));
    let new = NewCell { kind, id: id.as_deref(), source };
    Changed {
        replaced: vec![notebook.insertion(index, &new)],
        index,
        kind: kind.to_owned(),
        id,
        new: source.to_owned(),
        ..Changed::default()
    }
}

/// An id that no cell has, the same for the same call.
fn new_id(notebook: &Notebook<'_>, before: Hash, index: usize, source: &str) -> String {
    let ids = notebook.ids();
    let id = |attempt: u64| {
        let text = format!("{before} {index} {attempt} {source}");
        Hash::of(text.as_bytes()).to_string().chars().take(8).collect::<String>()
    };
    let free = |id: &String| !ids.iter().flatten().any(|other| other == id);
    // Of so many one is free.
    (0..=ids.len() as u64).map(id).find(free).unwrap_or_default()
}

fn delete(notebook: &Notebook<'_>, index: usize, input: &NotebookEditInput) -> Changed {
    // What is no object can be deleted all the same.
    let cell = notebook.cell(index);
    let mut notes = Vec::new();
    if input.new_source.as_ref().is_some_and(|source| !source.is_empty()) {
        notes.push("new_source was not used: the cell was deleted".to_owned());
    }
    Changed {
        replaced: vec![(notebook.deletion(index), String::new())],
        index,
        kind: cell.as_ref().map_or(Cow::Borrowed("unknown"), Cell::kind).into_owned(),
        id: cell.as_ref().and_then(Cell::id),
        old: cell.as_ref().map(Cell::source).unwrap_or_default(),
        notes,
        ..Changed::default()
    }
}

fn replace(
    notebook: &Notebook<'_>,
    index: usize,
    input: &NotebookEditInput,
    shown: &str,
) -> Result<Changed, ToolError> {
    let cell = notebook.cell(index).ok_or_else(gone)?;
    let inside = layout::of_cell(&cell).ok_or_else(gone)?;
    let (old, was) = (cell.source(), cell.kind());
    let kind = input.cell_type.map_or(was.clone(), |kind| Cow::Borrowed(kind.name()));
    let new = input.new_source.clone().unwrap_or_else(|| old.clone());
    if new == old && kind == was {
        return Err(ToolError::new(format!(
            "cell {} of {shown} already has exactly this source; nothing was changed",
            index + 1
        ))
        .hint("Leave this call out, or give the source that is wanted."));
    }
    let mut changed = Changed { index, id: cell.id(), ..Changed::default() };
    if new != old {
        let value = layout::source(&new, cell.value("source"), &inside);
        put(&cell, &inside, "source", value, &mut changed.replaced);
    }
    if kind != was {
        let value = haft_text::json::string(&kind);
        put(&cell, &inside, "cell_type", value, &mut changed.replaced);
        changed.notes.push(format!("it was a {was} cell"));
    }
    outputs(&cell, &inside, (&was, &kind), &mut changed)?;
    (changed.kind, changed.old, changed.new) = (kind.into_owned(), old, new);
    Ok(changed)
}

/// Gives a member another value, or adds it at the end.
fn put(cell: &Cell<'_>, inside: &layout::Layout, name: &str, value: String, out: &mut Replaced) {
    match (cell.member(name), cell.members.last()) {
        (Some(member), _) => out.push((member.value.clone(), value)),
        (None, Some(last)) => {
            out.push((last.value.end..last.value.end, inside.after(name, &value)));
        }
        (None, None) => {}
    }
}

/// Clears what a code cell has put out, which its new source has not; gives a cell the members that
/// its new kind has, and takes away those that it has not.
fn outputs(
    cell: &Cell<'_>,
    inside: &layout::Layout,
    (was, is): (&str, &str),
    changed: &mut Changed,
) -> Result<(), ToolError> {
    if is != "code" {
        if was == "code" {
            let had = cell.value("outputs").is_some_and(|value| !is_empty(value));
            changed.notes.extend(had.then(|| "its outputs are gone".to_owned()));
            let gone = ["outputs", "execution_count"];
            changed.replaced.extend(without(cell, &gone));
        }
        return Ok(());
    }
    if let Some(attached) = cell.value("attachments").filter(|_| was != is) {
        if !is_empty(attached) {
            return Err(ToolError::new(
                "the cell has attachments, which no code cell has; nothing was changed",
            )
            .hint("Insert a code cell beside it instead."));
        }
        changed.replaced.extend(without(cell, &["attachments"]));
    }
    for (name, empty) in [("execution_count", "null"), ("outputs", "[]")] {
        match cell.member(name) {
            None if was == is => {}
            None => add(cell, inside, name, empty, &mut changed.replaced),
            Some(member) => {
                let value = &cell.text[member.value.clone()];
                let cleared = value == empty || (name == "outputs" && is_empty(value));
                if !cleared {
                    changed.replaced.push((member.value.clone(), empty.to_owned()));
                    changed
                        .notes
                        .extend((name == "outputs").then(|| "its outputs were cleared".to_owned()));
                }
            }
        }
    }
    Ok(())
}

/// Reports whether a list or an object holds nothing.
fn is_empty(value: &str) -> bool {
    value.get(1..value.len() - 1).is_some_and(|inner| inner.trim().is_empty())
}

/// Adds a member where Jupyter writes it: the count behind the kind, the outputs before the source.
fn add(cell: &Cell<'_>, inside: &layout::Layout, name: &str, value: &str, out: &mut Replaced) {
    match (name, cell.member("cell_type"), cell.member("source")) {
        ("execution_count", Some(kind), _) => {
            out.push((kind.value.end..kind.value.end, inside.after(name, value)));
        }
        ("outputs", _, Some(source)) => {
            out.push((source.key.start..source.key.start, inside.before(name, value)));
        }
        _ => put(cell, inside, name, value.to_owned(), out),
    }
}

/// What takes members away with their commas; one that stays is always there.
fn without(cell: &Cell<'_>, names: &[&str]) -> Replaced {
    let members = &cell.members;
    let goes = |index: &usize| names.contains(&&*members[*index].name);
    let first = (0..members.len()).find(|index| !goes(index)).unwrap_or_default();
    let mut out = Vec::new();
    if first > 0 {
        out.push((members[0].key.start..members[first].key.start, String::new()));
    }
    for index in (first + 1..members.len()).filter(goes) {
        out.push((members[index - 1].value.end..members[index].value.end, String::new()));
    }
    out
}
