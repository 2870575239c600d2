//! Programs that the run wants: what is missing is told together, and installed where that can be.
//!
//! Only what is missing is asked for, so that a machine that has everything needs no rights and no
//! network. What can be done is decided as data before anything runs. It knows a version only
//! where an older one would be found out late, by an error that misleads.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::Session;
use crate::process::{answer, cargo, command, find_program, run_quoted};

/// One thing that must be there.
pub(super) struct Need {
    /// What it is called in messages.
    pub(super) name: &'static str,
    pub(super) source: Source,
    /// What it is wanted for.
    pub(super) purpose: &'static str,
    /// The step that wants it; it is no matter to a run without that step.
    pub(super) step: &'static str,
    is_there: fn(&Session) -> bool,
}

/// Where a thing comes from.
pub(super) enum Source {
    /// Packages of Debian.
    Packages(&'static [&'static str]),
    /// A part of the Rust toolchain.
    Component(&'static str),
    /// Whoever wants it installs it by this command; the run goes on without.
    Optional { command: &'static str, without: &'static str },
}

/// The runner of the tests, where it is there.
pub(super) const NEXTEST: &str = "cargo-nextest";

const NEEDS: &[Need] = &[
    Need {
        name: "rustfmt",
        source: Source::Component("rustfmt"),
        purpose: "the format of the sources",
        step: "fmt",
        is_there: |session| answer(&mut cargo(&session.project, &["fmt", "--version"])).is_some(),
    },
    Need {
        name: "clippy",
        source: Source::Component("clippy"),
        purpose: "lints",
        step: "clippy",
        is_there: |session| {
            answer(&mut cargo(&session.project, &["clippy", "--version"])).is_some()
        },
    },
    Need {
        name: NEXTEST,
        source: Source::Optional {
            command: "cargo install --locked cargo-nextest",
            without: "cargo test runs the tests: one that hangs is not ended, and nothing is timed",
        },
        purpose: "running the tests",
        step: "tests",
        is_there: has_nextest,
    },
    Need {
        name: "tmux",
        source: Source::Packages(&["tmux"]),
        purpose: "a terminal that tests can type into",
        step: "tests",
        is_there: |_| find_program("tmux").is_some(),
    },
    Need {
        name: "strace",
        source: Source::Packages(&["strace"]),
        purpose: "seeing which files a call opens",
        step: "tests",
        // It exists for Linux alone, and so do the tests that use it.
        is_there: |_| !cfg!(target_os = "linux") || find_program("strace").is_some(),
    },
    Need {
        name: "mkfs.ext4",
        source: Source::Packages(&["e2fsprogs"]),
        purpose: "small disks that tests fill up",
        step: "tests",
        // Folders of administrators are not in everybody's PATH.
        is_there: |_| {
            let beside = ["/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"];
            !cfg!(target_os = "linux")
                || find_program("mkfs.ext4").is_some()
                || beside.iter().any(|path| Path::new(path).exists())
        },
    },
    Need {
        name: "mkfs.btrfs",
        source: Source::Packages(&["btrfs-progs"]),
        purpose: "a disk whose files share what they hold",
        step: "tests",
        is_there: |_| {
            let beside = ["/sbin/mkfs.btrfs", "/usr/sbin/mkfs.btrfs"];
            !cfg!(target_os = "linux")
                || find_program("mkfs.btrfs").is_some()
                || beside.iter().any(|path| Path::new(path).exists())
        },
    },
    Need {
        name: "c++",
        source: Source::Packages(&["g++"]),
        purpose: "building libFuzzer",
        step: "fuzz",
        is_there: |_| find_program("c++").is_some(),
    },
    Need {
        name: "node 20 or later",
        source: Source::Packages(&["nodejs"]),
        purpose: "running the MCP inspector",
        step: "tests",
        is_there: |session| {
            answer(command(&session.project, "node").arg("--version"))
                .is_some_and(|version| major(&version) >= Some(20))
        },
    },
    Need {
        name: "npm",
        source: Source::Packages(&["npm"]),
        purpose: "installing the MCP inspector",
        step: "npm",
        is_there: |_| find_program("npm").is_some(),
    },
    Need {
        name: "curl",
        source: Source::Packages(&["curl"]),
        purpose: "going through the proxy as people do",
        step: "tests",
        is_there: |_| find_program("curl").is_some(),
    },
    Need {
        name: "openssl",
        source: Source::Packages(&["openssl"]),
        purpose: "certificates of servers that tests start",
        step: "tests",
        is_there: |_| find_program("openssl").is_some(),
    },
    Need {
        name: "python3 3.11 or later with venv",
        source: Source::Packages(&["python3", "python3-venv"]),
        purpose: "the MCP SDK and tools written in Python",
        step: "tests",
        is_there: |session| {
            let script = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
            answer(command(&session.project, "python3").args(["-c", script])).is_some()
        },
    },
];

