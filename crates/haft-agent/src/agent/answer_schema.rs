//! Final answers that have to fit a JSON Schema.
//!
//! **Invariant:** a value counts as the final answer only once it fits, whoever says that it does:
//! the provider, or the tool that takes it. An answer that does not fit is sent back at most
//! [`REPAIRS`] times in a turn. What is wrong with the last one is an error that people see.

use haft_tool::{FinalAnswer, validate::Validator};
use haft_types::{Body, From, Level, Part, Stop, ToolUse};
use serde_json::Value;

use super::Agent;
use crate::{Input, QueuedMessage};

/// How often an answer that does not fit is sent back.
const REPAIRS: u32 = 2;
/// How often the tool that takes the answer is called at most.
const CALLS: u32 = REPAIRS + 2;

/// What the last answer of a turn has to fit.
#[derive(Debug)]
pub struct AnswerSchema {
    text: String,
    validator: Validator,
    /// The tool that takes the answer, where the provider cannot be told of the schema.
    tool: Option<String>,
}

impl AnswerSchema {
    /// Compiles a schema. `tool` is the name of the tool that takes the answer; none where the
    /// provider is told of the schema.
    ///
    /// # Errors
    /// Names what is wrong with the schema.
    pub fn new(schema: &Value, tool: Option<String>) -> Result<Self, String> {
        Ok(Self { text: schema.to_string(), validator: Validator::new(schema)?, tool })
    }

    /// Reads an answer: JSON and nothing else, but for a fence around it.
    ///
    /// # Errors
    /// Names what is wrong with it, a line for each problem.
    fn read(&self, answer: &str) -> Result<Value, String> {
        let text = unfenced(answer.trim());
        let value = serde_json::from_str(text).map_err(|error| {
            let begin: String = text.chars().take(60).collect();
            format!("it is no JSON: {error}; it begins with {begin:?}")
        })?;
        let problems = self.validator.problems(&value);
        if problems.is_empty() { Ok(value) } else { Err(problems.join("\n- ")) }
    }

    /// What the model is told of an answer that does not fit.
    fn repair(&self, problems: &str) -> String {
        match &self.tool {
            Some(tool) => format!(
                "The final answer of this task is given by calling {tool}, and it has not been \
                 called. Call it now with the answer."
            ),
            None => format!(
                "Your answer does not fit the JSON Schema that it has to fit:\n- {problems}\n\
                 Answer again with JSON that fits, and nothing else. The schema:\n{}",
                self.text
            ),
        }
    }
}

/// The text inside of a fence, where one is around the whole text.
fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner.trim())
}

impl Agent {
    /// Forgets the final answer of the turn before.
    pub(super) fn forget_final_answer(&mut self) {
        self.misfits = 0;
        if self.setup.schema.is_some() {
            self.final_answer().put(None);
        }
    }

    fn final_answer(&self) -> std::sync::Arc<FinalAnswer> {
        self.setup.dispatcher.session.map.get()
    }

    /// Looks at an answer where it has to fit a schema, and sends back what does not.
    pub(super) async fn check_answer(&mut self, stop: Stop, calls: &[ToolUse]) {
        let Some(schema) = self.setup.schema.clone() else { return };
        if let Some(tool) = &schema.tool
            && calls.iter().any(|call| call.name == *tool)
        {
            return self.count_misfit().await;
        }
        let is_last = calls.is_empty() && matches!(stop, Stop::EndTurn | Stop::Length);
        if !is_last || self.machine.is_steered() || self.final_answer().get().is_some() {
            return;
        }
        let problems = match schema.read(&self.last_words()) {
            Ok(value) => return self.final_answer().put(Some(value)),
            Err(problems) => problems,
        };
        self.misfits += 1;
        let most = if schema.tool.is_some() { 1 } else { REPAIRS };
        if self.limited || self.misfits > most {
            let text = match &schema.tool {
                Some(tool) => format!("the model gave no final answer by {tool}"),
                None => format!("the answer does not fit the schema:\n- {problems}"),
            };
            return self.emit_or_tell(Body::Notice { level: Level::Error, text });
        }
        let parts = vec![Part::text(schema.repair(&problems))];
        let words = QueuedMessage { from: From::Haft, parts };
        self.step(Input::Notice { words, wake: true }).await;
    }

    /// Counts a call of the tool that takes the answer: those before it did not fit, or it would
    /// not be called again.
    async fn count_misfit(&mut self) {
        self.misfits += 1;
        if self.misfits >= CALLS {
            let reason = format!("{} tries at a final answer that fits the schema", self.misfits);
            self.step(Input::Limit { reason }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_json_that_fits_and_nothing_else() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
            "required": ["n"]});
        let schema = AnswerSchema::new(&schema, None).unwrap();
        for good in ["{\"n\":1}", "  {\"n\":1}\n", "```json\n{\"n\":1}\n```", "```\n{\"n\":1}```"] {
            assert_eq!(schema.read(good), Ok(json!({"n": 1})), "{good}");
        }
        for (bad, why) in [
            ("", "no JSON"),
            ("Here it is: {\"n\":1}", "no JSON"),
            ("{\"n\":1} {\"n\":2}", "no JSON"),
            ("```json {\"n\":1}", "no JSON"),
            ("{\"n\":\"1\"}", "n is"),
            ("{}", "n"),
            ("[]", "the whole input"),
        ] {
            let error = schema.read(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
        assert!(AnswerSchema::new(&json!({"type": "objekt"}), None).is_err());
    }
}
