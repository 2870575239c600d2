//! `cargo xtask test --changed`: which files differ, and what has to be run because of each.
//!
//! A file of a crate means this crate and those that are built with it or tested by it; a file of
//! its tests means this crate alone. A document means the house rules, and the crates whose sources
//! name it. Whatever else there is means everything: it is better to run too much than too little.
//! What follows from the files is worked out from plain data. It does not know how steps run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::Trigger;
use super::options::Base;
use super::scope::Scope;
use crate::Usage;
use crate::process::{answer, command};
use crate::project::Project;

/// A crate of the workspace.
#[derive(Debug, Default)]
struct Member {
    name: String,
    /// Relative to the root.
    folder: String,
    /// Whether it is a library, whose docs have examples that are run.
    is_library: bool,
    /// The crates of the workspace that it is built with.
    uses: Vec<String>,
    /// Those that only its tests and examples use.
    tests_use: Vec<String>,
}

/// What has to be run, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) scope: Scope,
    /// The steps that are run are those with one of these.
    triggers: Vec<Trigger>,
    /// What the files were compared with.
    base: String,
    /// What is run, each with the files that it is run for.
    reasons: BTreeMap<String, Vec<String>>,
}

/// How many files are named for one reason.
const SHOWN: usize = 3;

impl Plan {
    /// Whether a step with this trigger is run.
    pub(super) fn triggers(&self, trigger: Trigger) -> bool {
        self.triggers.contains(&trigger)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reasons.is_empty() {
            return writeln!(formatter, "no file differs from {}: nothing is run", self.base);
        }
        writeln!(formatter, "what differs from {}, and what is run for it:", self.base)?;
        for (run, files) in &self.reasons {
            let named = files.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            let others = files.len().saturating_sub(SHOWN);
            let others = if others > 0 { format!(" and {others} more") } else { String::new() };
            writeln!(formatter, "  {named}{others}: {run}")?;
        }
        Ok(())
    }
}

/// Asks git and cargo what changed and what follows from it.
///
/// # Errors
///
/// When there is no such commit, or git or cargo do not answer.
pub(super) fn plan(project: &Project, base: &Base) -> Result<Plan> {
    let commit = commit(project, base)?;
    let files = changed_files(project, &commit)?;
    let members = members(project)?;
    let may_be_read = files.iter().any(|file| is_data(file));
    let sources = if may_be_read { sources(project, &members)? } else { Vec::new() };
    let base = match base {
        Base::Main => format!("{commit:.12}, where this branch left main"),
        Base::Commit(name) => name.clone(),
    };
    Ok(worked_out(base, &members, &sources, &files))
}

/// The commit that the files are compared with.
fn commit(project: &Project, base: &Base) -> Result<String> {
    let git = |words: &[&str]| answer(command(project, "git").args(words));
    match base {
        Base::Commit(name) => {
            let of = format!("{name}^{{commit}}");
            git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &of]).with_context(|| {
                Usage(format!("git knows no commit {name:?}: give --changed one that it knows"))
            })
        }
        Base::Main => ["main", "origin/main"]
            .iter()
            .find_map(|main| git(&["merge-base", "HEAD", main]))
            .with_context(|| {
                Usage("there is no branch main to compare with: name a commit, as in `--changed HEAD`".to_owned())
            }),
    }
}

/// The files that differ from a commit, whether they are committed, staged, tracked or none of it.
/// A file that was renamed is both of its names.
fn changed_files(project: &Project, commit: &str) -> Result<Vec<String>> {
    let mut files = BTreeSet::new();
    for words in [
        &["diff", "--name-only", "--no-renames", "-z", commit, "--"][..],
        &["ls-files", "-z", "--others", "--exclude-standard"][..],
    ] {
        let listed = answer(command(project, "git").args(words))
            .with_context(|| format!("`git {}` failed: is this a repository?", words.join(" ")))?;
        files.extend(listed.split('\0').filter(|file| !file.is_empty()).map(str::to_owned));
    }
    Ok(files.into_iter().collect())
}

