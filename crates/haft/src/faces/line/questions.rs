//! Questions in line mode: how they are shown, and what answers them.
//!
//! **Invariant:** a key answers only a question that was shown for a while without any typing. A
//! line that was sent after the question answers it. A line that names no option means no, with the
//! line as the reason.

use std::time::{Duration, Instant};

use haft_agent::Command;
use haft_render::{Extent, exact};
use haft_types::{Choice, Reply, When};

use super::{LineMode, keys::Keys};
use crate::{cli::exit::Ending, faces::view::indent};

/// How long a question must stand without anything typed before a key, or a line, answers it.
pub const QUIET: Duration = Duration::from_millis(300);

/// Bytes that are held back while a question is open; with more, all is shown and it is put anew.
const HELD: usize = 16 << 10;

/// The key that goes back to the last field of a form.
pub(super) const CHANGE: char = '<';

/// The answer that a key picks.
pub(super) fn choice(offered: &[Choice], key: char) -> Option<&Choice> {
    offered.iter().find(|choice| choice.key == key.to_ascii_lowercase())
}

/// The answer that a line picks: its key, `yes`, or the first word of its label.
fn named<'a>(offered: &'a [Choice], line: &str) -> Option<&'a Choice> {
    let mut chars = line.chars();
    if let (Some(key), None) = (chars.next(), chars.next()) {
        return choice(offered, key);
    }
    let word = line.to_lowercase();
    let first = |choice: &&Choice| {
        let label = choice.label.to_lowercase();
        label.split(|c: char| !c.is_alphanumeric()).next() == Some(word.as_str())
    };
    // Of several that begin so it is the first: the least that is a yes.
    offered.iter().find(first)
}

/// The keys of a question, for people.
pub(super) fn keys_of(offered: &[Choice]) -> String {
    let keys: Vec<String> = offered.iter().map(|choice| choice.key.to_string()).collect();
    keys.join(", ")
}

/// What a key asks for instead of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    /// All of the question.
    All,
    /// Why it is asked.
    Why,
}

impl More {
    pub(super) const fn of(key: char) -> Option<Self> {
        match key.to_ascii_lowercase() {
            '?' => Some(Self::All),
            'w' => Some(Self::Why),
            _ => None,
        }
    }
}

/// What `haft why` says about a call, as it is shown under its question.
pub(super) fn explanation(text: &str) -> String {
    format!("\n{}\n", indent(&exact(text), "  "))
}

impl LineMode {
    /// True when something is to be said of the answer as soon as nothing is typed for a while.
    pub(super) fn waits(&self) -> bool {
        let typed = !self.draft.is_empty();
        self.keys.is_terminal()
            && !self.ended
            // What is said of the question comes before the key is asked for, or it would stand
            // behind the sign for it.
            && !self.sends.has_query()
            && !self.questions.is_empty()
            && if typed { !self.told && !self.fills() } else { self.asked.is_none() }
    }

    /// Shows it, or holds it back until the open question is settled.
    pub(super) fn show_or_hold(&mut self, text: &str) -> Ending {
        if self.questions.is_empty() {
            return self.show(text);
        }
        self.held.push_str(text);
        if self.held.len() > HELD {
            let held = std::mem::take(&mut self.held);
            self.screen.show(&held)?;
            return self.ask();
        }
        Ok(())
    }

    /// Puts the first open question before the person.
    pub(super) fn ask(&mut self) -> Ending {
        self.ask_up_to(Extent::SCREEN)
    }

