//! Changes are kept as they are made, and taken back and made again byte by byte.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    sync::Arc,
};

use haft_host::{FsOp, ListHow, Memory, Source, WriteHow};
use haft_testkit::{machine::peak, world::World};
use haft_tool::{Cx, MemoryPreImages, PendingPreImage, PinGuard, PreImages, UndoError, roll_back};
use haft_types::{
    Access, Blob, Body, EntryKind, Follow, Hash, HostPath, Outcome, Plan, Receipt, ReceiptAction,
    Rights, Target,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Probe, tools};

/// A tool that changes files as it is told, and gives no receipts of its own.
fn changer() -> Probe {
    Probe::new("change")
        .plan(|_, place| {
            let root = place.cwd.clone();
            Plan::new(place, "Changing").with(Access::Destroy, Target::Tree { root })
        })
        .run(|input, cx| async move {
            for step in input["steps"].as_array().unwrap() {
                // What cannot be done is left out: nothing may be told of it then.
                drop(one(step, &cx).await);
            }
            Ok(Outcome::text("done"))
        })
}

async fn one(step: &Value, cx: &Cx) -> io::Result<()> {
    let fs = cx.host.fs();
    let path = |key: &str| cx.path(step[key].as_str().unwrap()).unwrap();
    let at = fs.locate(&path("path"), Follow::Yes).await?;
    match step["do"].as_str().unwrap() {
        "write" => {
            let text = step["text"].as_str().unwrap().to_owned();
            let how = WriteHow { parents: true, ..WriteHow::default() };
            fs.write(&at, text.into(), how).await.map(drop)
        }
        "remove" => fs.remove(&at).await,
        "move" => {
            let to = fs.locate(&path("to"), Follow::Yes).await?;
            let data = step["text"].as_str().map(|text| text.to_owned().into());
            fs.stage_move(&at, &to, data).await?.place().await.map(drop)
        }
        _ => {
            let to = fs.locate(&path("to"), Follow::Yes).await?;
            fs.rename(&at, &to).await
        }
    }
}

fn receipts(world: &World) -> Vec<Receipt> {
    let bodies = world.recorder.bodies();
    let ended = bodies.into_iter().filter_map(|body| match body {
        Body::CallEnded { outcome, .. } => Some(outcome.receipts),
        _ => None,
    });
    ended.flatten().collect()
}

type Files = BTreeMap<String, (Vec<u8>, Option<Rights>)>;

/// Every file with its rights. Folders that were made for a file that then went are nobody's.
async fn files(world: &World) -> Files {
    let mut files = Files::new();
    for (name, content) in world.files().await.unwrap() {
        if !name.ends_with('/') {
            let path = world.root.join(&name).unwrap();
            let at = world.host.fs().locate(&path, Follow::No).await.unwrap();
            files.insert(name, (content, world.host.fs().rights(&at).await.unwrap()));
        }
    }
    files
}

async fn take_back(
    world: &World,
    oldest_first: &[Receipt],
    force: bool,
) -> Result<Vec<Receipt>, UndoError> {
    world
        .take_back(oldest_first, force, &|path| {
            path.text().ends_with("denied").then(|| "a rule says so".to_owned())
        })
        .await
}

fn any_step() -> impl Strategy<Value = Value> {
    let path = || prop::sample::select(vec!["a", "b.txt", "d/c", "d/e/f"]);
    let text = || {
        prop_oneof![
            3 => "[a-c\r\n\u{e9}]{0,6}",
            1 => (1_usize..3).prop_map(|n| "x".repeat(n * 1_100_000)),
        ]
    };
    prop_oneof![
        4 => (path(), text()).prop_map(|(path, text)| json!({"do": "write", "path": path, "text": text})),
        3 => (path(), path(), prop::option::of(text())).prop_map(|(path, to, text)| {
            json!({"do": "move", "path": path, "to": to, "text": text})
        }),
        2 => path().prop_map(|path| json!({"do": "remove", "path": path})),
        2 => (path(), path()).prop_map(|(path, to)| json!({"do": "rename", "path": path, "to": to})),
    ]
}

