//! The supervisor of commands: nothing leaves the tree, whoever is killed.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, future::join_all};
use haft_host::{Exit, Host, Local, Output, Program, Running, Spawn, Stdin};
use haft_types::{HostPath, Style};

/// How long the processes of an ended command may live on.
const GONE: Duration = Duration::from_secs(3);

fn script(text: &str) -> Spawn {
    let cwd = HostPath::new(b"/", Style::Posix).unwrap();
    Spawn::new(Program::Script { text: text.into(), args: Vec::new() }, cwd)
}

async fn start(text: &str) -> Running {
    Local::new().shell().unwrap().spawn(script(text)).await.unwrap()
}

/// The end of a command, or why there was none.
async fn end(mut running: Running) -> Result<Exit, String> {
    while let Some(output) = running.output.next().await {
        match output {
            Ok(Output::Exit(exit)) => return Ok(exit),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("no end".to_owned())
}

/// Waits until a command has said this.
async fn said(running: &mut Running, word: &str) {
    let mut all = Vec::new();
    while !all.windows(word.len()).any(|part| part == word.as_bytes()) {
        match running.output.next().await.unwrap().unwrap() {
            Output::Bytes(_, bytes) => all.extend_from_slice(&bytes),
            other => panic!("{other:?} before {word:?}: {:?}", String::from_utf8_lossy(&all)),
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// State and parent of a process.
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Processes with this word in their command line of which a thread lives.
fn with_word(word: &str) -> Vec<u32> {
    let has = |thread: &Path| {
        let line = fs::read(thread.join("cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|part| part == word.as_bytes())
    };
    // What has ended tells no command line.
    let lives = |pid: &u32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        threads.flatten().any(|thread| has(&thread.path()))
    };
    processes().filter(lives).collect()
}

/// A command that sleeps for ever, whatever it is told, and whose main thread has ended.
fn without_main_thread(sleep: &str) -> String {
    let text = "import ctypes as c, signal, sys, threading as t, time; signal.signal(15, signal.SIG_IGN); \
        t.Thread(target=time.sleep, args=(float(sys.argv[1]),)).start(); \
        c.CDLL(None).pthread_exit(None)";
    let ended = "until grep -q 'State:.Z' /proc/$!/status; do sleep 0.01; done";
    format!("python3 -c '{text}' {sleep} & {ended}")
}

async fn all_gone(word: &str) {
    let until = Instant::now() + GONE;
    while !with_word(word).is_empty() {
        assert!(Instant::now() < until, "{:?} are left of {word}", with_word(word));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A number of seconds to sleep that no other test has.
fn own_sleep(number: u32) -> String {
    format!("1{number:03}.{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_mark_session_or_parent_of_the_command_is_found() {
    let sleep = own_sleep(1);
    // No variable, another session, another folder, no pipe, and its parents have ended.
    let hidden = format!(
        "env -i setsid sh -c 'cd /; (exec </dev/null >/dev/null 2>&1; env -i sleep {sleep} &)'"
    );
    let text = format!("{hidden}; until pgrep -f '^sleep {sleep}' >/dev/null; do :; done");
    let exit = end(start(&text).await).await.unwrap();
    assert!(exit.stopped.iter().any(|(_, line)| line.contains(&sleep)), "{exit:?}");
    all_gone(&sleep).await;
    let mut running = start(&format!("{text}; echo ready; sleep {sleep}")).await;
    said(&mut running, "ready").await;
    running.control.stop();
    end(running).await.unwrap();
    all_gone(&sleep).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lives_without_its_main_thread_is_ended() {
    let sleep = own_sleep(10);
    let text = without_main_thread(&sleep);
    let exit = end(start(&text).await).await.unwrap();
    assert!(exit.stopped.iter().any(|(_, line)| line.contains("import ctypes")), "{exit:?}");
    all_gone(&sleep).await;
    for stop in [true, false] {
        let mut running = start(&format!("{text}; echo ready; wait")).await;
        said(&mut running, "ready").await;
        assert_eq!(with_word(&sleep).len(), 1);
        if stop {
            running.control.stop();
            end(running).await.unwrap();
        } else {
            drop(running);
        }
        all_gone(&sleep).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_only_what_is_its_own() {
    let (mine, others) = (own_sleep(2), own_sleep(3));
    let mut other =
        start(&format!("(env -i setsid sleep {others} &); echo ready; sleep 1000")).await;
    said(&mut other, "ready").await;
    let exit = end(start(&format!("(env -i setsid sleep {mine} &); sleep 0.2")).await).await;
    let exit = exit.unwrap();
    assert_eq!(exit.stopped.len(), 1, "{exit:?}");
    all_gone(&mine).await;
    assert_eq!(with_word(&others).len(), 1);
    drop(other);
    all_gone(&others).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_keeper_leaves_nothing_and_is_told() {
    let sleep = own_sleep(4);
    let text = format!("(setsid sleep {sleep} &) ; sleep {sleep} & echo ready; wait");
    let mut running = start(&text).await;
    said(&mut running, "ready").await;
    let keeper = stat(running.control.id()).unwrap().1;
    assert_ne!(keeper, std::process::id());
    kill(keeper);
    let error = end(running).await.unwrap_err();
    assert!(error.contains("broke off"), "{error}");
    all_gone(&sleep).await;
    assert_eq!(end(start("exit 7").await).await.unwrap().code, Some(7));
}

/// Runs only as the child of a test: the supervisor is that of the whole process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn child_whose_supervisor_and_keeper_are_killed() {
    let Ok(sleep) = std::env::var("HAFT_TEST_TREE") else { return };
    for terminal in [None, Some((80, 25))] {
        let text = format!("(sleep {sleep} &); sleep {sleep} & echo ready; wait");
        let spawn = Spawn { terminal, ..script(&text) };
        let mut running = Local::new().shell().unwrap().spawn(spawn).await.unwrap();
        said(&mut running, "ready").await;
        let keeper = stat(running.control.id()).unwrap().1;
        let supervisor = stat(keeper).unwrap().1;
        // One that is stopped kills nothing while the other is being killed.
        let pid = |pid: u32| rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid(supervisor), rustix::process::Signal::STOP).unwrap();
        kill(supervisor);
        kill(keeper);
        let error = end(running).await.unwrap_err();
        assert!(error.contains("broke off"), "{error}");
        all_gone(&sleep).await;
    }
}

#[test]
fn a_supervisor_that_is_killed_with_a_keeper_leaves_nothing() {
    let sleep = own_sleep(9);
    let name = "supervision::child_whose_supervisor_and_keeper_are_killed";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--ignored", "--nocapture"]).env("HAFT_TEST_TREE", &sleep);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(with_word(&sleep), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_is_not_stopped_for_long() {
    let sleep = own_sleep(6);
    for round in 0..20 {
        let text = format!(
            "kill -STOP $PPID; sleep {sleep} & kill -STOP $PPID; echo ready; sleep {sleep}"
        );
        let mut running = start(&text).await;
        said(&mut running, "ready").await;
        let begun = Instant::now();
        running.control.stop();
        end(running).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "{round}: {:?}", begun.elapsed());
        assert_eq!(with_word(&sleep), Vec::<u32>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_that_is_stopped_holds_nobody_up_for_good() {
    let mut running = start("echo ready; sleep 0.2").await;
    said(&mut running, "ready").await;
    let supervisor = stat(stat(running.control.id()).unwrap().1).unwrap().1;
    let pid = i32::try_from(supervisor).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    let mut errors = 0;
    // Longer than a connection holds by itself, so that handing it on waits, too.
    let long = format!("true {}", "x".repeat(120_000));
    let args = vec![long.clone(), long.clone(), long];
    let program = Program::Script { text: "true".into(), args };
    for _ in 0..4 {
        // The end of a command lets it go on; one that was given up is there no more.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::STOP);
        let begun = Instant::now();
        let spawn = Spawn { program: program.clone(), ..script("") };
        match Local::new().shell().unwrap().spawn(spawn).await {
            Ok(running) => assert_eq!(end(running).await.unwrap().code, Some(0)),
            Err(error) => {
                assert!(error.to_string().contains("nothing was heard"), "{error}");
                errors += 1;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
    assert!(errors <= 1, "{errors}");
    assert_eq!(end(running).await.unwrap().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_that_a_command_stops_goes_on_after_it() {
    for _ in 0..2 {
        let mut running = start("kill -STOP $(ps -o ppid= -p $PPID); echo ready").await;
        let supervisor = stat(stat(running.control.id()).unwrap().1).unwrap().1;
        said(&mut running, "ready").await;
        assert_eq!(end(running).await.unwrap().code, Some(0));
        let until = Instant::now() + GONE;
        while stat(supervisor).is_some_and(|(state, _)| state == "T") {
            assert!(Instant::now() < until, "it is stopped");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_supervisor_is_replaced_and_takes_nothing_with_it() {
    let mut running = start("echo ready; sleep 0.5; exit 5").await;
    said(&mut running, "ready").await;
    let keeper = stat(running.control.id()).unwrap().1;
    let supervisor = stat(keeper).unwrap().1;
    kill(supervisor);
    // Whatever is asked for right now is run by the old one or by a new one, never lost.
    let mut codes = Vec::new();
    for code in 1..20 {
        let spawn = script(&format!("exit {code}"));
        match Local::new().shell().unwrap().spawn(spawn).await {
            Ok(running) => codes.push(end(running).await.unwrap().code),
            Err(error) => assert!(error.to_string().contains("supervis"), "{error}"),
        }
    }
    assert!(codes.contains(&Some(19)), "{codes:?}");
    assert_eq!(end(running).await.unwrap().code, Some(5));
    // Its own parent waits for it, so that it is no zombie for long.
    assert!(stat(supervisor).is_none(), "{:?}", stat(supervisor));
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_descriptors_of_a_program_are_as_usual() {
    let mut running = start("grep -E 'Sig(Blk|Ign)' /proc/self/status; ps -o sid=,pgid= $$").await;
    let mut text = Vec::new();
    while let Some(Ok(output)) = running.output.next().await {
        if let Output::Bytes(_, bytes) = output {
            text.extend_from_slice(&bytes);
        }
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("SigBlk:\t0000000000000000\n"), "{text}");
    assert!(text.contains("SigIgn:\t0000000000000000\n"), "{text}");
    let id = running.control.id().to_string();
    let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, [&id, &id], "{text}");
}

#[test]
#[expect(unsafe_code, reason = "no shell ignores the signals of the C library")]
fn a_program_ignores_no_signal_that_haft_was_started_with_ignored() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "supervision::signals_and_descriptors_of_a_program_are_as_usual";
    child.args(["--exact", name, "--nocapture"]);
    // As in a window of tmux, under nohup and behind `&`; and two that are the C library's.
    let ignored = [libc::SIGTTIN, libc::SIGTTOU, libc::SIGHUP, libc::SIGINT, 32, 33, 64];
    // SAFETY: only system calls are made before exec, with an action that is valid for each.
    unsafe {
        child.pre_exec(move || {
            let action = [libc::SIG_IGN as u64, 0, 0, 0];
            for signal in ignored {
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), none, 8);
            }
            Ok(())
        });
    }
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

/// Runs only as the child of a test: starts commands that never end, says so, and waits.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn child_that_is_killed() {
    let Ok(sleep) = std::env::var("HAFT_TEST_TREE") else { return };
    let ways = ways(&sleep);
    let mut all = join_all(ways.iter().map(|text| start(text))).await;
    for running in &mut all {
        said(running, "ready").await;
    }
    // The last of them stops the supervisor, as none can be started after it.
    let stops = format!("kill -STOP $(ps -o ppid= -p $PPID); echo ready; sleep {sleep}");
    let mut last = start(&stops).await;
    said(&mut last, "ready").await;
    println!("\nall ready");
    std::future::pending::<()>().await;
}

/// Commands that leave children in every way, and go on themselves.
fn ways(sleep: &str) -> Vec<String> {
    [
        "sleep N & echo ready",
        "setsid sleep N & sleep 0.1; echo ready",
        "( (sleep N &) & ); echo ready",
        "nohup sleep N >/dev/null 2>&1 & echo ready",
        "sleep N & disown 2>/dev/null; echo ready",
        "(trap '' TERM HUP; while :; do sleep N & wait; done) & trap '' TERM; sleep 0.1; echo ready",
        "(exec 0</dev/null; exec sleep N) & (sleep N | cat) & echo ready",
        "script -qfc 'echo ready; sleep N' /dev/null & sleep 0.2",
        "sleep N & kill -STOP $!; echo ready",
        "env -i setsid sh -c '(exec >/dev/null 2>&1; env -i setsid sleep N &)'; echo ready",
    ]
    .iter()
    .map(|text| format!("{text}; sleep N").replace('N', sleep))
    .chain([format!("{}; echo ready; sleep {sleep}", without_main_thread(sleep))])
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_killed_parent() {
    let sleep = own_sleep(5);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervision::child_that_is_killed", "--ignored", "--nocapture"])
        .env("HAFT_TEST_TREE", &sleep)
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "all ready"), "it ended before");
    assert!(with_word(&sleep).len() >= 10, "{:?}", with_word(&sleep));
    let mut tree: HashSet<u32> = HashSet::from([child.id()]);
    loop {
        let below = |pid: &u32| stat(*pid).is_some_and(|(_, parent)| tree.contains(&parent));
        let more: Vec<u32> = processes().filter(|pid| !tree.contains(pid)).filter(below).collect();
        if more.is_empty() {
            break;
        }
        tree.extend(more);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    tree.retain(|pid| *pid != child.id());
    while tree.iter().any(|pid| stat(*pid).is_some()) {
        let left: Vec<_> = tree.iter().filter_map(|pid| Some((pid, stat(*pid)?))).collect();
        assert!(begun.elapsed() < GONE, "{left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    all_gone(&sleep).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_and_open_input_go_through() {
    let long = "x".repeat(100_000);
    let args = vec![long.clone(); 8];
    let program = Program::Script { text: "printf %s \"$8\"; cat".into(), args };
    let spawn = Spawn { program, stdin: Stdin::Bytes(Bytes::from_static(b"end")), ..script("") };
    let mut running = Local::new().shell().unwrap().spawn(spawn).await.unwrap();
    let mut all = Vec::new();
    while let Some(Ok(output)) = running.output.next().await {
        if let Output::Bytes(_, bytes) = output {
            all.extend_from_slice(&bytes);
        }
    }
    assert!(all == format!("{long}end").into_bytes(), "{} bytes", all.len());
}

/// Commands that do everything that makes ending them hard.
fn random_command(random: &mut impl FnMut(usize) -> usize, sleep: &str) -> String {
    const BEGIN: &[&str] = &[
        "",
        "",
        "trap '' TERM; ",
        "trap 'echo trapped' TERM INT HUP; ",
        "set -m; ",
        "exec 2>&1; ",
        "trap '' TERM; (trap '' TERM HUP; sleep N) & ",
        "ulimit -n 20; ",
    ];
    const PARTS: &[&str] = &[
        "sleep N & ",
        "setsid sleep N & ",
        "( (sleep N &) & ); ",
        "nohup sleep N >/dev/null 2>&1 & ",
        "(sleep N | cat) & ",
        "yes | head -c 300000; ",
        "yes >&2 & ",
        "(yes & yes) | tail -c 9 & ",
        "cat; ",
        "(exec >/dev/null 2>&1; env -i setsid sleep N &); ",
        "sleep N & kill -STOP $!; ",
        "(trap '' TERM; while :; do sleep N & wait; done) & ",
        "seq 1 20000; ",
        "printf 'x'; ",
        "for i in 1 2 3 4 5 6 7 8; do sleep N & done; ",
        "sleep 0.05; ",
        "kill -STOP $$ & ",
        "(sh -c 'sh -c \"setsid sleep N &\" & wait' &); ",
        "exec 1>&-; ",
        "false; ",
        "kill $$; ",
    ];
    const END: &[&str] =
        &["", "", "", "exit 3", "sleep N", "wait", "exec sleep N", "yes", "kill -9 $$"];
    let mut text = BEGIN[random(BEGIN.len())].to_owned();
    for _ in 0..random(5) {
        text.push_str(PARTS[random(PARTS.len())]);
    }
    text.push_str(END[random(END.len())]);
    text.replace('N', sleep)
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Natural,
    Stop,
    Drop,
}

/// Runs one command, ends it at its deadline and says what was wrong.
async fn ended(text: &str, sleep: &str, ending: Ending, after: Duration) -> Result<(), String> {
    let running = start(text).await;
    let control = running.control.clone();
    let mut end = Box::pin(end(running));
    let over = tokio::time::timeout(after, &mut end).await;
    let deadline = Instant::now();
    match (over, ending) {
        (Ok(_), _) => {}
        (Err(_), Ending::Drop) => drop(end),
        (Err(_), Ending::Natural | Ending::Stop) => {
            control.stop();
            if let Err(error) = end.await {
                return Err(format!("{text}\n{error}"));
            }
        }
    }
    // The tool answers within a second whatever its host does; here the whole tree has ended.
    if deadline.elapsed() > GONE {
        return Err(format!("{text}\nended {:?} after its deadline", deadline.elapsed()));
    }
    while !with_word(sleep).is_empty() {
        if deadline.elapsed() > GONE {
            return Err(format!("{text}\n{:?} are left", with_word(sleep)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_commands_leave_nothing() {
    end(start("true").await).await.unwrap();
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    let count = haft_testkit::machine::times(60);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let all = (0..count).map(|number| {
        let sleep = format!("2{number:06}.{}", std::process::id());
        let ending = [Ending::Natural, Ending::Stop, Ending::Drop][random(3)];
        let after = Duration::from_millis(random(700) as u64);
        (random_command(&mut random, &sleep), sleep, ending, after)
    });
    let all: Vec<_> = all.collect();
    let runs = all.iter().map(|(text, sleep, ending, after)| ended(text, sleep, *ending, *after));
    let errors: Vec<String> = futures::stream::iter(runs)
        .buffer_unordered(4)
        .filter_map(|result| async { result.err() })
        .collect()
        .await;
    assert!(errors.is_empty(), "{} of {count}: {errors:#?}", errors.len());
    // Following threads end shortly after what they say last.
    let until = Instant::now() + GONE;
    // Neither this process nor its supervisor keeps what has ended.
    let own = std::process::id();
    let ours = |pid: u32| pid == own || stat(pid).is_some_and(|(_, parent)| parent == own);
    let dead = || processes().filter_map(stat).any(|(state, parent)| state == "Z" && ours(parent));
    while descriptors() > before || dead() {
        assert!(Instant::now() < until, "{} descriptors, then {}", before, descriptors());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_under_a_limit_ends() {
    // Root is under no such limit, so it is somebody else's bomb there.
    let bomb = "b() { b | b & }; b; sleep 1000";
    let root = rustix::process::getuid().is_root();
    let other = "exec setpriv --reuid=64321 --regid=64321 --clear-groups";
    let limit = "bash -c 'ulimit -u 150; eval \"$0\"'";
    let text = format!("{} {limit} '{bomb}'", if root { other } else { "" });
    let mut running = start(&text).await;
    let bombs = || {
        let is_one = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.windows(8).any(|part| part == b"b | b & "))
        };
        processes().filter(is_one).count()
    };
    while bombs() < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let begun = Instant::now();
    running.control.stop();
    while let Some(output) = running.output.next().await {
        output.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    while bombs() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{} are left", bombs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What a command says until it ends, and how it ends.
async fn to_its_end(running: &mut Running) -> (String, Exit) {
    let mut all = Vec::new();
    loop {
        match running.output.next().await.unwrap().unwrap() {
            Output::Bytes(_, bytes) => all.extend_from_slice(&bytes),
            Output::Report(_) => {}
            Output::Exit(exit) => return (String::from_utf8(all).unwrap(), exit),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_to_be_kept_goes_on_with_all_below_it() {
    let (below, other, short) = (own_sleep(4), own_sleep(5), own_sleep(6));
    let names = ["a-very-long-name-of-a-daemon", "/bin", "tail"].map(str::to_owned);
    // It loses its parent and its session, and holds the pipes of the command.
    let daemon = format!("trap 'echo bye; exit' TERM; sleep {below} & echo up; wait");
    let daemon = format!("exec -a /opt/{} bash -c \"{daemon}\"", names[0]);
    let wait = |sleep: &str| format!("until pgrep -f '^sleep {sleep}' >/dev/null; do :; done");
    let text = format!(
        "(setsid bash -c '{}' &); (sleep {other} &); {}; {}; printf end; exit 3",
        daemon.replace('\'', "'\\''"),
        wait(&below),
        wait(&other)
    );
    let keep = || Spawn { keep: names.to_vec(), ..script(&text) };
    let shell = Local::new();
    let mut running = shell.shell().unwrap().spawn(keep()).await.unwrap();
    let (all, exit) = to_its_end(&mut running).await;
    assert_eq!((&*all, exit.code), ("up\nend", Some(3)), "{exit:?}");
    let has = |list: &[(u32, String)], word: &str| list.iter().any(|(_, line)| line.contains(word));
    assert!(has(&exit.kept, &names[0]) && has(&exit.kept, &below), "{exit:?}");
    assert!(exit.kept.len() == 2 && exit.stopped.len() == 1, "{exit:?}");
    assert!(has(&exit.stopped, &other) && with_word(&other).is_empty(), "{exit:?}");
    assert_eq!(with_word(&below).len(), 1);
    running.control.stop();
    let (all, exit) = to_its_end(&mut running).await;
    assert_eq!((&*all, exit.code, exit.kept.len()), ("bye\n", Some(3), 0), "{exit:?}");
    assert!(running.output.next().await.is_none());
    all_gone(&below).await;
    // Whoever drops it ends it, too.
    let mut running = shell.shell().unwrap().spawn(keep()).await.unwrap();
    assert_eq!(to_its_end(&mut running).await.1.kept.len(), 2);
    drop(running);
    all_gone(&below).await;
    // One that has no pipe, by the name that the system has of it; it ends by itself.
    let text = format!("sleep {short} & exec >/dev/null 2>&1; tail -f --pid=$! /dev/null & ");
    let text = format!("{text} {}", wait(&short));
    let spawn = Spawn { keep: names.to_vec(), ..script(&text) };
    let mut running = shell.shell().unwrap().spawn(spawn).await.unwrap();
    let (_, exit) = to_its_end(&mut running).await;
    assert!(has(&exit.stopped, &short) && has(&exit.kept, "tail"), "{exit:?}");
    let (_, exit) = to_its_end(&mut running).await;
    assert!(exit.kept.is_empty() && exit.stopped.is_empty(), "{exit:?}");
}
