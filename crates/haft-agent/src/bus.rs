//! The event bus: one stream of events into the log, into the conversation, and to every front end.
//!
//! **Invariant:** a durable event is in the log before anyone sees it, except on a lazy bus that
//! still holds it back ([`Bus::lazy`]). No front end loses one. The lock is held for at most one
//! short write of the log. Large values are stored before the lock is taken. Syncs to disk happen
//! without the lock, on a blocking thread. No event shows a known secret value.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_session::{Fold, Log, Packed, SessionError, Syncer};
use haft_text::secrets::Secrets;
use haft_tool::{Blobs, Events, RecordError, hide_in};
use haft_types::{AgentPath, Blob, Body, Event, EventId, Level, TurnId, VERSION};

use crate::feed::{Feed, Queue};

/// Milliseconds since the Unix epoch, read where reading the clock is allowed.
pub type Clock = fn() -> u64;

/// Most bytes of durable events, written as JSON, that a lazy bus holds back.
const HELD_MAX: usize = 1 << 20;
/// How long an event may be in the log without being synced.
const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// The event bus of a session. Cheap to clone.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

struct Inner {
    clock: Clock,
    blobs: haft_session::Blobs,
    format: haft_session::Format,
    syncer: Syncer,
    /// What no event shows.
    secrets: OnceLock<Arc<Secrets>>,
    state: Mutex<State>,
    /// Held while what waited is written: by one alone, and without the lock of the state.
    keeping: Mutex<()>,
    /// True while a sync is due.
    dirty: AtomicBool,
}

struct State {
    log: Log,
    folds: Vec<Weak<Mutex<Fold>>>,
    /// Durable events that wait for the first change; none once the log is written.
    held: Option<HeldBack>,
    feeds: Vec<Weak<Queue>>,
}

/// What a lazy bus holds back, oldest first, each with its bytes.
#[derive(Default)]
struct HeldBack {
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    /// True once something was left out because it could not be written.
    cut: bool,
}

impl Bus {
    /// Creates a bus over a session's log.
    pub fn new(log: Log, clock: Clock) -> Self {
        Self::with(log, clock, None)
    }

    /// Creates a bus that writes the log only once it is synced, which is before anything is
    /// changed.
    ///
    /// A session that only observes leaves no log on disk, unless it holds back too much. Then the
    /// log is written all the same. Where it cannot be written, the oldest events are left out.
    pub fn lazy(log: Log, clock: Clock) -> Self {
        Self::with(log, clock, Some(HeldBack::default()))
    }

    fn with(log: Log, clock: Clock, held: Option<HeldBack>) -> Self {
        let state = State { folds: Vec::new(), held, feeds: Vec::new(), log };
        let (blobs, syncer) = (state.log.blobs().clone(), state.log.syncer().clone());
        let format = state.log.format();
        let (state, dirty) = (Mutex::new(state), AtomicBool::new(false));
        let keeping = Mutex::new(());
        let secrets = OnceLock::new();
        Self(Arc::new(Inner { clock, blobs, format, syncer, secrets, state, keeping, dirty }))
    }

    /// Hides the values of these secrets in every later event; can be set once.
    pub fn hide(&self, secrets: Arc<Secrets>) {
        drop(self.0.secrets.set(secrets));
    }

    /// A text without the values of secrets, for what is told beside the events.
    pub fn hidden(&self, text: String) -> String {
        match self.0.secrets.get().map(|secrets| secrets.hide(&text)) {
            Some(Cow::Owned(hidden)) => hidden,
            _ => text,
        }
    }

    /// Subscribes a front end to every event from now on.
    pub fn subscribe(&self) -> Feed {
        let queue = Arc::new(Queue::default());
        self.state().feeds.push(Arc::downgrade(&queue));
        Feed::new(queue)
    }

    /// Keeps a conversation up to date from now on, as long as it is held elsewhere.
    pub fn follow(&self, fold: &Arc<Mutex<Fold>>) {
        self.state().folds.push(Arc::downgrade(fold));
    }

    /// Reports whether events are still held back, so that nothing is on disk; see
    /// [`lazy`](Self::lazy).
    pub fn is_held(&self) -> bool {
        self.state().held.is_some()
    }

    /// Writes the events that a lazy bus held back. From now on the log is written at once.
    ///
    /// # Errors
    /// When the log cannot be written; the events are still held back then.
    pub fn keep(&self) -> Result<(), RecordError> {
        if self.is_held() {
            self.write_held()?;
            self.sync_soon();
        }
        Ok(())
    }

