//! The reading itself: from a document to what is reported of its pages.
//!
//! **Invariant:** streams that unpack to more than [`STREAM`] bytes, and pictures of more than
//! [`PIXELS`] pixels, are refused before they are unpacked. Nothing else here is bounded, and a
//! hostile document may crash it: it is run where that harms nobody.

use std::{
    io::{self, Read as _},
    panic::resume_unwind,
    sync::Arc,
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

use super::{PICTURES, PartRange, PdfItem, Refusal, Rendered, Task, text::Text};

/// Most bytes of one unpacked stream.
const STREAM: u64 = 128 * 1024 * 1024;
/// Most bytes of all unpacked streams that could be big.
const STREAMS: u64 = 1024 * 1024 * 1024;
/// Most pixels of a picture in a page that is drawn.
const PIXELS: u64 = 64_000_000;
/// The longest side of a page's picture.
const SIDE: f32 = 1500.0;
/// Pages with fewer characters are taken as scanned.
const SCANNED: usize = 8;

/// Begins with the first wanted page.
///
/// # Errors
/// When that is past the end.
pub(super) fn begun(total: u64, wanted: PartRange, shown: &str) -> Result<Rendered, ToolError> {
    Rendered::new("PDF document", ("page", "pages"), total, wanted, shown)
}

/// Tells the wanted pages of a document, until `is_over`.
///
/// What is over in the middle of a page ends by a panic: there is no other way out of it.
pub(super) fn read_pages(
    bytes: &Bytes,
    task: &Task,
    tell: &mut dyn FnMut(PdfItem) -> io::Result<()>,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    if expands(bytes) {
        return tell(PdfItem::Refused(Refusal::Expands));
    }
    let document = match Pdf::new(Arc::new(bytes.clone())) {
        Ok(document) => document,
        Err(error) => {
            return tell(PdfItem::Refused(match error {
                LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Refusal::Password,
                LoadPdfError::Decryption(_) => Refusal::Encryption,
                LoadPdfError::Invalid => Refusal::Nonsense,
            }));
        }
    };
    let all = document.pages();
    let total = all.len() as u64;
    tell(PdfItem::Total(total))?;
    // Counted here as it is there; what is past the end is said there.
    let Ok(mut done) = begun(total, task.wanted, "") else { return tell(PdfItem::Done) };
    let (cache, interpreter) = (RenderCache::new(), InterpreterCache::new());
    let mut drawings = 0;
    while let Some(next) = done.next(task.wanted) {
        if is_over() {
            return Ok(());
        }
        let index = usize::try_from(next - 1).unwrap_or(usize::MAX);
        let Some(page) = all.get(index) else { break };
        let found = text(page, &interpreter, task.wanted.room, is_over);
        let soup = found.is_soup();
        let scanned = soup || found.readable() < SCANNED;
        let wanted = (scanned || task.pictures) && drawings < PICTURES;
        let drawing = if wanted && found.pixels() <= PIXELS { drawn(page, &cache) } else { None };
        let sees = task.vision.then_some(drawing.is_some());
        let shown = if soup { soup_of(next, sees) } else { found.into_text() };
        let mut said = format!("--- page {next} ---\n{shown}");
        if scanned && !soup && drawing.is_none() {
            said.push_str("[no text was found on this page; read it alone to see it]\n");
        }
        done.take(&said, Vec::new(), task.wanted);
        if let Some(drawing) = drawing {
            drawings += 1;
            tell(PdfItem::Picture(drawing))?;
        }
        tell(PdfItem::Page(said))?;
    }
    tell(PdfItem::Done)
}

/// What is told in the place of characters that mean nothing, and whether the model sees the page
/// here, where it sees any.
fn soup_of(page: u64, sees: Option<bool>) -> String {
    let way_on = match sees {
        Some(true) => "look at its image",
        Some(false) => "read it alone to see it as an image",
        None => "a program for character recognition (OCR) can read it, such as ocrmypdf",
    };
    format!("[page {page} has no text that can be read: its font gives no characters; {way_on}]\n")
}

/// The text of a page.
fn text<'a>(
    page: &'a Page<'a>,
    cache: &InterpreterCache<'a>,
    room: usize,
    is_over: &dyn Fn() -> bool,
) -> Text<impl Fn()> {
    let mut text = Text::new(room, move || {
        if is_over() {
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
fn drawn<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>) -> Option<Bytes> {
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
    Some(bytes.into())
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
