//! Room for the next request: old results leave view, then older messages are summed up.
//!
//! **Invariant:** a request that is asked for after a compaction is smaller than the one before it,
//! and has at most the share of the window that the limits say. Where that cannot be, the turn ends
//! and says what is too big. No compaction follows another before the conversation has grown by a
//! tenth. Inputs are taken meanwhile, and an interrupt ends it.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::Outs;
use haft_llm::{LlmError, PinnedTools};
use haft_tool::{Dispatcher, Jobs, Permissions, RecordError, StandingNotes, StateNote};
use haft_types::{Body, BreakCause, From, Level, Message, Part, Usage};
use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Agent, AgentConfig, CompactTrigger, HookMoment, TalkHooks, history::keep_results,
    other_models::SmallModel, sent_bytes, summary::Summary,
};
use crate::{
    Input,
    compaction::{
        Attached, ContextLimits, Plan, Sizes, TooBig, Transcript, masked, older_words, plan,
        replacement, tokens,
    },
};

/// What is known of the room that requests have.
pub(super) struct Room {
    /// The provider's count of tokens beside the estimate.
    scale: f64,
    /// The estimate of the request that was asked for last, unscaled.
    asked: u64,
    /// What the provider counted for it; 0 where it did not.
    counted: u64,
    /// The size after the last compaction.
    after: Option<u64>,
    /// The share of the window that the model was told last, in percent.
    told: u8,
    /// Whether the person wanted `after`, whatever it is.
    is_by_hand: bool,
    /// Whether the server refused the last request as too long.
    is_refused: bool,
    /// A summary that is being written.
    compacting: Option<Compacting>,
}

impl Default for Room {
    fn default() -> Self {
        let (asked, counted, after, told) = (0, 0, None, 0);
        let (is_by_hand, is_refused, compacting) = (false, false, None);
        Self { scale: 1.0, asked, counted, after, is_by_hand, told, is_refused, compacting }
    }
}

/// A summary that is being written.
struct Compacting {
    work: BoxFuture<'static, Summary>,
    stop: CancellationToken,
    plan: Plan,
    before: u64,
    /// Whether the model is asked then.
    asks: bool,
    /// Who wanted it, where that is a person.
    tell: Option<oneshot::Sender<Result<String, String>>>,
}

/// What fills a request, in tokens by bytes: four bytes are one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowUse {
    /// The parts, each with its tokens: the system prompt, each tool, kinds of messages.
    pub rows: Vec<(String, u64)>,
    /// Tokens of images, which are estimated by their number.
    pub images: u64,
    /// The window; none where there is no limit.
    pub window: Option<u64>,
    /// What the server counted for the last request; none where it did not.
    pub counted: Option<u64>,
    /// The server's count beside the estimate.
    pub factor: f64,
}

/// Whether there is room for the next request.
pub(super) enum Space {
    /// There is.
    There,
    /// There will be, once a summary is written.
    Coming,
    /// There is none, for this reason.
    Missing(String),
}

/// The least window that a model is taken to have where its server refuses a request as too long.
const LEAST_WINDOW: u64 = 1_000;
/// Tokens that an image is taken for: no model in use takes more for one.
const IMAGE: u64 = 1_600;
/// Shares of the window at which the model is told, in percent.
const SHARES: [u8; 3] = [85, 70, 50];
/// Most of the window, in percent, that notes take which can be had again.
const SPARE_SHARE: u8 = 15;
/// Most bytes that they take in any window.
const SPARE_BYTES: u64 = 100_000;
/// Results that are named then.
const LARGEST: usize = 5;

/// Waits for the summary; for ever where none is written.
pub(super) async fn summary(room: &mut Room) -> Summary {
    match &mut room.compacting {
        Some(compacting) => (&mut compacting.work).await,
        None => std::future::pending().await,
    }
}

impl Agent {
    fn outs(&self) -> &Outs {
        &self.setup.dispatcher.session.outs
    }

