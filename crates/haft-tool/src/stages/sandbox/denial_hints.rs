//! Tells the model that a command failed because it was confined, and how to ask for more.
//!
//! **Invariant:** nothing is run again. Denied network access is reported from what was counted
//! ([`crate::session::network`]). The words of programs decide only where nothing counts.

use haft_host::{Level, Limits, Net, Tried};
use haft_net::{Refused, Why};
use haft_types::{HostPath, Outcome, Part, Status};
use serde_json::json;

use crate::{
    Job, Session,
    jobs::Ended,
    session::network::{self, Network, Telling},
};

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

/// Those of them that are also said of a socket.
const EPERM: &[&str] = &["operation not permitted", "eperm"];

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

/// What they say where they could not remove it.
const REMOVING: &[&str] = &["cannot remove", "cannot delete", "cannot unlink", "can't remove"];

/// What they say of a file that is hidden.
const UNREAD: &[&str] = &["permission denied", "eacces", "can only add regular files"];

/// What they say where they reach no host; it decides where it is not counted, and else names the host.
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

/// Programs that are given a host by its name alone.
const TAKES_HOST: &[&str] = &[
    "curl", "dig", "getent", "host", "nc", "ncat", "nslookup", "ping", "rsync", "scp", "sftp",
    "ssh", "telnet", "wget",
];

/// What is told in mode plan, where nothing more can be asked for.
const PLANNING: &str = "mode plan is on: it ran without a network where it can change nothing but temporary files and caches; \
                        what it would change belongs into the plan";

/// What is told in mode plan of what ran in an overlay: nothing else says that its changes are gone.
const ON_A_COPY: &str = "mode plan is on: it runs without a network, on a copy of the workspace that is gone when it ends; \
                         what it would change belongs into the plan";

/// What is known of a call beside its outcome.
pub(super) struct About<'a> {
    /// Its command, where it has one.
    pub command: &'a str,
    /// What its programs tried of the network.
    pub tried: Option<Tried>,
    /// What the proxy refused them.
    pub refused: Vec<Refused>,
    /// Whether it was a command of a shell that lives on.
    pub lives_on: bool,
}

/// Adds what is to be told.
pub(super) fn add_hints(
    outcome: Outcome,
    limits: &Limits,
    network: &Network,
    about: &About<'_>,
) -> Outcome {
    let failed = outcome.status == Status::Failed;
    let text = end_of(&outcome);
    let on_network = about.tried.as_ref().and_then(|tried| {
        let (is_told, lives_on) = (!about.refused.is_empty(), about.lives_on);
        let host = named_host(&[&text, about.command]).or_else(|| argument(about.command));
        // Whoever gave up waiting gets no less than whoever failed.
        let failed = !matches!(outcome.status, Status::Done);
        let of = Telling { tried, by: "command", failed, is_told, host, lives_on };
        network::note(network, &of)
    });
    let on_files = files_and_hosts(&text, failed, limits, about);
    if limits.builds_apart {
        let is_held = on_files.is_some() || on_network.is_some();
        return match () {
            () if !limits.overlay.is_empty() => noted(outcome, ON_A_COPY),
            () if is_held => noted(outcome, PLANNING),
            () => outcome,
        };
    }
    let outcome = match on_files {
        Some(note) => noted(outcome, &note),
        None => outcome,
    };
    match on_network {
        Some(note) => noted(outcome, &note),
        None => outcome,
    }
}

/// What is told of a job that has ended.
pub(crate) fn job_tried(session: &Session, job: &Job, ended: &Ended) -> Vec<String> {
    let network = session.map.get::<Network>();
    let refused = network.job_ends(job.id());
    let said = job.since(0).text;
    let host = named_host(&[&said, job.title()]).or_else(|| argument(job.title()));
    let failed = ended.exit != Some(0);
    let is_told = !refused.is_empty();
    let of = |tried| Telling { tried, by: "job", failed, is_told, host, lives_on: false };
    let tried = ended.tried.as_ref().and_then(|tried| network::note(&network, &of(tried)));
    let hosts = is_told.then(|| {
        let needs = serde_json::Value::Object(needs(None, None, &refused));
        let what = refused_ones(&refused);
        format!("the proxy of the sandbox refused it: {what}. If it needs them, start it with needs {needs}")
    });
    hosts.into_iter().chain(tried).collect()
}

