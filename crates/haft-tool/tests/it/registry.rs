//! Which tool a name means, and that definitions are the same bytes each time.

use std::sync::Arc;

use haft_policy::{Rules, Scope, Verdict};
use haft_testkit::world::Tools;
use haft_tool::{AnyTool, Registry};
use haft_types::{Env, Status, ToolSpec};
use serde_json::{Value, json};

use crate::support::{Probe, tools, world};

fn named(name: &str, aliases: &[&str]) -> Probe {
    let aliases = aliases.iter().map(|alias| (*alias).to_owned().into()).collect();
    Probe::new(name).spec(|spec| spec.aliases = aliases)
}

#[test]
fn names_count_exactly_then_without_case_and_real_ones_before_aliases() {
    let probes =
        [named("read", &["Read", "cat", "list"]), named("ls", &["dir"]), named("list", &[])];
    let (tools, _) = tools(probes);
    let set = Registry::default().source(tools).assemble(&Env::default());
    let cases = [
        ("read", Some("read")),
        ("Read", Some("read")),
        ("READ", Some("read")),
        ("cat", Some("read")),
        ("CAT", Some("read")),
        ("dir", Some("ls")),
        // An alias of an earlier tool, and the name of a later one.
        ("list", Some("list")),
        ("LIST", Some("list")),
        ("rea", None),
        ("", None),
    ];
    for (name, wanted) in cases {
        assert_eq!(set.spec(name).map(|spec| &*spec.name), wanted, "{name:?}");
    }
    assert_eq!(set.specs().len(), 3);
}

#[test]
fn names_that_differ_only_in_case_are_not_guessed_between() {
    for probes in
        [[named("Run", &[]), named("run", &[])], [named("a", &["Run"]), named("b", &["run"])]]
    {
        let (tools, _) = tools(probes);
        let set = Registry::default().source(tools).assemble(&Env::default());
        assert!(set.spec("RUN").is_none());
        assert!(set.spec("Run").is_some() && set.spec("run").is_some());
    }
}

#[test]
fn of_two_tools_with_one_name_the_earlier_source_counts() {
    let described = |text: &'static str| {
        let probe = Probe::new("same").spec(|spec| spec.description = text.into());
        vec![Arc::new(probe) as Arc<dyn AnyTool>]
    };
    let registry = Registry::default().source(described("first")).source(described("second"));
    let set = registry.assemble(&Env::default());
    assert_eq!(set.specs().len(), 1);
    assert_eq!(&*set.specs()[0].description, "first");
    // The other one is told, with what is in its way.
    let (hidden, taken): (Vec<&str>, Vec<&str>) =
        set.hidden().map(|(spec, by)| (&*spec.description, &*by.description)).unzip();
    assert_eq!((hidden, taken), (vec!["second"], vec!["first"]));
}

#[tokio::test]
async fn a_tool_that_a_rule_denies_as_a_whole_is_not_there() {
    let (world, runs) = world([]);
    assert_eq!(runs.all(), 0);
    let rules = Rules::default().with(Verdict::Deny, Scope::User, "Bash");
    world.session.set_permissions(|judge| judge.policy.extend(&rules));
    let judge = world.session.permissions();
    let hide = move |spec: ToolSpec, _: &Env| (!judge.policy.hides(&spec)).then_some(spec);
    let registry = Registry::default().source(haft_tools::builtin()).filter(hide);
    let set = registry.assemble(&Env { shell: true, ..Env::default() });
    assert!(set.spec("bash").is_none());
    assert!(set.spec("read").is_some());
    assert!(set.unknown("bash").to_string().contains("there is no tool named \"bash\""));
}

#[test]
fn filters_take_away_and_redescribe_in_order() {
    let registry = Registry::default()
        .source(tools([named("a", &[]), named("b", &[]), Probe::new("c").spec(|s| s.off = true)]).0)
        .filter(|spec, _| (spec.name != "a").then_some(spec))
        .filter(|spec, env| {
            assert_ne!(&*spec.name, "a", "the filter before took it away");
            let description = format!("for {}", env.model).into();
            Some(ToolSpec { description, ..spec })
        });
    let set = registry.assemble(&Env { model: "m".into(), ..Env::default() });
    let told: Vec<_> =
        set.specs().iter().map(|spec| format!("{} {}", spec.name, spec.description)).collect();
    assert_eq!(told, ["b for m"]);
}

fn bytes(tools: Tools, env: &Env) -> String {
    let set = Registry::default().source(tools).assemble(env);
    serde_json::to_string(set.specs()).unwrap()
}

#[test]
fn two_assemblies_are_the_same_bytes() {
    let (vision, shell, interactive, no_todo) = (true, true, true, true);
    let provider_searches = true;
    let full = Env { model: "m".into(), vision, shell, interactive, no_todo, provider_searches };
    for env in [Env::default(), full] {
        let first = bytes(haft_tools::builtin(), &env);
        assert!(first.len() > 1_000);
        for _ in 0..5 {
            assert_eq!(bytes(haft_tools::builtin(), &env), first);
        }
    }
}

/// Everything in a schema that the common form does not have.
fn oddities(schema: &Value, at: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for key in ["$schema", "$ref", "$defs", "title", "format"] {
                if map.contains_key(key) {
                    found.push(format!("{at} has {key}"));
                }
            }
            for (key, value) in map {
                if key == "properties" {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        oddities(inner, &format!("{at}.{name}"), found);
                    }
                } else {
                    oddities(value, &format!("{at}/{key}"), found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| oddities(item, at, found)),
        Value::Null => found.push(format!("{at} is null")),
        Value::String(text) if text == "null" => found.push(format!("{at} may be null")),
        _ => {}
    }
}

#[test]
fn schemas_of_all_built_in_tools_are_in_the_common_form() {
    let env = Env { shell: true, vision: true, interactive: true, ..Env::default() };
    let set = Registry::default().source(haft_tools::builtin()).assemble(&env);
    assert_eq!(set.specs().len(), haft_tools::builtin().len());
    let mut found = Vec::new();
    for spec in set.specs() {
        oddities(&spec.input_schema, &spec.name, &mut found);
        oddities(&spec.output_schema, &format!("{} (out)", spec.name), &mut found);
        assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
    }
    assert!(found.is_empty(), "{found:#?}");
    oddities(&json!({"type": ["string", "null"], "title": "X"}), "x", &mut found);
    assert_eq!(found, ["x has title", "x/type may be null"]);
}

#[tokio::test]
async fn the_error_for_an_unknown_tool_stays_short_with_many_tools() {
    let (tools, runs) = tools((0..3_000).map(|n| Probe::new(&format!("tool_number_{n}"))));
    let world = haft_testkit::world::World::memory(tools, [("a", "")]).unwrap();
    let outcome = world.call(&"x".repeat(100_000), json!({})).await;
    assert_eq!(outcome.status, Status::Failed);
    let text = outcome.joined_text();
    assert!(text.len() < 2_000, "{} bytes", text.len());
    assert!(text.contains("and 2950 more"), "{text}");
    assert_eq!(runs.all(), 0);
}
