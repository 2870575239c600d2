//! Judges one call: returns allow, ask or deny, with the reason.
//!
//! **Invariant:** the order is denials, plan mode, protected places, explicit questions, allowances
//! (by place, mode or rule), and last the question. What is denied or asked early is never allowed
//! later. Only a grant of a person, and mode `dont-ask`, change a question.
//!
//! **Does not know:** what a command does: until a grammar reads it, a command is its text. Nor
//! what a call that may do anything does: its host applies the patterns, through the filters of
//! [`Policy`].

pub(crate) mod accept_edits;
mod anchors;
pub(crate) mod chores;
mod doing;
pub(crate) mod expanded_args;
pub(crate) mod filter;
pub(crate) mod grants;
pub(crate) mod home_removal;
pub(crate) mod outside;
pub(crate) mod planning;
pub(crate) mod restricted;
pub(crate) mod script;
pub(crate) mod self_kill;

use std::{borrow::Cow, cell::OnceCell};

use haft_text::names::composed;
use haft_types::{
    Access, AgentPath, Constraint, Effect, HostPath, Origin, Place, Plan, Target, ToolSpec,
};
use serde_json::Value;

pub use self::anchors::Anchors;
pub(crate) use self::doing::{doing, short};
use self::{
    chores::{is_own_file, why},
    self_kill::OwnProcesses,
};
use crate::{
    Grants, Mode, Rule, RuleProblem, Rules, Verdict,
    command::{named::said::said, parts::Parts, script::Script},
    places::protected::{CREDENTIALS, find, protected},
    rules::{
        glob::PathGlob,
        rule::{PathClass, Subject},
        tool_aliases::is_under,
    },
    sandbox::{
        read_mask::ReadMask,
        scope::{Confinement, SandboxScope},
    },
};

/// One call that is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// The arguments after repair.
    pub input: &'a Value,
    /// What it would do.
    pub plan: &'a Plan,
    /// For each effect of the plan the path with all links resolved (of a missing file: its
    /// resolved folder and its name); none for effects without a path, and where a path could
    /// not be resolved, which then is allowed by nothing but a tool's own name.
    pub real: &'a [Option<HostPath>],
    /// Who makes the call.
    pub agent: &'a AgentPath,
    /// How much is asked.
    pub mode: Mode,
    /// Where it would run.
    pub place: &'a Place,
    /// What was allowed for the session.
    pub grants: &'a Grants,
    /// What its programs could reach in the sandbox; none where no sandbox holds.
    pub walls: Option<&'a SandboxScope>,
    /// What hides keys from its programs where they only look; none where no sandbox holds.
    pub veil: Option<&'a ReadMask>,
}

/// For how long a person's yes may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remember {
    /// For this one call.
    Never,
    /// For this very call during the session.
    Session,
    /// Also as a saved rule, where [`Policy::rule_for`] knows one.
    Saved,
}

/// What was decided about a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The decision.
    pub verdict: Verdict,
    /// The text of the rule that decided; none where it was the mode, the place or a table.
    pub rule: Option<String>,
    /// Why, in one sentence without its full stop.
    pub reason: String,
    /// The same for whoever sees what the call does: it is called `this`.
    pub brief: String,
    /// For how long a yes may count, where the decision is to ask.
    pub remember: Remember,
    /// What to do instead of what is denied, in sentences, where that is known.
    pub instead: Option<String>,
    /// Whether it is allowed because its command only looks: it is to run so that it can do no
    /// more.
    pub looks: bool,
    /// Whether it only reads files that are known when it runs: keys are to be hidden from it.
    pub hides: bool,
    /// Whether it is a question only because no rule speaks of a call of which all is known: a hook
    /// may answer that as well as a person.
    pub open: bool,
}

impl Ruling {
    pub(crate) fn new(
        verdict: Verdict,
        rule: Option<&Rule>,
        what: &str,
        reason: impl Fn(&str) -> String,
    ) -> Self {
        let rule = rule.map(|rule| rule.text.clone());
        let (reason, brief) = (reason(what), reason("this"));
        let remember = Remember::Never;
        let (instead, looks, hides, open) = Default::default();
        Self { verdict, rule, reason, brief, remember, instead, looks, hides, open }
    }

    pub(crate) fn ask(
        remember: Remember,
        rule: Option<&Rule>,
        what: &str,
        reason: impl Fn(&str) -> String,
    ) -> Self {
        Self { remember, ..Self::new(Verdict::Ask, rule, what, reason) }
    }

