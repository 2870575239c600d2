//! Line mode, over pipes and in terminals.

pub(crate) mod basics;
pub(crate) mod captured;
pub(crate) mod escapes;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod questions;
pub(crate) mod rewind;
pub(crate) mod screens;
pub(crate) mod terminal;
pub(crate) mod undo;
