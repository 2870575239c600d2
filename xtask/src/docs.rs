//! `cargo xtask docs`: the parts of documents that are written by a program.
//!
//! A part stands between two comments that name it, and everything outside them is a person's. The
//! parts are one list; `cargo xtask tidy` fails while one of them is stale. What is made from types
//! of another crate is a test there, which writes its part here and fails while it is stale. This
//! way xtask depends on no crate of haft. It does not know how a document is laid out around a part.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, watch};
use crate::project::Project;
use crate::{CHORES, Usage, bench, soak, test, tidy};

/// A generated part of a document.
struct Part {
    /// The document, relative to the root.
    file: &'static str,
    /// The name in the comments around it.
    name: &'static str,
    make: fn() -> String,
}

/// Every generated part.
const PARTS: &[Part] = &[
    Part { file: "CONTRIBUTING.md", name: "commands", make: commands },
    Part { file: "CONTRIBUTING.md", name: "soaks", make: soak::table },
    Part { file: "CONTRIBUTING.md", name: "own tool", make: own_tool },
];

/// A page with tables that a test of another crate writes.
struct Page {
    file: &'static str,
    package: &'static str,
    /// The flags of cargo that name the target which has the test.
    target: &'static [&'static str],
    test: &'static str,
}

/// Every such page.
const PAGES: &[Page] = &[
    Page {
        file: "docs/guide/settings.md",
        package: "haft-config",
        target: &["--lib"],
        test: "reference::tests::the_page_has_the_tables",
    },
    Page {
        file: "docs/tools.md",
        package: "haft-tools",
        target: &["--test", "it"],
        test: "other_tools::the_page_lists_every_tool",
    },
];

/// The example of a tool, as it is compiled, from its input to its end.
fn own_tool() -> String {
    const FILE: &str = include_str!("../../crates/haft/examples/own_tool.rs");
    let start = FILE.find("struct Checksum").unwrap_or_default();
    let end = FILE.find("fn main()").unwrap_or(FILE.len());
    format!("```rust\n{}\n```\n", FILE[start..end].trim_end())
}

/// Writes the parts, or with `--check` says which are stale; `false` when one is.
///
/// # Errors
///
/// When a document or its comments are missing, or a part cannot be made.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        other => {
            return Err(Usage(format!("docs takes --check or nothing, not {other:?}")).into());
        }
    };
    let stale = stale(project);
    for (file, wrong) in &stale {
        println!("{file}: {wrong}");
    }
    if check {
        return Ok(stale.is_empty());
    }
    for part in PARTS {
        let (text, fresh) = fresh(project, part).with_context(|| part.file.to_owned())?;
        if fresh != text {
            fs::write(project.root.join(part.file), fresh)
                .with_context(|| format!("{} cannot be written", part.file))?;
            println!("{}: {} written", part.file, part.name);
        }
    }
    PAGES.iter().try_for_each(|page| written(project, page))?;
    Ok(true)
}

/// Has a test write the tables of a page; a name that no test has is a failure.
fn written(project: &Project, page: &Page) -> Result<()> {
    let Page { file, package, target, test } = page;
    let mut cargo = cargo(project, &["test", "--quiet", "--package", package]);
    cargo.args(*target).args(["--", "--exact", test]).env("HAFT_UPDATE_DOCS", "1");
    let (fine, lines) = watch(&mut cargo, "test result: ok. 1 passed")?;
    if !fine || lines.is_empty() {
        bail!("{file} is not written: {test} of {package} did not pass");
    }
    Ok(())
}

/// The documents with a part that is not as it would be generated, and what is wrong.
pub(crate) fn stale(project: &Project) -> Vec<(String, String)> {
    PARTS
        .iter()
        .filter_map(|part| {
            let wrong = match fresh(project, part) {
                Ok((text, fresh)) if text == fresh => return None,
                Ok(_) => format!("the generated part {:?} is stale", part.name),
                Err(error) => format!("{error:#}"),
            };
            Some((part.file.to_owned(), wrong))
        })
        .collect()
}

/// A document as it is, and as it is with a part generated.
fn fresh(project: &Project, part: &Part) -> Result<(String, String)> {
    let text = read(&project.root.join(part.file))?;
    let fresh = replaced(&text, part.name, &(part.make)())?;
    Ok((text, fresh))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// The text with another content between the comments of a part.
fn replaced(text: &str, name: &str, content: &str) -> Result<String> {
    let open = format!("<!-- generated by `cargo xtask docs`: {name} -->\n");
    let close = format!("<!-- end of {name} -->");
    let Some((before, rest)) = text.split_once(&open) else {
        bail!("the comment {:?} is missing: put it where the part belongs", open.trim_end());
    };
    let Some((_, after)) = rest.split_once(&close) else {
        bail!("the comment {close:?} is missing: put it after the part");
    };
    Ok(format!("{before}{open}{content}{close}{after}"))
}

fn commands() -> String {
    let mut text = String::from("| command | what it does |\n|---|---|\n");
    for chore in CHORES {
        let space = if chore.arguments.is_empty() { "" } else { " " };
        let arguments = chore.arguments;
        let _ =
            writeln!(text, "| `cargo xtask {}{space}{arguments}` | {} |", chore.name, chore.about);
    }
    let _ = writeln!(text, "\nSteps of `test`, in order: {}.", listed(&test::step_names()));
    let _ = writeln!(text, "\nRules of `tidy`: {}.", listed(&tidy::rule_names()));
    let _ = writeln!(text, "\nFigures of `bench`: {}.", listed(&bench::names()));
    let _ = writeln!(text, "Only when it is named: {}.", listed(&bench::names_on_request()));
    text
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a\n<!-- generated by `cargo xtask docs`: x -->\nold\n<!-- end of x -->\nb\n";

    #[test]
    fn only_the_part_is_replaced_and_twice_is_once() {
        let new = replaced(TEXT, "x", "new\n").unwrap();
        assert_eq!(new, TEXT.replace("old", "new"));
        assert_eq!(replaced(&new, "x", "new\n").unwrap(), new);
    }

    #[test]
    fn missing_comments_are_named() {
        let error = replaced(TEXT, "y", "").unwrap_err().to_string();
        assert!(error.contains("docs`: y -->"), "{error}");
        let error = replaced(&TEXT.replace("end of", ""), "x", "").unwrap_err().to_string();
        assert!(error.contains("end of x"), "{error}");
    }
}
