//! `write`: writes a whole file, new or in place of an old one.
//!
//! **Invariant:** a file that is replaced keeps its encoding, byte order mark and line ends. A
//! state of the file that changed since this conversation saw it is never replaced.

pub(crate) mod ends;

use bytes::Bytes;
use haft_host::{FileKind, Located, Written};
use haft_text::{Decoded, Encoding, Format, decode, encode, lines::LineEnds};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Detail, Env, Guideline, Hash, Kind, Loading, OnInterrupt, Outcome, Part, Place, Plan, Receipt,
    ReceiptAction, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    files::{
        self, Failure,
        change::{self, Difference, PREVIEW, Versions},
        freshness::{self, Freshness},
        restore_secrets::PutBack,
    },
    notebook_edit, units,
};

/// Writes whole files.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// Whether a file that was never read in the conversation is refused instead of replaced.
    pub strict: bool,
}

/// Arguments of `write`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WriteInput {
    /// File to write, relative to the workspace or absolute; missing folders are made.
    path: String,
    /// The whole new content.
    content: String,
    /// Hash from the data of read; else nothing is written.
    expect: Option<String>,
}

impl WriteInput {
    pub(crate) const fn new(path: String, content: String, expect: Option<String>) -> Self {
        Self { path, content, expect }
    }

    /// The same for another file.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

/// What programs get from `write`.
#[derive(Debug, Serialize, JsonSchema)]
struct WriteData {
    /// Absolute path of the file, links resolved.
    path: String,
    /// True when there was no such file.
    created: bool,
    /// Bytes of the file now.
    bytes: u64,
    /// Lines of the file now.
    lines: u64,
    /// BLAKE3 hash of the content before, for files up to 64 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_before: Option<String>,
    /// BLAKE3 hash of the content now.
    hash_after: String,
}

impl Tool for Write {
    type Input = WriteInput;

    fn spec(&self, _env: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["create_file".into(), "write_file".into()],
            output_schema: schema_of::<WriteData>(),
            snippet: "Write a whole file (overwrites what is there)".into(),
            guidelines: vec![Guideline {
                text: "Prefer edit over write for files that exist (less text, and nothing else \
                       can change); write is for new files and whole rewrites"
                    .into(),
                with: vec!["edit".into()],
                without: vec![],
            }],
            hint: "create new file or overwrite whole content".into(),
            kind: Kind::Edit,
            primary: "path".into(),
            loading: Loading::Always,
            on_interrupt: OnInterrupt::Finish,
            ..ToolSpec::new(
                "write",
                "Write file",
                "Write a whole file, new or in place of the old one; missing folders are made. \
                 An old file keeps its encoding and line ends; one that changed since it was read \
                 is refused. For changes of parts use edit.",
            )
        }
    }

    fn plan(&self, input: &WriteInput, place: &Place) -> Result<Plan, ToolError> {
        let path = files::planned(place, &input.path)?;
        change::is_text(&input.content, "content")?;
        Ok(Plan::new(place, format!("Writing {}", place.shown(&path))).changes(path))
    }

    async fn check(&self, input: &WriteInput, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        change::check(self, input, cx).await
    }

    async fn run(&self, input: WriteInput, cx: &Cx) -> Result<Outcome, ToolError> {
        change::run(self, input, cx).await
    }
}

impl change::Change for Write {
    type Input = WriteInput;
    type Work = Work;

    fn path(input: &WriteInput) -> &str {
        &input.path
    }

    async fn work_out(&self, input: &WriteInput, at: Located, cx: &Cx) -> Result<Work, Failure> {
        Work::of(self, input, at, cx).await
    }

    fn located(work: &Work) -> (&Located, usize) {
        (&work.at, work.old_size() + work.data.len())
    }

    fn preview(work: &mut Work) -> Detail {
        let (before, after) = (work.before(), Some(work.after));
        let of = Versions { path: &work.at.real, from: None, before, after };
        work.diff.preview(&of, PREVIEW)
    }

    async fn carry_out(work: Work, input: &WriteInput, cx: &Cx) -> Result<Outcome, Failure> {
        work.carry_out(input, cx).await
    }
}

/// What is there before the write.
enum Old {
    /// Nothing.
    Missing,
    /// A file, read whole.
    Whole(Bytes, Hash),
    /// A file that is too big to be looked into.
    Huge,
}

/// A worked-out write that nothing has been written of yet.
pub(crate) struct Work {
    pub(crate) at: Located,
    old: Old,
    data: Bytes,
    pub(crate) diff: Difference,
    pub(crate) after: Hash,
    notes: Vec<String>,
}

