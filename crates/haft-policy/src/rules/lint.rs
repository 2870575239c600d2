//! Finds rules that were understood and still have no effect: they match nothing, or a stricter
//! rule covers them.
//!
//! **Invariant:** what is reported is certain: a rule that may have an effect is never named.

use std::{cell::Cell, collections::HashMap};

use haft_types::HostPath;

use super::{
    rule::{PathClass, Subject},
    tool_aliases::{is_known, nearest, stands_for},
};
use crate::{Policy, Rule, RuleProblem, Scope, Verdict, decide::Placed};

impl Policy {
    /// Rules that were understood and still do nothing: their tool is none of those `known`
    /// nor one that haft has a name for; their path starts at the project root and `is_there`
    /// knows its first folder only at the root of the host, or is written as no path is; their
    /// pattern is none of a simple command; or a stricter rule covers all that they are about.
    pub fn doubts(&self, known: &[&str], is_there: impl Fn(&HostPath) -> bool) -> Vec<RuleProblem> {
        let doubt = |placed: &Placed| match &placed.rule.subject {
            Subject::Tool(name) => unnamed(name, known),
            Subject::Path { pattern, .. } | Subject::Outside { pattern } => {
                self.misplaced(pattern, &is_there).or_else(|| self.unwritten(pattern, &is_there))
            }
            Subject::Command { pattern, .. } => {
                let is_open = placed.rule.verdict == Verdict::Allow && pattern.sets_openly();
                let set = "what is set for a command is only allowed by its name and its whole value, \
                           with the command behind it";
                pattern.doubt().or(is_open.then_some(set)).map(str::to_owned)
            }
            _ => None,
        };
        let stricter = Stricter::of(self);
        let problem = |placed: &Placed| {
            let rule = &placed.rule;
            let (problem, covered) = match doubt(placed) {
                Some(problem) => (problem, None),
                None if rule.scope == Scope::Restricted => return None,
                None => stricter.leaves_nothing(rule)?,
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
}

/// Rules that forbid or ask, to be found by what they may leave nothing of.
struct Stricter<'p> {
    /// Denials first.
    rules: Vec<&'p Rule>,
    /// By [`key`], the rules of it; of those that are about the same only the first.
    found: HashMap<String, Vec<usize>>,
    /// How often two rules were compared.
    compared: Cell<usize>,
}

impl<'p> Stricter<'p> {
    fn of(policy: &'p Policy) -> Self {
        let by = |verdict| policy.with(verdict).map(|placed| &placed.rule);
        let rules: Vec<&Rule> = by(Verdict::Deny).chain(by(Verdict::Ask)).collect();
        let mut stricter = Self { rules, found: HashMap::new(), compared: Cell::new(0) };
        for (at, rule) in stricter.rules.iter().enumerate() {
            let same = stricter.found.entry(key(&rule.subject)).or_default();
            let is_told = |other: &usize| stricter.rules[*other].subject == rule.subject;
            // The same denial twice says no more; many of one key are few in all.
            if !same.iter().rev().take(4).any(is_told) {
                same.push(at);
            }
        }
        stricter
    }

    /// The one that leaves nothing of a rule, and where it was written.
    fn leaves_nothing(&self, rule: &Rule) -> Option<(String, Option<Scope>)> {
        let is_stricter = |by: &Rule| match rule.verdict {
            Verdict::Allow => true,
            Verdict::Ask => by.verdict == Verdict::Deny,
            Verdict::Deny => false,
        };
        let holds = |at: &&usize| {
            let by = self.rules[**at];
            self.compared.set(self.compared.get() + 1);
            is_stricter(by) && covers(&by.subject, &rule.subject)
        };
        let all = covered_by(&rule.subject).into_iter();
        let first = all.filter_map(|key| self.found.get(&key)?.iter().find(holds)).min()?;
        let by = self.rules[*first];
        let text = format!("the {} rule {} ({}) covers all of it", by.verdict, by.text, by.scope);
        Some((text, Some(by.scope)))
    }
}

/// By which a rule is found that may cover others.
fn key(subject: &Subject) -> String {
    match subject {
        Subject::Tool(tool) => format!("tool {tool}"),
        Subject::Server(server) => format!("server {server}"),
        Subject::Prefix(prefix) => format!("prefix {prefix}"),
        Subject::Path { pattern, .. } => format!("path {pattern}"),
        Subject::Outside { pattern } => format!("outside {pattern}"),
        Subject::Command { pattern, .. } => format!("command {}", pattern.key()),
        Subject::Domain { host, below, .. } => format!("domain {below} {host}"),
        Subject::Named { tool, pattern } => format!("named {tool} {}", pattern.key()),
    }
}

/// The keys of all rules that may cover one.
fn covered_by(subject: &Subject) -> Vec<String> {
    let tools = |tool: &str| ["edit", "read", tool].map(|tool| format!("tool {tool}")).to_vec();
    let starts = |text: &str| -> Vec<String> {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        ends.map(|end| format!("prefix {}", &text[..end])).collect()
    };
    let servers = |tool: &str| -> Vec<String> {
        let Some(rest) = tool.strip_prefix("mcp__") else { return Vec::new() };
        let ends = rest.match_indices('_').map(|(at, _)| at).chain([rest.len()]);
        ends.map(|end| format!("server {}", &rest[..end])).collect()
    };
    match subject {
        Subject::Tool(tool) => [tools(tool), servers(tool), starts(tool)].concat(),
        Subject::Prefix(prefix) => [servers(prefix), starts(prefix)].concat(),
        // It is a denial, and nothing is stricter.
        Subject::Outside { .. } => Vec::new(),
        Subject::Server(server) => {
            let own = vec![format!("server {server}")];
            [own, starts(&format!("mcp__{server}__"))].concat()
        }
        Subject::Path { class, pattern } => {
            let tool = if let PathClass::Of(tool) = class { tool } else { "" };
            let folders = pattern.match_indices('/').map(|(at, _)| &pattern[..at]);
            let above = folders.map(|folder| format!("path {folder}/**"));
            let wide = WIDE.iter().map(|all| format!("path {all}"));
            let own = [format!("path {pattern}")];
            tools(tool).into_iter().chain(above).chain(wide).chain(own).collect()
        }
        Subject::Command { tool, pattern } => {
            let keys = pattern.covering().map(|key| format!("command {key}"));
            tools(tool).into_iter().chain(keys).collect()
        }
        Subject::Domain { tool, host, below } => {
            let ends = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
            let above = ends.map(|end| format!("domain true {end}"));
            tools(tool).into_iter().chain(above).chain([format!("domain {below} {host}")]).collect()
        }
        Subject::Named { tool, pattern } => {
            let keys = pattern.covering().map(|key| format!("named {tool} {key}"));
            tools(tool).into_iter().chain(keys).collect()
        }
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
        ) => stands_for(denied, name),
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
        (denied, PathClass::Of(tool)) => stands_for(denied, tool),
        _ => false,
    }
}

/// Patterns of all that is below the working folder, the project root, and the root of the host.
const WIDE: [&str; 4] = ["**", "./**", "/**", "//**"];

/// The same pattern, or all that is below a folder of whole names.
fn covers_path(all: &str, pattern: &str) -> bool {
    if all == pattern {
        return true;
    }
    let climbs = || pattern.split('/').any(|name| name == "..");
    let is_own = || !pattern.starts_with(['/', '~', '$', '!']);
    match all {
        "//**" => return pattern.starts_with("//") && !climbs(),
        "/**" => return pattern.starts_with('/') && !pattern.starts_with("//") && !climbs(),
        "**" | "./**" => return is_own() && !climbs(),
        _ => {}
    }
    let plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\', '!']);
    let Some(folder) = all.strip_suffix("/**").filter(|folder| plain(folder)) else { return false };
    let anchored = folder.contains('/') || folder.starts_with(['~', '.']);
    let rest = pattern.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    anchored && rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(".."))
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;
    use crate::{Anchors, Rules};

