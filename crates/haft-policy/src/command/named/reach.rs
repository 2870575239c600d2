//! What programs work on that no word of theirs names: all that is in a folder, files whose names
//! only an archive knows, and settings of their own.

use haft_shell::{ANY, FOUND};
use haft_types::Place;

use crate::{command::script::Part, places::partial_path::Shape};

/// Programs that take a folder for the project that they build, run or test, and do no more to what
/// is in it than they do without it, and such whose folders are those of another machine. A second word
/// says with which subcommand.
const PROJECT: &[&str] = &[
    "bazel",
    "bun",
    "bundle",
    "cargo",
    "cmake",
    "cmake3",
    "code",
    "composer",
    "ctest",
    "deno",
    "docker build",
    "docker buildx",
    "docker compose",
    "docker exec",
    "podman exec",
    "kubectl exec",
    "ssh",
    "dotnet",
    "eslint",
    "flake8",
    "git add",
    "git commit",
    "git diff",
    "git init",
    "git stash",
    "git worktree",
    "go",
    "go build",
    "golangci-lint",
    "gradle",
    "jest",
    "just",
    "make",
    "meson",
    "mvn",
    "mypy",
    "ninja",
    "node",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "podman build",
    "poetry",
    "pylint",
    "pyright",
    "pytest",
    "ruff",
    "ruff check",
    "shellcheck",
    "swift",
    "terraform",
    "tox",
    "tsc",
    "uv",
    "vitest",
    "yarn",
];

/// Programs whose words mostly are no files: processes, machines, branches, names in a service.
const NAMELESS: &[&str] = &[
    "docker exec",
    "docker inspect",
    "docker kill",
    "docker logs",
    "docker restart",
    "docker rm",
    "docker start",
    "docker stop",
    "docker wait",
    "gh",
    "git branch",
    "git cherry-pick",
    "git clone",
    "git fetch",
    "git merge",
    "git pull",
    "git push",
    "git rebase",
    "git reset",
    "git revert",
    "git switch",
    "git tag",
    "glab",
    "journalctl",
    "kill",
    "killall",
    "kubectl describe",
    "kubectl get",
    "kubectl logs",
    "pkill",
    "redis-cli",
    "renice",
    "sleep",
    "ssh",
    "systemctl",
];

/// Programs that give sources another form.
const FORMATS: &[&str] = &[
    "autopep8",
    "biome",
    "black",
    "clang-format",
    "dprint",
    "eslint",
    "gofmt",
    "goimports",
    "isort",
    "prettier",
    "ruff",
    "rustfmt",
    "shfmt",
    "standard",
    "stylelint",
    "stylua",
    "yapf",
];

/// What git does that changes no file of those that its words name.
const KEEPS: &[&str] = &[
    "add", "blame", "branch", "commit", "describe", "diff", "fetch", "log", "notes", "push",
    "show", "status", "tag",
];

/// Programs that change what is in the folders that they are given.
const DEEP: &[(&str, &[&str])] = &[
    ("chgrp", &["R", "recursive"]),
    ("chmod", &["R", "recursive"]),
    ("chown", &["R", "recursive"]),
    ("gunzip", &["r", "recursive"]),
    ("gzip", &["r", "recursive"]),
    ("rsync", &[]),
    ("setfacl", &["R", "recursive"]),
    ("unison", &[]),
    ("zstd", &["r"]),
];

