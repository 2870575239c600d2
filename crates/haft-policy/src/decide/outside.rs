//! Rules like `Edit(not tests/)`: nothing outside a place is changed.
//!
//! **Invariant:** each of several holds. What a rule leaves free is read strictly, by the written and
//! the real path. It never makes more writable than was before it.
//!
//! **Does not know:** what a program changes that a call starts. The sandbox holds that one where it
//! can; else it is asked about.

use haft_types::{Access, Effect, HostPath, Target};

use super::{Ask, Judged, Placed, Remember, Ruling, chores::is_own_file, doing};
use crate::{
    Policy, Rule, Verdict,
    command::script::Part,
    rules::{glob::PathGlob, rule::Subject},
    sandbox::scope::{is_harmless, unconfined},
};

/// Whether all that is at and below a path is what a rule leaves free.
fn is_left_free(placed: &Placed, path: &HostPath) -> bool {
    placed.globs.iter().any(|glob| glob.allows(path, true))
}

/// Whether a rule forbids an effect, which changes something outside.
pub(crate) fn leaves(placed: &Placed, judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    let effect = judged.effect;
    if effect.access == Access::Observe || is_own_file(effect, ask.plan) {
        return false;
    }
    // Where it leads must be known.
    let Some((written, real)) = effect.path().zip(judged.real) else { return true };
    let runs = |one: &Effect| matches!(one.target, Target::Command { .. });
    let by_command = ask.plan.effects.iter().any(runs);
    let is_free = |path: &HostPath| {
        is_left_free(placed, path) || by_command && (is_harmless(path) || is_temporary(path, ask))
    };
    !(is_free(written) && is_free(real))
}

/// Whether a path lies in the temporary folder, and that holds neither the workspace nor the home.
fn is_temporary(path: &HostPath, ask: &Ask<'_>) -> bool {
    let (place, walls) = (ask.place, ask.walls.and_then(|walls| walls.temp.as_ref()));
    let mut kept = place.roots.iter().chain([&place.cwd, &place.home]);
    let temp = &place.temp;
    let is_below = |temp: &HostPath| path.is_within(temp) && path != temp;
    is_below(temp) && !kept.any(|kept| kept.is_within(temp)) || walls.is_some_and(is_below)
}

/// Whether a part of a command changes no more than the paths that its plan names.
fn is_seen(part: &Part) -> bool {
    let is_known = part.is_tame && part.open.is_none() && !part.connects;
    part.read_only || part.passes || is_known
}

impl Policy {
    fn outside(&self) -> impl Iterator<Item = &Placed> {
        let is_one = |placed: &&Placed| matches!(placed.rule.subject, Subject::Outside { .. });
        self.with(Verdict::Deny).filter(is_one)
    }

    /// Reports whether a rule lets nothing change outside a place, so that commands are to be held to
    /// that.
    pub fn is_narrowed(&self) -> bool {
        self.outside().next().is_some()
    }

    /// Reports whether such rules leave a path free, with all below it.
    pub fn is_left_free(&self, path: &HostPath) -> bool {
        self.outside().all(|placed| is_left_free(placed, path))
    }

    /// The same, for later.
    pub(crate) fn free(&self) -> impl Fn(&HostPath) -> bool + Send + Sync + 'static + use<> {
        let all: Vec<Placed> = self.outside().cloned().collect();
        move |path| all.iter().all(|placed| is_left_free(placed, path))
    }

    /// The places that such rules leave free, where they name some without a pattern.
    pub fn left_free(&self) -> impl Iterator<Item = &HostPath> {
        self.outside().flat_map(|placed| &placed.globs).flat_map(PathGlob::literals)
    }

    /// The refusal of a call that wants to run where nothing would hold it inside.
    pub(crate) fn unescaped(&self, ask: &Ask<'_>) -> Option<Ruling> {
        let rule =
            &self.outside().next().filter(|_| ask.plan.effects.contains(&unconfined()))?.rule;
        let reason = |_: &str| {
            let (text, scope, said) = (&rule.text, rule.scope, rule.quoted());
            format!("the deny rule {text} ({scope}) forbids to run outside the sandbox{said}")
        };
        let instead = "Leave unsandboxed out; the command can change what the rule leaves free.";
        let ruling = Ruling::new(Verdict::Deny, Some(rule), "", reason);
        Some(Ruling { instead: Some(instead.to_owned()), ..ruling })
    }

    /// The question about a call whose changes nothing holds inside.
    pub(crate) fn unheld(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        let rule: &Rule = &self.outside().next()?.rule;
        let is_open = |one: &&Judged<'_>| match &one.effect.target {
            Target::Anything => one.effect.access != Access::Observe,
            Target::Command { .. } => {
                let known = one.script.as_ref().filter(|script| script.fault.is_none());
                (ask.walls.is_none() || ask.plan.lives_on)
                    && !known.is_some_and(|script| script.parts.iter().all(is_seen))
            }
            _ => false,
        };
        let one = judged.iter().find(is_open)?;
        let what = doing(one.effect, one.real, ask);
        Some(Ruling::ask(Remember::Session, Some(rule), &what, |what| {
            let (text, scope, said) = (&rule.text, rule.scope, rule.quoted());
            format!("nothing holds {what} to what the deny rule {text} ({scope}) leaves free{said}")
        }))
    }
}
