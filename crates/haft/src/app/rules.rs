//! Settings and rules as the run uses them: what the flags add, and what is wrong with them.
//!
//! **Invariant:** a setting or rule that would restrict something and cannot be read is a reason
//! not to start. For rules of a project or of another agent, the calls that they may be about are
//! asked about instead. Everything else that has no effect is reported.

use std::sync::Arc;

use haft_config::{Layer, Loaded, Presence, RuleText, Sandbox, SandboxLevel};
use haft_net::{Exceptions, Hosts};
use haft_policy::{ALIASES, Confinement, Policy, RESTRICTED, RuleProblem, Rules, Scope, Verdict};
use haft_tool::ToolSet;
use haft_types::{Place, ToolSpec};
use serde_json::{Value, json};

use super::{problem::Problems, toolset::own_name};
use crate::cli::{Common, exit::Failure};

/// What the flags set, in the shape of the settings.
pub(crate) fn command_line(common: &Common) -> Value {
    let mut layer = json!({});
    if !common.allow.is_empty() || !common.deny.is_empty() {
        layer["permissions"] = json!({"allow": common.allow, "deny": common.deny});
    }
    if let Some(model) = &common.model {
        layer["model"] = json!(model);
    }
    if let Some(effort) = common.effort {
        layer["effort"] = json!(effort.name());
    }
    if let Some(mode) = common.mode() {
        layer["mode"] = json!(mode.name());
    }
    layer
}

/// Tells what is wrong with the settings; some of it is a reason not to start. With `is_refused` the
/// person said that those of the project shall not count.
pub(crate) fn report(
    loaded: &Loaded,
    problems: &Problems,
    is_refused: bool,
) -> Result<(), Failure> {
    for problem in loaded.problems.iter().filter(|problem| !problem.fatal) {
        problems.warn(problem.to_string());
    }
    if !is_refused {
        unread_files(loaded, problems);
    }
    let fatal: Vec<String> = loaded.fatal().map(ToString::to_string).collect();
    if fatal.is_empty() { Ok(()) } else { Err(Failure::Usage(fatal.join("\n"))) }
}

/// Names the settings of a project that were left closed because its folder is not trusted.
fn unread_files(loaded: &Loaded, problems: &Problems) {
    let closed = loaded.files.iter().filter(|file| file.presence == Presence::Untrusted);
    let names: Vec<String> = closed.map(|file| file.path.display().to_string()).collect();
    if !names.is_empty() {
        let text = format!(
            "{} not read, for the folder is not trusted; --trust reads what a project sets, its \
             hooks too, and haft trust does so from now on",
            match &names[..] {
                [one] => format!("{one} is"),
                all => format!("{} are", all.join(", ")),
            }
        );
        problems.warn(text);
    }
}

/// Tells which rules cannot be read. One that would hold something back is a reason not to start:
/// without it more would happen than the person wants.
///
/// Not so one of a project, which would then decide that haft is of no use in it; every call of the
/// tool that it names is asked about instead.
pub(crate) fn unread(
    wrong: &[RuleProblem],
    loaded: &Loaded,
    problems: &Problems,
) -> Result<(), Failure> {
    let mut fatal = Vec::new();
    for problem in wrong {
        let rule = placed(problem, loaded);
        let text = with_place(problem, rule, loaded);
        let loosens = problem.verdict == Verdict::Allow || problem.scope == Scope::Project;
        // Written for another agent: every call of the tool that it names is asked about.
        let asked = rule.is_some_and(|rule| rule.foreign) && problem.tool.is_some();
        if asked {
            problems.warn(text);
        } else if problem.scope == Scope::CommandLine || !loosens {
            fatal.push(text);
        } else {
            problems.warn(text);
        }
    }
    if fatal.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!("{}\nCorrect it or take it out.", fatal.join("\n"))))
}

/// The rule as it was written.
fn placed<'a>(problem: &RuleProblem, loaded: &'a Loaded) -> Option<&'a RuleText> {
    loaded.rules.iter().find(|rule| {
        let start = rule.text.trim().chars().take(200);
        scope(rule.layer) == problem.scope
            && verdict(rule.list) == problem.verdict
            && start.eq(problem.text.chars())
    })
}

/// The private hosts that a person lets haft ask. What cannot be read is told, where somebody
/// listens, and left out.
pub(crate) fn private_hosts(loaded: &Loaded, problems: Option<&Problems>) -> Exceptions {
    let all = &loaded.settings.web.private;
    let readable = all.iter().filter(|text| match Exceptions::parse(&[text]) {
        Ok(_) => true,
        Err(error) => {
            let text_of = format!("web.private: {error}; it is left out");
            if let Some(problems) = problems {
                problems.warn(at(loaded, "web.private", text, &text_of));
            }
            false
        }
    });
    let readable: Vec<&String> = readable.collect();
    Exceptions::parse(&readable).unwrap_or_default()
}

/// What is wrong with a rule, and where it stands.
fn with_place(problem: &RuleProblem, rule: Option<&RuleText>, loaded: &Loaded) -> String {
    if problem.scope == Scope::Restricted {
        let key = "permissions.restricted";
        return at(loaded, key, &problem.text, &format!("{key}: {problem}"));
    }
    match rule.filter(|_| problem.scope != Scope::CommandLine) {
        Some(rule) => format!("{}: permissions.{}: {problem}", rule.place, rule.list),
        None => problem.to_string(),
    }
}

