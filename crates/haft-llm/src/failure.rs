//! What a failed answer means: statuses and error objects of all wires become one [`LlmError`].
//!
//! **Invariant:** judged from the status and the server's own error object only, never from the
//! text of an answer. Each message holds the offending value and what to do; never a key.

use haft_net::SseEvent;
use serde_json::Value;

use crate::{Endpoint, LlmError, error::excerpt};

/// What is known about an answer that failed as a whole.
pub(crate) struct Failed<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) status: u16,
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) body: &'a str,
}

/// Judges an answer whose status is not 2xx, or whose body is an error object.
pub(crate) fn of_answer(failed: &Failed<'_>) -> LlmError {
    let Failed { endpoint, url, model, status, .. } = *failed;
    let said = ServerError::read(failed.body);
    let text = endpoint.without_key(&said.text);
    let url = haft_net::shown_url(url);
    let head = format!("{url} answered with status {status}: {text}");
    let (key, address) = (&endpoint.key_variable, &endpoint.url_variable);
    let no_model = || {
        LlmError::NoModel(format!(
            "{head}\nCheck the model's name ({model:?}) and the address in {address}."
        ))
    };
    if said.is_overflow() && matches!(status, 400 | 413 | 422 | 500) {
        return too_long(&head);
    }
    match status {
        200..=299 => said.judge(&head, failed.retry_after_ms).unwrap_or_else(|| {
            LlmError::Protocol(format!("{head}\nAn event stream was expected; check {address}."))
        }),
        300..=399 => LlmError::Config(format!(
            "{head}\nRedirects are not followed, because the key would go along: set {address} \
             to the final address."
        )),
        401 | 403 => LlmError::Config(format!("{head}\nCheck the key in {key}.")),
        402 => LlmError::Config(format!("{head}\nCheck the account that {key} belongs to.")),
        404 => no_model(),
        400 | 410 | 422 if said.is_no_model() => no_model(),
        407 => LlmError::Config(format!("{head}\n{PROXY_PASSWORD}")),
        413 => too_long(&head),
        429 if said.is_quota() => LlmError::Config(format!(
            "{head}\nThe account's quota is used up: check the plan that {key} belongs to."
        )),
        408 | 409 | 425 | 429 | 500..=599 => {
            LlmError::Busy { message: head, retry_after_ms: failed.retry_after_ms, paid: false }
        }
        _ => LlmError::Rejected(head),
    }
}

/// What to do where a proxy answers that it does not know who asks.
pub(crate) const PROXY_PASSWORD: &str = "The proxy wants a name and a password: write them into the variable that \
                                         names it (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY), as \
                                         http://NAME:PASSWORD@HOST:PORT.";

/// Judges an error event inside a stream that began with status 200.
pub(crate) fn in_stream(error: Option<&Value>, data: &str) -> LlmError {
    let said = error.map_or_else(|| ServerError::read(data), |error| ServerError::of(error, data));
    let text = format!("the server broke the answer off: {}", said.text);
    said.judge(&text, None).unwrap_or(LlmError::Rejected(text))
}

/// An event whose data is not what the wire promises.
pub(crate) fn malformed(wire: &str, event: &SseEvent, error: &serde_json::Error) -> LlmError {
    let data = excerpt(&event.data);
    LlmError::Protocol(format!(
        "an event of {wire} is not the JSON that was expected ({error}): {data}"
    ))
}

/// Parts that one answer may have: each event looks its part up among those that are open.
pub(crate) const MAX_PARTS: u32 = 4_096;

/// Refuses an answer of more parts than any model writes.
pub(crate) fn check_parts(parts: u32) -> Result<(), LlmError> {
    if parts <= MAX_PARTS {
        return Ok(());
    }
    Err(LlmError::Endless(format!(
        "the answer has more than {MAX_PARTS} parts; it was given up\nAsk again, for less at once."
    )))
}

/// A stream that ended before the answer did.
pub(crate) fn cut() -> LlmError {
    LlmError::Cut("the answer broke off before its end: the connection was closed".into())
}

