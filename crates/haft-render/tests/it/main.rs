//! Every shape in both media, and what holds for all input.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod properties;
mod questions;
mod shapes;
mod snapshots;
mod transcript;
