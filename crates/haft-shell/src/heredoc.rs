//! Here-documents.
//!
//! The grammar looks for their end in other ways than bash where the delimiter is unusual. What
//! bash takes for the body is worked out here again, and both must agree.

/// How a here-document ends, and whether its body is taken as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here<'a> {
    /// The line that ends it.
    pub name: &'a str,
    /// Nothing in it is expanded.
    pub is_literal: bool,
    /// Tabs before its lines are taken away.
    pub tabs: bool,
}

impl Here<'_> {
    /// A body that is taken as it is.
    pub(crate) fn literal(&self, body: &str) -> String {
        let line = |line| if self.tabs { str::trim_start_matches(line, '\t') } else { line };
        body.split_inclusive('\n').map(line).collect()
    }
}

/// A delimiter that is read alike by everyone: letters, digits and `_`, perhaps all in quotes, or
/// behind a backslash; with it, whether the body is taken as it is.
pub(crate) fn delimiter(text: &str) -> Option<(&str, bool)> {
    let inner = ['\'', '"']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote).and_then(|text| text.strip_suffix(*quote)))
        .or_else(|| text.strip_prefix('\\'));
    let name = inner.unwrap_or(text);
    let is_plain = |c: u8| c == b'_' || c.is_ascii_alphanumeric();
    (!name.is_empty() && name.bytes().all(is_plain)).then_some((name, inner.is_some()))
}

/// Where the body ends that begins at `from`: the start of the line of its delimiter, and the end
/// of that line; none where there is no such line, or only one that is made of several.
pub(crate) fn end(text: &str, from: usize, here: &Here<'_>) -> Option<(usize, usize)> {
    let mut at = from;
    let mut joined: Option<String> = None;
    for line in text.get(from..)?.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = if here.tabs && joined.is_none() { bare.trim_start_matches('\t') } else { bare };
        if joined.is_none() && bare == here.name {
            return Some((at, at + line.len()));
        }
        let goes_on = !here.is_literal && is_escaped(bare);
        let all = joined.take().unwrap_or_default()
            + if goes_on { &bare[..bare.len() - 1] } else { bare };
        if all == here.name {
            return None;
        }
        joined = goes_on.then_some(all);
        at += line.len();
    }
    None
}

/// Whether the line end after this text is taken away by a backslash.
fn is_escaped(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters() {
        assert_eq!(delimiter("EOF"), Some(("EOF", false)));
        assert_eq!(delimiter("'EOF'"), Some(("EOF", true)));
        assert_eq!(delimiter("\"E_1\""), Some(("E_1", true)));
        assert_eq!(delimiter("\\E"), Some(("E", true)));
        for text in ["", "''", "E\\OF", "E'O'F", "A;", "$x", "'a b'"] {
            assert_eq!(delimiter(text), None, "{text}");
        }
    }

    #[test]
    fn tabs_before_lines_are_no_part_of_a_body() {
        let here = Here { name: "E", is_literal: true, tabs: true };
        assert_eq!(here.literal("\t\ta\tb\n \tc\n\t\n"), "a\tb\n \tc\n\n");
        assert_eq!(Here { tabs: false, ..here }.literal("\ta\n"), "\ta\n");
    }

    #[test]
    fn the_first_line_that_is_the_delimiter_ends_it() {
        let here = Here { name: "E", is_literal: false, tabs: false };
        assert_eq!(end("a\n E\nE \nE\nb", 0, &here), Some((8, 10)));
        assert_eq!(end("\tE\nE", 0, &here), Some((3, 4)));
        assert_eq!(end("\tE\nE", 0, &Here { tabs: true, ..here }), Some((0, 3)));
        assert_eq!(end("a\\\nE\nb\nE\n", 0, &here), Some((7, 9)));
        assert_eq!(end("a\\\\\nE\n", 0, &here), Some((4, 6)));
        assert_eq!(end("\\\nE\nE\n", 0, &here), None);
        assert_eq!(end("a\\\nE\n", 0, &Here { is_literal: true, ..here }), Some((3, 5)));
        assert_eq!(end("a\n", 0, &here), None);
    }
}
