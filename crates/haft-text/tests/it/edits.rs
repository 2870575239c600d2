//! Before, edits, after: one case for each way in which editing is known to go wrong.

use haft_text::edit::{Edit, EditError, apply};
use haft_text::{Applied, decode, diff};

fn run(bytes: &[u8], edits: &[Edit]) -> Result<Applied, EditError> {
    apply(&decode(bytes).unwrap(), edits)
}

fn after(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
    match run(bytes, &[Edit::new(old, new)]) {
        Ok(applied) => applied.to_bytes(bytes),
        Err(error) => panic!("{bytes:?} {old:?}: {error}"),
    }
}

fn fails(bytes: &str, old: &str, new: &str) -> EditError {
    run(bytes.as_bytes(), &[Edit::new(old, new)]).unwrap_err()
}

#[test]
fn exact_edits_keep_every_other_byte() {
    let cases: &[(&[u8], &str, &str, &[u8])] = &[
        (b"a\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\n"),
        (b"a\nb\n", "a\r\nb", "a\r\nc", b"a\nc\n"),
        (b"a\rb\rc", "a\nb", "a\nB", b"a\rB\rc"),
        (b"a\nb\r\nc\rd", "b\nc", "B\nC", b"a\nB\r\nC\rd"),
        (b"x\r\nfoo\r\n", "\nfoo", "\nbar", b"x\r\nbar\r\n"),
        (b"\xEF\xBB\xBFone\n", "one", "two", b"\xEF\xBB\xBFtwo\n"),
        (b"cost\n", "cost", "$& $1 \\0 $$", b"$& $1 \\0 $$\n"),
        (b"hard break  \nnext\n", "next", "NEXT", b"hard break  \nNEXT\n"),
        (b"no end", "end", "final end", b"no final end"),
        (b"\xFF\xFEa\0\r\0\n\0b\0", "a\nb", "a\n\u{1F600}", b"\xFF\xFEa\0\r\0\n\0\x3D\xD8\x00\xDE"),
        ("日本語テキスト\n".as_bytes(), "語テ", "人", "日本人キスト\n".as_bytes()),
        (b"gone\nstays\n", "gone\n", "", b"stays\n"),
    ];
    for (before, old, new, want) in cases {
        assert_eq!(after(before, old, new), *want, "{before:?} {old:?}");
    }
}

#[test]
fn legacy_encodings_stay_what_they_are() {
    let text = "これは日本語の文章です。\n設定を変更する\n";
    let bytes = shift_jis(text);
    let changed = after(&bytes, "設定を変更", "設定を追加");
    assert_eq!(changed, shift_jis(&text.replace("変更", "追加")));
    let error = run(&bytes, &[Edit::new("設定", "\u{1F600}")]).unwrap_err();
    assert!(error.to_string().contains("U+1F600"), "{error}");
    assert!(error.to_string().contains("Shift_JIS"), "{error}");
}

#[test]
fn a_file_that_nobody_would_know_again_is_not_written() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let before = wide("hello\n");
    let error = run(&before, &[Edit::new("hello", "日本語漢字仮名交")]).unwrap_err();
    assert_eq!(error, EditError::Unannounced { encoding: "UTF-16LE" });
    assert!(error.to_string().contains("byte order mark"), "{error}");
    assert_eq!(after(&before, "hello", "good bye"), wide("good bye\n"));
    assert_eq!(after(&before, "hello\n", ""), b"");
    let latin = encoding_rs::WINDOWS_1252.encode("Le café où l’été s’étire à loisir\n").0;
    let applied = run(&latin, &[Edit::new("Le café où l’été s’étire à loisir", "plain")]).unwrap();
    assert_eq!(applied.taken_for, None);
    let applied = run(&latin, &[Edit::new(" où l’été s’étire à loisir", "")]).unwrap();
    let again = applied.to_bytes(&latin);
    let name = decode(&again).unwrap().format().encoding.name();
    assert_eq!(applied.taken_for, (name != "windows-1252").then_some(name));
}

