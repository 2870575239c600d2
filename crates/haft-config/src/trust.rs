//! Which folders a person trusts, by their real paths.
//!
//! **Invariant:** an answer is for one folder, not for what is around it, and for the worktrees of git
//! that the repository in it has itself; a store that cannot be read trusts nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{ConfigError, files};

/// The answers of a person about folders, in `trust.json` of haft's home.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PathBuf,
    answers: Answers,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Answers {
    #[serde(default)]
    folders: BTreeMap<String, bool>,
    /// By project, for files outside of it that its instructions import.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    imports: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Trust {
    /// Reads the answers that were saved below haft's home; none are saved at first.
    ///
    /// # Errors
    /// When the file is there but cannot be read or understood.
    pub fn load(haft_home: &Path) -> Result<Self, ConfigError> {
        let file = haft_home.join("trust.json");
        let answers = read(&file)?;
        Ok(Self { file, answers })
    }

    /// The saved answer about a folder, else that about the repository whose worktree it is; none when
    /// it was never given, or the folder is gone.
    pub fn trusted(&self, folder: &Path) -> Option<bool> {
        let said = |folder: &Path| self.answers.folders.get(&key(folder).ok()?).copied();
        said(folder).or_else(|| said(&repository(folder)?))
    }

    /// The saved answers about files outside of a project that its instructions import.
    pub fn imports(&self, project: &Path) -> BTreeMap<String, bool> {
        let of = key(project).ok().and_then(|key| self.answers.imports.get(&key));
        of.cloned().unwrap_or_default()
    }

    /// Saves an answer about a file outside of a project that its instructions import.
    ///
    /// # Errors
    /// When the project is not there, or the answers cannot be written.
    pub fn set_import(
        &mut self,
        project: &Path,
        file: &str,
        counts: bool,
    ) -> Result<(), ConfigError> {
        let key = key(project)?;
        self.change(|answers| {
            answers.imports.entry(key).or_default().insert(file.to_owned(), counts);
        })
    }

    /// Saves an answer about a folder.
    ///
    /// # Errors
    /// When the folder is not there, or the answers cannot be written.
    pub fn set_trust(&mut self, folder: &Path, trusted: bool) -> Result<(), ConfigError> {
        let key = key(folder)?;
        self.change(|answers| {
            answers.folders.insert(key, trusted);
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut Answers)) -> Result<(), ConfigError> {
        // Read again, because another haft may have saved an answer meanwhile.
        let mut answers = read(&self.file)?;
        change(&mut answers);
        let mut json = serde_json::to_vec_pretty(&answers)
            .map_err(|error| ConfigError::content(&self.file, error.to_string()))?;
        json.push(b'\n');
        files::save(&self.file, &json)?;
        self.answers = answers;
        Ok(())
    }
}

/// The folder of the repository whose worktree a folder is: one that names it, and that it names. What
/// a folder says of itself alone is not believed.
fn repository(worktree: &Path) -> Option<PathBuf> {
    let pointer = fs::canonicalize(worktree).ok()?.join(".git");
    let first = |path: &Path| -> Option<PathBuf> {
        let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
        let text = files::read(path).ok().flatten().filter(|_| is_file)?;
        Some(PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
    };
    let named = first(&pointer)?;
    let named = named.to_str()?.strip_prefix("gitdir: ")?.to_owned();
    let own = fs::canonicalize(pointer.parent()?.join(named)).ok()?;
    let common = own.parent().filter(|all| all.ends_with(".git/worktrees"))?.parent()?;
    let back = own.join(first(&own.join("gitdir"))?);
    let is_same = fs::canonicalize(back).is_ok_and(|back| back == pointer);
    let of_common = fs::canonicalize(own.join(first(&own.join("commondir"))?));
    (is_same && of_common.is_ok_and(|of| of == common))
        .then(|| common.parent().map(Path::to_owned))?
}

fn read(file: &Path) -> Result<Answers, ConfigError> {
    let Some(text) = files::read(file)? else { return Ok(Answers::default()) };
    serde_json::from_str(&text).map_err(|error| {
        ConfigError::content(file, format!("{error}; repair it, or remove it to be asked anew"))
    })
}

/// The real path as text; bytes that are no UTF-8 are kept apart from each other.
fn key(folder: &Path) -> Result<String, ConfigError> {
    let real = fs::canonicalize(folder).map_err(|error| ConfigError::file(folder, error))?;
    let style = if cfg!(windows) { haft_types::Style::Windows } else { haft_types::Style::Posix };
    let path = haft_types::HostPath::new(real.as_os_str().as_encoded_bytes(), style)
        .map_err(|error| ConfigError::content(&real, error.to_string()))?;
    Ok(path.text().into_owned())
}
