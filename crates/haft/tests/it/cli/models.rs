//! What is known of models, which of them answers where none is named, and what they cost.

use serde_json::{Value, json};

use crate::{
    mock_provider::{Mock, Wire},
    world::{CANARY, Input, World, finish},
};

#[test]
fn models_are_listed_and_found_by_a_part_of_their_names() {
    let world = World::new();
    let all = world.run(&["models"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(all.out.lines().count() > 50, "{}", all.out);
    assert!(all.err.contains("as of 20"), "{all:?}");
    let some = world.run(&["models", "SONNET", "--json"]);
    for model in some.lines() {
        assert!(model["model"].as_str().unwrap().contains("sonnet"), "{model}");
        assert!(model["context"].as_u64().unwrap() >= 200_000, "{model}");
        assert!(model["price"]["input"].as_f64().unwrap() > 0.0, "{model}");
        assert_eq!(model["usable"], false, "no key is set");
    }
    let none = world.run(&["models", "no-such-model"]);
    assert_eq!((none.code, none.out.as_str()), (Some(1), ""), "{none:?}");
    assert!(none.err.contains("\"no-such-model\""), "{none:?}");
}

#[test]
fn settings_extend_and_replace_what_is_known() {
    let world = World::new();
    world.settings(
        "[providers.mine]\naddress = \"http://127.0.0.1:9/v1\"\n[models.\"mine/big\"]\ncontext = 70000\n\
         tier = \"large\"\nprice = { input = 1, output = 2.5 }\n[models.\"openai/gpt-4o\"]\noutput = 99\n",
    );
    let mine = world.run(&["models", "mine/", "--json"]).lines().remove(0);
    assert_eq!((&mine["context"], &mine["tier"]), (&json!(70_000), &json!("large")));
    assert_eq!((&mine["price"]["output"], &mine["usable"]), (&json!(2.5), &json!(true)));
    let known = world.run(&["models", "openai/gpt-4o", "--json"]).lines().remove(0);
    assert_eq!((&known["output"], &known["context"]), (&json!(99), &json!(128_000)));
    for (settings, wanted) in [
        ("context = 3", "models.a/b.context: 3 does not fit: it must be at least 1000"),
        ("price = { input = -1, output = 2 }", "models.a/b.price.input: -1 does not fit"),
        ("price = { input = 1 }", "output"),
        ("tier = \"huge\"", "huge"),
    ] {
        world.settings(&format!("[models.\"a/b\"]\n{settings}\n"));
        let ran = world.run(&["models"]);
        assert_eq!(ran.code, Some(2), "{settings}: {ran:?}");
        assert!(ran.err.contains(wanted), "{settings}: {ran:?}");
    }
}

#[test]
fn fields_of_the_settings_go_into_each_request() {
    for wire in crate::mock_provider::WIRES {
        let (world, mock) = (World::new(), Mock::new(vec![wire.text("Hello.")]));
        world.settings(&format!(
            "[models.\"{}\".extra]\ntemperature = 0.25\nmodel = \"other\"\nmetadata = {{ a = [1] }}\n",
            wire.model()
        ));
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "hi"]), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let body: Value = serde_json::from_str(&mock.bodies()[0]).unwrap();
        assert_eq!((&body["temperature"], &body["model"]), (&json!(0.25), &json!("mock-1")));
        assert_eq!(body["metadata"], json!({"a": [1]}));
    }
}

#[test]
fn requests_say_how_long_a_person_wants_answers_to_be() {
    const FIELDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let most = |body: &str| {
        let body: Value = serde_json::from_str(body).unwrap();
        FIELDS.iter().find_map(|field| body[field].as_u64())
    };
    for wire in crate::mock_provider::WIRES {
        let (world, mock) = (World::new(), Mock::with(move |_, _| wire.text("Hello.")));
        let one = wire.model();
        let other = one.replace("mock-1", "mock-2");
        let models =
            format!("[models.\"{one}\"]\noutput = 77\n[models.\"{other}\"]\noutput = 88\n");
        world.settings(&models);
        let command = wire.haft(&world, &mock.url(), &["--line"]);
        let input = format!("hi\n/model {other}\nhi\n/model {one}\nhi\n/quit\n");
        let ran = finish(command, &Input::Pipe(&input));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said: Vec<Option<u64>> = mock.bodies().iter().map(|body| most(body)).collect();
        assert_eq!(said, [Some(77), Some(88), Some(77)], "{ran:?}");
    }
}

#[test]
fn the_only_key_chooses_a_model_and_two_do_not() {
    let (world, mock) = (World::new(), Mock::new(vec![Wire::OpenAi.text("Hello.")]));
    let mut command = world.haft(&["-p", "hi"]);
    command.env("GROQ_API_KEY", CANARY).env("GROQ_BASE_URL", format!("{}/v1", mock.url()));
    let ran = finish(command, &Input::Nothing);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    let told = "groq/openai/gpt-oss-120b answers: the only key is GROQ_API_KEY";
    assert!(ran.err.contains(told), "{ran:?}");
    assert!(mock.bodies()[0].contains("\"openai/gpt-oss-120b\""), "{}", mock.bodies()[0]);
    let mut command = world.haft(&["-p", "hi"]);
    command.env("GROQ_API_KEY", CANARY).env("OPENAI_API_KEY", CANARY);
    let ran = finish(command, &Input::Nothing);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("GROQ_API_KEY") && ran.err.contains("OPENAI_API_KEY"), "{ran:?}");
}

