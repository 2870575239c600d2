//! Tools that the model does not see at once, on each wire: found, told, called, and known for as long as
//! the conversation says so. What stands before the conversation never moves.

use std::{fmt::Write as _, sync::Arc};

use haft_agent::{Agent, AgentConfig, ContextLimits, Handle, Pinned, Repin, assemble, late_tools};
use haft_llm::{
    Delta, Target, Wire, anthropic::AnthropicMessages, openai::OpenAiChat, pinned_tools,
    responses::OpenAiResponses,
};
use haft_session::{Fold, Store};
use haft_tool::{AnyTool, Cx, Dispatcher, Registry, Tool, ToolSet};
use haft_types::{
    AgentPath, Body, BreakCause, Env, Event, Loading, Mode, Origin, Outcome, Stop, ToolError,
    ToolSpec, TurnEnd,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{Journal, Scripted, Step, World, calls, ends, is_done};

/// What is spliced in where a provider's cache begins anew.
const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// What to do it with.
    words: String,
}

/// A tool that notes what it was called with; the one that finds gives the others that it is asked for.
struct Noting(ToolSpec, Journal);

impl Tool for Noting {
    type Input = Words;

    fn spec(&self, _: &Env) -> ToolSpec {
        self.0.clone()
    }

    async fn run(&self, input: Words, _: &Cx) -> Result<Outcome, ToolError> {
        self.1.lock().unwrap().push(format!("{} {}", self.0.name, input.words));
        if self.0.finds {
            let found: Vec<&str> = input.words.split(',').filter(|name| *name != "none").collect();
            let said = format!("Looked for {}.", input.words);
            return Ok(Outcome::text(said).with_data(json!({"loaded": found})));
        }
        Ok(Outcome::text(format!("{} did it", self.0.name)))
    }
}

fn deferred(name: &'static str) -> ToolSpec {
    let description = format!("Tells of {name}, as nobody else does.");
    ToolSpec { loading: Loading::Deferred, ..ToolSpec::new(name, name, description) }
}

fn set(journal: &Journal, late: &[ToolSpec]) -> ToolSet {
    let finder =
        ToolSpec { finds: true, ..ToolSpec::new("tool_search", "Find", "Finds other tools.") };
    let always = ToolSpec::new("always", "Always", "Is always there.");
    let all = [always, finder].into_iter().chain(late.iter().cloned());
    let tool = |spec| Arc::new(Noting(spec, journal.clone())) as Arc<dyn AnyTool>;
    let all: Vec<Arc<dyn AnyTool>> = all.map(tool).collect();
    Registry::default().source(all).assemble(&Env::default())
}

/// A wire, the model that is asked, and how it makes tools known.
struct Kind {
    wire: Arc<dyn Wire>,
    model: &'static str,
    /// How the result of a search says what was found.
    found: &'static str,
    /// How a message says that a tool is there from here on.
    told: &'static str,
    by_call_tool: bool,
}

fn kinds() -> [Kind; 4] {
    let (newest_fields, is_azure, is_makers) = (true, false, true);
    let kind = |wire: Arc<dyn Wire>, model, found, told, by_call_tool| Kind {
        wire,
        model,
        found,
        told,
        by_call_tool,
    };
    [
        kind(
            Arc::new(AnthropicMessages { is_makers }),
            "claude",
            r#"{"type":"tool_reference","tool_name":"weather"}"#,
            r#"{"type":"tool_addition","tool":{"type":"tool_reference","name":"weather"}}"#,
            false,
        ),
        kind(
            Arc::new(OpenAiResponses { newest_fields, is_azure }),
            "gpt-5.4",
            r#""type":"tool_search_output""#,
            r#""type":"additional_tools""#,
            false,
        ),
        kind(Arc::new(OpenAiChat::default()), "m", "## weather", "## weather", true),
        kind(Arc::new(AnthropicMessages::default()), "m", "## weather", "## weather", true),
    ]
}

impl Kind {
    fn target(&self) -> Target {
        Target { model: self.model.into(), vision: false }
    }

    /// A search, as the server's model makes it.
    fn searches(&self, nth: u32, words: &str) -> Vec<Step> {
        let search = json!({"type": "tool_search_call", "execution": "client"}).to_string();
        let is_own = self.wire.tool_search(&deferred("x"), &self.target()).is_some();
        let (wire_id, name) = (format!("s{nth}"), "tool_search".to_owned());
        let raw = json!({ "words": words }).to_string();
        let extra = is_own.then_some(search);
        let call = Delta::Call { index: 1, wire_id, name, raw, cut: false, extra };
        vec![Step::Gives(call), ends(Stop::ToolUse)]
    }

