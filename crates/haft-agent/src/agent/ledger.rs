//! What a provider's cache can have of a request: as much of it as was sent before.
//!
//! **Invariant:** a request is compared with the one before it before it is sent. What is expected
//! of the cache is said then, not after the answer.

use std::time::Duration;

use haft_llm::{Encoded, Request};
use haft_types::{Body, CacheReport, CacheUse, Level};
use tokio::time::Instant;

use super::Agent;
use crate::compaction::tokens;

/// How long a provider's cache holds a prefix at least.
const LIFE: Duration = Duration::from_mins(5);
/// Shorter prefixes, in tokens, are in no provider's cache.
const LEAST: u64 = 1_024;
/// A break that costs so many tokens is told to the person.
const WORTH: u64 = 10_000;

/// The request before, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    last: Option<Sent>,
    /// What becomes of the request that is being answered.
    open: Option<CacheUse>,
}

#[derive(Debug)]
struct Sent {
    request: Request,
    at: Instant,
    /// The server's name for its answer.
    id: Option<String>,
}

/// How a request compares with the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Comparison {
    bytes: u64,
    same: u64,
    changed: Option<String>,
}

/// A piece of a request: what it is, and its bytes.
enum Piece<'a> {
    Named(&'static str, &'a str),
    Message(usize, &'a Encoded),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Named(_, text) => text.as_bytes(),
            Self::Message(_, encoded) => encoded.json().as_bytes(),
        }
    }

    fn named(&self) -> String {
        match self {
            Self::Named(name, _) => (*name).to_owned(),
            Self::Message(at, _) => format!("message {}", at + 1),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            // One that is kept is the same without a look at its bytes.
            (Self::Message(_, one), Self::Message(_, other)) => one == other,
            _ => self.bytes() == other.bytes(),
        }
    }
}

/// The pieces of a request in the order in which caches see them.
fn pieces(request: &Request) -> impl Iterator<Item = Piece<'_>> {
    let first =
        [Piece::Named("the schema", &request.format), Piece::Named("the tools", &request.tools)];
    let system = request.system.iter().map(|part| Piece::Named("the system prompt", part));
    let messages = request.messages.iter().enumerate();
    first.into_iter().chain(system).chain(messages.map(|(at, encoded)| Piece::Message(at, encoded)))
}

fn compare(before: Option<&Request>, request: &Request) -> Comparison {
    let bytes = pieces(request).map(|piece| piece.bytes().len() as u64).sum();
    let Some(before) = before else { return Comparison { bytes, ..Comparison::default() } };
    if before.model != request.model {
        return Comparison { bytes, same: 0, changed: Some("the model".to_owned()) };
    }
    let (mut same, mut olds) = (0, pieces(before));
    for piece in pieces(request) {
        let Some(old) = olds.next() else { return Comparison { bytes, same, changed: None } };
        if !old.is(&piece) {
            let pairs = old.bytes().iter().zip(piece.bytes());
            same += pairs.take_while(|(a, b)| a == b).count() as u64;
            return Comparison { bytes, same, changed: Some(piece.named()) };
        }
        same += piece.bytes().len() as u64;
    }
    // Where there is less than before, what is missing is what changed.
    let changed = olds.next().map(|old| old.named());
    Comparison { bytes, same, changed }
}

impl Agent {
    /// Compares a request with the one before it, tells the person of a costly break, and gives the
    /// server's name for the answer before.
    pub(super) fn note_request(&mut self, request: &Request) -> Option<String> {
        let last = self.ledger.last.take();
        let Comparison { bytes, same, changed } =
            compare(last.as_ref().map(|last| &last.request), request);
        let all = self.scaled(tokens(usize::try_from(bytes).unwrap_or(usize::MAX)));
        let held = self.scaled(tokens(usize::try_from(same).unwrap_or(usize::MAX)));
        let is_warm = last.as_ref().is_some_and(|last| last.at.elapsed() < LIFE);
        let held = if is_warm && held >= LEAST { held.min(all) } else { 0 };
        // Of a session that goes on nobody knows what is still held.
        let is_known = last.is_some() || self.ledger.open.is_none() && !self.is_resumed();
        let expected = is_known.then_some(held);
        if let Some(changed) = changed.as_ref().filter(|_| all - held >= WORTH) {
            self.tell_break(changed, all - held);
        }
        self.ledger.open = Some(CacheUse { bytes, same, changed, expected, report: None });
        let id = last.and_then(|last| last.id);
        self.ledger.last = Some(Sent { request: request.clone(), at: Instant::now(), id: None });
        id
    }

