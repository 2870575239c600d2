//! The process that reads PDF documents: haft itself, started again for each of them.
//!
//! **Invariant:** before the first byte of the document is read, the process drops the rights that
//! it does not need. It can open no file and no connection, and it can write no file. It can use no
//! more memory than [`MEMORY`] bytes and no more CPU time than [`SECONDS`] seconds. On Linux it
//! ends when haft does. A hostile document in it harms nobody.

use std::{io, os::unix::ffi::OsStringExt as _, process::ExitCode, sync::Arc};

use haft_host::Local;
use haft_tools::PdfReader;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::reexec;
use crate::cli::exit;

/// The argument that haft starts itself with; nobody types it.
pub const ARGUMENT: &str = "--read-pdf-of-standard-input";

/// Most bytes of memory, addresses that are not used included.
const MEMORY: u64 = 1 << 30;
/// Most seconds of computing; who waits for it gives up before.
const SECONDS: u64 = 25;

/// Reads documents in processes of this program, on this machine.
pub fn reader(host: &Arc<Local>) -> PdfReader {
    PdfReader::Apart {
        host: host.clone(),
        program: vec![reexec::own().into_vec(), ARGUMENT.into()],
    }
}

/// Reads the document on standard input, in a process that [`reader`] starts.
pub fn serve() -> ExitCode {
    let read = limit().and_then(|()| haft_tools::read_pdf(io::stdin().lock(), io::stdout()));
    match read {
        Ok(code) => ExitCode::from(code),
        Err(error) => exit::code(&Err(error.into())),
    }
}

fn limit() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    lower(Resource::Core, 0)?;
    lower(Resource::Fsize, 0)?;
    lower(Resource::Nofile, 0)?;
    lower(Resource::Cpu, SECONDS)?;
    lower(Resource::As, MEMORY)
}

/// Lowers a limit for good; a lower one stays.
fn lower(what: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(what);
    let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    Ok(setrlimit(what, Rlimit { current: least(now.current), maximum: least(now.maximum) })?)
}
