//! Providers that are not as they should be: each failure says what is wrong and what to do.

use std::io::{Read as _, Write as _};

use haft_testkit::http::{HttpResponse, Step};
use serde_json::json;

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{CANARY, Input, Ran, World, finish},
};

fn ask(world: &World, wire: Wire, mock: &Mock) -> Ran {
    finish(wire.haft(world, &mock.url(), &["-p", "hi"]), &Input::Nothing)
}

#[test]
fn no_model_is_a_mistake_of_use() {
    let world = World::new();
    let ran = world.run(&["-p", "hi"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for word in ["no model is chosen", "--model", "HAFT_MODEL", "anthropic/NAME"] {
        assert!(ran.err.contains(word), "{word}: {ran:?}");
    }
}

#[test]
fn an_unknown_model_is_a_mistake_of_use() {
    let world = World::new();
    for name in ["gpt-5", "acme/large", "anthropic/", "", "script:"] {
        let ran = world.run(&["-p", "hi", "--model", name]);
        assert_eq!(ran.code, Some(2), "{name:?} {ran:?}");
        assert!(
            ran.err.contains(&format!("{name:?}")) && ran.err.contains("openai/NAME"),
            "{ran:?}"
        );
    }
    assert_eq!(world.run(&["session", "list"]).out, "", "a session was begun");
}

#[test]
fn a_missing_key_names_its_variable() {
    for wire in WIRES {
        let world = World::new();
        let ran = world.run(&["-p", "hi", "--model", wire.model()]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(wire.key_variable()), "{ran:?}");
        assert!(ran.err.contains(wire.url_variable()), "{ran:?}");
    }
}

#[test]
fn a_local_server_needs_no_key() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::new(vec![wire.text("Hello.")]);
        let mut command = wire.haft(&world, &mock.url(), &["-p", "hi"]);
        command.env_remove(wire.key_variable());
        let ran = finish(command, &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    }
}

#[test]
fn a_wrong_key_is_told_once() {
    for wire in WIRES {
        let world = World::new();
        let body = format!("{{\"error\":{{\"message\":\"bad key {CANARY}\"}}}}");
        let mock = Mock::new(vec![HttpResponse::new(401, "application/json", body)]);
        let ran = ask(&world, wire, &mock);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains("401") && ran.err.contains(wire.key_variable()), "{ran:?}");
        // Asking again would not help.
        assert_eq!(mock.requests().len(), 1);
    }
}

#[test]
fn an_unreachable_server_is_named() {
    for wire in WIRES {
        let world = World::new();
        // It has been tried for long enough then.
        world.settings("[model]\nretry_seconds = 1\n");
        let url = "http://127.0.0.1:9";
        let ran = finish(wire.haft(&world, url, &["-p", "hi"]), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains(url) && ran.err.contains(wire.url_variable()), "{ran:?}");
    }
}

#[test]
fn broken_answers_fail_the_run() {
    let html = || HttpResponse::new(200, "text/html", "<html><body>Sign in</body></html>");
    let malformed = || HttpResponse::events("data: {not json}\n\n");
    for wire in WIRES {
        for (name, broken) in [("html", html()), ("malformed", malformed())] {
            let world = World::new();
            let mock = Mock::with(move |_, _| broken.clone());
            let ran = ask(&world, wire, &mock);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{name} {wire:?} {ran:?}");
            let shown = if name == "html" { "html" } else { "not json" };
            assert!(ran.err.contains(shown), "{name} {wire:?} {ran:?}");
        }
    }
}

#[test]
fn a_cut_stream_is_no_answer() {
    for wire in WIRES {
        let world = World::new();
        world.settings("[model]\nretry_seconds = 1\n");
        let mock = Mock::with(move |_, _| {
            let mut answer = wire.text("This answer is never finished");
            let Some(Step::Send(body)) = answer.steps.pop() else { panic!("no body") };
            // Right behind the text, before anything says that it is complete.
            let end = body.windows(8).position(|part| part == b"finished").unwrap();
            let end = end + body[end..].windows(2).position(|part| part == b"\n\n").unwrap() + 2;
            answer.steps = vec![Step::Send(body.slice(..end)), Step::Cut];
            answer
        });
        let ran = ask(&world, wire, &mock);
        assert_eq!(ran.code, Some(1), "{wire:?} {ran:?}");
        assert!(ran.err.contains("broke") && ran.err.contains(&mock.url()), "{ran:?}");
        assert_eq!(mock.requests().len(), 2, "one retry was set");
        assert!(!ran.err.contains("haft -c"), "nothing was done yet: {ran:?}");
    }
}

