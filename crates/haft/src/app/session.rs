//! Builds a session with its tools and services, for every face and every program that embeds haft.
//!
//! **Invariant:** the build order is the same for everyone. Nothing of the session is written
//! before its first event; only the recovery of killed runs writes earlier. Nothing is printed:
//! problems are returned.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use haft_agent::{Agents, Bus, Control, Pinned, UnsentLines};
use haft_config::{Layer, RuleCase};
use haft_host::{Local, Outs};
use haft_net::{Guard, Proxies, SystemResolver};
use haft_policy::{Grants, Mode};
use haft_session::{Fold, Log, SessionId, Store};
use haft_text::secrets::Secrets;
use haft_tool::{
    AnyTool, Conversation, DiffLimits, Dispatcher, Events as _, FinalAnswer, Hook, JobLimits, Jobs,
    Journal, Limits, Peers, Permissions, Phase, PreImages, Registry, SHARED, SaveRule, Services,
    Session, SettingAccess, Settings as Stages, StandingNotes, StateNote, Touched, Web, WorkHooks,
    call_number, standard,
};
use haft_tools::{PlanFile, Shells};
use haft_types::{
    AgentPath, Body, CallId, Env, Event, EventId, Level, Outcome, Part, QuestionId, TodoItem,
    ToolSpec, ToolUse, TurnId,
};
use serde_json::{Value, json};

use super::{
    agent,
    allowances::ProjectAllowances,
    base::{Base, find, home, now, recover, secret_names, secrets_of},
    constraints, explain,
    hooks::{Hooks, OfTools, OfWork},
    instructions::ProjectInstructions,
    peers::InLogs,
    plan_file::{ModeNote, SessionPlan},
    problem::Problem,
    recovery::{commands, jobs, journal},
    rules::private_hosts,
    setting_access::PersonsSettings,
    skills::TouchedFolders,
};
use crate::{
    cli::{Common, exit::Failure},
    undo,
};

/// Longest that making room among the outputs of all sessions goes on at the end of a run.
const COLLECT_WITHIN: Duration = Duration::from_millis(200);
/// How long jobs may take to end with their session.
const END_JOBS: Duration = Duration::from_millis(2_500);
/// How long what works may take to end at all: a bit more than it gives itself.
const END_WORK: Duration = Duration::from_secs(5);
/// How long what records may take: what commands changed is looked for until it is found.
const END_RECORDS: Duration = Duration::from_mins(1);

/// Which session a face works in.
#[derive(Clone, Debug, Default)]
pub enum SessionChoice {
    /// A new session.
    #[default]
    New,
    /// A new session that is persisted only when something is changed.
    IfNeeded,
    /// The last session of this folder.
    Last,
    /// The session whose id begins with this text.
    Named(String),
}

impl SessionChoice {
    /// Whether it is one that begins.
    const fn is_new(&self) -> bool {
        matches!(self, Self::New | Self::IfNeeded)
    }
}

/// A running session with its tools.
pub struct Core {
    /// The base that it is built on.
    pub base: Base,
    /// The session's events.
    pub bus: Bus,
    /// The agents that run in it.
    pub agents: Agents,
    /// Runs calls through the pipeline.
    pub dispatcher: Arc<Dispatcher>,
    /// The sources that the tools are assembled from, for other agents and models.
    pub registry: Registry,
    /// The environment that they were assembled for.
    pub env: Env,
    /// The conversation so far.
    pub fold: Fold,
    /// The system prompt and the tool definitions that the log has pinned.
    pub pinned: Option<Pinned>,
    /// How many answers the log has.
    pub answered: usize,
    /// What a person wants to know about a resumed session; none for a new one.
    pub resumed: Option<Resumed>,
    /// Whether the model was last told that the mode is plan.
    pub told_plan: bool,
    /// Hooks of calls and of the conversation; none if there are none.
    pub hooks: Option<Arc<Hooks>>,
    /// The files of instructions.
    pub instructions: Arc<ProjectInstructions>,
    /// The model of the main agent's next request, in the form that `--model` takes.
    pub model: Arc<Mutex<String>>,
}

/// A resumed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// When its last event happened, in milliseconds since the Unix epoch.
    pub active: u64,
    /// How many turns it has had.
    pub turns: u64,
    /// Lines of the person that were waiting when it ended.
    pub unsent: Vec<String>,
}

