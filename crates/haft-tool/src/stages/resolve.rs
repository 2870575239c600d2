//! `resolve`: looks every path of the plan up, once, with its links resolved and held.
//!
//! **Invariant:** nothing is opened here for reading or writing. What cannot be located is told
//! only after the rules allowed it, so that a denied path does not even say whether it is there.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Follow, Outcome, Target, ToolError};

use crate::{Call, Next, Stage};

pub(super) struct Resolve;

impl Stage for Resolve {
    fn name(&self) -> &'static str {
        "resolve"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            if let Err(error) = locate(&mut call).await {
                return error.into();
            }
            next.run(call).await
        }
        .boxed()
    }
}

/// Looks up every path of the call's plan.
pub(crate) async fn locate(call: &mut Call) -> Result<(), ToolError> {
    let effects = call.ready()?.plan.effects.clone();
    let fs = call.cx.host.fs();
    let mut located = Vec::with_capacity(effects.len());
    for effect in &effects {
        located.push(match &effect.target {
            Target::Path { path, follow } => {
                Some(fs.locate(path, *follow).await.map_err(Into::into))
            }
            Target::Tree { root } => Some(fs.locate(root, Follow::Yes).await.map_err(Into::into)),
            _ => None,
        });
    }
    call.located = located;
    Ok(())
}
