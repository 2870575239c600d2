//! Edits: old text is found in a decoded file, new text takes its place, nothing else changes.
//!
//! Invariant: all edits match against the original, all or nothing, and every byte outside the
//! replaced spans stays as it was, because it is never rewritten: the result is a list of ranges of
//! the original and of new pieces. Where the file comes from and goes to is unknown here.

mod error;
mod fold;
mod indent;
mod nearest;
mod rebuild;
mod tolerance;
mod view;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

pub use error::{Difference, EditError, Nearest};
pub use tolerance::{TOLERANCES, Tolerance};

use crate::decode::Decoded;
use crate::encode;
use crate::search;
use tolerance::Outcome;
use view::View;

/// Places that are listed by line in a message.
const LISTED: usize = 20;
/// Places that are checked for being written exactly like the old text, line ends included.
const CHECKED: usize = 10_000;

/// One replacement that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The text to replace, whatever its line ends.
    pub old_text: String,
    /// The text that takes its place; its lines take the line ends of the file.
    pub new_text: String,
    /// Whether every exact place is replaced instead of the only one.
    pub replace_all: bool,
}

impl Edit {
    /// Asks for the replacement of a text that is there once.
    pub fn new(old_text: impl Into<String>, new_text: impl Into<String>) -> Self {
        Self { old_text: old_text.into(), new_text: new_text.into(), replace_all: false }
    }
}

/// A part of the changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the original, as a range.
    Keep(Range<usize>),
    /// New bytes, already encoded.
    New(Vec<u8>),
}

/// One replaced span in terms of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Number of the edit that asked for it, from 1.
    pub edit: usize,
    /// Byte range of the decoded text that was replaced.
    pub range: Range<usize>,
    /// What stands there now, with its line ends.
    pub text: String,
}

/// What a list of edits gives: the changed file and the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The changed file in order.
    pub pieces: Vec<Piece>,
    /// The replaced spans of the text in order.
    pub changes: Vec<Change>,
    /// Number of the first line that differs, from 1, in both texts.
    pub first_changed_line: usize,
    /// How many places were replaced.
    pub replacements: usize,
    /// Byte ranges of the original that were replaced, in order.
    pub ranges: Vec<Range<usize>>,
    /// The first tolerance that was needed; none when everything matched exactly.
    pub tolerance: Option<&'static str>,
    /// The tolerance that each edit needed, in the order of the edits.
    pub tolerances: Vec<Option<&'static str>>,
    /// Length of the changed file in bytes.
    pub size: usize,
    /// BLAKE3 hash of the original as hexadecimal digits.
    pub hash_before: String,
    /// BLAKE3 hash of the changed file as hexadecimal digits.
    pub hash_after: String,
}

impl Applied {
    /// Joins the changed file; `original` must be the bytes that were decoded.
    pub fn to_bytes(&self, original: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        self.slices(original).for_each(|slice| out.extend_from_slice(slice));
        out
    }

    /// Gives the changed file piece by piece without copying it.
    pub fn slices<'a>(&'a self, original: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Keep(range) => original.get(range.clone()).unwrap_or_default(),
            Piece::New(bytes) => bytes.as_slice(),
        })
    }
}

/// A replacement in terms of the text, before it is encoded.
struct Found<'e> {
    edit: usize,
    range: Range<usize>,
    text: Cow<'e, str>,
    tolerance: Option<&'static str>,
}

/// Applies edits to a decoded file, all or none.
///
/// # Errors
/// The first edit that cannot be applied, with its reason; see [`EditError`].
pub fn apply(decoded: &Decoded<'_>, edits: &[Edit]) -> Result<Applied, EditError> {
    if edits.is_empty() {
        return Err(EditError::NoEdits);
    }
    let view = View::new(decoded.text(), decoded.line_ends());
    let mut found = Vec::new();
    let mut tolerances = Vec::with_capacity(edits.len());
    for (number, edit) in (1..).zip(edits) {
        let from = found.len();
        locate(&view, number, edit, &mut found)?;
        tolerances.push(found[from..].iter().find_map(|one| one.tolerance));
    }
    found.sort_by_key(|one| one.range.start);
    check(&view, decoded, &found)?;
    build(&view, decoded, found, tolerances)
}

