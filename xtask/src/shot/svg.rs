//! Cells as an SVG (1.1) picture.

use std::fmt::Write as _;

use super::ansi::{Cell, Colour, Look};

/// The width and height of a cell, and where in it letters stand.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const BASE: f64 = 13.5;
/// Around all.
const MARGIN: f64 = 12.0;

/// The colours of the terminal itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Dark,
    Light,
}

impl Theme {
    /// Text, ground, and the 16 colours that programs name by number.
    const fn colours(self) -> (&'static str, &'static str, [&'static str; 16]) {
        match self {
            Self::Dark => (
                "#d4d7dd",
                "#16181d",
                [
                    "#16181d", "#ef6b73", "#8ecb7e", "#e2b65f", "#6ea8fe", "#c792ea", "#58c4c4",
                    "#d4d7dd", "#6b7280", "#ff8b92", "#a6e095", "#f5cd7a", "#8fbcff", "#dbb0f5",
                    "#7adada", "#ffffff",
                ],
            ),
            Self::Light => (
                "#24292f",
                "#ffffff",
                [
                    "#24292f", "#c4262e", "#1a7f37", "#8a6100", "#0a58ca", "#8250df", "#0b7285",
                    "#57606a", "#6e7781", "#a40e26", "#116329", "#633c01", "#0550ae", "#6639ba",
                    "#095c6b", "#8c959f",
                ],
            ),
        }
    }

    fn colour(self, colour: Colour) -> String {
        match colour {
            Colour::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
            Colour::Indexed(index @ 0..=15) => self.colours().2[usize::from(index)].to_owned(),
            Colour::Indexed(index @ 16..=231) => {
                let part = |number: u8| if number == 0 { 0 } else { 55 + 40 * number };
                let index = index - 16;
                let (red, green, blue) = (part(index / 36), part(index / 6 % 6), part(index % 6));
                format!("#{red:02x}{green:02x}{blue:02x}")
            }
            Colour::Indexed(index) => {
                let grey = 8 + 10 * (index - 232);
                format!("#{grey:02x}{grey:02x}{grey:02x}")
            }
        }
    }
}

/// A picture of these lines.
pub(super) fn picture(lines: &[Vec<Cell>], columns: usize, theme: Theme) -> String {
    let (text, ground, _) = theme.colours();
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(1, |last| last + 1);
    let (width, height) = (at(columns, WIDTH) + 2.0 * MARGIN, at(used, HEIGHT) + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"14\" fill=\"{text}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"{ground}\"/>\n"
    );
    for (row, line) in lines.iter().take(used).enumerate() {
        let mut column = 0;
        for run in line.chunk_by(|one, next| one.look == next.look) {
            let columns: usize = run.iter().map(|cell| cell.columns).sum();
            piece(&mut svg, (row, column, columns), run, theme);
            column += columns;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// So many cells.
fn at(cells: usize, size: f64) -> f64 {
    f64::from(u32::try_from(cells).unwrap_or(u32::MAX)) * size
}

/// Adds cells that look the same.
fn piece(svg: &mut String, place: (usize, usize, usize), run: &[Cell], theme: Theme) {
    let (row, column, columns) = place;
    let Some(Cell { look, .. }) = run.first() else { return };
    let (text, ground, _) = theme.colours();
    let mut front = look.text.map_or_else(|| text.to_owned(), |colour| theme.colour(colour));
    let mut back = look.ground.map(|colour| theme.colour(colour));
    if look.reversed {
        let behind = back.unwrap_or_else(|| ground.to_owned());
        back = Some(std::mem::replace(&mut front, behind));
    }
    let (x, y) = (MARGIN + at(column, WIDTH), MARGIN + at(row, HEIGHT));
    let width = at(columns, WIDTH);
    // Writing to a string cannot fail.
    if let Some(back) = back {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
        );
    }
    let signs: String = run.iter().map(|cell| cell.sign).collect();
    if signs.trim().is_empty() {
        return;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" \
         fill=\"{front}\"{}>{}</text>",
        y + BASE,
        attributes(look),
        escaped(&signs)
    );
}

fn attributes(look: &Look) -> String {
    let mut text = String::new();
    for (is_set, attribute) in [
        (look.bold, " font-weight=\"bold\""),
        (look.dim, " opacity=\"0.6\""),
        (look.italic, " font-style=\"italic\""),
        (look.underlined, " text-decoration=\"underline\""),
    ] {
        if is_set {
            text.push_str(attribute);
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shot::ansi::cells;

    #[test]
    fn runs_stand_in_their_cells_and_nothing_is_markup() {
        let mut look = Look::default();
        let lines = ["a\u{1b}[1;36m<b>\u{1b}[0m", "\u{1b}[7m \u{1b}[0m&", ""];
        let lines = lines.map(|line| cells(line, &mut look));
        let svg = picture(&lines, 10, Theme::Dark);
        assert!(svg.contains("&lt;b&gt;</text>") && svg.contains("&amp;</text>"), "{svg}");
        assert!(svg.contains("font-weight=\"bold\"") && svg.contains("#58c4c4"), "{svg}");
        assert!(svg.contains("<rect x=\"12.0\" y=\"30.0\" width=\"8.4\""), "{svg}");
        assert!(svg.contains("height=\"60\""), "{svg}");
        assert_eq!(Theme::Light.colour(Colour::Indexed(231)), "#ffffff");
        assert_eq!(Theme::Light.colour(Colour::Indexed(255)), "#eeeeee");
    }
}
