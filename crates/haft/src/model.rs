//! From a model's name to something that answers.

use std::{fs, sync::Arc, time::Duration};

use haft_config::{Environment, Secret, Settings};
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

/// How often a request is sent again behind that where somebody waits, in milliseconds.
const BEYOND_MS: u64 = 30_000;
/// Largest script, in bytes.
const SCRIPT_MAX: u64 = 64 << 20;

/// Makes a model from the settings; `answered` is how many answers a resumed script gave before. Where
/// somebody `waits`, so do its requests, until they are cancelled.
pub fn model(
    settings: &Settings,
    environment: &Environment,
    answered: usize,
    waits: bool,
) -> Result<Model, Failure> {
    let Some(name) = &settings.model.name else {
        return Err(Failure::Usage(
            "no model is chosen: give --model anthropic/NAME, openai/NAME or script:FILE, or set \
             HAFT_MODEL or `model` in settings.toml"
                .into(),
        ));
    };
    let reference = named(name)?;
    let http = &settings.http;
    let patience =
        Patience { silence: Duration::from_secs(http.stall_seconds), ..Patience::default() };
    let within_ms = settings.model.retry_seconds.saturating_mul(1_000);
    let beyond_ms = (waits && within_ms > 0).then_some(BEYOND_MS);
    let policy = RetryPolicy { within_ms, beyond_ms, seed: seed(), ..RetryPolicy::default() };
    let key = |key: &Option<Secret>| key.as_ref().map(|key| key.expose().to_owned());
    let client = haft_net::Client::connecting_within(Duration::from_secs(http.connect_seconds));
    let provider = match &reference {
        ModelRef::Anthropic(_) => {
            let url = environment.anthropic_base_url.clone();
            let endpoint = Endpoint::anthropic(url, key(&environment.anthropic_api_key));
            checked(&endpoint)?;
            anthropic_provider(endpoint, client, patience, policy)
        }
        ModelRef::OpenAi(_) => {
            let url = environment.openai_base_url.clone();
            let endpoint = Endpoint::openai(url, key(&environment.openai_api_key));
            checked(&endpoint)?;
            openai_provider(endpoint, client, patience, policy)
        }
        ModelRef::Script(file) => script(file, answered)?,
    };
    let vision = takes_images(&reference, settings);
    let target = Target { model: reference.name().to_owned(), vision };
    Ok(Model { provider, target, effort: settings.effort })
}

/// A server that every request would fail at is told before a session begins.
fn checked(endpoint: &Endpoint) -> Result<(), Failure> {
    endpoint.check().map_err(|error| Failure::Usage(error.to_string()))
}

/// Reads a model's name.
pub fn named(name: &str) -> Result<ModelRef, Failure> {
    parse_model(name).map_err(|error| Failure::Usage(error.to_string()))
}

/// Whether a model takes images: the settings say it, else its name tells.
pub fn takes_images(reference: &ModelRef, settings: &Settings) -> bool {
    let known = settings.models.get(&reference.to_string()).and_then(|model| model.vision);
    known.unwrap_or_else(|| reference.takes_images())
}

fn script(file: &str, answered: usize) -> Result<Arc<dyn Provider>, Failure> {
    let wrong = |why: String| Failure::Usage(format!("the script {file:?} {why}"));
    let found = fs::metadata(file).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    // A pipe would hold the start up for as long as nobody writes to it.
    if !found.is_file() {
        return Err(wrong("is no regular file: write the answers to one, and name that".into()));
    }
    let size = found.len();
    if size > SCRIPT_MAX {
        return Err(wrong(format!("has {size} bytes; at most {SCRIPT_MAX} are taken")));
    }
    let text = fs::read_to_string(file).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    let provider = ScriptProvider::new(file, &text, answered)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Arc::new(provider))
}

/// Spreads the pauses of many processes that failed at the same moment.
fn seed() -> u64 {
    crate::core::now().wrapping_mul(u64::from(std::process::id()) | 1)
}
