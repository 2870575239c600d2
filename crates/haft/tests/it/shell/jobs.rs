//! Commands in the background, through every face: who is told of their end, and that none outlives
//! its session.

use std::{
    fs,
    time::{Duration, Instant},
};

use haft_types::{Body, Event, From, JobEnd};
use serde_json::{Value, json};

use crate::{
    line::terminal::Tmux,
    mcp_client::{Client, text},
    mock_provider::{Mock, Wire},
    world::{
        Input, PATIENCE, World, all_calls_ended, ended, finish, gone, holding, runs, signal,
        unique_seconds, until,
    },
};

/// A command that goes on once the file `go` is there.
fn waiting(then: &str) -> String {
    format!("while ! [ -e go ]; do sleep 0.02; done; {then}")
}

/// A call that begins a command in the background.
fn begin(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "run_in_background": true}})
}

fn job(input: &Value) -> Value {
    json!({"name": "job", "input": input})
}

/// What is said to the model of jobs.
fn reports(events: &[Event]) -> Vec<(String, String)> {
    let report = |event: &Event| match &event.body {
        Body::User { from: From::Job(job), parts } => {
            Some((job.clone(), serde_json::to_string(parts).unwrap()))
        }
        _ => None,
    };
    events.iter().filter_map(report).collect()
}

/// How the jobs ended, in the order of their ends.
fn ends(events: &[Event]) -> Vec<(String, JobEnd, Option<i32>)> {
    let end = |event: &Event| match &event.body {
        Body::JobEnded { job, end, exit } => Some((job.clone(), *end, *exit)),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

#[test]
fn the_end_of_the_run_stops_its_jobs_and_says_which() {
    let answers = |seconds: &str| {
        let go = json!({"name": "bash", "input": {"command": "touch go"}});
        let wait = job(&json!({"action": "wait", "job": "j2"}));
        let second = begin(&waiting("echo said; exit 3"));
        [
            json!({"calls": [begin(&format!("sleep {seconds}")), second]}),
            json!({"calls": [go, wait]}),
            json!({"text": "End."}),
        ]
    };
    for output in ["text", "json", "stream-json"] {
        let (world, seconds) = (World::new(), unique_seconds());
        let model = world.script(&answers(&seconds));
        let flags = ["-p", "go", "--model", &model, "--mode", "bypass", "--output", output];
        let ran = world.run(&flags);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!runs(&seconds), "{output}: it runs on");
        let told = format!("haft: stopped with the end of the run: j1 (sleep {seconds})");
        assert_eq!(ran.err.lines().next(), Some(&*told), "{ran:?}");
        let logged = world.events();
        all_calls_ended(&logged);
        let wanted = [("j2".into(), JobEnd::Exited, Some(3)), ("j1".into(), JobEnd::Stopped, None)];
        assert_eq!(ends(&logged), wanted);
        // Its end was seen when it was waited for; the other ended when nothing was asked any more.
        assert_eq!(reports(&logged), []);
        match output {
            "text" => assert_eq!(ran.out, "End.\n"),
            "json" => {
                let jobs = ran.json()["jobs"].clone();
                assert_eq!(jobs[0]["end"], "stopped", "{jobs}");
                assert_eq!(jobs[0]["title"], format!("sleep {seconds}"));
                assert_eq!((&jobs[1]["end"], &jobs[1]["exit"]), (&json!("exited"), &json!(3)));
                assert_eq!(
                    (&jobs[1]["call"], &jobs[1]["output"]),
                    (&json!("c2"), &json!("out://c2"))
                );
            }
            _ => {
                let ended = |line: &Value| line["type"] == "job_ended";
                let lines = ran.lines();
                let ended: Vec<&Value> = lines.iter().filter(|line| ended(line)).collect();
                assert_eq!(ended.len(), 2, "{ran:?}");
                assert_eq!((&ended[0]["job"], &ended[0]["exit"]), (&json!("j2"), &json!(3)));
                assert_eq!((&ended[1]["job"], &ended[1]["end"]), (&json!("j1"), &json!("stopped")));
            }
        }
    }
}

#[test]
fn the_model_is_told_of_an_end_once() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let world = World::new();
        let begin = json!({"command": "echo 'the last words'; exit 4",
            "run_in_background": true, "description": "Short job"});
        let mut after = 0;
        let mock = Mock::with(move |at, request| {
            let body = String::from_utf8_lossy(&request.body);
            after += usize::from(body.contains("of c1 has ended"));
            match at {
                0 => wire.calls("first", &[("bash", begin.clone())]),
                // It is told some day, and not again with the requests after that.
                _ if after < 4 => {
                    wire.calls(&format!("more{at}"), &[("bash", json!({"command": "true"}))])
                }
                _ => wire.text("End."),
            }
        });
        let haft = wire.haft(&world, &mock.url(), &["-p", "go", "--mode", "bypass"]);
        let ran = finish(haft, &Input::Nothing);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let told = reports(&world.events());
        assert_eq!(told.len(), 1, "{told:?}");
        for word in ["Short job", "of c1 has ended: exit code 4", "| the last words", "out://c1"] {
            assert!(told[0].1.contains(word), "{told:?}");
        }
        // Every request after it holds it, for it is a part of the conversation from then on.
        let bodies = mock.bodies();
        let holding: Vec<_> =
            bodies.iter().map(|body| body.matches("of c1 has ended").count()).collect();
        assert!(holding.ends_with(&[1; 4]) && holding.iter().sum::<usize>() == 4, "{holding:?}");
    }
}

