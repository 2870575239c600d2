//! The dispatcher: the one way from a model's call to its outcome, for every front end.

use std::{sync::Arc, time::Duration};

use haft_host::Host;
use haft_policy::{Mode, Part, Ruling, Script, Verdict};
use haft_types::{AgentPath, CallId, Kind, Outcome, Place, Plan, ToolError, ToolUse, TurnId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Conversation, Cx, Permissions, Pipeline, Session, ToolSet,
    stages::{
        resolve::{self, Refusal},
        rules,
    },
};

/// How long looking up may take for a call that would start while its answer still streams.
const SOON: Duration = Duration::from_millis(200);

/// Takes the calls of one agent through the pipeline.
///
/// Command line, print mode, MCP server and subagents all hold one of these.
#[derive(Clone)]
pub struct Dispatcher {
    /// State that all agents of the session share.
    pub session: Arc<Session>,
    /// State of this agent's conversation.
    pub conversation: Arc<Conversation>,
    /// The pinned tool set.
    pub tools: Arc<ToolSet>,
    /// The pipeline of stages.
    pub pipeline: Arc<Pipeline>,
    /// The workspace.
    pub place: Arc<Place>,
    /// The host to act on.
    pub host: Arc<dyn Host>,
    /// The agent that makes the calls; empty for the main agent.
    pub agent: AgentPath,
    /// The mode of this agent where it differs from the session's; it never allows more than that.
    pub mode: Option<Mode>,
}

/// The decision that would be made about a call.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// What the call would do.
    pub plan: Plan,
    /// The decision about the whole call.
    pub ruling: Ruling,
    /// The script that a shell would run; none where the call is no script for a new shell.
    pub script: Option<Script>,
    /// The commands of the script, each with the decision about it alone.
    pub parts: Vec<(Part, Ruling)>,
}

/// What a call of a model is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfTurn {
    /// The turn.
    pub turn: TurnId,
    /// Whether its name and arguments stand in the arguments of another call.
    pub is_wrapped: bool,
}

impl From<TurnId> for OfTurn {
    fn from(turn: TurnId) -> Self {
        Self { turn, is_wrapped: false }
    }
}

impl Dispatcher {
    /// The permissions for calls of this agent now: those of the session, narrowed by the agent's
    /// own mode.
    pub fn permissions(&self) -> Arc<Permissions> {
        let session = self.session.permissions();
        let mode = self.mode.map_or(session.mode, |mode| mode.narrower(session.mode));
        if mode == session.mode {
            return session;
        }
        let mut narrowed = (*session).clone();
        // Edits that a person let through count for agents that may edit at all.
        narrowed.grants.edits &= mode.narrower(Mode::Ask) == Mode::Ask;
        narrowed.mode = mode;
        Arc::new(narrowed)
    }

    /// Plans a call as of now, to tell which calls may run together. A call that cannot be planned
    /// gets a plan without effects. Where a path may be taken as another one, the plan has the
    /// effects of both.
    pub fn plan(&self, request: &ToolUse) -> Plan {
        let prepare =
            |request: &ToolUse| self.tools.prepare(request, |kind| self.place_for(kind)).0;
        let Ok(mut prepared) = prepare(request) else {
            return Plan::new(&self.place, format!("Calling {}", request.name));
        };
        for input in prepared.meant_paths() {
            let other = prepare(&with_input(request.clone(), input));
            prepared.plan.effects.extend(other.into_iter().flat_map(|other| other.plan.effects));
        }
        prepared.plan
    }

    /// Reports whether a call only observes and no person would be asked. Such a call may run while
    /// its answer still streams.
    pub async fn harmless(self: &Arc<Self>, request: &ToolUse) -> bool {
        let stop = CancellationToken::new();
        let cx = Cx::new(self.clone(), request.id.clone(), TurnId::default(), stop);
        let mut call = Call::new(request.clone(), cx);
        call.plan().is_some_and(Plan::observes)
            && call.ready().is_ok_and(|prepared| prepared.meant_paths().is_empty())
            && resolve::locate(&mut call, SOON).await.is_ok()
            && rules::decide(&call).is_ok_and(|ruling| ruling.verdict == Verdict::Allow)
    }

    /// Returns the decision about a call without making it. Nothing is run, asked or recorded, and
    /// nothing that the call names is opened.
    ///
    /// # Errors
    /// When the call cannot be read, or its paths cannot be looked up within `limit`.
    pub async fn judge(
        self: &Arc<Self>,
        request: &ToolUse,
        limit: Duration,
    ) -> Result<Judgement, ToolError> {
        let cx =
            Cx::new(self.clone(), request.id.clone(), TurnId::default(), CancellationToken::new());
        let mut call = Call::new(request.clone(), cx);
        resolve::locate(&mut call, limit).await?;
        // As the pipeline takes it: what is judged is what would be done.
        match resolve::mended(&call, limit).await {
            Ok(None) => {}
            Ok(Some(mended)) => call = mended,
            Err(Refusal::Denied(mended, _)) => call = *mended,
            Err(Refusal::Unclear(error)) => return Err(error),
        }
        let ruling = rules::decide(&call)?;
        let prepared = call.ready()?;
        let judge = self.permissions();
        let (script, parts) = rules::with_ask(&call, prepared, &prepared.plan, &judge, |ask| {
            judge.policy.decide_parts(ask)
        });
        Ok(Judgement { plan: prepared.plan.clone(), ruling, script, parts })
    }

