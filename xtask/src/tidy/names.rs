//! Names that say nothing to who searches for them: participles as nouns, and verbs of one's own.
//!
//! It judges modules, types, traits and public functions. Variants, locals, fields and compounds are
//! free: what stands around them says what they mean.

use super::Finding;
use super::source::{Source, is_word, occurrences};
use super::tree::Tree;

/// No module, type or trait has such a name.
const TYPES: &[&str] = &[
    "Found", "Told", "Said", "Kept", "Wanted", "Left", "Made", "Taken", "Named", "Given", "Held",
    "Seen", "Came", "Gone", "Handed", "Asked", "Sought", "Born", "Lost", "Mended", "Becomes",
    "Stays", "Apart", "Own", "Which", "Wish", "What", "Where", "How",
];
/// No module and no public function has such a name.
const FUNCTIONS: &[&str] = &["told", "tell", "said", "led", "come", "leans", "gropes", "settle"];
/// Read as they are until they are written anew: the reader of commands, and the shell's grammar.
const EXEMPT: &[&str] = &["crates/haft-shell/", "crates/haft-policy/src/command/"];

/// Names are terms that a newcomer can search for.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        if EXEMPT.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for (at, name) in vague(source) {
            let wrong = format!("the name {name} says nothing to who searches for it");
            let remedy = "name what it is by the standard term of the field";
            findings.push(Finding::new(&file.path, file.line(at), wrong, remedy));
        }
    }
    findings
}

/// Where vague names are defined, in order.
fn vague(source: &Source) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    for word in ["struct", "enum", "union", "trait", "type"] {
        let names = defined(source, word);
        all.extend(names.filter(|(_, name)| TYPES.contains(name)));
    }
    all.extend(defined(source, "mod").filter(|(_, name)| {
        FUNCTIONS.contains(name) || TYPES.iter().any(|taken| taken.eq_ignore_ascii_case(name))
    }));
    all.extend(
        defined(source, "fn")
            .filter(|(at, name)| FUNCTIONS.contains(name) && is_public(source, *at)),
    );
    all.sort_unstable();
    all
}

/// Names behind a keyword, each with where the keyword stands.
fn defined<'s>(source: &'s Source, word: &'s str) -> impl Iterator<Item = (usize, &'s str)> {
    occurrences(&source.code, word).map(move |at| {
        let rest = source.code[at + word.len()..].trim_start();
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        (at, &rest[..end])
    })
}

/// Whether the item whose keyword stands there is seen outside its module.
fn is_public(source: &Source, at: usize) -> bool {
    let before = &source.code[..at];
    let from = before.rfind([';', '{', '}', ']']).map_or(0, |at| at + 1);
    occurrences(&before[from..], "pub").next().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    #[test]
    fn vague_names_are_found_where_they_are_defined_and_nowhere_else() {
        let text = "//! M.\nstruct Found;\npub enum Which { Told }\nmod told;\npub(crate) async fn tell() {}\n\
                    fn said() {}\nstruct FoundLines;\n// struct Kept;\nconst A: &str = \"struct Kept\";\n\
                    pub struct S { pub told: u8 }\nfn told() {}\n";
        let findings = check(&files(&[("crates/haft-tools/src/a.rs", text)]));
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3, 4, 5], "{findings:?}");
        assert_eq!(check(&files(&[("crates/haft-shell/src/a.rs", text)])), []);
    }
}
