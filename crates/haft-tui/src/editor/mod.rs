//! A text of several lines that a person edits: what an action does to it, and what is shown of it.
//!
//! The caller maps keys to [`Edit`]s, gives them to [`Editor::apply`], and draws [`Editor::view`].
//! [`Editor::take`] submits the text.
//!
//! A long paste or an attachment is an atom: the text holds a label for it, such as
//! `[pasted 2000 lines #3]`. No cursor stands within a label, and it is deleted as one.
//!
//! Words are those of readline. For most actions they are runs of letters and digits. For
//! [`Edit::KillToBlank`] they are what stands between white space. An atom is a word of its own.
//! Words and kills go over line ends. A line is what stands between line feeds, not a row.
//!
//! **Invariant:** the cursor is at a border of graphemes, within the text, and inside of no atom.
//! The text and what stands behind its atoms weigh at most [`MOST_TEXT`]. The text holds no control
//! character but line feeds and tabs, and no hidden character. Walking the history, searching it,
//! opening a paste and undo lose nothing that was typed.
//!
//! **Does not know:** keys, the terminal, the prompt, files, clocks.

mod buffer;
mod history;
mod kill;
mod layout;
mod paste;
mod token;
mod undo;
mod walk;
mod word;

#[cfg(test)]
mod tests;

use std::{fmt, ops::Range};

use self::{
    buffer::{Content, Fragment},
    kill::{Kills, Side},
    layout::Layout,
    undo::{Change, Join, Undo},
    walk::{Search, Walk},
    word::Kind,
};
pub use self::{
    history::{History, MOST_BYTES as MOST_HISTORY_BYTES, MOST_TEXTS},
    kill::MOST_KILLS,
    layout::{Piece, PieceKind, Row, TAB, View},
    paste::{PASTE_CHARACTERS, PASTE_LINES},
    token::Token,
    undo::{MOST_BYTES as MOST_UNDO_BYTES, MOST_CHANGES},
    walk::SearchView,
};

/// The most that a text weighs: its bytes, those of its pastes, and 64 for each atom.
pub const MOST_TEXT: usize = 16 << 20;

/// What a person does.
///
/// Where nothing is to be done, such as at an end of the text, an action does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Types text at the cursor. While searching, it goes to the query.
    Insert(String),
    /// Types a line feed.
    Newline,
    /// Inserts a paste. Of more than [`PASTE_LINES`] lines or [`PASTE_CHARACTERS`] characters it
    /// becomes an atom. While searching, its first line goes to the query.
    Paste(String),
    /// Inserts an attachment, shown as `[label]`. The number is the caller's and is given back.
    Attach(u64, String),
    /// Puts the text of the paste at the cursor in the place of its marker. The paste is the one
    /// behind the cursor, or else the one before it.
    OpenPaste,
    /// Deletes the grapheme before the cursor. While searching, the last one of the query.
    DeleteBack,
    /// Deletes the grapheme behind the cursor.
    DeleteForward,
    /// Kills to the start of the word before the cursor (Alt-Backspace).
    KillWordBack,
    /// Kills to the end of the word behind the cursor (Alt-D).
    KillWordForward,
    /// Kills to the white space before the cursor (Ctrl-W).
    KillToBlank,
    /// Kills to the start of the line, or the line feed before it from there (Ctrl-U).
    KillToLineStart,
    /// Kills to the end of the line, or the line feed there (Ctrl-K).
    KillToLineEnd,
    /// Inserts the text that was killed last (Ctrl-Y). Kills that directly follow each other are
    /// one.
    Yank,
    /// Directly after a yank, puts the kill before it in its place (Alt-Y).
    YankPop,
    /// Exchanges the graphemes around the cursor, at the end of a line the last two (Ctrl-T).
    Transpose,
    /// One grapheme to the left.
    Left,
    /// One grapheme to the right.
    Right,
    /// To the start of a word (Alt-B).
    WordLeft,
    /// To the end of a word (Alt-F).
    WordRight,
    /// To the start of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
    /// To the start of the text.
    Start,
    /// To the end of the text.
    End,
    /// One row up. From the first row, to the next older text of the history.
    Up,
    /// One row down. From the last row, to the next newer text of the history, at last the draft.
    Down,
    /// As many rows up as the last view had room for.
    PageUp,
    /// As many rows down as the last view had room for.
    PageDown,
    /// Takes the last change back. While an earlier text is shown, gives the draft back.
    Undo,
    /// Makes the change again that was taken back last.
    Redo,
    /// Empties the text.
    Clear,
    /// Replaces the whole text. Attachments whose labels the new text still holds are kept.
    Set(String),
    /// Replaces a range of bytes, widened to whole characters and atoms. The cursor goes behind it.
    Replace(Range<usize>, String),
    /// Starts to search in the history, or goes to the next older match (Ctrl-R).
    SearchOlder,
    /// While searching, goes to the next newer match (Ctrl-S).
    SearchNewer,
    /// Ends the search and keeps the text that it shows. Every other action does so too, first.
    SearchAccept,
    /// Ends the search and shows again what was there before.
    SearchCancel,
}