/// Commands that change settings which make programs run: words that they begin with, words with
/// which they do not, and what it is.
const SETTINGS: &[(&str, &[&str], &str)] = &[
    ("git config", &[], "git's settings"),
    ("git remote", &["get-url", "prune", "show", "update", "-v", "--verbose"], "git's settings"),
    ("git submodule", &["foreach", "status", "summary"], "git's settings"),
    ("git worktree", &["list", "prune"], "git's own files"),
    ("git lfs install", &[], "git's settings"),
    ("git lfs uninstall", &[], "git's settings"),
    ("git maintenance register", &[], "git's settings"),
    ("git maintenance start", &[], "git's settings"),
    ("git sparse-checkout", &["check-rules", "list"], "git's settings"),
    ("git flow init", &[], "git's settings"),
    ("git hook install", &[], "git's own files"),
    ("git replace", &["-l", "--list"], "git's own files"),
    ("bundle config", &["get", "list"], "a package manager's settings"),
    ("cargo login", &[], "registry credentials"),
    (
        "conda config",
        &["--describe", "--get", "--show", "--show-sources"],
        "a package manager's settings",
    ),
    ("gem sources", &["-l", "--list"], "a package manager's settings"),
    ("gh auth", &["status"], "a code host's token"),
    ("gh config set", &[], "a program's start-up file"),
    ("glab auth", &["status"], "a code host's token"),
    ("haft trust", &["--show"], "haft's own state"),
    ("husky", &[], "git's own files"),
    ("lefthook install", &[], "git's own files"),
    ("npm adduser", &[], "registry credentials"),
    ("npm config", &["get", "list", "ls"], "a package manager's settings"),
    ("npm login", &[], "registry credentials"),
    ("npm set", &[], "a package manager's settings"),
    ("overcommit", &["--run", "-r"], "git's own files"),
    ("pip config", &["debug", "get", "list"], "a package manager's settings"),
    ("pip3 config", &["debug", "get", "list"], "a package manager's settings"),
    ("pnpm config", &["get", "list"], "a package manager's settings"),
    ("poetry config", &["--list"], "a package manager's settings"),
    ("pre-commit init-templatedir", &[], "git's own files"),
    ("pre-commit install", &[], "git's own files"),
    ("pre-commit uninstall", &[], "git's own files"),
    ("rustup default", &[], "a build tool's settings"),
    ("rustup override", &["list"], "a build tool's settings"),
    ("simple-git-hooks", &[], "git's own files"),
    ("ssh-keygen", &["-l", "-lf", "-y", "-yf"], "ssh keys"),
    ("yarn config", &["get", "list"], "a package manager's settings"),
];

/// Settings of git that only say who somebody is, or how things look and are named.
const PLAIN_SETTINGS: &[&str] = &[
    "advice.detachedhead",
    "color.ui",
    "core.autocrlf",
    "fetch.prune",
    "init.defaultbranch",
    "merge.conflictstyle",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "rerere.enabled",
    "user.email",
    "user.name",
];

/// Options of git with a value in the next word.
pub(super) const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// Its program, and the words behind that are no options, as far as they are known.
fn line(part: &Part) -> Option<String> {
    let mut line = part.program.clone()?;
    let mut skips = false;
    for word in &part.shapes {
        if std::mem::take(&mut skips) || word.starts_with('-') {
            skips = VALUED.contains(&word.as_str());
            continue;
        }
        line.push(' ');
        line.push_str(word);
    }
    Some(line)
}

/// Whether a line begins with these words.
fn begins(line: &str, words: &str) -> bool {
    line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a folder that it is given is the project, and not what is in it.
pub(super) fn is_project(part: &Part) -> bool {
    let Some(line) = line(part) else { return false };
    let line = line
        .strip_prefix("python -m ")
        .or_else(|| line.strip_prefix("python3 -m "))
        .unwrap_or(&line);
    let fixes = part.shapes.iter().any(|word| word.starts_with("--fix") || word == "--write");
    !fixes && !formats(part) && PROJECT.iter().any(|words| begins(line, words))
}

/// Whether it gives sources another form, and leaves alone what is none.
pub(super) fn formats(part: &Part) -> bool {
    let Some(line) = line(part) else { return false };
    let sub = line.split(' ').nth(1).unwrap_or_default();
    ["fmt", "format"].contains(&sub) || FORMATS.iter().any(|words| begins(&line, words))
}

/// Whether a word of it of which nothing is known names something else than a file.
pub(super) fn is_nameless(part: &Part) -> bool {
    line(part).is_some_and(|line| NAMELESS.iter().any(|words| begins(&line, words)))
        || is_project(part)
}

/// Whether it changes none of the files that its words name.
pub(super) fn keeps(part: &Part) -> bool {
    let Some(line) = line(part) else { return false };
    let sub = line.strip_prefix("git ").and_then(|rest| rest.split(' ').next());
    let writes = || part.shapes.iter().any(|word| word.starts_with("--output"));
    sub.is_some_and(|sub| KEEPS.contains(&sub)) && !writes()
}

/// Whether it sets, for this repository, one of the settings of git that start nothing and lead nowhere.
fn names_a_plain_setting(line: &str, part: &Part) -> bool {
    let mut words = line.split(' ').skip(2).filter(|word| *word != "set");
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    let is_local = part.shapes.iter().all(|word| !word.starts_with('-') || word == "--local");
    is_local && PLAIN_SETTINGS.contains(&&*name) && words.count() == 1
}

/// The settings that it changes.
pub(super) fn settings(part: &Part) -> Option<&'static str> {
    let line = line(part)?;
    let starts = ["npx ", "bunx ", "pnpm exec ", "yarn "];
    let bare = starts.iter().find_map(|start| line.strip_prefix(start));
    let lines = [Some(&*line), bare];
    let has = |word: &&str| part.shapes.iter().any(|own| own == word);
    // A template brings hooks along, and what is put elsewhere leaves a file in its place.
    let makes = ["git clone", "git init"].iter().any(|words| begins(&line, words));
    let brings = ["--template", "--separate-git-dir"];
    let is_one = |word: &String| brings.iter().any(|option| word.starts_with(option));
    if makes && part.shapes.iter().any(is_one) {
        return Some("git's own files");
    }
    if begins(&line, "git config") && names_a_plain_setting(&line, part) {
        return None;
    }
    if begins(&line, "git submodule update") && !has(&"--init") {
        return None;
    }
    // A new folder, its `.git` file and what git notes of it: no hook and no setting.
    if begins(&line, "git worktree add") && !has(&"--relative-paths") {
        return None;
    }
    let found = SETTINGS.iter().find(|(words, without, _)| {
        lines.iter().flatten().any(|line| begins(line, words)) && !without.iter().any(&has)
    });
    let bare = ["git remote", "git submodule", "git worktree"];
    found.filter(|(words, ..)| !(bare.contains(words) && line == *words)).map(|(.., what)| *what)
}