/// Adds a service to a session.
pub type MakeService = Arc<dyn Fn(&Arc<Core>) + Send + Sync>;

/// Starts a front end, which does not block.
pub type StartFrontEnd = Arc<dyn Fn(Control) + Send + Sync>;

/// What a program adds to haft.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Tools of its own. A built-in tool of the same name takes precedence.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Functions that add services of its own.
    pub services: Vec<MakeService>,
    /// Front ends of its own, each with its name, beside the one that the flags choose.
    pub front_ends: Vec<(String, StartFrontEnd)>,
}

impl Extensions {
    /// Adds a service that each session gets. `make` gets the session as a weak reference, so that
    /// no service keeps the session alive that holds it.
    pub fn service<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        make: impl Fn(Weak<Core>) -> Arc<T> + Send + Sync + 'static,
    ) {
        self.services.push(Arc::new(move |core: &Arc<Core>| {
            core.services().insert::<T>(make(Arc::downgrade(core)));
        }));
    }
}

/// Opens an existing session, or begins a new one.
pub struct SessionBuilder<'a> {
    /// The base that it is built on.
    pub base: Base,
    /// What the flags say about tools.
    pub common: &'a Common,
    /// Which session.
    pub which: SessionChoice,
    /// What the tools may depend on.
    pub env: Env,
    /// What the program adds.
    pub extensions: &'a Extensions,
}

impl SessionBuilder<'_> {
    /// Opens the session and assembles its tools. Returns it with the problems that do not prevent
    /// that.
    ///
    /// # Errors
    /// Any problem that prevents the start. All others are among the problems of the base, also in
    /// that case.
    pub async fn open(self) -> Result<(Arc<Core>, Vec<Problem>), Failure> {
        let problems = self.base.problems.clone();
        let extensions = self.extensions;
        let core = Arc::new(Box::pin(self.core()).await?);
        core.close_with_session();
        extensions.services.iter().for_each(|make| make(&core));
        Ok((core, problems.take()))
    }

    async fn core(self) -> Result<Core, Failure> {
        let Self { base, common, which, env, extensions } = self;
        let store = base.store()?;
        let late = Arc::new(Mutex::new(None::<Bus>));
        recover(&base, tell_on(&late))?;
        let (log, mut past) = open_log(&store, &which, &base)?;
        let (id, out_dir) = (log.session().as_str().to_owned(), log.out_dir());
        let secrets = secrets_of(log.dir(), secret_names(&base.loaded));
        base.problems.hide(&secrets);
        let (log_path, services) = (log.path().to_owned(), services(&base, &store, &log)?);
        // Nothing is left of a run that ends before anything can be asked.
        let bus = if which.is_new() { Bus::lazy(log, now) } else { Bus::new(log, now) };
        *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(bus.clone());
        let mut session = session(&base, &bus, id.clone(), out_dir, secrets);
        offer(&mut session, services)?;
        let own = past.restore(&session);
        let session = Arc::new(session);
        let hooks = hooks(&base, &bus, &session, log_path);
        let instructions = ProjectInstructions::of_session(&base, hooks.as_ref())?;
        let registry = base.registry(common, &env, &extensions.tools).await?;
        let dispatcher = Arc::new(Dispatcher {
            session,
            conversation: Arc::new(Conversation::resumed(own)),
            tools: Arc::new(registry.assemble(&env)),
            pipeline: Arc::new(standard(&stages(&base, hooks.as_ref(), &instructions))),
            place: base.place(),
            host: base.host.clone(),
            agent: AgentPath::default(),
            mode: None,
        });
        base.skills.restore(&dispatcher.conversation);
        Box::pin(try_rules(&base, &dispatcher)).await?;
        let (mut open, resumed) = (past.fold.unanswered(), past.resumed());
        let followed = Arc::new(Mutex::new(past.fold.clone()));
        bus.follow(&followed);
        let Past { pinned, answered, fold, values, count, jobs, .. } = past;
        let mut core = Core {
            model: first_model(&base),
            base,
            bus,
            agents: Agents::default(),
            dispatcher,
            registry,
            env,
            told_plan: agent::tells_plan(fold.final_messages()),
            fold,
            pinned,
            answered,
            resumed,
            hooks,
            instructions,
        };
        constraints::resume(&core, &values).unwrap_or_else(|why| core.base.problems.warn(why));
        let killed = commands::add(&core, &store, &mut open).await?;
        core.begin(count == 0, id, open)?;
        commands::kept(killed, &core.bus).await?;
        jobs.resume(&core.jobs(), &core.bus)?;
        core.fold = followed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(core)
    }
}

