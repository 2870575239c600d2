//! What is allowed, asked and denied.

pub(crate) mod command_rules;
pub(crate) mod confined;
pub(crate) mod everyday;
pub(crate) mod free;
pub(crate) mod kept_rules;
pub(crate) mod paths_in_words;
pub(crate) mod plan_mode;
pub(crate) mod questions_whole;
pub(crate) mod read_only;
pub(crate) mod refusals;
pub(crate) mod rules;
pub(crate) mod why;
