//! The stages between a model's call and its outcome.
//!
//! **Invariant:** every call goes through every stage in one order. A stage sees a [`Call`]. It may
//! refuse it, change it or its outcome, and passes it on. No stage knows a concrete tool.

pub(crate) mod ask;
pub(crate) mod cancelled;
pub(crate) mod cx;
pub(crate) mod direct_exec;
pub(crate) mod dispatch;
pub(crate) mod guarded_host;
pub(crate) mod net;
pub(crate) mod progress;
pub(crate) mod question_time;
pub(crate) mod scheduler;

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{Limits, Located};
use haft_policy::{ReadMask, Ruling, SandboxScope};
use haft_types::{Effect, HostPath, Outcome, Place, Plan, Status, ToolError, ToolUse};

use crate::{
    Cx, Prepared,
    changes::diff::DiffLimits,
    stages::{Advice, Git},
};

/// A call on its way through the stages.
pub struct Call {
    /// The call as the model requested it.
    pub request: ToolUse,
    /// The context that the tool gets; a stage may narrow it.
    pub cx: Cx,
    /// The tool, its arguments and its plan, once they could be worked out.
    pub(crate) prepared: Result<Prepared, ToolError>,
    /// What was repaired in the arguments, told to the model.
    pub(crate) notes: Vec<String>,
    /// One for each effect of the plan: what was found where it names a path.
    pub(crate) located: Vec<Option<Result<Located, LocateFailure>>>,
    /// What the rules said.
    pub(crate) ruling: Option<Ruling>,
    /// What its programs could reach in the sandbox; none where no sandbox holds.
    pub(crate) walls: Option<SandboxScope>,
    /// What hides keys and the like from them where they only look; none where no sandbox holds.
    pub(crate) veil: Option<ReadMask>,
    /// What its programs may touch; none: whatever haft may.
    pub(crate) confine: Option<Limits>,
    /// The network that they share with others of the session, where they may connect to nothing outside.
    pub(crate) network: Option<haft_host::Network>,
    /// Variables that they get.
    pub(crate) variables: Vec<(String, String)>,
    /// How git is asked by a script.
    pub(crate) git: Git,
    /// What people should see before they allow it.
    pub(crate) preview: Option<haft_types::Detail>,
    /// True once hooks have seen it: a rewritten call does not meet them again.
    pub(crate) hooked: bool,
    /// What hooks think of it, for these arguments.
    pub(crate) advice: Option<Advice>,
    /// True once a hook has answered in place of the person: it does so once.
    pub(crate) consulted: bool,
    /// True once its paths were taken as what stands in them; that happens once.
    pub(crate) mended: bool,
}

/// A path that could not be located, with its cause; told only once the rules allow it.
#[derive(Clone, Debug)]
pub(crate) struct LocateFailure {
    pub cause: Arc<std::io::Error>,
    /// Where it would be: below its deepest folder that could be located. None where a link leads
    /// to where it got lost.
    pub real: Option<HostPath>,
}

impl From<LocateFailure> for std::io::Error {
    fn from(lost: LocateFailure) -> Self {
        Self::new(lost.cause.kind(), SharedError(lost.cause))
    }
}

/// An error that is told to several, with its cause.
#[derive(Debug)]
struct SharedError(Arc<std::io::Error>);

impl std::fmt::Display for SharedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl Call {
    /// The plan, or none where the call could not be planned.
    pub fn plan(&self) -> Option<&Plan> {
        self.prepared.as_ref().ok().map(|prepared| &prepared.plan)
    }

    /// The tool's real name, or what the model wrote where there is no such tool.
    pub fn tool(&self) -> &str {
        self.prepared.as_ref().map_or(&self.request.name, |prepared| &prepared.spec.name)
    }

    /// The arguments after repair, where they are valid.
    pub fn input(&self) -> Option<&serde_json::Value> {
        self.prepared.as_ref().ok().map(|prepared| &prepared.input)
    }

