//! Lines on the alternate screen: moving, searching, and going to a fold by its number.
//!
//! **Invariant:** it holds the lines as they came and lays out only what is on the screen. The state
//! is valid at any size, also of one row or column.
//!
//! **Does not know:** where the lines come from.

pub(crate) mod wrap;

use crate::{
    app::{Look, RowBuilder},
    input::{Key, KeyCode, Modifiers},
    screen::Row,
};

use self::wrap::{plain, wrapped};

/// A page of lines.
#[derive(Clone, Debug, Default)]
pub struct Pager {
    /// Lines with SGR sequences, and nothing else that acts on a terminal.
    lines: Vec<String>,
    /// Numbers of folds, with the line at which each begins; ascending.
    folds: Vec<(u64, usize)>,
    /// The line at the top of the screen.
    top: usize,
    /// What is typed at the bottom: a search, or the number of a fold.
    typed: Typed,
    /// What was searched for last.
    query: String,
    hint: String,
    /// Rows of lines that the last drawing had room for.
    height: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Typed {
    #[default]
    Nothing,
    Query(String),
    Number(String),
}

/// What a key does beyond the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressed {
    /// It is to be drawn anew.
    Draw,
    /// It is to be closed.
    Close,
}

impl Pager {
    /// A page of these lines that begins at a fold, where there is such a one, else at the end.
    pub fn new(lines: Vec<String>, folds: Vec<(u64, usize)>, fold: Option<u64>) -> Self {
        let top = lines.len();
        let mut pager = Self { lines, folds, top, height: 1, ..Self::default() };
        if let Some(number) = fold {
            pager.go_to(number);
        }
        pager
    }

