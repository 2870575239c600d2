//! The questions of a model, checked, and as the form that a person fills in.
//!
//! **Invariant:** what is longer than it may be is refused by name; nothing is cut.

use haft_types::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Most characters of a question, and of what an option means.
const WORDS: usize = 2_000;
/// Most characters of a header and of an option.
const LABEL: usize = 120;
/// Most characters of a preview.
const PREVIEW: usize = 8_000;
/// Most options of a question.
const OPTIONS: usize = 10;
/// Most characters that a person may type for a question.
pub(super) const TYPED: usize = 10_000;

// A question; without a word of its own in the schema, which counts.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AskedQuestion {
    pub(super) question: String,
    /// 1 to 3 words.
    pub(super) header: Option<String>,
    /// Default: single with options, else text.
    kind: Option<QuestionStyle>,
    options: Option<Vec<AskedOption>>,
}

// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum QuestionStyle {
    YesNo,
    Single,
    Multi,
    Text,
}

// One answer.
#[derive(Debug, Deserialize, JsonSchema)]
struct AskedOption {
    label: String,
    /// What it means for the work.
    description: Option<String>,
    /// Code or a layout to compare.
    preview: Option<String>,
}

impl AskedQuestion {
    fn options(&self) -> &[AskedOption] {
        self.options.as_deref().unwrap_or_default()
    }

    /// Refuses what cannot be asked.
    pub(super) fn check(&self, index: usize) -> Result<(), ToolError> {
        let at = |field: &str| format!("questions.{index}.{field}");
        within(&at("question"), &self.question, WORDS)?;
        if let Some(header) = &self.header {
            within(&at("header"), header, LABEL)?;
        }
        let options = self.options();
        let refused = |text: String| {
            let hint = format!("Give 2 to {OPTIONS} options, or kind text or yes_no without any.");
            Err(ToolError::new(text).hint(hint))
        };
        let needs = matches!(self.kind, Some(QuestionStyle::Single | QuestionStyle::Multi));
        match options.len() {
            0 if needs => return refused(format!("{} is empty", at("options"))),
            1 => return refused(format!("{} has one option, which is no choice", at("options"))),
            many if many > OPTIONS => {
                return refused(format!("{} has {many} options, too many", at("options")));
            }
            _ => {}
        }
        for (number, option) in options.iter().enumerate() {
            let at = |field: &str| at(&format!("options.{number}.{field}"));
            within(&at("label"), &option.label, LABEL)?;
            if let Some(description) = &option.description {
                within(&at("description"), description, WORDS).or_else(empty)?;
            }
            if let Some(preview) = &option.preview {
                within(&at("preview"), preview, PREVIEW).or_else(empty)?;
            }
            let label = one_line(&option.label);
            if options[..number].iter().any(|other| one_line(&other.label) == label) {
                let text = format!("{} is there twice: {label:?}", at("label"));
                return Err(ToolError::new(text).hint("Give each option a label of its own."));
            }
        }
        Ok(())
    }

    /// What it is called: its header, or its words where it has none.
    pub(super) fn title(&self) -> String {
        let header = self.header.as_deref().map(one_line).filter(|header| !header.is_empty());
        header.unwrap_or_else(|| one_line(&self.question))
    }

    /// The field of the form for it.
    fn field(&self) -> Value {
        let mut field = Map::new();
        let words = self.question.trim();
        match self.header.as_deref().map(one_line).filter(|header| !header.is_empty()) {
            Some(header) => {
                field.insert("title".into(), header.into());
                field.insert("description".into(), words.into());
            }
            None => drop(field.insert("title".into(), words.into())),
        }
        let mut options: Vec<Value> = self.options().iter().map(AskedOption::member).collect();
        if options.is_empty() && self.kind == Some(QuestionStyle::YesNo) {
            options = ["Yes", "No"].map(|label| json!({"const": label})).to_vec();
        }
        if options.is_empty() {
            field.extend([
                ("type".into(), "string".into()),
                ("minLength".into(), 1.into()),
                ("maxLength".into(), TYPED.into()),
            ]);
            return Value::Object(field);
        }
        options.push(json!({"maxLength": TYPED}));
        let is_multi = self.kind == Some(QuestionStyle::Multi);
        let one = json!({"type": "string", "anyOf": options});
        if is_multi {
            field.extend([("type".into(), "array".into()), ("items".into(), one)]);
        } else if let Value::Object(one) = one {
            field.extend(one);
        }
        Value::Object(field)
    }

    /// Reports whether a text is one of the options.
    pub(super) fn offers(&self, text: &str) -> bool {
        let labels = self.options().iter();
        labels.map(|option| one_line(&option.label)).any(|label| label == text)
            || (self.kind == Some(QuestionStyle::YesNo)
                && self.options().is_empty()
                && ["Yes", "No"].contains(&text))
    }
}

impl AskedOption {
    fn member(&self) -> Value {
        let mut member = json!({"const": one_line(&self.label)});
        let more = [("description", &self.description), ("preview", &self.preview)];
        for (name, text) in more {
            if let Some(text) = text.as_ref().filter(|text| !text.trim().is_empty()) {
                member[name] = text.as_str().into();
            }
        }
        member
    }
}

/// The name of the field for the question at an index.
pub(super) fn field_name(index: usize) -> String {
    format!("q{}", index + 1)
}

/// The form for the questions. A question alone has to be answered; of several some may be left out.
pub(super) fn form(questions: &[AskedQuestion]) -> Value {
    let fields = questions.iter().enumerate();
    let fields: Map<String, Value> =
        fields.map(|(index, question)| (field_name(index), question.field())).collect();
    let required = if questions.len() == 1 { vec![field_name(0)] } else { Vec::new() };
    json!({"type": "object", "properties": fields, "required": required})
}

/// Refuses a text that is empty, or longer than it may be.
fn within(at: &str, text: &str, most: usize) -> Result<(), ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::new(format!("{at} is empty")).hint("Say what is asked."));
    }
    // Bytes first: they cost nothing to count.
    let many = if text.len() > most { text.chars().count() } else { 0 };
    if many > most {
        let start: String = text.chars().take(40).collect();
        let error = format!("{at} has {many} characters, at most {most}: {start:?}...");
        return Err(ToolError::new(error).hint("Say it shorter; what is longer belongs in a file."));
    }
    Ok(())
}

/// An empty text says nothing, which is no fault of what may be left out.
fn empty(error: ToolError) -> Result<(), ToolError> {
    if error.message.ends_with(" is empty") { Ok(()) } else { Err(error) }
}

/// A text with single spaces between its words.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