fn check(view: &View<'_>, decoded: &Decoded<'_>, found: &[Found<'_>]) -> Result<(), EditError> {
    for pair in found.windows(2) {
        if pair[0].range.end > pair[1].range.start {
            return Err(EditError::Overlap {
                first: pair[0].edit,
                second: pair[1].edit,
                line: view.number_in_original(pair[1].range.start),
            });
        }
    }
    for hole in decoded.holes() {
        let at = found.partition_point(|one| one.range.end <= hole.at);
        if let Some(one) = found.get(at).filter(|one| one.range.start <= hole.at) {
            let line = view.number_in_original(hole.at);
            return Err(EditError::Damaged { edit: one.edit, line });
        }
    }
    Ok(())
}

fn build(
    view: &View<'_>,
    decoded: &Decoded<'_>,
    found: Vec<Found<'_>>,
    tolerances: Vec<Option<&'static str>>,
) -> Result<Applied, EditError> {
    let bounds: Vec<usize> =
        found.iter().flat_map(|one| [one.range.start, one.range.end]).collect();
    let offsets = decoded.byte_offsets(&bounds);
    let ranges: Vec<Range<usize>> = offsets.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
    let mut pieces = Vec::with_capacity(found.len() * 2 + 1);
    let mut done = 0;
    for (one, range) in found.iter().zip(&ranges) {
        if range.start > done {
            pieces.push(Piece::Keep(done..range.start));
        }
        let mut bytes = Vec::with_capacity(one.text.len());
        encode::encode_into(&one.text, decoded.format().encoding, &mut bytes)
            .map_err(|source| EditError::Unrepresentable { edit: one.edit, source })?;
        pieces.push(Piece::New(bytes));
        done = range.end;
    }
    if done < decoded.bytes().len() {
        pieces.push(Piece::Keep(done..decoded.bytes().len()));
    }
    let first_changed_line = found.first().map_or(1, |one| first_line(view, one));
    let mut applied = Applied {
        pieces,
        first_changed_line,
        replacements: found.len(),
        changes: found
            .into_iter()
            .map(|one| Change { edit: one.edit, range: one.range, text: one.text.into_owned() })
            .collect(),
        ranges,
        tolerance: tolerances.iter().find_map(|tolerance| *tolerance),
        tolerances,
        size: 0,
        hash_before: decoded.hash().to_owned(),
        hash_after: String::new(),
    };
    let mut hasher = blake3::Hasher::new();
    applied.size = applied
        .slices(decoded.bytes())
        .map(|slice| {
            hasher.update(slice);
            slice.len()
        })
        .sum();
    applied.hash_after = hasher.finalize().to_hex().to_string();
    Ok(applied)
}

fn first_line(view: &View<'_>, one: &Found<'_>) -> usize {
    let before = &view.original().as_bytes()[one.range.clone()];
    let same = before.iter().zip(one.text.as_bytes()).take_while(|(old, new)| old == new).count();
    view.number_in_original(one.range.start + same)
}

/// Finds where one edit applies.
fn locate<'e>(
    view: &View<'_>,
    number: usize,
    edit: &'e Edit,
    found: &mut Vec<Found<'e>>,
) -> Result<(), EditError> {
    if edit.old_text.is_empty() {
        return Err(EditError::EmptyOld { edit: number });
    }
    let old = view::normalized(&edit.old_text);
    let new = view::without_pairs(&edit.new_text);
    if old == new || edit.old_text == edit.new_text {
        return Err(EditError::NoChange { edit: number });
    }
    let from = found.len();
    if edit.replace_all {
        for start in memmem::find_iter(view.text().as_bytes(), old.as_bytes()) {
            found.push(exact(view, number, start..start + old.len(), &old, &new));
        }
    } else if let Some(start) = only_place(view, number, edit, &old)? {
        found.push(exact(view, number, start..start + old.len(), &old, &new));
    }
    if found.len() == from {
        found.push(tolerant(view, number, &old, &new)?);
    }
    let changes = |one: &Found<'_>| view.original()[one.range.clone()] != *one.text;
    if !found[from..].iter().any(changes) {
        return Err(EditError::NoChange { edit: number });
    }
    Ok(())
}

