//! `ask_user`: questions stay open, answers come back, and what is too much is refused.

use std::{sync::Arc, time::Duration};

use haft_testkit::world::{Recorder, World};
use haft_tool::{Broker, Dispatcher, Events, RecordError, Session};
use haft_types::{AgentPath, Answerer, Body, Outcome, Question, Reply, Status, TurnId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Records, and answers nothing.
struct Silent(Arc<Recorder>);

impl Events for Silent {
    fn emit(&self, agent: &AgentPath, turn: TurnId, body: Body) -> Result<(), RecordError> {
        self.0.emit(agent, turn, body)
    }
    fn sync(&self) -> futures::future::BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A world whose questions are left open, for the test to answer.
pub(crate) fn open(options: &haft_tools::Options) -> (World, Arc<Dispatcher>, Arc<Broker>) {
    let world = World::memory(haft_tools::with(options), [("a", "")]).unwrap();
    let events = Arc::new(Silent(world.recorder.clone()));
    let judge = (*world.session.permissions()).clone();
    let (blobs, outs) = (world.session.blobs.clone(), world.session.outs.clone());
    let session = Session::new("open", events, blobs, outs, judge);
    session.questions.set_somebody(true);
    let broker = session.questions.clone();
    let dispatcher = Dispatcher { session: Arc::new(session), ..(*world.dispatcher).clone() };
    (world, Arc::new(dispatcher), broker)
}

pub(crate) async fn until_asked(world: &World) {
    world.recorder.until(|body| matches!(body, Body::Asked { .. })).await;
}

fn settled(world: &World) -> Vec<(Reply, Answerer)> {
    let bodies = world.recorder.bodies().into_iter();
    let answers = bodies.filter_map(|body| match body {
        Body::Answered { reply, by, .. } => Some((reply, by)),
        _ => None,
    });
    answers.collect()
}

fn answer(input: Value) -> Reply {
    Reply { input: Some(input), ..Reply::pick("answer") }
}

fn database() -> Value {
    json!({"questions": [{"question": "Which database?", "header": "Database", "options": [
        {"label": "PostgreSQL", "description": "a server"},
        {"label": "SQLite", "preview": "let db = open(\"a.db\");\n"},
    ]}]})
}

#[tokio::test(start_paused = true)]
async fn a_question_is_open_for_a_day_and_then_answered() {
    let (world, dispatcher, broker) = open(&haft_tools::Options::default());
    let running = dispatcher.call("ask_user", database(), CancellationToken::new());
    let ((_, outcome), ()) = tokio::join!(running, async {
        until_asked(&world).await;
        tokio::time::sleep(Duration::from_hours(24)).await;
        let open = broker.open();
        assert_eq!(open.len(), 1, "it is open still");
        assert!(settled(&world).is_empty());
        assert!(broker.reply(&open[0].id, answer(json!({"q1": "SQLite"})), "line"));
    });
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    assert_eq!(outcome.joined_text(), "Database: SQLite");
    let wanted = json!({"answers": [{"question": "Which database?", "chosen": ["SQLite"]}],
        "by": "line"});
    assert_eq!(outcome.data, Some(wanted));
    let took = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::CallEnded { took, .. } => Some(took),
        _ => None,
    });
    assert!(took.unwrap() < 1_000, "the time to answer is not the call's: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_time_that_was_set_ends_it() {
    let options = haft_tools::Options { ask_ms: Some(90_000), ..haft_tools::Options::default() };
    let (world, dispatcher, broker) = open(&options);
    let start = tokio::time::Instant::now();
    let (_, outcome) = dispatcher.call("ask_user", database(), CancellationToken::new()).await;
    assert_eq!(start.elapsed(), Duration::from_secs(90));
    let text = outcome.joined_text();
    assert!(text.starts_with("nobody answered within 90 s\nDecide by the safest"), "{text}");
    assert_eq!(settled(&world), [(Reply::pick("dismiss"), Answerer::Nobody)]);
    assert!(broker.open().is_empty());
}

#[tokio::test]
async fn a_question_ends_with_its_cancelled_or_dropped_call() {
    for dropped in [false, true] {
        let (world, dispatcher, broker) = open(&haft_tools::Options::default());
        let stop = CancellationToken::new();
        let running = dispatcher.call("ask_user", database(), stop.clone());
        if dropped {
            tokio::select! {
                outcome = running => panic!("{outcome:?}"),
                () = until_asked(&world) => {}
            }
        } else {
            let ((_, outcome), ()) = tokio::join!(running, async {
                until_asked(&world).await;
                stop.cancel();
            });
            assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
        }
        assert_eq!(settled(&world), [(Reply::pick("dismiss"), Answerer::Cancelled)]);
        assert!(broker.open().is_empty(), "{dropped}");
    }
}

fn world() -> World {
    World::memory(haft_tools::builtin(), [("a", "")]).unwrap()
}

async fn asked(input: Value, reply: Reply) -> (Outcome, Question) {
    let world = world();
    world.answer([reply]);
    let outcome = world.call("ask_user", input.clone()).await;
    let question = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::Asked { question } => Some(question),
        _ => None,
    });
    let question = question.unwrap_or_else(|| panic!("{input} was not asked: {outcome:?}"));
    (outcome, question)
}