/// A stream that ended before its first event.
pub(crate) fn empty() -> LlmError {
    LlmError::Empty("the answer broke off before its beginning: nothing came".into())
}

/// An end mark that no reason came before.
pub(crate) fn no_reason() -> LlmError {
    LlmError::NoReason("the answer ended without a reason, so it may have broken off".into())
}

/// The error in an event that is none of the wire's own, as gateways and servers in front of the
/// model's write theirs; none where it is no error.
pub(crate) fn of_other_shape(event: &Value, data: &str) -> Option<LlmError> {
    let event = if let Value::Array(items) = event { items.first()? } else { event };
    let has_code = ["code", "status"].iter().any(|key| event[*key].is_u64());
    let is_error = event["object"] == "error"
        || ["error", "detail", "errors"].iter().any(|key| is_said(&event[*key]))
        || (has_code && event["message"].is_string());
    is_error.then(|| in_stream(None, data))
}

/// Reports whether a field for an error holds one.
pub(crate) fn is_said(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

fn too_long(head: &str) -> LlmError {
    LlmError::TooLong(format!(
        "{head}\nThe conversation is too long for the model: begin a new \
         session, or go on in this one with a model that takes more."
    ))
}

/// What a server says about an error, whatever the shape.
struct ServerError {
    kind: String,
    code: Option<u64>,
    text: String,
}

impl ServerError {
    fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            _ if body.trim().is_empty() => {
                Self { kind: String::new(), code: None, text: "no message".to_owned() }
            }
            Ok(value) => Self::of(&value, body),
            Err(_) => Self { kind: String::new(), code: None, text: excerpt(body) },
        }
    }

    /// Reads an error, whatever it is wrapped in: `error`, a list, `detail`, `errors`, a choice.
    fn of(value: &Value, whole: &str) -> Self {
        let in_choice = &value["choices"][0]["error"];
        let mut error = if is_said(in_choice) { in_choice } else { value };
        // Each step goes one level in, and no server wraps more often than this.
        for _ in 0..4 {
            let inner = match error {
                Value::Array(items) => items.first(),
                _ => ["error", "errors", "detail"]
                    .iter()
                    .map(|key| &error[*key])
                    .find(|inner| inner.is_object() || inner.is_array() || inner.is_string()),
            };
            match inner {
                Some(inner) => error = inner,
                None => break,
            }
        }
        let field = |key: &str| error.get(key).and_then(Value::as_str);
        let kinds: Vec<&str> = [field("type"), field("code")].into_iter().flatten().collect();
        let code = [error, value].iter().find_map(|value| {
            let code = value.get("code").or_else(|| value.get("status"))?;
            code.as_u64().or_else(|| code.as_str().and_then(|text| text.parse().ok()))
        });
        let message = error.as_str().or_else(|| field("message")).or_else(|| field("msg"));
        let text = match (kinds.first(), message) {
            (Some(kind), Some(message)) => format!("{kind}: {message}"),
            (None, Some(message)) => message.to_owned(),
            _ => whole.to_owned(),
        };
        Self { kind: kinds.join(" "), code, text: excerpt(&text) }
    }

    /// Judges by what the server calls it; none when it has no name that is known.
    fn judge(&self, text: &str, retry_after_ms: Option<u64>) -> Option<LlmError> {
        let text = text.to_owned();
        let is = |names: &[&str]| self.kind.split(' ').any(|kind| names.contains(&kind));
        let code = |range: std::ops::Range<u64>| self.code.is_some_and(|c| range.contains(&c));
        if self.is_overflow() || is(&["request_too_large"]) {
            return Some(too_long(&text));
        }
        let busy = ["overloaded_error", "rate_limit_error", "rate_limit_exceeded", "api_error"];
        let busy_too = ["timeout_error", "server_error", "internal_server_error", "overloaded"];
        if self.is_quota() || is(&["authentication_error", "permission_error", "billing_error"]) {
            return Some(LlmError::Config(text));
        }
        if self.is_no_model() {
            return Some(LlmError::NoModel(text));
        }
        if is(&busy) || is(&busy_too) || code(429..430) || code(500..600) || code(408..409) {
            return Some(LlmError::Busy { message: text, retry_after_ms, paid: false });
        }
        if code(400..500) || is(&["invalid_request_error"]) {
            return Some(LlmError::Rejected(text));
        }
        None
    }

    fn is_quota(&self) -> bool {
        self.kind.contains("insufficient_quota")
    }

    /// Whether it is about a model that is not there, or not any more.
    fn is_no_model(&self) -> bool {
        const KINDS: [&str; 4] =
            ["not_found_error", "model_not_found", "model_decommissioned", "invalid_model"];
        self.kind.split(' ').any(|kind| KINDS.contains(&kind))
    }

    /// Servers name an overflow in many ways, most of them only in words.
    fn is_overflow(&self) -> bool {
        const WORDS: [&str; 9] = [
            "prompt is too long",
            "input is too long",
            "maximum context length",
            "context length exceeded",
            "exceed context limit",
            "exceeds the context window",
            "exceeds the available context size",
            "exceeds the model's maximum context",
            "too many tokens in the prompt",
        ];
        let text = self.text.to_ascii_lowercase();
        self.kind.contains("context_length_exceeded")
            || self.kind.contains("exceed_context_size_error")
            || WORDS.iter().any(|words| text.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, body: &str) -> LlmError {
        let endpoint = Endpoint::openai(None, Some("sk-planted-key".into()));
        let url = "https://h.example/v1/chat/completions";
        let retry_after_ms = None;
        of_answer(&Failed { endpoint: &endpoint, url, model: "m1", status, retry_after_ms, body })
    }

    #[test]
    fn statuses_are_judged_by_what_can_be_done() {
        type Is = fn(&LlmError) -> bool;
        let busy: Is = |error| matches!(error, LlmError::Busy { .. });
        let config: Is = |error| matches!(error, LlmError::Config(_));
        let no_model: Is = |error| matches!(error, LlmError::NoModel(_));
        let too_long: Is = |error| matches!(error, LlmError::TooLong(_));
        let rejected: Is = |error| matches!(error, LlmError::Rejected(_));
        let protocol: Is = |error| matches!(error, LlmError::Protocol(_));
        let cases: &[(u16, &str, Is)] = &[
            (429, r#"{"error":{"message":"slow down"}}"#, busy),
            (429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, config),
            (503, "<html>", busy),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, busy),
            (401, "no", config),
            (402, "no", config),
            (302, "", config),
            (404, r#"{"error":"model not found"}"#, no_model),
            (400, r#"{"error":{"code":"model_decommissioned","message":"m"}}"#, no_model),
            (403, r#"{"error":{"code":"model_not_found","message":"no access"}}"#, config),
            (200, r#"{"type":"error","error":{"type":"not_found_error"}}"#, no_model),
            (413, "", too_long),
            (400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#, too_long),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#, too_long),
            (400, r#"{"error":{"message":"429 is not a field"}}"#, rejected),
            (200, r#"{"error":{"code":502,"message":"upstream"}}"#, busy),
            (200, "<html>hi</html>", protocol),
        ];
        for (status, body, is) in cases {
            let error = judged(*status, body);
            assert!(is(&error), "{status} {body}: {error:?}");
        }
    }

    #[test]
    fn a_message_names_what_to_change_and_never_the_key() {
        let error = judged(401, "bad key sk-planted-key").to_string();
        assert!(error.contains("OPENAI_API_KEY") && error.contains("401"), "{error}");
        assert!(!error.contains("sk-planted-key"), "{error}");
        let error = judged(404, "nope").to_string();
        assert!(error.contains("\"m1\"") && error.contains("OPENAI_BASE_URL"), "{error}");
        let long = judged(400, &"é".repeat(1_000)).to_string();
        assert!(long.chars().count() < 400, "{long}");
    }
}
