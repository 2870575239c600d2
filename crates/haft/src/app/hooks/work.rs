//! Hooks about tasks, expanded prompts, commands of skills, compactions and changes of the model.

use std::sync::{Arc, Weak};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{AgentSender, Input, QueuedMessage};
use haft_config::{HookEvent, Settings};
use haft_llm::ModelRef;
use haft_policy::Verdict;
use haft_tool::{
    Expansion, ExpansionKind, ExpansionSaid, InvokedBy, SkillCommand, TaskFacts, WorkHooks,
};
use haft_types::{From, Part, Usage};
use serde_json::{Value, json};

use super::{Hooks, added, answer::Answer, cut};
use crate::app::model::facts;

/// A change of the model, as hooks get it.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// The model before.
    pub from: String,
    /// The model after.
    pub to: String,
    /// What was asked for; none where nobody asked.
    pub requested: Option<String>,
    /// `command`, or `auto` where a model takes the place of one that failed.
    pub source: &'static str,
    /// Tokens that the next request sends again.
    pub context_tokens: u64,
    /// Dollars that the new model takes for writing them to its cache.
    pub cost: f64,
    /// Where that price comes from: `configured`, `catalog` or `default`.
    pub pricing: &'static str,
}

impl Switch {
    /// A change from one model to another, which sends so many tokens again.
    pub fn new(
        (from, to): (&ModelRef, &ModelRef),
        source: &'static str,
        context_tokens: u64,
        settings: &Settings,
    ) -> Self {
        let prices = facts(to, settings).prices;
        let is_set = settings.models.get(&to.to_string()).is_some_and(|set| set.price.is_some());
        let usage = Usage { cache_write: context_tokens, ..Usage::default() };
        Self {
            from: from.to_string(),
            to: to.to_string(),
            requested: None,
            source,
            context_tokens,
            cost: prices.map_or(0.0, |prices| prices.cost(usage)),
            pricing: match prices {
                Some(_) if is_set => "configured",
                Some(_) => "catalog",
                None => "default",
            },
        }
    }

    fn fields(&self) -> Value {
        json!({
            "from_model": self.from,
            "to_model": self.to,
            "requested_model": self.requested,
            "source": self.source,
            "context_tokens": self.context_tokens,
            // When the last request was is not looked at: what was sent may still be there.
            "prompt_cache_warm": self.context_tokens > 0,
            "cache_ttl": "5m",
            "estimated_cache_write_usd": self.cost,
            "pricing": self.pricing,
        })
    }
}

/// What hooks say of a change of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchSaid {
    /// It goes on.
    Pass,
    /// A person is asked, for this reason.
    Ask(String),
    /// It does not happen, for this reason.
    Deny(String),
}

impl Hooks {
    /// Why hooks of an event hold something back; none where none does.
    pub(super) async fn objection(
        &self,
        event: HookEvent,
        names: &[String],
        fields: &Value,
    ) -> Option<String> {
        let due = self.due(event, names, None);
        if due.is_empty() {
            return None;
        }
        let answers = self.ask(event, due, fields).await;
        answers.iter().find_map(Answer::refused).map(|why| cut(&why))
    }

    /// Asks before a change of the model.
    pub async fn before_switch(&self, switch: &Switch) -> SwitchSaid {
        let names = [switch.to.clone()];
        let due = self.due(HookEvent::PreModelSwitch, &names, None);
        let answers = self.ask(HookEvent::PreModelSwitch, due, &switch.fields()).await;
        let of = |verdict| {
            let said = answers.iter().find(|answer| answer.verdict == Some(verdict));
            said.map(|answer| answer.reason.clone())
        };
        match (of(Verdict::Deny), of(Verdict::Ask)) {
            (Some(why), _) => SwitchSaid::Deny(why),
            (None, Some(why)) => SwitchSaid::Ask(why),
            (None, None) => SwitchSaid::Pass,
        }
    }

