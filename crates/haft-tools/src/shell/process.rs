//! What bash and executable tools have in common: variables that children get, and bounded storage
//! of their output.
//!
//! **Invariant:** [`Ends`] holds a fixed number of bytes, however long a text grows, and never a
//! part of a character.

use std::fmt::Write as _;

use haft_tool::Cx;

/// The variables that a child gets on top of the host's own.
pub(crate) fn set(cx: &Cx) -> Vec<(String, String)> {
    let folder = cx.session().outs.folder().and_then(|folder| folder.to_str());
    // The kept outputs lie on this machine: a child elsewhere would find nothing there.
    let folder = folder.filter(|_| cx.host.name() == "local");
    folder.map(|folder| ("HAFT_OUT".to_owned(), folder.to_owned())).into_iter().collect()
}

/// The first and the last bytes of a text that may grow without end.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    head: String,
    tail: String,
    left_out: u64,
    /// Bytes that are kept of each end.
    each: usize,
}

/// Bytes that are kept of each end where nothing else is said.
const END: usize = 50_000;

impl Default for Ends {
    fn default() -> Self {
        Self::of(END)
    }
}

impl Ends {
    /// Keeps as many bytes of each end.
    pub(crate) const fn of(each: usize) -> Self {
        Self { head: String::new(), tail: String::new(), left_out: 0, each }
    }

    /// Adds to the end.
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        if self.tail.is_empty() && self.left_out == 0 {
            let room = rest.floor_char_boundary(self.each.saturating_sub(self.head.len()));
            self.head.push_str(&rest[..room]);
            rest = &rest[room..];
        }
        if rest.len() > self.each {
            let from = rest.ceil_char_boundary(rest.len() - self.each);
            self.left_out += (self.tail.len() + from) as u64;
            self.tail.clear();
            rest = &rest[from..];
        }
        self.tail.push_str(rest);
        // Cutting only at twice the size makes the moving of bytes linear in all that was pushed.
        if self.tail.len() > 2 * self.each {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        if self.tail.len() > self.each {
            let from = self.tail.ceil_char_boundary(self.tail.len() - self.each);
            self.left_out += from as u64;
            self.tail.drain(..from);
        }
    }

    /// Says that bytes follow that nobody will see.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.left_out += self.tail.len() as u64 + bytes;
            self.tail.clear();
        }
    }

    /// Both ends, and how many bytes there were in all.
    pub(crate) fn into_parts(mut self) -> (String, String, u64) {
        self.shorten();
        let bytes = (self.head.len() + self.tail.len()) as u64 + self.left_out;
        (self.head, self.tail, bytes)
    }

    /// Both ends, with a mark between them where something is left out.
    pub(crate) fn into_text(self) -> String {
        self.into_text_of(None)
    }

    /// The same of a text that was made of as many bytes; those are what is counted.
    pub(crate) fn into_text_of(mut self, bytes: Option<u64>) -> String {
        self.shorten();
        if self.left_out > 0 {
            let all = (self.head.len() + self.tail.len()) as u64 + self.left_out;
            let left = match bytes.filter(|bytes| *bytes != all) {
                None => format!("{} bytes", self.left_out),
                Some(bytes) => format!("the middle of {bytes} bytes"),
            };
            let _ = write!(self.head, "\n[... {left} left out ...]\n");
        }
        self.head.push_str(&self.tail);
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_whole_while_short_and_fixed_when_long() {
        let mut ends = Ends::default();
        assert!(ends.head.is_empty());
        ends.push("日本");
        assert_eq!(ends.clone().into_text(), "日本");
        for _ in 0..100_000 {
            ends.push("日本語 and more\n");
        }
        assert!(ends.head.len() + ends.tail.len() <= 3 * END);
        let text = ends.into_text();
        assert!(text.len() < 2 * END + 100, "{}", text.len());
        assert!(text.starts_with("日本日本語") && text.ends_with("and more\n"));
        let mark = text.lines().find(|line| line.starts_with("[... ")).unwrap();
        let left: usize = mark.split(' ').nth(1).unwrap().parse().unwrap();
        let shown = text.len() - mark.len() - 2;
        assert_eq!(left + shown, "日本".len() + 100_000 * "日本語 and more\n".len());
    }

    #[test]
    fn one_huge_piece_is_as_many_small_ones() {
        let text = "0123456789".repeat(30_000);
        let (mut one, mut many) = (Ends::default(), Ends::default());
        one.push(&text);
        text.as_bytes().chunks(7).for_each(|piece| many.push(std::str::from_utf8(piece).unwrap()));
        assert_eq!(one.into_text(), many.into_text());
    }
}
