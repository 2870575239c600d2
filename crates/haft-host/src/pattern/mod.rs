//! Which search patterns are accepted, and the error messages for the others.
//!
//! **Invariant:** an error names the part of the pattern that is at fault, and what to write
//! instead. This module compiles nothing and knows no file.

use grep_regex::ErrorKind;
use regex_syntax::{
    ast,
    hir::{Hir, HirKind, Look},
};

use crate::{GrepQuery, SearchError};

mod foreign;

/// Memory that one of the automata of a compiled pattern may take, in bytes; there are some.
pub(crate) const PATTERN_LIMIT: usize = 10 << 20;
/// Memory in which a search keeps the states that it met, in bytes, in each thread.
pub(crate) const STATES_LIMIT: usize = 10 << 20;
/// Longest pattern that is looked at, in bytes.
const PATTERN_TEXT: usize = 64 << 10;
/// Characters that a pattern may stand for, repetitions written out: the work for one byte of a
/// file grows with them.
const PATTERN_SIZE: u64 = 2048;
/// Most characters of a pattern that a refusal repeats.
const SHOWN: usize = 200;
/// Most characters of the piece at fault that a refusal repeats.
const PIECE: usize = 20;

/// What a search has to know of its pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// How many characters it stands for.
    pub(crate) size: u64,
    /// Whether `$` is in it, for the end of a line.
    pub(crate) ends: bool,
    /// Whether it names characters outside ASCII, so that the encoding of a file matters.
    pub(crate) foreign: bool,
}

/// Refuses a pattern that stands for too much, or that no file can match.
///
/// Work for one byte goes up to about 5 ns for each character, and nothing can stop the search of
/// one line: who searches long ones with such a pattern cuts them the shorter.
pub(crate) fn check(query: &GrepQuery) -> Result<Traits, SearchError> {
    let text = &query.pattern;
    if text.contains('\0') {
        return Err(SearchError::Pattern(nul(text)));
    }
    let traits = if text.len() > PATTERN_TEXT || query.literal {
        Traits { size: text.chars().count() as u64, ends: false, foreign: !text.is_ascii() }
    } else {
        // What is no regular expression is refused with its place later.
        parser().parse(text).map_or_else(|_| Traits::default(), |hir| traits(text, &hir))
    };
    let size = traits.size;
    if text.len() <= PATTERN_TEXT && size <= PATTERN_SIZE {
        return Ok(traits);
    }
    let (shown, most) = (shown(text, 40), PATTERN_SIZE);
    let piece = most_repeated(text).filter(|_| !query.literal);
    let because = piece.map_or_else(String::new, |piece| format!(", and here most by {piece}"));
    Err(SearchError::Pattern(format!(
        "the pattern {shown} stands for {size} characters (a{{9}} stands for 9{because}); at \
         most {most} are searched for: repeat less often (+ and * count once), \
         give a part of it that is rare, or split it into several searches"
    )))
}

/// As the search reads it: bytes that are no text may be looked for, too, and `$` ends a line.
fn parser() -> regex_syntax::Parser {
    regex_syntax::ParserBuilder::new().utf8(false).multi_line(true).build()
}

fn traits(text: &str, hir: &Hir) -> Traits {
    Traits {
        size: size(hir),
        ends: hir.properties().look_set().contains(Look::EndLF),
        // Who looks for bytes that are no text gets bytes.
        foreign: hir.properties().is_utf8() && foreign::is_in(text),
    }
}

/// How many characters a pattern stands for when its repetitions are written out.
fn size(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(text) => {
            str::from_utf8(&text.0).map_or(text.0.len(), |text| text.chars().count()) as u64
        }
        HirKind::Class(_) => 1,
        HirKind::Capture(group) => size(&group.sub),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            size(&repeated.sub).saturating_mul(times.into())
        }
        // Literals are looked for together, by one pass of an automaton.
        HirKind::Alternation(parts) if hir.properties().is_alternation_literal() => {
            parts.iter().map(size).max().unwrap_or(0)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(0, |all, part| all.saturating_add(size(part)))
        }
    }
}

