//! Asks again when it makes sense.
//!
//! **Invariant:** never after a whole call was given out, because it may be running already; what
//! was shown of an attempt that failed is declared void by [`Delta::Restart`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::stream::{self, StreamExt as _};
use haft_types::{Message, ToolSpec};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Answer, Blobs, Delta, Encoded, LlmError, Provider, Request, Target, Wire};

/// When and for how long to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// How long a request is sent again behind its first failure, in milliseconds.
    pub within_ms: u64,
    /// The same while no connection comes about and no request was answered yet: a wrong address does
    /// not get better.
    pub unreached_ms: u64,
    /// Pause after the first failure in milliseconds; doubled after each further one.
    pub base_ms: u64,
    /// Longest own pause in milliseconds.
    pub cap_ms: u64,
    /// The pause with which it goes on behind that until it is cancelled, in milliseconds; none: it fails.
    pub beyond_ms: Option<u64>,
    /// Seed of the jitter: the same seed gives the same pauses.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: u32::MAX,
            within_ms: 120_000,
            unreached_ms: 10_000,
            base_ms: 1_000,
            cap_ms: 15_000,
            beyond_ms: None,
            seed: 0,
        }
    }
}

/// Where a request stands that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How many attempts there were, from 1.
    pub attempt: u32,
    /// Milliseconds since the first of them failed.
    pub since_ms: u64,
    /// Whether any request was answered before.
    pub answered: bool,
}

/// Most attempts where the server ends each answer by itself: whatever it says each time is paid for.
const PAID: u32 = 3;

impl RetryPolicy {
    /// The pause in milliseconds after an attempt failed with `error`; none when asking again is no use.
    pub fn pause(&self, failed: Failed, error: &LlmError) -> Option<u64> {
        let most = match error {
            LlmError::Busy { paid: true, .. } => self.attempts.min(PAID),
            _ => self.attempts,
        };
        if !error.is_retryable() || failed.attempt >= most {
            return None;
        }
        let (most, left) = self.left(failed, error);
        let own = self.own(failed.attempt);
        match (error.retry_after_ms(), self.beyond(failed, error)) {
            // What is waited for without an end is waited for as long as one outage is sat out.
            (Some(hint), beyond) if hint > if beyond.is_some() { most } else { left } => None,
            (Some(hint), _) => Some(hint.max(1)),
            (None, _) if left > 0 => Some(own.min(left)),
            (None, beyond) => beyond,
        }
    }

    /// How long it is asked again in all where it fails like this, and how much of it is left.
    fn left(&self, failed: Failed, error: &LlmError) -> (u64, u64) {
        let most = match error {
            LlmError::Unreachable(_) if !failed.answered => self.unreached_ms.min(self.within_ms),
            _ => self.within_ms,
        };
        (most, most.saturating_sub(failed.since_ms))
    }

    fn beyond(&self, failed: Failed, error: &LlmError) -> Option<u64> {
        let is_wrong = matches!(error, LlmError::Unreachable(_)) && !failed.answered;
        self.beyond_ms.filter(|_| !is_wrong)
    }

    /// The pause of its own after so many attempts: some of it by chance, so that many clients do not come
    /// back at once, and whole seconds, so that it is what is told.
    fn own(&self, attempt: u32) -> u64 {
        let doubled = self.base_ms.saturating_mul(1 << (attempt - 1).min(20)).min(self.cap_ms);
        let pause = doubled - mixed(self.seed, attempt) % (doubled / 4 + 1);
        if self.base_ms < 1_000 { pause } else { pause.next_multiple_of(1_000) }
    }