    /// The place for which the call is planned.
    pub fn place(&self) -> &Place {
        &self.cx.place
    }

    /// For each effect of the plan where it really is, as far as that is known.
    pub(crate) fn real_paths(&self) -> Vec<Option<HostPath>> {
        let real = |located: &Option<Result<Located, LocateFailure>>| match located.as_ref()? {
            Ok(found) => Some(found.real.clone()),
            Err(lost) => lost.real.clone(),
        };
        self.located.iter().map(real).collect()
    }

    /// Adds to the plan what was looked up.
    pub(crate) fn add_facts(&mut self, facts: Vec<Effect>) {
        if let Ok(prepared) = &mut self.prepared {
            self.located.extend(facts.iter().map(|_| None));
            prepared.plan.effects.extend(facts);
        }
    }

    /// The prepared call. Only stages after `prepare` may count on it.
    pub(crate) fn ready(&self) -> Result<&Prepared, ToolError> {
        self.prepared.as_ref().map_err(Clone::clone)
    }
}

/// One stage of the pipeline, around every call.
pub trait Stage: Send + Sync {
    /// The name, for `haft debug pipeline` and error messages.
    fn name(&self) -> &'static str;

    /// Handles the call. A stage that does not run `next` ends the call here.
    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome>;
}

/// The remaining stages.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    stages: &'a [Arc<dyn Stage>],
    at: usize,
}

impl<'a> Next<'a> {
    /// Passes the call on; after the last stage the tool itself runs.
    pub fn run(self, call: Call) -> BoxFuture<'a, Outcome> {
        match self.stages.get(self.at) {
            Some(stage) => stage.run(call, Self { at: self.at + 1, ..self }),
            None => match call.prepared {
                Ok(prepared) => prepared.execute(call.cx).map(Outcome::from).boxed(),
                Err(error) => std::future::ready(error.into()).boxed(),
            },
        }
    }

    /// Sends a call that was made anew back to where it is prepared, to be judged anew.
    pub(crate) fn again(self, call: Call) -> BoxFuture<'a, Outcome> {
        let at = self.stages.iter().position(|stage| stage.name() == "prepare").unwrap_or(0);
        // The record holds what really runs: it is told again, and the last one counts.
        if let Err(error) = call.cx.emit(crate::stages::started(&call)) {
            let text = format!("{error}\nNothing was run.");
            return std::future::ready(Outcome::ended(Status::Failed, text)).boxed();
        }
        Self { at, ..self }.run(call)
    }
}

/// The stages in order, outermost first.
#[derive(Clone, Default)]
pub struct Pipeline(Vec<Arc<dyn Stage>>, Option<DiffLimits>);

impl Pipeline {
    /// Adds a stage inside those already there.
    #[must_use]
    pub fn then(mut self, stage: impl Stage + 'static) -> Self {
        self.0.push(Arc::new(stage));
        self
    }

    /// Adds a stage directly inside the stage with this name, or innermost where there is none.
    #[must_use]
    pub fn insert_after(mut self, name: &str, stage: impl Stage + 'static) -> Self {
        let found = self.0.iter().position(|other| other.name() == name);
        self.0.insert(found.map_or(self.0.len(), |at| at + 1), Arc::new(stage));
        self
    }

    /// The same, where so much is looked at around a command.
    #[must_use]
    pub(crate) fn watched(self, watching: Option<DiffLimits>) -> Self {
        Self(self.0, watching)
    }

    /// How much is looked at around a command; none where nothing is.
    pub(crate) const fn watching(&self) -> Option<DiffLimits> {
        self.1
    }

    /// The names of the stages in order; the tool itself comes last, as `tool`.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|stage| stage.name()).chain(std::iter::once("tool"))
    }

    /// Takes one call through every stage.
    pub(crate) fn run(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Next { stages: &self.0, at: 0 }.run(call)
    }
}
