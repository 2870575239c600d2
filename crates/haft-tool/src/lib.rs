//! haft-tool.
