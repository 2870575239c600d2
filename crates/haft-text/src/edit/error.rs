//! Why an edit was refused, in words that say what to do next.
//!
//! Invariant: every message names the edit by number (from 1), shows a bounded part of the text, and
//! changes nothing.

use std::fmt;

use thiserror::Error;

use super::ways::Ways;
use crate::encode::EncodeError;

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The list of edits is empty.
    #[error("No edit was given. Give at least one with old_text and new_text.")]
    NoEdits,
    /// An edit without text to look for.
    #[error(
        "Edit {edit}: old_text is empty. Give the text to replace; to fill an empty file or to \
         replace a whole one, use write."
    )]
    EmptyOld {
        /// Number of the edit, from 1.
        edit: usize,
    },
    /// The old text is nowhere.
    #[error(
        "Edit {edit}: old_text was not found.{}{}{}{}",
        elided(*.elision), dressed(*.dress), standing(.present), shown(.nearest.as_deref())
    )]
    NotFound {
        /// Number of the edit, from 1.
        edit: usize,
        /// The most similar place; none where nothing is similar.
        nearest: Option<Box<Nearest>>,
        /// Line of `old_text`, from 1, that stands for text left out.
        elision: Option<usize>,
        /// What it is dressed in that the file has not.
        dress: Option<Dress>,
        /// Lines, from 1, where `new_text` stands already, though nobody can tell whether that comes
        /// from this edit.
        present: Vec<usize>,
    },
    /// The old text is nowhere, but in the new text of an edit before it.
    #[error(
        "Edit {edit}: old_text was not found. It is in new_text of edit {on}, but all edits are \
         matched against the file as it is now: join the two into one."
    )]
    Dependent {
        /// Number of the edit, from 1.
        edit: usize,
        /// Number of the one that brings the old text.
        on: usize,
    },
    /// Several edits cannot be applied.
    #[error("{}{}", together(.errors), unseen(*.rest))]
    Several {
        /// The errors of the first of them, in order; at least two.
        errors: Vec<Self>,
        /// How many edits after these were not looked at.
        rest: usize,
    },
    /// The old text is in several places.
    #[error(
        "Edit {edit}: old_text is in {places} places{}{}, at {}. Add lines around it until it is \
         unique, or {}.",
        if *.overlap { " that overlap" } else { "" },
        tolerated(*.tolerance),
        counted(lines, *places),
        every(*.tolerance, *.overlap)
    )]
    Ambiguous {
        /// Number of the edit, from 1.
        edit: usize,
        /// How many places, overlapping ones counted.
        places: usize,
        /// Line numbers, from 1, of the first places, one for each.
        lines: Vec<usize>,
        /// Whether some of these places share bytes.
        overlap: bool,
        /// The tolerance under which they match; none for exact matches.
        tolerance: Option<&'static str>,
    },
    /// The new text stands there, and the old one is gone or a part of it.
    #[error("Edit {edit}: {}", standing_already(*line, *places, *around))]
    AlreadyApplied {
        /// Number of the edit, from 1.
        edit: usize,
        /// Line of the new text, from 1; of the first where it stands in several places.
        line: usize,
        /// In how many places the new text stands; above 1 only where all were to be replaced.
        places: usize,
        /// Whether the new text holds the old one, so that the edit could be made twice.
        around: bool,
    },
    /// The old text is there in a way in which the new text means one thing or another.
    #[error(
        "Edit {edit}: {}, and new_text can be read in two ways then. Nothing is guessed and nothing \
         was changed. {ways}",
        unsure(*.line, *.tolerance)
    )]
    Unclear {
        /// Number of the edit, from 1.
        edit: usize,
        /// Line of the old text, from 1.
        line: usize,
        /// The tolerance under which it matches; none where it begins inside an indentation.
        tolerance: Option<&'static str>,
        /// The readings of the new text.
        ways: Box<Ways>,
    },
    /// One of both texts ends in the first half of a line end.
    #[error("Edit {edit}: {} Nothing was changed.", halved(*.half, *.line))]
    HalfEnd {
        /// Number of the edit, from 1.
        edit: usize,
        /// Line whose end it is, from 1.
        line: usize,
        /// Which text it is.
        half: Half,
    },
    /// The edits together would leave every byte as it is.
    #[error(
        "The edits take back what each other changes, so nothing would change. Leave them out, or \
         give the text that is wanted."
    )]
    Cancelled,
    /// The edit would leave every byte as it is.
    #[error(
        "Edit {edit}: old_text and new_text are the same, so nothing would change (line ends are kept as \
         they are in the file). Leave this edit out, or give the text that is wanted."
    )]
    NoChange {
        /// Number of the edit, from 1.
        edit: usize,
    },
    /// There are more places than one edit replaces.
    #[error(
        "Edit {edit}: old_text is in more than {most} places, which is the most that one edit replaces. \
         Give a longer old_text, or change them all with a command such as sed."
    )]
    TooMany {
        /// Number of the edit, from 1.
        edit: usize,
        /// Most places.
        most: usize,
    },
    /// Two edits change the same text.
    #[error(
        "Edits {first} and {second} overlap at line {line}. All edits are matched against the file as it \
         is now: join the two into one."
    )]
    Overlap {
        /// Number of the edit that begins first in the text, from 1.
        first: usize,
        /// Number of the other one, from 1.
        second: usize,
        /// Line where they meet, from 1.
        line: usize,
    },
    /// The text to replace holds bytes that are no text.
    #[error(
        "Edit {edit}: the text at line {line} holds bytes that are no text (shown as U+FFFD). \
         Give an old_text that ends before or begins after them."
    )]
    Damaged {
        /// Number of the edit, from 1.
        edit: usize,
        /// Line, from 1.
        line: usize,
    },
    /// The changed file would not be known as text in its encoding.
    #[error(
        "With these edits nothing would show any more that the file is text in {encoding}, since it \
         has no byte order mark: it would be taken for something else. Convert the file to UTF-8, \
         or write it with a byte order mark, first."
    )]
    Unannounced {
        /// Name of the encoding.
        encoding: &'static str,
    },
    /// The file's encoding lacks a character of the new text.
    #[error("Edit {edit}: {source}")]
    Unrepresentable {
        /// Number of the edit, from 1.
        edit: usize,
        /// Which character.
        source: EncodeError,
    },
}

