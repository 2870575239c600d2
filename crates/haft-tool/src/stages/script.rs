//! Looks up facts about the script of a call before it is judged: the plan was made from its text
//! alone.
//!
//! **Invariant:** what cannot be checked in full counts as the worst that it may be. Nothing is
//! opened but the settings of repositories and toolchains.

use std::time::Duration;

use haft_host::{
    FileKind, Fs, GitSettings, ListHow, Located, PathLookup, git_settings, has_links,
    is_plain_toolchain, names_links,
};
use haft_policy::{
    Around, GitFacts, GitUse, ReadMask, Script, counting, led, on, replaced, unsure_paths,
};
use haft_types::{Access, Effect, EntryKind, Follow, HostPath, Outcome, Target};
use tokio::time::timeout;

use super::{resolve::look_up, sandbox};
use crate::{Call, call::LocateFailure};

/// Most names among which links are looked for that a script would follow.
const LINKS: usize = 4096;
/// Most names among which such are looked for as have to be hidden.
const NAMES: usize = 50_000;
/// How long that may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most of them that are hidden.
const HIDDEN: usize = 100;

/// Most words of which is looked where they lead.
const WORDS: usize = 256;

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
    /// What files around do not make the programs start that it runs; none where no file could.
    around: Option<Around>,
    /// Whether it only looks then.
    looks: bool,
    /// Links that it may follow, and files behind revisions.
    more: Vec<Link>,
    /// How git is asked.
    git: Git,
    /// What else there is to know of its programs and their words.
    facts: Vec<Effect>,
    /// It starts where its words count from, and all links were looked at.
    is_sure: bool,
    /// What hides keys from it, where it only looks.
    veil: Option<ReadMask>,
}

/// How a script asks git, where that runs as one that only looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Git {
    asked: GitUse,
    /// A repository that it is asked about names others within.
    submodules: bool,
}

impl Git {
    /// Whether it only tells of its settings, which are to be as they are.
    pub(super) const fn only_tells(self) -> bool {
        self.asked.tells_settings && !self.asked.may_start
    }

    /// Says where an answer of it is another one than the person would get.
    pub(super) fn note(self, outcome: &mut Outcome) {
        if self.asked.tells_settings && self.asked.may_start {
            outcome.note(
                "git has settings of haft's own here, such as core.hooksPath; a command that only \
                 tells of settings tells them as they are",
            );
        }
        if self.asked.compares && self.submodules {
            outcome.note(
                "changes of files in submodules are not shown: git does not look into them here",
            );
        }
    }
}

/// What is done to a path, with where that leads.
type Link = (Effect, Result<Located, LocateFailure>);

/// Most `..` of a path of which is looked where they lead.
const CLIMBED: usize = 64;

fn look(path: HostPath) -> Effect {
    Effect { access: Access::Observe, target: Target::Path { path, follow: Follow::Yes } }
}

/// Where a path leads in which `..` may stand behind a link: from there it goes up where that leads, and not
/// where it lies. None where that is as it is written.
async fn climbed(fs: &dyn Fs, text: &str, written: &HostPath) -> Option<HostPath> {
    let mut path = HostPath::root(written.style());
    let mut left = CLIMBED;
    for name in text.split('/').filter(|name| !name.is_empty()) {
        let next = match name {
            ".." if left > 0 => {
                left -= 1;
                let found = fs.locate(&path, Follow::Yes).await;
                found.map_or_else(|_| path.clone(), |found| found.real).parent()
            }
            name => path.join_bytes(name.as_bytes()).ok(),
        };
        path = next.unwrap_or(path);
    }
    Some(path).filter(|path| path != written)
}

/// Looks up what is named with a step up behind a link.
async fn climb(fs: &dyn Fs, script: &Script, more: &mut Vec<Link>, left: &mut usize) {
    let climbs = script.climbs();
    if climbs.len() > WORDS {
        *left = 0;
    }
    for (effect, text) in climbs.into_iter().take(WORDS) {
        let Some(written) = effect.path() else { continue };
        if text.matches("..").count() > CLIMBED {
            *left = 0;
            continue;
        }
        let Some(real) = climbed(fs, text, written).await else { continue };
        let found = look_up(fs, &real, Follow::Yes).await;
        more.push((on(effect, real), found));
    }
}

