//! Path patterns of rules: the language of `.gitignore`, anchored at four folders.
//!
//! `//x` is absolute, `~/x` starts at home, `/x` at the project root, all others at the working
//! folder. A bare name matches at any depth below it. A match of a folder covers everything below
//! it. Beyond that language, `{a,b}` stands for each of its parts, as in the globs of searches.
//!
//! **Invariant:** one pattern has two readings: a generous one for denials and questions, and a
//! strict one for allowances. The generous one also covers the folder that `x/` and `x/**` name.
//! The strict one does not, unless the folder is only read, or all of it is meant. The generous one
//! also takes braces, classes and blanks around a pattern as literal parts of names. It compares
//! the composed forms (NFC) of pattern and name; the strict one takes both as they are written.

use std::{borrow::Cow, sync::OnceLock};

use globset::{Candidate, Glob, GlobBuilder, GlobMatcher};
use haft_text::names::{self, composed, decomposed};
use haft_types::{HostPath, Style};

use crate::{
    decide::Anchors,
    places::partial_path::{Shape, Token, meet, of_glob},
};

/// Most patterns that the braces of one may stand for.
const MOST: usize = 256;
/// Most bytes of a pattern with braces.
const LONGEST: usize = 1024;

/// One compiled pattern at one base folder.
#[derive(Clone, Debug)]
pub(crate) struct PathGlob {
    /// The folder that it starts from; composed in the generous reading.
    base: HostPath,
    tail: Tail,
    /// None for the base folder itself.
    name: Option<Glob>,
    name_matcher: Option<GlobMatcher>,
    below: Glob,
    below_matcher: GlobMatcher,
    /// The longest path that all matches start with.
    prefix: HostPath,
    /// What it names without a pattern, in each Unicode form; of a bare name that at its base.
    literals: Vec<HostPath>,
    /// Whether it is a name at any depth.
    any_depth: bool,
    /// Its generous reading place by place, from when a shape is first held against it.
    tokens: OnceLock<Vec<Vec<Token>>>,
}

/// How a pattern ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// A name: the thing itself and what is below.
    Name,
    /// A slash: a folder.
    Slash,
    /// `/**`: what is below a folder.
    Below,
}

impl PathGlob {
    /// Compiles `pattern`; a generous bare name is looked for below every workspace root.
    pub(crate) fn compile(
        pattern: &str,
        anchors: &Anchors,
        generous: bool,
    ) -> Result<Vec<Self>, String> {
        let mut texts = expanded(trimmed(pattern))?;
        if generous {
            for reading in literal_readings(pattern) {
                if !texts.contains(&reading) {
                    texts.push(reading);
                }
            }
        }
        let mut globs = Vec::with_capacity(texts.len());
        for text in texts {
            globs.extend(Self::of_one(&text, anchors, generous)?);
        }
        Ok(globs)
    }

