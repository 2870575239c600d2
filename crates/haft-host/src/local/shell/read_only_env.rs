//! The environment variables of a command that was classified as read-only.
//!
//! **Invariant:** no variable that it inherits makes a known program run another, read other
//! settings or take its options for others. No folder of `PATH` is one of the workspace, whose
//! programs anybody may have written. The variables that are set for it turn pagers into `cat`, and
//! make git start nothing, ask nothing and connect to nothing.
//!
//! **Does not know:** settings in files. Those of the user are the user's; [`crate::git_settings`]
//! handles those of a repository.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use haft_types::HostPath;

use crate::ReadOnlyRun;

/// What names of variables begin with that it does not inherit.
const FAMILIES: &[&str] = &[
    "BASH_",
    "CARGO_ALIAS_",
    "CARGO_BUILD_",
    "CARGO_TARGET_",
    "DYLD_",
    "FZF_",
    "GAWK",
    "GIT_",
    "LD_",
    "LESS",
    "MALLOC_",
    "NPM_CONFIG_",
    "PERL5",
    "PYTHON",
    "RUSTC",
    "npm_config_",
];

/// Further ones, by their whole names.
const NAMES: &[&str] = &[
    "AWKLIBPATH",
    "AWKPATH",
    "BASHOPTS",
    "BAT_CONFIG_PATH",
    "BAT_OPTS",
    "CDPATH",
    "ENV",
    "FCEDIT",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GOENV",
    "GOFLAGS",
    "GREP_OPTIONS",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERLLIB",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTUP_TOOLCHAIN",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "TIMEFORMAT",
];

/// What it gets, whatever it inherits.
const GIVEN: &[(&str, &str)] = &[
    ("GH_PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GOTOOLCHAIN", "local"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("SYSTEMD_PAGER", "cat"),
    ("npm_config_cache", "/dev/null"),
    ("npm_config_logs_dir", "/dev/null"),
    ("npm_config_logs_max", "0"),
    ("npm_config_update_notifier", "false"),
];

/// Settings of git that win over those of a repository.
const GIT: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("diff.autoRefreshIndex", "false"),
    // A repository within has settings of its own.
    ("diff.ignoreSubmodules", "dirty"),
    ("gc.auto", "0"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
];

/// Reports whether it may inherit a variable of this name.
pub(super) fn may_inherit(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let given = |(given, _): &(&str, &str)| *given == name;
    !(NAMES.contains(&&*name)
        || name.ends_with("PAGER")
        || FAMILIES.iter().any(|family| name.starts_with(family))
        || GIVEN.iter().any(given))
}

/// What it is given: what is fixed, settings of git where it does more than to tell of them, and
/// `PATH` without the folders of the workspace.
pub(super) fn given(path: Option<OsString>, looks: &ReadOnlyRun) -> Vec<(OsString, OsString)> {
    let fixed = GIVEN.iter().map(|(name, value)| (name.into(), value.into()));
    let git = if looks.git_as_set { &[] } else { GIT };
    let count = ("GIT_CONFIG_COUNT".into(), git.len().to_string().into());
    let settings = git.iter().enumerate().flat_map(|(at, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}").into(), key.into()),
            (format!("GIT_CONFIG_VALUE_{at}").into(), value.into()),
        ]
    });
    let mut all: Vec<(OsString, OsString)> = fixed.chain([count]).chain(settings).collect();
    let path = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = env::split_paths(&path).filter(|folder| is_outside(folder, &looks.workspace));
    // A folder with a colon in its name cannot have come out of a path.
    if let Ok(path) = env::join_paths(folders) {
        all.push(("PATH".into(), path));
    }
    all
}

/// Reports whether a folder of programs is none of the workspace.
pub(super) fn is_outside(folder: &Path, workspace: &[HostPath]) -> bool {
    let real = fs::canonicalize(folder);
    let inside = |folder: &Path| {
        workspace.iter().any(|root| {
            let root = Path::new(OsStr::from_bytes(root.as_bytes()));
            let real: Option<PathBuf> = fs::canonicalize(root).ok();
            folder.starts_with(root) || real.is_some_and(|real| folder.starts_with(real))
        })
    };
    folder.is_absolute() && !inside(folder) && real.is_ok_and(|real| !inside(&real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_programs_run_others_is_not_inherited() {
        for name in ["GIT_EXTERNAL_DIFF", "BASH_FUNC_ls%%", "LD_PRELOAD", "PAGER", "X_PAGER", "ENV"]
        {
            assert!(!may_inherit(OsStr::new(name)), "{name}");
        }
        for name in ["HOME", "LANG", "CARGO_HOME", "VIRTUAL_ENV", "MY_ENV"] {
            assert!(may_inherit(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn what_the_reading_of_commands_counts_on_is_given() {
        let given = given(None, &ReadOnlyRun::default());
        for (name, value) in haft_shell::LOOKING {
            assert!(given.contains(&(name.into(), value.into())), "{name}");
        }
    }

    #[test]
    fn programs_of_the_workspace_are_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["w/bin", "else"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("w/bin"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("w"), at("root")).unwrap();
        let root = HostPath::new(at("root").as_os_str().as_bytes(), haft_types::Style::Posix);
        let path = env::join_paths([
            PathBuf::from("."),
            "".into(),
            at("w/bin"),
            at("link"),
            at("root/bin"),
            at("else"),
            at("missing"),
        ]);
        let looks = ReadOnlyRun { workspace: vec![root.unwrap()], ..ReadOnlyRun::default() };
        let given = given(Some(path.unwrap()), &looks);
        let path = given.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        assert_eq!(path, Some(at("else").into_os_string()));
    }
}
