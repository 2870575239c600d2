//! `/init`: an `AGENTS.md` for a project that has none, by the model or from its manifests.
//!
//! **Invariant:** a command is named only where a manifest says that it is there. Manifests are
//! read as text of bounded size, and nothing of them is run.

use std::{fmt::Write as _, fs::File, io::Read as _, path::Path};

use serde_json::Value;

/// What the model is told.
pub const PROMPT: &str = "Write an AGENTS.md for this project, or improve the one that is there.

Look first: manifests, README, build and CI files, the layout of folders, a few sources and tests, \
and other files of rules for agents. Then write what an agent needs and cannot see at a glance:

- the commands to build, test (all, and one test) and lint, as this project really runs them
- how the code is laid out, where that takes more than one file to understand
- conventions that the code keeps and a newcomer would break

Leave out what any good programmer knows, what a listing of the folder shows, and what you have not \
seen. Keep what is right in an AGENTS.md that is there. At most 60 lines. Write it with one call of \
the tool that writes files: the person sees the change and decides.";

/// Most bytes of a manifest.
const MOST: u64 = 1 << 20;

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Build,
    Test,
    Lint,
}

/// A command, what it is for, and the file that says so.
type ManifestCommand = (Use, String, &'static str);

/// The `AGENTS.md` of a project by its manifests: the one that is there with what it lacks, or a
/// new one. None inside where nothing is lacking.
///
/// # Errors
/// What is missing, for people.
pub fn written(project: &Path, present: &str) -> Result<Option<String>, String> {
    let found = commands(project);
    if found.is_empty() {
        return Err("no manifest here names commands (Cargo.toml, package.json, pyproject.toml, \
                    go.mod, Makefile and the like): /init lets the model look instead"
            .to_owned());
    }
    let lacking: Vec<&ManifestCommand> =
        found.iter().filter(|(_, command, _)| !present.contains(&format!("`{command}`"))).collect();
    if lacking.is_empty() {
        return Ok(None);
    }
    let mut text = present.to_owned();
    if text.is_empty() {
        text.push_str("# Instructions for agents\n");
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("\n## Commands\n\n");
    for (of, command, from) in lacking {
        let of = match of {
            Use::Build => "Build",
            Use::Test => "Test",
            Use::Lint => "Lint",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {of}: `{command}` ({from})");
    }
    Ok(Some(text))
}

/// The commands that the manifests of a folder name, by what they are for.
fn commands(project: &Path) -> Vec<ManifestCommand> {
    let mut found = Vec::new();
    let mut add = |of: Use, command: &str, from: &'static str| {
        let known = |(_, other, _): &ManifestCommand| other == command;
        if !found.iter().any(known) {
            found.push((of, command.to_owned(), from));
        }
    };
    if let Some(text) = manifest(project, "Cargo.toml") {
        cargo(&text, &mut |of, command| add(of, command, "Cargo.toml"));
    }
    if let Some(text) = manifest(project, "package.json") {
        let runner = runner(project);
        node(&text, runner, &mut |of, command| add(of, command, "package.json"));
    }
    if let Some(text) = manifest(project, "pyproject.toml") {
        python(&text, &mut |of, command| add(of, command, "pyproject.toml"));
    }
    if manifest(project, "go.mod").is_some() {
        add(Use::Build, "go build ./...", "go.mod");
        add(Use::Test, "go test ./...", "go.mod");
        add(Use::Lint, "go vet ./...", "go.mod");
    }
    for (name, runs) in [("Makefile", "make"), ("makefile", "make"), ("justfile", "just")] {
        if let Some(text) = manifest(project, name) {
            targets(&text, runs, &mut |of, command| add(of, command, name));
        }
    }
    for (name, build, test) in [
        ("pom.xml", "mvn package", "mvn test"),
        ("build.gradle", "./gradlew build", "./gradlew test"),
        ("build.gradle.kts", "./gradlew build", "./gradlew test"),
        ("mix.exs", "mix compile", "mix test"),
        ("Package.swift", "swift build", "swift test"),
    ] {
        if manifest(project, name).is_some() {
            add(Use::Build, build, name);
            add(Use::Test, test, name);
        }
    }
    found.sort_by_key(|(of, ..)| *of);
    found
}

/// The text of a manifest; none where there is no regular file of that size.
fn manifest(project: &Path, name: &str) -> Option<String> {
    let path = project.join(name);
    // A repository may make it a link, or a pipe that never ends.
    let kind = std::fs::symlink_metadata(&path).ok()?;
    if !kind.is_file() || kind.len() > MOST {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn cargo(text: &str, add: &mut dyn FnMut(Use, &str)) {
    let Ok(manifest) = text.parse::<toml::Table>() else { return };
    let all = if manifest.contains_key("workspace") { " --workspace" } else { "" };
    if manifest.contains_key("package") || manifest.contains_key("workspace") {
        add(Use::Build, &format!("cargo build{all}"));
        add(Use::Test, &format!("cargo test{all}"));
        add(Use::Lint, &format!("cargo clippy{all} --all-targets"));
        add(Use::Lint, "cargo fmt --all --check");
    }
}

/// What runs the scripts of a project of Node, by its lock file.
fn runner(project: &Path) -> &'static str {
    let has = |name: &str| project.join(name).symlink_metadata().is_ok();
    match () {
        () if has("pnpm-lock.yaml") => "pnpm run",
        () if has("yarn.lock") => "yarn run",
        () if has("bun.lock") || has("bun.lockb") => "bun run",
        () => "npm run",
    }
}

fn node(text: &str, runner: &str, add: &mut dyn FnMut(Use, &str)) {
    let Ok(manifest) = serde_json::from_str::<Value>(text) else { return };
    let scripts = manifest.get("scripts").and_then(Value::as_object);
    for name in scripts.into_iter().flatten().map(|(name, _)| name) {
        if let Some(of) = named(name) {
            add(of, &format!("{runner} {name}"));
        }
    }
}

fn python(text: &str, add: &mut dyn FnMut(Use, &str)) {
    let Ok(manifest) = text.parse::<toml::Table>() else { return };
    let tool = manifest.get("tool").and_then(toml::Value::as_table);
    let has = |name: &str| tool.is_some_and(|tool| tool.contains_key(name));
    let runs = match () {
        () if has("poetry") => "poetry run ",
        () if has("uv") => "uv run ",
        () => "",
    };
    if manifest.contains_key("build-system") {
        add(Use::Build, if has("poetry") { "poetry build" } else { "python -m build" });
    }
    for (name, of, command) in [
        ("pytest", Use::Test, "pytest"),
        ("ruff", Use::Lint, "ruff check ."),
        ("black", Use::Lint, "black --check ."),
        ("mypy", Use::Lint, "mypy ."),
        ("pyright", Use::Lint, "pyright"),
    ] {
        if has(name) || text.contains(&format!("\"{name}\"")) {
            add(of, &format!("{runs}{command}"));
        }
    }
}

/// The targets of a Makefile, or recipes of a justfile, that are named as what is looked for.
fn targets(text: &str, runs: &str, add: &mut dyn FnMut(Use, &str)) {
    for line in text.lines() {
        let Some((head, rest)) = line.split_once(':') else { continue };
        // A variable is none.
        if rest.starts_with('=') || head.starts_with(['\t', ' ', '#', '.']) {
            continue;
        }
        for name in head.split_whitespace() {
            if let Some(of) = named(name) {
                add(of, &format!("{runs} {name}"));
            }
        }
    }
}

/// What a script or target of this name is for; none where nobody can say.
fn named(name: &str) -> Option<Use> {
    let first = name.split([':', '-', '_']).next().unwrap_or_default();
    let is_plain = name.chars().all(|sign| sign.is_ascii_alphanumeric() || ":-_".contains(sign));
    if !is_plain || name.len() > 40 {
        return None;
    }
    match first {
        "build" | "all" => Some(Use::Build),
        "test" | "tests" | "check" | "e2e" => Some(Use::Test),
        "lint" | "fmt" | "format" | "typecheck" | "vet" => Some(Use::Lint),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)], present: &str) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        written(folder.path(), present)
    }

    #[test]
    fn commands_come_from_what_manifests_say() {
        let files = [
            ("Cargo.toml", "[workspace]\nmembers = []"),
            (
                "package.json",
                r#"{"scripts": {"test:unit": "x", "start": "x", "lint": "x", "a b": "x"}}"#,
            ),
            ("yarn.lock", ""),
            ("pyproject.toml", "[tool.poetry]\n[tool.pytest.ini_options]\n[tool.ruff]"),
            ("go.mod", "module x"),
            ("Makefile", "X := 1\n.PHONY: test\nbuild: a\n\tcc\ntest lint:\n\techo test: x\n"),
        ];
        let text = of(&files, "").unwrap().unwrap();
        let wanted = [
            "# Instructions for agents\n\n## Commands\n",
            "- Build: `cargo build --workspace` (Cargo.toml)",
            "- Build: `go build ./...` (go.mod)",
            "- Build: `make build` (Makefile)",
            "- Test: `cargo test --workspace` (Cargo.toml)",
            "- Test: `yarn run test:unit` (package.json)",
            "- Test: `poetry run pytest` (pyproject.toml)",
            "- Test: `go test ./...` (go.mod)",
            "- Test: `make test` (Makefile)",
            "- Lint: `cargo clippy --workspace --all-targets` (Cargo.toml)",
            "- Lint: `cargo fmt --all --check` (Cargo.toml)",
            "- Lint: `yarn run lint` (package.json)",
            "- Lint: `poetry run ruff check .` (pyproject.toml)",
            "- Lint: `go vet ./...` (go.mod)",
            "- Lint: `make lint` (Makefile)",
        ];
        assert_eq!(
            text.trim_end().lines().collect::<Vec<_>>(),
            wanted.join("\n").lines().collect::<Vec<_>>()
        );
        // What is there stays, and nothing is said twice.
        assert_eq!(of(&files, &text), Ok(None));
        let go = [("go.mod", "")];
        let more = of(&go, "Use `go test ./...`.").unwrap().unwrap();
        assert!(
            more.starts_with("Use `go test ./...`.\n\n## Commands\n\n- Build: `go build"),
            "{more}"
        );
        assert!(!more.contains("- Test"), "{more}");
    }

    #[test]
    fn what_is_no_manifest_gives_nothing() {
        for files in [
            &[][..],
            &[("Cargo.toml", "[[")],
            &[("package.json", "{")],
            &[("package.json", r#"{"scripts": ["test"]}"#)],
            &[("Makefile", "test := 1\n")],
        ] {
            assert!(of(files, "").unwrap_err().contains("/init"), "{files:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("Makefile")).unwrap();
        let big = format!("test:\n{}", "#".repeat(2 << 20));
        std::fs::write(folder.path().join("justfile"), big).unwrap();
        written(folder.path(), "").unwrap_err();
    }
}