    /// Compiles what has no braces but escaped ones.
    fn of_one(pattern: &str, anchors: &Anchors, generous: bool) -> Result<Vec<Self>, String> {
        let (base, rest, anchored) = anchor(pattern, anchors)?;
        let (rest, tail) = cut_tail(rest);
        let mut base = base;
        let mut names: Vec<&str> = Vec::new();
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." if names.is_empty() => base = base.parent().unwrap_or(base),
                ".." => return Err("`..` may only stand at its start".to_owned()),
                name => names.push(name),
            }
        }
        let any_depth = !anchored && names.len() == 1 && tail != Tail::Below && !rest.contains('/');
        let mut bases = vec![base];
        if any_depth && generous {
            for root in &anchors.roots {
                if !bases.contains(root) {
                    bases.push(root.clone());
                }
            }
        }
        bases.into_iter().map(|base| Self::at(base, &names, tail, (any_depth, generous))).collect()
    }

    fn at(
        base: HostPath,
        names: &[&str],
        tail: Tail,
        (any_depth, generous): (bool, bool),
    ) -> Result<Self, String> {
        let windows = base.style() == Style::Windows;
        let written = names.join("/");
        let is_literal =
            !written.is_empty() && !names.iter().any(|name| name.contains(['*', '?', '[', '\\']));
        let literals = if is_literal { forms_below(&base, &written, generous) } else { Vec::new() };
        let (base, joined) = if generous {
            (composed_path(&base).into_owned(), composed(&written))
        } else {
            (base, Cow::Borrowed(&*written))
        };
        let name = match (joined.is_empty(), any_depth) {
            (true, _) => None,
            (false, true) => Some(glob(&format!("**/{joined}"), windows)?),
            (false, false) => Some(glob(&joined, windows)?),
        };
        let below = match (joined.is_empty(), any_depth) {
            (true, _) => glob("**", windows)?,
            (false, true) => glob(&format!("**/{joined}/**"), windows)?,
            (false, false) => glob(&format!("{joined}/**"), windows)?,
        };
        let mut prefix = base.clone();
        if !any_depth {
            let names = joined.split('/').filter(|name| !name.is_empty());
            for name in names.take_while(|n| !n.contains(['*', '?', '[', '\\'])) {
                prefix = prefix.join_bytes(name.as_bytes()).map_err(|e| e.to_string())?;
            }
        }
        Ok(Self {
            literals,
            any_depth,
            base,
            tail,
            name_matcher: name.as_ref().map(Glob::compile_matcher),
            name,
            below_matcher: below.compile_matcher(),
            below,
            prefix,
            tokens: OnceLock::new(),
        })
    }

    /// The folder that it starts from, composed in the generous reading.
    pub(crate) const fn base(&self) -> &HostPath {
        &self.base
    }

    /// What it names in each Unicode form, where that is no pattern; of a name at any depth that at its
    /// base.
    pub(crate) fn literals(&self) -> &[HostPath] {
        &self.literals
    }

    /// Reports whether it names one place alone.
    pub(crate) const fn is_exact(&self) -> bool {
        !self.literals.is_empty() && !self.any_depth
    }

    /// The deepest folder that certainly holds all that it names, or what it names; composed in the
    /// generous reading.
    pub(crate) const fn prefix(&self) -> &HostPath {
        &self.prefix
    }

    /// The globs of its generous reading, for a set; none in place of the base folder itself.
    pub(crate) fn globs(&self) -> impl Iterator<Item = &Glob> {
        self.name.iter().chain(std::iter::once(&self.below))
    }

    /// Generous: the named things, the named folders and what is below.
    pub(crate) fn touches(&self, path: &HostPath) -> bool {
        let Some(relative) = relative(&composed_path(path), &self.base) else { return false };
        self.is_named(&relative) || self.is_below(&relative)
    }

    /// Strict: as it is written, `whole` when a folder is meant with all that is below, or is only looked at.
    pub(crate) fn allows(&self, path: &HostPath, whole: bool) -> bool {
        let Some(relative) = relative(path, &self.base) else { return false };
        self.is_below(&relative) || ((self.tail == Tail::Name || whole) && self.is_named(&relative))
    }

    /// Reports whether something below `root` certainly is a match.
    pub(crate) fn lies_below(&self, root: &HostPath) -> bool {
        self.prefix.is_within(&composed_path(root))
    }

    /// Generous: whether what a shape stands for may be a match, or below one.
    pub(crate) fn may_meet(&self, shape: &Shape) -> bool {
        let tokens = self.tokens.get_or_init(|| self.read());
        let meets = |shape: &Shape| {
            let own = shape.tokens();
            tokens.iter().any(|pattern| meet(&own, pattern))
        };
        self.name.is_none() && shape.may_be(&self.base)
            || shape.forms().iter().any(|shape| meets(shape))
    }

    /// Its globs place by place: a pattern of a command may take a part of a decomposed character.
    fn read(&self) -> Vec<Vec<Token>> {
        let base = decomposed_path(&self.base);
        let all = self.globs().flat_map(|glob| {
            let apart = decomposed(glob.glob());
            let is_other = apart != glob.glob() || *base != self.base;
            let other = is_other.then(|| of_glob(&base, &apart));
            of_glob(&self.base, glob.glob()).into_iter().chain(other.into_iter().flatten())
        });
        all.collect()
    }

    /// Whether a pattern of a command may match it, and says at least half of one of its names.
    pub(crate) fn is_said(&self, shape: &Shape) -> bool {
        let names = || self.globs().flat_map(|glob| glob.glob().split('/'));
        let means = |name: &str| {
            let says = |shape: &Cow<'_, Shape>| shape.says(name) || shape.says(&decomposed(name));
            name != "**" && shape.forms().iter().any(says)
        };
        names().any(means) && self.may_meet(shape)
    }

    /// Generous: whether what a shape stands for may be a folder below which matches certainly lie.
    pub(crate) fn may_be_held(&self, shape: &Shape) -> bool {
        let above = std::iter::successors(Some(self.prefix.clone()), HostPath::parent);
        above.take_while(|folder| folder.parent().is_some()).any(|folder| shape.may_be(&folder))
    }

    /// Reports whether something below `root` could be a match.
    pub(crate) fn may_lie_below(&self, root: &HostPath) -> bool {
        let root = composed_path(root);
        self.prefix.is_within(&root) || root.is_within(&self.prefix)
    }

    fn is_named(&self, relative: &[u8]) -> bool {
        match &self.name_matcher {
            None => relative.is_empty(),
            Some(name) => {
                !relative.is_empty() && name.is_match_candidate(&Candidate::from_bytes(relative))
            }
        }
    }

    fn is_below(&self, relative: &[u8]) -> bool {
        !relative.is_empty()
            && self.below_matcher.is_match_candidate(&Candidate::from_bytes(relative))
    }
}

