//! What is known of a model: by the settings, otherwise by the catalogue.

use haft_config::{ModelPrice, ModelTier, Settings};
use haft_llm::{Entry, ModelRef, catalogue};
use haft_types::{Effort, Price, Prices, Tier};

/// Tokens of a request that are reckoned with where nobody knows the model.
pub const UNKNOWN_CONTEXT: u64 = 32_768;

/// What is known of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// Most tokens of a request with its answer; none where that is not known.
    pub context: Option<u64>,
    /// Most tokens of an answer; none where that is not known.
    pub output: Option<u64>,
    /// Most tokens that a person wants an answer to have: requests say so.
    pub max_tokens: Option<u32>,
    /// What it costs; none where that is not known.
    pub prices: Option<Prices>,
    /// How big it is; none where that is not known.
    pub tier: Option<Tier>,
    /// How hard it can be told to think; empty where it does not think or that is not known.
    pub efforts: Vec<Effort>,
    /// Whether it takes images.
    pub vision: bool,
    /// Whether a list of things to do helps it.
    pub todo: bool,
}

/// What is known of a model.
pub fn facts(reference: &ModelRef, settings: &Settings) -> ModelFacts {
    let name = reference.to_string();
    let (own, known) = (settings.models.get(&name), catalogue().get(&name));
    let of = |entry: &Entry| entry.output;
    let vision = known.map_or_else(|| reference.takes_images(), |entry| entry.vision);
    ModelFacts {
        context: own.and_then(|own| own.context).or(known.map(|entry| entry.context)),
        output: own.and_then(|own| own.output).or_else(|| known.and_then(of)),
        max_tokens: own.and_then(|own| u32::try_from(own.output?).ok()),
        prices: own.and_then(|own| own.price.as_ref()).map(prices).or(known.map(Entry::prices)),
        tier: own.and_then(|own| own.tier).map(tier).or(known.map(|entry| entry.tier)),
        efforts: known.map(|entry| entry.efforts.clone()).unwrap_or_default(),
        vision: own.and_then(|own| own.vision).unwrap_or(vision),
        todo: own.and_then(|own| own.todo).or(known.map(|entry| entry.todo)).unwrap_or(true),
    }
}

fn prices(price: &ModelPrice) -> Prices {
    let ModelPrice { input, output, cache_read, cache_write } = *price;
    let usual = Price { input, output, cache_read, cache_write, cache_write_1h: None };
    Prices { usual, long: None }
}

const fn tier(tier: ModelTier) -> Tier {
    match tier {
        ModelTier::Small => Tier::Small,
        ModelTier::Medium => Tier::Medium,
        ModelTier::Large => Tier::Large,
    }
}

#[cfg(test)]
mod tests {
    use haft_config::Model;

    use super::*;
    use crate::app::model::named;

    #[test]
    fn settings_come_before_the_catalogue() {
        let mut settings = Settings::default();
        let of = |settings: &Settings, name: &str| facts(&named(name, settings).unwrap(), settings);
        let known = of(&settings, "openai/gpt-4o");
        assert_eq!((known.context, known.output), (Some(128_000), Some(16_384)));
        assert!(known.prices.unwrap().usual.input > 2.4);
        let unknown = of(&settings, "ollama/some");
        assert_eq!((unknown.context, unknown.prices, unknown.tier), (None, None, None));
        let price = ModelPrice { input: 1.0, output: 2.0, cache_read: None, cache_write: None };
        let own = Model {
            context: Some(9_000),
            price: Some(price),
            tier: Some(ModelTier::Small),
            ..Model::default()
        };
        settings.models.insert("openai/gpt-4o".into(), own);
        let own = of(&settings, "openai/gpt-4o");
        assert_eq!((own.context, own.output), (Some(9_000), Some(16_384)));
        assert!(own.prices.unwrap().usual.input < 1.1);
        assert_eq!(own.tier, Some(Tier::Small));
        // The maker of one says that it does better without a list.
        for (name, by_itself) in
            [("anthropic/claude-opus-5-5", false), ("openai/gpt-4o", true), ("ollama/some", true)]
        {
            assert_eq!(of(&settings, name).todo, by_itself, "{name}");
            let own = Model { todo: Some(!by_itself), ..Model::default() };
            settings.models.insert(name.into(), own);
            assert_eq!(of(&settings, name).todo, !by_itself, "{name}");
        }
    }
}
