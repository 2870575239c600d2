//! What mode accept-edits lets a command do besides writing one file: remove, move and copy files
//! of the workspace that it names.
//!
//! **Invariant:** no folder is removed with its content. Nothing outside the workspace and nothing
//! protected changes. No name that a pattern matches can be a protected one.

use haft_shell::{ANY, FOUND, ONE, SOME};
use haft_types::{Access, HostPath, Mode, Target};

use super::{Judged, by_place_or_mode};
use crate::{Ask, PROTECTED, Policy, command::script::Part};

/// Programs that only remove, move and copy what they name, with the options that leave it at that:
/// letters, and words without their dashes.
const PLAIN: &[(&str, &str, &[&str])] = &[
    ("cp", "Rafinpruv", &["archive", "force", "no-clobber", "recursive", "verbose"]),
    ("ln", "fnsv", &["force", "no-dereference", "symbolic", "verbose"]),
    ("mv", "finuv", &["force", "no-clobber", "verbose"]),
    ("rm", "fiv", &["force", "verbose"]),
    ("rmdir", "pv", &["parents", "verbose"]),
    ("sed", "Einrsz", &["expression", "in-place", "quiet", "regexp-extended", "silent"]),
    ("touch", "acm", &["no-create"]),
    ("unlink", "", &[]),
];

impl Policy {
    /// Whether a command does no more than that.
    pub(crate) fn edits(&self, ask: &Ask<'_>, part: &Part, judged: &[Judged<'_>]) -> bool {
        let finds = part.shapes.iter().any(|shape| shape.contains([SOME, ONE]));
        ask.mode == Mode::AcceptEdits
            && part.is_tame
            && !part.redirects_open
            && (part.open.is_none() || part.is_found && part.shapes.iter().all(|one| is_clear(one)))
            && is_plain(part, finds)
            && part.effects.iter().all(|effect| {
                let is_it = |one: &&Judged<'_>| {
                    one.effect.path() == effect.path() && one.effect.access == effect.access
                };
                let Some(one) = judged.iter().find(is_it) else { return false };
                if effect.access == Access::Observe {
                    return by_place_or_mode(ask, one) || self.rule_for_effect(ask, one).is_some();
                }
                let is_tree = matches!(effect.target, Target::Tree { .. });
                // What stands in a folder that becomes another one is not known.
                let is_whole = effect.access == Access::Modify
                    && (is_tree || part.program.as_deref() == Some("mv"));
                let held = [effect.path(), one.real].map(|path| {
                    path.is_some_and(|path| {
                        is_inside(ask, path, is_tree && !finds)
                            && !(is_whole && is_hidden(ask, path))
                    })
                });
                held == [true; 2]
            })
    }
}

/// Whether a path is in the workspace, and where it is meant with all in it no folder of that.
fn is_inside(ask: &Ask<'_>, path: &HostPath, is_whole: bool) -> bool {
    ask.place.holds(path) && !(is_whole && ask.place.roots.iter().any(|root| root == path))
}

/// Whether a name of a path, from the workspace on, begins with a dot.
fn is_hidden(ask: &Ask<'_>, path: &HostPath) -> bool {
    let roots = ask.place.roots.iter().filter(|root| path.is_within(root));
    let depth = roots.map(|root| root.names().count()).max().unwrap_or(0);
    path.names().skip(depth).any(|name| name.starts_with(b"."))
}

/// Whether it is one of those programs, with no other options; folders that a pattern finds are not
/// copied.
fn is_plain(part: &Part, finds: bool) -> bool {
    let own = |(name, ..): &&(&str, &str, &[&str])| part.program.as_deref() == Some(*name);
    let Some((name, letters, longs)) = PLAIN.iter().find(own) else { return false };
    let mut options = part.shapes.iter().take_while(|word| *word != "--");
    let is_deep = |word: &String| {
        let is_letters = word.starts_with('-') && !word.starts_with("--");
        word.starts_with("--") || is_letters && word.contains(['a', 'r', 'R'])
    };
    if finds && *name == "cp" && options.clone().any(is_deep) {
        return false;
    }
    options.all(|word| match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
        None => true,
        Some(rest) => match rest.strip_prefix('-') {
            Some(long) => longs.contains(&long),
            None => rest.chars().all(|letter| letters.contains(letter)),
        },
    })
}

/// Whether of what a word may be no name can be a protected one: its last name alone is a pattern, and
/// ends as none of these does.
fn is_clear(shape: &str) -> bool {
    let (folder, name) = shape.rsplit_once('/').unwrap_or(("", shape));
    if shape.contains([ANY, FOUND]) || folder.contains([SOME, ONE]) {
        return false;
    }
    let Some(at) = name.rfind([SOME, ONE]) else { return true };
    let tail = name[at + 1..].to_lowercase();
    let may_end = |want: &str| want.contains(['*', '?']) || want.to_lowercase().ends_with(&tail);
    let last = |names: &'static str| names.rsplit('/').next().unwrap_or(names);
    !tail.is_empty() && !PROTECTED.iter().any(|spot| may_end(last(spot.names)))
}
