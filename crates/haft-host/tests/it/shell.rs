//! Programs of the local host: output whole and in order, and nothing left behind.

use std::{
    fs,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, future::join_all};
use haft_host::{Exit, Host, Local, Output, Program, Running, Spawn, Stdin};
use haft_testkit::machine;
use haft_types::{HostPath, Stream, Style};

fn script(text: &str) -> Spawn {
    let cwd = HostPath::new(b"/", Style::Posix).unwrap();
    Spawn::new(Program::Script { text: text.into(), args: Vec::new() }, cwd)
}

fn argv(words: &[&str]) -> Spawn {
    let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Spawn { program: Program::Argv(words), ..script("") }
}

async fn start(spawn: Spawn) -> std::io::Result<Running> {
    Local::new().shell().unwrap().spawn(spawn).await
}

#[derive(Default)]
struct Collected {
    out: Vec<u8>,
    err: Vec<u8>,
    report: Vec<u8>,
    exit: Exit,
}

async fn read(mut running: Running) -> Collected {
    let mut said = Collected::default();
    while let Some(output) = running.output.next().await {
        match output.unwrap() {
            Output::Bytes(Stream::Stdout, bytes) => said.out.extend_from_slice(&bytes),
            Output::Bytes(Stream::Stderr, bytes) => said.err.extend_from_slice(&bytes),
            Output::Report(bytes) => said.report.extend_from_slice(&bytes),
            Output::Exit(exit) => said.exit = exit,
        }
    }
    said
}

async fn run(spawn: Spawn) -> Collected {
    read(start(spawn).await.unwrap()).await
}