/// The crates of the workspace, with the arrows between them.
fn members(project: &Project) -> Result<Vec<Member>> {
    let metadata = MetadataCommand::new()
        .manifest_path(project.root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata failed: does `cargo check` work?")?;
    let names: BTreeSet<&str> = metadata.packages.iter().map(|it| it.name.as_str()).collect();
    let members = metadata.packages.iter().map(|package| {
        let folder = package.manifest_path.parent();
        let folder = folder.and_then(|it| it.strip_prefix(&metadata.workspace_root).ok());
        let arrows = |for_tests: bool| {
            let fits = |kind| (kind == DependencyKind::Development) == for_tests;
            package
                .dependencies
                .iter()
                .filter(|it| names.contains(it.name.as_str()) && fits(it.kind))
                .map(|it| it.name.clone())
                .collect()
        };
        Member {
            name: package.name.to_string(),
            folder: folder.map(|it| it.as_str().to_owned()).unwrap_or_default(),
            is_library: package.targets.iter().any(|it| it.is_lib() && it.doctest),
            uses: arrows(false),
            tests_use: arrows(true),
        }
    });
    Ok(members.collect())
}

/// The texts of the sources, each with its crate.
fn sources<'a>(project: &Project, members: &'a [Member]) -> Result<Vec<(&'a str, String)>> {
    let listed = answer(command(project, "git").args(["ls-files", "-z", "--", "*.rs"]))
        .context("git cannot list the sources: is this a repository?")?;
    let read = |file: &str| {
        let member = owner(members, file)?;
        // A source that is deleted names nothing.
        Some((member.name.as_str(), fs::read_to_string(project.root.join(file)).ok()?))
    };
    Ok(listed.split('\0').filter_map(read).collect())
}

/// What follows from the files that changed.
fn worked_out(
    base: String,
    members: &[Member],
    sources: &[(&str, String)],
    files: &[String],
) -> Plan {
    let mut chosen = BTreeSet::new();
    let mut is_everything = false;
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let mut crates: BTreeSet<&str> = BTreeSet::new();
        let run = match owner(members, file) {
            Some(member) => {
                crates.insert(&member.name);
                if is_built(member, file) {
                    crates.extend(dependents(members, &member.name));
                }
                None
            }
            None if is_document(file) => Some("house rules"),
            None => {
                is_everything = true;
                Some("everything")
            }
        };
        if is_data(file) {
            crates.extend(readers(sources, file));
        }
        let run = match run {
            Some("everything") => "everything".to_owned(),
            _ => run.into_iter().chain(crates.iter().copied()).collect::<Vec<_>>().join(", "),
        };
        chosen.extend(crates);
        reasons.entry(run).or_default().push(file.clone());
    }
    let is_chosen = |member: &&Member| chosen.contains(member.name.as_str());
    let names = |members: Vec<&Member>| members.iter().map(|it| it.name.clone()).collect();
    let all: Vec<&Member> = members.iter().filter(is_chosen).collect();
    let mut triggers = vec![Trigger::File];
    triggers.extend((is_everything || !all.is_empty()).then_some(Trigger::Crate));
    triggers.extend(is_everything.then_some(Trigger::Everything));
    if files.is_empty() {
        triggers.clear();
    }
    let scope = if is_everything || all.len() == members.len() {
        Scope::Workspace
    } else {
        let libraries = names(all.iter().copied().filter(|member| member.is_library).collect());
        Scope::Crates { all: names(all), libraries }
    };
    Plan { scope, triggers, base, reasons }
}

/// The crate whose folder holds the file.
fn owner<'a>(members: &'a [Member], file: &str) -> Option<&'a Member> {
    members.iter().find(|member| inside(member, file).is_some())
}

/// The path of the file in the folder of the crate.
fn inside<'a>(member: &Member, file: &'a str) -> Option<&'a str> {
    file.strip_prefix(member.folder.as_str())?.strip_prefix('/')
}

/// Whether other crates are built with the file: it is not one for the tests of its own crate, or
/// for readers.
fn is_built(member: &Member, file: &str) -> bool {
    let Some(file) = inside(member, file) else { return false };
    let folder = file.split_once('/').map_or("", |(folder, _)| folder);
    !matches!(folder, "tests" | "benches" | "examples") && file != "README.md"
}

