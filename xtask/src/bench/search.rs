//! `haft tool grep` and `find` over a made tree, beside ripgrep and fd with the same output.
//!
//! Both process starts are in it. The tree is the same in every run: 5,000 files in 100 folders
//! and about 60 MB of lines, a rare word in some. Before anything is timed the answers of both are
//! compared, where the peer sorts with their order. The peer stands beside each search twice: in the
//! order of haft (`rg --sort path`, `fd | sort`), and as fast as it can, in any order.
//!
//! The example `first_page` of haft-tools measures in one process how soon the first page of a
//! common word is there, beside a search of everything: that takes a second, in a tree of
//! [`COPIES`] folders of links to the same files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Bench;
use super::scratch::{Numbers, Scratch, line};
use super::table::{Row, Runs};
use super::turns::{self, output, time};
use crate::process::{cargo, command};
use crate::test::{FD, Peer, RIPGREP};

const FILES: usize = 5_000;
const FOLDERS: usize = 100;
/// Bytes of each file, at least.
const SIZE: usize = 12_000;
/// A word that stands once in each file whose number is a multiple of this.
const RARE: usize = 50;
/// The rare word.
const WORD: &str = "zephyranthes";
/// A word that stands in most lines.
const COMMON: &str = "value";
/// How often the files of the tree are linked to, to be searched for a second or more.
const COPIES: usize = 30;
/// Samples in one run.
const SAMPLES: usize = 8;

/// A tool's call and the command that does the same.
struct Pair {
    name: String,
    tool: &'static str,
    input: Value,
    peer: &'static Peer,
    arguments: Vec<&'static str>,
    /// Answers that both have to give.
    answers: usize,
    /// Whether the peer gives them in the same order.
    sorted: bool,
}

impl Pair {
    /// Whether the peer gives its answers in order only with the help of another program.
    fn through_sort(&self) -> bool {
        self.sorted && self.peer.binary == FD.binary
    }
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
        let mut theirs = || time(&mut theirs(bench, &tree, &path, &pair));
        let (runs, peer) = if path.is_file() {
            same(bench, &scratch, &tree, &pair).with_context(|| pair.name.clone())?;
            let mut runs = turns::measure(SAMPLES, &mut [&mut ours, &mut theirs])?;
            let peer = runs.pop().context("no run of the peer")?;
            let through = if pair.through_sort() { ", then sort" } else { "" };
            let name = format!("{} {}{through}", pair.peer.binary, pair.peer.version);
            (runs, Ok((name, peer)))
        } else {
            let name = pair.peer.binary;
            let missing = format!("{name} is not installed: `cargo xtask test --only {name}`");
            (turns::measure(SAMPLES, &mut [&mut ours])?, Err(missing))
        };
        let value = runs.into_iter().next().context("no run was measured")?;
        rows.push(Row { name: pair.name.clone(), unit: "ms", value, peer });
    }
    rows.push(first_page(bench, &scratch, &tree)?);
    Ok(rows)
}

/// The first page of a common word in the process, beside a search of everything.
fn first_page(bench: &Bench, scratch: &Scratch, tree: &Path) -> Result<Row> {
    let copies = scratch.make("copies")?;
    for folder in fs::read_dir(tree).context("the tree cannot be listed")? {
        let folder = folder?;
        let names = fs::read_dir(folder.path())?.collect::<Result<Vec<_>, _>>()?;
        for copy in 0..COPIES {
            let to = copies.join(format!("copy{copy:02}")).join(folder.file_name());
            fs::create_dir_all(&to)?;
            for name in &names {
                fs::hard_link(name.path(), to.join(name.file_name()))?;
            }
        }
    }
    let profile = bench.beside();
    let example = ["--package", "haft-tools", "--example", "first_page", "--"];
    let mut words = vec!["run", "--quiet", "--profile", profile];
    words.extend(example);
    let mut command = cargo(&bench.project, &words);
    let text = output(command.arg(&copies).arg(COMMON))?;
    let of = |wanted: &str| {
        let value = |line: &str| {
            let (name, value) = line.rsplit_once(": ")?;
            (name == wanted).then(|| value.strip_suffix(" us")?.trim().parse::<f64>().ok())?
        };
        let values = text.lines().filter_map(value).map(|us| us / 1e3).collect();
        Runs::new(values).with_context(|| format!("the example told nothing of {wanted}: {text}"))
    };
    let peer = ("the same word counted in all files".to_owned(), of("first page, whole search")?);
    let name = "first page of a common word, in the process".to_owned();
    Ok(Row { name, unit: "ms", value: of("first page")?, peer: Ok(peer) })
}

