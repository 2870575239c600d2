//! Whether a value in a text looks like a secret, if only its name indicates one.
//!
//! **Invariant:** cautious. Words, identifiers, versions, file names, placeholders and what is
//! filled in elsewhere are never taken for a secret. Hiding them would harm whoever reads or edits
//! code.

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
    let repeated = |c: &char| value.chars().all(|other| other == *c);
    refers(value)
        || marked.iter().any(|mark| value.contains(mark))
        || value.to_ascii_lowercase().contains("xxxx")
        || value.chars().next().as_ref().is_some_and(repeated)
}

/// Reports whether it is a reference to something: `$NAME`, `%NAME%`, `<name>`, `@name`.
fn refers(value: &str) -> bool {
    let name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:/[]".contains(&b))
    };
    match value.as_bytes().first() {
        Some(b'$') => name(&value[1..]),
        Some(b'@') => name(&value[1..]) && !is_random(value),
        Some(b'%') => {
            let (first, rest) = value[1..].split_once('%').unwrap_or((&value[1..], ""));
            name(first) && (rest.is_empty() || rest.starts_with(['/', '\\']))
        }
        Some(b'<') => value.contains('>'),
        _ => value.ends_with('>') && value.contains('<'),
    }
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

/// Reports whether letters, digits and signs are mixed as nobody writes them.
pub(super) fn is_random(value: &str) -> bool {
    is_jumbled(value) || is_peppered(value) || is_numbered(value)
}

/// Words of two letters that stand in names.
const SHORT: &[&str] = &[
    "id", "db", "ui", "ip", "io", "os", "me", "an", "be", "is", "to", "of", "in", "on", "by", "as",
    "at", "or", "my", "no", "do", "go", "if", "it", "up", "us", "we", "js", "ts", "qa", "ci", "cd",
    "vm", "ok", "tx", "rx", "pk", "fk", "ad", "ai", "ml", "pr", "tz", "en", "de", "fr", "es", "re",
];

/// Whether letters of both cases are mixed, and too few of them are words.
fn is_jumbled(value: &str) -> bool {
    let both = value.bytes().any(|b| b.is_ascii_lowercase())
        && value.bytes().any(|b| b.is_ascii_uppercase());
    if !both || value.len() < SHORTEST {
        return false;
    }
    let (mut letters, mut strange, mut words) = (0, 0, 0);
    let runs = value.split(|c: char| !c.is_ascii_alphabetic()).filter(|run| !run.is_empty());
    for word in runs.flat_map(humps) {
        letters += word.len();
        words += 1;
        if !is_wordlike(word) {
            strange += word.len();
        }
    }
    letters >= 6 && strange >= 3 && strange * 5 >= letters || letters >= 10 && words * 3 >= letters
}

/// The words of a name such as `parseHTTPHeader`.
fn humps(name: &str) -> Vec<&str> {
    let (bytes, mut words, mut start) = (name.as_bytes(), Vec::new(), 0);
    for at in 1..bytes.len() {
        let upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
        let lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
        if upper(at) && (lower(at - 1) || lower(at + 1)) {
            words.push(&name[start..at]);
            start = at;
        }
    }
    words.push(&name[start..]);
    words
}

/// Whether letters may be a word: neither too short nor too many consonants in a row.
fn is_wordlike(word: &str) -> bool {
    let vowel = |c: &char| "aeiouyAEIOUY".contains(*c);
    if word.len() <= 2 {
        return SHORT.iter().any(|short| short.eq_ignore_ascii_case(word));
    }
    if word.bytes().all(|b| b.is_ascii_uppercase()) {
        // Three or four of them are the short form of something.
        return word.len() <= 4 || word.chars().any(|c| vowel(&c));
    }
    let mut run = 0;
    let most = word.chars().map(|c| {
        run = if vowel(&c) { 0 } else { run + 1 };
        run
    });
    let rare = word.bytes().filter(|b| b"qxzjQXZJ".contains(b)).count();
    most.max().unwrap_or(0) <= 4 && word.chars().any(|c| vowel(&c)) && rare * 5 <= word.len()
}

/// Whether digits and signs that stand in no name change with letters all the time.
fn is_peppered(value: &str) -> bool {
    let kind = |b: u8| -> u32 {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            b'-' | b'_' | b'.' | b'/' | b':' | b' ' | b',' => 0,
            _ => 3,
        }
    };
    let kinds: Vec<u32> = value.bytes().map(kind).collect();
    let of = |kind: u32| kinds.iter().filter(|one| **one == kind).count();
    let turns = kinds.windows(2).filter(|two| two[0] * two[1] > 0 && two[0] != two[1]).count();
    value.len() >= SHORTEST && of(3) >= 2 && of(2) >= 2 && turns >= 6
}

/// Whether digits stand among letters in more places than a name has them.
fn is_numbered(value: &str) -> bool {
    segments(value).any(|part| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        if word.len() < part.len() && among(word, SPEAKING) {
            // As in `password123456`.
            return false;
        }
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
            "lWMmaKRfemq#zWJB",
            "qTzRbWkXpLmNvCsDfGhJyKuE",
            "a3#k9$x2!p5q8",
            "@kL9#vQw2!zX",
            "$h7Kq!zR4w*Lm",
            "%Qw4<zX>kL9vB",
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
            "parseXMLHttpRequestHeaders",
            "com.example.MyApplication.AccessToken",
            "Content-Type:application/json;charset=UTF-8",
            "password123456",
            "Secret20261123",
            "$HOME/.config/Token1a2b3c",
            "%APPDATA%",
            "@Value.apiToken",
            "<Your-Token-1a2b3c>",
            "ThisIsYourPersonalAccessToken",
            "rgba(255,255,255,0.5)",
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
