//! Hosts: where files are read and programs run.
//!
//! A [`Host`] is one place to act, this machine or another. Tools see nothing but these traits, so
//! the same tool works on a local disk, in memory, and on a far machine.
//!
//! **Invariant:** a path is looked up once ([`Fs::locate`]) and then used only through the
//! [`Located`] handle, so that what was judged is what is touched. This crate knows no tool, no
//! rule and no model.

mod chunks;
mod fault;
mod fs;
mod generic_search;
mod git_settings;
mod lines;
mod local;
mod memory;
mod network;
mod out;
mod pattern;
mod queue;
mod search;
mod secrets;
mod shell;
mod shell_session;
mod spool;
mod tracked;
mod tree_scan;
mod walk;

use futures::future::BoxFuture;
use haft_types::{HostPath, Style};

pub use haft_sandbox::{
    Attack, Attempts, Cell, Guard, Level, Limits, Net, Probe, Restored, in_trees, seatbelt,
};

pub use crate::{
    fs::{
        DirEntry, Expect, FileKind, Fs, Handle, ListHow, Listing, Located, Source, Staged, Stamp,
        WriteHow, Written,
    },
    generic_search::{FsSearch, search_lines, search_names},
    git_settings::{
        GitSettings, Head, Repository, checked_out, git_settings, has_links, is_plain_cargo,
        is_plain_person, is_plain_toolchain, names_links, repository,
    },
    local::{
        Ancestor, CopyAt, GitReader, Local, Lookup, Loss, Missing, Repositories, SUPERVISORS,
        Snapshot, ancestors, end_supervisor, kept_copies, supervise, terminal,
    },
    memory::{FsOp, Memory},
    network::Network,
    out::{OutWriter, Outs},
    queue::{FileLock, Queues},
    search::{
        Filter, FindQuery, FoundLines, GrepMode, GrepQuery, NameMatch, Search, SearchError, Sink,
        Skip, Skipped, Walk,
    },
    shell::{
        Control, Exit, NoFolder, Output, PathLookup, Program, ReadOnlyRun, Running, Shell, Spawn,
        Stdin, Tried,
    },
    shell_session::{SessionCommand, TurnPart, TurnRecord, TurnRecords},
    spool::{OUT_END, Spool, SpoolLimits, Spooled, not_kept},
    tracked::{is_ignored, is_left_out, is_tracked},
    tree_scan::{
        Content, Copies, CreationTime, ExtraPaths, FileCount, GitId, IgnoredFolder, IgnoredTree,
        NewEntry, Node, Objects, SurveyError, SurveyLimits, TreeScan, TreeScanner,
    },
    walk::DEPTH_LIMIT,
};

/// One place to act. Hosts share nothing but this trait.
pub trait Host: Send + Sync {
    /// Stable name for rules, effects and the log: `local`, `memory`, `ssh:build-7`.
    fn name(&self) -> &str;
    /// How it writes paths.
    fn style(&self) -> Style;
    /// The home folder of the user that haft acts as there.
    fn home(&self) -> &HostPath;
    /// The folder for temporary files.
    fn temp(&self) -> &HostPath;
    /// What it is and can do.
    fn caps(&self) -> Caps;
    /// Its files.
    fn fs(&self) -> &dyn Fs;
    /// Its programs; none where nothing can run.
    fn shell(&self) -> Option<&dyn Shell>;
    /// Its own search; none where only [`Fs`] can be walked.
    fn search(&self) -> Option<&dyn Search>;
    /// Reports whether a program there takes connections at this TCP port, in the network that this process
    /// has. Looking disturbs nobody where the host can tell without connecting.
    fn listens(&self, port: u16, process: Option<u32>) -> BoxFuture<'_, bool> {
        let _ = (port, process);
        Box::pin(std::future::ready(false))
    }
    /// The addresses of this port at which a program that was started as this process, or came of it
    /// while it lives, takes what comes: `127.0.0.1:80`, `udp [::]:53`; none where that cannot be
    /// known, or nobody does.
    fn listens_of(&self, port: u16, process: u32) -> BoxFuture<'_, Option<Vec<String>>> {
        let _ = (port, process);
        Box::pin(std::future::ready(None))
    }
    /// Names of variables that its programs are not given, as what they hold looks like a secret.
    fn withheld(&self) -> Vec<String> {
        Vec::new()
    }
    /// What looks at whole trees; none where what a program changed cannot be found.
    fn surveys(&self) -> Option<&dyn TreeScanner> {
        None
    }
    /// What copies git repositories; none where that is not done.
    fn repositories(&self) -> Option<&Repositories> {
        None
    }
}

/// What a host is and can do, as probed; never a wish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Operating system and architecture, for the model: `linux x86_64`.
    pub platform: String,
    /// The program that runs shell scripts, such as `/bin/bash`; none without a shell.
    pub shell: Option<HostPath>,
    /// True when paths are opened in one step that no link can leave (`openat2`).
    pub atomic_open: bool,
}
