//! Whether git starts programs that a repository names.
//!
//! **Invariant:** a repository is plain only where each of its settings is known to start nothing
//! and to lead nowhere else; whatever cannot be read or is not known makes it not plain. git itself
//! is not run.
//!
//! **Does not know:** the settings of the person and of the machine, which are theirs; what the
//! caller switches off for the child (see `Spawn::only_looking`).
//!
//! Source: git-config(1) and gitrepository-layout(5) of git 2.47.

use haft_types::{EntryKind, Follow, HostPath};

use crate::{FileKind, Fs};

/// Most bytes of a file of settings.
const MOST: usize = 256 << 10;
/// What git skips around a setting.
const BLANKS: [char; 3] = [' ', '\t', '\r'];
/// Most folders upward that are looked into.
const CLIMB: usize = 64;

/// Sections without a name of their own whose settings all change no more than how git shows and
/// sorts things, or matter only to what is no mere look.
const SECTIONS: &[&str] =
    &["advice", "color", "column", "gc", "init", "maintenance", "pull", "push", "rerere", "user"];

/// Further settings that start nothing, in small letters; a star stands for a name in quotes.
const KEYS: &[&str] = &[
    "branch.*.description",
    "branch.*.merge",
    "branch.*.pushremote",
    "branch.*.rebase",
    "branch.*.remote",
    "branch.*.vscode-merge-base",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "commit.gpgsign",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.checkstat",
    "core.commitgraph",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.indentheuristic",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "extensions.noop",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "fetch.prune",
    "lfs.repositoryformatversion",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "merge.conflictstyle",
    "merge.ff",
    "rebase.autosquash",
    "rebase.autostash",
    "remote.*.fetch",
    "remote.*.mirror",
    "remote.*.prune",
    "remote.*.push",
    "remote.*.pushurl",
    "remote.*.tagopt",
    "remote.*.url",
    "remote.pushdefault",
    "status.showuntrackedfiles",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.*.url",
    "submodule.active",
    "tag.gpgsign",
];

/// Reports whether git, started in a folder to look, starts nothing that the repository there names.
pub async fn is_plain_git(fs: &dyn Fs, folder: &HostPath) -> bool {
    // git goes up by where folders really are.
    let Some(mut at) = real(fs, folder).await else { return true };
    // In there it takes for a repository what lies around.
    if at.names().any(|name| name.eq_ignore_ascii_case(b".git")) {
        return false;
    }
    for _ in 0..CLIMB {
        let Ok(git) = at.join(".git") else { return false };
        match kind(fs, &git).await {
            Some(FileKind::Missing) => {}
            Some(FileKind::FOLDER) => return is_plain_repository(fs, &at, &git).await,
            // A worktree: the file names its folder, that the folder of the repository.
            Some(FileKind::Entry(EntryKind::File)) => {
                return is_plain_worktree(fs, &at, &git).await.unwrap_or_default();
            }
            Some(_) | None => return false,
        }
        let Some(parent) = at.parent() else { return true };
        at = parent;
    }
    false
}

/// Where a folder really is; none where there is none.
async fn real(fs: &dyn Fs, folder: &HostPath) -> Option<HostPath> {
    let found = fs.locate(folder, Follow::Yes).await.ok()?;
    (found.kind == FileKind::FOLDER).then_some(found.real)
}

/// What git does not take for a repository it goes past; what names another one is not looked into.
async fn is_plain_repository(fs: &dyn Fs, top: &HostPath, git: &HostPath) -> bool {
    for (name, wanted) in [("HEAD", true), ("objects", true), ("refs", true), ("commondir", false)]
    {
        let Ok(path) = git.join(name) else { return false };
        let found = kind(fs, &path).await;
        if found.is_none() || (found != Some(FileKind::Missing)) != wanted {
            return false;
        }
    }
    has_plain_modules(fs, top).await && is_plain(fs, git, git).await
}

/// Whether repositories within are left alone: what their file says wins over what a command is
/// given.
async fn has_plain_modules(fs: &dyn Fs, top: &HostPath) -> bool {
    let Ok(path) = top.join(".gitmodules") else { return false };
    match text(fs, &path).await {
        Some(Some(text)) => !text.to_ascii_lowercase().contains("ignore"),
        Some(None) => true,
        None => false,
    }
}

