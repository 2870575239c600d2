//! Judgements through the public API.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod always;
mod cases;
mod commands;
mod discards;
mod dressed;
mod forms;
mod outside;
mod properties;
mod restricted;
mod risks;
mod work;
mod world;
