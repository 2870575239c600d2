//! Tells options from operands, as the program that gets them does.
//!
//! **Invariant:** an option is taken only as it stands in the table; one that is cut short, not
//! known, or only known when the script runs is a fault.

use super::words::Arg;
use crate::table::{Entry, Takes, Trait, Use};

/// What the words of a program are.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Options without their dashes, what they are, and their values.
    pub options: Vec<(String, Use, Option<Arg>)>,
    pub operands: Vec<Arg>,
    /// How many words were looked at; the rest stands behind the first operand.
    pub count: usize,
    /// Why something of it is not known.
    pub faults: Vec<String>,
    /// Where operands begin behind `--`.
    pub is_ended: bool,
    /// Words may be options whose values name any file.
    pub is_open: bool,
}

impl Parsed {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(own, ..)| own == name)
    }
}

/// Reads the words behind a program's name. With [`Trait::Stop`] or [`Trait::Sub`] it ends before the first operand.
pub(crate) fn parse(entry: &Entry, args: &[Arg]) -> Parsed {
    parse_as(entry, args, entry.is(Trait::Stop) || entry.is(Trait::Sub))
}

/// The same; `stops` says whether it ends before the first operand.
pub(crate) fn parse_as(entry: &Entry, args: &[Arg], stops: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        if parsed.is_ended {
            parsed.operands.push(arg.clone());
            continue;
        }
        let start = arg.value.start();
        let is_option = start.starts_with('-') && !arg.is_split && start != "-";
        if arg.known() == Some("--") {
            parsed.is_ended = true;
            if stops {
                break;
            }
        } else if is_option {
            option(entry, arg, args, &mut at, &mut parsed);
        } else if stops {
            at -= 1;
            break;
        } else {
            if arg.known() != Some("-") && arg.may_begin('-') {
                may_be_option(entry, arg, &mut parsed);
            }
            parsed.operands.push(arg.clone());
        }
    }
    parsed.count = at;
    parsed
}

/// An operand that may be an option when it is known.
fn may_be_option(entry: &Entry, arg: &Arg, parsed: &mut Parsed) {
    let is_name = arg.is_pattern && !arg.is_split && !arg.is_odd;
    let is_mild = entry.is(Trait::Mild) || entry.is(Trait::MildHere) && !arg.text.contains('/');
    if is_name && is_mild {
        return;
    }
    if !entry.is(Trait::Tame) {
        parsed.faults.push(format!("{} may become an option", arg.text));
    }
    parsed.is_open |= arg.is_split || arg.is_pattern;
}

/// Reads a word that begins with a dash.
fn option(entry: &Entry, arg: &Arg, args: &[Arg], at: &mut usize, parsed: &mut Parsed) {
    let text = arg.value.start().to_owned();
    let is_whole = arg.known().is_some();
    if arg.is_odd {
        return parsed.faults.push(format!("{} runs what it stands for", arg.text));
    }
    let number = &text[1..];
    if entry.takes_numbers
        && is_whole
        && !number.is_empty()
        && number.bytes().all(|c| c.is_ascii_digit())
    {
        return;
    }
    let words = match text.strip_prefix("--") {
        None if entry.is(Trait::OneDash) => text.strip_prefix('-'),
        words => words,
    };
    let Some(words) = words else { return letters(entry, arg, args, at, parsed) };
    let (name, is_joined) = match words.split_once('=') {
        Some((name, _)) => (name, true),
        None => (words, false),
    };
    let found = entry.long.get(name).copied().filter(|_| is_joined || is_whole);
    let number = name.get(1..).filter(|rest| {
        entry.is(Trait::OneDash)
            && rest.bytes().all(|c| c.is_ascii_digit())
            && is_whole
            && !is_joined
    });
    if found.is_none() && number.is_some() && entry.long.contains_key(&name[..1]) {
        return parsed.options.push((name[..1].to_owned(), Use::Text, None));
    }
    let Some((takes, what)) = found else {
        return parsed.faults.push(format!("the option {} is not known", arg.text));
    };
    let head = &text[..text.len() - words.len() + name.len()];
    let value = match (takes, is_joined) {
        (Takes::Nothing, true) => {
            return parsed.faults.push(format!("the option {head} takes no value"));
        }
        (Takes::Nothing | Takes::Joined, false) => None,
        (_, true) => Some(arg.behind(&format!("{head}="))),
        (Takes::Value, false) => next(entry, head, args, at, parsed),
    };
    parsed.options.push((name.to_owned(), what, value));
}

/// Reads options of one letter each.
fn letters(entry: &Entry, arg: &Arg, args: &[Arg], at: &mut usize, parsed: &mut Parsed) {
    let text = arg.value.start().to_owned();
    let is_whole = arg.known().is_some();
    let mut rest = text[1..].chars();
    let mut seen = "-".to_owned();
    while let Some(letter) = rest.next() {
        seen.push(letter);
        let Some(&(takes, what)) = entry.short.get(&letter) else {
            return parsed.faults.push(format!("the option -{letter} is not known"));
        };
        let is_last = rest.as_str().is_empty() && is_whole;
        let value = match takes {
            Takes::Nothing => None,
            Takes::Value if is_last => next(entry, &format!("-{letter}"), args, at, parsed),
            Takes::Joined if is_last => None,
            Takes::Value | Takes::Joined => Some(arg.behind(&seen)),
        };
        parsed.options.push((letter.to_string(), what, value));
        if takes != Takes::Nothing {
            return;
        }
    }
    if !is_whole {
        parsed.faults.push(format!("{} may become another option", arg.text));
    }
}

/// The value that stands in the next word.
fn next(
    entry: &Entry,
    name: &str,
    args: &[Arg],
    at: &mut usize,
    parsed: &mut Parsed,
) -> Option<Arg> {
    let Some(value) = args.get(*at) else {
        parsed.faults.push(format!("the option {name} has no value"));
        return None;
    };
    *at += 1;
    let is_tame = entry.is(Trait::Tame);
    // What follows is read in another way where the pattern becomes several words, or none.
    if is_tame && (value.is_split || value.is_pattern && value.may_begin('-')) {
        parsed.is_open = true;
    } else if value.is_split || value.is_pattern && !is_tame {
        parsed.faults.push(format!("{} may become several words", value.text));
    }
    let is_number = value.value.is_number();
    if value.value.start().starts_with('-') && !is_number && !is_tame {
        parsed.faults.push(format!("{} may be an option of its own", value.text));
    }
    Some(value.clone())
}
