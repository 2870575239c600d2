//! Looks up facts about a call, so that nobody need be asked about it: files of one's own in the
//! temporary folder, and chores.
//!
//! **Invariant:** a fact is added only where all of it was checked; what exceeds the bounds gives
//! no fact. The bounds count names and bytes, never time. Nothing is opened but ignore files,
//! settings, git's index, Cargo manifests and Rust sources.
//!
//! **Does not know:** rules: the policy evaluates those before these facts.

use haft_host::{
    FileKind, Fs, ListHow, Located, git_settings, has_links, is_ignored, is_plain_cargo,
    is_plain_person, is_tracked, repository,
};
use haft_policy::{Chore, Policy, Script, own_file, proven};
use haft_types::{Access, Effect, EntryKind, Follow, HostPath, Place, Target, is_rebuilt};

use crate::{Call, call::LocateFailure};

/// Most names that are looked through for one call.
const NAMES: usize = 50_000;
/// Most paths in the temporary folder that are looked up.
const OWN: usize = 32;
/// Most chores of a script that are looked up, and most paths of each.
const CHORES: usize = 32;

/// Most bytes of sources and manifests that are looked through for one call.
const SOURCE_BYTES: u64 = 64 << 20;

/// The endings of names of files that a formatter may write through a link.
const SOURCES: [&[u8]; 6] = [b".go", b".py", b".pyi", b".pyw", b".ipynb", b".rs"];

/// The bits of a folder in which others may replace what is there.
const OTHERS_WRITE: u32 = 0o022;
/// The bit of one in which they may not, although they may write.
const STICKY: u32 = 0o1000;

/// What there is to add to the plan of a call.
pub(super) async fn facts(
    call: &Call,
    located: &[Option<Result<Located, LocateFailure>>],
) -> Vec<Effect> {
    let mut facts = Vec::new();
    own_files(call, located, &mut facts).await;
    chores(call, &mut facts).await;
    facts
}

fn script(call: &Call) -> Option<Script> {
    let plan = call.plan()?;
    plan.effects.iter().find_map(|effect| match &effect.target {
        Target::Command { text, fresh_in: Some(cwd) } => {
            Some(Script::read(text, cwd, &call.place().home, haft_policy::Around::PLAIN))
        }
        _ => None,
    })
}

/// Looks which files of a plan are one's own, below the temporary folder.
async fn own_files(
    call: &Call,
    located: &[Option<Result<Located, LocateFailure>>],
    facts: &mut Vec<Effect>,
) {
    let (place, host) = (call.place(), &call.cx.dispatcher.host);
    let Some(plan) = call.plan() else { return };
    let judge = call.cx.permissions();
    let is_one = |path: &HostPath| path.is_within(&place.temp) && !place.holds(path);
    if !plan.effects.iter().any(|effect| effect.path().is_some_and(is_one)) {
        return;
    }
    let (Some(user), Ok(temp)) =
        (host.fs().user(), host.fs().locate(&place.temp, Follow::Yes).await)
    else {
        return;
    };
    let script = script(call);
    let redirected = script.as_ref().map(Script::redirected).unwrap_or_default();
    // Others' projects lie beside one that lies there itself.
    let is_nested =
        [&place.home].into_iter().chain(&place.roots).any(|path| path.is_within(&temp.real));
    let mut left = OWN;
    for (effect, found) in plan.effects.iter().zip(located) {
        let (Some(path), Some(Ok(found))) = (effect.path(), found) else { continue };
        let wanted = match effect.access {
            Access::Observe => true,
            Access::Modify => redirected.contains(&path),
            Access::Destroy => false,
        };
        if !wanted || !is_one(path) || left == 0 {
            continue;
        }
        left -= 1;
        let below = path.relative_to(&place.temp).and_then(|b| temp.real.join_bytes(b).ok());
        let is_straight = below.as_ref() == Some(&found.real);
        let is_near = !is_nested || found.real.parent().as_ref() == Some(&temp.real);
        if is_straight
            && is_near
            && !is_kept_out(&judge.policy, place, &found.real)
            && is_own(host.fs(), found, &temp.real, user, effect.access).await
        {
            facts.push(own_file(path, effect.access));
        }
    }
}

/// Whether a path is one for which the temporary folder is no reason: haft's own state, or the home
/// folder where that lies in there.
fn is_kept_out(policy: &Policy, place: &Place, path: &HostPath) -> bool {
    let in_home = place.home.is_within(&place.temp) && path.is_within(&place.home);
    in_home || policy.protects(path)
}