impl Source {
    fn packages(&self) -> &'static [&'static str] {
        match self {
            Self::Packages(packages) => packages,
            Self::Component(_) | Self::Optional { .. } => &[],
        }
    }
}

/// What can be done about missing packages.
#[derive(Debug, PartialEq, Eq)]
enum Means {
    /// Run apt-get as it is.
    Root,
    /// Run apt-get through sudo, which asks for no password.
    Sudo,
    /// There is apt-get, but no right to use it.
    Forbidden,
    /// There is no apt-get.
    NoApt,
}

/// What is missing of all that the steps want.
pub(super) fn missing(session: &Session, steps: &[&str]) -> Vec<&'static Need> {
    let is_wanted = |need: &&Need| steps.contains(&need.step);
    NEEDS.iter().filter(is_wanted).filter(|need| !(need.is_there)(session)).collect()
}

/// Whether cargo-nextest is there.
pub(super) fn has_nextest(session: &Session) -> bool {
    answer(&mut cargo(&session.project, &["nextest", "--version"])).is_some()
}

/// The first number of a version.
fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Installs what is missing.
///
/// # Errors
///
/// When something is missing and cannot be installed here; the message says what to run, for all
/// of it at once.
pub(super) fn install(session: &Session) -> Result<()> {
    let is_ours = |need: &&Need| !matches!(need.source, Source::Optional { .. });
    let is_missing = |need: &&Need| !(need.is_there)(session);
    let missing: Vec<&Need> = NEEDS.iter().filter(is_ours).filter(is_missing).collect();
    if missing.is_empty() {
        let names: Vec<_> = NEEDS.iter().filter(is_ours).map(|need| need.name).collect();
        println!("  all there: {}", names.join(", "));
        return Ok(());
    }
    let results = [components(session, &missing), system_packages(session, &missing)];
    let problems: Vec<_> =
        results.into_iter().filter_map(|result| Some(format!("{:#}", result.err()?))).collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    let left: Vec<_> = missing.into_iter().filter(is_missing).map(|need| need.name).collect();
    if left.is_empty() {
        return Ok(());
    }
    bail!(
        "the installs were content, but still missing: {}: look for them in PATH, and for newer \
         versions than the system's packages have",
        left.join(", ")
    )
}

