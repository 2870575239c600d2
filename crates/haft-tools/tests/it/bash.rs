//! bash through the real pipeline, on this machine.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_host::Outs;
use haft_testkit::{
    machine::{self, peak},
    world::World,
};
use haft_tool::{Dispatcher, MemoryBlobs, Session};
use haft_types::{Body, Outcome, Reply, Shape, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::changed::cancelled;

pub(crate) fn world() -> World {
    World::local(haft_tools::builtin(), [("src/a.rs", "fn a() {}\n"), ("b.txt", "one\ntwo\n")])
        .unwrap()
}

pub(crate) async fn run(world: &World, command: &str) -> Outcome {
    let outcome = world.call("bash", json!({"command": command})).await;
    if outcome.data.is_some() {
        crate::fits(world, "bash", &outcome);
    }
    outcome
}

pub(crate) fn data<'a>(outcome: &'a Outcome, key: &str) -> &'a Value {
    outcome.data.as_ref().and_then(|data| data.get(key)).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn output_comes_in_order_with_both_streams_apart() {
    let world = world();
    let go = world.folder().unwrap().join("go");
    machine::make_fifo(&go);
    let command = "echo one; read -r _ < go; echo two >&2; read -r _ < go; echo three";
    // Held open from both sides: neither end waits for the other, nor sees it go.
    let mut held = std::fs::File::options().read(true).write(true).open(go).unwrap();
    // It goes on when what it wrote has come.
    let leads = async {
        for wanted in ["one\n", "two\n"] {
            let came =
                |body: &Body| matches!(body, Body::CallOutput { text, .. } if text == wanted);
            world.recorder.until(came).await;
            held.write_all(b"on\n").unwrap();
        }
    };
    let (outcome, ()) = tokio::join!(run(&world, command), leads);
    assert_eq!(outcome.joined_text(), "one\ntwo\nthree");
    assert_eq!(outcome.status, Status::Done);
    assert_eq!(data(&outcome, "stdout"), "one\nthree\n");
    assert_eq!(data(&outcome, "stderr"), "two\n");
    assert_eq!(data(&outcome, "exit_code"), 0);
    let Some(Shape::Terminal { command, exit, .. }) = outcome.detail.map(|detail| detail.shape)
    else {
        panic!("another shape")
    };
    assert_eq!((command.starts_with("echo one"), exit), (true, Some(0)));
}

#[tokio::test]
async fn exit_codes_are_told_and_answers_are_no_failures() {
    let world = world();
    let cases = [
        ("true", Status::Done, "(no output)"),
        ("exit 2", Status::Failed, "[exit code 2]"),
        ("echo x; false", Status::Failed, "x\n[exit code 1]"),
        ("grep nothing b.txt", Status::Done, "[exit code 1: no match]"),
        ("test -f nowhere", Status::Done, "[exit code 1: false]"),
        ("[ -d nowhere ] && echo there", Status::Done, "[exit code 1: false]"),
        ("command -v nosuchprogram", Status::Done, "[exit code 1: not found]"),
        (
            "timeout 0.01 sleep 60",
            Status::Failed,
            "[exit code 124: its own, or the time of `timeout` was over]",
        ),
        ("cmp -s b.txt src/a.rs", Status::Done, "[exit code 1: the files differ]"),
        ("kill -9 $$", Status::Failed, "[killed by signal 9 (KILL)]"),
    ];
    for (command, status, text) in cases {
        let outcome = run(&world, command).await;
        assert_eq!((outcome.status, &*outcome.joined_text()), (status, text), "{command}");
    }
    let missing = run(&world, "no-such-program-here").await;
    assert!(missing.joined_text().contains("[exit code 127: command not found]"));
    let grep = run(&world, "grep x nowhere.txt").await;
    assert_eq!(grep.status, Status::Failed, "{}", grep.joined_text());
}

