//! Writes a pattern of ECMA-262 (2025, section 22.2, with the `u` flag) as one of Rust.
//!
//! **Invariant:** each literal comes out as a number or escaped, so that nothing which means
//! something only to Rust (`&&`, `--` and `[` in a class, ...) is ever taken for it. Where ECMA-262
//! refuses what cannot mean anything else, such as `\-` or a `{` alone, it is taken for that.

use std::fmt::Write as _;

/// A pattern as Rust writes it.
pub(super) struct Translated {
    /// Its text.
    pub text: String,
    /// Reports whether it looks around or refers back.
    pub backtracks: bool,
    /// About how many parts it has, repetitions counted.
    pub weight: u64,
}

const DIGITS: &str = "0-9";
const WORDS: &str = "A-Za-z0-9_";
const SPACES: &str = r"\x{9}-\x{D}\x{20}\x{A0}\x{FEFF}\x{2028}\x{2029}\p{Zs}";
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";
const NOTHING: &str = "[a&&b]";
const ANYTHING: &str = "(?s:.)";
const BOUNDARY: &str = "(?:(?<=[A-Za-z0-9_])(?![A-Za-z0-9_])|(?<![A-Za-z0-9_])(?=[A-Za-z0-9_]))";
const NO_BOUNDARY: &str = "(?:(?<=[A-Za-z0-9_])(?=[A-Za-z0-9_])|(?<![A-Za-z0-9_])(?![A-Za-z0-9_]))";

/// Translates a pattern.
///
/// # Errors
/// Says in a few words why it is none.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let groups = groups(&chars)?;
    let first = Translator::new(&chars, &groups, Engine::Linear).run()?;
    if first.backtracks {
        Translator::new(&chars, &groups, Engine::Backtracking).run()
    } else {
        Ok(first)
    }
}

/// The names of the groups that capture, in their order; most have none.
fn groups(chars: &[char]) -> Result<Vec<String>, String> {
    let (mut names, mut at, mut class) = (Vec::<String>::new(), 0, false);
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => {
                let name = group_name(&chars[at + 1..]);
                if let Some(name) = name.as_ref().filter(|name| !name.is_empty())
                    && names.contains(name)
                {
                    return Err(format!("two groups are named {name}"));
                }
                names.extend(name);
            }
            _ => {}
        }
        at += 1;
    }
    Ok(names)
}

/// The name behind a parenthesis that captures, which may be empty. None where it does not capture.
fn group_name(rest: &[char]) -> Option<String> {
    let named = match rest {
        ['?', '<', '=' | '!', ..] => return None,
        ['?', '<', named @ ..] | ['?', 'P', '<', named @ ..] => named,
        ['?', ..] => return None,
        _ => return Some(String::new()),
    };
    Some(named.iter().take_while(|c| **c != '>').collect())
}

/// What was written of one group yet.
#[derive(Default)]
struct Level {
    sum: u64,
    last: u64,
}

/// What a pattern is written for; they write word boundaries in other ways.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    Linear,
    Backtracking,
}

struct Translator<'a> {
    chars: &'a [char],
    groups: &'a [String],
    at: usize,
    out: String,
    engine: Engine,
    backtracks: bool,
    /// A dot is also the end of a line.
    dot_all: bool,
    repeatable: bool,
    levels: Vec<Level>,
}

impl<'a> Translator<'a> {
    fn new(chars: &'a [char], groups: &'a [String], engine: Engine) -> Self {
        Self {
            chars,
            groups,
            at: 0,
            out: String::with_capacity(chars.len() * 2),
            engine,
            backtracks: false,
            dot_all: false,
            repeatable: false,
            levels: vec![Level::default()],
        }
    }

