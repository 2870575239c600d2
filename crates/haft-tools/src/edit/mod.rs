//! `edit`: exact replacements in one text file, or in several together.
//!
//! **Invariant:** all edits are made or none. Not one byte outside the replaced spans changes. A
//! change of the file that this conversation has not seen is never edited over on a guess.

mod files;
mod names;
mod notebook;
mod notes;

use std::{
    collections::HashMap,
    io::{self, Read},
    mem::take,
    vec,
};

use bytes::Bytes;
use haft_host::Located;
use haft_text::{
    DecodeError, EditError, Encoding, decode,
    edit::{self as engine, Applied, Piece},
    lines::LineEnds,
    names::describe,
};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Detail, Env, Guideline, Hash, Kind, Loading, OnInterrupt, Outcome, Part, Place, Plan, Receipt,
    ReceiptAction, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::files::FileChange;
use crate::{
    files::{
        Failure, WHOLE,
        change::{self, Difference, PREVIEW, Versions},
        expected,
        freshness::{self, Freshness},
        joined, planned, regular,
        restore_secrets::PutBack,
        unexpected, whole,
    },
    units,
};

/// Replaces text in files.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Whether files that were never read in the conversation, or changed since, are refused, and
    /// so is text that is not there exactly.
    pub strict: bool,
}

// One replacement; without a word of its own in the schema, which counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Replacement {
    /// Exact text, with its indentation; occurs once in the file unless `replace_all`.
    old_text: String,
    /// Text that takes its place.
    new_text: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: Option<bool>,
}

/// Arguments of `edit`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct EditInput {
    /// File to edit, relative to the workspace or absolute; goes with edits.
    path: Option<String>,
    /// Each is matched against the file as it is now, not after the others.
    #[schemars(length(min = 1))]
    edits: Option<Vec<Replacement>>,
    /// Hash from the data of read; else nothing is changed.
    expect: Option<String>,
    /// Instead of path and edits: files that change together, each with edits, content or delete.
    #[schemars(length(min = 1))]
    files: Option<Vec<FileChange>>,
}

/// The edits of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEdit {
    path: String,
    edits: Vec<Replacement>,
    expect: Option<String>,
}

/// What a call wants.
enum EditRequest {
    One(FileEdit),
    Together(Vec<FileChange>),
}

impl EditInput {
    fn wanted(&self) -> Result<EditRequest, ToolError> {
        let Self { path, edits, expect, files } = self.clone();
        let refused = |text: &str| {
            Err(ToolError::new(text).hint(
                "Give path and edits for one file, or files alone: of each its path, with edits, \
                 content, delete or move_to.",
            ))
        };
        match (path, edits, files) {
            (Some(path), Some(edits), None) => {
                Ok(EditRequest::One(FileEdit { path, edits, expect }))
            }
            (None, None, Some(_)) if expect.is_some() => {
                refused("expect stands beside files, where it belongs to no file: put it into one")
            }
            (None, None, Some(files)) => Ok(EditRequest::Together(files)),
            (_, _, Some(_)) => refused("files stands beside path or edits, which say one file"),
            (Some(_), None, None) => refused("edits is missing: path says only which file"),
            (None, Some(_), None) => refused("path is missing: edits belong to a file"),
            (None, None, None) => refused("path and edits are missing"),
        }
    }
}

/// What programs get from `edit`: of one file, or of several.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct EditAnswer {
    #[serde(flatten)]
    one: Option<EditData>,
    /// Each file, where several were edited together.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<files::FileData>>,
}

/// What programs get of one file.
#[derive(Debug, Serialize, JsonSchema)]
struct EditData {
    /// Absolute path of the file, links resolved.
    path: String,
    /// Unified diff without file names.
    diff: String,
    /// Number of the first line that differs, from 1.
    first_changed_line: u64,
    /// How many places were replaced.
    replacements: u64,
    /// Bytes of the file now.
    file_size: u64,
    /// The tolerance that was needed; absent when everything matched exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<String>,
    /// Replaced byte ranges of the old content: start and end, end exclusive.
    ranges: Vec<[u64; 2]>,
    /// BLAKE3 hash of the content before.
    hash_before: String,
    /// BLAKE3 hash of the content after.
    hash_after: String,
}

