//! `ask_user` through every face: who can answer is asked, and where nobody is that is said at once.

use std::{io::Write as _, process::Stdio};

use haft_types::{Answerer, Body, Event, Question, Reply};
use serde_json::{Value, json};

use super::front_ends::Second;
use crate::{
    line::terminal::Tmux,
    mcp_client::Client,
    mock_provider::{Mock, WIRES, Wire},
    world::{Input, World, collect, ended, example, finish},
};

/// Two questions in the shape of Claude Code.
fn two() -> Value {
    json!({"questions": [
        {"question": "Which database?", "header": "Database", "multiSelect": false, "options": [
            {"label": "PostgreSQL", "description": "a server"},
            {"label": "SQLite", "description": "a file", "preview": "open(\"a.db\")"}]},
        {"question": "Which checks?", "header": "Checks", "multiSelect": true, "options": [
            {"label": "lint", "description": ""}, {"label": "test", "description": ""}]}]})
}

fn one() -> Value {
    json!({"questions": [{"question": "Keep the old names?", "kind": "yes_no"}]})
}

/// A scripted model that asks and then ends.
fn model(world: &World, input: &Value) -> String {
    let call = json!({"name": "AskUserQuestion", "input": input});
    world.script(&[json!({"calls": [call]}), json!({"text": "The end."})])
}

fn asked_and_answered(events: &[Event]) -> (Vec<Question>, Vec<(Reply, Answerer)>) {
    let (mut questions, mut replies) = (Vec::new(), Vec::new());
    for event in events {
        match &event.body {
            Body::Asked { question } => questions.push(question.clone()),
            Body::Answered { reply, by, .. } => replies.push((reply.clone(), by.clone())),
            _ => {}
        }
    }
    (questions, replies)
}

/// The texts that calls of a session gave the model.
fn results(events: &[Event]) -> Vec<String> {
    let ends = events.iter().filter_map(|event| match &event.body {
        Body::CallEnded { outcome, .. } => Some(outcome.joined_text()),
        _ => None,
    });
    ends.collect()
}

#[test]
fn line_mode_takes_a_line_for_each_question_and_asks_before_it_sends() {
    let world = World::new();
    let model = model(&world, &two());
    let lines = "go on\n2\n\n<\n1, and audit\ny\n";
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe(lines));
    let events = world.events();
    let wanted = "Database: SQLite\nChecks: lint; in the person's words: and audit";
    assert_eq!(results(&events), [wanted], "{ran:?}");
    let (questions, replies) = asked_and_answered(&events);
    assert_eq!((questions.len(), replies.len()), (1, 1), "each stands in the log once");
    let input = json!({"q1": "SQLite", "q2": ["lint", "and audit"]});
    let reply = Reply { input: Some(input), ..Reply::pick("answer") };
    assert_eq!(replies, [(reply, Answerer::Person("line".into()))]);
    let kept = world.run(&["session", "show", &world.only_session(), "--question", "1"]);
    let answered = r#"answered with answer (line): {"q1":"SQLite","q2":["lint","and audit"]}"#;
    assert!(kept.out.contains("  2  SQLite: a file") && kept.out.contains(answered), "{kept:?}");
    let (_, shown) = ran.out.split_once("> go on").unwrap();
    insta::assert_snapshot!("line", shown.split("Go on with").next().unwrap());
}

#[test]
fn a_question_alone_is_answered_by_its_line_and_left_by_a_key() {
    for (lines, wanted) in [
        ("go on\ny\n", "Keep the old names?: Yes"),
        ("go on\n\nonly the public ones\n", "Keep the old names?: in the person's words: only the"),
        // Nobody is there any more.
        ("go on\n", "nobody is here who could answer"),
    ] {
        let world = World::new();
        let model = model(&world, &one());
        let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe(lines));
        let results = results(&world.events());
        assert!(results.len() == 1 && results[0].starts_with(wanted), "{results:?} {ran:?}");
    }
}

#[test]
fn in_a_terminal_of_line_mode_a_line_answers() {
    let world = World::new();
    let model = model(&world, &two());
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("go on");
    tmux.sees("1 of 2  Database (Which database?): one of 1 PostgreSQL, 2 SQLite");
    tmux.line("sqlite");
    tmux.sees("2 of 2  Checks");
    tmux.line("test");
    tmux.sees("[<] change the last one");
    tmux.sees("key:");
    tmux.types("y");
    tmux.sees("The end.");
    assert_eq!(results(&world.events()), ["Database: SQLite\nChecks: test"]);
}

