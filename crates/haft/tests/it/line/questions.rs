//! Questions in `--line`: what a person sees of them, and around them.

use haft_types::{Body, Event, From, Mode};
use serde_json::{Value, json};

use super::terminal::Tmux;
use crate::{
    mock_provider::{Mock, WIRES},
    world::{Input, PATIENCE, World, finish, notices, until},
};

/// A talk in which a question is open.
fn asked(world: &World, call: &Value) -> Tmux {
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let tmux = Tmux::talk(world, &model, "");
    tmux.line("go on");
    tmux.sees("key:");
    tmux
}

#[test]
fn what_a_key_does_is_said_once_under_a_question() {
    let world = World::new();
    let tmux = asked(&world, &json!({"name": "bash", "input": {"command": "touch made"}}));
    for number in 2..4 {
        tmux.types("x");
        tmux.sees("> x");
        tmux.key("BSpace");
        let asks = || tmux.screen().matches("key:").count() == number;
        assert!(until(PATIENCE, asks), "{}", tmux.screen());
    }
    let screen = tmux.screen();
    assert_eq!(screen.matches("Press one key, or type what to do instead").count(), 1, "{screen}");
    tmux.types("n");
    tmux.sees("The end.");
    println!("{screen}");
}

#[test]
fn a_question_shows_a_long_command_whole_and_apart() {
    let world = World::new();
    let command = "set -e\nfor i in 1 2; do\n  touch $i\ndone\n";
    let tmux = asked(&world, &json!({"name": "bash", "input": {"command": command}}));
    let screen = tmux.screen();
    let wanted = "? Running set -e (4 lines)\n  No rule allows running `touch $i`: it makes";
    assert!(screen.contains(wanted), "{screen}");
    let wanted = "\n  | set -e\n  | for i in 1 2; do\n  |   touch $i\n  | done\n  [y] ";
    assert!(screen.contains(wanted), "{screen}");
}

#[test]
fn a_question_shows_what_would_be_written_where_nobody_may_look() {
    let world = World::new();
    let input = json!({"path": "../outside.txt", "content": "new words\n"});
    let tmux = asked(&world, &json!({"name": "write", "input": input}));
    let screen = tmux.screen();
    assert!(screen.contains("outside the workspace") && screen.contains("new words"), "{screen}");
}

#[test]
fn a_typed_line_of_several_rows_leaves_nothing_behind() {
    let world = World::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.02; done; echo came-{name}");
    let call = |name: &str| json!({"name": "bash", "input": {"command": wait(name)}});
    let calls = |name: &str| json!({"calls": [call(name)]});
    let model = world.script(&[calls("one"), calls("two"), json!({"text": "The end."})]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go on");
    tmux.sees("until [ -e one ]");
    let typed = "word ".repeat(30);
    tmux.types(&typed);
    tmux.sees(typed.trim_end());
    world.file("one", "");
    tmux.sees("until [ -e two ]");
    assert!(until(PATIENCE, || tmux.screen().matches("> word").count() == 1), "{}", tmux.screen());
    // Taken away over the end of a row.
    for _ in 0..60 {
        tmux.key("BSpace");
    }
    let left = format!("> {}", "word ".repeat(18));
    let alone = || {
        let screen = tmux.screen();
        screen.matches("word").count() == 18 && screen.contains(left.trim_end())
    };
    assert!(until(PATIENCE, alone), "{}", tmux.screen());
    // A terminal that is made narrower wraps it; what was there before stays readable.
    tmux.resize(40);
    world.file("two", "");
    let screen = tmux.sees("The end.");
    assert!(screen.contains("came-two") && screen.contains("until [ -e two ]"), "{screen}");
    assert!(screen.matches(left.trim_end()).count() <= 2, "{screen}");
    println!("{screen}");
}

#[test]
fn a_question_that_nobody_can_answer_any_more_ends_its_line() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "touch made"}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go on\n"));
    assert!(ran.out.contains("  key: \n  denied: "), "{}", ran.out);
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "The end."})]);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go on\n\nn\n"));
    assert!(ran.out.contains("key: \n  press one of y, s, a, n: n  (no)\n"), "{}", ran.out);
}

