//! `sandbox`: what the programs of a call may touch, and what is reported where that held them
//! back.
//!
//! **Invariant:** a command that runs because it only reads can change nothing, wherever the system
//! can enforce that. A command that runs because the sandbox confines it is confined. What a person
//! or a rule allowed beyond that is added, path by path, and nothing else is.

mod denial_hints;
mod network;
mod precreated;

pub(crate) use self::denial_hints::job_tried;

use std::sync::{Arc, PoisonError};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{
    FileKind, Fs, Guard, Host, Level, Limits, ListHow, Local, Located, Net, Repository, Shell,
    repository,
};
use haft_policy::{Confinement, Policy, SandboxScope, is_build, is_harmless, unconfined};
use haft_types::{
    Access, Effect, EntryKind, Follow, HostPath, Mode, Outcome, Style, Target, ToolError,
};

use crate::{Call, Jobs, Next, Stage, session::network::Network};

/// Most home folders of others whose keys are hidden.
const HOMES: usize = 32;

pub(super) struct Sandbox;

impl Stage for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let host = call.cx.dispatcher.host.clone();
            let looks = call.ruling.as_ref().is_some_and(|ruling| ruling.looks || ruling.hides);
            let leaves = || call.plan().is_none_or(|plan| plan.effects.contains(&unconfined()));
            let places = if looks || leaves() || !runs(&call) || is_planning(&call) {
                precreated::Places::default()
            } else {
                precreated::Places::make(&mut call).await
            };
            let Some(mut limits) = limits(&call).await else { return next.run(call).await };
            limits.shown = outputs(&call).await.into_iter().collect();
            let admitted = match network::admit(&call, &mut limits).await {
                Ok(admitted) => admitted,
                Err(error) => return error.into(),
            };
            call.variables.extend(admitted.iter().flat_map(network::Admitted::variables));
            let session_network = call.cx.session().map.get::<Network>();
            let jobs = call.cx.session().map.get::<Jobs>();
            let meets = !jobs.are_refused();
            // What it would meet there may change files.
            let is_alone = limits.reads_only() || limits.builds_apart;
            let shares = limits.net == Net::Off && !is_alone && meets;
            call.network = shares.then(|| session_network.shared.clone());
            call.confine = Some(limits.clone());
            let lives_on = call.plan().is_some_and(|plan| plan.lives_on);
            let command =
                call.input().and_then(|input| Some(input.get("command")?.as_str()?.to_owned()));
            let (command, tried) = (command.unwrap_or_default(), Arc::clone(&call.cx.tried));
            let id = call.cx.call.clone();
            let outcome = next.run(call).await;
            let tried = tried.lock().unwrap_or_else(PoisonError::into_inner).take();
            let job = jobs.of_call(&id).filter(|_| outcome.keeps);
            if !outcome.keeps {
                places.clear(&*host).await;
            }
            let refused = admitted.map(|admitted| admitted.end(job.as_deref()));
            let refused = refused.unwrap_or_default();
            let about = denial_hints::About { command: &command, tried, refused, lives_on };
            denial_hints::add_hints(outcome, &limits, &session_network, &about)
        }
        .boxed()
    }
}

