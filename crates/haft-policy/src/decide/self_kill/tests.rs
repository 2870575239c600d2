//! What would end haft, by example.

use super::*;

fn found(text: &str) -> bool {
    ends_in(text, &Parts::of(text), &[&haft()]).is_some()
}

fn haft() -> OwnProcesses {
    OwnProcesses {
        ids: vec![4242, 4200],
        names: vec!["haft".into(), "tool-supervisor".into()],
        lines: vec!["haft -p mend the server on port 8080".into(), "tool-supervisor".into()],
        users: vec!["0".into(), "root".into()],
        terminals: vec!["pts/7".into()],
        ..OwnProcesses::default()
    }
}

/// A shell, and the server of a terminal above it.
fn above() -> [OwnProcesses; 2] {
    let one = |id: u32, name: &str, line: &str, users: [&str; 2]| OwnProcesses {
        ids: vec![id, id],
        names: vec![name.into()],
        lines: vec![line.into()],
        users: users.map(Into::into).to_vec(),
        terminals: vec!["pts/7".into()],
        ..OwnProcesses::default()
    };
    [
        one(4100, "bash", "-bash", ["0", "root"]),
        one(4000, "tmux: server", "tmux new -s work", ["1000", "kim"]),
    ]
}

#[test]
fn what_ends_what_haft_runs_below_is_found() {
    let all = above();
    let all = [&haft(), &all[0], &all[1]];
    for (text, wanted) in [
        ("pkill bash", 4100),
        ("pkill -9 -x bash", 4100),
        ("killall bash", 4100),
        ("killall -r '^ba'", 4100),
        ("pkill -f -- -bash", 4100),
        ("pkill -t pts/7 bash", 4100),
        ("kill -9 4100", 4100),
        ("kill -- -4100", 4100),
        ("pkill -s 4100", 4100),
        ("pkill -g 4100,77", 4100),
        ("kill $(pgrep bash)", 4100),
        ("p=4100; kill $p", 4100),
        ("echo bash | xargs pkill", 4100),
        ("trap 'killall bash' EXIT", 4100),
        ("pkill -f 'tmux new'", 4000),
        ("pkill -u 1000 tmux", 4000),
        ("pkill tmux", 4000),
        ("tmux kill-server", 4000),
        ("tmux kill-session", 4000),
        ("pkill -9 -t pts/7", 4242),
        ("pkill haft; pkill bash", 4242),
    ] {
        let of = ends_in(text, &Parts::of(text), &all).map(|found| found.of.ids[0]);
        assert_eq!(of, Some(wanted), "{text}");
    }
    for text in [
        "pkill -f my_server",
        "pkill -P $$ bash",
        "pkill -P 77 bash",
        "pkill -u nobody bash",
        "pkill -u 33 bash",
        "pkill -t pts/3 bash",
        "pkill -t /dev/pts/3",
        "pkill -x bas",
        "pkill node",
        "killall node",
        "killall ba",
        "kill 4101",
        "kill 77; bash -c true",
        "pkill -0 nginx",
        "pgrep bash",
        "tmux kill-session -t build",
        "tmux -L other kill-server",
        "tmux new -d -s kill-server-test",
        "pkill -g 0",
    ] {
        let found = ends_in(text, &Parts::of(text), &all).map(|found| found.why);
        assert_eq!(found, None, "{text}");
    }
}

#[test]
fn what_a_command_ends_of_itself_is_its_own() {
    // A process whose group is beyond what can be seen from here has the number 0 for it.
    let beyond = OwnProcesses {
        ids: vec![4300, 0, 0],
        names: vec!["outer".into()],
        ..OwnProcesses::default()
    };
    for text in [
        "kill $$",
        "kill -CHLD $$",
        "kill -TERM 0",
        "kill 0",
        "kill -- -0",
        "f() { kill -INT $$; }; f",
        "setsid sh -c 'kill 0'",
        "trap 'kill 0' EXIT; sleep 1 & echo hi",
        "pkill -g 0 sleep",
        "kill $BASHPID",
    ] {
        let found = ends_in(text, &Parts::of(text), &[&haft(), &beyond]).map(|found| found.why);
        assert_eq!(found, None, "{text}");
    }
    for text in ["kill 4300", "kill -TERM -4300", "kill $PPID", "kill 0 4242", "kill -9 -1"] {
        assert!(ends_in(text, &Parts::of(text), &[&haft(), &beyond]).is_some(), "{text}");
    }
}