/// A path with its names composed (NFC); those that are no UTF-8 stay.
pub(crate) fn composed_path(path: &HostPath) -> Cow<'_, HostPath> {
    match names::composed_path(path.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(path),
        Cow::Owned(bytes) => {
            HostPath::new(&bytes, path.style()).map_or(Cow::Borrowed(path), Cow::Owned)
        }
    }
}

/// The same decomposed (NFD).
pub(crate) fn decomposed_path(path: &HostPath) -> Cow<'_, HostPath> {
    let text = path.as_str().filter(|text| !text.is_ascii());
    let other = text.and_then(|text| HostPath::new(decomposed(text).as_bytes(), path.style()).ok());
    other.map_or(Cow::Borrowed(path), Cow::Owned)
}

/// What names below a folder are; where `all`, in each Unicode form.
fn forms_below(base: &HostPath, names: &str, all: bool) -> Vec<HostPath> {
    let mut forms = vec![Cow::Borrowed(names)];
    if all {
        forms.extend([composed(names), decomposed(names)]);
    }
    let mut paths: Vec<HostPath> = Vec::with_capacity(forms.len());
    for path in forms.iter().filter_map(|names| base.join_bytes(names.as_bytes()).ok()) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The path as seen from `base` with `/` between names; none outside it.
pub(crate) fn relative(path: &HostPath, base: &HostPath) -> Option<Vec<u8>> {
    let bytes = path.relative_to(base)?;
    Some(match path.style() {
        Style::Posix => bytes.to_vec(),
        Style::Windows => bytes.iter().map(|&b| if b == b'\\' { b'/' } else { b }).collect(),
    })
}

/// Where a pattern starts, what is left of it, and whether its first name stands at that folder.
fn anchor<'a>(pattern: &'a str, anchors: &Anchors) -> Result<(HostPath, &'a str, bool), String> {
    let style = anchors.cwd.style();
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    if pattern.starts_with('!') {
        return Err("`!` would turn it around; write a rule of the other kind".to_owned());
    }
    if style == Style::Windows {
        let bare = pattern.trim_start_matches('/');
        if bare.len() >= 2 && bare.as_bytes()[1] == b':' && bare.is_char_boundary(2) {
            let drive = HostPath::new(format!("{}\\", &bare[..2]).as_bytes(), style)
                .map_err(|error| error.to_string())?;
            return Ok((drive, &bare[2..], true));
        }
    }
    if let Some(rest) = pattern.strip_prefix("//") {
        let root = HostPath::new(b"/", style)
            .map_err(|_| "an absolute pattern needs a drive: //C:/...".to_owned())?;
        return Ok((root, rest, true));
    }
    if pattern == "~" || pattern.starts_with("~/") {
        return Ok((anchors.home.clone(), &pattern[1..], true));
    }
    if let Some(rest) = pattern.strip_prefix('/') {
        return Ok((anchors.project.clone(), rest, true));
    }
    Ok((anchors.cwd.clone(), pattern, pattern.starts_with("./")))
}

