//! The modes of the terminal while the interface is on it, and what it is asked at the start.
//!
//! **Invariant:** they are put back when this is dropped, while the program is suspended, and after
//! a panic. Nothing waits for an answer of the terminal.

use std::io::{IsTerminal as _, Write as _};

use haft_config::Environment;
use haft_tui::screen::Size;
use rustix::{
    process::{Signal, getpgrp, getpid, getsid, kill_process},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

/// What is switched on: marks for pastes, tellings of focus, keys told apart by Kitty's protocol
/// (flag 1); and the cursor is hidden, since the interface draws its own.
const ON: &str = "\u{1b}[?2004h\u{1b}[?1004h\u{1b}[>1u\u{1b}[?25l";
/// The same switched off.
const OFF: &str = "\u{1b}[?2026l\u{1b}[?7h\u{1b}[<u\u{1b}[?1004l\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";
/// To the alternate screen, and back. It is emptied before: as it goes, tmux 3.3 wraps its rows for
/// the width that the main screen had, and those that do not fit any more go into the scrollback.
const ALTERNATE: [&str; 2] = ["\u{1b}[?1049h", "\u{1b}[H\u{1b}[J\u{1b}[?1049l"];
/// What the terminal is asked: its name and, last, what every terminal answers (DA1).
const ASK: &str = "\u{1b}[>0q\u{1b}[c";

/// See the module.
#[derive(Default)]
pub struct Modes {
    saved: Option<Termios>,
    is_alternate: bool,
}

impl Modes {
    /// Switches the modes on. Standard input and output are a terminal.
    pub fn on(&mut self) {
        let Ok(found) = tcgetattr(std::io::stdin()) else { return };
        let old = self.saved.clone().unwrap_or(found);
        let mut raw = old.clone();
        raw.make_raw();
        if tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).is_ok() {
            self.saved = Some(old);
            emit(ON);
        }
    }

    /// Asks the terminal what it is.
    pub fn ask() {
        emit(ASK);
    }

    /// Goes to the alternate screen, or back.
    pub fn alternate(&mut self, on: bool) {
        if self.is_alternate != on {
            self.is_alternate = on;
            let [to, back] = ALTERNATE;
            emit(if on { to } else { back });
        }
    }

    /// Puts everything back.
    pub fn off(&mut self) {
        self.alternate(false);
        if let Some(old) = self.saved.take() {
            emit(OFF);
            // A terminal that is gone needs no putting back.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &old);
        }
    }

    /// Suspends the program, where a shell can continue it.
    pub fn suspend(&mut self) {
        if getsid(None).is_ok_and(|leader| leader == getpgrp()) {
            return;
        }
        self.off();
        // It goes on behind this, or was refused and goes on too.
        let _ = kill_process(getpid(), Signal::STOP);
        self.on();
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        self.off();
    }
}

/// The size of the terminal; none where it does not tell.
pub fn size() -> Option<Size> {
    let told = tcgetwinsize(std::io::stdout()).ok()?;
    (told.ws_col > 0 && told.ws_row > 0).then_some(Size { columns: told.ws_col, rows: told.ws_row })
}

/// Whether the interface can be on this terminal.
pub fn is_there() -> bool {
    let environment = Environment::capture();
    !environment.dumb
        && !environment.no_color
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && size().is_some()
}

/// Tells a person who looks elsewhere that something is there: by the bell, and in words where the
/// terminal shows these (OSC 9).
pub fn notify(text: &str) {
    emit(&format!("\u{1b}]9;{text}\u{7}\u{7}"));
}

/// A terminal that is gone is told nothing.
pub fn emit(sequence: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(sequence.as_bytes()).and_then(|()| out.flush()));
}
