//! What confined programs can do: every attack with what must come of it, at each level that this
//! machine has, as root and as an ordinary user.
//!
//! The attacks are run by this test program itself, started as a confined program ([`attacker`]).

#![expect(
    clippy::print_stdout,
    reason = "a test says which levels it could try, and what came of it"
)]

mod attacks;
mod networks;
mod trees;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    net::{TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, PermissionsExt},
            net::{SocketAddr, UnixDatagram, UnixListener},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use futures::StreamExt;
use haft_host::{
    Attack, Cell, Exit, Guard, Host, Level, Limits, Local, Net, Network, Output, Probe, Program,
    Restored, Spawn, in_trees,
};
use haft_types::{HostPath, Style};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use self::attacks::{ALL, Field, Segment};

/// Where [`attacker`] finds what there is to attack.
const FIELD: &str = "HAFT_TEST_FIELD";
/// Set where a test was started again as an ordinary user: a program that belongs to root, and makes
/// whoever runs it that.
const ORDINARY: &str = "HAFT_TEST_ORDINARY";
/// An ordinary user: nobody.
const NOBODY: u32 = 65534;

/// What is confined: not a test of its own.
#[test]
fn attacker() {
    let Ok(field) = env::var(FIELD) else { return };
    let field: Field = serde_json::from_str(&field).unwrap();
    for attack in ALL.iter().filter(|attack| attack.plain || !field.plain) {
        println!("\nattack:{}:{}", attack.name, (attack.run)(&field));
    }
}

fn path(path: &Path) -> HostPath {
    HostPath::new(path.as_os_str().as_bytes(), Style::Posix).unwrap()
}

/// A folder with all that is attacked, and the services that wait in it.
struct World {
    folder: tempfile::TempDir,
    field: Field,
    _services: (TcpListener, UnixListener, UnixListener, UnixDatagram, Segment, OwnedFd),
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str| {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "as it was").unwrap();
        };
        for name in ["file", "old", "long", "a", "mode", "times", "attribute"] {
            write(&format!("out/{name}"));
        }
        let module = "repo/.git/modules/m/config";
        let git = [".git/config", ".git/hooks/pre-commit", module];
        for name in ["b", "c", "file", "sub/.envrc"].into_iter().chain(git) {
            write(&format!("in/{name}"));
        }
        write("more/deep/.token");
        write("secret/file");
        fs::create_dir(root.join("temp")).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let pty = openpt(flags).unwrap();
        unlockpt(&pty).unwrap();
        let terminal = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap().into();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let name = SocketAddr::from_abstract_name(root.as_os_str().as_bytes()).unwrap();
        let field = Field {
            haft: std::process::id().cast_signed(),
            began: attacks::began(std::process::id().cast_signed()).unwrap(),
            network: attacks::network().unwrap(),
            tcp: tcp.local_addr().unwrap().port(),
            udp: udp.local_addr().unwrap().port(),
            plain: false,
            terminal,
            setuid: env::var_os(ORDINARY).map(PathBuf::from),
            disk: attacks::disk(),
            folder: root,
        };
        // It answers whoever reaches it; the thread ends with the process.
        thread::spawn(move || {
            while let Ok((_, from)) = udp.recv_from(&mut [0]) {
                let _ = udp.send_to(b"x", from);
            }
        });
        let services = (
            tcp,
            UnixListener::bind(field.folder.join("socket")).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
            UnixDatagram::bind(field.folder.join("datagrams")).unwrap(),
            Segment::new(&field),
            pty,
        );
        Self { folder, field, _services: services }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.field.folder.join(name)
    }

    fn limits(&self, level: Level) -> Limits {
        let write = ["in", "more"].map(|name| path(&self.at(name))).to_vec();
        Limits {
            protected: in_trees(&write[..1], &[".git/config", ".git/hooks", ".mcp.json"]),
            hidden: vec![path(&self.at("secret")), path(&self.at("more/deep/.token"))],
            guard: Guard {
                folders: vec![write[0].clone()],
                names: vec![".envrc".to_owned()],
                ..Guard::default()
            },
            write,
            level: Some(level),
            ..Limits::default()
        }
    }

    /// Every file outside: content, permissions, times, attributes.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let entries = fs::read_dir(self.at("out")).unwrap().flatten();
        entries
            .map(|entry| {
                let (path, found) = (entry.path(), entry.metadata().unwrap());
                let text = fs::read(&path).unwrap_or_default();
                let mut names = vec![0; 256];
                let length = rustix::fs::listxattr(&path, &mut names).unwrap_or(0);
                let rights = (found.mode(), found.mtime(), found.nlink(), &names[..length]);
                (path.clone(), format!("{text:?} {rights:?}"))
            })
            .collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_file(attacks::shared(&self.field));
        let _ = self.folder.path();
    }
}

