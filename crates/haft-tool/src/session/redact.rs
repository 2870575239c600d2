//! Redaction: hides the values of secrets in calls and events.
//!
//! **Invariant:** only texts change: fields that describe the shape of a value still do. Paths of
//! receipts are not changed, since undo needs them.

use std::borrow::Cow;

use haft_text::secrets::Secrets;
use haft_types::{
    Body, Cell, Detail, DiffLine, FileMatches, HostPath, MatchLine, Node, Outcome, Part, Plan,
    Question, Reply, Shape, Style, Target, ToolUse, TurnEnd,
};
use serde_json::{Map, Value};

/// How texts are looked at.
#[derive(Clone, Copy)]
struct Hider<'a> {
    secrets: &'a Secrets,
    /// Whether values are learnt from them, too.
    learns: bool,
}

/// Hides secrets in what a call gives back, and learns what it shows by its name.
pub(crate) fn outcome(secrets: &Secrets, outcome: &mut Outcome) {
    Hider { secrets, learns: true }.outcome(outcome);
}

/// Learns what arguments show by their names.
pub(crate) fn learn(secrets: &Secrets, input: &Value) {
    Hider { secrets, learns: true }.value(&mut input.clone());
}

/// Hides secrets in an event of any kind.
///
/// Text that the model made up is no secret: no values are learnt from its words, or from questions
/// about its calls. The result of a call was searched before it was cut. Paths of receipts are not
/// changed, since undo needs them.
pub fn hide_in(secrets: &Secrets, body: &mut Body) {
    let known = Hider { secrets, learns: false };
    let learning = Hider { secrets, learns: true };
    match body {
        Body::User { parts, .. } | Body::Unsent { parts } => {
            for part in parts {
                learning.part(part);
            }
        }
        Body::Queue { waiting } => {
            for part in waiting.iter_mut().flat_map(|queued| &mut queued.parts) {
                learning.part(part);
            }
        }
        Body::AnswerPart { part, .. } => known.part(part),
        Body::CallPart { json, .. } => known.text(json),
        Body::CallOutput { text, .. } => known.text(text),
        Body::Pinned { system, .. } => system.iter_mut().for_each(|part| learning.text(part)),
        Body::CallStarted { input, plan, .. } => {
            if let Some(input) = input {
                learning.value(input);
            }
            if let Some(plan) = plan {
                known.plan(plan);
            }
        }
        Body::CallProgress { detail, .. } => learning.detail(detail),
        Body::Asked { question } => known.question(question),
        Body::Answered { reply, .. } => learning.reply(reply),
        Body::JobStarted { title, .. } => known.text(title),
        Body::Notice { text, .. }
        | Body::AnswerFailed { error: text, .. }
        | Body::TurnEnded { end: TurnEnd::Failed { error: text }, .. }
        | Body::TurnEnded { end: TurnEnd::Limit { reason: text }, .. } => learning.text(text),
        Body::CallEnded { outcome, .. } => known.outcome(outcome),
        Body::Compacted { summary, .. } => known.text(summary),
        Body::State { key, value } => {
            if let Cow::Owned(hidden) = secrets.hide_known(key) {
                *key = hidden.into();
            }
            // A call may keep what it read before its result is looked through.
            learning.value(value);
        }
        _ => {}
    }
}