    fn policy(rules: &Rules) -> Policy {
        let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let (cwd, home) = (at("/w"), at("/h"));
        let (project, roots, state) = (cwd.clone(), vec![cwd.clone()], Vec::new());
        Policy::new(rules, Anchors { cwd, roots, project, home, state })
    }

    #[test]
    fn many_rules_are_not_compared_with_each_other() {
        const MANY: usize = 3_000;
        for (deny, allow) in [
            ("Bash(npm run aN:*)", "Bash(npm run bN:*)"),
            ("Bash(toolN:*)", "Bash(othersN x *)"),
            ("Bash(*xN)", "Bash(*yN)"),
            ("Read(/a/N/**)", "Read(/b/N/c)"),
            ("WebFetch(domain:aN.example.com)", "WebFetch(domain:bN.example.com)"),
            ("mcp__s__aN", "mcp__s__bN"),
            ("mcp__aN", "mcp__bN"),
            ("Task(aN)", "Task(bN)"),
            ("", "Bash(toolN run:*)"),
        ] {
            let mut rules = Rules::default();
            for n in 0..MANY {
                let text = |text: &str| text.replace('N', &n.to_string());
                if !deny.is_empty() {
                    rules.add(Verdict::Deny, Scope::User, &text(deny));
                }
                rules.add(Verdict::Allow, Scope::User, &text(allow));
            }
            let policy = policy(&rules);
            assert_eq!(policy.problems(), [], "{deny} {allow}");
            let stricter = Stricter::of(&policy);
            let told =
                policy.with(Verdict::Allow).filter_map(|one| stricter.leaves_nothing(&one.rule));
            assert_eq!(told.count(), 0, "{deny} {allow}");
            assert!(stricter.compared.get() <= 4 * MANY, "{deny}: {}", stricter.compared.get());
        }
    }

