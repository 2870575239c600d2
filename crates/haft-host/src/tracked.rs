//! Whether git ignores a path, and whether it tracks anything below a folder.
//!
//! **Invariant:** git itself is not run. What cannot be read in full counts as tracked, and as not
//! ignored.
//!
//! **Does not know:** the user's own ignore file: what that names counts as not ignored.

use bytes::Bytes;
use haft_types::{EntryKind, Follow, HostPath};

use crate::{
    FileKind, Fs,
    git_settings::read_index,
    local::lists_below,
    walk::{IGNORE_FILES, IGNORE_LIMIT, Rules, Verdict},
};

/// Reports whether the ignore files of a repository exclude a path or a folder that contains it.
/// `top` is the top folder of the repository's work tree.
pub async fn is_ignored(fs: &dyn Fs, top: &HostPath, path: &HostPath, is_folder: bool) -> bool {
    let Some(below) = path.relative_to(top).filter(|below| !below.is_empty()) else { return false };
    let mut rules = Rules::git();
    let (mut folder, mut at) = (top.clone(), Vec::new());
    let names: Vec<&[u8]> = below.split(|byte| *byte == b'/').collect();
    for (number, name) in names.iter().enumerate() {
        rules.push(at.len());
        for (which, file) in IGNORE_FILES.iter().enumerate() {
            // What is kept beside the repository counts at its top alone.
            if !rules.reads(which) || file.len() > 1 && number > 0 {
                continue;
            }
            if let Some(text) = text(fs, &folder, &file.join(&b'/')).await {
                rules.add(number, which, &text);
            }
        }
        at.extend_from_slice(name);
        let inner = number + 1 < names.len();
        if rules.judge(&at, 0, inner || is_folder) == Verdict::Ignored {
            return true;
        }
        at.push(b'/');
        let Ok(next) = folder.join_bytes(name) else { return false };
        folder = next;
    }
    false
}

/// Reports whether the text of a `.gitignore` excludes a file of this name in the same folder.
pub fn is_left_out(text: &str, name: &str) -> bool {
    let mut rules = Rules::git();
    rules.push(0);
    for (which, _) in
        IGNORE_FILES.iter().enumerate().filter(|(_, file)| file[..] == [b".gitignore"])
    {
        rules.add(0, which, text.as_bytes());
    }
    rules.judge(name.as_bytes(), 0, false) == Verdict::Ignored
}

/// Reports whether an index may list something below a folder of the repository.
pub async fn is_tracked(fs: &dyn Fs, index: &HostPath, top: &HostPath, folder: &HostPath) -> bool {
    let Some(below) = folder.relative_to(top) else { return true };
    match read_index(fs, index).await {
        Some(bytes) if bytes.is_empty() => false,
        Some(bytes) => lists_below(&bytes, below).unwrap_or(true),
        None => true,
    }
}

/// What an ignore file holds; git reads none that is a link.
async fn text(fs: &dyn Fs, folder: &HostPath, name: &[u8]) -> Option<Bytes> {
    let found = fs.locate(&folder.join_bytes(name).ok()?, Follow::No).await.ok()?;
    if found.kind != FileKind::Entry(EntryKind::File) {
        return None;
    }
    fs.read(&found, 0, IGNORE_LIMIT).await.ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use haft_types::Style;

    use super::*;
    use crate::Local;

    #[test]
    fn a_text_alone_says_whether_a_file_beside_it_is_left_out() {
        for (text, wanted) in [
            ("settings.local.toml\n", true),
            ("# mine\n*.local.*\r\n", true),
            ("*\n", true),
            ("/settings.local.toml", true),
            ("", false),
            ("# settings.local.toml\n", false),
            ("settings.toml\n", false),
            ("settings.local.toml/\n", false),
            ("*\n!settings.local.toml\n", false),
            (".haft/settings.local.toml\n", false),
        ] {
            assert_eq!(is_left_out(text, "settings.local.toml"), wanted, "{text:?}");
        }
    }

    #[tokio::test]
    async fn it_says_what_git_says() {
        let world = tempfile::tempdir().unwrap();
        let folder = world.path().canonicalize().unwrap();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(&folder).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success()
        };
        assert!(git(&["init", "-q"]));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "target/\n/build\n*.log\n!keep.log\n");
        write(".git/info/exclude", "private\n");
        write(".ignore", "unknown\n");
        write("sub/.gitignore", "out\n!target/\n");
        let names = [
            "target",
            "sub/target",
            "build",
            "sub/build",
            "sub/out",
            "out",
            "a.log",
            "keep.log",
            "private",
            "sub/private",
            "unknown",
            "target/deep",
            "sub",
        ];
        let host = Local::new();
        let fs = crate::Host::fs(&host);
        let top = HostPath::new(folder.to_str().unwrap().as_bytes(), Style::Posix).unwrap();
        for name in names {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        for name in names {
            let want = git(&["check-ignore", "-q", name]);
            let path = top.join(name).unwrap();
            assert_eq!(is_ignored(fs, &top, &path, true).await, want, "{name}");
        }
    }

    #[tokio::test]
    async fn what_an_index_lists_is_found_in_each_version_of_it() {
        for version in ["2", "3", "4"] {
            let world = tempfile::tempdir().unwrap();
            let folder = world.path().canonicalize().unwrap();
            let git = |arguments: &[&str]| {
                let done =
                    Command::new("git").arg("-C").arg(&folder).args(arguments).output().unwrap();
                assert!(done.status.success(), "{done:?}");
            };
            git(&["init", "-q"]);
            std::fs::create_dir_all(folder.join("dist/a")).unwrap();
            std::fs::create_dir_all(folder.join("target")).unwrap();
            std::fs::write(folder.join("dist/a/f"), "x").unwrap();
            std::fs::write(folder.join("dists"), "x").unwrap();
            std::fs::write(folder.join("target/f"), "x").unwrap();
            git(&["add", "dist", "dists"]);
            git(&["update-index", "--index-version", version]);
            let host = Local::new();
            let fs = crate::Host::fs(&host);
            let top = HostPath::new(folder.to_str().unwrap().as_bytes(), Style::Posix).unwrap();
            let index = top.join(".git/index").unwrap();
            for (name, want) in
                [("dist", true), ("dist/a", true), ("target", false), ("dis", false)]
            {
                let path = top.join(name).unwrap();
                assert_eq!(is_tracked(fs, &index, &top, &path).await, want, "{name} {version}");
            }
            // What is damaged counts as kept track of.
            let mut bytes = std::fs::read(folder.join(".git/index")).unwrap();
            bytes.truncate(40);
            std::fs::write(folder.join(".git/index"), bytes).unwrap();
            assert!(is_tracked(fs, &index, &top, &top.join("target").unwrap()).await);
        }
    }
}
