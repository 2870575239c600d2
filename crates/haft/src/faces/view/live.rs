//! Shows the output of a running program, line by line as it arrives.
//!
//! **Invariant:** memory is bounded: some lines are shown, and of the rest only its existence is
//! known. Lines that were shown stay on the screen and are not printed again.

use haft_types::{Detail, Shape};

/// Lines of one call that are shown while it runs.
const LINES: usize = 100;
/// Bytes of one call that are shown while it runs, and of a line that is waited for.
const BYTES: usize = 16 << 10;

/// What was shown of one call's output.
#[derive(Default)]
pub(super) struct Live {
    /// Whole lines that were shown, as they came.
    shown: String,
    /// The start of a line whose end has not come.
    line: String,
    /// True once something came that is not shown.
    more: bool,
}

/// What is still to be said when the call has ended.
pub(super) enum Rest {
    /// Everything: nothing was shown.
    All,
    /// What comes behind what was shown.
    Behind(Detail),
    /// The end of it all: there was too much, or some of it was not seen.
    End(Detail),
}

impl Live {
    /// Takes the next piece; gives the lines that can be shown now.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        if self.more {
            return None;
        }
        let room = BYTES.saturating_sub(self.line.len() + self.shown.len());
        let end = text.floor_char_boundary(room);
        self.line.push_str(&text[..end]);
        let lines = self.shown.lines().count();
        let ends = self.line.match_indices('\n').take(LINES - lines);
        let whole = ends.last().map_or(0, |(at, _)| at + 1);
        let rest = self.line.split_off(whole);
        let now = std::mem::replace(&mut self.line, rest);
        self.shown.push_str(&now);
        self.more = end < text.len() || self.line.contains('\n');
        (!now.is_empty()).then_some(now)
    }

    /// True once more came than is shown.
    pub(super) const fn is_full(&self) -> bool {
        self.more
    }

    /// What of the whole is not on the screen yet.
    pub(super) fn rest(self, whole: &Detail) -> Rest {
        let Shape::Terminal { output, exit, note, .. } = &whole.shape else { return Rest::All };
        if self.shown.is_empty() {
            return Rest::All;
        }
        let behind = output.strip_prefix(self.shown.as_str());
        let mut cut = whole.cut.clone();
        let left = behind.unwrap_or_else(|| {
            // Of what was left out of the middle some was seen, then.
            let same = output.split_inclusive('\n').zip(self.shown.split_inclusive('\n'));
            let same: Vec<_> = same.take_while(|(one, other)| one == other).collect();
            let seen = (self.shown.lines().count() - same.len()) as u64;
            if let Some(end) = cut.as_mut().and_then(|cut| cut.end.as_mut()) {
                end.left_out = end.left_out.saturating_sub(seen);
            }
            &output[same.iter().map(|(one, _)| one.len()).sum::<usize>()..]
        });
        let behind = behind.filter(|_| !self.more);
        let shape = Shape::Terminal {
            command: String::new(),
            output: left.to_owned(),
            exit: *exit,
            note: note.clone(),
        };
        let detail = Detail { cut, ..shape.into() };
        if behind.is_some() { Rest::Behind(detail) } else { Rest::End(detail) }
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{Cut, CutEnd};

    use super::*;

    fn whole(output: &str) -> Detail {
        let (command, output) = ("c".to_owned(), output.to_owned());
        Shape::Terminal { command, output, exit: Some(0), note: None }.into()
    }

    fn output(detail: &Detail) -> &str {
        match &detail.shape {
            Shape::Terminal { output, .. } => output,
            _ => "",
        }
    }

    #[test]
    fn lines_come_whole_and_only_the_rest_is_said_at_the_end() {
        let mut live = Live::default();
        assert_eq!(live.push("a"), None);
        assert_eq!(live.push("b\nc\nd").as_deref(), Some("ab\nc\n"));
        assert!(!live.is_full());
        match live.rest(&whole("ab\nc\nd")) {
            Rest::Behind(detail) => assert_eq!(output(&detail), "d"),
            _ => panic!("the rest is behind what was shown"),
        }
        assert!(matches!(Live::default().rest(&whole("x")), Rest::All));
    }

    #[test]
    fn what_was_seen_of_a_middle_that_is_left_out_is_not_counted_again() {
        let mut live = Live::default();
        live.push("1\n2\n3\n4\n5\n");
        let end = CutEnd { lines: 1, left_out: 7, shown: 2 };
        let cut = Some(Cut { end: Some(end), ..Cut::default() });
        let whole = Detail { cut, ..whole("1\n2\n[... left out ...]\n10\n") };
        let Rest::End(rest) = live.rest(&whole) else { panic!("it is not behind what was shown") };
        assert_eq!(output(&rest), "[... left out ...]\n10\n");
        assert_eq!(rest.cut.unwrap().end.unwrap().left_out, 4);
    }

    #[test]
    fn what_is_shown_and_kept_is_bounded() {
        let mut live = Live::default();
        let shown: String = (0..1_000).filter_map(|n| live.push(&format!("{n}\n"))).collect();
        assert_eq!(shown.lines().count(), LINES);
        assert!(live.is_full() && live.line.len() < 8);
        assert!(matches!(live.rest(&whole("0\n1\n")), Rest::End(_)));
        let mut live = Live::default();
        for _ in 0..1_000 {
            assert_eq!(live.push(&"x".repeat(1_000)), None);
        }
        assert!(live.is_full() && live.line.len() <= BYTES);
        let mut live = Live::default();
        assert_eq!(live.push("seen\n").as_deref(), Some("seen\n"));
        assert!(matches!(live.rest(&whole("other\n")), Rest::End(_)));
    }
}
