//! Rules over the arrows between crates: layers point down, some crates stay apart, few in all.
//!
//! The picture is in ARCHITECTURE.md; this file is its enforced form. Tests may use haft-testkit,
//! which sees everything below the binary. It does not look into sources.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::{Package, Tree};

/// The crates of each layer, lowest first.
const LAYERS: &[&[&str]] = &[
    &["haft-types", "haft-text", "haft-shell"],
    &[
        "haft-host",
        "haft-sandbox",
        "haft-net",
        "haft-page",
        "haft-llm",
        "haft-session",
        "haft-policy",
        "haft-render",
        "haft-config",
    ],
    &["haft-tool", "haft-remote"],
    &["haft-agent", "haft-tools", "haft-mcp"],
    &["haft-tui", "haft-acp"],
    &["haft"],
];

/// Crates whose integration tests go through a crate above them: the pipeline is tried with the
/// tools that it is for.
const TESTED_THROUGH: &[(&str, &str)] = &[("haft-tool", "haft-tools")];

/// The arrows that are allowed within a layer.
const BESIDE: &[(&str, &str)] = &[("haft-host", "haft-sandbox"), ("haft-llm", "haft-net")];

/// Outside of the layers: what only tests use, and the chores.
const FOR_TESTS: &[&str] = &["haft-testkit", "haft-emulator"];
const CHORES: &str = "xtask";

/// Pairs that never meet, not even through others.
const NEVER_REACHES: &[(&str, &[&str])] = &[
    ("haft-tools", &["haft-llm", "haft-agent", "haft-session", "haft-mcp", "haft-tui", "haft-acp"]),
    ("haft-mcp", &["haft-llm", "haft-agent", "haft-tui", "haft-acp"]),
    ("haft-llm", &["haft-mcp", "haft-tui", "haft-acp"]),
    ("haft-tui", &["haft-mcp", "haft-acp", "haft-tools"]),
    ("haft-acp", &["haft-mcp", "haft-tui", "haft-tools"]),
];

/// Pairs that may meet through others, since a front end folds what the agent says.
const NEVER_NAMES: &[(&str, &[&str])] = &[("haft-tui", &["haft-llm"]), ("haft-acp", &["haft-llm"])];

/// More crates than this make a build that nobody waits for.
const MOST_CRATES: usize = 450;

