//! Decides which deferred tools a model sees from its first request on.
//!
//! **Invariant:** the search reads names alone: those in the workspace and in the folders directly
//! inside it, at most [`LOOKED_AT`] of them. Its result depends on nothing else, so a resumed
//! session has the same tools.

use std::{fs, path::Path};

use haft_config::ToolProfile;
use haft_types::{Loading, Mode, Origin, ToolSpec};

/// Most names that are looked at.
const LOOKED_AT: usize = 2_000;
/// What the names of notebooks end with.
const NOTEBOOK: &[u8] = b".ipynb";

/// The tools of the small profile.
const CORE: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// Whether a tool belongs to a profile. Those that are not haft's own belong to each.
pub fn is_of_profile(spec: &ToolSpec, profile: ToolProfile) -> bool {
    let is_own = spec.origin == Origin::Builtin;
    profile == ToolProfile::Full || !is_own || CORE.contains(&&*spec.name)
}

/// What decides whether a deferred tool is seen at once.
pub struct LoadFacts<'a> {
    /// True for faces that show every tool.
    pub every: bool,
    /// Names of tools that somebody asked for.
    pub on: &'a [String],
    /// The mode that the run begins in.
    pub mode: Mode,
    /// The workspace root.
    pub root: &'a Path,
    /// Whether there are skills but those that haft brings along.
    pub has_skills: bool,
}

impl LoadFacts<'_> {
    /// Reports whether the model sees the tool from the start.
    pub fn has(&self, spec: &ToolSpec) -> bool {
        let named = |name: &String| haft_policy::own_name(name.trim()) == spec.name;
        spec.loading != Loading::Deferred
            || self.every
            || self.on.iter().any(named)
            || spec.known_in == Some(self.mode)
            || (spec.name == "skill" && self.has_skills)
            || (spec.name == "notebook_edit" && holds_notebook(self.root))
    }
}

/// Reports whether a notebook is in the workspace or in a folder right inside of it.
fn holds_notebook(root: &Path) -> bool {
    let mut left = LOOKED_AT;
    let mut folders = vec![(root.to_owned(), true)];
    while let Some((folder, outer)) = folders.pop() {
        // What cannot be listed holds nothing to work with.
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Some(rest) = left.checked_sub(1) else { return false };
            left = rest;
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            if name.ends_with(NOTEBOOK) {
                return true;
            }
            let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
            if outer && !name.starts_with(b".") && is_folder() {
                folders.push((entry.path(), false));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferred_tool_is_there_for_who_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let spec =
            |name: &'static str, loading| ToolSpec { loading, ..ToolSpec::new(name, "", "") };
        let notebooks = spec("notebook_edit", Loading::Deferred);
        let other = spec("other", Loading::Deferred);
        let has = |every, on: &[&str], spec: &ToolSpec| {
            let on: Vec<String> = on.iter().map(ToString::to_string).collect();
            let root = folder.path();
            LoadFacts { every, on: &on, mode: Mode::Ask, root, has_skills: false }.has(spec)
        };
        assert!(has(false, &[], &spec("read", Loading::Normal)));
        assert!(!has(false, &["read"], &notebooks) && !has(false, &[], &other));
        assert!(has(true, &[], &notebooks) && has(true, &[], &other));
        assert!(has(false, &[" NotebookEdit"], &notebooks) && has(false, &["other"], &other));

        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        file("a/b/deep.ipynb");
        file(".hidden/a.ipynb");
        assert!(!has(false, &[], &notebooks));
        file("a/one.ipynb");
        assert!(has(false, &[], &notebooks) && !has(false, &[], &other));
    }

    #[test]
    fn big_folders_are_looked_at_in_part() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..LOOKED_AT {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.ipynb"), "").unwrap();
        assert!(!holds_notebook(folder.path()));
    }
}