async fn fails(spawn: Spawn) -> String {
    start(spawn).await.err().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_errors_exit_and_signal_are_told() {
    let said = run(script("echo out; echo err >&2; exit 3")).await;
    assert_eq!((&*said.out, &*said.err, said.exit.code), (&b"out\n"[..], &b"err\n"[..], Some(3)));
    assert!(said.exit.stopped.is_empty());
    let said = run(script("kill -KILL $$")).await;
    assert_eq!((said.exit.code, said.exit.signal), (None, Some(9)));
    let said = run(argv(&["printf", "%s|", "a b", "$HOME", ""])).await;
    assert_eq!(said.out, b"a b|$HOME||");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_take_arguments_and_variables() {
    let text = "echo \"$1|$2|$SET|${HOME-none}\"";
    let program = Program::Script { text: text.into(), args: vec!["a b".into(), "*".into()] };
    let set = vec![("SET".into(), "x=y".into())];
    let said = run(Spawn { program, set, unset: vec!["HOME".into()], ..script("") }).await;
    assert_eq!(String::from_utf8_lossy(&said.out), "a b|*|x=y|none\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn stdin_is_empty_given_or_open() {
    let begun = Instant::now();
    assert!(run(argv(&["cat"])).await.out.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(1));
    let text = Bytes::from(b"0123456789abcdef".repeat(1 << 18));
    let said = run(Spawn { stdin: Stdin::Bytes(text.clone()), ..argv(&["cat"]) }).await;
    assert!(said.out == text, "{} of {} bytes", said.out.len(), text.len());
    // A program that does not read its input does not hold anybody up.
    let said = run(Spawn { stdin: Stdin::Bytes(text.clone()), ..argv(&["true"]) }).await;
    assert_eq!(said.exit.code, Some(0));
    let running = start(Spawn { stdin: Stdin::Open, ..argv(&["cat"]) }).await.unwrap();
    let control = running.control.clone();
    let writer = tokio::spawn(async move {
        for _ in 0..10 {
            control.write(text.clone()).await.unwrap();
        }
        control.end_input();
        control.write(text.clone()).await.unwrap_err()
    });
    assert_eq!(read(running).await.out.len(), 10 << 22);
    assert!(writer.await.unwrap().to_string().contains("closed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_comes_before_the_errors_that_were_written_after_it() {
    for (script, bursts) in [
        ("for n in {1..20000}; do echo o$n; echo e$n >&2; done", 20_000_usize),
        ("for n in {1..400}; do yes o$n | head -n 300; echo e$n >&2; done", 400),
        ("for n in {1..30}; do yes o$n | head -n 300000; echo e$n >&2; done", 30),
        (
            "exec python3 -c 'import os\nfor n in range(1, 50001):\n os.write(1, b\"o%d\\n\" % n); \
             os.write(2, b\"e%d\\n\" % n)'",
            50_000,
        ),
    ] {
        let mut running = start(argv(&["bash", "-c", script])).await.unwrap();
        // The number of the last whole line of the output, and that of each line of the errors.
        let (mut open, mut last, mut early, mut errors) = ([String::new(), String::new()], 0, 0, 0);
        while let Some(output) = running.output.next().await {
            let Output::Bytes(stream, bytes) = output.unwrap() else { continue };
            let open = &mut open[usize::from(stream == Stream::Stderr)];
            open.push_str(str::from_utf8(&bytes).unwrap());
            let whole = open.rfind('\n').map_or(0, |end| end + 1);
            for line in open.drain(..whole).collect::<String>().lines() {
                let number: usize = line[1..].parse().unwrap();
                if stream == Stream::Stdout {
                    last = number;
                } else {
                    early += usize::from(number > last);
                    errors += 1;
                }
            }
        }
        println!("{early} of {errors} lines came too early");
        assert_eq!((early, errors), (0, bursts), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn much_output_comes_whole_and_in_order() {
    let mut running = start(script("seq 1 9000000; seq 1 1000 >&2")).await.unwrap();
    let (mut next, mut rest, mut length) = (1_u64, Vec::new(), 0);
    while let Some(output) = running.output.next().await {
        let Output::Bytes(Stream::Stdout, bytes) = output.unwrap() else { continue };
        length += bytes.len();
        rest.extend_from_slice(&bytes);
        let end = rest.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        for line in rest[..end].split_inclusive(|&b| b == b'\n') {
            let number: u64 = str::from_utf8(line).unwrap().trim_end().parse().unwrap();
            assert_eq!(number, next);
            next += 1;
        }
        rest.drain(..end);
    }
    assert!(next == 9_000_001 && length > 64 << 20, "{next} {length}");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_waits_in_its_pipe_comes_before_a_later_error() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    machine::make_fifo(&written);
    // More than waits to be read, and not more than is left of it in the pipe.
    let size = 1_300_000;
    let text = format!("yes | head -c {size}; echo later >&2; echo >'{}'", written.display());
    let mut running = start(script(&text)).await.unwrap();
    tokio::task::spawn_blocking(|| fs::read(written)).await.unwrap().unwrap();
    let (mut out, mut before) = (0, None);
    while let Some(output) = running.output.next().await {
        match output.unwrap() {
            Output::Bytes(Stream::Stdout, bytes) => out += bytes.len(),
            Output::Bytes(Stream::Stderr, _) => before = Some(out),
            _ => {}
        }
    }
    assert_eq!((before, out), (Some(size), size));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_loses_nothing_of_what_has_ended() {
    let size = 1_500_000;
    let mut running = start(script(&format!("yes | head -c {size}"))).await.unwrap();
    let (mut length, mut pauses) = (0, [0, 0, 2_300, 500].into_iter());
    while let Some(output) = running.output.next().await {
        if let Output::Bytes(_, bytes) = output.unwrap() {
            length += bytes.len();
        }
        // Longer than the output of who else may hold the pipes is waited for.
        tokio::time::sleep(Duration::from_millis(pauses.next().unwrap_or(0))).await;
    }
    assert_eq!(length, size);
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptor_3_reports() {
    let text = "printf 'cwd=%s' \"$PWD\" >&3; exec 3>&-; echo out";
    let said = run(Spawn { report: true, ..script(text) }).await;
    assert_eq!((&*said.report, &*said.out), (&b"cwd=/"[..], &b"out\n"[..]));
    let long = run(Spawn { report: true, ..script("yes | head -c 1000000 >&3") }).await;
    assert_eq!(long.report.len(), 1_000_000);
    let none = run(script("(echo x >&3) 2>/dev/null || echo closed")).await;
    assert_eq!(none.out, b"closed\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_is_named() {
    let lost = HostPath::new(b"/no/such/folder", Style::Posix).unwrap();
    let error = fails(Spawn { cwd: lost, ..script("true") }).await;
    assert!(error.contains("/no/such/folder") && error.contains("does not exist"), "{error}");
    let file = HostPath::new(b"/dev/null", Style::Posix).unwrap();
    let error = fails(Spawn { cwd: file, ..script("true") }).await;
    assert!(error.contains("/dev/null") && error.contains("not a folder"), "{error}");
    let error = fails(argv(&["no-such-program", "x"])).await;
    assert!(error.contains("no-such-program") && error.contains("PATH"), "{error}");
    let error = fails(argv(&["/no/such/program"])).await;
    assert!(error.contains("/no/such/program"), "{error}");
    let error = fails(argv(&["/etc/passwd"])).await;
    assert!(error.contains("/etc/passwd") && error.contains("executable"), "{error}");
    assert!(fails(script("echo a\0b")).await.contains("NUL"));
    assert!(fails(script(&"x".repeat(1 << 20))).await.contains("1048576"));
    assert!(
        fails(Spawn { program: Program::Argv(Vec::new()), ..script("") })
            .await
            .contains("no program")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_writer_is_stopped_at_once() {
    let mut running = start(argv(&["yes"])).await.unwrap();
    for _ in 0..100 {
        running.output.next().await.unwrap().unwrap();
    }
    let begun = Instant::now();
    running.control.stop();
    let said = read(running).await;
    assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    assert_eq!(said.exit.signal, Some(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_writer_is_held_up_and_still_stopped() {
    let running = start(argv(&["yes"])).await.unwrap();
    // It sleeps only where it waits for room in its pipe.
    let full = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", running.control.id()));
        stat.is_ok_and(|stat| stat.contains("(yes) S"))
    };
    while !full() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let written = fs::read_to_string(format!("/proc/{}/io", running.control.id())).unwrap();
    let written = written.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    assert!(written.parse::<u64>().unwrap() < 4 << 20, "{written}");
    running.control.stop();
    assert_eq!(read(running).await.exit.signal, Some(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_do_not_leak() {
    let count = || fs::read_dir("/proc/self/fd").unwrap().count();
    run(script("true")).await;
    let before = count();
    for number in 0..200 {
        let stdin = if number % 2 == 0 { Stdin::Open } else { Stdin::Empty };
        let running = start(Spawn { report: true, stdin, ..argv(&["true"]) }).await.unwrap();
        running.control.end_input();
        read(running).await;
    }
    // Other tests of this process may run meanwhile; a leak would be 200 or more.
    assert!(count() < before + 100, "{before} before, {} after", count());
    // Nor does what this process was given open by its own parent: a copy that outlives an exec.
    let given = rustix::io::dup(fs::File::open("/dev/null").unwrap()).unwrap();
    for report in [false, true] {
        let said = run(Spawn { report, ..argv(&["ls", "/proc/self/fd"]) }).await;
        let own = if report { "0\n1\n2\n3\n4\n" } else { "0\n1\n2\n3\n" };
        assert_eq!(String::from_utf8_lossy(&said.out), own);
    }
    drop(given);
}

/// Ways to leave children behind; each says `ready` once they run.
const WAYS: [(&str, &str); 11] = [
    ("background", "sleep 1000 & echo ready"),
    ("session", "setsid sleep 1000 & sleep 0.1; echo ready"),
    ("double fork", "( (sleep 1000 &) & ); echo ready"),
    ("nohup", "nohup sleep 1000 >/dev/null 2>&1 & echo ready"),
    ("disown", "sleep 1000 & disown 2>/dev/null; echo ready"),
    ("trap", "(trap '' TERM; while :; do sleep 0.05; done) & sleep 0.1; echo ready"),
    ("pipe holder", "(exec 0</dev/null; exec sleep 1000) & (sleep 1000 | cat) & echo ready"),
    ("stopped", "sleep 1000 & kill -STOP $!; echo ready"),
    ("re-parented", "sh -c 'setsid sh -c \"sleep 1000 & sleep 1000\" &'; sleep 0.1; echo ready"),
    ("daemon", "setsid sh -c '(cd /; exec </dev/null >/dev/null 2>&1; sleep 1000 & )'; echo ready"),
    ("writer", "(while :; do echo x; done) & echo ready"),
];

/// Processes that live and carry a variable with this value.
fn alive(value: &str) -> Vec<String> {
    let carries = |pid: &String| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(value.len()).any(|part| part == value.as_bytes())
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(carries)
        .collect()
}

/// Children of this process that have ended and were not reaped.
fn zombies() -> Vec<String> {
    let me = std::process::id().to_string();
    let dead = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        rest.first() == Some(&"Z") && rest.get(1) == Some(&&*me)
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(dead)
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Natural,
    Stop,
    Drop,
}

async fn leave(number: usize, name: &str, text: &str, ending: Ending) -> Result<(), String> {
    let value = format!("tree-{}-{number}-{ending:?}", std::process::id());
    let text = if ending == Ending::Natural { text.into() } else { format!("{text}; sleep 1000") };
    let set = vec![("HAFT_TEST_TREE".into(), value.clone())];
    let mut running = start(Spawn { set, ..script(&text) }).await.unwrap();
    let mut said = Vec::new();
    while !said.windows(5).any(|part| part == b"ready") {
        match running.output.next().await.unwrap().unwrap() {
            Output::Bytes(_, bytes) => said.extend_from_slice(&bytes),
            other => return Err(format!("{name}: {other:?}")),
        }
    }
    let begun = Instant::now();
    match ending {
        Ending::Natural => {
            let exit = read(running).await.exit;
            if exit.code != Some(0) || exit.stopped.is_empty() {
                return Err(format!("{name}: {exit:?}"));
            }
        }
        Ending::Stop => {
            running.control.stop();
            read(running).await;
        }
        Ending::Drop => drop(running),
    }
    let limit = Duration::from_secs(if ending == Ending::Natural { 6 } else { 3 });
    while !alive(&value).is_empty() {
        if begun.elapsed() > limit {
            return Err(format!("{name}, {ending:?}: {:?} are left", alive(&value)));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_child_is_left_whatever_way_it_was_left() {
    for ending in [Ending::Natural, Ending::Stop, Ending::Drop] {
        let ways = WAYS.iter().enumerate();
        let all = join_all(ways.map(|(number, (name, text))| leave(number, name, text, ending)));
        let errors: Vec<String> = all.await.into_iter().filter_map(Result::err).collect();
        assert!(errors.is_empty(), "{ending:?}: {errors:#?}");
    }
    // One by one, and over at once: then only the few ids behind the command's are looked at.
    for (number, (name, text)) in WAYS.iter().enumerate() {
        let text = text.replace("sleep 0.1; ", "");
        for round in 0..3 {
            let left = leave(1_000 + number * 3 + round, name, &text, Ending::Natural).await;
            assert_eq!(left, Ok(()), "{name}");
        }
    }
    let until = Instant::now() + Duration::from_secs(3);
    while !zombies().is_empty() {
        assert!(Instant::now() < until, "zombies: {:?}", zombies());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_run_before_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let spawn = script(&format!("touch {}", file.display()));
    let host = Local::new();
    let shell = host.shell().unwrap();
    // The second one finds its supervisor there.
    for _ in 0..2 {
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let ready = async { wait.await.map_err(std::io::Error::other) };
        let mut starting = shell.spawn_after(spawn.clone(), Box::pin(ready));
        // Long enough for all that is done ahead.
        let early = tokio::time::timeout(Duration::from_millis(300), &mut starting).await;
        assert!(early.is_err() && !file.exists());
        go.send(()).unwrap();
        assert_eq!(read(starting.await.unwrap()).await.exit.code, Some(0));
        fs::remove_file(&file).unwrap();
        let never = Box::pin(async { Err(std::io::Error::other("no record")) });
        let error = shell.spawn_after(spawn.clone(), never).await.err().unwrap();
        assert_eq!(error.to_string(), "no record");
        let mut given_up = shell.spawn_after(spawn.clone(), Box::pin(std::future::pending()));
        assert!(futures::poll!(&mut given_up).is_pending());
        drop(given_up);
        assert_eq!(run(script("exit 3")).await.exit.code, Some(3));
        assert!(!file.exists());
    }
}
