//! Images as models take them: upright, at most 2000 x 2000 pixels, at most 3.75 MB.
//!
//! **Invariant:** nothing goes to a model that was not decoded whole: a malformed image is an
//! error here, not in every later request. Memory is bounded by the number of pixels, which is
//! checked before any is decoded, and one image is decoded at a time.

use std::{
    io::Cursor,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use fast_image_resize::{
    PixelType, Resizer,
    images::{Image, ImageRef},
};
use haft_types::ToolError;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageFormat,
    ImageReader, Limits,
    codecs::{
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    metadata::Orientation,
};
use tokio_util::sync::CancellationToken;

use crate::words;

/// Most pixels along a side.
const SIDE: u32 = 2000;
/// Most bytes: 5 MB in base64.
const BYTES: usize = 3_750_000;
/// Most pixels that are decoded.
const PIXELS: u64 = 64_000_000;
/// Most bytes that a decoder may take.
const MEMORY: u64 = 512 * 1024 * 1024;
/// Most bytes of a file that is read as an image.
pub(crate) const FILE: u64 = 50 * 1024 * 1024;

static TURN: Mutex<()> = Mutex::new(());

/// An image that is fit for a model.
pub(crate) struct Fitted {
    /// The encoded image.
    pub(crate) bytes: Bytes,
    /// Its media type.
    pub(crate) mime: &'static str,
    /// What the file is: `PNG`, `JPEG`, `GIF`, `WebP` or `BMP`.
    pub(crate) format: &'static str,
    /// Width and height of the file's image, upright.
    pub(crate) size: (u32, u32),
    /// Width and height of what is shown.
    pub(crate) shown: (u32, u32),
}

/// Tells by the first bytes whether a file is an image that can be shown.
pub(crate) fn known(first: &[u8]) -> bool {
    format_of(first).is_some()
}

fn format_of(first: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(first).ok()?;
    names(format).map(|_| format)
}

const fn names(format: ImageFormat) -> Option<(&'static str, &'static str)> {
    Some(match format {
        ImageFormat::Png => ("PNG", "image/png"),
        ImageFormat::Jpeg => ("JPEG", "image/jpeg"),
        ImageFormat::Gif => ("GIF", "image/gif"),
        ImageFormat::WebP => ("WebP", "image/webp"),
        ImageFormat::Bmp => ("BMP", "image/bmp"),
        _ => return None,
    })
}

/// Decodes an image and makes it fit.
///
/// # Errors
/// When it is malformed, or has more pixels than can be held.
pub(crate) async fn fit(
    data: Bytes,
    shown: String,
    stop: CancellationToken,
) -> Result<Fitted, ToolError> {
    let work = move || {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.is_cancelled() {
            return Err(ToolError::new(format!("reading {shown} was cancelled")));
        }
        fitted(data, &shown)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(ToolError::new(format!("the image could not be decoded: {error}"))
            .hint("Convert it to PNG with another program first."))
    })
}

