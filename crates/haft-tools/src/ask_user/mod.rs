//! `ask_user`: puts questions of the model before a person and waits for the answers.
//!
//! **Invariant:** it waits for as long as it takes, unless a person has set a time. Every question
//! takes free text. What a person did not choose or type is never in the answer.

mod answers;
mod questions;

use std::time::Duration;

use haft_tool::{AskedForm, Cx, Tool, nobody_is_here, schema_of};
use haft_types::{
    Access, Answerer, Env, Guideline, Kind, Loading, Outcome, Place, Plan, Status, Target,
    ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;

use self::{answers::AskUserData, questions::AskedQuestion};
use crate::Options;

/// Most questions of one call.
const QUESTIONS: usize = 5;
/// Most characters of a question in the title of its call.
const TITLE: usize = 80;

/// Asks a person.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskUser {
    /// How long it waits for an answer; none for as long as it takes.
    within: Option<Duration>,
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Each with what is to be decided.
    questions: Vec<AskedQuestion>,
}

impl AskUser {
    /// With what a person has set.
    pub fn new(options: &Options) -> Self {
        Self { within: options.ask_ms.map(Duration::from_millis) }
    }
}

impl Tool for AskUser {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        let guideline = Guideline {
            text: "Ask (ask_user) only what files, commands and the task do not tell and what \
                   changes the work (each question stops it)."
                .into(),
            ..Guideline::default()
        };
        ToolSpec {
            output_schema: schema_of::<AskUserData>(),
            aliases: vec!["AskUserQuestion".into()],
            snippet: "Ask the person 1 to 5 questions and wait for the answers".into(),
            guidelines: vec![guideline],
            hint: "ask person user question choice clarify decide".into(),
            kind: Kind::Other,
            primary: "questions".into(),
            loading: Loading::Always,
            asks: true,
            ..ToolSpec::new(
                "ask_user",
                "Ask the person",
                "Ask the person 1 to 5 questions and wait for the answers. The person may give \
                 their own words in place of an option, so offer no \"other\". Put what you advise \
                 first.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let title = match &input.questions[..] {
            [] => {
                return Err(ToolError::new("questions is empty").hint("Give 1 to 5 questions."));
            }
            [one] => {
                let words: Vec<&str> = one.question.split_whitespace().collect();
                let words = words.join(" ");
                let start: String = words.chars().take(TITLE).collect();
                let more = if start.len() < words.len() { "\u{2026}" } else { "" };
                format!("Asking: {start}{more}")
            }
            all if all.len() > QUESTIONS => {
                let text = format!("{} questions are too many: at most {QUESTIONS}", all.len());
                return Err(ToolError::new(text).hint("Ask those first that the others depend on."));
            }
            all => format!("Asking {} questions", all.len()),
        };
        for (index, question) in input.questions.iter().enumerate() {
            question.check(index)?;
        }
        // One form at a time stands before a person.
        let person = Target::State { name: "person".into() };
        Ok(Plan::new(place, title).with(Access::Modify, person))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let text = match input.questions.len() {
            1 => "The model asks a question.".to_owned(),
            many => format!("The model asks {many} questions."),
        };
        let form = questions::form(&input.questions);
        let (reply, by) = cx.ask(AskedForm { text, form, within: self.within }).await;
        match by {
            Answerer::Person(face) => Ok(answers::outcome(&input.questions, &reply, face)),
            Answerer::Nobody => Err(match self.within {
                Some(within) if cx.session().questions.is_somebody() => nobody_answered(within),
                _ => nobody_is_here(),
            }),
            Answerer::Cancelled => {
                Ok(Outcome::ended(Status::Cancelled, "cancelled before anybody answered"))
            }
        }
    }
}

/// What a call ends with whose time to wait is over.
fn nobody_answered(within: Duration) -> ToolError {
    let hint = nobody_is_here().hint.unwrap_or_default();
    ToolError::new(format!("nobody answered within {} s", within.as_secs_f64())).hint(hint)
}
