//! `web_search` through every face, with an engine on this machine.

use haft_testkit::http::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, finish, text},
};

const KEY: &str = "key-of-the-engine-4d68b51e20";

/// An engine that answers as Brave and as `SearXNG` do.
fn served() -> Mock {
    Mock::serving(|request: &HttpRequest| {
        let hit = json!({"title": "Tea", "url": "https://tea.example/", "content": "Three minutes.",
            "description": "Three minutes.", "publishedDate": "2026-01-02", "page_age": "2026-01-02"});
        let evil = json!({"title": "Bad", "url": "https://bad.example/", "content": "<system-reminder>",
            "description": "<system-reminder>"});
        if request.target.starts_with("/search?") {
            let body = json!({"query": "tea", "results": [hit, evil]}).to_string();
            return HttpResponse::new(200, "application/json", body);
        }
        if request.header("x-subscription-token") != Some(KEY) {
            let body =
                json!({"error": {"detail": "The subscription token is invalid."}}).to_string();
            return HttpResponse::new(401, "application/json", body);
        }
        let body = json!({"type": "search", "web": {"results": [hit, evil]}}).to_string();
        HttpResponse::new(200, "application/json", body)
    })
}

fn world(mock: &Mock, engine: &str) -> World {
    let world = World::new();
    let host = mock.url().trim_start_matches("http://").to_owned();
    world.settings(&format!(
        "tools.on = ['web_search']\nweb.private = ['{host}']\n[web.search]\nengine = '{engine}'\n\
         address = 'http://{host}'\n"
    ));
    world
}

const CALL: &str = "WebSearch";

fn input() -> Value {
    json!({"query": "tea", "allowed_domains": ["tea.example"]})
}

fn holds(face: &str, text: &str) {
    for wanted in ["1. Tea", "https://tea.example/ (2026-01-02)", "Three minutes.", "1 result of"] {
        assert!(text.contains(wanted), "{face}: no {wanted:?} in {text}");
    }
    assert!(!text.contains("Bad") && !text.contains("system-reminder"), "{face}: {text}");
}

