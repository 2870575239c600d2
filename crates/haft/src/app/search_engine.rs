//! The engine of `web_search`, from the settings and the environment.

use haft_config::{Environment, Loaded, SearchEngineName};
use haft_tool::AbsentTool;
use haft_tools::{EngineKind, Search, SearchEngine};

/// Names of the tool.
const NAMES: &[&str] = &["web_search", "WebSearch"];

/// Who searches, as a person set it; or why the tool is not there.
pub(crate) fn search_engine(
    loaded: &Loaded,
    environment: &Environment,
) -> Result<Search, AbsentTool> {
    let search = &loaded.settings.web.search;
    let Some(engine) = search.engine else {
        return Err(absent("no engine is set"));
    };
    let kind = match engine {
        SearchEngineName::Brave => EngineKind::Brave,
        SearchEngineName::Tavily => EngineKind::Tavily,
        SearchEngineName::Exa => EngineKind::Exa,
        SearchEngineName::Searxng => EngineKind::Searxng,
        SearchEngineName::Provider => return Ok(Search::Provider(search.domains.clone())),
    };
    if kind.address().is_empty() && search.address.is_none() {
        return Err(absent(&format!("web.search.address is missing, which {} needs", kind.name())));
    }
    let variable = search.key_variable.as_deref().unwrap_or_else(|| kind.key_variable());
    // Those are held back from commands, which is told by their names.
    if !variable.is_empty() && !haft_config::is_of_a_server(variable) {
        return Err(absent(&format!(
            "web.search.key_variable is {variable:?}, and haft takes keys from variables whose names \
             end with _KEY or _TOKEN"
        )));
    }
    let key = environment.server(variable).map(|key| key.expose().to_owned());
    let key = key.filter(|key| !key.is_empty());
    Ok(Search::Engine(SearchEngine::new(kind, search.address.as_deref(), key)))
}

/// The tool where the provider is to search, and none here can.
pub(crate) fn no_provider() -> AbsentTool {
    absent(
        "web.search.engine is provider, and no provider that searches answers here; Anthropic Messages and \
         OpenAI Responses have a search",
    )
}

fn absent(why: &str) -> AbsentTool {
    AbsentTool {
        names: NAMES,
        why: format!("there is no web_search: {why}"),
        hint: "A person sets one in their settings: web.search.engine is brave, tavily, exa, \
               searxng or provider. Until then fetch pages whose addresses you know with web_fetch."
            .into(),
    }
}
