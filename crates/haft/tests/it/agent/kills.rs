//! A run that is killed at random instants: what it told is in its log, it can be gone on with, and
//! no call runs twice.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use haft_session::Store;
use haft_testkit::{
    log::{holds, times_said},
    machine::times,
    numbers::Numbers,
};
use haft_types::{Body, Event, Status};
use serde_json::{Value, json};

use super::invariants::hold_in_request;
use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, PATIENCE, World, ended, finish},
};

const FIRST: &str = "Please make all marks.";
const THEN: &str = "Please go on with the marks.";
const LAST: &str = "All marks are made.";
/// How the system prompt of a request for a summary begins.
const SUMMARY: &str = "You sum up the work of a coding agent";
/// Answers with calls, over all runs of a session.
const ANSWERS: usize = 5;

/// What is killed.
#[derive(Clone, Copy, Debug)]
struct Story {
    wire: Wire,
    /// Whether the window is so small that the conversation is summed up.
    is_small: bool,
}

impl Story {
    fn world(self) -> World {
        let world = World::new();
        let window = if self.is_small { 12_000 } else { 100_000 };
        let model = self.wire.model();
        world.settings(&format!(
            "[models.\"{model}\"]\ncontext = {window}\n[context]\nmask_percent = 100\n\
             [run]\ngit_status_ms = 0\n"
        ));
        world
    }

    /// A model whose calls write marks that no other call has; it ends once all answers were given.
    fn mock(self) -> Mock {
        let (wire, mut given) = (self.wire, 0);
        // Each call prints what no other one does: the same again would not be sent again.
        let printed = if self.is_small { 600 } else { 1 };
        Mock::with(move |_, request| {
            if String::from_utf8_lossy(&request.body).contains(SUMMARY) {
                return wire.text("Goal: to make marks.\nDone: the first marks [done].");
            }
            given += 1;
            if given > ANSWERS {
                return wire.text(LAST);
            }
            let call = |n: usize| {
                let from = given * 100_000 + n * 10_000;
                let command = format!("echo {given}.{n} >> made; seq {from} {}", from + printed);
                ("bash", json!({ "command": command }))
            };
            let calls = [call(1), call(2)];
            wire.text_and_calls("I make marks.", &format!("k{given}"), &calls)
        })
    }
}

/// The events of the only session, from the disk.
fn log(world: &World) -> Vec<Event> {
    let store = Store::open(&world.state());
    let ids = store.ids().unwrap();
    let [id] = &ids[..] else { panic!("{} sessions", ids.len()) };
    assert!(store.verify(id).unwrap().broken.is_none());
    store.events(id).unwrap().map(Result::unwrap).collect()
}

/// Runs until so many lines were told and a moment more, and kills it; gives the lines, and whether
/// it was killed before its end.
fn killed(
    story: Story,
    world: &World,
    mock: &Mock,
    lines: usize,
    more: Duration,
) -> (Vec<Value>, bool) {
    let flags = ["--mode", "bypass", "-p", FIRST, "--output", "stream-json"];
    let mut haft = story.wire.haft(world, &mock.url(), &flags);
    let mut child = haft.stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    for _ in 0..lines {
        if out.read_line(&mut told).unwrap() == 0 {
            break;
        }
    }
    let until = Instant::now() + more;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    out.read_to_string(&mut told).unwrap();
    let is_killed = !ended(&mut child, PATIENCE).success();
    // The kernel took whole writes, and haft writes whole lines.
    let whole = told.rfind('\n').map_or("", |end| &told[..=end]);
    (whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), is_killed)
}

/// The lines of a run that tell of what its log holds, each by what it says.
fn told(line: &Value) -> Option<String> {
    Some(match line["type"].as_str()? {
        "session" => format!("session {}", line["session"]),
        "user" => format!("user {}", line["parts"][0]["text"]),
        "call" => format!("call {}", line["call"]),
        "call_result" => format!("result {} {}", line["call"], line["status"]),
        "assistant" => format!("answer of {}", line["usage"]),
        "turn_ended" => "turn".to_owned(),
        _ => return None,
    })
}

/// The same of the events of a log.
fn kept(event: &Event) -> Option<String> {
    Some(match &event.body {
        Body::Session { session, .. } => format!("session {}", json!(session)),
        Body::User { parts, .. } => format!("user {}", json!(parts)[0]["text"]),
        Body::CallStarted { call, .. } => format!("call {}", json!(call)),
        Body::CallEnded { call, outcome, .. } => {
            format!("result {} {}", json!(call), json!(outcome.status))
        }
        Body::AnswerEnded { usage, .. } => format!("answer of {}", json!(usage)),
        Body::TurnEnded { .. } => "turn".to_owned(),
        _ => return None,
    })
}

