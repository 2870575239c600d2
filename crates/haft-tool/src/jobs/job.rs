//! One job: what it is, its latest output, and how it ended.
//!
//! **Invariant:** only the newest output is held, always in whole characters. An unfinished line is
//! not covered by any mark: it may still change, and is returned again each time.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_host::Tried;
use haft_types::{AgentPath, Body, CallId, JobEnd, TurnId};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    echo::Echo,
    line_search::{Feed, Piece, Seeking, Test},
};

/// Lines and characters of the end of its output that a report holds.
const LAST_LINES: usize = 10;
const LAST_CHARS: usize = 1_000;
/// Most bytes of a line that are shown once more, or left out, so that what is shown begins with one.
const PART: usize = 4 << 10;
/// Characters of a title where it is only named.
const NAME: usize = 60;

/// The work behind a job: a command, later also an agent or a watcher.
pub trait Work: Send + Sync {
    /// Sends bytes to its input, as they are.
    ///
    /// # Errors
    /// When nobody reads the input any more, or the work has none.
    fn input(&self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>>;
    /// Bytes that were sent to its input and not read yet; none where that is not known.
    fn untaken(&self) -> Option<usize> {
        None
    }
    /// Closes its input.
    fn end_input(&self);
    /// Stops it, with time to clean up. Its end is reported by the future that follows it.
    fn stop(&self);
    /// Messages about it at this moment besides its output, each given once.
    fn tell(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Its process id on its host; none where it is no process.
    fn process(&self) -> Option<u32> {
        None
    }
    /// What it has tried on the network so far; none where nothing confines it.
    fn tried(&self) -> BoxFuture<'_, Option<Tried>> {
        Box::pin(std::future::ready(None))
    }
    /// Reports whether its output echoes its input, as a terminal does.
    fn echoes(&self) -> bool {
        false
    }
}

/// Takes the events of a job.
pub(super) type Tell = Box<dyn Fn(&AgentPath, TurnId, Body) + Send + Sync>;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether it ended by itself.
    pub how: JobEnd,
    /// Its exit code, where it had one.
    pub exit: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// The end in words: `exit code 1`, `stopped`.
    pub words: String,
    /// Further messages, such as which output is not stored.
    pub notes: Vec<String>,
    /// The address of its output, as far as that is stored; none where it printed nothing.
    pub address: Option<String>,
    /// What it tried on the network; none where nothing confined it. Its session words the report.
    pub tried: Option<Tried>,
    /// When it ended.
    pub at: Instant,
}

/// What is said of work that was told to end and did not.
const KILLED: &str = "killed: it did not end when it was stopped";

impl Ended {
    /// The end of a job that was told to stop, did not, and was killed.
    pub fn killed() -> Self {
        Self::new(JobEnd::Stopped, KILLED)
    }

    /// An end at this moment, in words.
    pub fn new(how: JobEnd, words: impl Into<String>) -> Self {
        let (words, at) = (words.into(), Instant::now());
        let (exit, signal, notes, address, tried) = Default::default();
        Self { how, exit, signal, words, notes, address, tried, at }
    }
}

/// A part of a job's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPart {
    /// Where it begins, in bytes of the cleaned output. This is the start of the line in which it
    /// was requested, or of the next line where that is not held any more.
    pub from: u64,
    /// Where it ends: the mark for the next request.
    pub next: u64,
    /// Whole lines; the very last line of the output may lack its end.
    pub text: String,
    /// The unfinished line.
    pub open: String,
}

/// A job: its identity, its newest output and its end.
pub struct Job {
    id: String,
    call: CallId,
    agent: AgentPath,
    turn: TurnId,
    title: String,
    began: Instant,
    /// Nothing once it has ended, so that what it holds open is let go of.
    work: Mutex<Arc<dyn Work>>,
    stopping: CancellationToken,
    state: Mutex<State>,
    end: watch::Sender<Option<Ended>>,
    tell: Tell,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
struct State {
    recent: Recent,
    open: String,
    /// Bytes of the output as it came.
    bytes: u64,
    /// Whether some of them are kept nowhere.
    lossy: bool,
    /// True from an input on until something came.
    stale: bool,
    /// Whether its input was ended.
    input_over: bool,
    told: bool,
    echo: Echo,
    watches: Vec<Feed>,
}

impl Job {
    pub(super) fn new(
        id: String,
        (call, agent, turn): (CallId, AgentPath, TurnId),
        title: String,
        memory: usize,
        work: Arc<dyn Work>,
        tell: Tell,
    ) -> Self {
        let state =
            State { recent: Recent { cap: memory, ..Recent::default() }, ..State::default() };
        Self {
            id,
            call,
            agent,
            turn,
            title,
            began: Instant::now(),
            work: Mutex::new(work),
            stopping: CancellationToken::new(),
            state: Mutex::new(state),
            end: watch::channel(None).0,
            tell,
        }
    }

