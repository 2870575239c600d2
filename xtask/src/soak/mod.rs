//! `cargo xtask soak NAME`: the code of a test, run with a much bigger count.
//!
//! A soak is a line in one list: which tests, what the count means, and how many. It has no code
//! of its own, so that what soaks is what runs in every test run; only what no test run can have,
//! a server of models, has some. A soak that ran no test has failed. The last line is ready for
//! docs/measured.md.

mod filtered;
mod local_model;
mod suite;

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use crate::Usage;
use crate::measured;
use crate::project::Project;

/// Tests that can be run for longer.
struct Soak {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    /// The count when none is given.
    count: u64,
}

/// Which tests are run, and how the count is used.
enum Kind {
    /// Some tests, once: the count is theirs.
    Tests {
        packages: &'static [&'static str],
        /// A part of the names of the tests.
        tests: &'static str,
        scale: Scale,
    },
    /// Every test, as often as the count says.
    Suite,
    /// haft itself against a server of models on this machine.
    LocalModel,
}

/// What one run of a soak is given.
struct Order<'a> {
    count: u64,
    /// Arguments for the test runner; of a soak without tests the names of steps.
    extra: &'a [String],
}

/// How a soak ended.
struct Outcome {
    /// What is worth a line of docs/measured.md.
    figure: String,
    is_fine: bool,
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
        kind: Kind::Tests { packages: &["haft-agent"], tests: "properties", scale: Scale::Cases },
        count: 100_000,
    },
    Soak {
        name: "text",
        about: "random texts, encodings and edits through the text engine",
        kind: Kind::Tests { packages: &["haft-text"], tests: "properties", scale: Scale::Cases },
        count: 100_000,
    },
    Soak {
        name: "read-only",
        about: "random commands that are taken for read-only, run in a hostile folder",
        kind: Kind::Tests { packages: &["haft-shell"], tests: "differential", scale: Scale::Cases },
        count: 10_000,
    },
    Soak {
        name: "scripts",
        about: "random scripts and words, beside what bash makes of them",
        kind: Kind::Tests { packages: &["haft-shell"], tests: "bash", scale: Scale::Cases },
        count: 100_000,
    },
    Soak {
        name: "dressed",
        about: "commands that rules deny, in other words and within others",
        kind: Kind::Tests { packages: &["haft-policy"], tests: "dressed", scale: Scale::Cases },
        count: 100_000,
    },
    Soak {
        name: "links",
        about: "links that flip between the stages of a call and while a tool works",
        kind: Kind::Tests {
            packages: &["haft-tool", "haft-tools"],
            tests: "link_flip",
            scale: Scale::Factor,
        },
        count: 100,
    },
    Soak {
        name: "files",
        about: "random changes by the file tools on both hosts, taken back and made again",
        kind: Kind::Tests { packages: &["haft-tools"], tests: "properties", scale: Scale::Factor },
        count: 100,
    },
    Soak {
        name: "commands",
        about: "random commands that leave children in many ways, ended by themselves or not",
        kind: Kind::Tests {
            packages: &["haft-host"],
            tests: "random_commands",
            scale: Scale::Factor,
        },
        count: 17,
    },
    Soak {
        name: "output",
        about: "a command that prints 10^10 bytes: memory, time beside a bare pipe, what is kept",
        kind: Kind::Tests {
            packages: &["haft-tools"],
            tests: "output_without_end",
            scale: Scale::Factor,
        },
        count: 100,
    },
    Soak {
        name: "repository",
        about: "ways to destroy a git repository, at each level, by each kind of call, of each kind",
        kind: Kind::Tests {
            packages: &["haft"],
            tests: "a_repository_survives",
            scale: Scale::Factor,
        },
        count: 36,
    },
    Soak {
        name: "scrollback",
        about: "resizes at random moments, in two emulators and in tmux: each line stands once, \
                no live row does",
        kind: Kind::Tests {
            packages: &["haft-tui", "haft"],
            tests: "every_line_stands_once",
            scale: Scale::Factor,
        },
        count: 10,
    },
    Soak {
        name: "crash",
        about: "changes of files that are killed at every file call and at random instants",
        kind: Kind::Tests { packages: &["haft"], tests: "crash", scale: Scale::Factor },
        count: 50,
    },
    Soak {
        name: "seeds",
        about: "sessions that are interrupted, closed and killed at any await point, on a virtual clock",
        kind: Kind::Tests {
            packages: &["haft-agent"],
            tests: "seeds_lose_nothing",
            scale: Scale::Factor,
        },
        count: 20,
    },
    Soak {
        name: "kills",
        about: "runs on each wire that are killed at random instants, and gone on with",
        kind: Kind::Tests {
            packages: &["haft"],
            tests: "a_run_killed_at_any_instant",
            scale: Scale::Factor,
        },
        count: 10,
    },
    Soak {
        name: "flaky",
        about: "every test, over and over beside two busy loops, none tried again when it fails",
        kind: Kind::Suite,
        count: 3,
    },
    Soak {
        name: "local-model",
        about: "a real server with a small model: text, calls, a cancel, an overflow, its death",
        kind: Kind::LocalModel,
        count: 1,
    },
];