impl Tool for Edit {
    type Input = EditInput;

    fn spec(&self, _env: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["MultiEdit".into(), "str_replace".into()],
            output_schema: schema_of::<EditAnswer>(),
            snippet: "Replace exact text in a file (surgical; several places in one call)".into(),
            guidelines: vec![
                Guideline {
                    text: "Read a file before you edit it and take old_text from it exactly, \
                           without the line numbers (a near miss is refused)"
                        .into(),
                    with: vec!["read".into()],
                    without: vec![],
                },
                Guideline {
                    text: "Use edit for exact, small changes, with all changes of one file in one \
                           call, and files for changes of several files that belong together \
                           (they are made together or not at all)"
                        .into(),
                    ..Guideline::default()
                },
            ],
            hint: "change replace modify text in a file".into(),
            kind: Kind::Edit,
            primary: "path".into(),
            loading: Loading::Always,
            on_interrupt: OnInterrupt::Finish,
            ..ToolSpec::new(
                "edit",
                "Edit file",
                "Replace exact text in one file, or in several (give files). Each old_text is text of the file as it is now \
                 and occurs once, or replace_all is set; give enough lines around it to make it \
                 unique. All edits are made or none, across several files too. Encoding, line ends and everything outside \
                 the replaced text stay as they are. The answer shows the diff; do not read the \
                 file again. For new files and whole rewrites use write.",
            )
        }
    }

    fn plan(&self, input: &EditInput, place: &Place) -> Result<Plan, ToolError> {
        match input.wanted()? {
            EditRequest::One(file) => {
                let path = planned(place, &file.path)?;
                are_text(&file.edits, "")?;
                Ok(Plan::new(place, format!("Editing {}", place.shown(&path))).changes(path))
            }
            EditRequest::Together(files) => files::plan(&files, place),
        }
    }

    async fn check(&self, input: &EditInput, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        match input.wanted()? {
            EditRequest::One(file) => change::check(self, &file, cx).await,
            EditRequest::Together(files) => files::check(self, &files, cx).await,
        }
    }

    async fn run(&self, input: EditInput, cx: &Cx) -> Result<Outcome, ToolError> {
        match input.wanted()? {
            EditRequest::One(file) => change::run(self, file, cx).await,
            EditRequest::Together(files) => files::run(self, files, cx).await,
        }
    }
}

impl change::Change for Edit {
    type Input = FileEdit;
    type Work = Work;

    fn path(input: &FileEdit) -> &str {
        &input.path
    }

    async fn work_out(&self, input: &FileEdit, at: Located, cx: &Cx) -> Result<Work, Failure> {
        Work::of(self, input, at, cx).await
    }

    fn located(work: &Work) -> (&Located, usize) {
        (&work.at, work.old.len())
    }

    fn preview(work: &mut Work) -> Detail {
        let (before, after) = (Some(work.before), Some(work.after));
        let of = Versions { path: &work.at.real, from: None, before, after };
        work.diff.preview(&of, PREVIEW)
    }

    async fn carry_out(work: Work, input: &FileEdit, cx: &Cx) -> Result<Outcome, Failure> {
        work.carry_out(input, cx).await
    }
}

/// A worked-out edit that nothing has been written of yet.
pub(crate) struct Work {
    at: Located,
    old: Bytes,
    applied: Applied,
    diff: Difference,
    before: Hash,
    after: Hash,
    notes: Vec<String>,
}

/// The way out where a file is not as it was seen.
const SEE: &str = "Read the file, then edit what is there; or give as expect the hash of the \
                   content that you know.";
/// Files above this size are worked on where that holds nobody up.
const INLINE: usize = 256 * 1024;