/// The only exact place of an old text, none without one.
fn only_place(
    view: &View<'_>,
    number: usize,
    edit: &Edit,
    old: &str,
) -> Result<Option<usize>, EditError> {
    let places = search::text(view.text().as_bytes(), old.as_bytes(), CHECKED);
    if places.count < 2 {
        return Ok(places.starts.first().copied());
    }
    // Places that differ in their line ends only: one written exactly as asked is meant.
    if places.complete() && !view.plain() && old.contains('\n') {
        let mut same = places.starts.iter().filter(|start| {
            view.original()[view.range(&(**start..**start + old.len()))] == *edit.old_text
        });
        if let (Some(start), None) = (same.next(), same.next()) {
            return Ok(Some(*start));
        }
    }
    Err(ambiguous(view, number, &places, None))
}

fn ambiguous(
    view: &View<'_>,
    number: usize,
    places: &search::Places,
    tolerance: Option<&'static str>,
) -> EditError {
    let lines = places.starts.iter().take(LISTED).map(|start| view.number(*start)).collect();
    EditError::Ambiguous { edit: number, places: places.count, lines, tolerance }
}

fn exact<'e>(
    view: &View<'_>,
    edit: usize,
    span: Range<usize>,
    old: &str,
    new: &Cow<'e, str>,
) -> Found<'e> {
    let text = if view.plain() {
        new.clone()
    } else {
        Cow::Owned(rebuild::rebuild(view, &span, old, new))
    };
    Found { edit, range: view.range(&span), text, tolerance: None }
}

fn tolerant<'e>(
    view: &View<'_>,
    edit: usize,
    old: &str,
    new: &str,
) -> Result<Found<'e>, EditError> {
    let there = search::text(view.text().as_bytes(), view::normalized(new).as_bytes(), 1);
    let standing = match there.starts.first() {
        Some(start) if there.count == 1 && !new.trim().is_empty() => {
            Some(*start..*start + view::normalized(new).len())
        }
        _ => None,
    };
    let applied = |at: usize| Err(EditError::AlreadyApplied { edit, line: view.number(at) });
    match tolerance::search(view, old, new) {
        Outcome::Many { places, name } => Err(ambiguous(view, edit, &places, Some(name))),
        Outcome::One { candidate, name } => {
            let inside = |span: &Range<usize>| {
                span.start <= candidate.span.start && candidate.span.end <= span.end
            };
            if let Some(span) = standing.filter(inside) {
                return applied(span.start);
            }
            let text = rebuild::rebuild(view, &candidate.span, &candidate.old, &candidate.new);
            let range = view.range(&candidate.span);
            if view.original()[range.clone()] == *text {
                return applied(candidate.span.start);
            }
            Ok(Found { edit, range, text: Cow::Owned(text), tolerance: Some(name) })
        }
        Outcome::None => match standing {
            Some(span) => applied(span.start),
            None => Err(EditError::NotFound {
                edit,
                nearest: nearest::nearest(view, old).map(Box::new),
                elision: old.split('\n').position(is_placeholder).map(|line| line + 1),
            }),
        },
    }
}

/// Tells whether a line stands for text left out, as `...` or `// rest of the code`.
pub fn is_placeholder(line: &str) -> bool {
    let bare = line
        .trim()
        .trim_start_matches(['/', '#', '*', '-', '<', '!', ';', '%', '{', '('])
        .trim_end_matches(['/', '*', '-', '>', '}', ')'])
        .trim()
        .to_lowercase();
    let marked = line.trim().len() > bare.len();
    let dots = matches!(bare.as_str(), "..." | "…" | "....");
    let leading = bare.starts_with("...") || bare.starts_with('…');
    let says = ["rest of", "existing code", "remaining code", "unchanged", "same as before"];
    // `...spread` and a sentence that merely says so are text like any other.
    dots || ((marked || leading)
        && (leading || bare.ends_with("...") || bare.ends_with('…') || bare.len() < 40)
        && says.iter().any(|phrase| bare.contains(phrase)))
}
