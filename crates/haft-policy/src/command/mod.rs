//! What a command of a shell does, as far as its text tells.

pub(crate) mod lexer;
pub(crate) mod named;
pub(crate) mod parts;
pub(crate) mod programs;
pub(crate) mod script;
pub(crate) mod segments;
pub(crate) mod work;
