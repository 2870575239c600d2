//! What a process used of the processor, as the scheduler counts it: in nanoseconds, where a count
//! of ticks would show a frame as nothing. Needs `/proc`.
//!
//! It is counted by thread. What a thread used that ended between two looks is not seen.

use std::collections::BTreeMap;
use std::fs;

/// Milliseconds of a tick in `/proc`: Linux tells programs 100 a second on every machine.
const TICK: f64 = 10.0;

/// What each thread used so far, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct ProcessorTime(BTreeMap<u32, u64>);

impl ProcessorTime {
    /// Looks at a process; one that is gone has no threads.
    pub(super) fn of(process: u32) -> Self {
        let folder = format!("/proc/{process}/task");
        let threads = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let used = threads.filter_map(|thread| {
            let name = thread.file_name().to_str()?.parse().ok()?;
            let schedule = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((name, schedule.split(' ').next()?.parse().ok()?))
        });
        Self(used.collect())
    }

    /// Milliseconds that were used since an earlier look.
    pub(super) fn since(&self, earlier: &Self) -> f64 {
        let used = |(thread, now): (&u32, &u64)| {
            now.saturating_sub(earlier.0.get(thread).copied().unwrap_or_default())
        };
        let nanoseconds: u64 = self.0.iter().map(used).sum();
        std::time::Duration::from_nanos(nanoseconds).as_secs_f64() * 1000.0
    }
}

/// Milliseconds that all children used that this process has waited for; only whole ticks.
pub(super) fn of_children() -> Option<f64> {
    children(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The times of children in a line of `/proc/PID/stat`, whose second field may hold anything.
fn children(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(13);
    let (user, system): (u32, u32) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(f64::from(user + system) * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_used_is_read_from_a_line_of_the_system() {
        let line = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 400 500 12 13 20 0 1 0\n";
        assert_eq!(children(line), Some(250.0));
        assert_eq!(children("7 (a"), None);
        assert!(of_children().is_some());
    }

    #[test]
    fn what_was_used_between_two_looks_is_counted() {
        let before = ProcessorTime(BTreeMap::from([(1, 5_000_000), (2, 9)]));
        let after = ProcessorTime(BTreeMap::from([(1, 6_000_000), (3, 500_000)]));
        assert!((after.since(&before) - 1.5).abs() < 1e-9);
        let own = ProcessorTime::of(std::process::id());
        assert!(!own.0.is_empty() && own.since(&own) < 1e-9);
    }
}
