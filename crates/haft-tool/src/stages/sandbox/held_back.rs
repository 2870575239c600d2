//! Telling the model that a command failed because it was confined, and how to ask for more.
//!
//! **Invariant:** nothing is run again; only what failed is told of, once, with what its own words name.

use haft_host::{Level, Limits, Net};
use haft_net::{Refused, Why};
use haft_types::{HostPath, Outcome, Part, Status};
use serde_json::json;

/// How many bytes of the end of what a command said are looked through.
const LOOKED: usize = 16 << 10;

/// Most refused hosts, and most protected paths, that are named.
const NAMED: usize = 10;
/// How many words of a line are looked at.
const WORDS: usize = 50;

/// What programs say where they may not write.
const WRITING: &[&str] = &[
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "eacces",
    "erofs",
    "eperm",
];

/// What they say beside that where they would only have read.
const READING: &[&str] =
    &["for reading", "cannot open directory", "cannot read", "cannot access", "cannot stat"];

/// Programs that write no file that they name.
const READERS: &[&str] = &[
    "awk",
    "cat",
    "cmp",
    "cut",
    "diff",
    "du",
    "file",
    "find",
    "grep",
    "head",
    "jq",
    "less",
    "ls",
    "md5sum",
    "nl",
    "od",
    "rg",
    "sha256sum",
    "stat",
    "strings",
    "tail",
    "tree",
    "wc",
    "xxd",
];

/// What they say of a single file that stays as it is.
const HELD: &[&str] = &["device or resource busy", "read-only file system", "ebusy", "erofs"];

/// What they say of a file that is hidden.
const UNREAD: &[&str] = &["permission denied", "eacces", "can only add regular files"];

/// What they say where they reach no host.
const CONNECTING: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "couldn't connect",
    "failed to connect",
    "failed to lookup",
    "getaddrinfo",
    "name or service not known",
    "name resolution",
    "network is unreachable",
    "network unreachable",
    "no such host",
    "eai_again",
    "enotfound",
    "dns error",
];

/// Adds what is to be told.
pub(super) fn tell(
    outcome: Outcome,
    limits: &Limits,
    refused: &[Refused],
    lives_on: bool,
) -> Outcome {
    let failed = outcome.status == Status::Failed;
    let words = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    let text = outcome.content.iter().filter_map(words).collect::<Vec<_>>().join("\n");
    let start = text.ceil_char_boundary(text.len().saturating_sub(LOOKED));
    let text = &text[start..];
    // Some go on behind it as if nothing were.
    if let Some(note) = kept(text, limits).or_else(|| unread(text, limits)) {
        return noted(outcome, &note);
    }
    if !failed && refused.is_empty() {
        return outcome;
    }
    let lines = |words: &[&str]| -> Option<&str> {
        text.lines().rev().find(|line| {
            let line = line.to_lowercase();
            words.iter().any(|word| says(&line, word))
        })
    };
    let (wrote, connected) =
        (lines(WRITING).filter(|_| failed), lines(CONNECTING).filter(|_| failed));
    if wrote.is_none() && connected.is_none() && refused.is_empty() {
        return outcome;
    }
    let named = wrote.and_then(path);
    let is_reading = wrote.is_some_and(reads);
    // In the sandbox all else can be read that can be read outside.
    if is_reading && !limits.reads_only() && connected.is_none() && refused.is_empty() {
        return outcome;
    }
    let needs = needs(named.filter(|_| !is_reading), connected, refused);
    let told: Vec<String> = refused.iter().take(NAMED).map(ToString::to_string).collect();
    let mut told =
        if told.is_empty() { String::new() } else { format!("; refused: {}", told.join(", ")) };
    if refused.iter().any(|one| !is_web(one)) {
        told.push_str(
            " (needs reaches ports 80 and 443 alone; others want unsandboxed, or sandbox.hosts in the \
             person's settings)",
        );
    }
    let held = held(limits);
    if needs.is_empty() {
        let way = "name in needs what it has to reach, or set unsandboxed: both ask";
        return noted(outcome, &format!("{held}{told}. If that is why it failed, {way}"));
    }
    let needs = serde_json::Value::Object(needs);
    let how = if lives_on { "without session and with needs" } else { "with needs" };
    noted(outcome, &format!("{held}{told}. If that is why it failed, call it again {how} {needs}"))
}

/// Whether a line says that something could not be read.
fn reads(line: &str) -> bool {
    let lower = line.to_lowercase();
    let program = lower.split(':').next().and_then(|name| name.rsplit('/').next());
    READING.iter().any(|words| says(&lower, words))
        || program.is_some_and(|program| READERS.contains(&program.trim()))
}

/// Whether `needs` could name it: it stands for these ports alone.
const fn is_web(refused: &Refused) -> bool {
    matches!(refused.port, 80 | 443)
}

