//! haft-mcp.
