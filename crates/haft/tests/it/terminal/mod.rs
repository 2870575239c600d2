//! The terminal interface, in tmux.

mod bad_input;
mod scrollback;
pub(crate) mod talks;
