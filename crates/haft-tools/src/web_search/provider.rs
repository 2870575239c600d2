//! `web_search` where the model's provider runs it: haft names it in each request and makes no call of
//! its own.
//!
//! **Invariant:** no rule about hosts and no guard reaches such a search, since nothing of it passes
//! here. A denial of the tool takes it out of the requests.

use haft_tool::{Cx, Tool};
use haft_types::{Env, HostedSearch, Kind, Outcome, Place, Plan, ToolError, ToolSpec};

use super::Input;

/// The search of a provider.
#[derive(Clone, Debug)]
pub struct ProviderSearch {
    domains: Vec<String>,
}

impl ProviderSearch {
    /// A search of all pages, or of those of these hosts.
    pub const fn new(domains: Vec<String>) -> Self {
        Self { domains }
    }
}

impl Tool for ProviderSearch {
    type Input = Input;

    fn spec(&self, env: &Env) -> ToolSpec {
        ToolSpec {
            aliases: vec!["WebSearch".into()],
            snippet: "Search the web".into(),
            hint: "web search internet google find pages news docs".into(),
            kind: Kind::Fetch,
            primary: "query".into(),
            hosted: Some(HostedSearch { domains: self.domains.clone() }),
            off: !env.provider_searches,
            ..ToolSpec::new("web_search", "Search the web", "The provider searches the web.")
        }
    }

    fn plan(&self, _: &Input, place: &Place) -> Result<Plan, ToolError> {
        Ok(Plan::new(place, "Searching the web at the provider"))
    }

    async fn run(&self, _: Input, _: &Cx) -> Result<Outcome, ToolError> {
        Err(ToolError::new("the provider searches by itself, and haft does not")
            .hint("Search as your provider has it, or fetch a page with web_fetch."))
    }
}
