//! What outlives a call: state of the session and of each conversation, and what they are given by faces.

pub(crate) mod events;
pub(crate) mod network;
pub(crate) mod questions;
pub(crate) mod redact;
pub(crate) mod services;
pub(crate) mod startup_command;
pub(crate) mod state;
pub(crate) mod truncate;
