//! Tracks which state of which file this conversation has seen.
//!
//! **Invariant:** entries are keyed by host and real path, so that a link is no second file. They
//! are state of the conversation, so that the next process of a session knows them too. A file that
//! was forgotten counts as never read, which is the safe answer.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use haft_host::{Located, Stamp};
use haft_tool::Cx;
use haft_types::{Hash, HostPath, Outcome, Part};
use serde_json::{Value, json};

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

/// What is kept of a sight across processes.
impl Sight {
    fn value(&self) -> Value {
        let stamp = self.stamp.map(|stamp| {
            let Stamp { id, size, modified, changed } = stamp;
            format!("{} {} {size} {modified} {changed}", id.0, id.1)
        });
        json!({"stamp": stamp, "hash": self.hash})
    }

    fn of(value: &Value) -> Option<Self> {
        let stamp = value["stamp"].as_str().and_then(|text| {
            let mut parts = text.split(' ');
            Some(Stamp {
                id: (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?),
                size: parts.next()?.parse().ok()?,
                modified: parts.next()?.parse().ok()?,
                changed: parts.next()?.parse().ok()?,
            })
        });
        let hash = value["hash"].as_str().and_then(|text| text.parse().ok());
        value.is_object().then_some(Self { stamp, hash, at: 0 })
    }

    fn judge(&self, at: &Located, hash: Option<&Hash>) -> Freshness {
        let same = at.stamp.is_some() && self.stamp == at.stamp;
        if same || (hash.is_some() && self.hash.as_ref() == hash) {
            Freshness::Same
        } else {
            Freshness::Changed
        }
    }
}

#[derive(Default)]
struct Sights {
    files: HashMap<(Box<str>, HostPath), Sight>,
    clock: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct SeenStates(Mutex<Sights>);

impl SeenStates {
    /// Takes note of a file; gives those that are forgotten for it.
    fn note(&self, host: &str, real: &HostPath, sight: Sight) -> Vec<(Box<str>, HostPath)> {
        let mut sights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sights.clock += 1;
        let sight = Sight { at: sights.clock, ..sight };
        sights.files.insert((host.into(), real.clone()), sight);
        if sights.files.len() <= LIMIT {
            return Vec::new();
        }
        // Half at a time, so that remembering stays cheap however many files there are.
        let limit = sights.clock.saturating_sub(LIMIT as u64 / 2);
        let old = sights.files.extract_if(|_, sight| sight.at <= limit);
        old.map(|(file, _)| file).collect()
    }

    fn sight(&self, host: &str, real: &HostPath) -> Option<Sight> {
        let sights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sights.files.get(&(host.into(), real.clone())).copied()
    }
}

/// The key under which the conversation keeps what it has seen of a file.
fn key(host: &str, real: &HostPath) -> String {
    format!("seen {host} {}", real.text())
}

/// Remembers the state of a file that the conversation has seen or made.
pub(crate) fn note(cx: &Cx, at: &Located, hash: Option<Hash>) {
    let (host, sight) = (cx.host.name(), Sight { stamp: at.stamp, hash, at: 0 });
    let forgotten = cx.conversation().map.get::<SeenStates>().note(host, &at.real, sight);
    for (host, real) in forgotten {
        cx.remember(key(&host, &real), Value::Null);
    }
    cx.remember(key(host, &at.real), sight.value());
}

/// Compares a file, with the hash of its content where it was read whole, with what was seen.
pub(crate) fn judge(cx: &Cx, at: &Located, hash: Option<&Hash>) -> Freshness {
    sight(cx, at).map_or(Freshness::Never, |sight| sight.judge(at, hash))
}

fn sight(cx: &Cx, at: &Located) -> Option<Sight> {
    let host = cx.host.name();
    let here = cx.conversation().map.get::<SeenStates>().sight(host, &at.real);
    here.or_else(|| cx.conversation().value(&key(host, &at.real)).as_ref().and_then(Sight::of))
}

/// Most bytes of a text that is kept to tell what changed in it.
pub(crate) const TEXT_MAX: usize = 256 * 1024;
/// Most bytes of all such texts; the one that was seen longest ago goes first.
const TEXTS_MAX: usize = 4 * 1024 * 1024;

/// Texts that were seen last, the newest at the end. Another process of the session has none.
#[derive(Default)]
struct Texts(Mutex<Vec<(Hash, Bytes)>>);

impl Texts {
    fn keep(&self, hash: Hash, text: &Bytes) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|(other, _)| *other != hash);
        texts.push((hash, text.clone()));
        let mut size: usize = texts.iter().map(|(_, text)| text.len()).sum();
        while size > TEXTS_MAX {
            size -= texts.remove(0).1.len();
        }
    }

    fn get(&self, hash: &Hash) -> Option<Bytes> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().find(|(other, _)| other == hash).map(|(_, text)| text.clone())
    }
}