/// The hooks of a session, which its tools find among its services; none if there are none.
fn hooks(base: &Base, bus: &Bus, session: &Arc<Session>, log: PathBuf) -> Option<Arc<Hooks>> {
    let hooks = Hooks::of(base, bus, session.clone(), log)?;
    let of_work = OfWork(Arc::downgrade(&hooks));
    session.services.insert::<dyn WorkHooks>(Arc::new(of_work));
    Some(hooks)
}

/// The values of the main agent's log: those of its conversation, and those that all agents share.
fn apart(values: BTreeMap<String, Value>) -> (BTreeMap<String, Value>, BTreeMap<String, Value>) {
    values.into_iter().partition(|(key, _)| !key.starts_with(SHARED))
}

/// The model of the first request.
fn first_model(base: &Base) -> Arc<Mutex<String>> {
    Arc::new(Mutex::new(base.loaded.settings.model.name.clone().unwrap_or_default()))
}

/// Shows problems that are found behind the start as events of the session, once that is there.
fn tell_on(bus: &Arc<Mutex<Option<Bus>>>) -> impl Fn(Problem) + Send + 'static {
    let bus = bus.clone();
    move |problem| {
        if let Some(bus) = &*bus.lock().unwrap_or_else(PoisonError::into_inner) {
            let body = Body::Notice { level: Level::Warning, text: problem.to_string() };
            bus.broadcast(&AgentPath::default(), NO_TURN, body);
        }
    }
}

impl Core {
    /// Logs the begin of a new session, or how the calls end that a resumed one left open.
    fn begin(
        &self,
        fresh: bool,
        session: String,
        open: Vec<(CallId, Outcome)>,
    ) -> Result<(), Failure> {
        let emit = |body| self.bus.emit(&AgentPath::default(), NO_TURN, body);
        if fresh {
            let cwd = self.base.place.cwd.clone();
            let haft = env!("CARGO_PKG_VERSION").to_owned();
            emit(Body::Session { session, haft, cwd, fork: None, name: None })?;
        }
        if self.fold.is_streaming() {
            let error = "the run ended in the middle of this answer".to_owned();
            emit(Body::AnswerFailed { error, retried: false, wait_ms: None })?;
        }
        for (call, outcome) in open {
            emit(Body::CallEnded { call, outcome, took: 0 })?;
        }
        Ok(())
    }

    /// The background jobs of the session.
    pub fn jobs(&self) -> Arc<Jobs> {
        self.dispatcher.session.map.get()
    }

    /// Goes on with what the log holds at this place of it, and shows the lists that became others.
    pub fn restore(&self, events: &[Event], leaf: EventId) {
        let main = AgentPath::default();
        let before = self.listed();
        let (own, shared) = apart(haft_session::states(events, leaf, &main));
        self.dispatcher.conversation.restore(own);
        self.dispatcher.session.shared.restore(shared);
        self.instructions.moved();
        self.base.skills.restore(&self.dispatcher.conversation);
        if self.listed() != before {
            let (key, value) = ("lists".into(), json!({StateNote::FIELD: StateNote::default()}));
            self.bus.broadcast(&main, NO_TURN, Body::State { key, value });
        }
    }

    /// What is to be done, as the session's lists have it.
    pub fn listed(&self) -> Vec<TodoItem> {
        let Dispatcher { conversation, session, .. } = &*self.dispatcher;
        let notes: Vec<StateNote> = [conversation.notes(), session.shared.notes()].concat();
        notes.into_iter().flat_map(|note| note.items).collect()
    }

    /// The final answer of the last turn, where it has to fit a schema and does.
    pub fn final_answer(&self) -> Option<Value> {
        self.dispatcher.session.map.get::<FinalAnswer>().get()
    }

    /// The named shells of the session.
    pub fn shells(&self) -> Arc<Shells> {
        self.dispatcher.session.map.get()
    }

