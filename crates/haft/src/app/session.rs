//! What every face is made of: settings, policy, host, session, tools.
//!
//! **Invariant:** built once for a run, in one order, for every face alike. Nothing is written
//! before the first event of the session, and nothing of an untrusted project takes effect.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use haft_agent::{Bus, Pinned};
use haft_config::{Environment, Layer, Loaded, RuleCase, Sources, Trust};
use haft_host::{Host, Local, Outs};
use haft_policy::{Anchors, Grants, Mode, Policy};
use haft_session::{Fold, LineFault, Log, SessionError, SessionId, Store};
use haft_text::secrets::{Names, Secrets};
use haft_tool::{
    AnyTool, Conversation, DiffLimits, Dispatcher, Events as _, Hook, JobLimits, Jobs, Journal,
    Limits, Peers, Permissions, PreImages, SaveRule, Session, Settings as Stages, standard,
};
use haft_tools::Shells;
use haft_types::{
    AgentPath, Body, CallId, Env, Event, EventId, Hash, HostPath, Outcome, Part, Place, QuestionId,
    ToolUse, TurnId,
};
use serde_json::Value;

use super::{
    agent,
    allowances::ProjectAllowances,
    hooks::{self, Hooks, OfTools, Ready},
    model,
    peers::InLogs,
    recovery::{commands, jobs, journal},
    reexec,
    rules::{command_line, confinement, report, unread},
};
use crate::{
    cli::{
        Common,
        exit::{self, Failure, say},
    },
    faces::why,
    undo,
};

pub use super::rules::{readable, restricting, rules};

/// The settings of whoever runs the machine.
const MANAGED: &str = "/etc/haft/settings.toml";
/// The same of Claude Code.
const MANAGED_CLAUDE: &str = "/etc/claude-code/managed-settings.json";

/// Where what commands put in the place of something protected goes, in the state folder.
const PUT_ASIDE: &str = "put-aside";
/// Where copies of git repositories are, for as long as a process needs them.
pub const REPOSITORIES: &str = "repositories";
/// Where the host keeps a record of the places that are being written to, in the state folder.
const LEDGER: &str = "writing";
/// Longest that the start waits for the disks on which a killed run left something.
const RECOVERY: Duration = Duration::from_millis(500);
/// Longest that making room among the outputs of all sessions goes on at the end of a run.
const COLLECT_WITHIN: Duration = Duration::from_millis(200);
/// Longest that a run waits until what was done by half is taken back.
const MENDING: Duration = Duration::from_secs(5);

/// How long jobs may take to end with their session.
const END_JOBS: Duration = Duration::from_millis(2_500);

/// Where the caches of confined programs are, in the state folder.
pub const CACHES: &str = "caches";

/// Where confined programs of a workspace have their caches: no two share what one could spoil.
fn caches(home: &Path, cwd: &Path) -> PathBuf {
    let of = Hash::of(cwd.as_os_str().as_encoded_bytes()).to_string();
    let short: String = of.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    home.join(CACHES).join(short)
}

/// Which session a face works in.
#[derive(Clone, Debug, Default)]
pub enum SessionChoice {
    /// A new one.
    #[default]
    New,
    /// A new one that is only kept when something is changed.
    IfNeeded,
    /// The last one of this folder.
    Last,
    /// The one whose id begins so.
    Named(String),
}

/// The folders, settings and rules of a run.
pub struct Base {
    /// The environment.
    pub environment: Environment,
    /// The settings with where they came from.
    pub loaded: Loaded,
    /// This machine.
    pub host: Arc<Local>,
    /// The workspace.
    pub place: Arc<Place>,
    /// The nearest folder upward that holds a repository, else the workspace root.
    pub project: PathBuf,
    /// Whether the project's settings count.
    pub trusted: bool,
    /// How much is asked.
    pub mode: Mode,
    /// The rules.
    pub policy: Policy,
    /// The hooks of all settings that count.
    pub hooks: Vec<Arc<Ready>>,
    /// The values of secrets that are known, which nothing shows.
    pub secrets: Arc<Secrets>,
    /// Whether tools that are not on by default are there, too.
    pub every_tool: bool,
    /// The tool that is called, where that is all that is wanted.
    pub called: Option<String>,
}

/// A running session with its tools.
pub struct Core {
    /// What it is built on.
    pub base: Base,
    /// The session's events.
    pub bus: Bus,
    /// Takes calls through the pipeline.
    pub dispatcher: Arc<Dispatcher>,
    /// The conversation so far.
    pub fold: Fold,
    /// What the log has pinned.
    pub pinned: Option<Pinned>,
    /// Answers that the log has.
    pub answered: usize,
    /// What a person wants to know of a session that goes on; none of a new one.
    pub resumed: Option<Resumed>,
    /// Whether the last that the model was told of the mode is that it is plan.
    pub told_plan: bool,
    /// Hooks of calls and of the talk; none where there are none.
    pub hooks: Option<Arc<Hooks>>,
}