    /// Takes one call through every stage.
    ///
    /// # Cancel safety
    /// A dropped future ends the call without a record of its end; cancel `stop` instead.
    pub async fn run(
        self: &Arc<Self>,
        request: ToolUse,
        of: impl Into<OfTurn>,
        stop: CancellationToken,
    ) -> Outcome {
        let OfTurn { turn, is_wrapped: wrapped } = of.into();
        let cx = Cx::new(self.clone(), request.id.clone(), turn, stop);
        self.run_in(request, Cx { wrapped, ..cx }).await
    }

    /// Calls a tool by name, for front ends without a model.
    pub async fn call(
        self: &Arc<Self>,
        tool: &str,
        input: Value,
        stop: CancellationToken,
    ) -> (CallId, Outcome) {
        let id = self.session.next_call();
        let request = ToolUse::new(id.clone(), tool, input);
        (id, self.run(request, TurnId::default(), stop).await)
    }

    /// As [`call`](Self::call), for a command that a person typed: that is their consent to it.
    /// Denials, ask rules and what asks in every mode still apply.
    pub async fn call_typed(
        self: &Arc<Self>,
        tool: &str,
        input: Value,
        stop: CancellationToken,
    ) -> (CallId, Outcome) {
        let id = self.session.next_call();
        let request = ToolUse::new(id.clone(), tool, input);
        let cx = Cx::new(self.clone(), id.clone(), TurnId::default(), stop);
        (id, self.run_in(request, Cx { typed: true, ..cx }).await)
    }

    /// As [`call`](Self::call), with the arguments as they were written.
    pub async fn call_written(
        self: &Arc<Self>,
        tool: &str,
        raw: String,
        stop: CancellationToken,
    ) -> (CallId, Outcome) {
        let id = self.session.next_call();
        let request = ToolUse::from_wire(id.clone(), id.0.to_string(), tool.to_owned(), raw);
        (id, self.run(request, TurnId::default(), stop).await)
    }

    pub(crate) async fn run_in(self: &Arc<Self>, request: ToolUse, cx: Cx) -> Outcome {
        let call = Call::new(request, cx);
        self.pipeline.run(call).await
    }

    /// The place that a tool of this kind is planned in: a shell starts where it was left.
    pub(crate) fn place_for(&self, kind: Kind) -> Arc<Place> {
        match (kind, self.conversation.shell_cwd()) {
            (Kind::Execute, Some(cwd)) if self.place.holds(&cwd) => {
                Arc::new(Place { cwd, ..(*self.place).clone() })
            }
            _ => self.place.clone(),
        }
    }
}

impl Call {
    pub(crate) fn new(request: ToolUse, cx: Cx) -> Self {
        let mut call = Self {
            prepared: Err(haft_types::ToolError::new("not prepared")),
            notes: Vec::new(),
            located: Vec::new(),
            ruling: None,
            walls: None,
            veil: None,
            confine: None,
            network: None,
            variables: Vec::new(),
            git: crate::stages::Git::default(),
            preview: None,
            hooked: false,
            advice: None,
            consulted: false,
            mended: false,
            request,
            cx,
        };
        call.prepare();
        call
    }

    /// The same call with other arguments, planned anew; nothing judged of it is kept.
    pub(crate) fn with_input(self, input: Value) -> Self {
        let cx = Cx { host: self.cx.dispatcher.host.clone(), ..self.cx };
        let made = Self::new(with_input(self.request, input), cx);
        Self { hooked: true, mended: self.mended, consulted: self.consulted, ..made }
    }

    /// The same call with its paths as they were probably meant; hooks see what they do not know.
    pub(crate) fn mended(&self, input: Value) -> Self {
        let made = Self::new(with_input(self.request.clone(), input), self.cx.clone());
        Self { mended: true, ..made }
    }

    fn prepare(&mut self) {
        let dispatcher = self.cx.dispatcher.clone();
        let mut place = dispatcher.place.clone();
        let (prepared, notes) = dispatcher.tools.prepare(&self.request, |kind| {
            place = dispatcher.place_for(kind);
            place.clone()
        });
        self.prepared = prepared;
        self.notes = notes;
        self.cx.place = place;
    }
}

fn with_input(request: ToolUse, input: Value) -> ToolUse {
    ToolUse { raw: input.to_string(), input: Some(input), ..request }
}
