//! Edits: old text is found in a decoded file, new text takes its place, nothing else changes.
//!
//! An old text that is nowhere exactly may differ in one of the ways of [`TOLERANCES`]. They are not
//! combined: each forgets something, and two of them together would leave too little evidence. (The
//! two about indentation also forgive blanks at the ends of lines, which nobody sees; which line
//! ends a file has matters to none.) What a tolerance makes of the new text needs evidence; where it
//! can be read in two ways, as where an old text of one line begins inside the indentation of its line
//! and further lines follow in the new one, none is guessed. Where the old text is there exactly, the
//! new one is taken as it is.
//!
//! Invariant: all edits match against the original, all or nothing, and every byte outside the
//! replaced spans stays as it was, because it is never rewritten: the result is a list of ranges of
//! the original and of new pieces. Where the file comes from and goes to is unknown here.

mod align;
mod already_applied;
mod closest;
mod dress;
mod error;
mod escapes;
mod fold;
mod halves;
mod indent;
mod partial_line;
mod prefixes;
mod rebuild;
mod region;
mod shown;
mod spelling;
mod tolerance;
mod view;
mod votes;
mod ways;
mod wrapped;

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use memchr::memmem;

pub use dress::is_fence;
pub use error::{Difference, Dress, EditError, Half, Nearest};
pub use tolerance::{TOLERANCES, Tolerance};
pub use ways::Ways;

use self::already_applied::Standing;
use crate::decode::Decoded;
use crate::detect;
use crate::encode::{self, Encoding};
use crate::search;
use tolerance::Outcome;
use view::View;

/// Places that are listed by line in a message.
const LISTED: usize = 20;
/// Bytes of a line that may stand for text left out.
const PLACEHOLDER: usize = 400;
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
    /// The characters that look like plain ones and that the lines did not have, where an edit that
    /// needed the tolerance of Unicode forms brings such: its number, and each of them once.
    pub brought: Vec<(usize, Vec<char>)>,
    /// The encoding that the changed file will be taken for, where nothing announces its encoding
    /// and its new content looks like another one; none otherwise.
    pub taken_for: Option<&'static str>,
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

/// A place that an edit would replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Byte range of the original.
    pub range: Range<usize>,
    /// Byte range of the decoded text.
    pub text: Range<usize>,
    /// Numbers of its first and its last line, from 1; a final line end belongs to the line it ends.
    pub lines: RangeInclusive<usize>,
    /// The tolerance under which it matches; none for an exact match.
    pub tolerance: Option<&'static str>,
}

/// Finds the places that an edit would replace, in order, without replacing them: one, or with
/// `replace_all` one or more.
///
/// # Errors
/// Why the edit cannot be applied, as [`apply`] gives it for a list of this edit alone; what lies
/// in writing the new text is not looked at.
pub fn find(decoded: &Decoded<'_>, edit: &Edit) -> Result<Vec<Place>, EditError> {
    let view = View::of(decoded);
    let mut found = Vec::new();
    locate(&view, 1, edit, &mut found)?;
    check(&view, decoded, &found)?;
    let ranges = byte_ranges(decoded, &found);
    let numbers = view.numbers(found.iter().flat_map(|one| {
        let last = one.range.end.saturating_sub(1).max(one.range.start);
        [one.range.start, last]
    }));
    let places = found.iter().zip(ranges).zip(numbers.chunks_exact(2));
    Ok(places
        .map(|((one, range), lines)| Place {
            range,
            text: one.range.clone(),
            lines: lines[0]..=lines[1],
            tolerance: one.tolerance,
        })
        .collect())
}

fn byte_ranges(decoded: &Decoded<'_>, found: &[Replacement<'_>]) -> Vec<Range<usize>> {
    let bounds: Vec<usize> =
        found.iter().flat_map(|one| [one.range.start, one.range.end]).collect();
    let offsets = decoded.byte_offsets(&bounds);
    offsets.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
}

/// A replacement in terms of the text, before it is encoded.
struct Replacement<'e> {
    edit: usize,
    range: Range<usize>,
    text: Cow<'e, str>,
    tolerance: Option<&'static str>,
    brought: Vec<char>,
}

/// Edits that cannot be applied which are told; those after the last of them are not looked at.
const FAILED: usize = 5;

