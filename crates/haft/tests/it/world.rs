//! A fresh home, state folder and workspace for one test, and ways to run haft in them.
//!
//! **Invariant:** the environment of a run is only what is set here; when a world ends, no key that
//! was given to haft stands anywhere in its folders.

use std::{
    fs,
    io::{Read, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use haft_testkit::machine;
use haft_types::{Body, Event, Level};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The key that every run is given. It must never be seen again outside of a request.
pub const CANARY: &str = "sk-canary-7f3a9c51e20b4d68";

/// Longest that any run may take; far above what is expected, so that load fails no test.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// One test's folders.
pub struct World {
    root: TempDir,
}

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Wall time.
    pub took: Duration,
}

/// What a run finds on its standard input.
pub enum Input<'a> {
    /// `/dev/null`.
    Nothing,
    /// A pipe with this text, which then ends.
    Pipe(&'a str),
    /// A pipe whose first byte comes late.
    Late(&'a str, Duration),
    /// A pipe that stays open and says nothing.
    Silent,
    /// A file.
    File(&'a Path),
}

impl Ran {
    /// Standard output as one value.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Each line of standard output as a value.
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in line {line}"))
        };
        self.out.lines().map(parse).collect()
    }

    /// Both outputs.
    pub fn both_outputs(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// The text of an outcome or of anything else that has parts.
pub fn text(value: &Value) -> String {
    let parts = value["content"].as_array().unwrap_or_else(|| panic!("{value}")).iter();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

impl World {
    /// Empty folders.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("haft-it-").tempdir().unwrap();
        for name in ["home", "state", "work"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    /// The folder that holds the others.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// The workspace.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// What `HAFT_HOME` names.
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Writes a file of the workspace.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Reads a file of the workspace.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Writes the settings of the person.
    pub fn settings(&self, text: &str) {
        fs::write(self.state().join("settings.toml"), text).unwrap();
    }

    /// Writes a script of these answers outside of the workspace; gives the model's name.
    pub fn script(&self, answers: &[Value]) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("script-{}.jsonl", NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = self.root().join(name);
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        format!("script:{}", path.display())
    }

    /// haft with these arguments, in the workspace.
    pub fn haft(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_haft"));
        command.args(arguments);
        command
    }

    /// Any program, in the workspace and with the environment of haft.
    pub fn program(&self, name: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(name);
        command
            .env_clear()
            .envs(self.environment())
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The environment of every run.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        vec![
            ("PATH", path),
            ("HOME", self.root().join("home").display().to_string()),
            ("HAFT_HOME", self.state().display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
    }

    /// Calls a tool from the command line.
    pub fn tool(&self, name: &str, input: &Value, flags: &[&str]) -> Ran {
        self.run(&[&["tool", name, "--input", &input.to_string()][..], flags].concat())
    }

    /// Runs a shell script in which `haft` is the program.
    pub fn shell(&self, script: &str) -> Ran {
        let mut shell = self.program("sh");
        let script = format!("haft() {{ '{}' \"$@\"; }}\n{script}", env!("CARGO_BIN_EXE_haft"));
        shell.args(["-c", &script]);
        finish(shell, &Input::Nothing)
    }

    /// Runs haft in a mount namespace of its own, in which a script has mounted something first;
    /// `None` where nobody may.
    pub fn mounted(&self, mount: &str, haft: &str, set: &[(&str, &str)]) -> Option<Ran> {
        if !machine::may_mount("-rm", mount) {
            return None;
        }
        let mut command = self.program("unshare");
        let script = format!("{mount} && exec '{}' {haft}", env!("CARGO_BIN_EXE_haft"));
        command.args(["-rm", "sh", "-c", &script]).envs(set.iter().copied());
        Some(finish(command, &Input::Nothing))
    }

    /// Runs haft with nothing on its standard input.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, &Input::Nothing)
    }

    /// Runs haft.
    pub fn run_with(&self, arguments: &[&str], input: &Input<'_>) -> Ran {
        finish(self.haft(arguments), input)
    }

    /// The only session that the state folder holds, as its id.
    pub fn only_session(&self) -> String {
        let listed = self.run(&["session", "list", "--json"]);
        let lines: Vec<&str> = listed.out.lines().collect();
        assert_eq!(lines.len(), 1, "{listed:?}");
        let line: Value = serde_json::from_str(lines[0]).unwrap();
        line["id"].as_str().unwrap().to_owned()
    }

    /// How many sessions are kept.
    pub fn sessions(&self) -> usize {
        fs::read_dir(self.state().join("sessions")).map_or(0, Iterator::count)
    }

    /// What became of the calls of the only session, in the order in which they ended.
    pub fn outcomes(&self) -> Vec<Value> {
        let outcome = |event: Event| match event.body {
            Body::CallEnded { outcome, .. } => Some(serde_json::to_value(outcome).unwrap()),
            _ => None,
        };
        self.events().into_iter().filter_map(outcome).collect()
    }

    /// What the model is told of these calls by `-p`, in the order in which they ended.
    pub fn tool_results(&self, calls: &[Value], flags: &[&str]) -> Vec<Value> {
        let model = self.script(&[json!({ "calls": calls }), json!({"text": "End."})]);
        let ran = self.run(&[&["-p", "go", "--model", &model], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let outcomes = self.outcomes();
        assert_eq!(outcomes.len(), calls.len(), "{outcomes:?}");
        outcomes
    }

    /// The events of the only session.
    pub fn events(&self) -> Vec<Event> {
        let shown = self.run(&["session", "show", &self.only_session(), "--json"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        events(&shown.out)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            let holding = holding(self.root.path(), CANARY.as_bytes());
            assert!(holding.is_empty(), "the key stands in {holding:?}");
        }
    }
}

/// The files under a folder whose content or name holds these bytes.
pub fn holding(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let holds = |content: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder may have been closed by its test on purpose.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if holds(entry.file_name().as_encoded_bytes())
                || kind.is_file() && fs::read(&path).is_ok_and(|content| holds(&content))
            {
                found.push(path);
            }
        }
    }
    found
}

/// The events of lines of JSON; every line must be one.
pub fn events(text: &str) -> Vec<Event> {
    text.lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in line {line}"))
        })
        .collect()
}

/// The notices among these events.
pub fn notices(events: &[Event]) -> Vec<(Level, String)> {
    let notice = |event: &Event| match &event.body {
        Body::Notice { level, text } => Some((*level, text.clone())),
        _ => None,
    };
    events.iter().filter_map(notice).collect()
}

/// Fails unless every call that began has ended exactly once.
pub fn all_calls_ended(events: &[Event]) {
    let mut started: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::CallStarted { call, .. } => Some(call.to_string()),
            _ => None,
        })
        .collect();
    let mut ended: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::CallEnded { call, .. } => Some(call.to_string()),
            _ => None,
        })
        .collect();
    started.sort();
    ended.sort();
    assert!(!started.is_empty(), "no call began");
    assert_eq!(started, ended);
}

/// A program of `examples`.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_haft")).with_file_name("examples").join(name)
}