    /// Writes what waited, in its order. What comes meanwhile waits behind it; large values go to
    /// the disk without the lock.
    fn write_held(&self) -> Result<(), RecordError> {
        let _alone = lock(&self.0.keeping);
        loop {
            let mut event = {
                let mut state = self.state();
                let Some(held) = &state.held else { return Ok(()) };
                let Some((event, _)) = held.events.front() else {
                    state.held = None;
                    return Ok(());
                };
                event.clone()
            };
            let packed = self.pack(&event)?;
            let mut state = self.state();
            self.keep_prints(&state)?;
            state.append(&mut event, &packed)?;
            state.held.as_mut().and_then(HeldBack::pop);
        }
    }

    /// Makes room where too much is held back.
    fn relieve(&self) {
        let Err(error) = self.keep() else { return };
        let _alone = lock(&self.0.keeping);
        let text = format!(
            "what is read leaves no full record: {error}\nEvents that stood here were left out."
        );
        let notice = Body::Notice { level: Level::Warning, text };
        let notice = self.event(&AgentPath::default(), TurnId::default(), notice);
        let mut state = self.state();
        if state.held.as_mut().is_some_and(|held| held.cut(&notice)) {
            state.show(&Arc::new(notice));
        }
    }

    /// The id of the last event in the log.
    pub fn leaf(&self) -> EventId {
        self.state().log.leaf()
    }

    /// Lets the conversation go on from an earlier event of the log: what follows is a branch of its
    /// own. Only for when no agent works.
    ///
    /// # Errors
    /// When the log has no such event, or cannot be written; then nothing has changed.
    pub fn rewind(&self, to: EventId, events: &[Event]) -> Result<(), RecordError> {
        self.keep()?;
        let from = self.leaf();
        self.state().log.set_leaf(to).map_err(|error| unkept(&error))?;
        let told = self.emit(&AgentPath::default(), TurnId::default(), Body::Rewound { from });
        let mut state = self.state();
        if told.is_err() {
            // It was the last one: it is there.
            drop(state.log.set_leaf(from));
            return told;
        }
        for fold in state.folds.iter().filter_map(Weak::upgrade) {
            lock(&fold).restart(haft_session::on_branch(events, to));
        }
        Ok(())
    }

    /// Shows an event without recording it, for what must be seen even when the log fails.
    pub fn broadcast(&self, agent: &AgentPath, turn: TurnId, body: Body) {
        let event = Arc::new(self.event(agent, turn, body));
        self.state().show(&event);
    }

    /// Records an event, or only shows it where the log fails; gives why it is not in the log.
    pub fn emit_or_show(&self, agent: &AgentPath, turn: TurnId, body: Body) -> Option<RecordError> {
        let error = self.emit(agent, turn, body.clone()).err()?;
        self.broadcast(agent, turn, body);
        Some(error)
    }

    /// Ends every feed once it has given its waiting events.
    pub fn close(&self) {
        for queue in self.state().feeds.drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }

    fn pack(&self, event: &Event) -> Result<Packed, RecordError> {
        let packed = match Packed::small(event, self.0.format).map_err(|error| unkept(&error))? {
            Some(packed) => Ok(packed),
            None => aside(|| Packed::new(event, &self.0.blobs, self.0.format)),
        };
        packed.map_err(|error| unkept(&error))
    }

    fn event(&self, agent: &AgentPath, turn: TurnId, mut body: Body) -> Event {
        if let Some(secrets) = self.0.secrets.get() {
            hide_in(secrets, &mut body);
        }
        let at = (self.0.clock)();
        Event { v: VERSION, id: None, parent: None, turn, agent: agent.clone(), at, body }
    }

