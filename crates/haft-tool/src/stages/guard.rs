//! `guard`: hands the tool a host that gives exactly what was located and judged.

use std::sync::{Arc, OnceLock, atomic::Ordering};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{Host, ReadOnlyRun};
use haft_types::{Access, OnInterrupt, Outcome, Plan, Status};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::rules;
use crate::{
    Call, Next, Stage,
    call::{
        guarded_host::{Declared, Guarded},
        net::DeclaredHosts,
    },
};

pub(super) struct Guard;

impl Stage for Guard {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.cx.stop.is_cancelled() {
            // Cancelled while it was judged: from here on it could not be told from a call that ran.
            let outcome = Outcome::ended(Status::Cancelled, "cancelled before it ran");
            return std::future::ready(outcome).boxed();
        }
        call.cx.host = guarded(&call, Access::Destroy);
        call.cx.hosts = Some(Arc::new(DeclaredHosts::of(&call)));
        if call.ready().is_ok_and(|prepared| prepared.spec.on_interrupt == OnInterrupt::Finish) {
            // From here on it finishes what it began, whatever happens around it.
            call.cx.stop = CancellationToken::new();
        }
        call.cx.begun.store(true, Ordering::Release);
        let git = looks(&call).map(|()| call.git);
        let ran = next.run(call);
        async move {
            let mut outcome = ran.await;
            if let Some(git) = git {
                git.note(&mut outcome);
            }
            outcome
        }
        .boxed()
    }
}

/// There is something where it goes on because it only looks.
fn looks(call: &Call) -> Option<()> {
    call.ruling.as_ref().filter(|ruling| ruling.looks).map(|_| ())
}

/// The host of a call: what its plan declared, with at most `most` done to it.
pub(super) fn guarded(call: &Call, most: Access) -> Arc<dyn Host> {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let declared = effects
        .iter()
        .zip(call.located.iter().chain(std::iter::repeat(&None)))
        .map(|(effect, located)| Declared {
            effect: effect.clone(),
            located: located.clone(),
            hides: OnceLock::new(),
        })
        .collect();
    Arc::new(Guarded {
        inner: call.cx.dispatcher.host.clone(),
        declared,
        visible: rules::visible(call),
        hidden: rules::hidden(call),
        everywhere: OnceLock::new(),
        forbidden: Arc::new(call.cx.permissions().policy.command_filter()),
        place: call.cx.place.clone(),
        most,
        looks: looks(call).map(|()| ReadOnlyRun {
            workspace: call.cx.place.roots.clone(),
            git_as_set: call.git.only_tells(),
        }),
        confine: call.confine.clone(),
        network: call.network.clone(),
        session_network: call.cx.session().map.get(),
        tried: Arc::clone(&call.cx.tried),
        variables: call.variables.clone(),
        events: (!call.plan().is_none_or(Plan::observes)).then(|| call.cx.session().events.clone()),
        begun: OnceCell::new(),
        keeper: call.cx.keeper.clone().filter(|_| most != Access::Observe),
    })
}
