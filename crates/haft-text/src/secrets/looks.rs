//! What a value in a text looks like, where nobody says that it is a secret but its name.
//!
//! **Invariant:** cautious: words, identifiers, versions, names of files, stand-ins and what is
//! filled in elsewhere are never taken for a secret, since hiding them would harm whoever reads or
//! edits code.

use super::names::{SHORTEST, is_value};

/// Most bytes of a value that is looked at.
pub(super) const LONGEST: usize = 4096;

/// Words of which stand-ins are made.
const STAND_INS: &[&str] = &[
    "your",
    "yours",
    "changeme",
    "change",
    "placeholder",
    "insert",
    "replace",
    "example",
    "todo",
    "dummy",
    "fake",
    "sample",
    "enter",
    "here",
    "redacted",
    "xxx",
    "foo",
    "foobar",
    "none",
    "null",
];
/// Words that speak of a secret, and stand in none.
const SPEAKING: &[&str] = &[
    "secret",
    "secrets",
    "password",
    "passwords",
    "token",
    "key",
    "apikey",
    "credentials",
    "wrong",
    "invalid",
    "test",
    "testing",
    "the",
    "my",
    "is",
    "for",
    "of",
];

fn segments(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

fn among(value: &str, words: &[&str]) -> bool {
    segments(value).any(|part| words.iter().any(|word| word.eq_ignore_ascii_case(part)))
}

/// Reports whether something else is to stand in its place.
pub(super) fn is_filled_in(value: &str) -> bool {
    let marked = ["${", "$(", "{{", "}}", "#{", "%(", "***", "...", "\u{2026}", "<%"];
    let begins = value.starts_with(['$', '%', '<', '@']);
    let repeated = |c: &char| value.chars().all(|other| other == *c);
    begins
        || marked.iter().any(|mark| value.contains(mark))
        || value.find('<').is_some_and(|at| value[at..].contains('>'))
        || value.to_ascii_lowercase().contains("xxxx")
        || value.chars().next().as_ref().is_some_and(repeated)
}

/// Reports whether a value is a secret where its name is that of a variable.
pub(super) fn is_variables(value: &str) -> bool {
    is_value(value) && !is_filled_in(value) && (is_random(value) || !among(value, STAND_INS))
}

/// Reports whether it is one where nothing but the name speaks for it.
pub(super) fn is_strong(value: &str) -> bool {
    is_plain(value) && is_random(value)
}

/// Reports whether it is one under the name of a password.
pub(super) fn is_password(value: &str) -> bool {
    let digits = value.bytes().any(|b| b.is_ascii_digit());
    let speaks = among(value, STAND_INS) || among(value, SPEAKING);
    is_strong(value) || is_plain(value) && digits && !speaks && !is_name(value)
}

fn is_plain(value: &str) -> bool {
    value.len() <= LONGEST
        && value.bytes().all(|b| b.is_ascii_graphic())
        && is_value(value)
        && !is_filled_in(value)
        && !is_file(value)
        && !is_hash(value)
        && !is_number(value)
}

/// An identifier, or a path of them.
pub(super) fn is_name(value: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    value.split("::").flat_map(|path| path.split('.')).all(part)
}

/// A path with the name of a file at its end.
fn is_file(value: &str) -> bool {
    let Some((_, name)) = value.rsplit_once('/') else { return false };
    let end = name.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| {
        (2..=5).contains(&end.len()) && end.bytes().all(|b| b.is_ascii_lowercase())
    })
}

/// A hash that says which one it is.
fn is_hash(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["sha1", "sha256", "sha384", "sha512", "md5", "blake3"].iter().any(|kind| {
        lower.strip_prefix(kind).is_some_and(|rest| rest.starts_with(['-', ':', '=', '$']))
    })
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"));
    let all = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_');
    digits.is_some_and(|digits| digits.len() <= 16 && all(digits))
        || value.bytes().all(|b| b.is_ascii_digit() || b"_.,:-+eE".contains(&b))
}

/// Reports whether letters and digits are mixed as nobody writes them.
pub(super) fn is_random(value: &str) -> bool {
    segments(value).any(|part| {
        let bytes = part.as_bytes();
        let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
        let turns = bytes
            .windows(2)
            .filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit())
            .count();
        let len = bytes.len();
        len >= 6 && turns >= 2
            || len >= SHORTEST && turns >= 1 && digits >= 3
            || len >= 8 && digits == len
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_are_told_from_written_ones() {
        for value in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-live-4eC39HqLyjWDarjtT1zdp7dc",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AKIAIOSFODNN7EXAMPLE",
            "123e4567-e89b-12d3-a456-426614174000",
            "Tr0ub4dor&3-is-old",
            "0123456789abcdef0123456789abcdef",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF",
        ] {
            assert!(is_strong(value), "{value}");
        }
        for value in [
            "your-api-key-here",
            "my-cache-key-v1",
            "bert-base-uncased-v2",
            "settings.general.title2",
            "getUserAccessTokenFromRequest",
            "assets/app.3f2a1b9c.js",
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "0xdeadbeef12345678",
            "2026-11-23T04:36:06",
            "<your-token-1a2b3c>",
            "${{secrets.T0k3n1a2b}}",
            "xxxxxxxx1x2x3x4x",
            "correct horse 1a2b3c battery",
        ] {
            assert!(!is_strong(value), "{value}");
        }
        assert!(is_password("correct-horse-battery-9"));
        for value in ["correct-horse-battery", "wrong-password-1", "passwordField2"] {
            assert!(!is_password(value), "{value}");
        }
        assert!(is_variables("correct-horse-battery") && !is_variables("your-secret-value"));
    }
}