async fn there_and_back(world: World, calls: Vec<Vec<Value>>, split: usize) {
    let before = files(&world).await;
    let mut middle = None;
    for (number, steps) in calls.iter().enumerate() {
        if number == split {
            middle = Some((files(&world).await, receipts(&world).len()));
        }
        world.call("change", json!({"steps": steps})).await;
    }
    let (middle, cut) = middle.unwrap();
    let after = files(&world).await;
    let all = receipts(&world);
    let undone = take_back(&world, &all, false).await.unwrap();
    assert_eq!(files(&world).await, before);
    let redone = take_back(&world, &undone, false).await.unwrap();
    assert_eq!(files(&world).await, after);
    take_back(&world, &redone, false).await.unwrap();
    assert_eq!(files(&world).await, before);
    // Once more in two parts, and the second one alone.
    let again = take_back(&world, &undone, false).await.unwrap();
    assert_eq!((files(&world).await, again.len()), (after, redone.len()));
    take_back(&world, &all[cut..], false).await.unwrap();
    assert_eq!(files(&world).await, middle);
    take_back(&world, &all[..cut], false).await.unwrap();
    assert_eq!(files(&world).await, before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]
    #[test]
    fn undo_then_redo_is_the_identity(
        calls in prop::collection::vec(prop::collection::vec(any_step(), 1..5), 1..5),
        split in any::<prop::sample::Index>(),
        local in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let split = split.index(calls.len());
        runtime.block_on(async move {
            let (changer, start) = (tools([changer()]).0, [("a", "one\r\n"), ("d/c", "")]);
            let world = if local {
                let world = World::local(changer, start).unwrap();
                let path = world.folder().unwrap().join("a");
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o751);
                std::fs::set_permissions(path, mode).unwrap();
                world
            } else {
                World::memory(changer, start).unwrap()
            };
            there_and_back(world, calls, split).await;
        });
    }
}

fn write(path: &str, text: &str) -> Value {
    json!({"steps": [{"do": "write", "path": path, "text": text}]})
}

#[tokio::test]
async fn a_tool_without_receipts_gets_them() {
    let world = World::memory(tools([changer()]).0, [("a", "one")]).unwrap();
    world.call("change", write("a", "two")).await;
    world.call("change", write("x/y/n", "new")).await;
    let steps = json!({"steps": [
        {"do": "write", "path": "t", "text": "came"}, {"do": "remove", "path": "t"},
        {"do": "write", "path": "a", "text": "three"}, {"do": "write", "path": "a", "text": "four"},
    ]});
    world.call("change", steps).await;
    let found = receipts(&world);
    assert_eq!(found.len(), 3, "{found:?}");
    let hash = |text: &str| Some(Hash::of(text.as_bytes()));
    assert_eq!((found[0].before, found[0].after), (hash("one"), hash("two")));
    assert_eq!(found[1].action, ReceiptAction::Created);
    let made: Vec<String> = found[1].made.iter().map(|path| path.text().into_owned()).collect();
    assert_eq!(made, ["/w/x", "/w/x/y"]);
    assert_eq!((found[2].before, found[2].after), (hash("two"), hash("four")));
    assert!(found.iter().all(|r| r.pre_image.is_some() == r.before.is_some()), "{found:?}");
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_and_done() {
    let world = World::memory(tools([changer()]).0, [("a", "too much"), ("b", "ok")]).unwrap();
    let small = Arc::new(MemoryPreImages::with_quota(4));
    world.session.services.insert::<dyn PreImages>(small);
    let outcome = world.call("change", write("a", "x")).await;
    assert!(outcome.joined_text().contains("a cannot be undone: "), "{outcome:?}");
    assert!(!world.call("change", write("b", "y")).await.joined_text().contains("undone"));
    let all = receipts(&world);
    let error = take_back(&world, &all, false).await.unwrap_err();
    assert!(matches!(&error, UndoError::NotKept { .. }), "{error}");
    assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"y", "all or nothing");
    let undone = take_back(&world, &all[1..], false).await.unwrap();
    assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"ok");
    take_back(&world, &undone, false).await.unwrap();
    // Who knows it, and wants the rest, gets that.
    take_back(&world, &all, true).await.unwrap();
    assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"ok");
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"x");
}