/// Most bytes of both texts together that are compared line by line.
const COMPARED: usize = 8 * 1024 * 1024;

impl Work {
    pub(crate) async fn of(
        tool: &Write,
        input: &WriteInput,
        at: Located,
        cx: &Cx,
    ) -> Result<Self, Failure> {
        if at.kind == FileKind::Missing {
            files::can_be_named(&at)?;
        } else {
            files::regular(cx, &input.path, &at, "written").await?;
        }
        files::no_folder(&input.path)?;
        let shown = cx.place.shown(&at.real).into_owned();
        let old = match at.kind {
            FileKind::Missing => Old::Missing,
            _ if at.size() > files::WHOLE => Old::Huge,
            FileKind::Entry(_) => {
                let old = files::whole(cx.host.fs(), &at, files::WHOLE, &shown).await?;
                let hash = Hash::of(&old);
                Old::Whole(old, hash)
            }
        };
        let freshness = freshness(input, &at, &old, cx, &shown)?;
        if tool.strict && freshness == Freshness::Never {
            let text = format!("{shown} was not read in this conversation; {}", change::STRICT);
            return Err(ToolError::new(text)
                .hint("Read the file before you replace it, or give its hash as expect.")
                .into());
        }
        let bytes: &[u8] = if let Old::Whole(bytes, _) = &old { bytes } else { &[] };
        let content = PutBack::new(cx, bytes, &shown).text(&input.content, "content")?;
        let (expected, asked) = (input.expect.is_some(), cx.is_asked());
        let work_out = move || {
            let made = NewContent::of(content, &old, (freshness, expected, asked), &shown)?;
            Ok::<_, ToolError>((made, old))
        };
        // Comparing long texts takes its time: not where it holds others up.
        let worked_out = tokio::task::spawn_blocking(work_out).await;
        let (made, old) = worked_out
            .map_err(|error| ToolError::new(format!("the write broke down: {error}")))??;
        let mut work = Self {
            after: Hash::of(&made.data),
            at,
            old,
            data: made.data,
            diff: made.diff,
            notes: made.notes,
        };
        if work.same() {
            // Nothing is replaced, so nothing is lost and nothing landed anywhere.
            work.notes.clear();
        } else {
            change::place_notes(cx, &input.path, &work.at, &mut work.notes);
        }
        Ok(work)
    }

    /// Reports whether the file already has this content.
    pub(crate) fn same(&self) -> bool {
        self.before() == Some(self.after)
    }

    /// Bytes of the file then.
    pub(crate) const fn size(&self) -> u64 {
        self.data.len() as u64
    }

    const fn old_size(&self) -> usize {
        if let Old::Whole(bytes, _) = &self.old { bytes.len() } else { 0 }
    }

    pub(crate) fn before(&self) -> Option<Hash> {
        if let Old::Whole(_, hash) = self.old { Some(hash) } else { None }
    }

    pub(crate) fn detail(&self) -> Detail {
        let (before, after) = (self.before(), Some(self.after));
        self.diff.detail(&Versions { path: &self.at.real, from: None, before, after })
    }

    /// What is to be written; none where the file has this content already. What was read is
    /// offered for undo.
    pub(crate) fn data(&self, cx: &Cx) -> Option<Bytes> {
        if self.same() {
            return None;
        }
        if let Old::Whole(old, hash) = &self.old {
            cx.offer_pre_image(&self.at, old, *hash);
        }
        Some(self.data.clone())
    }

    /// The answer, and how many lines there are now.
    pub(crate) fn answer(&self, input: &WriteInput, cx: &Cx) -> Result<(String, u64), ToolError> {
        let shown = cx.path(&input.path)?;
        let shown = cx.place.shown(&shown);
        let lines = haft_text::lines::count(input.content.as_bytes(), false) as u64;
        let extent =
            format!("{}, {}", units::count(lines, "line"), units::size(self.data.len() as u64));
        let first = match self.old {
            _ if self.same() => {
                format!("{shown} already has exactly this content; nothing changed.")
            }
            Old::Missing => format!("Created {shown} ({extent})."),
            _ => format!("Replaced {shown} ({extent})."),
        };
        // A new file's text is what the model has just written: no need to show it again.
        let quiet = self.created() || self.same();
        let diff = if quiet { String::new() } else { self.diff.shown().numbered() };
        Ok((change::answer(&first, &self.notes, &diff), lines))
    }

    /// Takes note of how it was written.
    pub(crate) fn made(&mut self, written: &Written) {
        change::made_notes(&self.at, written, &mut self.notes);
    }

    const fn created(&self) -> bool {
        matches!(self.old, Old::Missing)
    }

