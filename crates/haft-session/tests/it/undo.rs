//! What files held before they were changed, its quota, and what a log says of changes.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    time::{Duration, SystemTime},
};

use haft_session::{Changes, PreImages, SessionError, SessionId, Store};
use haft_types::{
    Access, Blob, Body, CallId, Effect, Event, Hash, HostPath, JobEnd, Outcome, Plan, Receipt,
    ReceiptAction, Style, Target, TurnId,
};

use crate::events::{event, user};

/// All of what was kept.
fn get(images: &PreImages, blob: &Blob) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::new();
    match images.open(blob)?.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.downcast::<SessionError>().unwrap()),
    }
}

fn aged(dir: &Path, hash: &Hash, minutes: u64) {
    let file = fs::File::open(dir.join(hash.to_string())).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_mins(minutes)).unwrap();
}

#[test]
fn content_comes_back_as_it_was_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let (store, id) = (Store::open(home.path()), SessionId::new());
    let images = store.pre_images(&id, 1000);
    assert!(!store.dir(&id).exists(), "opening makes nothing");
    let mut pieces = images.begin(7).unwrap();
    pieces.push(b"one, ").unwrap();
    pieces.push(b"two").unwrap();
    let blob = pieces.finish().unwrap();
    assert_eq!((blob.hash, blob.len), (Hash::of(b"one, two"), 8));
    assert_eq!(images.put(b"one, two", blob.hash).unwrap(), blob);
    assert_eq!((get(&images, &blob).unwrap().as_slice(), images.used()), (&b"one, two"[..], 8));
    assert_eq!(images.find(&blob.hash), Some(blob.clone()));
    drop(images.begin(5).unwrap());
    let file = store.dir(&id).join("undo").join(blob.hash.to_string());
    assert_eq!(
        fs::read_dir(file.parent().unwrap()).unwrap().count(),
        1,
        "nothing unfinished stays"
    );
    images.sync().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }
    for other in ["one, tw0", "one, two!", "one, tw", ""] {
        fs::write(&file, other).unwrap();
        assert!(matches!(get(&images, &blob), Err(SessionError::Damaged { .. })), "{other}");
    }
    // What is damaged is written anew.
    images.put(b"one, two", blob.hash).unwrap();
    get(&images, &blob).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(matches!(get(&images, &blob), Err(SessionError::NotKept { .. })));
    assert_eq!(images.find(&blob.hash), None);
}

#[test]
fn the_oldest_make_room_and_too_much_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (store, id) = (Store::open(home.path()), SessionId::new());
    let images = store.pre_images(&id, 100);
    let put = |byte: u8| {
        let whole = [byte; 30];
        images.put(&whole, Hash::of(&whole))
    };
    let blobs: Vec<Blob> = (0..3).map(|byte| put(byte).unwrap()).collect();
    let dir = store.dir(&id).join("undo");
    for (blob, minutes) in blobs.iter().zip([10, 30, 20]) {
        aged(&dir, &blob.hash, minutes);
    }
    put(3).unwrap();
    assert!(get(&images, &blobs[1]).is_err(), "the oldest went");
    assert!(get(&images, &blobs[0]).is_ok() && get(&images, &blobs[2]).is_ok());
    assert!(images.used() <= 100, "{}", images.used());
    // A process that comes later counts alike.
    assert_eq!(store.pre_images(&id, 100).used(), images.used());
    let error = images.begin(101).unwrap_err();
    assert!(matches!(error, SessionError::OverQuota { len: 101, quota: 100 }), "{error}");
    let mut growing = images.begin(1).unwrap();
    assert!(growing.push(&[0; 101]).is_err());
    drop(growing);
    assert!(get(&images, &blobs[0]).is_ok(), "what is refused takes nobody's place");
}

