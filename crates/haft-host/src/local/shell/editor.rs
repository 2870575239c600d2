//! The editor that programs get where nobody can edit: it says what to do instead, and ends.
//!
//! **Invariant:** it changes nothing, waits for nothing, and fails. The exception is a message that
//! git has prepared itself and only wants confirmed: that of a merge, of a revert, or of a rebase
//! step that was not to get another one.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::supervisor_client;
use crate::Spawn;

/// The argument behind those of the supervisor that makes it an editor.
const ARGUMENT: &str = "--no-editor";
/// The variables by which programs find their editor.
const VARIABLES: [&str; 4] = ["EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL"];
/// Most bytes of a message that are looked at.
const LOOKED_AT: usize = 64 << 10;

/// A program that finds it as its editor, where it is to have none; what a person set in the
/// settings stays.
pub(super) fn none(
    mut spawn: Spawn,
    supervisor: &[OsString],
    settings: &[(String, String)],
) -> Spawn {
    if !spawn.no_editor || spawn.looks.is_some() {
        return spawn;
    }
    let Some(command) = command(supervisor) else { return spawn };
    let is_open = |name: &&str| {
        let mut set = spawn.set.iter().chain(settings);
        !set.any(|(set, _)| set == *name)
    };
    let open: Vec<_> = VARIABLES.into_iter().filter(is_open).collect();
    spawn.set.extend(open.into_iter().map(|name| (name.to_owned(), command.clone())));
    spawn
}

/// The words that start it, for a shell.
fn command(supervisor: &[OsString]) -> Option<String> {
    let beside = if supervisor.is_empty() { supervisor_client::beside() } else { Vec::new() };
    let (program, arguments) = supervisor.split_first().or_else(|| beside.split_first())?;
    // That is another program in the one that is started.
    let program = if program == "/proc/self/exe" { own()?.into() } else { program.clone() };
    let words = [&program].into_iter().chain(arguments).map(|word| word.to_str().map(quoted));
    let words: Option<Vec<_>> = words.chain([Some(ARGUMENT.to_owned())]).collect();
    words.map(|words| words.join(" "))
}

/// The file of this program, or the one that took its place.
fn own() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let newer = own.to_str().and_then(|own| own.strip_suffix(" (deleted)"));
    Some(newer.map(PathBuf::from).filter(|newer| newer.exists()).unwrap_or(own))
}

/// A word as shells and those who divide at blanks read it, where it holds nothing odd.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Does its work where this process was started as one.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    arguments.find(|argument| argument == ARGUMENT)?;
    let file = arguments.last().map(PathBuf::from).unwrap_or_default();
    let (code, said) = match answer(&file) {
        Ok(said) => (ExitCode::SUCCESS, said),
        Err(said) => (ExitCode::FAILURE, format!("no editor can be used here: {said}")),
    };
    // Nobody may listen.
    let _ = writeln!(io::stderr(), "haft: {said}");
    Some(code)
}

/// What is said of a file that is to be edited; an error where that is not done.
fn answer(file: &Path) -> Result<String, String> {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let beside = |name: &str| file.with_file_name(name);
    let is_there = |name: &str| beside(name).exists();
    let refused = |text: &str| Err(format!("{text}, or call with pty: true"));
    match name {
        "MERGE_MSG" | "COMMIT_EDITMSG" => {
            let done = fs::read_to_string(beside("rebase-merge/done")).unwrap_or_default();
            let step = done.lines().last().unwrap_or_default();
            if step.starts_with("reword ") || step.starts_with("r ") {
                return refused(
                    "for the new message: git commit --amend -m TEXT, then git rebase --continue",
                );
            }
            let is_ready = name == "MERGE_MSG"
                || ["MERGE_MSG", "rebase-merge", "rebase-apply"].into_iter().any(is_there);
            if is_ready && has_message(file) {
                return Ok(
                    "the message was taken as it is; git commit --amend -m changes it".into()
                );
            }
            refused("give the message with -m TEXT or -F FILE (--amend: --no-edit leaves it)")
        }
        "TAG_EDITMSG" | "NOTES_EDITMSG" => refused("give the message with -m TEXT or -F FILE"),
        "git-rebase-todo" => refused(
            "set GIT_SEQUENCE_EDITOR to a command that changes the list of steps in the file that \
             it gets (`true` leaves it)",
        ),
        _ => refused(&format!("{} is not changed; do it by options or a file", file.display())),
    }
}

/// Whether it holds more than comments.
fn has_message(file: &Path) -> bool {
    let Ok(mut text) = fs::read(file) else { return false };
    text.truncate(LOOKED_AT);
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_need_it() {
        assert_eq!(command(&["/opt/haft".into()]).unwrap(), "/opt/haft --no-editor");
        let odd = ["/opt/my 'tools'/haft".into(), "--supervise".into()];
        let wanted = "'/opt/my '\\''tools'\\''/haft' --supervise --no-editor";
        assert_eq!(command(&odd).unwrap(), wanted);
        let own = command(&["/proc/self/exe".into()]).unwrap();
        assert!(!own.contains("/proc/self") && own.starts_with('/'), "{own}");
    }
}
