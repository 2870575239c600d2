//! Asks again when it makes sense.
//!
//! **Invariant:** never after a whole call was given out, because it may be running already; what
//! was shown of an attempt that failed is declared void by [`Delta::Restart`].

use std::{sync::Arc, time::Duration};

use futures::stream::{self, StreamExt as _};
use haft_types::{Message, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::{Answer, Blobs, Delta, Encoded, LlmError, Provider, Request, Target};

/// When and how often to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// Attempts in all while no connection comes about: a wrong address does not get better.
    pub connect_attempts: u32,
    /// Pause after the first failure in milliseconds; doubled after each further one.
    pub base_ms: u64,
    /// Longest own pause in milliseconds.
    pub cap_ms: u64,
    /// Longest pause asked for by a server that is still waited for, in milliseconds.
    pub hint_cap_ms: u64,
    /// Seed of the jitter: the same seed gives the same pauses.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 6,
            connect_attempts: 3,
            base_ms: 500,
            cap_ms: 30_000,
            hint_cap_ms: 120_000,
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// The pause in milliseconds after `attempt` (from 1) failed with `error`; none when asking
    /// again is no use.
    pub fn pause(&self, attempt: u32, error: &LlmError) -> Option<u64> {
        if !error.is_retryable() || attempt >= self.attempts_after(error) {
            return None;
        }
        let doubled = self.base_ms.saturating_mul(1 << (attempt - 1).min(20));
        let own = doubled.min(self.cap_ms);
        // Half fixed, half by chance, so that many clients do not come back at once.
        let own = own / 2 + mixed(self.seed, attempt) % (own / 2 + 1);
        match error.retry_after_ms() {
            Some(hint) if hint > self.hint_cap_ms => None,
            Some(hint) => Some(hint.saturating_add(own / 4)),
            None => Some(own),
        }
    }

    /// Attempts in all where they fail like this.
    fn attempts_after(&self, error: &LlmError) -> u32 {
        match error {
            LlmError::Unreachable(_) => self.connect_attempts.min(self.attempts),
            _ => self.attempts,
        }
    }

    /// An error that is final; where only the server's wish keeps it from another attempt, with
    /// that wish.
    fn explained(&self, error: LlmError) -> LlmError {
        match error {
            LlmError::Busy { message, retry_after_ms: Some(hint) } if hint > self.hint_cap_ms => {
                let (asked, most) = (seconds(hint), seconds(self.hint_cap_ms));
                let message = format!(
                    "{message}\nThe server asks to wait {asked}, longer than haft waits ({most}): \
                     try again then."
                );
                LlmError::Busy { message, retry_after_ms: Some(hint) }
            }
            error => error,
        }
    }
}

/// Milliseconds as whole seconds, rounded up, with commas: `3,600 s`.
fn seconds(milliseconds: u64) -> String {
    let digits = milliseconds.div_ceil(1_000).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + " s"
}

