//! Commands that verify: tests, builds, linters, by a table that says which programs do.
//!
//! **Invariant:** a check that decides ran and ended with exit code 0 wherever the script did. It is known
//! by its words alone, never by what it says.
//!
//! **Does not know:** what a project's own scripts do: those that are called as tests are taken for them.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    effects::{self, Part, Setting},
    table,
};

/// The table.
const TEXT: &str = include_str!("table/checks.txt");
/// Most steps of work on one script.
const MOST: usize = 50_000;
/// Most programs that run one another.
const DEEPEST: usize = 4;

/// A command of a script that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is, as the table names it: `cargo test`.
    pub name: String,
    /// It as it is written.
    pub text: String,
    /// Whether the script ends with exit code 0 only where this ran and did so, too.
    pub decides: bool,
}

/// The checks of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// In the order in which they are written.
    pub all: Vec<Check>,
    /// Whether what changes files may run while the last of them does, or behind it.
    pub changes_after: bool,
}

/// A kind of check.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    /// The words that have to follow the program.
    words: Vec<&'static str>,
    /// Options with which it verifies nothing.
    except: Vec<&'static str>,
}

/// What runs the words behind it as a command of their own.
#[derive(Debug)]
struct Runner {
    /// The words that have to follow the program.
    words: Vec<&'static str>,
    /// Options that have a value.
    values: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Table {
    /// By their programs.
    kinds: HashMap<&'static str, Vec<Kind>>,
    /// Programs that run the words behind some of their own.
    runners: HashMap<&'static str, Vec<Runner>>,
    /// Options of programs that have a value.
    values: HashMap<&'static str, Vec<&'static str>>,
    /// Programs that end as what they run.
    passing: Vec<&'static str>,
    /// Options with which nothing verifies anything.
    except: Vec<&'static str>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for line in table::parts_of(TEXT.lines()) {
        // What cannot be read a test finds.
        let _ = table.add(&line);
    }
    table
});

impl Table {
    /// Adds a line; a fault is what is not understood.
    fn add(&mut self, line: &[&'static str]) -> Result<(), &'static str> {
        let at = line.iter().position(|part| part.contains('|')).unwrap_or(line.len());
        let (last, first_options) =
            line.get(at).and_then(|part| part.split_once('|')).unwrap_or_default();
        let options: Vec<&str> = std::iter::once(first_options)
            .chain(line.iter().skip(at + 1).copied())
            .flat_map(str::split_whitespace)
            .collect();
        if let Some(odd) = options.iter().find(|option| !option.starts_with('-')) {
            return Err(odd);
        }
        let (mark, first) = match line.first().and_then(|part| part.split_once(' ')) {
            Some((mark @ ("*" | "=" | ">" | ":"), rest)) => (mark, rest),
            _ => ("", line.first().copied().unwrap_or_default()),
        };
        let names = if at == 0 {
            vec![first.split('|').next().unwrap_or_default()]
        } else {
            [&[first], &line[1..at], &[last]].concat()
        };
        let names: Vec<&str> = names
            .into_iter()
            .flat_map(|part| part.split(','))
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() != (mark == "*") {
            return Err("a line without names");
        }
        if mark == "*" {
            self.except.extend(options);
            return Ok(());
        }
        for name in names {
            let mut words = name.split(' ');
            let program = words.next().unwrap_or_default();
            let words: Vec<&str> = words.collect();
            match mark {
                "=" => self.passing.push(program),
                ">" => self
                    .runners
                    .entry(program)
                    .or_default()
                    .push(Runner { words, values: options.clone() }),
                ":" => self.values.entry(program).or_default().extend(&options),
                _ => {
                    let kind = Kind { name, words, except: options.clone() };
                    self.kinds.entry(program).or_default().push(kind);
                }
            }
        }
        Ok(())
    }
}

/// Reads a script for what of it verifies; nothing does in one that cannot be read for certain.
pub fn checks(text: &str) -> Checks {
    let mut work = 0;
    let mut go_on = || {
        work += 1;
        work < MOST
    };
    let Ok(script) = crate::parse(text, &mut go_on) else { return Checks::default() };
    let (cwd, home) = ("/".to_owned(), "/".to_owned());
    let setting = Setting { cwd, home, ..Setting::default() };
    let reading = effects::effects(text, &script, &setting, &mut go_on);
    if !go_on() {
        return Checks::default();
    }
    let mut checks = Checks::default();
    for part in &reading.parts {
        match check(part) {
            Some(check) => {
                checks.all.push(check);
                checks.changes_after = false;
            }
            // What runs another part is judged with it.
            None => checks.changes_after |= !part.read_only && !is_passing(part),
        }
    }
    // What runs beside it may do so at any time.
    checks.changes_after |= script.commands.iter().any(|command| command.place.is_background);
    checks
}

/// Whether a part only runs others, and ends as they do.
fn is_passing(part: &Part) -> bool {
    part.program.as_deref().is_some_and(|program| TABLE.passing.contains(&program))
}

fn check(part: &Part) -> Option<Check> {
    let words: Vec<Option<&str>> = part.words.iter().map(Option::as_deref).collect();
    let program = part.program.as_deref()?;
    let name = kind(program, words.get(1..)?, DEEPEST)?.to_owned();
    let decides = part.decides
        && part.wrappers.iter().all(|wrapper| TABLE.passing.contains(&wrapper.as_str()));
    Some(Check { name, text: part.text.trim().to_owned(), decides })
}

/// What a program with these words verifies; none where it does not.
fn kind(program: &str, words: &[Option<&str>], depth: usize) -> Option<&'static str> {
    let program = known_name(program);
    let is_excepted = |options: &[&str]| {
        let has = |word: &&str| {
            options.iter().any(|option| {
                *word == *option
                    || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            })
        };
        words.iter().flatten().any(has)
    };
    if is_excepted(&TABLE.except) {
        return None;
    }
    let fits = |kind: &&Kind| follow(program, &kind.words, words);
    // The longest one says most.
    let kinds = TABLE.kinds.get(program).map(Vec::as_slice).unwrap_or_default();
    if let Some(kind) = kinds.iter().filter(fits).max_by_key(|kind| kind.words.len()) {
        return (!is_excepted(&kind.except)).then_some(kind.name);
    }
    let (inner, words) = run_by(program, words)?.split_first()?;
    let inner = (*inner)?;
    let inner = inner.rsplit('/').next().unwrap_or(inner);
    if depth == 0 { None } else { kind(inner, words, depth - 1) }
}

/// A program as the table has it: `python3.12` is `python` there.
fn known_name(program: &str) -> &str {
    let bare = program.strip_suffix(".exe").unwrap_or(program);
    let cut = bare.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if TABLE.kinds.contains_key(bare) || !TABLE.runners.contains_key(cut) { bare } else { cut }
}

/// The words that a program runs as a command of their own.
fn run_by<'w, 't>(program: &str, words: &'w [Option<&'t str>]) -> Option<&'w [Option<&'t str>]> {
    TABLE.runners.get(program)?.iter().find_map(|runner| {
        let own = &runner.words;
        let start = words.get(..own.len())?;
        let is_it = own.iter().zip(start).all(|(own, word)| *word == Some(own));
        let rest = is_it.then_some(&words[own.len()..])?;
        let skipped = options_before(rest, &runner.values);
        let rest = &rest[skipped..];
        Some(if rest.first() == Some(&Some("--")) { &rest[1..] } else { rest })
    })
}

