//! What every refusal says: the class, and the words without which nobody could go on.

use haft_text::edit::{Edit, apply};
use haft_text::{decode, encode};

const CODE: &str = "fn main() {\n\tlet total = 1;\n\tlet label = \"a\";\n\tprint(total);\n}\n";

/// A class of refusals: its name, the file, the edits, and words that the message holds.
type Case<'t> = (&'t str, &'t str, &'t [(&'t str, &'t str)], &'t [&'t str]);

/// Every class.
const CASES: &[Case<'_>] = &[
    ("two places", "x\ny\nx\n", &[("x", "z")], &["2 places, at lines 1, 3", "replace_all"]),
    (
        "overlapping places",
        "aaa\n",
        &[("aa", "b")],
        &["in 2 places that overlap, at line 1. Add", "one (of those that overlap, the first)."],
    ),
    ("several on one line", "x y x\n", &[("x", "z")], &["2 places, at line 1. Add", "exact one."]),
    (
        "several on some lines",
        "x x\ny\nx\n",
        &[("x", "z")],
        &["3 places, at lines 1 (2 places), 3. Add"],
    ),
    (
        "two places under a tolerance",
        "a \nb\n-\na  \nb\n",
        &[("a\nb", "c")],
        &[
            "2 places (none exact; tolerating differences in trailing blanks), at lines 1, 4. Add",
            "or give it exactly as it is in the file (replace_all too takes exact places only).",
        ],
    ),
    (
        "changed number",
        CODE,
        &[("\tlet total = 7;", "x")],
        &["is at line 2:\n", "     2  \tlet total = 1;", "column 14", "U+0037 '7'", "U+0031 '1'"],
    ),
    (
        "changed word",
        CODE,
        &[("let label = \"a\";\n\tprint(count);", "x")],
        &["Line 4: ", "\"count\" where the file has \"total\"", "U+0063 'c'", "U+0074 't'"],
    ),
    (
        "lost line",
        CODE,
        &[("fn main() {\n\tlet total = 1;\n\tprint(total);\n}", "x")],
        &["lines 1-5", "Line 3: the file has a line here that old_text has not", "let label"],
    ),
    (
        "invented line",
        CODE,
        &[("\tlet total = 1;\n\tlet more = 2;\n\tlet label = \"a\";\n\tprint(total);", "x")],
        &["Line 3: old_text has a line here that the file has not, \"\\tlet more = 2;\""],
    ),
    (
        "left-out middle",
        CODE,
        &[("fn main() {\n\t// ... existing code ...\n}", "x")],
        &["line 2 stands for text that was left out", "smaller edits"],
    ),
    (
        "left-out middle in brackets",
        CODE,
        &[("fn main() {\n\t[...]\n}", "x")],
        &["line 2 stands for text that was left out"],
    ),
    (
        "left-out middle in a comment",
        CODE,
        &[("fn main() {\n<!-- snip -->\n}", "x")],
        &["line 2 stands for text that was left out"],
    ),
    (
        "put in before",
        "import a\nimport b\n",
        &[("import a\n", "import a\nimport b\n")],
        &["new_text is in the file, once, at line 1", "applied already", "once more"],
    ),
    (
        "uneven indentation",
        "  a\n\tbeta(1);\n",
        &[("    a\n    beta(1);", "x")],
        &["4 x space (U+0020)", "1 x tab (U+0009)"],
    ),
    (
        "invisible characters",
        "let\u{200b} name = 1;\n",
        &[("let name = 1;", "x")],
        &["U+0020 (space)", "U+200B (zero width space)"],
    ),
    ("letter case", "fn Alpha() {}\n", &[("fn alpha() {}", "x")], &["letter case only"]),
    ("nothing alike", "a\n", &[("zzzzz", "x")], &["Nothing in the file is like it", "Read"]),
    ("applied", "one\nnew text\n", &[("old text", "new text")], &["once, at line 2", "already"]),
    (
        "perhaps applied",
        "new text\n-\nnew text\n",
        &[("absent", "new text")],
        &["not found", "new_text is in the file, at lines 1, 3"],
    ),
    ("same", "a\n", &[("a", "a")], &["are the same", "nothing would change"]),
    ("empty", "a\n", &[("", "x")], &["old_text is empty", "use write"]),
    (
        "overlap",
        "one two three\n",
        &[("one two", "1"), ("two three", "2")],
        &["Edits 1 and 2 overlap at line 1", "join the two"],
    ),
    ("second of two", "one\ntwo\n", &[("one", "1"), ("2", "x")], &["Edit 2: old_text was not"]),
];

