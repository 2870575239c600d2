//! What every registered tool has to stand, whoever wrote it.
//!
//! **Invariant:** a tool without a sample fails, so no tool escapes. Every problem found is given
//! back, not only the first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use haft_policy::Verdict;
use haft_tool::validate::Validator;
use haft_types::{Body, Outcome, Status, ToolSpec};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{Tools, World};

/// Longest answer after a cancellation, with a margin for a busy machine.
const CANCELLED_WITHIN: Duration = Duration::from_millis(200 + 300);
/// Most words in capitals, or `never`, `always`, `must`, of one description.
const SHOUTS: usize = 1;

/// Calls that show a tool at work, in a workspace with these files.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The tool's name.
    pub tool: &'static str,
    /// Files of the workspace: relative path and content.
    pub files: Vec<(&'static str, &'static str)>,
    /// Arguments that work.
    pub good: Vec<Value>,
    /// Arguments that do not, each with words that its error must have.
    pub bad: Vec<(Value, Vec<&'static str>)>,
    /// A deny rule and arguments that it hits.
    pub denied: Option<(&'static str, Value)>,
    /// Text of the denied target that may not be told anywhere.
    pub secret: Option<&'static str>,
    /// Arguments of a call that shows something and then runs until it is stopped.
    pub endless: Option<Value>,
    /// Whether it needs a host with a shell.
    pub shell: bool,
}

/// How the world of a test is made from the files of a sample.
pub type Make<'a> = &'a dyn Fn(Tools, &[(&'static str, &'static str)]) -> World;

/// Runs every check over every tool, and gives what is wrong, one line a problem.
pub async fn run(tools: &Tools, samples: &[Sample], worlds: &[(&str, Make<'_>)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut tried = BTreeSet::new();
    for (name, make) in worlds {
        let set = make(tools.clone(), &[]).dispatcher.tools.clone();
        for spec in set.specs() {
            let Some(sample) = samples.iter().find(|sample| sample.tool == spec.name) else {
                problems.push(format!("{}: has no sample", spec.name));
                continue;
            };
            let world = || make(tools.clone(), &sample.files);
            if sample.shell && world().host.shell().is_none() {
                continue;
            }
            tried.insert(sample.tool);
            let mut checks = Checks { spec, sample, world: &world, found: Vec::new() };
            checks.all().await;
            problems.extend(
                checks.found.iter().map(|found| format!("{} ({name}): {found}", spec.name)),
            );
        }
    }
    let idle = samples.iter().filter(|sample| !tried.contains(sample.tool));
    problems.extend(idle.map(|sample| format!("{}: its sample ran in no world", sample.tool)));
    if tried.is_empty() {
        problems.push("no tool was tried at all".to_owned());
    }
    problems
}

struct Checks<'a> {
    spec: &'a Arc<ToolSpec>,
    sample: &'a Sample,
    world: &'a dyn Fn() -> World,
    found: Vec<String>,
}

impl Checks<'_> {
    async fn all(&mut self) {
        self.found.extend(spec_problems(self.spec));
        if self.sample.good.is_empty() || self.sample.bad.is_empty() {
            self.found.push("its sample has no good or no bad arguments".to_owned());
        }
        self.good().await;
        self.bad().await;
        self.generated_bad().await;
        self.malformed().await;
        self.stopped_before().await;
        self.denied().await;
        self.stopped_halfway().await;
    }

    fn expect(&mut self, holds: bool, what: impl Into<String>) {
        if !holds {
            self.found.push(what.into());
        }
    }

    /// Every file of a workspace, to be compared.
    async fn files(&mut self, world: &World) -> BTreeMap<String, Vec<u8>> {
        world.files().await.unwrap_or_else(|error| {
            self.found.push(format!("the workspace cannot be looked at: {error}"));
            BTreeMap::new()
        })
    }

    async fn good(&mut self) {
        for input in &self.sample.good {
            let world = (self.world)();
            let outcome = world.call(self.sample.tool, input.clone()).await;
            let text = outcome.joined_text();
            self.expect(outcome.status == Status::Done, format!("{input} ended with: {text}"));
            self.expect(!outcome.content.is_empty(), format!("{input} told the model nothing"));
            self.expect(outcome.detail.is_some(), format!("{input} shows people nothing"));
            if let Some(problem) = data_problem(self.spec, &outcome) {
                self.found.push(format!("{input}: {problem}"));
            }
        }
    }

    async fn refused(&mut self, input: &Value, words: &[&str]) {
        let world = (self.world)();
        let before = self.files(&world).await;
        let outcome = world.call(self.sample.tool, input.clone()).await;
        let text = outcome.joined_text();
        self.expect(outcome.status == Status::Failed, format!("{input} should fail: {text}"));
        for word in words {
            self.expect(text.contains(word), format!("{input}: the error lacks {word:?}: {text}"));
        }
        let after = self.files(&world).await;
        self.expect(after == before, format!("{input} failed, but changed files"));
    }

    async fn bad(&mut self) {
        for (input, words) in &self.sample.bad {
            self.refused(input, words).await;
        }
    }

    /// Missing fields and wrong types, made from the schema and a good call.
    async fn generated_bad(&mut self) {
        let Some(Value::Object(good)) = self.sample.good.first() else { return };
        let properties = self.spec.input_schema.get("properties").and_then(Value::as_object);
        let required = self.spec.input_schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let mut input = good.clone();
            input.shift_remove(name);
            self.refused(&Value::Object(input), &[name]).await;
        }
        for name in properties.into_iter().flatten().map(|(name, _)| name) {
            let mut input = good.clone();
            // A value in place of the text of a file is taken for that text; only null is none.
            let wrong = match &**name {
                "content" => Value::Null,
                _ => Value::Array(vec![Value::Bool(true), Value::Bool(false)]),
            };
            input.insert(name.clone(), wrong);
            self.refused(&Value::Object(input), &[name]).await;
        }
        let mut input = good.clone();
        input.insert("unheard_of".to_owned(), Value::Bool(true));
        let outcome = (self.world)().call(self.sample.tool, Value::Object(input)).await;
        let told = outcome.joined_text().contains("unheard_of");
        self.expect(outcome.status == Status::Done && told, "an unknown argument is not told");
    }

    /// Arguments that are no object, or cut off.
    async fn malformed(&mut self) {
        for raw in ["", "null", "[]", "{", "\"text\"", "{\"path\": \"a"] {
            let outcome = (self.world)().call_raw(self.sample.tool, raw).await;
            let required = self.spec.input_schema.get("required").is_some();
            let may_work = raw.is_empty() && !required;
            self.expect(
                may_work || outcome.status == Status::Failed,
                format!("raw arguments {raw:?} should fail: {}", outcome.joined_text()),
            );
        }
    }

    async fn stopped_before(&mut self) {
        let stop = CancellationToken::new();
        stop.cancel();
        for input in &self.sample.good {
            let world = (self.world)();
            let before = self.files(&world).await;
            let outcome = world.call_until(self.sample.tool, input.clone(), stop.clone()).await;
            self.expect(outcome.status == Status::Cancelled, format!("{input} ran though stopped"));
            let after = self.files(&world).await;
            self.expect(after == before, format!("{input} changed files though stopped"));
            self.expect(
                outcome.receipts.is_empty(),
                format!("{input} has receipts though stopped"),
            );
        }
    }

    async fn denied(&mut self) {
        let Some((rule, input)) = &self.sample.denied else {
            self.found.push("its sample has no denied call".to_owned());
            return;
        };
        let world = (self.world)();
        world.rule(Verdict::Deny, rule);
        let before = self.files(&world).await;
        let outcome = world.call(self.sample.tool, input.clone()).await;
        let text = outcome.joined_text();
        self.expect(outcome.status == Status::Denied, format!("{input} under {rule}: {text}"));
        let after = self.files(&world).await;
        self.expect(after == before, format!("{input} changed files though denied"));
        if let Some(secret) = self.sample.secret {
            self.expect(
                !world.recorder.text().contains(secret),
                format!("{input} told the secret"),
            );
        }
    }

    async fn stopped_halfway(&mut self) {
        let Some(input) = &self.sample.endless else { return };
        let world = (self.world)();
        let stop = CancellationToken::new();
        let call = world.call_until(self.sample.tool, input.clone(), stop.clone());
        let cancel = async {
            // Once it shows something, it is at work.
            let shows =
                |body: &Body| matches!(body, Body::CallOutput { .. } | Body::CallProgress { .. });
            world.recorder.until(shows).await;
            stop.cancel();
            Instant::now()
        };
        let (outcome, cancelled) = tokio::join!(call, cancel);
        let took = cancelled.elapsed();
        self.expect(
            outcome.status == Status::Cancelled,
            format!("{input}: {}", outcome.joined_text()),
        );
        self.expect(took <= CANCELLED_WITHIN, format!("{input} took {took:?} to stop"));
    }
}