    fn ask_up_to(&mut self, extent: Extent) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let (text, offered) = self.view.question(question, extent);
        self.fill_first();
        self.offered = if self.fills() { Vec::new() } else { offered };
        self.stand_anew();
        self.put(&text)
    }

    /// What is to be answered stands from now on.
    pub(super) fn stand_anew(&mut self) {
        (self.stirred, self.asked, self.told) = (Instant::now(), None, false);
        self.put = self.stirred;
    }

    /// Shows what is to be answered, and over a pipe the sign for it.
    pub(super) fn put(&mut self, text: &str) -> Ending {
        if self.keys.is_terminal() {
            return self.show(text);
        }
        if self.fills() {
            self.screen.show(text)?;
            return self.ask_field();
        }
        self.screen.show(&format!("{text}  key: "))?;
        self.screen.stands_alone();
        Ok(())
    }

    /// Shows what a key asks for instead of an answer, and asks for one again.
    pub(super) fn more(&mut self, more: More) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        match more {
            More::All => self.ask_up_to(Extent::ALL),
            More::Why => {
                let question = question.id.clone();
                self.send(Command::Explain { question });
                Ok(())
            }
        }
    }

    /// Shows why the open question is asked, and asks for a key again.
    pub(super) fn explained(&mut self, text: &str) -> Ending {
        if self.questions.is_empty() {
            // Somebody else has answered it meanwhile.
            return self.prompt();
        }
        (self.stirred, self.asked) = (Instant::now(), None);
        self.put(&explanation(text))
    }

    /// Asks for the key: from here on one counts.
    pub(super) fn ask_key(&mut self) -> Ending {
        if !Keys::is_read() {
            self.stirred = Instant::now();
            return Ok(());
        }
        if self.fills() {
            return self.ask_field();
        }
        let told = std::mem::replace(&mut self.told, true);
        if !self.draft.is_empty() {
            return self
                .show("  What you typed stays: with Enter it is no, with it as the reason.\n");
        }
        // Taken before it is shown: who sees the words and presses a key at once is answered, even if
        // this thread had to wait behind the words.
        self.asked = Some(Instant::now());
        self.screen.show(if told {
            "  key: "
        } else {
            "  Press one key, or type what to do instead and Enter: that is no. key: "
        })?;
        self.screen.stands_alone();
        Ok(())
    }

    /// A line that was sent at this moment: an answer where the question stood before the person.
    pub(super) fn answer_line(&mut self, line: &str, sent: Instant) -> Ending {
        let text = line.trim();
        if self.keys.is_terminal() && sent < self.put + QUIET {
            // It was on its way already. One that reads as an answer is none, and is no message either.
            if named(&self.offered, text).is_none() {
                self.say(text, When::Steer);
                return Ok(());
            }
            let text = format!("! {text} was sent before the question could be read: once more\n");
            return self.screen.show(&text);
        }
        let mut chars = text.chars();
        let key = chars.next().filter(|_| chars.next().is_none());
        if let Some(more) = key.and_then(More::of).filter(|more| self.has(*more)) {
            return self.more(more);
        }
        if self.fills() {
            return self.fill(text);
        }
        if key == Some(CHANGE) && self.filling.is_some() {
            return self.fill_again();
        }
        match named(&self.offered, text).cloned() {
            Some(choice) => self.choose(&choice, None),
            None if text.is_empty() => {
                let keys = keys_of(&self.offered);
                self.screen.show(&format!("  press one of {keys}: "))?;
                self.screen.stands_alone();
                Ok(())
            }
            None => self.refuse(text),
        }
    }

    /// Whether a key asks for it: a form is about no call that could be explained.
    pub(super) fn has(&self, more: More) -> bool {
        more == More::All || self.filling.is_none()
    }

    /// A no with its reason.
    fn refuse(&mut self, reason: &str) -> Ending {
        if let Some(choice) = self.no() {
            return self.choose(&choice, Some(reason));
        }
        self.say(reason, When::Steer);
        Ok(())
    }

    /// The answer that is taken where nobody answers.
    pub(super) fn no(&self) -> Option<Choice> {
        let id = &self.questions.front()?.if_nobody.option;
        let offered = if self.fills() { &self.questions.front()?.options } else { &self.offered };
        offered.iter().find(|choice| choice.id == *id).cloned()
    }

    pub(super) fn choose(&mut self, choice: &Choice, reason: Option<&str>) -> Ending {
        // Where it is kept stands in the question right above.
        let (label, _) = choice.label.split_once(" (kept in ").unwrap_or((&choice.label, ""));
        let label = crate::faces::view::safe(label);
        let because = reason.map(|text| format!(": {}", crate::faces::view::safe(text)));
        let because = because.unwrap_or_default();
        let is_no = self.no().is_some_and(|no| no.id == choice.id);
        let filled = self.filling.take().filter(|_| !is_no);
        match &filled {
            // What it holds is on the screen.
            Some(_) if self.offered.is_empty() => {}
            _ => self.screen.answer(&format!("{}  ({label}{because})\n", choice.key))?,
        }
        // Taken away now and not with its event: what is typed next is no answer to it.
        if let Some(question) = self.questions.pop_front() {
            let reply = match filled {
                Some(filling) => filling.reply(&choice.id),
                None => Reply { text: reason.map(str::to_owned), ..Reply::pick(&choice.id) },
            };
            self.send(Command::Reply { question: question.id, reply });
        }
        self.settled()
    }

    /// The first question is settled: what was held back is shown, and the next one is put.
    pub(super) fn settled(&mut self) -> Ending {
        (self.asked, self.filling) = (None, None);
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.screen.show(&held)?;
        }
        if self.questions.is_empty() { self.prompt() } else { self.ask() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_picks_an_option_by_its_key_or_first_word() {
        let option =
            |id: &str, key, label: &str| Choice { id: id.into(), key, label: label.into() };
        let offered = [
            option("allow", 'y', "yes, this once"),
            option("session", 's', "yes, this very call for the whole session"),
            option("deny", 'n', "no"),
        ];
        for (line, wanted) in [
            ("y", Some("allow")),
            ("Y", Some("allow")),
            ("yes", Some("allow")),
            ("YES", Some("allow")),
            ("s", Some("session")),
            ("n", Some("deny")),
            ("no", Some("deny")),
            ("x", None),
            ("yes please", None),
            ("ye", None),
            ("no, use b.txt", None),
            ("", None),
        ] {
            assert_eq!(named(&offered, line).map(|choice| &*choice.id), wanted, "{line:?}");
        }
    }
}
