//! Rows, the window, and moves by rows.

use super::*;

fn rows(text: &str, width: u16) -> Vec<String> {
    shown(&editor(&format!("{text}|")).view(width, 100))
}

#[test]
fn rows_break_between_words() {
    let cases: &[(&str, u16, &[&str])] = &[
        ("", 5, &[""]),
        ("hello", 5, &["hello"]),
        ("hello world", 11, &["hello world"]),
        ("hello world", 10, &["hello ", "world"]),
        ("hello world", 5, &["hello", "world"]),
        ("hello ", 5, &["hello", ""]),
        ("hello  world", 6, &["hello ", "world"]),
        ("helloworld", 4, &["hell", "owor", "ld"]),
        ("a helloworld", 4, &["a ", "hell", "owor", "ld"]),
        ("a\n\nb\n", 4, &["a", "", "b", ""]),
        ("ab", 1, &["a", "b"]),
        ("a b", 0, &["a", "b"]),
        ("\u{65e5}\u{672c}\u{8a9e}", 5, &["\u{65e5}\u{672c}", "\u{8a9e}"]),
        ("ab \u{65e5}\u{672c}\u{8a9e}", 7, &["ab \u{65e5}\u{672c}", "\u{8a9e}"]),
        ("\u{65e5}\u{672c}", 1, &["\u{65e5}", "\u{672c}"]),
        ("e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]),
        (
            "a\u{1f469}\u{200d}\u{1f680}\u{1f469}\u{200d}\u{1f680}",
            4,
            &["a\u{1f469}\u{200d}\u{1f680}", "\u{1f469}\u{200d}\u{1f680}"],
        ),
        ("a\tb", 10, &["a   b"]),
        ("\ta\n\t\tb", 6, &["    a", "      ", "b"]),
        ("\u{5e9}\u{5dc}\u{5d5}\u{5dd} a", 4, &["\u{5e9}\u{5dc}\u{5d5}\u{5dd}", "a"]),
        // A mark without a letter and a letter with too many marks would draw over others.
        ("\u{301}a", 4, &["\u{fffd}a"]),
    ];
    for (text, width, expected) in cases {
        assert_eq!(rows(text, *width), *expected, "{text:?} at {width}");
    }
    assert_eq!(rows(&format!("a{}b", "\u{301}".repeat(100)), 4), ["\u{fffd}b"]);
}

#[test]
fn rows_say_what_their_pieces_are() {
    let mut editor = editor("|");
    after(&mut editor, [insert("a\t"), Edit::Attach(7, "p q".to_owned())]);
    after(&mut editor, [Edit::Attach(7, "r".to_owned()), Edit::Paste("x\n".repeat(11))]);
    let view = editor.view(14, 10);
    assert_eq!(shown(&view), ["a   [p q][r]", "[pasted 11 lin", "es #1]"]);
    let piece = |range, column, kind, text: &str| {
        let text = text.to_owned();
        Piece { range, column, kind, text }
    };
    assert_eq!(
        view.rows[0].pieces,
        [
            piece(0..1, 0, PieceKind::Text, "a"),
            piece(1..2, 1, PieceKind::Tab, "   "),
            piece(2..7, 4, PieceKind::Attachment(7), "[p q]"),
            piece(7..10, 9, PieceKind::Attachment(7), "[r]"),
        ]
    );
    assert_eq!(view.rows[1].pieces, [piece(10..24, 0, PieceKind::Paste, "[pasted 11 lin")]);
    let starts: Vec<bool> = view.rows.iter().map(|row| row.starts_line).collect();
    assert_eq!((starts, view.row, view.column), (vec![true, false, false], 2, 6));
    // From the row above one gets over the marker, and from behind it back.
    after(&mut editor, [Edit::Left, Edit::Up]);
    assert_eq!(editor.cursor(), 0);
    after(&mut editor, [Edit::Down, Edit::Down]);
    assert_eq!(editor.cursor(), editor.text().len());
}

#[test]
fn moves_by_rows_keep_the_column() {
    use Edit::{Down, Left, PageDown, PageUp, Up};
    let cases: &[(&str, u16, &[Edit], &str)] = &[
        ("abc\nd\nefg|", 80, &[Up], "abc\nd|\nefg"),
        ("abc\nd\nefg|", 80, &[Up, Up], "abc|\nd\nefg"),
        ("abc\nd\nefg|", 80, &[Up, Up, Down, Down], "abc\nd\nefg|"),
        ("abc\nd\nefg|", 80, &[Up, Left, Up], "|abc\nd\nefg"),
        ("a|bc", 80, &[Up], "a|bc"),
        ("a|bc", 80, &[Down], "a|bc"),
        ("hello big wor|ld", 6, &[Up], "hello big| world"),
        ("hello big wor|ld", 6, &[Up, Up], "hel|lo big world"),
        ("hel|lo big world", 6, &[Down, Down], "hello big wor|ld"),
        ("\u{65e5}\u{672c}\nab|c", 80, &[Up], "\u{65e5}|\u{672c}\nabc"),
        ("\u{65e5}\u{672c}\nabc|", 80, &[Up], "\u{65e5}|\u{672c}\nabc"),
        ("a\tb\nxy|z", 80, &[Up], "a|\tb\nxyz"),
        ("1\n2\n3\n4\n5|", 80, &[PageUp], "1\n2|\n3\n4\n5"),
        ("1\n2\n3\n4\n5|", 80, &[PageUp, PageUp], "1|\n2\n3\n4\n5"),
        ("1\n2|\n3\n4\n5", 80, &[PageDown], "1\n2\n3\n4\n5|"),
        ("1\n2\n3\n4|\n5", 80, &[PageDown, PageDown], "1\n2\n3\n4\n5|"),
    ];
    for (text, width, edits, expected) in cases {
        let mut editor = editor(text);
        editor.view(*width, 3);
        assert_eq!(after(&mut editor, edits.to_vec()), *expected, "{text:?} {edits:?}");
    }
}

/// The first row that is shown, and the row of the cursor, of a text with a number in each row.
fn window(editor: &mut Editor, height: u16) -> (String, usize) {
    let view = editor.view(10, height);
    (shown(&view).first().cloned().unwrap_or_default(), view.row)
}

#[test]
fn the_window_moves_no_more_than_it_has_to() {
    let text: Vec<String> = (0..20).map(|row| row.to_string()).collect();
    let mut editor = editor(&format!("{}|", text.join("\n")));
    let at = |first: &str, row| (first.to_owned(), row);
    assert_eq!(window(&mut editor, 5), at("15", 4));
    after(&mut editor, std::iter::repeat_n(Edit::Up, 4));
    assert_eq!(window(&mut editor, 5), at("15", 0));
    after(&mut editor, [Edit::Up]);
    assert_eq!(window(&mut editor, 5), at("14", 0));
    after(&mut editor, std::iter::repeat_n(Edit::Down, 4));
    assert_eq!(window(&mut editor, 5), at("14", 4));
    // More room shows more, from above where there is nothing below.
    assert_eq!(window(&mut editor, 8), at("12", 6));
    assert_eq!(window(&mut editor, 100), at("0", 18));
    assert_eq!(window(&mut editor, 5), at("14", 4));
    after(&mut editor, [Edit::End, Edit::KillToLineStart, Edit::KillToLineStart]);
    assert_eq!(window(&mut editor, 5), at("14", 4));
    after(&mut editor, [Edit::Start, insert("x\n")]);
    assert_eq!(window(&mut editor, 5), at("0", 0));
    let view = editor.view(10, 0);
    assert_eq!((shown(&view), view.more_above, view.more_below), (vec!["0".into()], true, true));
}

#[test]
fn a_long_line_is_laid_out_once() {
    let words = "some words of a long line ".repeat(20_000);
    let mut editor = editor(&format!("{words}|"));
    let view = editor.view(40, 5);
    assert_eq!((view.row, view.more_above, view.more_below), (4, true, false));
    for _ in 0..20 {
        after(&mut editor, [Edit::Up, Edit::Up, Edit::WordLeft, insert("x")]);
        let view = editor.view(40, 5);
        assert_eq!(view.rows.len(), 5);
    }
    // What is known about rows is right: a new editor lays the same text out in the same way.
    let view = editor.view(40, 5);
    let mut new = super::editor(&marked(&editor));
    let fresh = new.view(40, 100);
    assert_eq!(view.rows[view.row], fresh.rows[fresh.row]);
}
