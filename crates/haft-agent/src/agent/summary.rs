//! One summary: who is asked for it, how often, and what that takes.
//!
//! **Invariant:** a request has at most so much of the conversation as fits the window of the model
//! that is asked; the oldest part is left out. What a model took is counted at its own prices,
//! whether it wrote anything or not.

use futures::StreamExt as _;
use haft_llm::{Delta, LlmError, NoBlobs, Request};
use haft_types::{From, Message, Part, Stop, Summarizer, Usage};
use tokio_util::sync::CancellationToken;

use super::{money::Money, other_models::SmallModel};
use crate::compaction::{ContextLimits, SUMMARY_SYSTEM, Transcript, tokens};

/// Most bytes of a summary that are taken.
const LONGEST: usize = 256 << 10;
/// Least bytes of a conversation that a summary is worth.
const LEAST: usize = 2_000;
/// How often a model is asked, for less each time.
const TRIES: usize = 6;

/// What came of asking for a summary.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The summary.
    pub text: String,
    /// Who wrote it; none where nobody did.
    pub by: Option<Summarizer>,
    /// Who was asked and wrote none.
    pub others: Vec<Summarizer>,
    /// Dollars that all of that cost.
    pub cost: f64,
    /// Why nobody wrote it.
    pub error: Option<LlmError>,
    /// Why it was not the small model.
    pub notice: Option<String>,
    /// Why a hook wants none; nobody was asked then.
    pub refused: Option<String>,
}

impl Summary {
    /// Asks a model; where a text is too long for it, for that of a shorter one.
    pub async fn ask(
        &mut self,
        model: &SmallModel,
        told: &Transcript,
        money: Money,
        stop: &CancellationToken,
    ) -> Result<(), LlmError> {
        let (wire, host) = (model.provider.name().to_owned(), model.provider.host().to_owned());
        let usage = Usage::default();
        let mut by = Summarizer { model: model.target.model.clone(), wire, host, usage };
        let asked = self.tried(model, told, money, (stop, &mut by.usage)).await;
        let cost = model.prices.map_or(0.0, |prices| prices.cost(by.usage));
        self.cost += cost;
        match asked {
            Ok(text) => {
                (self.text, self.by, self.error) = (text, Some(by), None);
                Ok(())
            }
            Err(error) => {
                if by.usage != Usage::default() {
                    self.others.push(by);
                }
                self.error = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn tried(
        &self,
        model: &SmallModel,
        told: &Transcript,
        money: Money,
        (stop, used): (&CancellationToken, &mut Usage),
    ) -> Result<String, LlmError> {
        let SmallModel { provider, target, window, .. } = model;
        let limits = ContextLimits { window: *window, ..ContextLimits::default() };
        let window = window.unwrap_or(u64::MAX);
        // Most of a window of the summary's own request, in bytes.
        let room = (window.saturating_sub(limits.for_answer()) / 4).saturating_mul(3);
        let most = usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX).max(LEAST);
        let output = (window / 4).clamp(2_000.min(window / 3), 16_384);
        let output = output.min(model.output.unwrap_or(u64::MAX));
        let output = u32::try_from(output).unwrap_or(u32::MAX);
        let mut last = LlmError::TooLong("the conversation is too long to be summed up".into());
        let sizes =
            std::iter::successors(Some(most.min(told.len().max(LEAST))), |most| Some(most / 2));
        for most in sizes.take_while(|most| *most >= LEAST).take(TRIES) {
            let text = told.within(most);
            let spent = self.cost + model.prices.map_or(0.0, |prices| prices.cost(*used));
            money
                .buys(&model.name, model.prices, (spent, tokens(text.len())))
                .map_err(LlmError::Config)?;
            let message = Message::User { from: From::Haft, parts: vec![Part::text(text)] };
            let request = Request {
                model: target.model.clone(),
                max_tokens: Some(output),
                system: vec![SUMMARY_SYSTEM.to_owned()].into(),
                messages: vec![provider.encode(&message, target, &NoBlobs)],
                ..Request::default()
            };
            match gathered(provider.stream(request, stop.clone())).await {
                // Thinking may take all that it may write, and a refusal is no summary.
                Ok((text, stop, usage)) if text.trim().is_empty() || stop == Stop::Refusal => {
                    used.add(usage);
                    last = LlmError::TooLong("the model wrote no summary".into());
                }
                Ok((text, _, usage)) => {
                    used.add(usage);
                    return Ok(text);
                }
                Err(error @ LlmError::TooLong(_)) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

/// The text of an answer, up to 256 KB of it, why it ended, and what it took.
///
/// # Errors
/// Those of the answer, and when it has no end.
///
/// # Cancel safety
/// A dropped future ends the answer.
pub async fn gathered(mut answer: haft_llm::Answer) -> Result<(String, Stop, Usage), LlmError> {
    let mut text = String::new();
    while let Some(delta) = answer.next().await {
        match delta? {
            Delta::Text { text: more, .. } if text.len() + more.len() <= LONGEST => {
                text.push_str(&more);
            }
            Delta::Restart { .. } => text.clear(),
            Delta::End { stop, usage } => return Ok((text, stop, usage)),
            _ => {}
        }
    }
    Err(LlmError::Cut("the answer had no end".into()))
}
