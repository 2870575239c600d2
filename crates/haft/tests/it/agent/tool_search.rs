//! Tools that are found by a search, through print mode and on each wire, and what the other faces have.

use std::os::unix::fs::PermissionsExt as _;

use haft_testkit::http::{HttpRequest, HttpResponse};
use haft_types::{Body, Part};
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire, known_late_tools},
    world::{Input, Ran, World, finish},
};

/// A world with executables of these names and descriptions that a model finds by a search.
fn world(tools: &[(&str, &str)]) -> World {
    let world = World::new();
    for (name, description) in tools {
        let spec = json!({"name": name, "description": description, "loading": "deferred",
            // Only haft's own tool finds others.
            "finds": true,
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}},
                "required": ["city"], "additionalProperties": false}});
        let path = world.state().join("tools").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --spec ] && echo '{spec}' && exit\necho \"It rains.\"\n"
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    world
}

const TOOLS: &[(&str, &str)] =
    &[("sky_forecast", "Tells the weather of a city."), ("stock_price", "Tells a price.")];

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Ran {
    let ran = finish(wire.haft(world, &mock.url(), arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// What a request begins with on its wire: the tools, and the system prompt with its instructions.
fn prefix(wire: Wire, body: &str) -> [Value; 2] {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let system = match wire {
        Wire::Anthropic => "system",
        Wire::OpenAi => "messages",
        Wire::Responses => "instructions",
    };
    let system = if wire == Wire::OpenAi { body[system][0].take() } else { body[system].take() };
    assert_ne!(system, Value::Null, "{wire:?}");
    [body["tools"].take(), system]
}

#[test]
fn a_tool_is_found_loaded_and_called_and_stays_known() {
    for wire in WIRES {
        let world = world(TOOLS);
        let named = json!({"name": "sky_forecast", "arguments": {"city": "Rome"}});
        let mock = Mock::new(vec![
            wire.calls(
                "s",
                &[("tool_search", json!({"query": "will it rain in a town, weather"}))],
            ),
            wire.calls("w", &[("call_tool", named.clone())]),
            wire.text("It rains."),
            wire.calls("x", &[("call_tool", named)]),
            wire.text("Still."),
        ]);
        run(&world, wire, &mock, &["-p", "How is the weather in Rome?", "--mode", "bypass"]);
        run(&world, wire, &mock, &["-p", "And now?", "-c", "--mode", "bypass"]);
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 5, "{wire:?}");
        let prefixes: Vec<[Value; 2]> = bodies.iter().map(|body| prefix(wire, body)).collect();
        assert!(prefixes.iter().all(|other| *other == prefixes[0]), "{wire:?}: the prefix moves");
        let [tools, system] = &prefixes[0];
        let system = system.to_string();
        assert!(system.contains("- programs: sky_forecast, stock_price"), "{wire:?}: {system}");
        assert!(system.contains("- haft: ") && system.contains("notebook_edit"), "{system}");
        let tools = tools.to_string();
        assert!(tools.contains("\"tool_search\"") && tools.contains("\"call_tool\""), "{tools}");
        assert!(!tools.contains("sky_forecast") && !tools.contains("notebook_edit"), "{tools}");
        for body in &bodies[1..] {
            assert_eq!(body.matches("Tells the weather of a city.").count(), 1, "{wire:?}: {body}");
        }
        // Rules, events and people have the tool itself.
        let events = world.events();
        let started: Vec<(String, Option<Value>)> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::CallStarted { tool, input, .. } => Some((tool.clone(), input.clone())),
                _ => None,
            })
            .collect();
        let forecast = ("sky_forecast".to_owned(), Some(json!({"city": "Rome"})));
        assert_eq!(started[1..], [forecast.clone(), forecast], "{wire:?}");
        let is_written = |part: &Part| matches!(part, Part::Call(call) if call.name == "call_tool");
        let written = events.iter().filter(|event| match &event.body {
            Body::AnswerPart { part, .. } => is_written(part),
            _ => false,
        });
        assert_eq!(written.count(), 2, "a past call goes back as it was written");
    }
}