/// `SplitMix64` (Steele, Lea, Flood 2014): spreads a seed and a counter over 64 bits.
fn mixed(seed: u64, attempt: u32) -> u64 {
    let mut z = seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A provider that asks another one again after failures that may pass.
#[derive(Clone)]
pub struct Retry {
    inner: Arc<dyn Provider>,
    policy: RetryPolicy,
}

impl Retry {
    /// Wraps a provider.
    pub fn new(inner: Arc<dyn Provider>, policy: RetryPolicy) -> Self {
        Self { inner, policy }
    }
}

impl Provider for Retry {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn host(&self) -> &str {
        self.inner.host()
    }

    fn encode(&self, message: &Message, target: &Target, blobs: &dyn Blobs) -> Encoded {
        self.inner.encode(message, target, blobs)
    }

    fn encode_tools(&self, tools: &[ToolSpec]) -> String {
        self.inner.encode_tools(tools)
    }

    fn stream(&self, request: Request, stop: CancellationToken) -> Answer {
        let asking = Asking {
            current: Some(self.inner.stream(request.clone(), stop.clone())),
            retry: self.clone(),
            request,
            stop,
            attempt: 1,
            called: false,
            wait_ms: None,
            nothing: 0,
            step: Step::Streaming,
        };
        stream::unfold(asking, |mut asking| async {
            asking.next().await.map(|item| (item, asking))
        })
        .boxed()
    }
}

struct Asking {
    /// None when the answer is over.
    current: Option<Answer>,
    retry: Retry,
    request: Request,
    stop: CancellationToken,
    attempt: u32,
    /// True once a whole call was given out.
    called: bool,
    /// The pause before the next attempt.
    wait_ms: Option<u64>,
    /// How often the server answered with nothing at all.
    nothing: u32,
    step: Step,
}

/// How an answer is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// As a stream.
    Streaming,
    /// As a stream once more, because the end of the last one had no reason.
    WithoutReason,
    /// As one token without a stream, to hear what is wrong with the request.
    Probing,
    /// Whole, because this server gives no stream for it.
    Whole,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        loop {
            if let Some(wait_ms) = self.wait_ms.take() {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Some(Err(LlmError::Cancelled)),
                    () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
                }
                self.attempt += 1;
                self.ask();
            }
            match self.current.as_mut()?.next().await? {
                // What a probe gives is no part of the answer.
                Ok(Delta::End { .. }) if self.step == Step::Probing => {
                    return Some(Ok(self.ask_whole()));
                }
                Ok(_) if self.step == Step::Probing => {}
                Ok(delta) => {
                    self.called |= matches!(delta, Delta::Call { .. });
                    return Some(Ok(delta));
                }
                Err(error) => return Some(self.failed(error)),
            }
        }
    }

    /// Sends the request in the form of this step.
    fn ask(&mut self) {
        let mut request = self.request.clone();
        request.whole = matches!(self.step, Step::Probing | Step::Whole);
        if self.step == Step::Probing {
            // An effort wants more tokens than one.
            (request.max_tokens, request.effort) = (Some(1), None);
        }
        self.current = Some(self.retry.inner.stream(request, self.stop.clone()));
    }

    /// Asks for the answer in one piece, and says so.
    fn ask_whole(&mut self) -> Delta {
        self.step = Step::Whole;
        self.ask();
        Delta::Note { text: NO_STREAM.to_owned() }
    }

    /// Decides whether to ask again.
    fn failed(&mut self, error: LlmError) -> Result<Delta, LlmError> {
        self.current = None;
        let policy = self.retry.policy;
        self.nothing += u32::from(matches!(error, LlmError::Empty(_)));
        let is_final = self.called || matches!(self.step, Step::Probing | Step::Whole);
        let attempt = self.attempt;
        let answered = matches!(error, LlmError::NoReason(_) | LlmError::Broken(_));
        if self.step == Step::Probing && answered {
            return Ok(self.ask_whole());
        }
        let (wait_ms, next) = match &error {
            _ if is_final => return Err(policy.explained(error)),
            LlmError::NoReason(_) if self.step == Step::WithoutReason => return Err(error),
            LlmError::NoReason(_) => {
                self.step = Step::WithoutReason;
                (policy.base_ms, "Asking once more".to_owned())
            }
            LlmError::Empty(_) if self.nothing > 1 => {
                self.step = Step::Probing;
                (0, "Asking without a stream, to hear why".to_owned())
            }
            _ => {
                let Some(wait_ms) = policy.pause(attempt, &error) else {
                    return Err(policy.explained(error));
                };
                let (seconds, most) = (seconds(wait_ms), policy.attempts_after(&error));
                (wait_ms, format!("Asking again in {seconds} ({} of {most})", attempt + 1))
            }
        };
        self.wait_ms = Some(wait_ms);
        Ok(Delta::Restart { attempt, wait_ms, reason: format!("{error}\n{next}.") })
    }
}

/// What the person is told of a server that answers only in one piece.
const NO_STREAM: &str = "the server streams no answer to this request; it is asked for whole, \
                         so nothing is shown until it is there";

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after_ms: Option<u64>) -> LlmError {
        LlmError::Busy { message: "m".into(), retry_after_ms }
    }

    #[test]
    fn pauses_grow_within_bounds_and_repeat_with_the_seed() {
        let policy = RetryPolicy { seed: 7, ..RetryPolicy::default() };
        for attempt in 1..policy.attempts {
            let pause = policy.pause(attempt, &busy(None)).unwrap();
            let full = (500 << (attempt - 1)).min(30_000);
            assert!((full / 2..=full).contains(&pause), "{attempt}: {pause}");
            assert_eq!(policy.pause(attempt, &busy(None)), Some(pause));
        }
        assert_eq!(policy.pause(policy.attempts, &busy(None)), None);
    }

    #[test]
    fn the_servers_hint_is_kept_unless_it_is_too_long() {
        let policy = RetryPolicy::default();
        let pause = policy.pause(1, &busy(Some(2_000))).unwrap();
        assert!((2_000..2_200).contains(&pause), "{pause}");
        assert_eq!(policy.pause(1, &busy(Some(3_600_000))), None);
        let told = policy.explained(busy(Some(3_600_000))).to_string();
        assert!(told.contains("wait 3,600 s, longer than haft waits (120 s)"), "{told}");
        assert_eq!(policy.explained(busy(Some(2_000))), busy(Some(2_000)));
    }

    #[test]
    fn seconds_are_rounded_up_and_grouped() {
        let cases = [(0, "0 s"), (1, "1 s"), (999_000, "999 s"), (1_234_567_001, "1,234,568 s")];
        for (milliseconds, text) in cases {
            assert_eq!(seconds(milliseconds), text);
        }
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let policy = RetryPolicy::default();
        let lost = LlmError::Unreachable("u".into());
        assert!(policy.pause(2, &lost).is_some() && policy.pause(3, &lost).is_none());
        for error in [
            LlmError::TooLong("t".into()),
            LlmError::Config("c".into()),
            LlmError::Rejected("r".into()),
            LlmError::Protocol("p".into()),
            LlmError::Cancelled,
        ] {
            assert_eq!(policy.pause(1, &error), None, "{error:?}");
        }
    }
}
