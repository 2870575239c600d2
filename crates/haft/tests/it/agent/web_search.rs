//! `web_search` through every face, with an engine on this machine.

use haft_testkit::http::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    mock_provider::{Mock, WIRES},
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
            let body = json!({"error": {"detail": "The subscription token is invalid."}}).to_string();
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
    assert!(ran.code == Some(1) && ran.err.contains("token is invalid"), "{ran:?}");
    let ran = run(&allowed, None);
    assert!(ran.code == Some(1) && ran.err.contains("BRAVE_API_KEY"), "{ran:?}");
    // No query carries a secret out.
    let call = json!({"query": format!("what is {KEY}")}).to_string();
    let mut haft = world.haft(&["tool", "web_search", "--mode", "bypass", "--input", &call]);
    haft.env("BRAVE_API_KEY", KEY);
    let before = mock.requests().len();
    let ran = finish(haft, &Input::Nothing);
    assert!(ran.code == Some(1) && ran.err.contains("BRAVE_API_KEY"), "{ran:?}");
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
    world.file(".haft/settings.toml", "[web.search]\nengine = 'searxng'\naddress = 'http://x.example'\n");
    let ran = world.tool("web_search", &input(), &["--trust"]);
    assert!(ran.code == Some(2) && ran.err.contains("web.search.engine"), "{ran:?}");
}