/// `Shift_JIS` by hand for the characters of the fixture.
fn shift_jis(text: &str) -> Vec<u8> {
    const TABLE: &[(char, [u8; 2])] = &[
        ('こ', [0x82, 0xB1]),
        ('れ', [0x82, 0xEA]),
        ('は', [0x82, 0xCD]),
        ('日', [0x93, 0xFA]),
        ('本', [0x96, 0x7B]),
        ('語', [0x8C, 0xEA]),
        ('の', [0x82, 0xCC]),
        ('文', [0x95, 0xB6]),
        ('章', [0x8F, 0xCD]),
        ('で', [0x82, 0xC5]),
        ('す', [0x82, 0xB7]),
        ('。', [0x81, 0x42]),
        ('設', [0x90, 0xDD]),
        ('定', [0x92, 0xE8]),
        ('を', [0x82, 0xF0]),
        ('変', [0x95, 0xCF]),
        ('更', [0x8D, 0x58]),
        ('る', [0x82, 0xE9]),
        ('追', [0x92, 0xC7]),
        ('加', [0x89, 0xC1]),
    ];
    let code = |character| TABLE.iter().find(|entry| entry.0 == character).map(|entry| entry.1);
    text.chars().flat_map(|character| code(character).map_or(vec![b'\n'], Vec::from)).collect()
}

#[test]
fn tolerances_map_back_to_exact_bytes() {
    let cases = [
        ("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", "trailing blanks", "a  \nB\nc\n"),
        ("x\na\nb\ny", "\na\nb\n\n", "\nA\nb\n\n", "blank lines at the ends", "x\nA\nb\ny"),
        ("last", "last\n", "end\n", "blank lines at the ends", "end"),
        ("say “hi” – ok\u{a0}now\n", "\"hi\" - ok now", "\"yo\"", "Unicode forms", "say “yo”\n"),
        ("cafe\u{301} au lait\n", "caf\u{e9}", "tea", "Unicode forms", "tea au lait\n"),
        (
            "mod m {\n    fn f() {\n        g();\n    }\n}\n",
            "fn f() {\n    g();\n}",
            "fn f() {\n    h();\n    i();\n}",
            "indentation",
            "mod m {\n    fn f() {\n        h();\n        i();\n    }\n}\n",
        ),
        (
            "if a {\n\tif b {\n\t\tc()\n\t}\n}\n",
            "    if b {\n        c()\n    }\n",
            "    if b {\n        d()\n        e()\n    }\n",
            "tabs and spaces",
            "if a {\n\tif b {\n\t\td()\n\t\te()\n\t}\n}\n",
        ),
        (
            "one\ntwo\nthree\n",
            "     2\ttwo\n     3\tthree",
            "     2\tTWO\n     3\tthree",
            "line number prefixes",
            "one\nTWO\nthree\n",
        ),
        (
            "one\ntwo\nthree",
            "     2\ttwo\n     3\tthree\n",
            "     2\tTWO\n     3\tthree\n",
            "line number prefixes",
            "one\nTWO\nthree",
        ),
        ("one\ntwo", "2: two\n", "zwei\ndrei\n", "line number prefixes", "one\nzwei\ndrei"),
        ("say(\"a\");\n", "say(\\\"a\\\");", "say(\\\"b\\\");", "literal escapes", "say(\"b\");\n"),
        ("a\n\tb\n", "a\\n\\tb", "a\\n\\tc", "literal escapes", "a\n\tc\n"),
    ];
    for (before, old, new, tolerance, want) in cases {
        for crlf in [false, true] {
            let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
            let bytes = ends(before).into_bytes();
            let applied = run(&bytes, &[Edit::new(old, new)])
                .unwrap_or_else(|error| panic!("{before:?} {old:?}: {error}"));
            assert_eq!(String::from_utf8(applied.to_bytes(&bytes)).unwrap(), ends(want), "{old:?}");
            assert_eq!(applied.tolerance, Some(tolerance), "{old:?}");
        }
    }
}

