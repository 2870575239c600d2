//! What a run of cargo-nextest says of each test, read from the file that it writes (the XML of `JUnit`).
//!
//! The file is made by a program and every `<` of a text in it is escaped, so that a scan for the
//! tags is enough. A test that was tried several times is one case: how it ended counts. It does
//! not know what is made of the cases.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::project::Project;

/// A test that was run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    /// The crate, or the crate and one of its test binaries: `haft-text::it`.
    pub(crate) binary: String,
    /// Modules and function, as the test runner names it.
    pub(crate) name: String,
    /// Of its last try.
    pub(crate) seconds: f64,
    pub(crate) end: End,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    Failed,
    TimedOut,
}

/// A file that the next run of the tests writes.
pub(crate) struct Report {
    path: PathBuf,
}

impl Report {
    /// Names the file for a run with these arguments of the runner, and removes that of another
    /// run, which would be taken for this one's where nothing can be built.
    ///
    /// # Errors
    ///
    /// When an older file cannot be removed.
    pub(crate) fn of_next_run(project: &Project, arguments: &[String]) -> Result<Self> {
        // cargo-nextest goes by the repository, and not by the folder that cargo builds in.
        let folder = project.root.join("target/nextest").join(profile(arguments));
        let path = folder.join("junit.xml");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be removed", path.display()))
            }
            _ => Ok(Self { path }),
        }
    }

    /// The cases of the run, in the order of the file.
    ///
    /// # Errors
    ///
    /// When the run wrote no such file, or one without a case.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        read(&self.path)
    }
}

fn read(path: &Path) -> Result<Vec<Case>> {
    let text = fs::read_to_string(path).with_context(|| {
        format!(
            "{} cannot be read: did cargo-nextest come to run a test, and is junit.path set in \
             .config/nextest.toml?",
            path.display()
        )
    })?;
    let cases = cases(&text);
    if cases.is_empty() {
        bail!("{} names no test: did the filter match one?", path.display());
    }
    Ok(cases)
}

/// The profile of cargo-nextest that the arguments choose.
fn profile(arguments: &[String]) -> &str {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => break,
            "--profile" | "-P" => return words.next().map_or("default", String::as_str),
            _ => {}
        }
        if let Some(name) = word.strip_prefix("--profile=") {
            return name;
        }
    }
    "default"
}

fn cases(text: &str) -> Vec<Case> {
    // What stands before the first tag belongs to no test.
    text.split("<testcase ").skip(1).filter_map(case).collect()
}

/// A case from what follows its tag's name up to the next case.
fn case(text: &str) -> Option<Case> {
    let (tag, rest) = text.split_at(end_of_tag(text)?);
    let is_empty = tag.ends_with('/');
    let body = if is_empty { "" } else { rest.split("</testcase>").next().unwrap_or_default() };
    let failure = ["<failure", "<error"].into_iter().find_map(|name| body.split_once(name));
    let end = match failure {
        None => End::Passed,
        Some((_, tag)) => {
            let tag = &tag[..end_of_tag(tag).unwrap_or(tag.len())];
            let kind = attribute(tag, "type").unwrap_or_default();
            if kind.contains("timeout") { End::TimedOut } else { End::Failed }
        }
    };
    Some(Case {
        binary: attribute(tag, "classname")?,
        name: attribute(tag, "name")?,
        seconds: attribute(tag, "time")?.parse().ok()?,
        end,
    })
}

/// Where the `>` is that ends a tag; one within quotes is part of a value.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == b'>' && !is_quoted
    })
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let mark = format!("{name}=\"");
    let start = tag.match_indices(&mark).find(|(at, _)| {
        let before = tag[..*at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    })?;
    let value = tag[start.0 + mark.len()..].split('"').next()?;
    Some(unescaped(value))
}

fn unescaped(value: &str) -> String {
    // The ampersand comes last, so that what it makes is not read again.
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(value.to_owned(), |text, (name, letter)| text.replace(name, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4" failures="2" errors="0" time="9.1">
    <testsuite name="haft-x::it" tests="4">
        <testcase name="a::one" classname="haft-x::it" timestamp="2026-01-01T00:00:00.000+00:00" time="0.250"/>
        <testcase name="a::two" classname="haft-x::it" time="1.500">
            <failure message="left &gt; right" type="test failure with exit code 101">left &lt;testcase </failure>
            <system-out>&lt;failure type="test timeout"</system-out>
        </testcase>
        <testcase name="a::three" classname="haft-x" time="60.000">
            <failure type="test timeout"/>
        </testcase>
        <testcase name="a::four" classname="haft-x" time="0.100">
            <flakyFailure timestamp="" time="0.2" type="test failure"></flakyFailure>
        </testcase>
    </testsuite>
</testsuites>
"#;

    #[test]
    fn every_case_is_read_with_its_end() {
        let found: Vec<_> = cases(TEXT)
            .into_iter()
            .map(|case| (case.binary, case.name, case.seconds, case.end))
            .collect();
        let case = |binary: &str, name: &str, seconds, end| {
            (binary.to_owned(), name.to_owned(), seconds, end)
        };
        let expected = [
            case("haft-x::it", "a::one", 0.25, End::Passed),
            case("haft-x::it", "a::two", 1.5, End::Failed),
            case("haft-x", "a::three", 60.0, End::TimedOut),
            case("haft-x", "a::four", 0.1, End::Passed),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn values_are_read_whole() {
        let tag = r#"a-name="no" name="a &lt;b&gt; &amp;lt;" x="1 > 0""#;
        assert_eq!(attribute(tag, "name").unwrap(), "a <b> &lt;");
        assert_eq!(attribute(tag, "time"), None);
        assert_eq!(end_of_tag(&format!("{tag}>rest")), Some(tag.len()));
    }

    #[test]
    fn the_profile_is_that_of_the_arguments() {
        let of = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            profile(&words).to_owned()
        };
        assert_eq!(of("-E x"), "default");
        assert_eq!(of("-E x --profile soak"), "soak");
        assert_eq!((of("-P soak"), of("--profile=soak")), ("soak".to_owned(), "soak".to_owned()));
        assert_eq!(of("-- --profile soak"), "default");
    }

    #[test]
    fn a_file_that_is_not_there_or_empty_says_what_to_look_at() {
        let missing = read(Path::new("/nonexistent/junit.xml")).unwrap_err();
        assert!(format!("{missing:#}").contains(".config/nextest.toml"), "{missing:#}");
        assert!(cases("<testsuites></testsuites>").is_empty());
    }
}
