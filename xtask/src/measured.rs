//! What a line of docs/measured.md needs: the date, and what kind of machine this is.
//!
//! The machine is described by its class, never by its name. It does not know what was measured.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// One row of the table of docs/measured.md.
pub(crate) fn row(what: &str, figure: &str) -> String {
    format!("| {} | {what} | {figure} | {} |", today(), machine())
}

/// The class of this machine: cores, memory, processor, system.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| gibibytes(&text));
    let memory = memory.map(|gibibytes| format!(", {gibibytes} GiB")).unwrap_or_default();
    format!("{cores} cores{memory}, {} {}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Today in UTC, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date(seconds / 86_400)
}

fn gibibytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kibibytes + 512 * 1024) / (1024 * 1024))
}

/// The date of a day counted from 1970-01-01, after Howard Hinnant's `civil_from_days`: years that
/// start in March put the leap day last, so that months need no table.
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let cases = [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01")];
        for (days, expected) in cases {
            assert_eq!(date(days), expected);
        }
        assert_eq!(date(20_454), "2026-01-01");
        assert_eq!(date(20_453), "2025-12-31");
    }

    #[test]
    fn memory_is_rounded_to_gibibytes() {
        assert_eq!(gibibytes("MemTotal:       24604340 kB\nMemFree: 1 kB\n"), Some(23));
        assert_eq!(gibibytes("nothing"), None);
    }

    #[test]
    fn a_row_has_four_cells() {
        let row = row("soak x", "1 case");
        assert_eq!(row.matches('|').count(), 5, "{row}");
    }
}
