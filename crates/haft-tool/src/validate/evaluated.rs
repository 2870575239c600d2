//! Which properties or items of one value some schema has looked at, for `unevaluatedProperties`
//! and `unevaluatedItems` (JSON Schema Core 2020-12, section 11).
//!
//! **Invariant:** memory is one bit a property or item, and none before the first is marked.

/// What was looked at of one object or array, by position.
#[derive(Default)]
pub(super) struct Evaluated {
    all: bool,
    bits: Vec<u64>,
}

impl Evaluated {
    /// Marks one.
    pub(super) fn mark(&mut self, position: usize) {
        let word = position / 64;
        if self.all {
            return;
        }
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (position % 64);
    }

    /// Marks whatever there is.
    pub(super) fn mark_all(&mut self) {
        self.all = true;
        self.bits = Vec::new();
    }

    /// Reports whether one is marked.
    pub(super) fn has(&self, position: usize) -> bool {
        let bit = |word: &u64| *word & (1 << (position % 64)) != 0;
        self.all || self.bits.get(position / 64).is_some_and(bit)
    }

    /// Marks what is marked in another.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.all {
            self.mark_all();
        }
        if self.all {
            return;
        }
        if self.bits.len() < other.bits.len() {
            self.bits.resize(other.bits.len(), 0);
        }
        for (ours, theirs) in self.bits.iter_mut().zip(&other.bits) {
            *ours |= theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_and_merged() {
        let (mut one, mut other) = (Evaluated::default(), Evaluated::default());
        one.mark(0);
        other.mark(200);
        one.merge(&other);
        assert!(one.has(0) && one.has(200) && !one.has(64) && !one.has(10_000));
        other.mark_all();
        one.merge(&other);
        assert!(one.has(64) && one.has(10_000));
    }
}
