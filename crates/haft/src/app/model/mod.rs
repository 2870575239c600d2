//! Resolves a model's name to a provider that answers requests.

mod choosing;
mod chosen;
mod facts;
mod last_used;
mod others;

use std::{fs, sync::Arc, time::Duration};

use haft_config::{Environment, Settings};
use haft_llm::{
    Effort, Endpoint, ModelRef, Patience, Preset, Provider, RetryPolicy, ScriptProvider, Target,
    WireKind, http_provider, openai, parse_model, presets,
};

pub use self::{
    choosing::{Offers, window_of},
    chosen::{Chosen, note, unnamed},
    facts::{ModelFacts, UNKNOWN_CONTEXT, facts},
    last_used::last_used,
    others::{Others, SUCCESSOR, fallbacks},
};
use crate::cli::exit::Failure;

/// A model that is ready for requests; nothing is opened before the first one.
pub struct Model {
    /// Sends requests to the model and returns its answers.
    pub provider: Arc<dyn Provider>,
    /// Its id as the provider writes it, and whether it takes images.
    pub target: Target,
    /// How hard it thinks.
    pub effort: Option<Effort>,
}

/// How often a request is sent again behind that where somebody waits, in milliseconds.
const BEYOND_MS: u64 = 30_000;
/// Largest script, in bytes.
const SCRIPT_MAX: u64 = 64 << 20;

/// Makes a model from the settings. `answered` is how many answers a resumed script gave before.
/// With `waits`, somebody waits: then requests are retried until they are cancelled, if the
/// settings allow retries.
pub fn model(
    settings: &Settings,
    environment: &Environment,
    answered: usize,
    waits: bool,
) -> Result<Model, Failure> {
    let Some(name) = &settings.model.name else {
        return Err(Failure::Usage(choosing::unchosen(&servers(settings), environment)));
    };
    let reference = named(name, settings)?;
    let http = &settings.http;
    let patience =
        Patience { silence: Duration::from_secs(http.stall_seconds), ..Patience::default() };
    let within_ms = settings.model.retry_seconds.saturating_mul(1_000);
    let beyond_ms = (waits && within_ms > 0).then_some(BEYOND_MS);
    let policy = RetryPolicy { within_ms, beyond_ms, seed: seed(), ..RetryPolicy::default() };
    let client = haft_net::Client::connecting_within(Duration::from_secs(http.connect_seconds));
    let provider = match &reference {
        ModelRef::Server(preset, name) => {
            let is_makers = endpoint(preset, environment).is_makers;
            let preset = &preset.clone().for_model(name, is_makers);
            let endpoint = endpoint(preset, environment);
            is_variable(preset)?;
            endpoint.check().map_err(|error| Failure::Usage(error.to_string()))?;
            {
                let own = settings.models.get(&reference.to_string());
                let fields = own.and_then(|own| own.extra.clone()).unwrap_or_default();
                http_provider(endpoint, client, patience, policy, fields)
            }
        }
        ModelRef::Script(file) => script(file, answered)?,
    };
    let vision = takes_images(&reference, settings);
    let target = Target { model: reference.name().to_owned(), vision };
    Ok(Model { provider, target, effort: settings.effort })
}

/// The endpoint of a server, with the address and the key that the environment has for it.
pub fn endpoint(preset: &Preset, environment: &Environment) -> Endpoint {
    let value = |name: &String| environment.server(name).map(|value| value.expose().to_owned());
    let url = value(&preset.url_variable);
    let found = preset.key_variables.iter().find_map(|name| Some((name.clone(), value(name)?)));
    let (variable, key) = found.unzip();
    let endpoint = Endpoint::of(preset, url, key);
    Endpoint { key_variable: variable.unwrap_or(endpoint.key_variable), ..endpoint }
}

/// Whether a model's provider can search the web by itself.
pub fn searches(reference: &ModelRef, environment: &Environment) -> bool {
    let ModelRef::Server(preset, name) = reference else { return false };
    let is_makers = endpoint(preset, environment).is_makers;
    preset.clone().for_model(name, is_makers).wire.searches
}

