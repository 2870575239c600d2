//! What a person forbade in a message.

use serde::{Deserialize, Serialize};

/// A sentence of a person, with the deny rules that it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// The person's own words.
    pub sentence: String,
    /// The deny rules, as settings have them.
    pub rules: Vec<String>,
}
