//! Commands of a named shell, which stays alive between calls.
//!
//! **Invariant:** the answer to a call belongs to its command: the exit code comes from the shell's
//! own record of it, and the output comes before that record. Whatever a command does to the shell,
//! the next one runs: in the same shell, or in a new one, which is reported. Once a call is stopped
//! or dropped, nothing of its shell goes on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::FutureExt as _;
use haft_host::{
    Control, Exit, Program, SessionCommand, Spawn, Stdin, Tried, TurnPart, TurnRecord, TurnRecords,
};
use haft_tool::Cx;
use haft_types::{HostPath, Outcome, Status, ToolError};
use tokio::{
    sync::OwnedMutexGuard,
    time::{Instant, timeout},
};

use super::{
    End, Followed, Input, Limits, Ran, answer, exit_codes, failed, follow, process, root,
    sessions::{Alive, Between, SHELL, Seat, Shells, listed},
};
use crate::search::quoted;

/// At how many looks in a row nothing came of a shell that has read all that it was given, until it is
/// held for deaf: what says that it is done was written before the last of that was read. Looks and
/// not a time: between two of them output is taken in, also by a haft that is held up itself.
const QUIET: u32 = 15;
/// How long it may take where something goes on printing: a busy haft may still be reading what the
/// command has printed.
const DEAF: Duration = Duration::from_secs(30);
/// How often it is looked at whether it has.
const LOOK: Duration = Duration::from_millis(200);
/// Longest name.
const NAME: usize = 32;
/// Characters that are shown of what was said between two calls.
const BETWEEN: usize = 1_000;
/// The key under which it is remembered which shells there were, for the next run of a session.
const KEY: &str = "bash.sessions";
/// The key under which it is remembered where they stood, but for those in the workspace root.
const FOLDERS: &str = "bash.session_folders";

/// The session that was asked for.
pub(super) fn asked(input: &Input) -> Option<&str> {
    input.session.as_deref().map(str::trim).filter(|name| !name.is_empty())
}

/// Refuses what a call of a session cannot have.
pub(super) fn check(input: &Input, name: &str) -> Result<(), ToolError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if name.len() > NAME || !name.bytes().all(plain) {
        let shown = haft_text::names::shown(name, 60);
        return Err(ToolError::new(format!("session {shown:?} is no name that one can have"))
            .hint(format!("Take 1 to {NAME} letters, digits, - and _, such as build.")));
    }
    let not = |what: &str, hint: &str| {
        Err(ToolError::new(format!("{what} does not go with session")).hint(hint.to_owned()))
    };
    if input.run_in_background.unwrap_or_default() {
        return not(
            "run_in_background",
            "Leave one of them out: a job is no part of a session; in a session a command may end \
             with &.",
        );
    }
    if input.pty.unwrap_or_default() {
        return not("pty", "Leave one of them out.");
    }
    if input.cwd.as_deref().is_some_and(|cwd| !cwd.is_empty()) {
        return not(
            "cwd",
            "A session stands where its last command left it: put cd into the command.",
        );
    }
    Ok(())
}

/// What a shell said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It waits for the command.
    Placed,
    /// The command has ended, with this exit code.
    Ended(i32),
}

/// What a shell says of itself behind a command.
struct Ended {
    code: i32,
    options: Vec<String>,
    traps: Vec<String>,
    folder: Option<HostPath>,
}

/// Follows the turn of a shell.
pub(super) struct Watch {
    turn: SessionCommand,
    /// Where commands of the shell began, as it counts lines; this one is the last.
    pub(super) began: Vec<u64>,
    records: TurnRecords,
    /// Whether the command began, and where.
    begun: bool,
    at: Option<HostPath>,
    ended: Option<Ended>,
    /// Since when all that the shell was given is taken.
    taken: Option<Instant>,
    /// At how many looks since then nothing came of it.
    quiet: u32,
    /// What was printed before the command began.
    between: Between,
    /// What ran beside the shell when it was stopped.
    pub(super) beside: Vec<(u32, String)>,
}

impl Watch {
    fn new(turn: SessionCommand, began: Vec<u64>, between: Between) -> Self {
        let (records, at, ended, taken, beside) = Default::default();
        Self { turn, began, records, begun: false, at, ended, taken, quiet: 0, between, beside }
    }