/// A session that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// When something happened in it last, in milliseconds since the Unix epoch.
    pub active: u64,
    /// How many turns it had.
    pub turns: u64,
    /// Lines of the person that were waiting when it ended.
    pub unsent: Vec<String>,
}

impl Resumed {
    fn of(events: &[Event], leaf: EventId) -> Option<Self> {
        let last = events.last()?;
        let unsent = haft_agent::unsent(haft_session::on_branch(events, leaf));
        Some(Self { active: last.at, turns: last.turn.0, unsent })
    }
}

/// How long ago a moment was: `5 min ago`; it is in milliseconds since the Unix epoch.
pub fn ago(moment: u64) -> String {
    let seconds = now().saturating_sub(moment) / 1_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Milliseconds since the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Base {
    /// Reads settings and rules for a workspace; nothing is written.
    pub fn load(common: &Common, root: Option<&Path>) -> Result<Self, Failure> {
        Self::load_in(Environment::capture(), common, root)
    }

    /// As [`load`](Self::load), in a given environment.
    pub fn load_in(
        environment: Environment,
        common: &Common,
        root: Option<&Path>,
    ) -> Result<Self, Failure> {
        let cwd = folder(root)?;
        let project = project_root(&cwd);
        let haft_home = home(&environment)?.to_owned();
        let trusted = common.trust || Trust::load(&haft_home)?.trusted(&project) == Some(true);
        let mut loaded = haft_config::load(&Sources {
            haft_home: Some(haft_home.clone()),
            project: Some(project.clone()),
            trusted,
            managed: Some(MANAGED.into()),
            managed_claude: Some(MANAGED_CLAUDE.into()),
            environment: environment.clone(),
            command_line: command_line(common),
        });
        let secrets = secrets(&loaded);
        exit::hide(&secrets);
        // What cannot be read is told before anything that depends on it fails.
        if loaded.fatal().next().is_some() {
            report(&loaded)?;
        }
        for name in loaded.settings.models.keys() {
            if let Err(error) = model::named(name, &loaded.settings) {
                say(&format!("haft: models.{name:?}: {error}"));
            }
        }
        let host = Arc::new(host(&loaded, &haft_home, &cwd));
        let place = Arc::new(place(&host, &cwd, common, &loaded)?);
        let anchors = Anchors {
            cwd: place.cwd.clone(),
            roots: place.roots.clone(),
            project: Local::path(&project)?,
            home: place.home.clone(),
            state: vec![Local::path(&haft_home)?],
        };
        let hooks = hooks::ready(&mut loaded, &anchors);
        report(&loaded)?;
        let policy = restricting(Policy::new(&rules(&loaded), anchors), &loaded);
        let policy = policy.sparing(reexec::own_processes());
        let policy = policy.confining(confinement(&loaded, &place)?);
        unread(policy.problems(), &loaded)?;
        let mode = loaded.settings.mode;
        Ok(Self {
            environment,
            loaded,
            host,
            place,
            project,
            trusted,
            mode,
            policy,
            hooks,
            secrets,
            every_tool: false,
            called: None,
        })
    }

    /// Where sessions are kept.
    pub fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(home(&self.environment)?))
    }

    /// What the tools may depend on: the model, if any, and whether someone can answer.
    pub fn env(&self, model: Option<&str>, interactive: bool) -> Result<Env, Failure> {
        let shell = self.host.shell().is_some();
        let Some(model) = model else {
            return Ok(Env { vision: true, shell, interactive, ..Env::default() });
        };
        let reference = model::named(model, &self.loaded.settings).map_err(|error| {
            let from = match self.loaded.origin("model.name") {
                Layer::CommandLine => "--model".to_owned(),
                Layer::Environment => "HAFT_MODEL".to_owned(),
                layer => format!("`model` in the {layer}"),
            };
            Failure::Usage(format!("{from}: {error}"))
        })?;
        let vision = model::takes_images(&reference, &self.loaded.settings);
        Ok(Env { model: reference.name().to_owned(), vision, shell, interactive })
    }
}

