//! The terminal interface, in tmux.

pub(crate) mod talks;
