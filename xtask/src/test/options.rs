//! The command line of `cargo xtask test`.
//!
//! It knows the names of the steps and nothing of what they do.

use anyhow::Result;

use super::{Kind, Step, step_names};
use crate::Usage;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Nothing is installed.
    pub(super) quick: bool,
    /// The one step that is run.
    pub(super) only: Option<String>,
    /// The slowest tests are listed.
    pub(super) slow: bool,
    /// Only what the changed files touch is run.
    pub(super) changed: Option<Base>,
    /// What follows `--`, for the test runner.
    pub(super) extra: Vec<String>,
}

/// What the files are compared with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Where this branch left the main one.
    Main,
    /// A commit that git knows by this name.
    Commit(String),
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => options.quick = true,
                "--slow" => options.slow = true,
                "--only" => options.only = Some(step(words.next())?),
                "--changed" => {
                    let base = words.next_if(|word| !word.starts_with('-'));
                    options.changed =
                        Some(base.map_or(Base::Main, |name| Base::Commit(name.clone())));
                }
                "--" => options.extra.extend(words.by_ref().cloned()),
                other => {
                    let message = format!(
                        "test does not know {other:?}: it takes --quick, --only STEP, --slow, \
                         --changed [BASE], and after -- the arguments of the test runner"
                    );
                    return Err(Usage(message).into());
                }
            }
        }
        if options.slow && options.only.as_deref().is_some_and(|only| only != "tests") {
            let message = "--slow lists tests: give it without --only, or with --only tests";
            return Err(Usage(message.to_owned()).into());
        }
        Ok(options)
    }

    /// Whether the step is asked for, whatever has changed.
    pub(super) fn wants(&self, step: &Step) -> bool {
        match &self.only {
            Some(name) => step.name == name,
            None => !(self.quick && step.kind == Kind::Install),
        }
    }
}

fn step(word: Option<&String>) -> Result<String> {
    let names = step_names();
    match word {
        Some(word) if names.contains(&word.as_str()) => Ok(word.clone()),
        Some(word) => {
            let names = names.join(", ");
            Err(Usage(format!("there is no step {word:?}; the steps are {names}")).into())
        }
        None => Err(Usage(format!("--only needs a step: {}", names.join(", "))).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn what_follows_two_dashes_goes_to_the_runner() {
        let options = parse("--quick --slow -- --quick -E x").unwrap();
        assert!(options.quick && options.slow);
        assert_eq!(options.extra, ["--quick", "-E", "x"]);
    }

    #[test]
    fn the_base_may_be_named() {
        assert_eq!(parse("--changed").unwrap().changed, Some(Base::Main));
        assert_eq!(parse("--changed --slow").unwrap().changed, Some(Base::Main));
        let named = parse("--changed HEAD~2 -- -E x").unwrap();
        assert_eq!(named.changed, Some(Base::Commit("HEAD~2".to_owned())));
        assert_eq!(named.extra, ["-E", "x"]);
        assert_eq!(parse("").unwrap().changed, None);
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["--fast", "--only", "--only lint", "tests", "--only fmt --slow"] {
            let error = parse(line).unwrap_err();
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
        assert!(parse("--only tests --slow").is_ok());
    }

    #[test]
    fn quick_leaves_out_the_installs_and_only_picks_one() {
        let quick = parse("--quick").unwrap();
        let left: Vec<_> = STEPS.iter().filter(|step| quick.wants(step)).collect();
        assert!(!left.is_empty() && left.iter().all(|step| step.kind != Kind::Install));
        let only = parse("--only python").unwrap();
        let left: Vec<_> = STEPS.iter().filter(|step| only.wants(step)).map(|s| s.name).collect();
        assert_eq!(left, ["python"]);
    }
}