/// Looks where the script of a call starts, and how git and toolchains are set up where it runs them.
pub(super) async fn known(call: &Call) -> Known {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    for effect in effects {
        let Target::Command { text, fresh_in: Some(cwd) } = &effect.target else { continue };
        let fs = call.cx.host.fs();
        let starts_there = fs.locate(cwd, Follow::Yes).await.is_ok_and(|at| at.real == *cwd);
        let home = &call.place().home;
        let script = Script::read(text, cwd, home, Around::PLAIN);
        let (mut around, mut more) = (Around::PLAIN, Vec::new());
        let mut git = Git { asked: script.git, submodules: false };
        let (mut indexes, mut settings) = (Vec::new(), Vec::new());
        for folder in &script.git_folders {
            // A folder that is not there now may be one that the script makes or finds elsewhere.
            let found = fs.locate(folder, Follow::Yes).await.ok();
            let found = found.filter(|found| found.kind == FileKind::FOLDER);
            let inside = found.is_some_and(|found| call.place().holds(&found.real));
            if !inside && folder != cwd {
                (around.git, around.no_helpers) = (GitFacts::default(), false);
                continue;
            }
            let found = git_settings(fs, folder).await;
            add(&mut around, &found, script.git);
            settings.extend(found.named);
            git.submodules |= found.submodules;
            indexes.extend(found.index);
            let Some(top) = found.top else { continue };
            for (_, path) in script.revisions.iter().filter(|(of, _)| of == folder) {
                if let Ok(path) = top.join(path) {
                    let found = look_up(fs, &path, Follow::Yes).await;
                    more.push((look(path), found));
                }
            }
        }
        for folder in &script.toolchain_folders {
            around.toolchains = around.toolchains && is_plain_toolchain(fs, folder).await;
        }
        let asks = !(script.git_folders.is_empty() && script.toolchain_folders.is_empty());
        let looks = script.read_only
            && (around == Around::PLAIN || Script::read(text, cwd, home, around).read_only);
        if looks && script.git.compares && !git.submodules {
            git.submodules = names_links(fs, &indexes).await;
        }
        // What only looks is kept out of repositories within by what it is given.
        if !looks && around.no_helpers && script.git.compares {
            around.no_helpers = !any_links(fs, &indexes).await;
        }
        let mut left = LINKS;
        for (folder, depth) in &script.linked {
            follow(fs, (folder, *depth), &mut more, &mut left).await;
        }
        climb(fs, &script, &mut more, &mut left).await;
        let mut facts = facts(call, (&script, looks), cwd).await;
        facts.extend((!looks && !settings.is_empty()).then(|| counting(&settings)));
        let is_sure = starts_there && left > 0 && script.fault.is_none();
        let veil = if looks { veil(call, &script, left == 0 && starts_there).await } else { None };
        let around = asks.then_some(around);
        return Known { around, looks, more, git, facts, is_sure, veil };
    }
    Known { is_sure: true, ..Known::default() }
}

/// Adds what a repository may make git start that is asked so.
const fn add(around: &mut Around, found: &GitSettings, asked: GitUse) {
    // Only what compares files looks into repositories within.
    let enters = found.submodules && asked.compares;
    around.no_helpers &= found.no_helpers && !enters;
    around.git.no_fetches &= found.no_fetches;
    around.git.no_filters &= found.no_filters;
    around.git.no_drivers &= found.no_drivers;
    around.git.no_signatures &= found.no_signatures;
}

/// What hides keys from a script that only looks, and what rules name from one that may come upon it;
/// none where no sandbox holds it, and where nothing has to be hidden. With `is_lost` it may go through
/// links of which not all were looked at.
async fn veil(call: &Call, script: &Script, is_lost: bool) -> Option<ReadMask> {
    let judge = call.cx.permissions();
    let (policy, host) = (&judge.policy, &call.cx.dispatcher.host);
    // What the sandbox of looks keeps from keys may go through more links than are looked at.
    let is_near = || script.linked.iter().all(|(folder, _)| call.place().holds(folder));
    let is_open = is_lost && is_near() || script.parts.iter().any(|part| part.open.is_some());
    let (rules, patterns) = policy.names_reads();
    if !(is_open || rules || !script.shown.is_empty()) || !policy.sandbox().looks {
        return None;
    }
    sandbox::looking(host.shell()?, policy).await?;
    let mut veil = ReadMask::default();
    let tool = &call.ready().ok()?.spec.name;
    if !(is_open || patterns) {
        let work = shown(call, script, &mut veil.hidden);
        let _ = timeout(PATIENCE, work).await;
        return (rules || !veil.hidden.is_empty()).then_some(veil);
    }
    let work = async {
        let mut left = NAMES;
        for (written, real) in sandbox::around(call).await {
            if veil.searched.iter().any(|known| real.is_within(known)) {
                continue;
            }
            let skips = policy.path_filter(tool, &written, &real);
            let whole = (&real, usize::MAX);
            if !hide(host.fs(), whole, skips, &mut left, &mut veil.hidden).await {
                return;
            }
            veil.searched.push(real);
        }
    };
    // What was found by then is hidden all the same.
    let _ = timeout(PATIENCE, work).await;
    Some(veil)
}

