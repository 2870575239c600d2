//! Problems that builders find and that do not stop them. Builders print nothing: a face does.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_text::secrets::Secrets;
use haft_types::Level;

/// A problem that does not stop what found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its severity.
    pub level: Level,
    /// What is wrong with which value, and what is done about it.
    pub text: String,
    /// Where the value stands, as `path:line`; none if no file holds it.
    pub place: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl Problem {
    /// A warning without a place.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into(), place: None }
    }
}

/// Collects problems in the order in which they are found. Clones collect into the same list, so
/// that problems found before a failure are not lost with it.
#[derive(Clone, Debug, Default)]
pub struct Problems(Arc<Mutex<Collected>>);

#[derive(Debug, Default)]
struct Collected {
    all: Vec<Problem>,
    /// What hides the values of secrets in them.
    secrets: Option<Arc<Secrets>>,
}

impl Problems {
    /// Adds one.
    pub fn add(&self, problem: Problem) {
        self.collected().all.push(problem);
    }

    /// Adds several.
    pub fn extend(&self, found: Vec<Problem>) {
        self.collected().all.extend(found);
    }

    /// Adds a warning without a place.
    pub fn warn(&self, text: impl Into<String>) {
        self.add(Problem::warning(text));
    }

    /// Takes the problems that were found since the last call.
    pub fn take(&self) -> Vec<Problem> {
        std::mem::take(&mut self.collected().all)
    }

    /// From now on, no message about them may show the values of these secrets.
    pub fn hide(&self, secrets: &Arc<Secrets>) {
        self.collected().secrets = Some(secrets.clone());
    }

    /// The secrets that messages about them must not show.
    pub fn secrets(&self) -> Option<Arc<Secrets>> {
        self.collected().secrets.clone()
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
