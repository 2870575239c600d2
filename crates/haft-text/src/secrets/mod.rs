//! Values of secrets: which are known, and how they are redacted from texts.
//!
//! A value is known once it was [added](Secrets::add), as that of a variable, or was seen in a text
//! after a name such as `api_key:`. From then on it is hidden wherever it occurs, and
//! `{{secret:NAME}}` replaces it. So are its forms in Base64, in URLs and in JSON, each under a
//! name of its own.
//!
//! **Invariant:** each placeholder stands for one value, which contains no line end. A text in
//! which nothing is found is not copied. Both what is scanned around a name and what is remembered
//! are bounded. What is found beyond that is hidden only where it was found. It cannot know a value
//! that a program cut, wrapped over several lines or encoded in another way.

mod adjacent;
mod detect;
mod encodings;
mod fingerprints;
mod heuristics;
mod multiline;
mod names;
mod prefixes;
mod private_key;
mod stream;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use aho_corasick::{AhoCorasick, MatchKind};

use self::{
    detect::{DetectedValue, Finder, Findings, Inside},
    fingerprints::Prints,
};
pub use self::{
    names::{Names, is_own, is_value},
    stream::Stream,
};

/// What a placeholder begins and ends with.
const BEGIN: &str = "{{secret:";
const END: &str = "}}";
/// Most characters of a name in a placeholder.
const NAME: usize = 64;
/// Bytes from which on a name of mixed letters and digits may be a value itself.
const RANDOM: usize = 24;
/// Fewest bytes of a value that was cut which are hidden.
const PART: usize = 4;
/// Most values that are remembered, their other forms included.
const MOST: usize = 8192;

/// The values of secrets that are known; shared by all who show something.
#[derive(Debug)]
pub struct Secrets {
    finder: Finder,
    known: RwLock<Arc<Known>>,
}

/// What is known now; replaced, never changed in place.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Name and value of each.
    all: Vec<(Arc<str>, Arc<str>)>,
    /// Where each value stands in `all`.
    values: HashMap<Arc<str>, usize>,
    names: HashMap<Arc<str>, usize>,
    finder: Option<Arc<AhoCorasick>>,
    /// All values in order.
    sorted: Vec<Arc<str>>,
    /// Bytes of the longest.
    longest: usize,
    /// Those that an earlier run knew and this one has not met yet.
    prints: Prints,
    /// Whether prints are kept, and their key is.
    keeps: Option<bool>,
    /// Where those stand in `all` of which no print is kept yet.
    unkept: Vec<usize>,
    /// Values that no command gets, with their forms.
    own: HashSet<Arc<str>>,
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new(Names::default())
    }
}

impl Secrets {
    /// Nothing is known yet but which names tell of a secret.
    pub fn new(names: Names) -> Self {
        Self { finder: Finder::new(names), known: RwLock::default() }
    }

    /// Goes on with what an earlier run kept by [`keep`](Self::keep): those values are hidden, under
    /// the names that they had, as soon as they are met. `fresh` is the key of what is kept where
    /// nothing was: 32 random bytes. Called once, before anything is known.
    pub fn recall(&self, kept: &str, fresh: [u8; 32]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let read = Prints::read(kept);
        let keeps = Some(read.is_some());
        let prints = read.unwrap_or_else(|| Prints::of(fresh));
        *known = Arc::new(Known { prints, keeps, ..Known::default() });
    }

