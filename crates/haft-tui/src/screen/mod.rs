//! Inline mode: finished lines go into the terminal's scrollback, a live region below them is drawn
//! anew. It makes bytes and writes none.
//!
//! **Invariant:** a finished line is written once and never touched again. No row of the live region
//! enters the scrollback, and nothing above it is erased, whatever sizes the terminal takes, as long
//! as the region stays within [`Screen::budget`].
//!
//! Between frames the cursor stands at the top left of the live region, hidden. Everything that is
//! written is relative to it, so a frame does not depend on where the region is:
//!
//! - A terminal that becomes lower cuts rows below its cursor before it scrolls rows into history.
//! - A terminal that becomes narrower wraps rows anew, and its cursor stays at its cell. Terminals
//!   built on xterm.js move the cursor by the rows that were added below it, see [`Reflow`].
//! - Rows of the region are drawn with autowrap off. So a frame that meets a terminal which has just
//!   become narrower takes as many rows as it meant to.
//!
//! It never scrolls a region, nor scrolls by `SU`, nor clears the screen by `ED 2` or `ED 3`:
//! terminals built on xterm.js lose lines by these. Sequences are those of ECMA-48 and of xterm.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

/// How many columns and rows a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns, from 1.
    pub columns: u16,
    /// Rows, from 1.
    pub rows: u16,
}

/// What a terminal does with its cursor when it wraps rows anew for another width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflow {
    /// It keeps the cursor at its cell.
    #[default]
    KeepsCell,
    /// It moves the cursor by the rows that are added below it, but leaves the rows alone that are
    /// one wrapped line with the cursor's row, as xterm.js 6.0 does. There the region is one such
    /// line.
    KeepsLine,
}

/// A row of the live region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its text with SGR sequences, which ends without any attribute, and without control characters
    /// of others.
    pub text: String,
    /// Columns that it takes.
    pub columns: u16,
}

/// See the module.
#[derive(Debug)]
pub struct Screen {
    size: Size,
    reflow: Reflow,
    /// The rows that stand there.
    drawn: Vec<Row>,
    /// Whether they stand there as they were drawn.
    is_intact: bool,
}

/// The narrowest terminal that is reckoned with.
const NARROWEST: u16 = 30;
/// The lowest terminal that is reckoned with.
const LOWEST: usize = 8;
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const NO_WRAP: &str = "\u{1b}[?7l";
/// DECSC and DECRC.
const SAVE: &str = "\u{1b}7";
const RESTORE: &str = "\u{1b}8";
const WRAP: &str = "\u{1b}[?7h";
/// To the next row, which becomes a part of the same line: by a blank in the last column, wherever
/// that is, and one behind it.
const NEXT_OF_LINE: &str = "\u{1b}[?7h\u{1b}[999C  \r\u{1b}[?7l";

impl Screen {
    /// A region without rows at the cursor, which stands in the first column.
    pub const fn new(size: Size, reflow: Reflow) -> Self {
        Self { size, reflow, drawn: Vec::new(), is_intact: true }
    }

    /// The present size.
    pub const fn size(&self) -> Size {
        self.size
    }