/// Looks for keys where a script prints files whose names it does not say.
async fn shown(call: &Call, script: &Script, hidden: &mut Vec<HostPath>) {
    let (judge, fs) = (call.cx.permissions(), call.cx.dispatcher.host.fs());
    let Ok(ready) = call.ready() else { return };
    let mut left = NAMES;
    for (written, depth) in &script.shown {
        let Ok(found) = fs.locate(written, Follow::Yes).await else { continue };
        if found.kind == FileKind::FOLDER && call.place().holds(&found.real) {
            let skips = judge.policy.path_filter(&ready.spec.name, written, &found.real);
            hide(fs, (&found.real, *depth), skips, &mut left, hidden).await;
        }
    }
}

/// Looks for what is to be skipped below a folder, so many folders deep, and whether all was looked at.
async fn hide(
    fs: &dyn Fs,
    (root, depth): (&HostPath, usize),
    skips: impl Fn(&HostPath) -> bool,
    left: &mut usize,
    hidden: &mut Vec<HostPath>,
) -> bool {
    let mut folders = vec![(root.clone(), depth)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(at) = fs.locate(&folder, Follow::No).await else { return false };
        let how = ListHow { limit: *left, stat: false };
        let Ok(listing) = fs.list(&at, how).await else { return false };
        *left -= listing.entries.len().min(*left);
        for entry in listing.entries {
            let Ok(path) = folder.join_bytes(&entry.name) else { return false };
            if skips(&path) {
                hidden.push(path);
            } else if entry.kind == EntryKind::Folder && depth > 1 {
                folders.push((path, depth - 1));
            }
        }
        if *left == 0 || hidden.len() > HIDDEN {
            hidden.truncate(HIDDEN);
            return false;
        }
    }
    true
}

/// Whether an index names repositories within.
async fn any_links(fs: &dyn Fs, indexes: &[HostPath]) -> bool {
    for index in indexes {
        if has_links(fs, index).await {
            return true;
        }
    }
    false
}

/// Looks which programs of a script are some of the workspace, and which of its words links lead elsewhere.
async fn facts(call: &Call, (script, looks): (&Script, bool), cwd: &HostPath) -> Vec<Effect> {
    let mut facts = Vec::new();
    // What only looks finds none of the workspace.
    let names = if looks { Vec::new() } else { script.sought() };
    if !names.is_empty()
        && let Some(shell) = call.cx.dispatcher.host.shell()
    {
        let effects = script.parts.iter().flat_map(|part| &part.effects);
        let effects = effects.filter(|effect| effect.access != Access::Observe);
        let changes = effects.filter_map(|effect| effect.path().cloned()).collect();
        let folders = call.place().roots.clone();
        let found = shell.found_in(PathLookup { names, cwd: cwd.clone(), folders, changes }).await;
        facts.extend((!found.is_empty()).then(|| replaced(&found)));
    }
    let fs = call.cx.host.fs();
    for (path, text) in script.spoken(call.place()).into_iter().take(WORDS) {
        let mut ways = vec![path.clone()];
        if let Some(text) = text {
            ways.extend(climbed(fs, &text, &path).await);
        }
        for way in ways {
            let real = match look_up(fs, &way, Follow::Yes).await {
                Ok(found) => Some(found.real),
                Err(lost) => lost.real,
            };
            let leads = [(way != path).then_some(way), real];
            let leads = leads.into_iter().flatten().filter(|real| *real != path);
            facts.extend(leads.map(|real| led(&path, &real)));
        }
    }
    facts
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
                    links.push((look(path), found));
                }
                EntryKind::Folder if depth > 1 => folders.push((path, depth - 1)),
                _ => {}
            }
        }
    }
}

/// Makes of the plan of a script what is known now: that it may do more than look, and which paths
/// are files.
pub(super) fn apply(call: &mut Call, known: Known) {
    let Ok(prepared) = &mut call.prepared else { return };
    call.git = known.git;
    call.veil = known.veil;
    let is_script = |effect: &Effect| start(effect).is_some();
    if !prepared.plan.effects.iter().any(is_script) {
        return;
    }
    for (effect, found) in prepared.plan.effects.iter_mut().zip(&call.located) {
        let is_file = effect.access == Access::Observe
            && matches!(found, Some(Ok(found)) if found.kind != FileKind::FOLDER);
        match &effect.target {
            _ if is_script(effect) && known.around.is_some() && !known.looks => {
                effect.access = Access::Destroy;
            }
            Target::Tree { root } if is_file => {
                effect.target = Target::Path { path: root.clone(), follow: Follow::Yes };
            }
            _ => {}
        }
    }
    for (effect, found) in known.more {
        prepared.plan.effects.push(effect);
        call.located.push(Some(found));
    }
    if !known.is_sure {
        prepared.plan.effects.push(unsure_paths());
        call.located.push(None);
    }
    for fact in known.facts {
        prepared.plan.effects.push(fact);
        call.located.push(None);
    }
    if let Some(around) = known.around {
        prepared.plan.effects.push(around.effect());
        call.located.push(None);
    }
}
