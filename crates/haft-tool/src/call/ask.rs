//! Forms that a tool puts before a person.
//!
//! **Invariant:** the time spent here counts for no timeout. Where nobody can answer, the tool is
//! told at once.

use std::time::Duration;

use haft_types::{Answerer, Choice, Question, QuestionKind, Reply, ToolError};
use serde_json::Value;

use crate::Cx;

/// A form for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedForm {
    /// Who asks, and for what, in a sentence.
    pub text: String,
    /// JSON Schema (2020-12) of the fields.
    pub form: Value,
    /// How long it waits for an answer; none for as long as it takes.
    pub within: Option<Duration>,
}

impl AskedForm {
    /// The option of a reply that has values.
    pub const ANSWER: &str = "answer";
    /// The option of a reply that has none.
    pub const DISMISS: &str = "dismiss";
}

/// What a tool that asks ends with where nobody can answer.
pub fn nobody_is_here() -> ToolError {
    ToolError::new("nobody is here who could answer").hint(
        "Decide by the safest reading of the task and go on. Say in your final message what you \
         assumed. Leave undone what cannot be taken back, and ask for it there.",
    )
}

impl Cx {
    /// Puts a form before a person, and waits for the answer.
    ///
    /// # Cancel safety
    /// A dropped future takes the question back.
    pub async fn ask(&self, asked: AskedForm) -> (Reply, Answerer) {
        let choice =
            |id: &str, key, label: &str| Choice { id: id.into(), key, label: label.into() };
        let question = Question {
            id: self.session().questions.next_id(),
            call: Some(self.call.clone()),
            agent: self.agent().clone(),
            kind: QuestionKind::Form,
            text: asked.text,
            command: None,
            preview: None,
            options: vec![
                choice(AskedForm::ANSWER, 'y', "yes, send this"),
                choice(AskedForm::DISMISS, 'n', "no answer"),
            ],
            form: Some(asked.form),
            if_nobody: Reply::pick(AskedForm::DISMISS),
        };
        self.put(question, asked.within).await
    }

    /// Puts a question before a person, and waits for the answer.
    ///
    /// # Cancel safety
    /// As [`ask`](Self::ask).
    pub async fn put(&self, question: Question, within: Option<Duration>) -> (Reply, Answerer) {
        let (questions, id) = (&self.session().questions, question.id.clone());
        let _open = self.asking.begin();
        let mut answered =
            std::pin::pin!(questions.ask_of_turn(question, self.agent(), self.turn, &self.stop));
        let Some(within) = within else { return answered.await };
        if let Ok(answer) = tokio::time::timeout(within, &mut answered).await {
            return answer;
        }
        questions.unanswered(&id);
        answered.await
    }
}