/// Whether what is there belongs to this user, or may be made by this user, and nobody else can put
/// something else into its place.
async fn is_own(fs: &dyn Fs, found: &Located, temp: &HostPath, user: u32, access: Access) -> bool {
    match found.kind {
        FileKind::FILE => {
            let owner = fs.rights(found).await.ok().flatten().and_then(|rights| rights.owner);
            if found.names != 1 || owner.map(|(owner, _)| owner) != Some(user) {
                return false;
            }
        }
        FileKind::Missing if access == Access::Modify => {}
        _ => return false,
    }
    let mut folder = found.real.parent();
    while let Some(path) = folder {
        let Ok(at) = fs.locate(&path, Follow::No).await else { return false };
        let Ok(Some(rights)) = fs.rights(&at).await else { return false };
        let is_mine = rights.owner.is_some_and(|(owner, _)| owner == user || owner == 0);
        let is_closed = rights.mode & OTHERS_WRITE == 0 || rights.mode & STICKY != 0;
        if at.kind != FileKind::FOLDER || !is_mine || !is_closed {
            return false;
        }
        folder = path.parent().filter(|_| path != *temp);
    }
    true
}

/// Looks up what has to hold of the chores of a script.
async fn chores(call: &Call, facts: &mut Vec<Effect>) {
    let mode = call.cx.permissions().mode;
    let Some(script) = script(call) else { return };
    let mut left = NAMES;
    for (key, chore) in script.chores(mode).into_iter().take(CHORES) {
        let is_small = chore.touched().len() <= CHORES && chore.is_near(call.place());
        if is_small && holds(call, &chore, &mut left).await {
            facts.push(proven(&key));
        }
    }
}

async fn holds(call: &Call, chore: &Chore, left: &mut usize) -> bool {
    let fs = call.cx.dispatcher.host.fs();
    match chore {
        Chore::Sockets => true,
        Chore::Stage(folder) => is_plain_git(fs, folder, call.place()).await,
        Chore::Format(paths) => {
            for path in paths {
                if !is_confined(fs, path, call, left).await {
                    return false;
                }
            }
            true
        }
        Chore::FormatPackage(folder) => {
            is_plain_cargo(fs, folder, &call.place().home).await
                && is_confined(fs, folder, call, left).await
                && names_nothing_outside(fs, folder, call.place()).await
        }
        Chore::Clear(paths) => {
            for path in paths {
                if !is_rebuilt_folder(fs, path, call.place()).await {
                    return false;
                }
            }
            true
        }
        Chore::Sweep(folders, name) => is_undoable(call, folders, name.as_bytes(), left).await,
    }
}

/// Whether git works there in a repository of the workspace, and starts nothing that it names.
async fn is_plain_git(fs: &dyn Fs, folder: &HostPath, place: &Place) -> bool {
    let found = git_settings(fs, folder).await;
    let is_plain = found.no_filters && found.no_helpers && found.no_fetches && !found.submodules;
    let (Some(top), Some(index)) = (found.top, found.index) else { return false };
    is_plain
        && place.holds(&top)
        && !has_links(fs, &index).await
        && is_plain_person(fs, &place.home).await
}

/// Whether a file, or what is below a folder, lies in the workspace, and no link that a program would
/// write through leads elsewhere.
async fn is_confined(fs: &dyn Fs, path: &HostPath, call: &Call, left: &mut usize) -> bool {
    let place = call.place();
    let judge = call.cx.permissions();
    let Ok(found) = fs.locate(path, Follow::Yes).await else { return false };
    let is_inside = |path: &HostPath| place.holds(path) && !judge.policy.protects(path);
    if !is_inside(&found.real) {
        return false;
    }
    let mut folders = match found.kind {
        FileKind::FILE => return true,
        FileKind::FOLDER => vec![(found.real, false)],
        _ => return false,
    };
    while let Some((folder, is_made)) = folders.pop() {
        let Some(entries) = listed(fs, &folder, left).await else { return false };
        for (name, kind, _) in entries {
            let Ok(path) = folder.join_bytes(&name) else { return false };
            match kind {
                EntryKind::Folder if name != b".git" => {
                    folders.push((path, is_made || is_rebuilt(&name)));
                }
                EntryKind::Link if !is_made || SOURCES.iter().any(|end| name.ends_with(end)) => {
                    // Where it leads nowhere nothing is written, or in the workspace.
                    let leads = fs.locate(&path, Follow::Yes).await;
                    if leads.is_ok_and(|leads| !is_inside(&leads.real)) {
                        return false;
                    }
                }
                _ => {}
            }
        }
    }
    true
}

