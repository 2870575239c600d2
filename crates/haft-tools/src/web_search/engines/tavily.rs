//! Tavily: `POST /search`, as its API documentation of 2026 writes it.

use haft_tool::WebRequest;
use serde_json::{Value, json};

use super::{Engine, Hit, optional, text};

pub(super) const ENGINE: Engine = Engine {
    name: "tavily",
    address: "https://api.tavily.com",
    key_variable: "TAVILY_API_KEY",
    request: |engine, query| {
        let body = json!({
            "query": query.text,
            "max_results": query.limit,
            "include_domains": query.domains,
            "exclude_domains": query.blocked,
        });
        Ok(WebRequest::post(engine.with("/search", &[])?, body.to_string())
            .with_header("content-type", "application/json")
            .with_header("authorization", &format!("Bearer {}", engine.key()?)))
    },
    hits: |answer| {
        let hit = |result: &Value| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: text(result, "content"),
            date: optional(result, "published_date"),
        };
        Some(answer["results"].as_array()?.iter().map(hit).collect())
    },
};
