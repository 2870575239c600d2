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

use std::collections::HashMap;

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
    list: Vec<Call>,
    /// The newest call of each number.
    by_number: HashMap<u64, usize>,
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
    /// The first characters of the arguments that are no white space.
    ink: String,
    /// Of what its object says, once that was asked.
    hash: Option<Hash>,
    /// True where an object behind its own takes the place of that.
    holds_place: bool,
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

/// How many characters of arguments tell an object without fields from all others.
const INK: usize = 3;

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
            Value::Null => None,
            // Some servers send the arguments as an object instead of its text.
            other => Some(other.to_string()),
        };
        let (id, name) = (text(value, "id"), text(function, "name"));
        Self { number: json::number(&value["index"]), id, name, arguments, value }
    }

    /// Reports whether nothing stands in it, as some servers send with every chunk.
    fn is_empty(&self) -> bool {
        let is_blank = |text: &String| text.trim().is_empty();
        self.id.is_empty() && self.name.is_empty() && self.arguments.as_ref().is_none_or(is_blank)
    }

    /// Takes the fields that nobody here knows.
    fn gather(&self, marked: bool, extra: &mut Extra) {
        if self.value.get("arguments").or_else(|| self.value.get("name")).is_some() {
            return;
        }
        for (key, value) in unknown(self.value, &KNOWN) {
            extra.set(key, value, marked);
        }
        let function: Map<String, Value> = unknown(&self.value["function"], &KNOWN_OF_FUNCTION)
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        if !function.is_empty() {
            extra.set("function", &Value::Object(function), marked);
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
        let says = |text: &String| !text.trim().is_empty();
        let argues = call.scan.is_closed()
            || !call.ink.is_empty()
            || self.arguments.as_ref().is_some_and(says);
        if argues || !self.has_other_name(call) || self.has_other_id(call) {
            return None;
        }
        if !self.id.is_empty() && self.name.starts_with(&call.name) {
            return Some(self.name.to_owned());
        }
        // Without an id of its own, or before a field of arguments: a call would have these.
        let is_piece = match (self.id.is_empty(), call.id.is_empty()) {
            (true, false) => true,
            (true, true) => self.number.is_some() && !call.argued,
            (false, _) => !call.argued && self.arguments.is_none(),
        };
        is_piece.then(|| format!("{}{}", call.name, self.name))
    }
}

impl Calls {
    /// Reports whether any call began.
    pub(crate) fn any(&self) -> bool {
        self.list.iter().any(|call| call.state != State::Void)
    }

    /// Reports whether any call has ended.
    pub(crate) fn any_ended(&self) -> bool {
        self.list.iter().any(|call| call.state == State::Ended)
    }

    /// Begins a call whose arguments follow as [`text`](Self::text).
    pub(crate) fn begin(&mut self, index: u32, id: String, name: String, extra: Extra) {
        self.list.push(Call { index, id, name, extra, ..Call::default() });
    }

    /// Takes more of the arguments of the newest call.
    pub(crate) fn text(&mut self, text: &str, next: &mut u32, out: &mut Vec<Delta>) {
        if let Some(at) = self.list.iter().rposition(|call| call.state != State::Void) {
            self.feed(at, text, next, out);
        }
    }

    /// Lets other arguments take the place of those that came so far.
    pub(crate) fn hold_place(&mut self) {
        self.list.iter_mut().for_each(|call| call.holds_place = true);
    }

    /// Reports whether the objects of all calls are closed.
    pub(crate) fn are_closed(&self) -> bool {
        self.list.iter().all(|call| call.state == State::Void || call.scan.is_closed())
    }

