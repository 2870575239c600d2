//! Asks for one key or one line on a terminal, before any front end is on it.
//!
//! **Invariant:** a key answers only if it was pressed alone, after it was asked for. It is asked
//! for when nothing was typed for a while; what was typed before is dropped. A paste answers
//! nothing.

use std::time::Instant;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    app::agent::Signals,
    cli::exit::{Failure, print, println},
    faces::line::{Decoder, Keys, Pause, Pauses, Press, QUIET, Typed},
};

/// Longest line that is taken, in bytes.
const LONGEST: usize = 4 << 10;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// An answer.
    Some(T),
    /// No answer: the person pressed Ctrl-D.
    End,
    /// haft is to be left.
    Leave,
}

/// See the module.
pub struct Prompter {
    dumb: bool,
    /// What is typed: there is one reader for the whole process.
    typed: Option<UnboundedReceiver<Typed>>,
}

impl Prompter {
    /// For standard input and output, which are a terminal; a `dumb` one gets no control sequence.
    pub const fn new(dumb: bool) -> Self {
        Self { dumb, typed: None }
    }

    /// What is typed from here on, where it is read already.
    pub fn into_typed(self) -> Option<UnboundedReceiver<Typed>> {
        self.typed
    }

    /// Waits for one of these keys, each with what it means, which is shown behind it.
    pub async fn key(&mut self, offered: &[(char, &str)]) -> Result<Answer<char>, Failure> {
        let (mut signals, mut pauses) = (Signals::new()?, Pauses::new()?);
        let mut keys = Keys::new(self.dumb);
        let typed = self.typed.get_or_insert_with(|| keys.read());
        keys.take_anew();
        let mut decoder = Decoder::default();
        let (mut quiet, mut asked, mut is_told) = (Instant::now(), None, false);
        loop {
            let due = tokio::time::Instant::from_std(quiet + QUIET);
            tokio::select! {
                biased;
                _ = signals.pressed() => {
                    println("")?;
                    return Ok(Answer::Leave);
                }
                pause = pauses.next() => {
                    match pause {
                        Pause::Stop => keys.stop(),
                        Pause::GoesOn => keys.take(),
                    }
                    (quiet, asked, is_told) = (Instant::now(), None, false);
                }
                read = typed.recv() => {
                    let Some(Typed::Bytes(bytes, at)) = read else { return Ok(Answer::Leave) };
                    quiet = at.max(quiet);
                    let presses = decoder.decode(&bytes);
                    let asked = asked.take_if(|_| !presses.is_empty());
                    let counts = asked.is_some_and(|asked| at >= asked);
                    if let Some(answer) = picked(&presses, offered).filter(|_| counts) {
                        let label = offered.iter().find(|(key, _)| answer == Answer::Some(*key));
                        let label = label.map(|(key, label)| format!("{key}  ({label})"));
                        println(&label.unwrap_or_default())?;
                        return Ok(answer);
                    }
                }
                () = tokio::time::sleep_until(due), if asked.is_none() => {
                    // On a busy machine a key may have been pressed and not read yet.
                    if !Keys::is_read() {
                        quiet = Instant::now();
                        continue;
                    }
                    // Taken before it is shown: a key that is pressed at sight of it counts.
                    asked = Some(Instant::now());
                    // Anew where what was typed was no answer: from there on one counts again.
                    let before = if std::mem::replace(&mut is_told, true) { "\n" } else { "" };
                    print(&format!("{before}  One key answers. key: "))?;
                }
            }
        }
    }

    /// Waits for a line, which the terminal itself edits.
    pub async fn line(&mut self, prompt: &str) -> Result<Answer<String>, Failure> {
        let mut signals = Signals::new()?;
        let dumb = self.dumb;
        let typed = self.typed.get_or_insert_with(|| Keys::new(dumb).read());
        print(prompt)?;
        let mut line: Vec<u8> = Vec::new();
        while !line.contains(&b'\n') {
            tokio::select! {
                biased;
                _ = signals.pressed() => {
                    println("")?;
                    return Ok(Answer::Leave);
                }
                read = typed.recv() => match read {
                    Some(Typed::Bytes(bytes, _)) if line.len() + bytes.len() <= LONGEST => {
                        line.extend_from_slice(&bytes);
                    }
                    Some(_) => line.clear(),
                    None => return Ok(Answer::Leave),
                },
            }
        }
        let line = String::from_utf8_lossy(&line);
        Ok(Answer::Some(line.lines().next().unwrap_or_default().trim().to_owned()))
    }
}

/// What a single key means.
fn picked(presses: &[Press], offered: &[(char, &str)]) -> Option<Answer<char>> {
    match presses {
        [Press::End] => Some(Answer::End),
        [Press::Key(key)] => {
            let key = key.to_ascii_lowercase();
            offered.iter().any(|(one, _)| *one == key).then_some(Answer::Some(key))
        }
        _ => None,
    }
}