fn fitted(data: Bytes, shown: &str) -> Result<Fitted, ToolError> {
    let malformed = |error: image::ImageError| {
        ToolError::new(format!("{shown} is a damaged image: {error}"))
            .hint("It is not shown. Look at the file with other tools, or make it anew.")
    };
    let found = format_of(&data).and_then(|format| Some((format, names(format)?)));
    let Some((format, (name, mime))) = found else {
        return Err(ToolError::new(format!("{shown} is no image that can be shown"))
            .hint("Convert it to PNG first."));
    };
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(&data[..]), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(malformed)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS || width == 0 || height == 0 {
        return Err(ToolError::new(format!(
            "{shown} is an image of {width} x {height} pixels; at most {} million pixels can be \
             shown",
            PIXELS / 1_000_000
        ))
        .hint("Scale it down with another program first."));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(malformed)?;
    let fits = width <= SIDE && height <= SIDE && data.len() <= BYTES;
    if fits && orientation == Orientation::NoTransforms && format != ImageFormat::Bmp {
        let size = (width, height);
        return Ok(Fitted { bytes: data, mime, format: name, size, shown: size });
    }
    picture.apply_orientation(orientation);
    let size = (picture.width(), picture.height());
    let picture = Pixels::of(picture);
    let lossy = format == ImageFormat::Jpeg;
    let (bytes, mime, shown) = shrink(&picture, lossy, shown)?;
    Ok(Fitted { bytes, mime, format: name, size, shown })
}

/// Pixels of 8 bits for each of 1 to 4 channels.
struct Pixels {
    data: Vec<u8>,
    size: (u32, u32),
    kind: PixelType,
    color: ExtendedColorType,
}

impl Pixels {
    fn of(picture: DynamicImage) -> Self {
        let size = (picture.width(), picture.height());
        let (data, kind, color) = match picture {
            DynamicImage::ImageLuma8(image) => {
                (image.into_raw(), PixelType::U8, ExtendedColorType::L8)
            }
            DynamicImage::ImageRgb8(image) => {
                (image.into_raw(), PixelType::U8x3, ExtendedColorType::Rgb8)
            }
            DynamicImage::ImageRgba8(image) => {
                (image.into_raw(), PixelType::U8x4, ExtendedColorType::Rgba8)
            }
            other if other.color().has_alpha() => {
                (other.into_rgba8().into_raw(), PixelType::U8x4, ExtendedColorType::Rgba8)
            }
            other => (other.into_rgb8().into_raw(), PixelType::U8x3, ExtendedColorType::Rgb8),
        };
        Self { data, size, kind, color }
    }

    fn scaled(&self, size: (u32, u32)) -> Result<Self, String> {
        let source = ImageRef::new(self.size.0, self.size.1, &self.data, self.kind)
            .map_err(|error| error.to_string())?;
        let mut target = Image::new(size.0, size.1, self.kind);
        Resizer::new().resize(&source, &mut target, None).map_err(|error| error.to_string())?;
        Ok(Self { data: target.into_vec(), size, kind: self.kind, color: self.color })
    }

    fn png(&self) -> image::ImageResult<Vec<u8>> {
        let mut out = Vec::new();
        PngEncoder::new_with_quality(&mut out, CompressionType::Fast, FilterType::Adaptive)
            .write_image(&self.data, self.size.0, self.size.1, self.color)?;
        Ok(out)
    }

    fn jpeg(&self, quality: u8) -> image::ImageResult<Vec<u8>> {
        let mut out = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut out, quality);
        if self.color == ExtendedColorType::Rgba8 {
            // No alpha in JPEG: the colours alone are kept.
            let opaque: Vec<u8> = self
                .data
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect();
            encoder.write_image(&opaque, self.size.0, self.size.1, ExtendedColorType::Rgb8)?;
        } else {
            encoder.write_image(&self.data, self.size.0, self.size.1, self.color)?;
        }
        Ok(out)
    }
}