/// Fails unless no mark was made twice, and those of calls that went well were made.
fn marks_hold(world: &World, events: &[Event], told: &str) {
    let file = std::fs::read_to_string(world.work().join("made")).unwrap_or_default();
    let marks: Vec<&str> = file.lines().collect();
    let mut commands = std::collections::BTreeMap::new();
    for event in events {
        match &event.body {
            Body::AnswerPart { part: haft_types::Part::Call(call), .. } => {
                let command = call.input.as_ref().unwrap()["command"].as_str().unwrap();
                let mark = command.split(' ').nth(1).unwrap().to_owned();
                let made = marks.iter().filter(|line| **line == mark).count();
                assert!(made <= 1, "{told}: {mark} was made {made} times");
                commands.insert(call.id.clone(), mark);
            }
            Body::CallEnded { call, outcome, .. } => {
                let is_made = marks.contains(&commands[call].as_str());
                let text = outcome.joined_text();
                assert!(is_made || outcome.status != Status::Done, "{told}: {call} is lost");
                assert!(!is_made || !text.contains("never ran"), "{told}: {call}: {text}");
            }
            _ => {}
        }
    }
}

/// Kills one run, and goes on with its session; true where it was killed before its end.
fn kill(story: Story, lines: usize, more: Duration) -> bool {
    let told_as = format!("{story:?} killed {more:?} after line {lines}");
    let (world, mock) = (story.world(), story.mock());
    let (lines, is_killed) = killed(story, &world, &mock, lines, more);
    let events = log(&world);
    let mut there = events.iter().filter_map(kept);
    for line in lines.iter().filter_map(told) {
        assert!(there.any(|event| event == line), "{told_as}: {line} is not in the log");
    }
    marks_hold(&world, &events, &told_as);
    // By the name that it told: one in which nothing was said yet is not the last one for `-c`.
    let id = lines[0]["session"].as_str().unwrap();
    let flags = ["--mode", "bypass", "-p", THEN, "-r", id, "--output", "json"];
    let ran = finish(story.wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{told_as}: {ran:?}");
    assert_eq!(ran.json()["text"], LAST, "{told_as}: {ran:?}");
    let after = log(&world);
    assert_eq!(after[..events.len()], events, "{told_as}: what was there stays");
    holds(&after, &told_as);
    marks_hold(&world, &after, &told_as);
    let was_said = usize::from(lines.iter().any(|line| line["type"] == "user"));
    assert!(times_said(&after, FIRST) >= was_said && times_said(&after, FIRST) <= 1, "{told_as}");
    assert_eq!(times_said(&after, THEN), 1, "{told_as}");
    for body in mock.bodies() {
        hold_in_request(story.wire, &body, &told_as);
    }
    is_killed
}

/// How many lines a run tells, and how often it is summed up.
fn usual(story: Story) -> (usize, usize) {
    let (world, mock) = (story.world(), story.mock());
    let flags = ["--mode", "bypass", "-p", FIRST, "--output", "stream-json"];
    let ran = finish(story.wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = log(&world);
    let is_summary = |event: &&Event| matches!(event.body, Body::Compacted { .. });
    (ran.lines().len(), events.iter().filter(is_summary).count())
}

#[test]
fn a_run_killed_at_any_instant_keeps_what_it_told() {
    let seed: u64 = std::env::var("HAFT_TEST_SEED").map_or(1, |text| text.parse().unwrap());
    eprintln!("HAFT_TEST_SEED={seed}");
    let stories: Vec<Story> = WIRES
        .into_iter()
        .flat_map(|wire| [false, true].map(|is_small| Story { wire, is_small }))
        .collect();
    let usual: Vec<u64> = [stories[0], stories[1]]
        .map(|story| {
            let (lines, summaries) = usual(story);
            assert_eq!(summaries > 0, story.is_small, "{story:?}: {summaries} summaries");
            u64::try_from(lines).unwrap()
        })
        .into();
    let (count, next) = (times(20), AtomicU64::new(0));
    let (killed, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= count {
                        break;
                    }
                    let at = usize::try_from(number).unwrap() % stories.len();
                    let mut drawn = Numbers::of(seed.wrapping_mul(1_000_003) ^ number);
                    let lines = 1 + usize::try_from(drawn.below(usual[at % 2])).unwrap();
                    let more = Duration::from_micros(drawn.below(4_000));
                    let done = std::panic::catch_unwind(|| kill(stories[at], lines, more));
                    if let Ok(is_killed) = done {
                        killed.fetch_add(u64::from(is_killed), Ordering::SeqCst);
                    } else {
                        wrong.lock().unwrap().push(number);
                    }
                }
            });
        }
    });
    let (killed, wrong) = (killed.into_inner(), wrong.into_inner().unwrap());
    assert!(wrong.is_empty(), "HAFT_TEST_SEED={seed}: {wrong:?} of {count} went wrong");
    assert!(killed * 2 > count, "only {killed} of {count} were killed before their end");
}
