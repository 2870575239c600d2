//! Rules as people write them: how they are parsed, what their patterns match, and what is wrong
//! with them.

pub(crate) mod command_pattern;
pub(crate) mod glob;
pub(crate) mod hook_condition;
pub(crate) mod invalid;
pub(crate) mod lint;
pub(crate) mod open_pattern;
pub(crate) mod prefix;
pub(crate) mod rule;
pub(crate) mod suggest;
pub(crate) mod tool_aliases;
