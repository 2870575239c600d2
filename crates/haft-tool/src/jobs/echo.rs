//! Detects terminal echo: typed input that a terminal repeats, which is not output of its program.
//!
//! **Invariant:** in a line at most one typed line is taken for an echo. Each is matched only once,
//! and only at the end of the line or after the text that stood there when it was typed. An echo
//! that does not come soon is no longer expected.

use std::{collections::VecDeque, ops::Range};

/// Typed lines that are waited for, and echoes that are remembered.
const MOST: usize = 64;
/// Lines of output after which a typed line is not waited for any more.
const PATIENCE: u32 = 100;
/// Characters from which on a typed line may be given back in part, where a terminal is no wider.
const WIDE: usize = 80;

/// Tells echoes from output.
#[derive(Default)]
pub(super) struct Echo {
    expected: VecDeque<Expected>,
    /// Where echoes are, as bytes of the output.
    seen: VecDeque<Range<u64>>,
}

/// What was typed and is not given back yet.
struct Expected {
    /// What stood in the line where it was typed, as far as that is known.
    before: Option<String>,
    text: String,
    /// Whether the line was ended.
    whole: bool,
    patience: u32,
}

impl Expected {
    /// Where it is in a line.
    fn within(&self, line: &str) -> Option<Range<usize>> {
        let before = self.before.as_deref().filter(|before| !before.is_empty());
        let rest = before.and_then(|before| line.strip_prefix(before));
        if let Some(rest) = rest.filter(|rest| rest.starts_with(&self.text)) {
            let start = line.len() - rest.len();
            return Some(start..start + self.text.len());
        }
        let line = line.trim_end();
        if self.whole && line.ends_with(&self.text) {
            return Some(line.len() - self.text.len()..line.len());
        }
        let wrapped = self.text.len() > WIDE && !line.is_empty() && self.text.ends_with(line);
        (self.whole && wrapped).then_some(0..line.len())
    }

    /// Where the beginning of it is at the end of a line that goes on.
    fn begins(&self, line: &str) -> Option<Range<usize>> {
        let known = self.within(line);
        let starts = (0..line.len()).filter(|at| line.is_char_boundary(*at));
        known.or_else(|| {
            let mut starts = starts.skip_while(|at| line.len() - at > self.text.len());
            let start = starts.find(|at| self.text.starts_with(&line[*at..]))?;
            Some(start..line.len())
        })
    }
}

impl Echo {
    /// Takes note of what is typed while `open` stands in the line.
    pub(super) fn typed(&mut self, bytes: &[u8], open: &str) {
        let text = as_shown(bytes);
        let mut before = Some(open.to_owned());
        for line in text.split_inclusive('\n') {
            let (whole, text) = (line.ends_with('\n'), line.trim_end().to_owned());
            if !text.is_empty() {
                let before = before.take();
                self.expected.push_back(Expected { before, text, whole, patience: PATIENCE });
            }
            before = None;
        }
        let over = self.expected.len().saturating_sub(MOST);
        self.expected.drain(..over);
    }

    /// Looks for echoes in whole lines that begin at this byte of the output.
    pub(super) fn came(&mut self, at: u64, text: &str) {
        if self.expected.is_empty() {
            return;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let mut ended = false;
            self.expected.retain_mut(|expected| {
                let found = expected.within(line).filter(|_| !(expected.whole && ended));
                if let Some(found) = &found {
                    ended |= expected.whole;
                    let place = |within: usize| at + (start + within) as u64;
                    self.seen.push_back(place(found.start)..place(found.end));
                }
                expected.patience = expected.patience.saturating_sub(1);
                found.is_none() && expected.patience > 0
            });
            start += line.len();
        }
        let over = self.seen.len().saturating_sub(MOST);
        self.seen.drain(..over);
    }

    /// The echoes in a stretch of the output that begins at this byte.
    pub(super) fn within(&self, at: u64, text: &str) -> Vec<Range<usize>> {
        let end = at + text.len() as u64;
        let seen = self.seen.iter().filter(|seen| seen.end > at && seen.start < end);
        let place = |mark: u64| usize::try_from(mark.saturating_sub(at)).unwrap_or(usize::MAX);
        seen.map(|seen| place(seen.start)..place(seen.end)).collect()
    }

    /// The echoes in the line that has no end yet.
    pub(super) fn in_open(&self, open: &str) -> Vec<Range<usize>> {
        self.expected.iter().filter_map(|expected| expected.begins(open)).collect()
    }
}

/// What was typed as a terminal shows it.
fn as_shown(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\r' => shown.push('\n'),
            '\n' | '\t' => shown.push(character),
            '\0'..'\u{20}' => {
                shown.push('^');
                shown.extend(char::from_u32(u32::from(character) + 0x40));
            }
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of a text is no echo, after this was typed behind `open`.
    fn said(typed: &str, open: &str, text: &str) -> String {
        let mut echo = Echo::default();
        echo.typed(typed.as_bytes(), open);
        echo.came(1_000, text);
        let echoes = echo.within(1_000, text);
        let own = |at: &usize| !echoes.iter().any(|echo| echo.contains(at));
        (0..text.len()).filter(own).map(|at| char::from(text.as_bytes()[at])).collect()
    }

    #[test]
    fn what_was_typed_is_no_output_and_what_repeats_it_is() {
        for (typed, open, text, own) in [
            ("print(1)\n", ">>> ", ">>> print(1)\n1\n", ">>> \n1\n"),
            ("hello\n", "", "hello\nhello\n", "\nhello\n"),
            ("a\nb\n", "$ ", "$ a\nA\n$ b\nB b\n", "$ \nA\n$ \nB b\n"),
            ("a\na\n", "$ ", "$ a\nA\n$ a\n", "$ \nA\n$ \n"),
            ("y", "Go on? ", "Go on? y\nmy day\n", "Go on? \nmy day\n"),
            ("y", "Go on? ", "Go on? yes it is\n", "Go on? es it is\n"),
            ("\u{3}", ">>> ", ">>> ^C\nKeyboardInterrupt\n", ">>> \nKeyboardInterrupt\n"),
            ("\n", "> ", "> \nfine\n", "> \nfine\n"),
        ] {
            assert_eq!(said(typed, open, text), own, "{typed:?} {text:?}");
        }
        let secret = format!("Password: \n{}secret\n", "line\n".repeat(120));
        assert_eq!(said("secret\n", "Password: ", &secret), secret);
        let long = format!("{}{}", "x".repeat(120), "y".repeat(30));
        assert_eq!(said(&format!("{long}\n"), "> ", &format!("{}\n", "y".repeat(30))), "\n");
    }

    #[test]
    fn an_echo_that_is_on_its_way_is_known() {
        let mut echo = Echo::default();
        echo.typed(b"print('ready')\n", ">>> ");
        for (open, found) in
            [(">>> ", None), (">>> pri", Some(4..7)), (">>> print('ready')", Some(4..18))]
        {
            assert_eq!(echo.in_open(open), Vec::from_iter(found), "{open}");
        }
        echo.came(0, ">>> print('ready')\n");
        assert!(echo.in_open(">>> print").is_empty());
        assert!(echo.within(19, "ready\n").is_empty());
        assert_eq!(echo.within(10, "('ready')\n"), [Range { start: 0, end: 8 }]);
    }
}
