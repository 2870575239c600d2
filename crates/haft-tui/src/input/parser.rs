//! The state machine between the bytes of a terminal and its inputs.
//!
//! **Invariant:** without a timeout between them, pieces give what the whole gives. At most
//! [`LONGEST_SEQUENCE`] or [`LONGEST_STRING`] bytes are held, besides a paste. Each byte costs a
//! bounded number of steps. **Does not know:** clocks, what keys and answers mean.
//!
//! # States
//!
//! Behind ESC comes one of these: SS3 (`O`), a control sequence (`[`), a control string (`]`, `P`,
//! `_`, `^`, `X`), or a key with Alt. A string ends with BEL or with `ESC \`. `CSI 200 ~` opens a
//! paste, which only `CSI 201 ~` ends. The bytes of a sequence are held from its ESC on.
//!
//! # Time
//!
//! The first timeout, after [`SHORT`], tells that a pause came inside a sequence. Its head is then
//! sure or not. It is sure if bytes behind the introducer came before the pause: a person does not
//! type that fast. Bytes of a sure head are never keys. Another head may be keys: Escape, or Alt
//! with the introducer.
//!
//! After a pause only known answers go on (`known.rs`). Behind a sure head these go on as well:
//! the rest of a key, a string of unknown form, a piece of several characters that ends a sequence.
//! The first byte that does not fit ends the sequence. Then the held bytes that may be keys come
//! out as keys, and the byte is read anew.
//!
//! The second timeout, [`LONG`] after the last byte, gives such held bytes as keys too. There is no
//! second wait for a head that is not sure, unless answers are expected or more than its introducer
//! fits an answer. The sequence stays open behind what was given, without any limit of time:
//! - If the next bytes complete the answer, they are an answer. Its last byte alone is a key.
//! - A string of free text or of unknown form goes on only by a piece that has its end.
//!
//! # Choices
//!
//! - `ESC ESC [ A` is Alt+Up, as rxvt writes it. Before an answer the first ESC is Escape. Any
//!   other `ESC ESC` is Escape twice: a held Escape repeats, and nobody uses Alt+Escape.
//! - A C0 control other than BEL, or DEL, ends a sequence unfinished, and it is a key. ESC ends it
//!   as well and begins anew, unless `\` follows in a string.
//! - An unfinished sequence gives nothing if its head is sure, else the keys that it may be.
//! - Each maximal part of a broken character is one U+FFFD (Unicode 3.9). C1 controls are not
//!   read: as bytes they are not UTF-8, and as characters they become U+FFFD.
//! - A character that a pause splits waits for its rest without a limit.
//!
//! # What bytes cannot decide
//!
//! - The head of an answer, if it is ESC with or without an introducer and the rest comes later
//!   than the wait, is a key. Its rest types nothing if it comes in one piece.
//! - So is the ESC of a string's end, if `\` comes later than the wait.
//! - A key or a report of focus with a pause behind ESC or its introducer is what its bytes spell.
//! - Keys that come within [`SHORT`] of Escape or Alt+`[` may read as a sequence.
//! - If the rest of an answer was lost, a key that fits its place waits for [`LONG`]. Several that
//!   fit it and come in one read are lost.

use super::known::{Known, known};
use super::params::Params;
use super::paste::OpenPaste;
use super::{Answer, Input, Key, KeyCode, Modifiers, Pending, answers, keys};
use std::time::Duration;

/// How long a sequence waits before it counts as interrupted.
const SHORT: Duration = Duration::from_millis(50);

/// How long it waits in all where it may be an answer.
const LONG: Duration = Duration::from_secs(1);

/// Most bytes of a control sequence that are kept. Longer ones are read to their end as unknown.
const LONGEST_SEQUENCE: usize = 256;

/// Most bytes of a control string that are kept. Longer ones are read to their end as unknown.
const LONGEST_STRING: usize = 4096;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// Behind ESC.
    Escape,
    /// Behind SS3.
    Single,
    /// In a control sequence.
    Sequence,
    /// In a control string.
    Text,
    /// In a control string, behind an ESC that is not held.
    TextEscape {
        /// A pause came behind that ESC.
        lone: bool,
        /// It was given as Escape.
        given: bool,
    },
}