    /// Takes a report in, and says what follows from it.
    pub(super) fn takes(&mut self, report: &[u8]) -> Option<Heard> {
        let mut heard = None;
        for record in self.records.push(report, &self.turn) {
            match record {
                TurnRecord::Placed(_) if self.begun => {}
                TurnRecord::Placed(folder) => {
                    (self.begun, self.at, self.taken, self.quiet) = (true, folder, None, 0);
                    heard = Some(Heard::Placed);
                }
                TurnRecord::Ended { code, options, traps, folder } => {
                    self.ended = Some(Ended { code, options, traps, folder });
                    heard = Some(Heard::Ended(code));
                }
            }
        }
        heard
    }

    /// Gives the command to the shell, which waits for it.
    pub(super) async fn give(&self, shell: &dyn Control, cx: &Cx) -> std::io::Result<()> {
        match cx.host.shell() {
            Some(host) => host.give(shell, &self.turn, TurnPart::Command).await,
            None => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// Keeps output that came before the command began: it is none of its own.
    pub(super) fn keeps(&mut self, bytes: &[u8]) -> bool {
        self.quiet = 0;
        if !self.begun {
            self.between.push(bytes);
        }
        !self.begun
    }

    /// Reports whether the shell took in all that it was given, and does nothing of it: options,
    /// functions or traps of the command keep it from that.
    pub(super) fn is_deaf(&mut self, untaken: Option<usize>) -> bool {
        if untaken != Some(0) {
            (self.taken, self.quiet) = (None, 0);
            return false;
        }
        let since = *self.taken.get_or_insert_with(Instant::now);
        self.quiet += 1;
        self.quiet > QUIET || since.elapsed() >= DEAF
    }

    /// How long it may take yet at the end of its time to be found to do nothing of what it took in;
    /// nothing where it may still be running its command.
    pub(super) fn may_be_deaf(&mut self, untaken: Option<usize>) -> Option<Duration> {
        let is_taken = self.begun && untaken == Some(0);
        is_taken.then(|| DEAF.saturating_sub(self.taken.get_or_insert_with(Instant::now).elapsed()))
    }

    /// When that is looked at next.
    pub(super) fn look() -> Instant {
        Instant::now() + LOOK
    }
}

/// Runs a command in the shell of this name.
pub(super) async fn run(
    input: &Input,
    name: &str,
    limit: Duration,
    cx: &Cx,
    notes: &mut Vec<String>,
) -> Result<Ran, Outcome> {
    let shells = cx.session().map.get::<Shells>();
    let mut seat = seat(&shells, name, limit, cx).await?;
    let (shell, between) = seat.take().await;
    if let Some(over) = &between.over {
        seat.lose(&ended(over));
    }
    let mut call = Call { input, name, cx, shells: &shells, limit };
    let mut done = Box::pin(call.turn(&mut seat, shell, between, notes)).await?;
    // It ended before it came to the command, or did not hear of it.
    if !done.watch.begun && is_over(&done.ran.end) {
        seat.lose("the one before did not take the command in");
        done = Box::pin(call.turn(&mut seat, None, done.watch.between, notes)).await?;
    }
    let Done { ran, shell, mut watch, at_start } = done;
    notes.extend(said(name, &watch.between, at_start));
    if let (Some(at), Some(wanted)) = (watch.at.take(), &seat.folder)
        && at != *wanted
        && at == *root(&cx.place)
    {
        let shown = quoted(&wanted.shown_from(&at));
        let why = match cx.why_no_entry(wanted).await {
            Some(why) => format!("cannot be entered ({why}):"),
            None => "is gone;".to_owned(),
        };
        notes.push(format!("[the folder {shown} {why} this ran in the workspace root]"));
        seat.folder = Some(at);
    }
    match shell {
        Some(shell) => {
            seat.lost = None;
            (seat.lines, seat.began) = (watch.turn.lines(), watch.began);
            if let Some(Ended { code, options, traps, folder }) = watch.ended.take() {
                seat.code = code;
                notes.extend(seat.set_back(options, traps));
                notes.extend(seat.stands(name, folder, cx));
                remember(name, seat.folder.as_ref().unwrap_or_else(|| root(&cx.place)), cx);
            }
            let beside = shell.running.control.beside().await;
            notes.extend(seat.background(name, &input.command, beside));
            notes.extend(answer::put_back(&shell.running.control.put_back().await));
            seat.leave(shell);
        }
        None => notes.extend(seat.ends(name, &ran.end, &watch.beside)),
    }
    Ok(ran)
}

/// Waits for the shell while another call has it.
async fn seat(
    shells: &Arc<Shells>,
    name: &str,
    limit: Duration,
    cx: &Cx,
) -> Result<OwnedMutexGuard<Seat>, Outcome> {
    let named = shells.named(cx.agent(), name)?;
    let free = Arc::clone(&named.seat).lock_owned();
    tokio::select! {
        biased;
        () = cx.stop.cancelled() => Err(Outcome::ended(
            Status::Cancelled,
            format!("cancelled before it ran: another command of session {name} was running"),
        )),
        waited = timeout(limit, free) => waited.map_err(|_| Outcome::ended(
            Status::TimedOut,
            format!(
                "nothing was run: another command of session {name} runs, for longer than the {} s \
                 that this one had; call again later, or take another session",
                limit.as_secs_f64()
            ),
        )),
    }
}

/// Reports whether a shell came to its end without being told to.
const fn is_over(end: &End) -> bool {
    matches!(end, End::Exited(_) | End::Lost(_) | End::Deaf)
}

/// What became of a turn.
struct Done {
    ran: Ran,
    /// The shell, where it lives on.
    shell: Option<Alive>,
    watch: Watch,
    /// Whether what was printed before the command came of the start of its shell.
    at_start: bool,
}

/// What a call runs its command with.
struct Call<'a> {
    input: &'a Input,
    name: &'a str,
    cx: &'a Cx,
    shells: &'a Arc<Shells>,
    limit: Duration,
}

impl Call<'_> {
    /// Gives the shell its command and follows it to the end of one of them; without a shell there
    /// is a new one.
    async fn turn(
        &mut self,
        seat: &mut Seat,
        shell: Option<Alive>,
        between: Between,
        notes: &mut Vec<String>,
    ) -> Result<Done, Outcome> {
        let (cx, is_new) = (self.cx, shell.is_none());
        let at_start = is_new && between.bytes == 0;
        let shell = match shell {
            Some(shell) => shell,
            None => self.start(seat, notes).await?,
        };
        let root = root(&cx.place);
        let folder = seat.folder.get_or_insert_with(|| cx.place.cwd.clone()).clone();
        let goes = (is_new || seat.strayed).then_some(folder);
        let turn = SessionCommand::new(self.input.command.clone(), goes, root.clone(), seat.lines);
        let turn = turn.behind(seat.code);
        let control = Arc::clone(&shell.running.control);
        let given = cx.host.shell().map(|host| host.give(&*control, &turn, TurnPart::Place));
        match given.unwrap_or_else(|| std::future::ready(Ok(())).boxed()).await {
            Ok(()) => {}
            // Its input is closed: it has ended, and its output says how.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(error) => {
                seat.leave(shell);
                return Err(failed(&self.input.command, &error).into());
            }
        }
        // What is dropped from here on takes the shell with it.
        let (began, lost) = (std::mem::take(&mut seat.began), seat.lost.take());
        seat.lost = Some("the call before was given up, and the shell stopped with it".to_owned());
        let began = began.into_iter().chain([turn.line()]).collect();
        let mut watch = Watch::new(turn, began, between);
        let deadline = Instant::now() + self.limit;
        let Alive { running, place } = shell;
        let (before, stay) = (control.tried().await, cx.stays(control.id()));
        let limits = Limits { deadline, promote: false, keeps: false };
        let followed = Box::pin(follow(running, cx, limits, Some(&mut watch), notes)).await;
        let Followed::Ran(mut ran) = followed else {
            return Err(ToolError::new("the command went on where it could not").into());
        };
        let of_turn = tried_since(before, &control, &ran.end).await;
        if let Some(tried) = of_turn {
            let beside = if tried.shared { stay.beside() } else { Vec::new() };
            cx.tries(Tried { beside, ..tried });
        }
        seat.lost = lost;
        let shell = ran.goes_on.take().map(|running| Alive { running, place });
        Ok(Done { ran: *ran, shell, watch, at_start })
    }

    /// Starts a shell in the workspace root; the command takes it where it belongs.
    async fn start(&self, seat: &mut Seat, notes: &mut Vec<String>) -> Result<Alive, Outcome> {
        let (cx, name) = (self.cx, self.name);
        let host = cx.host.shell().ok_or_else(|| {
            ToolError::new(format!("the host {} has no shell", cx.host.name()))
                .hint("Do it with the other tools.")
        })?;
        let shell = cx.host.caps().shell;
        let is_bash = |path: &HostPath| path.file_name() == Some(b"bash");
        if !shell.as_ref().is_some_and(is_bash) {
            let shown = shell.map(|path| path.text().into_owned()).unwrap_or_default();
            return Err(ToolError::new(format!("session needs bash, and the shell is {shown}"))
                .hint("Nothing was run. Run it without session.")
                .into());
        }
        let place = self.shells.begin(name)?;
        let spawn = Spawn {
            set: process::set(cx),
            stdin: Stdin::Open,
            report: true,
            profile: true,
            no_editor: true,
            unset: vec![super::CAME_FROM.to_owned()],
            ..Spawn::new(Program::Turns, root(&cx.place).clone())
        };
        let running = host.spawn(spawn).await;
        let running = running.map_err(|error| match error.kind() {
            std::io::ErrorKind::Unsupported => {
                ToolError::new(format!("the shell of session {name} could not be started: {error}"))
                    .hint("Nothing was run. Run it without session.")
            }
            _ => failed(&self.input.command, &error),
        })?;
        place.runs(&running.control);
        notes.extend(host.told().map(|told| format!("[{told}]")));
        seat.fresh();
        let mut stands = String::new();
        let why = seat.lost.take().or_else(|| {
            let why = before(name, cx)?;
            if let Some(folder) = stood(name, cx) {
                stands = format!("; it starts in {}", quoted(&folder.shown_from(root(&cx.place))));
                seat.folder = Some(folder);
            }
            Some(why)
        });
        notes.extend(why.map(|why| {
            format!(
                "[session {name} is a new shell, for {why}: variables and functions of the last \
                 one are lost{stands}]"
            )
        }));
        Ok(Alive { running, place })
    }
}