    fn permissions(&self) -> Arc<Permissions> {
        self.setup.dispatcher.session.permissions()
    }

    fn limits(&self) -> ContextLimits {
        self.setup.context
    }

    /// A count of tokens as the provider would give it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of tokens is far below 2^52, and the scale is positive"
    )]
    pub(super) fn scaled(&self, estimate: u64) -> u64 {
        (estimate as f64 * self.room.scale).ceil() as u64
    }

    /// Tokens of system prompt and tools.
    fn fixed(&self) -> (u64, u64) {
        let system = self.system.iter().map(String::len).sum();
        (self.scaled(tokens(system)), self.scaled(tokens(self.seen_tools)))
    }

    /// Tokens of each message that was encoded, without the scale.
    fn weights(&self) -> Vec<u64> {
        let fold = self.fold();
        let pairs = fold.final_messages().iter().zip(&self.encoded);
        pairs.map(|(message, pieces)| weight(message, sent_bytes(pieces))).collect()
    }

    fn sizes(&self) -> Vec<u64> {
        self.weights().into_iter().map(|weight| self.scaled(weight)).collect()
    }

    /// Tokens of the next request.
    pub(super) fn size(&self) -> u64 {
        let (system, tools) = self.fixed();
        self.sizes().into_iter().sum::<u64>() + system + tools
    }

    /// Notes the size of a request that is asked for.
    pub(super) fn note_asked(&mut self) {
        let fixed = self.system.iter().map(String::len).sum::<usize>() + self.seen_tools;
        self.room.asked = self.weights().into_iter().sum::<u64>() + tokens(fixed);
    }

    /// Learns from what the provider counted.
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
    pub(super) fn note_usage(&mut self, usage: Usage) {
        let counted = usage.input + usage.cache_read + usage.cache_write;
        self.room.counted = counted;
        if self.room.asked >= 1_000 && counted >= 1_000 {
            // A server that counts nonsense must not make every request look small, or huge.
            self.room.scale = (counted as f64 / self.room.asked as f64).clamp(0.5, 4.0);
        }
        self.room.is_refused = false;
    }

    /// A turn begins: what the server refused in the one before is no reason any more.
    pub(super) fn forget_refusal(&mut self) {
        self.room.is_refused = false;
    }

    /// The server refused a request as too long: true where the conversation can be shortened for
    /// it, once.
    pub(super) fn shortens(&mut self) -> bool {
        if std::mem::replace(&mut self.room.is_refused, true) {
            return false;
        }
        // The window is smaller than is known, or was not known.
        let (size, known) = (self.size(), self.limits().window.unwrap_or(u64::MAX));
        let window = Some(known.min(size - size / 10).max(LEAST_WINDOW));
        let limits = ContextLimits { window, ..self.limits() };
        // Where nothing can be left out, the server's own words say best what is wrong.
        if self.planned(&limits).is_ok_and(|plan| plan.cut > 0) {
            self.setup.context = limits;
            self.room.after = None;
            return true;
        }
        false
    }

    /// What a compaction to these limits would leave.
    fn planned(&self, limits: &ContextLimits) -> Result<Plan, TooBig> {
        let (sizes, (system, tools)) = (self.sizes(), self.fixed());
        let held = Attached::word_for_word(self.permissions().policy.held());
        let attached = tokens(held.len() + self.notes().len() + self.bytes_of_known_tools());
        let scale = self.room.scale;
        let all = Sizes { system, tools, messages: &sizes, attached, scale };
        plan(&self.fold(), all, limits)
    }

    /// Sees to it that there is room for the next request.
    pub(super) fn make_room(&mut self) -> Result<Space, RecordError> {
        if let Some(compacting) = &mut self.room.compacting {
            compacting.asks = true;
            return Ok(Space::Coming);
        }
        let limits = self.limits();
        let Some(window) = limits.window else { return Ok(Space::There) };
        let mut size = self.size();
        if size >= limits.share(limits.mask_from) && self.mask()? {
            self.encode_new();
            size = self.size();
        }
        let is_over = size + limits.for_answer() > window;
        if !is_over && size < limits.share(limits.compact_from) {
            self.tell_share(size)?;
            return Ok(Space::There);
        }
        let has_grown = self.room.after.is_none_or(|after| size >= after + after / 10);
        let has_grown = has_grown || (self.room.is_by_hand && is_over);
        if !has_grown && size <= window {
            return Ok(Space::There);
        }
        if !has_grown {
            let (system, tools) = self.fixed();
            return Ok(Space::Missing(format!(
                "the conversation has {size} of the model's {window} tokens right after it was \
                 summed up: {system} are the system prompt, {tools} the tools"
            )));
        }
        match self.compact(None, true, None) {
            Ok(()) => Ok(Space::Coming),
            Err(TooBig(why)) => Ok(Space::Missing(why)),
        }
    }

    /// Takes old results out of view; false where that is not worth it.
    fn mask(&self) -> Result<bool, RecordError> {
        let (calls, at_byte) = {
            let fold = self.fold();
            let messages = fold.final_messages();
            let sizes = self.encoded.iter().map(|pieces| tokens(sent_bytes(pieces)));
            let sizes: Vec<u64> = sizes.map(|size| self.scaled(size)).collect();
            let calls = masked(messages, &sizes, &self.limits());
            let has = |message: &Message| match message {
                Message::Results { results } => results.iter().any(|r| calls.contains(&r.id)),
                _ => false,
            };
            let first = messages.iter().position(has).unwrap_or_default();
            (calls, self.bytes_before(first))
        };
        if calls.is_empty() {
            return Ok(false);
        }
        keep_results(self.outs(), &self.fold, |call| calls.contains(call), usize::MAX);
        let count = calls.len();
        self.emit(Body::Break { cause: BreakCause::Masking, at_byte: Some(at_byte) })?;
        self.emit(Body::Masked { calls })?;
        let results = if count == 1 { "1 old result" } else { &format!("{count} old results") };
        let text = format!("{results} left the model's view; each is still at its address");
        self.emit(Body::Notice { level: Level::Info, text })?;
        Ok(true)
    }

    /// Bytes of the prefix, and of the messages before this one.
    fn bytes_before(&self, message: usize) -> u64 {
        let fixed = self.tools.len() + self.system.iter().map(String::len).sum::<usize>();
        let messages = self.encoded.iter().take(message).map(|pieces| sent_bytes(pieces));
        (fixed + messages.sum::<usize>()) as u64
    }

    /// Tells the model how full the window is, at fixed shares, each once.
    fn tell_share(&mut self, size: u64) -> Result<(), RecordError> {
        let limits = self.limits();
        let Some(share) = SHARES.into_iter().find(|share| size >= limits.share(*share)) else {
            self.room.told = 0;
            return Ok(());
        };
        if share <= self.room.told {
            return Ok(());
        }
        self.room.told = share;
        let window = limits.window.unwrap_or_default();
        let mut text = format!(
            "[context: about {} % of the window is taken, {size} of {window} tokens",
            size * 100 / window.max(1)
        );
        let largest = self.largest();
        if !largest.is_empty() {
            text.push_str("; the largest results: ");
            text.push_str(&largest.join(", "));
        }
        text.push_str(
            ". Older parts are summed up when there is no more room; outputs stay readable at \
             their addresses.]",
        );
        self.emit(Body::User { from: From::Haft, parts: vec![Part::text(text)] })?;
        self.encode_new();
        Ok(())
    }

    /// The largest results in view, with their tokens.
    fn largest(&self) -> Vec<String> {
        let fold = self.fold();
        let mut all = Vec::new();
        for message in fold.final_messages() {
            let Message::Results { results } = message else { continue };
            for result in results {
                let size = self.scaled(tokens(result.outcome.joined_text().len()));
                all.push((size, result.id.address()));
            }
        }
        all.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        let worth = all.into_iter().filter(|(size, _)| *size >= 500).take(LARGEST);
        worth.map(|(size, address)| format!("{address} ({size})")).collect()
    }

    /// Begins a summary of the older part.
    fn compact(
        &mut self,
        focus: Option<&str>,
        asks: bool,
        tell: Option<oneshot::Sender<Result<String, String>>>,
    ) -> Result<(), TooBig> {
        let (before, limits) = (self.size(), self.limits());
        let limits = match limits.window {
            Some(_) => limits,
            // Where nothing is known of the window, half of what there is stays.
            None => ContextLimits { window: Some(before.max(4_000)), ..limits },
        };
        let mut plan = self.planned(&limits)?;
        let told = {
            let fold = self.fold();
            let messages = fold.final_messages();
            // Where all of it would fit, a person wants it shorter all the same.
            if plan.cut == 0 {
                plan.cut = self.encoded.len();
            }
            Transcript::of(&messages[..plan.cut], focus)
        };
        let small = self.setup.models.as_ref().and_then(|models| models.small());
        // The money is counted for whoever writes, before that is asked.
        if small.is_none() {
            self.affordable_summary(self.setup.prices, before).map_err(TooBig)?;
        }
        let stop = CancellationToken::new();
        let work = self.sum_up(small, told, limits.window.unwrap_or(before), stop.clone());
        let trigger = if tell.is_some() { CompactTrigger::Manual } else { CompactTrigger::Auto };
        let work = self.once_allowed(work, trigger, focus);
        self.room.compacting = Some(Compacting { work, stop, plan, before, asks, tell });
        self.load.is_busy.store(true, std::sync::atomic::Ordering::Release);
        let text = "making room: the older part of the conversation is summed up".to_owned();
        self.emit_or_tell(Body::Notice { level: Level::Info, text });
        Ok(())
    }

    /// Sums up once hooks have let it, where there are some.
    fn once_allowed(
        &self,
        work: BoxFuture<'static, Summary>,
        trigger: CompactTrigger,
        focus: Option<&str>,
    ) -> BoxFuture<'static, Summary> {
        let sees = |hooks: &Arc<dyn TalkHooks>| hooks.sees(HookMoment::BeforeCompaction);
        let Some(hooks) = self.setup.hooks.clone().filter(sees) else { return work };
        let said = hooks.before_compaction(trigger, focus.map(str::to_owned));
        async move {
            match said.await {
                Some(why) => Summary { refused: Some(why), ..Summary::default() },
                None => work.await,
            }
        }
        .boxed()
    }

    /// Goes on without a summary, because a hook wants none.
    async fn not_summed_up(&mut self, why: &str, compacting: Compacting) {
        let Compacting { before, asks, tell, .. } = compacting;
        let text = format!("a hook keeps the conversation as it is: {why}");
        // It is asked again once the conversation has grown.
        self.room.after = Some(before);
        match tell {
            // Who wanted it may be gone.
            Some(tell) => drop(tell.send(Err(text.clone()))),
            None => self.emit_or_tell(Body::Notice { level: Level::Info, text: text.clone() }),
        }
        let limits = self.limits();
        let is_over = limits.window.is_some_and(|window| before + limits.for_answer() > window);
        let input = if asks && is_over {
            Some(Input::AnswerCut { error: text, calls: Vec::new() })
        } else if asks {
            self.ask()
        } else {
            None
        };
        let is_busy = !self.machine.is_idle();
        self.load.is_busy.store(is_busy, std::sync::atomic::Ordering::Release);
        if let Some(input) = input {
            Box::pin(self.step(input)).await;
        }
    }

    /// Asks the small model for a summary where there is one, and the agent's own where that gives
    /// none.
    fn sum_up(
        &self,
        small: Option<Result<SmallModel, String>>,
        told: Transcript,
        window: u64,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Summary> {
        let AgentConfig { name, provider, target, output, prices, .. } = &self.setup;
        let own = SmallModel {
            name: name.clone(),
            provider: provider.clone(),
            target: target.clone(),
            window: Some(window),
            output: *output,
            prices: *prices,
        };
        let money = self.money_for_summaries();
        async move {
            let mut sum = Summary::default();
            let failed = match small {
                None => None,
                Some(Err(why)) => Some(why),
                Some(Ok(small)) if small.name == own.name => None,
                Some(Ok(small)) => {
                    let small = SmallModel { window: small.window.or(own.window), ..small };
                    match sum.ask(&small, &told, money, &stop).await {
                        Ok(()) => return sum,
                        Err(_) if stop.is_cancelled() => return sum,
                        Err(error) => Some(format!("{}: {error}", small.name)),
                    }
                }
            };
            sum.notice = failed.map(|why| {
                format!("the small model wrote no summary, so {} is asked: {why}", own.name)
            });
            // What it could not write is in the error that is kept.
            drop(sum.ask(&own, &told, money, &stop).await);
            sum
        }
        .boxed()
    }

    /// Takes a summary, or why there is none.
    pub(super) async fn summed_up(&mut self, sum: Summary) {
        let Some(compacting) = self.room.compacting.take() else { return };
        if let Some(why) = &sum.refused {
            return self.not_summed_up(why, compacting).await;
        }
        let Compacting { plan, before, asks, tell, .. } = compacting;
        let all = sum.others.iter().chain(sum.by.as_ref());
        all.for_each(|by| self.usage.add(by.usage));
        self.spent += sum.cost;
        if let Some(text) = sum.notice.clone().filter(|_| !self.is_small_told) {
            self.is_small_told = true;
            self.emit_or_tell(Body::Notice { level: Level::Warning, text });
        }
        let is_by_hand = tell.is_some();
        let done = match &sum.error {
            None | Some(LlmError::TooLong(_)) => self.shorten(&plan, before, &sum),
            Some(error) => Err(format!("the older part could not be summed up: {error}")),
        };
        if done.is_ok()
            && let Some(hooks) = &self.setup.hooks
            && hooks.sees(HookMoment::AfterCompaction)
        {
            let trigger = if is_by_hand { CompactTrigger::Manual } else { CompactTrigger::Auto };
            hooks.clone().after_compaction(trigger, sum.text.clone());
        }
        if let Some(tell) = tell {
            // Who wanted it may be gone.
            drop(tell.send(done.clone()));
        }
        let outage = sum.error.filter(|error| asks && !is_by_hand && error.is_outage());
        let falls_back = outage.is_some_and(|error| self.fall_back(&error));
        let input = match done {
            _ if !asks || falls_back => None,
            Ok(_) => self.ask(),
            // There was room without it, or what is asked now makes it.
            Err(_) if is_by_hand => self.ask(),
            Err(error) => {
                Some(Input::AnswerCut { error: self.all_failed(error), calls: Vec::new() })
            }
        };
        let is_busy = !self.machine.is_idle();
        self.load.is_busy.store(is_busy, std::sync::atomic::Ordering::Release);
        if let Some(input) = input {
            Box::pin(self.step(input)).await;
        }
    }

    /// Puts a summary in the place of the older part; gives the receipt.
    fn shorten(&mut self, plan: &Plan, before: u64, sum: &Summary) -> Result<String, String> {
        let attached = self.attached();
        keep_results(self.outs(), &self.fold, |_| true, plan.cut);
        let words = older_words(&self.fold(), plan);
        for (call, text) in words {
            // As with results.
            drop(self.outs().put(&call, text.as_bytes()));
        }
        let has_summary = sum.by.is_some();
        let (text, keep_from, said) = {
            let fold = self.fold();
            let text = has_summary.then_some(sum.text.as_str());
            let text = replacement(&fold, plan, text, &attached);
            let keep_from = fold.keep_from(plan.cut).unwrap_or_default();
            (text, keep_from, plan.cut)
        };
        let (system, tools) = self.fixed();
        let stays: u64 = self.sizes().into_iter().skip(plan.cut).sum();
        let again = self.bytes_of_known_tools();
        let after = system + tools + stays + self.scaled(tokens(text.len() + 64 + again));
        let most = self.limits().share(self.limits().most_after);
        if after >= before || after > most {
            return Err(format!(
                "the conversation has {before} tokens, and would have {after} with its older part \
                 summed up: {system} are the system prompt, {tools} the tools, {stays} the newest \
                 messages. It stays as it is."
            ));
        }
        let became =
            if has_summary { "are summed up" } else { "left view without a summary: none came" };
        let receipt = format!(
            "made room: {before} -> {after} tokens; {said} messages {became}, and stay in the \
             session's log. /compact --undo goes back."
        );
        let at_byte = Some(self.bytes_before(0));
        let kept = self
            .emit(Body::Break { cause: BreakCause::Compaction, at_byte })
            .and_then(|()| {
                let sizes = Some((before, after));
                let (by, others) = (sum.by.clone(), sum.others.clone());
                self.emit(Body::Compacted { summary: text, keep_from, sizes, by, others })
            })
            .and_then(|()| self.emit(Body::Notice { level: Level::Info, text: receipt.clone() }))
            .and_then(|()| self.tell_late_tools());
        kept.map_err(|error| error.to_string())?;
        self.room.after = Some(after);
        (self.room.told, self.room.is_refused, self.room.is_by_hand) = (0, false, false);
        Ok(receipt)
    }

    /// What code adds to a summary.
    fn attached(&self) -> Attached {
        let dispatcher = &self.setup.dispatcher;
        let jobs = dispatcher.session.map.get::<Jobs>();
        let running = jobs.all().into_iter().filter(|job| job.end().is_none());
        let jobs = running.map(|job| format!("{}: {}", job.id(), job.title())).collect();
        let seen = dispatcher.conversation.values("seen ");
        let file = |(key, value): (String, Value)| {
            let path = key.splitn(3, ' ').nth(2)?.to_owned();
            Some((path, value.get("hash")?.as_str()?.chars().take(12).collect()))
        };
        let constraints = self.permissions().policy.held().to_vec();
        let files = seen.into_iter().filter_map(file).collect();
        Attached { files, jobs, constraints, notes: self.notes() }
    }

    /// What stays in view: what the mode means, and what tools keep there, such as lists of things to do.
    fn notes(&self) -> String {
        let Dispatcher { conversation, session, .. } = &*self.setup.dispatcher;
        let standing = session.services.get::<dyn StandingNotes>();
        let standing = standing.map(|all| all.notes(&session.permissions())).unwrap_or_default();
        let notes = [standing, conversation.notes(), session.shared.notes()].concat();
        let most = self.limits().share(SPARE_SHARE).saturating_mul(4).min(SPARE_BYTES);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        StateNote::text(&StateNote::within(notes, most))
    }

    /// Sums up on a person's wish; `tell` gets the receipt, or why it cannot be.
    pub(super) fn compact_now(
        &mut self,
        focus: Option<&str>,
        tell: oneshot::Sender<Result<String, String>>,
    ) {
        // Who wanted it may be gone.
        let refuse = |tell: oneshot::Sender<_>, why: &str| drop(tell.send(Err(why.to_owned())));
        if !self.machine.is_idle() || self.room.compacting.is_some() {
            return refuse(tell, "haft is at work: stop it first");
        }
        self.encode_new();
        if self.encoded.is_empty() {
            return refuse(tell, "nothing was said yet");
        }
        let (told, refused) = oneshot::channel();
        match self.compact(focus, false, Some(told)) {
            Ok(()) => {
                tokio::spawn(async move {
                    let done = refused.await;
                    let gone = "it was stopped; the conversation stays as it is";
                    drop(tell.send(done.unwrap_or_else(|_| Err(gone.to_owned()))));
                });
            }
            Err(TooBig(why)) => refuse(tell, &why),
        }
    }

    /// Takes the present length as one that a compaction led to.
    pub(super) fn keep_length(&mut self) {
        self.encode_new();
        (self.room.after, self.room.is_by_hand) = (Some(self.size()), true);
    }

    /// What the next request would consist of.
    pub(super) fn window_use(&mut self) -> WindowUse {
        self.encode_new();
        let system: usize = self.system.iter().map(String::len).sum();
        let mut rows = vec![("system prompt".to_owned(), system)];
        rows.extend(tool_rows(&self.tools));
        let kinds = ["your messages", "notices of haft", "answers and calls", "results"];
        let (mut bytes, mut images) = ([0; 4], 0);
        {
            let fold = self.fold();
            for (message, pieces) in fold.final_messages().iter().zip(&self.encoded) {
                let (text, pictures) = parts_of(message, sent_bytes(pieces));
                images += pictures;
                let kind = match message {
                    Message::User { from: From::Person | From::Steer, .. } => 0,
                    Message::User { .. } => 1,
                    Message::Assistant { .. } => 2,
                    Message::Results { .. } => 3,
                };
                bytes[kind] += text;
            }
        }
        rows.extend(kinds.map(str::to_owned).into_iter().zip(bytes));
        let rows = rows.into_iter().filter(|(_, bytes)| *bytes > 0);
        WindowUse {
            rows: rows.map(|(name, bytes)| (name, tokens(bytes))).collect(),
            images: images * IMAGE,
            window: self.setup.context.window,
            counted: (self.room.counted > 0).then_some(self.room.counted),
            factor: self.room.scale,
        }
    }

    /// Gives up a summary that is being written; none where none is.
    pub(super) fn cancel_compaction(&mut self) -> Option<Input> {
        let Compacting { stop, asks, .. } = self.room.compacting.take()?;
        stop.cancel();
        let is_busy = !self.machine.is_idle();
        self.load.is_busy.store(is_busy, std::sync::atomic::Ordering::Release);
        let error = LlmError::Cancelled.to_string();
        asks.then(|| Input::AnswerCut { error, calls: Vec::new() })
    }
}

