//! A tool that does what a test says, and worlds to call it in.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{Host, Memory};
use haft_testkit::world::{Tools, World};
use haft_tool::{AnyTool, Cx, Dispatcher, Pipeline, Tool};
use haft_types::{Body, Detail, Env, HostPath, Outcome, Place, Plan, Style, ToolError, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Planned = Box<dyn Fn(&Value, &Place) -> Plan + Send + Sync>;
type Checked =
    Box<dyn Fn(Value, Cx) -> BoxFuture<'static, Result<Option<Detail>, ToolError>> + Send + Sync>;
type Ran = Box<dyn Fn(Value, Cx) -> BoxFuture<'static, Result<Outcome, ToolError>> + Send + Sync>;

/// A tool made of closures that counts its runs.
pub struct Probe {
    pub spec: ToolSpec,
    pub plan: Planned,
    pub check: Checked,
    pub run: Ran,
    pub runs: Arc<AtomicUsize>,
}

impl Probe {
    /// A tool without effects that gives its arguments back.
    pub fn new(name: &str) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "n": {"type": "integer"}},
            "additionalProperties": true,
        });
        let spec = ToolSpec::new(name.to_owned(), name.to_owned(), "A tool of a test.");
        Self {
            spec: ToolSpec { input_schema: schema.into(), ..spec },
            plan: Box::new(|_, place| Plan::new(place, "Probing")),
            check: Box::new(|_, _| std::future::ready(Ok(None)).boxed()),
            run: Box::new(|input, _| {
                std::future::ready(Ok(Outcome::text(input.to_string()))).boxed()
            }),
            runs: Arc::default(),
        }
    }

    pub fn plan(self, plan: impl Fn(&Value, &Place) -> Plan + Send + Sync + 'static) -> Self {
        Self { plan: Box::new(plan), ..self }
    }

    /// Declares the reading of `path`.
    pub fn reads(self) -> Self {
        self.plan(|input, place| Plan::new(place, "Probing").reads(path_of(input, place)))
    }

    /// Declares a change of `path`.
    pub fn changes(self) -> Self {
        self.plan(|input, place| Plan::new(place, "Probing").changes(path_of(input, place)))
    }

    pub fn check<F>(self, check: impl Fn(Value, Cx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<Detail>, ToolError>> + Send + 'static,
    {
        Self { check: Box::new(move |input, cx| check(input, cx).boxed()), ..self }
    }

    pub fn run<F>(self, run: impl Fn(Value, Cx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Outcome, ToolError>> + Send + 'static,
    {
        Self { run: Box::new(move |input, cx| run(input, cx).boxed()), ..self }
    }

    pub fn spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

fn path_of(input: &Value, place: &Place) -> HostPath {
    let text = input["path"].as_str().unwrap_or("a");
    place.path(text).unwrap_or_else(|_| place.cwd.clone())
}

impl Tool for Probe {
    type Input = Value;

    fn spec(&self, _: &Env) -> ToolSpec {
        self.spec.clone()
    }
    fn plan(&self, input: &Value, place: &Place) -> Result<Plan, ToolError> {
        Ok((self.plan)(input, place))
    }
    async fn check(&self, input: &Value, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        (self.check)(input.clone(), cx.clone()).await
    }
    async fn run(&self, input: Value, cx: &Cx) -> Result<Outcome, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.run)(input, cx.clone()).await
    }
}

/// Tools with the counters of their runs by name.
pub fn tools(probes: impl IntoIterator<Item = Probe>) -> (Tools, Runs) {
    let mut runs = HashMap::new();
    let mut tools = Tools::new();
    for probe in probes {
        runs.insert(probe.spec.name.to_string(), probe.runs.clone());
        tools.push(Arc::new(probe) as Arc<dyn AnyTool>);
    }
    (tools, Runs(runs))
}

pub struct Runs(HashMap<String, Arc<AtomicUsize>>);

impl Runs {
    pub fn of(&self, name: &str) -> usize {
        self.0[name].load(Ordering::SeqCst)
    }
    pub fn all(&self) -> usize {
        self.0.values().map(|runs| runs.load(Ordering::SeqCst)).sum()
    }
}

/// A world in memory with a file `a` and these tools.
pub fn world(probes: impl IntoIterator<Item = Probe>) -> (World, Runs) {
    let (tools, runs) = tools(probes);
    (World::memory(tools, [("a", "in a"), ("b", "in b")]).unwrap(), runs)
}

pub fn at(path: &str) -> HostPath {
    HostPath::new(path.as_bytes(), Style::Posix).unwrap()
}

/// A world on a host in memory that the test prepared; its workspace is `/w`.
pub fn on_memory(host: Memory, tools: Tools) -> World {
    World::on(Arc::new(host) as Arc<dyn Host>, at("/w"), tools)
}

/// The world's dispatcher with another pipeline.
pub fn with_pipeline(world: &World, pipeline: Pipeline) -> Arc<Dispatcher> {
    Arc::new(Dispatcher { pipeline: Arc::new(pipeline), ..(*world.dispatcher).clone() })
}

/// Calls through another dispatcher than the world's own.
pub async fn call(dispatcher: &Arc<Dispatcher>, tool: &str, input: Value) -> Outcome {
    dispatcher.call(tool, input, CancellationToken::new()).await.1
}

/// The calls that began and the calls that ended, by id.
pub fn begun_and_ended(world: &World) -> (Vec<String>, Vec<String>) {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for body in world.recorder.bodies() {
        match body {
            Body::CallStarted { call, .. } => begun.push(call.0.to_string()),
            Body::CallEnded { call, .. } => ended.push(call.0.to_string()),
            _ => {}
        }
    }
    (begun, ended)
}

/// What `CallEnded` says of the time that the `n`-th call that ended took, in milliseconds.
pub fn took(world: &World, n: usize) -> u64 {
    let ended = world.recorder.bodies().into_iter().filter_map(|body| match body {
        Body::CallEnded { took, .. } => Some(took),
        _ => None,
    });
    ended.collect::<Vec<_>>()[n]
}

/// A list that closures may add to.
pub type SharedList<T> = Arc<Mutex<Vec<T>>>;
