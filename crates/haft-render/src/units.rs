//! Numbers as people read them.

/// Formats a number of bytes: `512 B`, `1.5 KB`, `3.0 MB`, by powers of 1,024.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1024 {
        return format!("{count} B");
    }
    // In tenths, rounded half up; u128 so that the largest count cannot overflow.
    let mut power = 1_u128 << 10;
    for unit in UNITS {
        let tenths = (u128::from(count) * 10 + power / 2) / power;
        if tenths < 10_240 || unit == "EB" {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        power <<= 10;
    }
    format!("{count} B")
}

/// Formats a time in milliseconds: `12 ms`, `3.2 s`, `2 min 5 s`, `1 h 3 min`.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A moment in milliseconds since the Unix epoch as `2024-02-29 12:00`, UTC.
pub(crate) fn moment(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Days since 0000-03-01, in eras of 400 years (H. Hinnant, "chrono-Compatible Low-Level Date
    // Algorithms").
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// `one`, or `many` with its number: `1 line`, `3 lines`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KB");
        assert_eq!(bytes(1024 * 1024 - 1), "1.0 MB");
        assert_eq!(bytes(u64::MAX), "16.0 EB");
        assert_eq!(duration(999), "999 ms");
        assert_eq!(duration(3_250), "3.2 s");
        assert_eq!(duration(125_000), "2 min 5 s");
        assert_eq!(duration(3_780_000), "1 h 3 min");
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(moment(1_709_208_000_000), "2024-02-29 12:00");
        assert_eq!(moment(-60_000), "1969-12-31 23:59");
        moment(i64::MAX);
        moment(i64::MIN);
    }
}
