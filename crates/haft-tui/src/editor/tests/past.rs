//! The history: walking and searching it.

use super::*;
use Edit::{Down, SearchAccept, SearchCancel, SearchNewer, SearchOlder, Undo, Up, Yank};

#[test]
fn walking_gives_the_draft_back() {
    let mut editor = with_history(&["one", "two\nlines", "three"]);
    typed(&mut editor, "draft x");
    after(&mut editor, [Undo, Edit::Left]);
    let walk = [
        (Up, "three|"),
        (Up, "two|\nlines"),
        (Up, "one|"),
        (Up, "one|"),
        (Down, "two\nlines|"),
        (Down, "three|"),
        (Down, "draft| "),
        (Down, "draft| "),
        // What could be made again still can.
        (Edit::Redo, "draft x|"),
    ];
    for (edit, expected) in walk {
        assert_eq!(after(&mut editor, [edit]), expected);
    }
    assert_eq!(after(&mut editor, [Up, Edit::Redo, Undo]), "draft x|");
    assert_eq!(after(&mut editor, [Undo]), "draft |");
}

#[test]
fn the_draft_of_a_changed_text_is_an_undo_away() {
    let mut editor = with_history(&["one", "two"]);
    typed(&mut editor, "draft");
    assert_eq!(after(&mut editor, [Up, Up, insert("!")]), "one!|");
    // The changed text is a draft of its own.
    assert_eq!(after(&mut editor, [Up, Down]), "one!|");
    assert_eq!(after(&mut editor, [Undo]), "one|");
    assert_eq!(after(&mut editor, [Undo]), "draft|");
    assert_eq!(after(&mut editor, [Edit::Redo, Edit::Redo]), "one!|");
}

#[test]
fn a_draft_that_was_not_given_back_is_the_newest_kill() {
    let mut editor = with_history(&["one"]);
    typed(&mut editor, "draft");
    after(&mut editor, [Up]);
    let taken = editor.take();
    assert_eq!((taken.text.as_str(), taken.drafts), ("one", 1));
    assert_eq!(after(&mut editor, [Yank]), "draft|");
    assert_eq!(after(&mut editor, [Up, insert("!")]), "one!|");
    assert_eq!(editor.take().drafts, 1);
    assert_eq!(after(&mut editor, [Yank]), "draft|");
    assert_eq!(editor.take().drafts, 0);
    assert_eq!(editor.history().texts().collect::<Vec<_>>(), ["one", "one!", "draft"]);
}

#[test]
fn the_history_is_folded_and_bounded() {
    let texts = ["a", "a", "", " \n", "b", "a\u{1b}", "a"];
    let editor = with_history(&texts);
    assert_eq!(editor.history().texts().collect::<Vec<_>>(), ["a", "b", "a"]);
    let many = (0..MOST_TEXTS + 5).map(|text| text.to_string()).collect();
    let mut history = History::new(many);
    assert_eq!((history.len(), history.get(0)), (MOST_TEXTS, Some("5")));
    history.push("x".to_owned());
    assert_eq!((history.len(), history.get(0)), (MOST_TEXTS, Some("6")));
    for text in ["a", "b", "c", "d", "e"] {
        history.push(text.repeat(MOST_TEXT));
    }
    assert_eq!(history.len(), MOST_HISTORY_BYTES / MOST_TEXT);
    history.push("x".repeat(MOST_TEXT + 1));
    assert!(history.get(3).is_some_and(|text| text.starts_with('e')));
}

/// The text with the match in brackets, or `!` where the last step had none.
fn search_shown(editor: &Editor) -> String {
    let mut text = editor.text().to_owned();
    let Some(search) = editor.search() else { return text };
    if let Some(range) = search.range {
        text.insert(range.end, ']');
        text.insert(range.start, '[');
    }
    if search.has_failed {
        text.push('!');
    }
    text
}

#[test]
fn searching_goes_through_texts_that_match() {
    let mut editor = with_history(&["Fix it", "fix that", "other", "fix that", "a Fix"]);
    typed(&mut editor, "draft");
    let steps = [
        (SearchOlder, "draft"),
        (insert("f"), "a [F]ix"),
        (insert("ix"), "a [Fix]"),
        (SearchOlder, "[fix] that"),
        // The same text is not shown twice in a row.
        (SearchOlder, "[Fix] it"),
        (SearchOlder, "[Fix] it!"),
        (SearchNewer, "[fix] that"),
        (SearchNewer, "a [Fix]"),
        (SearchNewer, "a [Fix]!"),
        (insert("z"), "a Fix!"),
        (Edit::DeleteBack, "a [Fix]"),
        (Edit::DeleteBack, "a [Fi]x"),
        (insert(" "), "a Fix!"),
        (Edit::DeleteBack, "a [Fi]x"),
        (Edit::DeleteBack, "a [F]ix"),
        (Edit::DeleteBack, "draft"),
        (insert("F"), "a [F]ix"),
        (SearchOlder, "[F]ix it"),
        (SearchCancel, "draft"),
    ];
    for (step, (edit, expected)) in steps.into_iter().enumerate() {
        apply(&mut editor, edit);
        assert_eq!(search_shown(&editor), expected, "step {step}");
    }
    assert_eq!((marked(&editor).as_str(), editor.search()), ("draft|", None));
}

#[test]
fn a_search_that_is_accepted_goes_on_as_a_walk() {
    let mut editor = with_history(&["one", "two", "three"]);
    typed(&mut editor, "draft");
    after(&mut editor, [Edit::Left, SearchOlder, insert("tw"), SearchAccept]);
    assert_eq!((marked(&editor).as_str(), editor.is_walking()), ("|two", true));
    assert_eq!(after(&mut editor, [Up]), "one|");
    // A search within a walk is cancelled to where it started.
    assert_eq!(after(&mut editor, [SearchOlder, insert("three")]), "|three");
    assert_eq!(after(&mut editor, [SearchCancel]), "one|");
    assert_eq!(after(&mut editor, [SearchOlder, insert("three"), Edit::End]), "three|");
    assert_eq!(editor.search(), None);
    assert_eq!(after(&mut editor, [Down]), "draf|t");
    // A change ends the search too.
    assert_eq!(after(&mut editor, [SearchOlder, insert("two"), Edit::Newline]), "\n|two");
    assert_eq!(after(&mut editor, [Undo, Undo]), "draf|t");
    assert_eq!(after(&mut editor, [SearchOlder, insert("two"), Undo]), "draf|t");
}

#[test]
fn a_match_in_another_case_has_its_own_length() {
    use super::super::history::Query;
    // The small letter of the first one takes a byte more, and that of the last one a byte less.
    let text = "\u{130}\u{23a}x\u{212a}y";
    assert_eq!(Query::new("x").find(text), Some(4..5));
    assert_eq!(Query::new("k").find(text), Some(5..8));
    assert_eq!(Query::new("ky").find(text), Some(5..9));
    assert_eq!(Query::new("\u{2c65}x").find(text), Some(2..5));
    assert_eq!(Query::new("i").find(text), Some(0..2));
    assert_eq!(Query::new("K").find(text), None);
}
