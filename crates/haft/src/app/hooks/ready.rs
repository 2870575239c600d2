//! Prepares hooks: compiles their matchers and parses the rules of their `if` conditions.
//!
//! **Invariant:** a matcher or condition that cannot be read matches everything. Such a hook may
//! then only restrict: it cannot allow a call or rewrite its arguments.

use std::sync::Arc;

use haft_config::{HookEntry, HookRun, Loaded, Problem};
use haft_policy::{ALIASES, Anchors, Policy, Rules, Scope, Verdict};
use haft_text::secrets::Secrets;
use haft_tool::HookCall;
use haft_types::Env;
use regex::Regex;

/// Most characters of a command that name it.
const NAME: usize = 80;

/// A hook that is ready to run.
pub struct Ready {
    /// The hook as the settings define it.
    pub entry: HookEntry,
    matcher: Matcher,
    condition: Option<Policy>,
    /// Whether it may only restrict: its allow verdict and its rewritten arguments are dropped.
    pub limited: bool,
}

enum Matcher {
    Everything,
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(wanted) => wanted.iter().any(|one| one == name),
            Self::Pattern(pattern) => pattern.is_match(name),
        }
    }

    /// What of it means none of these tools, and none of a server.
    fn strange(&self, known: &[String]) -> Vec<&str> {
        let is_of_server = |text: &str| text.contains("mcp__");
        match self {
            Self::Everything => Vec::new(),
            Self::Names(wanted) => {
                let names = wanted.iter().filter(|name| !known.contains(name));
                names.map(String::as_str).filter(|name| !is_of_server(name)).collect()
            }
            Self::Pattern(pattern) => {
                let text = pattern.as_str();
                let means = is_of_server(text) || known.iter().any(|name| pattern.is_match(name));
                if means { Vec::new() } else { vec![text] }
            }
        }
    }
}

impl Ready {
    /// Reports whether it runs for an event with one of these names. For a call, its `if` condition
    /// has to match too.
    pub fn matches(&self, names: &[String], seen: Option<&HookCall>) -> bool {
        self.means(names)
            && match (&self.condition, seen) {
                (None, _) => true,
                (Some(rules), Some(seen)) => seen.may_touch(rules),
                (Some(_), None) => false,
            }
    }

    /// Reports whether its matcher takes one of these names; its `if` condition is not checked. An
    /// event without names always matches.
    pub fn means(&self, names: &[String]) -> bool {
        names.is_empty() || names.iter().any(|name| self.matcher.takes(name))
    }

    /// Its name in messages: its command or address, without values of secrets.
    pub fn name(&self, secrets: &Secrets) -> String {
        let text = match &self.entry.run {
            HookRun::Command { command, .. } => command.clone(),
            HookRun::Http { url, .. } => haft_net::shown_url(url),
            HookRun::Nothing(_) => "without a command".to_owned(),
        };
        // Before it is cut, so that no half of a value is left.
        let text = secrets.hide(&text);
        let line = text.trim().lines().next().unwrap_or_default();
        let short: String = line.chars().take(NAME).collect();
        if short.len() < text.trim().len() { format!("`{short}...`") } else { format!("`{short}`") }
    }
}