/// What a maker's model answers: it searches, calls what was found, and another tool by its right name,
/// which no search has found; then it says much, so that there is something to sum up.
fn maker(wire: Wire, number: usize, request: &HttpRequest) -> HttpResponse {
    let rome = json!({"city": "Rome"});
    if String::from_utf8_lossy(&request.body).contains("You sum up the work") {
        return wire.text("Goal: the weather.");
    }
    match number {
        0 => wire.search("s", "will it rain in a town, weather"),
        1 => wire.calls("w", &[("sky_forecast", rome)]),
        3 => wire.calls("x", &[("sky_forecast", rome)]),
        4 => wire.calls("y", &[("stock_price", rome)]),
        5 => wire.text(&"some words to fill the window with, ".repeat(1_500)),
        _ => wire.text("Done."),
    }
}

#[test]
fn a_maker_gets_late_tools_in_its_own_form_and_again_behind_a_summary() {
    for (wire, model) in
        [(Wire::Anthropic, "anthropic/mock-1"), (Wire::Responses, "openai-responses/gpt-5.4")]
    {
        let world = world(TOOLS);
        let provider = model.split('/').next().unwrap();
        world.settings(&format!("[providers.{provider}]\npasses_on = true\n"));
        let mock = Mock::with(move |number, request| maker(wire, number, request));
        let haft = |arguments: &[&str], input: &str| {
            let mut command = world.haft(arguments);
            command.args(["--model", model, "--mode", "bypass"]);
            command.env(wire.key_variable(), crate::world::CANARY);
            command.env(wire.url_variable(), wire.base(&mock.url()));
            let ran = finish(command, &Input::Pipe(input));
            assert_eq!(ran.code, Some(0), "{ran:?}");
        };
        haft(&["-p", "How is the weather in Rome?"], "");
        haft(&["-p", "And now?", "-c"], "");
        haft(&["--line", "-c"], "go on\n/compact\nand then?\n");
        let requests = mock.requests();
        let bodies = mock.bodies();
        let prefixes: Vec<[Value; 2]> = bodies.iter().map(|body| prefix(wire, body)).collect();
        assert!(prefixes[..6].iter().all(|other| *other == prefixes[0]), "{wire:?}");
        let tools = prefixes[0][0].to_string();
        assert!(!tools.contains("call_tool"), "{wire:?}: {tools}");
        // A request for a summary has no tools.
        let asked = bodies.iter().filter(|body| !body.contains("You sum up the work"));
        let known: Vec<Vec<String>> = asked.map(|body| known_late_tools(wire, body)).collect();
        let (one, both) = (vec!["sky_forecast".to_owned()], ["sky_forecast", "stock_price"]);
        assert_eq!(known[0], Vec::<String>::new(), "{wire:?}");
        assert!(known[1..5].iter().all(|known| *known == one), "{wire:?}: {known:?}");
        assert_eq!(known[5], both, "{wire:?}: {}", bodies[5]);
        let last = known.last().unwrap();
        assert!(both.iter().all(|name| last.iter().any(|known| known == name)), "{known:?}");
        assert!(bodies.last().unwrap().contains("Goal: the weather."), "{wire:?}");
        if wire == Wire::Anthropic {
            let header = |at: usize| {
                let features = requests[at].header("anthropic-beta").unwrap_or_default();
                features.contains("mid-conversation-tool-changes")
            };
            assert!(!header(0) && header(5), "{requests:?}");
        }
        let ran =
            world.outcomes().iter().filter(|one| one.to_string().contains("It rains.")).count();
        assert_eq!(ran, 3, "{wire:?}");
    }
}

