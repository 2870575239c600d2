//! Values of secrets that the user's shell start-up files set, for those who redact them.
//!
//! **Invariant:** the text of the files is scanned without running anything, so its secrets are
//! known before the first command. What only running the files reveals is known with their report.
//! The number of files and bytes is bounded.

use std::{
    collections::VecDeque,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use haft_text::secrets::{Names, Secrets, is_own};

use super::report::Report;

/// Most files whose text is looked at, those that others read included.
const FILES: usize = 32;
/// Most bytes of each.
const BYTES: u64 = 256 << 10;

/// Learns what these files, and those that they read, show by its names.
pub(super) fn learn(files: Vec<PathBuf>, home: &Path, secrets: &Secrets) {
    let mut waiting: VecDeque<PathBuf> = files.into();
    let mut seen: Vec<PathBuf> = Vec::new();
    while let Some(file) = waiting.pop_front().filter(|_| seen.len() < FILES) {
        if seen.contains(&file) {
            continue;
        }
        if file.is_dir() {
            let inside = fs::read_dir(&file).into_iter().flatten().flatten();
            waiting.extend(inside.map(|entry| entry.path()).filter(|path| path.is_file()));
        } else if let Some(text) = text(&file) {
            // Only what it learns is wanted.
            drop(secrets.hide(&text));
            waiting.extend(read_by(&text, home));
        }
        seen.push(file);
    }
}

/// The begin of a file; none where it is no plain one.
fn text(file: &Path) -> Option<String> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(file).ok()?.take(BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files that a script reads by `.` or `source`, where their paths stand there.
fn read_by(text: &str, home: &Path) -> Vec<PathBuf> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let path = |word: &str| {
        let word = word.trim_matches(['"', '\'', ';']);
        let mut below = ["~/", "$HOME/", "${HOME}/", "$HOME\"/"].iter();
        let below = below.find_map(|begin| word.strip_prefix(begin));
        let path = below.map_or_else(|| PathBuf::from(word), |below| home.join(below));
        path.is_absolute().then_some(path)
    };
    let in_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pairs = words.windows(2).filter(|pair| [".", "source"].contains(&pair[0]));
        pairs.filter_map(|pair| path(pair[1])).collect::<Vec<_>>()
    };
    lines.flat_map(in_line).collect()
}

/// The variables of a report that may hold secrets: exported ones, those that are not, and what
/// stands under a key of a list.
pub(super) fn of(report: &Report<'_>, names: &Names) -> Vec<(String, String)> {
    let may = |name: &str, value: &str| {
        is_own(name) || names.is_secret(name, value) || value.contains("://")
    };
    let mut all = Vec::new();
    for (name, value) in &report.variables {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        if may(&name, &value) {
            all.push((name.into_owned(), value.into_owned()));
        }
    }
    for (name, element) in &report.kept {
        let Some(name) = name.strip_suffix(b"[") else { continue };
        let (name, element) = (String::from_utf8_lossy(name), String::from_utf8_lossy(element));
        let (key, value) = element.split_once('=').unwrap_or(("", &element));
        let by = [&*name, key].into_iter().find(|by| may(by, value));
        all.extend(by.map(|by| (by.to_owned(), value.to_owned())));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_that_a_start_up_file_reads() {
        let text =
            "# . ~/no\n[ -r ~/.a ] && . ~/.a\nsource \"$HOME/.b\"; . /etc/c\n. $XDG/d\n. e\n";
        let found = read_by(text, Path::new("/home/me"));
        let all: Vec<PathBuf> = ["/home/me/.a", "/home/me/.b", "/etc/c"].map(PathBuf::from).into();
        assert_eq!(found, all);
    }
}
