//! Executables that are tools: the person's own, and those of a trusted project.
//!
//! **Invariant:** a start waits for them only for a bounded time. It does not wait at all when one
//! built-in tool is called and no tool list or rule may be about others. Every executable that
//! gives no tool is reported, with the reason.

use std::sync::Arc;

use futures::future::join_all;
use haft_host::Local;
use haft_tool::{AnyTool, Registry, Source, ToolSet};
use haft_tools::{BrokenTool, Executables};
use haft_types::{Env, Origin, ToolSpec};

use super::base::Base;
use crate::cli::Common;

/// The executables that were found: the tools of each folder, and those that give none.
#[derive(Default)]
pub struct LoadedExecutables {
    /// The tools of each folder, in the order of precedence of their names.
    pub folders: Vec<Executables>,
    /// Executables that give no tool.
    pub broken: Vec<BrokenTool>,
}

impl Base {
    /// Asks all executables for their specs, those of all folders at once.
    pub async fn executables(&self) -> LoadedExecutables {
        let own = self.environment.haft_home.as_ref().map(|home| home.join("tools"));
        let project = self.trusted.then(|| self.project.join(".haft/tools"));
        let folders: Vec<_> = [own, project]
            .into_iter()
            .flatten()
            .filter(|folder| folder.is_dir())
            .filter_map(|folder| Local::path(&folder).ok())
            .collect();
        let load = folders.iter().map(|folder| Executables::load(&*self.host, folder));
        let mut found = LoadedExecutables::default();
        for (tools, broken) in join_all(load).await {
            found.folders.push(tools);
            found.broken.extend(broken);
        }
        found
    }

    /// The registry of the built-in tools, with the executables after them if these can matter.
    /// Broken executables are reported as problems.
    pub async fn with_executables(
        &self,
        common: &Common,
        env: &Env,
        builtin: Vec<Arc<dyn AnyTool>>,
    ) -> Registry {
        let registry = Registry::default().source(builtin);
        if self.calls_builtin(common, &registry.assemble(env)) {
            return registry;
        }
        let found = self.executables().await;
        found.broken.iter().for_each(|broken| self.problems.warn(broken.to_string()));
        found.folders.into_iter().fold(registry, Registry::source)
    }

    /// Whether all that is wanted is one call of a built-in tool, whose name no other can take, and
    /// neither a list of tools nor a rule may speak of an executable.
    fn calls_builtin(&self, common: &Common, builtin: &ToolSet) -> bool {
        let lists = &self.loaded.settings.tools;
        let unnamed = common.tools.is_none() && lists.on.is_empty() && lists.off.is_empty();
        let called = self.called.as_deref();
        let is_there = called.is_some_and(|name| builtin.specs().iter().any(|s| s.name == name));
        is_there && unnamed && self.loaded.rules.is_empty()
    }
}

/// The executables that cannot be called because their name is taken, each with its path and the
/// reason.
pub fn hidden(tools: &ToolSet) -> impl Iterator<Item = (&str, String)> {
    tools.hidden().filter_map(|(spec, by)| {
        let Origin::Executable { path } = &spec.origin else { return None };
        let by = match &by.origin {
            Origin::Executable { path } => path.clone(),
            _ => "a built-in tool".to_owned(),
        };
        let text = format!("the name {} is taken by {by}: give it another name", spec.name);
        Some((path.as_str(), text))
    })
}

/// Lists every tool file with what it gives, for people. The flag is true if it gives a tool that
/// can be called.
pub async fn list_for_people(base: &Base, env: &Env) -> Vec<(bool, String)> {
    let found = base.executables().await;
    let mut told: Vec<_> = found.broken.iter().map(|broken| (false, broken.to_string())).collect();
    let builtin = Registry::default().source(haft_tools::builtin());
    let specs: Vec<ToolSpec> =
        found.folders.iter().flat_map(Source::tools).map(|tool| tool.spec(env)).collect();
    let all = found.folders.into_iter().fold(builtin, Registry::source).assemble(env);
    let hidden: Vec<_> = hidden(&all).collect();
    for spec in &specs {
        let Origin::Executable { path } = &spec.origin else { continue };
        told.push(match hidden.iter().find(|(hidden, _)| hidden == path) {
            Some((_, why)) => (false, format!("{path}: {why}")),
            None => (true, format!("{path} is the tool {}", spec.name)),
        });
    }
    told
}
