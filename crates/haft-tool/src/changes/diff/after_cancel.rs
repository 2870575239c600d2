//! Finds the changes of commands that were cancelled or timed out, after their answer.
//!
//! **Invariant:** such a scan begins before the answer, so that the scan for the next command comes
//! after it. Its results are in the log. They are shown to people at once, and to the model with
//! the next answer. The model also gets with it what was found in time for the answer of a
//! cancelled call that nobody reads.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_types::{Body, CallId, Level};
use tokio::task::JoinHandle;

use super::{Comparison, Signs, found_later, locked};
use crate::Cx;

/// What the answer of such a command says.
pub(super) const LATER: &str =
    "what it changed is still looked for: haft undo takes that back, and it is told next";

#[derive(Default)]
pub(super) struct Late {
    looks: Mutex<Vec<JoinHandle<()>>>,
    /// What no model was told yet.
    untold: Arc<Mutex<Vec<String>>>,
    /// Whether nobody hears the answers of cancelled calls.
    unheard: AtomicBool,
}

impl Late {
    /// Sees to it that a look goes on, and that what it finds is told.
    pub(super) fn follow(
        &self,
        call: Cx,
        signs: Option<Signs>,
        look: impl Future<Output = Comparison> + Send + 'static,
    ) {
        let untold = self.untold.clone();
        let work = async move {
            let Comparison { receipts, lines, .. } = look.await;
            let id = call.call.clone();
            if !receipts.is_empty()
                && let Err(error) = call.emit(Body::Found { call: id.clone(), receipts })
            {
                let text = format!("what {id} changed cannot be taken back: {error}");
                // A log that cannot be written is told of by whoever writes it next.
                drop(call.emit(Body::Notice { level: Level::Error, text }));
            }
            if let Some(signs) = signs {
                signs.end(&id);
            }
            for line in lines {
                let text = found_later(&id, &line);
                drop(call.emit(Body::Notice { level: Level::Info, text: text.clone() }));
                locked(&untold).push(text);
            }
        };
        let mut looks = locked(&self.looks);
        looks.retain(|look| !look.is_finished());
        looks.push(tokio::spawn(work));
    }

    /// Says that nobody hears the answers of cancelled calls.
    pub(super) fn cancelled_are_unheard(&self) {
        self.unheard.store(true, Ordering::Relaxed);
    }

    /// Takes note of what the answer of a cancelled call says, where nobody hears it.
    pub(super) fn cancelled(&self, call: &CallId, lines: &[String]) {
        if self.unheard.load(Ordering::Relaxed) {
            locked(&self.untold).extend(lines.iter().map(|line| found_later(call, line)));
        }
    }

    /// Takes note of what the next answer tells.
    pub(super) fn add(&self, text: String) {
        locked(&self.untold).push(text);
    }

    /// What no model was told yet; from now on it was.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.untold))
    }

    /// Waits until nothing is looked for any more.
    pub(super) async fn finished(&self) {
        let looks = std::mem::take(&mut *locked(&self.looks));
        for look in looks {
            // One that broke off has nothing to tell.
            drop(look.await);
        }
    }
}
