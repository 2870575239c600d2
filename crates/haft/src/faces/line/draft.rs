//! The line that a person is typing: decodes bytes of a terminal into presses, and applies them.
//!
//! **Invariant:** where the terminal marks pastes, pasted text never counts as a key or as Enter.
//! The draft is bounded. **Does not know:** questions, the terminal's state.

use haft_render::clean;

/// Longest draft, in bytes; what is typed behind it is not taken.
const LONGEST: usize = 1 << 20;

/// Bytes of a draft that are shown again.
const SHOWN: usize = 4 << 10;

/// What one key, or one character of a paste, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// A key that types a character.
    Key(char),
    /// A character of a paste, line ends included.
    Pasted(char),
    /// The line is finished.
    Enter,
    /// Erases the last character.
    Erase,
    /// Erases the last word (Ctrl-W).
    EraseWord,
    /// Erases the whole line (Ctrl-U).
    EraseAll,
    /// Shows the line again (Ctrl-R, Ctrl-L).
    Redraw,
    /// End of input (Ctrl-D).
    End,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    Sequence,
    Single,
}

/// Decodes bytes of a terminal, wherever they were split.
#[derive(Default)]
pub struct Decoder {
    state: State,
    /// Parameters of the sequence that is open.
    code: String,
    paste: bool,
    /// The start of a character.
    partial: Vec<u8>,
}

impl Decoder {
    /// The presses in bytes that arrived at once. Keys that type nothing, such as arrows, give
    /// none.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<Press> {
        let text = self.text(bytes);
        let presses = text.chars().filter_map(|c| self.press(c)).collect();
        if self.state == State::Escape && !self.paste {
            // The Escape key alone: the next key is not part of it.
            self.state = State::Ground;
        }
        presses
    }

    fn text(&mut self, bytes: &[u8]) -> String {
        let mut rest = std::mem::take(&mut self.partial);
        rest.extend_from_slice(bytes);
        let (mut text, mut at) = (String::new(), 0);
        loop {
            match std::str::from_utf8(&rest[at..]) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let end = at + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&rest[at..end]));
                    let Some(bad) = error.error_len() else {
                        self.partial = rest.split_off(end);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    at = end + bad;
                }
            }
        }
    }

    fn press(&mut self, c: char) -> Option<Press> {
        match (self.state, c) {
            (State::Ground | State::Escape, '\u{1b}') => self.state = State::Escape,
            (State::Escape, '[') => {
                self.code.clear();
                self.state = State::Sequence;
            }
            (State::Escape, 'O') => self.state = State::Single,
            (State::Escape | State::Single, _) => self.state = State::Ground,
            (State::Sequence, ' '..='?') if self.code.len() < 16 => self.code.push(c),
            (State::Sequence, _) => {
                self.state = State::Ground;
                match (self.code.as_str(), c) {
                    ("200", '~') => self.paste = true,
                    ("201", '~') => self.paste = false,
                    _ => {}
                }
            }
            (State::Ground, '\r') if self.paste => return Some(Press::Pasted('\n')),
            (State::Ground, c) if self.paste => return Some(Press::Pasted(c)),
            (State::Ground, c) => return key(c),
        }
        None
    }
}

fn key(c: char) -> Option<Press> {
    Some(match c {
        '\r' | '\n' => Press::Enter,
        '\u{4}' => Press::End,
        '\u{7f}' | '\u{8}' => Press::Erase,
        '\u{15}' => Press::EraseAll,
        '\u{17}' => Press::EraseWord,
        '\u{c}' | '\u{12}' => Press::Redraw,
        '\t' => Press::Key(c),
        c if c.is_control() => return None,
        c => Press::Key(c),
    })
}

/// The unfinished line.
#[derive(Default)]
pub struct Draft {
    text: String,
}

impl Draft {
    /// True while nothing is typed.
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the line; a new one begins.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Puts a text before what is typed, as lines of its own.
    pub fn put_before(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        let rest = std::mem::take(&mut self.text);
        self.text = if rest.is_empty() { text.to_owned() } else { format!("{text}\n{rest}") };
        self.text.truncate(self.text.floor_char_boundary(LONGEST));
    }

