//! Judges scripts, part by part.
//!
//! **Invariant:** a script is allowed only if every one of its commands is. A command is allowed by
//! a rule for its words, because it is read-only, or because the mode allows everything that it
//! does to files. What a redirect does is never part of that.
//!
//! **Does not know:** what denies or asks: that is checked before, in every reading of the text.

use std::collections::{HashMap, HashSet};

use haft_text::names::composed;
use haft_types::{Access, Effect, HostPath, Mode, Plan, Target};

use super::{Judged, Placed, Remember, Ruling, by_place_or_mode, doing, is_tool, short};
use crate::{
    Ask, Policy, Rule, Verdict,
    command::{
        parts::Parts,
        script::{Around, Part, Script, facts, unsure_paths},
    },
    rules::{
        command_pattern::{CommandPattern, GAP},
        rule::{PathClass, Subject},
    },
};

/// Why a script is allowed.
#[derive(Default)]
pub(crate) struct Allowed<'p> {
    /// The first rule that allows a part.
    pub rule: Option<&'p Rule>,
    /// Whether it is because all of it only looks.
    pub looks: bool,
    /// What it does to files that the rules for its commands allow with them.
    pub covered: Vec<Effect>,
}

/// Why it is not known what a script does, where all of it counts.
fn unseen<'a>(ask: &Ask<'_>, script: &'a Script) -> Option<&'a str> {
    if let Some(fault) = &script.fault {
        return Some(fault);
    }
    let is_unsure = ask.plan.effects.contains(&unsure_paths());
    (is_unsure && ask.held_back(script).is_none())
        .then_some("it starts behind a link, or goes through more files than are looked at first")
}

/// Why a part may do anything whose program is one of the workspace.
fn foreign(part: &Part) -> String {
    let name = part.program.as_deref().unwrap_or_default();
    format!("{name} is a program of the workspace here, which may do anything")
}

impl Policy {
    /// Whether every command of a script is allowed; if not, the question about the first that is
    /// not.
    pub(crate) fn scripts(
        &self,
        ask: &Ask<'_>,
        Judged { effect, .. }: &Judged<'_>,
        script: &Script,
        all: &[Judged<'_>],
    ) -> Result<Allowed<'_>, Ruling> {
        let Target::Command { text, .. } = &effect.target else { return Ok(Allowed::default()) };
        if let Some(rule) = self.rule_of(ask, |pattern| pattern.allows(text)) {
            let covered = script.parts.iter().flat_map(|part| part.effects.clone()).collect();
            return Ok(Allowed { rule: Some(rule), looks: false, covered });
        }
        let inside = ask.inside().is_some();
        if let Some(why) = unseen(ask, script).filter(|_| !inside) {
            return Err(unallowed(&doing(effect, None, ask), why));
        }
        let mut allowed = Allowed { looks: script.read_only, ..Allowed::default() };
        let (mut ruled, mut all_ruled, mut uncovered) = (false, true, HashSet::new());
        for (at, part) in script.parts.iter().enumerate() {
            if part.connects && !inside {
                return Err(about(part, script, "a redirect of it opens a connection"));
            }
            let rule = self
                .rule_of(ask, |pattern| is_permitted(part, pattern))
                .or_else(|| self.rule_of_start(ask, part));
            // Who allows a wrapper allows what it runs.
            ruled = rule.is_some() || (ruled && part.is_wrapped);
            if ruled {
                allowed.rule = allowed.rule.or(rule);
                if part.redirects_open && !inside {
                    let why = "where a redirect of it leads is known only when it runs";
                    return Err(about(part, script, why));
                }
                allowed.covered.extend_from_slice(&part.effects[part.redirected..]);
                uncovered.extend(&part.effects[..part.redirected]);
                continue;
            }
            all_ruled = false;
            let is_chore = || self.does_chore(ask, part, &script.parts[..at]);
            if (self.edits(ask, part, all) || is_chore()) && !part.is_replaced(ask.plan) {
                allowed.covered.extend_from_slice(&part.effects[part.redirected..]);
                uncovered.extend(&part.effects[..part.redirected]);
                continue;
            }
            uncovered.extend(&part.effects);
            if !inside && !script.read_only && part.is_replaced(ask.plan) {
                return Err(about(part, script, &foreign(part)));
            }
            if let Some(why) = left(part, script, ask)
                && !self.files_are_allowed(ask, part, all)
            {
                return Err(about(part, script, &why));
            }
        }
        // Who allows all of it by its words lets it run as it is.
        allowed.looks &= !all_ruled || script.parts.is_empty();
        allowed.covered.retain(|effect| !uncovered.contains(effect));
        Ok(allowed)
    }

