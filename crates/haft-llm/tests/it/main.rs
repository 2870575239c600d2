//! The crate through its public API: every cassette, and a live server that behaves badly.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod bytes;
mod cassettes;
mod hostile;
mod live;
mod outages;
mod third_wire;
