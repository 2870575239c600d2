//! Trust, secrets, budgets and undo hold for the tools of a talk through every face: one table, with
//! a column a face.

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mcp_client::Client,
    world::{Input, World, holding},
};

/// A value that is a secret wherever it stands beside a name.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const ON: &str = "tools.on = ['think', 'brief', 'send_file', 'config']\n";
/// More than any answer of a tool may have.
const MOST: usize = 200_000;

/// What is held, the call, and what its result must say.
type Row = (&'static str, &'static str, Value, &'static str);

fn rows() -> Vec<Row> {
    let items: Vec<Value> = (0..5_000)
        .map(|id| json!({"content": format!("item {id}"), "status": "pending"}))
        .collect();
    let skill = |name: &str| json!({ "skill": name });
    vec![
        ("trust", "skill", skill("runs"), "[not run, for the project is not trusted"),
        (
            "trust",
            "config",
            json!({"set": "permissions.allow", "value": "Bash"}),
            "no model may have the setting",
        ),
        ("secrets", "skill", skill("knows"), "{{secret:DEPLOY_TOKEN}}"),
        ("secrets", "send_file", json!({"path": "keys/id"}), "Read(keys/**)"),
        ("budgets", "skill", skill("long"), "SKILL.md"),
        ("budgets", "todo", json!({ "items": items }), "items"),
    ]
}

fn skill(world: &World, name: &str, body: &str) {
    let head = format!("---\nname: {name}\ndescription: Does {name}\n---\n\n");
    world.file(&format!(".claude/skills/{name}/SKILL.md"), head + body);
}

fn world() -> World {
    let world = World::new();
    world.settings(ON);
    world.file("keys/id", "a key\n");
    skill(&world, "runs", "It says: !`touch made`\n");
    skill(&world, "knows", &format!("DEPLOY_TOKEN={SECRET}\n"));
    skill(&world, "long", &"A line of very many.\n".repeat(150_000));
    world
}

/// The texts of these calls' results.
type Face = fn(&World, &[Row], &[&str]) -> Vec<String>;

const FACES: [(&str, Face); 5] = [
    ("tool", of_tool),
    ("-p", |world, rows, flags| of_model(world, rows, flags, &["-p", "go"], &Input::Nothing)),
    ("line", |world, rows, flags| {
        of_model(world, rows, flags, &["--line"], &Input::Pipe("go\n/quit\n"))
    }),
    ("terminal", of_terminal),
    ("mcp", of_client),
];

fn of_tool(world: &World, rows: &[Row], flags: &[&str]) -> Vec<String> {
    // Standard input, for an argument of a program has a limit.
    let call = |(_, name, input, _): &Row| {
        let flags = [&["tool", name, "--input", "-"], flags].concat();
        world.run_with(&flags, &Input::Pipe(&input.to_string())).both_outputs()
    };
    rows.iter().map(call).collect()
}

fn script(world: &World, rows: &[Row]) -> String {
    let one = |(_, name, input, _): &Row| json!({"calls": [{"name": name, "input": input}]});
    let answers: Vec<Value> = rows.iter().map(one).chain([json!({"text": "End."})]).collect();
    world.script(&answers)
}

/// What the model was told; calls that a call makes of its own have no text for it.
fn told(world: &World) -> Vec<String> {
    let own = |event: &haft_types::Event| match &event.body {
        haft_types::Body::CallEnded { call, outcome, .. } if !call.to_string().contains('.') => {
            Some(crate::world::text(&serde_json::to_value(outcome).unwrap()))
        }
        _ => None,
    };
    world.events().iter().filter_map(own).collect()
}

fn of_model(
    world: &World,
    rows: &[Row],
    flags: &[&str],
    face: &[&str],
    input: &Input<'_>,
) -> Vec<String> {
    let model = script(world, rows);
    let ran = world.run_with(&[face, flags, &["--model", &model]].concat(), input);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.both_outputs().contains(SECRET), "{ran:?}");
    told(world)
}

fn of_terminal(world: &World, rows: &[Row], flags: &[&str]) -> Vec<String> {
    let model = script(world, rows);
    let tmux = Tmux::start(world);
    let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    tmux.haft(&format!("--model '{model}' {}", flags.join(" ")));
    tmux.sees("a message;");
    tmux.line("go");
    let screen = tmux.sees("End.");
    assert!(!screen.contains(SECRET), "{screen}");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    told(world)
}

fn of_client(world: &World, rows: &[Row], flags: &[&str]) -> Vec<String> {
    let mut client = Client::greeted(world, flags);
    let mut call =
        |(_, name, input, _): &Row| crate::world::text(&client.call(name, input)["result"]);
    let texts = rows.iter().map(&mut call).collect();
    client.ends_well();
    texts
}

#[test]
fn trust_secrets_and_budgets_hold_through_every_face() {
    for (face, texts) in FACES {
        let world = world();
        let rows = rows();
        let texts = texts(&world, &rows, &["--mode", "bypass", "--deny", "Read(keys/**)"]);
        assert_eq!(texts.len(), rows.len(), "{face}: {texts:?}");
        for ((what, tool, _, wanted), text) in rows.iter().zip(&texts) {
            let start: String = text.chars().take(2_000).collect();
            assert!(text.contains(wanted), "{face}, {what} of {tool}: {start}");
            assert!(!text.contains(SECRET), "{face}, {what} of {tool}: {start}");
            assert!(text.len() < MOST, "{face}, {what} of {tool}: {}", text.len());
        }
        assert!(!world.work().join("made").exists(), "{face}: a line of a stranger ran");
        let known = holding(&world.state(), SECRET.as_bytes());
        assert!(known.is_empty(), "{face}: {known:?}");
    }
}

#[test]
fn what_a_skill_changes_is_undone_through_every_face() {
    for (face, texts) in FACES {
        let world = world();
        let rows = &rows()[..1];
        let texts = texts(&world, rows, &["--mode", "bypass", "--trust"]);
        assert!(world.work().join("made").exists(), "{face}: {texts:?}");
        let ran = world.run(&["undo"]);
        assert_eq!(ran.code, Some(0), "{face}: {ran:?}");
        assert!(!world.work().join("made").exists(), "{face}: {ran:?}");
    }
}
