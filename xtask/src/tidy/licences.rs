//! The rule over licences: every crate can be had under one that this project may ship.
//!
//! Reads the SPDX expression of each manifest, `AND`, `OR`, `WITH`, brackets, and the old `/` for
//! `OR`. An expression that it cannot read is a finding, never a pass. It does not read licence
//! files.

use super::Finding;
use super::tree::Tree;

/// Licences that may be shipped, without copyleft beyond that of single files.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Every crate of the build has an allowed licence.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let remedy = "take another crate, or argue for the licence in xtask/src/tidy/licences.rs";
    let finding = |wrong: String| Finding::new("Cargo.lock", 1, wrong, remedy);
    let mut findings = Vec::new();
    for package in &tree.packages {
        let name = format!("{} {}", package.name, package.version);
        match package.licence.as_deref().map(|text| (text, is_allowed(text))) {
            Some((_, Some(true))) => {}
            Some((text, Some(false))) => findings.push(finding(format!("{name} is under {text}"))),
            Some((text, None)) => {
                findings
                    .push(finding(format!("{name} has a licence that cannot be read: {text:?}")));
            }
            None => findings.push(finding(format!("{name} names no licence"))),
        }
    }
    findings
}

/// Whether an expression can be met by allowed licences alone; `None` when it cannot be read.
fn is_allowed(expression: &str) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let value = any(&mut rest)?;
    rest.is_empty().then_some(value)
}

fn any(rest: &mut &[&str]) -> Option<bool> {
    let mut value = all(rest)?;
    while take(rest, "OR") {
        value |= all(rest)?;
    }
    Some(value)
}

fn all(rest: &mut &[&str]) -> Option<bool> {
    let mut value = one(rest)?;
    while take(rest, "AND") {
        value &= one(rest)?;
    }
    Some(value)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    if take(rest, "(") {
        let value = any(rest)?;
        return take(rest, ")").then_some(value);
    }
    let (name, tail) = rest.split_first()?;
    if matches!(*name, ")" | "AND" | "OR" | "WITH") {
        return None;
    }
    *rest = tail;
    let mut name = (*name).to_owned();
    if take(rest, "WITH") {
        let (exception, tail) = rest.split_first()?;
        name = format!("{name} WITH {exception}");
        *rest = tail;
    }
    Some(ALLOWED.contains(&name.as_str()))
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, tail)) if *first == word => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::crates;
    use super::*;

    #[test]
    fn expressions_are_read_as_they_are_meant() {
        let cases = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT OR GPL-3.0", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT AND (GPL-3.0 OR ISC)", Some(true)),
            ("GPL-3.0 OR MIT AND LGPL-2.1", Some(false)),
            ("MIT/Apache-2.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("GPL-2.0 WITH Classpath-exception-2.0", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT ISC", None),
            ("MIT WITH", None),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_allowed(expression), expected, "{expression:?}");
        }
    }

    #[test]
    fn copyleft_and_silence_are_found() {
        let mut tree = crates(&[("one", &[]), ("two", &[]), ("three", &[])]);
        assert!(check(&tree).is_empty());
        tree.packages[0].licence = Some("AGPL-3.0-only".to_owned());
        tree.packages[1].licence = None;
        tree.packages[2].licence = Some("LICENSE".to_owned());
        let findings = check(&tree);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].wrong.contains("AGPL-3.0-only"));
    }
}