/// What an action did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What is to be drawn anew.
    pub effect: Effect,
    /// How many hidden characters were left out of a text that was to be inserted.
    pub removed: usize,
}

/// How much is to be drawn anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the action had nothing to do.
    Nothing,
    /// The cursor moved, or the search changed.
    Moved,
    /// The text changed.
    Changed,
}

/// A text would weigh more than [`MOST_TEXT`]. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Bytes that it would weigh.
    pub bytes: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = MOST_TEXT >> 20;
        write!(to, "the text would have {} bytes; the most is {most} MiB", self.bytes)
    }
}

impl std::error::Error for TooLong {}

/// What is submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The text, with the pastes in place of their markers.
    pub text: String,
    /// Where the label of each attachment is in the text, in bytes, and its number. In order.
    pub attachments: Vec<(Range<usize>, u64)>,
    /// Drafts that earlier texts took the place of and that were not given back. They are the
    /// newest kills now: a yank brings the last one.
    pub drafts: usize,
}

/// What the last action was, where the next one may go on from it.
#[derive(Clone, Debug, Default)]
enum Last {
    #[default]
    Other,
    /// Text was typed; whether its end is a blank.
    Typed(bool),
    /// Graphemes were deleted on a side; whether the last one was blank.
    Deleted(Side, bool),
    Kill,
    /// A text was yanked to a range.
    Yank(Range<usize>),
}

/// A text, its cursor, and all that actions need.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    text: Fragment,
    cursor: usize,
    undo: Undo,
    kills: Kills,
    history: History,
    layout: Layout,
    /// The column that moves by rows aim at.
    column: Option<usize>,
    walk: Option<Walk>,
    search: Option<Search>,
    last: Last,
    /// How many pastes were numbered since the last submission.
    pastes: u32,
    /// How often the text was changed.
    revision: u64,
}

impl Editor {
    /// An empty text.
    pub fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    /// The text as it is shown, with labels for atoms.
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// The offset of the cursor in bytes of the text.
    pub const fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether the text has no character.
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with the pastes in place of their markers, as for an external editor.
    pub fn expanded(&self) -> String {
        self.text.expanded().0
    }

    /// The texts that were submitted earlier.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// The word with `@` that the cursor is in or directly behind, for a completion.
    ///
    /// It stands at the start of a line, behind a blank or behind an atom. A name with blanks is in
    /// quotes: `@"a b"`. Without a second quote it ends at the cursor.
    pub fn token_at_cursor(&self) -> Option<Token> {
        token::file(&self.text, self.cursor)
    }

    /// The first word where the text begins with `/`, wherever the cursor is, for a completion.
    pub fn command_prefix(&self) -> Option<Token> {
        token::command(&self.text, self.cursor)
    }

