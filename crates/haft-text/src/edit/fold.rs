//! Line by line search under a folding of characters.
//!
//! Invariant: the first line may match at the end of a line, the last one at the beginning, all
//! lines between match whole; the work is linear in text and pattern. Which differences a folding
//! forgets is the folding's business; here offsets always refer to the unfolded line. What differs
//! in substance, as a digit and the same one raised, folds to different lines.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_compatible;
use unicode_segmentation::UnicodeSegmentation;

use super::tolerance::{Candidate, Step};
use super::view::{Index, Joined, View};
use crate::search::{self, Places};

/// Places that are kept.
const KEPT: usize = 32;
/// Lines above this many bytes that are not plain ASCII are left unfolded and match nothing.
const LINE_LIMIT: usize = 1 << 20;

/// Bytes of a text up to which its folded lines are kept for the other edits of a call.
const FOLDED_LIMIT: usize = 32 << 20;

/// A folding of lines.
pub(super) trait Fold {
    /// The folded lines of the whole text, where they are kept since folding is slow: what folds to
    /// an old text stands in them.
    fn joined<'v>(&self, _view: &'v View<'_>, _index: &Index<'_>) -> Option<&'v Joined> {
        None
    }
    /// The folded line.
    fn key<'t>(&self, line: &'t str) -> Cow<'t, str>;
    /// What the other methods take as `old` for a line of the old text.
    fn wanted<'t>(&self, line: &'t str) -> FoldedLine<'t>;
    /// Where the end of a line begins that folds to what `old` folds to.
    fn suffix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize>;
    /// Where the beginning of a line ends that folds to what `old` folds to.
    fn prefix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize>;
    /// Reports the parts of a line that fold to what `old` folds to; work that grows with `old`
    /// is done only for lines that are as long.
    fn within(&self, line: &str, old: &FoldedLine<'_>, found: &mut dyn FnMut(Range<usize>));
}

/// A line of the old text, looked at once and then compared with every line.
pub(super) struct FoldedLine<'t> {
    text: Cow<'t, str>,
    /// Length without the blanks at its end.
    bare: usize,
}

impl<'t> FoldedLine<'t> {
    fn new(text: Cow<'t, str>) -> Self {
        Self { bare: trimmed(&text).len(), text }
    }

    fn bare(&self) -> &str {
        &self.text[..self.bare]
    }
}

/// The folding that forgets blanks at the end of a line.
pub(super) struct Blanks;

fn trimmed(line: &str) -> &str {
    line.trim_end_matches([' ', '\t'])
}

impl Fold for Blanks {
    fn key<'t>(&self, line: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(trimmed(line))
    }

    fn wanted<'t>(&self, line: &'t str) -> FoldedLine<'t> {
        // Whether blanks are asked for at the end matters here.
        FoldedLine::new(Cow::Borrowed(line))
    }

    fn suffix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize> {
        if old.text.is_empty() {
            return Some(line.len());
        }
        let line = trimmed(line);
        line.ends_with(old.bare()).then(|| line.len() - old.bare)
    }

    fn prefix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize> {
        if old.bare == old.text.len() {
            return line.starts_with(&*old.text).then_some(old.bare);
        }
        // Blanks that are asked for at the end mean that the line ends there.
        (trimmed(line) == old.bare()).then_some(line.len())
    }

    fn within(&self, line: &str, old: &FoldedLine<'_>, found: &mut dyn FnMut(Range<usize>)) {
        if old.bare < old.text.len() && trimmed(line).ends_with(old.bare()) {
            found(trimmed(line).len() - old.bare..line.len());
        }
    }
}

/// The folding that forgets Unicode forms and writes quotes, dashes and spaces plainly.
pub(super) struct Forms;

/// Writes the many quotes, dashes and spaces as the plain one.
pub(super) const fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            ' '
        }
        _ => character,
    }
}

