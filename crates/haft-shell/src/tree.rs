//! The grammar's trees of a text, each read as soon as it is there.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    ops::{ControlFlow, Range},
};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Point};

use crate::{Fault, Script, exit_status::ExitStatus, lines, rejected, statements::Reader};

/// Bytes of a text that are parsed at once, if they hold several scripts.
const MOST: usize = 256;

/// Bytes that the grammar gets at once: it asks anew for what it goes back to, and each time counts.
const CHUNK: usize = 1024;

/// How many commands are as much work to go through as a piece of a text is to parse.
const WEIGHT: u32 = 6;

/// What is asked whether to go on.
type GoOn<'p> = &'p mut dyn FnMut() -> bool;

/// What parses a text.
struct Parsing<'a, 'p> {
    text: &'a str,
    /// The same as the grammar gets it.
    known: Cow<'a, str>,
    parser: Parser,
    go_on: GoOn<'p>,
    reader: Reader<'a>,
    exit_status: ExitStatus,
}

/// The script that a text is, as the grammar and the reader of its trees take it without doubt.
pub(crate) fn read(text: &str, go_on: GoOn<'_>) -> Result<Script, Fault> {
    let mut parser = Parser::new();
    // The grammar is of another version than the library takes: a fault of the build.
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| unclear(text, 0))?;
    let known = known(text);
    let (reader, exit_status) = (Reader::new(text), ExitStatus::default());
    let mut parsing = Parsing { text, known, parser, go_on, reader, exit_status };
    parsing.all(&lines::pieces(text))?;
    let mut script = parsing.reader.script;
    parsing.exit_status.apply(&mut script);
    Ok(script)
}

/// A text of the same length, in which stands for what the grammar does not know what it knows. What
/// is within quotes stays within them, and words are read from the text itself.
fn known(text: &str) -> Cow<'_, str> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let is_escaped = |at: usize| (at - text[..at].trim_end_matches('\\').len()) % 2 == 1;
    // Whether a word begins there, to which nothing before it belongs.
    let starts = |at: usize| {
        let is_end = |c: char| c.is_ascii_whitespace() || ";&|(".contains(c);
        at == 0 || text[..at].ends_with(is_end) && !is_escaped(at - 1)
    };
    // Whether a dollar is the first of two that stand together, none of which is escaped.
    let is_pair = |at: usize| {
        let before = text[..at].trim_end_matches('$');
        (at - before.len()).is_multiple_of(2)
            && (before.len() == at || !is_escaped(before.len()))
            && !is_escaped(at)
    };
    let stands_for = |(at, _): (usize, &str)| -> Option<(usize, &str)> {
        let rest = &text[at..];
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_name = |c: char| c == '_' || c == '$' || c.is_ascii_alphanumeric();
        let line = text[..at].trim_end_matches(is_blank);
        Some(match rest.as_bytes()[0] {
            b'<' if is_escaped(at) => return None,
            // `<>` stands where `>>` may, and here-strings where files may.
            b'<' if rest.starts_with("<>") => (at, ">>"),
            b'<' if rest.starts_with("<<<") && !text[..at].ends_with('<') => (at, "<  "),
            // It takes only other digits for descriptors.
            b'0' if rest.starts_with("0<") && starts(at) => (at, "3"),
            // Before a here-document it drops the word.
            b'-' if starts(at) && rest[1..].trim_start_matches(is_blank).starts_with("<<") => {
                (at, "_")
            }
            // Of a word that begins a line with a backslash it makes one with the line end. A letter
            // is one with and without.
            b'\\' if line.ends_with('\n') && rest[1..].starts_with(is_letter) => (at, "_"),
            // Without quotes it takes the second dollar for text, and another parameter as it is. What
            // may go on with a name is left alone.
            b'$' if rest.starts_with("$$") && !rest[2..].starts_with(is_name) && is_pair(at) => {
                (at, "$?")
            }
            _ => return None,
        })
    };
    let marks = text.match_indices(['<', '0', '-', '\\', '$']).filter_map(stands_for);
    let mut known = Cow::Borrowed(text);
    for (at, piece) in marks {
        known.to_mut().replace_range(at..at + piece.len(), piece);
    }
    known
}

impl Parsing<'_, '_> {
    fn all(&mut self, pieces: &[Range<usize>]) -> Result<(), Fault> {
        let mut at = 0;
        while at < pieces.len() {
            let start = pieces[at].start;
            let fits = |piece: &&Range<usize>| piece.end - start <= MOST;
            let count = pieces[at..].iter().take_while(fits).count().max(1);
            let many = &pieces[at..at + count];
            at += count;
            // Of several it may follow a reading of which nothing comes, and drop the right one.
            if count > 1 && self.take(start..many[count - 1].end)?.is_none() {
                continue;
            }
            for piece in many {
                if self.take(piece.clone())?.is_some() {
                    // The cuts are wrong from here on.
                    let rest = self.take(piece.start..self.text.len())?;
                    return rest.map_or(Ok(()), Err);
                }
            }
        }
        Ok(())
    }

    /// Reads a part of the text, if it is without doubt a script; where not, says where.
    fn take(&mut self, part: Range<usize>) -> Result<Option<Fault>, Fault> {
        let point = |column| Point { row: 0, column };
        let range = tree_sitter::Range {
            start_byte: part.start,
            end_byte: part.end,
            start_point: point(part.start),
            end_point: point(part.end),
        };
        self.parser.set_included_ranges(&[range]).map_err(|_| unclear(self.text, part.start))?;
        let bytes = self.known.as_bytes();
        // Both ask whether to go on, and what was given up once is given up.
        let (work, wrong) = (RefCell::new(&mut self.go_on), Cell::new(None));
        let given_up = Cell::new(false);
        let go_on = || {
            let mut asked = (0..WEIGHT).map(|_| work.borrow_mut()());
            given_up.set(given_up.get() || !asked.all(|goes_on| goes_on));
            !given_up.get()
        };
        let mut read = |at: usize, _| match bytes.get(at..) {
            Some(rest) if go_on() => &rest[..rest.len().min(CHUNK)],
            _ => &[],
        };
        let mut progress = |state: &ParseState| {
            if !go_on() {
                return ControlFlow::Break(());
            }
            // Each reading of it has a fault.
            if state.has_error() {
                wrong.set(Some(state.current_byte_offset()));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = self.parser.parse_with_options(&mut read, None, Some(options));
        if given_up.get() {
            return Err(Fault::TooMuch);
        }
        let Some(tree) = tree else {
            // Else it would go on with that text.
            self.parser.reset();
            let at = wrong.get().ok_or(Fault::TooMuch)?;
            return Ok(Some(unclear(self.text, at)));
        };
        let root = tree.root_node();
        if let Some(at) = first_fault(root).or_else(|| rejected::first(root, self.text)) {
            return Ok(Some(unclear(self.text, at)));
        }
        match self.reader.part(&part, root) {
            Err(fault @ Fault::Unclear { .. }) => Ok(Some(fault)),
            other => other.map(|()| {
                self.exit_status.part(self.text, root);
                None
            }),
        }
    }
}

/// Where the grammar guessed.
fn first_fault(root: Node<'_>) -> Option<usize> {
    if !root.has_error() {
        return None;
    }
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(node.start_byte());
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(0);
            }
        }
    }
}

/// The fault of a text that is not understood from here on.
pub(crate) fn unclear(text: &str, at: usize) -> Fault {
    let at = text.floor_char_boundary(at);
    Fault::Unclear { at, text: text[at..].chars().take(40).collect() }
}
