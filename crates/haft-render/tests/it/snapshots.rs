//! What every shape looks like, pinned.

use haft_render::{Extent, Markdown, Renderer as _, Room, Terminal, Theme};
use haft_types::{
    Choice, Detail, DiffLine, Hash, Hunk, LineMark, Outcome, Question, Shape, Status, ToolSpec,
};

use crate::{
    questions::question,
    shapes::{self, all, at, cut},
};

fn sections(show: impl Fn(&Detail) -> String) -> String {
    let one = |(name, detail): (&str, Detail)| format!("=== {name}\n{}\n", show(&detail));
    all().into_iter().map(one).collect()
}

fn plain() -> Terminal {
    Terminal { root: Some(at("/w")), hint: "(3), ctrl+o".into(), ..Terminal::default() }
}

fn room(width: u16, lines: Option<u16>) -> Room {
    Room { width, lines, partial: false }
}

#[test]
fn terminal_text() {
    insta::assert_snapshot!(sections(|detail| plain().detail(detail, room(60, None))));
}

/// At the widths of a narrow, a usual and a wide terminal.
#[test]
fn terminal_text_at_40_columns() {
    insta::assert_snapshot!(sections(|detail| plain().detail(detail, room(40, None))));
}

#[test]
fn terminal_text_at_80_columns() {
    insta::assert_snapshot!(sections(|detail| plain().detail(detail, room(80, None))));
}

#[test]
fn terminal_text_at_160_columns() {
    insta::assert_snapshot!(sections(|detail| plain().detail(detail, room(160, None))));
}

#[test]
fn terminal_text_at_80_columns_with_colour() {
    let terminal = Terminal { color: true, ..plain() };
    insta::assert_snapshot!(sections(|detail| terminal
        .detail(detail, room(80, None))
        .replace('\u{1b}', "ESC")));
}

/// At each of these widths, in the colours of a theme.
fn at_each_width(theme: Theme, show: impl Fn(&Terminal, u16) -> String) -> String {
    let terminal = Terminal { color: true, theme, ..plain() };
    let shown = [40, 80, 160].map(|width| {
        format!("##### {width} columns\n{}", show(&terminal, width).replace('\u{1b}', "ESC"))
    });
    shown.concat()
}

#[test]
fn in_the_dark_and_in_the_light() {
    for (name, theme) in [("dark", Theme::Dark), ("light", Theme::Light)] {
        let shapes = at_each_width(theme, |terminal, width| {
            sections(|detail| terminal.detail(detail, room(width, None)))
        });
        insta::assert_snapshot!(format!("shapes_{name}"), shapes);
        let questions = at_each_width(theme, questions_of);
        insta::assert_snapshot!(format!("questions_{name}"), questions);
    }
}

/// Questions over each shape, and over commands; the answers stand below.
fn questions(width: u16, color: bool) -> String {
    questions_of(&Terminal { color, ..plain() }, width)
}

fn questions_of(terminal: &Terminal, width: u16) -> String {
    let reason = "Editing src/a.rs\nNo rule allows this: it changes the file \u{1b}src/a.rs.";
    let mut all = vec![
        ("a word", question("Reading a", None, None)),
        (
            "a command",
            question("Running it\nNo rule.", Some("cargo test --all\n  && rm -r b\u{7}"), None),
        ),
    ];
    all.extend(
        shapes::all()
            .into_iter()
            .map(|(name, detail)| (name, question(reason, None, Some(detail)))),
    );
    let shown = |(name, question): (&str, Question)| {
        let view = terminal.question(&question, Extent::SCREEN, width, "s1");
        let answer = |choice: &Choice| format!("[{}] {}\n", choice.key, choice.label);
        let answers: String = view.options.iter().map(answer).collect();
        format!("=== {name}\n{}\n{answers}", view.text.replace('\u{1b}', "ESC"))
    };
    all.into_iter().map(shown).collect()
}

#[test]
fn questions_at_40_columns() {
    insta::assert_snapshot!(questions(40, false));
}

#[test]
fn questions_at_80_columns() {
    insta::assert_snapshot!(questions(80, false));
}

#[test]
fn questions_at_160_columns() {
    insta::assert_snapshot!(questions(160, false));
}

#[test]
fn questions_at_80_columns_with_colour() {
    insta::assert_snapshot!(questions(80, true));
}

#[test]
fn terminal_text_with_colour() {
    let terminal = Terminal { color: true, ..plain() };
    insta::assert_snapshot!(sections(|detail| terminal
        .detail(detail, room(60, None))
        .replace('\u{1b}', "ESC")));
}

#[test]
fn terminal_text_in_little_room() {
    insta::assert_snapshot!(sections(|detail| plain().detail(detail, room(16, Some(3)))));
}

#[test]
fn markdown() {
    let markdown = Markdown { root: Some(at("/w")) };
    insta::assert_snapshot!(sections(|detail| markdown.detail(detail, room(0, None))));
}

#[test]
fn markdown_in_little_room() {
    let markdown = Markdown { root: Some(at("/w")) };
    insta::assert_snapshot!(sections(|detail| markdown.detail(detail, room(0, Some(2)))));
}

#[test]
fn a_fold_says_how_much_it_hides() {
    let text = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let shape = |text: &str| Shape::Terminal {
        command: "seq 20".to_owned(),
        output: text.to_owned(),
        exit: None,
        note: None,
    };
    let shown = plain().detail(&shape(&text).into(), room(40, Some(4)));
    assert_eq!(
        shown,
        "$ seq 20\n1\n2\n3\n\u{2026} 17 more lines (3), ctrl+o\nended without an exit code"
    );
    let partial = Room { partial: true, ..room(40, Some(4)) };
    let shown = plain().detail(&shape(&text).into(), partial);
    assert_eq!(shown, "$ seq 20\n\u{2026} 17 earlier lines\n18\n19\n20");
    let three = plain().detail(&shape("1\n2\n3\n4\n").into(), room(40, Some(4)));
    assert!(three.contains("\n4\n") && !three.contains("more"), "one line is not folded: {three}");
}

