//! Rules that were understood and still do nothing: about nothing, or behind a denial.
//!
//! **Invariant:** what is said here is certain as far as it is said: a rule that may do something is
//! never named.

use haft_types::HostPath;

use crate::{
    Policy, Rule, RuleProblem, Scope, Verdict,
    decide::Placed,
    names::{is_known, nearest},
    rule::{PathClass, Subject},
};

impl Policy {
    /// Rules that were understood and still do nothing: their tool is none of those `known`
    /// nor one that haft has a name for; their path starts at the project root and `is_there`
    /// knows its first folder only at the root of the host, or is written as no path is; their
    /// pattern is none of a simple command; or a stricter rule covers all that they are about.
    pub fn doubts(&self, known: &[&str], is_there: impl Fn(&HostPath) -> bool) -> Vec<RuleProblem> {
        let doubt = |placed: &Placed| match &placed.rule.subject {
            Subject::Tool(name) => unnamed(name, known),
            Subject::Path { pattern, .. } => {
                self.misplaced(pattern, &is_there).or_else(|| self.unwritten(pattern, &is_there))
            }
            Subject::Command { pattern, .. } => {
                let assigns = placed.rule.verdict == Verdict::Allow && pattern.assigns();
                let set = "no rule for words allows a command for which something is set; write it \
                           without that";
                pattern.doubt().or(assigns.then_some(set)).map(str::to_owned)
            }
            _ => None,
        };
        let problem = |placed: &Placed| {
            let rule = &placed.rule;
            let (problem, covered) = match doubt(placed) {
                Some(problem) => (problem, None),
                None if rule.scope == Scope::Restricted => return None,
                None => self.unreachable(rule)?,
            };
            Some(RuleProblem {
                verdict: rule.verdict,
                scope: rule.scope,
                text: rule.text.chars().take(200).collect(),
                problem,
                tool: None,
                covered,
            })
        };
        self.rules.iter().chain(&self.restricted).filter_map(problem).collect()
    }

    fn misplaced(&self, pattern: &str, is_there: impl Fn(&HostPath) -> bool) -> Option<String> {
        let rest = pattern.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
        let first = rest.split('/').next()?;
        if first.is_empty() || first.contains(['*', '?', '[', '{', '\\']) {
            return None;
        }
        let project = &self.anchors.project;
        let root = HostPath::root(project.style());
        let (near, far) =
            (project.join_bytes(first.as_bytes()).ok()?, root.join_bytes(first.as_bytes()).ok()?);
        (!is_there(&near) && is_there(&far)).then(|| {
            format!(
                "/ at its start is the project root, and {near} is not there; write //{rest} for \
                 {far}, or ./{rest}"
            )
        })
    }

    /// What is written as no path is, where none is named so.
    fn unwritten(&self, pattern: &str, is_there: impl Fn(&HostPath) -> bool) -> Option<String> {
        let pattern = pattern.trim();
        let (first, rest) = pattern.split_once('/')?;
        let why = match first.as_bytes().first()? {
            b'$' => format!("variables are not replaced in it; write ~/{rest} for the home folder"),
            b'~' if first.len() > 1 => "only the own home folder has a short name, ~/".to_owned(),
            _ if first.ends_with(':') && rest.starts_with('/') => {
                "it is compared with paths, and this is an address".to_owned()
            }
            _ => return None,
        };
        let named = self.anchors.cwd.join_bytes(first.as_bytes()).ok()?;
        (!is_there(&named)).then_some(why)
    }

    /// The stricter rule that leaves nothing of a rule, and where it was written.
    fn unreachable(&self, rule: &Rule) -> Option<(String, Option<Scope>)> {
        let stricter: &[Verdict] = match rule.verdict {
            Verdict::Allow => &[Verdict::Deny, Verdict::Ask],
            Verdict::Ask => &[Verdict::Deny],
            Verdict::Deny => &[],
        };
        let mut all = stricter.iter().flat_map(|verdict| self.with(*verdict));
        let by = &all.find(|by| covers(&by.rule.subject, &rule.subject))?.rule;
        let text = format!("the {} rule {} ({}) covers all of it", by.verdict, by.text, by.scope);
        Some((text, Some(by.scope)))
    }
}

fn unnamed(name: &str, known: &[&str]) -> Option<String> {
    let named = known.contains(&name) || is_known(name) || name.starts_with("mcp__");
    (!named).then(|| match nearest(name, known) {
        Some(meant) => format!("no tool is named {name:?}; did you mean {meant}?"),
        None => format!("no tool is named {name:?}"),
    })
}

/// Whether a rule surely is about all that another, less strict one is about.
fn covers(deny: &Subject, allow: &Subject) -> bool {
    use Subject::{Command, Domain, Named, Path, Prefix, Server, Tool};
    match (deny, allow) {
        (
            Tool(denied),
            Tool(name)
            | Command { tool: name, .. }
            | Domain { tool: name, .. }
            | Named { tool: name, .. },
        ) => denied == name || denied == "edit" && matches!(&**name, "write" | "notebook_edit"),
        (Tool(denied), Path { class, .. }) => covers_class(denied, class),
        (Server(server), Tool(name) | Prefix(name)) => {
            let rest = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(&**server));
            rest.is_some_and(|rest| rest.starts_with("__"))
        }
        (Server(denied), Server(server)) => denied == server,
        (Prefix(prefix), Tool(name) | Prefix(name)) => name.starts_with(prefix),
        (Prefix(prefix), Server(server)) => format!("mcp__{server}__").starts_with(prefix),
        // Denials look at the words of every shell.
        (Command { pattern: denied, .. }, Command { pattern, .. }) => denied.covers(pattern),
        (Path { class: denied, pattern: all }, Path { class, pattern }) => {
            let class = match denied {
                PathClass::Reads => true,
                PathClass::Writes => covers_class("edit", class),
                PathClass::Of(_) => denied == class,
            };
            class && covers_path(all, pattern)
        }
        (Domain { host: denied, below: false, .. }, Domain { host, below: false, .. }) => {
            denied == host
        }
        (Domain { host: denied, below: true, .. }, Domain { host, .. }) => {
            host.strip_suffix(&**denied).is_some_and(|head| head.ends_with('.'))
        }
        (Named { tool: denied, pattern: all }, Named { tool, pattern }) => {
            denied == tool && all.covers(pattern)
        }
        _ => false,
    }
}

/// Whether a bare denial of a tool forbids all that a path rule allows: whoever may not read a file may
/// not change it either.
fn covers_class(denied: &str, class: &PathClass) -> bool {
    match (denied, class) {
        ("read", _) | ("edit", PathClass::Writes) => true,
        ("edit", PathClass::Of(tool)) => matches!(&**tool, "write" | "notebook_edit"),
        (denied, PathClass::Of(tool)) => denied == tool,
        _ => false,
    }
}

/// The same pattern, or all that is below a folder of whole names.
fn covers_path(all: &str, pattern: &str) -> bool {
    if all == pattern {
        return true;
    }
    let plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\', '!']);
    let Some(folder) = all.strip_suffix("/**").filter(|folder| plain(folder)) else { return false };
    let anchored = folder.contains('/') || folder.starts_with(['~', '.']);
    let rest = pattern.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    anchored && rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(".."))
}
