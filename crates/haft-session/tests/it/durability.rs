//! Nothing lost, whatever happens: kills, second writers, full disks, homes that cannot be
//! written.

use std::{fs, path::Path};

use haft_session::{LineFault, SessionError, SessionId, Store};
use haft_types::{Body, CallId, Event};
use serde_json::json;

use crate::events::{append, event, read, session, store, text, user};

fn feeds(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Opens what is left of a log after `bytes` of it, and checks that it is a prefix that goes on.
fn reopens(home: &Path, id: &SessionId, whole: &[u8], bytes: usize, events: &[Event]) {
    let store = Store::open(home);
    let path = store.dir(id).join("log.jsonl");
    fs::write(&path, &whole[..bytes]).unwrap();
    let mut log = store.resume(id).unwrap();
    let kept = feeds(&whole[..bytes]);
    let torn = bytes > 0 && whole[bytes - 1] != b'\n';
    assert_eq!(log.repaired().is_some(), torn, "cut at {bytes}");
    append(&mut log, [user("goes on")]);
    let found = read(&store, &log);
    assert_eq!(found[..kept], events[..kept], "cut at {bytes}");
    assert_eq!(found.len(), kept + usize::from(torn) + 1, "cut at {bytes}");
    let verdict = store.verify(id).unwrap();
    assert!(verdict.broken.is_none(), "cut at {bytes}: {:?}", verdict.broken);
    drop(log);
    let aside = store.dir(id).join("log.torn-1");
    assert_eq!(aside.exists(), torn);
    if torn {
        let start = whole[..bytes].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        assert_eq!(fs::read(&aside).unwrap(), &whole[start..bytes]);
        fs::remove_file(&aside).unwrap();
    }
}

#[test]
fn a_log_cut_at_any_byte_keeps_its_whole_lines_and_goes_on() {
    let (home, store) = store();
    let mut log = store.create();
    let bodies = [session("/w"), user("hä\nllo"), text(0, &"long ".repeat(3000)), text(0, "x")];
    let events = append(&mut log, bodies);
    let (id, path) = (log.session().clone(), log.path().to_owned());
    drop(log);
    let whole = fs::read(&path).unwrap();
    for bytes in 0..=whole.len() {
        reopens(home.path(), &id, &whole, bytes, &events);
    }
}

#[test]
fn garbage_behind_the_last_event_is_kept_aside() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("hi")]);
    let (id, path) = (log.session().clone(), log.path().to_owned());
    drop(log);
    let mut bytes = fs::read(&path).unwrap();
    let good = bytes.len();
    bytes.extend(vec![0; 200_000]);
    bytes.extend(b"\n{\"id\":\n");
    fs::write(&path, &bytes).unwrap();
    let log = store.resume(&id).unwrap();
    assert_eq!(fs::read(log.dir().join("log.torn-1")).unwrap(), bytes[good..]);
    assert!(matches!(log.repaired().unwrap().body, Body::Notice { .. }));
    assert_eq!(read(&store, &log).len(), 3);
}

#[test]
fn two_writers_are_refused_and_readers_are_not() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w")]);
    let id = log.session().clone();
    let error = store.resume(&id).unwrap_err();
    assert!(matches!(error, SessionError::InUse { .. }));
    let text = error.to_string();
    assert!(text.contains(id.as_str()) && text.contains("start a new session"), "{text}");
    assert_eq!(read(&store, &log).len(), 1);
    drop(log);
    assert!(store.resume(&id).is_ok());
}

#[test]
fn nothing_is_on_disk_before_the_first_event() {
    let (home, store) = store();
    let mut log = store.create();
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    let mut passing = event(Body::CallPart { index: 0, name: "n".into(), json: "{}".into() });
    assert!(matches!(log.append(&mut passing), Err(SessionError::Passing)));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    assert!(matches!(store.resume(log.session()), Err(SessionError::NotFound { .. })));
}

