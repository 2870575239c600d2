//! `cargo xtask tidy`: the house rules that no compiler knows.
//!
//! Each rule is one function from the [`Tree`] to its findings, and stands in one list. The tree is
//! read once and held as data, so that every rule can be shown a planted fault by its tests. A
//! finding says where, what is wrong, and what to do. Rules do not change anything.

mod crates;
mod documents;
mod filters;
mod imports;
mod licences;
mod lists;
mod mute;
mod names;
mod sizes;
mod source;
mod tree;
mod words;

use std::fmt;

use anyhow::Result;

use self::tree::Tree;
use crate::Usage;
use crate::project::Project;

/// One house rule.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// Every rule, in the order in which they run.
const RULES: &[Rule] = &[
    Rule { name: "layers", check: crates::layers },
    Rule { name: "apart", check: crates::apart },
    Rule { name: "crate-count", check: crates::count },
    Rule { name: "licences", check: licences::check },
    Rule { name: "file-length", check: sizes::files },
    Rule { name: "function-length", check: sizes::functions },
    Rule { name: "module-docs", check: sizes::headers },
    Rule { name: "imports", check: imports::check },
    Rule { name: "tool-list", check: lists::tools },
    Rule { name: "environment", check: lists::environment },
    Rule { name: "documents", check: documents::check },
    Rule { name: "words", check: words::check },
    Rule { name: "vague-names", check: names::check },
    Rule { name: "mute", check: mute::check },
    Rule { name: "test-filters", check: filters::check },
];

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// Relative to the root, with `/` between the parts.
    file: String,
    /// From 1.
    line: usize,
    /// What is wrong, with the offending value.
    wrong: String,
    /// What to do about it.
    remedy: String,
}

impl Finding {
    fn new(file: &str, line: usize, wrong: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, wrong: wrong.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}: {}", self.file, self.line, self.wrong, self.remedy)
    }
}

/// The names of the rules, in order.
pub(crate) fn rule_names() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.name).collect()
}

/// Runs the rules that are named, or all; `false` when something was found.
///
/// # Errors
///
/// When a rule is not known or the tree cannot be read.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    for word in arguments {
        if !RULES.iter().any(|rule| rule.name == word) {
            let names = rule_names().join(", ");
            return Err(Usage(format!("there is no rule {word:?}; the rules are {names}")).into());
        }
    }
    let tree = Tree::read(project)?;
    let mut found = 0;
    for rule in RULES {
        if !arguments.is_empty() && !arguments.iter().any(|word| word == rule.name) {
            continue;
        }
        let findings = (rule.check)(&tree);
        found += findings.len();
        for finding in &findings {
            println!("{finding} [{}]", rule.name);
        }
    }
    println!("tidy: {} files, {} crates, {found} findings", tree.files.len(), tree.packages.len());
    Ok(found == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_place_fault_and_remedy() {
        let finding = Finding::new("a/b.rs", 7, "is 900 lines long", "split it");
        assert_eq!(finding.to_string(), "a/b.rs:7: is 900 lines long: split it");
    }

    #[test]
    fn every_rule_has_its_own_name() {
        let mut names = rule_names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }

    #[test]
    fn an_unknown_rule_is_a_usage_error() {
        let error = run(&Project::find().unwrap(), &["sizes".to_owned()]).unwrap_err();
        assert!(error.is::<Usage>());
    }

    #[test]
    fn an_empty_tree_has_no_findings_but_those_of_missing_documents() {
        let tree = Tree::default();
        for rule in RULES {
            let findings = (rule.check)(&tree);
            assert!(findings.is_empty() || rule.name == "documents", "{}: {findings:?}", rule.name);
        }
    }
}
