//! Names of models in the settings.
//!
//! **Does not know:** which servers there are: whoever reads the names finds that out.

use serde::{Deserialize, Deserializer, de::Error};

/// Longest name, in bytes.
const LONGEST: usize = 300;
/// Most names of a list: each of them may be waited for.
const MOST: usize = 8;

/// A name, or none.
pub(crate) fn one<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(source)?.as_deref().map(checked).transpose()
}

/// A list of names; a text alone is one.
pub(crate) fn some<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "it must be a model's name, or a list of such names")]
    enum Names {
        One(String),
        Some(Vec<String>),
    }
    let names = match Names::deserialize(source)? {
        Names::One(name) => vec![name],
        Names::Some(names) => names,
    };
    if names.len() > MOST {
        return Err(D::Error::custom(format!("it must have at most {MOST} models")));
    }
    names.iter().map(|name| checked(name)).collect()
}

fn checked<E: Error>(name: &str) -> Result<String, E> {
    let name = name.trim();
    if name.is_empty() {
        return Err(E::custom("it must be a model's name, as SERVER/NAME; leave it out for none"));
    }
    if name.len() > LONGEST || name.contains(char::is_control) {
        return Err(E::custom(format!(
            "it must be a model's name, as SERVER/NAME, of at most {LONGEST} bytes on one line"
        )));
    }
    Ok(name.to_owned())
}