    /// An error that is final, with what is to be known of why.
    fn explained(&self, failed: Failed, error: LlmError) -> LlmError {
        let (most, left) = self.left(failed, &error);
        let tried = (failed.attempt > 1).then(|| {
            format!("\nhaft tried {} times in {}.", failed.attempt, seconds(failed.since_ms))
        });
        let tried = tried.unwrap_or_default();
        match error {
            LlmError::Busy { message, retry_after_ms: Some(hint), paid } if hint > left => {
                let (asked, most) = (seconds(hint), seconds(most));
                let message = format!(
                    "{message}{tried}\nThe server asks to wait {asked}, longer than haft waits ({most} in \
                     all; model.retry_seconds in the settings): try again then."
                );
                LlmError::Busy { message, retry_after_ms: Some(hint), paid }
            }
            LlmError::Busy { message, retry_after_ms, paid } => {
                LlmError::Busy { message: message + &tried, retry_after_ms, paid }
            }
            LlmError::Unreachable(message) => LlmError::Unreachable(message + &tried),
            LlmError::Cut(message) => LlmError::Cut(message + &tried),
            LlmError::Empty(message) => LlmError::Empty(message + &tried),
            error => error,
        }
    }
}

/// Milliseconds as seconds, rounded up, with commas: `3,600 s`; less than one with a tenth.
fn seconds(milliseconds: u64) -> String {
    if (1..=900).contains(&milliseconds) {
        return format!("0.{} s", milliseconds.div_ceil(100));
    }
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
    /// Whether any request was answered.
    answered: Arc<AtomicBool>,
}

impl Retry {
    /// Wraps a provider.
    pub fn new(inner: Arc<dyn Provider>, policy: RetryPolicy) -> Self {
        Self { inner, policy, answered: Arc::default() }
    }
}

impl Provider for Retry {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn host(&self) -> &str {
        self.inner.host()
    }

    fn wire(&self) -> Option<&dyn Wire> {
        self.inner.wire()
    }

    fn encode(&self, message: &Message, target: &Target, blobs: &dyn Blobs) -> Encoded {
        self.inner.encode(message, target, blobs)
    }

    fn encode_tools(&self, tools: &[ToolSpec]) -> String {
        self.inner.encode_tools(tools)
    }

    fn encode_format(&self, schema: &Value) -> Option<String> {
        self.inner.encode_format(schema)
    }

