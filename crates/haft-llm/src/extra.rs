//! Fields of an answer that only its server understands, gathered to be sent back to it.
//!
//! **Invariant:** what is gathered has a bound: beyond it all of it is dropped, because a part of
//! it may be worth nothing to the server, or be refused.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Bytes of JSON that are gathered of one call or message at most.
const MOST: usize = 1 << 20;
/// Fields of list items that go on in the next piece; all others replace what was there.
const GROWING: [&str; 4] = ["text", "summary", "data", "content"];

/// Fields as they came so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    fields: Map<String, Value>,
    /// Where the items of lists are, by the name of the field and their number.
    places: HashMap<(String, u64), usize>,
    size: usize,
}

impl Extra {
    /// Takes one field; the last value counts.
    pub(crate) fn set(&mut self, key: &str, value: &Value) {
        if !value.is_null() && self.has_room(value) {
            self.fields.insert(key.to_owned(), value.clone());
        }
    }

    /// Takes one field in pieces: texts go on, items of lists go on where their `index` is known.
    pub(crate) fn join(&mut self, key: &str, value: &Value) {
        if value.is_null() || !self.has_room(value) {
            return;
        }
        match (self.fields.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            (_, Value::Array(items)) => {
                for item in items {
                    self.item(key, item);
                }
            }
            _ => drop(self.fields.insert(key.to_owned(), value.clone())),
        }
    }

    fn item(&mut self, key: &str, item: &Value) {
        let list = self.fields.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return };
        let Some(number) = item["index"].as_u64() else {
            list.push(item.clone());
            return;
        };
        let place = *self.places.entry((key.to_owned(), number)).or_insert(list.len());
        let Some(known) = list.get_mut(place) else {
            list.push(item.clone());
            return;
        };
        for (name, value) in item.as_object().into_iter().flatten() {
            match (known.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more))
                    if GROWING.contains(&name.as_str()) =>
                {
                    text.push_str(more);
                }
                _ => known[name] = value.clone(),
            }
        }
    }

    /// Counts a value; without room for it, all is dropped for good.
    fn has_room(&mut self, value: &Value) -> bool {
        if self.size <= MOST {
            self.size = self.size.saturating_add(length(value));
        }
        if self.size > MOST {
            self.fields.clear();
            self.places.clear();
        }
        self.size <= MOST
    }

    /// The fields as a JSON object; none where there are none.
    pub(crate) fn take(&mut self) -> Option<String> {
        let fields = std::mem::take(&mut self.fields);
        (!fields.is_empty()).then(|| Value::Object(fields).to_string())
    }
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
            extra.join("reasoning_details", &piece);
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
    fn what_has_no_bound_is_dropped_whole() {
        let mut extra = Extra::default();
        extra.set("a", &json!(1));
        for _ in 0..3 {
            extra.join("b", &json!("x".repeat(MOST / 2)));
        }
        extra.set("c", &json!(1));
        assert_eq!(extra.take(), None);
    }
}
