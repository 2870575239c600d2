//! What print mode, line mode and the demo share to run an agent: its builder, its notices and the
//! signals.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_agent::{
    Agent, AgentConfig, AnswerSchema, Handle, Input, Instructions, Limits, Moves, Pinned,
    QueuedMessage, Repin, Section, Surroundings, TalkHooks, late_tools, same_but_date, system,
};
use haft_config::Layer;
use haft_host::Host as _;
use haft_llm::{Effort, ModelRef, named_call, pinned_tools};
use haft_session::Fold;
use haft_tool::{Dispatcher, Filter, SideModel, ToolSet};
use haft_tools::{PLAN_ENDS, PlanFile, StructuredOutput, plan_begins};
use haft_types::{
    AgentPath, Body, BreakCause, CallId, CallResult, Env, From, Level, Message, Mode, Part,
    ToolSpec,
};
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    base::{Base, home},
    git, instructions,
    model::{
        Chosen, Model, ModelFacts, Others, facts, fallbacks, last_used, model, named, note,
        searches, unnamed,
    },
    plan_file::MODE_NOTE,
    problem::{Problem, Problems},
    session::{Core, Extensions, NO_TURN, SessionBuilder, SessionChoice},
    side_model::SessionModels,
    window,
};
use crate::cli::{Start, exit::Failure};

/// Opens the session that the flags name. `interactive` says whether somebody can answer questions.
pub async fn open(
    start: &Start,
    interactive: bool,
    extensions: &Extensions,
    problems: &Problems,
) -> Result<(Arc<Core>, Vec<Problem>), Failure> {
    let mut base = Base::load(&start.common, None, problems)?;
    let which = which(start);
    if base.loaded.settings.model.name.is_none() {
        base.loaded.settings.model.name = last_model(&base, &which);
    }
    if base.loaded.settings.model.name.is_none()
        && let Some(chosen) = unnamed_model(&base)
    {
        base.loaded.settings.model.name = Some(chosen.name);
        base.model_because = Some(chosen.why);
    }
    let env = base.env(base.loaded.settings.model.name.as_deref(), interactive)?;
    // A missing model, key or script is told before a session begins.
    let answers = model(&base.loaded.settings, &base.environment, 0, interactive)?;
    if let Some(schema) = &start.schema
        && answers.provider.encode_format(schema).is_none()
    {
        let wrong = |error| Failure::Usage(format!("--schema: {error}"));
        base.answer_tool = Some(Arc::new(StructuredOutput::new(schema).map_err(wrong)?));
    }
    let is_named = base.loaded.origin("model.name") == Layer::CommandLine;
    if interactive && is_named && !start.model_once {
        note_model(&base, base.loaded.settings.model.name.as_deref().unwrap_or_default());
    }
    SessionBuilder { base, common: &start.common, which, env, extensions }.open().await
}

/// The session that the flags name.
fn which(start: &Start) -> SessionChoice {
    match &start.resume {
        Some(id) => SessionChoice::Named(id.clone()),
        None if start.continue_last => SessionChoice::Last,
        None => SessionChoice::New,
    }
}

/// Whether there is a model for a start whose settings name none: that of the session that it goes
/// on with, the one chosen last, or that of the only key. Also true where that cannot be found out,
/// which opening it tells.
pub fn has_other_model(start: &Start) -> bool {
    Base::load(&start.common, None, &Problems::default()).map_or(true, |base| {
        last_model(&base, &which(start)).is_some() || unnamed_model(&base).is_some()
    })
}

/// The model that answers where nothing names one.
fn unnamed_model(base: &Base) -> Option<Chosen> {
    let home = home(&base.environment).ok()?;
    unnamed(&base.loaded.settings, &base.environment, home)
}

/// Notes the model that a person has chosen, for starts that name none.
pub fn note_model(base: &Base, name: &str) {
    if let Ok(home) = home(&base.environment) {
        note(&base.loaded.settings, home, name);
    }
}

/// The model of the session that is gone on with.
fn last_model(base: &Base, which: &SessionChoice) -> Option<String> {
    let store = base.store().ok()?;
    let id = match which {
        SessionChoice::New | SessionChoice::IfNeeded => return None,
        SessionChoice::Named(prefix) => store.find(prefix).ok()?,
        SessionChoice::Last => store.latest(Some(&base.place.cwd)).ok()??.id,
    };
    last_used(&store, &id, (&base.loaded.settings, &base.environment))
}

