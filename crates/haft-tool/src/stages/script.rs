//! What is found out about the script of a call before it is judged: the plan was made from its
//! text alone.
//!
//! **Invariant:** what cannot be looked at in full counts as the worst that it may be. Nothing is
//! opened but the settings of repositories and toolchains.

use haft_host::{FileKind, Fs, ListHow, Located, is_plain_git, is_plain_toolchain};
use haft_policy::{Around, Script, plain_settings, unsure_paths};
use haft_types::{Access, Effect, EntryKind, Follow, HostPath, Target};

use super::resolve::look_up;
use crate::{Call, pipeline::Lost};

/// Most names among which links are looked for that a script would follow.
const LINKS: usize = 4096;

/// Where the script of an effect starts.
pub(super) const fn start(effect: &Effect) -> Option<&HostPath> {
    match &effect.target {
        Target::Command { fresh_in, .. } => fresh_in.as_ref(),
        _ => None,
    }
}

/// What is known of the script of a call once it was looked for.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Whether files around make the programs that it runs start others; none where no file could.
    is_plain: Option<bool>,
    /// Links that it may follow.
    links: Vec<Link>,
    /// It starts where its words count from, and all links were looked at.
    is_sure: bool,
}

/// A link, with where it leads.
type Link = (HostPath, Result<Located, Lost>);

/// Looks where the script of a call starts, and how git and toolchains are set up where it runs them.
pub(super) async fn known(call: &Call) -> Known {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    for effect in effects {
        let Target::Command { text, fresh_in: Some(cwd) } = &effect.target else { continue };
        let fs = call.cx.host.fs();
        let found = fs.locate(cwd, Follow::Yes).await;
        let starts_there = found.is_ok_and(|found| found.real == *cwd);
        let script = Script::read(text, cwd, &call.place().home, Around::Plain);
        let mut plain = true;
        for folder in &script.git_folders {
            // A folder that is not there now may be one that the script makes or finds elsewhere.
            let found = fs.locate(folder, Follow::Yes).await.ok();
            let found = found.filter(|found| found.kind == FileKind::FOLDER);
            let inside = found.is_some_and(|found| call.place().holds(&found.real));
            plain = plain && (folder == cwd || inside) && is_plain_git(fs, folder).await;
        }
        for folder in &script.toolchain_folders {
            plain = plain && is_plain_toolchain(fs, folder).await;
        }
        let asks = !(script.git_folders.is_empty() && script.toolchain_folders.is_empty());
        let mut left = LINKS;
        let mut links = Vec::new();
        for (folder, depth) in &script.linked {
            follow(fs, (folder, *depth), &mut links, &mut left).await;
        }
        return Known { is_plain: asks.then_some(plain), links, is_sure: starts_there && left > 0 };
    }
    Known { is_sure: true, ..Known::default() }
}

/// Looks for the links below a folder.
async fn follow(
    fs: &dyn Fs,
    (folder, depth): (&HostPath, usize),
    links: &mut Vec<Link>,
    left: &mut usize,
) {
    let mut folders = vec![(folder.clone(), depth)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(at) = fs.locate(&folder, Follow::Yes).await else { continue };
        let how = ListHow { limit: *left, stat: false };
        let Ok(listing) = fs.list(&at, how).await else { continue };
        *left -= listing.entries.len().min(*left);
        for entry in listing.entries {
            let Ok(path) = folder.join_bytes(&entry.name) else { continue };
            match entry.kind {
                EntryKind::Link => {
                    let found = look_up(fs, &path, Follow::Yes).await;
                    links.push((path, found));
                }
                EntryKind::Folder if depth > 1 => folders.push((path, depth - 1)),
                _ => {}
            }
        }
    }
}

/// Makes of the plan of a script what is known now: that it may do more than look, and which paths
/// are files.
pub(super) fn settle(call: &mut Call, known: Known) {
    let Ok(prepared) = &mut call.prepared else { return };
    let is_script = |effect: &Effect| start(effect).is_some();
    if !prepared.plan.effects.iter().any(is_script) {
        return;
    }
    for (effect, found) in prepared.plan.effects.iter_mut().zip(&call.located) {
        let is_file = effect.access == Access::Observe
            && matches!(found, Some(Ok(found)) if found.kind != FileKind::FOLDER);
        match &effect.target {
            _ if is_script(effect) && known.is_plain == Some(false) => {
                effect.access = Access::Destroy;
            }
            Target::Tree { root } if is_file => {
                effect.target = Target::Path { path: root.clone(), follow: Follow::Yes };
            }
            _ => {}
        }
    }
    for (path, found) in known.links {
        let target = Target::Path { path, follow: Follow::Yes };
        prepared.plan.effects.push(Effect { access: Access::Observe, target });
        call.located.push(Some(found));
    }
    if !known.is_sure {
        prepared.plan.effects.push(unsure_paths());
        call.located.push(None);
    }
    if known.is_plain == Some(true) {
        prepared.plan.effects.push(plain_settings());
        call.located.push(None);
    }
}
