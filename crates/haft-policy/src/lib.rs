//! haft-policy.