/// Whether the file is for people: a page, or a licence.
fn is_document(file: &str) -> bool {
    let is_at_root = !file.contains('/');
    file.starts_with("docs/")
        || is_at_root && (ending(file) == Some("md") || file.starts_with("LICENSE"))
}

/// Whether the file may be read by name: every file but a source that is built, which cargo knows
/// of.
fn is_data(file: &str) -> bool {
    let is_source = ending(file) == Some("rs") && !file.contains("/examples/");
    !is_source
}

fn ending(file: &str) -> Option<&str> {
    Some(file.rsplit_once('.')?.1)
}

/// The crates that have to be judged anew when one is built anew: those that are built with it,
/// and those whose tests use one of these all.
fn dependents<'a>(members: &'a [Member], changed: &'a str) -> BTreeSet<&'a str> {
    let mut built = BTreeSet::from([changed]);
    loop {
        let uses_one =
            |member: &&Member| member.uses.iter().any(|name| built.contains(name.as_str()));
        let more: Vec<_> = members.iter().filter(uses_one).map(|it| it.name.as_str()).collect();
        let before = built.len();
        built.extend(more);
        if built.len() == before {
            break;
        }
    }
    let tests_one =
        |member: &&Member| member.tests_use.iter().any(|name| built.contains(name.as_str()));
    let tested: Vec<_> = members.iter().filter(tests_one).map(|it| it.name.as_str()).collect();
    built.extend(tested);
    built
}

