//! The same commands are told the same through every face.

use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    world::{Input, World},
};

/// Calls, and what is told of each; the last ones need more than one call of a run.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let bash = |command: &str| json!({ "command": command });
    let with = |command: &str, name: &str, value: Value| json!({"command": command, name: value});
    vec![
        ("bash", bash("echo out; echo err >&2; exit 3"), "out\nerr\n[exit code 3]"),
        (
            "bash",
            with("echo begun; sleep 60", "timeout_ms", json!(1_000)),
            "begun\n[timed out after 1 s and was stopped; give a larger timeout_ms (at most 600000) \
             if it needs more time]",
        ),
        (
            "bash",
            bash("echo new > a.txt; echo x > .env; rm b.txt"),
            "(no output)\n[changed: .env, a.txt; deleted: b.txt]",
        ),
        (
            "bash",
            with("echo said; exit 4", "run_in_background", json!(true)),
            "[job j1 runs in the background; job has its output, which is kept at out://c4, and its \
             end will be told]",
        ),
        (
            "job",
            json!({"action": "wait", "job": "j1"}),
            "said\n[j1 has ended after 0 s: exit code 4]",
        ),
        (
            "bash",
            with("v=1; cd d; false", "session", json!("dev")),
            "[exit code 1]\n[the next command of session dev starts in d]",
        ),
        (
            "bash",
            with("echo $v; exit 5", "session", json!("dev")),
            "1\n[exit code 5]\n[the shell of \
             session dev ended with this; the next call begins a new one, without its variables, \
             functions and processes]",
        ),
    ]
}

/// What a face tells of them.
type FaceReport = fn() -> Vec<String>;

/// How many of them one call each is enough for.
const ALONE: usize = 3;

fn world() -> World {
    let world = World::new();
    for (name, text) in [
        (".gitignore", ".env\n"),
        (".env", "K=1\n"),
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        ("d/e", ""),
    ] {
        world.file(name, text);
    }
    world
}

/// A run of haft with these flags in which a model asks for all of them, one after the other.
fn asked(flags: &[&str], input: &Input<'_>) -> Vec<String> {
    let world = world();
    let answer =
        |(name, input, _): &(_, Value, _)| json!({"calls": [{"name": name, "input": input}]});
    let answers = calls().iter().map(answer).chain([json!({"text": "End."})]).collect::<Vec<_>>();
    let model = world.script(&answers);
    let ran = world.run_with(&[flags, &["--mode", "bypass", "--model", &model]].concat(), input);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.outcomes().iter().map(crate::world::text).collect()
}

fn of_a_client() -> Vec<String> {
    let world = world();
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    let call = |(name, input, _): (&str, Value, _)| {
        crate::world::text(&client.call(name, &input)["result"])
    };
    calls().into_iter().map(call).collect()
}

fn one_by_one() -> Vec<String> {
    let world = world();
    let call = |(name, input, _): (&str, Value, _)| {
        let ran = world.tool(name, &input, &["--mode", "bypass"]);
        ran.out.trim_end().to_owned()
    };
    calls().into_iter().take(ALONE).map(call).collect()
}

#[test]
fn what_is_told_of_a_command_is_the_same_through_every_face() {
    let wanted: Vec<&str> = calls().into_iter().map(|(_, _, told)| told).collect();
    let faces: [(&str, FaceReport, usize); 4] = [
        ("tool", one_by_one, ALONE),
        ("-p", || asked(&["-p", "go"], &Input::Nothing), wanted.len()),
        ("--line", || asked(&["--line"], &Input::Pipe("go\n/quit\n")), wanted.len()),
        ("mcp", of_a_client, wanted.len()),
    ];
    // Side by side: each waits for a timeout.
    std::thread::scope(|scope| {
        let runs = faces.map(|(face, told, count)| (face, scope.spawn(told), count));
        for (face, told, count) in runs {
            assert_eq!(told.join().unwrap(), wanted[..count], "{face}");
        }
    });
}