/// What is to be named for it to go through.
fn needs(
    path: Option<&str>,
    connected: Option<&str>,
    refused: &[Refused],
) -> serde_json::Map<String, serde_json::Value> {
    let mut needs = serde_json::Map::new();
    if let Some(path) = path {
        needs.insert("write".to_owned(), json!([folder(path)]));
    }
    let listed = refused.iter().filter(|one| matches!(one.why, Why::NotListed) && is_web(one));
    let mut hosts: Vec<&str> = listed.map(|one| one.host.as_str()).collect();
    hosts.dedup();
    if hosts.is_empty() {
        hosts.extend(connected.map(|line| host(line).unwrap_or("NAME")));
    }
    if !hosts.is_empty() {
        needs.insert("hosts".to_owned(), json!(hosts));
    }
    needs
}

/// Says what could not be changed that is protected.
fn kept(text: &str, limits: &Limits) -> Option<String> {
    let places = protected(text, limits);
    let (named, needs) = (places.join(", "), json!({ "write": places }));
    (!places.is_empty()).then(|| {
        format!(
            "protected, so commands cannot change it: {named}. So the command's work is not whole; \
             if that is wanted, run it again with needs {needs}, and what else is named"
        )
    })
}

/// The outcome with a line of its own.
fn noted(mut outcome: Outcome, note: &str) -> Outcome {
    match outcome.content.last_mut() {
        Some(Part::Text { text }) => {
            text.push_str("\n[");
            text.push_str(note);
            text.push(']');
        }
        _ => outcome.content.push(Part::text(format!("[{note}]"))),
    }
    outcome.notes.push(format!("[{note}]"));
    outcome
}

/// Whether a path is at or below a place.
fn is_at(path: &str, place: &HostPath) -> bool {
    HostPath::new(path.as_bytes(), place.style()).is_ok_and(|path| path.is_within(place))
}

/// The folder of a path: what is not there can only be made where that is writable.
fn folder(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => path,
        Some((folder, _)) => folder,
    }
}

/// What a text says could not be changed that is protected.
fn protected(text: &str, limits: &Limits) -> Vec<String> {
    named(text, HELD, |word| {
        let paths = limits.guard.folders.iter().filter_map(|folder| folder.join(word).ok());
        let held = |path: &HostPath| limits.protected.iter().any(|of| path.is_within(of));
        paths.filter(held).map(|path| path.text().into_owned()).next()
    })
}

/// Says what could not be read that is hidden.
fn unread(text: &str, limits: &Limits) -> Option<String> {
    let is_any = |all: &[HostPath], path: &str| all.iter().any(|one| is_at(path, one));
    let ends = |place: &HostPath, word: &str| {
        place.text().strip_suffix(word).is_some_and(|before| before.ends_with('/'))
    };
    let is_key = |word: &str| {
        let word = format!("/{word}/");
        limits.guard.keys.iter().any(|key| word.contains(&format!("/{key}/")))
    };
    let is_hidden = |word: &str| {
        let hidden = if word.starts_with('/') {
            is_any(&limits.hidden, word)
        } else {
            limits.hidden.iter().any(|place| ends(place, word.trim_start_matches("./")))
        };
        (hidden || is_key(word)) && !is_any(&limits.shown, word)
    };
    let places = named(text, UNREAD, |word| is_hidden(word).then(|| word.to_owned()));
    (!places.is_empty()).then(|| {
        format!(
            "hidden from commands in the sandbox: {}. Go on without, or, if it has to be read, say why \
             and set unsandboxed: that asks",
            places.join(", ")
        )
    })
}

/// What words in lines that say one of these stand for.
fn named(text: &str, says_so: &[&str], of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let lower = line.to_lowercase();
        if !says_so.iter().any(|word| says(&lower, word)) {
            continue;
        }
        let words = line.split(is_end).filter(|word| !word.is_empty() && word.len() <= 4096);
        for word in words.take(WORDS) {
            found.extend(of(word).filter(|path| !found.contains(path)));
        }
        if found.len() >= NAMED {
            break;
        }
    }
    found
}

/// Whether a character stands between the names of a message.
fn is_end(c: char) -> bool {
    c.is_whitespace() || "'\"`:,;()[]<>\u{2018}\u{2019}".contains(c)
}