/// Whether no package in a folder, and none around it, names sources outside by their paths: cargo would
/// format those, too.
async fn names_nothing_outside(fs: &dyn Fs, folder: &HostPath, place: &Place) -> bool {
    let Ok(found) = fs.locate(folder, Follow::Yes).await else { return false };
    let mut above = found.real.parent();
    while let Some(path) = above {
        // A package around is one of the workspace, or formats others.
        let manifest = path.join("Cargo.toml").ok();
        let Some(manifest) = manifest.filter(|_| !place.holds(&path)) else { break };
        match fs.locate(&manifest, Follow::No).await {
            Ok(at) if at.kind == FileKind::Missing => above = path.parent(),
            _ => return false,
        }
    }
    let (mut folders, mut left, mut bytes) = (vec![found.real], NAMES, SOURCE_BYTES);
    while let Some(folder) = folders.pop() {
        let Some(entries) = listed(fs, &folder, &mut left).await else { return false };
        for (name, kind, size) in entries {
            let Ok(path) = folder.join_bytes(&name) else { return false };
            if kind == EntryKind::Folder && name != b".git" && !is_rebuilt(&name) {
                folders.push(path);
                continue;
            }
            let is_manifest = name == b"Cargo.toml";
            if !is_manifest && !name.ends_with(b".rs") {
                continue;
            }
            let Some(rest) = bytes.checked_sub(size) else { return false };
            bytes = rest;
            let Ok(at) = fs.locate(&path, Follow::Yes).await else { return false };
            let text = fs.read(&at, 0, usize::try_from(size).unwrap_or(usize::MAX)).await;
            let is_inside = |text: &[u8]| {
                std::str::from_utf8(text).is_ok_and(|text| leads_nowhere_else(text, is_manifest))
            };
            if !text.is_ok_and(|text| text.len() as u64 == size && is_inside(&text)) {
                return false;
            }
        }
    }
    true
}

/// Whether each path that a source or a manifest names is a plain one below its folder.
fn leads_nowhere_else(text: &str, is_manifest: bool) -> bool {
    if is_manifest && ["..", "\"/", "'/"].iter().any(|part| text.contains(part)) {
        return false;
    }
    text.match_indices("path").all(|(at, word)| {
        let before = text[..at].trim_end();
        let is_part =
            before.len() == at && before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // Code that assigns to what is called so names no source.
        let assigns =
            ["let", "mut", "const", "static", "."].iter().any(|end| before.ends_with(end));
        if is_part || assigns {
            return true;
        }
        let rest = text[at + word.len()..].trim_start();
        let Some(value) = rest.strip_prefix('=').map(str::trim_start) else {
            return !rest.starts_with("/*") && !rest.starts_with("//");
        };
        let is_raw = ["r\"", "r#", "/*", "//"].iter().any(|start| value.starts_with(start));
        let value =
            value.strip_prefix('"').map_or("", |rest| rest.split('"').next().unwrap_or(rest));
        !is_raw && !value.starts_with('/') && !value.contains('\\') && !value.contains("..")
    })
}

/// The names in a folder with what they are and their sizes; none where they are too many.
async fn listed(
    fs: &dyn Fs,
    folder: &HostPath,
    left: &mut usize,
) -> Option<Vec<(Vec<u8>, EntryKind, u64)>> {
    let at = fs.locate(folder, Follow::No).await.ok()?;
    let listing = fs.list(&at, ListHow { limit: *left + 1, stat: true }).await.ok()?;
    *left = left.checked_sub(listing.entries.len())?;
    let entry = |entry: haft_host::DirEntry| {
        (entry.name, entry.kind, entry.stat.map_or(u64::MAX, |(size, ..)| size))
    };
    Some(listing.entries.into_iter().map(entry).collect())
}

