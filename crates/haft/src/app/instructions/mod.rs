//! Files of instructions of a session: what counts from the start, what is told once a folder or a
//! file is touched, and what people see of that.
//!
//! **Invariant:** what is told later goes with the result of a call, so that the begin of requests
//! stays as it is. It is told once in a conversation; the log keeps it, so that it is told again
//! where older messages leave view. All of it together stays within one number of bytes.

pub mod ask;
pub mod init;
mod listing;
mod touch;

pub use self::listing::line;

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_agent::{
    ImportAnswer, Instruction, Instructions, Memory, Places, ReadFiles, Rule, UserFolder, Why,
    at_start, chain,
};
use haft_config::Trust;
use haft_host::Local;
use haft_policy::Policy;
use haft_types::{AgentPath, Env, HostPath, ToolSpec};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::{Value, json};

use super::{
    base::{Base, home},
    hooks::Hooks,
};
use crate::cli::exit::Failure;

/// Longest that looking for files of instructions may take.
const WITHIN: Duration = Duration::from_secs(10);
/// What the keys of files begin with that a conversation was told later.
pub const KEY: &str = "instructions ";

/// The instructions of a session.
pub struct ProjectInstructions {
    host: Arc<Local>,
    policy: Policy,
    /// The root of the project, as the system and as haft has it.
    folder: PathBuf,
    project: HostPath,
    cwd: HostPath,
    home: HostPath,
    further: Vec<HostPath>,
    user: Vec<UserFolder>,
    /// The folder of haft's state, where answers are saved.
    state_folder: PathBuf,
    /// The tool that reads files: where a rule takes it away, nothing is read.
    reader: Option<ToolSpec>,
    room: usize,
    hooks: Option<Arc<Hooks>>,
    /// Whether an agent works that is to be told more.
    is_on: AtomicBool,
    /// Whether the conversation stands at another place, so that more may have to be told.
    moved: AtomicBool,
    found: tokio::sync::Mutex<LoadState>,
}

/// What is known by now.
#[derive(Default)]
struct LoadState {
    /// What counts from the start.
    start: Instructions,
    seen: ReadFiles,
    /// What counts once something fitting is touched.
    rules: Vec<Waiting>,
    /// Folders of which is known that they have nothing more, by agent.
    empty: BTreeMap<AgentPath, HashSet<HostPath>>,
    /// What was told about files that are left out.
    told: HashSet<String>,
    /// Answers about files outside of the project.
    answers: BTreeMap<String, bool>,
}

/// A rule, and its globs as they are compared.
struct Waiting {
    rule: Rule,
    globs: Gitignore,
}

impl Waiting {
    /// Globs that cannot be read name nothing.
    fn new(rule: Rule) -> Self {
        let mut builder = GitignoreBuilder::new("");
        for glob in &rule.globs {
            // The others count all the same.
            drop(builder.add_line(None, glob.strip_prefix("./").unwrap_or(glob)));
        }
        Self { globs: builder.build().unwrap_or_else(|_| Gitignore::empty()), rule }
    }

    /// Whether the globs name a path, or a folder above it.
    fn names(&self, path: &HostPath) -> bool {
        let below = path.relative_to(&self.rule.base).filter(|below| !below.is_empty());
        below.is_some_and(|below| {
            let below = String::from_utf8_lossy(below);
            self.globs.matched_path_or_any_parents(&*below, false).is_ignore()
        })
    }
}

/// What may be read, as rules have it now.
struct Judge {
    policy: Policy,
    skips: Box<dyn Fn(&HostPath) -> bool + Send + Sync>,
    is_denied: bool,
    answers: BTreeMap<String, bool>,
}

impl Judge {
    fn allows(&self, path: &HostPath) -> bool {
        !self.is_denied && !(self.skips)(path)
    }

    fn answer(&self, path: &HostPath) -> ImportAnswer {
        match self.answers.get(&*path.text()) {
            Some(true) => ImportAnswer::Yes,
            Some(false) => ImportAnswer::No,
            None => ImportAnswer::Unasked,
        }
    }
}

