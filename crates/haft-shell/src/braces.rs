//! Brace expansion: `{a,b}`, `{1..3}`, `{a..e..2}`.

use crate::{MOST_WORDS, syntax::Piece};

/// A part of a word before its braces are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    /// A character, and whether it was quoted.
    Char(char, bool),
    /// What is no text.
    Piece(Piece),
    /// An empty text within quotes, which is a word all the same.
    Empty,
}

/// Two of them make a range.
const DOT: Atom = Atom::Char('.', false);

/// Why braces are not expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// They make more than [`MOST_WORDS`].
    TooMany,
    /// bash reads them in a way of its own.
    Unclear,
}

/// The words that braces make of one.
pub(crate) fn expand(atoms: &[Atom]) -> Result<Vec<Vec<Atom>>, Odd> {
    let Some((open, close, choices)) = first(atoms)? else { return Ok(vec![atoms.to_vec()]) };
    let mut middles = Vec::new();
    for choice in choices {
        middles.extend(expand(&choice)?);
        if middles.len() > MOST_WORDS {
            return Err(Odd::TooMany);
        }
    }
    let ends = expand(&atoms[close + 1..])?;
    if middles.len().saturating_mul(ends.len()) > MOST_WORDS {
        return Err(Odd::TooMany);
    }
    let start = &atoms[..open];
    let word = |middle: &Vec<Atom>, end: &Vec<Atom>| [start, middle, end].concat();
    Ok(middles.iter().flat_map(|middle| ends.iter().map(move |end| word(middle, end))).collect())
}

/// Where braces open and close, and what they choose from.
type Chosen = (usize, usize, Vec<Vec<Atom>>);

/// The first braces that are expanded: where they open and close, and what they choose from.
fn first(atoms: &[Atom]) -> Result<Option<Chosen>, Odd> {
    let chooses = |two: &[Atom]| two[0] == DOT && two[1] == DOT;
    let may_choose = atoms.contains(&Atom::Char(',', false)) || atoms.windows(2).any(chooses);
    if !may_choose {
        return Ok(None);
    }
    odd_if(!is_balanced(atoms))?;
    // bash looks at those within quotes, too: of `{a..'{b,c}'}` it drops the outer ones.
    let is_quoted = |atom: &Atom| matches!(atom, Atom::Char('{' | '}' | ',', true));
    let opens_any = atoms.contains(&Atom::Char('{', false));
    odd_if(opens_any && atoms.iter().any(is_quoted))?;
    let pairs = pairs(atoms);
    for (skipped, Pair { open, close, commas, is_inner }) in pairs.into_iter().enumerate() {
        if !commas.is_empty() {
            odd_if(skipped > 0)?;
            let ends = commas.into_iter().chain([close]);
            let mut from = open;
            let choice = |to: usize| atoms[std::mem::replace(&mut from, to) + 1..to].to_vec();
            return Ok(Some((open, close, ends.map(choice).collect())));
        }
        // What holds braces is no range.
        if is_inner && let Some(choices) = sequence(&atoms[open + 1..close])? {
            odd_if(skipped > 0)?;
            return Ok(Some((open, close, choices)));
        }
    }
    Ok(None)
}

/// Two braces that belong together.
struct Pair {
    open: usize,
    close: usize,
    /// The commas between them that are within no others.
    commas: Vec<usize>,
    /// Whether none are between them.
    is_inner: bool,
}

/// The pairs of braces, each of which is closed, in the order in which they open.
fn pairs(atoms: &[Atom]) -> Vec<Pair> {
    let (mut all, mut open): (Vec<Pair>, Vec<usize>) = Default::default();
    for (at, atom) in atoms.iter().enumerate() {
        match (atom, open.last()) {
            (Atom::Char('{', false), outer) => {
                if let Some(outer) = outer {
                    all[*outer].is_inner = false;
                }
                open.push(all.len());
                all.push(Pair { open: at, close: at, commas: Vec::new(), is_inner: true });
            }
            (Atom::Char(',', false), Some(last)) => all[*last].commas.push(at),
            (Atom::Char('}', false), Some(last)) => {
                all[*last].close = at;
                open.pop();
            }
            _ => {}
        }
    }
    all
}

/// Where braces that stand for themselves are mixed with others, bash has rules of its own: of
/// `{a..{b,c}}` it drops the outer ones.
fn odd_if(is_odd: bool) -> Result<(), Odd> {
    if is_odd { Err(Odd::Unclear) } else { Ok(()) }
}

/// Whether each brace that opens is closed.
fn is_balanced(atoms: &[Atom]) -> bool {
    let mut depth = 0_usize;
    for atom in atoms {
        depth = match atom {
            Atom::Char('{', false) => depth + 1,
            Atom::Char('}', false) if depth == 0 => return false,
            Atom::Char('}', false) => depth - 1,
            _ => depth,
        };
    }
    depth == 0
}

/// What `1..3`, `a..e` and the like stand for.
fn sequence(atoms: &[Atom]) -> Result<Option<Vec<Vec<Atom>>>, Odd> {
    let Some(numbers) = range(atoms) else { return Ok(None) };
    let texts = numbers.texts()?;
    let quoted = |text: &String| text.chars().map(|c| Atom::Char(c, true)).collect();
    Ok(Some(texts.iter().map(quoted).collect()))
}

/// From where to where, in which steps.
struct Range {
    from: i64,
    to: i64,
    step: usize,
    /// Digits that each number has at least; none for letters.
    width: Option<usize>,
}

impl Range {
    fn texts(&self) -> Result<Vec<String>, Odd> {
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let most = i64::try_from(MOST_WORDS.saturating_mul(self.step)).unwrap_or(i64::MAX);
        if high.checked_sub(low).is_none_or(|far| far > most) {
            return Err(Odd::TooMany);
        }
        let numbers: Vec<i64> = if self.from <= self.to {
            (low..=high).step_by(self.step).collect()
        } else {
            (0..=high - low).step_by(self.step).map(|down| high - down).collect()
        };
        let Some(width) = self.width else {
            // In between lie characters that are special; they are taken as text, as bash does.
            let letter = |n: &i64| u8::try_from(*n).map(|n| char::from(n).to_string());
            return Ok(numbers.iter().filter_map(|n| letter(n).ok()).collect());
        };
        Ok(numbers.iter().map(|n| format!("{n:0width$}")).collect())
    }
}

/// The range that stands between two braces.
fn range(atoms: &[Atom]) -> Option<Range> {
    let plain = |atom: &Atom| match atom {
        Atom::Char(c, false) => Some(*c),
        _ => None,
    };
    let text: String = atoms.iter().map(plain).collect::<Option<_>>()?;
    let mut parts = text.split("..");
    let (from, to, step) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let step: i64 = step.map_or(Some(1), |step| step.parse().ok())?;
    let step = usize::try_from(step.unsigned_abs().max(1)).ok()?;
    if let (Some(from), Some(to)) = (one(from), one(to)) {
        return Some(Range { from: from.into(), to: to.into(), step, width: None });
    }
    let width = if [from, to].into_iter().any(is_padded) { from.len().max(to.len()) } else { 0 };
    Some(Range { from: from.parse().ok()?, to: to.parse().ok()?, step, width: Some(width) })
}

/// Whether a number begins with a zero that says how wide all are.
fn is_padded(text: &str) -> bool {
    let digits = text.trim_start_matches('-');
    digits.len() > 1 && digits.starts_with('0')
}

/// A letter that stands alone.
fn one(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [c] if c.is_ascii_alphabetic() => Some(*c),
        _ => None,
    }
}
