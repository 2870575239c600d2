//! One stream of events: kept before it is shown, in order, bounded for the slow.

use haft_agent::{Bus, Feed};
use haft_session::{Log, Store};
use haft_tool::Events as _;
use haft_types::{AgentPath, Body, CallId, EventId, Level, Stream, TurnId};

fn log() -> (tempfile::TempDir, Store, Log) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path());
    let log = store.create();
    (home, store, log)
}

fn notice(text: impl Into<String>) -> Body {
    Body::Notice { level: Level::Info, text: text.into() }
}

fn output(n: usize) -> Body {
    Body::CallOutput { call: CallId::nth(1), stream: Stream::Stdout, text: n.to_string() }
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
    assert_eq!(store.event_count(&id).unwrap(), 20);
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
    bus.tell(&AgentPath::default(), TurnId(1), notice("told"));
    assert_eq!(rest(&mut feed), [output(1), notice("told")]);
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
