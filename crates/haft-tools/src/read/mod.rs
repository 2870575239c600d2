//! `read`: lines of a file, an image, or the content of a notebook, an archive or a document.
//!
//! **Invariant:** memory is bounded for any file. What is left out is named, with the call that
//! gets it.

pub(crate) mod images;
pub(crate) mod line_index;
pub(crate) mod page;
pub(crate) mod page_encoding;
pub(crate) mod readers;

use std::fmt::Write as _;

use haft_host::Host;
use haft_text::{DecodeError, Encoding};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Access, Budget, CallId, Cut, CutBy, Detail, Env, Guideline, HostPath, Kind, Loading, Outcome,
    Part, Place, Plan, Shape, Status, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{
    page::{Content, LineRange, Page, Source},
    readers::{Beyond, Form, Rendered},
};
use crate::{
    Options,
    files::{self, freshness, secret_scan},
    units,
};

/// Reads files.
#[derive(Clone, Debug)]
pub struct Read {
    /// Lines that are read without a limit.
    lines: u64,
    /// Most bytes of one answer.
    bytes: usize,
    /// Where documents are read.
    #[cfg(feature = "pdf")]
    pdf: readers::pdf::PdfReader,
}

/// Most bytes that one answer may be set to.
const BYTES_MAX: u64 = 512 * 1024;
/// Bytes of a token, about.
const TOKEN: usize = 4;

impl Default for Read {
    fn default() -> Self {
        Self::new(&Options::default())
    }
}

/// Arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReadInput {
    /// File to read, relative to the workspace or absolute, or an out:// address.
    path: String,
    /// First line, counted from 1; negative counts from the end: -20 gives the last 20 lines.
    offset: Option<i64>,
    /// Lines to read; may be more than the usual number.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// What programs get from `read`.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct ReadData {
    /// Absolute path, or the out:// address.
    path: String,
    /// Bytes of the file.
    size: u64,
    /// BLAKE3 hash of the content, for files up to 64 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The file's encoding, for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// Number of the first line shown, from 1, for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    /// How many lines are shown, for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    /// Lines of the file, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// Offset of the next call, when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// True when lines before or after, or parts of long lines, are not shown.
    truncated: bool,
    /// True when the very same stands in an earlier result and was not given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    /// What an image is and how it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageData>,
    /// Which parts of a notebook, an archive or a document are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<PartsData>,
}

/// Which parts of a file are shown.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct PartsData {
    /// What the file is, as in `ZIP archive`.
    of: String,
    /// What a part is: `page`, `cell` or `entry`.
    unit: String,
    /// Number of the first part shown, from 1.
    first: u64,
    /// How many parts are shown.
    count: u64,
    /// How many parts are known.
    total: u64,
}

/// What an image is and how it is shown; sizes in pixels.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct ImageData {
    format: String,
    width: u32,
    height: u32,
    shown_width: u32,
    shown_height: u32,
    /// Media type of what is shown.
    shown_as: String,
}

impl Tool for Read {
    type Input = ReadInput;

    fn spec(&self, env: &Env) -> ToolSpec {
        let (what, images) = if env.vision {
            ("a file or image", "are shown")
        } else {
            ("a file", "cannot be seen by you, only their size can")
        };
        let (documents, parts) = if cfg!(feature = "pdf") {
            ("PDF documents (as images too with limit 1-3), notebooks", "pages, cells")
        } else {
            ("Notebooks", "cells")
        };
        let lines = units::count(self.lines, "line");
        let tokens = units::grouped((self.bytes / TOKEN) as u64);
        ToolSpec {
            aliases: vec!["view".into(), "cat".into(), "NotebookRead".into()],
            output_schema: schema_of::<ReadData>(),
            images: env.vision,
            snippet: format!("Read {what} ({lines} at a time)").into(),
            guidelines: vec![Guideline {
                text: "Files must be examined with read, not with cat, head or sed in bash (it \
                       numbers lines, knows encodings and stays within limits)"
                    .into(),
                with: vec!["bash".into()],
                without: vec![],
            }],
            hint: "open view show contents of a file or image".into(),
            kind: Kind::Read,
            primary: "path".into(),
            loading: Loading::Always,
            budget: Budget::Own,
            ..ToolSpec::new(
                "read",
                "Read file",
                format!(
                    "Read a file. Text of any encoding comes as UTF-8 with line numbers: {lines} \
                     unless limit says otherwise, at most about {tokens} tokens, lines over \
                     2,000 characters cut. When there is more, a notice names the next offset. \
                     Images (png, jpeg, gif, webp, bmp) {images}. {documents} and \
                     archives (zip, tar) come as {parts} and names: offset and limit count \
                     these. Also takes the out:// address of a cut result. For folders use ls."
                ),
            )
        }
    }

