//! What a new text itself says of its indentation, where the old one was found with another one than
//! the file has.
//!
//! Invariant: the time is that of one pass over both texts. Two things speak: the lines that both
//! texts have once, and the smallest indentation. What speaks for both readings, or for none, decides
//! nothing.

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
#[derive(Default)]
struct Votes {
    written: bool,
    shifted: bool,
}

impl Votes {
    fn cast(&mut self, new: &str, old: &str, file: &str) {
        if old != file {
            self.written |= new == file;
            self.shifted |= new == old;
        }
    }
}

/// Tells how the new text is meant; none where nothing speaks for either, or something for each.
pub(super) fn decide(old: &[Line<'_>], new: &[Line<'_>]) -> Option<Meaning> {
    let mut votes = Votes::default();
    let (once, in_new) = (only(old), only(new));
    for (bare, line) in once {
        if let (Some(line), Some(Some(new))) = (line, in_new.get(bare)) {
            votes.cast(new.indent, line.indent, line.file);
        }
    }
    let [in_old, in_new] = [old, new].map(|lines| lines.iter().map(|line| line.indent));
    let in_file = old.iter().map(|line| line.file);
    if smallest(in_old.clone()) == smallest(in_file.clone()) {
        let deep = |indent: &&str| !indent.is_empty();
        base(&mut votes, in_new.filter(deep), in_old.filter(deep), in_file.filter(deep));
    } else {
        base(&mut votes, in_new, in_old, in_file);
    }
    match votes {
        Votes { written: true, shifted: false } => Some(Meaning::Written),
        Votes { written: false, shifted: true } => Some(Meaning::Shifted),
        _ => None,
    }
}

fn base<'t>(
    votes: &mut Votes,
    new: impl Iterator<Item = &'t str>,
    old: impl Iterator<Item = &'t str>,
    file: impl Iterator<Item = &'t str>,
) {
    if let (Some(new), Some(old), Some(file)) = (smallest(new), smallest(old), smallest(file)) {
        votes.cast(new, old, file);
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
