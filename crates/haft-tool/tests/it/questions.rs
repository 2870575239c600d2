//! Questions: who is asked what, what each answer does, and what waiting costs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_tool::{Limits, SaveRule, Settings, standard};
use haft_types::{Access, Answerer, Body, Outcome, Plan, Question, Reply, Status, Target};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Probe, Runs, SharedList, call, took, with_pipeline, world};

fn editor() -> Probe {
    Probe::new("edit").changes()
}

/// A world in mode ask whose only tool changes `path`.
fn asking() -> (World, Runs) {
    let (world, runs) = world([editor()]);
    world.mode(Mode::Ask);
    (world, runs)
}

fn asked(world: &World) -> Vec<Question> {
    let bodies = world.recorder.bodies().into_iter();
    bodies
        .filter_map(|body| match body {
            Body::Asked { question } => Some(question),
            _ => None,
        })
        .collect()
}

fn answered(world: &World) -> Vec<(String, Answerer)> {
    let bodies = world.recorder.bodies().into_iter();
    bodies
        .filter_map(|body| match body {
            Body::Answered { reply, by, .. } => Some((reply.option, by)),
            _ => None,
        })
        .collect()
}

fn ids(question: &Question) -> Vec<&str> {
    question.options.iter().map(|option| option.id.as_str()).collect()
}

#[tokio::test]
async fn a_yes_counts_once() {
    let (world, runs) = asking();
    world.answer([Reply::pick("allow"), Reply::pick("deny")]);
    assert_eq!(world.call("edit", json!({"path": "a"})).await.status, Status::Done);
    assert_eq!(world.call("edit", json!({"path": "a"})).await.status, Status::Denied);
    assert_eq!(runs.of("edit"), 1);
    let questions = asked(&world);
    assert_eq!(questions.len(), 2);
    assert_eq!(ids(&questions[0]), ["allow", "session", "deny"], "nothing keeps rules here");
    let text = &questions[0].text;
    assert!(text.contains("Probing") && text.contains("change /w/a"), "{text}");
    assert!(text.contains("\nNo rule allows this.\n"), "{text}");
    assert_eq!(questions[0].if_nobody, Reply::pick("deny"));
    let by = Answerer::Person("test".into());
    assert_eq!(answered(&world), [("allow".into(), by.clone()), ("deny".into(), by)]);
}

#[tokio::test]
async fn a_yes_for_the_session_is_for_this_very_call() {
    let (world, runs) = asking();
    world.answer([Reply::pick("session"), Reply::pick("deny"), Reply::pick("allow")]);
    for (path, wanted) in
        [("a", Status::Done), ("a", Status::Done), ("b", Status::Denied), ("a", Status::Done)]
    {
        assert_eq!(world.call("edit", json!({"path": path})).await.status, wanted, "{path}");
    }
    assert_eq!(asked(&world).len(), 2);
    assert_eq!(runs.of("edit"), 3);
}

#[derive(Default)]
struct KeptRules {
    rules: Mutex<Vec<String>>,
    full: bool,
}

impl SaveRule for KeptRules {
    fn place(&self) -> String {
        "the test's settings".into()
    }
    fn save(&self, rule: &str) -> Result<Option<String>, String> {
        if self.full {
            return Err("the disk is full".into());
        }
        self.rules.lock().unwrap().push(rule.to_owned());
        Ok(Some("kept where others see it".into()))
    }
}

fn keeping(world: &World, full: bool) -> Arc<KeptRules> {
    let kept = Arc::new(KeptRules { full, ..KeptRules::default() });
    let saver: Arc<dyn SaveRule> = kept.clone();
    world.session.services.insert::<dyn SaveRule>(saver);
    kept
}

