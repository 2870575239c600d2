//! The small world in which calls are judged: a workspace, a home, and calls made from words.

use haft_policy::{Anchors, Ask, Grants, Mode, Policy, Rules, Ruling};
use haft_types::{
    Access, AgentPath, Follow, HostPath, Origin, Place, Plan, Style, Target, ToolSpec,
};
use serde_json::{Value, json};

/// A path of the world.
pub fn at(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

/// Where calls run.
pub fn place() -> Place {
    Place {
        host: "local".into(),
        cwd: at("/w/app"),
        roots: vec![at("/w/app"), at("/added")],
        read_roots: Vec::new(),
        home: at("/home/me"),
        temp: at("/tmp"),
    }
}

/// Where rules start.
pub fn anchors() -> Anchors {
    Anchors {
        cwd: at("/w/app"),
        roots: place().roots,
        project: at("/w"),
        home: at("/home/me"),
        state: vec![at("/home/me/.haft")],
    }
}

/// Rules at their places.
pub fn policy(rules: &Rules) -> Policy {
    Policy::new(rules, anchors())
}

/// One call with all that a judgement needs.
#[derive(Clone, Debug)]
pub struct Call {
    pub tool: ToolSpec,
    pub input: Value,
    pub plan: Plan,
    pub real: Vec<Option<HostPath>>,
    pub mode: Mode,
    pub place: Place,
}

impl Call {
    /// Reads a call as the fixture writes it.
    pub fn parse(text: &str, mode: Mode) -> Self {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        let (tool, access, tree) = match verb {
            "read" => ("read", Access::Observe, false),
            "list" => ("ls", Access::Observe, false),
            "search" => ("grep", Access::Observe, true),
            "edit" => ("edit", Access::Modify, false),
            "write" => ("write", Access::Modify, false),
            "delete" => ("edit", Access::Destroy, false),
            "clear" => ("edit", Access::Destroy, true),
            _ => return Self::without_path(verb, rest, mode),
        };
        let place = place();
        let (path, real) = rest.split_once(" -> ").unwrap_or((rest, rest));
        let path = place.path(path).unwrap();
        let real = (real != "?").then(|| place.path(real).unwrap());
        let target = if tree {
            Target::Tree { root: path }
        } else {
            Target::Path { path, follow: Follow::Yes }
        };
        let plan = Plan::new(&place, "").with(access, target);
        let tool = ToolSpec::new(tool, "", "");
        Self { tool, input: Value::Null, plan, real: vec![real], mode, place }
    }

    fn without_path(verb: &str, rest: &str, mode: Mode) -> Self {
        let place = place();
        let mut input = Value::Null;
        let mut origin = Origin::Builtin;
        let mut name = verb.to_owned();
        let text = rest.to_owned();
        let effect = match verb {
            "run" => {
                name = String::from("bash");
                input = json!({ "command": rest });
                Some((Access::Destroy, Target::command(text)))
            }
            "fetch" => {
                name = String::from("web_fetch");
                Some((Access::Observe, Target::Net { host: text }))
            }
            "mcp" => {
                let (server, tool) = rest.split_once(' ').unwrap();
                name = format!("mcp__{server}__{tool}");
                origin = Origin::Mcp { server: server.to_owned(), tool: tool.to_owned() };
                Some((Access::Destroy, Target::Anything))
            }
            "agent" => {
                input = json!({ "subagent_type": rest });
                Some((Access::Destroy, Target::Anything))
            }
            "todo" => Some((Access::Modify, Target::State { name: "todo".into() })),
            "think" => None,
            verb => panic!("{verb:?} is no call of the fixture"),
        };
        let real = effect.iter().map(|_| None).collect();
        let plan = Plan::new(&place, "");
        let plan = effect.into_iter().fold(plan, |plan, (access, on)| plan.with(access, on));
        let tool = ToolSpec { origin, ..ToolSpec::new(name, "", "") };
        Self { tool, input, plan, real, mode, place }
    }

    /// Judges it.
    pub fn judge(&self, policy: &Policy, grants: &Grants) -> Ruling {
        self.with_ask(grants, |ask| policy.decide(ask))
    }

    /// Gives it as a question for the policy.
    pub fn with_ask<T>(&self, grants: &Grants, run: impl FnOnce(&Ask<'_>) -> T) -> T {
        run(&Ask {
            tool: &self.tool,
            input: &self.input,
            plan: &self.plan,
            real: &self.real,
            agent: &AgentPath::default(),
            mode: self.mode,
            place: &self.place,
            grants,
            walls: None,
            veil: None,
        })
    }
}
