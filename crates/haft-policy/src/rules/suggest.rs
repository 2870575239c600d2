//! The rules that a person is offered to save. They are literal, and exactly for what was asked.
//! For commands whose first words determine the task, they cover everything that begins with these
//! words.
//!
//! **Invariant:** suggested rules allow the call that they were made for. No pattern character of a
//! name becomes a pattern.

use haft_types::{Access, Effect, HostPath, Origin, Plan, Style, Target, ToolSpec};

use super::{command_pattern::plain_words, glob::escape, prefix};
use crate::{Ask, Grants, Mode, Part, Policy, Rules, Scope, Verdict};

impl Policy {
    /// The text of the allow rule for just this plan; none where no literal rule says just that.
    pub fn rule_for(&self, tool: &ToolSpec, plan: &Plan) -> Option<String> {
        if let Origin::Mcp { .. } = tool.origin {
            return Some(tool.name.to_string());
        }
        let (first, rest) = plan.effects.split_first()?;
        match &first.target {
            Target::Path { path, .. } | Target::Tree { root: path } => {
                let same = rest.iter().all(|effect| effect.target == first.target);
                let writes = plan.access() != Access::Observe;
                let tree = matches!(first.target, Target::Tree { .. });
                let pattern = self.pattern(path, tree).filter(|_| same)?;
                Some(format!("{}({pattern})", if writes { "Edit" } else { "Read" }))
            }
            Target::Command { text, fresh_in } if rest.is_empty() || fresh_in.is_some() => {
                Some(literal(shell(tool)?, &plain_words(text)?))
            }
            Target::Net { host } if rest.is_empty() && tool.name == "web_fetch" => {
                Some(format!("WebFetch(domain:{host})"))
            }
            // Its host is the engine that the person set.
            Target::Net { .. } if rest.is_empty() && tool.name == "web_search" => {
                Some("WebSearch".to_owned())
            }
            _ => None,
        }
    }

    /// The rules that together allow a call from now on; empty where no rules do. They are shown before
    /// they are saved.
    pub fn rules_for(&self, ask: &Ask<'_>) -> Vec<String> {
        let rules = self.command_rules(ask).unwrap_or_else(|| self.place_rules(ask));
        if !rules.is_empty() && self.suffice(ask, &rules) { rules } else { Vec::new() }
    }

    /// Whether a call goes on with these rules, today and on another day.
    fn suffice(&self, ask: &Ask<'_>, rules: &[String]) -> bool {
        let mut added = Rules::default();
        for rule in rules {
            added.add(Verdict::Allow, Scope::Local, rule);
        }
        let mut policy = self.clone();
        policy.extend(&added);
        let grants = Grants::default();
        let goes_on = |mode| {
            let ruling = policy.decide(&Ask { mode, grants: &grants, ..*ask });
            ruling.verdict == Verdict::Allow
        };
        // Nobody is asked in the other one, whatever is allowed.
        goes_on(Mode::Ask) && (ask.mode == Mode::DontAsk || goes_on(ask.mode))
    }

    /// One for each effect by its place: an allowance needs the written and the real form.
    fn place_rules(&self, ask: &Ask<'_>) -> Vec<String> {
        let mut really = ask.plan.clone();
        for (effect, real) in really.effects.iter_mut().zip(ask.real) {
            if let (Target::Path { path, .. } | Target::Tree { root: path }, Some(real)) =
                (&mut effect.target, real)
            {
                path.clone_from(real);
            }
        }
        let (Some(written), Some(really)) =
            (self.rule_for(ask.tool, ask.plan), self.rule_for(ask.tool, &really))
        else {
            return Vec::new();
        };
        if written == really { vec![written] } else { vec![written, really] }
    }

    /// The rules that let a confined call change what it names outside of the workspace, by real paths.
    pub fn rules_beyond(
        &self,
        plan: &Plan,
        real: &[Option<HostPath>],
        is_inside: impl Fn(&HostPath) -> bool,
    ) -> Vec<String> {
        let is_tree = |effect: &Effect| matches!(effect.target, Target::Tree { .. });
        let changed = |effect: &Effect| effect.access != Access::Observe;
        let both = || plan.effects.iter().zip(real).filter(|(effect, _)| changed(effect));
        let trees: Vec<&HostPath> =
            both().filter(|(effect, _)| is_tree(effect)).filter_map(|(_, r)| r.as_ref()).collect();
        let of = |(effect, real): (&Effect, &Option<HostPath>)| {
            let tree = is_tree(effect);
            // What holds all of a folder holds what is in there.
            let held = |path: &HostPath| !tree && trees.iter().any(|tree| path.is_within(tree));
            let path = real.as_ref().filter(|path| !is_inside(path) && !held(path))?;
            Some(format!("Edit({})", self.pattern(path, tree)?))
        };
        let mut rules: Vec<String> = both().filter_map(of).collect();
        rules.dedup();
        rules
    }

