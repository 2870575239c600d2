//! Reads a log from its end, for questions whose answer stands near there.
//!
//! **Invariant:** memory is bounded by [`LINE_MAX`], and lines that cannot be read are left out:
//! whoever opens the session tells of them.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use haft_types::{Event, EventId};

use crate::{Blobs, LINE_MAX, SessionError, files, head::Head, large_values};

/// Bytes that are read in one step.
const STEP: usize = 64 << 10;

/// Some events of the branch of a log's last event, the newest first.
pub struct Newest {
    file: File,
    blobs: Blobs,
    kinds: &'static [&'static str],
    /// Where what was read begins.
    start: u64,
    /// What was read and not given yet.
    bytes: Vec<u8>,
    /// A line that is too long is being passed by.
    too_long: bool,
    /// The event before the last one that was on the branch; none before the first.
    parent: Option<EventId>,
    ended: bool,
}

impl Newest {
    pub(crate) fn open(
        log: &Path,
        blobs: Blobs,
        kinds: &'static [&'static str],
    ) -> Result<Self, SessionError> {
        let failed = |error| SessionError::io("open", log, error);
        let start = files::regular(log).map_err(failed)?.len();
        let file = File::open(log).map_err(failed)?;
        let parent = Some(EventId(u64::MAX));
        let (bytes, too_long, ended) = (Vec::new(), false, false);
        let mut newest = Self { file, blobs, kinds, start, bytes, too_long, parent, ended };
        // What stands behind the last line feed is no whole line.
        newest.line();
        Ok(newest)
    }

    /// The line before, without its line feed; none at the begin, or where the disk fails.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let feed = memchr::memrchr(b'\n', &self.bytes);
            if let Some(at) = feed {
                let line = self.bytes.split_off(at + 1);
                self.bytes.truncate(at);
                if std::mem::take(&mut self.too_long) || line.len() > LINE_MAX {
                    continue;
                }
                return Some(line);
            }
            if self.start == 0 {
                let is_last = !std::mem::replace(&mut self.ended, true) && !self.too_long;
                return is_last.then(|| std::mem::take(&mut self.bytes));
            }
            if self.bytes.len() > LINE_MAX {
                self.bytes.clear();
                self.too_long = true;
            }
            if self.fill().is_err() {
                self.ended = true;
                return None;
            }
        }
    }

    /// Reads what stands before.
    fn fill(&mut self) -> io::Result<()> {
        // As much as there is already: a long line is moved few times.
        let step = STEP.max(self.bytes.len()) as u64;
        let from = self.start.saturating_sub(step);
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(from))?;
        (&self.file).take(self.start - from).read_to_end(&mut bytes)?;
        bytes.append(&mut self.bytes);
        (self.bytes, self.start) = (bytes, from);
        Ok(())
    }
}

impl Iterator for Newest {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while let Some(wanted) = self.parent.filter(|_| !self.ended) {
            let line = self.line()?;
            let Some(head) = Head::of(&line).filter(|head| head.id <= wanted) else { continue };
            // As branches have it: a parent that is not older is the event before.
            self.parent =
                head.parent.map(|parent| parent.min(EventId(head.id.0.saturating_sub(1))));
            if self.kinds.contains(&head.kind)
                && let Ok(event) = large_values::decode(&line, &self.blobs)
            {
                return Some(event);
            }
        }
        None
    }
}
