//! Tests of the editor by what a caller sees of it.
//!
//! In tables, `|` stands for the cursor.

mod actions;
mod atoms;
mod layout;
mod past;
mod properties;

use super::*;

/// An editor with a text and a cursor, without anything to undo.
fn editor(marked: &str) -> Editor {
    let cursor = marked.find('|').expect("a cursor");
    let text = Fragment::plain(marked.replacen('|', "", 1));
    Editor { text, cursor, ..Editor::default() }
}

/// The text with the cursor in it.
fn marked(editor: &Editor) -> String {
    let mut text = editor.text().to_owned();
    text.insert(editor.cursor(), '|');
    text
}

/// Does an action that fits; returns what it did.
fn apply(editor: &mut Editor, edit: Edit) -> Applied {
    editor.apply(edit).expect("room for the text")
}

/// Does actions that fit; returns the text with the cursor.
fn after(editor: &mut Editor, edits: impl IntoIterator<Item = Edit>) -> String {
    for edit in edits {
        apply(editor, edit);
    }
    marked(editor)
}

fn insert(text: &str) -> Edit {
    Edit::Insert(text.to_owned())
}

/// Types each character as an action of its own.
fn typed(editor: &mut Editor, text: &str) {
    for c in text.chars() {
        apply(editor, insert(&c.to_string()));
    }
}

/// An editor that was given earlier texts, newest last.
fn with_history(texts: &[&str]) -> Editor {
    Editor::new(History::new(texts.iter().map(|text| (*text).to_owned()).collect()))
}

/// What the rows of a view show.
fn shown(view: &View) -> Vec<String> {
    let texts = |row: &Row| row.pieces.iter().map(|piece| piece.text.as_str()).collect();
    view.rows.iter().map(texts).collect()
}
