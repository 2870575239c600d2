//! Texts that are too much, and such that are made to be.

use std::time::{Duration, Instant};

use haft_shell::{DEEPEST, Fault, Kind, LONGEST, MOST_WORDS, parse};

fn fault(text: &str) -> Fault {
    parse(text, &mut || true).unwrap_err()
}

#[test]
fn there_is_a_limit_to_all_of_it() {
    assert_eq!(fault(&"a ".repeat(LONGEST)), Fault::TooLong(2 * LONGEST));
    assert_eq!(fault("a\0b"), Fault::Nul);
    assert_eq!(fault(&"a ".repeat(MOST_WORDS + 1)), Fault::TooManyWords);
    assert_eq!(fault("a {1..99999}"), Fault::TooManyWords);
    assert_eq!(fault("a {1..99}{1..99}{1..99}"), Fault::TooManyWords);
    let deep = |depth: usize| format!("{}a{}", "( ".repeat(depth), " )".repeat(depth));
    assert_eq!(fault(&deep(DEEPEST + 1)), Fault::TooDeep);
    assert!(parse(&deep(20), &mut || true).is_ok());
    assert_eq!(parse("ls", &mut || true).unwrap().commands.len(), 1);
    let long = "ls | wc; ".repeat(5_000);
    assert_eq!(parse(&long, &mut || false), Err(Fault::TooMuch));
}

#[test]
fn a_wide_character_behind_a_brace_is_not_given_to_the_grammar() {
    for text in ["a {\u{10fff0}", "a {1\u{10fff0}", "a {1..\u{10fff0}", "a {1..2\u{10fff0}}"] {
        assert!(matches!(fault(text), Fault::Unclear { at: 2, .. }), "{text:?}");
    }
    assert!(parse("a {\u{e9},b} \u{10fff0}", &mut || true).is_ok());
}

#[test]
fn two_parentheses_are_arithmetic_or_nothing() {
    for text in ["! ((x=$(a)))", "((a); (b))", "echo $((a); (b))"] {
        let read = parse(text, &mut || true);
        let kind = |script: &haft_shell::Script| script.commands.last().map(|command| command.kind);
        let is_right = read.as_ref().is_ok_and(|script| kind(script) == Some(Kind::Arithmetic));
        assert!(is_right || matches!(read, Err(Fault::Unclear { .. })), "{text} {read:?}");
    }
    assert!(parse("( (a); b )", &mut || true).is_ok());
}

#[test]
fn a_mark_that_stands_at_a_word_belongs_to_it() {
    for (text, wanted) in [("! a > b", Some("a")), ("!a", Some("!a")), ("!] > b", None)] {
        let script = parse(text, &mut || true).unwrap_or_default();
        let name = script.commands.first().and_then(|command| command.words.first()?.literal());
        assert!(name.is_none() || name.as_deref() == wanted, "{text} {script:?}");
    }
}

#[test]
fn what_is_made_to_be_too_much_is_a_fault_or_read() {
    let many = |piece: &str| piece.repeat(LONGEST / piece.len());
    for piece in [
        "a&&",
        "a|",
        "a;",
        "(",
        "$(",
        "${",
        "`",
        "\"$(",
        "{",
        "((",
        "$((",
        "[[ ",
        "<<E\n",
        "x(){ ",
        "if ",
        "case x in a) ",
        "!",
        "! a;",
        "! a|",
        "a;; ",
        "case x in a) ! a;; esac\n",
        "for x in ",
        "{a,",
        "{a,b}",
        "\\\n",
        "'",
        "#",
        "a=(",
        "a[",
        ">",
        "<(",
        "~",
    ] {
        for text in [many(piece), format!("{}a", &many(piece)[..LONGEST / 2])] {
            // What counts is that it comes back soon.
            let start = Instant::now();
            let _ = parse(&text, &mut || start.elapsed() < Duration::from_millis(50));
            assert!(start.elapsed() < Duration::from_secs(5), "{piece:?}");
        }
    }
    let branches = format!("case x in\n{}esac", "a) ! b;;\n".repeat(3_000));
    assert_eq!(parse(&branches, &mut || true).unwrap().commands.len(), 3_001);
    let long = format!("{}a", "a && ".repeat(10_000));
    assert_eq!(parse(&long, &mut || true), Err(Fault::TooManyWords));
    let long = format!("{}a", "a && ".repeat(9_000));
    assert_eq!(parse(&long, &mut || true).unwrap().commands.len(), 9_001);
}
