//! What a person forbids in a message, as deny rules: "only touch tests/", "do not run `make`", "no
//! commits".
//!
//! **Invariant:** only fixed forms are read, each at the start of a clause and up to its end. A
//! sentence that asks, quotes, reports or sets a condition offers nothing. It is better to offer
//! nothing than to offer what was not said. Every rule that is offered is one that is understood.
//!
//! **Does not know:** files: the caller says which there are.

mod clause;
#[cfg(test)]
mod tests;

use haft_types::Constraint;

use crate::{Policy, Rules, Scope, Verdict};

/// Most bytes of a message that are read.
const READ: usize = 32 << 10;
/// Most sentences of a message that offer something.
const MOST: usize = 5;
/// The longest sentence that is read, in bytes.
const LONGEST: usize = 400;
/// Most rules of a sentence.
const MOST_RULES: usize = 20;

/// What the sentences of a message offer, in their order. `is_there` says whether a path is one of a
/// file or folder, as the person may write it.
pub fn constraints(message: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<Constraint> {
    let message = &message[..message.floor_char_boundary(READ)];
    let mut all: Vec<Constraint> = Vec::new();
    for sentence in sentences(message) {
        let Some(rules) = clause::rules(sentence, is_there) else { continue };
        let is_new = all.iter().all(|other| other.rules != rules);
        if is_new && rules.len() <= MOST_RULES && are_understood(&rules) {
            all.push(Constraint { sentence: sentence.to_owned(), rules });
        }
        if all.len() == MOST {
            break;
        }
    }
    all
}

impl Policy {
    /// Holds these constraints from now on, and no others.
    pub fn bind(&mut self, constraints: Vec<Constraint>) {
        self.rules.retain(|placed| placed.rule.scope != Scope::Conversation);
        self.problems.retain(|problem| problem.scope != Scope::Conversation);
        let mut rules = Rules::default();
        for constraint in &constraints {
            for rule in &constraint.rules {
                rules.add_said(rule, &constraint.sentence);
            }
        }
        self.extend(&rules);
        self.held = constraints;
    }

    /// The constraints that are held.
    pub fn held(&self) -> &[Constraint] {
        &self.held
    }
}

fn are_understood(texts: &[String]) -> bool {
    let mut rules = Rules::default();
    for text in texts {
        rules.add(Verdict::Deny, Scope::Conversation, text);
    }
    !texts.is_empty() && rules.problems().is_empty()
}

/// The sentences of a message that may be the person's own words to haft: no code, no quotation, no
/// comment.
fn sentences(message: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut fence: Option<&str> = None;
    for line in message.lines() {
        let text = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if !is_foreign(line) => split(bullet(text), &mut all),
            _ => {}
        }
    }
    all
}

/// Whether a line is code or a quotation.
fn is_foreign(line: &str) -> bool {
    let text = line.trim_start();
    line.starts_with("    ")
        || line.starts_with('\t')
        || ["#", ">", "//", "/*", "|", "$ ", "+ ", "--", "<"].iter().any(|s| text.starts_with(s))
}

/// A line of a list without what marks it as one.
fn bullet(line: &str) -> &str {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = number.strip_prefix(". ").or_else(|| number.strip_prefix(") "));
    let number = number.filter(|_| line.starts_with(|c: char| c.is_ascii_digit()));
    let mark = ["- ", "* ", "\u{2022} "].iter().find_map(|mark| line.strip_prefix(mark));
    number.or(mark).unwrap_or(line).trim()
}

/// Cuts a line behind each `.`, `!` and `?` that a blank follows.
fn split<'a>(line: &'a str, all: &mut Vec<&'a str>) {
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let is_end = matches!(c, '.' | '!' | '?')
            && line[end..].chars().next().is_none_or(char::is_whitespace);
        if is_end || end == line.len() {
            let sentence = line[from..end].trim();
            from = end;
            if !sentence.is_empty() && sentence.len() <= LONGEST {
                all.push(sentence);
            }
        }
    }
}