/// The keys or passwords that it hands out.
pub(super) fn keys(part: &Part) -> Option<&'static str> {
    let program = part.program.as_deref()?;
    let has = |word: &str| part.shapes.iter().any(|own| own == word);
    HANDS.iter().find(|(own, word, _)| *own == program && has(word)).map(|(.., what)| *what)
}

/// The folders in which it may change what it does not name, as they may be.
pub(super) fn of_part(part: &Part, place: &Place) -> Vec<Shape> {
    let name = part.program.as_deref().unwrap_or_default();
    let words: Vec<&str> = part.shapes.iter().map(String::as_str).collect();
    let mut operands: Vec<&str> =
        words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let folders = if let Some((_, options)) = DEEP.iter().find(|(own, _)| *own == name) {
        // What is copied stays as it is.
        let skipped = if name == "rsync" { operands.len().saturating_sub(1) } else { 0 };
        let is_deep = options.is_empty() || has_option(&words, options);
        if is_deep { operands.split_off(skipped) } else { Vec::new() }
    } else if let Some(folder) = unpacked(name, &words) {
        vec![folder]
    } else if ["clean", "rm"].iter().any(|sub| is_git(part, sub)) {
        let given: Vec<&str> = operands
            .into_iter()
            .skip_while(|word| !["clean", "rm"].contains(word))
            .skip(1)
            .collect();
        let is_whole = given.is_empty() || given.iter().any(|word| word.starts_with(':'));
        match has_option(&words, &["n", "dry-run"]) {
            true => Vec::new(),
            false if is_whole => vec!["."],
            false => given,
        }
    } else {
        Vec::new()
    };
    at(part, &folders, place)
}

/// The same of what takes names from a patch, which never are git's own.
pub(super) fn patched(part: &Part, place: &Place) -> Vec<Shape> {
    let words: Vec<&str> = part.shapes.iter().map(String::as_str).collect();
    let looks = has_option(&words, &["check", "stat", "numstat", "summary"]);
    let is_it = ["am", "apply", "checkout-index"].iter().any(|sub| is_git(part, sub));
    if is_it && !looks { at(part, &["."], place) } else { Vec::new() }
}

/// Where these lie that it names.
pub(super) fn at(part: &Part, texts: &[&str], place: &Place) -> Vec<Shape> {
    let folders = super::words::folders(part);
    texts.iter().flat_map(|text| Shape::of(text, folders.as_deref(), place)).collect()
}

