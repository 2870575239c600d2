//! Matches patterns against words that are known only in part: those with the marks of the lexer.
//!
//! **Invariant:** matching is conservative: if any text that the words may become matches the
//! pattern, a match is reported. Matches that turn out to be none may be reported too.
//!
//! **Does not know:** where words come from.

use std::collections::HashSet;

use super::command_pattern::{CommandPattern, GAP};
use crate::command::lexer::{EXPANDS, QUOTED, REPLACED};

/// Stands for a word of which nothing is known; twice, for what may be several.
pub(crate) const UNKNOWN: char = '\u{4}';

/// The most places of a line that are compared one by one; what follows may be anything.
const LONGEST: usize = 256;

/// One place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    /// This character, or the end of a word.
    Char(char),
    /// One character of a word.
    One,
    /// Any text within a word.
    Text,
    /// Any text, also of several words.
    Words,
    /// Nothing, together with the place behind it; or a gap, with what that place stands for.
    More,
}

/// A line place by place.
pub(crate) fn atoms(joined: &str) -> Vec<Atom> {
    let mut all = Vec::new();
    let mut rest = joined;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if all.len() >= LONGEST {
            all.push(Atom::Words);
            break;
        }
        match c {
            '*' | '?' | '[' if rest.starts_with(EXPANDS) => {
                rest = &rest[1..];
                match (c, class(rest)) {
                    ('?', _) => all.push(Atom::One),
                    ('[', Some(end)) => {
                        rest = &rest[end..];
                        all.push(Atom::One);
                    }
                    _ => all.push(Atom::Words),
                }
            }
            '~' if rest.starts_with(EXPANDS) => {
                rest = rest[1..].trim_start_matches(|c: char| !['/', GAP].contains(&c));
                all.push(Atom::Text);
            }
            EXPANDS | QUOTED => {
                rest = &rest[replaced(rest)..];
                let is_whole = rest.is_empty() || rest.starts_with(GAP);
                match (c, all.last()) {
                    // Where it becomes nothing the word is none.
                    (EXPANDS, Some(Atom::Char(GAP))) if is_whole => {
                        all.pop();
                        all.extend([Atom::More, Atom::Words]);
                    }
                    (EXPANDS, _) => all.push(Atom::Words),
                    _ => all.push(Atom::Text),
                }
            }
            UNKNOWN if rest.starts_with(UNKNOWN) => {
                rest = &rest[1..];
                all.push(Atom::Words);
            }
            UNKNOWN => all.push(Atom::Text),
            c => all.push(Atom::Char(c)),
        }
    }
    all
}

/// How many bytes behind a mark stand for what is put there.
pub(crate) fn replaced(rest: &str) -> usize {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    match rest.chars().next() {
        Some('{') => braces(rest),
        Some(REPLACED) => REPLACED.len_utf8(),
        Some(c) if c == '_' || c.is_ascii_alphabetic() => {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        }
        Some(c) if "@*#?-$!".contains(c) || c.is_ascii_digit() => 1,
        _ => 0,
    }
}

/// The bytes of a text in braces; all of the word where they do not close.
fn braces(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            GAP => return at,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    rest.len()
}

/// The bytes up to the end of a class of characters, `a-z]`, where it ends in the same word.
pub(crate) fn class(rest: &str) -> Option<usize> {
    let skipped = rest.len() - rest.trim_start_matches(['!', '^']).len();
    let first = rest[skipped..].chars().next()?.len_utf8();
    let end = rest.get(skipped + first..)?.find([']', GAP])? + skipped + first;
    rest[end..].starts_with(']').then_some(end + 1)
}

/// One place of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Char(char),
    Star,
}

impl CommandPattern {
    /// Reports whether it may take one of the texts that a line may become; of its program all is known,
    /// or at least so many letters.
    pub(crate) fn may_take(&self, joined: &str, least: usize) -> bool {
        let Some(first) = self.pieces.first().filter(|first| !first.is_empty()) else {
            return false;
        };
        // Most differ in what is known of both.
        let known = joined.split([EXPANDS, QUOTED, UNKNOWN]).next().unwrap_or_default();
        let known = known.trim_end_matches(['*', '?', '[', '~']).trim_end_matches(GAP);
        if !first.starts_with(known) && !known.starts_with(first.as_str()) {
            return false;
        }
        let atoms = atoms(joined);
        let is_end = |atom: &&Atom| matches!(atom, Atom::Char(GAP) | Atom::More);
        let program = &atoms[..atoms.iter().position(|atom| is_end(&atom)).unwrap_or(atoms.len())];
        // A name is that of the program's file, in whatever folder that is.
        let is_path = first.split(GAP).next().is_some_and(|name| name.contains('/'));
        let slash = program.iter().rposition(|atom| !is_path && *atom == Atom::Char('/'));
        let from = slash.map_or(0, |at| at + 1);
        let program = &program[from..];
        let letters = program.iter().filter(|atom| matches!(atom, Atom::Char(_))).count();
        if letters < program.len().min(least) {
            return false;
        }
        meets(&self.steps(), &atoms[from..], self.words)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            steps.extend((at > 0).then_some(Step::Star));
            steps.extend(piece.chars().map(Step::Char));
        }
        steps
    }
}