/// The crates whose sources name the file by the end of its path. A source that goes through a
/// whole folder of another crate names that folder.
fn readers<'a>(sources: &[(&'a str, String)], file: &str) -> BTreeSet<&'a str> {
    let parts: Vec<&str> = file.split('/').collect();
    let marks = match parts.as_slice() {
        // Names at the root are everywhere; who reads one goes up to it first.
        [name] => vec![format!("../{name}")],
        [.., folder, name] if parts.len() < 4 => vec![format!("{folder}/{name}")],
        [.., folder, name] => {
            let above = parts[1..parts.len() - 1].join("/");
            vec![format!("{folder}/{name}"), format!("../{above}\"")]
        }
        [] => Vec::new(),
    };
    let reads = |text: &str| marks.iter().any(|mark| text.contains(mark.as_str()));
    sources.iter().filter(|(_, text)| reads(text)).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate: name, what it uses, what its tests use.
    fn member(name: &str, uses: &[&str], tests_use: &[&str]) -> Member {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Member {
            name: name.to_owned(),
            folder: if name == "xtask" { name.to_owned() } else { format!("crates/{name}") },
            is_library: name != "xtask",
            uses: owned(uses),
            tests_use: owned(tests_use),
        }
    }

    fn workspace() -> Vec<Member> {
        vec![
            member("types", &[], &[]),
            member("text", &[], &["kit"]),
            member("host", &["types"], &["kit"]),
            member("kit", &["host"], &[]),
            member("tool", &["host"], &["tools"]),
            member("tools", &["tool", "text"], &["kit"]),
            member("app", &["tools"], &["kit"]),
            member("xtask", &[], &[]),
        ]
    }

    fn planned(sources: &[(&str, &str)], files: &[&str]) -> Plan {
        let sources: Vec<_> =
            sources.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
        worked_out("main".to_owned(), &workspace(), &sources, &files)
    }

    fn crates(plan: &Plan) -> String {
        match &plan.scope {
            Scope::Workspace => "all".to_owned(),
            Scope::Crates { all, .. } => all.join(" "),
        }
    }

    #[test]
    fn arrows_are_followed_against_their_direction() {
        let members = workspace();
        let of = |name| dependents(&members, name).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(of("app"), "app");
        assert_eq!(of("xtask"), "xtask");
        // The tests of tool use tools; what is built with tool is as it was.
        assert_eq!(of("tools"), "app tool tools");
        // Through the kit of tests, host reaches a crate that is built without it.
        assert_eq!(of("host"), "app host kit text tool tools");
        assert_eq!(of("text"), "app text tool tools");
    }

    #[test]
    fn sources_reach_further_than_tests() {
        assert_eq!(crates(&planned(&[], &["crates/text/src/a.rs"])), "text tool tools app");
        assert_eq!(crates(&planned(&[], &["crates/text/tests/it/main.rs"])), "text");
        assert_eq!(crates(&planned(&[], &["crates/text/README.md"])), "text");
        assert_eq!(crates(&planned(&[], &["crates/text/Cargo.toml"])), "text tool tools app");
        let plan = planned(&[], &["xtask/src/main.rs"]);
        assert_eq!(crates(&plan), "xtask");
        assert!(plan.triggers(Trigger::Crate) && !plan.triggers(Trigger::Everything));
        let Scope::Crates { libraries, .. } = plan.scope else { panic!("{plan:?}") };
        assert_eq!(libraries, [""; 0]);
    }

    #[test]
    fn files_outside_of_crates_mean_everything() {
        for file in ["Cargo.lock", ".config/nextest.toml", "tests/node/package.json", "fuzz/a.rs"] {
            let plan = planned(&[], &["crates/text/src/a.rs", file]);
            assert_eq!(crates(&plan), "all", "{file}");
            assert!(plan.triggers(Trigger::Everything), "{file}");
            assert!(!plan.triggers(Trigger::Never), "{file}");
            assert!(plan.to_string().contains(&format!("  {file}: everything\n")), "{plan}");
        }
        assert_eq!(
            crates(&planned(&[], &["crates/types/src/a.rs", "xtask/a", "crates/text/a"])),
            "all"
        );
    }

    #[test]
    fn documents_mean_the_house_rules_and_who_reads_them() {
        let sources = [
            ("app", "include_str!(\"../../../docs/guide/sessions.md\")"),
            ("text", "one of docs/output.json"),
        ];
        let plan = planned(&sources, &["docs/guide/other.md", "README.md", "LICENSE-MIT"]);
        assert_eq!(crates(&plan), "");
        assert!(plan.triggers(Trigger::File) && !plan.triggers(Trigger::Crate));
        let plan = planned(&sources, &["docs/guide/sessions.md"]);
        assert_eq!(crates(&plan), "app");
        assert!(plan.triggers(Trigger::Crate));
        assert!(plan.to_string().contains("docs/guide/sessions.md: house rules, app\n"), "{plan}");
        assert_eq!(crates(&planned(&sources, &["docs/output.json"])), "text");
    }

    #[test]
    fn data_of_another_crate_is_found_by_its_name_or_its_folder() {
        let sources = [
            ("types", "include_str!(\"../../host/tests/commands/all.txt\")"),
            ("app", "folder().join(\"../tools/tests/fixtures/files\")"),
            ("xtask", "include_str!(\"../../crates/app/examples/own.rs\")"),
        ];
        let of = |file| crates(&planned(&sources, &[file]));
        assert_eq!(of("crates/host/tests/commands/all.txt"), "types host");
        assert_eq!(of("crates/host/tests/commands/few.txt"), "host");
        assert_eq!(of("crates/tools/tests/fixtures/files/a.pdf"), "tools app");
        assert_eq!(of("crates/app/examples/own.rs"), "app xtask");
    }

    #[test]
    fn the_start_names_the_files_of_each_reason() {
        let files: Vec<_> = (0..5).map(|n| format!("crates/app/src/{n}.rs")).collect();
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let text = planned(&[], &files).to_string();
        let line =
            "  crates/app/src/0.rs, crates/app/src/1.rs, crates/app/src/2.rs and 2 more: app\n";
        assert!(text.contains(line), "{text}");
        let nothing = planned(&[], &[]);
        assert!(!nothing.triggers(Trigger::File));
        assert_eq!(nothing.to_string(), "no file differs from main: nothing is run\n");
    }

    #[test]
    fn this_workspace_is_read() {
        let members = members(&Project::find().unwrap()).unwrap();
        let of = |name: &str| members.iter().find(|member| member.name == name).unwrap();
        assert_eq!(of("haft-text").folder, "crates/haft-text");
        assert!(of("haft-text").is_library && !of("xtask").is_library);
        assert!(of("haft").uses.contains(&"haft-tools".to_owned()));
        assert!(of("haft").tests_use.contains(&"haft-testkit".to_owned()));
    }
}
