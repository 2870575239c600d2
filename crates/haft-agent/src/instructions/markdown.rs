//! Imports in Markdown: `@path`, outside of code and comments.
//!
//! **Invariant:** it takes time in proportion to the text. What stands in fenced or indented code,
//! in a code span or in a comment imports nothing.

/// Most imports that are looked at of one file.
const MOST: usize = 200;

/// An import as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The path.
    pub path: String,
    /// The path without a sign at its end that may belong to the sentence.
    pub bare: Option<String>,
}

/// A text without its comments, and what it imports.
pub(super) fn read(text: &str) -> (String, Vec<Import>) {
    let mut scan = Scan::default();
    let mut kept = String::with_capacity(text.len());
    let (mut rest, mut ends) = (text, true);
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = &rest[..end];
        if scan.is_code(line) {
            scan.end_paragraph();
            kept.push_str(line);
            rest = &rest[end..];
            continue;
        }
        // A comment that never ends is none.
        let begin = comment(line, scan.span).filter(|_| ends);
        let end_of = |at: &usize| rest[*at..].find("-->").map(|length| at + length + 3);
        let behind = begin.as_ref().and_then(end_of);
        ends &= begin.is_none() || behind.is_some();
        if let (Some(at), Some(behind)) = (begin, behind) {
            scan.words(&rest[..at]);
            kept.push_str(&rest[..at]);
            rest = &rest[behind..];
            // A comment that had lines of its own leaves none.
            if kept.is_empty() || kept.ends_with('\n') {
                rest =
                    rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
            }
            continue;
        }
        scan.words(line);
        kept.push_str(line);
        rest = &rest[end..];
    }
    scan.end_paragraph();
    (kept, scan.found)
}

/// Where a comment begins in a line, outside of code spans; `open` is a span that goes on.
fn comment(line: &str, open: usize) -> Option<usize> {
    spans(line, open, |at, span| span == 0 && line.as_bytes()[at..].starts_with(b"<!--")).err()
}

/// How many backticks opened a span that is open at the end of a text, where so many did at its
/// begin; or where `ends` says so, with the place and the span that is open there.
fn spans(text: &str, open: usize, ends: impl Fn(usize, usize) -> bool) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let (mut at, mut span) = (0, open);
    while at < bytes.len() {
        if bytes[at] == b'`' {
            let run = run(&bytes[at..], b'`');
            span = if span == 0 {
                run
            } else if span == run {
                0
            } else {
                span
            };
            at += run;
        } else if ends(at, span) {
            return Err(at);
        } else {
            at += 1;
        }
    }
    Ok(span)
}

fn run(bytes: &[u8], sign: u8) -> usize {
    bytes.iter().take_while(|byte| **byte == sign).count()
}

#[derive(Default)]
struct Scan {
    /// The fence that is open: its sign and how many of them.
    fence: Option<(u8, usize)>,
    /// Whether the line before was blank or code, so that an indented one is code.
    after_blank: Option<bool>,
    /// Whether lines belong to a list, where an indented one is no code.
    in_list: bool,
    /// The paragraph so far.
    paragraph: String,
    /// How many backticks opened the span that is open in it.
    span: usize,
    found: Vec<Import>,
}

impl Scan {
    /// Whether a line is code, or a fence of it.
    fn is_code(&mut self, line: &str) -> bool {
        let indent = indent(line);
        let text = line.trim();
        if let Some((sign, length)) = self.fence {
            let closes = run(text.as_bytes(), sign) >= length && text.bytes().all(|b| b == sign);
            if closes && indent < 4 {
                self.fence = None;
            }
            self.after_blank = Some(true);
            return true;
        }
        if text.is_empty() {
            self.after_blank = Some(true);
            self.end_paragraph();
            return false;
        }
        let after_blank = self.after_blank.unwrap_or(true);
        if indent >= 4 && after_blank && !self.in_list {
            return true;
        }
        if indent == 0 {
            self.in_list = false;
        }
        self.in_list |= is_item(text);
        self.after_blank = Some(false);
        let fence = item(text);
        for sign in [b'`', b'~'] {
            let length = run(fence.as_bytes(), sign);
            // Backticks behind backticks are a span.
            if length >= 3 && (sign == b'~' || !fence[length..].contains('`')) {
                self.fence = Some((sign, length));
                return true;
            }
        }
        false
    }

    /// Takes words of a paragraph.
    fn words(&mut self, text: &str) {
        self.paragraph.push_str(text);
        self.span = spans(text, self.span, |_, _| false).unwrap_or_default();
    }

    /// Looks for imports in the paragraph that ends.
    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        self.span = 0;
        for piece in outside_spans(&paragraph) {
            imports(piece, &mut self.found);
        }
    }
}

/// The pieces of a paragraph that are no code spans. Backticks that nothing closes are text.
fn outside_spans(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut runs = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = run(&bytes[at..], b'`');
        if length > 0 {
            runs.push((at, length));
        }
        at += length.max(1);
    }
    // For each length the last run of it: where a span can still close.
    let last: std::collections::HashMap<usize, usize> =
        runs.iter().map(|(at, length)| (*length, *at)).collect();
    let (mut pieces, mut from, mut index) = (Vec::new(), 0, 0);
    while let Some((at, length)) = runs.get(index).copied() {
        index += 1;
        if last.get(&length).is_none_or(|last| *last <= at) {
            continue;
        }
        let Some(more) = runs[index..].iter().position(|(_, other)| *other == length) else {
            continue;
        };
        pieces.push(&text[from..at]);
        let close = runs[index + more];
        from = close.0 + close.1;
        index += more + 1;
    }
    pieces.push(&text[from..]);
    pieces
}

