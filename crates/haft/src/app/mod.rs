//! What every face is built from: settings, session, agent, hooks. Nothing here prints.

pub(crate) mod agent;
pub(crate) mod allowances;
pub(crate) mod attachments;
pub(crate) mod base;
pub(crate) mod commands;
pub(crate) mod executables;
pub(crate) mod explain;
pub(crate) mod git;
pub(crate) mod hooks;
pub(crate) mod jobs;
pub(crate) mod live;
pub(crate) mod model;
pub(crate) mod overview;
#[cfg(feature = "pdf")]
pub(crate) mod pdf;
pub(crate) mod peers;
pub(crate) mod problem;
pub(crate) mod recovery;
pub(crate) mod reexec;
pub(crate) mod rewind;
pub(crate) mod rules;
pub(crate) mod session;
pub(crate) mod slash;
pub(crate) mod tool_loading;
pub(crate) mod toolset;
