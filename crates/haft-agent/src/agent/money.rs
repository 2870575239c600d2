//! The money of a turn: what its requests may cost.
//!
//! **Invariant:** no request is made that could cost more than is left. Before each one its output is
//! limited to what the money buys behind its input, reckoned as if no cache had any of it. What an
//! answer cost that broke off is not known: its server tells no counts.

use haft_types::{Prices, Usage};

use super::Agent;

/// With fewer tokens of output a request is not worth its input.
const LEAST_TOKENS: f64 = 4_096.0;
/// Tokens that a model may write where nobody knows how many it can.
const USUAL_TOKENS: f64 = 16_384.0;
/// Tokens of a summary at most.
const SUMMARY_TOKENS: f64 = 16_384.0;
/// Tokens in the unit of prices.
const MILLION: f64 = 1e6;

/// The money of a turn: its limit, and what was spent of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Money {
    most: Option<f64>,
    spent: f64,
}

impl Money {
    /// Whether it buys a summary of so many tokens by a model, behind what was spent since.
    ///
    /// # Errors
    /// It does not, or nobody knows: in words for people.
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
    pub fn buys(
        self,
        model: &str,
        prices: Option<Prices>,
        (since, tokens): (f64, u64),
    ) -> Result<(), String> {
        let Some(most) = self.most else { return Ok(()) };
        let Some(prices) = prices else { return Err(unknown(most, model)) };
        let price = prices.of_request(tokens);
        let cost = (tokens as f64 * price.input + SUMMARY_TOKENS * price.output) / MILLION;
        let spent = self.spent + since;
        if spent + cost <= most {
            return Ok(());
        }
        Err(format!(
            "the limit of ${most}: ${spent:.4} was spent, and a summary, for which there has to be \
             room, may cost ${cost:.4}"
        ))
    }
}

/// What is said of a model without a price.
fn unknown(most: f64, model: &str) -> String {
    format!(
        "the limit of ${most}: nobody knows what {model} costs; set models.\"{model}\".price in \
         ~/.haft/settings.toml"
    )
}

impl Agent {
    /// The limit of tokens for the next answer.
    ///
    /// # Errors
    /// The money left does not buy one, in words for people.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of tokens is far below 2^52, and what is left is positive"
    )]
    pub(super) fn affordable(&self) -> Result<Option<u32>, String> {
        let wanted = self.setup.max_tokens;
        let Some(most) = self.money_limit() else { return Ok(wanted) };
        let Some(prices) = self.setup.prices else {
            return Err(unknown(most, &self.setup.name));
        };
        let input = self.size();
        let price = prices.of_request(input);
        let input =
            input as f64 * price.cache_write.unwrap_or(price.input).max(price.input) / MILLION;
        let left = most - self.spent - input;
        if price.output <= 0.0 && left >= 0.0 {
            return Ok(wanted);
        }
        let tokens = left / price.output * MILLION;
        if tokens < LEAST_TOKENS {
            let next = input + LEAST_TOKENS * price.output / MILLION;
            return Err(format!(
                "the limit of ${most}: ${:.4} was spent, and the next request may cost ${next:.4}",
                self.spent
            ));
        }
        // Always told: without a limit some servers let a model write as much as it can.
        let usual = self.setup.output.map_or(USUAL_TOKENS, |output| output as f64);
        Ok(Some(tokens.min(wanted.map_or(usual, f64::from)) as u32))
    }

    /// Most dollars of this turn; none where there is no such limit.
    pub(super) fn money_limit(&self) -> Option<f64> {
        self.setup.limits.cost.map(|most| most + self.raised)
    }

    /// What summaries may cost.
    pub(super) fn money_for_summaries(&self) -> Money {
        Money { most: self.money_limit(), spent: self.spent }
    }

    /// Whether the money left buys a summary of a conversation of so many tokens.
    ///
    /// # Errors
    /// It does not, in words for people.
    pub(super) fn affordable_summary(
        &self,
        prices: Option<Prices>,
        tokens: u64,
    ) -> Result<(), String> {
        self.money_for_summaries().buys(&self.setup.name, prices, (0.0, tokens))
    }

    /// Counts what an answer cost.
    pub(super) fn pay(&mut self, usage: Usage) {
        self.spent += self.setup.prices.map_or(0.0, |prices| prices.cost(usage));
    }
}