/// Applies edits to a decoded file, all or none.
///
/// # Errors
/// The edits that cannot be applied, with their reasons; see [`EditError`].
pub fn apply(decoded: &Decoded<'_>, edits: &[Edit]) -> Result<Applied, EditError> {
    if edits.is_empty() {
        return Err(EditError::NoEdits);
    }
    let view = View::of(decoded);
    let mut found = Vec::new();
    let mut tolerances = Vec::with_capacity(edits.len());
    let mut failed = Vec::new();
    for (number, edit) in (1..).zip(edits) {
        let from = found.len();
        if let Err(error) = locate(&view, number, edit, &mut found) {
            failed.push(dependent(&view, error, edit, &edits[..number - 1]));
            if failed.len() == FAILED {
                break;
            }
        }
        tolerances.push(found[from..].iter().find_map(|one| one.tolerance));
    }
    match (failed.len(), failed.pop()) {
        (_, None) => {}
        (1, Some(only)) => return Err(only),
        (all, Some(last)) => {
            let rest = if all < FAILED { 0 } else { edits.len() - last.edit().unwrap_or_default() };
            failed.push(last);
            return Err(EditError::Several { errors: failed, rest });
        }
    }
    found.sort_by_key(|one| one.range.start);
    check(&view, decoded, &found)?;
    build(&view, decoded, found, tolerances)
}

/// Tells of an old text that is not in the file, but in what an earlier edit puts there.
fn dependent(view: &View<'_>, error: EditError, edit: &Edit, before: &[Edit]) -> EditError {
    let (EditError::NotFound { edit: number, .. }
    | EditError::AlreadyApplied { edit: number, around: false, .. }) = error
    else {
        return error;
    };
    let old = view.normalized(&edit.old_text);
    let brings =
        |other: &Edit| !old.trim().is_empty() && view.normalized(&other.new_text).contains(&*old);
    match before.iter().position(brings) {
        Some(index) => EditError::Dependent { edit: number, on: index + 1 },
        None => error,
    }
}

fn check(
    view: &View<'_>,
    decoded: &Decoded<'_>,
    found: &[Replacement<'_>],
) -> Result<(), EditError> {
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
    found: Vec<Replacement<'_>>,
    tolerances: Vec<Option<&'static str>>,
) -> Result<Applied, EditError> {
    let ranges = byte_ranges(decoded, &found);
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
    let brought = found.iter().filter(|one| !one.brought.is_empty());
    let brought = brought.map(|one| (one.edit, one.brought.clone())).collect();
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
        brought,
        taken_for: None,
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
    if applied.hash_after == applied.hash_before {
        return Err(EditError::Cancelled);
    }
    applied.taken_for = taken_for(decoded, &applied)?;
    Ok(applied)
}

/// What the changed file will be taken for, when that is not what it was. Where nobody would take
/// it for text, or UTF-16 for anything else, it could not be edited again.
fn taken_for(decoded: &Decoded<'_>, applied: &Applied) -> Result<Option<&'static str>, EditError> {
    let format = decoded.format();
    let announced = format.bom || matches!(format.encoding, Encoding::Utf8 | Encoding::DamagedUtf8);
    if announced {
        return Ok(None);
    }
    let bytes = applied.to_bytes(decoded.bytes());
    let name = format.encoding.name();
    let lost = || EditError::Unannounced { encoding: name };
    let found = detect::detect(&bytes).map_err(|_| lost())?;
    if found == format || bytes.is_ascii() && !format.encoding.is_utf16() || bytes.is_empty() {
        return Ok(None);
    }
    if format.encoding.is_utf16() { Err(lost()) } else { Ok(Some(found.encoding.name())) }
}

fn first_line(view: &View<'_>, one: &Replacement<'_>) -> usize {
    let before = &view.original().as_bytes()[one.range.clone()];
    let same = before.iter().zip(one.text.as_bytes()).take_while(|(old, new)| old == new).count();
    view.number_in_original(one.range.start + same)
}

/// Most places that one edit replaces; each takes some hundred bytes of memory on the way.
const PLACES_MAX: usize = 1_000_000;

/// Finds where one edit applies.
fn locate<'e>(
    view: &View<'_>,
    number: usize,
    edit: &'e Edit,
    found: &mut Vec<Replacement<'e>>,
) -> Result<(), EditError> {
    if edit.old_text.is_empty() {
        return Err(EditError::EmptyOld { edit: number });
    }
    let old = view.normalized(&edit.old_text);
    let new = view.normalized(&edit.new_text);
    // The mark is kept apart: what is given with it stands at the beginning without it.
    let marked = view.begins_marked(&old);
    let (old, new) = if marked { (unmarked(old), unmarked(new)) } else { (old, new) };
    if old == new || edit.old_text == edit.new_text {
        return Err(EditError::NoChange { edit: number });
    }
    let keep = if edit.replace_all { PLACES_MAX + 1 } else { CHECKED };
    let (old, new, places) = match halves::taken_off(view, number, (&old, &new), keep)? {
        Some(whole) => (Cow::Owned(whole.old), Cow::Owned(whole.new), Some(whole.places)),
        None => (old, new, None),
    };
    let starts = starts(view, number, edit, &old, places)?;
    made_already(view, number, &starts, &old, &new)?;
    if let ([start], false) = (&*starts, edit.replace_all)
        && let Some(inside) = indent::inside(view, *start, &old, &new)
    {
        made_already(view, number, &starts, &old, &inside.shifted)?;
        return Err(unclear(view, number, (*start, None), inside.ways));
    }
    let from = found.len();
    let spans = starts.into_iter().map(|start| start..start + old.len());
    found.extend(spans.map(|span| exact(view, number, span, &old, &new)));
    if found.len() == from {
        // Under a tolerance, too, both may end in one half of a line end.
        let bare = halves::of_both(&old, &new);
        let (bare_old, bare_new) = bare.unwrap_or((&old, &new));
        let one = tolerant(view, number, edit, bare_old, bare_new)?;
        if bare.is_some() && !halves::follows(view, one.range.end) {
            return Err(absent(view, number, edit, (&old, &new), &Standing::of(view, &new)));
        }
        found.push(one);
    }
    for one in &found[from..] {
        halves::adds_none(view, number, &one.range, &one.text)?;
    }
    let changes = |one: &Replacement<'_>| view.original()[one.range.clone()] != *one.text;
    if !found[from..].iter().any(changes) {
        return Err(EditError::NoChange { edit: number });
    }
    Ok(())
}

/// The exact places that an edit replaces: of those that are known, or of all.
fn starts(
    view: &View<'_>,
    number: usize,
    edit: &Edit,
    old: &str,
    known: Option<search::Places>,
) -> Result<Vec<usize>, EditError> {
    if !edit.replace_all {
        return Ok(only_place(view, number, edit, old, known)?.into_iter().collect());
    }
    let most = Err(EditError::TooMany { edit: number, most: PLACES_MAX });
    let starts: Vec<usize> = match known {
        Some(known) if !known.complete() => return most,
        Some(known) => {
            let mut done = 0;
            let mut apart = |start: &usize| {
                let apart = *start >= done;
                done = if apart { start + old.len() } else { done };
                apart
            };
            known.starts.into_iter().filter(|start| apart(start)).collect()
        }
        None => {
            let places = memmem::find_iter(view.text().as_bytes(), old.as_bytes());
            places.take(PLACES_MAX + 1).collect()
        }
    };
    if starts.len() > PLACES_MAX { most } else { Ok(starts) }
}

fn unmarked(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Cow::Owned(rest.to_owned()),
        None => text,
    }
}

