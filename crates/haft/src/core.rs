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
use haft_config::{Environment, Layer, Loaded, RuleText, Sources, Trust};
use haft_host::{Host, Local, Outs};
use haft_policy::{ALIASES, Anchors, Grants, Mode, Policy, RuleProblem, Rules, Scope, Verdict};
use haft_session::{Fold, LineFault, Log, SessionError, SessionId, Store};
use haft_tool::{
    AnyTool, Conversation, Dispatcher, Events as _, Job, JobLimits, Jobs, Judge, Limits, Registry,
    SaveRule, Session, Settings as Stages, ToolSet, Watching, standard,
};
use haft_tools::Shells;
use haft_types::{
    AgentPath, Body, CallId, Env, Event, EventId, HostPath, Outcome, Part, Place, QuestionId,
    ToolSpec, ToolUse, TurnId,
};
use serde_json::{Value, json};

use crate::{
    again,
    cli::Common,
    deferred::Wanted,
    executables,
    exit::{Failure, say},
    face, jobs, journal, killed, model, pdf, undo,
};

/// Most bytes of all kept outputs of a session.
const OUTS_MAX: u64 = 4 << 30;
/// The settings of whoever runs the machine.
const MANAGED: &str = "/etc/haft/settings.toml";

/// Where the host keeps a record of the places that are being written to, in the state folder.
const LEDGER: &str = "writing";
/// Longest that the start waits for the disks on which a killed run left something.
const RECOVERY: Duration = Duration::from_millis(500);
/// Longest that a run waits until what was done by half is taken back.
const MENDING: Duration = Duration::from_secs(5);

/// The tool that is there only where its program is.
const POWERSHELL: &str = "powershell";

/// How long jobs may take to end with their session.
const END_JOBS: Duration = Duration::from_millis(2_500);