/// Fails if a rule cannot be read that a call is to be tried with.
pub fn readable(policy: &Policy, loaded: &Loaded) -> Result<(), Failure> {
    let told = |problem| with_place(problem, placed(problem, loaded), loaded);
    let all: Vec<String> = policy.problems().iter().map(told).collect();
    if all.is_empty() { Ok(()) } else { Err(Failure::Usage(all.join("\n"))) }
}

/// Names the rules about tools that other agents have and haft does not: they do nothing.
pub(crate) fn idle(loaded: &Loaded, tools: &ToolSet, problems: &Problems) {
    let specs = tools.specs();
    let is_idle = |rule: &&RuleText| {
        let name = rule.text.split('(').next().unwrap_or_default().trim();
        let own = own_name(name);
        let of_a_server = name.starts_with("mcp__");
        let known = ALIASES.iter().any(|(theirs, ours)| *theirs == name || *ours == name);
        let there = |spec: &Arc<ToolSpec>| {
            spec.name == own || (of_a_server && spec.name.starts_with("mcp__"))
        };
        (known || of_a_server) && !specs.iter().any(there)
    };
    let mut shown = Vec::new();
    for rule in loaded.rules.iter().filter(is_idle) {
        shown.push(format!("{} {} ({})", rule.list, rule.text.trim(), rule.place));
    }
    if !shown.is_empty() {
        let text =
            format!("rules that do nothing, for haft has no such tool: {}", shown.join(", "));
        problems.warn(text);
    }
}

/// Tells which rules are about nothing.
pub(crate) fn report_problems(
    doubts: &[RuleProblem],
    loaded: &Loaded,
    problems: &Problems,
) -> Result<(), Failure> {
    for problem in doubts {
        // A denial that was just typed and would not count is worse than not starting; that what is
        // allowed is denied elsewhere harms nothing.
        let text = with_place(problem, placed(problem, loaded), loaded);
        let typed = |scope| matches!(scope, Scope::CommandLine | Scope::Given);
        let is_harmless =
            problem.verdict == Verdict::Allow && problem.covered.is_some_and(|by| !typed(by));
        if typed(problem.scope) && !is_harmless {
            return Err(Failure::Usage(text));
        }
        problems.warn(text);
    }
    Ok(())
}

/// What is wrong with an entry of a list, behind the place where it stands.
pub(crate) fn at(loaded: &Loaded, key: &str, entry: &str, text: &str) -> String {
    match loaded.place_of(key, entry) {
        Some(place) => format!("{place}: {text}"),
        None => text.to_owned(),
    }
}

/// What a person wants of the sandbox.
///
/// # Errors
/// Names a folder that is no path.
pub(crate) fn confinement(
    loaded: &Loaded,
    place: &Place,
    problems: &Problems,
) -> Result<Confinement, Failure> {
    let Sandbox { looks, always, ref write, ref hosts, unsandboxed, require } =
        loaded.settings.sandbox;
    // Told here, once; whoever needs them reads them again.
    private_hosts(loaded, Some(problems));
    let hosts = hosts.iter().filter(|host| match Hosts::parse([host]) {
        Ok(_) => true,
        Err(error) => {
            let text = format!("sandbox.hosts: {error}; it is left out");
            problems.warn(at(loaded, "sandbox.hosts", host, &text));
            false
        }
    });
    let hosts = hosts.cloned().collect();
    let folder = |text: &String| {
        place
            .path(text)
            .map_err(|error| Failure::Usage(format!("sandbox.write: {text:?}: {error}")))
    };
    let write = write.iter().map(folder).collect::<Result<_, _>>()?;
    Ok(Confinement {
        looks,
        always: always || require.is_some(),
        strong: require == Some(SandboxLevel::Namespaces),
        write,
        hosts,
        may_leave: unsandboxed && require.is_none(),
    })
}

/// The policy with the list of restricted commands: that of the settings, otherwise the built-in
/// one.
pub fn restricting(policy: Policy, loaded: &Loaded) -> Policy {
    match &loaded.settings.permissions.restricted {
        Some(list) => policy.restricting(list),
        None => policy.restricting(RESTRICTED),
    }
}

pub fn rules(loaded: &Loaded) -> Rules {
    let mut rules = Rules::default();
    for rule in &loaded.rules {
        rules.add(verdict(rule.list), scope(rule.layer), &rule.text);
    }
    rules
}

fn verdict(list: &str) -> Verdict {
    match list {
        "allow" => Verdict::Allow,
        "deny" => Verdict::Deny,
        _ => Verdict::Ask,
    }
}

const fn scope(layer: Layer) -> Scope {
    match layer {
        Layer::Default | Layer::User => Scope::User,
        Layer::Project => Scope::Project,
        Layer::Local => Scope::Local,
        Layer::Managed => Scope::Managed,
        Layer::Environment | Layer::CommandLine => Scope::CommandLine,
        Layer::Given => Scope::Given,
    }
}
