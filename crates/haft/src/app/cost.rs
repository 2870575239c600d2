//! What a session has cost, by model: tokens as the providers counted them, and dollars.
//!
//! **Invariant:** what has no price makes no sum smaller without a word: it is named as unknown.

use std::{collections::HashMap, fmt::Write as _};

use haft_config::{Environment, Settings};
use haft_llm::{ModelRef, Preset, SCRIPT};
use haft_types::{AgentPath, Body, CacheReport, CacheUse, Event, Summarizer, Usage};
use serde::Serialize;

use super::model::{ModelFacts, endpoint, facts, servers};
use super::session::Core;
use crate::plain::safe;

/// What answers of one model took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostRow {
    /// The model, as a person names it; where its server is not known, by its own name.
    pub model: String,
    /// Its answers.
    pub requests: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What they cost in dollars; none where the price is not known.
    pub cost_usd: Option<f64>,
}

/// One request: what it took, and what the provider's cache had of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestRow {
    /// The model, as in [`CostRow`].
    pub model: String,
    /// Its tokens.
    pub usage: Usage,
    /// What it cost in dollars; none where the price is not known.
    pub cost_usd: Option<f64>,
    /// How it compares with the one before it; none for a summary, and in logs of older versions.
    pub cache: Option<CacheUse>,
}

/// Breaks of the cached prefix that are named.
const BREAKS: usize = 5;

/// An answer's wire, model and server.
type Source = (String, String, String);

/// What was spent so far, as answers come.
#[derive(Clone, Debug)]
pub struct Costs {
    settings: Settings,
    /// Servers with where they are, `HOST:PORT`.
    servers: Vec<(Preset, String)>,
    rows: Vec<CostRow>,
    /// The row of a source, and what is known of its model.
    places: HashMap<Source, (usize, Option<ModelFacts>)>,
    /// The source of the last answer.
    last: Option<Source>,
    requests: Vec<RequestRow>,
    /// What is known of requests whose answers have not ended, by their agents.
    open: HashMap<AgentPath, CacheUse>,
}

impl Costs {
    /// Nothing was spent yet.
    pub fn new(settings: &Settings, environment: &Environment) -> Self {
        let place = |preset: Preset| {
            let at = haft_net::host_and_port(&endpoint(&preset, environment).base_url).ok()?;
            Some((preset, format!("{}:{}", at.0, at.1)))
        };
        let servers = servers(settings).into_iter().filter_map(place).collect();
        let (settings, rows, places) = (settings.clone(), Vec::new(), HashMap::new());
        let (requests, open) = (Vec::new(), HashMap::new());
        Self { settings, servers, rows, places, last: None, requests, open }
    }

    /// Takes the next event; those that are no answer's end change nothing.
    pub fn take(&mut self, event: &Event) {
        match &event.body {
            Body::AnswerEnded { model, wire, host, usage, .. } => {
                let cache = self.open.remove(&event.agent);
                self.add((wire.clone(), model.clone(), host.clone()), *usage, cache);
            }
            Body::Compacted { by, others, .. } => {
                for Summarizer { model, wire, host, usage } in others.iter().chain(by) {
                    self.add((wire.clone(), model.clone(), host.clone()), *usage, None);
                }
            }
            Body::SideAnswer { by: Summarizer { model, wire, host, usage }, .. } => {
                // It is not the one that the conversation goes on with.
                let last = self.last.clone();
                self.add((wire.clone(), model.clone(), host.clone()), *usage, None);
                self.last = last;
            }
            Body::CacheUsed(cache) => {
                self.open.insert(event.agent.clone(), cache.clone());
            }
            _ => {}
        }
    }

    fn add(&mut self, source: Source, usage: Usage, cache: Option<CacheUse>) {
        if !self.places.contains_key(&source) {
            let (wire, model, host) = &source;
            let (name, facts) = self.named(wire, model, host);
            let has_price = facts.as_ref().is_some_and(|facts| facts.prices.is_some());
            let place = self.row_of(name, has_price);
            self.places.insert(source.clone(), (place, facts));
        }
        let Some((place, facts)) = self.places.get(&source) else { return };
        let prices = facts.as_ref().and_then(|facts| facts.prices);
        let Some(row) = self.rows.get_mut(*place) else { return };
        row.requests += 1;
        row.usage.add(usage);
        let price = prices.map(|prices| prices.cost(usage));
        if let (Some(all), Some(cost)) = (&mut row.cost_usd, price) {
            *all += cost;
        }
        let (model, cost_usd) = (row.model.clone(), price);
        self.requests.push(RequestRow { model, usage, cost_usd, cache });
        self.last = Some(source);
    }

