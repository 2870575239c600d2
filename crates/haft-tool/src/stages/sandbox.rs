//! `sandbox`: what the programs of a call may touch, and what is said where that held them back.
//!
//! **Invariant:** a command that goes on because it only looks can change nothing, wherever the
//! system can see to that; one that goes on because the sandbox holds it is held. What a person or a
//! rule allowed beyond that is added, path by path, and nothing else is.

mod held_back;

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{FileKind, Level, Limits, Shell};
use haft_policy::{Confinement, Policy, Walls, unconfined};
use haft_types::{Access, Effect, Follow, HostPath, Mode, Outcome, Target, ToolError};

use crate::{Call, Next, Stage};

pub(super) struct Sandbox;

impl Stage for Sandbox {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn run<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        async move {
            let Some(limits) = limits(&call).await else { return next.run(call).await };
            call.confine = Some(limits.clone());
            let outcome = next.run(call).await;
            held_back::tell(outcome, &limits)
        }
        .boxed()
    }
}

/// What the programs of a call could reach in the sandbox, where one may let it go on; none where no
/// sandbox holds.
///
/// # Errors
/// When none holds, and without one nothing is to run.
pub(crate) async fn walls(call: &Call) -> Result<Option<Walls>, ToolError> {
    let judge = call.cx.session().judge();
    let wanted = judge.policy.sandbox();
    let host = &call.cx.dispatcher.host;
    let Some(shell) = host.shell().filter(|_| judge.mode == Mode::Auto || wanted.always) else {
        return Ok(None);
    };
    if level(shell, strongest(wanted)).await.is_none() {
        return if wanted.always && runs(call) {
            Err(unheld(shell, wanted).await)
        } else {
            Ok(None)
        };
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
    write.extend(temp.filter(|temp| !holds(temp)));
    Ok(Some(Walls { write, hosts: wanted.hosts.clone() }))
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
async fn limits(call: &Call) -> Option<Limits> {
    let judge = call.cx.session().judge();
    let (policy, plan) = (&judge.policy, call.plan()?);
    let wanted = policy.sandbox();
    if !runs(call) || plan.effects.contains(&unconfined()) {
        return None;
    }
    let shell = call.cx.dispatcher.host.shell()?;
    let looks = call.ruling.as_ref().is_some_and(|ruling| ruling.looks);
    if looks && wanted.looks {
        // At level L such a command sees other processes as they are, and costs less.
        let levels: &[Level] =
            if wanted.strong { strongest(wanted) } else { &[Level::Landlock, Level::Namespaces] };
        let level = level(shell, levels).await?;
        return Some(Limits { hidden: policy.hidden(), level: Some(level), ..Limits::default() });
    }
    let walls = call.walls.as_ref()?;
    let level = level(shell, strongest(wanted)).await?;
    let mut limits = inside(call, policy, walls);
    limits.level = Some(level);
    if !limits.write.iter().any(|folder| call.cx.dispatcher.host.temp().is_within(folder)) {
        limits.temp = shell.scratch().await.ok();
    }
    Some(limits)
}

/// The walls, and what this call was allowed beyond them.
fn inside(call: &Call, policy: &Policy, walls: &Walls) -> Limits {
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let (mut touched, mut changed) = (Vec::new(), Vec::new());
    for (effect, located) in effects.iter().zip(&call.located) {
        let Some(Ok(found)) = located else { continue };
        let there = found.kind != FileKind::Missing;
        if effect.access != Access::Observe {
            changed.push((found.real.clone(), there));
        }
        touched.push(found.real.clone());
    }
    let mut write = walls.write.clone();
    for (path, there) in &changed {
        // What is not there can only be made where its folder is writable.
        let path = if *there { Some(path.clone()) } else { path.parent() };
        let home = &call.place().home;
        write.extend(path.filter(|path| !walls.holds(path) && !home.is_within(path)));
    }
    let mut hidden = policy.hidden();
    hidden.retain(|place| !touched.iter().any(|path| path.is_within(place)));
    let mut protected = policy.kept(&write);
    let asked: Vec<&HostPath> =
        changed.iter().map(|(path, _)| path).filter(|path| policy.protects(path)).collect();
    protected.retain(|place| !asked.iter().any(|of| of.is_within(place) || place.is_within(of)));
    Limits { write, hidden, protected, ..Limits::default() }
}