/// Refuses an edit that would put the same in again at every place.
fn made_already(
    view: &View<'_>,
    edit: usize,
    starts: &[usize],
    old: &str,
    new: &str,
) -> Result<(), EditError> {
    if starts.len() > CHECKED {
        return Ok(());
    }
    let around =
        |start: &usize| already_applied::around(view, &(*start..*start + old.len()), old, new);
    let there: Option<Vec<usize>> = starts.iter().map(around).collect();
    match there.as_deref() {
        None | Some([]) => Ok(()),
        Some([first, ..]) => Err(EditError::AlreadyApplied {
            edit,
            line: view.number(*first),
            places: starts.len(),
            around: true,
        }),
    }
}

/// The only exact place of an old text, none without one.
fn only_place(
    view: &View<'_>,
    number: usize,
    edit: &Edit,
    old: &str,
    known: Option<search::Places>,
) -> Result<Option<usize>, EditError> {
    let half = known.is_some();
    let all = || search::text(view.text().as_bytes(), old.as_bytes(), CHECKED);
    let places = known.unwrap_or_else(all);
    if places.count < 2 {
        return Ok(places.starts.first().copied());
    }
    // Places that differ in their line ends only: one written exactly as asked is meant, where a
    // carriage return was asked for; line feeds are written for whatever a file has.
    if places.complete() && edit.old_text.contains('\r') {
        let asked = &edit.old_text[..edit.old_text.len() - usize::from(half)];
        let mut same = places.starts.iter().filter(|start| {
            let there = &view.original()[view.range(&(**start..**start + old.len()))];
            asked.trim_start_matches('\u{feff}') == there.trim_start_matches('\u{feff}')
        });
        if let (Some(start), None) = (same.next(), same.next()) {
            return Ok(Some(*start));
        }
    }
    let overlap = places.starts.windows(2).any(|pair| pair[1] - pair[0] < old.len());
    Err(ambiguous(view, number, &places, None, overlap))
}

fn ambiguous(
    view: &View<'_>,
    number: usize,
    places: &search::Places,
    tolerance: Option<&'static str>,
    overlap: bool,
) -> EditError {
    let starts = places.starts.iter().take(LISTED).map(|start| view.to_original(*start));
    let lines = view.numbers(starts);
    EditError::Ambiguous { edit: number, places: places.count, lines, overlap, tolerance }
}

