//! Models beside the session's own: a small one for summaries, and those that go on where the own one
//! cannot be reached.
//!
//! **Invariant:** another model goes on only where no whole call of the answer was given out, and
//! only once the provider has given up. What is told of it names both. Where no other one can go on
//! either, the turn ends with the errors of all.

use std::{fmt::Write as _, sync::Arc};

use futures::future::BoxFuture;
use haft_llm::{LlmError, Provider, Target};
use haft_types::{Body, Level, Prices};

use super::{Agent, Repin};
use crate::Input;

/// Finds models beside an agent's own. Nothing is opened before one is wanted.
pub trait OtherModels: Send + Sync {
    /// The model that writes summaries, or why there is none though one is wanted. None where the
    /// agent's own writes them.
    fn small(&self) -> Option<Result<SmallModel, String>>;

    /// The model that goes on where one `failed`, or why none can. None where none is wanted.
    fn instead(&self, failed: &Failure) -> Option<BoxFuture<'static, Result<Instead, String>>>;
}

/// A model that could not be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Its name, in the form that `--model` takes.
    pub model: String,
    /// Why, for people.
    pub error: String,
    /// Models that failed before in this turn, by their names.
    pub before: Vec<String>,
}

/// A model that writes summaries.
#[derive(Clone)]
pub struct SmallModel {
    /// Its name, in the form that `--model` takes.
    pub name: String,
    /// Sends requests to it and returns its answers.
    pub provider: Arc<dyn Provider>,
    /// Its id as the provider writes it.
    pub target: Target,
    /// Most tokens of a request with its answer; none where that is not known.
    pub window: Option<u64>,
    /// Most tokens of an answer; none where that is not known.
    pub output: Option<u64>,
    /// What it costs; none where that is not known.
    pub prices: Option<Prices>,
}

/// A model that goes on.
pub struct Instead {
    /// What changes with it.
    pub repin: Repin,
    /// What people are told: both names, and how to go back.
    pub text: String,
}

/// A model that is being made ready.
pub(super) struct Falling {
    work: BoxFuture<'static, Result<Instead, String>>,
    error: String,
    kind: &'static str,
}

/// Waits for a model that goes on; for ever where none is made ready.
pub(super) async fn fallen(falling: &mut Option<Falling>) -> Result<Instead, String> {
    match falling {
        Some(falling) => (&mut falling.work).await,
        None => std::future::pending().await,
    }
}

impl Agent {
    /// Looks for a model that goes on; false where none is wanted for such an error.
    pub(super) fn fall_back(&mut self, error: &LlmError) -> bool {
        let Some(models) = self.setup.models.clone().filter(|_| error.is_outage()) else {
            return false;
        };
        let before = self.failed.iter().map(|(model, _)| model.clone()).collect();
        let kind = error.kind();
        let (model, error) = (self.setup.name.clone(), error.to_string());
        let work = models.instead(&Failure { model, error: error.clone(), before });
        self.falling = work.map(|work| Falling { work, error, kind });
        self.falling.is_some()
    }

    /// Goes on with another model, or ends the turn where there is none.
    pub(super) async fn came_instead(&mut self, came: Result<Instead, String>) {
        let Some(Falling { error, kind, .. }) = self.falling.take() else { return };
        let input = match came {
            Ok(Instead { repin, text }) => {
                self.failed.push((self.setup.name.clone(), error));
                self.emit_or_tell(Body::Notice { level: Level::Warning, text });
                // What a person chose meanwhile comes first.
                self.pending.put_if_none(repin);
                self.ask()
            }
            Err(why) => {
                let error = format!("{}\nNo other model can go on: {why}", self.all_failed(error));
                self.cut_off(kind, error, Vec::new())
            }
        };
        if let Some(input) = input {
            Box::pin(self.step(input)).await;
        }
    }

    /// An error, with those of the models before.
    pub(super) fn all_failed(&self, mut error: String) -> String {
        for (model, before) in &self.failed {
            // Writing to a string cannot fail.
            let _ = write!(error, "\nBefore that {model} failed: {before}");
        }
        error
    }

    /// Gives up a model that is being made ready; none where none is.
    pub(super) fn cancel_fallback(&mut self) -> Option<Input> {
        self.falling.take()?;
        let error = LlmError::Cancelled.to_string();
        Some(Input::AnswerCut { error, calls: Vec::new() })
    }
}
