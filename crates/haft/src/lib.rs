//! haft.