#[test]
fn a_cut_is_told_even_where_the_rest_is_folded() {
    let shown = plain().detail(&cut(), room(80, Some(1)));
    assert!(shown.ends_with("[lines 9-11 of 5000 shown; kept at out://c1]"), "{shown}");
}

#[test]
fn calls_and_ends_have_one_line() {
    let mut tool = ToolSpec::new("read", "Read file", "");
    tool.primary = "path".into();
    let input = serde_json::json!({ "path": "src/a.rs", "offset": 10, "limit": 41 });
    let terminal = Terminal { color: true, ..plain() };
    assert_eq!(
        terminal.call(&tool, Some(&input), None, room(80, None)),
        "\u{1b}[1mread\u{1b}[0m src/a.rs:10-50"
    );
    assert_eq!(plain().call(&tool, Some(&input), None, room(10, None)), "read src/\u{2026}");
    let failed = Outcome::ended(Status::Failed, "no such file");
    assert_eq!(plain().outcome(&failed, 3, room(80, None)), "failed in 3 ms: no such file");
}

#[test]
fn a_change_of_blanks_is_seen() {
    use LineMark::{Added, Removed};
    for (old, new, shown) in [
        ("a\u{a0}b c", "a b c", ["a<U+00A0>b c", "a b c"]),
        ("let a;", "let a; \t", ["let a;", "let a;\u{b7}\u{2192}"]),
        ("let a;\u{3000} ", "let a;", ["let a;<U+3000>\u{b7}", "let a;"]),
        ("a\u{200b}b", "ab", ["a<U+200B>b", "ab"]),
        // What did not change, and blanks that part words, are as they are.
        ("x\u{a0}y one", "x\u{a0}y two", ["x\u{a0}y one", "x\u{a0}y two"]),
        ("let a;", "let a = b;", ["let a;", "let a = b;"]),
    ] {
        let lines = [(Removed, old), (Added, new)];
        let lines = lines.map(|(mark, text)| DiffLine { mark, text: text.to_owned() });
        let (old_start, old_lines, new_start, new_lines) = (1, 1, 1, 1);
        let hunk = Hunk { old_start, old_lines, new_start, new_lines, lines: lines.to_vec() };
        let (path, hash) = (at("/w/a.rs"), Some(Hash::of(b"a")));
        let hunks = vec![hunk];
        let (from, counts) = (None, None);
        let diff = Shape::Diff { path, from, hunks, counts, before: hash, after: hash }.into();
        let text = plain().detail(&diff, room(80, None));
        let prose = Markdown::default().detail(&diff, room(80, None));
        for (mark, line) in ["-", "+"].into_iter().zip(shown) {
            let ends = format!(" {mark} {line}");
            assert!(text.lines().any(|shown| shown.ends_with(&ends)), "{text}");
            assert!(prose.contains(&format!("\n{mark}{line}\n")), "{prose}");
        }
    }
}

#[test]
fn what_is_told_beside_a_result_is_there_to_the_last_word() {
    let long = format!("[created: {}, b c]", "d/".repeat(20));
    let notes = ["[next: a]".to_owned(), long.clone(), "[two\n\u{1b}lines]".to_owned()];
    let shown = plain().notes(&notes, room(16, None));
    assert!(shown.lines().all(|line| line.chars().count() <= 16), "{shown}");
    assert!(shown.starts_with("[next: a]\n[created:\nd/d/"), "{shown}");
    assert!(shown.replace('\n', "").contains(&long.replace("[created: ", "d/")[2..30]), "{shown}");
    assert!(shown.ends_with(" b c]\n[two\n\u{241b}lines]"), "{shown}");
    let folded = plain().notes(&notes, room(16, Some(2)));
    assert!(folded.starts_with("[next: a]\n[created:\n\u{2026} "), "{folded}");
    assert_eq!(plain().text(&"x".repeat(20), room(8, Some(1))), "xxxxxxxx\nxxxxxxxx\nxxxx");
}

#[test]
fn an_end_is_bad_where_the_call_was() {
    let shape = |exit, note: &str| Shape::Terminal {
        command: String::new(),
        output: String::new(),
        exit,
        note: Some(note.to_owned()),
    };
    let with = |status| Terminal { color: true, status, ..Terminal::default() };
    for (status, exit, is_bad) in [
        (None, Some(1), true),
        (None, None, true),
        (None, Some(0), false),
        (Some(Status::Done), Some(1), false),
        (Some(Status::Done), None, false),
        (Some(Status::Failed), Some(0), true),
        (Some(Status::TimedOut), None, true),
    ] {
        let shown = with(status).detail(&shape(exit, "why").into(), room(0, None));
        assert_eq!(shown.starts_with("\u{1b}[31m"), is_bad, "{status:?} {exit:?} {shown:?}");
    }
}

#[test]
fn a_file_for_the_person_is_a_link() {
    let (_, sent) = shapes::all().into_iter().find(|(name, _)| *name == "sent").unwrap();
    let linked = Terminal { color: true, links: Some("box".to_owned()), ..plain() };
    let text = linked.detail(&sent, room(80, None));
    assert!(text.contains("file://box/w/out/a%20b.pdf\u{1b}\\"), "{text:?}");
    assert!(!plain().detail(&sent, room(80, None)).contains("file:"));
}
