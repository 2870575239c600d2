//! What is available where no model is chosen, and how to name it.
//!
//! **Invariant:** only servers on this machine are queried. They are queried only here, where
//! nothing else can be done. The value of a key is never read.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::{Duration, Instant},
};

use haft_config::Environment;
use haft_llm::Preset;
use serde_json::Value;

use super::endpoint;

/// How long a server of this machine may take for each step.
const WITHIN: Duration = Duration::from_millis(300);
/// How long its answer may take in all.
const WHOLE: Duration = Duration::from_secs(1);
/// Bytes of its answer that are read.
const MOST: usize = 256 << 10;
/// Models of one that are named.
const NAMED: usize = 4;

/// What models can be chosen from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Keys that are set: the variable, and the server that it opens. Their values are never read.
    pub keys: Vec<(String, String)>,
    /// Servers of this machine that answer.
    pub servers: Vec<LocalServer>,
}

/// A server of this machine that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The name that stands before those of its models.
    pub name: String,
    /// Its address.
    pub address: String,
    /// What it says that it has.
    pub models: Vec<String>,
}

impl Offers {
    /// Looks for keys, and asks the servers of this machine: takes up to a second for each that is
    /// there and does not answer.
    pub fn of(servers: &[Preset], environment: &Environment) -> Self {
        let answers = |server: &Preset| {
            // A variable may have moved it, also to another machine.
            let address = endpoint(server, environment).base_url;
            let server = Preset { address, ..server.clone() };
            let models = server.is_local().then(|| models(&server.address)).flatten()?;
            Some(LocalServer { name: server.name, address: server.address, models })
        };
        Self {
            keys: Self::keys(servers, environment),
            servers: servers.iter().filter_map(answers).collect(),
        }
    }

    /// The keys that are set: the variable, and the server that it opens.
    pub fn keys(servers: &[Preset], environment: &Environment) -> Vec<(String, String)> {
        let key = |server: &Preset| {
            let is_set = |name: &&String| environment.server(name).is_some();
            let variable = server.key_variables.iter().find(is_set)?;
            Some((variable.clone(), server.name.clone()))
        };
        let mut keys: Vec<(String, String)> = Vec::new();
        for key in servers.iter().filter_map(key) {
            // A server with two wires stands there twice.
            if !keys.iter().any(|(variable, _)| *variable == key.0) {
                keys.push(key);
            }
        }
        keys
    }

    /// Whether there is nothing.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.servers.is_empty()
    }
}

impl LocalServer {
    /// Its first models as one line, with how many more there are.
    pub fn named(&self) -> String {
        let more = self.models.len().saturating_sub(NAMED);
        let named = self.models[..self.models.len().min(NAMED)].join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    }
}

/// What to say where no model is chosen.
pub(super) fn unchosen(servers: &[Preset], environment: &Environment) -> String {
    let offers = Offers::of(servers, environment);
    let mut text = "no model is chosen: give --model anthropic/NAME, openai/NAME, ollama/NAME, or \
                    script:FILE, or set HAFT_MODEL or `model` in ~/.haft/settings.toml"
        .to_owned();
    for (variable, server) in &offers.keys {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nFound: {variable} is set: --model {server}/NAME");
    }
    for server in &offers.servers {
        let (address, name) = (&server.address, &server.name);
        let _ = match server.models.first() {
            None => write!(text, "\nFound: {address} answers ({name}): --model {name}/NAME"),
            Some(first) => write!(
                text,
                "\nFound: {address} answers ({name}: {}): --model {name}/{first}",
                server.named()
            ),
        };
    }
    if offers.is_empty() {
        text.push_str(
            "\nFound: no key (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...) and no server on this machine \
             (ollama, llama.cpp, vllm, lmstudio); `haft demo` needs neither",
        );
    }
    text
}

/// The models of a server; none where nothing answers.
fn models(address: &str) -> Option<Vec<String>> {
    let body = answer(address, "/models")?;
    let models = body.get("data").and_then(Value::as_array)?;
    let name = |model: &Value| model.get("id").and_then(Value::as_str).map(str::to_owned);
    Some(models.iter().filter_map(name).collect())
}

/// Names under which servers give the window of a model: those of vLLM, LM Studio and others.
const WINDOWS: [&str; 4] =
    ["max_model_len", "loaded_context_length", "context_length", "max_context_length"];

/// The window that a server of this machine gives a model; none where it does not say. Takes up to
/// two seconds where the server is there and does not answer.
pub fn window_of(server: &Preset, environment: &Environment, model: &str) -> Option<u64> {
    let address = endpoint(server, environment).base_url;
    if !(Preset { address: address.clone(), ..server.clone() }).is_local() {
        return None;
    }
    let list = answer(&address, "/models")?;
    let entries = list.get("data").and_then(Value::as_array)?;
    let entry = entries.iter().find(|entry| entry["id"] == model);
    let of_entry = |entry: &Value| WINDOWS.iter().find_map(|name| entry.get(name)?.as_u64());
    let window = entry.and_then(of_entry).or_else(|| {
        // That of llama.cpp, which has one model; beside its API, not in it.
        let root = address.strip_suffix("/v1")?;
        answer(root, "/props")?.pointer("/default_generation_settings/n_ctx")?.as_u64()
    });
    window.filter(|window| *window >= 1_000)
}

/// What a server answers to a request for a path behind its address; none where it is no JSON.
fn answer(address: &str, behind: &str) -> Option<Value> {
    let rest = address.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = if path.is_empty() { behind.to_owned() } else { format!("/{path}{behind}") };
    let mut connection = authority
        .to_socket_addrs()
        .ok()?
        .find_map(|address| TcpStream::connect_timeout(&address, WITHIN).ok())?;
    connection.set_read_timeout(Some(WITHIN)).ok()?;
    connection.set_write_timeout(Some(WITHIN)).ok()?;
    // Of version 1.0, so that the answer is neither in chunks nor kept open.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let (mut answer, end) = (Vec::new(), Instant::now() + WHOLE);
    let mut piece = [0; 4_096];
    // What came until it went silent counts. One that says a little again and again is left, too.
    while answer.len() < MOST && Instant::now() < end {
        match connection.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let is_fine = head.split_whitespace().nth(1) == Some("200");
    serde_json::from_str(body).ok().filter(|_| is_fine)
}
