//! Reads what is typed: lines of a pipe, or the bytes of a terminal as they arrive.
//!
//! **Invariant:** the terminal's settings are restored when this is dropped, and while the program
//! is stopped. Bytes of a terminal carry the moment at which they were read. So what was typed
//! before a question can be told apart from what was typed after it.

use std::{
    io::IsTerminal as _,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, getpgrp, getpid, getsid, kill_process},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};
use tokio::{
    signal::unix::{self, SignalKind, signal},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::cli::exit::Failure;

/// Something that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line of a pipe, without its end.
    Line(String),
    /// Bytes that a terminal gave at once, and when they were read.
    Bytes(Vec<u8>, Instant),
}

/// Longest line that is taken from a pipe, in bytes; the rest of it is a line of its own.
const LINE_MAX: usize = 1 << 20;

/// Held by who reads the terminal: for a moment, or for as long as another program has it.
static READING: Mutex<()> = Mutex::new(());

/// Asks the terminal to mark what is pasted, and no longer.
const MARK_PASTES: (&str, &str) = ("\u{1b}[?2004h", "\u{1b}[?2004l");

/// The terminal's input.
pub struct Keys {
    terminal: bool,
    dumb: bool,
    saved: Option<Termios>,
}

impl Keys {
    /// Input from standard input; a `dumb` terminal gets no control sequence.
    pub fn new(dumb: bool) -> Self {
        Self { terminal: std::io::stdin().is_terminal(), dumb, saved: None }
    }

    /// Begins to read, in a thread that ends with the process.
    pub fn read(&self) -> UnboundedReceiver<Typed> {
        let (send, receive) = unbounded_channel();
        let terminal = self.terminal;
        thread::spawn(move || if terminal { read_bytes(&send) } else { read_lines(&send) });
        receive
    }

    /// Leaves what is typed to another program, such as an editor, for as long as this is held.
    pub fn leave() -> MutexGuard<'static, ()> {
        READING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether a person types, not a program.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Reports whether everything typed was read already, which may not be so on a busy machine.
    pub fn is_read() -> bool {
        let stdin = std::io::stdin();
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }

    /// From now on takes every key as it is pressed; what was typed before comes too.
    pub fn take(&mut self) {
        self.set(OptionalActions::Now);
    }

    /// As [`Keys::take`], but what was typed before is discarded.
    pub fn take_anew(&mut self) {
        self.set(OptionalActions::Flush);
    }

    fn set(&mut self, when: OptionalActions) {
        if !self.terminal {
            return;
        }
        let Ok(found) = tcgetattr(std::io::stdin()) else { return };
        // Taken twice, as after a stop that nobody told of, it is still put back as it was first.
        let old = self.saved.clone().unwrap_or(found);
        let mut new = old.clone();
        new.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        new.special_codes[SpecialCodeIndex::VMIN] = 1;
        new.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(std::io::stdin(), when, &new).is_ok() {
            self.saved = Some(old);
            self.tell(MARK_PASTES.0);
        }
    }

    /// Restores the terminal's settings. Keys that were not read are discarded, because a shell
    /// would take the rest of a paste for commands.
    pub fn restore(&mut self) {
        if let Some(old) = self.saved.take() {
            self.tell(MARK_PASTES.1);
            // A terminal that is gone needs no putting back.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &old);
        }
    }

    fn tell(&self, sequence: &str) {
        use std::io::Write as _;
        if self.dumb {
            return;
        }
        // A terminal that is gone shows nothing.
        if std::io::stdout().is_terminal() {
            let mut out = std::io::stdout().lock();
            drop(out.write_all(sequence.as_bytes()).and_then(|()| out.flush()));
        } else if std::io::stderr().is_terminal() {
            drop(std::io::stderr().lock().write_all(sequence.as_bytes()));
        }
    }

    /// Suspends the program, as Ctrl-Z asks, with the terminal restored. Does nothing if there is
    /// no shell that could continue it.
    pub fn stop(&mut self) {
        if getsid(None).is_ok_and(|leader| leader == getpgrp()) {
            return;
        }
        let taken = self.saved.is_some();
        self.restore();
        // It goes on behind this, or was refused and goes on too.
        let _ = kill_process(getpid(), Signal::STOP);
        if taken {
            self.take();
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.restore();
    }
}

/// The signals for Ctrl-Z and for the program's continuation.
pub struct Pauses([unix::Signal; 2]);

/// See [`Pauses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The person asks to suspend the program.
    Stop,
    /// The program continues; others may have used the terminal.
    GoesOn,
}

impl Pauses {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> Result<Self, Failure> {
        let take = |of: Signal| {
            signal(SignalKind::from_raw(of.as_raw()))
                .map_err(|error| Failure::Failed(format!("no signals: {error}")))
        };
        Ok(Self([take(Signal::TSTP)?, take(Signal::CONT)?]))
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Pause {
        let [stop, goes_on] = &mut self.0;
        tokio::select! {
            _ = stop.recv() => Pause::Stop,
            _ = goes_on.recv() => Pause::GoesOn,
        }
    }
}

/// Gives what each read of a terminal brings, until it is gone.
fn read_bytes(send: &UnboundedSender<Typed>) {
    let mut chunk = [0; 4096];
    let stdin = std::io::stdin();
    loop {
        // Not in the read: what is typed may be for another program by then.
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready == 0) {
            continue;
        }
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                if send.send(Typed::Bytes(chunk[..count].to_vec(), Instant::now())).is_err() {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Gives the lines of a pipe until its end.
fn read_lines(send: &UnboundedSender<Typed>) {
    let mut line: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = match rustix::io::read(std::io::stdin(), &mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        };
        for &byte in &chunk[..count] {
            if byte != b'\n' && line.len() < LINE_MAX {
                line.push(byte);
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            line.clear();
            if send.send(Typed::Line(text)).is_err() {
                return;
            }
        }
    }
    if !line.is_empty() {
        // Nobody listens any more where this fails.
        drop(send.send(Typed::Line(String::from_utf8_lossy(&line).into_owned())));
    }
}