#[test]
fn exact_comes_before_lookalikes() {
    let before = "“a”\n\"a\"\n".as_bytes();
    let applied = run(before, &[Edit::new("\"a\"", "b")]).unwrap();
    assert_eq!((applied.tolerance, applied.first_changed_line), (None, 2));
    let before = b"a\r\nb\r\n-\na\nb\n";
    assert_eq!(after(before, "a\r\nb", "a\r\nc"), b"a\r\nc\r\n-\na\nb\n");
    // A line feed alone is what everybody writes, whichever place is meant.
    let error = run(before, &[Edit::new("a\nb", "a\nc")]).unwrap_err();
    assert!(error.to_string().contains("2 places, at lines 1, 4"), "{error}");
}

#[test]
fn several_places_are_counted_and_listed() {
    let EditError::Ambiguous { places, lines, .. } = fails("aaa\n", "aa", "b") else {
        panic!("overlapping places are ambiguous")
    };
    assert_eq!((places, lines), (2, vec![1, 1]));
    let error = fails("x\ny\nx\n", "x", "z");
    assert!(error.to_string().contains("2 places, at lines 1, 3"), "{error}");
    let error = fails("a  b \nq\na  b\t\n", "b  \n", "c\n");
    assert!(matches!(error, EditError::Ambiguous { tolerance: Some(_), .. }), "{error}");
    let all = Edit { replace_all: true, ..Edit::new("aa", "b") };
    let applied = run(b"aaaaa", &[all]).unwrap();
    assert_eq!((applied.to_bytes(b"aaaaa").as_slice(), applied.replacements), (&b"bba"[..], 2));
}

#[test]
fn what_is_not_there_is_refused_with_the_nearest_text() {
    let file = "fn main() {\n\tlet a = 1;\n\tlet b = 2;\n\tlet c = 3;\n}\n";
    let error = fails(file, "fn main() {\n...\n}", "");
    assert!(error.to_string().contains("line 2 stands for text"), "{error}");
    let error = fails(file, "fn main() {\n\tlet a = 1;\n\tlet b = 7;\n\tlet c = 3;\n}", "x");
    let message = error.to_string();
    assert!(message.contains("Line 3: at column 10, old_text has U+0037 '7'"), "{message}");
    assert!(message.contains("     3  \tlet b = 2;"), "{message}");
    assert!(matches!(fails("", "x", "y"), EditError::NotFound { nearest: None, .. }));
}

#[test]
fn an_invented_middle_matches_nothing() {
    let file: String =
        (0..200).fold(String::new(), |text, line| text + &format!("sentence number {line}\n"));
    let old = "sentence number 3\ninvented\nsentence number 190\n";
    assert!(matches!(fails(&file, old, "short\n"), EditError::NotFound { .. }));
}

#[test]
fn a_number_that_is_text_is_not_a_prefix() {
    assert!(matches!(fails("x\napples\n", "3: apples", "5: pears"), EditError::NotFound { .. }));
    assert_eq!(after(b"x\napples\n", "2: apples", "2: pears"), b"x\npears\n");
    assert_eq!(after(b"a\nb\n-\na\nb\n", "4\ta\n5\tb", "4\tA\n5\tb"), b"a\nb\n-\nA\nb\n");
}