/// Each tool with its bytes, by its definition; the brackets around them are the last row.
fn tool_rows(tools: &str) -> Vec<(String, usize)> {
    let name = |tool: &RawValue| {
        let value: Value = serde_json::from_str(tool.get()).unwrap_or_default();
        let name = value.get("name").or_else(|| value.get("function")?.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or("another");
        format!("tool {name}")
    };
    let seen = PinnedTools::of(tools).seen.into_iter();
    let rows = seen.map(|tool| (name(tool), tool.get().len() + 1));
    rows.collect()
}

/// Tokens of a message whose encoded form has so many bytes.
fn weight(message: &Message, bytes: usize) -> u64 {
    let (text, images) = parts_of(message, bytes);
    tokens(text) + images * IMAGE
}

/// Bytes of a message without its images, and how many of these are sent.
fn parts_of(message: &Message, bytes: usize) -> (usize, u64) {
    let parts: Vec<&Part> = match message {
        Message::User { parts, .. } | Message::Assistant { parts, .. } => parts.iter().collect(),
        Message::Results { results } => {
            results.iter().flat_map(|result| &result.outcome.content).collect()
        }
    };
    let lengths = parts.iter().filter_map(|part| match part {
        Part::Image { blob } => usize::try_from(blob.len.div_ceil(3) * 4).ok(),
        _ => None,
    });
    let (mut text, mut images) = (bytes, 0);
    for length in lengths {
        // An image that is not sent is named in a few words.
        if let Some(rest) = text.checked_sub(length) {
            text = rest;
            images += 1;
        }
    }
    (text, images)
}
