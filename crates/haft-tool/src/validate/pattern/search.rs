//! Searches a text for a pattern with looks around and references back, as ECMA-262 says (2025,
//! section 22.2.2): one way after the other, going back where one does not fit.
//!
//! **Invariant:** each instruction and each character that it reads is a step, and the search ends
//! where there are no more of them: nothing else bounds how often it goes back. Memory is bounded by
//! [`WAYS`]. It calls itself only for looks, which nest no deeper than a pattern may.
//!
//! **Does not know:** what a pattern was written like.

use super::program::{Insn, Item, Program};

/// Most ways that are kept to go back to, and changes to undo: at 32 bytes each, 32 MB.
const WAYS: usize = 1 << 20;

/// What a slot holds that holds no number yet.
const NONE: usize = usize::MAX;

/// There are too few steps, or too many ways.
#[derive(Debug)]
pub(super) struct TooMuch;

/// What to do where a way does not fit, the last first.
enum Back {
    /// Goes on somewhere else.
    Go { at: usize, position: usize },
    /// Gives back one character of a run, down to `least`.
    Less { at: usize, position: usize, least: usize },
    /// Takes one more character in a run, of which there may be `more`.
    More { at: usize, position: usize, more: u64 },
    /// Takes back what a slot holds.
    Undo { slot: usize, value: usize },
}

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    slots: Vec<usize>,
    ways: Vec<Back>,
    left: &'a mut u64,
    /// Where the last search has ended.
    position: usize,
}

