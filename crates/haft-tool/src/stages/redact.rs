//! `redact`: hides secret values in the result of a call, and says which of its lines imitate
//! messages of a system.
//!
//! **Invariant:** it stands outside everything that produces text and inside what records it. Text
//! that is cut to a budget was redacted before that already, so that no cut leaves half of a value.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::{FutureExt as _, future::BoxFuture};
use haft_text::{secrets, spoofed_messages};
use haft_types::{Outcome, Part};

use crate::{Call, Cx, Next, Stage, session::redact};

/// Said once in a conversation, with the first value that is hidden.
const HIDDEN: &str = "[{{secret:NAME}} stands for a value that is not shown: keep it as it is where \
                      you edit or write the file; in a bash command it becomes a variable]";

pub(super) struct Redact;

/// Set once that was said.
#[derive(Default)]
struct Announced(AtomicBool);

impl Stage for Redact {
    fn name(&self) -> &'static str {
        "redact"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let cx = call.cx.clone();
            let mut outcome = next.run(call).await;
            redact::outcome(&cx.session().secrets, &mut outcome);
            if !cx.nested {
                let said = notes(&outcome.content, &cx);
                outcome.content.extend(said.into_iter().map(Part::text));
            }
            outcome
        }
        .boxed()
    }
}

/// What is said beside the texts of an answer, none of which is copied for it.
fn notes(content: &[Part], cx: &Cx) -> Vec<String> {
    let texts = || {
        content.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
    };
    let hides = texts().any(|text| secrets::placeholders(text).next().is_some());
    let first = hides && !cx.conversation().map.get::<Announced>().0.swap(true, Ordering::Relaxed);
    let imitated = texts().find_map(|text| spoofed_messages::of_system(text).into_iter().next());
    imitated.into_iter().chain(first.then(|| HIDDEN.to_owned())).collect()
}