/// Whether some text is one of both; `words` says that others may follow.
fn meets(steps: &[Step], atoms: &[Atom], words: bool) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![(0, 0)];
    while let Some((step, atom)) = open.pop() {
        if step > steps.len() || atom > atoms.len() || !seen.insert((step, atom)) {
            continue;
        }
        let (wanted, found) = (steps.get(step), atoms.get(atom));
        // What may be nothing may be passed over.
        match found {
            Some(Atom::Text | Atom::Words) => open.push((step, atom + 1)),
            Some(Atom::More) => open.push((step, atom + 2)),
            _ => {}
        }
        match (wanted, found) {
            (None, None) => return true,
            (None, Some(Atom::Char(GAP) | Atom::Words | Atom::More)) if words => return true,
            (Some(Step::Star), None) => open.push((step + 1, atom)),
            (Some(Step::Star), Some(_)) => open.extend([(step + 1, atom), (step, atom + 1)]),
            (None, _) | (Some(Step::Char(_)), None) => {}
            (Some(Step::Char(wanted)), Some(found)) => match found {
                Atom::Char(c) if c == wanted => open.push((step + 1, atom + 1)),
                Atom::One if *wanted != GAP => open.push((step + 1, atom + 1)),
                Atom::Text if *wanted != GAP => open.push((step + 1, atom)),
                Atom::Words => open.push((step + 1, atom)),
                Atom::More if *wanted == GAP => open.push((step + 1, atom + 1)),
                _ => {}
            },
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_take(pattern: &str, line: &str) -> bool {
        let line = line.replace(' ', "\0").replace('$', "\u{1}").replace('%', "\u{2}");
        CommandPattern::parse(pattern).unwrap().may_take(&line, 3)
    }

    #[test]
    fn what_is_not_known_may_be_what_a_pattern_names() {
        for (pattern, line) in [
            ("reboot:*", "reboot $X"),
            ("reboot", "reboot $X"),
            ("git push:*", "git $X"),
            ("git push:*", "git %X origin"),
            ("git push:*", "git $X push"),
            ("git push:*", "git pu%b"),
            ("git push:*", "git pu*$"),
            ("git push:*", "git pus[$gh]"),
            ("git push:*", "git pus?$"),
            ("git push:*", "git %{a}sh x"),
            ("git push:*", "git \u{4}"),
            ("ddx * of=/dev/sd*", "ddx if=x of=%X"),
            ("ddx * of=/dev/sd*", "ddx $X"),
            ("ddx * of=/dev/sd*", "ddx if=x of=/dev/s%X"),
            ("reboot:*", "reboo?$"),
            ("reboot:*", "[$r]eboot"),
            ("reboot:*", "reboo%{b}"),
            ("reboot:*", "%{X}/reboot"),
            ("mkfs*", "%{X}/mkfs.%{Y}"),
            ("/x/*", "/x/%{Y}run"),
        ] {
            assert!(may_take(pattern, line), "{pattern}: {line}");
        }
    }

    #[test]
    fn what_is_known_is_no_other_thing() {
        for (pattern, line) in [
            ("reboot", "reboot x %X"),
            ("git push:*", "git pull %X"),
            ("git push:*", "git p%{X}l"),
            ("git push:*", "gitx %X"),
            ("git push:*", "git pus?$x"),
            ("ddx * of=/dev/sd*", "ddx if=x of=/dev/null%X"),
            ("ddx * of=/dev/sd*", "ddx of=%X x"),
            ("rmdir:*", "rm $X"),
            ("reboot:*", "%X now"),
            ("reboot:*", "re*$"),
            ("*push*", "git %X"),
            ("mkfs*", "%{HOME}/bin/hello"),
            ("mkfs*", "%{VENV}/bin/python x"),
        ] {
            assert!(!may_take(pattern, line), "{pattern}: {line}");
        }
    }

    #[test]
    fn a_long_line_ends() {
        let line = format!("ddx{}", "\0\u{1}X".repeat(10_000));
        for pattern in ["ddx * of=/dev/sd*", "ddx a*b*c*d*e*f:*"] {
            assert!(CommandPattern::parse(pattern).unwrap().may_take(&line, 3));
        }
    }
}
