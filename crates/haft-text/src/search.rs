//! Counting occurrences, overlapping ones included, in linear time.
//!
//! Invariant: the work is bounded by the lengths of both inputs (Knuth, Morris and Pratt 1977).
//! Nothing here knows text: bytes and line keys are searched alike.

use memchr::memmem;

/// Needles above this many bytes are counted by repeated search, so that no table is built for them.
const TABLE_LIMIT: usize = 1 << 20;
/// Occurrences of such a needle that are counted at most.
const LARGE_LIMIT: usize = 64;

/// Places of something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Where the first ones are.
    pub(crate) starts: Vec<usize>,
    /// How many there are.
    pub(crate) count: usize,
}

impl Places {
    pub(crate) fn push(&mut self, start: usize, keep: usize) {
        self.count += 1;
        if self.starts.len() < keep {
            self.starts.push(start);
        }
    }

    /// Whether all counted places are also listed.
    pub(crate) fn complete(&self) -> bool {
        self.count == self.starts.len()
    }
}

/// Finds a text, overlapping occurrences included; keeps at most `keep` of the places.
pub(crate) fn text(hay: &[u8], needle: &[u8], keep: usize) -> Places {
    let mut places = Places::default();
    if needle.is_empty() || needle.len() > hay.len() {
        return places;
    }
    let finder = memmem::Finder::new(needle);
    let Some(first) = finder.find(hay) else { return places };
    places.push(first, keep);
    let mut from = first + 1;
    if needle.len() > TABLE_LIMIT {
        while places.count < LARGE_LIMIT
            && let Some(at) = finder.find(&hay[from..])
        {
            places.push(from + at, keep);
            from += at + 1;
        }
        return places;
    }
    if let Some(at) = finder.find(&hay[from..]) {
        from += at;
        sequence(hay[from..].iter().copied(), needle, |start| places.push(from + start, keep));
    }
    places
}

/// Reports each place, from 0, where a sequence occurs, overlapping ones included.
pub(crate) fn sequence<T: PartialEq>(
    hay: impl Iterator<Item = T>,
    needle: &[T],
    mut found: impl FnMut(usize),
) {
    let Some(last) = needle.len().checked_sub(1) else { return };
    let mut table = vec![0_u32; needle.len()];
    let mut length = 0_usize;
    for at in 1..needle.len() {
        while length > 0 && needle[at] != needle[length] {
            length = table[length - 1] as usize;
        }
        length += usize::from(needle[at] == needle[length]);
        table[at] = u32::try_from(length).unwrap_or(u32::MAX);
    }
    length = 0;
    for (at, item) in hay.enumerate() {
        while length > 0 && item != needle[length] {
            length = table[length - 1] as usize;
        }
        length += usize::from(item == needle[length]);
        if length == needle.len() {
            found(at - last);
            length = table[last] as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_counted() {
        assert_eq!(text(b"aaa", b"aa", 9).starts, [0, 1]);
        assert_eq!(text(b"abababa", b"aba", 2), Places { starts: vec![0, 2], count: 3 });
        assert_eq!(text(b"abc", b"", 9).count, 0);
        assert_eq!(text(b"abc", b"x", 9).count, 0);
    }

    #[test]
    fn a_periodic_text_is_counted_in_linear_time() {
        let hay = vec![b'a'; 1_000_000];
        let needle = vec![b'a'; 500_000];
        assert_eq!(text(&hay, &needle, 1).count, 500_001);
    }
}
