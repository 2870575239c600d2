//! Tools that the model gets to know behind its first request: how a conversation says which those are,
//! and how that is sent.
//!
//! What is known follows from the messages alone: results of searches, and messages of haft that name
//! tools. So a resumed conversation, one that was taken back and one with another model know the same.
//!
//! **Invariant:** what stands before the conversation stays as it is. A tool that leaves view with older
//! messages is told again behind them.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, PoisonError},
};

use haft_llm::{CALL_TOOL, Encoded, LateTools, Provider, Target, Wire, real_name};
use haft_session::Fold;
use haft_tool::{RecordError, ToolSet};
use haft_types::{
    Body, CallResult, EventId, From, Loading, Message, Mode, Part, ToolSpec, ToolUse,
};

use super::{Agent, AgentConfig};
use crate::Bus;

/// How a message begins that makes tools known; their names follow.
const HEAD: &str = "These tools are there from here on: ";

/// What a conversation says of late tools.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The revision of the conversation, and how many of its messages were looked at.
    at: (u64, usize),
    /// The person's newest message.
    said: Option<EventId>,
    /// The tools that are known.
    tools: BTreeSet<String>,
    /// Those that were called, known or not.
    called: BTreeSet<String>,
    /// Those that left view with older messages.
    gone: BTreeSet<String>,
}

impl Known {
    /// Looks at messages that are new; at all of them where older ones have changed.
    fn look_at(&mut self, fold: &Fold, set: &ToolSet) {
        let (messages, revision) = (fold.final_messages(), fold.revision());
        if self.at.0 != revision {
            let before = std::mem::take(self);
            // One that was taken back to an earlier place knows what it knew there.
            let has = |said| fold.person_messages().iter().any(|(event, _)| *event == said);
            if before.said.is_none_or(has) {
                self.gone = before.tools;
                self.gone.extend(before.gone);
            }
            self.at = (revision, 0);
        }
        self.take(messages.get(self.at.1..).unwrap_or_default(), set);
        self.at.1 = messages.len();
        self.said = fold.person_messages().last().map(|(event, _)| *event);
        let Self { tools, gone, .. } = self;
        gone.retain(|name| !tools.contains(name));
    }

    fn take(&mut self, messages: &[Message], set: &ToolSet) {
        for message in messages {
            match message {
                Message::User { .. } => {
                    self.tools.extend(named_in(message).into_iter().flatten().map(str::to_owned));
                }
                Message::Assistant { parts, .. } => {
                    let calls = parts.iter().filter_map(call_of);
                    let late = calls.filter_map(|call| set.spec(&real_name(call)));
                    let late = late.filter(|spec| spec.loading == Loading::Deferred);
                    self.called.extend(late.map(|spec| spec.name.to_string()));
                }
                Message::Results { results } => {
                    let found = results.iter().flat_map(|result| loaded(result, set));
                    self.tools.extend(found.map(str::to_owned));
                }
            }
        }
    }

    /// Names of deferred tools that are to be made known now.
    fn missing(&self, set: &ToolSet, mode: Mode) -> Vec<String> {
        let is_wanted = |spec: &&Arc<ToolSpec>| {
            let name = &*spec.name;
            let wanted = spec.known_in == Some(mode)
                || self.called.contains(name)
                || self.gone.contains(name);
            wanted && !self.tools.contains(name)
        };
        set.deferred().filter(is_wanted).map(|spec| spec.name.to_string()).collect()
    }
}

fn call_of(part: &Part) -> Option<&ToolUse> {
    if let Part::Call(call) = part { Some(call) } else { None }
}

/// The tools that a message of haft makes known; none where it is about something else.
fn named_in(message: &Message) -> Option<Vec<&str>> {
    let Message::User { from: From::Haft, parts } = message else { return None };
    let [Part::Text { text }] = &parts[..] else { return None };
    let names = text.strip_prefix(HEAD)?.strip_suffix('.')?;
    Some(names.split(", ").collect())
}

fn message_of(names: &[String]) -> String {
    format!("{HEAD}{}.", names.join(", "))
}

/// The names of the tools that a search found; none where it is no search.
fn loaded<'a>(result: &'a CallResult, set: &ToolSet) -> Vec<&'a str> {
    let is_search = set.spec(&result.name).is_some_and(|spec| spec.finds);
    if is_search { result.outcome.loaded_tools() } else { Vec::new() }
}

/// Encodes messages with the tools that they make known.
pub(super) struct Encoder<'a> {
    pub provider: &'a dyn Provider,
    pub target: &'a Target,
    pub bus: &'a Bus,
    pub set: &'a ToolSet,
    /// Names of the tools that requests declare.
    pub declared: &'a HashSet<String>,
}