/// Arrows between our crates point down, or along a declared pair.
pub(super) fn layers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.members() {
        let of_package = package.name.as_str();
        if of_package == CHORES || FOR_TESTS.contains(&of_package) {
            continue;
        }
        let Some(layer) = layer(&package.name) else {
            findings.push(Finding::new(
                &manifest(&package.name),
                1,
                format!("crate {} stands in no layer", package.name),
                "give it a place in ARCHITECTURE.md and in LAYERS of xtask/src/tidy/crates.rs",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let pair = (package.name.as_str(), name);
            let fault = match name {
                _ if FOR_TESTS.contains(&name) && dependency.for_tests => None,
                _ if FOR_TESTS.contains(&name) => Some("outside of its tests".to_owned()),
                _ if dependency.for_tests && TESTED_THROUGH.contains(&pair) => None,
                _ => self::layer(name)
                    .filter(|other| *other >= layer && !BESIDE.contains(&pair))
                    .map(|other| format!("but stands in layer {layer}, and {name} in {other}")),
            };
            if let Some(fault) = fault {
                findings.push(Finding::new(
                    &manifest(&package.name),
                    1,
                    format!("{} uses {name}, {fault}", package.name),
                    "turn the arrow round: a trait in the lower crate, implemented in the upper",
                ));
            }
        }
    }
    findings
}

/// Crates that nobody should have to build for each other stay apart.
pub(super) fn apart(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let remedy = "what it needs of the other is a small trait in haft-tool, made by the binary";
    for (from, others) in NEVER_NAMES {
        for package in tree.members().filter(|package| package.name == *from) {
            for other in others.iter().filter(|other| names(package, other)) {
                let wrong = format!("{from} uses {other}");
                findings.push(Finding::new(&manifest(from), 1, wrong, remedy));
            }
        }
    }
    for (from, others) in NEVER_REACHES {
        let reached = reached(tree, from);
        for other in others.iter().filter(|other| reached.contains(**other)) {
            let wrong = format!("{from} reaches {other}, by itself or through another crate");
            findings.push(Finding::new(&manifest(from), 1, wrong, remedy));
        }
    }
    findings
}

/// The whole build stays small enough to wait for.
pub(super) fn count(tree: &Tree) -> Vec<Finding> {
    if tree.packages.len() < MOST_CRATES {
        return Vec::new();
    }
    vec![Finding::new(
        "Cargo.lock",
        1,
        format!("{} crates in all, {MOST_CRATES} or more", tree.packages.len()),
        "see `cargo tree -d` for what comes twice, and leave out what is not needed",
    )]
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
}

fn manifest(name: &str) -> String {
    if name == CHORES { "xtask/Cargo.toml".to_owned() } else { format!("crates/{name}/Cargo.toml") }
}

fn names(package: &Package, other: &str) -> bool {
    package.dependencies.iter().any(|dependency| !dependency.for_tests && dependency.name == other)
}

/// The crates of the workspace that a crate is built with, tests apart.
fn reached<'a>(tree: &'a Tree, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for package in tree.members().filter(|package| package.name == name) {
            for dependency in package.dependencies.iter().filter(|it| !it.for_tests) {
                if reached.insert(dependency.name.as_str()) {
                    open.push(&dependency.name);
                }
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::crates;
    use super::*;

    fn wrongs(findings: &[Finding]) -> String {
        findings.iter().map(|finding| finding.wrong.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn arrows_down_beside_and_to_the_testkit_are_fine() {
        let tree = crates(&[
            ("haft-host", &["haft-types", "haft-sandbox", "tokio", "dev:haft-testkit"]),
            ("haft-llm", &["haft-net"]),
            ("haft-testkit", &["haft-host", "haft-llm"]),
            ("xtask", &["anyhow"]),
        ]);
        assert_eq!(wrongs(&layers(&tree)), "");
    }

    #[test]
    fn arrows_up_sideways_and_to_the_testkit_are_found() {
        let tree = crates(&[
            ("haft-types", &["haft-host"]),
            ("haft-sandbox", &["haft-host"]),
            ("haft-tool", &["haft-testkit"]),
            ("haft-text", &["dev:haft-types"]),
        ]);
        let findings = layers(&tree);
        assert_eq!(findings.len(), 4, "{}", wrongs(&findings));
        assert!(wrongs(&findings).contains("haft-types uses haft-host"));
        assert!(wrongs(&findings).contains("haft-testkit, outside of its tests"));
        assert_eq!(findings[0].file, "crates/haft-types/Cargo.toml");
    }

    #[test]
    fn a_crate_in_no_layer_is_found() {
        let findings = layers(&crates(&[("haft-new", &[])]));
        assert!(wrongs(&findings).contains("haft-new stands in no layer"));
    }

    #[test]
    fn crates_that_stay_apart_are_found_through_others() {
        let tree = crates(&[
            ("haft-tools", &["haft-tool"]),
            ("haft-tool", &["haft-llm"]),
            ("haft-mcp", &["haft-llm"]),
            ("haft-tui", &["haft-llm"]),
            ("haft-llm", &[]),
        ]);
        let found = wrongs(&apart(&tree));
        assert!(found.contains("haft-tools reaches haft-llm"), "{found}");
        assert!(found.contains("haft-mcp reaches haft-llm"), "{found}");
        assert!(found.contains("haft-tui uses haft-llm"), "{found}");
        let fine = crates(&[("haft-tui", &["haft-agent"]), ("haft-agent", &["haft-llm"])]);
        assert_eq!(wrongs(&apart(&fine)), "");
    }

    #[test]
    fn too_many_crates_are_found() {
        let mut tree = Tree::default();
        tree.packages.resize(MOST_CRATES - 1, Package::default());
        assert!(count(&tree).is_empty());
        tree.packages.push(Package::default());
        assert_eq!(count(&tree).len(), 1);
    }
}
