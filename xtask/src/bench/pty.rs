//! A program on a pseudo-terminal, which is read all the time and answers what programs ask one.
//!
//! **Invariant:** what the program writes is read at once, so that it never waits for its reader; a
//! moment is that of the read. Every wait ends: with what is waited for, the end of the program, or
//! an error. The program ends when this is dropped.
//!
//! It does not know what is drawn: it keeps the text without control sequences, in the order in
//! which it came.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::processor_time::ProcessorTime;

/// Columns and rows of the terminal.
pub(super) const SIZE: (u16, u16) = (100, 40);
/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
/// What a program asks a terminal, and what this one answers: DA1, and where the cursor is.
const ANSWERS: &[(&[u8], &[u8])] = &[(b"\x1b[c", b"\x1b[?62;22c"), (b"\x1b[6n", b"\x1b[1;1R")];
/// The begin of a frame: synchronized output is switched on.
const FRAME: &[u8] = b"\x1b[?2026h";

/// See the module.
pub(super) struct Pty {
    child: Child,
    terminal: File,
    output: Receiver<(Instant, Vec<u8>)>,
    /// What came behind what was waited for, as text.
    text: Text,
    /// When the last of it came.
    at: Instant,
    /// Frames that began.
    frames: usize,
    /// The last bytes that came, in which the begin of a frame may be cut.
    tail: Vec<u8>,
}

impl Pty {
    /// Starts a program.
    ///
    /// # Errors
    ///
    /// When there is no terminal to be had, or the program cannot be started.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .and_then(|terminal| grantpt(&terminal).map(|()| terminal))
            .and_then(|terminal| unlockpt(&terminal).map(|()| terminal))
            .context("no pseudo-terminal can be opened")?;
        let (ws_col, ws_row) = SIZE;
        tcsetwinsize(&terminal, Winsize { ws_col, ws_row, ws_xpixel: 0, ws_ypixel: 0 })
            .context("the terminal takes no size")?;
        let name = ptsname(&terminal, Vec::new()).context("the terminal has no name")?;
        let name = name.to_str().context("the terminal's name is no text")?;
        let side = File::options().read(true).write(true).open(name)?;
        command
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(side.try_clone()?)
            .stdout(side.try_clone()?)
            .stderr(side);
        let child = command.spawn().context("the program on the terminal cannot be started")?;
        // The command keeps its ends of the terminal open; without this its end is never seen.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let terminal = File::from(terminal);
        let (reader, (send, output)) = (terminal.try_clone()?, channel());
        thread::spawn(move || read(reader, &send));
        let (text, at, tail) = (Text::default(), Instant::now(), Vec::new());
        Ok(Self { child, terminal, output, text, at, frames: 0, tail })
    }

    /// Types or pastes bytes.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.terminal.write_all(bytes).context("the terminal takes no input")
    }

    /// From here on only what comes later is waited for.
    pub(super) fn forget(&mut self) {
        while let Ok((at, bytes)) = self.output.try_recv() {
            self.take(at, &bytes);
        }
        self.text.plain.clear();
    }

    /// Waits for a text behind the one that was waited for last; returns when it was read.
    ///
    /// # Errors
    ///
    /// When it does not come.
    pub(super) fn wait(&mut self, wanted: &str) -> Result<Instant> {
        let (end, mut looked) = (Instant::now() + PATIENCE, 0);
        loop {
            let text = &self.text.plain;
            let place = text.get(looked..).and_then(|text| text.find(wanted));
            if let Some(place) = place {
                self.text.plain.drain(..looked + place + wanted.len());
                return Ok(self.at);
            }
            looked = text.floor_char_boundary(text.len().saturating_sub(wanted.len()));
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((at, bytes)) => self.take(at, &bytes),
                Err(why) => {
                    let what = match why {
                        RecvTimeoutError::Timeout => "did not come in time",
                        RecvTimeoutError::Disconnected => "did not come before the program ended",
                    };
                    let last = text.floor_char_boundary(text.len().saturating_sub(1_000));
                    bail!("{wanted:?} {what}; the last that came is:\n{}", &text[last..]);
                }
            }
        }
    }

    fn take(&mut self, at: Instant, bytes: &[u8]) {
        self.at = at;
        self.tail.extend(bytes);
        self.frames += self.tail.windows(FRAME.len()).filter(|window| *window == FRAME).count();
        let kept = self.tail.len().saturating_sub(FRAME.len() - 1);
        self.tail.drain(..kept);
        self.text.push(bytes);
    }

    /// Reads on for so long.
    pub(super) fn rest(&mut self, long: Duration) {
        let end = Instant::now() + long;
        while let Ok((at, bytes)) =
            self.output.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.take(at, &bytes);
        }
    }

    /// Frames that began so far.
    pub(super) const fn frames(&self) -> usize {
        self.frames
    }

    /// The program.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the program used of the processor so far.
    pub(super) fn processor_time(&self) -> ProcessorTime {
        ProcessorTime::of(self.id())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It is of no use anymore, and what it has written is in a scratch folder.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the program ends, and answers what it asks.
fn read(mut terminal: File, send: &Sender<(Instant, Vec<u8>)>) {
    let (mut buffer, mut tail) = (vec![0; 1 << 16], Vec::<u8>::new());
    // Where the program has ended, reading fails on Linux.
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        let (at, bytes) = (Instant::now(), &buffer[..count]);
        if send.send((at, bytes.to_vec())).is_err() {
            break;
        }
        tail.extend(bytes);
        for (question, answer) in ANSWERS {
            if let Some(place) = tail.windows(question.len()).position(|part| part == *question) {
                tail.drain(..place + question.len());
                // A program that has ended wants no answer.
                let _ = terminal.write_all(answer);
            }
        }
        tail.drain(..tail.len().saturating_sub(3));
    }
}