#[test]
fn what_was_done_before_a_failure_is_gone_on_with() {
    for wire in WIRES {
        let world = World::new();
        world.settings("[model]\nretry_seconds = 0\n");
        world.file("a.txt", "alpha\n");
        let mock = Mock::with(move |nth, _| match nth {
            0 => wire.calls("I look.", &[("read", json!({"path": "a.txt"}))]),
            1 => HttpResponse::events("data: {not json}\n\n"),
            _ => wire.text("It says alpha."),
        });
        let ran = ask(&world, wire, &mock);
        assert_eq!(ran.code, Some(1), "{wire:?} {ran:?}");
        assert!(ran.err.contains("What was done is kept: go on with haft -c -p"), "{ran:?}");
        let flags = ["-c", "-p", "go on"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It says alpha.\n"), "{ran:?}");
        assert!(mock.bodies()[2].contains("alpha"), "the result is in the conversation");
    }
}

#[test]
fn an_overloaded_server_is_asked_again() {
    for wire in WIRES {
        let world = World::new();
        let mut busy =
            HttpResponse::new(503, "application/json", "{\"error\":{\"message\":\"overloaded\"}}");
        busy.headers.push(("retry-after".into(), "0".into()));
        let mock = Mock::new(vec![busy, wire.text("Here I am.")]);
        let ran = ask(&world, wire, &mock);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Here I am.\n"), "{ran:?}");
        assert!(ran.err.contains("Asking again in 0.1 s."), "{ran:?}");
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0], bodies[1], "the same request, byte for byte");
    }
}