#[test]
fn what_is_held_makes_no_room() {
    let home = tempfile::tempdir().unwrap();
    let (store, id) = (Store::open(home.path()), SessionId::new());
    let images = store.pre_images(&id, 100);
    let put = |byte: u8, len: usize| {
        let whole = vec![byte; len];
        images.put(&whole, Hash::of(&whole))
    };
    let (first, second) = (put(1, 40).unwrap(), put(2, 40).unwrap());
    let dir = store.dir(&id).join("undo");
    aged(&dir, &first.hash, 30);
    let (held, again) = (images.hold(first.hash), images.hold(first.hash));
    drop(again);
    let third = put(3, 60).unwrap();
    assert!(get(&images, &first).is_ok() && images.find(&second.hash).is_none());
    let error = put(4, 61).unwrap_err();
    assert!(matches!(error, SessionError::NoRoom { len: 61, held: 40, quota: 100 }), "{error}");
    assert!(images.find(&third.hash).is_some(), "what is refused takes nobody's place");
    drop(held);
    put(4, 61).unwrap();
    assert!(images.find(&first.hash).is_none());
}

#[test]
fn content_with_great_holes_takes_no_room_on_the_disk() {
    let home = tempfile::tempdir().unwrap();
    let (store, id) = (Store::open(home.path()), SessionId::new());
    let images = store.pre_images(&id, 1 << 30);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"first").unwrap();
    file.seek(SeekFrom::Start(100 << 20)).unwrap();
    file.write_all(b"middle").unwrap();
    file.set_len((200 << 20) + 7).unwrap();
    file.rewind().unwrap();
    let (mut keeping, mut piece) = (images.begin(200 << 20).unwrap(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece).unwrap() {
            0 => break,
            got => keeping.push(&piece[..got]).unwrap(),
        }
    }
    let blob = keeping.finish().unwrap();
    assert_eq!((blob.len, images.used()), ((200 << 20) + 7, (200 << 20) + 7));
    assert_eq!(
        std::io::copy(&mut images.open(&blob).unwrap(), &mut std::io::sink()).unwrap(),
        blob.len
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let path = store.dir(&id).join("undo").join(blob.hash.to_string());
        let blocks = fs::metadata(path).unwrap().blocks();
        assert!(blocks * 512 < 8 << 20, "{blocks} blocks");
    }
}

#[test]
fn sessions_used_long_ago_lose_theirs_first() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path());
    let mut ids = Vec::new();
    for minutes in [30_u64, 10, 20] {
        let mut log = store.create();
        log.append(&mut event(user("x"))).unwrap();
        let id = log.session().clone();
        store.pre_images(&id, 1000).put(&[7; 50], Hash::of(&[7; 50])).unwrap();
        let file = fs::File::options().append(true).open(log.path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_mins(minutes)).unwrap();
        ids.push(id);
    }
    let keeps = |id: &SessionId| store.dir(id).join("undo").exists();
    let collected = store.collect_pre_images(&ids[0], 120, Duration::from_mins(1)).unwrap();
    assert_eq!((collected.sessions, collected.bytes), (1, 50));
    assert_eq!(ids.iter().map(keeps).collect::<Vec<_>>(), [true, true, false]);
    assert!(ids.iter().all(|id| store.dir(id).join("log.jsonl").exists()));
    let collected = store.collect_pre_images(&ids[0], 0, Duration::from_mins(1)).unwrap();
    assert_eq!(collected.sessions, 1, "its own stays");
    assert!(keeps(&ids[0]));
}

fn receipt(path: &str) -> Receipt {
    let path = HostPath::new(path.as_bytes(), Style::Posix).unwrap();
    Receipt::new("local", path, ReceiptAction::Created)
}

fn call(id: &str, turn: u64, paths: &[&str]) -> [Event; 2] {
    let call = CallId(id.into());
    let plan = Plan {
        host: "local".into(),
        title: format!("Doing {id}"),
        effects: Vec::new(),
        waits: false,
        lives_on: false,
    };
    let started = Body::CallStarted {
        call: call.clone(),
        tool: "edit".into(),
        input: None,
        plan: Some(plan),
    };
    let receipts = paths.iter().map(|path| receipt(path)).collect();
    let ended =
        Body::CallEnded { call, outcome: Outcome { receipts, ..Outcome::default() }, took: 1 };
    [started, ended].map(|body| Event { turn: TurnId(turn), ..event(body) })
}

