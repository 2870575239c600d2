//! One stream of events: kept before it is shown, in order, bounded for the slow.

use haft_agent::{Bus, Feed};
use haft_session::{Log, Store};
use haft_tool::Events as _;
use haft_types::{
    AgentPath, Body, CallId, EventId, Level, Part, Queued, Shape, Stream, TurnId, When,
};

fn log() -> (tempfile::TempDir, Store, Log) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path());
    let log = store.create();
    (home, store, log)
}

fn notice(text: impl Into<String>) -> Body {
    Body::Notice { level: Level::Info, text: text.into() }
}

/// Output of a call of its own, which nothing is joined with.
fn output(n: usize) -> Body {
    let call = CallId::nth(u64::try_from(n).unwrap());
    Body::CallOutput { call, stream: Stream::Stdout, text: n.to_string() }
}

fn says(stream: Stream, text: &str) -> Body {
    Body::CallOutput { call: CallId::nth(1), stream, text: text.into() }
}

fn progress(call: u64, text: &str) -> Body {
    let detail = Shape::Markdown { text: text.into() }.into();
    Body::CallProgress { call: CallId::nth(call), detail }
}

fn emit(bus: &Bus, body: Body) {
    bus.emit(&AgentPath::default(), TurnId(1), body).unwrap();
}

fn rest(feed: &mut Feed) -> Vec<Body> {
    std::iter::from_fn(|| feed.try_next()).map(|event| event.body.clone()).collect()
}

#[test]
fn a_slow_front_end_loses_only_passing_events_and_is_told_how_many() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let (mut slow, mut other) = (bus.subscribe(), bus.subscribe());
    let mut quick = Vec::new();
    for n in 0..5_000 {
        emit(&bus, output(n));
        if n % 100 == 0 {
            emit(&bus, notice(format!("n{n}")));
            quick.extend(rest(&mut other));
        }
    }
    quick.extend(rest(&mut other));
    assert_eq!(quick.len(), 5_050, "who keeps up loses nothing");
    let seen = rest(&mut slow);
    let lost: usize = seen
        .iter()
        .filter_map(|body| match body {
            Body::Notice { text, .. } => text.strip_suffix(" passing updates were left out here"),
            _ => None,
        })
        .map(|count| count.parse::<usize>().unwrap())
        .sum();
    let passing = seen.iter().filter(|body| !body.is_durable()).count();
    assert_eq!(passing + lost, 5_000);
    assert!(passing <= 1_000, "{passing} waited");
    let kept: Vec<_> = seen.iter().filter(|body| quick.contains(body)).collect();
    let mut all = quick.iter();
    assert!(kept.iter().all(|body| all.any(|other| other == *body)), "the order is kept");
    let durable = |b: &&&Body| matches!(b, Body::Notice { text, .. } if text.starts_with('n'));
    assert_eq!(kept.iter().filter(durable).count(), 50);
}

#[test]
fn passing_events_that_wait_are_merged_in_their_order() {
    use Stream::{Stderr, Stdout};
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let part = |json: &str| Body::CallPart { index: 0, name: "n".into(), json: json.into() };
    for body in [
        part("{\"a\""),
        part(":1}"),
        says(Stdout, "a"),
        progress(2, "one"),
        says(Stdout, "b"),
        says(Stderr, "c"),
        progress(2, "two"),
        says(Stdout, "d"),
        notice("kept"),
        says(Stdout, "e"),
        progress(2, "three"),
    ] {
        emit(&bus, body);
    }
    let expected = [
        part("{\"a\":1}"),
        says(Stdout, "ab"),
        progress(2, "two"),
        says(Stderr, "c"),
        says(Stdout, "d"),
        notice("kept"),
        says(Stdout, "e"),
        progress(2, "three"),
    ];
    assert_eq!(rest(&mut feed), expected);
}

#[test]
fn what_waits_for_a_slow_front_end_has_a_bound_in_bytes() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let chunk = "x".repeat(10_000);
    for _ in 0..1_000 {
        emit(&bus, says(Stream::Stdout, &chunk));
    }
    let seen = rest(&mut feed);
    let [Body::CallOutput { text, .. }, ..] = &seen[..] else { panic!("no output") };
    assert!(text.len() <= 1 << 20 && text.len() > 1_000_000, "{}", text.len());
    let lost = 1_000 - text.len() / chunk.len();
    assert_eq!(seen[1..], [notice(format!("{lost} passing updates were left out here"))]);
}

