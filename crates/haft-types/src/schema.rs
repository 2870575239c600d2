//! A JSON Schema that is made when it is first looked at.
//!
//! Making the schemas of all tools takes longer than most calls of one tool: whoever calls one
//! tool pays for that one.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON Schema (2020-12), or null where there is none; reads as the [`Value`] that it is.
///
/// Clones share the schema once it was made.
#[derive(Clone, Default)]
pub struct Schema {
    made: Arc<OnceLock<Value>>,
    /// Makes it; none where it was given, or where there is none.
    make: Option<fn() -> Value>,
}

impl Schema {
    /// A schema that `make` returns, called at most once, on first use.
    #[must_use]
    pub fn later(make: fn() -> Value) -> Self {
        Self { made: Arc::default(), make: Some(make) }
    }

    /// Reports whether there is no schema, without making one.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.make.is_none() && self.made.get().is_none_or(Value::is_null)
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.made.get_or_init(|| self.make.map_or(Value::Null, |make| make()))
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self { made: Arc::new(OnceLock::from(value)), make: None }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.made, &other.made) || **self == **other
    }
}

impl Eq for Schema {}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_made_once_and_only_when_looked_at() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let schema = Schema::later(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
            json!({"type": "object"})
        });
        let clone = schema.clone();
        assert!(!schema.is_none());
        assert_eq!(MADE.load(Ordering::Relaxed), 0);
        assert_eq!(schema["type"], "object");
        assert_eq!(clone.to_string(), r#"{"type":"object"}"#);
        assert_eq!(clone, schema);
        assert_eq!(MADE.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn it_is_written_and_read_as_its_value() {
        let schema: Schema = serde_json::from_str(r#"{"a":[1]}"#).unwrap();
        assert_eq!(serde_json::to_string(&schema).unwrap(), r#"{"a":[1]}"#);
        assert!(Schema::default().is_none() && Schema::from(Value::Null).is_none());
        assert!(Schema::default().is_null());
        assert!(!schema.is_none());
    }
}
