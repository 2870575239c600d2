//! What an answer is, and its text: HTML as Markdown, text of any charset, PDF documents, images.
//!
//! **Invariant:** what a server says of its answer is a hint: images and documents are known by
//! their first bytes. What cannot be shown is named, with what to do.

use std::fmt::Write as _;

use haft_page::{Limits, PageError};
use haft_tool::{Cx, WebResponse};
use haft_types::{Outcome, Part, Shape, ToolError};

use super::{Data, WebFetch, pages::TextPage};
use crate::{read::images, read::readers, units};

/// Bytes of the start by which an answer is known.
const SAMPLE: usize = 4_096;

/// What an answer is.
pub(super) enum Content {
    /// Text.
    Text(TextPage),
    /// An image, as it is shown.
    Image(Box<Outcome>),
}

/// What the server says that an answer is: `text/html`.
fn media_type(response: &WebResponse) -> String {
    let whole = response.content_type.as_deref().unwrap_or_default();
    whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether an answer is HTML, by what the server says, or by its begin.
fn is_html(kind: &str, body: &[u8]) -> bool {
    if matches!(kind, "text/html" | "application/xhtml+xml") {
        return true;
    }
    let start = String::from_utf8_lossy(&body[..body.len().min(SAMPLE)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let begins = start.starts_with("<!doctype html") || start.starts_with("<html");
    begins && matches!(kind, "" | "text/plain" | "application/octet-stream" | "application/xml")
}

/// Whether an answer is text of another kind.
fn is_text(kind: &str, body: &[u8]) -> bool {
    let known = kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-javascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-sh"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/sql"
                | "application/graphql"
        );
    let sample = &body[..body.len().min(SAMPLE)];
    let is_wide = sample.starts_with(b"\xFF\xFE") || sample.starts_with(b"\xFE\xFF");
    (known && !sample.contains(&0)) || is_wide || {
        let unknown = matches!(kind, "" | "application/octet-stream" | "binary/octet-stream");
        let odd = sample.iter().filter(|byte| **byte < 9 || (14..27).contains(*byte)).count();
        unknown && odd == 0
    }
}

/// What a page of an error says, and what is wrong with it beside that.
pub(super) fn of_error(response: &WebResponse) -> (String, Option<String>) {
    let kind = media_type(response);
    if response.packed.is_some() {
        return Default::default();
    }
    if is_html(&kind, &response.body) {
        let content_type = response.content_type.as_deref();
        let read = haft_page::read(&response.body, content_type, &response.url, &Limits::default());
        return read.map(|page| (page.markdown, page.note)).unwrap_or_default();
    }
    if is_text(&kind, &response.body) {
        let (text, _) = haft_page::text_charset(&response.body, response.content_type.as_deref());
        return (text.into_owned(), None);
    }
    Default::default()
}

impl WebFetch {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it is nothing that can be shown.
    pub(super) async fn content(
        &self,
        response: &WebResponse,
        cx: &Cx,
    ) -> Result<Content, ToolError> {
        let (kind, body) = (media_type(response), &response.body);
        let url = &response.url;
        if let Some(how) = &response.packed {
            let how: String = how.chars().take(40).collect();
            let text = format!("{url} is packed in a way that was not asked for: {how}");
            return Err(ToolError::new(text).hint("Get it with a command that can unpack it."));
        }
        if images::known(body) {
            return image(response, cx).await.map(|outcome| Content::Image(Box::new(outcome)));
        }
        if readers::pdf_header(body).is_some_and(|at| at == 0 || kind == "application/pdf") {
            return self.document(response, cx).await.map(Content::Text);
        }
        if is_html(&kind, body) {
            return html(response).await.map(Content::Text);
        }
        if body.is_empty() {
            let mut page = text_page(response, String::new());
            page.notes.push("the answer is empty".to_owned());
            return Ok(Content::Text(page));
        }
        if is_text(&kind, body) {
            let (text, charset) = haft_page::text_charset(body, response.content_type.as_deref());
            let text = text.into_owned();
            let mut page = text_page(response, text);
            if !charset.eq_ignore_ascii_case("utf-8") {
                page.notes.push(format!("it is in {charset}"));
            }
            return Ok(Content::Text(page));
        }
        let kind = if kind.is_empty() { "of no known kind".to_owned() } else { kind };
        let size = units::size(body.len() as u64);
        let more = if response.end == haft_tool::BodyEnd::Whole { "" } else { " and more" };
        Err(ToolError::new(format!("{url} is no page but binary ({kind}, {size}{more})"))
            .hint("To get the file itself, download it with a command, such as curl -LO URL."))
    }

    /// The text of a document.
    #[cfg(feature = "pdf")]
    async fn document(&self, response: &WebResponse, cx: &Cx) -> Result<TextPage, ToolError> {
        /// Most pages that are read, and most bytes of their text.
        const MOST: (u64, usize) = (1_000, 4 << 20);
        let wanted = readers::PartRange { first: 1, count: MOST.0, room: MOST.1 };
        let task = readers::pdf::Task { wanted, pictures: false, vision: false };
        let (body, shown) = (response.body.clone(), &response.url);
        let rendered = readers::pdf::render(&self.pdf, body, task, shown, &cx.stop).await?;
        let is_partial = rendered.rest().is_some();
        let mut page = text_page(response, rendered.text);
        page.notes.push(format!("a PDF document of {}", units::count(rendered.total, "page")));
        page.notes.extend(rendered.notes);
        if is_partial {
            page.is_partial = true;
            let read = units::count(rendered.count, "page");
            page.notes.push(format!("only the first {read} were read"));
        }
        Ok(page)
    }

    /// Without a reader of documents there is nothing to show of one.
    #[cfg(not(feature = "pdf"))]
    async fn document(&self, response: &WebResponse, _: &Cx) -> Result<TextPage, ToolError> {
        let text = format!("{} is a PDF document, which this build cannot read", response.url);
        Err(ToolError::new(text).hint("Download it with a command and look at it with a program."))
    }
}

/// A text with what is to be said of its answer.
fn text_page(response: &WebResponse, text: String) -> TextPage {
    let mut notes = Vec::new();
    if response.redirects > 0 {
        notes.push(format!("after {}", units::count(response.redirects as u64, "redirect")));
    }
    notes.extend(
        response
            .proxy
            .as_ref()
            .map(|proxy| format!("the proxy {proxy} resolved the name and dialled, not haft")),
    );
    notes.extend(response.end.why().map(|why| {
        let size = units::size(response.body.len() as u64);
        format!("{size} are here: {why}")
    }));
    TextPage {
        url: response.url.clone(),
        status: response.status,
        content_type: response.content_type.clone(),
        is_partial: response.end != haft_tool::BodyEnd::Whole,
        title: None,
        text,
        notes,
    }
}

/// A page of HTML as Markdown.
async fn html(response: &WebResponse) -> Result<TextPage, ToolError> {
    let whole = response.clone();
    // Parsing megabytes holds no other call up.
    let read = tokio::task::spawn_blocking(move || {
        haft_page::read(&whole.body, whole.content_type.as_deref(), &whole.url, &Limits::default())
    });
    let read = read.await.map_err(|error| {
        ToolError::new(format!("the page of {} could not be read: {error}", response.url))
            .hint("Take another page.")
    })?;
    let page = match read {
        Ok(page) => page,
        Err(PageError::Empty) => {
            let mut page = text_page(response, String::new());
            page.notes.push("the page is empty".to_owned());
            return Ok(page);
        }
        Err(error) => {
            return Err(ToolError::new(format!("{}: {error}", response.url))
                .hint("Take another page, or download it with a command."));
        }
    };
    let mut kept = text_page(response, page.markdown);
    kept.title = page.title;
    kept.is_partial |= page.cut;
    if page.article {
        kept.notes.push("the article alone, without what stands around it".to_owned());
    }
    if page.cut {
        kept.notes.push("the page is too large, and its end is left out".to_owned());
    }
    kept.notes.extend(page.note);
    Ok(kept)
}

/// An image as a model takes it.
async fn image(response: &WebResponse, cx: &Cx) -> Result<Outcome, ToolError> {
    let (url, size) = (response.url.clone(), units::size(response.body.len() as u64));
    let fitted = images::fit(response.body.clone(), url.clone(), cx.stop.clone()).await?;
    let blob = cx.keep(fitted.bytes, fitted.mime).await?;
    let (width, height) = fitted.size;
    let mut text = format!("{url}: {} image, {width} x {height} pixels, {size}", fitted.format);
    if fitted.size != fitted.shown && cx.vision() {
        // Writing to a string cannot fail.
        let _ = write!(text, "; shown at {} x {}", fitted.shown.0, fitted.shown.1);
    }
    for note in fitted.notes.iter().filter(|_| cx.vision()) {
        text.push_str("; ");
        text.push_str(note);
    }
    let data = Data {
        url,
        status: response.status,
        content_type: response.content_type.clone(),
        ..Data::default()
    };
    let detail = Shape::Image { blob: blob.clone(), size: Some(fitted.shown), path: None };
    Ok(Outcome {
        content: vec![Part::text(text), Part::Image { blob }],
        data: serde_json::to_value(data).ok(),
        detail: Some(detail.into()),
        ..Outcome::default()
    })
}