    const TEXTS: [&str; 41] = [
        "Bash",
        "Bash(git:*)",
        "Bash(git push:*)",
        "Bash(git push)",
        "Bash(git push origin:*)",
        "Bash(git *)",
        "Bash(*)",
        "Bash(git * main)",
        "Bash(git push*)",
        "Bash(g*)",
        "Read",
        "Edit",
        "Write",
        "Read(/a/**)",
        "Read(/a/b/**)",
        "Read(/a/b)",
        "Edit(/a/b)",
        "Read(~/x/**)",
        "Read(~/x/y)",
        "Read(**)",
        "Read(./**)",
        "Read(src/**)",
        "Read(x)",
        "Read(../x)",
        "Read(/**)",
        "Read(//**)",
        "Read(//etc/x)",
        "mcp__s",
        "mcp__s__t",
        "mcp__s__*",
        "mcp__s__t*",
        "mcp__s_",
        "mcp__s___t",
        "WebFetch",
        "WebFetch(domain:a.b.c)",
        "WebFetch(domain:*.b.c)",
        "WebFetch(domain:*.c)",
        "WebFetch(domain:b.c)",
        "Task",
        "Task(x)",
        "Task(x*)",
    ];

    #[test]
    fn whatever_covers_a_rule_is_found() {
        let mut covered = 0;
        for deny in TEXTS {
            for allow in TEXTS {
                let rules = Rules::default().with(Verdict::Deny, Scope::User, deny).with(
                    Verdict::Allow,
                    Scope::User,
                    allow,
                );
                let policy = policy(&rules);
                let [by, of] = &policy.rules[..] else { continue };
                let wanted = covers(&by.rule.subject, &of.rule.subject);
                let found = Stricter::of(&policy).leaves_nothing(&of.rule);
                assert_eq!(found.is_some(), wanted, "{deny} {allow}");
                covered += usize::from(wanted);
            }
        }
        assert!(covered > 2 * TEXTS.len(), "{covered}");
    }
}