fn unclear(
    view: &View<'_>,
    edit: usize,
    (at, tolerance): (usize, Option<&'static str>),
    ways: Ways,
) -> EditError {
    EditError::Unclear { edit, line: view.number(at), tolerance, ways: Box::new(ways) }
}

fn exact<'e>(
    view: &View<'_>,
    edit: usize,
    span: Range<usize>,
    old: &str,
    new: &Cow<'e, str>,
) -> Replacement<'e> {
    let text = if view.plain() {
        new.clone()
    } else {
        Cow::Owned(rebuild::rebuild(view, &span, old, new))
    };
    Replacement { edit, range: view.range(&span), text, tolerance: None, brought: Vec::new() }
}

fn tolerant<'e>(
    view: &View<'_>,
    number: usize,
    edit: &Edit,
    old: &str,
    new: &str,
) -> Result<Replacement<'e>, EditError> {
    let there = Standing::of(view, new);
    let applied = |at: usize, places: usize| {
        if already_applied::is_rest(old, new) {
            return Err(absent(view, number, edit, (old, new), &there));
        }
        let line = view.number(at);
        Err(EditError::AlreadyApplied { edit: number, line, places, around: false })
    };
    match tolerance::search(view, old, new) {
        Outcome::Many { places, name } => Err(ambiguous(view, number, &places, Some(name), false)),
        Outcome::Unclear { at, ways, name } => Err(unclear(view, number, (at, Some(name)), ways)),
        Outcome::One { candidate, name } => {
            let span = &candidate.span;
            let around = |there: &&Range<usize>| there.start <= span.start && span.end <= there.end;
            if let Some(there) = there.spans.iter().find(around) {
                return applied(there.start, 1);
            }
            if let Some(inside) = indent::inside(view, span.start, &candidate.old, &candidate.new) {
                return Err(unclear(view, number, (span.start, None), inside.ways));
            }
            let text = rebuild::rebuild(view, span, &candidate.old, &candidate.new);
            let range = view.range(span);
            if view.original()[range.clone()] == *text {
                return applied(span.start, 1);
            }
            let there = &view.original()[range.clone()];
            let forms = name == tolerance::FORMS;
            let brought = if forms { spelling::brought(there, &text) } else { Vec::new() };
            let text = Cow::Owned(text);
            Ok(Replacement { edit: number, range, text, tolerance: Some(name), brought })
        }
        Outcome::None => Err(absent(view, number, edit, (old, new), &there)),
    }
}

/// What there is to say of an old text that is nowhere.
fn absent(
    view: &View<'_>,
    number: usize,
    edit: &Edit,
    (old, new): (&str, &str),
    there: &Standing,
) -> EditError {
    let elision = old.split('\n').position(is_placeholder).map(|line| line + 1);
    let (dress, meant) = dress::of(view, old);
    let near = dress.and_then(|_| closest::undressed(view, &meant));
    let near = near.or_else(|| closest::nearest(view, &meant));
    let spans = if elision.is_some() { &[][..] } else { &there.spans };
    // The edit was made where the old text would be: where the file is most like it, or, when it is
    // like it nowhere, anywhere.
    let is_meant = |span: &Range<usize>| {
        near.as_ref().is_none_or(|near| {
            view.number(span.start) <= near.last && near.first <= view.number(span.end)
        })
    };
    if let Some(first) = spans.first()
        && (there.count == 1 || edit.replace_all)
        && !already_applied::is_rest(old, new)
        && already_applied::taken_away(view, old, new)
        && spans.iter().any(is_meant)
    {
        let (line, places) = (view.number(first.start), there.count);
        return EditError::AlreadyApplied { edit: number, line, places, around: false };
    }
    let starts = spans.iter().take(LISTED).map(|at| view.to_original(at.start));
    EditError::NotFound {
        edit: number,
        nearest: near.map(|near| Box::new(near.shown)),
        elision,
        dress,
        present: view.numbers(starts),
    }
}

/// Tells whether a line stands for text left out, as `...` or `// rest of the code`.
pub fn is_placeholder(line: &str) -> bool {
    if line.len() > PLACEHOLDER {
        return false;
    }
    let bare = line
        .trim()
        .trim_start_matches(['/', '#', '*', '-', '<', '!', ';', '%', '{', '(', '['])
        .trim_end_matches(['/', '*', '-', '>', '}', ')', ']'])
        .trim()
        .to_lowercase();
    let marked = line.trim().len() > bare.len();
    let dots = matches!(bare.as_str(), "..." | "…" | "....");
    let leading = bare.starts_with("...") || bare.starts_with('…');
    let says = ["rest of", "existing code", "remaining code", "unchanged", "same as before"];
    // `...spread` and a sentence that merely says so are text like any other.
    dots || (marked && matches!(bare.as_str(), "snip" | "snipped"))
        || ((marked || leading)
            && (leading || bare.ends_with("...") || bare.ends_with('…') || bare.len() < 40)
            && says.iter().any(|phrase| bare.contains(phrase)))
}