#[test]
fn the_model_that_a_person_chose_last_answers_again() {
    let (world, wire) = (World::new(), Wire::OpenAi);
    let mock = Mock::with(move |_, _| wire.text("Hello."));
    let run = |arguments: &[&str], input: &str| {
        let mut command = world.haft(arguments);
        command
            .env("OPENAI_API_KEY", CANARY)
            .env("MISTRAL_API_KEY", CANARY)
            .env("OPENAI_BASE_URL", wire.base(&mock.url()));
        finish(command, &Input::Pipe(input))
    };
    // What a program names is no choice of a person.
    assert_eq!(run(&["-p", "hi", "--model", "openai/one"], "").code, Some(0));
    assert_eq!(run(&["-p", "hi"], "").code, Some(2));
    let talk = run(&["--line", "--model", "openai/two"], "hi\n/quit\n");
    assert_eq!(talk.code, Some(0), "{talk:?}");
    let ran = run(&["-p", "hi"], "");
    assert!(ran.err.contains("openai/two answers: the one chosen last"), "{ran:?}");
    let talk = run(&["--line"], "hi\n/model openai/three\n/quit\n");
    assert!(talk.out.contains("openai/two (the one chosen last)"), "{talk:?}");
    let ran = run(&["-p", "hi", "--output", "json"], "");
    assert_eq!(ran.json()["model"], "three", "{ran:?}");
    // One that cannot be used is not taken.
    std::fs::write(world.state().join("last-model"), "anthropic/four").unwrap();
    assert_eq!(run(&["-p", "hi"], "").code, Some(2));
}

#[test]
fn what_a_session_cost_is_told_by_model() {
    let (world, wire) = (World::new(), Wire::OpenAi);
    let mock = Mock::with(move |_, _| wire.text("Hello."));
    world.settings("[models.\"openai/mock-1\"]\nprice = { input = 1000, output = 10000 }\n");
    let arguments = ["-p", "hi", "--output", "json"];
    let first = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing).json();
    // 11 tokens in and 7 out.
    assert_eq!(first["cost_usd"], json!(0.081), "{first}");
    let mut again = wire.haft(&world, &mock.url(), &arguments);
    again.arg("-c");
    let second = finish(again, &Input::Nothing).json();
    assert_eq!(second["cost_usd"], json!(0.081), "of this run: {second}");
    let mut cost = world.haft(&["session", "cost", "--json"]);
    cost.env("OPENAI_BASE_URL", wire.base(&mock.url()));
    let told: Value = finish(cost, &Input::Nothing).json();
    assert_eq!(told["models"][0]["model"], "openai/mock-1", "{told}");
    assert_eq!(told["models"][0]["requests"], 2, "{told}");
    assert!((told["cost_usd"].as_f64().unwrap() - 0.162).abs() < 1e-9, "{told}");
    // Without the address nobody knows whose model it was.
    let told = world.run(&["session", "cost"]);
    assert!(told.out.contains("mock-1: price unknown, 2 requests"), "{told:?}");
    world.settings("");
    let unknown = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing).json();
    assert_eq!(unknown["cost_usd"], Value::Null, "{unknown}");
}

#[test]
fn a_run_ends_before_its_money_does() {
    for wire in crate::mock_provider::WIRES {
        let world = World::new();
        world.file("a.txt", "alpha\n");
        world.settings(&format!(
            "[run]\nrepeats = 0\n[models.\"{}\"]\ncontext = 1000000\noutput = 128000\nprice = {{ input = 15, output = 75 }}\n",
            wire.model()
        ));
        let mock = Mock::with(move |number, _| match number {
            // Ten small steps, then one that goes on for ever.
            0..9 => wire.calls(&format!("call{number}"), &[("read", json!({"path": "a.txt"}))]),
            _ => wire.text("Done."),
        });
        let run = |most: &str| {
            let mut command = wire.haft(&world, &mock.url(), &["-p", "go", "--output", "json"]);
            command.args(["--max-cost", most]);
            finish(command, &Input::Nothing)
        };
        let ran = run("1");
        assert_eq!((ran.code, &ran.json()["steps"]), (Some(0), &json!(10)), "{ran:?}");
        // What is left limits each answer.
        let first: Value = serde_json::from_str(&mock.bodies()[0]).unwrap();
        let limit = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let limit = limit.iter().find_map(|field| first[field].as_u64()).unwrap();
        assert!((4_096..13_333).contains(&limit), "{limit}");
        let before = mock.bodies().len();
        let ran = run("0.01");
        assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("limit")), "{ran:?}");
        assert_eq!(mock.bodies().len(), before, "nothing was asked");
        let id = ran.json()["session"].as_str().unwrap().to_owned();
        assert!(ran.err.contains("the limit of $0.01: $0.0000 was spent"), "{ran:?}");
        assert!(ran.err.contains(&format!("haft -r {id} --max-cost +1")), "{ran:?}");
        let unknown = finish(
            {
                world.settings("");
                let mut command = wire.haft(&world, &mock.url(), &["-p", "go"]);
                command.args(["--max-cost", "1"]);
                command
            },
            &Input::Nothing,
        );
        assert_eq!(unknown.code, Some(2), "{unknown:?}");
        assert!(unknown.err.contains(wire.model()) && unknown.err.contains("price"), "{unknown:?}");
    }
    let world = World::new();
    for wrong in ["0", "-1", "much", "inf"] {
        let ran = world.run(&["-p", "go", "--max-cost", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {ran:?}");
        assert!(ran.err.contains("an amount of dollars above 0"), "{wrong}: {ran:?}");
    }
}
