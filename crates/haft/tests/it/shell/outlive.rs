//! Nothing outlives haft: ways to leave children, times ways of ending, through the faces.

use std::{
    fs,
    io::{Read as _, Write as _},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    mcp_client::{Client, text},
    world::{PATIENCE, World, ended, runs, signal, unique_seconds, until},
};

/// How long what a command left may go on.
const LEFT: Duration = Duration::from_secs(3);

/// Ways to leave children; the command itself then makes the file `ready` and sleeps, too.
const WAYS: &[(&str, &str)] = &[
    ("background", "sleep N &"),
    ("setsid", "setsid sleep N &"),
    ("double fork", "( (sleep N &) & )"),
    ("nohup", "nohup sleep N >/dev/null 2>&1 &"),
    ("disown", "sleep N & disown"),
    ("trap", "trap '' TERM HUP INT; (trap '' TERM HUP; while :; do sleep N & wait; done) &"),
    ("pipe holders", "(exec 0</dev/null; exec sleep N) & (sleep N | cat) &"),
    ("pty", "script -qfc 'sleep N' /dev/null &"),
    ("stopped", "sleep N & kill -STOP $!"),
    ("re-parented", "env -i setsid sh -c '(exec >/dev/null 2>&1; env -i setsid sleep N &)'"),
];

