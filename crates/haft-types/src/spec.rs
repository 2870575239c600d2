//! What a tool is, apart from any call of it.
//!
//! **Invariant:** a spec is data and serialises byte-stably: the same tool in the same [`Env`]
//! gives the same bytes, because they are part of the cached prefix of every request.

use serde::{Deserialize, Serialize};

use crate::{Mode, Schema, Text};

/// Facts that a spec may depend on, fixed when the tool set is pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Env {
    /// The model's id as the provider writes it; empty when no model is involved.
    pub model: String,
    /// True when the model takes images.
    pub vision: bool,
    /// True when the host can run a shell.
    pub shell: bool,
    /// True when someone can answer questions.
    pub interactive: bool,
    /// True when the model does better without a list of things to do.
    #[serde(default)]
    pub no_todo: bool,
    /// True when the model's provider can search the web by itself.
    #[serde(default)]
    pub provider_searches: bool,
}

/// A search of the web that the model's provider runs by itself, and no call of haft is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedSearch {
    /// Only pages of these hosts and those below them; empty: of all.
    pub domains: Vec<String>,
}

/// The kind of a tool, in the terms of the Agent Client Protocol; drives icons and folding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads one thing.
    Read,
    /// Finds things.
    Search,
    /// Changes files.
    Edit,
    /// Runs programs.
    Execute,
    /// Gets something from the network.
    Fetch,
    /// Thinks or plans.
    Think,
    /// None of these.
    #[default]
    Other,
}

/// When a tool's definition is shown to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loading {
    /// From the first request, even where many tools are present.
    Always,
    /// From the first request unless the definitions are over their budget.
    #[default]
    Normal,
    /// Only once it was found by tool search.
    Deferred,
}

/// Where a tool came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Compiled into haft.
    #[default]
    Builtin,
    /// From an MCP server.
    Mcp {
        /// The server's name in the configuration.
        server: String,
        /// The tool's own name there.
        tool: String,
    },
    /// From an executable in a tools folder.
    Executable {
        /// The executable.
        path: String,
    },
    /// Given by a program that embeds haft.
    Embedder,
}

/// What an interrupt does to a running call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    /// Drops the call at once.
    #[default]
    Cancel,
    /// Lets the call finish, because stopping half-way would leave things broken.
    Finish,
}

/// How much text of a result reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// At most this many characters; the rest is stored and has an address.
    Chars(u64),
    /// At most this many estimated tokens (four bytes each) of text.
    Tokens(u64),
    /// The tool limits itself by its own arguments.
    Own,
}

impl Default for Budget {
    fn default() -> Self {
        Self::Chars(50_000)
    }
}

/// A bullet for the system prompt that a tool brings along.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guideline {
    /// The line, with its reason.
    pub text: Text,
    /// Shown only when all these tools are on as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Text>,
    /// Shown only when none of these tools is on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Text>,
}

/// Everything about a tool that does not depend on a call's input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ToolSpec {
    /// Unique name, as the model writes it.
    pub name: Text,
    /// Other names for the tool.
    pub aliases: Vec<Text>,
    /// Tools whose denials as a whole hold for this one too, beside its own: `edit` for one that
    /// writes files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules_of: Vec<Text>,
    /// Name for people: `Read file`.
    pub label: Text,
    /// For the model: what it does, where it stops, when to use something else.
    pub description: Text,
    /// JSON Schema (2020-12) of the input; null means: derived from the input type.
    pub input_schema: Schema,
    /// JSON Schema (2020-12) of `Outcome::data`; null where there is none.
    pub output_schema: Schema,
    /// One line under the tools of the system prompt; empty means: not listed there.
    pub snippet: Text,
    /// Bullets of the system prompt.
    pub guidelines: Vec<Guideline>,
    /// 3 to 10 words for tool search.
    pub hint: Text,
    /// See [`Kind`].
    pub kind: Kind,
    /// The input key that is shown while arguments still stream: `path`.
    pub primary: Text,
    /// See [`Loading`].
    pub loading: Loading,
    /// The mode that makes a deferred tool known once it is on, without a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_in: Option<Mode>,
    /// True for the tool that finds deferred ones: it is in a set only where there are some.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finds: bool,
    /// See [`Budget`].
    pub budget: Budget,
    /// True where an answer may hold an image.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub images: bool,
    /// True where it asks a person: models are not told of it where nobody can answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// What such a call fails with where nobody can answer; empty: that nobody can.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub unattended: Text,
    /// The search that the provider runs in place of a call, on wires that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted: Option<HostedSearch>,
    /// See [`OnInterrupt`].
    pub on_interrupt: OnInterrupt,
    /// See [`Origin`].
    pub origin: Origin,
    /// True removes the tool from the set: its platform, service or feature is missing.
    pub off: bool,
}

impl ToolSpec {
    /// Starts a spec; everything but name, label and description has a default.
    pub fn new(
        name: impl Into<Text>,
        label: impl Into<Text>,
        description: impl Into<Text>,
    ) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            description: description.into(),
            ..Self::default()
        }
    }
}