/// Where the last pause was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pause {
    /// None came inside this sequence.
    #[default]
    None,
    /// Before the last byte.
    Before,
    /// Behind the last byte, of [`SHORT`].
    Short,
    /// Behind the last byte, and all waiting is over.
    Over,
}

/// Who wrote the head of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    /// A person with Alt, or the terminal.
    #[default]
    Joined,
    /// A pause came right behind its ESC: it was Escape, or it is the terminal's.
    Lone,
    /// The terminal.
    Sure,
}

/// The start of a character in UTF-8.
#[derive(Debug, Default)]
struct Partial {
    /// At most 4 bytes.
    bytes: Vec<u8>,
    /// ESC came right before it.
    alt: bool,
}

/// What a complete control sequence means.
enum Meaning {
    Keys(Vec<Key>),
    Report(Input),
    PasteBegins,
    Unknown,
}

/// Turns the bytes of a terminal into inputs. See the module for its rules.
///
/// The driver calls [`feed`](Self::feed) with what it read. Whenever [`pending`](Self::pending)
/// gives a time, it waits that long for more and then calls [`timeout`](Self::timeout).
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    /// The open sequence from its ESC on.
    held: Vec<u8>,
    /// How many of these are not to be given as keys: they are sure, or they were given.
    done: usize,
    /// How many of these came before this feed.
    piece: usize,
    /// Another ESC came right before: Escape, or Alt of the key to come.
    doubled: bool,
    pause: Pause,
    head: Head,
    /// More came than is kept.
    over: bool,
    /// Answers are outstanding.
    expecting: bool,
    paste: Option<OpenPaste>,
    partial: Partial,
}