    /// How many calls began, those included that only repeated another.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
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
        self.take(&Piece::read(value), marked, next, out);
    }

    /// Takes a whole call of a list in which each stands once.
    pub(crate) fn whole(
        &mut self,
        (at, value): (usize, &Value),
        marked: bool,
        next: &mut u32,
        out: &mut Vec<Delta>,
    ) {
        let number = u64::try_from(at).ok();
        self.take(&Piece { number, ..Piece::read(value) }, marked, next, out);
    }

    fn take(&mut self, piece: &Piece<'_>, marked: bool, next: &mut u32, out: &mut Vec<Delta>) {
        let newest = self.newest(piece);
        if newest.is_none() && piece.is_empty() {
            return;
        }
        let at = newest.filter(|at| piece.continues(&self.list[*at])).unwrap_or_else(|| {
            self.end_closed();
            self.give_ended(out);
            // Without a name it is of the tool of the call before.
            let name =
                newest.map(|at| self.list[at].name.clone()).filter(|_| piece.name.is_empty());
            let (number, name) = (piece.number, name.unwrap_or_default());
            self.list.push(Call { number, index: *next, name, ..Call::default() });
            *next += 1;
            self.list.len() - 1
        });
        self.note_number(piece.number, at);
        let call = &mut self.list[at];
        call.number = call.number.or(piece.number);
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
        piece.gather(marked, &mut call.extra);
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
            self.list.iter().rposition(|call| call.state != State::Void && fits(call))
        };
        let same_name = |call: &Call| piece.name.is_empty() || call.name == piece.name;
        if let Some(number) = piece.number {
            // What began in a form without numbers may go on in one that has them.
            let unnumbered = || newest(&|call| call.number.is_none() && same_name(call));
            self.by_number.get(&number).copied().or_else(unnumbered)
        } else if piece.id.is_empty() {
            newest(&|_| true)
        } else {
            newest(&|call| call.id == piece.id && same_name(call)).or_else(|| newest(&|_| true))
        }
    }

    fn note_number(&mut self, number: Option<u64>, at: usize) {
        if let Some(number) = number {
            self.by_number.insert(number, at);
        }
    }

    /// Adds text to the arguments of a call, and begins others where more objects follow in it.
    fn feed(&mut self, mut at: usize, text: &str, next: &mut u32, out: &mut Vec<Delta>) {
        let mut text = text;
        loop {
            let call = &mut self.list[at];
            let (now, rest) = text.split_at(call.scan.feed(text));
            call.push(now);
            if call.scan.is_closed() {
                at = self.settle(at, next, out);
            }
            let call = &mut self.list[at];
            call.show(out);
            text = rest.trim_start();
            if text.is_empty() || !call.scan.is_closed() {
                return;
            }
            if call.is_empty_object() && at >= self.given {
                // It held the place of what comes now.
                call.clear();
                continue;
            }
            // Junk behind a whole object changes nothing of it.
            let Some(begin) = text.find('{').filter(|_| self.count() <= MAX_PARTS) else { return };
            text = &text[begin..];
            at = self.begin_repeated(at);
        }
    }

    /// Begins a call of the same tool, for an object behind a closed one.
    fn begin_repeated(&mut self, at: usize) -> usize {
        let Call { number, name, halves, .. } = &mut self.list[at];
        let (number, name, halves) = (*number, name.clone(), std::mem::take(halves));
        let state = State::MayRepeat(at);
        self.list.push(Call { number, name, halves, state, ..Call::default() });
        self.note_number(number, self.list.len() - 1);
        self.list.len() - 1
    }

    /// Takes note of an object's end: one that only repeats the one before it is dropped. Gives
    /// the call that counts.
    fn settle(&mut self, at: usize, next: &mut u32, out: &mut Vec<Delta>) -> usize {
        let State::MayRepeat(before) = self.list[at].state else { return at };
        let hash = self.list[at].hash();
        let is_same = self.list[at].is_empty_object() || self.list[before].hash() == hash;
        let takes_place = self.list[before].holds_place && !is_same;
        if is_same || takes_place {
            let again = std::mem::take(&mut self.list[at]);
            self.note_number(again.number, before);
            self.list[at].state = State::Void;
            if at + 1 == self.list.len() {
                self.list.pop();
            }
            let call = &mut self.list[before];
            call.halves = again.halves;
            if takes_place {
                call.clear();
                (call.raw, call.ink, call.scan) = (again.raw, again.ink, again.scan);
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
        let call = &mut self.list[at];
        (call.state, call.index) = (State::Open, *next);
        *next += 1;
    }

    fn end_closed(&mut self) {
        self.list[self.given..].iter_mut().for_each(Call::end_if_closed);
    }

    /// Gives out the calls that have ended, up to the first that has not.
    fn give_ended(&mut self, out: &mut Vec<Delta>) {
        while let Some(call) = self.list.get_mut(self.given)
            && matches!(call.state, State::Ended | State::Void)
        {
            if call.state == State::Ended {
                out.push(call.give(false));
            }
            self.given += 1;
        }
    }

    /// Gives out the remaining calls that have ended, and drops the others: the stream broke.
    pub(crate) fn give_ended_only(&mut self, out: &mut Vec<Delta>) {
        for call in self.list[self.given..].iter_mut().filter(|call| call.state == State::Ended) {
            out.push(call.give(false));
        }
        self.given = self.list.len();
    }

    /// Gives out the remaining calls that are whole, and drops the others: the answer ended badly.
    pub(crate) fn give_closed(&mut self, out: &mut Vec<Delta>) {
        self.end_closed();
        self.give_ended_only(out);
    }

    /// Gives out all remaining calls: nothing more will come. With `limit` the answer ran into
    /// the output limit, and what is not whole was cut off by it.
    pub(crate) fn give_all(&mut self, limit: bool, next: &mut u32, out: &mut Vec<Delta>) {
        for at in self.given..self.list.len() {
            match self.list[at].state {
                State::Void => continue,
                // What was to take another's place is not whole: neither is that.
                State::MayRepeat(before) if self.list[before].holds_place => {
                    let Call { raw, .. } = std::mem::take(&mut self.list[at]);
                    if let Some(Delta::Call { raw: place, .. }) = out.last_mut() {
                        *place = raw;
                    }
                    continue;
                }
                State::MayRepeat(_) => self.confirm(at, next),
                State::Open if self.list[at].name.is_empty() && self.list[at].raw.is_empty() => {
                    continue;
                }
                State::Open | State::Ended => {}
            }
            let call = &mut self.list[at];
            let cut = limit && !call.scan.is_closed();
            out.push(call.give(cut));
        }
        self.given = self.list.len();
    }
}

impl Call {
    fn end_if_closed(&mut self) {
        let is_open = self.state == State::Open;
        if is_open && self.scan.is_closed() && !self.is_empty_object() {
            self.state = State::Ended;
        }
    }

    /// Adds to the arguments.
    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.raw.push_str(text);
        let room = INK - self.ink.chars().count();
        self.ink.extend(text.chars().filter(|c| !c.is_whitespace()).take(room));
        self.hash = None;
    }

    fn clear(&mut self) {
        (self.raw, self.ink, self.scan) = Default::default();
        (self.shown, self.hash) = (0, None);
    }

    /// Reports whether the arguments are an object without fields.
    fn is_empty_object(&self) -> bool {
        self.ink == "{}"
    }

    /// What the object says, however it is written; kept, so that each object is read once.
    fn hash(&mut self) -> Hash {
        *self.hash.get_or_insert_with(|| {
            let read = serde_json::from_str::<Value>(&self.raw).ok();
            let written = read.map(|value| json::in_order(value).to_string());
            Hash::of(written.as_deref().unwrap_or_else(|| self.raw.trim()).as_bytes())
        })
    }

    /// Shows what came of the arguments, but for what may be a placeholder or a repetition.
    fn show(&mut self, out: &mut Vec<Delta>) {
        let may_be_empty = "{}".starts_with(&self.ink);
        let may_repeat = matches!(self.state, State::MayRepeat(_));
        if may_repeat || may_be_empty || self.shown == self.raw.len() {
            return;
        }
        let json = self.raw[self.shown..].to_owned();
        self.shown = self.raw.len();
        out.push(Delta::CallPart { index: self.index, name: self.name.clone(), json });
    }

    fn give(&mut self, cut: bool) -> Delta {
        if !self.scan.is_closed() {
            self.raw.extend(self.halves.end());
        }
        self.hash();
        self.shown = 0;
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
