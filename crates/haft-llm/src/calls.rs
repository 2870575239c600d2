//! Puts calls together from pieces that servers number, name and identify in many ways.
//!
//! A piece belongs to the newest call of its number; without numbers, to that of its id, else to
//! the newest of all. It begins another call where it brings another name, or where the object of
//! that call is closed and it brings another id or another object.
//!
//! **Invariant:** a call is given out once, in the order in which calls began, and only when it
//! has ended: its object is closed and another call began behind it, or nothing more can come. An
//! object without fields may be a placeholder, so such a call ends with the answer alone. Two
//! calls with one id are two calls; one call whose id changes on the way is one call.

use haft_types::Hash;
use serde_json::{Map, Value};

use crate::{
    Delta,
    extra::{Extra, unknown},
    failure::MAX_PARTS,
    json::{self, Halves, ObjectScan},
};

/// The calls of one answer.
#[derive(Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    /// How many of them were given out or dropped.
    given: usize,
}

#[derive(Default)]
struct Call {
    /// The server's number; none where it sends none.
    number: Option<u64>,
    index: u32,
    id: String,
    name: String,
    raw: String,
    scan: ObjectScan,
    halves: Halves,
    extra: Extra,
    /// Of its object, once that was given out.
    hash: Option<Hash>,
    /// True once its begin was shown.
    begun: bool,
    /// How much of `raw` was shown.
    shown: usize,
    /// True once its field of arguments was seen, empty or not.
    argued: bool,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// More of it may come.
    #[default]
    Open,
    /// It may only repeat the object of this call; it has no index yet.
    MayRepeat(usize),
    /// It repeated another call, and is none.
    Void,
    /// Its object is closed, and another call began.
    Ended,
}

/// One piece as the server sent it.
struct Piece<'a> {
    number: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: Option<String>,
    value: &'a Value,
}

const KNOWN: [&str; 4] = ["index", "id", "type", "function"];
const KNOWN_OF_FUNCTION: [&str; 2] = ["name", "arguments"];

impl<'a> Piece<'a> {
    fn read(value: &'a Value) -> Self {
        let function = value.get("function").unwrap_or(value);
        let text = |value: &'a Value, key: &str| value[key].as_str().unwrap_or_default();
        let arguments = match &function["arguments"] {
            Value::String(text) => Some(text.clone()),
            // Some servers send the arguments as an object instead of its text.
            object @ Value::Object(_) => Some(object.to_string()),
            _ => None,
        };
        let (id, name) = (text(value, "id"), text(function, "name"));
        Self { number: value["index"].as_u64(), id, name, arguments, value }
    }

    /// Takes the fields that nobody here knows.
    fn gather(&self, extra: &mut Extra) {
        let Some(function) = self.value.get("function") else { return };
        for (key, value) in unknown(self.value, &KNOWN) {
            extra.set(key, value);
        }
        let function: Map<String, Value> = unknown(function, &KNOWN_OF_FUNCTION)
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        if !function.is_empty() {
            extra.set("function", &Value::Object(function));
        }
    }

    /// Reports whether this piece goes on with `call`, the newest one it could belong to.
    fn continues(&self, call: &Call) -> bool {
        if self.has_other_name(call) {
            return self.goes_on_with_name(call).is_some();
        }
        if call.scan.is_closed() {
            let says = |text: &str| !text.trim().is_empty();
            let begins = says(self.name) || self.arguments.as_deref().is_some_and(says);
            return self.id.is_empty() || self.id == call.id || !begins;
        }
        // Without numbers a name and an id begin a call, unless the arguments are in their middle.
        let begins = || self.arguments.as_deref().unwrap_or_default().trim_start();
        let may_begin = self.number.is_none() && !self.name.is_empty() && self.has_other_id(call);
        !(may_begin && (begins().is_empty() || begins().starts_with('{')))
    }

    fn has_other_name(&self, call: &Call) -> bool {
        !self.name.is_empty() && !call.name.is_empty() && self.name != call.name
    }

