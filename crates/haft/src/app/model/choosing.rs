//! The message for a run in which no model is chosen: what is available, and how to name it.
//!
//! **Invariant:** only servers on this machine are queried. They are queried only here, where
//! nothing else can be done.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use haft_config::Environment;
use haft_llm::Preset;
use serde_json::Value;

/// How long a server of this machine may take for each step.
const WITHIN: Duration = Duration::from_millis(300);
/// Bytes of its answer that are read.
const MOST: u64 = 256 << 10;
/// Models of one that are named.
const NAMED: usize = 4;

/// What to say where no model is chosen.
pub(super) fn unchosen(servers: &[Preset], environment: &Environment) -> String {
    let keys = servers.iter().filter_map(|server| {
        let variable =
            server.key_variables.iter().find(|name| environment.server(name).is_some())?;
        Some(format!("{variable} is set: --model {}/NAME", server.name))
    });
    let local = servers.iter().filter(|server| server.is_local());
    let found: Vec<String> = keys.chain(local.filter_map(answers)).collect();
    let mut text = "no model is chosen: give --model anthropic/NAME, openai/NAME, ollama/NAME, or \
                    script:FILE, or set HAFT_MODEL or `model` in ~/.haft/settings.toml"
        .to_owned();
    for line in &found {
        text.push_str("\nFound: ");
        text.push_str(line);
    }
    if found.is_empty() {
        text.push_str(
            "\nFound: no key (ANTHROPIC_API_KEY, OPENAI_API_KEY, ...) and no server on this machine \
             (ollama, llama.cpp, vllm, lmstudio); `haft demo` needs neither",
        );
    }
    text
}

/// What a server of this machine has, where it answers.
fn answers(server: &Preset) -> Option<String> {
    let models = models(&server.address)?;
    let (address, name) = (&server.address, &server.name);
    Some(match &models[..] {
        [] => format!("{address} answers ({name}): --model {name}/NAME"),
        [first, ..] => {
            let more = models.len().saturating_sub(NAMED);
            let named = models[..models.len().min(NAMED)].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{address} answers ({name}: {named}{more}): --model {name}/{first}")
        }
    })
}

/// The models of a server; none where nothing answers.
fn models(address: &str) -> Option<Vec<String>> {
    let rest = address.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut connection = authority
        .to_socket_addrs()
        .ok()?
        .find_map(|address| TcpStream::connect_timeout(&address, WITHIN).ok())?;
    connection.set_read_timeout(Some(WITHIN)).ok()?;
    connection.set_write_timeout(Some(WITHIN)).ok()?;
    // Of version 1.0, so that the answer is neither in chunks nor kept open.
    let request = format!("GET /{path}/models HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // What came until it went silent counts.
    let _ = connection.take(MOST).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok()?;
    let is_fine = head.split_whitespace().nth(1) == Some("200");
    let models = body.get("data").and_then(Value::as_array).filter(|_| is_fine)?;
    let name = |model: &Value| model.get("id").and_then(Value::as_str).map(str::to_owned);
    Some(models.iter().filter_map(name).collect())
}
