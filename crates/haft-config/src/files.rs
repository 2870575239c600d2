//! Reading and writing of small files: bounded, atomic, for the person's eyes only.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use haft_types::Hash;
use serde_json::Value;

/// The largest file that is read, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;

/// What went wrong with a file or the environment.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nobody said where state belongs.
    #[error("neither HAFT_HOME nor HOME is set: set HAFT_HOME to a folder that can be written")]
    NoHome,
    /// `HAFT_HOME` would be another folder in every working folder.
    #[error(
        "HAFT_HOME is {0:?}, which is no absolute path: write it from / on, or from ~/ on for a \
         folder in the home folder"
    )]
    NotAbsolute(PathBuf),
    /// It could not be read or written.
    #[error("{path}: {error}; check that it exists and that you may use it")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// It is not what it should be.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
}

impl ConfigError {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    pub(crate) fn content(path: &Path, problem: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), problem: problem.into() }
    }
}

/// Reads a text file of at most [`MAX_FILE`] bytes; none where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    // A pipe or device under that name must neither block nor be drained.
    match fs::metadata(path) {
        Err(error) if is_missing(&error) => return gone(path).map_or(Ok(None), Err),
        Err(error) => return Err(ConfigError::file(path, error)),
        Ok(found) if !found.is_file() => {
            return Err(ConfigError::content(path, "it is no regular file; remove or replace it"));
        }
        Ok(_) => {}
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(ConfigError::file(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ConfigError::file(path, error))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(ConfigError::content(path, format!("it is over {MAX_FILE} bytes; shorten it")));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ConfigError::content(path, format!("it is not UTF-8 at byte {at}; save it as UTF-8"))
    })
}

/// The link on the way to a file that leads to nothing: somebody meant there to be a file.
fn gone(path: &Path) -> Option<ConfigError> {
    let is_link = |path: &&Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) && !path.exists()
    };
    let link = path.ancestors().find(is_link)?;
    let target = fs::read_link(link).unwrap_or_default();
    let problem = format!(
        "{} is a link to {}, which is not there; remove the link or bring the file back",
        link.display(),
        target.display()
    );
    Some(ConfigError::content(path, problem))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes a file as a whole or not at all, readable by its owner only; makes its folder.
