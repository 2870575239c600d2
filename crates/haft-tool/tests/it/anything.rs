//! A call that may do anything is held by its host to what rules deny and what is protected, and a
//! program is the one that was declared, in the folder that was.

use futures::StreamExt as _;
use haft_host::{Program, SessionCommand, Spawn, Stdin, TurnPart, WriteHow};
use haft_policy::{Mode, Verdict};
use haft_testkit::world::World;
use haft_tool::{COMMAND_VARIABLE, Cx, REPORTING_SCRIPT};
use haft_types::{Access, Follow, HostPath, Outcome, Plan, Status, Target, ToolError};
use serde_json::{Value, json};

use crate::support::{Probe, at, tools, world};

fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError::new(error.to_string())
}

async fn write(cx: &Cx, path: &HostPath) -> Result<Outcome, ToolError> {
    let fs = cx.host.fs();
    let found = fs.locate(path, Follow::Yes).await.map_err(failed)?;
    let how = WriteHow { parents: true, mode: 0o644, ..WriteHow::default() };
    fs.write(&found, "written".into(), how).await.map_err(failed)?;
    Ok(Outcome::text("wrote"))
}

/// A tool that declares anything, or all of the workspace, and writes to `on`.
fn writer() -> Probe {
    let writer = Probe::new("any").plan(|input, place| match input["plan"].as_str() {
        Some("tree") => Plan::new(place, "Changing the workspace")
            .with(Access::Modify, Target::Tree { root: at("/w") }),
        Some("look") => Plan::new(place, "Looking").with(Access::Observe, Target::Anything),
        Some("also") => Plan::anything(place, "Doing anything").changes(at("/w/.git/config")),
        _ => Plan::anything(place, "Doing anything"),
    });
    writer.run(|input, cx| async move { write(&cx, &at(input["on"].as_str().unwrap())).await })
}

