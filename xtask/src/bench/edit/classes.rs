//! The list of classes: what is done to a clean call, and whether it may still be carried out.
//!
//! One line a class. It does not know how a class is made.

use super::super::scratch::Numbers;
use super::calls::{Case, Clean};
use super::{refused, slipped, tolerated};

/// A way to get a call out of a clean change.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) make: fn(&Clean, &mut Numbers) -> Option<Case>,
}

/// What has to come of the calls of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing is missed: carried out.
    Clean,
    /// Something is missed: carried out nevertheless.
    Tolerated,
    /// Old and new text do not slip alike, or both: carried out as it is meant, or refused. At most
    /// one of a thousand may be carried out otherwise.
    Slipped,
    /// Both texts slip, each in its own way: what is carried out otherwise than meant is counted.
    Apart,
    /// Refused.
    Refused,
}

macro_rules! classes {
    ($($kind:ident $name:literal $make:path;)*) => {
        &[$(Class { name: $name, kind: Kind::$kind, make: $make }),*]
    };
}

/// Every class, in the order of the table.
pub(super) const CLASSES: &[Class] = classes! {
    Clean "clean" tolerated::exact;
    Clean "inside a line" tolerated::inside_a_line;
    Clean "two edits" tolerated::two_edits;
    Clean "every place" tolerated::every_place;
    Clean "file never read, exact" tolerated::unread;
    Clean "file changed elsewhere, exact" tolerated::stale;
    Clean "forms of arguments" tolerated::argument_forms;
    Clean "line ends" tolerated::line_ends;
    Tolerated "trailing blanks lost" tolerated::blanks_lost;
    Tolerated "trailing blanks added" tolerated::blanks_added;
    Tolerated "trailing tabs for spaces" tolerated::blanks_of_another_kind;
    Tolerated "blank lines around" tolerated::blank_lines_around;
    Tolerated "decomposed in the call" tolerated::composed;
    Tolerated "decomposed in the file" tolerated::decomposed;
    Tolerated "compatibility forms" tolerated::compatible;
    Tolerated "curly quotes in the file" tolerated::quotes;
    Tolerated "curly quotes in the call" tolerated::quotes_given;
    Tolerated "dashes" tolerated::dashes;
    Tolerated "odd spaces" tolerated::spaces;
    Tolerated "odd spaces throughout the call" tolerated::spaces_brought;
    Tolerated "forms in a partly edited line" tolerated::partly_edited;
    Tolerated "more indentation" tolerated::indented_more;
    Tolerated "less indentation" tolerated::indented_less;
    Tolerated "spaces for tabs" tolerated::spaces_for_tabs;
    Tolerated "tabs for spaces" tolerated::tabs_for_spaces;
    Tolerated "line number prefixes" tolerated::line_numbers;
    Tolerated "escaped quotes" tolerated::escaped_quotes;
    Tolerated "escaped line ends and tabs" tolerated::escaped_ends;
    Tolerated "escaped as a JSON string" tolerated::escaped_twice;
    Tolerated "strings escaped once more" tolerated::escaped_strings;
    Clean "indentation: new slips" slipped::indentation_new;
    Slipped "indentation: old slips" slipped::indentation_old;
    Slipped "indentation: both alike" slipped::indentation_alike;
    Apart "indentation: each its own way" slipped::indentation_apart;
    Clean "tabs: new slips" slipped::tabs_new;
    Slipped "tabs: old slips" slipped::tabs_old;
    Slipped "tabs: both alike" slipped::tabs_alike;
    Apart "tabs: each its own way" slipped::tabs_apart;
    Clean "quotes: new slips" slipped::quotes_new;
    Slipped "quotes: old slips" slipped::quotes_old;
    Slipped "quotes: both alike" slipped::quotes_alike;
    Apart "quotes: each its own way" slipped::quotes_apart;
    Clean "escapes: new slips" slipped::escapes_new;
    Slipped "escapes: old slips" slipped::escapes_old;
    Slipped "escapes: both alike" slipped::escapes_alike;
    Apart "escapes: each its own way" slipped::escapes_apart;
    Clean "line ends: new slips" slipped::ends_new;
    Slipped "line ends: old slips" slipped::ends_old;
    Slipped "line ends: both alike" slipped::ends_alike;
    Apart "line ends: each its own way" slipped::ends_apart;
    Refused "two places" refused::ambiguous;
    Refused "two places, tolerated" refused::ambiguous_tolerated;
    Refused "middle left out" refused::elided;
    Refused "changed word" refused::changed_word;
    Refused "changed number" refused::changed_number;
    Refused "uneven indentation" refused::uneven;
    Refused "swapped lines" refused::swapped;
    Refused "dropped line" refused::dropped;
    Refused "invented line" refused::invented;
    Refused "span too large" refused::too_large;
    Refused "overlapping edits" refused::overlap;
    Refused "two readings of an escape" refused::two_readings;
    Refused "escape in a string" refused::escape_in_a_string;
    Refused "two kinds of indentation" refused::two_indentations;
    Refused "inside an indentation" refused::inside_the_indentation;
    Refused "digits of other forms" refused::compatible_digits;
    Refused "no change" refused::no_change;
    Refused "empty old text" refused::empty;
    Refused "applied already" refused::applied;
    Refused "put in already" refused::put_in;
    Refused "character not in the encoding" refused::unrepresentable;
    Refused "tolerance in a file never read" refused::unread;
    Refused "tolerance in a changed file" refused::stale;
    Refused "no text" refused::binary;
};

#[cfg(test)]
mod tests {
    use super::super::calls::{Codec, Want, lines};
    use super::*;

    #[test]
    fn every_class_can_be_made_and_says_what_has_to_come() {
        let line = |number| format!("    let value{number} = compute(number {number});\n");
        let text: String = (0..80).map(line).collect();
        let sources = [Codec::Utf8 { bom: false }, Codec::Legacy(encoding_rs::SHIFT_JIS)];
        for class in CLASSES {
            let made = sources.iter().find_map(|codec| {
                let come = vec!["    let other = 1;".to_owned()];
                let clean = Clean::new(*codec, &lines(&text), 20, 1, come)?;
                let clean = clean.wider()?.wider()?;
                (0..99).find_map(|seed| (class.make)(&clean, &mut Numbers::new(seed + 1)))
            });
            let Some(case) = made else { panic!("{} cannot be made", class.name) };
            let refused = matches!(case.want, Want::Refused(_));
            assert_eq!(refused, class.kind == Kind::Refused, "{}", class.name);
            assert!(
                case.call["path"].is_string()
                    || case.call.get("file_path").is_some()
                    || case.call.get("filePath").is_some(),
                "{}",
                class.name
            );
        }
    }
}
