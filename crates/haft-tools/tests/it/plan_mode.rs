//! `enter_plan` and `exit_plan`: only a person widens the mode, by a plan that was shown.

use std::sync::Arc;

use haft_testkit::world::World;
use haft_tool::{History, SnipReport, WithHistory};
use haft_tools::PlanFile;
use haft_types::{
    Body, Detail, Mode, Outcome, Question, QuestionKind, Reply, Shape, Status, TurnId,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ask_user::{open, until_asked};

struct NoHistory;

impl History for NoHistory {
    fn snip(&self, _: TurnId, _: &str, _: &str, _: &str) -> Result<SnipReport, String> {
        Err("there is nothing".into())
    }
}

const PLAN: &str = "1. Change a\n2. Run the tests";

/// A world of an agent, in a mode.
fn world(mode: Mode) -> World {
    let world = World::memory(haft_tools::builtin(), [("a", "one\n")]).unwrap();
    world.dispatcher.conversation.map.get::<WithHistory>().set(Arc::new(NoHistory));
    world.mode(mode);
    world
}

fn mode(world: &World) -> Mode {
    world.session.permissions().mode
}

async fn write(world: &World) -> Status {
    world.call("write", json!({"path": "b", "content": "x"})).await.status
}

async fn present(world: &World) -> Outcome {
    world.call("exit_plan", json!({ "plan": PLAN })).await
}

fn questions(world: &World) -> Vec<Question> {
    let bodies = world.recorder.bodies().into_iter();
    let asked = bodies.filter_map(|body| match body {
        Body::Asked { question } => Some(question),
        _ => None,
    });
    asked.collect()
}

/// What the log keeps of the plan.
fn kept(world: &World) -> Option<String> {
    let bodies = world.recorder.bodies().into_iter();
    let plans = bodies.filter_map(|body| match body {
        Body::State { key, value } if &*key == "plan" => {
            value["note"]["words"].as_str().map(ToOwned::to_owned)
        }
        _ => None,
    });
    plans.reduce(|_, last| last)
}

#[tokio::test]
async fn a_plan_that_is_approved_ends_the_mode_as_the_person_wants() {
    for (option, after, can_write) in
        [("ask", Mode::Ask, false), ("accept-edits", Mode::AcceptEdits, true)]
    {
        let world = world(Mode::AcceptEdits);
        assert_eq!(world.call("enter_plan", json!({})).await.status, Status::Done);
        assert_eq!(mode(&world), Mode::Plan);
        assert_eq!(write(&world).await, Status::Denied);
        world.answer([Reply::pick(option)]);
        let outcome = present(&world).await;
        assert!(outcome.joined_text().contains("approved the plan"), "{outcome:?}");
        assert_eq!(mode(&world), after);
        let asked = questions(&world);
        assert_eq!(asked[0].kind, QuestionKind::Plan);
        let shown: Option<Detail> = Some(Shape::Markdown { text: PLAN.into() }.into());
        assert_eq!(asked[0].preview, shown, "all of it is shown");
        assert_eq!(kept(&world).as_deref(), Some(PLAN));
        let modes: Vec<Mode> = world
            .recorder
            .bodies()
            .into_iter()
            .filter_map(|body| match body {
                Body::Mode { mode, .. } => Some(mode),
                _ => None,
            })
            .collect();
        assert_eq!(modes, [Mode::Plan, after]);
        world.answer([Reply::pick("deny")]);
        assert_eq!(write(&world).await == Status::Done, can_write, "{option}");
    }
}

#[tokio::test]
async fn the_mode_before_is_one_of_the_answers() {
    let world = world(Mode::Bypass);
    world.call("enter_plan", json!({})).await;
    world.answer([Reply::pick("bypass")]);
    present(&world).await;
    assert_eq!(mode(&world), Mode::Bypass);
    let of = |world: &World| -> Vec<String> {
        questions(world)[0].options.iter().map(|option| option.id.clone()).collect()
    };
    assert_eq!(of(&world), ["ask", "accept-edits", "bypass", "plan"]);
    // That mode is over with the plan.
    world.mode(Mode::Plan);
    present(&world).await;
    let last: Vec<String> =
        questions(&world)[1].options.iter().map(|option| option.id.clone()).collect();
    assert_eq!(last, ["ask", "accept-edits", "plan"]);
    // Where a person set mode plan, there is none to go back to.
    let world = self::world(Mode::Plan);
    present(&world).await;
    assert_eq!(of(&world), ["ask", "accept-edits", "plan"]);
}

#[tokio::test]
async fn a_plan_that_is_sent_back_changes_nothing() {
    let world = world(Mode::Plan);
    let words = "First say how it is tested.";
    world.answer([Reply { text: Some(words.into()), ..Reply::pick("plan") }]);
    let outcome = present(&world).await;
    let text = outcome.joined_text();
    assert!(text.contains("sent the plan back") && text.contains(words), "{text}");
    assert_eq!((mode(&world), kept(&world)), (Mode::Plan, None));
    assert_eq!(outcome.data.map(|data| data["approved"].clone()), Some(Value::Bool(false)));
}

#[tokio::test]
async fn what_a_person_makes_of_the_plan_counts() {
    let world = world(Mode::Plan);
    let theirs = "1. Change a\n2. Run all the tests";
    let input = Some(json!({ "plan": theirs }));
    world.answer([Reply { input, ..Reply::pick("ask") }]);
    let text = present(&world).await.joined_text();
    assert!(text.contains("-2. Run the tests\n+2. Run all the tests"), "{text}");
    assert_eq!(kept(&world).as_deref(), Some(theirs));
}

#[tokio::test]
async fn where_nobody_is_it_says_how_to_go_on() {
    let world = world(Mode::Plan);
    world.session.questions.set_somebody(false);
    let outcome = present(&world).await;
    let text = outcome.joined_text();
    assert!(text.contains("nobody is here") && text.contains("--mode ask"), "{text}");
    assert_eq!((outcome.status, mode(&world)), (Status::Failed, Mode::Plan));
}

#[tokio::test]
async fn without_a_conversation_they_say_why_they_do_nothing() {
    let world = World::memory(haft_tools::builtin(), [("a", "one\n")]).unwrap();
    for (name, input) in [("enter_plan", json!({})), ("exit_plan", json!({"plan": PLAN}))] {
        let text = world.call(name, input).await.joined_text();
        assert!(text.contains("no conversation here") && text.contains(name), "{text}");
    }
}

/// A file for the plan, with what reading it gives.
struct Fixed(Result<Option<String>, String>);

impl PlanFile for Fixed {
    fn path(&self) -> &'static str {
        "/plans/one.md"
    }

    fn read(&self) -> Result<Option<String>, String> {
        self.0.clone()
    }

    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn without_an_argument_the_plan_is_what_its_file_has() {
    let present = async |content: Result<Option<&str>, &str>| {
        let world = world(Mode::AcceptEdits);
        let content = content.map(|text| text.map(str::to_owned)).map_err(str::to_owned);
        world.session.services.insert::<dyn PlanFile>(Arc::new(Fixed(content)));
        let entered = world.call("EnterPlanMode", json!({})).await.joined_text();
        assert!(entered.contains("/plans/one.md, the only file that may change"), "{entered}");
        world.answer([Reply::pick("ask")]);
        let allowed = json!([{"tool": "Bash", "prompt": "run tests"}]);
        let outcome = world.call("ExitPlanMode", json!({"allowedPrompts": allowed})).await;
        (outcome.joined_text(), kept(&world), mode(&world))
    };
    let (text, plan, after) = present(Ok(Some("\n1. From the file\n"))).await;
    assert!(text.contains("approved the plan"), "{text}");
    assert_eq!((plan.as_deref(), after), (Some("1. From the file"), Mode::Ask));
    for (content, wanted) in [
        (Ok(None), "there is no file /plans/one.md"),
        (Ok(Some(" ")), "/plans/one.md is empty"),
        (Err("it is no file"), "/plans/one.md cannot be read: it is no file"),
    ] {
        let (text, plan, after) = present(content).await;
        assert!(text.contains(wanted), "{text}");
        assert_eq!((plan, after), (None, Mode::Plan));
    }
    let long = "x".repeat(1 << 20);
    let (text, plan, _) = present(Ok(Some(&long))).await;
    assert!(text.contains("has 1048576 bytes; at most 20000") && plan.is_none(), "{text}");
}

#[tokio::test]
async fn a_plan_that_a_person_made_too_long_is_named_and_changes_no_mode() {
    let world = world(Mode::Plan);
    let input = Some(json!({ "plan": "x".repeat(20_001) }));
    world.answer([Reply { input, ..Reply::pick("ask") }]);
    let text = present(&world).await.joined_text();
    assert!(text.contains("as the person changed it has 20001 bytes"), "{text}");
    assert_eq!((mode(&world), kept(&world)), (Mode::Plan, None));
}

#[tokio::test]
async fn a_mode_that_is_set_while_the_plan_stands_is_the_one_that_is_told() {
    let (world, dispatcher, broker) = open(&haft_tools::Options::default());
    dispatcher.conversation.map.get::<WithHistory>().set(Arc::new(NoHistory));
    let set = |mode| dispatcher.session.set_permissions(|judge| judge.mode = mode);
    set(Mode::Plan);
    let running = dispatcher.call("exit_plan", json!({"plan": PLAN}), CancellationToken::new());
    let ((_, outcome), ()) = tokio::join!(running, async {
        until_asked(&world).await;
        set(Mode::Auto);
        assert!(broker.reply(&broker.open()[0].id, Reply::pick("plan"), "line"));
    });
    let text = outcome.joined_text();
    assert!(text.contains("sent the plan back") && text.contains("The mode is auto"), "{text}");
    assert_eq!(outcome.data.map(|data| data["mode"].clone()), Some(json!("auto")));
}