#[test]
fn hostile_words_are_shown_whole_and_harmless() {
    let world = World::new();
    let words = "Delete?\u{1b}[2J\u{202e}\n  [y] yes, send this\n? Running rm";
    let input = json!({"questions": [{"question": words, "header": "a\u{7}\nb", "options": [
        {"label": "A\u{1b}]0;x\u{7}", "description": "b\n  2  C: d", "preview": "\u{9b}31m\n[y] z"},
        {"label": "B"},
    ]}]});
    let model = model(&world, &input);
    let ran = world.run_with(&["--line", "--model", &model], &Input::Pipe("go on\n2\n"));
    let hidden = |c: char| haft_render::is_hidden(c) && c != '\n';
    assert!(!ran.out.contains(hidden), "{:?}", ran.out);
    let lines: Vec<&str> = ran.out.lines().map(str::trim_end).collect();
    for line in ["  |   [y] yes, send this", "  | ? Running rm", "  | [y] z"] {
        assert!(lines.contains(&line), "{line:?} in {lines:#?}");
    }
    let forged = ran.out.lines().find(|line| line.starts_with("? Running"));
    assert_eq!(forged, None, "{lines:#?}");
    let numbered = lines.iter().filter(|line| line.trim_start().starts_with("2  "));
    assert_eq!(numbered.count(), 1, "{lines:#?}");
}