/// What the last turn of a shell tried of the network, where that was counted before.
async fn tried_since(before: Option<Tried>, shell: &Arc<dyn Control>, end: &End) -> Option<Tried> {
    let at_end = match end {
        End::Exited(Exit { tried, .. }) | End::TimedOut(Exit { tried, .. }) => tried.clone(),
        _ => None,
    };
    let now = match at_end {
        Some(tried) => tried,
        None => shell.tried().await?,
    };
    let attempts = now.attempts.zip(before?.attempts).map(|(now, before)| now.since(before));
    Some(Tried { attempts, ..now })
}

/// Takes note of a shell; why it is another than this conversation had, if it is.
fn before(name: &str, cx: &Cx) -> Option<String> {
    let known = cx.conversation().value(KEY);
    let mut known: Vec<String> =
        known.and_then(|known| serde_json::from_value(known).ok()).unwrap_or_default();
    if known.iter().any(|other| other == name) {
        return Some("the run of haft that had it is over".to_owned());
    }
    known.push(name.to_owned());
    cx.remember(KEY, known.into());
    None
}

/// The folders that are remembered.
fn folders(cx: &Cx) -> BTreeMap<String, HostPath> {
    let known = cx.conversation().value(FOLDERS);
    known.and_then(|known| serde_json::from_value(known).ok()).unwrap_or_default()
}

