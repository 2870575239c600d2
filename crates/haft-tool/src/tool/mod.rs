//! The trait that a tool's author implements, and its type-erased form.

pub(crate) mod registry;
pub(crate) mod repair;
pub(crate) mod schema;

use std::{future::Future, marker::PhantomData, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Detail, Env, Misfit, Outcome, Place, Plan, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{
    Deserialize as _,
    de::{DeserializeOwned, value::MapDeserializer},
};
use serde_json::Value;

use crate::Cx;

/// Most fields among which the offending one is looked for.
const FIELDS: usize = 50;

/// A tool: what it is, what a call would do, and how to run it.
///
/// A tool never asks, never cuts to its result budget, never renders, and touches the world only
/// through `cx.host`. Everything else about a call is derived from its [`Plan`].
pub trait Tool: Send + Sync + 'static {
    /// Arguments. Doc comments on the fields become the descriptions of the schema.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Describes the tool.
    fn spec(&self, env: &Env) -> ToolSpec;

    /// Says what the call would touch, from its arguments alone: no IO.
    ///
    /// The default claims everything, which is always safe: such a call runs alone and is always
    /// asked about.
    ///
    /// # Errors
    /// When an argument cannot mean anything, such as a path with a NUL byte.
    fn plan(&self, input: &Self::Input, place: &Place) -> Result<Plan, ToolError> {
        let _ = input;
        Ok(Plan::anything(place, "Working"))
    }

    /// Refuses a call that cannot work and gives what people should see before they allow it.
    ///
    /// Runs after the rules, only where observing what the plan names needs no question. It can
    /// reach nothing but that, and not change it.
    ///
    /// # Errors
    /// When the call cannot work; the error says why and what to do.
    fn check(
        &self,
        input: &Self::Input,
        cx: &Cx,
    ) -> impl Future<Output = Result<Option<Detail>, ToolError>> + Send {
        let _ = (input, cx);
        async { Ok(None) }
    }

    /// Runs the call, at most once for each call, inside the pipeline.
    ///
    /// # Errors
    /// When it fails; the error says what was wrong, with the offending value, and what to do.
    ///
    /// # Cancel safety
    /// The future may be dropped at any await point. When `cx.stop` is cancelled a tool has about
    /// 150 milliseconds to return what it has. What it began elsewhere must stop by then.
    fn run(
        &self,
        input: Self::Input,
        cx: &Cx,
    ) -> impl Future<Output = Result<Outcome, ToolError>> + Send;
}

/// A type-erased [`Tool`]. Never implemented by hand.
pub trait AnyTool: Send + Sync {
    /// See [`Tool::spec`]; the input schema is filled in and normalised.
    fn spec(&self, env: &Env) -> ToolSpec;

    /// Takes valid arguments and plans the call.
    ///
    /// # Errors
    /// When the arguments do not fit the input type or cannot be planned.
    fn prepare(
        self: Arc<Self>,
        spec: Arc<ToolSpec>,
        input: Value,
        place: &Place,
    ) -> Result<Prepared, ToolError>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self, env: &Env) -> ToolSpec {
        let mut spec = Tool::spec(self, env);
        if spec.input_schema.is_none() {
            spec.input_schema = schema::schema_of::<T::Input>();
        }
        spec
    }

    fn prepare(
        self: Arc<Self>,
        spec: Arc<ToolSpec>,
        input: Value,
        place: &Place,
    ) -> Result<Prepared, ToolError> {
        let typed = T::Input::deserialize(&input).map_err(|error| {
            let why: String = Misfit::of(&error).to_string().chars().take(500).collect();
            let why = match culprit::<T::Input>(&input, &error) {
                // What is inside is shown; it is not said where.
                Some(name) if input[&*name].is_object() || input[&*name].is_array() => {
                    format!("{name}: {why}")
                }
                Some(name) => format!("{name} is {why}"),
                None => why,
            };
            ToolError::new(format!("the arguments of {} do not fit: {why}", spec.name))
                .hint("Correct that argument and call again.")
        })?;
        let plan = self.plan(&typed, place)?;
        let job = Box::new(Typed { tool: self, input: typed, kind: PhantomData::<fn() -> T> });
        Ok(Prepared { spec, input, plan, job })
    }
}

/// The field that an error is about, as serde does not say it: the one without which it is another
/// error, or none.
fn culprit<I: DeserializeOwned>(input: &Value, error: &serde_json::Error) -> Option<String> {
    let (map, error) = (input.as_object()?, error.to_string());
    let about = |name: &&String| {
        let others = map.iter().filter(|(other, _)| other != name);
        let others = others.map(|(name, value)| (name.as_str(), value));
        let left = I::deserialize(MapDeserializer::<_, serde_json::Error>::new(others));
        left.err().is_none_or(|left| left.to_string() != error)
    };
    map.keys().take(FIELDS).find(about).map(|name| name.chars().take(60).collect())
}

/// The typed half of a prepared call.
trait Job: Send + Sync {
    fn check<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Option<Detail>, ToolError>>;
    fn run(self: Box<Self>, cx: Cx) -> BoxFuture<'static, Result<Outcome, ToolError>>;
}

struct Typed<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
    kind: PhantomData<fn() -> T>,
}

impl<T: Tool> Job for Typed<T> {
    fn check<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Option<Detail>, ToolError>> {
        self.tool.check(&self.input, cx).boxed()
    }

    fn run(self: Box<Self>, cx: Cx) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        async move { self.tool.run(self.input, &cx).await }.boxed()
    }
}

/// A call that was parsed and planned, ready for the stages.
pub struct Prepared {
    /// The spec that the model saw.
    pub spec: Arc<ToolSpec>,
    /// The arguments after repair, for rules, hooks and the log.
    pub input: Value,
    /// What it will do.
    pub plan: Plan,
    job: Box<dyn Job>,
}

impl Prepared {
    /// The arguments with their paths in each way in which they may be meant.
    pub(crate) fn meant_paths(&self) -> Vec<Value> {
        repair::meant_paths(&self.input, &self.spec.input_schema)
    }

    /// The arguments with their paths without what models put around them, and a note for each.
    pub(crate) fn bare_paths(&self) -> Option<(Value, Vec<String>)> {
        self.with_paths(&repair::bare, &|_| String::new())
    }

    /// The paths among the arguments, as they are written.
    pub(crate) fn paths(&self) -> Vec<String> {
        repair::paths(&self.input, &self.spec.input_schema)
    }

    /// The arguments with paths written in another way, and a note for each that says why.
    pub(crate) fn with_paths(
        &self,
        way: repair::Way<'_>,
        why: &dyn Fn(&str) -> String,
    ) -> Option<(Value, Vec<String>)> {
        repair::with_paths(&self.input, &self.spec.input_schema, way, why)
    }

    /// See [`Tool::check`].
    pub(crate) async fn check(&self, cx: &Cx) -> Result<Option<Detail>, ToolError> {
        self.job.check(cx).await
    }

    /// Runs the tool itself; only the end of the pipeline does.
    pub(crate) fn execute(self, cx: Cx) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        self.job.run(cx)
    }
}