#[tokio::test]
async fn always_keeps_the_literal_rule_that_the_question_shows() {
    let (world, runs) = world([editor()]);
    world.mode(Mode::Ask);
    let kept = keeping(&world, false);
    world.answer([Reply::pick("always"), Reply::pick("deny"), Reply::pick("deny")]);
    // A name that would be a pattern, were it not kept literally.
    let star = "x*[ab]?.txt";
    assert_eq!(world.call("edit", json!({"path": star})).await.status, Status::Done);
    assert_eq!(world.call("edit", json!({"path": star})).await.status, Status::Done);
    for other in ["xx[ab]y.txt", "xya1.txt"] {
        assert_eq!(world.call("edit", json!({"path": other})).await.status, Status::Denied);
    }
    assert_eq!(runs.of("edit"), 2);
    let rules = kept.rules.lock().unwrap().clone();
    assert_eq!(rules.len(), 1);
    let told = |body: &Body| matches!(body, Body::Notice { text, .. } if text == "kept where others see it");
    assert_eq!(world.recorder.bodies().iter().filter(|body| told(body)).count(), 1);
    let question = &asked(&world)[0];
    assert_eq!(ids(question), ["allow", "session", "always", "deny"]);
    let label = &question.options[2].label;
    assert!(label.contains(&rules[0]) && label.contains("the test's settings"), "{label}");
    // The saved text means the same when it is read again.
    let (again, runs) = asking();
    again.rule(Verdict::Allow, &rules[0]);
    assert_eq!(again.call("edit", json!({"path": star})).await.status, Status::Done);
    assert_eq!(again.call("edit", json!({"path": "xya1.txt"})).await.status, Status::Denied);
    assert_eq!(runs.of("edit"), 1);
}

#[tokio::test]
async fn a_rule_that_cannot_be_kept_counts_for_the_session_and_says_so() {
    let (world, runs) = asking();
    keeping(&world, true);
    world.answer([Reply::pick("always")]);
    for _ in 0..2 {
        assert_eq!(world.call("edit", json!({"path": "a"})).await.status, Status::Done);
    }
    assert_eq!((runs.of("edit"), asked(&world).len()), (2, 1));
    let told =
        world.recorder.bodies().into_iter().any(
            |body| matches!(body, Body::Notice { text, .. } if text.contains("the disk is full")),
        );
    assert!(told);
}

#[tokio::test]
async fn an_answer_that_the_question_does_not_offer_is_no_yes() {
    let (world, runs) = asking();
    // Nothing keeps rules here, so that no lasting yes is offered.
    world.answer([Reply::pick("always"), Reply::pick("deny")]);
    for _ in 0..2 {
        let outcome = world.call("edit", json!({"path": "a"})).await;
        assert_eq!(outcome.status, Status::Denied, "{outcome:?}");
    }
    assert_eq!((runs.of("edit"), asked(&world).len()), (0, 2));
}

#[tokio::test]
async fn a_no_with_words_gives_them_to_the_model() {
    let (world, runs) = asking();
    let words = Reply { text: Some("use b instead".into()), ..Reply::pick("deny") };
    world.answer([words, Reply::pick("deny"), Reply::pick("whatever")]);
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert_eq!(outcome.status, Status::Denied);
    assert!(outcome.joined_text().contains("use b instead"), "{outcome:?}");
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert!(outcome.joined_text().contains("the person refused this call"), "{outcome:?}");
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert_eq!(outcome.status, Status::Denied, "an option that nobody offered is no yes");
    assert_eq!(runs.of("edit"), 0);
}

fn edited(path: &str) -> Reply {
    Reply { input: Some(json!({"path": path})), ..Reply::pick("allow") }
}