/// Where the shell of an earlier run stood, if in the workspace and not in its root.
fn stood(name: &str, cx: &Cx) -> Option<HostPath> {
    folders(cx).remove(name).filter(|folder| cx.place.holds(folder))
}

/// Takes note of where a shell stands.
fn remember(name: &str, folder: &HostPath, cx: &Cx) {
    let mut all = folders(cx);
    if folder == root(&cx.place) {
        all.remove(name);
    } else {
        all.insert(name.to_owned(), folder.clone());
    }
    if !all.is_empty() || cx.conversation().value(FOLDERS).is_some() {
        cx.remember(FOLDERS, serde_json::to_value(all).unwrap_or_default());
    }
}

impl Seat {
    /// There is no shell any more, for this reason.
    fn lose(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
        self.fresh();
    }

    /// The next shell knows nothing.
    fn fresh(&mut self) {
        (self.strayed, self.lines, self.code) = (false, 0, 0);
        (self.began, self.beside, self.set_back) = Default::default();
    }

    /// What is said of options and traps that the next command does not have any more; the same only
    /// once.
    fn set_back(&mut self, options: Vec<String>, traps: Vec<String>) -> Option<String> {
        let said = [
            ("options of set last for one call", options),
            ("traps last for one call, but that of EXIT", traps),
        ];
        let said = said.iter().filter(|(_, names)| !names.is_empty());
        let said = said.map(|(what, names)| format!("[{what}: {}]", names.join(", ")));
        let said = said.collect::<Vec<_>>().join("\n");
        let is_news = !said.is_empty() && said != self.set_back;
        is_news.then(|| self.set_back.clone_from(&said)).map(|()| said)
    }