fn undone(calls: &[&str], redo: bool) -> Event {
    let calls = calls.iter().map(|call| CallId((*call).into())).collect();
    event(Body::Undone { calls, files: Vec::new(), redo, receipts: vec![receipt("/u")] })
}

#[test]
fn changes_are_those_of_outer_calls_and_undos_are_a_stack() {
    let mut events: Vec<Event> = Vec::new();
    let [begin, end] = call("c3", 2, &["/c"]);
    events.extend(call("c1", 1, &["/a"]));
    events.extend(call("c2", 1, &[]));
    events.push(begin);
    // What a call calls is its own change, also where it ends before.
    events.extend(call("c3.1", 2, &["/n", "/m"]));
    events.push(end);
    let changes = Changes::of(&events);
    let shown: Vec<_> =
        changes.all.iter().map(|c| (&*c.call.0, c.turn.0, &*c.title, c.receipts.len())).collect();
    assert_eq!(shown, [("c1", 1, "Doing c1", 1), ("c3", 2, "Doing c3", 3)]);

    events.extend([undone(&["c3"], false), undone(&["c1"], false)]);
    let changes = Changes::of(&events);
    assert_eq!(changes.standing().count(), 0);
    let stack: Vec<&str> = changes.taken_back.iter().map(|taken| &*taken.calls[0].0).collect();
    assert_eq!((stack, changes.taken_back[0].receipts.len()), (vec!["c3", "c1"], 1));
    events.push(undone(&["c1"], true));
    let changes = Changes::of(&events);
    assert_eq!(changes.standing().map(|c| &*c.call.0).collect::<Vec<_>>(), ["c1"]);
    assert_eq!(changes.taken_back.len(), 1);
}

#[test]
fn what_is_found_while_jobs_run_names_them() {
    let job = |id: &str, of: &str| Body::JobStarted {
        job: id.into(),
        call: CallId(of.into()),
        title: format!("run {id}"),
    };
    let end = |id: &str| Body::JobEnded { job: id.into(), end: JobEnd::Exited, exit: Some(0) };
    let command = |id: &str| {
        let target = Target::command("make".to_owned());
        let effects = vec![Effect { access: Access::Destroy, target }];
        let plan = Plan {
            host: "local".into(),
            title: format!("Running {id}"),
            effects,
            waits: false,
            lives_on: false,
        };
        let [started, ended] = call(id, 1, &["/made"]);
        let Body::CallStarted { call, tool, input, .. } = started.body else { unreachable!() };
        [event(Body::CallStarted { call, tool, input, plan: Some(plan) }), ended]
    };
    let found = |id: &str| Body::Found { call: CallId(id.into()), receipts: vec![receipt("/f")] };
    let mut events: Vec<Event> = Vec::new();
    let [begun, over] = command("c1");
    // Its own job is no other's.
    events.extend([begun, event(job("j1", "c1")), over]);
    events.extend(command("c2"));
    events.extend(call("c3", 1, &["/edited"]));
    events.extend([event(found("j1")), event(end("j1"))]);
    events.extend(command("c4"));
    let changes = Changes::of(&events);
    let jobs = |changes: &Changes| -> Vec<(String, Vec<String>)> {
        changes.all.iter().map(|change| (change.call.to_string(), change.jobs.clone())).collect()
    };
    let ran = || vec!["j1 (run j1)".to_owned()];
    let none = Vec::new;
    let wanted = [("c1", none()), ("c2", ran()), ("c3", none()), ("j1", ran()), ("c4", none())];
    assert_eq!(jobs(&changes), wanted.map(|(call, jobs)| (call.to_owned(), jobs)));
    let of_job = changes.all.iter().find(|change| change.is_of_job()).unwrap();
    assert_eq!((&*of_job.tool, &*of_job.title), ("job", "run j1"));

    // What is found once that is taken back is another change.
    let mut events: Vec<Event> = vec![event(job("j1", "c1")), event(found("j1"))];
    events.extend([undone(&["j1"], false), event(found("j1"))]);
    let changes = Changes::of(&events);
    assert_eq!((changes.all.len(), changes.standing().count()), (2, 1));
}