#[tokio::test]
async fn it_writes_neither_where_a_rule_denies_or_asks_nor_what_is_protected() {
    for plan in ["anything", "tree"] {
        for on in ["b", "kept/x", "asked/x", "secret", ".git/hooks/x", "sub/.bashrc", ".ssh/x"] {
            let (world, runs) = world([writer()]);
            world.rule(Verdict::Deny, "Edit(b)");
            world.rule(Verdict::Deny, "Edit(kept/**)");
            world.rule(Verdict::Deny, "Read(secret)");
            world.rule(Verdict::Ask, "Edit(asked/**)");
            world.answer([haft_types::Reply::pick("allow")]);
            let before = world.files().await.unwrap();
            let input = json!({"on": format!("/w/{on}"), "plan": plan});
            let outcome = world.call("any", input).await;
            assert_ne!(outcome.status, Status::Done, "{plan} {on}");
            assert_eq!(world.files().await.unwrap(), before, "{plan} {on}");
            assert_eq!(runs.of("any"), usize::from(plan == "anything"), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn it_writes_elsewhere_and_where_the_plan_names_the_place_itself() {
    for (plan, on) in [("anything", "/w/a"), ("tree", "/w/new/x"), ("also", "/w/.git/config")] {
        let (world, _) = world([writer()]);
        world.answer([haft_types::Reply::pick("allow")]);
        let outcome = world.call("any", json!({"on": on, "plan": plan})).await;
        assert_eq!(outcome.joined_text(), "wrote", "{plan}");
    }
}

#[tokio::test]
async fn a_changed_tree_that_was_allowed_keeps_out_of_what_is_protected_in_it() {
    let (world, _) = world([writer()]);
    let outcome = world.call("any", json!({"on": "/w/.git/config", "plan": "tree"})).await;
    assert!(outcome.joined_text().contains("/w/.git/config is not part of"), "{outcome:?}");
}

#[tokio::test]
async fn who_may_only_look_at_anything_changes_nothing() {
    let (world, runs) = world([writer()]);
    let outcome = world.call("any", json!({"on": "/w/a", "plan": "look"})).await;
    assert!(outcome.joined_text().contains("changing /w/a is not part of"), "{outcome:?}");
    assert_eq!(runs.of("any"), 1);
}

#[tokio::test]
async fn a_denial_of_all_edits_denies_what_may_edit_anything() {
    for rule in ["Edit", "Read"] {
        let (world, runs) = world([writer()]);
        world.rule(Verdict::Deny, rule);
        let outcome = world.call("any", json!({"on": "/w/a"})).await;
        assert_eq!((outcome.status, runs.of("any")), (Status::Denied, 0), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_denial_that_was_not_understood_asks_about_anything() {
    let (world, runs) = world([writer()]);
    world.rule(Verdict::Deny, "Edit(a/../b)");
    let outcome = world.call("any", json!({"on": "/w/a"})).await;
    assert_eq!((outcome.status, runs.of("any")), (Status::Denied, 0), "{outcome:?}");
    assert!(outcome.joined_text().contains("Edit(a/../b)"), "{outcome:?}");
}

/// A tool that declares one command and gives a shell that runs another, or the same one.
fn giver() -> Probe {
    let giver = Probe::new("give").plan(|_, place| {
        Plan::new(place, "Running")
            .with(Access::Destroy, Target::command("echo told > made".to_owned()))
    });
    giver.run(|input, cx| async move {
        let place = &cx.place;
        let spawn = Spawn {
            stdin: Stdin::Open,
            report: true,
            ..Spawn::new(Program::Turns, place.cwd.clone())
        };
        let host = cx.host.shell().unwrap();
        let mut running = host.spawn(spawn).await.map_err(failed)?;
        let folder = input["folder"].as_str().map(|folder| place.cwd.join(folder).unwrap());
        let command = input["command"].as_str().unwrap_or_default().to_owned();
        let turn = SessionCommand::new(command, folder, place.cwd.clone(), 0);
        for part in [TurnPart::Place, TurnPart::Command] {
            host.give(&*running.control, &turn, part).await.map_err(failed)?;
        }
        running.control.end_input();
        while let Some(Ok(_)) = running.output.next().await {}
        Ok(Outcome::text("given"))
    })
}

#[tokio::test]
async fn a_shell_that_runs_gets_the_declared_command_alone() {
    let declared = "echo told > made";
    for (input, wanted) in [
        (json!({"command": declared}), "given"),
        (json!({"command": declared, "folder": "sub"}), "given"),
        (json!({"command": "echo told > made "}), "`echo told > made ` is not part of what"),
        (json!({"command": "true"}), "running `true` is not part of what this call declared"),
        (
            json!({"command": declared, "folder": "/"}),
            "in / is not part of what this call declared",
        ),
    ] {
        let world = World::local(tools([giver()]).0, [("sub/a", "")]).unwrap();
        world.mode(Mode::Bypass);
        let text = world.call("give", input.clone()).await.joined_text();
        assert!(text.contains(wanted), "{input}: {text}");
        let folder = input["folder"].as_str().unwrap_or_default();
        let made = world.folder().unwrap().join(folder.trim_start_matches('/')).join("made");
        assert_eq!(made.exists(), wanted == "given", "{input}");
    }
}

/// A tool that declares one command and runs another, or the same one.
fn runner() -> Probe {
    let runner = Probe::new("run").plan(|input, place| match input["declared"].as_str() {
        Some(text) => {
            Plan::new(place, "Running").with(Access::Destroy, Target::command(text.to_owned()))
        }
        None => Plan::anything(place, "Doing anything"),
    });
    runner.run(|input, cx| async move {
        let list = |key: &str| -> Vec<String> {
            let words = input[key].as_array().into_iter().flatten();
            words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        let program = match input["script"].as_str() {
            Some(text) => Program::Script {
                text: text.replace("REPORTING", REPORTING_SCRIPT),
                args: list("args"),
            },
            None => Program::Argv(list("argv").into_iter().map(String::into_bytes).collect()),
        };
        let cwd = match input["cwd"].as_str() {
            Some(folder) => cx.place.cwd.join(folder).unwrap(),
            None => cx.place.cwd.clone(),
        };
        let command = input["command"].as_str().map(|text| (COMMAND_VARIABLE.into(), text.into()));
        let set = command.into_iter().collect();
        let spawn = Spawn { set, ..Spawn::new(program, cwd) };
        cx.host.shell().unwrap().spawn(spawn).await.map_err(failed)?;
        Ok(Outcome::text("spawned"))
    })
}

async fn ran(input: Value, rules: &[&str]) -> String {
    let world = World::local(tools([runner()]).0, [("sub/a", "")]).unwrap();
    for rule in rules {
        world.rule(Verdict::Deny, rule);
    }
    world.mode(Mode::Bypass);
    world.call("run", input).await.joined_text()
}

#[tokio::test]
async fn the_declared_program_runs() {
    for input in [
        json!({"declared": "true", "script": "true"}),
        json!({"declared": "true", "script": "REPORTING", "command": "true"}),
        json!({"declared": "test -n 'a b'", "argv": ["test", "-n", "a b"]}),
        json!({"script": "true; true", "args": ["x"]}),
        json!({"argv": ["true"], "cwd": "sub"}),
    ] {
        assert_eq!(ran(input.clone(), &[]).await, "spawned", "{input}");
    }
}

#[tokio::test]
async fn another_program_or_folder_than_declared_is_refused() {
    for input in [
        json!({"declared": "true", "script": "false"}),
        json!({"declared": "true", "script": "true "}),
        json!({"declared": "true", "script": "true", "args": ["x"]}),
        json!({"declared": "true", "script": "eval $1", "args": ["true"]}),
        json!({"declared": "true", "script": "REPORTING", "command": "true; false"}),
        json!({"declared": "true", "script": "REPORTING", "command": "true", "args": ["x"]}),
        json!({"declared": "true", "script": "REPORTING"}),
        json!({"declared": "true", "argv": ["true", "x"]}),
        json!({"declared": "test -n a b", "argv": ["test", "-n", "a b"]}),
        json!({"declared": "true", "script": "true", "cwd": "sub"}),
        json!({"declared": "true", "script": "true", "cwd": "/"}),
    ] {
        let text = ran(input.clone(), &[]).await;
        assert!(text.contains("is not part of what this call declared"), "{input}: {text}");
    }
}

#[tokio::test]
async fn what_may_do_anything_runs_no_command_that_is_denied() {
    for (rule, input) in [
        ("Bash(rm:*)", json!({"argv": ["rm", "x"]})),
        ("Bash(rm:*)", json!({"script": "true; rm x"})),
        ("Bash(rm:*)", json!({"script": "eval \"$1\"", "args": ["rm x"]})),
        ("Bash(rm:*)", json!({"script": "REPORTING", "command": "rm x"})),
        ("Bash(rm:*)", json!({"script": "$X y"})),
        ("Bash", json!({"argv": ["true"]})),
    ] {
        let text = ran(input.clone(), &[rule]).await;
        assert!(text.contains("is not part of what this call declared"), "{input}: {text}");
        // What only the shell knows may be what is denied.
        let clear = !input.to_string().contains('$');
        let text = ran(input.clone(), &["Bash(mkfs:*)"]).await;
        assert_eq!(text == "spawned", clear, "{input}: {text}");
    }
}
