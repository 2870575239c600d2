//! Values of secrets of every kind, through every face: what may not be seen anywhere, and what only
//! looks like one and stays.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    hooks::calls::hook,
    mcp_client::Client,
    world::{Input, Ran, World, finish, holding},
};

/// Values that nobody would write by hand.
const NAMED: &str = "Zq7Kw2Xr9Tb4Ym6Pd1";
const QUOTED: &str = "Vn5Gs0Qf7Wx2Hj3Lc8";
const URL: &str = "Rt6Yb1Nm8Kp3Dz5Qw9";
const BLOCK: [&str; 3] = ["Bx4Tg7Lm2Qz9Wv1Rc6", "Jd8Fy3Hk5Np0Sw7Xe2", "Mu1Cq6Vo9Ia4Gb7Tl3"];
const JSON: &str = "Ew3Sz8Ux6Ok1Jh4Nq7";
const BASIC: &str = "YXBwOlBsNFdzOVhrMkd0N1Z6MQ==";
const TOKEN: &str = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5";
const VARIABLE: &str = "Lc8Vn5Gs0Qf7Wx2Hj3";
const KEY: [&str; 3] = [
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "MzEfYyjiWA4R4ypbHqGC0H0+tG3hGbN3aHqQbG2Xl0YJ7mJx4rQ8Zs1Vd6Tn9PkU",
    "aK2k9QwLz7Gm5Rb0Xe4Cy8Ho",
];

/// What stays: people and models need to see it.
const STAYS: [&str; 5] = [
    "DEBUG=true",
    "PASSWORD=test",
    "MAX_TOKENS=128000",
    "KEY_FILE=/etc/ssl/server.key",
    "level: info",
];

/// A value that is longer than a line that is shown.
fn long() -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = 12_345_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(letters[usize::try_from(state % 62).unwrap()])
    };
    (0..3_500).map(|_| next()).collect()
}

/// The files of the workspace: name and content.
fn files() -> Vec<(&'static str, String)> {
    let block = BLOCK.map(|line| format!("  {line}\n")).concat();
    let pad = "\"aa\": 1, ".repeat(300);
    vec![
        (
            ".env",
            format!(
                "{}\nDB_PASSWORD={NAMED}\nexport API_TOKEN='{QUOTED}'\n",
                STAYS[..4].join("\n")
            ),
        ),
        ("config.yaml", format!("level: info\ntoken: |\n{block}after: 1\nlast: 2\n")),
        ("config.json", format!("{{\"a\": 1, \"db\": {{\"clientSecret\": \"{JSON}\"}}}}\n")),
        ("long.json", format!("{{{pad}\"api_key\": \"{}\", {pad}\"z\": 0}}\n", long())),
        ("db.txt", format!("DATABASE_URL=postgres://app:{URL}@db.example.com/app\n")),
        ("curl.txt", format!("> GET /\n> Authorization: Basic {BASIC}\n> Accept: */*\n")),
        ("notes.txt", format!("one\nthe bot has {TOKEN}\nthree\n")),
        (
            "deploy.pem",
            format!(
                "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\nbehind\n",
                KEY.join("\n")
            ),
        ),
    ]
}

fn values() -> Vec<String> {
    let all =
        [NAMED, QUOTED, URL, JSON, BASIC, TOKEN, VARIABLE].into_iter().chain(BLOCK).chain(KEY);
    all.map(str::to_owned).chain([long()]).collect()
}

/// The first value of which a part stands in a text, with what stands before it.
fn leak(text: &str) -> Option<String> {
    const PART: usize = 11;
    values().iter().find_map(|value| {
        // Of the long one a few hundred bytes would stand somewhere.
        let places = (0..=value.len() - PART).step_by(1 + value.len() / 100);
        let parts = places.map(|at| &value[at..at + PART]);
        let at = parts.filter_map(|part| text.find(part)).min()?;
        let from = text.floor_char_boundary(at.saturating_sub(80));
        let to = text.ceil_char_boundary((at + PART + 8).min(text.len()));
        Some(format!("{:.18}… stands in {:?}", value, &text[from..to]))
    })
}

fn planted() -> World {
    let world = World::new();
    for (name, content) in files() {
        world.file(name, content);
    }
    world
}

/// One call in a process of its own, which knows nothing from before.
fn call(world: &World, name: &str, input: &Value) -> Ran {
    let flags =
        ["tool", name, "--input", &input.to_string(), "--mode", "bypass"].map(str::to_owned);
    let mut haft = world.haft(&flags.each_ref().map(String::as_str));
    haft.env("DEPLOY_TOKEN", VARIABLE);
    finish(haft, &Input::Nothing)
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

fn read(path: &str, offset: i64, limit: u64) -> (&'static str, Value) {
    ("read", json!({"path": path, "offset": offset, "limit": limit}))
}

fn grep(pattern: &str, path: &str) -> (&'static str, Value) {
    ("grep", json!({"pattern": pattern, "path": path}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"path": path, "edits": [{"old_text": old, "new_text": new}]}))
}

