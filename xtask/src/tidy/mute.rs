//! Who may say something to a person: faces, and the command line. What they are built of gives back what
//! is wrong, so that a program that embeds haft is the one to say it.

use super::Finding;
use super::tree::Tree;

/// What nothing below a face calls.
const SPEAKING: &[&str] = &[
    "crate::cli::exit::say",
    "crate::cli::exit::say_view",
    "crate::cli::exit::print",
    "crate::cli::exit::print_view",
    "crate::cli::exit::print_data",
    "crate::cli::exit::print_behind",
    "crate::cli::exit::println",
    "crate::cli::exit::println_json",
    "crate::faces",
];
/// Where nothing is said.
const MUTE: &[&str] = &["crates/haft/src/app/", "crates/haft/src/undo/"];

/// Nothing below the faces speaks, or knows them.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        if !MUTE.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for path in SPEAKING {
            for at in source.mentions(path) {
                let wrong = format!("{path} is used below the faces");
                let remedy = "give it back as a Problem, and let the face say it";
                findings.push(Finding::new(&file.path, file.line(at), wrong, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    #[test]
    fn what_speaks_below_a_face_is_found() {
        let text = "//! M.\nuse crate::{\n    cli::exit::{Failure, say},\n    plain,\n};\n\
                    fn f() { crate::faces::view::safe(x); }\n";
        let findings = check(&files(&[("crates/haft/src/app/a.rs", text)]));
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 6], "{findings:?}");
        assert_eq!(check(&files(&[("crates/haft/src/faces/a.rs", text)])), []);
    }
}