    fn stream(&self, request: Request, stop: CancellationToken) -> Answer {
        let asking = Asking {
            current: Some(self.inner.stream(request.clone(), stop.clone())),
            retry: self.clone(),
            request,
            stop,
            attempt: 1,
            failed: None,
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
    /// When the first attempt failed.
    failed: Option<Instant>,
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
                    self.retry.answered.store(true, Ordering::Relaxed);
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
        if self.step == Step::Probing
            && matches!(error, LlmError::Cut(_) | LlmError::Unreachable(_))
        {
            // It is the network that fails, not the request.
            self.step = Step::Streaming;
        }
        let is_final = self.called || matches!(self.step, Step::Probing | Step::Whole);
        let attempt = self.attempt;
        let since = self.failed.get_or_insert_with(Instant::now).elapsed();
        let failed = Failed {
            attempt,
            since_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            answered: self.retry.answered.load(Ordering::Relaxed),
        };
        let answered = matches!(error, LlmError::NoReason(_) | LlmError::Broken(_));
        if self.step == Step::Probing && answered {
            return Ok(self.ask_whole());
        }
        let (wait_ms, next) = match &error {
            _ if is_final => return Err(error),
            LlmError::NoReason(_) if self.step == Step::WithoutReason => return Err(error),
            LlmError::NoReason(_) => {
                self.step = Step::WithoutReason;
                (policy.base_ms, "Asking once more".to_owned())
            }
            _ => {
                let Some(wait_ms) = policy.pause(failed, &error) else {
                    return Err(policy.explained(failed, error));
                };
                let pause = seconds(wait_ms);
                // Not at once: a server that fails like this closes the connection behind it, and
                // what is sent meanwhile is lost.
                if matches!(error, LlmError::Empty(_)) && self.nothing > 1 {
                    self.step = Step::Probing;
                    (wait_ms, format!("Asking without a stream in {pause}, to hear why"))
                } else {
                    (wait_ms, format!("Asking again in {pause}"))
                }
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
        LlmError::Busy { message: "m".into(), retry_after_ms, paid: false }
    }

    fn after(attempt: u32, since_ms: u64) -> Failed {
        Failed { attempt, since_ms, answered: true }
    }

    #[test]
    fn pauses_grow_within_bounds_and_repeat_with_the_seed() {
        let policy = RetryPolicy { seed: 7, ..RetryPolicy::default() };
        for (attempt, full) in (1..).zip([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
            let pause = policy.pause(after(attempt, 0), &busy(None)).unwrap();
            assert!((full * 3 / 4..=full).contains(&pause), "{attempt}: {pause}");
            assert_eq!(pause % 1_000, 0, "what is told is waited");
            assert_eq!(policy.pause(after(attempt, 0), &busy(None)), Some(pause));
        }
        assert_eq!(policy.pause(after(5, 119_000), &busy(None)), Some(1_000), "the last one");
        assert_eq!(policy.pause(after(5, 120_000), &busy(None)), None);
        let waits = RetryPolicy { beyond_ms: Some(30_000), ..policy };
        assert_eq!(waits.pause(after(5, 120_000), &busy(None)), Some(30_000));
        assert_eq!(waits.pause(after(500, 99_999_999), &busy(None)), Some(30_000));
        let few = RetryPolicy { attempts: 2, ..policy };
        assert_eq!(few.pause(after(2, 0), &busy(None)), None);
    }

    #[test]
    fn the_servers_hint_is_kept_unless_it_is_too_long() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.pause(after(1, 0), &busy(Some(2_000))), Some(2_000));
        assert_eq!(policy.pause(after(9, 100_000), &busy(Some(20_000))), Some(20_000));
        assert_eq!(policy.pause(after(9, 100_000), &busy(Some(21_000))), None);
        let told = policy.explained(after(2, 3_000), busy(Some(3_600_000))).to_string();
        for part in ["tried 2 times in 3 s", "wait 3,600 s, longer than haft waits (120 s in all"] {
            assert!(told.contains(part), "{told}");
        }
        let waits = RetryPolicy { beyond_ms: Some(30_000), ..policy };
        assert_eq!(waits.pause(after(9, 500_000), &busy(Some(60_000))), Some(60_000));
        assert_eq!(waits.pause(after(1, 0), &busy(Some(3_600_000))), None);
    }

    #[test]
    fn seconds_are_rounded_up_and_grouped() {
        let cases = [
            (0, "0 s"),
            (1, "0.1 s"),
            (900, "0.9 s"),
            (901, "1 s"),
            (999_000, "999 s"),
            (1_234_567_001, "1,234,568 s"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(seconds(milliseconds), text);
        }
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let policy = RetryPolicy::default();
        let lost = LlmError::Unreachable("u".into());
        let first = |since_ms| Failed { attempt: 3, since_ms, answered: false };
        assert!(policy.pause(first(9_000), &lost).is_some());
        assert_eq!(policy.pause(first(10_000), &lost), None, "a wrong address does not get better");
        let waits = RetryPolicy { beyond_ms: Some(30_000), ..policy };
        assert_eq!(waits.pause(first(10_000), &lost), None);
        assert!(policy.pause(first(60_000), &busy(None)).is_some(), "who answers so is there");
        assert!(policy.pause(after(3, 60_000), &lost).is_some(), "it answered before");
        let paid = LlmError::Busy { message: "abort".into(), retry_after_ms: None, paid: true };
        assert!(policy.pause(after(2, 0), &paid).is_some(), "it may do better");
        assert_eq!(policy.pause(after(3, 0), &paid), None, "each answer is paid for");
        assert_eq!(waits.pause(after(3, 0), &paid), None);
        let told = policy.explained(first(10_000), lost).to_string();
        assert!(told.contains("tried 3 times in 10 s"), "{told}");
        for error in [
            LlmError::TooLong("t".into()),
            LlmError::Config("c".into()),
            LlmError::Rejected("r".into()),
            LlmError::Protocol("p".into()),
            LlmError::Cancelled,
        ] {
            assert_eq!(policy.pause(after(1, 0), &error), None, "{error:?}");
        }
    }
}