    /// The same with more said of its reason.
    pub(crate) fn because(self, more: impl Fn(&str) -> String) -> Self {
        Self { reason: more(&self.reason), brief: more(&self.brief), ..self }
    }
}

/// Rules at their places: what judges the calls of a session on one host.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) anchors: Anchors,
    pub(crate) rules: Vec<Placed>,
    /// What is asked about in every mode.
    pub(crate) restricted: Vec<Placed>,
    pub(crate) problems: Vec<RuleProblem>,
    pub(crate) own: OwnProcesses,
    pub(crate) sandbox: Confinement,
    /// What the person forbade in messages; its rules are among the others.
    pub(crate) held: Vec<Constraint>,
    /// The file that a plan is written to, with all links resolved.
    pub(crate) plan_file: Option<HostPath>,
}

/// A rule with its path patterns compiled.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) rule: Rule,
    pub(crate) globs: Vec<PathGlob>,
}

/// An effect with what several rules need to know about it.
pub(crate) struct Judged<'a> {
    pub(crate) effect: &'a Effect,
    pub(crate) real: Option<&'a HostPath>,
    pub(crate) parts: Option<Parts>,
    /// What a new shell would run.
    pub(crate) script: Option<Script>,
    /// The same as `parts`, also where no rule is about commands, once it was wanted.
    rough: OnceCell<Parts>,
}

impl Judged<'_> {
    /// What a text runs and may run, read generously.
    pub(crate) fn rough(&self, text: &str) -> &Parts {
        self.parts.as_ref().unwrap_or_else(|| self.rough.get_or_init(|| Parts::of(&composed(text))))
    }
}

impl Policy {
    /// Puts rules at their places.
    pub fn new(rules: &Rules, anchors: Anchors) -> Self {
        let mut placed = Vec::with_capacity(rules.rules.len());
        let mut problems = rules.problems.clone();
        for rule in &rules.rules {
            let (class, pattern, generous) = match &rule.subject {
                Subject::Path { class, pattern } => {
                    (class, pattern, rule.verdict != Verdict::Allow)
                }
                // What it leaves free is read as strictly as an allowance.
                Subject::Outside { pattern } => (&PathClass::Writes, pattern, false),
                _ => {
                    placed.push(Placed { rule: rule.clone(), globs: Vec::new() });
                    continue;
                }
            };
            match PathGlob::compile(pattern, &anchors, generous) {
                Ok(globs) => placed.push(Placed { rule: rule.clone(), globs }),
                Err(problem) => problems.push(RuleProblem {
                    verdict: rule.verdict,
                    scope: rule.scope,
                    text: rule.text.chars().take(200).collect(),
                    problem,
                    covered: None,
                    tool: Some(match class {
                        PathClass::Reads => "read".to_owned(),
                        PathClass::Writes => "edit".to_owned(),
                        PathClass::Of(tool) => tool.clone(),
                    }),
                }),
            }
        }
        let (own, sandbox) = (OwnProcesses::default(), Confinement::default());
        let (restricted, held, plan_file) = Default::default();
        Self { anchors, rules: placed, restricted, problems, own, sandbox, held, plan_file }
    }

    /// Adds rules at the same places, such as one that a person has just allowed.
    pub fn extend(&mut self, rules: &Rules) {
        let more = Self::new(rules, self.anchors.clone());
        self.rules.extend(more.rules);
        self.problems.extend(more.problems);
    }

    /// Where its patterns start.
    pub const fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Reports whether a path belongs to haft's own state.
    pub fn is_own(&self, path: &HostPath) -> bool {
        self.anchors.state.iter().any(|state| path.is_within(state))
    }

    /// Everything that is wrong with the rules, for people.
    pub fn problems(&self) -> &[RuleProblem] {
        &self.problems
    }

    /// Reports whether a rule denies the tool as a whole, so that it is not shown at all.
    pub fn hides(&self, tool: &ToolSpec) -> bool {
        self.with(Verdict::Deny).any(|placed| match &placed.rule.subject {
            Subject::Tool(name) if is_under(tool, name) => true,
            subject => names_tool(subject, tool, true),
        })
    }

    /// The same, where no command may end these processes.
    #[must_use]
    pub fn sparing(self, own: OwnProcesses) -> Self {
        Self { own, ..self }
    }