    /// Whether a command does no more than what place, mode and rules allow it to do to files.
    fn files_are_allowed(&self, ask: &Ask<'_>, part: &Part, judged: &[Judged<'_>]) -> bool {
        part.is_tame
            && part.open.is_none()
            && part.effects.iter().all(|effect| {
                // What was looked up may have become a file there that was a folder here.
                let is_it = |one: &&Judged<'_>| {
                    one.effect.path() == effect.path() && one.effect.access == effect.access
                };
                let one = judged.iter().find(is_it);
                one.is_some_and(|one| {
                    by_place_or_mode(ask, one) || self.rule_for_effect(ask, one).is_some()
                })
            })
    }

    /// The commands of a call's script, each with what would be decided about it alone; `real` of the
    /// whole call counts.
    pub fn decide_parts(&self, ask: &Ask<'_>) -> (Option<Script>, Vec<(Part, Ruling)>) {
        let mut effects = ask.plan.effects.iter();
        let found = effects.find_map(|effect| {
            Some((effect, Script::of_effect(effect, ask.plan, &self.anchors.home)?))
        });
        let Some((whole, script)) = found else { return (None, Vec::new()) };
        let Target::Command { fresh_in, .. } = &whole.target else { return (None, Vec::new()) };
        // Where each path of the plan stands in it.
        let mut places: HashMap<&HostPath, usize> = HashMap::new();
        for (at, effect) in ask.plan.effects.iter().enumerate() {
            if let Some(path) = effect.path() {
                places.entry(path).or_insert(at);
            }
        }
        let around = Around::of(ask.plan).effect();
        let judge = |part: &Part| {
            let access = if part.read_only { Access::Observe } else { Access::Destroy };
            let target = Target::Command { text: part.text.clone(), fresh_in: fresh_in.clone() };
            let mut plan = Plan { effects: vec![Effect { access, target }], ..ask.plan.clone() };
            let mut real = vec![None];
            for effect in &part.effects {
                let at = effect.path().and_then(|path| places.get(path).copied());
                let settled = at.and_then(|at| ask.plan.effects.get(at));
                plan.effects.push(settled.unwrap_or(effect).clone());
                real.push(at.and_then(|at| ask.real.get(at).cloned()).flatten());
            }
            plan.effects.push(around.clone());
            plan.effects.extend(facts(ask.plan).cloned());
            real.resize(plan.effects.len(), None);
            self.decide(&Ask { plan: &plan, real: &real, ..*ask })
        };
        let parts = script.parts.iter().map(|part| (part.clone(), judge(part))).collect();
        (Some(script), parts)
    }

    /// The question about a script that works on files which are not known, where rules name some.
    /// A rule that allows just this command has answered it.
    pub(crate) fn unnamed(
        &self,
        ask: &Ask<'_>,
        Judged { effect, .. }: &Judged<'_>,
        script: &Script,
        judged: &[Judged<'_>],
    ) -> Option<Ruling> {
        let Target::Command { text, .. } = &effect.target else { return None };
        let open = script.parts.iter().filter_map(|part| part.open).max();
        let open = if script.fault.is_some() { Some(Access::Destroy) } else { open }?;
        let veil = ask.behind(judged);
        let names = |placed: &&Placed| {
            let class = match &placed.rule.subject {
                Subject::Path { class, .. } => Some(class),
                _ => None,
            };
            let meant = match class {
                Some(PathClass::Reads) => true,
                Some(PathClass::Writes) => open != Access::Observe,
                _ => false,
            };
            let walled = ask.inside().is_some() && Self::is_walled(placed);
            let veiled = veil.is_some_and(|veil| Self::is_veiled(placed, veil));
            meant && placed.rule.verdict != Verdict::Allow && !walled && !veiled
        };
        let placed = self.rules.iter().find(names)?;
        if self.rule_of(ask, |pattern| pattern.is_literal() && pattern.allows(text)).is_some() {
            return None;
        }
        let (what, rule) = (doing(effect, None, ask), &placed.rule);
        let why = script.fault.as_deref().unwrap_or("it is known only when it runs");
        Some(Ruling::ask(Remember::Session, Some(rule), &what, |what| {
            let (verdict, text) = (rule.verdict, &rule.text);
            format!(
                "whether {what} touches what the {verdict} rule {text} names cannot be told: {why}"
            )
        }))
    }

    /// The question about a command that may be what a rule names, once its words are known.
    pub(crate) fn half_known(&self, parts: &Parts, what: &str, way: &str) -> Option<Ruling> {
        let may_be = |placed: &&Placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(&placed.rule.subject,
                    Subject::Command { pattern, .. } if pattern.may_be(parts, usize::MAX))
        };
        let rule = &self.rules.iter().find(may_be)?.rule;
        Some(Ruling::ask(Remember::Session, Some(rule), what, |what| {
            format!(
                "{what} may be what the {} rule {} ({}) is about, once all of its words are known; \
                 write them out{way}",
                rule.verdict, rule.text, rule.scope
            )
        }))
    }

    /// The rule that allows a command whatever its words are that only the shell will know; none where
    /// one may be among them that denies or asks, or that names what nobody was asked about.
    fn rule_of_start(&self, ask: &Ask<'_>, part: &Part) -> Option<&Rule> {
        if part.words.is_some() || part.open.is_some() || !is_free(part) {
            return None;
        }
        let first: Vec<&str> = part.written.iter().map_while(Option::as_deref).collect();
        let start = first.join(&GAP.to_string());
        let same = composed(&start);
        let bare = same.rsplit_once('/').filter(|(head, _)| !head.contains(GAP));
        let forms = [&*same, bare.map_or(&*same, |(_, name)| name)];
        let may_mean = |placed: &&Placed| match &placed.rule.subject {
            Subject::Command { pattern, .. } => {
                placed.rule.verdict != Verdict::Allow
                    && forms.iter().any(|form| pattern.may_take_more(form))
            }
            _ => false,
        };
        if self.rules.iter().chain(&self.restricted).any(|placed| may_mean(&placed)) {
            return None;
        }
        self.rule_of(ask, |pattern| pattern.permits_more(&part.set, &start))
    }

    /// The first rule that allows commands of the tool that it takes.
    pub(crate) fn rule_of(
        &self,
        ask: &Ask<'_>,
        takes: impl Fn(&CommandPattern) -> bool,
    ) -> Option<&Rule> {
        let allows = |placed: &&Placed| matches!(&placed.rule.subject, Subject::Command { tool, pattern } if is_tool(ask.tool, tool) && takes(pattern));
        self.with(Verdict::Allow).find(allows).map(|placed| &placed.rule)
    }
}

