//! `haft tool grep` and `find` over a made tree, beside ripgrep and fd with the same output.
//!
//! Both process starts are in it. The tree is the same in every run: 5,000 files in 100 folders
//! and about 60 MB of lines, a rare word in some. Before anything is timed the answers of both are
//! compared. The peers print in any order, haft in that of names.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Bench;
use super::scratch::{Numbers, Scratch, line};
use super::table::Row;
use super::turns::{self, output, time};
use crate::process::command;
use crate::test::{FD, Peer, RIPGREP};

const FILES: usize = 5_000;
const FOLDERS: usize = 100;
/// Bytes of each file, at least.
const SIZE: usize = 12_000;
/// A word that stands once in each file whose number is a multiple of this.
const RARE: usize = 50;
/// The rare word.
const WORD: &str = "zephyranthes";
/// Samples in one run.
const SAMPLES: usize = 8;

/// A tool's call and the command that does the same.
struct Pair {
    name: &'static str,
    tool: &'static str,
    input: Value,
    peer: &'static Peer,
    arguments: &'static [&'static str],
    /// Answers that both have to give.
    answers: usize,
}

/// One row for each search.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let tree = scratch.make("tree")?;
    plant(&tree)?;
    let mut rows = Vec::new();
    for pair in pairs() {
        let path = pair.peer.path()?;
        let mut ours = || time(&mut ours(bench, &scratch, &tree, &pair)?);
        let mut theirs = || time(&mut theirs(bench, &tree, &path, pair.arguments));
        let (runs, peer) = if path.is_file() {
            same(bench, &scratch, &tree, &pair).with_context(|| pair.name)?;
            let mut runs = turns::measure(SAMPLES, &mut [&mut ours, &mut theirs])?;
            let peer = runs.pop().context("no run of the peer")?;
            (runs, Ok((format!("{} {}", pair.peer.binary, pair.peer.version), peer)))
        } else {
            let name = pair.peer.binary;
            let missing = format!("{name} is not installed: `cargo xtask test --only {name}`");
            (turns::measure(SAMPLES, &mut [&mut ours])?, Err(missing))
        };
        let value = runs.into_iter().next().context("no run was measured")?;
        rows.push(Row { name: pair.name.to_owned(), unit: "ms", value, peer });
    }
    Ok(rows)
}

fn pairs() -> [Pair; 4] {
    const TRUTH: [&str; 5] = ["--no-config", "--hidden", "--no-require-git", "-g", "!.git"];
    const LIST: &[&str] = &[TRUTH[0], TRUTH[1], TRUTH[2], TRUTH[3], TRUTH[4], "-l", WORD];
    const LINES: &[&str] = &[TRUTH[0], TRUTH[1], TRUTH[2], TRUTH[3], TRUTH[4], "-n", WORD];
    const NONE: &[&str] =
        &[TRUTH[0], TRUTH[1], TRUTH[2], TRUTH[3], TRUTH[4], "-c", "^", "-g", "*0.rs"];
    const NAMES: &[&str] =
        &["--hidden", "--no-require-git", "--exclude", ".git", "--glob", "*00.rs"];
    let hits = FILES / RARE;
    let grep = |mode: &str| json!({ "pattern": WORD, "output_mode": mode, "head_limit": 0 });
    let every = json!({ "pattern": "^", "output_mode": "count", "head_limit": 0, "glob": "*0.rs" });
    [
        Pair {
            name: "grep of a tree, files with a rare word",
            tool: "grep",
            input: grep("files_with_matches"),
            peer: &RIPGREP,
            arguments: LIST,
            answers: hits,
        },
        Pair {
            name: "grep of a tree, lines with a rare word",
            tool: "grep",
            input: grep("content"),
            peer: &RIPGREP,
            arguments: LINES,
            answers: hits,
        },
        Pair {
            name: "grep of a tree, lines counted in a tenth of the files",
            tool: "grep",
            input: every,
            peer: &RIPGREP,
            arguments: NONE,
            answers: FILES / 10,
        },
        Pair {
            name: "find in a tree, one file of a hundred",
            tool: "find",
            input: json!({ "pattern": "*00.rs" }),
            peer: &FD,
            arguments: NAMES,
            answers: FILES / 100,
        },
    ]
}

/// The call that lists the files with the rare word, and the command that does the same.
pub(super) fn listing(bench: &Bench, scratch: &Scratch, tree: &Path) -> Result<[Command; 2]> {
    let [pair, ..] = pairs();
    let peer = theirs(bench, tree, &pair.peer.path()?, pair.arguments);
    Ok([ours(bench, scratch, tree, &pair)?, peer])
}

fn ours(bench: &Bench, scratch: &Scratch, tree: &Path, pair: &Pair) -> Result<Command> {
    bench.tool(scratch, tree, pair.tool, &pair.input)
}

fn theirs(bench: &Bench, tree: &Path, program: &Path, arguments: &[&str]) -> Command {
    let mut command = command(&bench.project, program);
    command.current_dir(tree).args(arguments);
    if program.file_stem().is_some_and(|name| name == "rg") {
        // Without a path it would search its standard input.
        command.arg(".");
    }
    command
}

/// Fails when the two name other files.
fn same(bench: &Bench, scratch: &Scratch, tree: &Path, pair: &Pair) -> Result<()> {
    let told = output(&mut ours(bench, scratch, tree, pair)?)?;
    let peer = output(&mut theirs(bench, tree, &pair.peer.path()?, pair.arguments))?;
    let (told, peer) = (files(&told), files(&peer));
    if told != peer || told.len() != pair.answers {
        let other = told.symmetric_difference(&peer).next().cloned().unwrap_or_default();
        let (ours, theirs) = (told.len(), peer.len());
        bail!(
            "haft names {ours} files, {} {theirs}, and {} have to be: first difference {other:?}",
            pair.peer.binary,
            pair.answers
        );
    }
    Ok(())
}

/// The files that an answer names, however it goes on after a name.
fn files(text: &str) -> BTreeSet<String> {
    text.split_whitespace()
        .filter_map(|word| word.split_once(".rs"))
        .map(|(name, _)| name.trim_start_matches("./").to_owned())
        .collect()
}

/// Makes the tree.
pub(super) fn plant(tree: &Path) -> Result<()> {
    let mut numbers = Numbers::new(0x9E37_79B9_7F4A_7C15);
    let mut text = String::with_capacity(2 * SIZE);
    let lines = |text: &mut String, size: usize, numbers: &mut Numbers| {
        while text.len() < size {
            line(numbers, text);
        }
    };
    for file in 0..FILES {
        let folder = tree.join(format!("part{:03}", file * FOLDERS / FILES));
        fs::create_dir_all(&folder).context("a folder of the tree cannot be made")?;
        text.clear();
        lines(&mut text, SIZE / 2, &mut numbers);
        if file % RARE == 0 {
            let _ = writeln!(text, "// {WORD} {file}");
        }
        lines(&mut text, SIZE, &mut numbers);
        fs::write(folder.join(format!("file{file:04}.rs")), &text)
            .context("a file of the tree cannot be written")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_answer_are_read_from_every_shape() {
        let wanted: BTreeSet<String> = ["a/b", "c"].map(str::to_owned).into();
        for text in ["a/b.rs\nc.rs\n", "./a/b.rs:12:// z 1\n./c.rs:3\n", "a/b.rs\n  12: z\n\nc.rs"]
        {
            assert_eq!(files(text), wanted, "{text}");
        }
    }
}
