//! No input makes a view dangerous, too wide or impossible.

use haft_render::{Markdown, Renderer as _, Room, Terminal, is_hidden};
use haft_types::{
    Cell, Detail, DiffLine, Entry, EntryKind, FileMatches, HostPath, Hunk, LineMark, MatchLine,
    Node, Shape, Style,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr;

/// Text with much that is dangerous in it.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\u{1b}[2J".to_owned()),
        Just("\u{1b}]52;c;eA==\u{7}".to_owned()),
        Just("\u{9b}31m".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\r".to_owned()),
        Just("\n".to_owned()),
        Just("\t".to_owned()),
        Just("```".to_owned()),
        Just("\u{200d}".to_owned()),
        Just("\u{301}".to_owned()),
        Just("\u{1f1e9}".to_owned()),
        Just("\u{65e5}".to_owned()),
        Just("\u{1b}[1;31m".to_owned()),
        Just("\u{2028}".to_owned()),
        "[ -~]{0,6}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn paths() -> impl Strategy<Value = HostPath> {
    texts().prop_map(|text| {
        HostPath::new(format!("/{}", text.replace('\0', "")).as_bytes(), Style::Posix).unwrap()
    })
}

fn hunks() -> impl Strategy<Value = Vec<Hunk>> {
    let mark = prop_oneof![Just(LineMark::Kept), Just(LineMark::Added), Just(LineMark::Removed)];
    let line = (mark, texts()).prop_map(|(mark, text)| DiffLine { mark, text });
    let numbers = any::<(u64, u64, u64, u64)>();
    let hunk = (numbers, prop::collection::vec(line, 0..6)).prop_map(|(numbers, lines)| Hunk {
        old_start: numbers.0,
        old_lines: numbers.1,
        new_start: numbers.2,
        new_lines: numbers.3,
        lines,
    });
    prop::collection::vec(hunk, 0..3)
}

fn file_matches() -> impl Strategy<Value = Vec<FileMatches>> {
    let spans = prop::collection::vec((0_u32..20, 0_u32..20), 0..3);
    let line = (any::<u64>(), texts(), spans).prop_map(|(number, text, spans)| MatchLine {
        number,
        text,
        spans,
    });
    let file = (texts(), any::<u64>(), prop::collection::vec(line, 0..4))
        .prop_map(|(path, count, lines)| FileMatches { path, count, lines });
    prop::collection::vec(file, 0..3)
}

fn simple() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (paths(), any::<u64>(), texts()).prop_map(|(path, first_line, text)| Shape::File {
            path,
            first_line,
            text
        }),
        (paths(), prop::option::of(paths()), hunks()).prop_map(|(path, from, hunks)| Shape::Diff {
            path,
            from,
            hunks,
            counts: None,
            before: None,
            after: None
        }),
        (paths(), file_matches()).prop_map(|(root, files)| Shape::Matches { root, files }),
        (texts(), texts(), any::<Option<i32>>(), prop::option::of(texts())).prop_map(
            |(command, output, exit, note)| Shape::Terminal { command, output, exit, note }
        ),
        texts().prop_map(|text| Shape::Markdown { text }),
        (texts(), any::<Option<u64>>(), any::<Option<u64>>())
            .prop_map(|(text, done, total)| Shape::Progress { text, done, total }),
        prop::collection::vec((texts(), 0..3_usize), 0..4).prop_map(|items| {
            use haft_types::TodoState::{Completed, InProgress, Pending};
            let item = |(text, at): (String, usize)| haft_types::TodoItem {
                text,
                state: [Pending, InProgress, Completed][at],
            };
            Shape::Todo { items: items.into_iter().map(item).collect() }
        }),
        texts().prop_map(|text| Shape::Json { value: serde_json::json!({ text: 1 }) }),
    ]
}

fn listed() -> impl Strategy<Value = Shape> {
    let entry = (texts(), any::<Option<u64>>(), any::<Option<i64>>(), prop::option::of(texts()))
        .prop_map(|(name, size, modified, target)| Entry {
            name,
            size,
            modified,
            target,
            kind: EntryKind::Link,
            ..Entry::default()
        });
    let leaf = texts().prop_map(|label| Node { label, children: vec![] });
    let node = leaf.prop_recursive(4, 12, 3, |inner| {
        (texts(), prop::collection::vec(inner, 0..3))
            .prop_map(|(label, children)| Node { label, children })
    });
    let cell = prop_oneof![any::<f64>().prop_map(Cell::Number), texts().prop_map(Cell::Text)];
    let rows = prop::collection::vec(prop::collection::vec(cell, 0..4), 0..4);
    prop_oneof![
        (paths(), prop::collection::vec(entry, 0..4))
            .prop_map(|(root, entries)| Shape::Entries { root, entries }),
        prop::collection::vec(node, 0..3).prop_map(|nodes| Shape::Tree { nodes }),
        (prop::collection::vec(texts(), 0..4), rows)
            .prop_map(|(columns, rows)| Shape::Table { columns, rows }),
    ]
}

