//! The whole session on the alternate screen, with no fold.
//!
//! **Invariant:** what it holds is bounded; of a longer session the end is shown. While it is open
//! nothing is written to the main screen.

use std::{collections::VecDeque, fmt::Write as _, sync::Arc};

use haft_tui::{
    pager::Pager,
    screen::{Row, Size},
};
use haft_types::Body;

use crate::{
    app::session::Core,
    faces::view::{Style, View, fold_number},
};

/// Most bytes of the lines that are held.
const MOST: usize = 32 << 20;

/// The page, and what of it is drawn.
pub struct Page {
    pager: Pager,
    drawn: Vec<Row>,
    size: Size,
}

impl Page {
    /// Shows this; nothing of it is drawn.
    pub const fn new(pager: Pager) -> Self {
        Self { pager, drawn: Vec::new(), size: Size { columns: 0, rows: 0 } }
    }

    /// The pager, for keys.
    pub const fn pager(&mut self) -> &mut Pager {
        &mut self.pager
    }

    /// The bytes that draw it; empty where nothing changed.
    pub fn frame(&mut self, size: Size, color: bool) -> String {
        let mut rows = self.pager.rows(size.columns, size.rows, color);
        rows.truncate(usize::from(size.rows).max(1));
        let is_new = size != self.size;
        if !is_new && rows == self.drawn {
            return String::new();
        }
        let mut out = String::from("\u{1b}[?2026h\u{1b}[?7l");
        for (index, row) in rows.iter().enumerate() {
            if is_new || self.drawn.get(index) != Some(row) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\u{1b}[{};1H\u{1b}[2K{}", index + 1, row.text);
            }
        }
        out.push_str("\u{1b}[?7h\u{1b}[?2026l");
        (self.drawn, self.size) = (rows, size);
        out
    }
}

/// Calls that may begin between the start and the end of one.
const CALLS: usize = 256;

/// Lines, of which the oldest go where there are too many.
#[derive(Default)]
struct Lines {
    whole: VecDeque<String>,
    bytes: usize,
    /// Lines that are gone.
    gone: usize,
    /// A line whose end has not come.
    open: String,
}

impl Lines {
    fn push(&mut self, text: &str) {
        self.open.push_str(text);
        let Some(end) = self.open.rfind('\n') else { return };
        let rest = self.open.split_off(end + 1);
        let whole = std::mem::replace(&mut self.open, rest);
        for line in whole.lines() {
            self.bytes += line.len() + 1;
            self.whole.push_back(line.to_owned());
        }
        while self.bytes > MOST {
            let Some(line) = self.whole.pop_front() else { break };
            self.bytes -= line.len() + 1;
            self.gone += 1;
        }
    }

    fn count(&self) -> usize {
        self.gone + self.whole.len()
    }
}

/// Reads a session's log as lines for so many columns; begins at a fold, or at the end.
///
/// # Errors
/// The log cannot be read, in words for people.
pub fn read(core: &Core, style: Style, fold: Option<u64>) -> Result<Pager, String> {
    let store = core.base.store().map_err(|error| error.to_string())?;
    let id = store.find(core.session_id()).map_err(|error| error.to_string())?;
    let mut view = View::new(style).with(core.specs()).unfolded();
    let (mut lines, mut folds) = (Lines::default(), Vec::new());
    for event in store.branch(&id, Some(core.bus.leaf())).map_err(|error| error.to_string())? {
        let event = match event {
            Ok(event) => Arc::new(event),
            Err(error) => {
                lines.push(&format!("! {}\n", crate::plain::safe(&error.to_string())));
                continue;
            }
        };
        let before = lines.count();
        let text = view.event(&event).unwrap_or_default();
        lines.push(&text);
        // A call stands where its first line does: that of its start, or else that of its end.
        if let Body::CallStarted { call, .. } | Body::CallEnded { call, .. } = &event.body
            && let Ok(number) = fold_number(call).parse::<u64>()
            && !text.is_empty()
            && !folds.iter().rev().take(CALLS).any(|(other, _)| *other == number)
        {
            folds.push((number, before));
        }
    }
    lines.push(&(view.finish().unwrap_or_default() + "\n"));
    let gone = lines.gone;
    let there = |(number, line): (u64, usize)| line.checked_sub(gone).map(|line| (number, line));
    let mut folds: Vec<_> = folds.into_iter().filter_map(there).collect();
    // An empty line stands before a call.
    for (_, line) in &mut folds {
        *line += 1;
    }
    Ok(Pager::new(lines.whole.into(), folds, fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_drawn() {
        let lines = (0..50).map(|n| format!("line {n}")).collect();
        let mut page = Page::new(Pager::new(lines, Vec::new(), None));
        let size = Size { columns: 40, rows: 5 };
        let first = page.frame(size, false);
        assert!(first.contains("line 49") && first.matches("\u{1b}[2K").count() == 5, "{first:?}");
        assert_eq!(page.frame(size, false), "");
        assert!(page.frame(Size { columns: 41, rows: 6 }, false).contains("line 49"));
    }

    #[test]
    fn of_too_many_lines_the_newest_stay() {
        let mut lines = Lines::default();
        let line = "x".repeat(1 << 20) + "\n";
        (0..40).for_each(|_| lines.push(&line));
        lines.push("the end");
        assert_eq!((lines.count(), lines.gone), (40, 9));
        lines.push("\n");
        assert_eq!(lines.whole.back().map(String::as_str), Some("the end"));
        assert!(lines.bytes <= MOST);
    }
}
