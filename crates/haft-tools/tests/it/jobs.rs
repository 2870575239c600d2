//! Commands in the background, and the job tool, on this machine.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_policy::{Mode, Verdict};
use haft_testkit::{
    machine::{self, peak},
    world::World,
};
use haft_tool::{JobLimits, Jobs};
use haft_types::{Body, CallId, Follow, JobEnd, Outcome, Reply, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bash::on_disk;

pub(crate) fn world() -> World {
    World::local(haft_tools::builtin(), [("b.txt", "one\ntwo\n")]).unwrap()
}

fn jobs(world: &World) -> Arc<Jobs> {
    world.session.map.get::<Jobs>()
}

/// Begins a command in the background; gives its name.
pub(crate) async fn begin(world: &World, command: &str) -> String {
    begin_with(world, json!({"command": command})).await
}

pub(crate) async fn begin_with(world: &World, mut input: Value) -> String {
    input["run_in_background"] = json!(true);
    let outcome = world.call("bash", input).await;
    assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    crate::fits(world, "bash", &outcome);
    data(&outcome)["job_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn job(world: &World, action: &str, more: Value) -> Outcome {
    let mut input = more;
    input["action"] = json!(action);
    let outcome = world.call("job", input).await;
    if outcome.data.is_some() {
        crate::fits(world, "job", &outcome);
    }
    outcome
}

pub(crate) fn data(outcome: &Outcome) -> &Value {
    outcome.data.as_ref().unwrap_or_else(|| panic!("{}", outcome.joined_text()))
}

/// How the jobs ended that were told of as ended.
fn ends(world: &World) -> Vec<(String, JobEnd, Option<i32>)> {
    let ended = |body: Body| match body {
        Body::JobEnded { job, end, exit } => Some((job, end, exit)),
        _ => None,
    };
    world.recorder.bodies().into_iter().filter_map(ended).collect()
}

/// Whether a process is there, zombies apart.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The number of a process that a job says in its first line.
async fn process_of(world: &World, id: &str) -> u32 {
    let found = job(world, "wait", json!({"job": id, "pattern": "^\\d+$", "since": 0})).await;
    let line = data(&found)["line"].as_str().unwrap_or_else(|| panic!("{}", found.joined_text()));
    line.parse().unwrap()
}

/// What a tool makes of a kept output, as soon as that is there.
async fn once_kept(world: &World, tool: &str, input: Value) -> String {
    loop {
        let outcome = world.call(tool, input.clone()).await;
        if outcome.status == Status::Done {
            return outcome.joined_text();
        }
        tokio::task::yield_now().await;
    }
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn a_command_goes_on_in_the_background_and_each_line_is_given_once() {
    let world = world();
    let gates = ["first", "second"].map(|name| world.folder().unwrap().join(name));
    for gate in &gates {
        machine::make_fifo(gate);
    }
    let command = "echo one; echo two; read -r _ < first; printf 'three\\npart'; \
                   read -r _ < second; echo ' is whole'; exit 3";
    let outcome = world.call("bash", json!({"command": command, "run_in_background": true})).await;
    let text = outcome.joined_text();
    assert!(text.contains("[job j1 runs in the background") && text.contains("out://c1"), "{text}");
    let began = data(&outcome);
    assert_eq!((&began["job_id"], &began["output_path"]), (&json!("j1"), &json!("out://c1")));
    assert_eq!(began.get("exit_code"), None);

    let found = job(&world, "wait", json!({"pattern": "^two$"})).await;
    assert_eq!(data(&found)["waited"], "pattern", "{}", found.joined_text());
    assert_eq!(data(&found)["line"], "two");
    assert!(found.joined_text().contains("one\n"), "{}", found.joined_text());
    let nothing = job(&world, "output", json!({})).await;
    assert_eq!(data(&nothing)["output"], "", "{}", nothing.joined_text());
    assert!(nothing.joined_text().contains("[no new output]"), "{}", nothing.joined_text());

    let open = async |gate: usize| {
        let gate = gates[gate].clone();
        tokio::task::spawn_blocking(|| fs::write(gate, "on\n")).await.unwrap().unwrap();
    };
    open(0).await;
    let part = job(&world, "wait", json!({"pattern": "part"})).await;
    // A line that has not ended yet is given, and given again when it has.
    assert_eq!(data(&part)["output"], "three\npart", "{}", part.joined_text());
    open(1).await;
    let end = job(&world, "wait", json!({})).await;
    assert_eq!(data(&end)["output"], "part is whole", "{}", end.joined_text());
    assert!(end.joined_text().contains("exit code 3"), "{}", end.joined_text());
    let one = &data(&end)["jobs"][0];
    assert_eq!((&one["state"], &one["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!(ends(&world), [("j1".to_owned(), JobEnd::Exited, Some(3))]);

    let all = job(&world, "output", json!({"since": 0})).await;
    let whole = "one\ntwo\nthree\npart is whole";
    assert_eq!(data(&all)["output"], whole);
    let kept = world.call("read", json!({"path": "out://c1"})).await.joined_text();
    assert!(kept.contains("part is whole") && kept.contains("one"), "{kept}");
    // The folder of a command in the background is nobody else's.
    assert_eq!(
        world.call("bash", json!({"command": "pwd"})).await.joined_text(),
        world.root.text()
    );
    let list = job(&world, "list", json!({})).await;
    assert!(list.joined_text().starts_with("j1 exited, exit code 3"), "{}", list.joined_text());
}

#[tokio::test]
async fn what_a_job_says_can_be_read_while_it_runs() {
    let world = world();
    begin(&world, "echo begin; sleep 60").await;
    let kept = once_kept(&world, "read", json!({"path": "out://c1"})).await;
    assert!(kept.contains("begin"), "{kept}");
}

#[tokio::test]
async fn running_out_of_time_is_an_answer_and_a_cancelled_wait_ends_at_once() {
    let world = world();
    begin(&world, "echo begin; sleep 60").await;
    job(&world, "wait", json!({"pattern": "begin"})).await;
    for (more, wanted) in [
        (json!({"timeout_ms": 1}), "its end"),
        (json!({"timeout_ms": 0, "pattern": "never"}), "a match of never"),
        (json!({"timeout_ms": 1, "port": free_port()}), "port "),
    ] {
        let outcome = job(&world, "wait", more).await;
        let text = outcome.joined_text();
        assert_eq!((outcome.status, &data(&outcome)["waited"]), (Status::Done, &json!("timeout")));
        assert!(text.contains("still waiting for") && text.contains(wanted), "{text}");
    }
    let stop = CancellationToken::new();
    let wait = world.call_until("job", json!({"action": "wait"}), stop.clone());
    let cancel = async {
        world
            .recorder
            .until(|body| {
                matches!(body, Body::CallStarted { call, .. }
            if *call.0 == *"c6")
            })
            .await;
        stop.cancel();
        Instant::now()
    };
    let (outcome, cancelled) = tokio::join!(wait, cancel);
    assert!(cancelled.elapsed() < Duration::from_millis(200), "{:?}", cancelled.elapsed());
    assert_eq!(outcome.status, Status::Cancelled, "{}", outcome.joined_text());
    assert_eq!(ends(&world), [], "the job goes on");
}

#[tokio::test]
async fn a_wait_ends_with_the_job() {
    let world = world();
    begin(&world, "echo no >&2; exit 1").await;
    for more in [json!({"pattern": "yes"}), json!({"port": free_port()})] {
        let outcome = job(&world, "wait", more).await;
        let text = outcome.joined_text();
        assert_eq!(data(&outcome)["waited"], "end", "{text}");
        assert!(text.contains("it ended while") && text.contains("exit code 1"), "{text}");
    }
}

#[tokio::test]
async fn input_reaches_a_command_as_it_is() {
    let world = world();
    begin(&world, "read -r a; echo \"[$a]\"; cat; echo over").await;
    let sent = job(&world, "input", json!({"text": "  two words"})).await.joined_text();
    assert!(sent.contains("[sent 11 bytes, no newline at their end]"), "{sent}");
    let sent = job(&world, "input", json!({"text": " é\n"})).await.joined_text();
    assert!(sent.contains("[sent 4 bytes, a newline at their end]"), "{sent}");
    job(&world, "wait", json!({"pattern": "two words é"})).await;
    job(&world, "input", json!({"text": "more\n", "eof": true})).await;
    let end = job(&world, "wait", json!({"since": 0})).await;
    assert_eq!(data(&end)["output"], "[two words é]\nmore\nover", "{}", end.joined_text());
    let late = job(&world, "input", json!({"text": "x\n"})).await;
    assert_eq!(late.status, Status::Failed);
    assert!(late.joined_text().contains("it has ended (exit code 0)"), "{}", late.joined_text());
}

#[tokio::test]
async fn an_interactive_program_is_driven_through_a_terminal() {
    let world = world();
    let python = machine::python();
    let command = format!("{} -q -i", python.display());
    begin_with(&world, json!({"command": command, "pty": true, "description": "Python"})).await;
    let prompt = json!({"pattern": ">>> $"});
    let ready = job(&world, "wait", prompt.clone()).await;
    assert_eq!(data(&ready)["waited"], "pattern", "{}", ready.joined_text());
    for (text, wanted) in [
        ("import sys; sys.stdout.isatty(), 6 * 7\n", "(True, 42)"),
        ("x = [n * n for n in range(5)]\n", ""),
        ("print(sum(x))\n", "30"),
        ("1 / 0\n", "ZeroDivisionError"),
    ] {
        job(&world, "input", json!({"text": text})).await;
        let answer = job(&world, "wait", prompt.clone()).await;
        assert_eq!(data(&answer)["waited"], "pattern", "{}", answer.joined_text());
        let output = data(&answer)["output"].as_str().unwrap();
        assert!(output.contains(wanted) && output.ends_with("\n>>> "), "{text} {output:?}");
        assert!(!output.contains('\u{1b}'), "{output:?}");
    }
    // What the terminal gives back of what was typed is nothing that the program said.
    let loops = "while not os.path.exists('go'): time.sleep(0.01)";
    let typed = format!("import os, time\n{loops}\n\nprint('rea' 'dy', 'ready'.upper())\n");
    job(&world, "input", json!({"text": typed})).await;
    let echoed = json!({"pattern": "READY|'ready'|sleep", "timeout_ms": 1_000});
    let echoed = job(&world, "wait", echoed).await;
    assert_eq!(data(&echoed)["waited"], "timeout", "{}", echoed.joined_text());
    world.call("bash", json!({"command": "touch go"})).await;
    let wait = json!({"pattern": "READY|'ready'|sleep", "since": 0});
    let ready = job(&world, "wait", wait).await;
    assert_eq!(data(&ready)["line"], "ready READY", "{}", ready.joined_text());
    let begin = "import time; print('be' 'gun'); time.sleep(60)\n";
    job(&world, "input", json!({"text": begin})).await;
    job(&world, "wait", json!({"pattern": "begun"})).await;
    // What a person would press to stop it.
    job(&world, "input", json!({"text": "\u{3}"})).await;
    let stopped = job(&world, "wait", prompt).await;
    let text = stopped.joined_text();
    assert!(text.contains("KeyboardInterrupt"), "{text}");
    job(&world, "input", json!({"text": "exit(7)\n"})).await;
    let end = job(&world, "wait", json!({})).await;
    assert!(end.joined_text().contains("exit code 7"), "{}", end.joined_text());
}

#[tokio::test]
async fn a_web_server_is_waited_for_by_its_port() {
    let world = world();
    let port = free_port();
    let python = machine::python();
    let server = format!("exec {} -u -m http.server {port} --bind 127.0.0.1", python.display());
    begin(&world, &server).await;
    let open = job(&world, "wait", json!({"port": port})).await;
    let text = open.joined_text();
    assert_eq!(data(&open)["waited"], "port", "{text}");
    assert!(text.contains(&format!("[port {port} is open]")), "{text}");
    let fetch = format!(
        "{} -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/b.txt').read())\"",
        python.display()
    );
    let page = world.call("bash", json!({"command": fetch})).await.joined_text();
    assert!(page.contains("b'one\\ntwo\\n'"), "{page}");
    let seen = job(&world, "wait", json!({"pattern": "GET /b.txt"})).await;
    // Looking at the port was no request of its own.
    assert_eq!(data(&seen)["output"].as_str().unwrap().matches("GET").count(), 1);
    let end = job(&world, "stop", json!({})).await;
    let text = end.joined_text();
    assert!(text.contains("has ended after") && text.contains("stopped"), "{text}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it still listens");
    assert_eq!(ends(&world).len(), 1);
}

#[tokio::test]
async fn a_job_that_ignores_the_wish_to_end_is_killed() {
    let world = world();
    let command = "trap '' TERM; echo $$; echo ready; while :; do sleep 1; done";
    let id = begin(&world, command).await;
    let process = process_of(&world, &id).await;
    job(&world, "wait", json!({"pattern": "ready", "since": 0})).await;
    let began = Instant::now();
    let end = job(&world, "stop", json!({"job": id, "since": 0})).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(!lives(process));
    let text = end.joined_text();
    assert!(text.contains("ready\n") && text.contains(": stopped]"), "{text}");
    assert_eq!(ends(&world)[0].1, JobEnd::Stopped);
    let again = job(&world, "stop", json!({})).await.joined_text();
    assert!(again.contains("it had ended before"), "{again}");
}

#[tokio::test]
async fn what_a_job_itself_leaves_in_the_background_ends_with_it() {
    let world = world();
    begin(&world, "sleep 60 & echo begun").await;
    let end = job(&world, "wait", json!({})).await.joined_text();
    assert!(end.contains("sleep 60; a job ends with its command"), "{end}");
}

#[tokio::test]
async fn names_that_are_not_there_list_those_that_are() {
    let world = world();
    begin(&world, "sleep 60").await;
    begin_with(&world, json!({"command": "sleep 61", "description": "The second"})).await;
    let unknown = job(&world, "output", json!({"job": "j7"})).await.joined_text();
    for word in ["no job \"j7\"", "j1 (sleep 60)", "j2 (The second)"] {
        assert!(unknown.contains(word), "{unknown}");
    }
    let several = job(&world, "wait", json!({})).await.joined_text();
    assert!(several.contains("job is missing") && several.contains("j2"), "{several}");
    let far = job(&world, "output", json!({"job": "j1", "since": 99})).await;
    assert_eq!(far.status, Status::Failed);
    assert!(far.joined_text().contains("0 bytes so far"), "{}", far.joined_text());
    begin(&world, "sleep 62").await;
    job(&world, "stop", json!({"job": "j2"})).await;
    let several = job(&world, "stop", json!({})).await.joined_text();
    assert!(several.contains("j1 (sleep 60), j3 (sleep 62)."), "only what runs: {several}");
    job(&world, "stop", json!({"job": "j3"})).await;
    // Only one runs now.
    let one = job(&world, "wait", json!({"timeout_ms": 1})).await.joined_text();
    assert!(one.contains("j1 runs"), "{one}");
}

#[tokio::test]
async fn there_are_only_so_many_at_once() {
    let world = world();
    jobs(&world).limit(JobLimits { running: 2, ..JobLimits::default() });
    for _ in 0..2 {
        begin(&world, "sleep 60").await;
    }
    let more = json!({"command": "touch never", "run_in_background": true});
    let refused = world.call("bash", more.clone()).await;
    assert_eq!(refused.status, Status::Failed);
    let text = refused.joined_text();
    let most = "no more than 2 jobs may run at once, and so many do: j1 (sleep 60), ";
    assert!(text.contains(&format!("{most}j2 (sleep 60)\n")), "{text}");
    assert_eq!(world.read_bytes("never").await.unwrap(), None);
    job(&world, "stop", json!({"job": "j2"})).await;
    // What is about to begin has a place, and is none that runs.
    let place = jobs(&world).begin().unwrap();
    let text = world.call("bash", more.clone()).await.joined_text();
    assert!(text.contains(&format!("{most}1 about to begin\n")), "{text}");
    drop(place);
    assert_eq!(world.call("bash", more).await.status, Status::Done);
    // A command that cannot be started leaves its place to others.
    let bad = json!({"command": "x".repeat(200_000), "run_in_background": true});
    // What is too long to be looked at is asked about.
    world.answer(vec![Reply::pick("allow"); 3]);
    for _ in 0..3 {
        assert_eq!(world.call("bash", bad.clone()).await.status, Status::Failed);
    }
    job(&world, "wait", json!({"job": "j3"})).await;
    begin(&world, "sleep 60").await;
}

#[tokio::test]
async fn a_job_lives_as_long_as_it_may() {
    let world = world();
    jobs(&world).limit(JobLimits { life: Duration::from_millis(300), ..JobLimits::default() });
    for input in [json!({"command": "sleep 60"}), json!({"command": "sleep 61", "timeout_ms": 200})]
    {
        let id = begin_with(&world, input).await;
        let end = job(&world, "wait", json!({"job": id})).await.joined_text();
        assert!(end.contains("its time of 0."), "{end}");
    }
    assert!(ends(&world).iter().all(|(_, end, _)| *end == JobEnd::Stopped));
}

#[tokio::test]
async fn the_end_of_the_session_ends_all_together() {
    let world = world();
    let mut processes = Vec::new();
    for trap in ["trap '' TERM;", "setsid sleep 60 &", "", "trap 'sleep 0.1' TERM;"] {
        let id = begin(&world, &format!("{trap} echo $$; while :; do sleep 1; done")).await;
        processes.push(process_of(&world, &id).await);
    }
    let began = Instant::now();
    let stopped = jobs(&world).end(Duration::from_millis(2_500)).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(stopped.len(), 4);
    for process in processes {
        assert!(!lives(process), "{process} lives on");
    }
    assert_eq!(ends(&world).len(), 4, "{:?}", ends(&world));
    let late = world.call("bash", json!({"command": "true", "run_in_background": true})).await;
    assert!(late.joined_text().contains("the session is ending"), "{}", late.joined_text());
}

#[tokio::test]
async fn a_session_that_is_dropped_leaves_nothing() {
    let world = world();
    let id = begin(&world, "echo $$; sleep 60").await;
    let process = process_of(&world, &id).await;
    drop(world);
    let until = Instant::now() + Duration::from_secs(5);
    while lives(process) {
        assert!(Instant::now() < until, "it lives on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_job_outlives_its_call_and_its_cancellation() {
    let world = world();
    let stop = CancellationToken::new();
    let input = json!({"command": "echo $$; sleep 60", "run_in_background": true});
    world.call_until("bash", input, stop.clone()).await;
    stop.cancel();
    let process = process_of(&world, "j1").await;
    assert!(lives(process) && ends(&world).is_empty());
}

#[tokio::test]
async fn an_end_is_told_once_where_there_are_no_requests_to_tell_it_with() {
    let world = world();
    begin_with(&world, json!({"command": "echo last words; exit 4", "description": "Short"})).await;
    world.recorder.until(|body| matches!(body, Body::JobEnded { .. })).await;
    let next = world.call("bash", json!({"command": "echo next"})).await.joined_text();
    for word in
        ["next\n[The job j1 (Short) of c1 has ended: exit code 4", "| last words", "out://c1"]
    {
        assert!(next.contains(word), "{next}");
    }
    let third = world.call("bash", json!({"command": "echo third"})).await.joined_text();
    assert_eq!(third, "third");
    // Who saw the end is not told of it.
    begin(&world, "exit 5").await;
    let seen = job(&world, "wait", json!({"job": "j2"})).await.joined_text();
    assert_eq!(seen.matches("exit code 5").count(), 1, "{seen}");
    assert_eq!(world.call("bash", json!({"command": "true"})).await.joined_text(), "(no output)");
}

#[tokio::test]
async fn input_is_judged_as_a_command_and_stopping_is_free() {
    let world = world();
    begin(&world, "echo $$; while read -r line; do eval \"$line\"; done").await;
    world.rule(Verdict::Deny, "Bash(rm:*)");
    let denied = job(&world, "input", json!({"text": "cd /; rm -r x\n"})).await;
    assert_eq!(denied.status, Status::Denied, "{}", denied.joined_text());
    world.mode(Mode::Ask);
    assert_eq!(job(&world, "input", json!({"text": "touch made\n"})).await.status, Status::Denied);
    world.mode(Mode::Plan);
    assert_eq!(job(&world, "output", json!({})).await.status, Status::Done);
    assert_eq!(job(&world, "wait", json!({"timeout_ms": 1})).await.status, Status::Done);
    assert_eq!(job(&world, "input", json!({"text": "touch made\n"})).await.status, Status::Denied);
    world.mode(Mode::DontAsk);
    assert_eq!(job(&world, "stop", json!({})).await.status, Status::Done);
    assert_eq!(world.read_bytes("made").await.unwrap(), None);
}

#[tokio::test]
async fn other_names_say_what_is_wanted() {
    let world = world();
    begin(&world, "echo here; sleep 60").await;
    job(&world, "wait", json!({"pattern": "here"})).await;
    let call = async |tool: &str, input: Value| {
        let outcome = world.call(tool, input.clone()).await;
        assert_eq!(outcome.status, Status::Done, "{tool} {input}: {}", outcome.joined_text());
        outcome.joined_text()
    };
    assert!(call("BashOutput", json!({"bash_id": "j1", "since": 0})).await.starts_with("here\n"));
    let look = json!({"task_id": "j1", "block": false, "timeout": 5});
    assert!(call("TaskOutput", look).await.contains("j1 runs"));
    let wait = json!({"task_id": "j1", "block": true, "timeout_ms": 1});
    assert!(call("TaskOutput", wait).await.contains("still waiting"));
    assert!(call("KillShell", json!({"shell_id": "j1"})).await.contains("stopped"));
    assert!(call("TaskStop", json!({"task_id": "j1"})).await.contains("it had ended before"));
}

#[tokio::test]
async fn control_sequences_and_broken_characters_reach_nobody() {
    let world = world();
    let command =
        r"printf 'a\033]0;title\007b\033[2J\n10%%\r20%%\rdone\nbad \xe6\x97\n\342\200\256x\n'";
    begin(&world, command).await;
    let end = job(&world, "wait", json!({})).await;
    assert!(data(&end)["output"].as_str().unwrap().starts_with("ab\ndone\nbad \u{fffd}\n"));
    let told = world.recorder.text();
    for hidden in ["\\u001b", "\\u0007"] {
        assert!(!told.contains(hidden), "{hidden}");
    }
    let detail = serde_json::to_string(&end.detail).unwrap();
    assert!(!detail.contains('\u{202e}'), "{detail}");
}

#[tokio::test]
async fn a_last_line_without_an_end_is_kept_as_it_is() {
    let world = world();
    for (call, (command, said)) in
        [("printf abc", "abc"), ("printf abc; printf de >&2", "abc\nde"), ("echo abc", "abc\n")]
            .into_iter()
            .enumerate()
    {
        let id = begin(&world, command).await;
        let end = job(&world, "wait", json!({"job": id})).await;
        assert_eq!(data(&end)["output"], said.trim_end(), "{command}");
        assert_eq!(data(&end)["next"], said.len(), "{command}");
        assert_eq!(data(&end)["jobs"][0]["bytes"], said.len(), "{command}");
        let call = CallId::nth(2 * call as u64 + 1);
        let (host, path) = world.session.outs.open(&call).unwrap();
        let at = host.fs().locate(&path, Follow::No).await.unwrap();
        let kept = host.fs().read(&at, 0, usize::MAX).await.unwrap();
        assert_eq!(kept, said.as_bytes(), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_job_takes_little_and_tells_nobody() {
    // What is kept takes no memory there: all that grows is what the job itself holds.
    let folder = tempfile::tempdir().unwrap();
    let world = world().keeping_in(folder.path());
    let lines = machine::times(9_000_000);
    let before = peak();
    begin(&world, &format!("seq 1 {lines}; echo the end; sleep 60")).await;
    let seen = job(&world, "wait", json!({"pattern": "^the end$", "timeout_ms": 300_000})).await;
    let text = seen.joined_text();
    assert_eq!(data(&seen)["line"], "the end", "{text}");
    assert!(data(&seen)["missing_bytes"].as_u64().unwrap() > 1_000_000, "{text}");
    assert!(text.contains("bytes before this are only in out://c1"), "{text}");
    assert!(text.chars().count() <= 30_000, "{}", text.len());
    let kept = world.session.outs.used();
    let grown = peak().saturating_sub(before);
    assert!(kept > 60_000_000 && grown < kept, "{grown} bytes with {kept} kept");
    let told = world.recorder.bodies();
    let shown = told.iter().filter(|body| matches!(body, Body::CallOutput { .. })).count();
    assert_eq!((shown, told.len()), (0, 5), "{told:?}");
    let find = json!({"pattern": "^100000$", "path": "out://c1"});
    let middle = once_kept(&world, "grep", find).await;
    assert!(middle.contains("100000"), "{middle}");
}

#[tokio::test]
async fn a_port_of_another_program_is_not_taken_for_that_of_the_job() {
    let world = world();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let id = begin(&world, "sleep 60").await;
    let open = job(&world, "wait", json!({"job": id, "port": port})).await;
    let wanted = format!("[port {port} is open, but not by j1: another program listens there]");
    assert!(open.joined_text().contains(&wanted), "{}", open.joined_text());
    job(&world, "stop", json!({"job": id})).await;
    // An end because of that is told rather than the port.
    let open = job(&world, "wait", json!({"job": id, "port": port})).await;
    assert_eq!(data(&open)["waited"], "end", "{}", open.joined_text());
}

#[tokio::test]
async fn what_is_known_of_a_job_outlives_its_place_in_the_list() {
    let world = world();
    let held = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = held();
    jobs(&world).limit(JobLimits { disk: 64 << 10, ..JobLimits::default() });
    for number in 1..=35 {
        let says = match number {
            2 => "seq 1 100000".to_owned(),
            3 => ":".to_owned(),
            _ => format!("echo {number}"),
        };
        let id = begin(&world, &format!("{says}; exit 3")).await;
        job(&world, "wait", json!({"job": id})).await;
    }
    // Other tests of this process may run meanwhile; one descriptor each would be 32.
    assert!(held() < before + 30, "{before} descriptors, then {}", held());
    let text = job(&world, "output", json!({"job": "j1"})).await.joined_text();
    assert!(text.contains("j1 (echo 1; exit 3) has ended: exit code 3"), "{text}");
    assert!(text.contains("All that it said: out://c1."), "{text}");
    for (id, said) in
        [("j2", "What is kept of what it said: out://c3."), ("j3", "It said nothing.")]
    {
        let text = job(&world, "output", json!({"job": id})).await.joined_text();
        assert!(text.contains("it is listed no more") && text.contains(said), "{id}: {text}");
    }
    let text = job(&world, "output", json!({"job": "j99"})).await.joined_text();
    assert!(text.contains("there is no job \"j99\""), "{text}");
}

#[tokio::test]
async fn what_is_said_of_a_job_is_true_and_in_sentences() {
    let world = world();
    jobs(&world).limit(JobLimits { memory: 4_096, disk: 64 << 10, ..JobLimits::default() });
    let id = begin(&world, "seq 1 100000").await;
    let text = job(&world, "wait", json!({"job": id})).await.joined_text();
    assert!(text.contains("bytes before this is only in out://c1]"), "{text}");
    begin(&world, "sleep 60 & exit 3").await;
    jobs(&world).find(Some("j2")).unwrap().ended().await;
    let text = world.call("bash", json!({"command": "true"})).await.joined_text();
    assert!(text.contains("exit code 3, after 0 s. Still running when"), "{text}");
    assert!(text.contains("so leave & out of it."), "{text}");
}

#[tokio::test]
async fn what_is_not_kept_of_a_job_is_nowhere_called_the_whole() {
    let world = world();
    jobs(&world).limit(JobLimits { disk: 64 << 10, ..JobLimits::default() });
    let id = begin(&world, "seq 1 100000").await;
    let text = job(&world, "wait", json!({"job": id})).await.joined_text();
    let wanted = [
        " bytes left out; not all of it is kept: read or grep out://c1 ...]",
        "[what is kept of the ",
        "bytes of the output are not kept: it is larger than what is kept of one call]",
    ];
    for part in wanted {
        assert!(text.contains(part), "{part}: {text}");
    }
    // So it is while it runs, and where its end is told by itself.
    let id = begin(&world, "seq 1 100000; echo ready; read").await;
    let text = job(&world, "wait", json!({"job": id, "pattern": "ready"})).await.joined_text();
    assert!(text.contains(" bytes left out; not all of it is kept: "), "{text}");
    let small = begin(&world, "while ! [ -e go ]; do sleep 0.02; done; echo small").await;
    // Whichever answer it is that tells an end.
    let mut text = job(&world, "input", json!({"job": id, "eof": true})).await.joined_text();
    text += &world.call("bash", json!({"command": "touch go"})).await.joined_text();
    for id in [&id, &small] {
        jobs(&world).find(Some(id)).unwrap().ended().await;
    }
    text += &world.call("bash", json!({"command": "true"})).await.joined_text();
    assert!(text.contains(" What is kept of what it said: out://c3."), "{text}");
    assert!(text.contains(" All that it said: out://c5."), "{text}");
    assert_eq!(text.matches("All that it said").count(), 1, "{text}");
}

#[tokio::test]
async fn a_job_that_has_no_time_to_end_is_told_as_killed() {
    let world = world();
    let id = begin(&world, "trap '' TERM; echo ready; while :; do sleep 1; done").await;
    job(&world, "wait", json!({"job": id, "pattern": "ready"})).await;
    let stopped = jobs(&world).end(Duration::ZERO).await;
    let end = stopped[0].end().unwrap();
    assert_eq!(
        (end.how, &*end.words),
        (JobEnd::Stopped, "killed: it did not end when it was stopped")
    );
}

#[tokio::test]
async fn a_command_whose_time_is_over_may_go_on_as_a_job() {
    let options = haft_tools::Options { command_promote: true, ..haft_tools::Options::default() };
    let world = World::local(haft_tools::with(&options), [("b.txt", "")]).unwrap();
    let command = "echo one; printf 'par'; while ! [ -e go ]; do sleep 0.02; done; echo t; exit 3";
    let input = json!({"command": command, "timeout_ms": 1_000});
    let outcome = world.call("bash", input.clone()).await;
    let text = outcome.joined_text();
    assert_eq!(outcome.status, Status::Done, "{text}");
    assert!(
        text.starts_with("one\npar\n[it still runs after 1 s and goes on as job j1;"),
        "{text}"
    );
    assert!(!text.contains("folder"), "{text}");
    let listed = job(&world, "list", json!({})).await;
    let took = data(&listed)["jobs"][0]["took"].as_u64().unwrap();
    assert!(took >= 1_000, "since the command began: {took}");
    crate::fits(&world, "bash", &outcome);
    assert_eq!(
        (&data(&outcome)["job_id"], &data(&outcome)["stdout"]),
        (&json!("j1"), &json!("one\npar"))
    );
    world.call("bash", json!({"command": "touch go"})).await;
    let end = job(&world, "wait", json!({"since": 0})).await;
    assert_eq!(data(&end)["output"], "one\npart", "{}", end.joined_text());
    assert!(end.joined_text().contains("exit code 3"), "{}", end.joined_text());
    let kept = world.call("read", json!({"path": "out://c1"})).await.joined_text();
    assert!(kept.contains("one") && kept.contains("part"), "{kept}");

    // Where it ends is where no other command begins.
    let command = "mkdir in; cd in; until [ -e ../went ]; do sleep 0.02; done; touch here";
    let moved = world.call("bash", json!({"command": command, "timeout_ms": 500})).await;
    let told = "[the next command does not start in the folder that this one ends in]";
    assert!(moved.joined_text().contains(told), "{}", moved.joined_text());
    world.call("bash", json!({"command": "touch went"})).await;
    job(&world, "wait", json!({"job": "j2"})).await;
    let next = world.call("bash", json!({"command": "ls in"})).await;
    assert_eq!(next.joined_text(), "here");

    // Where there is no place for it, it is stopped as without the setting.
    jobs(&world).refuse("no more");
    let command = json!({"command": "sleep 60", "timeout_ms": 200});
    let stopped = world.call("bash", command).await;
    assert_eq!(stopped.status, Status::TimedOut, "{}", stopped.joined_text());
}

#[tokio::test]
async fn what_a_promoted_command_showed_is_there_at_once_and_its_progress_goes_on() {
    let options = haft_tools::Options { command_promote: true, ..haft_tools::Options::default() };
    let world = World::local(haft_tools::with(&options), [("b.txt", "")]).unwrap();
    for (begin, shown, to) in [
        ("seq 1 30000 | tr '\\n' '\\r'", "30000", "&1"),
        ("printf '1%%\\r2%%'; seq 1 9 >&2", "1\n2\n3\n4\n5\n6\n7\n8\n9\n2%", "&1"),
        ("printf '1%%\\r2%%' >&2", "2%", "&2"),
    ] {
        let waits = "while ! [ -e on ]; do sleep 0.02; done";
        let command = format!("{begin}; {waits}; rm on; printf '\\r100%%\\n' >{to}");
        let now = world.call("bash", json!({"command": command, "timeout_ms": 500})).await;
        let text = now.joined_text();
        assert!(text.starts_with(&format!("{shown}\n[it still runs")), "{text}");
        let id = &data(&now)["job_id"];
        let seen = job(&world, "output", json!({"job": id})).await;
        assert_eq!(data(&seen)["output"], shown);
        world.call("bash", json!({"command": "touch on"})).await;
        let end = job(&world, "wait", json!({"job": id, "since": 0})).await;
        let last = data(&end)["output"].as_str().unwrap();
        assert!(last.ends_with("100%") && last.matches('%').count() == 1, "{last}");
    }
}

/// Begins a program of this name that has no parent and no session of the command and holds its
/// pipes, and waits until it is there.
fn daemon(name: &str, what: &str) -> String {
    let daemon = format!("exec -a /opt/{name} bash -c \"touch there; {what}\"");
    format!("rm -f there; (setsid bash -c '{daemon}' &); until [ -e there ]; do sleep 0.02; done; ")
}

#[tokio::test]
async fn what_is_named_goes_on_as_a_job_when_its_command_ends() {
    let keep = vec!["builderd".to_owned(), "other".to_owned()];
    let options = haft_tools::Options { command_keep: keep, ..haft_tools::Options::default() };
    let world = World::local(haft_tools::with(&options), [("later", "la\u{1b}[1mter\n")]).unwrap();
    let (dispatcher, _) = on_disk(&world);
    let call = async |name: &str, input: Value| {
        dispatcher.call(name, input, CancellationToken::new()).await.1
    };
    let waits = "while ! [ -e go ]; do sleep 0.02; done; cat later; sleep 67; true";
    let left = daemon("builderd", waits);
    let command = format!("echo up; {left} sleep 63 & mkdir in; cd in; printf open; exit 4");
    let outcome = call("bash", json!({"command": command})).await;
    crate::fits(&world, "bash", &outcome);
    let text = outcome.joined_text();
    assert!(text.starts_with("up\nopen\n[exit code 4]\n[still running"), "{text}");
    assert!(text.contains("stopped: ") && text.contains("sleep 63"), "{text}");
    assert!(text.contains("builderd") && text.contains("go on, as job j1; "), "{text}");
    assert!(text.contains("the next command starts in in]"), "{text}");
    let told = ["exit_code", "stdout", "job_id"].map(|key| &data(&outcome)[key]);
    assert_eq!(told, [&json!(4), &json!("up\nopen"), &json!("j1")], "{text}");
    call("bash", json!({"command": "touch ../go"})).await;
    let wait = json!({"action": "wait", "job": "j1", "pattern": "^later$"});
    let later = call("job", wait).await.joined_text();
    assert!(later.starts_with("later\n[matched: later]"), "{later}");
    let stop = call("job", json!({"action": "stop", "job": "j1"})).await.joined_text();
    assert!(stop.contains("j1 has ended") && stop.ends_with(": stopped]"), "{stop}");
    let read = call("read", json!({"path": "out://c1"})).await.joined_text();
    assert!(read.contains("1\tup\n") && read.contains("openlater"), "{read}");
}

#[tokio::test]
async fn what_goes_on_ends_by_itself_with_its_job_or_where_there_is_no_place() {
    let options = haft_tools::Options {
        command_keep: vec!["builderd".to_owned()],
        command_promote: true,
        ..haft_tools::Options::default()
    };
    let world = World::local(haft_tools::with(&options), [("b.txt", "")]).unwrap();
    let left = daemon("builderd", "while ! [ -e go ]; do sleep 0.02; done");
    let outcome = world.call("bash", json!({"command": left})).await;
    assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    assert_eq!(data(&outcome)["job_id"], "j1", "{}", outcome.joined_text());
    world.call("bash", json!({"command": "touch go"})).await;
    let end = job(&world, "wait", json!({})).await.joined_text();
    assert!(end.contains("j1 has ended after ") && end.contains("s: by itself"), "{end}");
    assert_eq!(ends(&world), [("j1".to_owned(), JobEnd::Exited, None)]);

    // What a job leaves ends with it, also where that was a call before.
    let left = daemon("builderd", "sleep 68; true");
    begin(&world, &left).await;
    let end = job(&world, "wait", json!({"job": "j2"})).await.joined_text();
    assert!(end.contains("exit code 0") && end.contains("and stopped: "), "{end}");
    let slow = format!("{left} until [ -e done ]; do sleep 0.02; done; exit 5");
    let input = json!({"command": slow, "timeout_ms": 1_500});
    assert_eq!(data(&world.call("bash", input).await)["job_id"], "j3");
    world.call("bash", json!({"command": "touch done"})).await;
    let end = job(&world, "wait", json!({"job": "j3"})).await.joined_text();
    assert!(end.contains("exit code 5") && end.contains("and stopped: "), "{end}");
    assert!(end.contains("builderd"), "{end}");

    jobs(&world).refuse("this is the last call");
    let began = Instant::now();
    let outcome = world.call("bash", json!({"command": left})).await;
    let text = outcome.joined_text();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!((outcome.status, &data(&outcome)["job_id"]), (Status::Done, &Value::Null), "{text}");
    assert!(text.contains("and stopped: ") && text.contains("builderd"), "{text}");
    assert!(text.contains("no job can begin: this is the last call"), "{text}");
}
