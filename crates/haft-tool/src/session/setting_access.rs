//! The settings that a model may see and change, as the tool for them knows them.

use haft_types::ToolError;
use serde_json::Value;

/// A setting as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingValue {
    /// The value in effect; null where nothing is set.
    pub value: Value,
    /// Where it was set, in words.
    pub from: String,
}

/// A change of a setting that was checked and is not made yet.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// The name with dots.
    pub name: String,
    /// The value in effect.
    pub old: Value,
    /// The value that is to be saved; null takes out what is saved.
    pub new: Value,
    /// The value that counts then: the same, or the default.
    pub then: Value,
    /// The file that is written, for people.
    pub file: String,
    /// What a person should know of it, in a sentence; none where there is nothing.
    pub note: Option<String>,
}

/// The settings that the model may see and change: a service of the session.
///
/// A name that it may not have is refused by each of these.
pub trait SettingAccess: Send + Sync {
    /// The names that the model may have.
    fn names(&self) -> Vec<String>;

    /// A setting as it is.
    ///
    /// # Errors
    /// When the model may not have it.
    fn get(&self, name: &str) -> Result<SettingValue, ToolError>;

    /// Checks a change, and makes none. Null is the way back to the default.
    ///
    /// # Errors
    /// When the model may not have the setting, or the value does not fit.
    fn check(&self, name: &str, value: &Value) -> Result<SettingChange, ToolError>;

    /// Makes a change that a person allowed.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing has changed.
    fn save(&self, change: &SettingChange) -> Result<(), ToolError>;
}
