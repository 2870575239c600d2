//! Random actions beside a naive model, and what holds of every state.

use proptest::{collection::vec, prelude::*, sample::select};
use unicode_segmentation::UnicodeSegmentation as _;

use super::*;

/// Pieces of text with all that is special: blanks, wide signs, marks, joiners, flags, tags.
const PIECES: &[&str] = &[
    "a",
    "b",
    "Z",
    " ",
    "  ",
    "\n",
    "\t",
    "word",
    "-",
    "@",
    "/",
    "\"",
    "e\u{301}",
    "\u{301}",
    "\u{65e5}\u{672c}",
    "\u{1f469}\u{200d}\u{1f680}",
    "\u{200d}",
    "\u{1f1e9}",
    "\u{1f1ea}",
    "\u{915}\u{94d}",
    "\u{937}",
    "\u{5e9}\u{5dc}",
    "\u{fe0f}",
    "\u{600}",
    "\r",
    "\u{1b}",
    "\u{202e}",
    "\u{1100}",
    "\u{1161}",
    "\u{130}",
];

fn text() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..12).prop_map(|pieces| pieces.concat())
}

/// Actions that act on the text alone.
fn plain() -> impl Strategy<Value = Edit> {
    use Edit::*;
    let fixed = vec![
        Newline,
        DeleteBack,
        DeleteForward,
        KillWordBack,
        KillWordForward,
        KillToBlank,
        KillToLineStart,
        KillToLineEnd,
        Yank,
        YankPop,
        Transpose,
        Left,
        Right,
        WordLeft,
        WordRight,
        LineStart,
        LineEnd,
        Start,
        End,
        PageUp,
        PageDown,
        Clear,
        OpenPaste,
    ];
    prop_oneof![
        6 => text().prop_map(Insert),
        6 => select(PIECES).prop_map(|piece| Insert(piece.to_owned())),
        2 => text().prop_map(Paste),
        1 => text().prop_map(|text| Paste(format!("{}{text}", "l\n".repeat(11)))),
        1 => (0_u64..3, text()).prop_map(|(id, label)| Attach(id, label)),
        1 => text().prop_map(Set),
        1 => (0_usize..40, 0_usize..40, text()).prop_map(|(a, b, text)| Replace(a..b, text)),
        25 => select(fixed),
    ]
}

/// All actions.
fn any_edit() -> impl Strategy<Value = Edit> {
    use Edit::*;
    let past = vec![Up, Down, Undo, Redo, SearchOlder, SearchNewer, SearchAccept, SearchCancel];
    prop_oneof![2 => plain(), 1 => select(past)]
}

/// What holds of every state.
fn check(editor: &mut Editor, width: u16, height: u16) -> Result<(), TestCaseError> {
    let text = editor.text().to_owned();
    prop_assert!(editor.cursor() <= text.len() && text.is_char_boundary(editor.cursor()));
    prop_assert!(borders(editor).contains(&editor.cursor()), "{:?}", marked(editor));
    prop_assert_eq!(paste::clean(&text), (text.clone(), 0));
    check_view(&editor.clone().view(width, u16::MAX), editor, width)?;
    let (top, whole) = (editor.view(width, height), editor.clone().view(width, u16::MAX));
    let rows = usize::from(height.max(1));
    prop_assert_eq!(top.rows.len(), rows.min(whole.rows.len()));
    let first = whole.rows.iter().position(|row| row.range == top.rows[0].range);
    let first = first.expect("a row of the text");
    prop_assert_eq!(&whole.rows[first..first + top.rows.len()], &top.rows[..]);
    prop_assert_eq!((first + top.row, top.column), (whole.row, whole.column));
    prop_assert_eq!(top.more_above, first > 0);
    prop_assert_eq!(top.more_below, first + top.rows.len() < whole.rows.len());
    let mut fresh = editor.clone();
    fresh.layout = Layout::default();
    prop_assert_eq!(fresh.view(width, u16::MAX), whole);
    Ok(())
}

/// What holds of a view of all rows.
fn check_view(view: &View, editor: &Editor, width: u16) -> Result<(), TestCaseError> {
    let (text, width) = (editor.text(), usize::from(width.max(1)));
    let mut at = 0;
    for (index, row) in view.rows.iter().enumerate() {
        if row.starts_line && index > 0 {
            prop_assert_eq!(&text[at..=at], "\n");
            at += 1;
        }
        prop_assert_eq!(row.range.start, at);
        at = row.range.end;
        let row_text = &text[row.range.clone()];
        prop_assert!(!row_text.contains('\n'));
        let signs = row_text.trim_end_matches([' ', '\t']).graphemes(true).count();
        prop_assert!(row.columns <= width || signs == 1, "{:?} at {width}", row);
        let mut column = 0;
        for piece in &row.pieces {
            prop_assert_eq!(piece.column, column);
            let columns = |sign: &str| unicode_width::UnicodeWidthStr::width(sign);
            column += piece.text.graphemes(true).map(columns).sum::<usize>();
            if piece.kind == PieceKind::Text {
                prop_assert_eq!(&piece.text, &text[piece.range.clone()]);
            }
        }
        prop_assert_eq!(row.columns, column);
    }
    prop_assert_eq!(at, text.len());
    let row = &view.rows[view.row];
    prop_assert!(row.range.start <= editor.cursor() && editor.cursor() <= row.range.end);
    prop_assert!(view.column <= row.columns.max(width));
    Ok(())
}

