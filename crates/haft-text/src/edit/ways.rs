//! An edit of which nobody can tell how its new text is meant, shown so that the one that is meant
//! can be sent.
//!
//! Invariant: what is shown is bounded. Short texts stand there whole, long ones around their first
//! difference. What the ways have to do with each other is unknown here.

use std::fmt;

use crate::names;

/// Bytes of all texts together that are shown whole.
const WHOLE: usize = 12_000;
/// Characters of long texts that are shown before and after their first difference.
const PARTED: (usize, usize) = (40, 20);

/// What a reading of the new text is.
pub(super) const AS_GIVEN: &str = "new_text as it was given";

/// A text and what it is.
type Labelled = (&'static str, String);

/// The ways in which an edit may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways(Shown);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    /// The old text as it is in the file, and the new texts of which one is meant.
    Whole(String, Vec<Labelled>),
    /// Two new texts around their first difference.
    Parted([String; 2]),
}

impl Ways {
    /// Takes the text of the file that the old one stands for, and the readings of the new one, of
    /// which those that say the same as one before them are left out.
    pub(super) fn new(old: &str, readings: Vec<Labelled>) -> Self {
        let mut texts: Vec<Labelled> = Vec::with_capacity(readings.len());
        for reading in readings {
            if texts.iter().all(|other| other.1 != reading.1) {
                texts.push(reading);
            }
        }
        let length = old.len() + texts.iter().map(|text| text.1.len()).sum::<usize>();
        match &texts[..] {
            [one, two, ..] if length > WHOLE => Self(Shown::Parted(parted(&one.1, &two.1))),
            _ => Self(Shown::Whole(old.to_owned(), texts)),
        }
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, texts) = match &self.0 {
            Shown::Whole(old, texts) => (old, texts),
            Shown::Parted([one, two]) => {
                return write!(
                    formatter,
                    "They are too long to be shown whole; where they part, they are \"{one}\" or \
                     \"{two}\". Give old_text exactly as it is in the file: then new_text is taken \
                     as it is."
                );
            }
        };
        formatter
            .write_str("Send the edit again with this old_text and the new_text that is meant.")?;
        let all = [("old_text as it is in the file", old)];
        let all = all.into_iter().chain(texts.iter().map(|(label, text)| (*label, text)));
        let ended = |text: &String| text.ends_with('\n');
        let alike = all.clone().all(|(_, text)| ended(text) == ended(old));
        let ticks = all.clone().map(|(_, text)| longest_run(text)).max().unwrap_or_default();
        let fence = "`".repeat(ticks.max(2) + 1);
        for (label, text) in all {
            let end = if alike || ended(text) { "" } else { ", without a line end at its end" };
            let text = text.strip_suffix('\n').unwrap_or(text);
            write!(formatter, "\n{label}{end}:\n{fence}\n{text}\n{fence}")?;
        }
        Ok(())
    }
}

/// How many backticks there are in a row at most.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

/// Two readings of a text around their first difference, safe to show.
fn parted(one: &str, two: &str) -> [String; 2] {
    let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
    let shown = |text: &str| {
        let skip = same.saturating_sub(PARTED.0);
        let part = text.chars().skip(skip).take(same - skip + PARTED.1);
        let named = part.map(|character| match character {
            '\n' => "<line feed>".to_owned(),
            '\t' => "<tab>".to_owned(),
            other => names::shown(other.encode_utf8(&mut [0; 4]), 1),
        });
        named.collect()
    };
    [shown(one), shown(two)]
}