fn pairs() -> Vec<Pair> {
    const TRUTH: [&str; 5] = ["--no-config", "--hidden", "--no-require-git", "-g", "!.git"];
    const SORTED: [&str; 2] = ["--sort", "path"];
    const NAMES: &[&str] =
        &["--hidden", "--no-require-git", "--exclude", ".git", "--glob", "*00.rs"];
    let grep = |input: Value, what: &'static str, flags: &[&'static str], answers| {
        let of = |sorted: bool| Pair {
            name: format!("grep of a tree, {what}{}", if sorted { ", sorted" } else { "" }),
            tool: "grep",
            input: input.clone(),
            peer: &RIPGREP,
            arguments: [&TRUTH[..], if sorted { &SORTED[..] } else { &[] }, flags].concat(),
            answers,
            sorted,
        };
        [of(true), of(false)]
    };
    let hits = FILES / RARE;
    let rare = |mode: &str| json!({ "pattern": WORD, "output_mode": mode, "head_limit": 0 });
    let every = json!({ "pattern": "^", "output_mode": "count", "head_limit": 0, "glob": "*0.rs" });
    let counted = "lines counted in a tenth of the files";
    let mut pairs = Vec::new();
    pairs.extend(grep(rare("files_with_matches"), "files with a rare word", &["-l", WORD], hits));
    pairs.extend(grep(rare("content"), "lines with a rare word", &["-n", WORD], hits));
    pairs.extend(grep(every, counted, &["-c", "^", "-g", "*0.rs"], FILES / 10));
    pairs.extend([true, false].map(|sorted| Pair {
        name: format!(
            "find in a tree, one file of a hundred{}",
            if sorted { ", sorted" } else { "" }
        ),
        tool: "find",
        input: json!({ "pattern": "*00.rs" }),
        peer: &FD,
        arguments: NAMES.to_vec(),
        answers: FILES / 100,
        sorted,
    }));
    pairs
}

/// The call that lists the files with the rare word, and the command that does the same.
pub(super) fn listing(bench: &Bench, scratch: &Scratch, tree: &Path) -> Result<[Command; 2]> {
    let pair = pairs().into_iter().find(|pair| !pair.sorted).context("there is no search")?;
    let peer = theirs(bench, tree, &pair.peer.path()?, &pair);
    Ok([ours(bench, scratch, tree, &pair)?, peer])
}

fn ours(bench: &Bench, scratch: &Scratch, tree: &Path, pair: &Pair) -> Result<Command> {
    bench.tool(scratch, tree, pair.tool, &pair.input)
}

fn theirs(bench: &Bench, tree: &Path, program: &Path, pair: &Pair) -> Command {
    let mut theirs = if pair.through_sort() {
        let mut shell = command(&bench.project, "sh");
        shell.args(["-c", "\"$0\" \"$@\" | LC_ALL=C sort"]).arg(program);
        shell
    } else {
        command(&bench.project, program)
    };
    theirs.current_dir(tree).args(&pair.arguments);
    if pair.peer.binary == RIPGREP.binary {
        // Without a path it would search its standard input.
        theirs.arg(".");
    }
    theirs
}

/// Fails when the two name other files, or in another order where both sort.
fn same(bench: &Bench, scratch: &Scratch, tree: &Path, pair: &Pair) -> Result<()> {
    let told = output(&mut ours(bench, scratch, tree, pair)?)?;
    let peer = output(&mut theirs(bench, tree, &pair.peer.path()?, pair))?;
    let (told, mut peer) = (files(&told), files(&peer));
    if !pair.sorted {
        peer.sort();
    }
    if told != peer || told.len() != pair.answers {
        let same = told.iter().zip(&peer).take_while(|(a, b)| a == b).count();
        let (ours, theirs) = (told.len(), peer.len());
        bail!(
            "haft names {ours} files, {} {theirs}, and {} have to be: first difference {:?}, {:?}",
            pair.peer.binary,
            pair.answers,
            told.get(same),
            peer.get(same)
        );
    }
    Ok(())
}

/// The files that an answer names, in its order, however it goes on after a name.
fn files(text: &str) -> Vec<String> {
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
        let wanted = ["a/b", "c"];
        for text in ["a/b.rs\nc.rs\n", "./a/b.rs:12:// z 1\n./c.rs:3\n", "a/b.rs\n  12: z\n\nc.rs"]
        {
            assert_eq!(files(text), wanted, "{text}");
        }
    }
}
