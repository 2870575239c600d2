//! What a call would do, declared as data before it runs.
//!
//! **Invariant:** read-only, destructive, may-run-together, which paths, which rule matches and
//! what undo must save are all derived from the effects of one [`Plan`], never asked separately.

use serde::{Deserialize, Serialize};

use crate::{HostPath, PathError, Text};

/// What a call does to a target, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Leaves it as it was.
    Observe,
    /// Changes it in a way that can be undone.
    Modify,
    /// Cannot be undone: deletes, overwrites unseen content, sends to others.
    Destroy,
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// The link's target is meant; links on the way are always followed.
    #[default]
    Yes,
    /// The link itself is meant.
    No,
}

/// A target that a call touches, on the plan's host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Target {
    /// One file or folder entry.
    Path {
        /// The path, as written.
        path: HostPath,
        /// Whether a link at its end is followed.
        #[serde(default)]
        follow: Follow,
    },
    /// Everything below a folder; links inside are not followed.
    Tree {
        /// The folder.
        root: HostPath,
    },
    /// A command given to a shell or started as a program.
    Command {
        /// The text, as it would be run.
        text: String,
        /// The folder in which a new shell without earlier settings runs it, so that its words have
        /// their usual meaning. None for every other shell, language and program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fresh_in: Option<HostPath>,
    },
    /// A network peer.
    Net {
        /// Host name or address, without a port.
        host: String,
    },
    /// State inside haft, such as the todo list or the stored outputs.
    State {
        /// The state's name.
        name: Text,
    },
    /// The value of a secret, handed to a program as a variable of this name.
    Secret {
        /// Its name in placeholders.
        name: Text,
    },
    /// Not known before the call: conflicts with everything.
    Anything,
}

/// One effect that a call would have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// How the call touches the target.
    pub access: Access,
    /// The target.
    #[serde(flatten)]
    pub target: Target,
}

impl Target {
    /// A command without information about its shell.
    pub const fn command(text: String) -> Self {
        Self::Command { text, fresh_in: None }
    }
}

impl Effect {
    /// The name of the state that says what calls may do: none runs beside a change of it.
    pub const MODE: &str = "mode";

    /// Reports whether two effects must not happen at the same time on one host.
    pub fn conflicts(&self, other: &Self) -> bool {
        use Target::{Anything, Command, Net, Path, State, Tree};
        if self.access == Access::Observe && other.access == Access::Observe {
            return false;
        }
        match (&self.target, &other.target) {
            (Anything | Command { .. }, _) | (_, Anything | Command { .. }) => true,
            // What other calls may do hangs on it.
            (State { name }, _) | (_, State { name }) if name == Self::MODE => true,
            // A folder's listing is its own entry: making a file below changes it.
            (Path { path: a, .. } | Tree { root: a }, Path { path: b, .. } | Tree { root: b }) => {
                a.is_within(b) || b.is_within(a)
            }
            (Net { host: a }, Net { host: b }) => a == b,
            (State { name: a }, State { name: b }) => a == b,
            _ => false,
        }
    }

    /// The path or root that the effect touches; none for other targets.
    pub const fn path(&self) -> Option<&HostPath> {
        match &self.target {
            Target::Path { path, .. } | Target::Tree { root: path } => Some(path),
            _ => None,
        }
    }
}

/// The plan of one call, made from its arguments alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The host that all effects are on, such as `local` or `ssh:build`.
    pub host: Text,
    /// Present participle, for spinners and questions: `Reading src/main.rs`.
    pub title: String,
    /// Everything that the call may touch; empty means: nothing at all.
    pub effects: Vec<Effect>,
    /// True where the call only waits for something else and does nothing itself: no other call
    /// need wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// True where it runs in a process that goes on behind the call, such as a named shell: what
    /// that process may touch cannot be widened for this call alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lives_on: bool,
}

impl Plan {
    /// Starts a plan on the place's host, without effects.
    pub fn new(place: &Place, title: impl Into<String>) -> Self {
        let (waits, lives_on) = (false, false);
        let (host, title) = (place.host.clone(), title.into());
        Self { host, title, effects: Vec::new(), waits, lives_on }
    }

    /// The plan of a call about which nothing is known: always safe, always asked about.
    pub fn anything(place: &Place, title: impl Into<String>) -> Self {
        Self::new(place, title).with(Access::Destroy, Target::Anything)
    }

    /// The same plan, marked as one of a call that only waits for something else.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The same plan, marked as one of a call in a process that goes on behind it.
    #[must_use]
    pub fn living_on(self) -> Self {
        Self { lives_on: true, ..self }
    }

    /// Adds one effect.
    #[must_use]
    pub fn with(mut self, access: Access, target: Target) -> Self {
        self.effects.push(Effect { access, target });
        self
    }

