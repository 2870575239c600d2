//! Images as models take them: upright, at most 2000 x 2000 pixels, at most 3.75 MB.
//!
//! **Invariant:** nothing goes to a model that was not decoded whole: a malformed image is an error
//! here, not in every later request. Of an animated image only the first picture is sent. Memory is
//! bounded by the total number of pixels and by those along a side, which are checked before any is
//! decoded. One image is decoded at a time.

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
        png::{CompressionType, FilterType, PngDecoder, PngEncoder},
        webp::WebPDecoder,
    },
    metadata::Orientation,
};
use tokio_util::sync::CancellationToken;

use crate::units;

/// Most pixels along a side.
const SIDE: u32 = 2000;
/// Most bytes: 5 MB in base64, the least that any wire takes. Anthropic takes 5,242,880 bytes of
/// base64 for an image, `OpenAI` 20 MB and 50 MB a request (their guides to vision, 2026).
const BYTES: usize = 3_750_000;
/// Most pixels that are decoded.
const PIXELS: u64 = 64_000_000;
/// Most pixels along a side of what is decoded: what scaling takes grows with it, however few the
/// pixels are.
const LONGEST: u32 = 65_535;
/// Most bytes of decoded pixels.
const DECODED: u64 = 256_000_000;
/// Most bytes that a decoder may take.
const MEMORY: u64 = 512 * 1024 * 1024;
/// Most bytes of a file that is read as an image.
pub(crate) const FILE: u64 = 50 * 1024 * 1024;

const PNG: &str = "image/png";
const JPEG: &str = "image/jpeg";

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
    /// What of the file's image does not show in what is shown, for who looks at it.
    pub(crate) notes: Vec<&'static str>,
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
        ImageFormat::Png => ("PNG", PNG),
        ImageFormat::Jpeg => ("JPEG", JPEG),
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
        ToolError::new(format!("{shown} is a damaged image: {}", in_words(&error)))
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
    if let Some(limit) = too_much((width, height), decoder.total_bytes()) {
        let what = format!("{shown} is an image of {width} x {height} pixels; {limit}");
        return Err(ToolError::new(what).hint("Scale it down with another program first."));
    }
    let mut notes = Vec::new();
    if moves(&data, format) {
        notes.push("it is animated, and only its first picture is shown");
    }
    if format == ImageFormat::Jpeg && !ends(&data) {
        notes.push("it is cut off, and what is missing is grey");
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(malformed)?;
    let fits = width <= SIDE && height <= SIDE && data.len() <= BYTES && notes.is_empty();
    if fits && orientation == Orientation::NoTransforms && format != ImageFormat::Bmp {
        let size = (width, height);
        return Ok(Fitted { bytes: data, mime, format: name, size, shown: size, notes });
    }
    picture.apply_orientation(orientation);
    let size = (picture.width(), picture.height());
    let picture = Pixels::of(picture);
    let lossy = format == ImageFormat::Jpeg;
    let (bytes, mime, shown) = shrink(&picture, lossy, shown)?;
    match mime {
        JPEG if picture.is_clear() => {
            notes.push("it is shown as JPEG, with white behind what is transparent");
        }
        JPEG => notes.push("it is shown as JPEG"),
        _ => notes.push("it is shown as PNG"),
    }
    Ok(Fitted { bytes, mime, format: name, size, shown, notes })
}

/// What is wrong with an image, without the insides of its decoder.
fn in_words(error: &image::ImageError) -> String {
    let told = error.to_string();
    let has = |words: &[&str]| words.iter().any(|word| told.contains(word));
    if has(&["before IHDR", "MissingIhdr"]) {
        "its header chunk is missing".to_owned()
    } else if has(&["CRC", "checksum", "Checksum"]) {
        "a checksum is wrong".to_owned()
    } else if told.contains('{') {
        "its parts do not fit together".to_owned()
    } else {
        told
    }
}