    fn plan(&self, input: &ReadInput, place: &Place) -> Result<Plan, ToolError> {
        if files::is_address(&input.path) {
            let plan = Plan::new(place, format!("Reading {}", shortened(&input.path)));
            return Ok(plan.with(Access::Observe, Target::State { name: "out".into() }));
        }
        let path = files::planned(place, &input.path)?;
        let lines = match (input.offset, input.limit) {
            (None, None) => String::new(),
            (Some(from), None) => format!(":{from}"),
            (from, Some(limit)) => {
                let from = from.unwrap_or(1);
                format!(":{from}-{}", from.saturating_add_unsigned(limit.saturating_sub(1)))
            }
        };
        Ok(Plan::new(place, format!("Reading {}{lines}", place.shown(&path))).reads(path))
    }

    async fn run(&self, input: ReadInput, cx: &Cx) -> Result<Outcome, ToolError> {
        if files::is_address(&input.path) {
            return self.kept(&input, cx).await;
        }
        let at = files::locate(cx, &input.path).await?;
        files::regular(cx, &input.path, &at, "read").await?;
        let shown = cx.place.shown(&cx.path(&input.path)?).into_owned();
        let found =
            ReadFile { host: cx.host.as_ref(), at, shown, kept: false, gap: None, bare: None };
        self.found(&input, &found, cx).await
    }
}

/// The file that is read.
struct ReadFile<'a> {
    host: &'a dyn Host,
    at: haft_host::Located,
    shown: String,
    /// True for a kept output of a call.
    kept: bool,
    /// What is missing of it.
    gap: Option<String>,
    /// What to say of a kept output without any text.
    bare: Option<String>,
}

impl Read {
    /// The tool with the limits that a person set.
    pub fn new(options: &Options) -> Self {
        let bytes = options.read_bytes.clamp(TOKEN as u64, BYTES_MAX);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            lines: options.read_lines.max(1),
            bytes,
            #[cfg(feature = "pdf")]
            pdf: options.pdf.clone(),
        }
    }

    async fn kept(&self, input: &ReadInput, cx: &Cx) -> Result<Outcome, ToolError> {
        let unknown = || {
            ToolError::new(format!("nothing is kept under {:?}", shortened(&input.path)))
                .hint("Take the address from the notice of the result that was cut.")
        };
        let call = CallId::from_address(&input.path).ok_or_else(unknown)?;
        let unknown = || {
            let known = files::evicted(cx, &call).or_else(|| files::silent(cx, &call));
            known.unwrap_or_else(unknown)
        };
        let (host, path) = files::kept(cx, &call).await?.ok_or_else(unknown)?;
        let located = host.fs().locate(&path, haft_types::Follow::No).await;
        let at = located.map_err(|error| files::failed(&error))?;
        if at.stamp.is_none() {
            return Err(unknown());
        }
        let gap = files::gap(cx, &call).await;
        let (host, shown) = (host.as_ref(), input.path.clone());
        let bare = if at.size() == 0 { files::bare(cx, &call).await } else { None };
        let found = ReadFile { host, at, shown, kept: true, gap, bare };
        self.found(input, &found, cx).await
    }

    async fn found(
        &self,
        input: &ReadInput,
        found: &ReadFile<'_>,
        cx: &Cx,
    ) -> Result<Outcome, ToolError> {
        let outcome = self.shown(input, found, cx).await?;
        if outcome.status == Status::Done
            && freshness::stands(cx, found.host.name(), &found.at.real, &outcome)
        {
            return Ok(unchanged(outcome, found));
        }
        Ok(outcome)
    }

    async fn shown(
        &self,
        input: &ReadInput,
        found: &ReadFile<'_>,
        cx: &Cx,
    ) -> Result<Outcome, ToolError> {
        let index = line_index::of(cx, found.host.name(), &found.at);
        let source = Source { fs: found.host.fs(), at: &found.at, stop: &cx.stop, index };
        let first = input.offset.unwrap_or(1);
        if !found.kept {
            let sample = source.fs.read(&found.at, 0, readers::SAMPLE).await;
            let sample = sample.map_err(|error| files::failed(&error))?;
            let name = found.at.real.file_name().unwrap_or_default();
            let wanted = readers::PartRange {
                first,
                count: input.limit.unwrap_or(self.lines).max(1),
                room: self.bytes,
            };
            if let Some(form) = readers::form(&sample, name)
                && let Some(shown) = self.parts(form, &source, wanted, (input, found), cx).await?
            {
                return Ok(shown);
            }
        }
        let wanted = LineRange {
            first: if first == 0 { 1 } else { first },
            lines: input.limit.unwrap_or(self.lines).max(1),
            bytes: self.bytes,
        };
        match source.page(wanted).await? {
            Content::Page(page) if page.stopped => Ok(Outcome {
                content: vec![
                    Part::text(page.numbered),
                    Part::text("[cancelled before it was read]"),
                ],
                status: Status::Cancelled,
                ..Outcome::default()
            }),
            Content::Page(page) if page.total == Some(0) => Ok(empty(found, Some(&page), cx)),
            Content::Page(mut page) => {
                if page.first > 1 || page.cut > 0 {
                    // The name of a value may stand where nothing is shown.
                    let fs = (found.host.name(), found.host.fs());
                    secret_scan::of_file(cx, fs, &found.at, page.begin).await;
                }
                page.hide_parts(&cx.session().secrets);
                text(page, input, found, cx)
            }
            Content::Empty => Ok(empty(found, None, cx)),
            Content::Binary(error) => binary(error, found, cx).await,
        }
    }
}