/// All places where a cursor may stand, by the definition.
fn borders(editor: &Editor) -> Vec<usize> {
    let (text, mut at, mut borders) = (editor.text(), 0, vec![0]);
    for atom in editor.text.atoms() {
        let before = text[at..atom.range.start].grapheme_indices(true);
        borders.extend(before.map(|(start, sign)| at + start + sign.len()));
        borders.push(atom.range.end);
        at = atom.range.end;
    }
    let rest = text[at..].grapheme_indices(true);
    borders.extend(rest.map(|(start, sign)| at + start + sign.len()));
    borders
}

/// A text as a list of graphemes and a cursor among them: what plain actions have to do.
#[derive(Debug)]
struct Model {
    text: String,
    cursor: usize,
}

impl Model {
    fn borders(&self) -> Vec<usize> {
        let ends = self.text.grapheme_indices(true).map(|(at, sign)| at + sign.len());
        std::iter::once(0).chain(ends).collect()
    }

    fn before(&self) -> usize {
        self.borders().into_iter().rfind(|at| *at < self.cursor).unwrap_or(0)
    }

    fn behind(&self) -> usize {
        let end = self.text.len();
        self.borders().into_iter().find(|at| *at > self.cursor).unwrap_or(end)
    }

    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.text.replace_range(range.clone(), text);
        let cursor = range.start + text.len();
        self.cursor = self.borders().into_iter().find(|at| *at >= cursor).unwrap_or(0);
    }

    fn word_start(&self, is_word: fn(char) -> bool) -> usize {
        let before: Vec<_> = self.text[..self.cursor].char_indices().collect();
        let rest = before.iter().rposition(|(_, c)| is_word(*c)).map_or(0, |last| last + 1);
        let start = before[..rest].iter().rposition(|(_, c)| !is_word(*c)).map_or(0, |at| at + 1);
        before.get(start).filter(|_| rest > 0).map_or(0, |(at, _)| *at)
    }

    fn apply(&mut self, edit: &Edit) {
        let line_start = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let line_end =
            self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at);
        let (at, before, behind) = (self.cursor, self.before(), self.behind());
        match edit {
            Edit::Insert(text) | Edit::Paste(text) => self.replace(at..at, text),
            Edit::Newline => self.replace(at..at, "\n"),
            Edit::DeleteBack => self.replace(before..at, ""),
            Edit::DeleteForward => self.replace(at..behind, ""),
            Edit::KillWordBack => self.replace(self.word_start(char::is_alphanumeric)..at, ""),
            Edit::KillToBlank => self.replace(self.word_start(|c| !c.is_whitespace())..at, ""),
            Edit::KillToLineStart if line_start == at => self.replace(before..at, ""),
            Edit::KillToLineStart => self.replace(line_start..at, ""),
            Edit::KillToLineEnd if line_end == at => self.replace(at..behind, ""),
            Edit::KillToLineEnd => self.replace(at..line_end, ""),
            Edit::Clear => self.replace(0..self.text.len(), ""),
            Edit::Left => self.cursor = before,
            Edit::Right => self.cursor = behind,
            Edit::WordLeft => self.cursor = self.word_start(char::is_alphanumeric),
            Edit::LineStart => self.cursor = line_start,
            Edit::LineEnd => self.cursor = line_end,
            Edit::Start => self.cursor = 0,
            Edit::End => self.cursor = self.text.len(),
            _ => {}
        }
    }
}

/// Actions that the model knows, on texts of which every character is a word, a blank or a sign.
fn modelled() -> impl Strategy<Value = Edit> {
    use Edit::*;
    let pieces =
        vec!["a", "bc", " ", "\n", "-", "\u{65e5}", "\u{e9}", "\u{1f1e9}", "\u{1f680}", "\t"];
    let fixed = vec![
        Newline,
        DeleteBack,
        DeleteForward,
        KillWordBack,
        KillToBlank,
        KillToLineStart,
        KillToLineEnd,
        Clear,
        Left,
        Left,
        Left,
        Right,
        WordLeft,
        LineStart,
        LineEnd,
        Start,
        End,
    ];
    prop_oneof![
        1 => vec(select(pieces), 0..6).prop_map(|pieces| Insert(pieces.concat())),
        1 => select(fixed),
    ]
}

/// Whether a text is still at hand: in the box, by undo, or by a yank.
fn is_at_hand(editor: &Editor, wanted: &str) -> bool {
    let mut editor = editor.clone();
    loop {
        if editor.expanded() == wanted {
            return true;
        }
        if apply(&mut editor, Edit::Undo).effect == Effect::Nothing {
            return false;
        }
    }
}

