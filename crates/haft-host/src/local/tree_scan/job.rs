//! How the work of one tree scan begins.
//!
//! **Invariant:** each scan begins with nothing found, and ends with its own token and time.

use std::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Instant,
};

use tokio_util::sync::CancellationToken;

use super::{Clean, Job};
use crate::{Copies, SurveyLimits, TreeScan, walk::Passed};

impl<'a> Job<'a> {
    /// One that has looked at nothing yet; it ends at the first of these times, and began at the other.
    pub(super) fn new(
        known: &'a TreeScan,
        copies: &'a dyn Copies,
        clean: &'a Clean,
        limits: SurveyLimits,
        stop: CancellationToken,
        (until, now): (Instant, i128),
    ) -> Self {
        Self {
            known,
            copies,
            clean,
            limits,
            stop,
            until,
            now,
            files: AtomicUsize::new(0),
            folders: AtomicUsize::new(0),
            fault: Mutex::default(),
            ended: AtomicBool::new(false),
            given: Mutex::default(),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(0),
            passed: Passed::default(),
        }
    }

    /// The same job for what git ignores, with copies of its own.
    pub(super) fn with<'b>(&'b self, copies: &'b dyn Copies) -> Job<'b> {
        let times = (self.until, self.now);
        Job::new(self.known, copies, self.clean, self.limits, self.stop.clone(), times)
    }
}
