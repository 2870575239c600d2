//! A text with atoms in it, and where a cursor may stand.
//!
//! An atom is a range of the text that is deleted as one, such as the marker of a long paste.
//!
//! **Invariant:** atoms are in order, do not overlap, and none is empty. A splice cuts no atom.
//! Text on both sides of an atom never joins with it to one grapheme.
//!
//! **Does not know:** cursors, undo, widths.

use std::{ops::Range, sync::Arc};

use unicode_segmentation::{GraphemeCursor, Graphemes, UnicodeSegmentation as _};

/// What an atom counts beside its bytes.
const ATOM: usize = 64;

/// What an atom stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A text that takes its place on submit.
    Paste(Arc<str>),
    /// Data of the caller.
    Attachment(u64),
}

/// A range of a text that is one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Atom {
    /// Bytes of the text that holds it.
    pub(super) range: Range<usize>,
    pub(super) content: Content,
}

impl Atom {
    fn weight(&self) -> usize {
        match &self.content {
            Content::Paste(text) => text.len() + ATOM,
            Content::Attachment(_) => ATOM,
        }
    }

    fn shifted(&self, back: usize, forward: usize) -> Self {
        let range = self.range.start - back + forward..self.range.end - back + forward;
        Self { range, content: self.content.clone() }
    }
}

/// One grapheme of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign<'t> {
    /// Its offset in bytes.
    pub(super) at: usize,
    pub(super) text: &'t str,
    /// The index of the atom that it is a part of.
    pub(super) atom: Option<usize>,
}

impl Sign<'_> {
    pub(super) const fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// A text, or a piece of one, with its atoms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    text: String,
    atoms: Vec<Atom>,
}

impl Fragment {
    /// A text without atoms.
    pub(super) const fn plain(text: String) -> Self {
        Self { text, atoms: Vec::new() }
    }

    /// A single atom; its label is not empty.
    pub(super) fn atom(label: String, content: Content) -> Self {
        let atoms = vec![Atom { range: 0..label.len(), content }];
        Self { text: label, atoms }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes that it holds, those behind its atoms included.
    pub(super) fn weight(&self) -> usize {
        self.text.len() + self.atoms.iter().map(Atom::weight).sum::<usize>()
    }

    /// Adds another one at the end.
    pub(super) fn push(&mut self, other: &Self) {
        let length = self.text.len();
        self.atoms.extend(other.atoms.iter().map(|atom| atom.shifted(0, length)));
        self.text.push_str(&other.text);
    }

    /// Makes a range of a plain text an atom. The range lies behind all atoms so far.
    pub(super) fn mark(&mut self, range: Range<usize>, content: Content) {
        self.atoms.push(Atom { range, content });
    }

    /// Part of the text; nothing where the range is none of its own.
    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// A copy of a range. The range cuts no atom.
    pub(super) fn copy(&self, range: Range<usize>) -> Self {
        let atoms = self.atoms.get(self.atoms_in(&range)).unwrap_or_default();
        let atoms = atoms.iter().map(|atom| atom.shifted(range.start, 0)).collect();
        Self { text: self.slice(range).to_owned(), atoms }
    }

    /// Puts a text in the place of a range, and returns what was there. The range cuts no atom.
    pub(super) fn splice(&mut self, range: Range<usize>, with: &Self) -> Self {
        let removed = self.copy(range.clone());
        let within = self.atoms_in(&range);
        for atom in self.atoms.iter_mut().skip(within.end) {
            *atom = atom.shifted(range.len(), with.len());
        }
        let added = with.atoms.iter().map(|atom| atom.shifted(0, range.start));
        drop(self.atoms.splice(within, added));
        // Not `replace_range`, which goes byte by byte.
        drop(self.text.drain(range.clone()));
        self.text.insert_str(range.start, &with.text);
        removed
    }

    /// Indices of the atoms within a range that cuts none.
    fn atoms_in(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.atoms.partition_point(|atom| atom.range.end <= range.start);
        first..self.atoms.partition_point(|atom| atom.range.start < range.end).max(first)
    }

    /// The smallest range around another one that lies in the text and cuts no atom or character.
    pub(super) fn whole(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(range.start);
        let end = self.text.ceil_char_boundary(range.end).max(start);
        let start = self.around(start).map_or(start, |atom| atom.range.start);
        let end = self.around(end).map_or(end, |atom| atom.range.end);
        start..end
    }

    /// The atom that an offset lies inside of; its edges are outside.
    pub(super) fn around(&self, offset: usize) -> Option<&Atom> {
        let at = self.atoms.partition_point(|atom| atom.range.end <= offset);
        self.atoms.get(at).filter(|atom| atom.range.start < offset)
    }

    /// The atom that starts at an offset.
    pub(super) fn starting(&self, offset: usize) -> Option<&Atom> {
        let at = self.atoms.partition_point(|atom| atom.range.start < offset);
        self.atoms.get(at).filter(|atom| atom.range.start == offset)
    }

    /// The atom that ends at an offset.
    pub(super) fn ending(&self, offset: usize) -> Option<&Atom> {
        let at = self.atoms.partition_point(|atom| atom.range.end < offset);
        self.atoms.get(at).filter(|atom| atom.range.end == offset)
    }

    /// The text between atoms that an offset is in; at the start of an atom, the text before it.
    fn segment(&self, offset: usize) -> Range<usize> {
        let at = self.atoms.partition_point(|atom| atom.range.end <= offset);
        let before = at.checked_sub(1).and_then(|at| self.atoms.get(at));
        let start = before.map_or(0, |atom| atom.range.end);
        start..self.atoms.get(at).map_or(self.len(), |atom| atom.range.start)
    }

    /// The next place behind an offset where a cursor may stand; the end at the end.
    pub(super) fn next(&self, offset: usize) -> usize {
        if let Some(atom) = self.starting(offset).or_else(|| self.around(offset)) {
            return atom.range.end;
        }
        let segment = self.segment(offset);
        let text = self.slice(segment.clone());
        let mut cursor = GraphemeCursor::new(offset - segment.start, text.len(), true);
        cursor.next_boundary(text, 0).ok().flatten().map_or(self.len(), |at| segment.start + at)
    }

    /// The last place before an offset where a cursor may stand; 0 at the start.
    pub(super) fn previous(&self, offset: usize) -> usize {
        if let Some(atom) = self.ending(offset).or_else(|| self.around(offset)) {
            return atom.range.start;
        }
        let segment = self.segment(offset);
        let text = self.slice(segment.clone());
        let mut cursor = GraphemeCursor::new(offset - segment.start, text.len(), true);
        cursor.prev_boundary(text, 0).ok().flatten().map_or(0, |at| segment.start + at)
    }

    /// Whether a cursor may stand at an offset: at a border of graphemes and inside of no atom.
    pub(super) fn is_border(&self, offset: usize) -> bool {
        if !self.text.is_char_boundary(offset) || self.around(offset).is_some() {
            return false;
        }
        let segment = self.segment(offset);
        if offset == segment.start || offset == segment.end {
            return true;
        }
        let text = self.slice(segment.clone());
        let mut cursor = GraphemeCursor::new(offset - segment.start, text.len(), true);
        cursor.is_boundary(text, 0).unwrap_or(true)
    }

    /// The first place from an offset on where a cursor may stand.
    pub(super) fn ceil(&self, offset: usize) -> usize {
        let offset = self.text.ceil_char_boundary(offset);
        if self.is_border(offset) { offset } else { self.next(offset) }
    }

    /// The last place up to an offset where a cursor may stand.
    pub(super) fn floor(&self, offset: usize) -> usize {
        let offset = self.text.floor_char_boundary(offset);
        if self.is_border(offset) { offset } else { self.previous(offset) }
    }

    /// Where the line of an offset starts.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.slice(0..offset).rfind('\n').map_or(0, |at| at + 1)
    }

