//! haft as an MCP server.

pub(crate) mod codex;
pub(crate) mod gateway;
pub(crate) mod hostile;
pub(crate) mod order;
pub(crate) mod protocol;
pub(crate) mod sdk;
