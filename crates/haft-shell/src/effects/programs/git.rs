//! What git may run by the configuration of a repository, and the words of its subcommands that
//! the table cannot tell of.

use super::{Call, contents};
use crate::{
    effects::{
        Effect, GitFacts, GitUse,
        judge::{Judge, Outcome},
        options::{self, Parsed},
        state::joined,
        words::Arg,
    },
    table::{self, Entry, Trait},
};

/// `git [OPTIONS] SUBCOMMAND ...`
pub(super) fn git(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("git") else { return };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    let mut folders = judge.state.folders.clone().map(|folders| folders.to_vec());
    for (name, _, value) in &parsed.options {
        let text = value.as_ref().and_then(Arg::known);
        match (name.as_str(), text) {
            ("C", Some(path)) => {
                folders = folders
                    .map(|all| all.iter().map(|from| joined(from, path)).collect())
                    .or_else(|| path.starts_with('/').then(|| vec![path.to_owned()]));
                let all = folders.iter().flatten().cloned();
                out.effects.extend(all.map(|folder| Effect::Reads(crate::Operand::Path(folder))));
            }
            ("C", None) => {
                folders = None;
                out.effects.push(Effect::Reads(crate::Operand::Unknown));
            }
            ("p" | "paginate", _) => out.fault("git starts a pager"),
            ("c", Some(text)) if is_harmless(text) => {}
            ("c", _) => out.besides("a setting that is given to git may run programs"),
            _ => {}
        }
    }
    let rest = &call.args[parsed.count..];
    // It says that and ends.
    let told = ["version", "v", "exec-path", "html-path", "man-path", "info-path"];
    if told.iter().any(|name| parsed.has(name)) {
        return;
    }
    judge.subcommand("git", entry, rest, out);
    let name = rest.first().and_then(Arg::known).unwrap_or_default();
    let second = rest.get(1).and_then(Arg::known).unwrap_or_default();
    let entry = table::find(&format!("git {name} {second}"))
        .or_else(|| table::find(&format!("git {name}")))
        .or_else(|| table::find(&format!("git {name} ...")));
    if let Some(entry) = entry {
        let args = &rest[1..];
        submodules(args, out);
        let parsed = options::parse(entry, args);
        merges(&parsed, out);
        asked(&mut judge.reading.git, name, &parsed, args);
        configured(judge, (name, entry), args, folders.as_deref(), out);
        let shown = contents::Shown { name, entry, args };
        contents::contents(judge, &shown, folders.as_deref(), out);
    }
}

/// Options that make git run in submodules, by whose configuration it does.
fn submodules(args: &[Arg], out: &mut Outcome) {
    let enters = |arg: &&Arg| {
        let start = arg.value.start();
        let is_open = start.starts_with("--ignore-submodules=")
            && arg.known() != Some("--ignore-submodules=all");
        is_open || start.starts_with("--submodule")
    };
    if let Some(arg) = args.iter().find(enters) {
        out.fault(format!("with {} git runs in submodules", arg.text));
    }
}

/// How merges are shown where nothing is merged anew, which writes objects and may run drivers.
const MERGES: [&str; 9] =
    ["off", "none", "first-parent", "1", "separate", "combined", "c", "dense-combined", "cc"];

/// Options by which git may merge again what was merged.
fn merges(parsed: &Parsed, out: &mut Outcome) {
    let is_shown = |value: &Option<Arg>| {
        value.as_ref().and_then(Arg::known).is_some_and(|text| MERGES.contains(&text))
    };
    let mut ways = parsed.options.iter().filter(|(name, ..)| name == "diff-merges");
    if !ways.all(|(.., value)| is_shown(value)) {
        out.anything("git may merge anew what it shows");
    }
}

/// Sections of settings that a command which only looks is given for itself.
const GIVEN: [&str; 7] = ["core.", "diff.", "gc.", "log.", "maintenance.", "protocol.", "safe."];

/// Notes what is asked of a subcommand.
fn asked(all: &mut GitUse, name: &str, parsed: &Parsed, args: &[Arg]) {
    let of_person = |arg: &Arg| {
        let name = arg.known().map(str::to_ascii_lowercase);
        name.is_some_and(|name| !GIVEN.iter().any(|section| name.starts_with(section)))
    };
    let has = |names: &[&str]| names.iter().any(|name| parsed.has(name));
    match name {
        // What it reads out of objects it may have to fetch.
        "config" if !parsed.has("blob") => {
            let lists = parsed.operands.is_empty()
                || args.first().and_then(Arg::known) == Some("list")
                || has(&["list", "l", "get-regexp", "get-urlmatch", "regexp"]);
            all.tells_settings |= lists || !parsed.operands.iter().all(of_person);
        }
        // Aliases are settings, too.
        "var" | "help" => all.tells_settings = true,
        "rev-parse" if parsed.has("git-path") => {
            all.tells_settings = true;
            all.may_start |= !parsed.operands.is_empty();
        }
        _ => all.may_start = true,
    }
    let is_switch = |arg: &Arg| arg.value.start().starts_with("--ignore-submodules");
    all.compares |= name == "ls-files" && has(&["recurse-submodules"]);
    all.compares |= ["status", "diff", "diff-index", "diff-files"].contains(&name)
        && !has(&["cached", "staged", "no-index"])
        && !args.iter().any(is_switch);
}