/// How many words are options, and values of those that have some, before the first other word.
fn options_before(words: &[Option<&str>], with_value: &[&str]) -> usize {
    let mut at = 0;
    while let Some(Some(word)) = words.get(at) {
        let has_value = with_value.iter().any(|option| option.strip_suffix('=') == Some(word));
        match word {
            // The toolchain of cargo.
            _ if word.starts_with('+') => {}
            _ if !word.starts_with('-') || *word == "--" => break,
            _ if has_value => at += 1,
            _ => {}
        }
        at += 1;
    }
    at.min(words.len())
}

/// Whether the words that have to follow a program do.
fn follow(program: &str, wanted: &[&str], words: &[Option<&str>]) -> bool {
    let values = TABLE.values.get(program).map(Vec::as_slice).unwrap_or_default();
    let mut rest = words;
    let mut is_anywhere = false;
    for want in wanted {
        if *want == "..." {
            is_anywhere = true;
            continue;
        }
        if want.starts_with('-') {
            if !words.contains(&Some(want)) {
                return false;
            }
            continue;
        }
        let is_it = |word: Option<&str>| match want.strip_suffix('*') {
            Some(start) => word.is_some_and(|word| word.starts_with(start)),
            None => word == Some(*want),
        };
        loop {
            rest = &rest[options_before(rest, values)..];
            let Some((first, behind)) = rest.split_first() else { return false };
            rest = behind;
            if is_it(*first) {
                break;
            }
            if !is_anywhere {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_can_be_read_and_no_name_stands_twice() {
        let mut table = Table::default();
        for line in table::parts_of(TEXT.lines()) {
            table.add(&line).unwrap_or_else(|part| panic!("{part} in {line:?}"));
        }
        for (program, kinds) in &table.kinds {
            for (at, kind) in kinds.iter().enumerate() {
                let is_twice = kinds[..at].iter().any(|other| other.name == kind.name);
                assert!(!is_twice, "{} stands twice", kind.name);
            }
            assert!(!program.is_empty());
        }
        assert!(table.kinds.len() > 100 && table.except.contains(&"--help"));
        assert!(table.passing.contains(&"timeout") && table.passing.contains(&"eval"));
        assert_eq!(table.runners["uv"].len(), 2);
        assert!(table.values["make"].contains(&"-C="));
    }

    /// The checks of a script; those that do not decide in parentheses.
    fn shown(text: &str) -> String {
        let Checks { all, changes_after } = checks(text);
        let name = |check: &Check| {
            if check.decides { check.name.clone() } else { format!("({})", check.name) }
        };
        let mut shown: Vec<String> = all.iter().map(name).collect();
        shown.extend((changes_after && !all.is_empty()).then(|| "+".to_owned()));
        shown.join(" ")
    }

    /// Commands, and what each of them verifies by.
    const WORDS: &[(&str, &str)] = &[
        ("cargo test", "cargo test"),
        ("cargo +nightly --locked test -q -- --nocapture", "cargo test"),
        ("cargo -C dir t", "cargo t"),
        ("cargo nextest run -p x", "cargo nextest run"),
        ("cargo nextest list", ""),
        ("cargo fmt --check", "cargo fmt --check"),
        ("cargo fmt", ""),
        ("cargo test --no-run", ""),
        ("cargo test --help", ""),
        ("cargo test -- --list", ""),
        ("cargo run", ""),
        ("RUST_BACKTRACE=1 cargo test", "cargo test"),
        ("timeout 60 cargo test", "cargo test"),
        ("env A=1 nice -n 5 cargo test", "cargo test"),
        ("bash -c 'cd x && cargo test'", "cargo test"),
        ("bash -c 'cargo test | tail'", "(cargo test)"),
        ("bash -c 'cargo test' | tail", "(cargo test)"),
        ("bash -c 'cargo test || true'", "(cargo test)"),
        ("find . -name Cargo.toml -exec cargo test ';'", "(cargo test)"),
        ("echo x | xargs cargo test", "(cargo test)"),
        ("pytest -q tests", "pytest"),
        (".venv/bin/pytest", "pytest"),
        ("source .venv/bin/activate && pytest", "pytest"),
        ("python3 -m pytest -x", "pytest"),
        ("python3.12 -m unittest discover", "unittest"),
        ("python -m http.server", ""),
        ("python script.py", ""),
        ("uv run --frozen --with x pytest", "pytest"),
        ("uvx ruff check .", "ruff check"),
        ("ruff check --exit-zero .", ""),
        ("ruff format .", ""),
        ("poetry run python -m pytest", "pytest"),
        ("python manage.py test app", "python ... manage.py test"),
        ("npm test", "npm test"),
        ("npm run test:unit -- --run", "npm run test*"),
        ("npm --prefix web run build", "npm run build*"),
        ("npm run dev", ""),
        ("npm run lint --if-present", ""),
        ("pnpm -r --filter x test", "pnpm test"),
        ("yarn lint", "yarn lint*"),
        ("npx tsc --noEmit", "tsc"),
        ("npx -y eslint .", "eslint"),
        ("npx tsc --init", ""),
        ("./node_modules/.bin/vitest run", "vitest"),
        ("vitest --watch", ""),
        ("go test ./...", "go test"),
        ("go -C x vet ./...", "go vet"),
        ("make -C x -j4 all test", "make ... test*"),
        ("make", ""),
        ("make -n test", ""),
        ("make -i test", ""),
        ("make -C test", ""),
        ("./gradlew clean test", "gradlew ... test*"),
        ("mvn -q -DskipTests verify", ""),
        ("mvn -q verify", "mvn ... verify"),
        ("dotnet test", "dotnet test"),
        ("bundle exec rspec", "rspec"),
        ("bash -n x.sh", "bash -n"),
        ("bash x.sh", ""),
        ("shellcheck *.sh", "shellcheck"),
        ("sh test.sh", "test.sh"),
        ("./scripts/test.sh -v", "test.sh"),
        ("sh x.sh", ""),
        ("sh -n test.sh", "sh -n"),
        ("echo cargo test", ""),
        ("$cargo test", ""),
        ("cargo $x", ""),
        ("cargo test $x", "cargo test"),
        ("cat <<EOF\ncargo test\nEOF\n", ""),
    ];

    #[test]
    fn what_verifies_is_known_by_its_words() {
        for (text, wanted) in WORDS {
            assert_eq!(shown(text), *wanted, "{text}");
        }
    }

    #[test]
    fn what_hides_its_exit_code_does_not_decide() {
        for (text, wanted) in [
            ("cargo test | tail", "(cargo test)"),
            ("set -o pipefail; cargo test 2>&1 | tail", "cargo test"),
            ("cargo test || true", "(cargo test)"),
            ("cargo test; echo done", "(cargo test)"),
            ("cargo test; cargo clippy", "(cargo test) cargo clippy"),
            ("cargo clippy && cargo test", "cargo clippy cargo test"),
            ("cargo test && echo fine", "cargo test"),
            ("cargo test > log 2>&1; tail log", "(cargo test)"),
            ("cargo() { true; }; cargo test", "(cargo test) +"),
            ("! cargo test", "(cargo test)"),
            ("eval cargo test", "cargo test"),
            // What changes files behind it.
            ("cargo fmt && cargo test", "cargo test"),
            ("cargo test && cargo fmt", "cargo test +"),
            ("cargo test && echo x > y", "cargo test +"),
            ("cargo test && timeout 5 rm x", "cargo test +"),
            ("sleep 1 && touch x & cargo test", "cargo test +"),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
        assert_eq!(checks("cargo test 'x"), Checks::default());
        assert_eq!(checks(&"cargo test\n".repeat(9_000)), Checks::default());
    }
}