/// What the programs of a call could reach in the sandbox, where one may let it go on; none where no
/// sandbox holds.
///
/// # Errors
/// When none holds, and without one nothing is to run.
pub(crate) async fn walls(call: &Call) -> Result<Option<SandboxScope>, ToolError> {
    let judge = call.cx.permissions();
    let wanted = judge.policy.sandbox();
    let host = &call.cx.dispatcher.host;
    // A rule that leaves only some places free holds commands in every mode.
    let is_narrowed = judge.policy.is_narrowed() && runs(call);
    let is_held = judge.mode == Mode::Auto || wanted.always || is_planning(call);
    let Some(shell) = host.shell().filter(|_| is_held || is_narrowed) else {
        return Ok(None);
    };
    if level(shell, strongest(wanted)).await.is_none() {
        return if wanted.always && runs(call) {
            Err(unheld(shell, wanted).await)
        } else {
            Ok(None)
        };
    }
    if is_planning(call) {
        return Ok(Some(planning(host.as_ref(), call).await));
    }
    let mut write = Vec::new();
    for folder in call.place().roots.iter().chain(&wanted.write) {
        // Policy judges by what links lead to.
        let found = host.fs().locate(folder, Follow::Yes).await.ok();
        write.extend(found.map(|found| found.real).filter(|real| !write.contains(real)));
    }
    // A temporary folder in which the workspace lies, or the home, would hold far more than that.
    let temp = host.fs().locate(host.temp(), Follow::Yes).await.ok().map(|found| found.real);
    let home = host.fs().locate(host.home(), Follow::Yes).await.ok().map(|found| found.real);
    let holds = |temp: &HostPath| write.iter().chain(&home).any(|path| path.is_within(temp));
    let temp = temp.filter(|temp| !holds(temp));
    write.extend(temp.clone());
    let mut git = Vec::new();
    for root in &call.place().roots {
        let found = repository(host.fs(), root, false).await.map(|found| found.git);
        git.extend(found.filter(|found| !write.iter().any(|folder| found.is_within(folder))));
    }
    write.extend(git.iter().cloned());
    let (hosts, files, only_writes) = (wanted.hosts.clone(), Vec::new(), !is_held);
    let mut walls = SandboxScope { write, temp, git, files, only_writes, hosts };
    if is_narrowed {
        narrow(&mut walls, &judge.policy, host.fs()).await;
    }
    Ok(Some(walls))
}

/// Whether mode plan holds the programs of a call. What the person types is not held to the mode.
fn is_planning(call: &Call) -> bool {
    let is_typed = call.cx.typed && !call.cx.nested;
    call.cx.permissions().mode == Mode::Plan && runs(call) && !is_typed
}

/// What programs can reach in mode plan: the temporary folder, where nothing else lies in it.
async fn planning(host: &dyn Host, call: &Call) -> SandboxScope {
    let fs = host.fs();
    let Ok(temp) = fs.locate(host.temp(), Follow::Yes).await else {
        return SandboxScope::default();
    };
    let place = call.place();
    for kept in place.roots.iter().chain([&place.cwd, host.home()]) {
        // Where one leads must be known.
        let found = fs.locate(kept, Follow::Yes).await;
        if found.map_or(true, |found| found.real.is_within(&temp.real)) {
            return SandboxScope::default();
        }
    }
    let temp = temp.real;
    SandboxScope { write: vec![temp.clone()], temp: Some(temp), ..SandboxScope::default() }
}

/// Leaves of what is writable, but for the temporary folder, only what the rules leave free.
async fn narrow(walls: &mut SandboxScope, policy: &Policy, fs: &dyn Fs) {
    let mut free = Vec::new();
    for place in policy.left_free() {
        let Ok(found) = fs.locate(place, Follow::Yes).await else { continue };
        // What is not there can be made by who names it, as elsewhere outside.
        let is_one = found.kind != FileKind::Missing
            && walls.holds(&found.real)
            && policy.is_left_free(&found.real)
            && !free.contains(&found.real);
        if is_one {
            walls.files.extend((found.kind != FileKind::FOLDER).then(|| found.real.clone()));
            free.push(found.real);
        }
    }
    let temp = walls.temp.clone();
    walls.write.retain(|folder| temp.as_ref() == Some(folder) || policy.is_left_free(folder));
    walls.git.retain(|folder| policy.is_left_free(folder));
    walls.write.extend(free);
}

/// Reports whether a call starts programs.
fn runs(call: &Call) -> bool {
    let runs = |effect: &Effect| matches!(effect.target, Target::Command { .. } | Target::Anything);
    call.plan().is_some_and(|plan| plan.effects.iter().any(runs))
}

/// The levels that count, best first.
const fn strongest(wanted: &Confinement) -> &'static [Level] {
    if wanted.strong { &[Level::Namespaces] } else { &Level::ALL }
}

/// Why nothing runs.
async fn unheld(shell: &dyn Shell, wanted: &Confinement) -> ToolError {
    let probes = shell.levels().await;
    let whys =
        probes.iter().filter(|probe| strongest(wanted).contains(&probe.level)).map(|probe| {
            let why = probe.failed.as_deref().unwrap_or("it does not stop what it should");
            format!("{}: {why}", probe.level)
        });
    let whys = whys.collect::<Vec<_>>().join("; ");
    let whys = if whys.is_empty() { "this system has no way to do it".to_owned() } else { whys };
    ToolError::denied(format!(
        "the settings want commands to run in the sandbox (sandbox.always, sandbox.require), and it \
         does not hold here: {whys}."
    ))
    .hint("No command can run; go on with the other tools, or say what you would need.")
}

