//! No key is ever seen outside of the request that it opens.

use haft_types::Body;
use serde_json::json;

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{CANARY, Input, World, finish, holding},
};

/// What looks for the key: commands that print their environment, and a server that repeats it.
#[test]
fn commands_do_not_have_the_key_and_no_output_shows_it() {
    for wire in WIRES {
        for output in ["text", "json", "stream-json"] {
            let world = World::new();
            let look = "env; echo \"<$ANTHROPIC_API_KEY$OPENAI_API_KEY>\"";
            let mock = Mock::new(vec![
                wire.calls("look", &[("bash", json!({"command": look}))]),
                wire.text("End."),
            ]);
            let flags = ["-p", "go", "--mode", "bypass", "--output", output];
            // Checks what it prints; the world's end checks every file of it.
            let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let sent = &mock.requests()[0];
            let opened = sent.headers.iter().any(|(_, value)| value.contains(CANARY));
            assert!(opened, "the key was not used at all");
            let bodies = mock.bodies();
            assert!(bodies[1].contains("<>"), "the command did not run: {}", bodies[1]);
            assert!(bodies.iter().all(|body| !body.contains(CANARY)), "{bodies:?}");
            let shown = world.run(&["session", "show", &world.only_session(), "--json"]);
            assert!(!shown.out.contains(CANARY));
        }
    }
}

#[test]
fn a_key_in_an_address_is_not_shown() {
    let world = World::new();
    let wire = Wire::Anthropic;
    let url = format!("http://user:{CANARY}@127.0.0.1:9");
    let ran = finish(wire.haft(&world, &url, &["-p", "hi"]), &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("127.0.0.1:9"), "{ran:?}");
    let doctor = finish(wire.haft(&world, &url, &["doctor"]), &Input::Nothing);
    assert!(doctor.out.contains("127.0.0.1:9"), "{doctor:?}");
}

#[test]
fn a_server_that_repeats_the_key_is_not_quoted() {
    for wire in WIRES {
        for status in [400, 401, 403, 500] {
            let world = World::new();
            world.settings("[model]\nretry_seconds = 0\n");
            let mock = Mock::with(move |_, request| {
                let header = request.headers.iter().find(|(_, value)| value.contains(CANARY));
                let body = json!({"error": {"type": "x", "message": format!("got {header:?}")}});
                let body = body.to_string();
                haft_testkit::http::HttpResponse::new(status, "application/json", body)
            });
            let flags = ["-p", "go", "--output", "stream-json"];
            let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
            assert_eq!(ran.code, Some(1), "{ran:?}");
            // That it was repeated shows in what stands there in its place.
            assert!(ran.out.contains("got Some("), "{ran:?}");
        }
    }
}

#[test]
fn a_denied_file_is_in_no_event() {
    let planted = "planted-5d1c77aa";
    let world = World::new();
    world.file("secret/key.txt", format!("{planted}\n"));
    world.file("open.txt", "open\n");
    let calls = json!([
        {"name": "read", "input": {"path": "secret/key.txt"}},
        {"name": "grep", "input": {"pattern": "planted|open"}},
        {"name": "edit", "input": {"path": "secret/key.txt", "edits": [
            {"old_text": "plantet", "new_text": "x"}]}},
        {"name": "write", "input": {"path": "secret/key.txt", "content": "x"}},
        {"name": "bash", "input": {"command": "cat secret/key.txt"}},
    ]);
    let model = world.script(&[json!({"calls": calls}), json!({"text": "End."})]);
    let flags = ["-p", "go", "--model", &model, "--output", "stream-json"];
    let rules =
        ["--mode", "accept-edits", "--deny", "Read(/secret/**)", "--deny", "Edit(/secret/**)"];
    let ran = world.run(&[&flags[..], &rules].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.out.contains(planted) && !ran.err.contains(planted), "{ran:?}");
    assert!(ran.out.contains("open.txt"), "the search did not run: {ran:?}");
    assert!(holding(&world.state(), planted.as_bytes()).is_empty());
    assert_eq!(world.read("secret/key.txt"), format!("{planted}\n"));
    let ended = world.events();
    let ended = ended.iter().filter(|event| matches!(event.body, Body::CallEnded { .. })).count();
    assert_eq!(ended, 5);
}

