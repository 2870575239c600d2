//! PDF documents as the text of their pages, and as pictures of these.
//!
//! **Invariant:** a document is read on a thread of its own, one at a time: what breaks down or
//! does not end there costs that call [`TIME`] and no more, and the pages before it are given.
//! Streams that unpack to more than [`STREAM`] bytes and pictures of more than [`PIXELS`] pixels
//! are refused before they are.

use std::{
    io::{self, Read as _},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use haft_types::ToolError;
use hayro::{
    PixmapSettings, RenderCache, RenderSettings, hayro_interpret,
    hayro_syntax::{DecryptionError, LoadPdfError, Pdf, page::Page},
    kurbo::{Affine, Rect},
    vello_cpu,
};
use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, interpret_page};
use image::{ExtendedColorType, ImageEncoder as _, codecs::png};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Picture, Rendered, Wanted, damaged, pdf_text::Text};

/// Most bytes of a document.
pub(crate) const FILE: u64 = 32 * 1024 * 1024;
/// Pages that are asked for at most where their pictures are given, too.
pub(crate) const PICTURED: u64 = 3;
/// How long all of it may take.
const TIME: Duration = Duration::from_secs(20);
/// How long a call waits for the document before it.
const TURN: Duration = Duration::from_secs(5);
/// Bytes of the thread's stack.
const STACK: usize = 32 * 1024 * 1024;
/// Most bytes of one unpacked stream.
const STREAM: u64 = 128 * 1024 * 1024;
/// Most bytes of all unpacked streams that could be big.
const STREAMS: u64 = 1024 * 1024 * 1024;
/// Most pixels of a picture in a page that is drawn.
const PIXELS: u64 = 64_000_000;
/// The longest side of a page's picture.
const SIDE: f32 = 1500.0;
/// Most pictures of one answer.
const PICTURES: usize = 8;
/// Pages with fewer characters are taken as scanned.
const SCANNED: usize = 8;

static DOCUMENTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// What the thread has so far.
#[derive(Default)]
struct Found {
    rendered: Option<Rendered>,
    error: Option<ToolError>,
}

/// What the thread is to do.
struct Task {
    bytes: Bytes,
    wanted: Wanted,
    /// Whether pictures are wanted of pages that have text.
    pictures: bool,
    shown: String,
    stop: CancellationToken,
    until: Instant,
    found: Arc<Mutex<Found>>,
}

/// Shows pages of a document.
///
/// # Errors
/// When it is damaged or encrypted, the pages are past its end, or none is done in time.
pub(crate) async fn render(
    bytes: Bytes,
    wanted: Wanted,
    pictures: bool,
    shown: String,
    stop: CancellationToken,
) -> Result<Rendered, ToolError> {
    let cancelled = || ToolError::new(format!("reading {shown} was cancelled"));
    let permit = tokio::select! {
        permit = tokio::time::timeout(TURN, DOCUMENTS.clone().acquire_owned()) => permit,
        () = stop.cancelled() => return Err(cancelled()),
    };
    let Ok(Ok(permit)) = permit else {
        return Err(ToolError::new(format!("{shown} waits for another document that is read"))
            .hint("Call again later."));
    };
    let (found, until) = (Arc::new(Mutex::new(Found::default())), Instant::now() + TIME);
    let task = Task {
        bytes,
        wanted,
        pictures,
        shown: shown.clone(),
        // What this call no longer waits for ends by itself, where it can.
        stop: stop.child_token(),
        until,
        found: found.clone(),
    };
    let _ended = task.stop.clone().drop_guard();
    let done = start(task, permit).map_err(|error| {
        ToolError::new(format!("{shown} cannot be read now: {error}")).hint("Call again later.")
    })?;
    let why = tokio::select! {
        done = tokio::time::timeout(TIME, done) => match done {
            Ok(Ok(())) => None,
            // A thread that was told that time is over gives nothing either.
            Ok(Err(_)) if Instant::now() < until => Some("the page after it cannot be read"),
            _ => Some("the page after it takes too long"),
        },
        () = stop.cancelled() => return Err(cancelled()),
    };
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    found.told(why, &shown)
}

