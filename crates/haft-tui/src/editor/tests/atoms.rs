//! Pastes, attachments, submission, and names to complete.

use super::*;

fn lines(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|line| format!("line {line}")).collect();
    lines.join("\n")
}

fn paste(text: &str) -> Edit {
    Edit::Paste(text.to_owned())
}

#[test]
fn a_long_paste_is_one_marker_until_it_is_opened_or_submitted() {
    let mut editor = editor("see | now");
    let short = "a\n".repeat(PASTE_LINES);
    assert_eq!(after(&mut editor, [paste(&short), Edit::Undo]), "see | now");
    let label = "[pasted 2000 lines #1]";
    assert_eq!(after(&mut editor, [paste(&lines(2000))]), format!("see {label}| now"));
    assert_eq!(after(&mut editor, [Edit::Left]), format!("see |{label} now"));
    assert_eq!(after(&mut editor, [Edit::Right]), format!("see {label}| now"));
    assert_eq!(after(&mut editor, [Edit::DeleteBack]), "see | now");
    assert_eq!(after(&mut editor, [Edit::Undo]), format!("see {label}| now"));
    assert_eq!(editor.expanded(), format!("see {} now", lines(2000)));
    assert_eq!(after(&mut editor, [Edit::OpenPaste]), format!("see {}| now", lines(2000)));
    assert_eq!(after(&mut editor, [Edit::Undo, Edit::Left]), format!("see |{label} now"));
    assert_eq!(after(&mut editor, [Edit::OpenPaste]), format!("see |{} now", lines(2000)));
    after(&mut editor, [Edit::Undo, paste(&"x".repeat(1_001)), paste(&"y".repeat(1_000))]);
    let taken = editor.take();
    let (xs, ys) = ("x".repeat(1_001), "y".repeat(1_000));
    assert_eq!(taken.text, format!("see {xs}{ys}{} now", lines(2000)));
    assert_eq!((marked(&editor).as_str(), editor.history().len()), ("|", 1));
    assert_eq!(apply(&mut editor, Edit::Undo).effect, Effect::Nothing);
    let shown = after(&mut editor, [paste(&"x".repeat(1_001))]);
    assert_eq!(shown, "[pasted 1001 characters #1]|");
}

#[test]
fn markers_are_words_that_are_killed_and_yanked_whole() {
    let mut editor = editor("a|b");
    after(&mut editor, [paste(&lines(11)), Edit::Attach(7, "image p.png".to_owned())]);
    assert_eq!(marked(&editor), "a[pasted 11 lines #1][image p.png]|b");
    let whole = editor.expanded();
    assert_eq!(after(&mut editor, [Edit::WordLeft]), "a[pasted 11 lines #1]|[image p.png]b");
    assert_eq!(after(&mut editor, [Edit::KillToBlank]), "a|[image p.png]b");
    assert_eq!(after(&mut editor, [Edit::KillWordForward]), "a|b");
    assert_eq!(after(&mut editor, [Edit::Yank]), "a[pasted 11 lines #1][image p.png]|b");
    assert_eq!(editor.expanded(), whole);
    after(&mut editor, [Edit::Left, Edit::Transpose]);
    assert_eq!(marked(&editor), "a[image p.png][pasted 11 lines #1]|b");
    // Part of a label is all of it.
    let replace = Edit::Replace(3..20, "-".to_owned());
    assert_eq!(after(&mut editor, [replace]), "a-|b");
    assert_eq!(after(&mut editor, [Edit::Undo, Edit::End, Edit::KillToLineStart]), "|");
    after(&mut editor, [Edit::Yank]);
    let taken = editor.take();
    assert_eq!(taken.text, format!("a[image p.png]{}b", lines(11)));
    assert_eq!(taken.attachments, [(1..14, 7)]);
}

#[test]
fn marks_do_not_join_with_labels() {
    let mut editor = editor("|");
    after(&mut editor, [Edit::Attach(1, "x".to_owned()), insert("\u{301}")]);
    assert_eq!(marked(&editor), "[x]\u{301}|");
    assert_eq!(after(&mut editor, [Edit::Left]), "[x]|\u{301}");
    assert_eq!(after(&mut editor, [Edit::DeleteBack]), "|\u{301}");
}

#[test]
fn labels_are_one_short_line() {
    let mut editor = editor("|");
    after(&mut editor, [Edit::Attach(1, "a\nb\u{202e}\tc".to_owned())]);
    assert_eq!(editor.text(), "[a b c]");
    after(&mut editor, [Edit::Clear, Edit::Attach(1, "x".repeat(200))]);
    assert_eq!(editor.text(), format!("[{}\u{2026}]", "x".repeat(100)));
}