#[test]
fn what_looks_like_a_secret_is_not_given_to_commands_but_by_name() {
    let world = World::new();
    let value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let input = json!({"command": "env | grep -E '^(GH|DB|MY)_' | sort"}).to_string();
    let look = |world: &World| {
        let mut haft = world.haft(&["tool", "bash", "--allow", "Bash", "--input", &input]);
        haft.envs([
            ("GH_TOKEN", value),
            ("DB_PASSWORD", "hunter2-hunter2"),
            ("MY_KEY", "/a/b/c/d/e/f"),
        ]);
        finish(haft, &Input::Nothing).out
    };
    assert_eq!(look(&world), "MY_KEY=/a/b/c/d/e/f\n");
    world.settings("[shell]\nlet_through = [\"GH_TOKEN\"]\n");
    // Commands have it; who reads what they say does not.
    let shown = look(&world);
    assert!(shown.starts_with("GH_TOKEN={{secret:GH_TOKEN}}\nMY_KEY=/a/b/c/d/e/f\n"), "{shown}");
}

/// What the answers of these commands say beside their output of variables that were withheld.
fn told_of_withheld(world: &World, commands: &[&str]) -> Vec<String> {
    let calls: Vec<_> = commands
        .iter()
        .map(|c| json!({"calls": [{"name": "bash", "input": {"command": c}}]}))
        .collect();
    let model = world.script(&[&calls[..], &[json!({"text": "End."})]].concat());
    let mut haft = world.haft(&["-p", "go", "--mode", "bypass", "--model", &model]);
    haft.envs([
        ("GH_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("DB_PASSWORD", "hunter2-hunter2"),
        ("ANTHROPIC_API_KEY", CANARY),
    ]);
    let ran = finish(haft, &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let note = |outcome: serde_json::Value| {
        let text = crate::world::text(&outcome);
        assert!(!text.contains("hunter2") && !text.contains("ghp_"), "{text}");
        let line = text.lines().find(|line| line.contains("withheld")).unwrap_or_default();
        line.split(" withheld").next().unwrap().to_owned()
    };
    world.outcomes().into_iter().map(note).collect()
}

#[test]
fn an_answer_names_the_variables_that_its_command_missed() {
    let world = World::new();
    let commands = [
        "echo \"<$GH_TOKEN>\"",
        "true",
        "false",
        "echo 'error: set DB_PASSWORD first' >&2; exit 4",
        "echo 'set DB_PASSWORD first'",
        "GH_TOKEN=other; echo x",
        "echo 'HTTP 401: Unauthorized' >&2; exit 1",
        "echo 'HTTP 401: Unauthorized' >&2; exit 1",
    ];
    let all = "[ANTHROPIC_API_KEY, DB_PASSWORD, GH_TOKEN are";
    let wanted = ["[GH_TOKEN is", "", "", "[DB_PASSWORD is", "[DB_PASSWORD is", "", all, ""];
    assert_eq!(told_of_withheld(&world, &commands), wanted);
    // What is let through is neither withheld nor told of.
    let world = World::new();
    world.settings("[shell]\nlet_through = [\"GH_TOKEN\"]\n");
    let commands = ["test -n \"$GH_TOKEN\"", "test -n \"$DB_PASSWORD\""];
    assert_eq!(told_of_withheld(&world, &commands), ["", "[DB_PASSWORD is"]);
}

#[test]
fn a_project_cannot_let_variables_through() {
    let world = World::new();
    world.file(".haft/settings.toml", "[shell]\nlet_through = [\"GH_TOKEN\"]\n");
    let input = json!({"command": "echo \"<$GH_TOKEN>\""}).to_string();
    let mut haft = world.haft(&["tool", "bash", "--trust", "--mode", "bypass", "--input", &input]);
    haft.env("GH_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
    let ran = finish(haft, &Input::Nothing);
    assert!(ran.out.starts_with("<>\n[GH_TOKEN is withheld"), "{ran:?}");
    assert!(ran.err.contains("a project may not set this"), "{ran:?}");
}