/// This machine as the settings want it.
fn host(loaded: &Loaded, haft_home: &Path, cwd: &Path) -> Local {
    let host = Local::new()
        .with_ledger(haft_home.join(LEDGER))
        .with_caches(caches(haft_home, cwd))
        .with_put_aside(haft_home.join(PUT_ASIDE))
        .with_repositories(haft_home.join(REPOSITORIES))
        .with_supervisor(reexec::supervisor())
        .with_secrets(secret_names(loaded))
        .with_let_through(loaded.settings.shell.let_through.clone())
        .with_variables(loaded.variables.clone());
    match loaded.settings.shell.start_up_seconds {
        0 => host,
        seconds => host.with_start_up(Duration::from_secs(seconds)),
    }
}

/// Where all state lives; whoever set it wrong is told so.
pub fn home(environment: &Environment) -> Result<&Path, Failure> {
    environment.state_folder().map_err(|error| Failure::Usage(error.to_string()))
}

/// The session whose id begins so. One that is not there was typed wrong.
pub fn find(store: &Store, prefix: &str) -> Result<SessionId, Failure> {
    if prefix.trim().is_empty() {
        let text = "the id of a session is empty: give how it begins; haft session list names them";
        return Err(Failure::Usage(text.into()));
    }
    store.find(prefix).map_err(|error| match error {
        SessionError::NotFound { .. }
        | SessionError::Ambiguous { .. }
        | SessionError::NotAnId(_) => Failure::Usage(error.to_string()),
        error => error.into(),
    })
}

impl Core {
    /// Opens or begins a session and puts the tools around it.
    pub async fn open(
        base: Base,
        common: &Common,
        which: SessionChoice,
        env: &Env,
        more: &[Arc<dyn AnyTool>],
    ) -> Result<Self, Failure> {
        recover(&base)?;
        let store = base.store()?;
        let (log, events) = open_log(&store, &which, &base.place.cwd)?;
        let (id, out_dir) = (log.session().as_str().to_owned(), log.out_dir());
        let secrets = secrets_of(log.dir(), secret_names(&base.loaded));
        let log_path = log.path().to_owned();
        let pre_images = undo::kept(&store, log.session(), &base.loaded.settings.undo);
        let journal = journal::of(home(&base.environment)?, log.session());
        let others = Arc::new(InLogs { store: store.clone(), mine: log.session().clone() });
        let bus = match which {
            // Nothing is left of a run that ends before anything can be asked.
            SessionChoice::New | SessionChoice::IfNeeded => Bus::lazy(log, now),
            _ => Bus::new(log, now),
        };
        let past = Past::of(&events, bus.leaf());
        let resumed = Resumed::of(&events, bus.leaf());
        let before = jobs::Past::of(&events, bus.leaf());
        let session = session(&base, &bus, id.clone(), out_dir, secrets);
        session.services.insert::<dyn PreImages>(pre_images);
        session.services.insert::<dyn Journal>(journal);
        session.services.insert::<dyn Peers>(others);
        past.calls.iter().for_each(|call| session.saw_call(call));
        past.questions.iter().for_each(|question| session.questions.saw(question));
        let session = Arc::new(session);
        let hooks = Hooks::of(&base, &bus, session.clone(), log_path);
        let dispatcher = Arc::new(Dispatcher {
            session,
            conversation: Arc::new(Conversation::resumed(past.values)),
            tools: Arc::new(base.tools(common, env, more).await?),
            pipeline: Arc::new(standard(&stages(&base, hooks.as_ref()))),
            place: base.place.clone(),
            host: base.host.clone(),
            agent: AgentPath::default(),
        });
        Box::pin(try_rules(&base, &dispatcher)).await?;
        let mut open = past.fold.unanswered();
        let followed = Arc::new(Mutex::new(past.fold.clone()));
        bus.follow(&followed);
        let Past { pinned, answered, .. } = past;
        let fold = past.fold;
        let told_plan = agent::tells_plan(fold.final_messages());
        let mut core =
            Self { base, bus, dispatcher, fold, pinned, answered, resumed, told_plan, hooks };
        let killed = commands::add(&core, &events, &mut open).await?;
        core.begin(events.is_empty(), id, open)?;
        commands::kept(killed, &core.bus).await?;
        before.resume(&core.jobs(), &core.bus)?;
        core.fold = followed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(core)
    }

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

    /// What goes on beside the calls.
    pub fn jobs(&self) -> Arc<Jobs> {
        self.dispatcher.session.map.get()
    }

    /// Stops the jobs and the named shells, all together; gives the jobs that ran, and the shells in
    /// which something did, in words.
    pub async fn end_jobs(&self) -> Vec<String> {
        let (jobs, shells) = (self.jobs(), self.shells());
        let (jobs, shells) = tokio::join!(jobs.end(END_JOBS), shells.end(END_JOBS));
        jobs.iter().map(|job| job.named()).chain(shells).collect()
    }