async fn run(spawn: Spawn) -> (String, Exit) {
    let mut running = Local::new().shell().unwrap().spawn(spawn).await.unwrap();
    let (mut said, mut exit) = (Vec::new(), Exit::default());
    while let Some(output) = running.output.next().await {
        match output.unwrap() {
            Output::Bytes(_, bytes) => said.extend_from_slice(&bytes),
            Output::Report(_) => {}
            Output::Exit(end) => exit = end,
        }
    }
    (String::from_utf8_lossy(&said).into_owned(), exit)
}

fn script(cwd: &Path, text: &str, limits: Limits) -> Spawn {
    let program = Program::Script { text: text.into(), args: Vec::new() };
    Spawn { confine: Some(limits), ..Spawn::new(program, path(cwd)) }
}

/// Has this test program attack; which attacks were done.
async fn attack(world: &World, limits: Option<Limits>) -> (BTreeSet<String>, Exit) {
    attack_with(world, limits, None).await
}

/// The same in this network.
async fn attack_with(
    world: &World,
    limits: Option<Limits>,
    network: Option<Network>,
) -> (BTreeSet<String>, Exit) {
    let own = env::current_exe().unwrap();
    let words = [own.as_os_str().as_bytes(), b"--exact", b"sandbox::attacker", b"--nocapture"];
    let words = words.iter().map(|word| word.to_vec()).collect();
    let field = Field { plain: limits.is_none(), ..world.field.clone() };
    let set = vec![(FIELD.to_owned(), serde_json::to_string(&field).unwrap())];
    let wanted = ALL.iter().filter(|attack| attack.plain || !field.plain).count();
    let spawn = Spawn::new(Program::Argv(words), path(&world.at("in")));
    let (said, exit) = run(Spawn { set, confine: limits, network, ..spawn }).await;
    let told: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("attack:")).collect();
    assert_eq!(told.len(), wanted, "{said}\n{exit:?}");
    let done = told.iter().filter_map(|line| line.strip_suffix(":true"));
    (done.map(ToOwned::to_owned).collect(), exit)
}

async fn levels() -> Vec<Probe> {
    let levels = Local::new().shell().unwrap().levels().await;
    assert_eq!(levels.len(), Level::ALL.len());
    levels
}

/// Those that work, the others printed.
async fn working() -> Vec<Level> {
    let mut working = Vec::new();
    for probe in levels().await {
        if probe.works() {
            working.push(probe.level);
        } else {
            println!("{} could not be tried: {:?}", probe.level, probe);
        }
    }
    println!("levels that could be tried: {working:?}");
    working
}

