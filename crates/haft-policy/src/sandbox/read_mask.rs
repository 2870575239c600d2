//! The sandbox of read-only commands, as policy sees it: what they cannot read there need not be
//! asked about.
//!
//! **Invariant:** it replaces only what is unknown about a command. What a command names is judged
//! as always, and a command that goes on because of the sandbox runs in it.
//!
//! **Does not know:** whether the sandbox is in force: the caller says that.

use haft_types::HostPath;

use crate::{
    Ask, Policy, Verdict,
    command::script::{Part, Script},
    decide::{Judged, Placed},
    rules::{
        glob::composed_path,
        rule::{PathClass, Subject},
    },
};

/// What commands that only look are kept from, where a sandbox holds them: they read the workspace, what
/// was located for them and what programs need, and none of [`Policy::hidden`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadMask {
    /// Folders that were looked through, with links resolved.
    pub searched: Vec<HostPath>,
    /// What rules and keys mean in there, hidden, too.
    pub hidden: Vec<HostPath>,
}

impl ReadMask {
    /// Whether all that rules mean at and below a path is hidden.
    fn covers(&self, path: &HostPath) -> bool {
        let path = composed_path(path);
        self.searched.iter().any(|folder| path.is_within(&composed_path(folder)))
    }
}

/// What git tells names, states and settings by, and nothing that files have held.
const NAMES: &[&str] = &[
    "branch",
    "check-ignore",
    "config",
    "count-objects",
    "describe",
    "for-each-ref",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "symbolic-ref",
    "tag",
    "version",
    "worktree",
];
/// Options with which its differences are told without what is in files.
const BRIEF: &[&str] =
    &["--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--summary"];
/// Options of `git log` that show no differences.
const PLAIN: &[&str] = &[
    "--abbrev-commit",
    "--all",
    "--decorate",
    "--first-parent",
    "--follow",
    "--graph",
    "--merges",
    "--no-merges",
    "--no-pager",
    "--oneline",
    "--reverse",
    "--cached",
    "--staged",
];
/// The same with values.
const VALUED: &[&str] =
    &["--author=", "--date=", "--format=", "--max-count=", "--pretty=", "--since=", "--until="];

impl Policy {
    /// Whether rules of reading are about what the sandbox of looks would have to hide, and whether that
    /// has to be looked for.
    pub fn names_reads(&self) -> (bool, bool) {
        let is_read = |placed: &&Placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(placed.rule.subject, Subject::Path { class: PathClass::Reads, .. })
        };
        let mut rules = self.rules.iter().filter(is_read);
        let any = rules.clone().next().is_some();
        (any, rules.any(|placed| !Self::is_walled(placed)))
    }

    /// Whether what a rule is about is hidden there, wherever a command looks.
    pub(crate) fn is_veiled(placed: &Placed, veil: &ReadMask) -> bool {
        placed.globs.iter().all(|glob| glob.is_exact() || veil.covers(glob.prefix()))
    }

    /// Whether that is so where it looks at one tree.
    pub(crate) fn is_veiled_in(placed: &Placed, veil: &ReadMask, real: Option<&HostPath>) -> bool {
        Self::is_walled(placed) || real.is_some_and(|real| veil.covers(real))
    }
}

impl<'a> Ask<'a> {
    /// What hides the files from a call that rules are about: what git has kept of them is not hidden.
    pub(crate) fn behind(&self, judged: &[Judged<'_>]) -> Option<&'a ReadMask> {
        let script = judged.iter().find_map(|one| one.script.as_ref())?;
        let shown = script.parts.iter().any(tells_contents);
        self.held_back(script).filter(|_| !shown)
    }

    /// Whether a call reads files that only the running shell will know, or may come upon keys, where these
    /// can be hidden from it.
    pub(crate) fn needs_masked_keys(&self, judged: &[Judged<'_>]) -> bool {
        let gropes = |script: &Script| {
            let is_open = || script.parts.iter().any(|part| part.open.is_some());
            self.held_back(script).is_some_and(|veil| !veil.hidden.is_empty() || is_open())
        };
        judged.iter().filter_map(|one| one.script.as_ref()).any(gropes)
    }

    /// What keeps a script from keys, whatever it reads.
    pub(crate) fn held_back(&self, script: &Script) -> Option<&'a ReadMask> {
        self.veil.filter(|_| script.read_only)
    }
}

/// Whether a part may tell what git has kept of files.
fn tells_contents(part: &Part) -> bool {
    if part.program.as_deref() != Some("git") {
        return false;
    }
    let Some(words) = &part.words else { return true };
    let words = words.iter().map(String::as_str).skip(1);
    let mut words = words.skip_while(|word| *word == "--no-pager");
    let Some(sub) = words.next() else { return false };
    let rest: Vec<&str> = words.collect();
    let options = || rest.iter().filter(|word| word.starts_with('-'));
    let is_number = |word: &str| word[1..].bytes().all(|c| c.is_ascii_digit());
    let is_plain = |word: &&&str| {
        BRIEF.contains(*word)
            || PLAIN.contains(*word)
            || VALUED.iter().any(|start| word.starts_with(start))
            || is_number(word)
    };
    let is_quiet = match sub {
        "log" => true,
        "diff" => options().any(|word| BRIEF.contains(word)),
        "status" => return options().any(is_verbose),
        sub => return !NAMES.contains(&sub),
    };
    !is_quiet || !options().all(|word| is_plain(&word))
}

/// Whether an option of `git status` shows what is about to be committed.
fn is_verbose(word: &&str) -> bool {
    *word == "--verbose" || !word.starts_with("--") && word.contains('v')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_has_kept_of_files_is_not_hidden() {
        for (text, expected) in [
            ("git status --short", false),
            ("git status -sb", false),
            ("git status -vv", true),
            ("git status --verbose", true),
            ("git log --oneline -5", false),
            ("git diff --stat HEAD", false),
            ("cat a", false),
            ("git log -p", true),
            ("git log -5 -p", true),
            ("git log -S x", true),
            ("git diff", true),
            ("git diff --stat -p", true),
            ("git show HEAD", true),
            ("git -C sub status", true),
            ("git cat-file -p x", true),
            ("/usr/bin/git grep x HEAD", true),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let program = words[0].rsplit('/').next().map(str::to_owned);
            let part = Part { words: Some(words), program, ..Part::default() };
            assert_eq!(tells_contents(&part), expected, "{text}");
        }
    }
}
