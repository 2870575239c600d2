//! The most memory that a process held at once, as the kernel counts it (`VmHWM`).
//!
//! The mark only rises, so it is read over and over while the process runs and the last value
//! counts; what a process takes in its very last moment can be missed. Only the process itself is
//! counted, not its children. Needs `/proc`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::scratch::{Scratch, write_lines};
use super::served::Served;
use super::table::{Row, Runs};
use super::{Bench, RUNS, output, search};
use crate::process::shown;
use crate::test::RIPGREP;

/// Between two looks at a process.
const PAUSE: Duration = Duration::from_micros(200);
/// How long a server has nothing to do before it is looked at.
const IDLE: Duration = Duration::from_millis(500);
/// Bytes of the file that is read.
const LARGE: u64 = 1 << 30;
/// Kibibytes in the unit of the table.
const MEBIBYTE: f64 = 1024.0;

/// One row for each process.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let tree = scratch.make("tree")?;
    search::plant(&tree)?;
    let large = scratch.make("large")?;
    write_lines(&large.join("large.txt"), LARGE)?;
    let has_peer = RIPGREP.path()?.is_file();
    let mut values = [const { Vec::new() }; 5];
    for _ in 0..RUNS {
        values[0].push(idle(bench, &scratch)?);
        values[1].push(peak(&mut output::printing(bench, &scratch, 100_000_000)?)?);
        let [mut ours, mut theirs] = search::listing(bench, &scratch, &tree)?;
        values[2].push(peak(&mut ours)?);
        values[4].push(reading(bench, &scratch, &large)?);
        if has_peer {
            values[3].push(peak(&mut theirs)?);
        }
    }
    let [idle, bash, grep, rg, read] = values;
    fs::remove_file(large.join("large.txt")).context("the large file cannot be removed")?;
    let peer = match Runs::new(rg) {
        Some(runs) => Ok((format!("rg {}", RIPGREP.version), runs)),
        None => Err("rg is not installed: `cargo xtask test --only rg`".to_owned()),
    };
    let row = |name: &str, values, peer| -> Result<Row> {
        let value = Runs::new(values).context("no run was measured")?;
        Ok(Row { name: format!("most memory: {name}"), unit: "MiB", value, peer })
    };
    Ok(vec![
        row("haft mcp, idle after its tools were listed", idle, Err(String::new()))?,
        row("haft tool bash that prints 100 MB", bash, Err(String::new()))?,
        row("haft tool grep of a tree", grep, peer)?,
        row("haft mcp, reads of a 1 GB file from both ends", read, Err(String::new()))?,
    ])
}

/// The mark of an MCP server that listed its tools and then had nothing to do.
fn idle(bench: &Bench, scratch: &Scratch) -> Result<f64> {
    let mut child = bench
        .haft(scratch, &scratch.make("work")?)?
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("haft mcp could not be started")?;
    let measured = ask(&mut child).and_then(|()| {
        thread::sleep(IDLE);
        mark(child.id()).context("haft mcp ended before its input did")
    });
    // Its input ends with this, and with it the server.
    drop(child.stdin.take());
    let status = child.wait().context("haft mcp cannot be waited for")?;
    let measured = measured?;
    if !status.success() {
        bail!("haft mcp ended with {status}");
    }
    Ok(measured)
}

/// The mark of an MCP server that read a large file from its start, middle and end.
fn reading(bench: &Bench, scratch: &Scratch, folder: &Path) -> Result<f64> {
    let mut served = Served::start(bench, scratch, folder)?;
    for offset in [1, -2000, 5_000_000, -2000, 1] {
        served.call("read", &json!({ "path": "large.txt", "offset": offset }))?;
    }
    mark(served.id()).context("haft mcp ended before it was looked at")
}

/// Opens the connection, lists the tools and reads both answers.
fn ask(child: &mut Child) -> Result<()> {
    let client = json!({ "name": "bench", "version": "1" });
    let parameters =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    let text = messages.map(|message| format!("{message}\n")).concat();
    let stdin = child.stdin.as_mut().context("haft mcp has no input")?;
    stdin.write_all(text.as_bytes()).context("haft mcp does not read")?;
    let stdout = child.stdout.as_mut().context("haft mcp has no output")?;
    for line in BufReader::new(stdout).lines() {
        let line = line.context("haft mcp cannot be read")?;
        if line.contains("\"tools\":[") {
            return Ok(());
        }
    }
    bail!("haft mcp ended before it listed its tools")
}

/// Runs a command and returns the highest mark that was seen.
pub(super) fn peak(command: &mut Command) -> Result<f64> {
    let shown = shown(command);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("`{shown}` could not be started"))?;
    let (mut highest, begun) = (0.0, Instant::now());
    let status = loop {
        highest = mark(child.id()).unwrap_or_default().max(highest);
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for `{shown}`"))? {
            break status;
        }
        thread::sleep(PAUSE);
    };
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    if highest <= 0.0 {
        bail!("/proc told no memory of `{shown}` in {:?}", begun.elapsed());
    }
    Ok(highest)
}

/// The mark of a process in mebibytes; `None` when it is gone.
pub(super) fn mark(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    kibibytes(&status).map(|size| f64::from(size) / MEBIBYTE)
}

fn kibibytes(status: &str) -> Option<u32> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_from_a_status() {
        assert_eq!(kibibytes("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    5120 kB\n"), Some(5120));
        assert_eq!(kibibytes("Name:\tzombie\n"), None);
    }
}
