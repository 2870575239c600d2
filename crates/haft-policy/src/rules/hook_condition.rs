//! Whether a call is about what a condition names: the `if` of a hook.
//!
//! **Invariant:** only known facts exclude a condition. A program that may run others, and a
//! command that cannot be read, match every condition about commands or files.

use haft_types::Target;

use super::{rule::Subject, tool_aliases::ALIASES};
use crate::{
    Ask, Policy, Verdict,
    command::script::{Part, Script},
    decide::{Judged, is_tool},
};

/// Programs that are not known to only work on files they name, and still run no others.
const QUIET: &[&str] = &[
    "bunzip2", "bzip2", "chgrp", "chmod", "chown", "curl", "dd", "gunzip", "gzip", "kill",
    "killall", "mkfifo", "mktemp", "pkill", "umask", "unxz", "unzip", "wget", "xz", "zip", "zstd",
];

/// Programs that only run another one, where that is a part of its own.
const OUTER: &[&str] = &["doas", "exec", "nohup", "sudo"];

/// Commands of git that start nothing which stands in the files of the workspace; what its hooks and
/// settings start lies in protected places.
const OF_GIT: &[&str] = &[
    "add",
    "am",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "gc",
    "grep",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "pull",
    "push",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "whatchanged",
];

/// How options of these begin that name a program or settings.
const STARTING: &[&str] =
    &["--config", "--exec", "--receive-pack", "--strategy", "--template", "--upload-pack"];

impl Policy {
    /// Reports whether a call is about what some of the rules name, or may be: where that is not known, and
    /// where a rule could not be read, it is. All rules are read as those that ask.
    pub fn may_touch(&self, ask: &Ask<'_>) -> bool {
        let judged = self.judged(ask);
        !self.problems().is_empty()
            || self.ruled(ask, &judged, Verdict::Ask).is_some()
            || self.uncertain(ask, &judged).is_some()
            || self.may_be_run(ask, &judged)
    }

    /// Whether a command may run what no word of it says, and a rule is about what that could be.
    fn may_be_run(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> bool {
        let is_meant = self.with(Verdict::Ask).any(|placed| match &placed.rule.subject {
            Subject::Command { tool, .. } => is_tool(ask.tool, tool),
            Subject::Path { .. } => true,
            _ => false,
        });
        let runs = |one: &Judged<'_>| {
            matches!(one.effect.target, Target::Command { .. })
                && one.script.as_ref().is_none_or(runs_others)
        };
        is_meant && judged.iter().any(runs)
    }

    /// The tools of haft that a condition can be about, where these are few: of each its names.
    pub fn meant_tools(&self) -> Option<Vec<&'static str>> {
        let mut all = Vec::new();
        for placed in self.with(Verdict::Ask) {
            let (Subject::Command { tool, .. } | Subject::Tool(tool)) = &placed.rule.subject else {
                return None;
            };
            let names = ALIASES.iter().filter(|(_, ours)| ours == tool);
            let names: Vec<&str> = names.flat_map(|(theirs, ours)| [*theirs, *ours]).collect();
            // A tool of another origin, or words that are typed into a job.
            if names.is_empty() {
                return None;
            }
            all.extend(names);
        }
        Some(all)
    }
}

/// Whether some part of a script may run what it does not name.
fn runs_others(script: &Script) -> bool {
    let is_known = |(at, part): (usize, &Part)| {
        let holds_next = || script.parts.get(at + 1).is_some_and(|next| next.is_wrapped);
        let is = |names: &[&str]| part.program.as_deref().is_some_and(|name| names.contains(&name));
        part.is_tame
            || part.read_only
            || part.passes
            || is(QUIET)
            || is(OUTER) && holds_next()
            || is(&["git"]) && is_plain_git(part)
    };
    script.fault.is_some() || !script.parts.iter().enumerate().all(is_known)
}

fn is_plain_git(part: &Part) -> bool {
    let words = part.words.as_deref().unwrap_or_default().iter().skip(1);
    let mut words = words.skip_while(|word| ["--no-pager", "-P"].contains(&word.as_str()));
    let Some(command) = words.next() else { return false };
    let starts = |word: &String| {
        let short = command == "clone" && ["-c", "-u"].iter().any(|flag| word.starts_with(flag));
        short || STARTING.iter().any(|start| word.starts_with(start)) || word.contains("::")
    };
    OF_GIT.contains(&command.as_str()) && !words.any(starts)
}
