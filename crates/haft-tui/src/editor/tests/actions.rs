//! Tables of each action on plain text.

use super::*;

/// A text before, the actions, and the text after them.
type Case = (&'static str, &'static [Edit], &'static str);

fn check(cases: &[Case]) {
    for (before, edits, expected) in cases {
        let mut editor = editor(before);
        assert_eq!(after(&mut editor, edits.to_vec()), *expected, "{before:?} {edits:?}");
    }
}

#[test]
fn graphemes_are_passed_and_deleted_whole() {
    use Edit::{DeleteBack, DeleteForward, Left, Right};
    check(&[
        ("a|b", &[Left], "|ab"),
        ("|ab", &[Left], "|ab"),
        ("a|b", &[Right], "ab|"),
        ("ab|", &[Right], "ab|"),
        ("e\u{301}x|", &[Left, Left], "|e\u{301}x"),
        ("|e\u{301}x", &[Right], "e\u{301}|x"),
        ("a\u{1f469}\u{200d}\u{1f680}|b", &[Left], "a|\u{1f469}\u{200d}\u{1f680}b"),
        ("a\u{1f469}\u{200d}\u{1f680}|b", &[DeleteBack], "a|b"),
        ("a|\u{1f1e9}\u{1f1ea}\u{1f1eb}\u{1f1f7}", &[DeleteForward], "a|\u{1f1eb}\u{1f1f7}"),
        ("a|\nb", &[DeleteForward], "a|b"),
        ("a\n|b", &[DeleteBack], "a|b"),
        ("|a", &[DeleteBack], "|a"),
        ("a|", &[DeleteForward], "a|"),
        // What remains on both sides becomes one grapheme, and the cursor goes behind it.
        ("e|\n\u{301}", &[DeleteForward], "e\u{301}|"),
    ]);
}

#[test]
fn words_are_those_of_readline() {
    use Edit::{KillToBlank, KillWordBack, KillWordForward, WordLeft, WordRight};
    check(&[
        ("foo bar-baz|", &[WordLeft], "foo bar-|baz"),
        ("foo bar-|baz", &[WordLeft], "foo |bar-baz"),
        ("  foo  |", &[WordLeft], "  |foo  "),
        ("  |", &[WordLeft], "|  "),
        ("|foo bar", &[WordRight], "foo| bar"),
        ("foo| bar", &[WordRight], "foo bar|"),
        ("foo|..", &[WordRight], "foo..|"),
        ("a\nb|", &[WordLeft, WordLeft], "|a\nb"),
        ("re\u{301}e le\u{301}|", &[WordLeft], "re\u{301}e |le\u{301}"),
        ("|re\u{301}\u{301} x", &[WordRight], "re\u{301}\u{301}| x"),
        ("foo bar-baz|", &[KillWordBack], "foo bar-|"),
        ("foo bar-baz|", &[KillToBlank], "foo |"),
        ("foo bar-baz  |", &[KillToBlank], "foo |"),
        ("|foo, bar", &[KillWordForward], "|, bar"),
        ("foo|, bar", &[KillWordForward], "foo|"),
        ("|", &[KillToBlank, KillWordBack, KillWordForward, WordLeft, WordRight], "|"),
    ]);
}

#[test]
fn lines_and_the_text_have_ends() {
    use Edit::{End, KillToLineEnd, KillToLineStart, LineEnd, LineStart, Start};
    check(&[
        ("a\nbc|d\ne", &[LineStart], "a\n|bcd\ne"),
        ("a\nbc|d\ne", &[LineEnd], "a\nbcd|\ne"),
        ("a\nbc|d\ne", &[Start], "|a\nbcd\ne"),
        ("a\nbc|d\ne", &[End], "a\nbcd\ne|"),
        ("a\nbc|d\ne", &[KillToLineStart], "a\n|d\ne"),
        ("a\nbc|d\ne", &[KillToLineStart, KillToLineStart], "a|d\ne"),
        ("a\nbc|d\ne", &[KillToLineEnd], "a\nbc|\ne"),
        ("a\nbc|d\ne", &[KillToLineEnd, KillToLineEnd], "a\nbc|e"),
        ("|", &[KillToLineStart, KillToLineEnd, LineStart, LineEnd], "|"),
    ]);
}

#[test]
fn kills_that_follow_each_other_are_yanked_as_one() {
    use Edit::{End, KillToBlank, KillToLineEnd, KillWordForward, Left, Start, Yank, YankPop};
    check(&[
        ("a b c|", &[KillToBlank, KillToBlank, Start, Yank], "b c|a "),
        ("|a b c", &[KillWordForward, KillWordForward, End, Yank], " ca b|"),
        ("a |b c", &[KillToBlank, KillToLineEnd, Yank, Yank], "a b ca b c|"),
        ("a b|", &[KillToBlank, Left, Edit::Right, KillToBlank, Yank], "a |"),
        ("a b|", &[KillToBlank, Left, Edit::Right, KillToBlank, Yank, YankPop], "b|"),
        ("a b|", &[KillToBlank, Start, KillToLineEnd, Yank, YankPop, YankPop], "a |"),
        // After a pop, the text that it brought is the one to be yanked.
        ("a b|", &[KillToBlank, Start, KillToLineEnd, Yank, YankPop, End, Yank], "bb|"),
        // Without a yank directly before it, there is nothing to replace.
        ("a b|", &[KillToBlank, Yank, Left, YankPop], "a |b"),
        ("a|", &[Yank, YankPop], "a|"),
    ]);
}

#[test]
fn the_kill_ring_keeps_the_last_sixteen() {
    let mut editor = editor("|");
    for kill in 0..20 {
        after(&mut editor, [insert(&format!("k{kill}")), Edit::KillToLineStart]);
    }
    assert_eq!(after(&mut editor, [Edit::Yank]), "k19|");
    let pops = std::iter::repeat_n(Edit::YankPop, MOST_KILLS - 1);
    assert_eq!(after(&mut editor, pops), "k4|");
    assert_eq!(after(&mut editor, [Edit::YankPop]), "k19|");
}

#[test]
fn transpose_exchanges_neighbours_of_a_line() {
    use Edit::Transpose;
    check(&[
        ("a|b", &[Transpose], "ba|"),
        ("abc|", &[Transpose], "acb|"),
        ("|ab", &[Transpose], "|ab"),
        ("a|", &[Transpose], "a|"),
        ("x\na|\nb", &[Transpose], "x\na|\nb"),
        ("x\nab|\nb", &[Transpose], "x\nba|\nb"),
        ("\u{65e5}|e\u{301}", &[Transpose], "e\u{301}\u{65e5}|"),
    ]);
}

#[test]
fn text_is_typed_at_the_cursor_and_ranges_are_replaced() {
    check(&[
        ("a|c", &[Edit::Newline], "a\n|c"),
        ("|\u{301}", &[Edit::Right], "\u{301}|"),
        ("a\u{65e5}|b", &[Edit::Left, Edit::Left, Edit::Right], "a|\u{65e5}b"),
    ]);
    let mut editor = editor("see @sr|c now");
    assert_eq!(after(&mut editor, [insert("b")]), "see @srb|c now");
    let replace = |range, text: &str| Edit::Replace(range, text.to_owned());
    assert_eq!(after(&mut editor, [replace(4..9, "@src/lib.rs")]), "see @src/lib.rs| now");
    assert_eq!(after(&mut editor, [Edit::Undo]), "see @srb|c now");
    assert_eq!(after(&mut editor, [replace(100..200, "!")]), "see @srbc now!|");
    let range = Range { start: 9, end: 4 };
    assert_eq!(after(&mut editor, [replace(range, "-")]), "see @srbc-| now!");
    let mut wide = super::editor("\u{65e5}|");
    assert_eq!(after(&mut wide, [replace(1..2, "x")]), "x|");
    assert_eq!(after(&mut wide, [Edit::Set("new".to_owned())]), "new|");
    assert_eq!(after(&mut wide, [Edit::Undo]), "x|");
}

#[test]
fn hidden_characters_are_left_out_and_counted() {
    let mut editor = editor("|");
    let hostile = "a\r\nb\rc\u{1b}[2J\u{202e}d\u{9b}\te\u{7f}\u{e0041}\u{2028}f\u{200d}";
    let applied = apply(&mut editor, Edit::Paste(hostile.to_owned()));
    assert_eq!(applied, Applied { effect: Effect::Changed, removed: 5 });
    assert_eq!(editor.text(), "a\nb\nc[2Jd\te\nf\u{200d}");
    assert_eq!(apply(&mut editor, insert("\u{1b}")).effect, Effect::Nothing);
    assert_eq!(apply(&mut editor, Edit::Set("\u{7}x".to_owned())).removed, 1);
    assert_eq!(editor.text(), "x");
}

#[test]
fn the_effect_says_what_to_draw() {
    let mut editor = editor("ab|");
    let effects = [
        (Edit::Right, Effect::Nothing),
        (Edit::Left, Effect::Moved),
        (insert("x"), Effect::Changed),
        (Edit::Undo, Effect::Changed),
        (Edit::Undo, Effect::Nothing),
        (Edit::Redo, Effect::Changed),
        (Edit::Redo, Effect::Nothing),
        (Edit::Up, Effect::Nothing),
        (Edit::Down, Effect::Nothing),
        (Edit::YankPop, Effect::Nothing),
        (Edit::OpenPaste, Effect::Nothing),
        (Edit::SearchCancel, Effect::Nothing),
        (Edit::SearchOlder, Effect::Moved),
        (Edit::SearchCancel, Effect::Moved),
        (Edit::Clear, Effect::Changed),
        (Edit::Clear, Effect::Nothing),
    ];
    for (edit, effect) in effects {
        assert_eq!(apply(&mut editor, edit.clone()).effect, effect, "{edit:?}");
    }
}

#[test]
fn what_was_typed_is_undone_word_by_word() {
    let mut editor = editor("|");
    typed(&mut editor, "one  two three");
    let mut steps = Vec::new();
    while apply(&mut editor, Edit::Undo).effect == Effect::Changed {
        steps.push(marked(&editor));
    }
    assert_eq!(steps, ["one  two |", "one  |", "|"]);
    assert_eq!(after(&mut editor, [Edit::Redo, Edit::Redo]), "one  two |");
    typed(&mut editor, "x");
    assert_eq!(after(&mut editor, [Edit::Redo]), "one  two x|");
    // A move between two letters parts them.
    after(&mut editor, [Edit::Left, Edit::Right, insert("y")]);
    assert_eq!(after(&mut editor, [Edit::Undo]), "one  two x|");
}

#[test]
fn deletions_are_undone_word_by_word_and_other_changes_one_by_one() {
    let mut editor = editor("ab cd|");
    after(&mut editor, std::iter::repeat_n(Edit::DeleteBack, 5));
    assert_eq!(after(&mut editor, [Edit::Undo]), "ab|");
    assert_eq!(after(&mut editor, [Edit::Undo]), "ab cd|");
    assert_eq!(after(&mut editor, [Edit::Redo, Edit::Redo]), "|");
    after(&mut editor, [Edit::Undo, Edit::Undo, Edit::Start]);
    after(&mut editor, std::iter::repeat_n(Edit::DeleteForward, 5));
    assert_eq!(after(&mut editor, [Edit::Undo]), "|cd");
    assert_eq!(after(&mut editor, [Edit::Undo]), "|ab cd");
    after(&mut editor, [Edit::End, Edit::KillToBlank, Edit::KillToBlank, Edit::Yank]);
    assert_eq!(after(&mut editor, [Edit::Undo]), "|");
    assert_eq!(after(&mut editor, [Edit::Undo]), "ab |");
    after(&mut editor, [Edit::Clear]);
    assert_eq!(after(&mut editor, [Edit::Undo]), "ab |");
}

#[test]
fn undo_has_a_bound_and_the_text_has_one() {
    let mut editor = editor("|");
    for _ in 0..MOST_CHANGES + 10 {
        after(&mut editor, [Edit::Paste("x".to_owned())]);
    }
    after(&mut editor, std::iter::repeat_n(Edit::Undo, MOST_CHANGES + 10));
    assert_eq!(editor.text(), "x".repeat(10));
    let big = "y".repeat(MOST_TEXT - 10);
    after(&mut editor, [insert(&big)]);
    let refused = editor.apply(insert("zz")).expect_err("a text over the bound");
    assert_eq!(refused, TooLong { bytes: MOST_TEXT + 2 });
    assert!(refused.to_string().contains("16 MiB"));
    assert_eq!(editor.text().len(), MOST_TEXT);
    // Whatever it weighs, the last change can be taken back.
    for _ in 0..5 {
        after(&mut editor, [Edit::Clear, Edit::Undo, Edit::DeleteBack, insert("y")]);
    }
    after(&mut editor, [Edit::Clear, Edit::Undo]);
    assert_eq!(editor.text().len(), MOST_TEXT);
}
