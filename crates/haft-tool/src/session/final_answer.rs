//! The final answer of a turn, where a schema is asked of it.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A value that fits the schema of final answers; a service of a session by its type map. None
/// before there is one.
#[derive(Debug, Default)]
pub struct FinalAnswer(Mutex<Option<Value>>);

impl FinalAnswer {
    /// Takes a value in place of the one before.
    pub fn put(&self, value: Option<Value>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    /// The value.
    pub fn get(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
