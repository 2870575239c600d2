//! What is written of each entry.

use std::sync::Arc;

use haft_render::{CallEntry, Changed, Content, Entry, EntryState, clean};
use haft_types::{AgentPath, Body, BreakCause, CallId, Event, From, Level};

use super::{View, job_ended, mode_set, said};

impl View {
    /// The text to write for an event, with its own line ends; none for no text.
    pub fn event(&mut self, event: &Arc<Event>) -> Option<String> {
        self.evidence_report = self.evidence.push(event);
        let mut transcript = std::mem::take(&mut self.transcript);
        let Changed { added, mut updated } = transcript.push(event);
        updated.extend(added);
        // What began earlier stands first: an answer, then what became of it.
        updated.sort_unstable();
        // What goes on behind its head leaves what is read meanwhile for later.
        let goes_on = match &event.body {
            Body::CallOutput { .. } => true,
            Body::CallEnded { call, .. } => self.last.as_ref() == Some(call),
            _ => false,
        };
        let mut text = String::new();
        for id in &updated {
            if let Some(entry) = transcript.entry(*id) {
                text.push_str(&self.written(entry, event).unwrap_or_default());
            }
        }
        if let Body::AnswerEnded { .. } = &event.body {
            self.outages.remove(&event.agent);
            if event.agent.is_main() {
                // The next answer is another text, also when nothing is told between them.
                text.push_str(&self.flush());
            }
        }
        for id in &updated {
            if transcript.forget(*id) {
                self.taken.remove(id);
            }
        }
        self.transcript = transcript;
        let ends = !text.is_empty() || matches!(event.body, Body::TurnEnded { .. });
        if ends && !goes_on {
            // It stands before what was just written, which may be a head with more to come.
            let begun = matches!(event.body, Body::CallStarted { .. }).then(|| self.last.take());
            text.insert_str(0, &self.close_group());
            self.last = begun.flatten().or_else(|| self.last.take());
        }
        (!text.is_empty()).then_some(text)
    }

    /// Takes an event that a person sees in another way, or not at all.
    pub fn note(&mut self, event: &Arc<Event>) {
        self.evidence.push(event);
        let Changed { added, updated } = self.transcript.push(event);
        for id in added.into_iter().chain(updated) {
            if let Some(entry) = self.transcript.entry(id)
                && let Content::Text(text) | Content::Thinking(text) = &entry.content
            {
                self.taken.insert(id, text.len());
            }
            if self.transcript.forget(id) {
                self.taken.remove(&id);
            }
        }
    }

    /// What is new of an entry by this event, under the name of its agent.
    fn written(&mut self, entry: &Entry, event: &Event) -> Option<String> {
        if let Content::Call(call) = &entry.content
            && self.runs(call, event)
        {
            return None;
        }
        // Under another name nothing stands behind its head any more.
        let is_other = self.writer != entry.agent;
        let last = if is_other { self.last.take() } else { None };
        let is_streamed = matches!(entry.content, Content::Text(_) | Content::Thinking(_))
            || matches!(event.body, Body::CallOutput { .. });
        let text = if entry.agent.is_main() && is_streamed {
            self.of_main(entry, event)
        } else {
            let text = self.whole(entry, event);
            // What streams belongs to who wrote it: it ends first.
            let is_seen = text.as_ref().is_some_and(|text| !text.is_empty());
            let ends = is_seen || text.is_some() && entry.agent.is_main();
            let before = if ends { self.flush() } else { String::new() };
            let head = if is_seen { self.head(&entry.agent) } else { String::new() };
            return self.or_last(text.map(|text| before + &head + &text), last);
        };
        let text = text.map(|text| self.head(&entry.agent) + &text);
        self.or_last(text, last)
    }

