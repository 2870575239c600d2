//! The main texts of questions and refusals, as people and models read them.

use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_types::{Access, Body, Plan, Reply, Target};
use serde_json::json;

use crate::support::{Probe, at, tools};

fn editor() -> Probe {
    Probe::new("edit").plan(|input, place| {
        let path = place.path(input["path"].as_str().unwrap()).unwrap();
        Plan::new(place, format!("Editing {}", place.shown(&path))).changes(path)
    })
}

fn runner() -> Probe {
    Probe::new("bash").plan(|input, place| {
        let text = input["command"].as_str().unwrap().to_owned();
        let title =
            input["title"].as_str().map_or_else(|| format!("Running {text}"), str::to_owned);
        let plan = Plan::new(place, title).with(Access::Destroy, Target::command(text));
        match input["cwd"].as_str() {
            Some(folder) => plan.reads(place.path(folder).unwrap()),
            None => plan,
        }
    })
}

fn fetcher() -> Probe {
    Probe::new("fetch").plan(|_, place| {
        Plan::new(place, "Fetching a page")
            .with(Access::Observe, Target::Net { host: "example.org".into() })
            .changes(at("/w/page"))
    })
}

fn any() -> Probe {
    Probe::new("any").plan(|_, place| Plan::anything(place, "Deploying"))
}

fn world() -> World {
    let world =
        World::memory(tools([editor(), runner(), fetcher(), any()]).0, [("a", "in a")]).unwrap();
    world.mode(Mode::Ask);
    world
}

async fn asked(world: &World, tool: &str, input: serde_json::Value) -> String {
    world.answer([Reply::pick("deny")]);
    world.call(tool, input).await;
    let mut questions = world.recorder.bodies().into_iter().filter_map(|body| match body {
        Body::Asked { question } => {
            let command = question.command.map(|text| format!("\n| {text}"));
            Some(question.text + &command.unwrap_or_default())
        }
        _ => None,
    });
    questions.next_back().unwrap_or_default()
}

#[tokio::test]
async fn a_question_says_each_thing_once() {
    let world = world();
    world.rule(Verdict::Ask, "Edit(docs/**)");
    for (tool, input, wanted) in [
        ("edit", json!({"path": "a"}), "Editing a\nNo rule allows this."),
        (
            "edit",
            json!({"path": "/out/x"}),
            "Editing /out/x\nNo rule allows this, which is outside the workspace.\n  create /out/x",
        ),
        (
            "edit",
            json!({"path": "docs/x"}),
            "Editing docs/x\nThe ask rule Edit(docs/**) (user settings) asks before this.\n  create \
             /w/docs/x",
        ),
        (
            "edit",
            json!({"path": ".ssh/x"}),
            "Editing .ssh/x\nThis touches ssh keys.\n  create /w/.ssh/x",
        ),
        (
            "edit",
            json!({"path": ".git/x"}),
            "Editing .git/x\nThis needs a yes, to protect git's own files.\n  create /w/.git/x",
        ),
        ("bash", json!({"command": "make all"}), "Running make all\nNo rule allows this."),
        (
            "bash",
            json!({"command": "make all", "title": "Listing make all"}),
            "Listing make all\nNo rule allows this.\n| make all",
        ),
        (
            "fetch",
            json!({}),
            "Fetching a page\nNo rule allows connecting to example.org.\n  connect to \
             example.org\n  create /w/page",
        ),
        (
            "any",
            json!({}),
            "Deploying\nNo rule allows this.\n  change for good anything on this machine that no \
             rule names or protects",
        ),
    ] {
        assert_eq!(asked(&world, tool, input).await, wanted);
    }
    world.mode(Mode::Auto);
    assert_eq!(
        asked(&world, "edit", json!({"path": "a"})).await,
        "Editing a\nNo rule allows this (mode auto asks, because no sandbox holds)."
    );
}

#[tokio::test]
async fn a_question_says_where_a_command_starts_and_for_how_long() {
    let world = world();
    for (input, wanted) in [
        (json!({"command": "make", "cwd": "."}), "Running make\nNo rule allows running `make`."),
        (
            json!({"command": "make", "cwd": "sub"}),
            "Running make\nNo rule allows running `make`.\n  in /w/sub",
        ),
        (
            json!({"command": "make", "cwd": "/", "title": "Building"}),
            "Building\nNo rule allows running `make`.\n  in /\n| make",
        ),
        (
            json!({"command": "make", "timeout_ms": 600_000}),
            "Running make\nNo rule allows this.\n  for at most 600s",
        ),
    ] {
        assert_eq!(asked(&world, "bash", input).await, wanted);
    }
}

#[tokio::test]
async fn a_refusal_says_why_and_what_to_do() {
    let refused = async |change: &dyn Fn(&World), path: &str| {
        let world = world();
        change(&world);
        world.call("edit", json!({ "path": path })).await.joined_text()
    };
    let on = "Do not try to reach the same by other means; go on without it, or say what you need.";
    assert_eq!(
        refused(&|world| world.rule(Verdict::Deny, "Edit(a)"), "a").await,
        format!("the deny rule Edit(a) (user settings) forbids changing a.\n{on}")
    );
    assert_eq!(
        refused(&|world| world.mode(Mode::Plan), "a").await,
        format!(
            "plan mode only reads, so changing a is not possible now; go on reading, then present \
             the plan.\n{on}"
        )
    );
    assert_eq!(
        refused(&|world| world.mode(Mode::DontAsk), "/x").await,
        format!(
            "no rule allows changing /x, which is outside the workspace, and mode dont-ask denies \
             what would ask.\n{on}"
        )
    );
    assert_eq!(
        refused(&|_| (), "a").await,
        "no rule allows changing a, and nobody can be asked here.\n\
         Go on without it, or end and say what you would need."
    );
    assert_eq!(
        refused(&|world| world.answer([Reply::pick("deny")]), "a").await,
        "the person refused this call.\n\
         Do not repeat it; go on in another way, or ask what they would like."
    );
}
