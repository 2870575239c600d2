//! Planted secrets: nothing that a model, a log, a program or a terminal gets shows one.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mcp_client::Client,
    mock_provider::{Mock, Wire},
    world::{Input, PATIENCE, World, finish, holding, until},
};

/// A secret of the environment, which is in no file but in the name of one.
const VARIABLE: &str = "tok-7f3a9c51e20b-env";
/// What stands in files, and what only programs say.
const PLANTED: [&str; 11] = [
    "tok-1a2b3c4d5e6f-dotenv",
    "tok-2b3c4d5e6f7a-json",
    "tok-3c4d5e6f7a8b-yaml",
    "tok-4d5e6f7a8b9c-toml",
    "tok-5e6f7a8b9c0d-header",
    "tok-6f7a8b9c0d1e-url",
    "QkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWjAxMjM0NTY3ODkrL2FiY2RlZmdoaWpr",
    "tok-7a8b9c0d1e2f-chunks",
    "tok-8b9c0d1e2f3a-error",
    "tok-9c0d1e2f3a4b-job",
    "tok-0d1e2f3a4b5c-long",
];

/// A workspace in which they are planted, and programs that say some of them.
fn planted() -> World {
    let world = World::new();
    let [dotenv, json, yaml, toml, header, url, key, chunks, error, job, long] = PLANTED;
    world.file(".env", format!("API_KEY={dotenv}\nDEBUG=true\nPASSWORD=test\n"));
    world.file("conf/a.json", format!("{{\n  \"clientSecret\": \"{json}\",\n  \"port\": 1\n}}\n"));
    world.file("conf/b.yaml", format!("db:\n  password: {yaml} # mine\n  port: 1\n"));
    world.file("conf/c.toml", format!("[api]\ntoken = \"{toml}\"\n"));
    world.file(
        "notes.md",
        format!(
            "curl -H 'Authorization: Bearer {header}' https://x.example/\n\
             psql postgres://app:{url}@db.example.com/app\n"
        ),
    );
    world.file(
        "key.pem",
        format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"),
    );
    world.file(format!("dump-{VARIABLE}.txt").as_str(), "a dump\n");
    let (one, two) = chunks.split_at(9);
    world.file("chunks.sh", format!("printf 'SESSION_TOKEN={one}'\nsync\nprintf '{two}\\n'\n"));
    let (one, two) = error.split_at(9);
    world.file("fails.sh", format!("echo 'refused: --token '{one}'{two}' >&2\nexit 3\n"));
    let (one, two) = job.split_at(9);
    world.file("job.sh", format!("echo \"job_token: {one}\"'{two}'\necho ready\n"));
    let (one, two) = long.split_at(9);
    let loud = "i=0; while [ $i -lt 3000 ]; do echo";
    world.file("long.sh", format!("{loud} \"$i CACHE_TOKEN={one}\"'{two}'; i=$((i+1)); done\n"));
    world
}

/// The calls that look at all of it.
fn looks() -> Vec<(&'static str, Value)> {
    let read = |path: &str| ("read", json!({"path": path}));
    let run = |command: &str| ("bash", json!({"command": command}));
    vec![
        read(".env"),
        read("conf/a.json"),
        read("conf/b.yaml"),
        read("conf/c.toml"),
        read("notes.md"),
        read("key.pem"),
        ("grep", json!({"pattern": "(?i)key|secret|password|token|Bearer|app:", "-A": 2})),
        ("grep", json!({"pattern": "tok-", "output_mode": "content"})),
        ("ls", json!({"recursive": true})),
        ("find", json!({"pattern": "dump*"})),
        read("dump.txt"),
        run("sh chunks.sh"),
        run("sh fails.sh"),
        run("cat .env conf/* notes.md key.pem; echo \"$DEPLOY_TOKEN\""),
        run("sh long.sh"),
        ("bash", json!({"command": "sh job.sh", "run_in_background": true})),
        (
            "edit",
            json!({"path": ".env", "edits": [
            {"old_text": "DEBUG=true", "new_text": "DEBUG=true # still"}]}),
        ),
    ]
}

/// Looks at what is left of that, with the addresses of what is kept.
fn looks_again() -> Vec<(&'static str, Value)> {
    let wait = json!({"action": "wait", "job": "j1", "pattern": "ready"});
    vec![
        ("job", wait),
        ("job", json!({"action": "output", "job": "j1", "since": 0})),
        ("read", json!({"path": "out://c15", "offset": 1400, "limit": 20})),
        ("grep", json!({"pattern": "1500", "path": "out://c15"})),
        // A line of a key alone is known once the key was seen.
        ("grep", json!({"pattern": "QkN"})),
    ]
}

