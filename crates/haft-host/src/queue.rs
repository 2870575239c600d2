//! One lock queue for each real file.
//!
//! **Invariant:** each (host, real path) has at most one holder, and waiters are served in order of
//! arrival. A path that nobody holds or waits for takes no memory.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use haft_types::HostPath;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

type Key = (Box<str>, HostPath);
type Map = Mutex<HashMap<Key, Arc<AsyncMutex<()>>>>;

/// The queues of a session; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    map: Arc<Map>,
}

impl Queues {
    /// Waits for the lock of a real path of a host. The lock is released when it is dropped.
    ///
    /// The place in the queue is taken when the future is first polled; a dropped future leaves it.
    pub fn lock(
        &self,
        host: &str,
        real: &HostPath,
    ) -> impl Future<Output = FileLock> + Send + use<> {
        let map = Arc::clone(&self.map);
        let key = (Box::from(host), real.clone());
        async move {
            let mutex = {
                let mut entries = map.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(entries.entry(key.clone()).or_default())
            };
            let entry = Entry { map, key, mutex: Some(Arc::clone(&mutex)) };
            let guard = mutex.lock_owned().await;
            FileLock { _guard: guard, _entry: entry }
        }
    }

    /// Number of paths that are held or waited for.
    pub fn len(&self) -> usize {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// True when nobody holds or waits for any path.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The lock of a file. It may be moved into a task, and is released when it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends at once when the lock is not kept"]
pub struct FileLock {
    // Dropped first, so that the entry sees who else is left.
    _guard: OwnedMutexGuard<()>,
    _entry: Entry,
}

/// A holder's or waiter's part in the map; the last one out removes the path.
#[derive(Debug)]
struct Entry {
    map: Arc<Map>,
    key: Key,
    mutex: Option<Arc<AsyncMutex<()>>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        self.mutex = None;
        // All clones of a path are made and dropped under the lock of the map, but for those of
        // waiting futures, each of which has an entry of its own that comes by here later.
        if entries.get(&self.key).is_some_and(|mutex| Arc::strong_count(mutex) == 1) {
            entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    fn path(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }

    #[tokio::test]
    async fn turns_come_in_order_and_leave_nothing() {
        let queues = Queues::default();
        let first = queues.lock("local", &path("/a")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for n in 0..20 {
            let mut turn = Box::pin(queues.lock("local", &path("/a")));
            assert!(futures::poll!(&mut turn).is_pending());
            let order = Arc::clone(&order);
            tasks.push(tokio::spawn(async move {
                let _lock = turn.await;
                order.lock().unwrap().push(n);
            }));
        }
        let other = queues.lock("memory", &path("/a")).await;
        assert_eq!(queues.len(), 2);
        drop((first, other));
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert!(queues.is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_leaves_its_place() {
        let queues = Queues::default();
        let held = queues.lock("local", &path("/a")).await;
        let mut waiting = Box::pin(queues.lock("local", &path("/a")));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(waiting);
        assert_eq!(queues.len(), 1);
        drop(held);
        assert!(queues.is_empty());
        drop(queues.lock("local", &path("/a")));
        assert!(queues.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn two_hundred_writers_never_meet() {
        let queues = Queues::default();
        let inside = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                let turn = queues.lock("local", &path(["/a", "/b"][n % 2]));
                let inside = Arc::clone(&inside);
                let bit = 1 << (16 * (n % 2));
                tokio::spawn(async move {
                    let _lock = turn.await;
                    let before = inside.fetch_add(bit, std::sync::atomic::Ordering::SeqCst);
                    assert_eq!(before / bit % 2, 0);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(bit, std::sync::atomic::Ordering::SeqCst);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(queues.is_empty());
    }
}