/// The first of these levels that holds here.
async fn level(shell: &dyn Shell, wanted: &[Level]) -> Option<Level> {
    let probes = shell.levels().await;
    let holds = |level: &&Level| probes.iter().any(|probe| probe.level == **level && probe.works());
    wanted.iter().find(holds).copied()
}

/// What the programs of a call may touch; none: whatever haft may.
pub(crate) async fn limits(call: &Call) -> Option<Limits> {
    let judge = call.cx.permissions();
    let (policy, plan) = (&judge.policy, call.plan()?);
    let wanted = policy.sandbox();
    if !runs(call) || plan.effects.contains(&unconfined()) {
        return None;
    }
    let shell = call.cx.dispatcher.host.shell()?;
    let (looks, hides) = call.ruling.as_ref().map_or((false, false), |r| (r.looks, r.hides));
    if (looks || hides) && wanted.looks {
        let level = looking(shell, policy).await;
        // Without a level, one that needs the veil is not started.
        if level.is_none() && call.veil.is_none() {
            return None;
        }
        // Sorting much takes files for a while.
        let (mut hidden, temp) = (policy.hidden(), shell.scratch().await.ok());
        hidden.extend(others(call).await.iter().flat_map(Policy::hidden_in));
        hidden.extend(call.veil.iter().flat_map(|veil| veil.hidden.clone()));
        // Who allows it lets it read all else.
        let read = if looks { Some(seen(call).await) } else { None };
        return Some(Limits { read, hidden, temp, level, ..Limits::default() });
    }
    let walls = call.walls.as_ref()?;
    let level = level(shell, strongest(wanted)).await?;
    let mut limits = inside(call, policy, walls, &others(call).await);
    limits.level = Some(level);
    limits.builds_apart = is_planning(call);
    if limits.builds_apart {
        limits.guard.shut = workspace(call).await;
        let folders = limits.guard.shut.clone();
        if level == Level::Namespaces && shell.overlays(folders.clone()).await {
            limits.overlay = folders;
        }
    }
    // Landlock knows nothing of permissions and times; compilers change those of what they make.
    limits.keeps_attributes = limits.builds_apart
        && level == Level::Landlock
        && !is_build(plan, call.cx.dispatcher.host.home());
    if !limits.write.iter().any(|folder| call.cx.dispatcher.host.temp().is_within(folder)) {
        limits.temp = shell.scratch().await.ok();
    }
    Some(limits)
}

/// The level at which commands that only look are held.
pub(super) async fn looking(shell: &dyn Shell, policy: &Policy) -> Option<Level> {
    let wanted = policy.sandbox();
    // At level L such a command sees other processes as they are, and costs less.
    let levels: &[Level] =
        if wanted.strong { strongest(wanted) } else { &[Level::Landlock, Level::Namespaces] };
    level(shell, levels).await
}

/// What a command that only looks was judged to look at: nothing else can be put in its place meanwhile.
async fn seen(call: &Call) -> Vec<HostPath> {
    let located = call.located.iter().flatten().filter_map(|found| found.as_ref().ok());
    let mut all: Vec<HostPath> = located.map(|found| found.real.clone()).collect();
    all.extend(around(call).await.into_iter().map(|(_, real)| real));
    all.sort();
    all.dedup();
    all
}

/// Where the session's own outputs lie, which commands are told of by `$HAFT_OUT`: in haft's state, which
/// is hidden from them.
async fn outputs(call: &Call) -> Option<HostPath> {
    let host = &call.cx.dispatcher.host;
    let folder = call.cx.session().outs.folder().filter(|_| host.name() == "local")?;
    let found = host.fs().locate(&Local::path(folder).ok()?, Follow::No).await.ok()?;
    (found.kind == FileKind::FOLDER).then_some(found.real)
}