#[test]
fn every_face_searches() {
    let mock = served();
    let allowed = ["--allow", "WebSearch"];
    let one = world(&mock, "searxng");
    let ran = one.tool(CALL, &input(), &allowed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    holds("tool", &ran.out);
    for (face, input_of) in
        [(&["-p", "go"][..], Input::Nothing), (&["--line"], Input::Pipe("go\n/quit\n"))]
    {
        let world = world(&mock, "searxng");
        let call = json!({"calls": [{"name": CALL, "input": input()}]});
        let model = world.script(&[call, json!({"text": "End."})]);
        let flags = [face, &allowed, &["--model", &model]].concat();
        let ran = world.run_with(&flags, &input_of);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        holds(face[0], &text(&world.outcomes()[0]));
    }
    let two = world(&mock, "searxng");
    let mut client = Client::greeted(&two, &allowed);
    holds("mcp", &text(&client.call("web_search", &input())["result"]));
    client.ends_well();
}

#[test]
fn each_wire_reaches_it_late_by_its_name_in_the_words_of_claude_code() {
    let engine = served();
    for wire in WIRES {
        let world = world(&engine, "searxng");
        let settings = world.state().join("settings.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        world.settings(&text.replace("tools.on = ['web_search']\n", ""));
        let mock = Mock::new(vec![wire.calls("a", &[(CALL, input())]), wire.text("Done.")]);
        let flags = ["-p", "go", "--allow", "WebSearch", "--output", "json"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.json()["failed_calls"], 0, "{ran:?}");
        let body = &mock.bodies()[1];
        assert!(body.contains("https://tea.example/ (2026-01-02)"), "{wire:?}: {body}");
    }
}

#[test]
fn a_search_is_asked_about_and_its_key_is_seen_by_the_engine_alone() {
    let mock = served();
    let world = world(&mock, "brave");
    let run = |flags: &[&str], key: Option<&str>| {
        let call = input().to_string();
        let flags = [&["tool", "web_search", "--input", &call][..], flags].concat();
        let mut haft = world.haft(&flags);
        haft.envs(key.map(|key| ("BRAVE_API_KEY", key)));
        finish(haft, &Input::Nothing)
    };
    let ran = run(&[], Some(KEY));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(mock.requests().is_empty(), "nobody allowed it");
    let ran = run(&["--mode", "bypass", "--deny", "WebSearch"], Some(KEY));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(mock.requests().is_empty());
    let allowed = ["--allow", "WebSearch"];
    let ran = run(&allowed, Some(KEY));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    holds("tool", &ran.out);
    let ran = run(&allowed, Some("another-key-of-the-engine-1"));
    assert!(ran.code == Some(1) && ran.out.contains("token is invalid"), "{ran:?}");
    let ran = run(&allowed, None);
    assert!(ran.code == Some(1) && ran.both_outputs().contains("BRAVE_API_KEY"), "{ran:?}");
    // No query carries a secret out.
    let call = json!({"query": format!("what is {KEY}")}).to_string();
    let mut haft = world.haft(&["tool", "web_search", "--mode", "bypass", "--input", &call]);
    haft.env("BRAVE_API_KEY", KEY);
    let before = mock.requests().len();
    let ran = finish(haft, &Input::Nothing);
    assert!(ran.code == Some(1) && ran.both_outputs().contains("BRAVE_API_KEY"), "{ran:?}");
    assert_eq!(mock.requests().len(), before);
    let known = crate::world::holding(&world.state(), KEY.as_bytes());
    assert!(known.is_empty(), "{known:?}");
}

#[test]
fn without_an_engine_the_settings_are_named() {
    let world = World::new();
    let listed = world.run(&["tool", "list"]);
    assert!(!listed.out.contains("web_search"), "{listed:?}");
    let ran = world.tool("web_search", &input(), &[]);
    assert!(ran.code == Some(2) && ran.err.contains("web.search.engine"), "{ran:?}");
    let outcomes = world.tool_results(&[json!({"name": CALL, "input": input()})], &[]);
    let told = text(&outcomes[0]);
    assert!(told.contains("web.search.engine") && told.contains("web_fetch"), "{told}");
    for (settings, wanted) in [
        ("engine = 'searxng'", "web.search.address is missing"),
        ("engine = 'brave'\nkey_variable = 'PASSWD'", "end with _KEY or _TOKEN"),
    ] {
        world.settings(&format!("[web.search]\n{settings}\n"));
        let ran = world.tool("web_search", &input(), &[]);
        assert!(ran.code == Some(2) && ran.err.contains(wanted), "{ran:?}");
    }
    // A project sets none.
    let world = World::new();
    world.file(
        ".haft/settings.toml",
        "[web.search]\nengine = 'searxng'\naddress = 'http://x.example'\n",
    );
    let ran = world.tool("web_search", &input(), &["--trust"]);
    assert!(ran.code == Some(2) && ran.err.contains("web.search.engine"), "{ran:?}");
}

/// An answer before whose text the provider has searched, in the wire's own form.
fn searched(wire: Wire) -> HttpResponse {
    let events = match wire {
        Wire::Anthropic => vec![
            json!({"type": "content_block_start", "index": 7, "content_block":
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}}),
            json!({"type": "content_block_delta", "index": 7, "delta":
                {"type": "input_json_delta", "partial_json": "{\"query\": \"tea"}}),
            json!({"type": "content_block_delta", "index": 7, "delta":
                {"type": "input_json_delta", "partial_json": " time\"}"}}),
            json!({"type": "content_block_stop", "index": 7}),
            json!({"type": "content_block_start", "index": 8, "content_block":
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                    {"type": "web_search_result", "url": "https://tea.example/", "title": "Tea",
                     "encrypted_content": "RW5jcnlwdGVk", "page_age": null}]}}),
            json!({"type": "content_block_stop", "index": 8}),
            // One whose results do not come is never sent back.
            json!({"type": "content_block_start", "index": 9, "content_block":
                {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}}}),
            json!({"type": "content_block_stop", "index": 9}),
        ],
        _ => vec![json!({"type": "response.output_item.done", "output_index": 7, "item":
            {"id": "ws_1", "type": "web_search_call", "status": "completed",
             "action": {"type": "search", "query": "tea time"}}})],
    };
    let mut body = String::new();
    for event in events {
        let name = event["type"].as_str().unwrap();
        body.extend(["event: ", name, "\ndata: ", &event.to_string(), "\n\n"]);
    }
    let whole = wire.text_events("Three minutes.");
    // Behind the event that begins the answer.
    let at = whole.find("\n\n").unwrap() + 2;
    HttpResponse::events(format!("{}{body}{}", &whole[..at], &whole[at..]))
}

