//! Files that a tool changes together, and how what was cut off is put back.

use std::sync::{Arc, Mutex};

use haft_host::{FsOp, Memory};
use haft_testkit::world::World;
use haft_tool::{
    Cx, Journal, Journaled, MemoryPreImages, NewState, PlannedChange, PreImages, Rollback,
    roll_back,
};
use haft_types::{
    Access, Follow, Hash, HostPath, Outcome, Plan, Receipt, ReceiptAction, Rights, Status, Target,
    ToolError,
};
use serde_json::{Value, json};

use crate::support::{Probe, at, tools};

/// A tool that makes the files of its argument hold what it says, null for nothing, or moves them
/// to what `to` says, with what `text` says.
fn changer() -> Probe {
    Probe::new("change")
        .plan(|_, place| {
            let root = place.cwd.clone();
            Plan::new(place, "Changing").with(Access::Destroy, Target::Tree { root })
        })
        .run(change)
}

async fn change(input: Value, cx: Cx) -> Result<Outcome, ToolError> {
    let mut steps = Vec::new();
    for (name, text) in input["files"].as_object().unwrap() {
        let at = cx.host.fs().locate(&cx.path(name)?, Follow::Yes).await.unwrap();
        let bytes = |text: &str| bytes::Bytes::from(text.to_owned());
        let to = match text {
            Value::String(text) => NewState::Holding(bytes(text), Hash::of(text.as_bytes())),
            Value::Null => NewState::Gone,
            to => {
                let new = cx.path(to["to"].as_str().unwrap())?;
                let new = cx.host.fs().locate(&new, Follow::No).await.unwrap();
                let whole = cx.host.fs().read(&at, 0, 100).await.unwrap();
                let data = to["text"].as_str().map(bytes);
                let hash = Hash::of(data.as_ref().unwrap_or(&whole));
                NewState::Moved { to: new, data, hash }
            }
        };
        steps.push(PlannedChange { at, to });
    }
    match cx.change_together(&steps).await {
        Ok(_) => Ok(Outcome::text("changed")),
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}

/// A journal that keeps what it is told, and what stood at `/w/a` then.
struct RecordingJournal {
    host: Arc<Memory>,
    begun: Mutex<Vec<(String, Vec<Receipt>)>>,
    ended: Arc<Mutex<usize>>,
    fails: bool,
}

impl Journal for RecordingJournal {
    fn begin(&self, receipts: &[Receipt]) -> std::io::Result<Box<dyn Journaled>> {
        if self.fails {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let a = String::from_utf8(self.host.content("/w/a").unwrap().to_vec()).unwrap();
        self.begun.lock().unwrap().push((a, receipts.to_vec()));
        Ok(Box::new(Ends(self.ended.clone())))
    }
}

struct Ends(Arc<Mutex<usize>>);

impl Journaled for Ends {
    fn end(self: Box<Self>) -> std::io::Result<()> {
        *self.0.lock().unwrap() += 1;
        Ok(())
    }
}

fn world(fails: bool) -> (World, Arc<Memory>, Arc<RecordingJournal>) {
    let host = Arc::new(Memory::with_files([("/w/a", "old a"), ("/w/b", "old b")]).unwrap());
    let world = World::on(host.clone(), at("/w"), tools([changer()]).0);
    let journal = RecordingJournal {
        host: host.clone(),
        begun: Mutex::default(),
        ended: Arc::default(),
        fails,
    };
    let journal = Arc::new(journal);
    world.session.services.insert::<dyn Journal>(journal.clone());
    (world, host, journal)
}

#[tokio::test]
async fn what_is_about_to_change_is_put_down_before_the_first_file_changes() {
    let (world, host, journal) = world(false);
    let files = json!({"a": "new a", "b": null, "deep/er/c": "new c"});
    let outcome = world.call("change", json!({ "files": files })).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    assert_eq!(host.content("/w/a").unwrap(), "new a");
    assert_eq!(host.content("/w/deep/er/c").unwrap(), "new c");
    assert!(host.content("/w/b").is_none());
    assert_eq!(*journal.ended.lock().unwrap(), 1);
    let begun = journal.begun.lock().unwrap();
    let [(a, receipts)] = &begun[..] else { panic!("once") };
    assert_eq!(a, "old a", "before the first of them changed");
    let told: Vec<_> = receipts.iter().map(|r| (r.path.text(), r.action.clone())).collect();
    assert_eq!(
        told,
        [
            ("/w/a".into(), ReceiptAction::Changed),
            ("/w/b".into(), ReceiptAction::Deleted),
            ("/w/deep/er/c".into(), ReceiptAction::Created),
        ]
    );
    let images = world.session.pre_images();
    for (receipt, old) in receipts.iter().zip(["old a", "old b"]) {
        assert_eq!(receipt.before, Some(Hash::of(old.as_bytes())));
        assert_eq!(images.get(receipt.pre_image.as_ref().unwrap()).unwrap(), old);
    }
    assert_eq!(receipts[0].after, Some(Hash::of(b"new a")));
    assert_eq!(receipts[1].after, None);
    assert_eq!(receipts[1].rights, Some(Rights::of_mode(0o644)));
    assert_eq!(outcome.receipts.len(), 3, "each has a receipt without the tool's doing");
}

#[tokio::test]
async fn without_the_journal_nothing_changes() {
    let (world, host, journal) = world(true);
    let input = json!({"files": {"a": "new a", "new": "x", "b": null}});
    let outcome = world.call("change", input).await;
    assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    assert!(outcome.joined_text().contains("put down for the case of a crash"), "{outcome:?}");
    assert_eq!(host.content("/w/a").unwrap(), "old a");
    assert_eq!(host.content("/w/b").unwrap(), "old b");
    assert!(host.content("/w/new").is_none() && outcome.receipts.is_empty());
    assert_eq!(*journal.ended.lock().unwrap(), 0);
}

#[tokio::test]
async fn what_was_made_or_removed_before_one_failed_is_put_back() {
    for (op, calls, files) in [
        // The removal of `b` fails after `a` and `a/../c` were written.
        (FsOp::Remove, 0, json!({"a": "new a", "aa/c": "new c", "b": null})),
        // The writing of `c` fails after `a` was written and `b` was removed.
        (FsOp::Place, 1, json!({"a": "new a", "b": null, "c": "new c"})),
    ] {
        let (world, host, journal) = world(false);
        let before = world.files().await.unwrap();
        host.fail_after(op, calls, std::io::ErrorKind::PermissionDenied.into());
        let outcome = world.call("change", json!({ "files": files })).await;
        assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
        assert_eq!(world.files().await.unwrap(), before, "{files}");
        assert!(outcome.receipts.is_empty(), "{outcome:?}");
        assert_eq!(*journal.ended.lock().unwrap(), 1, "nothing waits for the next start");
        let outcome = world.call("change", json!({ "files": files })).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    }
}

/// How a file stands when a start finds a journal.
const STATES: [&str; 3] = ["old", "new", "of somebody else"];

fn receipts(images: &MemoryPreImages) -> Vec<Receipt> {
    let path = |name: &str| at(&format!("/w/{name}"));
    let changed = |name: &str| {
        let old = bytes::Bytes::from_static(b"old");
        let mut receipt = Receipt::new("memory".to_owned(), path(name), ReceiptAction::Changed);
        receipt.before = Some(Hash::of(b"old"));
        receipt.after = Some(Hash::of(b"new"));
        receipt.pre_image = Some(images.put(&old, Hash::of(b"old")).unwrap());
        receipt
    };
    let mut created = Receipt::new("memory".to_owned(), path("c/c"), ReceiptAction::Created);
    created.after = Some(Hash::of(b"new"));
    created.made = vec![path("c")];
    vec![changed("a"), changed("b"), created]
}

#[tokio::test]
async fn every_mixture_of_old_new_and_other_files_is_put_back_as_it_has_to_be() {
    let images = MemoryPreImages::default();
    let receipts = receipts(&images);
    for mixture in 0..27 {
        let states = [mixture % 3, mixture / 3 % 3, mixture / 9];
        let names = ["/w/a", "/w/b", "/w/c/c"];
        let host = Memory::with_files([("/w/other", "stays")]).unwrap();
        host.add_folder("/w/c").unwrap();
        for (name, state) in names.into_iter().zip(states) {
            if name != "/w/c/c" || state != 0 {
                host.add_file(name, STATES[state]).unwrap();
            }
        }
        let mended = roll_back(&host, &images, &receipts, true).await;
        let is_torn = states.contains(&0);
        for (name, state) in names.into_iter().zip(states) {
            let wanted = match (STATES[state], is_torn) {
                ("new", true) => "old",
                (state, _) => state,
            };
            let found = host.content(name);
            match (name, wanted) {
                ("/w/c/c", "old") => assert_eq!(found, None, "{states:?}"),
                _ => assert_eq!(found.unwrap(), wanted, "{states:?} {name}"),
            }
        }
        let others = states.iter().filter(|state| **state == 2).count();
        assert_eq!(mended.left.len(), others, "{states:?}: {mended:?}");
        let news = states.iter().filter(|state| **state == 1).count();
        assert_eq!(mended.restored.len(), if is_torn { news } else { 0 }, "{states:?}");
        let folder = haft_host::Fs::locate(&host, &at("/w/c"), Follow::No).await.unwrap();
        let stays = host.content("/w/c/c").is_some();
        assert_eq!(folder.kind == haft_host::FileKind::FOLDER, stays, "{states:?}: its folder");
        // Done once more, it finds nothing to do.
        let again = roll_back(&host, &images, &receipts, true).await;
        assert_eq!(again.restored, Vec::<HostPath>::new(), "{states:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_put_back_now_is_left_for_the_next_time_or_for_good() {
    let images = MemoryPreImages::default();
    let receipts = receipts(&images);
    let host = || Memory::with_files([("/w/a", "new"), ("/w/b", "old")]).unwrap();
    let full = host();
    full.fail_next(FsOp::Write, std::io::ErrorKind::StorageFull.into());
    let mended = roll_back(&full, &images, &receipts, true).await;
    let [(path, why)] = &mended.left[..] else { panic!("{mended:?}") };
    assert!(mended.again && path.text() == "/w/a" && why.contains("cannot be written"), "{why}");
    let mended = roll_back(&full, &images, &receipts, true).await;
    assert_eq!(mended, Rollback { restored: vec![at("/w/a")], ..Rollback::default() });

    let lost = MemoryPreImages::default();
    let mended = roll_back(&host(), &lost, &receipts, true).await;
    assert!(!mended.again && mended.left.len() == 1, "{mended:?}");
}

#[tokio::test]
async fn moves_are_put_down_with_both_names_and_go_back_where_one_fails() {
    let (world, host, journal) = world(false);
    let before = world.files().await.unwrap();
    let files = json!({"a": {"to": "d/e/x", "text": "new a"}, "b": {"to": "y"}, "c": "new c"});
    for (op, calls) in [(FsOp::Rename, 0), (FsOp::Rename, 1), (FsOp::Place, 0)] {
        host.fail_after(op, calls, std::io::ErrorKind::PermissionDenied.into());
        let outcome = world.call("change", json!({ "files": files })).await;
        assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
        assert_eq!(world.files().await.unwrap(), before, "{op:?} {calls}");
        assert!(outcome.receipts.is_empty(), "{outcome:?}");
    }
    let outcome = world.call("change", json!({ "files": files })).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    assert_eq!(host.content("/w/d/e/x").unwrap(), "new a");
    assert_eq!(host.content("/w/y").unwrap(), "old b");
    let begun = journal.begun.lock().unwrap();
    let receipts = &begun.last().unwrap().1;
    let renamed = |from: &str| ReceiptAction::Renamed { from: at(from) };
    let told: Vec<_> = receipts.iter().map(|r| (r.path.text(), r.action.clone())).collect();
    assert_eq!(
        told,
        [
            ("/w/d/e/x".into(), renamed("/w/a")),
            ("/w/y".into(), renamed("/w/b")),
            ("/w/c".into(), ReceiptAction::Created),
        ]
    );
    assert_eq!(receipts[1].before, receipts[1].after);
    assert!(receipts[0].pre_image.is_some() && receipts[1].pre_image.is_none());
    assert_eq!(outcome.receipts.len(), 3, "{outcome:?}");
    assert_eq!(outcome.receipts[0].rights, Some(Rights::of_mode(0o644)));
    assert_eq!(outcome.receipts[0].made.len(), 2);
}

/// How a move stands when a start finds a journal: what is at the old name, and at the new one.
const MOVED: [(Option<&str>, Option<&str>); 6] = [
    (Some("old"), None),
    (Some("old"), Some("new")),
    (None, Some("new")),
    (Some("old"), Some("other")),
    (Some("other"), Some("new")),
    (None, None),
];

#[tokio::test]
async fn every_state_of_a_move_is_put_back_as_it_has_to_be() {
    let images = MemoryPreImages::default();
    let old = bytes::Bytes::from_static(b"old");
    let kept = images.put(&old, Hash::of(b"old")).unwrap();
    for changes in [true, false] {
        let new = if changes { "new" } else { "old" };
        let renamed = ReceiptAction::Renamed { from: at("/w/a") };
        let mut receipt = Receipt::new("memory".to_owned(), at("/w/d/b"), renamed);
        receipt.before = Some(Hash::of(b"old"));
        receipt.after = Some(Hash::of(new.as_bytes()));
        receipt.pre_image = changes.then(|| kept.clone());
        receipt.made = vec![at("/w/d")];
        let mut other = Receipt::new("memory".to_owned(), at("/w/o"), ReceiptAction::Created);
        other.after = Some(Hash::of(b"x"));
        let receipts = [receipt, other];
        for ((first, then), is_whole) in
            MOVED.into_iter().flat_map(|state| [(state, true), (state, false)])
        {
            let told = format!("{first:?} {then:?} {is_whole} {changes}");
            let host = Memory::with_files([("/w/stays", "stays")]).unwrap();
            let then = then.map(|text| if text == "new" { new } else { text });
            for (name, text) in [("/w/a", first), ("/w/d/b", then)] {
                if let Some(text) = text {
                    host.add_file(name, text.to_owned()).unwrap();
                }
            }
            if is_whole {
                host.add_file("/w/o", "x").unwrap();
            }
            let mended = roll_back(&host, &images, &receipts, true).await;
            let found = ["/w/a", "/w/d/b"].map(|name| host.content(name));
            let found = found.map(|text| text.map(|text| String::from_utf8(text.into()).unwrap()));
            let found = (found[0].as_deref(), found[1].as_deref());
            let is_new = (first, then) == (None, Some(new));
            let wanted = match (first, then) {
                _ if is_new && is_whole => (None, Some(new)),
                (None, Some(then)) if then == new => (Some("old"), None),
                (Some("old"), Some(then)) if then == new => (Some("old"), None),
                state => state,
            };
            assert_eq!(found, wanted, "{told}: {mended:?}");
            let strange = matches!(first, Some("other")) || (first, then) == (None, None);
            assert_eq!(mended.left.len(), usize::from(strange), "{told}: {mended:?}");
            let again = roll_back(&host, &images, &receipts, true).await;
            assert!(again.restored.is_empty(), "{told}: {again:?}");
        }
    }
}