#[tokio::test]
async fn the_command_gets_no_arguments_no_input_and_no_report_descriptor() {
    let world = world();
    let outcome = run(&world, "echo \"[$#][$*]\"; cat; read x || echo end; { : >&3; } 2>&1").await;
    let text = outcome.joined_text();
    assert!(text.starts_with("[0][]\nend\n"), "{text}");
    assert!(text.to_lowercase().contains("bad file descriptor"), "{text}");
    let own = run(&world, "env | grep -c HAFT_COMMAND; echo \"[$HAFT_COMMAND]\"").await;
    assert_eq!(data(&own, "stdout"), "0\n[]\n", "{own:?}");
    let syntax = run(&world, "if").await;
    assert_eq!(syntax.status, Status::Failed);
    assert!(syntax.joined_text().contains("yntax error"), "{}", syntax.joined_text());
}

#[tokio::test]
async fn the_folder_is_carried_inside_the_workspace_only() {
    let world = world();
    let first = run(&world, "cd src; exit 3").await;
    let text = first.joined_text();
    assert!(text.contains("[the next command starts in src]"), "{text}");
    assert_eq!(run(&world, "ls").await.joined_text(), "a.rs");
    // Bash's folder is bash's alone.
    let read = world.call("grep", json!({"pattern": "two"})).await;
    assert_eq!(read.joined_text(), "b.txt:2:two");
    let once = world.call("bash", json!({"command": "pwd; cd /", "cwd": "."})).await;
    let alone = "[cwd counts for this call alone: the next command without it starts in src]";
    assert_eq!(once.joined_text(), format!("{}\n{alone}", world.root.text()));
    let still = world.call("bash", json!({"command": "pwd", "cwd": "."})).await;
    assert_eq!(still.joined_text(), world.root.text());
    assert_eq!(run(&world, "ls").await.joined_text(), "a.rs");
    let outside = run(&world, "cd /usr").await.joined_text();
    assert!(outside.contains("/usr is outside the workspace"), "{outside}");
    assert_eq!(run(&world, "pwd").await.joined_text(), world.root.text());
}

#[tokio::test]
async fn a_start_folder_that_is_gone_gives_way_to_the_root() {
    let world = world();
    run(&world, "mkdir deep; cd deep").await;
    let told = run(&world, "rmdir \"$PWD\"").await.joined_text();
    assert!(
        told.contains("[deep is gone: the next command starts in the workspace root]"),
        "{told}"
    );
    assert_eq!(run(&world, "pwd").await.joined_text(), world.root.text());
    // In one and the same command.
    let told = run(&world, "mkdir x; cd x; rmdir ../x").await.joined_text();
    let gone =
        "[the folder in which it ended is gone: the next command starts in the workspace root]";
    assert_eq!(told.trim_end(), gone);
    // By somebody else.
    run(&world, "mkdir deep; cd deep").await;
    std::fs::remove_dir(world.folder().unwrap().join("deep")).unwrap();
    let outcome = run(&world, "pwd").await;
    let text = outcome.joined_text();
    assert!(text.starts_with(&*world.root.text()), "{text}");
    assert!(text.contains("deep is gone; this ran in the workspace root]"), "{text}");
    assert_eq!(run(&world, "pwd").await.joined_text(), world.root.text());
    let asked = world.call("bash", json!({"command": "pwd", "cwd": "deep"})).await;
    assert_eq!(asked.status, Status::Failed);
    assert!(asked.joined_text().contains("there is no folder deep"), "{}", asked.joined_text());
}