impl Parser {
    /// Reads bytes and appends what they mean. Any split is right.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        if self.dormant() && !ends_text(bytes) {
            self.close();
        }
        self.piece = self.held.len();
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(paste) = &mut self.paste {
                let Some(behind) = paste.take(rest) else { return };
                rest = behind;
                self.flush_paste(out);
            } else if let Some((&byte, tail)) = rest.split_first() {
                rest = tail;
                self.byte(byte, out);
            }
        }
        // Two characters at once behind what only a terminal writes are written by it, too.
        let piece = self.held.get(self.piece..).unwrap_or_default();
        if self.stale() && self.sure() && piece.iter().filter(|b| *b & 0xc0 != 0x80).count() > 1 {
            self.done = self.held.len();
        }
    }

    /// How long to wait for more bytes before [`timeout`](Self::timeout). None: as long as it
    /// takes.
    pub fn pending(&self) -> Option<Pending> {
        let wait = match (self.state, self.pause) {
            (State::Ground, _) | (_, Pause::Over) => return None,
            (_, Pause::Short) if self.patient() => LONG.saturating_sub(SHORT),
            _ => SHORT,
        };
        Some(Pending { wait })
    }

    /// The time of [`pending`](Self::pending) passed and no byte came. Does nothing if nothing is
    /// pending.
    pub fn timeout(&mut self, out: &mut Vec<Input>) {
        if self.pending().is_none() {
            return;
        }
        self.give_doubled(out);
        if self.pause != Pause::Short {
            self.interrupt(out);
            if self.patient() {
                return;
            }
        }
        self.give(out);
        if self.lingers() {
            self.pause = Pause::Over;
        } else {
            self.close();
        }
    }

    /// Tells whether answers are outstanding. While they are, an ESC waits for a second before it
    /// is the Escape key. The driver ends this at the answer to its last question, or after a few
    /// seconds.
    pub fn expect_answers(&mut self, expecting: bool) {
        self.expecting = expecting;
    }

    /// Ends an open paste and appends what came of it. For the end of input; does nothing if no
    /// paste is open.
    pub fn flush_paste(&mut self, out: &mut Vec<Input>) {
        out.extend(self.paste.take().map(|paste| Input::Paste(paste.finish())));
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<Input>) {
        if self.stale() {
            self.pause = Pause::Before;
        }
        match self.state {
            State::Ground => self.ground(byte, out),
            State::Escape => self.escape(byte, out),
            State::Single => match keys::single(byte) {
                Some(key) => self.deliver(Meaning::Keys(vec![key]), out),
                None => self.mismatch(byte, out),
            },
            State::Sequence => self.sequence(byte, out),
            State::Text => self.text(byte, out),
            State::TextEscape { lone, given } => self.text_escape(byte, lone, given, out),
        }
    }

    fn ground(&mut self, byte: u8, out: &mut Vec<Input>) {
        if byte >= 0x80 {
            return self.utf8(byte, out);
        }
        if !self.partial.bytes.is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, out);
        }
        match byte {
            ESC => self.open(),
            0..=0x1f | 0x7f => out.push(Input::Key(keys::control(byte))),
            _ => out.push(Input::Key(keys::typed(char::from(byte), false))),
        }
    }

    /// A byte of a character that is not ASCII.
    fn utf8(&mut self, byte: u8, out: &mut Vec<Input>) {
        self.partial.bytes.push(byte);
        match std::str::from_utf8(&self.partial.bytes) {
            Ok(text) => {
                if let Some(c) = text.chars().next() {
                    self.character(c, out);
                }
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => {
                let alone = self.partial.bytes.len() == 1;
                self.character(char::REPLACEMENT_CHARACTER, out);
                // Only the last byte can be wrong behind a good start. It may start another one.
                if !alone {
                    self.utf8(byte, out);
                }
            }
        }
    }

    fn character(&mut self, c: char, out: &mut Vec<Input>) {
        self.partial.bytes.clear();
        out.push(Input::Key(keys::typed(c, std::mem::take(&mut self.partial.alt))));
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<Input>) {
        match byte {
            b'[' => return self.begin(byte, State::Sequence),
            b']' | b'P' | b'_' => {
                self.give_doubled(out);
                return self.begin(byte, State::Text);
            }
            // After a pause only answers go on, and none begins otherwise.
            _ if self.stale() => return self.mismatch(byte, out),
            b'O' => return self.begin(byte, State::Single),
            ESC => {
                self.give_doubled(out);
                self.doubled = true;
                return;
            }
            _ => self.give_doubled(out),
        }
        match byte {
            b'^' | b'X' => self.begin(byte, State::Text),
            0x80.. => {
                self.close();
                self.partial.alt = true;
                self.utf8(byte, out);
            }
            0..=0x1f | 0x7f => {
                self.close();
                out.push(Input::Key(keys::control(byte).with(Modifiers::ALT)));
            }
            _ => {
                self.close();
                out.push(Input::Key(keys::typed(char::from(byte), true)));
            }
        }
    }

    fn sequence(&mut self, byte: u8, out: &mut Vec<Input>) {
        let body = self.held.get(2..).unwrap_or_default();
        if body == b"[" {
            return match keys::console(byte) {
                Some(key) => self.deliver(Meaning::Keys(vec![key]), out),
                None => self.mismatch(byte, out),
            };
        }
        if self.stale() && !self.sure() {
            return match self.known_with(byte) {
                Known::Part => self.keep(byte, LONGEST_SEQUENCE),
                // The last byte alone is a key: all before it was given as keys.
                Known::Full if self.to_give() => self.deliver(self.meaning(byte), out),
                _ => self.mismatch(byte, out),
            };
        }
        match byte {
            b'[' if body.is_empty() => self.keep(byte, LONGEST_SEQUENCE),
            // rxvt ends Shift with some keys by `$`. In an answer `;` comes before it.
            b'$' if !body.is_empty() && body.iter().all(u8::is_ascii_digit) => {
                match self.meaning(byte) {
                    Meaning::Unknown => self.keep(byte, LONGEST_SEQUENCE),
                    meaning => self.deliver(meaning, out),
                }
            }
            b' '..=b'?' => self.keep(byte, LONGEST_SEQUENCE),
            b'@'..=b'~' => {
                let meaning = self.meaning(byte);
                let alone = self.stale() && !self.over && self.held.len() <= self.piece;
                let unknown = matches!(meaning, Meaning::Unknown);
                if alone && unknown && self.known_with(byte) == Known::No {
                    self.mismatch(byte, out);
                } else {
                    self.deliver(meaning, out);
                }
            }
            _ => self.mismatch(byte, out),
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<Input>) {
        let known = if self.stale() { known(&self.held) } else { Known::No };
        let strict = self.stale() && (!self.sure() || known != Known::No);
        let may_end = !strict || matches!(known, Known::Full | Known::Free);
        match byte {
            BEL if may_end && self.may_complete() => self.deliver(self.answer(), out),
            ESC if may_end => self.state = State::TextEscape { lone: false, given: false },
            0..=0x1f | 0x7f => self.mismatch(byte, out),
            _ if strict && self.known_with(byte) == Known::No => self.mismatch(byte, out),
            _ => self.keep(byte, LONGEST_STRING),
        }
    }

    fn text_escape(&mut self, byte: u8, lone: bool, given: bool, out: &mut Vec<Input>) {
        if byte == b'\\' && self.may_complete() {
            return self.deliver(self.answer(), out);
        }
        self.release(out);
        if !given {
            self.open();
            if lone {
                self.release(out);
            }
        }
        self.byte(byte, out);
    }

    /// A sequence begins with ESC.
    fn open(&mut self) {
        self.close();
        self.state = State::Escape;
        self.held.push(ESC);
    }

    fn begin(&mut self, introducer: u8, state: State) {
        self.held.push(introducer);
        self.state = state;
    }

    fn keep(&mut self, byte: u8, longest: usize) {
        if self.held.len() < longest {
            self.held.push(byte);
        } else {
            self.over = true;
        }
    }

    /// The sequence is no more.
    fn close(&mut self) {
        self.state = State::Ground;
        self.held.clear();
        (self.done, self.piece) = (0, 0);
        (self.pause, self.head) = (Pause::None, Head::Joined);
        (self.doubled, self.over) = (false, false);
    }

    /// The first of two ESC was Escape.
    fn give_doubled(&mut self, out: &mut Vec<Input>) {
        if std::mem::take(&mut self.doubled) {
            out.push(Input::Key(Key::new(KeyCode::Escape)));
        }
    }

    /// Looks at a sequence that stops here for now or for good: is it sure?
    fn settle(&mut self) {
        let body = self.held.len().saturating_sub(2);
        if !self.stale() && (body > 1 || (body == 1 && known(&self.held) != Known::No)) {
            self.head = Head::Sure;
            self.done = self.held.len();
        }
    }

    /// A pause came.
    fn interrupt(&mut self, out: &mut Vec<Input>) {
        self.settle();
        if let State::TextEscape { given, .. } = self.state {
            if self.may_end() {
                self.state = State::TextEscape { lone: true, given };
            } else {
                // No string ends here: the ESC is a key, or it begins something else.
                self.release(out);
                self.open();
            }
        }
        if self.state == State::Escape && !self.stale() {
            self.head = Head::Lone;
        }
        self.pause = Pause::Short;
    }

    /// True if a pause came inside the sequence.
    fn stale(&self) -> bool {
        self.pause != Pause::None
    }

    /// True if no person can have typed the sequence.
    fn sure(&self) -> bool {
        self.head == Head::Sure
    }

    /// True if a string can end here.
    fn may_end(&self) -> bool {
        self.sure() || matches!(known(&self.held), Known::Full | Known::Free)
    }

    /// True if an end completes a string. An end alone is a key if all before it was given as keys.
    fn may_complete(&self) -> bool {
        self.sure() || !self.stale() || self.held.len() > self.done
    }

    /// True if held bytes may become keys.
    fn to_give(&self) -> bool {
        self.held.len() > self.done || matches!(self.state, State::TextEscape { given: false, .. })
    }

    /// True if the long wait is worth it.
    fn patient(&self) -> bool {
        let left = self.held.len().saturating_sub(self.done);
        let several = left >= 2 && self.held.len() >= 3;
        let ends = matches!(self.state, State::TextEscape { .. });
        self.sure() || ((self.expecting || several || ends) && known(&self.held) != Known::No)
    }

    /// True if the rest of an answer is known for what it is even after all waiting.
    fn lingers(&self) -> bool {
        let lost = self.over && self.state == State::Sequence;
        !lost && (self.sure() || known(&self.held) != Known::No)
    }

    /// True if all waiting is over in a string that takes any text.
    fn dormant(&self) -> bool {
        self.state == State::Text
            && self.pause == Pause::Over
            && matches!(known(&self.held), Known::No | Known::Free)
    }

    /// Gives what is held as the keys that it may be.
    fn give(&mut self, out: &mut Vec<Input>) {
        self.give_doubled(out);
        let held = std::mem::take(&mut self.held);
        if self.done == 0 {
            self.done = 1;
            match held.get(1) {
                Some(introducer) if self.head != Head::Lone => {
                    self.done = 2;
                    out.push(Input::Key(keys::typed(char::from(*introducer), true)));
                }
                _ => out.push(Input::Key(Key::new(KeyCode::Escape))),
            }
        }
        for byte in held.iter().skip(self.done) {
            self.ground(*byte, out);
        }
        self.done = held.len();
        self.held = held;
        if let State::TextEscape { lone, given: false } = self.state {
            out.push(Input::Key(Key::new(KeyCode::Escape)));
            self.state = State::TextEscape { lone, given: true };
        }
    }

    /// Ends a sequence unfinished. An ESC that ended a string is left to the caller.
    fn release(&mut self, out: &mut Vec<Input>) {
        self.settle();
        if matches!(self.state, State::TextEscape { .. }) {
            self.state = State::Text;
        }
        self.give(out);
        self.close();
    }

    /// Ends a sequence unfinished, because of a byte that is read anew.
    fn mismatch(&mut self, byte: u8, out: &mut Vec<Input>) {
        self.release(out);
        self.byte(byte, out);
    }

    /// How the held bytes and one more compare with known answers.
    fn known_with(&mut self, byte: u8) -> Known {
        self.held.push(byte);
        let known = known(&self.held);
        self.held.pop();
        known
    }

    /// What the sequence means if this is its final byte.
    fn meaning(&self, last: u8) -> Meaning {
        let body = self.held.get(2..).unwrap_or_default();
        let params = match Params::read(body) {
            Some(params) if !self.over => params,
            _ => return Meaning::Unknown,
        };
        let plain = params.marker.is_none() && params.intermediate.is_none();
        if plain && params.fields.is_empty() && matches!(last, b'I' | b'O') {
            Meaning::Report(Input::Focus(last == b'I'))
        } else if plain && params.number(0) == Some(200) && last == b'~' {
            Meaning::PasteBegins
        } else if let Some(keys) = keys::sequence(&params, last) {
            Meaning::Keys(keys)
        } else {
            let answer = answers::sequence(&params, last).map(Input::Answer);
            answer.map_or(Meaning::Unknown, Meaning::Report)
        }
    }

    /// What the string means.
    fn answer(&self) -> Meaning {
        match self.held.get(1..).and_then(<[u8]>::split_first) {
            Some((introducer, body)) if !self.over => {
                Meaning::Report(Input::Answer(answers::string(*introducer, body)))
            }
            _ => Meaning::Unknown,
        }
    }

    /// The sequence is complete.
    fn deliver(&mut self, meaning: Meaning, out: &mut Vec<Input>) {
        let alt = if self.doubled { Modifiers::ALT } else { Modifiers::NONE };
        if matches!(meaning, Meaning::Keys(_)) {
            self.doubled = false;
        }
        self.give_doubled(out);
        self.close();
        match meaning {
            Meaning::Keys(keys) => out.extend(keys.into_iter().map(|k| Input::Key(k.with(alt)))),
            Meaning::Report(input) => out.push(input),
            Meaning::PasteBegins => self.paste = Some(OpenPaste::default()),
            Meaning::Unknown => out.push(Input::Answer(Answer::Unknown)),
        }
    }
}

/// True if a piece of a control string has its end.
fn ends_text(piece: &[u8]) -> bool {
    let end = piece.iter().position(|b| matches!(b, 0..=0x1f | 0x7f));
    matches!(end.and_then(|end| piece.get(end..)), Some([BEL, ..] | [ESC, b'\\', ..]))
}