impl Work {
    async fn of(tool: &Edit, input: &FileEdit, at: Located, cx: &Cx) -> Result<Self, Failure> {
        regular(cx, &input.path, &at, "edited").await?;
        let shown = cx.place.shown(&at.real).into_owned();
        let old = whole(cx.host.fs(), &at, WHOLE, &shown).await?;
        let before = Hash::of(&old);
        let freshness = match input.expect.as_deref().map(expected).transpose()? {
            Some(expected) if expected != before => {
                return Err(unexpected(&shown, &expected, Some(&before)).into());
            }
            Some(_) => Freshness::Same,
            None => freshness::judge(cx, &at, Some(&before)),
        };
        if tool.strict && freshness != Freshness::Same {
            let text = format!("{shown} {}; {}", why(freshness), change::STRICT);
            return Err(ToolError::new(text).hint(SEE).into());
        }
        let back = PutBack::new(cx, &old, &shown);
        let edits = (1..).zip(&input.edits).map(|(number, edit)| edit.engine(number, &back));
        let edits = edits.collect::<Result<Vec<engine::Edit>, _>>()?;
        let (text, name, strict) = (old.clone(), shown.clone(), tool.strict);
        let asked = cx.is_asked();
        let apply = move || {
            let done = apply(&text, &edits, before, (freshness, asked), &name)?;
            if strict {
                exactly(&done.0, &name)?;
            }
            Ok::<_, ToolError>(done)
        };
        let (applied, diff, notes) = if old.len() <= INLINE {
            apply()?
        } else {
            tokio::task::spawn_blocking(apply)
                .await
                .map_err(|error| ToolError::new(format!("the edit broke down: {error}")))??
        };
        let after = applied.hash_after.parse().map_err(|error| {
            ToolError::new(format!("the edited text has no proper hash: {error}"))
        })?;
        let mut work = Self { at, old, applied, diff, before, after, notes };
        if freshness == Freshness::Changed {
            work.notes.push(change::since_read(cx, &work.at, &work.old));
        }
        change::place_notes(cx, &input.path, &work.at, &mut work.notes);
        Ok(work)
    }

    fn detail(&self) -> Detail {
        let (before, after) = (Some(self.before), Some(self.after));
        self.diff.detail(&Versions { path: &self.at.real, from: None, before, after })
    }

    /// The new content; what was read is offered for undo.
    fn data(&self, cx: &Cx) -> Bytes {
        cx.offer_pre_image(&self.at, &self.old, self.before);
        joined(self.applied.size, self.applied.slices(&self.old))
    }

    async fn carry_out(mut self, input: &FileEdit, cx: &Cx) -> Result<Outcome, Failure> {
        let written = if self.applied.size <= INLINE {
            let data = self.data(cx);
            let written = change::carry_out(cx, &self.at, data.clone(), false).await?;
            freshness::keep(cx, self.after, &data);
            written
        } else {
            cx.offer_pre_image(&self.at, &self.old, self.before);
            let from = Pieces::of(self.old.clone(), take(&mut self.applied.pieces));
            change::carry_out_from(cx, &self.at, Box::new(from)).await?
        };
        change::made_notes(&self.at, &written, &mut self.notes);
        freshness::note(cx, &written.at, Some(self.after));
        let first = format!("Edited {}", self.first(&input.path, cx)?);
        let text = change::answer(&first, &self.notes, &self.diff.shown().numbered());
        let answer = EditAnswer { one: Some(self.told()), files: None };
        Ok(Outcome {
            content: vec![Part::text(text)],
            data: serde_json::to_value(answer).ok(),
            detail: Some(self.detail()),
            receipts: vec![self.receipt(cx)],
            ..Outcome::default()
        })
    }

    /// The file and how much of it changed.
    fn first(&self, path: &str, cx: &Cx) -> Result<String, ToolError> {
        Ok(format!(
            "{}: {} replaced, the first at line {}.",
            cx.place.shown(&cx.path(path)?),
            units::count(self.applied.replacements as u64, "place"),
            self.applied.first_changed_line
        ))
    }

