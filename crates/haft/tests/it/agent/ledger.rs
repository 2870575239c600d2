//! What each request took, and what the provider's cache could have of it: `-p`,
//! `haft session cost`.

use haft_testkit::http::HttpRequest;
use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, Ran, World, finish},
};

/// A server whose answers are a call that reads a file after a word of the person, then words.
fn server(wire: Wire) -> Mock {
    let mut number = 0;
    Mock::with(move |_, request: &HttpRequest| {
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let last = body.rfind("Please").unwrap_or_default();
        if body[last..].contains(wire.result_id()) {
            return wire.text("I have read it.");
        }
        number += 1;
        wire.calls(&format!("c{number}"), &[("read", json!({"path": "a.txt"}))])
    })
}

fn run(world: &World, wire: Wire, mock: &Mock, arguments: &[&str]) -> Vec<Value> {
    let arguments = [arguments, &["--output", "json"]].concat();
    let ran: Ran = finish(wire.haft(world, &mock.url(), &arguments), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["requests"].as_array().unwrap().clone()
}

#[test]
fn each_request_is_compared_with_the_one_before() {
    for wire in WIRES {
        let world = World::new();
        world.file("a.txt", "alpha beta gamma\n".repeat(400));
        let mock = server(wire);
        let first = run(&world, wire, &mock, &["-p", "Please read it."]);
        assert_eq!(first.len(), 2, "{first:?}");
        let cache = |row: &Value, name: &str| row["cache"][name].clone();
        assert_eq!((cache(&first[0], "same"), cache(&first[0], "expected")), (json!(0), json!(0)));
        // The whole first request stands in the second one.
        assert_eq!(cache(&first[1], "same"), cache(&first[0], "bytes"), "{first:?}");
        assert_eq!(cache(&first[1], "changed"), Value::Null);
        assert!(cache(&first[1], "expected").as_u64().unwrap() > 1_024, "{first:?}");
        // Nobody knows what is still held of a session that goes on, until it is asked again.
        let again = run(&world, wire, &mock, &["-p", "Please read it again.", "-c"]);
        assert_eq!(cache(&again[0], "expected"), Value::Null, "{again:?}");
        assert_eq!(cache(&again[1], "same"), cache(&again[0], "bytes"), "{again:?}");

        let session = world.only_session();
        let told = world.run(&["session", "cost", &session, "--requests"]);
        assert_eq!(told.out.lines().count(), 5, "{told:?}");
        let second = told.out.lines().nth(1).unwrap();
        let same = first[0]["cache"]["bytes"].as_u64().unwrap();
        assert!(second.contains(&format!("{same} of ")) && second.contains(" bytes as before"));
        let told = world.run(&["session", "cost", &session, "--json"]);
        assert_eq!(told.json()["requests"].as_array().unwrap().len(), 4, "{told:?}");
        assert_eq!(told.json()["requests"][1]["cache"], first[1]["cache"]);
    }
}

/// In one run: old results leave view, and the first byte that differs is that of a message.
#[test]
fn a_break_names_what_changed_and_what_it_costs() {
    for wire in WIRES {
        let world = World::new();
        let model = wire.model();
        world.settings(&format!(
            "[models.\"{model}\"]\ncontext = 60000\nprice = {{ input = 10, output = 20 }}\n\
             [context]\nmask_percent = 20\n"
        ));
        for number in 0..12 {
            let line = format!("file {number}, a line of some length to fill the window with\n");
            world.file(&format!("big{number}.txt"), line.repeat(20_000 / line.len()));
        }
        let mut number = 0;
        let mock = Mock::with(move |_, _| {
            number += 1;
            let path = format!("big{}.txt", number - 1);
            let call = [("read", json!({ "path": path }))];
            if number < 11 { wire.calls(&format!("c{number}"), &call) } else { wire.text("Done.") }
        });
        let rows = run(&world, wire, &mock, &["-p", "Read them all."]);
        let broken: Vec<&Value> =
            rows.iter().filter(|row| row["cache"]["changed"].is_string()).collect();
        assert!(!broken.is_empty(), "{rows:?}");
        for row in &broken {
            let cache = &row["cache"];
            assert!(cache["changed"].as_str().unwrap().starts_with("message "), "{cache}");
            assert!(cache["same"].as_u64() < cache["bytes"].as_u64(), "{cache}");
        }
        let told = crate::world::notices(&world.events());
        let told: Vec<&String> = told
            .iter()
            .map(|(_, text)| text)
            .filter(|text| text.contains("tokens are sent that no cache has, $"))
            .collect();
        assert!(!told.is_empty(), "{told:?}");
        let cost = world.run(&["session", "cost", &world.only_session()]);
        assert!(cost.out.contains(" changed at byte "), "{cost:?}");
    }
}

/// Many steps on each wire: nothing that was sent before ever changes, and neither the log nor the
/// output grows faster than the steps do.
#[test]
fn two_hundred_steps_leave_the_prefix_alone() {
    for wire in WIRES {
        let run = |steps: usize| {
            let world = World::new();
            world.settings(&format!("[models.\"{}\"]\ncontext = 1000000\n", wire.model()));
            world.file("a.txt", "alpha beta gamma\n");
            let mock = Mock::with(move |number, _| {
                // Each asks for another line, or the answer would be that nothing has changed.
                let input = json!({"pattern": format!("alpha|{number}"), "path": "a.txt"});
                let call = [("grep", input)];
                if number + 1 < steps {
                    wire.calls(&format!("c{number}"), &call)
                } else {
                    wire.text("Done.")
                }
            });
            let arguments = ["-p", "Go on.", "--output", "stream-json"];
            let ran = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
            let rows = last["requests"].as_array().unwrap().clone();
            assert_eq!(rows.len(), steps, "{wire:?}");
            for (number, pair) in rows.windows(2).enumerate() {
                let (before, now) = (&pair[0]["cache"], &pair[1]["cache"]);
                assert_eq!(now["same"], before["bytes"], "{wire:?} {number}: {now}");
                assert_eq!(now["changed"], Value::Null, "{wire:?} {number}: {now}");
            }
            let listed = world.run(&["session", "list", "--json"]).json();
            (listed["bytes"].as_u64().unwrap(), ran.out.len() as u64)
        };
        let (half, whole) = (run(100), run(200));
        assert!(whole.0 < half.0 * 9 / 4, "{wire:?}: the log has {half:?} and {whole:?} bytes");
        assert!(whole.1 < half.1 * 9 / 4, "{wire:?}: the output has {half:?} and {whole:?} bytes");
    }
}