#[tokio::test]
async fn what_one_call_keeps_makes_no_room_for_what_it_keeps_later() {
    let world = World::memory(tools([changer()]).0, [("a", "123456"), ("b", "7890ab")]).unwrap();
    let small = Arc::new(MemoryPreImages::with_quota(10));
    world.session.services.insert::<dyn PreImages>(small);
    let steps = json!({"steps": [{"do": "remove", "path": "a"}, {"do": "remove", "path": "b"}]});
    let text = world.call("change", steps).await.joined_text();
    assert!(text.contains("b cannot be undone: ") && !text.contains("a cannot"), "{text}");
    let all = receipts(&world);
    take_back(&world, &all[..1], false).await.unwrap();
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"123456");
}

#[tokio::test]
async fn what_is_brought_back_makes_no_room_for_what_it_replaces() {
    let world = World::memory(tools([changer()]).0, [("a", "123456")]).unwrap();
    let small = Arc::new(MemoryPreImages::with_quota(10));
    world.session.services.insert::<dyn PreImages>(small);
    world.call("change", write("a", "x")).await;
    let path = world.root.join("a").unwrap();
    let at = world.host.fs().locate(&path, Follow::No).await.unwrap();
    world.host.fs().write(&at, "theirs".into(), WriteHow::default()).await.unwrap();
    let all = receipts(&world);
    // It cannot be kept beside what is wanted back, and is replaced only by force.
    let error = take_back(&world, &all, false).await.unwrap_err();
    let UndoError::Conflict(conflicts) = error else { panic!("{error}") };
    assert_eq!((conflicts[0].found, &conflicts[0].kept), (Some(Hash::of(b"theirs")), &None));
    let undone = take_back(&world, &all, true).await.unwrap();
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"123456");
    assert!(undone[0].before.is_some() && undone[0].pre_image.is_none(), "{undone:?}");
}

#[tokio::test]
async fn what_is_kept_already_needs_no_room() {
    let start = [("a", "123456"), ("b", "y")];
    let world = World::memory(tools([changer()]).0, start).unwrap();
    let small = Arc::new(MemoryPreImages::with_quota(10));
    world.session.services.insert::<dyn PreImages>(small);
    world.call("change", write("a", "x")).await;
    world.call("change", write("b", "123456")).await;
    let undone = take_back(&world, &receipts(&world), false).await.unwrap();
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"123456");
    assert!(undone.iter().all(|receipt| receipt.pre_image.is_some()), "{undone:?}");
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"123456");
}

/// Bytes of a big file: more than is ever looked at as a whole.
const BIG: usize = 70 << 20;

#[tokio::test]
async fn big_files_come_back_on_every_host() {
    let start = [("a", "one"), ("d/c", "two"), ("m", "three")];
    let here = World::local(tools([changer()]).0, start).unwrap();
    for world in [here, World::memory(tools([changer()]).0, start).unwrap()] {
        let room = Arc::new(MemoryPreImages::with_quota(1 << 30));
        world.session.services.insert::<dyn PreImages>(room);
        let at = |name: &'static str| {
            let (fs, path) = (world.host.fs(), world.root.join(name).unwrap());
            async move { fs.locate(&path, Follow::No).await }
        };
        let mut big = vec![0; BIG];
        (big[0], big[BIG / 2]) = (b'a', b'b');
        let bytes = bytes::Bytes::from(big);
        for name in ["a", "d/c", "m"] {
            let at = at(name).await.unwrap();
            world.host.fs().write(&at, bytes.clone(), WriteHow::default()).await.unwrap();
        }
        let steps = json!({"steps": [
            {"do": "write", "path": "a", "text": "small"}, {"do": "remove", "path": "d/c"},
            {"do": "move", "path": "m", "to": "n", "text": "moved"},
        ]});
        let text = world.call("change", steps).await.joined_text();
        assert!(!text.contains("cannot be undone"), "{text}");
        let all = receipts(&world);
        let undone = take_back(&world, &all, false).await.unwrap();
        for name in ["a", "d/c", "m"] {
            let found = at(name).await.unwrap();
            let there = world.host.fs().read(&found, 0, BIG + 1).await.unwrap();
            assert!(there == bytes, "{name} has another content");
        }
        take_back(&world, &undone, false).await.unwrap();
        assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"small");
        assert_eq!(at("d/c").await.unwrap().size(), 0);
        assert_eq!(world.read_bytes("n").await.unwrap().unwrap(), b"moved");
        assert!(world.read_bytes("m").await.unwrap().is_none());
    }
}