/// What a terminal would show, as the text that was written into it.
#[derive(Default)]
struct Text {
    plain: String,
    bytes: Vec<u8>,
    state: State,
}

/// Where in a sequence of ECMA-48 the next byte stands.
#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Outside,
    Escape,
    /// CSI, until its final byte.
    Control,
    /// OSC and others, until BEL or ST.
    String,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = match (self.state, byte) {
                (_, 0x1b) => State::Escape,
                (State::Escape, b'[') => State::Control,
                (State::Escape, b']' | b'P' | b'_' | b'^') => State::String,
                (State::Escape, _) | (State::Control, 0x40..=0x7e) | (State::String, 7) => {
                    State::Outside
                }
                (State::Outside, _) => {
                    self.bytes.push(*byte);
                    State::Outside
                }
                (state, _) => state,
            };
        }
        // A character may be cut at the end of a read.
        let whole = match std::str::from_utf8(&self.bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.bytes.len(),
        };
        let whole: Vec<u8> = self.bytes.drain(..whole).collect();
        self.plain.push_str(&String::from_utf8_lossy(&whole));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_no_text_also_where_they_are_cut() {
        let all = "a\x1b[36m> \x1b[0m\u{e4}\x1b]0;title\x07b\x1b7c\x1b]8;;x\x1b\\d";
        for cut in 0..all.len() {
            let mut text = Text::default();
            text.push(&all.as_bytes()[..cut]);
            text.push(&all.as_bytes()[cut..]);
            assert_eq!(text.plain, "a> \u{e4}bcd", "cut at {cut}");
        }
    }

    #[test]
    fn a_program_is_answered_and_its_frames_are_counted() {
        let script = "printf '\\033[?2026h'; stty raw -echo; printf '\\033[c'; \
                      dd bs=1 count=9 2>/dev/null | tr -d '\\033' | tr c C";
        let mut pty = Pty::start(Command::new("sh").args(["-c", script])).unwrap();
        pty.wait("[?62;22C").unwrap();
        assert_eq!(pty.frames(), 1);
        assert!(pty.wait("more").unwrap_err().to_string().contains("before the program ended"));
    }
}
