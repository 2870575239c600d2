//! Functions and aliases of the user's shell, as the shell of each command reads them.
//!
//! **Invariant:** they are in a file that has no name and that nobody can change. Its content
//! leaves nothing in the environment of the command. The only shell options that it sets are alias
//! expansion, and those that the user has and that a function seems to need.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::report::Report;
use crate::local::shell::supervisor_protocol::START_UP;

/// What no function or alias may stand for: the words by which commands are run, and those of the
/// grammar, which an alias may have for a name.
const RESERVED: &[&[u8]] = &[
    b"trap",
    b"pwd",
    b"unset",
    b"eval",
    b"builtin",
    b"shopt",
    b"exit",
    b"exec",
    b"alias",
    b"{",
    b"}",
    b"!",
    b"[[",
    b"]]",
    b"if",
    b"then",
    b"elif",
    b"else",
    b"fi",
    b"for",
    b"in",
    b"select",
    b"while",
    b"until",
    b"do",
    b"done",
    b"case",
    b"esac",
    b"function",
    b"time",
    b"coproc",
];
/// Commands whose aliases mostly make them ask, which nobody could answer.
const ASKING: &[&[u8]] = &[b"rm", b"cp", b"mv", b"ln"];

/// Options of the shell, and what stands in functions that may need them.
const NEEDS: &[(&str, &[&[u8]])] = &[
    ("extglob", &[b"?(", b"*(", b"+(", b"@(", b"!("]),
    ("globstar", &[b"**"]),
    ("nullglob", &[b"*"]),
];

/// A variable that is not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShellVariable<'a> {
    pub(super) name: &'a str,
    /// What makes it, as `declare -p` says it.
    pub(super) text: &'a [u8],
    /// Whether it holds what commands do not get.
    pub(super) is_secret: bool,
}

impl ShellVariable<'_> {
    /// Adds what makes it anew where the command was not given one of that name; that it cannot be
    /// changed is left out, since a command that does not know of it may well set it.
    fn make(&self, text: &mut Vec<u8>) {
        let rest = self.text.strip_prefix(b"declare -").unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == b' ') else { return };
        let flags = rest[..end].iter().filter(|flag| b"aAilu".contains(flag));
        text.extend_from_slice(format!("[[ ${{{}+x}} ]] || declare -", self.name).as_bytes());
        text.extend(flags.copied());
        if text.ends_with(b" -") {
            text.push(b'-');
        }
        text.extend_from_slice(&rest[end..]);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Functions {
    path: PathBuf,
    /// Holds what is at the path.
    _file: File,
}

impl Functions {
    /// Those of a report; none where there are none, or no such file can be made. And the names of
    /// variables that they use and do not get.
    pub(super) fn of(
        report: &Report<'_>,
        variables: Vec<ShellVariable<'_>>,
    ) -> (Option<Self>, Vec<String>) {
        let Some((text, withheld)) = text(report, variables) else { return Default::default() };
        (Self::file(&text).ok(), withheld)
    }

    fn file(text: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("haft-functions", flags)?);
        file.write_all(text)?;
        fcntl_add_seals(
            &file,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self { path, _file: file })
    }

    /// Where it can be read while this is there, and this process.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// What makes them all anew, with the variables that they name, and the names of those that are