#[test]
fn a_number_without_text_is_an_empty_line() {
    let prefixes = ["\t", "→", ": ", ":", "| ", "|", "  "];
    for separator in prefixes {
        let cut = separator.trim_end();
        // The number stands for a line that has something on it, at the end and in the middle.
        for old in [
            format!("     2{separator}two\n     3{separator}"),
            format!("     2{separator}two\n     3{cut}"),
            format!("     2{separator}two\n     3{cut} \t"),
            format!("     1{separator}one\n     2{cut}\n     3{separator}three"),
        ] {
            let error = fails("one\ntwo\nthree\n", &old, "new");
            assert!(matches!(error, EditError::NotFound { .. }), "{old:?}: {error}");
        }
        // It is no number of a listing: other blanks stand before it, or a sign.
        for number in ["\t\t3", "\t 3", "\u{a0}3", "+3", " +3", "\u{3000}3"] {
            let old = format!("     2{separator}two\n{number}{cut}");
            for file in ["one\ntwo\nthree\n", "one\ntwo\n\nthree\n"] {
                let error = fails(file, &old, "new");
                assert!(matches!(error, EditError::NotFound { .. }), "{old:?}: {error}");
            }
        }
        // It stands for an empty line, in the middle, at the end, and after the last line end.
        for number in ["     3", "3"] {
            for ended in [cut, separator] {
                let old = format!("     2{separator}two\n{number}{ended}");
                assert_eq!(
                    after(b"one\ntwo\n\nfour\n", &old, "new"),
                    b"one\nnew\nfour\n",
                    "{old:?}"
                );
                assert_eq!(after(b"one\ntwo\n", &old, "new\n"), b"one\nnew\n", "{old:?}");
                let old = format!("{old}\n     4{separator}four");
                assert_eq!(after(b"one\ntwo\n\nfour\n", &old, "new"), b"one\nnew\n", "{old:?}");
            }
        }
        // In the new text, too, where it is the next number.
        let old = format!("     2{separator}two\n     3{cut}\n     4{separator}four");
        let new = format!("     2{separator}zwei\n     3{cut}\n     4{separator}vier\n     5{cut}");
        assert_eq!(
            after(b"one\ntwo\n\nfour\nx\n", &old, &new),
            b"one\nzwei\n\nvier\n\nx\n",
            "{old:?}"
        );
        let new = format!("     2{cut}\n     3{separator}drei");
        assert_eq!(after(b"one\ntwo\n\nfour\n", &old, &new), b"one\n\ndrei\n", "{old:?}");
        // Another number may be text.
        let new = format!("     2{separator}zwei\n7{cut}\n     4{separator}vier");
        let error = fails("one\ntwo\n\nfour\n", &old, &new);
        let unsure = matches!(error, EditError::NotFound { .. } | EditError::Unclear { .. });
        assert!(unsure, "{old:?}: {error}");
        // A line that is begun is text as without a number.
        let old = format!("     2{separator}two\n     3{separator}thr");
        assert_eq!(after(b"one\ntwo\nthree\n", &old, "wh"), b"one\nwhee\n", "{old:?}");
    }
}

#[test]
fn a_shift_that_is_not_uniform_is_refused() {
    let file = "  a\n  b\n    c\n";
    assert!(matches!(fails(file, "a\nb\nc", "a\nb\nd"), EditError::NotFound { .. }));
    // The new text has less indentation than must be taken away.
    assert!(matches!(
        fails("a\n  b\n", "    a\n      b\n", "  x\n      b\n"),
        EditError::NotFound { .. }
    ));
}

#[test]
fn repeated_and_empty_edits_have_errors_of_their_own() {
    let applied = EditError::AlreadyApplied { edit: 1, line: 1, places: 1, around: false };
    assert_eq!(fails("new text\n", "old text", "new text"), applied);
    // Shifted once more, this would indent twice.
    assert_eq!(fails("    a\n      b\n", "  a\n    b", "    a\n      b"), applied);
    // What is left of a deletion stands there anyway, while the rest of it does too.
    let file = "[net]\nserver = a\nport = 8080\nwait = 30\n";
    let error = fails(file, "server = a\nport = 7070\nwait = 30", "wait = 30");
    assert!(matches!(error, EditError::NotFound { .. }), "{error}");
    let error = fails(file, "server = a\n...\nwait = 30", "port = 8080");
    assert!(matches!(error, EditError::NotFound { elision: Some(2), .. }), "{error}");
    let all = Edit { replace_all: true, ..Edit::new("old name", "new name") };
    let error = run(b"new name\nthe new name\nnew names\n", &[all]).unwrap_err();
    assert_eq!(error, EditError::AlreadyApplied { edit: 1, line: 1, places: 2, around: false });
    assert_eq!(fails("a", "a", "a"), EditError::NoChange { edit: 1 });
    assert_eq!(fails("a\r\nb", "a\r\nb", "a\nb"), EditError::NoChange { edit: 1 });
    let many = "a ".repeat(1_000_001);
    let edit = Edit { replace_all: true, ..Edit::new("a", "b") };
    let error = apply(&decode(many.as_bytes()).unwrap(), &[edit]).unwrap_err();
    assert_eq!(error, EditError::TooMany { edit: 1, most: 1_000_000 });
    assert_eq!(fails("a", "", "a"), EditError::EmptyOld { edit: 1 });
    assert_eq!(run(b"a", &[]), Err(EditError::NoEdits));
}

