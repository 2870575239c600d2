//! Models beside the one that answers: the small one, and those that go on where it cannot be
//! reached.
//!
//! **Invariant:** only models that the settings name are taken, and only those whose key is there.
//! What costs nobody knows is refused where money is limited.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{Failure, Instead, OtherModels, SmallModel};
use haft_config::{Environment, Settings};
use haft_llm::{ModelRef, catalogue};
use haft_types::BreakCause;

use super::{Model, ModelFacts, endpoint, facts, model, named};
use crate::app::{agent::AgentBuilder, hooks::Switch};

/// The word for the model that the catalogue names.
pub const SUCCESSOR: &str = "successor";

/// Models that can go on where `failed` does not answer, in their order, and why others cannot.
/// `tried` did not answer either.
pub fn fallbacks(
    settings: &Settings,
    environment: &Environment,
    failed: &str,
    tried: &[String],
) -> (Vec<String>, Vec<String>) {
    let (mut usable, mut others) = (Vec::<String>::new(), Vec::new());
    let failed = named(failed, settings).map_or_else(|_| failed.to_owned(), |it| it.to_string());
    for name in &settings.model.fallback {
        let successor = || catalogue().get(&failed)?.successor.clone();
        let name = match name.as_str() {
            SUCCESSOR => successor().ok_or_else(|| format!("{failed} has no successor")),
            name => Ok(name.to_owned()),
        };
        match name.and_then(|name| checked(&name, settings, environment)) {
            Ok(name) if name == failed || tried.contains(&name) || usable.contains(&name) => {}
            Ok(name) => usable.push(name),
            Err(why) => others.push(why),
        }
    }
    (usable, others)
}

/// A model's name in its one form, once its key is there.
fn checked(name: &str, settings: &Settings, environment: &Environment) -> Result<String, String> {
    let reference = named(name, settings).map_err(|error| error.to_string())?;
    if let ModelRef::Server(preset, _) = &reference {
        endpoint(preset, environment).check().map_err(|error| format!("{reference}: {error}"))?;
    }
    Ok(reference.to_string())
}

/// The models beside that of one agent.
pub struct Others {
    /// The agent, with no conversation.
    pub builder: Arc<AgentBuilder>,
    /// The name that people are shown, of the main agent.
    pub shown: Option<Arc<Mutex<String>>>,
}

impl OtherModels for Others {
    fn small(&self) -> Option<Result<SmallModel, String>> {
        let base = &self.builder.core.base;
        let settings = &base.loaded.settings;
        let name = settings.model.small.clone()?;
        let of = |name: String| {
            let name = checked(&name, settings, &base.environment)?;
            let mut settings = settings.clone();
            settings.model.name = Some(name.clone());
            let Model { provider, target, .. } =
                model(&settings, &base.environment, 0, false).map_err(|error| error.to_string())?;
            let reference = named(&name, &settings).map_err(|error| error.to_string())?;
            let ModelFacts { context, output, prices, .. } = facts(&reference, &settings);
            // Nobody asks its server for it: where it is too small, less is sent.
            let window = context;
            Ok(SmallModel { name, provider, target, window, output, prices })
        };
        Some(of(name).map_err(|why: String| format!("model.small: {why}")))
    }

    fn instead(&self, failed: &Failure) -> Option<BoxFuture<'static, Result<Instead, String>>> {
        let base = &self.builder.core.base;
        if base.loaded.settings.model.fallback.is_empty() {
            return None;
        }
        let Failure { model: failed, error, before } = failed.clone();
        let (settings, environment) = (&base.loaded.settings, &base.environment);
        let (usable, mut others) = fallbacks(settings, environment, &failed, &before);
        if usable.is_empty() && others.is_empty() {
            return None;
        }
        let (builder, shown) = (self.builder.clone(), self.shown.clone());
        let work = async move {
            for name in usable {
                let mut tried = before.clone();
                tried.push(failed.clone());
                let again = builder.again(&name, &tried);
                match again.repin(BreakCause::Fallback).await {
                    Ok(repin) => {
                        if shown.is_some() {
                            tell_hooks(&builder, &failed, &name).await;
                        }
                        if let Some(shown) = shown {
                            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                            shown.clone_from(&name);
                        }
                        let text = told(&failed, &name, &error, builder.waits);
                        return Ok(Instead { repin, text });
                    }
                    Err(error) => others.push(error.to_string()),
                }
            }
            Err(others.join("; "))
        };
        Some(work.boxed())
    }
}

/// Tells hooks of a model that goes on in the place of another.
async fn tell_hooks(builder: &AgentBuilder, failed: &str, name: &str) {
    let core = &builder.core;
    let Some(hooks) = core.hooks.as_ref().filter(|hooks| hooks.sees_switches()) else { return };
    let (settings, agent) = (&core.base.loaded.settings, core.agents.get(&builder.path));
    if let (Ok(from), Ok(to), Some(agent)) = (named(failed, settings), named(name, settings), agent)
    {
        let used = agent.window_use().await.and_then(|used| used.counted).unwrap_or_default();
        hooks.tell_switch(&Switch::new((&from, &to), "auto", used, settings), &agent).await;
    }
}

/// What people are told of a model that goes on in the place of another.
fn told(failed: &str, name: &str, error: &str, waits: bool) -> String {
    let first = error.lines().next().unwrap_or_default();
    let back = if waits {
        format!("/model {failed} goes back")
    } else {
        format!("haft -c --model {failed} goes back")
    };
    format!("{name} goes on in the place of {failed}, which failed: {first}\n{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_answer_is_taken_and_each_once() {
        let mut settings = Settings::default();
        let names = ["ollama/a", "nobody/x", SUCCESSOR, "ollama/b", "ollama/a", "openai/gpt-4o"];
        settings.model.fallback = names.map(str::to_owned).to_vec();
        let environment = Environment::default();
        let of = |failed: &str, tried: &[&str]| {
            let tried: Vec<String> = tried.iter().map(|name| (*name).to_owned()).collect();
            fallbacks(&settings, &environment, failed, &tried)
        };
        let (usable, others) = of("anthropic/claude-fable-5", &[]);
        assert_eq!(usable, ["ollama/a", "ollama/b"]);
        let others = others.join("\n");
        for part in ["nobody", "anthropic/claude-fable-5-1: ", "openai/gpt-4o: ", "OPENAI_API_KEY"]
        {
            assert!(others.contains(part), "{part}: {others}");
        }
        assert_eq!(of("ollama/a", &["anthropic/claude-fable-5"]).0, ["ollama/b"]);
        assert_eq!(of("ollama/b", &["ollama/a"]).0, [""; 0]);
    }
}
