//! The terminal interface, in tmux.

mod bad_input;
pub(crate) mod jobs;
mod scrollback;
mod skills;
pub(crate) mod start;
pub(crate) mod talks;
pub(crate) mod todo;
