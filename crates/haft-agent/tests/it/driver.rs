//! Turns that go well: order, early starts, words, limits, questions, the pinned prefix, resume.

use haft_agent::{Agent, Input, Limits};
use haft_llm::{Delta, LlmError, ScriptProvider};
use haft_policy::Mode;
use haft_session::{Fold, Store, conversation};
use haft_types::{
    AgentPath, Answerer, Body, CallId, EventId, From, Message, Part, QuestionId, Reply, Status,
    Stop, TurnEnd, TurnId, When,
};
use serde_json::json;

use crate::world::{
    Scripted, Step, World, asks_for, calls, ended, ends, is_done, is_started, say, says,
};

fn done() -> TurnEnd {
    TurnEnd::Done { stop: Stop::EndTurn }
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_conflict_run_together_and_the_others_in_order() {
    let slow = |nth, name, path| calls(nth, name, &json!({ "path": path, "ms": 100 }));
    let model = Scripted::new([
        vec![
            slow(1, "edit", "a"),
            slow(2, "edit", "b"),
            slow(3, "grep", "."),
            slow(4, "edit", "a"),
            ends(Stop::ToolUse),
        ],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    let began = tokio::time::Instant::now();
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, done());
    assert_eq!(began.elapsed().as_millis() / 10, 30, "three batches of 100 ms each");
    let mut did = world.did();
    did[..2].sort();
    assert_eq!(did[..2], ["+edit a", "+edit b"]);
    assert_eq!(did[4..], ["+grep .", "-grep .", "+edit a", "-edit a"]);
    assert_eq!(ended(&seen).len(), 4);
    let Some(Message::Results { results }) = conversation_of(&world).get(2).cloned() else {
        panic!("the results come after the answer");
    };
    let ids: Vec<_> = results.iter().map(|result| result.id.clone()).collect();
    assert_eq!(ids, [1, 2, 3, 4].map(CallId::nth), "in the order of the calls");
}

#[tokio::test(start_paused = true)]
async fn searches_go_before_the_edits_that_follow_and_after_those_before() {
    let wanted = [("grep", "."), ("grep", "."), ("edit", "a"), ("edit", "b"), ("grep", ".")];
    let model = Scripted::new([asks_for(&wanted), is_done("fine")]);
    let mut world = World::new();
    let handle = world.start(&model);
    assert_eq!(world.turn(&handle, "go").await.1, done());
    let did = world.did();
    let at = |what: &str| did.iter().position(|line| line == what).unwrap();
    let last = did.iter().rposition(|line| line == "+grep .").unwrap();
    assert!(at("-grep .") < at("+edit a") && at("-grep .") < at("+edit b"), "{did:?}");
    assert!(at("-edit a") < last && at("-edit b") < last, "{did:?}");
    assert_eq!(did.iter().filter(|line| *line == "+grep .").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_are_allowed() {
    for pause in [0, 1_000] {
        let slow = |nth| calls(nth, "grep", &json!({ "path": ".", "ms": 100 }));
        let mut answer: Vec<Step> = (1..=7).map(slow).collect();
        answer.extend([Step::Waits(pause), ends(Stop::ToolUse)]);
        let model = Scripted::new([answer, is_done("fine")]);
        let mut world = World::new();
        let handle =
            Agent::start(haft_agent::AgentConfig { concurrency: 2, ..world.setup(&model) });
        assert_eq!(world.turn(&handle, "go").await.1, done());
        let (mut running, mut most) = (0, 0);
        for line in world.did() {
            running += if line.starts_with('+') { 1 } else { -1 };
            most = most.max(running);
        }
        assert_eq!((running, most), (0, 2), "{:?}", world.did());
    }
}

#[tokio::test(start_paused = true)]
async fn a_harmless_call_starts_while_its_answer_streams_and_no_other() {
    let model = Scripted::new([
        vec![
            calls(1, "grep", &json!({"path": "."})),
            Step::Waits(1000),
            calls(2, "edit", &json!({"path": "a"})),
            calls(3, "grep", &json!({"path": "."})),
            Step::Waits(1000),
            ends(Stop::ToolUse),
        ],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, done());
    let at = |wanted: &dyn Fn(&Body) -> bool| seen.iter().position(wanted).unwrap();
    let answered = at(&|body| matches!(body, Body::AnswerEnded { .. }));
    assert!(at(&|body| is_started(body, 1)) < answered);
    assert!(at(&|body| matches!(body, Body::CallEnded { .. })) < answered, "it ended as well");
    assert!(at(&|body| is_started(body, 2)) > answered);
    assert!(at(&|body| is_started(body, 3)) > answered, "it may see what the edit does");
    assert_eq!(world.did(), ["+grep .", "-grep .", "+edit a", "-edit a", "+grep .", "-grep ."]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_person_is_asked_about_does_not_start_early() {
    let model = Scripted::new([
        vec![calls(1, "grep", &json!({"path": "/etc"})), Step::Waits(500), ends(Stop::ToolUse)],
        is_done("fine"),
    ]);
    let mut world = World::with_mode(Mode::Ask);
    let handle = world.start(&model);
    let (seen, _) = world.turn(&handle, "go").await;
    let at = |wanted: &dyn Fn(&Body) -> bool| seen.iter().position(wanted).unwrap();
    let answered = at(&|body| matches!(body, Body::AnswerEnded { .. }));
    assert!(at(&|body| is_started(body, 1)) > answered);
    assert_eq!(ended(&seen), [(CallId::nth(1), Status::Denied)], "nobody is there");
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_call_never_runs_and_the_others_do() {
    let raw = |nth: u32, raw: &str, cut| {
        let (wire_id, name, raw) = (String::new(), "grep".to_owned(), raw.to_owned());
        Step::Gives(Delta::Call { index: nth, wire_id, name, raw, cut, extra: None })
    };
    let whole = "{\"path\":\".\"}";
    let model = Scripted::new([
        vec![raw(1, whole, false), raw(2, whole, true), Step::Waits(10), ends(Stop::Length)],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    let (seen, _) = world.turn(&handle, "go").await;
    assert_eq!(world.did(), ["+grep .", "-grep ."]);
    let mut ended = ended(&seen);
    ended.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(ended, [(CallId::nth(1), Status::Done), (CallId::nth(2), Status::Failed)]);
}

#[tokio::test(start_paused = true)]
async fn steering_comes_after_all_results_and_follow_up_after_the_end() {
    let slow = |nth, path| calls(nth, "edit", &json!({ "path": path, "ms": 100 }));
    let model = Scripted::new([
        vec![slow(1, "a"), slow(2, "b"), ends(Stop::ToolUse)],
        is_done("first"),
        is_done("second"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until(|body| is_started(body, 1)).await;
    handle.send(say("also this"));
    handle.send(Input::User { when: When::FollowUp, parts: vec!["later".into()] });
    assert_eq!(world.until_ended().await.1, done());
    assert_eq!(world.until_ended().await.1, done());
    assert_eq!(model.asked(), 3);
    let sent = model.sent(1);
    assert!(sent[2].contains("tool_result") && sent[3].contains("also this"), "{sent:#?}");
    let log = world.log();
    let said: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.body {
            Body::User { from, parts } => Some((event.turn, from.clone(), parts.clone())),
            _ => None,
        })
        .collect();
    let words = |text: &str| vec![Part::text(text)];
    assert_eq!(
        said,
        [
            (TurnId(1), From::Person, words("go")),
            (TurnId(1), From::Steer, words("also this")),
            (TurnId(2), From::Person, words("later")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn limits_end_a_turn_once_its_calls_have_their_results() {
    let asks = || asks_for(&[("grep", ".")]);
    for (limits, requests) in [
        (Limits { steps: Some(2), ..Limits::default() }, 2),
        (Limits { output_tokens: Some(25), ..Limits::default() }, 3),
    ] {
        let model = Scripted::new([asks(), asks(), asks(), asks()]);
        let mut world = World::new();
        let handle = Agent::start(haft_agent::AgentConfig { limits, ..world.setup(&model) });
        let (seen, end) = world.turn(&handle, "go").await;
        assert!(matches!(end, TurnEnd::Limit { .. }), "{end:?}");
        assert_eq!((model.asked(), ended(&seen).len()), (requests, requests));
        assert_eq!(world.turn(&handle, "go on").await.0.iter().filter(|b| is_end(b)).count(), 1);
    }
}

fn is_end(body: &Body) -> bool {
    matches!(body, Body::TurnEnded { .. })
}

#[tokio::test(start_paused = true)]
async fn a_token_limit_holds_also_where_nothing_has_to_run() {
    let raw = "{\"pa".to_owned();
    let (wire_id, name) = (String::new(), "grep".to_owned());
    let cut = Step::Gives(Delta::Call { index: 0, wire_id, name, raw, cut: true, extra: None });
    let model = Scripted::new([vec![cut, ends(Stop::Length)], is_done("too much")]);
    let mut world = World::new();
    let limits = Limits { output_tokens: Some(5), ..Limits::default() };
    let handle = Agent::start(haft_agent::AgentConfig { limits, ..world.setup(&model) });
    let (_, end) = world.turn(&handle, "go").await;
    assert!(matches!(end, TurnEnd::Limit { .. }), "{end:?}");
    assert_eq!(model.asked(), 1);
}

/// A turn in which somebody is asked about an edit.
async fn asked() -> (World, haft_agent::Handle) {
    let model = Scripted::new([asks_for(&[("edit", "a")]), is_done("fine")]);
    let mut world = World::with_mode(Mode::Ask);
    world.dispatcher.session.questions.set_somebody(true);
    let handle = world.start(&model);
    handle.send(say("go"));
    world.until(|body| matches!(body, Body::Asked { .. })).await;
    (world, handle)
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_denied_or_void() {
    for (option, status) in [("allow", Status::Done), ("deny", Status::Denied)] {
        let (mut world, handle) = asked().await;
        assert_eq!(world.did(), [""; 0], "nothing runs before the answer");
        let reply = Input::Reply { question: QuestionId::nth(1), reply: Reply::pick(option) };
        handle.send(reply);
        let (seen, end) = world.until_ended().await;
        assert_eq!((end, ended(&seen)), (done(), vec![(CallId::nth(1), status)]));
    }
    let (mut world, handle) = asked().await;
    handle.send(Input::Interrupt);
    let (seen, end) = world.until_ended().await;
    assert_eq!(
        (end, ended(&seen)),
        (TurnEnd::Interrupted, vec![(CallId::nth(1), Status::Cancelled)])
    );
    assert!(seen.iter().any(|b| matches!(b, Body::Answered { by: Answerer::Cancelled, .. })));
    assert!(world.did().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_breaks_down_has_one_result_and_the_turn_goes_on() {
    let wanted = [("unplanned", "a"), ("broken", "b"), ("grep", "."), ("unknown", "x")];
    let model = Scripted::new([asks_for(&wanted), is_done("fine")]);
    let mut world = World::new();
    let handle = world.start(&model);
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, done());
    let mut all = ended(&seen);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let status = [Status::Failed, Status::Failed, Status::Done, Status::Failed];
    let expected: Vec<_> = (1..).map(CallId::nth).zip(status).collect();
    assert_eq!(all, expected);
    let results = &model.sent(1)[2];
    assert!(results.contains("it broke over b") && results.contains("no plan for a"), "{results}");
    assert!(!results.contains("task "), "nothing that changes from run to run: {results}");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_never_changed() {
    let steps =
        |n: u32| vec![says("step"), calls(n, "grep", &json!({"path": "."})), ends(Stop::ToolUse)];
    let model = Scripted::new((1..5).map(steps).chain([is_done("fine")]));
    let mut world = World::new();
    let handle = world.start(&model);
    assert_eq!(world.turn(&handle, "go").await.1, done());
    assert_eq!(world.turn(&handle, "again").await.1, done());
    let requests = model.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 6);
    for pair in requests.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
        let (before, after) = (&pair[0].messages, &pair[1].messages);
        assert!(before.len() < after.len());
        for (a, b) in before.iter().zip(after) {
            assert_eq!(a.json().as_ptr(), b.json().as_ptr(), "the very same bytes");
        }
    }
    assert_eq!(*model.encoded.lock().unwrap(), requests[5].messages.len(), "each encoded once");
    let pinned = world.log().into_iter().filter(|e| matches!(e.body, Body::Pinned { .. }));
    assert_eq!(pinned.count(), 1);
}

fn conversation_of(world: &World) -> Vec<Message> {
    conversation(&world.log(), EventId(u64::MAX).min(world.bus.leaf()), &AgentPath::default())
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_sends_what_the_live_one_would_have_sent() {
    let model = Scripted::new([asks_for(&[("grep", "."), ("edit", "a")]), is_done("fine")]);
    let mut world = World::new();
    let handle = world.start(&model);
    world.turn(&handle, "go").await;
    let events = world.log();
    let next = Scripted::new([is_done("live")]);
    handle.close().await;
    let resume = |model: &std::sync::Arc<Scripted>| {
        let mut fold = Fold::new(AgentPath::default());
        for event in &events {
            fold.push(event);
        }
        Agent::start(haft_agent::AgentConfig { fold, cause: None, ..world.setup(model) })
    };
    let handle = resume(&next);
    assert_eq!(world.turn(&handle, "more").await.1, done());
    let (sent, before) = (next.sent(0), model.sent(1));
    assert_eq!(sent[..before.len()], before[..]);
    assert_eq!(sent.len(), before.len() + 2, "the answer and the new words");
    assert_eq!(world.log().last().unwrap().turn, TurnId(2), "turns are counted on");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_made_again_leaves_nothing_behind() {
    let restart = Delta::Restart { attempt: 1, wait_ms: 5, reason: "busy".into() };
    let model = Scripted::new([
        vec![says("void"), Step::Gives(restart), says("kept"), ends(Stop::EndTurn)],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    assert_eq!(world.turn(&handle, "go").await.1, done());
    world.turn(&handle, "more").await;
    let sent = model.sent(1).join("\n");
    assert!(sent.contains("kept") && !sent.contains("void"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_begins_anew_after_a_call_has_failed() {
    let restart = Delta::Restart { attempt: 1, wait_ms: 5, reason: "busy".into() };
    let edit = || calls(1, "edit", &json!({"path": "a"}));
    let model = Scripted::new([vec![edit(), Step::Gives(restart), edit(), ends(Stop::ToolUse)]]);
    let mut world = World::new();
    let handle = world.start(&model);
    let (seen, end) = world.turn(&handle, "go").await;
    assert!(matches!(&end, TurnEnd::Failed { error } if error.contains("busy")), "{end:?}");
    assert_eq!(ended(&seen), [(CallId::nth(1), Status::Cancelled)]);
    assert!(world.did().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_answer_keeps_its_text_and_answers_its_calls() {
    let model = Scripted::new([
        vec![
            says("half an ans"),
            calls(1, "grep", &json!({"path": "."})),
            calls(2, "edit", &json!({"path": "a"})),
            Step::Waits(100),
            Step::Fails(LlmError::Cut("the line went dead".into())),
        ],
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    let (seen, end) = world.turn(&handle, "go").await;
    assert!(matches!(&end, TurnEnd::Failed { error } if error.contains("went dead")), "{end:?}");
    assert!(seen.iter().any(|b| matches!(b, Body::AnswerFailed { retried: false, .. })));
    assert_eq!(ended(&seen), [(CallId::nth(1), Status::Done), (CallId::nth(2), Status::Cancelled)]);
    assert_eq!(world.turn(&handle, "go on").await.1, done());
    let sent = model.sent(1);
    assert!(sent[1].contains("half an ans") && sent[2].contains("not run"), "{sent:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_script_provider_drives_a_turn() {
    let script = concat!(
        "{\"text\":\"Look.\",\"calls\":[{\"name\":\"grep\",\"input\":{\"path\":\".\"}}]}\n",
        "{\"text\":\"Done.\",\"usage\":{\"output\":3}}\n",
    );
    let provider = ScriptProvider::new("s", script, 0).unwrap();
    let mut world = World::new();
    let setup = world.setup(&Scripted::new([]));
    let handle =
        Agent::start(haft_agent::AgentConfig { provider: std::sync::Arc::new(provider), ..setup });
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!((end, ended(&seen).len()), (done(), 1));
    let Some(Body::TurnEnded { usage, .. }) = seen.last() else { panic!("no end") };
    assert_eq!(usage.output, 3);
    let store = Store::open(world.home.path());
    assert!(store.verify(&world.id).unwrap().broken.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_word_is_told() {
    let thinks = Step::Gives(Delta::Thinking { index: 0, text: "hm".into() });
    let model = Scripted::new([
        vec![ends(Stop::EndTurn)],
        vec![thinks, ends(Stop::EndTurn)],
        is_done(" \n"),
        is_done("fine"),
    ]);
    let mut world = World::new();
    let handle = world.start(&model);
    let empty = |b: &Body| matches!(b, Body::Notice { text, .. } if text.contains("is empty"));
    for told in [true, true, true, false] {
        let (seen, end) = world.turn(&handle, "go").await;
        assert_eq!((end, seen.iter().any(empty)), (done(), told), "{seen:#?}");
    }
}

/// Encodes like the model of the tests, and tells something on the bus meanwhile.
struct Chatty(std::sync::Arc<Scripted>, haft_agent::Bus);

impl haft_llm::Provider for Chatty {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn host(&self) -> &'static str {
        ""
    }

    fn encode(
        &self,
        message: &haft_types::Message,
        target: &haft_llm::Target,
        blobs: &dyn haft_llm::Blobs,
    ) -> haft_llm::Encoded {
        // Every event goes through the fold: whoever held it now would wait for ever.
        let body = Body::Notice { level: haft_types::Level::Info, text: "meanwhile".into() };
        haft_tool::Events::emit(&self.1, &haft_types::AgentPath::default(), TurnId(1), body)
            .unwrap();
        self.0.encode(message, target, blobs)
    }
    fn encode_tools(&self, tools: &[haft_types::ToolSpec]) -> String {
        self.0.encode_tools(tools)
    }
    fn stream(
        &self,
        request: haft_llm::Request,
        stop: tokio_util::sync::CancellationToken,
    ) -> haft_llm::Answer {
        self.0.stream(request, stop)
    }
}

#[tokio::test(start_paused = true)]
async fn events_do_not_wait_while_messages_are_encoded() {
    let model = Scripted::new([is_done("one")]);
    let mut world = World::new();
    let setup = world.setup(&model);
    let provider = std::sync::Arc::new(Chatty(model, world.bus.clone()));
    let handle = Agent::start(haft_agent::AgentConfig { provider, ..setup });
    let (seen, end) = world.turn(&handle, "go").await;
    assert_eq!(end, done());
    let meanwhile = |b: &Body| matches!(b, Body::Notice { text, .. } if text == "meanwhile");
    assert!(seen.iter().any(meanwhile));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_synced_while_the_model_thinks() {
    let model = Scripted::new([vec![Step::Hangs]]);
    let world = World::new();
    let handle = world.start(&model);
    assert!(handle.send(say("go")));
    // The clock stands still as long as something runs, so that no timer of the bus helps.
    let (began, real) = (tokio::time::Instant::now(), std::time::Instant::now());
    while model.requests.lock().unwrap().is_empty() || !world.syncer.is_done() {
        assert!(real.elapsed().as_secs() < 30, "nobody synced it");
        tokio::task::yield_now().await;
    }
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    assert!(world.log().iter().any(|event| matches!(event.body, Body::User { .. })));
}
