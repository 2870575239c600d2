//! `haft trust`: whether a project's own settings, hooks and tools count, stored for later runs.
//!
//! **Invariant:** nothing of the project is read or run for this. What will count is named before
//! any other part of haft reads it.

use haft_config::{Environment, Trust};

use super::view;
use crate::{
    app::base::{folder, home, project_root},
    cli::{
        self,
        exit::{Ending, println},
    },
};

/// What of a project counts once it is trusted, from its root on.
const BROUGHT: &[&str] = &[
    ".haft/settings.toml",
    ".haft/settings.local.toml",
    ".haft/tools",
    ".haft/skills",
    ".haft/commands",
    ".agents/skills",
    ".claude/skills",
    ".claude/commands",
    ".claude/settings.json",
    ".claude/settings.local.json",
];

/// Stores an answer about the project of a folder, unless it is only to be shown. Prints what it is
/// about.
pub fn run(arguments: &cli::Trust) -> Ending {
    let environment = Environment::capture();
    let project = project_root(&folder(arguments.folder.as_deref())?);
    let mut trust = Trust::load(home(&environment)?)?;
    let shown = view::safe(&project.display().to_string());
    let wanted = match (arguments.no, arguments.show) {
        (_, true) => None,
        (no, false) => Some(!no),
    };
    if let Some(wanted) = wanted {
        trust.set_trust(&project, wanted)?;
    }
    let brought = BROUGHT.iter().filter(|name| project.join(name).symlink_metadata().is_ok());
    let brought: Vec<&str> = brought.copied().collect();
    let there = if brought.is_empty() {
        "it brings none along now".to_owned()
    } else {
        format!("it brings along {}", brought.join(", "))
    };
    let (state, effect) = match trust.trusted(&project) {
        Some(true) => ("is trusted", "its settings, hooks and tools count"),
        Some(false) => ("is not trusted", "its settings, hooks and tools do not count"),
        None => ("was not answered about", "its settings, hooks and tools do not count"),
    };
    println(&format!("{shown} {state}: {effect}; {there}"))
}
