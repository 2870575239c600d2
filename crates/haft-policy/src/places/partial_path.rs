//! Paths of which not every character is known, and which places they may denote.
//!
//! **Invariant:** matching is conservative: if any path that a shape stands for is at a place, the
//! shape is reported to meet it. A reported match may turn out to be none.
//!
//! **Does not know:** links, files.

use std::borrow::Cow;

use haft_shell::{ANY, FOUND, ONE, SOME};
use haft_text::names::{composed, decomposed};
use haft_types::{HostPath, Place, Style};

use super::{
    planned_links::{Link, behind_text},
    proc_links::Magic,
    protected::{firsts, is_name},
};
use crate::ProtectedPath;

/// The most bytes of a word that are looked at one by one; what follows counts as any text.
const LONGEST: usize = 1024;
/// The characters that stand for others.
const MARKS: [char; 4] = [ANY, SOME, ONE, FOUND];

/// An absolute path with marks for what is not known of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    text: String,
    /// As it is written, where links decide where it leads: `..` stands behind a name.
    climbs: Option<Box<str>>,
}

/// What one place of a pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// This character.
    Char(char),
    /// A character that is no slash.
    One,
    /// Characters that are no slashes.
    Some,
    /// Any characters.
    Any,
    /// Nothing; what follows is no dot.
    NoDot,
}

impl Shape {
    /// The paths that a word may be in these folders; none stand for any folder of the workspace.
    pub(crate) fn of(word: &str, folders: Option<&[String]>, place: &Place) -> Vec<Self> {
        let at = |folder: &str, word: &str| Self::at(&format!("{folder}/{word}"));
        let home = || place.home.text();
        if word.is_empty() {
            return Vec::new();
        }
        if word == "~" || word.starts_with("~/") {
            return vec![at(&home(), &word[1..])];
        }
        if word.starts_with('/') {
            return Self::through(word, folders);
        }
        let below = |root: &HostPath| at(&format!("{}/{ANY}", root.text()), word);
        let anywhere = || place.roots.iter().flat_map(|root| [at(&root.text(), word), below(root)]);
        let mut all: Vec<Self> = match folders {
            Some(folders) => {
                let all = folders.iter().map(|folder| format!("{folder}/{word}"));
                all.flat_map(|text| Self::through(&text, Some(folders))).collect()
            }
            None => anywhere().collect(),
        };
        all.extend(word.starts_with(ANY).then(|| at("", word)));
        all
    }

    /// An absolute path, and those that it stands for through what a process has of its own.
    fn through(text: &str, folders: Option<&[String]>) -> Vec<Self> {
        let magic = Magic::of(text, folders);
        let mut all = vec![Self::at(text)];
        all.extend(magic.texts.iter().map(|text| Self::at(text)));
        all.extend(magic.is_any.then(|| Self::at(&format!("/{ANY}"))));
        all
    }

    fn at(path: &str) -> Self {
        let climbs = path.contains("/..").then(|| path.into());
        Self { text: normal(path), climbs }
    }