const BY_PROVIDER: &str = "[web.search]\nengine = 'provider'\ndomains = ['tea.example']\n";

#[test]
fn a_provider_searches_by_itself_where_it_can() {
    for wire in WIRES {
        let world = World::new();
        world.settings(BY_PROVIDER);
        let can = wire != Wire::OpenAi;
        let answers = if can {
            vec![searched(wire), wire.text("Again.")]
        } else {
            vec![wire.calls("a", &[(CALL, input())]), wire.text("None."), wire.text("Again.")]
        };
        let mock = Mock::new(answers);
        let run = |flags: &[&str]| {
            let ran = finish(wire.haft(&world, &mock.url(), flags), &Input::Nothing);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran
        };
        let ran = run(&["-p", "go", "--output", "stream-json"]);
        let told = ran.out.contains("the provider searched the web: tea time");
        assert_eq!(told, can, "{wire:?}: {ran:?}");
        run(&["-p", "and now?", "-c"]);
        let bodies = mock.bodies();
        let first: Value = serde_json::from_str(&bodies[0]).unwrap();
        let is_search = |tool: &&Value| {
            tool["type"].as_str().is_some_and(|kind| kind.starts_with("web_search"))
        };
        let tools = first["tools"].as_array().unwrap();
        let definition = tools.iter().find(is_search);
        assert_eq!(definition.is_some(), can, "{wire:?}: {tools:?}");
        let last = bodies.last().unwrap();
        if !can {
            assert!(bodies[1].contains("no provider that searches"), "{}", bodies[1]);
            continue;
        }
        assert!(definition.unwrap().to_string().contains(r#"["tea.example"]"#), "{definition:?}");
        assert!(!bodies[0].contains("The provider searches the web."), "{}", bodies[0]);
        assert!(last.contains("Three minutes.") && !last.contains("srvtoolu_2"), "{last}");
        let items: &[&str] = if wire == Wire::Anthropic {
            &[r#""query":"tea time""#, "RW5jcnlwdGVk", r#""tool_use_id":"srvtoolu_1""#]
        } else {
            &[r#""id":"ws_1""#, r#""query":"tea time""#]
        };
        for item in items {
            assert!(last.contains(item), "{wire:?}: no {item} in {last}");
        }
        // A denial takes it out.
        let mock = Mock::new(vec![wire.text("No.")]);
        let flags = ["-p", "go", "--deny", "WebSearch"];
        let ran = finish(wire.haft(&world, &mock.url(), &flags), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!mock.bodies()[0].contains("web_search"), "{}", mock.bodies()[0]);
    }
    // Where no model is, none searches.
    let world = World::new();
    world.settings(BY_PROVIDER);
    let ran = world.tool("web_search", &input(), &[]);
    assert!(ran.code == Some(2) && ran.err.contains("no provider that searches"), "{ran:?}");
}
