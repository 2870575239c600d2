//! A terminal interface as pure functions: bytes to keys, keys and events to state, state to lines.
//!
//! **Does not know:** files, clocks, processes, the network. One driver outside does all IO.

pub mod activity;
pub mod app;
pub mod editor;
pub mod input;
pub mod pager;
pub mod screen;
