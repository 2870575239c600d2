//! What events become for people: in plain cases, out of order, and cut.

use std::sync::Arc;

use haft_render::{
    AgentStatus, CallEntry, CallPhase, Content, Entry, EntryId, EntryState, Transcript,
};
use haft_types::{
    AgentPath, Answerer, Body, CallId, Choice, Event, From, JobEnd, Outcome, Part, Question,
    QuestionId, QuestionKind, Reply, Stop, Stream, ToolUse, TurnEnd, TurnId, Usage, VERSION,
};
use serde_json::json;

fn event(body: Body) -> Arc<Event> {
    let (turn, agent) = (TurnId(1), AgentPath::default());
    Arc::new(Event { v: VERSION, id: None, parent: None, turn, agent, at: 7, body })
}

fn text(index: u32, text: &str) -> Arc<Event> {
    event(Body::AnswerPart { index, part: Part::text(text) })
}

fn call(index: u32, id: u64) -> Arc<Event> {
    let call = ToolUse::new(CallId::nth(id), "bash", json!({"command": "ls"}));
    event(Body::AnswerPart { index, part: Part::Call(call) })
}

fn started(id: &str) -> Arc<Event> {
    let (call, tool) = (CallId(id.into()), "bash".to_owned());
    event(Body::CallStarted { call, tool, input: None, plan: None })
}

fn output(id: u64, text: &str) -> Arc<Event> {
    let (call, text) = (CallId::nth(id), text.to_owned());
    event(Body::CallOutput { call, stream: Stream::Stdout, text })
}

fn ended(id: u64) -> Arc<Event> {
    let (call, outcome) = (CallId::nth(id), Outcome::text("done"));
    event(Body::CallEnded { call, outcome, took: 1 })
}

fn answer_ended() -> Arc<Event> {
    let (model, wire, host) = ("m".into(), "w".into(), String::new());
    let (stop, usage) = (Stop::ToolUse, Usage::default());
    event(Body::AnswerEnded { model, wire, host, stop, usage })
}

fn failed(retried: bool) -> Arc<Event> {
    event(Body::AnswerFailed { error: "no".into(), retried, wait_ms: None })
}

fn asked(call: Option<CallId>) -> Arc<Event> {
    let options = vec![Choice { id: "allow".into(), key: 'y', label: "yes".into() }];
    let question = Question {
        id: QuestionId::nth(1),
        call,
        kind: QuestionKind::Permission,
        text: "May it?".into(),
        options,
        if_nobody: Reply::pick("deny"),
        command: None,
        preview: None,
        agent: AgentPath::default(),
        form: None,
    };
    event(Body::Asked { question })
}

fn answered() -> Arc<Event> {
    let (question, reply) = (QuestionId::nth(1), Reply::pick("allow"));
    event(Body::Answered { question, reply, by: Answerer::Person("line".into()) })
}

fn of(events: &[Arc<Event>]) -> Transcript {
    let mut transcript = Transcript::default();
    for event in events {
        transcript.push(event);
    }
    transcript
}

fn call_of(entry: &Entry) -> Option<&CallEntry> {
    match &entry.content {
        Content::Call(call) => Some(call),
        _ => None,
    }
}

#[test]
fn a_call_goes_through_its_phases_in_one_entry() {
    let mut transcript = Transcript::default();
    let main = AgentPath::default();
    let piece =
        |json: &str| event(Body::CallPart { index: 1, name: "bash".into(), json: json.to_owned() });
    let phases = [
        (piece("{\"comm"), CallPhase::Arguments, AgentStatus::Asking),
        (piece("and\": \"ls\"}"), CallPhase::Arguments, AgentStatus::Asking),
        (call(1, 1), CallPhase::Waiting, AgentStatus::Asking),
        (answer_ended(), CallPhase::Waiting, AgentStatus::Asking),
        (
            asked(Some(CallId::nth(1))),
            CallPhase::Asking,
            AgentStatus::Waiting { question: QuestionId::nth(1) },
        ),
        (answered(), CallPhase::Waiting, AgentStatus::Asking),
        (started("c1"), CallPhase::Running, AgentStatus::Running { calls: 1 }),
        (output(1, "a\n"), CallPhase::Running, AgentStatus::Running { calls: 1 }),
        (started("c1"), CallPhase::Running, AgentStatus::Running { calls: 1 }),
        (output(1, "b\n"), CallPhase::Running, AgentStatus::Running { calls: 1 }),
        (ended(1), CallPhase::Ended, AgentStatus::Asking),
    ];
    for (event, phase, status) in phases {
        transcript.push(&event);
        assert_eq!(
            call_of(transcript.entries().next().unwrap()).unwrap().phase,
            phase,
            "{event:?}"
        );
        assert_eq!(transcript.status(&main), status, "{event:?}");
    }
    let all: Vec<&Entry> = transcript.entries().collect();
    assert_eq!(all.len(), 2, "the call and its question: {all:?}");
    let call = call_of(all[0]).unwrap();
    assert_eq!(call.arguments, "{\"command\": \"ls\"}");
    assert_eq!(
        (call.input.as_ref(), call.output.text()),
        (Some(&json!({"command": "ls"})), "a\nb\n")
    );
    assert!(all.iter().all(|entry| entry.state == EntryState::Final));
    let end = Body::TurnEnded { end: TurnEnd::Interrupted, usage: Usage::default() };
    transcript.push(&event(end));
    assert_eq!(transcript.status(&main), AgentStatus::Idle);
}

