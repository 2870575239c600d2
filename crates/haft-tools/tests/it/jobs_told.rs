//! What is said of the input, the output and the end of jobs where these are out of the ordinary.

use std::time::{Duration, Instant};

use haft_testkit::world::World;
use haft_tool::{JobLimits, Jobs};
use haft_tools::Options;
use haft_types::{CallId, Follow, Reply, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bash::on_disk;
use crate::jobs::{begin, data, job, world};

/// How long a busy machine may let a job wait.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn input_that_nobody_reads_is_no_wait_without_end() {
    let world = world();
    begin(&world, "sleep 60").await;
    let text = "x".repeat(1 << 20);
    // What is too long to be looked at is asked about.
    world.answer(vec![Reply::pick("allow"); 3]);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(job(&world, "input", json!({"text": text})).await);
    }
    assert_eq!(outcomes[0].status, Status::Done, "{}", outcomes[0].joined_text());
    let told = outcomes[0].joined_text();
    assert!(
        told.contains("; it has not read 1048576 of them so far, which wait for it]"),
        "{told}"
    );
    let told = outcomes[2].joined_text();
    assert!(told.contains("it reads nothing of what was sent before"), "{told}");
}

#[tokio::test]
async fn large_input_is_told_as_far_as_it_was_read() {
    let world = world();
    begin(&world, "head -c 1000000 | wc -c; until [ -e go ]; do sleep 0.02; done; wc -c").await;
    let text = "x".repeat(3_000_000);
    world.answer(vec![Reply::pick("allow"); 2]);
    let began = Instant::now();
    let told = job(&world, "input", json!({"text": text})).await.joined_text();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // head may have read a little more than it wanted.
    let unread = told.split_once("has not read ").and_then(|(_, rest)| rest.split_once(" of them"));
    let unread: usize = unread.unwrap_or_else(|| panic!("{told}")).0.parse().unwrap();
    assert!((1_900_000..=2_000_000).contains(&unread), "{told}");
    world.call("bash", json!({"command": "touch go"})).await;
    let all = "x".repeat(100_000);
    let told = job(&world, "input", json!({"text": all, "eof": true})).await.joined_text();
    assert!(told.contains("[sent 100000 bytes, no newline at their end]"), "{told}");
    let end = job(&world, "wait", json!({})).await;
    let said = data(&end)["output"].as_str().unwrap();
    assert_eq!(said, format!("1000000\n{}", unread + 100_000), "{}", end.joined_text());
}

#[tokio::test]
async fn a_job_that_a_signal_ended_says_which() {
    let world = world();
    for (command, exit, signal) in
        [("kill -9 $$", json!(null), json!(9)), ("exit 3", json!(3), json!(null))]
    {
        let id = begin(&world, command).await;
        let end = job(&world, "wait", json!({"job": id})).await;
        let one = &data(&end)["jobs"][0];
        assert_eq!((&one["exit_code"], &one["signal"]), (&exit, &signal), "{command}");
    }
}

#[tokio::test]
async fn output_of_a_job_that_has_no_text_is_told_as_the_bytes_that_came() {
    let world = world();
    let waits = "until [ -e go ]; do sleep 0.02; done";
    let id = begin(&world, &format!("echo text; {waits}; head -c 300000 /dev/zero")).await;
    job(&world, "wait", json!({"job": id, "pattern": "text"})).await;
    let none = job(&world, "output", json!({"job": id})).await.joined_text();
    assert!(none.starts_with("[no new output]"), "{none}");
    world.call("bash", json!({"command": "touch go"})).await;
    let end = job(&world, "wait", json!({"job": id})).await;
    let text = end.joined_text();
    assert!(text.starts_with("[300000 bytes, none of them text: out://c1]"), "{text}");
    assert_eq!(data(&end)["jobs"][0]["bytes"], 300_005);
}

