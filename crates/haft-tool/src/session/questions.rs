//! The broker: questions for a person are asked here, and answered from any front end.
//!
//! **Invariant:** a question is in the log before anyone sees it. It is settled exactly once, and
//! the first answer wins. It ends with its call. Where nobody can answer, its own `if_nobody`
//! counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use haft_types::{AgentPath, Answerer, Body, Question, QuestionId, Reply, ToolUse, TurnId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{Cx, Dispatcher, Events};

/// A waiting question.
pub struct Waiting {
    /// The question.
    pub question: Question,
    about: Option<(Arc<Dispatcher>, ToolUse)>,
    answer: oneshot::Sender<(Reply, Answerer)>,
}

/// The broker of a session's questions.
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

    /// Sets whether a front end is there that can answer.
    ///
    /// Once none is there any more, waiting questions are answered as if nobody had been there.
    pub fn set_somebody(&self, there: bool) {
        let mut waiting = self.lock();
        self.somebody.store(there, Ordering::Release);
        if !there {
            for (_, Waiting { question, answer, .. }) in std::mem::take(&mut *waiting) {
                // A call that ended meanwhile has settled its question itself.
                let _ = answer.send((question.if_nobody, Answerer::Nobody));
            }
        }
    }

    /// Reports whether a front end is there that can answer.
    pub fn is_somebody(&self) -> bool {
        self.somebody.load(Ordering::Acquire)
    }

    /// A new question id, unique in the session.
    pub fn next_id(&self) -> QuestionId {
        QuestionId::nth(self.asked.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Records the id of a question in a resumed log, so that new ids come after it.
    pub fn saw(&self, id: &QuestionId) {
        let number = id.0.trim_start_matches('q').parse().unwrap_or(0);
        self.asked.fetch_max(number, Ordering::Relaxed);
    }

    /// Asks about a call, and waits for a person's answer. The end of the call makes the question
    /// void.
    ///
    /// # Cancel safety
    /// A dropped future voids the question: it is reported as cancelled and waits no longer.
    pub async fn ask(&self, question: Question, cx: &Cx, request: ToolUse) -> (Reply, Answerer) {
        let about = Some((cx.dispatcher.clone(), request));
        self.ask_of(question, (cx.agent(), cx.turn, &cx.stop), about).await
    }

    /// Asks about a turn, and waits for a person's answer. `stop` makes the question void.
    ///
    /// # Cancel safety
    /// As [`ask`](Self::ask).
    pub async fn ask_of_turn(
        &self,
        question: Question,
        agent: &AgentPath,
        turn: TurnId,
        stop: &CancellationToken,
    ) -> (Reply, Answerer) {
        self.ask_of(question, (agent, turn, stop), None).await
    }

    async fn ask_of(
        &self,
        question: Question,
        (agent, turn, stop): (&AgentPath, TurnId, &CancellationToken),
        about: Option<(Arc<Dispatcher>, ToolUse)>,
    ) -> (Reply, Answerer) {
        let (id, fallback) = (question.id.clone(), question.if_nobody.clone());
        let void = (fallback.clone(), Answerer::Cancelled);
        let mut open = Open { broker: self, agent, turn, id: id.clone(), settled: void };
        let (answer, answered) = oneshot::channel();
        let wait = {
            let mut waiting = self.lock();
            let wait = self.is_somebody();
            if wait {
                waiting.insert(id, Waiting { question: question.clone(), about, answer });
            }
            wait
        };
        let asked = self.events.emit(agent, turn, Body::Asked { question });
        if asked.is_err() || !wait {
            open.settled = (fallback, Answerer::Nobody);
        } else {
            let answered = async {
                // Who is asked can read the question in the log. Where that fails, so does the sync
                // before anything is changed.
                drop(self.events.sync().await);
                answered.await
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                answer = answered => {
                    open.settled = answer.unwrap_or((fallback, Answerer::Nobody));
                }
            }
        }
        open.settled.clone()
    }

    /// Answers a question from the named front end; false when it was settled before.
    pub fn reply(&self, id: &QuestionId, reply: Reply, front_end: &str) -> bool {
        let Some(waiting) = self.lock().remove(id) else { return false };
        waiting.answer.send((reply, Answerer::Person(front_end.to_owned()))).is_ok()
    }

    /// Settles a waiting question with its `if_nobody`: nobody has seen it, or no person answered
    /// it.
    pub fn unanswered(&self, id: &QuestionId) {
        if let Some(Waiting { question, answer, .. }) = self.lock().remove(id) {
            // A call that ended meanwhile has settled its question itself.
            let _ = answer.send((question.if_nobody, Answerer::Nobody));
        }
    }

    /// The call that a waiting question is about, and the dispatcher that makes the call. None where
    /// it is about no call.
    pub fn about(&self, id: &QuestionId) -> Option<(Arc<Dispatcher>, ToolUse)> {
        self.lock().get(id)?.about.clone()
    }

    /// The waiting questions, oldest first.
    pub fn open(&self) -> Vec<Question> {
        self.lock().values().map(|waiting| waiting.question.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<QuestionId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question on its way; settled when dropped, whatever became of it.
struct Open<'a> {
    broker: &'a Broker,
    agent: &'a AgentPath,
    turn: TurnId,
    id: QuestionId,
    settled: (Reply, Answerer),
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.broker.lock().remove(&self.id);
        let (reply, by) = self.settled.clone();
        let answered = Body::Answered { question: self.id.clone(), reply, by };
        // A log that cannot be written has failed the call that asked, or will.
        drop(self.broker.events.emit(self.agent, self.turn, answered));
    }
}