proptest! {
    #[test]
    fn actions_do_what_the_model_does(edits in vec(modelled(), 0..40)) {
        let mut editor = editor("|");
        let mut model = Model { text: String::new(), cursor: 0 };
        for edit in edits {
            model.apply(&edit);
            apply(&mut editor, edit.clone());
            let expected = (model.text.as_str(), model.cursor);
            prop_assert_eq!((editor.text(), editor.cursor()), expected, "after {:?}", edit);
        }
    }

    #[test]
    fn every_state_is_sound(
        edits in vec(any_edit(), 0..30), width in 0_u16..12, height in 0_u16..6,
    ) {
        let mut editor = with_history(&["one", "two words\nand more", "e\u{301}\u{65e5}"]);
        editor.layout.apart = 4;
        for edit in edits {
            apply(&mut editor, edit);
            check(&mut editor, width, height)?;
        }
    }

    #[test]
    fn undo_goes_to_the_start_and_redo_to_the_end(edits in vec(plain(), 0..30)) {
        let mut editor = editor("first te|xt");
        for edit in edits {
            apply(&mut editor, edit);
        }
        let (text, expanded) = (editor.text.clone(), editor.expanded());
        while apply(&mut editor, Edit::Undo).effect == Effect::Changed {}
        prop_assert_eq!(editor.text(), "first text");
        while apply(&mut editor, Edit::Redo).effect == Effect::Changed {}
        prop_assert_eq!(&editor.text, &text);
        prop_assert_eq!(editor.take().text, expanded);
    }

    #[test]
    fn walking_searching_and_typing_lose_nothing(
        before in vec(plain(), 1..10), past in vec((any_past(), text()), 0..12),
    ) {
        let mut editor = with_history(&["one", "two words\nand more", "a\u{301}b"]);
        for edit in before {
            apply(&mut editor, edit);
        }
        let draft = editor.expanded();
        apply(&mut editor, Edit::SearchOlder);
        for (edit, text) in past {
            let edit = if edit == Edit::Newline { Edit::Insert(text) } else { edit };
            apply(&mut editor, edit);
            prop_assert!(is_at_hand(&editor, &draft), "{:?} {:?}", draft, marked(&editor));
        }
    }

    #[test]
    fn a_draft_is_submitted_or_can_be_yanked(
        before in vec(plain(), 1..10), past in vec(any_past(), 0..12), end in text(),
    ) {
        let mut editor = with_history(&["one", "two words\nand more", "a\u{301}b"]);
        for edit in before {
            apply(&mut editor, edit);
        }
        let draft = editor.expanded();
        for edit in past.into_iter().filter(|edit| *edit != Edit::Newline) {
            apply(&mut editor, edit);
        }
        let is_walking = editor.is_walking();
        apply(&mut editor, Edit::Replace(0..0, end));
        let taken = editor.take();
        prop_assert_eq!(taken.drafts, usize::from(is_walking && !draft.is_empty()));
        if taken.drafts == 1 {
            apply(&mut editor, Edit::Yank);
            prop_assert_eq!(editor.expanded(), draft);
        } else {
            prop_assert!(taken.text.ends_with(&draft));
        }
    }

    #[test]
    fn a_cancelled_search_leaves_all_as_it_was(
        before in vec(plain(), 0..10), ups in 0_usize..3, queries in vec(any_query(), 0..12),
    ) {
        let mut editor = with_history(&["one", "two words\nand more", "a\u{301}b"]);
        for edit in before {
            apply(&mut editor, edit);
        }
        after(&mut editor, std::iter::repeat_n(Edit::Up, ups));
        let (text, cursor) = (editor.text.clone(), editor.cursor());
        apply(&mut editor, Edit::SearchOlder);
        for edit in queries {
            apply(&mut editor, edit);
        }
        apply(&mut editor, Edit::SearchCancel);
        prop_assert_eq!((&editor.text, editor.cursor()), (&text, cursor));
    }

    #[test]
    fn names_are_within_the_text(pieces in text(), at in 0_usize..40) {
        let (text, _) = paste::clean(&pieces);
        let mut editor = editor(&format!("{text}|"));
        after(&mut editor, std::iter::repeat_n(Edit::Left, at));
        if let Some(token) = editor.token_at_cursor() {
            let whole = &text[token.range.clone()];
            prop_assert!(whole.starts_with('@') && !whole.contains('\n'), "{whole:?}");
            prop_assert!(token.range.start < editor.cursor() && editor.cursor() <= token.range.end);
            prop_assert!(token.name.starts_with(&token.before));
            prop_assert!(whole.contains(&token.name));
        }
    }
}

/// Steps through the history, and `Newline` for a text that is typed.
fn any_past() -> impl Strategy<Value = Edit> {
    use Edit::*;
    select(vec![
        Up,
        Up,
        Down,
        Newline,
        SearchOlder,
        SearchNewer,
        SearchAccept,
        SearchCancel,
        Left,
        PageUp,
    ])
}

/// Steps within a search.
fn any_query() -> impl Strategy<Value = Edit> {
    use Edit::*;
    let letters = select(vec!["o", "a", "n", "b", "and", "\u{301}"]);
    prop_oneof![
        letters.prop_map(|text| Insert(text.to_owned())),
        select(vec![DeleteBack, SearchOlder, SearchNewer]),
    ]
}
