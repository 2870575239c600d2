//! The base of a run: folders, settings, rules, secrets, and the host as they configure it.
//!
//! **Invariant:** building it prints nothing and writes nothing; only [`recover`] repairs files.
//! Nothing of an untrusted project takes effect.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use haft_config::{Environment, Layer, Loaded, Sources, Trust};
use haft_host::{Host, Local};
use haft_policy::{Anchors, Mode, Policy};
use haft_session::{SessionError, SessionId, Store};
use haft_text::secrets::{Names, Secrets};
use haft_tool::AnyTool;
use haft_tools::SkillSource as _;
use haft_types::{Env, Hash, Place};

use super::{
    hooks::{self, Ready},
    model,
    problem::{Problem, Problems},
    recovery::journal,
    reexec,
    rules::{command_line, confinement, report, restricting, rules, unread},
    skills::{SkillPlaces, SkillStore},
};
use crate::cli::{Common, exit::Failure};

/// The settings of whoever runs the machine.
const MANAGED: &str = "/etc/haft/settings.toml";
/// The same of Claude Code.
const MANAGED_CLAUDE: &str = "/etc/claude-code/managed-settings.json";

/// Where what commands put in the place of something protected goes, in the state folder.
const PUT_ASIDE: &str = "put-aside";
/// The folder for copies of git repositories, which are there as long as a process needs them.
pub const REPOSITORIES: &str = "repositories";
/// Where the host keeps a record of the places that are being written to, in the state folder.
const LEDGER: &str = "writing";
/// Longest that the start waits for the disks on which a killed run left something.
const RECOVERY: Duration = Duration::from_millis(500);

/// Longest that a run waits until what was done by half is taken back.
const MENDING: Duration = Duration::from_secs(5);

/// The folder for the caches of confined programs, in the state folder.
pub const CACHES: &str = "caches";

/// Where confined programs of a workspace have their caches: no two share what one could spoil.
fn caches(home: &Path, cwd: &Path) -> PathBuf {
    let of = Hash::of(cwd.as_os_str().as_encoded_bytes()).to_string();
    let short: String = of.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    home.join(CACHES).join(short)
}

/// The folders, settings and rules of a run.
pub struct Base {
    /// The environment.
    pub environment: Environment,
    /// The settings, with their origins.
    pub loaded: Loaded,
    /// This machine.
    pub host: Arc<Local>,
    /// The workspace.
    pub place: Arc<Place>,
    /// The nearest folder upward that holds a repository, else the workspace root.
    pub project: PathBuf,
    /// Whether the project's settings count.
    pub trusted: bool,
    /// The permission mode: how much is asked.
    pub mode: Mode,
    /// The rules.
    pub policy: Policy,
    /// The hooks of all settings that count.
    pub hooks: Vec<Arc<Ready>>,
    /// The known values of secrets, which nothing shows.
    pub secrets: Arc<Secrets>,
    /// The skills and commands of the person and the project.
    pub skills: Arc<SkillStore>,
    /// Whether tools that are not on by default are there, too.
    pub every_tool: bool,
    /// True for faces whose calls are part of no conversation that haft has: tools that change one
    /// are not there.
    pub no_conversation: bool,
    /// The tool that is called, if one call is all that is wanted.
    pub called: Option<String>,
    /// Why the model answers, where nothing names it.
    pub model_because: Option<String>,
    /// The tool that takes the final answer, where the provider cannot be told of its schema.
    pub answer_tool: Option<Arc<dyn AnyTool>>,
    /// Problems that stop nothing.
    pub problems: Problems,
}

