//! Counting occurrences, overlapping ones included, in linear time.
//!
//! Invariant: the work is bounded by the lengths of both inputs, every count is exact, and bytes are
//! searched without a table. Nothing here knows text.

use memchr::memmem;

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
    each(hay, needle, |start| places.push(start, keep));
    places
}

/// Reports each place of a text in order, overlapping occurrences included.
pub(crate) fn each(hay: &[u8], needle: &[u8], mut found: impl FnMut(usize)) {
    if needle.is_empty() || needle.len() > hay.len() {
        return;
    }
    let finder = memmem::Finder::new(needle);
    // Two places at most half a needle apart are apart by its smallest period (Fine and Wilf 1965),
    // and so are all others that overlap as much: the next one is there or far away.
    let mut period = None;
    let mut next = finder.find(hay);
    while let Some(start) = next {
        found(start);
        let stop = start + needle.len();
        let again = period.filter(|period| {
            hay.get(stop..stop + period) == Some(&needle[needle.len() - period..])
        });
        next = match again {
            Some(period) => Some(start + period),
            None => finder.find(&hay[start + 1..]).map(|at| start + 1 + at),
        };
        if period.is_none() {
            period = next.map(|next| next - start).filter(|apart| *apart <= needle.len() / 2);
        }
    }
}

/// Reports each place, from 0, where a sequence occurs, overlapping ones included (Knuth, Morris and
/// Pratt 1977).
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
        let hay = b"abc".repeat(2_000_000);
        assert_eq!(text(&hay, &b"abc".repeat(1_000_000), 1).count, 1_000_001);
        let half = [b"a".repeat(1_000_000), b"b".to_vec()].concat();
        let hay = half.repeat(6);
        assert_eq!(
            text(&hay, &half.repeat(2), 9).starts,
            [0, 1, 2, 3, 4].map(|at| at * half.len())
        );
    }

    #[test]
    fn counts_are_those_of_looking_everywhere() {
        let mut numbers = 1_u32;
        for round in 0..20_000 {
            let mut letters = |most: u32| -> Vec<u8> {
                numbers = numbers.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let length = (numbers >> 8) % most;
                let letter = |at| {
                    if numbers.rotate_left(at * 5 + round % 7) & 64 == 0 { b'a' } else { b'b' }
                };
                (0..length).map(letter).collect()
            };
            let needle = letters(7);
            let hay = [letters(30), needle.repeat(round as usize % 4), letters(20)].concat();
            let want = match needle.len() {
                0 => 0,
                length => hay.windows(length).filter(|part| *part == needle).count(),
            };
            assert_eq!(text(&hay, &needle, 99).count, want, "{hay:?} {needle:?}");
        }
    }
}
