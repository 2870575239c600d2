//! How the program ends: its final message, and its exit code.
//!
//! **Invariant:** text leaves the program here, except the parser's own errors. Nothing in it but
//! haft's own colours acts on a terminal, wherever it came from: a setting, a flag, a file, an
//! error of a library. Output for programs stays as it is, except that values of secrets are never
//! shown.

use std::{
    borrow::Cow,
    fmt,
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
    sync::{Arc, PoisonError, RwLock},
};

use haft_render::{clean, colours_only};
use haft_text::secrets::Secrets;

/// What nothing that is said shows: first that of the settings, then that of the session.
static SECRETS: RwLock<Option<Arc<Secrets>>> = RwLock::new(None);

/// From now on, no output shows the values of these secrets.
pub fn hide(secrets: &Arc<Secrets>) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets.clone());
}

fn secrets() -> Option<Arc<Secrets>> {
    SECRETS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A text of haft's own for people, in which a secret may stand that it has met anywhere.
fn hidden(text: &str) -> Cow<'_, str> {
    secrets().map_or(Cow::Borrowed(text), |secrets| secrets.hide(text))
}

/// Why a run did not end well.
#[derive(Debug)]
pub enum Failure {
    /// The run failed: exit code 1.
    Failed(String),
    /// The call was wrong: exit code 2.
    Usage(String),
    /// Everything was reported already; only this exit code is left.
    Said(u8),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Usage(text) => f.write_str(text),
            Self::Said(_) => Ok(()),
        }
    }
}

/// Any error fails the run with its text and its causes.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let mut text = error.to_string();
        for cause in error.chain().skip(1).map(ToString::to_string) {
            // Many errors tell their cause in their own words.
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        Self::Failed(text)
    }
}

/// The result of a face.
pub type Ending = Result<(), Failure>;

/// Prints the failure, if any, to standard error; returns the exit code.
pub fn code(ending: &Ending) -> ExitCode {
    match ending {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said(code)) => ExitCode::from(*code),
        Err(failure) => {
            say(&format!("haft: {failure}"));
            ExitCode::from(if matches!(failure, Failure::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// Writes a line to standard error. If even that is closed, the error is ignored.
pub fn say(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", clean(&hidden(text))));
}

/// Writes a text that is safe already, in any colours, to standard error.
pub fn say_as_it_is(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", hidden(text)));
}

/// Writes a line with the colours of a view to standard error.
pub fn say_view(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", colours_only(&hidden(text))));
}

/// Writes text for people to standard output.
///
/// # Errors
/// A closed pipe ends the run quietly with exit code 1; other errors are reported.
pub fn print(text: &str) -> Ending {
    write(&clean(text))
}

/// Writes a line for people to standard output.
///
/// # Errors
/// As [`print`].
pub fn println(text: &str) -> Ending {
    print(&format!("{text}\n"))
}

/// Writes text with the colours of a view to standard output.
///
/// # Errors
/// As [`print`].
pub fn print_view(text: &str) -> Ending {
    write(&colours_only(text))
}

/// Writes a control sequence to standard output that moves the cursor, and a text behind it. The
/// sequence must be haft's own.
///
/// # Errors
/// As [`print`].
pub fn print_behind(moves: &str, text: &str) -> Ending {
    write(&format!("{moves}{}", colours_only(text)))
}

/// Writes a frame of the terminal interface to standard output: its own control sequences, and text
/// that is clean already.
///
/// # Errors
/// As [`print`].
pub fn draw(frame: &str) -> Ending {
    write(frame)
}

/// Writes text to standard output as it is, for the program that reads it. A terminal gets visible
/// signs for what would act on it.
///
/// # Errors
/// As [`print`].
pub fn print_data(text: &str) -> Ending {
    if std::io::stdout().is_terminal() { print(text) } else { write(text) }
}

/// Writes a line of JSON text to standard output, in which nothing acts on a terminal.
///
/// # Errors
/// As [`print`].
pub fn println_json(text: &str) -> Ending {
    println(&haft_render::json(text))
}

fn write(text: &str) -> Ending {
    let text = secrets().map_or(Cow::Borrowed(text), |secrets| secrets.hide_known(text));
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Said(1)),
        Err(error) => Err(Failure::Failed(format!("standard output cannot be written: {error}"))),
    }
}
