//! What a call that was allowed as a whole still must not touch: paths and commands that a rule
//! denies or asks about, credentials, and for changes protected places.
//!
//! **Invariant:** a search opens no file that a read would not have been allowed to open. A call
//! that may do anything changes nothing that would have needed another question to change. Both
//! names of a file count: the one below the written root and the one below the real root.

use globset::{Candidate, GlobSet, GlobSetBuilder};
use haft_text::names::composed;
use haft_types::{HostPath, Style};

use crate::{
    Policy, Verdict,
    command::parts::Parts,
    places::protected::{CREDENTIALS, PROTECTED, find, is_suspect},
    rules::{
        command_pattern::CommandPattern,
        glob::{composed_path, relative},
        rule::{PathClass, Subject},
    },
};

/// Globs that start from one folder.
struct Set {
    base: HostPath,
    /// The base folder itself is meant, with all that is below.
    whole: bool,
    globs: GlobSetBuilder,
    built: Option<GlobSet>,
}

impl Policy {
    /// Tells, for a search by `tool` of the folder `written`, which is really `real`, what below
    /// it must be skipped; asked with a path below either.
    ///
    /// What the question about the whole search already covered is not skipped again: a person
    /// who lets a credentials folder be searched means it. Denials always hold.
    pub fn path_filter(
        &self,
        tool: &str,
        written: &HostPath,
        real: &HostPath,
    ) -> impl Fn(&HostPath) -> bool + Send + Sync + 'static + use<> {
        let sets = self.sets(tool, written, real, false);
        let home = self.anchors.home.clone();
        let known =
            [written, real].into_iter().any(|root| find(CREDENTIALS, root, &home).is_some());
        let (written, real) = (written.clone(), real.clone());
        let one_name = written == real;
        // Of a tree whose own names are at no spot only the names below it can be.
        let clean = !real.names().any(is_suspect);
        move |path: &HostPath| {
            let below = path.as_bytes().strip_prefix(real.as_bytes());
            if one_name
                && clean
                && sets.is_empty()
                && path.style() == Style::Posix
                && let Some(below) = below
                && (below.is_empty() || below.starts_with(b"/"))
                && !below.split(|&b| b == b'/').any(is_suspect)
            {
                return false;
            }
            if !one_name
                && let Some(other) = other_name(path, &written, &real)
                && is_skipped(&other, &sets, &home, known)
            {
                return true;
            }
            is_skipped(path, &sets, &home, known)
        }
    }

    /// As [`path_filter`](Self::path_filter), for what must not be changed: besides what must not
    /// be read that is what rules about edits name, protected places, and haft's own state.
    pub fn change_filter(
        &self,
        tool: &str,
        written: &HostPath,
        real: &HostPath,
    ) -> impl Fn(&HostPath) -> bool + Send + Sync + 'static + use<> {
        let unread = self.path_filter(tool, written, real);
        let sets = self.sets(tool, written, real, true);
        let (home, state) = (self.anchors.home.clone(), self.anchors.state.clone());
        let own = move |path: &HostPath| {
            state.iter().any(|state| path.is_within(state))
                || (path.names().any(is_suspect) && find(PROTECTED, path, &home).is_some())
        };
        // The question about the whole named this place.
        let known = own(written) || own(real);
        let (written, real) = (written.clone(), real.clone());
        let free = self.free();
        move |path: &HostPath| {
            let held =
                |path: &HostPath| is_ruled(path, &sets) || !free(path) || (!known && own(path));
            unread(path)
                || held(path)
                || (written != real
                    && other_name(path, &written, &real).is_some_and(|other| held(&other)))
        }
    }

    /// Tells, for a call that may do anything, which commands it must not run: those that a rule
    /// denies or asks about, however they are wrapped.
    pub fn command_filter(&self) -> impl Fn(&str) -> bool + Send + Sync + 'static + use<> {
        let mut none = false;
        let mut patterns: Vec<CommandPattern> = Vec::new();
        for placed in self.rules.iter().filter(|placed| placed.rule.verdict != Verdict::Allow) {
            match &placed.rule.subject {
                Subject::Command { pattern, .. } => patterns.push(pattern.clone()),
                Subject::Tool(tool) => none |= matches!(&**tool, "bash" | "powershell"),
                _ => {}
            }
        }
        move |text: &str| {
            none || (!patterns.is_empty() && {
                let parts = Parts::of(&composed(text));
                parts.unclear.is_some()
                    || patterns
                        .iter()
                        .any(|pattern| pattern.touches(&parts) || pattern.may_touch(&parts))
            })
        }
    }

    fn sets(&self, tool: &str, written: &HostPath, real: &HostPath, changes: bool) -> Vec<Set> {
        let mut sets: Vec<Set> = Vec::new();
        for placed in self.rules.iter().filter(|placed| placed.rule.verdict != Verdict::Allow) {
            match &placed.rule.subject {
                Subject::Path { class: PathClass::Reads, .. } => {}
                Subject::Path { class: PathClass::Writes, .. } if changes => {}
                Subject::Path { class: PathClass::Of(of), .. } if of == tool => {}
                _ => continue,
            }
            for glob in &placed.globs {
                if placed.rule.verdict == Verdict::Ask
                    && (glob.touches(written) || glob.touches(real))
                {
                    continue;
                }
                let at = sets.iter().position(|set| set.base == *glob.base());
                let at = at.unwrap_or_else(|| {
                    let base = glob.base().clone();
                    sets.push(Set { base, whole: false, globs: GlobSet::builder(), built: None });
                    sets.len() - 1
                });
                for one in glob.globs() {
                    sets[at].globs.add(one.clone());
                }
                sets[at].whole |= glob.touches(glob.base());
            }
        }
        for set in &mut sets {
            set.built = set.globs.build().ok();
        }
        sets
    }
}

/// The same file as seen through the other root.
fn other_name(path: &HostPath, written: &HostPath, real: &HostPath) -> Option<HostPath> {
    let (rest, root) = match path.relative_to(real) {
        Some(rest) => (rest, written),
        None => (path.relative_to(written)?, real),
    };
    root.join_bytes(rest).ok()
}

fn is_skipped(path: &HostPath, sets: &[Set], home: &HostPath, known: bool) -> bool {
    is_ruled(path, sets)
        || (!known && path.names().any(is_suspect) && find(CREDENTIALS, path, home).is_some())
}

fn is_ruled(path: &HostPath, sets: &[Set]) -> bool {
    if sets.is_empty() {
        return false;
    }
    let path = composed_path(path);
    sets.iter().any(|set| {
        let Some(relative) = relative(&path, &set.base) else { return false };
        // A set that cannot be built skips everything: the safe side.
        set.whole
            || set
                .built
                .as_ref()
                .is_none_or(|globs| globs.is_match_candidate(&Candidate::from_bytes(&relative)))
    })
}
