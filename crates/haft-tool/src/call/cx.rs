//! The context of a call: what a tool is given besides its arguments.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use haft_host::{FileKind, Host, Located, Spool, SpoolLimits, Tried};
use haft_types::{
    AgentPath, Blob, Body, CallId, Detail, Follow, Hash, HostPath, Mode, Outcome, Place, Stream,
    Text, ToolError, ToolUse, TurnId,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{net::DeclaredHosts, progress::Live, question_time::Asking};
use crate::{
    Conversation, Dispatcher, Permissions, RecordError, Room, Session, Stay, ToolSet,
    changes::recorder::Keeper,
    session::{
        network::{self, Network},
        state::SHELL_CWD,
    },
};

/// The context of a call. Cheap to clone.
///
/// It holds no settings: a tool gets those in its constructor. A tool never asks whether it may: that is
/// decided before it runs.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Cx {
    /// This call.
    pub call: CallId,
    /// The turn that it belongs to.
    pub turn: TurnId,
    /// The workspace, the home folder, and for a shell its carried working folder.
    pub place: Arc<Place>,
    /// The host to act on: gives exactly what the plan declared.
    pub host: Arc<dyn Host>,
    /// Cancelled when the call must end.
    pub stop: CancellationToken,
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// True for a call that another tool makes.
    pub(crate) nested: bool,
    /// True where the arguments do not stand in the answer as the tool gets them.
    pub(crate) wrapped: bool,
    /// True for a command that the person typed as such: that is their yes to it.
    pub(crate) typed: bool,
    /// True once the tool itself was started.
    pub(crate) begun: Arc<AtomicBool>,
    /// True where a question follows: what is made to be looked at is whole then.
    pub(crate) asked: bool,
    /// The time spent waiting for a person, with that of nested calls.
    pub(crate) asking: Asking,
    /// The time in which it only let time pass, with that of nested calls.
    pub(crate) resting: Asking,
    pub(crate) children: Arc<AtomicU64>,
    /// What waits to be shown.
    pub(crate) live: Live,
    /// Keeps what the files that the call changes held.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// What its programs tried of the network.
    pub(crate) tried: Arc<Mutex<Option<Tried>>>,
    /// The hosts that the tool may ask, once it runs.
    pub(crate) hosts: Option<Arc<DeclaredHosts>>,
}

/// What stands last in an error: what the system said, without the path and its number.
pub(crate) fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.rsplit(": ").next().unwrap_or_default().to_owned()
}

/// Why something was not changed: the log has no room for it.
fn unrecorded(error: &RecordError) -> ToolError {
    ToolError::new(error.to_string()).hint("Nothing was changed.")
}

impl Cx {
    pub(crate) fn new(
        dispatcher: Arc<Dispatcher>,
        call: CallId,
        turn: TurnId,
        stop: CancellationToken,
    ) -> Self {
        Self {
            call,
            turn,
            place: dispatcher.place.clone(),
            host: dispatcher.host.clone(),
            stop,
            dispatcher,
            nested: false,
            wrapped: false,
            typed: false,
            begun: Arc::default(),
            asked: false,
            asking: Asking::default(),
            resting: Asking::default(),
            children: Arc::default(),
            live: Live::default(),
            keeper: None,
            tried: Arc::default(),
            hosts: None,
        }
    }

    /// Records what a program of this call tried on the network, where the call's own host did not
    /// start that program.
    pub fn tries(&self, tried: Tried) {
        network::keep(&self.tried, tried);
    }

    /// Marks the program with this process id as a user of the session's network until the returned
    /// value is dropped.
    pub fn stays(&self, process: u32) -> Stay {
        self.session().map.get::<Network>().enter(process)
    }

    /// The agent that makes the call; empty for the main one.
    pub fn agent(&self) -> &AgentPath {
        &self.dispatcher.agent
    }

    /// State that all agents of the session share.
    pub fn session(&self) -> &Session {
        &self.dispatcher.session
    }