    /// Gives the lines to be kept of what is known since the last time, where there are any and
    /// [`recall`](Self::recall) was called: no value, but what it is known again by.
    ///
    /// # Errors
    /// That of whoever keeps them; they are given again then.
    pub fn keep<E>(&self, write: impl FnOnce(&str) -> Result<(), E>) -> Result<(), E> {
        let is_kept = |known: &Known| known.unkept.is_empty() || known.keeps.is_none();
        if is_kept(&self.known()) {
            return Ok(());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if is_kept(&known) {
            return Ok(());
        }
        let head = if known.keeps == Some(true) { String::new() } else { known.prints.head() };
        let line = |at: &usize| known.prints.line(&known.all[*at].0, &known.all[*at].1);
        write(&(head + &known.unkept.iter().map(line).collect::<String>()))?;
        let now = Arc::make_mut(&mut known);
        (now.keeps, now.unkept) = (Some(true), Vec::new());
        Ok(())
    }

    /// Reports whether a placeholder stands for a key that haft itself talks to models with, in
    /// whichever form: no command gets that.
    pub fn is_own(&self, name: &str) -> bool {
        let known = self.known();
        known.names.get(name).is_some_and(|at| known.own.contains(&known.all[*at].1))
    }

    /// Takes the variables of a process: of those whose name and value are those of a secret, and of
    /// addresses with a password, the value is known from now on.
    pub fn add_variables<'a>(&self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let (mut more, mut own) = (Vec::new(), Vec::new());
        for (name, value) in variables {
            let findings = self.finder.find(value, &mut Inside::default());
            let parts = findings.found.iter().chain(&findings.tokens).map(|found| {
                let of =
                    if found.name.starts_with("URL_") { &found.name[4..] } else { &found.name };
                (format!("{name}_{of}"), value[found.value.clone()].to_owned())
            });
            let (is_own, is_secret) =
                (names::is_own(name), self.finder.names().is_secret(name, value));
            let counts = is_own || is_secret;
            // The whole has the name of the variable.
            more.extend(parts.filter(|(_, part)| !counts || part != value));
            if is_own {
                own.push(value);
            } else if !is_secret {
                continue;
            }
            let is_line = |line: &&str| line.len() >= names::SHORTEST;
            if value.contains(char::is_control) {
                let lines = value.split(char::is_control).map(str::trim).filter(is_line);
                let random = lines.filter(|line| heuristics::is_random(line));
                more.extend(random.map(|line| (name.to_owned(), line.to_owned())));
            } else {
                more.push((name.to_owned(), value.to_owned()));
            }
        }
        self.learn(&more);
        if !own.is_empty() {
            let forms = own.iter().flat_map(|value| encodings::of(value)).map(|(_, form)| form);
            let forms: Vec<Arc<str>> = forms.map(Arc::from).collect();
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let all = own.into_iter().map(Arc::from).chain(forms);
            Arc::make_mut(&mut known).own.extend(all);
        }
    }

    /// Takes one value under a name, and gives the name of its placeholder.
    pub fn add(&self, name: &str, value: &str) -> String {
        self.learn(&[(name.to_owned(), value.to_owned())]);
        let known = self.known();
        let at = known.values.get(value);
        at.map_or_else(|| spelled(name), |at| known.all[*at].0.to_string())
    }

    /// The value that a placeholder of this name stands for.
    pub fn value(&self, name: &str) -> Option<Arc<str>> {
        let known = self.known();
        known.names.get(name).map(|at| known.all[*at].1.clone())
    }

    /// A text with placeholders where values of secrets stood; those that it shows by their names
    /// are known from now on.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let places = self.places(text, &mut Inside::default(), false).0;
        replaced(text, &places).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Takes values that a text shows by their names, as [`hide`](Self::hide) does, and shows nothing.
    pub fn learn_from(&self, text: &str) {
        drop(self.places(text, &mut Inside::default(), false));
    }

    /// Where in a text that was cut at its end a known value begins of which the rest is cut off.
    pub fn begun(&self, text: &str) -> Option<usize> {
        let known = self.known();
        let longest = known.longest.saturating_sub(1);
        let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
        let to = text.len().saturating_sub(PART);
        (from..=to).filter(|at| text.is_char_boundary(*at)).find(|at| known.goes_on(&text[*at..]))
    }

    /// Where in a text that was cut at its start the rest of a known value ends; 0 where none stands
    /// there.
    pub fn rest(&self, text: &str) -> usize {
        let ends = |value: &str| {
            let starts =
                (1..=value.len().saturating_sub(PART)).filter(|at| value.is_char_boundary(*at));
            let mut ends = starts.map(|at| &value[at..]).filter(|rest| text.starts_with(rest));
            ends.next().map_or(0, str::len)
        };
        self.known().sorted.iter().map(|value| ends(value)).max().unwrap_or(0)
    }

    /// Reports whether a text that was cut at its start and its end is a part of a known value.
    pub fn is_inside(&self, text: &str) -> bool {
        let known = self.known();
        text.len() >= PART
            && known.longest > text.len()
            && known.sorted.iter().any(|value| value.contains(text))
    }

