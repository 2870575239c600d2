//! `record`: records the begin of a call and its end.
//!
//! **Invariant:** every call is recorded once as begun and once as ended, malformed and unknown
//! calls like any other. Its remaining output and progress come before its end. A call whose begin
//! cannot be recorded does not run. Where a result cannot be recorded whole, at least how it ended
//! is.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Body, Level, Outcome, Part, Status, TurnId};
use tokio::time::Instant;

use crate::{Call, Cx, Next, RecordError, Stage};

/// Bytes of text that a result is cut to where all of it cannot be kept, tried in this order.
const ROOMS: [usize; 3] = [8 << 10, 1 << 10, 0];

pub(super) struct Record;

impl Stage for Record {
    fn name(&self) -> &'static str {
        "record"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let (cx, began) = (call.cx.clone(), Instant::now());
            let asked_before = cx.asking.so_far();
            if let Err(error) = cx.emit(started(&call)) {
                return Outcome::ended(Status::Failed, format!("{error}\nNothing was run."));
            }
            if call.plan().is_some_and(|plan| !plan.observes()) {
                // The disk works while the call is judged.
                cx.session().events.sync_ahead();
            }
            let mut outcome = next.run(call).await;
            cx.live.end(&cx);
            let asked = cx.asking.so_far().saturating_sub(asked_before);
            let took = began.elapsed().saturating_sub(asked).as_millis();
            let took = u64::try_from(took).unwrap_or(u64::MAX);
            let ended = Body::CallEnded { call: cx.call.clone(), outcome: outcome.clone(), took };
            if let Err(error) = cx.emit(ended) {
                keep_less(&cx, &outcome, took, &error);
                outcome.content.push(Part::text(format!("[this result is not kept: {error}]")));
            }
            outcome
        }
        .boxed()
    }
}

/// Keeps of a result as much as there is room for, and tells that it is not all.
fn keep_less(cx: &Cx, outcome: &Outcome, took: u64, error: &RecordError) {
    let text = outcome.joined_text();
    for room in ROOMS {
        let mut content = vec![Part::text("[not all of this result could be kept]")];
        if room > 0 {
            content.insert(0, Part::text(ends(&text, room)));
        }
        let ended = Outcome::ended(outcome.status, "");
        let receipts = if room > 0 { outcome.receipts.clone() } else { Vec::new() };
        let less = Outcome { content, receipts, ..ended };
        let call = cx.call.clone();
        if cx.emit(Body::CallEnded { call, outcome: less, took }).is_ok() {
            let text = format!("the result of {} could not be kept whole: {error}", cx.call);
            // Where not even that fits, the next request is not made either, which tells it.
            drop(cx.emit(Body::Notice { level: Level::Error, text }));
            return;
        }
    }
}

/// A text of at most `room` bytes, or its begin and end with a mark between them.
fn ends(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let (mut head, mut tail) = (room / 2, text.len() - room / 2);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n[...]\n{}", &text[..head], &text[tail..])
}

/// The begin of a call; its arguments stand in the answer that made it, where there is one.
pub(crate) fn started(call: &Call) -> Body {
    let outside = call.cx.nested || call.cx.turn == TurnId::default();
    let told = outside || call.cx.wrapped || call.hooked || call.mended;
    let input = call.input().or(call.request.input.as_ref()).filter(|_| told);
    Body::CallStarted {
        call: call.cx.call.clone(),
        tool: call.tool().chars().take(200).collect(),
        input: input.cloned(),
        plan: call.plan().cloned(),
    }
}
