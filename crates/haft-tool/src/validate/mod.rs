//! Checks values against JSON Schemas (draft 2020-12) and reports all problems together, in words
//! for a model: where, what is there, and what is wanted.
//!
//! The files by subject: `references` (where schemas are and what refers to them), `compile` (what
//! a schema says, as the data of `node`), `check` with `contents` and `evaluated` (whether a value
//! fits), `explain` and `problem` (words), `equal`, `numbers` and `pattern` (what values mean).
//!
//! `format` and `content...` describe and check nothing. `$schema` is not looked at.
//!
//! **Invariant:** a schema and a value may both be hostile: what they cost is bounded, in steps,
//! depth and memory, and a check that ends for that says so. Nothing is ever fetched.

mod check;
mod compile;
mod contents;
mod equal;
mod evaluated;
mod explain;
mod node;
mod numbers;
mod pattern;
mod problem;
mod references;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

use haft_types::ToolError;
use serde_json::Value;

pub(crate) use self::problem::shown;
use self::{
    check::{Checker, STEPS},
    compile::{Integers, compile},
    node::Compiled,
};

/// A compiled schema. Compiling takes a fraction of a millisecond for usual ones.
#[derive(Debug)]
pub struct Validator {
    schema: Compiled,
    /// Most steps of one check.
    steps: u64,
}

impl Validator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Names the first place where the schema is wrong, what is there and what is wanted.
    pub fn new(schema: &Value) -> Result<Self, String> {
        Self::with_documents(schema, &[])
    }

    /// Compiles a schema that may refer to others, which are given with their addresses.
    ///
    /// # Errors
    /// As [`Validator::new`], also about the other schemas.
    pub fn with_documents(schema: &Value, documents: &[(&str, &Value)]) -> Result<Self, String> {
        let schema = compile(schema, documents, Integers::Any)?;
        Ok(Self { schema, steps: STEPS })
    }

    /// Compiles the schema of a tool's arguments: a whole number has at most 64 bits there, so that
    /// one beyond them is told like any other wrong value.
    pub(crate) fn of_arguments(schema: &Value) -> Result<Self, String> {
        Ok(Self { schema: compile(schema, &[], Integers::Bounded)?, steps: STEPS })
    }

    /// Reports whether a value fits; one that cannot be checked does not.
    pub fn is_valid(&self, value: &Value) -> bool {
        Checker::new(&self.schema, self.steps).whole(value, false)
    }

    /// The problems of a value, a line for each: at most 20, then how many more there are. None
    /// where it fits.
    pub fn problems(&self, value: &Value) -> Vec<String> {
        let mut checker = Checker::new(&self.schema, self.steps);
        if checker.whole(value, true) {
            return Vec::new();
        }
        let mut lines = checker.problems.into_lines();
        let alone = lines.is_empty();
        lines.extend(checker.ended.map(|ended| ended.words(&self.schema, alone)));
        if lines.is_empty() {
            lines.push("the whole input does not fit its schema".into());
        }
        lines
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// Names the problems, each with its path, what is there and what is wanted.
    pub fn check(&self, tool: &str, input: &Value) -> Result<(), ToolError> {
        let problems = self.problems(input);
        if problems.is_empty() {
            return Ok(());
        }
        Err(ToolError::new(format!(
            "the arguments of {tool} are not valid:\n- {}",
            problems.join("\n- ")
        ))
        .hint("Correct what is named and call again."))
    }
}