/// The end of what a command said.
fn end_of(outcome: &Outcome) -> String {
    let words = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        _ => None,
    };
    let mut text = outcome.content.iter().filter_map(words).collect::<Vec<_>>().join("\n");
    text.drain(..text.ceil_char_boundary(text.len().saturating_sub(LOOKED)));
    text
}

/// The last line that says one of these.
fn line<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    text.lines().rev().find(|line| {
        let line = line.to_lowercase();
        words.iter().any(|word| says(&line, word))
    })
}

/// The host that these texts name, the first that names one: where they say that it was not reached, or by an
/// address.
fn named_host<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let address = |text: &'a str| text.split("://").skip(1).find_map(in_address);
    let of = |text: &&'a str| line(text, CONNECTING).and_then(host).or_else(|| address(text));
    texts.iter().find_map(of)
}

/// The name in what stands behind `://`.
fn in_address(rest: &str) -> Option<&str> {
    let is_end = |c: char| c.is_whitespace() || "/?#'\"`()[]<>,;|&".contains(c);
    let place = rest.split(is_end).next()?;
    let place = place.rsplit('@').next()?;
    host(place.split(':').next()?)
}

/// The host that a program is given which takes one without `://`.
fn argument(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    let takes = |word: &str| {
        TAKES_HOST.contains(&word.rsplit(['/', '(', ';', '&', '|']).next()?).then_some(())
    };
    words.find_map(takes)?;
    let arguments = words.take_while(|word| !word.starts_with(['|', ';', '&', '>', '<']));
    let mut plain = arguments.filter(|word| !word.starts_with('-'));
    plain.find_map(|word| host(word.rsplit('@').next()?.split([':', '/']).next()?))
}

/// What of it failed on files, or on hosts that the proxy knows of.
fn files_and_hosts(
    text: &str,
    failed: bool,
    limits: &Limits,
    About { tried, refused, lives_on, .. }: &About<'_>,
) -> Option<String> {
    // Some go on behind it as if nothing were.
    if let Some(note) = kept(text, limits).or_else(|| unread(text, limits)) {
        return Some(note);
    }
    let counted = tried.as_ref().and_then(|tried| Some((tried.attempts?, tried.is_blind())));
    let is_counted = counted.is_some_and(|(attempts, blind)| !blind || !attempts.is_none());
    let wrote = line(text, WRITING).filter(|_| failed);
    let connected = line(text, CONNECTING).filter(|_| failed && !is_counted);
    let named = wrote.and_then(path);
    // Some of these words are those of a socket that is refused.
    let sockets = counted.is_some_and(|(attempts, _)| attempts.sockets > 0);
    let is_socket =
        wrote.is_some_and(|said| sockets && named.is_none() && line(said, EPERM).is_some());
    let wrote = wrote.filter(|_| !is_socket);
    if wrote.is_none() && connected.is_none() && refused.is_empty() {
        return None;
    }
    let is_reading = wrote.is_some_and(reads);
    // In the sandbox all else can be read that can be read outside.
    if is_reading && !limits.reads_only() && connected.is_none() && refused.is_empty() {
        return None;
    }
    let needs = needs(named.filter(|_| !is_reading), connected, refused);
    let mut told = refused_ones(refused);
    if !told.is_empty() {
        told.insert_str(0, "; refused: ");
    }
    let held = held(limits);
    let why = if failed { "that is why it failed" } else { "it needs that" };
    if needs.is_empty() {
        let way = "name in needs what it has to reach, or set unsandboxed: both ask";
        return Some(format!("{held}{told}. If {why}, {way}"));
    }
    let needs = serde_json::Value::Object(needs);
    let how = if *lives_on { "without session and with needs" } else { "with needs" };
    Some(format!("{held}{told}. If {why}, call it again {how} {needs}"))
}

