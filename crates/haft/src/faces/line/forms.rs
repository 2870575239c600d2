//! Forms in line mode: each field takes one line.
//!
//! **Invariant:** no key answers while a form is filled in, but Ctrl-D, which is a no. What does not
//! fit a field is told and asked for again. Several fields are shown once more before they are sent.

use std::fmt::Write as _;

use haft_render::{Form, exact};
use haft_types::{Question, QuestionId, QuestionKind, Reply};

use super::{LineMode, questions::CHANGE};
use crate::cli::exit::Ending;

/// The form of the question that is open, and what is filled in of it.
pub(super) struct Filling {
    question: QuestionId,
    form: Form,
    /// Whether its only field answers the question.
    is_alone: bool,
}

/// What came of a line that was typed into a form.
pub(super) enum Filled {
    /// What is wrong with it.
    Wrong(String),
    /// Another field is to be filled in.
    More,
    /// All is filled in, and to be looked at once more.
    All,
    /// All is filled in, and that is the answer.
    Answer,
}

impl Filling {
    /// The form of a question; none where it has none.
    pub fn of(question: &Question) -> Option<Self> {
        let form = Form::new(question.form.as_ref()?)?;
        let is_alone = question.kind == QuestionKind::Form && form.fields().len() == 1;
        Some(Self { question: question.id.clone(), form, is_alone })
    }

    /// Whether it is that of a question.
    pub fn is_of(&self, question: &Question) -> bool {
        self.question == question.id
    }

    /// What is asked for; none where all is filled in.
    pub fn asks(&self) -> Option<String> {
        let asks = self.form.asks()?;
        // No line of a model's text may look like one of haft's own.
        Some(format!("  {} ", exact(&format!("{asks}:")).replace('\n', "\n    ")))
    }

    /// Takes a line.
    pub fn take(&mut self, line: &str) -> Filled {
        match self.form.take(line) {
            Err(told) => Filled::Wrong(format!("  {}\n", exact(&told))),
            Ok(()) if self.form.next_field().is_some() => Filled::More,
            Ok(()) if self.is_alone => Filled::Answer,
            Ok(()) => Filled::All,
        }
    }

    /// Goes back to the last field.
    pub fn back(&mut self) {
        self.form.back();
    }

    /// What is filled in.
    pub fn filled(&self) -> String {
        let mut text = String::new();
        for line in self.form.filled() {
            let _ = writeln!(text, "  {}", exact(&line).replace('\n', "\n    "));
        }
        text
    }

    /// A reply with what is filled in.
    pub fn reply(&self, option: &str) -> Reply {
        Reply { input: Some(self.form.values()), ..Reply::pick(option) }
    }
}

impl LineMode {
    /// Whether the open question waits for a field of its form.
    pub(super) fn fills(&self) -> bool {
        self.filling.as_ref().is_some_and(|filling| filling.asks().is_some())
    }

    /// Begins or goes on with the form of the first open question.
    pub(super) fn fill_first(&mut self) {
        let Some(question) = self.questions.front() else { return self.filling = None };
        if !self.filling.as_ref().is_some_and(|filling| filling.is_of(question)) {
            self.filling = Filling::of(question);
        }
    }

    /// Takes a line for the next field of the form.
    pub(super) fn fill(&mut self, line: &str) -> Ending {
        let Some(filling) = &mut self.filling else { return Ok(()) };
        if !self.keys.is_terminal() {
            // Nobody sees what a pipe gives.
            self.screen.answer(&format!("{}\n", exact(line)))?;
        }
        match filling.take(line) {
            Filled::Wrong(told) => {
                self.screen.show(&told)?;
                self.ask_field()
            }
            Filled::More => self.ask_field(),
            Filled::All => {
                let text = filling.filled();
                self.screen.show(&text)?;
                self.confirm()
            }
            Filled::Answer => match self.offered_first() {
                Some(answer) => self.choose(&answer, None),
                None => Ok(()),
            },
        }
    }

    /// Goes back to the last field of the form.
    pub(super) fn fill_again(&mut self) -> Ending {
        if let Some(filling) = &mut self.filling {
            filling.back();
        }
        self.offered.clear();
        self.ask_field()
    }

    /// Asks for the next field of the form.
    pub(super) fn ask_field(&mut self) -> Ending {
        let Some(asks) = self.filling.as_ref().and_then(Filling::asks) else { return Ok(()) };
        self.asked = Some(std::time::Instant::now());
        self.screen.show(&asks)?;
        self.screen.stands_alone();
        Ok(())
    }

    /// Shows what may be done with a form that is filled in.
    fn confirm(&mut self) -> Ending {
        let Some(question) = self.questions.front() else { return Ok(()) };
        let mut text = String::new();
        for choice in &question.options {
            let _ = writeln!(text, "  [{}] {}", choice.key, exact(&choice.label));
        }
        let _ = writeln!(text, "  [{CHANGE}] change the last one");
        self.offered = question.options.clone();
        self.stand_anew();
        self.put(&text)
    }

    /// The answer that sends what is filled in.
    fn offered_first(&self) -> Option<haft_types::Choice> {
        self.questions.front()?.options.first().cloned()
    }
}