#[tokio::test]
async fn an_address_without_output_says_that_there_is_none() {
    let world = world();
    let id = begin(&world, "until [ -e go ]; do sleep 0.02; done").await;
    for (tool, input) in [
        ("read", json!({"path": "out://c1"})),
        ("grep", json!({"path": "out://c1", "pattern": "x"})),
    ] {
        let text = world.call(tool, input).await.joined_text();
        assert!(text.contains("out://c1 has no output so far: the job j1 ("), "{tool}: {text}");
        assert!(!text.contains("again"), "{tool}: {text}");
    }
    world.call("bash", json!({"command": "touch go"})).await;
    job(&world, "wait", json!({"job": id})).await;
    let text = world.call("read", json!({"path": "out://c1"})).await.joined_text();
    assert!(text.contains("out://c1 has no output: the job j1 ("), "{text}");
    assert!(text.contains("It ended so: exit code 0."), "{text}");
    let text = world.call("read", json!({"path": "out://c77"})).await.joined_text();
    assert!(text.contains("nothing is kept under"), "{text}");
}

#[tokio::test]
async fn small_words_about_jobs_name_what_is_meant() {
    let world = world();
    begin(&world, "printf 'API_KEY=abcdef'; cat").await;
    // What may be the begin of a secret is no output without text.
    let held = loop {
        let look = json!({"job": "1", "timeout_ms": 50});
        let held = job(&world, "wait", look).await.joined_text();
        if !held.starts_with("[no new output]") {
            break held;
        }
    };
    assert!(!held.contains("none of them text"), "{held}");
    let ended = job(&world, "input", json!({"job": "1", "eof": true})).await;
    assert_eq!(ended.status, Status::Done, "{}", ended.joined_text());
    let again = job(&world, "input", json!({"job": 1, "text": "x\n"})).await.joined_text();
    assert!(again.contains("was ended before, by eof") || again.contains("has ended"), "{again}");
    begin(&world, "exec <&-; sleep 60").await;
    job(&world, "input", json!({"job": "j2", "eof": true})).await;
    let again = job(&world, "input", json!({"job": "2", "text": "x\n"})).await.joined_text();
    assert!(again.contains("j2 takes no input: its input was ended before, by eof"), "{again}");
}

#[tokio::test]
async fn what_a_job_changes_while_it_is_told_something_is_called_its_own() {
    let world = crate::changed::world();
    begin(&world, "n=0; while :; do n=$((n + 1)); echo $n > made; done").await;
    let by = ["created", "changed"].map(|did| format!("[meanwhile by j1: {did}: made]"));
    // The one look may meet the very state of the other, what it made before the first of them is told as
    // of the time before, and a busy machine may let it wait.
    let until = Instant::now() + PATIENCE;
    loop {
        let told = job(&world, "input", json!({"text": "x\n"})).await.joined_text();
        if by.iter().any(|by| told.contains(by)) {
            return;
        }
        assert!(!told.contains("made") || told.contains("before c"), "{told}");
        assert!(Instant::now() < until, "{told}");
    }
}

#[tokio::test]
async fn what_a_call_showed_is_no_output_of_what_goes_on_of_it() {
    let options = Options { command_keep: vec!["sleep".to_owned()], ..Options::default() };
    let world = World::local(haft_tools::with(&options), [("b.txt", "")]).unwrap();
    let command = json!({"command": "sleep 200 & echo kept; echo err >&2"});
    let begun = world.call("bash", command).await;
    assert_eq!(data(&begun)["job_id"], "j1", "{}", begun.joined_text());
    for action in ["output", "stop", "output"] {
        let told = job(&world, action, json!({"job": "j1"})).await;
        let text = told.joined_text();
        assert!(text.starts_with("[no new output]"), "{action}: {text}");
        assert_eq!(data(&told)["jobs"][0]["bytes"], 0, "{action}: {text}");
    }
}