#[test]
fn a_whole_turn_runs_over_each_wire() {
    for wire in WIRES {
        let world = World::new();
        world.file("a.txt", "alpha\nbeta\n");
        let edit = json!({"path": "a.txt", "edits": [
            {"old_text": "beta", "new_text": "gamma"}]});
        let mock = Mock::new(vec![
            wire.calls(
                "one",
                &[("read", json!({"path": "a.txt"})), ("grep", json!({"pattern": "bet"}))],
            ),
            wire.calls("two", &[("edit", edit)]),
            wire.text("Done."),
        ]);
        let flags = ["-p", "edit it", "--mode", "accept-edits"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{ran:?}");
        assert_eq!(world.read("a.txt"), "alpha\ngamma\n");
        let bodies = mock.bodies();
        let results = |body: &str| body.matches(wire.result_id()).count();
        assert_eq!(bodies.iter().map(|body| results(body)).collect::<Vec<_>>(), [0, 2, 3]);
        let key = mock.requests()[0].headers.iter().any(|(_, value)| value.contains(CANARY));
        assert!(key, "the key was not sent");
    }
}

#[test]
fn an_answer_without_a_word_is_told_and_one_without_an_end_is_asked_for_again() {
    for wire in WIRES {
        let world = World::new();
        let mock = Mock::new(vec![wire.text("")]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert!(ran.err.contains("the model's answer is empty"), "{wire:?} {ran:?}");
    }
    let (world, wire) = (World::new(), Wire::OpenAi);
    let mock = Mock::new(vec![HttpResponse::events("data: [DONE]\n\n"), wire.text("Here.")]);
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Here.\n"), "{ran:?}");
    assert!(ran.err.contains("Asking again in 1 s."), "{ran:?}");
}

#[test]
fn a_server_that_asks_for_more_patience_than_there_is_is_quoted() {
    for wire in WIRES {
        let world = World::new();
        let mut busy = HttpResponse::new(429, "application/json", "{\"error\":\"slow down\"}");
        busy.headers.push(("retry-after".into(), "3600".into()));
        let mock = Mock::new(vec![busy]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let told = "The server asks to wait 3,600 s, longer than haft waits (120 s in all";
        assert!(ran.err.contains(told), "{ran:?}");
        assert_eq!(mock.requests().len(), 1);
    }
}

#[test]
fn a_server_that_cannot_be_one_is_a_wrong_call() {
    let world = World::new();
    let run = |url: &str, key: &str| {
        let mut command = world.haft(&["-p", "go", "--model", "openai/x"]);
        command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", key);
        finish(command, &Input::Nothing)
    };
    for url in ["http://", "http://[::1", "http:///ok", "http://h/ok/?x=hidden", "http://h/ok#f"] {
        let ran = run(url, "key");
        assert_eq!(ran.code, Some(2), "{url}: {ran:?}");
        assert!(ran.err.contains("OPENAI_BASE_URL") && !ran.err.contains("hidden"), "{ran:?}");
    }
    let ran = run("http://127.0.0.1:9", "hid\nden");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("OPENAI_API_KEY") && !ran.err.contains("den"), "{ran:?}");
}

#[test]
fn each_wrong_server_says_what_is_wrong_and_what_to_do() {
    let json = "application/json";
    for (status, kind, body, wanted) in [
        (200, "text/html", "<html>Sign in</html>", &["An event stream was expected", "URL"][..]),
        (302, "text/html", "", &["Redirects are not followed", "URL"]),
        (401, json, "{\"error\":{\"message\":\"bad key\"}}", &["bad key", "Check the key in KEY"]),
        (402, json, "{\"error\":{\"message\":\"pay\"}}", &["pay", "Check the account", "KEY"]),
        (
            404,
            json,
            "{\"error\":{\"message\":\"no such\"}}",
            &["Check the model's name (\"mock-1\")", "URL"],
        ),
        (407, "text/plain", "who?", &["The proxy wants a name and a password", "HTTPS_PROXY"]),
        (413, "text/html", "<html>big</html>", &["too long for the model", "begin a new session"]),
    ] {
        for wire in WIRES {
            let world = World::new();
            let mock = Mock::with(move |_, _| HttpResponse::new(status, kind, body));
            let ran = ask(&world, wire, &mock);
            assert_eq!((ran.code, mock.requests().len()), (Some(1), 1), "{status} {ran:?}");
            for part in wanted {
                let part =
                    part.replace("URL", wire.url_variable()).replace("KEY", wire.key_variable());
                assert!(ran.err.contains(&part), "{status}: {part}: {}", ran.err);
            }
        }
    }
}

#[test]
fn a_proxy_that_wants_a_password_is_told_once() {
    let world = World::new();
    let proxy = Mock::with(|_, _| HttpResponse::new(407, "text/plain", "who?"));
    let url = "https://llm.example/v1";
    let mut command = Wire::OpenAi.haft(&world, url, &["-p", "hi"]);
    command.env("HTTPS_PROXY", proxy.url());
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("http://NAME:PASSWORD@HOST:PORT"), "{ran:?}");
    assert!(!ran.err.contains("no answer yet"), "{ran:?}");
}

#[test]
fn a_model_that_cannot_be_one_says_where_it_was_set_and_what_is_near() {
    let world = World::new();
    for (name, wanted) in [
        ("openai//m", "there is a slash too much, did you mean \"openai/m\"?"),
        ("anthropic/a/b", "there is a slash too much, did you mean \"anthropic/b\"?"),
        ("olama/llama3", "did you mean \"ollama/llama3\"?"),
        ("gemini-2.5-pro", "did you mean \"gemini/gemini-2.5-pro\"?"),
    ] {
        let ran = world.run(&["-p", "hi", "--model", name]);
        assert!(ran.code == Some(2) && ran.err.contains("--model: "), "{ran:?}");
        assert!(ran.err.contains(wanted), "{ran:?}");
    }
    for (settings, wanted) in [
        ("model = 3\n", "settings.toml:1: model.name: 3 does not fit, wanted: text in quotes"),
        (
            "[model]\nretry_seconds = \"x\"\n",
            "settings.toml:2: model.retry_seconds: \"x\" does not fit",
        ),
        ("[providers.a]\nwire = \"x\"\n", "settings.toml:2: providers.a.wire: \"x\" does not fit"),
        ("model = \"a/x\"\n[providers.a]\n", "providers.a.address is \"\", which is no address"),
        (
            "model = \"a/x\"\n[providers.a]\nkey_variable = \"FOO\"\n",
            "names end with _KEY or _TOKEN",
        ),
    ] {
        world.settings(settings);
        let ran = world.run(&["-p", "hi"]);
        assert!(ran.code == Some(2) && ran.err.contains(wanted), "{settings}: {ran:?}");
    }
}

#[test]
fn what_there_is_is_said_where_no_model_is_chosen() {
    let world = World::new();
    let mut command = world.haft(&["-p", "hi"]);
    command.env("GROQ_API_KEY", CANARY).env("MISTRAL_API_KEY", CANARY);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("Found: GROQ_API_KEY is set: --model groq/NAME"), "{ran:?}");
    assert!(!ran.err.contains(CANARY), "{ran:?}");
    // A server of this machine is found, too.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let asked = std::thread::spawn(move || {
        let (mut client, _) = server.accept().unwrap();
        let mut request = [0; 4096];
        let length = client.read(&mut request).unwrap();
        let answer = "HTTP/1.0 200 OK\r\n\r\n{\"data\":[{\"id\":\"llama3\"},{\"id\":\"qwen\"}]}";
        client.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    world.settings(&format!("[providers.near]\naddress = \"http://127.0.0.1:{port}/v1\"\n"));
    let ran = world.run(&["-p", "hi"]);
    assert!(ran.err.contains("(near: llama3, qwen): --model near/llama3"), "{ran:?}");
    assert!(asked.join().unwrap().starts_with("GET /v1/models HTTP/1.0\r\n"));
}