/// The repetition with the biggest number, as it is written.
fn most_repeated(pattern: &str) -> Option<&str> {
    let braces = pattern.match_indices('{').filter_map(|(at, _)| {
        let end = at + pattern[at..].find('}')? + 1;
        let number = pattern[at + 1..end - 1].rsplit(',').find(|number| !number.is_empty())?;
        Some((number.trim().parse::<u32>().ok()?, &pattern[at..end]))
    });
    braces.max_by_key(|(number, _)| *number).map(|(_, piece)| piece)
}

/// Says why a pattern could not be compiled.
pub(crate) fn refusal(query: &GrepQuery, error: &grep_regex::Error) -> SearchError {
    let text = &query.pattern;
    let pattern = shown(text, SHOWN);
    SearchError::Pattern(match error.kind() {
        ErrorKind::NotAllowed(what) => format!(
            "the pattern {pattern} holds a line end ({what:?}) but only single lines are \
             searched; set multiline to match across lines"
        ),
        ErrorKind::Banned(_) => nul(text),
        _ => match syntax(text).filter(|_| !query.literal) {
            Some(fault) => fault,
            None if error.to_string().contains("size limit") => {
                let piece = most_repeated(text).map_or_else(String::new, |p| format!(" {p}"));
                format!(
                    "the pattern {pattern} takes more than {} MB of memory: its repetition{piece} \
                     is too much for what is repeated; repeat less often or use + or *, or \
                     (?-u:\\w), which is only ASCII and far smaller than \\w",
                    PATTERN_LIMIT >> 20
                )
            }
            None => format!("the pattern {pattern} cannot be used: {error}; write it differently"),
        },
    })
}

fn nul(pattern: &str) -> String {
    format!(
        "the pattern {} holds a NUL byte, which only binary files have, and those are not \
         searched: leave it out",
        shown(pattern, SHOWN)
    )
}

/// What is wrong in a regular expression, where, and what to write instead.
fn syntax(pattern: &str) -> Option<String> {
    let (reason, span, advice) = match parser().parse(pattern).err()? {
        regex_syntax::Error::Parse(e) if again(pattern, e.span()).is_some() => {
            let span = again(pattern, e.span())?;
            let kind = ast::ErrorKind::UnsupportedBackreference;
            let advice = "write out what is meant to come again".to_owned();
            (kind.to_string(), span, advice)
        }
        regex_syntax::Error::Parse(e) => {
            let span = piece(pattern, e.kind(), e.span());
            (e.kind().to_string(), span.clone(), advice(e.kind(), &pattern[span]))
        }
        regex_syntax::Error::Translate(e) => {
            let span = e.span().start.offset..e.span().end.offset;
            let advice = "write a property such as \\p{Lu} or \\p{Greek}, or a class of its own";
            (e.kind().to_string(), span, advice.to_owned())
        }
        _ => return None,
    };
    let place = pattern[..span.start].chars().count() + 1;
    Some(format!(
        "the pattern {} is no regular expression: {reason} at character {place} ({}); {advice}",
        shown(pattern, SHOWN),
        shown(&pattern[span], PIECE)
    ))
}

/// The bytes of `(?P=name)`, where that is at fault.
fn again(pattern: &str, span: &ast::Span) -> Option<std::ops::Range<usize>> {
    let start = pattern.get(..span.end.offset)?.rfind("(?")?;
    let end = start + pattern[start..].find(')')? + 1;
    pattern[start..end].starts_with("(?P=").then_some(start..end)
}