    /// Takes another size; the next frame draws every row of the region.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.is_intact = false;
    }

    /// Takes what is known now of the terminal.
    pub fn set_reflow(&mut self, reflow: Reflow) {
        self.is_intact &= self.reflow == reflow;
        self.reflow = reflow;
    }

    /// The most columns of a row of the region: the last one stays blank.
    pub const fn columns(&self) -> u16 {
        let columns = self.size.columns.saturating_sub(1);
        if columns == 0 { 1 } else { columns }
    }

    /// How many of these rows can stand in the region: at most half of the terminal's, and no more
    /// than it has when it becomes narrow.
    pub fn budget(&self, rows: &[Row]) -> usize {
        let most = usize::from(self.size.rows / 2).max(1);
        let mut left = usize::from(self.size.rows);
        let fitting = rows.iter().take_while(|row| {
            let wrapped = match self.reflow {
                Reflow::KeepsCell => usize::from(row.columns.div_ceil(NARROWEST)).max(1),
                Reflow::KeepsLine => 1,
            };
            let fits = wrapped <= left;
            left = left.saturating_sub(wrapped);
            fits
        });
        fitting.count().clamp(1, most)
    }

    /// Adds the bytes of a frame: finished lines, each with its line end, that stand above the region
    /// from now on, and the rows of the region. Nothing where nothing changed.
    ///
    /// Rows beyond the [`Self::budget`] are left out.
    pub fn frame(&mut self, finished: &str, rows: &[Row], out: &mut String) {
        let rows = &rows[..self.budget(rows).min(rows.len())];
        if finished.is_empty() && self.is_intact && rows.len() == self.drawn.len() {
            self.redraw(rows, out);
            return;
        }
        out.push_str(BEGIN);
        out.push_str("\r\u{1b}[J");
        for line in finished.lines() {
            out.push_str(line);
            out.push_str("\r\n");
        }
        self.draw(rows, out);
        out.push_str(END);
        self.drawn = rows.to_vec();
        self.is_intact = true;
    }

    /// Adds the bytes that take the region away. The cursor stands where its first row was.
    pub fn erase(&mut self, out: &mut String) {
        out.push_str("\r\u{1b}[J");
        self.drawn.clear();
        self.is_intact = true;
    }

    fn draw(&self, rows: &[Row], out: &mut String) {
        out.push_str(NO_WRAP);
        for (index, row) in rows.iter().enumerate() {
            match self.reflow {
                _ if index == 0 => {}
                Reflow::KeepsCell => out.push_str("\r\n"),
                Reflow::KeepsLine => out.push_str(NEXT_OF_LINE),
            }
            out.push_str(&row.text);
        }
        out.push_str(WRAP);
        up(rows.len().saturating_sub(1), out);
        out.push('\r');
    }

    /// Draws the rows that differ, where all others stay.
    fn redraw(&mut self, rows: &[Row], out: &mut String) {
        if rows == self.drawn {
            return;
        }
        out.push_str(BEGIN);
        match self.reflow {
            Reflow::KeepsCell => self.redraw_cells(rows, out),
            Reflow::KeepsLine => self.redraw_line(rows, out),
        }
        out.push_str(WRAP);
        out.push_str(END);
        self.drawn = rows.to_vec();
    }

    fn redraw_cells(&self, rows: &[Row], out: &mut String) {
        let differ = |(row, drawn): (&Row, &Row)| row != drawn;
        let last = rows.iter().zip(&self.drawn).rposition(differ).unwrap_or(0);
        // A saved position is an absolute one: it is wrong where the terminal takes another size
        // before it is restored. A relative way back is wrong where the terminal has just become
        // lower than the way down is long. So each is used where the other's fault is likelier.
        let is_saved = last >= LOWEST;
        if is_saved {
            out.push_str(SAVE);
        }
        out.push_str(NO_WRAP);
        let mut at = 0;
        for (index, (row, drawn)) in rows.iter().zip(&self.drawn).enumerate() {
            if row == drawn {
                continue;
            }
            if index > at && is_saved {
                // Writing to a string cannot fail.
                let _ = write!(out, "\u{1b}[{}B", index - at);
            } else {
                // Behind the last row of a terminal, rows go up instead, as in a whole frame.
                out.extend(std::iter::repeat_n('\n', index - at));
            }
            at = index;
            row.over(drawn, out);
            out.push('\r');
        }
        if is_saved {
            out.push_str(RESTORE);
        } else {
            up(last, out);
        }
    }

    /// Draws every row down to the last one that differs. The terminal may have cut rows below the
    /// cursor: what is drawn there has to become a part of the same line again.
    fn redraw_line(&self, rows: &[Row], out: &mut String) {
        let differ = |(row, drawn): (&Row, &Row)| row != drawn;
        let last = rows.iter().zip(&self.drawn).rposition(differ).unwrap_or(0);
        out.push_str(NO_WRAP);
        for (index, (row, drawn)) in rows.iter().zip(&self.drawn).take(last + 1).enumerate() {
            if index > 0 {
                out.push_str(NEXT_OF_LINE);
            }
            row.over(drawn, out);
        }
        up(last, out);
        out.push('\r');
    }
}

impl Row {
    /// Adds the row, and blanks for what it leaves of the row that stood there. They leave alone what
    /// makes rows one line.
    fn over(&self, drawn: &Self, out: &mut String) {
        out.push_str(&self.text);
        let blanks = usize::from(drawn.columns.saturating_sub(self.columns));
        out.extend(std::iter::repeat_n(' ', blanks));
    }
}

fn up(rows: usize, out: &mut String) {
    if rows == 0 {
        return;
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "\u{1b}[{rows}A");
}
