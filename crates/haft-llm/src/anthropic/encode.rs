//! Messages and requests in the form of Anthropic Messages.

use haft_types::{Blob, CallResult, Message, Part, ToolSpec, ToolUse};
use serde_json::json;

use super::{NAME, format, late, limits};
use crate::{
    Blobs, Effort, Encoded, Request, Role, Target,
    history::{Item, repaired},
    json::{push_field, push_string},
    shared::{self, NO_OUTPUT, NO_RESULT, NOTHING, push_text},
    think,
    wire::Pieces,
};

const CACHE_MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
/// Fields of a call that are written here.
const OWN_FIELDS: [&str; 5] = ["type", "id", "name", "input", "cache_control"];
/// Bytes of base64 that the API takes for one image.
const MAX_IMAGE: u64 = 5 << 20;

/// Encodes one message.
pub(super) fn message(
    message: &Message,
    target: &Target,
    host: &str,
    blobs: &dyn Blobs,
) -> Encoded {
    let mut content = Content::default();
    let role = match message {
        Message::User { parts, .. } => {
            for part in parts {
                content.said(part, target, blobs);
            }
            Role::User
        }
        Message::Assistant { wire, model, host: by, parts } => {
            let own = wire == NAME && *model == target.model;
            let same_host = own && (by.is_empty() || by == host);
            content.answer(parts, own, &Source { model, host, same_host });
            Role::Assistant
        }
        Message::Results { results } => {
            content.results(results, target, blobs);
            Role::Results
        }
    };
    content.encoded(role)
}

/// Whom an answer came from, and goes back to.
struct Source<'a> {
    model: &'a str,
    host: &'a str,
    same_host: bool,
}

/// The provider's own server, which takes no thinking without its proof.
const OWN_HOST: &str = "api.anthropic.com:443";

/// The blocks of a message, as they are written.
#[derive(Default)]
struct Content {
    blocks: String,
    /// False when the last block is one that cannot carry a cache mark.
    markable: bool,
    optional: Vec<(String, std::ops::Range<usize>)>,
    calls: Vec<String>,
    results: Vec<(String, std::ops::Range<usize>)>,
}

impl Content {
    fn encoded(mut self, role: Role) -> Encoded {
        // The API refuses empty messages, and answers that end in thinking.
        if self.blocks.is_empty() || !self.markable {
            self.text(NOTHING);
        }
        let name = if role == Role::Assistant { "assistant" } else { "user" };
        let head = format!("{{\"role\":\"{name}\",\"content\":[");
        for (_, range) in self.results.iter_mut().chain(&mut self.optional) {
            *range = range.start + head.len()..range.end + head.len();
        }
        let json = head + &self.blocks + "]}";
        let mark = self.markable.then(|| json.len() - "}]}".len());
        let Self { optional, calls, results, .. } = self;
        Encoded::of(Pieces { json, mark, optional, calls, results, ..Pieces::new(role) })
    }

    fn next(&mut self) -> &mut String {
        if !self.blocks.is_empty() {
            self.blocks.push(',');
        }
        self.markable = true;
        &mut self.blocks
    }

    fn text(&mut self, text: &str) {
        push_text(self.next(), text);
    }

    fn said(&mut self, part: &Part, target: &Target, blobs: &dyn Blobs) {
        match part {
            Part::Text { text } if shared::says_something(part) => self.text(text),
            Part::Image { blob } => push_image(self.next(), blob, target, blobs),
            _ => {}
        }
    }

    /// `own` tells whether the target itself said it.
    fn answer(&mut self, parts: &[Part], own: bool, source: &Source<'_>) {
        let mut rest = parts;
        while let Some((part, after)) = rest.split_first() {
            if is_in_text(part) && source.same_host {
                let with_text = matches!(after.first(), Some(Part::Text { .. }));
                let (tagged, after) = rest.split_at(1 + usize::from(with_text));
                self.text(&shared::joined_texts(tagged, true).concat());
                rest = after;
            } else {
                self.answered(part, own, source);
                rest = after;
            }
        }
    }

    fn answered(&mut self, part: &Part, own: bool, source: &Source<'_>) {
        match part {
            Part::Text { text } if shared::says_something(part) => self.text(text),
            Part::Thinking { .. } if is_in_text(part) => {}
            Part::Thinking { text, signature: Some(signature) } if own => {
                self.thinking(text, signature);
            }
            Part::Thinking { text, signature: None }
                if source.same_host && source.host != OWN_HOST && !source.host.is_empty() =>
            {
                let start = self.thinking(text, "");
                // Another block always follows, so the comma behind this one goes with it.
                self.optional.push(("thinking".into(), start..self.blocks.len() + 1));
            }
            Part::Opaque { wire: by_wire, model: by_model, json }
                if own
                    && by_wire == NAME
                    && by_model == source.model
                    && json.starts_with('{')
                    && shared::is_json(json) =>
            {
                self.next().push_str(json);
                self.markable = false;
            }
            Part::Call(call) => self.call(call, source.same_host),
            _ => {}
        }
    }

