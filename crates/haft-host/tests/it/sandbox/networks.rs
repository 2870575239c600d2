//! The network that confined programs share, and what is counted of what they try of it.

use std::{collections::BTreeSet, path::Path, time::Duration};

use futures::StreamExt;
use haft_host::{
    Attempts, Exit, Host, Level, Limits, Local, Net, Network, Output, Program, Running, Spawn,
    Stdin, Tried,
};

use super::{World, again_as_nobody, attack_with, path, run, script, working};

/// A server at a free port of 127.0.0.1, which it prints; it answers once and goes on.
const SERVER: &str = "exec python3 -u -c \"
import socket
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(5)
print(s.getsockname()[1])
while True:
    c = s.accept()[0]; c.sendall(b'hello'); c.close()
\"";

fn held(level: Level) -> Limits {
    let write = vec![path(&std::env::temp_dir().canonicalize().unwrap())];
    Limits { level: Some(level), write, ..Limits::default() }
}

/// A program with what it offers of a network.
fn with(text: &str, limits: Limits, network: Option<&Network>) -> Spawn {
    Spawn { network: network.cloned(), ..script(Path::new("/"), text, limits) }
}

async fn tries(level: Level, text: &str, network: Option<&Network>) -> Tried {
    let (said, exit) = run(with(text, held(level), network)).await;
    exit.tried.unwrap_or_else(|| panic!("{level}: {said}"))
}

/// What bash connects to, its errors left out.
fn connect(to: &str) -> String {
    format!("(: <>/dev/{to}) 2>/dev/null; ")
}