#[tokio::test]
async fn what_goes_on_of_a_call_keeps_no_more_on_disk_than_other_jobs() {
    let keep = vec!["sleep".to_owned()];
    let options = Options { command_promote: true, command_keep: keep, ..Options::default() };
    let world = World::local(haft_tools::with(&options), [("b.txt", "")]).unwrap();
    let disk = 1 << 16;
    world.session.map.get::<Jobs>().limit(JobLimits { disk, ..JobLimits::default() });
    let prints = "yes line | head -c 1000000";
    for (command, lost) in [
        (format!("{prints}; until [ -e go ]; do sleep 0.02; done; {prints}"), 2_000_000),
        (format!("sleep 200 & {prints}"), 1_000_000),
    ] {
        let begun = world.call("bash", json!({"command": command, "timeout_ms": 1_000})).await;
        let id = &data(&begun)["job_id"];
        assert!(id.is_string(), "{}", begun.joined_text());
        world.call("bash", json!({"command": "touch go"})).await;
        let action = if lost == 2_000_000 { "wait" } else { "stop" };
        let end = job(&world, action, json!({"job": id})).await.joined_text();
        let told = format!("[{} bytes of the output are not kept: ", lost - disk);
        assert!(end.contains(&told), "{end}");
    }
}

#[tokio::test]
async fn a_list_says_why_each_job_ended() {
    let world = world();
    for (command, timeout, told) in [
        ("kill -9 $$", 60_000, "j1 killed by signal 9 (KILL), 0 s, "),
        ("sleep 60", 200, "j2 stopped: its time of 0.2 s was over, 0 s, "),
        ("exit 3", 60_000, "j3 exited, exit code 3, 0 s, "),
    ] {
        let input = json!({"command": command, "run_in_background": true, "timeout_ms": timeout});
        let begun = world.call("bash", input).await;
        job(&world, "wait", json!({"job": data(&begun)["job_id"]})).await;
        let list = job(&world, "list", json!({})).await.joined_text();
        assert!(list.lines().any(|line| line.starts_with(told)), "{list}");
    }
}

#[tokio::test]
async fn a_program_that_waits_for_keys_is_not_given_more_time() {
    let world = world();
    for (command, name) in [
        ("vim() { sleep 60; }; EDITOR=x vim q.txt", Some("vim")),
        ("less() { sleep 60; }; echo a | less", Some("less")),
        ("echo vim; sleep 60", None),
        ("cat << END; sleep 60\nvim q.txt\nless\nEND", None),
    ] {
        let told = world.call("bash", json!({"command": command, "timeout_ms": 300})).await;
        assert_eq!(told.status, Status::TimedOut, "{command}");
        let text = told.joined_text();
        assert_eq!(text.contains("give a larger timeout_ms"), name.is_none(), "{text}");
        if let Some(name) = name {
            let way =
                format!("; {name} waits for keys: use edit, or pty: true with run_in_background");
            assert!(text.contains(&way), "{text}");
        }
    }
}

#[tokio::test]
async fn the_file_of_a_job_has_what_it_said_byte_for_byte() {
    let world = world();
    let (dispatcher, outs) = on_disk(&world);
    let call = async |name: &str, input: Value| {
        dispatcher.call(name, input, CancellationToken::new()).await.1
    };
    let command = r"printf '10%%\r20%%\r\033[1mdone\033[0m\nbad \xe6\x97\n\033[2Kopen'";
    let input = json!({"command": command, "run_in_background": true});
    call("bash", input).await;
    let end = call("job", json!({"action": "wait"})).await;
    assert!(data(&end)["output"].as_str().unwrap().starts_with("done\nbad \u{fffd}\nopen"));
    let (host, path) = outs.open(&CallId::nth(1)).unwrap();
    let at = host.fs().locate(&path, Follow::No).await.unwrap();
    let kept = host.fs().read(&at, 0, usize::MAX).await.unwrap();
    assert_eq!(kept, b"10%\r20%\r\x1b[1mdone\x1b[0m\nbad \xe6\x97\n\x1b[2Kopen"[..]);
    let read = call("read", json!({"path": "out://c1"})).await.joined_text();
    assert!(read.contains("1\tdone\n     2\tbad \u{fffd}\n     3\topen"), "{read:?}");
}
