//! Reads PDF documents as the text of their pages, and as pictures of these.
//!
//! **Invariant:** a document is read apart from the call that wants it, one at a time. A crash or
//! hang there costs that call [`TIME`] and no more, and the pages before it are returned. What
//! comes back is bounded by what was asked for, whoever sends it. [`pages`] knows how pages are
//! read; [`isolated`] knows where.

mod isolated;
mod pages;
mod text;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt as _;
use haft_types::ToolError;
use serde::{Deserialize, Serialize};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{PartRange, Picture, Rendered, damaged};

pub use self::isolated::{PdfReader, read_pdf};

/// Most bytes of a document.
pub(crate) const FILE: u64 = 32 * 1024 * 1024;
/// How long all of it may take.
const TIME: Duration = Duration::from_secs(20);
/// How long a call waits for the document before it.
const TURN: Duration = TIME;
/// Bytes at the end of a file in which its mark is looked for.
const END: usize = 1024;
/// Most pictures of one answer.
const PICTURES: usize = 8;

static DOCUMENTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// What is wanted of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The pages.
    pub(crate) wanted: PartRange,
    /// Whether pictures are wanted of pages that have text.
    pub(crate) pictures: bool,
    /// Whether the model sees pictures.
    pub(crate) vision: bool,
}

/// What the reading of a document tells, in this order; a page comes after its picture.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PdfItem {
    /// How many pages there are.
    Total(u64),
    /// A picture of the page that comes next.
    Picture(Bytes),
    /// The text of the next wanted page.
    Page(String),
    /// Nothing can be read of it.
    Refused(Refusal),
    /// Everything that is there was told.
    Done,
    /// The reading broke down, for this reason.
    Broke(String),
}

/// Why nothing can be read of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Refusal {
    Expands,
    Password,
    Encryption,
    Nonsense,
}

impl Refusal {
    fn error(self, shown: &str) -> ToolError {
        match self {
            Self::Expands => damaged(shown, "PDF document", "it unpacks to more than can be held"),
            Self::Nonsense => damaged(shown, "PDF document", "nothing in it makes sense"),
            Self::Password => {
                ToolError::new(format!("{shown} is a PDF document that opens with a password only"))
                    .hint("Ask for a copy without one.")
            }
            Self::Encryption => ToolError::new(format!(
                "{shown} is a PDF document with an encryption that is unknown"
            ))
            .hint("Look at the file with a program that knows its kind."),
        }
    }
}

/// Shows pages of a document.
///
/// # Errors
/// When it is damaged or encrypted, the pages are past its end, or none is done in time.
pub(crate) async fn render(
    reader: &PdfReader,
    bytes: Bytes,
    task: Task,
    shown: &str,
    stop: &CancellationToken,
) -> Result<Rendered, ToolError> {
    let cancelled = || super::cancelled(shown);
    let permit = tokio::select! {
        permit = tokio::time::timeout(TURN, DOCUMENTS.clone().acquire_owned()) => permit,
        () = stop.cancelled() => return Err(cancelled()),
    };
    let Ok(Ok(permit)) = permit else {
        return Err(ToolError::new(format!("{shown} waits for another document that is read"))
            .hint("Call again later."));
    };
    let until = Instant::now() + TIME;
    let whole = has_end(&bytes);
    // Places in a document count from its header.
    let bytes = bytes.slice(super::pdf_header(&bytes).unwrap_or(0)..);
    let started = reader.start(bytes, task, permit).await;
    // Dropped, it ends the reading.
    let mut told = started.map_err(|error| {
        ToolError::new(format!("{shown} cannot be read now: {error}")).hint("Call again later.")
    })?;
    let mut pages = Pages { shown, wanted: task.wanted, rendered: None, picture: None };
    let why = loop {
        let next = tokio::select! {
            next = tokio::time::timeout_at(until, told.next()) => next,
            () = stop.cancelled() => return Err(cancelled()),
        };
        match next {
            Err(_) => {
                break Some(format!("it takes more than {} seconds to read", TIME.as_secs()));
            }
            Ok(Some(PdfItem::Done)) => break None,
            Ok(Some(PdfItem::Broke(why))) => break Some(why),
            Ok(None) => break Some("its reading ended early".to_owned()),
            Ok(Some(told)) => pages.take(told)?,
        }
        if pages.are_all() {
            break None;
        }
    };
    let mut rendered = pages.shown(why)?;
    if !whole {
        rendered.notes.push(
            "the end of the document (%%EOF) was not found: it is cut off or damaged, and pages \
             may be missing"
                .to_owned(),
        );
    }
    Ok(rendered)
}

/// Reports whether a file ends as a document does; as elsewhere, bytes may follow.
fn has_end(bytes: &[u8]) -> bool {
    let last = &bytes[bytes.len().saturating_sub(END)..];
    memchr::memmem::find(last, b"%%EOF").is_some()
}

/// The pages that were told so far.
struct Pages<'a> {
    shown: &'a str,
    wanted: PartRange,
    rendered: Option<Rendered>,
    picture: Option<Bytes>,
}

impl Pages<'_> {
    fn take(&mut self, told: PdfItem) -> Result<(), ToolError> {
        match (told, &mut self.rendered) {
            (PdfItem::Refused(refusal), _) => return Err(refusal.error(self.shown)),
            (PdfItem::Total(total), None) => {
                let rendered = pages::begun(total, self.wanted, self.shown)?;
                self.rendered = Some(rendered);
            }
            (PdfItem::Picture(bytes), Some(rendered)) if rendered.pictures.len() < PICTURES => {
                self.picture = Some(bytes);
            }
            (PdfItem::Page(text), Some(rendered)) => {
                let name = format!("page {}", rendered.first + rendered.count);
                let picture = self.picture.take().map(|bytes| Picture { name, bytes });
                rendered.take(&text, picture.into_iter().collect(), self.wanted);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reports whether no more is wanted.
    fn are_all(&self) -> bool {
        self.rendered.as_ref().is_some_and(|rendered| rendered.next(self.wanted).is_none())
    }

    /// What a call gives, with why there is no more.
    fn shown(self, why: Option<String>) -> Result<Rendered, ToolError> {
        let shown = self.shown;
        match (self.rendered, why) {
            (Some(mut rendered), why) if rendered.count > 0 => {
                rendered.notes.extend(
                    why.map(|why| {
                        format!("the page after these cannot be read: {why}; {ELSEWHERE}")
                    }),
                );
                Ok(rendered)
            }
            (Some(rendered), Some(why)) => Err(ToolError::new(format!(
                "page {} of {shown} cannot be read: {why}",
                rendered.first
            ))
            .hint("Read another page with offset, or use another program, such as pdftotext.")),
            (None, Some(why)) => Err(ToolError::new(format!("{shown} cannot be read: {why}"))
                .hint(
                    "The document may be damaged or made to do harm; see it with another program.",
                )),
            (_, None) => Err(damaged(shown, "PDF document", "it has no pages")),
        }
    }
}

/// The way out where a page cannot be read.
const ELSEWHERE: &str = "offset can pass over it";
