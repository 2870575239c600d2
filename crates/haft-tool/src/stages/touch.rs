//! `touch`: adds words for the model about what a call touched, such as the instructions of a
//! folder.
//!
//! **Invariant:** the words stand behind the result and are not cut with it. A call that did not
//! run, or that another tool makes, gets none.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::FileKind;
use haft_types::{Access, Effect, HostPath, Outcome, Part, Status, Target};

use crate::{Call, Cx, Next, Stage};

/// Most paths of a call that are told.
const PATHS: usize = 200;

/// What a call touched.
pub struct TouchedPaths {
    /// The context of the call.
    pub cx: Cx,
    /// The paths and roots that its plan names, as they are written and with links followed; each
    /// once, and whether it was a file when it was looked up.
    pub paths: Vec<(HostPath, bool)>,
    /// Whether it may have changed more than these.
    pub changes_more: bool,
}

impl TouchedPaths {
    fn of(call: &Call) -> Self {
        let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
        let mut paths: Vec<(HostPath, bool)> = Vec::new();
        for (at, effect) in effects.iter().enumerate() {
            let Some(written) = effect.path() else { continue };
            let found = call.located.get(at).and_then(|found| found.as_ref()?.as_ref().ok());
            let is_file = found.is_some_and(|found| found.kind == FileKind::FILE);
            for path in std::iter::once(written).chain(found.map(|found| &found.real)) {
                if paths.len() < PATHS && paths.iter().all(|(known, _)| known != path) {
                    paths.push((path.clone(), is_file));
                }
            }
        }
        let more = |effect: &Effect| {
            let target = &effect.target;
            let is_more = matches!(target, Target::Command { .. } | Target::Anything)
                || matches!(target, Target::Tree { .. });
            is_more && effect.access != Access::Observe
        };
        Self { cx: call.cx.clone(), paths, changes_more: effects.iter().any(more) }
    }
}

/// Knows what the model has to be told once something is touched.
pub trait Touched: Send + Sync {
    /// Reports whether there may be anything to tell.
    fn is_on(&self) -> bool;

    /// What the model is told with the result of a call that has ended.
    fn words<'a>(&'a self, call: &'a TouchedPaths) -> BoxFuture<'a, Vec<String>>;
}

pub(super) struct Touch(pub Option<Arc<dyn Touched>>);

impl Stage for Touch {
    fn name(&self) -> &'static str {
        "touch"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let touched = self.0.as_deref().filter(|touched| touched.is_on() && !call.cx.is_nested());
        let Some(touched) = touched else { return next.run(call) };
        async move {
            let seen = TouchedPaths::of(&call);
            let mut outcome = next.run(call).await;
            let ran = !matches!(outcome.status, Status::Denied | Status::Cancelled);
            if ran && !seen.paths.is_empty() && !seen.cx.stop.is_cancelled() {
                outcome.content.extend(touched.words(&seen).await.into_iter().map(Part::text));
            }
            outcome
        }
        .boxed()
    }
}