    /// The line as a terminal may show it; of a long line, its end.
    pub fn shown(&self) -> String {
        let at = self.text.ceil_char_boundary(self.text.len().saturating_sub(SHOWN));
        let sign = if at > 0 { "\u{2026} " } else { "" };
        format!("{sign}{}", clean(&self.text[at..]).replace('\n', "\n  "))
    }

    /// Applies a press. Returns what is to be shown behind the line, or none if the line must be
    /// shown again.
    pub fn press(&mut self, press: Press) -> Option<String> {
        match press {
            Press::Key(c) | Press::Pasted(c) => {
                if self.text.len() + c.len_utf8() > LONGEST {
                    return Some(String::new());
                }
                self.text.push(c);
                Some(clean(c.encode_utf8(&mut [0; 4])).replace('\n', "\n  "))
            }
            Press::Erase => match self.text.pop() {
                None => Some(String::new()),
                Some(' '..='~') => Some("\u{8} \u{8}".to_owned()),
                Some(_) => None,
            },
            Press::EraseWord => {
                let kept = self.text.trim_end().trim_end_matches(|c: char| !c.is_whitespace());
                self.text.truncate(kept.len());
                None
            }
            Press::EraseAll => {
                self.text.clear();
                None
            }
            Press::Redraw => None,
            Press::Enter | Press::End => Some(String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Press> {
        text.chars().map(Press::Key).collect()
    }

    #[test]
    fn only_keys_that_write_are_presses() {
        for (typed, presses) in [
            ("y", keys("y")),
            ("yn", keys("yn")),
            ("\u{1b}[A", keys("")),
            ("\u{1b}[1;5Cx", keys("x")),
            ("\u{1b}OPx", keys("x")),
            ("\u{1b}y", keys("")),
            ("\u{1}\u{0}n", keys("n")),
            ("\u{1b}", keys("")),
            ("", keys("")),
            ("ä", keys("ä")),
            ("a\u{7f}\r\u{4}", vec![Press::Key('a'), Press::Erase, Press::Enter, Press::End]),
        ] {
            assert_eq!(Decoder::default().decode(typed.as_bytes()), presses, "{typed:?}");
        }
    }

    #[test]
    fn a_paste_is_neither_key_nor_enter_wherever_it_is_cut() {
        let typed = "\u{1b}[200~y\rä\n\u{1b}[201~z".as_bytes();
        let pasted = ['y', '\n', 'ä', '\n'].map(Press::Pasted);
        let whole = [&pasted[..], &[Press::Key('z')]].concat();
        for at in (0..=typed.len()).filter(|at| *at != 1) {
            let mut decoder = Decoder::default();
            let mut presses = decoder.decode(&typed[..at]);
            presses.extend(decoder.decode(&typed[at..]));
            assert_eq!(presses, whole, "cut at {at}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"\x1b"), []);
        assert_eq!(decoder.decode(b"y"), keys("y"), "behind the Escape key");
        assert_eq!(decoder.decode(b"\xff\xc3"), [Press::Key('\u{fffd}')]);
        assert_eq!(decoder.decode(b"\xa4"), keys("ä"));
    }

    #[test]
    fn a_draft_is_edited_and_bounded() {
        let mut draft = Draft::default();
        let mut presses = keys("two words  x");
        presses.extend([Press::Erase, Press::EraseWord]);
        for press in presses {
            draft.press(press);
        }
        assert_eq!(draft.shown(), "two ");
        draft.press(Press::Pasted('\n'));
        assert_eq!(draft.press(Press::Pasted('\u{202e}')).as_deref(), Some("<U+202E>"));
        assert_eq!(draft.shown(), "two \n  <U+202E>");
        assert_eq!(draft.press(Press::Erase), None);
        draft.press(Press::EraseAll);
        assert!(draft.is_empty());
        for _ in 0..LONGEST + 5 {
            draft.press(Press::Pasted('x'));
        }
        assert!(draft.shown().len() < SHOWN + 8 && draft.shown().starts_with('\u{2026}'));
        assert_eq!(draft.take().len(), LONGEST);
    }
}
