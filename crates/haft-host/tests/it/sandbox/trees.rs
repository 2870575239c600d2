//! What a confined program starts ends like that of any other.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures::StreamExt;
use haft_host::{Exit, Host, Level, Limits, Local, Output, Program, Running, Spawn, Stdin};
use haft_types::{HostPath, Style};
use rustix::process::{Pid, Signal, kill_process};

use super::{script, working};

/// How long the processes of an ended command may live on.
const GONE: Duration = Duration::from_secs(3);

async fn start(level: Level, text: &str, change: impl FnOnce(Spawn) -> Spawn) -> Running {
    let limits = Limits { level: Some(level), ..Limits::default() };
    let spawn = change(script(Path::new("/"), text, limits));
    Local::new().shell().unwrap().spawn(spawn).await.unwrap()
}

/// Waits until it has said this, or for the end.
async fn until(running: &mut Running, word: &str) -> (String, Option<Exit>) {
    let mut all = String::new();
    while let Some(output) = running.output.next().await {
        match output.unwrap() {
            Output::Bytes(_, bytes) => all.push_str(&String::from_utf8_lossy(&bytes)),
            Output::Exit(exit) => return (all, Some(exit)),
            Output::Report(_) => {}
        }
        if !word.is_empty() && all.contains(word) {
            break;
        }
    }
    (all, None)
}

/// Processes with this argument.
fn with_word(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(has).collect()
}

async fn all_gone(word: &str) {
    let until = Instant::now() + GONE;
    while !with_word(word).is_empty() {
        assert!(Instant::now() < until, "{:?} are left of {word}", with_word(word));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A number of seconds to sleep that no other test has.
fn own_sleep(level: Level, number: u32) -> String {
    format!("2{number:02}{}.{}", u8::from(level == Level::Landlock), std::process::id())
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_asked_to_end_and_what_ignores_that_is_killed() {
    for level in working().await {
        let text = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done";
        let mut running = start(level, text, |spawn| spawn).await;
        until(&mut running, "ready").await;
        running.control.stop();
        let (said, exit) = until(&mut running, "").await;
        assert_eq!((said.contains("bye"), exit.unwrap().code), (true, Some(5)), "{level}: {said}");
        let sleep = own_sleep(level, 1);
        let text = format!(
            "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep {sleep} & sleep {sleep}\" &) ; \
             sleep {sleep} & echo ready; while :; do sleep 0.02; done"
        );
        let mut running = start(level, &text, |spawn| spawn).await;
        until(&mut running, "ready").await;
        running.control.stop();
        let (_, exit) = until(&mut running, "").await;
        assert_eq!(exit.unwrap().signal, Some(9), "{level}");
        all_gone(&sleep).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_it_outlives_who_listens_or_its_keeper() {
    for level in working().await {
        let sleep = own_sleep(level, 2);
        let text = format!("(setsid sleep {sleep} &); sleep {sleep} & echo ready; wait");
        let mut running = start(level, &text, |spawn| spawn).await;
        until(&mut running, "ready").await;
        drop(running);
        all_gone(&sleep).await;
        let mut running = start(level, &text, |spawn| spawn).await;
        until(&mut running, "ready").await;
        let keeper = parent(running.control.id().cast_signed());
        kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
        all_gone(&sleep).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_go_on_does_and_nothing_else_is_named() {
    for level in working().await {
        let (kept, other) = (own_sleep(level, 3), own_sleep(level, 4));
        let text = format!("(exec -a kept-one sleep {kept}) & sleep {other} & exit 6");
        let keep = |spawn| Spawn { keep: vec!["kept-one".to_owned()], ..spawn };
        let mut running = start(level, &text, keep).await;
        let (_, exit) = until(&mut running, "").await;
        let exit = exit.unwrap();
        assert_eq!(exit.code, Some(6), "{level}");
        let lines =
            |list: &[(u32, String)]| list.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>();
        assert_eq!(lines(&exit.kept), [format!("kept-one {kept}")], "{level}");
        assert_eq!(lines(&exit.stopped), [format!("sleep {other}")], "{level}");
        all_gone(&other).await;
        assert_eq!(with_word(&kept).len(), 1, "{level}");
        drop(running);
        all_gone(&kept).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_may_signal_its_own_group_and_have_a_terminal() {
    for level in working().await {
        let (_, exit) = until(&mut start(level, "kill 0; sleep 5", |spawn| spawn).await, "").await;
        assert_eq!(exit.unwrap().signal, Some(15), "{level}");
        let at_terminal = |spawn| Spawn { terminal: Some((100, 30)), ..spawn };
        let text = "test -t 0 && test -t 1 && stty size && cat < /dev/tty";
        let (said, exit) = until(&mut start(level, text, at_terminal).await, "").await;
        assert_eq!((said.as_str(), exit.unwrap().code), ("30 100\r\n", Some(0)), "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_beside_it_is_told_without_what_holds_it() {
    for level in working().await {
        let sleep = own_sleep(level, 5);
        let text = format!("sleep {sleep} & echo ready; wait");
        let mut running = start(level, &text, |spawn| spawn).await;
        until(&mut running, "ready").await;
        let started = async {
            while with_word(&sleep).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(GONE, started).await.unwrap();
        let beside = running.control.beside().await;
        let lines: Vec<&str> = beside.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(lines, [format!("sleep {sleep}")], "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_there_is_named_before_anything_is_confined() {
    for level in working().await {
        let limits = Limits { level: Some(level), ..Limits::default() };
        let cwd = HostPath::new(b"/no/such/folder", Style::Posix).unwrap();
        let spawn = Spawn { cwd, ..script(Path::new("/"), "true", limits) };
        let error = Local::new().shell().unwrap().spawn(spawn).await.err().unwrap();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
        let limits = Limits { level: Some(level), ..Limits::default() };
        let words = vec![b"/no/such/program".to_vec()];
        let program = Program::Argv(words);
        let spawn = Spawn { program, ..script(Path::new("/"), "true", limits) };
        let error = Local::new().shell().unwrap().spawn(spawn).await.err().unwrap();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_is_given_one_command_after_another_is_confined_too() {
    let outside = tempfile::tempdir().unwrap();
    for level in working().await {
        let turns =
            |spawn| Spawn { program: Program::Turns, stdin: Stdin::Open, report: true, ..spawn };
        let mut running = start(level, "", turns).await;
        let control = std::sync::Arc::clone(&running.control);
        control.write("x=1; echo one >&3; echo said\n".into()).await.unwrap();
        let (mut said, mut report) = (String::new(), String::new());
        while !(said.contains("said") && report.contains("one")) {
            match running.output.next().await.unwrap().unwrap() {
                Output::Bytes(_, bytes) => said.push_str(&String::from_utf8_lossy(&bytes)),
                Output::Report(bytes) => report.push_str(&String::from_utf8_lossy(&bytes)),
                Output::Exit(exit) => panic!("{level}: {exit:?} {said}"),
            }
        }
        assert_eq!(control.untaken(), Some(0), "{level}");
        let left = outside.path().join("left");
        let text = format!("echo >{}; exit $((x + 3))\n", left.display());
        control.write(text.into()).await.unwrap();
        let (said, exit) = until(&mut running, "").await;
        assert_eq!(exit.unwrap().code, Some(4), "{level}");
        assert!(said.contains("/left"), "{level}: {said}");
        assert!(!left.exists(), "{level}");
    }
}
