//! The other Unicode form of a pattern, for texts that look the same and have other characters.
//!
//! **Invariant:** a pattern of ASCII alone has no other form, and costs nothing. It searches
//! nothing itself.

use haft_text::names::{composed, decomposed};

/// A form and what it is called.
pub(super) type Form = (String, &'static str);

/// The composed form (NFC) of a pattern, and of one that is composed the decomposed one (NFD).
pub(super) fn other(pattern: &str, literal: bool) -> Option<Form> {
    if pattern.is_ascii() {
        return None;
    }
    let nfc = composed(pattern);
    if nfc != pattern {
        return Some((nfc.into_owned(), "NFC"));
    }
    let nfd = if literal { decomposed(pattern).into_owned() } else { apart(pattern) };
    (nfd != pattern).then_some((nfd, "NFD"))
}

/// A regular expression with its characters decomposed. What stands in a class stays, for there its
/// parts would be characters of their own; what is repeated stays together.
fn apart(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let (mut depth, mut signs) = (0_usize, pattern.chars().peekable());
    let mut buffer = [0; 4];
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => {
                out.push(sign);
                out.extend(signs.next());
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let parts = decomposed(sign.encode_utf8(&mut buffer));
        if depth > 0 || parts.chars().nth(1).is_none() {
            out.push(sign);
        } else if signs.peek().is_some_and(|next| "*+?{".contains(*next)) {
            out.push_str("(?:");
            out.push_str(&parts);
            out.push(')');
        } else {
            out.push_str(&parts);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_gives_the_other_and_classes_stay() {
        for (pattern, literal, is) in [
            ("\u{dc}ber", false, Some("U\u{308}ber")),
            ("U\u{308}ber", false, Some("\u{dc}ber")),
            ("\u{e9}+x\u{e9}", false, Some("(?:e\u{301})+xe\u{301}")),
            ("[\u{e9}a]\u{e9}", false, Some("[\u{e9}a]e\u{301}")),
            ("\\\u{e9}[[\u{e9}]\u{e9}]", false, None),
            ("[\u{e9}]", true, Some("[e\u{301}]")),
            ("\u{d55c}{2}", false, Some("(?:\u{1112}\u{1161}\u{11ab}){2}")),
            ("中文", false, None),
            ("plain", false, None),
        ] {
            let other = other(pattern, literal).map(|(form, _)| form);
            assert_eq!(other.as_deref(), is, "{pattern}");
        }
    }
}
