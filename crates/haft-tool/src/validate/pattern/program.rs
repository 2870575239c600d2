//! A pattern as a list of instructions, for the engine that goes back where a way does not fit.
//!
//! **Invariant:** there are a few instructions for each part of a pattern, however often a part is
//! repeated: repetitions are counted while it is searched for. Equal sets are kept once.
//!
//! **Does not know:** the texts that are searched.

use std::{collections::HashMap, ops::Range};

use regex_syntax::hir::{Class, HirKind};

use super::parse::{Parsed, Part};

/// One instruction. Those with `back` read towards the start of the text, within a look behind.
#[derive(Debug)]
pub(super) enum Insn {
    One {
        item: Item,
        back: bool,
    },
    /// One item, many times.
    Run {
        item: Item,
        least: u64,
        most: u64,
        greedy: bool,
        back: bool,
    },
    Start {
        lines: bool,
    },
    End {
        lines: bool,
    },
    Boundary {
        negated: bool,
    },
    Go(usize),
    /// Goes on, and elsewhere where that does not fit.
    Split(usize),
    /// Begins and ends what a group captures.
    Open(usize),
    Close {
        group: usize,
        back: bool,
    },
    Back {
        group: usize,
        fold: bool,
        back: bool,
    },
    /// What comes after this up to an `Accept` has to fit here, or not to; then `end` is next.
    Look {
        negated: bool,
        end: usize,
    },
    Accept,
    /// Begins a repetition, whose count is in a slot and the start of its last round in the next.
    Repeat(usize),
    /// Begins another round with the next instruction, or goes to `end`.
    Loop {
        slot: usize,
        least: u64,
        most: u64,
        greedy: bool,
        end: usize,
    },
    /// Begins a round, in which no group has captured yet.
    Round {
        slot: usize,
        groups: Range<usize>,
    },
}

/// What one character has to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Char(char),
    Set(usize),
}

/// The characters of a set.
#[derive(Debug)]
pub(super) struct Chars {
    /// A bit for each that is ASCII.
    ascii: u128,
    /// Sorted, and apart from each other.
    ranges: Vec<(char, char)>,
}

impl Chars {
    /// Reports whether a character is in the set.
    pub(super) fn has(&self, c: char) -> bool {
        if c.is_ascii() {
            return self.ascii & (1 << u32::from(c)) != 0;
        }
        let after = self.ranges.partition_point(|(first, _)| *first <= c);
        after > 0 && self.ranges[after - 1].1 >= c
    }

    /// Reads a class as `regex-syntax` writes it.
    fn new(text: &str) -> Result<Self, String> {
        let hir = regex_syntax::parse(text).map_err(|error| super::in_short(&error.to_string()))?;
        let ranges: Vec<(char, char)> = match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                class.ranges().iter().map(|range| (range.start(), range.end())).collect()
            }
            HirKind::Class(Class::Bytes(class)) => class
                .ranges()
                .iter()
                .map(|range| (range.start().into(), range.end().into()))
                .collect(),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).unwrap_or_default();
                text.chars().map(|c| (c, c)).collect()
            }
            _ => return Err("a set in it is none".into()),
        };
        let within = |c: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
        let ascii = ('\0'..'\u{80}').filter(|c| within(*c));
        let ascii = ascii.fold(0, |bits, c| bits | 1_u128 << u32::from(c));
        Ok(Self { ascii, ranges })
    }
}

/// A pattern that can be searched for.
#[derive(Debug)]
pub(super) struct Program {
    pub insns: Vec<Insn>,
    pub sets: Vec<Chars>,
    /// How many numbers it needs while it runs: three for each group, two for each repetition.
    pub slots: usize,
}

impl Program {
    /// Makes one.
    ///
    /// # Errors
    /// Where a set has a name that is not known.
    pub(super) fn new(parsed: &Parsed) -> Result<Self, String> {
        let slots = parsed.groups * 3;
        let program = Self { insns: Vec::new(), sets: Vec::new(), slots };
        let mut writer = Writer { program, known: HashMap::new() };
        writer.part(&parsed.part, false)?;
        writer.put(Insn::Accept);
        Ok(writer.program)
    }
}

