//! What fills the window of a model, for people; and how big that window is.

use std::fmt::Write as _;

use haft_agent::{ContextLimits, WindowUse};
use haft_config::Settings;
use haft_llm::ModelRef;

use super::{
    base::Base,
    cost::dollars,
    model::{ModelFacts, UNKNOWN_CONTEXT, facts, named, window_of},
    session::Core,
};
use crate::plain::safe;

/// When a conversation with this model is shortened. A script has no window unless settings give
/// it one. A server of this machine is asked for that of a model that nobody else knows.
///
/// Returns a sentence for people where the window is a guess.
pub async fn limits(reference: &ModelRef, base: &Base) -> (ContextLimits, Option<String>) {
    let settings = &base.loaded.settings;
    let (mut window, mut guessed) = (facts(reference, settings).context, None);
    if let (None, ModelRef::Server(server, name)) = (window, reference) {
        let (server, name, environment) = (server.clone(), name.clone(), base.environment.clone());
        let asked = move || window_of(&server, &environment, &name);
        // A server that cannot be asked says nothing.
        window = tokio::task::spawn_blocking(asked).await.unwrap_or_default();
        if window.is_none() {
            window = Some(UNKNOWN_CONTEXT);
            guessed = Some(format!(
                "nobody knows the window of {reference}: {UNKNOWN_CONTEXT} tokens are assumed; set \
                 models.\"{reference}\".context in ~/.haft/settings.toml"
            ));
        }
    }
    (limits_of(window, settings), guessed)
}

/// When a conversation is shortened for a window of this size.
pub fn limits_of(window: Option<u64>, settings: &Settings) -> ContextLimits {
    let context = &settings.context;
    ContextLimits {
        window,
        mask_from: context.mask_percent,
        compact_from: context.compact_percent,
        most_after: context.after_percent,
    }
}

/// A row for each part of the next request, with its tokens and, where the price is known, what they
/// cost as input that no cache has.
pub fn shown(core: &Core, model: &str, used: &WindowUse) -> String {
    let settings = &core.base.loaded.settings;
    let known = named(model, settings).ok().map(|reference| facts(&reference, settings));
    rows(used, known.as_ref())
}

fn rows(used: &WindowUse, known: Option<&ModelFacts>) -> String {
    let all: u64 = used.rows.iter().map(|(_, tokens)| tokens).sum();
    let price = known.and_then(|known| known.prices).map(|prices| prices.of_request(all).input);
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
    let cost = |tokens: u64| price.map(|price| dollars(tokens as f64 * price / 1e6));
    let mut text = String::new();
    let mut row = |name: &str, tokens: u64| {
        let cost = cost(tokens).map(|cost| format!("  {cost:>9}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{tokens:>10}{cost}  {}", safe(name));
    };
    for (name, tokens) in &used.rows {
        row(name, *tokens);
    }
    row("all, as bytes / 4", all);
    if used.images > 0 {
        row("images, estimated by their number", used.images);
    }
    if let Some(counted) = used.counted {
        let _ = writeln!(
            text,
            "the server counted {counted} tokens for the last request: {:.2} of the estimate",
            used.factor
        );
    }
    let _ = match used.window {
        Some(window) => {
            let share = (all + used.images).saturating_mul(100).div_ceil(window.max(1));
            writeln!(text, "that is {share} % of the model's window of {window} tokens")
        }
        None => writeln!(text, "this model has no known window"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_add_up() {
        let rows_of = vec![("system prompt".to_owned(), 1_000), ("results".to_owned(), 500)];
        let used = WindowUse {
            rows: rows_of,
            images: 1_600,
            window: Some(10_000),
            counted: Some(1_650),
            factor: 1.1,
        };
        let text = rows(&used, None);
        assert!(text.contains("      1500  all, as bytes / 4\n"), "{text}");
        assert!(text.contains("      1600  images"), "{text}");
        assert!(text.contains("counted 1650 tokens for the last request: 1.10 of"), "{text}");
        assert!(text.ends_with("that is 31 % of the model's window of 10000 tokens\n"), "{text}");
    }
}
