//! Where the time of the tests goes: the slowest of them, and the sum of each binary.
//!
//! The seconds are those of each test by itself. Since tests run beside each other, their sum is
//! more than the run took. It does not know how they were measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::junit::Case;

/// How many tests are listed.
const LISTED: usize = 50;

/// The slowest tests and the binaries, each with its seconds and its share of all.
pub(super) fn table(cases: &[Case]) -> String {
    let sum: f64 = cases.iter().map(|case| case.seconds).sum();
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let listed = sorted.len().min(LISTED);
    let mut text =
        format!("the slowest {listed} of {} tests, which took {sum:.1} s in all\n", cases.len());
    text += "seconds  share  test\n";
    for case in &sorted[..listed] {
        let name = format!("{} {}", case.binary, case.name);
        row(&mut text, case.seconds, sum, &name);
    }
    let mut binaries: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for case in cases {
        let binary = binaries.entry(&case.binary).or_default();
        *binary = (binary.0 + case.seconds, binary.1 + 1);
    }
    let mut binaries: Vec<_> = binaries.into_iter().collect();
    binaries.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
    text += "\nseconds  share  test binary\n";
    for (binary, (seconds, count)) in binaries {
        row(&mut text, seconds, sum, &format!("{binary}, {count} tests"));
    }
    text
}

fn row(text: &mut String, seconds: f64, sum: f64, name: &str) {
    let share = if sum > 0.0 { 100.0 * seconds / sum } else { 0.0 };
    let _ = writeln!(text, "{seconds:>7.2} {share:>5.1}%  {name}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::junit::End;

    fn case(binary: &str, name: &str, seconds: f64) -> Case {
        Case { binary: binary.to_owned(), name: name.to_owned(), seconds, end: End::Passed }
    }

    #[test]
    fn the_slowest_come_first_with_their_share() {
        let text = table(&[
            case("haft-x", "quick", 1.0),
            case("haft-y::it", "slow", 6.0),
            case("haft-x", "other", 3.0),
        ]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "the slowest 3 of 3 tests, which took 10.0 s in all");
        assert_eq!(lines[2], "   6.00  60.0%  haft-y::it slow");
        assert_eq!(lines[4], "   1.00  10.0%  haft-x quick");
        assert_eq!(
            lines[7..],
            ["   6.00  60.0%  haft-y::it, 1 tests", "   4.00  40.0%  haft-x, 2 tests"]
        );
    }

    #[test]
    fn fifty_are_listed_and_all_are_counted() {
        let cases: Vec<_> = (0..60).map(|number| case("b", &format!("t{number}"), 0.0)).collect();
        let text = table(&cases);
        assert!(text.starts_with("the slowest 50 of 60 tests"), "{text}");
        assert_eq!(text.lines().count(), 2 + 50 + 2 + 1);
        assert!(text.ends_with("b, 60 tests\n"), "{text}");
    }
}