    /// Whether the conversation began before this run.
    fn is_resumed(&self) -> bool {
        let fold = self.fold();
        fold.final_messages().iter().any(|m| matches!(m, haft_types::Message::Assistant { .. }))
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of tokens is far below 2^52")]
    fn tell_break(&self, changed: &str, tokens: u64) {
        let price = self.setup.prices.map(|prices| prices.of_request(tokens));
        let cost = price.map(|price| price.cache_write.unwrap_or(price.input).max(price.input));
        let cost = cost.map(|cost| format!(", ${:.2}", tokens as f64 * cost / 1e6));
        let text = format!(
            "{changed} changed: about {tokens} tokens are sent that no cache has{}",
            cost.unwrap_or_default()
        );
        self.emit_or_tell(Body::Notice { level: Level::Info, text });
    }

    /// Takes what the server says of the request.
    pub(super) fn take_receipt(&mut self, id: String, report: Option<CacheReport>) {
        if let Some(last) = &mut self.ledger.last {
            last.id = Some(id);
        }
        if let Some(open) = &mut self.ledger.open {
            open.report = report;
        }
    }

    /// What became of the request, once its answer is complete.
    pub(super) fn cache_used(&mut self) -> Option<Body> {
        self.ledger.open.take().map(Body::CacheUsed)
    }
}

#[cfg(test)]
mod tests {
    use haft_llm::Role;
    use proptest::prelude::*;

    use super::*;

    fn request(parts: &[String]) -> Request {
        let message = |text: &String| Encoded::new(Role::User, text.clone());
        Request {
            tools: parts[0].as_str().into(),
            system: vec![parts[1].clone(), parts[2].clone()].into(),
            messages: parts[3..].iter().map(message).collect(),
            ..Request::default()
        }
    }

    proptest! {
        /// Whatever changes: what is the same is what two texts begin with alike.
        #[test]
        fn the_first_byte_that_differs_is_found(
            parts in prop::collection::vec("[a-c]{1,6}", 4..12),
            at in any::<prop::sample::Index>(),
            text in "[a-c]{1,6}",
            more in prop::collection::vec("[a-c]{1,6}", 0..3),
        ) {
            let mut changed = parts.clone();
            let at = at.index(changed.len());
            changed[at] = text;
            changed.extend(more);
            let (before, now) = (request(&parts), request(&changed));
            let Comparison { bytes, same, changed: named } = compare(Some(&before), &now);
            let same = usize::try_from(same).unwrap();
            prop_assert_eq!(bytes, changed.concat().len() as u64);
            if changed[at] == parts[at] {
                prop_assert_eq!((named, same), (None, parts.concat().len()));
                return Ok(());
            }
            let common = changed[at].bytes().zip(parts[at].bytes()).take_while(|(a, b)| a == b);
            prop_assert_eq!(same, changed[..at].concat().len() + common.count());
            let wanted = match at {
                0 => "the tools".to_owned(),
                1 | 2 => "the system prompt".to_owned(),
                at => format!("message {}", at - 2),
            };
            prop_assert_eq!(named, Some(wanted));
        }
    }

    #[test]
    fn another_model_and_fewer_messages_are_breaks() {
        let parts: Vec<String> = ["t", "s", "u", "one", "two"].map(str::to_owned).to_vec();
        let now = request(&parts);
        let of = |changed: Option<&str>, same| Comparison {
            bytes: 9,
            same,
            changed: changed.map(str::to_owned),
        };
        assert_eq!(compare(None, &now), of(None, 0));
        assert_eq!(compare(Some(&now), &now), of(None, 9));
        let other = Request { model: "m".into(), ..now.clone() };
        assert_eq!(compare(Some(&other), &now), of(Some("the model"), 0));
        let fewer = request(&parts[..4]);
        let Comparison { same, changed, .. } = compare(Some(&now), &fewer);
        assert_eq!((same, changed.as_deref()), (6, Some("message 2")));
    }
}
