//! Which folders a person trusts, by their real paths.
//!
//! **Invariant:** an answer is for one folder, not for what is around it; a store that cannot be
//! read trusts nothing.

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

    /// The saved answer about a folder; none when it was never given, or the folder is gone.
    pub fn trusted(&self, folder: &Path) -> Option<bool> {
        self.answers.folders.get(&key(folder).ok()?).copied()
    }

    /// Saves an answer about a folder.
    ///
    /// # Errors
    /// When the folder is not there, or the answers cannot be written.
    pub fn set_trust(&mut self, folder: &Path, trusted: bool) -> Result<(), ConfigError> {
        let key = key(folder)?;
        // Read again, because another haft may have saved an answer meanwhile.
        let mut answers = read(&self.file)?;
        answers.folders.insert(key, trusted);
        let mut json = serde_json::to_vec_pretty(&answers)
            .map_err(|error| ConfigError::content(&self.file, error.to_string()))?;
        json.push(b'\n');
        files::save(&self.file, &json)?;
        self.answers = answers;
        Ok(())
    }
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
