//! Hooks: programs and HTTP addresses from the settings that see calls, prompts and turns.
//! docs/hooks.md describes them.
//!
//! **Invariant:** hooks of one event run at the same time and end with what triggered them. Their
//! answers are combined: deny over ask over allow. A hook that fails is reported, and it blocks
//! where its settings say so.

mod answer;
mod ready;
mod run;
mod views;
mod work;

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use haft_agent::{BatchCall, Bus, CompactTrigger, HookMoment, PromptSaid, TalkHooks};
use haft_config::{HookEvent, HookRun, Layer};
use haft_host::Local;
use haft_policy::Verdict;
use haft_tool::{Hook, HookCall, PermissionAnswer, PostCall, PreCall, Session};
use haft_types::{AgentPath, Body, HostPath, Level, Mode, Outcome, Place, Question, Status};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::{
    answer::Answer,
    views::{View, from_theirs, in_their_words, response, views},
};
pub use self::{
    ready::{Ready, ready},
    views::names,
    work::{OfWork, Switch, SwitchSaid},
};
use super::{base::Base, session::NO_TURN};

/// Most characters of one text for the model.
const WORDS: usize = 10_000;
/// How long hooks that nobody waits for may go on once the session ends.
const LAST: Duration = Duration::from_secs(2);

/// The hooks of a session.
pub struct Hooks {
    ready: Vec<Arc<Ready>>,
    host: Arc<Local>,
    cwd: HostPath,
    place: Arc<Place>,
    project: PathBuf,
    transcript: PathBuf,
    session: Arc<Session>,
    bus: Bus,
    /// Addresses that settings of the person name: those may be private.
    own: HashSet<String>,
    /// Why the turn is to end.
    end: Mutex<Option<String>>,
    /// What nobody waits for.
    beside: Mutex<JoinSet<()>>,
}

/// A hook that is to run, for one view of what happened.
struct Due {
    ready: Arc<Ready>,
    fail_closed: bool,
}

impl Hooks {
    /// Builds the hooks of a session; returns none if there are none.
    pub fn of(base: &Base, bus: &Bus, session: Arc<Session>, log: PathBuf) -> Option<Arc<Self>> {
        let ready = base.hooks.clone();
        let own = ready.iter().filter_map(|hook| match (&hook.entry.run, hook.entry.layer) {
            (HookRun::Http { url, .. }, Layer::User | Layer::Managed) => Some(url.clone()),
            _ => None,
        });
        let own = own.collect();
        (!ready.is_empty()).then(|| {
            Arc::new(Self {
                ready,
                host: base.host.clone(),
                cwd: base.place.cwd.clone(),
                place: base.place.clone(),
                project: base.project.clone(),
                transcript: log,
                session,
                bus: bus.clone(),
                own,
                end: Mutex::default(),
                beside: Mutex::default(),
            })
        })
    }

    fn has(&self, event: HookEvent) -> bool {
        self.ready.iter().any(|hook| hook.entry.event == event)
    }

    /// The hooks that an event is about, each program and address once.
    fn due(&self, event: HookEvent, names: &[String], seen: Option<&HookCall>) -> Vec<Due> {
        let mut due: Vec<Due> = Vec::new();
        let of_event = self.ready.iter().filter(|hook| hook.entry.event == event);
        for ready in of_event.filter(|hook| hook.matches(names, seen)) {
            let fail_closed = ready.entry.fail_closed;
            let same = |one: &&mut Due| one.ready.entry.run == ready.entry.run;
            match due.iter_mut().find(same) {
                Some(same) => same.fail_closed |= fail_closed,
                None => due.push(Due { ready: ready.clone(), fail_closed }),
            }
        }
        due
    }

