//! Stores permanent allow rules: in the settings of a trusted project, otherwise in the person's
//! own haft folder.
//!
//! **Invariant:** git does not show the file, or the person is warned that git may show it. Nothing
//! is written into a project that is not trusted.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use haft_config::{LOCAL_SETTINGS, add_rule, keep_from_git, own_settings};
use haft_host::is_left_out;
use haft_tool::SaveRule;

/// Keeps allowances for good in the person's own settings for the project.
pub(crate) struct ProjectAllowances {
    file: PathBuf,
    /// The person's own folder, which is shown as `~`.
    user_home: Option<PathBuf>,
    /// Whether it stands in the project.
    is_inside: bool,
    /// Whether it was told that git may show it.
    is_told: AtomicBool,
}

impl ProjectAllowances {
    /// Keeps them for a project; in its folder where that is trusted, else the rule would not count the
    /// next time.
    pub(crate) fn of(
        project: &Path,
        (haft_home, user_home): (&Path, Option<&Path>),
        trusted: bool,
    ) -> Self {
        let file = if trusted {
            project.join(".haft").join(LOCAL_SETTINGS)
        } else {
            own_settings(haft_home, project)
        };
        let user_home = user_home.map(Path::to_owned);
        Self { file, user_home, is_inside: trusted, is_told: AtomicBool::new(false) }
    }

    /// What is to be said where git may show the file.
    fn shown(&self) -> Option<String> {
        let folder = self.file.parent().filter(|_| self.is_inside)?;
        let why = match keep_from_git(folder) {
            Ok(None) => return None,
            Ok(Some(text)) if is_left_out(&text, LOCAL_SETTINGS) => return None,
            Ok(Some(_)) => {
                let ignore = folder.join(".gitignore");
                format!(
                    "{} does not name it; add a line {LOCAL_SETTINGS} to that",
                    ignore.display()
                )
            }
            Err(error) => error.to_string(),
        };
        let is_new = !self.is_told.swap(true, Ordering::Relaxed);
        is_new.then(|| format!("git may show {} as a new file: {why}", self.file.display()))
    }
}

impl SaveRule for ProjectAllowances {
    fn place(&self) -> String {
        match self.user_home.as_ref().map(|home| self.file.strip_prefix(home)) {
            Some(Ok(within)) => format!("~/{}", within.display()),
            _ => self.file.display().to_string(),
        }
    }

    fn save(&self, rule: &str) -> Result<Option<String>, String> {
        let shown = self.shown();
        add_rule(&self.file, "allow", rule).map_err(|error| error.to_string())?;
        Ok(shown)
    }
}