    /// The receipt; none where nothing is written.
    pub(crate) fn receipt(&self, cx: &Cx) -> Option<Receipt> {
        let action = if self.created() { ReceiptAction::Created } else { ReceiptAction::Changed };
        (!self.same()).then(|| Receipt {
            before: self.before(),
            after: Some(self.after),
            ..Receipt::new(cx.host.name().to_owned(), self.at.real.clone(), action)
        })
    }

    async fn carry_out(mut self, input: &WriteInput, cx: &Cx) -> Result<Outcome, Failure> {
        let at = match self.data(cx) {
            Some(data) => {
                let written = change::carry_out(cx, &self.at, data, true).await?;
                self.made(&written);
                written.at
            }
            None => self.at.clone(),
        };
        freshness::note(cx, &at, Some(self.after));
        freshness::keep(cx, self.after, &self.data);
        let (text, lines) = self.answer(input, cx)?;
        let data = WriteData {
            path: self.at.real.text().into_owned(),
            created: self.created(),
            bytes: self.data.len() as u64,
            lines,
            hash_before: self.before().map(|hash| hash.to_string()),
            hash_after: self.after.to_string(),
        };
        Ok(Outcome {
            content: vec![Part::text(text)],
            data: serde_json::to_value(data).ok(),
            detail: Some(self.detail()),
            receipts: self.receipt(cx).into_iter().collect(),
            ..Outcome::default()
        })
    }
}

/// How the old file stands to what was seen; refuses one that is not as it should be.
fn freshness(
    input: &WriteInput,
    at: &Located,
    old: &Old,
    cx: &Cx,
    shown: &str,
) -> Result<Freshness, ToolError> {
    let hash = if let Old::Whole(_, hash) = old { Some(*hash) } else { None };
    if let Some(expected) = input.expect.as_deref().map(files::expected).transpose()? {
        if hash != Some(expected) {
            return Err(files::unexpected(shown, &expected, hash.as_ref()));
        }
        return Ok(Freshness::Same);
    }
    if matches!(old, Old::Missing) {
        return Ok(Freshness::Same);
    }
    match freshness::judge(cx, at, hash.as_ref()) {
        Freshness::Changed => Err(ToolError::new(format!(
            "{shown} changed since it was read; replacing it would lose that change"
        ))
        .hint(
            "Read the file again, then write or edit what is there; or give as expect the hash \
             of the content that you know.",
        )),
        other => Ok(other),
    }
}

/// Refuses to replace a text that was shown with marks in place of bytes that mean nothing in its
/// encoding: who read it does not know them, and they would be lost.
fn whole(
    content: &str,
    old: &Old,
    decoded: Option<&Decoded<'_>>,
    freshness: Freshness,
    shown: &str,
) -> Result<(), ToolError> {
    let (Old::Whole(_, hash), Some(decoded)) = (old, decoded) else { return Ok(()) };
    let marked = content.contains(char::REPLACEMENT_CHARACTER);
    let Some(first) = decoded.holes().first().filter(|_| marked || freshness == Freshness::Same)
    else {
        return Ok(());
    };
    let text = decoded.text().as_bytes();
    let line = haft_text::lines::number_at(text, first.at, decoded.line_ends().cr_ends_lines());
    let places = units::count(decoded.holes().len() as u64, "place");
    Err(ToolError::new(format!(
        "{shown} was not replaced: it is in {}, and {places} of it, the first in line {line}, \
         mean nothing there. They were shown as {}, and writing the text would lose them",
        decoded.format().encoding.name(),
        char::REPLACEMENT_CHARACTER
    ))
    .hint(format!(
        "Change the other lines with edit, which keeps these bytes. To lose them on purpose, call \
         again with expect {hash}."
    )))
}

/// The bytes to write, with what is to be said of them.
struct NewContent {
    data: Bytes,
    diff: Difference,
    notes: Vec<String>,
}