    /// Asks the hooks of an event, all at the same time; the answers come in the order of the settings.
    async fn ask(&self, event: HookEvent, due: Vec<Due>, fields: &Value) -> Vec<Answer> {
        let payload = bytes::Bytes::from(self.payload(event, fields).to_string());
        let one = async |due: Due| {
            let secrets = &self.session.secrets;
            let said = match run::run(self, &due.ready.entry, payload.clone()).await {
                Ok(printed) => answer::read(event, &printed, due.fail_closed, secrets),
                Err(why) => Err(why),
            };
            let said = said.map(|answer| Answer { reason: cut(&answer.reason), ..answer });
            let said = match said {
                Ok(answer) if due.ready.limited => answer.holding_back(),
                Ok(answer) => answer,
                Err(why) => self.failed(event, &due, &why),
            };
            if let Some(message) = &said.message {
                self.tell(message.clone());
            }
            said
        };
        join_all(due.into_iter().map(one)).await
    }

    /// What a hook that failed says.
    fn failed(&self, event: HookEvent, due: &Due, why: &str) -> Answer {
        let name = due.ready.name(&self.session.secrets);
        let place = &due.ready.entry.place;
        self.tell(format!("the hook {name} of {} failed ({place}): {why}", event.name()));
        if !due.fail_closed {
            return Answer::default();
        }
        Answer::refusal(
            event,
            format!("the hook {name} failed, and nothing goes on without it: {why}"),
        )
    }

    fn payload(&self, event: HookEvent, fields: &Value) -> Value {
        let mode = match self.session.permissions().mode {
            Mode::Ask => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Plan => "plan",
            Mode::Auto => "auto",
            Mode::DontAsk => "dontAsk",
            Mode::Bypass => "bypassPermissions",
        };
        let mut all = json!({
            "session_id": self.session.id,
            "transcript_path": self.transcript,
            "cwd": self.cwd.text(),
            "permission_mode": mode,
            "hook_event_name": event.name(),
        });
        if let (Some(all), Some(fields)) = (all.as_object_mut(), fields.as_object()) {
            all.extend(fields.clone());
        }
        all
    }

    /// Tells the person.
    fn tell(&self, text: String) {
        let body = Body::Notice { level: Level::Warning, text };
        self.bus.emit_or_show(&AgentPath::default(), NO_TURN, body);
    }

    /// Takes note that the turn is to end.
    fn end_turn(&self, answers: &[Answer]) {
        if let Some(why) = answers.iter().find_map(|answer| answer.end.clone()) {
            self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        }
    }

    /// Asks the hooks of a tool's event about each view of a call; each answer with its view.
    async fn ask_views(
        &self,
        event: HookEvent,
        seen: &HookCall,
        more: &Value,
    ) -> Vec<(View, Vec<Answer>)> {
        let all = views(seen).into_iter().map(async |view: View| {
            let due = self.due(event, &view.names, Some(seen));
            let mut fields = json!({
                "tool_name": view.name,
                "tool_input": view.input,
                "haft_tool": seen.tool(),
                "haft_input": seen.input,
                "tool_use_id": seen.cx.call.0,
                "cwd": seen.cx.place.cwd.text(),
            });
            if let (Some(fields), Some(more)) = (fields.as_object_mut(), more.as_object()) {
                fields.extend(more.clone());
            }
            let answers =
                if due.is_empty() { Vec::new() } else { self.ask(event, due, &fields).await };
            (view, answers)
        });
        let all = join_all(all);
        // What is asked for a call ends with it.
        tokio::select! {
            biased;
            () = seen.cx.stop.cancelled() => Vec::new(),
            all = all => all,
        }
    }

    /// Runs the hooks for the begin of a conversation; returns their texts for the model.
    pub async fn session_start(&self, source: &str) -> Vec<String> {
        let due = self.due(HookEvent::SessionStart, &[source.to_owned()], None);
        let answers = self.ask(HookEvent::SessionStart, due, &json!({"source": source})).await;
        answers.into_iter().flat_map(Answer::words).map(|text| added(&text)).collect()
    }

    /// Runs the hooks for the end of a conversation.
    pub async fn session_end(&self, reason: &str) {
        let due = self.due(HookEvent::SessionEnd, &[reason.to_owned()], None);
        self.ask(HookEvent::SessionEnd, due, &json!({"reason": reason})).await;
    }

