//! The tools of a run: which exist, which of them the run has, and which its model sees at once.
//!
//! **Invariant:** a name that no tool has is reported. On the command line it is a reason not to
//! start.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_tool::{AnyTool, Registry, ToolSet};
use haft_tools::{Search, StructuredOutput};
use haft_types::{Env, HostPath, Loading, ToolSpec};

use super::{
    base::Base,
    executables,
    rules::{at, idle, private_hosts, report_problems},
    search_engine::{no_provider, search_engine},
    todo_choice::{TodoChoice, may_be_found},
    tool_loading::{LoadFacts, is_of_profile},
};
use crate::{
    cli::{Common, exit::Failure},
    plain::sentence,
};

/// Tools that change the conversation that their call is part of.
const OF_CONVERSATIONS: &[&str] = &["brief", "enter_plan", "exit_plan", "snip", "tool_search"];
/// The tool that is there only where its program is.
const POWERSHELL: &str = "powershell";

impl Base {
    /// Assembles the tools of a run: built-in ones, executables of the person and of a trusted
    /// project, and `more`.
    ///
    /// # Errors
    /// When `--tools` names a tool that nobody has, or a denial on the command line has no effect.
    pub async fn registry(
        &self,
        common: &Common,
        env: &Env,
        more: &[Arc<dyn AnyTool>],
    ) -> Result<Registry, Failure> {
        let registry = self.with_executables(common, env, self.builtin(common)).await;
        let registry = self.with_absent(registry);
        let answer: Vec<Arc<dyn AnyTool>> = self.answer_tool.iter().cloned().collect();
        let takes_answer = !answer.is_empty();
        let registry = registry.source(answer).source(more.to_vec());
        self.doubt_rules(&registry, env)?;
        let lists = &self.loaded.settings.tools;
        self.check_names(common, || registry.assemble(&attended(env)))?;
        let named_too = common.tools.iter().flatten();
        let mut on: Vec<String> = lists.on.iter().chain(named_too).cloned().collect();
        let choice = self.todo_choice(common)?;
        on.extend(choice.on());
        let root = PathBuf::from(self.place.cwd.as_str().unwrap_or_default());
        let (every, no_conversation) = (self.every_tool, self.no_conversation);
        let (policy, off, only) = (self.policy.clone(), lists.off.clone(), common.tools.clone());
        let named = |names: &[String], spec: &ToolSpec| {
            names.iter().any(|name| own_name(name) == spec.name)
        };
        let (starts_in, profile) = (self.mode, lists.profile);
        // Looked for only where it matters.
        let has_skills = (!every || no_conversation) && self.skills.has_any();
        let registry = registry.filter(move |spec, env| {
            // Whoever asks for such an answer has asked for its tool.
            if takes_answer && spec.name == StructuredOutput::NAME {
                return Some(spec);
            }
            let is_bare = OF_CONVERSATIONS.contains(&&*spec.name);
            if no_conversation && (is_bare || (spec.name == "skill" && !has_skills)) {
                return None;
            }
            // Where nobody can be asked and its mode is off, that stays off.
            let is_of_mode = spec.known_in.is_none_or(|mode| mode == starts_in);
            if !is_of_mode && !env.interactive && !every {
                return None;
            }
            if !choice.may_have(&spec.name) {
                return None;
            }
            if !every && !is_of_profile(&spec, profile) && !named(&on, &spec) {
                return None;
            }
            let is_seen =
                LoadFacts { every, on: &on, mode: starts_in, root: &root, has_skills }.has(&spec);
            let is_found = only.is_none() && may_be_found(&spec.name);
            let wanted =
                (is_seen || is_found) && only.as_deref().is_none_or(|only| named(only, &spec));
            let is_there = wanted && !named(&off, &spec) && !policy.hides(&spec);
            is_there.then(|| as_seen(spec, is_seen, every))
        });
        for (path, why) in executables::hidden(&registry.assemble(env)) {
            self.problems.warn(format!("{path}: {why}"));
        }
        Ok(registry)
    }