fn shows_none(text: &str, of: &str) {
    for secret in PLANTED.iter().chain([&VARIABLE]) {
        let at = text.find(secret);
        let around = at.map(|at| &text[text.floor_char_boundary(at.saturating_sub(200))..at + 12]);
        assert!(at.is_none(), "{of} shows {secret}: {around:?}");
    }
}

/// What haft keeps shows none, but for the outputs as they came and what undo brings back.
fn kept(world: &World) {
    for secret in PLANTED.iter().chain([&VARIABLE]) {
        let raw = |path: &Path| {
            path.iter().any(|part| ["out", "undo", "before"].map(Some).contains(&part.to_str()))
        };
        let mut shown = holding(&world.state(), secret.as_bytes());
        shown.retain(|path| !raw(path));
        assert!(shown.is_empty(), "{secret} stands in {shown:?}");
    }
}

#[test]
fn models_logs_and_programs_get_none_of_them() {
    for output in ["stream-json", "json", "text"] {
        let world = planted();
        let wire = Wire::Anthropic;
        let mock = Mock::new(vec![
            wire.calls("look", &looks()),
            wire.calls("again", &looks_again()),
            wire.text("End."),
        ]);
        let flags = ["-p", "go", "--mode", "bypass", "--output", output];
        let mut haft = wire.haft(&world, &mock.url(), &flags);
        haft.env("DEPLOY_TOKEN", VARIABLE);
        world.settings("[shell]\nlet_through = [\"DEPLOY_TOKEN\"]\n");
        let ran = finish(haft, &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let bodies = mock.bodies();
        assert_eq!(bodies.len(), 3);
        for body in &bodies {
            shows_none(body, "a request");
        }
        let last = &bodies[2];
        for harmless in ["DEBUG=true", "PASSWORD=test", "a dump", "ready", "refused: --token"] {
            assert!(last.contains(harmless) || harmless == "a dump", "{harmless}: {last}");
        }
        for name in [
            "API_KEY",
            "clientSecret",
            "password",
            "token",
            "AUTHORIZATION",
            "URL_PASSWORD",
            "PRIVATE_KEY",
            "SESSION_TOKEN",
            "job_token",
            "CACHE_TOKEN",
            "DEPLOY_TOKEN",
        ] {
            assert!(last.contains(&format!("{{{{secret:{name}}}}}")), "{name}: {last}");
        }
        shows_none(&ran.out, output);
        shows_none(&ran.err, "stderr");
        kept(&world);
        // The files themselves are what they were.
        let [dotenv, ..] = PLANTED;
        let expected = format!("API_KEY={dotenv}\nDEBUG=true # still\nPASSWORD=test\n");
        assert_eq!(world.read(".env"), expected);
    }
}

#[test]
fn clients_of_the_server_get_none_of_them() {
    let world = planted();
    let mut command = world.haft(&["mcp", "--mode", "bypass"]);
    command.env("DEPLOY_TOKEN", VARIABLE);
    let mut client = Client::of(command);
    client.greet(&json!({}));
    for (tool, input) in looks().into_iter().chain(looks_again()) {
        let answer = client.call(tool, &input).to_string();
        shows_none(&answer, &format!("{tool} {input}"));
    }
    for notice in &client.notices {
        shows_none(&notice.to_string(), "a notification");
    }
    client.ends_well();
    kept(&world);
}

#[test]
fn a_terminal_shows_none_of_them() {
    let world = planted();
    let calls = |all: Vec<(&str, Value)>| -> Value {
        let all = all.into_iter().map(|(name, input)| json!({"name": name, "input": input}));
        json!({"calls": all.collect::<Vec<_>>()})
    };
    let model = world.script(&[calls(looks()), calls(looks_again()), json!({"text": "The end."})]);
    let tmux = Tmux::start(&world);
    // Not typed, since what is typed is seen.
    std::fs::write(world.root().join("set"), format!("export DEPLOY_TOKEN={VARIABLE}\n")).unwrap();
    tmux.line(". ../set");
    tmux.haft(&format!("--line --mode bypass --model '{model}'"));
    tmux.sees("/help");
    tmux.line("go on");
    tmux.sees("The end.");
    shows_none(&tmux.screen(), "the terminal");
    tmux.line("/exit");
    assert!(until(PATIENCE, || tmux.screen().contains("ended with")));
    let listed = world.run(&["session", "show", &world.only_session()]);
    shows_none(&listed.out, "session show");
    kept(&world);
}
