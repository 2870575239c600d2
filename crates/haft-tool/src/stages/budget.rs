//! `budget`: cuts the result of a call to the tool's budget and stores the whole as `out://CALL`.
//!
//! **Invariant:** text and images are counted apart. Data and details have four bytes for each
//! character of the budget. What is cut has an address. The model is told how much of it it sees,
//! and the exact next call. A nested call is not cut.

use futures::{FutureExt as _, future::BoxFuture};
use haft_types::{Budget as Limit, Cut, CutBy, Outcome, Part, Status};

use crate::{
    Call, Cx, Next, Stage,
    session::{redact, truncate},
};

pub(super) struct Budget;

impl Stage for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let (limit, own) = match call.ready().map(|prepared| prepared.spec.budget) {
            Ok(limit) => (most_characters(limit), limit == Limit::Own),
            Err(_) => return next.run(call),
        };
        if call.cx.nested && !own {
            return next.run(call);
        }
        async move {
            let cx = call.cx.clone();
            let mut outcome = next.run(call).await;
            redact::outcome(&cx.session().secrets, &mut outcome);
            let room = usize::try_from(limit.saturating_mul(truncate::BYTES)).unwrap_or(usize::MAX);
            // Whoever calls another tool gets its result whole.
            if !cx.nested
                && let Some(detail) = &mut outcome.detail
            {
                truncate::shorten_detail(detail, room);
            }
            if own {
                // What a tool promises of its results says nothing of its failures.
                outcome = refusal(outcome);
            } else if characters(&outcome) > limit {
                outcome = cut(outcome, limit, &cx).await;
            }
            if cx.nested { outcome } else { bound(outcome, room, &cx).await }
        }
        .boxed()
    }
}

/// Characters for which a tool that measures its text itself may give data and details.
const OWN: u64 = 100_000;

/// Maximum number of characters that a budget allows.
pub fn most_characters(limit: Limit) -> u64 {
    match limit {
        Limit::Chars(chars) => chars,
        // An estimated token is four bytes; counting them as characters errs to the small side.
        Limit::Tokens(tokens) => tokens.saturating_mul(4),
        Limit::Own => OWN,
    }
}

/// Most bytes that are written without another thread: less work than handing them over.
const BRIEF: usize = 16 * 1024;