/// Prepares the hooks of all settings layers. What is wrong with them is added to the problems of
/// `loaded`.
pub fn ready(loaded: &mut Loaded, anchors: &Anchors) -> Vec<Arc<Ready>> {
    let entries = std::mem::take(&mut loaded.hooks);
    let mut all = Vec::with_capacity(entries.len());
    let env = Env { shell: true, interactive: true, ..Env::default() };
    let own = haft_tools::builtin().into_iter().map(|tool| tool.spec(&env).name.to_string());
    let known: Vec<String> = ALIASES
        .iter()
        .flat_map(|(theirs, ours)| [*theirs, *ours])
        .map(str::to_owned)
        .chain(own)
        .collect();
    for entry in entries {
        // What runs nothing and holds nothing back was told when it was read.
        if matches!(entry.run, HookRun::Nothing(_)) && !entry.fail_closed {
            continue;
        }
        let mut limited = entry.limited;
        let mut wrong = |key: &str, message: String| {
            let key = format!("hooks.{}: {key}", entry.event.name());
            let place = entry.place.clone();
            loaded.problems.push(Problem { place, key, message, fatal: false });
            limited = true;
        };
        let matcher = matcher(&entry.matcher).unwrap_or_else(|why| {
            wrong(
                "matcher",
                format!("{:?} is no pattern, so it matches everything: {why}", entry.matcher),
            );
            Matcher::Everything
        });
        let condition = entry.condition.as_ref().map(|rule| {
            let rules = Rules::default().with(Verdict::Ask, Scope::User, rule);
            Policy::new(&rules, anchors.clone())
        });
        let mut about_nothing = false;
        if let (Some(rule), Some(policy)) = (&entry.condition, &condition) {
            if let Some(problem) = policy.problems().first() {
                let why = &problem.problem;
                wrong("if", format!("{rule:?} is no rule, so it counts for every call: {why}"));
            } else if !entry.event.is_of_tools() {
                wrong("if", "a hook with `if` never runs on an event that is no call".to_owned());
            } else if let Some(why) = never(policy, &matcher, &known) {
                wrong(
                    "if",
                    format!("{rule:?} can match no call, so it counts for every one: {why}"),
                );
                about_nothing = true;
            }
        }
        let condition = condition.filter(|_| !about_nothing);
        if entry.event.is_of_tools() {
            loaded.problems.extend(strange(&entry, &matcher, &known));
        }
        all.push(Arc::new(Ready { entry, matcher, condition, limited }));
    }
    all
}

/// What a matcher names that haft does not bring.
fn strange(entry: &HookEntry, matcher: &Matcher, known: &[String]) -> Option<Problem> {
    let names = matcher.strange(known);
    let hint = match entry.matcher.find('(') {
        Some(_) => ": a rule such as Bash(git push *) stands in `if`",
        None => ", and letter case counts: there are Bash, Edit, Write, Read and others",
    };
    (!names.is_empty()).then(|| Problem {
        place: entry.place.clone(),
        key: format!("hooks.{}: matcher", entry.event.name()),
        message: format!("{:?} matches no tool that haft brings{hint}", names.join("|")),
        fatal: false,
    })
}

/// Why a condition is about nothing that its hook is asked about.
fn never(condition: &Policy, matcher: &Matcher, known: &[String]) -> Option<String> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if let Some(doubt) = condition.doubts(&known, |_| false).first() {
        return Some(doubt.problem.clone());
    }
    let meant = condition.meant_tools()?;
    (!meant.iter().any(|name| matcher.takes(name)))
        .then(|| format!("its matcher leaves {} out", meant[0]))
}

/// Reads a matcher as Claude Code does: names in a list, else a pattern that is looked for anywhere.
fn matcher(text: &str) -> Result<Matcher, String> {
    let text = text.trim();
    if text.is_empty() || text == "*" {
        return Ok(Matcher::Everything);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|');
    if text.chars().all(is_name) {
        let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
        return Ok(Matcher::Names(names.map(str::to_owned).collect()));
    }
    // The last line of the message says what is wrong; those before draw it.
    let why = |error: regex::Error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    };
    Regex::new(text).map(Matcher::Pattern).map_err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_names_or_patterns() {
        let takes = |text: &str, name: &str| match matcher(text).unwrap() {
            Matcher::Everything => true,
            Matcher::Names(names) => names.iter().any(|one| one == name),
            Matcher::Pattern(pattern) => pattern.is_match(name),
        };
        for (text, name, taken) in [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("bash", "Bash", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Write", true),
            ("Edit|Write", "NotebookEdit", false),
            ("Edit|Write.*", "NotebookEdit", true),
            ("^Notebook", "NotebookEdit", true),
            ("mcp__memory__.*", "mcp__memory__add", true),
            ("mcp__memory", "mcp__memory__add", false),
            ("mcp__.*__write", "mcp__a__write_file", true),
        ] {
            assert_eq!(takes(text, name), taken, "{text} {name}");
        }
        assert!(matcher("(").is_err() && matcher("(?=x)").is_err());
    }
}
