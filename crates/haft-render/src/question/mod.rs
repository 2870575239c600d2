//! A question as a face shows it to a person: its words whole, and as much of the rest as there is
//! room for.
//!
//! **Invariant:** words, reasons and what becomes of each file are never cut. What is left out of
//! the rest is counted in the label of each yes, and then no permanent yes is offered. No text of
//! the call begins a line: it stands behind a bar or the line numbers of a diff.

mod blocks;
mod fields;

use haft_types::{Choice, Question};

use self::blocks::Block;
use crate::{
    Room, Terminal,
    clean::exact,
    form::Form,
    line::{GOES_ON, Page, Style},
    terminal::hanging,
    units::count,
};

/// How much of a question is shown besides its words. All files together share one such amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Most lines of the command, and most lines of all files together.
    pub lines: usize,
    /// Most characters of the command, and most characters of all files together.
    pub chars: usize,
}

impl Extent {
    /// For a screen, where one key shows the rest.
    pub const SCREEN: Self = Self { lines: 60, chars: 8_000 };
    /// For a message, which is all that is seen.
    pub const MESSAGE: Self = Self { lines: 400, chars: 50_000 };
    /// No limit.
    pub const ALL: Self = Self { lines: usize::MAX, chars: usize::MAX };
}

/// A question as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionView {
    /// What is asked, and what would happen; no line end at its end.
    pub text: String,
    /// The answers that are offered: no other may be taken.
    pub options: Vec<Choice>,
    /// How many lines are not shown, or not whole.
    pub left_out: u64,
}

impl Terminal {
    /// Renders a question for the person who decides by it. `session` is the id of the session
    /// whose log has all of it; empty for none.
    pub fn question(
        &self,
        question: &Question,
        extent: Extent,
        width: u16,
        session: &str,
    ) -> QuestionView {
        let room = Room { width, lines: None, partial: false };
        let mut page = Page::new(room).exact(true).breaking();
        for line in exact(&question.text).lines() {
            hanging(line, Style::Plain, GOES_ON, &mut page);
        }
        let mut left_out = 0;
        if let Some(command) = &question.command {
            left_out += Block::command(command).show(extent, &mut page);
        }
        let preview = question.preview.as_ref();
        let blocks = preview.map(|preview| Block::all(self, preview)).unwrap_or_default();
        left_out += self.blocks(&blocks, extent, &mut page);
        if let Some(form) = question.form.as_ref().and_then(Form::new) {
            left_out += fields::show(&form, extent, &mut page);
        }
        if left_out > 0 {
            let many = not_shown(left_out);
            let number = question.id.0.trim_start_matches('q');
            let (words, way) = match extent {
                Extent::ALL => (format!("{many}: more than is kept with a question"), None),
                _ if session.is_empty() => (many, None),
                _ => (
                    format!("{many}; all of it:"),
                    Some(format!("  haft session show {session} --question {number}")),
                ),
            };
            for line in [Some(words), way].into_iter().flatten() {
                hanging(&line, Style::Bold, GOES_ON, &mut page);
            }
        }
        let options = question.options.iter().filter_map(|one| label(question, one, left_out));
        QuestionView { text: page.text(self.palette()), options: options.collect(), left_out }
    }

    /// Shows the files, each with an equal share of the room; what one leaves goes to the others.
    fn blocks(&self, blocks: &[Block<'_>], extent: Extent, page: &mut Page) -> u64 {
        let lines = shares(blocks.iter().map(Block::lines).collect(), extent.lines);
        let chars = shares(blocks.iter().map(Block::chars).collect(), extent.chars);
        let mut left_out = 0;
        for ((block, lines), chars) in blocks.iter().zip(lines).zip(chars) {
            if blocks.len() > 1 {
                block.head(self, page);
            }
            left_out += block.show(Extent { lines, chars }, page);
        }
        left_out
    }
}

/// How many lines are not shown, in words.
fn not_shown(lines: u64) -> String {
    count(lines, "line", "lines") + " not shown"
}

/// An answer as it is offered; none where it would last, though something is left out.
fn label(question: &Question, choice: &Choice, left_out: u64) -> Option<Choice> {
    let yes = choice.id != question.if_nobody.option;
    if left_out == 0 || !yes {
        return Some(choice.clone());
    }
    let label = format!("{} ({})", choice.label, not_shown(left_out));
    (choice.id != "always").then(|| Choice { label, ..choice.clone() })
}

/// Deals a total to those who need something of it, to each the same where it is too little.
fn shares(needs: Vec<usize>, total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index]);
    let (mut shares, mut left) = (needs, total);
    for (dealt, index) in order.iter().enumerate() {
        let share = shares[*index].min(left / (order.len() - dealt));
        shares[*index] = share;
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_and_what_is_left_goes_on() {
        assert_eq!(shares(vec![100, 5, 100], 60), [27, 5, 28]);
        assert_eq!(shares(vec![1, 2, 3], 60), [1, 2, 3]);
        assert_eq!(shares(vec![9; 3], 2), [0, 1, 1]);
        assert_eq!(shares(vec![usize::MAX, 4], usize::MAX), [usize::MAX - 4, 4]);
        assert_eq!(shares(Vec::new(), 60), [0; 0]);
    }
}
