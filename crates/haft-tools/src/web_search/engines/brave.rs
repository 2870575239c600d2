//! Brave Search: `GET /res/v1/web/search`, as its API documentation of 2026 writes it.

use haft_tool::WebRequest;
use html_escape::decode_html_entities;
use serde_json::Value;

use super::{Engine, Hit, optional, text, with_sites};

pub(super) const ENGINE: Engine = Engine {
    name: "brave",
    address: "https://api.search.brave.com",
    key_variable: "BRAVE_API_KEY",
    request: |engine, query| {
        let arguments = [
            ("q", &*with_sites(query)),
            ("count", &query.limit.to_string()),
            ("text_decorations", "false"),
            ("result_filter", "web"),
        ];
        Ok(WebRequest::get(engine.with("/res/v1/web/search", &arguments)?)
            .with_header("accept", "application/json")
            .with_header("x-subscription-token", engine.key()?))
    },
    hits,
};

fn hits(answer: &Value) -> Option<Vec<Hit>> {
    // Without a result there is no list of them.
    answer.get("type").filter(|kind| *kind == "search").or_else(|| answer.get("web"))?;
    let results = answer["web"]["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let hit = |result: &Value| Hit {
        title: decode_html_entities(&text(result, "title")).into_owned(),
        url: text(result, "url"),
        snippet: decode_html_entities(&text(result, "description")).into_owned(),
        date: optional(result, "page_age").or_else(|| optional(result, "age")),
    };
    Some(results.iter().map(hit).collect())
}
