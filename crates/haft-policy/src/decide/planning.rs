//! Mode plan: what changes nothing goes on, and commands run where they can change nothing.
//!
//! **Invariant:** what is known to change something is refused, with what it is. What may do anything
//! runs only where a sandbox holds it: the workspace stays as it is, and the network is off.

use haft_types::{Access, Effect, HostPath, Mode, Origin, Target};

use super::{Ask, Judged, Ruling, doing, is_own_file, settle};
use crate::{Policy, Verdict, sandbox::scope::unconfined};

/// Reports whether an effect is that a build writes somewhere below a folder of the workspace. In mode
/// plan it writes elsewhere, or not at all.
pub(crate) fn is_of_a_build(judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    let Judged { effect, .. } = judged;
    let (roots, cwd) = (&ask.place.roots, &ask.place.cwd);
    let is_root = |path: &HostPath| roots.iter().chain([cwd]).any(|root| root == path);
    let is_below = match &effect.target {
        Target::Tree { .. } => true,
        Target::Path { path, .. } => is_root(path),
        _ => false,
    };
    let runs = |one: &Effect| matches!(one.target, Target::Command { .. });
    let by_command = ask.plan.effects.iter().any(runs);
    ask.mode == Mode::Plan && effect.access == Access::Modify && is_below && by_command
}

/// Reports whether a command runs in a program of its own, which begins with it.
fn is_new(judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    match (&judged.effect.target, &ask.tool.origin) {
        (Target::Command { fresh_in, .. }, Origin::Builtin) => {
            fresh_in.is_some() && !ask.plan.lives_on
        }
        (Target::Command { .. }, Origin::Executable { .. }) => true,
        _ => false,
    }
}

/// Reports whether mode plan lets an effect be.
fn is_possible(judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    let effect = judged.effect;
    if *effect == unconfined() {
        return false;
    }
    if effect.access == Access::Observe || is_own_file(effect, ask.plan) {
        return true;
    }
    match effect.target {
        Target::State { .. } => ask.tool.origin == Origin::Builtin,
        // A shell or a job that goes on may have begun where nothing held it.
        Target::Command { .. } => is_new(judged, ask) && ask.inside().is_some(),
        Target::Path { .. } | Target::Tree { .. } | Target::Secret { .. } => ask.is_held(judged),
        Target::Net { .. } | Target::Anything => false,
    }
}

/// The tools that read and write the plan's file.
const PLAN_TOOLS: [&str; 3] = ["read", "write", "edit"];

impl Policy {
    /// The same, where mode plan lets file tools change one file: the plan's. Its path has no links.
    #[must_use]
    pub fn planning_in(self, file: HostPath) -> Self {
        Self { plan_file: Some(file), ..self }
    }

    /// What mode plan makes of a call; none where it goes on to be judged as in other modes.
    pub(crate) fn planned(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        if ask.mode != Mode::Plan {
            return None;
        }
        if !self.is_about_plan(ask, judged) {
            return refused(ask, judged);
        }
        let question = self.ruled(ask, judged, Verdict::Ask);
        let question = question.or_else(|| self.restricted(ask, judged));
        let reason = |_: &str| "mode plan lets the plan's own file change".to_owned();
        Some(question.map_or_else(
            || Ruling::new(Verdict::Allow, None, "", reason),
            |question| settle(question, ask),
        ))
    }

    /// Reports whether a call of a file tool touches the plan's file and nothing else.
    fn is_about_plan(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> bool {
        let is_file_tool =
            ask.tool.origin == Origin::Builtin && PLAN_TOOLS.contains(&&*ask.tool.name);
        let is_plan = |one: &Judged<'_>| {
            matches!(one.effect.target, Target::Path { .. })
                && one.effect.access != Access::Destroy
                && one.real.is_some()
                && one.real == self.plan_file.as_ref()
        };
        is_file_tool && !judged.is_empty() && judged.iter().all(is_plan)
    }
}

/// The refusal of a call that would change something.
fn refused(ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
    let one = judged.iter().find(|judged| !is_possible(judged, ask))?;
    let what = match &one.effect.target {
        _ if *one.effect == unconfined() => "running outside the sandbox".to_owned(),
        _ => doing(one.effect, None, ask),
    };
    let is_command = matches!(one.effect.target, Target::Command { .. });
    let why = match ask.walls {
        None if is_command => " where no sandbox holds commands",
        _ if is_command && !is_new(one, ask) => " in a program that goes on",
        _ => "",
    };
    Some(Ruling::new(Verdict::Deny, None, &what, |what| {
        let next = "go on reading, then present the plan";
        format!("plan mode only reads, so {what} is not possible now{why}; {next}")
    }))
}
