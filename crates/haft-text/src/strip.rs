//! Terminal output to plain text: control sequences go; progress collapses, whether it returns to
//! the start of its line by a carriage return or by a sequence.
//!
//! A string (title, picture, clipboard) goes where its end comes. Where none comes it is shown, with a
//! visible sign for what began it: it may be output behind a stray byte.
//!
//! Invariant: the result has no ESC, no C0 control but LF and tab, no DEL and no C1; it does not
//! depend on where the stream was split; memory is bounded whatever comes (a line that is still
//! open and the first line of a string are held up to 64 KiB each, the lines behind that up to
//! 4 KiB). Cursor movement is not simulated.
//!
//! Source: ECMA-48, fifth edition, 5.6 (control strings) and 8.3; xterm control sequences (BEL).

/// Bytes of an open line that are held so that a carriage return can take them back.
const LINE_LIMIT: usize = 64 << 10;
/// Characters after which an unfinished sequence of parameters is given up.
const SEQUENCE_LIMIT: usize = 4 << 10;
/// Characters after which an unfinished string (title, picture, clipboard) is given up.
const STRING_LIMIT: usize = 4 << 20;
/// Bytes behind the first line of a string after which its end is not waited for.
const HELD_LIMIT: usize = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Ordinary text.
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    Intermediate,
    /// Within a control sequence (CSI), behind as many characters.
    Sequence(usize),
    /// Within one whose only parameter so far names the first column.
    First(usize),
    /// Within an operating system command (OSC), which BEL ends too.
    Command(usize),
    /// Within a device control, privacy, application or start of string (DCS, PM, APC, SOS).
    Text(usize),
    /// After ESC within a string.
    StringEscape,
}

/// Whether the open line went back to its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returned {
    Never,
    /// Before what it holds.
    Before,
    /// What comes next takes its place.
    Now,
}

/// Removes control sequences from a stream.
#[derive(Clone, Debug)]
pub struct Stripper {
    state: State,
    line: String,
    returned: Returned,
    /// Whether the beginning of the open line is already written.
    written: bool,
    bidi: bool,
    string: OpenString,
}

/// A string whose end has not come.
#[derive(Clone, Debug, Default)]
struct OpenString {
    /// What stands for the characters that began it.
    sign: &'static str,
    /// Its first line, up to [`LINE_LIMIT`], and all that follows.
    text: String,
    /// Characters of the first line that are not held.
    omitted: usize,
    /// Where in the text the first line ends, once it did.
    line_end: Option<usize>,
}

impl OpenString {
    const fn new() -> Self {
        Self { sign: "", text: String::new(), omitted: 0, line_end: None }
    }

