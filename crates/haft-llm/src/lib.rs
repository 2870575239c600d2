//! haft-llm.
