//! The process in which PDF documents are read: haft itself, started anew for each of them.
//!
//! **Invariant:** before the first byte of the document is read, the process has given up what it
//! does not need: it can open no file and no connection, write no file, take no more memory than
//! [`MEMORY`] and no more computing than [`SECONDS`], and it ends when haft does. What a hostile
//! document does there harms nobody.

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

/// Reads documents by this program, on this machine.
pub fn reader(host: &Arc<Local>) -> PdfReader {
    PdfReader::Apart {
        host: host.clone(),
        program: vec![reexec::own().into_vec(), ARGUMENT.into()],
    }
}

/// Reads the document on standard input, as [`reader`] has it done.
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