    /// What to show in a window of so many columns and rows, the cursor among them.
    ///
    /// The window moves as little as it can. Moves by rows go by the last width, 80 before the
    /// first call. A width or height of 0 counts as 1. At the end of a full row the cursor is at
    /// the column `width`, so the caller keeps one more column free.
    pub fn view(&mut self, width: u16, height: u16) -> View {
        self.layout.view(&self.text, self.cursor, width.into(), height.into())
    }

    /// Does an action.
    ///
    /// # Errors
    ///
    /// [`TooLong`] where the text would weigh more than [`MOST_TEXT`].
    pub fn apply(&mut self, edit: Edit) -> Result<Applied, TooLong> {
        let (revision, cursor) = (self.revision, self.cursor);
        let is_search = self.search.is_some() || edit == Edit::SearchOlder;
        let removed = if is_search { self.search_edit(edit)? } else { self.edit(edit)? };
        let effect = if self.revision != revision {
            Effect::Changed
        } else if self.cursor != cursor || is_search {
            Effect::Moved
        } else {
            Effect::Nothing
        };
        Ok(Applied { effect, removed })
    }

    /// Submits the text: returns it, adds it to the history, and empties the editor.
    ///
    /// What could be undone no longer can. Kills stay.
    pub fn take(&mut self) -> Submission {
        let (text, attachments) = self.text.expanded();
        let mut drafts = 0;
        for draft in self.undo.drafts() {
            self.kills.push(draft.clone(), Side::Behind, false);
            drafts += 1;
        }
        self.history.push(text.clone());
        self.splice(0..self.text.len(), &Fragment::default());
        (self.cursor, self.pastes) = (0, 0);
        (self.undo, self.column, self.last) = (Undo::default(), None, Last::Other);
        (self.walk, self.search) = (None, None);
        Submission { text, attachments, drafts }
    }

    /// Does an action outside of a search; returns how many hidden characters were removed.
    fn edit(&mut self, edit: Edit) -> Result<usize, TooLong> {
        let last = std::mem::take(&mut self.last);
        if !matches!(edit, Edit::Up | Edit::Down | Edit::PageUp | Edit::PageDown) {
            self.column = None;
        }
        let at = self.cursor;
        match edit {
            Edit::Insert(text) => return self.insert(&text, &last),
            Edit::Newline => return self.insert("\n", &last),
            Edit::Paste(text) => return self.paste(&text),
            Edit::Attach(id, label) => {
                let (atom, removed) = paste::attached(id, &label);
                return self.put(at..at, &atom).map(|()| removed);
            }
            Edit::Set(text) => {
                let (text, removed) = paste::clean(&text);
                let text = paste::linked(text, &self.text);
                return self.put(0..self.text.len(), &text).map(|()| removed);
            }
            Edit::Replace(range, text) => {
                let (text, removed) = paste::clean(&text);
                let (range, text) = (self.text.whole(&range), Fragment::plain(text));
                return self.put(range, &text).map(|()| removed);
            }
            Edit::Yank => return self.yank(at..at).map(|()| 0),
            Edit::YankPop => {
                if let Last::Yank(range) = last {
                    self.kills.rotate();
                    return self.yank(range).map(|()| 0);
                }
            }
            Edit::OpenPaste => self.open_paste(),
            Edit::Clear => self.remove(0..self.text.len(), Join::Never),
            Edit::Transpose => self.transpose(),
            Edit::DeleteBack => self.delete(self.text.previous(at)..at, Side::Before, &last),
            Edit::DeleteForward => self.delete(at..self.text.next(at), Side::Behind, &last),
            Edit::Undo => self.undo(),
            Edit::Redo => self.redo(),
            edit => self.kill_or_move(edit, &last),
        }
        Ok(0)
    }