    /// The services that tools can ask for; they end with the session.
    pub fn services(&self) -> &Services {
        &self.dispatcher.session.services
    }

    /// Has all that the session itself brings along closed with it.
    fn close_with_session(&self) {
        let (jobs, shells) = (self.jobs(), self.shells());
        let services = self.services();
        let end_jobs =
            move || async move { jobs.end(END_JOBS).await.iter().map(|job| job.named()).collect() };
        services.on_close("jobs", Phase::Work, END_WORK, Box::new(|| Box::pin(end_jobs())));
        let end_shells = move || async move { shells.end(END_JOBS).await.into_iter().collect() };
        services.on_close("shells", Phase::Work, END_WORK, Box::new(|| Box::pin(end_shells())));
        // Weakly: the session holds what closes it.
        let session = Arc::downgrade(&self.dispatcher.session);
        let hooks = self.hooks.as_ref().map(Arc::downgrade);
        let (store, most) = (self.base.store().ok(), self.base.loaded.settings.output.total_bytes);
        let end_records = move || async move {
            let Some(session) = session.upgrade() else { return Vec::new() };
            session.close().await;
            if let Some(hooks) = hooks.and_then(|hooks| hooks.upgrade()) {
                hooks.close().await;
            }
            if let Some(store) = store {
                collect_outputs(&session, store, most).await;
            }
            Vec::new()
        };
        services.on_close(
            "records",
            Phase::Record,
            END_RECORDS,
            Box::new(|| Box::pin(end_records())),
        );
    }

    /// Stops what still runs, makes everything durable and ends all feeds. Returns what it stopped,
    /// in words. Errors of this are added to the problems of the base.
    pub async fn close(&self) -> Vec<String> {
        let stopped = self.services().close().await;
        // What was only observed is not kept; what was kept was synced before it was told.
        if !self.bus.is_held()
            && let Err(error) = self.bus.sync().await
        {
            self.base.problems.warn(error.to_string());
        }
        self.bus.close();
        stopped
    }

    /// The tools of the main agent.
    pub fn specs(&self) -> &[Arc<ToolSpec>] {
        self.dispatcher.tools.specs()
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.dispatcher.session.id
    }
}

/// Where this run kept outputs, makes room among those of all sessions.
async fn collect_outputs(session: &Session, store: Store, most: u64) {
    let Ok(mine) = SessionId::parse(&session.id) else { return };
    if session.outs.used() > 0 {
        let work = move || store.collect_outputs(&mine, most, COLLECT_WITHIN);
        // What it does not come to, the next run does.
        drop(tokio::task::spawn_blocking(work).await);
    }
}

/// Tries the rules with the calls that their settings carry. Those of a project do not decide whether
/// haft is of use in it.
async fn try_rules(base: &Base, dispatcher: &Arc<Dispatcher>) -> Result<(), Failure> {
    let tests = &base.loaded.tests;
    let mut fatal = Vec::new();
    // Tried in one mode, whichever the run has: what was right stays right.
    let in_ask = |case: &RuleCase| RuleCase {
        mode: Some(case.mode.clone().unwrap_or_else(|| Mode::Ask.name().to_owned())),
        ..case.clone()
    };
    let cases: Vec<RuleCase> = tests.iter().map(|(.., case)| in_ask(case)).collect();
    for (index, why) in explain::tried(dispatcher, cases.iter()).await {
        let (layer, place, _) = &tests[index];
        let text = format!("{place}: permissions.tests: {why}");
        if matches!(layer, Layer::Project | Layer::Local) {
            base.problems.warn(text);
        } else {
            fatal.push(text);
        }
    }
    if fatal.is_empty() { Ok(()) } else { Err(Failure::Usage(fatal.join("\n"))) }
}

/// What a resumed log holds that a session goes on with.
#[derive(Default)]
struct Past {
    fold: Fold,
    values: BTreeMap<String, Value>,
    pinned: Option<Pinned>,
    answered: usize,
    /// The call with the highest number.
    call: Option<CallId>,
    questions: Vec<QuestionId>,
    jobs: jobs::Past,
    unsent: UnsentLines,
    /// How many events there are.
    count: usize,
    /// Whether one of them is more than a notice.
    has_content: bool,
    /// When the last one happened, and in which turn.
    last: Option<(u64, TurnId)>,
}

