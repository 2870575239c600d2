//! Rows of the live region, built from styled pieces.
//!
//! **Invariant:** a row is never wider than its room, and no hidden character of its pieces is in it.

use haft_render::clean;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::Row;

/// How a piece of a row looks: an SGR parameter string (ECMA-48, 8.3.117), empty for plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look(pub &'static str);

impl Look {
    /// As it is.
    pub const PLAIN: Self = Self("");
    /// Less important.
    pub const DIM: Self = Self("2");
    /// A head.
    pub const BOLD: Self = Self("1");
    /// Something that can be chosen or pressed.
    pub const ACCENT: Self = Self("36");
    /// Something that a person should see.
    pub const WARNING: Self = Self("33");
    /// Something went wrong.
    pub const BAD: Self = Self("31");
    /// The cursor, or what is selected.
    pub const REVERSED: Self = Self("7");
}

/// What ends a look.
const RESET: &str = "\u{1b}[0m";

/// A row in the making.
#[derive(Clone, Debug)]
pub struct RowBuilder {
    row: Row,
    width: u16,
    color: bool,
    full: bool,
    /// How the last piece looks, where it is more than plain.
    last: Look,
}

impl RowBuilder {
    /// A row of at most so many columns, with or without colours.
    pub fn new(width: u16, color: bool) -> Self {
        Self { row: Row::default(), width: width.max(1), color, full: false, last: Look::PLAIN }
    }

    /// Adds text; what does not fit is cut with a mark.
    #[must_use]
    pub fn with(mut self, look: Look, text: &str) -> Self {
        self.push(look, text);
        self
    }

    /// Columns that are left.
    pub const fn left(&self) -> u16 {
        if self.full { 0 } else { self.width - self.row.columns }
    }

    /// See [`Self::with`].
    pub fn push(&mut self, look: Look, text: &str) {
        if self.full || text.is_empty() {
            return;
        }
        let clean = clean(text);
        let mut piece = String::new();
        for sign in clean.graphemes(true) {
            let sign = if matches!(sign, "\n" | "\r\n" | "\t") { " " } else { sign };
            let columns = u16::try_from(sign.width()).unwrap_or(u16::MAX);
            // The last column is kept for the mark of a cut, unless the text ends there.
            if columns > self.width - self.row.columns {
                self.cut(&mut piece);
                break;
            }
            piece.push_str(sign);
            self.row.columns += columns;
        }
        self.write(look, &piece);
    }

    /// Puts the mark of a cut in the last column.
    fn cut(&mut self, piece: &mut String) {
        self.full = true;
        while self.row.columns >= self.width {
            let Some(sign) = piece.graphemes(true).next_back() else { return };
            let (bytes, columns) = (sign.len(), sign.width());
            piece.truncate(piece.len() - bytes);
            self.row.columns -= u16::try_from(columns).unwrap_or_default().min(self.row.columns);
        }
        piece.push('\u{2026}');
        self.row.columns += 1;
    }

    fn write(&mut self, look: Look, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let look = if self.color || look == Look::REVERSED { look } else { Look::PLAIN };
        let goes_on = look == self.last;
        self.last = look;
        if look == Look::PLAIN {
            self.row.text.push_str(piece);
            return;
        }
        if goes_on {
            // Rows are written often: one that looks alike is one piece.
            let open = self.row.text.len() - RESET.len();
            self.row.text.truncate(open);
        } else {
            self.row.text.push_str("\u{1b}[");
            self.row.text.push_str(look.0);
            self.row.text.push('m');
        }
        self.row.text.push_str(piece);
        self.row.text.push_str(RESET);
    }

    /// The row.
    pub fn build(self) -> Row {
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(width: u16, pieces: &[&str]) -> (String, u16) {
        let row = RowBuilder::new(width, false);
        let row = pieces.iter().fold(row, |row, piece| row.with(Look::PLAIN, piece)).build();
        assert_eq!(usize::from(row.columns), row.text.width(), "{row:?}");
        (row.text, row.columns)
    }

    #[test]
    fn pieces_that_look_alike_are_one() {
        let row = RowBuilder::new(9, true).with(Look::DIM, "a").with(Look::DIM, "b");
        let row = row.with(Look::PLAIN, "c").with(Look::DIM, "d").with(Look::BAD, "e").build();
        let wanted = "\u{1b}[2mab\u{1b}[0mc\u{1b}[2md\u{1b}[0m\u{1b}[31me\u{1b}[0m";
        assert_eq!((&*row.text, row.columns), (wanted, 5));
    }

    #[test]
    fn what_does_not_fit_is_cut_with_a_mark() {
        assert_eq!(row(5, &["abcde"]), ("abcde".into(), 5));
        assert_eq!(row(5, &["abcdef"]), ("abcd\u{2026}".into(), 5));
        assert_eq!(row(5, &["abcd", "efgh"]).0, "abcde"[..4].to_owned() + "\u{2026}");
        assert_eq!(row(4, &["\u{65e5}\u{672c}\u{8a9e}"]), ("\u{65e5}\u{2026}".into(), 3));
        assert_eq!(row(9, &["a\tb\nc\u{1b}[2J"]).0, "a b c\u{241b}[2J");
    }
}