struct Writer<'a> {
    program: Program,
    known: HashMap<&'a str, usize>,
}

impl<'a> Writer<'a> {
    fn put(&mut self, insn: Insn) -> usize {
        self.program.insns.push(insn);
        self.program.insns.len() - 1
    }

    /// Makes an instruction that was put go to what comes next.
    fn land(&mut self, from: usize) {
        let next = self.program.insns.len();
        match &mut self.program.insns[from] {
            Insn::Go(to) | Insn::Split(to) => *to = next,
            Insn::Look { end, .. } | Insn::Loop { end, .. } => *end = next,
            _ => {}
        }
    }

    fn item(&mut self, part: &'a Part) -> Result<Option<Item>, String> {
        Ok(match part {
            Part::Char(c) => Some(Item::Char(*c)),
            Part::Set(set) => {
                if let Some(known) = self.known.get(set.text.as_str()) {
                    return Ok(Some(Item::Set(*known)));
                }
                let number = self.program.sets.len();
                self.program.sets.push(Chars::new(&set.text)?);
                self.known.insert(&set.text, number);
                Some(Item::Set(number))
            }
            _ => None,
        })
    }

    fn part(&mut self, part: &'a Part, back: bool) -> Result<(), String> {
        match part {
            Part::Char(_) | Part::Set(_) => {
                if let Some(item) = self.item(part)? {
                    self.put(Insn::One { item, back });
                }
            }
            Part::Start { lines } => drop(self.put(Insn::Start { lines: *lines })),
            Part::End { lines } => drop(self.put(Insn::End { lines: *lines })),
            Part::Boundary { negated } => drop(self.put(Insn::Boundary { negated: *negated })),
            Part::Group { inner, number: None } => self.part(inner, back)?,
            Part::Group { inner, number: Some(group) } => {
                self.put(Insn::Open(*group));
                self.part(inner, back)?;
                self.put(Insn::Close { group: *group, back });
            }
            Part::Look { inner, behind, negated } => {
                let look = self.put(Insn::Look { negated: *negated, end: 0 });
                self.part(inner, *behind)?;
                self.put(Insn::Accept);
                self.land(look);
            }
            Part::Back { group, fold } => {
                self.put(Insn::Back { group: *group, fold: *fold, back });
            }
            Part::Repeat { .. } => self.repeat(part, back)?,
            Part::Sequence(parts) if back => {
                for part in parts.iter().rev() {
                    self.part(part, back)?;
                }
            }
            Part::Sequence(parts) => {
                for part in parts {
                    self.part(part, back)?;
                }
            }
            Part::Either(branches) => self.either(branches, back)?,
        }
        Ok(())
    }

    fn either(&mut self, branches: &'a [Part], back: bool) -> Result<(), String> {
        let Some((last, others)) = branches.split_last() else { return Ok(()) };
        let mut ends = Vec::new();
        for branch in others {
            let split = self.put(Insn::Split(0));
            self.part(branch, back)?;
            ends.push(self.put(Insn::Go(0)));
            self.land(split);
        }
        self.part(last, back)?;
        for end in ends {
            self.land(end);
        }
        Ok(())
    }

    fn repeat(&mut self, part: &'a Part, back: bool) -> Result<(), String> {
        let Part::Repeat { inner, least, most, greedy, groups } = part else { return Ok(()) };
        let (least, most, greedy) = (*least, *most, *greedy);
        if let Some(item) = self.item(inner)? {
            self.put(Insn::Run { item, least, most, greedy, back });
            return Ok(());
        }
        let slot = self.program.slots;
        self.program.slots += 2;
        self.put(Insn::Repeat(slot));
        let again = self.put(Insn::Loop { slot, least, most, greedy, end: 0 });
        self.put(Insn::Round { slot, groups: groups.clone() });
        self.part(inner, back)?;
        self.put(Insn::Go(again));
        self.land(again);
        Ok(())
    }
}
