//! Regular expressions of schemas: those of ECMA-262 with the `u` flag, found anywhere in a text.
//!
//! **Invariant:** what patterns cost is paid from a budget before it is done. All patterns of a
//! schema share one for what is built of them, and all matches of a check share its steps. A match
//! that is too long for the steps that are left has no result, and is never taken for none.
//!
//! The files: `parse` reads a pattern, `program` and `search` are an engine that goes back and
//! counts each step. It is for patterns that look around or refer back, and for those that count so
//! high that a linear engine would need too many states. All others are for the `regex` crate.

mod parse;
mod program;
mod search;

use std::fmt::Write as _;

use self::{
    parse::{Parsed, Part, parse},
    program::Program,
};

/// What all patterns of a schema may cost together: bytes of text or states, whichever are more. A
/// state is up to some hundred bytes and a microsecond.
pub(super) const BUDGET: u64 = 200_000;

/// Most states of a pattern for the linear engine, which makes some for each repetition: of one that
/// repeats only single characters, for which going back is cheap, and of any other.
const FLAT_STATES: u64 = 1_000;
const STATES: u64 = 20_000;

/// Most bytes of a compiled linear pattern, and of what it remembers of its searches.
const SIZE: usize = 16 << 20;
const MEMORY: usize = 256 << 10;

/// How many states the linear engine looks at for a step, at its slowest.
const PER_STEP: u64 = 8;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As the schema has it.
    pub text: String,
    search: Search,
}

#[derive(Debug)]
enum Search {
    Linear { regex: regex::Regex, states: u64 },
    Backtracking(Program),
}

impl Pattern {
    /// Compiles one; takes what it costs from `budget` before.
    ///
    /// # Errors
    /// Says in a few words why it is none.
    pub(super) fn new(text: &str, budget: &mut u64) -> Result<Self, String> {
        let length = text.len() as u64;
        pay(budget, length)?;
        let parsed = parse(text)?;
        let states = parsed.part.weight(true);
        let most = if parsed.part.is_flat() { FLAT_STATES } else { STATES };
        let linear = !parsed.hard && states <= most;
        let cost = if linear { states } else { parsed.part.weight(false) };
        pay(budget, cost.saturating_sub(length))?;
        let search = if linear {
            Search::Linear { regex: linear_regex(&parsed)?, states }
        } else {
            Search::Backtracking(Program::new(&parsed)?)
        };
        Ok(Self { text: text.to_owned(), search })
    }

    /// Reports whether it is found in a text; takes what that costs from `left`. None where there
    /// is not enough left.
    pub(super) fn is_in(&self, text: &str, left: &mut u64) -> Option<bool> {
        match &self.search {
            Search::Linear { regex, states } => {
                let cost = 1 + (text.len() as u64).saturating_mul(*states) / PER_STEP;
                *left = left.checked_sub(cost)?;
                Some(regex.is_match(text))
            }
            Search::Backtracking(program) => search::is_found(program, text, left).ok(),
        }
    }
}

fn pay(budget: &mut u64, cost: u64) -> Result<(), String> {
    let left = budget.checked_sub(cost);
    *budget = left.ok_or("it is too big, together with the other patterns")?;
    Ok(())
}

fn linear_regex(parsed: &Parsed) -> Result<regex::Regex, String> {
    let mut text = String::new();
    write_linear(&parsed.part, &mut text);
    // Reading has bounded the depth, of which the engine counts each kind of part.
    let mut builder = regex::RegexBuilder::new(&text);
    let builder = builder.size_limit(SIZE).dfa_size_limit(MEMORY).nest_limit(1_000);
    builder.build().map_err(|error| in_short(&error.to_string()))
}

/// Writes a pattern without looks and references as Rust does.
fn write_linear(part: &Part, out: &mut String) {
    match part {
        Part::Char(c) if c.is_alphanumeric() => out.push(*c),
        Part::Char(c) => drop(write!(out, "\\x{{{:X}}}", u32::from(*c))),
        Part::Set(set) => out.push_str(&set.text),
        Part::Start { .. } => out.push('^'),
        Part::End { .. } => out.push('$'),
        Part::Boundary { .. } => out.push_str(r"(?-u:\b)"),
        Part::Group { inner, .. } => {
            out.push_str("(?:");
            write_linear(inner, out);
            out.push(')');
        }
        Part::Repeat { inner, least, most, .. } => {
            write_linear(inner, out);
            let most = if *most == u64::MAX { String::new() } else { most.to_string() };
            let _ = write!(out, "{{{least},{most}}}");
        }
        Part::Sequence(parts) => parts.iter().for_each(|part| write_linear(part, out)),
        Part::Either(branches) => {
            for (index, branch) in branches.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "|" });
                write_linear(branch, out);
            }
        }
        // A pattern with these is hard.
        Part::Look { .. } | Part::Back { .. } => {}
    }
}

