//! Who holds the lock of a file: looked up where the kernel lists its locks.
//!
//! **Invariant:** it is only told, and nothing is decided by it: where the list is not there, or a
//! process is of another namespace, nobody is named.

use std::{fs, fs::File, os::unix::fs::MetadataExt as _};

/// Most characters of a command that are shown.
const SHOWN: usize = 60;
/// Most words of one: the program, and what it was to do. What follows may be meant for nobody else.
const WORDS: usize = 2;

/// The process that holds the lock of a file, as `process 12 (haft mcp)`.
pub fn holder(file: &File) -> Option<String> {
    let data = file.metadata().ok()?;
    let (disk, number) = (data.dev(), data.ino());
    let (major, minor) =
        ((disk >> 8 & 0xfff) | (disk >> 32 & !0xfff), (disk & 0xff) | (disk >> 12 & !0xff));
    let wanted = format!("{major:02x}:{:02x}:{number}", minor & 0xffff_ffff);
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, at, ..] = words[..] else { return None };
        (at == wanted).then(|| process.parse::<u32>().ok()).flatten()
    };
    let process = locks.lines().find_map(of).filter(|process| *process > 0)?;
    Some(match command(process) {
        Some(command) => format!("process {process} ({command})"),
        None => format!("process {process}"),
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
        file.as_file().lock().unwrap();
        let told = holder(&file.reopen().unwrap()).unwrap();
        let process = format!("process {} (", std::process::id());
        assert!(told.starts_with(&process) && told.len() < 100, "{told}");
    }
}
