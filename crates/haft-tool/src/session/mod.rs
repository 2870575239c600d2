//! State that outlives a call: state of the session and of each conversation, and the services that
//! front ends give them.

pub(crate) mod arrivals;
pub(crate) mod events;
pub(crate) mod final_answer;
pub(crate) mod history;
pub(crate) mod network;
pub(crate) mod questions;
pub(crate) mod redact;
pub(crate) mod repeats;
pub(crate) mod services;
pub(crate) mod setting_access;
pub(crate) mod side_model;
pub(crate) mod startup_command;
pub(crate) mod state;
pub(crate) mod truncate;
pub(crate) mod work_hooks;
