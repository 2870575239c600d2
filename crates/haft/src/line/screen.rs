//! Where the cursor of line mode stands: behind haft's words, or in the line that is typed.
//!
//! **Invariant:** what haft says never runs into the line that is typed; that line is taken away
//! and shown again. Over a pipe, and for the words themselves, nothing is ever changed.

use super::draft::Draft;
use crate::exit::{Ending, print};

/// What a typed line stands behind.
const PROMPT: &str = "> ";

/// The row that the cursor is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Behind haft's words; true at the start of a row.
    Words(bool),
    /// In a prompt, behind so many characters, which may be taken away.
    Typed(usize),
}

/// See the module.
pub struct Screen {
    terminal: bool,
    dumb: bool,
    width: usize,
    row: Row,
}

impl Screen {
    /// For standard output, where a person or a pipe types.
    pub fn new(terminal: bool, dumb: bool, width: u16) -> Self {
        Self { terminal, dumb, width: usize::from(width), row: Row::Words(true) }
    }

    /// True while an empty prompt waits.
    pub fn is_prompt(&self) -> bool {
        self.row == Row::Typed(0)
    }

    /// Shows haft's words.
    pub fn show(&mut self, text: &str) -> Ending {
        if text.is_empty() {
            return Ok(());
        }
        let way = self.way();
        self.row = Row::Words(text.ends_with('\n'));
        print(&format!("{way}{text}"))
    }

    /// What is shown last asks for a key: what comes next begins with a new row.
    pub const fn stands_alone(&mut self) {
        if self.terminal {
            self.row = Row::Typed(usize::MAX >> 1);
        }
    }

    /// Shows what was answered, behind what asked for it.
    pub fn answer(&mut self, text: &str) -> Ending {
        self.row = Row::Words(true);
        print(text)
    }

    /// Shows that a line can be typed.
    pub fn prompt(&mut self) -> Ending {
        let way = self.way();
        self.row = Row::Typed(0);
        print(&format!("{way}\n{PROMPT}"))
    }

    /// Shows the line that is typed.
    pub fn line(&mut self, text: &str) -> Ending {
        let way = match self.way() {
            way if way.is_empty() && self.row == Row::Words(false) => "\n",
            way => way,
        };
        self.row = Row::Typed(length(text));
        print(&format!("{way}{PROMPT}{text}"))
    }

    /// Shows what was typed behind the line.
    pub fn echo(&mut self, behind: &str, draft: &Draft) -> Ending {
        if behind.is_empty() {
            return Ok(());
        }
        match &mut self.row {
            Row::Typed(count) => {
                *count = count.saturating_add(length(behind));
                print(behind)
            }
            Row::Words(_) => self.line(&draft.shown()),
        }
    }

    /// Ends the line that is typed; it stays where it is.
    pub fn end_line(&mut self) -> Ending {
        if !self.terminal || self.row == Row::Words(true) {
            return Ok(());
        }
        self.row = Row::Words(true);
        print("\n")
    }

    /// Shows that what ran or was typed is interrupted.
    pub fn interrupted(&mut self) -> Ending {
        self.row = Row::Words(true);
        print(if self.terminal { "^C\n" } else { "\n" })
    }

    /// What takes the typed line away, or ends it where it cannot be taken away.
    const fn way(&self) -> &'static str {
        match self.row {
            Row::Typed(count) if !self.dumb && count.saturating_add(3) < self.width => "\r\u{1b}[K",
            Row::Typed(_) => "\n",
            Row::Words(_) => "",
        }
    }
}

/// Columns that a text takes at most; too many where it has several lines.
fn length(text: &str) -> usize {
    if text.contains('\n') { usize::MAX >> 1 } else { text.chars().count().saturating_mul(2) }
}
