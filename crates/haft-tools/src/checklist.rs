//! What the lists of things to do have in common: words in one line, and their bounds.
//!
//! **Invariant:** a list is short enough to stand in the model's view as a whole, so that it can be
//! attached again word for word.

use haft_types::{TodoItem, TodoState, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most things of one list.
pub(crate) const MOST: usize = 100;
/// Most characters of the words of one thing.
pub(crate) const LINE: usize = 300;
/// Most bytes of all of them.
pub(crate) const BYTES: usize = 12_000;

// How far a thing is, as models write it: their schema has no room for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl Status {
    /// As people are shown it.
    pub(crate) const fn state(self) -> TodoState {
        match self {
            Self::Pending => TodoState::Pending,
            Self::InProgress => TodoState::InProgress,
            Self::Completed => TodoState::Completed,
        }
    }

    /// As a line of a list has it.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
        }
    }
}

/// Words in one line, without what cannot be seen.
///
/// # Errors
/// Names the `field` whose words are none, too long, or have control characters.
pub(crate) fn line(written: &str, field: &str) -> Result<String, ToolError> {
    let line = written.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        let error = ToolError::new(format!("{field} is empty"));
        return Err(error.hint("Say in a few words what is to be done."));
    }
    checked(&line, field, LINE)?;
    Ok(line)
}

/// Refuses a text that is too long or has control characters.
///
/// # Errors
/// Names the field.
pub(crate) fn checked(text: &str, field: &str, most: usize) -> Result<(), ToolError> {
    if let Some(odd) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        let code = u32::from(odd);
        let error = ToolError::new(format!("{field} has the control character U+{code:04X}"));
        return Err(error.hint("Write it without."));
    }
    let length = text.chars().count();
    if length > most {
        let start: String = text.chars().take(40).collect();
        let text = format!("{field} has {length} characters, more than {most}: {start:?}...");
        return Err(ToolError::new(text).hint("Say it shorter; a file has room for more."));
    }
    Ok(())
}

/// Refuses a list that is too long; `bytes` are those of its words.
///
/// # Errors
/// Says what it has, and how much that may be.
pub(crate) fn within(count: usize, bytes: usize) -> Result<(), ToolError> {
    if count > MOST || bytes > BYTES {
        let text = format!(
            "the list would have {count} items of {bytes} bytes, and may have {MOST} of {BYTES}"
        );
        return Err(ToolError::new(text).hint(
            "Leave out what is done, and put small steps together; a file has room for more.",
        ));
    }
    Ok(())
}

/// How many are done, of how many.
pub(crate) fn count(items: &[TodoItem]) -> (usize, usize) {
    (items.iter().filter(|item| item.state == TodoState::Completed).count(), items.len())
}
