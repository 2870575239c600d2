//! Reads the standard input of a run that has no terminal.
//!
//! **Invariant:** unless `-` asks for it, a silent pipe never blocks a run. `-` and files are read
//! to the end. A pipe gets one second for its first byte, and anything else is left alone.

use std::{fs::File, io::Read as _, os::fd::AsFd as _};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
};

use super::exit::{Failure, say};

/// Most bytes that are taken.
const MOST: u64 = 10 << 20;
/// How long a pipe may take for its first byte, in seconds.
const FIRST_BYTE: i64 = 1;

/// Reads standard input, if it has something for the run. `wanted` says that the person asked for
/// it. It must be UTF-8 of at most 10 MiB.
pub fn read(wanted: bool) -> Result<Option<String>, Failure> {
    let stdin = std::io::stdin();
    let Ok(stat) = fstat(&stdin) else {
        return if wanted { Err(closed()) } else { Ok(None) };
    };
    let take = match FileType::from_raw_mode(stat.st_mode) {
        _ if wanted => true,
        FileType::RegularFile => true,
        FileType::Fifo | FileType::Socket => speaks(&stdin),
        _ => false,
    };
    if !take {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let handle = stdin.as_fd().try_clone_to_owned().map_err(|_| closed())?;
    File::from(handle)
        .take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Failed(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST {
        let text = format!("standard input has more than {MOST} bytes: put it in a file instead");
        return Err(Failure::Usage(text));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Usage(format!("standard input is no UTF-8 text: byte {at} does not fit"))
    })?;
    Ok(Some(text))
}

/// Waits for a pipe's first byte or its end.
fn speaks(stdin: &std::io::Stdin) -> bool {
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    let limit = Timespec { tv_sec: FIRST_BYTE, tv_nsec: 0 };
    let ready = poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0);
    if !ready {
        say("haft: standard input is an open pipe that says nothing: going on without it");
    }
    ready
}

fn closed() -> Failure {
    Failure::Usage("standard input is closed: give the prompt as an argument".into())
}
