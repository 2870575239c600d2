//! Engines against the shapes of answers that their documentation gives.

use haft_tool::{BodyEnd, WebMethod};
use serde_json::json;

use super::*;

const KEY: &str = "a-key-of-an-engine-000";

fn engine(kind: EngineKind) -> SearchEngine {
    let address = (kind == EngineKind::Searxng).then_some("http://localhost:8888/");
    SearchEngine::new(kind, address, Some(KEY.to_owned()))
}

fn query_of(input: Value) -> Result<Query, ToolError> {
    query(&serde_json::from_value(input).unwrap())
}

/// An answer of each engine with two results.
fn answers() -> [(EngineKind, Value); 4] {
    [
        (
            EngineKind::Brave,
            json!({"type": "search", "query": {"original": "tea"}, "web": {"type": "search", "results": [
                {"title": "Tea &amp; time", "url": "https://tea.example/a", "is_source_local": false,
                 "description": "Steep for &quot;three&quot; minutes &#x27;or&#39; so & on",
                 "page_age": "2026-03-01T10:00:00", "age": "March 1, 2026"},
                {"title": "Green", "url": "https://green.tea.example/", "description": "It is green."},
            ]}}),
        ),
        (
            EngineKind::Tavily,
            json!({"query": "tea", "answer": null, "images": [], "response_time": 0.9, "results": [
                {"title": "Tea & time", "url": "https://tea.example/a", "score": 0.9,
                 "content": "Steep for \"three\" minutes 'or' so & on", "raw_content": null,
                 "published_date": "2026-03-01T10:00:00"},
                {"title": "Green", "url": "https://green.tea.example/", "content": "It is green."},
            ]}),
        ),
        (
            EngineKind::Exa,
            json!({"requestId": "r", "searchType": "neural", "results": [
                {"id": "1", "title": "Tea & time", "url": "https://tea.example/a", "author": null,
                 "text": "Steep for \"three\" minutes 'or' so & on",
                 "publishedDate": "2026-03-01T10:00:00"},
                {"id": "2", "title": "Green", "url": "https://green.tea.example/",
                 "highlights": ["It is green."], "highlightScores": [0.4]},
            ], "costDollars": {"total": 0.005}}),
        ),
        (
            EngineKind::Searxng,
            json!({"query": "tea", "number_of_results": 0, "unresponsive_engines": [["x", "timeout"]],
                "answers": [], "results": [
                {"title": "Tea & time", "url": "https://tea.example/a", "engine": "x", "score": 2.0,
                 "content": "Steep for \"three\" minutes 'or' so & on",
                 "publishedDate": "2026-03-01T10:00:00"},
                {"title": "Green", "url": "https://green.tea.example/", "content": "It is green.",
                 "publishedDate": null},
            ]}),
        ),
    ]
}

fn response(status: u16, body: &Value) -> WebResponse {
    WebResponse { status, body: body.to_string().into(), ..WebResponse::default() }
}

#[test]
fn every_engine_gives_the_same_results_for_the_same_pages() {
    for (kind, body) in answers() {
        let engine = engine(kind);
        let hits = engine.hits(&answer(&engine, &response(200, &body)).unwrap()).unwrap();
        let shown = outcome(kind.name(), &query_of(json!({"query": "tea"})).unwrap(), hits);
        let text = format!("{:?}", shown.content);
        for wanted in [
            "1. Tea & time",
            "https://tea.example/a (2026-03-01T10:00:00)",
            "three",
            "'or' so & on",
            "2. Green",
            "It is green.",
            "2 results of",
        ] {
            assert!(text.contains(wanted), "{kind:?}: no {wanted:?} in {text}");
        }
        let data = shown.data.unwrap();
        assert_eq!(data["results"][1]["url"], "https://green.tea.example/", "{kind:?}");
        assert_eq!(data["results"][0]["date"], "2026-03-01T10:00:00", "{kind:?}");
    }
}

#[test]
fn the_key_stands_in_a_header_and_nowhere_else() {
    let query = query_of(json!({"query": "tea & time", "domains": ["tea.example"], "limit": 3}));
    let query = query.unwrap();
    for kind in EngineKind::ALL {
        let engine = engine(kind);
        let request = engine.request(&query).unwrap();
        let body = String::from_utf8_lossy(&request.body);
        assert!(!request.url.contains(KEY) && !body.contains(KEY), "{request:?}");
        assert!(!format!("{engine:?}").contains(KEY));
        assert!(request.headers.iter().any(|(_, value)| value.contains(KEY)), "{kind:?}");
        let is_post = request.method == WebMethod::Post;
        let asked = if is_post { body.into_owned() } else { request.url.clone() };
        assert!(asked.contains("tea.example"), "{kind:?}: {asked}");
        assert!(is_post || asked.contains("q=tea+%26+time"), "{kind:?}: {asked}");
        let without = SearchEngine::new(kind, Some("https://engine.example"), None);
        match without.request(&query) {
            Ok(_) => assert_eq!(kind, EngineKind::Searxng, "it alone needs none"),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(kind.key_variable()), "{kind:?}: {error}");
            }
        }
    }
}

