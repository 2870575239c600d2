//! Settings of the web.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pages of the web. A project cannot set them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Web {
    /// Hosts with their ports that may be asked although they are private, such as
    /// `localhost:3000` and `10.0.0.7:80`. Whether one is asked about is for the rules to say.
    pub private: Vec<String>,
    /// The engine of `web_search`.
    pub search: WebSearch,
}

/// The engine of `web_search`. Without one there is no such tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebSearch {
    /// `brave`, `tavily`, `exa`, `searxng` for a server of your own, or `provider`: the provider of the
    /// model searches by itself, where it can.
    pub engine: Option<SearchEngineName>,
    /// Where the engine is, such as `http://localhost:8888` for `searxng`, which needs it. A private
    /// host has to stand in `web.private`, too.
    pub address: Option<String>,
    /// The variable that holds the engine's key, if it is not `BRAVE_API_KEY`, `TAVILY_API_KEY` or
    /// `EXA_API_KEY`. No command gets it.
    pub key_variable: Option<String>,
    /// Hosts whose pages alone `provider` searches.
    pub domains: Vec<String>,
}

/// An engine that searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEngineName {
    /// Brave Search API.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// A `SearXNG` of one's own.
    Searxng,
    /// The provider of the model.
    Provider,
}