    /// The named shells of the session.
    pub fn shells(&self) -> Arc<Shells> {
        self.dispatcher.session.map.get()
    }

    /// Stops what still runs, makes everything durable and ends all feeds.
    pub async fn close(&self) {
        self.end_jobs().await;
        self.dispatcher.session.close().await;
        if let Some(hooks) = &self.hooks {
            hooks.close().await;
        }
        self.collect_outputs().await;
        // What was only observed is not kept; what was kept was synced before it was told.
        if !self.bus.is_held()
            && let Err(error) = self.bus.sync().await
        {
            say(&format!("haft: {error}"));
        }
        self.bus.close();
    }

    /// Where this run kept outputs, makes room among those of all sessions.
    async fn collect_outputs(&self) {
        let session = &self.dispatcher.session;
        let most = self.base.loaded.settings.output.total_bytes;
        let (Ok(store), Ok(mine)) = (self.base.store(), SessionId::parse(&session.id)) else {
            return;
        };
        if session.outs.used() > 0 {
            let work = move || store.collect_outputs(&mine, most, COLLECT_WITHIN);
            // What it does not come to, the next run does.
            drop(tokio::task::spawn_blocking(work).await);
        }
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.dispatcher.session.id
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
    for (index, why) in why::tried(dispatcher, cases.iter()).await {
        let (layer, place, _) = &tests[index];
        let text = format!("{place}: permissions.tests: {why}");
        if matches!(layer, Layer::Project | Layer::Local) {
            say(&format!("haft: {}", crate::faces::view::safe(&text)));
        } else {
            fatal.push(text);
        }
    }
    if fatal.is_empty() { Ok(()) } else { Err(Failure::Usage(fatal.join("\n"))) }
}

/// What a resumed log holds that a session goes on with.
struct Past {
    fold: Fold,
    values: BTreeMap<String, Value>,
    pinned: Option<Pinned>,
    answered: usize,
    calls: Vec<CallId>,
    questions: Vec<QuestionId>,
}

impl Past {
    fn of(events: &[Event], leaf: EventId) -> Self {
        let main = AgentPath::default();
        let mut past = Self {
            fold: Fold::new(main.clone()),
            values: haft_session::states(events, leaf, &main),
            pinned: None,
            answered: 0,
            calls: Vec::new(),
            questions: Vec::new(),
        };
        for event in haft_session::on_branch(events, leaf) {
            past.fold.push(event);
            match &event.body {
                Body::Pinned { system, tools } => {
                    past.pinned = Some(Pinned { system: system.clone(), tools: tools.clone() });
                }
                Body::AnswerEnded { .. } | Body::AnswerFailed { retried: false, .. } => {
                    past.answered += 1;
                }
                _ => {}
            }
        }
        // Ids are those of the log: what another branch took is taken.
        for event in events {
            match &event.body {
                Body::CallStarted { call, .. }
                | Body::CallEnded { call, .. }
                | Body::AnswerPart { part: Part::Call(ToolUse { id: call, .. }), .. } => {
                    past.calls.push(call.clone());
                }
                Body::Asked { question } => past.questions.push(question.id.clone()),
                _ => {}
            }
        }
        past
    }
}

/// Removes what killed runs left wherever they wrote, and takes back what they did by half; without
/// any, that is two looks.
pub fn recover(base: &Base) -> Result<(), Failure> {
    let home = home(&base.environment)?.to_owned();
    let holds = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    let ledger = home.join(LEDGER);
    let torn = holds(&home.join("journal")) || Local::is_torn(&ledger);
    if holds(&ledger) || torn {
        let (done, ended) = std::sync::mpsc::channel();
        let (host, settings) = (base.host.clone(), base.loaded.settings.undo.clone());
        // A disk that does not answer holds this thread up and nobody else.
        std::thread::spawn(move || {
            if let Err(error) = Local::recover(&ledger) {
                say(&format!("haft: what a killed run left: {}: {error}", ledger.display()));
            }
            // Before files that changed together: each of those is whole then.
            journal::put_torn_back(&ledger);
            journal::recover(&home, &*host, &settings);
            drop(done);
        });
        let _: Result<(), _> = ended.recv_timeout(if torn { MENDING } else { RECOVERY });
    }
    Ok(())
}

/// Which names tell of a secret.
pub fn secret_names(loaded: &Loaded) -> Names {
    let haft_config::Secrets { names, not } = loaded.settings.secrets.clone();
    Names { more: names, not }
}

/// The secrets that the environment holds.
fn secrets(loaded: &Loaded) -> Arc<Secrets> {
    with_variables(Secrets::new(secret_names(loaded)))
}

/// The secrets that the session of this folder knew, and those that the environment holds; from now
/// on nothing that is said shows them.
pub fn secrets_of(session: &Path, names: Names) -> Arc<Secrets> {
    let secrets = Secrets::new(names);
    secrets.recall(&haft_session::recalled(session), haft_session::fresh_key());
    let secrets = with_variables(secrets);
    exit::hide(&secrets);
    secrets
}

fn with_variables(secrets: Secrets) -> Arc<Secrets> {
    let variables = haft_config::variables();
    secrets.add_variables(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Arc::new(secrets)
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
    if let Ok(home) = home(&base.environment) {
        let homes = (home, base.environment.home.as_deref());
        let saver = Arc::new(ProjectAllowances::of(&base.project, homes, base.trusted));
        session.services.insert::<dyn SaveRule>(saver);
    }
    session
}

/// How much is looked at around a command; none where nothing is.
pub fn watching(base: &Base) -> Option<DiffLimits> {
    let changes = &base.loaded.settings.shell.changes;
    changes.on.then(|| DiffLimits {
        files: usize::try_from(changes.files).unwrap_or(usize::MAX),
        file_bytes: changes.file_bytes,
        ignored_files: usize::try_from(changes.ignored_files).unwrap_or(usize::MAX),
        ignored_bytes: changes.ignored_bytes,
    })
}

fn stages(base: &Base, hooks: Option<&Arc<Hooks>>) -> Stages {
    let call = Some(Duration::from_secs(base.loaded.settings.limits.call_seconds));
    let limits = Limits { call, ..Limits::default() };
    let hooks = hooks.map(|hooks| Arc::new(OfTools(hooks.clone())) as Arc<dyn Hook>);
    Stages { limits, hooks: hooks.into_iter().collect(), watching: watching(base) }
}

fn open_log(
    store: &Store,
    which: &SessionChoice,
    cwd: &HostPath,
) -> Result<(Log, Vec<Event>), Failure> {
    let id = match which {
        SessionChoice::New | SessionChoice::IfNeeded => return Ok((store.create(), Vec::new())),
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
    let mut events = Vec::new();
    for event in store.events(&id)? {
        match event {
            Ok(event) => events.push(event),
            // One line that cannot be read is no reason to lose the others.
            Err(error) => say(&format!("haft: {error}: going on without it")),
        }
    }
    // What was cut off as unreadable is told by a notice in the log.
    if events.iter().all(|event| matches!(event.body, Body::Notice { .. })) {
        return Err(Failure::Usage(format!(
            "nothing can be read of the session {}: name another, or start without -r",
            id.as_str()
        )));
    }
    let verdict = store.verify(&id)?;
    if let Some(broken) =
        verdict.broken.filter(|line| matches!(line.fault, LineFault::Chain { .. }))
    {
        say(&format!(
            "haft: the log of this session was changed: line {} does not follow the line before \
             it; going on with what is there",
            broken.line
        ));
    }
    Ok((log, events))
}

/// The workspace root: real, so that what the model writes relative to it has one name.
///
/// # Errors
/// When it is not there.
pub fn folder(root: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = match root {
        Some(root) => root.to_owned(),
        None => std::env::current_dir().map_err(|error| {
            Failure::Failed(format!(
                "the current folder is gone ({error}): change to one that is there"
            ))
        })?,
    };
    let real = std::fs::canonicalize(&given)
        .map_err(|error| Failure::Usage(format!("the folder {}: {error}", given.display())))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(Failure::Usage(format!("{} is no folder", given.display())))
    }
}

/// The folder of the project in which a folder lies: that of its repository, else itself.
pub fn project_root(cwd: &Path) -> PathBuf {
    let holds =
        |folder: &&Path| [".git", ".hg", ".jj"].iter().any(|name| folder.join(name).exists());
    cwd.ancestors().find(holds).unwrap_or(cwd).to_owned()
}

fn place(host: &Local, cwd: &Path, common: &Common, loaded: &Loaded) -> Result<Place, Failure> {
    let mut roots = vec![Local::path(cwd)?];
    let more = loaded.settings.permissions.additional_directories.iter().map(PathBuf::from);
    for added in common.add_dir.iter().cloned().chain(more) {
        roots.push(Local::path(&folder(Some(&added))?)?);
    }
    Ok(Place {
        host: host.name().to_owned().into(),
        cwd: roots[0].clone(),
        roots,
        home: host.home().clone(),
        temp: host.temp().clone(),
    })
}

/// The turn of calls that no agent makes.
pub const NO_TURN: TurnId = TurnId(0);