type Encoded = (Bytes, &'static str, (u32, u32));

/// Scales down until both limits hold.
fn shrink(picture: &Pixels, lossy: bool, shown: &str) -> Result<Encoded, ToolError> {
    let failed = |error: &dyn std::fmt::Display| {
        ToolError::new(format!("{shown} cannot be made fit for the model: {error}"))
            .hint("Scale it down with another program first.")
    };
    let mut side = SIDE;
    while side >= 50 {
        let pixels = inside(picture.size, side);
        let scaled = if pixels == picture.size { None } else { Some(picture.scaled(pixels)) };
        let scaled = scaled.transpose().map_err(|error| failed(&error))?;
        let current = scaled.as_ref().unwrap_or(picture);
        if !lossy {
            let png = current.png().map_err(|error| failed(&error))?;
            if png.len() <= BYTES {
                return Ok((png.into(), "image/png", pixels));
            }
        }
        for quality in [85, 60] {
            let jpeg = current.jpeg(quality).map_err(|error| failed(&error))?;
            if jpeg.len() <= BYTES {
                return Ok((jpeg.into(), "image/jpeg", pixels));
            }
        }
        side = side * 3 / 4;
    }
    let limit = words::size(BYTES as u64);
    Err(failed(&format!("no size of it has less than {limit}")))
}

/// The greatest size of the same proportions with no side longer than `side`.
fn inside((width, height): (u32, u32), side: u32) -> (u32, u32) {
    let longest = width.max(height);
    if longest <= side {
        return (width, height);
    }
    let scaled = |length: u32| {
        let length = u64::from(length) * u64::from(side) / u64::from(longest);
        u32::try_from(length).unwrap_or(side).max(1)
    };
    (scaled(width), scaled(height))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage, codecs::bmp::BmpEncoder};

    use super::*;

    fn picture(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| {
            Rgb([u8::try_from(x % 251).unwrap(), u8::try_from(y % 241).unwrap(), 7])
        })
    }

    fn png(width: u32, height: u32) -> Bytes {
        let mut out = Vec::new();
        let data = picture(width, height).into_raw();
        PngEncoder::new(&mut out)
            .write_image(&data, width, height, ExtendedColorType::Rgb8)
            .unwrap();
        out.into()
    }

    #[test]
    fn a_fitting_image_passes_unchanged() {
        let data = png(30, 20);
        let fitted = fitted(data.clone(), "a.png").unwrap();
        assert_eq!((fitted.bytes, fitted.mime, fitted.shown), (data, "image/png", (30, 20)));
    }

    #[test]
    fn a_big_one_is_scaled_and_keeps_its_proportions() {
        let fitted = fitted(png(4000, 1000), "a.png").unwrap();
        assert_eq!((fitted.size, fitted.shown), ((4000, 1000), (2000, 500)));
        let again = image::load_from_memory(&fitted.bytes).unwrap();
        assert_eq!((again.width(), again.height()), (2000, 500));
        assert!(fitted.bytes.len() <= BYTES);
    }

    #[test]
    fn a_bmp_becomes_a_png_of_the_same_pixels() {
        let mut data = Vec::new();
        let pixels = picture(7, 5);
        BmpEncoder::new(&mut data).write_image(&pixels, 7, 5, ExtendedColorType::Rgb8).unwrap();
        let fitted = fitted(data.into(), "a.bmp").unwrap();
        assert_eq!((fitted.mime, fitted.format), ("image/png", "BMP"));
        assert_eq!(image::load_from_memory(&fitted.bytes).unwrap().into_rgb8(), pixels);
    }

    #[test]
    fn noise_is_shrunk_until_its_bytes_fit() {
        let mut state = 1_u32;
        let noise = RgbImage::from_fn(1200, 1200, |_, _| {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            };
            Rgb([next(), next(), next()])
        });
        let pixels = Pixels::of(DynamicImage::ImageRgb8(noise));
        let (bytes, _, shown) = shrink(&pixels, false, "noise.png").ok().unwrap();
        assert!(bytes.len() <= BYTES);
        assert!(shown.0 > 500);
    }

    #[test]
    fn an_upright_image_comes_out_of_one_that_lies_on_its_side() {
        let mut data = Vec::new();
        let mut encoder = JpegEncoder::new(&mut data);
        // A minimal TIFF block with one entry: orientation 6, turn right.
        let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
        encoder.set_exif_metadata(exif).unwrap();
        encoder.write_image(&picture(64, 32), 64, 32, ExtendedColorType::Rgb8).unwrap();
        let fitted = fitted(data.into(), "a.jpg").unwrap();
        assert_eq!((fitted.size, fitted.shown, fitted.mime), ((32, 64), (32, 64), "image/jpeg"));
    }

    #[test]
    fn damaged_and_huge_images_are_refused() {
        let whole = png(300, 200);
        let half = whole.slice(..whole.len() / 2);
        let error = fitted(half, "half.png").err().unwrap();
        assert!(error.message.contains("half.png is a damaged image"), "{error}");
        // The size in the header is all that is looked at: 60,000 x 60,000.
        let mut bomb = whole.to_vec();
        bomb[16..24].copy_from_slice(&[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]);
        let crc = crc(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        let error = fitted(bomb.into(), "bomb.png").err().unwrap();
        assert!(error.message.contains("bomb.png"), "{error}");
    }

    /// CRC-32 as in PNG, for the header of the test above.
    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(crc & 1))
            })
        })
    }
}
