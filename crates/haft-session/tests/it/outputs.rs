//! How kept outputs of ended sessions make room, and how sessions are removed.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use haft_session::{SessionError, SessionId, Store};
use haft_types::{CallId, Evicted};

use crate::events::{call, call_ended, call_started, ended, event, user};

#[test]
fn outputs_to_which_a_conversation_points_go_last_and_it_is_noted() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path());
    let mut ids = Vec::new();
    for minutes in [30_u64, 20, 10] {
        let mut log = store.create();
        let id = log.session().clone();
        let said = "[... left out; the whole is kept: read or grep out://c1 ...]";
        for body in [user("x"), call(0, "c1"), ended(), call_started("c1"), call_ended("c1", said)]
        {
            log.append(&mut event(body)).unwrap();
        }
        fs::create_dir_all(store.dir(&id).join("out")).unwrap();
        for (name, bytes) in [("c1", 50), ("c1.1", 50), (".c9.text", 1)] {
            fs::write(store.dir(&id).join("out").join(name), vec![b'x'; bytes]).unwrap();
        }
        let file = fs::File::options().append(true).open(log.path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_mins(minutes)).unwrap();
        ids.push(id);
    }
    let keeps = |id: &SessionId, name: &str| store.dir(id).join("out").join(name).exists();
    let all = |name: &str| ids.iter().map(|id| keeps(id, name)).collect::<Vec<_>>();
    // 303 bytes: two of those go to which nothing points, with what can be made again.
    let collected = store.collect_outputs(&ids[2], 210, Duration::from_mins(1)).unwrap();
    assert_eq!(collected.bytes, 102);
    assert_eq!((all("c1"), all("c1.1")), (vec![true; 3], vec![false, false, true]));
    // Then the oldest of the others.
    let collected = store.collect_outputs(&ids[2], 160, Duration::from_mins(1)).unwrap();
    assert_eq!((collected.sessions, all("c1")), (1, vec![false, true, true]));
    let text = fs::read_to_string(store.dir(&ids[0]).join("out/.evicted")).unwrap();
    let evicted = Evicted::find(&text, &CallId::nth(1)).unwrap();
    assert!(evicted.bytes == 50 && evicted.why.contains("output.total_bytes"), "{evicted:?}");
    // One that is held loses nothing, and neither does the own one.
    let held = store.resume(&ids[1]).unwrap();
    store.collect_outputs(&ids[2], 0, Duration::from_mins(1)).unwrap();
    assert_eq!((all("c1"), all("c1.1")), (vec![false, true, true], vec![false, false, true]));
    assert!(matches!(store.remove(&ids[1]), Err(SessionError::InUse { .. })));
    drop(held);
    assert_eq!(store.remove_outputs(&ids[1], "by hand").unwrap(), 50);
    assert!(store.remove(&ids[1]).unwrap() > 0 && !store.dir(&ids[1]).exists());
    assert_eq!(store.ids().unwrap(), [ids[0].clone(), ids[2].clone()]);
}
