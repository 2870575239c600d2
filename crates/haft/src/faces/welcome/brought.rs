//! What a folder brings along that would count if it were trusted, in words that can be judged.
//!
//! **Invariant:** nothing of the folder is run, and nothing of it takes effect: its settings are
//! read as text, within the bounds that hold for all settings. All that would run is named; what is
//! too long is counted. Nothing that it says acts on the terminal, and each of its lines is
//! indented, so that none looks like haft's own.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use haft_config::{Environment, HookEntry, HookEvent, HookRun, Layer, Loaded, Presence};
use serde_json::Value;

use crate::{
    app::base::{home, sources},
    cli::{Common, exit::Failure},
    faces::view::{indent, safe},
};

/// Characters of one hook or value that are shown.
const SHOWN: usize = 600;
/// Hooks, tools, rules or values that are shown of each.
const LISTED: usize = 40;
/// The folder of a project's tools.
const TOOLS: &str = ".haft/tools";

/// What the question says; none where the folder brings nothing along.
pub fn question(
    project: &Path,
    environment: &Environment,
    common: &Common,
) -> Result<Option<String>, Failure> {
    let tools = tools(project, environment);
    let haft_home = home(environment)?;
    let load =
        |trusted| haft_config::load(&sources(environment, common, project, haft_home, trusted));
    // Stated only as a whole where there is something: reading settings takes time at each start.
    if tools.is_empty() && !has_settings(project) {
        return Ok(None);
    }
    let now = load(false);
    let closed = now.files.iter().filter(|file| file.presence == Presence::Untrusted);
    let files: Vec<PathBuf> = closed.map(|file| file.path.clone()).collect();
    let files: Vec<PathBuf> = files.into_iter().filter(|file| !is_own(file, environment)).collect();
    if tools.is_empty() && files.is_empty() {
        return Ok(None);
    }
    let then = load(true);
    let mut text = format!(
        "{} brings settings, hooks or tools along, and you never said\nwhether you trust it:\n",
        safe(&project.display().to_string())
    );
    for file in &files {
        let shown = safe(&file.strip_prefix(project).unwrap_or(file).display().to_string());
        let state = then.files.iter().find(|state| state.path == *file);
        let is_broken = state.is_some_and(|state| state.presence == Presence::Broken);
        let broken =
            if is_broken { " (cannot be read as settings: haft would not start)" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {shown}{broken}");
    }
    if !tools.is_empty() {
        let _ = writeln!(text, "  {TOOLS}");
    }
    text.push_str("\nIf you trust it, from now on\n");
    let is_ours =
        |place: &str| files.iter().any(|file| place.starts_with(&*file.to_string_lossy()));
    section(&mut text, "these settings count:", &values(&now, &then));
    section(&mut text, "these rules count:", &rules(&then, &is_ours));
    section(&mut text, "these programs run as you do, unasked:", &runs(&then, &is_ours));
    section(&mut text, "these tools run at each start, and when the model calls them:", &tools);
    text.push_str(
        "\nThat holds also for what changes in there later. Until then nothing of it counts.\n\n  \
         [t] trust: I know who wrote this\n  [n] not now: ask again at the next start\n  \
         [x] never: nothing of it counts, and nothing is asked\n",
    );
    Ok(Some(text))
}

/// Whether there is a file of settings, whoever has written it.
fn has_settings(project: &Path) -> bool {
    let names = ["settings.toml", "settings.local.toml", "settings.json", "settings.local.json"];
    [".haft", ".claude"].iter().any(|folder| {
        names.iter().any(|name| project.join(folder).join(name).symlink_metadata().is_ok())
    })
}

/// Whether a file in the folder is the person's own: a talk in the home folder itself.
fn is_own(file: &Path, environment: &Environment) -> bool {
    let folder = file.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let own = environment.haft_home.as_ref().and_then(|home| fs::canonicalize(home).ok());
    folder.is_some() && folder == own
}

/// Adds a list under a heading, where there is one.
fn section(text: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "- {heading}");
    for item in items.iter().take(LISTED) {
        let count = item.chars().count();
        let mut shown: String = item.chars().take(SHOWN).collect();
        if count > SHOWN {
            let _ = write!(shown, "\n... {} more characters, see the file", count - SHOWN);
        }
        // Line by line: a comment must not seem to hold what stands below it.
        let _ = writeln!(text, "{}", indent(haft_render::clean(&shown).trim_end(), "    "));
    }
    if items.len() > LISTED {
        let _ = writeln!(text, "    and {} more, see the files", items.len() - LISTED);
    }
}