    /// Where the shell stands now; what is said of it.
    fn stands(&mut self, name: &str, ended: Option<HostPath>, cx: &Cx) -> Option<String> {
        let root = root(&cx.place);
        let next = |place: &str| format!("the next command of session {name} starts in {place}");
        let before = self.folder.replace(root.clone());
        self.strayed = true;
        let Some(ended) = ended else {
            return Some(format!("[its folder is gone: {}]", next("the workspace root")));
        };
        if !cx.place.holds(&ended) {
            let shown = quoted(&ended.text());
            return Some(format!("[{shown} is outside the workspace: {}]", next("its root")));
        }
        self.strayed = false;
        let moved = before.as_ref() != Some(&ended);
        let shown = quoted(&ended.shown_from(root));
        let shown = if shown == "." { "the workspace root".to_owned() } else { shown };
        self.folder = Some(ended);
        moved.then(|| format!("[{}]", next(&shown)))
    }

    /// What runs in the background behind a command; what is said of it.
    fn background(
        &mut self,
        name: &str,
        command: &str,
        mut beside: Vec<(u32, String)>,
    ) -> Option<String> {
        for (id, line) in &mut beside {
            // A part of a command that runs in a shell of its own has the shell's line.
            if line.trim() == SHELL {
                let known = self.beside.iter().find(|(known, _)| known == id);
                let part = || format!("a part of: {}", command.trim());
                *line = known.map_or_else(part, |(_, line)| line.clone());
            }
        }
        let ran = !std::mem::replace(&mut self.beside, beside).is_empty();
        if self.beside.is_empty() {
            return ran.then(|| {
                format!(
                    "[what ran in the background of session {name} has ended; some of this output \
                     may be its]"
                )
            });
        }
        Some(format!(
            "[in the background of session {name}: {}; what it prints comes with the call that \
             runs then]",
            listed(&self.beside)
        ))
    }

    /// The shell has ended with the call, and with it what ran beside it; what is said of them.
    fn ends(&mut self, name: &str, end: &End, beside: &[(u32, String)]) -> Vec<String> {
        let why = match end {
            End::Exited(_) => "the last command ended it",
            End::TimedOut(_) => "the last command was stopped at its timeout",
            End::Cancelled => "the last command was cancelled",
            End::Deaf => "the last command left it unable to run another",
            End::Lost(_) => "the one before was lost",
        };
        // What the command itself began is stopped as that of any other, and not named.
        let mut known = std::mem::take(&mut self.beside);
        known.retain(|(id, _)| beside.iter().any(|(other, _)| other == id));
        self.lose(why);
        let stopped = (!known.is_empty()).then(|| {
            let named = listed(&known);
            format!("[still running in the background of session {name}, and stopped: {named}]")
        });
        let over = format!(
            "[the shell of session {name} ended with this; the next call begins a new one, without \
             its variables, functions and processes]"
        );
        stopped.into_iter().chain([over]).collect()
    }
}

/// How a shell ended between two calls, as a reason.
fn ended(over: &Result<Exit, String>) -> String {
    let how = match over {
        Ok(Exit { code: Some(code), .. }) => format!("exit code {code}"),
        Ok(Exit { signal, .. }) => {
            let number = signal.unwrap_or_default();
            format!("killed by signal {number} ({})", exit_codes::signal(number))
        }
        Err(why) => why.clone(),
    };
    format!("the one before ended between the calls ({how})")
}

/// What is told of words that belong to no call; of a shell that has just begun they come of its start.
fn said(name: &str, between: &Between, at_start: bool) -> Option<String> {
    let text = between.last_output();
    let text = text.trim_end();
    if text.is_empty() {
        return None;
    }
    let skipped = text.char_indices().nth_back(BETWEEN - 1).map_or(0, |(at, _)| at);
    let skipped = skipped + text[skipped..].find(|c| c != '\n').unwrap_or_default();
    let bytes = between.bytes;
    let when = if at_start {
        format!("by the shell of session {name} as it started")
    } else {
        format!("since the last call in the background of session {name}")
    };
    Some(format!("[printed {when} ({bytes} bytes, their end):\n{}]", &text[skipped..]))
}