    /// Adds a block of thinking; gives where it begins.
    fn thinking(&mut self, text: &str, signature: &str) -> usize {
        let out = self.next();
        let start = out.len();
        out.push_str("{\"type\":\"thinking\",");
        push_field(out, "thinking", text);
        out.push(',');
        push_field(out, "signature", signature);
        out.push('}');
        self.markable = false;
        start
    }

    fn call(&mut self, call: &ToolUse, same_host: bool) {
        let id = shared::wire_id(&call.id);
        self.next();
        let out = &mut self.blocks;
        out.push_str("{\"type\":\"tool_use\",");
        push_field(out, "id", &id);
        out.push(',');
        push_field(out, "name", &shared::wire_name(&call.name));
        out.push_str(",\"input\":");
        out.push_str(&shared::replayed_arguments(&call.raw, call.input.as_ref()));
        if let Some(extra) = call.extra.as_deref().filter(|_| same_host) {
            shared::push_fields(out, extra, &OWN_FIELDS, &mut self.optional);
        }
        out.push('}');
        self.calls.push(id);
    }

    fn results(&mut self, results: &[CallResult], target: &Target, blobs: &dyn Blobs) {
        // The API refuses images inside an error result; they follow the results instead.
        let mut after = Vec::new();
        for result in results {
            let id = shared::wire_id(&result.id);
            let is_error = result.outcome.status.is_error();
            self.next();
            let start = self.blocks.len();
            self.blocks.push_str("{\"type\":\"tool_result\",");
            push_field(&mut self.blocks, "tool_use_id", &id);
            self.blocks.push_str(",\"content\":[");
            let from = self.blocks.len();
            for part in &result.outcome.content {
                let separator = if self.blocks.len() > from { "," } else { "" };
                match part {
                    Part::Text { text } if shared::says_something(part) => {
                        self.blocks.push_str(separator);
                        push_text(&mut self.blocks, text);
                    }
                    Part::Image { blob } if is_error => after.push(blob),
                    Part::Image { blob } => {
                        self.blocks.push_str(separator);
                        push_image(&mut self.blocks, blob, target, blobs);
                    }
                    _ => {}
                }
            }
            if self.blocks.len() == from {
                push_text(&mut self.blocks, NO_OUTPUT);
            }
            self.blocks.push_str(if is_error { "],\"is_error\":true}" } else { "]}" });
            self.results.push((id, start..self.blocks.len()));
        }
        for blob in after {
            push_image(self.next(), blob, target, blobs);
        }
    }
}

/// Reports whether a part is thinking that stood in the text.
fn is_in_text(part: &Part) -> bool {
    match part {
        Part::Thinking { text, signature: Some(signature) } => {
            think::as_it_came(text, signature).is_some()
        }
        _ => false,
    }
}

fn push_image(out: &mut String, blob: &Blob, target: &Target, blobs: &dyn Blobs) {
    let picture = shared::picture(blob, target, blobs, MAX_IMAGE);
    shared::push_picture(out, picture, |out, mime, base64| {
        out.push_str("{\"type\":\"image\",\"source\":{\"type\":\"base64\",");
        push_field(out, "media_type", mime);
        out.push_str(",\"data\":\"");
        out.push_str(base64);
        out.push_str("\"}}");
    });
}

/// The field that asks why the cache did not have a prefix.
const DIAGNOSTICS: &str = "diagnostics";
/// What a server may refuse, and that it is asked without then.
pub(super) const OPTIONAL: &[&str] = &[DIAGNOSTICS, format::OPTIONAL[0], format::OPTIONAL[1]];

/// Encodes the tool definitions.
pub(super) fn tools(tools: &[ToolSpec]) -> String {
    let list = shared::tool_list(tools, ["{", "input_schema", "}"]);
    shared::with_hosted(list, tools, |search| {
        let mut json = json!({"type": "web_search_20250305", "name": "web_search"});
        if !search.domains.is_empty() {
            json["allowed_domains"] = json!(search.domains);
        }
        json
    })
}

