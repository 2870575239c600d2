//! bash in named sessions: one shell that lives on between calls, whatever a command does to it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use haft_policy::Mode;
use haft_testkit::world::World;
use haft_tools::Shells;
use haft_types::{Body, Outcome, Reply, Shape, Status};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bash::{data, world};

async fn run(world: &World, command: &str) -> Outcome {
    run_in(world, "s", command).await
}

async fn run_in(world: &World, session: &str, command: &str) -> Outcome {
    let outcome = world.call("bash", json!({"command": command, "session": session})).await;
    if outcome.data.is_some() {
        crate::fits(world, "bash", &outcome);
    }
    outcome
}

/// Waits for what happens beside the calls.
fn until(within: Duration, happened: impl Fn() -> bool) -> bool {
    let end = Instant::now() + within;
    while !happened() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn out(outcome: &Outcome) -> &str {
    data(outcome, "stdout").as_str().unwrap_or_default()
}

fn err(outcome: &Outcome) -> &str {
    data(outcome, "stderr").as_str().unwrap_or_default()
}

/// Sets the shell up that a command is to break.
const SETUP: &str = "v=kept; f() { echo fun; }; cd src";
/// A call as any other.
const PLAIN: &str = "echo out $v\necho err >&2; f; nosuchcommand\n(exit 3)";

/// What became of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    /// It is the same.
    Same,
    /// It is a new one, which was said with the call that ended it, and with the next.
    New,
}

/// The call after one that may have broken something.
fn is_plain(outcome: &Outcome, shell: Shell) {
    let text = outcome.joined_text();
    let missing = |line| format!("bash: line {line}: nosuchcommand: command not found\n");
    match shell {
        Shell::Same => {
            assert_eq!(out(outcome), "out kept\nfun\n", "{text}");
            assert_eq!(err(outcome), format!("err\n{}", missing(2)), "{text}");
        }
        Shell::New => {
            assert_eq!(out(outcome), "out\n", "{text}");
            assert!(err(outcome).ends_with(&missing(2)), "{text}");
            assert!(text.contains("[session s is a new shell, for "), "{text}");
        }
    }
    assert_eq!(data(outcome, "exit_code"), 3, "{text}");
}

/// Runs a command in a shell that was set up, then a plain one, and says what came of the first.
async fn after(command: &str, shell: Shell) -> Outcome {
    let world = world();
    let setup = run(&world, SETUP).await;
    assert_eq!(setup.joined_text(), "[the next command of session s starts in src]", "{command}");
    let broken = run(&world, command).await;
    let told = broken.joined_text().contains("[the shell of session s ended with this; ");
    assert_eq!(told, shell == Shell::New, "{command}: {}", broken.joined_text());
    is_plain(&run(&world, PLAIN).await, shell);
    let folder = run(&world, "\\builtin pwd").await;
    assert_eq!(out(&folder), format!("{}/src\n", world.root.text()), "{command}");
    broken
}

