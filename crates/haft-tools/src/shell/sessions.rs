//! Named shells that stay alive between calls.
//!
//! **Invariant:** one call at a time has a shell. Between calls its output is read, so that its
//! background processes are never blocked; only the newest part of that output is retained. No
//! shell outlives [`Shells::end`] or the table. Whoever drops a shell kills it with everything that
//! it started.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use futures::{StreamExt as _, future::join_all};
use haft_host::{Control, Exit, Output, Running};
use haft_text::clean::Cleaner;
use haft_types::{AgentPath, HostPath, ToolError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Shells that live at once where nothing else is said.
const MOST: usize = 8;
/// Bytes that are kept of what is said between two calls.
const KEPT: usize = 4 << 10;

/// How long it is looked at what runs in those that are to end.
const LOOK: Duration = Duration::from_millis(500);
/// Most processes of a background that are named.
const NAMED: usize = 5;
/// The line of the shell itself, among processes.
pub(crate) const SHELL: &str = "bash --noprofile --norc";

/// Bytes between two calls after which what prints them is slowed down.
const FLOOD: u64 = 16 << 20;
/// For how long at each piece.
const SLOW: Duration = Duration::from_millis(20);

/// The named shells of a session, in its [`map`](haft_tool::Session::map).
#[derive(Default)]
pub struct Shells {
    most: OnceLock<usize>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Those that were ever asked for; each agent has its own.
    named: BTreeMap<(AgentPath, String), Arc<ShellSlot>>,
    /// Those that live, by a number each.
    alive: BTreeMap<u64, (String, Option<Arc<dyn Control>>)>,
    last: u64,
    /// Why none can be used; unset while they can.
    refused: Option<String>,
}

/// The place of a shell: there may be none in it.
#[derive(Default)]
pub(crate) struct ShellSlot {
    /// What one call at a time has.
    pub(crate) seat: Arc<tokio::sync::Mutex<Seat>>,
}

/// A shell between two calls, and what is known of it.
#[derive(Default)]
pub(crate) struct Seat {
    idle: Option<Idle>,
    /// Why there is another shell than the call before had; unset where there is not.
    pub(crate) lost: Option<String>,
    /// Where the next command runs; none before the first.
    pub(crate) folder: Option<HostPath>,
    /// Whether the shell itself stands elsewhere.
    pub(crate) strayed: bool,
    /// The lines at which its commands began, as it counts.
    pub(crate) began: Vec<u64>,
    /// How many lines it has read.
    pub(crate) lines: u64,
    /// What ran in its background when the last call ended.
    pub(crate) beside: Vec<(u32, String)>,
    /// What was last said of options and traps that were set back.
    pub(crate) set_back: String,
    /// The exit code of the last command.
    pub(crate) code: i32,
}

/// A shell that runs.
pub(crate) struct Alive {
    pub(crate) running: Running,
    pub(crate) place: AlivePlace,
}

/// Counts a shell as living; dropped with it.
pub(crate) struct AlivePlace {
    shells: Weak<Shells>,
    number: u64,
}

/// What was said between two calls.
#[derive(Default)]
pub(crate) struct Between {
    kept: VecDeque<u8>,
    /// Bytes in all.
    pub(crate) bytes: u64,
    /// How the shell ended meanwhile; in words where that is not known.
    pub(crate) over: Option<Result<Exit, String>>,
}

impl Shells {
    /// Sets how many may live at once; the first time counts.
    pub fn limit(&self, most: usize) {
        self.most.get_or_init(|| most);
    }

    /// From here on none can be used, for this reason.
    pub fn refuse(&self, why: &str) {
        self.table().refused.get_or_insert_with(|| why.to_owned());
    }

    /// How many live.
    pub fn living(&self) -> usize {
        self.table().alive.len()
    }

    /// The shell of this name of an agent.
    ///
    /// # Errors
    /// When none can be used any more.
    pub(crate) fn named(&self, agent: &AgentPath, name: &str) -> Result<Arc<ShellSlot>, ToolError> {
        let mut table = self.table();
        if let Some(why) = &table.refused {
            return Err(ToolError::new(format!("there is no session {name}: {why}"))
                .hint("Nothing was run. Run it without session."));
        }
        let key = (agent.clone(), name.to_owned());
        Ok(Arc::clone(table.named.entry(key).or_default()))
    }

    /// Takes a place for one more that lives.
    ///
    /// # Errors
    /// When too many live, which it names.
    pub(crate) fn begin(self: &Arc<Self>, name: &str) -> Result<AlivePlace, ToolError> {
        let most = *self.most.get_or_init(|| MOST);
        let mut table = self.table();
        if table.alive.len() >= most {
            let named: Vec<&str> = table.alive.values().map(|(name, _)| name.as_str()).collect();
            return Err(ToolError::new(format!(
                "no more than {most} sessions may live at once, and so many do: {}",
                named.join(", ")
            ))
            .hint("Nothing was run. End one by running exit in it, or take one of these."));
        }
        table.last += 1;
        let number = table.last;
        table.alive.insert(number, (name.to_owned(), None));
        Ok(AlivePlace { shells: Arc::downgrade(self), number })
    }

    /// Stops all that live, all together; none can be used any more. Gives those in which something ran,
    /// each with that, in words.
    ///
    /// What does not end within this time is killed.
    pub async fn end(&self, within: Duration) -> Vec<String> {
        self.refuse("the session is ending");
        let (named, alive): (Vec<_>, Vec<_>) = {
            let table = self.table();
            let alive = table.alive.values();
            let alive = alive.filter_map(|(name, control)| Some((name.clone(), control.clone()?)));
            (table.named.values().cloned().collect(), alive.collect())
        };
        let busy = join_all(alive.iter().map(async |(name, control)| {
            let beside = control.beside().await;
            (!beside.is_empty()).then(|| format!("session {name} ({})", listed(&beside)))
        }));
        // Nothing runs longer for being looked at.
        let busy = tokio::time::timeout(LOOK, busy).await.unwrap_or_default();
        for (_, control) in &alive {
            control.stop();
        }
        let over = join_all(named.iter().map(async |named| {
            if let Some(idle) = named.seat.lock().await.idle.as_mut() {
                idle.over().await;
            }
        }));
        let _: Result<_, _> = tokio::time::timeout(within, over).await;
        self.table().named.clear();
        busy.into_iter().flatten().collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What runs in the background of a shell, by numbers and lines, as many as there is room for.
pub(crate) fn listed(beside: &[(u32, String)]) -> String {
    let one = |(id, line): &(u32, String)| {
        // A part of a command that runs in a shell of its own has the shell's line.
        let line = if line.trim() == SHELL { "a part of a command" } else { line.trim() };
        format!("{id} {}", haft_text::names::shown(line, 60))
    };
    let mut named: Vec<String> = beside.iter().take(NAMED).map(one).collect();
    if let Some(more) = beside.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

impl AlivePlace {
    /// Says how the shell is stopped.
    pub(crate) fn runs(&self, control: &Arc<dyn Control>) {
        if let Some(shells) = self.shells.upgrade()
            && let Some((_, known)) = shells.table().alive.get_mut(&self.number)
        {
            *known = Some(Arc::clone(control));
        }
    }
}

impl Drop for AlivePlace {
    fn drop(&mut self) {
        if let Some(shells) = self.shells.upgrade() {
            shells.table().alive.remove(&self.number);
        }
    }
}

impl Seat {
    /// Takes the shell for a call, with what was said since the last one; none where there is none.
    pub(crate) async fn take(&mut self) -> (Option<Alive>, Between) {
        match self.idle.take() {
            Some(idle) => idle.take().await,
            None => (None, Between::default()),
        }
    }

    /// Leaves the shell to itself until the next call.
    pub(crate) fn leave(&mut self, shell: Alive) {
        self.idle = Some(Idle::begin(shell));
    }
}

/// Reads what a shell says between two calls; dropped, it kills the shell.
struct Idle {
    task: JoinHandle<(Option<Alive>, Between)>,
    wanted: CancellationToken,
}

impl Idle {
    fn begin(shell: Alive) -> Self {
        let wanted = CancellationToken::new();
        let task = tokio::spawn(listen(shell, wanted.clone()));
        Self { task, wanted }
    }

    async fn take(mut self) -> (Option<Alive>, Between) {
        self.wanted.cancel();
        (&mut self.task).await.unwrap_or_default()
    }

    /// Waits until the shell has ended by itself.
    async fn over(&mut self) {
        let _: Result<_, _> = (&mut self.task).await;
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes in what is said until the shell is wanted, or has ended.
async fn listen(mut shell: Alive, wanted: CancellationToken) -> (Option<Alive>, Between) {
    let mut between = Between::default();
    loop {
        let next = tokio::select! {
            biased;
            () = wanted.cancelled() => return (Some(shell), between),
            next = shell.running.output.next() => next,
        };
        match next {
            Some(Ok(Output::Bytes(_, bytes))) => between.push(&bytes),
            Some(Ok(Output::Report(_))) => {}
            Some(Ok(Output::Exit(exit))) => {
                between.over = Some(Ok(exit));
                return (None, between);
            }
            Some(Err(error)) => {
                between.over = Some(Err(error.to_string()));
                return (None, between);
            }
            None => {
                between.over = Some(Err("its output ended".to_owned()));
                return (None, between);
            }
        }
        if between.bytes > FLOOD {
            // Nobody reads so much: it is slowed down rather than thrown away at full speed.
            tokio::time::sleep(SLOW).await;
        } else {
            // Output that never pauses would leave others no chance to run.
            tokio::task::yield_now().await;
        }
    }
}

impl Between {
    /// Adds what is said.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.kept.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT));
    }

    /// The end of what was said, clean.
    pub(crate) fn last_output(&self) -> String {
        let (first, second) = self.kept.as_slices();
        let (mut text, mut cleaner) = (String::new(), Cleaner::new());
        cleaner.push(&[first, second].concat(), &mut text);
        cleaner.finish(&mut text);
        text
    }
}
