//! The standard stages, one per file, and the one list that puts them in order.
//!
//! **Invariant:** the order is security: a denial ends a call before anything of its target is
//! opened, and what was judged is what runs. A test pins it.

mod ask;
mod budget;
mod check;
mod guard;
mod hooks;
mod interrupt;
mod prepare;
mod proofs;
mod record;
mod redact;
mod repeat;
pub(crate) mod resolve;
pub(crate) mod rules;
pub(crate) mod sandbox;
mod script;
mod snapshot;
mod timeout;
mod touch;

use std::{sync::Arc, time::Duration};

pub use self::budget::most_characters;
pub(crate) use self::hooks::Advice;
pub use self::hooks::{Hook, HookCall, PermissionAnswer, PostCall, PreCall};
pub use self::touch::{Touched, TouchedPaths};
pub(crate) use self::{record::started, sandbox::job_tried, script::Git};
use crate::{DiffLimits, Pipeline};

/// Limits of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a cancelled call may take to return its partial result.
    pub grace: Duration,
    /// How long a call may run; time spent asking does not count. None means no limit.
    pub call: Option<Duration>,
    /// How long looking up the paths of a call may take, and how long checking it may.
    pub look: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // 150 ms leave the rest of the promised 200 to the layers above.
        Self {
            grace: Duration::from_millis(150),
            call: Some(Duration::from_mins(15)),
            look: Duration::from_secs(30),
        }
    }
}

/// The settings of the standard pipeline.
#[derive(Clone)]
pub struct Settings {
    /// See [`Limits`].
    pub limits: Limits,
    /// Hooks of the person that see calls before and after they run.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// What tells the model more of what a call touched.
    pub touched: Option<Arc<dyn Touched>>,
    /// Limits of the scans around a command, which find what it changed; none scans nothing.
    pub watching: Option<DiffLimits>,
}

impl Default for Settings {
    fn default() -> Self {
        let (limits, hooks) = (Limits::default(), Vec::new());
        Self { limits, hooks, touched: None, watching: Some(DiffLimits::default()) }
    }
}

/// Builds the pipeline that every front end runs.
pub fn standard(settings: &Settings) -> Pipeline {
    let hooks = || settings.hooks.clone();
    Pipeline::default()
        .watched(settings.watching)
        .then(record::Record)
        .then(interrupt::Interrupt(settings.limits.grace))
        .then(redact::Redact)
        .then(repeat::Repeat)
        .then(prepare::Prepare)
        .then(hooks::HooksBefore(hooks()))
        .then(resolve::Resolve(settings.limits.look))
        .then(rules::Rules)
        .then(check::Check(settings.limits.look, hooks()))
        .then(ask::Ask(hooks()))
        .then(snapshot::Snapshot(settings.watching))
        .then(touch::Touch(settings.touched.clone()))
        .then(budget::Budget)
        .then(hooks::HooksAfter(hooks()))
        .then(sandbox::Sandbox)
        .then(guard::Guard)
        .then(timeout::Timeout { limit: settings.limits.call, grace: settings.limits.grace })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_stages_is_pinned() {
        let names: Vec<_> = standard(&Settings::default()).names().collect();
        assert_eq!(
            names.join(" > "),
            "record > interrupt > redact > repeat > prepare > hooks(pre) > resolve > rules > check \
             > ask > snapshot > touch > budget > hooks(post) > sandbox > guard > timeout > tool"
        );
    }
}