fn details() -> impl Strategy<Value = Detail> {
    let one = || prop_oneof![simple(), listed()].prop_map(Detail::from);
    prop_oneof![
        4 => one(),
        1 => prop::collection::vec(one(), 0..3)
            .prop_map(|details| Shape::Many { details }.into()),
    ]
}

fn widest(text: &str) -> usize {
    let columns = |line: &str| line.graphemes(true).map(UnicodeWidthStr::width).sum();
    text.lines().map(columns).max().unwrap_or(0)
}

#[test]
fn what_is_drawn_is_hostile_wide_and_long() {
    let mut runner = TestRunner::deterministic();
    let (mut hostile, mut wide, mut long, mut coloured) = (0, 0, 0, 0);
    for _ in 0..500 {
        let detail = details().new_tree(&mut runner).unwrap().current();
        hostile += usize::from(format!("{detail:?}").contains("\\u{"));
        let room = Room { width: 20, lines: Some(3), partial: false };
        let (small, whole) = (Terminal::default().detail(&detail, room), {
            Terminal::default().detail(&detail, Room { width: 0, lines: None, partial: false })
        });
        wide += usize::from(widest(&whole) > 20);
        long += usize::from(whole.lines().count() > small.lines().count());
        let colour = Terminal { color: true, ..Terminal::default() }.detail(&detail, room);
        coloured += usize::from(colour != small);
    }
    let all = [hostile, wide, long, coloured];
    assert!(all.iter().all(|count| *count > 50), "hostile, wide, long, coloured: {all:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn terminal_text_is_harmless_and_fits(
        detail in details(), width in 1_u16..60, lines in prop::option::of(0_u16..8),
        partial in any::<bool>(),
    ) {
        let room = Room { width, lines, partial };
        let plain = Terminal::default().detail(&detail, room);
        prop_assert!(!plain.contains(|c| is_hidden(c) && c != '\n'), "{plain:?}");
        prop_assert!(widest(&plain) <= usize::from(width), "{plain:?}");
        if let Some(lines) = lines {
            // Beside the content: earlier and folded lines, one that is not worth a fold, and how a
            // command ended.
            prop_assert!(plain.lines().count() <= usize::from(lines) + 3 + 5, "{plain:?}");
        }
        let colour = Terminal { color: true, ..Terminal::default() }.detail(&detail, room);
        prop_assert_eq!(without_colours(&colour), plain);
    }

    #[test]
    fn markdown_is_harmless(detail in details(), lines in prop::option::of(0_u16..8)) {
        let room = Room { width: 0, lines, partial: false };
        let text = Markdown::default().detail(&detail, room);
        prop_assert!(!text.contains(|c| is_hidden(c) && c != '\n' && c != '\t'), "{text:?}");
    }

    #[test]
    fn a_fence_holds_whatever_is_in_it(text in "[`~a\n ]{0,30}") {
        let shape = Shape::Terminal { command: "x".into(), output: text, exit: Some(0), note: None };
        let view = Markdown::default().detail(&shape.into(), Room::default());
        let fence: String = view.chars().take_while(|c| *c == '`').collect();
        let inside: Vec<&str> = view.lines().skip(1).collect();
        let (last, inside) = inside.split_last().unwrap();
        prop_assert_eq!(*last, fence.as_str());
        prop_assert!(inside.iter().all(|line| !line.contains(&fence)));
    }
}

/// Takes out exactly the sequences that the renderer may write.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    for (index, piece) in text.split('\u{1b}').enumerate() {
        plain.push_str(match index {
            0 => piece,
            _ => piece.split_once('m').unwrap().1,
        });
    }
    plain
}

#[test]
fn a_deep_tree_and_deep_details_are_no_harm() {
    let mut node = Node { label: "x".to_owned(), children: vec![] };
    for _ in 0..2_000 {
        node = Node { label: "x".to_owned(), children: vec![node] };
    }
    let tree = Shape::Tree { nodes: vec![node] }.into();
    let room = Room { width: 20, lines: Some(5), partial: false };
    assert_eq!(Terminal::default().detail(&tree, room).lines().count(), 6);
    let mut detail: Detail = tree;
    for _ in 0..200 {
        detail = Shape::Many { details: vec![detail] }.into();
    }
    assert!(Terminal::default().detail(&detail, room).contains("nested too deep"));
    assert!(Markdown::default().detail(&detail, room).contains("nested too deep"));
}

#[test]
fn one_endless_line_costs_little() {
    let text = "x".repeat(20_000_000);
    let shape = Shape::Terminal { command: String::new(), output: text, exit: Some(0), note: None };
    let view = Terminal::default()
        .detail(&shape.into(), Room { width: 80, lines: Some(10), partial: false });
    assert!(view.len() < 200);
}