/// Reports whether no toolchain file of a folder or one above names a folder of programs, so that
/// `cargo` and `rustc` are those that the person installed.
pub async fn is_plain_toolchain(fs: &dyn Fs, folder: &HostPath) -> bool {
    let Some(mut at) = real(fs, folder).await else { return true };
    for _ in 0..CLIMB {
        for name in ["rust-toolchain", "rust-toolchain.toml"] {
            let Ok(path) = at.join(name) else { return false };
            match text(fs, &path).await {
                // A backslash may stand for any letter.
                Some(Some(text)) if text.contains("path") || text.contains(['/', '\\']) => {
                    return false;
                }
                Some(_) => {}
                None => return false,
            }
        }
        let Some(parent) = at.parent() else { return true };
        at = parent;
    }
    false
}

/// Only one that its repository knows: else the file may name the repository of somebody else.
async fn is_plain_worktree(fs: &dyn Fs, at: &HostPath, file: &HostPath) -> Option<bool> {
    let named = text(fs, file).await??;
    let named = named.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']);
    if named.split('/').skip_while(|name| *name == "..").any(|name| name == "..") {
        return Some(false);
    }
    let own = real(fs, &at.join(named).ok()?).await?;
    let back = text(fs, &own.join("gitdir").ok()?).await??;
    let back = own.join(back.trim_end_matches(['\n', '\r'])).ok()?;
    if real(fs, &back.parent()?).await? != *at || !back.as_bytes().ends_with(b"/.git") {
        return Some(false);
    }
    let common = text(fs, &own.join("commondir").ok()?).await??;
    if common.trim_end_matches(['\n', '\r']) != "../.." {
        return Some(false);
    }
    let common = own.parent()?.parent()?;
    Some(has_plain_modules(fs, at).await && is_plain(fs, &common, &own).await)
}

async fn is_plain(fs: &dyn Fs, common: &HostPath, own: &HostPath) -> bool {
    for (folder, name) in [(common, "config"), (own, "config.worktree")] {
        let Ok(path) = folder.join(name) else { return false };
        match text(fs, &path).await {
            Some(Some(text)) if !starts_nothing(&text) => return false,
            Some(_) => {}
            None => return false,
        }
    }
    true
}

/// What stands there; a link is a link.
async fn kind(fs: &dyn Fs, path: &HostPath) -> Option<FileKind> {
    Some(fs.locate(path, Follow::No).await.ok()?.kind)
}

/// What a file holds, `Some(None)` where there is none; none where it cannot be known.
async fn text(fs: &dyn Fs, path: &HostPath) -> Option<Option<String>> {
    let found = fs.locate(path, Follow::Yes).await.ok()?;
    if found.kind == FileKind::Missing {
        return Some(None);
    }
    let bytes = fs.read(&found, 0, MOST).await.ok()?;
    let text = if bytes.len() < MOST { String::from_utf8(bytes.into()).ok() } else { None };
    Some(Some(text?))
}