    /// A call of a late tool, as the server's model makes it.
    fn calls(&self, name: &str, words: &str) -> Vec<Step> {
        let input = json!({ "words": words });
        let call = if self.by_call_tool {
            calls(1, "call_tool", &json!({"name": name, "arguments": input}))
        } else {
            calls(1, name, &input)
        };
        vec![call, ends(Stop::ToolUse)]
    }
}

/// A session whose tools are these, and its prefix.
fn setup(world: &World, kind: &Kind, model: &Arc<Scripted>, late: &[ToolSpec]) -> AgentConfig {
    let tools = Arc::new(set(&world.journal, late));
    let config = world.setup(model);
    let dispatcher = Arc::new(Dispatcher { tools, ..(*world.dispatcher).clone() });
    let pinned = pinned(&dispatcher, kind, model);
    AgentConfig { dispatcher, pinned, target: kind.target(), ..config }
}

fn pinned(dispatcher: &Dispatcher, kind: &Kind, model: &Arc<Scripted>) -> Pinned {
    let copied = |spec: &Arc<ToolSpec>| (**spec).clone();
    let listed: Vec<ToolSpec> = dispatcher.tools.listed().map(copied).collect();
    let late: Vec<ToolSpec> = dispatcher.tools.deferred().map(copied).collect();
    let system = vec!["who you are".to_owned()];
    let tools = pinned_tools(&**model, &kind.target(), &listed, &late);
    Pinned { system, tools, format: String::new() }
}

fn start(world: &World, kind: &Kind, model: &Arc<Scripted>) -> Handle {
    Agent::start(setup(world, kind, model, &[deferred("weather"), deferred("stars")]))
}

/// The whole requests, and that none of them changes what the one before it sent.
fn bodies(kind: &Kind, model: &Arc<Scripted>) -> Vec<String> {
    let requests = model.requests.lock().unwrap().clone();
    for (at, pair) in requests.windows(2).enumerate() {
        assert_eq!((&pair[0].tools, &pair[0].system), (&pair[1].tools, &pair[1].system), "{at}");
        let (before, after) = (model.sent(at), model.sent(at + 1));
        assert_eq!(before[..], after[..before.len()], "{} at {at}", kind.model);
    }
    let body = |request| {
        // Marks of the cache move with the end.
        let body = kind.wire.request(request).replace(MARK, "");
        let _: Value = serde_json::from_str(&body).unwrap();
        body
    };
    requests.iter().map(body).collect()
}

