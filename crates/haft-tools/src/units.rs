//! Numbers and sizes as the tools' answers write them.
//!
//! **Invariant:** every text is plain ASCII and the same on every machine.

pub(crate) use haft_text::numbers::grouped;

/// A number of things: `1 line`, `2 lines`, `12,345 lines`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// Things by their numbers: `line 2`, `lines 2-5`; the word for one, and that for several.
pub(crate) fn span(words: [&str; 2], first: u64, last: u64) -> String {
    match words {
        [one, _] if first == last => format!("{one} {last}"),
        [_, several] => format!("{several} {first}-{last}"),
    }
}

/// A size in bytes as people write it: `812 bytes`, `1.5 KB`, `3.2 GB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return count(bytes, "byte");
    }
    // In tenths, so that no floating point is needed.
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_sizes_rounded_down() {
        assert_eq!(count(1, "line"), "1 line");
        assert_eq!(count(1_234_567, "line"), "1,234,567 lines");
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(1999), "1.9 KB");
        assert_eq!(size(3_750_000), "3.7 MB");
        assert_eq!(size(u64::MAX), "18446.7 PB");
    }
}