/// Adds the parts of the Rust toolchain that a minimal install leaves out.
fn components(session: &Session, missing: &[&Need]) -> Result<()> {
    let names: Vec<_> = missing
        .iter()
        .filter_map(|need| match need.source {
            Source::Component(name) => Some(name),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let result = run_quoted(
        command(&session.project, "rustup").args(["component", "add"]).args(&names),
        &[],
    );
    result.map_err(|error| {
        let names = names.join(" ");
        error.context(format!("the toolchain lacks {names}: run `rustup component add {names}`"))
    })
}

/// Installs packages of the system.
fn system_packages(session: &Session, missing: &[&Need]) -> Result<()> {
    let missing: Vec<&Need> =
        missing.iter().filter(|need| matches!(need.source, Source::Packages(_))).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    for words in commands(&means(session), &missing)? {
        let mut command = command(&session.project, &words[0]);
        run_quoted(command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive"), &[])?;
    }
    Ok(())
}

fn means(session: &Session) -> Means {
    let mut id = command(&session.project, "id");
    let mut sudo = command(&session.project, "sudo");
    if find_program("apt-get").is_none() {
        Means::NoApt
    } else if answer(id.arg("-u")).as_deref() == Some("0") {
        Means::Root
    } else if answer(sudo_probe(&mut sudo)).is_some() {
        Means::Sudo
    } else {
        Means::Forbidden
    }
}

fn sudo_probe(sudo: &mut Command) -> &mut Command {
    sudo.args(["-n", "true"])
}

/// The commands that install what is missing.
///
/// # Errors
///
/// When there is no way to run them; the message holds the names and what a person can do.
fn commands(means: &Means, missing: &[&Need]) -> Result<[Vec<String>; 2]> {
    let names = missing.iter().map(|need| need.name).collect::<Vec<_>>().join(", ");
    let packages: Vec<_> =
        missing.iter().flat_map(|need| need.source.packages()).copied().collect();
    let prefix: &[&str] = match means {
        Means::Root => &[],
        Means::Sudo => &["sudo", "-n"],
        Means::Forbidden => bail!(
            "missing: {names}. Installing them needs root, and sudo asks for a password here. Run:\n  \
             sudo apt-get update && sudo apt-get install -y --no-install-recommends {}",
            packages.join(" ")
        ),
        Means::NoApt => bail!(
            "missing: {names}. There is no apt-get on this machine: install them with its own \
             package manager, see that they are in PATH, and run this again"
        ),
    };
    let words = |rest: &[&str]| {
        prefix.iter().chain(rest).map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let mut install = words(&["apt-get", "install", "-y", "--no-install-recommends"]);
    install.extend(packages.iter().map(|package| (*package).to_owned()));
    Ok([words(&["apt-get", "update"]), install])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<&'static Need> {
        NEEDS
            .iter()
            .filter(|need| need.name == "tmux" || need.name.starts_with("python3"))
            .collect()
    }

    #[test]
    fn root_updates_and_installs_only_what_is_missing() {
        let [update, install] = commands(&Means::Root, &some()).unwrap();
        assert_eq!(update, ["apt-get", "update"]);
        let line = "apt-get install -y --no-install-recommends tmux python3 python3-venv";
        assert_eq!(install.join(" "), line);
    }

    #[test]
    fn sudo_never_asks() {
        for words in commands(&Means::Sudo, &some()).unwrap() {
            assert_eq!(words[..3], ["sudo", "-n", "apt-get"]);
        }
    }

    #[test]
    fn without_rights_the_message_holds_the_command_to_run() {
        let message = commands(&Means::Forbidden, &some()).unwrap_err().to_string();
        assert!(message.contains("tmux, python3 3.11 or later with venv"), "{message}");
        assert!(message.contains("--no-install-recommends tmux python3 python3-venv"), "{message}");
    }

    #[test]
    fn without_apt_the_message_names_what_is_missing() {
        let message = commands(&Means::NoApt, &some()).unwrap_err().to_string();
        assert!(message.contains("tmux, python3 3.11 or later with venv"), "{message}");
        assert!(message.contains("no apt-get"), "{message}");
    }

    #[test]
    fn versions_are_read() {
        assert_eq!((major("v20.20.2"), major("9")), (Some(20), Some(9)));
        assert!(major("v18.1") < Some(20) && major("nothing") < Some(20));
    }

    #[test]
    fn every_need_names_a_step() {
        let steps = super::super::step_names();
        for need in NEEDS {
            assert!(steps.contains(&need.step), "{} names {}", need.name, need.step);
        }
    }
}