#[tokio::test]
async fn edited_arguments_are_judged_anew() {
    let (world, runs) = asking();
    world.rule(Verdict::Deny, "Edit(b)");
    world.answer([edited("b")]);
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert_eq!(outcome.status, Status::Denied, "{outcome:?}");
    assert!(outcome.joined_text().contains("deny rule Edit(b)"), "{outcome:?}");
    world.answer([edited("c"), Reply::pick("allow")]);
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert_eq!(outcome.joined_text(), r#"{"path":"c"}"#);
    let questions = asked(&world);
    assert!(questions[2].text.contains("create /w/c"), "{}", questions[2].text);
    // Arguments that do not fit are no way around either.
    world.answer([Reply { input: Some(json!([1])), ..Reply::pick("allow") }]);
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert!(outcome.joined_text().contains("the whole input"), "{outcome:?}");
    assert_eq!(runs.of("edit"), 1);
}

#[tokio::test]
async fn a_yes_to_edited_arguments_is_not_remembered_for_the_first_ones() {
    let (world, runs) = asking();
    let session = |reply: Reply| Reply { option: "session".into(), ..reply };
    world.answer([session(edited("c")), Reply::pick("deny"), Reply::pick("deny")]);
    assert_eq!(world.call("edit", json!({"path": "a"})).await.status, Status::Denied);
    assert_eq!(world.call("edit", json!({"path": "a"})).await.status, Status::Denied);
    assert_eq!((runs.of("edit"), asked(&world).len()), (0, 3));
}

#[tokio::test]
async fn where_nobody_is_the_call_is_denied_and_the_question_is_on_record() {
    let (world, runs) = asking();
    let outcome = world.call("edit", json!({"path": "a"})).await;
    assert_eq!(outcome.status, Status::Denied);
    assert!(outcome.joined_text().contains("nobody can be asked"), "{outcome:?}");
    assert_eq!(answered(&world), [("deny".into(), Answerer::Nobody)]);
    assert_eq!((runs.of("edit"), asked(&world).len()), (0, 1));
    assert!(world.session.questions.open().is_empty());
}

/// A world whose questions are left open, for the test to answer.
fn open() -> (World, Runs, Arc<haft_tool::Dispatcher>) {
    let (world, runs) = asking();
    let events = Arc::new(Silent { recorder: world.recorder.clone() });
    let judge = (*world.session.permissions()).clone();
    let session = haft_tool::Session::new(
        "open",
        events,
        world.session.blobs.clone(),
        world.session.outs.clone(),
        judge,
    );
    session.questions.set_somebody(true);
    let dispatcher =
        haft_tool::Dispatcher { session: Arc::new(session), ..(*world.dispatcher).clone() };
    (world, runs, Arc::new(dispatcher))
}

/// Records, and answers nothing.
struct Silent {
    recorder: Arc<haft_testkit::world::Recorder>,
}

impl haft_tool::Events for Silent {
    fn emit(
        &self,
        agent: &haft_types::AgentPath,
        turn: haft_types::TurnId,
        body: Body,
    ) -> Result<(), haft_tool::RecordError> {
        haft_tool::Events::emit(&*self.recorder, agent, turn, body)
    }
    fn sync(&self) -> futures::future::BoxFuture<'_, Result<(), haft_tool::RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

async fn until_asked(world: &World) {
    world.recorder.until(|body| matches!(body, Body::Asked { .. })).await;
}

#[tokio::test]
async fn of_two_front_ends_the_first_answer_counts() {
    let (world, runs, dispatcher) = open();
    let questions = dispatcher.session.questions.clone();
    let running = call(&dispatcher, "edit", json!({"path": "a"}));
    let answering = async {
        until_asked(&world).await;
        let id = questions.open()[0].id.clone();
        assert!(questions.reply(&id, Reply::pick("allow"), "line"));
        assert!(!questions.reply(&id, Reply::pick("deny"), "mcp"), "it was settled before");
        assert!(questions.open().is_empty());
    };
    let (outcome, ()) = tokio::join!(running, answering);
    assert_eq!((outcome.status, runs.of("edit")), (Status::Done, 1));
    assert_eq!(answered(&world), [("allow".into(), Answerer::Person("line".into()))]);
}

#[tokio::test]
async fn a_question_dies_with_its_cancelled_call() {
    let (world, runs, dispatcher) = open();
    let stop = CancellationToken::new();
    let running = dispatcher.call("edit", json!({"path": "a"}), stop.clone());
    let ((_, outcome), ()) = tokio::join!(running, async {
        until_asked(&world).await;
        stop.cancel();
    });
    assert_eq!((outcome.status, runs.of("edit")), (Status::Cancelled, 0));
    assert_eq!(answered(&world), [("deny".into(), Answerer::Cancelled)]);
    assert!(dispatcher.session.questions.open().is_empty());
}

#[tokio::test]
async fn a_question_of_a_dropped_call_is_told_as_cancelled() {
    let (world, runs, dispatcher) = open();
    tokio::select! {
        outcome = call(&dispatcher, "edit", json!({"path": "a"})) => panic!("{outcome:?}"),
        () = until_asked(&world) => {}
    }
    assert_eq!(answered(&world), [("deny".into(), Answerer::Cancelled)]);
    assert!(dispatcher.session.questions.open().is_empty());
    assert_eq!(runs.of("edit"), 0);
}

#[tokio::test]
async fn when_the_last_front_end_leaves_open_questions_are_settled() {
    let (world, runs, dispatcher) = open();
    let questions = dispatcher.session.questions.clone();
    let running = call(&dispatcher, "edit", json!({"path": "a"}));
    let (outcome, ()) = tokio::join!(running, async {
        until_asked(&world).await;
        questions.set_somebody(false);
    });
    assert_eq!((outcome.status, runs.of("edit")), (Status::Denied, 0));
    assert_eq!(answered(&world), [("deny".into(), Answerer::Nobody)]);
}

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn time_spent_asking_counts_neither_in_took_nor_for_the_timeout() {
    let (world, _, dispatcher) = open();
    let questions = dispatcher.session.questions.clone();
    let running = call(&dispatcher, "edit", json!({"path": "a"}));
    let (outcome, ()) = tokio::join!(running, async {
        until_asked(&world).await;
        tokio::time::sleep(10 * HOUR).await;
        questions.reply(&questions.open()[0].id.clone(), Reply::pick("allow"), "line");
    });
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    assert!(took(&world, 0) < 1_000, "{} ms", took(&world, 0));
}

/// Calls `edit` and then works for as many seconds as it is told.
fn asks_inside() -> Probe {
    Probe::new("outer").run(|input, cx| async move {
        let inner = cx.call("edit", json!({"path": "a"})).await;
        tokio::time::sleep(Duration::from_secs(input["n"].as_u64().unwrap())).await;
        Ok(Outcome::text(format!("{:?}", inner.status)))
    })
}

#[tokio::test(start_paused = true)]
async fn time_that_a_nested_call_asks_is_not_the_outer_calls_either() {
    for (seconds, wanted) in [(10, Status::Done), (120, Status::TimedOut)] {
        let (world, _) = world([asks_inside(), editor()]);
        world.mode(Mode::Ask);
        let seen: SharedList<Question> = Arc::default();
        let limits = Limits { call: Some(Duration::from_mins(1)), ..Limits::default() };
        let dispatcher =
            with_pipeline(&world, standard(&Settings { limits, ..Settings::default() }));
        let events = Arc::new(Silent { recorder: world.recorder.clone() });
        let judge = (*world.session.permissions()).clone();
        let (blobs, outs) = (world.session.blobs.clone(), world.session.outs.clone());
        let session = haft_tool::Session::new("slow", events, blobs, outs, judge);
        session.questions.set_somebody(true);
        let questions = session.questions.clone();
        let session = Arc::new(session);
        let dispatcher = Arc::new(haft_tool::Dispatcher { session, ..(*dispatcher).clone() });
        let running = call(&dispatcher, "outer", json!({"n": seconds}));
        let (outcome, ()) = tokio::join!(running, async {
            until_asked(&world).await;
            tokio::time::sleep(HOUR).await;
            seen.lock().unwrap().extend(questions.open());
            let id = seen.lock().unwrap()[0].id.clone();
            questions.reply(&id, Reply::pick("allow"), "line");
        });
        assert_eq!(outcome.status, wanted, "{seconds}: {outcome:?}");
        let outer = took(&world, 1);
        assert!((10_000..62_000).contains(&outer), "{outer} ms");
        assert!(took(&world, 0) < 1_000, "the inner one worked for no time");
    }
}

/// What a mode makes of observing, changing inside and outside, running, and of credentials.
async fn in_mode(mode: Mode) -> Vec<char> {
    let command = Target::command("make".into());
    let run = Probe::new("run")
        .plan(move |_, place| Plan::new(place, "Running").with(Access::Destroy, command.clone()));
    let probes = [Probe::new("look").reads(), editor(), run];
    let (world, _) = world(probes);
    world.mode(mode);
    let mut letters = Vec::new();
    for (tool, path) in [
        ("look", "a"),
        ("look", "/etc/hosts"),
        ("edit", "a"),
        ("edit", "/etc/hosts"),
        ("run", "a"),
        ("look", "/w/.ssh/id_rsa"),
        ("edit", ".git/config"),
    ] {
        let before = asked(&world).len();
        let outcome = world.call(tool, json!({ "path": path })).await;
        let was_asked = asked(&world).len() > before;
        letters.push(match (outcome.status, was_asked) {
            (Status::Done, false) => 'a',
            (Status::Denied, true) => '?',
            (Status::Denied, false) => 'd',
            other => panic!("{mode} {tool} {path}: {other:?} {outcome:?}"),
        });
    }
    letters
}

#[tokio::test]
async fn modes_ask_as_much_as_they_say() {
    for (mode, wanted) in [
        (Mode::Ask, "a??????"),
        (Mode::AcceptEdits, "a?a????"),
        (Mode::Auto, "a??????"),
        (Mode::Plan, "a?ddd?d"),
        (Mode::DontAsk, "adddddd"),
        (Mode::Bypass, "aaaaa??"),
    ] {
        assert_eq!(in_mode(mode).await.iter().collect::<String>(), wanted, "{mode}");
    }
}

#[tokio::test]
async fn a_denial_is_a_denial_in_every_mode_whoever_answers() {
    for mode in Mode::ALL {
        let (world, runs) = world([editor()]);
        world.mode(mode);
        world.rule(Verdict::Allow, "Edit");
        world.rule(Verdict::Deny, "Edit(a)");
        world.answer([Reply::pick("always"), Reply::pick("allow")]);
        let outcome = world.call("edit", json!({"path": "a"})).await;
        assert_eq!((outcome.status, runs.of("edit")), (Status::Denied, 0), "{mode}");
        assert!(asked(&world).is_empty(), "{mode}");
    }
}

#[tokio::test]
async fn a_question_shows_a_link_by_both_names_and_the_preview() {
    let host = haft_host::Memory::with_files([("/w/a", "in a"), ("/far/real", "x")]).unwrap();
    host.add_link("/w/link", "/far/real").unwrap();
    let probe = editor().check(|_, _| async {
        let (path, text) = (crate::support::at("/w/a"), "what would change".to_owned());
        Ok(Some(haft_types::Shape::File { path, first_line: 1, text }.into()))
    });
    let world = crate::support::on_memory(host, crate::support::tools([probe]).0);
    world.mode(Mode::Ask);
    world.answer([Reply::pick("deny"), Reply::pick("deny")]);
    world.call("edit", json!({"path": "link"})).await;
    world.call("edit", json!({"path": "a"})).await;
    let questions = asked(&world);
    assert!(questions[0].text.contains("/w/link (really /far/real)"), "{}", questions[0].text);
    // Looking at /far/real needs a question itself: all there is to see is what was asked for.
    let given = haft_types::Shape::Json { value: json!({"path": "link"}) };
    assert_eq!(questions[0].preview, Some(given.into()));
    assert!(questions[1].preview.is_some());
    let texts: Vec<Value> = questions.iter().map(|q| serde_json::to_value(q).unwrap()).collect();
    assert!(texts[1].to_string().contains("what would change"));
}
