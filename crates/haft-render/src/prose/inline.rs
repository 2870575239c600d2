//! Parses the inline forms of a line of Markdown: code, bold, italic, links, escapes.

use crate::line::Style;

/// A piece of a line that looks alike.
pub(super) type Span = (Style, String);

/// The text of a line without its marks.
pub(super) fn plain(text: &str) -> String {
    spans(text, Style::Plain).into_iter().map(|(_, text)| text).collect()
}

/// The pieces of a line; what has no mark has this style.
pub(super) fn spans(text: &str, style: Style) -> Vec<Span> {
    let mut all = Vec::new();
    write(text, style, &mut all);
    all
}

fn push(all: &mut Vec<Span>, style: Style, text: &str) {
    match all.last_mut() {
        Some((last, before)) if *last == style => before.push_str(text),
        _ if text.is_empty() => {}
        _ => all.push((style, text.to_owned())),
    }
}

fn write(text: &str, style: Style, all: &mut Vec<Span>) {
    let mut at = 0;
    let mut begun = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let found = match c {
            '\\' => escape(rest),
            '`' => code(rest),
            '*' | '_' => emphasis(&text[..at], rest, c),
            '[' | '!' => link(rest),
            _ => None,
        };
        let Some(found) = found else {
            at += c.len_utf8();
            // A run that means nothing here means nothing at its second sign.
            if matches!(c, '`' | '*' | '_') {
                at += rest.len() - rest.trim_start_matches(c).len() - c.len_utf8();
            }
            continue;
        };
        push(all, style, &text[begun..at]);
        at += found.length;
        begun = at;
        match found.what {
            Mark::Text(inner) => push(all, style, inner),
            Mark::Code(inner) => push(all, Style::Code, inner),
            Mark::Strong(inner) if style == Style::Plain => write(inner, Style::Bold, all),
            Mark::Soft(inner) if style == Style::Plain => write(inner, Style::Italic, all),
            Mark::Strong(inner) | Mark::Soft(inner) => write(inner, style, all),
            Mark::Link(inner, target) => {
                write(inner, style, all);
                if inner != target {
                    push(all, Style::Dim, &format!(" ({target})"));
                }
            }
        }
    }
    push(all, style, &text[begun..]);
}

/// Something that has marks around it, and how many bytes it takes with them.
struct Marked<'a> {
    what: Mark<'a>,
    length: usize,
}

enum Mark<'a> {
    Text(&'a str),
    Code(&'a str),
    Strong(&'a str),
    Soft(&'a str),
    Link(&'a str, &'a str),
}

fn escape(rest: &str) -> Option<Marked<'_>> {
    let next = rest[1..].chars().next().filter(char::is_ascii_punctuation)?;
    // A path of Windows has them too: only what would be a mark is taken for one.
    matches!(next, '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '<' | '>' | '~' | '!')
        .then(|| Marked { what: Mark::Text(&rest[1..2]), length: 2 })
}

fn code(rest: &str) -> Option<Marked<'_>> {
    let ticks = rest.len() - rest.trim_start_matches('`').len();
    let body = &rest[ticks..];
    let mut from = 0;
    loop {
        let at = from + body[from..].find('`')?;
        let run = body[at..].len() - body[at..].trim_start_matches('`').len();
        if run == ticks {
            let inner = &body[..at];
            let bare = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' '));
            let inner = bare.filter(|bare| !bare.trim().is_empty()).unwrap_or(inner);
            return Some(Marked { what: Mark::Code(inner), length: 2 * ticks + at });
        }
        from = at + run;
    }
}

/// Only what is surely meant as such: names and patterns have the same signs.
fn emphasis<'a>(before: &str, rest: &'a str, sign: char) -> Option<Marked<'a>> {
    let run = rest.len() - rest.trim_start_matches(sign).len();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if before.chars().next_back().is_some_and(is_word) || run > 2 || (run == 2 && sign == '_') {
        return None;
    }
    let body = &rest[run..];
    let opens = |c: char| !c.is_whitespace() && !matches!(c, '.' | '/' | ',' | ')');
    body.chars().next().filter(|c| opens(*c))?;
    let mark = &rest[..run];
    let mut from = 0;
    loop {
        let at = from + body[from..].find(mark)?;
        let (inner, behind) = (&body[..at], &body[at + run..]);
        let ends = inner.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != '/')
            && !behind.starts_with(sign)
            && !behind.chars().next().is_some_and(is_word);
        // `**` inside of `*...*` is another mark.
        if ends && (run == 2 || !inner.ends_with(sign)) {
            let what = if run == 2 { Mark::Strong(inner) } else { Mark::Soft(inner) };
            return Some(Marked { what, length: 2 * run + at });
        }
        from = at + run;
    }
}

fn link(rest: &str) -> Option<Marked<'_>> {
    let bang = usize::from(rest.starts_with('!'));
    let body = rest[bang..].strip_prefix('[')?;
    let end = body.find("](")?;
    let (text, target) = (&body[..end], &body[end + 2..]);
    if text.contains('[') || text.is_empty() {
        return None;
    }
    let close = target.find(')')?;
    let target = &target[..close];
    if target.is_empty() || target.contains(char::is_whitespace) {
        return None;
    }
    Some(Marked { what: Mark::Link(text, target), length: bang + 1 + end + 2 + close + 1 })
}
