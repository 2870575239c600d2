//! Filters of tests match a test. One that matches none protects nothing, and says so nowhere: a test that
//! was moved or renamed would run beside others, or not at all.
//!
//! Names of tests are worked out from the sources: the path of the module, then the function.

use regex::Regex;

use super::Finding;
use super::source::{Source, is_word, occurrences};
use super::tree::{File, Tree};

/// Where the filters of the test runner are.
const RUNNER: &str = ".config/nextest.toml";
/// Where the soaks are listed.
const SOAKS: &str = "xtask/src/soak/mod.rs";

/// Every filter matches a test.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let tests = tests(tree);
    let mut findings = Vec::new();
    for (file, at, filter) in filters(tree) {
        let matches = match &filter {
            Filter::Pattern(pattern) => match Regex::new(pattern) {
                Ok(pattern) => tests.iter().any(|(_, name)| pattern.is_match(name)),
                Err(_) => false,
            },
            Filter::Part { packages, part } => {
                let has_one = |package: &String| {
                    tests.iter().any(|(of, name)| of == package && name.contains(part))
                };
                packages.iter().all(has_one)
            }
        };
        if !matches {
            let text = match filter {
                Filter::Pattern(text) | Filter::Part { part: text, .. } => text,
            };
            let wrong = format!("the filter {text:?} matches no test");
            let remedy = "write the name that the test has now";
            findings.push(Finding::new(&file.path, file.line(at), wrong, remedy));
        }
    }
    findings
}

enum Filter {
    Pattern(String),
    Part { packages: Vec<String>, part: String },
}

/// The filters, each with where it stands.
fn filters(tree: &Tree) -> Vec<(&File, usize, Filter)> {
    let mut all = Vec::new();
    if let Some(file) = tree.file(RUNNER) {
        for (at, _) in file.text.match_indices("test(/") {
            let rest = &file.text[at + "test(/".len()..];
            let pattern = rest.split_once("/)").map_or(rest, |(pattern, _)| pattern);
            all.push((file, at, Filter::Pattern(pattern.to_owned())));
        }
    }
    if let Some(file) = tree.file(SOAKS) {
        let entries = file.text.match_indices("Soak {").filter(|(at, _)| {
            file.text[at + "Soak {".len()..].trim_start().starts_with("name: \"")
        });
        for (at, _) in entries {
            let entry = &file.text[at..];
            let entry = &entry[..entry.find('}').unwrap_or(entry.len())];
            let quoted = |key: &str, end: &str| {
                let rest = entry.split_once(key)?.1;
                Some(rest.split_once(end)?.0.split('"').skip(1).step_by(2).map(str::to_owned))
            };
            let packages = quoted("packages:", "]").into_iter().flatten().collect();
            // A soak of every test has no filter.
            let Some(part) = quoted("tests:", ",").and_then(|mut all| all.next()) else { continue };
            all.push((file, at, Filter::Part { packages, part }));
        }
    }
    all
}

/// Package and name of every test.
fn tests(tree: &Tree) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (file, source) in tree.rust() {
        let Some(package) = file.package() else { continue };
        let module = module_of(&file.path);
        for (at, name) in functions(source) {
            let inner = around(source, at);
            let parts = module.iter().map(String::as_str).chain(inner).chain([name]);
            all.push((package.to_owned(), parts.collect::<Vec<_>>().join("::")));
        }
    }
    all
}

/// The modules that a file is in, from the root of its crate.
fn module_of(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let root = parts.iter().position(|part| matches!(*part, "src" | "it")).map_or(0, |at| at + 1);
    let mut module: Vec<String> = parts[root..].iter().map(|part| (*part).to_owned()).collect();
    let last = module.pop().unwrap_or_default();
    let last = last.strip_suffix(".rs").unwrap_or(&last).to_owned();
    module.extend(Some(last).filter(|last| !matches!(&**last, "mod" | "lib" | "main")));
    module
}

/// The functions that are tests, each with where it stands.
fn functions(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    occurrences(&source.code, "fn").filter_map(|at| {
        let before = &source.code[..at];
        let from = before.rfind([';', '{', '}']).map_or(0, |at| at + 1);
        let is_test = before[from..].contains("#[") && before[from..].contains("test");
        let rest = source.code[at + 2..].trim_start();
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        is_test.then_some((at, &rest[..end]))
    })
}

/// The modules inside the file that hold this place, from outside inward.
fn around(source: &Source, place: usize) -> Vec<&str> {
    let holds = |at: usize| {
        let rest = source.code[at + 3..].trim_start();
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        let open = rest[end..]
            .trim_start()
            .starts_with('{')
            .then(|| source.code[at..].find('{').map_or(source.code.len(), |open| at + open))?;
        let mut depth = 0_usize;
        let close = source.code[open..].bytes().position(|byte| {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        (open..open + close).contains(&place).then_some(&rest[..end])
    };
    occurrences(&source.code[..place], "mod").filter_map(holds).collect()
}

#[cfg(test)]
mod tests_of_filters {
    use super::super::tree::planted::files;
    use super::*;

    const TESTS: &str = "//! M.\n#[test]\nfn one() {}\nfn helper() {}\nmod inner {\n    #[tokio::test]\n    \
                         async fn two() { if true {} }\n}\n";

    #[test]
    fn a_filter_that_matches_no_test_is_found() {
        let runner = "filter = \"test(/^a::one$/) | test(/^a::inner::two/) | test(/^helper/)\"\n";
        let soaks = "//! M.\nconst S: &[Soak] = &[\n    Soak { name: \"a\", kind: Kind::Tests { \
                     packages: &[\"haft-x\"], tests: \"one\", scale: S }, count: 1 },\n    Soak { name: \"b\", packages: &[\"haft-x\"], \
                     tests: \"gone\", count: 1 },\n    Soak { name: \"c\", packages: &[\"haft-y\"], \
                     tests: \"one\", count: 1 },\n    Soak { name: \"d\", kind: Kind::Suite, count: 1 },\n];\n";
        for test in ["crates/haft-x/src/a.rs", "crates/haft-x/tests/it/a/mod.rs"] {
            let findings = check(&files(&[(test, TESTS), (RUNNER, runner), (SOAKS, soaks)]));
            let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
            assert_eq!(said.len(), 3, "{said:?}");
            assert!(said[0].contains("^helper") && said[1].contains("gone"), "{said:?}");
            assert!(said[2].starts_with(&format!("{SOAKS}:5")), "{said:?}");
        }
    }
}