/// Formats how long ago a moment was: `5 min ago`. The moment is in milliseconds since the Unix
/// epoch.
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
    /// Loads settings and rules for a workspace; nothing is written.
    ///
    /// # Errors
    /// Any problem that prevents the start. All others are added to `problems`, also in that case.
    pub fn load(
        common: &Common,
        root: Option<&Path>,
        problems: &Problems,
    ) -> Result<Self, Failure> {
        Self::load_in(Environment::capture(), common, root, problems)
    }

    /// As [`load`](Self::load), in a given environment.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in(
        environment: Environment,
        common: &Common,
        root: Option<&Path>,
        problems: &Problems,
    ) -> Result<Self, Failure> {
        let cwd = folder(root)?;
        let project = project_root(&cwd);
        let haft_home = home(&environment)?.to_owned();
        let answer = Trust::load(&haft_home)?.trusted(&project);
        let trusted = common.trust || answer == Some(true);
        // Who said no once knows what is left out.
        let is_refused = answer == Some(false);
        let mut loaded =
            haft_config::load(&sources(&environment, common, &project, &haft_home, trusted));
        let secrets = secrets(&loaded);
        problems.hide(&secrets);
        // What cannot be read is told before anything that depends on it fails.
        if loaded.fatal().next().is_some() {
            report(&loaded, problems, is_refused)?;
        }
        check_models(&loaded, problems);
        let host = Arc::new(host(&loaded, &haft_home, &cwd));
        let folders = folders(&cwd, common, &loaded)?;
        let skills = skills(&environment, (&folders, &project), trusted)?;
        let place = Arc::new(place(&host, &folders, &skills)?);
        let anchors = Anchors {
            cwd: place.cwd.clone(),
            roots: place.roots.clone(),
            project: Local::path(&project)?,
            home: place.home.clone(),
            state: vec![Local::path(&haft_home)?],
        };
        let hooks = hooks::ready(&mut loaded, &anchors);
        report(&loaded, problems, is_refused)?;
        let policy = restricting(Policy::new(&rules(&loaded), anchors), &loaded);
        let policy = policy.sparing(reexec::own_processes());
        let policy = policy.confining(confinement(&loaded, &place, problems)?);
        unread(policy.problems(), &loaded, problems)?;
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
            skills: Arc::new(skills),
            every_tool: false,
            no_conversation: false,
            called: None,
            model_because: None,
            answer_tool: None,
            problems: problems.clone(),
        })
    }

    /// The workspace, with the folders of all skills that were found until now.
    pub fn place(&self) -> Arc<Place> {
        if self.called.as_deref().is_some_and(|name| haft_policy::own_name(name) == "skill") {
            self.skills.catalogue();
        }
        let read_roots = self.skills.read_roots();
        if read_roots == self.place.read_roots {
            return self.place.clone();
        }
        Arc::new(Place { read_roots, ..(*self.place).clone() })
    }

    /// The store of sessions.
    ///
    /// # Errors
    /// When there is no folder of state.
    pub fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(home(&self.environment)?))
    }

    /// What the tools may depend on: the model, if any, and whether someone can answer.
    ///
    /// # Errors
    /// When the model's name is not valid. The error says where it was named.
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
        let facts = model::facts(&reference, &self.loaded.settings);
        let (model, vision, no_todo) = (reference.name().to_owned(), facts.vision, !facts.todo);
        let provider_searches = model::searches(&reference, &self.environment);
        Ok(Env { model, vision, shell, interactive, no_todo, provider_searches })
    }
}

/// Where the settings of a run stand.
pub fn sources(
    environment: &Environment,
    common: &Common,
    project: &Path,
    haft_home: &Path,
    trusted: bool,
) -> Sources {
    Sources {
        haft_home: Some(haft_home.to_owned()),
        project: Some(project.to_owned()),
        trusted,
        managed: Some(MANAGED.into()),
        managed_claude: Some(MANAGED_CLAUDE.into()),
        environment: environment.clone(),
        command_line: command_line(common),
    }
}

/// The skills and commands of the person and of a project.
fn skills(
    environment: &Environment,
    (folders, project_root): (&[PathBuf], &Path),
    trusted: bool,
) -> Result<SkillStore, Failure> {
    let (haft_home, home) = (home(environment)?, environment.home.as_deref());
    Ok(SkillStore::new(&SkillPlaces { folders, project_root, haft_home, home, trusted }))
}

