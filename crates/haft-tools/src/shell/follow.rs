//! Follows a command to its end, its timeout or the cancellation of its call.
//!
//! **Invariant:** every wait is bounded: for what was asked to end, and for a disk that hangs once
//! the call is cancelled.

use std::{io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use haft_host::{Exit, Output, Running};
use haft_tool::{Cx, JobPlace, Jobs};
use tokio::time::Instant;

use super::{
    End, Ran, answer, at,
    background::Keeping,
    output::{BackgroundOutput, Streams},
    session::{Heard, Watch},
};

/// How long a command that is stopped at its timeout may take to end: TERM, 500 ms, KILL.
const STOP: Duration = Duration::from_millis(700);
/// How long a cancelled one may; the call has 150 ms to answer.
const CANCEL: Duration = Duration::from_millis(60);
/// How long what is left of it may take then.
const STOPPING: Duration = Duration::from_secs(3);
/// How long it is looked at what is stopped with a shell.
const BESIDE: Duration = Duration::from_millis(500);
/// Longest report of where a command ended, in bytes.
const REPORT: usize = 64 << 10;

/// How far a command is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// When its time as a call is over.
    pub(super) deadline: Instant,
    /// Whether it goes on as a job then.
    pub(super) promote: bool,
    /// Whether something of it may go on as a job when it ends.
    pub(super) keeps: bool,
}

/// What became of a command.
pub(super) enum Followed {
    Ran(Box<Ran>),
    /// Its time was over, and there is a place for it among the jobs.
    GoesOn(Running, Box<BackgroundOutput>, JobPlace),
    /// It has ended, and something of it goes on.
    Keeps(Box<Keeping>),
}

/// A command that runs.
struct Following<'a> {
    cx: &'a Cx,
    running: Running,
    jobs: Arc<Jobs>,
    streams: Streams,
    report: Vec<u8>,
    /// Its end, where something was to go on that had no place.
    first: Option<Exit>,
    cancelled: bool,
    /// Why it was told to end, and until when that is waited for.
    stopped: Option<(End, Instant)>,
    /// The turn of a shell that lives on, whose end is waited for.
    turn: Option<&'a mut Watch>,
    notes: &'a mut Vec<String>,
}

/// What follows from something that a command said.
enum Next {
    More,
    Over(End),
    Keep(Exit, JobPlace),
    /// The turn is over, with this exit code.
    TurnOver(i32),
}

/// Takes the output in until the command ends or is stopped; of a shell that lives on, until its
/// `turn` is over.
pub(super) async fn follow(
    running: Running,
    cx: &Cx,
    Limits { deadline, promote, keeps }: Limits,
    turn: Option<&mut Watch>,
    notes: &mut Vec<String>,
) -> Followed {
    let mut of = Following::new(cx, running, promote || keeps, turn, notes);
    let mut look = of.turn.as_ref().map(|_| Watch::look());
    let (mut deadline, mut is_late) = (deadline, false);
    loop {
        let shown = of.streams.due();
        let patience = of.stopped.as_ref().map(|(_, until)| *until);
        tokio::select! {
            biased;
            () = cx.stop.cancelled(), if !of.cancelled => {
                of.cancelled = true;
                of.stop(End::Cancelled, CANCEL);
            }
            () = at(Some(deadline)), if of.stopped.is_none() => {
                if let Some(place) = promote.then(|| of.jobs.begin().ok()).flatten() {
                    let handed = Box::new(of.streams.hand_over(cx));
                    return Followed::GoesOn(of.running, handed, place);
                }
                // Its command is over, and only what says so is missing.
                let more = if std::mem::replace(&mut is_late, true) { None } else { of.listening() };
                if let Some(more) = more {
                    deadline = Instant::now() + more;
                    continue;
                }
                of.looks_beside().await;
                of.stop(End::TimedOut(Exit::default()), STOP);
            }
            () = at(patience) => {
                let end = of.stopped.take().map_or(End::Cancelled, |(end, _)| end);
                return of.given_up(end).await;
            }
            () = at(shown) => of.streams.show_due(cx),
            () = at(look), if of.stopped.is_none() => {
                of.listens().await;
                look = Some(Watch::look());
            }
            next = of.running.output.next() => match of.said(next).await {
                Next::More => {}
                Next::Over(end) => return of.over(end).await,
                Next::Keep(exit, place) => return of.keep(exit, place).await,
                Next::TurnOver(code) => return of.turn_over(code).await,
            },
        }
    }
}

impl<'a> Following<'a> {
    fn new(
        cx: &'a Cx,
        running: Running,
        may_go_on: bool,
        turn: Option<&'a mut Watch>,
        notes: &'a mut Vec<String>,
    ) -> Self {
        let (jobs, mut streams) = (cx.session().map.get::<Jobs>(), Streams::new(cx, may_go_on));
        if let Some(turn) = &turn {
            streams.number_from(&turn.began);
        }
        let (report, first, cancelled, stopped) = Default::default();
        Self { cx, running, jobs, streams, report, first, cancelled, stopped, turn, notes }
    }
}