/// Keeps a text that the conversation has seen or made, if it is not too long.
pub(crate) fn keep(cx: &Cx, hash: Hash, text: &Bytes) {
    if text.len() <= TEXT_MAX {
        cx.conversation().map.get::<Texts>().keep(hash, text);
    }
}

/// What a file held when the conversation saw it last, where that is kept.
pub(crate) fn earlier(cx: &Cx, at: &Located) -> Option<Bytes> {
    let hash = sight(cx, at)?.hash?;
    cx.conversation().map.get::<Texts>().get(&hash)
}

/// Shorter results are given again: saying that nothing changed would save nothing.
const WORTH: usize = 500;

/// What of which files stands in results that the model sees, by hashes of file and result.
#[derive(Default)]
struct Shown(Mutex<(u64, HashSet<Hash>)>);

impl Shown {
    /// Reports whether the very same stands there; the next time after that it is given again,
    /// for a caller that insists has lost it.
    fn stands(&self, revision: u64, key: Hash) -> bool {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.0 != revision || shown.1.len() >= LIMIT {
            *shown = (revision, HashSet::new());
        }
        let stands = shown.1.remove(&key);
        if !stands {
            shown.1.insert(key);
        }
        stands
    }
}

/// Reports whether what a call gives of a file stands unchanged in an earlier result that the
/// model still sees.
pub(crate) fn stands(cx: &Cx, host: &str, real: &HostPath, outcome: &Outcome) -> bool {
    let Some(revision) = cx.standing() else { return false };
    let images = |part: &Part| matches!(part, Part::Image { .. });
    let small = outcome.joined_text().len() < WORTH;
    if cx.stop.is_cancelled() || (small && !outcome.content.iter().any(images)) {
        return false;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(host.as_bytes()).update(b"\0").update(real.text().as_bytes());
    for part in &outcome.content {
        match part {
            Part::Text { text } => hasher.update(b"\0").update(text.as_bytes()),
            Part::Image { blob } => hasher.update(b"\x01").update(blob.hash.to_string().as_bytes()),
            _ => return false,
        };
    }
    let key = Hash::from_bytes(*hasher.finalize().as_bytes());
    cx.conversation().map.get::<Shown>().stands(revision, key)
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

    fn sight(at: &Located, hash: Option<Hash>) -> Sight {
        Sight { stamp: at.stamp, hash, at: 0 }
    }

    #[test]
    fn a_touched_file_with_the_same_content_is_the_same() {
        let (old, touched) = (at("/a", 1), at("/a", 2));
        let (one, two) = (Hash::of(b"one"), Hash::of(b"two"));
        let seen = sight(&old, Some(one));
        // What another process kept of it judges alike.
        for seen in [seen, Sight::of(&seen.value()).unwrap()] {
            assert_eq!(seen.judge(&old, None), Freshness::Same);
            assert_eq!(seen.judge(&touched, None), Freshness::Changed);
            assert_eq!(seen.judge(&touched, Some(&one)), Freshness::Same);
            assert_eq!(seen.judge(&touched, Some(&two)), Freshness::Changed);
        }
        let unread = Sight { stamp: None, hash: None, at: 0 };
        for seen in [unread, Sight::of(&unread.value()).unwrap()] {
            assert_eq!(seen.judge(&old, Some(&one)), Freshness::Changed);
        }
        for wrong in [json!(1), json!("x"), Value::Null] {
            assert!(Sight::of(&wrong).is_none(), "{wrong}");
        }
        let seen = Sight::of(&json!({"stamp": "1 2 3", "hash": 7})).unwrap();
        assert_eq!(seen.judge(&old, Some(&one)), Freshness::Changed);
    }

    #[test]
    fn what_stands_is_said_once_and_never_of_another_revision() {
        let shown = Shown::default();
        let (one, two) = (Hash::of(b"one"), Hash::of(b"two"));
        assert!(!shown.stands(1, one) && !shown.stands(1, two));
        assert!(shown.stands(1, one), "it stands");
        assert!(!shown.stands(1, one), "who insists gets it again");
        assert!(shown.stands(1, one), "and then it stands again");
        assert!(!shown.stands(2, two), "masked meanwhile");
        assert!(shown.stands(2, two));
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let seen = SeenStates::default();
        let mut forgotten = Vec::new();
        for number in 0..3 * LIMIT {
            let at = at(&format!("/{number}"), 1);
            forgotten.extend(seen.note("local", &at.real, sight(&at, None)));
        }
        let kept = seen.0.lock().unwrap().files.len();
        assert!(kept <= LIMIT);
        assert_eq!(kept + forgotten.len(), 3 * LIMIT, "what is forgotten is told");
        let last = at(&format!("/{}", 3 * LIMIT - 1), 1);
        assert!(seen.sight("local", &last.real).is_some());
        assert!(seen.sight("memory", &last.real).is_none(), "another host, another file");
        assert!(seen.sight("local", &at("/0", 1).real).is_none());
    }
}