#[test]
fn a_new_text_keeps_the_attachments_that_it_names() {
    let mut editor = editor("|");
    for id in 0..4 {
        after(&mut editor, [Edit::Attach(id, format!("image {id}"))]);
    }
    after(&mut editor, [Edit::Set("[image 0] then [image 2] and [image 1]".to_owned())]);
    assert_eq!(editor.take().attachments, [(0..9, 0), (29..38, 1)]);
}

#[test]
fn the_weight_behind_markers_counts() {
    let mut editor = editor("|");
    let half = format!("{}\n", "x".repeat(63)).repeat(MOST_TEXT / 128);
    after(&mut editor, [paste(&half)]);
    let before = marked(&editor);
    assert!(editor.apply(paste(&half)).is_err());
    assert_eq!(marked(&editor), before);
    after(&mut editor, [Edit::KillToLineStart, Edit::Yank]);
    assert!(editor.apply(Edit::Yank).is_err());
    assert_eq!(editor.take().text, half);
}

#[test]
fn a_paste_of_ten_megabytes_works() {
    let mut editor = editor("before |behind");
    let line = "x".repeat(5_241);
    let big = format!("{line}\n").repeat(2_000);
    assert!(big.len() > 10_000_000);
    after(&mut editor, [paste(&big)]);
    assert_eq!(marked(&editor), "before [pasted 2000 lines #1]|behind");
    after(&mut editor, [Edit::OpenPaste]);
    let view = editor.view(80, 10);
    assert_eq!((view.rows.len(), view.row, view.column), (10, 9, 0));
    assert_eq!(shown(&view)[9], "behind");
    for _ in 0..50 {
        after(&mut editor, [insert("y"), Edit::Up, Edit::Down, Edit::Left, Edit::DeleteForward]);
        editor.view(80, 10);
    }
    after(&mut editor, [Edit::PageUp, Edit::Start, Edit::Undo]);
    editor.view(80, 10);
    after(&mut editor, [Edit::Undo]);
    assert_eq!(editor.take().text, format!("before {big}behind"));
}

#[test]
fn names_of_files_are_found_at_the_cursor() {
    let cases = [
        ("@|", Some((0..1, "", ""))),
        ("|@a", None),
        ("see @src/l|ib.rs now", Some((4..15, "src/lib.rs", "src/l"))),
        ("see @src/lib.rs| now", Some((4..15, "src/lib.rs", "src/lib.rs"))),
        ("see @src/lib.rs |now", None),
        ("me@host|", None),
        ("me@host @x|", Some((8..10, "x", "x"))),
        ("\n@a|", Some((1..3, "a", "a"))),
        ("@a\n|", None),
        ("@\"a b|\" c", Some((0..6, "a b", "a b"))),
        ("@\"a b\"| c", Some((0..6, "a b", "a b"))),
        ("@\"a b\" |c", None),
        ("x @\"a b| c", Some((2..7, "a b", "a b"))),
        ("@|\"a b\"", Some((0..6, "a b", ""))),
        ("@\"|", Some((0..2, "", ""))),
        ("@|\"", Some((0..2, "", ""))),
        ("@a@b|", Some((0..4, "a@b", "a@b"))),
        ("\u{65e5} @\u{65e5}|", Some((4..8, "\u{65e5}", "\u{65e5}"))),
    ];
    for (text, expected) in cases {
        let token = editor(text).token_at_cursor();
        let expected = expected.map(|(range, name, before)| {
            let (name, before) = (name.to_owned(), before.to_owned());
            Token { range, name, before }
        });
        assert_eq!(token, expected, "{text:?}");
    }
    let mut editor = editor("|");
    after(&mut editor, [Edit::Attach(1, "x".to_owned()), insert("@a")]);
    assert_eq!(editor.token_at_cursor().map(|token| token.range), Some(3..5));
}

#[test]
fn commands_are_found_at_the_start_of_the_text() {
    let command = |text: &str| {
        let token = editor(text).command_prefix()?;
        Some((token.range, token.name, token.before))
    };
    let expected =
        |end, name: &str, before: &str| Some((0..end, name.to_owned(), before.to_owned()));
    assert_eq!(command("/|"), expected(1, "", ""));
    assert_eq!(command("/he|lp me"), expected(5, "help", "he"));
    assert_eq!(command("|/help"), expected(5, "help", ""));
    assert_eq!(command("/help\nx|"), expected(5, "help", "help"));
    assert_eq!(command(" /help|"), None);
    assert_eq!(command("x\n/help|"), None);
}
