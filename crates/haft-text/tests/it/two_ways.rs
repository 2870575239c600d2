//! Calls whose old and new text do not slip alike: the new text is evidence of its own, and where it
//! speaks for nothing, or for both, nothing is guessed.

use haft_text::edit::{Edit, EditError, apply};
use haft_text::{Applied, decode};

fn one(file: &str, old: &str, new: &str) -> Result<Applied, EditError> {
    apply(&decode(file.as_bytes()).unwrap(), &[Edit::new(old, new)])
}

fn after(file: &str, old: &str, new: &str) -> String {
    match one(file, old, new) {
        Ok(applied) => String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap(),
        Err(error) => panic!("{file:?} {old:?} {new:?}: {error}"),
    }
}

/// The message of a refusal as two ways.
fn unclear(file: &str, old: &str, new: &str) -> String {
    match one(file, old, new) {
        Err(error @ EditError::Unclear { .. }) => error.to_string(),
        Err(error) => panic!("{file:?} {old:?} {new:?}: {error}"),
        Ok(applied) => {
            let made = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
            panic!("{file:?} {old:?} {new:?}: made {made:?}")
        }
    }
}

/// The texts between the fences of a message.
fn texts(message: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut fence = None;
    let mut text = String::new();
    for line in message.lines() {
        match fence {
            None if line.starts_with("```") => fence = Some(line),
            Some(open) if line == open => {
                texts.push(std::mem::take(&mut text));
                fence = None;
            }
            Some(_) => text = text + line + "\n",
            None => {}
        }
    }
    texts
}

/// Texts indented by so many blanks.
fn by(text: &str, blanks: usize) -> String {
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("{}{line}\n", " ".repeat(blanks)),
    };
    text.lines().map(line).collect()
}

const PY: &str = "if x:\n    a()\n    b()\n";

#[test]
fn a_new_text_that_is_indented_as_the_file_stays_as_it_is() {
    let tabs = "\tif a {\n\t\tb()\n\t}\n";
    for (file, old, new, want) in [
        (PY, "a()\nb()\n", "    a()\n    c()\n", "if x:\n    a()\n    c()\n"),
        (PY, "        a()\n        b()\n", "    a()\n    c()\n", "if x:\n    a()\n    c()\n"),
        (
            PY,
            "  a()\n  b()\n",
            "    a()\n    if b():\n        c()\n",
            "if x:\n    a()\n    if b():\n        c()\n",
        ),
        // Nothing is shared: the smallest indentation speaks alone.
        (PY, "a()\nb()\n", "    c()\n    d()\n", "if x:\n    c()\n    d()\n"),
        (PY, "        a()\n        b()", "    c()", "if x:\n    c()\n"),
        // Put around, and taken out of.
        (
            PY,
            "  a()\n  b()\n",
            "    if y:\n        a()\n        b()\n",
            "if x:\n    if y:\n        a()\n        b()\n",
        ),
        (
            tabs,
            "\t\tif a {\n\t\t\tb()\n\t\t}\n",
            "\tif a {\n\t\tc()\n\t}\n",
            "\tif a {\n\t\tc()\n\t}\n",
        ),
        (
            tabs,
            "    if a {\n        b()\n    }\n",
            "\tif a {\n\t\tc()\n\t}\n",
            "\tif a {\n\t\tc()\n\t}\n",
        ),
        (tabs, "  if a {\n    b()\n  }\n", "\tif z {\n\t\tc()\n\t}\n", "\tif z {\n\t\tc()\n\t}\n"),
        // From the first column on: the smallest indentation that is not empty.
        (
            "if a {\n\tb()\n\tc()\n}\n",
            "if a {\n    b()\n    c()\n}\n",
            "if a {\n\td()\n}\n",
            "if a {\n\td()\n}\n",
        ),
        (
            "if a {\n    b()\n    c()\n}\n",
            "if a {\n\tb()\n\tc()\n}\n",
            "if a {\n    d()\n}\n",
            "if a {\n    d()\n}\n",
        ),
    ] {
        assert_eq!(after(file, old, new), want, "{old:?} {new:?}");
        let [file, want] = [file, want].map(|text| text.replace('\n', "\r\n"));
        assert_eq!(after(&file, old, new), want, "{old:?} {new:?}");
    }
}

