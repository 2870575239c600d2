//! The journal of files that change together, and the recovery of what a killed run left half done.
//!
//! **Invariant:** half-done changes that are found at a start are rolled back before anything else
//! changes files, unless a disk does not answer. A file that somebody changed since is left alone,
//! and named. The files may lie anywhere: a run repairs what a run in another folder left.

use std::{io, path::Path, sync::Arc};

use haft_host::{Host, Local};
use haft_session::{CrashLeftovers, Journals, SessionError, SessionId, Store};
use haft_tool::{Journal, Journaled, Rollback, roll_back};
use haft_types::{HostPath, Receipt};

use crate::undo;

/// Most files that one notice names.
const NAMED: usize = 5;

/// The journals of one session.
struct OfSession {
    journals: Journals,
    session: SessionId,
}

struct Open(haft_session::Journal);

/// The journal in which a session records which files change together.
pub fn of(home: &Path, session: &SessionId) -> Arc<dyn Journal> {
    Arc::new(OfSession { journals: Journals::open(home), session: session.clone() })
}

impl Journal for OfSession {
    fn begin(&self, receipts: &[Receipt]) -> io::Result<Box<dyn Journaled>> {
        let begun = self.journals.begin(&self.session, receipts).map_err(io::Error::other)?;
        Ok(Box::new(Open(begun)))
    }
}

impl Journaled for Open {
    fn end(self: Box<Self>) -> io::Result<()> {
        self.0.end().map_err(io::Error::other)
    }
}

/// Restores the files that killed runs had written in part, and reports which. It waits for the
/// disk.
pub fn put_torn_back(ledger: &Path, say: &dyn Fn(String)) {
    match Local::put_torn_back(ledger) {
        Ok(files) => files.iter().for_each(|(path, end)| match end {
            Ok(()) => say(format!("a change was cut off, and is taken back: {path} as before it")),
            Err(why) => say(format!(
                "{path} was left as it is when a change that was cut off was taken back: {why}"
            )),
        }),
        Err(error) => say(format!("a change that was cut off: {}: {error}", ledger.display())),
    }
}

/// Rolls back what killed runs left half done, and reports what it did. It waits for the disk.
pub fn recover(home: &Path, host: &dyn Host, settings: &haft_config::Undo, say: &dyn Fn(String)) {
    let told = |error: &SessionError| say(format!("a change that was cut off: {error}"));
    let (left, unread) = match Journals::open(home).left() {
        Ok(found) => found,
        Err(error) => return told(&error),
    };
    unread.iter().for_each(told);
    if left.is_empty() {
        return;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => return say(format!("a change that was cut off waits: {error}")),
    };
    let store = Store::open(home);
    for left in left {
        if let Err(error) = runtime.block_on(mend(&store, host, settings, left, say)) {
            told(&error);
        }
    }
}

async fn mend(
    store: &Store,
    host: &dyn Host,
    settings: &haft_config::Undo,
    left: CrashLeftovers,
    say: &dyn Fn(String),
) -> Result<(), SessionError> {
    let images = undo::kept(store, &left.session, settings);
    let mended = roll_back(host, &*images, &left.receipts, true).await;
    report(&mended, say);
    // What only has to wait for room or rights is tried again.
    if mended.again { Ok(()) } else { left.end() }
}

fn report(mended: &Rollback, say: &dyn Fn(String)) {
    if !mended.restored.is_empty() {
        let files = names(mended.restored.iter());
        say(format!(
            "a change of several files was cut off, and is taken back: {files} as before it"
        ));
    }
    for (path, why) in &mended.left {
        say(format!(
            "{path} was left as it is when a change of several files was taken back: {why}"
        ));
    }
}

fn names<'a>(paths: impl ExactSizeIterator<Item = &'a HostPath>) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let mut names: Vec<String> = paths.take(NAMED).map(ToString::to_string).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