fn shortened(address: &str) -> String {
    address.chars().take(150).collect()
}

impl ReadFile<'_> {
    fn data(&self) -> ReadData {
        let path = if self.kept { self.shown.clone() } else { self.at.real.text().into_owned() };
        ReadData { path, size: self.at.size(), ..ReadData::default() }
    }

    fn note(&self, cx: &Cx, hash: Option<haft_types::Hash>) {
        if !self.kept {
            freshness::note(cx, &self.at, hash);
        }
    }

    fn note_whole(&self, cx: &Cx, page: &Page) {
        self.note(cx, page.hash);
        if let (Some(hash), Some(whole), false) = (page.hash, &page.whole, self.kept) {
            freshness::keep(cx, hash, whole);
        }
    }
}

/// A file without lines; `page` where it has bytes all the same, which are a byte order mark.
fn empty(found: &ReadFile<'_>, page: Option<&Page>, cx: &Cx) -> Outcome {
    let nothing = (found.at.size() == 0).then(|| haft_types::Hash::of(b""));
    let hash = page.and_then(|page| page.hash).or(nothing);
    let encoding = page.map_or(Encoding::Utf8, |page| page.format.encoding);
    match page {
        Some(page) => found.note_whole(cx, page),
        None => found.note(cx, hash),
    }
    let data = ReadData {
        hash: hash.map(|hash| hash.to_string()),
        encoding: Some(encoding.name().to_owned()),
        first_line: Some(1),
        lines: Some(0),
        total_lines: Some(0),
        ..found.data()
    };
    let named = match encoding {
        Encoding::Utf8 => String::new(),
        other => format!("; the file is in {}", other.name()),
    };
    let text = match &found.bare {
        Some(bare) => format!("[{} has no text{bare}]", found.shown),
        None => format!("[{} is empty: it has no lines{named}]", found.shown),
    };
    outcome(text, data, shape(&found.at.real, 1, String::new(), None))
}

/// Says that what was asked for stands above, in place of it.
fn unchanged(outcome: Outcome, found: &ReadFile<'_>) -> Outcome {
    let mut data = outcome.data.unwrap_or_default();
    let number = |key: &str| data.get(key).and_then(serde_json::Value::as_u64);
    let what = match (number("first_line"), number("lines")) {
        (Some(first), Some(lines)) if lines > 0 => {
            let stand = if lines == 1 { "stands" } else { "stand" };
            format!("{} {stand}", units::span(["line", "lines"], first, first + lines - 1))
        }
        _ => "the same stands".to_owned(),
    };
    let text = format!(
        "[{} is unchanged: {what} in the result of an earlier read. If you cannot see that \
         anymore, repeat the call]",
        found.shown
    );
    if let Some(data) = data.as_object_mut() {
        data.insert("unchanged".into(), true.into());
    }
    Outcome {
        content: vec![Part::text(&text)],
        data: Some(data),
        detail: Some(Shape::Markdown { text }.into()),
        ..Outcome::default()
    }
}