impl Encoder<'_> {
    /// A message that follows `before`, as it is sent: as one piece, or as several where tools were found.
    pub fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<Encoded> {
        let Self { provider, target, bus, .. } = self;
        let special = provider.wire().and_then(|wire| match message {
            Message::Results { results } => self.results(wire, before, results),
            _ => named_in(message).and_then(|names| self.additions(wire, &names)),
        });
        special.unwrap_or_else(|| vec![provider.encode(message, target, *bus)])
    }

    /// The tools of these names that are still there: those that requests declare, and the others.
    fn specs(&self, names: &[&str]) -> [Vec<ToolSpec>; 2] {
        let specs = names.iter().filter_map(|name| self.set.spec(name));
        let late = specs.filter(|spec| spec.loading == Loading::Deferred);
        let all = late.map(|spec| (**spec).clone());
        let (declared, others) = all.partition(|spec| self.declared.contains(&*spec.name));
        [declared, others]
    }

    fn added(&self, wire: &dyn Wire, tools: &[ToolSpec], are_declared: bool) -> Option<Encoded> {
        let late = LateTools { tools, are_declared };
        (!tools.is_empty()).then(|| wire.late_tools(&late, self.target))
    }

    /// Tools that come late; none where no tool is there any more.
    fn additions(&self, wire: &dyn Wire, names: &[&str]) -> Option<Vec<Encoded>> {
        let [declared, others] = self.specs(names);
        let added = [self.added(wire, &declared, true), self.added(wire, &others, false)];
        let added: Vec<Encoded> = added.into_iter().flatten().collect();
        (!added.is_empty()).then_some(added)
    }

    /// Results among which is one of a search; none where there is no such.
    fn results(
        &self,
        wire: &dyn Wire,
        before: Option<&Message>,
        results: &[CallResult],
    ) -> Option<Vec<Encoded>> {
        let is_search = |result: &CallResult| {
            result.name != CALL_TOOL && self.set.spec(&result.name).is_some_and(|spec| spec.finds)
        };
        if !results.iter().any(is_search) {
            return None;
        }
        let (mut out, mut behind, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for result in results {
            let found = is_search(result).then(|| self.found(wire, before, result)).flatten();
            let Some((first, more)) = found else {
                plain.push(result.clone());
                continue;
            };
            self.flush(&mut plain, &mut out);
            out.push(first);
            behind.extend(more);
        }
        self.flush(&mut plain, &mut out);
        out.append(&mut behind);
        Some(out)
    }

    /// Results of other calls, in one piece.
    fn flush(&self, plain: &mut Vec<CallResult>, out: &mut Vec<Encoded>) {
        let Self { provider, target, bus, .. } = self;
        if !plain.is_empty() {
            let message = Message::Results { results: std::mem::take(plain) };
            out.push(provider.encode(&message, target, *bus));
        }
    }

    /// The result of a search, and what stands behind all results; none where it is one like all others.
    fn found(
        &self,
        wire: &dyn Wire,
        before: Option<&Message>,
        result: &CallResult,
    ) -> Option<(Encoded, Vec<Encoded>)> {
        let [declared, others] = self.specs(&loaded(result, self.set));
        let call = self.search_call(before, result);
        // A search in a form of the wire's own is answered in that form, whatever came of it.
        let is_own_form = call.extra.is_some() && {
            let finder = self.set.spec(&result.name)?;
            wire.tool_search(finder, self.target).is_some()
        };
        let is_empty = declared.is_empty() && others.is_empty();
        if is_empty && !is_own_form {
            return None;
        }
        let are_declared = !declared.is_empty();
        let (tools, rest) = if are_declared { (declared, others) } else { (others, Vec::new()) };
        let late = LateTools { tools: &tools, are_declared };
        let (first, more) = wire.found_tools(&call, &late, self.target);
        let more = more.into_iter().chain(self.added(wire, &rest, false));
        // What the form has no place for: where nothing was found all, else what others added.
        let said: Vec<&str> = result.outcome.content.iter().filter_map(text_of).collect();
        let said = said[usize::from(!is_empty).min(said.len())..].join("\n");
        let said = (!said.trim().is_empty()).then(|| wire.system_message(&said, self.target));
        Some((first, more.chain(said).collect()))
    }

    /// The call of a search, without what another server made of it.
    fn search_call(&self, before: Option<&Message>, result: &CallResult) -> ToolUse {
        let CallResult { id, wire_id, name, .. } = result;
        let raw = String::new();
        let other = ToolUse::from_wire(id.clone(), wire_id.clone(), name.clone(), raw);
        let Some(Message::Assistant { wire, model, host, parts }) = before else { return other };
        let is_own = wire == self.provider.name()
            && *model == self.target.model
            && (host.is_empty() || host == self.provider.host());
        let call = parts.iter().filter_map(call_of).find(|call| call.id == *id);
        let Some(call) = call else { return other };
        ToolUse { extra: call.extra.clone().filter(|_| is_own), ..call.clone() }
    }
}

fn text_of(part: &Part) -> Option<&str> {
    if let Part::Text { text } = part { Some(text) } else { None }
}

impl Agent {
    /// Makes tools known that the model called by their names, that the mode wants, and that left view.
    pub(super) fn tell_late_tools(&mut self) -> Result<(), RecordError> {
        let dispatcher = self.setup.dispatcher.clone();
        if dispatcher.tools.deferred().next().is_none() {
            return Ok(());
        }
        self.look_at_tools();
        let missing = self.known.missing(&dispatcher.tools, dispatcher.permissions().mode);
        if missing.is_empty() {
            return Ok(());
        }
        let parts = vec![Part::text(message_of(&missing))];
        self.emit(Body::User { from: From::Haft, parts })
    }

