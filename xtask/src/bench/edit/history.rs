//! Clean changes: from the history of a git repository, and where that is too short, made up from
//! its files and from the texts of `xtask/texts`.
//!
//! **Invariant:** the same repository and the same seed give the same changes. Files that are not
//! UTF-8 with LF, and changes at the first or the last line, are left out of the history; the texts
//! bring the other encodings and line ends. It does not know what becomes of a change.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::super::scratch::Numbers;
use super::calls::{Clean, Codec, Line, lines};
use crate::process::command;
use crate::project::Project;

/// Bytes of a file at most.
const LARGEST: usize = 200_000;

/// A text and how it is written.
pub(super) type Source = (Codec, Vec<Line>);

/// The changes and where they come from.
pub(super) struct Changes {
    pub(super) clean: Vec<Clean>,
    /// How many of them come from the history.
    pub(super) from_history: usize,
}

/// Collects so many changes.
pub(super) fn changes(
    project: &Project,
    repository: &Path,
    count: usize,
    numbers: &mut Numbers,
) -> Result<Changes> {
    let mut clean = from_history(project, repository)?;
    shuffle(&mut clean, numbers);
    // The texts have their share, since no history has all their encodings and line ends.
    let from_texts = count.div_ceil(10);
    clean.truncate(count - from_texts);
    let from_history = clean.len();
    let (texts, files) = (texts(project)?, files(project, repository)?);
    if texts.is_empty() || files.is_empty() {
        bail!("{} has no text files at its last commit", repository.display());
    }
    let mut tries = 0;
    while clean.len() < count {
        let few = clean.len() < from_history + from_texts;
        let sources = if few { &texts } else { &files };
        clean.extend(made_up(&sources[numbers.below(sources.len())], numbers));
        tries += 1;
        if tries > count * 50 {
            bail!("only {} changes could be made up", clean.len());
        }
    }
    shuffle(&mut clean, numbers);
    Ok(Changes { clean, from_history })
}

/// Puts things into another order.
pub(super) fn shuffle<T>(things: &mut [T], numbers: &mut Numbers) {
    for at in (1..things.len()).rev() {
        things.swap(at, numbers.below(at + 1));
    }
}

/// The texts of the project in their encodings.
pub(super) fn texts(project: &Project) -> Result<Vec<Source>> {
    let folder = project.root.join("xtask/texts");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name != ".gitattributes"))
        .collect();
    names.sort();
    names
        .iter()
        .map(|path| {
            let bytes =
                fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let codec = match &*name {
                "bom.md" => Codec::Utf8 { bom: true },
                "utf16le.txt" => Codec::Utf16 { little: true },
                "utf16be.txt" => Codec::Utf16 { little: false },
                "sjis.txt" => Codec::Legacy(encoding_rs::SHIFT_JIS),
                "latin1.txt" => Codec::Legacy(encoding_rs::WINDOWS_1252),
                _ => Codec::Utf8 { bom: false },
            };
            let encoding = match codec {
                Codec::Utf8 { .. } => encoding_rs::UTF_8,
                Codec::Utf16 { little: true } => encoding_rs::UTF_16LE,
                Codec::Utf16 { little: false } => encoding_rs::UTF_16BE,
                Codec::Legacy(encoding) => encoding,
            };
            let (text, _) = encoding.decode_with_bom_removal(&bytes);
            if codec.encode(&text).as_deref() != Some(&bytes) {
                bail!("{name} is not in the encoding that its name says");
            }
            Ok((codec, lines(&text)))
        })
        .collect()
}

/// The text files of the last commit.
fn files(project: &Project, repository: &Path) -> Result<Vec<Source>> {
    let listed = git(project, repository, &["ls-tree", "-r", "-z", "HEAD"])?;
    let mut sources = Vec::new();
    for entry in String::from_utf8_lossy(&listed).split('\0') {
        let mut words = entry.split_whitespace();
        if let (Some("100644" | "100755"), Some("blob"), Some(id)) =
            (words.next(), words.next(), words.next())
        {
            sources.extend(blob(project, repository, id)?.filter(|source| source.1.len() > 8));
        }
    }
    Ok(sources)
}

/// A blob as lines, where it is UTF-8 with LF and not too large.
fn blob(project: &Project, repository: &Path, id: &str) -> Result<Option<Source>> {
    let bytes = git(project, repository, &["cat-file", "blob", id])?;
    let plain = bytes.len() <= LARGEST && !bytes.contains(&b'\r') && !bytes.contains(&0);
    let text = if plain { String::from_utf8(bytes).ok() } else { None };
    // A mark would be taken for the encoding's.
    let text = text.filter(|text| !text.starts_with('\u{feff}'));
    Ok(text.map(|text| (Codec::Utf8 { bom: false }, lines(&text))))
}

