//! Standard output of a run, written by a thread of its own.
//!
//! **Why:** the program that reads it may stop reading. A write then waits forever, but signals and
//! the time limit must still end the run.

use tokio::sync::{mpsc, oneshot};

use crate::cli::exit::{Ending, Failure};

/// Most pieces that wait to be written: the lines of as many events.
const WAITING: usize = 64;

/// Standard output, written by a thread.
pub struct Out {
    /// None once all is handed over.
    texts: Option<mpsc::Sender<Vec<String>>>,
    /// How it went; none once that was asked.
    ended: Option<oneshot::Receiver<Ending>>,
}

impl Out {
    /// Starts a thread that writes each text by `write`.
    pub fn new(write: fn(&str) -> Ending) -> std::io::Result<Self> {
        let (texts, mut waiting) = mpsc::channel::<Vec<String>>(WAITING);
        let (end, ended) = oneshot::channel();
        let run = move || {
            let mut ending = Ok(());
            while ending.is_ok()
                && let Some(texts) = waiting.blocking_recv()
            {
                ending = texts.iter().try_for_each(|text| write(text));
            }
            // Nobody may wait for it any more.
            drop(end.send(ending));
        };
        std::thread::Builder::new().name("stdout".into()).spawn(run)?;
        Ok(Self { texts: Some(texts), ended: Some(ended) })
    }

    /// Waits until there is room for more. Nothing is lost if this is dropped.
    ///
    /// # Errors
    /// That of the write that failed.
    pub async fn ready(&mut self) -> Ending {
        if let Some(texts) = &self.texts
            && texts.reserve().await.is_ok()
        {
            return Ok(());
        }
        self.end().await
    }

    /// Hands texts over, once [`ready`](Self::ready) reported room for them.
    pub fn put(&self, texts: Vec<String>) {
        if let Some(to) = self.texts.as_ref().filter(|_| !texts.is_empty()) {
            // Where the writer ended, `ready` or `end` says why.
            drop(to.try_send(texts));
        }
    }

    /// Reports whether there is no room, because nothing was taken for a while.
    pub fn is_full(&self) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.capacity() == 0)
    }

    /// Reports whether nothing can be written any more.
    pub fn is_over(&self) -> bool {
        self.texts.as_ref().is_none_or(mpsc::Sender::is_closed)
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn end(&mut self) -> Ending {
        self.texts = None;
        let gone = || Err(Failure::Failed("standard output cannot be written any more".into()));
        match &mut self.ended {
            Some(ended) => {
                let ending = ended.await;
                self.ended = None;
                ending.unwrap_or_else(|_| gone())
            }
            None => gone(),
        }
    }
}