#[tokio::test(start_paused = true)]
async fn passing_events_come_twenty_times_a_second_and_durable_ones_at_once() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let began = tokio::time::Instant::now();
    let writer = bus.clone();
    tokio::spawn(async move {
        for n in 0..1_000 {
            emit(&writer, says(Stream::Stdout, "x"));
            if n == 501 {
                emit(&writer, notice("durable"));
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        writer.close();
    });
    let (mut bytes, mut times) = (0, 0);
    while let Some(event) = feed.next().await {
        match &event.body {
            Body::CallOutput { text, .. } => (bytes, times) = (bytes + text.len(), times + 1),
            _ => assert_eq!(began.elapsed().as_millis(), 501, "nothing waits for a pace"),
        }
    }
    assert_eq!(bytes, 1_000, "nothing is lost");
    assert!((20..=23).contains(&times), "{times} in a second");
}

/// The disk stands still while a blob is synced: its place is taken by a pipe that nobody reads.
#[cfg(unix)]
#[tokio::test]
async fn appending_goes_on_while_the_disk_is_waited_for() {
    use haft_session::INLINE_MAX;
    let (_home, store, log) = log();
    let (id, blobs) = (log.session().clone(), log.blobs().clone());
    let bus = Bus::new(log, || 7);
    let large = "x".repeat(INLINE_MAX + 1);
    emit(&bus, notice(&*large));
    let blob = blobs.path(&haft_types::Hash::of(large.as_bytes()));
    std::fs::remove_file(&blob).unwrap();
    haft_testkit::machine::make_fifo(&blob);
    let waiting =
        [bus.clone(), bus.clone()].map(|bus| tokio::spawn(async move { bus.sync().await }));
    bus.sync_ahead();
    for n in 0..100 {
        emit(&bus, notice(n.to_string()));
        tokio::task::yield_now().await;
    }
    let lines = std::fs::read_to_string(store.dir(&id).join("log.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 101);
    assert!(waiting.iter().all(|sync| !sync.is_finished()), "it is not synced before it is");
    // Opened for both it blocks nobody any more, but a pipe cannot be synced: whoever waited is
    // told, and the next one tries again.
    let pipe = std::fs::OpenOptions::new().read(true).write(true).open(&blob).unwrap();
    for sync in waiting {
        sync.await.unwrap().unwrap_err();
    }
    drop(pipe);
    std::fs::remove_file(&blob).unwrap();
    std::fs::write(&blob, &large).unwrap();
    bus.sync().await.unwrap();
}

#[test]
fn a_durable_event_is_in_the_log_when_it_is_seen() {
    let (_home, store, log) = log();
    let id = log.session().clone();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    for n in 1..=20 {
        emit(&bus, notice(n.to_string()));
        emit(&bus, output(0));
        let seen = feed.try_next().unwrap();
        assert_eq!((seen.id, seen.at), (Some(EventId(n)), 7));
        let last = store.events(&id).unwrap().last().unwrap().unwrap();
        assert_eq!(last, *seen);
        assert_eq!(feed.try_next().unwrap().id, None, "a passing one is only shown");
    }
    assert_eq!(store.events(&id).unwrap().count(), 20);
}

#[test]
fn what_cannot_be_kept_is_not_shown_but_may_be_told() {
    let (home, _store, log) = log();
    std::fs::write(home.path().join("sessions"), "in the way").unwrap();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let error = bus.emit(&AgentPath::default(), TurnId(1), notice("lost")).unwrap_err();
    assert!(error.to_string().contains("sessions"), "{error}");
    emit(&bus, output(1));
    bus.broadcast(&AgentPath::default(), TurnId(1), notice("told"));
    assert_eq!(rest(&mut feed), [output(1), notice("told")]);
}

#[test]
fn of_what_waits_for_an_agent_an_unread_feed_holds_the_newest_alone() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let queue = |id| {
        let parts = vec![Part::text("x".repeat(1000))];
        Body::Queue { waiting: vec![Queued { id, when: When::Steer, parts }] }
    };
    let (main, one) = (AgentPath::default(), AgentPath::default().child("one"));
    for id in 1..=5_000 {
        for agent in [&main, &one] {
            bus.emit(agent, TurnId(1), queue(id)).unwrap();
        }
        if id % 1_000 == 0 {
            emit(&bus, notice("between"));
        }
    }
    emit(&bus, output(1));
    let seen: Vec<_> = std::iter::from_fn(|| feed.try_next()).collect();
    let queues = seen.iter().filter(|event| matches!(event.body, Body::Queue { .. }));
    let queues: Vec<_> = queues.map(|event| (&event.agent, &event.body)).collect();
    assert_eq!(queues, [(&main, &queue(5_000)), (&one, &queue(5_000))]);
    // Nothing else was pushed out by them.
    assert_eq!(seen.len(), 2 + 5 + 1);
    assert_eq!(seen.last().unwrap().body, output(1));
}

#[tokio::test]
async fn a_closed_bus_gives_what_waits_and_then_ends() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    emit(&bus, notice("last"));
    bus.close();
    assert_eq!(feed.next().await.unwrap().body, notice("last"));
    assert!(feed.next().await.is_none());
    emit(&bus, notice("later"));
    assert!(feed.next().await.is_none());
}

#[tokio::test]
async fn a_lazy_bus_writes_nothing_before_it_is_synced_and_loses_nothing_then() {
    let (home, store, log) = log();
    let id = log.session().clone();
    let bus = Bus::lazy(log, || 7);
    for n in 0..3 {
        emit(&bus, notice(n.to_string()));
    }
    assert!(bus.is_held() && !home.path().join("sessions").exists());
    std::fs::write(home.path().join("sessions"), "in the way").unwrap();
    bus.sync().await.unwrap_err();
    std::fs::remove_file(home.path().join("sessions")).unwrap();
    emit(&bus, notice("3"));
    bus.sync().await.unwrap();
    let texts: Vec<_> = store.events(&id).unwrap().map(|event| event.unwrap().body).collect();
    assert_eq!(texts, ["0", "1", "2", "3"].map(notice));
    assert!(!bus.is_held());
}

#[test]
fn what_agents_and_turns_tell_is_not_mixed() {
    let (_home, _store, log) = log();
    let bus = Bus::new(log, || 7);
    let mut feed = bus.subscribe();
    let (main, child) = (AgentPath::default(), AgentPath::default().child("explore"));
    for (agent, turn, text) in
        [(&main, 1, "a"), (&child, 1, "b"), (&main, 1, "c"), (&main, 2, "d"), (&child, 1, "e")]
    {
        bus.emit(agent, TurnId(turn), says(Stream::Stdout, text)).unwrap();
    }
    let seen: Vec<_> = std::iter::from_fn(|| feed.try_next())
        .map(|event| (event.agent.clone(), event.turn, event.body.clone()))
        .collect();
    let told = |agent: &AgentPath, turn, text: &str| {
        (agent.clone(), TurnId(turn), says(Stream::Stdout, text))
    };
    assert_eq!(seen, [told(&main, 1, "ac"), told(&child, 1, "be"), told(&main, 2, "d")]);
}

#[tokio::test]
async fn a_lazy_bus_that_cannot_write_goes_on_in_bounded_memory_and_says_so_once() {
    let (home, store, log) = log();
    let id = log.session().clone();
    let in_the_way = home.path().join("sessions");
    std::fs::write(&in_the_way, "").unwrap();
    let bus = Bus::lazy(log, || 7);
    let mut feed = bus.subscribe();
    let text = |n: usize| format!("{n} {}", "x".repeat(2_000));
    for n in 0..5_000 {
        emit(&bus, notice(text(n)));
    }
    let shown = rest(&mut feed);
    let left_out =
        |body: &&Body| matches!(body, Body::Notice { text, .. } if text.contains("left out"));
    assert_eq!(shown.iter().filter(left_out).count(), 1, "it is told once");
    assert_eq!(shown.len(), 5_001, "everything is shown");
    std::fs::remove_file(&in_the_way).unwrap();
    bus.sync().await.unwrap();
    let kept: Vec<Body> = store.events(&id).unwrap().map(|event| event.unwrap().body).collect();
    assert!((200..600).contains(&kept.len()), "{} were held", kept.len());
    assert_eq!(kept[0], notice(text(0)), "what the session is stays");
    assert_eq!(kept.iter().filter(left_out).count(), 1);
    assert!(left_out(&&kept[1]), "{:?}", kept[1]);
    let rest: Vec<Body> = (5_000 - (kept.len() - 2)..5_000).map(|n| notice(text(n))).collect();
    assert!(kept[2..] == rest, "the last ones are there, in their order, each once");
}

#[tokio::test(start_paused = true)]
async fn what_a_lazy_bus_keeps_for_its_length_is_synced_in_time() {
    let (_home, _store, log) = log();
    let syncer = log.syncer().clone();
    let bus = Bus::lazy(log, || 7);
    while bus.is_held() {
        emit(&bus, notice("x".repeat(5_000)));
    }
    assert!(!syncer.is_done());
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(syncer.is_done());
}

/// A large value that was held back cannot be written for a while: a pipe stands in its place.
#[cfg(unix)]
#[tokio::test]
async fn what_was_held_back_is_written_without_holding_anyone_up() {
    let (_home, store, log) = log();
    let (id, blobs) = (log.session().clone(), log.blobs().clone());
    let large = "x".repeat(haft_session::INLINE_MAX + 1);
    let blob = blobs.path(&haft_types::Hash::of(large.as_bytes()));
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    haft_testkit::machine::make_fifo(&blob);
    let bus = Bus::lazy(log, || 7);
    emit(&bus, notice(&*large));
    let writer = bus.clone();
    let waiting = tokio::spawn(async move { writer.sync().await });
    for n in 0..100 {
        emit(&bus, notice(n.to_string()));
        tokio::task::yield_now().await;
    }
    assert!(bus.is_held() && !waiting.is_finished());
    // Opening it for both frees whoever waits; a pipe is no blob, so it is replaced.
    let pipe = std::fs::OpenOptions::new().read(true).write(true).open(&blob).unwrap();
    waiting.await.unwrap().unwrap();
    drop(pipe);
    let kept: Vec<Body> = store.events(&id).unwrap().map(|event| event.unwrap().body).collect();
    let small = (0..100).map(|n| notice(n.to_string()));
    assert_eq!(kept, std::iter::once(notice(large)).chain(small).collect::<Vec<_>>());
}
