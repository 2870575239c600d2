//! How many words of a command a suggested rule names, so that the rule also allows later commands
//! that begin with them.
//!
//! **Invariant:** whatever follows these words, the task is the same: no further word names a
//! program to run, another machine, or something to send. A command that is not listed here is
//! suggested word for word.
//!
//! Two risks are accepted with that. Builds and tests run what the project holds, which may do
//! anything; cargo could be given programs by `--config`, too. And a word may say where they write
//! what they make.

/// Programs and their tasks.
///
/// Left out are, for one: tasks of git that start what an option names (`--upload-pack`, `--exec`,
/// `--strategy`) or write a file (`--output`); `go test -exec`; `make SHELL=`; `kubectl --kubeconfig`; what
/// removes, sends or installs things; interpreters, and wrappers of other programs.
const TASKS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "bench",
            "build",
            "check",
            "clippy",
            "doc",
            "fmt",
            "metadata",
            "nextest list",
            "nextest run",
            "test",
            "tree",
        ],
    ),
    ("docker", &["compose logs", "compose ps", "images", "logs", "ps"]),
    (
        "gh",
        &[
            "issue list",
            "issue status",
            "issue view",
            "pr checks",
            "pr diff",
            "pr list",
            "pr status",
            "pr view",
            "release list",
            "release view",
            "repo list",
            "repo view",
            "run list",
            "run view",
            "run watch",
            "workflow list",
            "workflow view",
        ],
    ),
    ("git", &["add", "commit", "status"]),
    ("go", &["fmt"]),
    ("py.test", &[""]),
    ("pytest", &[""]),
    ("terraform", &["fmt", "validate"]),
    ("tofu", &["fmt", "validate"]),
];

/// Modules of Python that run the tests of a project.
const MODULES: &[&str] = &["pytest", "unittest"];

/// Scripts of a project that build and check it, by their names, or by what stands before a colon: others may
/// send things, or remove them, by words behind.
const SCRIPTS: &[&str] =
    &["build", "check", "compile", "coverage", "fmt", "format", "lint", "test", "typecheck"];

/// What runs a program in the environment of a project, and takes no options behind its name.
const RUNNERS: &[&str] = &["pdm", "pipenv", "poetry", "uv"];

/// How many of the words say what runs, where that is so whatever stands behind them.
pub(crate) fn of(words: &[&str]) -> Option<usize> {
    match words {
        [runner, "run", rest @ ..] if RUNNERS.contains(runner) => task(rest).map(|count| count + 2),
        _ => task(words),
    }
}

fn task(words: &[&str]) -> Option<usize> {
    let (program, rest) = words.split_first()?;
    let count = match *program {
        name if is_python(name) => match rest {
            ["-m", module, ..] if MODULES.contains(module) => Some(2),
            _ => None,
        },
        "pnpm" | "yarn" => script(rest),
        // It takes options of its own up to there.
        "npm" => {
            script(rest).filter(|count| rest.get(*count) == Some(&"--")).map(|count| count + 1)
        }
        name => {
            let tasks = TASKS.iter().find(|(own, _)| *own == name)?.1;
            let counts = tasks.iter().map(|task| task.split_whitespace().collect::<Vec<_>>());
            counts.filter(|task| rest.starts_with(task)).map(|task| task.len()).max()
        }
    };
    count.map(|count| count + 1)
}

/// How many words name a script of the project.
fn script(words: &[&str]) -> Option<usize> {
    let is_known = |name: &&str| name.split(':').next().is_some_and(|name| SCRIPTS.contains(&name));
    match words {
        ["run", name, ..] if is_known(name) => Some(2),
        [name, ..] if is_known(name) => Some(1),
        _ => None,
    }
}

/// Whether a name is that of Python, perhaps with its version.
fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.bytes().all(|c| c.is_ascii_digit() || c == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_what_runs_are_counted() {
        for (text, count) in [
            ("cargo test -p x", Some(2)),
            ("cargo nextest run", Some(3)),
            ("cargo", None),
            ("cargo nextest", None),
            ("cargo +nightly test", None),
            ("cargo --config x test", None),
            ("git commit -m x", Some(2)),
            ("git -c x commit", None),
            ("git fetch origin", None),
            ("/usr/bin/git commit", None),
            ("python3 -m unittest -v", Some(3)),
            ("python3.12 -m pytest", Some(3)),
            ("python3 -m pip install x", None),
            ("python3 -c x", None),
            ("pythonic -m unittest", None),
            ("pytest", Some(1)),
            ("uv run pytest -q", Some(3)),
            ("uv run uv run pytest", None),
            ("uv run python -m pytest", Some(5)),
            ("yarn test", Some(2)),
            ("pnpm run test:unit --watch", Some(3)),
            ("yarn run deploy", None),
            ("npm test", None),
            ("npm test -- --watch", Some(3)),
            ("npm run build --", Some(4)),
            ("npm run build x --", None),
            ("", None),
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(of(&words), count, "{text}");
        }
    }
}