#[test]
fn a_run_that_goes_on_is_told_what_became_of_its_jobs() {
    let (world, seconds) = (World::new(), unique_seconds());
    let model = world.script(&[
        json!({"calls": [begin(&format!("sleep {seconds}"))]}),
        json!({"text": "First."}),
        json!({"calls": [job(&json!({"action": "list"})), begin("exit 0")]}),
        json!({"text": "Second."}),
        json!({"text": "Third."}),
    ]);
    for (at, flags) in
        [&["-p", "go"][..], &["-c", "-p", "on"], &["-c", "-p", "on"]].iter().enumerate()
    {
        let ran = world.run(&[flags, &["--model", &model, "--mode", "bypass"][..]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let told = reports(&world.events());
        assert_eq!(told.iter().filter(|(job, _)| job == "j1").count(), usize::from(at > 0));
        if at > 0 {
            assert!(told[0].1.contains("stopped, with the run that began it"), "{told:?}");
        }
    }
    let logged = world.events();
    let begun = logged.iter().filter_map(|event| match &event.body {
        Body::JobStarted { job, .. } => Some(job.as_str()),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), ["j1", "j2"]);
    gone(&seconds);
}

#[test]
fn nothing_outlives_a_haft_that_is_killed_and_its_jobs_are_lost() {
    for way in ["sleep N", "setsid sleep N & trap '' TERM HUP; sleep N", "exec setsid sleep N"] {
        let (world, seconds) = (World::new(), unique_seconds());
        let command = way.replace('N', &seconds);
        let wait = job(&json!({"action": "wait", "timeout_ms": 600_000}));
        let model =
            world.script(&[json!({"calls": [begin(&command), wait]}), json!({"text": "On."})]);
        let flags = ["--model", &model, "--mode", "bypass"];
        let mut child = world.haft(&[&["-p", "go"][..], &flags].concat()).spawn().unwrap();
        // What the log does not know of cannot be told.
        let told = || !holding(&world.state(), b"job_started").is_empty();
        assert!(until(PATIENCE, || runs(&seconds) && told()), "nothing was started");
        let killed = Instant::now();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(until(Duration::from_secs(3), || !runs(&seconds)), "{way}: it runs on");
        assert!(killed.elapsed() < Duration::from_secs(3), "{way}: {:?}", killed.elapsed());
        let ran = world.run(&[&["-c", "-p", "on"][..], &flags].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "On.\n"), "{ran:?}");
        let logged = world.events();
        assert_eq!(ends(&logged), [("j1".into(), JobEnd::Lost, None)]);
        let told = reports(&logged);
        assert!(told.len() == 1 && told[0].1.contains("lost"), "{told:?}");
    }
}

#[test]
fn a_job_outlives_an_interrupted_turn_but_not_the_talk() {
    let (world, seconds) = (World::new(), unique_seconds());
    let hang = json!({"name": "bash", "input": {"command": format!("sleep 1{seconds}")}});
    let model = world.script(&[
        json!({"calls": [begin(&format!("sleep {seconds}"))]}),
        json!({"calls": [hang]}),
        json!({"calls": [job(&json!({"action": "output"}))]}),
        json!({"text": "It goes on."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("go");
    tmux.sees(&format!("j1 runs in the background: sleep {seconds}"));
    assert!(until(PATIENCE, || runs(&format!("1{seconds}"))), "nothing was started");
    tmux.key("C-c");
    tmux.sees("interrupted");
    assert!(runs(&format!("sleep\0{seconds}")), "the job was stopped with the turn");
    tmux.line("and now?");
    tmux.sees("It goes on.");
    tmux.line("/quit");
    gone(&format!("sleep\0{seconds}"));
    let logged = world.events();
    assert_eq!(ends(&logged), [("j1".into(), JobEnd::Stopped, None)]);
}

#[test]
fn line_mode_shows_when_a_job_ends() {
    let world = World::new();
    let model = world.script(&[
        json!({"calls": [begin("exit 5"), job(&json!({"action": "wait"}))]}),
        json!({"text": "Seen."}),
    ]);
    let flags = ["--line", "--model", &model, "--mode", "bypass"];
    let ran = world.run_with(&flags, &Input::Pipe("go\n"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for wanted in ["- j1 runs in the background: exit 5\n", "- j1 has ended: exit code 5\n"] {
        assert!(ran.out.contains(wanted), "{ran:?}");
    }
    assert!(!ran.out.contains("> The job"), "{ran:?}");
}

#[test]
fn one_call_has_no_jobs() {
    let world = World::new();
    let input = json!({"command": "touch made", "run_in_background": true});
    let ran = world.tool("bash", &input, &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("haft tool makes one call"), "{ran:?}");
    assert!(ran.out.contains("without run_in_background"), "{ran:?}");
    assert!(!world.work().join("made").exists());
    let ran = world.tool("job", &json!({"action": "list"}), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("There are no jobs"), "{ran:?}");
}

#[test]
fn jobs_of_a_client_live_as_long_as_its_connection() {
    let (world, seconds) = (World::new(), unique_seconds());
    let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
    let start = |command: &str| json!({"command": command, "run_in_background": true});
    let begun = client.call("bash", &start(&format!("echo up; sleep {seconds}")));
    assert_eq!(begun["result"]["structuredContent"]["job_id"], "j1", "{begun}");
    let up = client.call("job", &json!({"action": "wait", "pattern": "up"}));
    assert_eq!(up["result"]["structuredContent"]["line"], "up", "{up}");
    client.call("bash", &start(&waiting("echo words; exit 6")));
    client.call("bash", &json!({"command": "touch go"}));
    // The other goes on: only the end of this one is told, with an answer of bash or job.
    let mut told = String::new();
    let came = until(PATIENCE, || {
        told = text(&client.call("bash", &json!({"command": "true"}))).to_owned();
        told.contains("has ended")
    });
    assert!(came && told.contains("j2 (while"), "{told}");
    assert!(told.contains("exit code 6") && told.contains("| words"), "{told}");
    let again = text(&client.call("job", &json!({"action": "list"}))).to_owned();
    assert!(!again.contains("has ended") && again.contains("j1 running"), "{again}");
    assert!(runs(&seconds));
    client.ends_well();
    assert!(!runs(&seconds), "it outlives its client");
}

#[test]
fn a_client_that_is_told_to_go_leaves_no_job() {
    for name in ["TERM", "KILL"] {
        let (world, seconds) = (World::new(), unique_seconds());
        let mut haft = world.haft(&["mcp", "--mode", "bypass"]);
        let mut child = haft.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let call = begin(&format!("trap '' TERM; sleep {seconds}"));
        let call = json!({"name": "bash", "arguments": call["input"]});
        for line in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ] {
            std::io::Write::write_all(&mut to, format!("{line}\n").as_bytes()).unwrap();
        }
        assert!(until(PATIENCE, || runs(&seconds)), "nothing was started");
        signal(name, child.id());
        ended(&mut child, Duration::from_secs(3));
        assert!(until(Duration::from_secs(3), || !runs(&seconds)), "{name}: it runs on");
    }
}

#[test]
fn a_busy_job_slows_no_other_call_and_streams_nothing() {
    let world = World::new();
    world.settings("[jobs]\ndisk_bytes = 1048576\n");
    let looks: Vec<Value> = (0..20).map(|_| json!({"name": "ls", "input": {}})).collect();
    let busy = "i=0; while :; do seq 1 10000; sleep 0.1; done";
    let model = world.script(&[
        json!({"calls": [begin(busy), job(&json!({"action": "wait", "pattern": "^10000$"}))]}),
        json!({"calls": looks}),
        json!({"calls": [job(&json!({"action": "wait", "timeout_ms": 3_000})),
            job(&json!({"action": "stop", "since": 0}))]}),
        json!({"text": "End."}),
    ]);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass", "--output", "stream-json"];
    let ran = world.run(&flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.lines().iter().all(|line| line["type"] != "call_output"), "{ran:?}");
    let last = world.outcomes().pop().unwrap();
    let told = crate::world::text(&last);
    assert!(told.contains("bytes of the output are not kept"), "{told}");
    let outs = world.state().join("sessions").join(world.only_session()).join("out/c1");
    let kept = fs::metadata(&outs).unwrap_or_else(|error| panic!("{}: {error}", outs.display()));
    assert!(kept.len() <= (1 << 20) + 200, "{}", kept.len());
}

/// What makes a daemon that holds the pipes of its command and has left its session, and the
/// settings that let it go on.
fn daemon(world: &World, seconds: &str) -> String {
    world.settings("[shell]\nkeep = [\"builderd\"]\n");
    let daemon = format!("exec -a builderd bash -c \"touch there; sleep {seconds}; true\"");
    format!("(setsid bash -c '{daemon}' &); until [ -e there ]; do sleep 0.02; done; echo built")
}

#[test]
fn what_is_kept_lives_as_long_as_haft() {
    // One call has no jobs.
    let (world, seconds) = (World::new(), unique_seconds());
    let command = daemon(&world, &seconds);
    let ran = world.tool("bash", &json!({"command": command}), &["--mode", "bypass"]);
    assert!(ran.out.starts_with("built\n[still running when the command ended, and st"), "{ran:?}");
    assert!(ran.out.contains("shell.keep could not let it go on: no job can begin"), "{ran:?}");
    assert!(!runs(&seconds), "it outlives its call");

    let (world, seconds) = (World::new(), unique_seconds());
    let command = daemon(&world, &seconds);
    let command = json!({"name": "bash", "input": {"command": command}});
    let look =
        json!({"name": "bash", "input": {"command": format!("pgrep -f '^sleep {seconds}'")}});
    let model = world.script(&[
        json!({"calls": [command]}),
        json!({"calls": [look, job(&json!({"action": "list"}))]}),
        json!({"text": "End."}),
    ]);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass"];
    let ran = world.run(&flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Vec<String> = world.outcomes().iter().map(crate::world::text).collect();
    assert!(told[0].starts_with("built\n[still running"), "{told:?}");
    assert!(told[0].contains("shell.keep lets it go on, as job j1; "), "{told:?}");
    // Both only look, so that either may end first.
    assert!(told.iter().any(|text| text.parse::<u32>().is_ok()), "{told:?}");
    assert!(told.iter().any(|text| text.contains("j1 running")), "{told:?}");
    assert!(ran.err.contains("j1 (") && ran.err.contains("builderd"), "{ran:?}");
    assert!(!runs(&seconds), "it outlives the run");
}

#[test]
fn what_is_kept_for_a_client_ends_with_it_in_whatever_way_it_ends() {
    for name in ["", "TERM", "KILL"] {
        let (world, seconds) = (World::new(), unique_seconds());
        let command = daemon(&world, &seconds);
        let mut client = Client::greeted(&world, &["--mode", "bypass", "--structured"]);
        let built = client.call("bash", &json!({"command": command}));
        assert_eq!(built["result"]["structuredContent"]["job_id"], "j1", "{built}");
        assert!(runs(&seconds), "{built}");
        let out = client.call("job", &json!({"action": "output"}));
        assert!(text(&out).contains("j1 runs since"), "{out}");
        if name.is_empty() {
            client.ends_well();
        } else {
            signal(name, client.process());
            client.ended();
        }
        assert!(until(Duration::from_secs(3), || !runs(&seconds)), "{name}: it runs on");
    }
}
