//! Names the variables that were withheld from a command, where that matters to it.
//!
//! **Invariant:** names alone, never a value. One line, and none for a command that has nothing to
//! do with them.

use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::Cx;

/// Most variables that are named.
const NAMED: usize = 5;
/// What programs say that were not let in, in lower case.
const LOCKED_OUT: &[&str] = &[
    "unauthorized",
    "unauthenticated",
    "authentication",
    "not authenticated",
    "not logged in",
    "credentials",
    "api key",
    "api_key",
    "401",
    "403 forbidden",
];

/// Set once all of them were named to somebody who was not let in.
#[derive(Debug, Default)]
struct AllNamed(AtomicBool);

/// Says which variables were withheld from a command: those that it names, or that it complained
/// of; all of them, once in a session, where it was not let in somewhere. `said` is what one that
/// failed printed.
/// Nothing is said of those that it was `given`.
pub(super) fn note(
    command: &str,
    given: &[(String, String)],
    said: Option<[&str; 2]>,
    cx: &Cx,
) -> Option<String> {
    let mut withheld = cx.host.withheld();
    withheld.retain(|name| !given.iter().any(|(given, _)| given == name));
    if withheld.is_empty() {
        return None;
    }
    withheld.sort();
    let texts: Vec<&str> = std::iter::once(command).chain(said.into_iter().flatten()).collect();
    let mut told: Vec<&String> =
        withheld.iter().filter(|name| texts.iter().any(|text| names(text, name))).collect();
    let named = || cx.session().map.get::<AllNamed>();
    if told.is_empty()
        && said.is_some_and(|said| said.iter().any(|said| locked_out(said)))
        && !named().0.swap(true, Ordering::Relaxed)
    {
        told = withheld.iter().collect();
    }
    line(&told)
}

fn line(told: &[&String]) -> Option<String> {
    let (is, them) = match told {
        [] => return None,
        [_] => ("is", "it"),
        _ => ("are", "them"),
    };
    let named: Vec<&str> = told.iter().take(NAMED).map(|name| name.as_str()).collect();
    let more = match told.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = named.join(", ");
    Some(format!(
        "[{named}{more} {is} withheld from commands, as what looks like a secret; the person can let \
         {them} through by shell.let_through in their settings]"
    ))
}

/// Reports whether a text has this name as a word that is not only set there.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(part) && !after.starts_with(part) && !after.starts_with('=')
    })
}

fn locked_out(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    LOCKED_OUT.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_as_a_word_alone() {
        for text in
            ["echo $GH_TOKEN", "echo \"${GH_TOKEN:-}\"", "printenv GH_TOKEN", "set GH_TOKEN."]
        {
            assert!(names(text, "GH_TOKEN"), "{text}");
        }
        for text in ["echo $MY_GH_TOKEN", "GH_TOKEN=x gh", "echo $GH_TOKENS", "gh"] {
            assert!(!names(text, "GH_TOKEN"), "{text}");
        }
        let names: Vec<String> = (0..7).map(|n| format!("K{n}")).collect();
        let all: Vec<&String> = names.iter().collect();
        let told = line(&all).unwrap();
        assert!(told.starts_with("[K0, K1, K2, K3, K4 and 2 more are withheld"), "{told}");
        assert!(line(&all[..1]).unwrap().contains("let it through"));
    }
}
