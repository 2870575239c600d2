//! `cargo xtask soak NAME`: the code of a test, run with a much bigger count.
//!
//! A soak is a line in one list: which tests, which variable carries the count, and how many. It
//! has no code of its own, so that what soaks is what runs in every test run. A soak that ran no
//! test has failed. The last line is ready for docs/measured.md.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::Usage;
use crate::measured;
use crate::process::{answer, cargo, watch};
use crate::project::Project;

/// A test that can be run for longer.
struct Soak {
    name: &'static str,
    about: &'static str,
    packages: &'static [&'static str],
    /// A part of the names of its tests.
    tests: &'static str,
    scale: Scale,
    /// The count when none is given.
    count: u64,
}

/// What the count means, and the variable that carries it to the tests.
#[derive(Clone, Copy)]
enum Scale {
    /// Random cases of each property.
    Cases,
    /// Times the count of a usual run.
    Factor,
}

impl Scale {
    fn variable(self) -> &'static str {
        match self {
            Self::Cases => "PROPTEST_CASES",
            Self::Factor => "HAFT_TEST_COUNT_FACTOR",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Cases => "cases each",
            Self::Factor => "times the usual count",
        }
    }
}

/// Every soak.
const SOAKS: &[Soak] = &[
    Soak {
        name: "machine",
        about: "random interleavings of inputs to the agent's machine",
        packages: &["haft-agent"],
        tests: "properties",
        scale: Scale::Cases,
        count: 100_000,
    },
    Soak {
        name: "text",
        about: "random texts, encodings and edits through the text engine",
        packages: &["haft-text"],
        tests: "properties",
        scale: Scale::Cases,
        count: 100_000,
    },
    Soak {
        name: "read-only",
        about: "random commands that are taken for read-only, run in a hostile folder",
        packages: &["haft-shell"],
        tests: "differential",
        scale: Scale::Cases,
        count: 10_000,
    },
    Soak {
        name: "scripts",
        about: "random scripts and words, beside what bash makes of them",
        packages: &["haft-shell"],
        tests: "bash",
        scale: Scale::Cases,
        count: 100_000,
    },
    Soak {
        name: "dressed",
        about: "commands that rules deny, in other words and within others",
        packages: &["haft-policy"],
        tests: "dressed",
        scale: Scale::Cases,
        count: 100_000,
    },
    Soak {
        name: "links",
        about: "links that flip between the stages of a call and while a tool works",
        packages: &["haft-tool", "haft-tools"],
        tests: "link_flip",
        scale: Scale::Factor,
        count: 100,
    },
    Soak {
        name: "files",
        about: "random changes by the file tools on both hosts, taken back and made again",
        packages: &["haft-tools"],
        tests: "properties",
        scale: Scale::Factor,
        count: 100,
    },
    Soak {
        name: "commands",
        about: "random commands that leave children in many ways, ended by themselves or not",
        packages: &["haft-host"],
        tests: "random_commands",
        scale: Scale::Factor,
        count: 17,
    },
    Soak {
        name: "output",
        about: "a command that prints 10^10 bytes: memory, time beside a bare pipe, what is kept",
        packages: &["haft-tools"],
        tests: "output_without_end",
        scale: Scale::Factor,
        count: 100,
    },
    Soak {
        name: "repository",
        about: "ways to destroy a git repository, at each level, by each kind of call, of each kind",
        packages: &["haft"],
        tests: "a_repository_survives",
        scale: Scale::Factor,
        count: 36,
    },
    Soak {
        name: "crash",
        about: "changes of files that are killed at every file call and at random instants",
        packages: &["haft"],
        tests: "crash",
        scale: Scale::Factor,
        count: 50,
    },
];

/// The names of the soaks.
pub(crate) fn names() -> Vec<&'static str> {
    SOAKS.iter().map(|soak| soak.name).collect()
}

