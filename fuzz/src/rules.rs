//! Rules about calls, beside what the contract of rules says of any of them.
//!
//! The first line of an input is a mode and a call (`ask run git push`), the second a rule that is
//! added (`deny Bash(git push *)`), and each other line a rule that was there before. Invariant: all
//! bytes are some input; what is no call judges nothing.

use std::time::{Duration, Instant};

use haft_policy::{Anchors, Ask, Grants, Mode, Policy, Rules, Scope, Verdict};
use haft_types::{Access, AgentPath, Follow, HostPath, Origin, Place, Plan, Style, Target, ToolSpec};
use serde_json::{Value, json};

/// Longest that reading rules and judging one call by them may take; far more than it needs.
const SLOW: Duration = Duration::from_secs(5);

/// A denial or a question never allows more, an allowance never denies, and what is no rule allows
/// nothing.
pub fn rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let Some(call) = lines.next().and_then(Call::of) else { return };
    let (verdict, added) = rule(lines.next().unwrap_or_default());
    let add = |all: Rules, line| {
        let (verdict, text) = rule(line);
        all.with(verdict, Scope::User, text)
    };
    let begun = Instant::now();
    let base = lines.take(8).fold(Rules::default(), add);
    let before = call.judged(&base);
    let with = base.clone().with(verdict, Scope::User, added);
    let after = call.judged(&with);
    let is_read = with.problems().len() == base.problems().len();
    match verdict {
        Verdict::Deny | Verdict::Ask => assert!(after >= before, "{before} became {after}"),
        // A rule that is not understood may make a call ask, and allows none.
        Verdict::Allow if is_read => assert!(after <= before, "{before} became {after}"),
        Verdict::Allow => assert!(after >= before, "{before} became {after} by what is no rule"),
    }
    for problem in with.problems() {
        assert!(!problem.problem.is_empty() && problem.text.chars().count() <= 200, "{problem}");
    }
    // Any denial of the whole tool is final, whatever else there is.
    let denied = with.with(Verdict::Deny, Scope::Managed, &call.tool.name);
    assert_eq!(call.judged(&denied), Verdict::Deny, "{} denied", call.tool.name);
    assert!(begun.elapsed() < SLOW, "{:?}", begun.elapsed());
}

fn rule(line: &str) -> (Verdict, &str) {
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    let verdict = match word {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        _ => Verdict::Deny,
    };
    (verdict, text)
}

/// A call with all that a judgement needs.
struct Call {
    tool: ToolSpec,
    input: Value,
    plan: Plan,
    real: Vec<Option<HostPath>>,
    mode: Mode,
    place: Place,
}

impl Call {
    fn of(line: &str) -> Option<Self> {
        let (mode, call) = line.split_once(' ')?;
        let (verb, rest) = call.split_once(' ').unwrap_or((call, ""));
        let mode = mode.parse().ok()?;
        let place = place()?;
        let mut origin = Origin::Builtin;
        let mut input = Value::Null;
        let path = |access| {
            let path = place.path(rest).ok()?;
            Some((access, Target::Path { path: path.clone(), follow: Follow::Yes }, Some(path)))
        };
        let (name, (access, target, real)) = match verb {
            "read" => ("read", path(Access::Observe)?),
            "edit" => ("edit", path(Access::Modify)?),
            "run" => {
                input = json!({ "command": rest });
                ("bash", (Access::Destroy, Target::command(rest.to_owned()), None))
            }
            "fetch" => {
                ("web_fetch", (Access::Observe, Target::Net { host: rest.to_owned() }, None))
            }
            "mcp" => {
                origin = Origin::Mcp { server: "s".to_owned(), tool: "t".to_owned() };
                ("mcp__s__t", (Access::Destroy, Target::Anything, None))
            }
            "agent" => {
                input = json!({ "subagent_type": rest });
                ("agent", (Access::Destroy, Target::Anything, None))
            }
            _ => return None,
        };
        let tool = ToolSpec { origin, ..ToolSpec::new(name, "", "") };
        let plan = Plan::new(&place, "").with(access, target);
        Some(Self { tool, input, plan, real: vec![real], mode, place })
    }

    fn judged(&self, rules: &Rules) -> Verdict {
        let Some(anchors) = anchors(&self.place) else { return Verdict::Deny };
        let ask = Ask {
            tool: &self.tool,
            input: &self.input,
            plan: &self.plan,
            real: &self.real,
            agent: &AgentPath::default(),
            mode: self.mode,
            place: &self.place,
            grants: &Grants::default(),
            walls: None,
            veil: None,
        };
        let ruling = Policy::new(rules, anchors).decide(&ask);
        assert!(!ruling.reason.is_empty());
        ruling.verdict
    }
}

fn at(text: &str) -> Option<HostPath> {
    HostPath::new(text.as_bytes(), Style::Posix).ok()
}

fn place() -> Option<Place> {
    Some(Place {
        host: "local".into(),
        cwd: at("/w/app")?,
        roots: vec![at("/w/app")?, at("/added")?],
        read_roots: Vec::new(),
        home: at("/home/me")?,
        temp: at("/tmp")?,
    })
}

fn anchors(place: &Place) -> Option<Anchors> {
    Some(Anchors {
        cwd: place.cwd.clone(),
        roots: place.roots.clone(),
        project: at("/w")?,
        home: place.home.clone(),
        state: vec![at("/home/me/.haft")?],
    })
}