    fn go_to(&mut self, number: u64) {
        match self.folds.iter().find(|(fold, _)| *fold == number) {
            Some((_, line)) => self.top = *line,
            None => self.hint = format!("there is no fold {number}"),
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Pressed {
        self.hint.clear();
        let page = self.height.saturating_sub(1).max(1);
        if let Some(pressed) = self.typing(key) {
            return pressed;
        }
        let ctrl = key.modifiers.contains(Modifiers::CTRL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Escape => return Pressed::Close,
            KeyCode::Char('c' | 'o') if ctrl => return Pressed::Close,
            KeyCode::Char('/') => self.typed = Typed::Query(String::new()),
            KeyCode::Char(c) if c.is_ascii_digit() => self.typed = Typed::Number(c.into()),
            KeyCode::Char('n') => self.search(true),
            KeyCode::Char('N') => self.search(false),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp | KeyCode::Char('b') => self.move_by(-page.cast_signed()),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.move_by(page.cast_signed()),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = self.lines.len(),
            _ => {}
        }
        Pressed::Draw
    }

    /// What a key does while something is typed at the bottom.
    fn typing(&mut self, key: Key) -> Option<Pressed> {
        let (Typed::Query(text) | Typed::Number(text)) = &mut self.typed else { return None };
        match key.code {
            KeyCode::Escape => self.typed = Typed::Nothing,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) if !key.modifiers.contains(Modifiers::CTRL) => text.push(c),
            KeyCode::Enter => match std::mem::take(&mut self.typed) {
                Typed::Query(query) => {
                    self.query = query;
                    self.search(true);
                }
                Typed::Number(number) => match number.trim().parse() {
                    Ok(number) => self.go_to(number),
                    Err(_) => self.hint = format!("{number} is no number of a fold"),
                },
                Typed::Nothing => {}
            },
            _ => {}
        }
        Some(Pressed::Draw)
    }

    fn move_by(&mut self, lines: isize) {
        self.top = self.top.saturating_add_signed(lines).min(self.lines.len());
    }

    /// Goes to the next line, or the one before, that holds what was searched for. A query without
    /// capitals finds any.
    fn search(&mut self, forward: bool) {
        if self.query.is_empty() {
            return;
        }
        let exact = self.query.chars().any(char::is_uppercase);
        let query = if exact { self.query.clone() } else { self.query.to_lowercase() };
        let holds = |line: &&String| {
            let text = plain(line);
            if exact { text.contains(&query) } else { text.to_lowercase().contains(&query) }
        };
        let top = self.top.min(self.lines.len());
        let (before, behind) = self.lines.split_at(top);
        let at = if forward {
            behind.iter().skip(1).position(|line| holds(&line)).map(|at| top + 1 + at)
        } else {
            before.iter().rposition(|line| holds(&line))
        };
        // From the other end, as pagers do.
        let around = || {
            if forward {
                self.lines.iter().position(|line| holds(&line))
            } else {
                self.lines.iter().rposition(|line| holds(&line))
            }
        };
        match at.or_else(around) {
            Some(at) => self.top = at,
            None => self.hint = format!("{} stands nowhere", self.query),
        }
    }

    /// The rows of the screen: as many as it has, the last one with what can be done.
    pub fn rows(&mut self, width: u16, height: u16, color: bool) -> Vec<Row> {
        let height = usize::from(height).max(1);
        self.height = height - 1;
        let mut rows = self.rows_behind(self.top, width, color);
        // The end of the lines stands at the bottom of the screen.
        while rows.len() < self.height && self.top > 0 {
            self.top -= 1;
            let above = self.rows_of(self.top, width, color);
            rows.splice(0..0, above);
        }
        rows.truncate(self.height);
        rows.resize(self.height, Row::default());
        rows.push(self.bottom(width, color));
        rows
    }

    fn rows_behind(&self, line: usize, width: u16, color: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for at in line..self.lines.len() {
            if rows.len() >= self.height {
                break;
            }
            rows.extend(self.rows_of(at, width, color));
        }
        rows
    }

    fn rows_of(&self, line: usize, width: u16, color: bool) -> Vec<Row> {
        let Some(text) = self.lines.get(line) else { return Vec::new() };
        if color {
            wrapped(text, width, self.height)
        } else {
            wrapped(&plain(text), width, self.height)
        }
    }

    fn bottom(&self, width: u16, color: bool) -> Row {
        let row = RowBuilder::new(width, color);
        match &self.typed {
            Typed::Query(text) => {
                return row.with(Look::ACCENT, "/").with(Look::PLAIN, text).build();
            }
            Typed::Number(text) => {
                return row.with(Look::ACCENT, "fold ").with(Look::PLAIN, text).build();
            }
            Typed::Nothing => {}
        }
        if !self.hint.is_empty() {
            return row.with(Look::WARNING, &self.hint).build();
        }
        let seen = (self.top + self.height).min(self.lines.len());
        let place = format!("{seen} of {} lines", self.lines.len());
        let keys = " \u{b7} / search, n next, a number: that fold, q back";
        row.with(Look::DIM, &place).with(Look::DIM, keys).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(pager: &mut Pager, keys: &str) {
        for c in keys.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            pager.key(Key::new(code));
        }
    }

    fn shown(pager: &mut Pager) -> Vec<String> {
        pager.rows(40, 5, false).into_iter().map(|row| row.text).collect()
    }

    fn pager() -> Pager {
        let lines = (1..=100).map(|n| format!("line \u{1b}[1m{n}\u{1b}[0m")).collect();
        Pager::new(lines, vec![(7, 49), (8, 90)], None)
    }

    #[test]
    fn it_begins_at_the_end_or_at_a_fold() {
        let mut at_end = pager();
        assert_eq!(shown(&mut at_end)[..4], ["line 97", "line 98", "line 99", "line 100"]);
        let mut at_fold = Pager::new(at_end.lines.clone(), vec![(7, 49)], Some(7));
        assert_eq!(shown(&mut at_fold)[0], "line 50");
    }

    #[test]
    fn folds_and_words_are_found() {
        let mut pager = pager();
        press(&mut pager, "7\n");
        assert_eq!(shown(&mut pager)[0], "line 50");
        press(&mut pager, "/line 9\n");
        assert_eq!(shown(&mut pager)[0], "line 90");
        press(&mut pager, "n");
        assert_eq!(shown(&mut pager)[0], "line 91");
        press(&mut pager, "NN");
        assert_eq!(shown(&mut pager)[0], "line 9");
        press(&mut pager, "9\n");
        assert!(shown(&mut pager)[4].contains("no fold 9"));
        press(&mut pager, "/nowhere\n");
        assert!(shown(&mut pager)[4].contains("nowhere stands nowhere"));
        press(&mut pager, "g");
        assert_eq!(shown(&mut pager)[0], "line 1");
    }

    #[test]
    fn any_size_is_drawn() {
        let mut pager = pager();
        for (width, height) in [(1, 1), (2, 1), (1, 9), (400, 200), (0, 0)] {
            let rows = pager.rows(width, height, true);
            assert_eq!(rows.len(), usize::from(height).max(1));
        }
        assert_eq!(Pager::default().rows(10, 3, true).len(), 3);
    }
}