/// The folders of the workspace, what git and toolchains look at around them, and repositories: as they
/// are written, and with links resolved.
pub(super) async fn around(call: &Call) -> Vec<(HostPath, HostPath)> {
    let fs = call.cx.dispatcher.host.fs();
    let mut all = Vec::new();
    for root in call.place().roots.iter().chain([&call.place().cwd]) {
        if let Ok(found) = fs.locate(root, Follow::Yes).await {
            all.push((root.clone(), found.real));
        }
        if let Some(Repository { top, git }) = repository(fs, root, true).await {
            let is_home = call.cx.dispatcher.host.home().is_within(&top);
            all.extend((!is_home).then(|| (top.clone(), top)));
            all.push((git.clone(), git));
        }
    }
    all
}

/// The folders of the workspace and the one that the call starts in, with links resolved and none in
/// another.
async fn workspace(call: &Call) -> Vec<HostPath> {
    let mut all: Vec<HostPath> = Vec::new();
    for folder in call.place().roots.iter().chain([&call.place().cwd]) {
        let found = call.cx.dispatcher.host.fs().locate(folder, Follow::Yes).await;
        all.extend(found.ok().map(|found| found.real));
    }
    all.sort();
    all.dedup();
    let outer = all.clone();
    all.retain(|folder| !outer.iter().any(|other| other != folder && folder.is_within(other)));
    all
}

/// Home folders of others, where haft runs as somebody whose own is not among them, and who may look
/// into all of them: root.
async fn others(call: &Call) -> Vec<HostPath> {
    let host = &call.cx.dispatcher.host;
    let Ok(homes) = HostPath::root(host.home().style()).join("home") else { return Vec::new() };
    if host.home().style() != Style::Posix || host.home().is_within(&homes) {
        return Vec::new();
    }
    let Ok(found) = host.fs().locate(&homes, Follow::No).await else { return Vec::new() };
    let Ok(listing) = host.fs().list(&found, ListHow { limit: HOMES, stat: false }).await else {
        return Vec::new();
    };
    let folders = listing.entries.iter().filter(|entry| entry.kind == EntryKind::Folder);
    folders.filter_map(|entry| homes.join_bytes(&entry.name).ok()).collect()
}

/// The walls, and what this call was allowed beyond them.
fn inside(call: &Call, policy: &Policy, walls: &SandboxScope, homes: &[HostPath]) -> Limits {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let located = effects.iter().zip(&call.located);
    let touched: Vec<(Access, &Located)> = located
        .filter_map(|(effect, located)| Some((effect.access, located.as_ref()?.as_ref().ok()?)))
        .collect();
    // In mode plan nobody is asked for more than the walls let it write.
    let is_planning = is_planning(call);
    let changed =
        || touched.iter().filter(|(access, _)| *access != Access::Observe && !is_planning);
    let (mut write, mut folders) = (walls.write.clone(), walls.write.clone());
    for (_, found) in changed().filter(|(_, found)| !is_harmless(&found.real)) {
        // For what is not there its folder would have to be writable, which nobody was asked about.
        let beyond = !walls.holds(&found.real) && found.real.parent().is_some();
        if beyond && found.kind != FileKind::Missing {
            folders.extend((found.kind == FileKind::FOLDER).then(|| found.real.clone()));
            write.push(found.real.clone());
        }
    }
    let mut hidden = policy.hidden();
    hidden.extend(homes.iter().flat_map(Policy::hidden_in));
    hidden.retain(|place| !touched.iter().any(|(_, found)| found.real.is_within(place)));
    folders.retain(|folder| !walls.git.contains(folder) && !walls.files.contains(folder));
    let mut protected = policy.kept(&folders, &walls.git);
    // Of these it was asked.
    let asked = || changed().map(|(_, found)| &found.real).filter(|path| policy.protects(path));
    protected.retain(|place| !asked().any(|of| of.is_within(place) || place.is_within(of)));
    let free = asked().cloned().collect();
    folders.retain(|folder| walls.temp.as_ref() != Some(folder));
    let (names, repositories) = (policy.guarded(), walls.git.clone());
    let (keys, known) = (policy.keys(), touched.iter().map(|(_, found)| found.real.clone()));
    let (known, shut) = (known.collect(), Vec::new());
    let guard = Guard { folders, repositories, names, free, keys, shut, known };
    let limits = Limits { write, protected, ..Limits::default() };
    if walls.only_writes {
        let guard = Guard { keys: Vec::new(), ..guard };
        return Limits { guard, net: Net::On, sockets: true, ..limits };
    }
    Limits { hidden, guard, ..limits }
}