/// Whether a line says it, and not a longer word that it is a part of.
fn says(line: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(words).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + words.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

/// What held it.
fn held(limits: &Limits) -> String {
    let net = match limits.net {
        Net::Off => "connect to nothing",
        Net::Port(_) if limits.level == Some(Level::Landlock) => {
            "connect only to the hosts that it was allowed, and to one port of any machine"
        }
        Net::Port(_) => "connect only to the hosts that it was allowed",
        Net::On => "connect to everything",
    };
    if limits.reads_only() {
        return format!(
            "it only looks, as far as haft can tell, so it could change no file and {net}"
        );
    }
    let folders: Vec<String> = limits.writable().map(|path| path.text().into_owned()).collect();
    format!("it ran in the sandbox: it could write only in {}, and {net}", folders.join(", "))
}

/// The absolute path that a line names.
fn path(line: &str) -> Option<&str> {
    let path = line.split(is_end).rev().find(|word| word.starts_with('/') && word.len() > 1)?;
    (path.len() <= 4096).then_some(path)
}

/// The host that a line names.
fn host(line: &str) -> Option<&str> {
    let is_end = |c: char| c.is_whitespace() || "'\"`:,;()[]<>/".contains(c);
    let is_name = |word: &&str| {
        word.len() <= 253
            && word.contains('.')
            && !word.ends_with('.')
            && word.split('.').all(|label| {
                !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            })
            && word.bytes().any(|b| b.is_ascii_alphabetic())
    };
    line.split(is_end).rev().find(is_name)
}

#[cfg(test)]
mod tests {
    use haft_host::Guard;
    use haft_types::Style;

    use super::*;

    #[test]
    fn what_a_failure_names_is_what_can_be_asked_for() {
        for (line, named) in [
            ("touch: cannot touch '/etc/x y': Read-only file system", "/etc/x"),
            ("bash: line 1: /opt/a: Permission denied", "/opt/a"),
            ("PermissionError: [Errno 13] Permission denied: '/var/lib/x'", "/var/lib/x"),
        ] {
            assert_eq!(path(line), Some(named));
        }
        for (line, named) in [
            ("curl: (6) Could not resolve host: example.org", "example.org"),
            (
                "fatal: unable to access 'https://git.example.org/x/': Could not resolve host: git.example.org",
                "git.example.org",
            ),
            (
                "npm error request to https://registry.example.org/x failed, getaddrinfo ENOTFOUND registry.example.org",
                "registry.example.org",
            ),
        ] {
            assert_eq!(host(line), Some(named));
        }
        assert_eq!((path("Permission denied"), host("network is unreachable")), (None, None));
    }

    #[test]
    fn only_what_failed_for_it_is_told_of() {
        let write = vec![HostPath::new(b"/w", Style::Posix).unwrap()];
        let limits = Limits { write, ..Limits::default() };
        let failed = |text: &str| Outcome { status: Status::Failed, ..Outcome::text(text) };
        let told = |outcome: Outcome| tell(outcome, &limits, &[], false).content;
        let text = |text: &str| vec![Part::text(text)];
        assert_eq!(told(failed("3 tests failed")), text("3 tests failed"));
        assert_eq!(told(Outcome::text("x: Permission denied")), text("x: Permission denied"));
        assert_eq!(
            told(failed("cp: /etc/x: Permission denied")),
            text(
                "cp: /etc/x: Permission denied\n[it ran in the sandbox: it could write only in /w, and \
             connect to nothing. If that is why it failed, call it again with needs \
             {\"write\":[\"/etc\"]}]"
            )
        );
        for line in [
            "cat: /etc/shadow: Permission denied",
            "ls: cannot open directory '/root': Permission denied",
            "cp: cannot open '/etc/shadow' for reading: Permission denied",
            "/usr/bin/grep: /etc/shadow: Permission denied",
        ] {
            assert_eq!(told(failed(line)), text(line), "writing more would not help it");
        }
        let looks = Limits { write: Vec::new(), ..limits.clone() };
        let told = tell(failed("cat: /opt/x: Permission denied"), &looks, &[], false).content;
        let said = format!("{told:?}");
        assert!(
            said.contains("or set unsandboxed: both ask") && !said.contains("write\\"),
            "{said}"
        );
    }

    #[test]
    fn what_is_hidden_or_refused_is_told_with_what_would_help() {
        let write = vec![HostPath::new(b"/w", Style::Posix).unwrap()];
        let limits = Limits { write, ..Limits::default() };
        let failed = |text: &str| Outcome { status: Status::Failed, ..Outcome::text(text) };
        let hidden = [b"/home/me/.ssh".as_slice(), b"/w/sub/id_rsa"];
        let hidden = hidden.map(|path| HostPath::new(path, Style::Posix).unwrap()).to_vec();
        let guard =
            Guard { keys: vec![".netrc".into(), ".docker/config.json".into()], ..Guard::default() };
        let hides = Limits { hidden, guard, ..limits.clone() };
        for (line, named) in [
            ("cat: /home/me/.ssh/x: Permission denied", "/home/me/.ssh/x"),
            ("grep: ./sub/id_rsa: Permission denied", "./sub/id_rsa"),
            ("error: a/.netrc: can only add regular files, symbolic links", "a/.netrc"),
            (
                "Error: EACCES: permission denied, open 'x/.docker/config.json'",
                "x/.docker/config.json",
            ),
        ] {
            let said = format!("{:?}", tell(failed(line), &hides, &[], false).content);
            assert!(
                said.contains(&format!("hidden from commands in the sandbox: {named}. Go")),
                "{said}"
            );
        }
        let refused = |port| Refused { host: "a.org".into(), port, why: Why::NotListed, times: 1 };
        let one =
            |port| format!("{:?}", tell(failed("no"), &limits, &[refused(port)], false).content);
        assert!(one(443).contains("hosts") && !one(443).contains("ports 80 and 443 alone"));
        assert!(
            !one(22).contains("{\\\"hosts") && one(22).contains("ports 80 and 443 alone"),
            "{}",
            one(22)
        );
        let said = tell(failed("cat: sub/rsa: Permission denied"), &hides, &[], false).content;
        assert!(!format!("{said:?}").contains("hidden"), "{said:?}");
    }
}
