//! Child processes of the chores: shown before they run, never given a standard input.
//!
//! What `cargo run` puts into the environment of this program is taken out again, because build
//! scripts that watch those variables would otherwise build everything anew on each change
//! between `cargo xtask` and plain `cargo`. It does not know what the commands are for.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::project::Project;

/// A command that starts in the root of the repository, with a clean environment.
pub(crate) fn command(project: &Project, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&project.root).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(comes_from_cargo_run) {
            command.env_remove(&name);
        }
    }
    if is_ci() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// The cargo that started this program.
pub(crate) fn cargo(project: &Project, arguments: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(project, program);
    command.args(arguments);
    command
}

/// Whether this runs unattended, where nothing is built twice.
pub(crate) fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

fn comes_from_cargo_run(name: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
        .iter()
        .any(|start| name.starts_with(start))
        || matches!(name, "CARGO_PRIMARY_PACKAGE" | "OUT_DIR")
}

/// Shows a command, runs it with the terminal as its output, and waits.
///
/// # Errors
///
/// When it cannot be started or does not end well; the message holds the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    println!("  $ {shown}");
    let status = command
        .status()
        .with_context(|| format!("`{shown}` could not be started: is the program installed?"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output, trimmed; `None` when it fails in any way.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command, shows both of its outputs as they come, and returns whether it ended well and
/// the lines that hold `wanted`.
///
/// # Errors
///
/// When it cannot be started or read.
pub(crate) fn watch(command: &mut Command, wanted: &str) -> Result<(bool, Vec<String>)> {
    let mut found = Vec::new();
    let status = follow(command, |line| {
        if line.contains(wanted) {
            found.push(line);
        }
    })?;
    Ok((status.success(), found))
}

/// Runs a command as [`run`] does, for programs that reach for a network or fill a disk: what it
/// said last is part of the error, too, so that it is read where the failure is told. A program
/// that passes over its own failure is known by a word of what it says then.
///
/// # Errors
///
/// When it cannot be started, does not end well, or says one of the words.
pub(crate) fn run_quoted(command: &mut Command, failing: &[&str]) -> Result<()> {
    let (mut last, mut fault) = (VecDeque::new(), None);
    let status = follow(command, |line| {
        if fault.is_none() && failing.iter().any(|word| line.contains(word)) {
            fault = Some(line.clone());
        }
        if last.len() == QUOTED {
            last.pop_front();
        }
        last.push_back(line);
    })?;
    let shown = shown(command);
    if !status.success() {
        let said: Vec<String> = last.into_iter().collect();
        bail!("`{shown}` ended with {status}, and said:\n{}", said.join("\n"));
    }
    match fault {
        Some(line) => bail!("`{shown}` was content, but said:\n{line}"),
        None => Ok(()),
    }
}

/// How many lines of a command's output are part of an error.
const QUOTED: usize = 30;

/// Runs a command, shows both of its outputs line by line, and hands each line on.
fn follow(command: &mut Command, mut each: impl FnMut(String)) -> Result<ExitStatus> {
    let shown = shown(command);
    println!("  $ {shown}");
    let (reader, writer) = std::io::pipe().context("no pipe could be made")?;
    let second = writer.try_clone().context("no second end of the pipe could be made")?;
    let mut child =
        command.stdout(writer).stderr(second).spawn().with_context(|| {
            format!("`{shown}` could not be started: is the program installed?")
        })?;
    // The command keeps its ends of the pipe open; without this the reader never sees the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("the output of `{shown}` could not be read"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        println!("{line}");
        each(line);
    }
    child.wait().with_context(|| format!("`{shown}` cannot be waited for"))
}

/// The folder of `PATH` that holds a program, joined with its name.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// A command as a person would type it, near enough to be copied.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let mut text = program.into_owned();
    for word in command.get_args() {
        let word = word.to_string_lossy();
        text.push(' ');
        if word.is_empty() || word.contains([' ', '\'', '"', '(', ')', '$', '|', '&', ';']) {
            text.push('\'');
            text.push_str(&word.replace('\'', r"'\''"));
            text.push('\'');
        } else {
            text.push_str(&word);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_are_quoted() {
        let mut command = Command::new("/usr/bin/printf");
        command.args(["a b", "it's", "plain"]);
        assert_eq!(shown(&command), r"printf 'a b' 'it'\''s' plain");
    }

    #[test]
    fn what_cargo_run_adds_is_known() {
        assert!(comes_from_cargo_run("CARGO_PKG_NAME"));
        assert!(comes_from_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!comes_from_cargo_run("CARGO_HOME"));
        assert!(!comes_from_cargo_run("CARGO_TARGET_DIR"));
    }

    #[cfg(unix)]
    #[test]
    fn watching_returns_the_lines_asked_for_from_both_outputs() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one hit; echo other; echo two hit >&2; exit 3"]);
        let (fine, lines) = watch(&mut command, "hit").unwrap();
        assert!(!fine);
        assert_eq!(lines, ["one hit", "two hit"]);
    }
    #[cfg(unix)]
    #[test]
    fn an_error_quotes_what_the_command_said_last() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100; echo No space left on device >&2; exit 3"]);
        let error = run_quoted(&mut command, &[]).unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("\n99\n100\nNo space left on device"), "{error}");
        assert_eq!(error.lines().count(), 1 + QUOTED, "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_command_that_passes_over_its_failure_has_failed() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo warn: ENOSPC 1; echo warn: ENOSPC 2; echo added 3 packages"]);
        run_quoted(&mut command, &["EIO"]).unwrap();
        let error = run_quoted(&mut command, &["EIO", "ENOSPC"]).unwrap_err().to_string();
        assert!(error.ends_with("was content, but said:\nwarn: ENOSPC 1"), "{error}");
    }
}
