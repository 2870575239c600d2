//! What models cost, and how big they are beside each other.
//!
//! **Invariant:** a price that is not known is none, never zero: what was free is said to be free.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// What a million tokens cost, in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that no cache has.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the cache; without it as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the cache; without it as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Input written to a cache that holds for an hour; without it as `cache_write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
}

/// Prices of one model: the usual ones, and those of long requests where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// For all requests, or for those that are not long.
    #[serde(flatten)]
    pub usual: Price,
    /// From how many input tokens on, those of the cache included, a whole request costs more, and
    /// what it costs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<(u64, Price)>,
}

/// Tokens in the unit of prices.
const MILLION: f64 = 1e6;

impl Prices {
    /// What a request costs, in dollars.
    pub fn cost(&self, usage: Usage) -> f64 {
        let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        self.of_request(input).cost(usage)
    }

    /// What holds for a request with so many input tokens.
    pub fn of_request(&self, input: u64) -> Price {
        match self.long {
            Some((from, price)) if input > from => price,
            _ => self.usual,
        }
    }
}

impl Price {
    /// What these tokens cost, in dollars.
    pub fn cost(&self, usage: Usage) -> f64 {
        let written = self.cache_write.unwrap_or(self.input);
        // Counts beyond 2^53 are no counts of a request.
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
        let dollars = |tokens: u64, price: f64| tokens as f64 * price / MILLION;
        dollars(usage.input, self.input)
            + dollars(usage.output, self.output)
            + dollars(usage.cache_read, self.cache_read.unwrap_or(self.input))
            + dollars(usage.cache_write, written)
    }
}

/// How big a model is beside the others of its maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Fast and cheap: for summaries and titles.
    Small,
    /// For most work.
    Medium,
    /// For what is hard.
    Large,
}

impl Tier {
    /// All, the smallest first.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// Its name, as settings write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price {
            input: 2.0,
            output: 10.0,
            cache_read: Some(0.2),
            cache_write: Some(2.5),
            cache_write_1h: Some(4.0),
        };
        let usage = Usage { input: 1_000, cache_read: 100_000, cache_write: 10_000, output: 500 };
        assert!(close(price.cost(usage), 0.002 + 0.02 + 0.025 + 0.005));
        // What has no price of its own costs what input does.
        let plain = Price { input: 2.0, output: 10.0, ..Price::default() };
        assert!(close(plain.cost(usage), 0.222 + 0.005));
    }

    #[test]
    fn a_long_request_costs_more_as_a_whole() {
        let usual = Price { input: 2.0, output: 10.0, ..Price::default() };
        let long = Price { input: 4.0, output: 15.0, ..Price::default() };
        let prices = Prices { usual, long: Some((200_000, long)) };
        let usage = |input, cache_read| Usage { input, cache_read, ..Usage::default() };
        assert!(close(prices.cost(usage(100_000, 100_000)), 0.4));
        assert!(close(prices.cost(usage(100_001, 100_000)), 0.800_004));
    }
}
