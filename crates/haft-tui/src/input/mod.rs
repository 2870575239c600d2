//! Bytes of a terminal as keys, pastes, focus and answers.
//!
//! [`Parser`] takes the bytes wherever they were split. It has no clock. [`Parser::pending`] tells
//! how long the driver waits for more bytes before it calls [`Parser::timeout`].
//!
//! **Invariant:** an answer of the terminal never types a character, and it never takes a key that
//! a person pressed. This holds for late answers, for answers nobody asked for, and for answers
//! that arrive in pieces. `parser.rs` lists the few cases that no reader of bytes can decide.
//! **Does not know:** clocks, files, which questions were asked, what a key does.
//!
//! # Sources
//!
//! - ECMA-48, 5th edition (1991): the forms of control sequences and control strings.
//! - `XTerm` Control Sequences, patch #390: function keys, `modifyOtherKeys`, focus, bracketed
//!   paste, answers.
//! - The keyboard protocol of Kitty, <https://sw.kovidgoyal.net/kitty/keyboard-protocol/>: `CSI u`,
//!   numbers of functional keys, kinds of events, the mapping of Ctrl to C0 controls.
//! - DEC STD 070 and the VT510 manual: DA1, DA2, DECRPM, CPR.
//! - rxvt-unicode `rxvt(7)` and the Linux console `console_codes(4)`: their own key sequences.

mod answers;
mod keys;
mod known;
mod params;
mod parser;
mod paste;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use parser::Parser;
use std::ops::BitOr;
use std::time::Duration;

/// What one piece of a terminal's bytes means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed, or one character was typed.
    Key(Key),
    /// A bracketed paste, in one piece. See [`Paste`].
    Paste(Paste),
    /// The window gained the focus (true) or lost it (false): `CSI I` and `CSI O`.
    Focus(bool),
    /// The terminal answered a question, or reported something of itself.
    Answer(Answer),
}

/// A bracketed paste.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paste {
    /// What was pasted: the first 16 MiB of it. Control characters are as the terminal sent them.
    /// Bytes that are not UTF-8 became U+FFFD, so the text has at most 48 MiB.
    pub text: String,
    /// Bytes behind those 16 MiB, which are not in the text.
    pub dropped: u64,
}

/// One event of a key.
///
/// A key types its character if it is a [`KeyCode::Char`] without Ctrl, Alt and Super. Shift is
/// then part of the character: Shift+a is `A` without [`Modifiers::SHIFT`]. Shift stays set where
/// the terminal did not tell the shifted character. With Ctrl, Alt or Super a letter is in lower
/// case and Shift is a modifier: Alt+Shift+a is `a` with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which key.
    pub code: KeyCode,
    /// What was held down with it.
    pub modifiers: Modifiers,
    /// What happened to it. Terminals tell repeats and releases only if asked to.
    pub kind: KeyKind,
}

impl Key {
    /// A press without modifiers.
    pub const fn new(code: KeyCode) -> Self {
        Self { code, modifiers: Modifiers::NONE, kind: KeyKind::Press }
    }

    /// The same event with more modifiers.
    #[must_use]
    pub const fn with(mut self, modifiers: Modifiers) -> Self {
        self.modifiers = self.modifiers.with(modifiers);
        self
    }
}

/// Which key an event is about. Keys of the keypad count as the same keys elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A character. Never a control character.
    Char(char),
    /// Enter. Ctrl+j is a key of its own.
    Enter,
    /// Tab. Shift+Tab is Tab with Shift.
    Tab,
    /// Backspace: DEL and BS.
    Backspace,
    /// Escape.
    Escape,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Insert.
    Insert,
    /// Delete.
    Delete,
    /// A function key, 1 to 35.
    F(u8),
    /// Any other key: media keys, lone modifiers, locks, the middle key of the keypad.
    Other,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// It went down.
    #[default]
    Press,
    /// It is held down.
    Repeat,
    /// It was let go.
    Release,
}

/// A set of modifier keys. Kitty's Hyper counts as Super and its Meta as Alt; locks do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers(u8);

impl Modifiers {
    /// No modifier.
    pub const NONE: Self = Self(0);
    /// Shift.
    pub const SHIFT: Self = Self(1);
    /// Alt, or Option.
    pub const ALT: Self = Self(2);
    /// Ctrl.
    pub const CTRL: Self = Self(4);
    /// The Windows or Command key.
    pub const SUPER: Self = Self(8);

    /// True if all of the other set are in this one.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any of the other set is in this one.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set less the other one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Modifiers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// What a terminal tells of itself. Numbers beyond their type become its largest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Where the cursor is, from 1: CPR `CSI r ; c R` and DECXCPR `CSI ? r ; c R`.
    CursorPosition {
        /// The row, from 1.
        row: u16,
        /// The column, from 1.
        column: u16,
    },
    /// The class of the terminal and its extensions: DA1 `CSI ? ... c`. At most 255 numbers.
    DeviceAttributes(Vec<u32>),
    /// The kind and version of the terminal: DA2 `CSI > ... c`. At most 255 numbers.
    SecondaryAttributes(Vec<u32>),
    /// The state of a private mode: DECRPM `CSI ? mode ; state $ y`.
    Mode {
        /// The number of the mode.
        mode: u16,
        /// Its state.
        state: ModeState,
    },
    /// The enhancements of Kitty's keyboard protocol that are on: `CSI ? flags u`.
    KeyboardFlags(u8),
    /// A color: `OSC 10`, `OSC 11`, `OSC 4`. Alpha is not kept.
    Color {
        /// Which color.
        index: ColorIndex,
        /// Red, green and blue, each 0 to 65535.
        rgb: [u16; 3],
    },
    /// Whether the desktop prefers dark or light: `CSI ? 997 ; 1 n` and `2`.
    ColorScheme(ColorScheme),
    /// A size: `CSI 8 ; h ; w t`, `CSI 4 ; h ; w t` and `CSI 6 ; h ; w t`.
    WindowSize {
        /// What was measured, and in what unit.
        of: SizeOf,
        /// Rows, or pixels.
        height: u16,
        /// Columns, or pixels.
        width: u16,
    },
    /// The name and version of the terminal: XTVERSION `DCS > | text ST`. At most 4 KiB. It has no
    /// C0 controls; clean it before it is shown.
    Name(String),
    /// Anything else that has the form of a report: the clipboard, the mouse, a longer answer.
    Unknown,
}

/// The state of a mode in DECRPM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeState {
    /// The terminal does not know the mode (0).
    Unknown,
    /// On (1).
    Set,
    /// Off (2).
    Reset,
    /// Always on (3).
    AlwaysSet,
    /// Always off (4).
    AlwaysReset,
}

/// Which color an answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorIndex {
    /// The color of text (`OSC 10`).
    Foreground,
    /// The color behind text (`OSC 11`).
    Background,
    /// A color of the palette (`OSC 4`).
    Palette(u16),
}

/// What the desktop prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorScheme {
    /// Light text on dark.
    Dark,
    /// Dark text on light.
    Light,
}

/// What a size measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOf {
    /// The text area, in cells (8).
    TextCells,
    /// The text area, in pixels (4).
    TextPixels,
    /// One cell, in pixels (6).
    CellPixels,
}

/// Bytes are held that may be the start of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// How long to wait for more bytes before [`Parser::timeout`]. It counts from the last call of
    /// [`Parser::feed`] or [`Parser::timeout`].
    pub wait: Duration,
}