/// The names of the soaks.
pub(crate) fn names() -> Vec<&'static str> {
    SOAKS.iter().map(|soak| soak.name).collect()
}

/// The soaks as a table in Markdown.
pub(crate) fn table() -> String {
    let mut text = String::from("| soak | what | usual count | tests |\n|---|---|---|---|\n");
    for Soak { name, about, kind, count } in SOAKS {
        let tests = match kind {
            Kind::Tests { packages, tests, .. } => {
                format!("`{tests}` in {}", packages.join(" and "))
            }
            Kind::Suite => "all".to_owned(),
            Kind::LocalModel => "none".to_owned(),
        };
        let unit = kind.unit();
        let _ = writeln!(text, "| `{name}` | {about} | {count} {unit} | {tests} |");
    }
    text
}

impl Kind {
    /// What is counted.
    fn unit(&self) -> &'static str {
        match self {
            Self::Tests { scale, .. } => scale.unit(),
            Self::Suite => "runs",
            Self::LocalModel => "rounds",
        }
    }
}

/// Runs a soak; `false` when a test failed or none ran.
///
/// # Errors
///
/// When the arguments are not understood or cargo cannot be started.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let Some((soak, order)) = parse(arguments)? else {
        print!("{}", table());
        return Ok(true);
    };
    let outcome = match &soak.kind {
        Kind::Tests { packages, tests, scale } => {
            filtered::run(project, packages, tests, *scale, &order)?
        }
        Kind::Suite => suite::run(project, &order)?,
        Kind::LocalModel => local_model::run(project, &order)?,
    };
    let mut what = format!("soak {}", soak.name);
    if !order.extra.is_empty() {
        let _ = write!(what, " of a part: `{}`", order.extra.join(" "));
    }
    let ended = if outcome.is_fine { "all passed" } else { "FAILED" };
    println!("{}", measured::row(&what, &format!("{}, {ended}", outcome.figure)));
    Ok(outcome.is_fine)
}

/// The soak and what it is given; `None` when no name is given.
fn parse(arguments: &[String]) -> Result<Option<(&'static Soak, Order<'_>)>> {
    let Some((name, rest)) = arguments.split_first() else {
        return Ok(None);
    };
    let soak = SOAKS.iter().find(|soak| soak.name == name).with_context(|| {
        Usage(format!("there is no soak {name:?}; the soaks are {}", names().join(", ")))
    })?;
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (rest, extra) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let count = match rest {
        [] => soak.count,
        [flag, count] if flag == "--count" => {
            count.parse().ok().filter(|count| *count > 0).with_context(|| {
                Usage(format!("--count needs a whole number from 1 on, not {count:?}"))
            })?
        }
        other => {
            let other = other.join(" ");
            let message = "and after -- the arguments of the test runner or the names of steps";
            return Err(Usage(format!("soak takes --count N {message}, not {other:?}")).into());
        }
    };
    Ok(Some((soak, Order { count, extra })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_count_is_the_usual_one_unless_given() {
        let of = |line: &str| {
            let words = words(line);
            let (soak, order) = parse(&words).unwrap().unwrap();
            (soak.name, order.count, order.extra.join(" "))
        };
        assert_eq!(of("machine"), ("machine", 100_000, String::new()));
        assert_eq!(of("machine --count 7"), ("machine", 7, String::new()));
        assert_eq!(of("flaky -- -p haft-x"), ("flaky", 3, "-p haft-x".to_owned()));
        assert_eq!(of("flaky --count 9 -- -E x"), ("flaky", 9, "-E x".to_owned()));
        assert!(parse(&[]).unwrap().is_none());
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["nothing", "machine 7", "machine --count", "machine --count 0"] {
            let words = words(line);
            let Err(error) = parse(&words) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        let table = table();
        assert_eq!(table.lines().count(), 2 + SOAKS.len());
        assert!(table.lines().all(|line| line.matches('|').count() == 5), "{table}");
        assert!(table.contains("| 3 runs | all |"), "{table}");
    }
}
