//! Detects commands that can run without haft's wrapper script.
//!
//! A command runs in a script that reports the folder in which it ended. A command that only reads
//! and does not change the folder is run directly instead. The shell then starts sooner, and
//! becomes a single program rather than starting it.
//!
//! **Invariant:** the decision is made from the text alone. A text whose words could be assembled
//! from parts is never taken for a command that stays in its folder.

/// What changes the folder of a shell.
const MOVES: [&str; 3] = ["cd", "pushd", "popd"];

/// Whether this is commands of plain words with pipes between them, none of which changes the
/// folder of the shell. Quotes stand around whole words; nothing in a word is expanded but `~` and
/// patterns, which name files.
pub(crate) fn moves_nowhere(command: &str) -> bool {
    let mut open = None;
    // A word begins with the text.
    let mut before = ' ';
    for here in command.chars() {
        let is_quote = matches!(here, '\'' | '"');
        let ends = !is_quote && open.is_none() && matches!(before, '\'' | '"');
        let allowed = match here {
            '\'' | '"' if open == Some(here) => {
                open = None;
                true
            }
            '\'' | '"' if open.is_none() => {
                open = Some(here);
                matches!(before, ' ' | '=')
            }
            // Behind the end of a quote.
            _ if ends => matches!(here, ' ' | '|'),
            _ => here.is_alphanumeric() || " _-./=,:@%+|~*?[]^'\"".contains(here),
        };
        if !allowed {
            return false;
        }
        before = here;
    }
    let mut words = command.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
    open.is_none() && !words.any(|word| MOVES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pipes_move_nowhere() {
        for command in [
            "true",
            "ls -la src",
            "git log --oneline -5 | head -3",
            "grep -rn 'fn main' --include=*.rs .",
            "rg \"it's\" src/[ab]?.rs",
            "wc -l ~/notes.md",
            "cat abcd acd cd.txt",
        ] {
            assert!(moves_nowhere(command), "{command}");
        }
    }

    #[test]
    fn what_may_move_does_not_pass() {
        for command in [
            "cd src",
            "pushd src",
            "ls | cd src",
            "\"cd\" src",
            "'cd' src",
            "c'd' src",
            "'c'd src",
            "c\"\"d src",
            "c''d src",
            "''cd src",
            "c\\d src",
            "c{d,} src",
            "$X src",
            "`x` src",
            "ls; cd src",
            "ls && cd src",
            "ls\ncd src",
            "(cd src)",
            "ls 'open",
            "x=cd",
            "ls &",
            "ls > f",
        ] {
            assert!(!moves_nowhere(command), "{command}");
        }
    }
}