    /// Tells hooks of files of instructions that were read, each with the reason.
    pub async fn instructions_loaded(&self, loaded: Vec<(&'static str, Value)>) {
        for (reason, fields) in loaded {
            let event = HookEvent::InstructionsLoaded;
            let due = self.due(event, &[reason.to_owned()], None);
            self.ask(event, due, &fields).await;
        }
    }

    /// Waits at most 2 seconds for hooks that run in the background.
    pub async fn close(&self) {
        let mut beside =
            std::mem::take(&mut *self.beside.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while beside.join_next().await.is_some() {} };
        drop(tokio::time::timeout(LAST, all).await);
    }

    /// What all hooks say before a call.
    async fn before_call(&self, seen: &HookCall) -> PreCall {
        let asked = self.ask_views(HookEvent::PreToolUse, seen, &Value::Null).await;
        let several = asked.len() > 1;
        let allows = |answer: &Answer| answer.verdict == Some(Verdict::Allow);
        // Of several files each has to be allowed.
        let all = asked.iter().all(|(_, answers)| answers.iter().any(allows));
        let mut before = PreCall::default();
        for (view, answers) in asked {
            self.end_turn(&answers);
            let mut rewrites = 0;
            for answer in answers {
                before.notes.extend(answer.context.iter().map(|text| added(text)));
                if let Some(input) = answer.input {
                    rewrites += 1;
                    if several {
                        let why = "it rewrites one file of several: change that file alone";
                        join(&mut before, Verdict::Deny, why);
                    }
                    before.input = Some(from_theirs(seen.tool(), &view, input));
                }
                if let Some(verdict) = answer.verdict.filter(|v| all || *v != Verdict::Allow) {
                    join(&mut before, verdict, &answer.reason);
                }
            }
            if rewrites > 1 {
                self.tell(format!(
                    "{rewrites} hooks rewrote a call of {}: the last counts",
                    view.name
                ));
            }
        }
        before
    }

    /// What all hooks say of what a tool gave back.
    async fn after_call(&self, seen: &HookCall, outcome: &Outcome) -> PostCall {
        let event = match outcome.status {
            Status::Done => HookEvent::PostToolUse,
            Status::Failed | Status::TimedOut => HookEvent::PostToolUseFailure,
            Status::Denied | Status::Cancelled => return PostCall::Pass,
        };
        if !self.has(event) {
            return PostCall::Pass;
        }
        let mut more = json!({"tool_response": response(seen.tool(), outcome)});
        if event == HookEvent::PostToolUseFailure {
            more["error"] = json!(cut(&outcome.joined_text()));
            more["is_interrupt"] = json!(false);
        }
        let asked = self.ask_views(event, seen, &more).await;
        let mut notes = Vec::new();
        for (_, answers) in asked {
            self.end_turn(&answers);
            for answer in answers {
                notes.extend(answer.context.iter().map(|text| added(text)));
                notes.extend(answer.block.map(|why| format!("[a hook objects: {}]", cut(&why))));
            }
        }
        if notes.is_empty() { PostCall::Pass } else { PostCall::Note(notes.join("\n")) }
    }

    /// Tells of a call that was denied; gives words for the model where a hook says that it may be
    /// tried again.
    async fn after_denial(&self, seen: &HookCall, outcome: &Outcome) -> Option<String> {
        let reason = outcome.denial.as_ref().map(|denial| denial.reason.clone());
        let reason = reason.unwrap_or_else(|| outcome.joined_text());
        let more = json!({"reason": cut(&reason)});
        let asked = self.ask_views(HookEvent::PermissionDenied, seen, &more).await;
        let mut answers = asked.into_iter().flat_map(|(_, answers)| answers);
        let again = "[a hook says that this call may be tried again]";
        answers.any(|answer| answer.retry).then(|| again.to_owned())
    }

    /// What hooks say in place of the person.
    async fn in_place(&self, seen: &HookCall) -> PermissionAnswer {
        let asked = self.ask_views(HookEvent::PermissionRequest, seen, &Value::Null).await;
        let several = asked.len() > 1;
        let (mut allowed, mut all) = (None, true);
        for (view, answers) in asked {
            self.end_turn(&answers);
            if let Some(no) = answers.iter().find(|one| one.verdict == Some(Verdict::Deny)) {
                return PermissionAnswer::Deny(no.reason.clone());
            }
            let yes = answers.into_iter().rfind(|one| one.verdict == Some(Verdict::Allow));
            all &= yes.is_some();
            if let Some(yes) = yes {
                let input = yes.input.filter(|_| !several);
                allowed = Some(input.map(|input| from_theirs(seen.tool(), &view, input)));
            }
        }
        // Of several files each has to be allowed.
        allowed.filter(|_| all).map_or(PermissionAnswer::Pass, PermissionAnswer::Allow)
    }
}

/// A notification that nobody waits for.
async fn notify(hooks: Arc<Hooks>, text: String) {
    let kind = "permission_prompt";
    let due = hooks.due(HookEvent::Notification, &[kind.to_owned()], None);
    let fields = json!({"message": haft_render::exact(&text), "notification_type": kind});
    hooks.ask(HookEvent::Notification, due, &fields).await;
}

/// Joins what one more hook says: the stricter counts, with all reasons of its kind.
fn join(before: &mut PreCall, verdict: Verdict, reason: &str) {
    match before.verdict {
        Some(known) if known > verdict => {}
        Some(known) if known == verdict && !before.reason.is_empty() => {
            before.reason = format!("{}; {reason}", before.reason);
        }
        _ => (before.verdict, before.reason) = (Some(verdict), reason.to_owned()),
    }
}

/// Words of a hook for the model.
fn added(text: &str) -> String {
    format!("[a hook adds: {}]", cut(text))
}

/// The begin of a text that is too long, with a mark.
fn cut(text: &str) -> String {
    match text.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{} ... (cut at {WORDS} characters)", &text[..end]),
        None => text.to_owned(),
    }
}

