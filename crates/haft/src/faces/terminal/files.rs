//! Names of files for completion, and the person's editor.

use std::{env, fs, io::Write as _, path::Path, process::Command};

use haft_types::HostPath;

/// Names that are offered.
const OFFERED: usize = 50;
/// Entries of a folder that are looked at.
const LOOKED: usize = 10_000;

/// Files and folders of the workspace whose names go on as typed.
pub fn matching(root: &HostPath, asked: &str) -> Vec<String> {
    let (folder, begin) =
        asked.rsplit_once('/').map_or(("", asked), |(folder, name)| (folder, name));
    let root = Path::new(&*root.text()).join(folder);
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .take(LOOKED)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !begin.starts_with('.');
            let lower = name.to_lowercase();
            if hidden || !lower.starts_with(&begin.to_lowercase()) {
                return None;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            Some(format!("{before}{name}{}", if is_folder { "/" } else { "" }))
        })
        .collect();
    names.sort();
    names.truncate(OFFERED);
    names
}

/// A text as the person leaves it in their editor.
///
/// # Errors
/// There is no editor, it failed, or its file cannot be read; in words for people.
pub fn edited(text: &str) -> Result<String, String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty());
    let editor = editor.ok_or("there is no editor: set VISUAL or EDITOR to one")?;
    let wrong = |error: std::io::Error| format!("a file for the editor cannot be made: {error}");
    let mut file = tempfile::Builder::new().suffix(".md").tempfile().map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let ended = Command::new(program).args(words).arg(file.path()).status();
    let ended =
        ended.map_err(|error| format!("the editor {program} cannot be started: {error}"))?;
    if !ended.success() {
        return Err(format!("the editor {program} failed ({ended}): the text is as it was"));
    }
    let edited = fs::read_to_string(file.path());
    let edited = edited.map_err(|error| format!("what the editor left cannot be read: {error}"))?;
    Ok(edited.trim_end_matches('\n').to_owned())
}
