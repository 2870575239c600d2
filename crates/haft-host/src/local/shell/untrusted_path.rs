//! Programs that a name resolves to in folders which anybody may have written to.
//!
//! **Does not know:** what `PATH` becomes while a command runs.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
};

use haft_types::HostPath;

use super::read_only_env::is_outside;
use crate::PathLookup;

/// Those of the programs that are found in the folders, or may come to be found there; `path` in place
/// of haft's own.
pub(super) fn found_in(path: Option<OsString>, sought: &PathLookup) -> Vec<String> {
    let path = path.or_else(|| env::var_os("PATH")).unwrap_or_default();
    let cwd = as_path(&sought.cwd);
    let folders: Vec<_> = env::split_paths(&path)
        .map(|folder| {
            // What is not absolute lies wherever the command goes.
            let is_inside = !is_outside(&folder, &sought.folders);
            let is_open = !folder.is_absolute() && !sought.changes.is_empty();
            let folder = cwd.join(folder);
            let is_changed = is_inside
                && sought
                    .changes
                    .iter()
                    .map(as_path)
                    .any(|changed| changed.starts_with(&folder) || folder.starts_with(changed));
            (folder, is_inside, is_open || is_changed)
        })
        .collect();
    let is_of_them = |name: &&String| {
        for (folder, is_inside, is_changed) in &folders {
            let file = folder.join(name.as_str());
            let found = fs::metadata(&file);
            if found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0) {
                let real = fs::canonicalize(&file).ok();
                let real = real.as_deref().and_then(Path::parent);
                return *is_inside || real.is_none_or(|real| !is_outside(real, &sought.folders));
            }
            if *is_changed {
                return true;
            }
        }
        false
    };
    sought.names.iter().filter(is_of_them).cloned().collect()
}

fn as_path(path: &HostPath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use haft_types::Style;

    use super::*;

    #[test]
    fn programs_of_the_workspace_are_told_from_others() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let program = |name: &str| {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        };
        for name in ["w/.venv/bin/touch", "usr/cp", "usr/touch", "w/tools/mkdir"] {
            program(name);
        }
        symlink(root.join("w/tools/mkdir"), root.join("usr/mkdir")).unwrap();
        fs::write(root.join("w/.venv/bin/cp"), "no program").unwrap();
        let at = |name: &str| {
            HostPath::new(root.join(name).as_os_str().as_bytes(), Style::Posix).unwrap()
        };
        let found = |path: &[&str], changes: &[&str]| {
            let path = env::join_paths(path.iter().map(|folder| match *folder {
                "." => folder.into(),
                folder => root.join(folder),
            }));
            let sought = PathLookup {
                names: ["cp", "mkdir", "touch", "rm"].map(str::to_owned).into(),
                cwd: at("w"),
                folders: vec![at("w")],
                changes: changes.iter().map(|name| at(name)).collect(),
            };
            found_in(Some(path.unwrap()), &sought)
        };
        assert_eq!(found(&["w/.venv/bin", "usr"], &[]), ["mkdir", "touch"]);
        assert_eq!(found(&["usr", "w/.venv/bin"], &[]), ["mkdir"]);
        assert_eq!(found(&["w/.venv/bin", "usr"], &["w/src/a"]), ["mkdir", "touch"]);
        let all = ["cp", "mkdir", "touch", "rm"];
        assert_eq!(found(&["w/.venv/bin", "usr"], &["w/.venv/bin/cp"]), all);
        assert_eq!(found(&["w/none", "usr"], &["w/none"]), all);
        assert_eq!(found(&["usr", "."], &["w/rm"]), ["mkdir", "rm"]);
    }
}
