//! What a tolerance may make of a new text: nothing that is not asked for, and nothing on a guess.

use haft_text::edit::{Edit, EditError, apply};
use haft_text::{Applied, decode};
use proptest::prelude::*;

fn run(file: &str, edits: &[Edit]) -> Result<Applied, EditError> {
    apply(&decode(file.as_bytes()).unwrap(), edits)
}

fn one(file: &str, old: &str, new: &str) -> Result<Applied, EditError> {
    run(file, &[Edit::new(old, new)])
}

fn after(file: &str, old: &str, new: &str) -> String {
    match one(file, old, new) {
        Ok(applied) => String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap(),
        Err(error) => panic!("{file:?} {old:?} {new:?}: {error}"),
    }
}

fn said(file: &str, edits: &[(&str, &str)]) -> String {
    let edits: Vec<Edit> = edits.iter().map(|(old, new)| Edit::new(*old, *new)).collect();
    run(file, &edits).unwrap_err().to_string()
}

#[test]
fn an_escape_that_may_be_meant_literally_is_not_resolved() {
    let abc = "a = 1\nb = 2\nc = 3\n";
    for (file, old, new) in [
        (abc, r"a = 1\nb = 2", r#"print("x\n")"#),
        (abc, r"a = 1\nb = 2", r#"p = "C:\new\table"\nb = 2"#),
        ("Let $x$\nand\n", r"Let $x$\nand", r"Let $\nu = \tau$\nand"),
        ("Let $x$\nand\n", r"Let $x$\nand", r"Let $\nu$\nand"),
        ("Let $x$\nand\n", r"Let $x$\nand", r"Let \alpha + \nu\nand"),
        ("if x {\n\tx := 1\n}\n", r"\tx := 1", r#"\tfmt.Printf("%d\t%d", 1, 2)"#),
        (abc, r"a = 1\nb = 2", r#"a = re.sub("\n", "", b)"#),
        (abc, r"a = 1\nb = 2", r"a = 'x\ny'\nb = 2"),
        (abc, r"a = 1\nb = 2", r"a = f'x\n'\nb = 2"),
        (abc, r"a = 1\nb = 2", r"a = `x\ny`\nb = 2"),
        (abc, r"a = 1\nb = 2", r"a = s.split(/\n/)\nb = 2"),
        (abc, r"a = 1\nb = 2", r"a = C:\new\nb = 2"),
        (abc, r"a = 1\nb = 2", r"a = 1\n\tb = 2"),
        // A quote without a partner pairs with one of the string behind it.
        (abc, r"a = 1\nb = 2\n", r#"a = 1\nb = 2 // the 5" one, join("\n")\n"#),
        (abc, r"a = 1\nb = 2\n", r#"a = 1\nb = 2 // 5" join("\n") 6"\n"#),
        (abc, r"a = 1\nb = 2\n", r"a = 1\nb = 2 // the '90s one, join('\n')\n"),
        (abc, r"a = 1\nb = 2\n", r"a = 1\nb = 2 // ` and `\n`\n"),
        (
            "fn a(c: char) {\n    let q = 1;\n    end();\n}\n",
            r"fn a(c: char) {\n    let q = 1;\n",
            r#"fn a(c: char) {\n    let q = 1; // the 5" one, join("\n")\n"#,
        ),
        // A line as the file has it.
        ("# r'\\\\?\\C:'\nb = 2\n", "# r'\\\\\\\\?\\\\C:'\nb = 2", "# r'\\\\?\\C:'\nb = 3"),
    ] {
        let error = one(file, old, new).map(|_| format!("{new} was made")).unwrap_err();
        assert!(matches!(error, EditError::Unclear { .. }), "{new}: {error:?}");
    }
}

#[test]
fn an_escape_that_agrees_with_the_old_text_is_resolved() {
    for (file, old, new, want) in [
        (
            "a = 1\nb = 2\nc = 3\n",
            r"a = 1\nb = 2",
            r"a = 1\nb = 3\nc = 4",
            "a = 1\nb = 3\nc = 4\nc = 3\n",
        ),
        ("a = 1\nb = 2\n", r"a = 1\nb = 2", r"don't\ncan't\nb = 2", "don't\ncan't\nb = 2\n"),
        ("f(&'a x)\nb\n", r"f(&'a x)\nb", r"f(&'a x)\ng(&'a y)\nb", "f(&'a x)\ng(&'a y)\nb\n"),
        ("s = \"a\nb\"\nx\n", r#"s = "a\nb"\nx"#, r#"s = "a\nb"\ny"#, "s = \"a\nb\"\ny\n"),
        (
            "$a = 1;\nb\n",
            r"$a = 1;\nb",
            r"$a = 1;\n$b = $c;\n$d = 2;\nb",
            "$a = 1;\n$b = $c;\n$d = 2;\nb\n",
        ),
        ("a(\"x\")\nb\n", r#"a("x")\nb"#, r#"a("x")\nc("y")\nb"#, "a(\"x\")\nc(\"y\")\nb\n"),
        (
            "/// a\n/// b\n",
            r"/// a\n/// b",
            r"/// a\n/// x\n///\n/// y\n/// b",
            "/// a\n/// x\n///\n/// y\n/// b\n",
        ),
        (
            "/* a */\n/* b */\n",
            r"/* a */\n/* b */",
            r"/* a */\n/* c */\n/* b */",
            "/* a */\n/* c */\n/* b */\n",
        ),
        ("a\nb\n", r"a\nb", r#"a\nsay(\"x\")\nb"#, "a\nsay(\"x\")\nb\n"),
        ("a\nb\n", r"a\nb", r#"a\nc(r"x", '"', "'")\nb"#, "a\nc(r\"x\", '\"', \"'\")\nb\n"),
        ("// 5\"\na\nb\n", r#"// 5"\na\nb"#, r#"// 5"\na\nc\nb"#, "// 5\"\na\nc\nb\n"),
        ("a = '\\'\nb\n", r"a = '\\'\nb", r"a = '\\'\nc", "a = '\\'\nc\n"),
        // A quote behind a tab that is written out begins a string.
        ("\t\"os\"\n)\n", r#"\t"os"\n)"#, r#"\t"os" name\n)\n)"#, "\t\"os\" name\n)\n)\n"),
    ] {
        assert_eq!(after(file, old, new), want, "{new}");
    }
}

/// A file whose strings hold escapes of their own.
const STRINGS: &str =
    "fn main() {\n    println!(\"a\\nb\");\n\tlet x = \"q\\\"t\\\\\";\n    done('\\n');\n}\n";

#[test]
fn a_text_escaped_once_more_is_taken_back_by_one_level() {
    let once = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        text.replace('\n', "\\n").replace('\t', "\\t")
    };
    // Real line ends and tabs, or real quotes, beside what is escaped.
    let inline = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let slashes = |text: &str| text.replace('\\', "\\\\");
    let ends = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    // Nothing but quotes.
    let quotes = |text: &str| text.replace('"', "\\\"");
    let print = "    println!(\"a\\nb\");\n";
    let string = "\tlet x = \"q\\\"t\\\\\";\n";
    let done = "    done('\\n');\n";
    for (old, new) in [
        (print.to_owned(), "    println!(\"x\\ny\");\n".to_owned()),
        (print.to_owned(), [print, print].concat()),
        ([print, string].concat(), string.replace('t', "z")),
        ([print, string, done].concat(), [done, "    more(\"\\\\\\n\");\n", print].concat()),
    ] {
        let want = STRINGS.replacen(&old, &new, 1);
        assert_eq!(after(STRINGS, &once(&old), &once(&new)), want, "{new:?} all escaped");
        assert_eq!(after(STRINGS, &inline(&old), &inline(&new)), want, "{new:?} but line ends");
        if !old.contains("\\\"") {
            assert_eq!(after(STRINGS, &slashes(&old), &slashes(&new)), want, "{new:?} backslashes");
            assert_eq!(after(STRINGS, &ends(&old), &ends(&new)), want, "{new:?} but quotes");
            assert_eq!(after(STRINGS, &quotes(&old), &quotes(&new)), want, "{new:?} only quotes");
        }
    }
}

#[test]
fn a_text_escaped_once_more_in_part_is_not_guessed() {
    for (old, new) in [
        // The old text is escaped once more, a string of the new one is not.
        (r#"    println!(\"a\\nb\");\n"#, r#"    println!(\"a\nb\");\n    x();\n"#),
        ("    println!(\\\"a\\\\nb\\\");\n", "    println!(\\\"x\\ny\\\");\n"),
        ("    println!(\\\"a\\\\nb\\\");\n", "    println!(\"x\\\\n\\\"y\");\n"),
        // Only quotes were escaped: the backslashes of the old text are those of the file.
        ("    println!(\\\"a\\nb\\\");\n", "    println!(\\\"x\\\", \"\\\"\");\n"),
    ] {
        let error = one(STRINGS, old, new).map(|_| format!("{new} was made")).unwrap_err();
        assert!(matches!(error, EditError::Unclear { .. }), "{new}: {error:?}");
    }
    // Two levels at once are none.
    for old in [r#"    println!(\"a\nb\");\n    let"#, r#"    println!(\\\"a\\\\nb\\\");\\n"#] {
        let error = one(STRINGS, old, "x").unwrap_err();
        assert!(matches!(error, EditError::NotFound { .. }), "{old}: {error:?}");
    }
}

#[test]
fn forms_of_the_call_are_not_brought_into_the_file() {
    for (file, old, new, want) in [
        (
            "def f():\n    a = 1\n    b = 2\n",
            "def f():\n\u{a0}\u{a0}\u{a0}\u{a0}a = 1\n",
            "def f():\n\u{a0}\u{a0}\u{a0}\u{a0}a = 1\n\u{a0}\u{a0}\u{a0}\u{a0}c = 3\n",
            "def f():\n    a = 1\n    c = 3\n    b = 2\n",
        ),
        ("a = b + c\n", "a\u{a0}= b + c", "a\u{a0}= b - c", "a = b - c\n"),
        ("print(\"a\")\n", "print(“a”)", "print(“b”)\nprint(“c”)", "print(\"b\")\nprint(\"c\")\n"),
        ("caf\u{e9} x\n", "cafe\u{301} x", "the\u{301} cafe\u{301} y", "th\u{e9} caf\u{e9} y\n"),
    ] {
        assert_eq!(after(file, old, new), want, "{new}");
    }
    // What stands for two things is left, and so is what the old text does not have; it is told.
    let applied = one("a \"b\" c\n", "a “b” c", "a\u{3000}“b” d").unwrap();
    assert_eq!(applied.brought, [(1, vec!['\u{3000}'])]);
    let file = "x\u{a0}y z\n";
    let applied = one(file, "x\u{a0}y\u{a0}z", "x\u{a0}y\u{a0}z\u{a0}q").unwrap();
    assert_eq!(applied.to_bytes(file.as_bytes()), "x\u{a0}y z\u{a0}q\n".as_bytes());
    assert_eq!(applied.brought, []);
    // Other blanks than spaces and tabs are no indentation.
    let error = one(" a = 1\n", "\u{a0}\u{a0}a = 1", "\u{a0}\u{a0}a = 2\n").unwrap_err();
    assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
}

#[test]
fn what_stays_in_a_line_keeps_its_characters() {
    let file =
        "The “quick” brown fox — it’s a café\u{a0}bar — jumps over the “lazy” dog and more.\n";
    let old = "The \"quick\" brown fox - it's a café bar - jumps over the \"lazy\" dog and more.";
    assert_eq!(after(file, old, &old.replace("brown", "red")), file.replace("brown", "red"));
    assert_eq!(
        after(file, old, &old.replace("brown fox", "fox")),
        file.replace("brown fox", "fox")
    );
    let two = old.replace("quick", "slow").replace("lazy", "fast");
    assert_eq!(after(file, old, &two), file.replace("quick", "slow").replace("lazy", "fast"));
    let file = "Prix\u{a0}: 10\u{a0}€\n";
    assert_eq!(after(file, "Prix : 10 €", "Prix : 12 €"), file.replace("10", "12"));
    let file = "a “x”\r\nb — c\r\nd\r\n";
    assert_eq!(
        after(file, "a \"x\"\nb - c\nd", "a \"y\"\nnew\nb - c\ne"),
        "a “y”\r\nnew\r\nb — c\r\ne\r\n"
    );
}

#[test]
fn what_differs_in_substance_is_no_form() {
    for (file, old) in [
        ("x = 10² + 1\n", "x = 102 + 1"),
        ("x = 2⁵ + 1\n", "x = 25 + 1"),
        ("x₁ = y\n", "x1 = y"),
        ("1½ cups\n", "11⁄2 cups"),
        ("① first\n", "1 first"),
        ("⒈ first\n", "1. first"),
        ("1ª vez\n", "1a vez"),
        ("Name™ here\n", "NameTM here"),
        ("20 ℃ now\n", "20 °C now"),
        ("5 ㎏ now\n", "5 kg now"),
        ("№ 5 now\n", "No 5 now"),
        ("Ⅳ then\n", "IV then"),
        ("xⁿ then\n", "xn then"),
        ("ℝ then\n", "R then"),
        ("µ then\n", "μ then"),
    ] {
        for (file, old) in [(file, old), (&*format!("{old}\n"), file.trim_end())] {
            let error = one(file, old, "z").map(|_| format!("{old} in {file}")).unwrap_err();
            assert!(matches!(error, EditError::NotFound { .. }), "{old:?} {error:?}");
        }
    }
    for (file, old) in [
        ("ﬁne and ﬂat\n", "fine and flat"),
        ("ＡＢＣ１２！\n", "ABC12!"),
        ("ｶﾞｲﾄﾞ\n", "ガイド"),
        ("wait… what\n", "wait... what"),
        ("20\u{212b} now\n", "20\u{c5} now"),
    ] {
        assert_eq!(after(file, old, "z"), "z\n", "{old}");
    }
}

#[test]
fn regions_that_differ_in_indentation_alone_are_candidates_together() {
    let file = "function f() {\n    if (a) {\n        go();\n    }\n}\nfunction g() {\n\tif (a) {\n\t\tgo();\n\t}\n}\n";
    let error =
        one(file, "  if (a) {\n    go();\n  }", "  if (a) {\n    stop();\n  }").unwrap_err();
    let EditError::Ambiguous { places, lines, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*places, &**lines), (2, &[2, 7][..]));
    let said = error.to_string();
    assert!(said.contains("none exact; tolerating differences in indentation"), "{said}");
    let file = "    a(\n  b)\n-\n    a(\n        b)\n";
    let error = one(file, "a(\n    b)", "a(\n    c)").unwrap_err();
    assert!(matches!(error, EditError::Ambiguous { places: 2, .. }), "{error}");
    // One that has the indentation is meant.
    let file = "  a(\n    b)\n-\n    a(\n      b)\n";
    assert_eq!(after(file, "  a(\n    b)\n-", "  a(\n    c)\n-"), file.replacen('b', "c", 1));
}

#[test]
fn what_begins_inside_an_indentation_is_taken_as_it_is_given_where_that_says_one_thing() {
    let file = "class A:\n    def f(self):\n        x = 1\n        return x\n";
    for (old, new, want) in [
        ("        x = 1", "        x = 1\n    y = 2", "        x = 1\n    y = 2"),
        ("x = 1", "x = 1\ny = 2", "        x = 1\ny = 2"),
        ("    x = 1", "    x = 2", "        x = 2"),
        ("    x = 1", "    x = 2\n\n", "        x = 2\n\n"),
        ("    x = 1", "  x = 1\n  y = 2", "      x = 1\n  y = 2"),
        (" = 1", " = 1\n y", "        x = 1\n y"),
        ("    x = 1\n        return", "    y\n    return", "        y\n    return"),
    ] {
        let applied = one(file, old, new).unwrap();
        assert_eq!(applied.tolerance, None, "{new:?}");
        let made = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
        assert!(made.contains(want), "{new:?}: {made}");
    }
    // In either way it may be there already.
    for made in ["        x = 1\n    y = 2\n", "        x = 1\n        y = 2\n"] {
        let error = one(made, "    x = 1\n", "    x = 1\n    y = 2\n").unwrap_err();
        assert!(matches!(error, EditError::AlreadyApplied { .. }), "{error}");
    }
}

#[test]
fn an_edit_of_what_another_one_brings_is_told_so() {
    let edits = [("import os", "import os\nimport sys"), ("import sys", "import sys\nimport re")];
    let said = said("import os\n", &edits);
    for word in ["Edit 2: old_text was not found", "new_text of edit 1", "as it is now", "join"] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[test]
fn all_edits_that_fail_are_told_at_once() {
    let lines: Vec<String> = (0..30).map(|at| format!("line number {at} of the file")).collect();
    let file = lines.join("\n");
    let edits = [("line number 3 of a file", "x"), ("number 4 ", "y"), ("line number", "z")];
    let all = said(&file, &edits);
    for word in ["Edit 1: old_text was not found", "Edit 3: old_text is in 30 places"] {
        assert!(all.contains(word), "{word:?} is not in: {all}");
    }
    assert!(!all.contains("Edit 2"), "{all}");
    let many: Vec<(&str, &str)> = (0..9).map(|_| ("line numbers", "x")).collect();
    let all = said(&file, &many);
    assert!(all.contains("Edit 5: ") && !all.contains("Edit 6: "), "{all}");
    assert!(all.contains("4 edits after these were not looked at"), "{all}");
}

#[test]
fn numbers_of_lines_in_an_old_text_are_told() {
    let file = "aaaa\nbbbb\ncccc  \n    dddd\neeee\n";
    for (old, new) in [
        ("134 | bbbb\n135 | cccc", "x"),
        ("7\tbbbb", "x"),
        ("2\tbbbb\n3\tcccc", "2\tbbbb\nxxxx"),
        ("2: bbbb\n3: cccc\n4:     dddd", "x"),
        ("f.py:2:bbbb", "x"),
        ("src/f.py:2:bbbb\nsrc/f.py:3:cccc", "x"),
        ("2 - bbbb\n3 - cccc", "x"),
    ] {
        let said = said(file, &[(old, new)]);
        let word = "begins with line numbers";
        assert!(said.contains(word) && said.contains("leave them out"), "{old:?}: {said}");
    }
    for old in ["7 apples", "1: 2", "3"] {
        let said = said(file, &[(old, "x")]);
        assert!(!said.contains("line numbers"), "{old:?}: {said}");
    }
    // As the diff of an answer shows lines.
    let file = "aaaa\nbbbb\n  cccc\n";
    assert_eq!(after(file, "2   bbbb\n3     cccc", "2   x\n3     cccc"), "aaaa\nx\n  cccc\n");
    assert_eq!(after(file, "2 + bbbb\n3     cccc", "x\n"), "aaaa\nx\n\n");
}

/// A line of words, with the forms that they have in the file and in the call.
fn words() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let word = prop_oneof![
        Just(("alpha", "alpha")),
        Just(("“", "\"")),
        Just(("”", "\"")),
        Just(("’", "'")),
        Just(("\u{a0}", " ")),
        Just((" ", " ")),
        Just(("—", "-")),
        Just(("café", "cafe\u{301}")),
        Just(("日", "日")),
        Just(("ﬁne", "fine")),
        Just(("\n", "\n")),
        Just((" ", "\u{a0}")),
        Just(("\"", "“")),
        Just(("b", "b")),
    ];
    prop::collection::vec(word, 1..20)
}

fn joined(words: &[(&str, &str)], part: impl Fn(&(&str, &str)) -> String) -> String {
    words.iter().map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_edit_under_a_tolerance_keeps_what_stays(head in words(), tail in words(), new in "[qrz]{1,4}( [qrz]{1,4}){0,2}") {
        let (there, given) = (|word: &(&str, &str)| word.0.to_owned(), |word: &(&str, &str)| word.1.to_owned());
        let (file_head, file_tail) = (joined(&head, there), joined(&tail, there));
        let file = format!("start\n{file_head} zebra {file_tail}\nend\n");
        let (head, tail) = (joined(&head, given), joined(&tail, given));
        let old = format!("{head} zebra {tail}");
        let fresh = format!("{head} {new} {tail}");
        if let Ok(applied) = one(&file, &old, &fresh) {
            let made = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
            let want = format!("start\n{file_head} {new} {file_tail}\nend\n");
            prop_assert_eq!(made, want, "{:?}", applied.tolerance);
        } else {
            prop_assert!(old.lines().any(|line| line.trim() != line) || old.contains("\n\n"), "{old:?}");
        }
    }

    #[test]
    fn no_escape_in_quotes_becomes_real(
        lines in prop::collection::vec("[a-c]{1,3} = [0-9]", 2..5),
        quote in "[\"'`]", inner in prop::collection::vec("[a-z%]{0,3}", 2..4), escape in r"\\[nt]",
    ) {
        let file = lines.join("\n") + "\n";
        let old = lines.join("\\n");
        let text = inner.join(&escape);
        let new = format!("{old}\\ns({quote}{text}{quote})");
        if let Ok(applied) = one(&file, &old, &new) {
            let made = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
            prop_assert!(made.contains(&text), "{made:?}");
        }
    }
}

#[test]
fn characters_may_be_written_as_answers_show_them() {
    for (before, old, new, want) in [
        ("a\u{a0}b\n", r"a\u{a0}b", r"c\u{a0}d", "c\u{a0}d\n"),
        ("x\u{200d}y z\n", r"x\u{200D}y z", "xy z", "xy z\n"),
        ("\u{200b}\n", r"\u{200b}", "", "\n"),
        ("a\tb\u{a0}c\r\n", "\tb\\u{a0}c", "\tb\\u{a0}d", "a\tb\u{a0}d\r\n"),
        // Other escapes are text, and so is one behind a backslash that is written twice.
        (
            "\tp(\"a\u{a0}b\")\n",
            "p(\"a\\u{a0}b\")",
            r#"p("a\u{a0}b\tc")"#,
            "\tp(\"a\u{a0}b\\tc\")\n",
        ),
        ("a\u{a0}b\n", r"a\u{a0}b", r"a\\u{a0}c", "a\\\\u{a0}c\n"),
        ("\u{feff}a = 1\n", r"\u{feff}a = 1", r"\u{feff}a = 2", "\u{feff}a = 2\n"),
        ("x\u{feff}a\n", r"x\u{feff}a", "xa", "xa\n"),
        // Only what the old text has, too, is meant as the character.
        ("a\u{a0}b\n", r"a\u{a0}b", r"a\u{a0}b \u{200d}", "a\u{a0}b \\u{200d}\n"),
        // Beside one that the file has as it is written.
        (
            "\"\\u{200d}\" // \u{a0}z\n",
            r#""\u{200d}" // \u{a0}z"#,
            r#""\u{200d}" // z"#,
            "\"\\u{200d}\" // z\n",
        ),
    ] {
        let applied = one(before, old, new).unwrap_or_else(|error| panic!("{old:?}: {error}"));
        let after = String::from_utf8(applied.to_bytes(before.as_bytes())).unwrap();
        assert_eq!((&*after, applied.tolerance), (want, Some("characters as shown")), "{old:?}");
    }
    // Exactly as it is written comes first.
    let applied = one("a\\u{a0}b\na\u{a0}b\n", r"a\u{a0}b", "c").unwrap();
    assert_eq!((applied.ranges.len(), applied.ranges[0].clone()), (1, 0..8));
    assert_eq!(applied.tolerance, None);
    let error = one("a\u{a0}b\na\u{a0}b\n", r"a\u{a0}b", "c").unwrap_err();
    assert!(matches!(error, EditError::Ambiguous { places: 2, .. }), "{error:?}");
    let both = "\"\\u{a0}\" = \u{a0}\n";
    let error = one(both, r#""\u{a0}" = \u{a0}"#, r#""\u{a0}";"#).unwrap_err();
    assert!(matches!(error, EditError::Unclear { .. }), "{error:?}");
    // What everybody sees is shown as itself.
    let error = one("axb\n", r"a\u{78}b", "c").unwrap_err();
    assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
}
