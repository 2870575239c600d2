//! What builders find wrong on their way, and go on in spite of. They print nothing: a face does.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_text::secrets::Secrets;
use haft_types::Level;

/// Something that is wrong and stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How much it matters.
    pub level: Level,
    /// What is wrong with which value, and what is done about it.
    pub text: String,
    /// The file and the line where it stands, `path:line`; none where no file holds it.
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
    /// A warning that no file has the place of.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into(), place: None }
    }
}

/// Collects problems in the order in which they are found. Clones collect into the same list, so that
/// what was found before a failure is not lost with what failed.
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

    /// Gives what was found since the last time.
    pub fn take(&self) -> Vec<Problem> {
        std::mem::take(&mut self.collected().all)
    }

    /// From now on nothing that is said of them may show the values of these secrets.
    pub fn hide(&self, secrets: &Arc<Secrets>) {
        self.collected().secrets = Some(secrets.clone());
    }

    /// What must not be shown of them.
    pub fn secrets(&self) -> Option<Arc<Secrets>> {
        self.collected().secrets.clone()
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
