//! What a search must not open: files that a rule denies or asks about, and credentials.
//!
//! **Invariant:** a search that was allowed as a whole still opens no file that reading would not
//! have been allowed for. Both names of a file count: through the written and the real root.

use globset::{Candidate, GlobSet, GlobSetBuilder};
use haft_types::HostPath;

use crate::{
    Policy, Verdict,
    glob::relative,
    protected::{CREDENTIALS, find, is_suspect},
    rule::{PathClass, Subject},
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
        let sets = self.sets(tool, written, real);
        let home = self.anchors.home.clone();
        let known =
            [written, real].into_iter().any(|root| find(CREDENTIALS, root, &home).is_some());
        let (written, real) = (written.clone(), real.clone());
        let one_name = written == real;
        move |path: &HostPath| {
            if !one_name
                && let Some(other) = other_name(path, &written, &real)
                && is_skipped(&other, &sets, &home, known)
            {
                return true;
            }
            is_skipped(path, &sets, &home, known)
        }
    }

    fn sets(&self, tool: &str, written: &HostPath, real: &HostPath) -> Vec<Set> {
        let mut sets: Vec<Set> = Vec::new();
        for placed in self.rules.iter().filter(|placed| placed.rule.verdict != Verdict::Allow) {
            match &placed.rule.subject {
                Subject::Path { class: PathClass::Reads, .. } => {}
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
    let by_rule = sets.iter().any(|set| {
        let Some(relative) = relative(path, &set.base) else { return false };
        // A set that cannot be built skips everything: the safe side.
        set.whole
            || set
                .built
                .as_ref()
                .is_none_or(|globs| globs.is_match_candidate(&Candidate::from_bytes(&relative)))
    });
    by_rule || (!known && path.names().any(is_suspect) && find(CREDENTIALS, path, home).is_some())
}