/// Cuts a final slash or `/**` off.
fn cut_tail(rest: &str) -> (&str, Tail) {
    if rest == "**" {
        return ("", Tail::Below);
    }
    if let Some(head) = rest.strip_suffix("/**") {
        // One more separator keeps `x/**` anchored, as its slash in the middle says.
        return (head, Tail::Below);
    }
    match rest.strip_suffix('/') {
        Some(head) => (head, Tail::Slash),
        None => (rest, Tail::Name),
    }
}

/// Without blanks around it; one behind a backslash stays, as in `.gitignore`.
fn trimmed(pattern: &str) -> &str {
    let pattern = pattern.trim_start();
    let text = pattern.trim_end();
    let quoted = text.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1;
    let blank = pattern[text.len()..].chars().next().filter(|_| quoted);
    &pattern[..text.len() + blank.map_or(0, char::len_utf8)]
}

/// The characters that are neither quoted nor in a class, with where they are.
fn bare_chars(pattern: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut class, mut quoted) = (None, false);
    pattern.char_indices().filter(move |&(at, c)| match (class, c) {
        _ if std::mem::take(&mut quoted) => false,
        (Some(start), ']') if at > start => {
            class = None;
            false
        }
        // A name ends where a class was not closed.
        (Some(_), '/') => {
            class = None;
            true
        }
        (Some(start), '!' | '^') if at == start => {
            class = Some(at + 1);
            false
        }
        (Some(_), _) => false,
        (None, '[') => {
            class = Some(at + 1);
            false
        }
        (None, '\\') => {
            quoted = true;
            false
        }
        (None, _) => true,
    })
}

/// The patterns that braces stand for, from the left.
fn expanded(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(text) = open.pop() {
        let Some((start, cuts)) = first_braces(&text)? else {
            done.push(text);
            continue;
        };
        if text.len() > LONGEST || cuts.len() + open.len() + done.len() > MOST {
            return Err(format!(
                "its braces stand for more than {MOST} patterns, or it is longer than {LONGEST} \
                 bytes; write several rules"
            ));
        }
        let end = cuts.last().copied().unwrap_or(start);
        let mut from = start + 1;
        let mut parts = Vec::with_capacity(cuts.len());
        for cut in cuts {
            parts.push(format!("{}{}{}", &text[..start], &text[from..cut], &text[end + 1..]));
            from = cut + 1;
        }
        open.extend(parts.into_iter().rev());
    }
    Ok(done)
}