/// What the proxy refused, in words; empty where that is nothing.
fn refused_ones(refused: &[Refused]) -> String {
    let told: Vec<String> = refused.iter().take(NAMED).map(ToString::to_string).collect();
    let mut told = told.join(", ");
    if refused.iter().any(|one| !is_web(one)) {
        told.push_str(
            " (needs reaches ports 80 and 443 alone; others want unsandboxed, or sandbox.hosts in the \
             person's settings)",
        );
    }
    told
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
    if places.is_empty() {
        return None;
    }
    if text.lines().any(is_gits) {
        return Some(format!("protected, so commands cannot remove it: {}", places.join(", ")));
    }
    let (named, needs) = (places.join(", "), json!({ "write": places }));
    Some(format!(
        "protected, so commands cannot change it: {named}. So the command's work is not whole; if that \
         is wanted, run it again with needs {needs}, and what else is named"
    ))
}

/// Whether a line says that git's own files could not be removed: whoever removes a repository does not
/// want its hooks.
fn is_gits(line: &str) -> bool {
    line.contains(".git") && REMOVING.iter().any(|words| says(&line.to_lowercase(), words))
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
            && !["error", "exception"].iter().any(|end| word.to_lowercase().ends_with(end))
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
        for (command, named) in [
            ("getent hosts example.org > found", Some("example.org")),
            ("cd x && curl -s example.org/a.txt", Some("example.org")),
            ("ssh -p 22 me@git.example.org ls a.txt", Some("git.example.org")),
            ("python3 get.py", None),
            ("curl -s $URL > page.html", None),
        ] {
            assert_eq!(argument(command), named, "{command}");
        }
        let class = "socket.gaierror: [Errno -3] Temporary failure in name resolution";
        assert_eq!(host(class), None, "no host has such a name");
        assert_eq!((path("Permission denied"), host("network is unreachable")), (None, None));
    }

    #[test]
    fn the_host_is_the_one_that_words_or_addresses_name() {
        for (said, command, named) in [
            ("curl: (6) Could not resolve host: a.org", "curl https://b.org/x", Some("a.org")),
            ("", "curl -s 'https://me:key@b.example.org:8080/x?y'", Some("b.example.org")),
            ("", "wget -q http://127.0.0.1:8000/x http://c.org", Some("c.org")),
            ("see main.py", "python3 fetch.py", None),
            ("", "curl http://localhost:3000", None),
        ] {
            assert_eq!(named_host(&[said, command]), named, "{said} {command}");
        }
    }

    #[test]
    fn only_what_failed_for_it_is_told_of() {
        let write = vec![HostPath::new(b"/w", Style::Posix).unwrap()];
        let limits = Limits { write, ..Limits::default() };
        let failed = |text: &str| Outcome { status: Status::Failed, ..Outcome::text(text) };
        let network = Network::default();
        let about = |refused| About { command: "", tried: None, refused, lives_on: false };
        let told =
            |outcome: Outcome| add_hints(outcome, &limits, &network, &about(Vec::new())).content;
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
        let told = add_hints(
            failed("cat: /opt/x: Permission denied"),
            &looks,
            &network,
            &about(Vec::new()),
        )
        .content;
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
        let network = Network::default();
        let told = |text: &str, limits: &Limits, refused| {
            let about = About { command: "", tried: None, refused, lives_on: false };
            format!("{:?}", add_hints(failed(text), limits, &network, &about).content)
        };
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
            let said = told(line, &hides, Vec::new());
            assert!(
                said.contains(&format!("hidden from commands in the sandbox: {named}. Go")),
                "{said}"
            );
        }
        let refused = |port| Refused { host: "a.org".into(), port, why: Why::NotListed, times: 1 };
        let one = |port| told("no", &limits, vec![refused(port)]);
        assert!(one(443).contains("hosts") && !one(443).contains("ports 80 and 443 alone"));
        assert!(
            !one(22).contains("{\\\"hosts") && one(22).contains("ports 80 and 443 alone"),
            "{}",
            one(22)
        );
        let said = told("cat: sub/rsa: Permission denied", &hides, Vec::new());
        assert!(!said.contains("hidden"), "{said}");
    }
}
