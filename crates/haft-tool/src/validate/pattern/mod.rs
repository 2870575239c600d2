//! Regular expressions of schemas: those of ECMA-262 with the `u` flag, found anywhere in a text.
//!
//! **Invariant:** what a match may take is bounded and counted. One without lookaround and
//! references back is linear in the text; any other gives up after a number of tries, and then
//! counts as not matched.

mod translate;

use self::translate::translate;

/// Most bytes of a compiled pattern.
const SIZE: usize = 4 << 20;

/// Tries of a first look at a text, and what it counts for.
const QUICK: (usize, u64) = (2_000, 500);

/// Tries of a second look, where the first was not enough, and what it counts for.
const PATIENT: (usize, u64) = (200_000, 200_000);

/// Longest text that is looked at a second time: each try may read all of it.
const LONG: usize = 16 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As the schema has it.
    pub text: String,
    search: Search,
    /// About how many parts it has, repetitions counted.
    weight: u64,
}

#[derive(Debug)]
enum Search {
    Linear(regex::Regex),
    Backtracking { quick: fancy_regex::Regex, patient: fancy_regex::Regex },
}

impl Pattern {
    /// Compiles one.
    ///
    /// # Errors
    /// Says in a few words why it is none.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let translated = translate(text)?;
        let search = if translated.backtracks {
            let build = |tries| {
                fancy_regex::RegexBuilder::new(&translated.text)
                    .backtrack_limit(tries)
                    .delegate_size_limit(SIZE)
                    .delegate_dfa_size_limit(SIZE)
                    .build()
                    .map_err(|error| in_short(&error.to_string()))
            };
            Search::Backtracking { quick: build(QUICK.0)?, patient: build(PATIENT.0)? }
        } else {
            let mut builder = regex::RegexBuilder::new(&translated.text);
            let regex = builder.size_limit(SIZE).dfa_size_limit(SIZE).build();
            Search::Linear(regex.map_err(|error| in_short(&error.to_string()))?)
        };
        Ok(Self { text: text.to_owned(), search, weight: translated.weight })
    }

    /// Reports whether it is found in a text; adds to `steps` what that took.
    pub(super) fn is_in(&self, text: &str, steps: &mut u64) -> bool {
        let length = text.len() as u64;
        match &self.search {
            Search::Linear(regex) => {
                *steps += 1 + length.saturating_mul(self.weight) / 64;
                regex.is_match(text)
            }
            Search::Backtracking { quick, patient } => {
                *steps += QUICK.1 + length.saturating_mul(4);
                quick.is_match(text).unwrap_or_else(|_| {
                    *steps += PATIENT.1 + length.saturating_mul(64);
                    text.len() <= LONG && patient.is_match(text).unwrap_or(false)
                })
            }
        }
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

    fn found(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_in(text, &mut 0)
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
            r"\p{Nonsense}",
            r"\p",
            r"\u12",
            r"\x1",
            r"\c1",
            "(?<n>a)(?<n>b)",
            "^*",
        ] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        assert!(Pattern::new(r"((\p{L}{1000}){1000}){1000}").is_err());
    }

    #[test]
    fn a_match_that_never_ends_is_given_up_and_counted() {
        let pattern = Pattern::new(r"^(?=(a+)+$)(a|b)*c").unwrap();
        let (mut steps, text) = (0, "a".repeat(40) + "b");
        assert!(!pattern.is_in(&text, &mut steps));
        let twice = Pattern::new(r"^(.*)*(.*)*(.*)*\3x\1$").unwrap();
        assert!(!twice.is_in(&"ab".repeat(500), &mut steps));
        assert!(steps >= PATIENT.1, "{steps}");
        let mut linear = 0;
        Pattern::new(r"^.{1,1000}$").unwrap().is_in(&"x".repeat(1_000_000), &mut linear);
        assert!(linear > 1_000_000, "{linear}");
    }
}
