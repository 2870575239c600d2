//! haft-config.
