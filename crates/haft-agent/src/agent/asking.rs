//! Questions about a turn whose limit is reached: a person decides whether it goes on.
//!
//! **Invariant:** nothing is asked of the model before the answer. Where nobody can answer the turn
//! ends with the reason, as it does with a no.

use futures::{FutureExt as _, future::BoxFuture};
use haft_llm::LlmError;
use haft_tool::Repeats;
use haft_types::{Choice, Question, QuestionKind, Reply};

use super::Agent;
use crate::Input;

/// The answer that lets the turn go on.
const YES: &str = "allow";

/// Which limit a question is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reached {
    /// The money, which so many dollars are added to.
    Money(f64),
    /// The same call again and again.
    Repeats,
}

/// A question that waits.
pub(super) struct LimitQuestion {
    work: BoxFuture<'static, Reply>,
    reached: Reached,
    reason: String,
}

/// Waits for the answer; for ever where nothing was asked.
pub(super) async fn replied(asked: &mut Option<LimitQuestion>) -> Reply {
    match asked {
        Some(asked) => (&mut asked.work).await,
        None => std::future::pending().await,
    }
}

impl Agent {
    /// Asks whether the turn goes on though a limit is reached; ends it where nobody can answer.
    pub(super) fn ask_person(&mut self, reached: Reached, reason: String) -> Option<Input> {
        let dispatcher = &self.setup.dispatcher;
        let (session, agent) = (dispatcher.session.clone(), dispatcher.agent.clone());
        if !session.questions.is_somebody() {
            return Some(self.too_dear(reason));
        }
        let (yes, asks) = match reached {
            Reached::Money(more) => {
                let all = self.money_limit().unwrap_or_default() + more;
                (format!("yes, up to ${all} in this turn"), "Go on and raise it?")
            }
            Reached::Repeats => ("yes, and count anew".to_owned(), "Go on all the same?"),
        };
        let choice = |id: &str, key, label| Choice { id: id.to_owned(), key, label };
        let question = Question {
            id: session.questions.next_id(),
            call: None,
            agent: agent.clone(),
            kind: QuestionKind::Choice,
            text: format!("The turn has come to {reason}. {asks}"),
            command: None,
            preview: None,
            options: vec![
                choice(YES, 'y', yes),
                choice("deny", 'n', "no, the turn ends here".to_owned()),
            ],
            form: None,
            if_nobody: Reply::pick("deny"),
        };
        let (turn, stop) = (self.turn, self.stop.clone());
        let work =
            async move { session.questions.ask_of_turn(question, &agent, turn, &stop).await.0 };
        self.asked = Some(LimitQuestion { work: work.boxed(), reached, reason });
        None
    }

    /// Goes on, or ends the turn, as the person wants.
    pub(super) async fn was_replied(&mut self, reply: Reply) {
        let Some(LimitQuestion { reached, reason, .. }) = self.asked.take() else { return };
        let input = if reply.option == YES {
            match reached {
                Reached::Money(more) => self.raised += more,
                Reached::Repeats => self.count_repeats(),
            }
            self.ask()
        } else {
            Some(self.too_dear(reason))
        };
        if let Some(input) = input {
            Box::pin(self.step(input)).await;
        }
    }

    /// Counts calls that are the same from here on.
    pub(super) fn count_repeats(&self) {
        let repeats = self.setup.dispatcher.conversation.map.get::<Repeats>();
        repeats.begin(self.setup.limits.repeats);
    }

    /// Why the same call is not made once more; none where it may be.
    pub(super) fn repeats(&self) -> Option<String> {
        let repeats = self.setup.dispatcher.conversation.map.get::<Repeats>();
        repeats.next_answer();
        repeats.exceeded()
    }

    fn too_dear(&mut self, reason: String) -> Input {
        self.limited = true;
        Input::TooDear { reason }
    }

    /// Gives a question up; none where none waits.
    pub(super) fn cancel_question(&mut self) -> Option<Input> {
        self.asked.take()?;
        let error = LlmError::Cancelled.to_string();
        Some(Input::AnswerCut { error, calls: Vec::new() })
    }
}
