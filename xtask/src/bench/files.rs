//! `haft tool read` of a very large file and `edit` of a large one, beside the system's commands.
//!
//! Process starts are in all of them but the reads of a process that read the file before. An edit of haft's is synced to the disk and `sed -i` does
//! not do that, so a bare write with a sync stands beside it too.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Bench;
use super::scratch::{LINE, Scratch, write_lines};
use super::served::Served;
use super::table::Row;
use super::turns::{self, output, time};
use crate::process::command;

/// Bytes of the file that is read.
const LARGE: u64 = 1 << 30;
/// Bytes of the file that is edited.
const EDITED: u64 = 10 << 20;
/// Samples of reads in one run.
const READS: usize = 5;
/// Samples of edits in one run.
const EDITS: usize = 5;

/// Four rows of reads and two of the edit, which has two peers.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let mut rows = reads(bench, &scratch)?;
    rows.extend(edits(bench, &scratch)?);
    Ok(rows)
}

fn reads(bench: &Bench, scratch: &Scratch) -> Result<Vec<Row>> {
    let folder = scratch.make("large")?;
    let large = folder.join("large.txt");
    write_lines(&large, LARGE)?;
    let cases: [(&str, Value, &str); 2] = [
        ("from the start", json!({ "path": "large.txt" }), "head -n 2000 large.txt"),
        (
            "from the end",
            json!({ "path": "large.txt", "offset": -2000 }),
            // haft numbers the lines, so the peer has to count them.
            "wc -l <large.txt; tail -n 2000 large.txt",
        ),
    ];
    let mut rows = Vec::new();
    for (name, input, script) in cases {
        let said = output(&mut bench.tool(scratch, &folder, "read", &input)?)?;
        let lines = said.lines().filter(|line| line.contains("the quick brown fox")).count();
        if lines != 2_000 {
            bail!("the read {name} shows {lines} lines of 2000");
        }
        let mut ours = || time(&mut bench.tool(scratch, &folder, "read", &input)?);
        let mut theirs = || {
            let mut shell = command(&bench.project, "sh");
            time(shell.current_dir(&folder).args(["-c", script]))
        };
        let mut runs = turns::measure(READS, &mut [&mut ours, &mut theirs])?;
        let peer = runs.pop().context("no run of the peer")?;
        rows.push(Row {
            name: format!("read of 2,000 lines of 1 GB, {name}"),
            unit: "ms",
            value: runs.pop().context("no run was measured")?,
            peer: Ok((script.to_owned(), peer)),
        });
    }
    rows.extend(again(bench, scratch, &folder)?);
    fs::remove_file(&large).context("the large file cannot be removed")?;
    Ok(rows)
}

/// Reads in one process that has read the same before.
fn again(bench: &Bench, scratch: &Scratch, folder: &Path) -> Result<Vec<Row>> {
    let mut served = Served::start(bench, scratch, folder)?;
    let mut rows = Vec::new();
    for (name, offset, script) in [
        ("from the start", 1, "head -n 2000 large.txt"),
        ("from the end", -2000, "tail -n 2000 large.txt"),
    ] {
        let input = json!({ "path": "large.txt", "offset": offset });
        let mut ours = || {
            let (took, said) = served.call("read", &input)?;
            match said.matches("the quick brown fox").count() {
                2_000.. => Ok(took),
                lines => bail!("the read {name} shows {lines} lines of 2000"),
            }
        };
        let mut theirs = || {
            let mut shell = command(&bench.project, "sh");
            time(shell.current_dir(folder).args(["-c", script]))
        };
        let mut runs = turns::measure(READS, &mut [&mut ours, &mut theirs])?;
        let peer = runs.pop().context("no run of the peer")?;
        rows.push(Row {
            name: format!("read of 2,000 lines of 1 GB, {name}, the second time (haft mcp)"),
            unit: "ms",
            value: runs.pop().context("no run was measured")?,
            peer: Ok((script.to_owned(), peer)),
        });
    }
    Ok(rows)
}

fn edits(bench: &Bench, scratch: &Scratch) -> Result<Vec<Row>> {
    let folder = scratch.make("edited")?;
    let (ours_file, sed_file) = (folder.join("ours.txt"), folder.join("sed.txt"));
    write_lines(&ours_file, EDITED)?;
    write_lines(&sed_file, EDITED)?;
    let bytes = fs::read(&ours_file).context("the edited file cannot be read")?;
    // A line near the middle, so that both have to carry the half before and the half after.
    let line = EDITED / LINE as u64 / 2;
    let mut count = 0;
    let mut ours = || {
        let (old, new) = if count % 2 == 0 { ("the", "new") } else { ("new", "the") };
        count += 1;
        let [old, new] = [old, new].map(|word| format!("line {line:09}: {word}"));
        let edit = json!({ "path": "ours.txt", "edits": [{ "old_text": old, "new_text": new }] });
        time(&mut bench.tool(scratch, &folder, "edit", &edit)?)
    };
    let script = format!("s/^line {line:09}: .../line {line:09}: new/");
    let mut sed = || {
        let mut sed = command(&bench.project, "sed");
        time(sed.current_dir(&folder).args(["-i", "-e", &script, "sed.txt"]))
    };
    let mut bare = || turns::write(&folder, &bytes);
    let mut runs = turns::measure(EDITS, &mut [&mut ours, &mut sed, &mut bare])?;
    let (bare, sed) = (runs.pop().context("no write")?, runs.pop().context("no sed")?);
    let value = runs.pop().context("no run was measured")?;
    let row = |peer: &str, runs| Row {
        name: "edit of one line of a 10 MB file".to_owned(),
        unit: "ms",
        value: value.clone(),
        peer: Ok((peer.to_owned(), runs)),
    };
    Ok(vec![row("sed -i, not synced", sed), row("bare write, syncs and rename", bare)])
}
