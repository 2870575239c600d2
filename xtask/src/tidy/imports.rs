//! The rule over who may touch the machine: files, processes, environment and clock have owners.
//!
//! Clippy's `disallowed-methods` would have to list every function, and be taken back in every
//! crate that may: a search of the sources for whole modules is shorter and sees more. Modules for
//! unit tests are held to it too; folders of integration tests are not. It sees paths written in
//! code or brought in by `use`, not what a macro of another crate makes.

use super::Finding;
use super::tree::Tree;

/// A module or function of the standard library or of tokio, and the crates that may use it.
struct Owned {
    path: &'static str,
    owners: &'static [&'static str],
    remedy: &'static str,
}

/// Who may use files.
const FILES: &[&str] =
    &["haft-host", "haft-sandbox", "haft-session", "haft-config", "haft", "haft-testkit"];

/// Who may open connections.
const SOCKETS: &[&str] = &["haft-net", "haft-host", "haft-sandbox", "haft", "haft-testkit"];

const OWNED: &[Owned] = &[
    Owned { path: "std::fs", owners: FILES, remedy: "go through the host's Fs" },
    Owned { path: "tokio::fs", owners: FILES, remedy: "go through the host's Fs" },
    Owned {
        path: "std::process",
        owners: &[
            "haft-host",
            "haft-sandbox",
            "haft-session",
            "haft",
            "haft-testkit",
            "haft-emulator",
        ],
        remedy: "go through the host's Shell",
    },
    Owned {
        path: "tokio::process",
        owners: &["haft-host", "haft-sandbox", "haft", "haft-testkit"],
        remedy: "go through the host's Shell",
    },
    Owned {
        path: "std::env",
        owners: &[
            "haft-host",
            "haft-sandbox",
            "haft-config",
            "haft",
            "haft-testkit",
            "haft-emulator",
        ],
        remedy: "let haft-config read it and hand it over as a value",
    },
    Owned {
        path: "reqwest",
        owners: &["haft-net"],
        remedy: "ask through Cx::net, which holds a tool to the hosts of its plan",
    },
    Owned {
        path: "std::net::TcpStream",
        owners: SOCKETS,
        remedy: "ask through Cx::net, which holds a tool to the hosts of its plan",
    },
    Owned {
        path: "tokio::net::TcpStream",
        owners: SOCKETS,
        remedy: "ask through Cx::net, which holds a tool to the hosts of its plan",
    },
    Owned {
        path: "SystemTime::now",
        owners: &["haft-host", "haft-session", "haft", "haft-testkit"],
        remedy: "take the time as an argument",
    },
];

/// Nothing touches the machine but through its owner.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let package = file.package().unwrap_or_default();
        if file.is_outside_test() || package == "xtask" {
            continue;
        }
        for owned in OWNED.iter().filter(|owned| !owned.owners.contains(&package)) {
            for at in source.mentions(owned.path) {
                let wrong = format!("{} is not for {package}", owned.path);
                findings.push(Finding::new(&file.path, file.line(at), wrong, owned.remedy));
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
    fn each_owned_path_is_found_where_it_does_not_belong() {
        for owned in OWNED {
            let text = format!("//! M.\nfn f() {{ {}::x(); }}\n", owned.path);
            let findings = check(&files(&[("crates/haft-tools/src/a.rs", &text)]));
            assert_eq!(findings.len(), 1, "{}: {findings:?}", owned.path);
            assert_eq!(findings[0].line, 2);
            let owner = format!("crates/{}/src/a.rs", owned.owners[0]);
            assert_eq!(check(&files(&[(&owner, &text)])), [], "{}", owned.path);
        }
    }

    #[test]
    fn grouped_and_renamed_imports_are_found() {
        for line in ["use std::{fmt, fs as f};", "use std::{\n  io,\n  env::{self, var},\n};"] {
            let findings = check(&files(&[("crates/haft-agent/src/a.rs", line)]));
            assert!(!findings.is_empty(), "{line}");
        }
    }

    #[test]
    fn comments_strings_and_integration_tests_are_let_be() {
        let text = "//! std::fs\nconst A: &str = \"std::env\";\n";
        assert_eq!(check(&files(&[("crates/haft-tools/src/a.rs", text)])), []);
        let text = "use std::fs;";
        assert_eq!(check(&files(&[("crates/haft-tools/tests/it/main.rs", text)])), []);
        assert_eq!(check(&files(&[("crates/haft-tools/src/a.rs", text)])).len(), 1);
    }
}