#[test]
fn a_mode_that_was_set_is_in_the_log_and_the_model_is_told() {
    for wire in WIRES {
        let world = World::new();
        world.settings(&format!("[models.\"{}\"]\ncontext = 200000\n", wire.model()));
        let mock = Mock::with(move |number, _| wire.text(&format!("Answer {number}.")));
        let lines = "one\n/mode plan\ntwo\n/mode ask\n/quit\n";
        let ran = finish(wire.haft(&world, &mock.url(), &["--line"]), &Input::Pipe(lines));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        let text = "The person set the mode to plan. Mode plan is on: change nothing until";
        assert!(!bodies[0].contains(text) && bodies[1].contains(text), "{bodies:#?}");
        let told = world.events();
        let set = |event: &Event| match &event.body {
            Body::Mode { mode, edits: false, by } if by == "line" => Some(*mode),
            _ => None,
        };
        let set: Vec<Mode> = told.iter().filter_map(set).collect();
        assert_eq!(set, [Mode::Plan, Mode::Ask], "also without a further message");
        assert_eq!(notices(&told), [], "it is no notice");
        let said: Vec<String> = told
            .iter()
            .filter_map(|event| match &event.body {
                Body::User { from: From::Haft, parts, .. } => Some(format!("{parts:?}")),
                _ => None,
            })
            .collect();
        let [mode, tools] = &said[..] else { panic!("{said:?}") };
        assert!(mode.contains(text) && tools.contains("from here on: exit_plan."), "{said:?}");
    }
}

#[test]
fn a_question_about_several_commands_names_each() {
    let world = World::new();
    world.file("sub/a", "");
    let command = "ls; git push origin main; rm -rf sub; ls | sh; echo x > a.txt";
    let tmux = asked(&world, &json!({"name": "bash", "input": {"command": command}}));
    let screen = tmux.screen().replace("\u{a6} ", "");
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["running `git push origin main`", "`rm -rf sub`", "`sh`", "`echo x > a.txt`"] {
        let told = screen.rsplit("No rule allows").next().unwrap();
        assert!(told.contains(part), "{part}: {screen}");
    }
}

/// Characters that nobody sees or takes for a space, each of another kind.
const UNSEEN: [char; 16] = [
    '\u{ad}',
    '\u{34f}',
    '\u{115f}',
    '\u{180b}',
    '\u{200d}',
    '\u{202e}',
    '\u{2800}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{1d173}',
    '\u{e0101}',
    '\u{e000}',
    '\u{fdd0}',
    '\u{a0}',
    '\u{2003}',
    '\u{3000}',
];

/// A word with all of them, and what is to be seen of it.
pub fn unseen() -> (String, String) {
    let sign = |c: &char| format!("<U+{:04X}>b", u32::from(*c));
    let word: String = UNSEEN.iter().flat_map(|c| [*c, 'b']).collect();
    (format!("a{word}"), format!("a{}", UNSEEN.iter().map(sign).collect::<String>()))
}

#[test]
fn a_question_shows_what_nobody_would_see() {
    let world = World::new();
    let (odd, shown) = unseen();
    for call in [
        json!({"name": "bash", "input": {"command": format!("touch {odd}; true")}}),
        json!({"name": "write", "input": {"path": "x", "content": format!("{odd}\n")}}),
        json!({"name": "write", "input": {"path": odd, "content": "y\n"}}),
    ] {
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "End."})]);
        let arguments = ["--line", "--model", &model];
        let ran = world.run_with(&arguments, &Input::Pipe("go on\nn\n"));
        let asked = ran.out.rsplit("\n? ").next().unwrap().split("key:").next().unwrap();
        assert!(asked.contains(&shown) && !ran.out.contains(UNSEEN), "{call} {ran:?}");
    }
    let ran = world.run(&["why", &format!("touch {odd}; true")]);
    assert!(ran.out.contains(&shown) && !ran.out.contains(UNSEEN), "{ran:?}");
}
