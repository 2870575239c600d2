//! What lies between faces and what they are built of.
//!
//! Faces, and the command line, say something to a person. What they are built of gives back what is
//! wrong, so that a program that embeds haft is the one to say it. Faces with an agent send commands and
//! read events, so that several of them can share a session.

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

/// Faces with an agent.
const COMMANDED: &[&str] = &[
    "crates/haft/src/faces/demo.rs",
    "crates/haft/src/faces/line/",
    "crates/haft/src/faces/print/",
    "crates/haft/src/faces/view/",
];
/// A face among them that has a single call and no agent.
const SINGLE_CALL: &str = "crates/haft/src/faces/line/single_question.rs";
/// What they do not hold.
const BEHIND_COMMANDS: &[&str] = &[
    "haft_agent::AgentSender",
    "haft_agent::Handle",
    "haft_agent::Input",
    "haft_tool::Broker",
    "haft_tool::Dispatcher",
    "haft_tool::Session",
];

/// Nothing below the faces speaks, or knows them, and faces with an agent act by commands alone.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = by_commands(tree);
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

fn by_commands(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let is_commanded = COMMANDED.iter().any(|folder| file.path.starts_with(folder));
        if !is_commanded || file.path == SINGLE_CALL {
            continue;
        }
        let remedy = "send a Command, and read the events";
        for path in BEHIND_COMMANDS {
            for at in source.mentions(path) {
                let wrong = format!("{path} is used in a face with an agent");
                findings.push(Finding::new(&file.path, file.line(at), wrong, remedy));
            }
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            if line.contains(".dispatcher") {
                let wrong = "the dispatcher of a session is used in a face with an agent";
                findings.push(Finding::new(&file.path, number, wrong, remedy));
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
    #[test]
    fn a_face_that_acts_without_a_command_is_found() {
        let text =
            "//! M.\nuse haft_agent::{Control, Handle};\nfn f() { core.dispatcher.call(); }\n";
        let findings = check(&files(&[("crates/haft/src/faces/print/a.rs", text)]));
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3], "{findings:?}");
        for path in ["crates/haft/src/faces/tool.rs", SINGLE_CALL] {
            assert_eq!(check(&files(&[(path, text)])), []);
        }
    }
}
