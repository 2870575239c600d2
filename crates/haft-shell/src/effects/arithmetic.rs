//! Arithmetic: what of it runs nothing.
//!
//! The shell evaluates the value of a variable in it as an expression of its own, and a subscript
//! in one runs the substitutions that it holds, so that data becomes commands.

/// Whether an expression holds nothing but numbers, operators, and variables that are numbers.
pub(crate) fn is_safe(text: &str, is_number: impl Fn(&str) -> bool) -> bool {
    let operators = "+-*/%<>=!&|^~?:,;() \t\n";
    names(text).iter().all(|name| is_number(name))
        && text.bytes().all(|c| {
            c == b'_' || c == b'$' || c.is_ascii_alphanumeric() || operators.contains(char::from(c))
        })
        && !text.contains("$(")
        && !text.ends_with('$')
}

/// The variables that an expression reads or sets.
pub(crate) fn names(text: &str) -> Vec<&str> {
    text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()) && !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_safe() {
        let is_known = |name: &str| name == "n";
        for text in ["1+2", "n * (3 - $n)", "n++", "0x1f << 2", "n > 3 ? 1 : 0", "n = 0"] {
            assert!(is_safe(text, is_known), "{text}");
        }
        for text in ["a", "n + m", "n[1]", "$(x)", "`x`", "${n}", "a[$(x)]", "n + $", "n;m", "'n'"]
        {
            assert!(!is_safe(text, is_known), "{text}");
        }
    }
}
