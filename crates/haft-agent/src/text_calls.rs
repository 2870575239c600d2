//! Detects calls that a model wrote into its text, because its server has no parser for them.
//!
//! **Invariant:** they are never run: the text of an answer may quote anything.

use haft_types::{From, Message, Part};

/// What the person is told.
pub(crate) const FOR_PEOPLE: &str = "the model wrote a call of a tool into its text, where it is never run: its server has no \
     tool parser for this model. Start the server with the one that fits, or choose another model.";
/// What the model is told.
pub(crate) const FOR_MODEL: &str = "Nothing was run: a call that is written as text reaches no tool. Make calls by the tool-call \
     interface of this conversation. If it has none, say so, and answer without tools.";

/// Reports whether a part is a text in which a line outside of code begins as a call does.
pub(crate) fn is_in(part: &Part) -> bool {
    let Part::Text { text } = part else { return false };
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        let begun = line.trim_start();
        let mark = begun.chars().next().filter(|c| matches!(c, '`' | '~'));
        // What has a mark behind it, too, is code in a line.
        let mark = mark.filter(|mark| *mark != '`' || !begun.trim_start_matches('`').contains('`'));
        let length = mark.map_or(0, |mark| begun.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (Some((open, least)), Some(mark)) if mark == open && length >= least => fence = None,
            (None, Some(mark)) if length >= 3 => fence = Some((mark, length)),
            (None, _) if begun.starts_with("<tool_call>") || begun.starts_with("<function=") => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Reports whether a message tells the model so.
pub(crate) fn is_told(message: &Message) -> bool {
    let Message::User { from: From::Haft, parts } = message else { return false };
    parts.iter().any(|part| matches!(part, Part::Text { text } if text == FOR_MODEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_at_the_beginning_of_a_line_outside_of_code() {
        for text in [
            "<tool_call>{}",
            "I read it.\n  <tool_call>\n{}",
            "```\nx\n```\n<function=ls>",
            "```x``` is code\n<tool_call>",
        ] {
            assert!(is_in(&Part::text(text)), "{text}");
        }
        for text in [
            "It writes <tool_call> then.",
            "```xml\n<tool_call>\n```",
            "~~~\n```\n<function=ls>\n~~~",
            "`<tool_call>`",
            "<tool_calls>",
        ] {
            assert!(!is_in(&Part::text(text)), "{text}");
        }
    }
}