/// Names the models of the settings that cannot be meant.
fn check_models(loaded: &Loaded, problems: &Problems) {
    for name in loaded.settings.models.keys() {
        if let Err(error) = model::named(name, &loaded.settings) {
            problems.warn(format!("models.{name:?}: {error}"));
        }
    }
    let choice = &loaded.settings.model;
    let sizes = [("small", &choice.small), ("medium", &choice.medium), ("large", &choice.large)];
    let sizes = sizes.into_iter().filter_map(|(size, name)| Some((size, name.as_ref()?)));
    let fallback = choice.fallback.iter().filter(|name| *name != model::SUCCESSOR);
    for (key, name) in sizes.chain(fallback.map(|name| ("fallback", name))) {
        if let Err(error) = model::named(name, &loaded.settings) {
            problems.warn(format!("model.{key}: {error}"));
        }
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

/// The folder of all state. The error says what is wrong with its setting.
pub fn home(environment: &Environment) -> Result<&Path, Failure> {
    environment.state_folder().map_err(|error| Failure::Usage(error.to_string()))
}

/// Finds the session whose id begins with `prefix`. It is a usage error if there is none, or more
/// than one.
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

/// Removes what killed runs left wherever they wrote, and rolls back what they did half. Without
/// any such run, that costs two lookups. Problems that are found after the wait of at most 5 s are
/// passed to `late`.
///
/// # Errors
/// When there is no folder of state.
pub fn recover(base: &Base, late: impl Fn(Problem) + Send + 'static) -> Result<(), Failure> {
    let home = home(&base.environment)?.to_owned();
    let holds = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    let ledger = home.join(LEDGER);
    let torn = holds(&home.join("journal")) || Local::is_torn(&ledger);
    if !holds(&ledger) && !torn {
        return Ok(());
    }
    let (found, problems) = mpsc::channel();
    let (host, settings) = (base.host.clone(), base.loaded.settings.undo.clone());
    // A disk that does not answer holds this thread up and nobody else.
    std::thread::spawn(move || {
        // Whoever waited may be gone.
        let say = |text: String| drop(found.send(Problem::warning(text)));
        if let Err(error) = Local::recover(&ledger) {
            say(format!("what a killed run left: {}: {error}", ledger.display()));
        }
        // Before files that changed together: each of those is whole then.
        journal::put_torn_back(&ledger, &say);
        journal::recover(&home, &*host, &settings, &say);
    });
    let until = Instant::now() + if torn { MENDING } else { RECOVERY };
    loop {
        match problems.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(problem) => base.problems.add(problem),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            Err(mpsc::RecvTimeoutError::Timeout) => break,
        }
    }
    std::thread::spawn(move || problems.into_iter().for_each(late));
    Ok(())
}

/// The names that mark a secret, by the settings.
pub fn secret_names(loaded: &Loaded) -> Names {
    let haft_config::Secrets { names, not } = loaded.settings.secrets.clone();
    Names { more: names, not }
}

/// The secrets that the environment holds.
fn secrets(loaded: &Loaded) -> Arc<Secrets> {
    with_variables(Secrets::new(secret_names(loaded)))
}

/// The secrets that the session in this folder knew, and those that the environment holds.
pub fn secrets_of(session: &Path, names: Names) -> Arc<Secrets> {
    let secrets = Secrets::new(names);
    secrets.recall(&haft_session::recalled(session), haft_session::fresh_key());
    with_variables(secrets)
}

/// The secrets that the environment holds, where settings were not read.
pub fn known_secrets() -> Arc<Secrets> {
    with_variables(Secrets::default())
}

fn with_variables(secrets: Secrets) -> Arc<Secrets> {
    let variables = haft_config::variables();
    secrets.add_variables(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Arc::new(secrets)
}

/// The workspace root, with links resolved, so that what the model writes relative to it has one
/// name.
///
/// # Errors
/// When it does not exist, or is no folder.
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

/// The project folder of a folder: the nearest one upward that holds a repository, else itself.
pub fn project_root(cwd: &Path) -> PathBuf {
    let holds =
        |folder: &&Path| [".git", ".hg", ".jj"].iter().any(|name| folder.join(name).exists());
    cwd.ancestors().find(holds).unwrap_or(cwd).to_owned()
}

/// The working folder, and those that were added to it.
fn folders(cwd: &Path, common: &Common, loaded: &Loaded) -> Result<Vec<PathBuf>, Failure> {
    let more = loaded.settings.permissions.additional_directories.iter().map(PathBuf::from);
    let more = common.add_dir.iter().cloned().chain(more);
    let more = more.map(|added| folder(Some(&added)));
    std::iter::once(Ok(cwd.to_owned())).chain(more).collect()
}

fn place(host: &Local, folders: &[PathBuf], skills: &SkillStore) -> Result<Place, Failure> {
    let roots = folders.iter().map(|folder| Local::path(folder));
    let roots = roots.collect::<Result<Vec<_>, _>>()?;
    Ok(Place {
        host: host.name().to_owned().into(),
        cwd: roots[0].clone(),
        roots,
        read_roots: skills.read_roots(),
        home: host.home().clone(),
        temp: host.temp().clone(),
    })
}
