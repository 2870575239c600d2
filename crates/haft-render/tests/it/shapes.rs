//! One example of every shape.

use haft_types::{
    Blob, Cell, Cut, CutBy, Detail, DiffLine, Entry, EntryKind, FileMatches, Hash, HostPath, Hunk,
    LineMark, MatchLine, Node, Shape, Style, TodoItem, TodoState,
};
use serde_json::json;

pub fn at(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

fn changed(mark: LineMark, text: &str) -> DiffLine {
    DiffLine { mark, text: text.to_owned() }
}

fn file() -> Shape {
    Shape::File {
        path: at("/w/src/a.rs"),
        first_line: 9,
        text: "fn main() {\n\tprintln!(\"```\");\n}\n".to_owned(),
    }
}

fn diff() -> Shape {
    use LineMark::{Added, Kept, Removed};
    Shape::Diff {
        path: at("/w/src/a.rs"),
        from: None,
        hunks: vec![
            Hunk {
                old_start: 1,
                old_lines: 3,
                new_start: 1,
                new_lines: 3,
                lines: vec![
                    changed(Kept, "fn main() {"),
                    changed(Removed, "    let total = price + tax;"),
                    changed(Added, "    let total = price * tax;"),
                    changed(Kept, "}"),
                ],
            },
            Hunk {
                old_start: 98,
                old_lines: 1,
                new_start: 98,
                new_lines: 2,
                lines: vec![changed(Kept, "end"), changed(Added, "// \u{1b}[31mred")],
            },
        ],
        counts: None,
        before: Some(Hash::of(b"a")),
        after: Some(Hash::of(b"b")),
    }
}

/// A file that has another name and holds the same.
fn moved() -> Shape {
    let (path, hash) = (at("/w/src/b.rs"), Some(Hash::of(b"b")));
    let from = Some(at("/w/a`b.rs"));
    Shape::Diff { path, from, hunks: vec![], counts: None, before: hash, after: hash }
}

fn entries() -> Shape {
    let entry = |name: &str, kind| Entry { name: name.to_owned(), kind, ..Entry::default() };
    Shape::Entries {
        root: at("/w/src"),
        entries: vec![
            entry("sub", EntryKind::Folder),
            Entry {
                size: Some(1536),
                mode: Some(0o644),
                modified: Some(1_709_208_000_000),
                ..entry("a.rs", EntryKind::File)
            },
            Entry {
                target: Some("gone".to_owned()),
                broken: true,
                ..entry("link", EntryKind::Link)
            },
            entry("bad\nname\u{202e}", EntryKind::File),
        ],
    }
}

fn matches() -> Shape {
    let line = |number, text: &str, spans: &[(u32, u32)]| MatchLine {
        number,
        text: text.to_owned(),
        spans: spans.to_vec(),
    };
    Shape::Matches {
        root: at("/w"),
        files: vec![
            FileMatches {
                path: "src/a.rs".to_owned(),
                count: 2,
                lines: vec![
                    line(9, "// before", &[]),
                    line(10, "let needle = needle();", &[(4, 10), (13, 19)]),
                    line(120, "\tneedle", &[(1, 7)]),
                ],
            },
            FileMatches { path: "b.txt".to_owned(), count: 7, lines: vec![] },
        ],
    }
}

fn terminal() -> Shape {
    Shape::Terminal {
        command: "cargo test\n  --all".to_owned(),
        output: "\u{1b}[32mok\u{1b}[0m\r\nfailed \u{1b}]0;title\u{7}\n".to_owned(),
        exit: Some(101),
        note: Some("a test failed".to_owned()),
    }
}

fn table() -> Shape {
    let row = |name: &str, count| vec![Cell::Text(name.to_owned()), Cell::Number(count)];
    Shape::Table {
        columns: vec!["name".to_owned(), "count".to_owned()],
        rows: vec![
            row("a|b", 1.0),
            row("\u{65e5}\u{672c}\u{8a9e}", 12.5),
            row("longer name", 300.0),
        ],
    }
}

fn tree() -> Shape {
    let leaf = |label: &str| Node { label: label.to_owned(), children: vec![] };
    Shape::Tree {
        nodes: vec![
            Node {
                label: "a".to_owned(),
                children: vec![
                    Node { label: "b".to_owned(), children: vec![leaf("c"), leaf("d")] },
                    leaf("e"),
                ],
            },
            leaf("f"),
        ],
    }
}

fn todo() -> Shape {
    let item = |text: &str, state| TodoItem { text: text.to_owned(), state };
    Shape::Todo {
        items: vec![
            item("Read the parser and its tests", TodoState::Completed),
            item("Make the parser take an empty list without a panic", TodoState::InProgress),
            item("Add a test", TodoState::Pending),
        ],
    }
}

fn image() -> Shape {
    let blob = Blob { hash: Hash::of(b""), len: 12_595, mime: "image/png".to_owned() };
    Shape::Image { blob, size: Some((640, 480)), path: Some(at("/w/a_b.png")) }
}

fn sent() -> Shape {
    Shape::Sent {
        path: at("/w/out/a b.pdf"),
        address: None,
        size: 12_595,
        sha256: "0".repeat(64),
        caption: Some("The \u{202e}report".to_owned()),
    }
}

/// Every shape with its name.
pub fn all() -> Vec<(&'static str, Detail)> {
    let text =
        "# Head\n\nSome *prose* that goes on for longer than one line of the view is.\n\n```\ncode";
    let shapes = vec![
        ("file", file()),
        ("diff", diff()),
        ("moved", moved()),
        ("entries", entries()),
        ("matches", matches()),
        ("terminal", terminal()),
        ("markdown", Shape::Markdown { text: text.to_owned() }),
        ("thought", Shape::Thought { text: "The lexer.\nOr \u{1b}[31mthe parser.".to_owned() }),
        ("message", Shape::Message { text: "The first half is *done*.".to_owned() }),
        ("sent", sent()),
        ("image", image()),
        ("tree", tree()),
        ("table", table()),
        (
            "progress",
            Shape::Progress { text: "Indexing".to_owned(), done: Some(42), total: Some(100) },
        ),
        ("todo", todo()),
        ("many", Shape::Many { details: vec![image().into(), tree().into()] }),
        ("json", Shape::Json { value: json!({ "a": [1, null], "b": "x\u{1b}y" }) }),
    ];
    let mut all: Vec<_> = shapes.into_iter().map(|(name, shape)| (name, shape.into())).collect();
    all.push(("cut", cut()));
    all
}

/// A file of which only a part is there.
pub fn cut() -> Detail {
    Detail {
        shape: file(),
        cut: Some(Cut {
            from: 9,
            to: 11,
            total: Some(5000),
            by: CutBy::Lines,
            rest: Some("out://c1".to_owned()),
            end: None,
        }),
    }
}