    /// It composed (NFC) and decomposed (NFD), where it is not ASCII.
    pub(crate) fn forms(&self) -> Vec<Cow<'_, Self>> {
        if self.text.is_ascii() {
            return vec![Cow::Borrowed(self)];
        }
        let form = |text: Cow<'_, str>| Self { text: text.into_owned(), climbs: None };
        vec![Cow::Owned(form(composed(&self.text))), Cow::Owned(form(decomposed(&self.text)))]
    }

    /// The shape of a path that is known.
    pub(crate) fn known(path: &HostPath) -> Self {
        Self { text: path.text().into_owned(), climbs: None }
    }

    /// It as it is written, where links decide where it leads.
    pub(crate) fn climbs(&self) -> Option<String> {
        self.climbs.as_deref().map(str::to_owned)
    }

    /// The one path that it is.
    pub(crate) fn exact(&self) -> Option<HostPath> {
        if self.is_open() {
            return None;
        }
        HostPath::new(self.text.as_bytes(), Style::Posix).ok()
    }

    /// What it may be behind links that a script makes.
    pub(crate) fn behind(&self, links: &[Link]) -> Vec<Self> {
        let behind = |(link, target): &Link| {
            let rest = self.text.strip_prefix(&*link.text())?;
            let is_below = rest.is_empty() || rest.starts_with('/');
            is_below.then(|| Self::at(&format!("{}/{rest}", target.text())))
        };
        let climbs = self.climbs.iter().flat_map(|text| behind_text(text, links));
        links.iter().filter_map(behind).chain(climbs.map(|text| Self::at(&text))).collect()
    }

    /// Whether not all of it is known.
    pub(crate) fn is_open(&self) -> bool {
        self.text.contains(MARKS)
    }

    /// Whether nothing at all is known of where it leads.
    pub(crate) fn is_any(&self) -> bool {
        self.text.trim_start_matches('/').starts_with(ANY)
    }

    /// It for people: `*` and `?` stand for what is not known.
    pub(crate) fn shown(&self, place: &Place) -> String {
        let text: String = self.text.chars().map(|c| if c == ONE { '?' } else { c }).collect();
        let text = text.replace(MARKS, "*");
        let path = HostPath::new(text.as_bytes(), Style::Posix);
        path.map_or(text, |path| place.shown(&path).into_owned())
    }

    /// It place by place.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(self.text.len());
        let mut starts = false;
        for (at, c) in self.text.char_indices() {
            if at > LONGEST {
                tokens.push(Token::Any);
                break;
            }
            if starts && [SOME, ONE, FOUND].contains(&c) {
                tokens.push(Token::NoDot);
            }
            tokens.push(match c {
                ANY | FOUND => Token::Any,
                SOME => Token::Some,
                ONE => Token::One,
                c => Token::Char(c),
            });
            starts = c == '/';
        }
        tokens
    }

    /// Whether one of its names is a pattern that may match this one, `*` standing for any text, and has at
    /// least half of its letters.
    pub(crate) fn says(&self, want: &str) -> bool {
        let letters = |text: &str, but: &[char]| text.chars().filter(|c| !but.contains(c)).count();
        self.text.split('/').any(|name| {
            let is_pattern = name.contains([SOME, ONE, FOUND]) && !name.contains(ANY);
            let said = letters(name, &MARKS);
            is_pattern && said > 0 && 2 * said >= letters(want, &['*']) && is_met(name, want)
        })
    }

    /// Whether it may be this path.
    pub(crate) fn may_be(&self, path: &HostPath) -> bool {
        let tokens = |text: &str| -> Vec<Token> { text.chars().map(Token::Char).collect() };
        let path = path.text();
        if self.text.is_ascii() && path.is_ascii() {
            return meet(&self.tokens(), &tokens(&path));
        }
        let paths = [tokens(&composed(&path)), tokens(&decomposed(&path))];
        let meets = |shape: &Cow<'_, Self>| {
            let own = shape.tokens();
            paths.iter().any(|path| meet(&own, path))
        };
        self.forms().iter().any(meets)
    }

    /// The first spot that it may be at or below, where its letters say so: it has at least so many of
    /// the name that it may be; of a pattern that may be none those count with which that begins.
    pub(crate) fn spot<'t>(
        &self,
        table: &'t [ProtectedPath],
        home: &HostPath,
        least: usize,
        is_guess: bool,
    ) -> Option<&'t ProtectedPath> {
        let text = self.text.to_lowercase();
        let names: Vec<&str> = text.split('/').skip(1).collect();
        let depth = home.names().count();
        let is_home = names.len() > depth
            && names
                .iter()
                .zip(home.names())
                .all(|(name, own)| name.as_bytes().eq_ignore_ascii_case(own));
        let is_open = names.first().is_some_and(|name| name.starts_with(ANY));
        let is_fit = |spot: &ProtectedPath, start: usize| {
            !spot.home || is_home && start == depth || is_open && start == 1
        };
        // What nobody knows may begin with any letter, where it is at home for certain.
        let is_any = |at: usize| is_home && at == depth && names[at].starts_with(ANY);
        let begun = names.iter().enumerate().fold(0, |all, (at, name)| match name.chars().next() {
            Some(ANY) if is_any(at) => u128::MAX,
            Some(c) if MARKS.contains(&c) => all,
            Some(_) => all | firsts(&name.as_bytes()[..1]),
            None => all,
        });
        let says = |name: &str, want: &str, own: usize, spot: &ProtectedPath| {
            let begins = name.as_bytes().first() == want.as_bytes().first();
            let is_own = want.starts_with('.') || own == 0 || !spot.names.contains('/');
            let least = match want.starts_with('.') {
                // The less has to be said at home, the more certain its place is.
                true if is_home && own == depth => least.saturating_sub(2).max(1),
                true => least,
                false => least.max(3),
            };
            let letters = name.chars().filter(|c| !MARKS.contains(c)).map(char::len_utf8);
            let head = name.find(MARKS).unwrap_or(name.len());
            let said = if is_guess { head } else { letters.sum() };
            (begins || is_any(own)) && is_own && least.min(want.len()) <= said
        };
        table.iter().filter(|spot| spot.firsts & begun != 0).find(|spot| {
            spot.names.split('/').enumerate().any(|(at, want)| {
                let mut said = names.iter().enumerate().skip(at);
                said.any(|(own, name)| {
                    says(name, want, own, spot)
                        && is_fit(spot, own - at)
                        && is_at(&names, spot, own - at)
                })
            })
        })
    }
}