/// Calls each of which shows a value, or a part of one, and its name often not.
fn shows() -> Vec<(&'static str, Value)> {
    let whole = files().into_iter().map(|(name, _)| ("read", json!({ "path": name })));
    let found = files().into_iter().map(|(name, _)| grep("[A-Za-z0-9]{8}", name));
    let printed = files().into_iter().map(|(name, _)| bash(&format!("cat {name}")));
    let long = long();
    let parts = vec![
        read("deploy.pem", 3, 1),
        read("deploy.pem", -3, 1),
        read("config.yaml", 4, 1),
        read("config.yaml", -3, 1),
        grep("^M[zZ]Ef", "deploy.pem"),
        grep("Jd8|Mu1", "."),
        grep(&long[long.len() - 6..], "long.json"),
        grep(&long[1_700..1_706], "."),
        ("grep", json!({"pattern": "after", "path": "config.yaml", "-B": 2})),
        ("grep", json!({"pattern": "END PRIVATE", "-B": 1})),
        edit("config.yaml", "after: 1", "after: 2"),
        edit("config.yaml", "aftre: 3\nlast: 2", "x"),
        edit("deploy.pem", "behind", "beyond"),
        ("write", json!({"path": "notes.txt", "content": "other\n"})),
        bash("cut -d= -f2 .env"),
        bash("sed -n 3p deploy.pem"),
        bash("tail -n 3 deploy.pem"),
        bash("sed -n '3,5s/ //gp' config.yaml"),
        bash("sed -n 's/.*: \"\\(.*\\)\".*/\\1/p' config.json"),
        bash("head -c 95 .env; sleep 0.3; tail -c +96 .env"),
        bash("cat .env >&2; exit 3"),
        bash("cut -d= -f2 .env | base64 -w0"),
        bash("env; printenv DEPLOY_TOKEN"),
        bash(
            "cp config.yaml copy.txt; sed -i 's/last/list/' config.yaml; diff config.yaml copy.txt",
        ),
    ];
    whole.chain(found).chain(printed).chain(parts).collect()
}

