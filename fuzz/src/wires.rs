//! What comes over wires: lines of MCP, and server-sent events.
//!
//! Invariant: the first bytes of an input only say where the rest is cut into pieces.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

use crate::lines::{Line, Lines};
use crate::scan::Scan;
use crate::sse::{SseError, SseEvent, SseItem, SseParser};

/// Bytes that a line, or an event, may have here.
const MAX: usize = 256;

/// The pieces of an input: each as long as one of the first four bytes says, in turns.
fn pieces(data: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (lengths, bytes) = data.split_at_checked(4)?;
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((usize::from(*length) + 1).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    Some((pieces, bytes))
}

/// Lines are those between line feeds however they come, and what can be learnt of one agrees with
/// what it says as JSON.
pub fn mcp(data: &[u8]) {
    let Some((pieces, bytes)) = pieces(data) else { return };
    let mut wanted: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if wanted.last().is_some_and(|last| last.is_empty()) {
        wanted.pop();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("one can be made");
    let came = runtime.block_on(async {
        let mut lines = Lines::up_to(MAX, Pieces(pieces.into_iter().map(<[u8]>::to_vec).collect()));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    });
    assert_eq!(came.len(), wanted.len(), "each line comes once");
    for (came, wanted) in came.iter().zip(&wanted) {
        match came {
            Line::Whole(line) => assert!(line == wanted && line.len() <= MAX),
            Line::TooLong(scan) => {
                assert!(wanted.len() > MAX);
                same(scan, &Scan::of(wanted));
            }
        }
        learnt(wanted);
    }
}

fn same(one: &Scan, other: &Scan) {
    assert_eq!(one.id(), other.id());
    assert_eq!((one.is_reply(), one.values()), (other.is_reply(), other.values()));
}

fn learnt(line: &[u8]) {
    let whole = Scan::of(line);
    let mut scan = Scan::default();
    line.chunks(3).for_each(|piece| scan.feed(piece));
    same(&whole, &scan);
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
    assert!(values(&value) <= whole.values() + 1, "more values than {}", whole.values());
    // A key that is there twice or written with escapes is found in another way, or not at all.
    let is_plain = |text: &str| !text.contains('\\') && text.matches("\"id\"").count() <= 1;
    let Some(map) = value.as_object().filter(|_| str::from_utf8(line).is_ok_and(is_plain)) else {
        return;
    };
    let id = map.get("id").filter(|id| id.is_string() || id.is_number());
    assert_eq!(whole.id(), id);
    let answers = map.contains_key("result") || map.contains_key("error");
    assert_eq!(whole.is_reply(), answers && !map.contains_key("method"));
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(map) => map.values().map(values).sum(),
        _ => 0,
    }
}

/// A reader that gives one piece at a time, the last first.
struct Pieces(std::collections::VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            to.put_slice(&piece);
        }
        Poll::Ready(Ok(()))
    }
}

/// Events do not depend on where packets end, and are those that the standard gives.
pub fn sse(data: &[u8]) {
    let Some((pieces, bytes)) = pieces(data) else { return };
    let whole = events(&[bytes]);
    assert_eq!(events(&pieces), whole);
    if let Ok(all) = whole {
        assert_eq!(all, naive(bytes));
    }
}

/// What a parser gives for these pieces; what the end left open is no event here.
fn events(pieces: &[&[u8]]) -> Result<Vec<SseItem>, SseError> {
    let mut parser = SseParser::new(MAX);
    let mut out = Vec::new();
    for piece in pieces {
        let refused = parser.push(piece, &mut out);
        if refused.is_err() {
            return refused.map(|()| out);
        }
    }
    // May be called twice, and has nothing to say then.
    drop(parser.finish());
    assert_eq!(parser.finish(), None);
    Ok(out)
}

/// The events of a whole stream, as the standard says, line by line.
fn naive(bytes: &[u8]) -> Vec<SseItem> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut lines, mut line, mut at) = (Vec::new(), Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {
                lines.push(std::mem::take(&mut line));
                at += 1;
            }
            b'\r' | b'\n' => lines.push(std::mem::take(&mut line)),
            byte => line.push(byte),
        }
        at += 1;
    }
    let (mut out, mut name, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" if colon.is_some() => out.push(SseItem::KeepAlive),
            b"" => {
                let name = std::mem::take(&mut name);
                let data: Vec<Vec<u8>> = std::mem::take(&mut data);
                if !data.is_empty() {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let data = text(&data.join(&b'\n'));
                    out.push(SseItem::Event(SseEvent { name: text(&name), data }));
                }
            }
            b"data" => data.push(value.to_vec()),
            b"event" => name = value.to_vec(),
            _ => {}
        }
    }
    out
}