    fn has_other_id(&self, call: &Call) -> bool {
        !self.id.is_empty() && !call.id.is_empty() && self.id != call.id
    }

    /// The call's name with this piece, where servers send it in pieces: before any arguments, and
    /// without the id that a call of its own would have.
    fn goes_on_with_name(&self, call: &Call) -> Option<String> {
        if !call.raw.trim().is_empty() || !self.has_other_name(call) {
            return None;
        }
        if !self.id.is_empty() {
            let grown = self.id == call.id && self.name.starts_with(&call.name);
            return grown.then(|| self.name.to_owned());
        }
        let alone = self.number.is_some() && !call.argued;
        (!call.id.is_empty() || alone).then(|| format!("{}{}", call.name, self.name))
    }
}

impl Calls {
    /// Reports whether any call began.
    pub(crate) fn any(&self) -> bool {
        self.calls.iter().any(|call| call.state != State::Void)
    }

    /// Reports whether any call has ended.
    pub(crate) fn any_ended(&self) -> bool {
        self.calls.iter().any(|call| call.state == State::Ended)
    }

    /// Begins a call whose arguments follow as [`text`](Self::text).
    pub(crate) fn begin(&mut self, index: u32, id: String, name: String, extra: Extra) {
        self.calls.push(Call { index, id, name, extra, ..Call::default() });
    }

    /// Takes more of the arguments of the newest call.
    pub(crate) fn text(&mut self, text: &str, next: &mut u32, out: &mut Vec<Delta>) {
        if let Some(at) = self.calls.iter().rposition(|call| call.state != State::Void) {
            self.feed(at, text, next, out);
        }
    }

    /// Forgets the arguments that came so far, because others come in their place.
    pub(crate) fn forget_text(&mut self) {
        for call in &mut self.calls {
            (call.raw, call.scan, call.shown) = (String::new(), ObjectScan::default(), 0);
        }
    }

    /// Reports whether the objects of all calls are closed.
    pub(crate) fn are_closed(&self) -> bool {
        self.calls.iter().all(|call| call.state == State::Void || call.scan.is_closed())
    }