impl Past {
    /// Takes the next event of the log, and whether it is on the branch of the last one.
    fn note(&mut self, event: &Event, on_branch: bool) {
        self.has_content |= !matches!(event.body, Body::Notice { .. });
        self.last = Some((event.at, event.turn));
        self.jobs.note(event, on_branch);
        // Ids are those of the log: what another branch took is taken.
        match &event.body {
            Body::CallStarted { call, .. }
            | Body::CallEnded { call, .. }
            | Body::AnswerPart { part: Part::Call(ToolUse { id: call, .. }), .. } => {
                let highest = self.call.as_ref().map_or(0, call_number);
                if call_number(call) > highest {
                    self.call = Some(call.clone());
                }
            }
            Body::Asked { question } => self.questions.push(question.id.clone()),
            _ => {}
        }
        if on_branch {
            self.unsent.note(event);
        }
        // Other agents have requests of their own.
        if on_branch && event.agent.is_main() {
            self.note_own(event);
        }
    }

    /// Takes an event of the main agent on the branch.
    fn note_own(&mut self, event: &Event) {
        haft_session::note_state(&mut self.values, event);
        match &event.body {
            Body::Pinned { system, tools, format } => {
                let (system, tools) = (system.clone(), tools.clone());
                self.pinned = Some(Pinned { system, tools, format: format.clone() });
            }
            Body::AnswerEnded { .. } | Body::AnswerFailed { retried: false, .. } => {
                self.answered += 1;
            }
            _ => {}
        }
    }

    /// Ids that the log has are never given again.
    fn reserve_ids(&self, session: &Session) {
        self.call.iter().for_each(|call| session.saw_call(call));
        self.questions.iter().for_each(|question| session.questions.saw(question));
    }

    /// Has a session go on with its ids and what its agents share; gives the values of the main
    /// agent's conversation.
    fn restore(&self, session: &Session) -> BTreeMap<String, Value> {
        self.reserve_ids(session);
        let (own, shared) = apart(self.values.clone());
        session.shared.restore(shared);
        own
    }

    fn resumed(&mut self) -> Option<Resumed> {
        let (active, turn) = self.last?;
        let unsent = std::mem::take(&mut self.unsent).into_lines();
        Some(Resumed { active, turns: turn.0, unsent })
    }
}

/// Gives a session its services, and lets mode plan change the file that its plan is written to.
fn offer(session: &mut Session, services: Services) -> Result<(), Failure> {
    session.services = services;
    if let Some(plan) = session.services.get::<dyn PlanFile>() {
        let file = Local::path(Path::new(plan.path()))?;
        session.set_permissions(|judge| judge.policy = judge.policy.clone().planning_in(file));
    }
    Ok(())
}

/// What a session gets that is kept in its folder, or known from it.
fn services(base: &Base, store: &Store, log: &Log) -> Result<Services, Failure> {
    let (services, home) = (Services::default(), home(&base.environment)?);
    let settings = &base.loaded.settings.undo;
    services.insert::<dyn PreImages>(undo::kept(store, log.session(), settings));
    services.insert::<dyn Journal>(journal::of(home, log.session()));
    let peers = InLogs { store: store.clone(), mine: log.session().clone() };
    services.insert::<dyn Peers>(Arc::new(peers));
    let homes = (home, base.environment.home.as_deref());
    let saver = ProjectAllowances::of(&base.project, homes, base.trusted);
    services.insert::<dyn SaveRule>(Arc::new(saver));
    let plan = SessionPlan::of(home, log.session()).map(|plan| Arc::new(plan) as Arc<dyn PlanFile>);
    if let Some(plan) = plan.clone() {
        services.insert::<dyn PlanFile>(plan);
    }
    services.insert::<dyn StandingNotes>(Arc::new(ModeNote(plan)));
    let file = (home.join("settings.toml"), base.environment.home.clone());
    let settings = PersonsSettings::of(&base.loaded, file, &base.problems);
    services.insert::<dyn SettingAccess>(Arc::new(settings));
    // Nothing is looked up or opened before the first request.
    let resolver = Arc::new(SystemResolver::default());
    let guard = Guard::new(resolver, private_hosts(&base.loaded, None), Proxies::of_system());
    services.insert::<dyn Web>(Arc::new(guard));
    Ok(services)
}

