//! A small world to call tools in: a host with files, a session, the standard pipeline.
//!
//! **Invariant:** calls go through the same stages as in the program itself; only where events go
//! and who answers questions is the test's. Everything lives in memory or in one temporary folder.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{FileKind, Host, ListHow, Local, Lookup, Memory, Outs};
use haft_policy::{Anchors, Grants, Mode, Policy, Rules, Scope, Verdict};
use haft_tool::{
    AnyTool, Broker, Conversation, DenyFilter, Dispatcher, Events, MemoryBlobs, Permissions,
    RecordError, Registry, Session, Settings, Undo, UndoError, standard,
};
use haft_types::{
    AgentPath, Body, EntryKind, Env, Follow, HostPath, Outcome, Place, Receipt, Reply, Style,
    ToolUse, TurnId,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Tools, as registries take them.
pub type Tools = Vec<Arc<dyn AnyTool>>;

/// Everything that happened, in order, and the answers to what is asked.
#[derive(Default)]
pub struct Recorder {
    bodies: Mutex<Vec<Body>>,
    answers: Mutex<VecDeque<Reply>>,
    broker: OnceLock<Arc<Broker>>,
    more: Notify,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// What happened so far.
    pub fn bodies(&self) -> Vec<Body> {
        locked(&self.bodies).clone()
    }

    /// Waits until something of this kind has happened.
    pub async fn until(&self, happened: impl Fn(&Body) -> bool) {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            // Registered before the look, so that nothing in between is missed.
            more.as_mut().enable();
            if locked(&self.bodies).iter().any(&happened) {
                return;
            }
            more.await;
        }
    }

    /// What happened so far as JSON text, to search everything that was told.
    pub fn text(&self) -> String {
        serde_json::to_string(&*locked(&self.bodies)).unwrap_or_default()
    }
}

impl Events for Recorder {
    fn emit(&self, _agent: &AgentPath, _turn: TurnId, body: Body) -> Result<(), RecordError> {
        locked(&self.bodies).push(body.clone());
        self.more.notify_waiters();
        if let (Body::Asked { question }, Some(broker)) = (body, self.broker.get())
            && broker.is_somebody()
        {
            let reply = locked(&self.answers).pop_front().unwrap_or(question.if_nobody);
            broker.reply(&question.id, reply, "test");
        }
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// See the module.
pub struct World {
    /// The bare host, to look at from outside.
    pub host: Arc<dyn Host>,
    /// The workspace root.
    pub root: HostPath,
    /// The session of all calls.
    pub session: Arc<Session>,
    /// Takes calls through the pipeline.
    pub dispatcher: Arc<Dispatcher>,
    /// What happened.
    pub recorder: Arc<Recorder>,
    folder: Option<tempfile::TempDir>,
}

impl World {
    /// A world in memory whose workspace is `/w`; paths of files are relative to it.
    ///
    /// # Errors
    /// When a path leads through a file.
    pub fn memory<P: AsRef<str>, D: AsRef<[u8]>>(
        tools: Tools,
        files: impl IntoIterator<Item = (P, D)>,
    ) -> io::Result<Self> {
        let host = Memory::new();
        host.add_folder("/w")?;
        for (path, data) in files {
            host.add_file(&format!("/w/{}", path.as_ref()), data.as_ref().to_vec())?;
        }
        let root = HostPath::new(b"/w", Style::Posix).map_err(io::Error::other)?;
        Ok(Self::on(Arc::new(host), root, tools))
    }

    /// A world in a temporary folder of this machine, gone with the value.
    ///
    /// # Errors
    /// When the folder or a file cannot be made.
    pub fn local<P: AsRef<str>, D: AsRef<[u8]>>(
        tools: Tools,
        files: impl IntoIterator<Item = (P, D)>,
    ) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut world = Self::below(folder.path(), Lookup::probed(), tools)?;
        for (path, data) in files {
            let path = folder.path().join("w").join(path.as_ref());
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, data.as_ref())?;
        }
        world.folder = Some(folder);
        Ok(world)
    }