    /// Judges one call.
    pub fn decide(&self, ask: &Ask<'_>) -> Ruling {
        let judged = self.judged(ask);
        let forbidden = self.ruled(ask, &judged, Verdict::Deny);
        let forbidden = forbidden.or_else(|| self.fatal(&judged));
        let forbidden = forbidden.or_else(|| self.kept_inside(ask));
        if let Some(ruling) = forbidden.or_else(|| self.unescaped(ask)) {
            return ruling;
        }
        if let Some(ruling) = self.planned(ask, &judged) {
            return ruling;
        }
        let question = Self::endless(ask, &judged)
            .or_else(|| self.protected(ask, &judged))
            .or_else(|| self.misread(ask, &judged))
            .or_else(|| self.ruled(ask, &judged, Verdict::Ask))
            .or_else(|| self.unheld(ask, &judged))
            .or_else(|| self.restricted(ask, &judged))
            .or_else(|| Self::discarded(ask, &judged))
            // Whatever else is asked about: whoever says yes lets it out, this once.
            .map(|question| ask.also_leaving(question))
            .or_else(|| ask.leaving(&self.sandbox))
            .or_else(|| self.uncertain(ask, &judged));
        match question.map_or_else(|| self.allowed(ask, &judged), Err) {
            // What is behind the veil without a question stays there.
            Ok(ruling) => {
                let looks = ruling.looks || self.would_ask(ask, &judged);
                Ruling { looks, hides: ask.needs_masked_keys(&judged), ..ruling }
            }
            Err(question) => settle(question, ask),
        }
    }