    fn push(&mut self, character: char) {
        if self.line_end.is_none() && matches!(character, '\n' | '\r') {
            self.line_end = Some(self.text.len());
        }
        if self.line_end.is_some() || self.text.len() < LINE_LIMIT {
            self.text.push(character);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether as much follows the first line as is held at most.
    fn is_full(&self) -> bool {
        self.line_end.is_some_and(|end| self.text.len() - end >= HELD_LIMIT)
    }

    /// The text as it was printed, behind the sign of what began it.
    fn shown(self) -> String {
        let (line, rest) = self.text.split_at(self.line_end.unwrap_or(self.text.len()));
        let omitted = match self.omitted {
            0 => String::new(),
            count => format!(" [{count} more characters of this line left out]"),
        };
        [self.sign, line, &omitted, rest].concat()
    }
}

impl Default for Stripper {
    fn default() -> Self {
        Self::new()
    }
}

impl Stripper {
    /// Starts a stream; characters that reorder text (bidi controls) are kept.
    pub const fn new() -> Self {
        Self {
            state: State::Ground,
            line: String::new(),
            returned: Returned::Never,
            written: false,
            bidi: false,
            string: OpenString::new(),
        }
    }

    /// Starts a stream from which the characters that reorder text are removed too.
    pub const fn without_bidi() -> Self {
        let mut stripper = Self::new();
        stripper.bidi = true;
        stripper
    }

    /// Reports whether whole lines without control characters would now be given as they are,
    /// behind what is held of the open line.
    pub const fn is_plain(&self) -> bool {
        matches!(self.state, State::Ground) && !matches!(self.returned, Returned::Now)
    }

    /// Reports whether the open line is one of progress: what comes next can take its place.
    pub const fn is_progress(&self) -> bool {
        !matches!(self.returned, Returned::Never) && !self.written
    }

    /// Takes the next piece and appends the lines that are complete.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.state == State::Ground {
                let plain = ordinary(rest);
                if plain > 0 {
                    self.plain(&rest[..plain], out);
                    rest = &rest[plain..];
                    continue;
                }
                let ignored = ignored(rest);
                if ignored > 0 {
                    rest = &rest[ignored..];
                    continue;
                }
            }
            let Some(character) = rest.chars().next() else { return };
            rest = &rest[character.len_utf8()..];
            self.one(character, out);
        }
    }

    /// Ends the stream and appends the open line.
    pub fn finish(mut self, out: &mut String) {
        self.give_back(out);
        out.push_str(&self.line);
        self.line.clear();
    }

    fn plain(&mut self, text: &str, out: &mut String) {
        if self.returned == Returned::Now {
            self.overwrite(out);
        }
        let mut rest = text;
        while self.line.len() + rest.len() > LINE_LIMIT {
            let room = LINE_LIMIT.saturating_sub(self.line.len());
            let at = rest.floor_char_boundary(room);
            out.push_str(&self.line);
            out.push_str(&rest[..at]);
            self.line.clear();
            self.written = true;
            rest = &rest[at..];
        }
        self.line.push_str(rest);
    }

    /// Text after a carriage return takes the place of the line.
    fn overwrite(&mut self, out: &mut String) {
        self.returned = Returned::Before;
        self.line.clear();
        if self.written {
            // What is written cannot be taken back: the new text gets a line of its own.
            out.push('\n');
            self.written = false;
        }
    }

    fn one(&mut self, character: char, out: &mut String) {
        // CAN and SUB end any sequence, ESC begins the next.
        match (self.state, character) {
            (State::Ground, _) => return self.ground(character, out),
            (_, '\u{18}' | '\u{1a}') => {
                self.state = State::Ground;
                self.give_back(out);
                return;
            }
            (State::Command(_) | State::Text(_), '\u{1b}') => {
                self.state = State::StringEscape;
                return;
            }
            (_, '\u{1b}') => {
                self.state = State::Escape;
                return;
            }
            _ => {}
        }
        match self.state {
            State::Ground => {}
            State::Escape => self.escape(character, out),
            State::StringEscape => {
                if character == '\\' {
                    self.string = OpenString::new();
                } else {
                    self.give_back(out);
                }
                self.escape(character, out);
            }
            State::Intermediate => match character {
                ' '..='/' => {}
                '0'..='~' => self.state = State::Ground,
                _ => self.abort(character, out),
            },
            State::First(_) if matches!(character, 'G' | '`') => {
                // To the first column, as a carriage return goes.
                (self.state, self.returned) = (State::Ground, Returned::Now);
            }
            State::First(0) if matches!(character, '0' | '1') => self.state = State::First(1),
            State::Sequence(length) | State::First(length) => match character {
                '@'..='~' => self.state = State::Ground,
                ' '..='?' if length < SEQUENCE_LIMIT => self.state = State::Sequence(length + 1),
                _ => self.abort(character, out),
            },
            State::Command(length) => match character {
                '\u{7}' => self.end(),
                // A title has one line: a line end means that the rest is lost output.
                '\n' | '\r' => self.give_up(character, out),
                _ => self.string(State::Command(length + 1), length, character, out),
            },
            State::Text(length) => {
                self.string(State::Text(length + 1), length, character, out);
            }
        }
    }

    /// Begins a string, of which the sign stands for what began it.
    fn begin(&mut self, state: State, sign: &'static str) {
        (self.state, self.string) = (state, OpenString { sign, ..OpenString::new() });
    }

    /// A character within a string, behind as many.
    fn string(&mut self, next: State, length: usize, character: char, out: &mut String) {
        if character == '\u{9c}' {
            self.end();
        } else if length == STRING_LIMIT || self.string.is_full() {
            self.give_up(character, out);
        } else {
            self.string.push(character);
            self.state = next;
        }
    }

    /// Ends a string, which goes.
    fn end(&mut self) {
        (self.state, self.string) = (State::Ground, OpenString::new());
    }

    /// Takes a string whose end does not come for output; so is the character behind it.
    fn give_up(&mut self, character: char, out: &mut String) {
        self.state = State::Ground;
        self.give_back(out);
        self.ground(character, out);
    }

    /// Gives what was held of a string without an end. What would begin another one in it counts as
    /// any control character, so that nothing is held twice.
    fn give_back(&mut self, out: &mut String) {
        let state = std::mem::replace(&mut self.state, State::Ground);
        for character in std::mem::take(&mut self.string).shown().chars() {
            if !character.is_control() || matches!(character, '\n' | '\r' | '\t' | '\u{8}') {
                self.ground(character, out);
            }
        }
        self.state = state;
    }

    fn abort(&mut self, character: char, out: &mut String) {
        self.state = State::Ground;
        self.ground(character, out);
    }

    fn escape(&mut self, character: char, out: &mut String) {
        match character {
            '[' => self.state = State::First(0),
            ']' => self.begin(State::Command(0), "\u{241b}]"),
            'P' => self.begin(State::Text(0), "\u{241b}P"),
            'X' => self.begin(State::Text(0), "\u{241b}X"),
            '^' => self.begin(State::Text(0), "\u{241b}^"),
            '_' => self.begin(State::Text(0), "\u{241b}_"),
            ' '..='/' => self.state = State::Intermediate,
            '0'..='~' => self.state = State::Ground,
            _ => self.abort(character, out),
        }
    }

    fn ground(&mut self, character: char, out: &mut String) {
        match character {
            '\n' => {
                out.push_str(&self.line);
                out.push('\n');
                self.line.clear();
                (self.returned, self.written) = (Returned::Never, false);
            }
            '\r' => self.returned = Returned::Now,
            '\t' => self.plain("\t", out),
            '\u{8}' => {
                self.line.pop();
            }
            '\u{1b}' => self.state = State::Escape,
            '\u{90}' => self.begin(State::Text(0), "<U+0090>"),
            '\u{98}' => self.begin(State::Text(0), "<U+0098>"),
            '\u{9b}' => self.state = State::First(0),
            '\u{9d}' => self.begin(State::Command(0), "<U+009D>"),
            '\u{9e}' => self.begin(State::Text(0), "<U+009E>"),
            '\u{9f}' => self.begin(State::Text(0), "<U+009F>"),
            _ if character.is_control() => {}
            _ if self.bidi && reorders(character) => {}
            _ => self.plain(character.encode_utf8(&mut [0; 4]), out),
        }
    }
}