/// What `haft doctor` says of an attack stands for these.
const DOCTOR: &[(Attack, &[&str])] = &[
    (
        Attack::Write,
        &[
            "write a file outside",
            "make a file outside",
            "make a folder outside",
            "remove a file outside",
            "cut a file outside",
            "write through a link",
            "write through a hard link",
            "rename a file in",
            "rename a file out",
            "exchange with one outside",
            "rename the writable folder",
            "write by /proc/self/root",
            "write by /proc/self/cwd",
            "write by haft's root",
            "open a setting of the kernel",
            "make a device",
            "preload into the next tool",
        ],
    ),
    (Attack::Rights, &["permissions outside", "times outside", "attributes outside"]),
    (
        Attack::Read,
        &[
            "read what is hidden",
            "read it through a link",
            "read it by another name",
            "read a hidden file inside",
            "read a disk",
        ],
    ),
    (Attack::List, &["list what is hidden"]),
    (
        Attack::Protected,
        &[
            "change what is protected",
            "make what is protected",
            "move its folder away",
            "change what is protected deep down",
            "make what is protected deep down",
            "change what a module protected",
        ],
    ),
    (Attack::Signal, &["signal haft"]),
    (
        Attack::Trace,
        &[
            "trace haft",
            "trace what holds it",
            "read haft's variables",
            "read haft's memory",
            "take haft's descriptors",
        ],
    ),
    (Attack::Words, &["read haft's command line", "read haft's state"]),
    (Attack::Tcp, &["TCP"]),
    (Attack::Udp, &["UDP"]),
    (Attack::Socket, &["a unix socket", "a unix socket of datagrams"]),
    (Attack::Abstract, &["an abstract socket"]),
    (Attack::Netlink, &["netlink", "raw sockets"]),
    (Attack::IoUring, &["io_uring"]),
    (Attack::Spaces, &["unshare", "clone into namespaces"]),
    (Attack::Mount, &["mount inside", "bind a folder inside"]),
    (Attack::Terminal, &["type at the terminal", "write to a terminal of others"]),
];

/// What came of each attack at a level.
async fn cells(level: Level) -> BTreeMap<&'static str, Cell> {
    let world = World::new();
    let before = world.outside();
    let (done, exit) = attack(&world, Some(world.limits(level))).await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let git = [".git/config", ".git/hooks", ".mcp.json"];
    let back = exit.put_back.iter().map(|back| match back {
        Restored::Restored(path, _) | Restored::Removed(path, _) => path.clone(),
        other => panic!("{other:?}"),
    });
    let deep = ["sub/.envrc", "sub/new/.envrc", "repo/.git/modules/m/config"];
    let wanted = git.iter().chain(&deep).map(|name| path(&world.at("in").join(name)));
    let sorted = |mut paths: Vec<HostPath>| {
        paths.sort();
        paths
    };
    assert_eq!(sorted(back.collect()), sorted(wanted.collect()), "{level}");
    let text = |name: &str| fs::read_to_string(world.at(name)).unwrap();
    let whole = text("in/.git/config") == "as it was"
        && text("in/.git/hooks/pre-commit") == "as it was"
        && text("in/sub/.envrc") == "as it was"
        && text("in/repo/.git/modules/m/config") == "as it was"
        && !world.at("in/.git/hooks/evil").exists()
        && !world.at("in/.mcp.json").exists();
    assert!(whole, "what is protected is not as it was");
    let of = |name: &str| match done.contains(name) {
        false => Cell::Stopped,
        true if name.contains("protected") || name.contains("its folder") => Cell::PutBack,
        true => Cell::Open,
    };
    let cells: BTreeMap<_, _> = ALL.iter().map(|attack| (attack.name, of(attack.name))).collect();
    // What says that it was stopped left nothing outside.
    if level == Level::Namespaces {
        assert_eq!(world.outside(), before);
        assert!(!attacks::shared(&world.field).exists(), "its /dev/shm is its own");
    } else {
        let names = |files: BTreeMap<PathBuf, String>| files.into_keys().collect::<Vec<_>>();
        let texts = |files: &BTreeMap<PathBuf, String>| {
            let text = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
            files.values().map(text).collect::<Vec<_>>()
        };
        let after = world.outside();
        assert_eq!(texts(&after), texts(&before));
        assert_eq!(names(after), names(before));
    }
    cells
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attack_meets_its_cell() {
    let user = if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user" };
    for probe in levels().await {
        let level = probe.level;
        if !probe.works() {
            println!("{level}, as {user}: could not be tried: {probe:?}");
            continue;
        }
        let column = usize::from(level == Level::Landlock);
        let cells = cells(level).await;
        println!("{level}, as {user}:");
        for attack in ALL {
            println!("  {:?}: {}", cells[attack.name], attack.name);
        }
        for attack in ALL {
            let wanted = attack.cells[column];
            let tolerated = !attack.plain && cells[attack.name] == Cell::Stopped;
            assert!(
                cells[attack.name] == wanted || tolerated,
                "{level}, as {user}: {}",
                attack.name
            );
        }
        for (tried, names) in DOCTOR {
            let told = probe.of(*tried).unwrap();
            let rank = |cell: Cell| {
                [Cell::Open, Cell::PutBack, Cell::Stopped].iter().position(|c| *c == cell)
            };
            for name in *names {
                assert!(
                    rank(told) <= rank(cells[name]),
                    "{level}: {tried:?} is told too well: {name}"
                );
            }
        }
    }
    again_as_nobody("every_attack_meets_its_cell");
}

