//! The network as confined commands have it: what is said where it was why one failed, at each level, and a
//! server that one command started and another uses.

#![expect(clippy::print_stderr, reason = "a test says what it could not try")]

use serde_json::{Value, json};

use crate::world::{Input, Ran, World, finish, text};

const AUTO: &[&str] = &["--mode", "auto"];
/// Leaves no other level than L to whatever runs behind it.
const NO_NAMESPACES: &str =
    "for n in user mnt pid net ipc uts; do echo 0 > /proc/sys/user/max_${n}_namespaces; done";
/// The levels, with what makes haft use each.
const LEVELS: [(&str, &str); 2] = [("level N", ""), ("level L", NO_NAMESPACES)];

/// Runs haft where only this level is left.
fn at(world: &World, begins: &str, arguments: &str) -> Ran {
    let script = format!("{begins}\n'{}' {arguments}", env!("CARGO_BIN_EXE_haft"));
    let mut command = world.program(if begins.is_empty() { "sh" } else { "unshare" });
    command.args(if begins.is_empty() { &[][..] } else { &["-Ur", "sh"] });
    command.args(["-c", &script]);
    finish(command, &Input::Nothing)
}

/// The levels that hold here; the others are counted and printed.
fn levels(world: &World) -> Vec<(&'static str, &'static str)> {
    let holds = |(level, begins): &(&str, &str)| {
        at(world, begins, "doctor").out.contains(&format!("of mode auto run at {level}"))
    };
    let (held, not): (Vec<_>, Vec<_>) = LEVELS.into_iter().partition(holds);
    eprintln!("not tried: {} levels: {not:?}", not.len());
    assert!(!held.is_empty(), "no level holds here");
    held
}

/// Reports whether a program is there, and says so where it is not.
fn has(name: &str) -> bool {
    let found =
        std::process::Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("not tried, since it is not there: {name}");
    }
    is_there
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What a command is to be told: nothing, or these words at level N.
type ExpectedHint = Option<&'static [&'static str]>;

const MACHINES: ExpectedHint =
    Some(&["tried to reach other machines, and connects to none here", "example.org"]);
const SOMEWHERE: ExpectedHint =
    Some(&["tried to reach other machines, and connects to none here", "{\"hosts\":[\"NAME\"]}"]);
const LOOPBACK: ExpectedHint = Some(&["tried to reach 127.0.0.1, and nothing listened there"]);

/// A program, what it is given, and what is to be said.
const TABLE: &[(&str, &str, ExpectedHint)] = &[
    ("curl", "curl -s http://example.org/x", MACHINES),
    ("curl", "curl -sf http://example.org/x || echo down", MACHINES),
    ("curl", "curl -s http://127.0.0.1:9/", LOOPBACK),
    ("wget", "wget -q -t 1 https://example.org/", MACHINES),
    ("node", "node get.js", SOMEWHERE),
    ("python3", "python3 get.py 'http://example.org/'", MACHINES),
    ("python3", "python3 get.py 'http://127.0.0.1:9/'", LOOPBACK),
    ("python3", "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'", MACHINES),
    ("getent", "getent hosts example.org > found", MACHINES),
    ("python3", "python3 ports.py", LOOPBACK),
    ("bash", "touch x; echo 'curl: (7) Failed to connect: Connection refused'; exit 1", None),
    ("bash", "touch x; echo 'Network is unreachable'; exit 7", None),
    ("bash", "touch x; echo fine", None),
];

const GET_JS: &str =
    "require('http').get('http://example.org/').on('error', () => process.exit(1));";
const GET_PY: &str = "
import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1]).read()
except OSError:
    print('the server is down')
    sys.exit(1)
";
/// A suite that looks for a free port, and passes.
const PORTS: &str = "
import socket
for port in range(2000, 2005):
    try:
        socket.create_connection(('127.0.0.1', port)).close()
    except OSError:
        pass
print('5 passed')
";

fn files(world: &World) {
    for (name, content) in [("get.js", GET_JS), ("get.py", GET_PY), ("ports.py", PORTS)] {
        world.file(name, content);
    }
}

#[test]
fn the_network_is_told_where_it_was_why_and_nowhere_else() {
    let world = World::new();
    files(&world);
    for (level, begins) in levels(&world) {
        for (program, command, wanted) in TABLE {
            if !has(program) {
                continue;
            }
            let input = json!({ "command": command }).to_string();
            let ran =
                at(&world, begins, &format!("tool bash --mode auto --input {}", quoted(&input)));
            let said = format!("{level}: {command}: {ran:?}");
            match wanted {
                None => assert!(!ran.out.contains("in the sandbox"), "{said}"),
                Some(words) if level == "level N" => {
                    assert!(words.iter().all(|word| ran.out.contains(word)), "{said}");
                }
                Some(words) => {
                    assert!(ran.out.contains("may open no socket"), "{said}");
                    let host = words.get(1).unwrap_or(&"Nothing on 127.0.0.1 is reachable");
                    assert!(ran.out.contains(host), "{said}");
                }
            }
            let notes = ran.out.lines().filter(|line| line.starts_with("[in the sandbox")).count();
            assert_eq!(notes, usize::from(wanted.is_some()), "{said}");
            assert!(!ran.out.contains("it ran in the sandbox"), "{said}");
        }
    }
}