#[test]
fn what_ends_haft_is_found() {
    for text in [
        "pkill haft",
        "pkill -9 haft",
        "pkill -KILL -x haft",
        "pkill ha.t",
        "pkill -i HAFT",
        "pkill -f server",
        "pkill -f -u root server",
        "pkill --signal KILL --full server",
        "cd /tmp && sudo pkill -f server; true",
        "pkill -v nginx",
        "pkill -u root",
        "killall haft",
        "killall -9 haft",
        "killall -I HAFT",
        "killall -r 'h.ft'",
        "killall -u root",
        "killall5 -9",
        "kill 4242",
        "kill -9 4242",
        "kill -s TERM 1 4242",
        "kill -TERM -4200",
        "kill -9 -1",
        "kill -- -1",
        "kill $(pgrep -f server)",
        "pgrep -f server | xargs kill -9",
        "kill -9 `pidof haft`",
        "bash -c 'pkill haft'",
        "(sleep 1; pkill haft) &",
        "pk\"ill\" haft",
        "killall --user root",
        "killall --user=root",
        "pkill -u 0",
        "pkill -uroot haft",
        "pkill --euid root",
        "pkill -G root",
        "pkill -g 4200",
        "pkill -P 4242",
        "skill haft",
        "trap 'pkill haft' EXIT; make",
        "ps aux | grep haft | grep -v grep | awk '{print $2}' | xargs kill",
        "kill $(ps aux | grep server | awk '{print $2}')",
        "kill -9 $(ps aux | grep '[h]aft' | awk '{print $2}')",
        "ps aux | awk '/haft/ {print $2}' | xargs kill -9",
        "ps -ef | grep -i HAFT | while read u p r; do kill $p; done",
        "for p in $(pgrep haft); do kill -9 \"$p\"; done",
        "Stop-Process -Name haft -Force",
        "stop-process -n 'node', 'HA*'",
        "spps 77, 4242",
        "Stop-Process -Id 4242",
        "Get-Process haft | Stop-Process",
        "Get-Process -Name h?ft | Stop-Process -Force",
        "Get-Process | Stop-Process",
        "kill -Name haft",
    ] {
        assert!(found(text), "{text}");
    }
}

#[test]
fn what_only_shows_once_it_is_read_is_found() {
    for text in [
        "k{ill,} 4242",
        "$'\\x6bill' -9 4242",
        "p=4242; kill \"$p\"",
        "a='pkill haft'; $a",
        "a=pkill; b=haft; $a $b",
        "x() { kill 4242; }; x",
        "command -p pkill haft",
        "bash -c \"pkill $'haft'\"",
    ] {
        assert!(found(text), "{text}");
    }
}