/// Builds an agent for an open session.
pub struct AgentBuilder {
    /// The session.
    pub core: Arc<Core>,
    /// The agent's path in the session: empty for the main agent.
    pub path: AgentPath,
    /// The model, in the form that `--model` takes; none for that of the session.
    pub model: Option<String>,
    /// How hard it thinks; none for what the settings say.
    pub effort: Option<Effort>,
    /// Which of the session's tools it has; none for all of them.
    pub tools: Option<Filter>,
    /// The agent's own mode, if any. It narrows the session's mode and never widens it.
    pub mode: Option<Mode>,
    /// Sections that are added to its system prompt.
    pub sections: Vec<Section>,
    /// The conversation so far.
    pub fold: Fold,
    /// Budgets of each turn.
    pub limits: Limits,
    /// What the last answer of each turn has to fit; none for anything.
    pub schema: Option<Value>,
    /// Whether somebody waits for it. Then its requests are retried until they are cancelled, if
    /// the settings allow retries.
    pub waits: bool,
    /// Models that could not be reached before this one, by their names.
    pub tried: Vec<String>,
}

impl AgentBuilder {
    /// The main agent, with the session's conversation so far.
    pub fn main(core: &Arc<Core>) -> Self {
        Self { fold: core.fold.clone(), ..Self::child(core, AgentPath::default()) }
    }

    /// A new agent, without a conversation so far.
    pub fn child(core: &Arc<Core>, path: AgentPath) -> Self {
        let run = &core.base.loaded.settings.run;
        Self {
            core: core.clone(),
            fold: Fold::new(path.clone()),
            path,
            model: None,
            effort: None,
            tools: None,
            mode: None,
            sections: Vec::new(),
            limits: Limits {
                steps: run.max_steps,
                output_tokens: run.max_tokens,
                cost: run.max_cost,
                repeats: (run.repeats > 0).then_some(run.repeats),
            },
            schema: None,
            waits: false,
            tried: Vec::new(),
        }
    }

    /// The same agent with another model, behind `tried`, and without its conversation.
    #[must_use]
    pub fn again(&self, model: &str, tried: &[String]) -> Self {
        Self {
            core: self.core.clone(),
            path: self.path.clone(),
            model: Some(model.to_owned()),
            effort: self.effort,
            tools: self.tools.clone(),
            mode: self.mode,
            sections: self.sections.clone(),
            fold: Fold::new(self.path.clone()),
            limits: self.limits,
            schema: self.schema.clone(),
            waits: self.waits,
            tried: tried.to_vec(),
        }
    }

    /// Starts the agent, which then waits for its first input. Returns its handle, and the problems
    /// that do not prevent the start.
    ///
    /// # Errors
    /// When there is no such model, its key is missing, or the session cannot be persisted.
    pub async fn start(self) -> Result<(Handle, Vec<Problem>), Failure> {
        let config = self.config().await?;
        let problems = self.core.base.problems.take();
        if self.path.is_main() {
            // From here on there is a model that tools can ask.
            let (core, max_cost) = (Arc::downgrade(&self.core), self.limits.cost);
            let models = SessionModels { core, max_cost };
            self.core.dispatcher.session.services.insert::<dyn SideModel>(Arc::new(models));
        }
        let handle = Agent::start(config);
        self.core.agents.add(self.path, &handle.sender());
        Ok((handle, problems))
    }

    /// What changes about an agent that runs already, for [`Handle::repin`].
    ///
    /// # Errors
    /// When there is no such model, or its key is missing: the agent goes on as it is.
    pub async fn repin(&self, cause: BreakCause) -> Result<Repin, Failure> {
        let model = self.model(0)?;
        let dispatcher = self.dispatcher(&model);
        let context = self.core.instructions.begin().await;
        let git = git::describe(&self.core.base, None).await;
        let around = Surroundings { git, ..surroundings(&self.core.base) };
        let pinned = self.pinned(&dispatcher, &model, &context, &around);
        let Model { provider, target, effort } = model;
        let effort = self.effort.or(effort);
        let ModelFacts { prices, output, max_tokens, .. } = self.facts()?;
        let named = self.named()?;
        let (limits, guessed) = window::limits(&named, &self.core.base).await;
        let is_other = matches!(cause, BreakCause::Model | BreakCause::Fallback);
        self.tell_guess(guessed.filter(|_| is_other));
        Ok(Repin {
            cause: Some(cause),
            dispatcher,
            provider,
            name: named.to_string(),
            target,
            effort,
            pinned,
            context: limits,
            prices,
            output,
            max_tokens,
        })
    }

