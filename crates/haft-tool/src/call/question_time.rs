//! Measures how long calls waited for people, so that this time counts for no timeout and no
//! duration.
//!
//! **Invariant:** questions that are open at the same time are counted once, and a question that is
//! dropped stops counting.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The time that a call and those nested in it spent asking; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asking(Arc<Mutex<Spent>>);

#[derive(Debug, Default)]
struct Spent {
    closed: Duration,
    open: usize,
    since: Option<Instant>,
}

impl Asking {
    /// Counts until the value is dropped.
    pub fn begin(&self) -> Open {
        let mut spent = self.lock();
        spent.open += 1;
        spent.since.get_or_insert_with(Instant::now);
        Open(self.clone())
    }

    /// All time until now, open questions included.
    pub fn so_far(&self) -> Duration {
        let spent = self.lock();
        spent.closed + spent.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open.
pub(crate) struct Open(Asking);

impl Drop for Open {
    fn drop(&mut self) {
        let mut spent = self.0.lock();
        spent.open -= 1;
        if spent.open == 0
            && let Some(since) = spent.since.take()
        {
            spent.closed += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_at_the_same_time_count_once() {
        let asking = Asking::default();
        let second = Duration::from_secs(1);
        let first = asking.begin();
        tokio::time::advance(second).await;
        let other = asking.begin();
        tokio::time::advance(second).await;
        assert_eq!(asking.so_far(), 2 * second);
        drop(first);
        tokio::time::advance(second).await;
        drop(other);
        tokio::time::advance(second).await;
        assert_eq!(asking.so_far(), 3 * second);
    }
}
