//! A story is ended, or failed by the system, at every one of its file calls.
//!
//! strace counts the calls of each thread apart. So a first run tells which thread changes files and
//! what it calls, and for each of these calls how it is told from those of the other threads: by a
//! count that only this thread reaches, or by the folder that it is about. Threads may work in
//! another order the next time; then another call is hit, which is as good. What was hit is read
//! from what strace says, never assumed.

use std::{collections::BTreeSet, fs, os::unix::process::ExitStatusExt as _, path::PathBuf};

use super::{Ends, Story, create, edit, notebook, report, times, write};
use crate::world::World;

/// What can be disturbed: whatever is about files.
const CALLS: &str = "openat,openat2,write,pwrite64,fsync,fdatasync,fchmod,fchown,fsetxattr,\
                     fremovexattr,flistxattr,newfstatat,faccessat2,rename,renameat,renameat2,unlink,unlinkat,\
                     mkdir,mkdirat,linkat,ftruncate,flock,getdents64";
/// What a thread calls that changes files.
const CHANGES: [&str; 7] =
    ["rename", "unlink", "mkdir", "linkat", "ftruncate", "fchmod", "O_CREAT"];

/// How often a call is tried to be hit that threads may make in another order.
pub const TRIES: u32 = 40;
/// Holds the log's first sync up for 100 ms. It goes side by side with the first sync of a changed
/// file; where it always comes first, that of the file could be told by no count.
const LATE: [&str; 2] = ["-e", "inject=fdatasync:delay_enter=100000:when=1"];

/// One call of a thread, and how it is found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub syscall: String,
    /// From 1 on, among the calls of its thread that the filter lets through.
    pub nth: usize,
    /// Below the world's root; only calls about this path count.
    pub about: Option<PathBuf>,
    /// Whether the log's first sync is held up.
    pub late: bool,
    /// The line in which strace told it.
    pub line: String,
}

/// What strace is told to do.
pub enum Disturb<'a> {
    Kill,
    Fail(&'a str),
}

/// How a disturbed run ended.
pub struct Ended {
    /// None when it was killed.
    pub code: Option<i32>,
    pub said: String,
    /// The line of the call that was hit; none when the run went through.
    pub hit: Option<String>,
}