/// secret; none where there are none.
fn text(report: &Report<'_>, variables: Vec<ShellVariable<'_>>) -> Option<(Vec<u8>, Vec<String>)> {
    let aliases: Vec<_> = (report.aliases.iter())
        .filter(|(name, _)| !RESERVED.contains(name) && !ASKING.contains(name))
        .collect();
    let functions = wanted(report, &aliases);
    if functions.is_empty() && aliases.is_empty() {
        return None;
    }
    let texts = functions.iter().copied().chain(aliases.iter().map(|(_, alias)| *alias));
    let named: BTreeSet<&[u8]> = texts.flat_map(names).collect();
    let named = variables.into_iter().filter(|variable| named.contains(variable.name.as_bytes()));
    let (secret, variables): (Vec<_>, Vec<_>) = named.partition(|variable| variable.is_secret);
    let secret = secret.iter().map(|variable| variable.name.to_owned()).collect();
    // The shell was told of this file by a variable. What a function matches may need the option
    // when it is read.
    let mut text =
        format!("builtin unset BASH_ENV\nexec {START_UP}<&-\nbuiltin shopt -s extglob\n")
            .into_bytes();
    for variable in &variables {
        variable.make(&mut text);
    }
    for body in &functions {
        text.extend_from_slice(body);
    }
    text.extend_from_slice(b"builtin shopt -u extglob\n");
    let is_on = |name: &str| report.options.iter().any(|(on, _)| *on == name.as_bytes());
    for (option, _) in
        NEEDS.iter().filter(|(option, signs)| is_on(option) && need(&functions, signs))
    {
        text.extend_from_slice(format!("builtin shopt -s {option}\n").as_bytes());
    }
    for (_, alias) in &aliases {
        text.extend_from_slice(alias);
    }
    if !aliases.is_empty() {
        text.extend_from_slice(b"builtin shopt -s expand_aliases\n");
    }
    Some((text, secret))
}

/// Reports whether one of these stands in one of the functions.
fn need(functions: &[&[u8]], signs: &[&[u8]]) -> bool {
    let has = |body: &[u8]| signs.iter().any(|sign| memchr::memmem::find(body, sign).is_some());
    functions.iter().any(|body| has(body))
}

/// All that can be the name of a variable.
fn names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| !b.is_ascii_alphanumeric() && *b != b'_').filter(|name| !name.is_empty())
}

/// The functions without those that only complete what a person types: their names begin with `_`,
/// and nothing else uses them.
fn wanted<'a>(report: &Report<'a>, aliases: &[&(&[u8], &[u8])]) -> Vec<&'a [u8]> {
    let usable = report.functions.iter().filter(|(name, _)| !RESERVED.contains(name));
    let (mut hidden, mut open): (Vec<_>, Vec<_>) =
        usable.partition(|(name, _)| name.starts_with(b"_"));
    let mut used: BTreeSet<&[u8]> = aliases.iter().flat_map(|(_, alias)| words(alias)).collect();
    let mut bodies = Vec::new();
    while !open.is_empty() {
        used.extend(open.iter().flat_map(|(_, body)| words(body)));
        bodies.extend(open.iter().map(|(_, body)| *body));
        (open, hidden) = hidden.into_iter().partition(|(name, _)| used.contains(name));
    }
    bodies
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_-.:".contains(b);
    text.split(move |b| !part(b)).filter(|word| word.starts_with(b"_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_completes_is_left_out_and_what_is_used_stays() {
        let bytes = b"haft:variables\0haft:functions\0\
            conda\0conda () { __exe; }\n\0__exe\0__exe () { _deep \"$@\"; }\n\0_deep\0_deep () { :; }\n\0\
            _git\0_git () { _other; }\n\0_other\0_other () { :; }\n\0pwd\0pwd () { echo x; }\n\0\
            _b\0_b () { :; }\n\0\
            haft:aliases\0{\0alias {='echo no'\n\0ll\0alias ll='_b; ls -l'\n\0rm\0alias rm='rm -i'\n\0\
            haft:variables of functions\0haft:options\0haft:end\0";
        let (text, _) = text(&Report::read(bytes).unwrap(), Vec::new()).unwrap();
        let text = String::from_utf8(text).unwrap();
        for there in ["conda ()", "__exe ()", "_deep ()", "_b ()", "alias ll=", "expand_aliases"] {
            assert!(text.contains(there), "{there} in {text}");
        }
        for gone in ["_git", "_other", "pwd", "rm -i", "echo no"] {
            assert!(!text.contains(gone), "{gone} in {text}");
        }
        let none = b"haft:variables\0haft:functions\0_git\0_git () { :; }\n\0haft:aliases\0\
            haft:variables of functions\0haft:options\0haft:end\0";
        assert_eq!(super::text(&Report::read(none).unwrap(), Vec::new()), None);
    }
}