    /// The model by its name.
    fn named(&self) -> Result<ModelRef, Failure> {
        let settings = &self.core.base.loaded.settings;
        let name = self.model.as_deref().or(settings.model.name.as_deref());
        named(name.unwrap_or_default(), settings)
    }

    /// What is known of the model. Where money is limited, its price has to be known.
    fn facts(&self) -> Result<ModelFacts, Failure> {
        let model = self.named()?;
        let facts = facts(&model, &self.core.base.loaded.settings);
        if let (None, Some(most)) = (facts.prices, self.limits.cost) {
            return Err(Failure::Usage(format!(
                "the limit of ${most} cannot be kept: nobody knows what {model} costs; set \
                 models.\"{model}\".price in ~/.haft/settings.toml, or leave --max-cost out"
            )));
        }
        Ok(facts)
    }

    /// Says once for a model that its window is a guess.
    fn tell_guess(&self, guessed: Option<String>) {
        if let Some(text) = guessed.filter(|_| self.path.is_main()) {
            notice(&self.core, Level::Info, text);
        }
    }

    /// The model of the agent, `answered` answers into a script.
    fn model(&self, answered: usize) -> Result<Model, Failure> {
        let base = &self.core.base;
        let mut settings = Cow::Borrowed(&base.loaded.settings);
        if let Some(name) = &self.model {
            settings.to_mut().model.name = Some(name.clone());
        }
        // Where another one can go on, nobody waits for this one without an end.
        let name = settings.model.name.as_deref().unwrap_or_default();
        let (others, _) = fallbacks(&settings, &base.environment, name, &self.tried);
        model(&settings, &base.environment, answered, self.waits && others.is_empty())
    }

    async fn config(&self) -> Result<AgentConfig, Failure> {
        let Self { core, path, .. } = self;
        let is_main = path.is_main();
        let settings = &core.base.loaded.settings;
        let model = self.model(if is_main { core.answered } else { 0 })?;
        let dispatcher = self.dispatcher(&model);
        let before = core.pinned.clone().filter(|_| is_main);
        // What was pinned stays whatever git says now.
        let limit = if before.is_none() { settings.run.git_status_ms } else { 0 };
        let asked = git::changed(&core.dispatcher, Duration::from_millis(limit));
        let (context, changed) = tokio::join!(core.instructions.for_agent(is_main), asked);
        let git = git::describe(&core.base, changed).await;
        let around = Surroundings { git, ..surroundings(&core.base) };
        let schema = self.answer_schema(&model)?;
        let fresh = self.pinned(&dispatcher, &model, &context, &around);
        let (pinned, cause) = pinned_anew(before.clone(), fresh);
        let ModelFacts { prices, output, max_tokens, .. } = self.facts()?;
        let named = self.named()?;
        let (limits, guessed) = window::limits(&named, &core.base).await;
        // Nothing stands in the way of a request any more: from here on the session is kept.
        core.bus.keep()?;
        if is_main {
            tell_instructions(core, &context, cause.is_some()).await;
        }
        self.tell_guess(guessed.filter(|_| cause.is_some()));
        Ok(AgentConfig {
            dispatcher,
            provider: model.provider,
            name: named.to_string(),
            target: model.target,
            effort: self.effort.or(model.effort),
            max_tokens,
            bus: core.bus.clone(),
            fold: self.fold.clone(),
            pinned,
            cause,
            before,
            limits: self.limits,
            context: limits,
            prices,
            output,
            concurrency: usize::try_from(settings.tools.concurrency).unwrap_or(usize::MAX),
            hooks: self.talk_hooks(&context),
            schema,
            models: Some(Arc::new(Others {
                builder: Arc::new(self.again(&named.to_string(), &[])),
                shown: is_main.then(|| core.model.clone()),
            })),
        })
    }

