//! Tracks where the cursor of line mode stands: after haft's output, or in the line being typed.
//!
//! **Invariant:** haft's output never runs into the line being typed: that line is erased and shown
//! again. Over a pipe nothing is ever changed, and the words of the output never are.

use super::draft::Draft;
use crate::{
    cli::exit::{Ending, print, print_behind},
    faces::view::Style,
};

/// What a typed line stands behind.
const PROMPT: &str = "> ";

/// The row that the cursor is in.
#[derive(Clone, PartialEq, Eq)]
enum Row {
    /// Behind haft's words; true at the start of a row.
    Words(bool),
    /// Behind what asks for a key, which stays where it is.
    Alone,
    /// Behind a prompt and this text, which may be taken away, at so many columns.
    Typed(String, usize),
    /// Behind a sign of life in one row of so many columns, which goes away.
    Status(usize),
}

/// See the module.
pub struct Screen {
    terminal: bool,
    dumb: bool,
    /// Columns where the terminal does not tell them.
    width: u16,
    color: bool,
    row: Row,
}

impl Screen {
    /// A screen for standard output, with a person or a pipe as its input.
    pub const fn new(terminal: bool, dumb: bool, style: &Style) -> Self {
        let (width, color) = (style.width, style.color);
        Self { terminal, dumb, width, color, row: Row::Words(true) }
    }

    /// True while an empty prompt waits.
    pub fn is_prompt(&self) -> bool {
        matches!(&self.row, Row::Typed(text, _) if text.is_empty())
    }

    /// The current width in columns; 0 means no limit.
    pub fn width(&self) -> u16 {
        self.size().0
    }

    /// Columns and rows as they are now.
    fn size(&self) -> (u16, u16) {
        let told = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let told = told.filter(|_| self.width > 0).filter(|size| size.ws_col > 0);
        told.map_or((self.width, 0), |size| (size.ws_col, size.ws_row))
    }

    fn typed(&self, text: String) -> Row {
        Row::Typed(text, usize::from(self.width()))
    }

    /// Shows haft's output.
    pub fn show(&mut self, text: &str) -> Ending {
        if text.is_empty() {
            return Ok(());
        }
        let way = self.way();
        self.row = Row::Words(text.ends_with('\n'));
        print_behind(&way, text)
    }

    /// Marks that the last output asks for a key: the next output begins with a new row.
    pub fn stands_alone(&mut self) {
        self.row = Row::Alone;
    }

    /// Shows an answer, behind the prompt that asked for it.
    pub fn answer(&mut self, text: &str) -> Ending {
        self.row = Row::Words(true);
        print(text)
    }

    /// Shows the prompt for a line, behind what holds for the session.
    pub fn prompt(&mut self, holds: &str) -> Ending {
        let way = self.way();
        self.row = self.typed(String::new());
        print_behind(&way, &format!("\n{holds}{PROMPT}"))
    }

    /// Shows the line being typed.
    pub fn line(&mut self, text: &str) -> Ending {
        let way = match self.way() {
            way if way.is_empty() && self.row == Row::Words(false) => "\n".to_owned(),
            way => way,
        };
        self.row = self.typed(text.to_owned());
        print_behind(&way, &format!("{PROMPT}{text}"))
    }

    /// Shows what was typed, behind the line.
    pub fn echo(&mut self, behind: &str, draft: &Draft) -> Ending {
        if behind.is_empty() {
            return Ok(());
        }
        let shown = draft.shown();
        match &self.row {
            // A terminal goes no row up for a character that is taken away.
            Row::Typed(text, width) if !behind.contains('\u{8}') || fits(text, *width) => {
                self.row = Row::Typed(shown, *width);
                // Cleaned key by key, and behind it what takes a character away.
                print_behind(behind, "")
            }
            _ => self.line(&shown),
        }
    }

