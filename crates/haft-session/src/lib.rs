//! haft-session.