    /// What is known of the model that answered last.
    pub fn last(&self) -> Option<&ModelFacts> {
        self.places.get(self.last.as_ref()?)?.1.as_ref()
    }

    /// The row of a model; a new one where it has none.
    fn row_of(&mut self, model: String, has_price: bool) -> usize {
        if let Some(at) = self.rows.iter().position(|row| row.model == model) {
            return at;
        }
        let (usage, cost_usd) = (Usage::default(), has_price.then_some(0.0));
        self.rows.push(CostRow { model, requests: 0, usage, cost_usd });
        self.rows.len() - 1
    }

    /// The name of a model by where its answer came from, with what is known of it.
    fn named(&self, wire: &str, model: &str, host: &str) -> (String, Option<ModelFacts>) {
        let known =
            |reference: ModelRef| (reference.to_string(), Some(facts(&reference, &self.settings)));
        if wire == SCRIPT {
            return known(ModelRef::Script(model.to_owned()));
        }
        let here = self.servers.iter().filter(|(_, at)| at == host);
        let named = here.map(|(preset, _)| known(ModelRef::Server(preset.clone(), model.into())));
        let named: Vec<_> = named.collect();
        // Several names may lead to one address: the one that says what the model costs counts.
        let has_price = |(_, facts): &&(String, Option<ModelFacts>)| {
            facts.as_ref().is_some_and(|f| f.prices.is_some())
        };
        let best = named.iter().find(has_price).or(named.first());
        best.cloned().unwrap_or_else(|| (model.to_owned(), None))
    }

    /// The models that answered, in the order in which they came.
    pub fn rows(&self) -> &[CostRow] {
        &self.rows
    }

    /// The requests, in the order in which their answers ended.
    pub fn requests(&self) -> &[RequestRow] {
        &self.requests
    }

    /// A line for each request.
    pub fn request_lines(&self) -> String {
        let mut text = String::new();
        for (number, row) in (1_u64..).zip(&self.requests) {
            let RequestRow { usage, cost_usd, cache, .. } = row;
            let Usage { input, cache_read, cache_write, output } = *usage;
            let cost = cost_usd.map_or_else(|| "price unknown".to_owned(), dollars);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{number:>5}  {cost}, tokens: {input} sent, {cache_read} from the cache, \
                 {cache_write} written to it, {output} out"
            );
            if let Some(cache) = cache {
                let _ = write!(text, "; {}", of_cache(cache));
            }
            text.push('\n');
        }
        text
    }

    /// Where the prefix broke that a cache had, the newest first.
    fn break_lines(&self) -> String {
        let mut text = String::new();
        let broke = |row: &RequestRow| row.cache.as_ref().is_some_and(|c| c.changed.is_some());
        let breaks = (1_u64..).zip(&self.requests).filter(|(_, row)| broke(row));
        let breaks: Vec<_> = breaks.collect();
        for (number, row) in breaks.iter().rev().take(BREAKS) {
            if let Some(cache) = &row.cache {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "request {number}: {}", of_cache(cache));
            }
        }
        if let Some(more @ 1..) = breaks.len().checked_sub(BREAKS) {
            let _ = writeln!(text, "and {more} breaks before: haft session cost --requests");
        }
        text
    }

    /// All in dollars; none where the price of a model is not known.
    pub fn total_usd(&self) -> Option<f64> {
        // From zero on: the sum of nothing is a negative zero.
        self.rows.iter().try_fold(0.0, |all, row| Some(all + row.cost_usd?))
    }

    /// A line for each model, and their sum.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for CostRow { model, requests, usage, cost_usd } in &self.rows {
            let cost = cost_usd.map_or_else(|| "price unknown".to_owned(), dollars);
            let Usage { input, cache_read, cache_write, output } = *usage;
            let requests =
                if *requests == 1 { "1 request".into() } else { format!("{requests} requests") };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}: {cost}, {requests}, tokens: {input} sent, {cache_read} from the cache, \
                 {cache_write} written to it, {output} out",
                safe(model)
            );
        }
        match (self.rows.len(), self.total_usd()) {
            (0, _) => text.push_str("no model has answered yet\n"),
            (1, _) => {}
            (_, Some(all)) => {
                let _ = writeln!(text, "all: {}", dollars(all));
            }
            (_, None) => {
                let known: f64 = self.rows.iter().filter_map(|row| row.cost_usd).sum();
                let _ = writeln!(text, "all: {} and what has no price", dollars(known));
            }
        }
        text.push_str(&self.break_lines());
        text
    }
}