    /// What sees messages before the model does: hooks, and questions about instructions.
    fn talk_hooks(&self, read: &Instructions) -> Option<Arc<dyn TalkHooks>> {
        let Self { core, path, .. } = self;
        let hooks = core.hooks.clone().filter(|_| path.is_main());
        let hooks = hooks.map(|hooks| hooks as Arc<dyn TalkHooks>);
        if read.outside.is_empty() || !core.env.interactive || !path.is_main() {
            return hooks;
        }
        Some(Arc::new(instructions::ask::Talk {
            instructions: core.instructions.clone(),
            dispatcher: core.dispatcher.clone(),
            bus: core.bus.clone(),
            hooks,
        }))
    }

    /// What takes the calls of this agent: that of the session, unless something about it differs.
    fn dispatcher(&self, model: &Model) -> Arc<Dispatcher> {
        let Self { core, path, tools, mode, .. } = self;
        if path.is_main() && tools.is_none() && mode.is_none() && self.model.is_none() {
            return core.dispatcher.clone();
        }
        let env = Env {
            model: model.target.model.clone(),
            vision: model.target.vision,
            no_todo: self.named().is_ok_and(|name| !facts(&name, &core.base.loaded.settings).todo),
            provider_searches: self
                .named()
                .is_ok_and(|name| searches(&name, &core.base.environment)),
            interactive: core.env.interactive && path.is_main(),
            ..core.env.clone()
        };
        let mut registry = core.registry.clone();
        if let Some(filter) = tools.clone() {
            registry = registry.filter(move |spec, env| filter(spec, env));
        }
        let mut dispatcher = (*core.dispatcher).clone();
        dispatcher.tools = Arc::new(registry.assemble(&env));
        dispatcher.mode = *mode;
        if !path.is_main() {
            dispatcher.agent = path.clone();
            dispatcher.conversation = Arc::default();
        }
        Arc::new(dispatcher)
    }

    fn pinned(
        &self,
        dispatcher: &Dispatcher,
        model: &Model,
        context: &Instructions,
        around: &Surroundings,
    ) -> Pinned {
        let tools = &*dispatcher.tools;
        let copied = |spec: &Arc<ToolSpec>| (**spec).clone();
        let listed: Vec<ToolSpec> = tools.listed().map(copied).collect();
        let late: Vec<ToolSpec> = tools.deferred().map(copied).collect();
        let secrets = &dispatcher.session.secrets;
        let most = self.core.base.loaded.settings.tool_search.listing_tokens;
        let more =
            skills_section(&self.core.base, tools).into_iter().chain(late_tools(tools, most));
        let sections = more.chain(self.sections.clone()).collect();
        let prompt = system(tools, &context.context(), around, sections);
        Pinned {
            system: prompt.parts.iter().map(|part| secrets.hide(part).into_owned()).collect(),
            tools: pinned_tools(&*model.provider, &model.target, &listed, &late),
            format: self.format(model).unwrap_or_default(),
        }
    }

    /// What requests say of the answer's schema; none where the provider cannot be told of it.
    fn format(&self, model: &Model) -> Option<String> {
        model.provider.encode_format(self.schema.as_ref()?)
    }

    fn answer_schema(&self, model: &Model) -> Result<Option<Arc<AnswerSchema>>, Failure> {
        let Some(schema) = &self.schema else { return Ok(None) };
        let tool = self.format(model).is_none().then(|| StructuredOutput::NAME.to_owned());
        let schema = AnswerSchema::new(schema, tool);
        let wrong = |error| Failure::Usage(format!("--schema: {error}"));
        Ok(Some(Arc::new(schema.map_err(wrong)?)))
    }
}

/// What the prompt says of the skills; none where the model cannot use them.
pub fn skills_section(base: &Base, tools: &ToolSet) -> Option<Section> {
    tools.listed().find(|spec| spec.name == "skill")?;
    let most = base.loaded.settings.skills.listing_bytes;
    base.skills.section(usize::try_from(most).unwrap_or(usize::MAX))
}

