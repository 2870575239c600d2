//! Shares of words: of an article that are kept, and of the navigation around it that are let in.
//!
//! **Invariant:** words are counted the same for whoever made the Markdown. Where links lead does
//! not count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// What became of a page's words, in parts of one.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of the words of the article, those that are there.
    pub kept: f64,
    /// Of the words that only the navigation has, those that are there; none where it has none.
    pub let_in: Option<f64>,
}

/// A page, and what became of it by us and by the peer.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the page.
    pub name: String,
    /// By us.
    pub ours: Shares,
    /// By the peer.
    pub peer: Shares,
}

/// The average of both over all rows.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    /// Of [`Shares::kept`].
    pub kept: f64,
    /// Of [`Shares::let_in`], where there is one.
    pub let_in: f64,
}

/// The names of the pages whose words are known.
///
/// # Errors
/// When the folder cannot be read.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".article.txt").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// What became of a page's words in some Markdown.
///
/// # Errors
/// When the words of the page cannot be read.
pub fn shares(folder: &Path, name: &str, markdown: &str) -> io::Result<Shares> {
    let article = counted(&fs::read_to_string(folder.join(format!("{name}.article.txt")))?);
    let around = counted(&fs::read_to_string(folder.join(format!("{name}.nav.txt")))?);
    let there = counted(&without_targets(markdown));
    let all: usize = article.values().sum();
    let kept = article.iter().map(|(word, count)| *count.min(there.get(word).unwrap_or(&0)));
    let around: HashSet<&String> =
        around.keys().filter(|word| !article.contains_key(*word)).collect();
    let let_in = around.iter().filter(|word| there.contains_key(**word)).count();
    Ok(Shares {
        kept: share(kept.sum(), all),
        let_in: (!around.is_empty()).then(|| share(let_in, around.len())),
    })
}

/// The peer's shares as they were written down: `NAME KEPT LET_IN`, the last one `-` where there is none.
pub fn written(text: &str) -> BTreeMap<String, Shares> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let kept = words.next()?.parse().ok()?;
        Some((name, Shares { kept, let_in: words.next()?.parse().ok() }))
    };
    lines.filter_map(row).collect()
}

/// A line of that.
pub fn line(name: &str, shares: Shares) -> String {
    let let_in = shares.let_in.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"));
    format!("{name} {:.4} {let_in}", shares.kept)
}

/// The averages of us and of the peer.
pub fn averages(rows: &[Row]) -> (Average, Average) {
    let of = |shares: Vec<Shares>| {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / number(values.len().max(1));
        Average {
            kept: mean(shares.iter().map(|shares| shares.kept).collect()),
            let_in: mean(shares.iter().filter_map(|shares| shares.let_in).collect()),
        }
    };
    (of(rows.iter().map(|row| row.ours).collect()), of(rows.iter().map(|row| row.peer).collect()))
}

/// The rows as a table in Markdown, in hundredths, the averages last.
pub fn table(rows: &[Row]) -> String {
    let mut text =
        String::from("| page | kept | let in | peer kept | peer let in |\n|---|---|---|---|---|\n");
    let shown = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
    };
    for Row { name, ours, peer } in rows {
        let cells = [Some(ours.kept), ours.let_in, Some(peer.kept), peer.let_in].map(shown);
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    let (ours, peer) = averages(rows);
    let cells = [ours.kept, ours.let_in, peer.kept, peer.let_in].map(|share| shown(Some(share)));
    let _ = writeln!(text, "| average | {} |", cells.join(" | "));
    text
}

fn share(part: usize, all: usize) -> f64 {
    number(part) / number(all.max(1))
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn counted(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    let text = text.to_lowercase();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if !word.is_empty() {
            *words.entry(word.to_owned()).or_default() += 1;
        }
    }
    words
}

/// Markdown without the targets of its links.
fn without_targets(markdown: &str) -> String {
    let mut parts = markdown.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("] ");
        text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    text
}
