//! From a model's name to something that answers.

use std::{fs, sync::Arc, time::Duration};

use haft_config::{Environment, Http, Secret};
use haft_llm::{
    Effort, Endpoint, ModelRef, Patience, Provider, RetryPolicy, ScriptProvider, Target,
    anthropic_provider, openai_provider, parse_model,
};

use crate::exit::Failure;

/// A model that is ready to be asked; nothing is opened before the first request.
pub struct Model {
    /// Gives its answers.
    pub provider: Arc<dyn Provider>,
    /// Its id as the provider writes it.
    pub target: Target,
    /// How hard it thinks.
    pub effort: Option<Effort>,
}

/// Largest script, in bytes.
const SCRIPT_MAX: u64 = 64 << 20;

/// Makes a model from the settings; `answered` is how many answers a resumed script gave before.
pub fn model(
    name: Option<&str>,
    effort: Option<haft_config::Effort>,
    environment: &Environment,
    http: &Http,
    answered: usize,
) -> Result<Model, Failure> {
    let Some(name) = name else {
        return Err(Failure::Usage(
            "no model is chosen: give --model anthropic/NAME, openai/NAME or script:FILE, or set \
             HAFT_MODEL or `model` in settings.toml"
                .into(),
        ));
    };
    let reference = parse_model(name).map_err(|error| Failure::Usage(error.to_string()))?;
    let patience =
        Patience { silence: Duration::from_secs(http.stall_seconds), ..Patience::default() };
    let attempts = u32::try_from(http.retries).unwrap_or(u32::MAX).saturating_add(1);
    let policy = RetryPolicy { attempts, seed: seed(), ..RetryPolicy::default() };
    let key = |key: &Option<Secret>| key.as_ref().map(|key| key.expose().to_owned());
    let client = haft_net::Client::new();
    let provider = match &reference {
        ModelRef::Anthropic(_) => {
            let url = environment.anthropic_base_url.clone();
            let endpoint = Endpoint::anthropic(url, key(&environment.anthropic_api_key));
            anthropic_provider(endpoint, client, patience, policy)
        }
        ModelRef::OpenAi(_) => {
            let url = environment.openai_base_url.clone();
            let endpoint = Endpoint::openai(url, key(&environment.openai_api_key));
            openai_provider(endpoint, client, patience, policy)
        }
        ModelRef::Script(file) => script(file, answered)?,
    };
    let target = Target { model: reference.name().to_owned(), vision: true };
    Ok(Model { provider, target, effort: effort.map(strength) })
}

fn script(file: &str, answered: usize) -> Result<Arc<dyn Provider>, Failure> {
    let failed = |why: String| Failure::Failed(format!("the script {file:?} {why}"));
    let size = fs::metadata(file).map_err(|e| failed(format!("cannot be read: {e}")))?.len();
    if size > SCRIPT_MAX {
        return Err(failed(format!("has {size} bytes; at most {SCRIPT_MAX} are taken")));
    }
    let text = fs::read_to_string(file).map_err(|e| failed(format!("cannot be read: {e}")))?;
    let provider = ScriptProvider::new(file, &text, answered)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(Arc::new(provider))
}

const fn strength(effort: haft_config::Effort) -> Effort {
    match effort {
        haft_config::Effort::None => Effort::None,
        haft_config::Effort::Low => Effort::Low,
        haft_config::Effort::Medium => Effort::Medium,
        haft_config::Effort::High => Effort::High,
        haft_config::Effort::Max => Effort::Max,
    }
}

/// Spreads the pauses of many processes that failed at the same moment.
fn seed() -> u64 {
    crate::core::now().wrapping_mul(u64::from(std::process::id()) | 1)
}