fn starts(events: &[Body]) -> Vec<(String, Option<Value>)> {
    let start = |body: &Body| match body {
        Body::CallStarted { tool, input, .. } => Some((tool.clone(), input.clone())),
        _ => None,
    };
    events.iter().filter_map(start).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_search_finds_is_loaded_the_wires_own_way_and_called() {
    for kind in kinds() {
        let mut world = World::new();
        let answers = [kind.searches(1, "weather"), kind.calls("weather", "rain"), is_done("End.")];
        let model = Scripted::on(&kind.wire, answers);
        let handle = start(&world, &kind, &model);
        let (events, end) = world.turn(&handle, "begin").await;
        assert!(matches!(end, TurnEnd::Done { .. }), "{end:?}");
        assert_eq!(world.did(), ["tool_search weather", "weather rain"], "{}", kind.model);
        let bodies = bodies(&kind, &model);
        assert_eq!(bodies.len(), 3);
        assert!(bodies[1].contains(kind.found), "{}: {}", kind.model, bodies[1]);
        assert!(bodies[2].contains("weather did it"), "{}", bodies[2]);
        // Known once is known.
        let told = bodies[2].matches("as nobody else does").count();
        let hidden = bodies[0].matches("as nobody else does").count();
        let is_declared = bodies[0].contains("\"defer_loading\":true");
        assert_eq!((told - hidden, is_declared), (usize::from(!is_declared), hidden > 0));
        assert_eq!(bodies[0].contains("\"call_tool\""), kind.by_call_tool, "{}", bodies[0]);
        assert_eq!(bodies[0].contains("stars"), is_declared, "{}", bodies[0]);
        // Whoever looks sees the tool and its arguments, whichever way it is called.
        let input = kind.by_call_tool.then(|| json!({"words": "rain"}));
        assert_eq!(starts(&events)[1], ("weather".to_owned(), input));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_tool_that_is_called_by_its_name_runs_and_is_told_once() {
    for kind in kinds() {
        let mut world = World::new();
        let by_name = vec![calls(1, "weather", &json!({"words": "sun"})), ends(Stop::ToolUse)];
        let model =
            Scripted::on(&kind.wire, [by_name, is_done("End."), kind.calls("weather", "snow")]);
        let handle = start(&world, &kind, &model);
        world.turn(&handle, "begin").await;
        world.turn(&handle, "and on").await;
        assert_eq!(world.did(), ["weather sun", "weather snow"]);
        let bodies = bodies(&kind, &model);
        assert!(!bodies[0].contains(kind.told), "{}", bodies[0]);
        for body in &bodies[1..] {
            assert_eq!(body.matches(kind.told).count(), 1, "{}: {body}", kind.model);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_finds_nothing_says_what_the_tool_said() {
    for kind in kinds() {
        let mut world = World::new();
        let model = Scripted::on(&kind.wire, [kind.searches(1, "none"), is_done("End.")]);
        let handle = start(&world, &kind, &model);
        world.turn(&handle, "begin").await;
        let bodies = bodies(&kind, &model);
        assert!(bodies[1].contains("Looked for none."), "{}: {}", kind.model, bodies[1]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_call_by_name_is_said_and_nothing_runs() {
    for (arguments, wanted) in [
        (json!({"arguments": {}}), "the name of a tool is missing"),
        (json!({"name": "call_tool", "arguments": {}}), "does not call itself"),
        (json!({"name": "wether", "arguments": {"words": "x"}}), "Did you mean weather?"),
        (json!({"name": "weather", "arguments": {"word": 7}}), "words"),
    ] {
        let mut world = World::new();
        let kind = &kinds()[2];
        let call = vec![calls(1, "call_tool", &arguments), ends(Stop::ToolUse)];
        let model = Scripted::on(&kind.wire, [call, is_done("End.")]);
        let handle = start(&world, kind, &model);
        let (events, end) = world.turn(&handle, "begin").await;
        assert!(matches!(end, TurnEnd::Done { .. }), "{end:?}");
        let bodies = bodies(kind, &model);
        assert!(bodies[1].contains(wanted), "{wanted}: {}", bodies[1]);
        assert_eq!((world.did().len(), starts(&events).len()), (0, 1), "{arguments}");
    }
}

/// The conversation of a world, as whoever resumes it finds it.
fn resumed(world: &World) -> Fold {
    let store = Store::open(world.home.path());
    let mut fold = Fold::new(AgentPath::default());
    let events: Vec<Event> = store.events(&world.id).unwrap().map(Result::unwrap).collect();
    for event in &events {
        fold.push(event);
    }
    fold
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_so_after_a_resume_and_with_another_model() {
    for (number, kind) in kinds().into_iter().enumerate() {
        let mut world = World::new();
        let found = [kind.searches(1, "weather"), is_done("End.")];
        let model = Scripted::on(&kind.wire, found);
        let handle = start(&world, &kind, &model);
        world.turn(&handle, "begin").await;
        handle.close().await;
        let sent = model.sent(1);

        let again = Scripted::on(&kind.wire, [is_done("More.")]);
        let mut config = setup(&world, &kind, &again, &[deferred("weather"), deferred("stars")]);
        (config.fold, config.cause) = (resumed(&world), None);
        let handle = Agent::start(config);
        world.turn(&handle, "go on").await;
        assert_eq!(again.sent(0)[..sent.len()], sent[..], "{}: other bytes", kind.model);

        // Each other wire gets it in its own way.
        let other = &kinds()[(number + 1) % 4];
        let next = Scripted::on(&other.wire, [is_done("Other.")]);
        let dispatcher = setup(&world, other, &next, &[deferred("weather")]).dispatcher;
        let pinned = pinned(&dispatcher, other, &next);
        assert!(handle.repin(Repin {
            cause: Some(BreakCause::Model),
            dispatcher,
            provider: next.clone(),
            name: "other".into(),
            target: other.target(),
            effort: None,
            pinned,
            context: ContextLimits::default(),
            prices: None,
            output: None,
            max_tokens: None,
        }));
        world.turn(&handle, "with another").await;
        let body = &bodies(other, &next)[0];
        // A search of another server is answered as a call like all others.
        let known = body.contains(other.found) || body.contains(other.told);
        assert!(known && body.contains("weather"), "{}: {body}", other.model);
        assert_eq!(body.contains("\"name\":\"call_tool\""), other.by_call_tool, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_gone_is_not_named_to_the_server() {
    for kind in kinds() {
        let mut world = World::new();
        let model = Scripted::on(&kind.wire, [kind.searches(1, "weather"), is_done("End.")]);
        let handle = start(&world, &kind, &model);
        world.turn(&handle, "begin").await;
        handle.close().await;
        let again = Scripted::on(&kind.wire, [is_done("More.")]);
        let mut config = setup(&world, &kind, &again, &[deferred("stars")]);
        config.fold = resumed(&world);
        let handle = Agent::start(config);
        world.turn(&handle, "go on").await;
        let body = &bodies(&kind, &again)[0];
        assert!(!body.contains("\"tool_name\":\"weather\""), "{body}");
        assert!(!body.contains("as nobody else does. weather"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_told_again_behind_a_summary() {
    for kind in kinds() {
        let mut world = World::new();
        let answers = [
            kind.searches(1, "weather"),
            is_done(&"chatter ".repeat(2_000)),
            is_done("Yes."),
            is_done("Goal: to know the weather."),
        ];
        let model = Scripted::on(&kind.wire, answers);
        let handle = start(&world, &kind, &model);
        world.turn(&handle, "begin").await;
        world.turn(&handle, "is it so?").await;
        let receipt = handle.sender().compact(None).await.unwrap();
        assert!(receipt.is_ok(), "{}: {receipt:?}", kind.model);
        handle.close().await;
        // Nothing is lost though nobody says a word before the end.
        let again = Scripted::on(&kind.wire, [is_done("More.")]);
        let mut config = setup(&world, &kind, &again, &[deferred("weather"), deferred("stars")]);
        config.fold = resumed(&world);
        let handle = Agent::start(config);
        world.turn(&handle, "go on").await;
        let body = &bodies(&kind, &again)[0];
        assert!(body.contains("to know the weather") && !body.contains("chatter"), "{body}");
        assert_eq!(body.matches(kind.told).count(), 1, "{}: {body}", kind.model);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_makes_its_tool_known_once_it_is_on() {
    for kind in kinds() {
        let mut world = World::with_mode(Mode::Ask);
        let of_plan = ToolSpec { known_in: Some(Mode::Plan), ..deferred("weather") };
        let model = Scripted::on(&kind.wire, [is_done("One."), is_done("Two."), is_done("Three.")]);
        let handle = Agent::start(setup(&world, &kind, &model, &[of_plan]));
        world.turn(&handle, "begin").await;
        world.dispatcher.session.set_permissions(|permissions| permissions.mode = Mode::Plan);
        world.turn(&handle, "plan").await;
        world.turn(&handle, "and on").await;
        let bodies = bodies(&kind, &model);
        let told: Vec<usize> = bodies.iter().map(|body| body.matches(kind.told).count()).collect();
        assert_eq!(told, [0, 1, 1], "{}", kind.model);
    }
}

/// A tool of a server, named as a client names it.
fn of_server(server: &str, name: &str) -> ToolSpec {
    let origin = Origin::Mcp { server: server.to_owned(), tool: name.to_owned() };
    ToolSpec {
        origin,
        loading: Loading::Deferred,
        ..ToolSpec::new(format!("mcp__{server}__{name}"), "x", "y")
    }
}

fn listing(late: &[ToolSpec], most: u64) -> String {
    let section = late_tools(&set(&Journal::default(), late), most).unwrap();
    assemble(vec![section], 192 << 10).parts.concat()
}

#[test]
fn the_names_of_500_tools_fit_into_their_budget() {
    let data = include_str!("../../../haft-tools/tests/data/tool_search/tools.json");
    let all: Vec<Value> = serde_json::from_str(data).unwrap();
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap().to_owned();
    let mut all: Vec<ToolSpec> =
        all.iter().map(|tool| of_server(&text(tool, "server"), &text(tool, "name"))).collect();
    all.push(deferred("weather"));
    let listed = listing(&all, 2_000);
    println!("{listed}");
    assert!(listed.len().div_ceil(4) <= 2_000 + 10, "{} bytes", listed.len());
    assert!(listed.contains("- haft: weather\n"), "{listed}");
    assert!(listed.contains("- github: 90 tools, search for them"), "{listed}");
    assert!(listed.contains("- postgres (mcp__postgres__...): "), "{listed}");
    for server in ["slack", "stripe", "linear", "figma", "drive", "outlook", "playwright"] {
        assert!(listed.contains(&format!("- {server}")), "{server}: {listed}");
    }
    // The order in which servers came does not count.
    all.reverse();
    assert_eq!(listing(&all, 2_000).len(), listed.len());
    let counts = listing(&all, 0);
    assert!(counts.len() < 200 && counts.contains("13 more servers: 501 tools"), "{counts}");
    assert!(late_tools(&set(&Journal::default(), &[]), 2_000).is_none());
}

#[test]
fn names_that_are_too_long_or_no_names_are_counted() {
    let long = "x".repeat(100_000);
    let mut all = vec![
        of_server("good", "one"),
        of_server("bad\nserver", "two"),
        of_server("long", &long),
        of_server("odd", "a\nb"),
    ];
    let mut many = String::new();
    for number in 0..3_000 {
        many.clear();
        let _ = write!(many, "server{number:04}");
        all.push(of_server(&many, "tool"));
    }
    let listed = listing(&all, 2_000);
    assert!(listed.len() <= 8_200 && !listed.contains("xxxxx"), "{} bytes", listed.len());
    assert!(!listed.contains("a\nb") && !listed.contains("bad\nserver"), "{listed}");
    assert!(listed.contains("more servers: "), "{listed}");
}
