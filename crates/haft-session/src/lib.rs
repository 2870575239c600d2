//! The record of sessions: an append-only log of events, the blobs beside it, and the folds that
//! turn events back into a conversation.
//!
//! On disk, below the home folder of haft:
//!
//! ```text
//! sessions/<id>/log.jsonl        one event a line, each naming the hash of the line before
//! sessions/<id>/log.torn-<n>     what a crash left unfinished at the end of the log
//! sessions/<id>/blobs/<hash>     everything above 8 KiB, named by its content
//! sessions/<id>/undo/<hash>      what changed files held before
//! sessions/<id>/before/<n>       copies of what files hold, while a process may run commands
//! sessions/<id>/out/<call>       whole outputs of calls: `out://CALL`
//! journal/<id>.json              what several files hold that are changing together
//! ```
//!
//! Two formats of the log are read. In the second, what a result says more than once is stored once.
//! A log keeps the format that it began with, and one of a later format is refused by name. A session
//! is resumed from [`History`], which reads no result that a summary stands for.
//!
//! **Invariant:** what [`Log::append`] returned survives SIGKILL of the process; what
//! [`Log::sync`] returned for survives a power cut; a failed append leaves the log as it was. One
//! process writes a session at a time; reading needs no lock.
//!
//! It knows no wire, no tool and no terminal, and it reads no environment: the home folder is
//! given to it.

mod answer;
mod blobs;
mod changes;
mod copies;
mod error;
mod evidence;
mod files;
mod fold;
mod head;
mod history;
mod journal;
mod large_values;
mod list;
mod lock_owner;
mod log;
mod newest;
mod outputs;
mod pre_images;
mod read;
mod recent;
mod repair;
mod repeats;
mod snip;
mod store;
mod sync;
mod tree;

pub use crate::{
    blobs::{BLOB_MAX, Blobs},
    changes::{Change, Changes, TakenBack, is_looked},
    copies::{Copies, CrashLeftovers as LeftCopies},
    error::{LineError, LineFault, SessionError},
    evidence::{CheckRun, Evidence, EvidenceReport, EvidenceState},
    fold::{Fold, conversation, note_state, on_branch, states},
    history::History,
    journal::{CrashLeftovers, Journal, Journals},
    large_values::{Format, INLINE_MAX, Packed},
    list::{Listing, SessionInfo, Skipped, TITLE_MAX},
    log::{Log, fresh_key, recalled},
    newest::Newest,
    outputs::{Usage, bytes_below},
    pre_images::{Collected, PinGuard, PreImages, Reading, Unfinished},
    read::{Branch, Events, LINE_MAX, Verdict},
    recent::Lately,
    store::{SessionId, Store},
    sync::Syncer,
    tree::{Tree, branches},
};