    /// Keeps by what a later run knows the values again that events do not show, before the log has
    /// such an event.
    fn keep_prints(&self, state: &State) -> Result<(), RecordError> {
        let Some(secrets) = self.0.secrets.get() else { return Ok(()) };
        secrets.keep(|lines| state.log.keep_prints(lines)).map_err(|error| unkept(&error))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// Sees to it that the log is synced soon, where a runtime is there to do it.
    fn sync_soon(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.0.dirty.swap(true, Ordering::AcqRel) {
            return;
        }
        let bus = Arc::downgrade(&self.0);
        runtime.spawn(async move {
            tokio::time::sleep(SYNC_WITHIN).await;
            if let Some(inner) = bus.upgrade()
                && let Err(error) = Self(inner.clone()).sync().await
            {
                let notice = Body::Notice { level: Level::Error, text: error.to_string() };
                Self(inner).broadcast(&AgentPath::default(), TurnId::default(), notice);
            }
        });
    }
}

impl Events for Bus {
    fn emit(&self, agent: &AgentPath, turn: TurnId, body: Body) -> Result<(), RecordError> {
        let mut event = self.event(agent, turn, body);
        if !event.body.is_durable() {
            self.state().show(&Arc::new(event));
            return Ok(());
        }
        let mut state = self.state();
        // What is held back leaves nothing on disk, its large values neither.
        let full = if let Some(held) = &mut state.held {
            held.push(event.clone())
        } else {
            drop(state);
            let packed = self.pack(&event)?;
            state = self.state();
            self.keep_prints(&state)?;
            state.append(&mut event, &packed)?;
            self.sync_soon();
            false
        };
        state.fold(&event);
        state.show(&Arc::new(event));
        drop(state);
        if full {
            self.relieve();
        }
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        let inner = self.0.clone();
        async move {
            // Cleared first: what is appended meanwhile is due again.
            inner.dirty.store(false, Ordering::Release);
            if lock(&inner.state).held.is_none() && inner.syncer.is_done() {
                return Ok(());
            }
            let work = tokio::task::spawn_blocking(move || {
                let bus = Self(inner);
                bus.write_held()?;
                bus.0.syncer.sync().map_err(|error| unkept(&error))
            });
            work.await.unwrap_or_else(|error| Err(RecordError(error.to_string())))
        }
        .boxed()
    }

    fn sync_ahead(&self) {
        if !self.is_held()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let syncer = self.0.syncer.clone();
            // Whoever waits for it asks again, and gets the error.
            runtime.spawn_blocking(move || drop(syncer.sync()));
        }
    }
}

impl Blobs for Bus {
    fn put(&self, bytes: Bytes, mime: &str) -> io::Result<Blob> {
        self.0.blobs.put(&bytes, mime).map_err(io::Error::other)
    }

    fn get(&self, blob: &Blob) -> io::Result<Bytes> {
        self.0.blobs.get(blob).map(Bytes::from).map_err(io::Error::other)
    }
}

impl haft_llm::Blobs for Bus {
    fn load(&self, blob: &Blob) -> io::Result<Bytes> {
        self.get(blob)
    }
}

impl State {
    fn append(&mut self, event: &mut Event, packed: &Packed) -> Result<(), RecordError> {
        self.log.append_packed(event, packed).map(drop).map_err(|error| unkept(&error))
    }

    fn fold(&mut self, event: &Event) {
        self.folds.retain(|fold| {
            let Some(fold) = fold.upgrade() else { return false };
            lock(&fold).push(event);
            true
        });
    }

    fn show(&mut self, event: &Arc<Event>) {
        self.feeds.retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            queue.push(event);
            true
        });
    }
}

impl HeldBack {
    /// Holds an event; true when there is too much now.
    fn push(&mut self, event: Event) -> bool {
        let bytes = size(&event);
        self.bytes += bytes;
        self.events.push_back((event, bytes));
        self.bytes > HELD_MAX
    }

    fn pop(&mut self) -> Option<Event> {
        let (event, bytes) = self.events.pop_front()?;
        self.bytes -= bytes;
        Some(event)
    }

    /// Leaves out the oldest but the first, which says what session this is, until half of the
    /// room is free; `notice` stands there for all that ever was. True when it is the first time.
    fn cut(&mut self, notice: &Event) -> bool {
        let first_time = !std::mem::replace(&mut self.cut, true);
        let begin = self.pop();
        if !first_time {
            self.pop();
        }
        while self.bytes > HELD_MAX / 2 && self.pop().is_some() {}
        for event in [Some(notice.clone()), begin].into_iter().flatten() {
            let bytes = size(&event);
            self.bytes += bytes;
            self.events.push_front((event, bytes));
        }
        first_time
    }
}

/// Bytes of an event as JSON.
fn size(event: &Event) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written as JSON is refused by the log, with the reason.
    drop(serde_json::to_writer(&mut count, event));
    count.0
}

/// What could not be kept, as the tool layer knows it.
fn unkept(error: &SessionError) -> RecordError {
    RecordError(error.to_string())
}

/// Runs what writes files; what else the thread would run goes to another one meanwhile.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor::MultiThread};
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