    /// A world of this machine whose workspace `w`, home `home` and folder for temporary files `tmp`
    /// are made below a folder of the test's, as far as they are not there.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn below(folder: &Path, lookup: Lookup, tools: Tools) -> io::Result<Self> {
        let base = folder.canonicalize()?;
        let made = |name: &str| {
            std::fs::create_dir_all(base.join(name))?;
            Local::path(&base.join(name))
        };
        let (root, home, temp) = (made("w")?, made("home")?, made("tmp")?);
        Ok(Self::on(Arc::new(Local::at(home, temp, lookup)), root, tools))
    }

    /// A world on any host, in mode bypass and without rules, where nobody answers.
    pub fn on(host: Arc<dyn Host>, root: HostPath, tools: Tools) -> Self {
        let recorder = Arc::new(Recorder::default());
        let anchors = Anchors {
            cwd: root.clone(),
            roots: vec![root.clone()],
            project: root.clone(),
            home: host.home().clone(),
            state: Vec::new(),
        };
        let judge = Permissions {
            policy: Policy::new(&Rules::default(), anchors),
            mode: Mode::Bypass,
            grants: Grants::default(),
        };
        let outs = Arc::new(Outs::in_memory(64 * 1024 * 1024));
        let blobs = Arc::new(MemoryBlobs::default());
        let session = Arc::new(Session::new("world", recorder.clone(), blobs, outs, judge));
        // Set once, right here.
        drop(recorder.broker.set(session.questions.clone()));
        let shell = host.shell().is_some();
        let env = Env { vision: true, shell, interactive: true, ..Env::default() };
        let place = Place {
            host: host.name().to_owned().into(),
            cwd: root.clone(),
            roots: vec![root.clone()],
            read_roots: Vec::new(),
            home: host.home().clone(),
            temp: host.temp().clone(),
        };
        let dispatcher = Arc::new(Dispatcher {
            session: session.clone(),
            conversation: Arc::new(Conversation::default()),
            tools: Arc::new(Registry::default().source(tools).assemble(&env)),
            pipeline: Arc::new(standard(&Settings::default())),
            place: Arc::new(place),
            host: host.clone(),
            agent: AgentPath::default(),
            mode: None,
        });
        Self { host, root, session, dispatcher, recorder, folder: None }
    }

    /// The same world with its kept outputs on the disk, as in the program itself.
    #[must_use]
    pub fn keeping_in(self, folder: &Path) -> Self {
        let outs = Arc::new(Outs::in_folder(folder, 1 << 32));
        let (judge, blobs) = ((*self.session.permissions()).clone(), Arc::default());
        let blobs: Arc<MemoryBlobs> = blobs;
        let session = Arc::new(Session::new("disk", self.recorder.clone(), blobs, outs, judge));
        // Set once, right here.
        drop(self.recorder.broker.set(session.questions.clone()));
        let dispatcher = Dispatcher { session: session.clone(), ..(*self.dispatcher).clone() };
        Self { session, dispatcher: Arc::new(dispatcher), ..self }
    }

    /// The folder on this machine that holds the workspace; none for other hosts.
    pub fn folder(&self) -> Option<std::path::PathBuf> {
        self.folder.as_ref().and_then(|folder| Some(folder.path().canonicalize().ok()?.join("w")))
    }

    /// Changes how much is asked.
    pub fn mode(&self, mode: Mode) {
        self.session.set_permissions(|judge| judge.mode = mode);
    }

    /// Adds a rule, as a person writes it: `Read(secret.txt)`.
    pub fn rule(&self, verdict: Verdict, text: &str) {
        let rules = Rules::default().with(verdict, Scope::User, text);
        self.session.set_permissions(|judge| judge.policy.extend(&rules));
    }

    /// Answers the next questions in this order; further ones as if nobody were there.
    pub fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        self.session.questions.set_somebody(true);
        locked(&self.recorder.answers).extend(replies);
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, input: Value) -> Outcome {
        self.call_until(tool, input, CancellationToken::new()).await
    }

    /// Calls a tool that is cancelled by `stop`.
    pub async fn call_until(&self, tool: &str, input: Value, stop: CancellationToken) -> Outcome {
        self.dispatcher.call(tool, input, stop).await.1
    }

    /// Takes changes back that are given oldest first, but for paths of which `forbids` says why
    /// not; gives what was done for it in the same order.
    ///
    /// # Errors
    /// See [`UndoError`].
    pub async fn take_back(
        &self,
        oldest_first: &[Receipt],
        force: bool,
        forbids: DenyFilter<'_>,
    ) -> Result<Vec<Receipt>, UndoError> {
        let newest_first: Vec<Receipt> = oldest_first.iter().rev().cloned().collect();
        let (queues, pre_images) = (&self.session.queues, self.session.pre_images());
        let undo = Undo { host: &*self.host, queues, pre_images, forbids };
        Ok(undo.take_back(&newest_first, force).await?.receipts)
    }

    /// Calls a tool with arguments as a model streamed them.
    pub async fn call_raw(&self, tool: &str, raw: &str) -> Outcome {
        let id = self.session.next_call();
        let request = ToolUse::from_wire(id, "w".into(), tool.to_owned(), raw.to_owned());
        self.dispatcher.run(request, TurnId::default(), CancellationToken::new()).await
    }

    /// The content of a file of the workspace; none when there is no such file.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub async fn read_bytes(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.root.join(path).map_err(io::Error::other)?;
        let at = self.host.fs().locate(&path, Follow::Yes).await?;
        if at.kind != FileKind::FILE {
            return Ok(None);
        }
        Ok(Some(self.host.fs().read(&at, 0, usize::MAX).await?.to_vec()))
    }

    /// Every file of the workspace with its content, folders with a slash at their end.
    ///
    /// # Errors
    /// When something cannot be read.
    pub async fn files(&self) -> io::Result<BTreeMap<String, Vec<u8>>> {
        let fs = self.host.fs();
        let mut found = BTreeMap::new();
        let mut open = vec![fs.locate(&self.root, Follow::Yes).await?];
        while let Some(folder) = open.pop() {
            let listing = fs.list(&folder, ListHow { limit: 10_000, stat: false }).await?;
            for entry in listing.entries {
                let at = fs.child(&folder, &entry.name, Follow::No).await?;
                let name = at.real.shown_from(&self.root).into_owned();
                match entry.kind {
                    EntryKind::Folder => {
                        found.insert(format!("{name}/"), Vec::new());
                        open.push(at);
                    }
                    EntryKind::File => {
                        found.insert(name, fs.read(&at, 0, usize::MAX).await?.to_vec());
                    }
                    _ => drop(found.insert(name, entry.target.unwrap_or_default())),
                }
            }
        }
        Ok(found)
    }
}
