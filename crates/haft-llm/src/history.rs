//! The order in which kept messages make a valid request.
//!
//! **Invariant:** in what comes out, each call of an answer has exactly one result, right after
//! the answer; no result lacks its call; the person's side begins and ends, and no two answers
//! follow each other. What comes out for a history is where that of a longer one begins: of a
//! history that the agent kept, all stays as it is, and only an answer that was paused is followed
//! by words that ask for the rest. A damaged one must not make every later request fail.

use std::collections::HashSet;

use crate::{Encoded, Role};

/// One piece of a request's conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A kept message as it is.
    Whole(&'a Encoded),
    /// Some results of a kept message, by their position in it.
    Some(&'a Encoded, Vec<usize>),
    /// Results for calls that have none.
    Missing(Vec<&'a str>),
    /// Words of the person's side where a wire needs them.
    Filler(&'static str),
}

/// Opens a conversation whose beginning is gone.
const OPENING: &str = "(The conversation goes on.)";
/// Asks for the rest of an answer.
const GO_ON: &str = "Go on.";

/// Brings messages into a valid order.
pub(crate) fn repaired(messages: &[Encoded]) -> Vec<Item<'_>> {
    let mut out = Vec::with_capacity(messages.len() + 2);
    let mut open = Open::default();
    for message in messages {
        match message.role() {
            Role::Assistant => {
                open.close(&mut out);
                out.extend(filler(out.last()));
                out.push(Item::Whole(message));
                open.begin(&message.pieces().calls);
            }
            Role::Results => open.results(message, &mut out),
            Role::User if open.ids.is_empty() => out.push(Item::Whole(message)),
            Role::User => open.waiting.push(message),
        }
    }
    open.close(&mut out);
    out.extend(filler(out.last()));
    out
}

/// The person's words that have to stand between `last` and an answer, where there are none.
///
/// They stand between two answers for the same reason as at the end: the first of them was asked
/// to go on, and the bytes of that request do not change. To send a paused answer alone, as its
/// provider proposes, is for the provider's own tools, which haft has none of; models of today
/// refuse a request whose last words are their own.
fn filler<'a>(last: Option<&Item<'_>>) -> Option<Item<'a>> {
    match last {
        None => Some(Item::Filler(OPENING)),
        Some(Item::Whole(last)) if last.role() == Role::Assistant => Some(Item::Filler(GO_ON)),
        Some(_) => None,
    }
}

/// The calls of the last answer that have no result yet.
#[derive(Default)]
struct Open<'a> {
    order: &'a [String],
    ids: HashSet<&'a str>,
    /// What was said before all results were there: it comes after them.
    waiting: Vec<&'a Encoded>,
}

impl<'a> Open<'a> {
    fn begin(&mut self, calls: &'a [String]) {
        self.order = calls;
        self.ids = calls.iter().map(String::as_str).collect();
    }

    fn results(&mut self, message: &'a Encoded, out: &mut Vec<Item<'a>>) {
        let results = &message.pieces().results;
        let kept: Vec<usize> =
            (0..results.len()).filter(|&at| self.ids.remove(results[at].0.as_str())).collect();
        if kept.len() == results.len() && !kept.is_empty() {
            out.push(Item::Whole(message));
        } else if !kept.is_empty() {
            out.push(Item::Some(message, kept));
        }
        if self.ids.is_empty() {
            self.close(out);
        }
    }

    fn close(&mut self, out: &mut Vec<Item<'a>>) {
        let missing: Vec<&str> =
            self.order.iter().map(String::as_str).filter(|id| self.ids.contains(id)).collect();
        if !missing.is_empty() {
            out.push(Item::Missing(missing));
        }
        self.order = &[];
        self.ids.clear();
        out.extend(self.waiting.drain(..).map(Item::Whole));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Pieces;

    fn message(role: Role, calls: &[&str], results: &[&str]) -> Encoded {
        Encoded::of(Pieces {
            calls: calls.iter().map(|id| (*id).to_owned()).collect(),
            results: results.iter().map(|id| ((*id).to_owned(), 0..0)).collect(),
            ..Pieces::new(role)
        })
    }
    fn user() -> Encoded {
        message(Role::User, &[], &[])
    }
    fn calls(ids: &[&str]) -> Encoded {
        message(Role::Assistant, ids, &[])
    }
    fn results(ids: &[&str]) -> Encoded {
        message(Role::Results, &[], ids)
    }

    #[test]
    fn a_sound_history_is_left_alone() {
        let history = [user(), calls(&["a", "b"]), results(&["a", "b"]), calls(&[]), user()];
        let expected: Vec<Item<'_>> = history.iter().map(Item::Whole).collect();
        assert_eq!(repaired(&history), expected);
    }

    #[test]
    fn calls_without_results_get_some_and_results_without_calls_go() {
        let history = [user(), calls(&["a", "b"]), user(), results(&["b", "z"]), calls(&[])];
        let [first, answer, said, partial, last] = &history;
        let expected = vec![
            Item::Whole(first),
            Item::Whole(answer),
            Item::Some(partial, vec![0]),
            Item::Missing(vec!["a"]),
            Item::Whole(said),
            Item::Whole(last),
            Item::Filler(GO_ON),
        ];
        assert_eq!(repaired(&history), expected);
        assert_eq!(repaired(&[results(&["q"])]), vec![Item::Filler(OPENING)]);
    }

    #[test]
    fn an_answer_right_after_another_was_asked_for_in_every_request_alike() {
        let history = [user(), calls(&[]), calls(&[]), calls(&["a"]), results(&["a"])];
        let [first, paused, again, answer, result] = &history;
        let expected = [
            Item::Whole(first),
            Item::Whole(paused),
            Item::Filler(GO_ON),
            Item::Whole(again),
            Item::Filler(GO_ON),
            Item::Whole(answer),
            Item::Whole(result),
        ];
        assert_eq!(repaired(&history[..2]), expected[..3]);
        assert_eq!(repaired(&history[..3]), expected[..5]);
        assert_eq!(repaired(&history), expected);
    }

    #[test]
    fn a_second_result_of_one_call_is_dropped() {
        let history = [user(), calls(&["a"]), results(&["a"]), results(&["a"])];
        assert_eq!(repaired(&history).len(), 3);
    }

    #[test]
    fn the_persons_side_begins_and_ends() {
        let history = [calls(&["a"])];
        let expected =
            vec![Item::Filler(OPENING), Item::Whole(&history[0]), Item::Missing(vec!["a"])];
        assert_eq!(repaired(&history), expected);
        assert_eq!(repaired(&[]), vec![Item::Filler(OPENING)]);
    }
}
