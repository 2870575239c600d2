//! What programs need to read to run at all: the system's files, and the user's tools.
//!
//! **Invariant:** nothing of the user's own work is among it. No folder is granted that contains
//! the home folder, or that lies directly in it without being named here.

use std::{
    env,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use haft_types::{HostPath, Style};

use crate::Spawn;

/// Of the system.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/nix",
    "/gnu",
    "/snap",
    "/var/lib/dpkg",
    "/var/lib/apt",
    "/var/lib/rpm",
    "/var/cache",
    "/run/current-system",
    "/run/wrappers",
    "/run/systemd/resolve",
];
/// In the home folder: toolchains, and settings of programs that look.
const HOME: &[&str] = &[
    ".cargo",
    ".rustup",
    ".gitconfig",
    ".config/git",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pnpm",
    ".local/share/fnm",
    ".local/share/pipx",
    ".local/share/man",
    ".local/state/nix",
    ".nix-profile",
    ".nvm",
    ".volta",
    ".fnm",
    ".deno",
    ".bun",
    ".npm",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".mise",
    ".config/mise",
    ".tool-versions",
    ".sdkman",
    ".jenv",
    ".goenv",
    ".go",
    "go",
    ".ghcup",
    ".stack",
    ".opam",
    ".dotnet",
    ".pub-cache",
    ".julia",
    "miniconda3",
    "anaconda3",
    ".conda",
    ".terminfo",
    ".ripgreprc",
    ".config/ripgrep",
    ".config/fd",
    ".config/bat",
    ".fdignore",
    ".rgignore",
    ".ignore",
    ".editorconfig",
    ".tidyrc",
    ".jq",
];
/// Variables that name such folders.
const NAMED: &[&str] =
    &["CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOPATH", "GIT_CONFIG_GLOBAL", "TERMINFO"];

/// The same with all of that, where only some may be read.
pub(super) fn with_programs(mut spawn: Spawn, home: &HostPath) -> Spawn {
    let path = spawn.set.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.into()).or_else(|| env::var_os("PATH"));
    if let Some(read) = spawn.confine.as_mut().and_then(|limits| limits.read.as_mut()) {
        read.extend(of_programs(home, path.as_deref()));
    }
    spawn
}

/// All of that. Where programs lie in a folder for them, what lies beside that belongs to them.
fn of_programs(home: &HostPath, path: Option<&OsStr>) -> Vec<HostPath> {
    let home = Path::new(OsStr::from_bytes(home.as_bytes()));
    let mut all: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    all.extend(HOME.iter().map(|name| home.join(name)));
    let named = NAMED.iter().filter_map(env::var_os).map(PathBuf::from);
    let mut others: Vec<PathBuf> = named.collect();
    for folder in path.into_iter().flat_map(env::split_paths) {
        let is_part = matches!(folder.file_name(), Some(name) if name == "bin" || name == "shims");
        others.extend(folder.parent().filter(|_| is_part).map(Path::to_owned));
        others.push(folder);
    }
    let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    others.retain(|path| {
        let found = path.canonicalize().unwrap_or_else(|_| path.clone());
        path.is_absolute() && !home.starts_with(path) && !real.starts_with(&found)
    });
    all.append(&mut others);
    all.sort();
    all.dedup();
    let given = all.iter().map(|path| HostPath::new(path.as_os_str().as_bytes(), Style::Posix));
    given.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_beside_their_programs_count_and_no_folder_of_the_person() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/me");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        let of = HostPath::new(home.as_os_str().as_bytes(), Style::Posix).unwrap();
        let path = ["/tools/x/bin".into(), home.join("bin"), home.clone(), "relative/bin".into()];
        let path = env::join_paths(path).unwrap();
        let all = of_programs(&of, Some(&path));
        let has = |path: &Path| {
            let path = HostPath::new(path.as_os_str().as_bytes(), Style::Posix).unwrap();
            all.contains(&path)
        };
        assert!(has(Path::new("/tools/x")) && has(Path::new("/usr")) && has(&home.join("bin")));
        assert!(has(&home.join(".cargo")) && !has(&home) && !has(home.parent().unwrap()));
        assert!(all.iter().all(|path| !path.text().contains("relative")));
    }
}