#[tokio::test]
async fn every_kind_is_answered_and_takes_other_words() {
    let options = json!([{"label": "A"}, {"label": "B"}]);
    let one = |kind: Value, options: Value| json!({"questions": [{"question": "Q?", "kind": kind, "options": options}]});
    let none = Value::Null;
    for (input, value, wanted) in [
        (one(json!("yes_no"), none.clone()), json!("Yes"), "Q?: Yes"),
        (one(json!("yes_no"), none.clone()), json!("later"), "Q?: in the person's words: later"),
        (one(json!("single"), options.clone()), json!("B"), "Q?: B"),
        (one(none.clone(), options.clone()), json!("C"), "Q?: in the person's words: C"),
        (one(json!("multi"), options.clone()), json!(["A", "B"]), "Q?: A, B"),
        (
            one(json!("multi"), options.clone()),
            json!(["B", "and C"]),
            "Q?: B; in the person's words: and C",
        ),
        (one(json!("text"), none.clone()), json!("x\ny"), "Q?: in the person's words: x\ny"),
        (one(none.clone(), none.clone()), json!("x"), "Q?: in the person's words: x"),
    ] {
        let (outcome, _) = asked(input.clone(), answer(json!({"q1": value}))).await;
        assert_eq!(outcome.joined_text(), wanted, "{input}");
    }
}

#[tokio::test]
async fn several_questions_are_one_form_and_some_may_be_left_out() {
    let all: Vec<Value> = (1..=5).map(|n| json!({"question": format!("Q{n}?")})).collect();
    let input = json!({ "questions": all });
    let (outcome, question) = asked(input.clone(), answer(json!({"q2": "two"}))).await;
    let wanted = "Q1?: no answer\nQ2?: in the person's words: two\nQ3?: no answer\n\
                  Q4?: no answer\nQ5?: no answer";
    assert_eq!(outcome.joined_text(), wanted);
    assert_eq!(question.form.unwrap()["required"], json!([]));
    let dismissed = Reply { text: Some("not now".into()), ..Reply::pick("dismiss") };
    let (outcome, _) = asked(input, dismissed).await;
    assert_eq!(outcome.joined_text(), "The person did not answer but said: not now");
    assert_eq!(outcome.data.unwrap()["instead"], "not now");
}