    /// How many calls began, those included that only repeated another.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// Takes one piece; `next` is the index for a call that begins with it, `marked` tells whether
    /// the event has marked halves of characters.
    pub(crate) fn piece(
        &mut self,
        value: &Value,
        marked: bool,
        next: &mut u32,
        out: &mut Vec<Delta>,
    ) {
        let piece = Piece::read(value);
        let newest = self.newest(&piece);
        let at = newest.filter(|at| piece.continues(&self.calls[*at])).unwrap_or_else(|| {
            self.end_closed();
            self.give_ended(out);
            // Without a name it is of the tool of the call before.
            let name =
                newest.map(|at| self.calls[at].name.clone()).filter(|_| piece.name.is_empty());
            self.calls.push(Call {
                number: piece.number,
                index: *next,
                name: name.unwrap_or_default(),
                ..Call::default()
            });
            *next += 1;
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        let is_new = !call.begun;
        call.begun = true;
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            piece.name.clone_into(&mut call.name);
        } else if let Some(name) = piece.goes_on_with_name(call) {
            call.name = name;
        }
        piece.gather(&mut call.extra);
        call.argued |= piece.arguments.is_some();
        if is_new {
            let (index, name) = (call.index, call.name.clone());
            out.push(Delta::CallPart { index, name, json: String::new() });
        }
        if let Some(arguments) = &piece.arguments {
            let text = call.halves.join(arguments, marked);
            self.feed(at, &text, next, out);
        }
    }

    /// The call that a piece goes on with, if it begins no other.
    fn newest(&self, piece: &Piece<'_>) -> Option<usize> {
        let newest = |fits: &dyn Fn(&Call) -> bool| {
            self.calls.iter().rposition(|call| call.state != State::Void && fits(call))
        };
        let same_name = |call: &Call| piece.name.is_empty() || call.name == piece.name;
        if piece.number.is_some() {
            newest(&|call| call.number == piece.number)
        } else if piece.id.is_empty() {
            newest(&|_| true)
        } else {
            newest(&|call| call.id == piece.id && same_name(call)).or_else(|| newest(&|_| true))
        }
    }

    /// Adds text to the arguments of a call, and begins others where more objects follow in it.
    fn feed(&mut self, mut at: usize, text: &str, next: &mut u32, out: &mut Vec<Delta>) {
        let mut text = text;
        loop {
            let call = &mut self.calls[at];
            let (now, rest) = text.split_at(call.scan.feed(text));
            call.raw.push_str(now);
            if call.scan.is_closed() {
                at = self.settle(at, next, out);
            }
            let call = &mut self.calls[at];
            call.show(out);
            text = rest.trim_start();
            if text.is_empty() || !call.scan.is_closed() {
                return;
            }
            if json::is_empty_object(&call.raw) && at >= self.given {
                // It held the place of what comes now.
                (call.raw, call.scan) = (String::new(), ObjectScan::default());
            } else if self.count() > MAX_PARTS {
                return;
            } else if text.starts_with('{') {
                at = self.begin_repeated(at);
            } else {
                // Junk behind a whole object changes nothing of it.
                return;
            }
        }
    }

    /// Begins a call of the same tool, for an object behind a closed one.
    fn begin_repeated(&mut self, at: usize) -> usize {
        let Call { number, name, halves, .. } = &mut self.calls[at];
        let (number, name, halves) = (*number, name.clone(), std::mem::take(halves));
        let state = State::MayRepeat(at);
        self.calls.push(Call { number, name, halves, state, ..Call::default() });
        self.calls.len() - 1
    }

    /// Takes note of an object's end: one that only repeats the one before it is dropped. Gives
    /// the call that counts.
    fn settle(&mut self, at: usize, next: &mut u32, out: &mut Vec<Delta>) -> usize {
        let State::MayRepeat(before) = self.calls[at].state else { return at };
        let again = &self.calls[at].raw;
        if json::is_empty_object(again) || self.calls[before].has_same_object(again) {
            self.calls[at].state = State::Void;
            self.calls[before].halves = self.calls[at].halves;
            if at + 1 == self.calls.len() {
                self.calls.pop();
            }
            return before;
        }
        self.confirm(at, next);
        self.give_ended(out);
        at
    }

    /// Makes what may have been a repetition a call of its own.
    fn confirm(&mut self, at: usize, next: &mut u32) {
        self.end_closed();
        let call = &mut self.calls[at];
        (call.state, call.index) = (State::Open, *next);
        *next += 1;
    }

    fn end_closed(&mut self) {
        self.calls[self.given..].iter_mut().for_each(Call::end_if_closed);
    }

    /// Gives out the calls that have ended, up to the first that has not.
    fn give_ended(&mut self, out: &mut Vec<Delta>) {
        while let Some(call) = self.calls.get_mut(self.given)
            && matches!(call.state, State::Ended | State::Void)
        {
            if call.state == State::Ended {
                out.push(call.take(false));
            }
            self.given += 1;
        }
    }

    /// Gives out the remaining calls that have ended, and drops the others: the stream broke.
    pub(crate) fn give_ended_only(&mut self, out: &mut Vec<Delta>) {
        for call in self.calls[self.given..].iter_mut().filter(|call| call.state == State::Ended) {
            out.push(call.take(false));
        }
        self.given = self.calls.len();
    }

    /// Gives out all remaining calls: nothing more will come. With `limit` the answer ran into
    /// the output limit, and what is not whole was cut off by it.
    pub(crate) fn give_all(&mut self, limit: bool, next: &mut u32, out: &mut Vec<Delta>) {
        for at in self.given..self.calls.len() {
            match self.calls[at].state {
                State::Void => continue,
                State::MayRepeat(_) => self.confirm(at, next),
                State::Open | State::Ended => {}
            }
            let call = &mut self.calls[at];
            let cut = limit && !call.scan.is_closed();
            out.push(call.take(cut));
        }
        self.given = self.calls.len();
    }
}

impl Call {
    fn end_if_closed(&mut self) {
        let is_open = self.state == State::Open;
        if is_open && self.scan.is_closed() && !json::is_empty_object(&self.raw) {
            self.state = State::Ended;
        }
    }