/// A store that has one file of zeros, however long it is, and no room for more.
struct Zeros(u64);

impl PreImages for Zeros {
    fn begin(&self, _: u64) -> io::Result<Box<dyn PendingPreImage>> {
        Err(io::ErrorKind::QuotaExceeded.into())
    }
    fn put(&self, _: &bytes::Bytes, _: Hash) -> io::Result<Blob> {
        Err(io::ErrorKind::QuotaExceeded.into())
    }
    fn open(&self, _: &Blob) -> io::Result<Source> {
        Ok(Box::new(io::repeat(0).take(self.0)))
    }
    fn hold(&self, _: Hash) -> PinGuard {
        Box::new(())
    }
    fn find(&self, _: &Hash) -> Option<Blob> {
        None
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_put_back_after_a_crash_is_never_held_as_a_whole() {
    let start = [("a", "new"), ("b", "old"), ("d", "new")];
    let world = World::local(tools([changer()]).0, start).unwrap();
    let zeros = Zeros(BIG as u64);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(io::repeat(0).take(zeros.0)).unwrap();
    let hash = Hash::from_bytes(*hasher.finalize().as_bytes());
    let receipt = |name: &str, before: Hash, after: Hash| Receipt {
        before: Some(before),
        after: Some(after),
        pre_image: Some(Blob { hash: before, len: zeros.0, mime: String::new() }),
        ..Receipt::new(
            world.host.name().to_owned(),
            world.root.join(name).unwrap(),
            ReceiptAction::Changed,
        )
    };
    // Only the second of three files was not changed when it crashed; the third was moved, too.
    let [new, old] = ["new", "old"].map(|text| Hash::of(text.as_bytes()));
    let action = ReceiptAction::Renamed { from: world.root.join("c").unwrap() };
    let moved = Receipt { action, ..receipt("d", hash, new) };
    let receipts = [receipt("a", hash, new), receipt("b", old, new), moved];
    let before = peak();
    let mended = roll_back(&*world.host, &zeros, &receipts, true).await;
    let grown = peak() - before;
    assert_eq!((mended.restored.len(), mended.left.len()), (2, 0), "{mended:?}");
    for (name, size) in [("a", zeros.0), ("c", zeros.0), ("d", 0)] {
        let path = world.root.join(name).unwrap();
        let at = world.host.fs().locate(&path, Follow::No).await.unwrap();
        assert_eq!(at.size(), size, "{name}");
    }
    assert!(grown < 8 << 20, "{grown} bytes more");
}

#[tokio::test]
async fn a_failure_puts_back_what_was_done() {
    let host = Arc::new(Memory::with_files([("/w/a", "1"), ("/w/b", "2")]).unwrap());
    let root = HostPath::new(b"/w", haft_types::Style::Posix).unwrap();
    let world = World::on(host.clone(), root, tools([changer()]).0);
    for name in ["a", "b", "c"] {
        world.call("change", write(name, "new")).await;
    }
    let (after, all) = (files(&world).await, receipts(&world));
    host.fail_next(FsOp::Remove, io::ErrorKind::StorageFull.into());
    let error = take_back(&world, &all, false).await.unwrap_err();
    assert!(matches!(error, UndoError::Io { .. }), "{error}");
    assert_eq!(files(&world).await, after);
    // Begun again after a run that was cut off in its middle, it goes on.
    take_back(&world, &all[2..], false).await.unwrap();
    let undone = take_back(&world, &all, false).await.unwrap();
    assert!(host.content("/w/c").is_none());
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(files(&world).await, after);
}

#[tokio::test]
async fn conflicts_rules_and_other_kinds_stop_all_of_it() {
    let host = Arc::new(Memory::with_files([("/w/a", "1"), ("/w/b", "2")]).unwrap());
    let root = HostPath::new(b"/w", haft_types::Style::Posix).unwrap();
    let world = World::on(host.clone(), root, tools([changer()]).0);
    world.call("change", write("a", "new")).await;
    world.call("change", write("b", "new")).await;
    let all = receipts(&world);
    host.add_file("/w/b", "theirs").unwrap();
    let Err(UndoError::Conflict(conflicts)) = take_back(&world, &all, false).await else {
        panic!("no conflict")
    };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].found, Some(Hash::of(b"theirs")));
    assert_eq!(host.content("/w/a").unwrap(), "new");
    let undone = take_back(&world, &all, true).await.unwrap();
    assert_eq!(host.content("/w/b").unwrap(), "2");
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(host.content("/w/b").unwrap(), "theirs");

