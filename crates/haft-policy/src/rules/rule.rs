//! Rules as people write them: `Tool` or `Tool(pattern)`, with their verdict and their scope.
//!
//! **Invariant:** a text that cannot be understood becomes a problem, never an allowance.

use std::{
    borrow::Cow,
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use haft_text::names::composed;
use serde::{Deserialize, Serialize};

use super::{
    command_pattern::CommandPattern,
    tool_aliases::{case_slip, is_known, nearest, own_name, stands_for},
};

/// What a rule, or a judgement, says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Go on.
    Allow,
    /// A person decides.
    Ask,
    /// Do not.
    Deny,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Where a rule was written. It does not change what the rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// By whoever runs the machine.
    Managed,
    /// In the person's own settings.
    User,
    /// In the settings that come with the project.
    Project,
    /// In the person's settings for this project.
    Local,
    /// For this run.
    CommandLine,
    /// In rules that a call is tried with in place of those of the settings.
    Given,
    /// In the list of restricted commands.
    Restricted,
    /// In a message of the person, who took what it says as a rule.
    Conversation,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed settings",
            Self::User => "user settings",
            Self::Project => "project settings",
            Self::Local => "local settings",
            Self::CommandLine => "command line",
            Self::Given => "given rules",
            Self::Restricted => "list of restricted commands",
            Self::Conversation => "the person's message",
        })
    }
}

/// One rule that was understood.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it says.
    pub verdict: Verdict,
    /// Where it was written.
    pub scope: Scope,
    /// As it was written.
    pub text: String,
    /// The sentence of the person that it was taken from; none for one of settings.
    pub sentence: Option<String>,
    pub(crate) subject: Subject,
}

impl Rule {
    /// The person's own words, for the end of a reason.
    pub(crate) fn quoted(&self) -> String {
        let quoted = |sentence: &String| format!("; the person said: \"{sentence}\"");
        self.sentence.as_ref().map(quoted).unwrap_or_default()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.verdict, self.text, self.scope)
    }
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A tool as a whole, by our name.
    Tool(String),
    /// Every tool of a server.
    Server(String),
    /// Every tool whose name starts so.
    Prefix(String),
    /// Effects on paths.
    Path { class: PathClass, pattern: String },
    /// Changes of all paths but these; only denied.
    Outside { pattern: String },
    /// Commands of the named shell tool.
    Command { tool: String, pattern: CommandPattern },
    /// A network peer, reached by the named tool; with `below`, its subdomains instead.
    Domain { tool: String, host: String, below: bool },
    /// A call that names one agent or skill.
    Named { tool: String, pattern: CommandPattern },
}

/// Which effects on paths a pattern is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathClass {
    /// All that observe, of any tool.
    Reads,
    /// All that change something, of any tool.
    Writes,
    /// Those of one tool.
    Of(String),
}

/// A rule that does not count as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {verdict} rule {text:?} ({scope}) does not count: {problem}")]
pub struct RuleProblem {
    /// What it would have said.
    pub verdict: Verdict,
    /// Where it was written.
    pub scope: Scope,
    /// As it was written, at most 200 characters.
    pub text: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
    /// Our name of the tool that it is about, where that much is known: a denial or question that
    /// is not understood makes all calls of that tool ask.
    pub tool: Option<String>,
    /// Where the stricter rule was written that leaves nothing of it.
    pub covered: Option<Scope>,
}

/// The rules of all scopes, and what was wrong with some.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) problems: Vec<RuleProblem>,
}

impl Rules {
    /// Reads one rule; a text that is not understood is kept as a problem.
    pub fn add(&mut self, verdict: Verdict, scope: Scope, text: &str) {
        let text = text.trim();
        // A denial of all is the safe side of what may have been meant.
        let senseless = blank(text).filter(|_| verdict != Verdict::Deny);
        match senseless.map_or_else(|| parse(text, verdict), Err) {
            Ok(subject) => {
                let (text, sentence) = (text.to_owned(), None);
                self.rules.push(Rule { verdict, scope, text, sentence, subject });
            }
            Err(problem) => {
                let tool = text.split('(').next().map(str::trim).filter(|name| is_name(name));
                let tool = tool.map(|name| own_name(case_slip(name).unwrap_or(name)).to_owned());
                let text = text.chars().take(200).collect();
                self.problems.push(RuleProblem {
                    verdict,
                    scope,
                    text,
                    problem,
                    tool,
                    covered: None,
                });
            }
        }
    }

