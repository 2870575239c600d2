//! haft-net.
