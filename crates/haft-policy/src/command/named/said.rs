//! What rules of reading name, and patterns or texts of a command that only looks say of it, though only the
//! running shell will know what they become.
//!
//! The sandbox hides such files in any case. This is for what is meant: who writes `cat sec*/x` where a rule
//! forbids `secret/**` is told so, and who writes `cat */x` reads what is left.
//!
//! **Does not know:** which files there are.

use haft_types::{Access, Origin};

use super::{Spoken, spoken, texts, words::Named};
use crate::{
    Ask,
    decide::{Judged, Placed},
    rules::rule::{PathClass, Subject},
};

/// What of a rule's a command says, for people.
pub(crate) fn said(placed: &Placed, judged: &Judged<'_>, ask: &Ask<'_>) -> Option<String> {
    let Subject::Path { class: PathClass::Reads, .. } = &placed.rule.subject else {
        return None;
    };
    let script = judged.script.as_ref().filter(|script| script.fault.is_none())?;
    if ask.tool.origin != Origin::Builtin {
        return None;
    }
    let is_said = |named: &Named, is_settled: bool| {
        placed.globs.iter().any(|glob| match named.shape.exact() {
            Some(path) => !is_settled && glob.touches(&path),
            None => !named.is_guess && glob.is_said(&named.shape),
        })
    };
    let parts = spoken(judged, ask, |part| part.is_tame || part.read_only);
    let mut words = parts.iter().flat_map(|Spoken { part, named }| {
        // What it works on is known, but for its patterns, unless its folder is not.
        let is_settled = part.is_none_or(|part| part.open.is_none() || part.folders.is_some());
        named.iter().filter(move |one| one.is_whole && is_said(one, is_settled))
    });
    let named = || texts(script, ask, Access::Observe).find(|one| is_said(one, false));
    let found = words.next().cloned().or_else(named)?;
    Some(found.shape.shown(ask.place))
}