/// The main agent as the flags configure it.
pub fn main_agent(core: &Arc<Core>, start: &Start) -> AgentBuilder {
    let mut builder = AgentBuilder::main(core);
    builder.sections.extend(start.append_system_prompt.clone().map(|text| Section {
        title: String::new(),
        text,
        from: "--append-system-prompt".to_owned(),
        moves: Moves::Run,
        least: usize::MAX,
    }));
    builder.limits.steps = start.max_turns.or(builder.limits.steps);
    builder.limits.output_tokens = start.max_tokens.or(builder.limits.output_tokens);
    builder.limits.cost = start.max_cost.or(builder.limits.cost);
    builder.schema.clone_from(&start.schema);
    builder.waits = start.print.is_none();
    builder
}

/// What a conversation goes on with, and why that is pinned anew; none where it is not.
fn pinned_anew(before: Option<Pinned>, fresh: Pinned) -> (Pinned, Option<BreakCause>) {
    match before {
        // Nothing but the date, or what git says, is new: what was pinned stays.
        Some(old) if old.is_but_system(&fresh) && same_but_date(&old.system, &fresh.system) => {
            (old, None)
        }
        Some(_) => (fresh, Some(BreakCause::Resume)),
        None => (fresh, Some(BreakCause::First)),
    }
}

/// How the message about a changed mode begins.
const MODE_SET: &str = "The person set the mode to ";
/// The tools by which a model switches the mode, by all their names.
const SWITCHES: &[&str] = &["enter_plan", "EnterPlanMode", "exit_plan", "ExitPlanMode"];
/// How every text begins that says that mode plan is on.
const PLAN_IS_ON: &str = "Mode plan is on";

/// Begins a conversation. The agent is told what mode plan means if it is on, or that it is off if
/// the conversation so far says otherwise. The texts of hooks for the begin follow.
pub async fn begin_talk(core: &Core, start: &Start, handle: &Handle) {
    if let Some(text) = about_plan(core, core.told_plan) {
        let words = QueuedMessage { from: From::Haft, parts: vec![Part::text(text)] };
        // An agent that is gone has told so.
        handle.send(Input::Notice { words, wake: false });
    }
    let Some(hooks) = &core.hooks else { return };
    let goes_on = start.resume.is_some() || start.continue_last;
    let source = if goes_on { "resume" } else { "startup" };
    for text in Box::pin(hooks.session_start(source)).await {
        let from = From::Hook("SessionStart".to_owned());
        let words = QueuedMessage { from, parts: vec![Part::text(text)] };
        // An agent that is gone has told so.
        handle.send(Input::Notice { words, wake: false });
    }
}

/// What a talk begins or goes on with about mode plan, if that was not told last: `told` is whether
/// the messages say that it is on.
pub fn about_plan(core: &Core, told: bool) -> Option<String> {
    match (core.dispatcher.permissions().mode, told) {
        (Mode::Plan, false) => Some(plan_begins(plan_file(core).as_deref())),
        (Mode::Plan, true) | (_, false) => None,
        (mode, true) => Some(format!("{PLAN_ENDS}{mode}.")),
    }
}

/// Reports whether the last thing that messages say about the mode is that it is plan.
pub fn tells_plan(messages: &[Message]) -> bool {
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { parts, .. } => &parts[..],
        _ => &[],
    });
    // Calls whose tool stands in their arguments.
    let named: HashMap<&CallId, String> = calls
        .filter_map(|part| match part {
            Part::Call(call) => Some((&call.id, named_call(call)?.ok()?.name)),
            _ => None,
        })
        .collect();
    let is_switch = |result: &&CallResult| {
        let name = named.get(&result.id).unwrap_or(&result.name);
        SWITCHES.contains(&&**name)
    };
    // As it stands behind a summary.
    let noted = format!("\n# {MODE_NOTE}\n{PLAN_IS_ON}");
    let about = |message: &Message| {
        let texts: Vec<String> = match message {
            Message::User { from: From::Haft, parts } => {
                let text = |part: &Part| match part {
                    Part::Text { text } => Some(text.clone()),
                    _ => None,
                };
                parts.iter().filter_map(text).collect()
            }
            // What other tools give is not haft's word.
            Message::Results { results } => {
                let switches = results.iter().filter(is_switch);
                switches.map(|result| result.outcome.joined_text()).collect()
            }
            _ => return None,
        };
        let said = |text: &String| {
            let set = text.strip_prefix(MODE_SET).map(|mode| mode.starts_with(Mode::Plan.name()));
            set.or_else(|| text.starts_with(PLAN_IS_ON).then_some(true))
                .or_else(|| text.contains(&noted).then_some(true))
                .or_else(|| text.contains(PLAN_ENDS).then_some(false))
        };
        texts.iter().rev().find_map(said)
    };
    messages.iter().rev().find_map(about).unwrap_or_default()
}

