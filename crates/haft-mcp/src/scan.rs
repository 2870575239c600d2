//! What can still be learnt from a line that is no readable message: its id, to answer it.
//!
//! **Invariant:** any bytes in any pieces are taken, in fixed memory and without recursion. Only
//! the outermost object counts; what is found there is found although the rest is broken.

use serde_json::Value;

/// Longest key or id that is kept, in bytes.
const TOKEN: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    depth: usize,
    inside: Inside,
    part: Part,
    /// The key that is being read, or the id.
    token: Vec<u8>,
    id: Option<Value>,
    method: bool,
    reply: bool,
    /// How many values there are, at most.
    values: usize,
}

/// Where in a string the scan is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    Text,
    Escape,
}

/// Where in the outermost object the scan is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Part {
    #[default]
    Before,
    Key,
    Id,
    Value,
    /// Behind the object, or there is none.
    After,
}

impl Scan {
    /// A scan of bytes that are there whole.
    pub fn of(bytes: &[u8]) -> Self {
        let mut scan = Self::default();
        scan.feed(bytes);
        scan
    }

    /// Goes on with the next piece of the line.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// The id, where it is a text or a number.
    pub fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    /// Reports whether the line looks like an answer to a request of ours.
    pub fn is_reply(&self) -> bool {
        self.reply && !self.method
    }

    /// An upper bound of the number of values.
    pub fn values(&self) -> usize {
        self.values
    }

    fn byte(&mut self, byte: u8) {
        match (self.inside, byte) {
            (Inside::Text, b'\\') => self.keep(byte, Inside::Escape),
            (Inside::Text, b'"') => self.keep(byte, Inside::Nothing),
            (Inside::Text | Inside::Escape, _) | (Inside::Nothing, b'"') => {
                self.keep(byte, Inside::Text);
            }
            (Inside::Nothing, b'{' | b'[') => self.open(byte),
            (Inside::Nothing, b'}' | b']') => self.close(),
            (Inside::Nothing, b',') => {
                self.values += 1;
                if self.depth == 1 {
                    self.end_value();
                }
            }
            (Inside::Nothing, b':') if self.depth == 1 && self.part == Part::Key => self.end_key(),
            (Inside::Nothing, byte) if byte.is_ascii_whitespace() => {}
            (Inside::Nothing, _) => self.keep(byte, Inside::Nothing),
        }
    }

    fn keep(&mut self, byte: u8, inside: Inside) {
        self.inside = inside;
        let wanted = self.depth == 1 && matches!(self.part, Part::Key | Part::Id);
        // One byte too many makes it no JSON: what is too long is not found.
        if wanted && self.token.len() < TOKEN {
            self.token.push(byte);
        }
    }

    fn open(&mut self, byte: u8) {
        self.values += 1;
        self.depth += 1;
        self.part = match self.part {
            Part::Before if byte == b'{' => Part::Key,
            Part::Before => Part::After,
            // An id that is a list or an object is none.
            Part::Id => Part::Value,
            part => part,
        };
    }

    fn close(&mut self) {
        if self.depth == 1 {
            self.end_value();
            self.part = Part::After;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn end_key(&mut self) {
        self.part = Part::Value;
        match &self.token[..] {
            br#""id""# => self.part = Part::Id,
            br#""method""# => self.method = true,
            br#""result""# | br#""error""# => self.reply = true,
            _ => {}
        }
        self.token.clear();
    }

    fn end_value(&mut self) {
        if self.part == Part::Id {
            let id: Option<Value> = serde_json::from_slice(&self.token).ok();
            self.id = id.filter(|id| id.is_string() || id.is_number());
        }
        if self.part != Part::After {
            self.part = Part::Key;
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id(line: &str) -> Value {
        Scan::of(line.as_bytes()).id().cloned().unwrap_or_default()
    }

    #[test]
    fn an_id_is_found_wherever_it_stands_in_the_outermost_object() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (line, found) in [
            (r#"{"id":7,"x":"\ud800"}"#.to_owned(), json!(7)),
            (r#"{ "x" : "\ud800" , "id" : "a,\"b" }"#.to_owned(), json!("a,\"b")),
            (format!(r#"{{"params":{deep},"id":-3}}"#), json!(-3)),
            (format!(r#"{{"params":{{"id":1}},"id":2,"x":{deep}"#), json!(2)),
            (r#"{"x":"\"id\":1","y":["id",1]}"#.to_owned(), Value::Null),
            (r#"{"id":[1],"x":"id"}"#.to_owned(), Value::Null),
            (r#"{"id":nul,"#.to_owned(), Value::Null),
            (r#"[{"id":1}]"#.to_owned(), Value::Null),
            (r#"{"x":1}{"id":1}"#.to_owned(), Value::Null),
            (format!(r#"{{"id":"{}","#, "a".repeat(2 * TOKEN)), Value::Null),
        ] {
            assert_eq!(id(&line), found, "{line:.60}");
        }
    }

    #[test]
    fn an_answer_is_told_from_a_request() {
        assert!(Scan::of(br#"{"id":1,"result":{"x":"\ud800"}}"#).is_reply());
        assert!(!Scan::of(br#"{"id":1,"method":"m","params":{"result":1}}"#).is_reply());
    }
}