#[test]
fn a_home_that_cannot_be_written_is_named_with_cause_and_advice() {
    let (home, _) = store();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let mut log = Store::open(&file.join("home")).create();
    let mut first = event(session("/w"));
    let error = log.append(&mut first).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, SessionError::Home { .. }), "{text}");
    for part in [file.to_str().unwrap(), "Not a directory", "set HAFT_HOME"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(first.id, None);
}

#[cfg(unix)]
#[test]
fn folders_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    fn check(path: &Path, seen: &mut usize) {
        for entry in fs::read_dir(path).unwrap().flatten() {
            let data = entry.metadata().unwrap();
            let wanted = if data.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(data.permissions().mode() & 0o777, wanted, "{:?}", entry.path());
            *seen += 1;
            if data.is_dir() {
                check(&entry.path(), seen);
            }
        }
    }
    let (home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user(&"x".repeat(9000))]);
    let mut seen = 0;
    check(home.path(), &mut seen);
    assert_eq!(seen, 6, "sessions, id, log, out, blobs, blob");
}

/// The half that runs in a process whose files may not grow over a limit.
#[cfg(unix)]
#[test]
#[ignore = "runs in a child process with a file size limit, started by the test below"]
fn fills_its_disk() {
    let home = std::env::var("HAFT_TEST_FULL_HOME").unwrap();
    let mut log = Store::open(Path::new(&home)).create();
    append(&mut log, [session("/w")]);
    let line = "y".repeat(7000);
    let mut appended = 0;
    let error = loop {
        match log.append(&mut event(user(&line))) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
        assert!(appended < 100, "the limit holds nothing back");
    };
    assert!(matches!(error, SessionError::Full { .. }), "{error}");
    assert!(error.to_string().contains("raise that limit"), "{error}");
    assert!(fs::read(log.path()).unwrap().ends_with(b"\n"), "a part of a line was left");
    let len = fs::metadata(log.path()).unwrap().len();
    let error = log.append(&mut event(user(&line))).unwrap_err();
    assert!(matches!(error, SessionError::Full { .. }), "{error}");
    assert_eq!(fs::metadata(log.path()).unwrap().len(), len);
    let short = append(&mut log, [user("short")]);
    assert_eq!(short[0].id.unwrap().0, appended + 2);
    log.sync().unwrap();
    let blob = log.append(&mut event(user(&"z".repeat(100_000)))).unwrap_err();
    assert!(matches!(blob, SessionError::Full { .. }), "{blob}");
    let leftovers = fs::read_dir(log.dir().join("blobs")).unwrap().flatten();
    assert!(leftovers.into_iter().all(|e| !e.file_name().to_string_lossy().starts_with(".tmp")));
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_told_and_the_log_stays_whole() {
    let (home, store) = store();
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["durability::fills_its_disk", "--exact", "--ignored"])
        .env("HAFT_TEST_FULL_HOME", home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let id = store.list().unwrap().sessions[0].id.clone();
    let mut events: Vec<Event> = store.events(&id).unwrap().map(Result::unwrap).collect();
    assert_eq!(events.pop().unwrap().body, user("short"));
    assert!(store.verify(&id).unwrap().broken.is_none());
}

#[test]
fn a_flipped_byte_breaks_the_chain_at_or_after_its_line() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one"), text(0, "two"), user("three")]);
    let (id, path) = (log.session().clone(), log.path().to_owned());
    drop(log);
    let whole = fs::read(&path).unwrap();
    let checked = store.verify(&id).unwrap();
    assert_eq!((checked.lines, checked.broken.is_none()), (4, true));
    let last_line = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for at in 0..last_line {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let line = 1 + feeds(&whole[..at]) as u64;
        let broken = store.verify(&id).unwrap().broken.unwrap();
        assert!((line..=line + 1).contains(&broken.line), "byte {at}: {broken}");
    }
    for at in last_line..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let verdict = store.verify(&id).unwrap();
        assert!(verdict.broken.is_some() || verdict.head != checked.head, "byte {at}");
    }
}

