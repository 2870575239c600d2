//! Finds the parts of code that look different: its keywords, names, numbers, texts and comments.
//!
//! **Invariant:** a line is parsed once, and memory and time are bounded: a long line, and what
//! comes behind much code, looks plain. Which language it is follows from a name alone.
//!
//! The grammars are those that bat ships (Sublime Text's format), as `two-face` packs them. They
//! are unpacked when the first code is shown.

use std::{ops::Range, sync::OnceLock};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::line::Style;

/// The longest line that is parsed, in bytes.
const LONGEST_LINE: usize = 300;
/// What parsing one text may cost. The grammars look back and forth: what a hostile line takes grows
/// with the square of its length, to 0.1 s for one of the longest.
const MOST: usize = 500_000;
/// What a line costs beside that square.
const LINE: usize = 400;

/// What a scope looks like; of several that fit the longest counts, none means as what is around it.
const SCOPES: &[(&str, Style)] = &[
    ("comment", Style::Comment),
    ("string", Style::Literal),
    ("constant", Style::Number),
    ("keyword", Style::Keyword),
    ("keyword.operator", Style::Plain),
    ("keyword.operator.word", Style::Keyword),
    ("keyword.operator.logical.python", Style::Keyword),
    ("storage", Style::Keyword),
    ("variable.language", Style::Keyword),
    ("variable.function", Style::Function),
    ("variable.parameter", Style::Plain),
    ("entity.name", Style::Type),
    ("entity.name.function", Style::Function),
    ("entity.name.tag", Style::Keyword),
    ("entity.other.attribute-name", Style::Function),
    ("entity.other.inherited-class", Style::Type),
    ("support.function", Style::Function),
    ("support.macro", Style::Function),
    ("support.type", Style::Type),
    ("support.class", Style::Type),
    ("markup.heading", Style::Bold),
    ("markup.inserted", Style::Added),
    ("markup.deleted", Style::Removed),
];

/// The state of a text whose lines are shown one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Highlighter {
    state: ParseState,
    stack: ScopeStack,
    /// What may still be spent.
    left: usize,
}

impl Highlighter {
    /// For a file; none where its language is not known.
    pub(crate) fn of_file(path: &str, first_line: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let set = grammars();
        let by_name = set.find_syntax_by_extension(name);
        let by_end =
            || name.rsplit_once('.').and_then(|(_, end)| set.find_syntax_by_extension(end));
        let by_line = || {
            let is_short = first_line.len() <= LONGEST_LINE && first_line.starts_with("#!");
            is_short.then(|| set.find_syntax_by_first_line(first_line)).flatten()
        };
        by_name.or_else(by_end).or_else(by_line).and_then(Self::of)
    }

    /// For code whose language is named, as behind the fence of a Markdown text.
    pub(crate) fn of_language(name: &str) -> Option<Self> {
        let name = name.split([' ', ',', '{', ':']).next().filter(|name| !name.is_empty())?;
        grammars().find_syntax_by_token(name).and_then(Self::of)
    }

    fn of(syntax: &SyntaxReference) -> Option<Self> {
        let is_plain = syntax.name == grammars().find_syntax_plain_text().name;
        let state = (!is_plain).then(|| ParseState::new(syntax))?;
        Some(Self { state, stack: ScopeStack::new(), left: MOST })
    }

    /// The parts of the next line, which has no line end: byte ranges that cover it. None where they
    /// are not known.
    pub(crate) fn line(&mut self, text: &str) -> Option<Vec<(Range<usize>, Style)>> {
        if text.len() > LONGEST_LINE {
            return None;
        }
        let cost = text.len() * text.len() + LINE;
        self.left = self.left.saturating_sub(cost);
        if self.left == 0 {
            return None;
        }
        let parsed = self.state.parse_line(&format!("{text}\n"), grammars()).ok();
        let Some(operations) = parsed else {
            self.left = 0;
            return None;
        };
        let (mut parts, mut at) = (Vec::new(), 0);
        for (end, operation) in &operations {
            let end = text.floor_char_boundary(*end);
            if end > at {
                parts.push((at..end, self.style()));
                at = end;
            }
            if self.stack.apply(operation).is_err() {
                self.left = 0;
                break;
            }
        }
        if at < text.len() {
            parts.push((at..text.len(), self.style()));
        }
        Some(parts)
    }