    /// Where the line of an offset ends, before its line feed.
    pub(super) fn line_end(&self, offset: usize) -> usize {
        self.slice(offset..self.len()).find('\n').map_or(self.len(), |at| offset + at)
    }

    /// Graphemes from a border on. Those of an atom are given one by one.
    pub(super) fn signs(&self, from: usize) -> Signs<'_> {
        let atom = self.atoms.partition_point(|atom| atom.range.end <= from);
        Signs { whole: self, at: from, atom, inside: false, segment: "".graphemes(true) }
    }

    /// The text with the pastes in place of their markers, and where the attachments are in it.
    pub(super) fn expanded(&self) -> (String, Vec<(Range<usize>, u64)>) {
        let (mut text, mut attachments) = (String::with_capacity(self.weight()), Vec::new());
        let mut at = 0;
        for atom in &self.atoms {
            text.push_str(self.slice(at..atom.range.start));
            match &atom.content {
                Content::Paste(paste) => text.push_str(paste),
                Content::Attachment(id) => {
                    let start = text.len();
                    text.push_str(self.slice(atom.range.clone()));
                    attachments.push((start..text.len(), *id));
                }
            }
            at = atom.range.end;
        }
        text.push_str(self.slice(at..self.len()));
        (text, attachments)
    }
}

/// Graphemes of a text, in order.
#[derive(Clone, Debug)]
pub(super) struct Signs<'t> {
    whole: &'t Fragment,
    at: usize,
    /// The index of the atom that is next or that the segment is.
    atom: usize,
    /// Whether the segment is an atom.
    inside: bool,
    segment: Graphemes<'t>,
}

impl<'t> Iterator for Signs<'t> {
    type Item = Sign<'t>;

    fn next(&mut self) -> Option<Sign<'t>> {
        loop {
            if let Some(text) = self.segment.next() {
                let sign = Sign { at: self.at, text, atom: self.inside.then_some(self.atom) };
                self.at += text.len();
                return Some(sign);
            }
            if self.inside {
                (self.inside, self.atom) = (false, self.atom + 1);
            }
            let atom = self.whole.atoms.get(self.atom);
            self.inside = atom.is_some_and(|atom| atom.range.start <= self.at);
            let end = match atom {
                Some(atom) if self.inside => atom.range.end,
                Some(atom) => atom.range.start,
                None => self.whole.len(),
            };
            if self.at >= end {
                return None;
            }
            self.segment = self.whole.slice(self.at..end).graphemes(true);
        }
    }
}