    let elsewhere = Receipt { host: "ssh:far".into(), ..all[0].clone() };
    let error = take_back(&world, &[elsewhere], true).await.unwrap_err();
    assert!(matches!(error, UndoError::Elsewhere { .. }), "{error}");
    world.call("change", write("denied", "x")).await;
    let error = take_back(&world, &receipts(&world)[2..], true).await.unwrap_err();
    assert!(matches!(error, UndoError::Denied { .. }), "{error}");
    for kind in [EntryKind::Fifo, EntryKind::Folder, EntryKind::Link] {
        let fs = world.host.fs();
        let path = world.root.join("a").unwrap();
        let at = fs.locate(&path, Follow::No).await.unwrap();
        fs.remove(&at).await.unwrap();
        match kind {
            EntryKind::Folder => host.add_folder("/w/a").unwrap(),
            EntryKind::Link => host.add_link("/w/a", "b").unwrap(),
            kind => host.add_special("/w/a", kind).unwrap(),
        }
        let error = take_back(&world, &all[..1], true).await.unwrap_err();
        assert!(matches!(error, UndoError::Blocked { .. }), "{kind:?}: {error}");
    }
    let listed = ListHow { limit: 9, stat: false };
    let at = world.host.fs().locate(&world.root, Follow::No).await.unwrap();
    assert_eq!(world.host.fs().list(&at, listed).await.unwrap().total, 3);
}

#[tokio::test]
async fn calls_that_ended_out_of_order_are_put_in_order() {
    let world = World::memory(tools([changer()]).0, [("a", "0"), ("b", "0")]).unwrap();
    for text in ["1", "2", "3"] {
        world.call("change", write("a", text)).await;
        world.call("change", write("b", text)).await;
    }
    let mut all = receipts(&world);
    all.swap(0, 4);
    all.swap(1, 3);
    let undone = take_back(&world, &all, false).await.unwrap();
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"0");
    assert_eq!(world.read_bytes("b").await.unwrap().unwrap(), b"0");
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(world.read_bytes("a").await.unwrap().unwrap(), b"3");
}

fn moving(path: &str, to: &str, text: Option<&str>) -> Value {
    json!({"steps": [{"do": "move", "path": path, "to": to, "text": text}]})
}

#[tokio::test]
async fn a_moved_file_is_the_same_file_when_it_is_back() {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::local(tools([changer()]).0, [("a", "one"), ("b", "two")]).unwrap();
    let folder = world.folder().unwrap();
    let inode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().ino();
    let (a, b) = (inode("a"), inode("b"));
    world.call("change", moving("a", "d/c", None)).await;
    world.call("change", moving("b", "a", None)).await;
    world.call("change", moving("d/c", "e", None)).await;
    let all = receipts(&world);
    assert!(all.iter().all(|receipt| receipt.pre_image.is_none()), "nothing is copied: {all:?}");
    let undone = take_back(&world, &all, false).await.unwrap();
    assert_eq!((inode("a"), inode("b")), (a, b));
    assert!(!folder.join("d").exists() && !folder.join("e").exists());
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!((inode("e"), inode("a")), (a, b));
}