    /// It began so long ago.
    pub(super) fn running_for(self, time: Duration) -> Self {
        Self { began: self.began.checked_sub(time).unwrap_or(self.began), ..self }
    }

    /// One that ended before.
    pub(super) fn over(
        id: &str,
        names: (CallId, AgentPath, TurnId),
        title: String,
        ended: Ended,
    ) -> Self {
        let tell: Tell = Box::new(|_, _, _| {});
        let job = Self {
            began: ended.at,
            ..Self::new(id.into(), names, title, 0, Arc::new(NoControl), tell)
        };
        job.end.send_replace(Some(ended));
        job
    }

    /// Reports whether an earlier run of the session began it. Of its output only the stored part
    /// is known.
    pub fn is_past(&self) -> bool {
        self.end().is_some_and(|ended| ended.at == self.began)
    }

    /// Its name: `j1`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The call that began it.
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// The agent of that call.
    pub const fn agent(&self) -> &AgentPath {
        &self.agent
    }

    /// The turn of that call.
    pub(crate) const fn turn(&self) -> TurnId {
        self.turn
    }

    /// What it does, in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its name with what it does.
    pub fn named(&self) -> String {
        let short: String = self.title.chars().take(NAME).collect();
        let more = if short.len() < self.title.len() { "..." } else { "" };
        format!("{} ({short}{more})", self.id)
    }

    /// How long it ran, or has been running.
    pub fn lasted(&self) -> Duration {
        let until = self.end().map_or_else(Instant::now, |ended| ended.at);
        until.duration_since(self.began)
    }

    /// How it ended; none while it runs.
    pub fn end(&self) -> Option<Ended> {
        self.end.borrow().clone()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Ended {
        let mut end = self.end.subscribe();
        let ended = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        match ended {
            Some(ended) => ended,
            // The sender is held here, so this is never reached.
            None => std::future::pending().await,
        }
    }

    /// Tells how it ended; the first time counts.
    pub(super) fn finish(&self, ended: Ended) {
        let (end, exit, job) = (ended.how, ended.exit, self.id.clone());
        let first = self.end.send_if_modified(|now| {
            let first = now.is_none();
            if first {
                *now = Some(ended);
            }
            first
        });
        if first {
            *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(NoControl);
            self.state().watches.clear();
            (self.tell)(&self.agent, self.turn, Body::JobEnded { job, end, exit });
        }
    }

    /// Adds whole lines to its output; the last piece of all may lack a line end. `open` is the
    /// next line as far as it has come.
    pub fn push(&self, text: &str, open: &str) {
        let mut state = self.state();
        state.stale = false;
        let at = state.recent.end();
        state.echo.came(at, text);
        state.recent.push(text);
        state.open.clear();
        state.open.push_str(open);
        let mut watches = std::mem::take(&mut state.watches);
        let piece = |text: &str, echoes| Piece { text: text.to_owned(), echoes };
        watches.retain(|watch| {
            let open = piece(open, state.echo.in_open(open));
            watch.push(piece(text, state.echo.within(at, text)), open)
        });
        state.watches = watches;
    }

    /// Sets the number of bytes of its raw output so far. Cleaning makes fewer or more of them.
    pub fn came(&self, bytes: u64) {
        self.state().bytes = bytes;
    }

    /// The number of bytes of its raw output so far.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Records that not all of its output is stored.
    pub fn loses(&self) {
        self.state().lossy = true;
    }

    /// Reports whether some of its output is stored nowhere.
    pub fn is_lossy(&self) -> bool {
        self.state().lossy
    }

    /// Where all that it said is found, in a sentence; none of one that said nothing.
    pub(super) fn place(&self, ended: &Ended) -> Option<String> {
        match &ended.address {
            Some(address) if self.is_lossy() => {
                Some(format!("What is kept of what it said: {address}."))
            }
            Some(address) => Some(format!("All that it said: {address}.")),
            None => (self.bytes() > 0).then(|| "Nothing that it said is kept.".to_owned()),
        }
    }

    /// Its output from a mark on, as far as it is held in memory.
    pub fn since(&self, mark: u64) -> OutputPart {
        let state = self.state();
        let (from, text) = state.recent.lines_since(mark);
        let (text, next) = (text.to_owned(), state.recent.end());
        OutputPart { from, next, text, open: state.open.clone() }
    }

    /// The mark at the end of its output.
    pub fn mark(&self) -> u64 {
        self.state().recent.end()
    }

    /// Searches its output from a mark on for a line that matches `test`, including output that
    /// still comes.
    ///
    /// An unfinished line counts as far as it has come, unless input was sent since. Input that a
    /// terminal echoes never counts.
    ///
    /// # Errors
    /// When the system gives no thread for it.
    pub fn watch(&self, mark: u64, test: Test) -> io::Result<Seeking> {
        let (feed, seeking) = Seeking::begin(test)?;
        let mut state = self.state();
        let open = if state.stale { "" } else { &*state.open };
        let (from, held) = state.recent.since(mark);
        let piece = |text: &str, echoes| Piece { text: text.to_owned(), echoes };
        let held = piece(held, state.echo.within(from, held));
        feed.push(held, piece(open, state.echo.in_open(open)));
        // One that has ended says nothing more.
        if self.end.borrow().is_none() {
            state.watches.push(feed);
        }
        Ok(seeking)
    }

    /// Sends bytes to its input, as they are.
    ///
    /// # Errors
    /// When nobody reads the input any more, or the job has none.
    pub async fn input(&self, bytes: Bytes) -> io::Result<()> {
        {
            let state = &mut *self.state();
            state.stale = true;
            if self.work().echoes() {
                state.echo.typed(&bytes, &state.open);
            }
        }
        self.work().input(bytes).await
    }

    /// Bytes that were sent to its input and not read yet; none where that is not known.
    pub fn untaken(&self) -> Option<usize> {
        self.work().untaken()
    }

    /// Closes its input.
    pub fn end_input(&self) {
        self.state().input_over = true;
        self.work().end_input();
    }

    /// Reports whether its input was closed.
    pub fn is_input_over(&self) -> bool {
        self.state().input_over
    }

    /// Stops it, with time to clean up.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.work().stop();
    }

