//! The record through its public API: durability, large values, lists, and the fold.

#![expect(clippy::unwrap_used, reason = "a test helper that fails is a failing test")]

mod durability;
mod events;
mod fold;
mod fold_properties;
mod history;
mod lists;
mod outputs;
mod round_trip;
mod undo;