fn special(character: char) -> bool {
    character.is_control() || reorders(character)
}

/// How many bytes at the start are control characters that ordinary text goes without: what is no
/// text is full of them.
fn ignored(text: &str) -> usize {
    let means = |b: u8| matches!(b, b'\n' | b'\r' | b'\t' | 0x8 | 0x1b);
    text.bytes().take_while(|b| (*b < b' ' && !means(*b)) || *b == 0x7f).count()
}

/// How many bytes at the start are no special characters.
fn ordinary(text: &str) -> usize {
    // Bytes that begin a special character, among others; asked of many at once.
    let may = |b: u8| b < b' ' || matches!(b, 0x7f | 0xc2 | 0xd8 | 0xe2);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // One behind the other, as in what is no text, they are not looked for.
        if !may(bytes[at]) {
            let size = if at == 0 { 8 } else { 64 };
            let block = &bytes[at..bytes.len().min(at + size)];
            if !block.iter().fold(false, |any, b| any | may(*b)) {
                at += block.len();
                continue;
            }
            at += block.iter().position(|b| may(*b)).unwrap_or(0);
        }
        match text[at..].chars().next() {
            Some(character) if !special(character) => at += character.len_utf8(),
            _ => return at,
        }
    }
    at
}

/// Tells whether a character changes the direction of the text around it.
pub const fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Removes control sequences from a whole text.
pub fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut stripper = Stripper::new();
    stripper.push(text, &mut out);
    stripper.finish(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        let cases = [
            ("\u{1b}[1;31mred\u{1b}[0m\n", "red\n"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0;2\ndata\u{1b}\\y", "y"),
            ("\u{9b}31mc1\u{85}", "c1"),
            ("10%\r50%\r100%\n", "100%\n"),
            ("10%\u{1b}[1G50%\u{1b}[G100%\n", "100%\n"),
            ("1\u{1b}[2K\u{1b}[0G2\u{9b}1`3\n", "3\n"),
            ("a\u{1b}[12Gb\u{1b}[1;1Gc\u{1b}[11Gd\n", "abcd\n"),
            ("last\u{1b}[1G", "last"),
            ("done\r\n", "done\n"),
            ("a\r\r\nb", "a\nb"),
            ("last\r", "last"),
            ("a\u{8}ab\u{7}", "ab"),
            ("\u{1b}(Bx\u{1b}7", "x"),
            ("\u{1b}[12\u{18}x", "x"),
            ("\u{1b}]0;open\nlost", "\u{241b}]0;open\nlost"),
            ("\u{9d}0;open\rlost", "lost"),
            ("x\u{1b}P q\nlost\n", "x\u{241b}P q\nlost\n"),
            ("x\u{90} q\nlost\u{90}\u{18}more", "x<U+0090> q\nlostmore"),
            ("x\u{1b}_ q\nFAILED \u{1b}[31mred", "x\u{241b}_ q\nFAILED red"),
            ("x\u{1b}^2 failed", "x\u{241b}^2 failed"),
            ("x\u{98}2 failed\u{1b}", "x<U+0098>2 failed"),
            ("a\u{9e}b\u{1b}[31mc\u{9f}d", "a<U+009E>bc<U+009F>d"),
            ("x\u{1b}X1\u{9c}y\u{1b}^2\n3\u{1b}\\z", "xyz"),
            ("日本\t語", "日本\t語"),
        ];
        for (input, want) in cases {
            assert_eq!(strip(input), want, "{input:?}");
        }
    }

    #[test]
    fn a_string_without_an_end_is_shown_behind_a_sign_of_its_start() {
        let lines = "READY\n".repeat(5000);
        let starts = ["\u{1b}P", "\u{1b}X", "\u{1b}^", "\u{1b}_", "\u{1b}]", "\u{90}", "\u{98}"];
        for start in starts.into_iter().chain(["\u{9d}", "\u{9e}", "\u{9f}"]) {
            let sign = match start.strip_prefix('\u{1b}') {
                Some(letter) => format!("\u{241b}{letter}"),
                None => format!("<U+{:04X}>", u32::from(start.chars().next().unwrap())),
            };
            let line = "rest ".repeat(2000);
            for end in ["", "\n", &format!("\n{lines}")] {
                assert_eq!(strip(&format!("a{start}{line}{end}")), format!("a{sign}{line}{end}"));
            }
            assert_eq!(strip(&format!("a{start}{line}\u{9c}b{lines}")), format!("ab{lines}"));
        }
        let again = strip(&"\u{90}\n".repeat(50_000));
        assert_eq!(again.lines().count(), 50_000);
        assert_eq!(again.replace("<U+0090>", "").len(), 50_000);
    }

    #[test]
    fn the_first_line_of_a_string_is_held_within_bounds() {
        let picture = "#1~~@@vv@@~~$-".repeat(50_000);
        assert_eq!(strip(&format!("a\u{1b}Pq{picture}\u{1b}\\b")), "ab");
        let (mut stripper, mut out) = (Stripper::new(), String::new());
        stripper.push("a\u{1b}Pq", &mut out);
        for _ in 0..10 {
            stripper.push(&picture, &mut out);
            assert!(stripper.string.text.capacity() <= 2 * LINE_LIMIT);
        }
        stripper.push("\nnext", &mut out);
        stripper.finish(&mut out);
        let shown = "a\u{241b}Pq#1~~@@vv@@~~";
        assert!(out.starts_with(shown) && out.ends_with("\nnext"), "{}", out.len());
    }

    #[test]
    fn bidi_controls_go_where_asked() {
        let mut out = String::new();
        let mut stripper = Stripper::without_bidi();
        stripper.push("a\u{202e}b\u{2066}c", &mut out);
        stripper.finish(&mut out);
        assert_eq!(out, "abc");
        assert_eq!(strip("a\u{202e}b"), "a\u{202e}b");
    }

    #[test]
    fn an_open_line_is_held_within_bounds() {
        let mut out = String::new();
        let mut stripper = Stripper::new();
        for _ in 0..100 {
            stripper.push(&"x".repeat(10_000), &mut out);
            assert!(stripper.line.len() <= LINE_LIMIT);
        }
        stripper.push("\rnew", &mut out);
        stripper.finish(&mut out);
        assert_eq!(out.lines().last(), Some("new"));
    }
}