#[test]
fn lists_of_hosts_hold_whatever_the_engine_gives() {
    let hits = || {
        let hit = |url: &str| Hit { title: url.into(), url: url.into(), ..Hit::default() };
        vec![
            hit("https://tea.example/"),
            hit("https://TEA.example/"),
            hit("https://green.tea.example/"),
            hit("https://nottea.example/"),
            hit("https://tea.example.evil.example/"),
            hit("javascript:alert(1)"),
            hit("https://tea.example/"),
        ]
    };
    let urls = |input: Value| {
        let outcome = outcome("brave", &query_of(input).unwrap(), hits());
        let results = outcome.data.unwrap()["results"].clone();
        let urls = results.as_array().unwrap().iter();
        urls.map(|hit| hit["url"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let below = ["https://tea.example/", "https://TEA.example/", "https://green.tea.example/"];
    assert_eq!(urls(json!({"query": "x", "domains": ["*.tea.example"]})), below);
    let others = ["https://nottea.example/", "https://tea.example.evil.example/"];
    assert_eq!(urls(json!({"query": "x", "blocked": ["TEA.example"]})), others);
    assert_eq!(urls(json!({"query": "x", "limit": 1})), below[..1]);
}

#[test]
fn what_an_engine_says_against_a_search_is_told_with_what_to_do() {
    let brave = json!({"type": "ErrorResponse", "error": {"status": 422,
        "code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token is invalid."}});
    let tavily = json!({"detail": {"error": "Unauthorized: missing or invalid API key."}});
    let exa = json!({"requestId": "r", "error": "Invalid API key", "tag": "INVALID_API_KEY"});
    let limit = json!({"detail": {"error": "This request exceeds your plan's set usage limit."}});
    let rows = [
        (EngineKind::Brave, 422, &brave, "token is invalid", "Change the query"),
        (EngineKind::Tavily, 401, &tavily, "missing or invalid", "web.search.key_variable"),
        (EngineKind::Exa, 401, &exa, "Invalid API key", "web.search.key_variable"),
        (EngineKind::Tavily, 432, &limit, "usage limit", "plan of the key"),
        (EngineKind::Brave, 429, &json!({}), "429", "Search later"),
        (EngineKind::Searxng, 403, &json!(null), "403", "search.formats"),
        (EngineKind::Exa, 500, &json!([]), "500", "once more later"),
        (
            EngineKind::Tavily,
            200,
            &json!({"detail": "no"}),
            "not one of a search",
            "web.search.address",
        ),
        (EngineKind::Searxng, 200, &json!({}), "not one of a search", "web.search.address"),
    ];
    for (kind, status, body, wanted, hint) in rows {
        let engine = engine(kind);
        let error = answer(&engine, &response(status, body)).and_then(|body| engine.hits(&body));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains(hint), "{kind:?} {status}: {error}");
    }
    let engine = engine(EngineKind::Brave);
    let page = WebResponse { status: 200, body: "<html>".into(), ..WebResponse::default() };
    assert!(answer(&engine, &page).unwrap_err().to_string().contains("no JSON"));
    let moved = WebResponse { elsewhere: Some("https://x.example/".into()), ..page.clone() };
    assert!(answer(&engine, &moved).unwrap_err().to_string().contains("x.example"));
    let cut = WebResponse { end: BodyEnd::Full, ..page };
    assert!(answer(&engine, &cut).unwrap_err().to_string().contains("not whole"));
    // Of nothing it found nothing.
    let empty = json!({"type": "search", "query": {}});
    let hits = engine.hits(&empty).unwrap();
    let shown = outcome("brave", &query_of(json!({"query": "x"})).unwrap(), hits);
    assert!(format!("{:?}", shown.content).contains("finds nothing"));
}

#[test]
fn arguments_that_make_no_search_are_named() {
    let rows = [
        (json!({"query": "  "}), "query is empty"),
        (json!({"query": "x".repeat(2_001)}), "2001 bytes"),
        (json!({"query": "x", "domains": ["a.org/b"]}), "\"a.org/b\" is no host"),
        (json!({"query": "x", "blocked": ["https://a.org"]}), "is no host"),
        (json!({"query": "x", "domains": ["a.org"], "blocked": ["b.org"]}), "both given"),
        (json!({"query": "x", "domains": vec!["a.org"; 51]}), "51 hosts"),
    ];
    for (input, wanted) in rows {
        let error = query_of(input).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    // An empty list is none.
    assert!(query_of(json!({"query": "x", "domains": ["a.org"], "blocked": []})).is_ok());
}

#[test]
fn long_and_hostile_texts_are_short_and_on_one_line() {
    let hit = Hit {
        title: "[bank](https://evil.example)\n1. y".repeat(100),
        url: "https://tea.example/".into(),
        snippet: "x\u{0}\ty ".repeat(1_000),
        date: Some("z".repeat(500)),
    };
    let shown = outcome("exa", &query_of(json!({"query": "x"})).unwrap(), vec![hit]);
    let data = shown.data.clone().unwrap();
    let length = |name: &str| data["results"][0][name].as_str().unwrap().chars().count();
    assert!(length("title") <= TITLE + 3 && length("snippet") <= SNIPPET + 3);
    assert!(length("date") <= 43);
    assert!(!data["results"][0]["title"].as_str().unwrap().contains('\n'));
    let Some(Shape::Markdown { text }) = shown.detail.map(|detail| detail.shape) else { panic!() };
    assert!(text.contains("\\[bank\\](https:"), "{text}");
}