#[test]
fn what_is_left_of_an_old_text_says_nothing_of_an_edit_that_was_made() {
    for (file, old, new, line) in [
        ("// first note\nlet a = 1;\nlet b = 2;\n", "// frist note\nlet a = 1;", "let a = 1;", 1),
        ("f(a);\n}\n", "f(b);\n}", "}", 1),
        ("f(a);\n}\n", "f(b);\n}\n", "\n}\n", 1),
        ("let a = 1;\nnote(b);\n", "let a = 1;\nnote(c);\n", "let a = 1;\n", 1),
        ("a\nsay(one, two)\n", "say(one, too)", "one", 2),
        ("x = 1\n", "x = 1 ", "x = 1", 1),
        ("x = 1\ny = 2\n", "\n\nx = 1\n", "x = 1\n", 1),
        ("a \u{2014} b\n", "a \u{2014} b\u{a0}", "a \u{2014} b", 1),
    ] {
        for all in [false, true] {
            let edit = Edit { replace_all: all, ..Edit::new(old, new) };
            let error = run(file.as_bytes(), &[edit]).unwrap_err();
            let EditError::NotFound { nearest: Some(nearest), .. } = &error else {
                panic!("{old:?}: {error:?}")
            };
            assert_eq!(nearest.first_line, line, "{old:?}: {error}");
            assert!(!error.to_string().contains("applied already"), "{error}");
        }
    }
}

#[test]
fn brackets_and_rules_are_put_in_next_to_such_as_are_there() {
    for (before, old, new) in [
        ("f(g(x))\n", "g(x)", "g(x))"),
        ("  }\n}\nfn f\n", "}\nfn f", "}\n}\nfn f"),
        ("---\n# One\n", "# One", "---\n# One"),
        ("timeout=100\n", "timeout=1", "timeout=10"),
    ] {
        let wanted = before.replacen(old, new, 1);
        assert_eq!(after(before.as_bytes(), old, new), wanted.as_bytes(), "{old:?}");
    }
}

#[test]
fn what_was_put_in_is_not_put_in_again() {
    for (before, old, new) in [
        ("import a\nimport c\n", "import a\n", "import a\nimport b\n"),
        ("import a\nimport c\n", "import c", "import b\nimport c"),
        ("fn f() {\n    g();\n}\n", "    g();\n", "    e();\n    g();\n    h();\n"),
        ("port = 80\n", "port = 80", "port = 8080"),
        ("a\r\nb\r\n", "a\n", "a\nx\n"),
    ] {
        let once = after(before.as_bytes(), old, new);
        let error = run(&once, &[Edit::new(old, new)]).unwrap_err();
        let applied = matches!(error, EditError::AlreadyApplied { around: true, places: 1, .. });
        assert!(applied, "{old:?}: {error:?}");
        let all = Edit { replace_all: true, ..Edit::new(old, new) };
        let error = run(&once, &[all]).unwrap_err();
        assert!(matches!(error, EditError::AlreadyApplied { around: true, .. }), "{error:?}");
    }
    // One line more of blanks says nothing of whether it was added before.
    assert_eq!(after(b"a\n\nb\n", "a\n", "a\n\n"), b"a\n\n\nb\n");
    // Where more of the file is named, it is asked for once more.
    assert_eq!(after(b"a\nb\nc\n", "a\nb\n", "a\nb\nb\n"), b"a\nb\nb\nc\n");
    // One place of several that is new is no place where it was done.
    let all = Edit { replace_all: true, ..Edit::new("foo", "foo_bar") };
    let applied = run(b"foo foo_bar", &[all]).unwrap();
    assert_eq!(applied.to_bytes(b"foo foo_bar"), b"foo_bar foo_bar_bar");
}

