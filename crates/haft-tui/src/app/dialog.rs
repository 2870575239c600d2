//! A question that is open before the person.

use haft_render::Form;
use haft_types::{Choice, Question, QuestionKind, Shape};

/// An open question.
#[derive(Clone, Debug)]
pub(super) struct Dialog {
    pub question: Question,
    /// The answers that are offered, once it was put before the person.
    pub options: Vec<Choice>,
    /// Whether letters are text: the reason for a no.
    pub says_why: bool,
    /// What is to be filled in before it can be answered.
    pub form: Option<Form>,
    /// When a key came after the quiet: what is typed from then on is meant for it.
    pub reached: Option<u64>,
    /// What the person made of the plan that is to be approved.
    pub plan: Option<String>,
}

/// The plan that a question is about.
pub(super) fn shown_plan(question: &Question) -> Option<String> {
    match &question.preview.as_ref()?.shape {
        Shape::Markdown { text } if question.kind == QuestionKind::Plan => Some(text.clone()),
        _ => None,
    }
}

/// The answer that is taken where nobody answers.
pub(super) fn no(dialog: &Dialog) -> Option<Choice> {
    let id = &dialog.question.if_nobody.option;
    dialog.options.iter().find(|choice| choice.id == *id).cloned()
}
