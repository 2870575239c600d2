//! Refuses arguments that name one field twice: which of the two is meant would be a guess.

use std::{collections::HashSet, fmt};

use haft_types::ToolError;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

/// Looks through the arguments as they were written.
///
/// Text that is no JSON is not looked at: it was refused or mended elsewhere.
///
/// # Errors
/// Names the first field that is there twice.
pub(crate) fn refuse(raw: &str, tool: &str) -> Result<(), ToolError> {
    first(raw).map_or(Ok(()), |name| Err(refusal(&name, tool)))
}

/// The first name that is there twice in one object.
pub(super) fn first(raw: &str) -> Option<String> {
    let mut twice = None;
    let mut json = serde_json::Deserializer::from_str(raw);
    // The error is only the way out; what was found is in `twice`.
    let _ = Look(&mut twice).deserialize(&mut json);
    twice
}

/// What is wrong with arguments that have a name twice.
pub(super) fn refusal(name: &str, tool: &str) -> ToolError {
    let name: String = name.chars().take(100).collect();
    ToolError::new(format!("the arguments of {tool} have {name:?} twice"))
        .hint("Nothing was run. Send each argument once.")
}

/// Where the first name that is there twice goes.
struct Look<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Look(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            if seen.contains(&name) {
                *self.0 = Some(name);
                return Err(A::Error::custom("a name is there twice"));
            }
            seen.insert(name);
            fields.next_value_seed(Look(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_name_of_one_object_counts() {
        for fine in [
            "{}",
            "",
            "{\"a\": 1, \"b\": {\"a\": [null, -1, 1.5, \"x\", true]}}",
            "[{\"a\":1},{\"a\":2}]",
        ] {
            assert!(refuse(fine, "read").is_ok(), "{fine}");
        }
        for bad in ["{\"a\": 1, \"a\": 1}", "{\"b\": [{\"a\": 1, \"\\u0061\": 2}]}"] {
            let error = refuse(bad, "read").unwrap_err();
            assert!(error.message.contains("\"a\" twice"), "{error}");
        }
    }
}
