//! How the program ends: what is said, and with which code.

use std::{fmt, io::Write as _, process::ExitCode};

/// Why a run did not end well.
#[derive(Debug)]
pub enum Failure {
    /// The run failed: exit code 1.
    Failed(String),
    /// The call was wrong: exit code 2.
    Usage(String),
    /// Everything was said already; only the code is left.
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

/// What a face gives back.
pub type Ending = Result<(), Failure>;

/// Says what is to be said on standard error and gives the exit code.
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

/// Writes a line to standard error. Nobody is told when even that is closed.
pub fn say(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Writes text to standard output.
///
/// # Errors
/// A closed pipe ends the run quietly, as every filter does; other errors are told.
pub fn print(text: &str) -> Ending {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Said(1)),
        Err(error) => Err(Failure::Failed(format!("standard output cannot be written: {error}"))),
    }
}

/// Writes a line to standard output.
///
/// # Errors
/// As [`print`].
pub fn println(text: &str) -> Ending {
    print(&format!("{text}\n"))
}

/// Writes a line of JSON text to standard output, in which nothing acts on a terminal.
///
/// # Errors
/// As [`print`].
pub fn println_json(text: &str) -> Ending {
    println(&haft_render::json(text))
}