    fn run(mut self) -> Result<Translated, String> {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '.' if self.dot_all => self.atom(ANYTHING, 1),
                '.' => self.atom(DOT, 1),
                '*' | '+' => self.repeat(&c.to_string(), 1)?,
                '?' => self.repeat("?", 1)?,
                '{' => self.braces()?,
                '|' | '^' | '$' => {
                    self.out.push(c);
                    self.repeatable = false;
                }
                c => self.literal(c),
            }
        }
        match &self.levels[..] {
            [level] => {
                let weight = level.sum.saturating_add(level.last).max(1);
                Ok(Translated { text: self.out, backtracks: self.backtracks, weight })
            }
            _ => Err("a group is not closed".into()),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn rest(&self) -> &'a [char] {
        &self.chars[self.at..]
    }

    /// Writes something that can be repeated.
    fn atom(&mut self, text: &str, weight: u64) {
        self.out.push_str(text);
        self.weigh(weight);
        self.repeatable = true;
    }

    fn weigh(&mut self, weight: u64) {
        if let Some(level) = self.levels.last_mut() {
            level.sum = level.sum.saturating_add(level.last);
            level.last = weight;
        }
    }

    fn literal(&mut self, c: char) {
        if c.is_alphanumeric() {
            self.out.push(c);
        } else {
            let _ = write!(self.out, "\\x{{{:X}}}", u32::from(c));
        }
        self.weigh(1);
        self.repeatable = true;
    }

    fn repeat(&mut self, text: &str, times: u64) -> Result<(), String> {
        if !self.repeatable {
            return Err(format!("there is nothing that {text} could repeat"));
        }
        self.out.push_str(text);
        if self.peek() == Some('?') {
            self.at += 1;
            self.out.push('?');
        }
        if let Some(level) = self.levels.last_mut() {
            level.last = level.last.saturating_mul(times.max(1));
        }
        self.repeatable = false;
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}`; anything else is a brace.
    fn braces(&mut self) -> Result<(), String> {
        let inner: String = self.rest().iter().take_while(|c| **c != '}').collect();
        let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let closed = self.chars.get(self.at + inner.len()) == Some(&'}');
        if !(closed && number(least) && (number(most) || most.is_empty())) {
            self.literal('{');
            return Ok(());
        }
        let value = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        if number(most) && value(most) < value(least) {
            return Err(format!("the numbers of {{{inner}}} are the wrong way round"));
        }
        self.at += inner.len() + 1;
        let times = value(if most.is_empty() { least } else { most });
        self.repeat(&format!("{{{inner}}}"), times)
    }

    fn open(&mut self) -> Result<(), String> {
        match self.rest() {
            ['?', '=' | '!', ..] => self.around(2),
            ['?', '<', '=' | '!', ..] => self.around(3),
            ['?', ':', ..] => {
                self.at += 2;
                self.out.push_str("(?:");
            }
            ['?', '<', ..] | ['?', 'P', '<', ..] => {
                // References name it by its number.
                while self.next().ok_or("the name of a group does not end")? != '>' {}
                self.out.push('(');
            }
            ['?', ..] => return self.flags(),
            _ => self.out.push('('),
        }
        self.levels.push(Level::default());
        self.repeatable = false;
        Ok(())
    }

    fn around(&mut self, length: usize) {
        self.backtracks = true;
        self.out.push('(');
        self.out.extend(&self.rest()[..length]);
        self.at += length;
    }

    /// `(?i:` or `(?i)`.
    fn flags(&mut self) -> Result<(), String> {
        let flags: String = self.rest()[1..].iter().take_while(|c| "ims-".contains(**c)).collect();
        self.at += 1 + flags.len();
        let end = self.next().filter(|c| !flags.is_empty() && ":)".contains(*c));
        let end = end.ok_or("a group begins with ? and is of no known kind")?;
        self.dot_all |= flags.split('-').next().is_some_and(|on| on.contains('s'));
        let _ = write!(self.out, "(?{flags}{end}");
        if end == ':' {
            self.levels.push(Level::default());
        }
        self.repeatable = false;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let inner = self.levels.pop().filter(|_| !self.levels.is_empty());
        let inner = inner.ok_or("a ) closes nothing")?;
        self.out.push(')');
        self.weigh(inner.sum.saturating_add(inner.last));
        self.repeatable = true;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let c = self.next().ok_or("it ends within an escape")?;
        if let Some(set) = set(c) {
            self.atom(&format!("[{set}]"), 1);
            return Ok(());
        }
        match c {
            'b' | 'B' => {
                self.backtracks |= c == 'B' || self.engine == Engine::Backtracking;
                self.out.push_str(match (c, self.engine) {
                    ('b', Engine::Linear) => r"(?-u:\b)",
                    ('b', Engine::Backtracking) => BOUNDARY,
                    _ => NO_BOUNDARY,
                });
                self.repeatable = false;
                Ok(())
            }
            'p' | 'P' => {
                let property = self.property(c)?;
                self.atom(&property, 4);
                Ok(())
            }
            'k' => self.named_reference(),
            '1'..='9' => self.reference(c),
            c => {
                match self.character(c)? {
                    Some(c) => self.literal(c),
                    None => self.atom(NOTHING, 1),
                }
                Ok(())
            }
        }
    }

    fn reference(&mut self, first: char) -> Result<(), String> {
        let mut digits = first.to_string();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.at += 1;
        }
        match digits.parse() {
            Ok(number) if number <= self.groups.len() => {
                self.refer(number);
                Ok(())
            }
            _ => Err(format!("\\{digits} refers to a group that is not there")),
        }
    }

    fn named_reference(&mut self) -> Result<(), String> {
        let name = match self.rest() {
            ['<', rest @ ..] => rest.iter().take_while(|c| **c != '>').collect(),
            _ => String::new(),
        };
        let known = self.groups.iter().position(|known| !name.is_empty() && *known == name);
        let index = known.ok_or("\\k refers to a group that is not there")?;
        self.at += name.chars().count() + 2;
        self.refer(index + 1);
        Ok(())
    }

    fn refer(&mut self, number: usize) {
        self.backtracks = true;
        self.atom(&format!("(?:\\{number})"), 1);
    }

    /// `\p{...}`, of which both engines know the names.
    fn property(&mut self, c: char) -> Result<String, String> {
        if self.next() != Some('{') {
            return Err(format!("\\{c} is followed by no {{...}}"));
        }
        let name: String = self.rest().iter().take_while(|c| **c != '}').collect();
        self.at += name.chars().count() + 1;
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        if name.is_empty() || !name.chars().all(known) || self.at > self.chars.len() {
            return Err(format!("\\{c}{{{name} names no property"));
        }
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
        if self.peek() == Some('{') {
            let text: String = self.rest()[1..].iter().take_while(|c| **c != '}').collect();
            self.at += text.chars().count() + 2;
            let fits = text.bytes().all(|b| b.is_ascii_hexdigit()) && self.at <= self.chars.len();
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
    fn class(&mut self) -> Result<(), String> {
        let negated = self.peek() == Some('^');
        self.at += usize::from(negated);
        let mut members = String::new();
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
            // Halves of characters are in no text, and Rust does not know them.
            for (low, high) in [(first, last.min(0xD7FF)), (first.max(0xE000), last)] {
                if low <= high {
                    let _ = write!(members, "\\x{{{low:X}}}-\\x{{{high:X}}}");
                }
            }
        }
        match (members.is_empty(), negated) {
            (true, false) => self.atom(NOTHING, 1),
            (true, true) => self.atom(ANYTHING, 1),
            (false, false) => self.atom(&format!("[{members}]"), 1),
            (false, true) => self.atom(&format!("[^{members}]"), 1),
        }
        Ok(())
    }

    /// The end of a range, after its `-`; none where a set follows, before which that is only a
    /// `-`.
    fn range_end(&mut self, members: &mut String) -> Result<Option<u32>, String> {
        let before = self.at;
        self.at += 1;
        let c = self.next().ok_or("a class is not closed")?;
        let end = self.member(c, &mut String::new())?;
        if end.is_none() {
            self.at = before + 1;
            members.push_str("\\x{2D}");
        }
        Ok(end)
    }

    /// One member of a class: its number, or none where it is a set, which is written.
    fn member(&mut self, c: char, members: &mut String) -> Result<Option<u32>, String> {
        if c != '\\' {
            return Ok(Some(u32::from(c)));
        }
        let c = self.next().ok_or("it ends within an escape")?;
        if let Some(set) = set(c) {
            let _ = write!(members, "[{set}]");
            return Ok(None);
        }
        match c {
            'p' | 'P' => {
                members.push_str(&self.property(c)?);
                Ok(None)
            }
            'b' => Ok(Some(8)),
            'u' => self.unicode().map(Some),
            c => Ok(self.character(c)?.map(u32::from)),
        }
    }
}

/// The members of the sets that have a letter.
fn set(letter: char) -> Option<String> {
    let members = match letter.to_ascii_lowercase() {
        'd' => DIGITS,
        'w' => WORDS,
        's' => SPACES,
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { format!("^{members}") } else { members.to_owned() })
}