/// Which limit an image is over, of that size and with so many bytes of pixels.
fn too_much((width, height): (u32, u32), bytes: u64) -> Option<String> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PIXELS || pixels == 0 {
        return Some(format!("at most {} million pixels can be shown", PIXELS / 1_000_000));
    }
    if width.max(height) > LONGEST {
        let longest = units::grouped(LONGEST.into());
        return Some(format!("at most {longest} pixels along a side can be shown"));
    }
    (bytes > DECODED).then(|| {
        let (bytes, most) = (units::size(bytes), units::size(DECODED));
        format!("they take {bytes}, and at most {most} can be shown")
    })
}

/// Reports whether an image has more than one picture, or whether that cannot be told.
fn moves(data: &[u8], format: ImageFormat) -> bool {
    let data = Cursor::new(data);
    let moves = match format {
        ImageFormat::Gif => return !matches!(pictures(data), Ok(0 | 1)),
        ImageFormat::Png => PngDecoder::new(data).and_then(|decoder| decoder.is_apng()),
        ImageFormat::WebP => WebPDecoder::new(data).map(|decoder| decoder.has_animation()),
        _ => Ok(false),
    };
    moves.unwrap_or(true)
}

/// Counts the pictures of a GIF up to the second.
fn pictures(data: Cursor<&[u8]>) -> Result<usize, gif::DecodingError> {
    let mut options = gif::DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(data)?;
    let mut count = 0;
    while count < 2 && decoder.next_frame_info()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Reports whether a JPEG goes on to its end: what is missing is filled up when it is decoded.
///
/// Source: ITU-T T.81, annex B.
fn ends(data: &[u8]) -> bool {
    let mut at = 2;
    loop {
        match data.get(at..at + 4) {
            // What stands for 0xff in a scan is no marker, so the first one that ends it does.
            Some([0xff, 0xda, ..]) => return data[at..].windows(2).any(|two| two == [0xff, 0xd9]),
            // Markers may be led by any number of these, and some stand alone.
            Some([0xff, 0xff | 0x01 | 0xd0..=0xd7, ..]) => at += 1,
            Some([0xff, _, high, low]) => at += 2 + usize::from(u16::from_be_bytes([*high, *low])),
            Some(_) => at += 1,
            None => return false,
        }
    }
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

    /// Reports whether something of it is transparent.
    fn is_clear(&self) -> bool {
        self.color == ExtendedColorType::Rgba8
            && self.data.chunks_exact(4).any(|pixel| pixel[3] != u8::MAX)
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
            // No alpha in JPEG, and the colour of what is transparent may be any.
            let over_white = |color: u8, alpha: u8| {
                let (color, alpha) = (u16::from(color), u16::from(alpha));
                u8::try_from((color * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
            };
            let opaque: Vec<u8> = self
                .data
                .chunks_exact(4)
                .flat_map(|pixel| [0, 1, 2].map(|channel| over_white(pixel[channel], pixel[3])))
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
                return Ok((png.into(), PNG, pixels));
            }
        }
        for quality in [85, 60] {
            let jpeg = current.jpeg(quality).map_err(|error| failed(&error))?;
            if jpeg.len() <= BYTES {
                return Ok((jpeg.into(), JPEG, pixels));
            }
        }
        side = side * 3 / 4;
    }
    let limit = units::size(BYTES as u64);
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
    use haft_testkit::machine::peak;
    use image::{
        Rgb, RgbImage, Rgba, RgbaImage,
        codecs::{bmp::BmpEncoder, gif::GifEncoder},
    };

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

    /// Every byte of it is as good as random: nothing makes it smaller.
    fn noise(width: u32, height: u32, channels: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        let count = usize::try_from(width * height).unwrap() * channels;
        std::iter::repeat_with(&mut next).take(count).collect()
    }

    fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Bytes {
        let mut out = Cursor::new(Vec::new());
        picture.into().write_to(&mut out, format).unwrap();
        out.into_inner().into()
    }

    #[test]
    fn the_bytes_fit_every_wire_as_base64() {
        assert_eq!(BYTES.div_ceil(3) * 4, 5_000_000);
    }

    #[test]
    fn noise_is_shown_as_jpeg_as_big_as_fits() {
        let picture = RgbImage::from_raw(2000, 2000, noise(2000, 2000, 3)).unwrap();
        let data = encoded(picture, ImageFormat::Png);
        assert!(data.len() > 10_000_000, "{} bytes are no test", data.len());
        let fitted = fitted(data, "noise.png").unwrap();
        assert!(fitted.bytes.len() <= BYTES, "{} bytes", fitted.bytes.len());
        assert_eq!((fitted.mime, fitted.format, fitted.size), (JPEG, "PNG", (2000, 2000)));
        assert_eq!(fitted.notes, ["it is shown as JPEG"]);
        assert!(fitted.shown.0 >= 1500 && fitted.shown.0 == fitted.shown.1, "{:?}", fitted.shown);
        let again = image::load_from_memory_with_format(&fitted.bytes, ImageFormat::Jpeg).unwrap();
        assert_eq!((again.width(), again.height()), fitted.shown);
    }

    #[test]
    fn what_is_transparent_stays_so_or_turns_white() {
        let clear = RgbaImage::from_pixel(2500, 10, Rgba([200, 0, 0, 0]));
        let small = fitted(encoded(clear, ImageFormat::Png), "clear.png").unwrap();
        assert_eq!((small.mime, small.shown), (PNG, (2000, 8)));
        let again = image::load_from_memory(&small.bytes).unwrap().into_rgba8();
        assert!(again.pixels().all(|pixel| pixel[3] == 0));

        let mut data = noise(1200, 1200, 4);
        // The left half is transparent, whatever its colours are.
        for (nth, pixel) in data.chunks_exact_mut(4).enumerate() {
            pixel[3] = if nth % 1200 < 600 { 0 } else { 255 };
        }
        let picture = RgbaImage::from_raw(1200, 1200, data).unwrap();
        let big = fitted(encoded(picture, ImageFormat::Png), "half.png").unwrap();
        assert!(big.bytes.len() <= BYTES && big.mime == JPEG, "{}", big.bytes.len());
        assert_eq!(big.notes, ["it is shown as JPEG, with white behind what is transparent"]);
        let again = image::load_from_memory(&big.bytes).unwrap().into_rgb8();
        let (x, y) = (again.width() / 4, again.height() / 2);
        assert!(again.get_pixel(x, y).0.iter().all(|channel| *channel > 240), "it is not white");
    }

    fn animated_gif(pictures: usize) -> Bytes {
        let mut out = Vec::new();
        let mut encoder = GifEncoder::new(&mut out);
        for number in 0..pictures {
            let color = if number == 0 { [255, 0, 0, 255] } else { [0, 0, 255, 255] };
            let picture = RgbaImage::from_pixel(6, 4, Rgba(color));
            encoder.encode_frame(image::Frame::new(picture)).unwrap();
        }
        drop(encoder);
        out.into()
    }

    fn chunk(name: &str, data: &[u8]) -> Vec<u8> {
        let len = u32::try_from(data.len()).unwrap().to_le_bytes();
        let fill: &[u8] = if data.len().is_multiple_of(2) { &[] } else { &[0] };
        [name.as_bytes(), &len[..], data, fill].concat()
    }

    /// Source: the WebP container specification, of Google.
    fn animated_webp() -> Bytes {
        let still = |color| {
            let picture = RgbImage::from_pixel(6, 4, Rgb(color));
            // Behind the 12 bytes of the container stands the one chunk.
            encoded(picture, ImageFormat::WebP).slice(12..)
        };
        let frame = |color| {
            let head = [&[0_u8; 6][..], &[5, 0, 0, 3, 0, 0, 40, 0, 0, 0]].concat();
            chunk("ANMF", &[&head[..], &still(color)].concat())
        };
        let body = [
            &b"WEBP"[..],
            &chunk("VP8X", &[2, 0, 0, 0, 5, 0, 0, 3, 0, 0]),
            &chunk("ANIM", &[0; 6]),
            &frame([255, 0, 0]),
            &frame([0, 0, 255]),
        ];
        chunk("RIFF", &body.concat()).into()
    }

    #[test]
    fn of_what_moves_the_first_picture_is_shown() {
        for (data, format) in [(animated_gif(3), "GIF"), (animated_webp(), "WebP")] {
            let fitted = fitted(data, "moves").unwrap();
            assert_eq!((fitted.mime, fitted.format, fitted.shown), (PNG, format, (6, 4)));
            let notes =
                ["it is animated, and only its first picture is shown", "it is shown as PNG"];
            assert_eq!(fitted.notes, notes, "{format}");
            let again = image::load_from_memory(&fitted.bytes).unwrap().into_rgb8();
            let is_red = |pixel: &Rgb<u8>| pixel[0] > 250 && pixel[1] < 5 && pixel[2] < 5;
            assert!(again.pixels().all(is_red), "{format}: {again:?}");
        }
        let still = animated_gif(1);
        let fitted = fitted(still.clone(), "still.gif").unwrap();
        assert_eq!((fitted.bytes, fitted.notes.len()), (still, 0));
    }

    #[test]
    fn one_pixel_is_enough() {
        for format in [
            ImageFormat::Png,
            ImageFormat::Jpeg,
            ImageFormat::Gif,
            ImageFormat::WebP,
            ImageFormat::Bmp,
        ] {
            let picture = RgbaImage::from_pixel(1, 1, Rgba([9, 9, 9, 255]));
            let picture = DynamicImage::from(picture);
            let picture =
                if format == ImageFormat::Jpeg { picture.into_rgb8().into() } else { picture };
            let fitted = fitted(encoded(picture, format), "dot").unwrap();
            assert_eq!((fitted.size, fitted.shown), ((1, 1), (1, 1)), "{format:?}");
            assert_eq!(image::load_from_memory(&fitted.bytes).unwrap().width(), 1);
        }
        let fitted = fitted(png(60_000, 1), "line.png").unwrap();
        assert_eq!(fitted.shown, (2000, 1));
    }

    #[test]
    fn images_come_out_upright_however_they_lie() {
        // A red corner, top left of what is to be seen.
        let upright = RgbImage::from_fn(64, 32, |x, y| {
            if x < 16 && y < 16 { Rgb([255, 0, 0]) } else { Rgb([255; 3]) }
        });
        let upright = DynamicImage::from(upright);
        for (number, back) in [
            (1, Orientation::NoTransforms),
            (2, Orientation::FlipHorizontal),
            (3, Orientation::Rotate180),
            (4, Orientation::FlipVertical),
            (5, Orientation::Rotate90FlipH),
            (6, Orientation::Rotate270),
            (7, Orientation::Rotate270FlipH),
            (8, Orientation::Rotate90),
        ] {
            let mut lies = upright.clone();
            lies.apply_orientation(back);
            let mut data = Vec::new();
            let mut encoder = JpegEncoder::new(&mut data);
            // A minimal TIFF block with one entry: the orientation.
            let mut exif =
                b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
            exif[18] = number;
            encoder.set_exif_metadata(exif).unwrap();
            lies.write_with_encoder(encoder).unwrap();
            let fitted = fitted(data.into(), "a.jpg").unwrap();
            assert_eq!((fitted.size, fitted.mime), ((64, 32), JPEG), "{number}");
            let again = DynamicImage::from_decoder(
                ImageReader::with_format(Cursor::new(&fitted.bytes[..]), ImageFormat::Jpeg)
                    .into_decoder()
                    .unwrap(),
            );
            let again = again.unwrap().into_rgb8();
            let corner = again.get_pixel(4, 4).0;
            assert!(corner[0] > 200 && corner[1] < 60, "{number}: {corner:?}");
            let other = again.get_pixel(60, 28).0;
            assert!(other[1] > 200, "{number}: {other:?}");
            // Whoever turns it by what the file says once more would turn it wrong.
            let mut decoder =
                ImageReader::with_format(Cursor::new(&fitted.bytes[..]), ImageFormat::Jpeg)
                    .into_decoder()
                    .unwrap();
            assert_eq!(decoder.orientation().unwrap(), Orientation::NoTransforms, "{number}");
        }
    }

    #[test]
    fn what_is_cut_off_is_refused_or_made_whole() {
        let picture = || RgbImage::from_raw(90, 60, noise(90, 60, 3)).unwrap();
        for format in [ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp] {
            let whole = encoded(picture(), format);
            for part in [whole.len() / 2, whole.len() * 9 / 10] {
                let error = fitted(whole.slice(..part), "half").err();
                let told = error.as_ref().map(|error| error.message.contains("half is a damaged"));
                assert_eq!(told, Some(true), "{format:?} {part} of {}", whole.len());
            }
        }
        let whole = encoded(picture(), ImageFormat::Jpeg);
        for part in [whole.len() / 2, whole.len() - 2] {
            let cut = whole.slice(..part);
            let fitted = fitted(cut.clone(), "half.jpg").unwrap();
            assert!(fitted.notes[0].starts_with("it is cut off"), "{:?}", fitted.notes);
            assert!(ends(&fitted.bytes) && !ends(&cut), "what goes on is cut off, too");
        }
        // What cameras put behind the end does no harm.
        let more = Bytes::from([&whole[..], b"more"].concat());
        assert_eq!(fitted(more.clone(), "a.jpg").unwrap().bytes, more);
    }

    #[test]
    fn damaged_and_huge_images_are_refused() {
        let whole = png(300, 200);
        let half = whole.slice(..whole.len() / 2);
        let error = fitted(half, "half.png").err().unwrap();
        assert!(error.message.contains("half.png is a damaged image"), "{error}");
        // The header is all that is looked at.
        for (width, height, kind, limit) in [
            (60_000_u32, 60_000_u32, [8, 2], "at most 64 million pixels"),
            (64_000_000, 1, [8, 0], "at most 65,535 pixels along a side"),
            (1, 65_536, [1, 0], "at most 65,535 pixels along a side"),
            (8_000, 8_000, [16, 6], "they take 512.0 MB, and at most 256.0 MB"),
        ] {
            let mut bomb = whole.to_vec();
            bomb[16..20].copy_from_slice(&width.to_be_bytes());
            bomb[20..24].copy_from_slice(&height.to_be_bytes());
            bomb[24..26].copy_from_slice(&kind);
            let crc = crc(&bomb[12..29]);
            bomb[29..33].copy_from_slice(&crc.to_be_bytes());
            let before = peak();
            let error = fitted(bomb.into(), "bomb.png").err().unwrap();
            assert!(error.message.contains(limit), "{error}");
            assert!(peak() - before < 16 << 20, "{limit}: {} bytes more", peak() - before);
        }
    }

    #[test]
    fn a_size_that_is_claimed_is_enough_to_be_refused() {
        let picture = || picture(3, 2);
        let mut jpeg = encoded(picture(), ImageFormat::Jpeg).to_vec();
        let frame = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
        jpeg[frame + 5..frame + 9].fill(0xee);
        let mut gif = animated_gif(1).to_vec();
        gif[6..10].fill(0xee);
        let mut webp = encoded(picture(), ImageFormat::WebP).to_vec();
        webp[21..24].fill(0xff);
        let mut bmp = encoded(picture(), ImageFormat::Bmp).to_vec();
        for side in [18, 22] {
            bmp[side..side + 4].copy_from_slice(&60_000_i32.to_le_bytes());
        }
        for (name, data) in [("a.jpg", jpeg), ("a.gif", gif), ("a.webp", webp), ("a.bmp", bmp)] {
            let before = peak();
            let error = fitted(data.into(), name).err().unwrap();
            assert!(error.message.contains("at most 64 million pixels"), "{name}: {error}");
            assert!(peak() - before < 16 << 20, "{name}: {} bytes more", peak() - before);
        }
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