#[test]
fn a_refusal_says_what_is_wrong_and_what_to_do() {
    for (class, file, edits, words) in CASES {
        let decoded = decode(file.as_bytes()).unwrap();
        let edits: Vec<Edit> = edits.iter().map(|(old, new)| Edit::new(*old, *new)).collect();
        let message = apply(&decoded, &edits).unwrap_err().to_string();
        for word in *words {
            assert!(message.contains(word), "{class}: {word:?} is not in: {message}");
        }
        assert!(message.len() < 4000, "{class}");
    }
}

#[test]
fn a_character_that_the_encoding_lacks_is_named() {
    let text = "Le caf\u{e9} o\u{f9} l\u{2019}\u{e9}t\u{e9} s\u{2019}\u{e9}tire \u{e0} loisir\n";
    let bytes: Vec<u8> = encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
    let decoded = decode(&bytes).unwrap();
    assert_eq!(decoded.text(), text);
    let error = apply(&decoded, &[Edit::new("loisir", "a\nb \u{2603}")]).unwrap_err();
    let message = error.to_string();
    for word in ["U+2603", "line 2", "windows-1252", "convert the file to UTF-8"] {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
    assert!(encode("\u{2603}", decoded.format()).is_err());
}

#[test]
fn damage_after_a_byte_order_mark_is_told_in_one_sentence() {
    let message = decode(b"\xFF\xFE\0\xD8").unwrap_err().to_string();
    let want =
        "the best guess is UTF-16LE, but after its byte order mark there are lone surrogates";
    assert!(message.contains(want), "{message}");
    assert_eq!(message.matches(", but ").count(), 1, "{message}");
}

#[test]
fn many_places_are_counted_to_the_last_and_listed_in_part() {
    let file = "x\n".repeat(1000);
    let decoded = decode(file.as_bytes()).unwrap();
    let message = apply(&decoded, &[Edit::new("x", "y")]).unwrap_err().to_string();
    assert!(message.contains("1000 places, at lines 1, 2, 3,"), "{message}");
    assert!(message.contains("20, and 980 more"), "{message}");
    let old = "ab".repeat(1 << 20);
    let file = "ab".repeat((1 << 20) + 999);
    let decoded = decode(file.as_bytes()).unwrap();
    let message = apply(&decoded, &[Edit::new(old, "y")]).unwrap_err().to_string();
    assert!(message.contains("1000 places"), "{message:.200}");
}

#[test]
fn the_nearest_place_is_the_one_that_lacks_one_line_alone() {
    // The other has as many equal lines in the same distance, but two that are others.
    let other = ["w", "b.c", "c.d", "d.e", "x.y", "f.g", "g.h", "end"].join("\n");
    let meant = ["a.b", "b.c", "c.d", "d.e", "put.in", "e.f", "f.g", "g.h", "end"].join("\n");
    let asked = ["a.b", "b.c", "c.d", "d.e", "e.f", "f.g", "g.h", "end"].join("\n");
    let far = "nothing of it\n".repeat(200);
    let file = format!("{other}\n{far}{meant}\n{far}");
    let decoded = decode(file.as_bytes()).unwrap();
    let message = apply(&decoded, &[Edit::new(&asked, "x")]).unwrap_err().to_string();
    let line = "Line 213: the file has a line here that old_text has not, \"put.in\".";
    assert!(message.contains(line), "{message}");
}