/// Starts a command, gives it its input and waits for its end.
pub fn finish(mut command: Command, input: &Input<'_>) -> Ran {
    match input {
        Input::Nothing => command.stdin(Stdio::null()),
        Input::File(path) => command.stdin(fs::File::open(path).unwrap()),
        _ => command.stdin(Stdio::piped()),
    };
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let pipe = child.stdin.take();
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let (text, wait, hold) = match input {
        Input::Pipe(text) => (*text, Duration::ZERO, false),
        Input::Late(text, wait) => (*text, *wait, false),
        Input::Silent => ("", Duration::ZERO, true),
        _ => ("", Duration::ZERO, false),
    };
    thread::sleep(wait);
    let mut pipe = pipe;
    if let Some(pipe) = &mut pipe {
        // A program that did not want its input has closed it already.
        let _ = pipe.write_all(text.as_bytes());
    }
    if !hold {
        drop(pipe.take());
    }
    let status = ended(&mut child, PATIENCE);
    let took = began.elapsed();
    drop(pipe);
    let ran = Ran { code: status.code(), out: out.join().unwrap(), err: err.join().unwrap(), took };
    assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "a key was shown: {ran:?}");
    assert!(status.signal().is_none(), "ended by a signal: {status:?} {ran:?}");
    ran
}

/// Reads a stream to its end in the background.
pub fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the end of a program; kills it and fails when it takes longer.
pub fn ended(child: &mut Child, limit: Duration) -> ExitStatus {
    let mut status = None;
    let over = until(limit, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !over {
        child.kill().unwrap();
        panic!("still running after {limit:?}");
    }
    status.unwrap()
}

/// Tries again until something holds; false when it does not in time.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal by its name.
pub fn signal(name: &str, process: u32) {
    let script = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
}

/// Interrupts a `haft tool --json` as a person does; the outcome that it prints.
pub fn interrupted(mut child: Child) -> Value {
    signal("INT", child.id());
    let said = collect(child.stdout.take());
    ended(&mut child, PATIENCE);
    serde_json::from_str(&said.join().unwrap()).unwrap()
}

/// A number of seconds that no other sleep of this machine has, so that its process can be found.
pub fn unique_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("300.{}{:03}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Reports whether any process, zombies apart, has this text in its arguments.
pub fn runs(text: &str) -> bool {
    processes(text).next().is_some()
}

/// Sends a signal to every process that has this text in its arguments.
pub fn signal_all(name: &str, text: &str) {
    processes(text).for_each(|process| signal(name, process));
}

fn processes(text: &str) -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(move |entry| {
        let entry = entry.unwrap();
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let process = entry.file_name().to_str()?.parse().ok()?;
        String::from_utf8_lossy(&line).contains(text).then_some(process)
    })
}

/// Waits until no process has this text in its arguments.
pub fn gone(text: &str) {
    assert!(until(Duration::from_secs(5), || !runs(text)), "{text} still runs");
}