    /// Adds the reading of one path, links followed.
    #[must_use]
    pub fn reads(self, path: HostPath) -> Self {
        self.with(Access::Observe, Target::Path { path, follow: Follow::Yes })
    }

    /// Adds a change of one path that can be undone, links followed.
    #[must_use]
    pub fn changes(self, path: HostPath) -> Self {
        self.with(Access::Modify, Target::Path { path, follow: Follow::Yes })
    }

    /// Adds the reading of everything below a folder.
    #[must_use]
    pub fn searches(self, root: HostPath) -> Self {
        self.with(Access::Observe, Target::Tree { root })
    }

    /// The strongest access of the call.
    pub fn access(&self) -> Access {
        self.effects.iter().map(|effect| effect.access).max().unwrap_or(Access::Observe)
    }

    /// Reports whether the call leaves everything as it was.
    pub fn observes(&self) -> bool {
        self.access() == Access::Observe
    }

    /// Reports whether the two calls may not overlap in time.
    pub fn conflicts(&self, other: &Self) -> bool {
        let everywhere = |plan: &Self| plan.effects.iter().any(|e| e.target == Target::Anything);
        (self.host == other.host || everywhere(self) || everywhere(other))
            && self.effects.iter().any(|a| other.effects.iter().any(|b| a.conflicts(b)))
    }
}

/// The surroundings that a plan may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host's name.
    pub host: Text,
    /// Where relative paths start: the workspace root, or for the shell its carried folder.
    pub cwd: HostPath,
    /// The workspace: the start folder first, then the added ones.
    pub roots: Vec<HostPath>,
    /// Folders outside the workspace whose files may be looked at as if they were in it, with all
    /// links resolved: those of skills.
    pub read_roots: Vec<HostPath>,
    /// The home folder on that host, for `~`.
    pub home: HostPath,
    /// The temporary folder on that host.
    pub temp: HostPath,
}

impl Place {
    /// The absolute path of what a model or person wrote: relative to `cwd`, with `~` for home.
    ///
    /// # Errors
    /// When the text holds a NUL byte.
    pub fn path(&self, text: &str) -> Result<HostPath, PathError> {
        match text.strip_prefix('~') {
            Some("") => Ok(self.home.clone()),
            Some(rest) if rest.starts_with('/') => self.home.join(&rest[1..]),
            _ => self.cwd.join(text),
        }
    }

    /// The path as shown: relative inside the workspace root, absolute outside.
    pub fn shown<'a>(&self, path: &'a HostPath) -> std::borrow::Cow<'a, str> {
        path.shown_from(&self.cwd)
    }

    /// The folders of the workspace that do not lie in its root, each once.
    pub fn further(&self) -> impl Iterator<Item = &HostPath> {
        let outside = |at: &usize| {
            let (folder, before) = (&self.roots[*at], &self.roots[..*at]);
            !folder.is_within(&self.cwd) && !before.contains(folder)
        };
        (0..self.roots.len()).filter(outside).map(|at| &self.roots[at])
    }

    /// Reports whether a path lies in the workspace.
    pub fn holds(&self, path: &HostPath) -> bool {
        self.roots.iter().any(|root| path.is_within(root))
    }

    /// Reports whether a path may be looked at without a question: in the workspace, and in the
    /// folders for that. What may be changed is what the workspace [`holds`](Self::holds).
    pub fn shows(&self, path: &HostPath) -> bool {
        self.holds(path) || self.read_roots.iter().any(|root| path.is_within(root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }
    fn place() -> Place {
        Place {
            host: "local".into(),
            cwd: at("/w"),
            roots: vec![at("/w")],
            read_roots: Vec::new(),
            home: at("/home/me"),
            temp: at("/tmp"),
        }
    }
    fn plan() -> Plan {
        Plan::new(&place(), "")
    }

    #[test]
    fn other_hosts_do_not_conflict_but_anything_does() {
        let far = Plan { host: "ssh:a".into(), ..plan().changes(at("/w/a")) };
        assert!(!far.conflicts(&plan().changes(at("/w/a"))));
        assert!(far.conflicts(&Plan::anything(&place(), "")));
    }

    #[test]
    fn commands_run_alone_unless_both_only_observe() {
        let run = |access| plan().with(access, Target::command("ls".into()));
        assert!(run(Access::Destroy).conflicts(&plan().reads(at("/w/a"))));
        assert!(!run(Access::Observe).conflicts(&plan().reads(at("/w/a"))));
    }

    #[test]
    fn tilde_is_home_and_relative_is_cwd() {
        assert_eq!(place().path("~/x").unwrap(), at("/home/me/x"));
        assert_eq!(place().path("~").unwrap(), at("/home/me"));
        assert_eq!(place().path("~x").unwrap(), at("/w/~x"));
        assert_eq!(place().path("a/../b").unwrap(), at("/w/b"));
    }
}
