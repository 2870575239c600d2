//! Rules over lists that are kept by hand: the tools, and the variables of the environment.
//!
//! A list that is checked cannot be forgotten. The list of variables is the table of
//! docs/environment.md, checked both ways. It does not know what the entries mean.

use std::collections::BTreeMap;

use super::Finding;
use super::source::{Source, occurrences};
use super::tree::{File, Tree};

const TOOLS: &str = "crates/haft-tools/src/";
const VARIABLES: &str = "docs/environment.md";

/// Every file that implements a tool is in the ordered list of haft-tools.
pub(super) fn tools(tree: &Tree) -> Vec<Finding> {
    let list = tree.file("crates/haft-tools/src/lib.rs");
    let listed = list.and_then(|file| file.rust.as_ref()).map_or("", |source| &source.code);
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let Some(rest) = file.path.strip_prefix(TOOLS) else { continue };
        let module = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        for (name, at) in implementations(source) {
            let is_test = source.code[..at].contains("#[cfg(test)]") || module == "lib";
            let by_module =
                occurrences(listed, module).any(|at| listed[at + module.len()..].starts_with("::"));
            if !is_test && !by_module && occurrences(listed, &name).next().is_none() {
                findings.push(Finding::new(
                    &file.path,
                    file.line(at),
                    format!("tool {name} is not in the ordered list of haft-tools"),
                    format!("give it its place in {TOOLS}lib.rs: the order is part of the prompt"),
                ));
            }
        }
    }
    findings
}

/// The types for which a source implements `Tool`, with where.
fn implementations(source: &Source) -> Vec<(String, usize)> {
    let code = &source.code;
    occurrences(code, "Tool for")
        .filter(|at| code[..*at].lines().last().is_some_and(|line| line.starts_with("impl")))
        .map(|at| {
            let rest = code[at + "Tool for".len()..].trim_start();
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            (name.unwrap_or_default().to_owned(), at)
        })
        .collect()
}

/// Every variable that is read is documented, and every documented one is read.
pub(super) fn environment(tree: &Tree) -> Vec<Finding> {
    let mut read: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (file, source) in tree.rust() {
        // The rules and their tests name variables that do not exist.
        if file.path.starts_with("xtask/src/tidy/") {
            continue;
        }
        for (name, at) in variables(file, source) {
            read.entry(name).or_insert_with(|| (file.path.clone(), file.line(at)));
        }
    }
    let documented = tree.file(VARIABLES).map(documented).unwrap_or_default();
    let mut findings = Vec::new();
    for (name, (path, line)) in &read {
        if !documented.contains_key(name) {
            let wrong = format!("variable {name} is not documented");
            findings.push(Finding::new(path, *line, wrong, format!("add it to {VARIABLES}")));
        }
    }
    for (name, line) in &documented {
        let is_used = |file: &File| file.path != VARIABLES && file.text.contains(name.as_str());
        if !tree.files.iter().any(|file| !is_document(file) && is_used(file)) {
            let wrong = format!("variable {name} is documented, but nothing names it");
            findings.push(Finding::new(VARIABLES, *line, wrong, "remove the line"));
        }
    }
    findings
}

fn is_document(file: &File) -> bool {
    file.path.rsplit('.').next() == Some("md")
}

/// The variables that a source reads: arguments of the functions that read one, names of ours
/// wherever they stand, and every name that looks like one where variables are read by constants.
fn variables(file: &File, source: &Source) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for function in ["env::var", "env::var_os"] {
        for at in occurrences(&source.code, function) {
            let open = at + function.len();
            let rest = source.code[open..].trim_start();
            let is_literal = rest.starts_with("(\"") || rest.starts_with("( \"");
            if let Some(inside) = source.string_in(open..open + 8).filter(|_| is_literal) {
                found.push((file.text[inside.clone()].to_owned(), inside.start));
            }
        }
    }
    let is_reader = reads_variables(file, source);
    for inside in &source.strings {
        let text = &file.text[inside.clone()];
        if looks_like_variable(text) && (is_reader || text.starts_with("HAFT_")) {
            found.push((text.to_owned(), inside.start));
        }
    }
    found
}

/// Whether names of variables in a source may reach the functions that read them by other ways
/// than as a literal. The chores pass names on that they do not read.
fn reads_variables(file: &File, source: &Source) -> bool {
    let reads = || {
        occurrences(&source.code, "env::var").next().is_some()
            || occurrences(&source.code, "env::var_os").next().is_some()
    };
    match file.package() {
        Some("haft-config") => !file.is_outside_test(),
        Some("xtask") => false,
        _ => reads(),
    }
}

fn looks_like_variable(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.len() > 3
        && text.contains('_')
        && !text.ends_with('_')
        && text.as_bytes()[0].is_ascii_uppercase()
        && text.bytes().all(is_letter)
}

/// The variables of the table: the first cell of each row, in backticks, with its line.
fn documented(file: &File) -> BTreeMap<String, usize> {
    file.text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let name = line.strip_prefix("| `")?.split('`').next()?;
            Some((name.to_owned(), index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    const READ: &str = "pub struct Read;\nimpl Tool for Read {\n}\n";

    #[test]
    fn a_tool_outside_of_the_list_is_found() {
        let lib = "mod read;\npub fn tools() { all(read::Read) }\n";
        let path = "crates/haft-tools/src/read/mod.rs";
        let main = "crates/haft-tools/src/lib.rs";
        assert_eq!(tools(&files(&[(main, lib), (path, READ)])), []);
        let findings = tools(&files(&[(main, "mod read;\n// read::Read\n"), (path, READ)]));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].file.as_str(), findings[0].line), (path, 2));
    }

    #[test]
    fn undocumented_variables_are_found_however_they_are_read() {
        let read = [
            ("crates/haft/src/a.rs", "fn f() { std::env::var(\"SOME_THING\"); }"),
            ("crates/haft/src/a.rs", "fn f() { env::var_os(\"NAME\"); }"),
            ("crates/haft-tool/src/a.rs", "const A: &str = \"HAFT_OTHER\";"),
            ("crates/haft/src/a.rs", "const A: &str = \"NO_COLOR\"; fn f() { env::var(A); }"),
            ("crates/haft-config/src/a.rs", "fn f() { variables.get(\"OPENAI_API_KEY\"); }"),
        ];
        for (path, text) in read {
            let findings = environment(&files(&[(path, text), (VARIABLES, "| `A_B` | |\n")]));
            assert!(findings.iter().any(|it| it.file == path), "{text}: {findings:?}");
        }
        let fine =
            "const A: &str = \"SOME_THING\"; fn f() { env::vars(); env!(\"CARGO_PKG_NAME\"); }";
        assert_eq!(environment(&files(&[("crates/haft/src/a.rs", fine)])), []);
    }

    #[test]
    fn a_documented_variable_that_nothing_names_is_found() {
        let table = "| variable | what |\n|---|---|\n| `HAFT_GONE` | x |\n";
        let findings = environment(&files(&[(VARIABLES, table)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
        let used = ("crates/haft/src/a.rs", "const A: &str = \"HAFT_GONE\";");
        assert_eq!(environment(&files(&[(VARIABLES, table), used])), []);
    }
}