/// What is wrong with a spec, apart from any call.
pub fn spec_problems(spec: &ToolSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            problems.push(what.to_owned());
        }
    };
    expect(!spec.label.is_empty(), "has no label");
    expect(!spec.description.is_empty(), "has no description");
    expect(!spec.snippet.is_empty(), "has no snippet");
    expect(spec.snippet.len() <= 120, "its snippet is over 120 bytes");
    let words = spec.hint.split_whitespace().count();
    expect((3..=10).contains(&words), "its hint has not 3 to 10 words");
    expect(shouts(&spec.description) <= SHOUTS, "its description shouts");
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    expect(spec.input_schema.get("type").is_some_and(|kind| kind == "object"), "takes no object");
    let described = properties.into_iter().flatten().all(|(_, schema)| {
        schema.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    });
    expect(described, "has an argument without a description");
    let primary = &*spec.primary;
    expect(
        primary.is_empty() || properties.is_some_and(|names| names.contains_key(primary)),
        "its primary argument is none of its arguments",
    );
    expect(Validator::new(&spec.input_schema).is_ok(), "its input schema is broken");
    expect(!spec.output_schema.is_null(), "has no output schema");
    problems
}

/// Words that press rather than explain.
pub fn shouts(text: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| {
            let capitals = word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase());
            capitals || ["never", "always", "must"].contains(&word.to_ascii_lowercase().as_str())
        })
        .count()
}

/// Says where data does not fit the tool's output schema.
pub fn data_problem(spec: &ToolSpec, outcome: &Outcome) -> Option<String> {
    let Some(data) = &outcome.data else { return Some("has no data".to_owned()) };
    let validator = match Validator::new(&spec.output_schema) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("its output schema is broken: {error}")),
    };
    let problem = validator.problems(data).into_iter().next()?;
    Some(format!("its data does not fit its schema: {problem}"))
}