    /// The session's service of this type, usually `dyn Trait`; none where the session was built
    /// without one. See [`Services::required`](crate::Services::required) for an error that names
    /// it.
    pub fn service<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.session().services.get()
    }

    /// The permissions by which this call is judged.
    pub fn permissions(&self) -> Arc<Permissions> {
        let rules = &self.session().turn_rules;
        rules.applied(self.dispatcher.permissions(), self.agent(), self.turn)
    }

    /// State of this agent's conversation.
    pub fn conversation(&self) -> &Conversation {
        &self.dispatcher.conversation
    }

    /// The revision of the results that the model sees. While it is the same, the results of
    /// earlier calls are still in view.
    ///
    /// None where that is not known: over MCP, on the command line, and for a call that another
    /// tool makes.
    pub fn standing(&self) -> Option<u64> {
        if self.nested { None } else { self.conversation().standing() }
    }

    /// Reports whether another tool makes this call, and so gets its result without truncation.
    pub const fn is_nested(&self) -> bool {
        self.nested
    }

    /// Reports whether a person typed this call.
    pub const fn is_typed(&self) -> bool {
        self.typed
    }

    /// Reports whether a person will be asked about this call. They decide by what `check` gives,
    /// so nothing may be left out of it.
    pub const fn is_asked(&self) -> bool {
        self.asked
    }

    /// The room for a list in the data of this call; `chars` is the budget of its tool in
    /// characters.
    pub fn data_room(&self, chars: u64) -> Room {
        Room::new(chars, self.nested)
    }

    /// Reports whether the caller takes images, as far as is known. Other callers get text in their
    /// place.
    pub fn vision(&self) -> bool {
        self.dispatcher.tools.vision
    }

    /// The tools of this agent, those included that its model does not see yet.
    pub fn tools(&self) -> &ToolSet {
        &self.dispatcher.tools
    }

    /// Waits for `work`, which only lets time pass: it counts for the duration of the call, and for no
    /// timeout.
    ///
    /// # Cancel safety
    /// That of `work`.
    pub async fn rest<T>(&self, work: impl Future<Output = T>) -> T {
        let _open = self.resting.begin();
        work.await
    }

    /// The absolute path for a text that the model wrote.
    ///
    /// # Errors
    /// When the text holds a NUL byte or is longer than a path can be.
    pub fn path(&self, text: &str) -> Result<HostPath, ToolError> {
        self.place.path(text).map_err(|error| {
            ToolError::new(error.to_string()).hint("Mend the path, then call again.")
        })
    }

    /// Shows the current state of the call; each value replaces the one before.
    ///
    /// At most ten a second are shown, the last one always, of each at most 4 KiB.
    pub fn progress(&self, detail: impl Into<Detail>) {
        self.live.progress(self, detail.into());
    }

    /// Shows more of a running program's output. The text must be safe for a terminal.
    ///
    /// At most ten pieces a second are shown, of at most 16 KiB; what comes meanwhile is joined.
    #[expect(clippy::needless_pass_by_value, reason = "callers have no more use for it")]
    pub fn output(&self, stream: Stream, text: String) {
        self.live.output(self, stream, &text);
    }

    /// A passing event that could not be shown is lost on purpose: nothing depends on it.
    fn show(&self, body: Body) {
        drop(self.emit(body));
    }

    pub(crate) fn emit(&self, body: Body) -> Result<(), RecordError> {
        self.session().events.emit(self.agent(), self.turn, body)
    }

    /// A spool for output of unbounded size, stored under the call's `out://` address.
    pub fn spool(&self, limits: SpoolLimits) -> Spool {
        let most = self.session().output_max.unwrap_or(u64::MAX);
        let limits = SpoolLimits { file_cap: limits.file_cap.min(most), ..limits };
        Spool::within_room(limits, self.session().outs.create(&self.call).ok())
    }

    /// Stores bytes beside the log, such as an image for the model.
    ///
    /// # Errors
    /// When they cannot be written.
    pub async fn keep(&self, bytes: bytes::Bytes, mime: &str) -> Result<Blob, ToolError> {
        let (blobs, mime) = (self.session().blobs.clone(), mime.to_owned());
        // A slow disk holds no other call up.
        let kept = tokio::task::spawn_blocking(move || blobs.put(bytes, &mime)).await;
        let failed = |error: &dyn std::fmt::Display| {
            ToolError::new(format!("the result cannot be kept: {error}"))
        };
        match kept {
            Ok(kept) => kept.map_err(|error| failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Names who makes the file changes that are found after this call, which makes none itself.
    /// The answer names it, in these words.
    pub fn credit(&self, who: impl Into<String>) {
        if let Some(keeper) = &self.keeper {
            keeper.credit(who.into());
        }
    }

    /// Offers the content of a file that the call is about to change. It is stored for undo without
    /// another read.
    ///
    /// `whole` is the whole content of the file, and `hash` is its hash.
    pub fn offer_pre_image(&self, at: &Located, whole: &bytes::Bytes, hash: Hash) {
        if let Some(keeper) = &self.keeper {
            keeper.offer(at, Some(whole), hash);
        }
    }

    /// Offers the hash of a file that the call is about to move, so that it need not be read again.
    pub fn offer_hash(&self, at: &Located, hash: Hash) {
        if let Some(keeper) = &self.keeper {
            keeper.offer(at, None, hash);
        }
    }

    /// The hash of a located file of any size; it is read piece by piece.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn hash(&self, at: &Located) -> std::io::Result<Hash> {
        crate::changes::recorder::hash(self.host.fs(), at).await
    }

    /// Stores a value of the conversation across resume and fork; null removes it.
    pub fn remember(&self, key: impl Into<Text>, value: Value) {
        let key = key.into();
        if self.conversation().value(&key).as_ref() != Some(&value) {
            self.conversation().set(&key, value.clone());
            self.show(Body::State { key, value });
        }
    }

    /// As [`remember`](Self::remember), for what may not be lost.
    ///
    /// # Errors
    /// When the log cannot be written; then nothing has changed.
    pub fn record(&self, key: impl Into<Text>, value: Value) -> Result<(), ToolError> {
        let key = key.into();
        if self.conversation().value(&key).as_ref() != Some(&value) {
            let body = Body::State { key: key.clone(), value: value.clone() };
            self.emit(body).map_err(|error| unrecorded(&error))?;
            self.conversation().set(&key, value);
        }
        Ok(())
    }

    /// Changes one of the values that all agents of the session share, by what all of them are now.
    /// Their keys begin with [`SHARED`](crate::SHARED). No two changes are made at a time.
    ///
    /// # Errors
    /// Those of `change`, and when the log cannot be written; then nothing has changed.
    pub fn change_shared<T>(
        &self,
        change: impl FnOnce(&BTreeMap<String, Value>) -> Result<(String, Value, T), ToolError>,
    ) -> Result<T, ToolError> {
        let main = AgentPath::default();
        // The turns of other agents are not those of the main one, whose log keeps the value.
        let turn = if self.agent().is_main() { self.turn } else { TurnId::default() };
        self.session().shared.change(change, |key, value| {
            let body = Body::State { key: Text::from(key.to_owned()), value: value.clone() };
            self.session().events.emit(&main, turn, body).map_err(|error| unrecorded(&error))
        })
    }

    /// Sets the mode of the session, and shows it. `by` names what set it.
    ///
    /// # Errors
    /// When the log cannot be written; then the mode stays.
    pub fn set_mode(&self, mode: Mode, by: &str) -> Result<(), ToolError> {
        let body = Body::Mode { mode, edits: false, by: by.to_owned() };
        self.emit(body).map_err(|error| unrecorded(&error))?;
        self.session().set_permissions(|judge| (judge.mode, judge.grants.edits) = (mode, false));
        Ok(())
    }

    /// Stores the folder in which the next shell command starts.
    pub fn carry_cwd(&self, folder: &HostPath) {
        self.remember(SHELL_CWD, Value::String(folder.text().into_owned()));
    }

    /// Reports whether the folder in which the next shell command would start certainly no longer
    /// exists.
    pub async fn is_cwd_gone(&self) -> bool {
        let Some(cwd) = self.conversation().shell_cwd() else { return false };
        self.is_folder_gone(&cwd).await
    }

    /// Reports whether the folder in which a shell was to start certainly no longer exists.
    pub async fn is_folder_gone(&self, folder: &HostPath) -> bool {
        let (host, folder) = (self.dispatcher.host.clone(), folder.clone());
        let look = move || host.surveys().is_some_and(|surveys| surveys.is_gone(&folder));
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Why a shell could not enter a folder, in a few words; none where the folder no longer
    /// exists.
    pub async fn why_no_entry(&self, folder: &HostPath) -> Option<String> {
        // A path that no system call takes.
        const PATH_MAX: usize = 4096;
        if self.is_folder_gone(folder).await {
            return None;
        }
        if folder.as_bytes().len() >= PATH_MAX {
            return Some("File name too long".to_owned());
        }
        let text = match self.dispatcher.host.fs().locate(folder, Follow::Yes).await {
            Ok(at) if at.kind == FileKind::FOLDER => "Permission denied".to_owned(),
            Ok(_) => "Not a directory".to_owned(),
            Err(error) => cause(&error),
        };
        Some(text)
    }

    /// Finishes `work` even when this call is dropped meanwhile. A write must not be left half
    /// done, and its lock must not be released before it is done.
    ///
    /// # Errors
    /// When the work failed or panicked.
    pub async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
    ) -> Result<T, ToolError> {
        tokio::spawn(work).await.unwrap_or_else(|error| {
            Err(ToolError::new(format!("the tool broke down: {error}"))
                .hint("Check what it left behind before you call it again."))
        })
    }

    /// Calls another tool through the same stages. The outcome is whole: it is not cut to a budget.
    pub async fn call(&self, tool: &str, input: Value) -> Outcome {
        let id = self.call.child(self.children.fetch_add(1, Ordering::Relaxed) + 1);
        let request = ToolUse::new(id.clone(), tool, input);
        let cx = Self {
            nested: true,
            stop: self.stop.child_token(),
            asking: self.asking.clone(),
            resting: self.resting.clone(),
            ..Self::new(self.dispatcher.clone(), id, self.turn, self.stop.clone())
        };
        self.dispatcher.run_in(request, cx).await
    }
}