    /// One for each command of a shell that would be asked about alone, and for a wrapper alone what it
    /// runs counts; none where the call is no command.
    fn command_rules(&self, ask: &Ask<'_>) -> Option<Vec<String>> {
        let tool = shell(ask.tool)?;
        let command = |effect: &Effect| match &effect.target {
            Target::Command { text, .. } => Some(text.clone()),
            _ => None,
        };
        let text = ask.plan.effects.iter().find_map(command)?;
        let (script, judged) = self.decide_parts(ask);
        if script.is_none_or(|script| script.fault.is_some()) {
            return Some(
                plain_words(&text).map(|words| offered(tool, &words)).into_iter().collect(),
            );
        }
        let mut rules: Vec<String> = Vec::new();
        let mut is_ruled = false;
        for (part, ruling) in &judged {
            // Who allows a wrapper allows what it runs.
            if is_ruled && part.is_wrapped {
                // Today's words do not say what it changes tomorrow: `xargs rm`.
                if part.open > Some(Access::Observe) {
                    return Some(Vec::new());
                }
                continue;
            }
            is_ruled = !part.passes && ruling.verdict != Verdict::Allow;
            if is_ruled {
                let Some(rule) = rule_of(tool, part) else { return Some(Vec::new()) };
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        Some(if rules.len() <= MOST { rules } else { Vec::new() })
    }

    fn pattern(&self, path: &HostPath, tree: bool) -> Option<String> {
        let (start, base) = if path.is_within(&self.anchors.project) {
            ("/".to_owned(), self.anchors.project.clone())
        } else if path.is_within(&self.anchors.home) {
            ("~/".to_owned(), self.anchors.home.clone())
        } else {
            let mut root = path.clone();
            while let Some(parent) = root.parent() {
                root = parent;
            }
            match root.style() {
                Style::Posix => ("//".to_owned(), root),
                Style::Windows => (format!("//{}/", root.as_str()?.get(..2)?), root),
            }
        };
        let below = path.relative_to(&base)?;
        let mut names = Vec::new();
        for name in below.split(|&b| b == b'/' || (b == b'\\' && path.style() == Style::Windows)) {
            names.push(escape(std::str::from_utf8(name).ok()?));
        }
        let joined = names.join("/");
        match (joined.is_empty(), tree) {
            (true, false) => None,
            (true, true) => Some(format!("{start}**")),
            (false, true) => Some(format!("{start}{joined}/**")),
            (false, false) => Some(format!("{start}{joined}")),
        }
    }
}

/// Most rules that are offered for one call.
const MOST: usize = 3;

/// How rules name a tool that runs commands of a shell.
fn shell(tool: &ToolSpec) -> Option<&'static str> {
    match &*tool.name {
        "bash" => Some("Bash"),
        "powershell" => Some("PowerShell"),
        _ => None,
    }
}

/// The rule for one command of a script, with what is set for it; none where no words say which it is.
fn rule_of(tool: &str, part: &Part) -> Option<String> {
    let counts = |(name, value): &&(String, Option<String>)| {
        !haft_shell::is_harmless(name, value.as_deref())
    };
    let mut words = Vec::new();
    for (name, value) in part.set.iter().filter(counts) {
        words.push(format!("{name}={}", value.as_ref()?));
    }
    let own = match &part.words {
        Some(own) => own.clone(),
        None => part.written.iter().map_while(Clone::clone).collect(),
    };
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let start = prefix::of(&own);
    // Where not all words are known there is no rule for just these.
    let count = start.or_else(|| part.words.as_ref().map(Vec::len)).filter(|count| *count > 0)?;
    words.extend(own[..count].iter().map(|word| (*word).to_owned()));
    Some(text(tool, &words, start.is_some()))
}

/// The rule for a command that stands alone: for all that begins as it does, or just for it.
fn offered(tool: &str, words: &[String]) -> String {
    let own: Vec<&str> = words.iter().map(String::as_str).collect();
    match prefix::of(&own) {
        Some(count) => text(tool, &words[..count], true),
        None => literal(tool, words),
    }
}

/// The rule for just these words.
fn literal(tool: &str, words: &[String]) -> String {
    text(tool, words, false)
}

fn text(tool: &str, words: &[String], is_start: bool) -> String {
    let words: Vec<String> = words.iter().map(|word| escape_word(word)).collect();
    format!("{tool}({}{})", words.join(" "), if is_start { ":*" } else { "" })
}

/// Escapes what is no plain character, so that a pattern takes the word as it is.
fn escape_word(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    let mut escaped = String::with_capacity(word.len());
    for c in word.chars() {
        if !(c.is_alphanumeric() || "_./:=@%+,-".contains(c)) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