    /// Takes the messages about it besides its output; each is given once.
    pub async fn take_notices(&self) -> Vec<String> {
        let work = self.work();
        work.tell().await
    }

    /// Its process id on its host; none where it is no process, or has ended.
    pub fn process(&self) -> Option<u32> {
        self.work().process()
    }

    /// Why other commands cannot reach what it serves at 127.0.0.1, and what to do; none where they
    /// can.
    pub async fn apart(&self) -> Option<String> {
        let work = self.work();
        work.tried().await.as_ref().and_then(crate::session::network::apart)
    }

    fn work(&self) -> Arc<dyn Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cancelled once the job is to end.
    pub const fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Records that the model of its agent knows how it ended.
    pub fn mark_seen(&self) {
        self.state().told = true;
    }

    pub(super) fn is_told(&self) -> bool {
        self.state().told
    }

    /// A report of how it ended, with the last lines of its output.
    pub fn report(&self) -> String {
        let Some(ended) = self.end() else { return format!("The job {} runs.", self.named()) };
        let took = self.lasted().as_secs();
        let mut text =
            format!("The job {} of {} has ended: {}", self.named(), self.call, ended.words);
        // Writing into a string cannot fail.
        if self.began < ended.at {
            let _ = write!(text, ", after {took} s");
        }
        text.push('.');
        for note in &ended.notes {
            text.push(' ');
            text.push_str(&sentence(note));
        }
        text.extend(self.place(&ended).map(|place| format!(" {place}")));
        let said = self.since(0);
        let last = last_lines(&said.text);
        if !last.is_empty() {
            text.push_str(" Its last lines:");
            for line in last {
                text.extend(["\n| ", &line]);
            }
        }
        text
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A note as a sentence among others.
fn sentence(note: &str) -> String {
    let mut rest = note.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    let end = if note.ends_with('.') { "" } else { "." };
    first.chain(rest).chain(end.chars()).collect()
}

/// The last lines of a text, as many as a report has room for.
fn last_lines(text: &str) -> Vec<String> {
    let (mut kept, mut room) = (VecDeque::new(), LAST_CHARS);
    for line in text.lines().rev().take(LAST_LINES) {
        if room == 0 {
            break;
        }
        let short: String = line.chars().take(room).collect();
        let more = if short.len() < line.len() { "..." } else { "" };
        room -= short.chars().count().clamp(1, room);
        kept.push_front(format!("{short}{more}"));
    }
    kept.into()
}

/// The newest of a text that grows without end.
#[derive(Default)]
struct Recent {
    text: String,
    /// Bytes before `text`.
    start: u64,
    /// Whether it begins within a line.
    is_broken: bool,
    cap: usize,
}

impl Recent {
    fn push(&mut self, text: &str) {
        if text.len() >= self.cap {
            let from = text.ceil_char_boundary(text.len() - self.cap);
            let dropped = text[..from].bytes().last().or_else(|| self.text.bytes().last());
            self.is_broken = dropped.map_or(self.is_broken, |last| last != b'\n');
            self.start += (self.text.len() + from) as u64;
            self.text.clear();
            self.text.push_str(&text[from..]);
            return;
        }
        self.text.push_str(text);
        // Cutting only a quarter too late makes the moving of bytes linear in all that came.
        if self.text.len() > self.cap + self.cap / 4 {
            let from = self.text.ceil_char_boundary(self.text.len() - self.cap);
            self.start += from as u64;
            self.is_broken = !self.text[..from].ends_with('\n');
            self.text.drain(..from);
        }
    }

    const fn end(&self) -> u64 {
        self.start + self.text.len() as u64
    }

    /// What is held from a mark on, and where that begins.
    fn since(&self, mark: u64) -> (u64, &str) {
        let skipped = usize::try_from(mark.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let from = self.text.ceil_char_boundary(skipped.min(self.text.len()));
        (self.start + from as u64, &self.text[from..])
    }

    /// The same from the begin of a line on: that of the mark, or the next one where that is not held
    /// any more. A line that is longer than [`PART`] to there may begin anywhere.
    fn lines_since(&self, mark: u64) -> (u64, &str) {
        let (_, text) = self.since(mark);
        let at = self.text.len() - text.len();
        let before = self.text[..at].rfind('\n').map(|end| end + 1);
        let start = match before.or(Some(0).filter(|_| !self.is_broken)) {
            Some(start) if at - start <= PART => start,
            None if at == 0 => text.find('\n').filter(|end| *end <= PART).map_or(0, |end| end + 1),
            _ => at,
        };
        (self.start + start as u64, &self.text[start..])
    }
}

/// Nothing any more.
struct NoControl;

impl Work for NoControl {
    fn input(&self, _: Bytes) -> BoxFuture<'_, io::Result<()>> {
        std::future::ready(Err(io::ErrorKind::BrokenPipe.into())).boxed()
    }
    fn end_input(&self) {}
    fn stop(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_held_and_marks_stay_what_they_are() {
        let (mut recent, mut all) = (Recent { cap: 100, ..Recent::default() }, String::new());
        for n in 0..1_000 {
            let line = format!("日本 {n}\n").repeat(n % 7);
            let mark = recent.end();
            recent.push(&line);
            all.push_str(&line);
            assert!(recent.text.len() <= 125, "{}", recent.text.len());
            assert_eq!(recent.end(), all.len() as u64);
            for mark in [0, mark, mark + 1, recent.end(), recent.end() + 9] {
                let (from, text) = recent.since(mark);
                assert!(from >= mark.min(recent.end()));
                assert_eq!(text, &all[usize::try_from(from).unwrap()..]);
            }
        }
        recent.push(&"x".repeat(1_000));
        assert_eq!(recent.since(0).1.len(), 100);
    }

    #[test]
    fn what_is_shown_begins_with_a_line() {
        let mut recent = Recent { cap: 20, ..Recent::default() };
        recent.push("first\nsecond\n");
        for (mark, want) in [
            (0, "first\nsecond\n"),
            (3, "first\nsecond\n"),
            (6, "second\n"),
            (9, "second\n"),
            (13, ""),
        ] {
            assert_eq!(recent.lines_since(mark).1, want, "{mark}");
        }
        recent.push("third line\nend\n");
        assert_eq!(recent.since(0), (8, "cond\nthird line\nend\n"));
        for mark in [0, 8] {
            assert_eq!(recent.lines_since(mark), (13, "third line\nend\n"), "{mark}");
        }
        assert_eq!(recent.lines_since(15), (13, "third line\nend\n"));
        // Of one that does not end, nothing is shown twice.
        let mut recent = Recent { cap: 9_000, ..Recent::default() };
        recent.push(&"x".repeat(8_000));
        let mark = recent.end();
        recent.push("yz");
        assert_eq!(recent.lines_since(mark), (mark, "yz"));
    }

    #[test]
    fn the_last_lines_are_short_whatever_they_are() {
        assert!(last_lines("").is_empty());
        assert_eq!(last_lines("a\nb\n"), ["a", "b"]);
        assert_eq!(last_lines(&"x\n".repeat(99)).len(), LAST_LINES);
        let long = last_lines(&format!("first\n{}\nlast\n", "é".repeat(5_000)));
        assert_eq!(long.len(), 2, "{long:?}");
        assert!(long[0].ends_with("é...") && long[0].chars().count() < LAST_CHARS);
        assert_eq!(long[1], "last");
    }
}
