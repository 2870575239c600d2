//! Programs that need a terminal.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use haft_host::{Exit, Host, Local, Output, Program, Running, Spawn, Stdin};
use haft_types::{HostPath, Stream, Style};

async fn start(text: &str, stdin: Stdin) -> Running {
    let cwd = HostPath::new(b"/", Style::Posix).unwrap();
    let program = Program::Script { text: text.into(), args: Vec::new() };
    let set = vec![("TERM".to_owned(), "dumb".to_owned())];
    let spawn = Spawn { stdin, set, terminal: Some((100, 30)), ..Spawn::new(program, cwd) };
    Local::new().shell().unwrap().spawn(spawn).await.unwrap()
}

/// Reads until this was said, or to the end; gives all that was said since.
async fn until(running: &mut Running, word: &str) -> String {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if !word.is_empty() && text.contains(word) {
            return text;
        }
        match running.output.next().await {
            Some(Ok(Output::Bytes(Stream::Stdout, bytes))) => all.extend_from_slice(&bytes),
            Some(Ok(Output::Exit(_))) | None => return text,
            other => panic!("{other:?} after {text:?}"),
        }
    }
}

async fn exit(mut running: Running) -> Exit {
    while let Some(output) = running.output.next().await {
        if let Output::Exit(exit) = output.unwrap() {
            return exit;
        }
    }
    panic!("no end");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_terminal_of_this_size_and_its_own() {
    let text = "test -t 0 && test -t 1 && test -t 2 && stty size && echo to >&2 && cat </dev/tty";
    let said = until(&mut start(text, Stdin::Empty).await, "").await;
    assert_eq!(said, "30 100\r\nto\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_input_is_empty_or_typed() {
    let begun = Instant::now();
    let said = until(&mut start("cat; wc -c; echo end", Stdin::Empty).await, "").await;
    assert_eq!(said, "0\r\nend\r\n");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let given = Stdin::Bytes(Bytes::from_static(b"one\ntwo"));
    let said = until(&mut start("stty -echo; cat | rev", given).await, "").await;
    assert!(said.ends_with("eno\r\nowt"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debugger_is_driven() {
    let text = "python3 -q -i -c 'import sys; print(sys.stdin.isatty())'";
    let mut running = start(text, Stdin::Open).await;
    let control = running.control.clone();
    assert!(until(&mut running, ">>> ").await.contains("True"));
    control.write(Bytes::from_static(b"x = 6 * 7\n")).await.unwrap();
    until(&mut running, ">>> ").await;
    control.write(Bytes::from_static(b"print('it', 'is', x)\n")).await.unwrap();
    assert!(until(&mut running, "it is 42").await.contains("it is 42"));
    control.end_input();
    let exit = exit(running).await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_keys_are_signals() {
    let mut running = start("trap 'echo caught' INT; echo ready; cat; echo end", Stdin::Open).await;
    until(&mut running, "ready").await;
    let control = running.control.clone();
    control.write(Bytes::from_static(b"line\n")).await.unwrap();
    // Once as typed, once by cat, which then runs and takes the signal, too.
    until(&mut running, "line\r\nline").await;
    control.write(Bytes::from_static(b"\x03")).await.unwrap();
    assert!(until(&mut running, "end").await.contains("caught"));
    assert_eq!(exit(running).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_left_ends_with_it() {
    let seconds = format!("400.{}", std::process::id());
    let text = format!("set -m; sleep {seconds} & setsid sleep {seconds} & echo ready; exit 3");
    let running = start(&text, Stdin::Open).await;
    let begun = Instant::now();
    let exit = exit(running).await;
    assert_eq!(exit.code, Some(3), "{exit:?}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let mut left = std::process::Command::new("pgrep");
    assert_eq!(left.args(["-f", &format!("^sleep {seconds}")]).output().unwrap().stdout, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_still_ran_at_its_end_is_named() {
    for round in 0..20 {
        let seconds = format!("{}.{}", 500 + round, std::process::id());
        let exit = exit(start(&format!("sleep {seconds} & true"), Stdin::Empty).await).await;
        assert_eq!(exit.code, Some(0), "{exit:?}");
        let named = exit.stopped.iter().any(|(_, line)| line.contains(&seconds));
        assert!(named, "{round}: {exit:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_set_it_up_find_its_input_empty() {
    for text in
        ["python3 -q -i", "bash --norc -i", "stty sane; sleep 0.1; stty -icanon icanon; cat"]
    {
        let begun = Instant::now();
        let mut running = start(text, Stdin::Empty).await;
        until(&mut running, "").await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{text}: {:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_its_input_floods_nobody() {
    // A terminal that shows keys shows the sign, which makes output; each line makes some, too.
    let text = "stty -icanon; for n in $(seq 1 40); do echo line; sleep 0.05; done";
    let said = until(&mut start(text, Stdin::Empty).await, "").await;
    assert_eq!(said.matches("line").count(), 40, "{said:?}");
    assert!(said.matches("^D").count() <= 8, "{said:?}");
    // Nor a program that takes it as a key and says so.
    let text = "stty -icanon -echo; timeout 2 od -An -v -tx1 -w1";
    let said = until(&mut start(text, Stdin::Empty).await, "").await;
    assert!((1..=8).contains(&said.matches("04").count()), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_may_close_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done");
    let text = format!("exec <&- >&- 2>&-; sleep 0.3; touch {}", file.display());
    assert_eq!(exit(start(&text, Stdin::Empty).await).await.code, Some(0));
    assert!(file.exists());
}
