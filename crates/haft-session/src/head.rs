//! What the begin of a line of a log says of its event, read without the rest.
//!
//! **Invariant:** a line that was written here and one that says the same in another way give the
//! same.

use std::{fmt, sync::LazyLock};

use haft_types::{
    AgentPath, Body, CallId, Event, EventId, Outcome, Part, Status, Stop, ToolUse, TurnId, Usage,
    VERSION,
};
use memchr::memmem::Finder;
use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::LineFault;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) v: u32,
    pub(crate) id: EventId,
    pub(crate) parent: Option<EventId>,
    turn: TurnId,
    pub(crate) agent: AgentPath,
    at: u64,
    pub(crate) kind: &'a str,
    /// The call that it is of, where that stands right behind its type.
    call: Option<&'a str>,
    /// Its place in an answer, in the same way.
    index: u32,
}

impl<'a> Head<'a> {
    /// Reads a line up to the type of its event; none where it has no such begin.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        Self::written(line).or_else(|| Self::parsed(line))
    }

    /// That of a line as the main agent's are written here.
    fn written(line: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(line);
        rest.take(b"{\"v\":")?;
        let v = u32::try_from(rest.number()?).ok()?;
        rest.take(b",\"id\":")?;
        let id = EventId(rest.number()?);
        let parent = match rest.take(b",\"parent\":") {
            Some(()) => Some(EventId(rest.number()?)),
            None => None,
        };
        rest.take(b",\"turn\":")?;
        let turn = TurnId(rest.number()?);
        rest.take(b",\"at\":")?;
        let at = rest.number()?;
        rest.take(b",\"type\":\"")?;
        let kind = rest.text()?;
        let mut head = Self { v, id, parent, turn, at, kind, ..Self::default() };
        if rest.take(b",\"call\":\"").is_some() {
            head.call = Some(rest.text()?);
        } else if rest.take(b",\"index\":").is_some() {
            head.index = u32::try_from(rest.number()?).ok()?;
        }
        (!kind.is_empty()).then_some(head)
    }

    fn parsed(line: &'a [u8]) -> Option<Self> {
        let mut head = Self::default();
        // It always ends with an error: the rest of the line is left unread.
        drop(serde_json::Deserializer::from_slice(line).deserialize_map(HeadOf(&mut head)));
        (!head.kind.is_empty()).then_some(head)
    }

    /// The event of this line without its content, where it is of a type whose content only the
    /// conversation needs; the error of one that is needed and cannot be read.
    pub(crate) fn bare(&self, line: &[u8]) -> Option<Result<Event, LineFault>> {
        let call = self.call.map(|call| CallId(call.into()));
        let body = match (self.kind, call) {
            ("answer_part", _) => match bare_part(line) {
                Ok(part) => Body::AnswerPart { index: self.index, part },
                Err(error) => return Some(Err(LineFault::NotAnEvent(error.to_string()))),
            },
            ("answer_ended", _) => Body::AnswerEnded {
                model: String::new(),
                wire: String::new(),
                host: String::new(),
                stop: Stop::EndTurn,
                usage: Usage::default(),
            },
            ("call_started", Some(call)) => {
                Body::CallStarted { call, tool: String::new(), input: None, plan: None }
            }
            ("call_ended", Some(call)) => {
                Body::CallEnded { call, outcome: Outcome::ended(Status::Done, ""), took: 0 }
            }
            ("pinned", _) => {
                Body::Pinned { system: Vec::new(), tools: String::new(), format: String::new() }
            }
            _ => return None,
        };
        let (id, parent) = (Some(self.id), self.parent);
        let (turn, agent, at) = (self.turn, self.agent.clone(), self.at);
        Some(Ok(Event { v: VERSION, id, parent, turn, agent, at, body }))
    }
}

