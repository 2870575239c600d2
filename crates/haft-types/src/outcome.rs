//! What a call gave back: to the model, to programs, to people, and for undo.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Blob, Detail, EntryKind, Hash, HostPath, Part, Rights, Text};

/// The field of data that names tools which are known from here on.
const LOADED: &str = "loaded";
/// Most of them.
const LOADED_MAX: usize = 50;

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was asked.
    #[default]
    Done,
    /// It tried and failed, or its input was wrong.
    Failed,
    /// A person, a rule or a hook said no.
    Denied,
    /// It was interrupted; what it has is partial.
    Cancelled,
    /// It timed out; what it has is partial.
    TimedOut,
}

impl Status {
    /// Reports whether wires mark the result as an error.
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Done)
    }
}

/// Why a call was denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The rule that denies it, as it is written. None where a mode, a place, a hook or a person
    /// denies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in a sentence.
    pub reason: String,
}

/// The kind of change to one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "snake_case")]
pub enum ReceiptAction {
    /// The path did not exist before.
    Created,
    /// The content changed.
    Changed,
    /// The path no longer exists.
    Deleted,
    /// The entry has another name now.
    Renamed {
        /// The path before.
        from: HostPath,
    },
}

/// The record of one change: enough to check it, undo it, and see that repeating it is harmless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The host on which it happened.
    pub host: Text,
    /// The real path, links resolved.
    pub path: HostPath,
    /// The kind of change.
    #[serde(flatten)]
    pub action: ReceiptAction,
    /// The kind of entry that changed. An entry that turned from one kind into another has a
    /// receipt of each.
    #[serde(default, skip_serializing_if = "is_file")]
    pub kind: EntryKind,
    /// Hash of the content before; none where there was no file, or it was not hashed. The content
    /// of a link is its target, that of a folder is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// Hash of the content after; none where the file no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// The tolerance under which the place was matched; none for an exact match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Text>,
    /// Replaced byte ranges of the content before: start and end, from 0, end exclusive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<(u64, u64)>,
    /// The content before, stored for undo; none where nothing was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_image: Option<Blob>,
    /// Owner, permissions and attributes before, of a file that is gone from this path or has other
    /// ones now.
    #[serde(flatten)]
    pub rights: Option<Rights>,
    /// Owner, permissions and attributes after, where the change set others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights_after: Option<Rights>,
    /// Folders that were created for it, topmost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<HostPath>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_file(kind: &EntryKind) -> bool {
    *kind == EntryKind::File
}

impl Receipt {
    /// A receipt of a change to a path of a host, without what is known of the content.
    pub fn new(host: impl Into<Text>, path: HostPath, action: ReceiptAction) -> Self {
        Self {
            host: host.into(),
            path,
            action,
            kind: EntryKind::File,
            before: None,
            after: None,
            tolerance: None,
            ranges: Vec::new(),
            pre_image: None,
            rights: None,
            rights_after: None,
            made: Vec::new(),
        }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What the model reads.
    #[serde(default)]
    pub content: Vec<Part>,
    /// What programs read; fits the tool's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What people see; never sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Notes for people besides the detail. The same words are in `content`: `[created: a.txt]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The receipts of the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
    /// Why it was denied, for programs; none where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
    /// True where something of the call goes on behind it, such as a job: what was set up for its
    /// programs is kept then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
}

impl Outcome {
    /// A finished call with one text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], ..Self::default() }
    }

    /// A call that ended in `status` with one text part.
    pub fn ended(status: Status, text: impl Into<String>) -> Self {
        Self { status, ..Self::text(text) }
    }

    /// Attaches what programs read.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Attaches what people see.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<Detail>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Attaches a change.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipts.push(receipt);
        self
    }

    /// Adds a note to the result, in brackets: for the model and for people.
    pub fn note(&mut self, text: &str) {
        let text = format!("[{text}]");
        self.content.push(Part::text(text.clone()));
        self.notes.push(text);
    }

    /// The names of tools that the data says are known from here on, at most 50.
    pub fn loaded_tools(&self) -> Vec<&str> {
        let names = self.data.as_ref().and_then(|data| data.get(LOADED)?.as_array());
        names.into_iter().flatten().filter_map(Value::as_str).take(LOADED_MAX).collect()
    }

    /// Data that say so.
    pub fn of_loaded_tools(names: &[&str]) -> Value {
        serde_json::json!({ LOADED: names })
    }

    /// All text parts, joined by line feeds.
    pub fn joined_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// A failure that the model can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ToolError {
    /// How the call ends.
    pub status: Status,
    /// One sentence that says what is wrong, with the offending value in it.
    pub message: String,
    /// One sentence that says what to do next.
    pub hint: Option<Text>,
    /// The rule that denies it; none where no rule does.
    pub rule: Option<String>,
}

impl ToolError {
    /// A failure without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self { status: Status::Failed, message: message.into(), hint: None, rule: None }
    }

    /// A refusal by a rule, a hook or a person.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { status: Status::Denied, ..Self::new(message) }
    }

    /// Adds the advice.
    #[must_use]
    pub fn hint(self, hint: impl Into<Text>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Names the rule that denies it.
    #[must_use]
    pub fn by_rule(self, rule: Option<String>) -> Self {
        Self { rule, ..self }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n{hint}"),
            None => Ok(()),
        }
    }
}

impl From<ToolError> for Outcome {
    fn from(error: ToolError) -> Self {
        let text = error.to_string();
        let ToolError { status, message: reason, rule, .. } = error;
        let denial = (status == Status::Denied).then_some(Denial { rule, reason });
        Self { denial, ..Self::ended(status, text) }
    }
}

impl From<Result<Self, ToolError>> for Outcome {
    fn from(result: Result<Self, ToolError>) -> Self {
        result.unwrap_or_else(Self::from)
    }
}