/// What the model is told when a person has set another mode.
pub fn mode_set(core: &Core, mode: Mode) -> String {
    let text = format!("{MODE_SET}{mode}.");
    if mode != Mode::Plan {
        return text;
    }
    format!("{text} {}", plan_begins(plan_file(core).as_deref()))
}

/// The file for the plan of a session.
fn plan_file(core: &Core) -> Option<Arc<dyn PlanFile>> {
    core.services().get::<dyn PlanFile>()
}

/// Runs the hooks for the end of a conversation.
pub async fn end_talk(core: &Core, reason: &str) {
    if let Some(hooks) = &core.hooks {
        Box::pin(hooks.session_end(reason)).await;
    }
}

/// Tells person and log something, whatever the log does.
fn notice(core: &Core, level: Level, text: String) {
    core.bus.emit_or_show(&AgentPath::default(), NO_TURN, Body::Notice { level, text });
}

/// Tells which files of instructions were read, and what is left out, where requests begin anew.
async fn tell_instructions(core: &Core, read: &Instructions, begins: bool) {
    core.instructions.hooked(&read.files).await;
    if !begins {
        return;
    }
    if let Some(text) = instructions::line(&read.files) {
        notice(core, Level::Info, text);
    }
    // Where somebody can answer, the first message asks.
    let unasked = read.outside.iter().filter(|_| !core.env.interactive);
    let unasked = unasked.map(instructions::ask::unasked);
    for text in read.left_out.iter().cloned().chain(unasked) {
        notice(core, Level::Warning, text);
    }
}

