//! What tests want of the machine that they run on: programs, rights, mounts, memory, time.
//!
//! **Invariant:** a test that cannot do all of its work says so by [`left_out`], which fails where
//! `CI` is set; nothing else here or in a test passes over a thing that is missing, but [`codex`]. A
//! program that `cargo xtask test` installs is always wanted: without it a test fails anywhere.

#![expect(clippy::panic, reason = "a test that lacks something fails, and this is where it does")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// What a failure for want of a program says to do.
const INSTALL: &str = "run the tests by `cargo xtask test`, which installs what they use";

/// The ripgrep that searches are compared with.
///
/// # Panics
/// When it is not there.
pub fn rg() -> PathBuf {
    given("HAFT_TEST_RG")
}

/// The fd that searches for names are compared with.
///
/// # Panics
/// When it is not there.
pub fn fd() -> PathBuf {
    given("HAFT_TEST_FD")
}

/// A Python that has the MCP SDK.
///
/// # Panics
/// When it is not there.
pub fn python() -> PathBuf {
    given("HAFT_TEST_PYTHON")
}

/// The script of the MCP inspector's command line.
///
/// # Panics
/// When it is not there.
pub fn inspector() -> PathBuf {
    given("HAFT_TEST_INSPECTOR")
}

/// The folder with the official test suite of JSON Schema: `tests`, `remotes` and `metaschemas`.
///
/// # Panics
/// When it is not there.
pub fn json_schema_suite() -> PathBuf {
    given("HAFT_TEST_JSON_SCHEMA_SUITE")
}

/// The folder whose `node_modules` holds the npm packages of the tests.
///
/// # Panics
/// When it is not there.
pub fn npm() -> PathBuf {
    given("HAFT_TEST_NPM")
}

/// The script of the codex command line. There are builds of it for some systems only, so a test is
/// left out without it even where `CI` is set, and says so.
///
/// # Panics
/// When the folder of the npm packages is not there.
#[expect(clippy::print_stderr, reason = "a run that shows output shall show this")]
pub fn codex() -> Option<PathBuf> {
    let script = npm().join("node_modules/@openai/codex/bin/codex.js");
    let works = Command::new("node")
        .arg(&script)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("left out: npm could not install @openai/codex for this system");
    }
    works.then_some(script)
}

/// The file that a variable of the test set-up names.
fn given(variable: &str) -> PathBuf {
    let Some(path) = env::var_os(variable).map(PathBuf::from) else {
        panic!("{variable} is not set: {INSTALL}, and sets it")
    };
    assert!(path.exists(), "{variable} names {}, which is missing: {INSTALL}", path.display());
    path
}

/// A program of the system, found in `PATH` or where administrators have theirs.
///
/// # Panics
/// When it is not there.
pub fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not in PATH: {INSTALL}"))
}

/// Says what of a test this machine cannot do, for whoever looks at the output of a run.
///
/// # Panics
/// Where `CI` is set: a machine of that kind has to be able to do all there is.
#[expect(clippy::print_stderr, reason = "a run that shows output shall show this")]
pub fn left_out(why: &str) {
    assert!(!is_ci(), "left out, which must not be where CI is set: {why}");
    eprintln!("left out: {why}");
}

/// Whether this is a run whose result others rely on.
fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Whether this process is root's; `why` says what of the test others cannot do.
pub fn is_root(why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        left_out(why);
    }
    is_root
}

/// Whether a shell script that mounts something works in a mount namespace of its own, which
/// `unshare` makes with these flags: `-m` for root alone, `-rm` for anybody whom the system lets.
pub fn may_mount(flags: &str, script: &str) -> bool {
    let mut command = Command::new("unshare");
    command.args([flags, "sh", "-c", script]).stdin(Stdio::null());
    let output = command.output();
    let may = output.as_ref().is_ok_and(|output| output.status.success());
    if !may {
        left_out(&format!("nobody may mount here: `{script}` gives {output:?}"));
    }
    may
}

/// How often a test does something, multiplied for a soak.
///
/// # Panics
/// When the factor is no whole number from 1 on.
pub fn times(count: u64) -> u64 {
    let Ok(factor) = env::var("HAFT_TEST_COUNT_FACTOR") else { return count };
    let number = factor.parse().ok().filter(|number| *number > 0);
    let Some(number) = number else {
        panic!("HAFT_TEST_COUNT_FACTOR is {factor:?}: give a whole number from 1 on")
    };
    count.saturating_mul(number)
}

/// The most memory that a process had so far, in bytes.
///
/// # Panics
/// When the system does not tell.
pub fn peak_of(process: u32) -> u64 {
    peak_while_there(process).unwrap_or_else(|| panic!("process {process} tells no peak"))
}

/// The most memory that a process had so far, in bytes; none where it has ended.
pub fn peak_while_there(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The words by which a process was started; empty where it has ended.
fn command_line(process: u32) -> Vec<u8> {
    fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default()
}

/// The processes that a process started and that run, with theirs.
pub fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return found };
    for thread in threads.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// Looks at a process with all that it starts until it ends, or the time is over; gives the most
/// bytes that they had, each at its worst, together.
///
/// # Panics
/// When the process cannot be waited for.
pub fn watched(child: &mut Child, within: Duration) -> u64 {
    let began = Instant::now();
    let mut seen = BTreeMap::new();
    loop {
        let ended = child.try_wait().unwrap_or_else(|error| panic!("waiting for it: {error}"));
        if ended.is_some() || began.elapsed() > within {
            return seen.values().sum();
        }
        let own = command_line(child.id());
        // A process that was forked and is not yet another program has the memory of its parent.
        let is_apart = |process: &u32| command_line(*process) != own;
        let below = descendants(child.id()).into_iter().filter(is_apart);
        for process in [child.id()].into_iter().chain(below) {
            let had = seen.entry(process).or_insert(0_u64);
            *had = peak_while_there(process).unwrap_or(0).max(*had);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The most memory that this process had so far, in bytes.
///
/// # Panics
/// When the system does not tell.
pub fn peak() -> u64 {
    peak_of(std::process::id())
}

/// How long the processors worked for this process so far. A busy machine does not change it, so
/// that tests may say how much work something is.
///
/// # Panics
/// When the system's clock is before its start.
pub fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_else(|error| panic!("{time:?}: {error}"))
}

/// How many bytes this process has read so far, from whatever.
///
/// # Panics
/// When the system does not tell.
pub fn read_so_far() -> u64 {
    let path = "/proc/self/io";
    let told = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|rest| rest.trim().parse().ok())
        .unwrap_or_else(|| panic!("{path} tells nothing of reads:\n{told}"))
}

/// Makes a named pipe.
///
/// # Panics
/// When that does not work.
pub fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    mkfifoat(CWD, path, Mode::from(0o600))
        .unwrap_or_else(|error| panic!("no named pipe can be made at {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_grows_with_what_is_held() {
        let held = vec![1_u8; 64 << 20];
        let peak = peak();
        assert!(peak >= held.len() as u64 && peak < 512 << 20, "{peak} bytes");
    }

    #[test]
    fn a_program_that_is_not_there_fails_with_what_to_do() {
        assert!(program("sh").is_absolute());
        let panic = std::panic::catch_unwind(|| program("no-such-program")).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("no-such-program") && text.contains("cargo xtask test"), "{text}");
    }
}
