//! The agent through its public interface: the pure machine, the driver over real logs and the
//! real tool layer, the prompt and the context files.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall fail right there"
)]

mod bus;
mod driver;
mod early;
mod faults;
mod instructions;
mod interrupts;
mod late_tools;
mod machine;
mod prompt;
mod repin;
mod simulation;
mod transcript;
mod world;