    /// Adds the tools that a run could have and has not.
    fn with_absent(&self, registry: Registry) -> Registry {
        let tool = match search_engine(&self.loaded, &self.environment) {
            Ok(Search::Engine(_)) => return registry,
            Ok(Search::Provider(_)) => no_provider(),
            Err(tool) => {
                if self.loaded.settings.web.search.engine.is_some() {
                    self.problems.warn(tool.why.clone());
                }
                tool
            }
        };
        registry.absent(tool)
    }

    /// Tells of rules that have no effect with these tools.
    ///
    /// # Errors
    /// When a denial on the command line is one of them.
    fn doubt_rules(&self, registry: &Registry, env: &Env) -> Result<(), Failure> {
        if !self.loaded.rules.is_empty() {
            let all = registry.assemble(&Env { shell: true, interactive: true, ..env.clone() });
            idle(&self.loaded, &all, &self.problems);
        }
        let is_there = |path: &HostPath| path.as_str().is_some_and(|text| Path::new(text).exists());
        if self.policy.doubts(&[], is_there).is_empty() {
            return Ok(());
        }
        let all = registry.assemble(&attended(env));
        let names: Vec<&str> = all.specs().iter().map(|spec| &*spec.name).collect();
        let doubts = self.policy.doubts(&names, is_there);
        report_problems(&doubts, &self.loaded, &self.problems)
    }

    /// Which list of things to do the run has.
    ///
    /// # Errors
    /// When both kinds are named on the command line; where settings name both, that is told.
    fn todo_choice(&self, common: &Common) -> Result<TodoChoice, Failure> {
        let lists = &self.loaded.settings.tools;
        // A person who calls one tool has no model that could have two lists.
        let is_all = self.every_tool && !self.no_conversation;
        let choice = |names: &[String]| {
            let named = names.iter().map(|name| own_name(name));
            TodoChoice::new(lists.todo, named, is_all)
        };
        match common.tools.as_deref() {
            Some(only) => choice(only).map_err(|why| Failure::Usage(format!("--tools: {why}"))),
            None => choice(&lists.on).or_else(|why| {
                self.problems.warn(format!("tools.on: {why}"));
                choice(&[]).map_err(Failure::Usage)
            }),
        }
    }

    /// Refuses names that no tool has on the command line; tells of those in the settings.
    fn check_names(&self, common: &Common, all: impl FnOnce() -> ToolSet) -> Result<(), Failure> {
        let (lists, only) = (&self.loaded.settings.tools, named_tools(common)?);
        if only.is_none() && lists.off.is_empty() && lists.on.is_empty() {
            return Ok(());
        }
        let all = all();
        let unknown = |name: &str| {
            if let Some(why) = self.no_powershell(name) {
                return Some(why);
            }
            let known = all.specs().iter().any(|spec| spec.name == own_name(name));
            (!known && !name.trim().is_empty())
                .then(|| sentence(&all.unknown(name.trim()).to_string()))
        };
        if let Some(error) = only.unwrap_or_default().iter().find_map(|name| unknown(name)) {
            return Err(Failure::Usage(format!("--tools: {error}")));
        }
        for (list, names) in [("off", &lists.off), ("on", &lists.on)] {
            let wrong = names.iter().filter_map(|name| Some((name, unknown(name)?)));
            for (name, error) in wrong {
                let key = format!("tools.{list}");
                let text = at(&self.loaded, &key, name, &format!("{key}: {error}"));
                self.problems.warn(text);
            }
        }
        Ok(())
    }

    /// Reports whether a tool that is not on by default may be among those of the run, so that it is
    /// looked for.
    fn wants(&self, common: &Common, tool: &str) -> bool {
        let named = |name: &String| own_name(name.trim()).eq_ignore_ascii_case(tool);
        let listed = self.loaded.settings.tools.on.iter().chain(common.tools.iter().flatten());
        let every = self.every_tool && self.called.as_ref().is_none_or(named);
        every || { listed }.any(named)
    }