impl Following<'_> {
    fn stop(&mut self, why: End, patience: Duration) {
        self.running.control.stop();
        self.stopped = Some((why, Instant::now() + patience));
    }

    /// Notes what runs beside a shell that lives on, before it is stopped.
    async fn looks_beside(&mut self) {
        if let Some(turn) = &mut self.turn {
            let beside = tokio::time::timeout(BESIDE, self.running.control.beside()).await;
            turn.beside = beside.unwrap_or_default();
        }
    }

    async fn said(&mut self, said: Option<io::Result<Output>>) -> Next {
        let cx = self.cx;
        if let (Some(turn), Some(Ok(Output::Bytes(_, bytes)))) = (&mut self.turn, &said)
            && turn.keeps(bytes)
        {
            return Next::More;
        }
        match said {
            Some(Ok(Output::Bytes(stream, bytes))) => tokio::select! {
                biased;
                // Output that never pauses would leave the clock no chance to run.
                () = async {
                    self.streams.take(stream, &bytes).await;
                    self.streams.show_due(cx);
                    tokio::task::yield_now().await;
                } => {}
                // A disk that hangs must not hold up who gave up waiting.
                () = cx.stop.cancelled(), if !self.cancelled => {}
            },
            Some(Ok(Output::Report(bytes))) => return self.reported(&bytes).await,
            Some(Ok(Output::Exit(exit))) if !exit.kept.is_empty() => match self.jobs.begin() {
                Ok(place) if self.stopped.is_none() => return Next::Keep(exit, place),
                other => {
                    let why = other.err().map(|error| error.message);
                    let why = why.map(|why| format!("[shell.keep could not let it go on: {why}]"));
                    self.notes.extend(why);
                    self.running.control.stop();
                    self.first = Some(exit);
                }
            },
            Some(Ok(Output::Exit(exit))) => {
                let exit = answer::in_all(self.first.take(), exit);
                return Next::Over(match self.stopped.take() {
                    None => End::Exited(exit),
                    Some((End::TimedOut(_), _)) => End::TimedOut(exit),
                    Some((end, _)) => end,
                });
            }
            Some(Err(error)) => return Next::Over(End::Lost(error.to_string())),
            None => {
                let lost = || End::Lost("its output ended".to_owned());
                return Next::Over(self.stopped.take().map_or_else(lost, |(end, _)| end));
            }
        }
        Next::More
    }

    async fn keep(self, exit: Exit, place: JobPlace) -> Followed {
        let Self { running, report, streams, cx, .. } = self;
        let (kept, spool) = streams.pause(cx).await;
        Followed::Keeps(Box::new(Keeping { running, exit, kept, spool, report, place }))
    }

    async fn reported(&mut self, report: &[u8]) -> Next {
        let Some(turn) = &mut self.turn else {
            let room = REPORT.saturating_sub(self.report.len()).min(report.len());
            self.report.extend_from_slice(&report[..room]);
            return Next::More;
        };
        match turn.takes(report).filter(|_| self.stopped.is_none()) {
            Some(Heard::Placed) => match turn.give(&*self.running.control, self.cx).await {
                Ok(()) => Next::More,
                Err(error) => Next::Over(End::Lost(error.to_string())),
            },
            Some(Heard::Ended(code)) => Next::TurnOver(code),
            None => Next::More,
        }
    }

    /// How long it is waited for yet that the shell is found to do nothing of what it was given.
    fn listening(&mut self) -> Option<Duration> {
        let untaken = self.running.control.untaken();
        self.turn.as_mut().and_then(|turn| turn.may_be_deaf(untaken))
    }

    /// The shell is stopped where it does not do what it was given.
    async fn listens(&mut self) {
        let untaken = self.running.control.untaken();
        if self.turn.as_mut().is_some_and(|turn| turn.is_deaf(untaken)) {
            self.looks_beside().await;
            self.stop(End::Deaf, STOP);
        }
    }

    async fn turn_over(self, code: i32) -> Followed {
        let Self { running, streams, report, cx, .. } = self;
        let end = End::Exited(Exit { code: Some(code), ..Exit::default() });
        let kept = streams.finish(cx, None).await;
        Followed::Ran(Box::new(Ran { end, kept, report, job: None, goes_on: Some(running) }))
    }

    /// Answers for a command that has not ended yet: a cancelled one still has time to clean up.
    async fn given_up(mut self, end: End) -> Followed {
        if end == End::Cancelled {
            let nothing = stream::empty().boxed();
            let mut output = std::mem::replace(&mut self.running.output, nothing);
            self.cx.stops_behind(async move {
                let ends = async { while output.next().await.is_some() {} };
                drop(tokio::time::timeout(STOPPING, ends).await);
            });
        }
        self.over(end).await
    }

    async fn over(self, end: End) -> Followed {
        let patience = match end {
            End::Cancelled => Some(CANCEL / 2),
            End::TimedOut(_) => Some(Duration::from_millis(150)),
            End::Exited(_) | End::Lost(_) | End::Deaf => None,
        };
        let kept = self.streams.finish(self.cx, patience).await;
        let (job, goes_on) = (None, None);
        Followed::Ran(Box::new(Ran { end, kept, report: self.report, job, goes_on }))
    }
}