/// The servers that haft knows, and those that the settings define.
pub fn servers(settings: &Settings) -> Vec<Preset> {
    let mut all = presets();
    for (name, more) in &settings.providers {
        let at = all.iter().position(|known| known.name == *name).unwrap_or_else(|| {
            all.push(Preset {
                name: name.clone(),
                prefixes: Vec::new(),
                address: String::new(),
                // For messages: there it is set.
                url_variable: format!("providers.{name}.address"),
                key_variables: Vec::new(),
                wire: openai::KIND,
                wants_key: false,
                passes_on: false,
            });
            all.len() - 1
        });
        let known = &mut all[at];
        if let Some(address) = &more.address {
            address.trim().trim_end_matches('/').clone_into(&mut known.address);
            known.wants_key = false;
        }
        if let Some(variable) = &more.key_variable {
            known.key_variables = vec![variable.clone()];
            known.wants_key = true;
        }
        if let Some(wire) = more.wire.and_then(|wire| WireKind::named(&wire.name())) {
            known.wire = wire;
        }
        known.passes_on = more.passes_on;
        known.prefixes.extend(more.prefixes.iter().cloned());
    }
    all
}

/// Keys come from variables that are held back from commands, which is told by their names.
fn is_variable(preset: &Preset) -> Result<(), Failure> {
    match preset.key_variables.iter().find(|name| !haft_config::is_of_a_server(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "providers.{}.key_variable is {name:?}: haft takes keys from variables whose names end with \
             _KEY or _TOKEN",
            preset.name
        ))),
    }
}

/// Parses a model's name, or the word for one that the settings name by its size.
pub fn named(name: &str, settings: &Settings) -> Result<ModelRef, Failure> {
    let choice = &settings.model;
    let sizes = [("small", &choice.small), ("medium", &choice.medium), ("large", &choice.large)];
    let size = sizes.into_iter().find(|(size, _)| *size == name.trim());
    let (name, from) = match size {
        None => (name, String::new()),
        Some((size, Some(name))) => (name.as_str(), format!("model.{size}: ")),
        Some((size, None)) => {
            return Err(Failure::Usage(format!(
                "no model is named for {size:?}: set model.{size} = \"SERVER/NAME\" in \
                 ~/.haft/settings.toml"
            )));
        }
    };
    parse_model(name, &servers(settings)).map_err(|error| Failure::Usage(format!("{from}{error}")))
}

/// Reports whether a model takes images: by the settings, otherwise by the catalogue or its name.
pub fn takes_images(reference: &ModelRef, settings: &Settings) -> bool {
    facts(reference, settings).vision
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
    super::base::now().wrapping_mul(u64::from(std::process::id()) | 1)
}

#[cfg(test)]
mod tests {
    use haft_config::ServerWire;
    use haft_llm::WIRES;
    use serde_json::Value;

    /// The texts that a schema takes.
    fn taken(schema: &Value) -> Vec<String> {
        let all = schema.as_object().into_iter().flatten();
        let below = all.flat_map(|(key, value)| match value {
            Value::String(text) if key == "const" => vec![text.clone()],
            Value::Array(items) if key == "enum" => {
                items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Value::Array(items) => items.iter().flat_map(taken).collect(),
            _ => Vec::new(),
        });
        below.collect()
    }

    #[test]
    fn the_settings_name_the_wires_that_are_built_in() {
        let schema = haft_config::schema();
        let place = "/properties/providers/additionalProperties/properties/wire";
        let mut named = taken(schema.pointer(place).unwrap());
        let mut built_in: Vec<&str> = WIRES.iter().map(|wire| wire.name).collect();
        named.sort_unstable();
        built_in.sort_unstable();
        assert_eq!(named, built_in);
        for name in named {
            let wire: ServerWire = serde_json::from_value(Value::String(name.clone())).unwrap();
            assert_eq!(wire.name(), name);
        }
    }
}