/// Reports whether every setting of a file is known to start nothing.
fn starts_nothing(text: &str) -> bool {
    let mut section: Option<(String, bool)> = None;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim_matches(BLANKS);
        if let Some(rest) = line.strip_prefix('[') {
            let Some((head, behind)) = head(rest) else { return false };
            section = Some(head);
            line = behind.trim_matches(BLANKS);
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((section, is_named)) = &section else { return false };
        // A backslash at the end goes on in the next line, which then is no setting.
        let name = line.split(['=', ' ', '\t', '#', ';']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let star = if *is_named { ".*" } else { "" };
        let whole = !is_named && SECTIONS.contains(&&**section);
        let known = whole || KEYS.contains(&&*format!("{section}{star}.{name}"));
        if !known || line.ends_with('\\') {
            return false;
        }
    }
    true
}

/// The name of a section in small letters and whether a name in quotes follows; then the rest of
/// the line behind the bracket.
fn head(text: &str) -> Option<((String, bool), &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
    let (name, rest) = text.split_at(end);
    let name = name.to_ascii_lowercase();
    if let Some(behind) = rest.strip_prefix(']') {
        return Some(((name, false), behind));
    }
    let mut chars = rest.trim_start_matches(BLANKS).strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '\\' => drop(chars.next()?),
            '"' => return Some(((name, true), chars.as_str().strip_prefix(']')?)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host as _, Memory};

    #[test]
    fn usual_settings_start_nothing() {
        for text in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[CORE]\r\n\tFileMode=false # why not\r\n; more\r\n",
            "[remote \"origin\"]\n url = git@x:y\n fetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[branch \"a]b\\\"c\"] merge = refs/heads/a\n[user] name = A B\n\temail = a@b\n",
            "[color]\nui\n[pull] rebase = true\n[submodule \"x\"]\nurl = ../x\n",
        ] {
            assert!(starts_nothing(text), "{text:?}");
        }
    }

    #[test]
    fn what_starts_programs_or_is_not_known_is_not_plain() {
        for text in [
            "[core]\nfsmonitor = ./x\n",
            "[core]\npager = ./x\n",
            "[core]\nhooksPath = h\n",
            "[core]\nbare = false\\\n\n",
            "[core] fsmonitor=./x\n",
            "[core\n]fsmonitor=./x\n",
            "[diff]\nexternal = ./x\n",
            "[diff \"a\"]\ntextconv = ./x\n",
            "[diff \"a\"] command = ./x\n",
            "[diff.a] textconv = ./x\n",
            "[filter \"a\"]\nclean = ./x\n",
            "[include]\npath = other\n",
            "[includeIf \"gitdir:x\"]\npath = other\n",
            "[log]\nshowSignature = true\n[gpg]\nprogram = ./x\n",
            "[core \"x\"]\nfilemode = true\n",
            "[color \"x\"]\nui = true\n",
            "[alias]\nst = !./x\n",
            "filemode = true\n",
            "[remote \"x\"\nurl = y\n",
            "[remote \"origin\"]\nuploadpack = ./x\n",
            "[extensions]\npartialClone = origin\n",
        ] {
            assert!(!starts_nothing(text), "{text:?}");
        }
    }

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), haft_types::Style::Posix).unwrap()
    }

    async fn is_plain(files: &[(&str, &str)]) -> bool {
        let host = Memory::with_files(files.iter().map(|(path, text)| (*path, text.to_string())));
        let host = host.unwrap();
        is_plain_git(host.fs(), &at("/w/a/b")).await
    }

    /// What makes a folder a repository.
    fn repository(top: &'static str, config: &'static str) -> Vec<(String, &'static str)> {
        let file = |name: &str, text| (format!("{top}/.git/{name}"), text);
        vec![
            file("HEAD", "ref: refs/heads/main\n"),
            file("objects/x", ""),
            file("refs/x", ""),
            file("config", config),
        ]
    }

    const BAD: &str = "[diff \"x\"]\ntextconv = ./x\n";
    const GOOD: &str = "[core]\nbare = false\n";

    async fn with(
        repositories: &[(&'static str, &'static str)],
        more: &[(&'static str, &'static str)],
    ) -> bool {
        let made = repositories.iter().flat_map(|(top, config)| repository(top, config));
        let more = more.iter().map(|(path, text)| ((*path).to_owned(), *text));
        let all: Vec<(String, &str)> =
            made.chain(more).chain([("/w/a/b/c".to_owned(), "")]).collect();
        let all: Vec<(&str, &str)> =
            all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        is_plain(&all).await
    }

    #[tokio::test]
    async fn the_repository_that_git_would_take_is_looked_at() {
        assert!(with(&[], &[]).await, "there is none");
        assert!(with(&[("/w", GOOD)], &[]).await);
        assert!(!with(&[("/w", BAD)], &[]).await);
        assert!(!with(&[("/w", GOOD), ("/w/a", BAD)], &[]).await);
        assert!(!with(&[("/w", BAD)], &[("/w/a/.git/x", "")]).await, "git goes past it");
        assert!(!with(&[("/w", GOOD)], &[("/w/.git/commondir", "../common\n")]).await);
        let modules = "[submodule \"x\"]\n\tpath = x\n\tIgnore = none\n";
        assert!(!with(&[("/w", GOOD)], &[("/w/.gitmodules", modules)]).await);
        assert!(with(&[("/w", GOOD)], &[("/w/.gitmodules", "[submodule \"x\"]\npath=x\n")]).await);
    }

    #[tokio::test]
    async fn a_worktree_is_one_that_its_repository_knows() {
        let file = ("/w/a/.git", "gitdir: /r/.git/worktrees/a\n");
        let back = ("/r/.git/worktrees/a/gitdir", "/w/a/.git\n");
        let common = ("/r/.git/worktrees/a/commondir", "../..\n");
        assert!(with(&[("/r", GOOD)], &[file, back, common]).await);
        assert!(!with(&[("/r", BAD)], &[file, back, common]).await);
        assert!(!with(&[("/r", GOOD)], &[file, common]).await);
        let other = ("/r/.git/worktrees/a/gitdir", "/w/z/.git\n");
        assert!(!with(&[("/r", GOOD)], &[file, other, common]).await);
        let own = ("/r/.git/worktrees/a/config.worktree", BAD);
        assert!(!with(&[("/r", GOOD)], &[file, back, common, own]).await);
        assert!(!with(&[("/r", GOOD)], &[("/w/a/.git", "gitdir: /r/.git\n")]).await);
        assert!(!with(&[], &[("/w/a/.git", "something else")]).await);
    }
}
