//! Searches of the web that a provider runs by itself.

use serde_json::Value;

/// Most bytes of an item that is looked at.
const ITEM: usize = 1 << 20;
/// Most characters that are told of a search.
const TOLD: usize = 200;

/// What an item of an answer searched for, where it is such a search: the query, or the page that was
/// looked at.
pub fn hosted_search(item: &str) -> Option<String> {
    let kinds = ["\"server_tool_use\"", "\"web_search_call\""];
    if item.len() > ITEM || !kinds.iter().any(|kind| item.contains(kind)) {
        return None;
    }
    let item: Value = serde_json::from_str(item).ok()?;
    let places: &[&str] = match item["type"].as_str()? {
        "server_tool_use" if item["name"] == "web_search" => &["/input/query"],
        "web_search_call" => &["/action/query", "/action/queries/0", "/action/url"],
        _ => return None,
    };
    let text = places.iter().find_map(|place| item.pointer(place)?.as_str())?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ").chars().take(TOLD).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_searched_for_is_told_of_each_wire() {
        let rows = [
            (
                r#"{"type":"server_tool_use","name":"web_search","input":{"query":"tea\n time"}}"#,
                Some("tea time"),
            ),
            (r#"{"type":"server_tool_use","name":"code_execution","input":{"query":"x"}}"#, None),
            (r#"{"type":"web_search_call","action":{"type":"search","query":"tea"}}"#, Some("tea")),
            (
                r#"{"type":"web_search_call","action":{"type":"search","queries":["a","b"]}}"#,
                Some("a"),
            ),
            (
                r#"{"type":"web_search_call","action":{"type":"open_page","url":"https://a.example"}}"#,
                Some("https://a.example"),
            ),
            (r#"{"type":"reasoning","summary":["web_search_call"]}"#, None),
            (r#"{"type":"web_search_call"}"#, None),
            ("no \"web_search_call\" at all", None),
        ];
        for (item, wanted) in rows {
            assert_eq!(hosted_search(item).as_deref(), wanted, "{item}");
        }
    }
}