#[test]
fn applied_already_is_said_of_the_place_that_is_meant() {
    let file = "timeout = 30\nretries = 5\nname = a\n";
    let error = fails(file, "timeout = 20", "retries = 5");
    let EditError::NotFound { nearest: Some(nearest), ref present, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((nearest.first_line, &**present), (1, &[2][..]));
    let file = "def f():\n    foo( a )\n\ndef g():\n    pass\n";
    let error = fails(file, "    foo(a)", "    pass");
    let message = error.to_string();
    assert!(message.contains("     2      foo( a )"), "{message}");
    assert!(message.contains("perhaps"), "{message}");
    // Nothing is like the old text, or the new text is what is most like it.
    let applied = |line| EditError::AlreadyApplied { edit: 1, line, places: 1, around: false };
    assert_eq!(fails("one\nzip();\ntwo\n", "beta", "zip();"), applied(2));
    assert_eq!(fails("a = 1\nsum = 2\n", "sum = 1", "sum = 2"), applied(2));
}

#[test]
fn of_two_readings_none_is_guessed() {
    for (before, old, new, words) in [
        (
            "say(\"hi\")\nend\n",
            r#"say(\"hi\")\nend"#,
            r#"say(\"hi\\n\")\nend"#,
            ["\nsay(\"hi\\\\n\")\nend\n", "\nsay(\"hi\\n\")\nend\n"],
        ),
        (
            "say(\"hi\")\n",
            r#"say(\"hi\")"#,
            r#"say(\"hi\n\")"#,
            ["\nsay(\"hi\\n\")\n", "\nsay(\"hi\n\")\n"],
        ),
        (
            "say(\"hi\")\n",
            r#"say(\"hi\")"#,
            r#"say("a \"b\" c")"#,
            ["\nsay(\"a \"b\" c\")\n", "\nsay(\"a \\\"b\\\" c\")\n"],
        ),
        (
            "a\nb\n",
            r"a\nb",
            "a\nprint('\\n')\nb",
            ["\na\nprint('\\n')\nb\n", "\na\nprint('\n')\nb\n"],
        ),
        ("x\napples\n", "2: apples", "7: pears", ["\npears\n", "\n7: pears\n"]),
        ("x\na\nb\n", "2\ta\n3\tb", "2\tA\n99\tB", ["\nA\nB\n", "\n2\tA\n99\tB\n"]),
    ] {
        let error = fails(before, old, new);
        assert!(matches!(error, EditError::Unclear { .. }), "{old:?} {new:?}: {error:?}");
        let message = error.to_string();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    }
    // The file itself shows which reading is meant.
    let file = b"re('\\d')\nsay(\"hi\")\n";
    let (old, new) = (r#"re('\\d')\nsay(\"hi\")"#, r#"re('\\d')\nsay(\"hi\\n\")"#);
    assert_eq!(after(file, old, new), b"re('\\d')\nsay(\"hi\\n\")\n");
    let error = fails("a\"b\\nc\n-\na\"b\nc\n", r#"a\"b\nc"#, "x");
    assert!(matches!(error, EditError::Ambiguous { places: 2, .. }), "{error}");
}

#[test]
fn listings_and_line_ends_in_other_forms_are_known() {
    assert_eq!(after(b"a\r\nb\r\n", "a\\r\\nb", "a\\r\\nc"), b"a\r\nc\r\n");
    let (old, new) = ("     2  two\n     3      three", "     2  TWO\n     3      three");
    assert_eq!(after(b"one\ntwo\n    three\n", old, new), b"one\nTWO\n    three\n");
    let file = b"\xEF\xBB\xBFone\ntwo\n";
    assert_eq!(after(file, "\u{feff}one\n", "\u{feff}1\n"), b"\xEF\xBB\xBF1\ntwo\n");
    assert_eq!(after(file, "\u{feff}one", "1"), b"\xEF\xBB\xBF1\ntwo\n");
    let error = run(file, &[Edit::new("\u{feff}two", "2")]).unwrap_err();
    assert!(matches!(error, EditError::NotFound { .. }), "{error}");
}

#[test]
fn lines_that_are_deleted_take_their_line_end_along() {
    for crlf in [false, true] {
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        for (before, old, want) in [
            ("a\nfoo\nbar\nb\n", "foo\nbar\n\n", "a\nb\n"),
            ("a\nfoo\nb\n", "\n\nfoo", "a\nb\n"),
            ("a\nfoo\nb\n", "\n\nfoo\n", "a\nb\n"),
            ("a\nfoo", "foo\n\n", "a\n"),
        ] {
            let got = after(ends(before).as_bytes(), old, "");
            assert_eq!(String::from_utf8(got).unwrap(), ends(want), "{before:?} {old:?}");
        }
    }
}

#[test]
fn edits_that_cancel_out_change_nothing() {
    let before = b"a\n\nb\n";
    let edits = [Edit::new("a\n", "a"), Edit::new("\nb", "\n\nb")];
    let error = run(before, &edits).unwrap_err();
    assert_eq!(error, EditError::Cancelled);
    assert!(error.to_string().contains("nothing would change"), "{error}");
}

#[test]
fn several_edits_match_the_original_and_never_overlap() {
    let before = b"one two three\n";
    let edits = [Edit::new("three", "one"), Edit::new("one", "two"), Edit::new(" two", "")];
    let applied = run(before, &edits).unwrap();
    assert_eq!(applied.to_bytes(before), b"two one\n");
    assert_eq!(applied.ranges, [0..3, 3..7, 8..13]);
    let edits = [Edit::new("two three", "x"), Edit::new("one two", "y")];
    let want = EditError::Overlap { first: 2, second: 1, line: 1 };
    assert_eq!(run(before, &edits), Err(want));
    let edits = [Edit::new("one", "1"), Edit::new("absent!", "2")];
    assert!(matches!(run(before, &edits), Err(EditError::NotFound { edit: 2, .. })));
}

#[test]
fn damaged_bytes_survive_beside_an_edit_and_are_never_replaced() {
    let before = b"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\nbad \xFF\nend\n";
    assert_eq!(after(before, "end", "END"), b"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\nbad \xFF\nEND\n");
    let error = run(before, &[Edit::new("bad \u{FFFD}", "good")]).unwrap_err();
    assert_eq!(error, EditError::Damaged { edit: 1, line: 2 });
}

#[test]
fn receipts_say_what_was_done() {
    let before = b"a\nb\nc\n";
    let applied = run(before, &[Edit::new("b\n", "b\nB\n")]).unwrap();
    let after = applied.to_bytes(before);
    assert_eq!((applied.first_changed_line, applied.size), (3, after.len()));
    assert_eq!((applied.ranges.len(), &applied.ranges[0]), (1, &(2..4)));
    let again = decode(&after).unwrap();
    assert_eq!(applied.hash_after, again.hash());
    assert_eq!(applied.hash_before, decode(before).unwrap().hash());
    let shown = diff::of_changes("a\nb\nc\n", &applied.changes, diff::Limits::default());
    assert_eq!(shown.unified(), "@@ -1,3 +1,4 @@\n a\n b\n+B\n c\n");
    assert_eq!(shown.numbered(), "1   a\n2   b\n3 + B\n4   c\n");
}

#[test]
fn a_mark_alone_is_a_character_like_any_other() {
    let all = |old: &str, new: &str| Edit { replace_all: true, ..Edit::new(old, new) };
    for wide in [false, true] {
        let form = |text: &str| -> Vec<u8> {
            if !wide {
                return text.as_bytes().to_vec();
            }
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        // The mark of the file is no part of its text.
        let file = form("\u{feff}one\nz\u{fc}ge\n");
        for edit in [Edit::new("\u{feff}", "x"), all("\u{feff}", "x"), all("\u{feff}", "")] {
            let error = run(&file, std::slice::from_ref(&edit)).unwrap_err();
            assert!(matches!(error, EditError::NotFound { .. }), "{edit:?}: {error}");
            let error = haft_text::edit::find(&decode(&file).unwrap(), &edit).unwrap_err();
            assert!(matches!(error, EditError::NotFound { .. }), "{edit:?}: {error}");
        }
        // Further ones are.
        let file = form("\u{feff}one\n\u{feff}two\n");
        for edit in [Edit::new("\u{feff}", ""), all("\u{feff}", "")] {
            let applied = run(&file, &[edit]).unwrap();
            assert_eq!(applied.to_bytes(&file), form("\u{feff}one\ntwo\n"));
        }
    }
}
