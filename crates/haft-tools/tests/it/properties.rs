//! What holds of the file tools on every host, whatever a file and a call hold: not one byte outside
//! of what was asked for changes, and what was done can be taken back and made again.

use std::collections::BTreeMap;

use haft_testkit::{machine::times, world::World};
use haft_tool::Undo;
use haft_types::{Body, Receipt, Status};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::both;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Written {
    Utf8,
    Marked,
    Little,
    Big,
    /// ISO 8859-1, for which only some texts are taken.
    Latin,
}

impl Written {
    /// A piece of a file, without a mark; none where this encoding has no such character.
    fn piece(self, text: &str) -> Option<Vec<u8>> {
        let wide = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect();
        match self {
            Self::Utf8 | Self::Marked => Some(text.as_bytes().to_vec()),
            Self::Little => Some(wide(u16::to_le_bytes)),
            Self::Big => Some(wide(u16::to_be_bytes)),
            Self::Latin => text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        }
    }

    /// A whole file.
    fn file(self, text: &str) -> Option<Vec<u8>> {
        let mark: &[u8] = match self {
            Self::Marked => b"\xEF\xBB\xBF",
            Self::Little => b"\xFF\xFE",
            Self::Big => b"\xFE\xFF",
            Self::Utf8 | Self::Latin => b"",
        };
        Some([mark, &self.piece(text)?].concat())
    }
}

/// A file and a place in it that is there once, and what shall stand there.
#[derive(Clone, Debug)]
struct Case {
    written: Written,
    before: String,
    old: String,
    new: String,
    after: String,
}

fn case() -> impl Strategy<Value = Option<Case>> {
    let written = prop::sample::select(vec![
        Written::Utf8,
        Written::Marked,
        Written::Little,
        Written::Big,
        Written::Latin,
    ]);
    let pieces = prop::sample::select(vec![
        "let ",
        "total",
        "caf\u{e9}",
        "na\u{ef}ve",
        " ",
        "  ",
        "\t",
        "\n",
        "\n",
        "\r\n",
        "\r\n",
        "= 1;",
        "x",
        "\u{201c}",
        "\u{a0}",
        "\u{65e5}\u{672c}",
        "\u{1F600}",
        "{",
        "}",
        "e\u{301}",
    ]);
    let pieces = prop::collection::vec(pieces, 2..80);
    let new = prop::sample::select(vec!["", "new", "\u{e9}t\u{e9}", "a b", "  ", "\u{65e5}"]);
    (written, pieces, any::<(usize, usize)>(), new).prop_map(
        |(written, pieces, (from, len), new)| {
            let from = from % (pieces.len() - 1);
            let to = from + 1 + len % (pieces.len() - from).min(12);
            let [before, old, after] =
                [&pieces[..from], &pieces[from..to], &pieces[to..]].map(<[&str]>::concat);
            // Whatever line ends the call has, it means this place alone.
            let plain = [&*before, &*old, &*after].concat().replace("\r\n", "\n");
            let wanted = old.replace("\r\n", "\n");
            let places = plain.char_indices().filter(|(at, _)| plain[*at..].starts_with(&wanted));
            let once = places.count() == 1;
            let new = new.to_owned();
            (once && old != new).then_some(Case { written, before, old, new, after })
        },
    )
}

/// What all calls so far changed, the newest first.
fn receipts(world: &World) -> Vec<Receipt> {
    let bodies = world.recorder.bodies().into_iter();
    let ended = bodies.filter_map(|body| match body {
        Body::CallEnded { outcome, .. } => Some(outcome.receipts),
        _ => None,
    });
    let mut all: Vec<Receipt> = ended.flatten().collect();
    all.reverse();
    all
}

async fn take_back(world: &World, newest_first: &[Receipt]) -> Vec<Receipt> {
    let undo = Undo {
        host: &*world.host,
        queues: &world.session.queues,
        pre_images: world.session.pre_images(),
        forbids: &|_| None,
    };
    let mut made = undo.take_back(newest_first, false).await.unwrap().receipts;
    made.reverse();
    made
}