#[test]
fn a_new_text_that_slips_as_the_old_one_is_shifted_alike() {
    let tabs = "\tif a {\n\t\tb()\n\t}\n";
    for (file, old, new, want) in [
        (PY, "a()\nb()\n", "a()\nc()\n", "if x:\n    a()\n    c()\n"),
        (PY, "a()\nb()\n", "c()\n  d()\n", "if x:\n    c()\n      d()\n"),
        (PY, "      a()\n      b()\n", "      a()\n", "if x:\n    a()\n"),
        (
            PY,
            "  a()\n  b()\n",
            "  while y:\n      a()\n      b()\n",
            "if x:\n    while y:\n        a()\n        b()\n",
        ),
        (tabs, "  if a {\n    b()\n  }\n", "  if a {\n    c()\n  }\n", "\tif a {\n\t\tc()\n\t}\n"),
        (tabs, "if a {\n\tb()\n}\n", "if z {\n\tc()\n}\n", "\tif z {\n\t\tc()\n\t}\n"),
        (
            "if a {\n\tb()\n}\n",
            "if a {\n    b()\n}\n",
            "if a {\n    c()\n}\n",
            "if a {\n\tc()\n}\n",
        ),
    ] {
        assert_eq!(after(file, old, new), want, "{old:?} {new:?}");
    }
    // Blank lines are indented by nothing, and an empty text needs no vote.
    assert_eq!(after(PY, "a()\nb()\n", ""), "if x:\n");
    assert_eq!(after(PY, "a()\nb()\n", "\n"), "if x:\n\n");
}