/// Where the first braces begin, and where each of their parts ends.
fn first_braces(text: &str) -> Result<Option<(usize, Vec<usize>)>, String> {
    let unclosed = |sign: char| format!("a {sign} in it has no partner; write \\{sign} for a name");
    let (mut depth, mut start, mut cuts) = (0_usize, 0, Vec::new());
    for (at, c) in bare_chars(text) {
        match c {
            '{' => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            '}' if depth == 0 => return Err(unclosed('}')),
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && c == '}' || depth == 1 && c == ',' {
            cuts.push(at);
        }
        if depth == 0 && c == '}' {
            return Ok(Some((start, cuts)));
        }
    }
    if depth > 0 { Err(unclosed('{')) } else { Ok(None) }
}

/// What else a denial may mean: names with its blanks, braces and brackets in them.
fn literal_readings(pattern: &str) -> Vec<String> {
    let mut readings = Vec::new();
    for pattern in [trimmed(pattern), pattern] {
        readings.push(quoted(pattern, &['{', '}', '[', ']']));
        if pattern.contains('[') {
            readings.push(quoted(pattern, &['{', '}']));
            readings.extend(expanded(&quoted(pattern, &['[', ']'])).unwrap_or_default());
        }
    }
    readings
}

/// The pattern with these signs as characters of names.
fn quoted(pattern: &str, signs: &[char]) -> String {
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut after_backslash = false;
    for c in pattern.chars() {
        if signs.contains(&c) && !after_backslash {
            text.push('\\');
        }
        after_backslash = c == '\\' && !after_backslash;
        text.push(c);
    }
    text
}

fn glob(text: &str, windows: bool) -> Result<Glob, String> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(windows)
        .build()
        .map_err(|error| error.kind().to_string())
}

