//! A pool of threads that follow commands, each one command after the other.
//!
//! **Invariant:** a caller never waits for a busy thread: another one is started then. Idle threads
//! end with the host.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError, mpsc},
};

/// Stack of a following thread, in bytes.
const STACK: usize = 256 << 10;
/// Most threads that wait for something to do.
const IDLE: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

/// See the module.
#[derive(Default)]
pub(in crate::local) struct Threads {
    /// To each of those that have nothing to do.
    idle: Arc<Mutex<Vec<mpsc::Sender<Work>>>>,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl Threads {
    /// Does something on one of them.
    ///
    /// # Errors
    /// When there is none, and none can be started.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut work: Work = Box::new(work);
        loop {
            let next = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(next) = next else { break };
            match next.send(work) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(back)) => work = back,
            }
        }
        let idle = Arc::downgrade(&self.idle);
        let all = move || {
            loop {
                work();
                let (hand, take) = mpsc::channel();
                let Some(idle) = idle.upgrade() else { return };
                let mut waiting = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if waiting.len() == IDLE {
                    return;
                }
                waiting.push(hand);
                drop(waiting);
                // What it waits for must not be held by itself.
                drop(idle);
                match take.recv() {
                    Ok(next) => work = next,
                    Err(mpsc::RecvError) => return,
                }
            }
        };
        std::thread::Builder::new().name("haft-child".into()).stack_size(STACK).spawn(all)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_free_is_used_again_and_a_busy_one_is_not_waited_for() {
        let threads = Threads::default();
        let (hand, take) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let busy = hand.clone();
        threads
            .run(move || {
                let _ = wait.recv();
                let _ = busy.send(std::thread::current().id());
            })
            .unwrap();
        let free = hand.clone();
        threads.run(move || free.send(std::thread::current().id()).unwrap()).unwrap();
        let second = take.recv().unwrap();
        drop(go);
        let first = take.recv().unwrap();
        assert_ne!(first, second);
        // One that is done takes a moment until it waits again.
        let used_again = (0..1000).any(|_| {
            let hand = hand.clone();
            threads.run(move || hand.send(std::thread::current().id()).unwrap()).unwrap();
            [first, second].contains(&take.recv().unwrap())
        });
        assert!(used_again);
    }
}