fn shape(path: &HostPath, first_line: u64, text: String, cut: Option<Cut>) -> Detail {
    Detail { shape: Shape::File { path: path.clone(), first_line, text }, cut }
}

fn outcome(text: String, data: ReadData, detail: Detail) -> Outcome {
    Outcome {
        content: vec![Part::text(text)],
        data: serde_json::to_value(data).ok(),
        detail: Some(detail),
        ..Outcome::default()
    }
}

fn text(
    page: Page,
    input: &ReadInput,
    found: &ReadFile<'_>,
    cx: &Cx,
) -> Result<Outcome, ToolError> {
    if page.lines == 0 {
        let total = page.total.unwrap_or(0);
        return Err(ToolError::new(format!(
            "{} has {}; offset {} is past its end",
            found.shown,
            units::count(total, "line"),
            input.offset.unwrap_or(1)
        ))
        .hint(format!("Give an offset from 1 to {total}, or -20 for the last 20 lines.")));
    }
    found.note_whole(cx, &page);
    let (last, next) = (page.first + page.lines - 1, page.next());
    let data = ReadData {
        hash: page.hash.map(|hash| hash.to_string()),
        encoding: Some(page.format.encoding.name().to_owned()),
        first_line: Some(page.first),
        lines: Some(page.lines),
        total_lines: page.total,
        next_offset: next,
        truncated: next.is_some() || page.first > 1 || page.cut > 0,
        ..found.data()
    };
    let by = if page.full { CutBy::Tokens } else { CutBy::Lines };
    let partial = next.is_some() || page.first > 1;
    let cut = partial.then_some(Cut {
        from: page.first,
        to: last,
        total: page.total,
        by,
        ..Cut::default()
    });
    let notice = notice(&page, last, next, found, input);
    let Page { mut numbered, plain, first, .. } = page;
    numbered.push_str(&notice);
    if notice.is_empty() {
        numbered.pop();
    }
    Ok(outcome(numbered, data, shape(&found.at.real, first, plain, cut)))
}

/// What is not shown, and how to get it; empty when everything is.
fn notice(
    page: &Page,
    last: u64,
    next: Option<u64>,
    found: &ReadFile<'_>,
    input: &ReadInput,
) -> String {
    let mut notes = Vec::new();
    if input.offset == Some(0) {
        notes.push("offset 0 was taken as 1: lines are counted from 1".to_owned());
    }
    if let Some(next) = next {
        let of = match page.total {
            Some(total) => total.to_string(),
            None => format!("a file of {}", units::size(found.at.size())),
        };
        let full = if page.full { ", as many as fit in one answer" } else { "" };
        let lines = units::span(["line", "lines"], page.first, last);
        notes.push(format!("{lines} of {of}{full}; read on with offset={next}"));
    }
    if page.cut > 0 {
        let width = units::grouped(self::page::WIDTH as u64);
        notes.push(format!("{} cut at {width} characters", units::count(page.cut, "line")));
    }
    notes.extend(found.gap.clone());
    if !matches!(page.format.encoding, Encoding::Utf8) {
        // Nothing in a file announces a legacy encoding.
        let guess = matches!(page.format.encoding, Encoding::Legacy(_));
        let probably = if guess { "probably " } else { "" };
        let wide = matches!(page.format.encoding, Encoding::Utf16Le | Encoding::Utf16Be);
        let broken = wide && page.plain.contains('\u{FFFD}');
        let broken = if broken { ", with broken places, shown as \u{FFFD}" } else { "" };
        notes.push(format!("the file is {probably}in {}{broken}", page.format.encoding.name()));
    }
    if notes.is_empty() { String::new() } else { format!("[{}]", notes.join("; ")) }
}