    /// How what comes now looks: as the innermost scope that says something says.
    fn style(&self) -> Style {
        let scopes = self.stack.as_slice();
        let styles = styles();
        let of = |scope: &Scope| {
            let fits = styles.iter().filter(|(prefix, _)| prefix.is_prefix_of(*scope));
            fits.max_by_key(|(prefix, _)| prefix.len()).map(|(_, style)| *style)
        };
        scopes.iter().rev().find_map(of).unwrap_or_default()
    }
}

fn grammars() -> &'static SyntaxSet {
    static SET: OnceLock<SyntaxSet> = OnceLock::new();
    SET.get_or_init(two_face::syntax::extra_newlines)
}

fn styles() -> &'static [(Scope, Style)] {
    static STYLES: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    STYLES.get_or_init(|| {
        let scope = |(name, style): &(&str, Style)| Scope::new(name).ok().map(|it| (it, *style));
        SCOPES.iter().filter_map(scope).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styled<'a>(highlighter: &mut Highlighter, text: &'a str) -> Vec<(&'a str, Style)> {
        let parts = highlighter.line(text).unwrap();
        assert_eq!(parts.iter().map(|(range, _)| &text[range.clone()]).collect::<String>(), text);
        parts.into_iter().map(|(range, style)| (text[range].trim(), style)).collect()
    }

    #[test]
    fn every_scope_is_one() {
        let names = SCOPES.iter().filter(|(name, _)| Scope::new(name).is_ok());
        assert_eq!(names.count(), SCOPES.len());
    }

    #[test]
    fn languages_are_known_by_names_and_by_what_runs_them() {
        for path in ["a.rs", "/x/b.py", "c.ts", "d.tsx", "Cargo.toml", "Makefile", "Dockerfile"] {
            assert!(Highlighter::of_file(path, "").is_some(), "{path}");
        }
        assert!(Highlighter::of_file("run", "#!/bin/sh").is_some());
        assert!(Highlighter::of_file("notes.txt", "").is_none());
        assert!(Highlighter::of_file("noend", "words").is_none());
        for name in ["rust", "rust,ignore", "js", "sh", "JSON", "c++", "diff"] {
            assert!(Highlighter::of_language(name).is_some(), "{name}");
        }
        assert!(Highlighter::of_language("no-such-thing").is_none());
        assert!(Highlighter::of_language("").is_none());
    }

    #[test]
    fn keywords_names_numbers_texts_and_comments_look_different() {
        let mut rust = Highlighter::of_language("rust").unwrap();
        let parts = styled(&mut rust, "fn main() { let a = \"x\"; 12 } // end");
        for part in [
            ("fn", Style::Keyword),
            ("main", Style::Function),
            ("let", Style::Keyword),
            ("12", Style::Number),
        ] {
            assert!(parts.contains(&part), "{part:?} {parts:?}");
        }
        let of = |wanted: Style| -> String {
            parts.iter().filter(|(_, style)| *style == wanted).map(|(text, _)| *text).collect()
        };
        assert_eq!(of(Style::Literal), "\"x\"");
        assert!(of(Style::Comment).starts_with("//"));
        // What began earlier goes on.
        styled(&mut rust, "/* a");
        assert_eq!(styled(&mut rust, "fn b"), [("fn b", Style::Comment)]);
    }

    #[test]
    fn what_is_parsed_is_bounded() {
        let mut rust = Highlighter::of_language("rust").unwrap();
        assert!(rust.line(&"x".repeat(LONGEST_LINE + 1)).is_none());
        assert!(rust.line("fn").is_some());
        let lines = |highlighter: &mut Highlighter, line: &str| {
            (0..MOST).take_while(|_| highlighter.line(line).is_some()).count()
        };
        assert!((300..MOST / LINE).contains(&lines(&mut rust, "    let a = 1;")));
        assert!(rust.line("fn").is_none());
        let mut rust = Highlighter::of_language("rust").unwrap();
        assert!(lines(&mut rust, &"x".repeat(LONGEST_LINE)) < 6);
    }
}
