//! The services of a session, which its builder provides to the tools: values by their type, and
//! closers that run at the end of the session.
//!
//! A service is usually a trait object. A tool names the trait, and the builder of the session
//! inserts the value: `services.insert::<dyn Clock>(Arc::new(SystemClock))`, then
//! `cx.service::<dyn Clock>()`.
//!
//! **Invariant:** every closer runs once. A closer that hangs or panics is abandoned and named, and
//! holds up no other for longer than its own time.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use haft_types::ToolError;

/// When something is closed. All closers of one phase run at the same time, before the next phase
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Active work: jobs, shells, servers, agents.
    Work,
    /// Records: files of logs, copies, outputs.
    Record,
}

/// Closes something; returns what it stopped, in words.
pub type Closer = Box<dyn FnOnce() -> BoxFuture<'static, Vec<String>> + Send>;

struct Entry {
    name: &'static str,
    phase: Phase,
    within: Duration,
    close: Closer,
}

/// The services of a session.
#[derive(Default)]
pub struct Services {
    /// An `Arc<T>` each, by the type `T`.
    by_type: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
    closers: Mutex<Vec<Entry>>,
}

impl Services {
    /// Inserts a service. One of the same type that was there before is replaced.
    pub fn insert<T: ?Sized + Send + Sync + 'static>(&self, service: Arc<T>) {
        let mut all = self.by_type.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(TypeId::of::<T>(), Box::new(service));
    }

    /// The service of this type; none where none was inserted.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let all = self.by_type.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&TypeId::of::<T>())?.downcast_ref::<Arc<T>>().cloned()
    }

    /// The service of this type, which is made where nobody gave one.
    pub(crate) fn get_or_insert<T: ?Sized + Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        let mut all = self.by_type.lock().unwrap_or_else(PoisonError::into_inner);
        let there = all.get(&TypeId::of::<T>()).and_then(|any| any.downcast_ref::<Arc<T>>());
        if let Some(service) = there {
            return service.clone();
        }
        let service = make();
        all.insert(TypeId::of::<T>(), Box::new(service.clone()));
        service
    }

    /// As [`get`](Self::get), for a tool that cannot work without the service.
    ///
    /// # Errors
    /// When the service is missing; names it.
    pub fn required<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        let missing = || {
            let name = type_name::<T>();
            let text = format!("this session has no service `{name}`, which the tool needs");
            ToolError::new(text)
                .hint("go on without this tool: who builds the session gives services")
        };
        self.get().ok_or_else(missing)
    }

    /// Registers a closer that runs when the session is closed; it may take the time `within`.
    pub fn on_close(&self, name: &'static str, phase: Phase, within: Duration, close: Closer) {
        let mut closers = self.closers.lock().unwrap_or_else(PoisonError::into_inner);
        closers.push(Entry { name, phase, within, close });
    }

    /// Runs all closers, phase by phase. Returns what they stopped, and what did not end, in words.
    /// Nothing is closed twice.
    pub async fn close(&self) -> Vec<String> {
        let mut stopped = Vec::new();
        for phase in [Phase::Work, Phase::Record] {
            // Closers that others add meanwhile count, too.
            loop {
                let entries = self.take(phase);
                if entries.is_empty() {
                    break;
                }
                stopped.extend(join_all(entries.into_iter().map(closed)).await.concat());
            }
        }
        stopped
    }

    fn take(&self, phase: Phase) -> Vec<Entry> {
        let mut closers = self.closers.lock().unwrap_or_else(PoisonError::into_inner);
        closers.extract_if(.., |entry| entry.phase == phase).collect()
    }
}

/// Closes one; in a task of its own, so that a panic in it is nobody else's.
async fn closed(entry: Entry) -> Vec<String> {
    let Entry { name, within, close, .. } = entry;
    let mut work = tokio::spawn(async move { close().await });
    match tokio::time::timeout(within, &mut work).await {
        Ok(Ok(stopped)) => stopped,
        Ok(Err(_)) => vec![format!("{name}, which failed as it ended")],
        Err(_) => {
            work.abort();
            vec![format!("{name}, which did not end within {} s", within.as_secs_f32())]
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    trait Clock: Send + Sync {
        fn now(&self) -> u64;
    }

    struct Fixed(u64);

    impl Clock for Fixed {
        fn now(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_service_is_found_by_its_trait_and_a_missing_one_is_named() {
        let services = Services::default();
        let error = services.required::<dyn Clock>().err().unwrap().to_string();
        assert!(error.contains("Clock") && error.contains("no service"), "{error}");
        services.insert::<dyn Clock>(Arc::new(Fixed(7)));
        assert_eq!(services.get::<dyn Clock>().unwrap().now(), 7);
        // The value's own type is another one.
        assert!(services.get::<Fixed>().is_none());
        services.insert::<dyn Clock>(Arc::new(Fixed(8)));
        assert_eq!(services.required::<dyn Clock>().unwrap().now(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_or_panics_is_left_and_named_and_all_others_run_once() {
        let services = Services::default();
        let ran = Arc::new(AtomicUsize::new(0));
        let second = Duration::from_secs(1);
        let counted = |phase| {
            let ran = Arc::clone(&ran);
            let close: Closer = Box::new(move || {
                let before = ran.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move { vec![format!("number {before}")] })
            });
            services.on_close("counted", phase, second, close);
        };
        counted(Phase::Record);
        services.on_close(
            "hangs",
            Phase::Work,
            second,
            Box::new(|| Box::pin(std::future::pending())),
        );
        services.on_close("panics", Phase::Work, second, Box::new(|| panic!("no")));
        counted(Phase::Work);
        let began = tokio::time::Instant::now();
        let said = services.close().await;
        assert_eq!(began.elapsed(), second);
        assert_eq!(
            said,
            [
                "hangs, which did not end within 1 s",
                "panics, which failed as it ended",
                "number 0",
                "number 1"
            ]
        );
        assert!(services.close().await.is_empty());
        assert_eq!(ran.load(Ordering::Relaxed), 2);
    }
}
