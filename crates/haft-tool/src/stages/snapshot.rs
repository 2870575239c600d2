//! `snapshot`: what must be on disk before a call may change anything, and what is stored so that
//! its changes can be undone.
//!
//! **Invariant:** before any effect beyond observing, the begin of the call is synced: a power cut
//! cannot leave a change that the log does not know. For effects through the host, the host waits
//! for that right before the first change; all others wait here. The host of the call stores the
//! old content of a file at the moment of the change, and the receipts name it. Changes by a
//! command are found by scanning the files before and after it.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Access, Effect, Outcome, Plan, Target, ToolError};

use crate::{
    Call, Next, Stage,
    changes::{
        diff::{Begun, DiffLimits, Watch},
        recorder::Keeper,
    },
};

/// Holds how much is looked at around a command; none where nothing is.
pub(super) struct Snapshot(pub Option<DiffLimits>);

/// Reports whether the host of the call sees to it that this effect is recorded first.
fn is_guarded(effect: &Effect) -> bool {
    effect.access == Access::Observe
        || matches!(
            effect.target,
            Target::Path { .. } | Target::Tree { .. } | Target::Command { .. }
        )
}

/// Reports whether an effect changes files behind the host's back.
fn is_unseen(effect: &Effect) -> bool {
    effect.access != Access::Observe
        && matches!(effect.target, Target::Command { .. } | Target::Anything)
}

impl Stage for Snapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.plan().is_none_or(Plan::observes) {
            let cx = call.cx.clone();
            return async move {
                let mut outcome = next.run(call).await;
                if !cx.is_nested() {
                    cx.session().map.get::<Watch>().report_pending(&cx, &mut outcome);
                }
                outcome
            }
            .boxed();
        }
        async move {
            let guarded = call.plan().is_none_or(|plan| plan.effects.iter().all(is_guarded));
            if !guarded && let Err(error) = call.cx.session().events.sync().await {
                return ToolError::new(error.to_string()).hint("Nothing was changed.").into();
            }
            let host = call.cx.dispatcher.host.name();
            let watch = call.cx.session().map.get::<Watch>();
            let keeper = Keeper::new(call.cx.session().pre_images(), host, watch.clone());
            let keeper = Arc::new(keeper);
            call.cx.keeper = Some(keeper.clone());
            let unseen = call.plan().is_some_and(|plan| plan.effects.iter().any(is_unseen));
            let begun = match self.0.filter(|_| unseen) {
                Some(watching) => watch.begin(&call, watching).await,
                None => Begun::Off,
            };
            let cx = call.cx.clone();
            let mut outcome = next.run(call).await;
            watch.claim(&keeper.fill(&cx.place, &mut outcome));
            match begun {
                Begun::Watched(watched) => {
                    watched.end(&cx, &mut outcome, cx.stop.is_cancelled()).await;
                }
                Begun::Bare(bare) => bare.end(&cx, &mut outcome).await,
                Begun::Off => {}
            }
            outcome
        }
        .boxed()
    }
}
