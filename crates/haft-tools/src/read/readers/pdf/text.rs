//! Extracts the text of a page from the glyphs that it shows.
//!
//! **Invariant:** the order is that in which the page shows them, which nearly every program makes
//! the reading order. Only blanks and line ends are added, from the positions of the glyphs. Memory
//! is bounded by the room that is given.

use hayro::{
    hayro_interpret::{
        BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
        font::{Glyph, GlyphRun},
        hayro_cmap::BfString,
    },
    kurbo::{BezPath, Point, Vec2},
};

/// Units of a glyph in the size of its font.
const EM: f64 = 1000.0;

/// Where the last glyph ended, and how it stands; lengths in points.
#[derive(Clone, Copy)]
struct End {
    at: Point,
    /// The direction of its line, of length 1.
    along: Vec2,
    size: f64,
    /// Where the run of it began.
    began: Point,
}

/// Takes what a page shows in and keeps its text.
pub(super) struct Text<Look> {
    out: String,
    room: usize,
    end: Option<End>,
    readable: usize,
    /// Glyphs of which the font says no character.
    unnamed: usize,
    pixels: u64,
    /// Called for everything that is shown, so that it can end it.
    look: Look,
}

impl<Look: Fn()> Text<Look> {
    /// Text of at most about `room` bytes.
    pub(super) const fn new(room: usize, look: Look) -> Self {
        Self { out: String::new(), room, end: None, readable: 0, unnamed: 0, pixels: 0, look }
    }

    /// How many characters it has that can be read.
    pub(super) const fn readable(&self) -> usize {
        self.readable
    }

    /// Reports whether most of what it shows has no characters: what came out of it is no text.
    pub(super) const fn is_soup(&self) -> bool {
        self.unnamed > self.readable
    }

    /// Pixels of the biggest image.
    pub(super) const fn pixels(&self) -> u64 {
        self.pixels
    }

    /// The text, with an end after every line.
    pub(super) fn into_text(self) -> String {
        let mut out = String::with_capacity(self.out.len() + 1);
        for line in self.out.trim().lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// Makes the blank or line end before what begins at a place.
    fn part(&mut self, at: Point, along: Vec2, size: f64) {
        let Some(end) = self.end else { return };
        let step = at - end.at;
        let (gap, off) = (step.dot(along), step.cross(along).abs());
        let size = size.max(end.size);
        let turned = along.dot(end.along) < 0.98;
        if turned || off > size * 0.6 || gap < -size {
            while self.out.ends_with(' ') {
                self.out.pop();
            }
            let apart = turned || off > size * 1.9;
            self.out.push_str(if apart { "\n\n" } else { "\n" });
        } else if gap > size * 0.16 && !self.out.ends_with([' ', '\n']) {
            self.out.push_str(if gap > size { "  " } else { " " });
        }
    }

    fn push(&mut self, text: &str) {
        for character in text.chars() {
            let blank = character.is_whitespace();
            if blank && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            } else if !blank {
                if !character.is_control() {
                    self.out.push(character);
                }
                let says = !character.is_control() && !is_unnamed(character);
                self.readable += usize::from(says);
                self.unnamed += usize::from(!says);
            }
        }
    }
}

impl<'a, Look: Fn()> Device<'a> for Text<Look> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        (self.look)();
        let mut began = None;
        for glyph in run.glyphs() {
            if self.out.len() >= self.room {
                return;
            }
            let place = props.transform * glyph.transform();
            let at = place * Point::ZERO;
            let far = place * Point::new(EM, 0.0) - at;
            let high = place * Point::new(0.0, EM) - at;
            let (along, size) = (far / far.hypot(), high.hypot());
            if !at.is_finite() || !along.is_finite() || !size.is_finite() {
                continue;
            }
            // The outline of what was filled just now is no other text.
            if began.is_none()
                && matches!(mode, DrawMode::Stroke(_))
                && self.end.is_some_and(|end| end.began == at)
            {
                return;
            }
            let began = *began.get_or_insert(at);
            self.part(at, along, size);
            match glyph.as_unicode() {
                Some(BfString::Char(character)) => self.push(character.encode_utf8(&mut [0; 4])),
                Some(BfString::String(text)) => self.push(&text),
                None => self.push("\u{FFFD}"),
            }
            let wide = match &**glyph {
                Glyph::Outline(glyph) => glyph.advance_width(),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let at = place * Point::new(f64::from(wide.unwrap_or(500.0)), 0.0);
            let end = End { at, along, size, began };
            self.end = at.is_finite().then_some(end).or(self.end);
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, _: ImageDrawProps<'a>) {
        (self.look)();
        let pixels = u64::from(image.width()) * u64::from(image.height());
        self.pixels = self.pixels.max(pixels);
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        (self.look)();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {}

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}

/// Reports whether a character means nothing outside of its font: those for private use, U+FFFD and
/// noncharacters.
const fn is_unnamed(character: char) -> bool {
    let code = character as u32;
    matches!(code, 0xE000..=0xF8FF | 0xF_0000.. | 0xFFFD | 0xFDD0..=0xFDEF)
        || code & 0xFFFE == 0xFFFE
}
