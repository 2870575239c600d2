//! The newest part of a text that grows.

/// Most bytes that are kept.
const MOST: usize = 64 << 10;

/// The newest 64 KiB of a text, with the size of what stood before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    text: String,
    left_out: u64,
}

impl Tail {
    /// Adds text. It costs as much as that text, on average.
    pub(super) fn push(&mut self, more: &str) {
        self.text.push_str(more);
        // Seldom, so that a byte is moved once and not with every piece.
        if self.text.len() > 2 * MOST {
            let cut = self.text.ceil_char_boundary(self.text.len() - MOST);
            self.text.drain(..cut);
            self.left_out += cut as u64;
        }
    }

    /// The text that is kept: 64 KiB at least where there were as many, 128 KiB at most.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Bytes before it that are not kept.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Bytes of it all.
    pub const fn len(&self) -> u64 {
        self.left_out + self.text.len() as u64
    }

    /// Whether nothing came.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is kept behind so many bytes of it all.
    pub fn since(&self, seen: u64) -> &str {
        let from = usize::try_from(seen.saturating_sub(self.left_out)).unwrap_or(usize::MAX);
        let from = self.text.ceil_char_boundary(from.min(self.text.len()));
        &self.text[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept_and_the_rest_is_counted() {
        let (mut tail, mut all) = (Tail::default(), String::new());
        for number in 0..60_000_u32 {
            let more = format!("\u{e4}{number}\n");
            tail.push(&more);
            all.push_str(&more);
            assert_eq!(tail.since(tail.len() - more.len() as u64), more);
            assert!(tail.text().len() <= 2 * MOST);
        }
        assert!(all.ends_with(tail.text()) && tail.text().len() >= MOST - 3);
        assert_eq!(tail.left_out() + tail.text().len() as u64, all.len() as u64);
        assert_eq!((tail.since(0), tail.since(u64::MAX)), (tail.text(), ""));
    }
}