/// The hooks as the tool pipeline calls them.
pub struct OfTools(pub Arc<Hooks>);

impl Hook for OfTools {
    fn before<'a>(&'a self, seen: &'a HookCall) -> BoxFuture<'a, PreCall> {
        if !self.0.has(HookEvent::PreToolUse) {
            return std::future::ready(PreCall::default()).boxed();
        }
        self.0.before_call(seen).boxed()
    }

    fn after<'a>(&'a self, seen: &'a HookCall, outcome: &'a Outcome) -> BoxFuture<'a, PostCall> {
        self.0.after_call(seen, outcome).boxed()
    }

    fn asked<'a>(
        &'a self,
        seen: &'a HookCall,
        question: &'a Question,
    ) -> BoxFuture<'a, PermissionAnswer> {
        async move {
            let wanted = self.0.has(HookEvent::PermissionRequest);
            let instead = if wanted { self.0.in_place(seen).await } else { PermissionAnswer::Pass };
            let goes_on =
                instead == PermissionAnswer::Pass && seen.cx.session().questions.is_somebody();
            if goes_on && self.0.has(HookEvent::Notification) {
                let mut beside = self.0.beside.lock().unwrap_or_else(PoisonError::into_inner);
                beside.spawn(notify(self.0.clone(), question.text.clone()));
            }
            instead
        }
        .boxed()
    }

    fn denied<'a>(
        &'a self,
        seen: &'a HookCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Option<String>> {
        if !self.0.has(HookEvent::PermissionDenied) {
            return std::future::ready(None).boxed();
        }
        self.0.after_denial(seen, outcome).boxed()
    }

    fn sees_results(&self) -> bool {
        self.0.has(HookEvent::PostToolUse) || self.0.has(HookEvent::PostToolUseFailure)
    }

    fn wants_links(&self) -> bool {
        let of_tools = |hook: &Arc<Ready>| hook.entry.event == HookEvent::PreToolUse;
        self.0.ready.iter().filter(|hook| of_tools(hook)).any(|hook| hook.entry.condition.is_some())
    }
}

