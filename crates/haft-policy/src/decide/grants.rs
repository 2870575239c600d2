//! Calls that a person allowed for the rest of a session: exactly these calls, and none like them.
//!
//! **Invariant:** a grant holds for the same tool, agent, host and effects at the same real places.
//! Where effects alone do not say what happens, the arguments and the folder have to be the same
//! too.

use std::collections::HashSet;

use haft_types::{Hash, Target};

use crate::Ask;

/// The grants of one session. A grant for one call only is not kept anywhere.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    held: HashSet<Hash>,
    /// Whether file tools may change files of the workspace, as in mode accept-edits.
    pub edits: bool,
}

impl Grants {
    /// Remembers that this very call may go on for the rest of the session.
    pub fn remember(&mut self, ask: &Ask<'_>) {
        self.held.insert(key(ask));
    }

    /// Reports whether this very call was allowed before.
    pub fn holds(&self, ask: &Ask<'_>) -> bool {
        !self.held.is_empty() && self.held.contains(&key(ask))
    }
}

fn key(ask: &Ask<'_>) -> Hash {
    let told = |target: &Target| matches!(target, Target::Path { .. } | Target::Tree { .. });
    let told = ask.plan.effects.iter().all(|effect| told(&effect.target));
    let rest = (!told).then_some((ask.input, &ask.place.cwd));
    let key = serde_json::json!([
        ask.tool.name,
        ask.tool.origin,
        ask.agent,
        ask.plan.host,
        ask.plan.effects,
        ask.real,
        rest,
    ]);
    Hash::of(key.to_string().as_bytes())
}
