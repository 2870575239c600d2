//! haft-tools.
