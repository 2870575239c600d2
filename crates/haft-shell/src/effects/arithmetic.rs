//! Arithmetic: what of it runs nothing.
//!
//! The shell evaluates the value of a variable in it as an expression of its own, and a subscript
//! in one runs the substitutions that it holds, so that data becomes commands.

use crate::quotes::is_name;

/// Whether an expression holds nothing but numbers, operators, and variables that are numbers.
pub(crate) fn is_safe(text: &str, is_number: impl Fn(&str) -> bool) -> bool {
    names(text).is_some_and(|names| names.iter().all(|name| is_number(name)))
}

/// The variables that an expression reads or sets, where it is sure to hold no other; none where it
/// may, or may run something.
pub(crate) fn names(text: &str) -> Option<Vec<&str>> {
    let (mut all, mut rest) = (Vec::new(), text);
    // Whether what stands before ends in a character of a name: what is put in behind it becomes
    // a part of that.
    let mut is_word = false;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("$(").and_then(count) {
            if is_word || after.starts_with(is_part) {
                return None;
            }
            rest = after;
            is_word = true;
        } else if c == '$' {
            let (name, after) = expansion(&rest[1..])?;
            if is_word || after.starts_with(is_part) {
                return None;
            }
            all.extend(name);
            rest = after;
            is_word = true;
        } else if is_part(c) {
            let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
            if is_word || !is_name(word) && !is_constant(word) {
                return None;
            }
            all.extend(Some(word).filter(|word| is_name(word)));
            rest = &rest[word.len()..];
            is_word = true;
        } else if "+-*/%<>=!&|^~?:,;() \t\n".contains(c) {
            rest = &rest[1..];
            is_word = false;
        } else {
            return None;
        }
    }
    Some(all)
}

/// What is behind the end of a substitution that says no more than a count: its last command is `wc`
/// with one option, of its input. What runs in it is a command of its own.
fn count(text: &str) -> Option<&str> {
    let (inner, after) = text.split_once(')')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./|<".contains(c);
    if !inner.chars().all(is_plain) || inner.contains("||") || inner.contains("<<") {
        return None;
    }
    let words: Vec<&str> = inner.rsplit('|').next()?.split_whitespace().collect();
    let is_count = match words[..] {
        ["wc", "-l" | "-c" | "-w" | "-m"] => inner.contains('|'),
        ["wc", "-l" | "-c" | "-w" | "-m", "<", file] => !file.contains('<'),
        _ => false,
    };
    is_count.then_some(after)
}

/// What is behind a dollar: the variable whose value is put in, none where that is a number in any
/// case, and what follows.
fn expansion(text: &str) -> Option<(Option<&str>, &str)> {
    if let Some(after) = text.strip_prefix(['#', '?', '$']) {
        return Some((None, after));
    }
    if let Some(braced) = text.strip_prefix('{') {
        let (inner, after) = braced.split_once('}')?;
        let length = inner.strip_prefix('#').map(|name| name.trim_end_matches("[@]"));
        return match length {
            Some(name) => is_name(name).then_some((None, after)),
            None => is_name(inner).then_some((Some(inner), after)),
        };
    }
    let (name, after) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    is_name(name).then_some((Some(name), after))
}

fn is_part(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// Whether a word is a number as it is written.
fn is_constant(word: &str) -> bool {
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    hex.map_or_else(
        || word.bytes().all(|c| c.is_ascii_digit()),
        |digits| digits.bytes().all(|c| c.is_ascii_hexdigit()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAFE: &[&str] = &[
        "1+2",
        "n * (3 - $n)",
        "n++",
        "0x1f << 2",
        "n > 3 ? 1 : 0",
        "n = 0",
        "${n} - 1",
        "$# - $?",
        "${#x} + ${#a[@]}",
        "$(wc -l < a.txt) + 1",
        "n - $(cat a | grep x | wc -l)",
    ];
    const UNSAFE: &[&str] = &[
        "a",
        "n + m",
        "n[1]",
        "$(x)",
        "`x`",
        "n + $",
        "n;m",
        "'n'",
        "$1",
        "$1 > 3",
        "$0",
        "$*",
        "$@",
        "$-",
        "$!",
        "$_",
        "${1}",
        "${n:-m}",
        "${!n}",
        "a$n",
        "n$n",
        "1$n",
        "$n$n",
        "${n}n",
        "$#n",
        "${#}",
        "${#a[n]}",
        "10#n",
        "1n",
        "n\\\n",
        "\"n\"",
        "$'n'",
        "n.n",
        "$[n]",
        "é",
        "$(wc -l a)",
        "$(wc -l)",
        "$(x || wc -l)",
        "$(x # | wc -l)",
        "$(x; wc -l < a)",
        "$(wc -l < a)1",
        "1$(wc -l < a)",
        "$(x\n| wc -l)",
        "$(echo 'a| wc -l)",
        "$(wc -l <(x))",
        "$(cat a)",
        "$(wc -l <<x)",
    ];

    #[test]
    fn only_numbers_are_safe() {
        let is_known = |name: &str| name == "n";
        for text in SAFE {
            assert!(is_safe(text, is_known), "{text}");
        }
        for text in UNSAFE {
            assert!(!is_safe(text, is_known), "{text}");
        }
    }
}