#[tokio::test]
async fn other_shapes_of_the_same_are_taken() {
    let claude = json!({"question": "Which?", "header": "Pick", "multiSelect": true, "options": [
        {"label": "A", "description": "a"}, {"label": "B", "description": "b", "preview": "x"}]});
    for input in [
        json!({ "questions": [claude] }),
        json!({ "questions": json!([claude]).to_string() }),
        json!({ "questions": [claude.to_string()] }),
        json!({ "questions": claude }),
        claude.clone(),
        json!({"questions": [{"question": "Which?", "header": "Pick", "kind": "multi",
            "options": ["A", "B"]}]}),
    ] {
        let world = world();
        world.answer([answer(json!({"q1": ["A", "B"]}))]);
        let outcome = world.call("AskUserQuestion", input.clone()).await;
        assert_eq!(outcome.joined_text(), "Pick: A, B", "{input}");
        assert_eq!(outcome.data.unwrap()["answers"][0]["chosen"], json!(["A", "B"]), "{input}");
    }
    for (input, wanted) in [
        (json!({"questions": ["Why?"]}), "Why?: in the person's words: x"),
        (json!({"questions": [{"question": "Why?", "multiSelect": false}]}), "Why?: in the"),
    ] {
        let (outcome, _) = asked(input.clone(), answer(json!({"q1": "x"}))).await;
        assert!(outcome.joined_text().starts_with(wanted), "{input}: {outcome:?}");
    }
    let both = json!({"questions": [{"question": "Why?", "multiSelect": true, "kind": "text"}]});
    let outcome = world().call("ask_user", both).await;
    assert!(outcome.joined_text().contains("questions.0.kind twice"), "{outcome:?}");
}

#[tokio::test]
async fn what_is_too_much_is_refused_by_name_and_not_asked() {
    let many = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"label": format!("L{n}")})).collect()
    };
    let one = |question: Value| json!({ "questions": [question] });
    let big = "x".repeat(1 << 20);
    for (input, wanted) in [
        (json!({"questions": []}), "questions is empty"),
        (json!({"questions": vec![json!({"question": "Q"}); 6]}), "6 questions are too many"),
        (one(json!({"question": big})), "questions.0.question has 1048576 characters, at most"),
        (one(json!({"question": " "})), "questions.0.question is empty"),
        (one(json!({"question": "Q", "header": big})), "questions.0.header has 1048576"),
        (one(json!({"question": "Q", "options": many(100)})), "has 100 options, too many"),
        (one(json!({"question": "Q", "options": many(1)})), "has one option, which is no choice"),
        (one(json!({"question": "Q", "kind": "multi"})), "questions.0.options is empty"),
        (
            one(json!({"question": "Q", "options": [{"label": "A"}, {"label": " A"}]})),
            "questions.0.options.1.label is there twice: \"A\"",
        ),
        (
            one(
                json!({"question": "Q", "options": [{"label": "A", "preview": big}, {"label": "B"}]}),
            ),
            "questions.0.options.0.preview has 1048576",
        ),
        (one(json!({"question": "Q", "kind": "rank"})), "rank"),
    ] {
        let world = world();
        world.answer([answer(json!({"q1": "x"}))]);
        let outcome = world.call("ask_user", input).await;
        let text = outcome.joined_text();
        assert!(outcome.status == Status::Failed && text.contains(wanted), "{wanted}: {text}");
        assert!(text.len() < 1_000, "{wanted}: {} bytes", text.len());
        let asked = world.recorder.bodies().into_iter();
        assert_eq!(asked.filter(|body| matches!(body, Body::Asked { .. })).count(), 0, "{wanted}");
    }
}

#[tokio::test]
async fn where_nobody_is_the_model_is_told_what_to_do() {
    let world = world();
    let outcome = world.call("ask_user", database()).await;
    assert_eq!(outcome.status, Status::Failed);
    let text = outcome.joined_text();
    assert!(text.starts_with("nobody is here who could answer\nDecide by the safest"), "{text}");
    assert!(text.contains("Say in your final message what you assumed."), "{text}");
}
