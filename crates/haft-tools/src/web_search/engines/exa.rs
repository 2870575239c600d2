//! Exa: `POST /search`, as its API documentation of 2026 writes it.

use haft_tool::WebRequest;
use serde_json::{Value, json};

use super::{Engine, Hit, optional, text};

pub(super) const ENGINE: Engine = Engine {
    name: "exa",
    address: "https://api.exa.ai",
    key_variable: "EXA_API_KEY",
    request: |engine, query| {
        let mut body = json!({
            "query": query.text,
            "numResults": query.limit,
            "contents": {"text": {"maxCharacters": 600}},
        });
        // Empty lists would leave no host.
        for (name, hosts) in
            [("includeDomains", &query.domains), ("excludeDomains", &query.blocked)]
        {
            if !hosts.is_empty() {
                body[name] = json!(hosts);
            }
        }
        Ok(WebRequest::post(engine.with("/search", &[])?, body.to_string())
            .with_header("content-type", "application/json")
            .with_header("x-api-key", engine.key()?))
    },
    hits: |answer| {
        let hit = |result: &Value| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: optional(result, "text")
                .or_else(|| result["highlights"][0].as_str().map(str::to_owned))
                .or_else(|| optional(result, "summary"))
                .unwrap_or_default(),
            date: optional(result, "publishedDate"),
        };
        Some(answer["results"].as_array()?.iter().map(hit).collect())
    },
};
