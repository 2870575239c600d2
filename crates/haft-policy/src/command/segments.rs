//! A text as its simple commands, for what denies and asks: as haft-shell reads it, which knows
//! quotes, braces and here-documents exactly, and only where it cannot, by [`lexer`](super::lexer).
//!
//! **Invariant:** a command that haft-shell finds is a segment here, with what only the shell will
//! know marked as the lexer marks it.
//!
//! **Does not know:** what words mean.

use haft_shell::{ANY, Command, Direction, FOUND, Kind, ONE, Piece, Redirect, SOME, Setting, Word};

use super::{
    lexer::{self, EXPANDS, Lexed, QUOTED, REPLACED, Segment},
    work::Work,
};
use crate::rules::{command_pattern::GAP, open_pattern::UNKNOWN};

/// The simple commands of a text.
pub(crate) fn of(text: &str) -> Lexed {
    let mut left = Work::new();
    let mut go_on = || left.go_on();
    // A mark of its own would be taken for one of the lexer's.
    let script = match haft_shell::parse(text, &mut go_on) {
        Ok(script) if !text.contains([EXPANDS, QUOTED, REPLACED]) => script,
        _ => return lexer::lex(text),
    };
    let mut lexed = Lexed { functions: script.functions.clone(), ..Lexed::default() };
    for command in &script.commands {
        segments(text, command, &mut lexed);
    }
    lexed
}

/// The commands of a text whose words are known once variables are followed, wrappers and nested
/// scripts looked through: their words, with a mark in the place of what is not known.
pub(crate) fn followed(text: &str) -> Vec<Vec<String>> {
    let mut left = Work::new();
    let mut go_on = || left.go_on();
    let setting = Setting { cwd: "/".to_owned(), home: "/".to_owned(), ..Setting::default() };
    let Ok(reading) = haft_shell::read(text, &setting, &mut go_on) else { return Vec::new() };
    let words = |part: haft_shell::Part| -> Option<Vec<String>> {
        let is_known = part.words.first()?.as_ref().is_some_and(|word| !word.is_empty());
        let times = if part.splits { 2 } else { 1 };
        let unknown = UNKNOWN.to_string().repeat(times);
        // Of each word what it begins with and ends in, where it is not several.
        let is_each = part.shapes.len() + 1 == part.words.len();
        let word = |(at, word): (usize, Option<String>)| match (word, at.checked_sub(1)) {
            (Some(word), _) => word.replace(GAP, ""),
            (None, Some(at)) if is_each => {
                part.shapes[at].replace([ANY, FOUND, ONE, SOME], &unknown)
            }
            (None, _) => unknown.clone(),
        };
        is_known.then(|| part.words.into_iter().enumerate().map(word).collect())
    };
    reading.parts.into_iter().filter_map(words).collect()
}

fn segments(text: &str, command: &Command, lexed: &mut Lexed) {
    let mut segment = Segment::default();
    for assignment in &command.assignments {
        let sign = if assignment.appends { "+=" } else { "=" };
        let values = if assignment.is_array { &[][..] } else { &assignment.values[..] };
        let value: String = values.iter().map(|word| marked(text, word)).collect();
        segment.words.push(format!("{}{sign}{value}", assignment.name));
        if assignment.is_array {
            segment.data.extend(assignment.values.iter().map(|word| marked(text, word)));
        }
    }
    for redirect in &command.redirects {
        redirected(text, redirect, &mut segment);
    }
    let words = command.words.iter().flat_map(|word| split(text, word));
    match command.kind {
        Kind::Simple => segment.words.extend(words),
        Kind::Test => segment.words.extend(std::iter::once("[[".to_owned()).chain(words)),
        // What is compared, counted or gone through is not run, but what stands in it may be.
        Kind::Arithmetic => {
            let inner = text.get(command.span.clone()).unwrap_or_default();
            lexed.segments.extend(lexer::lex(inner).segments);
        }
        Kind::Loop => segment.data.extend(words),
        Kind::Case | Kind::Compound => {}
    }
    for word in &command.words {
        for piece in &word.pieces {
            if let Piece::Arithmetic { text } = piece {
                lexed.segments.extend(lexer::lex(&format!("(({text}))")).segments);
            }
        }
    }
    lexed.segments.push(segment);
}

fn redirected(text: &str, redirect: &Redirect, segment: &mut Segment) {
    match redirect.how {
        Direction::Write => {
            segment.writes = true;
            segment.targets.push(marked(text, &redirect.target));
        }
        Direction::Text => {
            let target = &redirect.target;
            let is_text = target.pieces.iter().all(|piece| matches!(piece, Piece::Text { .. }));
            let raw = text.get(target.span.clone()).filter(|_| !is_text);
            segment.bodies.push(raw.map_or_else(|| marked(text, target), str::to_owned));
        }
        Direction::Both => segment.targets.push(marked(text, &redirect.target)),
        Direction::Read | Direction::Duplicate => {}
    }
}

/// The words that one makes: `$IFS` ends one.
fn split(text: &str, word: &Word) -> Vec<String> {
    let is_blank =
        |piece: &Piece| matches!(piece, Piece::Variable { name, quoted: false } if name == "IFS");
    if !word.pieces.iter().any(is_blank) {
        return vec![marked(text, word)];
    }
    let parts = word.pieces.split(is_blank).filter(|pieces| !pieces.is_empty());
    parts.map(|pieces| joined(text, word, pieces)).collect()
}

/// A word with marks before what is replaced in it.
fn marked(text: &str, word: &Word) -> String {
    joined(text, word, &word.pieces)
}

fn joined(text: &str, word: &Word, pieces: &[Piece]) -> String {
    let mut all = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        match (piece, pieces.get(at + 1)) {
            // What follows does not belong to the name.
            (Piece::Variable { name, quoted }, Some(Piece::Text { text, .. }))
                if text.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric()) =>
            {
                all.extend([mark(*quoted), '{']);
                all.push_str(name);
                all.push('}');
            }
            _ => all.push_str(&shown(text, word, piece)),
        }
    }
    all
}

const fn mark(quoted: bool) -> char {
    if quoted { QUOTED } else { EXPANDS }
}

fn shown(text: &str, word: &Word, piece: &Piece) -> String {
    match piece {
        Piece::Text { text, quoted: true } => text.clone(),
        Piece::Text { text, quoted: false } => {
            let mut all = String::with_capacity(text.len());
            for c in text.chars() {
                all.push(c);
                // Alone it is the word of a test.
                if matches!(c, '*' | '?' | '[') && text != "[" && text != "[[" {
                    all.push(EXPANDS);
                }
            }
            all
        }
        Piece::Tilde(user) => format!("~{EXPANDS}{user}"),
        Piece::Variable { name, quoted } => format!("{}{name}", mark(*quoted)),
        Piece::Expansion { quoted, .. } => {
            let raw = text.get(word.span.clone()).unwrap_or_default();
            format!("{}{{{raw}}}", mark(*quoted))
        }
        Piece::Output { quoted, .. } => format!("{}{REPLACED}", mark(*quoted)),
        Piece::Process { .. } | Piece::Arithmetic { .. } => format!("{EXPANDS}{REPLACED}"),
    }
}