#[test]
fn of_two_indentations_none_is_guessed() {
    for (file, old, new, shifted) in [
        // Neither as the file nor as the old text.
        (PY, "a()\nb()\n", "  a()\n  c()\n", "      a()\n      c()\n"),
        (PY, "  a()\n  b()\n", "   c()\n", "     c()\n"),
        // The shared line speaks for one, the smallest indentation for the other.
        (
            "if x:\n    if y:\n        a()\n        b()\n",
            "    a()\n    b()\n",
            "    if z:\n        a()\n",
            "        if z:\n            a()\n",
        ),
        (
            PY,
            "        a()\n        b()\n",
            "    if y:\n        a()\n        b()\n",
            "if y:\n    a()\n    b()\n",
        ),
        // The smallest indentation is the file's by chance: the first line is the old text's.
        (PY, "        a()\n        b()\n", "        c()\n    d()\n", "    c()\nd()\n"),
        // The shared line is indented as neither, and so is the first one.
        (
            PY,
            "  a()\n  b()\n",
            "      c()\n      a()\n    d()\n",
            "        c()\n        a()\n      d()\n",
        ),
        // Shared lines that disagree.
        (PY, "a()\nb()\n", "a()\n    b()\n", "    a()\n        b()\n"),
    ] {
        let said = unclear(file, old, new);
        for word in ["only with a tolerance (indentation)", "two ways", "nothing was changed"] {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        let there = match file {
            PY => "    a()\n    b()\n",
            _ => "        a()\n        b()\n",
        };
        assert_eq!(texts(&said), [there, new, shifted], "{said}");
        // Each is ready to be sent.
        for text in [new, shifted] {
            assert_eq!(after(file, there, text), file.replace(there, text));
        }
    }
}

#[test]
fn a_step_of_blanks_may_stand_for_a_tab() {
    let file = "fn f() {\n\tif a {\n\t\tb()\n\t}\n}\n";
    let old = "  if a {\n    b()\n  }\n";
    let there = "\tif a {\n\t\tb()\n\t}\n";
    for (new, shifted, stepped) in [
        (
            "    if a {\n        c()\n    }\n",
            "\t\tif a {\n\t\t\t\tc()\n\t\t}\n",
            "\tif a {\n\t\tc()\n\t}\n",
        ),
        ("    c()\n", "\t\tc()\n", "\tc()\n"),
    ] {
        let said = unclear(file, old, new);
        assert_eq!(texts(&said), [there, new, shifted, stepped], "{said}");
    }
    // The same the other way round, and where tabs stand for too much.
    let file = "f() {\n  if a {\n    b()\n  }\n}\n";
    let there = "  if a {\n    b()\n  }\n";
    let old = "\tif a {\n\t\tb()\n\t}\n";
    for (new, rest) in [
        ("    if a {\n        c()\n    }\n", &["  if a {\n    c()\n  }\n"][..]),
        ("\t\tc()\n", &["    c()\n", "  c()\n"]),
    ] {
        let said = unclear(file, old, new);
        assert_eq!(texts(&said), [&[there, new], rest].concat(), "{said}");
    }
    let doubled = "\t\tif a {\n\t\t\t\tc()\n\t\t}\n";
    let said = unclear("\tif a {\n\t\tb()\n\t}\n", there, doubled);
    assert_eq!(texts(&said), [old, doubled, "\tif a {\n\t\tc()\n\t}\n"], "{said}");
    // Where all readings are the same there is none to be asked for.
    assert_eq!(after("if a {\n\tb()\n}\n", "if a {\n  b()\n}\n", "c()\n"), "c()\n");
}

#[test]
fn a_text_that_is_there_exactly_is_replaced_as_it_is_given() {
    for (file, old, new) in [
        (PY, "    a()\n    b()\n", "a()\nc()\n"),
        (PY, "    a()\n    b()\n", "        a()\n        c()\n"),
        (PY, "    a()\n    b()\n", "\ta()\n\tc()\n"),
        (PY, "    a()\n", "  a()\n  c()\n"),
        (PY, "a()\n    b()\n", "a()\nc()\n"),
        (PY, "a()", "a()\nc()"),
        (
            "\tif a {\n\t\tb()\n\t}\n",
            "\tif a {\n\t\tb()\n\t}\n",
            "    if a {\n        c()\n    }\n",
        ),
    ] {
        let applied = one(file, old, new).unwrap();
        let made = String::from_utf8(applied.to_bytes(file.as_bytes())).unwrap();
        assert_eq!((made, applied.tolerance), (file.replace(old, new), None), "{old:?} {new:?}");
    }
}

#[test]
fn lines_after_one_that_begins_inside_its_indentation_are_not_guessed() {
    let file = "class A:\n    def f(self):\n        x = 1\n        return x\n";
    let line = "        x = 1\n";
    for (old, new, shifted) in [
        ("    x = 1\n", "    x = 1\n    y = 2\n", "        x = 1\n        y = 2\n"),
        ("    x = 1\n", "    x = 1\n        y = 2\n", "        x = 1\n            y = 2\n"),
        ("  x = 1\n", "  if x:\n    y = 2\n", "        if x:\n          y = 2\n"),
    ] {
        let said = unclear(file, old, new);
        let written = [&line[..line.find(old).unwrap()], new].concat();
        assert_eq!(texts(&said), [line, &written, shifted], "{said}");
        assert_eq!(after(file, line, shifted), file.replace(line, shifted));
    }
    // Where the line is found with a tolerance, too.
    let said = unclear("if a:\n    x = 1\n", "\u{a0}\u{a0}x = 1", "  x = 1\n  y");
    assert_eq!(texts(&said), ["    x = 1\n", "    x = 1\n  y\n", "    x = 1\n    y\n"], "{said}");
}

#[test]
fn texts_that_end_otherwise_and_have_fences_of_their_own_are_shown_so() {
    let file = "- a\n  ```\n  b\n  ```\n";
    let said = unclear(file, "    ```\n    b\n    ```", "   ```\n   c\n   ```\n");
    assert!(said.contains("\n````\n  ```\n  b\n  ```\n````\n"), "{said}");
    let ends = said.matches("without a line end at its end").count();
    assert_eq!(ends, 1, "{said}");
    // Alike, it goes without saying.
    let said = unclear(PY, "a()\nb()", "  a()\n  c()");
    assert!(!said.contains("line end at its end"), "{said}");
}

#[test]
fn long_texts_are_shown_where_they_differ() {
    let line = |number: usize| format!("line_{number}()\n");
    let lines: String = (0..20_000).map(line).collect();
    let file = by(&lines, 4);
    let said = unclear(&file, &lines, &by(&lines.replace("line_9()", "x()"), 2));
    assert!(said.len() < 4000, "{}", said.len());
    for word in ["two ways", "at line 1", "too long", "exactly as it is in the file"] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[test]
fn quotes_that_slip_and_come_along_are_not_guessed() {
    let curly = "He said “so” and it’s so.\nEnd.\n";
    let typed = "He said \"so\" and it's so.\nEnd.\n";
    let line = |text: &str| text.split_inclusive('\n').next().unwrap_or_default().to_owned();
    for (file, old, new, readings) in [
        (
            curly,
            typed,
            "\"No\", he said (\"so\"), and it isn't so.\n",
            [
                "\"No\", he said (\"so\"), and it isn't so.\n",
                "“No”, he said (“so”), and it isn’t so.\n",
            ],
        ),
        (
            typed,
            curly,
            "He said „so“ and it′s so.\n",
            ["He said „so\" and it′s so.\n", "He said \"so\" and it's so.\n"],
        ),
    ] {
        let said = unclear(file, &line(old), new);
        let [one, two] = readings;
        assert_eq!(texts(&said), [&*line(file), one, two], "{said}");
        assert!(said.contains("(Unicode forms)") && said.contains("two ways"), "{said}");
    }
    // Some would be paired with those of the file, others not.
    let both = "say “x” now\ny = \"q\"\n";
    let said = unclear(both, "say \"x\" now\n", "say \"y\" or \"z\" now\n");
    let readings = ["say “x” now\n", "say \"y\" or \"z\" now\n", "say “y” or “z” now\n"];
    assert_eq!(texts(&said), readings, "{said}");
    // In lines of their own both forms may be right.
    let (old, new) = ("// \"so\"\nend();\n", "// \"so\"\nsay(\"b\");\nend();\n");
    let done = after("go(\"a\");\n// “so”\nend();\n", old, new);
    assert_eq!(done, "go(\"a\");\n// “so”\nsay(\"b\");\nend();\n");
    let mixed = "say(\"a\") // “a” it’s\n";
    for (file, old, new, want) in [
        // As the file has them, or slipped as the old text; none comes along.
        (curly, line(typed), "“No”, it’s so.\n", "“No”, it’s so.\n"),
        (curly, line(typed), "He said \"so\" and it's not.\n", "He said “so” and it’s not.\n"),
        (typed, line(curly), "“No”, it’s so.\n", "\"No\", it's so.\n"),
        // The file has them, too.
        (mixed, "say(\"a\") // \"a\" it’s\n".to_owned(), "say(\"b\")\n", "say(\"b\")\n"),
        ("// it’s “so”\nsay(\"a\")\n", "// it's “so”\n".to_owned(), "say('b')\n", "say('b')\n"),
        // Quotes of the other kind did not slip.
        ("“a” b\n", "\"a\" b\n".to_owned(), "it's b\n", "it's b\n"),
    ] {
        assert_eq!(after(file, &old, new), file.replace(&line(file), want), "{new}");
    }
}