impl Read {
    /// What is inside of a file that has a reader; none where it is no such file after all.
    async fn parts(
        &self,
        form: Form,
        source: &Source<'_>,
        wanted: readers::PartRange,
        (input, found): (&ReadInput, &ReadFile<'_>),
        cx: &Cx,
    ) -> Result<Option<Outcome>, ToolError> {
        let rendered = match form {
            Form::Zip | Form::Tar | Form::TarGz => {
                let rendered = readers::archive::list(form, source, wanted, &found.shown).await?;
                Some((rendered, source.hash().await?))
            }
            Form::Notebook if found.at.size() > readers::notebook::FILE => None,
            Form::Notebook => {
                let limit = readers::notebook::FILE;
                let bytes = files::whole(source.fs, source.at, limit, &found.shown).await?;
                let hash = haft_types::Hash::of(&bytes);
                let shown = found.shown.clone();
                let work = move || readers::notebook::render(&bytes, wanted, &shown);
                let rendered = tokio::task::spawn_blocking(work).await;
                let rendered = rendered.map_err(|error| {
                    ToolError::new(format!("the notebook could not be read: {error}"))
                })??;
                rendered.map(|rendered| (rendered, Some(hash)))
            }
            #[cfg(feature = "pdf")]
            Form::Pdf => {
                let limit = readers::pdf::FILE;
                let instead =
                    "Take the pages that you need into a smaller document with a command.";
                let shown = &found.shown;
                let bytes = files::whole_or(source.fs, source.at, limit, shown, instead).await?;
                let hash = haft_types::Hash::of(&bytes);
                let pictures = input.limit.is_some_and(|limit| limit <= readers::PICTURED);
                let task = readers::pdf::Task { wanted, pictures, vision: cx.vision() };
                let rendered =
                    readers::pdf::render(&self.pdf, bytes, task, &found.shown, &cx.stop).await?;
                Some((rendered, Some(hash)))
            }
            #[cfg(not(feature = "pdf"))]
            Form::Pdf => None,
        };
        let Some((mut rendered, hash)) = rendered else { return Ok(None) };
        if cx.stop.is_cancelled() {
            return Err(readers::cancelled(&found.shown));
        }
        found.note(cx, hash);
        let images = attached(&mut rendered, found, cx).await?;
        let mut outcome = told(rendered, input, hash, found);
        outcome.content.extend(images);
        Ok(Some(outcome))
    }
}

/// The pictures of a file's parts, with a note of the pages that they are of.
async fn attached(
    rendered: &mut Rendered,
    found: &ReadFile<'_>,
    cx: &Cx,
) -> Result<Vec<Part>, ToolError> {
    let (mut images, mut names) = (Vec::new(), Vec::new());
    for picture in std::mem::take(&mut rendered.pictures) {
        let name = format!("{} of {}", picture.name, found.shown);
        match images::fit(picture.bytes, name, cx.stop.clone()).await {
            Ok(fitted) => {
                images.push(Part::Image { blob: cx.keep(fitted.bytes, fitted.mime).await? });
                names.push(picture.name);
            }
            Err(error) => rendered.notes.push(error.message),
        }
    }
    // A cell says itself where it has a picture.
    if rendered.unit.0 == "page" && !names.is_empty() && cx.vision() {
        let are = if names.len() == 1 { "image is" } else { "images are" };
        rendered.notes.push(format!("the {are} of {}", names.join(", ")));
        if (names.len() as u64) < rendered.count {
            let most = readers::PICTURED;
            rendered.notes.push(format!("pages with text are drawn where limit is at most {most}"));
        }
    }
    Ok(images)
}

fn told(
    rendered: Rendered,
    input: &ReadInput,
    hash: Option<haft_types::Hash>,
    found: &ReadFile<'_>,
) -> Outcome {
    let next = rendered.rest();
    let Rendered { what, unit, mut text, first, count, total, full, beyond, notes: others, .. } =
        rendered;
    let last = (first + count).saturating_sub(1);
    let partial = next.is_some() || first > 1;
    let listed = readers::number(total, unit);
    let (of, all) = match beyond {
        Beyond::Of(all) => {
            let first = units::grouped(total);
            (format!("{}, of which the first {first} are listed", readers::number(all, unit)), all)
        }
        Beyond::More => (format!("more than {listed}, of which those are listed"), total),
        Beyond::Nothing | Beyond::Perhaps => (listed, total),
    };
    let mut notes = vec![format!("{} is a {what} of {of}", found.shown)];
    if input.offset == Some(0) {
        notes.push(format!("offset 0 was taken as 1: {} are counted from 1", unit.1));
    }
    if let Some(next) = next {
        let full = if full { ", as many as fit in one answer" } else { "" };
        let is = if count == 1 { "this is" } else { "these are" };
        let span = units::span([unit.0, unit.1], first, last);
        notes.push(format!("{is} {span}{full}; read on with offset={next}"));
    } else if first > 1 {
        let is = if count == 1 { "this is" } else { "these are" };
        notes.push(format!("{is} {}", units::span([unit.0, unit.1], first, last)));
    }
    notes.extend(others);
    // Writing to a string cannot fail.
    let _ = write!(text, "[{}]", notes.join("; "));
    let data = ReadData {
        hash: hash.map(|hash| hash.to_string()),
        next_offset: next,
        truncated: partial || beyond != Beyond::Nothing,
        parts: Some(PartsData {
            of: what.to_owned(),
            unit: unit.0.to_owned(),
            first,
            count,
            total: all,
        }),
        ..found.data()
    };
    let by = if full { CutBy::Tokens } else { CutBy::Lines };
    let cut =
        partial.then_some(Cut { from: first, to: last, total: Some(total), by, ..Cut::default() });
    let detail = Detail { shape: Shape::Markdown { text: text.clone() }, cut };
    outcome(text, data, detail)
}

async fn binary(error: DecodeError, found: &ReadFile<'_>, cx: &Cx) -> Result<Outcome, ToolError> {
    let sample = found.host.fs().read(&found.at, 0, 4096).await;
    let sample = sample.map_err(|error| files::failed(&error))?;
    if images::known(&sample) {
        return image(found, cx).await;
    }
    let (shown, size) = (&found.shown, units::size(found.at.size()));
    Err(match error {
        DecodeError::Binary { kind, .. } => {
            ToolError::new(format!("{shown} is not text but {kind}, {size}"))
                .hint("Use a program that knows this kind of file.")
        }
        error => ToolError::new(format!("{shown} cannot be shown as text: {error}")),
    })
}

async fn image(found: &ReadFile<'_>, cx: &Cx) -> Result<Outcome, ToolError> {
    let (fs, limit) = (found.host.fs(), images::FILE);
    let instead = "Scale it down, or convert it to JPEG, with a command first.";
    let bytes = files::whole_or(fs, &found.at, limit, &found.shown, instead).await?;
    let (hash, size) = (haft_types::Hash::of(&bytes), bytes.len() as u64);
    let fitted = images::fit(bytes, found.shown.clone(), cx.stop.clone()).await?;
    let blob = cx.keep(fitted.bytes, fitted.mime).await?;
    found.note(cx, Some(hash));
    let ((width, height), (shown_width, shown_height)) = (fitted.size, fitted.shown);
    let mut text = format!(
        "{}: {} image, {width} x {height} pixels, {}",
        found.shown,
        fitted.format,
        units::size(size)
    );
    if fitted.size != fitted.shown && cx.vision() {
        let scale = |whole: u32, shown: u32| f64::from(whole) / f64::from(shown.max(1));
        let (x, y) = (scale(width, shown_width), scale(height, shown_height));
        // A side that cannot be smaller has a scale of its own; roundings do not matter.
        let by = if (x - y).abs() * f64::from(shown_height) < 1.5 {
            format!("{x:.3}")
        } else {
            format!("{x:.3} across and by {y:.3} down")
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "; shown at {shown_width} x {shown_height}: multiply its coordinates by {by} for \
             those of the file"
        );
    }
    for note in fitted.notes.iter().filter(|_| cx.vision()) {
        let _ = write!(text, "; {note}");
    }
    let data = ReadData {
        hash: Some(hash.to_string()),
        image: Some(ImageData {
            format: fitted.format.to_owned(),
            width,
            height,
            shown_width,
            shown_height,
            shown_as: fitted.mime.to_owned(),
        }),
        size,
        ..found.data()
    };
    let detail = Shape::Image {
        blob: blob.clone(),
        size: Some(fitted.shown),
        path: Some(found.at.real.clone()),
    };
    let mut outcome = outcome(text, data, detail.into());
    outcome.content.push(Part::Image { blob });
    Ok(outcome)
}
