//! The rule that a person is offered to save: literal, and exactly for what was asked; of a few
//! commands that only tell, for all that begins as they do.
//!
//! **Invariant:** an offered rule allows the call that it was made for, and no pattern character
//! of a name becomes a pattern.

use haft_types::{Access, Effect, HostPath, Origin, Plan, Style, Target, ToolSpec};

use crate::{Part, Policy, Script, command::plain_words, glob::escape};

impl Policy {
    /// The text of the allow rule that would let this plan go on from now on; none where no
    /// literal rule says just that. It is shown before it is saved.
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
                let name = match &*tool.name {
                    "bash" => "Bash",
                    "powershell" => "PowerShell",
                    _ => return None,
                };
                Some(literal(name, &plain_words(text)?))
            }
            Target::Net { host } if rest.is_empty() && tool.name == "web_fetch" => {
                Some(format!("WebFetch(domain:{host})"))
            }
            _ => None,
        }
    }

    /// The rules that together allow a call whose paths really lie at `real`, one for each effect:
    /// an allowance needs the written and the real form. Empty where no rules can say it.
    pub fn rules_for(
        &self,
        tool: &ToolSpec,
        plan: &Plan,
        real: &[Option<HostPath>],
    ) -> Vec<String> {
        if let Some(rules) = self.script_rules(plan) {
            return rules;
        }
        let mut really = plan.clone();
        for (effect, real) in really.effects.iter_mut().zip(real) {
            if let (Target::Path { path, .. } | Target::Tree { root: path }, Some(real)) =
                (&mut effect.target, real)
            {
                path.clone_from(real);
            }
        }
        let (Some(written), Some(really)) =
            (self.rule_for(tool, plan), self.rule_for(tool, &really))
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

    /// The rules for the commands of a script that are more than one; none for all else.
    fn script_rules(&self, plan: &Plan) -> Option<Vec<String>> {
        let of = |effect| Script::of_effect(effect, plan, &self.anchors.home);
        let script = plan.effects.iter().find_map(of)?;
        let asked: Vec<&Part> =
            script.parts.iter().filter(|part| !(part.read_only || part.is_wrapped)).collect();
        // What a redirect writes is no matter of a rule for words.
        let fits = |part: &&Part| {
            let mut redirected = part.effects[..part.redirected].iter();
            part.joined().is_some() && redirected.all(|effect| effect.access == Access::Observe)
        };
        if script.parts.len() < 2 || script.fault.is_some() {
            return None;
        }
        let is_few = !asked.is_empty() && asked.len() <= MOST;
        let words = asked.iter().filter_map(|part| part.words.as_deref());
        let rules = words.map(|words| literal("Bash", words)).collect();
        Some(if is_few && asked.iter().all(fits) { rules } else { Vec::new() })
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

/// Commands that tell of what runs or is used, whatever stands behind these words.
const TELLING: &[[&str; 2]] = &[["docker", "ps"], ["docker", "logs"], ["cargo", "tree"]];

/// The rule for just these words, or for all that begins as they do where that only tells.
fn literal(tool: &str, words: &[String]) -> String {
    let is_start =
        |start: &&[&str; 2]| words.len() > 1 && start.iter().zip(words).all(|(a, b)| a == b);
    if let Some(start) = TELLING.iter().find(is_start) {
        return format!("{tool}({}:*)", start.join(" "));
    }
    let words: Vec<String> = words.iter().map(|word| escape_word(word)).collect();
    format!("{tool}({})", words.join(" "))
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
