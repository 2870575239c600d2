//! The model that is asked beside the conversation, for tools: the small one of the settings, or
//! the session's own.
//!
//! **Invariant:** it gets the question and no tool, no conversation and no secret. What it took is
//! an event of the call, so that it counts for the costs of the session. Where money is limited
//! nobody is asked: such a limit is kept by the agent, which does not know of these requests.

use std::sync::{PoisonError, Weak};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::gathered;
use haft_llm::{NoBlobs, Request};
use haft_tool::{Cx, Events as _, SideModel, SideQuestion, SideReply};
use haft_types::{Body, From, Message, Part, Status, Stop, Summarizer, ToolError, Usage};

use super::{
    model::{Model, ModelFacts, facts, model, named},
    session::Core,
};

/// Tokens of a window that nobody knows.
const WINDOW: u64 = 32_000;
/// Most tokens of an answer, thinking included.
const OUTPUT: u64 = 8_192;
/// Bytes of a token of data, by a careful guess.
const TOKEN: u64 = 3;

/// Asks models of a session.
pub struct SessionModels {
    /// The session.
    pub core: Weak<Core>,
    /// Most dollars of a turn, where money is limited.
    pub max_cost: Option<f64>,
}

/// One model's answer.
struct Answered {
    text: String,
    by: Summarizer,
    cost_usd: Option<f64>,
    is_cut: bool,
}

impl SideModel for SessionModels {
    fn ask<'a>(
        &'a self,
        cx: &'a Cx,
        asked: SideQuestion,
    ) -> BoxFuture<'a, Result<SideReply, ToolError>> {
        async move {
            let gone = || ToolError::new("the session is over");
            let core = self.core.upgrade().ok_or_else(gone)?;
            let settings = &core.base.loaded.settings;
            if let Some(most) = self.max_cost {
                return Err(ToolError::new(format!(
                    "nobody is asked beside the conversation while a limit of ${most} holds"
                )));
            }
            let own = core.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut notes = Vec::new();
            let small = settings.model.small.clone().filter(|small| *small != own);
            let mut failed = None;
            for name in small.into_iter().chain([own]) {
                match answered(&core, &name, &asked, cx).await {
                    Ok(answer) => {
                        let Answered { text, by, cost_usd, is_cut } = answer;
                        let body = Body::SideAnswer { call: cx.call.clone(), by };
                        core.bus.emit(cx.agent(), cx.turn, body).map_err(|error| {
                            ToolError::new(format!("the log cannot be written: {error}"))
                        })?;
                        notes.extend(failed);
                        return Ok(SideReply { text, model: name, cost_usd, is_cut, notes });
                    }
                    Err(_) if cx.stop.is_cancelled() => {
                        let error = ToolError::new("the question was cancelled");
                        return Err(ToolError { status: Status::Cancelled, ..error });
                    }
                    Err(why) => {
                        let before = failed.map(|before| format!("{before}; "));
                        let before = before.unwrap_or_default();
                        failed = Some(format!("{before}{name} did not answer: {why}"));
                    }
                }
            }
            Err(ToolError::new(failed.unwrap_or_else(|| "no model is named".to_owned())))
        }
        .boxed()
    }
}

/// Asks one model.
async fn answered(
    core: &Core,
    name: &str,
    asked: &SideQuestion,
    cx: &Cx,
) -> Result<Answered, String> {
    let base = &core.base;
    let mut settings = base.loaded.settings.clone();
    let reference = named(name, &settings).map_err(|error| error.to_string())?;
    settings.model.name = Some(reference.to_string());
    let Model { provider, target, .. } =
        model(&settings, &base.environment, 0, false).map_err(|error| error.to_string())?;
    let ModelFacts { context, output, prices, .. } = facts(&reference, &settings);
    let window = context.unwrap_or(WINDOW);
    let output = OUTPUT.min(window / 4).min(output.unwrap_or(u64::MAX));
    let fixed = (asked.system.len() + asked.question.len()) as u64;
    let room = (window.saturating_sub(output) * TOKEN).saturating_sub(fixed);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(asked.data.len());
    let end = asked.data.floor_char_boundary(room);
    let is_cut = end < asked.data.len();
    let text = format!("{}\n{}", &asked.data[..end], asked.question);
    let message = Message::User { from: From::Haft, parts: vec![Part::text(text)] };
    let request = Request {
        model: target.model.clone(),
        max_tokens: Some(u32::try_from(output).unwrap_or(u32::MAX)),
        system: vec![asked.system.clone()].into(),
        messages: vec![provider.encode(&message, &target, &NoBlobs)],
        ..Request::default()
    };
    let (wire, host) = (provider.name().to_owned(), provider.host().to_owned());
    let answer = gathered(provider.stream(request, cx.stop.clone())).await;
    let (text, stop, usage): (String, Stop, Usage) = answer.map_err(|error| error.to_string())?;
    if text.trim().is_empty() || stop == Stop::Refusal {
        return Err("it wrote no answer".to_owned());
    }
    let by = Summarizer { model: target.model, wire, host, usage };
    let cost_usd = prices.map(|prices| prices.cost(usage));
    Ok(Answered { text, by, cost_usd, is_cut })
}