/// What the end of the system prompt says about the environment, without git.
pub fn surroundings(base: &Base) -> Surroundings {
    let caps = base.host.caps();
    let shell = caps.shell.as_ref().map(|shell| format!(", shell {shell}")).unwrap_or_default();
    Surroundings {
        date: jiff::Zoned::now().date().to_string(),
        folder: base.place.cwd.text().into_owned(),
        added: base.place.further().map(|folder| folder.text().into_owned()).collect(),
        platform: format!("{}{shell}", caps.platform),
        git: None,
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalAction {
    /// Stop what runs.
    Interrupt,
    /// End haft.
    End,
}

/// The same signal again so soon is the same wish: programs such as `timeout` send theirs to the
/// process and to its group.
const ONE_WISH: Duration = Duration::from_millis(100);

/// Lets a write beyond the file size limit fail like any other error, instead of ending haft.
///
/// This uses a handler, because children would inherit an ignored signal.
pub fn outlive_limits() -> Result<(), Failure> {
    let over = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    signal(over).map(drop).map_err(|error| Failure::Failed(format!("no signals: {error}")))
}

/// The signals for interrupt, hang-up, quit and termination: whoever ends haft ends its children.
pub struct Signals {
    all: [Signal; 4],
    /// Which of them came last, and when.
    last: Option<(usize, Instant)>,
}

impl Signals {
    /// Installs the signal handlers.
    pub fn new() -> Result<Self, Failure> {
        let take = |kind| signal(kind).map_err(|e| Failure::Failed(format!("no signals: {e}")));
        let all = [
            take(SignalKind::interrupt())?,
            take(SignalKind::hangup())?,
            take(SignalKind::quit())?,
            take(SignalKind::terminate())?,
        ];
        Ok(Self { all, last: None })
    }

    /// Waits for the next signal. The same signal again within 100 ms counts once.
    pub async fn received(&mut self) -> SignalAction {
        loop {
            let (kind, wish) = self.next().await;
            let again = |(last, at): (usize, Instant)| last == kind && at.elapsed() < ONE_WISH;
            if !self.last.is_some_and(again) {
                self.last = Some((kind, Instant::now()));
                return wish;
            }
        }
    }

    /// Waits for the next signal, where a person presses keys: each press counts.
    pub async fn pressed(&mut self) -> SignalAction {
        self.next().await.1
    }

    async fn next(&mut self) -> (usize, SignalAction) {
        let [interrupt, hangup, quit, terminate] = &mut self.all;
        tokio::select! {
            _ = interrupt.recv() => (0, SignalAction::Interrupt),
            _ = hangup.recv() => (1, SignalAction::End),
            _ = quit.recv() => (2, SignalAction::End),
            _ = terminate.recv() => (3, SignalAction::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_llm::CALL_TOOL;
    use haft_testkit::harness::shouts;
    use haft_tool::Registry;
    use haft_types::{CallResult, Env, Loading, Outcome, ToolUse};

    use super::*;

    /// Bytes of the system prompt with the default tools and no project context.
    const PROMPT_MOST: usize = 4_000;
    /// Bytes of the definitions of the default tools, on every wire.
    const TOOLS_MOST: usize = 12_500;

    #[test]
    fn only_haft_says_whether_mode_plan_is_on() {
        let result = |name: &str, text: String| Message::Results {
            results: vec![CallResult {
                id: CallId("c1".into()),
                wire_id: String::new(),
                name: name.to_owned(),
                outcome: Outcome::text(text),
            }],
        };
        let off = || format!("The person approved the plan. {PLAN_ENDS}ask.");
        let entered = result("EnterPlanMode", plan_begins(None));
        assert!(tells_plan(std::slice::from_ref(&entered)));
        assert!(!tells_plan(&[entered.clone(), result("exit_plan", off())]));
        // A file may say anything.
        assert!(tells_plan(&[entered, result("read", off())]));
        assert!(!tells_plan(&[result("bash", plan_begins(None))]));
        // By the tool that calls others, too.
        let by_name = |name: &str| Message::Assistant {
            wire: String::new(),
            model: String::new(),
            host: String::new(),
            parts: vec![Part::Call(ToolUse::new(
                CallId("c1".into()),
                CALL_TOOL,
                serde_json::json!({"name": name, "arguments": {}}),
            ))],
        };
        let came = || result(CALL_TOOL, plan_begins(None));
        assert!(tells_plan(&[by_name("enter_plan"), came()]));
        assert!(!tells_plan(&[by_name("bash"), came()]));
    }

    #[test]
    fn prompt_and_definitions_stay_within_their_bounds() {
        let env = Env { vision: true, shell: true, interactive: true, ..Env::default() };
        // Lists of things to do are no late tools.
        let by_default = |spec: ToolSpec, _: &Env| {
            let is_there = spec.loading != Loading::Deferred || !spec.name.starts_with("task_");
            is_there.then_some(spec)
        };
        let tools = Registry::default().source(haft_tools::builtin()).filter(by_default);
        let tools = tools.assemble(&env);
        let around = Surroundings {
            date: "2026-01-31".into(),
            folder: "/home/user/project".into(),
            added: Vec::new(),
            platform: "linux x86_64, shell /bin/bash".into(),
            git: Some("branch main, 12 changed files".into()),
        };
        let more = late_tools(&tools, 2_000).into_iter().collect();
        let prompt = system(&tools, &[], &around, more).parts.join("\n\n");
        println!("system prompt: {} bytes of at most {PROMPT_MOST}", prompt.len());
        assert!(prompt.len() <= PROMPT_MOST, "{} bytes", prompt.len());
        // The sign of a secret is one.
        let words = prompt.replace("{{secret:NAME}}", "");
        assert!(shouts(&words) <= 1, "words that shout weigh less the more there are:\n{prompt}");
        assert!(prompt.ends_with(around.git.as_deref().unwrap()), "what changes stands last");

        let mut specs: Vec<ToolSpec> = tools.listed().map(|spec| (**spec).clone()).collect();
        specs.push(haft_llm::call_tool());
        let endpoint = haft_llm::Endpoint::openai(None, None);
        for wire in haft_llm::WIRES.iter().map(|kind| (kind.codec)(&endpoint)) {
            let all = wire.tools(&specs);
            // One wire makes every schema strict that does not refuse it.
            let json = all.replace("\"strict\":false,", "");
            println!(
                "definitions on {}: {} bytes of at most {TOOLS_MOST}",
                wire.name(),
                json.len()
            );
            assert!(json.len() <= TOOLS_MOST, "{}: {} bytes", wire.name(), json.len());
            assert_eq!(all, wire.tools(&specs), "the same tools are the same bytes");
        }
    }
}
