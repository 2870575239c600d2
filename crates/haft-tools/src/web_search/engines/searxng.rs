//! `SearXNG`: `GET /search?format=json`, as its documentation of 2026 writes it.

use haft_tool::WebRequest;
use serde_json::Value;

use super::{Engine, Hit, optional, text, with_sites};

pub(super) const ENGINE: Engine = Engine {
    name: "searxng",
    address: "",
    key_variable: "",
    request: |engine, query| {
        let arguments = [("q", &*with_sites(query)), ("format", "json")];
        let request = WebRequest::get(engine.with("/search", &arguments)?)
            .with_header("accept", "application/json");
        // A proxy before it may want one.
        Ok(match engine.key() {
            Ok(key) => request.with_header("authorization", &format!("Bearer {key}")),
            Err(_) => request,
        })
    },
    hits: |answer| {
        let hit = |result: &Value| Hit {
            title: text(result, "title"),
            url: text(result, "url"),
            snippet: text(result, "content"),
            date: optional(result, "publishedDate"),
        };
        Some(answer["results"].as_array()?.iter().map(hit).collect())
    },
};