/// `git config`: with one name it tells its value.
pub(super) fn config(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let first = call.args.first().and_then(Arg::known).unwrap_or_default();
    let (name, args) = match first {
        "get" | "list" => ("git config get", &call.args[1..]),
        _ => ("git config ...", call.args),
    };
    let Some(entry) = table::find(name) else { return };
    let parsed = options::parse(entry, args);
    judge.parsed("git config", entry, &parsed, out);
    let is_name = |arg: &Arg| arg.known().is_some_and(|text| text.contains('.'));
    let shows = parsed.options.iter().any(|(_, what, _)| *what == table::Use::Shows);
    if !shows && name == "git config ..." && !parsed.operands.iter().all(is_name) {
        out.anything("git config may change settings");
    }
}

/// What `PROGRAM SUBCOMMAND` is with this option alone: it opens no connection.
pub(super) fn offline(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let option = if call.name == "git ls-remote" { "--get-url" } else { "--client" };
    let is_option = |arg: &&Arg| arg.known() == Some(option);
    let name = format!("{} {option}", call.name);
    let entry = table::find(&name).filter(|_| call.args.iter().any(|arg| is_option(&arg)));
    let Some(entry) = entry else {
        let Some(entry) = table::find(call.name) else { return };
        return judge.table(call.name, entry, call.args, out);
    };
    let others: Vec<Arg> = call.args.iter().filter(|arg| !is_option(arg)).cloned().collect();
    judge.table(&name, entry, &others, out);
}

/// Settings that change only how something looks.
fn is_harmless(setting: &str) -> bool {
    let (name, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let name = name.to_ascii_lowercase();
    let is_plain = value.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    match name.as_str() {
        "core.pager" => value == "cat" || value.is_empty(),
        "core.fsmonitor" => value == "false",
        "core.quotepath"
        | "core.abbrev"
        | "log.date"
        | "log.decorate"
        | "log.showsignature"
        | "diff.renames"
        | "diff.renamelimit"
        | "diff.algorithm"
        | "core.preloadindex"
        | "advice.detachedhead"
        | "column.ui"
        | "status.short"
        | "diff.mnemonicprefix"
        | "diff.noprefix"
        | "diff.context" => is_plain && (name != "log.showsignature" || value == "false"),
        _ => {
            name.starts_with("color.")
                && is_plain
                && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'.')
        }
    }
}

/// Asks for what is known of the repository where a subcommand may run what its configuration
/// names.
fn configured(
    judge: &mut Judge<'_, '_>,
    (name, entry): (&str, &Entry),
    args: &[Arg],
    folders: Option<&[String]>,
    out: &mut Outcome,
) {
    let parsed = options::parse(entry, args);
    // What compares ranges does so by another git, to which it hands neither on.
    let rules_out = parsed.has("no-textconv") && parsed.has("no-ext-diff") && name != "range-diff";
    let drivers = entry.is(Trait::Drivers) && !rules_out;
    // What is in the index is not read anew, and names are told without their contents.
    let is_old = match name {
        "ls-files" => !parsed.has("m") && !parsed.has("modified"),
        _ => parsed.has("cached") || parsed.has("staged"),
    };
    let filters = entry.is(Trait::Filters) && !(is_old && parsed.faults.is_empty());
    let signatures = entry.is(Trait::Signatures);
    let reads = entry.is(Trait::Objects) || entry.is(Trait::Filters);
    if !drivers && !filters && !signatures && !reads {
        return;
    }
    let Some(folders) = folders else {
        return out.fault("git may run what the configuration of a repository names");
    };
    for folder in folders {
        judge.reading.git_folders.insert(folder.clone());
        let facts = judge.around.setting.git.get(folder).copied().unwrap_or_default();
        let GitFacts { no_fetches, no_filters, no_drivers, no_signatures } = facts;
        // Where it is not ruled out nothing is, and no option helps.
        if !no_fetches {
            out.fault("git may fetch objects, or do what a setting says that is not known");
        } else if drivers && !no_drivers {
            out.fault("git may run programs that show differences; with --no-textconv --no-ext-diff it does not");
        } else if filters && !no_filters {
            out.fault("git may run filters that the configuration of the repository names");
        } else if signatures && !no_signatures {
            out.fault("git may check signatures, as the configuration of the repository says");
        } else if !judge.around.setting.git_is_held {
            out.fault("git may start what the repository names, where other commands run with it");
        }
    }
}