fn session(base: &Base, bus: &Bus, id: String, out_dir: PathBuf, secrets: Arc<Secrets>) -> Session {
    let judge =
        Permissions { policy: base.policy.clone(), mode: base.mode, grants: Grants::default() };
    let most = &base.loaded.settings.output;
    let outs = Arc::new(Outs::in_folder(out_dir, most.session_bytes.min(most.total_bytes)));
    let mut session = Session::new(id, Arc::new(bus.clone()), Arc::new(bus.clone()), outs, judge);
    base.host.tell_secrets(&secrets);
    session.secrets = secrets;
    bus.hide(session.secrets.clone());
    session.output_max = Some(base.loaded.settings.limits.output_bytes);
    let jobs = &base.loaded.settings.jobs;
    session.map.get::<Jobs>().limit(JobLimits {
        running: usize::try_from(jobs.running).unwrap_or(usize::MAX),
        memory: usize::try_from(jobs.memory_bytes).unwrap_or(usize::MAX),
        life: Duration::from_secs(jobs.life_seconds),
        disk: jobs.disk_bytes,
    });
    let shells = base.loaded.settings.shell.sessions;
    session.map.get::<Shells>().limit(usize::try_from(shells).unwrap_or(usize::MAX));
    session
}

/// The limits for detecting what a command changed; none if that is switched off.
pub fn watching(base: &Base) -> Option<DiffLimits> {
    let changes = &base.loaded.settings.shell.changes;
    changes.on.then(|| DiffLimits {
        files: usize::try_from(changes.files).unwrap_or(usize::MAX),
        file_bytes: changes.file_bytes,
        ignored_files: usize::try_from(changes.ignored_files).unwrap_or(usize::MAX),
        ignored_bytes: changes.ignored_bytes,
    })
}

fn stages(
    base: &Base,
    hooks: Option<&Arc<Hooks>>,
    instructions: &Arc<ProjectInstructions>,
) -> Stages {
    let call = Some(Duration::from_secs(base.loaded.settings.limits.call_seconds));
    let limits = Limits { call, ..Limits::default() };
    let hooks = hooks.map(|hooks| Arc::new(OfTools(hooks.clone())) as Arc<dyn Hook>);
    let (skills, instructions) = (base.skills.clone(), instructions.clone());
    let touched = TouchedFolders { skills, instructions, order: tokio::sync::Mutex::default() };
    let touched = Some(Arc::new(touched) as Arc<dyn Touched>);
    Stages { limits, hooks: hooks.into_iter().collect(), touched, watching: watching(base) }
}

fn open_log(store: &Store, which: &SessionChoice, base: &Base) -> Result<(Log, Past), Failure> {
    let cwd = &base.place.cwd;
    let id = match which {
        SessionChoice::New | SessionChoice::IfNeeded => {
            return Ok((store.create(), Past::default()));
        }
        SessionChoice::Named(prefix) => find(store, prefix)?,
        SessionChoice::Last => match store.latest(Some(cwd))? {
            Some(info) => info.id,
            None => {
                return Err(Failure::Failed(format!(
                    "no session was held in {cwd} yet: start one without -c, or name one with -r"
                )));
            }
        },
    };
    let log = store.resume(&id)?;
    let mut past = Past::default();
    let history = store.history(&id, |event, on_branch| past.note(event, on_branch))?;
    for error in &history.faults {
        // One line that cannot be read is no reason to lose the others.
        base.problems.warn(format!("{error}: going on without it"));
    }
    if history.more_faults > 0 {
        let more = history.more_faults;
        base.problems.warn(format!("{more} more lines of this session cannot be read"));
    }
    // What was cut off as unreadable is told by a notice in the log.
    if !past.has_content {
        return Err(Failure::Usage(format!(
            "nothing can be read of the session {}: name another, or start without -r",
            id.as_str()
        )));
    }
    if let Some(broken) = &history.broken {
        base.problems.warn(format!(
            "the log of this session was changed: line {} does not follow the line before \
             it; going on with what is there",
            broken.line
        ));
    }
    (past.fold, past.count) = (history.fold, history.count);
    Ok((log, past))
}

/// The turn of calls that no agent makes.
pub const NO_TURN: TurnId = TurnId(0);
