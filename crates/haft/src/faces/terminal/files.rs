//! Names of files for completion, and the person's editor.

use std::{
    env, fs,
    io::Write as _,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use ignore::WalkBuilder;
use nucleo_matcher::{
    Config, Matcher,
    pattern::{CaseMatching, Normalization, Pattern},
};

use haft_types::HostPath;

/// Names that are offered.
const OFFERED: usize = 50;
/// Names of a workspace that are known.
const INDEXED: usize = 100_000;
/// How long they count as what there is.
const FRESH: Duration = Duration::from_secs(5);
/// Entries of a folder that are looked at.
const LOOKED: usize = 10_000;

/// Whether a name leads out of the workspace.
pub fn is_elsewhere(asked: &str) -> bool {
    asked.starts_with(['/', '~']) || asked.starts_with("../")
}

/// Files and folders whose names go on as typed, of one folder.
pub fn listed(root: &HostPath, asked: &str) -> Vec<String> {
    let (folder, begin) =
        asked.rsplit_once('/').map_or(("", asked), |(folder, name)| (folder, name));
    let home = env::var("HOME").unwrap_or_default();
    let inner = folder.strip_prefix('~').map(|rest| home + rest);
    let folder_there = inner.as_deref().unwrap_or(if asked.starts_with('/') && folder.is_empty() {
        "/"
    } else {
        folder
    });
    let root = Path::new(&*root.text()).join(folder_there);
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
            let before = asked.strip_suffix(begin).unwrap_or_default();
            Some(format!("{before}{name}{}", if is_folder { "/" } else { "" }))
        })
        .collect();
    names.sort();
    names.truncate(OFFERED);
    names
}

/// Files and folders below a folder, without those that git ignores, relative to it. Of too many the
/// first that are met.
pub fn walk(root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in WalkBuilder::new(root).hidden(false).require_git(false).build() {
        let Ok(entry) = entry else { continue };
        let Some(name) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else {
            continue;
        };
        if name.is_empty() || name == ".git" || name.starts_with(".git/") {
            continue;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        names.push(if is_folder { format!("{name}/") } else { name.to_owned() });
        if names.len() >= INDEXED {
            break;
        }
    }
    // What is near comes first where nothing else decides.
    names
        .sort_by_cached_key(|name| (name.trim_end_matches('/').matches('/').count(), name.clone()));
    names
}

/// The names of the workspace, for completion by letters that stand in them in this order.
#[derive(Default)]
pub struct Index {
    names: Option<Vec<String>>,
    /// When they were asked for, or came, last.
    begun: Option<Instant>,
    is_walking: bool,
    /// What is to be completed when they come.
    asked: Option<String>,
}

impl Index {
    /// Whether a walk is to begin now: none is under way, and what is known is none or old.
    pub fn begin(&mut self, asked: String) -> bool {
        let is_fresh = self.begun.is_some_and(|begun| begun.elapsed() < FRESH);
        if self.is_walking || !is_fresh {
            self.asked = Some(asked);
        }
        let begins = !self.is_walking && !is_fresh;
        if begins {
            (self.is_walking, self.begun) = (true, Some(Instant::now()));
        }
        begins
    }

    /// Takes what a walk has met.
    pub fn set(&mut self, names: Vec<String>) {
        (self.names, self.is_walking) = (Some(names), false);
        self.begun = Some(Instant::now());
    }

    /// What is still to be completed.
    pub const fn take_asked(&mut self) -> Option<String> {
        self.asked.take()
    }

    /// The names that fit best; none where none are known yet.
    pub fn matching(&self, asked: &str) -> Option<Vec<String>> {
        let names = self.names.as_ref()?;
        if asked.is_empty() {
            return Some(names.iter().take(OFFERED).cloned().collect());
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let pattern = Pattern::parse(asked, CaseMatching::Smart, Normalization::Smart);
        let best = pattern.match_list(names, &mut matcher).into_iter();
        Some(best.take(OFFERED).map(|(name, _)| name.clone()).collect())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_letters_in_their_order_and_ignored_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src/app/main.rs", "src/lib.rs", "target/lib.rs", ".git/lib.rs", ".env.sample"]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
        let mut index = Index::default();
        assert_eq!(index.matching("lib"), None);
        assert!(index.begin("lib".into()) && !index.begin("li".into()));
        index.set(walk(folder.path()));
        assert_eq!(index.take_asked().as_deref(), Some("li"));
        assert!(!index.begin("l".into()) && index.take_asked().is_none());
        assert_eq!(index.matching("lib").unwrap(), ["src/lib.rs"]);
        assert_eq!(index.matching("smrs").unwrap(), ["src/app/main.rs"]);
        let all =
            [".env.sample", ".gitignore", "src/", "src/app/", "src/lib.rs", "src/app/main.rs"];
        assert_eq!(index.matching("").unwrap(), all);
    }
}
