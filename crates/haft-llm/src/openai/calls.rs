//! Puts calls together from pieces that servers number, name and identify in many ways.
//!
//! **Invariant:** a call is given out once, in the order in which calls began, and only when its
//! arguments are whole or nothing more can come. Two calls with one id are two calls; one call
//! whose id changes on the way is one call.

use serde_json::Value;

use crate::{Delta, json::ObjectScan};

/// The calls of one answer.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// How many of them were given out.
    given: usize,
}

struct Call {
    /// The server's number; none where it sends none.
    number: Option<u64>,
    index: u32,
    id: String,
    name: String,
    raw: String,
    scan: ObjectScan,
}

/// One piece as the server sent it.
struct Piece<'a> {
    number: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

impl<'a> Piece<'a> {
    fn read(value: &'a Value) -> Self {
        let function = value.get("function").unwrap_or(value);
        let text = |value: &'a Value, key: &str| value[key].as_str().unwrap_or_default();
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            // Some servers send the arguments as an object instead of its text.
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        };
        let (id, name) = (text(value, "id"), text(function, "name"));
        Self { number: value["index"].as_u64(), id, name, arguments }
    }

    /// Reports whether this piece goes on with `call`, the newest one it could belong to.
    fn continues(&self, call: &Call) -> bool {
        if self.name.is_empty() {
            return true;
        }
        // A name begins a call, unless the server repeats it with every piece.
        if self.name != call.name && !call.name.is_empty() {
            return false;
        }
        let other_id = !self.id.is_empty() && !call.id.is_empty() && self.id != call.id;
        match self.number {
            // Numbered: an id that changes on the way is no new call while arguments are open.
            Some(_) => !call.scan.is_closed(),
            None => !call.scan.is_closed() && !other_id,
        }
    }
}

impl Calls {
    /// Reports whether any call began.
    pub(super) fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes one piece; `next` is the index for a call that begins with it.
    pub(super) fn piece(&mut self, value: &Value, next: &mut u32, out: &mut Vec<Delta>) {
        let piece = Piece::read(value);
        let at = self.find(&piece).unwrap_or_else(|| {
            self.give_whole(out);
            self.calls.push(Call {
                number: piece.number,
                index: *next,
                id: String::new(),
                name: String::new(),
                raw: String::new(),
                scan: ObjectScan::default(),
            });
            *next += 1;
            self.calls.len() - 1
        });
        let given = at < self.given;
        let call = &mut self.calls[at];
        let is_new = call.name.is_empty() && call.raw.is_empty();
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            piece.name.clone_into(&mut call.name);
        }
        // What follows a closed object repeats it or is junk; the call is whole already.
        if given || call.scan.is_closed() || (piece.arguments.is_empty() && !is_new) {
            return;
        }
        call.scan.feed(&piece.arguments);
        call.raw.push_str(&piece.arguments);
        let (index, name) = (call.index, call.name.clone());
        out.push(Delta::CallPart { index, name, json: piece.arguments });
    }

    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let candidate = if piece.number.is_some() {
            self.calls.iter().rposition(|call| call.number == piece.number)
        } else if piece.name.is_empty() && !piece.id.is_empty() {
            let by_id = self.calls.iter().rposition(|call| call.id == piece.id);
            by_id.or_else(|| self.calls.len().checked_sub(1))
        } else {
            self.calls.len().checked_sub(1)
        };
        candidate.filter(|at| piece.continues(&self.calls[*at]))
    }

    /// Gives out the calls that are whole, up to the first that is not.
    pub(super) fn give_whole(&mut self, out: &mut Vec<Delta>) {
        while let Some(call) = self.calls.get_mut(self.given)
            && call.scan.is_closed()
        {
            out.push(call.take(false));
            self.given += 1;
        }
    }

    /// Gives out the remaining calls that are whole, and drops the others: the stream broke.
    pub(super) fn give_whole_only(&mut self, out: &mut Vec<Delta>) {
        for call in &mut self.calls[self.given..] {
            if call.scan.is_closed() {
                out.push(call.take(false));
            }
        }
        self.given = self.calls.len();
    }

    /// Gives out all remaining calls: nothing more will come. With `limit` the answer ran into
    /// the output limit, and what is not whole was cut off by it.
    pub(super) fn give_all(&mut self, limit: bool, out: &mut Vec<Delta>) {
        for call in &mut self.calls[self.given..] {
            let cut = limit && !call.scan.is_closed();
            out.push(call.take(cut));
        }
        self.given = self.calls.len();
    }
}

impl Call {
    fn take(&mut self, cut: bool) -> Delta {
        Delta::Call {
            index: self.index,
            wire_id: std::mem::take(&mut self.id),
            name: std::mem::take(&mut self.name),
            raw: std::mem::take(&mut self.raw),
            cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces, one JSON object a line, and tells the calls as `id name raw`.
    fn calls(pieces: &str) -> Vec<String> {
        let (mut calls, mut next, mut out) = (Calls::default(), 0, Vec::new());
        for line in pieces.lines() {
            calls.piece(&serde_json::from_str(line).unwrap(), &mut next, &mut out);
        }
        calls.give_all(false, &mut out);
        out.into_iter()
            .filter_map(|delta| match delta {
                Delta::Call { wire_id, name, raw, .. } => Some(format!("{wire_id} {name} {raw}")),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn one_number_with_whole_calls_is_several_calls() {
        let pieces = r#"{"index":0,"id":"x","function":{"name":"read","arguments":"{}"}}
{"index":0,"id":"x","function":{"name":"read","arguments":"{\"a\":1}"}}"#;
        assert_eq!(calls(pieces), ["x read {}", "x read {\"a\":1}"]);
    }

    #[test]
    fn an_id_that_changes_on_the_way_is_one_call() {
        let pieces = r#"{"index":0,"id":"a","function":{"name":"read","arguments":""}}
{"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":"}}
{"index":0,"id":"c","function":{"arguments":"1}"}}"#;
        assert_eq!(calls(pieces), ["a read {\"p\":1}"]);
    }

    #[test]
    fn numbers_and_ids_may_be_missing() {
        let pieces = r#"{"function":{"name":"read","arguments":"{\"p\":"}}
{"function":{"arguments":"1}"}}
{"function":{"name":"read","arguments":"{\"p\":2}"}}
{"id":"z","function":{"name":"ls","arguments":{"d":[1]}}}"#;
        assert_eq!(calls(pieces), [" read {\"p\":1}", " read {\"p\":2}", "z ls {\"d\":[1]}"]);
    }

    #[test]
    fn interleaved_pieces_find_their_calls_and_repeats_are_dropped() {
        let pieces = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}
{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}
{"index":0,"function":{"arguments":"1}"}}
{"index":1,"function":{"arguments":"2}"}}
{"index":1,"function":{"arguments":"{\"y\":2}"}}"#;
        assert_eq!(calls(pieces), ["a f {\"x\":1}", "b g {\"y\":2}"]);
    }

    #[test]
    fn calls_without_arguments_stay_apart_by_name() {
        let pieces = r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}
{"index":0,"id":"b","function":{"name":"g","arguments":""}}"#;
        assert_eq!(calls(pieces), ["a f ", "b g "]);
    }
}
