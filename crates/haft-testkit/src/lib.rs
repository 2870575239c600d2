//! haft-testkit.