impl Found {
    /// What a call gives, with why there is no more.
    fn told(self, why: Option<&'static str>, shown: &str) -> Result<Rendered, ToolError> {
        let Self { rendered, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        let broken = |why: &str| Err(damaged(shown, "PDF document", why));
        match (rendered, why) {
            (Some(mut rendered), why) if rendered.count > 0 => {
                rendered.notes.extend(why.map(str::to_owned));
                Ok(rendered)
            }
            (Some(rendered), _) if rendered.total > 0 => {
                broken(&format!("page {} cannot be read", rendered.first))
            }
            (_, Some(_)) => broken("nothing in it makes sense"),
            (_, None) => broken("it has no pages"),
        }
    }
}

/// Starts the thread; what it gives is an error when it broke down.
fn start(task: Task, permit: OwnedSemaphorePermit) -> io::Result<oneshot::Receiver<()>> {
    let (sender, done) = oneshot::channel();
    let work = move || {
        let ended = catch_unwind(AssertUnwindSafe(|| pages(&task)));
        drop(permit);
        if let Ok(ended) = ended {
            if let Err(error) = ended {
                task.found().error = Some(error);
            }
            // Nobody waits for it after a cancellation.
            let _ = sender.send(());
        }
    };
    std::thread::Builder::new().name("pdf".into()).stack_size(STACK).spawn(work)?;
    Ok(done)
}

fn pages(task: &Task) -> Result<(), ToolError> {
    let Task { wanted, shown, .. } = task;
    if expands(&task.bytes) {
        return Err(damaged(shown, "PDF document", "it unpacks to more than can be held"));
    }
    let document = Pdf::new(Arc::new(task.bytes.clone())).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            ToolError::new(format!("{shown} is a PDF document that opens with a password only"))
                .hint("Ask for a copy without one.")
        }
        LoadPdfError::Decryption(_) => {
            ToolError::new(format!("{shown} is a PDF document with an encryption that is unknown"))
                .hint("Look at the file with a program that knows its kind.")
        }
        LoadPdfError::Invalid => damaged(shown, "PDF document", "nothing in it makes sense"),
    })?;
    let all = document.pages();
    let total = all.len() as u64;
    let unit = ("page", "pages");
    let rendered = Rendered::new("PDF document", unit, total, *wanted, shown)?;
    task.found().rendered = Some(rendered);
    let cache = RenderCache::new();
    let interpreter = InterpreterCache::new();
    while let Some((next, pictures)) = task.next() {
        let index = usize::try_from(next - 1).unwrap_or(usize::MAX);
        let Some(page) = all.get(index) else { break };
        let found = text(page, &interpreter, task);
        let scanned = found.readable() < SCANNED;
        let wanted = (scanned || task.pictures) && pictures < PICTURES;
        let drawn =
            if wanted && found.pixels() <= PIXELS { drawn(page, &cache, next) } else { None };
        let mut said = format!("--- page {next} ---\n{}", found.into_text());
        if scanned && drawn.is_none() {
            said.push_str("[no text was found on this page; read it alone to see it]\n");
        }
        task.take(&said, drawn);
    }
    Ok(())
}

impl Task {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next page, and how many pictures there are so far.
    fn next(&self) -> Option<(u64, usize)> {
        let found = self.found();
        let rendered = found.rendered.as_ref().filter(|_| !self.is_over())?;
        Some((rendered.next(self.wanted)?, rendered.pictures.len()))
    }

    fn take(&self, text: &str, picture: Option<Picture>) {
        if let Some(rendered) = &mut self.found().rendered {
            rendered.take(text, picture.into_iter().collect(), self.wanted);
        }
    }

    /// Reports whether nobody waits for more.
    fn is_over(&self) -> bool {
        self.stop.is_cancelled() || Instant::now() >= self.until
    }
}

/// The text of a page.
fn text<'a>(page: &'a Page<'a>, cache: &InterpreterCache<'a>, task: &Task) -> Text<impl Fn()> {
    let mut text = Text::new(task.wanted.room, || {
        if task.is_over() {
            // The only way out of an interpreter that cannot be stopped; it is no fault to report.
            resume_unwind(Box::new(()));
        }
    });
    let (width, height) = page.render_dimensions();
    let area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let settings = InterpreterSettings::default();
    let mut context = Context::new(Affine::IDENTITY, area, cache, page.xref(), settings);
    interpret_page(page, &mut context, &mut text);
    text
}

/// A page as a PNG image; none where it has no size.
fn drawn<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>, number: u64) -> Option<Picture> {
    let (width, height) = page.render_dimensions();
    let scale = SIDE / width.max(height);
    let sound = |length: f32| (1.0..=SIDE).contains(&(length * scale).ceil());
    if !scale.is_finite() || !sound(width) || !sound(height) {
        return None;
    }
    let pixels = PixmapSettings {
        x_scale: scale,
        y_scale: scale,
        bg_color: vello_cpu::color::palette::css::WHITE,
    };
    let settings = InterpreterSettings::default();
    let pixmap = hayro::render(page, cache, &settings, &RenderSettings::default(), &pixels);
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    // What is drawn on white is opaque, so that nothing was multiplied by its alpha.
    let opaque: Vec<u8> = pixmap
        .data_as_u8_slice()
        .chunks_exact(4)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    let mut bytes = Vec::new();
    png::PngEncoder::new_with_quality(
        &mut bytes,
        png::CompressionType::Fast,
        png::FilterType::Adaptive,
    )
    .write_image(&opaque, width, height, ExtendedColorType::Rgb8)
    .ok()?;
    Some(Picture { name: format!("page {number}"), bytes: bytes.into() })
}

/// Reports whether streams of a document unpack to more than can be held.
///
/// Only those are tried that could, by the best ratio that there is.
fn expands(bytes: &[u8]) -> bool {
    let mut all = 0;
    for at in memchr::memmem::find_iter(bytes, b"stream") {
        let rest = &bytes[at + 6..];
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        let Some(rest) = rest.strip_prefix(b"\n") else { continue };
        let end = memchr::memmem::find(rest, b"endstream").unwrap_or(rest.len());
        if (end as u64) * 1032 < STREAM {
            continue;
        }
        let mut inflated = flate2::read::ZlibDecoder::new(rest).take(STREAM + 1);
        // What is damaged is damaged here as there: what came out before counts.
        let mut count = Count(0);
        let _ = io::copy(&mut inflated, &mut count);
        all += count.0;
        if count.0 > STREAM || all > STREAMS {
            return true;
        }
    }
    false
}

/// Counts bytes.
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
