//! What is known of models: windows, limits, prices, how big they are. One data file, with its date.
//!
//! A model that is not in it works all the same: nothing is known of it then.
//!
//! Source of `data/models.json`: the makers' price pages, as the open price list of the `litellm`
//! package had them on the file's date.

use std::sync::LazyLock;

use haft_types::{Effort, Price, Prices, Tier};
use serde::Deserialize;

/// What is known of one model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The model, as a person names it: `SERVER/NAME`.
    pub id: String,
    /// Most tokens of a request, its answer included where the maker counts that in.
    pub context: u64,
    /// Most tokens of an answer, where that is known.
    #[serde(default)]
    pub output: Option<u64>,
    /// Whether it takes images.
    pub vision: bool,
    /// How big it is beside the others of its maker.
    pub tier: Tier,
    /// How hard it can be told to think; empty where it does not think.
    #[serde(default)]
    pub efforts: Vec<Effort>,
    /// Whether a todo list helps it: makers say of their newest models that these do better without.
    #[serde(default = "yes")]
    pub todo: bool,
    /// The model of the same maker that takes its place where it cannot be reached.
    #[serde(default)]
    pub successor: Option<String>,
    price: Price,
    /// From how many input tokens on a whole request costs `long_price`.
    #[serde(default)]
    long_from: Option<u64>,
    #[serde(default)]
    long_price: Option<Price>,
}

const fn yes() -> bool {
    true
}

impl Entry {
    /// What it costs.
    pub fn prices(&self) -> Prices {
        Prices { usual: self.price, long: self.long_from.zip(self.long_price) }
    }
}

/// All entries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The day of its facts, as `YYYY-MM-DD`.
    pub date: String,
    /// For each server the model that is taken where a person has its key and names none.
    pub defaults: Vec<String>,
    /// The entries, by their ids in order.
    pub models: Vec<Entry>,
}

/// The entries that are built in, read at their first use: most commands need none.
static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| {
    // A test reads the file; where it were broken all the same, nothing would be known.
    serde_json::from_str(include_str!("../data/models.json")).unwrap_or_else(|_| Catalogue {
        date: String::new(),
        defaults: Vec::new(),
        models: Vec::new(),
    })
});

/// The entries that are built in.
pub fn catalogue() -> &'static Catalogue {
    &BUILT_IN
}

impl Catalogue {
    /// The entry of a model, `SERVER/NAME`. A name with a date at its end is the one without it.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        let find = |id: &str| {
            let at = self.models.binary_search_by(|entry| entry.id.as_str().cmp(id)).ok()?;
            self.models.get(at)
        };
        // One server under two names, by its two wires.
        let own = id.strip_prefix("openai-responses/").map(|name| format!("openai/{name}"));
        let id = own.as_deref().unwrap_or(id);
        find(id).or_else(|| find(without_date(id)?))
    }

    /// The model of a server that is taken where a person names none.
    pub fn default_of(&self, server: &str) -> Option<&str> {
        let of = |id: &&String| id.split_once('/').is_some_and(|(name, _)| name == server);
        self.defaults.iter().find(of).map(String::as_str)
    }
}

/// A name without the date of its release: `-20250929`, `-2025-09-29`.
fn without_date(id: &str) -> Option<&str> {
    let is_digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (rest, last) = id.rsplit_once('-')?;
    if is_digits(last, 8) && last.starts_with("20") {
        return Some(rest);
    }
    let (before, month) = rest.rsplit_once('-')?;
    let (name, year) = before.rsplit_once('-')?;
    let is_date = is_digits(last, 2) && is_digits(month, 2) && is_digits(year, 4);
    (is_date && year.starts_with("20")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn the_file_is_whole() {
        let all: Catalogue = serde_json::from_str(include_str!("../data/models.json")).unwrap();
        assert_eq!(&all, catalogue());
        assert!(all.models.len() > 50);
        assert!(all.models.is_sorted_by(|a, b| a.id < b.id), "each once, in order");
        let servers = presets();
        for entry in &all.models {
            let (server, name) = entry.id.split_once('/').unwrap();
            assert!(servers.iter().any(|known| known.name == server) && !name.is_empty());
            assert!(entry.context >= 16_000, "{}", entry.id);
            assert!(entry.output.is_none_or(|output| output <= entry.context), "{}", entry.id);
            let price = entry.prices().usual;
            assert!(price.input > 0.0 && price.output >= price.input, "{}", entry.id);
            assert!(price.cache_read.is_none_or(|read| read < price.input), "{}", entry.id);
            assert_eq!(entry.long_from.is_some(), entry.long_price.is_some(), "{}", entry.id);
            let successor = entry.successor.as_deref();
            assert!(successor.is_none_or(|id| id != entry.id && all.get(id).is_some()));
        }
        for id in &all.defaults {
            let server = id.split_once('/').unwrap().0;
            assert_eq!(all.default_of(server), Some(id.as_str()));
            assert!(all.get(id).is_some(), "{id}");
        }
    }

    #[test]
    fn a_dated_name_is_that_of_the_model() {
        let all = catalogue();
        let id = |name: &str| all.get(name).map(|entry| entry.id.as_str());
        assert_eq!(id("anthropic/claude-sonnet-4-5"), Some("anthropic/claude-sonnet-4-5"));
        assert_eq!(id("anthropic/claude-sonnet-4-5-20250929"), Some("anthropic/claude-sonnet-4-5"));
        assert_eq!(id("openai/gpt-4o-2024-08-06"), Some("openai/gpt-4o"));
        assert_eq!(id("openai-responses/gpt-4o-2024-08-06"), Some("openai/gpt-4o"));
        for other in ["openai/gpt-9", "anthropic/", "", "openai/gpt-4o-20", "openai/gpt-4o-1234"] {
            assert_eq!(id(other), None, "{other}");
        }
    }
}