impl ProjectInstructions {
    /// Those of a run; nothing is read.
    ///
    /// # Errors
    /// When there is no folder of state.
    pub fn of(base: &Base) -> Result<Self, Failure> {
        let state_folder = home(&base.environment)?.to_owned();
        let place = &base.place;
        let mut user = vec![UserFolder {
            folder: Local::path(&state_folder)?,
            names: &["AGENTS.override.md", "AGENTS.md"],
        }];
        if base.loaded.settings.claude.settings
            && let Ok(folder) = place.home.join(".claude")
        {
            user.push(UserFolder { folder, names: &["CLAUDE.md"] });
        }
        let mut specs = haft_tools::builtin().into_iter().map(|tool| tool.spec(&Env::default()));
        Ok(Self {
            host: base.host.clone(),
            policy: base.policy.clone(),
            folder: base.project.clone(),
            project: Local::path(&base.project)?,
            cwd: place.cwd.clone(),
            home: place.home.clone(),
            further: place.further().cloned().collect(),
            user,
            state_folder,
            reader: specs.find(|spec| spec.name == "read"),
            room: usize::try_from(base.loaded.settings.instructions.bytes).unwrap_or(usize::MAX),
            hooks: None,
            is_on: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            found: tokio::sync::Mutex::default(),
        })
    }