/// Reports whether a program is found anywhere in a text; takes its steps from `left`.
///
/// # Errors
/// Where the steps do not suffice.
pub(super) fn is_found(program: &Program, text: &str, left: &mut u64) -> Result<bool, TooMuch> {
    let slots = vec![NONE; program.slots];
    let mut search = Search { program, text, slots, ways: Vec::new(), left, position: 0 };
    search.spend(program.slots as u64)?;
    let only_start = matches!(program.insns.first(), Some(Insn::Start { lines: false }));
    let mut starts = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
    let starts = starts.by_ref().take(if only_start { 1 } else { usize::MAX });
    for start in starts {
        if search.run(0, start)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Search<'_> {
    fn spend(&mut self, steps: u64) -> Result<(), TooMuch> {
        *self.left = self.left.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }

    fn keep(&mut self, way: Back) -> Result<(), TooMuch> {
        if self.ways.len() == WAYS {
            return Err(TooMuch);
        }
        self.ways.push(way);
        Ok(())
    }

    fn set(&mut self, slot: usize, value: usize) -> Result<(), TooMuch> {
        let before = std::mem::replace(&mut self.slots[slot], value);
        self.keep(Back::Undo { slot, value: before })
    }

    /// Runs from an instruction on, up to an `Accept`. What it has done is undone where that is
    /// not reached.
    fn run(&mut self, mut at: usize, mut position: usize) -> Result<bool, TooMuch> {
        let ways = self.ways.len();
        loop {
            self.spend(1)?;
            if let Insn::Accept = self.program.insns[at] {
                self.position = position;
                return Ok(true);
            }
            let next = match self.insn(at, position)? {
                Some(next) => Some(next),
                None => self.back(ways)?,
            };
            match next {
                Some(next) => (at, position) = next,
                None => return Ok(false),
            }
        }
    }

    /// Whether the text, or with `lines` a line of it, starts or ends at a position.
    fn is_border(&self, position: usize, starts: bool, lines: bool) -> bool {
        let beside = self.neighbour(position, starts);
        beside.is_none_or(|(c, _)| lines && is_line_end(c))
    }

    /// Does one instruction; gives what is next and where, or none where it does not fit.
    fn insn(&mut self, at: usize, position: usize) -> Result<Option<(usize, usize)>, TooMuch> {
        let program = self.program;
        let fits = match &program.insns[at] {
            Insn::One { item, back } => {
                return Ok(self.step(*item, *back, position).map(|position| (at + 1, position)));
            }
            Insn::Run { .. } => return self.begin_run(at, position),
            Insn::Start { lines } => self.is_border(position, true, *lines),
            Insn::End { lines } => self.is_border(position, false, *lines),
            Insn::Boundary { negated } => self.is_boundary(position) != *negated,
            Insn::Go(to) => return Ok(Some((*to, position))),
            Insn::Split(other) => {
                self.keep(Back::Go { at: *other, position })?;
                true
            }
            Insn::Open(group) => {
                self.set(group * 3 + 2, position)?;
                true
            }
            Insn::Close { group, back } => {
                let begun = self.slots[group * 3 + 2];
                let (start, end) = if *back { (position, begun) } else { (begun, position) };
                self.set(group * 3, start)?;
                self.set(group * 3 + 1, end)?;
                true
            }
            Insn::Back { group, fold, back } => {
                let position = self.refer(*group, *fold, *back, position)?;
                return Ok(position.map(|position| (at + 1, position)));
            }
            Insn::Look { negated, end } => {
                let fits = self.look(at + 1, *negated, position)?;
                return Ok(fits.then_some((*end, position)));
            }
            Insn::Repeat(slot) => {
                self.set(*slot, 0)?;
                self.set(slot + 1, NONE)?;
                true
            }
            Insn::Loop { .. } => return self.repeat(at, position),
            Insn::Round { slot, groups } => {
                self.set(*slot, self.slots[*slot].saturating_add(1))?;
                self.set(slot + 1, position)?;
                self.spend(groups.len() as u64)?;
                for slot in groups.start * 3..groups.end * 3 {
                    if self.slots[slot] != NONE {
                        self.set(slot, NONE)?;
                    }
                }
                true
            }
            Insn::Accept => true,
        };
        Ok(fits.then_some((at + 1, position)))
    }

    /// Goes back to the last way that is left, of those after the first `least`.
    fn back(&mut self, least: usize) -> Result<Option<(usize, usize)>, TooMuch> {
        while self.ways.len() > least {
            self.spend(1)?;
            match self.ways.pop() {
                Some(Back::Go { at, position }) => return Ok(Some((at, position))),
                Some(Back::Less { at, position, least }) => {
                    let back = matches!(self.program.insns[at], Insn::Run { back: true, .. });
                    let Some((_, position)) = self.neighbour(position, !back) else { continue };
                    if position != least {
                        self.ways.push(Back::Less { at, position, least });
                    }
                    return Ok(Some((at + 1, position)));
                }
                Some(Back::More { at, position, more }) => {
                    let Insn::Run { item, back, .. } = self.program.insns[at] else { continue };
                    let Some(position) = self.step(item, back, position) else { continue };
                    if more > 1 {
                        self.ways.push(Back::More { at, position, more: more - 1 });
                    }
                    return Ok(Some((at + 1, position)));
                }
                Some(Back::Undo { slot, value }) => self.slots[slot] = value,
                None => {}
            }
        }
        Ok(None)
    }

    /// Looks around: ways within are none to go back to once it fits.
    fn look(&mut self, body: usize, negated: bool, position: usize) -> Result<bool, TooMuch> {
        let least = self.ways.len();
        if !self.run(body, position)? {
            return Ok(negated);
        }
        self.spend((self.ways.len() - least) as u64)?;
        if negated {
            for way in self.ways.drain(least..).rev() {
                if let Back::Undo { slot, value } = way {
                    self.slots[slot] = value;
                }
            }
            return Ok(false);
        }
        let mut kept = least;
        for way in least..self.ways.len() {
            if let Back::Undo { .. } = self.ways[way] {
                self.ways.swap(kept, way);
                kept += 1;
            }
        }
        self.ways.truncate(kept);
        Ok(true)
    }

    /// The character before or after a position, and the position on its other side.
    fn neighbour(&self, position: usize, back: bool) -> Option<(char, usize)> {
        if back {
            let c = self.text[..position].chars().next_back()?;
            Some((c, position - c.len_utf8()))
        } else {
            let c = self.text[position..].chars().next()?;
            Some((c, position + c.len_utf8()))
        }
    }

    /// Where an item ends, if it is there.
    fn step(&self, item: Item, back: bool, position: usize) -> Option<usize> {
        let (c, next) = self.neighbour(position, back)?;
        let fits = match item {
            Item::Char(wanted) => c == wanted,
            Item::Set(set) => self.program.sets[set].has(c),
        };
        fits.then_some(next)
    }

    fn begin_run(&mut self, at: usize, start: usize) -> Result<Option<(usize, usize)>, TooMuch> {
        let Insn::Run { item, least, most, greedy, back } = self.program.insns[at] else {
            return Ok(None);
        };
        let (mut count, mut position, mut enough) = (0, start, start);
        while count < if greedy { most } else { least } {
            self.spend(1)?;
            let Some(next) = self.step(item, back, position) else { break };
            (count, position) = (count + 1, next);
            if count == least {
                enough = position;
            }
        }
        if count < least {
            return Ok(None);
        }
        if greedy && count > least {
            self.keep(Back::Less { at, position, least: enough })?;
        } else if !greedy && most > least {
            self.keep(Back::More { at, position, more: most - least })?;
        }
        Ok(Some((at + 1, position)))
    }

    fn repeat(&mut self, at: usize, position: usize) -> Result<Option<(usize, usize)>, TooMuch> {
        let Insn::Loop { slot, least, most, greedy, end } = self.program.insns[at] else {
            return Ok(None);
        };
        let count = self.slots[slot] as u64;
        // A round that takes nothing is none, but where it is demanded.
        if count > least && self.slots[slot + 1] == position {
            return Ok(None);
        }
        if count >= most {
            return Ok(Some((end, position)));
        }
        if count < least {
            return Ok(Some((at + 1, position)));
        }
        let (first, second) = if greedy { (at + 1, end) } else { (end, at + 1) };
        self.keep(Back::Go { at: second, position })?;
        Ok(Some((first, position)))
    }

    /// Where what a group has captured ends, if it is here again; one that has captured nothing is
    /// empty.
    fn refer(
        &mut self,
        group: usize,
        fold: bool,
        back: bool,
        position: usize,
    ) -> Result<Option<usize>, TooMuch> {
        let (start, end) = (self.slots[group * 3], self.slots[group * 3 + 1]);
        if start == NONE || end == NONE {
            return Ok(Some(position));
        }
        let (text, mut position) = (&self.text[start..end], position);
        self.spend(text.len() as u64 / if fold { 1 } else { 16 })?;
        if !fold {
            let (before, after) = self.text.split_at(position);
            return Ok(if back {
                before.ends_with(text).then(|| position - text.len())
            } else {
                after.starts_with(text).then(|| position + text.len())
            });
        }
        let mut chars = text.chars();
        while let Some(wanted) = if back { chars.next_back() } else { chars.next() } {
            let found = self.neighbour(position, back);
            let same = |c: char| c == wanted || c.to_lowercase().eq(wanted.to_lowercase());
            let Some((_, next)) = found.filter(|(c, _)| same(*c)) else { return Ok(None) };
            position = next;
        }
        Ok(Some(position))
    }

    fn is_boundary(&self, position: usize) -> bool {
        let is_word = |found: Option<(char, usize)>| {
            found.is_some_and(|(c, _)| c.is_ascii_alphanumeric() || c == '_')
        };
        is_word(self.neighbour(position, true)) != is_word(self.neighbour(position, false))
    }
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