/// Waits until nothing has these seconds in its arguments.
fn all_gone(what: &str, seconds: &str, since: Instant) {
    while runs(seconds) {
        assert!(since.elapsed() < LEFT, "{what}: something is left after {:?}", since.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn command(way: &str, seconds: &str) -> String {
    format!("{way}\ntouch ready; sleep {seconds}").replace('N', seconds)
}

/// A running haft whose command has left its children.
struct Leaving {
    /// Its folders go when it goes.
    world: World,
    child: Child,
    seconds: String,
}

impl Leaving {
    /// Through `haft tool`.
    fn tool(way: &str, timeout_ms: u64) -> Self {
        let (world, seconds) = (World::new(), unique_seconds());
        let input = json!({"command": command(way, &seconds), "timeout_ms": timeout_ms});
        let input = fs::File::open(world.file("input.json", input.to_string())).unwrap();
        let mut haft = world.haft(&["tool", "bash", "--allow", "Bash", "--input", "-"]);
        let child = haft.stdin(input).spawn().unwrap();
        Self::ready(world, child, seconds)
    }

    /// Through `haft -p`.
    fn print(way: &str) -> Self {
        let (world, seconds) = (World::new(), unique_seconds());
        let call = json!({"name": "bash", "input": {"command": command(way, &seconds)}});
        let model = world.script(&[json!({"calls": [call]}), json!({"text": "never"})]);
        let flags = ["-p", "go", "--model", &model, "--mode", "bypass"];
        let child = world.haft(&flags).spawn().unwrap();
        Self::ready(world, child, seconds)
    }

    /// Through `haft mcp`.
    fn mcp(way: &str) -> Self {
        let (world, seconds) = (World::new(), unique_seconds());
        let mut haft = world.haft(&["mcp", "--mode", "bypass"]);
        let child = haft.stdin(Stdio::piped()).spawn().unwrap();
        let parameters = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let call = json!({"name": "bash", "arguments": {"command": command(way, &seconds)}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ];
        let mut to = child.stdin.as_ref().unwrap();
        for line in lines {
            writeln!(to, "{line}").unwrap();
        }
        Self::ready(world, child, seconds)
    }

    fn ready(world: World, child: Child, seconds: String) -> Self {
        let there = || world.work().join("ready").exists() && runs(&seconds);
        assert!(until(PATIENCE, there), "nothing was started");
        Self { world, child, seconds }
    }

    /// Sends haft a signal, and waits until it and all that it started have ended.
    fn ends_by(mut self, what: &str, name: &str) {
        self.ends(what, name);
    }

    fn ends(&mut self, what: &str, name: &str) {
        let begun = Instant::now();
        signal(name, self.child.id());
        ended(&mut self.child, LEFT);
        all_gone(what, &self.seconds, begun);
    }
}

#[test]
fn nothing_outlives_a_haft_that_is_killed() {
    for (name, way) in WAYS {
        Leaving::tool(way, 600_000).ends_by(name, "KILL");
    }
    for (name, way) in [WAYS[1], WAYS[5], WAYS[9]] {
        Leaving::print(way).ends_by(name, "KILL");
        Leaving::mcp(way).ends_by(name, "KILL");
    }
}

#[test]
fn nothing_outlives_a_haft_that_is_told_to_end() {
    for (name, way) in WAYS {
        Leaving::print(way).ends_by(name, "TERM");
    }
    for (name, way) in [WAYS[1], WAYS[5], WAYS[9]] {
        Leaving::tool(way, 600_000).ends_by(name, "INT");
        Leaving::mcp(way).ends_by(name, "TERM");
    }
}

#[test]
fn a_command_cleans_up_before_haft_ends() {
    let way = "trap 'sleep 0.2; rm lock; exit' TERM; touch lock";
    let all = [
        ("INT", Leaving::tool(way, 600_000)),
        ("TERM", Leaving::print(way)),
        ("TERM", Leaving::mcp(way)),
    ];
    for (name, mut leaving) in all {
        leaving.ends(way, name);
        assert!(!leaving.world.work().join("lock").exists(), "{name}");
    }
}

#[test]
fn nothing_outlives_a_timeout() {
    let one = |name: &str, way: &str| {
        let mut leaving = Leaving::tool(way, 3_000);
        ended(&mut leaving.child, Duration::from_secs(10));
        all_gone(name, &leaving.seconds, Instant::now());
        let mut text = String::new();
        leaving.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(text.contains("3 s"), "{name}: {text}");
    };
    std::thread::scope(|scope| {
        for (name, way) in WAYS {
            scope.spawn(|| one(name, way));
        }
    });
}

#[test]
fn nothing_outlives_a_client_that_goes() {
    for (name, way) in WAYS {
        let mut leaving = Leaving::mcp(way);
        let begun = Instant::now();
        drop((leaving.child.stdin.take(), leaving.child.stdout.take()));
        ended(&mut leaving.child, LEFT);
        all_gone(name, &leaving.seconds, begun);
    }
}

#[test]
fn a_client_that_has_said_all_is_answered_and_nothing_is_left() {
    let (world, seconds) = (World::new(), unique_seconds());
    let sleep = format!("trap '' TERM; sleep {seconds}");
    let job = json!({"command": sleep, "run_in_background": true});
    let long = json!({"command": format!("{sleep} & touch ready; wait")});
    let wait = json!({"action": "wait", "job": "j1", "timeout_ms": 600_000});
    let mut client = Client::greeted(&world, &["--mode", "bypass"]);
    client.call("bash", &job);
    client.begin(&json!(7), "bash", &long);
    client.begin(&json!(8), "job", &wait);
    let there = || world.work().join("ready").exists();
    assert!(until(PATIENCE, there), "nothing was started");
    let begun = Instant::now();
    let end = client.end();
    assert!(begun.elapsed() < LEFT, "{:?}", begun.elapsed());
    all_gone("a client that has said all", &seconds, begun);
    assert_eq!(end.code, Some(0), "{end:?}");
    for id in [7, 8] {
        let answer = end.notices.iter().find(|said| said["id"] == id);
        let answer = answer.unwrap_or_else(|| panic!("{id} has no answer: {end:?}"));
        assert!(text(answer).contains("cancelled"), "{answer}");
    }
}

#[test]
fn a_run_that_ends_leaves_no_supervisor_to_others() {
    for more in ["", "; kill -STOP $(sed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f2)"] {
        let world = World::new();
        let input = json!({"command": format!("cat /proc/$PPID/stat{more}")}).to_string();
        let ran = world.run(&["tool", "bash", "--allow", "Bash", "--input", &input]);
        // The parent of the command's keeper is the supervisor.
        let (_, rest) = ran.out.rsplit_once(") ").unwrap_or_else(|| panic!("{ran:?}"));
        let supervisor = rest.split(' ').nth(1).unwrap();
        assert!(!fs::exists(format!("/proc/{supervisor}")).unwrap(), "{ran:?}");
    }
}
