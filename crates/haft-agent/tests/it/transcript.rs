//! What people read of each agent is what its conversation holds, in whatever order events come.

use std::sync::Arc;

use haft_render::{Content, Entry, EntryState, Transcript};
use haft_session::Fold;
use haft_types::{
    AgentPath, Body, CallId, Event, From, Message, Outcome, Part, Stop, ToolUse, TurnEnd, TurnId,
    Usage, VERSION,
};
use proptest::prelude::*;

/// A step of an agent.
#[derive(Clone, Debug)]
enum Step {
    Say,
    /// A piece of text, of the same part as the last one or of the next.
    Text(String, bool),
    Thinking,
    Call(u64),
    EndCall(u64),
    End,
    Fail(bool),
    EndTurn,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Say),
        8 => ("[a-z]{1,3}", any::<bool>()).prop_map(|(text, next)| Step::Text(text, next)),
        1 => Just(Step::Thinking),
        3 => (1_u64..9).prop_map(Step::Call),
        3 => (1_u64..9).prop_map(Step::EndCall),
        3 => Just(Step::End),
        2 => any::<bool>().prop_map(Step::Fail),
        1 => Just(Step::EndTurn),
    ]
}

/// What an agent has done so far.
#[derive(Default)]
struct Agent {
    index: u32,
    turn: u64,
}

impl Agent {
    fn body(&mut self, step: Step) -> Body {
        let usage = Usage::default();
        match step {
            Step::Say => Body::User { from: From::Person, parts: vec![Part::text("go")] },
            Step::Text(text, next) => {
                self.index += u32::from(next);
                Body::AnswerPart { index: self.index, part: Part::Text { text } }
            }
            Step::Thinking => {
                self.index += 1;
                let part = Part::Thinking { text: "hm".into(), signature: None };
                Body::AnswerPart { index: self.index, part }
            }
            Step::Call(n) => {
                self.index += 1;
                let call = ToolUse::new(CallId::nth(n), "ls", serde_json::json!({}));
                Body::AnswerPart { index: self.index, part: Part::Call(call) }
            }
            Step::EndCall(n) => {
                let (call, outcome) = (CallId::nth(n), Outcome::text("done"));
                Body::CallEnded { call, outcome, took: 1 }
            }
            Step::End => Body::AnswerEnded {
                model: "m".into(),
                wire: "w".into(),
                host: String::new(),
                stop: Stop::EndTurn,
                usage,
            },
            Step::Fail(retried) => {
                Body::AnswerFailed { error: "no".into(), retried, wait_ms: None }
            }
            Step::EndTurn => {
                self.turn += 1;
                Body::TurnEnded { end: TurnEnd::Interrupted, usage }
            }
        }
    }
}

fn events(rows: Vec<(usize, Step)>) -> Vec<Arc<Event>> {
    let main = AgentPath::default();
    let paths = [main.clone(), main.child("one"), main.child("two")];
    let mut agents: [Agent; 3] = Default::default();
    let event = |(who, step): (usize, Step)| {
        let turn = TurnId(agents[who].turn + 1);
        let body = agents[who].body(step);
        let agent = paths[who].clone();
        Arc::new(Event { v: VERSION, id: None, parent: None, turn, agent, at: 0, body })
    };
    rows.into_iter().map(event).collect()
}

fn said(agent: &AgentPath, events: &[Arc<Event>]) -> String {
    let mut fold = Fold::new(agent.clone());
    for event in events {
        fold.push(event);
    }
    let texts = fold.into_messages().into_iter().flat_map(|message| match message {
        Message::Assistant { parts, .. } => parts,
        _ => Vec::new(),
    });
    texts
        .filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None })
        .collect()
}

fn read<'a>(agent: &AgentPath, entries: impl Iterator<Item = &'a Entry>) -> String {
    let text = |entry: &'a Entry| match &entry.content {
        Content::Text(text) if entry.agent == *agent && entry.state != EntryState::Void => {
            Some(text.as_str())
        }
        _ => None,
    };
    entries.filter_map(text).collect()
}

proptest! {
    #[test]
    fn texts_of_each_agent_are_those_of_its_conversation(
        rows in prop::collection::vec((0_usize..3, any_step()), 0..80),
    ) {
        let events = events(rows);
        let mut transcript = Transcript::default();
        let mut settled: Vec<Entry> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            let changed = transcript.push(event);
            // The same work for each event: what streams, and what this event is about.
            prop_assert!(changed.added.len() <= 1, "{changed:?}");
            // What cannot change does not.
            for entry in &settled {
                prop_assert_eq!(transcript.entry(entry.id), Some(entry));
            }
            settled = transcript.entries().filter(|e| e.state != EntryState::Live).cloned().collect();
            for agent in transcript.agents() {
                prop_assert_eq!(
                    read(agent, transcript.entries()), said(agent, &events[..=at]), "{}", agent
                );
            }
        }
    }
}