impl EditError {
    /// The errors of the single edits, in order; this one where it is the only one.
    pub fn each(&self) -> &[Self] {
        match self {
            Self::Several { errors, .. } => errors,
            only => std::slice::from_ref(only),
        }
    }

    /// The number of the edit that could not be found a place for, from 1.
    pub(super) const fn edit(&self) -> Option<usize> {
        match self {
            Self::EmptyOld { edit }
            | Self::NotFound { edit, .. }
            | Self::Dependent { edit, .. }
            | Self::Ambiguous { edit, .. }
            | Self::AlreadyApplied { edit, .. }
            | Self::Unclear { edit, .. }
            | Self::HalfEnd { edit, .. }
            | Self::NoChange { edit }
            | Self::TooMany { edit, .. } => Some(*edit),
            _ => None,
        }
    }
}

/// Which text ends in one half of a line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The old text alone.
    Old,
    /// The old text, which is nothing else.
    All,
    /// The new text alone.
    New,
    /// The file before the new text, which begins with a line end or is empty.
    Before,
}

/// What an old text is dressed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dress {
    /// Its lines begin with numbers, as listings have them.
    Numbers,
    /// It stands between the lines that fence code in Markdown.
    Fence,
    /// It has signs escaped as in XML, the file has them plain.
    Escaped,
    /// It has signs plain, the file has them escaped as in XML.
    Plain,
}

/// The place that is most like what was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Number of the first line shown, from 1.
    pub first_line: usize,
    /// The file's lines, made safe to show: all that the old text stands for, or a part of them.
    pub lines: Vec<String>,
    /// Where it is a part: the first line of all, from 1, and the last one, if that is known.
    pub part_of: Option<(usize, Option<usize>)>,
    /// What differs, named by character; a few at most.
    pub differences: Vec<Difference>,
    /// How many lines differ besides, at least.
    pub more: usize,
}

/// One line that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the file, from 1.
    pub line: usize,
    /// What differs, as a phrase.
    pub text: String,
}

impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.first_line + self.lines.len().saturating_sub(1);
        let first = self.first_line;
        let lines =
            if first == last { format!("line {last}") } else { format!("lines {first}-{last}") };
        writeln!(formatter, "The nearest text is at {lines}:")?;
        for (number, line) in (self.first_line..).zip(&self.lines) {
            writeln!(formatter, "{number:>6}  {line}")?;
        }
        for difference in &self.differences {
            writeln!(formatter, "Line {}: {}.", difference.line, difference.text)?;
        }
        if self.more > 0 {
            writeln!(formatter, "At least {} more differ.", self.more)?;
        }
        let all = match self.part_of {
            None => {
                return formatter
                    .write_str("Take old_text from these lines exactly, or read them again.");
            }
            Some((first, Some(last))) if first == last => format!("line {first}"),
            Some((first, Some(last))) => format!("lines {first}-{last}"),
            Some((first, None)) => format!("the lines from {first} on"),
        };
        write!(
            formatter,
            "This is a part of {all}, for which old_text stands: read all of that, then take \
             old_text from there exactly."
        )
    }
}

