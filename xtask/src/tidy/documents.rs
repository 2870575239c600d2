//! Rules over documents: those that must be there are, and their generated parts are fresh.
//!
//! It does not know how a part is generated: see [`crate::docs`].

use super::Finding;
use super::tree::Tree;

/// Documents that others point to.
const WANTED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/environment.md",
    "docs/measured.md",
];

/// Every wanted document is there, and every generated part is as it would be generated.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let missing = WANTED
        .iter()
        .filter(|path| tree.file(path).is_none())
        .map(|path| Finding::new(path, 1, "the document is missing", "write it"));
    let stale = tree
        .stale
        .iter()
        .map(|(path, wrong)| Finding::new(path, 1, wrong, "run `cargo xtask docs`"));
    missing.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    #[test]
    fn missing_and_stale_documents_are_found() {
        let all: Vec<_> = WANTED.iter().map(|path| (*path, "text")).collect();
        let mut tree = files(&all);
        assert_eq!(check(&tree), []);
        tree.stale.push(("README.md".to_owned(), "the part is stale".to_owned()));
        tree.files.remove(1);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(found, ["ARCHITECTURE.md", "README.md"]);
    }
}