/// What of a line is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Passes these bytes, where they are next.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    /// A whole number as JSON writes it.
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut end) = (0_u64, 0);
        while let Some(digit) = self.0.get(end).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
        {
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            end += 1;
        }
        let is_padded = end > 1 && self.0.first() == Some(&b'0');
        if end == 0 || is_padded {
            return None;
        }
        self.0 = &self.0[end..];
        Some(number)
    }

    /// The rest of a text that has nothing escaped, and the quote behind it.
    fn text(&mut self) -> Option<&'a str> {
        let end = memchr::memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix(b"\"")?;
        let is_plain = |byte: &u8| (b' '..0x7f).contains(byte);
        text.iter().all(is_plain).then(|| std::str::from_utf8(text).ok())?
    }
}

/// What is read of a part of an answer whose content nobody needs.
#[derive(Deserialize)]
struct Bare {
    part: BarePart,
}

#[derive(Deserialize)]
struct BarePart {
    r#type: String,
    id: Option<CallId>,
    #[serde(default)]
    wire_id: String,
}

/// A part of an answer: of a call its ids, and of all else nothing.
fn bare_part(line: &[u8]) -> serde_json::Result<Part> {
    static CALL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"type\":\"call\""));
    if CALL.find(line).is_none() {
        return Ok(Part::text(""));
    }
    let Bare { part } = serde_json::from_slice(line)?;
    let Some(id) = part.id.filter(|_| part.r#type == "call") else { return Ok(Part::text("")) };
    let mut call = ToolUse::new(id, "", Value::Null);
    (call.wire_id, call.input) = (part.wire_id, None);
    call.raw.clear();
    Ok(Part::Call(call))
}

struct HeadOf<'a, 'de>(&'a mut Head<'de>);

impl<'de> Visitor<'de> for HeadOf<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            match key {
                "v" => self.0.v = map.next_value()?,
                "id" => self.0.id = map.next_value()?,
                "parent" => self.0.parent = map.next_value()?,
                "turn" => self.0.turn = map.next_value()?,
                "agent" => self.0.agent = map.next_value()?,
                "at" => self.0.at = map.next_value()?,
                "type" => {
                    self.0.kind = map.next_value()?;
                    match map.next_key::<&str>()? {
                        Some("call") => self.0.call = map.next_value()?,
                        Some("index") => self.0.index = map.next_value()?,
                        _ => {}
                    }
                    return Ok(());
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_they_are_written_and_others_give_the_same() {
        for (line, is_quick) in [
            (r#"{"v":2,"id":1,"turn":0,"at":17,"type":"session","session":"x"}"#, true),
            (
                r#"{"v":1,"id":9,"parent":8,"turn":3,"at":17,"type":"call_ended","call":"c1","x":1}"#,
                true,
            ),
            (
                r#"{"v":2,"id":9,"parent":8,"turn":3,"at":17,"type":"answer_part","index":4,"x":1}"#,
                true,
            ),
            (
                r#"{"v":2,"id":9,"parent":8,"turn":3,"agent":["a"],"at":17,"type":"user","x":1}"#,
                false,
            ),
            (
                r#"{"v":2,"id":9,"turn":3,"at":17,"type":"call_ended","call":"c\u0031","x":1}"#,
                false,
            ),
            (r#"{ "v":2,"id":9,"turn":3,"at":17,"type":"user","x":1}"#, false),
            (r#"{"id":9,"v":2,"turn":3,"at":17,"type":"user","x":1}"#, false),
        ] {
            let (quick, parsed) = (Head::written(line.as_bytes()), Head::parsed(line.as_bytes()));
            assert_eq!(quick.is_some(), is_quick, "{line}");
            assert!(parsed.is_some(), "{line}");
            if is_quick {
                assert_eq!(quick, parsed, "{line}");
            }
        }
    }

    #[test]
    fn what_is_no_begin_of_an_event_gives_none() {
        for line in [
            "",
            "{",
            r#"{"v":2,"id":"#,
            r#"{"v":2,"id":1,"turn":0,"at":17,"type":""}"#,
            r#"{"v":2,"id":01,"turn":0,"at":17,"type":"user"}"#,
            r#"{"v":2,"id":99999999999999999999,"turn":0,"at":17,"type":"user"}"#,
            r#"{"v":2,"id":-1,"turn":0,"at":17,"type":"user"}"#,
        ] {
            assert_eq!(Head::of(line.as_bytes()), None, "{line}");
        }
    }
}