    /// Adds a denial that was taken from a sentence of the person.
    pub fn add_said(&mut self, text: &str, sentence: &str) {
        let before = self.rules.len();
        self.add(Verdict::Deny, Scope::Conversation, text);
        for rule in &mut self.rules[before..] {
            rule.sentence = Some(sentence.to_owned());
        }
    }

    /// Adds a rule and gives the collection back.
    #[must_use]
    pub fn with(mut self, verdict: Verdict, scope: Scope, text: &str) -> Self {
        self.add(verdict, scope, text);
        self
    }

    /// Adds all of another collection.
    pub fn append(&mut self, more: Self) {
        self.rules.extend(more.rules);
        self.problems.extend(more.problems);
    }

    /// The rules that were understood, in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What was wrong with the others.
    pub fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }
}

/// What is wrong with a pattern that says nothing before its `*`, though it leaves room for that.
fn blank(text: &str) -> Option<String> {
    let (name, pattern) = text.strip_suffix(')')?.split_once('(')?;
    let said = pattern.replace(|c: char| c.is_whitespace() || c == '\'' || c == '"', "");
    let is_blank = !said.is_empty() && said.chars().all(|c| c == '*') && said != pattern.trim_end();
    is_blank
        .then(|| format!("nothing stands before its *; write {name} alone for every call of it"))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn parse(text: &str, verdict: Verdict) -> Result<Subject, String> {
    let (name, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(pattern) => (name, Some(pattern)),
            None => return Err("the bracket is not closed at its end".to_owned()),
        },
    };
    if let Some(rest) = name.strip_prefix("mcp__") {
        return parse_mcp(name, rest, pattern);
    }
    if !is_name(name) {
        return Err(format!("{name:?} is no tool name; write Tool or Tool(pattern)"));
    }
    if let Some(meant) = case_slip(name) {
        return Err(format!("no tool is written {name:?}; did you mean {meant:?}?"));
    }
    let tool = own_name(name).to_owned();
    match pattern {
        None => Ok(Subject::Tool(tool)),
        Some(pattern) if pattern.trim().is_empty() => {
            Err(format!("its pattern is empty; write {name} for every call of it"))
        }
        Some(pattern) => parse_pattern(name, tool, pattern, verdict),
    }
}

fn parse_pattern(
    name: &str,
    tool: String,
    pattern: &str,
    verdict: Verdict,
) -> Result<Subject, String> {
    // What is denied or asked about is compared in its composed form with that of the words.
    let composed = || match verdict {
        Verdict::Allow => Cow::Borrowed(pattern),
        Verdict::Ask | Verdict::Deny => composed(pattern),
    };
    match tool.as_str() {
        own if stands_for("edit", own) || matches!(own, "read" | "grep" | "find" | "ls") => {
            let class = match own {
                "read" => PathClass::Reads,
                "edit" => PathClass::Writes,
                _ => PathClass::Of(tool),
            };
            let Some(rest) = outside(pattern) else {
                return Ok(Subject::Path { class, pattern: pattern.to_owned() });
            };
            match (class, verdict) {
                _ if rest.is_empty() => {
                    Err("nothing stands behind its not; write Edit(not PATH)".to_owned())
                }
                (PathClass::Writes, Verdict::Deny) => {
                    Ok(Subject::Outside { pattern: rest.to_owned() })
                }
                (PathClass::Writes, _) => Err(format!(
                    "`not` only stands in deny rules; write the deny rule Edit(not {rest}), or \
                     Edit({rest}), or Edit(./{pattern}) for a file of that name"
                )),
                _ => Err(format!(
                    "only Edit takes `not`; write the deny rule Edit(not {rest}), or \
                     {name}(./{pattern}) for a file of that name"
                )),
            }
        }
        "bash" | "powershell" => {
            let pattern = CommandPattern::parse(&composed())?;
            Ok(if pattern.is_everything() {
                Subject::Tool(tool)
            } else {
                Subject::Command { tool, pattern }
            })
        }
        "web_fetch" | "web_browser" => parse_domain(name, tool, pattern),
        "agent" | "skill" => {
            Ok(Subject::Named { pattern: CommandPattern::parse(&composed())?, tool })
        }
        _ => Err(match nearest(name, &[]).filter(|_| !is_known(name)) {
            Some(meant) => format!("no tool is named {name:?}; did you mean {meant}({pattern})?"),
            None => format!("{name} takes no pattern; write {name} alone"),
        }),
    }
}

