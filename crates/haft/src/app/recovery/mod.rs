//! Recovery of what an earlier run of a session left when it was killed.

pub(crate) mod commands;
pub(crate) mod jobs;
pub(crate) mod journal;