/// Whether names may be those of a spot from one of them on.
fn is_at(names: &[&str], spot: &ProtectedPath, start: usize) -> bool {
    let mut names = names[start..].iter();
    spot.names.split('/').all(|want| names.next().is_some_and(|name| is_met(name, want)))
}

/// Whether one name of a shape may be one of a spot.
fn is_met(name: &str, want: &str) -> bool {
    if !name.contains(MARKS) {
        return is_name(want, name);
    }
    let head = &name[..name.find(MARKS).unwrap_or(name.len())];
    if !want.contains('*') && !want.starts_with(head) {
        return false;
    }
    let shape = Shape { text: format!("/{name}"), climbs: None };
    let token = |c| if c == '*' { Token::Some } else { Token::Char(c) };
    let want: Vec<Token> = ['/'].into_iter().chain(want.chars()).map(token).collect();
    meet(&shape.tokens(), &want)
}

/// A path without `.` and doubled slashes; `..` takes the name before it away, as far as that is one.
fn normal(path: &str) -> String {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => match names.last() {
                // How many folders are taken back is not known.
                Some(last) if last.contains([ANY, FOUND]) => names = vec![ANY.to_string().into()],
                _ => drop(names.pop()),
            },
            name => names.push(name.into()),
        }
    }
    format!("/{}", names.join("/"))
}

/// Whether some text is what both stand for.
pub(crate) fn meet(first: &[Token], second: &[Token]) -> bool {
    let wide = second.len() + 1;
    let mut seen = vec![false; (first.len() + 1) * wide];
    let mut open = vec![(0, 0)];
    while let Some((a, b)) = open.pop() {
        if std::mem::replace(&mut seen[a * wide + b], true) {
            continue;
        }
        match (first.get(a), second.get(b)) {
            (None, None) => return true,
            (x, y) => {
                let mut go = |a, b| open.push((a, b));
                step(x, y, (a, b), &mut go);
                step(y, x, (b, a), &mut |b, a| go(a, b));
            }
        }
    }
    false
}

/// Where both may stand behind one more token of the first.
fn step(
    one: Option<&Token>,
    other: Option<&Token>,
    (at, beside): (usize, usize),
    go: &mut dyn FnMut(usize, usize),
) {
    let Some(one) = one else { return };
    match (one, other) {
        (Token::NoDot, other) if other != Some(&Token::Char('.')) => go(at + 1, beside),
        (Token::Some | Token::Any, other) => {
            go(at + 1, beside);
            let takes = match other {
                Some(Token::Char(c)) => *one == Token::Any || *c != '/',
                other => other == Some(&Token::One),
            };
            if takes {
                go(at, beside + 1);
            }
        }
        (Token::One, Some(Token::Char(c))) if *c != '/' => go(at + 1, beside + 1),
        (Token::One | Token::Char(_), Some(other)) if one == other => go(at + 1, beside + 1),
        _ => {}
    }
}