/// Whether a path is a folder of the workspace that tools rebuild, that git ignores, and in which it
/// keeps track of nothing.
async fn is_rebuilt_folder(fs: &dyn Fs, path: &HostPath, place: &Place) -> bool {
    let Ok(found) = fs.locate(path, Follow::No).await else { return false };
    let is_root = place.roots.iter().any(|root| root.is_within(&found.real));
    if ![FileKind::FOLDER, FileKind::Missing].contains(&found.kind)
        || found.real != *path
        || is_root
    {
        return false;
    }
    let Some(parent) = path.parent() else { return false };
    let Some(git) = repository(fs, &parent, false).await else { return false };
    let settings = git_settings(fs, &parent).await;
    let Some(index) = settings.index.filter(|_| settings.top.as_ref() == Some(&git.top)) else {
        return false;
    };
    is_ignored(fs, &git.top, path, true).await && !is_tracked(fs, &index, &git.top, path).await
}

/// Whether each file of a name below some folders is one that undo brings back: none that git ignores,
/// none that is big, and no more files in all than are looked at around a command.
async fn is_undoable(call: &Call, folders: &[HostPath], name: &[u8], left: &mut usize) -> bool {
    let (place, host) = (call.place(), &call.cx.dispatcher.host);
    let (fs, policy) = (host.fs(), &call.cx.permissions().policy);
    let watching = call.cx.dispatcher.pipeline.watching().filter(|_| host.surveys().is_some());
    let Some(watching) = watching else { return false };
    let mut open = Vec::new();
    for (paths, is_root) in [(&place.roots[..], true), (folders, false)] {
        for path in paths {
            let Ok(found) = fs.locate(path, Follow::Yes).await else { return false };
            if found.kind != FileKind::FOLDER || !is_root && found.real != *path {
                return false;
            }
            open.extend(is_root.then_some((found.real, false)));
        }
    }
    let mut files = watching.files;
    while let Some((folder, is_passed)) = open.pop() {
        let Some(entries) = listed(fs, &folder, left).await else { return false };
        let seen = if is_passed { 0 } else { entries.len() };
        let Some(rest) = files.checked_sub(seen) else { return false };
        files = rest;
        for (entry, kind, size) in entries {
            let Ok(path) = folder.join_bytes(&entry) else { return false };
            let is_swept = folders.iter().any(|root| path.is_within(root));
            if is_swept && entry == name {
                let is_small = kind == EntryKind::File && size <= watching.file_bytes;
                let is_covered = is_small && !is_passed && !policy.protects(&path);
                if !is_covered || passes(fs, &path, false).await {
                    return false;
                }
            }
            if kind == EntryKind::Folder {
                let is_passed = is_passed
                    || entry == b".git"
                    || is_rebuilt(&entry) && passes(fs, &path, true).await;
                let is_above = folders.iter().any(|root| root.is_within(&path));
                if is_swept || is_above || !is_passed {
                    open.push((path, is_passed));
                }
            }
        }
    }
    true
}

/// Whether git ignores a path in the repository that it lies in.
async fn passes(fs: &dyn Fs, path: &HostPath, is_folder: bool) -> bool {
    let Some(parent) = path.parent() else { return false };
    match repository(fs, &parent, true).await {
        Some(git) => is_ignored(fs, &git.top, path, is_folder).await,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::leads_nowhere_else;

    #[test]
    fn a_source_that_names_one_elsewhere_is_told_from_others() {
        for (text, is_manifest, is_near) in [
            ("#[path = \"sub/x.rs\"] mod x;", false, true),
            ("#[path = \"/etc/x.rs\"] mod x;", false, false),
            ("#[path=\"../x.rs\"] mod x;", false, false),
            ("#[/* a */ path /* b */ = \"../x.rs\"] mod x;", false, false),
            ("#[path = /* b */ \"../x.rs\"] mod x;", false, false),
            ("#[ // a\n path = \"../x.rs\"] mod x;", false, false),
            ("#[cfg_attr(unix, path = r\"../x.rs\")] mod x;", false, false),
            ("#[path = \"\\x2e./x.rs\"] mod x;", false, false),
            (
                "let path = \"/etc\"; self.path = \"/x\"; full_path = \"/y\"; path == \"/z\"",
                false,
                true,
            ),
            ("/// The path / of it.\nfn path(path: &Path) {}", false, true),
            ("[dependencies]\nx = { path = \"x\" }", true, true),
            ("[dependencies]\nx = { path = '../x' }", true, false),
            ("[lib]\npath = \"/x.rs\"", true, false),
            ("[workspace]\nmembers = [\"../*\"]", true, false),
        ] {
            assert_eq!(leads_nowhere_else(text, is_manifest), is_near, "{text}");
        }
    }
}
