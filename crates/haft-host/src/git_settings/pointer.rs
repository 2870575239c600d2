//! `.git` files: files that stand where git's own folder would be, and name that folder.
//!
//! **Invariant:** the named folder counts only if it names these files as its own. Otherwise it may
//! be somebody else's repository.

use haft_types::HostPath;

use super::{BLANKS, GitSettings, is_alone, of_files, real, settings, text};
use crate::Fs;

/// Of a file in the place of the folder: of a worktree, whose folder names that of the repository, or of a
/// submodule.
pub(super) async fn of_pointer(fs: &dyn Fs, at: &HostPath, file: &HostPath) -> Option<GitSettings> {
    if let Some((own, common)) = worktree(fs, at, file).await {
        return of_files(fs, at, (&common, &own), false).await;
    }
    let own = submodule(fs, at, file).await?;
    of_files(fs, at, (&own, &own), true).await
}

/// The folder of a submodule: among git's own files of the repository around, and with settings that name
/// these files as its own. Else the file may name the repository of somebody else.
pub(super) async fn submodule(fs: &dyn Fs, at: &HostPath, file: &HostPath) -> Option<HostPath> {
    let own = pointed(fs, at, file).await?;
    let names: Vec<&[u8]> = own.names().collect();
    let is_kept = names.windows(2).any(|two| two == [&b".git"[..], b"modules"]);
    if !(is_kept && is_alone(fs, &own).await?) {
        return None;
    }
    let config = text(fs, &own.join("config").ok()?).await??;
    let back = own.join(files(&config)?).ok()?;
    (real(fs, &back).await? == *at).then_some(own)
}

/// Where settings say that the files of the repository are; none where they do not, or not plainly.
fn files(config: &str) -> Option<&str> {
    let names = settings(config)?;
    let mut found = names.iter().filter(|name| name.ends_with(".worktree"));
    if found.next()? != "core.worktree" || found.next().is_some() {
        return None;
    }
    let lines = config.lines().map(|line| line.trim_matches(BLANKS).split_once('='));
    let is_it = |name: &str| name.trim_end_matches(BLANKS).eq_ignore_ascii_case("worktree");
    let (_, value) = { lines }.flatten().find(|(name, _)| is_it(name))?;
    let value = value.trim_start_matches(BLANKS);
    let is_plain = !value.is_empty() && !value.contains(['"', '\\', '#', ';']);
    (is_plain && goes_up_first(value)).then_some(value)
}

/// Whether a path goes up nowhere but at its start: where it leads then is what is written.
fn goes_up_first(path: &str) -> bool {
    !path.split('/').skip_while(|name| *name == "..").any(|name| name == "..")
}

/// The folder that a file in the place of the folder names.
async fn pointed(fs: &dyn Fs, at: &HostPath, file: &HostPath) -> Option<HostPath> {
    let named = text(fs, file).await??;
    let named = named.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']);
    if !goes_up_first(named) {
        return None;
    }
    real(fs, &at.join(named).ok()?).await
}

/// The folders of a worktree and of its repository. Only one that its repository knows: else the file may name the
/// repository of somebody else.
pub(super) async fn worktree(
    fs: &dyn Fs,
    at: &HostPath,
    file: &HostPath,
) -> Option<(HostPath, HostPath)> {
    let own = pointed(fs, at, file).await?;
    let back = text(fs, &own.join("gitdir").ok()?).await??;
    let back = own.join(back.trim_end_matches(['\n', '\r'])).ok()?;
    if real(fs, &back.parent()?).await? != *at || !back.as_bytes().ends_with(b"/.git") {
        return None;
    }
    let common = text(fs, &own.join("commondir").ok()?).await??;
    if common.trim_end_matches(['\n', '\r']) != "../.." {
        return None;
    }
    let common = own.parent()?.parent()?;
    Some((own, common))
}