    fn kill_or_move(&mut self, edit: Edit, last: &Last) {
        let (text, at) = (&self.text, self.cursor);
        let follows = matches!(last, Last::Kill);
        let before = |start| (start..at, Side::Before);
        let behind = |end| (at..end, Side::Behind);
        let (range, side) = match edit {
            Edit::KillWordBack => before(word::start(text, at, Kind::Alphanumeric)),
            Edit::KillToBlank => before(word::start(text, at, Kind::NonBlank)),
            Edit::KillWordForward => behind(word::end(text, at, Kind::Alphanumeric)),
            Edit::KillToLineStart => match text.line_start(at) {
                start if start == at => before(text.previous(at)),
                start => before(start),
            },
            Edit::KillToLineEnd => match text.line_end(at) {
                end if end == at => behind(text.next(at)),
                end => behind(end),
            },
            edit => return self.go(&edit),
        };
        self.kill(range, side, follows);
    }

    fn go(&mut self, edit: &Edit) {
        let (text, at) = (&self.text, self.cursor);
        self.cursor = match edit {
            Edit::Left => text.previous(at),
            Edit::Right => text.next(at),
            Edit::WordLeft => word::start(text, at, Kind::Alphanumeric),
            Edit::WordRight => word::end(text, at, Kind::Alphanumeric),
            Edit::LineStart => text.line_start(at),
            Edit::LineEnd => text.line_end(at),
            Edit::Start => 0,
            Edit::End => text.len(),
            Edit::Up => return self.up(),
            Edit::Down => return self.down(),
            Edit::PageUp => {
                let (column, rows) = (self.wanted(), self.layout.height());
                self.layout.up(&self.text, at, column, rows).unwrap_or(at)
            }
            Edit::PageDown => {
                let (column, rows) = (self.wanted(), self.layout.height());
                self.layout.down(&self.text, at, column, rows).unwrap_or(at)
            }
            _ => at,
        };
    }

    /// The column that moves by rows aim at; the one of the cursor at the first of them.
    fn wanted(&mut self) -> usize {
        *self.column.get_or_insert_with(|| self.layout.column(&self.text, self.cursor))
    }

    /// Replaces a range and returns what was there. Nothing but the cursor is brought in line.
    fn splice(&mut self, range: Range<usize>, with: &Fragment) -> Fragment {
        self.layout.splice(range.start, range.len(), with.len());
        self.revision += 1;
        self.text.splice(range, with)
    }

    /// Replaces a range as a change that can be undone.
    fn change(&mut self, range: Range<usize>, with: &Fragment, cursor: usize, join: Join) {
        if range.is_empty() && with.is_empty() {
            return;
        }
        let (before, start) = (self.cursor, range.start);
        let put = self.splice(range, with);
        self.cursor = self.text.ceil(cursor);
        let range = start..start + with.len();
        // The earlier text is the person's own from here on; its draft can be had by undo.
        self.walk = None;
        let change = Change { range, put, before, after: self.cursor, is_draft: false };
        self.undo.push(change, join);
    }

    fn remove(&mut self, range: Range<usize>, join: Join) {
        let start = range.start;
        self.change(range, &Fragment::default(), start, join);
    }

    /// Replaces a range by a text, where there is room for it; the cursor goes behind it.
    fn put(&mut self, range: Range<usize>, with: &Fragment) -> Result<(), TooLong> {
        self.put_joined(range, with, Join::Never)
    }

    fn put_joined(
        &mut self,
        range: Range<usize>,
        with: &Fragment,
        join: Join,
    ) -> Result<(), TooLong> {
        let removed = self.text.copy(range.clone()).weight();
        let bytes = self.text.weight() - removed + with.weight();
        if bytes > MOST_TEXT {
            return Err(TooLong { bytes });
        }
        let cursor = range.start + with.len();
        self.change(range, with, cursor, join);
        Ok(())
    }