/// The bytes of the piece at fault.
fn piece(pattern: &str, kind: &ast::ErrorKind, span: &ast::Span) -> std::ops::Range<usize> {
    let (mut start, mut end) = (span.start.offset, span.end.offset);
    if is_count(kind) {
        // The parser points into the braces.
        let until = pattern[start..].chars().next().map_or(start, |c| start + c.len_utf8());
        start = pattern[..until].rfind('{').unwrap_or(start);
        end = pattern[start..].find('}').map_or(end, |at| start + at + 1);
    }
    if matches!(kind, ast::ErrorKind::RepetitionMissing) {
        end = pattern[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    }
    if start >= pattern.len() {
        // It breaks off at its end: what was begun last is shown.
        start = pattern.rfind(['(', '[', '{', '\\']).unwrap_or(0);
    }
    if end <= start { start..pattern.len() } else { start..end }
}

const fn is_count(kind: &ast::ErrorKind) -> bool {
    use ast::ErrorKind as E;
    matches!(
        kind,
        E::RepetitionCountInvalid
            | E::RepetitionCountDecimalEmpty
            | E::RepetitionCountUnclosed
            | E::DecimalEmpty
            | E::DecimalInvalid
    )
}

/// What to write instead.
fn advice(kind: &ast::ErrorKind, piece: &str) -> String {
    use ast::ErrorKind as E;
    let text = "or set literal to search for the pattern as text";
    let plain = |sign: &str| format!("write \\{sign} for the character itself, {text}");
    match kind {
        E::UnsupportedLookAround => {
            "search for what must match without it, then look through what was found".to_owned()
        }
        E::UnsupportedBackreference => format!(
            "write out what is meant to come again; \\\\{} is a backslash and a digit, {text}",
            piece.trim_start_matches('\\')
        ),
        E::GroupUnclosed => format!("close it with ), {}", plain("(")),
        E::ClassUnclosed => format!("close it with ], {}", plain("[")),
        E::GroupUnopened => plain(")"),
        E::ClassRangeInvalid => "write the lower end first, or \\- for the character itself".into(),
        E::ClassRangeLiteral => "write \\- for the character itself".to_owned(),
        E::RepetitionMissing => {
            let sign = &piece[..piece.chars().next().map_or(0, char::len_utf8)];
            format!("put what is repeated before it, or {}", plain(sign))
        }
        E::RepetitionCountInvalid => "write the smaller number first".to_owned(),
        kind if is_count(kind) => format!("a count is written {{2}} or {{2,5}}; {}", plain("{")),
        E::EscapeUnexpectedEof => format!("write \\\\ for a backslash, {text}"),
        E::EscapeUnrecognized | E::ClassEscapeInvalid => match piece {
            "\\Z" => "the end of a line is $, that of a text \\z".to_owned(),
            "\\h" => "write [ \\t]".to_owned(),
            "\\R" => "write \\r?\\n and set multiline, or $ for the end of a line".to_owned(),
            "\\Q" | "\\E" => "set literal to search for the pattern as text".to_owned(),
            _ => format!(
                "write \\\\ for a backslash, or the character without one if it is meant, {text}"
            ),
        },
        E::EscapeHexEmpty | E::EscapeHexInvalid | E::EscapeHexInvalidDigit => {
            "a character is written \\x41 or \\x{1F600}".to_owned()
        }
        E::FlagDanglingNegation
        | E::FlagDuplicate { .. }
        | E::FlagRepeatedNegation { .. }
        | E::FlagUnexpectedEof
        | E::FlagUnrecognized => {
            format!("behind (? stand :, P<name> or flags of i, m, s, x, u, U and R; {}", plain("("))
        }
        E::GroupNameDuplicate { .. }
        | E::GroupNameEmpty
        | E::GroupNameInvalid
        | E::GroupNameUnexpectedEof => "leave the name out: (...) does without".to_owned(),
        E::NestLimitExceeded(_) | E::CaptureLimitExceeded => {
            "write it with fewer groups, or split it into several searches".to_owned()
        }
        _ => format!("write the piece differently, {text}"),
    }
}

/// A text as a refusal repeats it, at most so many characters.
fn shown(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Grep;

    fn refused(pattern: &str) -> String {
        let query = GrepQuery { pattern: pattern.into(), ..GrepQuery::default() };
        Grep::new(&query).map(|_| ()).expect_err(pattern).to_string()
    }

    fn of(pattern: &str) -> Traits {
        check(&GrepQuery { pattern: pattern.into(), ..GrepQuery::default() }).unwrap()
    }

    #[test]
    fn a_pattern_is_foreign_where_it_names_a_character_beyond_ascii() {
        for pattern in [
            "é",
            "中文",
            "\\u{4e2d}",
            "\\x{e9}",
            "\\xe9",
            "[à-ü]",
            "[^é]",
            "[a-\u{ff}]",
            "\\p{Han}",
            "\\pL",
            "\\P{ASCII}",
            "a|b|(c(?i:[xé]))",
            "[a&&[^é]]",
            "TODO|中",
            "[\\x{4e00}-\\x{9fff}]",
            "x{2}é*",
        ] {
            assert!(of(pattern).foreign, "{pattern}");
        }
        for pattern in [
            "needle",
            "\\w+",
            "\\W",
            ".",
            "[^a]",
            "[^\\x00-\\x7F]",
            "(?i)k",
            "\\d\\s\\b",
            "",
            "\\x41",
            "\\u{7f}",
            "(?-u:\\xff)",
            "(?-u:\\W)é",
            "(?-u)[\\x80-\\xff]+",
            "[[:alpha:]]",
            "(?x) a # é",
        ] {
            assert!(!of(pattern).foreign, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_has_the_end_of_a_line_where_a_dollar_stands_for_it() {
        for pattern in ["$", ";$", "a$|b", "(x(y$)?)", "^$", "\\$$", "(?i)a$"] {
            assert!(of(pattern).ends, "{pattern}");
        }
        for pattern in ["\\$", "[$]", "a", "\\z", "(?x)a # $"] {
            assert!(!of(pattern).ends, "{pattern}");
        }
    }

    #[test]
    fn the_size_of_a_pattern_counts_characters_in_every_script() {
        for pattern in ["中".repeat(2_000), "é{2000}".into(), "a".repeat(2_000)] {
            assert_eq!(of(&pattern).size, 2_000);
        }
        assert!(refused(&"中".repeat(2_049)).contains("stands for 2049 characters"));
        assert!(refused(&"中文".repeat(2_500)).contains("stands for 5000 characters"));
    }

    #[test]
    fn a_refusal_names_the_piece_and_what_to_write() {
        for (pattern, piece, advice) in [
            ("a(?=x)", "character 2 (\"(?=\")", "without it"),
            ("(?<!x)a", "(\"(?<!\")", "without it"),
            ("(a)\\1", "(\"\\\\1\")", "\\\\1 is a backslash"),
            ("x(abc", "character 2 (\"(\")", "close it with )"),
            ("abc)", "(\")\")", "write \\) for"),
            ("[a", "(\"[\")", "close it with ]"),
            ("(?P<n>foo)(?P=n)", "character 11 (\"(?P=n)\")", "meant to come again"),
            ("(?P<n>foo)(?P=n)", "backreferences are not supported", "meant to come again"),
            ("[z-a]", "(\"z-a\")", "lower end first"),
            ("\\q", "(\"\\\\q\")", "\\\\ for a backslash"),
            ("fn\\Z", "(\"\\\\Z\")", "end of a line is $"),
            ("\\Qa.b\\E", "(\"\\\\Q\")", "set literal"),
            ("\\", "(\"\\\\\")", "\\\\ for a backslash"),
            ("*foo", "(\"*\")", "write \\* for"),
            ("{", "(\"{\")", "write \\{ for"),
            ("foo{", "(\"{\")", "write \\{ for"),
            ("interface{}", "character 10 (\"{}\")", "write \\{ for"),
            ("é${x}", "character 3 (\"{x}\")", "write \\{ for"),
            ("a{2,1}", "(\"{2,1}\")", "smaller number first"),
            ("\\p{Foo}", "(\"\\\\p{Foo}\")", "\\p{Greek}"),
            ("(?>a)", "(\">\")", "flags of i"),
            ("x(?P<n", "character 2 (\"(?P<n\")", "leave the name out"),
            ("x(?i", "character 2 (\"(?i\")", "write \\( for"),
            ("a\\x", "character 2 (\"\\\\x\")", "for a backslash"),
            ("a\\x00", "a\\\\x00", "leave it out"),
            ("a\0", "a\\0", "leave it out"),
            ("a\nb", "\\n", "set multiline"),
            ("\\d{1,100000}", "{1,100000}", "+ and * count once"),
            ("(?-u)\\xff{5000}", "{5000}", "+ and * count once"),
            ("x{3}(?:\\w+\\s){1000}", "{1000}", "(?-u:\\w)"),
            ("((a{1000}){1000}){1000}", "{1000}", "repeat less often"),
        ] {
            let told = refused(pattern);
            assert!(told.contains(piece) && told.contains(advice), "{pattern}: {told}");
        }
    }
}