#[test]
fn a_rule_and_a_hook_see_the_tool_that_is_meant() {
    let wire = WIRES[1];
    let named = json!({"name": "sky_forecast", "arguments": {"city": "Rome"}});
    let answers = || vec![wire.calls("w", &[("call_tool", named.clone())]), wire.text("Done.")];
    let world = world(TOOLS);
    world.settings(
        "[[hooks.PreToolUse]]\nmatcher = 'sky_forecast'\n\
         hooks = [{ type = 'command', command = 'cat > seen.json' }]\n",
    );
    let mock = Mock::new(answers());
    run(&world, wire, &mock, &["-p", "go", "--mode", "bypass"]);
    let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
    assert_eq!(
        (&seen["tool_name"], &seen["tool_input"]),
        (&json!("sky_forecast"), &json!({"city": "Rome"}))
    );
    // The tool that is asked for is judged, not the one that it came by.
    let mock = Mock::new(answers());
    run(&world, wire, &mock, &["-p", "go"]);
    assert!(mock.bodies()[1].contains("sky_forecast"), "{}", mock.bodies()[1]);
    assert!(!mock.bodies()[1].contains("It rains."), "{}", mock.bodies()[1]);
    let mock = Mock::new(answers());
    run(&world, wire, &mock, &["-p", "go", "--mode", "bypass", "--deny", "sky_forecast"]);
    let [first, second] = &mock.bodies()[..] else { panic!("two requests") };
    assert!(!first.contains("sky_forecast") && first.contains("stock_price"), "{first}");
    assert!(second.contains("there is no tool named") && !second.contains("It rains."), "{second}");
}

#[test]
fn where_nothing_is_deferred_there_is_no_search() {
    let wire = WIRES[0];
    let late = "['notebook_edit', 'snip', 'skill', 'think', 'sleep', 'brief', 'send_file', \
                'config', 'web_fetch']";
    for (settings, flags) in [
        (format!("[tools]\noff = {late}\n"), &[][..]),
        (String::new(), &["--tools", "read,bash"]),
        (format!("[tools]\non = {late}\n"), &[]),
        ("tools.profile = 'small'".to_owned(), &[]),
    ] {
        let world = World::new();
        world.settings(&settings);
        let mock = Mock::new(vec![wire.text("Done.")]);
        run(&world, wire, &mock, &[&["-p", "go"][..], flags].concat());
        let body = &mock.bodies()[0];
        for word in ["tool_search", "call_tool", "More tools"] {
            assert!(!body.contains(word), "{settings} {flags:?}: {word} in {body}");
        }
    }
    // Without a search they can be called by their names.
    let world = world(TOOLS);
    let named = json!({"name": "sky_forecast", "arguments": {"city": "Rome"}});
    let answers = vec![wire.calls("w", &[("call_tool", named)]), wire.text("Done.")];
    let mock = Mock::new(answers);
    run(&world, wire, &mock, &["-p", "go", "--mode", "bypass", "--deny", "ToolSearch"]);
    let [first, second] = &mock.bodies()[..] else { panic!("two requests") };
    assert!(!first.contains("tool_search") && first.contains("sky_forecast"), "{first}");
    assert!(second.contains("It rains."), "{second}");
}

#[test]
fn the_listing_is_a_setting() {
    let world = world(TOOLS);
    world.settings("[tool_search]\nlisting_tokens = 0\n");
    let ran = world.run(&["debug", "prompt"]);
    assert!(ran.out.contains("more servers: ") && !ran.out.contains("sky_forecast"), "{ran:?}");
}

#[test]
fn a_person_and_a_client_have_all_tools_without_a_search() {
    let world = world(TOOLS);
    let ran = world.tool("ToolSearch", &json!({"query": "weather"}), &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.both_outputs().contains("every tool is listed here"), "{ran:?}");
    assert!(ran.both_outputs().contains("haft tool list"), "{ran:?}");
    let ran = world.run(&["tool", "list"]);
    assert!(ran.out.contains("sky_forecast") && ran.out.contains("tool_search"), "{ran:?}");
    let mut client = crate::mcp_client::Client::greeted(&world, &[]);
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].to_string();
    for name in ["sky_forecast", "stock_price", "notebook_edit"] {
        assert!(tools.contains(&format!("\"{name}\"")), "{name}: {tools}");
    }
    assert!(!tools.contains("tool_search") && !tools.contains("call_tool"), "{tools}");
}