    fn insert(&mut self, text: &str, last: &Last) -> Result<usize, TooLong> {
        let (text, removed) = paste::clean(text);
        if text.is_empty() {
            return Ok(removed);
        }
        let starts_blank = text.starts_with(char::is_whitespace);
        let ends_blank = text.ends_with(char::is_whitespace);
        let goes_on = matches!(last, Last::Typed(after_blank) if starts_blank || !after_blank);
        let join = if goes_on { Join::Typed } else { Join::Never };
        self.put_joined(self.cursor..self.cursor, &Fragment::plain(text), join)?;
        self.last = Last::Typed(ends_blank);
        Ok(removed)
    }

    fn paste(&mut self, text: &str) -> Result<usize, TooLong> {
        let (text, removed) = paste::clean(text);
        let number = self.pastes.saturating_add(1);
        let text = paste::pasted(text, number);
        let is_numbered = !text.atoms().is_empty();
        self.put(self.cursor..self.cursor, &text)?;
        if is_numbered {
            self.pastes = number;
        }
        Ok(removed)
    }

    fn open_paste(&mut self) {
        let (text, at) = (&self.text, self.cursor);
        let at_cursor = [text.starting(at), text.ending(at)].into_iter().flatten();
        let opened = { at_cursor }.find_map(|atom| match &atom.content {
            Content::Paste(paste) => Some((atom.range.clone(), paste.to_string())),
            Content::Attachment(_) => None,
        });
        if let Some((range, paste)) = opened {
            let end = range.start + paste.len();
            let cursor = if at == range.start { at } else { end };
            self.change(range, &Fragment::plain(paste), cursor, Join::Never);
        }
    }

    fn delete(&mut self, range: Range<usize>, side: Side, last: &Last) {
        let text = self.text.slice(range.clone());
        let is_blank = text.chars().all(char::is_whitespace);
        let goes_on = matches!(last, Last::Deleted(before, after_blank)
            if *before == side && (is_blank || !after_blank));
        let join = match side {
            _ if !goes_on => Join::Never,
            Side::Before => Join::Back,
            Side::Behind => Join::Forward,
        };
        self.remove(range, join);
        self.last = Last::Deleted(side, is_blank);
    }

    fn kill(&mut self, range: Range<usize>, side: Side, follows: bool) {
        if !range.is_empty() {
            self.kills.push(self.text.copy(range.clone()), side, follows);
            self.remove(range, Join::Never);
        } else if !follows {
            return;
        }
        self.last = Last::Kill;
    }

    fn yank(&mut self, range: Range<usize>) -> Result<(), TooLong> {
        let Some(text) = self.kills.current().cloned() else { return Ok(()) };
        let yanked = range.start..range.start + text.len();
        self.put(range, &text)?;
        self.last = Last::Yank(yanked);
        Ok(())
    }

    fn transpose(&mut self) {
        let text = &self.text;
        let (start, end) = (text.line_start(self.cursor), text.line_end(self.cursor));
        let middle = if self.cursor == end { text.previous(end) } else { self.cursor };
        if middle <= start || middle >= end {
            return;
        }
        let range = text.previous(middle)..text.next(middle);
        let mut exchanged = text.copy(middle..range.end);
        exchanged.push(&text.copy(range.start..middle));
        let cursor = range.end;
        self.change(range, &exchanged, cursor, Join::Never);
    }

    fn undo(&mut self) {
        if self.walk.is_some() {
            return self.return_to_draft();
        }
        let (text, layout) = (&mut self.text, &mut self.layout);
        let cursor = self.undo.undo(|range, put| {
            layout.splice(range.start, range.len(), put.len());
            text.splice(range, put)
        });
        self.jump(cursor);
    }

    fn redo(&mut self) {
        let (text, layout) = (&mut self.text, &mut self.layout);
        let cursor = self.undo.redo(|range, put| {
            layout.splice(range.start, range.len(), put.len());
            text.splice(range, put)
        });
        self.jump(cursor);
    }

    fn jump(&mut self, cursor: Option<usize>) {
        if let Some(cursor) = cursor {
            self.cursor = self.text.ceil(cursor);
            self.revision += 1;
        }
    }
}
