//! Detects state that a command of one process sets and that nothing reads any more.
//!
//! **Invariant:** a script that does anything else gets no hint.

use haft_shell::{Command, Kind};

/// Longest script that is looked at, in bytes.
const LONGEST: usize = 10_000;
/// What a script that sets something holds; others need not be read, which would be done before the answer.
const SIGNS: [&str; 13] = [
    ". ", "=", "(", "function", "export", "readonly", "declare", "typeset", "alias", "set",
    "source", "shopt", "umask",
];

/// What is said of a script that does nothing but set what ends with its shell; none for any other.
pub(super) fn note(command: &str) -> Option<String> {
    let sets = SIGNS.iter().any(|sign| command.contains(sign));
    if !sets || command.len() > LONGEST {
        return None;
    }
    let script = haft_shell::parse(command, &mut || true).ok()?;
    let mut steps =
        script.commands.iter().filter(|step| !step.place.is_substituted && !step.place.in_function);
    let mut sets = !script.functions.is_empty();
    let does_no_more = steps.all(|step| match does(step) {
        Does::Sets => {
            sets = true;
            true
        }
        Does::Nothing => true,
        Does::More => false,
    });
    (does_no_more && sets)
        .then(|| "[what this sets ends with this call: give session to keep it]".to_owned())
}

/// What a step does for those after it.
enum Does {
    Sets,
    Nothing,
    More,
}

fn does(step: &Command) -> Does {
    if step.kind != Kind::Simple || step.place.is_subshell || !step.redirects.is_empty() {
        return Does::More;
    }
    let Some((name, words)) = step.words.split_first() else { return Does::Sets };
    let Some(name) = name.literal() else { return Does::More };
    let starts: Vec<String> = words.iter().map(haft_shell::Word::start).collect();
    let option = |letters: &str| {
        let is_one =
            |word: &String| word.starts_with('-') && word.contains(|c| letters.contains(c));
        starts.iter().any(is_one)
    };
    let named = starts.iter().any(|word| !word.starts_with('-'));
    let sets = match name.as_str() {
        ":" | "true" | "cd" | "pushd" | "popd" => return Does::Nothing,
        "export" | "readonly" | "declare" | "typeset" => named && !option("pfF"),
        "alias" => starts.iter().any(|word| word.contains('=')),
        "unset" | "unalias" | "source" | "." | "set" => !words.is_empty(),
        "shopt" => option("su") && named,
        "umask" => named,
        _ => false,
    };
    if sets { Does::Sets } else { Does::More }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_nothing_but_set_is_told() {
        for told in [
            "export A=1",
            "A=1",
            "A=1 B=$(date)",
            "export A=1 B=2\nexport -n C",
            "alias ll='ls -l'",
            "source venv/bin/activate",
            ". ./env && cd src",
            "cd src; export A=\"$PWD\"",
            "set -e",
            "shopt -s globstar",
            "f() { make; }",
            "declare -x A=1; unset B; umask 022; true",
        ] {
            assert!(note(told).is_some(), "{told}");
        }
        for untold in [
            "",
            "cd src",
            "true",
            "export A=1 && make",
            "A=1 make",
            "export -p",
            "declare -f f",
            "alias",
            "alias ll",
            "set",
            "shopt globstar",
            "umask",
            "(export A=1)",
            "export A=1 > f",
            "export A=1 | cat",
            "f() { make; }; f",
            "if true; then export A=1; make; fi",
            "if",
            "$x=1",
            "source",
        ] {
            assert!(note(untold).is_none(), "{untold}");
        }
    }
}
