//! A model that does or says the same again and again, and a person who is asked at a limit.

use haft_testkit::http::Step;
use serde_json::json;

use crate::{
    line::terminal::Tmux,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, PATIENCE, World, all_calls_ended, finish, until},
};

#[test]
fn the_same_call_with_the_same_result_is_told_and_then_ends_the_turn() {
    for wire in WIRES {
        for (name, input) in [
            ("ls", json!({})),
            ("bash", json!({"command": "echo hello"})),
            // One that is refused is the same, too.
            ("read", json!({"path": "nothing.txt"})),
        ] {
            let world = World::new();
            let call = input.clone();
            let mock = Mock::with(move |number, _| match number {
                0..12 => wire.calls(&format!("call{number}"), &[(name, call.clone())]),
                _ => wire.text("Enough."),
            });
            let run = || {
                let arguments = ["-p", "go", "--output", "json", "--mode", "bypass"];
                finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing)
            };
            let ran = run();
            let result = ran.json();
            let end = (ran.code, &result["status"], &result["steps"]);
            assert_eq!(end, (Some(1), &json!("limit"), &json!(8)), "{wire:?} {name}: {ran:?}");
            let why = format!("{name} was called 8 times with the same arguments");
            assert!(ran.err.contains(&why), "{wire:?} {name}: {ran:?}");
            let told = "This is call number 3 in a row";
            let bodies = mock.bodies();
            assert_eq!(bodies[2].matches(told).count(), 0, "{name}: {}", bodies[2]);
            for body in &bodies[3..] {
                assert_eq!(body.matches(told).count(), 1, "{name}: {body}");
            }
            all_calls_ended(&world.events());
        }
    }
    // It may be switched off.
    let (world, wire) = (World::new(), Wire::OpenAi);
    world.settings("[run]\nrepeats = 0\n");
    let mock = Mock::with(move |number, _| match number {
        0..12 => wire.calls(&format!("call{number}"), &[("ls", json!({}))]),
        _ => wire.text("Enough."),
    });
    let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go"]), &Input::Nothing);
    assert_eq!((ran.code, &*ran.out), (Some(0), "Enough.\n"), "{ran:?}");
    assert!(!mock.bodies().concat().contains("in a row"));
}

#[test]
fn an_answer_that_repeats_a_line_without_an_end_is_cut_and_not_asked_for_again() {
    for wire in WIRES {
        let world = World::new();
        world.settings("[model]\nfallback = 'ollama/other'\n");
        let line = "I will look at the file again now.\n";
        let mock = Mock::with(move |_, _| {
            let mut answer = wire.text(&line.repeat(400));
            let Step::Send(body) = &answer.steps[0] else { panic!("one piece") };
            let body = String::from_utf8(body.to_vec()).unwrap();
            let at = body.find("again now.").unwrap();
            let end = at + body[at..].find("\n\n").unwrap() + 2;
            answer.steps = vec![Step::Send(body[..end].to_owned().into()), Step::Stall];
            answer
        });
        let arguments = ["-p", "go", "--output", "json"];
        let ran = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing);
        assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("failed")), "{ran:?}");
        let error = ran.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("the same line more than 200 times"), "{error}");
        assert_eq!(mock.requests().len(), 1, "{wire:?}");
        // Arguments of a call may hold what they want.
        let call = json!({"path": "lines.txt", "content": line.repeat(400)});
        let mock = Mock::with(move |number, _| match number {
            0 => wire.calls("one", &[("write", call.clone())]),
            _ => wire.text("Written."),
        });
        let arguments = ["-p", "go", "--mode", "bypass"];
        let ran = finish(wire.haft(&world, &mock.url(), &arguments), &Input::Nothing);
        assert_eq!((ran.code, &*ran.out), (Some(0), "Written.\n"), "{ran:?}");
        assert_eq!(world.read("lines.txt").lines().count(), 400);
    }
}

#[test]
fn at_the_limit_of_money_a_person_is_asked() {
    let world = World::new();
    let mock = Mock::with(|number, _| Wire::OpenAi.text(&format!("Answer {number}.")));
    let model = format!("mock/at-{}", mock.url().rsplit(':').next().unwrap());
    // The least that a request may write costs 41 cents.
    world.settings(&format!(
        "[providers.mock]\naddress = {:?}\n[models.{model:?}]\ncontext = 100000\n\
         price = {{ input = 0, output = 100 }}\n",
        mock.url()
    ));
    let tmux = Tmux::talk(&world, &model, "--max-cost 0.25");
    let asked = |times: usize| {
        let is_asked = || tmux.screen().matches("key:").count() == times;
        assert!(until(PATIENCE, is_asked), "{}", tmux.screen());
    };
    tmux.line("one");
    let screen = tmux.sees("up to $0.5 in this turn");
    asked(1);
    for part in ["the limit of $0.25", "$0.0000 was spent", "may cost $0.4096"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_eq!(mock.requests().len(), 0, "nothing is asked before");
    tmux.key("y");
    tmux.sees("Answer 0.");
    // It was for that turn.
    tmux.line("two");
    asked(2);
    tmux.key("n");
    tmux.line("three");
    asked(3);
    tmux.key("C-c");
    tmux.sees("interrupted");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
    assert_eq!(mock.requests().len(), 1);
    let last = mock.bodies().pop().unwrap();
    assert!(last.contains("\"max_tokens\":5000") || last.contains("_tokens\":5000"), "{last}");
}
