//! What is learnt of one server while haft talks to it.
//!
//! **Invariant:** what is remembered only changes how an answer is read or a request is written
//! where the server itself has shown that it is so; nothing of it outlives the process.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::openai::REASONING_FIELDS;

/// What a decoder has to know of its server before an answer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// True when answers of it are known to end without a reason.
    pub ends_without_reason: bool,
    /// The field in which it gave the model's thinking, empty or not.
    pub reasoning: Option<&'static str>,
}

/// What is known about the reasons for the end of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reasons {
    #[default]
    Unknown,
    /// One answer ended without any, and was asked for again.
    MissedOnce,
    /// There are none.
    Never,
}

#[derive(Debug, Default)]
struct Memory {
    reasons: Reasons,
    /// The field of the thinking by model.
    reasoning: HashMap<String, &'static str>,
    /// Models with the fields that the server refuses for them.
    refused: HashSet<(String, String)>,
    /// What was said to the person already.
    noted: HashSet<&'static str>,
}

/// One server of one wire.
#[derive(Debug, Default)]
pub struct Server {
    /// `HOST:PORT`; empty where the address is none.
    pub host: String,
    memory: Mutex<Memory>,
}

impl Server {
    /// A server of which nothing is known.
    pub fn new(base_url: &str) -> Self {
        let host = haft_net::host_and_port(base_url).map(|(host, port)| format!("{host}:{port}"));
        Self { host: host.unwrap_or_default(), memory: Mutex::default() }
    }

    /// What a decoder of a model's answers has to know.
    pub fn habits(&self, model: &str) -> Habits {
        let memory = self.memory();
        let ends_without_reason = memory.reasons != Reasons::Unknown;
        Habits { ends_without_reason, reasoning: memory.reasoning.get(model).copied() }
    }

    /// An answer ended without a reason and is asked for once more.
    pub(crate) fn missed_reason(&self) {
        let reasons = &mut self.memory().reasons;
        if *reasons == Reasons::Unknown {
            *reasons = Reasons::MissedOnce;
        }
    }

    /// An answer counts, with or without a reason; true when the person is to be told, once, that
    /// this server gives none.
    pub(crate) fn counted(&self, gave_reason: bool) -> bool {
        let mut memory = self.memory();
        let before = memory.reasons;
        memory.reasons = match (gave_reason, before) {
            (true, Reasons::MissedOnce) => Reasons::Unknown,
            (true, same) => same,
            (false, _) => Reasons::Never,
        };
        !gave_reason && before != Reasons::Never
    }

    /// The server gives the model's thinking in this field, where it is one that is wanted back.
    pub(crate) fn gave_reasoning(&self, model: &str, field: &str) {
        if let Some(known) = REASONING_FIELDS.into_iter().find(|known| *known == field) {
            self.memory().reasoning.entry(model.to_owned()).or_insert(known);
        }
    }

    /// The server refuses a field for a model; false when that was known before.
    pub(crate) fn refuses(&self, model: &str, field: &str) -> bool {
        self.memory().refused.insert((model.to_owned(), field.to_owned()))
    }

    /// Fields that it refuses for a model.
    pub(crate) fn refused(&self, model: &str) -> Vec<String> {
        let memory = self.memory();
        let same = memory.refused.iter().filter(|(by, _)| by == model);
        same.map(|(_, field)| field.clone()).collect()
    }

    /// True the first time that something of this name is to be said.
    pub(crate) fn note_once(&self, name: &'static str) -> bool {
        self.memory().noted.insert(name)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_reasons_is_known_after_two_answers_and_said_once() {
        let server = Server::new("http://h.example/v1");
        assert_eq!(server.host, "h.example:80");
        server.missed_reason();
        assert!(server.habits("m").ends_without_reason);
        assert!(server.counted(false));
        assert!(!server.counted(false));
    }

    #[test]
    fn one_answer_without_a_reason_may_have_been_an_accident() {
        let server = Server::default();
        server.missed_reason();
        assert!(!server.counted(true));
        assert!(!server.habits("m").ends_without_reason);
    }

    #[test]
    fn refused_fields_belong_to_a_model() {
        let server = Server::default();
        assert!(server.refuses("m", "extra_content") && !server.refuses("m", "extra_content"));
        assert_eq!(server.refused("m"), ["extra_content"]);
        assert!(server.refused("n").is_empty());
    }
}
