//! What a person answered, for the model, for programs and for people.

use haft_tool::AskedForm;
use haft_types::{Outcome, Reply, Shape};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::questions::{AskedQuestion, field_name};

/// What programs get.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AskUserData {
    /// Each question with its answer; empty where the person gave none at all.
    answers: Vec<Answer>,
    /// What the person said in place of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
    /// The front end at which it was answered.
    by: String,
}

/// A question with its answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    /// The question.
    question: String,
    /// Labels of the chosen options.
    chosen: Vec<String>,
    /// The person's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Answer {
    fn of(question: &AskedQuestion, value: Option<&Value>) -> Self {
        let values = match value {
            Some(Value::Array(all)) => all.iter().collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        };
        let texts = values.into_iter().filter_map(Value::as_str).map(str::to_owned);
        let (chosen, own): (Vec<String>, Vec<String>) =
            texts.partition(|text| question.offers(text));
        let text = (!own.is_empty()).then(|| own.join(", "));
        Self { question: question.question.clone(), chosen, text }
    }

    /// What was answered, in words.
    fn words(&self) -> String {
        let chosen = self.chosen.join(", ");
        match (&self.text, chosen.is_empty()) {
            (None, true) => "no answer".to_owned(),
            (None, false) => chosen,
            (Some(text), true) => format!("in the person's words: {text}"),
            (Some(text), false) => format!("{chosen}; in the person's words: {text}"),
        }
    }
}

/// The outcome of a call that a person answered.
pub(super) fn outcome(questions: &[AskedQuestion], reply: &Reply, by: String) -> Outcome {
    if reply.option != AskedForm::ANSWER {
        let instead = reply.text.clone().filter(|text| !text.trim().is_empty());
        let text = match &instead {
            Some(words) => format!("The person did not answer but said: {words}"),
            None => "The person did not answer. Go on by the safest reading, and say what you \
                     assumed."
                .to_owned(),
        };
        let data = json!(AskUserData { answers: Vec::new(), instead, by });
        let detail = Shape::Markdown { text: "no answer".into() };
        return Outcome::text(text).with_data(data).with_detail(detail);
    }
    let value = |index: usize| reply.input.as_ref()?.get(field_name(index));
    let all = questions.iter().enumerate();
    let answers: Vec<Answer> =
        all.map(|(index, question)| Answer::of(question, value(index))).collect();
    let line = |(question, answer): (&AskedQuestion, &Answer)| {
        format!("{}: {}", question.title(), answer.words())
    };
    let lines: Vec<String> = questions.iter().zip(&answers).map(line).collect();
    let text = lines.join("\n");
    let detail = Shape::Markdown { text: lines.join("\n\n") };
    let data = json!(AskUserData { answers, instead: None, by });
    Outcome::text(text).with_data(data).with_detail(detail)
}