#[test]
fn no_call_shows_a_value_or_a_part_of_one() {
    let mut seen = Vec::new();
    for (name, input) in shows() {
        let world = planted();
        let ran = call(&world, name, &input);
        seen.extend(leak(&ran.both_outputs()).map(|leak| format!("{name} {input}: {leak}")));
        kept(&world, &mut seen);
    }
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn what_only_looks_like_a_value_stays() {
    let world = planted();
    for ran in [
        call(&world, "read", &json!({"path": ".env"})),
        call(&world, "bash", &json!({"command": "cat .env config.yaml"})),
    ] {
        for stays in &STAYS[..4] {
            assert!(ran.out.contains(stays), "{stays}: {ran:?}");
        }
    }
    let found = call(&world, "grep", &json!({"pattern": "DEBUG|PASSWORD|level", "path": "."}));
    for stays in ["DEBUG=true", "PASSWORD=test", "level: info"] {
        assert!(found.out.contains(stays), "{found:?}");
    }
}

/// A talk of what only a talk has, jobs and kept outputs, and of every so many of the calls.
fn talk(world: &World, every: usize) -> String {
    let job = |input: Value| json!({"name": "job", "input": input});
    let background = json!({"name": "bash", "input": {"command":
        "cat .env; cat config.yaml deploy.pem >&2; sleep 0.1; cut -d= -f2 .env", "run_in_background": true}});
    let many = json!({"name": "bash", "input": {"command":
        "cat .env config.yaml deploy.pem; seq 1 20000; cut -d= -f2 .env"}});
    let mut answers = vec![
        json!({"calls": [background]}),
        json!({"calls": [job(json!({"action": "wait", "job": "j1"}))]}),
        json!({"calls": [job(json!({"action": "output", "job": "j1"}))]}),
        json!({"calls": [many]}),
        json!({"calls": [
            {"name": "read", "input": {"path": "out://c4", "offset": 5, "limit": 9}},
            {"name": "read", "input": {"path": "out://c4", "offset": -4}},
            {"name": "grep", "input": {"pattern": "[A-Z][a-z][0-9][A-Z]", "path": "out://c4"}},
        ]}),
    ];
    answers.extend(
        shows()
            .into_iter()
            .step_by(every)
            .map(|(name, input)| json!({"calls": [{"name": name, "input": input}]})),
    );
    answers.push(json!({"text": "End."}));
    world.script(&answers)
}

/// What a run keeps and what lists and shows it.
fn record(world: &World, seen: &mut Vec<String>) {
    let id = world.only_session();
    for arguments in [
        &["session", "list"][..],
        &["session", "show", &id],
        &["session", "show", &id, "--json"],
        &["session", "diff", &id],
        &["undo"],
        &["redo"],
    ] {
        let ran = world.run(arguments);
        seen.extend(leak(&ran.both_outputs()).map(|leak| format!("{arguments:?}: {leak}")));
    }
    kept(world, seen);
}

/// The files of haft that have a value, but for what it keeps as it was: what a command printed, and
/// what undo brings back.
fn kept(world: &World, seen: &mut Vec<String>) {
    for value in values() {
        let holding = holding(&world.state(), value.as_bytes());
        let is_own = |path: &PathBuf| path.iter().any(|part| part == "out" || part == "undo");
        let others = holding.into_iter().filter(|path| !is_own(path));
        seen.extend(others.map(|path| format!("{value:.18}… stands in {}", path.display())));
    }
}

#[test]
fn no_face_shows_one() {
    let mut seen = Vec::new();
    for face in ["text", "json", "stream-json", "line"] {
        let world = planted();
        let model = talk(&world, if face == "stream-json" { 2 } else { 7 });
        let flags: &[&str] = match face {
            "line" => &["--line", "--mode", "bypass", "--model", &model],
            output => &["-p", "go", "--mode", "bypass", "--model", &model, "--output", output],
        };
        let mut haft = world.haft(flags);
        haft.env("DEPLOY_TOKEN", VARIABLE);
        let input = if face == "line" { Input::Pipe("go\n/quit\n") } else { Input::Nothing };
        let ran = finish(haft, &input);
        assert_eq!(ran.code, Some(0), "{face}: {ran:?}");
        seen.extend(leak(&ran.both_outputs()).map(|leak| format!("{face}: {leak}")));
        if matches!(face, "stream-json" | "line") {
            assert!(ran.out.contains("{{secret:"), "nothing was hidden: {ran:?}");
        }
        record(&world, &mut seen);
    }
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn no_client_of_mcp_sees_one() {
    let world = planted();
    let mut haft = world.haft(&["mcp", "--mode", "bypass"]);
    haft.env("DEPLOY_TOKEN", VARIABLE);
    let mut client = Client::of(haft);
    client.greet(&json!({}));
    let slow = "cut -d= -f2 .env; sleep 0.3; cat deploy.pem config.yaml; sleep 0.3";
    let calls = [bash(slow)].into_iter().chain(shows());
    let mut seen = Vec::new();
    let mut progress = 0;
    for (nth, (name, input)) in calls.enumerate() {
        let params = json!({"name": name, "arguments": input,
            "_meta": {"progressToken": format!("t{nth}")}});
        client.request(&json!(nth), "tools/call", &params);
        loop {
            let message = client.hear();
            let text = message.to_string();
            seen.extend(leak(&text).map(|leak| format!("{name} {input}: {leak}")));
            if message["method"] != "notifications/progress" {
                break;
            }
            progress += 1;
        }
    }
    client.ends_well();
    assert!(progress > 0);
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn no_hook_is_given_one_but_in_what_it_has_to_judge() {
    let world = planted();
    let log = world.root().join("hooks.log");
    let keeps = format!("cat >> '{}'; echo >> '{}'", log.display(), log.display());
    let events = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "UserPromptSubmit"];
    world.settings(&events.map(|event| hook(event, "", &keeps, "")).concat());
    let model = talk(&world, 5);
    let flags = ["-p", "go", "--mode", "bypass", "--model", &model];
    let ran = world.run(&flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.contains("PostToolUse") && told.contains("tool_response"), "{told:.500}");
    assert_eq!(leak(&told), None);
}

#[test]
fn what_is_in_the_way_of_undo_is_shown_without_it() {
    let world = planted();
    let flags = ["--mode", "bypass"];
    let (name, input) = edit("config.yaml", "after: 1", "after: 2");
    let told = world.tool_results(&[json!({"name": name, "input": input})], &flags);
    assert_eq!(told[0]["status"], "done", "{told:?}");
    let now = world.read("config.yaml").replace("last: 2", "last: 3").replace("after: 2", "x: 1");
    world.file("config.yaml", now);
    for arguments in [&["undo"][..], &["undo", "--json"]] {
        let ran = world.run(arguments);
        assert!(ran.both_outputs().contains("config.yaml"), "{ran:?}");
        assert_eq!(leak(&ran.both_outputs()), None, "{ran:?}");
    }
}
