//! The broker: whatever needs a person is asked here, and answered from any front end.
//!
//! **Invariant:** a question is on the log before anyone sees it, is settled exactly once, and the
//! first answer wins. It dies with its call. Where nobody can answer, its own `if_nobody` counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use haft_types::{AgentPath, Answerer, Body, Question, QuestionId, Reply, TurnId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::Events;

/// A question that waits.
#[derive(Debug)]
pub struct Waiting {
    /// The question.
    pub question: Question,
    answer: oneshot::Sender<(Reply, Answerer)>,
}

/// See the module.
pub struct Broker {
    events: Arc<dyn Events>,
    waiting: Mutex<BTreeMap<QuestionId, Waiting>>,
    somebody: AtomicBool,
    asked: AtomicU64,
}

impl Broker {
    pub(crate) fn new(events: Arc<dyn Events>) -> Self {
        Self {
            events,
            waiting: Mutex::default(),
            somebody: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    /// Says whether a front end is there that can answer.
    pub fn set_somebody(&self, there: bool) {
        self.somebody.store(there, Ordering::Release);
    }

    /// Reports whether a front end is there that can answer.
    pub fn is_somebody(&self) -> bool {
        self.somebody.load(Ordering::Acquire)
    }

    /// A new question id, unique in the session.
    pub fn next_id(&self) -> QuestionId {
        QuestionId::nth(self.asked.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes note of how many questions a resumed log already has.
    pub fn saw(&self, id: &QuestionId) {
        let number = id.0.trim_start_matches('q').parse().unwrap_or(0);
        self.asked.fetch_max(number, Ordering::Relaxed);
    }

    /// Asks, and waits for the answer of a person; cancelling `stop` makes the question void.
    pub async fn ask(
        &self,
        question: Question,
        agent: &AgentPath,
        turn: TurnId,
        stop: &CancellationToken,
    ) -> (Reply, Answerer) {
        let (id, fallback) = (question.id.clone(), question.if_nobody.clone());
        let (answer, answered) = oneshot::channel();
        let wait = self.is_somebody();
        if wait {
            let waiting = Waiting { question: question.clone(), answer };
            self.lock().insert(id.clone(), waiting);
        }
        let settled = if self.events.emit(agent, turn, Body::Asked { question }).is_err() || !wait {
            (fallback, Answerer::Nobody)
        } else {
            let void = (fallback.clone(), Answerer::Cancelled);
            tokio::select! {
                biased;
                () = stop.cancelled() => void,
                answer = answered => answer.unwrap_or((fallback, Answerer::Nobody)),
            }
        };
        self.lock().remove(&id);
        let (reply, by) = settled.clone();
        drop(self.events.emit(agent, turn, Body::Answered { question: id, reply, by }));
        settled
    }

    /// Answers a question from the named front end; false when it was settled before.
    pub fn reply(&self, id: &QuestionId, reply: Reply, front_end: &str) -> bool {
        let Some(waiting) = self.lock().remove(id) else { return false };
        waiting.answer.send((reply, Answerer::Person(front_end.to_owned()))).is_ok()
    }

    /// The questions that wait now, oldest first.
    pub fn open(&self) -> Vec<Question> {
        self.lock().values().map(|waiting| waiting.question.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<QuestionId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
