//! Answers that do not come to their end: cancelled, failed, or not to be logged.

use haft_llm::LlmError;
use haft_tool::RecordError;
use haft_types::{Body, Stop, Usage};

use super::{Agent, Streaming};
use crate::{Input, answer::Answer};

impl Agent {
    /// Ends the answer here and now: dropping its stream ends its request.
    pub(super) fn cancel_answer(&mut self) -> Option<Input> {
        let Some(Streaming { mut answer, stop, .. }) = self.answer.take() else {
            let cancelled = self.cancel_compaction().or_else(|| self.cancel_fallback());
            let cancelled = cancelled.or_else(|| self.cancel_question());
            return cancelled.or_else(|| self.cancel_hooks());
        };
        stop.cancel();
        if let Some(body) = answer.finish() {
            self.emit_or_tell(body);
        }
        let Answer { wire, model, calls, .. } = answer;
        let (stop, usage) = (Stop::Interrupted, Usage::default());
        let host = self.setup.provider.host().to_owned();
        self.emit_or_tell(Body::AnswerEnded { model, wire, host, stop, usage });
        Some(Input::AnswerCut { error: LlmError::Cancelled.to_string(), calls })
    }

    /// The server gave no answer, or only a part of one.
    pub(super) async fn answer_failed(&mut self, error: LlmError) {
        let Some(Streaming { mut answer, .. }) = self.answer.take() else { return };
        if let Some(body) = answer.finish() {
            self.emit_or_tell(body);
        }
        let is_void = answer.calls.is_empty();
        let shortens = matches!(error, LlmError::TooLong(_)) && is_void && self.shortens();
        let falls_back = is_void && self.fall_back(&error);
        let kind = error.kind();
        let (error, retried) = (error.to_string(), shortens || falls_back);
        let error = if retried { error } else { self.all_failed(error) };
        self.emit_or_tell(Body::AnswerFailed { error: error.clone(), retried, wait_ms: None });
        let input = if shortens {
            self.ask()
        } else if falls_back {
            None
        } else {
            self.cut_off(kind, error, answer.calls)
        };
        if let Some(input) = input {
            self.step(input).await;
        }
    }

    /// The log failed in the middle of an answer: it ends here, and the person is told.
    pub(super) async fn unkept(&mut self, error: &RecordError) {
        let Some(Streaming { answer, .. }) = self.answer.take() else { return };
        let error = error.to_string();
        self.emit_or_tell(Body::AnswerFailed {
            error: error.clone(),
            retried: false,
            wait_ms: None,
        });
        self.step(Input::AnswerCut { error, calls: answer.calls }).await;
    }
}