///
/// A link is followed, so that settings kept elsewhere stay there.
///
/// # Errors
/// When the folder cannot be made or the file not be written; what was there stays.
pub fn save(path: &Path, content: &[u8]) -> Result<(), ConfigError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |error| ConfigError::file(path, error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.ok_or_else(|| ConfigError::content(path, "it names no file"))?;
    create(folder).map_err(failed)?;
    // The temporary file is 0600 from its first moment and removed when anything below fails.
    let mut file = tempfile::Builder::new().prefix(".haft-").tempfile_in(folder).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    // Not every system lets a folder be synced; the file itself is whole either way.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Makes a folder with those above it, for their owner only; one that is there stays as it is.
///
/// # Errors
/// When it cannot be made, or something else has its name.
pub fn make_folder(folder: &Path) -> Result<(), ConfigError> {
    create(folder).map_err(|error| ConfigError::file(folder, error))
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The person's settings for one project that stand in haft's home, of which the project knows nothing:
/// by the name of its folder, and what tells it from others of that name.
pub fn own_settings(haft_home: &Path, project: &Path) -> PathBuf {
    let real = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    let hash = Hash::of(real.as_os_str().as_encoded_bytes()).to_string();
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = name.chars().filter(is_plain).take(32).collect();
    haft_home.join("projects").join(format!("{name}-{}", &hash[..16])).join("settings.toml")
}

/// The name of the person's settings among those of a project.
pub const LOCAL_SETTINGS: &str = "settings.local.toml";

/// Has git leave the person's settings out that stand in a project's folder: by a file beside them, which
/// is made where there is none. Gives the text of one that is there.
///
/// # Errors
/// When it cannot be made or read.
pub fn keep_from_git(folder: &Path) -> Result<Option<String>, ConfigError> {
    let path = folder.join(".gitignore");
    create(folder).map_err(|error| ConfigError::file(folder, error))?;
    match File::create_new(&path) {
        Ok(mut file) => {
            let text = format!("{LOCAL_SETTINGS}\n");
            file.write_all(text.as_bytes()).map_err(|error| ConfigError::file(&path, error))?;
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path),
        Err(error) => Err(ConfigError::file(&path, error)),
    }
}

/// Adds a rule to the list `allow`, `ask` or `deny` of a settings file, keeping all else in it.
///
/// # Errors
/// When the file cannot be read or written, is no TOML, or has something else in that place.
pub fn add_rule(path: &Path, list: &str, rule: &str) -> Result<(), ConfigError> {
    let text = read(path)?.unwrap_or_default();
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error| ConfigError::content(path, format!("{error}")))?;
    let wrong = |key: &str| ConfigError::content(path, format!("{key} is not what it should be"));
    let permissions = document
        .entry("permissions")
        .or_insert_with(|| toml_edit::Item::Table(toml_edit::Table::new()))
        .as_table_like_mut()
        .ok_or_else(|| wrong("permissions"))?;
    let rules = permissions
        .entry(list)
        .or_insert(toml_edit::value(toml_edit::Array::new()))
        .as_array_mut()
        .ok_or_else(|| wrong(list))?;
    if !rules.iter().any(|known| known.as_str() == Some(rule)) {
        rules.push(rule);
    }
    save(path, document.to_string().as_bytes())
}

/// Sets a value in a settings file by its name with dots, keeping all else in it; null takes it out.
///
/// # Errors
/// When the file cannot be read or written, is no TOML, or has something else in that place.
pub fn set_value(path: &Path, name: &str, value: &Value) -> Result<(), ConfigError> {
    let text = read(path)?.unwrap_or_default();
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error| ConfigError::content(path, format!("{error}")))?;
    let (tables, last) = name.rsplit_once('.').unwrap_or(("", name));
    let mut inner: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for table in tables.split('.').filter(|table| !table.is_empty()) {
        // One that holds tables alone has no line of its own.
        let mut new = toml_edit::Table::new();
        new.set_implicit(true);
        let item = inner.entry(table).or_insert(toml_edit::Item::Table(new));
        if let Some(model) = item.as_str().filter(|_| table == "model").map(str::to_owned) {
            // A text alone is the name.
            let mut named = toml_edit::InlineTable::new();
            named.insert("name", model.into());
            *item = toml_edit::value(named);
        }
        inner = item.as_table_like_mut().ok_or_else(|| {
            ConfigError::content(path, format!("{table} is not what it should be"))
        })?;
    }
    match toml_value(value) {
        Some(value) => {
            // What stands around the value stays there.
            let before = inner.get(last).and_then(|item| item.as_value());
            let decor = before.map(toml_edit::Value::decor).cloned();
            let mut value = value;
            if let Some(decor) = decor {
                *value.decor_mut() = decor;
            }
            match inner.get_mut(last) {
                Some(item) => *item = toml_edit::Item::Value(value),
                None => drop(inner.insert(last, toml_edit::Item::Value(value))),
            }
        }
        None => drop(inner.remove(last)),
    }
    save(path, document.to_string().as_bytes())
}

/// A value as TOML has it; none for null, and what is null inside of one is left out.
fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            toml_edit::Value::Array(items.iter().filter_map(toml_value).collect())
        }
        Value::Object(fields) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in fields {
                if let Some(value) = toml_value(value) {
                    table.insert(name, value);
                }
            }
            toml_edit::Value::InlineTable(table)
        }
    })
}

/// Sets the model that answers in a settings file, keeping all else in it.
///
/// # Errors
/// When the file cannot be read or written, or is no TOML.
pub fn set_model(path: &Path, name: &str) -> Result<(), ConfigError> {
    let text = read(path)?.unwrap_or_default();
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error| ConfigError::content(path, format!("{error}")))?;
    match document.get_mut("model").and_then(|model| model.as_table_like_mut()) {
        Some(model) => drop(model.insert("name", toml_edit::value(name))),
        None => drop(document.insert("model", toml_edit::value(name))),
    }
    save(path, document.to_string().as_bytes())
}
