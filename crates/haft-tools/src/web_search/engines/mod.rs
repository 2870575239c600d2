//! The engines: how each is asked, and what its answers look like.
//!
//! **Invariant:** an engine's key stands in a header and nowhere else. An answer of any other shape
//! than the documented one is an error or an empty list, never a panic.

mod brave;
mod exa;
mod searxng;
mod tavily;

use std::fmt;

use haft_tool::{WebRequest, WebUrl};
use haft_types::ToolError;
use serde_json::Value;

use super::{Hit, Query};

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Brave Search API.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// A `SearXNG` of the person's own.
    Searxng,
}

/// An engine as it differs from the others.
struct Engine {
    name: &'static str,
    address: &'static str,
    key_variable: &'static str,
    request: fn(&SearchEngine, &Query) -> Result<WebRequest, ToolError>,
    hits: fn(&Value) -> Option<Vec<Hit>>,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Brave, Self::Tavily, Self::Exa, Self::Searxng];

    const fn engine(self) -> &'static Engine {
        match self {
            Self::Brave => &brave::ENGINE,
            Self::Tavily => &tavily::ENGINE,
            Self::Exa => &exa::ENGINE,
            Self::Searxng => &searxng::ENGINE,
        }
    }

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        self.engine().name
    }

    /// The variable that holds the key where settings name no other; empty where none is needed.
    pub const fn key_variable(self) -> &'static str {
        self.engine().key_variable
    }

    /// Where it is asked where settings name no other place; empty where they have to.
    pub const fn address(self) -> &'static str {
        self.engine().address
    }

    /// What to do where it refuses the key.
    pub(super) const fn refusal_hint(self) -> &'static str {
        match self {
            Self::Searxng => {
                "Tell the person: their SearXNG has to list json under search.formats in its \
                 settings.yml."
            }
            _ => "Tell the person: the key of web.search.key_variable is missing or wrong.",
        }
    }
}

/// An engine as a person set it.
#[derive(Clone)]
pub struct SearchEngine {
    kind: EngineKind,
    address: String,
    key: Option<String>,
}

impl fmt::Debug for SearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("SearchEngine")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl SearchEngine {
    /// An engine at its usual address or another, with its key.
    pub fn new(kind: EngineKind, address: Option<&str>, key: Option<String>) -> Self {
        let address = address.unwrap_or_else(|| kind.address()).trim_end_matches('/').to_owned();
        Self { kind, address, key }
    }

    /// Which engine it is.
    pub const fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Where it is asked.
    pub(super) fn url(&self) -> Result<WebUrl, ToolError> {
        WebUrl::read(&self.address).map_err(|error| {
            ToolError::new(format!("the address of {} cannot be asked: {error}", self.kind.name()))
                .hint("Tell the person: web.search.address in their settings is wrong.")
        })
    }

    /// The key, for engines that need one.
    fn key(&self) -> Result<&str, ToolError> {
        self.key.as_deref().ok_or_else(|| {
            ToolError::new(format!("there is no key for {}", self.kind.name())).hint(format!(
                "Tell the person: {} has to be set in the environment of haft, or \
                 web.search.key_variable has to name another variable.",
                self.kind.key_variable()
            ))
        })
    }

    /// The address with a path and arguments of a query.
    fn with(&self, path: &str, arguments: &[(&str, &str)]) -> Result<String, ToolError> {
        let mut url = self.url()?.url().clone();
        let path = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.query_pairs_mut().extend_pairs(arguments);
        Ok(url.into())
    }

    /// The request for a search.
    pub(super) fn request(&self, query: &Query) -> Result<WebRequest, ToolError> {
        (self.kind.engine().request)(self, query)
    }

    /// The results of an answer.
    pub(super) fn hits(&self, answer: &Value) -> Result<Vec<Hit>, ToolError> {
        (self.kind.engine().hits)(answer).ok_or_else(|| {
            ToolError::new(format!("the answer of {} is not one of a search", self.kind.name()))
                .hint("Tell the person: web.search.address in their settings may be wrong.")
        })
    }
}

/// A query with the hosts as words of it, for engines that have no lists of them.
fn with_sites(query: &Query) -> String {
    let mut text = query.text.clone();
    let sites: Vec<String> = query.domains.iter().map(|host| format!("site:{host}")).collect();
    match &sites[..] {
        [] => {}
        [one] => text = format!("{text} {one}"),
        several => text = format!("{text} ({})", several.join(" OR ")),
    }
    for host in &query.blocked {
        text.push_str(" -site:");
        text.push_str(host);
    }
    text
}

/// A text of a result; empty where there is none.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// A text of a result that may be missing.
fn optional(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

/// What an engine says about an error: each writes it elsewhere.
pub(super) fn error_text(body: &Value) -> Option<&str> {
    const PLACES: [&str; 7] = [
        "/error/detail",
        "/detail/error",
        "/error/message",
        "/detail/0/msg",
        "/error",
        "/detail",
        "/message",
    ];
    PLACES.iter().find_map(|place| body.pointer(place)?.as_str())
}
