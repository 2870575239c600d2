//! Sessions by chance, on a clock that stands still: at any await point haft is interrupted, told
//! more, closed or killed, and its model fails in many ways. Each seed is one session with several
//! lives, from its log on the disk, and comes to the same each time.
//!
//! What holds at its end: no call did twice what it does, what was shown is in the log, each call has
//! its result, each message of the person was said once, and the agent is at rest.

mod life;
mod outside;
mod steps;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use haft_testkit::machine::times;
use haft_types::Event;

use self::life::Session;

/// Seeds of a usual run.
const SEEDS: u64 = 500;
/// Threads that play them.
const THREADS: usize = 4;

/// What came about over many seeds.
type Happened = BTreeMap<&'static str, u64>;

/// Plays one seed; gives the log, and what came about.
fn play(seed: u64) -> (Vec<Event>, Happened) {
    let mut session = Session::of_seed(seed);
    session.live();
    session.judge()
}

/// Plays these seeds; fails with the number of each that fails.
fn play_all(seeds: std::ops::Range<u64>) -> Happened {
    let (next, all) = (AtomicU64::new(seeds.start), Mutex::new(Happened::new()));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    match catch_unwind(AssertUnwindSafe(|| play(seed))) {
                        Ok((_, happened)) => {
                            let mut all = all.lock().unwrap();
                            for (what, count) in happened {
                                *all.entry(what).or_default() += count;
                            }
                        }
                        Err(_) => wrong.lock().unwrap().push(seed),
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort_unstable();
    let first = wrong.first().copied().unwrap_or_default();
    assert!(wrong.is_empty(), "seeds {wrong:?} went wrong; HAFT_TEST_SEED={first} begins with one");
    all.into_inner().unwrap()
}

#[test]
fn seeds_lose_nothing_and_run_nothing_twice() {
    let first = std::env::var("HAFT_TEST_SEED").map_or(0, |text| text.parse().unwrap());
    let happened = play_all(first..first + times(SEEDS));
    let names = [
        "interrupt in a turn",
        "killed in an answer",
        "killed in a call",
        "killed in a pause",
        "killed in a step",
        "killed with words that wait",
        "closed",
        "line cut off",
        "message that waited",
        "compaction",
        "compaction by hand",
        "summary asked for",
        "faulty answer",
        "asked again",
        "call cancelled",
        "call of which nothing is known",
    ];
    for what in names {
        assert!(happened.get(what).is_some_and(|count| *count >= 5), "{what}: {happened:#?}");
    }
}

#[test]
fn seeds_come_to_the_same_each_time() {
    for seed in 0..20 {
        let bodies = |events: Vec<Event>| -> Vec<String> {
            // The first names the session, and a notice of a repair where the log is.
            let events = events.into_iter().skip(1).filter(|event| {
                !matches!(&event.body, haft_types::Body::Notice { text, .. } if text.contains("log.torn"))
            });
            events.map(|event| format!("{:?} {:?}", event.turn, event.body)).collect()
        };
        let (one, other) = (bodies(play(seed).0), bodies(play(seed).0));
        for (at, (one, other)) in one.iter().zip(&other).enumerate() {
            assert_eq!(one, other, "seed {seed}, event {at}");
        }
        assert_eq!(one.len(), other.len(), "seed {seed}");
    }
}
