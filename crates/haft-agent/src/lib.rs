//! haft-agent.
