//! What can go wrong between a request and its answer, named by what the caller can do.

/// Why a model gave no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The server cannot answer now: ask again later.
    #[error("{message}")]
    Busy {
        /// What the server said, with its status.
        message: String,
        /// How long the server asks to wait, in milliseconds; none when it did not say.
        retry_after_ms: Option<u64>,
        /// True when it gave an answer and ended it by itself: each further one is paid for.
        paid: bool,
    },
    /// No connection came about: the address is wrong, or the network or server is down.
    #[error("{0}")]
    Unreachable(String),
    /// The conversation does not fit the model: shorten it.
    #[error("{0}")]
    TooLong(String),
    /// A key, an address, a model name or a script is wrong: a person must change it.
    #[error("{0}")]
    Config(String),
    /// The server has no such model, or has it no more.
    #[error("{0}")]
    NoModel(String),
    /// The server refuses this request for good.
    #[error("{0}")]
    Rejected(String),
    /// What came back is not what the wire promises.
    #[error("{0}")]
    Protocol(String),
    /// The answer is more than any model writes, so it was given up.
    #[error("{0}")]
    Endless(String),
    /// The server ended the answer with a reason that is no good end: what came of it counts.
    #[error("{0}")]
    Broken(String),
    /// The answer ended with an end mark, but without a reason: perhaps it broke off.
    #[error("{0}")]
    NoReason(String),
    /// The server answered, and ended before it said anything.
    #[error("{0}")]
    Empty(String),
    /// The server answered with a body that is no answer; this is the body.
    #[error("the server answered with status 200, but with no answer: {0}")]
    NoAnswer(String),
    /// The answer broke off or stalled before its end.
    #[error("{0}")]
    Cut(String),
    /// The caller's token was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

impl LlmError {
    /// Reports whether the same request may succeed when it is sent again.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Unreachable(_)
                | Self::Cut(_)
                | Self::NoReason(_)
                | Self::Empty(_)
        )
    }

    /// Reports whether the model cannot be reached, so that another one may answer the same request.
    pub const fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Unreachable(_)
                | Self::NoModel(_)
                | Self::Cut(_)
                | Self::Empty(_)
        )
    }

    /// The kind of the error, in the words of Claude Code's hooks.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Busy { message, .. } if message.contains("429") => "rate_limit",
            Self::Busy { .. } => "overloaded",
            Self::Config(_) => "authentication_failed",
            Self::NoModel(_) => "model_not_found",
            Self::Rejected(_) | Self::TooLong(_) => "invalid_request",
            Self::Unreachable(_)
            | Self::Protocol(_)
            | Self::Endless(_)
            | Self::Broken(_)
            | Self::NoReason(_)
            | Self::Empty(_)
            | Self::NoAnswer(_)
            | Self::Cut(_) => "server_error",
            Self::Cancelled => "unknown",
        }
    }

    /// How long the server asked to wait, in milliseconds.
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Busy { retry_after_ms, .. } => *retry_after_ms,
            _ => None,
        }
    }
}

/// The first 300 characters of what a server sent, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out: String =
        text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(300).is_some() {
        out.push('…');
    }
    out
}