impl TalkHooks for Hooks {
    fn prompt(self: Arc<Self>, text: String) -> BoxFuture<'static, PromptSaid> {
        async move {
            let due = self.due(HookEvent::UserPromptSubmit, &[], None);
            let answers =
                self.ask(HookEvent::UserPromptSubmit, due, &json!({"prompt": text})).await;
            let refused = answers.iter().find_map(Answer::refused);
            let words = answers.into_iter().flat_map(Answer::words);
            let context = words.map(|text| added(&text)).collect();
            PromptSaid { refused, context, ..PromptSaid::default() }
        }
        .boxed()
    }

    fn stop(self: Arc<Self>, said: String, again: bool) -> BoxFuture<'static, Option<String>> {
        async move {
            let due = self.due(HookEvent::Stop, &[], None);
            let fields = json!({"stop_hook_active": again, "last_assistant_message": said});
            let answers = self.ask(HookEvent::Stop, due, &fields).await;
            // Whoever wants the end gets it.
            if answers.iter().any(|answer| answer.end.is_some()) {
                return None;
            }
            let reasons: Vec<String> = answers.into_iter().filter_map(|one| one.block).collect();
            (!reasons.is_empty())
                .then(|| format!("A hook says that you are not done: {}", cut(&reasons.join("\n"))))
        }
        .boxed()
    }

    fn sees(&self, moment: HookMoment) -> bool {
        match moment {
            HookMoment::Batch => self.has(HookEvent::PostToolBatch),
            HookMoment::Failure => self.has(HookEvent::StopFailure),
            HookMoment::BeforeCompaction => self.has(HookEvent::PreCompact),
            HookMoment::AfterCompaction => self.has(HookEvent::PostCompact),
        }
    }

    fn batch(self: Arc<Self>, calls: Vec<BatchCall>) -> BoxFuture<'static, PromptSaid> {
        async move {
            let one = |call: BatchCall| {
                let tool = haft_policy::own_name(&call.name).to_owned();
                let (name, input) = in_their_words(&tool, call.input, &self.place);
                json!({
                    "tool_name": name,
                    "tool_input": input,
                    "tool_use_id": call.id,
                    "tool_response": response(&tool, &call.outcome),
                })
            };
            let calls: Vec<Value> = calls.into_iter().map(one).collect();
            let due = self.due(HookEvent::PostToolBatch, &[], None);
            let fields = json!({"tool_calls": calls});
            let answers = self.ask(HookEvent::PostToolBatch, due, &fields).await;
            let refused = answers.iter().find_map(Answer::refused);
            let words = answers.into_iter().flat_map(Answer::words);
            let context = words.map(|text| added(&text)).collect();
            PromptSaid { refused, context, ..PromptSaid::default() }
        }
        .boxed()
    }

    fn failed(
        self: Arc<Self>,
        error: &'static str,
        details: String,
        said: String,
    ) -> BoxFuture<'static, ()> {
        async move {
            let due = self.due(HookEvent::StopFailure, &[error.to_owned()], None);
            let fields = json!({"error": error, "error_details": cut(&details),
                "last_assistant_message": said});
            self.ask(HookEvent::StopFailure, due, &fields).await;
        }
        .boxed()
    }

    fn before_compaction(
        self: Arc<Self>,
        trigger: CompactTrigger,
        instructions: Option<String>,
    ) -> BoxFuture<'static, Option<String>> {
        async move {
            let fields = json!({"trigger": trigger.name(), "custom_instructions": instructions});
            let names = [trigger.name().to_owned()];
            self.objection(HookEvent::PreCompact, &names, &fields).await
        }
        .boxed()
    }

    fn after_compaction(self: Arc<Self>, trigger: CompactTrigger, summary: String) {
        let hooks = self.clone();
        let told = async move {
            let due = hooks.due(HookEvent::PostCompact, &[trigger.name().to_owned()], None);
            let fields = json!({"trigger": trigger.name(), "compact_summary": summary});
            hooks.ask(HookEvent::PostCompact, due, &fields).await;
        };
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        beside.spawn(told);
    }

    fn ended(&self) -> Option<String> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
