//! Thousands of sessions are listed by their heads, and found by id or folder.

use std::fs;

use haft_session::{SessionError, SessionId, Store, TITLE_MAX};
use haft_types::{From, HostPath, Part, Style};

use crate::events::{append, event, session, store, text, user};

fn path(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

fn make(store: &Store, cwd: &str, words: &str) -> SessionId {
    let mut log = store.create();
    let haft = haft_types::Body::User { from: From::Haft, parts: vec![Part::text("not this")] };
    append(&mut log, [session(cwd), haft, user(words), user("later")]);
    log.session().clone()
}

#[test]
fn two_thousand_sessions_are_listed_without_a_blob() {
    let (home, store) = store();
    let long = "prompt ".repeat(2000);
    let ids: Vec<SessionId> =
        (0..2000).map(|n| make(&store, "/w", if n % 500 == 0 { &long } else { "short" })).collect();
    for id in &ids {
        fs::remove_dir_all(store.dir(id).join("blobs")).unwrap();
    }
    fs::create_dir(home.path().join("sessions/not-a-session")).unwrap();
    let listing = store.list().unwrap();
    assert_eq!((listing.sessions.len(), listing.skipped.len()), (2000, 0));
    for info in &listing.sessions {
        let at = ids.iter().position(|id| *id == info.id).unwrap();
        let wanted = if at % 500 == 0 { &long[..TITLE_MAX] } else { "short" };
        assert_eq!(info.first_text, wanted);
        assert_eq!((info.started, info.cwd.as_ref()), (7, Some(&path("/w"))));
        assert!(info.active > 0 && info.len > 0);
    }
    assert_eq!(store.events(&ids[0]).unwrap().count(), 4);
}

#[test]
fn heads_are_found_behind_pinned_text_and_only_there() {
    let (_home, store) = store();
    let mut log = store.create();
    let pinned = haft_types::Body::Pinned {
        system: vec!["s".repeat(4000); 3],
        tools: "t".repeat(10_000),
        format: String::new(),
    };
    let many = haft_types::Body::User {
        from: From::Person,
        parts: vec![
            Part::text("first words"),
            Part::text("x".repeat(6000)),
            "y".repeat(6000).into(),
        ],
    };
    let mut sub = event(user("from a subagent's parent"));
    sub.agent = sub.agent.child("explore");
    append(&mut log, [session("/w"), pinned]);
    log.append(&mut sub).unwrap();
    append(&mut log, [many]);
    assert_eq!(store.list().unwrap().sessions[0].first_text, "first words");
}

#[test]
fn the_latest_of_a_folder_is_the_one_last_written() {
    let (_home, store) = store();
    assert!(store.latest(None).unwrap().is_none());
    let first = make(&store, "/a", "1");
    let second = make(&store, "/b", "2");
    let at = |id: &SessionId, seconds| {
        let file = fs::File::options().write(true).open(store.dir(id).join("log.jsonl")).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(time).unwrap();
    };
    at(&first, 2000);
    at(&second, 1000);
    assert_eq!(store.latest(None).unwrap().unwrap().id, first);
    assert_eq!(store.latest(Some(&path("/b"))).unwrap().unwrap().id, second);
    assert!(store.latest(Some(&path("/c"))).unwrap().is_none());
    let listed: Vec<_> = store.list().unwrap().sessions.into_iter().map(|s| s.id).collect();
    assert_eq!(listed, [first, second]);
}

#[test]
fn ids_are_found_by_unique_prefix() {
    let (home, store) = store();
    assert!(store.find("0").unwrap_err().to_string().contains("there are none yet"));
    for id in ["01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"] {
        let dir = home.path().join("sessions").join(id);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("log.jsonl"), "").unwrap();
    }
    let found = store.find("01900000-0000-7000-8000-00000000000B").unwrap();
    assert!(found.as_str().ends_with('b'));
    let error = store.find("0190").unwrap_err();
    assert!(
        matches!(&error, SessionError::Ambiguous { count: 2, candidates, .. } if candidates.len() == 2)
    );
    assert!(error.to_string().contains("write more"), "{error}");
    let error = store.find("ff").unwrap_err();
    assert!(matches!(&error, SessionError::NotFound { candidates, .. } if candidates.len() == 2));
    assert!(matches!(store.find(""), Err(SessionError::NotFound { .. })));
    for bad in ["../x", "", "01900000-0000-7000-8000-00000000000A", "x"] {
        assert!(matches!(SessionId::parse(bad), Err(SessionError::NotAnId(_))), "{bad}");
    }
}

#[test]
fn ids_sort_by_time_and_a_log_without_a_head_is_listed() {
    let ids: Vec<SessionId> = (0..1000).map(|_| SessionId::new()).collect();
    assert!(ids.is_sorted() && ids[0] != ids[1]);
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [text(0, "no session event")]);
    fs::write(log.path(), "garbage\n").unwrap();
    let listing = store.list().unwrap();
    assert_eq!(listing.sessions[0].cwd, None);
}

#[test]
fn the_latest_is_one_in_which_someone_spoke() {
    let (_home, store) = store();
    let spoken = make(&store, "/a", "1");
    let mut silent = store.create();
    append(&mut silent, [session("/a")]);
    assert_eq!(store.latest(Some(&path("/a"))).unwrap().unwrap().id, spoken);
    let image =
        haft_types::Blob { hash: haft_types::Hash::of(b""), len: 0, mime: "image/png".into() };
    let parts = vec![Part::Image { blob: image }];
    append(&mut silent, [haft_types::Body::User { from: From::Person, parts }]);
    let latest = store.latest(Some(&path("/a"))).unwrap().unwrap();
    assert_eq!((latest.id.as_str(), &*latest.first_text), (silent.session().as_str(), ""));
}

/// Opening a pipe for reading would wait for whoever writes to it.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_opened() {
    let (home, store) = store();
    let kept = make(&store, "/a", "1");
    let id = SessionId::new();
    let dir = home.path().join("sessions").join(id.as_str());
    fs::create_dir_all(&dir).unwrap();
    let pipe = dir.join("log.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let listing = store.list().unwrap();
    assert_eq!(listing.sessions.len(), 1);
    let [skipped] = &listing.skipped[..] else { panic!("{listing:?}") };
    assert!(skipped.error.to_string().contains("no regular file"), "{skipped:?}");
    assert_eq!(store.latest(None).unwrap().unwrap().id, kept);
    assert!(store.events(&id).is_err() && store.branch(&id, None).is_err());
    assert!(store.resume(&id).is_err() && store.verify(&id).is_err());
}