/// Every change of lines that the history holds.
fn from_history(project: &Project, repository: &Path) -> Result<Vec<Clean>> {
    let words = ["log", "--no-merges", "-p", "-U0", "--no-renames", "--diff-filter=M"];
    let more = ["--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--format="];
    let log = git(project, repository, &[&words[..], &more[..]].concat())?;
    let mut blobs: HashMap<String, Option<Source>> = HashMap::new();
    let mut changes = Vec::new();
    let mut source = None;
    let mut hunk: Option<Hunk> = None;
    for line in log.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some(rest) = line.strip_prefix("@@ -") {
            changes.extend(hunk.take().and_then(|hunk| hunk.clean(source.as_ref())));
            hunk = Hunk::of(rest);
        } else if line.starts_with("diff --git ") {
            changes.extend(hunk.take().and_then(|hunk| hunk.clean(source.as_ref())));
            source = None;
        } else if let Some(rest) = line.strip_prefix("index ").filter(|_| hunk.is_none()) {
            let id = rest.split("..").next().unwrap_or_default().to_owned();
            if !blobs.contains_key(&id) {
                blobs.insert(id.clone(), blob(project, repository, &id)?);
            }
            source = blobs.get(&id).cloned().flatten();
        } else if let Some(hunk) = &mut hunk {
            match line.strip_prefix('+') {
                Some(text) => hunk.come.push(text.to_owned()),
                // About a missing final line end: such a change is left out.
                None if line.starts_with('\\') => hunk.odd = true,
                None => {}
            }
        }
    }
    changes.extend(hunk.and_then(|hunk| hunk.clean(source.as_ref())));
    Ok(changes)
}

/// A hunk without lines around it.
struct Hunk {
    /// Lines before it.
    at: usize,
    gone: usize,
    come: Vec<String>,
    odd: bool,
}

impl Hunk {
    /// Reads what follows `@@ -`.
    fn of(header: &str) -> Option<Self> {
        let range = header.split(' ').next()?;
        let (line, gone) = range.split_once(',').unwrap_or((range, "1"));
        let (line, gone): (usize, usize) = (line.parse().ok()?, gone.parse().ok()?);
        // Where nothing goes, git names the line before.
        let at = if gone == 0 { line } else { line.checked_sub(1)? };
        Some(Self { at, gone, come: Vec::new(), odd: false })
    }

    fn clean(self, source: Option<&Source>) -> Option<Clean> {
        let (codec, lines) = source.filter(|_| !self.odd)?;
        Clean::new(*codec, lines, self.at, self.gone, self.come)
    }
}

/// Words that made-up lines are made of.
const WORDS: [&str; 12] = [
    "total", "index", "value", "first", "second", "result", "state", "check", "limit", "name",
    "other", "again",
];

/// A made-up change: lines changed, put in or taken out.
fn made_up((codec, lines): &Source, numbers: &mut Numbers) -> Option<Clean> {
    let at = 1 + numbers.below(lines.len().saturating_sub(2).max(1));
    let gone = numbers.below(4).min(lines.len().saturating_sub(at + 1));
    let mut come = Vec::new();
    for number in 0..numbers.below(4) + usize::from(gone == 0) {
        let word = WORDS[numbers.below(WORDS.len())];
        let like = &lines[(at + number).min(lines.len() - 1)].text;
        let indent = &like[..like.len() - like.trim_start().len()];
        come.push(match numbers.below(3) {
            0 => format!("{indent}{word} {};", numbers.below(1000)),
            1 => format!("{like} {word}"),
            _ => like.replacen(' ', &format!(" {word} "), 2),
        });
    }
    Clean::new(*codec, lines, at, gone, come)
}

fn git(project: &Project, repository: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let mut git: Command = command(project, "git");
    let output = git
        .arg("-C")
        .arg(repository)
        .args(words)
        .output()
        .context("git could not be started: is it installed?")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git {} failed in {}: {}", words[0], repository.display(), said.trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_hunks_are_read() {
        let hunk = Hunk::of("12,3 +14 @@ fn x()").unwrap();
        assert_eq!((hunk.at, hunk.gone), (11, 3));
        let hunk = Hunk::of("7,0 +8,2 @@").unwrap();
        assert_eq!((hunk.at, hunk.gone), (7, 0));
        assert!(Hunk::of("0 +1 @@").is_none());
    }

    #[test]
    fn every_text_is_in_its_encoding_and_takes_changes() {
        let project = Project::find().unwrap();
        let texts = texts(&project).unwrap();
        assert!(texts.len() >= 12);
        let mut numbers = Numbers::new(5);
        for source in &texts {
            assert!((0..99).any(|_| made_up(source, &mut numbers).is_some()), "{:?}", source.0);
        }
    }
}