    /// Columns for the status line. None if it cannot be shown, or if something else stands in the
    /// row.
    pub fn status_room(&self) -> Option<usize> {
        // A line that is empty again gives its row away.
        let free = self.is_prompt() || matches!(self.row, Row::Words(true) | Row::Status(_));
        let width = usize::from(self.width());
        (self.terminal && !self.dumb && free && width > 20).then(|| width - 1)
    }

    /// Shows a status line in place of the last one. It must fit: a row that wrapped could not be
    /// erased.
    pub fn status(&mut self, text: &str) -> Ending {
        let way = self.way();
        self.row = Row::Status(usize::from(self.width()));
        let (dim, plain) = if self.color { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
        print_behind(&way, &format!("{dim}{text}{plain}"))
    }

    /// Ends the line being typed; it stays where it is.
    pub fn end_line(&mut self) -> Ending {
        if !self.terminal || self.row == Row::Words(true) {
            return Ok(());
        }
        if let Row::Status(_) = self.row {
            let way = self.way();
            self.row = Row::Words(true);
            return print_behind(&way, "");
        }
        self.row = Row::Words(true);
        print("\n")
    }

    /// Shows that what ran or was typed is interrupted.
    pub fn interrupted(&mut self) -> Ending {
        if let Row::Status(_) = self.row {
            self.end_line()?;
        }
        self.row = Row::Words(true);
        print(if self.terminal { "^C\n" } else { "\n" })
    }

    /// What takes the typed line away, or ends it where it cannot be taken away.
    fn way(&self) -> String {
        let (text, then) = match &self.row {
            Row::Words(_) => return String::new(),
            Row::Status(then) if *then <= usize::from(self.width()) => {
                return "\r\u{1b}[K".to_owned();
            }
            // A terminal that is narrower now has broken it.
            Row::Status(_) => return "\r\u{1b}[J".to_owned(),
            Row::Typed(text, then) if !self.dumb => (text, *then),
            Row::Typed(..) | Row::Alone => return "\n".to_owned(),
        };
        let (now, high) = self.size();
        let now = usize::from(now);
        if fits(text, then.min(now)) {
            return "\r\u{1b}[K".to_owned();
        }
        // How a terminal of another width has put the rows is not known.
        match rows_above(text, now).filter(|&rows| now == then && rows < usize::from(high).max(1)) {
            Some(0) => "\r\u{1b}[K".to_owned(),
            Some(rows) => format!("\r\u{1b}[{rows}A\u{1b}[J"),
            None => "\n".to_owned(),
        }
    }
}

/// Reports whether a line surely lies in one row, whatever its characters are.
fn fits(text: &str, width: usize) -> bool {
    !text.contains('\n') && text.chars().count().saturating_mul(2).saturating_add(3) < width
}

/// How many rows the line has above its last one; none where that depends on the terminal.
fn rows_above(text: &str, width: usize) -> Option<usize> {
    if width == 0 || !text.chars().all(|c| matches!(c, ' '..='~' | '\n')) {
        return None;
    }
    let rows = |line: &str, before: usize| (line.len() + before).max(1).div_ceil(width);
    let lines = text.split('\n').enumerate();
    let all: usize = lines.map(|(n, line)| rows(line, if n == 0 { PROMPT.len() } else { 0 })).sum();
    Some(all - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_line_are_known_where_they_can_be() {
        for (text, width, rows) in [
            ("", 10, Some(0)),
            ("12345678", 10, Some(0)),
            ("123456789", 10, Some(1)),
            ("a\n  b", 10, Some(1)),
            ("a\n", 10, Some(1)),
            ("\n  34567890\n  345678901", 10, Some(3)),
            ("\u{e4}", 10, None),
            ("a\tb", 10, None),
            ("a", 0, None),
        ] {
            assert_eq!(rows_above(text, width), rows, "{text:?}");
        }
        assert!(fits("abc", 10) && !fits("abcd", 10) && !fits("", 0) && !fits("a\n", 99));
    }
}