    /// Tells of a change of the model; gives words for the new one.
    async fn after_switch(&self, switch: &Switch) -> Vec<String> {
        let names = [switch.to.clone()];
        let due = self.due(HookEvent::PostModelSwitch, &names, None);
        let answers = self.ask(HookEvent::PostModelSwitch, due, &switch.fields()).await;
        answers.into_iter().flat_map(Answer::words).map(|text| added(&text)).collect()
    }

    /// Tells of a change of the model, and the agent what hooks say to that.
    pub async fn tell_switch(&self, switch: &Switch, agent: &AgentSender) {
        for text in self.after_switch(switch).await {
            let from = From::Hook(HookEvent::PostModelSwitch.name().to_owned());
            let words = QueuedMessage { from, parts: vec![Part::text(text)] };
            // An agent that is gone needs no words.
            agent.send(Input::Notice { words, wake: false });
        }
    }

    /// Whether any hook wants to know of a change of the model.
    pub fn sees_switches(&self) -> bool {
        self.has(HookEvent::PreModelSwitch) || self.has(HookEvent::PostModelSwitch)
    }
}

/// The hooks of a session as its tools know them. The session holds this, so it does not hold them.
pub struct OfWork(pub Weak<Hooks>);

impl OfWork {
    fn hooks(&self) -> Option<Arc<Hooks>> {
        self.0.upgrade()
    }

    async fn task(&self, event: HookEvent, task: &TaskFacts) -> Option<String> {
        let hooks = self.hooks()?;
        let TaskFacts { id, subject, description } = task;
        let mut fields = json!({"task_id": id, "task_subject": subject});
        if !description.is_empty() {
            fields["task_description"] = json!(description);
        }
        hooks.objection(event, &[], &fields).await
    }
}

impl WorkHooks for OfWork {
    fn task_created<'a>(&'a self, task: &'a TaskFacts) -> BoxFuture<'a, Option<String>> {
        self.task(HookEvent::TaskCreated, task).boxed()
    }

    fn task_completed<'a>(&'a self, task: &'a TaskFacts) -> BoxFuture<'a, Option<String>> {
        self.task(HookEvent::TaskCompleted, task).boxed()
    }

    fn expands<'a>(&'a self, expansion: &'a Expansion) -> BoxFuture<'a, ExpansionSaid> {
        async move {
            let Some(hooks) = self.hooks() else { return ExpansionSaid::default() };
            let event = HookEvent::UserPromptExpansion;
            let due = hooks.due(event, std::slice::from_ref(&expansion.name), None);
            let mut fields = json!({
                "expansion_type": match expansion.kind {
                    ExpansionKind::Command => "slash_command",
                    ExpansionKind::McpPrompt => "mcp_prompt",
                },
                "command_name": expansion.name,
                "command_args": expansion.arguments,
                "prompt": expansion.prompt,
            });
            if !expansion.source.is_empty() {
                fields["command_source"] = json!(expansion.source);
            }
            let answers = hooks.ask(event, due, &fields).await;
            let refused = answers.iter().find_map(Answer::refused).map(|why| cut(&why));
            let words = answers.into_iter().flat_map(Answer::words);
            ExpansionSaid { refused, context: words.map(|text| added(&text)).collect() }
        }
        .boxed()
    }

    fn skill_command<'a>(&'a self, command: &'a SkillCommand) -> BoxFuture<'a, Option<String>> {
        async move {
            let hooks = self.hooks()?;
            let event = HookEvent::PreSkillShellCommand;
            let due = hooks.due(event, std::slice::from_ref(&command.name), None);
            let mut fields = json!({
                "tool_name": "Bash",
                "tool_input": {"command": command.command},
                "tool_use_id": command.id,
                "command_name": command.name,
                "invoked_by": match command.invoked_by {
                    InvokedBy::User => "user",
                    InvokedBy::Model => "claude",
                    InvokedBy::Other => "other",
                },
            });
            if !command.source.is_empty() {
                fields["command_source"] = json!(command.source);
            }
            let answers = hooks.ask(event, due, &fields).await;
            let denied = answers.into_iter().find(|answer| answer.verdict == Some(Verdict::Deny));
            denied.map(|answer| answer.reason)
        }
        .boxed()
    }
}
