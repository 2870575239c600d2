//! The guard: a tool gets what its plan declared and nothing else, also while it is only checked.

use std::sync::{Arc, Mutex};

use haft_host::{ListHow, Memory, Program, Spawn, WriteHow};
use haft_policy::Verdict;
use haft_testkit::world::World;
use haft_tool::Cx;
use haft_types::{Access, Budget, Follow, HostPath, Outcome, Plan, Status, Target, ToolError};
use serde_json::{Value, json};

use crate::support::{Probe, SharedList, at, begun_and_ended, on_memory, tools, world};

fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError::new(error.to_string())
}

async fn read(cx: &Cx, path: &HostPath) -> Result<String, ToolError> {
    let found = cx.host.fs().locate(path, Follow::Yes).await.map_err(failed)?;
    let bytes = cx.host.fs().read(&found, 0, 1_000).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn write(cx: &Cx, path: &HostPath) -> Result<String, ToolError> {
    let found = cx.host.fs().locate(path, Follow::Yes).await.map_err(failed)?;
    let how = WriteHow { parents: true, mode: 0o644, ..WriteHow::default() };
    cx.host.fs().write(&found, "written".into(), how).await.map_err(failed)?;
    Ok("wrote".into())
}

async fn list(cx: &Cx, path: &HostPath) -> Result<String, ToolError> {
    let found = cx.host.fs().locate(path, Follow::Yes).await.map_err(failed)?;
    let how = ListHow { limit: 10, stat: false };
    let listing = cx.host.fs().list(&found, how).await.map_err(failed)?;
    Ok(format!("{} names", listing.total))
}

async fn remove(cx: &Cx, path: &HostPath) -> Result<String, ToolError> {
    let found = cx.host.fs().locate(path, Follow::Yes).await.map_err(failed)?;
    cx.host.fs().remove(&found).await.map_err(failed)?;
    Ok("removed".into())
}

async fn rename(cx: &Cx, from: &HostPath, to: &HostPath) -> Result<String, ToolError> {
    let from = cx.host.fs().locate(from, Follow::Yes).await.map_err(failed)?;
    let to = cx.host.fs().locate(to, Follow::Yes).await.map_err(failed)?;
    cx.host.fs().rename(&from, &to).await.map_err(failed)?;
    Ok("renamed".into())
}

/// Goes from a declared folder to a name below it, step by step.
async fn descend(cx: &Cx, root: &str, names: &[&str]) -> Result<String, ToolError> {
    let fs = cx.host.fs();
    let mut found = fs.locate(&at(root), Follow::Yes).await.map_err(failed)?;
    for name in names {
        found = fs.child(&found, name.as_bytes(), Follow::Yes).await.map_err(failed)?;
    }
    let bytes = fs.read(&found, 0, 1_000).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn act(input: &Value, cx: &Cx) -> Result<String, ToolError> {
    let path = at(input["on"].as_str().unwrap_or("/w/a"));
    match input["do"].as_str().unwrap_or_default() {
        "read" => read(cx, &path).await,
        "write" => write(cx, &path).await,
        "list" => list(cx, &path).await,
        "remove" => remove(cx, &path).await,
        "rename" => rename(cx, &at("/w/a"), &path).await,
        "descend" => {
            let names: Vec<&str> =
                input["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            descend(cx, input["on"].as_str().unwrap(), &names).await
        }
        "spawn" => {
            let Some(shell) = cx.host.shell() else { return Err(failed("no shell at all")) };
            let argv = Program::Argv(vec![b"touch".to_vec(), b"spawned".to_vec()]);
            let spawn = Spawn::new(argv, cx.place.cwd.clone());
            shell.spawn(spawn).await.map_err(failed)?;
            Ok("spawned".into())
        }
        other => panic!("the test does not know {other}"),
    }
}

fn plan_of(name: &str, place: &haft_types::Place) -> Plan {
    let plan = Plan::new(place, "Lying");
    let target = |path: &str| Target::Path { path: at(path), follow: Follow::Yes };
    match name {
        "nothing" => plan,
        "reads a" => plan.reads(at("/w/a")),
        "changes a" => plan.changes(at("/w/a")),
        "destroys a" => plan.with(Access::Destroy, target("/w/a")),
        "searches tree" => plan.searches(at("/w/tree")),
        "changes tree" => plan.with(Access::Modify, Target::Tree { root: at("/w/tree") }),
        "looks by command" => plan.with(Access::Observe, Target::command("touch spawned".into())),
        other => panic!("the test does not know {other}"),
    }
}

/// A tool that declares `plan` and does `do`, in `run` or already in `check`.
fn liar() -> Probe {
    Probe::new("liar")
        .plan(|input, place| plan_of(input["plan"].as_str().unwrap(), place))
        .check(|input, cx| async move {
            if input["early"] == true {
                return Err(match act(&input, &cx).await {
                    Ok(done) => failed(format!("check did it: {done}")),
                    Err(error) => error,
                });
            }
            Ok(None)
        })
        .run(|input, cx| async move { act(&input, &cx).await.map(Outcome::text) })
}

fn lying_world() -> World {
    let host = Memory::with_files([
        ("/w/a", "in a"),
        ("/w/b", "in b"),
        ("/w/tree/x", "in x"),
        ("/w/tree/sub/y", "in y"),
        ("/out/secret", "canary"),
    ])
    .unwrap();
    host.add_link("/w/tree/link", "/out/secret").unwrap();
    host.add_link("/w/tree/up", "/out").unwrap();
    host.add_link("/w/tree/sideways", "../b").unwrap();
    on_memory(host, tools([liar()]).0)
}

#[tokio::test]
async fn what_was_declared_works() {
    for input in [
        json!({"plan": "reads a", "do": "read"}),
        json!({"plan": "changes a", "do": "read"}),
        json!({"plan": "changes a", "do": "write"}),
        json!({"plan": "destroys a", "do": "remove"}),
        json!({"plan": "searches tree", "do": "list", "on": "/w/tree"}),
        json!({"plan": "searches tree", "do": "list", "on": "/w/tree/sub"}),
        json!({"plan": "searches tree", "do": "read", "on": "/w/tree/sub/y"}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": ["sub", "y"]}),
        json!({"plan": "changes tree", "do": "write", "on": "/w/tree/new/z"}),
    ] {
        let outcome = lying_world().call("liar", input.clone()).await;
        assert_eq!(outcome.status, Status::Done, "{input}: {}", outcome.joined_text());
    }
}

#[tokio::test]
async fn what_was_not_declared_is_refused_in_run_and_in_check() {
    let cases = [
        json!({"plan": "nothing", "do": "read"}),
        json!({"plan": "reads a", "do": "read", "on": "/w/b"}),
        json!({"plan": "reads a", "do": "read", "on": "/w/a/../b"}),
        json!({"plan": "reads a", "do": "list", "on": "/w"}),
        json!({"plan": "reads a", "do": "write"}),
        json!({"plan": "reads a", "do": "remove"}),
        json!({"plan": "changes a", "do": "remove"}),
        json!({"plan": "changes a", "do": "write", "on": "/w/b"}),
        json!({"plan": "changes a", "do": "rename", "on": "/w/c"}),
        json!({"plan": "searches tree", "do": "write", "on": "/w/tree/x"}),
        json!({"plan": "searches tree", "do": "remove", "on": "/w/tree/x"}),
        json!({"plan": "searches tree", "do": "read", "on": "/w/tree/../b"}),
        json!({"plan": "searches tree", "do": "read", "on": "/w/tree/link"}),
        json!({"plan": "searches tree", "do": "read", "on": "/w/tree/up/secret"}),
        json!({"plan": "searches tree", "do": "list", "on": "/w/tree/up"}),
        json!({"plan": "searches tree", "do": "read", "on": "/w/tree/sideways"}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": ["link"]}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": ["up", "secret"]}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": [".."]}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": ["..", "b"]}),
        json!({"plan": "searches tree", "do": "descend", "on": "/w/tree", "names": ["../b"]}),
        json!({"plan": "changes tree", "do": "write", "on": "/w/tree/up/new"}),
    ];
    for early in [false, true] {
        for case in &cases {
            let mut input = case.clone();
            input["early"] = early.into();
            let world = lying_world();
            let before = world.files().await.unwrap();
            let outcome = world.call("liar", input.clone()).await;
            let text = outcome.joined_text();
            assert_eq!(outcome.status, Status::Failed, "{input}: {text}");
            assert!(text.contains("is not part of what this call declared"), "{input}: {text}");
            assert!(!text.contains("canary") && !text.contains("in b"), "{input}: {text}");
            assert_eq!(world.files().await.unwrap(), before, "{input}");
        }
    }
}

#[tokio::test]
async fn the_refusal_says_what_was_not_declared() {
    let input = json!({"plan": "reads a", "do": "read", "on": "/w/b"});
    let outcome = lying_world().call("liar", input).await;
    let text = outcome.joined_text();
    assert!(text.contains("reading /w/b is not part of what this call declared"), "{text}");
    let outcome = lying_world().call("liar", json!({"plan": "reads a", "do": "write"})).await;
    assert!(outcome.joined_text().contains("changing /w/a is not part"), "{outcome:?}");
}

#[tokio::test]
async fn a_check_changes_nothing_even_where_the_plan_may() {
    for input in [
        json!({"plan": "changes a", "do": "write", "early": true}),
        json!({"plan": "destroys a", "do": "remove", "early": true}),
        json!({"plan": "changes tree", "do": "write", "on": "/w/tree/x", "early": true}),
    ] {
        let world = lying_world();
        let before = world.files().await.unwrap();
        let outcome = world.call("liar", input.clone()).await;
        assert!(outcome.joined_text().contains("not part of"), "{input}: {outcome:?}");
        assert_eq!(world.files().await.unwrap(), before, "{input}");
    }
}

#[tokio::test]
async fn programs_run_only_where_they_are_declared_and_never_in_a_check() {
    for (input, runs) in [
        (json!({"plan": "nothing", "do": "spawn"}), false),
        (json!({"plan": "nothing", "do": "spawn", "early": true}), false),
        (json!({"plan": "reads a", "do": "spawn"}), false),
        (json!({"plan": "looks by command", "do": "spawn", "early": true}), false),
        (json!({"plan": "looks by command", "do": "spawn"}), true),
    ] {
        let world = World::local(tools([liar()]).0, [("a", "")]).unwrap();
        let outcome = world.call("liar", input.clone()).await;
        let text = outcome.joined_text();
        assert_eq!(outcome.status == Status::Done, runs, "{input}: {text}");
        assert_eq!(text.contains("running `touch spawned` is not part"), !runs, "{input}: {text}");
        if !runs {
            assert!(!world.folder().unwrap().join("spawned").exists(), "{input}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_may_do_anything_still_opens_nothing_denied() {
    let any = Probe::new("any").plan(|_, place| Plan::anything(place, "Doing anything"));
    let any = any.run(|input, cx| async move {
        read(&cx, &at(input["on"].as_str().unwrap())).await.map(Outcome::text)
    });
    let (world, runs) = world([any]);
    world.rule(Verdict::Deny, "Read(b)");
    assert_eq!(world.call("any", json!({"on": "/w/a"})).await.joined_text(), "in a");
    let outcome = world.call("any", json!({"on": "/w/b"})).await;
    assert_eq!(outcome.status, Status::Failed);
    assert!(!world.recorder.text().contains("in b"));
    assert_eq!(runs.of("any"), 2);
}

/// Calls `inner` with its own arguments, twice.
fn outer() -> Probe {
    Probe::new("outer").run(|input, cx| async move {
        let first = cx.call("inner", input.clone()).await;
        let second = cx.call("inner", input).await;
        let statuses = format!("{:?} {:?}", first.status, second.status);
        Ok(Outcome::text(format!("{statuses} {}", first.joined_text())))
    })
}

#[tokio::test]
async fn nested_calls_go_through_the_same_stages_under_ids_of_their_own() {
    let inner = Probe::new("inner").reads().run(|input, cx| async move {
        let path = cx.path(input["path"].as_str().unwrap())?;
        read(&cx, &path).await.map(Outcome::text)
    });
    let (world, runs) = world([outer(), inner]);
    world.rule(Verdict::Deny, "Read(b)");
    let text = world.call("outer", json!({"path": "a"})).await.joined_text();
    assert_eq!(text, "Done Done in a");
    let text = world.call("outer", json!({"path": "b"})).await.joined_text();
    assert!(text.starts_with("Denied Denied the deny rule Read(b)"), "{text}");
    assert_eq!(runs.of("inner"), 2, "the denied ones did not run");
    let (begun, ended) = begun_and_ended(&world);
    assert_eq!(begun, ["c1", "c1.1", "c1.2", "c2", "c2.1", "c2.2"]);
    assert_eq!(ended, ["c1.1", "c1.2", "c1", "c2.1", "c2.2", "c2"]);
    assert!(!world.recorder.text().contains("in b"));
}

#[tokio::test]
async fn nested_results_come_whole_and_nested_arguments_are_recorded() {
    let got: SharedList<usize> = Arc::new(Mutex::new(Vec::new()));
    let seen = got.clone();
    let outer = Probe::new("outer").run(move |_, cx| {
        let seen = seen.clone();
        async move {
            let outcome = cx.call("inner", json!({"n": 7})).await;
            seen.lock().unwrap().push(outcome.joined_text().len());
            Ok(outcome)
        }
    });
    let inner = Probe::new("inner").run(|_, _| async { Ok(Outcome::text("x".repeat(10_000))) });
    let cut = |spec: &mut haft_types::ToolSpec| spec.budget = Budget::Chars(100);
    let (world, _) = world([outer.spec(cut), inner.spec(cut)]);
    let outcome = world.call("outer", json!({})).await;
    assert_eq!(*got.lock().unwrap(), [10_000]);
    assert!(outcome.joined_text().len() < 300, "what the model gets is cut");
    assert!(world.recorder.text().contains(r#""call":"c1.1","tool":"inner","input":{"n":7}"#));
}
