//! Which process holds the lock of a file, read from where the kernel lists its locks.
//!
//! **Invariant:** the owner is only reported; nothing is decided by it. If the list does not exist,
//! or a process is in another namespace, nobody is named.

use std::{
    collections::HashSet,
    fs::{self, File, Metadata},
    os::unix::fs::MetadataExt as _,
};

/// Most characters of a command that are shown.
const SHOWN: usize = 60;
/// Most words of one: the program, and what it was to do. What follows may be meant for nobody else.
const WORDS: usize = 2;

/// The process that holds the lock of a file, as `process 12 (haft mcp)`.
pub fn holder(file: &File) -> Option<String> {
    let wanted = place(&file.metadata().ok()?);
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let process = locked(&locks).find_map(|(process, at)| (at == wanted).then_some(process))?;
    Some(match command(process) {
        Some(command) => format!("process {process} ({command})"),
        None => format!("process {process}"),
    })
}

/// The files that are locked now, by whichever process.
#[derive(Debug, Default)]
pub(crate) struct LockedFiles(HashSet<String>);

impl LockedFiles {
    pub(crate) fn now() -> Self {
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        Self(locked(&locks).map(|(_, at)| at.to_owned()).collect())
    }

    pub(crate) fn has(&self, data: &Metadata) -> bool {
        self.0.contains(&place(data))
    }
}

/// A file as the kernel names it among its locks.
fn place(data: &Metadata) -> String {
    let (disk, number) = (data.dev(), data.ino());
    let (major, minor) =
        ((disk >> 8 & 0xfff) | (disk >> 32 & !0xfff), (disk & 0xff) | (disk >> 12 & !0xff));
    format!("{major:02x}:{:02x}:{number}", minor & 0xffff_ffff)
}

/// Processes with the files that they hold locked.
fn locked(locks: &str) -> impl Iterator<Item = (u32, &str)> {
    locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let kind = (words.next()?, words.next()?, words.next()?);
        let (process, at) = (words.next()?.parse::<u32>().ok()?, words.next()?);
        (kind.0 == "FLOCK" && kind.2 == "WRITE" && process > 0).then_some((process, at))
    })
}

fn command(process: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).take(WORDS);
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let (program, rest) = words.split_first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    let text = std::iter::once(name).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>();
    Some(text.join(" ").chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_lock_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(holder(file.as_file()), None);
        let data = file.as_file().metadata().unwrap();
        assert!(!LockedFiles::now().has(&data));
        file.as_file().lock().unwrap();
        assert!(LockedFiles::now().has(&data));
        let told = holder(&file.reopen().unwrap()).unwrap();
        let process = format!("process {} (", std::process::id());
        assert!(told.starts_with(&process) && told.len() < 100, "{told}");
    }
}
