//! Reads a pattern of ECMA-262 (2025, section 22.2, with the `u` flag) into its parts.
//!
//! **Invariant:** parts nest no deeper than [`DEPTH`], and there are no more of them than there are
//! characters. Where ECMA-262 refuses what cannot mean anything else, such as `\-` or a `{` alone,
//! it is taken for that. So are `\A`, `\z` and `\Z` of other dialects, and `(?i)` without a colon.
//!
//! **Does not know:** how a part is searched for. A set of characters is written as a class of
//! Rust's `regex-syntax`, each member as a number, so that nothing which means something only there
//! (`&&`, `--` and `[` in a class, ...) is ever taken for it.

use std::{collections::HashMap, fmt::Write as _, ops::Range};

/// Deepest that groups are in each other.
const DEPTH: usize = 100;

/// Most characters of a name or a number in a pattern.
const NAME: usize = 100;

const DIGITS: &str = "0-9";
const WORDS: &str = "A-Za-z0-9_";
const SPACES: &str = r"\x{9}-\x{D}\x{20}\x{A0}\x{FEFF}\x{2028}\x{2029}\p{Zs}";
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";
const NOTHING: &str = "[a&&b]";
const ANYTHING: &str = "(?s:.)";

/// States that the linear engine makes for a range beyond ASCII, for a set that is all but some
/// characters, and for a property of Unicode.
const RANGE: u64 = 4;
const MOST_CHARACTERS: u64 = 12;
const PROPERTY: u64 = 500;

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Part {
    Char(char),
    /// One character of a set.
    Set(Set),
    /// The start of the text, or of a line.
    Start {
        lines: bool,
    },
    /// The end of the text, or of a line.
    End {
        lines: bool,
    },
    /// `\b` or `\B`.
    Boundary {
        negated: bool,
    },
    /// What is in parentheses; its number where it captures, from 0.
    Group {
        inner: Box<Part>,
        number: Option<usize>,
    },
    Look {
        inner: Box<Part>,
        behind: bool,
        negated: bool,
    },
    /// What a group has captured.
    Back {
        group: usize,
        fold: bool,
    },
    /// A character, a set, a group, a look or a reference, so many times.
    Repeat {
        inner: Box<Part>,
        least: u64,
        /// [`u64::MAX`] where there is no most.
        most: u64,
        greedy: bool,
        /// The groups that capture within.
        groups: Range<usize>,
    },
    Sequence(Vec<Part>),
    Either(Vec<Part>),
}

/// A set of characters.
#[derive(Debug)]
pub(super) struct Set {
    /// As Rust writes it.
    pub text: String,
    /// About how many states it has.
    pub weight: u64,
}

impl Part {
    /// About how many states it has: with those of each repetition, or each part once.
    pub(super) fn weight(&self, repeated: bool) -> u64 {
        let sum = |parts: &[Self]| {
            parts.iter().fold(1_u64, |sum, part| sum.saturating_add(part.weight(repeated)))
        };
        match self {
            Self::Set(set) => set.weight,
            Self::Group { inner, .. } | Self::Look { inner, .. } => {
                inner.weight(repeated).saturating_add(1)
            }
            Self::Repeat { inner, least, most, .. } if repeated => {
                let times = if *most == u64::MAX { *least } else { *most };
                inner.weight(true).saturating_mul(times.max(1)).saturating_add(1)
            }
            Self::Repeat { inner, .. } => inner.weight(false).saturating_add(1),
            Self::Sequence(parts) | Self::Either(parts) => sum(parts),
            _ => 1,
        }
    }

    /// Reports whether only single characters are repeated in it.
    pub(super) fn is_flat(&self) -> bool {
        match self {
            Self::Repeat { inner, .. } => matches!(**inner, Self::Char(_) | Self::Set(_)),
            Self::Group { inner, .. } | Self::Look { inner, .. } => inner.is_flat(),
            Self::Sequence(parts) | Self::Either(parts) => parts.iter().all(Self::is_flat),
            _ => true,
        }
    }