/// What stands behind the `not` of a pattern; none where it has none.
fn outside(pattern: &str) -> Option<&str> {
    let rest = pattern.trim().strip_prefix("not")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

fn parse_domain(name: &str, tool: String, pattern: &str) -> Result<Subject, String> {
    let advice = || format!("write {name}(domain:example.org) or {name}(domain:*.example.org)");
    let host = pattern.trim().strip_prefix("domain:").ok_or_else(advice)?.trim();
    let (host, below) = host.strip_prefix("*.").map_or((host, false), |rest| (rest, true));
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
    if host.is_empty() || !host.chars().all(fits) {
        return Err(advice());
    }
    if !may_be_host(&host, below) {
        return Err(format!("{host:?} is the name of no host; {}", advice()));
    }
    Ok(Subject::Domain { tool, host, below })
}

/// Whether an address may name a host so: labels of letters, an address of four numbers, or one of the
/// newer kind in brackets; never with a port.
fn may_be_host(host: &str, below: bool) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.contains([':', '[', ']']) {
        return !below && bare.parse::<Ipv6Addr>().is_ok();
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(fits);
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|c| c.is_ascii_digit());
    let is_address = host.parse::<Ipv4Addr>().is_ok() && !below;
    host.len() <= 253 && host.split('.').all(is_label) && (!is_number || is_address)
}

fn parse_mcp(name: &str, rest: &str, pattern: Option<&str>) -> Result<Subject, String> {
    let advice = || "write mcp__server, mcp__server__tool, or one of them with * at its end".into();
    if pattern.is_some() {
        return Err(format!("tools of servers take no pattern; write {name:?} alone"));
    }
    let (head, starred) = rest.strip_suffix('*').map_or((rest, false), |head| (head, true));
    if !(head.is_empty() && starred || is_name(head)) {
        return Err(advice());
    }
    Ok(match (starred, head.split_once("__")) {
        (true, _) => Subject::Prefix(format!("mcp__{head}")),
        (false, Some(("", _) | (_, ""))) => return Err(advice()),
        (false, Some(_)) => Subject::Tool(name.to_owned()),
        (false, None) => Subject::Server(head.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses() {
        for host in
            ["a.org", "*.a.org", "a.org.", "localhost", "xn--bcher-kva.de", "10.0.0.1", "[::1]"]
        {
            let text = format!("WebFetch(domain:{host})");
            let rules = Rules::default().with(Verdict::Deny, Scope::User, &text);
            assert_eq!(rules.problems(), [], "{host}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "no tool name"),
            ("Bash(ls", "not closed"),
            ("Bash()", "empty"),
            ("BASH(ls)", "\"Bash\""),
            ("BASH(*)", "\"Bash\""),
            ("Bash( *)", "nothing stands before"),
            ("Bash('' *)", "nothing stands before"),
            ("Bash(* *)", "nothing stands before"),
            ("Edit( **)", "nothing stands before"),
            ("Bash( :*)", "no words stand before"),
            ("Bash(echo 'x)", "quote"),
            ("Deploy(x)", "takes no pattern"),
            ("Todo(x)", "\"TodoWrite\""),
            ("Raed(x)", "did you mean Read(x)?"),
            ("mcp__s__t(x)", "take no pattern"),
            ("mcp__", "mcp__server"),
            ("mcp__s__", "mcp__server"),
            ("WebFetch(example.org)", "domain:"),
            ("WebFetch(domain:example.org:443)", "no host"),
            ("WebFetch(domain:a..org)", "no host"),
            ("WebFetch(domain:10.0.0)", "no host"),
            ("WebFetch(domain:*.10.0.0.1)", "no host"),
            ("WebFetch(domain:b\u{fc}cher.de)", "no host"),
            ("WebFetch(domain:https://a.org)", "domain:"),
            ("WebSearch(domain:a.org)", "takes no pattern"),
            ("TodoWrite(x)", "takes no pattern"),
            ("*", "no tool name"),
            ("Bash(ls) x", "not closed"),
            ("Edit(not src/)", "deny rule Edit(not src/)"),
            ("Write(not src/)", "only Edit takes"),
            ("Read( not src/)", "only Edit takes"),
        ] {
            let rules = Rules::default().with(Verdict::Allow, Scope::User, text);
            assert!(rules.rules().is_empty(), "{text}");
            let problem = rules.problems()[0].to_string();
            assert!(problem.contains(part) && problem.contains(text), "{problem}");
        }
    }
}