/// Signs at the end of a path that may belong to the sentence.
const ENDS: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '*', '_', '"', '\''];

fn imports(text: &str, found: &mut Vec<Import>) {
    for word in words(text) {
        let start = word.trim_start_matches(['(', '[', '*', '_', '"', '\'']);
        let Some(path) = start.strip_prefix('@') else { continue };
        let path = path.split('#').next().unwrap_or_default().replace("\\ ", " ");
        let begins = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~');
        if !path.starts_with(begins) || found.len() >= MOST {
            continue;
        }
        let bare = path.trim_end_matches(ENDS);
        let bare = (bare != path && !bare.is_empty()).then(|| bare.to_owned());
        let import = Import { path, bare };
        if !found.contains(&import) {
            found.push(import);
        }
    }
}

/// The words of a text; a blank behind a backslash parts none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |sign: char| {
        let parts = sign.is_whitespace() && !(escaped && sign == ' ');
        escaped = sign == '\\';
        parts
    })
}

/// The columns before the first sign of a line.
fn indent(line: &str) -> usize {
    let blanks = line.chars().take_while(|sign| matches!(sign, ' ' | '\t'));
    blanks.map(|sign| if sign == '\t' { 4 } else { 1 }).sum()
}

/// What stands behind the sign of a list's item, or all of it.
fn item(text: &str) -> &str {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let behind = match text[digits..].chars().next() {
        Some('-' | '*' | '+') if digits == 0 => &text[1..],
        Some('.' | ')') if (1..10).contains(&digits) => &text[digits + 1..],
        _ => return text,
    };
    if behind.starts_with([' ', '\t']) { behind.trim_start() } else { text }
}

fn is_item(text: &str) -> bool {
    item(text).len() < text.len() || matches!(text, "-" | "*" | "+")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        read(text).1.into_iter().map(|import| import.path).collect()
    }

    #[test]
    fn imports_are_found_in_lines_and_in_sentences() {
        let text = "@a.md\n  @b/c.md\n- See @./d.md and @~/e.md, or (@/f.md).\n> @g.md#part\n\
                    mail me@x.org @ @@h @#i **@j.md** @with\\ blank.md\n@a.md";
        let wanted = ["a.md", "b/c.md", "./d.md", "~/e.md,", "/f.md).", "g.md", "j.md**"];
        assert_eq!(found(text), [&wanted[..], &["with blank.md"]].concat());
        let bare: Vec<_> = read(text).1.into_iter().filter_map(|import| import.bare).collect();
        assert_eq!(bare, ["~/e.md", "/f.md", "j.md"]);
    }

    #[test]
    fn code_and_comments_import_nothing() {
        for text in [
            "```\n@a.md\n```",
            "~~~sh\n@a.md\n```\n@b.md\n~~~",
            "````\n```\n@a.md\n```\n@b.md\n````",
            "```\n@a.md",
            "- x\n  ```\n  @a.md\n  ```",
            "- ```\n  @a.md\n  ```",
            "see `@a.md` and ``x ` @b.md``",
            "a span `over\n@a.md lines`",
            "text\n\n    @a.md\n\n    @b.md\n",
            "\t@a.md",
            "<!-- @a.md -->",
            "x <!-- one\n@a.md\n\n@b.md --> y",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        for text in [
            "a ` b\n\n@a.md",
            "`x` @a.md `y`",
            "`` ` `` @a.md",
            "text\n    @a.md",
            "- item\n\n    @a.md",
            "1. item\n\n    @a.md",
            "```x``` @a.md",
            "```\n```\n@a.md",
            "<!-- no end @a.md",
            "`<!--` @a.md -->",
            "<!-- x -->@a.md",
        ] {
            assert_eq!(found(text), ["a.md"], "{text}");
        }
    }

    #[test]
    fn comments_go_and_all_else_stays() {
        for (text, kept) in [
            ("a\n<!-- x -->\nb\n", "a\nb\n"),
            ("a <!-- x\ny --> b", "a  b"),
            ("```\n<!-- x -->\n```\n", "```\n<!-- x -->\n```\n"),
            ("`<!-- x -->`", "`<!-- x -->`"),
            ("<!-- x", "<!-- x"),
            ("a\r\n<!-- x -->\r\nb", "a\r\nb"),
        ] {
            assert_eq!(read(text).0, kept, "{text}");
        }
    }

    #[test]
    fn however_much_there_is_it_takes_no_long_time() {
        let many = |piece: &str| piece.repeat(32_768 / piece.len());
        for piece in ["`", "<!--", "`<!--", "@a ", "\n", "` `` ", "- ", "@a`\n"] {
            let (kept, found) = read(&many(piece));
            assert!(kept.len() <= 32_768 && found.len() <= MOST, "{piece}");
        }
    }
}