/// A pattern of globs, place by place: one for each way to read `**/`, which may stand for nothing.
pub(crate) fn of_glob(base: &HostPath, glob: &str) -> Vec<Vec<Token>> {
    let start: Vec<Token> =
        base.text().trim_end_matches('/').chars().chain(['/']).map(Token::Char).collect();
    let mut all = vec![start];
    let mut rest = glob.chars().peekable();
    while let Some(c) = rest.next() {
        let token = match c {
            '\\' => Token::Char(rest.next().unwrap_or('\\')),
            '?' => Token::One,
            '*' if rest.peek() == Some(&'*') => {
                rest.next();
                if rest.peek() == Some(&'/') {
                    rest.next();
                    let deep = [Token::Any, Token::Char('/')];
                    let more = all.iter().map(|one| [one, &deep[..]].concat());
                    all = more.collect::<Vec<_>>().into_iter().chain(all).take(16).collect();
                    continue;
                }
                Token::Any
            }
            '*' => Token::Some,
            '[' => {
                let end = |c: &char| *c == ']';
                let skipped = rest.clone().skip(1).position(|c| end(&c)).map_or(0, |at| at + 2);
                if skipped == 0 {
                    Token::Char('[')
                } else {
                    rest.nth(skipped - 1);
                    Token::One
                }
            }
            c => Token::Char(c),
        };
        for one in &mut all {
            one.push(token);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::protected::{CREDENTIALS, PROTECTED};

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }

    fn place() -> Place {
        Place {
            host: "local".into(),
            cwd: at("/w"),
            roots: vec![at("/w")],
            read_roots: Vec::new(),
            home: at("/h"),
            temp: at("/tmp"),
        }
    }

    fn shape(word: &str) -> Shape {
        let marked = word.replace("**", "\u{1}").replace('*', "\u{2}").replace('?', "\u{3}");
        Shape::of(&marked, Some(&["/w".to_owned()]), &place()).pop().unwrap()
    }

    #[test]
    fn shapes_meet_what_they_may_be() {
        for (word, glob, is) in [
            ("s*/b", "src/**", true),
            ("*", "src", true),
            ("*", ".env", false),
            (".*", ".env", true),
            ("?env", ".env", false),
            (".?nv", ".env", true),
            ("*.md", "src/**", false),
            ("docs/*", "src/**", false),
            ("docs/**", "src/**", false),
            ("**", "src/**", true),
            ("x**", "**/*.key", true),
            ("x*", "**/*.key", true),
            ("x*.rs", "**/*.key", false),
            ("docs/../s*", "src", true),
            ("a/**/../../src/a", "src/**", true),
            ("s[*", "s\\[x]", true),
            ("a*", "a[bc]d", true),
        ] {
            let tokens = shape(word).tokens();
            let found = of_glob(&at("/w"), glob).iter().any(|one| meet(&tokens, one));
            assert_eq!(found, is, "{word} {glob}");
        }
    }

    #[test]
    fn shapes_are_at_spots_where_their_letters_say_so() {
        let keys = |word| Shape::spot(&shape(word), CREDENTIALS, &at("/h"), 1, false).is_some();
        let kept = |word| Shape::spot(&shape(word), PROTECTED, &at("/h"), 1, false).is_some();
        for word in ["**/.ssh/id_rsa", "~/.s*/x", "~/.*", "**/.SSH/x", "/etc/*", "~/.npm*", "id_*"]
        {
            assert!(keys(word), "{word}");
        }
        for word in ["*", "**", "src/*", "~/x*", "**/config", "/proc/**/status", "i*", "*.json"] {
            assert!(!keys(word), "{word}");
        }
        assert!(kept(".gi*/hooks/x") && kept("**/.git/config") && kept(".*") && kept("rust-tool*"));
        assert!(!kept("**.git") && !kept("*") && !kept("*.json") && !kept("r*"));
    }
}