    /// The same for a session, whose hooks hear of each file that is read.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_session(base: &Base, hooks: Option<&Arc<Hooks>>) -> Result<Arc<Self>, Failure> {
        Ok(Arc::new(Self { hooks: hooks.cloned(), ..Self::of(base)? }))
    }

    /// What counts from the start for the main agent, or for another one: there is one list, that of
    /// the main agent, and others are told the same.
    pub async fn for_agent(&self, is_main: bool) -> Instructions {
        if is_main { self.begin().await } else { self.at_start().await }
    }

    /// Reads what counts from the start, and from now on tells what is touched later.
    pub async fn begin(&self) -> Instructions {
        let answers = self.saved();
        let (start, seen) = self.read(&answers).await;
        let told = start.left_out.iter().cloned().collect();
        *self.found.lock().await = LoadState {
            rules: start.rules.iter().cloned().map(Waiting::new).collect(),
            start: start.clone(),
            seen,
            told,
            answers,
            empty: BTreeMap::new(),
        };
        self.is_on.store(true, Ordering::Release);
        start
    }

    /// Takes note that the conversation stands at another place of its log.
    pub fn moved(&self) {
        self.moved.store(true, Ordering::Release);
    }

    /// Reads what counts from the start.
    pub async fn at_start(&self) -> Instructions {
        self.read(&self.saved()).await.0
    }

    async fn read(&self, answers: &BTreeMap<String, bool>) -> (Instructions, ReadFiles) {
        let judge = self.judge(&self.policy, answers);
        let allowed = |path: &HostPath| judge.allows(path);
        let barred = |path: &HostPath| judge.policy.bars_import(path);
        let answer = |path: &HostPath| judge.answer(path);
        let places = self.places(&allowed, &barred, &answer);
        let work = at_start(places, &self.user, &self.cwd, self.room);
        tokio::time::timeout(WITHIN, work).await.unwrap_or_else(|_| {
            let text = format!("no instructions are read: looking for them took over {WITHIN:?}");
            (Instructions { left_out: vec![text], ..Instructions::default() }, ReadFiles::default())
        })
    }

    /// The saved answers about files outside of the project. Where they cannot be read nobody was
    /// asked, which is the safe side.
    fn saved(&self) -> BTreeMap<String, bool> {
        Trust::load(&self.state_folder).map(|trust| trust.imports(&self.folder)).unwrap_or_default()
    }

    fn judge(&self, policy: &Policy, answers: &BTreeMap<String, bool>) -> Judge {
        Judge {
            skips: Box::new(policy.path_filter("read", &self.project, &self.project)),
            // A rule for the whole tool names no path.
            is_denied: self.reader.as_ref().is_some_and(|spec| policy.hides(spec)),
            policy: policy.clone(),
            answers: answers.clone(),
        }
    }

    fn places<'a>(
        &'a self,
        allowed: &'a (dyn Fn(&HostPath) -> bool + Send + Sync),
        barred: &'a (dyn Fn(&HostPath) -> Option<&'static str> + Send + Sync),
        answer: &'a (dyn Fn(&HostPath) -> ImportAnswer + Send + Sync),
    ) -> Places<'a> {
        Places {
            host: &*self.host,
            root: &self.project,
            further: &self.further,
            home: &self.home,
            allowed,
            barred,
            answer,
        }
    }

    /// The folders whose files count once `path` is touched, from the most general on.
    fn folders(&self, path: &HostPath) -> Vec<HostPath> {
        let roots = std::iter::once(&self.project).chain(&self.further);
        let Some(root) = roots.into_iter().find(|root| path.is_within(root)) else {
            return Vec::new();
        };
        let is_read =
            |folder: &HostPath| folder.is_within(&self.project) && self.cwd.is_within(folder);
        chain(root, path).into_iter().filter(|folder| !is_read(folder)).collect()
    }

    /// Tells hooks of files that were read.
    pub async fn hooked(&self, files: &[Instruction]) {
        let Some(hooks) = &self.hooks else { return };
        let loaded = files.iter().map(|file| self.payload(file)).collect();
        hooks.instructions_loaded(loaded).await;
    }

    /// Why a file was read, and its fields as hooks get them.
    fn payload(&self, file: &Instruction) -> (&'static str, Value) {
        let memory = match file.memory {
            Memory::User => "User",
            Memory::Project => "Project",
            Memory::Local => "Local",
        };
        let absolute = |shown: &str| match shown.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => self.project.join(shown),
        };
        let absolute =
            |shown: &str| absolute(shown).map_or_else(|_| shown.to_owned(), |p| p.text().into());
        let mut fields = json!({"file_path": absolute(&file.path), "memory_type": memory});
        let reason = match &file.why {
            Why::Start => "session_start",
            Why::Import { of } => {
                fields["parent_file_path"] = json!(absolute(of));
                "include"
            }
            Why::Touch { of } => {
                fields["trigger_file_path"] = json!(absolute(of));
                "nested_traversal"
            }
            Why::Rule { of, globs } => {
                fields["trigger_file_path"] = json!(absolute(of));
                fields["globs"] = json!(globs);
                "path_glob_match"
            }
        };
        fields["load_reason"] = json!(reason);
        (reason, fields)
    }
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    #[test]
    fn globs_name_what_they_seem_to_name() {
        let path = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let file = Instruction {
            at: path("/p/.claude/rules/a.md"),
            path: ".claude/rules/a.md".to_owned(),
            text: "x".to_owned(),
            memory: Memory::Project,
            why: Why::Start,
            left_out: 0,
        };
        let both: &[(&str, &[&str], &[&str])] = &[
            ("src/**/*.{ts,tsx}", &["/p/src/a.ts", "/p/src/b/c.tsx"], &["/p/a.ts", "/q/src/a.ts"]),
            ("**/*.rs", &["/p/a.rs", "/p/x/y.rs"], &["/p/a.rsx", "/p"]),
            ("src/api", &["/p/src/api", "/p/src/api/x.rs"], &["/p/lib/src/api"]),
            ("./docs/*", &["/p/docs/a.md"], &["/p/a.md"]),
            ("*.md", &["/p/a.md", "/p/x/a.md"], &["/p/a.rs"]),
            ("[", &["/p/["], &["/p/a"]),
        ];
        for (glob, named, others) in both {
            let globs = vec![(*glob).to_owned()];
            let waiting = Waiting::new(Rule { file: file.clone(), globs, base: path("/p") });
            for text in *named {
                assert!(waiting.names(&path(text)), "{glob} names {text}");
            }
            for text in *others {
                assert!(!waiting.names(&path(text)), "{glob} does not name {text}");
            }
        }
    }
}
