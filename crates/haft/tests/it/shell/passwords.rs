//! Programs that want a password or a yes: nobody is there to type one, so they fail at once and say
//! why, and nothing waits for the end of its time.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    mcp_client::Client,
    world::{Input, World, finish},
};

/// Longest that such a command takes, on a busy machine too; its time would be two minutes.
const AT_ONCE: Duration = Duration::from_secs(20);

/// A server that wants a name and a password for whatever is asked of it; its port.
fn locked() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\
                          Content-Length: 0\r\nConnection: close\r\n\r\n";
            // Who does not wait for it has its answer.
            drop((&stream).write_all(answer.as_bytes()));
        }
    });
    port
}

/// What asks as `ssh`, `sudo`, `gpg` and others do: at the terminal of its session, whatever its input
/// is, and without an echo.
const LIKE_SUDO: &str = "exec 3<>/dev/tty || { echo 'a terminal is required' >&2; exit 1; }; \
                         stty -echo <&3; printf 'Password: ' >&3; read -r word <&3 || exit 1";

#[test]
fn what_asks_for_a_password_fails_at_once() {
    let world = World::new();
    let clone = format!("git clone -q http://127.0.0.1:{}/x.git", locked());
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let ways = [json!({}), json!({"session": "s"}), json!({"pty": true})];
    for (command, alone, at_terminal) in [
        (LIKE_SUDO, "a terminal is required", "Password:"),
        ("bash -c 'read -r -p Name: word </dev/tty'", "/dev/tty", "Name:"),
        ("bash -c 'read -r word'", "", ""),
        (&*clone, "could not read Username", "could not read Username"),
    ] {
        for way in &ways {
            // The shell itself lives on.
            let command =
                if way["session"].is_null() { command.into() } else { format!("({command})") };
            let mut input = json!({ "command": command });
            input.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
            let began = Instant::now();
            let answer = client.call("bash", &input);
            assert!(began.elapsed() < AT_ONCE, "{input}: {:?}", began.elapsed());
            let data = &answer["result"]["structuredContent"];
            assert!(data["exit_code"].as_i64().is_some_and(|code| code > 0), "{input}: {answer}");
            let said = if way["pty"].is_null() { alone } else { at_terminal };
            assert!(answer["result"]["content"].to_string().contains(said), "{input}: {answer}");
        }
        if command.contains("/dev/tty") {
            let begun =
                client.call("bash", &json!({"command": command, "run_in_background": true}));
            let id = &begun["result"]["structuredContent"]["job_id"];
            let wait = json!({"action": "wait", "job": id, "timeout_ms": 60_000});
            let ended = client.call("job", &wait);
            assert_eq!(ended["result"]["structuredContent"]["waited"], json!("end"), "{ended}");
        }
    }
    client.ends_well();
}

/// What a person has set up is left as it is: it may know the password.
#[test]
fn a_program_of_the_person_that_gives_passwords_is_asked() {
    let world = World::new();
    let askpass = world.file("askpass", "#!/bin/sh\necho \"asked: $1\" >> asked\nexit 1\n");
    fs::set_permissions(&askpass, fs::Permissions::from_mode(0o755)).unwrap();
    let command = format!("git clone -q http://127.0.0.1:{}/x.git", locked());
    let input = json!({ "command": command }).to_string();
    let mut haft = world.haft(&["tool", "bash", "--mode", "bypass", "--input", &input]);
    haft.env("GIT_ASKPASS", askpass);
    let ran = finish(haft, &Input::Nothing);
    let asked = fs::read_to_string(world.work().join("asked")).unwrap_or_default();
    assert!(asked.starts_with("asked: Username for"), "{asked} {ran:?}");
}