    pub(crate) fn judged<'a>(&self, ask: &Ask<'a>) -> Vec<Judged<'a>> {
        let looks = self.rules.iter().any(|placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(placed.rule.subject, Subject::Command { .. })
        });
        let judge = |(index, effect): (usize, &'a Effect)| Judged {
            effect,
            real: ask.real.get(index).and_then(Option::as_ref),
            parts: match &effect.target {
                Target::Command { text, .. } if looks => Some(Parts::of(&composed(text))),
                _ => None,
            },
            script: Script::of_effect(effect, ask.plan, &self.anchors.home),
            rough: OnceCell::new(),
        };
        ask.plan.effects.iter().enumerate().map(judge).collect()
    }

    pub(crate) fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Placed> {
        self.rules.iter().filter(move |placed| placed.rule.verdict == verdict)
    }

    /// The first deny or ask rule that touches the call.
    pub(crate) fn ruled(
        &self,
        ask: &Ask<'_>,
        judged: &[Judged<'_>],
        verdict: Verdict,
    ) -> Option<Ruling> {
        for placed in self.with(verdict) {
            let rule = &placed.rule;
            let touched = judged.iter().find(|j| touches(placed, j, ask));
            let what = match touched {
                Some(judged) => doing(judged.effect, judged.real, ask),
                None if names_call(&rule.subject, ask, true) => {
                    format!("calls of {}", ask.tool.name)
                }
                None => match judged.iter().find_map(|judged| said(placed, judged, ask)) {
                    Some(path) => format!("reading {path}"),
                    None => continue,
                },
            };
            return Some(Ruling::new(verdict, Some(rule), &what, |what| match verdict {
                Verdict::Deny => {
                    let (text, scope, said) = (&rule.text, rule.scope, rule.quoted());
                    format!("the deny rule {text} ({scope}) forbids {what}{said}")
                }
                _ => format!("the ask rule {} ({}) asks before {what}", rule.text, rule.scope),
            }));
        }
        None
    }

    /// Credentials, protected names, haft's own state, and folders that hold the home folder.
    fn protected(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        let mut found: Option<Ruling> = None;
        for one in judged {
            let Judged { effect, real, .. } = one;
            if let Some((path, keys)) = self.keys_of(one, ask) {
                let reason = |what: &str| format!("{what} names {path}, {keys}");
                let what = doing(effect, None, ask);
                return Some(Ruling::ask(Remember::Session, None, &what, reason));
            }
            found = found.or_else(|| self.protected_in(one, ask));
            let Some(written) = effect.path() else { continue };
            let changes = effect.access != Access::Observe;
            for path in std::iter::once(written).chain(*real) {
                let what = || doing(effect, *real, ask);
                if let Some(spot) = find(CREDENTIALS, path, &self.anchors.home) {
                    let reason = |what: &str| format!("{what} touches {}", spot.what);
                    return Some(Ruling::ask(Remember::Never, None, &what(), reason));
                }
                let tree = matches!(effect.target, Target::Tree { .. });
                let home = &self.anchors.home;
                let is_lost = || home == path || !home_removal::is_flat(effect, judged);
                if changes && tree && home.is_within(path) && is_lost() {
                    let whole = home_removal::extent(path, home);
                    let reason = |what: &str| format!("{what} touches {whole}");
                    return Some(Ruling::ask(Remember::Never, None, &what(), reason));
                }
                let own = || self.is_own(path);
                // In the sandbox reading would be free otherwise.
                let spot = if found.is_some() {
                    None
                } else if (changes || ask.inside().is_some()) && own() {
                    Some("haft's own state")
                } else if !changes {
                    None
                } else {
                    protected(path, &self.anchors.home)
                };
                if let Some(spot) = spot {
                    let reason = |what: &str| format!("{what} needs a yes, to protect {spot}");
                    found = Some(Ruling::ask(Remember::Session, None, &what(), reason));
                }
            }
        }
        found
    }

    /// Whether a question would have been asked, if nothing were hidden from what only looks.
    fn would_ask(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> bool {
        ask.veil.is_some() && self.uncertain(&Ask { veil: None, ..*ask }, judged).is_some()
    }

    /// Rules that may be touched, where that is not known.
    pub(crate) fn uncertain(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        let veil = ask.behind(judged);
        for one in judged {
            let Judged { effect, real, parts, script, .. } = one;
            let unread = || self.unread(ask, effect, parts.as_ref()?);
            let unnamed = || self.unnamed(ask, one, script.as_ref()?, judged);
            if let Some(ruling) = unread().or_else(unnamed) {
                return Some(ruling);
            }
            if let Some(ruling) = self.ruled_words(one, ask) {
                return Some(ruling);
            }
            if let Some(ruling) = self.unwatched(ask, effect, script.as_ref()) {
                return Some(ruling);
            }
            let Target::Tree { root } = &effect.target else { continue };
            let observes = effect.access == Access::Observe;
            // File tools leave out what rules name; a program does not.
            if observes && !judged.iter().any(|judged| judged.script.is_some()) {
                continue;
            }
            // In the sandbox these are hidden.
            let hidden = ask.inside().is_some() || veil.is_some();
            let holds_home = |path: &HostPath| self.anchors.home.is_within(path);
            let is_home = holds_home(root) || real.is_some_and(holds_home);
            if observes && !hidden && is_home {
                let reason = |what: &str| format!("{what} touches keys and passwords in the home");
                let what = doing(effect, *real, ask);
                return Some(Ruling::ask(Remember::Session, None, &what, reason));
            }
            let near = |placed: &&Placed| {
                let veiled = veil.is_some_and(|veil| Self::is_veiled_in(placed, veil, *real));
                placed.rule.verdict != Verdict::Allow
                    && !matches!(placed.rule.subject, Subject::Outside { .. })
                    && !(observes
                        && (veiled
                            || matches!(
                                &placed.rule.subject,
                                Subject::Path { class: PathClass::Writes, .. }
                            )))
                    && !matches!(&placed.rule.subject,
                        Subject::Path { class: PathClass::Of(tool), .. } if !is_tool(ask.tool, tool))
                    && placed.globs.iter().any(|glob| {
                        glob.may_lie_below(root)
                            || real.is_some_and(|real| glob.may_lie_below(real))
                    })
            };
            if let Some(placed) = self.rules.iter().find(near) {
                let what = doing(effect, *real, ask);
                let rule = &placed.rule;
                let reason =
                    |what: &str| format!("{what} may touch what the rule {} names", rule.text);
                return Some(Ruling::ask(Remember::Never, Some(rule), &what, reason));
            }
        }
        None
    }

    /// The question about a command of which not all is known. A rule that allows just this
    /// command has answered it.
    fn unread(&self, ask: &Ask<'_>, effect: &Effect, parts: &Parts) -> Option<Ruling> {
        let Target::Command { text, .. } = &effect.target else { return None };
        let meant = self.with(Verdict::Allow).any(|placed| {
            matches!(&placed.rule.subject, Subject::Command { tool, pattern }
                if is_tool(ask.tool, tool) && pattern.is_literal() && pattern.allows(text))
        });
        if meant {
            return None;
        }
        let way = self.rule_for(ask.tool, ask.plan).filter(|rule| rule.len() <= 200);
        let way = way.map(|rule| format!(", or allow the rule {rule}")).unwrap_or_default();
        let what = doing(effect, None, ask);
        let mentioned = self.rules.iter().find(|placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(&placed.rule.subject,
                    Subject::Command { pattern, .. } if pattern.may_touch(parts))
        });
        if let Some(Placed { rule, .. }) = mentioned {
            return Some(Ruling::ask(Remember::Session, Some(rule), &what, |what| {
                format!(
                    "{what} names what the {} rule {} ({}) is about, in words that a program may \
                     run; leave those words out{way}",
                    rule.verdict, rule.text, rule.scope
                )
            }));
        }
        let Some(why) = parts.unclear.as_ref() else { return self.half_known(parts, &what, &way) };
        Some(Ruling::ask(Remember::Session, None, &what, |what| {
            format!("the rules about commands cannot be checked on {what}: {why}{way}")
        }))
    }

    /// The rule that allows an effect: the written and the real form, if need be by two.
    pub(crate) fn rule_for_effect(&self, ask: &Ask<'_>, judged: &Judged<'_>) -> Option<&Placed> {
        let held = |form: Option<&HostPath>| {
            self.with(Verdict::Allow).find(|placed| allows(placed, judged.effect, form, ask))
        };
        let written = judged.effect.path();
        held(written).filter(|_| written.is_none() || held(judged.real).is_some())
    }

    /// Whether every effect is allowed, and if not, the question about the first that is not.
    fn allowed(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Result<Ruling, Ruling> {
        let by = |rule: &Rule| {
            Ruling::new(Verdict::Allow, Some(rule), "it", |what| {
                format!("the allow rule {} ({}) allows {what}", rule.text, rule.scope)
            })
        };
        if let Some(placed) =
            self.with(Verdict::Allow).find(|placed| names_call(&placed.rule.subject, ask, false))
        {
            return Ok(by(&placed.rule));
        }
        let mut used: Option<&Rule> = None;
        let mut looks = false;
        let mut covered = Vec::new();
        let (open, all) = (is_known(judged), judged);
        for judged in judged {
            if by_place_or_mode(ask, judged) {
                continue;
            }
            if let Some(script) = &judged.script {
                let allowed = self.scripts(ask, judged, script, all);
                let allowed = allowed.map_err(|ruling| Ruling { open, ..ruling })?;
                looks = allowed.looks;
                used = used.or(allowed.rule);
                covered.extend(allowed.covered);
                continue;
            }
            if covered.contains(judged.effect) {
                continue;
            }
            let Some(placed) = self.rule_for_effect(ask, judged) else {
                let what = doing(judged.effect, judged.real, ask);
                let place = outside(ask, judged);
                let reason = |what: &str| format!("no rule allows {what}{place}");
                let ruling = Ruling::ask(Remember::Saved, None, &what, reason);
                return Err(Ruling { open, ..ruling });
            };
            used = used.or(Some(&placed.rule));
        }
        let ruling = used.map_or_else(
            || Ruling::new(Verdict::Allow, None, "", |_| without_rule(ask, looks)),
            by,
        );
        Ok(Ruling { looks, ..ruling })
    }
}

/// Turns a question into what the mode and the session's grants make of it.
fn settle(question: Ruling, ask: &Ask<'_>) -> Ruling {
    if question.remember != Remember::Never && ask.grants.holds(ask) {
        let reason = |_: &str| "this very call was allowed for the session".to_owned();
        return Ruling::new(Verdict::Allow, None, "", reason);
    }
    match ask.mode {
        Mode::DontAsk => Ruling { verdict: Verdict::Deny, remember: Remember::Never, ..question }
            .because(|reason| format!("{reason}, and mode dont-ask denies what would ask")),
        Mode::Auto if ask.walls.is_none() => question
            .because(|reason| format!("{reason} (mode auto asks, because no sandbox holds)")),
        _ => question,
    }
}

/// Reports whether all is known of what a call does, and it gets no secret.
fn is_known(judged: &[Judged<'_>]) -> bool {
    judged.iter().all(|judged| {
        !matches!(judged.effect.target, Target::Secret { .. })
            && judged.script.as_ref().is_none_or(Script::is_known)
    })
}

fn without_rule(ask: &Ask<'_>, looks: bool) -> String {
    if ask.plan.effects.is_empty() {
        return "it touches nothing".to_owned();
    }
    let is_near = ask.real.iter().flatten().all(|real| ask.place.holds(real));
    match ask.mode {
        Mode::Bypass => "mode bypass allows it".to_owned(),
        _ if (looks || ask.plan.observes()) && is_near => {
            "it only looks at the workspace".to_owned()
        }
        Mode::Auto if looks => "it only looks, and the sandbox hides keys from it".to_owned(),
        _ if looks || ask.plan.observes() => "it only looks".to_owned(),
        Mode::Auto => "mode auto lets it go on in the sandbox".to_owned(),
        Mode::Plan => "the sandbox lets it change nothing, as mode plan wants".to_owned(),
        mode => why(ask.plan, mode).to_owned(),
    }
}

/// Why a place did not allow an effect, where that is not plain.
fn outside(ask: &Ask<'_>, judged: &Judged<'_>) -> &'static str {
    match (judged.effect.path(), judged.real) {
        (Some(_), None) => ", and where it leads could not be found out",
        (Some(_), Some(real)) if !ask.place.holds(real) => ", which is outside the workspace",
        _ => "",
    }
}

/// Reports whether place and mode alone allow an effect.
pub(crate) fn by_place_or_mode(ask: &Ask<'_>, judged: &Judged<'_>) -> bool {
    if ask.mode == Mode::Bypass {
        return true;
    }
    if ask.is_held(judged) || is_own_file(judged.effect, ask.plan) {
        return true;
    }
    match &judged.effect.target {
        Target::State { .. } => ask.tool.origin == Origin::Builtin,
        Target::Path { .. } | Target::Tree { .. } => {
            judged.real.is_some_and(|real| match judged.effect.access {
                Access::Observe => ask.place.shows(real),
                Access::Modify => ask.mode == Mode::AcceptEdits && ask.place.holds(real),
                Access::Destroy => false,
            })
        }
        _ => false,
    }
}

pub(crate) fn is_tool(tool: &ToolSpec, name: &str) -> bool {
    tool.name == name
}

/// A server's name as tool names hold it.
fn server_name(server: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    server.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Whether a rule names the tool as a whole. Generously a name is enough; an allowance of a
/// server's tools needs a tool that came from that server.
fn names_tool(subject: &Subject, tool: &ToolSpec, generous: bool) -> bool {
    let server = match &tool.origin {
        Origin::Mcp { server, .. } => Some(server_name(server)),
        _ => None,
    };
    match subject {
        Subject::Tool(name) => {
            let named = is_tool(tool, name) || (generous && tool.aliases.iter().any(|a| a == name));
            named && (generous || server.is_some() || !name.starts_with("mcp__"))
        }
        Subject::Server(wanted) => {
            let below =
                tool.name.strip_prefix("mcp__").and_then(|n| n.strip_prefix(wanted.as_str()));
            let named = below.is_some_and(|rest| rest.starts_with("__"));
            let from = server.as_ref() == Some(wanted);
            from || (generous && named)
        }
        Subject::Prefix(prefix) => {
            tool.name.starts_with(prefix.as_str()) && (generous || server.is_some())
        }
        Subject::Path { .. }
        | Subject::Outside { .. }
        | Subject::Command { .. }
        | Subject::Domain { .. }
        | Subject::Named { .. } => false,
    }
}

/// Whether a rule names the whole call, whatever its effects are.
pub(crate) fn names_call(subject: &Subject, ask: &Ask<'_>, generous: bool) -> bool {
    let Subject::Named { tool, pattern } = subject else {
        return names_tool(subject, ask.tool, generous);
    };
    let keys: [&str; 2] =
        if tool == "agent" { ["subagent_type", "agent"] } else { ["skill", "name"] };
    let given = keys.iter().find_map(|key| ask.input.get(key)).and_then(Value::as_str);
    let given = given.unwrap_or("general").split_whitespace().collect::<Vec<_>>().join("\0");
    let given = if generous { composed(&given) } else { Cow::Borrowed(&*given) };
    is_tool(ask.tool, tool) && pattern.takes(&given)
}

/// Whether a bare `Read` or `Edit` is about an effect of any tool.
pub(crate) fn class_touches(tool: &str, effect: &Effect) -> bool {
    (effect.path().is_some() || effect.target == Target::Anything)
        && match tool {
            "read" => true,
            "edit" => effect.access != Access::Observe,
            _ => false,
        }
}

/// Generous: whether a denial or question is about an effect.
pub(crate) fn touches(placed: &Placed, judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    let effect = judged.effect;
    match (&placed.rule.subject, &effect.target) {
        (Subject::Tool(tool), _) => class_touches(tool, effect),
        (Subject::Path { class, .. }, Target::Path { .. } | Target::Tree { .. }) => {
            // A change shows and keeps what was there, so a denied read denies it too.
            let meant = match class {
                PathClass::Reads => true,
                PathClass::Writes => effect.access != Access::Observe,
                PathClass::Of(tool) => is_tool(ask.tool, tool),
            };
            let whole =
                matches!(effect.target, Target::Tree { .. }) && effect.access != Access::Observe;
            let forms = || effect.path().into_iter().chain(judged.real);
            meant
                && placed.globs.iter().any(|glob| {
                    forms().any(|path| glob.touches(path) || (whole && glob.lies_below(path)))
                })
        }
        (Subject::Outside { .. }, Target::Path { .. } | Target::Tree { .. }) => {
            outside::leaves(placed, judged, ask)
        }
        (Subject::Command { pattern, .. }, Target::Command { .. }) => {
            judged.parts.as_ref().is_some_and(|parts| pattern.touches(parts))
                || judged.script.as_ref().is_some_and(|script| script.touches(pattern))
        }
        (Subject::Path { class, .. }, Target::Command { text, .. }) => {
            let unread = judged.script.as_ref().is_some_and(|script| script.fault.is_some());
            unread && !matches!(class, PathClass::Of(_)) && names_path(placed, text, ask)
        }
        (Subject::Domain { host, below, .. }, Target::Net { host: peer }) => {
            is_host(host, *below, peer)
        }
        _ => false,
    }
}

/// Whether some word of a text that cannot be read is a path that a rule is about.
fn names_path(placed: &Placed, text: &str, ask: &Ask<'_>) -> bool {
    let is_end = |c: char| c.is_whitespace() || "<>|&;()`'\"$={}".contains(c);
    let words = text.split(is_end).filter(|word| !word.is_empty());
    words
        .filter_map(|word| ask.place.path(word).ok())
        .any(|path| placed.globs.iter().any(|glob| glob.touches(&path)))
}

/// Strict: whether an allowance covers one form of an effect.
fn allows(placed: &Placed, effect: &Effect, form: Option<&HostPath>, ask: &Ask<'_>) -> bool {
    let is_path = matches!(effect.target, Target::Path { .. } | Target::Tree { .. });
    match (&placed.rule.subject, &effect.target) {
        (Subject::Tool(tool), _) if is_path => covers(tool == "read", tool == "edit", effect, ask),
        (Subject::Path { class, .. }, Target::Path { .. } | Target::Tree { .. }) => {
            let meant = match class {
                PathClass::Reads => covers(true, false, effect, ask),
                PathClass::Writes => covers(false, true, effect, ask),
                PathClass::Of(tool) => is_tool(ask.tool, tool),
            };
            let whole =
                matches!(effect.target, Target::Tree { .. }) || effect.access == Access::Observe;
            let held = |path: &HostPath| placed.globs.iter().any(|glob| glob.allows(path, whole));
            meant && form.is_some_and(held)
        }
        (Subject::Command { tool, pattern }, Target::Command { text, .. }) => {
            is_tool(ask.tool, tool) && pattern.allows(text)
        }
        (Subject::Domain { tool, host, below }, Target::Net { host: peer }) => {
            is_tool(ask.tool, tool) && is_host(host, *below, peer)
        }
        _ => false,
    }
}

/// Whether a rule about reads or writes is about an effect. Who may change a place may look at it
/// for that change.
fn covers(reads: bool, writes: bool, effect: &Effect, ask: &Ask<'_>) -> bool {
    let changes = |other: &Effect| {
        other.access != Access::Observe && other.path().is_some() && other.path() == effect.path()
    };
    match effect.access {
        Access::Observe => reads || (writes && ask.plan.effects.iter().any(changes)),
        Access::Modify | Access::Destroy => writes,
    }
}

pub(crate) fn is_host(host: &str, below: bool, peer: &str) -> bool {
    let peer = peer.trim_end_matches('.').to_lowercase();
    if below {
        peer.strip_suffix(host).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
    } else {
        peer == host
    }
}
