//! Scripts as written, beside what bash makes of them.
//!
//! bash prints a function in a form of its own: quotes are kept, but everything else is laid out
//! anew. Both texts must hold the same commands.

use std::{
    io::Write as _,
    process::{Command as Process, Stdio},
};

use haft_shell::{Command, Direction, Fault, Kind, Piece, Script, Word, parse};
use proptest::prelude::*;

fn read(text: &str) -> Result<Script, Fault> {
    parse(text, &mut || true)
}

/// The text as bash lays it out, without running anything of it; none where bash does not take it.
fn laid_out(text: &str) -> Option<String> {
    let mut child = Process::new("bash")
        .args(["--norc", "--noprofile", "--pretty-print", "/dev/stdin"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    // What it has to say is an error, or a here-document without its end.
    let is_fine = output.status.success() && output.stderr.is_empty();
    is_fine.then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// A word in a form that does not tell where it stood.
fn shown(word: &Word) -> String {
    let mut all = String::new();
    for piece in &word.pieces {
        let part = match piece {
            // A test is a command of the grammar's own, or a word.
            Piece::Text { text, .. } if text == "[" => text.clone(),
            Piece::Text { text, quoted: true } => format!("{text:?}"),
            Piece::Text { text, quoted: false } => text.clone(),
            Piece::Output { commands, quoted } => format!("$({:?}{quoted})", commands.len()),
            Piece::Process { commands } => format!("<({})", commands.len()),
            Piece::Arithmetic { .. } => "$(())".to_owned(),
            other => format!("{other:?}"),
        };
        all.push_str(&part);
    }
    all
}

/// What must be the same: the simple commands, and what is written to.
pub(crate) fn essence(script: &Script) -> Vec<String> {
    let words = |command: &Command| -> Vec<_> { command.words.iter().map(shown).collect() };
    let writes = |command: &Command| -> Vec<_> {
        let files = command.redirects.iter().filter(|redirect| {
            matches!(redirect.how, Direction::Write | Direction::Both | Direction::Read)
        });
        files.map(|redirect| (redirect.how, shown(&redirect.target))).collect()
    };
    let names = |command: &Command| -> Vec<_> {
        command.assignments.iter().map(|a| a.name.clone()).collect()
    };
    let simple = script.commands.iter().filter(|command| command.kind == Kind::Simple);
    let mut all: Vec<_> = simple
        .map(|command| format!("{:?} {:?}", names(command), words(command)))
        .filter(|told| told != "[] []")
        .collect();
    // Of `[ a ] > f` the grammar makes two commands, and of `>f [ a ]` one.
    let written = script.commands.iter().flat_map(writes);
    all.extend(written.map(|(how, file)| format!("{how:?} {file}")));
    all.sort();
    all
}

/// Scripts that everybody writes; each must be read.
pub(crate) const PLAIN: &str = include_str!("plain.txt");

#[test]
fn what_is_read_is_what_bash_reads() {
    for text in PLAIN.split("\n---\n") {
        let own = read(text).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
        let theirs = laid_out(text).unwrap_or_else(|| panic!("bash does not take {text}"));
        let again = match read(&theirs) {
            Ok(again) => again,
            // bash puts what follows a here-document behind it, which the grammar does not take.
            Err(_) if text.contains("<<EOF |") || text.contains("<<E &&") => continue,
            Err(fault) => panic!("{text}\n{theirs}\n{fault}"),
        };
        assert_eq!(essence(&own), essence(&again), "{text}\n{theirs}");
    }
}

/// Pieces of scripts; what they make together is mostly wrong, and sometimes only nearly.
const PIECES: &[&str] = &[
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    ">",
    ">>",
    "<",
    ">&",
    "<&",
    "<>",
    ">|",
    "&>",
    "<<<",
    "\\<",
    " 0<",
    " - ",
    "\n\\a",
    "\nE\n: '\nE\n",
    "<<E\nx\nE\n",
    "<<'E'\n$(x)\nE\n",
    "<<-E\n\tE\n",
    "<<E",
    "\nE\n",
    "2>&1",
    "0",
    "3",
    "-",
    "'",
    "\"",
    "\\",
    "\\\n",
    "$",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "{a,b}",
    "{1..3}",
    ",",
    "..",
    "ls",
    "a",
    "b=c",
    "b+=",
    "~",
    "*",
    "?",
    "[",
    "]",
    "#",
    " #",
    "if ",
    "then ",
    "else ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    "esac",
    ";;",
    "a)",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "((",
    "))",
    "$((",
    "${",
    "${x",
    "${x:-",
    "${#",
    ":-",
    "$x",
    "$1",
    "$@",
    "$$",
    "$$ ",
    "x$$",
    "$'",
    "\\n",
    "\\'",
    "! ",
    "!",
    "f() ",
    "function f ",
    "<(",
    ">(",
    "time ",
    "export ",
    "declare -a ",
    "unset ",
    "a[1]=",
    "=(",
    "=~",
    "=",
    "EOF",
    "é",
    "\u{a0}",
    "\r",
    "\t",
    "coproc ",
    "@(",
    "%",
    "^",
];

fn text() -> impl Strategy<Value = String> {
    let made =
        prop::collection::vec(prop::sample::select(PIECES), 1..14).prop_map(|all| all.concat());
    let plain: Vec<&'static str> = PLAIN.split("\n---\n").collect();
    let changed = (
        prop::sample::select(plain),
        prop::collection::vec(
            (any::<prop::sample::Index>(), 0..3, prop::sample::select(PIECES)),
            1..4,
        ),
    );
    let changed = changed.prop_map(|(text, changes)| {
        let mut text = text.to_owned();
        for (at, how, piece) in changes {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            let to = if how == 0 { text.ceil_char_boundary((at + 1).min(text.len())) } else { at };
            text.replace_range(at..to, if how == 2 { "" } else { piece });
        }
        text
    });
    let changed = changed.boxed();
    let joined = prop::collection::vec(changed.clone(), 2..4).prop_map(|all| all.join("\n"));
    prop_oneof![made, changed, joined]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_read_in_another_way_than_by_bash(text in text()) {
        let Ok(own) = read(&text) else { return Ok(()) };
        let Some(theirs) = laid_out(&text) else { return Ok(()) };
        let Ok(again) = read(&theirs) else { return Ok(()) };
        // Behind a here-document within a construct bash prints no `;` between two commands.
        if text.contains("<<") && own.commands.len() > again.commands.len() {
            return Ok(());
        }
        prop_assert_eq!(essence(&own), essence(&again), "{}\n-- bash:\n{}", text, theirs);
    }
}

/// Pieces of words; nothing of them runs, opens or expands anything.
const QUOTES: &[&str] = &[
    "a",
    "b c",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "\\\\",
    " ",
    "\\n",
    "\\x41",
    "$'",
    "\\'",
    "{",
    "}",
    "{a,b}",
    "{1..3}",
    "{x..z}",
    "{09..11}",
    "{5..1..2}",
    ",",
    "..",
    "-",
    "=",
    "#",
    "%",
    "é",
    "\\u00e9",
    ":",
    "/",
    "+",
    "@",
    "\t",
    "\\\n",
    "{,}",
    "{a,{b,c}}",
    "{-1..1}",
    "{a",
    "b}",
];

/// The words that bash makes of a text; none where it does not take it.
fn made(text: &str) -> Option<Vec<String>> {
    let output = Process::new("bash")
        .args([
            "--norc",
            "--noprofile",
            "-f",
            "-c",
            &format!("set -- {text}\nprintf '%s\\0' \"$@\""),
        ])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.status.success() || !output.stderr.is_empty() {
        return None;
    }
    let all = String::from_utf8(output.stdout).ok()?;
    Some(all.split_terminator('\0').map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn words_are_those_of_bash(pieces in prop::collection::vec(prop::sample::select(QUOTES), 1..10)) {
        let text = format!("set -- {}", pieces.concat());
        let Ok(script) = read(&text) else { return Ok(()) };
        let [command] = &script.commands[..] else { return Ok(()) };
        let words: Option<Vec<_>> = command.words[2..].iter().map(Word::literal).collect();
        let Some(mut words) = words else { return Ok(()) };
        let Some(theirs) = made(&pieces.concat()) else { return Ok(()) };
        // printf writes one empty word where there is none.
        if words.is_empty() {
            words.push(String::new());
        }
        prop_assert_eq!(words, theirs, "{}", text);
    }
}

/// Whether bash takes a text for a script; nothing of it is run.
fn is_taken(text: &str) -> bool {
    let mut bash = Process::new("bash");
    let output = bash.args(["--norc", "--noprofile", "-n", "-c", "--", text]).output().unwrap();
    output.status.success()
}

/// Scripts that the grammar takes and bash does not.
const REJECTED: &[&str] = &[
    "ls ;; pwd",
    "ls ;;",
    "ls ;& pwd",
    "ls ;;& pwd",
    "x=1 ;; ls",
    "[[ a ]] ;;",
    "(ls ;;)",
    "echo $(ls ;; pwd)",
    "if ls ;; then pwd; fi",
    "{ }",
    "f() { }",
    "ls && { }",
    "( )",
    "if ls; then fi",
    "if ls; then pwd; else fi",
    "if ls; then pwd; elif ls; then fi",
    "while ls; do done",
    "for i in a; do done",
    "for i in a; do # none\ndone",
    "in",
    "in a b",
    "ls; in",
    "ls | in wc",
    "ls | ! wc",
    "time | cat",
    "time && ls",
    "time &",
    "time in ls",
    "( time )",
    "case a in a) ls esac",
    "case a in ; a) ls;; esac",
    "case a & in a) ls;; esac",
    "case \n a in a) ls;; esac",
    "for i in a & do ls; done",
    "for \n i in a; do ls; done",
    "case a in a) x=1 esac",
];

/// Scripts of the same kinds that bash takes.
const TAKEN: &[&str] = &[
    "case a in a) ls;; b) pwd;& *) id;;& c) esac",
    "case a in esac",
    "case a in\na) ;; esac",
    "case a in a) (ls) esac",
    "case a in a) { ls; } esac",
    "case a in a) if ls; then pwd; fi esac",
    "case a\nin\na) ls\nesac",
    "case a in a) ls; esac",
    "! ls | wc",
    "! ls && ! pwd",
    "time ls",
    "time -p ls",
    "time",
    "time; ls",
    "echo in",
    "x=1 in",
    "for in in in; do echo $in; done",
    "f() { ls; }",
    "{ ls; } > f",
    "( ls )",
    "for \\\n i in a; do ls; done",
    "for i in a; do ls & done",
    "while ls & do pwd; done",
    "if ls; then # a\nls; else ls; fi",
    "{ # a\nls\n}",
];

#[test]
fn what_bash_rejects_is_no_script() {
    for text in REJECTED {
        assert!(!is_taken(text), "bash takes {text:?}");
        assert!(read(text).is_err(), "{text:?} is read as {:?}", read(text));
    }
    for text in TAKEN {
        assert!(is_taken(text), "bash rejects {text:?}");
        assert!(read(text).is_ok(), "{text:?}: {:?}", read(text));
    }
}

/// Scripts of which one word is another, is missing, or is one too many.
fn mangled() -> impl Strategy<Value = String> {
    const WHOLE: [&str; 14] = [
        "ls | wc -l",
        "ls && pwd",
        "( ls )",
        "{ ls ; }",
        "if ls ; then pwd ; fi",
        "! ls",
        "if ls ; then pwd ; else id ; fi",
        "for i in a b ; do echo $i ; done",
        "x=1 ls",
        "while ls ; do pwd ; done",
        "case a in a) ls ;; b) pwd ;; esac",
        "f() { ls ; }",
        "ls > f 2>&1",
        "time ls",
    ];
    const WORDS: [&str; 30] = [
        "ls", ";", ";;", ";&", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "if", "then",
        "else", "elif", "fi", "for", "in", "do", "done", "while", "case", "esac", "!", "\n", "> f",
        "time", "x=1",
    ];
    let change = (any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(&WORDS));
    (prop::sample::select(&WHOLE), prop::collection::vec(change, 1..3)).prop_map(
        |(whole, changes)| {
            let mut words: Vec<&str> = whole.split(' ').collect();
            for (at, how, word) in changes {
                let at = at.index(words.len());
                match how {
                    0 => words.insert(at, word),
                    1 if words.len() > 1 => drop(words.remove(at)),
                    _ => words[at] = word,
                }
            }
            words.join(" ")
        },
    )
}

proptest! {
    // The same scripts each time: bash knows more ways to be wrong than are told here.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(600)
    })]
    #[test]
    fn mangled_scripts_that_bash_rejects_are_not_read(text in mangled()) {
        prop_assert!(read(&text).is_err() || is_taken(&text), "{:?}", text);
    }
}