/// Escapes a name so that a pattern takes it literally.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let last = text.len() - text.chars().next_back().map_or(0, char::len_utf8);
    for (at, c) in text.char_indices() {
        let sign = matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '#' | '\\' | '~');
        if sign || (c.is_whitespace() && at == last) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }
    fn anchors() -> Anchors {
        Anchors {
            cwd: at("/w/app"),
            roots: vec![at("/w/app"), at("/added")],
            project: at("/w"),
            home: at("/home/me"),
            state: vec![],
        }
    }
    fn touches(pattern: &str, path: &str) -> bool {
        let globs = PathGlob::compile(pattern, &anchors(), true).unwrap();
        globs.iter().any(|glob| glob.touches(&at(path)))
    }

    #[test]
    fn patterns_start_at_four_places() {
        assert!(touches("//etc/hosts", "/etc/hosts"));
        assert!(touches("~/.ssh/**", "/home/me/.ssh/a/b"));
        assert!(touches("/x.rs", "/w/x.rs") && !touches("/x.rs", "/w/app/x.rs"));
        assert!(touches("./x.rs", "/w/app/x.rs") && !touches("./x.rs", "/w/app/a/x.rs"));
        assert!(touches("x.rs", "/w/app/a/b/x.rs") && !touches("x.rs", "/w/x.rs"));
        assert!(touches("src/*.rs", "/w/app/src/x.rs"));
        assert!(!touches("src/*.rs", "/w/app/a/src/x.rs"));
        assert!(!touches("src/*.rs", "/w/app/src/a/x.rs"));
        assert!(touches("../lib/**", "/w/lib/x"));
        assert!(touches("x.rs", "/added/x.rs"), "a bare name is denied in every root");
    }

    #[test]
    fn what_matches_a_folder_covers_what_is_below() {
        for pattern in ["secret", "secret/", "secret/**", "./secret/"] {
            assert!(touches(pattern, "/w/app/secret/a/b"), "{pattern}");
            assert!(touches(pattern, "/w/app/secret"), "{pattern}");
            assert!(!touches(pattern, "/w/app/secrets"), "{pattern}");
        }
    }

    #[test]
    fn an_allowance_does_not_cover_the_folder_of_its_content() {
        let glob = &PathGlob::compile("out/**", &anchors(), false).unwrap()[0];
        assert!(glob.allows(&at("/w/app/out/x"), false));
        assert!(!glob.allows(&at("/w/app/out"), false));
        assert!(glob.allows(&at("/w/app/out"), true));
    }

    #[test]
    fn escaped_names_are_literal() {
        for name in ["a*b[c]{d}?!#\\e", "#a", "a ", "a  ", "{a,b}", "!x"] {
            let pattern = format!("./{}", escape(name));
            assert!(touches(&pattern, &format!("/w/app/{name}")), "{pattern:?}");
            let allowed = &PathGlob::compile(&pattern, &anchors(), false).unwrap()[0];
            assert!(allowed.allows(&at(&format!("/w/app/{name}")), false), "{pattern:?}");
        }
        assert!(!touches(&format!("./{}", escape("a*")), "/w/app/ab"));
        assert!(!touches("\\{a,b\\}", "/w/app/a"));
    }

    #[test]
    fn braces_stand_for_each_of_their_parts() {
        for (pattern, path) in [
            ("{secret,x}/**", "/w/app/x/a"),
            ("{secret,x}/**", "/w/app/secret/a/b"),
            ("secret{,s}", "/w/app/b/secrets"),
            ("{src/{a,b},//etc}/*.{key,pem}", "/w/app/src/b/x.pem"),
            ("{src/{a,b},//etc}/*.{key,pem}", "/etc/x.key"),
            ("{a}", "/w/app/a"),
            ("{a,b}[{,}]c", "/w/app/b,c"),
        ] {
            assert!(touches(pattern, path), "{pattern} {path}");
        }
        assert!(!touches("{secret,x}/**", "/w/app/y/a"));
        let allowed = PathGlob::compile("{a,b}", &anchors(), false).unwrap();
        let allows = |path: &str| allowed.iter().any(|glob| glob.allows(&at(path), false));
        assert!(allows("/w/app/a") && allows("/w/app/b") && !allows("/w/app/{a,b}"));
        let many = "{a,b}".repeat(9);
        let long = format!("{{a,b}}{}", "x".repeat(2000));
        for bad in ["{a", "a}", "{a,{b}", &many, &long, &"{".repeat(2000), &"{,".repeat(9000)] {
            assert!(PathGlob::compile(bad, &anchors(), true).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_denial_also_takes_its_signs_as_names() {
        for (pattern, path) in [
            ("#secret", "/w/app/a/#secret"),
            ("secret/key.txt ", "/w/app/secret/key.txt"),
            ("secret/key.txt ", "/w/app/secret/key.txt "),
            (" key", "/w/app/key"),
            ("Sec[1]/**", "/w/app/Sec1/a"),
            ("Sec[1]/**", "/w/app/Sec[1]/a"),
            ("{a,b}", "/w/app/{a,b}"),
            ("{a,b}[1]", "/w/app/b[1]"),
        ] {
            assert!(touches(pattern, path), "{pattern:?} {path:?}");
        }
        let allowed = &PathGlob::compile("Sec[1]", &anchors(), false).unwrap()[0];
        assert!(allowed.allows(&at("/w/app/Sec1"), false));
        assert!(!allowed.allows(&at("/w/app/Sec[1]"), false));
    }

    #[test]
    fn a_pattern_of_a_command_may_take_a_part_of_a_decomposed_name() {
        let place = haft_types::Place {
            host: "local".into(),
            cwd: at("/w/app"),
            roots: vec![at("/w/app")],
            read_roots: Vec::new(),
            home: at("/home/me"),
            temp: at("/tmp"),
        };
        let shape = |word: &str| {
            let marked = word.replace('*', &haft_shell::SOME.to_string());
            Shape::of(&marked, Some(&["/w/app".to_owned()]), &place).pop().unwrap()
        };
        for rule in ["\u{dc}b\u{e9}.key", "U\u{308}be\u{301}.key"] {
            let globs = PathGlob::compile(rule, &anchors(), true).unwrap();
            let meets = |word| globs.iter().any(|glob| glob.may_meet(&shape(word)));
            for word in ["U*", "\u{dc}*", "U\u{308}*", "*b\u{e9}.key", "*e\u{301}.k*", "\u{dc}be*"]
            {
                assert!(meets(word), "{rule} {word}");
            }
            assert!(!meets("X*") && !meets("\u{e9}*"), "{rule}");
            let says = |word| globs.iter().any(|glob| glob.is_said(&shape(word)));
            assert!(says("*be\u{301}.key") && says("\u{dc}b\u{e9}*"), "{rule}");
        }
    }

    #[test]
    fn bad_patterns_say_why() {
        for bad in ["", "!x", "a/../b", "[", "x\\"] {
            assert!(PathGlob::compile(bad, &anchors(), true).is_err(), "{bad}");
        }
    }
}