/// Waits for the first line of a program.
async fn first_line(running: &mut Running) -> String {
    let mut said = String::new();
    while !said.contains('\n') {
        match running.output.next().await {
            Some(Ok(Output::Bytes(_, bytes))) => said.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} after {said}"),
        }
    }
    said.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_tries_is_counted() {
    for level in working().await {
        let network = Network::default();
        // At level L there is no socket for any of them.
        let at = |unrouted, refused, undelivered, sockets| match level {
            Level::Namespaces => Attempts { unrouted, refused, undelivered, sockets: 0 },
            Level::Landlock => Attempts { sockets, ..Attempts::default() },
        };
        let outside = connect("tcp/203.0.113.1/80");
        let own = connect("tcp/127.0.0.1/1");
        let datagram = "exec 3<>/dev/udp/127.0.0.1/1; echo x >&3; echo x >&3; ";
        for (text, wanted) in [
            ("true".to_owned(), Attempts::default()),
            (outside.clone(), at(1, 0, 0, 1)),
            (own.repeat(3), at(0, 3, 0, 3)),
            (format!("{outside}{own} exit 3"), at(1, 1, 0, 2)),
            // What its own children do counts, however they were started.
            (format!("(setsid bash -c '{outside}'; exit 0)"), at(1, 0, 0, 1)),
        ] {
            for network in [None, Some(&network)] {
                let tried = tries(level, &text, network).await;
                assert_eq!(tried.attempts, Some(wanted), "{level}: {text}");
                let shares = network.is_some() && level == Level::Namespaces;
                assert_eq!((tried.level, tried.shared), (level, shares));
            }
        }
        if level == Level::Namespaces {
            let tried = tries(level, datagram, None).await;
            assert!(tried.attempts.unwrap().undelivered > 0, "{tried:?}");
            let on = Limits { net: Net::On, ..held(level) };
            let (_, exit) = run(with("true", on, Some(&network))).await;
            assert_eq!(exit.tried.unwrap().attempts, None, "the machine's counters say nothing");
        }
    }
    let (_, exit) =
        run(Spawn { network: None, ..script(Path::new("/"), "true", Limits::default()) }).await;
    assert!(exit.tried.is_some());
    again_as_nobody("networks::what_a_program_tries_is_counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_sockets_are_refused_nobody_waits_and_all_are_counted() {
    for level in working().await.into_iter().filter(|level| *level == Level::Landlock) {
        let text = "exec python3 -c \"
import socket, threading
def many():
    for _ in range(2000):
        try:
            socket.socket()
        except PermissionError:
            pass
all = [threading.Thread(target=many) for _ in range(5)]
[t.start() for t in all]; [t.join() for t in all]
\"";
        let tried = tries(level, text, None).await;
        assert_eq!(tried.attempts.unwrap().sockets, 10_000);
        // Refused with the very error that it is refused with unheard, and other families unheard.
        let text = "exec python3 -c \"
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
    try:
        socket.socket(family)
    except OSError as error:
        print(error.errno)
\"";
        let (said, exit) = run(with(text, held(level), None)).await;
        assert_eq!(said, "1\n1\n1\n1\n");
        assert_eq!(exit.tried.unwrap().attempts.unwrap().sockets, 2);
        // A program that is killed while it wants one ends like any other.
        let text = "exec 3< <(exec python3 -u -c \"
import socket
while True:
    try:
        socket.socket()
    except OSError:
        print('x')
\"); read -u 3; kill -9 $!; wait $!; exit 7";
        let (_, exit) = run(with(text, held(level), None)).await;
        assert_eq!(exit.code, Some(7));
        assert!(exit.tried.unwrap().attempts.unwrap().sockets > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_share_a_network_meet_there_and_nobody_else_does() {
    let host = Local::new();
    for level in working().await.into_iter().filter(|level| *level == Level::Namespaces) {
        let (network, other) = (Network::default(), Network::default());
        let spawn = Spawn { stdin: Stdin::Open, ..with(SERVER, held(level), Some(&network)) };
        let mut server = host.shell().unwrap().spawn(spawn).await.unwrap();
        let port = first_line(&mut server).await;
        let client = format!("cat </dev/tcp/127.0.0.1/{port}");
        let says = async |limits: Limits, network: Option<&Network>| {
            run(with(&client, limits, network)).await.0
        };
        assert_eq!(says(held(level), Some(&network)).await, "hello");
        let port_of_another = Limits { net: Net::Port(1), ..held(level) };
        for (what, limits, network) in [
            ("none", held(level), None),
            ("another", held(level), Some(&other)),
            ("hosts", port_of_another, Some(&network)),
            ("sockets", Limits { sockets: true, ..held(level) }, Some(&network)),
        ] {
            let said = says(limits, network).await;
            assert!(said.contains("refused") && !said.contains("hello"), "{what}: {said}");
        }
        // Nor does haft; it sees who listens all the same.
        let (number, process) = (port.parse().unwrap(), server.control.id());
        assert!(!host.listens(number, None).await);
        assert!(host.listens(number, Some(process)).await);
        let own = host.listens_of(number, process).await;
        assert_eq!(own, Some(vec![format!("127.0.0.1:{port}")]));
        let own = with("sleep 60", held(level), None);
        let apart = host.shell().unwrap().spawn(own).await.unwrap();
        assert!(!host.listens(number, Some(apart.control.id())).await);
        drop((server, apart));
        // It outlives its programs for as long as the session has it.
        // The server is told to end, and may take until it has.
        let connect = connect(&format!("tcp/127.0.0.1/{port}"));
        let mut refused = 0;
        for _ in 0..100 {
            let tried = tries(level, &connect, Some(&network)).await;
            assert!(tried.shared);
            refused = tried.attempts.unwrap().refused;
            if refused > 0 {
                break;
            }
        }
        assert!(refused > 0);
    }
    again_as_nobody("networks::programs_that_share_a_network_meet_there_and_nobody_else_does");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_a_shell_are_counted_by_themselves() {
    for level in working().await {
        let network = Network::default();
        let spawn =
            Spawn { stdin: Stdin::Open, report: true, ..with("", held(level), Some(&network)) };
        let spawn = Spawn { program: Program::Turns, ..spawn };
        // Before it began.
        tries(level, &connect("tcp/203.0.113.1/80"), Some(&network)).await;
        let mut shell = Local::new().shell().unwrap().spawn(spawn).await.unwrap();
        assert_eq!(shell.control.tried().await.unwrap().attempts, Some(Attempts::default()));
        let mut before = Attempts::default();
        for times in 1..4 {
            let text = format!("{} echo done\n", connect("tcp/203.0.113.1/80").repeat(times));
            let command = format!("eval \"$(printf %b '{}')\"\n", text.trim());
            shell.control.write(command.into()).await.unwrap();
            first_line(&mut shell).await;
            // At level L it is heard of beside the output.
            let (times, begun) = (times as u64, std::time::Instant::now());
            let now = loop {
                let now = shell.control.tried().await.unwrap().attempts.unwrap();
                let own = now.since(before);
                if own.unrouted + own.sockets >= times {
                    assert_eq!(own.unrouted + own.sockets, times, "{level}: {own:?}");
                    break now;
                }
                assert!(begun.elapsed() < Duration::from_secs(30), "{level}: {own:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            before = now;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sharing_a_network_gives_a_program_nothing_more() {
    for level in working().await.into_iter().filter(|level| *level == Level::Namespaces) {
        let network = Network::default();
        let done = async |network: Option<&Network>| -> (BTreeSet<String>, Exit) {
            let world = World::new();
            attack_with(&world, Some(world.limits(level)), network.cloned()).await
        };
        let (alone, _) = done(None).await;
        let (shared, exit) = done(Some(&network)).await;
        assert!(exit.tried.unwrap().shared);
        assert_eq!(shared, alone);
        // Neither the network nor who holds it can be changed, and none of its users is there.
        // bash itself counts: who is begun to count may be counted, or not.
        let text = "grep -h ^Cap /proc/self/status; \
            for act in 'ip link add x type dummy' 'ip link set lo down' 'ip route add default dev lo'; do \
            $act 2>/dev/null && echo \"done $act\"; done; \
            python3 -c \"
import fcntl, socket, struct
try:
    fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0)); print('done down')
except OSError:
    pass
\"; seen=(/proc/[0-9]*); echo ${#seen[@]}";
        let (with_network, _) = run(with(text, held(level), Some(&network))).await;
        let (without, _) = run(with(text, held(level), None)).await;
        assert_eq!(with_network, without);
        assert!(!with_network.contains("done") && with_network.contains("Cap"), "{with_network}");
    }
    again_as_nobody("networks::sharing_a_network_gives_a_program_nothing_more");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_holds_a_network_and_programs_in_it_end_with_their_keepers() {
    for level in working().await.into_iter().filter(|level| *level == Level::Namespaces) {
        let network = Network::default();
        let spaces = |process: u32| std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
        let mut server = Local::new()
            .shell()
            .unwrap()
            .spawn(with(SERVER, held(level), Some(&network)))
            .await
            .unwrap();
        first_line(&mut server).await;
        let space = spaces(server.control.id());
        let having = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let all =
                all.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
            let has = |entry: &std::fs::DirEntry| {
                std::fs::read_link(entry.path().join("ns/net")).is_ok_and(|found| found == space)
            };
            all.filter(has).count()
        };
        assert!(having() > 0);
        drop(server);
        let until = tokio::time::Instant::now() + Duration::from_secs(3);
        while having() > 0 {
            assert!(tokio::time::Instant::now() < until, "a process holds it");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