    /// Reports whether it can be repeated.
    fn is_repeatable(&self) -> bool {
        matches!(
            self,
            Self::Char(_)
                | Self::Set(_)
                | Self::Group { .. }
                | Self::Look { .. }
                | Self::Back { .. }
        )
    }
}

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub part: Part,
    /// How many groups capture.
    pub groups: usize,
    /// Reports whether it has what a linear engine cannot do: it looks around, refers back, has a
    /// `\B`, or knows lines.
    pub hard: bool,
}

/// Reads a pattern.
///
/// # Errors
/// Says in a few words why it is none.
pub(super) fn parse(pattern: &str) -> Result<Parsed, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let (groups, names) = groups(&chars)?;
    let mut reader = Reader {
        chars: &chars,
        groups,
        names: &names,
        at: 0,
        opened: 0,
        depth: 0,
        flags: Flags::default(),
        hard: false,
    };
    let part = reader.either()?;
    if reader.at < chars.len() {
        return Err("a ) closes nothing".into());
    }
    Ok(Parsed { part, groups, hard: reader.hard })
}

/// How many groups capture, and the numbers of those that have names.
fn groups(chars: &[char]) -> Result<(usize, HashMap<String, usize>), String> {
    let (mut count, mut names, mut at, mut class) = (0, HashMap::new(), 0, false);
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => {
                if let Some(name) = group_name(&chars[at + 1..])? {
                    if !name.is_empty() && names.insert(name.clone(), count).is_some() {
                        return Err(format!("two groups are named {name}"));
                    }
                    count += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok((count, names))
}

/// The name behind a parenthesis that captures, which may be empty. None where it does not capture.
fn group_name(rest: &[char]) -> Result<Option<String>, String> {
    let named = match rest {
        ['?', '<', '=' | '!', ..] => return Ok(None),
        ['?', '<', named @ ..] | ['?', 'P', '<', named @ ..] => named,
        ['?', ..] => return Ok(None),
        _ => return Ok(Some(String::new())),
    };
    until(named, '>').map(Some).ok_or_else(|| "the name of a group does not end".into())
}

/// The characters up to an end, which has to come soon.
fn until(chars: &[char], end: char) -> Option<String> {
    let length = chars.iter().take(NAME).position(|c| *c == end)?;
    Some(chars[..length].iter().collect())
}

/// What `(?ims)` says.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// Capitals are small letters.
    fold: bool,
    /// A line has a start and an end.
    lines: bool,
    /// A dot is also the end of a line.
    dot_all: bool,
}

struct Reader<'a> {
    chars: &'a [char],
    groups: usize,
    names: &'a HashMap<String, usize>,
    at: usize,
    /// How many groups that capture have begun.
    opened: usize,
    depth: usize,
    /// Those of the group that is read.
    flags: Flags,
    hard: bool,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn rest(&self) -> &'a [char] {
        self.chars.get(self.at..).unwrap_or_default()
    }

    /// What is between two parentheses.
    fn either(&mut self) -> Result<Part, String> {
        if self.depth == DEPTH {
            return Err(format!("its groups are over {DEPTH} deep"));
        }
        self.depth += 1;
        let first = self.sequence()?;
        let mut branches = vec![first];
        while self.peek() == Some('|') {
            self.at += 1;
            branches.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if branches.len() == 1 { branches.remove(0) } else { Part::Either(branches) })
    }

    fn sequence(&mut self) -> Result<Part, String> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let before = self.opened;
            if let Some(part) = self.part()? {
                parts.push(self.repeated(part, before)?);
            }
        }
        Ok(Part::Sequence(parts))
    }

    /// One part; none where it only sets flags.
    fn part(&mut self) -> Result<Option<Part>, String> {
        let Some(c) = self.next() else { return Ok(None) };
        let lines = self.flags.lines;
        Ok(Some(match c {
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => return self.open(),
            '.' if self.flags.dot_all => set(ANYTHING.into(), MOST_CHARACTERS),
            '.' => set(DOT.into(), MOST_CHARACTERS),
            '^' => {
                self.hard |= lines;
                Part::Start { lines }
            }
            '$' => {
                self.hard |= lines;
                Part::End { lines }
            }
            '*' | '+' | '?' => return Err(format!("there is nothing that {c} could repeat")),
            '{' => {
                self.at -= 1;
                if self.times()?.is_some() {
                    return Err("there is nothing that {} could repeat".into());
                }
                self.at += 1;
                self.literal(c)
            }
            c => self.literal(c),
        }))
    }

    /// A part with the times that follow it, if any do.
    fn repeated(&mut self, part: Part, before: usize) -> Result<Part, String> {
        let Some((least, most, length)) = self.times()? else { return Ok(part) };
        if !part.is_repeatable() {
            return Err("there is nothing that could be repeated".into());
        }
        self.at += length;
        let greedy = self.peek() != Some('?');
        self.at += usize::from(!greedy);
        let groups = before..self.opened;
        Ok(Part::Repeat { inner: Box::new(part), least, most, greedy, groups })
    }

    /// `*`, `+`, `?`, `{2}`, `{2,}` or `{2,3}`: the least, the most, and its length.
    fn times(&self) -> Result<Option<(u64, u64, usize)>, String> {
        let rest = match self.rest() {
            ['*', ..] => return Ok(Some((0, u64::MAX, 1))),
            ['+', ..] => return Ok(Some((1, u64::MAX, 1))),
            ['?', ..] => return Ok(Some((0, 1, 1))),
            ['{', rest @ ..] => rest,
            _ => return Ok(None),
        };
        let Some(inner) = until(rest, '}') else { return Ok(None) };
        let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !(number(least) && (number(most) || most.is_empty())) {
            return Ok(None);
        }
        let value = |text: &str| text.parse().unwrap_or(u64::MAX);
        let (least, most) = (value(least), value(most));
        if most < least {
            return Err(format!("the numbers of {{{inner}}} are the wrong way round"));
        }
        Ok(Some((least, most, inner.len() + 2)))
    }

    fn literal(&self, c: char) -> Part {
        if self.flags.fold && c.is_alphabetic() {
            set(format!("(?i:\\x{{{:X}}})", u32::from(c)), RANGE)
        } else {
            Part::Char(c)
        }
    }

    /// A set, which may be written in capitals where that makes no difference.
    fn set(&self, text: String, weight: u64) -> Part {
        if self.flags.fold { set(format!("(?i:{text})"), weight * 2) } else { set(text, weight) }
    }

    fn open(&mut self) -> Result<Option<Part>, String> {
        let look = |behind, negated| Some((behind, negated));
        let (length, look, captures) = match self.rest() {
            ['?', '=', ..] => (2, look(false, false), false),
            ['?', '!', ..] => (2, look(false, true), false),
            ['?', '<', '=', ..] => (3, look(true, false), false),
            ['?', '<', '!', ..] => (3, look(true, true), false),
            ['?', ':', ..] => (2, None, false),
            ['?', '<', ..] => (2, None, true),
            ['?', 'P', '<', ..] => (3, None, true),
            ['?', ..] => return self.flags(),
            _ => (0, None, true),
        };
        self.at += length;
        let number = captures.then_some(self.opened);
        self.opened += usize::from(captures);
        if captures && length > 0 {
            // References name it by its number.
            let name = until(self.rest(), '>').ok_or("the name of a group does not end")?;
            self.at += name.chars().count() + 1;
        }
        let inner = Box::new(self.group(self.flags)?);
        self.hard |= look.is_some();
        Ok(Some(match look {
            Some((behind, negated)) => Part::Look { inner, behind, negated },
            None => Part::Group { inner, number },
        }))
    }

    /// The rest of a group, with its own flags.
    fn group(&mut self, flags: Flags) -> Result<Part, String> {
        let before = std::mem::replace(&mut self.flags, flags);
        let inner = self.either()?;
        self.flags = before;
        match self.next() {
            Some(_) => Ok(inner),
            None => Err("a group is not closed".into()),
        }
    }

    /// `(?i:` or `(?i)`.
    fn flags(&mut self) -> Result<Option<Part>, String> {
        let wrong = "a group begins with ? and is of no known kind";
        self.at += 1;
        let (mut flags, mut on, start) = (self.flags, true, self.at);
        loop {
            match self.next() {
                Some('i') => flags.fold = on,
                Some('m') => flags.lines = on,
                Some('s') => flags.dot_all = on,
                Some('-') if on => on = false,
                Some(_) if self.at == start + 1 => return Err(wrong.into()),
                Some(':') => {
                    let inner = Box::new(self.group(flags)?);
                    return Ok(Some(Part::Group { inner, number: None }));
                }
                Some(')') => {
                    self.flags = flags;
                    return Ok(None);
                }
                _ => return Err(wrong.into()),
            }
        }
    }

    fn escape(&mut self) -> Result<Part, String> {
        let c = self.next().ok_or("it ends within an escape")?;
        if let Some((members, weight)) = named_set(c) {
            return Ok(self.set(format!("[{members}]"), weight));
        }
        Ok(match c {
            'b' => Part::Boundary { negated: false },
            'B' => {
                self.hard = true;
                Part::Boundary { negated: true }
            }
            'A' => Part::Start { lines: false },
            'z' | 'Z' => Part::End { lines: false },
            'p' | 'P' => {
                let property = self.property(c)?;
                self.set(property, PROPERTY)
            }
            'k' => self.named_reference()?,
            '1'..='9' => self.reference(c)?,
            c => match self.character(c)? {
                Some(c) => self.literal(c),
                None => set(NOTHING.into(), 1),
            },
        })
    }

    fn reference(&mut self, first: char) -> Result<Part, String> {
        let mut digits = first.to_string();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit)
            && digits.len() < NAME
        {
            digits.push(digit);
            self.at += 1;
        }
        match digits.parse() {
            Ok(number) if (1..=self.groups).contains(&number) => Ok(self.back(number - 1)),
            _ => Err(format!("\\{digits} refers to a group that is not there")),
        }
    }

    fn named_reference(&mut self) -> Result<Part, String> {
        let name = match self.rest() {
            ['<', rest @ ..] => until(rest, '>'),
            _ => None,
        };
        let name = name.ok_or("\\k is followed by no <...>")?;
        let group = *self.names.get(&name).ok_or("\\k refers to a group that is not there")?;
        self.at += name.chars().count() + 2;
        Ok(self.back(group))
    }

    fn back(&mut self, group: usize) -> Part {
        self.hard = true;
        Part::Back { group, fold: self.flags.fold }
    }

    /// `\p{...}`.
    fn property(&mut self, c: char) -> Result<String, String> {
        let name = match self.rest() {
            ['{', rest @ ..] => until(rest, '}'),
            _ => None,
        };
        let name = name.ok_or_else(|| format!("\\{c} is followed by no {{...}}"))?;
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        if name.is_empty() || !name.chars().all(known) {
            return Err(format!("\\{c}{{{name} names no property"));
        }
        self.at += name.len() + 2;
        Ok(format!("\\{c}{{{name}}}"))
    }

    /// The character that an escape stands for; none where it is half of one, which no text has.
    fn character(&mut self, c: char) -> Result<Option<char>, String> {
        let code = match c {
            't' => 9,
            'n' => 10,
            'v' => 11,
            'f' => 12,
            'r' => 13,
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => 0,
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => u32::from(letter) % 32,
                _ => return Err("\\c is followed by no letter".into()),
            },
            'x' => self.hex(2)?,
            'u' => self.unicode()?,
            c if c.is_ascii_alphanumeric() => return Err(format!("\\{c} is no escape")),
            c => u32::from(c),
        };
        Ok(char::from_u32(code))
    }

    fn hex(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.rest().iter().take(digits).collect();
        self.at += text.chars().count();
        let fits = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| fits);
        code.ok_or_else(|| format!("{text:?} are not {digits} hexadecimal digits"))
    }

    /// `\u0041`, `\u{41}`, or two halves of one character.
    fn unicode(&mut self) -> Result<u32, String> {
        if let ['{', rest @ ..] = self.rest() {
            let text = until(rest, '}').unwrap_or_default();
            self.at += text.chars().count() + 2;
            let fits = text.bytes().all(|b| b.is_ascii_hexdigit());
            let code = u32::from_str_radix(&text, 16).ok().filter(|c| fits && *c <= 0x0010_FFFF);
            return code.ok_or_else(|| format!("\\u{{{text} is no character"));
        }
        let high = self.hex(4)?;
        if (0xD800..0xDC00).contains(&high)
            && let ['\\', 'u', rest @ ..] = self.rest()
        {
            let low: String = rest.iter().take(4).collect();
            let low = u32::from_str_radix(&low, 16).ok().filter(|_| low.len() == 4);
            if let Some(low) = low.filter(|low| (0xDC00..0xE000).contains(low)) {
                self.at += 6;
                return Ok(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            }
        }
        Ok(high)
    }

    /// A class, of which each member is written as a number.
    fn class(&mut self) -> Result<Part, String> {
        let negated = self.peek() == Some('^');
        self.at += usize::from(negated);
        let mut members = Members::default();
        loop {
            let c = self.next().ok_or("a class is not closed")?;
            if c == ']' {
                break;
            }
            let Some(first) = self.member(c, &mut members)? else { continue };
            let last = match self.rest() {
                ['-', next, ..] if *next != ']' => self.range_end(&mut members)?,
                _ => None,
            };
            let last = last.unwrap_or(first);
            if last < first {
                return Err("a range in a class is the wrong way round".into());
            }
            members.range(first, last);
        }
        let Members { text, weight } = members;
        Ok(match (text.is_empty(), negated) {
            (true, false) => set(NOTHING.into(), 1),
            (true, true) => set(ANYTHING.into(), MOST_CHARACTERS),
            (false, false) => self.set(format!("[{text}]"), weight + 1),
            (false, true) => self.set(format!("[^{text}]"), weight + MOST_CHARACTERS),
        })
    }

    /// The end of a range, after its `-`; none where a set follows, before which that is only a
    /// `-`.
    fn range_end(&mut self, members: &mut Members) -> Result<Option<u32>, String> {
        let before = self.at;
        self.at += 1;
        let c = self.next().ok_or("a class is not closed")?;
        let end = self.member(c, &mut Members::default())?;
        if end.is_none() {
            self.at = before + 1;
            members.range(0x2D, 0x2D);
        }
        Ok(end)
    }

    /// One member of a class: its number, or none where it is a set, which is added.
    fn member(&mut self, c: char, members: &mut Members) -> Result<Option<u32>, String> {
        if c != '\\' {
            return Ok(Some(u32::from(c)));
        }
        let c = self.next().ok_or("it ends within an escape")?;
        if let Some((set, weight)) = named_set(c) {
            members.add(&format!("[{set}]"), weight);
            return Ok(None);
        }
        match c {
            'p' | 'P' => {
                members.add(&self.property(c)?, PROPERTY);
                Ok(None)
            }
            'b' => Ok(Some(8)),
            'u' => self.unicode().map(Some),
            c => Ok(self.character(c)?.map(u32::from)),
        }
    }
}

/// The members of a class.
#[derive(Default)]
struct Members {
    text: String,
    weight: u64,
}

impl Members {
    fn add(&mut self, text: &str, weight: u64) {
        self.text.push_str(text);
        self.weight = self.weight.saturating_add(weight);
    }

    /// Adds a range. Halves of characters are in no text, and Rust does not know them.
    fn range(&mut self, first: u32, last: u32) {
        for (low, high) in [(first, last.min(0xD7FF)), (first.max(0xE000), last)] {
            if low <= high {
                let _ = write!(self.text, "\\x{{{low:X}}}-\\x{{{high:X}}}");
                self.weight += if high < 0x80 { 0 } else { RANGE };
            }
        }
    }
}

fn set(text: String, weight: u64) -> Part {
    Part::Set(Set { text, weight })
}

/// The members of the sets that have a letter, and about how many states they have.
fn named_set(letter: char) -> Option<(String, u64)> {
    let (members, weight) = match letter.to_ascii_lowercase() {
        'd' => (DIGITS, 1),
        'w' => (WORDS, 1),
        's' => (SPACES, 4 * RANGE),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() {
        (format!("^{members}"), weight + MOST_CHARACTERS)
    } else {
        (members.to_owned(), weight)
    })
}
