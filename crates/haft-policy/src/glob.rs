//! Path patterns of rules: the language of `.gitignore`, anchored at four folders.
//!
//! `//x` is absolute, `~/x` starts at home, `/x` at the project root, all others at the working
//! folder; a bare name matches at any depth below it. What matches a folder covers what is below.
//!
//! **Invariant:** two readings of one pattern exist. The generous one, for denials and questions,
//! also covers the folder that `x/` and `x/**` name; the strict one, for allowances, does not
//! unless the folder is only looked at, or all of it is meant.

use globset::{Candidate, Glob, GlobBuilder, GlobMatcher};
use haft_types::{HostPath, Style};

use crate::decide::Anchors;

/// One compiled pattern at one base folder.
#[derive(Clone, Debug)]
pub(crate) struct PathGlob {
    base: HostPath,
    tail: Tail,
    /// None for the base folder itself.
    name: Option<Glob>,
    name_matcher: Option<GlobMatcher>,
    below: Glob,
    below_matcher: GlobMatcher,
    /// The longest path that all matches start with.
    prefix: HostPath,
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
        bases.into_iter().map(|base| Self::at(base, &names, tail, any_depth)).collect()
    }

    fn at(base: HostPath, names: &[&str], tail: Tail, any_depth: bool) -> Result<Self, String> {
        let windows = base.style() == Style::Windows;
        let joined = names.iter().map(|name| escape_braces(name)).collect::<Vec<_>>().join("/");
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
            for name in names.iter().take_while(|n| !n.contains(['*', '?', '[', '\\'])) {
                prefix = prefix.join_bytes(name.as_bytes()).map_err(|e| e.to_string())?;
            }
        }
        Ok(Self {
            base,
            tail,
            name_matcher: name.as_ref().map(Glob::compile_matcher),
            name,
            below_matcher: below.compile_matcher(),
            below,
            prefix,
        })
    }

    /// The folder that it starts from.
    pub(crate) const fn base(&self) -> &HostPath {
        &self.base
    }

    /// The globs of its generous reading, for a set; none in place of the base folder itself.
    pub(crate) fn globs(&self) -> impl Iterator<Item = &Glob> {
        self.name.iter().chain(std::iter::once(&self.below))
    }

    /// Generous: the named things, the named folders and what is below.
    pub(crate) fn touches(&self, path: &HostPath) -> bool {
        let Some(relative) = relative(path, &self.base) else { return false };
        self.is_named(&relative) || self.is_below(&relative)
    }

    /// Strict: `whole` when a folder is meant with all that is below, or is only looked at.
    pub(crate) fn allows(&self, path: &HostPath, whole: bool) -> bool {
        let Some(relative) = relative(path, &self.base) else { return false };
        self.is_below(&relative) || ((self.tail == Tail::Name || whole) && self.is_named(&relative))
    }

    /// Reports whether something below `root` certainly is a match.
    pub(crate) fn lies_below(&self, root: &HostPath) -> bool {
        self.prefix.is_within(root)
    }

    /// Reports whether something below `root` could be a match.
    pub(crate) fn may_lie_below(&self, root: &HostPath) -> bool {
        self.prefix.is_within(root) || root.is_within(&self.prefix)
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

/// Braces have no meaning in `.gitignore`, but would have one in the glob library.
fn escape_braces(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    let (mut class, mut quoted) = (false, false);
    for c in name.chars() {
        if quoted {
            quoted = false;
        } else {
            match c {
                '\\' if !class => quoted = true,
                '[' => class = true,
                ']' => class = false,
                '{' | '}' if !class => escaped.push('\\'),
                _ => {}
            }
        }
        escaped.push(c);
    }
    escaped
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
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '#' | '\\' | '~') {
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
    fn escaped_names_are_literal_and_braces_always_are() {
        let name = "a*b[c]{d}?!#\\e";
        assert!(touches(&format!("./{}", escape(name)), &format!("/w/app/{name}")));
        assert!(!touches(&format!("./{}", escape("a*")), "/w/app/ab"));
        assert!(touches("{a,b}", "/w/app/{a,b}") && !touches("{a,b}", "/w/app/a"));
    }

    #[test]
    fn bad_patterns_say_why() {
        for bad in ["", "!x", "a/../b", "[", "x\\"] {
            assert!(PathGlob::compile(bad, &anchors(), true).is_err(), "{bad}");
        }
    }
}
