//! Hosts: where files are read and programs run.
//!
//! A [`Host`] is one place to act, this machine or another. Tools see nothing but these traits. So
//! the same tool works on a local disk, in memory, and on a remote machine.
//!
//! **Invariant:** a path is looked up once ([`Fs::locate`]) and then used only through the
//! [`Located`] handle. So what was checked is what is accessed. This crate knows no tool, no rule
//! and no model.

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
    /// Its path style.
    fn style(&self) -> Style;
    /// The home folder of the user that haft acts as on this host.
    fn home(&self) -> &HostPath;
    /// The folder for temporary files.
    fn temp(&self) -> &HostPath;
    /// The properties and capabilities of the host.
    fn caps(&self) -> Caps;
    /// Its file system.
    fn fs(&self) -> &dyn Fs;
    /// Runs its programs; `None` if it can run none.
    fn shell(&self) -> Option<&dyn Shell>;
    /// Its own search; `None` if only [`Fs`] can be walked.
    fn search(&self) -> Option<&dyn Search>;
    /// Reports whether a program there accepts connections at this TCP port. The network is that of
    /// `process`, or haft's own if that is `None`. The check disturbs nobody if the host can tell
    /// without connecting.
    fn listens(&self, port: u16, process: Option<u32>) -> BoxFuture<'_, bool> {
        let _ = (port, process);
        Box::pin(std::future::ready(false))
    }
    /// The addresses with this port at which a program receives, such as `127.0.0.1:80` or `udp
    /// [::]:53`. The program is the one that was started as this process, or one that came of it
    /// while it lives. `None` if that cannot be known, or if no program does.
    fn listens_of(&self, port: u16, process: u32) -> BoxFuture<'_, Option<Vec<String>>> {
        let _ = (port, process);
        Box::pin(std::future::ready(None))
    }
    /// Names of variables that its programs are not given because their values look like secrets.
    fn withheld(&self) -> Vec<String> {
        Vec::new()
    }
    /// Scans whole trees; `None` if what a program changed cannot be found.
    fn surveys(&self) -> Option<&dyn TreeScanner> {
        None
    }
    /// Copies git repositories; `None` if that is not done.
    fn repositories(&self) -> Option<&Repositories> {
        None
    }
}

/// Properties and capabilities of a host, as probed, never as assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Operating system and architecture, for the model: `linux x86_64`.
    pub platform: String,
    /// The program that runs shell scripts, such as `/bin/bash`; `None` without a shell.
    pub shell: Option<HostPath>,
    /// True when paths are opened in one step that no link can leave (`openat2`).
    pub atomic_open: bool,
}
