//! Cutting text to a number of characters, with a mark that says what is gone.
//!
//! Invariant: no cut falls inside a code point, nor inside a grapheme cluster of ordinary length;
//! what is kept is never longer than asked, the mark not counted. What the limits are is the
//! caller's business.

use std::borrow::Cow;

use unicode_segmentation::GraphemeCursor;

/// Bytes that a cut goes back at most to keep a grapheme cluster whole.
const CLUSTER_LIMIT: usize = 128;

/// A cut text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// What is left, the mark included.
    pub text: Cow<'a, str>,
    /// How many characters were taken out.
    pub omitted: usize,
}

impl Cut<'_> {
    /// Tells whether anything was taken out.
    pub const fn is_cut(&self) -> bool {
        self.omitted > 0
    }
}

/// Gives the greatest character boundary that is not after `offset`.
pub fn floor(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset)
}

/// Finds where a head of at most `limit` characters stops, at a grapheme boundary where one is near.
fn head_end(text: &str, limit: usize) -> usize {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.len() };
    let from = text.floor_char_boundary(end.saturating_sub(CLUSTER_LIMIT));
    let window = &text[from..text.ceil_char_boundary(end.saturating_add(CLUSTER_LIMIT))];
    from + boundary_before(window, end - from, from == 0)
}

/// Finds where a tail of at most `limit` characters starts, at a grapheme boundary where one is near.
fn tail_start(text: &str, limit: usize) -> usize {
    let start = match limit.checked_sub(1) {
        None => return text.len(),
        Some(skip) => match text.char_indices().rev().nth(skip) {
            None => return 0,
            Some((start, _)) => start,
        },
    };
    let from = text.floor_char_boundary(start.saturating_sub(CLUSTER_LIMIT));
    let to = text.ceil_char_boundary(start.saturating_add(CLUSTER_LIMIT));
    from + boundary_after(&text[from..to], start - from, to == text.len())
}

fn boundary_before(text: &str, offset: usize, whole: bool) -> usize {
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    if cursor.is_boundary(text, 0) == Ok(true) {
        return offset;
    }
    match cursor.prev_boundary(text, 0) {
        Ok(Some(at)) if at > 0 || whole => at,
        _ => offset,
    }
}

fn boundary_after(text: &str, offset: usize, whole: bool) -> usize {
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    if cursor.is_boundary(text, 0) == Ok(true) {
        return offset;
    }
    match cursor.next_boundary(text, 0) {
        Ok(Some(at)) if at < text.len() || whole => at,
        _ => offset,
    }
}

/// Keeps the first `limit` characters, then a mark.
pub fn head(text: &str, limit: usize) -> Cut<'_> {
    let end = head_end(text, limit);
    if end == text.len() {
        return Cut { text: Cow::Borrowed(text), omitted: 0 };
    }
    let omitted = text[end..].chars().count();
    Cut { text: Cow::Owned(format!("{}{}", &text[..end], mark(omitted))), omitted }
}

/// Keeps the last `limit` characters, after a mark.
pub fn tail(text: &str, limit: usize) -> Cut<'_> {
    let start = tail_start(text, limit);
    if start == 0 {
        return Cut { text: Cow::Borrowed(text), omitted: 0 };
    }
    let omitted = text[..start].chars().count();
    Cut { text: Cow::Owned(format!("{}{}", mark(omitted), &text[start..])), omitted }
}

/// Keeps the first and the last half of `limit` characters, with a mark on a line of its own
/// between them.
pub fn middle(text: &str, limit: usize) -> Cut<'_> {
    if text.len() <= limit || text.char_indices().nth(limit).is_none() {
        return Cut { text: Cow::Borrowed(text), omitted: 0 };
    }
    let end = head_end(text, limit.div_ceil(2));
    let start = end + tail_start(&text[end..], limit / 2);
    let omitted = text[end..start].chars().count();
    if omitted == 0 {
        return Cut { text: Cow::Borrowed(text), omitted: 0 };
    }
    let (head, tail) = (&text[..end], &text[start..]);
    let before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let after = if tail.is_empty() || tail.starts_with('\n') { "" } else { "\n" };
    let text = Cow::Owned(format!("{head}{before}{}{after}{tail}", mark(omitted)));
    Cut { text, omitted }
}

/// Cuts every line over `limit` characters, with a mark that gives the number taken out; line ends
/// stay as they are. The second value counts the lines that were cut.
pub fn lines(text: &str, limit: usize) -> (Cow<'_, str>, usize) {
    let long =
        |line: &str| line.len() > limit && head_end(content(line), limit) < content(line).len();
    let count = text.split_inclusive('\n').filter(|line| long(line)).count();
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let body = content(line);
        out.push_str(&head(body, limit).text);
        out.push_str(&line[body.len()..]);
    }
    (Cow::Owned(out), count)
}

fn content(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// The mark that stands where characters were taken out.
pub fn mark(omitted: usize) -> String {
    let plural = if omitted == 1 { "" } else { "s" };
    format!("[{omitted} character{plural} cut]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_not_copied() {
        for cut in [head("abc", 3), tail("abc", 3), middle("abc", 3)] {
            assert!(matches!(cut.text, Cow::Borrowed("abc")));
            assert!(!cut.is_cut());
        }
    }

    #[test]
    fn cuts_say_what_is_gone() {
        assert_eq!(head("abcdef", 2).text, "ab[4 characters cut]");
        assert_eq!(tail("abcdef", 2).text, "[4 characters cut]ef");
        assert_eq!(middle("abcdef", 4).text, "ab\n[2 characters cut]\nef");
        assert_eq!(head("abc", 0).text, "[3 characters cut]");
        assert_eq!(middle("abc", 0).text, "[3 characters cut]");
    }

    #[test]
    fn clusters_stay_whole() {
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}";
        assert_eq!(head(&format!("a{family}b"), 3).omitted, 6);
        assert!(tail(&format!("a{family}b"), 3).text.ends_with("]b"));
        assert_eq!(head("e\u{301}x", 1).omitted, 3);
    }

    #[test]
    fn long_lines_are_cut_one_by_one() {
        let (text, count) = lines("short\nlonger line\r\n日本語日本語\n", 5);
        let want = "short\nlonge[6 characters cut]\r\n日本語日本[1 character cut]\n";
        assert_eq!((&*text, count), (want, 2));
    }
}
