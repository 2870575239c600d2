//! One `haft mcp` that takes calls one after the other: what a second call costs in one process.
//!
//! A sample is from before the request is written to after its answer is read; no start of a
//! process is in it. The process ends when this is dropped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Bench;
use super::scratch::Scratch;
use super::turns::milliseconds;

/// A server of tools in a folder.
pub(super) struct Served {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Served {
    /// Starts it in a folder and opens the connection.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not answer.
    pub(super) fn start(bench: &Bench, scratch: &Scratch, folder: &Path) -> Result<Self> {
        Self::start_in(bench, scratch, folder, "bypass")
    }

    /// The same in another mode.
    pub(super) fn start_in(
        bench: &Bench,
        scratch: &Scratch,
        folder: &Path,
        mode: &str,
    ) -> Result<Self> {
        let mut child = bench
            .haft(scratch, folder)?
            .args(["mcp", "--mode", mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("haft mcp could not be started")?;
        let stdin = child.stdin.take().context("haft mcp has no input")?;
        let stdout = BufReader::new(child.stdout.take().context("haft mcp has no output")?);
        let mut served = Self { child, stdin, stdout, asked: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let parameters =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        served.ask("initialize", &parameters)?;
        served.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(served)
    }

    /// The process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Calls a tool; returns the milliseconds that it took, and the answer as it was sent, which may
    /// be that the call failed.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub(super) fn answer(&mut self, tool: &str, input: &Value) -> Result<(f64, String)> {
        let before = Instant::now();
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": input }))?;
        Ok((milliseconds(before.elapsed()), answer))
    }

    /// Calls a tool as [`answer`](Self::answer) does.
    ///
    /// # Errors
    ///
    /// When the call fails.
    pub(super) fn call(&mut self, tool: &str, input: &Value) -> Result<(f64, String)> {
        let (elapsed, answer) = self.answer(tool, input)?;
        if answer.contains("\"isError\":true") {
            bail!("{tool} {input} failed: {answer:.500}");
        }
        Ok((elapsed, answer))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).context("haft mcp does not read")
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Result<String> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        let id = format!("\"id\":{id}");
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.stdout.read_line(&mut line).context("haft mcp cannot be read")?;
            if count == 0 {
                bail!("haft mcp ended before it answered {method}");
            }
            // Between the answers stand notices; only an answer has its id.
            if line.contains(&id) && !line.contains("\"method\":") {
                return Ok(line);
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is of no use anymore, and what it has written is in a scratch folder.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
