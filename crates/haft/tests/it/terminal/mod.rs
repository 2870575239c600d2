//! The terminal interface, in tmux.

pub(crate) mod jobs;
pub(crate) mod start;
pub(crate) mod talks;
