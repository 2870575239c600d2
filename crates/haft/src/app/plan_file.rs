//! The file beside a session's log that its plan is written to.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_session::SessionId;
use haft_tool::{Permissions, StandingNotes, StateNote};
use haft_tools::{PLAN_MAX, PlanFile, plan_begins};
use rustix::fs::{Mode, OFlags, open};

/// The folder in that of the session.
const FOLDER: &str = "plans";

/// The file for the plan of one session.
pub struct SessionPlan {
    path: PathBuf,
    /// The same as text.
    shown: String,
}

impl SessionPlan {
    /// The file for a session below haft's home; none where its path is no text.
    pub fn of(home: &Path, id: &SessionId) -> Option<Self> {
        // A policy compares paths without links.
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        let folder = home.join("sessions").join(id.as_str()).join(FOLDER);
        let path = folder.join(format!("{}.md", id.short()));
        let shown = path.to_str()?.to_owned();
        Some(Self { path, shown })
    }
}

/// What the note about the mode stands below.
pub const MODE_NOTE: &str = "The mode";

/// Keeps in the model's view what mode plan means, while it is on.
pub struct ModeNote(pub Option<Arc<dyn PlanFile>>);

impl StandingNotes for ModeNote {
    fn notes(&self, permissions: &Permissions) -> Vec<StateNote> {
        let note = || StateNote {
            heading: MODE_NOTE.to_owned(),
            words: plan_begins(self.0.as_deref()),
            ..StateNote::default()
        };
        (permissions.mode == haft_types::Mode::Plan).then(note).into_iter().collect()
    }
}

impl PlanFile for SessionPlan {
    fn path(&self) -> &str {
        &self.shown
    }

    fn read(&self) -> Result<Option<String>, String> {
        // What a link or a pipe holds is no plan.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match open(&self.path, flags, Mode::empty()) {
            Ok(file) => fs::File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(io::Error::from(error).to_string()),
        };
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Err("it is no file".to_owned());
        }
        // One byte more tells that it is too long.
        let most = u64::try_from(PLAN_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let mut text = Vec::new();
        file.take(most).read_to_end(&mut text).map_err(|error| error.to_string())?;
        if text.len() > PLAN_MAX {
            return Err(format!("it has more than {PLAN_MAX} bytes"));
        }
        String::from_utf8(text).map(Some).map_err(|_| "it is not UTF-8".to_owned())
    }

    fn prepare(&self) -> Result<(), String> {
        let folder = self.path.parent().unwrap_or(&self.path);
        // The session's folder is made by its log alone.
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}
