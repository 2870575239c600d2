//! Progress and output of a running call: at most ten values of each kind a second, each of bounded
//! size.
//!
//! **Invariant:** the last value of each kind is shown before the end of the call is reported, and
//! nothing after that. Memory is fixed however much a tool shows. A timer runs only while something
//! waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_text::secrets;
use haft_types::{Body, Detail, Stream};
use tokio::time::Instant;

use crate::{Cx, session::truncate};

/// Least time between two values of one kind.
const GAP: Duration = Duration::from_millis(100);
/// Most bytes of a progress value as JSON.
const PROGRESS: usize = 4 * 1024;
/// Most bytes of output in one piece, and of all that waits.
const OUTPUT: usize = 16 * 1024;
/// Stretches of one stream that wait; more are put together.
const STRETCHES: usize = 8;

/// What waits to be shown; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    progress: Option<Detail>,
    progressed: Option<Instant>,
    output: VecDeque<(Stream, String)>,
    /// Bytes in `output`, and those that had no room in it.
    size: usize,
    dropped: usize,
    said: Option<Instant>,
    /// What of each stream is held back because a secret may begin there.
    held: [secrets::Stream; 2],
    /// True while a clock runs for what waits.
    armed: bool,
    ended: bool,
}

impl Waiting {
    fn push(&mut self, stream: Stream, text: &str) {
        let head = truncate::head(text, OUTPUT.saturating_sub(self.size));
        self.dropped += text.len() - head.len();
        self.size += head.len();
        let full = self.output.len() >= STRETCHES;
        let same = self.output.iter_mut().rev().take(if full { STRETCHES } else { 1 });
        match same.into_iter().find(|(of, _)| *of == stream) {
            Some((_, last)) => last.push_str(head),
            None if !head.is_empty() => self.output.push_back((stream, head.to_owned())),
            None => {}
        }
    }

    /// The next piece of output; the last one says how much had no room.
    fn pop(&mut self) -> Option<(Stream, String)> {
        let (stream, mut text) = self.output.pop_front()?;
        self.size -= text.len();
        if self.output.is_empty() && self.dropped > 0 {
            text.extend([format!("\n[{} bytes are not shown live]\n", self.dropped)]);
            self.dropped = 0;
        }
        Some((stream, text))
    }

    /// Shows what is due, or all; gives when the next is due.
    fn show(&mut self, cx: &Cx, all: bool) -> Option<Instant> {
        let due = |last: Option<Instant>| last.is_none_or(|last| last.elapsed() >= GAP);
        // What cannot be shown is lost on purpose: nothing depends on it.
        if (all || due(self.progressed))
            && let Some(detail) = self.progress.take()
        {
            drop(cx.emit(Body::CallProgress { call: cx.call.clone(), detail }));
            self.progressed = Some(Instant::now());
        }
        while (all || due(self.said))
            && let Some((stream, text)) = self.pop()
        {
            drop(cx.emit(Body::CallOutput { call: cx.call.clone(), stream, text }));
            self.said = Some(Instant::now());
        }
        let progress = self.progressed.filter(|_| self.progress.is_some());
        let output = self.said.filter(|_| !self.output.is_empty());
        progress.into_iter().chain(output).min().map(|last| last + GAP)
    }
}

impl Live {
    /// Shows where the call is, or keeps it until it is due.
    pub fn progress(&self, cx: &Cx, mut detail: Detail) {
        truncate::shorten_detail(&mut detail, PROGRESS);
        self.take(cx, |waiting| waiting.progress = Some(detail));
    }

    /// Shows more output, or keeps it until it is due.
    pub fn output(&self, cx: &Cx, stream: Stream, text: &str) {
        self.take(cx, |waiting| {
            let held = &mut waiting.held[usize::from(stream == Stream::Stderr)];
            let text = held.push(&cx.session().secrets, text);
            waiting.push(stream, &text);
        });
    }

    /// Shows all that waits; nothing is shown after that.
    pub fn end(&self, cx: &Cx) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let text = waiting.held[at].end(&cx.session().secrets);
            waiting.push(stream, &text);
        }
        waiting.show(cx, true);
        waiting.ended = true;
    }

    fn take(&self, cx: &Cx, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.ended {
            return;
        }
        change(&mut waiting);
        let next = waiting.show(cx, false);
        if let (Some(next), false, Ok(runtime)) =
            (next, waiting.armed, tokio::runtime::Handle::try_current())
        {
            waiting.armed = true;
            runtime.spawn(self.clone().later(cx.clone(), next));
        }
    }

    /// Shows what waits when it is due: a tool may have nothing to show for long after it.
    async fn later(self, cx: Cx, mut due: Instant) {
        loop {
            tokio::time::sleep_until(due).await;
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.show(&cx, false) {
                Some(next) if !waiting.ended => due = next,
                _ => {
                    waiting.armed = false;
                    return;
                }
            }
        }
    }
}