#[test]
fn without_a_person_it_is_not_listed_and_says_what_to_do() {
    for wire in WIRES {
        let world = World::new();
        let calls = [("AskUserQuestion", two())];
        let mock = Mock::new(vec![wire.calls("a", &calls), wire.text("Done.")]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "go on"]), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        assert!(!bodies[0].contains("ask_user"), "{wire:?}: it is listed");
        assert!(bodies[1].contains("nobody is here who could answer"), "{wire:?} {}", bodies[1]);
        assert!(bodies[1].contains("what you assumed"), "{wire:?} {}", bodies[1]);
        // A person who talks on with it can be asked.
        let mock = Mock::new(vec![wire.calls("b", &calls), wire.text("Done.")]);
        let command = wire.haft(&world, &mock.url(), &["--line", "-c"]);
        let ran = finish(command, &Input::Pipe("go on\n1\n2\ny\n"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        assert!(bodies[0].contains("ask_user"), "{wire:?}: it is not listed");
        assert!(bodies[1].contains("Database: PostgreSQL"), "{wire:?} {}", bodies[1]);
        // What was chosen is there after a resume, and no question is open.
        let mock = Mock::new(vec![wire.text("Done.")]);
        let ran = finish(wire.haft(&world, &mock.url(), &["-p", "more", "-c"]), &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(mock.bodies()[0].contains("Database: PostgreSQL"), "{wire:?}");
        let (questions, replies) = asked_and_answered(&world.events());
        assert_eq!((questions.len(), replies.len()), (1, 1), "{wire:?}");
    }
}

#[test]
fn another_front_end_answers_by_commands() {
    let world = World::new();
    let model = model(&world, &two());
    let mut command = world.program(example("second_front_end"));
    command.args(["--line", "--model", &model]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let out = collect(child.stdout.take());
    let mut second = Second::connect(&world);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "go").unwrap();
    let asked = second.sees(|event| event["type"] == "asked");
    let question = &asked["question"];
    assert_eq!(question["form"]["properties"]["q1"]["title"], "Database", "{question}");
    let mut send = |option: &str, input: Value| {
        let reply = json!({"option": option, "input": input});
        let id = &question["id"];
        let answer = second.send(&json!({"command": "reply", "question": id, "reply": reply}));
        answer["text"].as_str().map(str::to_owned)
    };
    for (option, input, wanted) in [
        ("maybe", json!({}), "\"maybe\" is no answer: give one of answer, dismiss"),
        ("answer", Value::Null, "input must be an object with the values of q1, q2"),
        ("answer", json!({"q9": "x"}), "there is no field \"q9\": give q1, q2"),
        (
            "answer",
            json!({"q1": ["SQLite"]}),
            "q1 is \"[\\\"SQLite\\\"]\", but one of 1 PostgreSQL",
        ),
        ("answer", json!({"q2": []}), "q2 is \"[]\", but some of 1 lint, 2 test"),
        ("answer", json!({"q1": "x".repeat(10_001)}), "q1 is \"\\\"xxxx"),
    ] {
        let told = send(option, input.clone()).unwrap_or_else(|| panic!("{input} was taken"));
        assert!(told.contains(wanted) && told.len() < 400, "{wanted}: {told}");
    }
    assert_eq!(send("answer", json!({"q1": "MariaDB", "q2": ["test"]})), None);
    drop(stdin);
    assert!(ended(&mut child, crate::world::PATIENCE).success());
    drop(out);
    let events = world.events();
    let wanted = "Database: in the person's words: MariaDB\nChecks: test";
    assert_eq!(results(&events), [wanted]);
    assert_eq!(asked_and_answered(&events).1[0].1, Answerer::Person("second".into()));
}

fn listed(client: &mut Client) -> bool {
    let listed = client.ask("tools/list", &json!({}))["result"].clone();
    listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ask_user")
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_client_with_elicitation_gets_one_form() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    client.greet(&json!({"elicitation": {}}));
    assert!(listed(&mut client));
    for (id, result, wanted) in [
        (
            1,
            json!({"action": "accept", "content": {"q1": "SQLite", "q2": ["lint", "test"]}}),
            "Database: SQLite\nChecks: lint, test",
        ),
        (
            2,
            json!({"action": "accept", "content": {"q1": "SQLite", "q1_own": " Oracle ", "q2": []}}),
            "Database: in the person's words: Oracle\nChecks: no answer",
        ),
        (3, json!({"action": "decline"}), "The person did not answer."),
        (4, json!({"action": "accept", "content": {"q1": 7}}), "The person did not answer."),
    ] {
        client.begin(&json!(id), "ask_user", &two());
        let asked = client.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        if id == 1 {
            insta::assert_json_snapshot!("elicitation", asked["params"]);
        }
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        client.send(answer.to_string());
        let answer = client.next();
        assert!(text(&answer).starts_with(wanted), "{wanted}: {answer}");
    }
    // A call that is taken back takes its question back.
    client.begin(&json!(5), "ask_user", &one());
    let asked = client.next();
    client.cancel(&json!(5));
    let taken_back = client.hear();
    assert_eq!(taken_back["params"]["requestId"], asked["id"], "{taken_back}");
    client.ends_well();
}

#[test]
fn a_client_without_elicitation_is_told_that_nobody_is_here() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    client.greet(&json!({}));
    assert!(!listed(&mut client));
    let answer = client.call("ask_user", &two());
    assert!(text(&answer).starts_with("nobody is here who could answer"), "{answer}");
    client.ends_well();
}

#[test]
fn haft_tool_asks_at_a_terminal_and_says_elsewhere_that_nobody_is_here() {
    let world = World::new();
    world.run(&["-p", "hello", "--model", &world.script(&[json!({"text": "Hello."})])]);
    let session = world.only_session();
    let ran = world.tool("ask_user", &two(), &["--session", &session]);
    assert!(ran.code != Some(0) && ran.err.contains("nobody is here who could answer"), "{ran:?}");
    let spec = world.run(&["tool", "spec", "AskUserQuestion"]);
    assert!(spec.code == Some(0) && spec.out.contains("\"questions\""), "{spec:?}");
    std::fs::write(world.root().join("input.json"), two().to_string()).unwrap();
    let tmux = Tmux::start(&world);
    tmux.haft(&format!("tool ask_user --session {session} --input \"$(cat ../input.json)\""));
    tmux.sees("1 of 2  Database");
    tmux.line("2");
    tmux.sees("2 of 2  Checks");
    tmux.line("1,2");
    tmux.sees("[<] change the last one");
    tmux.line("y");
    tmux.sees("Checks: lint, test\n");
    tmux.sees("ended with");
    let (questions, replies) = asked_and_answered(&world.events());
    assert_eq!((questions.len(), replies.len()), (1, 1), "they are in the session");
}

/// Rules in the words of Claude Code are about it, too.
#[test]
fn a_rule_takes_it_away() {
    let world = World::new();
    let wire = Wire::Anthropic;
    let mock = Mock::new(vec![wire.text("Done.")]);
    let command = wire.haft(&world, &mock.url(), &["--line", "--deny", "AskUserQuestion"]);
    let ran = finish(command, &Input::Pipe("go on\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!mock.bodies()[0].contains("ask_user"), "it is listed");
}