/// Joins a request: what changes least stands first.
pub(super) fn request(request: &Request, is_makers: bool) -> String {
    let items = repaired(&request.messages);
    let mut out = shared::body_for(request, 2_048);
    let max = request.max_tokens.unwrap_or_else(|| limits::default_max_tokens(&request.model));
    out.push('{');
    push_field(&mut out, "model", &request.model);
    out.push_str(",\"max_tokens\":");
    out.push_str(&max.to_string());
    out.push_str(if request.whole { ",\"stream\":false" } else { ",\"stream\":true" });
    let effort = limits::push_thinking(&mut out, &request.model, request.effort, max);
    push_config(&mut out, effort, request);
    if is_makers && !request.without.iter().any(|without| without == DIAGNOSTICS) {
        out.push_str(",\"diagnostics\":{\"previous_message_id\":");
        match &request.previous {
            Some(id) => push_string(&mut out, id),
            None => out.push_str("null"),
        }
        out.push('}');
    }
    if let Some(tools) = request.tools.strip_suffix("}]") {
        out.push_str(",\"tools\":");
        out.push_str(tools);
        // What the model does not see yet cannot have one.
        if !tools.ends_with(late::DEFERRED) {
            out.push_str(CACHE_MARK);
        }
        out.push_str("}]");
    }
    push_system(&mut out, &request.system);
    out.push_str(",\"messages\":[");
    let marks = marks(&items);
    shared::push_list(&mut out, items.iter().enumerate(), |out, (at, item)| {
        push_item(out, item, marks.contains(&Some(at)), &request.without);
    });
    out.push_str("]}");
    out
}

/// Appends what stands in `output_config`, if anything does.
fn push_config(out: &mut String, effort: Option<Effort>, request: &Request) {
    let is_refused = |field: &&&str| request.without.iter().any(|without| without == **field);
    let is_formatted =
        !request.format.is_empty() && format::OPTIONAL.iter().find(is_refused).is_none();
    if effort.is_none() && !is_formatted {
        return;
    }
    out.push_str(",\"output_config\":{");
    if let Some(effort) = effort {
        push_field(out, "effort", effort.name());
    }
    if is_formatted {
        out.push_str(if effort.is_some() { ",\"format\":" } else { "\"format\":" });
        out.push_str(&request.format);
    }
    out.push('}');
}

fn push_system(out: &mut String, system: &[String]) {
    let mut parts = system.iter().filter(|part| !part.trim().is_empty()).peekable();
    if parts.peek().is_none() {
        return;
    }
    out.push_str(",\"system\":[");
    while let Some(part) = parts.next() {
        push_text(out, part);
        if parts.peek().is_some() {
            out.push(',');
        } else {
            out.pop();
            out.push_str(CACHE_MARK);
            out.push('}');
        }
    }
    out.push(']');
}

/// Positions of the last two messages of the person's side: the newest is written to the cache,
/// the one before was written by the request before and is found again.
fn marks(items: &[Item<'_>]) -> [Option<usize>; 2] {
    let mut markable = items.iter().enumerate().rev().filter(|(_, item)| match item {
        Item::Whole(message) => {
            message.role() != Role::Assistant && message.pieces().mark.is_some()
        }
        Item::Filler(_) => true,
        _ => false,
    });
    [markable.next().map(|(at, _)| at), markable.next().map(|(at, _)| at)]
}

fn push_item(out: &mut String, item: &Item<'_>, marked: bool, without: &[String]) {
    match item {
        Item::Whole(message) => {
            let json = message.json();
            match message.pieces().mark.filter(|_| marked) {
                Some(at) => {
                    out.push_str(&json[..at]);
                    out.push_str(CACHE_MARK);
                    out.push_str(&json[at..]);
                }
                None => shared::push_message(out, message, without),
            }
        }
        Item::Some(message, kept) => {
            out.push_str("{\"role\":\"user\",\"content\":[");
            shared::push_kept(out, message, kept);
            out.push_str("]}");
        }
        Item::Missing(ids) => {
            out.push_str("{\"role\":\"user\",\"content\":[");
            shared::push_list(out, ids, |out, id| {
                out.push_str("{\"type\":\"tool_result\",");
                push_field(out, "tool_use_id", id);
                out.push_str(",\"content\":");
                push_string(out, NO_RESULT);
                out.push_str(",\"is_error\":true}");
            });
            out.push_str("]}");
        }
        Item::Filler(text) => {
            out.push_str("{\"role\":\"user\",\"content\":[");
            push_text(out, text);
            if marked {
                out.pop();
                out.push_str(CACHE_MARK);
                out.push('}');
            }
            out.push_str("]}");
        }
    }
}