/// The soaks as a table in Markdown.
pub(crate) fn table() -> String {
    let mut text = String::from("| soak | what | usual count | tests |\n|---|---|---|---|\n");
    for soak in SOAKS {
        let Soak { name, about, packages, tests, count, scale } = soak;
        let (unit, packages) = (scale.unit(), packages.join(" and "));
        let _ = writeln!(text, "| `{name}` | {about} | {count} {unit} | `{tests}` in {packages} |");
    }
    text
}

/// Runs a soak; `false` when a test failed or none ran.
///
/// # Errors
///
/// When the arguments are not understood or cargo cannot be started.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let Some((soak, count)) = parse(arguments)? else {
        print!("{}", table());
        return Ok(true);
    };
    let nextest = answer(&mut cargo(project, &["nextest", "--version"])).is_some();
    let mut command = if nextest {
        cargo(project, &["nextest", "run", "--profile", "soak"])
    } else {
        cargo(project, &["test"])
    };
    command.args(soak.packages.iter().flat_map(|package| ["-p", package])).arg(soak.tests);
    command.env(soak.scale.variable(), count.to_string());
    let start = Instant::now();
    let closing = if nextest { "Summary" } else { "test result:" };
    let (fine, lines) = watch(&mut command, closing)?;
    let seconds = start.elapsed().as_secs_f64();
    let passed: u64 = lines.iter().filter_map(|line| passed(line)).sum();
    if passed == 0 {
        eprintln!(
            "no test of {} passed whose name holds {:?}: see SOAKS in xtask/src/soak.rs",
            soak.packages.join(" and "),
            soak.tests
        );
    }
    let ended = if fine && passed > 0 { "all passed" } else { "FAILED" };
    let (name, unit) = (soak.name, soak.scale.unit());
    let figure = format!("tests: {passed}, {count} {unit}, {seconds:.0} s, {ended}");
    println!("{}", measured::row(&format!("soak {name}"), &figure));
    Ok(fine && passed > 0)
}

/// The soak and its count; `None` when no name is given.
fn parse(arguments: &[String]) -> Result<Option<(&'static Soak, u64)>> {
    let Some((name, rest)) = arguments.split_first() else {
        return Ok(None);
    };
    let soak = SOAKS.iter().find(|soak| soak.name == name).with_context(|| {
        Usage(format!("there is no soak {name:?}; the soaks are {}", names().join(", ")))
    })?;
    let count = match rest {
        [] => soak.count,
        [flag, count] if flag == "--count" => {
            count.parse().ok().filter(|count| *count > 0).with_context(|| {
                Usage(format!("--count needs a whole number from 1 on, not {count:?}"))
            })?
        }
        other => {
            return Err(Usage(format!("soak takes --count N, not {:?}", other.join(" "))).into());
        }
    };
    Ok(Some((soak, count)))
}

/// The number of passed tests in a closing line of nextest or of the built-in runner.
fn passed(line: &str) -> Option<u64> {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            // A colour: everything up to its final letter.
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    let (before, _) = plain.split_once(" passed")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn closing_lines_of_both_runners_are_read() {
        let nextest = "     Summary [   0.013s] 12 tests run: 11 passed, 1 failed, 3 skipped";
        assert_eq!(passed(nextest), Some(11));
        let colour = "\u{1b}[32mSummary\u{1b}[0m 2 tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32mpassed";
        assert_eq!(passed(colour), Some(2));
        let cargo = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(passed(cargo), Some(7));
        assert_eq!(passed("0 tests run: nothing"), None);
    }

    #[test]
    fn the_count_is_the_usual_one_unless_given() {
        let (soak, count) = parse(&words("machine")).unwrap().unwrap();
        assert_eq!((soak.name, count), ("machine", soak.count));
        let (_, count) = parse(&words("machine --count 7")).unwrap().unwrap();
        assert_eq!(count, 7);
        assert!(parse(&[]).unwrap().is_none());
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["nothing", "machine 7", "machine --count", "machine --count 0"] {
            let Err(error) = parse(&words(line)) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }
}