#[test]
fn a_bad_line_is_numbered_and_hides_no_other() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("one"), user("two")]);
    let path = log.path().to_owned();
    let whole = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    lines[1] = "x".repeat(haft_session::LINE_MAX + 1);
    lines.insert(2, "{\"v\":1,\"id\":9,\"at\":1,\"type\":\"from_tomorrow\"}".into());
    fs::write(&path, lines.join("\n")).unwrap();
    let found: Vec<_> = store.events(log.session()).unwrap().collect();
    assert!(found[0].is_ok());
    assert!(
        matches!(found[1], Err(ref e) if e.line == 2 && matches!(e.fault, LineFault::TooLong { .. }))
    );
    assert!(matches!(found[2], Err(ref e) if e.to_string().contains("from_tomorrow")));
    assert!(matches!(found[3], Err(ref e) if matches!(e.fault, LineFault::Torn)));
    assert_eq!(found.len(), 4);
}

/// An outcome that says one text to the model, to programs and to people.
fn told_thrice() -> Body {
    let text = "a line of output\n".repeat(100);
    let outcome = json!({
        "status": "done",
        "content": [{"type": "text", "text": text}],
        "data": {"stdout": text},
        "detail": {"shape": "terminal", "command": "make", "output": text},
    });
    let outcome = serde_json::from_value(outcome).unwrap();
    Body::CallEnded { call: CallId::nth(1), outcome, took: 3 }
}

#[test]
fn a_result_is_stored_once_but_in_a_log_of_the_first_version() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("hi"), told_thrice()]);
    let (id, path) = (log.session().clone(), log.path().to_owned());
    drop(log);
    let ended = |id: &haft_session::SessionId| -> Vec<Event> {
        let events = store.events(id).unwrap().map(Result::unwrap);
        events.filter(|event| matches!(event.body, Body::CallEnded { .. })).collect()
    };
    let new = fs::read_to_string(&path).unwrap();
    assert!(new.lines().all(|line| line.starts_with("{\"v\":2,")), "{new}");
    assert_eq!(new.matches("a line of output").count(), 100, "stored once");
    assert_eq!(ended(&id)[0].body, told_thrice());
    assert_eq!(ended(&id)[0].v, haft_types::VERSION, "how it was written is nobody's concern");
    // The same log, as an earlier haft would have begun it.
    let old = new.lines().take(2).map(|line| line.replace("{\"v\":2,", "{\"v\":1,"));
    let old: String = old.map(|line| line + "\n").collect();
    fs::write(&path, &old).unwrap();
    let mut log = store.resume(&id).unwrap();
    append(&mut log, [told_thrice()]);
    drop(log);
    let gone_on = fs::read_to_string(&path).unwrap();
    assert!(gone_on.starts_with(&old), "nothing is written anew");
    assert!(gone_on.lines().all(|line| line.starts_with("{\"v\":1,")), "{gone_on}");
    assert_eq!(gone_on.matches("a line of output").count(), 300);
    assert_eq!(ended(&id)[0].body, told_thrice());
}

#[test]
fn a_log_of_a_later_version_is_left_as_it_is() {
    let (_home, store) = store();
    let mut log = store.create();
    append(&mut log, [session("/w"), user("hi")]);
    let (id, path) = (log.session().clone(), log.path().to_owned());
    drop(log);
    let later = fs::read_to_string(&path).unwrap().replace("{\"v\":2,", "{\"v\":3,");
    fs::write(&path, &later).unwrap();
    for error in [store.resume(&id).err(), store.branch(&id, None).err()] {
        let error = error.unwrap();
        assert!(matches!(error, SessionError::Newer { version: 3, .. }), "{error}");
        assert!(error.to_string().contains("update haft"), "{error}");
    }
    for event in store.events(&id).unwrap() {
        let error = event.unwrap_err();
        assert!(matches!(error.fault, LineFault::NotAnEvent(_)), "{error}");
        assert!(error.to_string().contains("version 3"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), later);
}
