//! Shows what agents other than the main one do, for people who read line by line.
//!
//! **Invariant:** no line holds words of two agents. The answers of other agents are shown whole,
//! under the name of the agent. Only the main agent's answer is shown while it streams.

use std::collections::HashMap;

use haft_render::clean;
use haft_types::{AgentPath, Body, Event, From, Part};

use super::{View, job_ended, said};

/// Most bytes of an answer that are kept until it is whole; the log has all of it.
const MOST: usize = 1 << 20;

/// Who wrote last, and what others write.
#[derive(Default)]
pub(super) struct Agents {
    /// Empty for the main agent.
    writer: AgentPath,
    answers: HashMap<AgentPath, String>,
}

impl View {
    /// As [`event`](Self::event), for an event of another agent: whole lines, under its name.
    pub(super) fn other_event(&mut self, event: &Event) -> Option<String> {
        let text = self.whole_lines(event).filter(|text| !text.trim().is_empty())?;
        Some(format!("{}{}{text}", self.line_end(), self.head(&event.agent)))
    }

    /// The name of an agent, where another one wrote last.
    pub(super) fn head(&mut self, agent: &AgentPath) -> String {
        if self.agents.writer == *agent {
            return String::new();
        }
        self.agents.writer.clone_from(agent);
        // Results stand under the name of their agent, with their heads.
        self.last = None;
        let name =
            if agent.is_main() { "main".to_owned() } else { super::safe(&agent.to_string()) };
        format!("\n[{name}]\n")
    }

    fn whole_lines(&mut self, event: &Event) -> Option<String> {
        let answers = &mut self.agents.answers;
        match &event.body {
            Body::User { from: From::Haft | From::Job(_), .. } => None,
            Body::User { parts, .. } => Some(said(parts)),
            Body::AnswerPart { part: Part::Text { text }, .. } => {
                let answer = answers.entry(event.agent.clone()).or_default();
                if answer.len() < MOST {
                    answer.push_str(text);
                }
                None
            }
            Body::AnswerEnded { .. } => {
                let answer = answers.remove(&event.agent)?;
                let shown = self.prose(&clean(&answer));
                Some(format!("\n{}\n", shown.trim_matches('\n')))
            }
            Body::AnswerPart { part: Part::Call(call), .. } => {
                if let Some(input) = &call.input {
                    self.inputs.insert(call.id.clone(), input.clone());
                }
                None
            }
            Body::AnswerFailed { error, .. } => {
                // What came of it is void, or cut off.
                answers.remove(&event.agent);
                Some(self.mark(haft_types::Level::Error, &format!("the answer failed: {error}")))
            }
            Body::CallStarted { call, tool, input, plan } => {
                let title = plan.as_ref().map(|plan| plan.title.as_str());
                self.started(call, tool, input.as_ref(), title)
            }
            Body::CallEnded { call, outcome, took } => Some(self.ended(call, outcome, *took)),
            Body::Notice { level, text } => Some(self.mark(*level, text)),
            Body::JobStarted { job, title, .. } => {
                let text = format!("{job} runs in the background: {title}");
                Some(self.mark(haft_types::Level::Info, &text))
            }
            Body::JobEnded { job, end, exit } => {
                Some(self.mark(haft_types::Level::Info, &job_ended(job, *end, *exit)))
            }
            Body::TurnEnded { end, usage } => self.turn_ended(end, *usage),
            _ => None,
        }
    }
}