#[test]
fn what_is_handed_on_is_found() {
    let texts = [
        "P=haft; pkill $P",
        "P=haft\npkill -9 \"$P\"",
        "echo haft | xargs pkill",
        "printf '%s\\n' haft | xargs -n1 pkill -9",
        "echo 4242 | xargs kill -9",
        "xargs pkill <<< haft",
        "xargs kill <<E\n77 4242\nE",
        "echo haft | xargs -I{} pkill {}",
        "echo haft | xargs -I % sh -c 'pkill %'",
        "f(){ pkill \"$1\"; }; f haft",
        "f() { local n=$1; pkill -x \"$n\"; }\nf node\nf haft",
        "f(){ pkill \"$@\"; }; f -9 haft",
        "g(){ pkill \"$1\"; }; f(){ g \"$2\"; }; f x haft",
        "set -- haft; pkill $1",
        "bash -c 'pkill \"$1\"' _ haft",
        "bash -c 'pkill $0' haft",
        "for p in node haft; do pkill \"$p\"; done",
        "for p in haft; do pgrep $p | xargs kill; done",
        "echo haft | while read p; do pkill $p; done",
        "while read -r a p; do pkill $p; done <<< 'a haft'",
        "names=(node haft); pkill ${names[1]}",
        "kill -9 $PPID",
        "kill \"$PPID\"",
        "kill -TERM -- -$PPID",
        "p=$PPID; kill $p",
        "f(){ kill \"$1\"; }; f $PPID",
        "echo $PPID | xargs kill",
        "kill $(ps -o ppid= -p $$)",
        "ps -o ppid= $$ | xargs kill",
        "kill -9 $(ps -o ppid= -p $PPID)",
        "pkill -P $PPID",
        "kill -TERM -1",
        "kill -s KILL -1",
        "kill -n 9 -- -1",
        "kill -9 -- 77 -1",
        "timeout 5 sudo -E env A=b pkill haft",
        "busybox pkill haft",
        "bash <<< 'pkill haft'",
        "echo 'pkill haft' | sh",
        "eval \"pkill haft\"",
        "parallel pkill ::: haft",
        "find . -exec pkill haft \\;",
    ];
    let odd: Vec<_> = texts.into_iter().filter(|text| !found(text)).collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

#[test]
fn what_ends_haft_is_told_as_it_was_written() {
    for text in ["kill -9 $PPID", "kill -TERM -- -$PPID", "kill -s KILL -1", "pkill -x haft"] {
        let found = ends_in(text, &Parts::of(text), &[&haft()]).unwrap().why;
        assert!(found.starts_with(&format!("{text}: ")), "{found}");
    }
}

#[test]
fn what_hands_on_something_else_is_not() {
    let texts = [
        "P=nginx; pkill $P",
        "pkill -f my-server",
        "echo nginx | xargs pkill",
        "echo haft; echo nginx | xargs pkill",
        "echo haft is fine; pkill \"$P\"",
        "lsof -ti:3000 | xargs kill -9",
        "kill $(lsof -t -i:3000)",
        "kill $(cat server.pid)",
        "cat server.pid | xargs kill",
        "f(){ pkill \"$1\"; }; f nginx",
        "say(){ echo \"$1\"; }; f(){ pkill \"$1\"; }; say haft; f nginx",
        "for p in node nginx; do pkill \"$p\"; done",
        "for p in haft; do echo $p; done; pkill node",
        "echo nginx | while read p; do pkill $p; done",
        "kill -0 $PPID",
        "ps -o ppid= $$; kill $!",
        "pkill -P $$",
        "kill -9 $$",
        "kill -- -$!",
        "server & pid=$!; kill $pid; wait $pid",
        "kill -TERM $pid 2>/dev/null || true",
        "echo $PPID",
        "kill 0",
    ];
    let odd: Vec<_> = texts.into_iter().filter(|text| found(text)).collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

#[test]
fn what_ends_something_else_is_not() {
    for text in [
        "pkill nginx",
        "pkill -f nginx",
        "pkill -x server",
        "pkill -9 -u root nginx",
        "pgrep -f server",
        "pgrep haft",
        "killall node",
        "killall -r '^node'",
        "kill 4243",
        "kill -9 42",
        "kill -0 4242",
        "kill -l",
        "kill -HUP 77",
        "kill -1 77",
        "kill %1",
        "kill $!",
        "kill 0",
        "echo pkill haft",
        "grep -r 'pkill haft' .",
        "git commit -m 'killall haft'",
        "pkill 'ha[ft'",
        "pkill -u 65534",
        "pkill -u nobody haft",
        "killall -u nobody",
        "killall -u nobody haft",
        "pkill -g 77",
        "trap 'kill $!' EXIT; make & wait",
        "pgrep haft | wc -l; kill $!",
        "pgrep -f haft; kill 12345",
        "ps aux | grep nginx | awk '{print $2}' | xargs kill",
        "ps aux | grep haft; kill 12345",
        "ps aux | grep -v haft | grep nginx | awk '{print $2}' | xargs kill",
        "grep -r server . ; kill $pid",
        "Stop-Process -Name node",
        "Stop-Process -Id 77 -Force",
        "Stop-Process 77",
        "Get-Process node | Stop-Process",
        "Get-Process | Where-Object CPU -gt 9 | Stop-Process",
        "Get-Process haft",
        "ps -ef | grep node | xargs kill",
    ] {
        assert!(!found(text), "{text}");
    }
}