/// Whether a rule of this pattern allows a part by its words, with what is set for it.
fn is_permitted(part: &Part, pattern: &CommandPattern) -> bool {
    let words = part.words.as_ref().filter(|words| !words.is_empty());
    words.is_some_and(|words| pattern.permits(&part.set, &words.join(&GAP.to_string())))
}

/// Programs that run what the project says: what they are told names tests and targets, and whatever
/// else it names, what they run could reach by itself.
const RUNNERS: &[&str] = &[
    "bazel", "cargo", "ctest", "go", "gradle", "jest", "just", "make", "mvn", "npm", "pnpm",
    "pytest", "tox", "vitest", "yarn",
];

/// Programs that make programs, beside [`RUNNERS`].
const COMPILERS: &[&str] = &[
    "ant", "c++", "cc", "clang", "clang++", "cmake", "g++", "gcc", "gnumake", "javac", "meson",
    "ninja", "rustc", "zig",
];

/// Reports whether a plan runs what builds or tests a project, as far as its commands say that.
pub fn is_build(plan: &Plan, home: &HostPath) -> bool {
    let is_one = |part: &Part| {
        let program = part.program.as_deref().unwrap_or_default();
        RUNNERS.contains(&program) || COMPILERS.contains(&program)
    };
    let mut scripts = plan.effects.iter().filter_map(|one| Script::of_effect(one, plan, home));
    scripts.any(|script| script.parts.iter().any(is_one))
}

/// Whether words of a part that are not known cannot lead it to files that it would not reach else.
fn is_free(part: &Part) -> bool {
    let known = |at: usize| part.written.get(at).and_then(Option::as_deref);
    match part.program.as_deref() {
        Some("git") => {
            // Messages, each in one word.
            let is_text = |at: usize| matches!(known(at - 1), Some("-m" | "-am" | "--message"));
            let mut open = (1..part.written.len()).filter(|at| known(*at).is_none());
            !part.splits && matches!(known(1), Some("commit" | "tag")) && open.all(is_text)
        }
        Some(program) => RUNNERS.contains(&program) && !part.written.is_empty(),
        None => false,
    }
}

/// The question about what no rule allows.
fn unallowed(what: &str, why: &str) -> Ruling {
    let reason = |what: &str| format!("no rule allows {what}: {why}");
    Ruling::ask(Remember::Saved, None, what, reason)
}

/// The question about one command of a script.
fn about(part: &Part, script: &Script, why: &str) -> Ruling {
    let what = format!("running {}", short(part.text.trim()));
    if script.parts.len() == 1 {
        return unallowed(&what, why);
    }
    // Which of them it is has to be said.
    let reason = |_: &str| format!("no rule allows {what}: {why}");
    Ruling::ask(Remember::Saved, None, "", reason)
}

/// Why a part without a rule is not allowed by what it does; its paths are judged by themselves.
fn left(part: &Part, script: &Script, ask: &Ask<'_>) -> Option<String> {
    if ask.inside().is_some() {
        return None;
    }
    let is_held = part.open == Some(Access::Observe) && ask.held_back(script).is_some();
    if part.open.is_some() && !is_held {
        let why = "which files it works on is known only when it runs";
        let does = Some(&part.why).filter(|_| !part.read_only);
        return Some(does.map_or_else(|| why.to_owned(), |does| format!("{does}; {why}")));
    }
    let allowed = part.read_only || part.passes || (ask.mode == Mode::AcceptEdits && part.is_tame);
    (!allowed).then(|| part.why.clone())
}