/// Keeps the whole of a result under the call's address; a slow disk holds no other call up.
async fn keep(cx: &Cx, bytes: Vec<u8>) -> std::io::Result<()> {
    let (outs, call) = (cx.session().outs.clone(), cx.call.clone());
    if bytes.len() <= BRIEF {
        return outs.put(&call, &bytes);
    }
    let work = tokio::task::spawn_blocking(move || outs.put(&call, &bytes));
    work.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// Bounds what programs get as well, and says where the whole of a cut result is.
async fn bound(mut outcome: Outcome, room: usize, cx: &Cx) -> Outcome {
    let known = |outcome: &Outcome| outcome.detail.as_ref()?.cut.as_ref()?.rest.clone();
    let kept = || cx.session().outs.open(&cx.call).map(|_| cx.call.address());
    if let Some(mut data) = outcome.data.take_if(|data| !truncate::fits(data, room)) {
        let address = known(&outcome).or_else(kept);
        let place = match &address {
            Some(address) => format!("what is kept of the text: read or grep {address}"),
            None => match keep(cx, data.to_string().into_bytes()).await {
                Ok(()) => format!("the whole is kept: read or grep {}", cx.call.address()),
                Err(error) => format!("the whole could not be kept: {error}"),
            },
        };
        let bytes = truncate::shorten(&mut data, room).unwrap_or_default();
        // Where the text says it of itself, what is left of the data is told in them.
        if !address.is_some_and(|address| names(&outcome, &address)) {
            let text = format!("[the structured data of {bytes} bytes is shortened; {place}]");
            outcome.content.push(Part::text(text));
        }
        outcome.data = Some(data);
    }
    if let Some(cut) = outcome.detail.as_mut().and_then(|detail| detail.cut.as_mut())
        && cut.rest.is_none()
    {
        cut.rest = kept();
    }
    outcome
}

/// Whether a mark in the text says where the whole of it is.
fn names(outcome: &Outcome, address: &str) -> bool {
    let mark = format!("read or grep {address}");
    let says = |part: &Part| matches!(part, Part::Text { text } if text.contains(&mark));
    outcome.content.iter().any(says)
}

/// Longest refusal in characters.
const REFUSAL: usize = 16_000;

/// Takes the middle out of a text that is too long for a refusal.
pub(super) fn shorten(part: &mut Part) {
    if let Part::Text { text } = part
        && text.chars().nth(REFUSAL).is_some()
    {
        let (head, tail) = ends(text, REFUSAL / 2);
        let left = text.len() - head.len() - tail.len();
        *text = format!("{head}\n[... {left} bytes left out ...]\n{tail}");
    }
}

fn refusal(mut outcome: Outcome) -> Outcome {
    if matches!(outcome.status, Status::Failed | Status::Denied) {
        outcome.content.iter_mut().for_each(shorten);
    }
    outcome
}

fn characters(outcome: &Outcome) -> u64 {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    texts.map(|text| text.chars().count() as u64).sum()
}

async fn cut(mut outcome: Outcome, limit: u64, cx: &Cx) -> Outcome {
    let whole = outcome.joined_text();
    let total = whole.chars().count() as u64;
    let known = outcome.detail.as_ref().and_then(|detail| detail.cut.clone());
    let kept = match known.as_ref().and_then(|cut| cut.rest.clone()) {
        Some(address) => Ok(address),
        None => keep(cx, whole.clone().into_bytes()).await.map(|()| cx.call.address()),
    };
    let half = usize::try_from(limit / 2).unwrap_or(usize::MAX);
    let (head, tail) = ends(&whole, half);
    let left = total.saturating_sub((head.chars().count() + tail.chars().count()) as u64);
    let place = match &kept {
        Ok(address) => format!("the whole is kept: read or grep {address}"),
        Err(error) => format!("the whole could not be kept: {error}"),
    };
    let mark = format!("\n[... {left} of {total} characters left out; {place} ...]\n");
    outcome.content.retain(|part| !matches!(part, Part::Text { .. }));
    outcome.content.insert(0, Part::text(format!("{head}{mark}{tail}")));
    if let Some(detail) = &mut outcome.detail {
        let (to, total) = (total - left, Some(total));
        let cut = Cut { from: 1, to, total, by: CutBy::Chars, rest: kept.ok(), end: None };
        detail.cut.get_or_insert(cut);
    }
    outcome
}

/// The first and last `half` characters, at line ends where one is near.
fn ends(text: &str, half: usize) -> (&str, &str) {
    let head_end = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
    let tail_start = text.char_indices().nth_back(half.saturating_sub(1)).map_or(0, |(at, _)| at);
    let near = half / 8;
    let head_end = match text[..head_end].rfind('\n') {
        Some(at) if head_end - at <= near => at,
        _ => head_end,
    };
    let tail_start = match text[tail_start..].find('\n') {
        Some(at) if at <= near => tail_start + at + 1,
        _ => tail_start,
    };
    (&text[..head_end], &text[tail_start.max(head_end)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_refusal_is_shortened() {
        let shortened = |text: &str| {
            let mut part = Part::text(text);
            shorten(&mut part);
            part
        };
        for text in ["", "no such file\nlook elsewhere\n", &"\u{e4}\n".repeat(REFUSAL / 2)] {
            assert_eq!(shortened(text), Part::text(text));
        }
        let Part::Text { text } = shortened(&"\u{e4}".repeat(REFUSAL + 1)) else { panic!() };
        assert!(text.contains("[... 2 bytes left out ...]"), "{}", text.len());
    }

    #[test]
    fn ends_never_split_a_character_and_prefer_lines() {
        let text = "héllo\n".repeat(100);
        let (head, tail) = ends(&text, 50);
        assert!(head.ends_with('o') && head.chars().count() <= 50);
        assert!(tail.starts_with('h') && tail.chars().count() <= 50);
        assert_eq!(ends("abc", 10), ("abc", ""));
    }
}