fn shown(nearest: Option<&Nearest>) -> String {
    match nearest {
        Some(nearest) => format!(" {nearest}"),
        None => " Nothing in the file is like it. Read the file and take old_text from there."
            .to_owned(),
    }
}

fn halved(half: Half, line: usize) -> String {
    let text = match half {
        Half::Old => format!(
            "old_text ends in a carriage return, which is one half of the end of line {line}, and \
             new_text does not."
        ),
        Half::All => format!(
            "old_text is a carriage return, which is one half of the end of line {line}; line ends \
             are kept as they are. To change those of the file, use a command."
        ),
        Half::New => format!(
            "new_text ends in a carriage return, which would become one half of the end of line \
             {line}, and old_text does not."
        ),
        Half::Before => format!(
            "The carriage return right before old_text in line {line} would become one half of a \
             line end. Begin both texts before it, and let new_text have something between it and \
             its line end."
        ),
    };
    match half {
        Half::All | Half::Before => text,
        _ => format!(
            "{text} End both texts before the carriage return, or both behind the line feed that \
             follows it."
        ),
    }
}

fn elided(line: Option<usize>) -> String {
    line.map(|line| {
        format!(
            " Its line {line} stands for text that was left out: every line must be given, or use \
             several smaller edits."
        )
    })
    .unwrap_or_default()
}

fn together(errors: &[EditError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn unseen(rest: usize) -> String {
    match rest {
        0 => String::new(),
        1 => "\nThe edit after these was not looked at.".to_owned(),
        rest => format!("\nThe {rest} edits after these were not looked at."),
    }
}

fn unsure(line: usize, tolerance: Option<&'static str>) -> String {
    match tolerance {
        Some(name) => format!("old_text is at line {line} only with a tolerance ({name})"),
        None => format!("old_text begins inside the indentation of line {line}"),
    }
}

const fn dressed(dress: Option<Dress>) -> &'static str {
    match dress {
        None => "",
        Some(Dress::Numbers) => {
            " It begins with line numbers, which are not in the file: leave them out."
        }
        Some(Dress::Fence) => {
            " It stands between fences (``` or ~~~), which are not in the file: leave out those lines."
        }
        Some(Dress::Escaped) => {
            " It has signs escaped as in XML (such as &lt; or &amp;), where the file has the signs \
             themselves: write those, in new_text too."
        }
        Some(Dress::Plain) => {
            " The file has its signs escaped as in XML (such as &lt; or &amp;): write them so, in \
             new_text too."
        }
    }
}

fn standing(lines: &[usize]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let (noun, list) = (if lines.len() == 1 { "line" } else { "lines" }, list(lines, lines.len()));
    format!(" But new_text is in the file, at {noun} {list}: perhaps that is what was wanted.")
}

fn standing_already(line: usize, places: usize, around: bool) -> String {
    let times = match places {
        1 => "once,".to_owned(),
        _ => format!("in {places} places, the first"),
    };
    if around {
        return format!(
            "new_text is in the file, {times} at line {line}, with this old_text as a part of it: \
             the edit seems to be applied already. Nothing was changed. To put the same in once \
             more, give an old_text that holds more of what is around it."
        );
    }
    format!(
        "old_text is not in the file, but new_text is, {times} at line {line}: the edit seems to be \
         applied already. Nothing was changed."
    )
}

/// How more than one place may be changed.
const fn every(tolerance: Option<&'static str>, overlap: bool) -> &'static str {
    match (tolerance, overlap) {
        (Some(_), _) => {
            "give it exactly as it is in the file (replace_all too takes exact places only)"
        }
        (None, true) => {
            "set replace_all to change every exact one (of those that overlap, the first)"
        }
        (None, false) => "set replace_all to change every exact one",
    }
}

fn tolerated(tolerance: Option<&'static str>) -> String {
    tolerance
        .map(|name| format!(" (none exact; tolerating differences in {name})"))
        .unwrap_or_default()
}

/// The lines of places, each named once: `line 1`, or `lines 1 (2 places), 4, and 7 more`.
fn counted(lines: &[usize], places: usize) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((last, count)) if last == line => *count += 1,
            _ => runs.push((*line, 1)),
        }
    }
    if let ([(line, _)], true) = (&runs[..], places == lines.len()) {
        return format!("line {line}");
    }
    let named = |(line, count): &(usize, usize)| match count {
        1 => line.to_string(),
        count => format!("{line} ({count} places)"),
    };
    let mut named: Vec<String> = runs.iter().map(named).collect();
    if places > lines.len() {
        named.push(format!("and {} more", places - lines.len()));
    }
    format!("lines {}", named.join(", "))
}

fn list(lines: &[usize], places: usize) -> String {
    let mut numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    if places > lines.len() {
        numbers.push(format!("and {} more", places - lines.len()));
    }
    numbers.join(", ")
}