#[test]
fn what_succeeds_is_told_once_of_a_session_and_what_fails_each_time() {
    let world = World::new();
    files(&world);
    let bash = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let named =
        |command: &str| json!({"name": "bash", "input": {"command": command, "session": "s"}});
    let fails = "python3 get.py http://example.org/";
    let told = world.tool_results(
        &[
            bash("python3 ports.py"),
            bash("python3 ports.py"),
            bash(&format!("{fails} || true")),
            bash(fails),
            bash(fails),
            named("touch x"),
            named(fails),
            named("touch x; python3 ports.py"),
        ],
        AUTO,
    );
    let notes: Vec<bool> = told.iter().map(|told| text(told).contains("[in the sandbox")).collect();
    assert_eq!(notes, [true, false, true, true, true, false, true, false], "{told:?}");
    assert!(text(&told[6]).contains("without session and with needs"), "{}", text(&told[6]));
}

/// What a job and commands beside it say.
fn with_server(world: &World, more: &[Value]) -> Vec<String> {
    world.file("page", "hello from the job");
    let server = "exec python3 -m http.server 8123 --bind 127.0.0.1";
    let mut calls = vec![
        json!({"name": "bash", "input": {"command": server, "run_in_background": true}}),
        json!({"name": "job", "input": {"action": "wait", "job_id": "j1", "port": 8123, "timeout_ms": 20_000}}),
    ];
    calls.extend_from_slice(more);
    world.tool_results(&calls, AUTO).iter().map(text).collect()
}

#[test]
fn a_server_that_is_a_job_and_a_client_that_is_a_command_meet() {
    let world = World::new();
    if !levels(&world).contains(&LEVELS[0]) {
        return;
    }
    let get = "touch x; python3 -c \"import urllib.request as u; \
               print(u.urlopen('http://127.0.0.1:8123/page').read())\"";
    let other = get.replace("8123", "8124");
    let said = with_server(
        &world,
        &[
            json!({"name": "bash", "input": {"command": get}}),
            json!({"name": "bash", "input": {"command": get, "session": "s"}}),
            json!({"name": "bash", "input": {"command": other}}),
        ],
    );
    assert!(
        said[1].contains("port 8123 is open") && !said[1].contains("Nothing on"),
        "{}",
        said[1]
    );
    for said in &said[2..4] {
        assert!(said.contains("hello from the job") && !said.contains("in the sandbox"), "{said}");
    }
    assert!(
        said[4].contains("in the sandbox this command or job j1 tried to reach 127"),
        "{}",
        said[4]
    );
}

#[test]
fn where_no_command_reaches_a_job_the_wait_for_its_port_says_so() {
    let world = World::new();
    if !levels(&world).contains(&LEVELS[0]) {
        return;
    }
    world.settings("[sandbox]\nhosts = [\"example.org\"]\n");
    let said = with_server(&world, &[]);
    assert!(said[1].contains("port 8123 is open"), "{}", said[1]);
    assert!(
        said[1].contains("Nothing on 127.0.0.1 is reachable from other commands"),
        "{}",
        said[1]
    );
    assert!(said[1].contains("run server and client in one command"), "{}", said[1]);
}

#[test]
fn what_the_proxy_refused_is_told_whatever_came_of_the_command() {
    if !has("curl") {
        return;
    }
    let world = World::new();
    world.settings("[sandbox]\nhosts = [\"example.net\"]\n");
    for (level, begins) in levels(&world) {
        let command = "curl -s http://example.org/ > got || true";
        let input = json!({ "command": command }).to_string();
        let ran = at(&world, begins, &format!("tool bash --mode auto --input {}", quoted(&input)));
        assert_eq!(ran.code, Some(0), "{level}: {ran:?}");
        assert!(ran.out.contains("refused: example.org:80"), "{level}: {ran:?}");
        assert!(ran.out.contains("{\"hosts\":[\"example.org\"]}"), "{level}: {ran:?}");
        assert!(!ran.out.contains("why it failed"), "{level}: {ran:?}");
        // Past the proxy, too.
        let command = "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'";
        let input = json!({ "command": command }).to_string();
        let ran = at(&world, begins, &format!("tool bash --mode auto --input {}", quoted(&input)));
        assert!(ran.out.contains("past the proxy"), "{level}: {ran:?}");
        assert_eq!(ran.out.matches("with needs").count(), 1, "{level}: {ran:?}");
    }
    // Of a job at its end.
    let world = World::new();
    world.settings("[sandbox]\nhosts = [\"example.net\"]\n");
    let told = world.tool_results(
        &[
            json!({"name": "bash", "input": {"command": "curl -s http://example.org/ > got; true", "run_in_background": true}}),
            json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}}),
        ],
        AUTO,
    );
    assert!(text(&told[1]).contains("refused it: example.org:80"), "{told:?}");
}

#[test]
fn a_job_says_at_its_end_what_it_tried() {
    let world = World::new();
    files(&world);
    let told = world.tool_results(
        &[
            json!({"name": "bash", "input": {"command": "python3 get.py http://example.org/", "run_in_background": true}}),
            json!({"name": "job", "input": {"action": "wait", "job_id": "j1"}}),
        ],
        AUTO,
    );
    let said = text(&told[1]);
    assert!(said.contains("in the sandbox it tried") && said.contains("start it again"), "{said}");
    assert!(said.contains("example.org"), "{said}");
}

#[test]
fn without_proc_it_is_named_and_nothing_runs_unheld() {
    let world = World::new();
    let no_proc = "mount -t tmpfs none /proc";
    let Some(ran) = world.mounted(no_proc, "doctor", &[]) else {
        eprintln!("not tried: nobody may mount here");
        return;
    };
    assert!(ran.out.contains("nothing holds commands") && ran.out.contains("/proc"), "{ran:?}");
    let ran = world.mounted(
        no_proc,
        "tool bash --mode auto --input '{\"command\": \"curl -s http://example.org\"}'",
        &[],
    );
    assert!(ran.unwrap().out.contains("no sandbox holds"));
}
