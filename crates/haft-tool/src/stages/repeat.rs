//! `repeat`: tells the model of a call that it makes again and again with the same result.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Outcome, Part};

use crate::{Call, Next, Repeats, Stage};

pub(super) struct Repeat;

impl Stage for Repeat {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.cx.nested {
            return next.run(call);
        }
        async move {
            let (cx, request) = (call.cx.clone(), call.request.clone());
            let mut outcome = next.run(call).await;
            let repeats = cx.dispatcher.conversation.map.get::<Repeats>();
            if let Some(text) = repeats.saw(&request, &outcome) {
                outcome.content.push(Part::text(text));
            }
            outcome
        }
        .boxed()
    }
}
