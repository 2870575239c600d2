//! What tests of several crates share: servers and worlds that behave as they are told.
//!
//! **Invariant:** nothing here is part of a program that ships, and nothing here needs a network
//! beyond the loopback interface.

pub mod cassette;
pub mod harness;
pub mod http;
pub mod log;
pub mod machine;
pub mod numbers;
pub mod schema;
pub mod slow;
pub mod world;