impl NewContent {
    fn of(
        content: String,
        old: &Old,
        (freshness, expected, asked): (Freshness, bool, bool),
        shown: &str,
    ) -> Result<Self, ToolError> {
        let mut notes = Vec::new();
        let bytes = if let Old::Whole(bytes, _) = old { &bytes[..] } else { &[] };
        let decoded = decode::decode(bytes).ok();
        if !expected {
            whole(&content, old, decoded.as_ref(), freshness, shown)?;
        }
        let was_empty = matches!(old, Old::Whole(bytes, _) if bytes.is_empty());
        if freshness == Freshness::Never && !was_empty {
            notes.push(format!(
                "the file was never read in this conversation; {}",
                lost(old, decoded.as_ref())
            ));
        } else if decoded.is_none() {
            notes.push(format!("what was there was no text: {}", decode::binary_kind(bytes)));
        }
        let text = decoded.as_ref().map_or("", Decoded::text);
        notes.extend(change::placeholders(text, &content));
        notes.extend(no_notebook(bytes, &content, old, shown));
        let format = decoded.as_ref().map_or(Format::UTF8, Decoded::format);
        let content = fitted(content, decoded.as_ref(), &mut notes);
        let compared = text.len() + content.len() <= COMPARED;
        let diff = if compared {
            Difference::of(asked, |limits| change::compared(text, &content, limits))
        } else {
            Difference::uncompared(text, &content)
        };
        notes.extend(change::unseen(diff.shown()));
        let data = match format.encoding {
            Encoding::Utf8 | Encoding::DamagedUtf8 if !format.bom => Bytes::from(content),
            _ => Bytes::from(
                encode(&content, format)
                    .map_err(|error| ToolError::new(format!("{shown} was not changed. {error}")))?
                    .into_owned(),
            ),
        };
        if format.encoding != Encoding::Utf8 && format.encoding != Encoding::DamagedUtf8 {
            notes.push(format!("written in {}, as before", format.encoding.name()));
        }
        notes.extend(announced(format, &data, shown)?);
        Ok(Self { data, diff, notes })
    }
}

/// Says what new content is taken for where nothing announces its encoding; refuses what would be
/// no text then. As edits do.
fn announced(format: Format, data: &[u8], shown: &str) -> Result<Option<String>, ToolError> {
    let encoding = format.encoding;
    let utf8 = matches!(encoding, Encoding::Utf8 | Encoding::DamagedUtf8);
    let utf16 = matches!(encoding, Encoding::Utf16Le | Encoding::Utf16Be);
    if format.bom || utf8 || data.is_empty() {
        return Ok(None);
    }
    match decode::detect_prefix(data, true) {
        Ok(found) if found == format => Ok(None),
        _ if data.is_ascii() && !utf16 => Ok(None),
        Ok(found) if !utf16 => Ok(Some(change::taken_for(found.encoding.name()))),
        _ => {
            let name = encoding.name();
            Err(ToolError::new(format!(
                "{shown} was not changed. It has no byte order mark, and with this content nothing \
                 would show any more that it is text in {name}"
            ))
            .hint("Convert the file to UTF-8, or write it with a byte order mark, first."))
        }
    }
}

/// Says of a file that is named as a notebook that nothing can open it as one.
fn no_notebook(bytes: &[u8], content: &str, old: &Old, shown: &str) -> Option<String> {
    let nothing = matches!(old, Old::Missing) && content.is_empty();
    if nothing || !notebook_edit::is_named_one(shown) {
        return None;
    }
    let error = notebook_edit::json(content.as_bytes()).err()?;
    let was = !bytes.is_empty() && notebook_edit::json(bytes).is_ok();
    let what = if was {
        "the file was a notebook, and is no JSON any more"
    } else {
        "the file is named as a notebook, and is no JSON"
    };
    Some(format!("{what}: {error}; a cell of a notebook is changed with notebook_edit"))
}

/// Gives a new text the line ends of the old one, and no second byte order mark.
fn fitted(content: String, old: Option<&Decoded<'_>>, notes: &mut Vec<String>) -> String {
    let had = old.map_or_else(LineEnds::default, Decoded::line_ends);
    let Some(old) = old else {
        notes.extend(ends::returns(&content, had));
        return content;
    };
    let content = match content.strip_prefix('\u{feff}') {
        // The mark is part of the format; it is not doubled.
        Some(rest) if old.format().bom => rest.to_owned(),
        _ => content,
    };
    let (content, note) = ends::fitted(content, old.text(), had);
    notes.extend(note);
    notes.extend(ends::returns(&content, had));
    content
}

/// What a write replaced that nobody had looked at.
fn lost(old: &Old, decoded: Option<&Decoded<'_>>) -> String {
    match (old, decoded) {
        (Old::Whole(bytes, _), Some(decoded)) => {
            let text = decoded.text().as_bytes();
            let lines = haft_text::lines::count(text, decoded.line_ends().cr_ends_lines());
            let (lines, size) =
                (units::count(lines as u64, "line"), units::size(bytes.len() as u64));
            format!("its {lines}, {size}, are replaced")
        }
        (Old::Whole(bytes, _), None) => {
            format!(
                "its {} of {} are replaced",
                units::size(bytes.len() as u64),
                decode::binary_kind(bytes)
            )
        }
        _ => format!("its content, more than {}, is replaced", units::size(files::WHOLE)),
    }
}
