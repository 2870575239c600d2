//! What is typed: lines, or single keys while a question is open.
//!
//! **Invariant:** the terminal is put back as it was when this is dropped.

use std::{io::IsTerminal as _, thread};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Something that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line without its end.
    Line(String),
    /// One key.
    Key(char),
}

/// Longest line that is taken, in bytes; the rest of it is a line of its own.
const LINE_MAX: usize = 1 << 20;

/// The terminal's input.
pub struct Keys {
    terminal: bool,
    saved: Option<Termios>,
}

impl Keys {
    /// Begins to read standard input, in a thread that ends with the process.
    pub fn start() -> (Self, UnboundedReceiver<Typed>) {
        let (send, receive) = unbounded_channel();
        let terminal = std::io::stdin().is_terminal();
        thread::spawn(move || read(terminal, &send));
        (Self { terminal, saved: None }, receive)
    }

    /// Reports whether a person types, not a program.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Gives single keys from now on; what was typed before is thrown away.
    pub fn single(&mut self) {
        if !self.terminal || self.saved.is_some() {
            return;
        }
        let Ok(old) = tcgetattr(std::io::stdin()) else { return };
        let mut new = old.clone();
        new.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        new.special_codes[SpecialCodeIndex::VMIN] = 1;
        new.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(std::io::stdin(), OptionalActions::Flush, &new).is_ok() {
            self.saved = Some(old);
        }
    }

    /// Gives lines again.
    pub fn restore(&mut self) {
        if let Some(old) = self.saved.take() {
            // A terminal that is gone needs no putting back.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &old);
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Reads until the end; a chunk that ends without a line end came from a single key.
fn read(terminal: bool, send: &UnboundedSender<Typed>) {
    let mut line: Vec<u8> = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = match rustix::io::read(std::io::stdin(), &mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        };
        let single = terminal && !chunk[..count].contains(&b'\n') && !is_canonical();
        if single {
            let text = String::from_utf8_lossy(&chunk[..count]).into_owned();
            if first_key(&text).is_some_and(|key| send.send(Typed::Key(key)).is_err()) {
                return;
            }
            continue;
        }
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

/// The first key that writes something; escape sequences of other keys are no answer to anything.
fn first_key(text: &str) -> Option<char> {
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '\u{1b}' => match chars.next()? {
                '[' => while !('@'..='~').contains(&chars.next()?) {},
                'O' => drop(chars.next()),
                _ => {}
            },
            key if key.is_control() => {}
            key => return Some(key),
        }
    }
}

fn is_canonical() -> bool {
    tcgetattr(std::io::stdin()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

#[cfg(test)]
mod tests {
    use super::first_key;

    #[test]
    fn only_keys_that_write_are_answers() {
        for (typed, key) in [
            ("y", Some('y')),
            ("yn", Some('y')),
            ("\u{1b}[A", None),
            ("\u{1b}[1;5Cx", Some('x')),
            ("\u{1b}OPx", Some('x')),
            ("\u{1b}y", None),
            ("\t\u{7f}n", Some('n')),
            ("\u{1b}", None),
            ("\u{1b}[", None),
            ("", None),
            ("ä", Some('ä')),
        ] {
            assert_eq!(first_key(typed), key, "{typed:?}");
        }
    }
}