    fn receipt(&self, cx: &Cx) -> Receipt {
        let ranges = self.applied.ranges.iter();
        Receipt {
            before: Some(self.before),
            after: Some(self.after),
            tolerance: self.applied.tolerance.map(Into::into),
            ranges: ranges.map(|range| (range.start as u64, range.end as u64)).collect(),
            ..Receipt::new(cx.host.name().to_owned(), self.at.real.clone(), ReceiptAction::Changed)
        }
    }

    fn told(&self) -> EditData {
        let ranges = self.applied.ranges.iter();
        EditData {
            path: self.at.real.text().into_owned(),
            diff: self.diff.shown().unified(),
            first_changed_line: self.applied.first_changed_line as u64,
            replacements: self.applied.replacements as u64,
            file_size: self.applied.size as u64,
            tolerance: self.applied.tolerance.map(str::to_owned),
            ranges: ranges.map(|range| [range.start as u64, range.end as u64]).collect(),
            hash_before: self.applied.hash_before.clone(),
            hash_after: self.applied.hash_after.clone(),
        }
    }
}

/// The new content of a large file, read from the old one and the new pieces: nobody needs it as a
/// whole, and to make room for it would take longer than to write it.
struct Pieces {
    old: Bytes,
    rest: vec::IntoIter<Piece>,
    /// What is left of the present piece.
    piece: Bytes,
}

impl Pieces {
    fn of(old: Bytes, pieces: Vec<Piece>) -> Self {
        Self { old, rest: pieces.into_iter(), piece: Bytes::new() }
    }
}

impl Read for Pieces {
    /// Fills the buffer while there is anything, so that small pieces are not written one by one.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            if self.piece.is_empty() {
                self.piece = match self.rest.next() {
                    Some(Piece::Keep(range)) => self.old.slice(range),
                    Some(Piece::New(bytes)) => bytes.into(),
                    None => break,
                };
                continue;
            }
            let some = self.piece.split_to(self.piece.len().min(buffer.len() - done));
            buffer[done..done + some.len()].copy_from_slice(&some);
            done += some.len();
        }
        Ok(done)
    }
}

/// Refuses new texts that no text has; `of` says which file it is, where there are several.
fn are_text(edits: &[Replacement], of: &str) -> Result<(), ToolError> {
    (1..).zip(edits).try_for_each(|(number, edit)| {
        change::is_text(&edit.new_text, &format!("new_text of edit {number}{of}"))
    })
}

impl Replacement {
    /// The edit with the values that the file hides; `number` counts from 1.
    fn engine(&self, number: usize, back: &PutBack<'_>) -> Result<engine::Edit, ToolError> {
        Ok(engine::Edit {
            old_text: back.text(&self.old_text, &format!("old_text of edit {number}"))?,
            new_text: back.text(&self.new_text, &format!("new_text of edit {number}"))?,
            replace_all: self.replace_all.unwrap_or(false),
        })
    }
}

const fn why(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Never => "was not read in this conversation",
        Freshness::Changed => "changed since it was read",
        Freshness::Same => "is as it was read",
    }
}

/// Characters that an answer names.
const BROUGHT: usize = 8;

type Done = (Applied, Difference, Vec<String>);

