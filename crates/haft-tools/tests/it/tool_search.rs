//! `tool_search`: how often the wanted tool is among the first, and what it says of names and words.

use haft_tools::{Candidate, Index};
use serde::Deserialize;

/// 500 tools of 12 servers.
const TOOLS: &str = include_str!("../data/tool_search/tools.json");
/// Ten ways each in which somebody asked for one of them, written without a look at their names.
const PHRASINGS: &str = include_str!("../data/tool_search/phrasings.json");
/// Tools that a search gives.
const FIRST: usize = 5;
/// Phrasings of 500 whose tool has to be among these.
const LEAST: usize = 450;

#[derive(Deserialize)]
struct ListedTool {
    server: String,
    name: String,
    hint: String,
    description: String,
}

#[derive(Deserialize)]
struct TaskQueries {
    server: String,
    wanted: String,
    phrasings: Vec<String>,
}

#[test]
fn the_wanted_tool_is_among_the_first() {
    let tools: Vec<ListedTool> = serde_json::from_str(TOOLS).unwrap();
    let asked: Vec<TaskQueries> = serde_json::from_str(PHRASINGS).unwrap();
    assert_eq!(tools.len(), 500);
    let names: Vec<String> =
        tools.iter().map(|tool| format!("mcp__{}__{}", tool.server, tool.name)).collect();
    let candidates: Vec<Candidate<'_>> = tools
        .iter()
        .zip(&names)
        .map(|(ListedTool { server, hint, description, .. }, name)| Candidate {
            name,
            server,
            hint,
            description,
        })
        .collect();
    let index = Index::of(&candidates);
    let (mut found, mut all) = (0, 0);
    for TaskQueries { server, wanted, phrasings } in &asked {
        let is_it = |at: usize| tools[at].server == *server && tools[at].name == *wanted;
        assert!((0..tools.len()).any(is_it), "{wanted} is no tool");
        for phrasing in phrasings {
            all += 1;
            let ranked = index.rank(phrasing);
            if ranked.iter().take(FIRST).any(|at| is_it(*at)) {
                found += 1;
                continue;
            }
            let first: Vec<&str> = ranked.iter().take(FIRST).map(|at| &*tools[*at].name).collect();
            let place = ranked.iter().position(|at| is_it(*at));
            println!("{server}.{wanted} is {place:?} for {phrasing:?}: {first:?}");
        }
    }
    println!("{found} of {all}");
    assert_eq!(all, 500);
    assert!(found >= LEAST, "{found} of {all}");
}
