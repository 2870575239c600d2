//! What a server's reason for the end of an answer means, on every wire.
//!
//! **Invariant:** a reason that is not known is never a good end: what a server calls the end of
//! an answer may be its own failure.
//!
//! Sources: the references of Chat Completions and Anthropic Messages, and what servers of these
//! wires are known to send.

use haft_types::Stop;

use crate::{LlmError, error::excerpt, failure};

/// What an answer held when its reason came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Content {
    /// True when it made a call.
    pub(crate) called: bool,
    /// True when its words are marked as a refusal.
    pub(crate) refused: bool,
}

/// Judges an end mark: whether something came, and whether it is known why the answer ends.
///
/// # Errors
/// Fails where nothing came before the mark, or no reason for the end.
pub(crate) fn check_mark(is_empty: bool, is_known: bool) -> Result<(), LlmError> {
    // An end with nothing before it is no answer.
    if is_empty {
        return Err(failure::empty());
    }
    if is_known { Ok(()) } else { Err(failure::no_reason()) }
}

/// Judges the reason that a server gave, or none.
///
/// # Errors
/// Fails as [`of_reason`] does.
pub(crate) fn of(reason: Option<&str>, content: Content) -> Result<Stop, LlmError> {
    reason.map_or_else(|| Ok(without_reason(content)), |reason| of_reason(reason, content))
}

/// Judges a reason.
///
/// # Errors
/// Fails with [`LlmError::Busy`] where the server may do better when asked again, and with
/// [`LlmError::Broken`] for every other reason that is no good end.
pub(crate) fn of_reason(reason: &str, content: Content) -> Result<Stop, LlmError> {
    let Content { called, refused } = content;
    match reason.trim().to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Ok(Stop::Length)
        }
        "refusal" | "content_filter" | "sensitive" => Ok(Stop::Refusal),
        "tool_calls" | "tool_use" | "function_call" if called => Ok(Stop::ToolUse),
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed"
        | "pause_turn"
            if called =>
        {
            Ok(Stop::ToolUse)
        }
        "pause_turn" => Ok(Stop::Paused),
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed" => {
            Ok(if refused { Stop::Refusal } else { Stop::EndTurn })
        }
        "network_error" | "abort" | "overloaded" | "insufficient_system_resource" => {
            Err(LlmError::Busy { message: broken_off(reason), retry_after_ms: None, paid: true })
        }
        _ => Err(LlmError::Broken(format!(
            "{}\nWhat had come of it is kept. Ask again, or in other words.",
            broken_off(reason)
        ))),
    }
}

/// The stop of an answer whose server gives no reasons.
fn without_reason(content: Content) -> Stop {
    match content {
        Content { called: true, .. } => Stop::ToolUse,
        Content { refused: true, .. } => Stop::Refusal,
        Content { .. } => Stop::EndTurn,
    }
}

fn broken_off(reason: &str) -> String {
    let reason = excerpt(reason);
    format!("the server ended its answer with the reason {reason:?}, so it is not complete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_reasons_are_good_ends_and_all_others_are_none() {
        let judged =
            |reason: &str, called| of_reason(reason, Content { called, ..Content::default() });
        for reason in ["stop", "END_TURN", "stop_sequence", "eos", "eos_token", "Completed"] {
            assert_eq!(judged(reason, false), Ok(Stop::EndTurn), "{reason}");
            assert_eq!(judged(reason, true), Ok(Stop::ToolUse), "{reason}");
        }
        for reason in ["tool_calls", "TOOL_USE", "function_call"] {
            assert_eq!(judged(reason, true), Ok(Stop::ToolUse), "{reason}");
            assert!(matches!(judged(reason, false), Err(LlmError::Broken(_))), "{reason}");
        }
        for reason in ["length", "max_tokens", "model_length", "model_context_window_exceeded"] {
            assert_eq!(judged(reason, true), Ok(Stop::Length), "{reason}");
        }
        for reason in ["refusal", "content_filter", "sensitive"] {
            assert_eq!(judged(reason, false), Ok(Stop::Refusal), "{reason}");
        }
        for reason in ["network_error", "abort", "overloaded", "insufficient_system_resource"] {
            let error = judged(reason, false).unwrap_err();
            assert!(error.is_retryable() && error.to_string().contains(reason), "{error}");
        }
        for reason in ["MALFORMED_FUNCTION_CALL", "error", "", "cancelled", "x\u{1b}[2J"] {
            let error = judged(reason, true).unwrap_err();
            assert!(!error.is_retryable() && !error.to_string().contains('\u{1b}'), "{error}");
        }
        assert_eq!(judged("pause_turn", false), Ok(Stop::Paused));
    }
}
