//! Fields of an answer that only its server understands, gathered to be sent back to it.
//!
//! **Invariant:** what is gathered has a bound: beyond it all of it is dropped, because a part of
//! it may be worth nothing to the server, or be refused.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::json;

/// Bytes of JSON that are gathered of one call or message at most.
const MOST: usize = 1 << 20;
/// Fields of list items that go on in the next piece; all others replace what was there.
const GROWING: [&str; 4] = ["text", "summary", "data", "content"];

/// Fields as they came so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    fields: Map<String, Value>,
    /// Where the items of lists are, by the name of the field, their number and their type.
    places: HashMap<(String, u64, String), usize>,
    size: usize,
    /// True where texts hold marked halves of characters.
    marked: bool,
}

impl Extra {
    /// Takes one field; the last value counts.
    pub(crate) fn set(&mut self, key: &str, value: &Value, marked: bool) {
        let before = self.fields.get(key).map_or(0, length);
        if !value.is_null() && self.has_room(length(value), before) {
            self.marked |= marked;
            self.fields.insert(key.to_owned(), value.clone());
        }
    }

    /// Takes one field in pieces: texts go on, items of lists go on where their `index` is known.
    pub(crate) fn join(&mut self, key: &str, value: &Value, marked: bool) {
        self.marked |= marked;
        match (self.fields.get(key), value) {
            (_, Value::Array(items)) => {
                for item in items {
                    self.item(key, item);
                }
            }
            // A text that comes again as it is says nothing new.
            (Some(Value::String(text)), Value::String(more)) if text != more => {
                if self.has_room(more.len(), 0)
                    && let Some(Value::String(text)) = self.fields.get_mut(key)
                {
                    text.push_str(more);
                }
            }
            _ => self.set(key, value, marked),
        }
    }

    fn item(&mut self, key: &str, item: &Value) {
        let list = self.fields.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return };
        let kind = item["type"].as_str().unwrap_or_default().to_owned();
        let number = json::number(&item["index"]);
        let known =
            number.and_then(|number| self.places.get(&(key.to_owned(), number, kind.clone())));
        let Some(known) = known.and_then(|place| list.get_mut(*place)) else {
            let place = list.len();
            list.push(item.clone());
            if let Some(number) = number {
                self.places.insert((key.to_owned(), number, kind), place);
            }
            self.has_room(length(item), 0);
            return;
        };
        let before = length_of_fixed(known);
        let mut grown = 0;
        for (name, value) in item.as_object().into_iter().flatten() {
            match (known.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more))
                    if GROWING.contains(&name.as_str()) =>
                {
                    text.push_str(more);
                    grown += more.len();
                }
                _ => known[name] = value.clone(),
            }
        }
        let now = length_of_fixed(known) + grown;
        self.has_room(now, before);
    }

    /// Counts what came in the place of something else; without room for it, all is dropped for
    /// good.
    fn has_room(&mut self, more: usize, less: usize) -> bool {
        if self.size <= MOST {
            self.size = (self.size + more).saturating_sub(less);
        }
        if self.size > MOST {
            self.fields.clear();
            self.places.clear();
        }
        self.size <= MOST
    }

    /// The fields as a JSON object; none where there are none.
    pub(crate) fn take(&mut self) -> Option<String> {
        let fields = Value::Object(std::mem::take(&mut self.fields));
        let fields = if self.marked { json::whole_value(&fields) } else { fields };
        (fields != Value::Object(Map::new())).then(|| fields.to_string())
    }
}

/// About how many bytes of JSON the fields of an item have that are replaced by later ones.
fn length_of_fixed(item: &Value) -> usize {
    let fields = item.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !GROWING.contains(&name.as_str()))
        .map(|(_, value)| length(value))
        .sum()
}

/// About how many bytes of JSON a value has.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| length(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + length(value) + 4).sum::<usize>() + 2
        }
        _ => 8,
    }
}

/// The fields of an object that is not in `known`, but for those without a value.
pub(crate) fn unknown<'a>(
    object: &'a Value,
    known: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (key.as_str(), value));
    fields.filter(|(key, value)| !known.contains(key) && !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_lists_are_joined_by_their_number() {
        let mut extra = Extra::default();
        for piece in [
            json!([{"index": 0, "type": "reasoning.text", "text": "a", "signature": null}]),
            json!([{"index": 1, "type": "reasoning.encrypted", "data": "x"}]),
            json!([{"index": 0, "type": "reasoning.text", "text": "b", "signature": "s"}]),
            json!([{"type": "z"}]),
        ] {
            extra.join("reasoning_details", &piece, false);
        }
        let expected = json!({"reasoning_details": [
            {"index": 0, "type": "reasoning.text", "text": "ab", "signature": "s"},
            {"index": 1, "type": "reasoning.encrypted", "data": "x"},
            {"type": "z"},
        ]});
        let taken: Value = serde_json::from_str(&extra.take().unwrap()).unwrap();
        assert_eq!(taken, expected);
        assert_eq!(extra.take(), None);
    }

    #[test]
    fn what_comes_again_takes_no_room_and_halves_are_joined() {
        let mut extra = Extra::default();
        let piece = json!([{"index": "0", "type": "t", "text": "w", "format": "f".repeat(1_000)}]);
        for _ in 0..5_000 {
            extra.join("list", &piece, false);
            extra.set("same", &json!("x".repeat(1_000)), false);
            extra.join("phase", &json!("final"), false);
        }
        let (first, marked) = json::parse(r#"[{"index":0,"type":"t","text":"\ud83d"}]"#).unwrap();
        extra.join("list", &first, marked);
        let (second, marked) = json::parse(r#"[{"index":0,"type":"t","text":"\ude00"}]"#).unwrap();
        extra.join("list", &second, marked);
        let taken: Value = serde_json::from_str(&extra.take().unwrap()).unwrap();
        assert_eq!(taken["list"][0]["text"], "w".repeat(5_000) + "\u{1f600}");
        assert_eq!(taken["phase"], "final");
    }

    #[test]
    fn what_has_no_bound_is_dropped_whole() {
        let mut extra = Extra::default();
        extra.set("a", &json!(1), false);
        for n in 0..3 {
            extra.join("b", &json!(n.to_string().repeat(MOST / 2)), false);
        }
        extra.set("c", &json!(1), false);
        assert_eq!(extra.take(), None);
    }
}
