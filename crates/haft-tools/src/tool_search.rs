//! `tool_search`: finds tools that the model does not see, and makes them known.
//!
//! **Invariant:** it names tools and does nothing else: what is found runs by calls of its own, which are
//! judged like all others.

use std::sync::Arc;

use haft_tool::{Cx, Tool, ToolSet, schema_of};
use haft_types::{
    Access, Env, Kind, Loading, Outcome, Place, Plan, Shape, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ranking::{Candidate, Index};

/// Tools that are given where the call does not say how many.
const FOUND: u64 = 5;
/// Most that can be asked for.
const FOUND_MAX: u64 = 20;
/// Most bytes of a query.
const QUERY_MAX: usize = 2_000;
/// What stands before names that are to be loaded.
const SELECT: &str = "select:";
/// Names that are told beside a wrong one.
const NEAREST: usize = 3;
/// Most characters of a tool's description that are shown.
const SHOWN: usize = 100;

/// Finds tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolSearch {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// What the tool does, in words; or select:NAME,NAME.
    query: String,
    /// 5 by default.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u64>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// The tools that can be called from here on, the best first.
    loaded: Vec<String>,
    /// Names that no tool has.
    unknown: Vec<String>,
}

impl Tool for ToolSearch {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["ToolSearch".into()],
            snippet: "Find and load tools that are not listed here".into(),
            hint: "find load tools by words or name".into(),
            kind: Kind::Other,
            primary: "query".into(),
            finds: true,
            ..ToolSpec::new(
                "tool_search",
                "Find tools",
                "Load tools that are not in your list, to be called then.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let query = input.query.trim();
        if query.is_empty() {
            return Err(ToolError::new("query is empty").hint("Say what the tool is to do."));
        }
        if query.len() > QUERY_MAX {
            let text = format!("query has {} bytes; at most {QUERY_MAX} are taken", query.len());
            return Err(ToolError::new(text).hint("Say in a few words what the tool is to do."));
        }
        let shown: String = query.chars().take(SHOWN).collect();
        let tools = Target::State { name: "tools".into() };
        Ok(Plan::new(place, format!("Finding tools: {shown}")).with(Access::Observe, tools))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let set = cx.tools();
        if set.deferred().next().is_none() {
            return Err(ToolError::new("there is nothing to find: every tool is listed here")
                .hint("Call a tool by its name; `haft tool list` has all of them."));
        }
        let query = input.query.trim();
        let limit = input.limit.unwrap_or(FOUND).clamp(1, FOUND_MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match query.strip_prefix(SELECT) {
            Some(names) => selected(set, names),
            None => searched(set, query, limit),
        }
    }
}

/// Loads tools by their names.
fn selected(set: &ToolSet, names: &str) -> Result<Outcome, ToolError> {
    let (mut found, mut there, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    for name in names.take(usize::try_from(FOUND_MAX).unwrap_or(usize::MAX)) {
        match set.spec(name).or_else(|| short(set, name)) {
            Some(spec) if spec.loading != Loading::Deferred => there.push(spec.name.to_string()),
            Some(spec) if found.iter().any(|other: &Arc<ToolSpec>| other.name == spec.name) => {}
            Some(spec) => found.push(spec.clone()),
            None => unknown.push(name.chars().take(SHOWN).collect::<String>()),
        }
    }
    let mut notes: Vec<String> = unknown.iter().map(|name| wrong(set, name)).collect();
    if !there.is_empty() {
        notes.push(format!("In your list already, to be called: {}.", there.join(", ")));
    }
    if found.is_empty() && there.is_empty() {
        let text = if notes.is_empty() { "no name was given".to_owned() } else { notes.join("\n") };
        return Err(
            ToolError::new(text).hint("Give names as select:NAME,NAME, or search by words.")
        );
    }
    Ok(outcome(&found, unknown, &notes))
}

/// The tool whose name is this one behind what its server puts before it, where that is one alone.
fn short<'a>(set: &'a ToolSet, name: &str) -> Option<&'a Arc<ToolSpec>> {
    let is_short = |spec: &&Arc<ToolSpec>| {
        spec.name.strip_suffix(name).is_some_and(|before| before.ends_with(['_', '.', '/', ':']))
    };
    let mut all = set.deferred().filter(is_short);
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// What is said of a name that no tool has.
fn wrong(set: &ToolSet, name: &str) -> String {
    let folded = name.to_lowercase();
    let mut near: Vec<(f64, &str)> = set
        .deferred()
        .map(|spec| (strsim::jaro_winkler(&folded, &spec.name.to_lowercase()), &*spec.name))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<&str> = near.into_iter().take(NEAREST).map(|(_, name)| name).collect();
    format!("There is no tool named {name:?}; the nearest are {}.", near.join(", "))
}

/// Loads the tools that fit words best.
fn searched(set: &ToolSet, query: &str, limit: usize) -> Result<Outcome, ToolError> {
    let all: Vec<&Arc<ToolSpec>> = set.deferred().collect();
    let candidates: Vec<Candidate<'_>> = all.iter().map(|spec| Candidate::of(spec)).collect();
    let ranked = Index::of(&candidates).rank(query);
    let found: Vec<Arc<ToolSpec>> =
        ranked.into_iter().take(limit).map(|at| all[at].clone()).collect();
    if found.is_empty() {
        let query: String = query.chars().take(SHOWN).collect();
        return Err(ToolError::new(format!("no tool fits {query:?}"))
            .hint("Say it in other words, or do it with the tools that you have."));
    }
    Ok(outcome(&found, Vec::new(), &[]))
}

/// The tools that were found. What else is to be said stands in a part of its own: a server may get the
/// definitions in place of the first one.
fn outcome(found: &[Arc<ToolSpec>], unknown: Vec<String>, notes: &[String]) -> Outcome {
    let lines: Vec<String> = found.iter().map(|spec| line(spec)).collect();
    let text = match &lines[..] {
        [] => notes.join("\n"),
        lines => format!("To be called from here on:\n{}", lines.join("\n")),
    };
    let loaded = found.iter().map(|spec| spec.name.to_string()).collect();
    let detail =
        Shape::Markdown { text: [std::slice::from_ref(&text), notes].concat().join("\n\n") };
    let mut outcome =
        Outcome::text(text).with_data(json!(Data { loaded, unknown })).with_detail(detail);
    if !lines.is_empty() && !notes.is_empty() {
        outcome.content.push(notes.join("\n").into());
    }
    outcome
}

fn line(spec: &ToolSpec) -> String {
    let first = spec.description.trim().split(['\n', '.']).next().unwrap_or_default();
    let text: String = first.chars().take(SHOWN).collect();
    format!("- {}: {text}", spec.name)
}