impl Hider<'_> {
    fn text(self, text: &mut String) {
        let hidden =
            if self.learns { self.secrets.hide(text) } else { self.secrets.hide_known(text) };
        if let Cow::Owned(hidden) = hidden {
            *text = hidden;
        }
    }

    fn texts<'a>(self, texts: impl IntoIterator<Item = &'a mut String>) {
        texts.into_iter().for_each(|text| self.text(text));
    }

    fn outcome(self, outcome: &mut Outcome) {
        outcome.content.iter_mut().for_each(|part| self.part(part));
        outcome.data.iter_mut().for_each(|data| self.value(data));
        outcome.detail.iter_mut().for_each(|detail| self.detail(detail));
        self.texts(&mut outcome.notes);
        if let Some(denial) = &mut outcome.denial {
            self.texts(denial.rule.iter_mut().chain([&mut denial.reason]));
        }
    }

    fn part(self, part: &mut Part) {
        match part {
            // Thinking was looked through as it came: a proof of it is for its very words.
            Part::Text { text } | Part::Thinking { text, signature: None } => self.text(text),
            Part::Call(call) => self.call(call),
            Part::Thinking { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
        }
    }

    fn call(self, call: &mut ToolUse) {
        let Some(input) = &mut call.input else { return self.text(&mut call.raw) };
        if matches!(self.secrets.hide_known(&call.raw), Cow::Owned(_)) {
            self.value(input);
            call.raw = input.to_string();
        }
    }

    fn path(self, path: &mut HostPath) {
        let Some(text) = path.as_str() else { return };
        let Cow::Owned(hidden) = self.secrets.hide_known(text) else { return };
        let style = if text.starts_with('/') { Style::Posix } else { Style::Windows };
        if let Ok(hidden) = HostPath::new(hidden.as_bytes(), style) {
            *path = hidden;
        }
    }

    fn value(self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(all) => all.iter_mut().for_each(|value| self.value(value)),
            Value::Object(map) => self.fields(map),
            _ => {}
        }
    }

    fn fields(self, map: &mut Map<String, Value>) {
        for (name, value) in map.iter_mut() {
            match value {
                Value::String(text) if self.learns => {
                    if let Some(hidden) = self.secrets.hide_under(name, text) {
                        *text = hidden;
                    }
                }
                value => self.value(value),
            }
        }
        if map.keys().any(|name| matches!(self.secrets.hide_known(name), Cow::Owned(_))) {
            let named = std::mem::take(map).into_iter();
            map.extend(named.map(|(name, value)| (self.secrets.hide_known(&name).into(), value)));
        }
    }

    fn detail(self, detail: &mut Detail) {
        match &mut detail.shape {
            Shape::File { path, text, .. } => {
                self.path(path);
                self.text(text);
            }
            Shape::Diff { path, from, hunks, .. } => {
                self.path(path);
                if let Some(from) = from {
                    self.path(from);
                }
                let lines = hunks.iter_mut().flat_map(|hunk| &mut hunk.lines);
                self.texts(lines.map(|DiffLine { text, .. }| text));
            }
            Shape::Entries { root, entries } => {
                self.path(root);
                for entry in entries {
                    self.texts([&mut entry.name].into_iter().chain(&mut entry.target));
                }
            }
            Shape::Matches { root, files } => {
                self.path(root);
                for FileMatches { path, lines, .. } in files {
                    self.text(path);
                    for line in lines {
                        self.found(line);
                    }
                }
            }
            Shape::Terminal { command, output, note, .. } => {
                self.texts([command, output].into_iter().chain(note));
            }
            Shape::Markdown { text }
            | Shape::Thought { text }
            | Shape::Message { text }
            | Shape::Progress { text, .. } => self.text(text),
            Shape::Sent { path, caption, .. } => {
                self.path(path);
                self.texts(caption);
            }
            Shape::Todo { items } => self.texts(items.iter_mut().map(|item| &mut item.text)),
            Shape::Image { path, .. } => path.iter_mut().for_each(|path| self.path(path)),
            Shape::Tree { nodes } => nodes.iter_mut().for_each(|node| self.node(node)),
            Shape::Table { columns, rows } => {
                let texts = rows.iter_mut().flatten().filter_map(|cell| match cell {
                    Cell::Text(text) => Some(text),
                    Cell::Number(_) => None,
                });
                self.texts(columns.iter_mut().chain(texts));
            }
            Shape::Many { details } => details.iter_mut().for_each(|detail| self.detail(detail)),
            Shape::Json { value } => self.value(value),
        }
    }

    /// A line that was found; where something of it is hidden, the whole line counts as found.
    fn found(self, line: &mut MatchLine) {
        let hidden = if self.learns {
            self.secrets.hide(&line.text)
        } else {
            self.secrets.hide_known(&line.text)
        };
        let Cow::Owned(hidden) = hidden else { return };
        let all = u32::try_from(hidden.len()).unwrap_or(u32::MAX);
        line.text = hidden;
        if !line.spans.is_empty() {
            line.spans = vec![(0, all)];
        }
    }

    fn node(self, node: &mut Node) {
        self.text(&mut node.label);
        node.children.iter_mut().for_each(|node| self.node(node));
    }

    fn plan(self, plan: &mut Plan) {
        self.text(&mut plan.title);
        for effect in &mut plan.effects {
            match &mut effect.target {
                Target::Path { path, .. } | Target::Tree { root: path } => self.path(path),
                Target::Command { text, .. } => self.text(text),
                Target::Net { host } => self.text(host),
                Target::State { .. } | Target::Secret { .. } | Target::Anything => {}
            }
        }
    }

    fn question(self, question: &mut Question) {
        self.text(&mut question.text);
        self.texts(&mut question.command);
        question.preview.iter_mut().for_each(|preview| {
            Hider { learns: true, ..self }.detail(preview);
        });
        self.texts(question.options.iter_mut().map(|choice| &mut choice.label));
        question.form.iter_mut().for_each(|form| self.value(form));
    }

    fn reply(self, reply: &mut Reply) {
        self.texts(&mut reply.text);
        reply.input.iter_mut().for_each(|input| self.value(input));
    }
}