/// Runs a test again as an ordinary user, where this one is root.
fn again_as_nobody(test: &str) {
    if !rustix::process::geteuid().is_root() || env::var_os(ORDINARY).is_some() {
        return;
    }
    // A program that belongs to root, which whoever runs it becomes.
    let shared = tempfile::tempdir().unwrap();
    let setuid = shared.path().join("setuid");
    let id = ["/usr/bin/id", "/bin/id"].iter().find(|id| Path::new(id).exists()).unwrap();
    fs::copy(id, &setuid).unwrap();
    fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(&setuid, PermissionsExt::from_mode(0o4755)).unwrap();
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", &format!("sandbox::{test}"), "--nocapture"]);
    again.env(ORDINARY, &setuid).current_dir("/").uid(NOBODY).gid(NOBODY);
    match again.output() {
        Ok(output) => {
            println!("{}", String::from_utf8_lossy(&output.stdout));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => println!("an ordinary user cannot run this program: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_work_where_nothing_confines() {
    let world = World::new();
    let (done, exit) = attack(&world, None).await;
    assert_eq!(exit.put_back, []);
    for attack in ALL.iter().filter(|attack| attack.plain) {
        assert!(done.contains(attack.name), "{} shows nothing", attack.name);
    }
    if let Some(setuid) = env::var_os(ORDINARY) {
        let said = Command::new(setuid).arg("-u").output().unwrap();
        assert_eq!(said.stdout, b"0\n", "setuid shows nothing");
    }
    again_as_nobody("attacks_work_where_nothing_confines");
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_commands_work_at_each_level() {
    for level in working().await {
        let world = World::new();
        let temp = Some(path(&world.at("temp")));
        let limits = Limits { temp, ..world.limits(level) };
        let inside = world.at("in");
        let check = async |text: &str, wanted: &str| {
            let (said, exit) = run(script(&inside, text, limits.clone())).await;
            assert_eq!((said.trim(), exit.code), (wanted, Some(0)), "{level}: {text}");
            assert_eq!((exit.stopped, exit.put_back), (Vec::new(), Vec::new()), "{level}: {text}");
        };
        check("echo one > new && mkdir -p d/e && mv new d/e/ && cat d/e/new", "one").await;
        check("chmod +x file && ln -s file l && ln file h && [ -x l ] && rm l h && echo ok", "ok")
            .await;
        check(
            "cat < <(printf '%s' a b | tr ab xy) > /dev/null; wait $!; cat < <(echo y); wait $!",
            "y",
        )
        .await;
        check("t=$(mktemp) && echo t > \"$t\" && case $t in */temp/*) cat \"$t\";; esac", "t")
            .await;
        check("printf 'x\\n' | sort | uniq -c | grep -c x; head -c 3 /dev/zero | wc -c", "1\n3")
            .await;
        check("sleep 100 & kill $!; wait $!; echo $?", "143").await;
        check(
            "(exit 7) ; echo $?; ls / > /dev/null && cat /etc/passwd > /dev/null && id -u | wc -l",
            "7\n1",
        )
        .await;
        check(
            "cat ../out/file && [ -r /proc/self/status ] && echo \" $(( $$ > 0 ))\"",
            "as it was 1",
        )
        .await;
        check(
            "git --version > /dev/null 2>&1; echo x > .git/index && cat .git/config",
            "as it was",
        )
        .await;
        let (_, exit) = run(script(&inside, "kill -KILL $$", limits.clone())).await;
        assert_eq!((exit.code, exit.signal), (None, Some(9)), "{level}");
        let (_, exit) = run(script(&inside, "trap '' TERM; exit 3", limits.clone())).await;
        assert_eq!(exit.code, Some(3), "{level}");
        let (_, exit) = run(script(&inside, "sleep 100 & disown; exit 4", limits.clone())).await;
        assert_eq!(exit.code, Some(4), "{level}");
        let stopped: Vec<&str> = exit.stopped.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(stopped, ["sleep 100"], "{level}");
    }
    again_as_nobody("ordinary_commands_work_at_each_level");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_reads_changes_nothing_at_all() {
    for level in working().await {
        let world = World::new();
        let limits = Limits { level: Some(level), ..Limits::default() };
        let before = world.outside();
        let out = world.at("out");
        for text in [
            "echo x > file",
            "echo x >> new",
            "rm old",
            "mkdir d",
            "mv a b",
            "chmod 600 mode",
            "touch times",
            "ln file hard",
            "ln -s file link",
            "mkfifo pipe",
            "truncate -s 1 long",
            "chmod 4755 mode",
            "cp file /tmp/haft-leaves-this",
            "cp file /dev/shm/haft-leaves-this && [ -e /proc/1/cwd/nothing ]",
            "exec 3<>file",
        ] {
            let (said, exit) = run(script(&out, text, limits.clone())).await;
            assert_ne!(exit.code, Some(0), "{level}: {text}: {said}");
        }
        assert_eq!(world.outside(), before, "{level}");
        for left in ["/tmp/haft-leaves-this", "/dev/shm/haft-leaves-this"] {
            assert!(!Path::new(left).exists(), "{level}: {left}");
        }
        let (said, exit) = run(script(&out, "cat file | tee /dev/null", limits)).await;
        assert_eq!((said.as_str(), exit.code), ("as it was", Some(0)), "{level}");
    }
    again_as_nobody("who_only_reads_changes_nothing_at_all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_none_one_port_or_all() {
    for level in working().await {
        let world = World::new();
        let tcp = world.field.tcp;
        let reach = async |net: Net, port: u16| {
            let text = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
            let limits = Limits { net, level: Some(level), ..Limits::default() };
            run(script(&world.at("out"), &text, limits)).await.1.code == Some(0)
        };
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = other.local_addr().unwrap().port();
        assert!(!reach(Net::Off, tcp).await, "{level}");
        assert!(reach(Net::On, tcp).await, "{level}");
        assert!(reach(Net::Port(tcp), tcp).await, "{level}");
        assert!(!reach(Net::Port(tcp), other).await, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_that_does_not_work_starts_nothing() {
    for probe in levels().await.iter().filter(|probe| !probe.works()) {
        let limits = Limits { level: Some(probe.level), ..Limits::default() };
        let spawn = script(Path::new("/"), "true", limits);
        let refused = Local::new().shell().unwrap().spawn(spawn).await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("was not started"), "{error}");
    }
    // What cannot be taken on whole is not taken on at all: a link that leads to itself.
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    for level in working().await {
        let limits = Limits { level: Some(level), hidden: vec![path(&link)], ..Limits::default() };
        let spawn = script(Path::new("/"), "true", limits);
        let refused = Local::new().shell().unwrap().spawn(spawn).await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("not started") && error.contains("link"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_shown_in_what_is_hidden_is_read_and_nothing_else_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["state/mine/out", "state/mine/kept/deep", "state/other/out", "work"] {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("c1"), format!("of {name}\n")).unwrap();
    }
    std::os::unix::fs::symlink(root.join("state/other/out"), root.join("state/mine/link")).unwrap();
    let at = |name: &str| path(&root.join(name));
    let hidden = vec![at("state"), at("state/mine/kept/deep")];
    let shown = ["state/mine/out", "state/mine/link", "state/mine/kept", "state/gone"].map(at);
    let text = "exec 2> /dev/null; cat state/*/*/c1 state/*/kept/*/c1 work/c1; echo new > state/mine/out/c1; \
                echo new > state/mine/out/c2; rm -f state/mine/out/c1; \
                test -w work || chmod 0 state/mine/out/c1; \
                cat state/mine/out/c1";
    let before = fs::metadata(root.join("state/mine/out/c1")).unwrap();
    for level in working().await {
        for (read, write) in [
            (None, vec![]),
            (Some(vec![at("work"), at("/bin"), at("/usr"), at("/lib")]), vec![]),
            (None, vec![at("work")]),
        ] {
            let limits = Limits {
                level: Some(level),
                hidden: hidden.clone(),
                shown: shown.to_vec(),
                read,
                write,
                ..Limits::default()
            };
            let case = format!("{level} {limits:?}");
            let (said, _) = run(script(&root, text, limits)).await;
            assert_eq!(said, "of state/mine/out\nof work\nof state/mine/out\n", "{case}");
            assert!(!root.join("state/mine/out/c2").exists(), "{case}");
        }
    }
    let after = fs::metadata(root.join("state/mine/out/c1")).unwrap();
    assert_eq!((before.mode(), before.ctime_nsec()), (after.mode(), after.ctime_nsec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_person_reach_a_confined_shell_and_leave_nothing_open() {
    if env::var(FIELD).as_deref() != Ok("home") {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".bashrc"), "greet() { echo \"hello $1\"; }\n").unwrap();
        let test = "sandbox::functions_of_the_person_reach_a_confined_shell_and_leave_nothing_open";
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", test, "--nocapture"]).env(FIELD, "home");
        again.env("HOME", home.path()).env("SHELL", "/bin/bash").env_remove("BASH_ENV");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let local = Local::new().with_start_up(std::time::Duration::from_secs(20));
    let mut levels: Vec<Option<Level>> = working().await.into_iter().map(Some).collect();
    levels.push(None);
    for level in levels {
        let text =
            "greet you; echo \"<${BASH_ENV-}>\"; ls -l /proc/self/fd | grep -c haft-functions";
        let limits = level.map(|level| Limits { level: Some(level), ..Limits::default() });
        let spawn = script(Path::new("/"), text, Limits::default());
        let spawn = Spawn { profile: true, confine: limits, ..spawn };
        let mut running = local.shell().unwrap().spawn(spawn).await.unwrap();
        let mut said = String::new();
        while let Some(output) = running.output.next().await {
            if let Output::Bytes(_, bytes) = output.unwrap() {
                said.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        assert_eq!(said, "hello you\n<>\n0\n", "{level:?}");
    }
}

/// haft itself in a sandbox: it finds out what still works there, and uses that.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_sandbox_there_is_still_a_level_that_holds() {
    if let Ok(folder) = env::var(FIELD) {
        let outside = Path::new(&folder).join("out/file");
        for level in working().await {
            let write = vec![path(&Path::new(&folder).join("in"))];
            let limits = Limits { write, level: Some(level), ..Limits::default() };
            let text = format!("echo x > {}/in/made-there; echo x > {}", folder, outside.display());
            let (_, exit) = run(script(Path::new("/"), &text, limits)).await;
            assert_eq!(exit.code, Some(1), "{level}");
            let (said, _) = run(script(Path::new("/"), "echo fine", Limits::default())).await;
            assert_eq!(said, "fine\n");
        }
        return;
    }
    for level in working().await {
        let world = World::new();
        let limits = Limits { temp: Some(path(&world.at("temp"))), ..world.limits(level) };
        let test = b"sandbox::in_a_sandbox_there_is_still_a_level_that_holds";
        let own = env::current_exe().unwrap();
        let words = [own.as_os_str().as_bytes(), b"--exact", test, b"--nocapture"];
        let program = Program::Argv(words.iter().map(|word| word.to_vec()).collect());
        let set = vec![(FIELD.to_owned(), world.field.folder.to_str().unwrap().to_owned())];
        let spawn = Spawn::new(program, path(&world.at("in")));
        let (said, exit) = run(Spawn { set, confine: Some(limits), ..spawn }).await;
        assert_eq!(exit.code, Some(0), "{level}: {said}");
        assert!(said.contains("could be tried: [Landlock]"), "{level}: {said}");
        assert_eq!(fs::read_to_string(world.at("in/made-there")).unwrap(), "x\n", "{level}");
    }
}