    fn look_at_tools(&mut self) {
        let set = self.setup.dispatcher.tools.clone();
        let fold = self.fold.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.look_at(&fold, &set);
    }

    /// Bytes that telling all known tools again would take.
    pub(super) fn bytes_of_known_tools(&self) -> usize {
        let names: Vec<String> = self.known.tools.iter().cloned().collect();
        if names.is_empty() {
            return 0;
        }
        let message =
            Message::User { from: From::Haft, parts: vec![Part::text(message_of(&names))] };
        self.encoder().encode(None, &message).iter().map(|piece| piece.json().len()).sum()
    }

    pub(super) fn encoder(&self) -> Encoder<'_> {
        let AgentConfig { provider, target, bus, dispatcher, .. } = &self.setup;
        let set = &dispatcher.tools;
        Encoder { provider: &**provider, target, bus, set, declared: &self.declared }
    }
}

#[cfg(test)]
mod tests {
    use haft_tool::{AnyTool, Cx, Registry, Tool};
    use haft_types::{AgentPath, CallId, Env, Event, Outcome, Stop, ToolError, TurnId, Usage};

    use super::*;

    struct Bare(ToolSpec);

    impl Tool for Bare {
        type Input = serde_json::Value;

        fn spec(&self, _: &Env) -> ToolSpec {
            self.0.clone()
        }

        async fn run(&self, _: serde_json::Value, _: &Cx) -> Result<Outcome, ToolError> {
            Ok(Outcome::text("unused"))
        }
    }

    fn set() -> ToolSet {
        let spec = |name: &'static str, loading, finds| {
            let spec = ToolSpec { loading, finds, ..ToolSpec::new(name, name, name) };
            Arc::new(Bare(spec)) as Arc<dyn AnyTool>
        };
        let all = vec![
            spec("find_tools", Loading::Normal, true),
            spec("weather", Loading::Deferred, false),
            spec("stars", Loading::Deferred, false),
        ];
        Registry::default().source(all).assemble(&Env::default())
    }

    fn events(bodies: Vec<Body>) -> Vec<Event> {
        let event = |(id, body)| Event {
            v: 1,
            id: Some(EventId(id)),
            parent: None,
            turn: TurnId(1),
            agent: AgentPath::default(),
            at: 1,
            body,
        };
        (1..).zip(bodies).map(event).collect()
    }

    fn said(text: &str) -> Body {
        Body::User { from: From::Person, parts: vec![Part::text(text)] }
    }

    /// An answer with one call, and its result.
    fn called(id: u64, name: &str, outcome: Outcome) -> [Body; 3] {
        let call = ToolUse::new(CallId::nth(id), name, serde_json::json!({}));
        let (wire, stop, usage) = (String::new(), Stop::ToolUse, Usage::default());
        [
            Body::AnswerPart { index: 0, part: Part::Call(call) },
            Body::AnswerEnded { model: "m".into(), host: wire.clone(), wire, stop, usage },
            Body::CallEnded { call: CallId::nth(id), outcome, took: 0 },
        ]
    }

    fn found(names: &[&str]) -> Outcome {
        Outcome::text("found").with_data(Outcome::of_loaded_tools(names))
    }

    #[test]
    fn what_leaves_view_is_missing_and_what_was_taken_back_is_not() {
        let (set, mode) = (set(), Mode::Ask);
        let mut all = vec![said("one")];
        all.extend(called(1, "find_tools", found(&["weather"])));
        all.push(said("two"));
        all.extend(called(2, "stars", Outcome::text("bright")));
        // What another tool says of tools does not count.
        all.extend(called(3, "stars", found(&["stars"])));
        let events = events(all);
        let mut fold = Fold::new(AgentPath::default());
        let mut known = Known::default();
        for event in &events {
            fold.push(event);
            known.look_at(&fold, &set);
        }
        assert_eq!(known.missing(&set, mode), ["stars"]);

        let snip = |fold: &mut Fold| {
            let stretch = fold.stretch("out://c1", "out://c1").unwrap();
            let (from, to, text) = (stretch.from, stretch.to, "dropped".to_owned());
            let body = Body::Snipped { from, to, text };
            fold.push(&Event { id: Some(EventId(100)), body, ..events[0].clone() });
        };
        snip(&mut fold);
        known.look_at(&fold, &set);
        assert_eq!(known.missing(&set, mode), ["weather", "stars"]);

        // Taken back to before the second message: nothing was called by its name then.
        let mut fold = Fold::new(AgentPath::default());
        for event in &events {
            fold.push(event);
        }
        let mut known = Known::default();
        known.look_at(&fold, &set);
        fold.restart(events[..1].iter());
        known.look_at(&fold, &set);
        assert_eq!(known.missing(&set, mode), Vec::<String>::new());
        assert!(known.tools.is_empty(), "{known:?}");
    }
}