/// The settings that would be others, each with its value.
fn values(now: &Loaded, then: &Loaded) -> Vec<String> {
    let value = |loaded: &Loaded, key: &str| {
        let all = serde_json::to_value(&loaded.settings).unwrap_or_default();
        key.split('.').try_fold(all, |value, name| value.get(name).cloned())
    };
    let theirs = |layer: &Layer| matches!(layer, Layer::Project | Layer::Local);
    let keys = then.origins.iter().filter(|(_, layer)| theirs(layer)).map(|(key, _)| key);
    // Rules and hooks have their own lists.
    let keys = keys.filter(|key| !key.starts_with("permissions.") || key.ends_with("directories"));
    let mut all: Vec<String> = keys
        .filter(|key| !key.starts_with("hooks"))
        .filter_map(|key| {
            Some((key, value(then, key)?)).filter(|(_, it)| value(now, key).as_ref() != Some(it))
        })
        .map(|(key, value): (&String, Value)| format!("{key} = {value}"))
        .collect();
    let known: BTreeSet<&(String, String)> = now.variables.iter().collect();
    let more = then.variables.iter().filter(|variable| !known.contains(variable));
    all.extend(more.map(|(name, value)| format!("the variable {name} = {value:?}, for commands")));
    all
}

/// The rules of these files, those that let something go on first.
fn rules(then: &Loaded, is_ours: &dyn Fn(&str) -> bool) -> Vec<String> {
    let ours = || then.rules.iter().filter(|rule| is_ours(&rule.place));
    let listed = ["allow", "ask", "deny"].iter().flat_map(|list| {
        ours().filter(move |rule| rule.list == *list).map(|rule| {
            let unasked = if rule.list == "allow" { ", without a question" } else { "" };
            format!("{} {}{unasked}", rule.list, rule.text.trim())
        })
    });
    listed.collect()
}

/// The hooks of these files: when each runs, and what.
fn runs(then: &Loaded, is_ours: &dyn Fn(&str) -> bool) -> Vec<String> {
    then.hooks.iter().filter(|hook| is_ours(&hook.place)).filter_map(hook).collect()
}

fn hook(hook: &HookEntry) -> Option<String> {
    let run = match &hook.run {
        HookRun::Command { command, args: None } => command.clone(),
        HookRun::Command { command, args: Some(args) } => format!("{command} {}", args.join(" ")),
        HookRun::Http { url, .. } => format!("sends what it is about to {url}"),
        HookRun::Nothing(_) => return None,
    };
    let when = match hook.event {
        HookEvent::PreToolUse => "before a call, which it may allow",
        HookEvent::PostToolUse => "after a call",
        HookEvent::PostToolUseFailure => "after a call that failed",
        HookEvent::PermissionRequest => "in place of a question to you",
        HookEvent::UserPromptSubmit => "with each message of yours",
        HookEvent::Stop => "when the model is done",
        HookEvent::SessionStart => "when a talk begins",
        HookEvent::SessionEnd => "when a talk ends",
        HookEvent::Notification => "when you are asked something",
        HookEvent::UserPromptExpansion => "when a command or skill is used",
        HookEvent::PreSkillShellCommand => "before a command of a skill",
        HookEvent::PostToolBatch => "after the calls of an answer",
        HookEvent::StopFailure => "when the model cannot be reached",
        HookEvent::PermissionDenied => "when a call was denied",
        HookEvent::TaskCreated => "when a task is made",
        HookEvent::TaskCompleted => "when a task is completed",
        HookEvent::PreCompact => "before a talk is summed up",
        HookEvent::PostCompact => "after a talk was summed up",
        HookEvent::PreModelSwitch => "before another model answers",
        HookEvent::PostModelSwitch => "when another model answers",
        HookEvent::InstructionsLoaded => "when a file of instructions is read",
    };
    let of =
        if hook.matcher.is_empty() { String::new() } else { format!(" ({})", safe(&hook.matcher)) };
    Some(format!("{when}{of}:\n{}", indent(&run, "  ")))
}

/// The files of the project's tools that would be run, each with where it leads.
fn tools(project: &Path, environment: &Environment) -> Vec<String> {
    let folder = project.join(TOOLS);
    if is_own(&folder, environment) {
        return Vec::new();
    }
    let mut files: Vec<String> = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Hidden files and folders are no tools.
        if name.starts_with('.') || entry.path().is_dir() {
            continue;
        }
        let leads = fs::read_link(entry.path()).map(|to| format!(", a link to {}", to.display()));
        files.push(safe(&format!("{TOOLS}/{name}{}", leads.unwrap_or_default())));
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_too_much_is_counted_and_no_line_looks_like_haft_s_own() {
        let mut text = String::new();
        let long = format!("a\n\n  [t] trust\n\u{1b}[2J{}", "x".repeat(SHOWN));
        let mut items = vec![long];
        items.extend((0..LISTED + 2).map(|number| format!("item {number}")));
        section(&mut text, "these:", &items);
        let (heading, rest) = text.split_once('\n').unwrap();
        assert_eq!(heading, "- these:");
        assert!(rest.lines().all(|line| line.starts_with("    ")), "{rest}");
        assert!(!rest.contains('\u{1b}'), "{rest}");
        assert!(rest.contains("... 19 more characters, see the file\n"), "{rest}");
        assert!(rest.ends_with("    and 3 more, see the files\n"), "{rest}");
        let mut text = String::new();
        section(&mut text, "these:", &[]);
        assert_eq!(text, "");
    }
}