    /// The name of a known value that stands in a text in other letters, large for small or small
    /// for large: hosts lose theirs.
    pub fn in_any_case(&self, text: &str) -> Option<Arc<str>> {
        let (known, text) = (self.known(), text.to_ascii_lowercase());
        let stands = |value: &str| {
            value.len() >= names::SHORTEST && text.contains(&value.to_ascii_lowercase())
        };
        known.all.iter().find(|(_, value)| stands(value)).map(|(name, _)| name.clone())
    }

    /// A text with placeholders where known values stood; nothing is learnt from it.
    pub fn hide_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let places = self.known_places(text);
        replaced(text, &places).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Where known values stand in a text; those that an earlier run knew are known again first.
    fn known_places(&self, text: &str) -> Vec<Place> {
        let known = self.known();
        let met = known.prints.in_text(text);
        if met.is_empty() {
            return known.places(text);
        }
        self.learn(&met);
        self.known().places(text)
    }

    /// Learns what stands under a name in structured data, and gives it hidden; none where nothing
    /// is to hide.
    pub fn hide_under(&self, name: &str, value: &str) -> Option<String> {
        let is_named = self.finder.names().tells(name) && !names::is_git_setting(name, value);
        if is_named && heuristics::is_strong(value) {
            self.learn(&[(name.to_owned(), value.to_owned())]);
        }
        match self.hide(value) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        }
    }

    /// Where secrets stand in a text, with what is to stand there, in order; and where one may begin
    /// that goes on behind its end, which is none yet where more of the text comes.
    fn places(&self, text: &str, inside: &mut Inside, more: bool) -> (Vec<Place>, Option<usize>) {
        let Findings { mut found, tokens, open } = self.finder.find(text, inside);
        found.extend(self.not_known(text, tokens));
        if let Some(open) = open.filter(|_| more) {
            found.retain(|found| found.value.start < open);
        }
        if found.is_empty() {
            return (self.known_places(text), open);
        }
        let named =
            found.iter().map(|found| (found.name.clone(), text[found.value.clone()].to_owned()));
        let more: Vec<(String, String)> = named.collect();
        self.learn(&more);
        let mut places = self.known_places(text);
        let known = self.known();
        // Where there was no room for more they are hidden all the same.
        let unknown = found
            .into_iter()
            .filter(|found| !known.values.contains_key(&text[found.value.clone()]));
        places.extend(unknown.map(|found| (found.value, placeholder(&spelled(&found.name)))));
        places.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        places.retain(|(range, _)| {
            let free = range.start >= end;
            end = end.max(range.end);
            free
        });
        (places, open)
    }

    /// Of tokens, which are found by how they begin, those that are more than a known one with other text
    /// right behind it. A known value that begins within one and goes on behind it ends it.
    fn not_known(&self, text: &str, tokens: Vec<DetectedValue>) -> Vec<DetectedValue> {
        if tokens.is_empty() {
            return tokens;
        }
        let known = self.known_places(text);
        let cut = |mut token: DetectedValue| {
            let Range { start, end } = token.value;
            let from = known.partition_point(|(place, _)| place.start < start);
            for (place, _) in known[from..].iter().take_while(|(place, _)| place.start < end) {
                if place.start == start && place.end < end {
                    if prefixes::is_whole(&text[place.clone()]) {
                        return None;
                    }
                } else if place.start > start && place.end > end {
                    token.value.end = place.start;
                }
            }
            Some(token)
        };
        tokens.into_iter().filter_map(cut).collect()
    }

    fn known(&self) -> Arc<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn learn(&self, more: &[(String, String)]) {
        let is_new = |known: &Known| {
            known.all.len() < MOST
                && more.iter().any(|(_, value)| !known.values.contains_key(&**value))
        };
        if !is_new(&self.known()) {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut now = (**known).clone();
        for (name, value) in more {
            now.add(name, value);
        }
        now.finish();
        *known = Arc::new(now);
    }
}

/// Where something stands, and what stands there instead.
type Place = (Range<usize>, String);

impl Known {
    fn add(&mut self, name: &str, value: &str) {
        if self.values.contains_key(value) || value.len() < names::SHORTEST {
            return;
        }
        if let Some(name) = self.prints.take(value) {
            self.insert_as(&name, value, true);
            return self.add_forms(&name, value);
        }
        // No name shows what others hide.
        let shows = name.contains(value) || !self.places(name).is_empty();
        let name = if shows { spelled("") } else { spelled(name) };
        let name = self.insert(&name, value);
        self.add_forms(&name, value);
    }

