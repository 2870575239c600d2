//! Which state of which file this conversation has seen.
//!
//! **Invariant:** keyed by host and real path, so that a link is no second file. A cache only: what
//! it has forgotten counts as never read, which is the careful answer.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use haft_host::{Located, Stamp};
use haft_tool::Cx;
use haft_types::{Hash, HostPath};

/// Files that are remembered; the one that was looked at longest ago goes first.
const LIMIT: usize = 4096;

/// How a file stands to what was seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It was never read in this conversation.
    Never,
    /// It is as it was seen.
    Same,
    /// It is another than was seen.
    Changed,
}

/// What was seen of one file.
#[derive(Clone, Copy)]
struct Sight {
    stamp: Option<Stamp>,
    hash: Option<Hash>,
    at: u64,
}

#[derive(Default)]
struct Sights {
    files: HashMap<(Box<str>, HostPath), Sight>,
    clock: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Sights>);

impl Seen {
    fn note(&self, host: &str, real: &HostPath, stamp: Option<Stamp>, hash: Option<Hash>) {
        let mut sights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sights.clock += 1;
        let sight = Sight { stamp, hash, at: sights.clock };
        sights.files.insert((host.into(), real.clone()), sight);
        if sights.files.len() > LIMIT {
            // Half at a time, so that remembering stays cheap however many files there are.
            let limit = sights.clock.saturating_sub(LIMIT as u64 / 2);
            sights.files.retain(|_, sight| sight.at > limit);
        }
    }

    fn judge(&self, host: &str, at: &Located, hash: Option<&Hash>) -> Freshness {
        let sights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match sights.files.get(&(host.into(), at.real.clone())) {
            None => Freshness::Never,
            Some(sight) if at.stamp.is_some() && sight.stamp == at.stamp => Freshness::Same,
            Some(sight) if hash.is_some() && sight.hash.as_ref() == hash => Freshness::Same,
            Some(_) => Freshness::Changed,
        }
    }
}

/// Remembers the state of a file that the conversation has seen or made.
pub(crate) fn note(cx: &Cx, at: &Located, hash: Option<Hash>) {
    cx.conversation().map.get::<Seen>().note(cx.host.name(), &at.real, at.stamp, hash);
}

/// Compares a file, with the hash of its content where it was read whole, with what was seen.
pub(crate) fn judge(cx: &Cx, at: &Located, hash: Option<&Hash>) -> Freshness {
    cx.conversation().map.get::<Seen>().judge(cx.host.name(), at, hash)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_host::FileKind;
    use haft_types::Style;

    use super::*;

    fn at(path: &str, modified: i128) -> Located {
        Located {
            real: HostPath::new(path.as_bytes(), Style::Posix).unwrap(),
            kind: FileKind::FILE,
            stamp: Some(Stamp { modified, ..Stamp::default() }),
            names: 1,
            handle: Arc::new(()),
        }
    }

    #[test]
    fn a_touched_file_with_the_same_content_is_the_same() {
        let (seen, old, touched) = (Seen::default(), at("/a", 1), at("/a", 2));
        let (one, two) = (Hash::of(b"one"), Hash::of(b"two"));
        assert_eq!(seen.judge("local", &old, Some(&one)), Freshness::Never);
        seen.note("local", &old.real, old.stamp, Some(one));
        assert_eq!(seen.judge("local", &old, None), Freshness::Same);
        assert_eq!(seen.judge("local", &touched, Some(&one)), Freshness::Same);
        assert_eq!(seen.judge("local", &touched, Some(&two)), Freshness::Changed);
        assert_eq!(seen.judge("memory", &old, Some(&one)), Freshness::Never);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let seen = Seen::default();
        for number in 0..3 * LIMIT {
            let at = at(&format!("/{number}"), 1);
            seen.note("local", &at.real, at.stamp, None);
        }
        assert!(seen.0.lock().unwrap().files.len() <= LIMIT);
        assert_eq!(
            seen.judge("local", &at(&format!("/{}", 3 * LIMIT - 1), 1), None),
            Freshness::Same
        );
        assert_eq!(seen.judge("local", &at("/0", 1), None), Freshness::Never);
    }
}