/// The last line of an error, which says what is wrong; those before show where, in a text that
/// nobody wrote.
fn in_short(error: &str) -> String {
    let line = error.lines().last().unwrap_or_default();
    let line = line.trim().trim_start_matches("error: ");
    super::problem::cut(line, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(pattern: &str) -> Result<Pattern, String> {
        Pattern::new(pattern, &mut { BUDGET })
    }

    fn found(pattern: &str, text: &str) -> bool {
        made(pattern).unwrap().is_in(text, &mut 1_000_000).unwrap()
    }

    #[test]
    fn patterns_mean_what_ecmascript_says() {
        for (pattern, text, wanted) in [
            ("^abc$", "abc", true),
            ("^abc$", "abc\n", false),
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{9ea}", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{feff}", true),
            (r"^\S$", "\u{2003}", false),
            (r"^[\s]$", "\u{a0}", true),
            (r"^[^\s]$", "\u{a0}", false),
            (r"^[\S]$", "x", true),
            (r"^\cC$", "\u{3}", true),
            (r"^\x41\u0042\u{43}$", "ABC", true),
            (r"^\ud83d\ude00$", "😀", true),
            (r"^[\ud83d\ude00-\ud83d\ude02]$", "😁", true),
            (r"^[\ud800-\udfff]$", "x", false),
            (r"^[^\ud800-\udfff]$", "x", true),
            (r"\ud800", "x", false),
            (r"^\/\-\.\#\@$", "/-.#@", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[a-c~~&&-]+$", "[b~-", true),
            (r"^[\]\[\\^-]+$", "][\\^-", true),
            ("^[^]$", "\n", true),
            ("[]", "a", false),
            (r"^.$", "\u{2028}", false),
            (r"^.$", "😀", true),
            (r"^[\b]$", "\u{8}", true),
            (r"\bfoo\b", "a foo b", true),
            (r"\bfoo\b", "éfoo", true),
            (r"o\B", "foo", true),
            (r"foo\B", "foo", false),
            (r"^{{name}}$", "{{name}}", true),
            ("^a{2}$", "aa", true),
            ("^a{,2}$", "a{,2}", true),
            (r"^\p{Letter}\p{Lu}\P{L}$", "aB1", true),
            (r"^\p{Script=Greek}$", "α", true),
            (r"^\p{digit}$", "\u{9ea}", true),
            (r"^[\p{L}\d]+$", "é1", true),
            (r"^(?<year>\d{4})-\k<year>$", "2024-2024", true),
            (r"^(?<year>\d{4})-\k<year>$", "2024-2025", false),
            (r"^(a)(b)\2\1$", "abba", true),
            (r"^(?!.*foo).*$", "bar", true),
            (r"^(?!.*foo).*$", "a foo", false),
            (r"(?<=a)b", "ab", true),
            (r"(?<!a)b", "ab", false),
            (r"^(?=.*\d)(?=.*[a-z])\w{4,}$", "abc1", true),
            (r"^(?=a)\bab\b.$", "ab\n", false),
            ("^(?i)abc$", "ABC", true),
            (r"^\0$", "\u{0}", true),
        ] {
            assert_eq!(found(pattern, text), wanted, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in [
            "(",
            ")",
            "a(",
            "[",
            "[b-a]",
            "*",
            "a**",
            "a{2,1}",
            r"\",
            r"\a",
            r"\1",
            r"\k<x>",
            r"(?<year>a)\k<year",
            r"\p{Nonsense}",
            r"\p",
            r"\u12",
            r"\x1",
            r"\c1",
            "(?<n>a)(?<n>b)",
            "^*",
        ] {
            assert!(made(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn looks_and_references_mean_what_ecmascript_says() {
        for (pattern, text, wanted) in [
            // A group that took no part is empty.
            (r"^(?:(a)|b)\1$", "b", true),
            (r"\1(a)", "a", true),
            (r"^(a\1)$", "a", true),
            (r"^(?:(a)|(b)\1)+$", "ab", true),
            (r"^(?:(a)|(b)\1)+$", "aba", true),
            (r"^(z)((a+)?(b+)?(c))*\3$", "zaacbbbcac", false),
            // Nothing is taken from a look that has to fail.
            (r"^(?!(a)b)\1ac$", "ac", true),
            (r"^(?=(a+))a*b\1$", "aaba", false),
            (r"^(?=(a+))a*b\1$", "baaabac", false),
            (r"(?=(a+))a*b\1", "baaabac", true),
            (r"^(?=(a+?)b)\1b", "aab", true),
            // Looks behind read towards the start.
            (r"(?<=a+)b", "aab", true),
            (r"(?<=^[a-c]{3})def$", "abcdef", true),
            (r"(?<!^.{2,3})d", "abcd", false),
            (r"(?<=(\d+)(\d+))x\2\1$", "1053x0531", true),
            (r"(?<=\1(a))b", "aab", true),
            (r"(?<=(a)\1)b", "aab", true),
            (r"(?<=(?=b)b)c", "bc", true),
            (r"(?<=é)b", "éb", true),
            (r"(?<!é)b", "éb", false),
            // Greedy and not, with counts.
            (r"^(?=x)x{2,3}?x$", "xxxx", true),
            (r"^(?=x)x{2,3}?x$", "xxxxx", false),
            (r"^(?=x)(?:x|xy){2}$", "xyxy", true),
            (r"^(?=x)(?:x?){3}$", "xx", true),
            (r"^(?:(?=a)|a){3}$", "aa", true),
            (r"^(?=)(?:a*)*$", "aaab", false),
            (r"^(?=)(?:a*?)*?$", "aaa", true),
            (r"(?=x)[^]$", "x", true),
            // Flags are those of their group.
            (r"^(?s:a).$", "a\n", false),
            (r"^(?s:a.)$", "a\n", true),
            (r"^(?s)a(?-s:.)$", "a\n", false),
            (r"^(?i:a)b$", "AB", false),
            (r"^(?i:(a))\1$", "Aa", false),
            (r"^(?i:(a)\1)$", "Aa", true),
            (r"^(?i:(É)\1)$", "éÉ", true),
            (r"(?m)^b$", "a\nb\nc", true),
            (r"(?m:^)b$", "a\nb\nc", false),
            // Of other dialects.
            (r"\Aab\z", "ab", true),
            (r"^ab\Z", "ab\n", false),
            (r"(?=a)\Aab\z", "xab", false),
        ] {
            assert_eq!(found(pattern, text), wanted, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn both_engines_find_the_same() {
        let texts =
            ["", "a", "b", "ab", "aab", "é", "😀", "a\n", "a_1", "-a b", "abab", "\u{2028}"];
        for pattern in [
            "^a+b?$",
            "a{2}b",
            "^.$",
            "^[^a]",
            r"\w\b",
            r"\S+\s",
            "(?:a|ab)(?:c|b)*$",
            "(a*)*b",
            "[]",
            "[^]",
            r"\p{Lu}|\p{Ll}",
            "^(?:a|b|_|1){2,3}$",
            "(?i:A)B|b",
            "a??b",
            "😀|é",
            r"^\W",
        ] {
            let parsed = parse(pattern).unwrap();
            let (linear, program) =
                (linear_regex(&parsed).unwrap(), Program::new(&parsed).unwrap());
            for text in texts {
                let found = search::is_found(&program, text, &mut 10_000).unwrap();
                assert_eq!(found, linear.is_match(text), "{pattern} in {text:?}");
            }
        }
    }

    #[test]
    fn the_deepest_groups_are_searched_for() {
        for (open, close) in
            [("(?:", ")"), ("(", ")"), ("(?=", ")"), ("(?<!(?!", "))"), ("(a", ")*")]
        {
            let depth = 99 / open.matches('(').count();
            let pattern = open.repeat(depth) + "a" + &close.repeat(depth);
            assert!(found(&pattern, &"a".repeat(200)), "{pattern}");
        }
    }

    #[test]
    fn usual_patterns_are_matched_at_usual_lengths() {
        let many = |part: &str, times: usize| part.repeat(times);
        let words: Vec<String> = (0..700).map(|n| format!("w{n}|")).collect();
        let words = words.concat() + "end";
        assert!(words.len() > 3_000);
        for (pattern, text) in [
            (r"^[^\0]*$", many("x", 1 << 20)),
            ("^[a-zA-Z0-9_-]+$", many("ab-9", 1 << 18)),
            (
                r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
                "0123abcd-0123-0123-0123456789ab".into(),
            ),
            (
                r"^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$",
                "2024-01-31T10:00:00Z".into(),
            ),
            (
                r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
                many("a", 2_000) + "@example.com",
            ),
            (
                r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$",
                "1.2.3-rc.1+build.5".into(),
            ),
            (r"^(?!.*\.\.)(?!/)[^\0]+$", many("dir/", 25_000)),
            (r"^.{1,10000}$", many("é", 10_000)),
            (r"^[\s\S]{1,100000}$", many("y", 100_000)),
            (r"^(?:\w{1,20}\s?){1,100}$", many("word ", 100)),
            ("(?<!a)b", many("a", 1 << 20) + "cb"),
            (r"x\B", many("a", 1 << 20) + "xx"),
            (&words, "end".into()),
        ] {
            let found = made(pattern).unwrap().is_in(&text, &mut 20_000_000);
            assert_eq!(found, Some(true), "{}", super::super::problem::cut(pattern, 60));
        }
        // Many ways to divide it: one engine looks at all of them at once.
        let pattern = made(r"^(?:\w{1,20}\s?){1,100}$").unwrap();
        assert_eq!(pattern.is_in(&(many("a", 60) + "!"), &mut 1_000_000), Some(false));
    }

    #[test]
    fn what_a_schema_has_patterns_for_is_paid_before_they_are_built() {
        for (pattern, times) in [
            ("(?=a{60000})(?=a{59999})", 200),
            (r"\p{L}", 450),
            (r"(?=\p{L}\p{N})", 200),
            (&*"a".repeat(1 << 20), 1),
            (&*"[".repeat(1 << 20), 1),
            (&*"{".repeat(1 << 20), 1),
        ] {
            let mut budget = BUDGET;
            let mut all = (0..times).map(|_| Pattern::new(pattern, &mut budget));
            let failed = all.find_map(Result::err);
            // Looks are small, as nothing is built for the times of a repetition.
            assert_eq!(failed.is_some(), !pattern.starts_with("(?=a"), "{failed:?}");
            assert!(failed.is_none_or(|why| why.contains("too big")));
        }
        let mut budget = BUDGET;
        for times in 0..500 {
            Pattern::new(&format!("[^x]{{{}}}", 3_000 - times), &mut budget).unwrap();
        }
        assert!(made(&("(".repeat(101) + &")".repeat(101))).unwrap_err().contains("over 100 deep"));
    }

    #[test]
    fn a_match_that_takes_too_long_has_no_result_and_is_paid() {
        let deep = "(?:(?=".repeat(20) + "a?" + &")a?)*".repeat(20) + "$";
        for (pattern, text) in [
            (r"^(?=(a+)+$)(a|b)*c", "a".repeat(40) + "b"),
            (r"^(.*)*(.*)*(.*)*\3x\1$", "ab".repeat(500)),
            ("(?=[ab]*x)y", "ab".repeat(1 << 18)),
            (&*("(?=a)".repeat(10_000) + "x"), "a".repeat(1_000)),
            // These hardly go back.
            ("^(?:(?=a*x)a)*$", "a".repeat(5_000) + "x"),
            (&*deep, "a".repeat(1_000)),
            (r"^(?:(?:(?:(?=)a?){1000000}){1000000}){1000000}", "a".repeat(10)),
        ] {
            let pattern = made(pattern).unwrap();
            let mut left = 1_000_000;
            assert_eq!(pattern.is_in(&text, &mut left), None, "{}", pattern.text);
        }
        let pattern = made("^[ab]*a[ab]{900}[cd]").unwrap();
        let mut left = 20_000_000;
        assert_eq!(pattern.is_in(&"ab".repeat(1 << 19), &mut left), None);
        assert_eq!(left, 20_000_000, "it is refused before it begins");
    }
}