    /// Puts back which call stood last where nothing was written.
    fn or_last(&mut self, text: Option<String>, last: Option<CallId>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty());
        if text.is_none() && last.is_some() {
            self.last = last;
        }
        text
    }

    /// Ends what the main agent streams, under its name.
    pub(super) fn flush(&mut self) -> String {
        let rest = self.line_end();
        if rest.trim().is_empty() { rest } else { self.head(&AgentPath::default()) + &rest }
    }

    /// The name of an agent, where another one wrote last.
    pub(super) fn head(&mut self, agent: &AgentPath) -> String {
        if self.writer == *agent {
            return String::new();
        }
        self.writer.clone_from(agent);
        let name =
            if agent.is_main() { "main".to_owned() } else { super::safe(&agent.to_string()) };
        format!("\n[{name}]\n")
    }

    /// What is written of the main agent while it comes.
    fn of_main(&mut self, entry: &Entry, event: &Event) -> Option<String> {
        match (&entry.content, &event.body) {
            (Content::Text(text), _) => {
                let new = self.new_of(entry, text)?;
                self.streamed(entry.id, new)
            }
            (Content::Thinking(text), _) => {
                let new = self.new_of(entry, text)?;
                self.thought(entry.id, new)
            }
            (_, Body::CallOutput { call, text, .. }) => self.output(call, text),
            _ => None,
        }
    }

    /// What an entry writes once, behind the end of a line.
    fn whole(&mut self, entry: &Entry, event: &Event) -> Option<String> {
        let is_main = entry.agent.is_main();
        match &entry.content {
            // The end of a job is told to people when it comes.
            Content::Message { from: From::Haft | From::Job(_), .. } => None,
            Content::Message { parts, .. } => Some(said(parts)),
            Content::Unsent(parts) => {
                let text = said(parts);
                let text = text.trim().trim_start_matches("> ");
                Some(self.mark(Level::Info, &format!("not sent: {text}")))
            }
            Content::Text(text) if !is_main && entry.state == EntryState::Final => {
                let shown = self.prose(&clean(text));
                Some(format!("\n{}\n", shown.trim_matches('\n')))
            }
            Content::Call(call) => self.call(call, event),
            Content::Failed { error, retried: true } => {
                let text = self.outages.entry(entry.agent.clone()).or_default().describe(error);
                Some(self.mark(Level::Error, &text))
            }
            Content::Failed { error, retried: false } => {
                Some(self.mark(Level::Error, &format!("the answer failed: {error}")))
            }
            Content::Notice(level, text) => Some(self.mark(*level, text)),
            Content::Job { job, end: Some((end, exit)), .. } => {
                Some(self.mark(Level::Info, &job_ended(job, *end, *exit)))
            }
            Content::Job { job, title, end: None } => {
                Some(self.mark(Level::Info, &format!("{job} runs in the background: {title}")))
            }
            Content::Mode { mode, edits, by } => {
                Some(self.mark(Level::Info, &mode_set(*mode, *edits, by)))
            }
            Content::Break { cause: BreakCause::Model, .. } => {
                Some(self.mark(Level::Info, "another model answers from here on"))
            }
            Content::Undone(event) => match &event.body {
                Body::Undone { calls, files, redo, .. } => Some(self.undone(calls, files, *redo)),
                _ => None,
            },
            Content::TurnEnded(end, usage) => {
                let report = self.evidence_report.take().filter(|_| is_main);
                let line = report.map(|report| self.evidence(&report)).unwrap_or_default();
                Some(line + &self.turn_ended(end, *usage).unwrap_or_default())
            }
            Content::Text(_)
            | Content::Thinking(_)
            | Content::Question { .. }
            | Content::Break { .. } => None,
        }
    }

    fn call(&mut self, entry: &CallEntry, event: &Event) -> Option<String> {
        match &event.body {
            Body::CallStarted { call, tool, .. } => {
                let input = entry.input.as_ref();
                let text = self.started(call, tool, input, entry.title.as_deref());
                // Another agent's calls stand under its name.
                if let Some(open) = self.open.get_mut(call).filter(|_| !event.agent.is_main()) {
                    open.looked = None;
                }
                text
            }
            Body::CallEnded { call, outcome, took } => Some(self.ended(call, outcome, *took)),
            _ => None,
        }
    }

    /// What was not taken yet of a text that streams; none where that is all.
    fn new_of<'a>(&mut self, entry: &Entry, text: &'a str) -> Option<&'a str> {
        let taken = self.taken.insert(entry.id, text.len()).unwrap_or_default();
        text.get(taken..).filter(|new| !new.is_empty())
    }
}
