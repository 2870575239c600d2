//! Mode plan: what changes nothing goes on, and commands run where they can change nothing.
//!
//! **Invariant:** what is known to change something is refused, with what it is. What may do anything
//! runs only where a sandbox holds it: the workspace stays as it is, and the network is off.

use haft_types::{Access, Origin, Target};

use super::{Ask, Judged, Ruling, doing, is_own_file};
use crate::{Verdict, sandbox::scope::unconfined};

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
        // A shell that goes on may have begun where nothing held it.
        Target::Command { .. } => {
            let is_known = matches!(ask.tool.origin, Origin::Builtin | Origin::Executable { .. });
            let lives_on = ask.plan.lives_on && judged.script.is_none();
            is_known && !lives_on && ask.inside().is_some()
        }
        // What a build would write in the workspace it writes elsewhere, or not at all.
        Target::Tree { .. } if effect.access == Access::Modify && ask.inside().is_some() => true,
        Target::Path { .. } | Target::Tree { .. } | Target::Secret { .. } => ask.is_held(judged),
        Target::Net { .. } | Target::Anything => false,
    }
}

/// The refusal of a call that would change something.
pub(crate) fn refused(ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
    let one = judged.iter().find(|judged| !is_possible(judged, ask))?;
    let what = match &one.effect.target {
        _ if *one.effect == unconfined() => "running outside the sandbox".to_owned(),
        _ => doing(one.effect, None, ask),
    };
    let is_command = matches!(one.effect.target, Target::Command { .. });
    let why = match ask.walls {
        None if is_command => " where no sandbox holds commands",
        _ if is_command && ask.plan.lives_on => " in a shell that goes on",
        _ => "",
    };
    Some(Ruling::new(Verdict::Deny, None, &what, |what| {
        let next = "go on reading, then present the plan";
        format!("plan mode only reads, so {what} is not possible now{why}; {next}")
    }))
}
