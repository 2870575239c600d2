//! Where the lines of big files begin, cached from call to call.
//!
//! **Invariant:** an index is valid for one state of a file only: with another stamp it begins
//! again. It is a cache of the session: at most [`FILES`] files with at most [`MARKS`] marks each.
//! It reads nothing itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_host::{Located, Stamp};
use haft_tool::Cx;
use haft_types::{Hash, HostPath};

use super::page::Written;

/// Most files that are kept; the one that was asked for longest ago goes first.
const FILES: usize = 64;
/// Most marks of one file: 64 KB.
const MARKS: usize = 4096;
/// Bytes between two marks, while there are few enough of them. A smaller file is not kept.
const STEP: u64 = 1024 * 1024;

/// A place of a file: a byte offset, and the line, from 1, that the byte there belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    pub(crate) line: u64,
}

impl Mark {
    /// Where every file begins.
    pub(crate) const START: Self = Self { offset: 0, line: 1 };
}

/// What is known of the lines of one state of a file.
#[derive(Debug)]
pub(crate) struct Lines {
    /// In order, the first at the start.
    marks: Vec<Mark>,
    step: u64,
    /// Everything before it was counted.
    reached: Mark,
    total: Option<u64>,
    hash: Option<Hash>,
    written: Option<Written>,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            marks: vec![Mark::START],
            step: STEP,
            reached: Mark::START,
            total: None,
            hash: None,
            written: None,
        }
    }
}

impl Lines {
    /// The nearest known place before the start of a line.
    pub(crate) fn nearest(&self, line: u64) -> Mark {
        // A mark stands inside its line, so that line itself is not behind it.
        if self.reached.line < line {
            return self.reached;
        }
        let before = self.marks.partition_point(|mark| mark.line < line);
        before.checked_sub(1).map_or(Mark::START, |last| self.marks[last])
    }

    /// Up to where everything was counted.
    pub(crate) const fn reached(&self) -> Mark {
        self.reached
    }

    /// Takes note that a count from a known place came to here.
    pub(crate) fn reach(&mut self, mark: Mark) {
        if mark.offset <= self.reached.offset {
            return;
        }
        self.reached = mark;
        let last = self.marks.last().map_or(0, |mark| mark.offset);
        if mark.offset - last < self.step {
            return;
        }
        if self.marks.len() >= MARKS {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step *= 2;
        }
        self.marks.push(mark);
    }

    /// Takes note of how many lines the whole file has, and of its hash where there is one.
    pub(crate) fn end(&mut self, total: u64, hash: Option<Hash>) {
        self.total = Some(total);
        self.hash = hash.or(self.hash);
    }

    /// Forgets where lines begin: they end otherwise than was told.
    pub(crate) fn forget_lines(&mut self) {
        *self = Self { written: self.written, ..Self::default() };
    }

    /// How the file is written, once all of it was looked at.
    pub(crate) const fn written(&self) -> Option<Written> {
        self.written
    }

    /// Takes note of how the file is written.
    pub(crate) const fn set_encoding(&mut self, written: Written) {
        self.written = Some(written);
    }

    /// How many lines the file has, once they were counted.
    pub(crate) const fn total(&self) -> Option<u64> {
        self.total
    }

    /// The hash of the file, once it was worked out.
    pub(crate) const fn hash(&self) -> Option<Hash> {
        self.hash
    }
}

/// The lines of one state of a file, shared by the calls that read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineIndex(Arc<Mutex<Lines>>);

impl LineIndex {
    /// What is known; never held while anything is read.
    pub(crate) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CachedIndex {
    host: Box<str>,
    real: HostPath,
    stamp: Stamp,
    index: LineIndex,
}

/// The indexes of a session, the newest last.
#[derive(Default)]
struct Indexes(Mutex<Vec<CachedIndex>>);

impl Indexes {
    fn of(&self, host: &str, at: &Located) -> LineIndex {
        // Files of systems like /proc claim no size and no change.
        let Some(stamp) = at.stamp.filter(|stamp| stamp.size > STEP) else {
            return LineIndex::default();
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|kept| *kept.host == *host && kept.real == at.real);
        let known = found.map(|found| all.remove(found)).filter(|kept| kept.stamp == stamp);
        let index = known.map(|kept| kept.index).unwrap_or_default();
        if all.len() >= FILES {
            all.remove(0);
        }
        let kept =
            CachedIndex { host: host.into(), real: at.real.clone(), stamp, index: index.clone() };
        all.push(kept);
        index
    }
}

/// What the session knows of a file's lines; for another state of the file, nothing yet.
pub(crate) fn of(cx: &Cx, host: &str, at: &Located) -> LineIndex {
    cx.session().map.get::<Indexes>().of(host, at)
}

#[cfg(test)]
mod tests {
    use haft_host::FileKind;
    use haft_types::Style;

    use super::*;

    fn at(path: &str, size: u64, modified: i128) -> Located {
        Located {
            real: HostPath::new(path.as_bytes(), Style::Posix).unwrap(),
            kind: FileKind::FILE,
            stamp: Some(Stamp { size, modified, ..Stamp::default() }),
            names: 1,
            handle: Arc::new(()),
        }
    }

    #[test]
    fn marks_stay_bounded_and_the_nearest_is_before_the_line() {
        let mut lines = Lines::default();
        for piece in 1..=20_000 {
            lines.reach(Mark { offset: piece * STEP, line: 1 + piece * 10 });
            // What is told again, or out of order, changes nothing.
            lines.reach(Mark { offset: piece * STEP / 2, line: 7 });
        }
        assert!(lines.marks.len() <= MARKS, "{}", lines.marks.len());
        assert!(lines.marks.is_sorted_by_key(|mark| mark.offset));
        for line in [1, 2, 11, 12, 5_000, 199_999, 200_001, 200_002, u64::MAX] {
            let near = lines.nearest(line);
            assert!(near.line < line || near == Mark::START, "{line} {near:?}");
            let far = line.min(200_001).saturating_sub(near.line);
            assert!(far <= 10 * lines.step / STEP, "{line} {near:?}");
            assert_eq!(near.line, 1 + near.offset / STEP * 10);
        }
    }

    #[test]
    fn another_state_begins_anew_and_files_stay_bounded() {
        let indexes = Indexes::default();
        let size = 2 * STEP;
        let known = |at: &Located| indexes.of("local", at).lines().total();
        indexes.of("local", &at("/a", size, 1)).lines().end(5, None);
        assert_eq!(known(&at("/a", size, 1)), Some(5));
        assert_eq!(indexes.of("memory", &at("/a", size, 1)).lines().total(), None);
        assert_eq!(known(&at("/a", size, 2)), None, "changed");
        assert_eq!(known(&at("/a", size, 1)), None, "the old state is gone");
        indexes.of("local", &at("/a", 9, 1)).lines().end(5, None);
        assert_eq!(known(&at("/a", 9, 1)), None, "small files are counted anew");
        for number in 0..3 * FILES {
            indexes.of("local", &at(&format!("/{number}"), size, 1)).lines().end(1, None);
        }
        assert_eq!(indexes.0.lock().unwrap().len(), FILES);
        assert_eq!(known(&at(&format!("/{}", 3 * FILES - 1), size, 1)), Some(1));
        assert_eq!(known(&at("/0", size, 1)), None);
    }
}
