//! The rule over words: no file names a folder of somebody's machine or a host of a registry.
//!
//! Such a word works for one person and breaks, or gives away something, for everybody else. This
//! file is the only one that may hold them. It does not judge style.

use super::Finding;
use super::tree::Tree;

/// Where the words themselves stand.
const THIS: &str = "xtask/src/tidy/words.rs";

/// A text, and what to write in its place.
const WORDS: &[(&str, &str)] = &[
    ("/work/main", MACHINE),
    ("/work/shared", MACHINE),
    ("/work/.", MACHINE),
    ("/root/.", MACHINE),
    ("/root/work", MACHINE),
    ("static.crates.io", REGISTRY),
    ("index.crates.io", REGISTRY),
    ("registry.npmjs.org", REGISTRY),
    ("files.pythonhosted.org", REGISTRY),
    ("pypi.org", REGISTRY),
    ("deb.debian.org", REGISTRY),
    ("security.debian.org", REGISTRY),
];

const MACHINE: &str = "write a path relative to the repository, or a neutral one like /project";
const REGISTRY: &str = "name the package; whoever installs it has a registry of their own";

/// Folders of people that stand for nobody.
const NOBODY: &[&str] = &["user", "me", "you", "u"];

/// No file holds one of the words.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path != THIS) {
        for (index, line) in file.text.lines().enumerate() {
            for (word, remedy) in WORDS.iter().filter(|(word, _)| line.contains(word)) {
                let wrong = format!("the line holds {word:?}");
                findings.push(Finding::new(&file.path, index + 1, wrong, *remedy));
            }
            for name in homes(line).filter(|name| !NOBODY.contains(name)) {
                let wrong = format!("the line names the home of {name:?}");
                findings.push(Finding::new(&file.path, index + 1, wrong, MACHINE));
            }
        }
    }
    findings
}

/// The names of people whose homes a line holds.
fn homes(line: &str) -> impl Iterator<Item = &str> {
    ["/home/", "/Users/"].into_iter().flat_map(|start| line.split(start).skip(1)).filter_map(
        |rest| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            name.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(name)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    #[test]
    fn each_word_is_found() {
        for (word, _) in WORDS {
            let text = format!("fine\nsee {word}x\n");
            let findings = check(&files(&[("docs/a.md", &text)]));
            assert!(findings.iter().any(|finding| finding.line == 2), "{word}");
            assert_eq!(check(&files(&[(THIS, &text)])), []);
        }
    }

    #[test]
    fn homes_of_somebody_are_found_and_those_of_nobody_are_not() {
        let text =
            "/home/user/a /home/*/b /home/../c /home/me /Users/you\n/home/ada/x\n/Users/bob\n";
        let lines: Vec<_> = check(&files(&[("a.md", text)])).iter().map(|it| it.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
