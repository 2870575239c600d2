//! Programs of the system: found, or installed through apt, or named together with what to run.
//!
//! Only what is missing is asked for, so that a machine that has everything needs no rights and no
//! network. What can be done is decided as data before anything runs. It does not know about
//! versions: the programs here are ones whose any version of the last years will do.

use std::process::Command;

use anyhow::{Result, bail};

use super::Session;
use crate::process::{answer, cargo, command, find_program, run};

/// One thing that must be there.
struct Need {
    /// What it is called in messages.
    name: &'static str,
    /// The packages of Debian that bring it.
    packages: &'static [&'static str],
    /// What the tests want it for.
    purpose: &'static str,
    is_there: fn(&Session) -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        name: "tmux",
        packages: &["tmux"],
        purpose: "a terminal that tests can type into",
        is_there: |_| find_program("tmux").is_some(),
    },
    Need {
        name: "strace",
        packages: &["strace"],
        purpose: "seeing which files a call opens",
        // It exists for Linux alone, and so do the tests that use it.
        is_there: |_| !cfg!(target_os = "linux") || find_program("strace").is_some(),
    },
    Need {
        name: "mkfs.ext4",
        packages: &["e2fsprogs"],
        purpose: "small disks that tests fill up",
        // Folders of administrators are not in everybody's PATH.
        is_there: |_| {
            let beside = ["/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"];
            !cfg!(target_os = "linux")
                || find_program("mkfs.ext4").is_some()
                || beside.iter().any(|path| std::path::Path::new(path).exists())
        },
    },
    Need {
        name: "mkfs.btrfs",
        packages: &["btrfs-progs"],
        purpose: "a disk whose files share what they hold",
        is_there: |_| {
            let beside = ["/sbin/mkfs.btrfs", "/usr/sbin/mkfs.btrfs"];
            !cfg!(target_os = "linux")
                || find_program("mkfs.btrfs").is_some()
                || beside.iter().any(|path| std::path::Path::new(path).exists())
        },
    },
    Need {
        name: "c++",
        packages: &["g++"],
        purpose: "building libFuzzer",
        is_there: |_| find_program("c++").is_some(),
    },
    Need {
        name: "node",
        packages: &["nodejs"],
        purpose: "running the MCP inspector",
        is_there: |_| find_program("node").is_some(),
    },
    Need {
        name: "npm",
        packages: &["npm"],
        purpose: "installing the MCP inspector",
        is_there: |_| find_program("npm").is_some(),
    },
    Need {
        name: "curl",
        packages: &["curl"],
        purpose: "going through the proxy as people do",
        is_there: |_| find_program("curl").is_some(),
    },
    Need {
        name: "openssl",
        packages: &["openssl"],
        purpose: "certificates of servers that tests start",
        is_there: |_| find_program("openssl").is_some(),
    },
    Need {
        name: "python3 with venv",
        packages: &["python3", "python3-venv"],
        purpose: "the MCP SDK and tools written in Python",
        is_there: |session| {
            answer(command(&session.project, "python3").args(["-c", "import venv, ensurepip"]))
                .is_some()
        },
    },
];

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

/// Installs what is missing.
///
/// # Errors
///
/// When something is missing and cannot be installed here; the message says what to run.
pub(super) fn install(session: &Session) -> Result<()> {
    toolchain(session)?;
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.is_there)(session)).collect();
    if missing.is_empty() {
        let names: Vec<_> = NEEDS.iter().map(|need| need.name).collect();
        println!("  all there: {}", names.join(", "));
        return Ok(());
    }
    for need in &missing {
        println!("  missing: {} (for {})", need.name, need.purpose);
    }
    let means = means(session);
    for words in commands(&means, &missing)? {
        let mut command = command(&session.project, &words[0]);
        run(command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    let left: Vec<_> =
        missing.iter().filter(|need| !(need.is_there)(session)).map(|need| need.name).collect();
    if left.is_empty() {
        return Ok(());
    }
    bail!("apt-get was content, but still missing: {}: look for them in PATH", left.join(", "))
}

/// The parts of the Rust toolchain that a minimal install leaves out.
fn toolchain(session: &Session) -> Result<()> {
    let parts = [("fmt", "rustfmt"), ("clippy", "clippy")];
    let missing: Vec<&str> = parts
        .iter()
        .filter(|(word, _)| answer(&mut cargo(&session.project, &[word, "--version"])).is_none())
        .map(|(_, component)| *component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    run(command(&session.project, "rustup").args(["component", "add"]).args(&missing)).map_err(
        |error| {
            let names = missing.join(" ");
            error
                .context(format!("the toolchain lacks {names}: run `rustup component add {names}`"))
        },
    )
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
    let packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
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
        NEEDS.iter().filter(|need| matches!(need.name, "tmux" | "python3 with venv")).collect()
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
        assert!(message.contains("tmux, python3 with venv"), "{message}");
        assert!(message.contains("--no-install-recommends tmux python3 python3-venv"), "{message}");
    }

    #[test]
    fn without_apt_the_message_names_what_is_missing() {
        let message = commands(&Means::NoApt, &some()).unwrap_err().to_string();
        assert!(message.contains("tmux, python3 with venv"), "{message}");
        assert!(message.contains("no apt-get"), "{message}");
    }
}
