//! Reading scripts and what they do, beside bash.
//!
//! Invariant: nothing of an input is run: bash lays scripts out anew, and makes words of such that
//! hold no character with which anything could begin.

use std::io::Write as _;
use std::process::{Command as Process, Stdio};

use haft_shell::{Command, Direction, GitFacts, Kind, LOOKING, Piece, Script, Setting, Word};

/// Reading never panics; where a script only reads, bash sees the same commands and words in it.
pub fn shell(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(script) = haft_shell::parse(&text, &mut || true) else { return };
    let reading = haft_shell::effects(&text, &script, &setting(), &mut || true);
    for part in &reading.parts {
        assert!(part.redirected <= part.effects.len());
        assert!(!part.why.is_empty(), "{part:?}");
    }
    if !reading.read_only {
        return;
    }
    if let Some(laid_out) = bash(&["--pretty-print", "/dev/stdin"], &text)
        // These bash writes twice where it lays a text out.
        && !laid_out.contains(['\u{1}', '\u{7f}'])
        && let Ok(again) = haft_shell::parse(&laid_out, &mut || true)
    {
        assert_eq!(essence(&script), essence(&again), "{text}\n-- bash:\n{laid_out}");
    }
    words(&text, &script);
}

/// Where repositories and toolchains start nothing.
fn setting() -> Setting {
    let git =
        GitFacts { no_fetches: true, no_filters: true, no_drivers: true, no_signatures: true };
    Setting {
        cwd: "/w".to_owned(),
        home: "/h".to_owned(),
        git_is_held: true,
        variables: LOOKING.map(|(name, value)| (name.into(), value.into())).into(),
        git: [("/w".to_owned(), git)].into(),
        plain_toolchains: ["/w".to_owned()].into(),
    }
}

/// What bash says to an input; none where it does not take it.
fn bash(words: &[&str], input: &str) -> Option<String> {
    let mut child = Process::new("bash")
        .args(["--norc", "--noprofile"])
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash is there");
    // Where it ends early it has said why.
    let _ = child.stdin.take().map(|mut to| to.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("bash ends");
    let is_fine = output.status.success() && output.stderr.is_empty();
    is_fine.then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// The commands, and what they write and read by redirects.
fn essence(script: &Script) -> Vec<String> {
    let files = |command: &Command| -> Vec<String> {
        let is_file = |how| matches!(how, Direction::Write | Direction::Both | Direction::Read);
        let all = command.redirects.iter().filter(|one| is_file(one.how));
        all.map(|one| format!("{:?} {}", one.how, shown(&one.target))).collect()
    };
    let told = |command: &Command| {
        let names: Vec<_> = command.assignments.iter().map(|one| &one.name).collect();
        let words: Vec<_> = command.words.iter().map(shown).collect();
        format!("{names:?} {words:?} {:?}", files(command))
    };
    let simple = script.commands.iter().filter(|command| command.kind == Kind::Simple);
    let mut all: Vec<_> = simple.map(told).collect();
    all.sort();
    all
}

fn shown(word: &Word) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text { text, quoted: true } => format!("{text:?}"),
        Piece::Text { text, quoted: false } => text.clone(),
        Piece::Output { commands, quoted } => format!("$({}{quoted})", commands.len()),
        Piece::Process { commands } => format!("<({})", commands.len()),
        Piece::Arithmetic { .. } => "$(())".to_owned(),
        other => format!("{other:?}"),
    };
    word.pieces.iter().map(piece).collect()
}

/// Compares the words that are known with those that bash makes of their text.
fn words(text: &str, script: &Script) {
    let simple = script.commands.iter().filter(|command| command.kind == Kind::Simple);
    let known: Vec<&Word> =
        simple.flat_map(|command| &command.words).filter(|word| word.literal().is_some()).collect();
    let (mut sources, mut wanted, mut last) = (Vec::new(), String::new(), None);
    for word in known {
        let Some(source) = text.get(word.span.clone()) else { continue };
        // With these something might begin that is no word.
        if source.contains(['$', '`', '<', '>', '(', ')', ';', '&', '|', '\n', '~', '*', '?', '['])
            || source.is_empty()
        {
            continue;
        }
        // Braces make several words of one text.
        if last.replace(word.span.clone()) != Some(word.span.clone()) {
            sources.push(source);
        }
        wanted.push_str(&word.literal().unwrap_or_default());
        wanted.push('\0');
    }
    if sources.is_empty() {
        return;
    }
    let script = format!("printf '%s\\0' {}", sources.join(" "));
    if let Some(made) = bash(&["-f", "-c", &script], "") {
        assert_eq!(made, wanted, "{script}");
    }
}
