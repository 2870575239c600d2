//! How much work is put into the reading of one text.
//!
//! **Invariant:** what is counted is work and never time, so a text is read, or given up, alike on every
//! machine and under every load. What was given up once stays so.

/// The most that is put into one text: a plain one of the greatest length takes about half.
const MOST: u32 = 50_000;

/// The work that is left.
pub(crate) struct Work {
    left: u32,
}

impl Work {
    pub(crate) const fn new() -> Self {
        Self { left: MOST }
    }

    /// Whether to go on with it, after one more piece.
    pub(crate) const fn go_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_stays_so() {
        let mut work = Work::new();
        assert_eq!((1..=MOST).take_while(|_| work.go_on()).count(), 49_999);
        assert!(!work.go_on());
    }
}