#[tokio::test]
async fn a_part_of_a_command_in_the_background_is_named_by_its_command() {
    let world = world();
    let mut named = Vec::new();
    for command in ["(while :; do sleep 0.05; done) & echo up", "true"] {
        let input = json!({"command": command, "session": "s"});
        let text = world.call("bash", input).await.joined_text();
        let (_, rest) = text.split_once("in the background of session s: ").unwrap();
        named.push(rest.split_once("; what it prints").unwrap().0.to_owned());
    }
    assert!(named[0].contains(" a part of: (while :; do sleep 0.05; done) & echo up"), "{named:?}");
    assert!(named[1].contains(" a part of: (while :;"), "{named:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_functions_folder_and_background_live_on() {
    let world = world();
    let first = run(&world, "v=1; f() { echo \"f $v $1\"; }; cd src; sleep 300 & echo $!").await;
    assert_eq!(first.status, Status::Done);
    let id = out(&first).trim().to_owned();
    let text = first.joined_text();
    assert!(text.contains("[the next command of session s starts in src]"), "{text}");
    assert!(text.contains(&format!("in the background of session s: {id} ")), "{text}");
    let second = run(&world, "f x; v=2; pwd -P; kill -0 $! && echo lives; export E=3").await;
    assert_eq!(out(&second), format!("f 1 x\n{}/src\nlives\n", world.root.text()));
    let third = run(&world, "env | grep ^E=; f y; kill %1; wait $!; echo $?").await;
    assert_eq!(out(&third), "E=3\nf 2 y\n143\n", "{third:?}");
    let text = run(&world, "true").await.joined_text();
    assert_eq!(text, "(no output)");
    // A plain call has none of it, and its folder is its own.
    let plain = world.call("bash", json!({"command": "echo [$v]; pwd"})).await;
    assert_eq!(out(&plain), format!("[]\n{}\n", world.root.text()));
    let Some(Shape::Terminal { command, exit, .. }) = third.detail.map(|detail| detail.shape)
    else {
        panic!("another shape")
    };
    assert_eq!((command.starts_with("env"), exit), (true, Some(0)));
}

/// What commands do to their shell, and what becomes of it.
const BREAKERS: &[(&str, Shell)] = &[
    ("exit 3", Shell::New),
    ("exec true", Shell::New),
    ("exec bash -c 'echo replaced; exit 4'", Shell::New),
    ("kill -9 $$", Shell::New),
    ("kill -TERM $$", Shell::New),
    ("trap 'echo bye' EXIT; exit 2", Shell::New),
    ("if", Shell::Same),
    ("echo 'never closed", Shell::Same),
    ("set -e", Shell::Same),
    ("set -e; false; echo no", Shell::New),
    ("set -u; echo $nothing", Shell::New),
    ("set -u", Shell::Same),
    ("set -x; true", Shell::Same),
    ("set -v; true", Shell::Same),
    ("set -f", Shell::Same),
    ("set -C -o pipefail -k -t -m +h +B", Shell::Same),
    ("set -r", Shell::Same),
    ("set -o posix", Shell::Same),
    ("set -o posix; if", Shell::Same),
    ("export POSIXLY_CORRECT=1", Shell::Same),
    ("set -o history; history", Shell::Same),
    ("set -- a b c", Shell::Same),
    ("shopt -s expand_aliases; alias builtin=false eval=false printf=false echo=echo", Shell::Same),
    ("IFS=0123456789", Shell::Same),
    ("IFS=", Shell::Same),
    ("trap 'echo bye' EXIT", Shell::Same),
    ("trap 'echo trapped' ERR; false", Shell::Same),
    ("trap 'echo trapped' DEBUG", Shell::Same),
    ("trap 'exit 5' DEBUG", Shell::New),
    ("trap 'echo trapped' RETURN INT TERM CHLD; kill -INT $$", Shell::Same),
    ("trap '' TERM HUP INT", Shell::Same),
    (
        "eval() { echo fake; }; read() { :; }; trap() { :; }; pwd() { :; }; set() { :; }",
        Shell::Same,
    ),
    ("printf() { echo fake; }; command() { echo fake; }; unset() { :; }", Shell::Same),
    ("exec >file 2>&1; echo hidden", Shell::Same),
    ("exec <&-", Shell::Same),
    ("exec >&- 2>&-", Shell::Same),
    ("exec 1>/dev/full; echo x", Shell::Same),
    ("exec 3>&- 10>&- 11>&- 12>&- 13>&- 60>&- 61>&- 62>&- 63>&- 64>&-", Shell::Same),
    ("exec 3>/dev/null 10>f 11</dev/null 12>f 13>&1 60>f 61<f 62>&1 63>f 64>f", Shell::Same),
    ("for fd in {3..250}; do eval \"exec $fd>&-\"; done", Shell::New),
    ("exec 0</etc/passwd", Shell::Same),
    ("readonly PWD IFS PATH SHELLOPTS", Shell::Same),
    ("readonly LINENO", Shell::Same),
    ("ulimit -n 64", Shell::Same),
    ("ulimit -n 4", Shell::New),
    ("unset PWD OLDPWD IFS LINENO BASH HOME", Shell::Same),
    ("cat; read x; echo [$x]", Shell::Same),
    ("cat <<E\nhere $v\nE", Shell::Same),
    ("cat <<E\nnever ended", Shell::Same),
    ("head -c 300000 /dev/urandom", Shell::Same),
    ("printf '\\0B\\0E\\0\\377'", Shell::Same),
    ("break; continue 3; while :; do break 9; done", Shell::Same),
    ("return 7", Shell::Same),
    ("shift 3; local x=1; wait; logout; suspend", Shell::Same),
    ("LC_ALL=C; TMOUT=1; PS4='$(echo x)'; BASH_XTRACEFD=1; set -x", Shell::Same),
    ("IFS=0123456789; BASH_XTRACEFD='x 2'; set -xu", Shell::Same),
    ("(sleep 0.01; exit 1) & disown", Shell::Same),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_command_does_to_its_shell_reaches_the_next_call() {
    // Several at once: each waits for processes most of its time.
    for cases in BREAKERS.chunks(6) {
        let all = cases.iter().map(|(command, shell)| after(command, *shell));
        futures::future::join_all(all).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_and_coprocesses_of_a_command_live_on() {
    let world = world();
    let numbers = [3, 9, 10, 11, 12, 13, 14, 20, 60, 61, 62, 63, 64, 65, 99, 200];
    let opens = numbers.map(|at| format!("exec {at}>f{at}; ")).concat();
    let says = numbers.map(|at| format!("echo {at} >&{at}; ")).concat();
    let same = run(&world, &format!("{opens}{says}echo out; echo err >&2")).await;
    assert_eq!((out(&same), err(&same)), ("out\n", "err\n"), "{same:?}");
    let next = run(&world, &format!("{says}echo out; echo err >&2")).await;
    assert_eq!((out(&next), err(&next)), ("out\n", "err\n"), "{next:?}");
    for at in numbers {
        let written = std::fs::read_to_string(world.folder().unwrap().join(format!("f{at}")));
        assert_eq!(written.unwrap(), format!("{at}\n{at}\n"), "{at}");
    }
    // One that is closed again is closed.
    run(&world, "exec 12>&- 62>&-").await;
    let closed =
        run(&world, "for at in 9 12 62; do [ -e /proc/$$/fd/$at ] || echo $at; done").await;
    assert_eq!(out(&closed), "12\n62\n", "{closed:?}");

    run_in(&world, "co", "coproc cat").await;
    for word in ["one", "two"] {
        let command =
            format!("echo {word} >&${{COPROC[1]}}; read -t 5 -u ${{COPROC[0]}} got; echo $got");
        let echoed = run_in(&world, "co", &command).await;
        assert_eq!(out(&echoed), format!("{word}\n"), "{echoed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn aliases_and_the_last_exit_code_live_on() {
    let world = world();
    run(&world, "alias hi='echo hello' ll='ls -a'").await;
    assert_eq!(out(&run(&world, "hi you; ll b.txt").await), "hello you\nb.txt\n");
    for (command, code) in [("(exit 37)", 37), ("false", 1), ("true", 0), ("nosuchcommand", 127)] {
        run(&world, command).await;
        let next = run(&world, "echo $?; (exit 5)").await;
        assert_eq!(out(&next), format!("{code}\n"), "{command}: {next:?}");
        assert_eq!((out(&run(&world, "echo $?").await), err(&next)), ("5\n", ""), "{command}");
    }
    run(&world, "set -e; trap 'echo trapped' ERR EXIT; exit 3").await;
    assert_eq!(out(&run(&world, "echo $?").await), "0\n", "that of another shell");
}

#[tokio::test(flavor = "multi_thread")]
async fn traps_that_are_taken_back_are_named_and_that_of_the_end_stays() {
    let world = world();
    let set =
        "trap 'echo \"it'\\''s\ntrap -- 1 INT\"' USR1 ERR; trap '' BUS; trap 'echo bye > bye' EXIT";
    let told = run(&world, set).await.joined_text();
    assert_eq!(told, "[traps last for one call, but that of EXIT: BUS, USR1, ERR]");
    let ends = run(&world, "set -u; trap : HUP").await.joined_text();
    let options = "[options of set last for one call: nounset]";
    assert_eq!(ends, format!("{options}\n[traps last for one call, but that of EXIT: HUP]"));
    assert_eq!(run(&world, "true").await.joined_text(), "(no output)");
    let killed = run(&world, "echo on; kill -USR1 $$").await.joined_text();
    assert!(killed.starts_with("on\n[killed by signal 10 (USR1)]\n[the shell of"), "{killed}");
    let world = self::world();
    run(&world, "trap 'echo bye > bye' EXIT").await;
    let ended = run(&world, "exit 3").await;
    assert!(world.folder().unwrap().join("bye").exists(), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_of_a_command_show_nothing_of_what_ends_it() {
    let world = world();
    run(&world, "exec 5>trace; BASH_XTRACEFD=5; set -x; echo traced").await;
    run(&world, "set -x; echo again; (exit 3)").await;
    let mixed = run(&world, "exec 6>&2; BASH_XTRACEFD=6; set -xv; echo shown").await;
    let moved = run(&world, "BASH_XTRACEFD=5; exec 2>errors; set -x; nosuchcommand").await;
    let plain = run(&world, "echo plain; echo $BASH_XTRACEFD").await;
    assert_eq!(out(&plain), "plain\n5\n", "{plain:?}");
    assert_eq!(err(&mixed), "++ echo shown\n", "{mixed:?}");
    assert_eq!(err(&moved), "", "{moved:?}");
    let read = |name: &str| std::fs::read_to_string(world.folder().unwrap().join(name)).unwrap();
    assert_eq!(read("trace"), "++ echo traced\n++ echo again\n++ exit 3\n++ nosuchcommand\n");
    let errors = read("errors");
    assert!(errors.ends_with(": nosuchcommand: command not found\n"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    for outcome in [mixed, moved, plain] {
        let text = outcome.joined_text();
        assert!(!text.contains("printed since the last call"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_takes_in_no_more_is_noticed_and_replaced() {
    let cases =
        ["set -n", "builtin() { :; }", "enable -n builtin", "shopt -s extdebug; trap false DEBUG"];
    let all = cases.iter().map(async |command| {
        let broken = after(&format!("echo said; {command}"), Shell::New).await;
        assert_eq!((out(&broken), broken.status), ("said\n", Status::Failed), "{command}");
        let text = broken.joined_text();
        assert!(text.contains("[its exit code is not known: "), "{command}: {text}");
    });
    futures::future::join_all(all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_takes_in_no_more_is_told_before_the_time_of_the_call_is_over() {
    let cases = [
        "set -n",
        "enable -n trap builtin read",
        "function builtin { :; }",
        "shopt -s extdebug; trap false DEBUG",
        "ulimit -n 3",
    ];
    let all = cases.iter().flat_map(|command| [(command, 2_000), (command, 300)]);
    let all = all.map(async |(command, timeout)| {
        let world = world();
        run(&world, "true").await;
        let command = format!("echo said; {command}");
        let input = json!({"command": command, "session": "s", "timeout_ms": timeout});
        let began = Instant::now();
        let broken = world.call("bash", input).await;
        let text = broken.joined_text();
        let seen = (out(&broken), broken.status);
        assert_eq!(seen, ("said\n", Status::Failed), "{command}: {text}");
        for part in ["[its exit code is not known: ", "[the shell of session s ended with this; "] {
            assert!(text.contains(part), "{command}: {text}");
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{command}: {:?}", began.elapsed());
    });
    futures::future::join_all(all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builtins_that_a_command_switches_off_are_there_for_what_ends_it() {
    let cases = ["enable -n printf; echo x", "enable -n printf pwd trap set eval cd; echo x"];
    for command in cases {
        let broken = after(&format!("{command}; (exit 7)"), Shell::Same).await;
        assert_eq!((out(&broken), data(&broken, "exit_code")), ("x\n", &json!(7)), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_output_and_errors_are_those_of_the_command() {
    let world = world();
    let cases = [
        ("true", Status::Done, "(no output)"),
        ("(exit 2)", Status::Failed, "[exit code 2]"),
        ("echo x; false", Status::Failed, "x\n[exit code 1]"),
        ("grep nothing b.txt", Status::Done, "[exit code 1: no match]"),
        ("echo a; echo b >&2; printf c", Status::Done, "a\nb\nc"),
        (
            "echo \"it's\" '\\n' $'\\t|' \"!\" `echo bt` $(echo $((1+1)))",
            Status::Done,
            "it's \\n \t| ! bt 2",
        ),
        ("\n\n# only a remark", Status::Done, "(no output)"),
        (
            "-x",
            Status::Failed,
            "bash: line 1: -x: command not found\n[exit code 127: command not found]",
        ),
        (
            "true\n\n  nosuch1\nif",
            Status::Failed,
            "bash: line 3: nosuch1: command not found\nbash: line 5: syntax error: unexpected end of file\n[exit code 2]",
        ),
        ("g() {\n\nnosuch2\n}; echo 'bash: line 7: x' >&2", Status::Done, "bash: line 7: x"),
        // The line of the call in which it was written.
        (
            "true\ng",
            Status::Failed,
            "bash: line 3: nosuch2: command not found\n[exit code 127: command not found]",
        ),
        (
            "kill -TERM $$",
            Status::Failed,
            "[killed by signal 15 (TERM)]\n[the shell of session s ended with this; the next call begins a new one, without its variables, functions and processes]",
        ),
        (
            "echo on",
            Status::Done,
            "on\n[session s is a new shell, for the last command ended it: variables and functions of the last one are lost]",
        ),
        ("echo on", Status::Done, "on"),
        ("set -eu; true", Status::Done, "[options of set last for one call: errexit, nounset]"),
        ("set -eu; true", Status::Done, "(no output)"),
    ];
    for (command, status, text) in cases {
        let outcome = run(&world, command).await;
        let said = outcome.joined_text();
        let said = said.replace(
            "syntax error: unexpected end of file from `if' command on line 4",
            "syntax error: unexpected end of file",
        );
        assert_eq!((outcome.status, &*said), (status, text), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_stays_inside_the_workspace_and_may_go() {
    let world = world();
    let text = run(&world, "cd /usr").await.joined_text();
    assert!(
        text.contains("/usr is outside the workspace: the next command of session s"),
        "{text}"
    );
    let root = format!("{}\n", world.root.text());
    assert_eq!(out(&run(&world, "pwd").await), root);
    run(&world, "mkdir deep; cd deep").await;
    let gone = run(&world, "rmdir \"$PWD\"; v=1").await.joined_text();
    assert!(gone.contains("[its folder is gone: the next command"), "{gone}");
    assert_eq!(out(&run(&world, "pwd; echo $v").await), format!("{root}1\n"));
    run(&world, "mkdir deep; cd deep").await;
    std::fs::remove_dir(world.folder().unwrap().join("deep")).unwrap();
    let moved = run(&world, "pwd; echo $v").await;
    assert_eq!(out(&moved), format!("{root}1\n"));
    let text = moved.joined_text();
    assert!(text.contains("[the folder deep is gone; this ran in the workspace root]"), "{text}");
    // A new session begins where plain calls are; a stopped one goes on where it was.
    world.call("bash", json!({"command": "cd src"})).await;
    assert_eq!(
        out(&run_in(&world, "t", "pwd; mkdir in; cd in").await),
        format!("{}/src\n", world.root.text())
    );
    run_in(&world, "t", "exit").await;
    assert_eq!(out(&run_in(&world, "t", "pwd").await), format!("{}/src/in\n", world.root.text()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_or_cancellation_ends_the_shell_with_all_that_it_started() {
    let world = world();
    let spawned = "echo $$ >> ids; sleep 300 & echo $! >> ids; setsid sleep 300 & ";
    for cancelled in [false, true] {
        run(&world, SETUP).await;
        let command = format!("{spawned} (trap '' TERM; sleep 300); echo done");
        let input = json!({"command": command, "session": "s", "timeout_ms": if cancelled { 60_000 } else { 1_000 }});
        let stop = CancellationToken::new();
        let (began, outcome) = {
            let call = world.dispatcher.call("bash", input, stop.clone());
            let ids = world.folder().unwrap().join("src/ids");
            let begins = async {
                while std::fs::read_to_string(&ids).unwrap_or_default().lines().count() < 2 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                if cancelled {
                    stop.cancel();
                }
                Instant::now()
            };
            let ((_, outcome), began) = tokio::join!(call, begins);
            (began, outcome)
        };
        let limit = Duration::from_millis(if cancelled { 1_000 } else { 4_000 });
        assert!(began.elapsed() < limit, "{:?}", began.elapsed());
        let wanted = if cancelled { Status::Cancelled } else { Status::TimedOut };
        assert_eq!(outcome.status, wanted, "{outcome:?}");
        let text = outcome.joined_text();
        assert!(text.contains("[the shell of session s ended with this; "), "{text}");
        let ids = world.folder().unwrap().join("src/ids");
        for id in std::fs::read_to_string(&ids).unwrap().lines() {
            let gone = || !std::path::Path::new(&format!("/proc/{id}")).exists();
            assert!(until(Duration::from_secs(3), gone), "{id} lives");
        }
        std::fs::remove_file(ids).unwrap();
        let next = run(&world, PLAIN).await;
        is_plain(&next, Shell::New);
        let why = if cancelled { "was cancelled" } else { "was stopped at its timeout" };
        assert!(next.joined_text().contains(why), "{}", next.joined_text());
        assert_eq!(out(&run(&world, "pwd").await), format!("{}/src\n", world.root.text()));
        run(&world, "cd ..; exit").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_at_a_time_waits_for_the_other() {
    let world = world();
    let stop = CancellationToken::new();
    let first = world.dispatcher.call(
        "bash",
        json!({"command": "until [ -e go ]; do sleep 0.01; done; v=first", "session": "s"}),
        stop.clone(),
    );
    let others = async {
        world.recorder.until(|body| matches!(body, Body::CallStarted { .. })).await;
        let input = json!({"command": "echo no", "session": "s", "timeout_ms": 300});
        let late = world.call("bash", input).await;
        assert_eq!(late.status, Status::TimedOut, "{late:?}");
        assert!(late.joined_text().starts_with("nothing was run: another command of session s"));
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let input = json!({"command": "echo no", "session": "s"});
        let never = world.dispatcher.call("bash", input, cancelled).await.1;
        assert_eq!(never.status, Status::Cancelled, "{never:?}");
        // Another session waits for nobody.
        assert_eq!(out(&run_in(&world, "t", "echo t").await), "t\n");
        let second = run(&world, "echo \"second after $v\"");
        let go = async {
            std::fs::write(world.folder().unwrap().join("go"), "").unwrap();
        };
        tokio::join!(second, go).0
    };
    let ((_, first), second) = tokio::join!(first, others);
    assert_eq!(first.status, Status::Done, "{first:?}");
    assert_eq!(out(&second), "second after first\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_between_calls_is_told_apart() {
    let world = world();
    let begun = run(&world, "(until [ -e go ]; do sleep 0.01; done; seq 1 3; echo e >&2; touch said; read -r x < /dev/null; sleep 300) & echo now").await;
    assert_eq!(out(&begun), "now\n");
    let folder = world.folder().unwrap();
    std::fs::write(folder.join("go"), "").unwrap();
    assert!(until(Duration::from_secs(10), || folder.join("said").exists()));
    let next = run(&world, "echo next").await;
    assert_eq!((out(&next), err(&next)), ("next\n", ""), "{next:?}");
    let text = next.joined_text();
    assert!(text.starts_with("next\n[printed since the last call in the background of session s (8 bytes, their end):\n1\n2\n3\ne]\n[in the background of session s: "), "{text}");
    // More than pipes hold does not stop what says it; what stands in them is told apart, too.
    for size in [700_000, 3_000_000] {
        let waits = "until [ -e off ]; do sleep 0.01; done";
        let prints = format!("{{ {waits}; yes | head -c {size}; rm off; touch far; }} &");
        assert_eq!(out(&run(&world, &prints).await), "");
        std::fs::write(folder.join("off"), "").unwrap();
        assert!(until(Duration::from_secs(20), || folder.join("far").exists()));
        std::fs::remove_file(folder.join("far")).unwrap();
        let then = run(&world, "echo then").await;
        assert_eq!(out(&then), "then\n");
        assert!(
            then.joined_text().contains(&format!("({size} bytes, their end):\ny\n")),
            "{then:?}"
        );
    }
    run(&world, "(sleep 0.05; kill -9 $$) & echo last").await;
    let lives = || {
        let id = world.session.map.get::<Shells>();
        id.living() > 0
    };
    assert!(until(Duration::from_secs(10), || !lives()));
    let text = run(&world, "echo new").await.joined_text();
    assert!(text.contains("ended between the calls (killed by signal 9 (KILL))"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_cut_kept_and_shown_as_it_comes() {
    let world = world();
    let outcome = run(&world, "seq 1 200000; v=1").await;
    let text = outcome.joined_text();
    assert!(text.starts_with("1\n2\n") && text.trim_end().ends_with("200000"), "{}", text.len());
    assert!(text.chars().count() <= 30_000 && text.contains("read or grep out://"));
    let address = data(&outcome, "output_path").as_str().unwrap().to_owned();
    let found = world.call("grep", json!({"pattern": "^123456$", "path": address})).await;
    assert!(found.joined_text().contains("123456"), "{}", found.joined_text());
    assert_eq!(out(&run(&world, "echo $v").await), "1\n");
    let go = world.folder().unwrap().join("go");
    let leads = async {
        let came = |body: &Body| matches!(body, Body::CallOutput { text, .. } if text == "early\n");
        world.recorder.until(came).await;
        std::fs::write(go, "").unwrap();
    };
    let command = "echo early; until [ -e go ]; do sleep 0.01; done; echo late";
    let (outcome, ()) = tokio::join!(run(&world, command), leads);
    assert_eq!(out(&outcome), "early\nlate\n");
    // As long as it may be, where a plain one may not: more than is looked at, so it is asked about.
    world.answer(vec![Reply::pick("allow")]);
    let long = format!("x='{}'; echo ${{#x}}", "a'\\''b\n".repeat(60_000));
    assert_eq!(out(&run(&world, &long).await), "240000\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_a_session_gets_no_descriptor_of_haft_and_no_input() {
    let world = world();
    let look = run(&world, "bash -c 'ls /proc/$$/fd; echo $#; cat; :'; env | grep -c HAFT_C").await;
    assert_eq!(out(&look), "0\n1\n2\n0\n0\n", "{look:?}");
    let own =
        "echo E1 0 x >&60 || echo closed; echo E1 0 x >&117; printf '\\0E' >&117; read x || echo";
    let own = run(&world, own).await;
    assert_eq!((out(&own), own.status), ("closed\n\n", Status::Done), "{own:?}");
    // The name of a command is not found by patterns for its words, and stands in no list.
    let hidden = run(&world, "pgrep -f 'a_word_of_its_own_7[1]' || echo none").await;
    assert_eq!(out(&hidden), "none\n", "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_asked_sees_which_session_it_is() {
    let world = world();
    world.mode(Mode::Ask);
    world.answer([Reply::pick("allow")]);
    assert_eq!(out(&run(&world, "echo asked").await), "asked\n");
    let asked = world.recorder.bodies().into_iter().find_map(|body| match body {
        Body::Asked { question } => Some(question.text),
        _ => None,
    });
    let asked = asked.unwrap();
    assert!(asked.contains("Running echo asked (session s)"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_named() {
    let world = world();
    let cases = [
        (json!({"session": "a b"}), "session \"a b\" is no name"),
        (json!({"session": "../x"}), "is no name that one can have"),
        (json!({"session": "x".repeat(33)}), "is no name that one can have"),
        (
            json!({"session": "s", "run_in_background": true}),
            "run_in_background does not go with session",
        ),
        (json!({"session": "s", "pty": true}), "pty does not go with session"),
        (json!({"session": "s", "cwd": "src"}), "cwd does not go with session"),
    ];
    for (mut input, wanted) in cases {
        input["command"] = json!("echo no");
        let outcome = world.call("bash", input).await;
        assert_eq!(outcome.status, Status::Failed);
        assert!(outcome.joined_text().contains(wanted), "{}", outcome.joined_text());
    }
    let plain = world.call("bash", json!({"command": "echo $-", "session": ""})).await;
    assert_eq!(plain.status, Status::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many_at_once_and_none_after_the_end() {
    let world = world();
    let shells = world.session.map.get::<Shells>();
    shells.limit(2);
    run_in(&world, "one", "v=1").await;
    run_in(&world, "two", "sleep 300 & echo $! > id").await;
    let third = run_in(&world, "three", "echo no").await.joined_text();
    assert!(
        third.contains("no more than 2 sessions may live at once, and so many do: one, two"),
        "{third}"
    );
    run_in(&world, "one", "exit").await;
    assert_eq!(out(&run_in(&world, "three", "echo yes").await), "yes\n");
    let again = run_in(&world, "one", "echo no").await.joined_text();
    assert!(again.contains("and so many do: two, three"), "{again}");
    let id = std::fs::read_to_string(world.folder().unwrap().join("id")).unwrap();
    shells.end(Duration::from_secs(3)).await;
    assert_eq!(shells.living(), 0);
    assert!(!std::path::Path::new(&format!("/proc/{}", id.trim())).exists());
    let late = run_in(&world, "two", "echo no").await.joined_text();
    assert!(late.contains("there is no session two: the session is ending"), "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_talks_share_nothing_and_a_dropped_one_leaves_nothing() {
    let (first, second) = (world(), world());
    run(&first, "v=first; sleep 300 & echo $! > id").await;
    assert_eq!(out(&run(&second, "echo [$v]").await), "[]\n");
    let id = std::fs::read_to_string(first.folder().unwrap().join("id")).unwrap();
    let process = format!("/proc/{}", id.trim());
    assert!(std::path::Path::new(&process).exists());
    drop(first);
    let gone = || !std::path::Path::new(&process).exists();
    assert!(until(Duration::from_secs(3), gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_of_a_session_changed_is_told() {
    let world = world();
    run(&world, "v=more").await;
    let outcome = run(&world, "echo $v >> b.txt; rm src/a.rs; echo x > new").await;
    assert_eq!(outcome.receipts.len(), 3, "{outcome:?}");
    let _: Arc<Shells> = world.session.map.get();
}

/// A step of a random sequence: what breaks something, and whether a variable outlives it.
const STEPS: &[(&str, bool)] = &[
    ("true", true),
    ("set -eux -o pipefail -o noglob", true),
    ("exit 4", false),
    ("set -e; false", false),
    ("exec >/dev/null 2>&1", true),
    ("exec 0<&- 1<&- 2<&-", true),
    ("IFS=0123456789 PATH=$PATH: LC_ALL=C", true),
    ("trap 'echo trapped; echo trapped >&2' DEBUG ERR RETURN EXIT CHLD; false", true),
    ("eval() { echo fake; }; printf() { echo fake; }; trap() { :; }", true),
    ("if then fi '", true),
    ("cat <<E; echo \"$(cat)", true),
    ("sleep 300 & (sleep 0.02; setsid sleep 300 &) & disown -a", true),
    ("cd /; cd nowhere", true),
    ("mkdir -p gone; cd gone; rmdir ../gone", true),
    ("kill -9 $$", false),
    ("seq 1 30000; head -c 70000 /dev/urandom >&2", true),
    ("set -o posix; shopt -s extglob nullglob; alias echo=false", true),
    ("readonly r=1; r=2", true),
    ("while break 9; do :; done; continue", true),
    ("f() { return 3; }; f; unset -f f nothing", true),
];

#[tokio::test(flavor = "multi_thread")]
async fn random_sequences_leave_each_call_its_own() {
    let sequences = haft_testkit::machine::times(12);
    let all = (0..sequences).map(async |seed| {
        let world = world();
        // Numbers that look random, the same in each run.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678);
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 40).unwrap()
        };
        let mut kept = String::new();
        for step in 0..10 {
            let (command, keeps) = STEPS[next() % STEPS.len()];
            let told = format!("{seed}.{step}: {command}");
            let broken = run(&world, command).await;
            let text = broken.joined_text();
            assert_eq!(text.contains("[the shell of session s ended with this; "), !keeps, "{told}: {text}");
            if !keeps {
                kept.clear();
            }
            let (code, kept_now) = (next() % 100, format!("w{seed}x{step}"));
            let plain = format!(
                "\\builtin echo \"$kept\"; \\builtin echo {kept_now} >&2; kept={kept_now}; pwd; (exit {code})"
            );
            let outcome = run(&world, &plain).await;
            let text = outcome.joined_text();
            let root = world.root.text();
            assert_eq!(out(&outcome), format!("{kept}\n{root}\n"), "{told}: {text}");
            assert_eq!(err(&outcome), format!("{kept_now}\n"), "{told}: {text}");
            assert_eq!(data(&outcome, "exit_code"), code, "{told}: {text}");
            kept = kept_now;
        }
    });
    futures::future::join_all(all).await;
}

#[tokio::test]
async fn a_timeout_names_what_it_ends_in_the_background() {
    let world = world();
    let begun = run(&world, "sleep 301 & sleep 0.01 & sleep 302 & wait %2; echo $!").await;
    let last = out(&begun).trim().to_owned();
    assert!(begun.joined_text().contains("sleep 301"), "{}", begun.joined_text());
    let input = json!({"command": "kill %1; wait %1; sleep 60", "session": "s", "timeout_ms": 500});
    let over = world.call("bash", input).await;
    assert_eq!(over.status, Status::TimedOut, "{over:?}");
    let text = over.joined_text();
    let told =
        format!("[still running in the background of session s, and stopped: {last} sleep 302]");
    assert!(text.contains(&told), "{text}");
    // Of what runs in no background, nothing is said.
    run(&world, "true").await;
    let input = json!({"command": "sleep 60", "session": "s", "timeout_ms": 300});
    let text = world.call("bash", input).await.joined_text();
    assert!(!text.contains("and stopped: "), "{text}");
}
