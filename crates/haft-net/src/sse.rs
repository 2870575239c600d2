//! A parser of server-sent events: bytes are pushed in, events come out.
//!
//! **Invariant:** the events do not depend on where the bytes were cut into packets, and no more
//! than the stated size is ever held. Knows nothing of what the data means.
//!
//! Source: HTML Living Standard, section 9.2 "Server-sent events".

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty where the server gave none.
    pub name: String,
    /// The `data` lines, joined by line feeds; invalid UTF-8 is replaced.
    pub data: String,
}

/// What a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseItem {
    /// An event with data.
    Event(SseEvent),
    /// A comment: the server only says that it is still there.
    KeepAlive,
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One line or event is larger than allowed.
    #[error("one event of the stream is larger than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads an event stream piece by piece.
#[derive(Clone, Debug)]
pub struct SseParser {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// Data lines of the event that is not complete yet, each with its line feed.
    data: Vec<u8>,
    name: Vec<u8>,
    /// True until the first line is complete: a byte order mark may stand there.
    first: bool,
    /// True after a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    max: usize,
}

impl SseParser {
    /// Makes a parser that holds at most `max` bytes of one event.
    pub const fn new(max: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            first: true,
            after_return: false,
            max,
        }
    }

    /// Takes the next bytes and appends what they complete to `out`.
    ///
    /// # Errors
    /// Fails when a line or an event is larger than the limit; the stream cannot be read on then.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<SseItem>) -> Result<(), SseError> {
        while !bytes.is_empty() {
            if self.after_return {
                self.after_return = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            let end = bytes.iter().position(|&b| b == b'\n' || b == b'\r');
            let (text, rest) = match end {
                Some(at) => (&bytes[..at], &bytes[at + 1..]),
                None => (bytes, &bytes[bytes.len()..]),
            };
            if self.line.len() + text.len() + self.data.len() > self.max {
                return Err(SseError::TooLarge { max: self.max });
            }
            self.line.extend_from_slice(text);
            if let Some(at) = end {
                self.after_return = bytes[at] == b'\r';
                self.end_line(out);
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Gives the event that the stream's end left without its closing blank line.
    ///
    /// The standard drops such an event; servers that forget the last blank line exist, and a
    /// caller whose data carries its own end (JSON) can tell a whole one from a cut one.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.dispatch(&mut out);
        out.into_iter().find_map(|item| match item {
            SseItem::Event(event) => Some(event),
            SseItem::KeepAlive => None,
        })
    }

    fn end_line(&mut self, out: &mut Vec<SseItem>) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        match line.iter().position(|&b| b == b':') {
            None if line.is_empty() => self.dispatch(out),
            Some(0) => out.push(SseItem::KeepAlive),
            at => {
                let name = &line[..at.unwrap_or(line.len())];
                let value = at.map_or(&[][..], |at| &line[at + 1..]);
                self.field(name, value.strip_prefix(b" ").unwrap_or(value));
            }
        }
        line.clear();
        self.line = line;
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_vec(),
            // `id` and `retry` serve reconnecting, which no model wire can.
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut Vec<SseItem>) {
        let name = std::mem::take(&mut self.name);
        if self.data.pop().is_some() {
            let data = std::mem::take(&mut self.data);
            out.push(SseItem::Event(SseEvent { name: text(name), data: text(data) }));
        }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseItem> {
        let mut parser = SseParser::new(1 << 20);
        let mut out = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut out).unwrap();
        }
        out
    }

    fn event(name: &str, data: &str) -> SseItem {
        SseItem::Event(SseEvent { name: name.into(), data: data.into() })
    }

    #[test]
    fn fields_comments_and_several_data_lines() {
        let text = b"\xef\xbb\xbf: hi\nevent: a\ndata: one\ndata:two\ndata\nid: 7\nretry: 1\n\n\ndata:  x\n\n";
        let expected = vec![SseItem::KeepAlive, event("a", "one\ntwo\n"), event("", " x")];
        assert_eq!(read(&[text]), expected);
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_is_forgotten() {
        assert_eq!(read(&[b"event: ping\n\ndata: {}\n\n"]), vec![event("", "{}")]);
    }

    #[test]
    fn all_line_ends_mean_the_same() {
        let expected = vec![event("n", "1\n2"), event("", "3")];
        for end in ["\n", "\r", "\r\n"] {
            let text = "event: n\ndata: 1\ndata: 2\n\ndata: 3\n\n".replace('\n', end);
            assert_eq!(read(&[text.as_bytes()]), expected, "{end:?}");
        }
    }

    #[test]
    fn what_the_end_left_open_is_given_on_request() {
        let mut parser = SseParser::new(100);
        let mut out = Vec::new();
        parser.push(b"data: [DONE]", &mut out).unwrap();
        assert_eq!(out, vec![]);
        let last = parser.finish().unwrap();
        assert_eq!(last.data, "[DONE]");
        assert_eq!(parser.finish(), None);
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_refused() {
        let mut parser = SseParser::new(64);
        let mut out = Vec::new();
        let long = [b'x'; 65];
        assert_eq!(parser.push(&long, &mut out), Err(SseError::TooLarge { max: 64 }));
        let mut parser = SseParser::new(64);
        let refused = (0..100).any(|_| parser.push(b"data: 123456\n", &mut out).is_err());
        assert!(refused);
    }

    proptest! {
        #[test]
        fn packets_change_nothing(
            text in "(data|event|id|:| |\r|\n|\r\n|\u{feff}|[a-z]|\u{e9}|\u{1f600}){0,60}",
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut parser = SseParser::new(128);
            let mut out = Vec::new();
            for byte in &bytes {
                if parser.push(&[*byte], &mut out).is_err() {
                    break;
                }
                prop_assert!(parser.line.len() + parser.data.len() <= 256);
            }
            parser.finish();
        }
    }
}