    fn add_forms(&mut self, name: &str, value: &str) {
        for (form, value) in encodings::of(value) {
            if self.values.contains_key(&*value) {
                continue;
            }
            match self.prints.take(&value) {
                Some(name) => self.insert_as(&name, &value, true),
                None => drop(self.insert(&format!("{name}_{form}"), &value)),
            }
        }
    }

    /// Takes a new value; gives its name, which has a number where another has it already.
    fn insert(&mut self, name: &str, value: &str) -> String {
        if self.all.len() >= MOST {
            return name.to_owned();
        }
        let mut free = name.to_owned();
        let mut number = 2;
        while self.names.contains_key(&*free) || self.prints.has_name(&free) {
            free = format!("{name}_{number}");
            number += 1;
        }
        self.insert_as(&free, value, false);
        free
    }

    fn insert_as(&mut self, name: &str, value: &str, is_kept: bool) {
        let (name, value, at): (Arc<str>, Arc<str>, _) =
            (name.into(), value.into(), self.all.len());
        self.names.insert(name.clone(), at);
        self.values.insert(value.clone(), at);
        self.all.push((name, value));
        if !is_kept {
            self.unkept.push(at);
        }
    }

    fn finish(&mut self) {
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.all.iter().map(|(_, value)| value.as_bytes()));
        self.finder = built.ok().map(Arc::new);
        self.sorted = self.all.iter().map(|(_, value)| value.clone()).collect();
        self.sorted.sort_unstable();
        self.longest = self.sorted.iter().map(|value| value.len()).max().unwrap_or(0);
    }

    fn places(&self, text: &str) -> Vec<Place> {
        let Some(finder) = &self.finder else { return Vec::new() };
        let found = finder.find_iter(text);
        found.map(|found| (found.range(), placeholder(&self.all[found.pattern()].0))).collect()
    }

    /// Where a value may begin that goes on behind the end of a text; its end where none does.
    fn begin_of(&self, text: &str) -> usize {
        let unmet = self.prints.longest();
        if unmet > 0 {
            // Any of the last word may be the begin of one that only its print is known of.
            let word = text.trim_end_matches(|c: char| !c.is_whitespace()).len();
            return text.floor_char_boundary(word.max(text.len().saturating_sub(unmet - 1)));
        }
        let from = text.ceil_char_boundary(text.len().saturating_sub(self.longest));
        let mut starts = (from..text.len()).filter(|at| text.is_char_boundary(*at));
        starts.find(|at| self.goes_on(&text[*at..])).unwrap_or(text.len())
    }

    /// Reports whether a value begins with this text, and goes on.
    fn goes_on(&self, begin: &str) -> bool {
        let at = self.sorted.partition_point(|value| **value <= *begin);
        self.sorted.get(at).is_some_and(|value| value.starts_with(begin))
    }
}

fn replaced(text: &str, places: &[Place]) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, instead) in places {
        out.push_str(&text[at..range.start]);
        out.push_str(instead);
        at = range.end;
    }
    out.push_str(&text[at..]);
    Some(out)
}

/// What stands for the value of this name.
pub fn placeholder(name: &str) -> String {
    format!("{BEGIN}{name}{END}")
}

/// The placeholders of a text: where each stands, and its name.
pub fn placeholders(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(BEGIN)?;
            let from = start + BEGIN.len();
            let name = text[from..].bytes().take_while(|b| is_part(*b)).count();
            at = from + name;
            if name > 0 && text[at..].starts_with(END) {
                at += END.len();
                return Some((start..at, &text[from..from + name]));
            }
        }
    })
}

/// Reports whether some word of a text may be a value whose name stands elsewhere.
pub fn may_be_in(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || "\"'`,;=<>()[]{}|".contains(c);
    let is_one = |word: &str| heuristics::is_strong(word) || heuristics::is_password(word);
    text.split(ends).any(|word| word.len() >= names::SHORTEST && is_one(word))
}

const fn is_part(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A name as a variable can have it.
fn spelled(name: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let spelled: String = name.trim_matches(['-', '.', '_']).chars().map(part).take(NAME).collect();
    match spelled.chars().next() {
        None => "SECRET".to_owned(),
        _ if spelled.len() >= RANDOM && heuristics::is_random(&spelled) => "SECRET".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{spelled}"),
        Some(_) => spelled,
    }
}

#[cfg(test)]
mod tests;
