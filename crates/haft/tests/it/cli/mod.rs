//! The command line, and what haft says of itself.

pub(crate) mod claude_settings;
pub(crate) mod definitions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod flags;
pub(crate) mod mistakes;
pub(crate) mod models;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod tool;