/// The pure part: decode, match, replace, and compare.
fn apply(
    old: &[u8],
    edits: &[engine::Edit],
    before: Hash,
    (freshness, asked): (Freshness, bool),
    shown: &str,
) -> Result<Done, ToolError> {
    let decoded = decode::decode(old).map_err(|error| match error {
        DecodeError::Binary { kind, .. } => {
            ToolError::new(format!("{shown} is not text but {kind}; it cannot be edited as text"))
                .hint("Use a program that knows this kind of file.")
        }
        other => ToolError::new(format!("{shown}: {other}")),
    })?;
    let decoded = decoded.with_hash(before.to_string());
    let applied = engine::apply(&decoded, edits).map_err(|error| {
        let refused = refused(&error, freshness, shown);
        match notebook::cell_of(decoded.text(), edits, &error, shown) {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    })?;
    notebook::stays_json(old, &applied, shown)?;
    if freshness != Freshness::Same {
        exact_and_unique(&applied, freshness, shown)?;
    }
    let compare = |limits| change::of_changes(decoded.text(), &applied.changes, limits);
    let diff = Difference::of(asked, compare);
    let mut notes = change::unseen(diff.shown());
    for (number, tolerance) in (1..).zip(&applied.tolerances) {
        if let Some(tolerance) = tolerance {
            notes.push(format!("edit {number} matched with a tolerance: {tolerance}"));
        }
    }
    for (number, brought) in &applied.brought {
        let named: Vec<String> = brought.iter().take(BROUGHT).map(|it| describe(*it)).collect();
        notes.push(format!(
            "new_text of edit {number} brings in {}, which the lines that it replaces did not have",
            named.join(", ")
        ));
    }
    let encoding = decoded.format().encoding;
    if !matches!(encoding, Encoding::Utf8 | Encoding::DamagedUtf8) {
        notes.push(format!("written in {}, as before", encoding.name()));
    }
    if let Some(other) = applied.taken_for {
        notes.push(change::taken_for(other));
    }
    let returns = |text: &str| LineEnds::scan(text.as_bytes()).cr;
    if !decoded.line_ends().cr_ends_lines() {
        let more =
            |edit: &engine::Edit| returns(&edit.new_text).saturating_sub(returns(&edit.old_text));
        notes.extend(change::lone_returns(edits.iter().map(more).sum()));
    }
    let text = decoded.text();
    notes.extend(edits.iter().find_map(|edit| change::placeholders(text, &edit.new_text)));
    let cr_ends = decoded.line_ends().cr_ends_lines();
    notes.extend(notes::of(text, edits, &applied.changes, cr_ends));
    Ok((applied, diff, notes))
}

fn refused(error: &EditError, freshness: Freshness, shown: &str) -> ToolError {
    let refused = ToolError::new(format!("{shown} was not changed. {error}"));
    let searched = |error: &EditError| {
        matches!(error, EditError::NotFound { .. } | EditError::AlreadyApplied { .. })
    };
    if freshness == Freshness::Same || !error.each().iter().any(searched) {
        return refused;
    }
    refused.hint(format!("The file {}: read it, then edit what is there.", why(freshness)))
}

/// Refuses what needed a tolerance, by its name.
fn exactly(applied: &Applied, shown: &str) -> Result<(), ToolError> {
    let tolerant = (1..).zip(&applied.tolerances).find_map(|(number, t)| Some((number, (*t)?)));
    let Some((number, tolerance)) = tolerant else { return Ok(()) };
    Err(ToolError::new(format!(
        "{shown} was not changed. The old_text of edit {number} is not there exactly: it matches \
         only with a tolerance ({tolerance}), and the setting edit.strict takes none"
    ))
    .hint("Read the lines, then give old_text exactly as they are."))
}

/// What was not seen is edited only where the text given is there exactly and once.
fn exact_and_unique(applied: &Applied, freshness: Freshness, shown: &str) -> Result<(), ToolError> {
    let why = why(freshness);
    let refused = |what: String| {
        Err(ToolError::new(format!("{shown} {why}, and {what}. Nothing was changed.")).hint(SEE))
    };
    for (number, tolerance) in (1..).zip(&applied.tolerances) {
        if let Some(tolerance) = tolerance {
            return refused(format!("edit {number} matches only with a tolerance: {tolerance}"));
        }
    }
    let mut places: HashMap<usize, usize> = HashMap::new();
    for change in &applied.changes {
        let count = places.entry(change.edit).or_default();
        *count += 1;
        if *count > 1 {
            return refused(format!("edit {} would replace several places", change.edit));
        }
    }
    Ok(())
}