#[tokio::test]
async fn output_is_clean_text() {
    let world = world();
    let script = "printf '\\033[31mred\\033[0m\\n10%%\\r55%%\\r100%%\\n'; \
                  printf '\\346'; sleep 0.2; printf '\\227\\245\\n\\377\\n'";
    let text = run(&world, script).await.joined_text();
    assert_eq!(text, "red\n100%\n日\n\u{fffd}");
    // What people saw live is the same.
    let mut live = String::new();
    for body in world.recorder.bodies() {
        if let Body::CallOutput { text, .. } = body {
            live.push_str(&text);
        }
    }
    assert_eq!(live, "red\n100%\n日\n\u{fffd}\n");
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs() {
    let world = world();
    let stop = CancellationToken::new();
    let call = world.call_until("bash", json!({"command": "echo begun; sleep 60"}), stop.clone());
    let watch = async {
        world
            .recorder
            .until(|body| matches!(body, Body::CallOutput { text, .. } if text == "begun\n"))
            .await;
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(call, watch);
    assert_eq!(outcome.status, Status::Cancelled);
    // A shell that sees its child die before it dies itself says so: bash writes "Terminated".
    let text = outcome.joined_text().replacen("Terminated\n", "", 1);
    assert!(text.starts_with("begun\n[cancelled"), "{text}");
    assert_eq!(data(&outcome, "interrupted"), true);
}

#[tokio::test]
async fn long_output_is_cut_and_kept_whole() {
    let world = world();
    let outcome = run(&world, "seq 1 500000").await;
    let text = outcome.joined_text();
    assert!(text.chars().count() <= 30_000, "{}", text.chars().count());
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n500000"), "{text}");
    assert!(text.contains("the whole is kept: read or grep out://c1 ...]"), "{text}");
    assert_eq!(data(&outcome, "output_path"), "out://c1");
    let cut = outcome.detail.and_then(|detail| detail.cut).unwrap();
    assert_eq!((cut.total, cut.rest.as_deref()), (Some(3_388_895), Some("out://c1")));
    let (head, tail) = text.split_once("\n[... ").unwrap();
    let tail = tail.split_once('\n').unwrap().1;
    let end = cut.end.unwrap();
    assert_eq!((cut.from, cut.to, end.shown), (1, head.len() as u64, tail.len() as u64 + 1));
    let shown = (head.lines().count() + tail.lines().count()) as u64;
    assert_eq!((end.lines, end.left_out), (tail.lines().count() as u64, 500_000 - shown));
    let found = world.call("grep", json!({"pattern": "^250000$", "path": "out://c1"})).await;
    assert_eq!(found.joined_text(), "out://c1:250000:250000");
}

#[tokio::test]
async fn what_is_not_kept_is_not_called_the_whole() {
    let world = world();
    let (dispatcher, _) = on_disk_with(&world, 1 << 20);
    let input = json!({"command": "seq 1 500000"});
    let outcome = dispatcher.call("bash", input, CancellationToken::new()).await.1;
    let text = outcome.joined_text();
    assert!(text.contains("not all of it is kept: read or grep out://c1 ...]"), "{text}");
    assert!(!text.contains("the whole"), "{text}");
    let missing = data(&outcome, "missing_bytes").as_u64().unwrap();
    assert!((2_000_000..3_388_895).contains(&missing), "{missing}");
    assert!(text.contains(&format!("[{missing} bytes of the output are not kept: ")), "{text}");
    let detail = outcome.detail.unwrap();
    let Shape::Terminal { note, .. } = &detail.shape else { panic!("{detail:?}") };
    assert_eq!(note.as_deref(), Some(&*format!("{missing} bytes of it are not kept")));
    assert_eq!(detail.cut.unwrap().rest.as_deref(), Some("out://c1"));
    // What is kept has nothing to say about that.
    let kept = run(&world, "seq 1 500000").await;
    assert_eq!(kept.data.unwrap().get("missing_bytes"), None);
}

#[tokio::test]
async fn a_code_is_not_taken_for_a_signal() {
    let world = world();
    let text = run(&world, "sh -c 'exit 129'").await.joined_text();
    assert_eq!(text, "[exit code 129: its own, or killed by signal 1 (HUP)]");
    let text = run(&world, "sh -c 'kill -9 $$'").await.joined_text();
    assert!(text.ends_with("[exit code 137: its own, or killed by signal 9 (KILL)]"), "{text}");
    let killed = run(&world, "kill -9 $$").await;
    assert_eq!(killed.joined_text(), "[killed by signal 9 (KILL)]");
    let data = killed.data.unwrap();
    assert_eq!((data.get("exit_code"), &data["signal"]), (None, &json!(9)));
}

#[tokio::test]
async fn a_command_that_is_too_long_is_told_how_to_run() {
    let world = world();
    // What is too long to be looked at is asked about.
    world.answer(vec![Reply::pick("allow"); 3]);
    let command = format!(": {}", "x".repeat(200_000));
    let outcome = run(&world, &command).await;
    let text = outcome.joined_text();
    assert_eq!(outcome.status, Status::Failed);
    for part in ["200002 bytes", "(usually 131058)", "Write it to a file", "bash FILE"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("cwd"), "{text}");
    // What is said is the bound.
    for (bytes, status) in [(131_058, Status::Done), (131_059, Status::Failed)] {
        let outcome = run(&world, &format!(": {}", "x".repeat(bytes - 2))).await;
        assert_eq!(outcome.status, status, "{bytes}: {}", outcome.joined_text());
    }
}

#[tokio::test]
async fn what_still_runs_is_named_as_it_was_written() {
    let world = world();
    let text = run(&world, "(sleep 64; echo late) & echo now").await.joined_text();
    assert!(text.starts_with("now\n[still running"), "{text}");
    assert!(text.contains("(sleep 64; echo late) & echo now"), "{text}");
    assert!(!text.contains("trap") && !text.contains("--norc"), "{text}");
}

#[tokio::test]
async fn a_pattern_for_its_own_words_does_not_end_a_command() {
    let world = world();
    let command =
        "sleep 7123 & until pkill -f 'sleep 7123'; do :; done; echo ended $?; wait; echo done";
    let outcome = run(&world, command).await;
    assert_eq!(data(&outcome, "stdout"), "ended 0\ndone\n", "{outcome:?}");
}

#[tokio::test]
async fn a_timeout_answers_with_what_there_is_and_stops_everything() {
    let world = world();
    let began = Instant::now();
    let input = json!({"timeout_ms": 400, "command":
        "trap '' TERM; sleep 61 & echo $!; (sleep 62; echo late) & echo $!; echo partial; wait"});
    let outcome = world.call("bash", input).await;
    assert!(began.elapsed() < Duration::from_millis(1_400), "{:?}", began.elapsed());
    assert_eq!(outcome.status, Status::TimedOut);
    let text = outcome.joined_text();
    assert!(text.contains("partial\n[timed out after 0.4 s"), "{text}");
    assert_eq!(data(&outcome, "interrupted"), true);
    let ids: Vec<&str> = text.lines().take(2).collect();
    let alive = format!(
        "for i in $(seq 100); do kill -0 {0} 2>/dev/null || kill -0 {1} 2>/dev/null || exit 0; \
         sleep 0.05; done; exit 1",
        ids[0], ids[1]
    );
    assert_eq!(run(&world, &alive).await.status, Status::Done);
}

#[tokio::test]
async fn bad_times_and_commands_are_named() {
    let world = world();
    for (time, job) in [(0, false), (-5, false), (0, true), (-5, true)] {
        let input = json!({"command": "true", "timeout_ms": time, "run_in_background": job});
        let bad = world.call("bash", input).await;
        assert_eq!(bad.status, Status::Failed);
        let text = bad.joined_text();
        let wanted = format!("timeout_ms is {time}, wanted: a number of at least 1");
        assert!(text.contains(&wanted) && !text.contains("600000"), "{text}");
    }
    let over = world.call("bash", json!({"command": "echo x", "timeout_ms": 900_000})).await;
    let text = over.joined_text();
    assert_eq!(text, "x\n[timeout_ms 900000 was cut to the most there is, 600000]");
    for command in ["", "  \n", "a\0b"] {
        assert_eq!(run(&world, command).await.status, Status::Failed, "{command:?}");
    }
}

#[tokio::test]
async fn cancelling_answers_at_once() {
    let world = world();
    let stop = CancellationToken::new();
    let input = json!({"command": "trap '' TERM; echo here; sleep 60; sleep 60"});
    let call = world.call_until("bash", input, stop.clone());
    let cancel = async {
        world.recorder.until(|body| matches!(body, Body::CallOutput { .. })).await;
        stop.cancel();
        Instant::now()
    };
    let (outcome, cancelled) = tokio::join!(call, cancel);
    assert!(cancelled.elapsed() < Duration::from_millis(200), "{:?}", cancelled.elapsed());
    assert_eq!(outcome.status, Status::Cancelled);
    let text = outcome.joined_text();
    assert!(text.starts_with("here\n[cancelled and stopped; this is partial]"), "{text}");
}

#[tokio::test]
async fn a_cancelled_command_cleans_up_and_what_follows_waits_for_it() {
    let world = world();
    let lock = world.folder().unwrap().join("lock");
    // One that cleans up, and one that writes until it is killed.
    let (cleans, writes) = (
        "touch lock; trap 'sleep 0.2; rm -f lock; exit' TERM; echo $UP; while :; do sleep 0.01; done",
        "trap '' TERM; touch lock; echo $UP; while :; do echo x >> log; done",
    );
    for (command, later, input, wanted) in [
        (cleans, "Bash", json!({"command": "test ! -e lock && echo clean"}), "clean"),
        (cleans, "read", json!({"path": "lock"}), "lock"),
        (
            writes,
            "bash",
            json!({"command": "wc -c < log > a; sleep 0.1; wc -c < log | cmp - a"}),
            "",
        ),
        (writes, "write", json!({"path": "log", "content": "mine\n"}), "log"),
    ] {
        let command = format!("UP={later}; {command}");
        let outcome = cancelled(&world, &command, &format!("{later}\n")).await;
        assert_eq!(outcome.status, Status::Cancelled, "{}", outcome.joined_text());
        assert!(lock.exists(), "{later} has nothing to wait for");
        let after = world.call(later, input).await;
        let status = if later == "read" { Status::Failed } else { Status::Done };
        assert_eq!(after.status, status, "{later}: {}", after.joined_text());
        assert!(after.joined_text().contains(wanted), "{later}: {}", after.joined_text());
        if later == "write" {
            let log = std::fs::read_to_string(world.folder().unwrap().join("log")).unwrap();
            assert_eq!(log, "mine\n");
        }
        drop(std::fs::remove_file(&lock));
    }
    // The end of the session waits, too.
    cancelled(&world, &format!("UP=end; {cleans}"), "end\n").await;
    world.session.close().await;
    assert!(!lock.exists());
}

#[tokio::test]
async fn a_command_finds_no_traps_but_its_own() {
    let moved = "[the next command starts in src]";
    for (command, want) in [
        ("trap -p; trap; cd src", moved.to_owned()),
        ("trap 'echo seen' DEBUG; :", "seen".to_owned()),
        (
            "trap 'echo bye $?; echo err >&2' EXIT; cd src; (exit 3)",
            format!("bye 3\nerr\n[exit code 3]\n{moved}"),
        ),
        ("set -x; bootstrap=1; trap : USR1", "++ bootstrap=1\n++ trap : USR1".to_owned()),
        ("cd src; echo trap.c; exit", format!("trap.c\n{moved}")),
    ] {
        let world = world();
        assert_eq!(run(&world, command).await.joined_text().trim_end(), want, "{command}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_told_is_said() {
    let world = world();
    let note = "[where it ended was not told: the next command starts in the workspace root]";
    for (command, said) in [
        ("trap 'echo bye' EXIT; cd src; exit", true),
        ("cd src; exec true", true),
        ("cd src && kill -9 $$", true),
        ("exec echo abcd", false),
    ] {
        let text = run(&world, command).await.joined_text();
        assert_eq!(text.contains(note), said, "{command}: {text}");
    }
    let input = json!({"command": "cd src; echo in; sleep 60", "timeout_ms": 300});
    let outcome = world.call("bash", input).await;
    assert!(outcome.joined_text().contains(note), "{}", outcome.joined_text());
    let outcome = cancelled(&world, "cd src; echo here; sleep 60", "here\n").await;
    assert!(outcome.joined_text().contains(note), "{}", outcome.joined_text());
    run(&world, "cd src").await;
    let text = run(&world, "cd ..; exec true").await.joined_text();
    assert!(text.contains(&note.replace("the workspace root", "src")), "{text}");
}

#[tokio::test]
async fn what_a_command_leaves_running_is_stopped_and_named() {
    let world = world();
    let began = Instant::now();
    let outcome = run(&world, "sleep 63 & echo done").await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let text = outcome.joined_text();
    assert!(text.starts_with("done\n[still running when the command ended"), "{text}");
    assert!(text.contains("sleep 63"), "{text}");
    assert_eq!(outcome.status, Status::Done);
}

/// A dispatcher whose kept outputs are on the disk, as in the program itself.
pub(crate) fn on_disk(world: &World) -> (Arc<Dispatcher>, Arc<Outs>) {
    on_disk_with(world, 1 << 32)
}

/// The same with at most so many bytes.
fn on_disk_with(world: &World, most: u64) -> (Arc<Dispatcher>, Arc<Outs>) {
    let outs = Arc::new(Outs::in_folder(world.folder().unwrap().join("../outs"), most));
    let judge = (*world.session.permissions()).clone();
    let blobs = Arc::new(MemoryBlobs::default());
    let session = Session::new("disk", world.recorder.clone(), blobs, outs.clone(), judge);
    let dispatcher = Dispatcher { session: Arc::new(session), ..(*world.dispatcher).clone() };
    (Arc::new(dispatcher), outs)
}

#[tokio::test]
async fn endless_output_takes_no_memory() {
    let world = world();
    let (dispatcher, outs) = on_disk(&world);
    let call = async |input: Value| dispatcher.call("bash", input, CancellationToken::new()).await;
    let seen = call(json!({"command": "seq 500000; ls $HAFT_OUT"})).await.1;
    assert_eq!(seen.status, Status::Done, "{}", seen.joined_text());
    let before = peak();
    // It ends by how much came and not by a time: a busy disk holds the writer up.
    let stop = CancellationToken::new();
    let enough = async {
        while outs.used() < 64 << 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let endless = dispatcher.call("bash", json!({"command": "yes"}), stop.clone());
    let ((id, outcome), ()) = tokio::join!(endless, enough);
    assert_eq!(outcome.status, Status::Cancelled, "{}", outcome.joined_text());
    // An answer to a cancel may come before what is kept is counted.
    let written = outs.used();
    assert!(outs.open(&id).is_some() && written >= 64 << 20, "{written}");
    let grown = peak() - before;
    assert!(grown < 32 << 20, "{grown} bytes more for {written} bytes of output");
    let shown: usize = world
        .recorder
        .bodies()
        .iter()
        .map(|body| if let Body::CallOutput { text, .. } = body { text.len() } else { 0 })
        .sum();
    assert!((1..4 << 20).contains(&shown), "{shown} bytes were shown live");
    println!("{written} bytes, {grown} bytes more memory, {shown} bytes shown live");
}

#[tokio::test]
async fn haft_keys_are_not_given_to_commands() {
    let world = world();
    let names = "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN OPENAI_API_KEY";
    let outcome = run(&world, &format!("for n in {names}; do printenv $n; done; echo end")).await;
    assert_eq!(outcome.joined_text(), "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_given_where_it_is_asked_for() {
    let world = world();
    let command = "test -t 0 && test -t 1 && test -t 2 && stty size && printf '\\033[1mbold\\033[0m\\n' >&2; cat";
    let outcome = world.call("bash", json!({"command": command, "pty": true})).await;
    assert_eq!(data(&outcome, "stdout"), "40 120\nbold\n", "{outcome:?}");
    assert_eq!((data(&outcome, "stderr"), data(&outcome, "exit_code")), (&json!(""), &json!(0)));
    let outcome = world.call("bash", json!({"command": "test -t 1", "pty": false})).await;
    assert_eq!(data(&outcome, "exit_code"), 1);
}

#[tokio::test]
async fn without_a_shell_there_is_no_bash() {
    let world = World::memory(haft_tools::builtin(), [("a", "b")]).unwrap();
    let outcome = run(&world, "true").await;
    assert_eq!(outcome.status, Status::Failed);
    assert!(outcome.joined_text().contains("no tool named \"bash\""), "{}", outcome.joined_text());
}

#[tokio::test]
async fn errors_show_the_command_and_its_lines_alone() {
    let world = world();
    let text = async |command: &str| run(&world, command).await.joined_text();
    let said = text("nosuchcmd").await;
    assert!(said.contains("line 1: nosuchcmd") && said.contains("command not found"), "{said}");
    let said = text("true\ntrue\nnosuchcmd").await;
    assert!(said.contains("line 3: nosuchcmd"), "{said}");
    let said = text("if then").await;
    assert!(said.contains("line 1:") && !said.contains("shift"), "{said}");
    assert_eq!(text("echo $# \"$*\"").await.trim(), "0");
    let said = text("set -u; echo $X").await;
    assert!(said.contains("X: unbound variable"), "{said}");
    assert!(!said.contains("command not found"), "{said}");
}

#[tokio::test]
async fn the_end_of_errors_is_seen_however_much_stands_before_it() {
    let world = world();
    for _ in 0..10 {
        let command = "seq 100000; echo 'error: the build failed' >&2; exit 1";
        let text = world.call("bash", json!({ "command": command })).await.joined_text();
        assert_eq!(text.matches("error: the build failed").count(), 1, "{text}");
    }
    let command = "seq 100000 >&2; echo 'the last' >&2; exit 1";
    let text = world.call("bash", json!({ "command": command })).await.joined_text();
    assert_eq!(text.matches("the last").count(), 1, "{text}");
}

#[tokio::test]
async fn a_command_that_moves_nowhere_takes_back_no_move_of_another() {
    let world = world();
    let folder = world.folder().unwrap();
    let wait = json!({"command": "touch began; until [ -e go ]; do sleep 0.02; done"});
    let waits = world.call("bash", wait);
    let moves = async {
        while !folder.join("began").exists() {
            tokio::task::yield_now().await;
        }
        world.call("bash", json!({"command": "mkdir sub; cd sub"})).await;
        std::fs::write(folder.join("go"), "").unwrap();
    };
    let (waited, ()) = tokio::join!(waits, moves);
    assert_eq!(waited.joined_text().matches("next command").count(), 0, "{waited:?}");
    let at = world.call("bash", json!({"command": "pwd"})).await.joined_text();
    assert!(at.ends_with("/sub"), "{at}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_with_its_call_is_told_with_the_way_to_keep_it() {
    let world = world();
    let told = "[what this sets ends with this call: give session to keep it]";
    let text = async |input| world.call("bash", input).await.joined_text();
    for command in ["export A=1", "alias x=y", ". ./set.sh", "cd src && A=1"] {
        std::fs::write(world.folder().unwrap().join("set.sh"), "B=2\n").unwrap();
        let said = text(json!({ "command": command })).await;
        assert_eq!(said.lines().last(), Some(told), "{command}: {said}");
        text(json!({"command": "cd .."})).await;
    }
    let session = text(json!({"command": "export A=1", "session": "s"})).await;
    assert_eq!(session, "(no output)");
    for command in ["export A=1 && echo $A", "export A=1; false", "cd src"] {
        let said = text(json!({ "command": command })).await;
        assert!(!said.contains(told), "{command}: {said}");
    }
}