/// Which session a face works in.
#[derive(Clone, Debug, Default)]
pub enum Which {
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
        let loaded = haft_config::load(&Sources {
            haft_home: Some(haft_home.clone()),
            project: Some(project.clone()),
            trusted,
            managed: Some(MANAGED.into()),
            environment: environment.clone(),
            command_line: command_line(common),
        });
        report(&loaded)?;
        for name in loaded.settings.models.keys() {
            if let Err(error) = model::named(name) {
                say(&format!("haft: models.{name:?}: {error}"));
            }
        }
        let host = Local::new()
            .with_ledger(haft_home.join(LEDGER))
            .with_supervisor(again::supervisor())
            .with_let_through(loaded.settings.shell.let_through.clone());
        let host = match loaded.settings.shell.start_up_seconds {
            0 => host,
            seconds => host.with_start_up(Duration::from_secs(seconds)),
        };
        let host = Arc::new(host);
        let place = Arc::new(place(&host, &cwd, common, &loaded)?);
        let anchors = Anchors {
            cwd: place.cwd.clone(),
            roots: place.roots.clone(),
            project: Local::path(&project)?,
            home: place.home.clone(),
            state: vec![Local::path(&haft_home)?],
        };
        let policy = Policy::new(&rules(&loaded), anchors).sparing(again::own_processes());
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
        let reference = model::named(model).map_err(|error| {
            let from = match self.loaded.origin("model") {
                Layer::CommandLine => "--model".to_owned(),
                Layer::Environment => "HAFT_MODEL".to_owned(),
                layer => format!("`model` in the {layer}"),
            };
            Failure::Usage(format!("{from}: {error}"))
        })?;
        let vision = model::takes_images(&reference, &self.loaded.settings);
        Ok(Env { model: reference.name().to_owned(), vision, shell, interactive })
    }

    /// The tools of a run: built in, executables of the person and of a trusted project, `more`.
    pub async fn tools(
        &self,
        common: &Common,
        env: &Env,
        more: &[Arc<dyn AnyTool>],
    ) -> Result<ToolSet, Failure> {
        let registry = self.with_executables(common, env, self.builtin(common)).await;
        let registry = registry.source(more.to_vec());
        if !self.loaded.rules.is_empty() {
            idle(&self.loaded, &registry.assemble(&Env { shell: true, ..env.clone() }));
        }
        let is_there = |path: &HostPath| path.as_str().is_some_and(|text| Path::new(text).exists());
        if !self.policy.doubts(&[], is_there).is_empty() {
            let all = registry.assemble(env);
            let names: Vec<&str> = all.specs().iter().map(|spec| &*spec.name).collect();
            tell(&self.policy.doubts(&names, is_there))?;
        }
        let lists = &self.loaded.settings.tools;
        self.check_names(common, || registry.assemble(env))?;
        let named_too = common.tools.iter().flatten();
        let on: Vec<String> = lists.on.iter().chain(named_too).cloned().collect();
        let root = PathBuf::from(self.place.cwd.as_str().unwrap_or_default());
        let every = self.every_tool;
        let (policy, off, only) = (self.policy.clone(), lists.off.clone(), common.tools.clone());
        let named = |names: &[String], spec: &ToolSpec| {
            names.iter().any(|name| own_name(name) == spec.name)
        };
        let registry = registry.filter(move |spec, _| {
            let there = Wanted { every, on: &on, root: &root }.has(&spec);
            let wanted = there && only.as_deref().is_none_or(|only| named(only, &spec));
            (wanted && !named(&off, &spec) && !policy.hides(&spec)).then_some(spec)
        });
        let tools = registry.assemble(env);
        for (path, why) in executables::hidden(&tools) {
            say(&format!("haft: {path}: {why}"));
        }
        Ok(tools)
    }

    /// Refuses names that no tool has on the command line; tells of those in the settings.
    fn check_names(&self, common: &Common, all: impl FnOnce() -> ToolSet) -> Result<(), Failure> {
        let (lists, only) = (&self.loaded.settings.tools, named_tools(common)?);
        if only.is_none() && lists.off.is_empty() && lists.on.is_empty() {
            return Ok(());
        }
        let all = all();
        let unknown = |name: &str| {
            if let Some(why) = self.no_powershell(name) {
                return Some(why);
            }
            let known = all.specs().iter().any(|spec| spec.name == own_name(name));
            (!known && !name.trim().is_empty())
                .then(|| face::sentence(&all.unknown(name.trim()).to_string()))
        };
        if let Some(error) = only.unwrap_or_default().iter().find_map(|name| unknown(name)) {
            return Err(Failure::Usage(format!("--tools: {error}")));
        }
        for (list, names) in [("off", &lists.off), ("on", &lists.on)] {
            for error in names.iter().filter_map(|name| unknown(name)) {
                say(&format!("haft: tools.{list}: {error}"));
            }
        }
        Ok(())
    }

    /// Reports whether a tool that is not on by default may be among those of the run, so that it is
    /// looked for.
    fn wants(&self, common: &Common, tool: &str) -> bool {
        let named = |name: &String| own_name(name.trim()).eq_ignore_ascii_case(tool);
        let listed = self.loaded.settings.tools.on.iter().chain(common.tools.iter().flatten());
        let every = self.every_tool && self.called.as_ref().is_none_or(named);
        every || { listed }.any(named)
    }

    /// Why there is no PowerShell where it is meant.
    fn no_powershell(&self, name: &str) -> Option<String> {
        let meant = own_name(name.trim()).eq_ignore_ascii_case(POWERSHELL);
        (meant && !self.host.finds("pwsh")).then(|| {
            "the tool powershell is not available: there is no pwsh on the path; install PowerShell, or \
             use bash"
                .to_owned()
        })
    }

    /// The built-in tools with the limits that the settings give them.
    fn builtin(&self, common: &Common) -> Vec<Arc<dyn AnyTool>> {
        let settings = &self.loaded.settings;
        haft_tools::with(&haft_tools::Options {
            read_lines: settings.read.max_lines,
            read_bytes: settings.read.max_bytes,
            command_ms: settings.shell.timeout_ms,
            command_promote: settings.shell.promote,
            command_keep: settings.shell.keep.clone(),
            powershell: self.wants(common, POWERSHELL).then(|| self.host.finds("pwsh")),
            edit_strict: settings.edit.strict,
            pdf: pdf::reader(&self.host),
        })
    }

    /// Why a built-in tool is not among those of a run; none where it is, or was never there.
    pub fn taken_away(&self, common: &Common, env: &Env, name: &str) -> Option<String> {
        if let Some(why) = self.no_powershell(name) {
            return Some(why);
        }
        let all = Registry::default().source(self.builtin(common)).assemble(env);
        let spec = all.spec(name)?;
        let named = |names: &[String]| names.iter().any(|name| own_name(name) == spec.name);
        let why = if self.policy.hides(spec) {
            "a deny rule takes it away: change that rule to use it"
        } else if named(&self.loaded.settings.tools.off) {
            "`tools.off` in the settings takes it away: take its name out there to use it"
        } else if common.tools.as_deref().is_some_and(|only| !named(only)) {
            "--tools does not name it: add it there to use it"
        } else {
            return None;
        };
        Some(format!("the tool {} is not available: {why}", spec.name))
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
        which: Which,
        env: &Env,
        more: &[Arc<dyn AnyTool>],
    ) -> Result<Self, Failure> {
        recover(&base)?;
        let store = base.store()?;
        let (log, events) = open_log(&store, &which, &base.place.cwd)?;
        let (id, out_dir) = (log.session().as_str().to_owned(), log.out_dir());
        let pre_images = undo::kept(&store, log.session(), &base.loaded.settings.undo);
        let journal = journal::of(home(&base.environment)?, log.session());
        let bus = match which {
            // Nothing is left of a run that ends before anything can be asked.
            Which::New | Which::IfNeeded => Bus::lazy(log, now),
            _ => Bus::new(log, now),
        };
        let past = Past::of(&events, bus.leaf());
        let before = jobs::Past::of(&events, bus.leaf());
        let session = session(&base, &bus, id.clone(), out_dir);
        // Set once, right here.
        drop(session.pre_images.set(pre_images));
        drop(session.journal.set(journal));
        past.calls.iter().for_each(|call| session.saw_call(call));
        past.questions.iter().for_each(|question| session.questions.saw(question));
        let dispatcher = Arc::new(Dispatcher {
            session: Arc::new(session),
            conversation: Arc::new(Conversation::resumed(past.values)),
            tools: Arc::new(base.tools(common, env, more).await?),
            pipeline: Arc::new(standard(&stages(&base))),
            place: base.place.clone(),
            host: base.host.clone(),
            agent: AgentPath::default(),
        });
        let mut open = past.fold.unanswered();
        let fold = Arc::new(Mutex::new(past.fold.clone()));
        bus.follow(&fold);
        let Past { pinned, answered, .. } = past;
        let mut core = Self { base, bus, dispatcher, fold: past.fold, pinned, answered };
        let killed = killed::add(&core, &events, &mut open).await?;
        core.begin(events.is_empty(), id, open)?;
        killed::kept(killed, &core.bus).await?;
        before.resume(&core.jobs(), &core.bus)?;
        core.fold = fold.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
            emit(Body::AnswerFailed { error, retried: false })?;
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

    /// Stops the jobs and the named shells, all together; gives the jobs that ran.
    pub async fn end_jobs(&self) -> Vec<Arc<Job>> {
        let (jobs, shells) = (self.jobs(), self.shells());
        tokio::join!(jobs.end(END_JOBS), shells.end(END_JOBS)).0
    }

    /// The named shells of the session.
    pub fn shells(&self) -> Arc<Shells> {
        self.dispatcher.session.map.get()
    }

    /// Stops what still runs, makes everything durable and ends all feeds.
    pub async fn close(&self) {
        self.end_jobs().await;
        self.dispatcher.session.close().await;
        // What was only observed is not kept; what was kept was synced before it was told.
        if !self.bus.is_held()
            && let Err(error) = self.bus.sync().await
        {
            say(&format!("haft: {error}"));
        }
        self.bus.close();
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.dispatcher.session.id
    }
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

/// The tools that a person wants; none given means all of them.
fn named_tools(common: &Common) -> Result<Option<&[String]>, Failure> {
    let only = common.tools.as_deref();
    if only.is_some_and(|only| only.iter().all(|name| name.trim().is_empty())) {
        return Err(Failure::Usage(
            "--tools names no tool: give names with commas between them, as `haft tool list` has \
             them, or leave it out for all"
                .into(),
        ));
    }
    Ok(only)
}

/// Removes what killed runs left wherever they wrote, and takes back what they did by half; without
/// any, that is two looks.
pub fn recover(base: &Base) -> Result<(), Failure> {
    let home = home(&base.environment)?.to_owned();
    let holds = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    let ledger = home.join(LEDGER);
    let torn = holds(&home.join("journal"));
    if holds(&ledger) || torn {
        let (done, ended) = std::sync::mpsc::channel();
        let (host, settings) = (base.host.clone(), base.loaded.settings.undo.clone());
        // A disk that does not answer holds this thread up and nobody else.
        std::thread::spawn(move || {
            if let Err(error) = Local::recover(&ledger) {
                say(&format!("haft: what a killed run left: {}: {error}", ledger.display()));
            }
            journal::recover(&home, &*host, &settings);
            drop(done);
        });
        let _: Result<(), _> = ended.recv_timeout(if torn { MENDING } else { RECOVERY });
    }
    Ok(())
}

fn session(base: &Base, bus: &Bus, id: String, out_dir: PathBuf) -> Session {
    let judge = Judge { policy: base.policy.clone(), mode: base.mode, grants: Grants::default() };
    let outs = Arc::new(Outs::in_folder(out_dir, OUTS_MAX));
    let session = Session::new(id, Arc::new(bus.clone()), Arc::new(bus.clone()), outs, judge);
    session.output_max.get_or_init(|| base.loaded.settings.limits.output_bytes);
    let jobs = &base.loaded.settings.jobs;
    session.map.get::<Jobs>().limit(JobLimits {
        running: usize::try_from(jobs.running).unwrap_or(usize::MAX),
        memory: usize::try_from(jobs.memory_bytes).unwrap_or(usize::MAX),
        life: Duration::from_secs(jobs.life_seconds),
        disk: jobs.disk_bytes,
    });
    let shells = base.loaded.settings.shell.sessions;
    session.map.get::<Shells>().limit(usize::try_from(shells).unwrap_or(usize::MAX));
    if base.trusted {
        // In a folder that is not trusted the rule would not count the next time.
        let rules = LocalRules(base.project.join(".haft/settings.local.toml"));
        drop(session.saver.set(Arc::new(rules)));
    }
    session
}

/// How much is looked at around a command; none where nothing is.
pub fn watching(base: &Base) -> Option<Watching> {
    let changes = &base.loaded.settings.shell.changes;
    changes.on.then(|| Watching {
        files: usize::try_from(changes.files).unwrap_or(usize::MAX),
        file_bytes: changes.file_bytes,
    })
}

fn stages(base: &Base) -> Stages {
    let call = Some(Duration::from_secs(base.loaded.settings.limits.call_seconds));
    let limits = Limits { call, ..Limits::default() };
    Stages { limits, hooks: Vec::new(), watching: watching(base) }
}

/// Keeps allowances for good in the person's own settings of the project.
struct LocalRules(PathBuf);

impl SaveRule for LocalRules {
    fn place(&self) -> String {
        self.0.display().to_string()
    }

    fn save(&self, rule: &str) -> Result<(), String> {
        haft_config::add_rule(&self.0, "allow", rule).map_err(|error| error.to_string())
    }
}

fn open_log(store: &Store, which: &Which, cwd: &HostPath) -> Result<(Log, Vec<Event>), Failure> {
    let id = match which {
        Which::New | Which::IfNeeded => return Ok((store.create(), Vec::new())),
        Which::Named(prefix) => find(store, prefix)?,
        Which::Last => match store.latest(Some(cwd))? {
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
fn folder(root: Option<&Path>) -> Result<PathBuf, Failure> {
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

fn project_root(cwd: &Path) -> PathBuf {
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

/// A tool's name as it was written in a list.
fn own_name(written: &str) -> &str {
    haft_policy::own_name(written.trim())
}

/// What the flags set, in the shape of the settings.
fn command_line(common: &Common) -> Value {
    let mut layer = json!({});
    if !common.allow.is_empty() || !common.deny.is_empty() {
        layer["permissions"] = json!({"allow": common.allow, "deny": common.deny});
    }
    if let Some(model) = &common.model {
        layer["model"] = json!(model);
    }
    if let Some(effort) = common.effort {
        layer["effort"] = json!(effort.name());
    }
    if let Some(mode) = common.mode {
        layer["mode"] = json!(mode.name());
    }
    layer
}

/// Tells what is wrong with the settings; some of it is a reason not to start.
fn report(loaded: &Loaded) -> Result<(), Failure> {
    for problem in loaded.problems.iter().filter(|problem| !problem.fatal) {
        say(&format!("haft: {problem}"));
    }
    let fatal: Vec<String> = loaded.fatal().map(ToString::to_string).collect();
    if fatal.is_empty() { Ok(()) } else { Err(Failure::Usage(fatal.join("\n"))) }
}

/// Tells which rules cannot be read. One that would hold something back is a reason not to start:
/// without it more would happen than the person wants.
///
/// Not so one of a project, which would then decide that haft is of no use in it; every call of the
/// tool that it names is asked about instead.
fn unread(problems: &[RuleProblem], loaded: &Loaded) -> Result<(), Failure> {
    let mut fatal = Vec::new();
    for problem in problems {
        let placed = loaded.rules.iter().find(|rule| {
            let start = rule.text.trim().chars().take(200);
            scope(rule.layer) == problem.scope
                && verdict(rule.list) == problem.verdict
                && start.eq(problem.text.chars())
        });
        let place = placed.map(|rule| format!("{}: permissions.{}: ", rule.place, rule.list));
        let text = match place.filter(|_| problem.scope != Scope::CommandLine) {
            Some(place) => format!("{place}{problem}"),
            None => problem.to_string(),
        };
        let loosens = problem.verdict == Verdict::Allow || problem.scope == Scope::Project;
        if problem.scope == Scope::CommandLine || !loosens {
            fatal.push(text);
        } else {
            say(&format!("haft: {}", face::safe(&text)));
        }
    }
    if fatal.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!("{}\nCorrect it or take it out.", fatal.join("\n"))))
}

/// Names the rules about tools that other agents have and haft does not: they do nothing.
fn idle(loaded: &Loaded, tools: &ToolSet) {
    let specs = tools.specs();
    let is_idle = |rule: &&RuleText| {
        let name = rule.text.split('(').next().unwrap_or_default().trim();
        let own = own_name(name);
        let of_a_server = name.starts_with("mcp__");
        let known = ALIASES.iter().any(|(theirs, ours)| *theirs == name || *ours == name);
        let there = |spec: &Arc<ToolSpec>| {
            spec.name == own || (of_a_server && spec.name.starts_with("mcp__"))
        };
        (known || of_a_server) && !specs.iter().any(there)
    };
    let mut shown = Vec::new();
    for rule in loaded.rules.iter().filter(is_idle) {
        shown.push(format!("{} {} ({})", rule.list, rule.text.trim(), rule.place));
    }
    if !shown.is_empty() {
        let text =
            format!("rules that do nothing, for haft has no such tool: {}", shown.join(", "));
        say(&format!("haft: {}", face::safe(&text)));
    }
}

/// Tells which rules are about nothing.
fn tell(problems: &[RuleProblem]) -> Result<(), Failure> {
    for problem in problems {
        // A denial that was just typed and would not count is worse than not starting.
        if problem.scope == Scope::CommandLine {
            return Err(Failure::Usage(problem.to_string()));
        }
        say(&format!("haft: {problem}"));
    }
    Ok(())
}

fn rules(loaded: &Loaded) -> Rules {
    let mut rules = Rules::default();
    for rule in &loaded.rules {
        rules.add(verdict(rule.list), scope(rule.layer), &rule.text);
    }
    rules
}

fn verdict(list: &str) -> Verdict {
    match list {
        "allow" => Verdict::Allow,
        "deny" => Verdict::Deny,
        _ => Verdict::Ask,
    }
}

const fn scope(layer: Layer) -> Scope {
    match layer {
        Layer::Default | Layer::User => Scope::User,
        Layer::Project => Scope::Project,
        Layer::Local => Scope::Local,
        Layer::Managed => Scope::Managed,
        Layer::Environment | Layer::CommandLine => Scope::CommandLine,
    }
}

/// The turn of calls that no agent makes.
pub const NO_TURN: TurnId = TurnId(0);