#[tokio::test]
async fn a_file_that_was_made_anew_before_it_was_moved_comes_back_with_its_old_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::local(tools([changer()]).0, [("a", "one")]).unwrap();
    let path = world.folder().unwrap().join("a");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let before = files(&world).await;
    let anew = json!([{"do": "remove", "path": "a"}, {"do": "write", "path": "a", "text": "two"}]);
    world.call("change", json!({"steps": anew})).await;
    world.call("change", moving("a", "b", None)).await;
    let (after, all) = (files(&world).await, receipts(&world));
    let undone = take_back(&world, &all, false).await.unwrap();
    assert_eq!(files(&world).await, before);
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(files(&world).await, after);
}

#[tokio::test]
async fn files_that_changed_places_are_taken_back_too() {
    for world in [
        World::memory(tools([changer()]).0, [("a", "one"), ("b", "two")]).unwrap(),
        World::local(tools([changer()]).0, [("a", "one"), ("b", "two")]).unwrap(),
    ] {
        let before = files(&world).await;
        for (path, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
            world.call("change", moving(path, to, None)).await;
        }
        let (after, all) = (files(&world).await, receipts(&world));
        assert_ne!(before, after);
        let undone = take_back(&world, &all, false).await.unwrap();
        assert_eq!(files(&world).await, before);
        take_back(&world, &undone, false).await.unwrap();
        assert_eq!(files(&world).await, after);
    }
}

#[tokio::test]
async fn what_came_to_the_old_name_since_is_a_conflict() {
    let host = Arc::new(Memory::with_files([("/w/a", "1")]).unwrap());
    let root = HostPath::new(b"/w", haft_types::Style::Posix).unwrap();
    let world = World::on(host.clone(), root, tools([changer()]).0);
    world.call("change", moving("a", "b", None)).await;
    let all = receipts(&world);
    host.add_file("/w/a", "theirs").unwrap();
    let error = take_back(&world, &all, false).await.unwrap_err();
    assert!(matches!(&error, UndoError::Conflict(conflicts) if conflicts.len() == 1), "{error}");
    let undone = take_back(&world, &all, true).await.unwrap();
    assert_eq!(host.content("/w/a").unwrap(), "1");
    assert!(host.content("/w/b").is_none());
    take_back(&world, &undone, false).await.unwrap();
    assert_eq!(host.content("/w/a").unwrap(), "theirs");
    assert_eq!(host.content("/w/b").unwrap(), "1");
}

#[tokio::test]
async fn an_undo_of_moves_that_fails_puts_them_forth_again_and_one_that_was_cut_off_goes_on() {
    let host = Arc::new(Memory::with_files([("/w/a", "1"), ("/w/b", "2")]).unwrap());
    let root = HostPath::new(b"/w", haft_types::Style::Posix).unwrap();
    let world = World::on(host.clone(), root, tools([changer()]).0);
    let before = files(&world).await;
    world.call("change", moving("a", "d/c", Some("new"))).await;
    world.call("change", moving("b", "d/d", None)).await;
    world.call("change", write("e", "made")).await;
    let (after, all) = (files(&world).await, receipts(&world));
    for (op, calls) in [(FsOp::Rename, 0), (FsOp::Rename, 1), (FsOp::Remove, 0)] {
        host.fail_after(op, calls, io::ErrorKind::StorageFull.into());
        let error = take_back(&world, &all, false).await.unwrap_err();
        assert!(matches!(error, UndoError::Io { .. }), "{error}");
        assert_eq!(files(&world).await, after, "{op:?} {calls}");
    }
    // Each of them alone is done already.
    for cut in 0..3 {
        take_back(&world, &all[cut..=cut], false).await.unwrap();
        let undone = take_back(&world, &all, false).await.unwrap();
        assert_eq!(files(&world).await, before);
        take_back(&world, &undone, false).await.unwrap();
        assert_eq!(files(&world).await, after);
    }
    // Both names stand for a file where one ended between two disks.
    host.add_file("/w/b", "2").unwrap();
    take_back(&world, &all, false).await.unwrap();
    assert_eq!(files(&world).await.keys().collect::<Vec<_>>(), ["a", "b"]);
}