/// What a provider's cache could have of a request, in words.
fn of_cache(cache: &CacheUse) -> String {
    let CacheUse { bytes, same, changed, expected, report } = cache;
    let mut text = match changed {
        Some(changed) => {
            format!("{} changed at byte {same} of {bytes}", safe(changed))
        }
        None => format!("{same} of {bytes} bytes as before"),
    };
    // Writing to a string cannot fail.
    let _ = match expected {
        Some(expected) => write!(text, ", {expected} tokens expected from the cache"),
        None => write!(text, ", nothing known of the cache"),
    };
    if let Some(CacheReport { reason, missed }) = report {
        let _ = write!(text, "; the provider says {}", safe(reason));
        if let Some(missed) = missed {
            let _ = write!(text, " ({missed} tokens)");
        }
    }
    text
}

/// The types of the events that say what something cost.
pub const BILLED: &[&str] = &["answer_ended", "compacted", "cache_used"];

/// What a running session cost so far, for people.
///
/// # Errors
/// The log cannot be read; in words for people.
pub fn of_session(core: &Core) -> Result<String, String> {
    let base = &core.base;
    let store = base.store().map_err(|error| error.to_string())?;
    // Nothing was logged before the first message.
    let Ok(id) = store.find(core.session_id()) else {
        return Ok(Costs::new(&base.loaded.settings, &base.environment).lines());
    };
    let mut costs = Costs::new(&base.loaded.settings, &base.environment);
    let events = store.events(&id).map_err(|error| error.to_string())?;
    // What cannot be read was told when the session was opened.
    events.only(BILLED).flatten().for_each(|event| costs.take(&event));
    Ok(costs.lines())
}

/// Dollars for people: cents, and more digits where it is less than one.
pub fn dollars(dollars: f64) -> String {
    match dollars {
        0.0 => "$0".to_owned(),
        cost if cost < 0.000_1 => "<$0.0001".to_owned(),
        cost if cost < 0.1 => format!("${cost:.4}"),
        cost => format!("${cost:.2}"),
    }
}

/// A count of tokens in thousands or millions: `200k`, `1M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ if count % 1_000_000 < 100_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{AgentPath, Stop, TurnId};

    use super::*;

    fn answer(wire: &str, model: &str, host: &str, input: u64) -> Event {
        let usage = Usage { input, output: 100, ..Usage::default() };
        let [wire, model, host] = [wire, model, host].map(str::to_owned);
        let body = Body::AnswerEnded { model, wire, host, stop: Stop::EndTurn, usage };
        let agent = AgentPath::default();
        Event { v: 1, id: None, parent: None, turn: TurnId(1), agent, at: 0, body }
    }

    #[test]
    fn models_are_named_by_their_server_and_summed_up() {
        let mut costs = Costs::new(&Settings::default(), &Environment::default());
        assert_eq!(
            (costs.total_usd(), costs.lines().as_str()),
            (Some(0.0), "no model has answered yet\n")
        );
        for input in [1_000_000, 1_000_000] {
            costs.take(&answer("openai", "gpt-4o-2024-08-06", "api.openai.com:443", input));
        }
        assert_eq!(costs.rows()[0].model, "openai/gpt-4o-2024-08-06");
        assert!((costs.total_usd().unwrap() - 5.002).abs() < 1e-9);
        costs.take(&answer("openai", "mine", "example.org:443", 1));
        assert_eq!((costs.rows()[1].model.as_str(), costs.rows()[1].cost_usd), ("mine", None));
        assert_eq!(costs.total_usd(), None);
        let lines = costs.lines();
        assert!(
            lines.contains("openai/gpt-4o-2024-08-06: $5.00, 2 requests, tokens: 2000000 sent")
        );
        assert!(lines.contains("mine: price unknown, 1 request"), "{lines}");
        assert!(lines.ends_with("all: $5.00 and what has no price\n"), "{lines}");
    }

    #[test]
    fn dollars_are_cents_or_less() {
        let shown = [0.0, 0.000_01, 0.001_234, 0.099_99, 0.126, 12.0].map(dollars);
        assert_eq!(shown, ["$0", "<$0.0001", "$0.0012", "$0.1000", "$0.13", "$12.00"]);
    }

    #[test]
    fn tokens_are_thousands_or_millions() {
        let shown = [16, 999, 1_000, 131_072, 200_000, 1_000_000, 1_048_576, 1_500_000, 922_000];
        let wanted = ["16", "999", "1k", "131k", "200k", "1M", "1M", "1.5M", "922k"];
        assert_eq!(shown.map(tokens), wanted);
    }
}