#[test]
fn what_is_asked_again_is_void() {
    let transcript =
        of(&[text(0, "half"), call(1, 1), failed(true), text(0, "whole"), answer_ended()]);
    let states: Vec<EntryState> = transcript.entries().map(|entry| entry.state).collect();
    assert_eq!(states, [EntryState::Void, EntryState::Void, EntryState::Final, EntryState::Final]);
    // Cut for good, it stays, and a call goes on.
    let transcript = of(&[text(0, "half"), call(1, 1), failed(false)]);
    let states: Vec<EntryState> = transcript.entries().map(|entry| entry.state).collect();
    assert_eq!(states, [EntryState::Final, EntryState::Live, EntryState::Final]);
}

#[test]
fn what_cannot_be_placed_is_an_entry_of_its_own() {
    let job_ended = event(Body::JobEnded { job: "j1".into(), end: JobEnd::Lost, exit: None });
    for (events, wanted) in [
        (vec![ended(1)], 1),
        (vec![output(1, "x"), ended(1)], 1),
        (vec![ended(1), started("c1"), ended(1)], 2),
        (vec![answered()], 1),
        (vec![asked(None), answered(), answered()], 2),
        (vec![job_ended], 1),
        (vec![answer_ended(), answer_ended()], 0),
    ] {
        let transcript = of(&events);
        let all: Vec<&Entry> = transcript.entries().collect();
        assert_eq!(all.len(), wanted, "{events:?}: {all:?}");
        assert!(all.iter().all(|entry| entry.state == EntryState::Final), "{all:?}");
    }
    let transcript = of(&[started("c1.2")]);
    assert_eq!(call_of(transcript.entries().next().unwrap()).unwrap().parent, Some(CallId::nth(1)));
}

#[test]
fn a_new_turn_ends_what_the_one_before_left_open() {
    let mut transcript = of(&[text(0, "cut"), call(1, 1), started("c1")]);
    let body = Body::User { from: From::Person, parts: vec![Part::text("go on")] };
    let next = Arc::new(Event { turn: TurnId(2), ..(*event(body)).clone() });
    let changed = transcript.push(&next);
    assert_eq!((changed.added, changed.updated), (vec![EntryId(3)], vec![EntryId(1), EntryId(2)]));
    assert_eq!(transcript.status(&AgentPath::default()), AgentStatus::Asking);
}

#[test]
fn what_a_front_end_is_done_with_is_not_held() {
    let mut transcript = Transcript::default();
    for number in 0..10_000 {
        transcript.push(&text(0, "words"));
        transcript.push(&call(1, number));
        transcript.push(&answer_ended());
        transcript.push(&started(&format!("c{number}")));
        transcript.push(&ended(number));
        transcript.release(EntryId(u64::MAX));
        assert_eq!(transcript.entries().count(), 0);
    }
    // One that is open stays, and what comes of it finds it.
    transcript.push(&started("c1"));
    transcript.release(EntryId(u64::MAX));
    let changed = transcript.push(&ended(1));
    assert_eq!((changed.added.len(), changed.updated.len()), (0, 1));
}

#[test]
fn a_text_without_end_is_bounded() {
    let mut transcript = Transcript::default();
    let piece = "\u{e4}".repeat(1 << 19);
    for _ in 0..20 {
        transcript.push(&text(0, &piece));
    }
    let Content::Text(held) = &transcript.entries().next().unwrap().content else {
        panic!("no text")
    };
    assert!(held.len() < (8 << 20) + 100 && held.ends_with("the log of the session has it]\n"));
}
