//! Whatever needs a person is one [`Question`], whoever asks and wherever it is answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentPath, CallId, Detail};

/// Identifies a question inside a session: `q1`, `q2`, ...
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub Box<str>);

impl QuestionId {
    /// The id of the `n`-th question of a session, from 1.
    pub fn nth(n: u64) -> Self {
        Self(format!("q{n}").into())
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Whether this call may run.
    Permission,
    /// A choice between options.
    Choice,
    /// Values for named fields.
    Form,
    /// An action at an address, such as signing in.
    Url,
    /// Whether this plan is to be carried out.
    Plan,
    /// Whether settings of this folder may take effect.
    Trust,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The id in the reply: `allow`, `deny`, `always`.
    pub id: String,
    /// The key that picks it in a terminal.
    pub key: char,
    /// For people: what happens with this answer. A rule that would be saved is shown literally.
    pub label: String,
}

/// A question that a person must decide before a call, or the session, continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// The call that waits; none when the session asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The agent that waits; empty for the main one.
    #[serde(default, skip_serializing_if = "AgentPath::is_main")]
    pub agent: AgentPath,
    /// See [`QuestionKind`].
    pub kind: QuestionKind,
    /// The text of the question, with all reasons, and a line for each thing that would be touched.
    pub text: String,
    /// The whole command that would run; none where it is in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A preview of what would happen, such as the whole diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Detail>,
    /// Possible answers, the safest last.
    pub options: Vec<Choice>,
    /// JSON Schema (2020-12) of the fields, for a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// The reply that is taken where nobody can answer.
    pub if_nobody: Reply,
}

/// An answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The chosen option's id.
    pub option: String,
    /// A comment with the reply; the model gets it where the call was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Changed arguments of the call, or the form's values. Changed arguments are judged anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

impl Reply {
    /// A reply that picks an option and says no more.
    pub fn pick(option: impl Into<String>) -> Self {
        Self { option: option.into(), ..Self::default() }
    }
}

/// Who answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", content = "name", rename_all = "snake_case")]
pub enum Answerer {
    /// A person at the named front end, such as `line` or `mcp`.
    Person(String),
    /// Nobody was there; the reply is the question's own `if_nobody`.
    Nobody,
    /// The call was cancelled, so its question is void.
    Cancelled,
}