/// Whether a character is another form of the letters, digits and signs to which it is compatible,
/// and not a thing of its own as a raised digit or a fraction is: half and full width, ligatures,
/// dots in a row, and the shapes that Arabic letters take in words.
const fn is_form(character: char) -> bool {
    matches!(character,
        '\u{ff01}'..='\u{ff9f}' | '\u{ffe0}'..='\u{ffe2}' | '\u{ffe5}' | '\u{ffe6}'
        | '\u{fb00}'..='\u{fb06}' | '\u{fb13}'..='\u{fb17}' | '\u{2024}'..='\u{2026}'
        | '\u{fb50}'..='\u{fbb1}' | '\u{fe80}'..='\u{fefc}')
}

/// Folds characters.
fn fold(characters: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for character in characters.map(plain) {
        if is_form(character) {
            decompose_compatible(character, |part| out.push(part));
        } else {
            out.push(character);
        }
    }
    if out.is_ascii() { out } else { out.nfc().collect() }
}

/// Whether a character stands for plainer ones, so that it may be there unseen.
pub(super) fn is_lookalike(character: char) -> bool {
    !character.is_ascii() && (plain(character) != character || is_form(character))
}

/// Where a line and one that folds alike part in the same places: offsets in both, from the
/// beginnings to the ends, with as little as can be between them.
pub(super) fn boundaries(one: &str, other: &str) -> Vec<(usize, usize)> {
    let ends = vec![(0, 0), (one.len(), other.len())];
    let (Some(first), Some(second)) = (Folded::new(one), Folded::new(other)) else { return ends };
    if first.text != second.text {
        return ends;
    }
    let both = |(folded, at): &(usize, usize)| Some((*at, second.unfolded(*folded)?));
    first.marks.iter().filter_map(both).collect()
}

/// A folded line with the offsets at which both forms have a boundary.
struct Folded {
    text: String,
    /// Offsets in the folded and in the unfolded line, at each grapheme's start and at the end.
    marks: Vec<(usize, usize)>,
}

impl Folded {
    fn new(line: &str) -> Option<Self> {
        if line.len() > LINE_LIMIT {
            return None;
        }
        let mut folded = Self { text: String::with_capacity(line.len()), marks: Vec::new() };
        for (at, grapheme) in line.grapheme_indices(true) {
            folded.marks.push((folded.text.len(), at));
            folded.text.push_str(&fold(grapheme.chars()));
        }
        folded.marks.push((folded.text.len(), line.len()));
        Some(folded)
    }

    fn unfolded(&self, offset: usize) -> Option<usize> {
        let at = self.marks.binary_search_by_key(&offset, |mark| mark.0).ok()?;
        Some(self.marks[at].1)
    }
}

impl Fold for Forms {
    fn joined<'v>(&self, view: &'v View<'_>, index: &Index<'_>) -> Option<&'v Joined> {
        let lines = (0..index.len()).map(|line| self.key(index.line(line)));
        (view.text().len() <= FOLDED_LIMIT).then(|| view.folded(|| Joined::new(lines)))
    }

    fn key<'t>(&self, line: &'t str) -> Cow<'t, str> {
        if line.is_ascii() {
            return Cow::Borrowed(line);
        }
        Folded::new(line).map_or(Cow::Borrowed(line), |folded| Cow::Owned(folded.text))
    }

    fn wanted<'t>(&self, line: &'t str) -> FoldedLine<'t> {
        FoldedLine::new(self.key(line))
    }

    fn suffix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize> {
        let old = &*old.text;
        if line.is_ascii() {
            return line.ends_with(old).then(|| line.len() - old.len());
        }
        let folded = Folded::new(line)?;
        let start = folded.text.strip_suffix(old)?.len();
        folded.unfolded(start)
    }

    fn prefix(&self, line: &str, old: &FoldedLine<'_>) -> Option<usize> {
        let old = &*old.text;
        if line.is_ascii() {
            return line.starts_with(old).then_some(old.len());
        }
        let folded = Folded::new(line)?;
        folded.text.strip_prefix(old)?;
        folded.unfolded(old.len())
    }

    fn within(&self, line: &str, old: &FoldedLine<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let old = &*old.text;
        if line.is_ascii() {
            // Preparing the search takes as long as `old` is.
            if old.len() > line.len() {
                return;
            }
            memmem::find_iter(line.as_bytes(), old.as_bytes())
                .for_each(|at| found(at..at + old.len()));
            return;
        }
        let Some(folded) = Folded::new(line) else { return };
        for start in search::text(folded.text.as_bytes(), old.as_bytes(), LINE_LIMIT).starts {
            if let (Some(from), Some(to)) =
                (folded.unfolded(start), folded.unfolded(start + old.len()))
            {
                found(from..to);
            }
        }
    }
}