    /// Why there is no PowerShell where it is meant.
    fn no_powershell(&self, name: &str) -> Option<String> {
        let meant = own_name(name.trim()).eq_ignore_ascii_case(POWERSHELL);
        (meant && !self.host.finds("pwsh")).then(|| {
            "the tool powershell is not available: there is no pwsh on the path; install PowerShell, or \
             use bash"
                .to_owned()
        })
    }

    /// The built-in tools with the limits that the settings give them.
    fn builtin(&self, common: &Common) -> Vec<Arc<dyn AnyTool>> {
        let settings = &self.loaded.settings;
        haft_tools::with(&haft_tools::Options {
            read_lines: settings.read.max_lines,
            read_bytes: settings.read.max_bytes,
            command_ms: settings.shell.timeout_ms,
            command_promote: settings.shell.promote,
            command_keep: settings.shell.keep.clone(),
            powershell: self.wants(common, POWERSHELL).then(|| self.host.finds("pwsh")),
            edit_strict: settings.edit.strict,
            ask_ms: settings.ask_user.timeout_ms,
            skills: haft_tools::Skills(Some(self.skills.clone())),
            web_private: private_hosts(&self.loaded, None),
            search: search_engine(&self.loaded, &self.environment).ok(),
            #[cfg(feature = "pdf")]
            pdf: super::pdf::reader(&self.host),
        })
    }

    /// The tools by which a skill or command works that a person starts, whatever the model has.
    pub fn typed_tools(&self, common: &Common, env: &Env) -> ToolSet {
        let policy = self.policy.clone();
        let registry = Registry::default().source(self.builtin(common));
        registry.filter(move |spec, _| (!policy.hides(&spec)).then_some(spec)).assemble(env)
    }

    /// Why a built-in tool is not among those of a run. None if it is, or if there is no such tool.
    pub fn taken_away(&self, common: &Common, env: &Env, name: &str) -> Option<String> {
        if let Some(why) = self.no_powershell(name) {
            return Some(why);
        }
        let all = Registry::default().source(self.builtin(common)).assemble(env);
        let spec = all.spec(name)?;
        let named = |names: &[String]| names.iter().any(|name| own_name(name) == spec.name);
        let why = if self.policy.hides(spec) {
            "a deny rule takes it away: change that rule to use it"
        } else if named(&self.loaded.settings.tools.off) {
            "`tools.off` in the settings takes it away: take its name out there to use it"
        } else if common.tools.as_deref().is_some_and(|only| !named(only)) {
            "--tools does not name it: add it there to use it"
        } else {
            return None;
        };
        Some(format!("the tool {} is not available: {why}", spec.name))
    }
}

/// A tool as a run has it: deferred unless it is seen at once.
fn as_seen(spec: ToolSpec, is_seen: bool, every: bool) -> ToolSpec {
    let loading = match spec.loading {
        Loading::Deferred if is_seen => Loading::Normal,
        loading => loading,
    };
    // Where all tools are seen it finds none, and says so.
    ToolSpec { loading, finds: spec.finds && !every, ..spec }
}

/// The same surroundings with somebody there: a name is known where nobody can answer, too.
fn attended(env: &Env) -> Env {
    Env { interactive: true, ..env.clone() }
}

/// The tools that a person wants; none given means all of them.
fn named_tools(common: &Common) -> Result<Option<&[String]>, Failure> {
    let only = common.tools.as_deref();
    if only.is_some_and(|only| only.iter().all(|name| name.trim().is_empty())) {
        return Err(Failure::Usage(
            "--tools names no tool: give names with commas between them, as `haft tool list` has \
             them, or leave it out for all"
                .into(),
        ));
    }
    Ok(only)
}

/// A tool's name as it was written in a list.
pub(crate) fn own_name(written: &str) -> &str {
    haft_policy::own_name(written.trim())
}
