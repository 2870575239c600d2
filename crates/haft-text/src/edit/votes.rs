//! What a new text itself says of its indentation, where the old one was found with another one than
//! the file has.
//!
//! Invariant: the time is that of one pass over both texts. Two things speak: the lines that both
//! texts have once, and the smallest indentation. Where no such line speaks, the first and the last
//! line have to bear out the second. What speaks for both readings, or for none, decides nothing.

use std::collections::HashMap;

/// How a new text is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Indented as it stands.
    Written,
    /// Shifted as the old text is.
    Shifted,
}

/// A line that is not blank: of the old text with what the file has for it, or of the new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// What it has without the blanks around it.
    pub(super) bare: &'t str,
    /// Its indentation in the call.
    pub(super) indent: &'t str,
    /// Its indentation in the file; none of a line of the new text.
    pub(super) file: &'t str,
}

/// Readings that something speaks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Votes {
    written: bool,
    shifted: bool,
}

impl Votes {
    /// What one indentation of the new text says, held against one of the old text and of the file.
    fn of(new: &str, old: &str, file: &str) -> Self {
        Self { written: old != file && new == file, shifted: old != file && new == old }
    }

    const fn and(self, other: Self) -> Self {
        Self { written: self.written || other.written, shifted: self.shifted || other.shifted }
    }

    const fn is_none(self) -> bool {
        !self.written && !self.shifted
    }
}

/// Tells how the new text is meant; none where nothing speaks for either, or something for each.
pub(super) fn decide(old: &[Line<'_>], new: &[Line<'_>]) -> Option<Meaning> {
    let (shared, strange) = shared(old, new);
    let mut votes = shared.and(base(old, new));
    if shared.is_none() {
        // The smallest indentation may be one by chance: then the outermost lines say otherwise.
        let [first, last] =
            [old.first().zip(new.first()), old.last().zip(new.last())].map(|pair| {
                pair.map_or_else(Votes::default, |(old, new)| {
                    Votes::of(new.indent, old.indent, old.file)
                })
            });
        if strange && first != votes {
            return None;
        }
        votes = if strange { votes } else { votes.and(first).and(last) };
    }
    match votes {
        Votes { written: true, shifted: false } => Some(Meaning::Written),
        Votes { written: false, shifted: true } => Some(Meaning::Shifted),
        _ => None,
    }
}

/// What the lines say that both texts have once, and whether one is indented as neither.
fn shared(old: &[Line<'_>], new: &[Line<'_>]) -> (Votes, bool) {
    let in_new = only(new);
    let (mut votes, mut strange) = (Votes::default(), false);
    for (bare, line) in only(old) {
        if let (Some(line), Some(Some(new))) = (line, in_new.get(bare)) {
            let vote = Votes::of(new.indent, line.indent, line.file);
            strange |= vote.is_none() && line.indent != line.file;
            votes = votes.and(vote);
        }
    }
    (votes, strange)
}

/// What the smallest indentation says; where that is the same in the old text and the file, the
/// smallest that is not empty.
fn base(old: &[Line<'_>], new: &[Line<'_>]) -> Votes {
    let given = old.iter().map(|line| line.indent);
    let (file, new) = (old.iter().map(|line| line.file), new.iter().map(|line| line.indent));
    let alike = smallest(given.clone()) == smallest(file.clone());
    let counts = |indent: &&str| !alike || !indent.is_empty();
    match (
        smallest(new.filter(counts)),
        smallest(given.filter(counts)),
        smallest(file.filter(counts)),
    ) {
        (Some(new), Some(given), Some(file)) => Votes::of(new, given, file),
        _ => Votes::default(),
    }
}

fn smallest<'t>(indents: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    indents.min_by_key(|indent| indent.len())
}

/// The lines by what they have; none for what several have.
fn only<'l, 't>(lines: &'l [Line<'t>]) -> HashMap<&'t str, Option<&'l Line<'t>>> {
    let mut only = HashMap::with_capacity(lines.len());
    for line in lines {
        only.entry(line.bare).and_modify(|one| *one = None).or_insert(Some(line));
    }
    only
}

/// The new text with one step of its indentation for each level of the file, where tabs are indented
/// with in one of the texts.
pub(super) fn stepped(old: &[Line<'_>], new: &[Line<'_>], text: &str) -> Option<String> {
    let tabs = |indent: &str| indent.contains('\t');
    let (blank, tab) = (
        new.iter().any(|line| line.indent.contains(' ')),
        new.iter().any(|line| tabs(line.indent)),
    );
    if (blank && tab) || !(tab || old.iter().any(|line| tabs(line.file) || tabs(line.indent))) {
        return None;
    }
    let file = old.iter().map(|line| line.file);
    let (level, base) = (step(file.clone())?, smallest(file.filter(|indent| !indent.is_empty()))?);
    let level = if level.starts_with('\t') { "\t" } else { level };
    let mut step = step(new.iter().map(|line| line.indent))?.len();
    // Of lines that are all indented alike the steps cannot be seen: they begin where the file's do.
    if new.iter().all(|line| line.indent.len() == step) {
        step = (step / (base.len() / level.len())).max(1);
    }
    let line = |line: &str| {
        let rest = line.trim_start_matches([' ', '\t']);
        let levels = if rest.is_empty() { 0 } else { (line.len() - rest.len()) / step };
        format!("{}{rest}", level.repeat(levels))
    };
    Some(text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

/// What all lines are indented by once or several times, apart from those that are not; none where
/// no line is.
fn step<'t>(indents: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    indents.filter(|indent| !indent.is_empty()).reduce(|one, two| {
        let (mut width, mut rest) = (one.len(), two.len());
        while rest > 0 {
            (width, rest) = (rest, width % rest);
        }
        &one[..width]
    })
}