/// Edits the file; whether it was done. Then takes that back and makes it again.
async fn edited(world: &World, case: &Case, start: &[u8], wanted: &[u8]) -> bool {
    let edit = json!({"old_text": case.old, "new_text": case.new});
    let outcome = world.call("edit", json!({"path": "file.txt", "edits": [edit]})).await;
    let now = world.read_bytes("file.txt").await.unwrap().unwrap();
    if outcome.status != Status::Done {
        assert!(now == start, "{case:?}: {}", outcome.joined_text());
        return false;
    }
    assert!(now == wanted, "{case:?}: {}", outcome.joined_text());
    let undone = take_back(world, &receipts(world)).await;
    assert!(world.read_bytes("file.txt").await.unwrap().unwrap() == start, "{case:?}");
    take_back(world, &undone).await;
    assert!(world.read_bytes("file.txt").await.unwrap().unwrap() == wanted, "{case:?}");
    true
}

#[tokio::test]
async fn no_byte_outside_of_an_edit_changes_and_it_can_be_taken_back_and_made_again() {
    let mut runner = TestRunner::deterministic();
    let (mut tried, mut done) = (0, BTreeMap::new());
    while tried < times(150) {
        let Some(case) = case().new_tree(&mut runner).unwrap().current() else { continue };
        let whole = [&*case.before, &*case.old, &*case.after].concat();
        let changed = [&*case.before, &*case.new, &*case.after].concat();
        let Some(start) = case.written.file(&whole) else { continue };
        // A character that the encoding lacks is refused.
        let wanted = case.written.file(&changed).unwrap_or_default();
        tried += 1;
        for world in both(&[("file.txt", &start)]) {
            if edited(&world, &case, &start, &wanted).await {
                *done.entry(case.written).or_insert(0) += 1;
            }
        }
    }
    // Which encoding a short text has may be unclear, and then it is refused.
    assert!(done.len() == 5 && done.values().sum::<u64>() > tried, "{done:?} of {tried}");
}

/// A call of some tool that changes files; some cannot be done.
fn any_call() -> impl Strategy<Value = (&'static str, Value)> {
    let path = || prop::sample::select(vec!["a.txt", "b.txt", "d/c.txt", "d/e/f.txt"]);
    let text = || "[a-c\r\n\u{e9}]{0,8}";
    let entry = prop_oneof![
        (path(), text()).prop_map(|(path, text)| json!({"path": path, "content": text})),
        path().prop_map(|path| json!({"path": path, "delete": true})),
        (path(), path()).prop_map(|(path, to)| json!({"path": path, "move_to": to})),
        (path(), text()).prop_map(|(path, text)| {
            json!({"path": path, "edits": [{"old_text": "a", "new_text": text, "replace_all": true}]})
        }),
    ];
    let files = prop::collection::vec(entry, 1..4).prop_map(|files| json!({"files": files}));
    let edit = (path(), text(), any::<bool>()).prop_map(|(path, text, all)| {
        let edit = json!({"old_text": "b", "new_text": text, "replace_all": all});
        json!({"path": path, "edits": [edit]})
    });
    prop_oneof![
        2 => (path(), text()).prop_map(|(path, text)| ("write", json!({"path": path, "content": text}))),
        2 => edit.prop_map(|input| ("edit", input)),
        3 => files.prop_map(|input| ("edit", input)),
    ]
}

/// Every file and what it holds; folders that were made on the way are nobody's.
async fn files(world: &World) -> BTreeMap<String, Vec<u8>> {
    let mut files = world.files().await.unwrap();
    files.retain(|name, _| !name.ends_with('/'));
    files
}

#[tokio::test]
async fn calls_of_all_tools_that_change_files_are_taken_back_and_made_again() {
    let mut runner = TestRunner::deterministic();
    let calls = prop::collection::vec(any_call(), 1..8);
    let mut changes = 0;
    for _ in 0..times(40) {
        let calls = calls.new_tree(&mut runner).unwrap().current();
        for world in both(&[("a.txt", b"abba\r\n"), ("d/c.txt", b"")]) {
            let mut states = vec![(files(&world).await, 0)];
            for (tool, input) in &calls {
                world.call(tool, input.clone()).await;
                states.push((files(&world).await, receipts(&world).len()));
            }
            let all = receipts(&world);
            changes += all.len();
            // Call by call back to the start, then call by call to the end.
            let mut back = Vec::new();
            for pair in states.windows(2).rev() {
                let [(before, from), (after, to)] = pair else { unreachable!() };
                let undone = take_back(&world, &all[all.len() - to..all.len() - from]).await;
                assert_eq!(files(&world).await, *before, "{calls:?}");
                back.push((undone, after));
            }
            for (undone, after) in back.into_iter().rev() {
                take_back(&world, &undone).await;
                assert_eq!(files(&world).await, *after, "{calls:?}");
            }
        }
    }
    assert!(changes > 100, "{changes}");
}
