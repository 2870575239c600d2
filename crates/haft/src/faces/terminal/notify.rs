//! Tells a person who looks elsewhere that something is there, by a program of theirs.
//!
//! **Invariant:** nobody waits for the program, and it is ended when its time is over or the talk
//! is, with what it started. It sees and takes nothing of the terminal.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long the program may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// A program that runs, in a process group of its own.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            // It may have ended by itself meanwhile.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            drop(self.0.wait());
        }
    }
}

/// Runs a command with what is told as its last argument; says what went wrong, for the person.
pub async fn run(command: Vec<String>, told: &str) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let wrong = |why: String| Some(format!("! terminal.notify_command: {program}: {why}\n"));
    let mut command = Command::new(program);
    command.args(arguments).arg(told);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Keys of the terminal, such as Ctrl-C, are not for it.
    command.process_group(0);
    let mut running = match command.spawn() {
        Ok(child) => Running(child),
        Err(error) => return wrong(format!("{error}; correct it in your settings")),
    };
    let begun = Instant::now();
    while begun.elapsed() < WITHIN {
        match running.0.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return wrong(format!("it ended with {status}")),
            Ok(None) => tokio::time::sleep(LOOK).await,
            Err(error) => return wrong(error.to_string()),
        }
    }
    wrong(format!("it was ended after {} s", WITHIN.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[tokio::test]
    async fn what_goes_wrong_is_said_and_the_text_comes_last() {
        let check = command(&["sh", "-c", "test \"$1\" = 'haft is done'", "sh"]);
        assert_eq!(run(check, "haft is done").await, None);
        assert_eq!(run(Vec::new(), "x").await, None);
        let said = run(command(&["false"]), "x").await.unwrap();
        assert!(said.contains("false: it ended with"), "{said}");
        let said = run(command(&["/nowhere/program"]), "x").await.unwrap();
        assert!(said.contains("correct it"), "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_given_up_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let script = format!("echo $$ > '{}'; exec sleep 1000", file.display());
        let mut running = Box::pin(run(command(&["sh", "-c", &script]), "x"));
        let mut id = String::new();
        while id.trim().is_empty() {
            let waited = tokio::time::timeout(LOOK, &mut running).await;
            assert!(waited.is_err(), "{waited:?}");
            id = std::fs::read_to_string(&file).unwrap_or_default();
        }
        drop(running);
        assert!(!std::path::Path::new(&format!("/proc/{}", id.trim())).exists());
    }
}