/// Hashes a line's key.
pub(super) fn hashed(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Finds a text under a folding.
pub(super) fn find(view: &View<'_>, fold: &dyn Fold, old: &str, new: &str) -> Step {
    let Some(index) = view.index() else { return Step::None };
    let pattern: Vec<&str> = old.split('\n').collect();
    let mut places = Places::default();
    let mut only = None;
    let mut found = |span: Range<usize>| {
        places.push(span.start, KEPT);
        only.get_or_insert(span);
    };
    let kept = fold.joined(view, &index).map(|joined| candidates(joined, fold, &pattern));
    if let [line] = *pattern {
        let wanted = fold.wanted(line);
        let mut within = |number: usize| {
            let start = index.start(number);
            fold.within(index.line(number), &wanted, &mut |part| {
                found(start + part.start..start + part.end);
            });
        };
        match kept {
            Some(lines) => lines.into_iter().for_each(&mut within),
            None => (0..index.len()).for_each(&mut within),
        }
    } else {
        several(&index, fold, &pattern, kept, &mut found);
    }
    match (places.count, only) {
        (1, Some(span)) if proven(view, fold, &span, &pattern) => {
            Step::One(Candidate { span, old: old.to_owned(), new: new.to_owned() })
        }
        (0 | 1, _) => Step::None,
        _ => Step::Many(places),
    }
}

/// The lines in which folded lines begin that hold a folded pattern.
fn candidates(joined: &Joined, fold: &dyn Fold, pattern: &[&str]) -> Vec<usize> {
    let keys: Vec<Cow<'_, str>> = pattern.iter().map(|line| fold.key(line)).collect();
    let mut lines = Vec::new();
    search::each(joined.text().as_bytes(), keys.join("\n").as_bytes(), |at| {
        let line = joined.line(at);
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    });
    lines
}

fn several(
    index: &Index<'_>,
    fold: &dyn Fold,
    pattern: &[&str],
    kept: Option<Vec<usize>>,
    found: &mut dyn FnMut(Range<usize>),
) {
    let last = pattern.len() - 1;
    if index.len() <= last {
        return;
    }
    let (head, tail) = (fold.wanted(pattern[0]), fold.wanted(pattern[last]));
    let mut ends = |first: usize| {
        let stop = first + last;
        if stop < index.len()
            && let Some(from) = fold.suffix(index.line(first), &head)
            && let Some(to) = fold.prefix(index.line(stop), &tail)
        {
            found(index.start(first) + from..index.start(stop) + to);
        }
    };
    if let Some(lines) = kept {
        return lines.into_iter().for_each(ends);
    }
    let middle: Vec<u64> = pattern[1..last].iter().map(|line| hashed(&fold.key(line))).collect();
    if middle.is_empty() {
        (0..index.len() - last).for_each(ends);
        return;
    }
    let keys = (1..index.len()).map(|line| hashed(&fold.key(index.line(line))));
    search::sequence(keys, &middle, &mut ends);
}

/// Compares the middle lines themselves, since only their hashes were compared so far.
fn proven(view: &View<'_>, fold: &dyn Fold, span: &Range<usize>, pattern: &[&str]) -> bool {
    let lines: Vec<&str> = view.text()[span.clone()].split('\n').collect();
    lines.len() == pattern.len()
        && lines
            .iter()
            .zip(pattern)
            .skip(1)
            .rev()
            .skip(1)
            .all(|(line, old)| fold.key(line) == fold.key(old))
}