/// Runs a story under strace.
pub fn disturbed(story: &Story, world: &World, spot: &Spot, how: &Disturb<'_>) -> Ended {
    let Spot { syscall, nth, .. } = spot;
    let inject = match how {
        Disturb::Kill => format!("inject={syscall}:signal=KILL:when={nth}"),
        Disturb::Fail(error) => format!("inject={syscall}:error={error}:when={nth}"),
    };
    let about = spot.about.as_ref().map(|path| world.root().join(path).display().to_string());
    let mut flags = vec!["-e", &inject];
    let mut calls = syscall.clone();
    if spot.late {
        // What strace does not trace, it does not hold up.
        calls += ",fdatasync";
        flags.extend(LATE);
    }
    flags.extend(about.iter().flat_map(|path| ["-P", path]));
    let (output, threads) = traced(story, world, &calls, &flags);
    let end = if matches!(how, Disturb::Kill) { "= ?" } else { "(INJECTED)" };
    let mut lines = threads.iter().flatten().map(|call| &call.line);
    let hit = lines.find(|line| line.ends_with(end));
    let killed = output.status.signal() == Some(9);
    assert_eq!(killed, matches!(how, Disturb::Kill) && hit.is_some(), "{spot:?} {output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    Ended { code: output.status.code(), said, hit: hit.cloned() }
}

/// A call as strace tells it.
#[derive(PartialEq)]
struct Traced {
    /// In seconds.
    at: f64,
    line: String,
}

impl Traced {
    /// None for a line that is about no call.
    fn parse(line: &str) -> Option<Self> {
        let (at, line) = line.split_once(' ')?;
        let is_call = line.starts_with(|first: char| first.is_ascii_lowercase());
        is_call.then_some(Self { at: at.parse().ok()?, line: line.trim_end().to_owned() })
    }
}

/// Runs a story under strace; gives what each thread called.
fn traced(
    story: &Story,
    world: &World,
    calls: &str,
    flags: &[&str],
) -> (std::process::Output, Vec<Vec<Traced>>) {
    let folder = tempfile::tempdir().unwrap();
    let trace = format!("trace={calls}");
    let mut command = world.program("strace");
    command.args(["-ff", "-qq", "-ttt", "-y", "-s", "0", "-e", &trace]).args(flags);
    command.arg("-o").arg(folder.path().join("of"));
    let output = command
        .arg(env!("CARGO_BIN_EXE_haft"))
        .args(&story.arguments)
        .output()
        .expect("strace cannot be run: `cargo xtask test` installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    // It says so of a thread that was ended while it was held up, and goes on rightly.
    let hindered = |line: &str| line.contains("strace:") && !line.contains("delayed wait data");
    assert!(!said.lines().any(hindered), "strace may not do its work here: {said}");
    let thread = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter_map(Traced::parse).collect()
    };
    let paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    (output, paths.map(thread).collect())
}

/// The calls of the threads that change files, from their first change on.
pub fn spots(story: &Story) -> Vec<Spot> {
    spots_in(story, false)
}

/// The same calls, in a run where the log's first sync is held up or not.
pub fn spots_in(story: &Story, late: bool) -> Vec<Spot> {
    let world = story.world();
    let (output, threads) = traced(story, &world, CALLS, if late { &LATE } else { &[] });
    assert!(output.status.success(), "{}: {output:?}", story.name);
    let mut spots = Vec::new();
    for thread in &threads {
        let changes = |call: &Traced| CHANGES.iter().any(|change| call.line.contains(change));
        let Some(first) = thread.iter().position(changes) else { continue };
        let found = (first..thread.len()).filter_map(|at| spot(&world, &threads, thread, at));
        // One call has one thing done to it.
        let free = |spot: &Spot| !(late && spot.syscall == "fdatasync");
        spots.extend(found.map(|spot| Spot { late, ..spot }).filter(free));
    }
    assert!(!spots.is_empty(), "{}: no thread changes a file", story.name);
    spots
}

fn name(line: &str) -> &str {
    line.split('(').next().unwrap_or_default()
}

/// How the call of a thread is told from those that others made before; none where it cannot be.
fn spot(world: &World, threads: &[Vec<Traced>], thread: &[Traced], at: usize) -> Option<Spot> {
    let Traced { at: time, line } = &thread[at];
    let root = world.root().display().to_string();
    let is_told = |about: &str| {
        let counted = |calls: &[Traced]| {
            let same = |call: &&Traced| name(&call.line) == name(line) && call.at <= *time;
            calls.iter().filter(same).filter(|call| call.line.contains(about)).count()
        };
        let nth = counted(&thread[..=at]);
        let mut others = threads.iter().filter(|other| **other != *thread);
        others.all(|other| counted(other) < nth).then_some(nth)
    };
    let spot = |nth, about| {
        Some(Spot { syscall: name(line).into(), nth, about, late: false, line: line.clone() })
    };
    if let Some(nth) = is_told("") {
        return spot(nth, None);
    }
    // The folder in which it looks a name up, as strace tells it beside its descriptor.
    let (_, path) = line.split_once('<')?;
    let (path, _) = path.split_once('>')?;
    let below = path.strip_prefix(&root)?.strip_prefix('/')?;
    // Names that are other ones each time cannot be given beforehand.
    if !below.starts_with("work") || below.contains(".haft-") {
        return None;
    }
    spot(is_told(&format!("<{path}>"))?, Some(below.into()))
}

/// What a story went through when it was ended at all of its calls.
#[derive(Default)]
struct StorySummary {
    hit: Vec<String>,
    temporary: usize,
    /// How often only a part of the change was made.
    torn: u32,
    old: u32,
    new: u32,
}

impl StorySummary {
    /// Whether it was ended at a call whose line holds this.
    fn holds(&self, (call, part): (&str, &str)) -> bool {
        self.hit.iter().any(|line| name(line) == call && line.contains(part))
    }
}

/// Ends a story at each of its calls, and at the wanted ones until they were hit; gives how often
/// only a part of the change was made before the next start.
pub fn kill_everywhere(story: &Story, wanted: &[(&str, &str)]) -> u32 {
    let ends = story.ends();
    let spots = spots(story);
    let mut seen = StorySummary::default();
    for spot in &spots {
        (0..times(1)).for_each(|_| kill_at(story, &ends, spot, &mut seen));
    }
    for (call, part) in wanted {
        let is_meant = |spot: &&Spot| spot.syscall == *call && spot.line.contains(part);
        let mut tries = 0..TRIES;
        while !seen.holds((call, part))
            && let Some(n) = tries.next()
        {
            // Where threads mix in another way, other calls can be told.
            for spot in spots_in(story, n % 2 == 0).iter().filter(is_meant) {
                kill_at(story, &ends, spot, &mut seen);
            }
        }
    }
    let calls: BTreeSet<&str> = seen.hit.iter().map(|line| name(line)).collect();
    report(&format!(
        "{}: killed {} times at {calls:?}; {} left temporary files, {} a part of the change; then \
         {} old and {} new",
        story.name,
        seen.hit.len(),
        seen.temporary,
        seen.torn,
        seen.old,
        seen.new
    ));
    for wanted in wanted {
        assert!(seen.holds(*wanted), "never killed at {wanted:?}, only at {:#?}", seen.hit);
    }
    assert!(seen.old > 0 && seen.new > 0 && seen.temporary > 0, "not every way was taken");
    seen.torn
}

fn kill_at(story: &Story, ends: &Ends, spot: &Spot, seen: &mut StorySummary) {
    let world = story.world();
    let ended = disturbed(story, &world, spot, &Disturb::Kill);
    let Some(hit) = ended.hit else {
        assert_eq!(ended.code, Some(0), "{spot:?}: {}", ended.said);
        return;
    };
    let told = format!("{}, killed at {hit}", story.name);
    seen.temporary += ends.judge_left(&world, &told).min(1);
    seen.torn += u32::from(ends.is_torn(&world));
    seen.hit.push(hit);
    *(if ends.judge_next_start(&world, &told) { &mut seen.new } else { &mut seen.old }) += 1;
}

#[test]
fn an_edit_killed_at_any_file_call_leaves_the_old_or_the_new_file() {
    let wanted = [
        ("openat", "O_CREAT|O_EXCL|O_LARGEFILE"),
        ("pwrite64", ".tmp"),
        ("fchmod", ".tmp"),
        ("fsync", ".tmp"),
        ("flock", "work/sub"),
        ("renameat2", "RENAME_EXCHANGE"),
        ("unlinkat", ".tmp"),
        ("fsync", "work/sub>"),
    ];
    kill_everywhere(&edit(), &wanted);
}

#[test]
fn a_write_killed_at_any_file_call_leaves_the_old_or_the_new_file() {
    let wanted = [("pwrite64", ".tmp"), ("renameat2", "RENAME_EXCHANGE"), ("unlinkat", ".tmp")];
    kill_everywhere(&write(), &wanted);
}

#[test]
fn a_creation_killed_at_any_file_call_leaves_the_new_file_or_nothing() {
    // Its few writes cannot be told from those of the log.
    let wanted = [("mkdirat", "by it"), ("renameat2", "RENAME_NOREPLACE")];
    kill_everywhere(&create(), &wanted);
}

#[test]
fn a_notebook_killed_at_any_file_call_is_the_old_or_the_new_one() {
    let wanted = [
        ("pwrite64", ".tmp"),
        ("fsync", ".tmp"),
        ("renameat2", "RENAME_EXCHANGE"),
        ("unlinkat", ".tmp"),
    ];
    kill_everywhere(&notebook(), &wanted);
}
