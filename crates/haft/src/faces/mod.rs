//! What a person or a program sees of haft, one face a module.

pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod line;
pub(crate) mod mcp;
pub(crate) mod print;
pub(crate) mod session;
pub(crate) mod tool;
pub(crate) mod trust;
pub(crate) mod view;
pub(crate) mod why;
