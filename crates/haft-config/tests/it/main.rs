//! Settings, trust and saving through the public API.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod claude;
mod layers;
mod saving;