/// Programs that hand out keys and passwords, with the word by which they do.
const HANDS: &[(&str, &str, &str)] = &[
    ("gcloud", "print-access-token", "cloud credentials"),
    ("git", "credential", "a code host's token"),
    ("gpg", "--export-secret-keys", "gpg keys"),
    ("gpg", "--export-secret-subkeys", "gpg keys"),
    ("keyring", "get", "stored passwords"),
    ("op", "read", "stored passwords"),
    ("pass", "show", "stored passwords"),
    ("secret-tool", "lookup", "stored passwords"),
    ("security", "find-generic-password", "stored passwords"),
    ("security", "find-internet-password", "stored passwords"),
];

/// Whether it is this subcommand of git.
fn is_git(part: &Part, sub: &str) -> bool {
    line(part).is_some_and(|line| begins(&line, &format!("git {sub}")))
}

/// Whether one of these is among the options: a letter, or a word behind two dashes.
pub(super) fn has_option(words: &[&str], options: &[&str]) -> bool {
    words.iter().any(|word| match word.strip_prefix("--") {
        Some(long) => options.contains(&long),
        None => word.strip_prefix('-').is_some_and(|letters| {
            options.iter().any(|option| option.len() == 1 && letters.contains(option))
        }),
    })
}

/// The folder into which it puts files whose names are not its words.
fn unpacked<'w>(name: &str, words: &[&'w str]) -> Option<&'w str> {
    let first = words.first().copied().unwrap_or_default();
    let letters = first.trim_start_matches('-');
    let (is_it, options): (bool, &[&str]) = match name {
        "tar" | "bsdtar" | "gtar" | "gnutar" | "star" => {
            let short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
            let is_x = |word: &str| {
                word.trim_start_matches('-').split('f').next().unwrap_or_default().contains('x')
            };
            let old = !first.starts_with('-') && letters.contains('x')
                || words.iter().filter(short).any(|word| is_x(word));
            let long = words.iter().any(|word| ["--extract", "--get"].contains(word));
            (old || long, &["-C", "--directory", "--cd"])
        }
        "unzip" => (!has_option(words, &["l", "p", "t", "v", "Z"]), &["-d"]),
        "unrar" | "7z" | "7za" | "7zr" | "7zz" => (["x", "e"].contains(&first), &["-o"]),
        "cpio" => (letters.contains('i') || words.contains(&"--extract"), &["-D", "--directory"]),
        "jar" => (letters.starts_with('x'), &["-C"]),
        "ar" => (letters.starts_with('x'), &["--output"]),
        "patch" => (!words.contains(&"--dry-run"), &["-d", "--directory"]),
        "ditto" | "unsquashfs" | "cabextract" | "unar" => (true, &["-d"]),
        _ => return None,
    };
    let value = |option: &&str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let rest = word.strip_prefix(option)?;
            match rest.strip_prefix('=').unwrap_or(rest) {
                "" => words.get(at + 1).copied(),
                value => Some(value),
            }
        })
    };
    is_it.then(|| options.iter().find_map(value).unwrap_or("."))
}

/// Whether it takes away what it names, with all that is in it.
pub(super) fn removes(part: &Part) -> bool {
    part.program
        .as_deref()
        .is_some_and(|program| ["mv", "rm", "shred", "unlink"].contains(&program))
}

/// Whether it makes copies of what it names, with all that is in it.
pub(super) fn copies_all(part: &Part) -> bool {
    const COPY: &[&str] = &["7z", "bsdtar", "cpio", "ditto", "pax", "rsync", "scp", "tar", "zip"];
    match part.program.as_deref() {
        Some("cp") => has_option(&words(part), &["R", "a", "r", "archive", "recursive"]),
        Some("mv") => true,
        program => program.is_some_and(|program| COPY.contains(&program)),
    }
}

fn words(part: &Part) -> Vec<&str> {
    part.shapes.iter().map(String::as_str).collect()
}

/// Whether it tells names of what is in the home folder, or above, to those that go on with them.
pub(super) fn tells_names(part: &Part) -> bool {
    const TELL: &[&str] = &["fd", "fdfind", "find", "locate", "ls", "plocate", "rg", "tree", "du"];
    part.program.as_deref().is_some_and(|program| TELL.contains(&program))
}

/// Whether it works on names that it is told.
pub(super) fn takes_names(part: &Part, place: &Place) -> bool {
    let home = place.home.text();
    let told = part.shapes.iter().any(|shape| {
        shape.starts_with(ANY)
            || (part.is_wrapped || shape.starts_with(&*home)) && shape.contains([ANY, FOUND])
    });
    told && (part.open.is_some() || !part.is_tame)
}