    /// Reports whether its object says the same, however that is written.
    fn has_same_object(&self, other: &str) -> bool {
        if let Some(hash) = self.hash {
            return hash == Hash::of(other.trim().as_bytes());
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        self.raw.trim() == other.trim()
            || read(&self.raw).zip(read(other)).is_some_and(|(first, again)| first == again)
    }

    /// Shows what came of the arguments, but for what may be a placeholder or a repetition.
    fn show(&mut self, out: &mut Vec<Delta>) {
        let begun = self.raw.trim_start();
        let may_be_empty =
            begun.is_empty() || begun.trim_end() == "{" || json::is_empty_object(begun);
        if matches!(self.state, State::MayRepeat(_)) || may_be_empty || self.shown == self.raw.len()
        {
            return;
        }
        let json = self.raw[self.shown..].to_owned();
        self.shown = self.raw.len();
        out.push(Delta::CallPart { index: self.index, name: self.name.clone(), json });
    }

    fn take(&mut self, cut: bool) -> Delta {
        if !self.scan.is_closed() {
            self.raw.extend(self.halves.end());
        }
        self.hash = Some(Hash::of(self.raw.trim().as_bytes()));
        Delta::Call {
            index: self.index,
            wire_id: self.id.clone(),
            name: self.name.clone(),
            raw: std::mem::take(&mut self.raw),
            cut,
            extra: self.extra.take(),
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
            calls.piece(&serde_json::from_str(line).unwrap(), false, &mut next, &mut out);
        }
        calls.give_all(false, &mut next, &mut out);
        out.into_iter()
            .filter_map(|delta| match delta {
                Delta::Call { wire_id, name, raw, .. } => Some(format!("{wire_id} {name} {raw}")),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn one_number_with_whole_calls_is_several_calls() {
        let pieces = r#"{"index":0,"id":"x","function":{"name":"read","arguments":"{\"a\":1}"}}
{"index":0,"id":"x","function":{"name":"read","arguments":"{\"a\":2}"}}
{"index":0,"function":{"arguments":"{\"a\""}}
{"index":0,"function":{"arguments":":3}"}}"#;
        assert_eq!(calls(pieces), ["x read {\"a\":1}", " read {\"a\":2}", " read {\"a\":3}"]);
    }

    #[test]
    fn an_object_without_fields_holds_the_place_of_what_follows() {
        let pieces = r#"{"index":0,"id":"x","function":{"name":"ls","arguments":"{}"}}
{"index":1,"id":"y","function":{"name":"ls","arguments":"{ }"}}
{"index":0,"function":{"arguments":"{\"p\":"}}
{"index":1,"function":{"arguments":"{}"}}
{"index":0,"id":"x","function":{"name":"ls","arguments":"1}"}}
{"index":1,"id":"z","function":{"arguments":"{}"}}"#;
        assert_eq!(calls(pieces), ["x ls {\"p\":1}", "y ls {}", "z ls {}"]);
        let pieces = r#"{"index":0,"id":"x","function":{"name":"ls","arguments":"{}"}}
{"index":0,"function":{"arguments":"\"p\":1}"}}"#;
        assert_eq!(calls(pieces), ["x ls \"p\":1}"], "what is no object is never run");
    }

    #[test]
    fn what_repeats_a_whole_object_is_nothing() {
        let pieces = r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1,\"b\":2}"}}
{"index":0,"function":{"arguments":"{\"b\":2, "}}
{"index":0,"function":{"arguments":"\"a\":1}"}}
{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}
{"index":0,"id":"x","function":{"name":"f","arguments":""}}
{"index":0,"function":{"arguments":"<|end|>"}}
{"index":1,"id":"y","function":{"name":"f","arguments":"{\"a\":1,\"b\":2}"}}
{"index":0,"function":{"arguments":"{\"a\":1,\"b\":2}"}}"#;
        let object = "{\"a\":1,\"b\":2}";
        assert_eq!(calls(pieces), [format!("x f {object}"), format!("y f {object}")]);
    }

    #[test]
    fn ids_and_names_that_come_again_with_each_piece_begin_nothing() {
        let pieces = r#"{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}
{"index":0,"id":"a","function":{"name":"read","arguments":":1}"}}
{"index":0,"id":"a","function":{"name":"read","arguments":""}}
{"index":1,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}
{"index":1,"id":"a","function":{"name":"ls","arguments":"{}"}}"#;
        assert_eq!(calls(pieces), ["a read {\"p\":1}", "a read {\"p\":1}", "a ls {}"]);
    }

    #[test]
    fn without_numbers_ids_keep_pieces_apart() {
        let pieces = r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}
{"id":"b","function":{"name":"f","arguments":"{\"y\":"}}
{"id":"a","function":{"arguments":"1}"}}
{"id":"b","function":{"name":"f","arguments":"2}"}}
{"id":"c","function":{"name":"f","arguments":""}}
{"function":{"arguments":"{\"z\":3}"}}"#;
        assert_eq!(calls(pieces), ["a f {\"x\":1}", "b f {\"y\":2}", "c f {\"z\":3}"]);
    }

    #[test]
    fn a_name_may_come_in_pieces() {
        let pieces = r#"{"index":0,"id":"a","function":{"name":"re"}}
{"index":0,"function":{"name":"ad","arguments":""}}
{"index":0,"function":{"arguments":"{}"}}
{"index":1,"id":"b","function":{"name":"fi"}}
{"index":1,"id":"b","function":{"name":"find"}}
{"index":2,"function":{"name":"l"}}
{"index":2,"function":{"name":"s"}}"#;
        assert_eq!(calls(pieces), ["a read {}", "b find ", " ls "]);
    }

    #[test]
    fn halves_of_a_character_in_two_pieces_are_one() {
        let (mut calls, mut next, mut out) = (Calls::default(), 0, Vec::new());
        for piece in [r#"{"a":"\ud83d"}"#, r#"{"a":"\ude00"}"#] {
            let piece = format!(
                r#"{{"function":{{"name":"f","arguments":{}}}}}"#,
                &piece[5..piece.len() - 1]
            );
            let (value, marked) = json::parse(&piece).unwrap();
            calls.piece(&value, marked, &mut next, &mut out);
        }
        calls.give_all(false, &mut next, &mut out);
        let Some(Delta::Call { raw, .. }) = out.last() else { panic!("{out:?}") };
        assert_eq!(raw, "\u{1f600}");
    }

    #[test]
    fn of_a_broken_stream_only_what_had_ended_counts() {
        let pieces = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}"#,
            r#"{"index":2,"id":"c","function":{"name":"g","arguments":"{\"y\":2}"}}"#,
        ];
        let count = |given: usize| {
            let (mut calls, mut next, mut out) = (Calls::default(), 0, Vec::new());
            for piece in &pieces[..given] {
                calls.piece(&serde_json::from_str(piece).unwrap(), false, &mut next, &mut out);
            }
            calls.give_ended_only(&mut out);
            out.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count()
        };
        assert_eq!([count(1), count(2), count(3)], [0, 1, 1]);
    }

    #[test]
    fn fields_that_nobody_knows_are_kept() {
        let pieces = r#"{"index":0,"id":"a","type":"function","extra_content":{"s":1},"x":null,"function":{"name":"f","arguments":"{}","y":2}}"#;
        let (mut calls, mut next, mut out) = (Calls::default(), 0, Vec::new());
        calls.piece(&serde_json::from_str(pieces).unwrap(), false, &mut next, &mut out);
        calls.give_all(false, &mut next, &mut out);
        let Some(Delta::Call { extra, .. }) = out.last() else { panic!("{out:?}") };
        assert_eq!(extra.as_deref(), Some(r#"{"extra_content":{"s":1},"function":{"y":2}}"#));
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
