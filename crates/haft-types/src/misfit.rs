//! What a deserializer says of a value that does not fit, in words of JSON.
//!
//! **Invariant:** no name of a type of Rust is in what comes out: who reads it writes JSON or TOML.
//! A message that is not known stays as it is.

use std::fmt::{self, Display};

/// Why a value does not fit, as `Display` of a deserializer's error says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The value that is there, as JSON or in words; none where the message does not say it.
    pub got: Option<String>,
    /// The expected value, or the whole reason where it is not about one value.
    pub wanted: String,
}

impl Misfit {
    /// Parses an error message of serde.
    pub fn of(error: &impl Display) -> Self {
        let text = error.to_string();
        let parts = text.rsplit_once(", expected ").and_then(|(head, wanted)| {
            let got = head.split_once(": ").filter(|(what, _)| KINDS.contains(what));
            let variant = head.strip_prefix("unknown variant ").map(|name| (name, "`", "\""));
            let length = head.strip_prefix("invalid length ").map(|length| (length, "", ""));
            match (got, variant.or(length)) {
                (Some((_, got)), _) => Some((self::got(got), wanted)),
                (None, Some((got, old, new))) => Some((got.replace(old, new), wanted)),
                (None, None) => None,
            }
        });
        match parts {
            Some((got, wanted)) => Self { got: Some(got), wanted: self::wanted(wanted) },
            None if text.contains(" untagged enum ") => {
                Self { got: None, wanted: "one of the forms that are known for it".to_owned() }
            }
            None => Self { got: None, wanted: text.replace('`', "\"") },
        }
    }
}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.got {
            Some(got) => write!(f, "{got}, wanted: {}", self.wanted),
            None => f.write_str(&self.wanted),
        }
    }
}

/// How messages about one value begin.
const KINDS: &[&str] = &["invalid type", "invalid value"];

/// What is there, without the name of its type.
fn got(text: &str) -> String {
    let named = ["integer `", "floating point `", "boolean `", "character `"];
    let bare = named.iter().find_map(|kind| text.strip_prefix(kind));
    if let Some(bare) = bare.and_then(|bare| bare.strip_suffix('`')) {
        return bare.to_owned();
    }
    match text {
        "map" | "struct" => "an object".to_owned(),
        "sequence" | "tuple" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "null".to_owned(),
        other => other.strip_prefix("string ").unwrap_or(other).to_owned(),
    }
}

/// What would fit, without the name of its type.
fn wanted(text: &str) -> String {
    let whole =
        |least: &dyn Display, most: &dyn Display| format!("a whole number from {least} to {most}");
    match text {
        "i8" => whole(&i8::MIN, &i8::MAX),
        "i16" => whole(&i16::MIN, &i16::MAX),
        "i32" => whole(&i32::MIN, &i32::MAX),
        "i64" | "isize" => whole(&i64::MIN, &i64::MAX),
        "u8" => whole(&u8::MIN, &u8::MAX),
        "u16" => whole(&u16::MIN, &u16::MAX),
        "u32" => whole(&u32::MIN, &u32::MAX),
        "u64" | "usize" => whole(&u64::MIN, &u64::MAX),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "string" | "a borrowed string" => "text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "unit" => "null".to_owned(),
        other => {
            let object = ["struct ", "internally tagged enum ", "adjacently tagged enum ", "enum "];
            if object.iter().any(|kind| other.starts_with(kind)) {
                "an object".to_owned()
            } else {
                other.replace('`', "\"")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Fast,
        Well,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only what does not fit is looked at")]
    enum Either {
        Number(u64),
        Text(String),
    }

    fn said<T: for<'de> Deserialize<'de> + fmt::Debug>(value: &serde_json::Value) -> String {
        Misfit::of(&T::deserialize(value).unwrap_err()).to_string()
    }

    #[test]
    fn types_of_rust_are_told_as_what_is_wanted() {
        for (text, wanted) in [
            (
                said::<i64>(&json!(u64::MAX)),
                "18446744073709551615, wanted: a whole number from -9223372036854775808 to \
                 9223372036854775807",
            ),
            (said::<u8>(&json!(1e18)), "1e+18, wanted: a whole number from 0 to 255"),
            (said::<u32>(&json!(-1)), "-1, wanted: a whole number from 0 to 4294967295"),
            (said::<f64>(&json!("x, expected y")), "\"x, expected y\", wanted: a number"),
            (said::<bool>(&json!(null)), "null, wanted: true or false"),
            (said::<String>(&json!({"a": 1})), "an object, wanted: text in quotes"),
            (said::<Vec<u8>>(&json!(true)), "true, wanted: a list"),
            (said::<Choice>(&json!("slow")), "\"slow\", wanted: \"fast\" or \"well\""),
            (said::<Either>(&json!([])), "one of the forms that are known for it"),
        ] {
            assert_eq!(text, wanted);
        }
        let own = serde::de::Error::custom("\"x\" is no mode: use ask");
        let own: serde_json::Error = own;
        assert_eq!(Misfit::of(&own).to_string(), "\"x\" is no mode: use ask");
        assert!(matches!(Choice::deserialize(&json!("well")), Ok(Choice::Well)));
        assert!(matches!(Choice::deserialize(&json!("fast")), Ok(Choice::Fast)));
    }
}
