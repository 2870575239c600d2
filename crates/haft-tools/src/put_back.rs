//! Placeholders of secrets in what is to be written, and the values that they stand for.
//!
//! **Invariant:** a value is put back only where the very file has it: nothing that one file hides gets
//! into another. A file that has a placeholder as its own text keeps that.

use std::ops::Range;

use haft_text::{
    decode,
    secrets::{self, Secrets},
};
use haft_tool::Cx;
use haft_types::ToolError;
use memchr::memmem;

/// The file that values are put back into.
pub(crate) struct PutBack<'a> {
    secrets: &'a Secrets,
    old: &'a [u8],
    shown: &'a str,
}

impl<'a> PutBack<'a> {
    /// For a file that holds these bytes; none where it is new.
    pub fn new(cx: &'a Cx, old: &'a [u8], shown: &'a str) -> Self {
        Self { secrets: &cx.session().secrets, old, shown }
    }

    /// A text with the values of its placeholders; `what` says which text it is.
    ///
    /// # Errors
    /// Where a placeholder stands for nothing that the file has.
    pub fn text(&self, text: &str, what: &str) -> Result<String, ToolError> {
        let places: Vec<(Range<usize>, &str)> = secrets::placeholders(text).collect();
        if places.is_empty() {
            return Ok(text.to_owned());
        }
        let decoded = decode::decode(self.old).ok();
        let old = decoded.as_ref().map_or("", |decoded| decoded.text());
        // What it holds may not have been shown yet by this process.
        drop(self.secrets.hide(old));
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (range, name) in places {
            out.push_str(&text[at..range.start]);
            let value = self.secrets.value(name).filter(|value| holds(old, value));
            match value {
                Some(value) => out.push_str(&value),
                None if holds(old, &text[range.clone()]) => out.push_str(&text[range.clone()]),
                None => return Err(self.refused(name, what)),
            }
            at = range.end;
        }
        out.push_str(&text[at..]);
        Ok(out)
    }

    fn refused(&self, name: &str, what: &str) -> ToolError {
        let (shown, placeholder) = (self.shown, secrets::placeholder(name));
        ToolError::new(format!(
            "{what} has {placeholder}, which stands for no value that {shown} has; nothing was \
             changed"
        ))
        .hint(
            "A hidden value is put back only into the file that has it. Leave the placeholder out; \
             where a program needs the value, bash takes the placeholder and gives it as a variable.",
        )
    }
}

/// Reports whether a text has a value, as it is or as JSON writes it.
fn holds(text: &str, value: &str) -> bool {
    let has = |value: &str| memmem::find(text.as_bytes(), value.as_bytes()).is_some();
    let json = || serde_json::Value::from(value).to_string();
    has(value) || has(json().trim_matches('"'))
}
