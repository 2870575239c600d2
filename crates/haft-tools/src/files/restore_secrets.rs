//! Placeholders of secrets in text that is to be written, and the values that they stand for.
//!
//! **Invariant:** a value is restored only if this very file has it: nothing that one file hides
//! gets into another. A file that has a placeholder as its own text keeps that.

use std::ops::Range;

use haft_text::{
    decode,
    secrets::{self, Secrets},
};
use haft_tool::Cx;
use haft_types::ToolError;
use memchr::memmem;

use super::secret_scan;

/// The file that values are put back into.
pub(crate) struct PutBack<'a> {
    secrets: &'a Secrets,
    old: &'a [u8],
    shown: &'a str,
}

impl<'a> PutBack<'a> {
    /// For a file that holds these bytes; none where it is new. What they say of secrets is known from
    /// then on: a diff shows a few of its lines.
    pub fn new(cx: &'a Cx, old: &'a [u8], shown: &'a str) -> Self {
        secret_scan::of_bytes(&cx.session().secrets, old);
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
            let has_text = holds(old, &text[range.clone()]);
            match value {
                Some(value) if !has_text => out.push_str(&value),
                Some(value) => match is_value(old, text, &range, &value) {
                    Some(true) => out.push_str(&value),
                    Some(false) => out.push_str(&text[range.clone()]),
                    None => return Err(self.unclear(name, what)),
                },
                None if has_text => out.push_str(&text[range.clone()]),
                None => return Err(self.refused(name, what)),
            }
            at = range.end;
        }
        out.push_str(&text[at..]);
        Ok(out)
    }

    fn unclear(&self, name: &str, what: &str) -> ToolError {
        let (shown, placeholder) = (self.shown, secrets::placeholder(name));
        ToolError::new(format!(
            "{what} has {placeholder}, which in {shown} is a text of its own in one place and a \
             hidden value in another, and where it is to stand is like neither; nothing was changed"
        ))
        .hint("Keep the rest of its line as it is in the file, and change other lines alone.")
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

/// Reports whether a placeholder stands where a file has the value, not where it has the placeholder
/// as a text of its own, by what stands around it on its line; none where that does not tell.
fn is_value(old: &str, text: &str, place: &Range<usize>, value: &str) -> Option<bool> {
    let before = text[..place.start].rsplit(['\n', '\r']).next().unwrap_or_default();
    let after = text[place.end..].split(['\n', '\r']).next().unwrap_or_default();
    let tells = |before: &str, after: &str| {
        let has = |middle: &str| {
            memmem::find(old.as_bytes(), format!("{before}{middle}{after}").as_bytes()).is_some()
        };
        match (has(value), has(&text[place.clone()])) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    };
    tells(before, after).or_else(|| tells(before, "")).or_else(|| tells("", after))
}

/// Reports whether a text has a value, as it is or as JSON writes it.
fn holds(text: &str, value: &str) -> bool {
    let has = |value: &str| memmem::find(text.as_bytes(), value.as_bytes()).is_some();
    let json = || serde_json::Value::from(value).to_string();
    has(value) || has(json().trim_matches('"'))
}
